package chart

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/vg"
)

// Histogram is a figure of the density of values, with a curve to compare.
type Histogram struct {
	Title, XLabel string
	Note          string
	Name          string    // of the values, in the legend
	Values        []float64 // NaN and infinities are left out

	// Lo and Hi bound what is drawn. Values outside still count in the density,
	// and the legend says how many there are. Lo >= Hi: as the values ask.
	Lo, Hi float64

	// Reference, if not nil, is a density drawn over that of the values.
	Reference     func(x float64) float64
	ReferenceName string

	Width, Height vg.Length // as in Figure
}

// Save writes the figure to base.svg and base.png, as Figure.Save does.
func (h Histogram) Save(base string) error { return h.figure().Save(base) }

// figure returns the histogram as a figure: a band whose upper edge has steps.
func (h Histogram) figure() Figure {
	f := Figure{Title: h.Title, Note: h.Note, XLabel: h.XLabel, YLabel: "probability density", Width: h.Width, Height: h.Height}
	values := finite(h.Values)
	if len(values) == 0 {
		return f
	}
	slices.Sort(values)
	lo, hi := h.bounds(values)
	inside := values[first(values, lo):]
	inside = inside[:first(inside, math.Nextafter(hi, math.Inf(1)))]

	name := h.Name
	if outside := len(values) - len(inside); outside > 0 {
		name += fmt.Sprintf(" (%d of %d beyond this range)", outside, len(values))
	}
	x, y := steps(inside, len(values), lo, hi)
	f.Series = []Series{
		{Name: name, X: x, YLow: make([]float64, len(x)), YHigh: y, Style: Band, Color: Blue},
		{X: x, Y: y, Color: Blue, Width: 0.7},
	}
	if h.Reference != nil {
		f.Series = append(f.Series, curve(h.Reference, h.ReferenceName, lo, hi))
	}
	return f
}

func finite(values []float64) []float64 {
	var kept []float64
	for _, v := range values {
		if v, ok := drawable(v, false); ok {
			kept = append(kept, v)
		}
	}
	return kept
}

// first returns the index of the first of the sorted values that is >= v.
func first(values []float64, v float64) int {
	i, _ := slices.BinarySearch(values, v)
	return i
}

// bounds returns the range to draw, for sorted values.
func (h Histogram) bounds(values []float64) (lo, hi float64) {
	if h.Lo < h.Hi {
		return h.Lo, h.Hi
	}
	lo, hi = values[0], values[len(values)-1]
	if margin := math.Abs(lo) * 1e-9; hi-lo <= margin {
		half := max(0.5*math.Abs(lo), 1e-12)
		if lo == 0 {
			half = 0.5
		}
		return lo - half, hi + half
	}
	return lo, hi
}

// steps returns the outline of the histogram of sorted values, all from lo to hi,
// as a share of total.
func steps(values []float64, total int, lo, hi float64) (x, y []float64) {
	edges := floats.Span(make([]float64, binCount(values, lo, hi)+1), lo, hi)
	bins := slices.Clone(edges)
	bins[len(bins)-1] = math.Nextafter(hi, math.Inf(1)) // the last one has its end
	width := (hi - lo) / float64(len(edges)-1)
	x, y = append(x, lo), append(y, 0)
	for i, n := range stat.Histogram(nil, bins, values, nil) {
		density := n / float64(total) / width
		x = append(x, edges[i], edges[i+1])
		y = append(y, density, density)
	}
	return append(x, hi), append(y, 0)
}

// binCount is the rule of Freedman and Diaconis, within limits that keep the
// steps to be seen: bins of width 2 IQR n^(-1/3).
func binCount(values []float64, lo, hi float64) int {
	const fewest, most = 8, 80
	if len(values) == 0 {
		return fewest
	}
	width := 2 * (Quantile(0.75, values) - Quantile(0.25, values)) / math.Cbrt(float64(len(values)))
	n := math.Ceil((hi - lo) / width)
	if !(n <= most) { // NaN and infinite too, where half of the values are one
		n = most
	}
	n = min(n, float64(len(values))) // a bin each, of few values, would be a spike each
	return max(fewest, int(n))
}

// curve samples a density from lo to hi.
func curve(density func(float64) float64, name string, lo, hi float64) Series {
	const samples = 400
	s := Series{Name: name, Color: Vermillion}
	for i := range samples + 1 {
		x := lo + (hi-lo)*float64(i)/samples
		s.X = append(s.X, x)
		s.Y = append(s.Y, density(x))
	}
	return s
}
