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
}
