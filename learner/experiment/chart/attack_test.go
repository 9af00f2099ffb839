package chart

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// marks returns the centres of what is filled in a colour, in the order drawn.
func marks(t *testing.T, a attacks, colour Color) (points []vg.Point) {
	t.Helper()
	w, h := a.size()
	var r recorder.Canvas
	if err := a.draw(draw.NewCanvas(&r, w, h)); err != nil {
		t.Fatal(err)
	}
	current := false
	for _, action := range r.Actions {
		switch action := action.(type) {
		case *recorder.SetColor:
			current = action.Color == colour.rgb(0)
		case *recorder.Fill:
			if current && len(action.Path) > 1 && action.Path[1].Type == vg.ArcComp {
				points = append(points, action.Path[1].Pos)
			}
		case *recorder.Stroke:
			if current && len(action.Path) > 1 { // a diamond's outline begins at its left
				points = append(points, vg.Point{X: action.Path[0].Pos.X + 3.6, Y: action.Path[0].Pos.Y})
			}
		}
	}
	return points
}

// Each attack has its dot and its control's diamond, twice, in its line, to the right by
// what was recovered.
func TestAttackMarks(t *testing.T) {
	a := attacks{title: "t", list: []Attack{
		{Name: "a", Target: "x", Exact: 1, Correlation: 1, ControlExact: 0, ControlCorrelation: 0},
		{Name: "b", Target: "y", Exact: 0.25, Correlation: -0.5, ControlExact: 0.75, ControlCorrelation: 0.5},
		{Name: "c", Target: "z", Exact: math.NaN(), Correlation: math.Inf(1), ControlExact: 0.5},
	}}
	dots := marks(t, a, Vermillion)[1:] // behind the legend's
	diamonds := marks(t, a, Blue)[1:]
	if len(dots) != 4 || len(diamonds) != 6 {
		t.Fatalf("%d dots, %d diamonds", len(dots), len(diamonds))
	}
	near := func(a, b vg.Length) bool { return math.Abs(float64(a-b)) < 1e-6 }
	if !near(dots[0].Y, diamonds[0].Y) || !near(dots[1].Y, diamonds[1].Y) || !(dots[0].Y > dots[1].Y) || !near(dots[0].Y, dots[2].Y) {
		t.Errorf("lines are at %v and %v", dots, diamonds)
	}
	// 100 % and 0 %, of which a quarter and three quarters divide the way.
	whole := dots[0].X - diamonds[0].X
	if !near(dots[1].X-diamonds[0].X, whole/4) || !near(diamonds[1].X-diamonds[0].X, 3*whole/4) || whole <= 0 {
		t.Errorf("shares are at %v and %v", dots, diamonds)
	}
	unit := dots[2].X - diamonds[3].X // correlation 1 and 0
	if !near(dots[3].X-diamonds[3].X, -unit/2) || !near(diamonds[4].X-diamonds[3].X, unit/2) || unit <= 0 {
		t.Errorf("correlations are at %v and %v", dots, diamonds)
	}
	if dots[3].X <= dots[0].X {
		t.Error("a correlation below 0 is in the column of shares")
	}
}

// Of no attack, and of a name that no page is wide enough for, a picture is drawn.
func TestAttackPlot(t *testing.T) {
	for _, list := range [][]Attack{nil, {{Name: strings.Repeat("a long name ", 50)}}} {
		dir := t.TempDir()
		paths, err := AttackPlot(dir, "what ran", list)
		if err != nil || len(paths) != 2 {
			t.Fatal(paths, err)
		}
		wantSVG(t, []byte(contents(t, dir)["attacks.svg"]))
		if texts := strings.Join(svgTexts(t, contents(t, dir)["attacks.svg"]), " "); !strings.Contains(texts, "what ran") || !strings.Contains(texts, "A dot is what the attack recovered") {
			t.Errorf("the figure says %s", texts)
		}
		if w, _ := (attacks{list: list}).size(); w > 30*vg.Centimeter {
			t.Errorf("it is %.1f cm wide", w/vg.Centimeter)
		}
	}
}
