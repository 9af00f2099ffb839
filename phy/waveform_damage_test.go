package phy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringwave/phy/channel"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
	"ringwave/radio/loopback"
)

// spoiler changes what a receiver gives from index from to before end.
type spoiler struct {
	radio.Receiver
	from, end radio.SampleIndex
	change    func(x complex64) complex64
	changeAt  func(i radio.SampleIndex, x complex64) complex64 // elsewhere, if not nil
}

func (s *spoiler) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	n, meta, err := s.Receiver.Read(ctx, dst)
	return s.spoil(dst, n, meta, err)
}

func (s *spoiler) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n, meta, err := radio.ReadUntil(ctx, s.Receiver, dst, until)
	return s.spoil(dst, n, meta, err)
}

func (s *spoiler) spoil(dst []complex64, n int, meta radio.Meta, err error) (int, radio.Meta, error) {
	for k := range dst[:n] {
		if i := meta.Index(k); i >= s.from && i < s.end {
			dst[k] = s.change(dst[k])
		} else if s.changeAt != nil {
			dst[k] = s.changeAt(i, dst[k])
		}
	}
	return n, meta, err
}

// bench is a link that is to be damaged: two devices at 50 dB whose rounds are all
// read when nothing is done to them.
type bench struct {
	*air
	w      *Waveform
	m      *zq.Modulus
	source *spoiler
	// bent is a transmission of round 1 whose gains the harm changes: clipping may
	// leave a linear map of the digits, one without the weaker device.
	bent slot.Transmission
	// harm, if not nil, is called before each transmission.
	harm func(s slot.Slot, at radio.SampleIndex)
	rnd  *rand.Rand
}

func newBench(t testing.TB, change func(*WaveformConfig)) *bench {
	b := &bench{air: newAir(t, 2, scene{sigma: 0.3, bits: -1, noiseStd: noiseFor(flatTop, 50)}), m: newModulus(t, 0x7fff801), source: &spoiler{}, bent: -1, rnd: rand.New(rand.NewPCG(10, 10))}
	b.w = newWaveform(t, b.air, b.m, func(c *WaveformConfig) {
		b.source.Receiver = c.Receiver
		c.Receiver = b.source
		c.Lattice.MaxAlpha = 40 // the program's default
		c.OnTransmission = func(ctx context.Context, s slot.Slot, at radio.SampleIndex) error {
			if b.harm != nil {
				b.harm(s, at)
			}
			return b.set(ctx, s, at)
		}
		if change != nil {
			change(c)
		}
	})
	return b
}

var benchLengths = [slot.Transmissions]int{100, 80, 100, 80}

// round carries a round; whatever passes its check must be the superposition.
func (b *bench) round(t *testing.T, k uint32) verdict {
	t.Helper()
	return attemptOf(t, b.w, b.m, k, 0, benchLengths, b.rnd, func(tr slot.Transmission, x []zq.Vector, rx *Reception) {
		b.w.Scaled(b.scaled, b.h)
		if k == 1 && tr == b.bent {
			return
		}
		if !rx.Y.Equal(superposition(b.m, b.scaled, x)) {
			t.Errorf("round %d, %v: accepted, and not the superposition with H = %v", k, tr, b.scaled)
		}
	})
}

// frame returns the samples of a frame, and where its payload begins.
func (b *bench) frame(t testing.TB, tr slot.Transmission) (whole, payload radio.SampleIndex) {
	t.Helper()
	n, err := b.w.FrameSamples(tr, benchLengths[tr])
	if err != nil {
		t.Fatal(err)
	}
	start := b.w.layout.start(b.w.groups[0].patterns.Symbols())
	return radio.SampleIndex(n), radio.SampleIndex((guardSymbols + start) * flatTop.SamplesPerSymbol)
}

