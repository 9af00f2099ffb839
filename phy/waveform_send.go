package phy

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"sync"

	"ringwave/crypto/keystream"
	"ringwave/phy/frame"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// sender makes the devices' frames and puts them on the air.
type sender struct {
	layout  *layout
	streams *streams
	time    *timeline
	modem   modem.Config
	drive   modem.Drive // of a device without trim
	level   float64     // at which a device of gain 1 arrives
	unit    float64     // soft symbol of the digit 1 from a device of gain 1
	devices []*waveDevice
	// lead is how far ahead of what boards have a frame is put, and flush how many
	// zeros push it out of them.
	lead, flush radio.SampleIndex
	retry       *keystream.Stream
	blind       bool // nobody knows the scale, so that retries may have other gains
	// began is where the transmission's first frame began, with which sample clocks do:
	// known once it is begun.
	began radio.SampleIndex
	begun bool
	// preparing is how many samples went by while the last frame's were made, where they are
	// made for a place that is known before.
	preparing radio.SampleIndex
	// carrierTime is WaveformConfig's.
	carrierTime func(at radio.SampleIndex) radio.SampleIndex
}

// waveDevice is one device's end of the link.
type waveDevice struct {
	modulator *modem.Modulator
	symbols   []int8
	samples   []complex64
	scratch   map[*frame.Payload][]frame.Scratch
	sent      bool
	gain      float32 // of the attempt: 1, or in [0.7, 1] in retries
	// made is what samples were made for, of a clock that runs apart, and earlier by how
	// many they begin earlier for that.
	made    drifted
	earlier radio.SampleIndex
	// correction is of the device's own hardware. Where that leaks, silence is what
	// makes up for it: rest is room for that, and written the transmitter's index behind
	// all that was sent or promised.
	correction modem.Correction
	rest       []complex64
	written    radio.SampleIndex
}

// drifted is what samples of a clock that runs apart are made for: for so many samples after
// it began at one place with the receiver's, which had gained so much by then.
type drifted struct {
	elapsed radio.SampleIndex
	gained  float64
}

// newSender returns the sender of cfg's devices. Its layout, which goes by their
// modulators, is to be set before anything is sent.
func newSender(cfg *WaveformConfig, streams *streams, time *timeline) (*sender, error) {
	s := &sender{
		streams: streams, time: time, modem: cfg.Modem, level: cfg.Level,
		drive: modem.Drive{Peak: cfg.Modem.Preamble.Level, Amplitude: cfg.Amplitude},
		lead:  radio.SampleIndex(cfg.Lead), flush: radio.SampleIndex(cfg.Flush),
		retry: cfg.Secret.Derive("retry gains").Stream(), blind: cfg.Alpha == 0, carrierTime: cfg.CarrierTime,
	}
	for range cfg.Devices {
		s.devices = append(s.devices, &waveDevice{scratch: map[*frame.Payload][]frame.Scratch{}, gain: 1})
	}
	return s, s.adjust(cfg.Alignment)
}

// adjust makes the modulators anew, with what devices make up for. All keep the headroom
// that the largest correction asks for, so that it is no gain of one of them.
func (s *sender) adjust(a Alignment) (err error) {
	headroom := 1.0
	for _, c := range a.Correction {
		headroom = min(headroom, c.Headroom())
	}
	for i, d := range s.devices {
		drive, trim := s.drive, 1.0
		drive.Amplitude *= modem.Amplitude(headroom)
		if a.Advance != nil {
			drive.Advance = a.Advance[i]
		}
		if a.Correction != nil {
			d.correction, d.rest = a.Correction[i], nil
		}
		if a.Trim != nil {
			size, phase := cmplx.Polar(complex128(a.Trim[i]))
			trim = min(1, size)
			drive.Amplitude *= modem.Amplitude(trim)
			drive.Phase = modem.Radians(phase)
		}
		if d.modulator, err = modem.NewModulator(s.modem, drive); err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
		s.unit = float64(d.modulator.Scale()) / trim * s.level
	}
	s.time.rate = 0
	if s.time.reach > 0 { // else clocks begin anew with each transmission
		for _, c := range a.Correction {
			s.time.rate += (1/(1+c.Clock) - 1) / float64(len(a.Correction))
		}
	}
	return nil
}

// begin takes up new streams, in which nothing was sent.
func (s *sender) begin() {
	for _, d := range s.devices {
		d.written = 0
	}
}

// open begins a transmission, of which no device has sent anything.
func (s *sender) open(p *frame.Payload) {
	s.begun = false
	for _, d := range s.devices {
		d.sent = false
		if d.scratch[p] == nil {
			d.scratch[p] = p.NewScratch()
		}
	}
}

// missing returns the first device that has sent nothing, -1 if there is none.
func (s *sender) missing() int {
	for i, d := range s.devices {
		if !d.sent {
			return i
		}
	}
	return -1
}

