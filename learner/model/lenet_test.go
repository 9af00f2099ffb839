package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"ringwave/crypto/vector"
	"ringwave/learner/dataset"
)

// eachPath runs a test on every path that this processor has.
func eachPath(t *testing.T, test func(t *testing.T, m *LeNet)) {
	for _, p := range vector.Paths() {
		t.Run(p.String(), func(t *testing.T) {
			if lacking := p.Lacks(); lacking != "" {
				t.Skipf("SKIPPED: %s did not run: this processor lacks %s", p, lacking)
			}
			test(t, NewLeNet(p, 2))
		})
	}
}

// lenetCase returns a network that has biases, and samples around 0.
func lenetCase(m *LeNet, samples int) (theta, phi []float64, set *dataset.Set) {
	rnd := rand.New(rand.NewPCG(20, 21))
	set = randomSet(samples, m.Features(), rnd)
	for i := range set.X {
		set.X[i] = 4*set.X[i] - 2
	}
	theta = make([]float64, m.Dim())
	m.Init(theta, rnd)
	for j := range theta {
		theta[j] += 0.02 * rnd.NormFloat64()
	}
	return theta, randomVector(m.Dim(), 1, rnd), set
}

// logitsOf returns the logits as the Worker has them.
func logitsOf(w *lenetWorker, theta []float64, set *dataset.Set) []float32 {
	w.pack(theta, theta, 0, Want{F: true, Minus: true})
	var logits []float32
	for from := 0; from < set.Len(); from += len(w.index) {
		samples := all(set.Len())[from:min(from+len(w.index), set.Len())]
		w.gather(set, samples)
		logits = append(logits, w.forward(w.weights[0])[:len(samples)]...)
	}
	return logits
}

// naiveLogit is the network written down in float32.
func naiveLogit(theta []float32, x []float32) float32 {
	take := func(n int) []float32 {
		part := theta[:n]
		theta = theta[n:]
		return part
	}
	x = naiveConvolution(take(6*75), take(6), x, 3, 32)
	x = naiveConvolution(take(16*150), take(16), x, 6, 14)
	for _, units := range []int{120, 84, 1} {
		w, b := take(units*len(x)), take(units)
		y := make([]float32, units)
		for u := range y {
			y[u] = b[u]
			for k, v := range x {
				y[u] += float32(w[u*len(x)+k] * v)
			}
			if units > 1 {
				y[u] = max(y[u], 0)
			}
		}
		x = y
	}
	return x[0]
}

func naiveConvolution(w, b, x []float32, channels, side int) []float32 {
	out := side - 4
	y := make([]float32, len(b)*out*out/4)
	for f := range b {
		for r := range out {
			for c := range out {
				sum := b[f]
				for k := range channels * 25 {
					sum += float32(w[f*channels*25+k] * x[(k/25*side+r+k/5%5)*side+c+k%5])
				}
				at := (f*out/2+r/2)*out/2 + c/2
				y[at] = max(y[at], sum)
			}
		}
	}
	return y
}

