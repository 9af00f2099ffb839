package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/boards"
	"ringwave/radio/intake"
	"ringwave/radio/loopback"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// plugBoards plugs boards into a host for the test: one in this process, or the
// machine's libusb in builds that have it.
var plugBoards = func(_ testing.TB, boards []virtual.Board) usb.Host { return virtual.NewHost(boards...) }

// slotNoise is a receiver's noise that restarts with each transmission, by the index
// at which that may begin: none before the first.
type slotNoise struct {
	front *channel.Front

	mu    sync.Mutex
	steps []noiseStep
	on    bool
}

type noiseStep struct {
	at          int64
	round, part uint32
}

func (n *slotNoise) begin(s slot.Slot, at radio.SampleIndex) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.steps = append(n.steps, noiseStep{int64(at), s.Round, s.Attempt*slot.Transmissions + uint32(s.Transmission)})
}

// Add is loopback.Noise, and virtual's.
func (n *slotNoise) Add(dst []complex64, first int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(dst) > 0 {
		k := len(dst)
		if len(n.steps) > 0 {
			k = int(min(int64(k), max(0, n.steps[0].at-first)))
		}
		if n.on {
			n.front.Apply(dst[:k])
		}
		dst, first = dst[k:], first+int64(k)
		if len(n.steps) > 0 && n.steps[0].at <= first {
			n.front.Start(n.steps[0].round, n.steps[0].part)
			n.steps, n.on = n.steps[1:], true
		}
	}
}

// The two ends of a HackRF as the emulation and the driver have them together: 8 bits
// of full scale 128 on the board, 127 in the driver.
type sendingBoard struct{}

// Apply is loopback.Path.
func (sendingBoard) Apply(dst, src []complex64, _ int64) {
	code := func(x float32) float32 { return float32(math.RoundToEven(float64(x*127))) / 128 }
	for k, x := range src {
		dst[k] = complex(code(real(x)), code(imag(x)))
	}
}

// airRun is a session over radios whose gains the test sets, and what it received.
type airRun struct {
	s       *Experiment
	link    *uplink.Waveform
	noise   *slotNoise
	setGain func(i int, at radio.SampleIndex, gain complex64) error
	h       []float64
	bench   *virtual.Bench // nil for memory

	elements []string // of each transmission: the slot, and what was received
	records  []learner.Record
}

