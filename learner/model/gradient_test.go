package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
)

// The gradient is what central differences of the loss converge to: at step h
// they are off by h^2/6 of the third derivative, below 1e-9 here, and by rounding.
func TestGradientIsTheLossesSlope(t *testing.T) {
	const features, samples = 7, 23
	logistic, err := NewLogistic(features)
	if err != nil {
		t.Fatal(err)
	}
	softmax, err := NewSoftmax(features, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Model{logistic, softmax} {
		testGradient(t, m, samples)
	}
	for _, x := range []float64{-800, 800} {
		if y := logisticFunction(x); y != 0 && y != 1 {
			t.Errorf("the logistic function at %v is %v", x, y)
		}
	}
}

func testGradient(t *testing.T, m Model, samples int) {
	features := m.Features()
	rnd := rand.New(keystream.FromInteger(3).Stream())
	set := &dataset.Set{Dim: features, Classes: make([]string, Classes(m))}
	var batch []int
	for i := range samples {
		for range features {
			set.X = append(set.X, rnd.NormFloat64())
		}
		set.Y = append(set.Y, uint8(rnd.IntN(Classes(m))))
		batch = append(batch, i)
	}
	batch = append(batch, 0) // a sample may be drawn twice
	w := m.NewWorker().(GradientWorker)
	for _, scale := range []float64{0, 1, 40} { // 40: logits at which exp(-u) overflows without care
		theta, grad := make([]float64, m.Dim()), make([]float64, m.Dim())
		for j := range theta {
			theta[j] = scale * rnd.NormFloat64()
		}
		loss := w.Gradient(grad, theta, set, batch)
		unit := make([]float64, m.Dim())
		for j := range theta {
			clear(unit)
			unit[j] = 1
			const h = 1e-5
			f, plus, minus := w.Losses(theta, unit, h, set, batch)
			if math.Abs(f-loss) > 1e-12*math.Max(1, f) {
				t.Fatalf("loss %v, expected %v", loss, f)
			}
			if slope := (plus - minus) / (2 * h); math.Abs(slope-grad[j]) > 1e-6 {
				t.Errorf("%T, scale %v: component %d is %v, by differences %v", m, scale, j, grad[j], slope)
			}
		}
	}
}
