package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// wantFigure fails unless base.svg and base.png are whole pictures.
func wantFigure(t *testing.T, base string) {
	t.Helper()
	b, err := os.ReadFile(base + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	wantSVG(t, b)
	b, err = os.ReadFile(base + ".png")
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%s.png: %v", base, err)
	}
	if size := picture.Bounds().Size(); size.X < 900 || size.Y < 550 {
		t.Errorf("%s.png has %v pixels", base, size)
	}
}

func wantSVG(t *testing.T, b []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("SVG: %v", err)
		}
	}
	for _, bad := range []string{"NaN", "Inf"} {
		if bytes.Contains(b, []byte(bad)) {
			t.Errorf("SVG holds %s", bad)
		}
	}
}

func svgOf(t *testing.T, f Figure) string {
	t.Helper()
	w, h, err := f.size()
	if err != nil {
		t.Fatal(err)
	}
	b, err := renderSVG(sheet{w, h, f.draw})
	if err != nil {
		t.Fatal(err)
	}
	wantSVG(t, b)
	return string(b)
}

// svgTexts returns the texts of a picture in their order, entities resolved.
func svgTexts(t *testing.T, picture string) (list []string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := token.(xml.CharData); ok && strings.TrimSpace(string(data)) != "" {
			list = append(list, strings.TrimSpace(string(data)))
		}
	}
}

func line(y ...float64) Series {
	s := Series{Y: y}
	for i := range y {
		s.X = append(s.X, float64(i+1))
	}
	return s
}

func TestSaveIsDeterministic(t *testing.T) {
	dir := t.TempDir()
	a, b := line(3, 1, 2), line(1, 2, 4)
	a.Name, b.Name, b.Dashed = "a", "b", true
	f := Figure{Title: "Two <lines> & more", XLabel: "round", YLabel: "loss", Series: []Series{a, b}}
	var first map[string]string
	for range 2 {
		if err := f.Save(filepath.Join(dir, "f")); err != nil {
			t.Fatal(err)
		}
		wantFigure(t, filepath.Join(dir, "f"))
		now := contents(t, dir)
		for name, text := range first {
			if now[name] != text {
				t.Errorf("%s differs from one save to the next", name)
			}
		}
		first = now
	}
	if len(first) != 2 {
		t.Errorf("%d files, want the SVG and the PNG alone", len(first))
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

func TestSaveErrors(t *testing.T) {
	base := filepath.Join(t.TempDir(), "f")
	for want, f := range map[string]Figure{
		`"a" has 2 x and 1 y`:                  {Series: []Series{{Name: "a", X: []float64{1, 2}, Y: []float64{1}}}},
		`"b" has 1 x, 1 low and 0 high`:        {Series: []Series{{Name: "b", X: []float64{1}, YLow: []float64{1}, Style: Band}}},
		`"c" has style 9`:                      {Series: []Series{{Name: "c", Style: 9}}},
		"a side of 1 cm, but each must be fro": {Width: vg.Centimeter},
		"a side of NaN cm":                     {Height: vg.Length(math.NaN())},
	} {
		err := f.Save(base)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), base+".svg") {
			t.Errorf("error is %v, want one with %q and the file", err, want)
		}
	}
	absent := filepath.Join(base, "absent", "f")
	if err := (Figure{}).Save(absent); err == nil || !strings.Contains(err.Error(), absent) {
		t.Errorf("error is %v, want one with %s", err, absent)
	}
}

func TestOddSeries(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, s := range map[string]Series{
		"empty":           {},
		"nothing finite":  line(nan, inf, -inf),
		"some not finite": line(1, nan, inf, 2),
		"one point":       line(0.5),
		"zero":            line(0, 0, 0),
		"constant":        line(0.1, 0.1, 0.1),
		"rounding":        line(0.3, 0.1+0.2),
		"tiny range":      line(1e-12, 2e-12),
		"tiny offset":     line(1, 1+1e-12),
		"huge":            line(-1.7e308, 1e300, -1e300, 1.7e308),
		"subnormal":       line(5e-324, 1e-320),
		"huge integers":   {X: []float64{1e300, 1e300}, Y: []float64{1e17, 1e17 + 16}},
		"backwards":       {X: []float64{3, 2, 1}, Y: []float64{1, 2, 3}},
	} {
		for _, style := range []Style{Line, Points, LinePoints, Band} {
			for _, logarithmic := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					s := s
					s.Name, s.Style, s.YLow, s.YHigh = name, style, s.Y, s.Y
					svgOf(t, Figure{XLabel: "x", YLabel: "y", LogX: logarithmic, LogY: logarithmic, Series: []Series{s}})
				})
			}
		}
	}
}

