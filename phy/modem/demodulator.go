package modem

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
)

// Tracking is how a Demodulator follows the common phase along a frame.
type Tracking int

const (
	// Hold trusts the Sync's phase and frequency to the frame's end.
	Hold Tracking = iota
	// Follow corrects the frequency, and follows what the phase wanders beside it: an
	// oscillator's noise that all devices have in common, as the receiver's own. How fast
	// it wanders is found in the frame; where it does not, a line is left. It is pinned at
	// the preamble.
	Follow
)

// The bounds and default of Receive.Block.
const (
	minBlock     Symbols = 16
	maxBlock     Symbols = 1 << 16
	DefaultBlock Symbols = 64
)

// Receive is how a frame's symbols are received.
//
// Tracking takes a block's phase from the argument of the sum of squares of its
// complex symbols, halved, which needs symbols to be real and nothing else. Where
// all devices are in phase or in opposite phase that has the accuracy of the
// noise. Devices at other phases add their cross products, up to 1/sqrt(2 Block)
// radians a block that no signal-to-noise ratio removes; and devices in quadrature
// may leave no axis at all (Report.Realness). Symbols must not turn by more than a
// quarter turn a block beyond Sync.Offset.
type Receive struct {
	Tracking Tracking
	// Block is the number of symbols whose phase is taken together, 16 to 65536. 0
	// stands for DefaultBlock.
	Block Symbols
	// Clip is the magnitude of a component from which a sample counts as clipped:
	// radio.ClipLevel tells it; 0 for none.
	Clip Amplitude
}

// Frame is a frame in a capture.
type Frame struct {
	Samples []complex64
	Sync    Sync
	// Known are the symbols behind the preamble that all devices send alike, with
	// Preamble.Level: the first of those that are demodulated.
	Known []float32
	// Before and After are how many samples at the beginning and at the end of Samples
	// hold no device's signal. They show what offset stands under it: 0 for none, and
	// none is taken off.
	Before, After int
	// Image is the receiver's image where an earlier frame has shown it, as Report has it:
	// a short frame cannot.
	Image complex128
	// Block is the corner of the receiver's DC block where an earlier frame has shown it,
	// as Report has it, or what Report has as likely, to be tried.
	Block CyclesPerSample
	// Tone is the frequency of a narrow interferer where an earlier frame has shown it, as
	// Report has it.
	Tone CyclesPerSample
	// Settled says that the Sync's timing is that of an earlier frame, whose windows were
	// settled by its own symbols.
	Settled bool
	// Hold has the Sync's phase and frequency be trusted whatever Receive says.
	Hold bool
}

// Report is what happened while a frame was received.
type Report struct {
	// Erased is the number of symbols flagged, Missing that of those among them
	// which lie outside the capture.
	Erased, Missing Symbols
	// Invalid is the number of samples of the frame that are no numbers, absurdly
	// large, or marked as lost; Clipped that of those that reach Receive.Clip.
	Invalid, Clipped int
	// Realness is the magnitude of the mean square of the symbols over their mean
	// power, median over blocks: near 1 for devices in phase, near 0 where no
	// common axis exists. It is 0 without tracking.
	Realness float64
	// Tracked tells that there was phase to be tracked. Otherwise Sync's was held.
	Tracked bool
	// Drift is the phase tracked from the preamble to the frame's end, and Offset the
	// frequency, Sync's and what was tracked.
	Drift  Radians
	Offset CyclesPerSample
	// Receiver and Carrier are the offsets that were taken off, in samples: what stands
	// still, and what turns with the devices' carriers.
	Receiver, Carrier complex128
	// Image is the receiver's image, the factor of the signal's conjugate; 0 if there is
	// none beyond the noise, or nothing turns.
	Image complex128
	// Tone is the frequency of a narrow interferer that was taken off, of the magnitude
	// Strength in samples; 0 if there is none beyond the noise.
	Tone     CyclesPerSample
	Strength float64
	// Block is the corner of a DC block that the receiver has, which was undone; 0 if there
	// is none beyond the noise.
	Block CyclesPerSample
	// Likely is the corner of a DC block that there may be, which was not undone.
	Likely CyclesPerSample
	// Echo is the magnitude of the strongest interference between symbols that all
	// devices have in common, over the symbol's own; 0 if there is none beyond the noise.
	Echo float64
	// Clock is by how much symbols come apart from where the receiver's clock has them,
	// in samples a sample; 0 if there is nothing beyond the noise.
	Clock float64
	// Late is by how much later than the Sync has them the windows were taken.
	Late Samples
}