// Every damage to any transmission of round 1 makes it void, is said in a few
// words, and neither harms round 0 before it nor round 2 after it.
// Longer than 60 lines because it is a table of damages.
func TestWaveformDamage(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// overdriven is what a converter does whose full scale is half the peak.
	const fullScale = 4
	overdriven := func(gain float32) func(x complex64) complex64 {
		return func(x complex64) complex64 {
			limit := func(v float32) float32 { return max(-fullScale, min(fullScale, gain*v)) }
			return complex(limit(real(x)), limit(imag(x)))
		}
	}
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		want string // in the failure; empty where the gains may be others
		// atOnce tells that the transmission that was hit is the one refused.
		atOnce bool
		config func(*WaveformConfig)
		harm   func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex)
	}{
		{name: "lost samples", want: "symbols erased", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			must(t, b.medium.Drop(at+payload+2000, 700))
		}},
		{name: "most of a frame lost", want: "symbols erased", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			must(t, b.medium.Drop(at+payload+1000, radio.SampleCount(whole-payload-1000)))
		}},
		{name: "lost across the next frame's guard time", want: "symbols erased", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			must(t, b.medium.Drop(at+whole-1000, 1050))
		}},
		{name: "lost beginning", want: "no preamble", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			must(t, b.medium.Drop(at, radio.SampleCount(payload)))
		}},
		{name: "underrun in the payload", want: "device 2 had an underrun", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			must(t, b.medium.Underrun(1, at+payload+3000, 4000))
		}},
		{name: "NaN", want: "symbols erased", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			b.source.from, b.source.end = at+payload+3000, at+payload+3120
			b.source.change = func(complex64) complex64 { return complex(nan, nan) }
		}},
		{name: "infinite", want: "symbols erased", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			b.source.from, b.source.end = at+payload+3000, at+payload+3120
			b.source.change = func(complex64) complex64 { return complex(float32(math.Inf(1)), 0) }
		}},
		{name: "NaN throughout", want: "no preamble", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			b.source.from, b.source.end = at, at+whole
			b.source.change = func(complex64) complex64 { return complex(nan, nan) }
		}},
		// What is left may be read, with other gains: see TestWaveformClippedAlike.
		{name: "clipped, level known",
			config: func(c *WaveformConfig) { c.Receive.Clip = fullScale },
			harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
				b.source.from, b.source.end = at, at+whole
				b.source.change = overdriven(2 * fullScale / float32(math.Abs(b.h[0])+math.Abs(b.h[1])))
			}},
		{name: "clipped, level unknown", harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			b.source.from, b.source.end = at, at+whole
			b.source.change = overdriven(2 * fullScale / float32(math.Abs(b.h[0])+math.Abs(b.h[1])))
		}},
		{name: "receiver retuned in a frame", want: "epoch", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			must(t, b.medium.RetuneReceiver(at+payload+3000, 0.7))
		}},
		// A new epoch is no promise of another phase: this one is as before.
		{name: "receiver retuned to the same phase", want: "epoch", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			must(t, b.medium.RetuneReceiver(at+whole-1, 0))
		}},
		{name: "device retuned", want: "epoch of device 2", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			must(t, b.medium.Retune(1, at+payload+3000, 0))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for tr := range slot.Transmission(slot.Transmissions) {
				b := newBench(t, c.config)
				b.harm = func(s slot.Slot, at radio.SampleIndex) {
					if s.Round == 1 && s.Transmission == tr {
						whole, payload := b.frame(t, tr)
						c.harm(t, b, at, payload, whole)
						if c.want == "" {
							b.bent = tr
						}
					}
				}
				if v := b.round(t, 0); !v.good {
					t.Fatalf("%v: round 0, before the damage: %v: %s", tr, v.failed, v.reason)
				}
				v := b.round(t, 1)
				if v.good {
					t.Errorf("%v: the damaged round was accepted", tr)
				}
				if !strings.Contains(v.reason, c.want) || c.atOnce && v.failed != tr {
					t.Errorf("%v: %v failed by %q, expected is %q", tr, v.failed, v.reason, c.want)
				}
				for k := uint32(2); k < 4; k++ {
					if v := b.round(t, k); !v.good {
						t.Errorf("%v: round %d, after the damage: %v: %s", tr, k, v.failed, v.reason)
					}
				}
			}
		})
	}
}

// A device that falls silent for a whole frame, or for its pattern, leaves a frame
// that is sound in itself: the pattern tells that its gains are others.
func TestWaveformUnderrunOfPattern(t *testing.T) {
	for tr := range slot.Transmission(slot.Transmissions) {
		b := newBench(t, nil)
		b.harm = func(s slot.Slot, at radio.SampleIndex) {
			if s.Round == 1 && s.Transmission == tr {
				_, payload := b.frame(t, tr)
				if err := b.medium.Underrun(0, at+payload-400, 200); err != nil {
					t.Fatal(err)
				}
			}
		}
		for k := range uint32(3) {
			if v := b.round(t, k); v.good == (k == 1) {
				t.Errorf("%v damaged: round %d: good = %v, %v: %s", tr, k, v.good, v.failed, v.reason)
			}
		}
	}
}

