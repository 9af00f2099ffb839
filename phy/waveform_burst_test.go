package phy

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/phy/lattice"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// interference is a receiver that bursts of noise reach: of so many samples, one a period.
type interference struct {
	radio.Receiver
	period, length radio.SampleIndex
	deviation      float64 // a branch
}

func (b *interference) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	n, meta, err := b.Receiver.Read(ctx, dst)
	return b.strike(dst, n, meta, err)
}

func (b *interference) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n, meta, err := radio.ReadUntil(ctx, b.Receiver, dst, until)
	return b.strike(dst, n, meta, err)
}

func (b *interference) strike(dst []complex64, n int, meta radio.Meta, err error) (int, radio.Meta, error) {
	if b.length == 0 {
		return n, meta, err
	}
	for k := 0; k < n; k++ {
		i := meta.Index(k)
		if i%b.period >= b.length {
			k += int(min(b.period-i%b.period, radio.SampleIndex(n))) - 1
			continue
		}
		rnd := rand.New(rand.NewPCG(uint64(i), 31)) // the same however it is read
		dst[k] += complex(float32(b.deviation*rnd.NormFloat64()), float32(b.deviation*rnd.NormFloat64()))
	}
	return n, meta, err
}

// struck returns how many of so many rounds of lean-2048 are read at once, three devices
// of gains about 1 at 40 dB, each frame sent again up to repeats times, and the frames
// that this takes.
func struck(t *testing.T, b interference, rounds, repeats int, lengths [slot.Transmissions]int) (read, frames int) {
	t.Helper()
	m := newModulus(t, leanPrime)
	a := fadingAir(t, 3, 0.3, 40)
	w := newWaveform(t, a, m, func(c *WaveformConfig) {
		b.Receiver = c.Receiver
		c.Receiver = &b
		c.Repeats, c.Lattice = repeats, lattice.Options{MaxAlpha: 40}
		c.OnFrame = func(o Observation) error { frames++; return nil }
	})
	rnd := rand.New(rand.NewPCG(32, 32))
	h := make([]float64, 3)
	for k := range uint32(rounds) {
		v := attemptOf(t, w, m, k, 0, lengths, rnd, func(tr slot.Transmission, x []zq.Vector, rx *Reception) {
			if !w.Gains(h) || !rx.Y.Equal(superposition(m, h, x)) {
				t.Errorf("round %d, %v: accepted, and not the superposition with H = %v", k, tr, h)
			}
		})
		if v.good {
			read++
		} else {
			t.Logf("round %d: %v: %s", k, v.failed, v.reason)
		}
	}
	return read, frames
}

// Bursts of ten symbols, 20 dB above a device, three a frame of b, cost repeats and hardly
// any round: within 2 points of as many without.
func TestWaveformBursts(t *testing.T) {
	rounds := counted(4, 16, 400)
	lengths := leanLengths
	clean, cleanFrames := struck(t, interference{}, rounds, 1, lengths)
	read, frames := struck(t, interference{period: 200_000, length: 80, deviation: math.Sqrt(100.0 / 2)}, rounds, 1, lengths)
	t.Logf("%d and with bursts %d of %d rounds read at once, in %d and %d frames", clean, read, rounds, cleanFrames, frames)
	if float64(clean-read) > max(1, 0.02*float64(rounds)) {
		t.Errorf("with bursts %d of %d rounds were read at once, without them %d", read, rounds, clean)
	}
	if read == clean && frames == cleanFrames {
		t.Error("no burst struck a frame")
	}
	// One of a symbol's length leaves so little to be found that the check does it.
	_, short := struck(t, interference{period: 200_000, length: 8, deviation: math.Sqrt(100.0 / 2)}, rounds, 1, lengths)
	t.Logf("with bursts of 8 samples in %d frames", short)
	if short-cleanFrames > (frames-cleanFrames)/4 {
		t.Errorf("bursts of 8 samples took %d frames, of 80 samples %d, and none %d", short, frames, cleanFrames)
	}
}

