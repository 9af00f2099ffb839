package scenes

import (
	"math"

	"ringwave/learner/experiment/runfolder"
)

const (
	// mostRows is how many rounds plots are drawn of: where there are more, several are
	// drawn as one.
	mostRows = 4096
	// lastRows is how many rounds the table has.
	lastRows = 50
)

// history is the rounds of a run in bounded memory: the last as they are, and all of them in
// groups of stride rounds, a row each.
type history struct {
	rows   []runfolder.Row
	gains  [][]float64 // of the rows, by device; nil where nothing tells
	stride int         // rounds in a row; 0 before the first
	filled int         // rounds in the last row

	last []runfolder.Row // at most lastRows, the newest last
}

// add takes in a round and the gains of its devices, if they are known.
func (h *history) add(row runfolder.Row, gains []float64) {
	h.last = append(h.last, row)
	if len(h.last) > lastRows {
		h.last = h.last[:copy(h.last, h.last[1:])]
	}
	h.stride = max(h.stride, 1)
	if h.filled > 0 && h.filled < h.stride {
		n := len(h.rows) - 1
		h.rows[n], h.gains[n] = merge(h.rows[n], row), gains
		h.filled++
		return
	}
	if len(h.rows) == mostRows {
		h.halve()
	}
	h.rows, h.gains, h.filled = append(h.rows, row), append(h.gains, gains), 1
}

// halve makes one row of every two.
func (h *history) halve() {
	for k := range len(h.rows) / 2 {
		h.rows[k], h.gains[k] = merge(h.rows[2*k], h.rows[2*k+1]), h.gains[2*k+1]
	}
	h.rows, h.gains = h.rows[:len(h.rows)/2], h.gains[:len(h.rows)/2]
	clear(h.gains[len(h.gains):cap(h.gains)]) // they are not needed any more
	h.stride *= 2
}

// merge returns a row for two, one after the other: the later, with the most attempts and
// frames sent again, the worst quality and misfit, and the last accuracy of the two.
func merge(a, b runfolder.Row) runfolder.Row {
	out := b
	if b.Skipped && !a.Skipped { // what was read says more
		out = a
		out.Round = b.Round
	}
	out.Attempts = max(a.Attempts, b.Attempts)
	if out.TestAccuracy = b.TestAccuracy; math.IsNaN(out.TestAccuracy) {
		out.TestAccuracy = a.TestAccuracy
	}
	if a.Link == nil || b.Link == nil {
		return out
	}
	link := *out.Link
	link.FramesRepeated = larger(a.Link.FramesRepeated, b.Link.FramesRepeated)
	link.Misfit = larger(a.Link.Misfit, b.Link.Misfit)
	link.Quality = -larger(-a.Link.Quality, -b.Link.Quality)
	out.Link = &link
	return out
}

// larger returns the larger of two numbers, of which NaN is none.
func larger(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	if math.IsNaN(b) {
		return a
	}
	return max(a, b)
}
