package diagnosis

import (
	"fmt"
	"math"
	"slices"
)

// cause is what may have lost frames: how far its figure is beyond what frames survive, 1
// being the border, and a clause. A vague one is told where there is no other.
type cause struct {
	weight float64
	text   string
	vague  bool
}

// Sentence says how many frames were not read, and the likeliest reason; "" if all were.
func (r Report) Sentence() string {
	causes := r.Causes()
	if len(causes) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d frames were not read: %s", r.Lost, r.Frames, causes[0])
}

// Causes returns what may have lost frames, or rounds whose frames were read, in clauses
// with the figures and with what to do, the likeliest first; nil if nothing was lost.
func (r Report) Causes() []string {
	if r.Lost == 0 && r.Attempts == 0 {
		return nil
	}
	var all []cause
	if 2*r.NotFound > r.Lost {
		all = r.unseen()
	} else if r.Lost > 0 {
		all = r.damaged()
	}
	all = append(all, r.refused()...)
	// What bends a figure bends others, too: the strongest are told.
	slices.SortStableFunc(all, func(a, b cause) int { return -compare(a.weight, b.weight) })
	var texts, vague []string
	for _, c := range all {
		switch {
		case !(c.weight >= 1):
		case c.vague:
			vague = append(vague, c.text)
		default:
			texts = append(texts, c.text)
		}
	}
	switch {
	case len(texts) > 0:
		return texts
	case len(vague) > 0:
		return vague
	}
	return []string{r.crowded()}
}

// compare orders weights, of which those that are no numbers are the least.
func compare(a, b float64) int {
	switch {
	case a > b || math.IsNaN(b) && !math.IsNaN(a):
		return 1
	case a < b || math.IsNaN(a) && !math.IsNaN(b):
		return -1
	}
	return 0
}

// unseen says why preambles are not found.
func (r Report) unseen() []cause {
	const heard = 1.5 // times the power of the silence
	var all []cause
	if r.Standing > 30 {
		all = append(all, cause{weight: 100, text: fmt.Sprintf("an offset stands under the signal, %.0f dB above what moves in the silence around frames, and hides the preambles (DC): tune the receiver beside the carrier, or switch its DC correction on", decibels(r.Standing))})
	}
	if !(r.Excess > heard) {
		return append(all, cause{weight: 10, text: fmt.Sprintf("nothing was heard where frames were due, whose power is %.2f times that of the silence around them: check transmitters, antennas and radio.frequency_hz, and raise gains", r.Excess)})
	}
	if offset := math.Abs(r.Line); offset > r.Link.reach() {
		all = append(all, cause{weight: 20, text: fmt.Sprintf("the carrier is %s off, and preambles are searched for within %s: tune the receiver that much nearer, or give it the reference of the devices", hertz(r.Line*r.Link.SampleRate), hertz(r.Link.reach()*r.Link.SampleRate))})
	}
	return append(all, cause{vague: true, weight: 1, text: fmt.Sprintf("a signal %.0f dB above the silence is there, and no preamble in it: a sender of something else, link.sample_rate_hz, link.samples_per_symbol or link.preamble_symbols of another link, or a phase that wanders within a preamble", decibels(r.Excess))})
}

// reach is up to which offset preambles are found, in cycles a sample: without a search one
// may turn by half a turn.
func (l Link) reach() float64 {
	if l.PreambleSymbols == 0 || l.SamplesPerSymbol == 0 {
		return float64(l.MaxOffset)
	}
	return max(float64(l.MaxOffset), 0.5/float64(l.PreambleSymbols*l.SamplesPerSymbol))
}

// damaged says why frames that were found are not read.
func (r Report) damaged() []cause {
	return slices.Concat(r.interrupted(), r.turned(), r.displaced(), r.smeared())
}

// interrupted is about symbols that are missing.
func (r Report) interrupted() []cause {
	hit := zero(r.Erased - r.Missing)
	if r.Clipped > 0 { // which is erased
		hit = 0
	}
	if r.bursts() {
		hit = max(hit, r.Struck)
	}
	return []cause{
		{weight: zero(r.Clipped) / 10, text: fmt.Sprintf("%.0f samples of a frame were clipped: lower the receiver's gain, or raise link.receiver_full_scale", r.Clipped)},
		{weight: hit / 0.0025, text: fmt.Sprintf("bursts struck %.1f %% of a frame: find who else sends, or raise link.frame_repeats, which fills in what was struck", 100*hit)},
	}
}

