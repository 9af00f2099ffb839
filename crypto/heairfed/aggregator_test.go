package heairfed

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
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

func randomGradients(seed uint64, devices, dim int) [][]float64 {
	rnd := rand.New(keystream.FromInteger(seed).Derive("gradients").Stream())
	g := make([][]float64, devices)
	for i := range g {
		for range dim {
			g[i] = append(g[i], (2*rnd.Float64()-1)/10)
		}
	}
	return g
}

// The measured squared error is the predicted one, from encryption alone to
// pilots so bad that nothing is left; 20 rounds of 4,096 components each, whose
// mean strays by about a hundredth, and by 2 |s|^2/n from the key.
func TestErrorIsPredicted(t *testing.T) {
	base := Config{Devices: 5, Dim: N, Antennas: 8, Fading: Rayleigh, Clip: 1}
	for _, test := range []struct {
		name         string
		pilot, noise float64
		fading       Fading
	}{
		{"encryption alone", 0, 0, Rayleigh},
		{"receiver noise", 0, 3e-5, Rayleigh},
		{"pilot error", 1e-5, 0, LineOfSight},
		{"half destroyed", 1e-2, 0, LineOfSight},
		{"destroyed", 0.1, 1e-4, Rayleigh},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := base
			cfg.PilotStd, cfg.NoiseStd, cfg.Fading = test.pilot, test.noise, test.fading
			a := newAggregator(t, cfg, 0.3)
			ratio, rms, rounds := 0.0, 0.0, 20
			for k := 1; k <= rounds; k++ {
				out, err := a.Aggregate(context.Background(), k, randomGradients(uint64(k), cfg.Devices, cfg.Dim))
				if err != nil {
					t.Fatal(err)
				}
				truth := a.Truth()
				mse := squaredError(out, truth)
				ratio += mse / (truth.EpsStd * truth.EpsStd) / float64(rounds)
				rms += mse / float64(rounds)
			}
			t.Logf("deviation of a component %.3g, squared error %.3f of the predicted", math.Sqrt(rms), ratio)
			if math.Abs(ratio-1) > 0.06 {
				t.Errorf("the squared error is %.3f of the predicted", ratio)
			}
		})
	}
}

// squaredError returns the mean over the components.
func squaredError(out aggregate.Outcome, truth aggregate.Truth) float64 {
	sum := 0.0
	for j, x := range out.M {
		sum += (x - truth.Ideal[j]) * (x - truth.Ideal[j])
	}
	return sum / float64(len(out.M))
}

// Several ciphertexts, the last one not full, carry what one does.
func TestLongGradient(t *testing.T) {
	cfg := Config{Devices: 3, Dim: 2*N + 17, Antennas: 4, Clip: 1}
	a := newAggregator(t, cfg, 0)
	if a.Ciphertexts() != 3 || a.Symbols() != 3*N {
		t.Fatalf("%d ciphertexts, %d symbols", a.Ciphertexts(), a.Symbols())
	}
	g := randomGradients(1, 3, cfg.Dim)
	g[0][cfg.Dim-1], g[1][0] = 2, -1.5
	out, err := a.Aggregate(context.Background(), 1, g)
	if err != nil {
		t.Fatal(err)
	}
	if out.Clipped != 2 {
		t.Errorf("%d components clipped, expected 2", out.Clipped)
	}
	limit := 8 * a.Truth().EpsStd
	for j, x := range out.M {
		ideal := g[0][j] + g[1][j] + g[2][j]
		if math.Abs(ideal-a.Truth().Ideal[j]) > 1e-15 {
			t.Fatalf("component %d: Ideal is %v, expected %v", j, a.Truth().Ideal[j], ideal)
		}
		switch j { // those that were clipped to +-1
		case 0:
			ideal += 0.5
		case cfg.Dim - 1:
			ideal--
		}
		if math.Abs(x-ideal) > limit {
			t.Fatalf("component %d is %v, expected %v to within %v", j, x, ideal, limit)
		}
	}
}

