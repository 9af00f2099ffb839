package chart

import (
	"image/png"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"ringwave/learner/experiment/runfolder"
)

// Texts around a figure are whole, in lines that fit, and take their own room.
func TestTexts(t *testing.T) {
	style := textStyle(noteSize, text.XLeft, text.YTop)
	long := strings.TrimSpace(strings.Repeat("some words ", 40))
	l := wrap(long, style, 10*vg.Centimeter, 100)
	if len(l.list) < 3 || strings.Join(l.list, " ") != long {
		t.Errorf("wrapped to %q", l.list)
	}
	for _, line := range l.list {
		if style.Width(line) > 10*vg.Centimeter {
			t.Errorf("%q is wider than 10 cm", line)
		}
	}
	if l := wrap(long, style, 10*vg.Centimeter, 2); len(l.list) != 2 || !strings.HasSuffix(l.list[1], "…") {
		t.Errorf("cut to %q", l.list)
	}
	if l := wrap(strings.Repeat("x", 500), style, 10*vg.Centimeter, 6); len(l.list) != 1 || style.Width(l.list[0]) > 10*vg.Centimeter {
		t.Errorf("a word is cut to %q", l.list)
	}
	if l := wrap(" ", style, 10*vg.Centimeter, 6); l.height() != 0 {
		t.Errorf("nothing takes %v", l.height())
	}
}

// A label is no longer than its axis: smaller, and cut in the end.
func TestFitted(t *testing.T) {
	for _, c := range []struct {
		words int
		size  float64 // of the font, at least and at most
		cut   bool
	}{{2, float64(labelSize), false}, {11, 9.5, false}, {40, float64(noteSize), true}} {
		style := textStyle(labelSize, text.XCenter, text.YTop)
		whole := strings.TrimSpace(strings.Repeat("label ", c.words))
		got := fitted(&style, whole, 250)
		if w := style.Width(got); w > 251 || (got != whole) != c.cut || math.Abs(float64(style.Font.Size)-c.size) > 1 {
			t.Errorf("%d words: %q, %v wide in size %v", c.words, got, w, style.Font.Size)
		}
	}
}

// What tick labels leave out is said where a panel has axes of its own, and names in many
// rows take no room from the data.
func TestNothingIsLeftUnsaid(t *testing.T) {
	dir := t.TempDir()
	p := panels{own: true, list: []panel{{title: "t", series: []Series{{Style: Points, X: []float64{1, 2}, Y: []float64{7 - 1e-9, 7 + 1e-9}}}}, {}}}
	if err := p.save(dir + "/p"); err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(svgTexts(t, contents(t, dir)["p.svg"]), " "); !strings.Contains(said, "[y − 7] t") {
		t.Errorf("the picture says %s", said)
	}
	if x, y := p.axes(nil); len(x.ticks)+len(y.ticks) > 0 {
		t.Error("there are ticks along nothing")
	}
	height := func(name string) int {
		var f Figure
		for range 6 {
			s := line(1, 2)
			s.Name = name
			f.Series = append(f.Series, s)
		}
		if err := f.Save(dir + "/f"); err != nil {
			t.Fatal(err)
		}
		c, err := png.DecodeConfig(strings.NewReader(contents(t, dir)["f.png"]))
		if err != nil {
			t.Fatal(err)
		}
		return c.Height
	}
	rows := 3 * rowHeight // of six, beyond three
	if more := height(strings.Repeat("n", 50)) - height(""); math.Abs(float64(more)-rows.Dots(dotsPerInch)) > 1 {
		t.Errorf("six names make a picture %d pixels higher, want %v", more, rows.Dots(dotsPerInch))
	}
}

// Counts have ticks at whole numbers, whatever the axis; what has no data has none.
func TestWholeTicks(t *testing.T) {
	whole := func(a axis) {
		t.Helper()
		for _, tick := range a.ticks {
			if math.Abs(tick.Value-math.Round(tick.Value)) > 1e-9 || strings.Contains(tick.Label, ".") {
				t.Errorf("%g to %g: a tick at %g, labelled %s", a.lo, a.hi, tick.Value, tick.Label)
			}
		}
	}
	size := vg.Point{X: DefaultWidth, Y: DefaultHeight}
	for _, attempts := range [][]int{{1, 1, 1}, {1, 2, 1}, {0, 1, 4}} {
		var rows []runfolder.Row
		for k, n := range attempts {
			rows = append(rows, runfolder.Row{Round: k + 1, Attempts: n, Link: &runfolder.LinkRow{FramesRepeated: float64(k % 2)}})
		}
		_, _, y := retriesFigure(rows).traces(size)
		whole(y)
	}
	for _, devices := range [][]float64{{1, 2}, {3, 4, 5}, {100, 120}} {
		_, x, _ := Figure{LogX: true, LogY: true, Series: []Series{{X: devices, Y: devices}}}.traces(size)
		whole(x)
	}
	if _, x, y := lossFigure(nil).traces(size); len(x.ticks)+len(y.ticks) > 0 {
		t.Error("there are ticks along nothing")
	}
}

