package lattice

import "math"

// View is what decides about a block at a scale: its density, and the integers that values
// are read as.
type View struct {
	// Width is that of a bin of |y|, the first of which is half as wide; Count has the
	// symbols in each.
	Width float64
	Count []float64
	// Teeth are in order, one behind the other. Where Plain is true they are not read: one
	// lies too near to a boundary between integers, and symbols are rounded as they are.
	Teeth []Tooth
	Plain bool
	// Margin is that of Candidate.
	Margin float64
}

// Tooth is a stretch of values of |y| that is read as one integer.
type Tooth struct {
	From, To float64
	Integer  int32
}

// View returns how y is read at a scale, as At does it; of a scale of 0, which is none, the
// density and its teeth without integers.
func (r *Receiver) View(y []float32, alpha float64) (View, error) {
	if len(y) < MinSymbols {
		return View{}, ErrTooShort
	}
	if err := r.density.load(y); err != nil {
		return View{}, err
	}
	turn := alpha * r.density.width
	if !(turn >= 0) || !(turn*float64(r.density.bins) < MaxLevel) {
		return View{}, ErrScale
	}
	r.comb.find(r.density, r.noise())
	v := View{Width: r.density.width, Count: append([]float64(nil), r.density.count[:r.density.bins+1]...), Margin: math.NaN(), Plain: true}
	if turn > 0 {
		v.Margin = r.comb.margin(turn)
		v.Plain = turn > maxTurn || v.Margin < minMargin
	}
	for _, t := range r.comb.teeth {
		from := max(0, (float64(t.first)-0.5)*v.Width)
		v.Teeth = append(v.Teeth, Tooth{From: from, To: (float64(t.last) + 0.5) * v.Width, Integer: int32(nearest(turn * t.centre))})
	}
	return v, nil
}
