package phy

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"ringwave/crypto/keystream"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// reader turns captures into integers.
type reader struct {
	layout   *layout
	time     *timeline
	detector *modem.Detector
	demod    *modem.Demodulator
	secret   keystream.Seed
	phase    *modem.Radians // nil to take each round's preamble
	// alpha is the scale where it is known, up to the relative error tolerance; 0 to
	// find it.
	alpha, tolerance float64
	marksClipped     bool // the demodulator knows which samples were clipped
	level            int8 // of the header's symbols
	header           []float32
}

// expected is the frame that is due: its header, its payload, and the soft symbol of
// the digit 1 from a device of gain 1.
type expected struct {
	slot    slot.Slot
	header  frame.Header
	payload *frame.Payload
	unit    float64
}

// isKey reports whether the frame is one of phase 1, which settles scale and phase.
func (e expected) isKey() bool { return e.slot.Transmission == slot.TxKey }

// clippedNote is what to say of n clipped samples.
func clippedNote[T ~int | ~int64](n T) string {
	return fmt.Sprintf("%d samples clipped: lower the receiver's gain", n)
}

// blame adds to a failure what the receiver said of the samples, unless the failure
// says it already.
func (c *capture) blame(failure string) string {
	if failure == "" || c.clipped == 0 || strings.Contains(failure, "clipped") {
		return failure
	}
	return failure + "; " + clippedNote(c.clipped)
}

// draw draws the check weights of a group's frame.
func (r *reader) draw(g *group, e expected) {
	if r.layout.format == frame.Format1 {
		e.payload.Draw1(r.secret.Derive("payload", uint64(e.slot.Transmission)), e.slot.Round, e.slot.Attempt)
		return
	}
	e.payload.Draw(g.weights.Of(e.header), e.slot.Again > 0)
}

// demodulate finds the frame in the capture and fills the group's soft symbols, in units
// of a device of gain 1 that sends the digit 1. It says in a few words what failed.
func (r *reader) demodulate(c *capture, g *group, e expected) string {
	g.read.found = modem.Sync{}
	if c.heard == 0 {
		return "no sample of the frame was received"
	}
	if c.untraced {
		return fmt.Sprintf("no preamble within %d samples of where it was due", r.time.reach)
	}
	n := frame.HeaderSymbols + g.patterns.Symbols() + e.payload.Symbols()
	found, ok := r.locate(c, g, e, n)
	if !ok {
		return "no preamble"
	}
	found = g.held.timing(found, c.first-c.due)
	// Each frame goes by its own phase: that of the same gains, whatever the carriers of
	// devices and receiver have turned against each other since the last one.
	if r.phase != nil {
		found.Theta, found.Offset = *r.phase, 0
	}
	g.read.found = found
	g.read.resize(n)
	g.read.report = r.demod.Demodulate(g.read.soft, g.read.erased, r.frame(c, g, found, e, n))
	if e.isKey() {
		g.held.image, g.held.block, g.held.tone = g.read.report.Image, g.read.report.Block, g.read.report.Tone
		g.held.instant += g.read.report.Late
		g.held.likely = g.read.report.Likely
	}
	if failure := r.damage(c); failure != "" {
		return failure
	}
	// A header that cannot be read is no verdict: the check weights are those of the
	// frame that is expected, so that another one fails its checks.
	h, err := frame.DecodeHeader(g.read.soft, r.layout.format)
	if err == nil && h != e.header {
		return fmt.Sprintf("a frame of run %d, round %d, attempt %d, %v, where another was expected", h.Run, h.Round, h.Attempt, slot.Transmission(h.Transmission%slot.Transmissions))
	}
	scale := 1 / float32(e.unit)
	for k := range g.read.soft {
		g.read.soft[k] *= scale
	}
	return ""
}

// frame returns the frame at hand, of n symbols behind the preamble, as the demodulator
// wants it: with the silence on either side of where it really lies. Filters and echoes
// reach into that, and what is nearer to the frame than some symbols is left alone, as is
// what lies further off than half a guard time, where another frame may end.
func (r *reader) frame(c *capture, g *group, found modem.Sync, e expected, n int) modem.Frame {
	silent := int(r.layout.guard()) / 2
	near := max(r.layout.sps*guardSymbols/8, r.layout.half()-silent) // all of the last symbol, too
	begins := max(0, min(int(found.Start)-near, len(c.samples)))
	cut := max(0, begins-silent)
	ends := max(0, min(int(found.Payload)+n*r.layout.sps+near, len(c.samples)))
	stop := min(len(c.samples), ends+silent)
	found.Start -= modem.Samples(cut)
	found.Payload -= modem.Samples(cut)
	found.Reference -= modem.Samples(cut)
	f := modem.Frame{
		Samples: c.samples[cut:max(cut, stop)], Sync: found, Hold: r.phase != nil,
		Before: begins - cut, After: stop - ends,
	}
	if !e.isKey() {
		f.Image, f.Block, f.Tone = g.held.image, g.held.block, g.held.tone
		f.Settled = g.held.settled
	}
	if f.Block == 0 {
		f.Block = g.read.trial
	}
	r.header = e.header.Soft(r.header[:0], r.level, r.layout.format)
	f.Known = r.header
	return f
}

// locate finds the preamble of a frame of n symbols behind it. Where the phase is known
// and the preamble cannot be seen, the last one's place serves.
func (r *reader) locate(c *capture, g *group, e expected, n int) (found modem.Sync, ok bool) {
	found, err := r.first(c, g, e)
	if err != nil {
		r.time.missedFrame()
		if r.phase == nil || !r.time.hasTimed {
			return found, false
		}
		return r.detector.Settle(c.samples, r.time.timing, modem.Symbols(n)), true
	}
	r.time.missed = 0
	found = r.detector.Settle(c.samples, found, modem.Symbols(n))
	if c.punctual {
		r.time.timing, r.time.hasTimed = found, true
		r.time.follow(found.Start)
	}
	return found, true
}

