package rounds

import (
	"context"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
)

var usual = modem.Config{SamplesPerSymbol: 8, Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, Preamble: modem.Preamble{Length: modem.DefaultPreamble}}

// benchOf returns a bench of n devices with delays within a sample and phases over 0.2
// rad, at whose noise a symbol of a device of gain 1 has an SNR.
func benchOf(t *testing.T, n int, g channel.Fading, base int, snr float64) Bench {
	t.Helper()
	scale, err := bench.SymbolScale(usual, base, 1)
	if err != nil {
		t.Fatal(err)
	}
	std := bench.NoiseStd(usual, base, snr, scale)
	b := Bench{Noise: modem.Power(2 * std * std)}
	for i := range n {
		b.Devices = append(b.Devices, Device{Gain: g, Delay: modem.Samples(i) / modem.Samples(n), Phase: 0.2 * (modem.Radians(i)/modem.Radians(n) - 0.5)})
	}
	return b
}

// roundsOf returns rounds of all devices of a bench in one group, whose frames have so
// many blocks of 8192 symbols.
func roundsOf(b Bench, regime bench.Regime, base int, blocks ...int) Config {
	n := len(b.Devices)
	c := Config{
		Bench: b, Regime: regime, MaxAlpha: 40, Group: n, Base: base, Modem: usual, BlockSymbols: 8192,
		Attempts: 1, Least: n, Whole: true, Seed: 8,
	}
	if regime == bench.MeanAligned {
		c.Alpha, c.Tolerance, c.MaxAlpha = bench.AlignedScale, b.Links().AlignedTolerance(n), 0
	}
	for t, count := range blocks {
		for range count {
			c.Layout.Blocks[t] = append(c.Layout.Blocks[t], 8192)
		}
	}
	return c
}

// short makes rounds of frames of a few symbols more than a block's least, which are read
// in no time.
func short(c Config, symbols int) Config {
	for t := range c.Layout.Blocks {
		c.Layout.Blocks[t] = []int{symbols}
	}
	return c
}

// shareRead returns the share of rounds that some attempt reads with so many repeats.
func shareRead(t *testing.T, c Config, rounds, repeats int) float64 {
	t.Helper()
	all, err := Simulate(t.Context(), c, rounds)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, attempts := range all {
		for _, a := range attempts {
			if a.Read(repeats) {
				read++
				break
			}
		}
	}
	return float64(read) / float64(rounds)
}

// Rounds of whose frames only the first blocks are simulated are read as often as those
// of which all are: the difference of both shares is below 3 points and three
// deviations. (What is printed of all but the largest sets is of whole frames.)
func TestExtrapolation(t *testing.T) {
	rounds := 60
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 1500
	}
	for k, c := range []struct {
		regime     bench.Regime
		n, base    int
		sigma, snr float64
		bits       int
	}{
		{bench.MeanAligned, 10, 3, 0.045, 32, 0}, {bench.Blind, 3, 3, 0.3, 35, 0}, {bench.Blind, 1, 3, 0.3, 22, 8}, {bench.Blind, 2, 5, 0.3, 36, 0}, {bench.MeanAligned, 6, 3, 0.03, 18, 8},
	} {
		if k > 1 && rounds == 60 {
			continue
		}
		b := benchOf(t, c.n, channel.Gaussian{Mu: 1, Sigma: c.sigma}, c.base, c.snr)
		b.ReceiverBits = c.bits
		var share [2]float64
		for i, whole := range []bool{true, false} {
			one := roundsOf(b, c.regime, c.base, 9, 1, 9, 1)
			one.Whole, one.Seed = whole, uint64(4+i)
			share[i] = shareRead(t, one, rounds, 0)
		}
		p := (share[0] + share[1] + 2/float64(rounds)) / (2 + 4/float64(rounds))
		bound := 0.03 + 3*math.Sqrt(2*p*(1-p)/float64(rounds))
		t.Logf("%v N=%d B=%d sigma=%v %v dB, %d bits: whole %.3f, extrapolated %.3f", c.regime, c.n, c.base, c.sigma, c.snr, c.bits, share[0], share[1])
		if math.Abs(share[0]-share[1]) > bound {
			t.Errorf("they differ by more than %.3f", bound)
		}
	}
}