// A round's outcome depends on the round and the gradients alone.
func TestRoundsAreIndependent(t *testing.T) {
	cfg := Config{Devices: 3, Dim: 50, Antennas: 4, Fading: Rayleigh, PilotStd: 1e-4, NoiseStd: 1e-5, Clip: 1}
	g := randomGradients(1, 3, cfg.Dim)
	run := func(rounds ...int) (sum []float64) {
		a := newAggregator(t, cfg, 1)
		for _, k := range rounds {
			out, err := a.Aggregate(context.Background(), k, g)
			if err != nil {
				t.Fatal(err)
			}
			sum = slices.Clone(out.M)
		}
		return sum
	}
	if !slices.Equal(run(1, 2, 3), run(3)) {
		t.Error("round 3 differs after rounds 1 and 2")
	}
	if slices.Equal(run(1), run(2)) {
		t.Error("rounds 1 and 2 have the same errors")
	}
}

// Rayleigh fading is CN(0, 1) times the gain, anew at each antenna, of each device, in
// each round; along a line of sight only the gain changes. The pilot error is new in
// each round with either.
func TestChannelOfEachRound(t *testing.T) {
	const rounds, pilotStd = 200, 0.1
	cfg := Config{Devices: 3, Dim: 1, Antennas: 4, PilotStd: pilotStd, Clip: 1}
	for _, cfg.Fading = range []Fading{LineOfSight, Rayleigh} {
		a := newAggregator(t, cfg, 0.3)
		var unit, pilots [rounds]array
		for k := range rounds {
			if _, err := a.Aggregate(t.Context(), k+1, [][]float64{{0.1}, {0.2}, {0.3}}); err != nil {
				t.Fatal(err)
			}
			h := a.gains.Gains(k + 1)
			unit[k], pilots[k] = newArray(3, 4), newArray(3, 4)
			for i := range h {
				for m, x := range a.truth[i] {
					unit[k][i][m] = x / complex(h[i], 0)
					pilots[k][i][m] = (a.known[i][m] - x) / pilotStd
				}
			}
		}
		checkNormal(t, cfg.Fading.String()+" pilot errors", pilots[:])
		if cfg.Fading == Rayleigh {
			checkNormal(t, "rayleigh coefficients", unit[:])
			continue
		}
		for k := range unit {
			for i := range unit[k] {
				for m, x := range unit[k][i] {
					if cmplx.Abs(x-unit[0][i][m]) > 1e-12 || math.Abs(cmplx.Abs(x)-1) > 1e-12 {
						t.Fatalf("los: in round %d device %d has %v at antenna %d, in round 1 %v", k+1, i+1, x, m+1, unit[0][i][m])
					}
				}
			}
		}
	}
}

// checkNormal wants independent CN(0, 1): of n of them the mean, the mean power and
// each mean product have the deviation 1/sqrt n, and stay within five.
func checkNormal(t *testing.T, name string, rounds []array) {
	t.Helper()
	var power float64
	var mean, round, device, antenna complex128
	n := 0.
	for k, now := range rounds {
		next := rounds[(k+1)%len(rounds)]
		for i := range now {
			for m, x := range now[i] {
				y := cmplx.Conj(x)
				power += real(x * y)
				mean += x
				round += y * next[i][m]
				device += y * now[(i+1)%len(now)][m]
				antenna += y * now[i][(m+1)%len(now[i])]
				n++
			}
		}
	}
	limit := 5 / math.Sqrt(n)
	if math.Abs(power/n-1) > limit {
		t.Errorf("%s: the mean power is %v, expected 1 to within %v", name, power/n, limit)
	}
	for of, sum := range map[string]complex128{"mean": mean, "correlation with the next round": round,
		"correlation with the next device": device, "correlation with the next antenna": antenna} {
		if cmplx.Abs(sum)/n > limit {
			t.Errorf("%s: the %s is %v, expected 0 to within %v", name, of, sum/complex(n, 0), limit)
		}
	}
}

// fitting returns the bound on a component for which the largest sum of the devices'
// components, at Delta = 2^20, lies the given number of deviations of the encryptions'
// noise below q/2.
func fitting(devices int, deviations float64) float64 {
	n := float64(devices)
	return (Q/2 - deviations*math.Sqrt(n*EncryptionVariance())) / (n * 0x1p20)
}

