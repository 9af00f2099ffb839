package theory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// Problem is a federated task of which the analysis' constants are known: F =
// sum_i F_i over N devices, F_i the mean loss of the device's samples, each round
// on a batch of them. It is safe for concurrent use.
//
// Neither of the two problems meets Assumption 3.2 on all of R^d: a function with
// a quadratic part has no Lipschitz constant there. Lipschitz holds within a ball
// about the minimiser, and Verify tells how far from it the runs went.
type Problem struct {
	Name string
	// Dim is d, Devices N, Batch the samples of a batch.
	Dim, Devices, Batch int
	// Start is theta_0, Minimiser theta*, of length d.
	Start, Minimiser []float64
	// Gap is F(theta_0) - F*, Minimum F*.
	Gap, Minimum float64
	// Certificate bounds how far the computed Minimum is above the true one: by
	// strong convexity at most ||grad F||^2/(2 times the least curvature).
	Certificate float64
	// Smoothness is L of Assumption 3.1, HessianBound is b: both hold everywhere.
	Smoothness, HessianBound float64
	// Lipschitz is L of Assumption 3.2 within Radius of the minimiser.
	Lipschitz, Radius float64

	model  model.Model
	set    *dataset.Set
	shards [][]int
	// addGradient adds grad F(theta) to dst; value is F.
	addGradient func(dst, theta []float64)
	value       func(theta []float64) float64
	// curvature is the diagonal Hessian that all samples of a quadratic share; nil
	// for another problem.
	curvature []float64
}

// The shape of the test problems: few dimensions, so that b_2^4 = d^2 does not
// make the bound say less than is known before the first round, and devices whose
// samples differ, so that no single point is best for all of them.
const (
	problemDim     = 5
	problemDevices = 4
	problemSamples = 16 // of a device
	problemBatch   = 4
	// reach is the ball's radius against the start's distance from the minimiser.
	reach = 1.5
)

// Gradient writes grad F(theta) to dst. Both have length d.
func (p *Problem) Gradient(dst, theta []float64) {
	clear(dst)
	p.addGradient(dst, theta)
}

// Assumptions returns the problem's constants for +-1 directions, with what the
// uplink adds: the gains' moments, one a device, and the decoded noise variance.
func (p *Problem) Assumptions(mu, omega []float64, decodedVariance float64) Assumptions {
	return Assumptions{
		Smoothness: p.Smoothness, Lipschitz: p.Lipschitz, HessianBound: p.HessianBound,
		B1: 1, B2: math.Sqrt(float64(p.Dim)), Mu: mu, Omega: omega, DecodedVariance: decodedVariance,
	}
}

// finish computes what follows from the minimiser.
func (p *Problem) finish(leastCurvature float64) {
	p.Minimum = p.value(p.Minimiser)
	p.Gap = p.value(p.Start) - p.Minimum
	g := make([]float64, p.Dim)
	p.Gradient(g, p.Minimiser)
	p.Certificate = floats.Dot(g, g) / (2 * leastCurvature)
	p.Radius = reach * floats.Distance(p.Start, p.Minimiser, 2)
}

// drawSamples returns every device's samples: each feature uniform in an interval of
// a device's own, within [0, 1].
func drawSamples(features int, seed keystream.Seed) (*dataset.Set, [][]int) {
	rnd := rand.New(seed.Derive("samples").Stream())
	set := &dataset.Set{Dim: features, Shape: []int{features}, Classes: []string{"0", "1"}}
	shards := make([][]int, problemDevices)
	for i := range shards {
		low := make([]float64, features)
		for j := range low {
			low[j] = 0.5 * rnd.Float64()
		}
		for range problemSamples {
			shards[i] = append(shards[i], set.Len())
			set.Y = append(set.Y, 0)
			for j := range low {
				set.X = append(set.X, low[j]+0.5*rnd.Float64())
			}
		}
	}
	return set, shards
}

