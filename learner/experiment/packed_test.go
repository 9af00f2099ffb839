package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/virtual"
)

// packedSession makes a session of P directions and its aggregator. P is set past the
// configuration's own checks, which know more than an aggregator does.
func packedSession(t *testing.T, path string, p int, set ...string) (*Experiment, learner.Simulated) {
	t.Helper()
	c, err := config.Load(path, append([]string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300"}, set...))
	if err != nil {
		t.Fatal(err)
	}
	c.Optimizer.PackedDirections = p
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.aggregator(xmkckks.NewLedger(1<<20), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, a.(learner.Simulated)
}

// packedDelta draws Delta f of every device along every direction, within (-most, most).
func packedDelta(rnd *rand.Rand, directions, devices int, most float64) [][]float64 {
	delta := make([][]float64, devices)
	for range directions {
		for i := range delta {
			delta[i] = append(delta[i], most*(2*rnd.Float64()-1))
		}
	}
	return delta
}

// weightsOf returns what an aggregator weights the devices' scalars with in round k, from
// the channel alone.
func weightsOf(t *testing.T, s *Experiment, k int) []float64 {
	t.Helper()
	w := slices.Repeat([]float64{1}, s.Config.Devices.Count)
	switch s.Config.Experiment.Aggregator {
	case config.Digital, config.AirHE:
	case config.ZF, config.MMSE:
		g, err := setup.RingGains(s.Config, s.root, s.Channel)
		if err != nil {
			t.Fatal(err)
		}
		g.Scaled(w, uint32(k), 0, int(slot.TxC0))
		for i := range w {
			w[i] /= g.Alpha()
		}
	default:
		copy(w, gainsOf(s.Channel).Gains(k)) // all means are 1 here
	}
	return w
}

// Through every aggregator that carries scalars, over the same gains, each of P = 5 M_p
// is the sum of the weighted Delta f_p within six predicted deviations.
func TestEveryAggregatorCarriesPackedDirections(t *testing.T) {
	experimenttest.NoData(t)
	const directions, rounds = 5, 4
	for _, system := range config.Systems() {
		name := system.Name
		if system.Gradients {
			continue // it sends gradients
		}
		set := []string{"experiment.aggregator=" + name, "devices.count=4", "encryption.delta_max=1"}
		s, packer := packedSession(t, experimenttest.Fig4Config, directions, set...)
		rnd := rand.New(rand.NewPCG(3, 3))
		worst := 0.0
		for k := 1; k <= rounds; k++ {
			delta := packedDelta(rnd, directions, 4, 0.5)
			out, err := packer.Aggregate(t.Context(), k, delta)
			if err != nil {
				t.Fatal(err)
			}
			if out.Skipped || out.Attempts != 1 || out.Clipped != 0 || len(out.M) != directions {
				t.Fatalf("%s, round %d: %+v", name, k, out)
			}
			weights, truth := weightsOf(t, s, k), packer.Truth()
			for p, m := range out.M {
				want := 0.0
				for i, w := range weights {
					want += w * delta[i][p]
				}
				if math.Abs(truth.Ideal[p]-want) > 1e-9 {
					t.Errorf("%s, round %d, direction %d aims at %v, want %v", name, k, p, truth.Ideal[p], want)
				}
				worst = max(worst, math.Abs(m-want)/truth.EpsStd)
				if !(math.Abs(m-want) <= 6*truth.EpsStd) {
					t.Errorf("%s, round %d, direction %d: M = %v, want %v within six times %v", name, k, p, m, want, truth.EpsStd)
				}
			}
		}
		t.Logf("%s: at most %.2f deviations", name, worst)
	}
}

// Over an ideal channel digital and none give the same M of every direction, but for the
// encryption's noise.
func TestPackedDigitalAndNoneAgree(t *testing.T) {
	experimenttest.NoData(t)
	ideal := []string{"devices.count=4", "channel.std=0", "channel.analog_noise_std=0", "encryption.delta_max=1"}
	_, digital := packedSession(t, experimenttest.Fig4Config, 6, append(ideal, "experiment.aggregator=digital")...)
	_, none := packedSession(t, experimenttest.Fig4Config, 6, append(ideal, "experiment.aggregator=none")...)
	rnd := rand.New(rand.NewPCG(4, 4))
	for k := 1; k <= 10; k++ {
		delta := packedDelta(rnd, 6, 4, 0.9)
		a, err := digital.Aggregate(t.Context(), k, delta)
		if err != nil {
			t.Fatal(err)
		}
		b, err := none.Aggregate(t.Context(), k, delta)
		if err != nil {
			t.Fatal(err)
		}
		for p := range a.M {
			if d := a.M[p] - b.M[p]; !(math.Abs(d) <= 6*digital.Truth().EpsStd+1e-12) {
				t.Errorf("round %d, direction %d: digital %v, none %v", k, p, a.M[p], b.M[p])
			}
		}
	}
}

// Messages beyond encryption.delta_max are counted one by one in metrics.csv.
func TestPackedClippingIsCounted(t *testing.T) {
	experimenttest.NoData(t)
	for _, name := range []string{config.XMKCKKS, config.Digital, config.AirHE, config.ZF} {
		s, packer := packedSession(t, experimenttest.Fig4Config, 3, "experiment.aggregator="+name, "devices.count=2", "encryption.delta_max=0.5")
		out, err := packer.Aggregate(t.Context(), 1, [][]float64{{0.6, -0.7, 0.4}, {0.1, 0.8, -0.4}})
		if err != nil || out.Clipped != 3 {
			t.Errorf("%s: %+v, %v; three messages are beyond %v", name, out, err, s.Config.Encryption.DeltaMax)
		}
	}
}

// Emulated boards carry four directions as they carry one: M of each is that of the
// gains that the patterns show.
func TestPackedOverBoards(t *testing.T) {
	const devices, directions = 2, 4
	noise := newSlotNoise(t, airNoise)
	cfg := virtual.Config{Ears: []virtual.Ear{{Board: devices, Noise: noise}}}
	var boards []virtual.Board
	var uris []string
	for i := range devices + 1 {
		serial := fmt.Sprintf("0000000000000000%016x", 0x4ac0+i)
		h, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial})
		if err != nil {
			t.Fatal(err)
		}
		boards = append(boards, h)
		cfg.Boards, cfg.Await = append(cfg.Boards, virtual.Place{Radio: h, Reference: true}), append(cfg.Await, i)
		if i < devices {
			cfg.Links = append(cfg.Links, virtual.Link{From: i, To: devices, Gain: 1})
		}
		uris = append(uris, fmt.Sprintf("%q", "hackrf:"+serial+"?hold=on&deadline_ms=0&limit_ms=0&feed=strict&transfer=16384&window=8388608"))
	}
	bench, err := virtual.NewBench(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Close() })
	host := plugBoards(t, boards)
	c := airConfig(t, devices, 2, "radio.transmitters=["+strings.Join(uris[:devices], ", ")+"]", "radio.receiver="+strings.Trim(uris[devices], `"`),
		"radio.trigger=lock-step", fmt.Sprintf("optimizer.packed_directions=%d", directions))
	registry := registryOn(host)
	r := newAirRun(t, t.Context(), c, noise, registry, func(i int, at radio.SampleIndex, gain complex64) error {
		return bench.SetGain(i, devices, at, gain)
	})
	read := 0
	for range 2 {
		r.step(t)
	}
	for _, record := range r.records {
		if record.Skipped {
			continue
		}
		read++
		// EpsSquare is the mean over four squares of mean 1: 12 is far out.
		if !(record.EpsSquare > 0 && record.EpsSquare < 12) {
			t.Errorf("round %d: eps^2 over its variance is %v in the mean over the directions", record.Round, record.EpsSquare)
		}
	}
	if read == 0 {
		t.Error("no round was read")
	}
}

// The waveform's plan counts the symbols of the messages.
func TestWaveformPlanCountsMessages(t *testing.T) {
	experimenttest.NoData(t)
	symbols := func(p int) (payload, all int) {
		s, _ := packedSession(t, experimenttest.WaveformConfig, p)
		samples, err := s.waveform().AttemptSamples()
		if err != nil {
			t.Fatal(err)
		}
		return setup.RoundSymbols(s.Config, *s.Design), samples / s.Config.Link.SamplesPerSymbol
	}
	payload, one := symbols(1)
	more, many := symbols(65)
	t.Logf("%d symbols a group and attempt for one direction, %d for 65", one, many)
	if least := one + more - payload; more <= payload || many < least || many > least*11/10 {
		t.Errorf("65 directions take %d symbols, one takes %d", many, one)
	}
}
