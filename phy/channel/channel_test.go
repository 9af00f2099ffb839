package channel

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"

	"ringwave/crypto/keystream"
	"ringwave/phy/slot"
)

func newChannel(t *testing.T, cfg Config) *Channel {
	t.Helper()
	c, err := New(cfg, keystream.FromInteger(11))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The sample mean and second moment lie within five standard errors of what the
// model says.
func TestMoments(t *testing.T) {
	const draws = 200000
	for _, f := range []Fading{
		Gaussian{1, 0}, Gaussian{1, 1}, Gaussian{1, 10}, Gaussian{-0.5, 0.3},
		Rician{0, 2}, Rician{1, 1}, Rician{10, 3}, Rician{1000, 1}, NewRicianMean(4, 1),
	} {
		rnd := rand.New(keystream.FromInteger(1).Stream())
		var s1, s2, s4 float64
		for range draws {
			h := f.Draw(rnd)
			s1 += h
			s2 += h * h
			s4 += h * h * h * h
		}
		mean, second := s1/draws, s2/draws
		errMean := 5 * math.Sqrt((second-mean*mean)/draws)
		errSecond := 5 * math.Sqrt((s4/draws-second*second)/draws)
		if math.Abs(mean-f.Mean()) > errMean+1e-12 {
			t.Errorf("%+v: mean %v, want %v within %v", f, mean, f.Mean(), errMean)
		}
		if math.Abs(second-f.SecondMoment()) > errSecond+1e-12 {
			t.Errorf("%+v: second moment %v, want %v within %v", f, second, f.SecondMoment(), errSecond)
		}
	}
	if m := NewRicianMean(4, 1).Mean(); math.Abs(m-1) > 1e-12 {
		t.Errorf("NewRicianMean(4, 1) has mean %v", m)
	}
}

// The closed form of the Rician mean against the integral of its density, and
// against the Rayleigh mean at K = 0.
func TestRicianMean(t *testing.T) {
	for _, k := range []float64{0, 0.1, 1, 7, 50, 500} {
		r := Rician{K: k, Omega: 1}
		nu, s := math.Sqrt(k/(k+1)), math.Sqrt(1/(2*(k+1)))
		density := func(x float64) float64 {
			return x / (s * s) * math.Exp(-(x-nu)*(x-nu)/(2*s*s)) * ScaledBesselI(0, x*nu/(s*s))
		}
		lo, hi := math.Max(0, nu-12*s), nu+12*s
		want := quad.Fixed(func(x float64) float64 { return x * density(x) }, lo, hi, 400, nil, 0)
		if math.Abs(r.Mean()-want) > 1e-9 {
			t.Errorf("K = %v: mean %v, want %v", k, r.Mean(), want)
		}
	}
	if got, want := (Rician{K: 0, Omega: 2}).Mean(), math.Sqrt(math.Pi/2); math.Abs(got-want) > 1e-12 {
		t.Errorf("Rayleigh mean %v, want %v", got, want)
	}
}

func TestGainsLieOnTheLatticeAndLastForTheRound(t *testing.T) {
	cfg := Config{Devices: []Fading{Gaussian{1, 1}, Gaussian{1, 10}}, LatticeBits: 8}
	c := newChannel(t, cfg)
	first, later := make([]float64, 2), make([]float64, 2)
	seen := map[float64]bool{}
	for round := range uint32(200) {
		c.Scaled(first, round, 0, 0)
		for i, h := range first {
			if h != math.Trunc(h) {
				t.Fatalf("round %d: H_%d = %v is no integer", round, i, h)
			}
		}
		for phase := 1; phase < slot.Transmissions; phase++ {
			c.Scaled(later, round, 3, phase)
			if first[0] != later[0] || first[1] != later[1] {
				t.Fatalf("round %d: gains changed within the round", round)
			}
		}
		seen[first[1]] = true
	}
	if len(seen) < 150 {
		t.Errorf("only %d different gains in 200 rounds", len(seen))
	}
	cfg.FreshOnRetry = true
	c = newChannel(t, cfg)
	c.Scaled(first, 1, 0, 0)
	c.Scaled(later, 1, 1, 0)
	if first[0] == later[0] && first[1] == later[1] {
		t.Error("a retry met the same gains though a fresh block was asked for")
	}
}

func TestDrift(t *testing.T) {
	for at := AfterKey; at <= AfterCiphertext; at++ {
		c := newChannel(t, Config{Devices: []Fading{Gaussian{1, 1}}, LatticeBits: 8, DriftAt: at, DriftStd: 1, DriftProbability: 1})
		var h [slot.Transmissions][1]float64
		for p := range h {
			c.Scaled(h[p][:], 4, 0, p)
		}
		for p := 1; p < slot.Transmissions; p++ {
			if changed := h[p] != h[p-1]; changed != (p == int(at)) {
				t.Errorf("drift at boundary %d: transmission %d changed: %v", at, p, changed)
			}
		}
	}
	c := newChannel(t, Config{Devices: []Fading{Gaussian{1, 0}}, LatticeBits: 8, DriftAt: AfterKey, DriftStd: 1, DriftProbability: 0.3})
	hits := 0
	const rounds = 10000
	for round := range uint32(rounds) {
		var h [1]float64
		c.Scaled(h[:], round, 0, 1)
		if h[0] != 256 {
			hits++
		}
	}
	if want := 0.3 * rounds; math.Abs(float64(hits)-want) > 5*math.Sqrt(want*0.7)+20 {
		t.Errorf("%d of %d rounds were hit by a drift of probability 0.3", hits, rounds)
	}
}

func TestBadConfig(t *testing.T) {
	good := []Fading{Gaussian{1, 1}}
	for name, cfg := range map[string]Config{
		"no device":       {},
		"negative sigma":  {Devices: []Fading{Gaussian{1, -1}}},
		"zero mean":       {Devices: []Fading{Gaussian{0, 1}}},
		"negative K":      {Devices: []Fading{Rician{-1, 1}}},
		"no power":        {Devices: []Fading{Rician{1, 0}}},
		"lattice":         {Devices: good, LatticeBits: 60},
		"drift":           {Devices: good, DriftStd: math.NaN()},
		"drift certainty": {Devices: good, DriftProbability: 2},
	} {
		if _, err := New(cfg, keystream.Seed{}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestNothingAllocated(t *testing.T) {
	c := newChannel(t, Config{Devices: []Fading{Gaussian{1, 1}, Rician{3, 1}}, LatticeBits: 8, DriftAt: AfterKey, DriftStd: 1, DriftProbability: 1})
	h := make([]float64, 2)
	if n := testing.AllocsPerRun(100, func() { c.Scaled(h, 3, 1, 2) }); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}
