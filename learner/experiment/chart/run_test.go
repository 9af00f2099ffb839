package chart

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/learner/experiment/runfolder"
)

// testRun returns n rounds such as a run has: accuracy every tenth round, the
// seventh skipped, noise of deviation std.
func testRun(seed uint64, n int, std float64) []runfolder.Row {
	r := rand.New(rand.NewPCG(seed, 0))
	var rows []runfolder.Row
	for k := 1; k <= n; k++ {
		row := runfolder.Row{
			Round: k, TrainLoss: math.Exp(-float64(k)/50) + 0.1*r.Float64(), TestAccuracy: math.NaN(),
			MIdeal: r.NormFloat64(), Eps: std * r.NormFloat64(), EpsStdPredicted: std, Attempts: 1,
		}
		row.M = row.MIdeal + row.Eps
		if k%10 == 0 {
			row.TestAccuracy = 1 - row.TrainLoss/3
		}
		if k == 7 {
			row.Skipped, row.M, row.Eps = true, math.NaN(), math.NaN()
		}
		rows = append(rows, row)
	}
	return rows
}

func wantPlots(t *testing.T, dir string, paths []string, names ...string) {
	t.Helper()
	var want []string
	for _, name := range names {
		base := filepath.Join(dir, name)
		want = append(want, base+".svg", base+".png")
		wantFigure(t, base)
	}
	if !slices.Equal(paths, want) {
		t.Errorf("plots are %v, want %v", paths, want)
	}
	if got := len(contents(t, dir)); got != len(want) {
		t.Errorf("%d files, want %d", got, len(want))
	}
}

// Where devices are elsewhere, the server has no loss, and without a test set no accuracy.
func TestRunPlotsOfAServer(t *testing.T) {
	dir, rows := t.TempDir(), testRun(1, 100, 1e-8)
	for i := range rows {
		nan := math.NaN()
		rows[i].Present = 10
		rows[i].TrainLoss, rows[i].TestAccuracy, rows[i].MIdeal, rows[i].Eps, rows[i].EpsStdPredicted = nan, nan, nan, nan, nan
	}
	paths, err := RunPlots(dir, "what ran", rows)
	if err != nil {
		t.Fatal(err)
	}
	wantPlots(t, dir, paths, "loss", "accuracy", "decoded-noise", "message")
	if note := runLossFigure(rows).Note; !strings.Contains(note, "keep their losses to themselves") || strings.Contains(note, "no finite") {
		t.Errorf("the plot of losses says %q", note)
	}
}

func TestRunPlots(t *testing.T) {
	dir := t.TempDir()
	paths, err := RunPlots(dir, "what ran", testRun(1, 100, 1e-8))
	if err != nil {
		t.Fatal(err)
	}
	wantPlots(t, dir, paths, "loss", "accuracy", "decoded-noise", "message", "decoded-noise-histogram")
}

func TestRunPlotsWithoutPrediction(t *testing.T) {
	for name, rows := range map[string][]runfolder.Row{"none": nil, "plain": testRun(1, 20, 0), "one": testRun(1, 1, 0)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			paths, err := RunPlots(dir, "what ran", rows)
			if err != nil {
				t.Fatal(err)
			}
			wantPlots(t, dir, paths, "loss", "accuracy", "decoded-noise", "message")
			if text := contents(t, dir)["decoded-noise.svg"]; strings.Contains(text, "predicted") {
				t.Error("bands are named that are not there")
			}
		})
	}
}

func TestPlotErrorNamesTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "absent")
	for _, draw := range []func() ([]string, error){
		func() ([]string, error) { return RunPlots(dir, "what ran", nil) },
		func() ([]string, error) {
			plots, err := ComparePlots(dir, "what ran", nil)
			return files(dir, plots), err
		},
	} {
		paths, err := draw()
		if err == nil || !strings.Contains(err.Error(), dir) || len(paths) != 0 {
			t.Errorf("gave %v, %v", paths, err)
		}
	}
}

