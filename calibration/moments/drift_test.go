package moments

import (
	"math"
	"math/cmplx"
	"strings"
	"testing"

	"ringwave/phy/channel"
)

// The test sets of NIST Special Publication 1065 (W. Riley, Handbook of Frequency
// Stability Analysis), chapter 12: nine frequencies, of NBS Monograph 140, and a
// thousand of a congruential generator.
func TestAllanPublished(t *testing.T) {
	nine := []float64{892, 809, 823, 798, 671, 644, 883, 903, 677}
	var thousand []float64
	for n := int64(1234567890); len(thousand) < 1000; n = 16807 * n % 2147483647 {
		thousand = append(thousand, float64(n)/2147483647)
	}
	for _, c := range []struct {
		y    []float64
		m    int
		want float64
	}{
		{nine, 1, 91.22945}, {nine, 2, 85.95287},
		{thousand, 1, 2.922319e-1}, {thousand, 10, 9.159953e-2}, {thousand, 100, 3.241343e-2},
	} {
		sum, n := allanOfFrequency(c.y, c.m, 1)
		phase := make([]float64, len(c.y)+1)
		for i, v := range c.y {
			phase[i+1] = phase[i] + v
		}
		sumOfPhase, same := allanOfPhase(phase, c.m, 1)
		got, also := math.Sqrt(sum/2/float64(n)), math.Sqrt(sumOfPhase/2/float64(same))
		if math.Abs(got/c.want-1) > 1e-6 || math.Abs(also/c.want-1) > 1e-6 || n != same {
			t.Errorf("%d values, m = %d: %.7g of frequencies, %.7g of phases, published %.7g", len(c.y), c.m, got, also, c.want)
		}
	}
}

// White phase noise of deviation s falls as sqrt(3) s/tau, white frequency noise as
// s/sqrt(tau), and a random walk of frequency grows as sqrt(tau/3): theory against
// simulation, and the intervals cover it.
func TestAllanSlopes(t *testing.T) {
	rnd := random("allan")
	const n, runs = 512, 100
	laws := map[string]func(tau float64) float64{
		"white phase":     func(tau float64) float64 { return math.Sqrt(3) / tau },
		"white frequency": func(tau float64) float64 { return 1 / math.Sqrt(tau) },
		// Means of a discrete walk: (2 tau^2 + 1)/(6 tau) in variance.
		"random walk": func(tau float64) float64 { return math.Sqrt((2*tau*tau + 1) / (6 * tau)) },
	}
	for _, name := range []string{"white phase", "white frequency", "random walk"} {
		squares, covered := map[int]float64{}, map[int]int{}
		for range runs {
			phase := make([]float64, n)
			at, frequency := 0.0, 0.0
			for i := range phase {
				switch name {
				case "white phase":
					phase[i] = rnd.NormFloat64()
				case "white frequency":
					phase[i] = at
					at += rnd.NormFloat64()
				case "random walk":
					phase[i] = at
					frequency += rnd.NormFloat64()
					at += frequency
				}
			}
			for m := 1; m <= 32; m *= 2 {
				p, ok := pool([][]float64{phase}, m, 1, 0.95, allanOfPhase)
				if !ok {
					t.Fatal("no point")
				}
				squares[m] += p.Deviation * p.Deviation / runs
				if want := laws[name](float64(m)); p.Low <= want && want <= p.High {
					covered[m]++
				}
			}
		}
		for m := 1; m <= 32; m *= 2 {
			got, want := math.Sqrt(squares[m]), laws[name](float64(m))
			if math.Abs(got/want-1) > 0.08 {
				t.Errorf("%s at %d: %.4g, in theory %.4g", name, m, got, want)
			}
			if covered[m] < 88 {
				t.Errorf("%s at %d: the interval covers theory in %d of %d", name, m, covered[m], runs)
			}
		}
	}
}