// transmit writes device i's digits. Header and checks are written for each repeat,
// later.
func (s *sender) transmit(i int, g *group, p *frame.Payload, x zq.Vector) {
	d := s.devices[i]
	symbols := g.patterns.Symbols()
	start := s.layout.start(symbols)
	n := start + p.Symbols()
	if cap(d.symbols) < n {
		d.symbols = make([]int8, n)
	}
	d.symbols = d.symbols[:n]
	copy(d.symbols, s.layout.preamble)
	pattern := d.symbols[s.layout.pattern():start]
	for k := range pattern {
		pattern[k] = int8(g.patterns.Symbol(i-g.first, k))
	}
	p.Encode(d.symbols[start:], x, d.scratch[p])
	d.sent = true
}

// modulate makes the samples of a group's devices, side by side. Those of clocks that run
// apart are made for a place, which is so late that it is still to come once they are.
func (s *sender) modulate(g *group, e expected) {
	before := s.earliest()
	if s.drifts() {
		s.putOff()
		s.time.cursor = max(s.time.cursor, before+s.lead+s.preparing+s.preparing/4)
	}
	place := s.place()
	s.each(g, func(i int, d *waveDevice) {
		symbols := d.symbols
		e.payload.EncodeChecks(symbols[s.layout.start(g.patterns.Symbols()):], g.residues[i], d.scratch[e.payload])
		header := symbols[s.layout.header():s.layout.pattern()]
		e.header.Symbols(header, s.layout.format)
		for k := range header {
			header[k] *= int8(s.drive.Peak)
		}
		if d.correction.Clock == 0 {
			d.modulate(s.layout.sps)
			return
		}
		d.drift(s.layout.sps, place)
	})
	s.preparing = s.earliest() - before
}

// each does something for each device of a group, side by side.
func (s *sender) each(g *group, do func(i int, d *waveDevice)) {
	var done sync.WaitGroup
	for i, d := range s.devices[g.first : g.first+g.size] {
		done.Add(1)
		go func() {
			defer done.Done()
			do(i, d)
		}()
	}
	done.Wait()
}

// drifts reports whether samples are made for a clock that runs apart.
func (s *sender) drifts() bool {
	return slices.ContainsFunc(s.devices, func(d *waveDevice) bool { return d.correction.Clock != 0 })
}

// place is what samples are made for that are to be sent at the cursor.
func (s *sender) place() drifted {
	if s.begun {
		return drifted{s.time.cursor + s.layout.guard() - s.began, s.time.gained}
	}
	_, gained := s.time.gain(s.time.cursor)
	return drifted{s.layout.guard(), gained}
}

// modulate makes the samples of a device's symbols.
func (d *waveDevice) modulate(sps int) {
	tail := d.modulator.Tail()
	n := (len(d.symbols) + int(tail)) * sps
	if cap(d.samples) < n {
		d.samples = make([]complex64, n)
	}
	d.samples = d.samples[:n]
	d.modulator.Reset()
	d.modulator.ModulateDigits(d.samples[:len(d.symbols)*sps], d.symbols)
	d.modulator.Idle(d.samples[len(d.symbols)*sps:], tail)
	d.weaken()
}

// drift makes the samples of a device's symbols at instants of a clock that runs apart. They
// begin earlier than without by d.earlier samples, or later if that is negative.
func (d *waveDevice) drift(sps int, place drifted) {
	n := (len(d.symbols) + int(d.modulator.Tail())) * sps
	// Sample m of the device is sent when the receiver's clock shows m/(1 + clock).
	step := 1 / (1 + d.correction.Clock)
	ahead := float64(place.elapsed)*(step-1) + place.gained // what sample 0 shows
	begin := int(math.Floor(-ahead))
	end := int(math.Ceil((float64(n) - ahead) / step))
	if cap(d.samples) < end-begin {
		d.samples = make([]complex64, end-begin)
	}
	d.samples = d.samples[:end-begin]
	d.modulator.ModulateDrifting(d.samples, d.symbols, ahead+float64(begin)*step, step)
	d.weaken()
	d.made, d.earlier = place, radio.SampleIndex(-begin)
}

// weaken gives samples the attempt's gain.
func (d *waveDevice) weaken() {
	if d.gain == 1 {
		return
	}
	for k := range d.samples {
		d.samples[k] *= complex(d.gain, 0)
	}
}

// send puts a group's frame behind all that was sent, and gives the transmitters'
// index at which it begins, guard time included. Who is not in the group is silent.
func (s *sender) send(ctx context.Context, g *group, e expected) (radio.SampleIndex, error) {
	s.putOff()
	at, guard := s.time.cursor, s.layout.guard()
	if place := s.place(); s.drifts() {
		s.each(g, func(_ int, d *waveDevice) { // unless that was foreseen
			if d.correction.Clock != 0 && d.made != place {
				d.drift(s.layout.sps, place)
			}
		})
	}
	if !s.begun {
		s.time.pass(at)
		s.began, s.begun = at, true
	}
	end := at + radio.SampleIndex(s.layout.window(g.patterns.Symbols(), e.payload))
	// What must be silent behind the end of a capture: what pushes it out of the
	// boards, and what a receiver reads too far that has lost samples unnoticed.
	next := end + s.time.margin() + s.flush + s.time.reach
	// A receiver that loses samples towards the end of this frame need not wait for
	// the next one, whose own guard time may be promised too: that part of it, at least, in
	// which no clock has a frame begin.
	silent := max(next, end+guard/2)
	if !s.drifts() {
		silent = max(next, end+guard)
	}
	for i := range s.streams.tx {
		if i >= g.first && i < g.first+g.size {
			if err := s.put(ctx, i, at, guard); err != nil {
				return 0, fmt.Errorf("device %d sends %v: %w", i+1, e.slot.Transmission, err)
			}
		}
		if err := s.beSilent(ctx, i, at, silent); err != nil {
			return 0, fmt.Errorf("device %d idles: %w", i+1, err)
		}
	}
	s.time.cursor, s.time.sent = next, end
	return at, nil
}

