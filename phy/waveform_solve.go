package phy

import (
	"errors"
	"fmt"
	"slices"

	"ringwave/phy/frame"
	"ringwave/phy/lattice"
)

// errErased says that a block waits for symbols that no repeat had yet.
var errErased = errors.New("symbols erased")

// erasedError is errErased of n symbols.
func erasedError(n int) error { return fmt.Errorf("%d %w", n, errErased) }

// missing is a value that some symbols of a block lack: at says where, and sign which
// multiple of it each has.
type missing struct {
	at       []int32
	sign     []int32
	from, to int64
}

// maxMissing bounds the values that a block may lack: one for the clipped symbols, and two
// coefficients that a burst of some symbols touches.
const maxMissing = 3

// readHeld reads block i as it is held, at a scale or, if alpha is 0, searching one: from
// the means first, then from the newest repeat alone, as one before may have been damaged
// unseen, then with the checks of earlier repeats. A scale is searched in the newest alone
// first: one that is found in the mean of several may be finer than what single frames,
// those that follow, can be read at. Whatever is tried beyond the first of these counts
// against what the check can spare.
func (r *reader) readHeld(g *group, e expected, i int, alpha float64) (lattice.Result, error) {
	n := r.views(&g.read)
	first := mean
	if alpha == 0 && n > 1 {
		first = newest
	}
	res, err := r.readView(g, e, i, alpha, first)
	for v := view(0); err != nil && int(v) < n; v++ {
		if v == first {
			continue
		}
		if g.read.tries[i] >= e.payload.Spare() {
			break
		}
		if v >= earlier {
			past := e
			past.header = g.read.checks[n-1-int(v)].header
			r.draw(g, past)
		}
		again, problem := r.readView(g, e, i, alpha, v)
		g.read.tries[i] += float64(again.Tried)
		if problem == nil || v == mean { // whose failure says most
			res, err = again, problem
		}
	}
	if n > int(earlier) {
		r.draw(g, e)
	}
	return res, err
}

// readView reads block i as a view has it.
func (r *reader) readView(g *group, e expected, i int, alpha float64, v view) (lattice.Result, error) {
	d := &g.read
	y := d.gather(g, e, i, v)
	skip := 0
	if i == 0 {
		skip = g.patterns.Symbols()
	}
	if len(d.lost) == 0 {
		accept := func(y []int32) bool { return d.accept(e.payload, i, skip, y) }
		return r.readRefined(g, e, i, y, alpha, accept)
	}
	if len(d.lost) > len(d.joint)/2 || i == 0 && r.layout.format == frame.Format1 && int(d.lost[0]) < skip {
		return lattice.Result{}, erasedError(len(d.lost))
	}
	d.whole = d.whole[:0]
	at := 0
	for _, k := range d.lost {
		d.whole = append(d.whole, d.joint[at:k]...)
		at = int(k) + 1
	}
	d.whole = append(d.whole, d.joint[at:]...)
	if cap(d.integers) < len(d.joint) {
		d.integers, d.shape = make([]int32, len(d.joint)), make([]int32, len(d.joint))
	}
	res, err := r.readRefined(g, e, i, d.whole, alpha, func(y []int32) bool { return r.solve(g, e, i, skip, y) })
	if err != nil {
		return res, erasedError(len(d.lost))
	}
	d.mend(g, e, i, skip, res.Alpha)
	return res, nil
}

// readRefined reads symbols of block i as they are, and otherwise once more without the
// baseline and the interference that their teeth show. What the second reading tries counts
// against what the check can spare. Devices of nearly one gain may look like devices of
// one: integers of other gains than those of b are a last resort.
func (r *reader) readRefined(g *group, e expected, i int, y []float32, alpha float64, accept lattice.Accept) (lattice.Result, error) {
	d := &g.read
	alike := func(y []int32) bool {
		return accept(y) && (i > 0 || e.isKey() || slices.Equal(d.pattern, g.key))
	}
	res, err := r.read(g, e, i, y, alpha, alike)
	if err == nil && e.isKey() {
		g.lattice.Learn(y, res.Y, res.Alpha)
	}
	if err == nil || d.tries[i] >= e.payload.Spare() {
		return res, err
	}
	if cap(d.refined) < len(y) {
		d.refined = make([]float32, len(y))
	}
	g.lattice.Refine(d.refined[:len(y)], y)
	again, problem := r.read(g, e, i, d.refined[:len(y)], alpha, alike)
	if d.tries[i] += float64(again.Tried); problem == nil {
		if e.isKey() {
			g.lattice.Learn(d.refined[:len(y)], again.Y, again.Alpha)
		}
		return again, nil
	}
	if i > 0 || e.isKey() {
		return res, err
	}
	return r.read(g, e, i, y, alpha, accept)
}

// mend gives the clipped symbols of block i that were solved the soft value that they would
// have had.
func (d *reading) mend(g *group, e expected, i, skip int, alpha float64) {
	from, _ := e.payload.BlockSymbols(i)
	for _, k := range d.lost {
		if d.joint[k] == 0 || int(k) < skip {
			continue
		}
		at := frame.HeaderSymbols + g.patterns.Symbols() + from + int(k) - skip
		d.sum[at] = float32(float64(d.integers[k]) / alpha)
	}
}

