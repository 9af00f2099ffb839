package theory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"ringwave/learner"
)

// inBall draws a point of the ball in which the Lipschitz constant holds.
func inBall(p *Problem, rnd *rand.Rand) []float64 {
	x := make([]float64, p.Dim)
	for j := range x {
		x[j] = rnd.NormFloat64()
	}
	floats.Scale(p.Radius*math.Pow(rnd.Float64(), 1/float64(p.Dim))/floats.Norm(x, 2), x)
	floats.Add(x, p.Minimiser)
	return x
}

// TestProblemConstants compares gradients, L, b and the Lipschitz constant of
// both problems with finite differences of their values and losses.
func TestProblemConstants(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, p := range problems(t) {
		worker, phi := p.model.NewWorker(), make([]float64, p.Dim)
		local := func(shard []int) func([]float64) float64 {
			return func(x []float64) float64 {
				f, _, _ := worker.Losses(x, phi, 0, p.set, shard)
				return f
			}
		}
		var steepest, bend, whole float64
		for range 200 {
			theta := inBall(p, rnd)
			gradient := make([]float64, p.Dim)
			p.Gradient(gradient, theta)
			numeric := fd.Gradient(nil, p.value, theta, &fd.Settings{Formula: fd.Central})
			if d := floats.Distance(gradient, numeric, 2); d > 1e-6*(1+floats.Norm(numeric, 2)) {
				t.Fatalf("%s: the gradient at %v is %v; finite differences give %v", p.Name, theta, gradient, numeric)
			}
			whole = max(whole, largestCurvature(p.value, theta))
			sum := 0.0
			for _, shard := range p.shards {
				bend = max(bend, largestCurvature(local(shard), theta))
				sum += local(shard)(theta)
			}
			near(t, p.Name+": the sum of F_i", sum, p.value(theta), 1e-12)
			for s := range p.set.Len() {
				g := fd.Gradient(nil, local([]int{s}), theta, &fd.Settings{Formula: fd.Central})
				steepest = max(steepest, floats.Norm(g, 2))
			}
		}
		for _, x := range []struct {
			what        string
			found, held float64
		}{{"L of grad F", whole, p.Smoothness}, {"b", bend, p.HessianBound}, {"L of f_i", steepest, p.Lipschitz}} {
			t.Logf("%s: %s found %.4g, bound %.4g", p.Name, x.what, x.found, x.held)
			// Finite differences leave some 1e-5 of the second derivatives.
			if x.found > x.held*(1+1e-4) || x.found < x.held/4 {
				t.Errorf("%s: %s reaches %v; the bound %v must be above it, and of its size", p.Name, x.what, x.found, x.held)
			}
		}
	}
}

func largestCurvature(f func([]float64) float64, theta []float64) float64 {
	h := mat.NewSymDense(len(theta), nil)
	fd.Hessian(h, f, theta, &fd.Settings{Formula: fd.Central, Step: 1e-3})
	var e mat.EigenSym
	if !e.Factorize(h, false) {
		return math.NaN()
	}
	return slices.Max(e.Values(nil))
}

func TestMinimum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, p := range problems(t) {
		g := make([]float64, p.Dim)
		p.Gradient(g, p.Minimiser)
		t.Logf("%s: F* = %.15g, gradient %.2g, at most %.2g above the true minimum", p.Name, p.Minimum, floats.Norm(g, 2), p.Certificate)
		if floats.Norm(g, 2) > 1e-13 || p.Certificate > 1e-25 {
			t.Errorf("%s: the gradient at the minimiser is %v", p.Name, g)
		}
		for range 100 {
			if theta := inBall(p, rnd); p.value(theta) < p.Minimum {
				t.Errorf("%s: F is %v at %v, below its minimum %v", p.Name, p.value(theta), theta, p.Minimum)
			}
		}
		near(t, p.Name+": the gap", p.Gap, p.value(p.Start)-p.Minimum, 0)
		near(t, p.Name+": the radius", p.Radius, 1.5*floats.Distance(p.Start, p.Minimiser, 2), 1e-15)
	}
}

// TestExactStep compares one step of the recursion with the sum over all
// directions, from which E||e'||^2 = ||e||^2 - 2 eta <e, E[g]> + eta^2 E[||g||^2].
func TestExactStep(t *testing.T) {
	mu, _, omega := unequal()
	p := problems(t)[0]
	const eta, gamma, noise = 0.3, 0.07, 0.02
	mean, second, err := p.enumerate(p.Assumptions(mu, omega, noise), p.Start, gamma)
	if err != nil {
		t.Fatal(err)
	}
	e := make([]float64, p.Dim)
	floats.SubTo(e, p.Start, p.Minimiser)
	want := floats.Dot(e, e) - 2*eta*floats.Dot(e, mean) + eta*eta*second
	q := newMoments(p, mu, omega)
	q.step(eta, gamma, noise)
	near(t, "E||e||^2 after a step", mat.Trace(q.second), want, 1e-12)
	for j := range e {
		near(t, "E[e] after a step", q.mean[j], e[j]-eta*mean[j], 1e-11)
	}
}

// TestExactFloor compares the recursion over a long horizon with the limit in
// closed form.
func TestExactFloor(t *testing.T) {
	if testing.Short() {
		t.Skip("a million rounds")
	}
	p := problems(t)[0]
	mu, omega := []float64{1, 1, 1, 1}, []float64{2, 2, 2, 2}
	const eta0, gamma0, noise, rounds = 0.5, 0.1, 100, 1_000_000
	exact, err := p.Exact(mu, omega, noise, learner.HorizonLaw{X0: eta0, K: rounds}, learner.HorizonLaw{X0: gamma0, K: rounds}, rounds)
	if err != nil {
		t.Fatal(err)
	}
	limit, err := p.NoiseLimit(noise, eta0, gamma0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "E||grad F||^2 after a million rounds", exact[rounds-1], limit, 0.002)
	rho := rate(t, constants(t, p.Assumptions(mu, omega, noise)), p.Gap, eta0, gamma0).Rho
	if limit > rho/2 {
		t.Errorf("the limit is %v; it must be at most half of rho = %v", limit, rho)
	}
	logistic := problems(t)[1]
	if _, err := logistic.Exact(mu, omega, noise, nil, nil, 1); err != ErrNoClosedForm {
		t.Errorf("the logistic problem's course gives %v", err)
	}
	if _, err := logistic.NoiseLimit(noise, 1, 1); err != ErrNoClosedForm {
		t.Errorf("the logistic problem's limit gives %v", err)
	}
}