// Demodulator returns the symbols of frames. It is for one goroutine.
type Demodulator struct {
	sps       int
	recv      receiver
	receive   Receive
	preamble  []float32
	known     []float32 // the preamble and what is known behind it
	z         []complex64
	seen      seen
	flags     []bool
	track     tracker
	block     dcBlock
	silence   silence
	tones     tones
	image     image
	nyquist   nyquist
	common    interference
	clock     clock
	placement placement
	bursts    bursts
}

// NewDemodulator makes a demodulator.
func NewDemodulator(cfg Config, receive Receive) (*Demodulator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if receive.Block == 0 {
		receive.Block = DefaultBlock
	}
	if receive.Block < minBlock || receive.Block > maxBlock {
		return nil, fmt.Errorf("blocks of %d symbols: allowed are %d to %d", receive.Block, minBlock, maxBlock)
	}
	if receive.Tracking < Hold || receive.Tracking > Follow {
		return nil, fmt.Errorf("tracking %d is none", receive.Tracking)
	}
	if !(receive.Clip >= 0) {
		return nil, fmt.Errorf("a clipping level of %v", receive.Clip)
	}
	recv := cfg.Pulse.receiver(cfg.SamplesPerSymbol)
	window := 0
	if flat, ok := recv.(*integrator); ok {
		window = flat.window
	}
	return &Demodulator{
		placement: placement{sps: cfg.SamplesPerSymbol, window: window},
		sps:       cfg.SamplesPerSymbol,
		recv:      recv,
		nyquist:   newNyquist(recv),
		block:     newDCBlock(cfg.Pulse, recv, cfg.SamplesPerSymbol),
		receive:   receive,
		preamble:  cfg.PreambleSymbols(),
		track:     tracker{block: int(receive.Block)},
		clock:     newClock(cfg.SamplesPerSymbol),
		bursts:    newBursts(),
		image:     image{equations: newNormal(2), phases: newNormal(4)},
	}, nil
}

// Demodulate writes the soft symbols that follow the frame's preamble to dst and
// flags in erased, of the same length, those that depend on samples which are not
// in the capture, no numbers, clipped, or struck by a burst. They are set to 0, but for a
// flat-top symbol all of whose samples were clipped alike: it keeps the value to which it
// was. A symbol of 1 comes out as the device's real gain, samples per symbol as in
// Modulator.Scale.
//
// It allocates only for frames longer than all before.
func (d *Demodulator) Demodulate(dst []float32, erased []bool, f Frame) Report {
	f.Known = f.Known[:min(len(f.Known), len(dst))]
	lead := len(d.preamble)
	// What an echo or a pulse's end brings behind the frame is looked at, too.
	z, flags := d.room(lead + len(dst) + max(interferenceReach, d.nyquist.reach))
	end := lead + len(dst)
	w := way{
		sps: float64(d.sps), payload: float64(f.Sync.Payload), lead: lead,
		theta: float64(f.Sync.Theta), reference: float64(f.Sync.Reference), step: 2 * math.Pi * float64(f.Sync.Offset),
	}
	d.place(&w, f, len(dst))
	d.seen = seen{lead, end, w.symbol(w.reference)}
	report := d.hear(z, flags, &f, w, lead, end)
	report.Clock, report.Late = w.clock, Samples(w.payload)-f.Sync.Payload
	if d.tracks(f) {
		d.image.measure(z[lead:end], flags[lead:end], w, &d.track)
	}
	d.turnBack(z, w)
	d.known = append(append(d.known[:0], d.preamble...), f.Known...)
	if d.tracks(f) {
		d.follow(z[:end], flags, w, f.Sync, &report)
	} else {
		d.track.phase, d.track.slope = d.track.phase[:0], 0
	}
	report.Offset = f.Sync.Offset + CyclesPerSample(d.track.slope/(2*math.Pi*w.sps))
	d.takeOffsets(z, flags, w, f, end, &report)
	if d.tracks(f) && d.image.find(lead, w, &d.track, f.Image) {
		d.takeImage(z, flags, w, f, end, &report)
	}
	if d.tracks(f) {
		report.Realness = d.track.realness()
	}
	reference := w.symbol(w.reference)
	d.track.pieces(len(z), reference, func(from, to int, phase, step float64) { rotate(z[from:to], -phase, -step) })
	report.Drift = Radians(d.track.at(float64(end-1), reference))
	d.nyquist.take(z, flags)
	if flat, ok := d.recv.(*integrator); !ok || flat.window < 2 {
		d.bursts.markAxis(z[lead:end], flags[lead:end])
	}
	report.Echo = d.common.find(z, flags, d.known)
	report.Erased = 0
	if !slices.Contains(flags, true) {
		clear(erased[:len(dst)])
		d.common.take(dst, z, lead)
		return report
	}
	copy(erased[:len(dst)], flags[lead:end])
	d.common.take(dst, z, lead)
	d.common.erase(erased[:len(dst)], flags, lead)
	for k, e := range erased[:len(dst)] {
		if !e {
			continue
		}
		report.Erased++
		if z[lead+k] == 0 { // others were clipped, and keep their value
			dst[k] = 0
		}
	}
	return report
}

