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
	"ringwave/phy/slot"
	"ringwave/phy/trial"
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
	b := Bench{SampleRateHz: 10e6, Noise: noiseOf(t, usual, base, snr)}
	for i := range n {
		b.Devices = append(b.Devices, Device{Gain: g, Delay: modem.Samples(i) / modem.Samples(n), Phase: 0.2 * (modem.Radians(i)/modem.Radians(n) - 0.5)})
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

// In the blind regime rounds that drop a device are not read unless that is allowed.
func TestMinimum(t *testing.T) {
	set, ok := xmkckks.Lookup("demo-1024")
	if !ok {
		t.Fatal("there is no demo-1024")
	}
	own := &Own{Regime: bench.Blind, Group: 2, Base: 3, SamplesPerSymbol: 8, Params: set, Form: xmkckks.Short}
	b := benchOf(t, 2, channel.Gaussian{Mu: 1, Sigma: 1}, 3, 40)
	share := func(minimum int) float64 {
		a, err := Give(t.Context(), b, Options{Modem: usual, Attempts: 1, DeltaMax: 1, MaxAlpha: 16, Own: own, Regimes: []Regime{}, NoSuggestions: true, Fresh: 80, Minimum: minimum, Seed: keystream.FromInteger(3)})
		if err != nil {
			t.Fatal(err)
		}
		return a.Own.AtOnce
	}
	all, one := share(0), share(1)
	t.Logf("read with all %.3f, with one %.3f", all, one)
	if all >= one || all != share(2) {
		t.Errorf("%.3f of rounds are read with all devices, %.3f with one", all, one)
	}
}

// The advice does not depend on the number of workers.
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
		"0 devices":                     func(b *Bench, _ *Options) { b.Devices = nil },
		"device 1 has no distribution":  func(b *Bench, _ *Options) { b.Devices = []Device{{}} },
		"device 1 has a gain of mean 0": func(b *Bench, _ *Options) { b.Devices = []Device{{Gain: channel.Gaussian{Sigma: 1}}} },
		"device 1 has a standard error": func(b *Bench, _ *Options) { b.Devices = []Device{{Gain: channel.Gaussian{Mu: 1}, MeanStd: -1}} },
		"device 1 has the delay -1":     func(b *Bench, _ *Options) { b.Devices = []Device{{Gain: channel.Gaussian{Mu: 1}, Delay: -1}} },
		"device 1 has a carrier offset": func(b *Bench, _ *Options) { b.Devices = []Device{{Gain: channel.Gaussian{Mu: 1}, CarrierOffset: 1}} },
		"device 1 has a converter of 25": func(b *Bench, _ *Options) {
			b.Devices = []Device{{Gain: channel.Gaussian{Mu: 1}, ConverterBits: 25}}
		},
		"a receiver of -1 bits": func(b *Bench, _ *Options) { b.ReceiverBits = -1 },
		"the noise of a sample": func(b *Bench, _ *Options) { b.Noise = 0 },
		"sample rate":           func(b *Bench, _ *Options) { b.SampleRateHz = math.NaN() },
		"attempts":              func(_ *Bench, o *Options) { o.Attempts = 0 },
		"groups of 3":           func(_ *Bench, o *Options) { o.Groups = []int{3} },
		"base":                  func(_ *Bench, o *Options) { o.Bases = []int{4} },
	} {
		b, o := good, few()
		change(&b, &o)
		if a, err := Give(t.Context(), b, o); err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(a, Advice{}) {
			t.Errorf("%s: %v", want, err)
		}
	}
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
		"too many":     {channel.Gaussian{Mu: 1, Sigma: 0.3}, 4, 22, nil, "blind: of rounds with groups of 4, "},
		"aligned too many": {channel.Gaussian{Mu: 1, Sigma: 0.25}, 4, 30, nil,
			"mean-aligned: mean fluctuations add up to 1.60 of half a unit at G = 4; G = "},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := benchOf(t, c.n, c.gain, 3, c.snr), few()
			o.NoSuggestions, o.Fresh, o.Fine = true, 4, 2
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
	o.Sets, o.Regimes, o.Fresh = xmkckks.Sets()[:1], []Regime{}, 2
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

