package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/dataset"
)

// TestCategorical compares with the textbook's formula by the standard library, and that of two
// classes with crossEntropy.
func TestCategorical(t *testing.T) {
	rnd := rand.New(rand.NewPCG(40, 41))
	for range 20000 {
		z := make([]float64, 2+rnd.IntN(255))
		scale := math.Exp(3 * rnd.NormFloat64())
		for c := range z {
			z[c] = scale * rnd.NormFloat64()
		}
		y := rnd.IntN(len(z))
		top, sum := slices.Max(z), 0.0
		for _, x := range z {
			sum += math.Exp(x - top)
		}
		want := math.Log(sum) + top - z[y]
		if got := categorical(z, uint8(y)); math.Abs(got-want) > 1e-13*(1+math.Abs(top)) {
			t.Fatalf("%d classes: %v, want %v", len(z), got, want)
		}
		two := z[:2]
		if got, want := categorical(two, 1), crossEntropy(z[1]-z[0], 1); math.Abs(got-want) > 1e-15*(1+want) {
			t.Fatalf("at %v: %v, with one logit %v", two, got, want)
		}
		probabilities(z)
		if got := math.Exp(-want); math.Abs(got-z[y]) > 1e-12 {
			t.Fatalf("probability %v, want %v", z[y], got)
		}
	}
	for _, z := range [][]float64{{0, math.NaN(), 1}, {math.Inf(1), math.Inf(1), 0}} {
		if got := categorical(z, 0); !math.IsNaN(got) {
			t.Errorf("the loss at %v is %v", z, got)
		}
	}
}

// Softmax regression whose first class has no weights is logistic regression.
func TestSoftmaxOfTwoIsLogistic(t *testing.T) {
	const features, samples = 9, 40
	rnd := rand.New(rand.NewPCG(42, 43))
	set := &dataset.Set{Dim: features, Classes: []string{"0", "1"}}
	for range samples {
		for range features {
			set.X = append(set.X, rnd.NormFloat64())
		}
		set.Y = append(set.Y, uint8(rnd.IntN(2)))
	}
	logistic, err := NewLogistic(features)
	if err != nil {
		t.Fatal(err)
	}
	softmax, err := NewSoftmax(features, 2)
	if err != nil {
		t.Fatal(err)
	}
	// wide has the weights and the bias of class 1, and zeros of class 0.
	wide := func(x []float64) []float64 {
		out := make([]float64, softmax.Dim())
		copy(out[features:], x[:features])
		out[2*features+1] = x[features]
		return out
	}
	theta, phi := randomVector(logistic.Dim(), 1, rnd), randomVector(logistic.Dim(), 1, rnd)
	batch := []int{3, 3, 7, 39, 0}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	a, b := logistic.NewWorker(), softmax.NewWorker()
	f, plus, minus := a.Losses(theta, phi, 0.3, set, batch)
	g, p, m := b.Losses(wide(theta), wide(phi), 0.3, set, batch)
	near("at theta", g, f)
	near("at theta + gamma phi", p, plus)
	near("at theta - gamma phi", m, minus)
	loss, correct := a.Evaluate(theta, set, 5, 33)
	l, n := b.Evaluate(wide(theta), set, 5, 33)
	near("evaluated", l, loss)
	if n != correct {
		t.Errorf("%d are right, want %d", n, correct)
	}
	one, other := make([]uint8, 28), make([]uint8, 28)
	a.(Classifier).Classify(one, theta, set, 5, 33)
	b.(Classifier).Classify(other, wide(theta), set, 5, 33)
	if !slices.Equal(one, other) || !slices.Contains(one, 1) || !slices.Contains(one, 0) {
		t.Errorf("taken for %v and %v", one, other)
	}
}

func TestNewSoftmax(t *testing.T) {
	for _, bad := range [][2]int{{0, 3}, {5, 1}, {5, 257}} {
		if _, err := NewSoftmax(bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), "allowed are") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	m, err := NewSoftmax(784, 10)
	if err != nil || m.Dim() != 7850 || Classes(BatchSum(m)) != 10 {
		t.Errorf("d = %d, %v", m.Dim(), err)
	}
}

