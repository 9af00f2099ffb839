package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestQuadraticAgainstItsGradient(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	curvature, start := []float64{0.5, 1, 3}, []float64{2, -1, 0}
	m, err := NewQuadratic(curvature, start)
	if err != nil {
		t.Fatal(err)
	}
	theta, phi := make([]float64, m.Dim()), randomVector(m.Dim(), 1, rnd)
	m.Init(theta, nil)
	set := randomSet(7, m.Features(), rnd)
	const gamma = 0.25
	f, plus, minus := m.NewWorker().Losses(theta, phi, gamma, set, all(7))

	// For a quadratic the two-point difference is exactly 2 gamma <grad, phi>, and
	// the sum exactly 2 f + gamma^2 <phi, A phi>.
	var slope, bend float64
	for j, a := range curvature {
		mean := 0.0
		for i := range 7 {
			mean += set.Row(i)[j] / 7
		}
		slope += a * (theta[j] - mean) * phi[j]
		bend += a * phi[j] * phi[j]
	}
	if got, want := plus-minus, 2*gamma*slope; math.Abs(got-want) > 1e-13*(plus+minus) {
		t.Errorf("f(theta+gamma phi) - f(theta-gamma phi) is %v; it must be %v", got, want)
	}
	if got, want := plus+minus, 2*f+gamma*gamma*bend; math.Abs(got-want) > 1e-13*got {
		t.Errorf("f(theta+gamma phi) + f(theta-gamma phi) is %v; it must be %v", got, want)
	}
	loss, correct := m.NewWorker().Evaluate(theta, set, 0, 7)
	if math.Abs(loss/7-f) > 1e-14*f || correct != 0 {
		t.Errorf("Evaluate gives a mean loss of %v and %d correct; it must be %v and 0", loss/7, correct, f)
	}
}

func TestQuadraticRefuses(t *testing.T) {
	for _, c := range []struct{ curvature, start []float64 }{
		{nil, nil},
		{[]float64{1}, []float64{1, 2}},
		{[]float64{0}, []float64{1}},
		{[]float64{math.NaN()}, []float64{1}},
		{[]float64{math.Inf(1)}, []float64{1}},
		{[]float64{1}, []float64{math.NaN()}},
	} {
		if _, err := NewQuadratic(c.curvature, c.start); err == nil {
			t.Errorf("curvatures %v from %v were taken", c.curvature, c.start)
		}
	}
}