func float32s(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// The logits of a fixed case, by all paths and by all processors.
const lenetHash = "d55a9f3242df960452f28bd288fb8d57b5dcf33769d587bc7bfff2934e93350f"

func TestLeNetLogits(t *testing.T) {
	eachPath(t, func(t *testing.T, m *LeNet) {
		theta, _, set := lenetCase(m, 150)
		logits := logitsOf(m.newWorker(), theta, set)
		for _, i := range []int{0, 3, 4, 63, 64, 127, 128, 149} {
			// Convolutions take fewer products, and round others.
			if want := naiveLogit(float32s(theta), float32s(set.Row(i))); math.Abs(float64(logits[i]-want)) > 3e-6 {
				t.Errorf("logit %d is %v, want %v", i, logits[i], want)
			}
		}
		sum := sha256.New()
		if err := binary.Write(sum, binary.LittleEndian, logits); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != lenetHash {
			t.Errorf("the logits' SHA-256 is %s, want %s", got, lenetHash)
		}
	})
}

// A set of bytes has the logits of one that has what they stand for.
func TestLeNetBytes(t *testing.T) {
	eachPath(t, func(t *testing.T, m *LeNet) {
		theta, _, _ := lenetCase(m, 1)
		rnd := rand.New(rand.NewPCG(9, 9))
		const n = 70
		values := make([]uint8, n*m.Features())
		for i := range values {
			values[i] = uint8(rnd.Uint32())
		}
		channels := []dataset.Scale{{Factor: 1. / 63, Offset: -2}, {Factor: 1. / 64, Offset: -1.9}, {Factor: 1. / 67, Offset: -1.8}}
		set, err := dataset.OfBytes(values, make([]uint8, n), channels, []int{3, 32, 32}, []string{"0", "1"})
		if err != nil {
			t.Fatal(err)
		}
		wide := &dataset.Set{Y: set.Y, Dim: set.Dim, Shape: set.Shape, Classes: set.Classes}
		for i := range n {
			for j := range set.Dim {
				wide.X = append(wide.X, channels[j/1024].Of(values[i*set.Dim+j]))
			}
			if !slices.Equal(set.Row(i), wide.Row(i)) {
				t.Fatalf("sample %d is not what its bytes stand for", i)
			}
		}
		if w := m.newWorker(); !slices.Equal(logitsOf(w, theta, set), logitsOf(w, theta, wide)) {
			t.Error("logits differ")
		}
	})
}

// gonumLogit is the network in float64 by gonum's matrices, with the convolutions as
// products with the windows side by side.
func gonumLogit(theta, x []float64) float64 {
	take := func(n int) []float64 {
		part := theta[:n]
		theta = theta[n:]
		return part
	}
	layer := func(rows int, windows *mat.Dense, relu bool) *mat.Dense {
		k, n := windows.Dims()
		w, b := mat.NewDense(rows, k, take(rows*k)), take(rows)
		y := mat.NewDense(rows, n, nil)
		y.Mul(w, windows)
		y.Apply(func(i, _ int, v float64) float64 {
			if v += b[i]; relu && v < 0 {
				return 0
			}
			return v
		}, y)
		return y
	}
	for _, c := range []struct{ channels, side, filters int }{{3, 32, 6}, {6, 14, 16}} {
		out := c.side - 4
		windows := mat.NewDense(c.channels*25, out*out, nil)
		windows.Apply(func(k, at int, _ float64) float64 {
			return x[(k/25*c.side+at/out+k/5%5)*c.side+at%out+k%5]
		}, windows)
		y := layer(c.filters, windows, true)
		x = make([]float64, c.filters*out*out/4)
		for i := range x {
			f, r, col := i/(out*out/4), i/(out/2)%(out/2), i%(out/2)
			for d := range 4 {
				x[i] = max(x[i], y.At(f, (2*r+d/2)*out+2*col+d%2))
			}
		}
	}
	for _, units := range []int{120, 84, 1} {
		x = layer(units, mat.NewDense(len(x), 1, x), units > 1).RawMatrix().Data
	}
	return x[0]
}

// TestLeNetAgainstGonum allows what float32 may be off: an error of 2^-24 in each of
// at most 400 terms a layer, which grow as their square root where they are of random
// signs.
func TestLeNetAgainstGonum(t *testing.T) {
	eachPath(t, func(t *testing.T, m *LeNet) {
		theta, _, set := lenetCase(m, 20)
		for i, got := range logitsOf(m.newWorker(), theta, set) {
			if want := gonumLogit(theta, set.Row(i)); math.Abs(float64(got)-want) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("logit %d is %v, want %v", i, got, want)
			}
		}
	})
}