// A frame that lost samples is sent again and read; one whose epoch changed is
// not sent again.
func TestWaveformRepeatsDamagedFrames(t *testing.T) {
	for _, c := range []struct {
		name     string
		harm     func(b *bench, at radio.SampleIndex) error
		good     bool
		repeated int
	}{
		{"lost samples", func(b *bench, at radio.SampleIndex) error { return b.medium.Drop(at+9000, 500) }, true, 1},
		{"epoch", func(b *bench, at radio.SampleIndex) error { return b.medium.RetuneReceiver(at+9000, 0) }, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, func(c *WaveformConfig) { c.Repeats = 2 })
			repeated := 0
			b.w.cfg.OnFrame = func(o Observation) error {
				if o.Repeat > 0 {
					repeated++
				}
				return nil
			}
			b.harm = func(s slot.Slot, at radio.SampleIndex) {
				if s.Round == 1 && s.Transmission == slot.TxC1 {
					if err := c.harm(b, at); err != nil {
						t.Fatal(err)
					}
				}
			}
			for k := range uint32(3) {
				if v := b.round(t, k); v.good != (c.good || k != 1) {
					t.Errorf("round %d: good = %v, %v: %s", k, v.good, v.failed, v.reason)
				}
			}
			if repeated != c.repeated {
				t.Errorf("%d frames were sent again, want %d", repeated, c.repeated)
			}
		})
	}
}

// A receiver that starts late misses the frame that is on the air, unless only
// guard time passed, and has the next round.
func TestWaveformReceiverStartsLate(t *testing.T) {
	for _, c := range []struct {
		start radio.SampleIndex
		want  string
	}{{100, ""}, {700, "no preamble"}, {3000, "no preamble"}, {9000, "no preamble"}} {
		b := newBench(t, nil)
		if err := b.source.Close(); err != nil {
			t.Fatal(err)
		}
		d, err := b.medium.Receiver(c.start)
		if err != nil {
			t.Fatal(err)
		}
		if b.source.Receiver, err = d.(radio.ReceiveOpener).OpenReceiver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.source.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := b.round(t, 0)
		if v.good != (c.want == "") || !strings.Contains(v.reason, c.want) {
			t.Errorf("start at %d: good = %v, %v failed by %q, expected is %q", c.start, v.good, v.failed, v.reason, c.want)
		}
		for k := uint32(1); k < 3; k++ {
			if v := b.round(t, k); !v.good {
				t.Errorf("start at %d: round %d: %v: %s", c.start, k, v.failed, v.reason)
			}
		}
	}
}

// silence is a receiver of a sender that listens to nothing.
type silence struct {
	radio.Receiver
	next radio.SampleIndex
}

func (s *silence) Read(_ context.Context, dst []complex64) (int, radio.Meta, error) {
	clear(dst)
	meta := radio.Meta{First: s.next}
	s.next += radio.SampleIndex(len(dst))
	return len(dst), meta, nil
}

// Frames of another run, round, attempt or transmission are told apart, and do not
// keep the receiver from the next that is its own.
func TestWaveformFramesOfAnotherRun(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	a := newAir(t, 2, scene{sigma: 0.3, bits: -1, noiseStd: noiseFor(flatTop, 50)})
	var air radio.Receiver
	sender := newWaveform(t, a, m, func(c *WaveformConfig) {
		air = c.Receiver
		c.Receiver = &silence{}
	})
	listener, err := NewWaveform(WaveformConfig{
		Modulus: m, Devices: 2, Base: 3, Modem: flatTop, Run: 77, Secret: sender.cfg.Secret, Receiver: air,
	})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(11, 11))
	const n = 100
	x := randomPayloads(m, 2, n, rnd)
	rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, sender.PatternSymbols())}
	for i, c := range []struct {
		run  uint16
		sent slot.Slot
		good bool
	}{
		{77, slot.Slot{Round: 5}, true},
		{78, slot.Slot{Round: 5}, false},
		{77, slot.Slot{Round: 5}, true},
		{77, slot.Slot{Round: 4}, false},
		{77, slot.Slot{Round: 5, Attempt: 1}, false},
		{77, slot.Slot{Round: 5, Transmission: slot.TxShare}, false},
		{0xffff, slot.Slot{Round: 5}, false},
		{77, slot.Slot{Round: 5}, true},
	} {
		sender.cfg.Run = c.run
		sendOver(t, sender, c.sent, x, &rx)
		sendOver(t, listener, slot.Slot{Round: 5}, x, &rx)
		if rx.CheckPassed != c.good {
			t.Errorf("frame %d: accepted = %v", i, rx.CheckPassed)
		}
		if f := listener.Report().Failure; !c.good && !strings.Contains(f, "where another was expected") {
			t.Errorf("frame %d: the failure is %q", i, f)
		}
	}
}

