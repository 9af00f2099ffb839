package trial

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
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
func usual(devices int, sigma, snr float64) Blocks {
	return Blocks{
		Devices: devices, Gain: channel.Gaussian{Mu: 1, Sigma: sigma}, SNRdB: snr, Base: 3, BlockSymbols: 8192,
		Modem:    modem.Config{SamplesPerSymbol: 8, Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, Preamble: modem.Preamble{Length: modem.DefaultPreamble}},
		MaxAlpha: 40, DelaySpread: 1, PhaseSpread: 0.2, Attempts: 1, Seed: keystream.FromInteger(41),
	}
}

func configOf(t testing.TB, b Blocks) Config {
	t.Helper()
	c, err := b.Config()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// simulated carries out so many trials.
func simulated(t testing.TB, c Config, trials int) (tally Tally) {
	t.Helper()
	outcomes, err := Simulate(t.Context(), c, Effort{Most: trials})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		tally.Add(o)
	}
	return tally
}

func outcome(t testing.TB, c Config, number uint32) Outcome {
	t.Helper()
	o, err := Round(t.Context(), c, number)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// carried returns a round of one attempt as it is behind it.
func carried(t testing.TB, c Config, number uint32) (*round, Outcome) {
	t.Helper()
	r, err := newRound(c, number)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.air.Close() })
	r.slot.Round = number
	var out Outcome
	try, err := r.try(t.Context(), 0, &out)
	if err != nil {
		t.Fatal(err)
	}
	out.Tries = append(out.Tries, try)
	if try.Failure == "" {
		out.Attempt = 1
	}
	return r, out
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
		tally := simulated(t, configOf(t, usual(e.devices, e.sigma, e.snr)), trials)
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

// A trial is the same whatever came before it, and on however many cores; and as many are
// enough.
func TestTrialsDoNotDependOnEachOther(t *testing.T) {
	for _, whole := range []bool{false, true} {
		for _, snr := range []float64{24, 32} { // some are read at once, some later, some never
			b := usual(3, 0.3, snr)
			b.Attempts, b.WholeRounds, b.BlockSymbols = 3, whole, 2000
			cfg := configOf(t, b)
			var want []Outcome
			for k := range uint32(12) {
				want = append(want, outcome(t, cfg, k))
			}
			for _, workers := range []int{1, 5} {
				got, err := Simulate(t.Context(), cfg, Effort{Most: 12, Workers: workers})
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%v dB, %d workers: %+v, %v, and alone %+v", snr, workers, got, err, want)
				}
				few, err := Simulate(t.Context(), cfg, Effort{Least: 3, Most: 12, Reach: 0.4, Workers: workers})
				if err != nil || len(few) != enough(want, 3, 0.4) || !reflect.DeepEqual(few, want[:len(few)]) {
					t.Errorf("%v dB, %d workers: %d rounds, %v, wanted are %d", snr, workers, len(few), err, enough(want, 3, 0.4))
				}
				sent := want[0].Tries[0].Samples // of one frame or more
				few, err = Simulate(t.Context(), cfg, Effort{Least: 2, Most: 12, Samples: sent, Workers: workers})
				if err != nil || len(few) != 1 {
					t.Errorf("%v dB, %d workers: %d rounds, %v, wanted is 1", snr, workers, len(few), err)
				}
			}
		}
	}
}

// enough returns how many outcomes give an interval of such a reach.
func enough(outcomes []Outcome, least int, reach float64) int {
	once := 0
	for k, o := range outcomes {
		if o.Attempt == 1 {
			once++
		}
		if low, high := Wilson(once, k+1); k+1 >= least && high-low <= 2*reach {
			return k + 1
		}
	}
	return len(outcomes)
}