// airConfig is a run over radios whose secrets come from the seed, so that two runs
// send the same.
func airConfig(t testing.TB, devices, rounds int, more ...string) config.Config {
	t.Helper()
	set := append([]string{
		fmt.Sprintf("devices.count=%d", devices), fmt.Sprintf("optimizer.rounds=%d", rounds),
		"channel.mean_per_device=[]", "channel.std=0.3", "radio.level=0.25", "radio.search_seconds=0",
		"encryption.randomness=seed", "radio.secrets_from_seed=true", "encryption.attempts_per_round=6",
	}, more...)
	if os.Getenv("RINGWAVE_LONG") == "" {
		set = append(set, "task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300")
	}
	c, err := config.Load(experimenttest.VirtualBenchConfig, set)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newAirRun connects a session by devices; setGain is for its harness.
func newAirRun(t testing.TB, ctx context.Context, c config.Config, noise *slotNoise, devices setup.Registry, setGain func(i int, at radio.SampleIndex, gain complex64) error) *airRun {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &airRun{s: s, noise: noise, setGain: setGain, h: make([]float64, c.Devices.Count)}
	s.lab.Radios.Registry, s.patience = devices, boardPatience
	if err := s.assemble(xmkckks.NewLedger(setup.SharesPerKey(c)), 0, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.protocol.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.connect(ctx); err != nil {
		t.Fatal(err)
	}
	r.link = s.protocol.waveform
	r.link.OnAir, r.link.OnReception = r.begin, r.received
	return r
}

// begin sets the gains of a transmission, and its noise.
func (r *airRun) begin(s slot.Slot, at radio.SampleIndex) error {
	r.noise.begin(s, at)
	r.s.Channel.Scaled(r.h, s.Round, s.Attempt, int(s.Transmission))
	for i := range r.h {
		gain := r.h[i] / r.s.Channel.Alpha() * setup.RadioLevel(r.s.Config)
		if err := r.setGain(i, at, complex(float32(gain), 0)); err != nil {
			return err
		}
	}
	return nil
}

func (r *airRun) received(s slot.Slot, rx *phy.Reception) {
	what := "void"
	if rx.CheckPassed {
		what = uplink.ElementsDigest(rx.Y)
	}
	r.elements = append(r.elements, fmt.Sprintf("round %d, attempt %d, %v: %s", s.Round, s.Attempt, s.Transmission, what))
}

// step carries the next round.
func (r *airRun) step(t testing.TB) {
	t.Helper()
	record, err := r.s.Trainer.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.records = append(r.records, record)
}

func newSlotNoise(t testing.TB, std float64) *slotNoise {
	front, err := channel.NewFront(channel.Impairments{}, std, 1, keystream.FromInteger(31))
	if err != nil {
		t.Fatal(err)
	}
	return &slotNoise{front: front}
}

// steady opens ends of a medium whose phases stay when they are tuned, as those of the
// emulated bench do unless it is told otherwise.
type steady struct{ radio.Opener }

func (o steady) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	d, err := o.Opener.Open(ctx, u)
	switch d := d.(type) {
	case transmittingEnd:
		return &struct {
			transmittingEnd
			*tuning
		}{d, &tuning{}}, err
	case receivingEnd:
		return &struct {
			receivingEnd
			*tuning
		}{d, &tuning{}}, err
	}
	return nil, err
}

// The ends of a medium, but for their tuning.
type transmittingEnd interface {
	radio.Device
	radio.RateControl
	radio.TimeControl
	radio.TransmitOpener
}

type receivingEnd interface {
	radio.Device
	radio.RateControl
	radio.ReceiveOpener
}

type tuning struct{ carrier radio.Hertz }

func (*tuning) Frequencies(radio.Direction) radio.Span[radio.Hertz] {
	return radio.Span[radio.Hertz]{Max: 1e12}
}

func (c *tuning) Frequency(radio.Direction) radio.Hertz { return c.carrier }

func (c *tuning) SetFrequency(_ context.Context, _ radio.Direction, f radio.Hertz) (radio.Hertz, error) {
	c.carrier = f
	return f, nil
}

// boardPatience is how long boards of these tests may stand still.
const boardPatience = 3 * time.Second

// airNoise is a sample's, of full scale: enough to dither the converters.
const airNoise = 0.003

// overLoopback is a run through memory with the boards' converters.
func overLoopback(t testing.TB, devices, rounds int, set ...string) *airRun {
	t.Helper()
	return overEnds(t, devices, rounds, func(ends radio.Opener) radio.Opener { return ends }, set...)
}

// overEnds is overLoopback with other ends of the medium than its own.
func overEnds(t testing.TB, devices, rounds int, of func(ends radio.Opener) radio.Opener, set ...string) *airRun {
	t.Helper()
	noise := newSlotNoise(t, airNoise)
	medium := loopback.Config{Name: "bench", Rate: 2e6, Noise: noise, Converter: experimenttest.ReceivingBoard{}, Window: 1 << 23}
	more := `radio.transmitters=[`
	for i := range devices {
		medium.Devices = append(medium.Devices, loopback.Device{Gain: 1, Path: sendingBoard{}})
		more += fmt.Sprintf("%q, ", fmt.Sprintf("loopback:bench?tx=%d", i))
	}
	m, err := loopback.New(medium)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	c := airConfig(t, devices, rounds, append([]string{more + "]", "radio.receiver=loopback:bench", "radio.clock=shared", "radio.trigger=none",
		"radio.transmit_gains_db=[]", "radio.receive_gains_db=[]"}, set...)...)
	memory, err := loopback.NewOpener(m)
	if err != nil {
		t.Fatal(err)
	}
	registry := func(context.Context, radio.TransmitPermit) (*radio.Registry, error) {
		return radio.NewRegistry(map[string]radio.Opener{"loopback": of(steady{memory})})
	}
	return newAirRun(t, context.Background(), c, noise, registry, m.SetGain)
}

// overBoards is a run over emulated HackRFs on a bench in lock-step.
func overBoards(t testing.TB, devices, rounds int) *airRun {
	t.Helper()
	r, _ := boardsUnder(t, context.Background(), devices, rounds)
	return r
}

// registryOn makes the registry of a host's boards, under a guard in this process.
func registryOn(host usb.Host) setup.Registry {
	return func(session context.Context, permit radio.TransmitPermit) (*radio.Registry, error) {
		return boards.NewRegistry(session, boards.Config{USB: host, Permit: permit, Guard: virtual.NewGuard()})
	}
}

// boardsUnder is overBoards for a session that ends with ctx.
func boardsUnder(t testing.TB, ctx context.Context, devices, rounds int) (*airRun, []*virtual.HackRF) {
	t.Helper()
	var all []*virtual.HackRF
	noise := newSlotNoise(t, airNoise)
	cfg := virtual.Config{Ears: []virtual.Ear{{Board: devices, Noise: noise}}}
	var boards []virtual.Board
	var uris []string
	for i := range devices + 1 {
		serial := fmt.Sprintf("0000000000000000%016x", 0x0b0a+i)
		h, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial})
		if err != nil {
			t.Fatal(err)
		}
		all, boards = append(all, h), append(boards, h)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: h, Reference: true})
		cfg.Await = append(cfg.Await, i)
		if i < devices {
			cfg.Links = append(cfg.Links, virtual.Link{From: i, To: devices, Gain: 1})
		}
		uris = append(uris, "hackrf:"+serial+"?hold=on&deadline_ms=0&limit_ms=0&feed=strict&transfer=16384&window=8388608")
	}
	bench, err := virtual.NewBench(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Close() })
	host := plugBoards(t, boards)
	more := `radio.transmitters=[`
	for _, u := range uris[:devices] {
		more += fmt.Sprintf("%q, ", u)
	}
	c := airConfig(t, devices, rounds, more+"]", "radio.receiver="+uris[devices], "radio.trigger=lock-step")
	registry := registryOn(host)
	r := newAirRun(t, ctx, c, noise, registry, func(i int, at radio.SampleIndex, gain complex64) error {
		return bench.SetGain(i, devices, at, gain)
	})
	r.bench = bench
	return r, all
}