// saturation is a receiver whose converter ends at 1 and whose amplifier drives it
// beyond.
type saturation struct {
	radio.Receiver
	gain  float32
	share float64         // what gain leaves of the peak, at a full scale of 1
	level radio.Amplitude // as it says; 0 if it does not know
	count bool            // whether it counts what it clips
}

func (s *saturation) ClipLevel() radio.Amplitude { return s.level }

func (s *saturation) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	n, meta, err := s.Receiver.Read(ctx, dst)
	for k, x := range dst[:n] {
		re, im := max(-1, min(1, s.gain*real(x))), max(-1, min(1, s.gain*imag(x)))
		dst[k] = complex(re, im)
		if s.count && dst[k] != complex(s.gain, 0)*x {
			meta.Clipped++
			meta.Flags |= radio.Clipped
		}
	}
	return n, meta, err
}

// Whole rounds whose four frames are clipped alike, at 30 to 90 % of the largest
// superposed level. A receiver that tells where its converter ends refuses, and says why,
// or solves what was clipped; one that only counts what it clips refuses every one. One
// that knows nothing of it may read a round. What is accepted is an
// integer superposition to the bit, with the gains that the patterns show, the same
// in all four transmissions and not all 0 (clipping is no linear map, so that
// little is left of the weaker devices: they may have H_i = 0). At 110 % nothing is
// clipped and rounds are read.
func TestWaveformClippedAlike(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	rounds := counted(10, 300, 4000)
	for _, c := range []clipping{
		{"N=2, level known", 2, true, false, 0},
		{"N=3, level known, phases", 3, true, true, 0.2},
		{"N=2, level not known", 2, false, false, 0},
		{"N=3, level not known", 3, false, false, 0},
		{"N=2, level not known, counted", 2, false, true, 0},
		{"N=3, level not known, counted, phases", 3, false, true, 0.2},
	} {
		t.Run(c.name, func(t *testing.T) {
			clippedAlike(t, m, c, rounds)
		})
	}
}

// clipping is a converter that clips, and who tells it.
type clipping struct {
	name    string
	devices int
	known   bool
	count   bool
	phase   float64
}

// bench returns a waveform whose samples are clipped.
func (c clipping) bench(t *testing.T, m *zq.Modulus) (a *air, source *saturation, w *Waveform) {
	t.Helper()
	a = newAir(t, c.devices, scene{sigma: 0.3, bits: -1, noiseStd: noiseFor(flatTop, 50), impair: func(i int) channel.Impairments {
		return channel.Impairments{PhaseRad: c.phase * float64(i)}
	}})
	source = &saturation{count: c.count}
	if c.known {
		source.level = 0.999
	}
	w = newWaveform(t, a, m, func(w *WaveformConfig) {
		source.Receiver, w.Receiver = w.Receiver, source
		w.Lattice.MaxAlpha = 40
		w.OnTransmission = func(ctx context.Context, s slot.Slot, at radio.SampleIndex) error {
			err := a.set(ctx, s, at)
			peak := 0.0
			for _, h := range a.h {
				peak += math.Abs(h)
			}
			source.gain = float32(1 / (source.share * peak))
			return err
		}
	})
	return a, source, w
}

// tenthsOf returns where round k is clipped, in tenths of the peak: 30 to 90 %, and then 110 %.
func tenthsOf(k, rounds int) int {
	if k >= rounds*9/10 {
		return 11
	}
	return 3 + k%7
}

