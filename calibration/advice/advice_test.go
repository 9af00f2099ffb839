package advice

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/trial"
)

var usual = modem.Config{SamplesPerSymbol: 8, Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, Preamble: modem.Preamble{Length: modem.DefaultPreamble}}

// noiseOf gives the noise at which a symbol of a device of gain 1 has an SNR.
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

// Predicted and measured shares of whole rounds read at once: four transmissions of a
// block each through the whole modem (phy/trial). They differ by no more than 3
// points and three deviations of both counts.
func TestPredictsTheWaveform(t *testing.T) {
	rounds := 40
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 400
	}
	for k, c := range []struct {
		regime     Regime
		n, base    int
		sigma, snr float64
	}{
		{Blind, 2, 3, 0.3, 30}, {Blind, 3, 3, 0.3, 40}, {Blind, 3, 3, 0.3, 32}, {Blind, 4, 3, 0.3, 40}, {Blind, 2, 5, 0.3, 40}, {Blind, 1, 3, 0.3, 30},
		{MeanAligned, 10, 3, 0.02, 35}, {MeanAligned, 10, 3, 0.04, 30}, {MeanAligned, 4, 3, 0.1, 25}, {MeanAligned, 4, 5, 0.05, 25}, {MeanAligned, 6, 3, 0.05, 20},
	} {
		if k%3 != 1 && rounds == 40 {
			continue
		}
		gain := channel.Gaussian{Mu: 1, Sigma: c.sigma}
		b := benchOf(t, c.n, gain, c.base, c.snr)
		mu, omega := b.moments()
		cfg := trial.Config{
			Devices: c.n, Gain: gain, SNRdB: c.snr, Base: c.base, BlockSymbols: 8192, Modem: usual, MaxAlpha: 40,
			DelaySpread: 1, PhaseSpread: 0.2, Attempts: 1, WholeRounds: true, Seed: keystream.FromInteger(7),
			Aligned: c.regime == MeanAligned, Tolerance: AlignedTolerance(mu, omega, c.n),
		}
		bench, err := trial.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var tally trial.Tally
		for k := range uint32(rounds) {
			o, err := bench.Trial(k)
			if err != nil {
				t.Fatal(err)
			}
			tally.Add(o)
		}
		_ = bench.Close()
		o, err := Options{Modem: usual, Attempts: 1, DeltaMax: 1, Repeats: -1, Seed: keystream.FromInteger(8)}.complete(c.n)
		if err != nil {
			t.Fatal(err)
		}
		s := newSearch(t.Context(), b, o)
		one := &candidate{regime: c.regime, group: c.n, base: c.base, samples: 8, maxAlpha: 40}
		if c.regime == MeanAligned {
			one.alpha, one.tolerance, one.maxAlpha = AlignedScale, cfg.Tolerance, 0
		}
		for t := range one.layout.blocks {
			one.layout.blocks[t] = []int{8192}
		}
		simulated := 4 * rounds
		r, err := s.newRounds(one)
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for k := range simulated {
			if r.trial(k)[0].read(0) {
				read++
			}
		}
		got, want := float64(tally.Within(1))/float64(rounds), float64(read)/float64(simulated)
		share := (float64(tally.Within(1)+read) + 1) / float64(rounds+simulated+2)
		bound := 0.03 + 3*math.Sqrt(share*(1-share)*(1/float64(rounds)+1/float64(simulated)))
		t.Logf("%v N=%d B=%d sigma=%v %v dB: predicted %.3f, measured %.3f of %d", c.regime, c.n, c.base, c.sigma, c.snr, want, got, rounds)
		if math.Abs(got-want) > bound {
			t.Errorf("they differ by more than %.3f", bound)
		}
	}
}

// few makes an advice a matter of moments.
func few() Options {
	sets := xmkckks.Sets()
	return Options{
		Modem: usual, Attempts: 2, DeltaMax: 1, Repeats: 1, MaxAlpha: 16, Seed: keystream.FromInteger(3),
		Bases: []int{3}, SamplesPerSymbol: []int{8}, Sets: sets[len(sets)-1:], Coarse: 4, Fine: 8,
	}
}

// The advice does not depend on the number of workers.
func TestAdviceIsRepeatable(t *testing.T) {
	b := benchOf(t, 3, channel.Gaussian{Mu: 1, Sigma: 0.02}, 3, 35)
	var want string
	for _, workers := range []int{1, 2, 5} {
		o := few()
		o.Workers = workers
		a, err := Give(t.Context(), b, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Outlooks) == 0 || !a.Reached || len(a.Suggestions) == 0 {
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
	if !a.Reached || a.Outlooks[0].Regime != MeanAligned || a.Outlooks[0].Group != 10 {
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
	return list
}

func TestRefusals(t *testing.T) {
	good := benchOf(t, 2, channel.Gaussian{Mu: 1, Sigma: 0.02}, 3, 35)
	for want, change := range map[string]func(*Bench, *Options){
		"0 devices":   func(b *Bench, _ *Options) { b.Devices = nil },
		"mean":        func(b *Bench, _ *Options) { b.Devices = []Device{{Gain: channel.Gaussian{Sigma: 1}}} },
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
