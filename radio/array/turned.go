package array

import (
	"context"
	"math"

	"ringwave/radio"
)

// beside is how far from the transmitters' carrier the receiver may be tuned: more than
// the steps of the coarsest synthesizer, and far less than a signal's width.
const beside radio.Hertz = 500

// turned is a receiver that is tuned a little beside the transmitters' carrier. As its
// frequency is known, and of the same reference clock, what it hears is turned back
// sample by sample, so that the transmitters' phases stand still.
type turned struct {
	radio.Receiver
	by float64 // cycles a sample
}

// asked is a turned receiver that can be asked for losses.
type asked struct {
	turned
	radio.LossChecker
}

// turn gives a receiver that hears at a carrier what r hears that is tuned to another.
func turn(r radio.Receiver, tuned, carrier, rate radio.Hertz) radio.Receiver {
	if tuned == carrier {
		return r
	}
	t := turned{r, float64((tuned - carrier) / rate)}
	if c, ok := r.(radio.LossChecker); ok {
		return &asked{t, c}
	}
	return &t
}

func (t *turned) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	n, meta, err := t.Receiver.Read(ctx, dst)
	t.turn(dst[:n], meta)
	return n, meta, err
}

// ReadUntil is radio.Bounded as far as the receiver is.
func (t *turned) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n, meta, err := radio.ReadUntil(ctx, t.Receiver, dst, until)
	t.turn(dst[:n], meta)
	return n, meta, err
}

// ClipLevel is radio.Ranged. What was clipped in a branch has been turned since, and may
// be less.
func (t *turned) ClipLevel() radio.Amplitude { return radio.ClipLevel(t.Receiver) }

// rotorStep is the number of samples between two exact phases.
const rotorStep = 512

// turn turns samples by their indices.
func (t *turned) turn(x []complex64, meta radio.Meta) {
	gaps := meta.Gaps
	for k := 0; k < len(x); {
		for len(gaps) > 0 && gaps[0].At <= k {
			gaps = gaps[1:]
		}
		end := min(len(x), k+rotorStep)
		if len(gaps) > 0 {
			end = min(end, gaps[0].At)
		}
		cycles := math.Mod(t.by*float64(meta.Index(k)), 1)
		sin, cos := math.Sincos(2 * math.Pi * cycles)
		stepSin, stepCos := math.Sincos(2 * math.Pi * t.by)
		now, step := complex(cos, sin), complex(stepCos, stepSin)
		for ; k < end; k++ {
			x[k] = complex64(complex128(x[k]) * now)
			now *= step
		}
	}
}
