package advice

import (
	"context"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/rounds"
)

var usual = modem.Config{SamplesPerSymbol: 8, Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, Preamble: modem.Preamble{Length: modem.DefaultPreamble}}

// noiseOf returns the noise at which a symbol of a device of gain 1 has an SNR.
func noiseOf(t *testing.T, m modem.Config, base int, snr float64) modem.Power {
	t.Helper()
	modulator, err := modem.NewModulator(m, modem.Drive{Peak: float32(base-1) / 2})
	if err != nil {
		t.Fatal(err)
	}
	unit := float64(modulator.Scale())
	power := float64(base*base-1) / 12 * math.Pow(10, -snr/10)
	return modem.Power(2 * unit * unit * power / modem.NoiseBandwidth(m.Pulse, m.SamplesPerSymbol))
}

func benchOf(t *testing.T, n int, g channel.Fading, base int, snr float64) Bench {
	b := Bench{SampleRateHz: 10e6, Bench: rounds.Bench{Noise: noiseOf(t, usual, base, snr)}}
	for i := range n {
		b.Devices = append(b.Devices, rounds.Device{Gain: g, Delay: modem.Samples(i) / modem.Samples(n), Phase: 0.2 * (modem.Radians(i)/modem.Radians(n) - 0.5)})
	}
	return b
}

// few makes an advice a matter of moments.
func few() Options {
	sets := xmkckks.Sets()
	return Options{
		Modem: usual, Attempts: 2, DeltaMax: 1, Repeats: 1, MaxAlpha: 16, Seed: keystream.FromInteger(3),
		Bases: []int{3}, SamplesPerSymbol: []int{8}, Sets: sets[len(sets)-1:], Coarse: 4, Fine: 8, Fresh: 25, Wanted: 0.8,
	}
}

// The advice does not depend on the number of workers.
// In the blind regime rounds that drop a device are not read unless that is allowed.
func TestMinimum(t *testing.T) {
	set, ok := xmkckks.Lookup("demo-1024")
	if !ok {
		t.Fatal("there is no demo-1024")
	}
	own := &Own{Regime: bench.Blind, Group: 2, Base: 3, SamplesPerSymbol: 8, Params: set, Form: xmkckks.Short}
	b := benchOf(t, 2, channel.Gaussian{Mu: 1, Sigma: 1}, 3, 40)
	share := func(minimum int) float64 {
		a, err := Give(t.Context(), b, Options{Modem: usual, Attempts: 1, DeltaMax: 1, MaxAlpha: 16, Own: own, Regimes: []Regime{}, NoSuggestions: true, Fresh: 200, Minimum: minimum, Seed: keystream.FromInteger(3)})
		if err != nil {
			t.Fatal(err)
		}
		return a.Own.AtOnce
	}
	all, one := share(0), share(1)
	t.Logf("read with all %.3f, with one %.3f", all, one)
	if all >= one-0.01 || all != share(2) {
		t.Errorf("%.3f of rounds are read with all devices, %.3f with one", all, one)
	}
}

func TestAdviceIsRepeatable(t *testing.T) {
	b := benchOf(t, 3, channel.Gaussian{Mu: 1, Sigma: 0.02}, 3, 35)
	var want string
	for _, workers := range []int{1, 3} {
		o := few()
		o.Workers = workers
		a, err := Give(t.Context(), b, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Outlooks) == 0 || !a.Reached || len(a.Suggestions)+len(a.Idle) == 0 {
			t.Fatalf("%+v", a)
		}
		if got := strings.Join(words(a), "\n"); want == "" {
			want = got
		} else if got != want {
			t.Errorf("%d workers:\n%s\nand with one\n%s", workers, got, want)
		}
	}
	t.Log(want)
}

