package phy

import "math"

// Alpha returns the scale of the current attempt, retry gains folded in, as in
// Reception.Alpha.
func (w *WaveformReceiver) Alpha() float64 { return w.groups.alpha() * w.retries.mean(w.slot) }

// DigitLevel returns the amplitude at which the digit 1 of a device of gain 1 arrives: the
// unit in which soft symbols are multiplied by Alpha.
func (w *WaveformReceiver) DigitLevel() float64 { return w.unit }

// Factors returns the integers c_g by which the groups' results of the current attempt
// are brought to one scale.
func (w *WaveformReceiver) Factors() []int64 {
	factors := make([]int64, len(w.groups))
	for i, g := range w.groups {
		factors[i] = g.scale
	}
	return factors
}

// Gains writes the scaled gains c_g H_i of the last transmission, solved from the
// received patterns, to dst, and tells whether there are any. The harness of a
// simulation compares them with what the channel was told: a gain near the middle
// between two integers may be read as either. RealGains has them for a judge of rounds.
func (w *WaveformReceiver) Gains(dst []float64) bool { return w.groups.gains(dst) }

// Scaled writes the effective scaled gains c_g round(alpha_g h_i g_i) of the last
// attempt to dst, where h holds the channel's real gains and g_i is the device's
// retry gain. It is for the harness of a simulation: a receiver does not know h.
func (w *WaveformReceiver) Scaled(dst, h []float64) {
	for i, own := range w.retries.gains {
		g := w.groups.of(i)
		dst[i] = float64(g.scale) * math.Round(g.alpha*h[i]*float64(own))
	}
}

// RealGains writes what the received patterns of the last transmission tell of each
// device's real gain to h: H_i/(alpha_g g_i), where g_i is the gain that the
// device drew for a retry. slack gets the most by which rounding to the integer H_i moved
// it, 1/(2 alpha_g g_i). It reports whether the patterns are those of integer gains;
// otherwise nothing is known of them. The server judges a round by it, and never the
// channel.
func (w *WaveformReceiver) RealGains(h, slack []float64) bool {
	if !w.Gains(h) {
		return false
	}
	for i, own := range w.retries.gains {
		g := w.groups.of(i)
		scale := g.alpha * float64(own)
		if !(scale > 0) {
			return false
		}
		h[i] /= float64(g.scale) * scale
		slack[i] = 1 / (2 * scale)
	}
	return true
}

// TurnsGroups reports whether the receiver goes by the phase of each group's sum, so
// that a sum of negative gains is turned with all of them. A phase that is known leaves
// signs as they are.
func (w *WaveformReceiver) TurnsGroups() bool { return w.cfg.Phase == nil }
