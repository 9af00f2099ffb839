package model

import (
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"ringwave/learner/dataset"
)

// randomSet draws n samples of dim features with classes at random.
func randomSet(n, dim int, rnd *rand.Rand) *dataset.Set {
	set := &dataset.Set{X: make([]float64, n*dim), Y: make([]uint8, n), Dim: dim, Shape: []int{dim}, Classes: []string{"0", "1"}}
	for i := range set.X {
		set.X[i] = rnd.Float64()
	}
	for i := range set.Y {
		set.Y[i] = uint8(rnd.IntN(2))
	}
	return set
}

func randomVector(n int, scale float64, rnd *rand.Rand) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = scale * rnd.NormFloat64()
	}
	return v
}

func all(n int) []int {
	batch := make([]int, n)
	for i := range batch {
		batch[i] = i
	}
	return batch
}

func newLogistic(t testing.TB, features int) *Logistic {
	t.Helper()
	m, err := NewLogistic(features)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// exactLoss is the mean cross-entropy at theta + gamma*phi, with the logit
// computed without rounding and the loss as -log p or -log(1-p), the smaller of
// which is written so that it does not cancel.
func exactLoss(theta, phi []float64, gamma float64, set *dataset.Set, batch []int) float64 {
	exact := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
	sum := exact(0)
	for _, i := range batch {
		u := exact(0)
		for j := range theta {
			x := 1.0
			if j < set.Dim {
				x = set.Row(i)[j]
			}
			w := exact(gamma)
			w.Mul(w, exact(phi[j])).Add(w, exact(theta[j])).Mul(w, exact(x))
			u.Add(u, w)
		}
		logit, _ := u.Float64()
		if set.Y[i] == 1 {
			logit = -logit
		}
		// log(1+exp(logit)): where exp would overflow the 1 is far below its
		// last bit.
		loss := logit
		if logit < 700 {
			loss = math.Log1p(math.Exp(logit))
		}
		sum.Add(sum, exact(loss))
	}
	total, _ := sum.Float64()
	return total / float64(len(batch))
}

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*(1+math.Abs(want))
}

func TestLossesAgainstFormula(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{0, 0.01, 1, 100, 1e4} {
		set := randomSet(40, 33, rnd)
		m := newLogistic(t, 33)
		theta, phi := randomVector(m.Dim(), scale, rnd), randomVector(m.Dim(), 1, rnd)
		batch := []int{3, 39, 0, 17, 17, 8}
		gamma := 0.05 + scale/10
		f, plus, minus := m.NewWorker().Losses(theta, phi, gamma, set, batch)
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"f", f, exactLoss(theta, phi, 0, set, batch)},
			{"plus", plus, exactLoss(theta, phi, gamma, set, batch)},
			{"minus", minus, exactLoss(theta, phi, -gamma, set, batch)},
		} {
			if !near(c.got, c.want, 1e-12) {
				t.Errorf("scale %v: %s is %v, want %v", scale, c.name, c.got, c.want)
			}
		}
	}
}

func TestSoftplus(t *testing.T) {
	for _, c := range []struct{ t, want float64 }{
		{0, math.Ln2}, {1e308, 1e308}, {-1e308, 0}, {-800, 0}, {-50, math.Exp(-50)}, {50, 50}, {1, math.Log(1 + math.E)},
	} {
		if got := softplus(c.t); !near(got, c.want, 1e-15) {
			t.Errorf("softplus(%v) is %v, want %v", c.t, got, c.want)
		}
	}
}

// gradient is the analytic gradient of the mean cross-entropy: the mean of
// (p - y) x, with 1 as the last feature.
func gradient(theta []float64, set *dataset.Set, batch []int) []float64 {
	g := make([]float64, len(theta))
	for _, i := range batch {
		u := theta[set.Dim]
		for j, x := range set.Row(i) {
			u += theta[j] * x
		}
		e := (1/(1+math.Exp(-u)) - float64(set.Y[i])) / float64(len(batch))
		for j, x := range set.Row(i) {
			g[j] += e * x
		}
		g[set.Dim] += e
	}
	return g
}

// checkDirectional compares (plus-minus)/(2 gamma) with the analytic derivative
// along phi. The logistic loss has a third derivative of at most 1/(6 sqrt 3) in
// the logit, so that the difference is at most gamma^2/6 times that times the
// largest |phi.x|^3, plus rounding of about 1e-16/gamma.
func checkDirectional(t *testing.T, w Worker, theta, phi []float64, set *dataset.Set, batch []int) {
	t.Helper()
	const gamma = 1e-4
	_, plus, minus := w.Losses(theta, phi, gamma, set, batch)
	var want, steepest float64
	for j, g := range gradient(theta, set, batch) {
		want += g * phi[j]
	}
	for _, i := range batch {
		slope := phi[set.Dim]
		for j, x := range set.Row(i) {
			slope += phi[j] * x
		}
		steepest = max(steepest, math.Abs(slope))
	}
	bound := gamma*gamma/6/(6*math.Sqrt(3))*math.Pow(steepest, 3) + 1e-11
	if got := (plus - minus) / (2 * gamma); math.Abs(got-want) > bound {
		t.Errorf("the two-point difference is %v, the derivative %v, the bound on their distance %v", got, want, bound)
	}
}

