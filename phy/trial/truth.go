package trial

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"ringwave/phy"
	"ringwave/phy/digit"
	"ringwave/phy/frame"
	"ringwave/phy/zq"
)

// truth compares what was accepted with what was sent. The receiver knows none of
// what it uses: the digits of each device.
type truth struct {
	codec *digit.Codec
	link  phy.WaveformConfig
	group int // devices of a group

	soft    [][]float32 // of each group's coefficients
	digits  [][]int8    // of each device
	scales  []float64   // alpha_g
	factors []int64     // c_g
	h       []float64   // h_i as the receiver met them
	spread  []float64   // their standard errors
	scaled  []float64   // c_g H_i

	misfit float64
	zeros  int
}

func newTruth(codec *digit.Codec, link phy.WaveformConfig) *truth {
	n, group := link.Devices, link.Group
	link.BlockSymbols = cmp.Or(link.BlockSymbols, phy.DefaultBlockSymbols)
	if group == 0 {
		group = n
	}
	groups := (n + group - 1) / group
	return &truth{
		codec: codec, link: link, group: group, digits: make([][]int8, n), soft: make([][]float32, groups), scales: make([]float64, groups),
		h: make([]float64, n), spread: make([]float64, n), scaled: make([]float64, n),
	}
}

// hear keeps the soft symbols of the n coefficients of a frame that was read.
func (t *truth) hear(o phy.Observation, n int) error {
	p, err := frame.NewPayload(t.link.Modulus, t.codec, n, max(1, t.link.BlockSymbols/t.codec.Digits()), 0)
	if err != nil {
		return err
	}
	t.scales[o.Group] = o.Alpha
	soft := t.soft[o.Group][:0]
	for i := range p.Blocks() {
		from, _ := p.BlockSymbols(i)
		to, _ := p.CheckSymbols(i)
		soft = append(soft, o.Soft[from:to]...)
	}
	t.soft[o.Group] = soft
	return nil
}

// alpha returns the mean of the groups' c_g alpha_g.
func (t *truth) alpha() float64 {
	sum := 0.0
	for g, alpha := range t.scales {
		sum += float64(t.factors[g]) * alpha
	}
	return sum / float64(len(t.scales))
}

// judge compares y, accepted, with the superposition of x, and says what is wrong.
// solved are the gains by which the received pattern is that of the devices, nil if there
// are none: the check of a block does not cover the pattern.
func (t *truth) judge(mod *zq.Modulus, solved []float64, x []zq.Vector, y zq.Vector) (wrong string, misread bool) {
	for i, h := range t.h {
		g := i / t.group
		t.scaled[i] = float64(t.factors[g]) * math.RoundToEven(t.scales[g]*h)
	}
	if !superposed(mod, t.scaled, x).Equal(y) {
		// What lies midway between two integers may be read as either.
		if solved == nil || !t.near(solved) || !superposed(mod, solved, x).Equal(y) {
			return fmt.Sprintf("accepted, and not the superposition with H = %v, alpha = %v, h = %v; the pattern tells %v", t.scaled, t.scales, t.h, solved), false
		}
		copy(t.scaled, solved)
	}
	t.weigh()
	if t.zeros == len(t.h) {
		wrong = "accepted with H = 0"
	}
	return wrong, !slices.Equal(solved, t.scaled)
}

// weigh says how well the integer gains weigh the devices.
func (t *truth) weigh() {
	t.zeros, t.misfit = 0, 0
	alpha := t.alpha()
	for i, h := range t.h {
		if t.scaled[i] == 0 {
			t.zeros++
		}
		t.misfit = math.Max(t.misfit, math.Abs(t.scaled[i]/alpha-h)/math.Abs(h))
	}
}

// near reports whether gains are next to alpha h_i, within what h_i is known to. A weak
// device, or two of nearly one gain, may be read as the integer beyond the nearest, and a
// frame by the integers of b, from which its own gains have moved: weights suffer, and the
// sum is one all the same.
func (t *truth) near(gains []float64) bool {
	const deviations, next = 6, 2
	for i, h := range t.h {
		alpha, factor := t.scales[i/t.group], float64(t.factors[i/t.group])
		if math.Abs(gains[i]/factor-alpha*h) > next+deviations*alpha*t.spread[i] {
			return false
		}
	}
	return true
}

// superposed returns sum_i H_i x_i.
func superposed(mod *zq.Modulus, h []float64, x []zq.Vector) zq.Vector {
	y := mod.NewVector(x[0].Len())
	for i := range x {
		mod.AddScaled(y, int64(h[i]), x[i])
	}
	return y
}

// measure finds h_i and their standard errors by regression of each group's soft symbols
// on the digits sent: delays, phases, retry gains and the modem's own are in them.
func (t *truth) measure(x []zq.Vector) error {
	for i := range x {
		n := x[i].Len() * t.codec.Digits()
		t.digits[i] = slices.Grow(t.digits[i][:0], n)[:n]
		t.codec.Split(t.digits[i], x[i])
	}
	for g := range t.soft {
		first := g * t.group
		if err := t.regress(g, first, min(first+t.group, len(x))); err != nil {
			return err
		}
	}
	return nil
}

// regress measures the devices of a group.
func (t *truth) regress(g, first, to int) error {
	n, soft := to-first, t.soft[g]
	gram, moment := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i, d := range t.digits[first:to] {
		for j := i; j < n; j++ {
			sum := 0
			for k, other := range t.digits[first+j] {
				sum += int(d[k]) * int(other)
			}
			gram.SetSym(i, j, float64(sum))
		}
		sum := 0.0
		for k, y := range soft {
			sum += float64(d[k]) * float64(y)
		}
		moment.SetVec(i, sum)
	}
	var factor mat.Cholesky
	if !factor.Factorize(gram) {
		return fmt.Errorf("the digits of %d devices over %d symbols are not independent: blocks must be longer", n, len(soft))
	}
	if err := factor.SolveVecTo(mat.NewVecDense(n, t.h[first:to]), moment); err != nil {
		return fmt.Errorf("measuring the gains: %w", err)
	}
	var inverse mat.SymDense
	if err := factor.InverseTo(&inverse); err != nil {
		return fmt.Errorf("measuring the gains' spread: %w", err)
	}
	variance := t.residual(soft, first, to)
	for i := range n {
		t.spread[first+i] = math.Sqrt(variance * inverse.At(i, i))
	}
	return nil
}

// residual returns the mean square of what a group's digits leave of its soft symbols.
func (t *truth) residual(soft []float32, first, to int) float64 {
	sum := 0.0
	for k, y := range soft {
		rest := float64(y)
		for i := first; i < to; i++ {
			rest -= t.h[i] * float64(t.digits[i][k])
		}
		sum += rest * rest
	}
	return sum / float64(len(soft))
}
