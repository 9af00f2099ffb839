package chart

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment/runfolder"
)

func files(dir string, plots []Plot) []string {
	var paths []string
	for _, p := range plots {
		paths = append(paths, p.Files(dir)...)
	}
	return paths
}

func TestComparePlots(t *testing.T) {
	var runs []NamedRun
	for seed := range uint64(3) {
		runs = append(runs, NamedRun{"encrypted", testRun(seed, 40, 1e-8)}, NamedRun{"plain", testRun(seed, 40, 0)})
	}
	runs = append(runs, NamedRun{"single", testRun(9, 30, 1e-6)})
	dir := t.TempDir()
	plots, err := ComparePlots(dir, "what ran", runs)
	if err != nil {
		t.Fatal(err)
	}
	wantPlots(t, dir, files(dir, plots), "compare-loss", "compare-accuracy", "compare-message", "compare-message-error")
	if text := contents(t, dir)["compare-message-error.svg"]; !strings.Contains(text, ">plain (zero throughout)<") {
		t.Error("the runs without any error are not named")
	}
	for k, want := range [][]string{
		{"running median over 9 rounds", "medians over seeds", "Thin lines are single runs", "coincide"},
		{"medians over seeds"}, {"noiseless", "only one is drawn"}, {"running median over 9 rounds"},
	} {
		for _, w := range want {
			if !strings.Contains(plots[k].Caption, w) {
				t.Errorf("the caption of %s does not say %q: %s", plots[k].Name, w, plots[k].Caption)
			}
		}
	}
	if strings.Contains(plots[1].Caption, "running median") {
		t.Error("the accuracy is said to be smoothed")
	}
	again := t.TempDir()
	if _, err := ComparePlots(again, "what ran", runs); err != nil || !maps.Equal(contents(t, dir), contents(t, again)) {
		t.Errorf("the same runs give other bytes, or %v", err)
	}
}

// Whatever runs do, something is drawn.
func TestOddComparisons(t *testing.T) {
	diverged := testRun(1, 30, 1)
	for k := range diverged {
		diverged[k].TrainLoss = math.Pow(10, float64(20*k))
		diverged[k].M *= math.Pow(10, float64(k))
	}
	long := strings.Repeat("a long label, ", 30)
	for name, runs := range map[string][]NamedRun{
		"none": nil, "no rows": {{"a", nil}, {"b", nil}}, "one round": {{"a", testRun(1, 1, 0)}},
		"diverged": {{"a", diverged}, {"b", testRun(1, 30, 1e-9)}},
		"lengths":  {{"a", testRun(1, 1000, 1)}, {"b", testRun(1, 20, 1)}},
		"labels":   {{long + "1", testRun(1, 30, 1)}, {long + "2", testRun(2, 30, 1)}},
		"many": func() (runs []NamedRun) {
			for k := range 9 {
				for seed := range uint64(3) {
					runs = append(runs, NamedRun{string(rune('a' + k)), testRun(seed, 20, float64(k))})
				}
			}
			return runs
		}(),
	} {
		dir := t.TempDir()
		plots, err := ComparePlots(dir, "what ran", runs)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantPlots(t, dir, files(dir, plots), "compare-loss", "compare-accuracy", "compare-message", "compare-message-error")
	}
}

func TestGroupSeries(t *testing.T) {
	var g runGroup
	for _, loss := range [][]float64{{1, 9}, {3, math.NaN()}, {2, 5, 4}, {10}} {
		var rows []runfolder.Row
		for i, v := range loss {
			rows = append(rows, runfolder.Row{Round: i + 1, TrainLoss: v})
		}
		g.runs = append(g.runs, rows)
	}
	s := g.series(0, trainLoss, 1, false)
	if len(s) != 2 || s[0].Style != Band || s[1].Style != Line {
		t.Fatalf("series are %+v", s)
	}
	for name, c := range map[string][2][]float64{
		"rounds":         {s[1].X, {1, 2, 3}},
		"medians":        {s[1].Y, {2.5, 7, 4}},
		"lower quartile": {s[0].YLow, {1.75, 6, 4}},
		"upper quartile": {s[0].YHigh, {4.75, 8, 4}},
	} {
		if !slices.Equal(c[0], c[1]) {
			t.Errorf("%s are %v, want %v", name, c[0], c[1])
		}
	}
	g.label, g.runs = "two", g.runs[:2]
	if s := g.series(0, trainLoss, 1, false); len(s) != 2 || s[0].Style != Line || s[1].Style != Line || s[0].Name != "two" || s[1].Name != "" || s[0].Color != s[1].Color {
		t.Errorf("two runs are not two thin lines of one name: %+v", s)
	}
}