// clippedAlike goes through rounds that are clipped more and more, and counts what became of
// them.
func clippedAlike(t *testing.T, m *zq.Modulus, c clipping, rounds int) {
	t.Helper()
	a, source, w := c.bench(t, m)
	told := c.known || c.count
	rnd := rand.New(rand.NewPCG(14, 14))
	var read, said, dropped, odd [12]int
	h := make([]float64, c.devices)
	for k := range uint32(rounds) {
		tenths := tenthsOf(int(k), rounds)
		source.share = float64(tenths) / 10
		var first []float64
		v := attemptOf(t, w, m, k, 0, benchLengths, rnd, func(tr slot.Transmission, x []zq.Vector, rx *Reception) {
			if !w.Gains(h) {
				t.Fatalf("round %d, %v: accepted, and its pattern has no integer gains", k, tr)
			}
			if !rx.Y.Equal(superposition(m, h, x)) {
				t.Errorf("round %d, %v: accepted, and not the superposition with H = %v", k, tr, h)
			}
			if tr == slot.TxKey {
				first = slices.Clone(h)
			}
		})
		switch {
		case v.good:
			read[tenths]++
			if !slices.Equal(first, h) {
				t.Errorf("round %d: accepted with H = %v in D, and %v in b", k, h, first)
			}
			if slices.Contains(h, 0) {
				dropped[tenths]++
			}
			for i := range a.h {
				a.h[i] *= float64(source.gain)
			}
			if w.Scaled(a.scaled, a.h); c.phase == 0 && !slices.Equal(h, a.scaled) {
				odd[tenths]++
			}
		case strings.Contains(v.reason, "samples clipped: lower the receiver's gain"):
			said[tenths]++
		case tenths < 10 && told:
			t.Errorf("round %d, clipped at %d0 %%: refused by %q", k, tenths, v.reason)
		}
		if v.good && c.count && !c.known && tenths < 10 {
			t.Errorf("round %d, clipped at %d0 %%: accepted", k, tenths)
		}
	}
	t.Logf("%d rounds; at 30, 40 ... 110 %%: read %v, of which with an H_i = 0 %v and with other gains than round(alpha h) %v, refused as clipped %v", rounds, read[3:], dropped[3:], odd[3:], said[3:])
	// About 95 % are, of 38: four deviations below is 80 %.
	if c.known && c.phase == 0 && read[9]*10 < (rounds*9/10)/7*8 {
		t.Errorf("%d rounds clipped at 90 %% were read", read[9])
	}
	if c.phase == 0 && read[11] < (rounds-rounds*9/10)*8/10 {
		t.Errorf("%d rounds without clipping were read", read[11])
	}
}

