package airhe

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
)

// gaussianGains are h_{i,k} ~ N(mu, sigma^2).
type gaussianGains struct {
	mu, sigma float64
	h         []float64
}

func (g *gaussianGains) Gains(round int) []float64 {
	rnd := rand.New(keystream.FromInteger(uint64(round)).Derive("gains").Stream())
	for i := range g.h {
		g.h[i] = g.mu + g.sigma*rnd.NormFloat64()
	}
	return g.h
}

func newAggregator(t testing.TB, cfg Config, sigma float64) *Aggregator {
	t.Helper()
	a, err := New(cfg, &gaussianGains{1, sigma, make([]float64, cfg.Devices)}, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Every residue, and every sum of digits, comes back.
func TestDigits(t *testing.T) {
	var d, e [Digits]int8
	rnd := rand.New(keystream.FromInteger(1).Stream())
	for x := range uint64(Q) {
		other, h := rnd.Uint64N(Q), rnd.Int64N(200)-100
		Split(&d, x)
		Split(&e, other)
		var one, sum [Digits]int64
		for l := range d {
			if d[l] < -1 || d[l] > 1 {
				t.Fatalf("digit %d of %d is %d", l, x, d[l])
			}
			one[l] = int64(d[l])
			sum[l] = int64(d[l]) + h*int64(e[l])
		}
		if got := Join(&one); got != x {
			t.Fatalf("%d comes back as %d", x, got)
		}
		if got, want := Join(&sum), residue(int64(x)+h*int64(other)); got != want {
			t.Fatalf("%d + %d * %d is %d, expected %d", x, h, other, got, want)
		}
	}
}

// A sum of ciphertexts decrypts to the sum of the messages and errors of the
// closed form's variance.
func TestEncryption(t *testing.T) {
	key := NewSecretKey(keystream.FromInteger(1))
	rnd := rand.New(keystream.FromInteger(2).Stream())
	const devices, rounds = 4, 5000
	var es []*Encryptor
	for i := range uint64(devices) {
		es = append(es, NewEncryptor(key, keystream.FromInteger(3).Derive("device", i)))
	}
	square := 0.0
	for k := range uint32(rounds) {
		var sum Ciphertext
		want := int64(0)
		for _, e := range es {
			m := rnd.Int64N(1500) - 750
			want += m
			for j, x := range e.Encrypt(m, k, 0) {
				sum[j] = (sum[j] + x) % Q
			}
		}
		e := float64(Decrypt(&sum, key) - want)
		if math.Abs(e) > 7*math.Sqrt(devices*errorLaw.Variance()) {
			t.Fatalf("round %d: error %v", k, e)
		}
		square += e * e / rounds
	}
	if want := devices * errorLaw.Variance(); math.Abs(square/want-1) > 5*math.Sqrt(2./rounds) {
		t.Errorf("the error has variance %v, expected %v", square, want)
	}
}

// Measured over 2,000 rounds the error has the predicted deviation: with a perfect
// channel to within five deviations of a variance. Where W rounds are wrong, each
// leaves the square of a uniform, whose relative variance is 0.8, and W itself is
// Poisson: the mean square strays by sqrt(1.8/W). It may lie a tenth too low, for
// one wrong symbol in ten is one of b and is predicted too high.
func TestErrorIsPredicted(t *testing.T) {
	for _, test := range []struct {
		name                string
		devices             int
		sigma, pilot, noise float64
	}{
		{"perfect channel", 10, 1, 0, 0},
		{"little noise", 10, 1, 0, 0.08},
		{"some wrong symbols", 10, 0.1, 0.01, 0.16},
		{"pilot error", 3, 0.1, 0.1, 0.05},
		{"destroyed", 10, 1, 0.1, 0.1},
	} {
		a := newAggregator(t, Config{test.devices, 1, test.pilot, test.noise}, test.sigma)
		rnd := rand.New(keystream.FromInteger(4).Stream())
		delta := make([][]float64, test.devices)
		const rounds = 2000
		square, predicted, wrong := 0.0, 0.0, 0
		for k := 1; k <= rounds; k++ {
			for i := range delta {
				delta[i] = []float64{(2*rnd.Float64() - 1) / 20}
			}
			out, err := a.Aggregate(context.Background(), k, delta)
			if err != nil {
				t.Fatal(err)
			}
			truth := a.Truth()
			e := out.M[0] - truth.Ideal[0]
			square += e * e / rounds
			predicted += truth.EpsStd * truth.EpsStd / rounds
			if math.Abs(e) > 7*math.Sqrt(float64(test.devices)*(errorLaw.Variance()+1./12))/a.Scale() {
				wrong++
			}
		}
		t.Logf("%s: deviation %.4f, predicted %.4f; %.1f %% of the rounds wrong", test.name, math.Sqrt(square), math.Sqrt(predicted), 100*float64(wrong)/rounds)
		spread := math.Sqrt(2. / rounds)
		low, high := 1-5*spread, 1+5*spread
		if wrong > 0 {
			spread = math.Sqrt(1.8 / float64(wrong))
			low, high = 0.9-4*spread, 1+4*spread
		}
		if r := square / predicted; r < low || r > high {
			t.Errorf("%s: the squared error is %.3f of the predicted", test.name, r)
		}
	}
}

// The law on a grid against draws.
func TestLaw(t *testing.T) {
	var l law
	rnd := rand.New(keystream.FromInteger(5).Stream())
	for _, test := range []struct {
		weights []float64
		noise   float64
	}{
		{[]float64{1, 1, 1}, 0.2}, {[]float64{1.3, 0.7, 1.1, 0.95}, 0.1}, {[]float64{30, 1.01, -4}, 0.05}, {[]float64{1.2, 1.2, 1.2}, 0},
	} {
		const draws = 100000
		hits := 0
		for range draws {
			x := test.noise * rnd.NormFloat64()
			for _, g := range test.weights {
				x += (g - 1) * float64(rnd.IntN(3)-1)
			}
			if math.Abs(x) < 0.5 {
				hits++
			}
		}
		if got := l.right(test.weights, test.noise); math.Abs(got-float64(hits)/draws) > 5*math.Sqrt(0.25/draws) {
			t.Errorf("%v: probability %v, measured %v", test, got, float64(hits)/draws)
		}
	}
}

// Scalars that are all at the bound add up to six deviations of their errors below q/2,
// and do not wrap; more room than that is not left unused.
func TestHeadroom(t *testing.T) {
	for _, devices := range []int{1, 10, 100} {
		a := newAggregator(t, Config{devices, 2, 0, 0}, 0)
		n := float64(devices)
		std := math.Sqrt(n * errorLaw.Variance())
		if left := Q/2 - n/2 - a.Scale()*2*n; math.Abs(left/std-6) > 1e-6 {
			t.Errorf("%d devices: %v deviations are left below q/2, expected 6", devices, left/std)
		}
		delta := make([][]float64, devices)
		wrapped := 0
		const rounds = 400
		for k := 1; k <= rounds; k++ {
			for i := range delta {
				delta[i] = []float64{float64(2 - k%2*4)}
			}
			out, err := a.Aggregate(t.Context(), k, delta)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(out.M[0]-a.Truth().Ideal[0]) > (6*std+n/2)/a.Scale() {
				wrapped++
			}
		}
		if wrapped > 0 {
			t.Errorf("%d devices: %d of %d sums of scalars at the bound wrap", devices, wrapped, rounds)
		}
	}
}

func TestClippingAndRefusals(t *testing.T) {
	a := newAggregator(t, Config{2, 0.5, 0, 0}, 0)
	out, err := a.Aggregate(context.Background(), 1, [][]float64{{3}, {-0.25}})
	if err != nil || out.Clipped != 1 || a.Truth().Ideal[0] != 2.75 || math.Abs(out.M[0]-0.25) > 6*a.Truth().EpsStd {
		t.Errorf("%+v, %v", out, err)
	}
	for want, delta := range map[string][][]float64{
		"has values of 1 devices": {{1}}, "device 2 is no number": {{1}, {math.NaN()}}, "device 1 has no value": {{}, {}},
	} {
		if _, err := a.Aggregate(context.Background(), 1, delta); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	good := Config{2, 1, 0, 0}
	for want, change := range map[string]func(*Config){
		"devices is 0":           func(c *Config) { c.Devices = 0 },
		"less than one bit":      func(c *Config) { c.Devices = 2500 },
		"|Delta f| is 0":         func(c *Config) { c.DeltaMax = 0 },
		"pilot error is -1":      func(c *Config) { c.PilotStd = -1 },
		"receiver noise is +Inf": func(c *Config) { c.NoiseStd = math.Inf(1) },
	} {
		c := good
		change(&c)
		if _, err := New(c, &gaussianGains{}, keystream.FromInteger(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// A round's outcome depends on the round and the scalars alone.
func TestRoundsAreIndependent(t *testing.T) {
	cfg := Config{3, 1, 0.1, 0.1}
	delta := [][]float64{{0.1}, {0.2}, {0.3}}
	run := func(rounds ...int) (m float64) {
		a := newAggregator(t, cfg, 1)
		for _, k := range rounds {
			out, err := a.Aggregate(context.Background(), k, delta)
			if err != nil {
				t.Fatal(err)
			}
			m = out.M[0]
		}
		return m
	}
	if run(1, 2, 3) != run(3) {
		t.Error("round 3 differs after rounds 1 and 2")
	}
}
