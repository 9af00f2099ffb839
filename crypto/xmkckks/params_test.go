package xmkckks

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
)

func TestSetsAreValid(t *testing.T) {
	names := map[string]bool{}
	for _, p := range Sets() {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if names[p.Name] || p.Name == "" || p.Note == "" {
			t.Errorf("a set is called %q, with the note %q", p.Name, p.Note)
		}
		names[p.Name] = true
		if got, ok := Lookup(p.Name); !ok || got.Name != p.Name {
			t.Errorf("Lookup does not find %s", p.Name)
		}
		for _, prime := range p.Primes {
			if !new(big.Int).SetUint64(prime).ProbablyPrime(30) || prime%uint64(2*p.N) != 1 {
				t.Errorf("%s: %d is no prime that is 1 modulo 2n", p.Name, prime)
			}
		}
		// log2 q is what the set's name says, or the paper, exactly as bits.
		want := map[string]int{
			"ringwave-4096-100": 100, "ringwave-8192-200": 200, "ringwave-4096": 109,
			"paper-4096": 109, "paper-8192": 218, "lean-2048": 54, "demo-1024": 27,
		}[p.Name]
		if got := modulus(p.Primes).BitLen(); got != want || p.CoefficientBits() != want {
			t.Errorf("%s: q has %d bits and is said to have %d, expected %d", p.Name, got, p.CoefficientBits(), want)
		}
	}
	if Sets()[0].Name != "ringwave-4096-100" {
		t.Errorf("the default is %s", Sets()[0].Name)
	}
	if _, ok := Lookup("paper-1024"); ok {
		t.Error("Lookup finds a set that there is not")
	}
}

// The primes of the sets for the newer tables are the largest below 2^50 that are 1
// modulo 2 * 8192, so that they serve both dimensions.
func TestPrimesBelow2To50(t *testing.T) {
	var largest []uint64
	for p := uint64(1<<50 - 16384 + 1); len(largest) < 4; p -= 16384 {
		if new(big.Int).SetUint64(p).ProbablyPrime(30) {
			largest = append(largest, p)
		}
	}
	if got := testSet(t, "ringwave-8192-200").Primes; !slices.Equal(got, largest) {
		t.Errorf("ringwave-8192-200 has the primes %#x, the largest are %#x", got, largest)
	}
	if got := testSet(t, "ringwave-4096-100").Primes; !slices.Equal(got, largest[:2]) {
		t.Errorf("ringwave-4096-100 has the primes %#x, the largest are %#x", got, largest[:2])
	}
}

// Table II and Section IV-H of the paper, and the savings of phy/README.md, section 5.
func TestCostsOfASet(t *testing.T) {
	for _, x := range []struct {
		name             string
		bytes, uplink    int
		expansion        float64
		lambda, logLimit float64
	}{
		{"paper-4096", 111_616, 1_785_856, 13_952, 0x1p40, 109},
		{"paper-8192", 446_464, 7_143_424, 55_808, 0x1p40, 218},
		{"ringwave-4096", 111_616, 1_785_856, 13_952, 0x1p74, 109},
		{"ringwave-4096-100", 102_400, 1_638_400, 12_800, 0x1p74, 100},
		{"ringwave-8192-200", 409_600, 6_553_600, 51_200, 0x1p96, 200},
	} {
		p := testSet(t, x.name)
		if p.CiphertextBytes() != x.bytes || p.UplinkBits(Whole, 1, 7) != x.uplink || p.ExpansionFactor() != x.expansion || p.Lambda() != x.lambda {
			t.Errorf("%s: %d bytes, %d bits up, expansion %v, Lambda %v; expected %+v",
				x.name, p.CiphertextBytes(), p.UplinkBits(Whole, 1, 7), p.ExpansionFactor(), p.Lambda(), x)
		}
		if logQ := p.LogQ(); !(logQ <= x.logLimit && logQ > x.logLimit-1e-8) {
			t.Errorf("%s: log2 q = %v, expected %v", x.name, logQ, x.logLimit)
		}
	}
	whole, lean, demo := testSet(t, "paper-4096"), testSet(t, "lean-2048"), testSet(t, "demo-1024")
	if got, want := whole.UplinkBits(Short, 1, 2), (2*4096+6)*109; got != want {
		t.Errorf("the short form sends %d bits, expected %d", got, want)
	}
	for _, x := range []struct {
		what      string
		got, want float64
	}{
		{"(2048, 54) whole to whole", float64(lean.UplinkBits(Whole, 1, 0)) / float64(whole.UplinkBits(Whole, 1, 0)), 1. / 4},
		{"(1024, 27) whole to whole", float64(demo.UplinkBits(Whole, 1, 0)) / float64(whole.UplinkBits(Whole, 1, 0)), 1. / 16},
		{"(2048, 54) short to whole", float64(lean.UplinkBits(Short, 1, 1)) / float64(whole.UplinkBits(Whole, 1, 0)), 1. / 8},
		{"(1024, 27) short to whole", float64(demo.UplinkBits(Short, 1, 5)) / float64(whole.UplinkBits(Whole, 1, 0)), 1. / 32},
	} {
		if math.Abs(x.got/x.want-1) > 0.02 {
			t.Errorf("%s: %.4f of the uplink, expected %.4f", x.what, x.got, x.want)
		}
	}
}

