package phy

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/phy/zq"
	"ringwave/radio"
)

// spoiler changes what a receiver gives from index from to before end.
type spoiler struct {
	radio.Receiver
	from, end radio.SampleIndex
	change    func(x complex64) complex64
}

func (s *spoiler) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	n, meta, err := s.Receiver.Read(ctx, dst)
	for k := range dst[:n] {
		if i := meta.Index(k); i >= s.from && i < s.end {
			dst[k] = s.change(dst[k])
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
	bent Transmission
	// harm, if not nil, is called before each transmission.
	harm func(slot Slot, at radio.SampleIndex)
	rnd  *rand.Rand
}

func newBench(t testing.TB, change func(*WaveformConfig)) *bench {
	b := &bench{air: newAir(t, 2, scene{sigma: 0.3, bits: -1, noiseStd: noiseFor(flatTop, 50)}), m: newModulus(t, 0x7fff801), source: &spoiler{}, bent: -1, rnd: rand.New(rand.NewPCG(10, 10))}
	b.w = newWaveform(t, b.air, b.m, func(c *WaveformConfig) {
		b.source.Receiver = c.Receiver
		c.Receiver = b.source
		c.Lattice.MaxAlpha = 40 // the program's default
		c.OnTransmission = func(slot Slot, at radio.SampleIndex) error {
			if b.harm != nil {
				b.harm(slot, at)
			}
			return b.set(slot, at)
		}
		if change != nil {
			change(c)
		}
	})
	return b
}

var benchLengths = [Transmissions]int{100, 80, 100, 80}

// round carries a round; whatever passes its check must be the superposition.
func (b *bench) round(t *testing.T, k uint32) verdict {
	t.Helper()
	return attemptOf(t, b.w, b.m, k, 0, benchLengths, b.rnd, func(tr Transmission, x []zq.Vector, rx *Reception) {
		b.w.Scaled(b.scaled, b.h)
		if k == 1 && tr == b.bent {
			return
		}
		if !rx.Y.Equal(superposition(b.m, b.scaled, x)) {
			t.Errorf("round %d, %v: accepted, and not the superposition with H = %v", k, tr, b.scaled)
		}
	})
}

// frame gives the samples of a frame, and where its payload begins.
func (b *bench) frame(t testing.TB, tr Transmission) (whole, payload radio.SampleIndex) {
	t.Helper()
	n, err := b.w.FrameSamples(tr, benchLengths[tr])
	if err != nil {
		t.Fatal(err)
	}
	_, _, start := b.w.prefix(b.w.groups[0])
	return radio.SampleIndex(n), radio.SampleIndex((guardSymbols + start) * flatTop.SamplesPerSymbol)
}

// Every damage to any transmission of round 1 makes it void, is said in a few
// words, and neither harms round 0 before it nor round 2 after it.
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
		{name: "underrun in the payload", want: "block 1", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			must(t, b.medium.Underrun(1, at+payload+3000, 4000))
		}},
		{name: "NaN", want: "symbols erased", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			b.source.from, b.source.end = at+payload+3000, at+payload+3040
			b.source.change = func(complex64) complex64 { return complex(nan, nan) }
		}},
		{name: "infinite", want: "symbols erased", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			b.source.from, b.source.end = at+payload+3000, at+payload+3008 // a symbol
			b.source.change = func(complex64) complex64 { return complex(float32(math.Inf(1)), 0) }
		}},
		{name: "NaN throughout", want: "no preamble", atOnce: true, harm: func(t *testing.T, b *bench, at, payload, whole radio.SampleIndex) {
			b.source.from, b.source.end = at, at+whole
			b.source.change = func(complex64) complex64 { return complex(nan, nan) }
		}},
		{name: "clipped, level known", want: "symbols erased", atOnce: true,
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
			for tr := range Transmission(Transmissions) {
				b := newBench(t, c.config)
				b.harm = func(slot Slot, at radio.SampleIndex) {
					if slot.Round == 1 && slot.Transmission == tr {
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
	for tr := range Transmission(Transmissions) {
		b := newBench(t, nil)
		b.harm = func(slot Slot, at radio.SampleIndex) {
			if slot.Round == 1 && slot.Transmission == tr {
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
			b.harm = func(slot Slot, at radio.SampleIndex) {
				if slot.Round == 1 && slot.Transmission == TxC1 {
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
		Modulus: m, Devices: 2, Base: 3, Modem: flatTop, Run: 77, Public: sender.cfg.Public, Receiver: air,
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
		sent Slot
		good bool
	}{
		{77, Slot{Round: 5}, true},
		{78, Slot{Round: 5}, false},
		{77, Slot{Round: 5}, true},
		{77, Slot{Round: 4}, false},
		{77, Slot{Round: 5, Attempt: 1}, false},
		{77, Slot{Round: 5, Transmission: TxShare}, false},
		{0xffff, Slot{Round: 5}, false},
		{77, Slot{Round: 5}, true},
	} {
		sender.cfg.Run = c.run
		sendOver(t, sender, c.sent, x, &rx)
		sendOver(t, listener, Slot{Round: 5}, x, &rx)
		if rx.CheckPassed != c.good {
			t.Errorf("frame %d: accepted = %v", i, rx.CheckPassed)
		}
		if f := listener.Report().Failure; !c.good && !strings.Contains(f, "where another was expected") {
			t.Errorf("frame %d: the failure is %q", i, f)
		}
	}
}
