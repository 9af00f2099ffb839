package phy

import "ringwave/phy/frame"

// What a receiver holds of a frame while it is sent again: the blocks that have passed
// their check, and of the others the mean of each symbol over the repeats in which it was
// not erased. Gains and patterns are the same in all of them, digits too but for those of
// the checks, whose weights are fresh in every repeat: they are kept apart.

// checksOf is the checks of one repeat: the soft symbols of all blocks' one behind the
// other, and those of them that are erased.
type checksOf struct {
	header frame.Header
	soft   []float32
	erased []bool
}

// begin forgets the frame before: another transmission begins.
func (d *reading) begin(blocks int) {
	if cap(d.passed) < blocks {
		d.passed, d.tries = make([]bool, blocks), make([]float64, blocks)
	}
	d.passed, d.tries = d.passed[:blocks], d.tries[:blocks]
	clear(d.passed)
	clear(d.tries)
	d.checks = d.checks[:0]
	d.worst = WaveformReport{Quality: 1}
}

// combine adds symbols from to to of the frame at hand to the means. An erased symbol adds
// nothing; where no repeat had it, the value stays that the demodulator has left to it: 0,
// or where its samples were clipped that of the clipping.
func (d *reading) combine(from, to int) {
	sum, soft, erased, heard := d.sum[from:to], d.soft[from:to], d.erased[from:to], d.heard[from:to]
	if d.intact {
		copy(sum, soft)
		for k := range heard {
			heard[k] = 1
		}
		return
	}
	for k, y := range soft {
		switch n := heard[k]; {
		case erased[k] && n == 0:
			sum[k] = y
		case erased[k]:
		case n == 0:
			sum[k], heard[k] = y, 1
		default:
			sum[k] += (y - sum[k]) / float32(n+1)
			heard[k]++
		}
	}
}

// combine adds the frame at hand to what is held of the same payload. Nothing is held of a
// payload that is sent again, as each frame has a mask of its own then, but the blocks that
// have passed: they are without it.
func (r *reader) combine(g *group, e expected) {
	d := &g.read
	if e.slot.Again > 0 {
		d.checks = d.checks[:0]
	}
	if len(d.checks) == 0 {
		clear(d.heard)
	}
	d.intact = len(d.checks) == 0 && d.report.Erased == 0
	pattern := frame.HeaderSymbols
	payload := pattern + g.patterns.Symbols()
	for i := range e.payload.Blocks() {
		if d.passed[i] {
			continue
		}
		if i == 0 {
			d.combine(pattern, payload)
		}
		from, to := e.payload.BlockSymbols(i)
		if r.layout.format != frame.Format1 { // whose checks are the same in all repeats
			to, _ = e.payload.CheckSymbols(i)
		}
		d.combine(payload+from, payload+to)
	}
	r.keepChecks(d, e, payload)
}

// keepChecks keeps the checks of the frame at hand, and lays them out behind the
// coefficients they are of.
func (r *reader) keepChecks(d *reading, e expected, payload int) {
	n := len(d.checks)
	if n < cap(d.checks) {
		d.checks = d.checks[:n+1]
	} else {
		d.checks = append(d.checks, checksOf{})
	}
	c := &d.checks[n]
	c.header, c.soft, c.erased = e.header, c.soft[:0], c.erased[:0]
	for i := range e.payload.Blocks() {
		from, to := e.payload.CheckSymbols(i)
		c.soft = append(c.soft, d.soft[payload+from:payload+to]...)
		c.erased = append(c.erased, d.erased[payload+from:payload+to]...)
		if d.passed[i] || r.layout.format == frame.Format1 {
			continue
		}
		copy(d.sum[payload+from:payload+to], d.soft[payload+from:payload+to])
		for k := from; k < to; k++ {
			d.heard[payload+k] = 1
			if d.erased[payload+k] {
				d.heard[payload+k] = 0
			}
		}
	}
}

// view is one way to take a block's symbols from what is held.
type view int

const (
	mean    view = iota // the means, with the checks of the newest repeat
	newest              // the newest repeat alone
	earlier             // from here on the means, with the checks of the repeat before, and so on
)

// views returns how many there are.
func (r *reader) views(d *reading) int {
	if n := len(d.checks); n > 1 && r.layout.format != frame.Format1 {
		return int(earlier) + n - 1
	}
	return 1
}

// gather returns the symbols of block i, behind those of the pattern if it is the first,
// and sets lost to those that are erased: of joint, where the symbols are then.
func (d *reading) gather(g *group, e expected, i int, v view) []float32 {
	d.joint, d.lost = d.joint[:0], d.lost[:0]
	payload := frame.HeaderSymbols + g.patterns.Symbols()
	from, to := e.payload.BlockSymbols(i)
	if d.intact && i > 0 {
		return d.sum[payload+from : payload+to]
	}
	split, _ := e.payload.CheckSymbols(i)
	if i == 0 {
		d.take(v, frame.HeaderSymbols, payload)
	}
	if v < earlier {
		d.take(v, payload+from, payload+to)
		return d.joint
	}
	d.take(mean, payload+from, payload+split)
	c := &d.checks[len(d.checks)-2-int(v-earlier)]
	// Blocks have as many check symbols each.
	at, n := i*(to-split), to-split
	for k, lost := range c.erased[at : at+n] {
		if lost {
			d.lost = append(d.lost, int32(len(d.joint)+k))
		}
	}
	d.joint = append(d.joint, c.soft[at:at+n]...)
	return d.joint
}

// take appends symbols from to to.
func (d *reading) take(v view, from, to int) {
	at := len(d.joint)
	if v == newest {
		d.joint = append(d.joint, d.soft[from:to]...)
		for k, lost := range d.erased[from:to] {
			if lost {
				d.lost = append(d.lost, int32(at+k))
			}
		}
		return
	}
	d.joint = append(d.joint, d.sum[from:to]...)
	if d.intact {
		return
	}
	for k, n := range d.heard[from:to] {
		if n == 0 {
			d.lost = append(d.lost, int32(at+k))
		}
	}
}