func TestValidateRefusals(t *testing.T) {
	for what, x := range map[string]struct {
		change func(*Params)
		why    string
	}{
		"n not a power of two": {func(p *Params) { p.N = 4095 }, "n is 4095: it must be a power of two"},
		"n too small":          {func(p *Params) { p.N = 8 }, "n is 8"},
		"n too large":          {func(p *Params) { p.N = 32768 }, "n is 32768"},
		"no n":                 {func(p *Params) { p.N = 0 }, "n is 0"},
		"prime not 1 mod 2n":   {func(p *Params) { p.Primes = []uint64{1<<54 - 33} }, "it must be 1"},
		"Lambda too large":     {func(p *Params) { p.LogLambda = 97 }, "log2 Lambda is 97"},
		"Lambda 1":             {func(p *Params) { p.LogLambda = 0 }, "log2 Lambda is 0"},
		"too little flooding":  {func(p *Params) { p.LogFlood = 15.9 }, "the flooding's deviation is 15.9"},
		"too much flooding":    {func(p *Params) { p.LogFlood = 97 }, "the flooding's deviation is 97"},
		"flooding no number":   {func(p *Params) { p.LogFlood = math.NaN() }, "the flooding's deviation is NaN"},
		"no primes":            {func(p *Params) { p.Primes = nil }, "1 to 4 primes, not 0"},
		"a composite":          {func(p *Params) { p.Primes = []uint64{8193 * 8193} }, "it must be an odd prime"},
		"a prime twice":        {func(p *Params) { p.Primes[1] = p.Primes[0] }, "occurs twice"},
	} {
		p := testSet(t, "ringwave-4096")
		x.change(&p)
		_, err := NewContext(p, Whole, 1, 1, keystream.FromInteger(1))
		if err == nil || !strings.Contains(err.Error(), x.why) || !strings.Contains(err.Error(), "parameter set ringwave-4096") {
			t.Errorf("%s: %v, expected a refusal that says %q", what, err, x.why)
		}
	}
	for _, witnesses := range []int{-1, 4096} {
		_, err := NewContext(testSet(t, "ringwave-4096"), Whole, 1, witnesses, keystream.FromInteger(1))
		if err == nil || !strings.Contains(err.Error(), "witnesses: allowed are 0 to n-1") {
			t.Errorf("%d witnesses: %v", witnesses, err)
		}
	}
}

func TestSecurityVerdicts(t *testing.T) {
	for _, x := range []struct {
		name            string
		standard, newer bool
		old, new        string
	}{
		{"demo-1024", true, false, "meets the limit of 27", "exceeds the limit of 26 for 128 bits: about 123 bits"},
		{"lean-2048", true, false, "meets the limit of 54", "exceeds the limit of 53 for 128 bits: about 126 bits"},
		{"ringwave-4096-100", true, true, "log2 q = 100.0 meets the limit of 109", "log2 q = 100.0 meets the limit of 106 for 128 bits: about 136 bits"},
		{"ringwave-8192-200", true, true, "log2 q = 200.0 meets the limit of 218", "log2 q = 200.0 meets the limit of 214 for 128 bits: about 137 bits"},
		{"ringwave-4096", true, false, "log2 q = 109.0 meets the limit of 109", "log2 q = 109.0 exceeds the limit of 106 for 128 bits: about 124 bits"},
		{"paper-4096", true, false, "log2 q = 109.0 meets the limit of 109", "exceeds the limit of 106 for 128 bits: about 124 bits"},
		{"paper-8192", true, false, "log2 q = 218.0 meets the limit of 218", "exceeds the limit of 214 for 128 bits: about 126 bits"},
	} {
		p := testSet(t, x.name)
		s := p.Security()
		if s.MeetsStandard() != x.standard || s.MeetsNewer() != x.newer {
			t.Errorf("%s: meets 2018 %v, 2024 %v", x.name, s.MeetsStandard(), s.MeetsNewer())
		}
		if !strings.Contains(s.ByStandard(), x.old) || !strings.Contains(s.ByNewer(), x.new) {
			t.Errorf("%s: 2018 %q, 2024 %q, expected %q and %q", x.name, s.ByStandard(), s.ByNewer(), x.old, x.new)
		}
		for _, want := range []string{s.ByStandard(), s.ByNewer(), s.Caveat(), "HomomorphicEncryption.org 2018", "eprint 2024/463", "ternary secrets"} {
			if !strings.Contains(s.String(), want) {
				t.Errorf("%s: %q does not say %q", x.name, s, want)
			}
		}
		if disguised := strings.Contains(s.String(), "disguise"); disguised != (p.Secret == sampler.Signs) {
			t.Errorf("%s, secrets %v: %q", x.name, p.Secret, s)
		}
	}
	// A modulus below both limits, and one beyond both.
	p := testSet(t, "paper-8192")
	p.Primes = p.Primes[:3]
	if s := p.Security(); !s.MeetsStandard() || !s.MeetsNewer() || !strings.Contains(s.String(), "meets the limit of 214") {
		t.Errorf("three primes: %v", s)
	}
	p = testSet(t, "lean-2048")
	p.Primes = testSet(t, "ringwave-4096").Primes
	if s := p.Security(); s.MeetsStandard() || s.MeetsNewer() || !strings.Contains(s.String(), "exceeds the limit of 54") {
		t.Errorf("(2048, 109): %v", s)
	}
	// A dimension that the tables do not know is granted nothing.
	p = smallSet(t, 16)
	if s := p.Security(); s.MeetsStandard() || s.MeetsNewer() || s.Bits != 0 || strings.Contains(s.String(), "meets") || !strings.Contains(s.String(), "unknown") {
		t.Errorf("n = 16: %+v", s)
	}
}