// doubts reports whether a frame that was not read may have passed a DC block of which it
// is not certain, and prepares for the frame to be read once more as if it had. What is held of the
// first reading is given up but for the blocks that have passed.
func (r *reader) doubts(g *group, e expected) bool {
	d := &g.read
	if d.trial = d.report.Likely; d.trial == 0 && d.report.Block == 0 && !e.isKey() {
		d.trial = g.held.likely
	}
	if d.trial == 0 || len(d.checks) > 1 {
		return false
	}
	d.checks = d.checks[:0]
	return true
}

// damage says what makes all soft symbols worthless, if anything does: harm to samples that
// nobody can point at.
func (r *reader) damage(c *capture) string {
	switch {
	case c.clipped > 0 && !r.marksClipped: // nobody knows which
		return clippedNote(c.clipped)
	case c.invalid > 0: // they are 0 now, and nobody knows which
		return fmt.Sprintf("%d samples were no numbers", c.invalid)
	}
	return ""
}

// first looks for a preamble, first about where it is likely to be in frequency: b at the
// receiver's own, what comes behind it where b was.
func (r *reader) first(c *capture, g *group, e expected) (modem.Sync, error) {
	if !e.isKey() && g.held.timed {
		return r.detector.FirstNear(c.samples, g.held.offset)
	}
	found, err := r.detector.FirstNear(c.samples, 0)
	g.held.offset = found.Offset
	return found, err
}

// sameInstant is how far, in samples, two frames' instants may lie apart by chance: where a
// frame begins between two samples its preamble shows one or the other, and so do the
// symbols behind it, by which that is settled.
const sameInstant = 2.0

// timing returns a frame the timing of the round's first one: what a fractional
// delay leaves of the pulse's edges weighs differently at another instant, and the
// gains would change with it. An instant further off is no chance: samples were
// lost that nobody noticed. late is how long after its due time the capture begins.
func (h *holding) timing(found modem.Sync, late radio.SampleIndex) modem.Sync {
	instant := found.Payload + modem.Samples(late)
	if !h.timed {
		h.instant, h.timed = instant, true
		return found
	}
	shift := h.instant - instant
	if h.settled = math.Abs(float64(shift)) <= sameInstant; !h.settled {
		return found
	}
	found.Start += shift
	found.Payload += shift
	return found
}

// decode turns the combined soft symbols into integers, block by block. The
// scale is found with the first block of phase 1 and holds for the round. A scale
// that does not read all blocks of phase 1 makes room for the next; blocks that wait for
// a repeat, as symbols of theirs are erased, do not speak against it. worst gets the
// quality of the worst block, if none before was worse.
func (r *reader) decode(g *group, e expected, worst *WaveformReport) string {
	searching := e.isKey() && r.alpha == 0
	d := &g.read
	d.refused = d.refused[:0]
	failure, best, furthest := "", 0.0, 0
	for {
		block, err := r.decodeBlocks(g, e, searching)
		if err == nil {
			if d.worst.Quality < worst.Quality {
				worst.Quality, worst.Distance = d.worst.Quality, d.worst.Distance
			}
			return ""
		}
		if failure == "" { // the finest scale's says most
			failure = fmt.Sprintf("block %d: %v", block+1, err)
			if d.report.Clipped > 0 {
				failure += "; " + clippedNote(d.report.Clipped)
			}
		}
		if !searching || errors.Is(err, errErased) {
			return failure // what was read is kept
		}
		if block == 0 {
			break
		}
		if block > furthest {
			best, furthest = g.alpha, block
		}
		d.refused = append(d.refused, g.alpha)
		d.refuse()
	}
	if best > 0 { // damage that nobody saw may have failed them all: keep what the best one read
		g.alpha = best
		_, _ = r.decodeBlocks(g, e, false)
	}
	return failure
}

// decodeBlocks decodes the blocks that have not passed yet, and gives the first that
// failed. Searching, it finds the scale with the first block, and ends with a block that
// is whole and that this scale does not read.
func (r *reader) decodeBlocks(g *group, e expected, searching bool) (failed int, failure error) {
	d := &g.read
	for i := range d.passed {
		if d.passed[i] {
			continue
		}
		alpha := g.alpha
		if i == 0 && searching {
			alpha = 0
		}
		result, err := r.readHeld(g, e, i, alpha)
		if err != nil {
			// Without the pattern no other block can be checked.
			if i == 0 || searching && !errors.Is(err, errErased) {
				return i, err
			}
			if failure == nil {
				failed, failure = i, err
			}
			continue
		}
		d.passed[i] = true
		if i == 0 {
			g.alpha = result.Alpha
		}
		if i == 0 && e.isKey() {
			copy(g.key, d.pattern)
		}
		if result.Stats.Quality < d.worst.Quality {
			d.worst.Quality, d.worst.Distance = result.Stats.Quality, result.Stats.Distance
		}
	}
	return failed, failure
}

// read returns the integers of a block: at the scale that is known, or searching.
func (r *reader) read(g *group, e expected, block int, y []float32, alpha float64, accept lattice.Accept) (lattice.Result, error) {
	switch {
	case !e.isKey():
		return g.lattice.Again(y, alpha, accept)
	case r.alpha > 0 && r.tolerance == 0:
		return g.lattice.At(y, r.alpha, accept)
	case block == 0 && r.alpha > 0:
		return g.lattice.Near(y, r.alpha, r.tolerance, accept)
	case alpha == 0:
		return g.lattice.SearchExcept(y, g.read.refused, accept)
	}
	return g.lattice.At(y, alpha, accept)
}