// Fine converters change nothing; coarse ones cost what they do to the noise, and those
// that clip the symbols read nothing. A transmitter's converter is a change of the gain
// for trits, which are 0 and one code of either sign, and another of each of five levels.
func TestConverters(t *testing.T) {
	read := func(base int, change func(*Bench)) float64 {
		b := benchOf(t, 2, channel.Gaussian{Mu: 1, Sigma: 0.3}, base, 40)
		change(&b)
		return shareRead(t, short(roundsOf(b, bench.Blind, base), 2000), 60, 0)
	}
	sent := func(bits int) func(*Bench) {
		return func(b *Bench) {
			for i := range b.Devices {
				b.Devices[i].ConverterBits = bits
			}
		}
	}
	ideal := read(3, func(*Bench) {})
	fine := read(3, func(b *Bench) { b.ReceiverBits = 20 })
	trits, levels := read(3, sent(3)), read(5, sent(3))
	coarse := read(3, func(b *Bench) { b.ReceiverBits = 4 })
	clips := read(3, func(b *Bench) { b.ReceiverBits, b.ReceiverFullScale = 8, 0.4 })
	t.Logf("ideal %.3f, fine %.3f, trits of 3 bits %.3f, base 5 of 3 bits %.3f, coarse %.3f, clipping %.3f", ideal, fine, trits, levels, coarse, clips)
	// Of 60 rounds of 0.98 the difference of two counts deviates by 0.026.
	if ideal < 0.9 || math.Abs(fine-ideal) > 0.08 || math.Abs(trits-ideal) > 0.08 {
		t.Errorf("ideal %.3f, fine %.3f, trits %.3f", ideal, fine, trits)
	}
	if levels > 0.5*ideal || coarse > 0.8*ideal || clips > 0.2 {
		t.Errorf("levels %.3f, coarse %.3f, clipping %.3f, of %.3f", levels, coarse, clips, ideal)
	}
}

// A frame sent again is averaged, and a round that is tried again meets other gains: both
// are read more often than one is at once.
func TestRepeatsAndAttempts(t *testing.T) {
	c := short(roundsOf(benchOf(t, 3, channel.Gaussian{Mu: 1, Sigma: 0.3}, 3, 27), bench.Blind, 3), 3000)
	c.Repeats = 3
	once, four := shareRead(t, c, 60, 0), shareRead(t, c, 60, 3)
	c.Repeats, c.Attempts = 0, 4
	tried := shareRead(t, c, 60, 0)
	t.Logf("%.3f at once, %.3f with three repeats, %.3f within four attempts", once, four, tried)
	if four < once+0.2 || tried < once+0.2 {
		t.Errorf("%.3f at once, %.3f with three repeats, %.3f within four attempts", once, four, tried)
	}
}

// Rounds in which a device counts 0 are not read where all must be heard, and said to be
// so where not.
func TestZeroGains(t *testing.T) {
	c := short(roundsOf(benchOf(t, 2, channel.Gaussian{Mu: 1, Sigma: 1}, 3, 40), bench.Blind, 3), 2000)
	c.Least = 0
	rounds, err := Simulate(t.Context(), c, 150)
	if err != nil {
		t.Fatal(err)
	}
	read, dropped := 0, 0
	for _, r := range rounds {
		if r[0].Read(0) {
			read++
			dropped += min(1, r[0].ZeroGains)
			if r[0].ZeroGains == 0 && !(r[0].Misfit < 1) || r[0].ZeroGains > 0 && r[0].Misfit < 1 {
				t.Errorf("%d gains of 0 at a misfit of %v", r[0].ZeroGains, r[0].Misfit)
			}
		}
	}
	c.Least = 2
	if all := shareRead(t, c, 150, 0); dropped == 0 || math.Abs(all-float64(read-dropped)/150) > 1e-9 {
		t.Errorf("%d rounds are read, a device counts 0 in %d, and all are heard in %.3f of 150", read, dropped, all)
	}
}

