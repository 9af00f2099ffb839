package radiotest

import (
	"context"
	"math"

	"ringwave/radio"
)

// Drifting is a receiver whose sampling clock runs apart from the medium's: it takes a sample
// each step samples of that, from a polynomial through the taps around it.
type Drifting struct {
	radio.Receiver
	step   float64
	next   radio.SampleIndex // its own
	buffer []complex64       // of the medium, from first on
	first  radio.SampleIndex
	meta   radio.Meta
}

const driftTaps = 12

// NewDrifting returns one that hears what r does.
func NewDrifting(r radio.Receiver, step float64) *Drifting {
	return &Drifting{Receiver: r, step: step}
}

// Read implements radio.Receiver.
func (d *Drifting) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return d.ReadUntil(ctx, dst, radio.Forever)
}

// ReadUntil implements radio.Bounded.
func (d *Drifting) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n := int(min(radio.SampleIndex(len(dst)), until-d.next))
	if n <= 0 {
		return 0, radio.Meta{First: d.next}, nil
	}
	last := radio.SampleIndex(float64(d.next+radio.SampleIndex(n))*d.step) + driftTaps
	for have := d.first + radio.SampleIndex(len(d.buffer)); have < last; {
		more := make([]complex64, last-have)
		k, meta, err := radio.ReadFullUntil(ctx, d.Receiver, more, last)
		if err != nil {
			return 0, meta, err
		}
		d.buffer, d.meta = append(d.buffer, more[:k]...), meta
		have += radio.SampleIndex(k)
	}
	for k := range n {
		dst[k] = d.between(float64(d.next+radio.SampleIndex(k)) * d.step)
	}
	meta := radio.Meta{First: d.next, Epoch: d.meta.Epoch}
	d.next += radio.SampleIndex(n)
	if spent := radio.SampleIndex(float64(d.next)*d.step) - driftTaps - d.first; spent > 0 {
		d.buffer, d.first = d.buffer[spent:], d.first+spent
	}
	return n, meta, nil
}

// between returns the medium at an instant, by Lagrange's polynomials.
func (d *Drifting) between(at float64) complex64 {
	from := int(math.Floor(at)) - driftTaps/2 + 1
	var sum complex128
	for i := range driftTaps {
		k := from + i - int(d.first)
		if k < 0 || k >= len(d.buffer) {
			continue
		}
		weight := 1.0
		for j := range driftTaps {
			if j != i {
				weight *= (at - float64(from+j)) / float64(i-j)
			}
		}
		sum += complex(weight, 0) * complex128(d.buffer[k])
	}
	return complex64(sum)
}