// hit is damage to a repeat of a frame: to the payload's symbols from to before to.
type hit struct{ repeat, from, to int }

// Blocks that have passed are kept while a frame is sent again, and of the others each
// symbol is the mean of those repeats that had it; checks that are lost in one repeat are
// those of another. Damage that nobody can see costs no more than a repeat.
func TestWaveformKeepsBlocks(t *testing.T) {
	const block = 20 * 18 // symbols of 18 coefficients and their 2 checks, of 18 digits each
	lost := func(x complex64) complex64 { return complex(float32(math.NaN()), 0) }
	wrong := func(x complex64) complex64 { return -x }
	for _, c := range []struct {
		name    string
		change  func(x complex64) complex64
		hits    []hit
		repeats int // that are needed; more than 3 for never
	}{
		{"nothing", lost, nil, 0},
		{"two symbols", lost, []hit{{0, 30, 32}}, 0},
		{"more symbols than the check can tell", lost, []hit{{0, block + 37, block + 46}}, 1},
		{"another block in each", lost, []hit{{0, 0, 50}, {1, block, block + 50}, {1, 2 * block, 2*block + 50}}, 1},
		{"other symbols of one block", lost, []hit{{0, block + 20, block + 60}, {1, block + 100, block + 140}}, 1},
		{"checks, then coefficients", lost, []hit{{0, 2*block - 30, 2 * block}, {1, block + 100, block + 140}}, 1},
		{"coefficients, then checks", lost, []hit{{0, block + 100, block + 140}, {1, 2*block - 30, 2 * block}}, 1},
		{"the same symbols", lost, []hit{{0, block + 100, block + 140}, {1, block + 100, block + 140}, {2, block + 100, block + 140}}, 3},
		{"pattern", lost, []hit{{0, -40, -10}}, 1},
		{"unseen", wrong, []hit{{0, block + 100, block + 140}}, 1},
		{"unseen, in two later blocks", wrong, []hit{{0, block + 100, block + 140}, {1, 2*block + 100, 2*block + 140}}, 1},
		{"unseen, another block in each", wrong, []hit{{0, 100, 140}, {1, block + 100, block + 140}}, 2},
	} {
		for _, tr := range []slot.Transmission{slot.TxKey, slot.TxC1} {
			t.Run(c.name+" of "+tr.String(), func(t *testing.T) {
				repeats, bad := 0, []hit(nil)
				b := newBench(t, nil)
				b.w.cfg.Repeats, b.w.layout.blockSymbols = 3, block-2*18
				whole, payload := b.frame(t, tr)
				at := radio.SampleIndex(0)
				b.w.cfg.OnFrame = func(o Observation) error {
					if o.Slot.Round == 1 && o.Slot.Transmission == tr {
						repeats = o.Repeat
					}
					return nil
				}
				b.harm = func(s slot.Slot, first radio.SampleIndex) {
					bad = nil
					if s.Round == 1 && s.Transmission == tr {
						at, bad = first, c.hits
					}
				}
				b.source.changeAt = func(i radio.SampleIndex, x complex64) complex64 {
					for _, h := range bad {
						from := at + radio.SampleIndex(h.repeat)*whole + payload + 7
						if i >= from+radio.SampleIndex(8*h.from) && i < from+radio.SampleIndex(8*h.to) {
							return c.change(x)
						}
					}
					return x
				}
				for k := range uint32(3) {
					if v := b.round(t, k); !v.good {
						t.Errorf("round %d: %v: %s", k, v.failed, v.reason)
					}
				}
				want := c.repeats
				if c.name == "pattern" && tr != slot.TxKey {
					want = 0 // that of b is known
				}
				if repeats != want {
					t.Errorf("%d repeats, want %d", repeats, want)
				}
			})
		}
	}
}
