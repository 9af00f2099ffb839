package phy

// RealGains writes what the received patterns of the last transmission tell of each
// device's real gain to h: H_i/(alpha_g g_i), where g_i is the gain that the
// device drew for a retry. slack gets the most by which rounding to the integer H_i moved
// it, 1/(2 alpha_g g_i). It reports whether the patterns are those of integer gains;
// otherwise nothing is known of them. The server judges a round by it, and never the
// channel.
func (w *Waveform) RealGains(h, slack []float64) bool {
	if !w.Gains(h) {
		return false
	}
	for i, d := range w.devices {
		g := w.groups[i/w.cfg.Group]
		scale := g.alpha * float64(d.gain)
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
func (w *Waveform) TurnsGroups() bool { return w.cfg.Phase == nil }