// searched returns a search and its first candidate.
func searched(t *testing.T, b Bench, o Options) (*search, *candidate) {
	t.Helper()
	o, err := o.complete(len(b.Devices))
	if err != nil {
		t.Fatal(err)
	}
	s := newSearch(b, o)
	c, err := s.fit(bench.Blind, len(b.Devices), 3, 8, o.Sets[0])
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// A way that reads nothing is not looked at for long, and not with larger sets; and one
// that falls behind what is wanted and the best is given up.
func TestWhatFailsIsGivenUp(t *testing.T) {
	o := few()
	o.Coarse, o.Fine = 6, 40
	s, c := searched(t, benchOf(t, 3, channel.Gaussian{Mu: 1, Sigma: 0.3}, 3, 5), o)
	s.candidates = []*candidate{c, c}
	all, err := s.survey(t.Context())
	if err != nil || len(all) != 1 || len(all[0].rounds) != hopeless {
		t.Errorf("%v: %d results, the first of %d rounds", err, len(all), len(all[0].rounds))
	}
	good, lead := searched(t, benchOf(t, 3, channel.Gaussian{Mu: 1, Sigma: 0.02}, 3, 40), o)
	race, err := good.race(t.Context(), []*candidate{lead})
	if err != nil || len(race) != 1 || len(race[0].rounds) != o.Fine {
		t.Fatalf("%v: %+v", err, race)
	}
	s.opt.Wanted = 0.99
	if race, err = s.race(t.Context(), []*candidate{c}); err != nil || len(race[0].rounds) != o.Fine {
		t.Errorf("%v: alone a way has %d rounds", err, len(race[0].rounds))
	}
	s.bench = good.bench
	weak := *c
	weak.maxAlpha = 1e-3 // reads nothing
	if race, err = s.race(t.Context(), []*candidate{c, &weak}); err != nil || len(race[0].rounds) != o.Fine || len(race[1].rounds) >= o.Fine {
		t.Errorf("%v: of two ways %d and %d rounds", err, len(race[0].rounds), len(race[1].rounds))
	}
}

// What was measured is in what is simulated: phases that are trimmed, delays, carriers that
// are off, converters and the levels of aligned devices.
func TestBenchesAreSimulated(t *testing.T) {
	share := func(change func(*Bench)) float64 {
		b := benchOf(t, 3, channel.Gaussian{Mu: 1, Sigma: 0.3}, 3, 42)
		b.Phases, b.Compensated = PhasesTrimmed, true
		change(&b)
		o := few()
		o.MaxAlpha = 40
		s, c := searched(t, b, o)
		r, err := s.simulate(t.Context(), c, freshly, trial.Effort{Most: 20})
		if err != nil {
			t.Fatal(err)
		}
		return s.outlook(r, 0).AtOnce
	}
	all := func(change func(d *Device, i int)) func(*Bench) {
		return func(b *Bench) {
			for i := range b.Devices {
				change(&b.Devices[i], i)
			}
		}
	}
	for name, c := range map[string]struct {
		change      func(*Bench)
		least, most float64
	}{
		"as it is":          {func(*Bench) {}, 0.8, 1},
		"large phases":      {all(func(d *Device, i int) { d.Phase = modem.Radians(i) }), 0.8, 1},
		"delays of samples": {all(func(d *Device, i int) { d.Delay = modem.Samples(3 * i) }), 0.8, 1},
		"not compensated": {func(b *Bench) {
			b.Compensated = false
			all(func(d *Device, i int) { d.Delay = modem.Samples(3 * i) })(b)
		}, 0, 0.3},
		"carriers off":       {all(func(d *Device, _ int) { d.CarrierOffset = 5e-6 }), 0.8, 1},
		"clipped":            {func(b *Bench) { b.ReceiverBits, b.ReceiverFullScale = 12, 0.5 }, 0, 0.2},
		"coarse":             {func(b *Bench) { b.ReceiverBits = 4 }, 0, 0.8},
		"fine":               {func(b *Bench) { b.ReceiverBits = 14 }, 0.8, 1},
		"delays not known":   {all(func(d *Device, _ int) { d.Delay, d.DelayStd = 8, 6 }), 0, 0.5},
		"gains hardly known": {all(func(d *Device, _ int) { d.MeanStd, d.StdStd = 0.1, 0.1 }), 0.7, 1},
	} {
		got := share(c.change)
		t.Logf("%s: %.3f", name, got)
		if got < c.least || got > c.most {
			t.Errorf("%s: %.3f of rounds are read at once, wanted are %v to %v", name, got, c.least, c.most)
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
	s, c := searched(t, b, few())
	s.opt.Progress = func(done, _ int) {
		if done == 1 {
			cancel(why)
		}
	}
	if _, err := s.simulate(ctx, c, finely, trial.Effort{Most: 2000}); !errors.Is(err, why) {
		t.Errorf("a search that was ended: %v", err)
	}
	s.opt.Progress = nil
	odd := *c
	odd.samples = 0
	if r, err := s.simulate(t.Context(), &odd, coarsely, trial.Effort{Most: 3}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("no samples a symbol: %v, %d rounds", err, len(r.rounds))
	}
}

// An attempt's samples count once a frame, up to the transmission that failed.
func TestSamplesOfAnAttempt(t *testing.T) {
	c := candidate{frames: [slot.Transmissions]int{1000, 100, 10, 1}, group: 1}
	try := trial.Try{Frames: [slot.Transmissions][]int{{1, 1}, {2, 3}, {trial.Unread}}, Failure: "c1"}
	for repeats, want := range map[int]int{0: 2000 + 200, 1: 2000 + 400, 2: 2000 + 500 + 30, 3: 2000 + 500 + 40} {
		if got := c.sent(try, repeats); got != want || try.Read(repeats) {
			t.Errorf("%d repeats: %d samples, want %d", repeats, got, want)
		}
	}
	if n := c.airtime(2); n != 2222 {
		t.Errorf("an attempt of two takes %d samples", n)
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
			b.Devices = append(b.Devices, Device{Gain: channel.Gaussian{Mu: m}})
		}
		said := slices.ContainsFunc(b.remedies(usual), func(r remedy) bool { return strings.Contains(r.change, "stronger") })
		if said != c.said {
			t.Errorf("means %v: said is %v", c.means, said)
		}
	}
}