// A loss that ends in another frame, in another round, or exactly at a frame's end
// costs what it covers and nothing else. Nobody waits for samples that only a later
// frame would bring.
func TestWaveformLongLoss(t *testing.T) {
	for _, c := range []struct {
		name        string
		from, until float64 // of the frame of b in round 1, in its length
		good        []bool  // of rounds 0 to 5
	}{
		{"to the frame's end", 0.5, 1, []bool{true, false, true, true, true, true}},
		{"one frame whole", 0, 1, []bool{true, false, true, true, true, true}},
		{"into the next", 0.5, 1.5, []bool{true, false, false, true, true, true}},
		{"several frames", 0.9, 3.5, []bool{true, false, false, false, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.harm = func(s slot.Slot, at radio.SampleIndex) {
				if s.Round == 1 && s.Transmission == slot.TxKey {
					whole, _ := b.frame(t, slot.TxKey)
					first, end := at+radio.SampleIndex(c.from*float64(whole)), at+radio.SampleIndex(c.until*float64(whole))
					if err := b.medium.Drop(first, radio.SampleCount(end-first)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for k, good := range c.good {
				// A round ends with the frame that is refused: each lost frame is a round's b.
				if v := b.round(t, uint32(k)); v.good != good || !good && v.failed != slot.TxKey {
					t.Errorf("round %d: good = %v, %v: %s", k, v.good, v.failed, v.reason)
				}
			}
		})
	}
}

// A receiver that starts a second late hears nothing of the frames until then, says
// so, and reads all that come after. It is opened by its URI.
func TestWaveformReceiverStartsASecondLate(t *testing.T) {
	const late = 10e6 // samples, of a bench at 10 Msps
	b := newBench(t, nil)
	if err := b.source.Close(); err != nil {
		t.Fatal(err)
	}
	opener, err := loopback.NewOpener(b.medium)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := radio.NewRegistry(map[string]radio.Opener{"loopback": opener})
	if err != nil {
		t.Fatal(err)
	}
	d, err := registry.Open(t.Context(), fmt.Sprintf("loopback:%s?start=%d", b.medium.Name(), int(late)))
	if err != nil {
		t.Fatal(err)
	}
	if b.source.Receiver, err = d.(radio.ReceiveOpener).OpenReceiver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.source.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	unheard, heard := 0, 0
	for k := uint32(0); heard < 3 && !t.Failed(); k++ {
		due := b.w.Next()
		whole, _ := b.frame(t, slot.TxKey)
		v := b.round(t, k)
		switch {
		case due+whole <= late:
			unheard++
			if v.good || v.reason != "no sample of the frame was received" {
				t.Errorf("round %d, at %d: good = %v, %q", k, due, v.good, v.reason)
			}
		case due >= late:
			heard++
			if !v.good {
				t.Errorf("round %d, at %d: %v: %s", k, due, v.failed, v.reason)
			}
		}
	}
	t.Logf("%d frames were missed", unheard)
}

// A phase that is given belongs to a tuning epoch: after a retune of the receiver or
// of a device, while a frame is on the air or between two rounds, no attempt is good
// any more, and the link says why.
func TestWaveformPhaseOfAnEarlierEpoch(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	for name, retune := range map[string]func(a *air, at radio.SampleIndex) error{
		"receiver": func(a *air, at radio.SampleIndex) error { return a.medium.RetuneReceiver(at, 0.01) },
		"device 2": func(a *air, at radio.SampleIndex) error { return a.medium.Retune(1, at, 0.01) },
	} {
		for _, offset := range []radio.SampleIndex{0, 5000} {
			t.Run(fmt.Sprintf("%s at %d", name, offset), func(t *testing.T) {
				a := newAir(t, 2, scene{sigma: 0.5, bits: 1, noiseStd: 1e-3})
				w := newWaveform(t, a, m, func(c *WaveformConfig) {
					c.Alpha, c.Phase = 2, new(modem.Radians)
					c.OnTransmission = func(ctx context.Context, s slot.Slot, at radio.SampleIndex) error {
						if s.Round == 2 && s.Transmission == slot.TxKey {
							if err := retune(a, at+offset); err != nil {
								return err
							}
						}
						return a.set(ctx, s, at)
					}
				})
				rnd := rand.New(rand.NewPCG(15, 15))
				for k := range uint32(6) {
					v := attemptOf(t, w, m, k, 0, benchLengths, rnd, nil)
					if v.good != (k < 2) {
						t.Errorf("round %d: good = %v, %v: %s", k, v.good, v.failed, v.reason)
					}
					if k > 2 && !(strings.Contains(v.reason, "the phase given is that of an earlier tuning epoch of") && strings.Contains(v.reason, name)) {
						t.Errorf("round %d: %q", k, v.reason)
					}
				}
			})
		}
	}
}

// A link that only listens voids what one that sends does, given the epochs of those
// who send.
func TestWaveformSenderEpochs(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	a := newAir(t, 2, scene{sigma: 0.3, bits: -1, noiseStd: noiseFor(flatTop, 50)})
	var air radio.Receiver
	sender := newWaveform(t, a, m, func(c *WaveformConfig) {
		air = c.Receiver
		c.Receiver = &silence{}
	})
	present := []radio.Epoch{1, 1}
	listener, err := NewWaveform(WaveformConfig{
		Modulus: m, Devices: 2, Base: 3, Modem: flatTop, Run: 77, Secret: sender.cfg.Secret, Receiver: air,
		SenderEpochs: func() []radio.Epoch { return present },
	})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(16, 16))
	const n = 100
	rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, sender.PatternSymbols())}
	for k := range uint32(4) {
		for tr := range slot.Transmission(slot.Transmissions) {
			if k == 1 && tr == slot.TxC1 {
				present = []radio.Epoch{1, 2}
			}
			s := slot.Slot{Round: k, Transmission: tr}
			x := randomPayloads(m, 2, n, rnd)
			sendOver(t, sender, s, x, &rx)
			sendOver(t, listener, s, x, &rx)
			void := k == 1 && tr >= slot.TxC1
			if rx.CheckPassed == void || void && listener.Report().Failure != "the tuning epoch of device 2 changed" {
				t.Errorf("%v: accepted = %v, %s", s, rx.CheckPassed, listener.Report().Failure)
			}
		}
	}
}

// tape is a receiver of samples that are there.
type tape struct {
	radio.Receiver
	samples []complex64
	next    int
}

func (p *tape) Read(_ context.Context, dst []complex64) (int, radio.Meta, error) {
	if p.next == len(p.samples) {
		return 0, radio.Meta{}, io.EOF
	}
	n := copy(dst, p.samples[p.next:])
	meta := radio.Meta{First: radio.SampleIndex(p.next), Epoch: 1}
	p.next += n
	return n, meta, nil
}

func each(change func(x complex64) complex64) func(x []complex64) []complex64 {
	return func(x []complex64) []complex64 {
		for k := range x {
			x[k] = change(x[k])
		}
		return x
	}
}

func resampled(factor float64) func(x []complex64) []complex64 {
	return func(x []complex64) []complex64 {
		y := make([]complex64, len(x))
		for k := range y {
			if i := int(factor * float64(k)); i < len(x) {
				y[k] = x[i]
			}
		}
		return y
	}
}

