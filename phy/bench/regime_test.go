package bench_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/phy/bench"
	"ringwave/phy/modem"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12*math.Abs(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Three devices, the last in a group of its own: relative variances 0.04, 0.01, 0.25.
func links() bench.Links {
	return bench.Links{Mu: []float64{1, -2, 0.8}, Omega: []float64{1.04, 4.04, 0.8}}
}

func TestRegimes(t *testing.T) {
	l := links()
	for _, r := range []bench.Regime{bench.Emulated, bench.Blind} {
		near(t, r.String()+": the level", l.Level(r), 1)
		if met := l.Met(r); met.Mu[1] != -2 || met.Omega[1] != 4.04 {
			t.Errorf("%v: gains are met as %v", r, met)
		}
		// 3 + 4 sqrt(0.04 + 0.04) of the first two, 0.8 + 4 x 0.4 of the last.
		near(t, r.String()+": the full scale", l.FullScale(r, 2, 0.1), 3+4*math.Sqrt(0.08)+0.4)
		near(t, r.String()+": the full scale alone", bench.Links{Mu: l.Mu[2:], Omega: l.Omega[2:]}.FullScale(r, 2, 0), 0.8+4*0.4)
	}
	aligned := bench.MeanAligned
	near(t, "the aligned level", l.Level(aligned), 0.8)
	met := l.Met(aligned)
	for i, want := range []float64{1.04, 1.01, 1.25} {
		near(t, "mu", met.Mu[i], 1)
		near(t, "Omega", met.Omega[i], want)
	}
	if l.Mu[1] != -2 {
		t.Error("the links themselves are changed")
	}
	// The last, alone, has 1 + 4 x 0.5, and the others 2 + 4 sqrt(0.05).
	near(t, "the aligned full scale", l.FullScale(aligned, 2, 0.1), 0.8*3+0.4)
	near(t, "the full scale of all", l.FullScale(aligned, 3, 0.1), 0.8*(3+4*math.Sqrt(0.3))+0.4)
}

func TestAlignedFigures(t *testing.T) {
	l := links()
	near(t, "the tolerance of a wide link", l.AlignedTolerance(2), 0.3)
	l.Omega[2] = 0.64 * (1 + 0.0001) // relative variances 0.04, 0.01, 0.0001
	near(t, "the tolerance of the first two", bench.Links{Mu: l.Mu[:2], Omega: l.Omega[:2]}.AlignedTolerance(3), 0.3)
	l.Omega[0] = 1.0001
	near(t, "the tolerance of all three", l.AlignedTolerance(3), 0.02+4*math.Sqrt(0.0102)/3)
	l.Omega[0] = 1.04
	near(t, "the tolerance where the last, alone, is the worst", bench.Links{Mu: []float64{1, 1, 1}, Omega: []float64{1, 1, 1.0016}}.AlignedTolerance(2), 0.18)
	near(t, "the tolerance of one", bench.Links{Mu: l.Mu[2:], Omega: l.Omega[2:]}.AlignedTolerance(1), 0.06)
	near(t, "the fluctuation of pairs", l.Fluctuation(2, 5), 2*math.Sqrt(2/math.Pi)*0.3)
	near(t, "the fluctuation of all three", l.Fluctuation(3, 3), math.Sqrt(2/math.Pi)*0.31)
}

func TestAmplitude(t *testing.T) {
	for _, c := range []struct {
		bits []int
		want modem.Amplitude
	}{{nil, 1}, {[]int{0, 0}, 1}, {[]int{12, 8, 0}, 127.0 / 128}} {
		if got := bench.Amplitude(c.bits...); got != c.want {
			t.Errorf("converters of %v bits: %v, want %v", c.bits, got, c.want)
		}
	}
}

// The largest digit takes the largest sample.
func TestSymbolScale(t *testing.T) {
	for _, base := range []int{3, 7} {
		for _, amplitude := range []modem.Amplitude{1, 0.5} {
			got, err := bench.SymbolScale(modem.Config{SamplesPerSymbol: 8, Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, Preamble: modem.Preamble{Length: 127}}, base, amplitude)
			if err != nil {
				t.Fatal(err)
			}
			if want := 2 * float64(amplitude) / float64(base-1); math.Abs(got/want-1) > 2e-3 { // the drive leaves a thousandth
				t.Errorf("base %d at an amplitude of %v: the digit 1 is sent as %v, want %v", base, amplitude, got, want)
			}
		}
	}
	if _, err := bench.SymbolScale(modem.Config{}, 3, 1); err == nil {
		t.Error("a modem without pulses has a scale")
	}
}

// Soft symbols of a frame of the given modem have the SNR that the noise was set for.
func TestNoiseStdGivesTheSNR(t *testing.T) {
	const symbols, snr = 20000, 17.0
	for base, pulse := range map[int]modem.Pulse{3: modem.FlatTop{Edge: 2, Tolerance: 1}, 5: modem.RootRaisedCosine{RollOff: 0.5, Span: 16}} {
		m := modem.Config{SamplesPerSymbol: 8, Pulse: pulse, Preamble: modem.Preamble{Length: 127, Level: float32(base-1) / 2}}
		scale, err := bench.SymbolScale(m, base, 1)
		if err != nil {
			t.Fatal(err)
		}
		demodulator, err := modem.NewDemodulator(m, modem.Receive{})
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		std := bench.NoiseStd(m, base, snr, scale)
		noise := make([]complex64, (symbols+400)*m.SamplesPerSymbol)
		for k := range noise {
			noise[k] = complex(float32(std*rnd.NormFloat64()), float32(std*rnd.NormFloat64()))
		}
		soft, erased := make([]float32, symbols), make([]bool, symbols)
		demodulator.Demodulate(soft, erased, modem.Frame{Samples: noise, Sync: modem.Sync{Payload: 1000}})
		sum := 0.0
		for _, y := range soft {
			sum += float64(y) * float64(y) / (scale * scale)
		}
		// The mean of 20,000 squares deviates by 1 %, and neighbours share little: 0.15 dB
		// are three deviations and more.
		if got := 10 * math.Log10(bench.DigitPower(base)*symbols/sum); math.Abs(got-snr) > 0.15 {
			t.Errorf("base %d, %T: symbols have %.2f dB, want %v", base, pulse, got, snr)
		}
	}
}

// At the SNR that so many symbols need, one of a thousand times a symbol is wrong: half a
// unit of the lattice is the normal distribution's quantile times the noise.
func TestNeededSNR(t *testing.T) {
	const symbols, alpha = 500, 4.0
	for _, base := range []int{3, 7} {
		snr := bench.NeededSNR(base, alpha, symbols)
		std := alpha * math.Sqrt(bench.DigitPower(base)) * math.Pow(10, -snr/20)
		wrong := math.Erfc(0.5 / std / math.Sqrt2) // either side
		if math.Abs(symbols*wrong/1e-3-1) > 1e-6 {
			t.Errorf("base %d: a symbol is wrong with probability %v, want %v", base, wrong, 1e-3/symbols)
		}
	}
	near(t, "the power of trits", bench.DigitPower(3), 2.0/3)
}

// Devices send at full drive to a receiver that need not clip, and else so that the sum of
// their gains within 1.6 deviations fits.
func TestDrive(t *testing.T) {
	links := bench.Links{Mu: []float64{1, 1, 1}, Omega: []float64{1.09, 1.09, 1.09}}
	largest := 3 + 1.6*math.Sqrt(3*0.09)
	for full, want := range map[float64]float64{6: 1, 3: 3 / largest, 2.5: 2.5 / largest} {
		if got := links.Drive(bench.Blind, 3, full); math.Abs(got-want) > 1e-12 {
			t.Errorf("full scale %v: drive %v, want %v", full, got, want)
		}
	}
}