// bursts reports whether stretches stand out, more of them than symbols do by chance.
func (r Report) bursts() bool { return r.Struck > 0.02 }

// zero returns x, and 0 if it is no number.
func zero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// turned is about phases.
func (r Report) turned() []cause {
	if r.Link.Held {
		return []cause{{weight: r.Turn / 0.1, text: fmt.Sprintf("the phase moves by %.2g rad over a frame of %.3g ms, a carrier offset of %s, and gains that are emulated have it held: give devices and receiver one reference, or use channel.gains = \"continuous\", which has it tracked", r.Turn, 1e3*r.Seconds, hertz(r.Turn/(2*math.Pi*r.Seconds)))}}
	}
	all := []cause{
		{weight: r.Wander / 0.025, text: fmt.Sprintf("the common phase wanders by %.2g rad from one %.2g ms to the next, beside an even turn, faster than it can be followed: an oscillator of less phase noise, or more symbols a second", r.Wander, 1e3*r.Seconds/parts)},
	}
	if !r.bursts() && r.Wander < 0.1 && r.Tone == 0 { // which leave no axis, either
		if r.MostReal < 0.8 && r.MostReal-r.LeastReal < 0.25 && r.Quiet > 20 {
			all = append(all, cause{weight: (1 - r.MostReal) / 0.05, text: fmt.Sprintf("devices' phases lie apart, so that symbols have no common axis (realness %.2f, 1 being in phase): align them by a calibration (calibration.file; calibration.quick_blocks where phases do not last)", (r.MostReal+r.LeastReal)/2)})
		} else {
			all = append(all, cause{weight: (r.MostReal - r.LeastReal) / 0.15, text: fmt.Sprintf("devices' carriers turn against each other: the symbols' axis fades from %.2f to %.2f within a frame of %.3g ms: give devices one reference, or calibrate, so that each makes up for its own offset", r.MostReal, r.LeastReal, 1e3*r.Seconds)})
		}
	}
	return all
}

// displaced is about time, and gains that change with it.
func (r Report) displaced() []cause {
	whole := truth(!r.bursts())
	return []cause{
		{weight: math.Abs(zero(r.Slip)) / 0.15 * whole, text: fmt.Sprintf("sample clocks run apart by %.3g ppm: symbols slip by %.2g of their length over a frame of %.3g ms, more than is followed: give radios one clock, or calibrate", 1e6*math.Abs(r.Slip)/r.symbols(), math.Abs(r.Slip), 1e3*r.Seconds)},
		{weight: (1 - r.Timed) / 0.1 * whole, text: fmt.Sprintf("devices' sample clocks run apart from each other: of the line at the symbol rate %.0f %% are left at a frame's end: give devices one clock, or calibrate", 100*r.Timed)},
		{weight: zero(r.Fade-1.4) / 0.3 * whole * truth(!(r.Image > 0.1)), text: fmt.Sprintf("gains change within a frame, whose strong parts have %.2g times the power of its weak ones: nothing may move, and the receiver's gain control is to be off; or smaller frames, by a smaller ring or more symbols a second", r.Fade)},
	}
}

// symbols returns the length of a frame.
func (r Report) symbols() float64 {
	return r.Seconds * r.Link.SampleRate / float64(r.Link.SamplesPerSymbol)
}

