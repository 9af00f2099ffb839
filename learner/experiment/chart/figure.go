// Package chart draws figures as good as a paper's.
//
// It takes in series of numbers, or the rows of one or of several runs, and
// gives each figure twice: as SVG, to print, and as PNG, to look at. The same
// input returns the same bytes. It copes with what runs produce: missing numbers,
// infinities, a single point, ranges of 1e-12. Of runs it knows the columns of
// their metrics, not how any of them came about.
package chart

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot/vg"
)

// The size of a figure that names none, and the resolution of every PNG.
const (
	DefaultWidth  = 16 * vg.Centimeter
	DefaultHeight = 10 * vg.Centimeter

	dotsPerInch = 200
)

// Sizes that a figure may have on either side.
const (
	smallest = 5 * vg.Centimeter
	largest  = 100 * vg.Centimeter
)

// Style is how a series is drawn.
type Style int

const (
	Line       Style = iota // points joined in the order given
	Points                  // a dot each
	LinePoints              // both
	Band                    // the area from YLow to YHigh, pale, below all else
)

// Color is an entry of the palette of Okabe and Ito, which readers with any
// kind of colour vision can tell apart.
type Color int

const (
	Auto Color = iota // the next of those below, by the series' position
	Blue
	Vermillion
	Green
	Purple
	Orange
	Sky
	Black
	Gray // of what stands behind; no series gets it by its position
)

// Series is one set of points. A point with a coordinate that is NaN, infinite,
// or beyond 1e300 in magnitude is left out; magnitudes below 1e-300 are drawn
// as zero; on a logarithmic axis what is not positive is left out, save that a
// band may reach down to the edge.
type Series struct {
	Name        string    // in the legend; empty: not in the legend
	X, Y        []float64 // of one length; Y is not used by a Band
	YLow, YHigh []float64 // of X's length; only used by a Band
	Style       Style
	Dashed      bool
	Color       Color
	Faint       bool      // a Band paler than others, where many overlap
	Width       vg.Length // of the line; 0 means 1.2 pt
}

// Figure is one picture. Texts are plain; labels are in one line each, and Title, above
// all else, and Note, below, which explains what a label has no room for, in as many as
// they take.
type Figure struct {
	Title, XLabel, YLabel, Note string
	LogX, LogY                  bool
	WholeY                      bool // y are counts: ticks at whole numbers only, where all are whole
	Series                      []Series
	Width, Height               vg.Length // 5 cm to 1 m, without Title and Note; 0 means 16 cm and 10 cm
}

// Save writes the figure to base.svg and base.png, each atomically. It is an
// error if a series has slices of different lengths or no known style, if the
// size is out of its range, or if the disk fails.
func (f Figure) Save(base string) error { return savePicture(base, f.sheet) }

func (f Figure) sheet() (sheet, error) {
	w, h, err := f.size()
	if err != nil {
		return sheet{}, err
	}
	head, foot := texts(f.Title, f.Note, w-outerMargin-rightMargin)
	for _, s := range f.Series {
		if err := s.check(); err != nil {
			return sheet{}, err
		}
	}
	h += f.moreLegend(w-outerMargin-rightMargin, h)
	return sheet{w, h + head.height() + foot.height(), f.draw}, nil
}

// moreLegend returns the height of a legend's rows beyond those that a figure of height h
// has room for.
func (f Figure) moreLegend(width, h vg.Length) vg.Length {
	const roomy = 3
	traces, _, _ := f.traces(vg.Point{X: width, Y: h})
	rows := legendRows(traces, width, max(1, int(legendShare*h/rowHeight)))
	return vg.Length(max(0, len(rows)-roomy)) * rowHeight
}

func (f Figure) size() (w, h vg.Length, err error) {
	w, h = f.Width, f.Height
	if w == 0 {
		w = DefaultWidth
	}
	if h == 0 {
		h = DefaultHeight
	}
	for _, side := range []vg.Length{w, h} {
		if !(side >= smallest && side <= largest) {
			return 0, 0, fmt.Errorf("a side of %.3g cm, but each must be from %.3g to %.3g cm", side/vg.Centimeter, smallest/vg.Centimeter, largest/vg.Centimeter)
		}
	}
	return w, h, nil
}

