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
	from radio.Receiver
	by   float64 // cycles a sample
}

// turn returns a receiver that hears at a carrier what r hears that is tuned to another.
func turn(r radio.Receiver, tuned, carrier, rate radio.Hertz) radio.Receiver {
	if tuned == carrier {
		return r
	}
	// The clip level stays r's, though what was clipped in a branch has been turned since,
	// and may be less.
	t := &turned{r, float64((tuned - carrier) / rate)}
	return radio.Wrap(r, radio.Wrapping{ReadUntil: t.readUntil})
}

func (t *turned) readUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n, meta, err := radio.ReadUntil(ctx, t.from, dst, until)
	t.turn(dst[:n], meta)
	return n, meta, err
}

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
