package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy"
	"ringwave/radio"
	"ringwave/radio/virtual"
)

// withPacked gives the arguments of P directions.
func withPacked(p int, args ...string) []string {
	return append(slices.Clone(args), "--set", fmt.Sprintf("optimizer.packed_directions=%d", p))
}

// packedSession makes a session of P directions and its aggregator. P is set past the
// configuration's own checks, which know more than an aggregator does.
func packedSession(t *testing.T, path string, p int, set ...string) (*session, learner.Simulated) {
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
	t.Cleanup(func() { s.close() })
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

// weightsOf gives what an aggregator weights the devices' scalars with in round k, from
// the channel alone.
func weightsOf(t *testing.T, s *session, k int) []float64 {
	t.Helper()
	w := slices.Repeat([]float64{1}, s.cfg.Devices.Count)
	switch s.cfg.Experiment.Aggregator {
	case config.Digital, config.AirHE:
	case config.ZF, config.MMSE:
		g, err := ringGains(s.cfg, s.root, s.channel)
		if err != nil {
			t.Fatal(err)
		}
		g.Scaled(w, uint32(k), 0, int(phy.TxC0))
		for i := range w {
			w[i] /= g.Alpha()
		}
	default:
		copy(w, gainsOf(s.channel).Gains(k)) // all means are 1 here
	}
	return w
}

// Through every aggregator that carries scalars, over the same gains, each of P = 5 M_p
// is the sum of the weighted Delta f_p within six predicted deviations.
func TestEveryAggregatorCarriesPackedDirections(t *testing.T) {
	noData(t)
	const directions, rounds = 5, 4
	for _, system := range config.Systems() {
		name := system.Name
		if name == config.HEAirFed {
			continue // it sends gradients
		}
		set := []string{"experiment.aggregator=" + name, "devices.count=4", "encryption.delta_max=1"}
		s, packer := packedSession(t, fig4Config, directions, set...)
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
	noData(t)
	ideal := []string{"devices.count=4", "channel.std=0", "channel.analog_noise_std=0", "encryption.delta_max=1"}
	_, digital := packedSession(t, fig4Config, 6, append(ideal, "experiment.aggregator=digital")...)
	_, none := packedSession(t, fig4Config, 6, append(ideal, "experiment.aggregator=none")...)
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
	noData(t)
	for _, name := range []string{config.XMKCKKS, config.Digital, config.AirHE, config.ZF} {
		s, packer := packedSession(t, fig4Config, 3, "experiment.aggregator="+name, "devices.count=2", "encryption.delta_max=0.5")
		out, err := packer.Aggregate(t.Context(), 1, [][]float64{{0.6, -0.7, 0.4}, {0.1, 0.8, -0.4}})
		if err != nil || out.Clipped != 3 {
			t.Errorf("%s: %+v, %v; three messages are beyond %v", name, out, err, s.cfg.Encryption.DeltaMax)
		}
	}
}

// A run of P = 4 with key epochs, retries and skipped rounds gives the same metrics.csv
// on any number of cores and when it is killed and resumed.
func TestPackedRunIsTheSameResumedAndOnMoreCores(t *testing.T) {
	noData(t)
	for _, system := range [][]string{
		{"--set", "encryption.parameter_set=lean-2048", "--set", "encryption.key_epoch_rounds=11",
			"--set", "channel.drift=after-ciphertext", "--set", "channel.drift_std=0.1", "--set", "channel.drift_probability=0.6"},
		{"--set", "experiment.aggregator=none"},
		{"--set", "experiment.aggregator=stale-key"},
	} {
		args := withPacked(4, slices.Concat(small, system)...)
		whole := filepath.Join(t.TempDir(), "whole")
		before := runtime.GOMAXPROCS(1)
		stale := system[1] == "experiment.aggregator=stale-key"
		ended := map[bool]int{true: exitUnusable}[stale] // its loss grows without bound
		if status, _, stderr := run(t, append([]string{"run", loopbackConfig, "--out", whole}, args...)...); status != ended {
			t.Fatalf("%v: status %d: %s", system, status, stderr)
		}
		runtime.GOMAXPROCS(before)
		want := readFile(t, whole, runfolder.MetricsName)
		if !stale {
			checkReadNoise(t, whole)
		}

		dir := filepath.Join(t.TempDir(), "run")
		killed(t, dir, int64(len(want)/2), append([]string{"run", loopbackConfig, "--out", dir}, args...)...)
		if status, _, stderr := run(t, "run", "--resume", dir); status != ended {
			t.Fatalf("%v: resumed, status %d: %s", system, status, stderr)
		}
		if got := readFile(t, dir, runfolder.MetricsName); !bytes.Equal(got, want) {
			t.Errorf("%v: resumed, metrics.csv is another", system)
		}
	}
}

// One packed direction, said or not, is the same run.
func TestOnePackedDirectionIsTheDefault(t *testing.T) {
	noData(t)
	said, unsaid := filepath.Join(t.TempDir(), "said"), filepath.Join(t.TempDir(), "unsaid")
	mustRun(t, withPacked(1, append([]string{"run", loopbackConfig, "--out", said}, small...)...)...)
	mustRun(t, append([]string{"run", loopbackConfig, "--out", unsaid}, small...)...)
	if !bytes.Equal(readFile(t, said, runfolder.MetricsName), readFile(t, unsaid, runfolder.MetricsName)) {
		t.Error("metrics.csv differs")
	}
	if a, b := summaryOf(t, said), summaryOf(t, unsaid); a.UplinkBitsPerRound != b.UplinkBitsPerRound || a.UplinkBitsPerRound != 819800 {
		t.Errorf("uplink %d and %d bits", a.UplinkBitsPerRound, b.UplinkBitsPerRound)
	}
}

// Over the waveform P = 4 is carried in both forms, and the recordings give the same
// ring elements again.
func TestPackedOverTheWaveform(t *testing.T) {
	for _, form := range []string{"whole", "short"} {
		dir := filepath.Join(t.TempDir(), form)
		mustRun(t, withPacked(4, recorded("cf32_le", dir, "--set", "encryption.form="+form, "--set", "optimizer.rounds=3")...)...)
		checkReadNoise(t, dir)
		stdout, _ := mustRun(t, "replay", dir)
		if !strings.Contains(stdout, "agree") || strings.Contains(stdout, "(0 were read") {
			t.Errorf("%s form: replay says\n%s", form, stdout)
		}
	}
}

// checkReadNoise is checkNoise for runs some of whose rounds may be skipped.
func checkReadNoise(t *testing.T, dir string) {
	t.Helper()
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, r := range rows {
		if r.Skipped {
			continue
		}
		read++
		if !(math.Abs(r.Eps) < 6*r.EpsStdPredicted) {
			t.Errorf("round %d: eps = %v, six deviations are %v", r.Round, r.Eps, 6*r.EpsStdPredicted)
		}
	}
	if read == 0 {
		t.Error("no round was read")
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

// plan says what P directions take, and nothing of them where there is one.
func TestPlanOfPackedDirections(t *testing.T) {
	noData(t)
	bits := func(p int, more ...string) (plan, string) {
		args := withPacked(p, slices.Concat([]string{"plan", loopbackConfig}, small, more)...)
		text, _ := mustRun(t, args...)
		out, _ := mustRun(t, append(args, "--json")...)
		var got plan
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		return got, text
	}
	one, text := bits(1)
	if one.Packed != 0 || one.UplinkSymbols != 0 || strings.Contains(text, "packed") {
		t.Errorf("the plan of one direction speaks of packed ones:\n%s", text)
	}
	for _, p := range []int{4, 64} {
		got, text := bits(p)
		if want := 100 * 2 * (4096 + p + got.Witnesses); got.Packed != p || got.UplinkBits != want || got.AirtimeSeconds != airtime(want, got.BandwidthHz) {
			t.Errorf("P = %d: %+v, want %d bits", p, got, want)
		}
		if got.DecodedStd != one.DecodedStd || math.Abs(got.Rho*float64(p)/one.Rho-1) > 1e-9 {
			t.Errorf("P = %d: eps %v and rho %v, of one direction %v and %v", p, got.DecodedStd, got.Rho, one.DecodedStd, one.Rho)
		}
		wantAll(t, text, fmt.Sprintf("packed directions  %d in one ciphertext, 1.0", p))
	}
	if got, text := bits(16, "--set", "experiment.aggregator=none"); got.UplinkSymbols != 16 || !strings.Contains(text, "16: 16 symbols a round") {
		t.Errorf("%+v\n%s", got, text)
	}
	whole, _ := bits(64, "--set", "encryption.form=whole")
	if whole.UplinkBits != 1638400 {
		t.Errorf("the whole form of 64 directions takes %d bits", whole.UplinkBits)
	}
}

// The waveform's plan counts the symbols of the messages.
func TestWaveformPlanCountsMessages(t *testing.T) {
	noData(t)
	symbols := func(p int) int {
		s, _ := packedSession(t, "../../hw-configs/waveform-mnist.toml", p)
		want := roundDigits(s.cfg, *s.design) * 2 * (s.design.Params.N + p + s.design.Witnesses)
		if got := roundSymbols(s.cfg, *s.design); got != want {
			t.Errorf("P = %d: %d payload symbols, expected %d", p, got, want)
		}
		layout, err := roundLayout(s)
		if err != nil {
			t.Fatal(err)
		}
		return layout.Airtime() / s.cfg.Link.SamplesPerSymbol
	}
	one, many := symbols(1), symbols(65)
	t.Logf("%d symbols a group and attempt for one direction, %d for 65", one, many)
	s, _ := packedSession(t, "../../hw-configs/waveform-mnist.toml", 1)
	if least := one + 2*64*roundDigits(s.cfg, *s.design); many < least || many > least*11/10 {
		t.Errorf("65 directions take %d symbols, one takes %d", many, one)
	}
}

// Every wrong number of directions is one sentence with status 2, and no run folder is
// left.
func TestPackedRefusals(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"optimizer.packed_directions=0"}, "optimizer.packed_directions is 0"},
		{[]string{"optimizer.packed_directions=-4"}, "optimizer.packed_directions is -4"},
		{[]string{"optimizer.packed_directions=100000"}, "optimizer.packed_directions is 100000"},
		{[]string{"optimizer.packed_directions=1.5"}, "packed_directions"},
		{[]string{"optimizer.packed_directions=4096"}, "optimizer.packed_directions is 4096: no room in the ciphertext: parameter set ringwave-4096-100 has n = 4096 coefficients, too few for P = 4096 messages and W = 2: allowed are at most 4094"},
		{[]string{"optimizer.packed_directions=2048", "encryption.parameter_set=lean-2048"}, "optimizer.packed_directions is 2048: no room"},
		{[]string{"optimizer.packed_directions=60000", "experiment.aggregator=digital"}, "optimizer.packed_directions is 60000: no room"},
		{[]string{"optimizer.packed_directions=2", "experiment.aggregator=heairfed"}, "optimizer.packed_directions is 2"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		args := append([]string{"run", loopbackConfig, "--out", dir}, small...)
		for _, s := range c.sets {
			args = append(args, "--set", s)
		}
		status, _, stderr := run(t, args...)
		if status != exitBadInput || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: status %d, %q; expected is %q", c.sets, status, stderr, c.want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%v: there is a run folder: %v", c.sets, err)
		}
	}
}