// TestLeNetLosses has batches that fill panels and such as do not, with samples given
// twice, and compares with the formula, to the bit.
func TestLeNetLosses(t *testing.T) {
	eachPath(t, func(t *testing.T, m *LeNet) {
		theta, phi, set := lenetCase(m, 140)
		const gamma = 0.013
		w := m.NewWorker()
		point := func(sign float64) []float32 {
			at := make([]float64, len(theta))
			for j := range at {
				at[j] = theta[j] + float64(sign*float64(gamma*phi[j]))
			}
			logits := logitsOf(m.newWorker(), at, set)
			return logits
		}
		points := [3][]float32{point(0), point(1), point(-1)}
		rnd := rand.New(rand.NewPCG(22, 23))
		for _, n := range []int{1, 3, 16, 17, 64, 65, 128, 140} {
			batch := rnd.Perm(set.Len())[:n]
			batch[n-1] = batch[0]
			var want [3]float64
			for i, logits := range points {
				for _, s := range batch {
					want[i] += crossEntropy(float64(logits[s]), set.Y[s])
				}
				want[i] /= float64(n)
			}
			f, plus, minus := w.Losses(theta, phi, gamma, set, batch)
			if got := [3]float64{f, plus, minus}; got != want {
				t.Errorf("batch of %d: %v, want %v", n, got, want)
			}
			testPartial(t, w, theta, phi, gamma, set, batch)
		}
	})
}

// wants are all that may be wanted.
func wants() []Want { return []Want{{}, {F: true}, {Minus: true}, {F: true, Minus: true}} }

// testPartial checks that losses are those of Losses whatever else is wanted, and 0 where they
// are not.
func testPartial(t *testing.T, w Worker, theta, phi []float64, gamma float64, set *dataset.Set, batch []int) {
	t.Helper()
	f, plus, minus := w.Losses(theta, phi, gamma, set, batch)
	for _, want := range wants() {
		is := Batch{Samples: batch, Plus: plus}
		if want.F {
			is.F = f
		}
		if want.Minus {
			is.Minus = minus
		}
		if f, plus, minus := Partial(w, want, theta, phi, gamma, set, batch); f != is.F || plus != is.Plus || minus != is.Minus {
			t.Errorf("batch of %d, %+v: %v, %v and %v; want %v, %v and %v", len(batch), want, f, plus, minus, is.F, is.Plus, is.Minus)
		}
	}
}

func TestLeNetEvaluate(t *testing.T) {
	eachPath(t, func(t *testing.T, m *LeNet) {
		theta, phi, set := lenetCase(m, 140)
		w := m.NewWorker()
		loss, correct := w.Evaluate(theta, set, 5, 138)
		f, _, _ := w.Losses(theta, phi, 1, set, all(140)[5:138])
		if loss/133 != f {
			t.Errorf("the loss is %v, want %v", loss/133, f)
		}
		want := 0
		for i, u := range logitsOf(m.newWorker(), theta, set) {
			if i >= 5 && i < 138 && (u > 0) == (set.Y[i] == 1) {
				want++
			}
		}
		if correct != want || want < 30 || want > 103 {
			t.Errorf("%d are correct, want %d", correct, want)
		}
	})
}

// The decision is at the logit 0, which belongs to class 0: a network of which only
// the last bias is not zero has that bias for a logit, whatever the sample.
func TestLeNetDecision(t *testing.T) {
	eachPath(t, func(t *testing.T, m *LeNet) {
		_, _, set := lenetCase(m, 30)
		ones := 0
		for _, y := range set.Y {
			ones += int(y)
		}
		if ones == 15 {
			t.Fatal("both classes have 15 samples: no decision shows")
		}
		for logit, want := range map[float64]int{1e-6: ones, 0.4: ones, 0: 30 - ones, -1e-6: 30 - ones, -0.4: 30 - ones} {
			theta := make([]float64, m.Dim())
			theta[m.Dim()-1] = logit
			if _, correct := m.NewWorker().Evaluate(theta, set, 0, 30); correct != want {
				t.Errorf("at the logit %v %d of 30 are correct, want %d", logit, correct, want)
			}
		}
	})
}

func TestLeNetAllocations(t *testing.T) {
	eachPath(t, func(t *testing.T, m *LeNet) {
		theta, phi, set := lenetCase(m, 20)
		w := m.NewWorker()
		batch := all(20)
		if n := testing.AllocsPerRun(2, func() {
			w.Losses(theta, phi, 0.1, set, batch)
			w.Evaluate(theta, set, 0, 20)
		}); n != 0 {
			t.Errorf("a round allocates %v times", n)
		}
	})
}

