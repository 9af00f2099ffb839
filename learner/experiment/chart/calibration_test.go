package chart

import (
	"bytes"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// someLinks returns n devices of sigma from 0.02 to 1 in two sessions, some gains missing.
func someLinks(n int) CalibrationView {
	r := rand.New(rand.NewPCG(1, 2))
	v := CalibrationView{RoundSeconds: 2}
	for i := range n {
		mu, sigma := 0.5+0.1*float64(i), 0.02*math.Pow(50, float64(i)/max(1, float64(n-1)))
		d := LinkSeries{Name: fmt.Sprintf("device %d", i+1), Mu: mu, Sigma: sigma, Model: "Gaussian fitted"}
		d.Density = func(x float64) float64 { return distuv.Normal{Mu: mu, Sigma: sigma}.Prob(x) }
		for k := range 400 {
			h := mu + sigma*r.NormFloat64()
			session := k / 200
			g := cmplx.Rect(h, float64(i)+0.6*float64(session)) + complex(0.01*r.NormFloat64(), 0.01*r.NormFloat64())
			if k%50 == 7 {
				g, h = cmplx.NaN(), math.NaN()
			}
			d.Gain, d.Session, d.Effective = append(d.Gain, g), append(d.Session, session), append(d.Effective, h)
			d.Seconds = append(d.Seconds, 0.05*float64(k)+3*float64(session))
			d.Delay = append(d.Delay, 0.1*float64(i)+0.01*r.NormFloat64())
			d.Offset = append(d.Offset, 10*r.NormFloat64())
		}
		for k := range 40 {
			d.Lags = append(d.Lags, 0.05*float64(k+1))
			d.Autocorrelation = append(d.Autocorrelation, 0.8*math.Exp(-float64(k)/(4+float64(i)))+0.04*r.NormFloat64())
			d.Low, d.High = append(d.Low, -0.1), append(d.High, 0.1)
		}
		for k := range 7 {
			tau := 0.05 * math.Pow(2, float64(k))
			phase, gain := 0.02/math.Sqrt(tau)*(1+0.3*float64(i)), 0.01*sigma*math.Hypot(1/math.Sqrt(tau), tau)
			wide := 1 + 0.1*float64(k)
			for _, a := range []struct {
				to *Deviation
				at float64
			}{{&d.PhaseDeviation, phase}, {&d.GainDeviation, gain}} {
				a.to.Tau, a.to.Value = append(a.to.Tau, tau), append(a.to.Value, a.at)
				a.to.Low, a.to.High = append(a.to.Low, a.at/wide), append(a.to.High, a.at*wide)
			}
		}
		for k := range 30 {
			f := 0.3 * float64(k+1)
			for _, n := range []*Noise{&d.PhaseNoise, &d.GainNoise} {
				value := -40 - 20*math.Log10(f) + 2*r.NormFloat64()
				n.Offset, n.Value, n.Floor = append(n.Offset, f), append(n.Value, value), -70-float64(i)
				n.Low, n.High = append(n.Low, value-2), append(n.High, value+3)
			}
		}
		v.Devices = append(v.Devices, d)
	}
	return v
}

// All pictures are there, whole, and the same each time.
func TestCalibrationPlots(t *testing.T) {
	names := []string{"gain-clouds", "gain-histogram", "gain-time", "phase-time", "delay-time", "offset-time", "allan", "noise", "autocorrelation"}
	var before map[string]string
	for range 2 {
		dir := t.TempDir()
		files, err := CalibrationPlots(dir, someLinks(2))
		if err != nil || len(files) != 2*len(names) {
			t.Fatalf("%d files: %v", len(files), err)
		}
		for _, name := range names {
			wantFigure(t, filepath.Join(dir, name))
			if !slices.Contains(files, filepath.Join(dir, name+".png")) {
				t.Errorf("%s.png is not named", name)
			}
		}
		now := contents(t, dir)
		for name, text := range before {
			if now[name] != text {
				t.Errorf("%s differs from one time to the next", name)
			}
		}
		before = now
	}
}

// What there is not is not drawn, and what makes no sense does no harm.
func TestCalibrationPlotsOfLittle(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		view CalibrationView
		want int
	}{
		"nothing":        {CalibrationView{}, 0},
		"no link":        {CalibrationView{Devices: make([]LinkSeries, 3)}, 0},
		"no gain found":  {CalibrationView{Devices: []LinkSeries{{Gain: []complex128{cmplx.NaN()}, Seconds: []float64{0}, Effective: []float64{nan}}}}, 0},
		"one gain":       {CalibrationView{Devices: []LinkSeries{{Gain: []complex128{1i}, Seconds: []float64{0}, Effective: []float64{1}}}}, 4},
		"the same gains": {CalibrationView{Devices: []LinkSeries{{Gain: []complex128{0, 0, 0}, Effective: []float64{0, 0}}}}, 2},
		"no times":       {CalibrationView{Devices: []LinkSeries{{Gain: []complex128{1, 2}, Session: []int{1}}}}, 1},
		"no numbers":     {CalibrationView{RoundSeconds: nan, Devices: []LinkSeries{{Lags: []float64{1}, Autocorrelation: []float64{nan}, PhaseDeviation: Deviation{Tau: []float64{1}, Value: []float64{0}}}}}, 2},
		"no density":     {CalibrationView{Devices: []LinkSeries{{PhaseNoise: Noise{Offset: []float64{1}, Value: []float64{math.Inf(-1)}, Floor: nan}}}}, 1},
		"forty":          {CalibrationView{Devices: slices.Repeat([]LinkSeries{{Effective: []float64{1, 2, 3}}}, 40)}, 1},
	} {
		files, err := CalibrationPlots(t.TempDir(), c.view)
		if err != nil || len(files) != 2*c.want {
			t.Errorf("%s: %d files, want %d: %v", name, len(files), 2*c.want, err)
		}
	}
	if p := (CalibrationView{Devices: someLinks(14).Devices}).histograms(); len(p.list) != mostPanels || p.xLabel != "real effective gain" || !strings.HasSuffix(p.note, " The first 12 of 14 devices are drawn.") {
		t.Errorf("%d panels over %q, with the note %q", len(p.list), p.xLabel, p.note)
	}
}