// NewQuadratic returns the sum of quadratics, model.Quadratic with curvatures from
// 0.6 to 1, started far from its minimiser. Of it all is known in closed form,
// the course of E||grad F||^2 included: see Exact.
func NewQuadratic(seed keystream.Seed) (*Problem, error) {
	curvature, start := make([]float64, problemDim), make([]float64, problemDim)
	for j := range curvature {
		curvature[j] = 0.6 + 0.4*float64(j)/(problemDim-1)
		start[j] = 2
	}
	m, err := model.NewQuadratic(curvature, start)
	if err != nil {
		return nil, fmt.Errorf("the quadratic test problem: %w", err)
	}
	set, shards := drawSamples(problemDim, seed)
	p := &Problem{
		Name: "quadratic", Dim: problemDim, Devices: problemDevices, Batch: problemBatch, Start: start,
		// The shards are of one size: the best point is the mean of all samples.
		Minimiser: meanOf(set, 0, set.Len()),
		// Each F_i has the Hessian diag(a), F has N times that.
		Smoothness: problemDevices * slices.Max(curvature), HessianBound: slices.Max(curvature),
		model: m, set: set, shards: shards, curvature: curvature,
	}
	p.addGradient = func(dst, theta []float64) {
		for j, a := range curvature {
			dst[j] += problemDevices * a * (theta[j] - p.Minimiser[j])
		}
	}
	worker := m.NewWorker() // it has no memory of its own
	p.value = func(theta []float64) float64 {
		sum, _ := worker.Evaluate(theta, set, 0, set.Len())
		return sum / problemSamples
	}
	p.finish(problemDevices * slices.Min(curvature))
	// ||A(theta - x)|| <= a_max ||theta - theta*|| + ||A(theta* - x)||.
	furthest := 0.0
	for i := range set.Len() {
		furthest = max(furthest, weightedDistance(curvature, p.Minimiser, set.Row(i)))
	}
	p.Lipschitz = slices.Max(curvature)*p.Radius + furthest
	return p, nil
}

func meanOf(set *dataset.Set, from, to int) []float64 {
	mean := make([]float64, set.Dim)
	for i := from; i < to; i++ {
		floats.AddScaled(mean, 1/float64(to-from), set.Row(i))
	}
	return mean
}

// weightedDistance returns ||A(x - y)|| for A = diag(a).
func weightedDistance(a, x, y []float64) float64 {
	sum := 0.0
	for j := range a {
		d := a[j] * (x[j] - y[j])
		sum += d * d
	}
	return math.Sqrt(sum)
}

// ridgeWeight is lambda of the logistic problem's regularisation lambda/2
// ||theta||^2 of each sample's loss.
const ridgeWeight = 0.1

// NewLogistic returns logistic regression with regularisation: model.Logistic plus
// lambda/2 ||theta||^2. Its minimum is found by Newton's method.
//
// L and b are those of LogisticSmoothness, of all devices together and of the worst of
// them alone, and lambda for each device.
func NewLogistic(seed keystream.Seed) (*Problem, error) {
	const features = problemDim - 1
	logistic, err := model.NewLogistic(features)
	if err != nil {
		return nil, fmt.Errorf("the logistic test problem: %w", err)
	}
	set, shards := drawSamples(features, seed)
	drawClasses(set, seed)
	start := make([]float64, problemDim)
	for j := range start {
		start[j] = 4
	}
	m := &ridge{inner: logistic, lambda: ridgeWeight, start: start}
	p := &Problem{
		Name: "logistic", Dim: problemDim, Devices: problemDevices, Batch: problemBatch, Start: start,
		model: m, set: set, shards: shards,
	}
	if p.Smoothness, err = LogisticSmoothness(set, shards); err != nil {
		return nil, fmt.Errorf("the logistic test problem: %w", err)
	}
	p.Smoothness += problemDevices * ridgeWeight
	for i := range shards {
		b, err := LogisticSmoothness(set, shards[i:i+1])
		if err != nil {
			return nil, fmt.Errorf("the logistic test problem: %w", err)
		}
		p.HessianBound = max(p.HessianBound, b+ridgeWeight)
	}
	p.addGradient = func(dst, theta []float64) {
		for i := range set.Len() {
			addLogisticGradient(dst, theta, set.Row(i), set.Y[i])
		}
		floats.Scale(1.0/problemSamples, dst)
		floats.AddScaled(dst, problemDevices*ridgeWeight, theta)
	}
	worker := m.NewWorker() // it has no memory of its own
	p.value = func(theta []float64) float64 {
		sum, _ := worker.Evaluate(theta, set, 0, set.Len())
		return sum / problemSamples
	}
	if p.Minimiser, err = newton(p, start); err != nil {
		return nil, fmt.Errorf("the logistic test problem: %w", err)
	}
	p.finish(problemDevices * ridgeWeight)
	// The gradient of a sample's loss is (x, 1) times a number of at most 1, plus
	// lambda theta.
	longest := 0.0
	for i := range set.Len() {
		x := set.Row(i)
		longest = max(longest, math.Sqrt(floats.Dot(x, x)+1))
	}
	p.Lipschitz = longest + ridgeWeight*(floats.Norm(p.Minimiser, 2)+p.Radius)
	return p, nil
}

// drawClasses draws classes that a logistic model would give, so that they are
// neither separable nor random.
func drawClasses(set *dataset.Set, seed keystream.Seed) {
	rnd := rand.New(seed.Derive("classes").Stream())
	for i := range set.Y {
		u := 0.0
		for j, x := range set.Row(i) {
			u += 3 * float64(1-2*(j%2)) * (x - 0.5)
		}
		if rnd.Float64() < logisticOf(u) {
			set.Y[i] = 1
		}
	}
}