// TestLeNetInit checks the deviation of each layer's weights within five deviations
// of an estimate from that many, and that the first loss is about log 2.
func TestLeNetInit(t *testing.T) {
	m := NewLeNet(vector.Portable, 2)
	if m.Dim() != 61241 || m.Features() != 3072 || m.MultiplyAdds() != 650964 {
		t.Fatalf("d is %d, with %d features and %d multiplications", m.Dim(), m.Features(), m.MultiplyAdds())
	}
	theta := make([]float64, m.Dim())
	rnd := rand.New(rand.NewPCG(1, 1))
	m.Init(theta, rnd)
	rest := theta
	for i, l := range []struct {
		weights, biases int
		std             float64
	}{
		{450, 6, math.Sqrt(2. / 75)}, {2400, 16, math.Sqrt(2. / 150)}, {48000, 120, math.Sqrt(2. / 400)},
		{10080, 84, math.Sqrt(2. / 120)}, {84, 1, 0.01},
	} {
		got := stat.StdDev(rest[:l.weights], nil)
		if math.Abs(got/l.std-1) > 5/math.Sqrt(2*float64(l.weights)) {
			t.Errorf("layer %d: the deviation is %v, want %v", i+1, got, l.std)
		}
		for _, b := range rest[l.weights : l.weights+l.biases] {
			if b != 0 {
				t.Errorf("layer %d: a bias is %v", i+1, b)
			}
		}
		rest = rest[l.weights+l.biases:]
	}
	if len(rest) != 0 {
		t.Errorf("%d parameters are left", len(rest))
	}
	set := randomSet(64, m.Features(), rnd)
	if f, _, _ := m.NewWorker().Losses(theta, theta, 0, set, all(64)); math.Abs(f-math.Ln2) > 0.05 {
		t.Errorf("the first loss is %v, want about log 2", f)
	}
}

// TestCrossEntropy compares with the standard library, whose error is below one unit
// in the last place.
func TestCrossEntropy(t *testing.T) {
	rnd := rand.New(rand.NewPCG(30, 31))
	check := func(u float64) {
		want := new(big.Float).SetFloat64(math.Log1p(math.Exp(-math.Abs(u))))
		for y, base := range []float64{max(u, 0), max(-u, 0)} {
			exact, _ := new(big.Float).Add(want, big.NewFloat(base)).Float64()
			got := crossEntropy(u, uint8(y))
			if math.Abs(got-exact) > 1e-15*exact && !(exact < 1e-300 && got < 1e-300) {
				t.Fatalf("class %d at %v: %v, want %v", y, u, got, exact)
			}
		}
	}
	for _, u := range []float64{0, math.Copysign(0, -1), 1e-300, 1, -1, 36, 37, 40, 600, 692.9, 693, 694, -750, 1e30, math.MaxFloat32} {
		check(u)
	}
	for range 100000 {
		check(rnd.NormFloat64() * math.Exp(4*rnd.NormFloat64()))
	}
	if u := math.NaN(); crossEntropy(u, 0) == crossEntropy(u, 0) {
		t.Error("no number has a loss")
	}
	if got := crossEntropy(math.Inf(1), 0); !math.IsInf(got, 1) {
		t.Errorf("the loss at infinity is %v", got)
	}
}

