package chart

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"strings"
	"testing"
)

// mapOf has so many columns and rows of numbers that rise, and one cell without.
func mapOf(columns, rows int, value string) HeatMap {
	h := HeatMap{Title: "what ran", Note: "what is seen", XLabel: "channel.std (gain)", YLabel: "devices.count", Label: "test accuracy (%)"}
	for y := range rows {
		h.Y = append(h.Y, fmt.Sprint(value, y))
		var row []Cell
		for x := range columns {
			v := float64(x + columns*y)
			row = append(row, Cell{v, fmt.Sprintf("%.2f", v)})
		}
		h.Cells = append(h.Cells, row)
	}
	for x := range columns {
		h.X = append(h.X, fmt.Sprint(value, x))
	}
	h.Cells[0][0] = Cell{math.NaN(), "no result"}
	return h
}

// A heat map has its numbers, says where there is none, and nothing leaves the picture.
func TestHeatMap(t *testing.T) {
	dir := t.TempDir()
	for name, h := range map[string]HeatMap{
		"usual": mapOf(5, 4, "v"), "one": mapOf(1, 1, ""), "row": mapOf(9, 1, ""), "long": mapOf(4, 3, strings.Repeat("long ", 30)),
		"many": mapOf(120, 20, ""), "tall": mapOf(2, 60, ""),
		"wide": {X: []string{"1"}, Y: []string{"1"}, Cells: [][]Cell{{{1e-12, strings.Repeat("wide ", 30)}}}, Title: strings.Repeat("title ", 99), Label: strings.Repeat("label ", 50), XLabel: strings.Repeat("x ", 200), YLabel: strings.Repeat("y ", 200)},
	} {
		if err := h.Save(dir + "/" + name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files := contents(t, dir)
		picture, err := png.Decode(strings.NewReader(files[name+".png"]))
		if err != nil {
			t.Fatal(err)
		}
		b := picture.Bounds()
		if most := int(largest.Dots(dotsPerInch)); b.Dx() > most || b.Dy() > most {
			t.Errorf("%s is %d by %d", name, b.Dx(), b.Dy())
		}
		for k := range max(b.Dx(), b.Dy()) {
			for _, at := range [][2]int{{k, 0}, {k, b.Max.Y - 1}, {0, k}, {b.Max.X - 1, k}} {
				if r, g, bl, a := picture.At(at[0], at[1]).RGBA(); a > 0 && r+g+bl < 3*0xf000 {
					t.Fatalf("%s: something leaves it at %v of %v", name, at, b)
				}
			}
		}
		if said := strings.Join(svgTexts(t, files[name+".svg"]), " "); strings.Contains(said, "too many cells for their numbers") != (name == "many") {
			t.Errorf("%s says %s", name, said)
		}
		if name == "usual" {
			said := strings.Join(svgTexts(t, files["usual.svg"]), "|")
			for _, want := range []string{"no result", "19.00", "v0", "v4", "what ran", "what is seen", "channel.std (gain)", "devices.count", "test accuracy (%)", "|15|"} {
				if !strings.Contains("|"+said+"|", want) {
					t.Errorf("it does not say %q: %s", want, said)
				}
			}
		}
	}
	again := mapOf(5, 4, "v")
	if err := again.Save(dir + "/again"); err != nil {
		t.Fatal(err)
	}
	if files := contents(t, dir); !bytes.Equal([]byte(files["usual.svg"]), []byte(files["again.svg"])) {
		t.Error("the same numbers give other bytes")
	}
	// Values that are wider than a cell stand upright.
	for value, turned := range map[string]bool{"v": false, strings.Repeat("long ", 30): true} {
		if p, err := mapOf(4, 3, value).plan(); err != nil || p.turned != turned {
			t.Errorf("%.10q: turned %v, %v", value, p.turned, err)
		}
	}
	h := mapOf(2, 2, "")
	h.Cells[1] = h.Cells[1][:1]
	if err := h.Save(dir + "/short"); err == nil {
		t.Error("a row with a cell too few")
	}
	if err := mapOf(1, 1001, "").Save(dir + "/high"); err == nil {
		t.Error("a map of more than a thousand rows")
	}
	if err := (HeatMap{}).Save(dir + "/none"); err == nil {
		t.Error("a map of nothing")
	}
}

// Colours get lighter with the number, so that they are read without colour, and texts stand
// out on them.
func TestHeatMapColours(t *testing.T) {
	p, err := mapOf(2, 2, "").plan()
	if err != nil {
		t.Fatal(err)
	}
	last := -1.0
	for i := range 101 {
		c, err := p.colour(float64(i) / 100)
		if err != nil {
			t.Fatal(err)
		}
		r, g, b, _ := c.RGBA()
		light := (0.2126*float64(r) + 0.7152*float64(g) + 0.0722*float64(b)) / 0xffff
		if light <= last {
			t.Errorf("at %d %% a lightness of %v after %v", i, light, last)
		}
		if dark(c) != (light < 0.5) {
			t.Errorf("at %d %% the text is of the wrong colour", i)
		}
		last = light
	}
}

// Values that would lie over each other are left out, and the axis has labels of its own.
func TestRoomForTicks(t *testing.T) {
	for _, c := range []struct {
		ticks []float64
		log   bool
		room  bool
	}{{[]float64{1, 2, 5, 10, 20}, true, true}, {[]float64{1, 2, 100}, false, false}, {[]float64{0, 1, 1000}, false, false}, {[]float64{3, 1, 2}, false, true}} {
		p := panels{logX: c.log, list: []panel{{series: []Series{{X: c.ticks, Y: c.ticks}}}}, xTicks: c.ticks}
		p.columns, p.tile = panelGrid(1)
		if got := p.roomForTicks(); got != c.room {
			t.Errorf("%v: %v", c.ticks, got)
		}
	}
}

// A curve does not go across a point that there is not.
func TestSpreadCurveBreaks(t *testing.T) {
	nan := math.NaN()
	all := SpreadCurve("n", 1, false, []float64{1, 2, 3, 4, 5}, []float64{1, nan, 1, 2, 0}, []float64{2, nan, 3, 4, math.Inf(1)}, []float64{3, nan, 5, 6, 9})
	var texts []string
	for _, s := range all {
		texts = append(texts, fmt.Sprint(s.Name, s.Style, s.X, s.Y, s.YLow, s.YHigh))
	}
	if want := "3 [1] [] [1] [3]|n2 [1] [2] [] []|3 [3 4] [] [1 2] [5 6]|2 [3 4] [3 4] [] []"; strings.Join(texts, "|") != want {
		t.Errorf("%s instead of %s", strings.Join(texts, "|"), want)
	}
	if all := SpreadCurve("n", 1, false, []float64{1}, []float64{nan}, []float64{nan}, []float64{nan}); len(all) != 1 || all[0].Name != "n" {
		t.Errorf("of nothing: %+v", all)
	}
}

// A name of which no plot has a point is no promise of one.
func TestMultiplesSayWhatIsEmpty(t *testing.T) {
	dir := t.TempDir()
	nothing := []Series{{Name: "nothing", X: []float64{1}, Y: []float64{math.Inf(1)}}}
	later := func(y float64) []Series { return []Series{{Name: "later", X: []float64{1}, Y: []float64{y}}} }
	m := Multiples{List: []Panel{{Groups: [][]Series{nothing, later(math.NaN())}}, {Groups: [][]Series{nothing, later(2)}}}}
	if err := m.Save(dir + "/m"); err != nil {
		t.Fatal(err)
	}
	said := "|" + strings.Join(svgTexts(t, contents(t, dir)["m.svg"]), "|") + "|"
	if !strings.Contains(said, "|nothing (no points)|") || !strings.Contains(said, "|later|") {
		t.Errorf("the legend says %s", said)
	}
}

// Lines that coincide are told apart although their bands differ, and each keeps its band.
func TestToldOfLinesAlone(t *testing.T) {
	x := []float64{1, 2, 3}
	list := func(high float64) []Series {
		return SpreadCurve("n", 0, false, x, []float64{0, 0, 0}, x, []float64{high, high, high})
	}
	got := told([][]Series{list(9), list(20)}, false)
	if len(got[0]) != 2 || len(got[1]) != 2 || got[0][1].Width <= lineWidth || got[1][1].Width > lineWidth {
		t.Errorf("%+v", got)
	}
	if got := told([][]Series{list(9), list(9)}, false); len(got[1]) != 1 {
		t.Errorf("two bands that are one: %+v", got)
	}
}
