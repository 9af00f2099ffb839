package sweepreport

import (
	"fmt"
	"slices"
	"strings"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
)

// none stands for no axis.
const none = -1

// lines says how combinations are laid out in plots side by side: one axis of the plan may
// be along x, one gives the curves of a plot, and each combination of the others a plot.
type lines struct {
	curve  int     // the axis whose values are curves, or none
	places []int   // of it, that are drawn
	panels [][]int // places on the plan's axes, of which those of x and curve do not count
	note   string  // what is not drawn

	spots map[int]spot // where a combination is drawn, by its number; without an axis along x
}

// spot is where a combination is drawn.
type spot struct {
	panel, position int
	label           string
	faint           bool
}

// manyBands is from how many on bands lie over each other so much that they are paler.
const manyBands = 5

// layout lays combinations out, with the values of an axis along x, or the rounds.
func (w *writer) layout(x int) lines {
	l := lines{curve: w.curveAxis(x), places: []int{0}}
	if l.curve != none {
		n := len(w.plan.Axes[l.curve].Values)
		l.places = spread(n, chart.Curves)
		if len(l.places) < n {
			l.note = fmt.Sprintf("Of %d values of %s only %d are drawn.", n, w.axisName(l.curve), len(l.places))
		}
	}
	var rest []int
	for k := range w.plan.Axes {
		if k != x && k != l.curve {
			rest = append(rest, k)
		}
	}
	all := 1
	for _, k := range rest {
		all *= len(w.plan.Axes[k].Values)
	}
	chosen := spread(all, chart.MostPanels)
	if len(chosen) < all {
		l.note = strings.TrimSpace(fmt.Sprintf("%s Of %d combinations of %s only %d are drawn.", l.note, all, w.axisNames(rest), len(chosen)))
	}
	for _, i := range chosen {
		at := make([]int, len(w.plan.Axes))
		for k := len(rest) - 1; k >= 0; k-- {
			n := len(w.plan.Axes[rest[k]].Values)
			at[rest[k]], i = i%n, i/n
		}
		l.panels = append(l.panels, at)
	}
	l.find(w, x)
	return l
}

// find says where combinations are drawn, of plots over rounds.
func (l *lines) find(w *writer, x int) {
	if x != none {
		return
	}
	l.spots = map[int]spot{}
	for panel := range l.panels {
		for position := range l.places {
			l.spots[w.index(l.at(panel, position))] = spot{panel, position, w.curveName(*l, position), len(l.places) >= manyBands}
		}
	}
}

// at returns the places of a curve of a panel.
func (l lines) at(panel, position int) []int {
	at := slices.Clone(l.panels[panel])
	if l.curve != none {
		at[l.curve] = l.places[position]
	}
	return at
}

// curveAxis returns the axis whose values are curves: that with the most of those whose
// values can be told apart by colour, else that with the fewest.
func (w *writer) curveAxis(x int) int {
	best := none
	n := func(k int) int { return len(w.plan.Axes[k].Values) }
	better := func(a, b int) bool {
		if few := n(a) <= chart.Curves; few != (n(b) <= chart.Curves) {
			return few
		} else if few {
			return n(a) > n(b)
		}
		return n(a) < n(b)
	}
	for k := range w.plan.Axes {
		if k != x && n(k) > 1 && (best == none || better(k, best)) {
			best = k
		}
	}
	return best
}

// spread returns at most so many of n places, evenly, with the first and the last.
func spread(n, most int) (places []int) {
	most = min(n, most)
	for i := range most {
		places = append(places, i*(n-1)/max(1, most-1))
	}
	return places
}

// name returns a key without its section where no other key that is swept has the name.
func (w *writer) name(key string) string {
	short := func(key string) string { return key[strings.LastIndex(key, ".")+1:] }
	for _, other := range w.plan.Keys {
		if other != key && short(other) == short(key) {
			return key
		}
	}
	return short(key)
}

// axisName returns the keys of an axis, with their sections.
func (w *writer) axisName(k int) string { return strings.Join(w.plan.Axes[k].Keys, " and ") }

func (w *writer) axisNames(axes []int) string {
	var names []string
	for _, k := range axes {
		names = append(names, w.axisName(k))
	}
	return strings.Join(names, ", ")
}

// placeName writes a value of an axis with its keys.
func (w *writer) placeName(k, place int) string {
	var parts []string
	for i, key := range w.plan.Axes[k].Keys {
		parts = append(parts, w.name(key)+" = "+shown(w.plan.Axes[k].Values[place][i]))
	}
	return strings.Join(parts, ", ")
}

// curveName names a curve in a legend.
func (w *writer) curveName(l lines, position int) string {
	if l.curve == none {
		return ""
	}
	return w.placeName(l.curve, l.places[position])
}

// panelName says what a panel is of.
func (w *writer) panelName(l lines, x, panel int) string {
	var parts []string
	for k, a := range w.plan.Axes {
		if k != x && k != l.curve && len(a.Values) > 1 {
			parts = append(parts, w.placeName(k, l.panels[panel][k]))
		}
	}
	return strings.Join(parts, ", ")
}

// shown returns a value that a reader sees.
func shown(value string) string {
	const most = 40
	switch runes := []rune(value); {
	case value == "":
		return "(empty)"
	case len(runes) > most:
		return string(runes[:most]) + "…"
	}
	return value
}

// labelOf returns a key with its unit, as along an axis.
func labelOf(key string) string {
	for _, k := range config.Describe() {
		if k.Name == key && k.Unit != "" {
			return fmt.Sprintf("%s (%s)", key, k.Unit)
		}
	}
	return key
}

// numeric returns the values of one key of an axis as numbers, of the first whose values
// are all numbers and differ; ok is false where there is none.
func (w *writer) numeric(k int) (key string, values []float64, ok bool) {
	for j, key := range w.plan.Axes[k].Keys {
		values, ok := w.numbers(k, j)
		if ok && len(values) > 1 {
			return key, values, true
		}
	}
	return "", nil, false
}

// numbers returns the values of a key of an axis where all are numbers that differ.
func (w *writer) numbers(k, j int) (values []float64, ok bool) {
	at := make([]int, len(w.plan.Axes))
	seen := map[float64]bool{}
	for place := range w.plan.Axes[k].Values {
		at[k] = place
		c := w.plan.Points[w.index(at)*len(w.plan.Seeds)].Config
		var v float64
		switch value := c.Value(w.plan.Axes[k].Keys[j]).(type) {
		case float64:
			v = value
		case int:
			v = float64(value)
		case int64:
			v = float64(value)
		default:
			return nil, false
		}
		if seen[v] {
			return nil, false
		}
		seen[v], values = true, append(values, v)
	}
	return values, true
}
