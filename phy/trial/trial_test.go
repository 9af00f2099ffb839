package trial

import (
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
)

// counted returns how many trials a test makes: few with -short, all of them with
// RINGWAVE_LONG in the environment.
func counted(short, usual, long int) int {
	switch {
	case os.Getenv("RINGWAVE_LONG") != "":
		return long
	case testing.Short():
		return short
	}
	return usual
}

// usual is the program's default modem, with delays up to a sample and phases.
func usual(devices int, sigma, snr float64) Config {
	return Config{
		Devices: devices, Gain: channel.Gaussian{Mu: 1, Sigma: sigma}, SNRdB: snr, Base: 3, BlockSymbols: 8192,
		Modem:    modem.Config{SamplesPerSymbol: 8, Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, Preamble: modem.Preamble{Length: modem.DefaultPreamble}},
		MaxAlpha: 40, DelaySpread: 1, PhaseSpread: 0.2, Attempts: 1, Seed: keystream.FromInteger(41),
	}
}

func newBench(t testing.TB, cfg Config) *Bench {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func outcome(t testing.TB, b *Bench, number uint32) Outcome {
	t.Helper()
	o, err := b.Trial(t.Context(), number)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The table of phy/README.md, section 3: the share of blocks of 8,192 symbols read at
// the first attempt. Bound: the table's but for its rounding and three deviations.
func TestAtLeastTheTable(t *testing.T) {
	trials := counted(20, 40, 1000)
	for _, e := range []struct {
		devices           int
		sigma, snr, share float64
	}{
		{2, 0.05, 30, 1}, {2, 0.3, 30, 0.95}, {2, 0.3, 40, 1}, {2, 1, 40, 1}, {2, 1, 50, 1},
		{3, 0.05, 30, 1}, {3, 0.3, 30, 0.69}, {3, 0.3, 40, 0.95}, {3, 1, 40, 0.97}, {3, 1, 50, 1},
		{4, 0.05, 30, 1}, {4, 0.3, 30, 0.30}, {4, 0.3, 40, 0.61}, {4, 1, 40, 0.71}, {4, 1, 50, 0.97},
	} {
		b := newBench(t, usual(e.devices, e.sigma, e.snr))
		var tally Tally
		for k := range uint32(trials) {
			tally.Add(outcome(t, b, k))
		}
		if tally.Wrong != 0 {
			t.Errorf("N = %d, sigma = %v, %v dB: %d wrong blocks accepted: %s", e.devices, e.sigma, e.snr, tally.Wrong, tally.FirstWrong)
		}
		got, n := float64(tally.Within(1))/float64(trials), float64(trials)
		p := e.share - 0.005
		t.Logf("N = %d, sigma = %v, %v dB: %.3f, the table has %.2f; misfit %.3f, zero gains %.3f", e.devices, e.sigma, e.snr, got, e.share, tally.Misfit(), tally.ZeroGains())
		if got < p-3*math.Sqrt(p*(1-p)/n)-0.5/n {
			t.Errorf("N = %d, sigma = %v, %v dB: %.3f of blocks were read, the table has %.2f", e.devices, e.sigma, e.snr, got, e.share)
		}
	}
}

// A trial is the same whatever came before it, so that many benches may share the
// trials of a point.
func TestTrialsDoNotDependOnEachOther(t *testing.T) {
	for _, whole := range []bool{false, true} {
		for _, snr := range []float64{24, 32} { // some are read at once, some later, some never
			cfg := usual(3, 0.3, snr)
			cfg.Attempts, cfg.WholeRounds, cfg.BlockSymbols = 3, whole, 2000
			all := newBench(t, cfg)
			var want []Outcome
			for k := range uint32(12) {
				want = append(want, outcome(t, all, k))
			}
			again := newBench(t, cfg)
			for _, k := range []uint32{11, 3, 4, 0, 7} {
				if got := outcome(t, again, k); !reflect.DeepEqual(got, want[k]) {
					t.Errorf("%v dB, trial %d: %+v, and after others %+v", snr, k, got, want[k])
				}
			}
		}
	}
}

// Without noise the gains that the truth measures are those of the channel: the
// real parts at the common phase, to the 0.7 % that a fraction of a sample costs.
func TestMeasuredGains(t *testing.T) {
	for _, pulse := range []modem.Pulse{modem.FlatTop{Edge: 2, Tolerance: 1}, modem.RootRaisedCosine{RollOff: 0.5, Span: 16}} {
		cfg := usual(2, 0.3, 80)
		cfg.Modem.Pulse = pulse
		_, cfg.Compensated = pulse.(modem.RootRaisedCosine)
		b := newBench(t, cfg)
		for k := range uint32(10) {
			o := outcome(t, b, k)
			if o.Attempt != 1 || o.Wrong != "" {
				t.Fatalf("%T, trial %d: %+v", pulse, k, o)
			}
			var sum complex128
			for i, h := range b.air.H {
				sum += complex(h, 0) * cmplx.Rect(1, b.phases[i])
			}
			for i, h := range b.air.H {
				want := h * math.Cos(b.phases[i]-cmplx.Phase(sum))
				if got := b.truth.h[i]; math.Abs(got/want-1) > 0.01 {
					t.Errorf("%T, trial %d: h_%d measured as %v, the channel has %v", pulse, k, i+1, got, want)
				}
			}
		}
	}
}

// What is not the truth is called wrong: other digits, gains of another scale. A
// pattern misread beside a block that is right is called that, and not wrong.
func TestJudgeTellsWrongFromRight(t *testing.T) {
	b := newBench(t, usual(2, 0.3, 60))
	k := uint32(0)
	for outcome(t, b, k).Attempt == 0 {
		k++
	}
	solved := slices.Clone(b.solved)
	check := func(name string, solved []float64, wrong, misread bool) {
		t.Helper()
		v, err := b.truth.judge(b.mod, solved, b.x, b.rx.Y)
		if err != nil || wrong != (v.wrong != "") || misread != v.misread {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	check("as it is", solved, false, false)
	check("no pattern", nil, false, true)
	check("another pattern", []float64{solved[0] + 1, solved[1]}, false, true)
	b.truth.alpha *= 1.5
	check("another scale", solved, true, false)
	// Just off the middle between two integers, the regression may miss the one that
	// was read; what the pattern says then counts.
	b.truth.alpha = (solved[0] + 0.5 + 1e-6) / b.truth.h[0]
	if math.Abs(b.truth.alpha*b.truth.h[1]-solved[1]) < 0.5 {
		check("between two integers", solved, false, false)
	}
	b.truth.alpha = solved[0] / b.truth.h[0]
	b.rx.Y[0][7] = (b.rx.Y[0][7] + 1) % prime
	check("another coefficient", solved, true, false)
}

// At N = 3, sigma = 0.3, 40 dB, four attempts read at least 99 % of whole rounds;
// beyond two deviations of that share would be chance.
func TestRetryOfWholeRounds(t *testing.T) {
	cfg := usual(3, 0.3, 40)
	cfg.Attempts, cfg.WholeRounds = 4, true
	b := newBench(t, cfg)
	rounds := counted(10, 40, 1000)
	var tally Tally
	for k := range uint32(rounds) {
		tally.Add(outcome(t, b, k))
	}
	t.Logf("%d rounds: read at attempts 1 to 4: %v", rounds, tally.ReadAt)
	if least := int(0.99*float64(rounds) - 2*math.Sqrt(0.0099*float64(rounds))); tally.Within(4) < least || tally.Wrong != 0 {
		t.Errorf("%d of %d rounds were read in four attempts, %d wrongly: %s", tally.Within(4), rounds, tally.Wrong, tally.FirstWrong)
	}
}

// Wilson's interval against the figures of Newcombe, Statistics in Medicine 17
// (1998), table I, method 3.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718},
	} {
		low, high := Wilson(c.k, c.n)
		if math.Abs(low-c.low) > 5e-5 || math.Abs(high-c.high) > 5e-5 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
	if low, high := Wilson(0, 0); low != 0 || high != 1 {
		t.Errorf("nothing counted: %v to %v", low, high)
	}
	if _, high := Wilson(7, 7); high != 1 {
		t.Errorf("all of 7: up to %v", high)
	}
}

func TestTally(t *testing.T) {
	var tally Tally
	if !math.IsNaN(tally.Misfit()) || !math.IsNaN(tally.ZeroGains()) || tally.Within(4) != 0 {
		t.Errorf("nothing counted: %v, %v, %d", tally.Misfit(), tally.ZeroGains(), tally.Within(4))
	}
	for _, o := range []Outcome{{Attempt: 1, Misfit: 0.5}, {}, {Attempt: 3, Misfit: 0.1, ZeroGains: 1, Misread: true}, {Attempt: 1, Misfit: 0.2, Wrong: "so"}, {Attempt: 1, Misfit: 0.3, Wrong: "and so"}} {
		tally.Add(o)
	}
	if tally.Trials != 5 || !reflect.DeepEqual(tally.ReadAt, []int{3, 0, 1}) || tally.Misread != 1 || tally.Within(2) != 3 || tally.Within(4) != 4 {
		t.Errorf("%+v", tally)
	}
	if tally.Wrong != 2 || tally.FirstWrong != "so" || tally.Misfit() != 0.25 || tally.ZeroGains() != 0.25 {
		t.Errorf("%+v: misfit %v, zero gains %v", tally, tally.Misfit(), tally.ZeroGains())
	}
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"0 devices":         func(c *Config) { c.Devices = 0 },
		"33 devices":        func(c *Config) { c.Devices = 33 },
		"distribution":      func(c *Config) { c.Gain = nil },
		"NaN dB":            func(c *Config) { c.SNRdB = math.NaN() },
		"delays":            func(c *Config) { c.DelaySpread = -1 },
		"phases":            func(c *Config) { c.PhaseSpread = 7 },
		"0 attempts":        func(c *Config) { c.Attempts = 0 },
		"40 symbols":        func(c *Config) { c.BlockSymbols = 40 },
		"64 symbols":        func(c *Config) { c.BlockSymbols = 64 },
		"base":              func(c *Config) { c.Base = 4 },
		"samples a symbol":  func(c *Config) { c.Modem.SamplesPerSymbol = 1 },
		"the modem has no ": func(c *Config) { c.Modem.Pulse = nil },
		"standard":          func(c *Config) { c.Gain = channel.Gaussian{Mu: 1, Sigma: -1} },
	} {
		cfg := usual(2, 0.3, 40)
		change(&cfg)
		if b, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v, %v", want, b, err)
		}
	}
}

func BenchmarkTrial(b *testing.B) {
	for devices := 2; devices <= 4; devices++ {
		b.Run(fmt.Sprintf("N=%d", devices), func(b *testing.B) {
			bench := newBench(b, usual(devices, 0.3, 40))
			k := uint32(0)
			for b.Loop() {
				outcome(b, bench, k)
				k++
			}
		})
	}
}