// smeared is about what lies under and between symbols.
func (r Report) smeared() []cause {
	const device = 1.76 // dB that a symbol of 1 has above the mean of digits -1, 0 and 1
	each := r.SNR - 20*math.Log10(float64(max(1, r.Devices))) - device
	quiet := r.Quiet - 20*math.Log10(float64(max(1, r.Devices))) - device
	need := needed(r.Devices)
	const clear = 36 // dB at which no eye is closed
	short := (need - each) / 3
	all := []cause{
		{weight: r.Echo / 0.05, text: fmt.Sprintf("the eye is closed before the lattice: an echo or filter leaves %.0f %% of a symbol in the next ones, %.0f dB: shorter paths, a wider filter, or fewer symbols a second", 100*r.Echo, 2*decibels(r.Echo))},
		{weight: r.Image / 0.05, text: fmt.Sprintf("the receiver has an image at %.0f dB: balance its I and Q, or tune it beside the carrier", 2*decibels(r.Image))},
		{weight: zero(math.Max(r.Receiver, r.Carrier)) / 0.3 * truth(r.Tone == 0), text: fmt.Sprintf("an offset of %.2g times a symbol stands under the frame by the mean of guard times (DC %.2g, leaking carriers %.2g): tune the receiver beside the carrier, or calibrate, so that devices undo what leaks", math.Max(r.Receiver, r.Carrier), r.Receiver, r.Carrier)},
		{weight: r.Block * r.Link.SampleRate / 300, text: fmt.Sprintf("the receiver blocks DC up to %s, and with it a part of each symbol: switch its DC block or correction off, or lower its corner", hertz(r.Block*r.Link.SampleRate))},
	}
	switch {
	case r.Tone != 0 && quiet < need:
		all = append(all, cause{weight: max(short, 1) * 10, text: fmt.Sprintf("a tone about %s from the carrier stands %.0f dB below symbols: find who sends it, or move radio.frequency_hz", hertz(r.Tone*r.Link.SampleRate), r.Quiet)})
	case quiet > each+6 && each < max(need, clear):
		all = append(all, cause{vague: true, weight: 1 + max(0, short), text: fmt.Sprintf("the eye closes before the lattice by what comes with the signal, as by echoes, filters, blocks of DC, amplifiers or quick changes of phase: a device is %.0f dB above noise and interference, where the silence around frames would allow %.0f dB, and %d in a slot need about %.0f dB: undo what was changed at the boards' filters, DC correction and gains", each, quiet, r.Devices, need)})
	case short > 0:
		all = append(all, cause{weight: 0.5 + short, text: fmt.Sprintf("the signal-to-noise ratio is %.0f dB a device, and %d in a slot need about %.0f dB: raise gains, or have fewer in a slot (link.group_size), or repeats (link.frame_repeats)", each, r.Devices, need)})
	}
	return all
}

// needed returns about how many dB a device needs so that so many in a slot are read at
// times (phy/README.md, section 3). More than four lack luck with their gains, not signal.
func needed(devices int) float64 {
	table := [...]float64{8, 8, 20, 27, 35}
	return table[min(devices, len(table)-1)]
}

// refused is about attempts whose frames were read, and that a check declared void.
func (r Report) refused() []cause {
	share := func(n int) float64 { return 2 * float64(n) / float64(max(1, r.Attempts)) }
	return []cause{
		{weight: share(r.Changed) * 2, text: fmt.Sprintf("gains change between the frames of an attempt: in %d of %d void attempts patterns differ from b's: nothing may move, and phases must last for an attempt; one reference for all, or shorter rounds", r.Changed, r.Attempts)},
		{weight: share(r.Odd), text: fmt.Sprintf("gains are not those that are known: %d of %d void attempts were refused by the gains check: calibrate anew", r.Odd, r.Attempts)},
		{weight: share(r.Noisy), text: fmt.Sprintf("what decodes is no noise where it should be in %d of %d void attempts, though their frames were read: gains of b and of later frames differ, or encryption.delta_max is too large", r.Noisy, r.Attempts)},
		{weight: share(r.Silent), text: fmt.Sprintf("all gains were read as 0 in %d of %d void attempts: raise gains, or link.max_alpha", r.Silent, r.Attempts)},
	}
}

// crowded is what is left: signal and noise are fine, and no scale reads.
func (r Report) crowded() string {
	if r.Lost == 0 {
		return fmt.Sprintf("%d attempts were void, for reasons that log.jsonl has", r.Attempts)
	}
	if r.Unscaled == 0 {
		return "b is read, and what follows is not, at no fault that shows: gains or phases that change within an attempt; nothing may move, or shorter rounds"
	}
	if r.Devices < 2 {
		return fmt.Sprintf("no scale reads the one device in a slot, at %.0f dB: gains, or link.max_alpha, may be too small", r.SNR)
	}
	return fmt.Sprintf("no scale brings the gains of %d devices in a slot near whole numbers, though noise and interference would allow it (%.0f dB): smaller groups (link.group_size), more attempts, whose gains are others (encryption.attempts_per_round), or gains aligned by a calibration (link.regime = \"mean-aligned\")", r.Devices, r.SNR)
}

// hertz writes a frequency in three digits.
func hertz(f float64) string {
	unit := "Hz"
	switch size := math.Abs(f); {
	case size >= 1e6:
		f, unit = f/1e6, "MHz"
	case size >= 1e3:
		f, unit = f/1e3, "kHz"
	}
	return fmt.Sprintf("%.3g %s", f, unit)
}
