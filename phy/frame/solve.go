package frame

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Solve returns the integer gains H_i whose superposed patterns are y, and whether
// there are any. Decoding has no need of them: they say who takes part in a round and
// with which sign, and the harness of a simulation compares them with what the channel
// was told to do.
func (p *Patterns) Solve(y []int64) (h []int64, ok bool) {
	if len(y) != p.symbols {
		return nil, false
	}
	a := mat.NewDense(p.symbols, p.devices, nil)
	b := mat.NewVecDense(p.symbols, nil)
	for t := range p.symbols {
		b.SetVec(t, float64(y[t]))
		for i := range p.devices {
			a.Set(t, i, float64(p.Symbol(i, t)))
		}
	}
	var x mat.VecDense
	if err := x.SolveVec(a, b); err != nil {
		return nil, false
	}
	h = make([]int64, p.devices)
	for i := range h {
		h[i] = int64(math.Round(x.AtVec(i)))
	}
	again := make([]int64, p.symbols)
	p.Superpose(again, h)
	for t := range y {
		if again[t] != y[t] {
			return nil, false
		}
	}
	return h, true
}