func TestBatchSum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(40, 41))
	m := newLogistic(t, 10)
	set := randomSet(30, 10, rnd)
	theta, phi := randomVector(11, 1, rnd), randomVector(11, 1, rnd)
	batch := all(30)[3:27]
	f, plus, minus := m.NewWorker().Losses(theta, phi, 0.1, set, batch)
	sum := BatchSum(m)
	f2, plus2, minus2 := sum.NewWorker().Losses(theta, phi, 0.1, set, batch)
	if f2 != f || plus2 != 24*plus || minus2 != 24*minus {
		t.Errorf("got %v, %v, %v of %v, %v, %v", f2, plus2, minus2, f, plus, minus)
	}
	testPartial(t, sum.NewWorker(), theta, phi, 0.1, set, batch)
	testPartial(t, m.NewWorker(), theta, phi, 0.1, set, batch)
	for w, want := range map[Worker]float64{m.NewWorker(): f, sum.NewWorker(): 24 * f} {
		one := []Batch{{Samples: batch}}
		if Batches(w, Point{Theta: theta, Phi: phi, Gamma: 0.1}, set, one, Want{F: true}); one[0].F != f || one[0].Base() != want {
			t.Errorf("F is %v and Base %v, want %v and %v", one[0].F, one[0].Base(), f, want)
		}
	}
	if sum.Dim() != 11 || sum.Features() != 10 {
		t.Errorf("d is %d for %d features", sum.Dim(), sum.Features())
	}
}

// TestCrossEntropyBits pins the losses of a grid, which are the same on all processors
// and with GOAMD64=v3, where the compiler fuses what it may.
func TestCrossEntropyBits(t *testing.T) {
	sum := sha256.New()
	for i := range 20000 {
		u := float64(float32(i-10000) / 128)
		if err := binary.Write(sum, binary.LittleEndian, crossEntropy(u, uint8(i%2))); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := hex.EncodeToString(sum.Sum(nil))[:16], "61b8349ab48a665a"; got != want {
		t.Errorf("the losses' SHA-256 begins with %s, want %s", got, want)
	}
}

// Many batches at once have the losses that each has alone, to the bit, whatever panels
// they share.
func TestLeNetBatches(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 1))
	for _, p := range vector.Paths() {
		if p.Lacks() != "" {
			continue
		}
		m := BatchSum(NewLeNet(p, 2))
		set := randomSet(60, m.Features(), rnd)
		theta, phi := make([]float64, m.Dim()), randomVector(m.Dim(), 1, rnd)
		m.Init(theta, rnd)
		var batches []Batch
		for _, n := range []int{1, 7, 40, 16, 30} {
			batches = append(batches, Batch{Samples: rnd.Perm(set.Len())[:n]})
		}
		w := m.NewWorker()
		for _, wanted := range wants() {
			Batches(w, Point{Theta: theta, Phi: phi, Gamma: 0.01, Serial: 7}, set, batches, wanted)
			for i, got := range batches {
				want := Batch{Samples: got.Samples}
				want.F, want.Plus, want.Minus = Partial(w, wanted, theta, phi, 0.01, set, got.Samples)
				if got.F != want.F || got.Plus != want.Plus || got.Minus != want.Minus {
					t.Errorf("%v, batch %d: %v, %v, %v; alone %v, %v, %v", p, i, got.F, got.Plus, got.Minus, want.F, want.Plus, want.Minus)
				}
			}
		}
	}
}

// A worker that has made a point ready makes it ready again when its serial is another, or
// when theta, too, is asked for; and the features of each set are its own.
func TestLeNetSerials(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 1))
	m := NewLeNet(vector.Portable, 2)
	w := m.NewWorker()
	sets := []*dataset.Set{randomSet(5, m.Features(), rnd), randomSet(5, m.Features(), rnd)}
	theta, phi := make([]float64, m.Dim()), randomVector(m.Dim(), 1, rnd)
	m.Init(theta, rnd)
	for serial := range uint64(3) {
		for _, set := range sets {
			for _, want := range wants() {
				batch := []Batch{{Samples: all(5)}}
				Batches(w, Point{Theta: theta, Phi: phi, Gamma: 0.01, Serial: serial + 1}, set, batch, want)
				f, plus, minus := m.NewWorker().Losses(theta, phi, 0.01, set, all(5))
				if got := batch[0]; got.Plus != plus || want.Minus && got.Minus != minus || want.F && got.F != f {
					t.Errorf("serial %d, %+v: %v, %v and %v; want %v, %v and %v", serial+1, want, got.F, got.Plus, got.Minus, f, plus, minus)
				}
			}
			w.Evaluate(theta, set, 0, 5) // packs for itself
		}
		theta[0] += 0.1
		phi[1] = -phi[1]
	}
}
