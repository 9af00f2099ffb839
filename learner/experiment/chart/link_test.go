package chart

import (
	"math"
	"math/cmplx"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/experiment/runfolder"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
)

// A tone of power 1/4 is a line at its frequency; the density's sum over all
// bins is the power.
func TestSpectrumOfATone(t *testing.T) {
	const rate, bin = 1e6, 100
	v := LinkView{SampleRate: rate}
	for k := range 10 * SpectrumBins {
		v.Samples = append(v.Samples, complex64(cmplx.Rect(0.5, -2*math.Pi*bin*float64(k)/SpectrumBins)))
	}
	s := v.spectrumFigure().Series[0]
	power, peak := 0.0, 0
	for k, y := range s.Y {
		power += math.Pow(10, y/10) * rate / SpectrumBins
		if y > s.Y[peak] {
			peak = k
		}
		if k > 0 && s.X[k] <= s.X[k-1] {
			t.Fatalf("frequencies are not ascending: %v then %v", s.X[k-1], s.X[k])
		}
	}
	if want := -rate * bin / SpectrumBins / 1e3; math.Abs(s.X[peak]-want) > 1e-9 {
		t.Errorf("the line is at %v kHz, want %v", s.X[peak], want)
	}
	if math.Abs(power-0.25) > 1e-3 {
		t.Errorf("the power is %v, want 0.25", power)
	}
}

// Segments are of SpectrumBins samples each, half of them shared with the next, and as
// many as fit: none is longer where samples are left over.
func TestSegments(t *testing.T) {
	for samples, want := range map[int]int{1024: 1, 1025: 1, 1535: 1, 1536: 2, 2047: 2, 2048: 3, 5000: 8, 100_000: 194} {
		v := LinkView{Samples: make([]complex64, samples)}
		for k := range v.Samples {
			v.Samples[k] = complex(float32(k), 0)
		}
		got := v.segments()
		if len(got) != want {
			t.Errorf("%d samples: %d segments, want %d", samples, len(got), want)
		}
		for n, s := range got {
			if len(s) != SpectrumBins || s[0] != complex(float64(n*SpectrumBins/2), 0) {
				t.Fatalf("%d samples: segment %d has %d samples from %v on", samples, n, len(s), s[0])
			}
		}
	}
}

// An eye is of two symbols, with the middle one's centre at 0.
func TestEye(t *testing.T) {
	v := LinkView{Samples: make([]complex64, 100), SamplesPerSymbol: 8, Centre: 12.5, Phase: math.Pi / 2}
	for k := range v.Samples {
		v.Samples[k] = 1i
	}
	traces := v.eye()
	if len(traces) != 10 { // centres from 12.5 to 84.5
		t.Errorf("%d traces", len(traces))
	}
	for _, s := range traces {
		if s.X[0] < -1 || s.X[len(s.X)-1] > 1 || len(s.X) != 16 || math.Abs(s.Y[3]-1) > 1e-6 {
			t.Fatalf("trace %v, %v", s.X, s.Y)
		}
	}
	v.Centre = math.NaN()
	if len(v.eye()) != 0 {
		t.Error("an eye without a centre")
	}
}

