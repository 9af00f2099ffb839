package learner

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/keystream"
	"ringwave/learner/philox"
)

// TestEstimatorUnbiased draws g = Phi M for devices whose losses are linear,
// f_i(theta) = a_i . theta, over the channel of Eq. 4. Then Delta f_i is
// 2 gamma a_i . Phi exactly, and Lemma 1 holds without its error term: E[g] =
// c_1 gamma grad F with c_1 = 2 b_1 and grad F = sum_i a_i.
//
// The statistic is the squared distance of the mean of R draws of g from that,
// over its expectation, tr(Cov g)/R = (E||g||^2 - ||E g||^2)/R, with E||g||^2
// taken from the draws. It is a sum of d squares of nearly normal variables: along
// the N slopes and their sum the variance is up to three times that of the other
// directions, so the statistic's deviation is below sqrt(2 (d + 8 (N+1)))/d. The
// bound is five of these, 1.7. A bias of a tenth of the deviation of g in each
// entry would give R/100 = 200.
func TestEstimatorUnbiased(t *testing.T) {
	const d, devices, rounds, gamma = 40, 5, 20000, 0.3
	rnd := rand.New(rand.NewPCG(1, 2))
	slopes := make([][]float64, devices)
	mu := make([]float64, devices)
	want := make([]float64, d)
	for i := range slopes {
		slopes[i] = make([]float64, d)
		for j := range slopes[i] {
			slopes[i][j] = rnd.NormFloat64()
		}
		mu[i] = 1 + float64(i)/2
		floats.AddScaled(want, 2*gamma, slopes[i])
	}
	for _, directions := range []Directions{Rademacher, Gaussian, Sphere, Philox} {
		seed := keystream.FromInteger(3).Derive(directions.String())
		a, err := NewEZOFL(&scaledGains{gaussianGains{seed: seed, mu: 1, sigma: 1, h: make([]float64, devices)}, mu}, mu, 1, seed)
		if err != nil {
			t.Fatal(err)
		}
		stream := seed.Derive("directions").Stream()
		phi, mean, delta := make([]float64, d), make([]float64, d), make([][]float64, devices)
		var power float64
		for k := 1; k <= rounds; k++ {
			stream.Start(uint32(k), 0)
			directions.Draw(phi, rand.New(stream))
			for i := range delta {
				delta[i] = []float64{2 * gamma * floats.Dot(slopes[i], phi)}
			}
			out, err := a.Aggregate(t.Context(), k, delta)
			if err != nil {
				t.Fatal(err)
			}
			floats.AddScaled(mean, out.M[0]/rounds, phi)
			power += out.M[0] * out.M[0] * floats.Dot(phi, phi) / rounds
		}
		expected := (power - floats.Dot(want, want)) / rounds
		distance := floats.Distance(mean, want, 2)
		statistic := distance * distance / expected
		t.Logf("%v: the statistic is %.3f", directions, statistic)
		if bound := 5 * math.Sqrt(2*(d+8*(devices+1))) / d; math.Abs(statistic-1) > bound {
			t.Errorf("%v: the statistic is %.3f, want 1 within %.3f", directions, statistic, bound)
		}
	}
}

// scaledGains give device i gains of mean mu[i].
type scaledGains struct {
	gaussianGains
	mu []float64
}

func (g *scaledGains) Gains(round int) []float64 {
	h := g.gaussianGains.Gains(round)
	floats.Mul(h, g.mu)
	return h
}

// TestDirections checks norms, and mean, variance and neighbour correlation of
// the entries: each is a mean of n nearly independent terms of variance at most
// 3, within 5 sqrt(3/n).
func TestDirections(t *testing.T) {
	const d, draws = 785, 200
	const n = d * draws
	for _, directions := range []Directions{Rademacher, Gaussian, Sphere, Philox} {
		rnd := rand.New(keystream.FromInteger(6).Stream())
		phi := make([]float64, d)
		var mean, square, neighbour float64
		for range draws {
			directions.Draw(phi, rnd)
			norm := floats.Dot(phi, phi)
			if directions != Gaussian && math.Abs(norm-directions.B2Squared(d)) > 1e-9 {
				t.Fatalf("%v: the squared norm is %v, want %v", directions, norm, directions.B2Squared(d))
			}
			for j, x := range phi {
				if directions == Rademacher && x != 1 && x != -1 {
					t.Fatalf("entry %d is %v", j, x)
				}
				mean += x / n
				square += x * x / n
				neighbour += x * phi[(j+1)%d] / n
			}
		}
		bound := 5 * math.Sqrt(3./n)
		if math.Abs(mean) > bound || math.Abs(square-directions.B1()) > bound || math.Abs(neighbour) > bound {
			t.Errorf("%v: mean %v, mean square %v, neighbour product %v; bound %v", directions, mean, square, neighbour, bound)
		}
		parsed, err := ParseDirections(directions.String())
		if err != nil || parsed != directions {
			t.Errorf("%v is parsed as %v (%v)", directions, parsed, err)
		}
		directions.Draw(nil, rnd)
	}
	if _, err := ParseDirections("sobol"); err == nil || !strings.Contains(err.Error(), `"sobol"; allowed is rademacher, gaussian, sphere or philox`) {
		t.Errorf("got %v", err)
	}
}