// put writes a device's frame, which begins a guard time behind index at, corrected.
func (s *sender) put(ctx context.Context, i int, at, guard radio.SampleIndex) error {
	d, start := s.devices[i], at+guard
	if d.correction.Clock != 0 {
		if max(d.earlier, -d.earlier) > guard/2 {
			return fmt.Errorf("its sample clock, %.3g ppm off, is %d samples ahead at a frame: its guard time leaves room for %d", 1e6*d.correction.Clock, -d.earlier, guard/2)
		}
		start -= d.earlier
	}
	if err := s.rest(ctx, i, at, start); err != nil {
		return err
	}
	d.correction.Apply(d.samples, int64(s.carrierIndex(start)))
	d.written = start + radio.SampleIndex(len(d.samples))
	return s.streams.write(ctx, i, d.samples, radio.TxMeta{Timed: true, Start: start, BurstEnd: true})
}

// carrierIndex returns the index that a carrier's phase goes by at index at.
func (s *sender) carrierIndex(at radio.SampleIndex) radio.SampleIndex {
	if s.carrierTime == nil {
		return at
	}
	return s.carrierTime(at)
}

// beSilent has a device send nothing until an index: nothing as it arrives, which of a
// transmitter that leaks is not nothing as it is sent. at is where the frame at hand
// begins.
func (s *sender) beSilent(ctx context.Context, i int, at, until radio.SampleIndex) error {
	if err := s.rest(ctx, i, at, until); err != nil {
		return err
	}
	return s.streams.beSilent(ctx, i, until)
}

// rest has a device that leaks send what makes up for it until an index, from where the
// frame at hand begins, or from behind what it has sent already.
func (s *sender) rest(ctx context.Context, i int, at, until radio.SampleIndex) error {
	d := s.devices[i]
	value := complex64(d.correction.Rest())
	first := max(d.written, at)
	if value == 0 || first >= until {
		return nil
	}
	n := int(until - first)
	for len(d.rest) < n {
		d.rest = append(d.rest, value)
	}
	d.written = until
	return s.streams.write(ctx, i, d.rest[:n], radio.TxMeta{Timed: true, Start: first, BurstEnd: true})
}

// putOff moves the cursor to where a frame can be sent: late enough for boards that
// go on by themselves, and, where it must be searched for, far enough behind the
// last one that this cannot be mistaken for it.
func (s *sender) putOff() {
	if margin := s.time.margin(); margin > 0 {
		s.time.cursor = max(s.time.cursor, s.time.sent+2*margin)
	}
	s.time.cursor = max(s.time.cursor, s.earliest()+s.lead)
}

// earliest returns the index from which on boards that go on by themselves can send; far
// back where there are none.
func (s *sender) earliest() radio.SampleIndex {
	at := -s.lead
	for _, tx := range s.streams.tx {
		if p, ok := tx.(radio.Pacer); ok {
			at = max(at, p.Earliest())
		}
	}
	return at
}

// The gains that devices draw for a retry are uniform in [RetryLeast, 1].
const RetryLeast = 0.7

// drawRetryGains gives every device its gain for the attempt: 1 in the first,
// and then fresh ones that pose a new lattice problem (phy/README.md,
// section 3). Where the scale is known there is no such problem, and a gain that
// is on its lattice or aligned must stay so.
func (s *sender) drawRetryGains(at slot.Slot) {
	s.retry.Start(at.Round, at.Attempt)
	for _, d := range s.devices {
		d.gain = 1
		if u := float64(s.retry.Uint64()>>11) * 0x1p-53; s.drawsRetryGains(at) {
			d.gain = float32(RetryLeast + (1-RetryLeast)*u)
		}
	}
}

// drawsRetryGains reports whether devices draw gains for an attempt.
func (s *sender) drawsRetryGains(at slot.Slot) bool { return at.Attempt > 0 && s.blind }

// meanRetryGain is folded into alpha, so that M keeps its scale in the mean. The
// gains of attempts that succeed are not a fair sample: what this bias leaves is
// within the spread of [0.7, 1].
func (s *sender) meanRetryGain(at slot.Slot) float64 {
	if !s.drawsRetryGains(at) {
		return 1
	}
	return (1 + RetryLeast) / 2
}