func (s Series) check() error {
	if s.Style < Line || s.Style > Band {
		return fmt.Errorf("series %q has style %d, but must have Line, Points, LinePoints or Band", s.Name, s.Style)
	}
	if s.Style != Band && len(s.X) != len(s.Y) {
		return fmt.Errorf("series %q has %d x and %d y: it must have as many of each", s.Name, len(s.X), len(s.Y))
	}
	if s.Style == Band && (len(s.X) != len(s.YLow) || len(s.X) != len(s.YHigh)) {
		return fmt.Errorf("band %q has %d x, %d low and %d high: it must have as many of each", s.Name, len(s.X), len(s.YLow), len(s.YHigh))
	}
	return nil
}

// plain makes a text fit to draw: one line of valid characters, without those
// that XML cannot hold.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, text)
}

// trace is a series as it is drawn: clean points only.
type trace struct {
	Series
	x, low, high []float64 // low and high are equal save in a band
}

// clean returns the points of s that can be drawn.
func (s Series) clean(logX, logY bool) trace {
	t := trace{Series: s}
	low, high := s.Y, s.Y
	if s.Style == Band {
		low, high = s.YLow, s.YHigh
	}
	for i := range s.X {
		x, okX := drawable(s.X[i], logX)
		// The lower edge of a band may lie below a logarithmic axis.
		l, okL := drawable(low[i], logY && s.Style != Band)
		h, okH := drawable(high[i], logY)
		if !okX || !okL || !okH {
			continue
		}
		t.x = append(t.x, x)
		t.low = append(t.low, min(l, h))
		t.high = append(t.high, max(l, h))
	}
	return t
}

// absence says, for the legend, why a series has no point: on a logarithmic
// axis there is no place for what is zero throughout, as an error may well be.
func (s Series) absence() string {
	zero := false
	for _, v := range s.Y {
		if v, ok := drawable(v, false); ok {
			if v != 0 {
				return " (nothing to draw)"
			}
			zero = true
		}
	}
	if zero {
		return " (zero throughout)"
	}
	return " (no data)"
}

// drawable returns v as it is drawn, and whether it can be.
func drawable(v float64, logarithmic bool) (float64, bool) {
	const tiny, huge = 1e-300, 1e300 // differences and ratios stay finite
	if math.IsNaN(v) || math.Abs(v) > huge {
		return 0, false
	}
	if math.Abs(v) < tiny {
		v = 0
	}
	return v, !logarithmic || v > 0
}

// thinned returns t with at most about four points in each of a thousand columns
// of the axis from lo to hi: the first, the lowest, the highest and the last,
// so that no extreme is lost. A trace with few points, or one that goes back in
// x, is given as it is.
func (t trace) thinned(a axis) trace {
	const columns = 1000
	if len(t.x) <= 4*columns || t.Style == Points {
		return t
	}
	column := func(i int) int { return int(a.position(t.x[i]) * columns) }
	kept := trace{Series: t.Series}
	for from := 0; from < len(t.x); {
		to := from + 1
		for to < len(t.x) && column(to) == column(from) {
			to++
		}
		if to < len(t.x) && t.x[to] < t.x[to-1] {
			return t
		}
		t.addExtremes(&kept, from, to)
		from = to
	}
	return kept
}

// addExtremes adds to kept what stays of t's points from .. to-1.
func (t trace) addExtremes(kept *trace, from, to int) {
	lowest, highest := from, from
	for i := from; i < to; i++ {
		if t.low[i] < t.low[lowest] {
			lowest = i
		}
		if t.high[i] > t.high[highest] {
			highest = i
		}
	}
	if t.Style == Band {
		// Its two edges have their extremes at different places.
		kept.x = append(kept.x, t.x[from], t.x[to-1])
		kept.low = append(kept.low, t.low[lowest], t.low[lowest])
		kept.high = append(kept.high, t.high[highest], t.high[highest])
		return
	}
	last := -1
	for _, i := range []int{from, min(lowest, highest), max(lowest, highest), to - 1} {
		if i == last {
			continue
		}
		last = i
		kept.x = append(kept.x, t.x[i])
		kept.low = append(kept.low, t.low[i])
		kept.high = append(kept.high, t.high[i])
	}
}