// Delta leaves six deviations of noise below q/2, and no factor of 2 more: gradients
// all of whose components are at the bound do not wrap.
func TestHeadroom(t *testing.T) {
	for _, devices := range []int{1, 5, 50} {
		for deviations, want := range map[float64]float64{0: 0x1p19, 5.99: 0x1p19, 6.01: 0x1p20} {
			cfg := Config{Devices: devices, Dim: 2 * N, Antennas: 4, Clip: fitting(devices, deviations)}
			a := newAggregator(t, cfg, 0)
			if a.Delta() != want {
				t.Errorf("%d devices, %v deviations below q/2 at 2^20: Delta is 2^%v, expected 2^%v", devices, deviations, math.Log2(a.Delta()), math.Log2(want))
			}
			g := make([][]float64, devices)
			for i := range g {
				for j := range cfg.Dim {
					g[i] = append(g[i], cfg.Clip*float64(1-j%2*2))
				}
			}
			out, err := a.Aggregate(t.Context(), 1, g)
			if err != nil {
				t.Fatal(err)
			}
			limit := 8 * a.Truth().EpsStd
			wrapped := 0
			for j, x := range out.M {
				if math.Abs(x-a.Truth().Ideal[j]) > limit {
					wrapped++
				}
			}
			if wrapped > 0 || out.Clipped > 0 {
				t.Errorf("%d devices, %v deviations below q/2 at 2^20: %d of %d components at the bound wrap, %d are clipped", devices, deviations, wrapped, cfg.Dim, out.Clipped)
			}
		}
	}
}

func TestBeamform(t *testing.T) {
	// One device: the matched filter, whose gain is the length of h.
	one := array{{3, 4i, 0}}
	if _, least := beamform(one); math.Abs(least-5) > 1e-9 {
		t.Errorf("one device: gain %v, expected 5", least)
	}
	// Orthogonal devices of equal strength share a unit vector: gain c/sqrt N.
	orthogonal := array{{2, 0, 0, 0}, {0, 2i, 0, 0}, {0, 0, -2, 0}, {0, 0, 0, 2}}
	if _, least := beamform(orthogonal); math.Abs(least-1) > 1e-6 {
		t.Errorf("orthogonal devices: gain %v, expected 1", least)
	}
	// Devices that cancel in the sum, and a channel that carries nothing.
	if _, least := beamform(array{{1, 0}, {-1, 0}}); math.Abs(least-1) > 1e-9 {
		t.Errorf("opposite devices: gain %v, expected 1", least)
	}
	if w, least := beamform(array{{0, 0}}); least != 0 || norm(w) != 1 {
		t.Errorf("no channel: gain %v, length %v", least, norm(w))
	}
	// No worse than the best of 20,000 random vectors.
	rnd := rand.New(keystream.FromInteger(5).Stream())
	for range 10 {
		h := newArray(6, 4)
		for i := range h {
			for m := range h[i] {
				h[i][m] = complexNormal(rnd, 1)
			}
		}
		w, least := beamform(h)
		if math.Abs(norm(w)-1) > 1e-12 || math.Abs(leastGain(w, h)-least) > 1e-12 {
			t.Fatalf("length %v, gain %v said to be %v", norm(w), leastGain(w, h), least)
		}
		best, random := 0.0, make([]complex128, 4)
		for range 20000 {
			for m := range random {
				random[m] = complexNormal(rnd, 1)
			}
			normalise(random)
			best = max(best, leastGain(random, h))
		}
		if least < 0.9*best {
			t.Errorf("gain %v, a random vector has %v", least, best)
		}
	}
}

func TestWrappedVariance(t *testing.T) {
	rnd := rand.New(keystream.FromInteger(6).Stream())
	for _, v := range []float64{1e-4, 1e-3, 0.01, 0.05, 0.2, 10} {
		const draws = 200000
		sum := 0.0
		for range draws {
			x := math.Sqrt(v) * rnd.NormFloat64()
			x -= math.Round(x)
			sum += x * x / draws
		}
		// x^2 has a deviation of at most sqrt 2 of its mean.
		if got := wrappedVariance(v); math.Abs(sum/got-1) > 5*math.Sqrt(2./draws) {
			t.Errorf("variance %v wraps to %v, measured %v", v, got, sum)
		}
	}
}