// The misfit is against the gains as the channel has them: what the modem's filters add
// to the gain of a device between two samples is in it.
func TestMisfitHasThePassage(t *testing.T) {
	b := Bench{Noise: 1e-9, Devices: []Device{{Gain: channel.Gaussian{Mu: 1}, Delay: 0.5}}}
	c := short(roundsOf(b, bench.MeanAligned, 3), 500)
	rounds, err := Simulate(t.Context(), c, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rounds {
		if m := r[0].Misfit; !r[0].Read(0) || m < 1e-3 || m > 0.02 { // without, what the noise leaves
			t.Errorf("%+v", r[0])
		}
	}
}

// A round is the same whatever else is simulated, of how many groups, and by how many
// workers; only the groups asked for have a say.
func TestRoundsByNumber(t *testing.T) {
	c := short(roundsOf(benchOf(t, 4, channel.Gaussian{Mu: 1, Sigma: 0.3}, 3, 32), bench.Blind, 3), 1000)
	c.Group, c.Least, c.Attempts = 2, 0, 2
	all, err := Simulate(t.Context(), c, 8)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{7, 2, 0} {
		if got := s.Round(k); !reflect.DeepEqual(got, all[k]) {
			t.Errorf("round %d is %+v, and among others %+v", k, got, all[k])
		}
	}
	if n := len(all[0][0].Sent[0]); n != 2 {
		t.Errorf("%d groups were sent", n)
	}
	c.Groups = 1
	one, err := Simulate(t.Context(), c, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(one[0][0].Sent[0]); n != 1 {
		t.Errorf("%d groups were sent, one was asked for", n)
	}
}

func TestSimulateEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := short(roundsOf(benchOf(t, 2, channel.Gaussian{Mu: 1}, 3, 40), bench.Blind, 3), 100)
	if r, err := Simulate(ctx, c, 4); err == nil || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

// A transmission's samples count once a repeat, up to the one that failed.
func TestSamplesOfAnAttempt(t *testing.T) {
	l := Layout{Samples: [slot.Transmissions]int{1000, 100, 10, 1}, Blocks: [slot.Transmissions][]int{{5, 7}, {3}, {4}, {6}}}
	a := Attempt{Needed: [slot.Transmissions]int{0, 2, Unread, Unread}, Sent: [slot.Transmissions][]int{{0, 0}, {1, 2}, {Unread}}}
	for repeats, want := range map[int]int{0: 2000 + 200, 1: 2000 + 400, 2: 2000 + 500 + 30, 3: 2000 + 500 + 40} {
		if got := a.Samples(l, repeats); got != want || a.Read(repeats) {
			t.Errorf("%d repeats: %d samples, want %d", repeats, got, want)
		}
	}
	if (Attempt{Needed: [slot.Transmissions]int{0, 1}}).Read(0) || !(Attempt{Needed: [slot.Transmissions]int{0, 1}}).Read(1) {
		t.Error("an attempt that needs a repeat")
	}
	if l.Airtime() != 1111 || l.Symbols() != 25 {
		t.Errorf("%d samples, %d symbols", l.Airtime(), l.Symbols())
	}
}

// The last digit of an integer below q/2 in magnitude is not uniform.
func TestTopDigit(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		want  []float64
	}{{3, []float64{1.0 / 3, 2.0 / 3, 1}}, {1, []float64{0, 1, 1}}, {2, []float64{0.25, 0.75, 1}}} {
		for k, got := range topDigit(3, c.ratio) {
			if math.Abs(got-c.want[k]) > 1e-12 {
				t.Errorf("q = %v B^(L-1): digit %d has %v below it, want %v", c.ratio, k, got, c.want[k])
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"0 devices":                        func(c *Config) { c.Bench.Devices = nil },
		"device 1 has no distribution":     func(c *Config) { c.Bench.Devices = []Device{{}} },
		"device 1 has a gain of mean 0":    func(c *Config) { c.Bench.Devices = []Device{{Gain: channel.Gaussian{Sigma: 1}}} },
		"device 1 has a standard error":    func(c *Config) { c.Bench.Devices = []Device{{Gain: channel.Gaussian{Mu: 1}, MeanStd: -1}} },
		"device 1 has the delay -1":        func(c *Config) { c.Bench.Devices = []Device{{Gain: channel.Gaussian{Mu: 1}, Delay: -1}} },
		"device 1 has a converter of 25":   func(c *Config) { c.Bench.Devices = []Device{{Gain: channel.Gaussian{Mu: 1}, ConverterBits: 25}} },
		"the noise of a sample":            func(c *Config) { c.Bench.Noise = 0 },
		"a receiver of -1 bits":            func(c *Config) { c.Bench.ReceiverBits = -1 },
		"regime 3":                         func(c *Config) { c.Regime = 3 },
		"mean-aligned regime at the scale": func(c *Config) { c.Regime, c.Alpha = bench.MeanAligned, 0 },
		"known within 1":                   func(c *Config) { c.Tolerance = 1 },
		"0 devices are simulated":          func(c *Config) { c.Group = 0 },
		"-1 groups":                        func(c *Config) { c.Groups = -1 },
		"base is 4":                        func(c *Config) { c.Base = 4 },
		"0 attempts":                       func(c *Config) { c.Attempts = 0 },
		"-1 repeats":                       func(c *Config) { c.Repeats = -1 },
		"3 devices must be heard":          func(c *Config) { c.Least = 3 },
		"transmission 2 has no blocks":     func(c *Config) { c.Layout.Blocks[2] = nil },
		"15 symbols in block 1":            func(c *Config) { c.Layout.Blocks[0] = []int{15} },
		"0 symbols in block 2":             func(c *Config) { c.Layout.Blocks[3] = []int{20, 0} },
		"samples a symbol":                 func(c *Config) { c.Modem.SamplesPerSymbol = 0 },
		"scale":                            func(c *Config) { c.MaxAlpha = -1 },
	} {
		c := short(roundsOf(benchOf(t, 2, channel.Gaussian{Mu: 1}, 3, 40), bench.Blind, 3), 100)
		change(&c)
		if s, err := New(c); err == nil || !strings.Contains(err.Error(), want) || s != nil {
			t.Errorf("want %q, got %v, %v", want, s, err)
		}
	}
}