// What there is not is not drawn, and what makes no sense does no harm.
func TestLinkPlotsOfLittle(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		view LinkView
		want int
	}{
		"nothing":        {LinkView{}, 0},
		"silence":        {LinkView{Samples: make([]complex64, 2000), SampleRate: 1, SamplesPerSymbol: 2, Centre: 3}, 2},
		"a reference":    {LinkView{Samples: make([]complex64, 2000), SampleRate: 1, Reference: make([]float64, SpectrumBins), Floor: 1}, 1},
		"no numbers":     {LinkView{Soft: []float32{nan, 1}, Alpha: 1}, 2},
		"far off":        {LinkView{Soft: []float32{1e30, -1e30}, Alpha: 5}, 2},
		"only symbols":   {LinkView{Soft: []float32{0, 1, 2}, Alpha: 1}, 2},
		"without scale":  {LinkView{Soft: []float32{0, 1, 2}, Symbols: []complex64{1, complex(nan, nan)}, SNR: math.NaN()}, 2},
		"a phase":        {LinkView{Seconds: []float64{0, 1}, Tracked: []float64{0, math.NaN()}}, 1},
		"a held phase":   {LinkView{Seconds: []float64{0, 1}, Seen: []float64{0, 1}}, 1},
		"without a rate": {LinkView{Samples: make([]complex64, 2000)}, 0},
		"teeth":          {LinkView{Density: lattice.View{Width: 1, Count: []float64{3}, Teeth: []lattice.Tooth{{To: 0.5}}}}, 1},
	} {
		dir := t.TempDir()
		files, err := FramePlots(dir, "x-", "what ran", c.view)
		if err != nil || len(files) != 2*c.want {
			t.Errorf("%s: %d files, want %d: %v", name, len(files), 2*c.want, err)
		}
		for _, f := range files {
			if filepath.Dir(f) != dir || !strings.HasPrefix(filepath.Base(f), "x-") {
				t.Errorf("%s: %s is elsewhere", name, f)
			}
		}
	}
	for name, c := range map[string]struct {
		rows  []runfolder.Row
		gains RoundGains
		want  int
	}{
		"nothing": {nil, RoundGains{}, 2},
		"no link": {[]runfolder.Row{{Round: 1}}, RoundGains{}, 2},
		"gains":   {[]runfolder.Row{{Round: 1, Link: &runfolder.LinkRow{Misfit: 0.1}}}, RoundGains{[]int{1}, [][]float64{make([]float64, 30)}}, 4},
	} {
		if files, err := LinkPlots(t.TempDir(), "what ran", c.rows, c.gains); err != nil || len(files) != 2*c.want {
			t.Errorf("%s: %d files, want %d: %v", name, len(files), 2*c.want, err)
		}
	}
}

// The band that a spectrum shows holds 99 % of it, and what ideal symbols would have has
// the power that is there, floor and all.
func TestSpectrumHasReference(t *testing.T) {
	cfg := modem.Config{Pulse: modem.RootRaisedCosine{RollOff: 0.25, Span: 16}, SamplesPerSymbol: 8, Preamble: modem.Preamble{Length: 127}}
	v := LinkView{SampleRate: 1e6, Reference: cfg.Spectrum(SpectrumBins), Floor: 0.5}
	power := make([]float64, SpectrumBins)
	for k, share := range v.Reference {
		power[k] = 4*SpectrumBins*share + 0.5
	}
	for k, p := range v.expected(power) {
		if math.Abs(p-power[k]) > 1e-9 {
			t.Fatalf("bin %d: %v, want %v", k, p, power[k])
		}
	}
	low, high := modem.OccupiedBand(v.Reference, 0.99)
	if s := v.bandSeries(power); math.Abs(s[0].X[0]-float64(low)*1e3) > 1 || math.Abs(s[1].X[0]-float64(high)*1e3) > 1 {
		t.Errorf("from %v to %v kHz, want %v to %v", s[0].X[0], s[1].X[0], low*1e3, high*1e3)
	}
}

// The error vector is from the lattice where there is one, and else from the axis.
func TestErrorVector(t *testing.T) {
	v := LinkView{Symbols: []complex64{complex(1.5, 0.3), complex(-1.5, -0.3)}}
	if evm, _ := v.errorVector(); math.Abs(evm-0.3/math.Hypot(1.5, 0.3)) > 1e-6 {
		t.Errorf("without a scale %v", evm)
	}
	v.Alpha = 2 // of which 1.5 is 3
	if evm, _ := v.errorVector(); math.Abs(evm-0.3/math.Hypot(1.5, 0.3)) > 1e-6 {
		t.Errorf("on the lattice %v", evm)
	}
	v.Alpha = 1.2 // of which 1.5 is 1.8
	if evm, _ := v.errorVector(); math.Abs(evm-math.Hypot(0.2/1.2, 0.3)/math.Hypot(1.5, 0.3)) > 1e-6 {
		t.Errorf("nearly on the lattice %v", evm)
	}
	v.Alpha = 1
	if evm, _ := v.errorVector(); math.Abs(evm-math.Hypot(0.5, 0.3)/math.Hypot(1.5, 0.3)) > 1e-6 {
		t.Errorf("beside the lattice %v", evm)
	}
}

// All symbols are in the constellation, however far off, with a bounded number of lines.
func TestConstellationIsWhole(t *testing.T) {
	v := LinkView{Soft: []float32{-400, 0, 3, 1000}, Alpha: 1}
	f := v.constellationFigure()
	dots, lines := f.Series[len(f.Series)-1], len(f.Series)-1
	if len(dots.X) != 4 || dots.Y[3] != 1000 || lines > mostLines || lines < 10 {
		t.Errorf("%d symbols up to %v, %d lines", len(dots.X), dots.Y, lines)
	}
}