// TestAnyNumbers draws what no run would produce: nothing may panic, and no
// coordinate may be other than a number.
func TestAnyNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		s := Series{Style: Style(r.IntN(4))}
		base := math.Float64frombits(r.Uint64())
		for range r.IntN(6) {
			v := math.Float64frombits(r.Uint64())
			if r.IntN(2) == 0 {
				v = base * (1 + r.Float64()*math.Pow(10, -16*r.Float64()))
			}
			s.X = append(s.X, r.NormFloat64()*math.Pow(10, 20*r.NormFloat64()))
			s.Y, s.YLow, s.YHigh = append(s.Y, v), append(s.YLow, -v), append(s.YHigh, v)
		}
		svgOf(t, Figure{LogX: r.IntN(2) == 0, LogY: r.IntN(2) == 0, Series: []Series{s}})
		if t.Failed() {
			t.Fatalf("for %v", s)
		}
	}
}

func TestNoData(t *testing.T) {
	if !strings.Contains(svgOf(t, Figure{}), ">no data<") {
		t.Error("an empty figure does not say so")
	}
	zero, absent, below, some := line(0, 0), Series{}, line(-1, -2), line(1, 2)
	zero.Name, absent.Name, below.Name, some.Name = "plain", "lost", "negative", "some"
	text := svgOf(t, Figure{LogY: true, Series: []Series{zero, absent, below, some}})
	for _, want := range []string{">plain (zero throughout)<", ">lost (no data)<", ">negative (nothing to draw)<", ">some<"} {
		if !strings.Contains(text, want) {
			t.Errorf("the legend lacks %s", want)
		}
	}
	if strings.Contains(text, ">no data<") {
		t.Error("a figure with data says that it has none")
	}
}

func TestTextsAreSafe(t *testing.T) {
	s := line(1, 2)
	s.Name = "a\x00<b>&\n\xff\x01c"
	text := svgOf(t, Figure{Title: s.Name, XLabel: s.Name, YLabel: s.Name, Series: []Series{s, s}})
	if !strings.Contains(text, "&lt;b&gt;&amp;") {
		t.Error("the name is not there")
	}
}

func TestLegend(t *testing.T) {
	var many []Series
	for i := range 60 {
		s := line(float64(i), float64(i))
		s.Name = strings.Repeat("long ", 4) + "name"
		many = append(many, s)
	}
	many[0].Name = strings.Repeat("very ", 60) + "long name"
	text := svgOf(t, Figure{Series: many})
	if !strings.Contains(text, " more<") || !strings.Contains(text, "…<") {
		t.Error("the legend neither counts what it leaves out nor cuts a long name")
	}
	if named := many[:1]; strings.Contains(svgOf(t, Figure{Series: named}), "very") {
		t.Error("a single series has a legend")
	}
}

func TestThinning(t *testing.T) {
	const n = 10000
	var s Series
	for i := range n {
		s.X = append(s.X, float64(i))
		s.Y = append(s.Y, math.Sin(float64(i)))
	}
	s.Y[1234], s.Y[8765] = 50, -60
	s.YLow, s.YHigh = s.Y, s.Y
	a := axis{lo: 0, hi: n - 1}
	for _, style := range []Style{Line, Band} {
		s.Style = style
		kept := s.clean(false, false).thinned(a)
		if len(kept.x) > 4100 {
			t.Errorf("%d points are left of %d", len(kept.x), n)
		}
		var e extent
		for i := range kept.x {
			e.add(kept.low[i])
			e.add(kept.high[i])
		}
		if e.lo != -60 || e.hi != 50 {
			t.Errorf("the extremes are %g and %g, want -60 and 50", e.lo, e.hi)
		}
		if kept.x[0] != 0 || kept.x[len(kept.x)-1] != n-1 {
			t.Errorf("the ends are %g and %g", kept.x[0], kept.x[len(kept.x)-1])
		}
	}
	s.Style = Line
	if size := len(svgOf(t, Figure{Series: []Series{s}})); size > 100_000 {
		t.Errorf("the SVG has %d bytes", size)
	}
	s.X[n-1] = 3 // goes back: its points cannot be gathered in columns
	if kept := s.clean(false, false).thinned(a); len(kept.x) != n {
		t.Errorf("%d points are left of a line that goes back", len(kept.x))
	}
}