// Every figure of a run says what ran, and what its symbols are.
func TestTitlesAndNotes(t *testing.T) {
	dir := t.TempDir()
	rows := testRun(1, 250, 1e-8)
	rows[3].TrainLoss, rows[6].TrainLoss, rows[4].Eps, rows[5].M = math.Inf(1), math.Inf(1), math.Inf(-1), math.NaN()
	if _, err := RunPlots(dir, "what <ran>", rows); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"loss.svg":                    {"running median over 51 rounds", "each round", "2 of 250 rounds have no finite loss"},
		"accuracy.svg":                nil,
		"message.svg":                 {"M is what the server decodes", "1 of 250 rounds were not read and have no M", "1 of 250 rounds have no finite M"},
		"decoded-noise.svg":           {"ε is the decoded message M less its noiseless value", "A predicted deviation", "1 of 250 rounds have no finite ε"},
		"decoded-noise-histogram.svg": {"ε is the decoded message M less"},
	} {
		// Lines of a note are elements of their own.
		picture := strings.Join(svgTexts(t, contents(t, dir)[name]), " ")
		for _, want := range append(wants, "what <ran>") {
			if !strings.Contains(picture, want) {
				t.Errorf("%s does not say %q: %s", name, want, picture)
			}
		}
	}
	// Of no round read: said, and no band or value named that is not there.
	for k := range rows {
		nan := math.NaN()
		rows[k].Skipped, rows[k].M, rows[k].MIdeal, rows[k].Eps, rows[k].EpsStdPredicted = true, nan, nan, nan, nan
	}
	if note := messageFigure(rows).Note; !strings.HasSuffix(note, " 250 of 250 rounds were not read and have no M.") {
		t.Errorf("the note is %q", note)
	}
	if note := noiseFigure(rows).Note; strings.Contains(note, "predicted") {
		t.Errorf("the note is %q", note)
	}
}

// A line of very many points is drawn in pieces that meet, and through all points.
func TestLinesInPieces(t *testing.T) {
	count := func(n int, dashed bool) (paths, points int) {
		s := Series{Color: Blue, Dashed: dashed}
		for k := range n {
			s.X, s.Y = append(s.X, float64(k)), append(s.Y, float64(k%7))
		}
		svg := svgOf(t, Figure{Series: []Series{s}})
		for _, path := range strings.Split(svg, "<path ")[1:] {
			if path, _, _ = strings.Cut(path, "/>"); strings.Contains(path, "#0072B2") || strings.Contains(path, "#0072b2") {
				paths++
				points += strings.Count(path, "L") + strings.Count(path, "M")
			}
		}
		return paths, points
	}
	for _, n := range []int{2, 64, 65, 66, 129, 130, 1000} {
		pieces := max(1, (n-2)/64+1)
		if paths, points := count(n, false); paths != pieces || points != n+pieces-1 {
			t.Errorf("%d points are drawn as %d of %d, want %d of %d", n, paths, points, pieces, n+pieces-1)
		}
	}
	if paths, _ := count(1000, true); paths != 1 {
		t.Errorf("a dashed line has %d pieces, and dashes that begin anew", paths)
	}
}

// A hundred devices, and as many groups, take no more room than a page, and nothing is
// left out without a word.
func TestManyAreBounded(t *testing.T) {
	many := someLinks(100)
	for _, p := range []panels{many.clouds(), many.histograms(), many.strips("|gain|", magnitudes), many.allan(), many.noise()} {
		w, h := p.measure()
		if w > 30*vg.Centimeter || h > 32*vg.Centimeter {
			t.Errorf("%s is %.1f by %.1f cm", p.xLabel, w/vg.Centimeter, h/vg.Centimeter)
		}
		if rows := p.legendRows(w); len(rows) > 4 {
			t.Errorf("%s has %d rows of names", p.xLabel, len(rows))
		}
	}
	var points []CurvePoint
	for n := range 300 {
		points = append(points, CurvePoint{Devices: n + 1, Sigma: float64(n % 20)})
	}
	p := curves{points: points}.againstSNR()
	p.bound("values")
	if w, h := p.measure(); h > 32*vg.Centimeter || len(p.legendRows(w)) > 8 || len(p.list) != 12 {
		t.Errorf("curves of 300 N at 20 sigma are %.1f cm high, with %d rows of names", h/vg.Centimeter, len(p.legendRows(w)))
	}
	lines := many.autocorrelation().Series
	if lines[0].Name != "88 others" || lines[0].Color != Gray || lines[1].Name != "" || lines[88].Name != "device 1" {
		t.Errorf("behind are %q, %q and then %q", lines[0].Name, lines[1].Name, lines[88].Name)
	}
	if p := (CalibrationView{Devices: many.Devices[:12]}).allan(); strings.Contains(p.list[0].series[0].Name, "others") {
		t.Error("twelve devices are not told apart")
	}
}