// The ellipse of points on a turned line ends one deviation off on either side; that of
// a cross with arms of 2 and 1 has their proportion.
func TestSpread(t *testing.T) {
	turn := cmplx.Rect(1, 0.7)
	mean, e := spread([]complex128{2 + turn, 2 - turn, 2 + turn, 2 - turn})
	if cmplx.Abs(mean-2) > 1e-12 || cmplx.Abs(complex(e.X[0], e.Y[0])-2-turn) > 1e-7 {
		t.Errorf("mean %v, first corner %v %v", mean, e.X[0], e.Y[0])
	}
	_, e = spread([]complex128{2i, -2i, 1, -1})
	if high, wide := slices.Max(e.Y), slices.Max(e.X); math.Abs(high-math.Sqrt(2)) > 1e-3 || math.Abs(wide-math.Sqrt(0.5)) > 1e-3 {
		t.Errorf("the ellipse reaches %v and %v", wide, high)
	}
}

// A circle is one on the picture.
func TestSquared(t *testing.T) {
	size := vg.Point{X: 300, Y: 100}
	x, y := squared(axis{lo: 0, hi: 1}, axis{lo: -1, hi: 1}, size)
	if math.Abs((x.hi-x.lo)/3-(y.hi-y.lo)) > 1e-12 || x.lo > 0 || x.hi < 1 || y.lo != -1 || y.hi != 1 {
		t.Errorf("x from %v to %v, y from %v to %v", x.lo, x.hi, y.lo, y.hi)
	}
}

// Strips whose labels differ in width have their boxes at one line.
func TestStripsAreAligned(t *testing.T) {
	v := CalibrationView{Devices: []LinkSeries{
		{Name: "a", Gain: []complex128{1, 2}, Seconds: []float64{0, 1}},
		{Name: "b", Gain: []complex128{1.0001, 1.0002}, Seconds: []float64{0, 1}},
	}}
	p := v.strips("|gain|", magnitudes)
	c := draw.New(vgimg.New(p.tile.X, p.tile.Y))
	wide := p.inset(c)
	for _, l := range p.list {
		x, y := p.axes(l.series)
		tile := c
		tile.Min.X += wide - labelWidth(c, x, y)
		if left := tile.Min.X + labelWidth(tile, x, y); math.Abs(float64(left-c.Min.X-wide)) > 1e-9 {
			t.Errorf("%s begins at %v, want %v", l.title, left, wide)
		}
	}
	if narrow := labelWidth(c, axis{lo: 0, hi: 1}, axis{lo: 0, hi: 1}); wide <= narrow {
		t.Errorf("the widest labels take %v", wide)
	}
}

// A phase that is steady at half a turn is drawn without jumps.
func TestPhasesDoNotWrap(t *testing.T) {
	d := LinkSeries{Gain: []complex128{cmplx.Rect(1, 3.13), cmplx.Rect(1, -3.13), cmplx.NaN(), cmplx.Rect(2, 3.1)}}
	p := phases(d)
	if len(p) != 4 || math.Abs(p[1]-p[0]-(2*math.Pi-6.26)) > 1e-9 || !math.IsNaN(p[2]) || math.Abs(p[3]-3.1) > 1e-9 {
		t.Errorf("%v", p)
	}
	if len(phases(LinkSeries{})) != 0 {
		t.Error("phases of nothing")
	}
}

// A round far longer than the lags is told, not drawn.
func TestRoundBesideLags(t *testing.T) {
	v := someLinks(1)
	if s := v.autocorrelation().Series; s[len(s)-1].X[0] != 2 {
		t.Errorf("the round is at %v", s[len(s)-1].X)
	}
	v.RoundSeconds = 100
	if f := v.autocorrelation(); f.XLabel != "lag (s) – a round lasts 100 s, beyond this range" || len(f.Series) != 2 {
		t.Errorf("%q with %d series", f.XLabel, len(f.Series))
	}
}

// Strips of sessions are told apart, and the legend names each once.
func TestStrips(t *testing.T) {
	dir := t.TempDir()
	p := someLinks(3).strips("|gain|", magnitudes)
	if len(p.list) != 3 || len(p.list[0].series) != 2 || len(p.list[0].series[1].X) != 200 {
		t.Fatalf("%d strips", len(p.list))
	}
	if err := p.save(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count([]byte(contents(t, dir)["f.svg"]), []byte(">session 2<")); n != 1 {
		t.Errorf("session 2 is named %d times", n)
	}
}