// A simulation that is ended, and one whose bench cannot be made, are errors.
func TestSimulateEnds(t *testing.T) {
	why := errors.New("the user had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cfg := configOf(t, usual(2, 0.3, 40))
	if o, err := Simulate(ctx, cfg, Effort{Most: 1000, Done: func() { cancel(why) }}); !errors.Is(err, why) || o != nil {
		t.Errorf("%d rounds, %v", len(o), err)
	}
	broken := cfg
	broken.Setup = func(number uint32) (bench.Config, phy.WaveformConfig, error) {
		if number == 3 {
			return bench.Config{}, phy.WaveformConfig{}, why
		}
		return cfg.Setup(number)
	}
	if o, err := Simulate(t.Context(), broken, Effort{Most: 5}); !errors.Is(err, why) || o != nil {
		t.Errorf("%d rounds, %v", len(o), err)
	}
}

// The rounds of groups: the same engine, with their factors; and what the devices met is
// read by all of them.
func TestGroups(t *testing.T) {
	b := usual(4, 0.3, 40)
	b.WholeRounds, b.BlockSymbols, b.Attempts = true, 2000, 2
	cfg := configOf(t, b)
	one := cfg.Setup
	cfg.Setup = func(number uint32) (bench.Config, phy.WaveformConfig, error) {
		air, link, err := one(number)
		link.Group = 2
		return air, link, err
	}
	tally := simulated(t, cfg, 20)
	o := outcome(t, cfg, 0)
	if n := len(o.Tries[0].Frames[0]); n != 2 {
		t.Errorf("%d groups sent b", n)
	}
	if tally.Within(2) < 18 || tally.Wrong != 0 || !(tally.Misfit() < 0.2) {
		t.Errorf("%+v: misfit %v", tally, tally.Misfit())
	}
}

// Once D was asked for, it alone is sent again: noise that comes with D is met by nothing
// else.
func TestDAlone(t *testing.T) {
	b := usual(2, 0.3, 40)
	b.WholeRounds, b.BlockSymbols, b.Attempts = true, 2000, 4
	cfg := configOf(t, b)
	drifting := cfg.Setup
	cfg.Setup = func(number uint32) (bench.Config, phy.WaveformConfig, error) {
		air, link, err := drifting(number)
		if err != nil {
			return air, link, err
		}
		gains := channel.Config{Continuous: true, DriftAt: channel.AfterCiphertext, DriftStd: 0.3, DriftProbability: 0.5, FreshOnRetry: true}
		for range b.Devices {
			gains.Devices = append(gains.Devices, b.Gain)
		}
		air.Channel, err = channel.New(gains, b.Seed.Derive("gains"))
		return air, link, err
	}
	again := 0
	for k := range uint32(12) {
		o := outcome(t, cfg, k)
		if o.Wrong != "" {
			t.Errorf("%s", o.Wrong)
		}
		for i, try := range o.Tries[1:] {
			if len(o.Tries[i].Frames[slot.TxShare]) == 0 || o.Tries[i].Failure == "" {
				continue
			}
			again++
			if len(try.Frames[slot.TxKey]) != 0 || len(try.Frames[slot.TxShare]) != 1 || !strings.HasPrefix(o.Tries[i].Failure, "D: ") {
				t.Errorf("round %d: %+v", k, o.Tries)
			}
		}
	}
	if again < 3 {
		t.Errorf("D was sent again %d times: that shows nothing", again)
	}
}

// A frame that is repeated is counted, and fewer repeats would not have read it.
func TestRepeats(t *testing.T) {
	b := usual(3, 0.3, 27)
	b.WholeRounds, b.BlockSymbols = true, 3000
	cfg := configOf(t, b)
	once := simulated(t, cfg, 40)
	single := cfg.Setup
	cfg.Setup = func(number uint32) (bench.Config, phy.WaveformConfig, error) {
		air, link, err := single(number)
		link.Repeats = 3
		return air, link, err
	}
	read := [2]int{}
	for k := range uint32(40) {
		o := outcome(t, cfg, k)
		for i, repeats := range []int{0, 3} {
			if o.Tries[0].Read(repeats) {
				read[i]++
			}
		}
		if o.Tries[0].Read(3) != (o.Attempt == 1) {
			t.Errorf("round %d: %+v", k, o)
		}
	}
	t.Logf("%d of 40 at once, %d with repeats; %d without", read[0], read[1], once.Within(1))
	if read[0] != once.Within(1) || read[1] < read[0]+8 {
		t.Errorf("%d of 40 need no repeat, %d with three; without repeats %d", read[0], read[1], once.Within(1))
	}
}

// Without noise the gains that the truth measures are those of the channel: the
// real parts at the common phase, to the 0.7 % that a fraction of a sample costs.
func TestMeasuredGains(t *testing.T) {
	for _, pulse := range []modem.Pulse{modem.FlatTop{Edge: 2, Tolerance: 1}, modem.RootRaisedCosine{RollOff: 0.5, Span: 16}} {
		cfg := usual(2, 0.3, 80)
		cfg.Modem.Pulse = pulse
		_, cfg.Compensated = pulse.(modem.RootRaisedCosine)
		c := configOf(t, cfg)
		for k := range uint32(10) {
			r, o := carried(t, c, k)
			if o.Attempt != 1 || o.Wrong != "" {
				t.Fatalf("%T, trial %d: %+v", pulse, k, o)
			}
			_, phases := cfg.place(k)
			var sum complex128
			for i, h := range r.air.H {
				sum += cmplx.Rect(h, phases[i])
			}
			for i, h := range r.air.H {
				want := h * math.Cos(phases[i]-cmplx.Phase(sum))
				if got := r.truth.h[i]; math.Abs(got/want-1) > 0.01 {
					t.Errorf("%T, trial %d: h_%d measured as %v, the channel has %v", pulse, k, i+1, got, want)
				}
			}
		}
	}
}

// What is not the truth is called wrong: other digits, gains of another scale. A
// pattern misread beside a block that is right is called that, and not wrong.
func TestJudgeTellsWrongFromRight(t *testing.T) {
	c := configOf(t, usual(2, 0.3, 60))
	r, o := carried(t, c, 0)
	for k := uint32(1); o.Attempt == 0; k++ {
		r, o = carried(t, c, k)
	}
	solved, x, y := slices.Clone(r.solved), r.x[0], r.rx[0].Y
	check := func(name string, solved []float64, wrong, misread bool) {
		t.Helper()
		w, m := r.truth.judge(r.link.Modulus, solved, x, y)
		if wrong != (w != "") || misread != m {
			t.Errorf("%s: %q, %v", name, w, m)
		}
	}
	check("as it is", solved, false, false)
	check("no pattern", nil, false, true)
	check("another pattern", []float64{solved[0] + 1, solved[1]}, false, true)
	alpha := &r.truth.scales[0]
	*alpha *= 1.5
	check("another scale", solved, true, false)
	// Just off the middle between two integers, the regression may miss the one that
	// was read; what the pattern says then counts.
	*alpha = (solved[0] + 0.5 + 1e-6) / r.truth.h[0]
	if math.Abs(*alpha*r.truth.h[1]-solved[1]) < 0.5 {
		check("between two integers", solved, false, false)
	}
	*alpha = solved[0] / r.truth.h[0]
	y[0][7] = (y[0][7] + 1) % prime
	check("another coefficient", solved, true, false)
}

// At N = 3, sigma = 0.3, 40 dB, four attempts read at least 99 % of whole rounds;
// beyond two deviations of that share would be chance.
func TestRetryOfWholeRounds(t *testing.T) {
	cfg := usual(3, 0.3, 40)
	cfg.Attempts, cfg.WholeRounds = 4, true
	rounds := counted(10, 40, 1000)
	tally := simulated(t, configOf(t, cfg), rounds)
	t.Logf("%d rounds: read at attempts 1 to 4: %v", rounds, tally.ReadAt)
	if least := int(0.99*float64(rounds) - 2*math.Sqrt(0.0099*float64(rounds))); tally.Within(4) < least || tally.Wrong != 0 {
		t.Errorf("%d of %d rounds were read in four attempts, %d wrongly: %s", tally.Within(4), rounds, tally.Wrong, tally.FirstWrong)
	}
}

// Trials are each of another round of the run, however few of one of every part of it, and
// those beyond of the rounds that would follow.
func TestSpread(t *testing.T) {
	for _, rounds := range []int{1, 2, 3, 8, 40, 400, 987, 1000} {
		number := Spread(rounds)
		seen := make([]bool, rounds)
		for k := range rounds {
			n := int(number(uint32(k)))
			if n < 1 || n > rounds || seen[n-1] {
				t.Fatalf("of %d rounds, trial %d is of round %d", rounds, k, n)
			}
			seen[n-1] = true
		}
		if n := number(uint32(rounds + 4)); int(n) != rounds+5 {
			t.Errorf("of %d rounds, the fifth trial beyond is of round %d", rounds, n)
		}
	}
	number, tenths := Spread(400), [10]int{}
	for k := range uint32(60) {
		tenths[(number(k)-1)/40]++
	}
	for i, n := range tenths {
		if n < 4 || n > 8 {
			t.Errorf("%d of 60 trials are of tenth %d of a run, not about 6", n, i+1)
		}
	}
}

// A trial of another round's number is that round.
func TestNumber(t *testing.T) {
	c := configOf(t, usual(2, 0.3, 40))
	want := outcome(t, c, 7)
	c.Number = func(trial uint32) uint32 { return trial + 5 }
	if got := outcome(t, c, 2); !reflect.DeepEqual(got, want) || got.Number != 7 {
		t.Errorf("trial 2 of round 7 is %+v, and round 7 %+v", got, want)
	}
}

// The keys are what devices send in every first transmission, whatever the round.
func TestKeyIsSent(t *testing.T) {
	c := configOf(t, usual(2, 0.05, 50))
	r, _ := carried(t, c, 3)
	c.Key = r.x[slot.TxKey]
	want := []zq.Vector{r.link.Modulus.NewVector(c.Lengths[0]), r.link.Modulus.NewVector(c.Lengths[0])}
	for i := range want {
		want[i].Copy(c.Key[i])
	}
	r, o := carried(t, c, 8)
	if o.Attempt != 1 || o.Wrong != "" {
		t.Fatalf("%+v", o)
	}
	y := superposed(r.link.Modulus, r.truth.scaled, want)
	if !y.Equal(r.rx[slot.TxKey].Y) {
		t.Error("what is read is not the sum of the keys")
	}
}

// Where samples are spent before the share read at once is known well enough, first attempts
// of the rounds behind go on until it is.
func TestFurther(t *testing.T) {
	b := usual(3, 0.3, 30)
	b.Attempts = 3
	c := configOf(t, b)
	e := Effort{Most: 200, Least: 20, Reach: 0.1, Samples: 1}
	rounds, err := Simulate(t.Context(), c, e)
	if err != nil || len(rounds) != 1 {
		t.Fatalf("%d rounds for one sample, %v", len(rounds), err)
	}
	e.Samples = 0
	all, err := Further(t.Context(), c, e, rounds)
	if err != nil {
		t.Fatal(err)
	}
	low, high := Wilson(AtOnce(all), len(all))
	if len(all) >= e.Most || len(all) < 10 || high-low > 2*e.Reach {
		t.Fatalf("%d rounds, of which %d are read at once", len(all), AtOnce(all))
	}
	for k, o := range all {
		whole := outcome(t, c, uint32(k))
		if o.Number != uint32(k) || (o.Attempt == 1) != (whole.Attempt == 1) || k > 0 && len(o.Tries) != 1 {
			t.Errorf("round %d is %+v, and by itself %+v", k, o, whole)
		}
	}
	if again, err := Further(t.Context(), c, e, all); err != nil || len(again) != len(all) {
		t.Errorf("what is known well enough goes on to %d rounds, %v", len(again), err)
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
	for want, change := range map[string]func(*Blocks){
		"0 devices":         func(c *Blocks) { c.Devices = 0 },
		"33 devices":        func(c *Blocks) { c.Devices = 33 },
		"distribution":      func(c *Blocks) { c.Gain = nil },
		"NaN dB":            func(c *Blocks) { c.SNRdB = math.NaN() },
		"delays":            func(c *Blocks) { c.DelaySpread = -1 },
		"phases":            func(c *Blocks) { c.PhaseSpread = 7 },
		"0 attempts":        func(c *Blocks) { c.Attempts = 0 },
		"40 symbols":        func(c *Blocks) { c.BlockSymbols = 40 },
		"64 symbols":        func(c *Blocks) { c.BlockSymbols = 64 },
		"base":              func(c *Blocks) { c.Base = 4 },
		"samples a symbol":  func(c *Blocks) { c.Modem.SamplesPerSymbol = 1 },
		"the modem has no ": func(c *Blocks) { c.Modem.Pulse = nil },
		"standard":          func(c *Blocks) { c.Gain = channel.Gaussian{Mu: 1, Sigma: -1} },
	} {
		cfg := usual(2, 0.3, 40)
		change(&cfg)
		if _, err := cfg.Config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func BenchmarkTrial(b *testing.B) {
	for devices := 2; devices <= 4; devices++ {
		b.Run(fmt.Sprintf("N=%d", devices), func(b *testing.B) {
			cfg := configOf(b, usual(devices, 0.3, 40))
			k := uint32(0)
			for b.Loop() {
				outcome(b, cfg, k)
				k++
			}
		})
	}
}