// The whole advice for ten devices: all regimes, groups, bases and sets.
func TestTenDevices(t *testing.T) {
	if os.Getenv("RINGWAVE_LONG") == "" {
		t.Skip("about two minutes: RINGWAVE_LONG=1")
	}
	b := benchOf(t, 10, channel.Gaussian{Mu: 1, Sigma: 0.02}, 3, 35)
	began := time.Now()
	a, err := Give(t.Context(), b, Options{Modem: usual, Attempts: 4, DeltaMax: 4, Seed: keystream.FromInteger(1), NoSuggestions: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v, %d outlooks", time.Since(began), len(a.Outlooks))
	for _, o := range a.Outlooks {
		t.Logf("%+v", o)
	}
	for _, r := range a.Refusals {
		t.Log(r)
	}
	if !a.Reached || a.Outlooks[0].Regime != bench.MeanAligned || a.Outlooks[0].Group != 10 {
		t.Error("ten static devices at 35 dB share a slot, aligned")
	}
}

func words(a Advice) []string {
	list := append([]string{}, a.Refusals...)
	for _, o := range a.Outlooks {
		list = append(list, o.name())
	}
	for _, s := range a.Suggestions {
		list = append(list, s.Sentence)
	}
	return append(list, a.Idle...)
}

func TestRefusals(t *testing.T) {
	good := benchOf(t, 2, channel.Gaussian{Mu: 1, Sigma: 0.02}, 3, 35)
	for want, change := range map[string]func(*Bench, *Options){
		"0 devices":   func(b *Bench, _ *Options) { b.Devices = nil },
		"mean":        func(b *Bench, _ *Options) { b.Devices = []rounds.Device{{Gain: channel.Gaussian{Sigma: 1}}} },
		"noise":       func(b *Bench, _ *Options) { b.Noise = 0 },
		"sample rate": func(b *Bench, _ *Options) { b.SampleRateHz = math.NaN() },
		"attempts":    func(_ *Bench, o *Options) { o.Attempts = 0 },
		"groups of 3": func(_ *Bench, o *Options) { o.Groups = []int{3} },
		"base":        func(_ *Bench, o *Options) { o.Bases = []int{4} },
	} {
		b, o := good, few()
		change(&b, &o)
		if a, err := Give(t.Context(), b, o); err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(a, Advice{}) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// lone makes a candidate with frames of given blocks.
func lone(regime Regime, n, base int, tolerance float64, blocks ...int) *candidate {
	c := &candidate{regime: regime, group: n, base: base, samples: 8, maxAlpha: 40}
	if regime == bench.MeanAligned {
		c.alpha, c.tolerance, c.maxAlpha = bench.AlignedScale, tolerance, 0
	}
	for t, count := range blocks {
		for range count {
			c.layout.Blocks[t] = append(c.layout.Blocks[t], 8192)
		}
	}
	return c
}

// What cannot be is refused in a sentence with the figures.
func TestSentences(t *testing.T) {
	for name, c := range map[string]struct {
		gain   channel.Gaussian
		n      int
		snr    float64
		change func(*Bench, *Options)
		want   string
	}{
		"continuous": {channel.Gaussian{Mu: 1, Sigma: 0.02}, 2, 35, nil, "emulated: gains are continuous; only a simulated bench puts them on a lattice"},
		"on a lattice": {channel.Gaussian{Mu: 1, Sigma: 0.02}, 2, 60, func(b *Bench, _ *Options) { b.OnLattice, b.LatticeBits = true, 2 },
			"blind: gains lie on a lattice of 2^-2 already, which the receiver knows"},
		"too fine a lattice": {channel.Gaussian{Mu: 1, Sigma: 0.02}, 2, 20, func(b *Bench, _ *Options) { b.OnLattice, b.LatticeBits = true, 8 },
			"emulated: a lattice of 2^-8 needs "},
		"fluctuations": {channel.Gaussian{Mu: 1, Sigma: 0.8}, 2, 35, nil, "mean-aligned: mean fluctuations reach 0.64 of a unit at G = 1 and base 3, and rounding absorbs less than 0.5"},
		"noise":        {channel.Gaussian{Mu: 1, Sigma: 0.02}, 2, -5, nil, "blind: 8 samples a symbol give -5.0 dB at base 3: noise alone spoils every round"},
		"coherence":    {channel.Gaussian{Mu: 1, Sigma: 0.02}, 2, 35, func(b *Bench, _ *Options) { b.CoherenceSeconds = 1e-6 }, " s and gains last 1e-06 s"},
		"noise budget": {channel.Gaussian{Mu: 1, Sigma: 0.02}, 2, 35, func(_ *Bench, o *Options) { o.DeltaMax = 1e6 }, "mean-aligned with demo-1024: parameter set demo-1024: alpha Lambda |M| may reach "},
		"too many":     {channel.Gaussian{Mu: 1, Sigma: 0.3}, 4, 25, nil, "blind: of rounds with groups of 4, "},
		"aligned too many": {channel.Gaussian{Mu: 1, Sigma: 0.25}, 4, 30, nil,
			"mean-aligned: mean fluctuations add up to 1.60 of half a unit at G = 4; G = "},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := benchOf(t, c.n, c.gain, 3, c.snr), few()
			o.NoSuggestions, o.Fresh = true, 20
			if c.change != nil {
				c.change(&b, &o)
			}
			a, err := Give(t.Context(), b, o)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(a.Refusals, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("refusals:\n%s\nwanted is %q", strings.Join(a.Refusals, "\n"), c.want)
			}
		})
	}
}

// The own way is told whether or not it is among the best, and why if it does not do.
func TestOwn(t *testing.T) {
	b, o := benchOf(t, 3, channel.Gaussian{Mu: 1, Sigma: 0.02}, 3, 35), few()
	o.NoSuggestions = true
	o.Own = &Own{Regime: bench.Blind, Group: 1, Base: 5, SamplesPerSymbol: 12, Params: xmkckks.Sets()[0], Form: xmkckks.Whole}
	o.Sets, o.Regimes = xmkckks.Sets()[:1], []Regime{}
	a, err := Give(t.Context(), b, o)
	if err != nil {
		t.Fatal(err)
	}
	if a.Own == nil || a.Own.Regime != bench.Blind || a.Own.Group != 1 || a.Own.Base != 5 || a.Own.SamplesPerSymbol != 12 || a.Own.Form != xmkckks.Whole || a.Own.Rounds != o.Fresh || a.OwnRefusal != "" || len(a.Outlooks) != 0 {
		t.Errorf("%+v", a)
	}
	o.Own.Regime = bench.Emulated
	if a, err = Give(t.Context(), b, o); err != nil || a.Own != nil || !strings.Contains(a.OwnRefusal, "continuous") {
		t.Errorf("%v, %+v", err, a)
	}
	for want, change := range map[string]func(*Own){
		"own groups are of 4":     func(w *Own) { w.Group = 4 },
		"own digits' base is 4":   func(w *Own) { w.Base = 4 },
		"own frames are repeated": func(w *Own) { w.Repeats = 256 },
		"own regime is 3":         func(w *Own) { w.Regime = 3 },
	} {
		w := *o.Own
		change(&w)
		bad := o
		bad.Own = &w
		if _, err := Give(t.Context(), b, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A way that reads nothing for several rounds goes on to be simulated, but for the first
// look: what is left out would count as failed.
func TestOnlyCoarseLooksEnd(t *testing.T) {
	b := benchOf(t, 3, channel.Gaussian{Mu: 1, Sigma: 0.3}, 3, 5)
	o, err := few().complete(3)
	if err != nil {
		t.Fatal(err)
	}
	s := newSearch(b, o)
	for g, want := range map[stage]int{coarsely: hopeless, finely: 12, freshly: 12} {
		results, err := s.simulate(t.Context(), []*candidate{lone(bench.Blind, 3, 3, 0, 1, 1, 1, 1)}, g, 12)
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		for _, r := range results[0].trials {
			if r != nil {
				made++
			}
		}
		if made != want {
			t.Errorf("stage %d: %d rounds were simulated, wanted are %d", g, made, want)
		}
	}
}

// Rounds that cannot be simulated, and a search that is ended, are errors: what is left of
// the rounds is no result.
func TestSearchEnds(t *testing.T) {
	b := benchOf(t, 3, channel.Gaussian{Mu: 1, Sigma: 0.3}, 3, 30)
	why := errors.New("the user had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o, err := few().complete(3)
	if err != nil {
		t.Fatal(err)
	}
	o.Progress = func(done, _ int) {
		if done == 1 {
			cancel(why)
		}
	}
	c := lone(bench.Blind, 3, 3, 0, 1, 1, 1, 1)
	if _, err := newSearch(b, o).simulate(ctx, []*candidate{c}, finely, 20*part); !errors.Is(err, why) {
		t.Errorf("a search that was ended: %v", err)
	}
	o.Progress = nil
	odd := *c
	odd.samples = 0
	results, err := newSearch(b, o).simulate(t.Context(), []*candidate{&odd}, coarsely, 3)
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("no samples a symbol: %v, %d results", err, len(results))
	}
}

// The weakest device is worth a word where it is weaker than all others by over 1 dB.
func TestWeakest(t *testing.T) {
	for _, c := range []struct {
		means []float64
		said  bool
	}{{[]float64{1, 1.02, 1.05}, false}, {[]float64{1, 0.85, 1.1}, true}, {[]float64{0.5, 0.5, 1}, false}, {[]float64{1}, false}} {
		var b Bench
		for _, m := range c.means {
			b.Devices = append(b.Devices, rounds.Device{Gain: channel.Gaussian{Mu: m}})
		}
		said := slices.ContainsFunc(b.remedies(usual), func(r remedy) bool { return strings.Contains(r.change, "stronger") })
		if said != c.said {
			t.Errorf("means %v: said is %v", c.means, said)
		}
	}
}