func logisticOf(u float64) float64 { return 1 / (1 + math.Exp(-u)) }

func logit(theta, x []float64) float64 { return floats.Dot(x, theta[:len(x)]) + theta[len(x)] }

func addLogisticGradient(dst, theta, x []float64, y uint8) {
	r := logisticOf(logit(theta, x)) - float64(y)
	floats.AddScaled(dst[:len(x)], r, x)
	dst[len(x)] += r
}

// newtonSteps is far more than Newton's method needs.
const newtonSteps = 100

// newton returns the minimiser of the logistic problem: steps are halved until F
// falls, and the method ends where the gradient is rounding or falls no more.
func newton(p *Problem, start []float64) ([]float64, error) {
	d := p.Dim
	theta, gradient, next := slices.Clone(start), make([]float64, d), make([]float64, d)
	step := mat.NewVecDense(d, nil)
	for range newtonSteps {
		p.Gradient(gradient, theta)
		norm := floats.Norm(gradient, 2)
		if norm <= 1e-14 {
			return theta, nil
		}
		var factor mat.Cholesky
		if !factor.Factorize(logisticHessian(p, theta)) {
			return nil, fmt.Errorf("minimising by Newton's method: the Hessian is not positive definite")
		}
		if err := factor.SolveVecTo(step, mat.NewVecDense(d, gradient)); err != nil {
			return nil, fmt.Errorf("minimising by Newton's method: %w", err)
		}
		if !descend(p, next, theta, step.RawVector().Data, norm) {
			if norm > 1e-12 {
				return nil, fmt.Errorf("minimising by Newton's method: it stands still at a gradient of norm %v", norm)
			}
			return theta, nil
		}
		theta, next = next, theta
	}
	return nil, fmt.Errorf("minimising by Newton's method: it did not end in %d steps", newtonSteps)
}

// descend writes theta less the step to next, halved until F falls by a share of
// what its slope promises or, where F's rounding hides that, until the gradient gets
// shorter. It tells whether any step did.
func descend(p *Problem, next, theta, step []float64, norm float64) bool {
	g := make([]float64, p.Dim)
	p.Gradient(g, theta)
	before, promised := p.value(theta), floats.Dot(g, step)
	for scale := 1.0; scale > 1e-6; scale /= 2 {
		floats.AddScaledTo(next, theta, -scale, step)
		if norm > 1e-6 {
			if p.value(next) <= before-1e-4*scale*promised {
				return true
			}
			continue
		}
		p.Gradient(g, next)
		if floats.Norm(g, 2) < norm {
			return true
		}
	}
	return false
}

func logisticHessian(p *Problem, theta []float64) *mat.SymDense {
	d := p.Dim
	h := mat.NewSymDense(d, nil)
	x := mat.NewVecDense(d, nil)
	for i := range p.set.Len() {
		row := p.set.Row(i)
		copy(x.RawVector().Data, row)
		x.SetVec(d-1, 1)
		s := logisticOf(logit(theta, row))
		h.SymRankOne(h, s*(1-s)/problemSamples, x)
	}
	for j := range d {
		h.SetSym(j, j, h.At(j, j)+problemDevices*ridgeWeight)
	}
	return h
}

// ridge is a model with lambda/2 ||theta||^2 added to the loss of every sample,
// and a start of its own.
type ridge struct {
	inner  model.Model
	lambda float64
	start  []float64
}

func (m *ridge) Dim() int                           { return m.inner.Dim() }
func (m *ridge) Features() int                      { return m.inner.Features() }
func (m *ridge) Init(theta []float64, _ *rand.Rand) { copy(theta, m.start) }
func (m *ridge) NewWorker() model.Worker            { return ridgeWorker{m.inner.NewWorker(), m.lambda} }

type ridgeWorker struct {
	inner  model.Worker
	lambda float64
}

func (w ridgeWorker) Losses(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) (f, plus, minus float64) {
	f, plus, minus = w.inner.Losses(theta, phi, gamma, set, batch)
	for j, x := range theta {
		step := gamma * phi[j]
		f += w.lambda / 2 * x * x
		plus += w.lambda / 2 * (x + step) * (x + step)
		minus += w.lambda / 2 * (x - step) * (x - step)
	}
	return f, plus, minus
}

func (w ridgeWorker) Evaluate(theta []float64, set *dataset.Set, from, to int) (loss float64, correct int) {
	loss, correct = w.inner.Evaluate(theta, set, from, to)
	return loss + float64(to-from)*w.lambda/2*floats.Dot(theta, theta), correct
}