// Samples that were changed after they were received, with indices as if nothing had
// happened: what is accepted is what was sent, the rest is refused with a reason, and
// the rounds behind the damage are read.
func TestWaveformTamperedTape(t *testing.T) {
	sender, whole, sent := recordTape(t)
	const rounds = len(sent)
	frame := len(whole) / (rounds * slot.Transmissions)
	at := func(round, tr int) int { return (round*slot.Transmissions + tr) * frame }
	const all, none = rounds * slot.Transmissions, 0
	for _, c := range []struct {
		name   string
		change func(x []complex64) []complex64
		good   int    // transmissions
		want   string // in the first failure
	}{
		{"as it was", each(func(x complex64) complex64 { return x }), all, ""},
		// Symbols are real: what mirrors the spectrum or turns all phases takes nothing.
		{"conjugated", each(func(x complex64) complex64 { return complex(real(x), -imag(x)) }), all, ""},
		{"turned", each(func(x complex64) complex64 { return -1i * x }), all, ""},
		{"I and Q changed places", each(func(x complex64) complex64 { return complex(imag(x), real(x)) }), all, ""},
		{"12 dB weaker", each(func(x complex64) complex64 { return x / 4 }), all, ""},
		{"60 dB weaker", each(func(x complex64) complex64 { return x / 1024 }), none, "no lattice scale"}, // finer than looked for
		{"only I", each(func(x complex64) complex64 { return complex(real(x), 0) }), all, ""},
		{"empty", each(func(complex64) complex64 { return 0 }), none, "no preamble"},
		{"twice the sample rate", resampled(0.5), none, ""},
		{"half the sample rate", resampled(2), none, ""},
		{"0.3 % too fast", resampled(1.003), none, ""},
		{"backwards", func(x []complex64) []complex64 { slices.Reverse(x); return x }, none, "no preamble"},
		{"a frame again in the next one's place", func(x []complex64) []complex64 {
			copy(x[at(1, 1):at(1, 2)], x[at(1, 0):at(1, 1)])
			return x
		}, all - 1, "a frame of run 77, round 1, attempt 0, b, where another was expected"},
		{"a round again in the next one's place", func(x []complex64) []complex64 {
			copy(x[at(2, 0):at(3, 0)], x[at(1, 0):at(2, 0)])
			return x
		}, all - slot.Transmissions, "a frame of run 77, round 1, attempt 0, b, where another was expected"},
		{"rounds joined in the wrong order", func(x []complex64) []complex64 {
			return slices.Concat(x[:at(1, 0)], x[at(2, 0):at(3, 0)], x[at(1, 0):at(2, 0)], x[at(3, 0):])
		}, all - 2*slot.Transmissions, "a frame of run 77, round 2, attempt 0, b, where another was expected"},
		{"12 symbols lost unnoticed", func(x []complex64) []complex64 {
			hit := at(1, 1) + frame/2
			return slices.Concat(x[:hit], x[hit+96:], make([]complex64, 96))
		}, all - 1, "block 1"},
		{"12 symbols twice", func(x []complex64) []complex64 {
			hit := at(1, 1) + frame/2
			return slices.Concat(x[:hit], x[hit-96:len(x)-96])
		}, all - 1, "block 1"},
		{"a short echo of a frame in the next guard time", func(x []complex64) []complex64 {
			copy(x[at(1, 1):at(1, 1)+160], x[at(1, 0)+3000:])
			return x
		}, all, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			readTape(t, sender, c.change(slices.Clone(whole)), sent, c.good, c.want)
		})
	}
}

// recordTape returns what a receiver had of rounds that were sent.
func recordTape(t *testing.T) (sender *Waveform, whole []complex64, sent tapedRounds) {
	t.Helper()
	const n = 100
	m := newModulus(t, 0x7fff801)
	a := newAir(t, 2, scene{sigma: 0.3, bits: -1, noiseStd: noiseFor(flatTop, 50), impair: func(i int) channel.Impairments {
		return channel.Impairments{PhaseRad: 0.3 + 0.1*float64(i)}
	}})
	var air radio.Receiver
	sender = newWaveform(t, a, m, func(c *WaveformConfig) {
		air = c.Receiver
		c.Receiver = &silence{}
	})
	rnd := rand.New(rand.NewPCG(17, 17))
	rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, sender.PatternSymbols())}
	for k := range sent {
		for tr := range sent[k] {
			sent[k][tr] = randomPayloads(m, 2, n, rnd)
			sendOver(t, sender, slot.Slot{Round: uint32(k), Transmission: slot.Transmission(tr)}, sent[k][tr], &rx)
		}
	}
	whole = make([]complex64, sender.Next())
	if _, _, err := radio.ReadFull(t.Context(), air, whole); err != nil {
		t.Fatal(err)
	}
	return sender, whole, sent
}

// tapedRounds are the payloads that were sent while a tape ran.
type tapedRounds [5][slot.Transmissions][]zq.Vector

