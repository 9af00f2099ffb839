package xmkckks

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// near checks x against want within a relative error.
func near(t *testing.T, what string, x, want, relative float64) {
	t.Helper()
	if !(math.Abs(x-want) <= relative*math.Abs(want)) {
		t.Errorf("%s is %.6g, expected %.6g to within %.3g of it", what, x, want, relative)
	}
}

// equalGains returns N devices of mean 1 and deviation sigma.
func equalGains(n int, sigma float64) (mu, omega []float64) {
	for range n {
		mu = append(mu, 1)
		omega = append(omega, 1+sigma*sigma)
	}
	return mu, omega
}

// The flooding of crypto/README.md in figures: at (4096, 109), N = 10, alpha = 2^8, s = 40,
// tau = 400, for secrets in {-1, +1} and sigma_e = 3.2.
func TestFloodingTable(t *testing.T) {
	set := testSet(t, "paper-4096")
	for _, x := range []struct {
		sigma                    float64
		form                     Form
		logStd, logSum, logLeast float64
	}{
		{1, Short, 48.2, 58.4, 60.3},
		{1, Whole, 51.1, 61.3, 63.2},
		{10, Short, 51.0, 64.0, 66.0},
		{10, Whole, 53.9, 66.9, 68.9},
	} {
		mu, omega := equalGains(10, x.sigma)
		sums := expectedSums(squareLaws(mu, omega, nil), 256)
		c := &Context{Params: set}
		std := FloodStd(40, 400, c.sensitivity(x.form, 1, 2, sums, [slot.Transmissions]float64{}))
		logStd := math.Log2(std)
		logSum := math.Log2(std * math.Sqrt(sums.S))
		logLeast := math.Log2(std * math.Sqrt(sums.S) / 256 / 1e-3)
		t.Logf("sigma = %v, %v: sigma* 2^%.2f, sum H e* 2^%.2f, least Lambda 2^%.2f", x.sigma, x.form, logStd, logSum, logLeast)
		for _, y := range [][2]float64{{logStd, x.logStd}, {logSum, x.logSum}, {logLeast, x.logLeast}} {
			if math.Abs(y[0]-y[1]) > 0.15 {
				t.Errorf("sigma = %v, %v: 2^%.2f, the table has 2^%.1f", x.sigma, x.form, y[0], y[1])
			}
		}
		if got := floodingBits(std, 400, c.sensitivity(x.form, 1, 2, sums, [slot.Transmissions]float64{})); math.Abs(got-40) > 1e-9 {
			t.Errorf("sigma = %v, %v: %v bits, expected 40", x.sigma, x.form, got)
		}
	}
	if got := floodingBits(3.2, 1, 1e9); got != 0 {
		t.Errorf("noise of deviation 3.2 is said to hide %v bits", got)
	}
}

// What s bits of flooding mean, on the shares that are the easiest to tell apart:
// noises of norm t that all point the same way. The divergence is 2^-s/24; the
// distance is below Pinsker's bound, and not far; and the advantage of Micciancio and
// Walter of whoever answers only beyond some threshold is below the divergence, and
// not far.
func TestFloodingNotion(t *testing.T) {
	normal := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for _, s := range []float64{0, 4, 20, 40, 80} {
		for _, tau := range []int{1, 400, 1600} {
			const norm = 12345.0
			std := FloodStd(s, tau, norm)
			shift := math.Sqrt(float64(tau)) * norm / std // of all shares, in deviations
			divergence := shift * shift / 2
			near(t, "the divergence", divergence, math.Exp2(-s)/24, 1e-12)
			bound := floodingDistance(std, tau, norm)
			near(t, "the bound on the distance", bound, math.Exp2(-s/2)/math.Sqrt(48), 1e-12)
			if exact := math.Erf(shift / (2 * math.Sqrt2)); exact > bound || exact < 0.79*bound {
				t.Errorf("s = %v, tau = %d: the distance is %g, its bound %g", s, tau, exact, bound)
			}
			if s > 20 {
				continue // float64 does not resolve the differences below
			}
			best := 0.0
			for c := 0.0; c <= 4; c += 0.01 {
				// He answers 0 below shift/2 - c and 1 above shift/2 + c.
				p0, q0 := normal(shift/2-c), normal(-shift/2-c)
				p1, q1 := q0, p0
				answers, right := (p0+p1+q0+q1)/2, (p0+q1)/(p0+p1+q0+q1)
				best = max(best, answers*(2*right-1)*(2*right-1))
			}
			if best > divergence || best < 0.39*divergence {
				t.Errorf("s = %v, tau = %d: the best advantage is %g, its bound %g", s, tau, best, divergence)
			}
		}
	}
	near(t, "the distance at 40 bits", math.Log2(floodingDistance(FloodStd(40, 7, 3), 7, 3)), -22.79, 1e-3)
	if got := floodingDistance(3.2, 1, 1e9); got != 1 {
		t.Errorf("noise of deviation 3.2 leaves a distance of %v", got)
	}
}