// place finds where n symbols are best taken, and by which clock.
func (d *Demodulator) place(w *way, f Frame, n int) {
	flat, isFlat := d.recv.(*integrator)
	if isFlat {
		flat.between = false
	}
	d.placement.clear()
	if !d.tracks(f) {
		return
	}
	w.clock = d.clock.measure(f.Samples, f.Sync.Payload, n)
	if w.clock != 0 || !f.Settled {
		w.payload += float64(d.placement.measure(f.Samples, *w, n))
	}
	if isFlat && w.clock != 0 {
		// The frame's first symbols are taken as those of a short frame are.
		flat.tune(Samples(w.payload))
		w.payload = float64(flat.first) + float64(flat.window-1)/2
		flat.between = true
	}
	d.placement.narrow(f.Samples, *w, n)
}

// hear filters the frame's samples, without what a DC block has done to them: one that
// earlier frames have shown, or that the frame itself shows for certain. One frame tells a
// corner to a fifth or so.
func (d *Demodulator) hear(z []complex64, flags []bool, f *Frame, w way, lead, end int) Report {
	silent := f.Before >= leastSilence && f.After >= leastSilence && f.Before+f.After < len(f.Samples)
	report := d.filter(z, flags, f.Samples, w, lead, end)
	if !silent {
		return report
	}
	corner, certain := d.block.find(z[min(end, lead+len(f.Known)+blockSettles):end])
	own := CyclesPerSample(corner / w.sps)
	switch {
	case f.Block != 0 && own != 0:
		f.Block = CyclesPerSample(math.Sqrt(float64(own * f.Block)))
	case certain:
		f.Block = own
	case f.Block == 0:
		report.Likely = own
		return report
	}
	f.Samples = d.block.restore(f.Samples, float64(f.Block), f.Before, f.After, d.receive.Clip)
	report = d.filter(z, flags, f.Samples, w, lead, end)
	report.Block = f.Block
	return report
}

// tracks reports whether the frame's phase is followed.
func (d *Demodulator) tracks(f Frame) bool { return d.receive.Tracking == Follow && !f.Hold }

// follow tracks the phase of symbols that were turned back by the Sync's.
func (d *Demodulator) follow(z []complex64, flags []bool, w way, s Sync, report *Report) {
	d.track.measure(z, flags, d.known)
	report.Tracked = d.track.solve(w.symbol(w.reference), d.frequencyVariance(s))
}

// frequencyVariance returns that of the frequency a preamble gives, in radians a symbol.
func (d *Demodulator) frequencyVariance(s Sync) float64 {
	const most, least = 1e-4, 1e-12 // of a square
	length := float64(len(d.preamble))
	level := float64(d.preamble[0])
	snr := float64(s.Amplitude) * float64(s.Amplitude) * level * level / max(float64(s.Noise), math.SmallestNonzeroFloat64)
	// The preamble's own figure is 6/(S L^3); a factor of 4 for what is not noise.
	return max(least, min(most, 24/(snr*length*length*length)))
}