// LeNet of ten classes has the logits of ten networks of two classes, with the same layers
// below, to the bit.
func TestLeNetOfTen(t *testing.T) {
	eachPath(t, func(t *testing.T, two *LeNet) {
		const classes = 10
		m := NewLeNet(two.path, classes)
		if m.Dim() != two.Dim()+85*(classes-1) || Classes(m) != classes {
			t.Fatalf("d = %d", m.Dim())
		}
		theta, phi, set := lenetCase(m, 70)
		for i := range set.Y {
			set.Y[i] = uint8(i % classes)
		}
		const gamma = 0.02
		below := two.Dim() - 85
		logits := func(sign float64) [][]float64 {
			all := make([][]float64, set.Len())
			for c := range classes {
				at := make([]float64, m.Dim())
				for j := range at {
					at[j] = theta[j] + float64(sign*float64(gamma*phi[j]))
				}
				one := slices.Concat(at[:below], at[below+84*c:][:84], at[below+84*classes+c:][:1])
				for i, u := range logitsOf(two.newWorker(), one, set) {
					all[i] = append(all[i], float64(u))
				}
			}
			return all
		}
		w := m.newWorker()
		batch := []int{69, 3, 12, 12}
		var want [3]float64
		for p, sign := range []float64{0, 1, -1} {
			at := logits(sign)
			for _, i := range batch {
				want[p] += categorical(at[i], set.Y[i])
			}
			want[p] /= float64(len(batch))
		}
		f, plus, minus := w.Losses(theta, phi, gamma, set, batch)
		if got := [3]float64{f, plus, minus}; got != want {
			t.Errorf("%v, want %v", got, want)
		}
		at, loss, right := logits(0), 0.0, 0
		classified := make([]uint8, 60)
		w.Classify(classified, theta, set, 5, 65)
		for i, class := range classified {
			loss += categorical(at[5+i], set.Y[5+i])
			if class != largest(at[5+i]) {
				t.Errorf("sample %d is taken for %d, want %d", 5+i, class, largest(at[5+i]))
			}
			if class == set.Y[5+i] {
				right++
			}
		}
		if l, n := w.Evaluate(theta, set, 5, 65); l != loss || n != right {
			t.Errorf("loss %v and %d right, want %v and %d", l, n, loss, right)
		}
	})
}

// What is kept from one direction to the next is that of the same theta and batches alone.
func TestSoftmaxBatches(t *testing.T) {
	const features, classes = 13, 5
	rnd := rand.New(rand.NewPCG(44, 45))
	m, err := NewSoftmax(features, classes)
	if err != nil {
		t.Fatal(err)
	}
	set := &dataset.Set{Dim: features, Classes: make([]string, classes)}
	for i := range 60 {
		set.X = append(set.X, randomVector(features, 1, rnd)...)
		set.Y = append(set.Y, uint8(i%classes))
	}
	w, fresh := m.NewWorker().(BatchesWorker), m.NewWorker()
	devices := [][]Batch{{{Samples: []int{5, 9, 59}}, {Samples: []int{0}}}, {{Samples: []int{7, 8, 9, 10}}}}
	for at := range uint64(4) {
		theta := randomVector(m.Dim(), 1, rnd)
		for device := range devices {
			for direction := range 3 {
				batches := devices[device]
				phi := randomVector(m.Dim(), 1, rnd)
				want := Want{F: direction == 0, Minus: direction != 1}
				w.Batches(Point{Theta: theta, Phi: phi, Gamma: 0.1, At: at}, set, batches, want)
				for _, b := range batches {
					f, plus, minus := Partial(fresh, want, theta, phi, 0.1, set, b.Samples)
					if b.F != f || b.Plus != plus || b.Minus != minus {
						t.Errorf("theta %d, device %d, direction %d: %v, %v, %v; want %v, %v, %v", at, device, direction, b.F, b.Plus, b.Minus, f, plus, minus)
					}
				}
			}
		}
	}
}

func BenchmarkSoftmaxDirections(b *testing.B) {
	const samples, directions = 128, 16
	m, err := NewSoftmax(784, 10)
	if err != nil {
		b.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(46, 47))
	set := randomSet(10*samples, 784, rnd)
	set.Classes = make([]string, 10)
	theta, phi := randomVector(m.Dim(), 1, rnd), randomVector(m.Dim(), 1, rnd)
	w := m.NewWorker().(BatchesWorker)
	batch := []Batch{{Samples: rnd.Perm(set.Len())[:samples]}}
	at := uint64(0)
	for b.Loop() {
		at++
		for range directions {
			w.Batches(Point{Theta: theta, Phi: phi, Gamma: 0.1, At: at}, set, batch, Want{Minus: true})
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/samples/directions, "ns/sample")
}