// TestBatches checks that a batch is a set of the shard's samples, does not
// depend on the rounds drawn before, and has each sample equally often: over R
// rounds the count of a sample is binomial (R, batch/shard), and all are within
// five deviations.
func TestBatches(t *testing.T) {
	const size, batch, rounds = 50, 20, 2000
	shard := make([]int, size)
	for i := range shard {
		shard[i] = 100 + 3*i
	}
	d := newDevice(Config{BatchSize: batch, Packed: 1}, keystream.FromInteger(1), 0, shard)
	fresh := newDevice(Config{BatchSize: batch, Packed: 1}, keystream.FromInteger(1), 0, shard)
	fresh.draw(rounds, 0)
	count := map[int]int{}
	for k := range uint32(rounds) {
		d.draw(k+1, 0)
		seen := map[int]bool{}
		for _, i := range d.batch {
			if seen[i] || i < 100 || (i-100)%3 != 0 || i >= 100+3*size {
				t.Fatalf("round %d has batch %v", k, d.batch)
			}
			seen[i] = true
			count[i]++
		}
	}
	for j := range d.batch {
		if d.batch[j] != fresh.batch[j] {
			t.Fatal("the batch of a round depends on the rounds before it")
		}
	}
	p := float64(batch) / size
	for _, i := range shard {
		if off := math.Abs(float64(count[i]) - rounds*p); off > 5*math.Sqrt(rounds*p*(1-p)) {
			t.Errorf("sample %d is in %d of %d batches", i, count[i], rounds)
		}
	}
	small := newDevice(Config{BatchSize: size, Packed: 1}, keystream.FromInteger(1), 0, shard)
	small.draw(1, 0)
	if len(small.batch) != size || small.batch[7] != shard[7] {
		t.Errorf("a device with as many samples as the batch draws %v", small.batch)
	}
}

func TestEZOFL(t *testing.T) {
	seed := keystream.FromInteger(2)
	gains := &gaussianGains{seed: seed, mu: 2, sigma: 1, h: make([]float64, 2)}
	a, err := NewEZOFL(gains, []float64{2, -4}, 0.5, seed)
	if err != nil {
		t.Fatal(err)
	}
	// The noise of n rounds has mean 0 and variance 1/4: the mean square is
	// within five of its deviations, sqrt(2/n)/4.
	const n = 4000
	var square float64
	var sixth float64
	for k := 1; k <= n; k++ {
		out, err := a.Aggregate(t.Context(), k, [][]float64{{3}, {5}})
		if err != nil {
			t.Fatal(err)
		}
		h, truth := gains.Gains(k), a.Truth()
		if want := 3./2*h[0] - 5./4*h[1]; math.Abs(truth.Ideal[0]-want) > 1e-14 {
			t.Fatalf("round %d: the sum is %v, want %v", k, truth.Ideal[0], want)
		}
		if out.Attempts != 1 || out.Skipped || truth.EpsStd != 0.5 {
			t.Fatalf("round %d gave %+v", k, out)
		}
		square += (out.M[0] - truth.Ideal[0]) * (out.M[0] - truth.Ideal[0]) / n
		if k == 6 {
			sixth = out.M[0]
		}
	}
	if math.Abs(square-0.25) > 5*math.Sqrt(2./n)/4 {
		t.Errorf("the noise has mean square %v, want 0.25", square)
	}
	if again, _ := a.Aggregate(t.Context(), 6, [][]float64{{3}, {5}}); again.M[0] != sixth {
		t.Error("the same round gave another outcome")
	}
	if _, err := a.Aggregate(t.Context(), 1, [][]float64{{3}}); err == nil || !strings.Contains(err.Error(), "round 1 has values of 1 devices, 2 gains and 2 channel means") {
		t.Errorf("got %v", err)
	}
	for _, c := range []struct {
		mu    []float64
		sigma float64
	}{{nil, 1}, {[]float64{0}, 1}, {[]float64{math.NaN()}, 1}, {[]float64{1}, -1}, {[]float64{1}, math.NaN()}, {[]float64{1}, math.Inf(1)}} {
		if _, err := NewEZOFL(gains, c.mu, c.sigma, seed); err == nil {
			t.Errorf("mu %v and sigma_n %v gave no error", c.mu, c.sigma)
		}
	}
}

// Philox's directions are those that NumPy 1.24.2 makes of their key:
//
//	raw = numpy.random.Philox(key=1234567890123).random_raw(1563)
//	bits = numpy.unpackbits(raw.view(numpy.uint8), bitorder="little")[:100001]
//	hashlib.sha256((1 - 2 * bits.astype(numpy.int8)).tobytes()).hexdigest()
func TestPhiloxSigns(t *testing.T) {
	signs, whole := make([]float64, 100001), make([]byte, 100001)
	drawSigns(signs, philox.New(1234567890123))
	for i, s := range signs {
		if s != 1 && s != -1 {
			t.Fatalf("sign %d is %v", i, s)
		}
		whole[i] = byte(int8(s))
	}
	if got, want := fmt.Sprintf("%x", sha256.Sum256(whole)), "52ddac47b7a866d9d1d2722bfd1ba8476e7a723cb143168a4cfc86a44792cba3"; got != want {
		t.Errorf("signs have the SHA-256 %s, NumPy's %s", got, want)
	}
	phi := make([]float64, 1000)
	key := Philox.Draw(phi, rand.New(rand.NewPCG(1, 2)))
	again := make([]float64, 1000)
	drawSigns(again, philox.New(key))
	if key >= 1<<53 || !slices.Equal(phi, again) {
		t.Errorf("a direction is not that of its key %d", key)
	}
}
