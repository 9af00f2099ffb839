package scenes

import (
	"fmt"
	"slices"
	"strings"

	"ringwave/learner/experiment/sweep"
	"ringwave/learner/watch"
)

// grid is where the runs of a plan are in a matrix.
type grid struct {
	columns, rows []string // their names
	at            [][]int  // the run at each place, by row; -1 for none
	note          string
}

// What a page has room for: beyond that runs stand in lines of flatColumns, as many as
// mostCells.
const (
	mostGridRows    = 500
	mostGridColumns = 200
	flatColumns     = 100
	mostCells       = 20_000
)

// gridOf lays out the runs of a plan: seeds side by side, or where there is but one the
// values of the axis that has the most.
func gridOf(p sweep.Plan) grid {
	seeds := max(1, len(p.Seeds))
	axis := -1
	for k, a := range p.Axes {
		if seeds == 1 && (axis < 0 || len(a.Values) > len(p.Axes[axis].Values)) {
			axis = k
		}
	}
	g := grid{}
	if axis < 0 {
		for _, s := range p.Seeds {
			g.columns = append(g.columns, fmt.Sprintf("seed %d", s))
		}
	} else {
		for _, v := range p.Axes[axis].Values {
			g.columns = append(g.columns, label(p.Axes[axis].Keys, v))
		}
	}
	if len(g.columns) > mostGridColumns || len(p.Points)/max(1, len(g.columns)) > mostGridRows {
		return flat(p)
	}
	rows := map[int]int{}
	for i := range p.Points {
		row, column := place(p, i/seeds, axis)
		if axis < 0 {
			column = i % seeds
		}
		k, ok := rows[row]
		if !ok {
			k = len(g.rows)
			rows[row] = k
			g.rows = append(g.rows, rowLabel(p, i, axis))
			g.at = append(g.at, slices.Repeat([]int{-1}, len(g.columns)))
		}
		g.at[k][column] = i
	}
	return g
}

// place returns the number of a combination but for one axis, and its place on that; axis is
// -1 for none.
func place(p sweep.Plan, combination, axis int) (rest, on int) {
	unit := 1
	for k := len(p.Axes) - 1; k >= 0; k-- {
		n := len(p.Axes[k].Values)
		at := combination % n
		if combination /= n; k == axis {
			on = at
			continue
		}
		rest += at * unit
		unit *= n
	}
	return rest, on
}

// rowLabel names what the runs of a row have in common.
func rowLabel(p sweep.Plan, run, axis int) string {
	var keys, values []string
	for k, key := range p.Keys {
		if axis < 0 || !slices.Contains(p.Axes[axis].Keys, key) {
			keys, values = append(keys, key), append(values, p.Points[run].Values[k])
		}
	}
	if len(keys) == 0 {
		return p.Name
	}
	return label(keys, values)
}

// label names values of keys, without the keys' sections.
func label(keys, values []string) string {
	var parts []string
	for i, key := range keys {
		parts = append(parts, key[strings.LastIndexByte(key, '.')+1:]+"="+values[i])
	}
	return clipped(strings.Join(parts, ", "))
}

// clipped returns a text that has room in a cell.
func clipped(text string) string {
	const most = 80
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// flat lays out runs in their order.
func flat(p sweep.Plan) (g grid) {
	for k := range flatColumns {
		g.columns = append(g.columns, fmt.Sprintf("+%d", k))
	}
	n := min(len(p.Points), mostCells)
	for first := 0; first < n; first += flatColumns {
		row := slices.Repeat([]int{-1}, flatColumns)
		for k := range min(flatColumns, n-first) {
			row[k] = first + k
		}
		g.rows, g.at = append(g.rows, clipped(fmt.Sprintf("%d: %s", first, rowLabel(p, first, -1)))), append(g.at, row)
	}
	g.note = fmt.Sprintf("Runs in the order of the sweep, %d a line, seeds innermost; a line is named by its first run.", flatColumns)
	if n < len(p.Points) {
		g.note += fmt.Sprintf(" The first %d of %d are shown.", n, len(p.Points))
	}
	return g
}

// matrix returns the grid with a letter for each run.
func (g grid) matrix(letter func(run int) byte) watch.Matrix {
	m := watch.Matrix{Columns: g.columns, Note: g.note, Rows: make([]watch.MatrixRow, len(g.rows))}
	for k, row := range g.at {
		states := make([]byte, len(row))
		for i, run := range row {
			if states[i] = watch.MatrixNone; run >= 0 {
				states[i] = letter(run)
			}
		}
		m.Rows[k] = watch.MatrixRow{Label: g.rows[k], States: string(states)}
	}
	return m
}
