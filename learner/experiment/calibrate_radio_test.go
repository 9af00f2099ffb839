package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/sounder"
	"ringwave/crypto/round"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/intake"
	"ringwave/radio/loopback"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// airBench is a bench of radios whose gains the test sets: emulated boards, or memory
// with the boards' converters.
type airBench struct {
	devices  int
	set      []string // keys that name the radios
	registry setup.Registry
	noise    *slotNoise
	setGain  func(i int, at radio.SampleIndex, gain complex64) error

	bench  *virtual.Bench // nil for memory
	boards []*virtual.HackRF
	host   usb.Host
}

// airLevel is radio.level of airConfig.
const airLevel = 0.25

// memoryAir is the bench in memory.
func memoryAir(t testing.TB, devices int) *airBench {
	t.Helper()
	b := &airBench{devices: devices, noise: newSlotNoise(t, airNoise)}
	medium := loopback.Config{Name: "bench", Rate: 2e6, Noise: b.noise, Converter: experimenttest.ReceivingBoard{}, Window: 1 << 23}
	var uris []string
	for i := range devices {
		medium.Devices = append(medium.Devices, loopback.Device{Gain: airLevel, Path: sendingBoard{}})
		uris = append(uris, fmt.Sprintf("%q", fmt.Sprintf("loopback:bench?tx=%d", i)))
	}
	m, err := loopback.New(medium)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	memory, err := loopback.NewOpener(m)
	if err != nil {
		t.Fatal(err)
	}
	b.set = []string{"radio.transmitters=[" + strings.Join(uris, ", ") + "]", "radio.receiver=loopback:bench", "radio.clock=shared",
		"radio.trigger=none", "radio.transmit_gains_db=[]", "radio.receive_gains_db=[]"}
	b.registry = func(context.Context, radio.TransmitPermit) (*radio.Registry, error) {
		return radio.NewRegistry(map[string]radio.Opener{"loopback": steady{memory}})
	}
	b.setGain = m.SetGain
	return b
}

// boardsAir is emulated HackRFs on a bench in lock-step, with serials from first on.
// With phases each carrier has a phase of its own after each start, as real boards have.
func boardsAir(t testing.TB, devices, first int, phases bool) *airBench {
	t.Helper()
	b := benchedAir(t, devices, first, phases, "feed=strict", func(cfg *virtual.Config) {
		for i := range devices + 1 {
			cfg.Await = append(cfg.Await, i)
		}
	})
	b.set = append(b.set, "radio.trigger=lock-step")
	b.setGain = func(i int, at radio.SampleIndex, gain complex64) error { return b.bench.SetGain(i, devices, at, gain) }
	return b
}

// soundedAir is boardsAir whose streams begin when they begin, as those of several hosts, and
// go on by themselves. Gains stay as they are. The receiver's clock is off by so many ppm.
func soundedAir(t testing.TB, devices, first int, ppm float64) *airBench {
	t.Helper()
	// A small ring: time stands still soon after reads do, so that nothing is late.
	b := benchedAir(t, devices, first, true, "ring=4", func(cfg *virtual.Config) {
		cfg.Boards[devices].SamplePPM, cfg.Boards[devices].Reference = ppm, false
	})
	b.set = append(b.set, "radio.clock=shared", "radio.trigger=sounded", "radio.search_seconds=0.01")
	b.setGain = func(int, radio.SampleIndex, complex64) error { return nil }
	return b
}

// benchedAir is emulated HackRFs fed in a way, on a bench that is changed.
func benchedAir(t testing.TB, devices, first int, phases bool, feed string, change func(*virtual.Config)) *airBench {
	t.Helper()
	b := &airBench{devices: devices, noise: newSlotNoise(t, airNoise)}
	cfg := virtual.Config{Ears: []virtual.Ear{{Board: devices, Noise: b.noise}}}
	if phases {
		cfg.Phase = func(board int, turn uint64) loopback.Radians {
			return loopback.Radians(2 * math.Pi * rand.New(rand.NewPCG(uint64(board), turn)).Float64())
		}
	}
	var boards []virtual.Board
	var uris []string
	for i := range devices + 1 {
		serial := fmt.Sprintf("0000000000000000%016x", first+i)
		h, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial})
		if err != nil {
			t.Fatal(err)
		}
		b.boards, boards = append(b.boards, h), append(boards, h)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: h, Reference: true})
		if i < devices {
			cfg.Links = append(cfg.Links, virtual.Link{From: i, To: devices, Gain: airLevel})
		}
		uris = append(uris, fmt.Sprintf("%q", "hackrf:"+serial+"?hold=on&deadline_ms=0&limit_ms=0&transfer=16384&window=8388608&"+feed))
	}
	change(&cfg)
	var err error
	if b.bench, err = virtual.NewBench(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.bench.Close() })
	b.host = plugBoards(t, boards)
	b.set = []string{"radio.transmitters=[" + strings.Join(uris[:devices], ", ") + "]", "radio.receiver=" + strings.Trim(uris[devices], `"`)}
	b.registry = registryOn(b.host)
	return b
}