func testDesign(t testing.TB, set Params, form Form, devices int, sigma, alpha float64, attempts int) Design {
	t.Helper()
	mu, omega := equalGains(devices, sigma)
	d, err := NewDesign(set, form, Link{Mu: mu, Omega: omega, Alpha: alpha, DeltaMax: 1, Shares: attempts})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// flooded is what a set promises.
type flooded struct {
	name      string
	bits      float64
	logFlood  float64
	witnesses int
}

// The flooded sets have their bits for 1,600 shares of one key, at both spreads of
// the gains, in both forms and with up to 64 messages, without more than the e* that
// they name; and the messages have room.
func TestSetsFlood(t *testing.T) {
	for _, x := range []flooded{
		{"ringwave-4096-100", 40, 55, 2},
		{"ringwave-8192-200", 80, 76, 1},
		{"ringwave-4096", 40, 55, 2},
	} {
		set := testSet(t, x.name)
		for _, sigma := range []float64{1, 10} {
			for _, form := range forms() {
				for _, messages := range []int{1, 64} {
					floods(t, set, x, sigma, form, messages)
				}
			}
		}
	}
}

// Sets without flooding have none, and more shares than a set is made for take more.
func TestFloodingOfOthers(t *testing.T) {
	if d := testDesign(t, testSet(t, "paper-4096"), Whole, 10, 1, 256, 1600); d.FloodingBits != 0 || d.FloodingDistance != 1 {
		t.Errorf("without flooding: %v bits, distance %v", d.FloodingBits, d.FloodingDistance)
	}
	set := Sets()[0]
	// More shares than the set is made for take more flooding, on their own.
	mu, omega := equalGains(10, 10)
	d, err := NewDesign(set, Whole, Link{Mu: mu, Omega: omega, Alpha: 256, DeltaMax: 1, Shares: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	if d.Params.LogFlood <= 55 || d.FloodingBits < 40 {
		t.Errorf("100,000 shares: sigma* = 2^%v, %.2f bits", d.Params.LogFlood, d.FloodingBits)
	}
}

// floods checks the design of a flooded set.
func floods(t *testing.T, set Params, x flooded, sigma float64, form Form, messages int) {
	t.Helper()
	mu, omega := equalGains(10, sigma)
	d, err := NewDesign(set, form, Link{Mu: mu, Omega: omega, Alpha: 256, DeltaMax: 16, Shares: 1600, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	share, err := d.Params.ShareVariance()
	if err != nil {
		t.Fatal(err)
	}
	logStd, logEps := math.Log2(share)/2, math.Log2(d.DecodedStd())
	what := fmt.Sprintf("%s, sigma = %v, %v, P = %d", x.name, sigma, form, messages)
	t.Logf("%s: %.1f bits, distance 2^%.1f, sigma* = 2^%.2f, std(eps) = 2^%.2f, alpha Lambda |M| up to 2^%.1f of 2^%.1f",
		what, d.FloodingBits, math.Log2(d.FloodingDistance), logStd, logEps, math.Log2(d.MessageBound), d.Params.LogQ()-1)
	if set.FloodingBits != x.bits || d.FloodingBits < x.bits {
		t.Errorf("%s: %.2f bits of flooding", what, d.FloodingBits)
	}
	near(t, what+": the distance", d.FloodingDistance, math.Exp2(-d.FloodingBits/2)/math.Sqrt(48), 1e-9)
	if d.Params.LogFlood != x.logFlood || logStd < x.logFlood || logStd >= x.logFlood+1 {
		t.Errorf("%s: sigma* is 2^%.2f for the asked 2^%v", what, logStd, d.Params.LogFlood)
	}
	// sqrt(S_Omega) is 2^2.2 at sigma = 1 and 2^5 at sigma = 10; what is
	// sampled is up to a bit wider than what is asked.
	want := math.Log2(math.Sqrt(10*(1+sigma*sigma))) + logStd - float64(set.LogLambda)
	if math.Abs(logEps-want) > 0.01 {
		t.Errorf("%s: std(eps) is 2^%.3f, expected 2^%.3f", what, logEps, want)
	}
	if sigma == 10 && logEps > -13 {
		t.Errorf("%s: std(eps) is 2^%.2f, more than 2^-13", what, logEps)
	}
	if room := d.Params.LogQ() - 1 - math.Log2(d.MessageBound); room < 4.8 {
		t.Errorf("%s: %.1f bits above the largest message", what, room)
	}
	if d.Witnesses != x.witnesses {
		t.Errorf("%s: %d witnesses, expected %d", what, d.Witnesses, x.witnesses)
	}
}

// phy/README.md, section 4, point 4: one witness for the paper's sets, two with
// flooding, five at (1024, 27) where its noise comes near to q. W is the
// smallest with W log2(q/(12 std)) >= 40.
func TestWitnessCounts(t *testing.T) {
	for _, x := range []struct {
		name  string
		alpha float64
		sigma float64
		n     int
		want  int
	}{
		{"paper-4096", 256, 1, 10, 1},
		{"paper-4096", 256, 10, 10, 1},
		{"paper-8192", 256, 10, 10, 1},
		{"ringwave-4096-100", 256, 1, 10, 2},
		{"ringwave-4096-100", 256, 10, 10, 2},
		{"ringwave-8192-200", 256, 10, 10, 1},
		{"ringwave-4096", 256, 1, 10, 2},
		{"ringwave-4096", 256, 10, 10, 2},
		{"lean-2048", 16, 1, 3, 2},
		{"demo-1024", 1, 1, 3, 4},
		{"demo-1024", 2, 1, 3, 5},
		{"demo-1024", 4, 1, 3, 7},
	} {
		for _, form := range forms() {
			d := testDesign(t, testSet(t, x.name), form, x.n, x.sigma, x.alpha, 1)
			each := math.Log2(math.Exp2(d.Params.LogQ()) / (12 * math.Sqrt(d.Rare.Noise())))
			expected := math.Log2(math.Exp2(d.Params.LogQ()) / (12 * math.Sqrt(d.Expected.Noise())))
			t.Logf("%s, alpha = %v, sigma = %v, N = %d, %v: W = %d, %.1f bits each (%.1f at the expected gains: W = %.0f)",
				x.name, x.alpha, x.sigma, x.n, form, d.Witnesses, each, expected, math.Ceil(40/expected))
			if d.Witnesses != x.want {
				t.Errorf("%s, alpha = %v, sigma = %v, %v: %d witnesses, expected %d", x.name, x.alpha, x.sigma, form, d.Witnesses, x.want)
			}
			if w := float64(d.Witnesses); w*each < 40 || (w-1)*each >= 40 {
				t.Errorf("%s: %d witnesses of %.2f bits each are not the fewest for 40", x.name, d.Witnesses, each)
			}
		}
	}
}

// Appendix B by its own formula with its own parameters (phy/README.md, section 7).
// The paper's text states 6e-17 Omega^2 and 3e-17 Omega^2 for n = 4096 and 8192,
// and 2e-16 and 4e-16 in Table II: the formula gives neither, and grows with n.
func TestAppendixB(t *testing.T) {
	decoded := func(n int, sigma float64, noise [slot.Transmissions]float64) float64 {
		p := testSet(t, "paper-4096")
		p.N = n
		c := &Context{Params: p}
		var err error
		if c.shareVar, err = p.ShareVariance(); err != nil {
			t.Fatal(err)
		}
		mu, omega := equalGains(10, sigma)
		b := c.Budget(expectedSums(squareLaws(mu, omega, nil), 1), noise)
		return b.Noise() / (p.Lambda() * p.Lambda()) // the paper leaves the rounding of m out
	}
	none := [slot.Transmissions]float64{}
	v := decoded(4096, 1, none)
	near(t, "the decoded variance at n = 4096, sigma = 1", v, 2.7e-17, 0.02)
	// By hand: (2/3 + 1) n sigma_e^2 (S^2 + 2 S2 - 2 S4) + 2 sigma_e^2 S.
	near(t, "the same by hand", v, (5.0/3*4096*10.24*(400+80-20)+2*10.24*20)/0x1p80, 1e-9)
	const sigma = 1e4
	omega := 1 + sigma*sigma
	near(t, "the decoded variance over Omega^2 at large sigma", decoded(4096, sigma, none)/(omega*omega), 6.9e-18, 0.01)
	near(t, "its growth with n", decoded(8192, 1, none)/v, 2, 1e-3)

	// Every term of Eq. 25, with four different channel noises in place of one.
	p := testSet(t, "paper-4096")
	c := &Context{Params: p, shareVar: 7}
	b := c.Budget(GainSums{S: 20, Q: 460}, [slot.Transmissions]float64{2, 3, 5, 11})
	for _, x := range []struct {
		what      string
		got, want float64
	}{
		{"A", b.A, 2.0 / 3 * 4096 * (10.24*460 + 2*20)},
		{"B1", b.B1, 10.24 * 20},
		{"B2", b.B2, 3},
		{"C1", b.C1, 4096 * 10.24 * 460},
		{"C2", b.C2, 4096 * 5 * 20},
		{"D", b.D, 11},
		{"E", b.E, 7 * 20},
		{"R", b.R, 20. / 12},
	} {
		near(t, x.what, x.got, x.want, 1e-12)
	}
	near(t, "the sum", b.Total(), b.A+b.B1+b.B2+b.C1+b.C2+b.D+b.E+b.R, 1e-15)
	near(t, "the sum without a message", b.Noise(), b.Total()-b.R, 1e-15)
	near(t, "Proposition 1's bound", c.FailureBound(b), 4*4096*b.Noise()/math.Exp2(2*p.LogQ()), 1e-12)
	near(t, "the decoded deviation", c.DecodedStd(b, 256), math.Sqrt(b.Total())/(256*0x1p40), 1e-12)
}

// testGains returns unequal devices.
func testGains() (mu, sigma, omega []float64) {
	mu = []float64{1, 0.5, -2, 1.5, 0.1, 3}
	sigma = []float64{1, 0.2, 2, 0, 4, 0.5}
	for i := range mu {
		omega = append(omega, mu[i]*mu[i]+sigma[i]*sigma[i])
	}
	return mu, sigma, omega
}

func TestExpectedSumsAgainstDraws(t *testing.T) {
	const alpha, draws = 4, 200_000
	mu, sigma, omega := testGains()
	rnd := rand.New(keystream.FromInteger(11).Stream())
	var s, s2, q, q2 float64
	for range draws {
		scaled := make([]float64, len(mu))
		for i := range mu {
			scaled[i] = alpha * (mu[i] + sigma[i]*rnd.NormFloat64())
		}
		sums := SumsOf(scaled)
		s += sums.S
		s2 += sums.S * sums.S
		q += sums.Q
		q2 += sums.Q * sums.Q
	}
	want := expectedSums(squareLaws(mu, omega, nil), alpha)
	check := func(what string, sum, squares, want float64) {
		t.Helper()
		mean := sum / draws
		off := (mean - want) / math.Sqrt((squares/draws-mean*mean)/draws)
		t.Logf("%s: %.5g of %d draws, expected %.5g: %.2f deviations", what, mean, draws, want, off)
		if math.Abs(off) > 5 {
			t.Errorf("%s is %v deviations off", what, off)
		}
	}
	check("S", s, s2, want.S)
	check("Q", q, q2, want.Q)
}

// largeSum bounds the quantile and is not far above it.
func TestLargeSumAgainstDraws(t *testing.T) {
	const p, draws = 1e-3, 100_000
	rnd := rand.New(keystream.FromInteger(12).Stream())
	check := func(what string, mu, sigma []float64) {
		t.Helper()
		omega := make([]float64, len(mu))
		for i := range mu {
			omega[i] = mu[i]*mu[i] + sigma[i]*sigma[i]
		}
		sums := make([]float64, draws)
		for k := range sums {
			for i := range mu {
				h := 2 * (mu[i] + sigma[i]*rnd.NormFloat64())
				sums[k] += h * h
			}
		}
		slices.Sort(sums)
		quantile, bound := sums[int((1-p)*draws)], largeSum(squareLaws(mu, omega, nil), 2, p)
		t.Logf("%s: the quantile is %.4g, the bound %.4g: a factor of %.2f", what, quantile, bound, bound/quantile)
		if bound < quantile || bound > 2*quantile {
			t.Errorf("%s: the bound %v stands by the quantile %v", what, bound, quantile)
		}
		if rarer := largeSum(squareLaws(mu, omega, nil), 2, 1e-9); rarer <= bound {
			t.Errorf("%s: the bound at 1e-9 is %v, that at 1e-3 %v", what, rarer, bound)
		}
	}
	mu, sigma, _ := testGains()
	check("unequal gains", mu, sigma)
	for _, s := range []float64{0.05, 1, 10} {
		for _, n := range []int{1, 3, 10} {
			var mu, sigma []float64
			for range n {
				mu, sigma = append(mu, 1), append(sigma, s)
			}
			check("equal gains", mu, sigma)
		}
	}
	// Gains that do not vary are known.
	near(t, "constant gains", largeSum(squareLaws([]float64{1, -2}, []float64{1, 4}, nil), 3, 1e-9), 9*5, 1e-15)
}

// The variance of a rounded Gaussian, against the series that Poisson summation
// gives: sigma^2 + 1/12 + sum (-1)^k (4 sigma^2 + 1/(pi k)^2) exp(-2 (pi k sigma)^2).
func TestRoundedVariance(t *testing.T) {
	for _, std := range []float64{0.1, 0.2, 0.3, 0.5, 0.6, 0.8, 1, 1.5, 2, 2.0001, 2.5, 3.2, 10, 1e6} {
		want := std*std + 1.0/12
		for k := 1.0; k <= 400; k++ {
			term := (4*std*std + 1/(math.Pi*math.Pi*k*k)) * math.Exp(-2*math.Pi*math.Pi*k*k*std*std)
			want += term * (1 - 2*math.Mod(k, 2))
		}
		// The series cancels at small sigma: its terms are of order 1/12.
		if got := RoundedVariance(std); math.Abs(got-want) > 1e-12*want+1e-15 {
			t.Errorf("sigma = %v: %v, expected %v", std, got, want)
		}
	}
	if got := RoundedVariance(0); got != 0 {
		t.Errorf("no noise has variance %v", got)
	}
	near(t, "the variance at 0.6", RoundedVariance(0.6), 0.36+1.0/12, 3e-3)
}

func TestDesignRefusals(t *testing.T) {
	mu, omega := equalGains(10, 10)
	for what, x := range map[string]struct {
		set    string
		change func(*Params, *Link)
		why    string
	}{
		"Lambda overflows q":   {"ringwave-4096", func(p *Params, l *Link) { p.LogLambda = 96 }, "alpha Lambda |M| may reach 2^112.1, beyond q/2 = 2^108.0"},
		"values overflow q":    {"paper-4096", func(p *Params, l *Link) { l.DeltaMax = 1e20 }, "|Delta f/mu| <= 1e+20"},
		"values without bound": {"paper-4096", func(p *Params, l *Link) { l.DeltaMax = math.Inf(1) }, "may reach 2^+Inf, beyond q/2"},
		"alpha too large":      {"demo-1024", func(p *Params, l *Link) { p.LogLambda = 1; l.Alpha = 256 }, "too near to q/2 = 2^26.0 (alpha = 256, 10 devices): lower alpha"},
		"noise too large":      {"paper-4096", func(p *Params, l *Link) { l.NoiseStd[slot.TxC1] = 0x1p100 }, "six deviations of the noise may reach"},
		"flooding too wide":    {"ringwave-4096", func(p *Params, l *Link) { p.FloodingBits = 140 }, "six deviations of the noise may reach"},
		"flooding beyond what is sampled": {"ringwave-4096", func(p *Params, l *Link) { p.FloodingBits = 200 },
			"need more flooding than can be sampled"},
		"n not a power of two": {"paper-4096", func(p *Params, l *Link) { p.N = 4000 }, "n is 4000: it must be a power of two"},
		"prime not 1 mod 2n":   {"paper-4096", func(p *Params, l *Link) { p.Primes = []uint64{1<<54 - 33} }, "it must be 1, so that R_q has a number-theoretic transform"},
		"no attempts":          {"paper-4096", func(p *Params, l *Link) { l.Shares = 0 }, "gives 0 decryption shares: at least 1 is needed"},
		"no bound":             {"paper-4096", func(p *Params, l *Link) { l.DeltaMax = 0 }, "the bound on |Delta f/mu| is 0"},
		"bound no number":      {"paper-4096", func(p *Params, l *Link) { l.DeltaMax = math.NaN() }, "the bound on |Delta f/mu| is NaN"},
		"alpha 0":              {"paper-4096", func(p *Params, l *Link) { l.Alpha = 0 }, "the lattice scale alpha is 0"},
		"alpha no number":      {"paper-4096", func(p *Params, l *Link) { l.Alpha = math.NaN() }, "the lattice scale alpha is NaN"},
		"noise no number":      {"paper-4096", func(p *Params, l *Link) { l.NoiseStd[slot.TxC0] = math.NaN() }, "the ring noise of c0 has standard deviation NaN"},
		"noise negative":       {"paper-4096", func(p *Params, l *Link) { l.NoiseStd[slot.TxKey] = -1 }, "the ring noise of b has standard deviation -1"},
		"no devices":           {"paper-4096", func(p *Params, l *Link) { l.Mu, l.Omega = nil, nil }, "0 means and 0 second moments"},
		"moments missing":      {"paper-4096", func(p *Params, l *Link) { l.Omega = l.Omega[:9] }, "10 means and 9 second moments"},
		"gain no number":       {"paper-4096", func(p *Params, l *Link) { l.Omega = []float64{math.NaN()}; l.Mu = l.Mu[:1] }, "device 1"},
		"moments impossible":   {"paper-4096", func(p *Params, l *Link) { l.Omega = []float64{0.5}; l.Mu = l.Mu[:1] }, "its second moment 0.5: it must be finite and at least the mean's square"},
	} {
		p := testSet(t, x.set)
		l := Link{Mu: mu, Omega: omega, Alpha: 256, DeltaMax: 1, Shares: 1600}
		x.change(&p, &l)
		for _, form := range forms() {
			_, err := NewDesign(p, form, l)
			if err == nil || !strings.Contains(err.Error(), x.why) {
				t.Errorf("%s: %v, expected a refusal that says %q", what, err, x.why)
			}
		}
	}
	// A small ring whose noise leaves two bits of each witness.
	p := Params{
		Name: "tight", N: 16, Primes: largestPrimes(t, 16, 20, 1), LogLambda: 1,
		Secret: sampler.Ternary, Ephemeral: sampler.Ternary,
		KeyError: sampler.Binomial, Error0: sampler.Binomial, Error1: sampler.Binomial, ShareError: sampler.Binomial,
	}
	_, err := NewDesign(p, Whole, Link{Mu: []float64{1}, Omega: []float64{1}, Alpha: 40, DeltaMax: 1, Shares: 1})
	if err == nil || !strings.Contains(err.Error(), "no number of witnesses below n/2") {
		t.Errorf("a ring too small for its witnesses: %v", err)
	}
}

// The server takes M only where every witness is noise, and tells which is not.
func TestServerChecksWitnesses(t *testing.T) {
	for _, set := range tried() {
		for _, form := range forms() {
			const alpha = 4
			d := testDesign(t, set, form, 3, 1, alpha, 10)
			c := testContext(t, d.Params, form, d.Witnesses)
			server := c.NewServer(d)
			p := newParty(t, c, []int64{4, -2, 7})
			delta := []float64{0.5, 1, -0.25}
			p.attempt(t, 0, 0, delta)
			c0, share := p.sum[slot.TxC0], p.sum[slot.TxShare]
			m, err := recoverOne(server, c0, share, alpha)
			if err != nil {
				t.Fatalf("%s, %v: %v", set.Name, form, err)
			}
			ideal := (4*0.5 - 2*1 - 7*0.25) / alpha
			std := d.ConditionalStd(c, []float64{4, -2, 7})
			if math.Abs(m-ideal) > 6*std+0x1p-50 {
				t.Errorf("%s, %v: M = %v, expected %v within six times %v", set.Name, form, m, ideal, std)
			}
			all := make([]float64, c.Revealed())
			server.Coefficients(all, c0, share)
			near(t, "coefficient 0 undecoded", all[0]/(alpha*c.Params.Lambda()), m, 1e-15)

			for k := 1; k <= d.Witnesses; k++ {
				broken := c.mod.NewVector(c0.Len())
				broken.Copy(c0)
				// The middle of the numbers modulo q is as far from noise as can be.
				for j, prime := range c.Params.Primes {
					broken[j][k] = (broken[j][k] + prime/2) % prime
				}
				if _, err := recoverOne(server, broken, share, alpha); !errors.Is(err, ErrWitness) || !strings.Contains(err.Error(), "coefficient") {
					t.Errorf("%s, %v: witness %d broken: %v", set.Name, form, k, err)
				}
			}
			// A scale that is no number allows nothing.
			for _, alpha := range []float64{math.NaN(), 0} {
				if m, err := recoverOne(server, c0, share, alpha); !errors.Is(err, ErrWitness) {
					t.Errorf("%s, %v: at alpha = %v M = %v, %v", set.Name, form, alpha, m, err)
				}
			}
		}
	}
}

// What witnesses are for: gains that change between the phases leave a residual
// that is uniform modulo q.
func TestWitnessesCatchChangedGains(t *testing.T) {
	for _, x := range []struct {
		what   string
		change func(p *party, h []int64) []zq.Vector // the sums of b, c0, c1 and D
	}{
		{"D at other gains than b", func(p *party, h []int64) []zq.Vector {
			return []zq.Vector{p.sum[slot.TxC0], p.resum(slot.TxShare, h)}
		}},
		{"c0 at other gains than c1", func(p *party, h []int64) []zq.Vector {
			return []zq.Vector{p.resum(slot.TxC0, h), p.sum[slot.TxShare]}
		}},
	} {
		for _, set := range tried() {
			d := testDesign(t, set, Short, 3, 1, 4, 10)
			c := testContext(t, d.Params, Short, d.Witnesses)
			p := newParty(t, c, []int64{4, -2, 7})
			server := c.NewServer(d)
			for round := range uint32(20) {
				p.attempt(t, round, 0, []float64{0, 0, 0})
				sums := x.change(p, []int64{4, -2, 6})
				if m, err := recoverOne(server, sums[0], sums[1], 4); !errors.Is(err, ErrWitness) {
					t.Errorf("%s, %s: M = %v, %v", set.Name, x.what, m, err)
				}
			}
		}
	}
}

// resum superposes what was sent anew, with other gains.
func (p *party) resum(tx slot.Transmission, gains []int64) zq.Vector {
	y := p.ctx.mod.NewVector(p.sent[tx][0].Len())
	for i, h := range gains {
		p.ctx.mod.AddScaled(y, h, p.sent[tx][i])
	}
	return y
}
