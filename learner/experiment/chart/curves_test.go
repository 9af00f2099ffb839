package chart

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// someCurves has three N, three sigma and eight SNRs; success rises from 0 to 1.
func someCurves() []CurvePoint {
	var points []CurvePoint
	for n := 2; n <= 4; n++ {
		for _, sigma := range []float64{0.05, 0.3, 1} {
			for snr := 20.0; snr <= 55; snr += 5 {
				share := 1 / (1 + math.Exp(-(snr-15-5*float64(n))/2))
				p := CurvePoint{Devices: n, Sigma: sigma, SNRdB: snr, First: share, FirstLow: 0.9 * share, FirstHigh: (1 + share) / 2,
					Within: math.Sqrt(share), WithinLow: share, WithinHigh: 1, Misfit: 0.1, Reference: math.NaN()}
				if snr == 30 {
					p.Reference = 0.5
				}
				points = append(points, p)
			}
		}
	}
	return points
}

func TestCurvePlots(t *testing.T) {
	var first [][]byte
	for range 2 {
		dir := t.TempDir()
		files, err := CurvePlots(dir, "what ran", someCurves(), 4, "elsewhere")
		if err != nil || len(files) != 10 {
			t.Fatalf("%d files: %v", len(files), err)
		}
		var all [][]byte
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
		if first != nil && !slices.EqualFunc(first, all, bytes.Equal) {
			t.Error("the same points give other bytes")
		}
		first = all
		svg, err := os.ReadFile(filepath.Join(dir, "success-snr.svg"))
		if err != nil {
			t.Fatal(err)
		}
		for text, times := range map[string]int{"N = 3<": 1, "elsewhere<": 1, "σ = 0.3<": 1, "SNR of a device (dB)<": 3} {
			if n := bytes.Count(svg, []byte(text)); n != times {
				t.Errorf("success-snr.svg has %q %d times, want %d", text, n, times)
			}
		}
	}
}

// Little or nothing does no harm.
func TestCurvePlotsOfLittle(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		points   []CurvePoint
		attempts int
		want     int
	}{
		"nothing":     {nil, 4, 0},
		"one point":   {someCurves()[:1], 1, 4},
		"no numbers":  {[]CurvePoint{{Devices: 1, First: nan, Within: nan, Misfit: nan, Reference: nan}}, 2, 5},
		"four panels": {[]CurvePoint{{Devices: 1, Sigma: 1}, {Devices: 2, Sigma: 2}, {Devices: 3, Sigma: 3}, {Devices: 4, Sigma: 4}}, 1, 4},
	} {
		files, err := CurvePlots(t.TempDir(), "what ran", c.points, c.attempts, "elsewhere")
		if err != nil || len(files) != 2*c.want {
			t.Errorf("%s: %d files, want %d: %v", name, len(files), 2*c.want, err)
		}
	}
}

// SNRs at which everything is read, or nothing, tell nothing about N and sigma.
func TestTellingSNRs(t *testing.T) {
	c := curves{points: someCurves()}
	if got := c.tellingSNRs(); !slices.Equal(got, []float64{20, 25, 30, 35, 40}) {
		t.Errorf("%v", got)
	}
	for i := range c.points {
		c.points[i].First = 1
	}
	if got := c.tellingSNRs(); !slices.Equal(got, []float64{20, 25, 35, 45, 55}) {
		t.Errorf("with all read: %v", got)
	}
}

// A share and its reference are points of one axis, in per cent.
func TestSuccessAgainstSNR(t *testing.T) {
	p := curves{points: someCurves(), reference: "elsewhere"}.againstSNR()
	if len(p.list) != 3 {
		t.Fatalf("%d panels", len(p.list))
	}
	band, line, open := p.list[1].series[2], p.list[1].series[3], p.list[1].open[1]
	if line.Name != "N = 3" || len(line.X) != 8 || line.X[2] != 30 || line.Y[2] != 50 || band.YLow[2] != 45 || band.YHigh[2] != 75 {
		t.Errorf("line %+v, band %+v", line, band)
	}
	if open.Color != line.Color || open.Y[2] != 50 || !math.IsNaN(open.Y[3]) {
		t.Errorf("reference %+v", open)
	}
}
