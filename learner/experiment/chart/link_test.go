package chart

import (
	"math"
	"math/cmplx"
	"path/filepath"
	"testing"

	"ringwave/learner/experiment/runfolder"
)

// A tone of power 1/4 is a line at its frequency; the density's sum over all
// bins is the power.
func TestSpectrumOfATone(t *testing.T) {
	const rate, bin = 1e6, 100
	v := LinkView{SampleRate: rate}
	for k := range 10 * spectrumBins {
		v.Samples = append(v.Samples, complex64(cmplx.Rect(0.5, -2*math.Pi*bin*float64(k)/spectrumBins)))
	}
	s := v.spectrumFigure().Series[0]
	power, peak := 0.0, 0
	for k, y := range s.Y {
		power += math.Pow(10, y/10) * rate / spectrumBins
		if y > s.Y[peak] {
			peak = k
		}
		if k > 0 && s.X[k] <= s.X[k-1] {
			t.Fatalf("frequencies are not ascending: %v then %v", s.X[k-1], s.X[k])
		}
	}
	if want := -rate * bin / spectrumBins / 1e3; math.Abs(s.X[peak]-want) > 1e-9 {
		t.Errorf("the line is at %v kHz, want %v", s.X[peak], want)
	}
	if math.Abs(power-0.25) > 1e-3 {
		t.Errorf("the power is %v, want 0.25", power)
	}
}

// Segments are of spectrumBins samples each, half of them shared with the next, and as
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
			if len(s) != spectrumBins || s[0] != complex(float64(n*spectrumBins/2), 0) {
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
		rows []runfolder.Row
		view LinkView
		want int
	}{
		"nothing":        {nil, LinkView{}, 2},
		"no link":        {[]runfolder.Row{{Round: 1}}, LinkView{}, 2},
		"silence":        {nil, LinkView{Samples: make([]complex64, 2000), SampleRate: 1, SamplesPerSymbol: 2, Centre: 3}, 4},
		"no numbers":     {nil, LinkView{Soft: []float32{nan, 1}, Alpha: 1}, 4},
		"far off":        {nil, LinkView{Soft: []float32{1e30, -1e30}, Alpha: 5}, 4},
		"only symbols":   {nil, LinkView{Soft: []float32{0, 1, 2}, Alpha: 1}, 4},
		"without a rate": {nil, LinkView{Samples: make([]complex64, 2000)}, 2},
	} {
		dir := t.TempDir()
		files, err := LinkPlots(dir, "what ran", c.rows, c.view)
		if err != nil || len(files) != 2*c.want {
			t.Errorf("%s: %d files, want %d: %v", name, len(files), 2*c.want, err)
		}
		for _, f := range files {
			if filepath.Dir(f) != dir {
				t.Errorf("%s: %s is elsewhere", name, f)
			}
		}
	}
}