// readTape listens to a tape: so many transmissions are read, each as it was sent, and the
// first failure is the one wanted.
func readTape(t *testing.T, sender *Waveform, samples []complex64, sent tapedRounds, expected int, want string) {
	t.Helper()
	m := sender.cfg.Modulus
	rx := Reception{Y: m.NewVector(sent[0][0][0].Len()), Pattern: make([]int64, sender.PatternSymbols())}
	listener, err := NewWaveform(WaveformConfig{
		Modulus: m, Devices: 2, Base: 3, Modem: flatTop, Run: 77, Secret: sender.cfg.Secret,
		Receiver: &tape{samples: samples}, Lattice: lattice.Options{MaxAlpha: 40},
	})
	if err != nil {
		t.Fatal(err)
	}
	good, reason := 0, ""
	h := make([]float64, 2)
	for k := range sent {
		for tr, x := range sent[k] {
			sendOver(t, listener, slot.Slot{Round: uint32(k), Transmission: slot.Transmission(tr)}, x, &rx)
			failure := listener.Report().Failure
			if rx.CheckPassed {
				good++
				if !listener.Gains(h) || !rx.Y.Equal(superposition(m, h, x)) {
					t.Errorf("round %d, %v: accepted, and not the superposition with H = %v", k, slot.Transmission(tr), h)
				}
			} else if reason == "" {
				reason = failure
			}
			if rx.CheckPassed != (failure == "") {
				t.Errorf("round %d, %v: accepted = %v and %q", k, slot.Transmission(tr), rx.CheckPassed, failure)
			}
		}
	}
	if good != expected || !strings.Contains(reason, want) {
		t.Errorf("%d of %d transmissions were read, %d expected; the first failure is %q", good, len(sent)*slot.Transmissions, expected, reason)
	}
}

// FuzzReceiver plays any bytes, and a frame spoiled by them, to a link that listens:
// it neither fails nor accepts what was not sent.
func FuzzReceiver(f *testing.F) {
	const n = 4
	m := newModulus(f, 0x7fff801)
	a := newAir(f, 2, scene{sigma: 0.3, bits: -1, noiseStd: noiseFor(flatTop, 50)})
	var air radio.Receiver
	sender := newWaveform(f, a, m, func(c *WaveformConfig) {
		air = c.Receiver
		c.Receiver = &silence{}
	})
	x := randomPayloads(m, 2, n, rand.New(rand.NewPCG(18, 18)))
	rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, sender.PatternSymbols())}
	sendOver(f, sender, slot.Slot{}, x, &rx)
	whole := make([]complex64, sender.Next())
	if _, _, err := radio.ReadFull(context.Background(), air, whole); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, uint16(0), false)
	f.Add([]byte{1, 2, 3, 4}, uint16(900), true)
	f.Add(bytes.Repeat([]byte{127, 0, 129, 255}, 300), uint16(2000), false)
	f.Add(bytes.Repeat([]byte{0x80}, 64), uint16(2100), true)
	f.Fuzz(func(t *testing.T, data []byte, from uint16, alone bool) {
		samples := slices.Clone(whole)
		if alone {
			clear(samples)
		}
		for k := range len(data) / 2 {
			i := (int(from) + k) % len(samples)
			samples[i] = complex(float32(int8(data[2*k]))/32, float32(int8(data[2*k+1]))/32)
			if data[2*k] == 0x80 {
				samples[i] = complex(float32(math.Inf(1)), float32(math.NaN()))
			}
		}
		for _, phase := range []*modem.Radians{nil, new(modem.Radians)} {
			listener, err := NewWaveform(WaveformConfig{
				Modulus: m, Devices: 2, Base: 3, Modem: flatTop, Run: 77, Secret: sender.cfg.Secret, Phase: phase,
				Receiver: &tape{samples: samples}, Lattice: lattice.Options{MaxAlpha: 40},
			})
			if err != nil {
				t.Fatal(err)
			}
			sendOver(t, listener, slot.Slot{}, x, &rx)
			if !rx.CheckPassed {
				continue
			}
			// A pattern may be spoiled and the payload not: that other frames of the round
			// have another one is for their judge to see.
			scaled, solved := make([]float64, 2), make([]float64, 2)
			listener.Scaled(scaled, a.h)
			if !rx.Y.Equal(superposition(m, scaled, x)) && (!listener.Gains(solved) || !rx.Y.Equal(superposition(m, solved, x))) {
				t.Fatalf("accepted, and not the superposition with H = %v or %v", scaled, solved)
			}
		}
	})
}