// accept takes in the integers of block i, of which the first skip are the pattern's, and
// reports whether the check holds.
func (d *reading) accept(p *frame.Payload, i, skip int, y []int32) bool {
	for k, v := range y[:skip] {
		d.pattern[k] = int64(v)
	}
	return p.DecodeBlock(d.y, i, y[skip:], d.pattern)
}

// solve puts the integers that were read where they belong, finds those that are missing
// by the check, and reports whether it holds with them. A pattern's symbols are those of b,
// as gains are the same: the check is one of the pattern, too.
func (r *reader) solve(g *group, e expected, i, skip int, y []int32) bool {
	d, p := &g.read, e.payload
	all := d.integers[:len(d.joint)]
	at, largest := 0, int32(1)
	for _, k := range d.lost {
		y = y[copy(all[at:k], y):]
		all[k], at = 0, int(k)+1
	}
	copy(all[at:], y)
	for _, v := range all {
		largest = max(largest, v, -v)
	}
	lost := d.lost
	for !e.isKey() && len(lost) > 0 && int(lost[0]) < skip {
		all[lost[0]] = int32(g.key[lost[0]])
		lost = lost[1:]
	}
	lacks := d.lacks(lost, r.layout.codec.Digits(), r.layout.codec.Base(), skip, int64(largest))
	unknowns, ok := d.unknowns(p, i, skip, lacks)
	if !ok {
		return false
	}
	for k, v := range all[:skip] {
		d.pattern[k] = int64(v)
	}
	residual := p.NewResidual(i)
	p.Residual(residual, i, all[skip:], d.pattern)
	var values [maxMissing]int64
	if !p.Solve(values[:], residual, unknowns) {
		return false
	}
	for n, m := range lacks {
		for k, at := range m.at {
			all[at] += m.sign[k] * int32(values[n])
		}
	}
	return d.accept(p, i, skip, all)
}

// unknowns returns what the check is to be asked for, and whether it can tell: with
// so many values in question that a wrong one passed with more than 2^-40, it cannot.
func (d *reading) unknowns(p *frame.Payload, i, skip int, lacks []missing) ([]frame.Unknown, bool) {
	if len(lacks) > maxMissing {
		return nil, false
	}
	choices := 1.0
	unknowns := make([]frame.Unknown, len(lacks))
	for n, m := range lacks {
		unknowns[n] = frame.Unknown{From: m.from, To: m.to}
		choices *= unknowns[n].Choices()
	}
	if d.tries[i]+choices > p.Spare() {
		return nil, false
	}
	d.tries[i] += choices
	shape, pattern := d.shape[:len(d.joint)], make([]int64, len(d.pattern))
	for n, m := range lacks {
		clear(shape)
		clear(pattern)
		for k, at := range m.at {
			shape[at] = m.sign[k]
		}
		for k, v := range shape[:skip] {
			pattern[k] = int64(v)
		}
		unknowns[n].Step = p.NewResidual(i)
		p.Residual(unknowns[n].Step, i, shape[skip:], pattern)
	}
	return unknowns, true
}

// lacks returns the values that lost symbols of a block lack, largest being the
// largest integer of the others.
//
// Symbols that were clipped have all the same magnitude, or else cannot be told: that of
// the comb's last tooth, which the converter does not reach. Symbols that are lost are a
// number a coefficient: from the lowest of them on, digits to the given base that are no
// larger than the others.
func (d *reading) lacks(lost []int32, digits, base, skip int, largest int64) []missing {
	var lacks []missing
	clipped := missing{from: largest, to: 3*largest + 8}
	for _, k := range lost {
		if y := d.joint[k]; y != 0 {
			sign := int32(1)
			if y < 0 {
				sign = -1
			}
			clipped.at, clipped.sign = append(clipped.at, k), append(clipped.sign, sign)
		}
	}
	if len(clipped.at) > 0 {
		lacks, largest = append(lacks, clipped), clipped.to
	}
	last, first, power := -1, 0, int64(0) // coefficient, its lowest symbol lost, and base^(k-first)
	for _, k := range lost {
		if d.joint[k] != 0 {
			continue
		}
		coefficient := (int(k) - skip) / digits
		if int(k) < skip { // each symbol of the pattern is a number by itself
			coefficient = -1 - int(k)
		}
		if len(lacks) == 0 || coefficient != last {
			if len(lacks) == maxMissing {
				return append(lacks, missing{}) // too many
			}
			last, first, power = coefficient, int(k), 1
			lacks = append(lacks, missing{at: []int32{k}, sign: []int32{1}})
		}
		for ; first < int(k) && power < lattice.MaxLevel; first++ {
			power *= int64(base)
		}
		m := &lacks[len(lacks)-1]
		m.to += largest * power
		m.from = -m.to
	}
	if n := len(lacks) - 1; n >= 0 && slices.ContainsFunc(lacks, func(m missing) bool { return m.to > lattice.MaxLevel }) {
		return append(lacks, make([]missing, maxMissing)...)
	}
	return lacks
}