// takeOffsets takes off what the silence around the frame shows. What was much has
// misled the tracking, which is done again.
func (d *Demodulator) takeOffsets(z []complex64, flags []bool, w way, f Frame, end int, report *Report) {
	if !d.silence.measure(f, w, &d.track, z[:end]) {
		return
	}
	symbols := d.track.energy / float64(max(1, end))
	if !d.tracks(f) {
		symbols = meanPower(z[:end])
	}
	toned := d.tones.measure(f, &d.silence, w, &d.track, z[:end], symbols)
	report.Receiver, report.Carrier = d.silence.receiver, d.silence.carrier
	d.recv.tune(f.Sync.Payload)
	still := d.recv.response(0)
	turning := d.recv.response(CyclesPerSample(w.step / (2 * math.Pi)))
	taken := power(d.silence.receiver) + power(d.silence.carrier)
	if taken > 0 {
		d.silence.take(z, w, &d.track, still, turning, quiet*symbols)
	}
	if toned {
		first, last := d.recv.footprint()
		late := float64(first+last-1)/2 - float64(f.Sync.Payload)
		d.tones.take(z, w, d.recv.response(CyclesPerSample(d.tones.frequency)), late)
		report.Tone, report.Strength = CyclesPerSample(d.tones.frequency), cmplx.Abs(d.tones.amplitude)
		taken += power(d.tones.amplitude)
	}
	if taken > 1e-4*symbols && d.tracks(f) {
		d.follow(z[:end], flags, w, f.Sync, report)
	}
}

// takeImage takes off the receiver's image, which has misled the tracking.
func (d *Demodulator) takeImage(z []complex64, flags []bool, w way, f Frame, end int, report *Report) {
	report.Image = d.image.factor
	d.image.take(z, w)
	d.follow(z[:end], flags, w, f.Sync, report)
}

func meanPower(z []complex64) float64 {
	sum := 0.0
	for _, x := range z {
		sum += power(complex128(x))
	}
	return sum / float64(max(1, len(z)))
}

// way says where in a capture a symbol lies, and at which phase: the first of the
// preamble has number 0.
type way struct {
	sps, payload     float64 // payload is the instant of symbol lead
	lead             int
	clock            float64 // beyond the receiver's, in samples a sample
	theta, reference float64 // the phase at an instant
	step             float64 // radians a sample
}

// instant returns that of a symbol.
func (w way) instant(symbol int) Samples {
	return Samples(w.payload + float64(symbol-w.lead)*w.sps*(1+w.clock))
}

// symbol returns the symbol at an instant.
func (w way) symbol(instant float64) float64 {
	return float64(w.lead) + (instant-w.payload)/(w.sps*(1+w.clock))
}

// phase returns the carrier's at an instant, without what is tracked.
func (w way) phase(instant float64) float64 { return w.theta + w.step*(instant-w.reference) }

func (d *Demodulator) room(n int) ([]complex64, []bool) {
	if cap(d.z) < n {
		d.z, d.flags = make([]complex64, n), make([]bool, n)
	}
	return d.z[:n], d.flags[:n]
}

// turnBack turns symbols by the Sync's phase and frequency.
func (d *Demodulator) turnBack(z []complex64, w way) {
	if placed(Samples(w.payload), len(z)*d.sps) {
		rotate(z, -w.phase(float64(w.instant(0))), -w.step*w.sps*(1+w.clock))
	}
}

// filter sets z to the complex symbols, and flags those that are damaged, which are set
// to 0. It reports on those of the payload, from lead to end.
func (d *Demodulator) filter(z []complex64, flags []bool, samples []complex64, w way, lead, end int) Report {
	clear(flags)
	var report Report
	if !placed(Samples(w.payload), len(z)*d.sps) {
		for k := range z {
			z[k], flags[k] = 0, true
		}
		return Report{Erased: Symbols(end - lead), Missing: Symbols(end - lead)}
	}
	stretch := w.stretch(len(z))
	for from := 0; from < len(z); {
		to := min(from+stretch, len(z))
		for _, border := range [...]int{lead, end} {
			if from < border {
				to = min(to, border)
			}
		}
		share, to := d.placement.until(from, to, lead, end)
		part := d.filterStretch(z[from:to], flags[from:to], samples, w.instant(from), share)
		if from >= lead && from < end {
			report.Erased += part.Erased
			report.Missing += part.Missing
			report.Invalid += part.Invalid
			report.Clipped += part.Clipped
		}
		from = to
	}
	return report
}

// stretch returns how many symbols may be filtered at instants that are evenly apart by
// the receiver's clock: until they are off by 1/64 sample.
func (w way) stretch(n int) int {
	const most = 1.0 / 64
	if off := math.Abs(w.clock) * w.sps; off*float64(n) > most {
		return max(1, int(most/off))
	}
	return max(1, n)
}

