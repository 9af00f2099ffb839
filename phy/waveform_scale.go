package phy

import (
	"math"
)

// The gains that devices draw for a retry are uniform in [retryLeast, 1].
const retryLeast = 0.7

// drawRetryGains gives every device its gain for the attempt: 1 in the first,
// and then fresh ones that pose a new lattice problem (physics.md
// section 3). Where the scale is known there is no such problem, and a gain that
// is on its lattice or aligned must stay so.
func (w *Waveform) drawRetryGains() {
	w.retry.Start(w.slot.Round, w.slot.Attempt)
	for _, d := range w.devices {
		d.gain = 1
		if u := float64(w.retry.Uint64()>>11) * 0x1p-53; w.drawsRetryGains() {
			d.gain = float32(retryLeast + (1-retryLeast)*u)
		}
	}
}

// drawsRetryGains tells whether devices draw gains for the attempt.
func (w *Waveform) drawsRetryGains() bool { return w.slot.Attempt > 0 && w.cfg.Alpha == 0 }

// meanRetryGain is folded into alpha, so that M keeps its scale in the mean. The
// gains of attempts that succeed are not a fair sample: what this bias leaves is
// within the spread of [0.7, 1].
func (w *Waveform) meanRetryGain() float64 {
	if !w.drawsRetryGains() {
		return 1
	}
	return (1 + retryLeast) / 2
}

// join adds the groups' results, brought to one scale by integers that are
// chosen in phase 1, and puts their patterns one behind the other.
func (w *Waveform) join(rx *Reception) {
	if w.slot.Transmission == TxKey {
		w.reconcile()
	}
	rx.Y.Clear()
	pattern := rx.Pattern
	for _, g := range w.groups {
		w.cfg.Modulus.AddScaled(rx.Y, g.scale, g.y)
		pattern = pattern[copy(pattern, g.pattern):]
	}
	rx.Alpha = w.Alpha()
}

// groupMismatch is how far the groups' products c_g alpha_g may differ if a
// smaller c_g is to be had for it.
const groupMismatch = 0.01

// reconcile chooses the c_g: the smallest whose products agree well enough, or
// else those that agree best. A known scale is that of all groups: what aligned
// ones differ by is the fluctuation of their gains, and part of h.
func (w *Waveform) reconcile() {
	if w.cfg.Alpha > 0 {
		for _, g := range w.groups {
			g.scale = 1
		}
		return
	}
	first := w.groups[0]
	best := math.Inf(1)
	for c := int64(1); c <= w.cfg.GroupScale && best > groupMismatch; c++ {
		target, worst := float64(c)*first.alpha, 0.0
		fits := true
		for _, g := range w.groups {
			cg := math.Round(target / g.alpha)
			fits = fits && cg >= 1 && cg <= float64(w.cfg.GroupScale)
			worst = math.Max(worst, math.Abs(cg*g.alpha/target-1))
		}
		if !fits || worst >= best {
			continue
		}
		best = worst
		for _, g := range w.groups {
			g.scale = int64(math.Round(target / g.alpha))
		}
	}
	if math.IsInf(best, 1) { // scales too far apart: they are added as they are
		for _, g := range w.groups {
			g.scale = 1
		}
	}
}

// Alpha gives the scale of the current attempt, retry gains folded in, as in
// Reception.Alpha.
func (w *Waveform) Alpha() float64 {
	sum := 0.0
	for _, g := range w.groups {
		sum += float64(g.scale) * g.alpha
	}
	return sum / float64(len(w.groups)) * w.meanRetryGain()
}

// Gains writes the scaled gains c_g H_i of the last transmission, solved from the
// received patterns, to dst, and tells whether there are any. The harness of a
// simulation compares them with what the channel was told: a gain near the middle
// between two integers may be read as either. RealGains has them for a judge of rounds.
func (w *Waveform) Gains(dst []float64) bool {
	for _, g := range w.groups {
		h, ok := g.patterns.Solve(g.pattern)
		if !ok {
			return false
		}
		for i, v := range h {
			dst[g.first+i] = float64(g.scale * v)
		}
	}
	return true
}

// Scaled writes the effective scaled gains c_g round(alpha_g h_i g_i) of the last
// attempt to dst, where h holds the channel's real gains and g_i is the device's
// retry gain. It is for the harness of a simulation: a receiver does not know h.
func (w *Waveform) Scaled(dst, h []float64) {
	for i, d := range w.devices {
		g := w.groups[i/w.cfg.Group]
		dst[i] = float64(g.scale) * math.Round(g.alpha*h[i]*float64(d.gain))
	}
}