// Blocks that are independent have the coherence time between a block's looks and
// the next block; a gain that never changes has no end of it.
func TestCoherence(t *testing.T) {
	b := truth{law: channel.Gaussian{Mu: 1, Sigma: 0.5}, snrDB: 20, devices: 1, blocks: 400, looks: 4}.draw(random("coherence"))
	for _, c := range []struct {
		round float64
		want  Verdict
	}{{0.3, Yes}, {0.5, Unresolved}, {1, No}, {0, Unresolved}} {
		r, err := Analyse(b, Options{RoundSeconds: c.round})
		if err != nil {
			t.Fatal(err)
		}
		got := r.Devices[0].Coherence
		if math.Abs(got.Low-0.3) > 1e-9 || got.High != 1 || got.LongEnough != c.want {
			t.Errorf("a round of %v s: %+v", c.round, got)
		}
	}
	r, err := Analyse(truth{law: channel.Gaussian{Mu: 1, Sigma: 0.001}, snrDB: 5, devices: 1, blocks: 100, looks: 4}.draw(random("still")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := r.Devices[0]
	if d.Autocorrelation != nil || !math.IsInf(d.Coherence.High, 1) || d.Coherence.LongEnough != Unresolved {
		t.Errorf("without fading: %+v, %v", d.Coherence, d.Autocorrelation)
	}
	if !math.IsInf(d.KFactor.High, 1) || d.Sigma.Low != 0 || d.Omega.Value < d.Mu.Value*d.Mu.Value {
		t.Errorf("without fading: K %+v, sigma %+v, Omega %+v", d.KFactor, d.Sigma, d.Omega)
	}
}

// An autoregressive gain of 0.9 a block falls below one half at the seventh.
func TestSlowFading(t *testing.T) {
	rnd := random("slow")
	b := truth{law: channel.Gaussian{Mu: 1, Sigma: 1e-9}, snrDB: 40, devices: 1, blocks: 2000, looks: 1}.draw(rnd)
	s := &b.Devices[0]
	unit, h := s.unit(), 0.0
	for k := range s.Gain {
		h = 0.9*h + 0.3*math.Sqrt(0.19)*rnd.NormFloat64()
		s.Gain[k] += unit * complex(h, 0)
	}
	r, err := Analyse(b, Options{RoundSeconds: 3})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Devices[0].Coherence
	if c.Low < 4 || c.High > 9 || c.High != c.Low+1 || c.LongEnough != Yes {
		t.Errorf("coherence %+v", c)
	}
	for lag := range 4 {
		if got, want := r.Devices[0].Autocorrelation[lag], math.Pow(0.9, float64(lag)); math.Abs(got-want) > 0.1 {
			t.Errorf("lag %d: %.3f, should be %.3f", lag, got, want)
		}
	}
}

// Phases, drifts and rotation: their intervals cover what was put in, and sessions
// that share a phase are told from those that do not.
func TestPhases(t *testing.T) {
	trials := counted(60, 400)
	const drift, offset = 2e-6, 3e-3 // rad/s from block to block, Hz within
	var phase, drifts, rotations, gains coverage
	lasting, broken := 0, 0
	for trial := range trials {
		rnd := random("phases", uint64(trial))
		c := truth{law: channel.Gaussian{Mu: 1, Sigma: 0.3}, snrDB: 20, devices: 1, blocks: 120, looks: 4, sessions: 3, lasts: trial%2 == 0}
		b := c.draw(rnd)
		s := &b.Devices[0]
		for l := range s.Gain {
			at := float64(l/4) + 0.1*float64(l%4)
			s.Gain[l] *= cmplx.Rect(1, drift*at+2*math.Pi*offset*0.1*float64(l%4))
		}
		r, err := Analyse(b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := r.Devices[0]
		switch {
		case c.lasts && d.PhaseLasts.Verdict == Yes:
			lasting++
		case !c.lasts && d.PhaseLasts.Verdict == No:
			broken++
		}
		drifts.add(d.PhaseDrift, drift)
		rotations.add(d.Rotation, offset+drift/(2*math.Pi))
		gains.add(d.GainDrift, 0)
		// One session of known phase.
		const known = 2.5
		one := Bench{Looks: 1, BlockSeconds: 1, Session: make([]int, 60), Devices: []Series{{NoiseDoF: 990}}}
		for range 60 {
			g := &one.Devices[0]
			h := 1 + 2*rnd.NormFloat64()
			g.Gain = append(g.Gain, cmplx.Rect(h, known)+complex(rnd.NormFloat64(), rnd.NormFloat64())*complex(0.1/math.Sqrt2, 0))
			g.GainVar, g.Noise = append(g.GainVar, 0.01), append(g.Noise, 5)
		}
		r, err = Analyse(one, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Devices[0].SignCertain {
			phase.add(r.Devices[0].Phase[0], known)
		}
	}
	slack := 3 * math.Sqrt(0.95*0.05/float64(trials))
	for name, c := range map[string]*coverage{"phase": &phase, "phase drift": &drifts, "rotation": &rotations, "gain drift": &gains} {
		share := float64(c.covered) / float64(c.n)
		t.Logf("%s: %.3f covered of %d, bias %.1f standard errors", name, share, c.n, c.bias())
		if share < 0.95-slack-0.01 || math.Abs(c.bias()) > 3.5 {
			t.Errorf("%s: %.3f covered, bias %.1f standard errors", name, share, c.bias())
		}
	}
	half := trials / 2
	if lasting < half-1-half/50 || broken < half-1 {
		t.Errorf("%d of %d lasting phases and %d of %d others told", lasting, half, broken, half)
	}
}

// Rician moments against numbers of the simulator's own closed form and of Rayleigh.
func TestRicianMoments(t *testing.T) {
	for _, k := range []float64{0, 0.3, 2, 10, 150} {
		law := channel.Rician{K: k, Omega: 2 + 2*k}
		m1, m2, _, _ := rice{math.Sqrt(2 * k)}.raw()
		if math.Abs(m1/law.Mean()-1) > 1e-12 || math.Abs(m2/law.SecondMoment()-1) > 1e-12 {
			t.Errorf("K = %v: %v and %v, should be %v and %v", k, m1, m2, law.Mean(), law.SecondMoment())
		}
		if got := ricianOf(rice{math.Sqrt(2 * k)}.ratio()).nu; math.Abs(got*got/2-k) > 1e-3*k+1e-6 {
			t.Errorf("K = %v comes back as %v", k, got*got/2)
		}
		f := fitted{rice: rice{math.Sqrt(2 * k)}, scale: 1, x: []float64{0}, p: []float64{1}}
		noisy, ok := newFitted(sample{mean: m1, s2: m2 - m1*m1 + 0.04, w: 0.04})
		if _, _, c := noisy.cumulative(); !ok || math.Abs(c[len(c)-1]-1) > 1e-5 {
			t.Errorf("K = %v: the density with noise adds up to %v", k, c[len(c)-1])
		}
		if _, _, c := f.cumulative(); math.Abs(c[len(c)-1]-1) > 1e-5 {
			t.Errorf("K = %v: the density adds up to %v", k, c[len(c)-1])
		}
	}
	// Rayleigh: skewness 2 sqrt(pi) (pi-3)/(4-pi)^1.5, excess -(6 pi^2-24 pi+16)/(4-pi)^2.
	if got := (rice{}).skew(); math.Abs(got-0.6311106578) > 1e-9 {
		t.Errorf("skewness %v", got)
	}
	if got := (rice{}).excess(); math.Abs(got-0.2450893007) > 1e-9 {
		t.Errorf("excess kurtosis %v", got)
	}
	if r := ricianOf(2000); math.Abs(r.nu*r.nu-1998.5) > 2e-3 {
		t.Errorf("the expansion meets the exact inverse at %v", r.nu*r.nu)
	}
}

// A Rayleigh envelope is told from a Gaussian gain, and a gain of both signs from an
// envelope; one of K = 50 is not, and its interval then holds both readings.
func TestModel(t *testing.T) {
	for _, c := range []struct {
		law  channel.Fading
		want Model
	}{
		{channel.NewRicianMean(0.01, 1), Rician}, {channel.Gaussian{Mu: 1, Sigma: 1}, Gaussian},
		{channel.NewRicianMean(50, 1), Undecided}, {channel.Gaussian{Mu: 1, Sigma: 0.01}, Undecided},
	} {
		r, err := Analyse(truth{law: c.law, snrDB: 30, devices: 1, blocks: 1000, looks: 1}.draw(random("model")), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Devices[0].Model != c.want {
			t.Errorf("%T %v: %v, advantage %v", c.law, c.law, r.Devices[0].Model, r.Devices[0].Advantage)
		}
	}
}

// Left to the data, the law is not told wrongly, and where it is left open the
// K-factor's interval covers the truth of either law.
func TestUndecided(t *testing.T) {
	trials := counted(20, 400)
	for _, c := range []struct {
		law   channel.Fading
		k     float64
		wrong Model
	}{
		{channel.Gaussian{Mu: 1, Sigma: 0.3}, 1 / 0.18, Rician}, {channel.Gaussian{Mu: 1, Sigma: 0.45}, 1 / 0.405, Rician},
		{channel.NewRicianMean(5, 1), 5, Gaussian}, {channel.NewRicianMean(2, 1), 2, Gaussian},
	} {
		covered, wrong := 0, 0
		for trial := range trials {
			r, err := Analyse(truth{law: c.law, snrDB: 20, devices: 1, blocks: 400, looks: 1}.draw(random("undecided", uint64(trial))), Options{})
			if err != nil {
				t.Fatal(err)
			}
			d := r.Devices[0]
			if d.Model == c.wrong {
				wrong++
			}
			if d.KFactor.Low <= c.k && c.k <= d.KFactor.High {
				covered++
			}
		}
		t.Logf("%T %.4v: told wrongly in %d, K covered in %d of %d", c.law, c.law, wrong, covered, trials)
		if share := float64(covered) / float64(trials); share < 0.95-3*math.Sqrt(0.95*0.05/float64(trials)) || wrong > trials/100 {
			t.Errorf("%T %v: told wrongly in %d, K covered in %d of %d", c.law, c.law, wrong, covered, trials)
		}
	}
}

// Missed looks and whole missed blocks leave the rest as it is.
func TestMissing(t *testing.T) {
	b := truth{law: channel.Gaussian{Mu: 1, Sigma: 0.1}, snrDB: 30, devices: 2, blocks: 100, looks: 3, sessions: 2}.draw(random("missing"))
	s := &b.Devices[1]
	for l := range s.Gain {
		if l < 12 || l%5 == 0 {
			s.Gain[l] = cmplx.NaN()
			s.GainVar[l], s.Noise[l], s.Delay[l], s.Offset[l] = math.NaN(), math.NaN(), math.NaN(), math.NaN()
		}
	}
	r, err := Analyse(b, Options{OffsetHz: 11})
	if err != nil {
		t.Fatal(err)
	}
	d := r.Devices[1]
	if d.Blocks != 96 || d.Missed != 4 || !math.IsNaN(d.Gain[0]) || math.IsNaN(d.Gain[4]) {
		t.Errorf("%d blocks, %d missed", d.Blocks, d.Missed)
	}
	for _, v := range []Value{d.Mu, d.Omega, d.Sigma, d.KFactor, d.SNR, d.SNRdB, d.PhaseDrift, d.GainDrift, d.Rotation, d.Offset, d.Phase[0], d.Phase[1]} {
		if math.IsNaN(v.Value) || !(v.Low <= v.Value && v.Value <= v.High) {
			t.Errorf("%+v", v)
		}
	}
	if v := r.Violations(); len(v) > 0 {
		t.Errorf("accused: %s", strings.Join(v, "; "))
	}
}

func TestRefusals(t *testing.T) {
	base := func() Bench {
		return truth{law: channel.Gaussian{Mu: 1, Sigma: 0.1}, snrDB: 30, devices: 2, blocks: 20, looks: 2}.draw(random("refusals"))
	}
	for want, c := range map[string]func(b *Bench, o *Options){
		"has 0 looks":                       func(b *Bench, _ *Options) { b.Looks = 0 },
		"lasts 0 s":                         func(b *Bench, _ *Options) { b.BlockSeconds = 0 },
		"looks are 2 s apart":               func(b *Bench, _ *Options) { b.LookSeconds = 2 },
		"no device":                         func(b *Bench, _ *Options) { b.Devices = nil },
		"back to session 0":                 func(b *Bench, _ *Options) { b.Session[7] = 1 },
		"device 2: 39 gains":                func(b *Bench, _ *Options) { b.Devices[1].Gain = b.Devices[1].Gain[1:] },
		"device 1: 0 variances of delays":   func(b *Bench, _ *Options) { b.Devices[0].DelayVar = nil },
		"look 4 has the variance -1":        func(b *Bench, _ *Options) { b.Devices[0].GainVar[3] = -1 },
		"look 1 has the noise power 0":      func(b *Bench, _ *Options) { b.Devices[0].Noise[0] = 0 },
		"look 1 has the gain (+Inf+Infi)":   func(b *Bench, _ *Options) { b.Devices[0].Gain[0] = cmplx.Inf() },
		"have 0 degrees of freedom":         func(b *Bench, _ *Options) { b.Devices[0].NoiseDoF = 0 },
		"the confidence level is 1:":        func(_ *Bench, o *Options) { o.Level = 1 },
		"the law of the gains is 7":         func(_ *Bench, o *Options) { o.Model = 7 },
		"device 2 was measured in 10 block": func(b *Bench, _ *Options) { missing(&b.Devices[1], 20) },
		"all gains of device 1 are 0":       func(b *Bench, _ *Options) { clear(b.Devices[0].Gain) },
	} {
		b, o := base(), Options{}
		c(&b, &o)
		if _, err := Analyse(b, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func missing(s *Series, looks int) {
	for l := range looks {
		s.Gain[l] = cmplx.NaN()
	}
}
