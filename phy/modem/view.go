package modem

// seen says where the last frame's symbols lie.
type seen struct {
	lead, end int
	reference float64 // the symbol at which the phase was the Sync's
}

// Symbols returns the complex symbols behind the preamble of the last frame that was
// demodulated, on the axis that all devices have in common: what is beside it is noise,
// and of devices that are out of phase. Erased ones need not be 0. They hold until the next
// frame, and are not to be changed; what symbols leave in each other is still in them.
func (d *Demodulator) Symbols() []complex64 { return d.z[d.seen.lead:d.seen.end] }

// Phase returns by how much the common phase had moved at one of these symbols beyond the
// Sync's phase and frequency, as it was tracked; 0 where it was held.
func (d *Demodulator) Phase(symbol int) Radians {
	return Radians(d.track.at(float64(d.seen.lead+symbol), d.seen.reference))
}