// filterStretch filters symbols that are evenly apart.
func (d *Demodulator) filterStretch(z []complex64, flags []bool, samples []complex64, instant Samples, s share) Report {
	d.tune(instant, s)
	first, end := d.recv.footprint()
	c := comb{first, end, d.sps}
	from, to := c.inside(len(samples), len(z))
	flagger := c.flagger(flags, samples, d.receive.Clip)
	for k := range flags[:from] {
		flags[k] = true
	}
	for k := range flags[to:] {
		flags[to+k] = true
	}
	if from < to {
		d.tune(instant+Samples(from*d.sps), s)
	}
	// Samples are looked at, filtered, and looked at again: as many as remain at hand.
	rest := samples
	for at := from; at < to; at += burstChunk {
		chunk := min(at+burstChunk, to)
		flagger.until(chunk)
		d.recv.filter(z[at:chunk], rest)
		if flagger.damage != (damage{}) {
			d.settle(z[at:chunk], flags[at:chunk], rest)
		}
		d.bursts.markWindows(z[at:chunk], flags[at:chunk], rest, d.recv, d.sps)
		rest = rest[min(len(rest), burstChunk*d.sps):]
	}
	flagger.until(len(z))
	report := Report{Missing: Symbols(len(z) - (to - from)), Invalid: flagger.damage.invalid, Clipped: flagger.damage.clipped}
	for k, e := range flags {
		if !e {
			continue
		}
		report.Erased++
		if k < from || k >= to {
			z[k] = 0
		}
	}
	return report
}

// tune sets the filter to an instant.
func (d *Demodulator) tune(instant Samples, s share) {
	d.recv.tune(instant)
	if flat, ok := d.recv.(*integrator); ok {
		flat.take(s)
	}
}

// placed reports whether an instant can be an index: a Sync need not come from a
// Detector.
func placed(t Samples, length int) bool {
	const far = 1 << 50
	return t > -far && t < far && int64(length) < far
}

// renew is how many turns of a phasor are made by multiplication before it is
// computed afresh.
const renew = 256

// phasors are those of symbols that turn evenly, from one renewal to the next.
type phasors [renew]complex64

// rotate multiplies z[k] by e^{j(phase + k step)}.
func rotate(z []complex64, phase, step float64) {
	if step == 0 {
		w := complex64(cmplx.Rect(1, phase))
		re, im := real(w), imag(w)
		for k, x := range z {
			z[k] = complex(real(x)*re-imag(x)*im, real(x)*im+imag(x)*re)
		}
		return
	}
	turn := turnBy(step)
	one, two, three, four := together(turn)
	for from := 0; from < len(z); from += renew {
		w := cmplx.Rect(1, phase+step*float64(from))
		part := z[from:min(from+renew, len(z))]
		for ; len(part) >= 4; part = part[4:] {
			x, u := (*[4]complex64)(part), complex64(w)
			x[0] = times(x[0], u)
			x[1] = times(x[1], times(u, one))
			x[2] = times(x[2], times(u, two))
			x[3] = times(x[3], times(u, three))
			w *= four
		}
		for k := range part {
			part[k] *= complex64(w)
			w *= turn
		}
	}
}

// times multiplies in single precision: the compiler does so in double precision.
func times(x, y complex64) complex64 {
	return complex(float32(real(x)*real(y))-float32(imag(x)*imag(y)), float32(real(x)*imag(y))+float32(imag(x)*real(y)))
}

// set sets turns[k] to e^{j k step}, as far as n symbols need them.
func (turns *phasors) set(step float64, n int) {
	one, two, three, four := together(turnBy(step))
	first := complex(1, 0)
	for w := turns[:(min(n, renew)+3)/4*4]; len(w) >= 4; w = w[4:] {
		x, u := (*[4]complex64)(w), complex64(first)
		x[0], x[1], x[2], x[3] = u, u*one, u*two, u*three
		first *= four
	}
}

// together returns the powers of a turn by which four phasors are made of one, the last of
// which makes the next one. Only that is multiplied on and on, and precise.
func together(turn complex128) (one, two, three complex64, four complex128) {
	twice := turn * turn
	return complex64(turn), complex64(twice), complex64(twice * turn), twice * twice
}

// turnBy returns e^{j step}. Steps are mostly small, and their series short.
func turnBy(step float64) complex128 {
	const small = 0.01 // of which the powers left out are below double precision
	if math.Abs(step) > small {
		return cmplx.Rect(1, step)
	}
	s := step * step
	return complex(1-s/2*(1-s/12*(1-s/30)), step*(1-s/6*(1-s/20*(1-s/42))))
}