// await lets the boards' streams begin together again: time waits for all of them.
func (b *airBench) await() error {
	return awaitRestart(b.bench, b.boards)
}

// awaitRestart has the boards' streams begin together when all have ended.
func awaitRestart(bench *virtual.Bench, boards []*virtual.HackRF) error {
	all := make([]int, len(boards))
	for i := range all {
		all[i] = i
	}
	return bench.AwaitRestart(all...)
}

// few are short soundings: a block lasts 34,000 samples, and blocks stand where any
// bench can put them.
var few = []string{"calibration.blocks=40", "calibration.sessions=1", "calibration.looks=2", "calibration.round_seconds=0.02",
	"calibration.block_seconds=0.06", "calibration.offset_search_hz=200", "channel.std=0.1"}

func (b *airBench) config(t testing.TB, more ...string) config.Config {
	t.Helper()
	return airConfig(t, b.devices, 1, slices.Concat(b.set, few, more)...)
}

// sitting is a calibrator over the bench, and what came of it.
type sitting struct {
	*Calibration
	result CalibrationResult
}

// begin makes a folder for a calibration.
func (b *airBench) begin(t testing.TB, dir string, more ...string) *sitting {
	t.Helper()
	k, err := Lab{}.NewCalibration(b.config(t, more...), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.create(dir); err != nil {
		t.Fatal(err)
	}
	return &sitting{Calibration: k}
}

// goOn goes on in a folder.
func goOn(t testing.TB, dir string) *sitting {
	t.Helper()
	k, err := Lab{}.ResumeCalibration(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &sitting{Calibration: k}
}

// measure calibrates over the bench, with gains by block and look of its channel;
// onLook, if not nil, hears of each look first.
func (b *airBench) measure(ctx context.Context, s *sitting, onLook func(block int, at radio.SampleIndex) error) error {
	s.radios.Registry, s.patience = b.registry, boardPatience
	bench, err := s.openBench(ctx)
	if err != nil {
		return errors.Join(err, s.close())
	}
	ch, err := setup.NewChannel(s.Config, s.root.Derive("calibration"))
	if err != nil {
		return err
	}
	h := make([]float64, b.devices)
	bench.cfg.OnLook = func(block, look int, at radio.SampleIndex) error {
		if onLook != nil {
			if err := onLook(block, at); err != nil {
				return err
			}
		}
		b.noise.begin(slot.Slot{Round: uint32(block), Transmission: slot.Transmission(look)}, at)
		ch.Scaled(h, uint32(block+1), 0, look)
		for i := range h {
			if err := b.setGain(i, at, complex(float32(h[i]/ch.Alpha()*airLevel), 0)); err != nil {
				return err
			}
		}
		return nil
	}
	s.bench = bench
	return s.finish(ctx)
}

// finish calibrates in the folder, once there is a bench.
func (s *sitting) finish(ctx context.Context) (err error) {
	s.result, err = s.Run(ctx, "", CalibrationObserver{NoAdvice: true})
	return err
}

// calibrated calibrates over the bench.
func (b *airBench) calibrated(t testing.TB, dir string, more ...string) calibration.File {
	t.Helper()
	s := b.begin(t, dir, more...)
	if err := b.measure(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	return experimenttest.CalibrationIn(t, dir)
}

// ofRecording measures a recorded calibration.
func ofRecording(t testing.TB, c config.Config, recorded, dir string) calibration.File {
	t.Helper()
	k, err := Lab{}.NewCalibration(c, recorded)
	if err != nil {
		t.Fatal(err)
	}
	s := &sitting{Calibration: k}
	if err := k.create(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	return experimenttest.CalibrationIn(t, dir)
}

// The same soundings through memory, a recording of it, emulated boards with drivers and
// USB, and a recording of these give the same file.
func TestCalibrationIsTheSameOverAll(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	memory, boards := memoryAir(t, 2), boardsAir(t, 2, 0x0c0a, false)
	want := memory.calibrated(t, in("memory"), "link.record=cf32_le")
	if d := want.Devices[0]; math.Abs(d.Mu.Value-airLevel) > 0.02 || d.Soundings != 80 || d.Sigma.Low <= 0 {
		t.Errorf("mu = %v, sigma = %v, %d soundings", d.Mu, d.Sigma, d.Soundings)
	}
	experimenttest.WantSameCalibration(t, "recording of memory", want, ofRecording(t, memory.config(t, "link.record=cf32_le"), in("memory"), in("memory-again")))
	experimenttest.WantSameCalibration(t, "boards", want, boards.calibrated(t, in("boards"), "link.record=cf32_le"))
	experimenttest.WantSameCalibration(t, "recording of boards", want, ofRecording(t, boards.config(t, "link.record=cf32_le"), in("boards"), in("boards-again")))
	if a, b := experimenttest.ReadFile(t, in("memory"), "gains-1.npy"), experimenttest.ReadFile(t, in("boards"), "gains-1.npy"); !bytes.Equal(a, b) {
		t.Error("the gains differ")
	}
}

// silent tells that no board transmits but those that are unplugged.
func (b *airBench) silent(t *testing.T, unplugged ...int) {
	t.Helper()
	for i, h := range b.boards {
		if !slices.Contains(unplugged, i) && h.Settings().Mode == virtual.ModeTransmit {
			t.Errorf("board %d still transmits", i)
		}
	}
}

// Ctrl-C takes carriers off at once, and the calibration goes on in a new session of
// streams, whose phases are others.
func TestCalibrationOverRadiosGoesOn(t *testing.T) {
	b := boardsAir(t, 2, 0x0c0a, true)
	dir := filepath.Join(t.TempDir(), "c")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s := b.begin(t, dir)
	err := b.measure(ctx, s, func(block int, _ radio.SampleIndex) error {
		if block == 22 {
			interrupt()
		}
		return nil
	})
	if !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	if s.result.Dir != dir || !s.result.GoesOn || s.result.Blocks < 16 {
		t.Errorf("it says %+v", s.result)
	}
	b.silent(t)
	if err := b.await(); err != nil {
		t.Fatal(err)
	}
	again := goOn(t, dir)
	done := len(again.blocks)
	if done < 16 || done > 22 {
		t.Errorf("%d blocks were kept", done)
	}
	began := radio.SampleIndex(-1)
	err = b.measure(t.Context(), again, func(_ int, at radio.SampleIndex) error {
		if began < 0 {
			began = at
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.silent(t)
	if began > radio.SampleIndex(2*again.bench.cfg.BlockSamples()) {
		t.Errorf("the new session's first block was at sample %d: earlier blocks were waited for", began)
	}
	f := experimenttest.CalibrationIn(t, dir)
	for _, d := range f.Devices {
		if d.Soundings != 80 || len(d.PhasePerSessionRad) != 2 || d.PhaseLasts == nil || *d.PhaseLasts {
			t.Errorf("device %d: %d soundings, phases %v", d.Index, d.Soundings, d.PhasePerSessionRad)
		}
		if math.Abs(d.Mu.Value-airLevel) > 0.02 {
			t.Errorf("device %d: mu = %v", d.Index, d.Mu)
		}
	}
}

// A board that is unplugged ends the sitting with a sentence, and the calibration goes
// on once it is back.
func TestCalibrationAfterAnUnplug(t *testing.T) {
	b := boardsAir(t, 2, 0x0c0a, true)
	dir := filepath.Join(t.TempDir(), "c")
	s := b.begin(t, dir)
	err := b.measure(t.Context(), s, func(block int, _ radio.SampleIndex) error {
		if block == 25 {
			b.boards[1].Unplug()
		}
		return nil
	})
	if err == nil || !errors.Is(err, usb.ErrUnplugged) || !s.result.GoesOn || s.result.Dir != dir || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	b.silent(t, 1)
	if _, err := os.Stat(filepath.Join(dir, runfolder.CalibrationName)); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
	b = boardsAir(t, 2, 0x0c0a, true)
	again := goOn(t, dir)
	if err := b.measure(t.Context(), again, nil); err != nil {
		t.Fatal(err)
	}
	if d := experimenttest.CalibrationIn(t, dir).Devices[1]; d.Soundings != 80 {
		t.Errorf("%d soundings", d.Soundings)
	}
}

// A receiver that stands still does not hang a calibration, and it is said what to raise.
func TestCalibrationOutOfReach(t *testing.T) {
	b := boardsAir(t, 2, 0x0c0a, false)
	s := b.begin(t, filepath.Join(t.TempDir(), "c"))
	err := b.measure(t.Context(), s, func(block int, at radio.SampleIndex) error {
		if block == 20 {
			return b.boards[2].Lose(at+100, 4_000_000)
		}
		return nil
	})
	if !errors.Is(err, sounder.ErrStalled) || !intake.IsUserError(err) || !strings.Contains(err.Error(), "raise radio.search_seconds, which is 0") {
		t.Errorf("%v", err)
	}
	b.silent(t)
}

// Losses cost blocks: a loss whose length is not known begins new streams, and the
// rest is as it was.
func TestCalibrationAfterALoss(t *testing.T) {
	b := boardsAir(t, 2, 0x0c0a, true)
	dir := filepath.Join(t.TempDir(), "c")
	s := b.begin(t, dir)
	lost := map[int]bool{}
	err := b.measure(t.Context(), s, func(block int, at radio.SampleIndex) error {
		if block != 3 && block != 25 || lost[block] {
			return nil
		}
		lost[block] = true
		return errors.Join(b.boards[0].Lose(at+3000, 500), b.await())
	})
	if err != nil {
		t.Fatal(err)
	}
	d := experimenttest.CalibrationIn(t, dir).Devices[0]
	if d.Missed != 4 || len(d.PhasePerSessionRad) < 3 || len(lost) != 2 {
		t.Errorf("%d soundings missed, phases %v", d.Missed, d.PhasePerSessionRad)
	}
}

// By default looks over radios stand where a round's transmissions would: the link's own
// frames at its rate, and a lead each.
func TestLooksSpanARound(t *testing.T) {
	c, err := config.Load(experimenttest.VirtualBenchConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Lab{}.NewCalibration(c, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	design, err := setup.NewDesign(c, s.Channel)
	if err != nil {
		t.Fatal(err)
	}
	// L digits of 2n + 2(1 + witnesses) coefficients and their linear checks, at 8
	// samples, are nearly all of it.
	digits := float64(setup.RoundSymbols(c, design)) * 8 / 2e6
	got := k.Config.Calibration.RoundSeconds - 4*c.Radio.LeadSeconds
	if got < digits || got > 1.05*digits {
		t.Errorf("a round takes %v s on the air, and its digits %v s", got, digits)
	}
	c.Calibration.RoundSeconds = 0.5
	if k, err = (Lab{}).NewCalibration(c, ""); err != nil || k.Config.Calibration.RoundSeconds != 0.5 {
		t.Errorf("0.5 s became %v: %v", k.Config.Calibration.RoundSeconds, err)
	}
}

// run is a run over the bench that goes by a calibration file.
func (b *airBench) run(t testing.TB, rounds int, file string, more ...string) *airRun {
	t.Helper()
	c := airConfig(t, b.devices, rounds, slices.Concat(b.set, []string{"channel.std=0.02", "calibration.offset_search_hz=200", "calibration.file=" + file}, more)...)
	r := newAirRun(t, t.Context(), c, b.noise, b.registry, b.setGain)
	r.bench = b.bench
	return r
}

// Real boards have new phases in each session of streams. The quick calibration at its
// start finds them, and blind and mean-aligned runs are read.
func TestRunByACalibrationOverRadios(t *testing.T) {
	rounds, counts := 8, []int{3}
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds, counts = 200, []int{2, 3}
	}
	for _, devices := range counts {
		dir := filepath.Join(t.TempDir(), "c")
		f := boardsAir(t, devices, 0x0c0a, true).calibrated(t, dir, "channel.std=0.02", "calibration.sessions=1")
		for _, regime := range []string{"blind", "mean-aligned"} {
			t.Run(fmt.Sprintf("N=%d, %s", devices, regime), func(t *testing.T) {
				b := boardsAir(t, devices, 0x0c0a, true)
				// Other phases than those of the calibration's session.
				b.turnTwice(t)
				r := b.run(t, rounds, filepath.Join(dir, runfolder.CalibrationName), "link.regime="+regime)
				k := r.s.known
				if !k.Quick {
					t.Error("the file's phases were taken")
				}
				apart := 0.0
				for i := range k.Means {
					apart = max(apart, math.Abs(math.Remainder(cmplx.Phase(k.Means[i])-f.Devices[i].PhaseRad.Value, 2*math.Pi)))
				}
				if apart < 0.1 {
					t.Errorf("the phases are those of the file, to %.3f rad", apart)
				}
				read, atOnce := 0, 0
				for range rounds {
					r.step(t)
				}
				for _, rec := range r.records {
					if !rec.Skipped {
						read++
						if rec.Attempts == 1 {
							atOnce++
						}
					}
				}
				if float64(read) < 0.95*float64(rounds) {
					t.Errorf("%d of %d rounds were read", read, rounds)
				}
				t.Logf("N = %d, %s: %d of %d rounds read, %d at once", devices, regime, read, rounds, atOnce)
			})
		}
	}
}

// Boards without trigger wires that begin at different times, with new phases each time, are
// brought to one index by soundings, calibrated, and read in a run by the calibration, though
// the receiver's clock runs apart from theirs and all begin anew in between.
func TestSoundedStart(t *testing.T) {
	const devices, rounds = 3, 4
	dir := filepath.Join(t.TempDir(), "c")
	set := []string{"channel.std=0.02", "calibration.sessions=2", "calibration.blocks=32"}
	f := soundedAir(t, devices, 0x0c0a, 20).calibrated(t, dir, set...)
	for _, d := range f.Devices {
		if math.Abs(d.Mu.Value-airLevel) > 0.02 || d.Missed > 0 || len(d.PhasePerSessionRad) != 2 || math.Abs(d.DelaySamples.Value) > 1 {
			t.Errorf("device %d: mu = %v, a delay of %v, %d missed, phases %v", d.Index, d.Mu, d.DelaySamples, d.Missed, d.PhasePerSessionRad)
		}
	}
	b := soundedAir(t, devices, 0x0c0a, 20)
	r := b.run(t, rounds, filepath.Join(dir, runfolder.CalibrationName), "link.regime=mean-aligned")
	begun, before := r.link.Radios.Offsets(), r.link.Transmitters[0]
	begin, lost := r.link.OnAir, false
	r.link.OnAir = func(s slot.Slot, at radio.SampleIndex) error {
		if s.Round == 2 && s.Transmission == slot.TxC1 && !lost {
			lost = true
			if err := b.boards[0].Lose(at-begun[0]+3000, 500); err != nil {
				return err
			}
		}
		return begin(s, at)
	}
	read := 0
	for range rounds {
		if r.step(t); !r.records[len(r.records)-1].Skipped {
			read++
		}
	}
	if read < rounds {
		t.Errorf("%d of %d rounds were read", read, rounds)
	}
	if !lost || r.link.Transmitters[0] == before {
		t.Error("the streams were not opened anew")
	}
}

// turnTwice opens and closes the boards' streams, which gives them new phases.
func (b *airBench) turnTwice(t testing.TB) {
	t.Helper()
	a, _, err := (setup.Radios{Registry: b.registry}).Open(t.Context(), b.config(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Start(t.Context()), a.Close(), b.await()); err != nil {
		t.Fatal(err)
	}
}

// A transmitter that loses count in the middle of a run has all streams begin anew, with
// new phases: they are found again, and the round is read after all.
func TestRemeasureAfterALoss(t *testing.T) {
	const devices = 2
	dir := filepath.Join(t.TempDir(), "c")
	boardsAir(t, devices, 0x0c0a, true).calibrated(t, dir, "channel.std=0.02")
	for _, regime := range []string{"blind", "mean-aligned"} {
		t.Run(regime, func(t *testing.T) {
			b := boardsAir(t, devices, 0x0c0a, true)
			r := b.run(t, 6, filepath.Join(dir, runfolder.CalibrationName), "link.regime="+regime)
			before := slices.Clone(r.s.known.Means)
			begin, lost := r.link.OnAir, false
			r.link.OnAir = func(s slot.Slot, at radio.SampleIndex) error {
				if s.Round == 3 && s.Transmission == slot.TxC1 && !lost {
					lost = true
					if err := errors.Join(b.boards[0].Lose(at+3000, 500), b.await()); err != nil {
						return err
					}
				}
				return begin(s, at)
			}
			var reasons []string
			r.s.protocol.failed = func(_ int, f round.Failure) { reasons = append(reasons, f.Reason) }
			for range 6 {
				r.step(t)
			}
			if !slices.ContainsFunc(reasons, func(s string) bool { return strings.Contains(s, "device 1 had an underrun") }) {
				t.Errorf("attempts were void because %q", reasons)
			}
			if n := r.s.Trainer.State().Skipped; n > 0 {
				t.Errorf("%d of 6 rounds were skipped: %q", n, reasons)
			}
			for i, m := range r.s.known.Means {
				if math.Abs(math.Remainder(cmplx.Phase(m)-cmplx.Phase(before[i]), 2*math.Pi)) < 1e-3 {
					t.Errorf("device %d has the phase of before", i+1)
				}
			}
		})
	}
}

// A file that does not speak of these radios is refused in a sentence, before anything is
// sent.
func TestRunRefusesAnotherBenchsCalibration(t *testing.T) {
	const devices = 2
	dir := filepath.Join(t.TempDir(), "c")
	f := boardsAir(t, devices, 0x0c0a, true).calibrated(t, dir, "channel.std=0.02")
	path := filepath.Join(dir, runfolder.CalibrationName)
	old := f
	old.Created, old.ValidUntil = f.Created.Add(-48*time.Hour), f.Created.Add(-24*time.Hour)
	expired := filepath.Join(dir, "expired.toml")
	if err := os.WriteFile(expired, old.Text(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		first      int
		set        []string
		want       string
	}{
		{"other boards", path, 0x0d0a, nil, "serial is"},
		{"a board moved to another device", path, 0x0c0b, nil, "serial is"},
		{"another gain", path, 0x0c0a, []string{`radio.receive_gains_db=["amp=0", "lna=16", "vga=20"]`}, "bench.receive_gains_db.lna is 8 dB, and on the bench now 16 dB: set it back"},
		{"another frequency", path, 0x0c0a, []string{"radio.frequency_hz=434e6"}, "bench.frequency_hz is 4.3392e+08, and on the bench now 4.34e+08: set it back"},
		{"another rate", path, 0x0c0a, []string{"link.sample_rate_hz=4e6", "radio.band_hz=[431e6, 437e6]"}, "bench.sample_rate_hz is 2e+06, and on the bench now 4e+06: set it back"},
		{"an expired one", expired, 0x0c0a, nil, "valid_until is"},
		{"phases, where none may be measured", path, 0x0c0a, []string{"calibration.quick_blocks=0"}, "calibration.quick_blocks is 0, which forbids that"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := boardsAir(t, devices, c.first, true)
			cfg := airConfig(t, devices, 1, slices.Concat(b.set, []string{"calibration.file=" + c.path}, c.set)...)
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			s.lab.Radios.Registry, s.patience = b.registry, boardPatience
			defer s.abandon()
			err = s.create(t.Context(), filepath.Join(t.TempDir(), "run"))
			if err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), c.path) {
				t.Errorf("%v", err)
			}
			for i, h := range b.boards {
				if slices.ContainsFunc(h.Transcript(), func(r virtual.Request) bool { return r.Setup.Request == 1 && r.Setup.Value != 0 }) {
					t.Errorf("board %d was told to stream", i)
				}
			}
		})
	}
}

// A link that is not what the file says is told from one that only has another phase.
func TestQuickCalibrationOfAChangedLink(t *testing.T) {
	const devices = 2
	dir := filepath.Join(t.TempDir(), "c")
	boardsAir(t, devices, 0x0c0a, true).calibrated(t, dir, "channel.std=0.02")
	b := boardsAir(t, devices, 0x0c0a, true)
	if err := b.setGain(1, 0, airLevel/2); err != nil {
		t.Fatal(err)
	}
	c := airConfig(t, devices, 1, slices.Concat(b.set, []string{"calibration.file=" + filepath.Join(dir, runfolder.CalibrationName)})...)
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.lab.Radios.Registry, s.patience = b.registry, boardPatience
	defer s.abandon()
	if err := s.create(t.Context(), filepath.Join(t.TempDir(), "run")); err == nil || !strings.Contains(err.Error(), "mu of device 2 is") || !strings.Contains(err.Error(), "calibrate this bench") {
		t.Errorf("%v", err)
	}
	b.silent(t)
}
