package theory

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ringwave/learner/dataset"
)

// samplesOf makes a set of rows.
func samplesOf(rows ...[]float64) *dataset.Set {
	set := &dataset.Set{Dim: len(rows[0]), Y: make([]uint8, len(rows))}
	for _, r := range rows {
		set.X = append(set.X, r...)
	}
	return set
}

func smoothness(t *testing.T, set *dataset.Set, shards ...[]int) float64 {
	t.Helper()
	l, err := LogisticSmoothness(set, shards)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLogisticSmoothness has values by hand. Two samples (1, 0) and (0, 1) with the bias
// have the second moments [[1 0 1] [0 1 1] [1 1 2]], of eigenvalues 0, 1 and 3 and trace
// 4; each alone has 2.
func TestLogisticSmoothness(t *testing.T) {
	set := samplesOf([]float64{1, 0}, []float64{0, 1})
	near(t, "L of two samples on two devices", smoothness(t, set, []int{0}, []int{1}), 3.0/4, 1e-14)
	near(t, "L of two samples on one device", smoothness(t, set, []int{0, 1}), 3.0/8, 1e-14)
	near(t, "L of one sample", smoothness(t, set, []int{1}), 2.0/4, 1e-14)
	// A device's samples count by their mean: (1, 0) thrice is as once.
	more := samplesOf([]float64{1, 0}, []float64{0, 1}, []float64{1, 0}, []float64{1, 0})
	near(t, "L of unequal shards", smoothness(t, more, []int{0, 2, 3}, []int{1}), 3.0/4, 1e-14)
	if l, err := LogisticSmoothness(set, [][]int{{0}, nil}); err == nil {
		t.Errorf("with a device without samples L is %v", l)
	}
}

// TestLargestEigenvalue compares both ways of computing it, with features of either sign
// and with a spectrum that is nearly flat, which is the power method's worst.
func TestLargestEigenvalue(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 9))
	for name, shift := range map[string]float64{"about 0": 0, "about 1": 1} {
		const dim, count = 40, 400
		set := &dataset.Set{Dim: dim, Y: make([]uint8, count)}
		shards := make([][]int, 4)
		for i := range count {
			shards[i%4] = append(shards[i%4], i)
			for range dim {
				set.X = append(set.X, shift+rnd.NormFloat64())
			}
		}
		m, err := newMomentMatrix(set, shards)
		if err != nil {
			t.Fatal(err)
		}
		exact, err := m.largest()
		if err != nil {
			t.Fatal(err)
		}
		power := m.power()
		t.Logf("features %s: exact %v, by the power method %v, trace %v", name, exact, power, mat.Trace(m.dense()))
		if power > exact*(1+1e-12) || power/(1-powerError) < exact {
			t.Errorf("features %s: the power method gives %v and the bound %v; the eigenvalue %v must lie between", name, power, power/(1-powerError), exact)
		}
	}
}

// TestSmoothnessOfManyFeatures: above exactDim the bound is an upper one, and at most
// 1.43 times too large. The second moments of equal rows x are N (x, 1)(x, 1)^T.
func TestSmoothnessOfManyFeatures(t *testing.T) {
	row := make([]float64, exactDim+200)
	for j := range row {
		row[j] = float64(j%3) - 1
	}
	want := 1.0
	for _, x := range row {
		want += x * x
	}
	want *= 2.0 / 4
	got := smoothness(t, samplesOf(row, row), []int{0}, []int{1})
	if got < want || got > want/(1-powerError)*(1+1e-12) {
		t.Errorf("L is bounded by %v; it is %v", got, want)
	}
}
