package trial

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"ringwave/phy"
	"ringwave/phy/digit"
	"ringwave/phy/zq"
)

// truth compares what was accepted with what was sent. The receiver knows none of
// what it uses: the digits of each device.
type truth struct {
	codec  *digit.Codec
	digits [][]int8 // of each device
	soft   []float32
	alpha  float64
	h      []float64 // h_i as the receiver met them
	spread []float64 // their standard errors
	scaled []float64 // H_i
}

func newTruth(codec *digit.Codec, devices, coefficients int) *truth {
	t := &truth{codec: codec, h: make([]float64, devices), spread: make([]float64, devices), scaled: make([]float64, devices)}
	for range devices {
		t.digits = append(t.digits, make([]int8, coefficients*codec.Digits()))
	}
	t.soft = make([]float32, len(t.digits[0]))
	return t
}

// hear keeps the soft symbols of the coefficients of a frame that was read.
func (t *truth) hear(o phy.Observation) error {
	t.alpha = o.Alpha
	copy(t.soft, o.Soft)
	return nil
}

// verdict is how an accepted transmission compares with the truth.
type verdict struct {
	wrong         string
	misread       bool
	alpha, misfit float64
	zeros         int
}

// judge compares y, accepted, with the superposition of x. solved are the gains by
// which the received pattern is that of the devices, nil if there are none: the
// check of a block does not cover the pattern.
func (t *truth) judge(mod *zq.Modulus, solved []float64, x []zq.Vector, y zq.Vector) (verdict, error) {
	v := verdict{alpha: t.alpha}
	if err := t.measure(x); err != nil {
		return v, err
	}
	for i, h := range t.h {
		t.scaled[i] = math.RoundToEven(t.alpha * h)
	}
	if !superposed(mod, t.scaled, x).Equal(y) {
		// What lies midway between two integers may be read as either.
		if solved == nil || !t.near(solved) || !superposed(mod, solved, x).Equal(y) {
			v.wrong = fmt.Sprintf("accepted, and not the superposition with H = %v, alpha = %v, h = %v", t.scaled, t.alpha, t.h)
			return v, nil
		}
		copy(t.scaled, solved)
	}
	v.misread = !slices.Equal(solved, t.scaled)
	for i, h := range t.h {
		if t.scaled[i] == 0 {
			v.zeros++
		}
		v.misfit = math.Max(v.misfit, math.Abs(t.scaled[i]/t.alpha-h)/math.Abs(h))
	}
	if v.zeros == len(t.h) {
		v.wrong = "accepted with H = 0"
	}
	return v, nil
}

// near reports whether gains are those nearest to alpha h_i, within what h_i is known
// to.
func (t *truth) near(gains []float64) bool {
	const deviations = 6
	for i, h := range t.h {
		if math.Abs(gains[i]-t.alpha*h) > 0.5+deviations*t.alpha*t.spread[i] {
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

// measure finds h_i and their standard errors by regression of the soft symbols on
// the digits sent: delays, phases, retry gains and the modem's own are in them.
func (t *truth) measure(x []zq.Vector) error {
	n := len(x)
	for i := range x {
		t.codec.Split(t.digits[i], x[i])
	}
	gram, moment := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i, d := range t.digits {
		for j := i; j < n; j++ {
			sum := 0
			for k, other := range t.digits[j] {
				sum += int(d[k]) * int(other)
			}
			gram.SetSym(i, j, float64(sum))
		}
		sum := 0.0
		for k, y := range t.soft {
			sum += float64(d[k]) * float64(y)
		}
		moment.SetVec(i, sum)
	}
	var factor mat.Cholesky
	if !factor.Factorize(gram) {
		return fmt.Errorf("the digits of %d devices over %d symbols are not independent: blocks must be longer", n, len(t.soft))
	}
	if err := factor.SolveVecTo(mat.NewVecDense(n, t.h), moment); err != nil {
		return fmt.Errorf("measuring the gains: %w", err)
	}
	var inverse mat.SymDense
	if err := factor.InverseTo(&inverse); err != nil {
		return fmt.Errorf("measuring the gains' spread: %w", err)
	}
	variance := t.residual()
	for i := range t.spread {
		t.spread[i] = math.Sqrt(variance * inverse.At(i, i))
	}
	return nil
}

// residual returns the mean square of what the devices' digits leave of the soft
// symbols.
func (t *truth) residual() float64 {
	sum := 0.0
	for k, y := range t.soft {
		rest := float64(y)
		for i, d := range t.digits {
			rest -= t.h[i] * float64(d[k])
		}
		sum += rest * rest
	}
	return sum / float64(len(t.soft))
}