func TestLossScale(t *testing.T) {
	for _, c := range []struct {
		y    []float64
		want bool
	}{
		{[]float64{0.7, 0.1}, false}, {[]float64{0.7, 0.001}, true}, {[]float64{0.5, 1e14}, true},
		{[]float64{-1, 1000, 1}, false}, {[]float64{0, 1}, false}, {nil, false},
		{[]float64{0.5, math.Inf(1)}, false},
	} {
		if got := lossFigure([]Series{line(c.y...)}).LogY; got != c.want {
			t.Errorf("%v: logarithmic is %v, want %v", c.y, got, c.want)
		}
	}
}

func TestQuartiles(t *testing.T) {
	// By R: quantile(x, c(.25, .5, .75)), type 7.
	for _, c := range []struct {
		x    []float64
		want [3]float64
	}{
		{[]float64{5}, [3]float64{5, 5, 5}},
		{[]float64{2, 1}, [3]float64{1.25, 1.5, 1.75}},
		{[]float64{3, 1, 2}, [3]float64{1.5, 2, 2.5}},
		{[]float64{4, 3, 2, 1}, [3]float64{1.75, 2.5, 3.25}},
		{[]float64{1, math.NaN(), 3}, [3]float64{1.5, 2, 2.5}},
		{[]float64{2, math.Inf(1), 1}, [3]float64{1.5, 2, math.Inf(1)}}, // nothing times infinity is no number
		{[]float64{math.Inf(1), math.Inf(1), 1}, [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}},
	} {
		lower, median, upper := Quartiles(c.x)
		if got := [3]float64{lower, median, upper}; got != c.want {
			t.Errorf("quartiles of %v are %v, want %v", c.x, got, c.want)
		}
	}
	for _, v := range []float64{Quantile(0.5, nil), Quantile(-0.1, []float64{1}), Quantile(math.NaN(), []float64{1})} {
		if !math.IsNaN(v) {
			t.Errorf("a quantile that is not there is %g", v)
		}
	}
}

func TestHistogramIsADensity(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var values []float64
	for range 1000 {
		values = append(values, r.NormFloat64())
	}
	values = append(values, math.NaN(), math.Inf(1), 1e6, 4)
	f := noiseHistogram(values).figure()
	area := 0.0
	steps := f.Series[0]
	for i := range len(steps.X) - 1 {
		area += (steps.X[i+1] - steps.X[i]) * steps.YHigh[i+1]
	}
	if want := 1001.0 / 1002; math.Abs(area-want) > 1e-9 {
		t.Errorf("the area is %g, want %g: one of 1002 finite values is out of range", area, want)
	}
	if steps.Name != "decoded noise (1 of 1002 beyond this range)" {
		t.Errorf("the legend says %q", steps.Name)
	}
	if x := steps.X; x[0] != -6 || x[len(x)-1] != 6 {
		t.Errorf("the range is %g to %g, want -6 to 6", x[0], x[len(x)-1])
	}
}

func TestOddHistograms(t *testing.T) {
	for name, values := range map[string][]float64{
		"empty": nil, "nan": {math.NaN()}, "one": {3}, "zeros": {0, 0, 0}, "tiny": {1e-15, 2e-15, 3e-15},
		"huge": {-1e300, 1e300}, "outlier": {1, 1, 1, 1, 1, 1e12}, "subnormal": {5e-324, 0},
	} {
		svgOf(t, Histogram{Values: values, Reference: distuv.UnitNormal.Prob}.figure())
		svgOf(t, Histogram{Values: values, Lo: 100, Hi: 101}.figure())
		if t.Failed() {
			t.Fatalf("for the values of %s", name)
		}
	}
}

func TestHistogramSave(t *testing.T) {
	base := filepath.Join(t.TempDir(), "h")
	if err := (Histogram{Name: "noise", Values: []float64{1, 2, 2, 3}}).Save(base); err != nil {
		t.Fatal(err)
	}
	wantFigure(t, base)
}
