package phy

import (
	"fmt"
	"math"
	"strings"

	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// clippedNote is what to say of n clipped samples.
func clippedNote[T ~int | ~int64](n T) string {
	return fmt.Sprintf("%d samples clipped: lower the receiver's gain", n)
}

// blame adds to a failure what the receiver said of the samples, unless the failure
// says it already.
func (w *Waveform) blame(failure string) string {
	if failure == "" || w.void != "" || w.clipped == 0 || strings.Contains(failure, "clipped") {
		return failure
	}
	return failure + "; " + clippedNote(w.clipped)
}

// demodulate finds the frame in the capture and fills g.soft, in units of a
// device of gain 1 that sends the digit 1. It says in a few words what failed.
func (w *Waveform) demodulate(number int, g *group, repeat uint8, at radio.SampleIndex) string {
	g.found = modem.Sync{}
	_, header, start := w.prefix(g)
	preamble := header - frame.HeaderSymbols
	n := start - preamble + w.payload.Symbols()
	if w.heard == 0 {
		return "no sample of the frame was received"
	}
	if w.untraced {
		return fmt.Sprintf("no preamble within %d samples of where it was due", w.cfg.Reach)
	}
	found, err := w.detector.First(w.capture)
	if err != nil {
		w.missedFrame()
	} else {
		w.missed = 0
	}
	switch {
	case err == nil:
	case w.cfg.Phase != nil && w.hasTimed:
		found = w.timing
	default:
		return "no preamble"
	}
	found = w.detector.Settle(w.capture, found, modem.Symbols(n))
	if w.punctual && err == nil {
		w.timing, w.hasTimed = found, true
	}
	found = w.holdTiming(g, found, at)
	// One common phase serves all phases of a round, so that gains are the same.
	if w.cfg.Phase != nil {
		found.Theta, found.Offset = *w.cfg.Phase, 0
	} else if w.slot.Transmission == TxKey && !g.held {
		g.sync, g.at, g.held = found, at, true
	} else if g.held {
		found = found.Hold(g.sync, modem.Samples(at-g.at))
	}
	g.found = found
	if cap(g.soft) < n {
		g.soft, g.sum, g.erased = make([]float32, n), make([]float32, n), make([]bool, n)
	}
	g.soft, g.sum, g.erased = g.soft[:n], g.sum[:n], g.erased[:n]
	report := w.demod.Demodulate(g.soft, g.erased, w.capture, found)
	switch {
	case report.Erased > 0 && report.Clipped > 0:
		return clippedNote(report.Clipped)
	case report.Erased > 0:
		return fmt.Sprintf("%d symbols erased", report.Erased)
	case w.clipped > 0 && w.cfg.Receive.Clip == 0: // nobody knows which
		return clippedNote(w.clipped)
	case w.invalid > 0: // they are 0 now, and nobody knows which
		return fmt.Sprintf("%d samples were no numbers", w.invalid)
	}
	// A header that cannot be read is no verdict: the check weights are those of the
	// frame that is expected, so that another one fails its checks.
	h, err := frame.DecodeHeader(g.soft)
	if err == nil && h != w.header(number, repeat) {
		return fmt.Sprintf("a frame of run %d, round %d, attempt %d, %v, where another was expected", h.Run, h.Round, h.Attempt, Transmission(h.Transmission%Transmissions))
	}
	scale := 1 / float32(w.unit)
	for k := range g.soft {
		g.soft[k] *= scale
	}
	return ""
}

// sameInstant is how far, in samples, two frames' instants may lie apart by chance.
const sameInstant = 1.0

// holdTiming gives a frame the timing of the round's first one: what a fractional
// delay leaves of the pulse's edges weighs differently at another instant, and the
// gains would change with it. An instant further off is no chance: samples were
// lost that nobody noticed.
func (w *Waveform) holdTiming(g *group, found modem.Sync, at radio.SampleIndex) modem.Sync {
	instant := found.Payload + modem.Samples(at-w.due)
	if !g.timed {
		g.instant, g.timed = instant, true
		return found
	}
	shift := g.instant - instant
	if math.Abs(float64(shift)) > sameInstant {
		return found
	}
	found.Start += shift
	found.Payload += shift
	return found
}

// decode turns the combined soft symbols into integers, block by block. The
// scale is found with the first block of phase 1 and holds for the round. A scale
// that does not read all blocks of phase 1 makes room for the next.
func (w *Waveform) decode(g *group) string {
	searching := w.slot.Transmission == TxKey && w.cfg.Alpha == 0
	g.refused = g.refused[:0]
	for failure := ""; ; {
		block, err := w.decodeBlocks(g)
		if err == nil {
			return ""
		}
		if failure == "" { // the finest scale's says most
			failure = fmt.Sprintf("block %d: %v", block+1, err)
		}
		if !searching || block == 0 {
			return failure
		}
		g.refused = append(g.refused, g.alpha)
	}
}

// decodeBlocks decodes at one scale, and gives the block that failed.
func (w *Waveform) decodeBlocks(g *group) (int, error) {
	symbols := g.patterns.Symbols()
	payload := g.sum[frame.HeaderSymbols+symbols:]
	worst := w.report
	for i := range w.payload.Blocks() {
		from, to := w.payload.BlockSymbols(i)
		// The pattern is read together with the first block: alone it is too short
		// to show the lattice.
		joint := payload[from:to]
		skip := 0
		if i == 0 {
			g.joint = append(append(g.joint[:0], g.sum[frame.HeaderSymbols:frame.HeaderSymbols+symbols]...), joint...)
			joint, skip = g.joint, symbols
		}
		accept := func(y []int32) bool {
			for k, v := range y[:skip] {
				g.pattern[k] = int64(v)
			}
			return w.payload.DecodeBlock(g.y, i, y[skip:], g.pattern)
		}
		result, err := w.read(g, i, joint, accept)
		if err != nil {
			return i, err
		}
		if i == 0 {
			g.alpha = result.Alpha
		}
		if result.Stats.Quality < worst.Quality {
			worst.Quality, worst.Distance = result.Stats.Quality, result.Stats.Distance
		}
	}
	w.report = worst
	return 0, nil
}

// read gives the integers of a block: at the scale that is known, or searching.
func (w *Waveform) read(g *group, block int, y []float32, accept lattice.Accept) (lattice.Result, error) {
	switch {
	case w.cfg.Alpha > 0 && w.cfg.Tolerance == 0:
		return g.receiver.At(y, w.cfg.Alpha, accept)
	case w.slot.Transmission == TxKey && block == 0 && w.cfg.Alpha > 0:
		return g.receiver.Near(y, w.cfg.Alpha, w.cfg.Tolerance, accept)
	case w.slot.Transmission == TxKey && block == 0:
		return g.receiver.SearchExcept(y, g.refused, accept)
	}
	return g.receiver.At(y, g.alpha, accept)
}
