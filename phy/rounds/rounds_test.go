package rounds

import (
	"math"
	"os"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/trial"
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

// Predicted and measured shares of whole rounds read at once: four transmissions of a
// block each through the whole modem (phy/trial). They differ by no more than 3
// points and three deviations of both counts.
func TestPredictsTheWaveform(t *testing.T) {
	rounds := 40
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 400
	}
	for k, c := range []struct {
		regime     bench.Regime
		n, base    int
		sigma, snr float64
	}{
		{bench.Blind, 2, 3, 0.3, 30}, {bench.Blind, 3, 3, 0.3, 40}, {bench.Blind, 3, 3, 0.3, 32}, {bench.Blind, 4, 3, 0.3, 40}, {bench.Blind, 2, 5, 0.3, 40}, {bench.Blind, 1, 3, 0.3, 30},
		{bench.MeanAligned, 10, 3, 0.02, 35}, {bench.MeanAligned, 10, 3, 0.04, 30}, {bench.MeanAligned, 4, 3, 0.1, 25}, {bench.MeanAligned, 4, 5, 0.05, 25}, {bench.MeanAligned, 6, 3, 0.05, 20},
	} {
		if k%3 != 1 && rounds == 40 {
			continue
		}
		gain := channel.Gaussian{Mu: 1, Sigma: c.sigma}
		b := benchOf(t, c.n, gain, c.base, c.snr)
		one := roundsOf(b, c.regime, c.base, 1, 1, 1, 1)
		cfg := trial.Config{
			Devices: c.n, Gain: gain, SNRdB: c.snr, Base: c.base, BlockSymbols: 8192, Modem: usual, MaxAlpha: 40,
			DelaySpread: 1, PhaseSpread: 0.2, Attempts: 1, WholeRounds: true, Seed: keystream.FromInteger(7),
			Aligned: c.regime == bench.MeanAligned, Tolerance: b.Links().AlignedTolerance(c.n),
		}
		if c.regime == bench.Blind {
			cfg.Minimum = c.n
		}
		whole, err := trial.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var tally trial.Tally
		for k := range uint32(rounds) {
			o, err := whole.Trial(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			tally.Add(o)
		}
		if err := whole.Close(); err != nil {
			t.Fatal(err)
		}
		simulated := 4 * rounds
		got, want := float64(tally.Within(1))/float64(rounds), shareRead(t, one, simulated, 0)
		share := (float64(tally.Within(1)) + want*float64(simulated) + 1) / float64(rounds+simulated+2)
		bound := 0.03 + 3*math.Sqrt(share*(1-share)*(1/float64(rounds)+1/float64(simulated)))
		t.Logf("%v N=%d B=%d sigma=%v %v dB: predicted %.3f, measured %.3f of %d", c.regime, c.n, c.base, c.sigma, c.snr, want, got, rounds)
		if math.Abs(got-want) > bound {
			t.Errorf("they differ by more than %.3f", bound)
		}
	}
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