func TestLossesAgainstGradient(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	set := randomSet(64, 20, rnd)
	m := newLogistic(t, 20)
	theta := randomVector(m.Dim(), 0.5, rnd)
	for j := range m.Dim() {
		unit := make([]float64, m.Dim())
		unit[j] = 1
		checkDirectional(t, m.NewWorker(), theta, unit, set, all(64))
	}
	checkDirectional(t, m.NewWorker(), theta, randomVector(m.Dim(), 1, rnd), set, all(64))
}

func TestLossesAgainstGradientOnMNIST(t *testing.T) {
	root := os.Getenv("RINGWAVE_DATA")
	if root == "" {
		t.Skip("RINGWAVE_DATA not set: it names the folder with the MNIST files")
	}
	source, err := dataset.Find("mnist", []string{root})
	if err != nil {
		t.Fatal(err)
	}
	task, err := source.Load([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	m := newLogistic(t, task.Train.Dim)
	for range 5 {
		phi := make([]float64, m.Dim())
		for j := range phi {
			phi[j] = float64(1 - 2*rnd.IntN(2))
		}
		checkDirectional(t, m.NewWorker(), randomVector(m.Dim(), 0.05, rnd), phi, task.Train, all(task.Train.Len()))
	}
}

func TestEvaluate(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	set := randomSet(50, 6, rnd)
	m := newLogistic(t, 6)
	w := m.NewWorker()
	theta := randomVector(m.Dim(), 2, rnd)
	loss, correct := w.Evaluate(theta, set, 10, 30)
	batch := all(50)[10:30]
	if want := 20 * exactLoss(theta, theta, 0, set, batch); !near(loss, want, 1e-12) {
		t.Errorf("the loss is %v, want %v", loss, want)
	}
	want := 0
	for _, i := range batch {
		u := theta[6]
		for j, x := range set.Row(i) {
			u += theta[j] * x
		}
		if (u > 0) == (set.Y[i] == 1) {
			want++
		}
	}
	if correct != want {
		t.Errorf("%d are correct, want %d", correct, want)
	}
}

// The decision is at the logit 0, which belongs to class 0.
func TestLogisticDecision(t *testing.T) {
	set := randomSet(31, 2, rand.New(rand.NewPCG(7, 8)))
	ones := 0
	for _, y := range set.Y {
		ones += int(y)
	}
	for logit, want := range map[float64]int{1e-9: ones, 0: 31 - ones, -1e-9: 31 - ones} {
		if _, correct := newLogistic(t, 2).NewWorker().Evaluate([]float64{0, 0, logit}, set, 0, 31); correct != want {
			t.Errorf("at the logit %v %d of 31 are correct, want %d", logit, correct, want)
		}
	}
}

func TestLogistic(t *testing.T) {
	m := newLogistic(t, 784)
	if m.Dim() != 785 || m.Features() != 784 {
		t.Errorf("d is %d for %d features", m.Dim(), m.Features())
	}
	theta := []float64{1, 2}
	m.Init(theta, nil)
	if theta[0] != 0 || theta[1] != 0 {
		t.Errorf("theta starts at %v", theta)
	}
	if _, err := NewLogistic(0); err == nil {
		t.Error("no feature gave no error")
	}
	rnd := rand.New(rand.NewPCG(9, 10))
	set := randomSet(10, 784, rnd)
	phi := randomVector(785, 1, rnd)
	w := m.NewWorker()
	batch := all(10)
	if n := testing.AllocsPerRun(10, func() { w.Losses(phi, phi, 0.1, set, batch) }); n != 0 {
		t.Errorf("Losses allocates %v times", n)
	}
}

func BenchmarkLosses(b *testing.B) {
	rnd := rand.New(rand.NewPCG(11, 12))
	set := randomSet(4000, 784, rnd)
	m := newLogistic(b, 784)
	theta, phi := randomVector(785, 1, rnd), randomVector(785, 1, rnd)
	w := m.NewWorker()
	batch := rnd.Perm(4000)[:128]
	b.ReportAllocs()
	for b.Loop() {
		w.Losses(theta, phi, 0.05, set, batch)
	}
}
