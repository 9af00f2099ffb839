package theory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"ringwave/learner/dataset"
)

// A moment matrix of more dimensions than exactDim takes its largest eigenvalue from
// powerSteps steps of the power method. From a random start the quotient found is below
// 1-powerError times the eigenvalue with a probability of at most 0.824 sqrt(d)
// (1-powerError)^(powerSteps-1/2), whatever the spectrum (Kuczynski and Wozniakowski,
// 1992): 2*10^-8 at d = 10,000. Divided by 1-powerError it is then no less than the
// eigenvalue, and at most 1/(1-powerError) times it.
const (
	exactDim   = 1_000
	powerSteps = 64
	powerError = 0.3
)

// LogisticSmoothness returns L of Assumption 3.1 for logistic regression of F = sum_i F_i,
// F_i the mean loss of the samples of shard i: a quarter of the largest eigenvalue of
// sum_i mean_{shard i} (x, 1)(x, 1)^T, as the Hessian of a sample's loss is at most
// (x, 1)(x, 1)^T/4. (The matrix' trace, the sum of the mean ||(x, 1)||^2, bounds it,
// too, by up to d times as much.) Of more than 1,000 dimensions it is up to 1.43 times
// that, and less than it with a probability of 2*10^-8 at 10,000 dimensions.
func LogisticSmoothness(set *dataset.Set, shards [][]int) (float64, error) {
	m, err := newMomentMatrix(set, shards)
	if err != nil {
		return 0, fmt.Errorf("the smoothness of logistic regression: %w", err)
	}
	largest, err := m.largest()
	if err != nil {
		return 0, fmt.Errorf("the smoothness of logistic regression: %w", err)
	}
	return largest / 4, nil
}

// momentMatrix is sum_s weight_s (x_s, 1)(x_s, 1)^T.
type momentMatrix struct {
	set     *dataset.Set
	samples []int
	weights []float64
}

func newMomentMatrix(set *dataset.Set, shards [][]int) (momentMatrix, error) {
	m := momentMatrix{set: set}
	for i, shard := range shards {
		if len(shard) == 0 {
			return m, fmt.Errorf("device %d has no sample; allowed is one or more", i+1)
		}
		for _, s := range shard {
			m.samples, m.weights = append(m.samples, s), append(m.weights, 1/float64(len(shard)))
		}
	}
	return m, nil
}

func (m momentMatrix) dim() int { return m.set.Dim + 1 }

// largest returns the largest eigenvalue: exactly, or as exactDim says.
func (m momentMatrix) largest() (float64, error) {
	if m.dim() > exactDim {
		return m.power() / (1 - powerError), nil
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(m.dense(), false) {
		return 0, fmt.Errorf("the eigenvalues of the samples' second moments did not come out")
	}
	return slices.Max(eigen.Values(nil)), nil
}

// dense returns the matrix. Most pixels of an image may be 0: those are left out.
func (m momentMatrix) dense() *mat.SymDense {
	d := m.dim()
	out := mat.NewSymDense(d, nil)
	raw := out.RawSymmetric()
	used := make([]int, 0, d)
	x := make([]float64, d)
	for k, s := range m.samples {
		copy(x, m.set.Row(s))
		x[d-1] = 1
		used = used[:0]
		for j, v := range x {
			if v != 0 {
				used = append(used, j)
			}
		}
		for a, j := range used {
			row, v := raw.Data[j*raw.Stride:], m.weights[k]*x[j]
			for _, l := range used[a:] {
				row[l] += v * x[l]
			}
		}
	}
	return out
}

// power returns the quotient after powerSteps steps. The start is the same each time, and
// no set was made to be at odds with it.
func (m momentMatrix) power() float64 {
	rnd := rand.New(rand.NewPCG(1, 2))
	v, next := make([]float64, m.dim()), make([]float64, m.dim())
	for j := range v {
		v[j] = rnd.NormFloat64()
	}
	quotient := 0.0
	for range powerSteps {
		norm := floats.Norm(v, 2)
		if norm == 0 || math.IsInf(norm, 0) {
			return quotient
		}
		floats.Scale(1/norm, v)
		m.times(next, v)
		quotient = floats.Dot(v, next)
		v, next = next, v
	}
	return quotient
}

// times writes the matrix times v to dst.
func (m momentMatrix) times(dst, v []float64) {
	clear(dst)
	last := len(v) - 1
	for k, s := range m.samples {
		x := m.set.Row(s)
		u := m.weights[k] * (floats.Dot(x, v[:last]) + v[last])
		floats.AddScaled(dst[:last], u, x)
		dst[last] += u
	}
}