// A whole encrypted run over emulated boards, through driver and USB, receives the
// same ring elements as one through memory with the same seeds, converters and noise,
// and so learns the same, to the bit.
func TestRunOverBoardsIsTheRunOverLoopback(t *testing.T) {
	rounds := 3
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 400
	}
	for _, devices := range []int{2, 3} {
		t.Run(fmt.Sprintf("N=%d", devices), func(t *testing.T) {
			memory, boards := overLoopback(t, devices, rounds), overBoards(t, devices, rounds)
			read := 0
			for k := range rounds {
				memory.step(t)
				boards.step(t)
				if !slices.Equal(memory.elements, boards.elements) {
					t.Fatalf("round %d: through memory %v, over boards %v", k+1, memory.elements, boards.elements)
				}
				a, b := memory.records[k], boards.records[k]
				if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
					t.Fatalf("round %d: through memory %+v, over boards %+v", k+1, a, b)
				}
				if !b.Skipped {
					read++
				}
				memory.elements, boards.elements = memory.elements[:0], boards.elements[:0]
			}
			state := boards.s.Trainer.State()
			if read < (rounds+1)/2 {
				t.Errorf("%d of %d rounds were read", read, rounds)
			}
			if !slices.Equal(state.Theta, memory.s.Trainer.State().Theta) {
				t.Error("the models differ")
			}
			t.Logf("N = %d: %d of %d rounds read, %d repeated, %d skipped, test accuracy %.4f", devices, read, rounds, state.Repeated, state.Skipped, boards.records[rounds-1].TestAccuracy)
		})
	}
}

// A transmitter's board that loses samples makes the attempt void; all streams begin
// anew, from one start, and the round is read after all.
func TestRunGoesOnAfterALoss(t *testing.T) {
	const devices = 2
	r, boards := boardsUnder(t, context.Background(), devices, 4)
	begin, lost := r.link.OnAir, false
	r.link.OnAir = func(s slot.Slot, at radio.SampleIndex) error {
		if s.Transmission == slot.TxC1 && !lost {
			lost = true
			if err := errors.Join(boards[0].Lose(at+3000, 500), awaitRestart(r.bench, boards)); err != nil {
				return err
			}
		}
		return begin(s, at)
	}
	var reasons []string
	r.s.protocol.failed = func(_ int, f round.Failure) { reasons = append(reasons, f.Reason) }
	before := r.link.Transmitters[0]
	for range 4 {
		r.step(t)
	}
	if !slices.ContainsFunc(reasons, func(s string) bool { return strings.Contains(s, "device 1 had an underrun") }) {
		t.Errorf("attempts were void because %q", reasons)
	}
	if r.link.Transmitters[0] == before || before.State() != radio.Closed {
		t.Error("the streams were not opened anew")
	}
	if n := r.s.Trainer.State().Skipped; n > 1 {
		t.Errorf("%d of 4 rounds were skipped: %q", n, reasons)
	}
}

// A receiver that falls behind the transmitters by more than it is looked for waits for
// samples that nobody sends, on a bench whose time waits: the run ends, the carriers
// are off, and it is said what to raise.
func TestRunEndsOutOfReach(t *testing.T) {
	const devices = 2
	r, boards := boardsUnder(t, context.Background(), devices, 4)
	begin, lost := r.link.OnAir, false
	r.link.OnAir = func(s slot.Slot, at radio.SampleIndex) error {
		if s.Transmission == slot.TxC1 && !lost {
			lost = true
			if err := boards[devices].Lose(at+3000, 400_000); err != nil {
				return err
			}
		}
		return begin(s, at)
	}
	err := r.s.train(t.Context(), func(learner.Record) {})
	if !errors.Is(err, phy.ErrStalled) || !intake.IsUserError(err) || !strings.Contains(err.Error(), "raise radio.search_seconds, which is 0") {
		t.Error(err)
	}
	if !lost {
		t.Error("nothing was lost")
	}
	if err := r.link.Radios.Close(); err != nil {
		t.Error(err)
	}
	for i, b := range boards[:devices] {
		if b.Settings().Mode == virtual.ModeTransmit {
			t.Errorf("board %d still transmits", i)
		}
	}
}