// Against the definition, by another way to a median.
func TestRunningMedian(t *testing.T) {
	if got := runningMedian([]float64{5, 1, 9, 2, 7, 3}, 3); !slices.Equal(got, []float64{5, 5, 2, 7, 3, 3}) {
		t.Errorf("medians of three are %v", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 200)
	for k := range values {
		values[k] = r.NormFloat64()
	}
	const window = 11
	for k, m := range runningMedian(values, window) {
		half := min(window/2, k, len(values)-1-k)
		below := 0
		for _, v := range values[k-half : k+half+1] {
			if v < m {
				below++
			}
		}
		if below != half {
			t.Fatalf("of the %d values around %d, %d are below the median", 2*half+1, k, below)
		}
	}
	for rounds, want := range map[int]int{0: 1, 9: 1, 10: 3, 60: 13, 400: 51, 7500: 51} {
		if got := smoothing(rounds); got != want {
			t.Errorf("%d rounds are smoothed over %d, want %d", rounds, got, want)
		}
	}
}

// Lines that lie on each other all show; others stay as they are.
func TestTold(t *testing.T) {
	band := Series{Style: Band, X: []float64{0, 1}, YLow: []float64{0, 1}, YHigh: []float64{1, 2}}
	of := func(y ...float64) []Series { return []Series{band, line(y...)} }
	lists := told([][]Series{of(0.5, 1.5), of(0.5, 1.5001), of(0.5, 1)}, false)
	if w := lists[0][1].Width; w <= lineWidth {
		t.Errorf("the line that another covers is %v wide", w)
	}
	if len(lists[1]) != 1 || lists[1][0].Width > lineWidth {
		t.Errorf("the covering line is %+v, want it alone", lists[1])
	}
	if len(lists[2]) != 2 || lists[2][1].Width != 0 {
		t.Errorf("a line of its own is %+v", lists[2])
	}
}

// Of a cloud each field of the grid keeps one point, and what is alone stays.
func TestCloud(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := Series{Style: Points}
	for range 5000 {
		x := r.NormFloat64()
		s.X, s.Y = append(s.X, x), append(s.Y, x+r.NormFloat64())
	}
	s.X, s.Y = append(s.X, 2, math.NaN(), 0), append(s.Y, -40, 1, math.Inf(1))
	c := newCloud(s)
	if len(c.X) != 5001 {
		t.Fatalf("%d points can be drawn, want 5001", len(c.X))
	}
	field := func(x, y float64) [2]int {
		return [2]int{int((x - c.x.lo) / (c.x.hi - c.x.lo) * cells), int((y - c.y.lo) / (c.y.hi - c.y.lo) * cells)}
	}
	want := map[[2]int]bool{}
	for k := range c.X {
		want[field(c.X[k], c.Y[k])] = true
	}
	thin := c.thinned()
	got := map[[2]int]bool{}
	for k := range thin.X {
		got[field(thin.X[k], thin.Y[k])] = true
	}
	if len(thin.X) != len(want) || !maps.Equal(got, want) {
		t.Errorf("%d points in %d fields, want one in each of %d", len(thin.X), len(got), len(want))
	}
	if !slices.Contains(thin.Y, -40) {
		t.Error("the outlier is lost")
	}
}

func TestAxesOfClouds(t *testing.T) {
	small, large := newCloud(Series{X: []float64{-1, 1}, Y: []float64{-1, 1}}), newCloud(Series{X: []float64{-1, 1}, Y: []float64{-1e9, 1}})
	if !unlike([]cloud{small, large}) || unlike([]cloud{small, small, newCloud(Series{})}) {
		t.Error("panels have axes of their own where they need none, or not where they do")
	}
	both := []cloud{small, large}
	share(both)
	if both[0].y != both[1].y || both[0].y.lo != -1e9 || both[0].y.hi != 1 {
		t.Errorf("shared extents are %+v", both)
	}
}

func TestManyLengths(t *testing.T) {
	of := func(lengths ...int) bool {
		g := runGroup{}
		for _, n := range lengths {
			g.runs = append(g.runs, make([]runfolder.Row, n))
		}
		return comparison{groups: []runGroup{g}}.manyLengths()
	}
	if of(400) || of(400, 41) || !of(400, 40) || of() || of(0) {
		t.Error("a logarithmic axis where none is asked for, or none where one is")
	}
}
