package moments

import (
	"math"
	"math/cmplx"
	"testing"

	"ringwave/phy/channel"
)

// fluctuations makes a record of n values, of white noise or of a random walk whose steps
// have the deviation 1.
func fluctuations(name string, n int, index uint64) []float64 {
	rnd := random("spectrum of "+name, index)
	out := make([]float64, n)
	at := 0.0
	for i := range out {
		step := rnd.NormFloat64()
		at += step
		if out[i] = step; name == "random walk" {
			out[i] = at
		}
	}
	return out
}

// White noise of deviation s has the one-sided density 2 s^2 T at every offset, and a walk
// sampled every T that divided by 4 sin^2(pi f T), which is s^2/(2 pi^2 f^2 T) for slow
// ones: theory against simulation, and the intervals cover it.
func TestSpectrumOfKnownNoise(t *testing.T) {
	const (
		seconds = 0.004
		runs    = 200
	)
	laws := map[string]func(f float64) float64{
		"white": func(float64) float64 { return 2 * seconds },
		"random walk": func(f float64) float64 {
			sin := math.Sin(math.Pi * f * seconds)
			return 2 * seconds / (4 * sin * sin)
		},
	}
	for _, name := range []string{"white", "random walk"} {
		var mean []float64
		var hertz []float64
		covered := 0
		for run := range runs {
			s := welch([][]float64{fluctuations(name, 512, uint64(run))}, seconds, 0.95)
			if s.Segments != 7 || len(s.Density) != 61 || len(s.Hertz) != 61 {
				t.Fatalf("%s: %d segments, %d densities at %d offsets", name, s.Segments, len(s.Density), len(s.Hertz))
			}
			if mean == nil {
				mean, hertz = make([]float64, len(s.Density)), s.Hertz
			}
			for k, d := range s.Density {
				mean[k] += d / runs
			}
			const at = 20
			if want := laws[name](s.Hertz[at]); s.Low*s.Density[at] <= want && want <= s.High*s.Density[at] {
				covered++
			}
		}
		if first, last := hertz[0]*seconds, hertz[60]*seconds; first != 3./128 || last != 63./128 {
			t.Errorf("%s: offsets from %v to %v of the rate", name, first, last)
		}
		for k, got := range mean {
			// The mean of 200 spectra of 13 degrees of freedom is known to 2.8 %; leakage
			// comes on top where the density falls.
			off, most := 10*math.Log10(got/laws[name](hertz[k])), 0.45
			if name == "random walk" && k == 0 {
				most = 1
			}
			if math.Abs(off) > most {
				t.Errorf("%s at %.4g Hz: %.2f dB off, at most %v", name, hertz[k], off, most)
			}
		}
		// 95 % of 200 is 190, with a deviation of 3.1.
		if covered < 180 {
			t.Errorf("%s: the interval covers theory in %d of %d", name, covered, runs)
		}
	}
}

// The scatter of the densities is that of the degrees of freedom which the interval goes
// by: segments that overlap are correlated.
func TestSpectrumFreedom(t *testing.T) {
	const runs = 1000
	square, segments, n := 0.0, 0, 0.0
	for run := range runs {
		s := welch([][]float64{fluctuations("white", 512, 1000+uint64(run))}, 0.5, 0.95)
		segments = s.Segments
		for _, d := range s.Density {
			square, n = square+(d-1)*(d-1), n+1 // 2 T = 1 is the mean
		}
	}
	if got, want := 2/(square/n), welchFreedom(segments); math.Abs(got/want-1) > 0.025 {
		t.Errorf("densities scatter as of %.2f degrees of freedom, stated %.2f", got, want)
	}
}

// What is no noise adds none: a constant, an offset of the carrier, a session that begins
// elsewhere. A missing value takes the segments that hold it, and no others.
func TestSpectrumOfWhatIsNoNoise(t *testing.T) {
	const seconds = 0.5
	plain := fluctuations("white", 256, 0)
	want := welch([][]float64{plain}, seconds, 0.95)
	moved := make([]float64, len(plain))
	for k, v := range plain {
		moved[k] = v + 1e4 + 50*float64(k)
	}
	got := welch([][]float64{moved}, seconds, 0.95)
	for k := range want.Density {
		if math.Abs(got.Density[k]/want.Density[k]-1) > 1e-6 {
			t.Errorf("at %v Hz an offset and drift make %v of %v", want.Hertz[k], got.Density[k], want.Density[k])
		}
	}
	moved[70] = math.NaN() // of the segments of 64 every 32 in those that begin at 32 and 64
	holed := welch([][]float64{moved, plain}, seconds, 0.95)
	if holed.Segments != 12 || math.IsNaN(holed.RMS()) {
		t.Errorf("with a value missing: %d of 14 segments, rms %v", holed.Segments, holed.RMS())
	}
	for _, parts := range [][][]float64{
		nil, {nil}, {plain[:leastSegment-1]}, {plain[:leastSegment]}, {plain[:3*leastSegment/2-1]},
		{make([]float64, 0), {math.NaN()}}, {{math.NaN(), 1, 2}},
	} {
		if s := welch(parts, seconds, 0.95); s.Segments != 0 || s.Hertz != nil || s.Density != nil || !math.IsNaN(s.RMS()) {
			t.Errorf("of too little: %+v", s)
		}
	}
	if s := welch([][]float64{plain[:3*leastSegment/2]}, seconds, 0.95); s.Segments != 2 {
		t.Errorf("of two segments that overlap: %d", s.Segments)
	}
}

// A link whose phase walks: L(f) of the calibration is that of an oscillator of this
// linewidth, nu/(2 pi f^2); the gain's spectrum, and that of a phase which stands still,
// are the measurement's noise, which Floor says.
func TestSpectrumOfALink(t *testing.T) {
	const (
		blocks    = 4096
		linewidth = 2e-4 // hertz; a block lasts a second
	)
	b := truth{law: channel.Gaussian{Mu: 1, Sigma: 1e-9}, snrDB: 20, devices: 2, blocks: blocks, looks: 1}.draw(random("linewidth"))
	walk := fluctuations("random walk", blocks, 1)
	for k := range b.Devices[1].Gain {
		b.Devices[1].Gain[k] *= cmplx.Rect(1, math.Sqrt(2*math.Pi*linewidth)*walk[k])
	}
	r, err := Analyse(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Devices[0].PhaseSpectrum; math.Abs(10*math.Log10(s.RMS()*s.RMS()/(s.Floor*(s.Hertz[len(s.Hertz)-1]-s.Hertz[0])))) > 0.3 {
		t.Errorf("a phase that stands still: rms %v, floor %v over %v Hz", s.RMS(), s.Floor, s.Hertz[len(s.Hertz)-1])
	}
	s := r.Devices[1].PhaseSpectrum
	sum, n := 0.0, 0.0
	for k, f := range s.Hertz {
		if k >= 1 && f < 0.03 { // between leakage and the floor
			sum, n = sum+PhaseNoise(s.Density[k])-10*math.Log10(linewidth/(2*math.Pi*f*f)), n+1
		}
	}
	if mean := sum / n; n < 20 || math.Abs(mean) > 1 {
		t.Errorf("a linewidth of %v Hz: L(f) is off by %.2f dB in the mean of %v offsets", linewidth, mean, n)
	}
	gain := r.Devices[0].GainSpectrum
	for k, f := range gain.Hertz {
		if off := 10 * math.Log10(gain.Density[k]/gain.Floor); math.Abs(off) > 6 {
			t.Errorf("a steady gain at %v Hz: %.2f dB over its floor", f, off)
		}
	}
}