func TestRefusals(t *testing.T) {
	good := Config{Devices: 2, Dim: 3, Antennas: 4, Clip: 1}
	for want, change := range map[string]func(*Config){
		"the number of devices is 0": func(c *Config) { c.Devices = 0 },
		"has 0 components":           func(c *Config) { c.Dim = 0 },
		"antennas is 2000":           func(c *Config) { c.Antennas = 2000 },
		"the fading is 7":            func(c *Config) { c.Fading = 7 },
		"pilot error is NaN":         func(c *Config) { c.PilotStd = math.NaN() },
		"receiver noise is -1":       func(c *Config) { c.NoiseStd = -1 },
		"component is 0":             func(c *Config) { c.Clip = 0 },
		"leave no room":              func(c *Config) { c.Clip = math.MaxFloat64 },
	} {
		c := good
		change(&c)
		if _, err := New(c, &gaussianGains{}, keystream.FromInteger(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	a := newAggregator(t, good, 0)
	for want, g := range map[string][][]float64{
		"has 1 gradients":           {{1, 2, 3}},
		"device 2 has 2 components": {{1, 2, 3}, {1, 2}},
	} {
		if _, err := a.Aggregate(context.Background(), 1, g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := ParseFading("rician"); err == nil {
		t.Error("an unknown fading was taken")
	}
	for _, f := range []Fading{LineOfSight, Rayleigh} {
		if g, err := ParseFading(f.String()); err != nil || g != f {
			t.Errorf("%v: %v, %v", f, g, err)
		}
	}
	// A device without a channel stays silent, and the round is lost, not the run.
	dead, err := New(good, &gaussianGains{0, 0, make([]float64, 2)}, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	out, err := dead.Aggregate(context.Background(), 1, [][]float64{{1, 2, 3}, {1, 2, 3}})
	if err != nil || math.IsNaN(squaredError(out, dead.Truth())) || math.IsNaN(dead.Truth().EpsStd) {
		t.Errorf("no channel: %v, %v", out, err)
	}
}

// With good channel state training goes as it does over an ideal channel; with
// the paper's sigma_pilot = 0.1 it learns nothing that lasts.
func TestTraining(t *testing.T) {
	all, allTest, err := dataset.Strokes(keystream.FromInteger(77), 2000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	train, err := all.Choose([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	test, err := allTest.Choose([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.NewLogistic(train.Dim)
	if err != nil {
		t.Fatal(err)
	}
	const devices = 5
	shards := make([][]int, devices)
	for j := range train.Len() {
		shards[j%devices] = append(shards[j%devices], j)
	}
	final := func(a learner.Aggregator) learner.Result {
		cfg := learner.Config{
			Rounds: 60, BatchSize: 64, Eta: learner.PowerLaw{X0: 0.5, P: 0.5}, Gamma: learner.PowerLaw{X0: 0.5, P: 0.25},
		}
		tr, err := learner.NewGradientTrainer(cfg, learner.Task{
			Model: m, Train: train, Test: test, Shards: shards, Aggregator: a, Seed: keystream.FromInteger(4),
		})
		if err != nil {
			t.Fatal(err)
		}
		for !tr.Done() {
			if _, err := tr.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		return tr.Final()
	}
	cfg := Config{Devices: devices, Dim: m.Dim(), Antennas: 8, Fading: Rayleigh, Clip: 1}
	plain, encrypted := final(&learner.Plain{}), final(newAggregator(t, cfg, 0.3))
	cfg.PilotStd = 0.1
	broken := final(newAggregator(t, cfg, 0.3))
	t.Logf("accuracy plain %.3f, encrypted %.3f, with pilot errors of 0.1 %.3f", plain.TestAccuracy, encrypted.TestAccuracy, broken.TestAccuracy)
	if plain.TestAccuracy < 0.95 || math.Abs(plain.TrainLoss-encrypted.TrainLoss) > 1e-3 {
		t.Errorf("plain %+v, encrypted %+v", plain, encrypted)
	}
	if broken.TrainLoss < 2*plain.TrainLoss {
		t.Errorf("with pilot errors of 0.1 the loss is %v, plain %v", broken.TrainLoss, plain.TrainLoss)
	}
}
