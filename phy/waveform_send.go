package phy

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// sender makes samples of the devices' symbols and puts them on the air. It knows no secret.
type sender struct {
	streams *streams
	time    *timeline
	modem   modem.Config
	guard   radio.SampleIndex // a guard time
	tail    int               // symbols that bring out a frame's last one
	devices []*emitter
	// lead is how far ahead of what boards have a frame is put, and flush how many
	// zeros push it out of them.
	lead, flush radio.SampleIndex
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

// emitter is one device's transmitter, as far as it is of the link.
type emitter struct {
	modulator *modem.Modulator
	drive     modem.Drive // the modulator's
	symbols   []int8      // of the frame at hand
	samples   []complex64
	gain      float32 // of the attempt
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

// newSender returns the sender of cfg's devices, which make up for nothing yet.
func newSender(cfg *WaveformConfig, streams *streams, time *timeline) *sender {
	s := &sender{
		streams: streams, time: time, modem: cfg.Modem, guard: guardOf(cfg.Modem), carrierTime: cfg.CarrierTime,
		lead: radio.SampleIndex(cfg.Lead), flush: radio.SampleIndex(cfg.Flush),
	}
	for range cfg.Devices {
		s.devices = append(s.devices, &emitter{gain: 1})
	}
	return s
}

// adjust makes the modulators anew, with what devices make up for.
func (s *sender) adjust(cfg *WaveformConfig, a Alignment) (err error) {
	for i, d := range s.devices {
		if a.Correction != nil {
			d.correction, d.rest = a.Correction[i], nil
		}
		drive, _ := cfg.drive(a, i)
		if err := d.tune(s.modem, drive); err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
	}
	s.tail = int(s.devices[0].modulator.Tail())
	s.time.rate = 0
	if s.time.reach > 0 { // else clocks begin anew with each transmission
		for _, c := range a.Correction {
			s.time.rate += (1/(1+c.Clock) - 1) / float64(len(a.Correction))
		}
	}
	return nil
}

// tune makes the modulator of a drive, unless it is that.
func (d *emitter) tune(c modem.Config, drive modem.Drive) (err error) {
	if d.modulator != nil && d.drive == drive {
		return nil
	}
	d.modulator, err = modem.NewModulator(c, drive)
	d.drive = drive
	return err
}

// makeUp has the device make up for what a frame of it says.
func (d *emitter) makeUp(c modem.Config, f *WaveformFrame) error {
	if d.correction != f.Correction {
		d.correction, d.rest = f.Correction, nil
	}
	return d.tune(c, f.Drive)
}

// begin takes up new streams, in which nothing was sent.
func (s *sender) begin() {
	for _, d := range s.devices {
		d.written = 0
	}
}

// window returns the samples of a frame of so many symbols with its guard times.
func (s *sender) window(symbols int) radio.SampleIndex {
	return 2*s.guard + radio.SampleIndex((symbols+s.tail)*s.modem.SamplesPerSymbol)
}

// modulate makes the samples of some devices, side by side, once finish has made their
// symbols. Those of clocks that run apart are made for a place, which is so late that it is
// still to come once they are.
func (s *sender) modulate(who []int, finish func(i int)) {
	before := s.earliest()
	if s.drifts() {
		s.putOff()
		s.time.cursor = max(s.time.cursor, before+s.lead+s.preparing+s.preparing/4)
	}
	made := s.instant()
	s.each(who, func(i int, d *emitter) {
		finish(i)
		if d.correction.Clock == 0 {
			d.modulate(s.modem.SamplesPerSymbol)
			return
		}
		d.drift(s.modem.SamplesPerSymbol, made)
	})
	s.preparing = s.earliest() - before
}

// each does something for each of some devices, side by side.
func (s *sender) each(who []int, do func(i int, d *emitter)) {
	var done sync.WaitGroup
	for _, i := range who {
		done.Go(func() { do(i, s.devices[i]) })
	}
	done.Wait()
}

// drifts reports whether samples are made for a clock that runs apart.
func (s *sender) drifts() bool {
	return slices.ContainsFunc(s.devices, func(d *emitter) bool { return d.correction.Clock != 0 })
}

// instant is what samples are made for that are to be sent at the cursor.
func (s *sender) instant() drifted {
	if s.begun {
		return drifted{s.time.cursor + s.guard - s.began, s.time.gained}
	}
	_, gained := s.time.gain(s.time.cursor)
	return drifted{s.guard, gained}
}

// modulate makes the samples of a device's symbols.
func (d *emitter) modulate(sps int) {
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
func (d *emitter) drift(sps int, place drifted) {
	n := (len(d.symbols) + int(d.modulator.Tail())) * sps
	// Sample m of the device is sent when the receiver's clock shows m/(1 + clock).
	step := 1 / (1 + d.correction.Clock)
	ahead := d.ahead(place)
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

// ahead returns what sample 0 of a device's frame shows on the receiver's clock.
func (d *emitter) ahead(place drifted) float64 {
	if d.correction.Clock == 0 {
		return 0
	}
	return float64(place.elapsed)*(1/(1+d.correction.Clock)-1) + place.gained
}

// weaken gives samples the attempt's gain.
func (d *emitter) weaken() {
	if d.gain == 1 {
		return
	}
	for k := range d.samples {
		d.samples[k] *= complex(d.gain, 0)
	}
}

// Cue is when a frame of a transmission is sent, by the transmitters' index, guard times
// included: all that devices must agree on besides.
type Cue struct {
	// At is where it begins, and Silent until when nobody sends anything else.
	At, Silent radio.SampleIndex
	// Elapsed is how long ago the transmission began, with which sample clocks do, and Gained
	// by how many samples the receiver's had gained by then.
	Elapsed radio.SampleIndex
	Gained  float64
}

// made is what samples of a clock that runs apart are made for.
func (c Cue) made() drifted { return drifted{c.Elapsed, c.Gained} }

// place places a frame that takes window samples with its guard times behind all that was
// sent.
func (s *sender) place(window radio.SampleIndex) Cue {
	s.putOff()
	at, made := s.time.cursor, s.instant()
	if !s.begun {
		s.time.pass(at)
		s.began, s.begun = at, true
	}
	end := at + window
	// What must be silent behind the end of a capture: what pushes it out of the
	// boards, and what a receiver reads too far that has lost samples unnoticed.
	next := end + s.time.margin() + s.flush + s.time.reach
	// A receiver that loses samples towards the end of this frame need not wait for
	// the next one, whose own guard time may be promised too: that part of it, at least, in
	// which no clock has a frame begin.
	silent := max(next, end+s.guard/2)
	if !s.drifts() {
		silent = max(next, end+s.guard)
	}
	s.time.cursor, s.time.sent = next, end
	return Cue{At: at, Silent: silent, Elapsed: made.elapsed, Gained: made.gained}
}

// send puts the frames of some devices, of a transmission, on the air at a cue. All others
// are silent.
func (s *sender) send(ctx context.Context, who []int, c Cue, what slot.Transmission) error {
	if s.drifts() {
		s.each(who, func(_ int, d *emitter) { // unless that was foreseen
			if d.correction.Clock != 0 && d.made != c.made() {
				d.drift(s.modem.SamplesPerSymbol, c.made())
			}
		})
	}
	for i := range s.streams.tx {
		if slices.Contains(who, i) {
			if err := s.put(ctx, i, c.At, s.guard); err != nil {
				return fmt.Errorf("device %d sends %v: %w", i+1, what, err)
			}
		}
		if err := s.beSilent(ctx, i, c.At, c.Silent); err != nil {
			return fmt.Errorf("device %d idles: %w", i+1, err)
		}
	}
	return nil
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
	for len(d.rest) < restBlock {
		d.rest = append(d.rest, value)
	}
	d.written = until
	for first < until {
		n := min(restBlock, until-first)
		if err := s.streams.write(ctx, i, d.rest[:n], radio.TxMeta{Timed: true, Start: first, BurstEnd: true}); err != nil {
			return err
		}
		first += n
	}
	return nil
}

// restBlock is how many samples of what makes up for a leak are written at a time.
const restBlock = 1 << 14

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
