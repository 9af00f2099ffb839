package hackrf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ringwave/radio"
)

// settle is the time that the synthesizer takes after a retune, at most.
const settle = time.Millisecond

// gain is a stage in one direction.
type gain int

const (
	rxAmp gain = iota
	lna
	vga
	txvga
	txAmp
)

// stages are in the order of the signal's way.
func stages(d radio.Direction) []gain {
	if d == radio.Transmit {
		return []gain{txvga, txAmp}
	}
	return []gain{rxAmp, lna, vga}
}

func (g gain) name() string { return [...]string{"amp", "lna", "vga", "txvga", "amp"}[g] }

func (g gain) span() radio.Span[radio.Decibels] {
	return [...]radio.Span[radio.Decibels]{spanAmp, spanLNA, spanVGA, spanTXVGA, spanAmp}[g]
}

// unset is the gain of a board that was told nothing: the least to transmit.
func (g gain) unset() radio.Decibels {
	if g == lna || g == vga {
		return 16
	}
	return 0
}

func (d *Device) named(dir radio.Direction, stage string) (gain, error) {
	var names []string
	for _, g := range stages(dir) {
		if g.name() == stage {
			return g, nil
		}
		names = append(names, g.name())
	}
	return 0, fmt.Errorf("%s has no %v gain %q; allowed is %v", d.info.URI, dir, stage, names)
}

// usable says whether requests can be made. The lock is held.
func (d *Device) usable(ctx context.Context) error {
	if d.closed {
		return radio.ErrClosed
	}
	return ctx.Err()
}

// disturb makes a change that turns the phase of a stream that runs. The lock is
// held.
func (d *Device) disturb(change func() error) error {
	if d.stream == nil {
		return change()
	}
	from := d.stream.counted()
	err := change()
	// Even a change that failed may have happened.
	d.stream.disturbed(from, d.stream.counted())
	return err
}

// Frequencies returns the range that the board is made for.
func (d *Device) Frequencies(radio.Direction) radio.Span[radio.Hertz] { return frequencies }

// Frequency returns the carrier, which is one for both directions; after
// SetExplicit what it comes to.
func (d *Device) Frequency(radio.Direction) radio.Hertz {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tuning
}

// SetFrequency tunes the board for both directions, in whole hertz. While a
// transmitter is open it must be permitted.
func (d *Device) SetFrequency(ctx context.Context, _ radio.Direction, f radio.Hertz) (radio.Hertz, error) {
	f, err := frequencies.Floor("the frequency of "+d.info.URI, f)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	if d.transmits() {
		if err := d.permit.Frequency(f); err != nil {
			return 0, err
		}
	}
	return f, d.disturb(func() error { return d.tune(f) })
}

// transmits reports whether a transmitter is open. The lock is held.
func (d *Device) transmits() bool { return d.stream != nil && d.stream.direction() == radio.Transmit }

func (d *Device) tune(f radio.Hertz) error {
	f, err := frequencies.Floor("the frequency", f)
	if err != nil {
		return err
	}
	if err := d.send(setFrequency, 0, 0, encodeFrequency(f)); err != nil {
		return err
	}
	d.tuning, d.explicit = f, false
	return nil
}

// Path is the filter between mixer and antenna.
type Path byte

// The paths, by the number that the board knows.
const (
	Bypass Path = iota
	LowPass
	HighPass
)

// Explicit is a tuning in parts.
type Explicit struct {
	IF   radio.Hertz // 2 GHz to 3 GHz
	LO   radio.Hertz // 84.375 MHz to 5.4 GHz; not used with Bypass
	Path Path
}

// Frequency returns what the tuning comes to.
func (e Explicit) Frequency() radio.Hertz {
	switch e.Path {
	case LowPass:
		return max(e.IF, e.LO) - min(e.IF, e.LO)
	case HighPass:
		return e.IF + e.LO
	}
	return e.IF
}

// SetExplicit tunes the board in parts, for receiving only: images are as strong as
// the parts let them be.
func (d *Device) SetExplicit(ctx context.Context, e Explicit) error {
	f, err := intermediate.Floor("the intermediate frequency of "+d.info.URI, e.IF)
	if err != nil {
		return err
	}
	e.IF = f
	switch {
	case e.Path > HighPass:
		return fmt.Errorf("the path of %s is %d; allowed is 0 (bypass), 1 (low pass) and 2 (high pass)", d.info.URI, e.Path)
	case e.Path == Bypass:
		e.LO = oscillator.Min
	}
	if e.LO, err = oscillator.Floor("the local oscillator of "+d.info.URI, e.LO); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return err
	}
	if d.transmits() {
		return fmt.Errorf("%w: tuning in parts lets images pass", radio.ErrNotPermitted)
	}
	return d.disturb(func() error {
		if err := d.send(setExplicit, 0, 0, encodeExplicit(e)); err != nil {
			return err
		}
		d.tuning, d.explicit = e.Frequency(), true
		return nil
	})
}

// SampleRates returns the range that the board is made for; below 8 MHz the
// converter is outside its specification.
func (d *Device) SampleRates(radio.Direction) radio.Span[radio.Hertz] { return rates }

// SampleRate returns the rate, which is one for both directions.
func (d *Device) SampleRate(radio.Direction) radio.Hertz {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rate
}

// SetSampleRate sets the rate, and the filter that goes with it unless the URI has
// another; radio.ErrBusy while a stream is open.
func (d *Device) SetSampleRate(ctx context.Context, _ radio.Direction, rate radio.Hertz) (radio.Hertz, error) {
	rate, err := rates.Floor("the sample rate of "+d.info.URI, rate)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	if d.stream != nil {
		return 0, fmt.Errorf("the sample rate of %s cannot change under a stream: %w", d.info.URI, radio.ErrBusy)
	}
	if err := d.setRate(rate); err != nil {
		return 0, err
	}
	return d.rate, d.setFilter(d.opts.filter)
}

func (d *Device) setRate(rate radio.Hertz) error {
	frequency, divider := fraction(rate)
	if err := d.send(setRate, 0, 0, encodeRate(frequency, divider)); err != nil {
		return err
	}
	d.rate = radio.Hertz(frequency) / radio.Hertz(divider)
	// The board must have a filter that fits before another is asked for.
	return d.sendFilter(filterFor(d.rate))
}

// Filter returns the bandwidth of the baseband filter.
func (d *Device) Filter() radio.Hertz {
	d.mu.Lock()
	defer d.mu.Unlock()
	return radio.Hertz(d.filter)
}

// SetFilter takes the widest filter of at most bandwidth, 1.75 MHz to 28 MHz, until
// the sample rate is set again.
func (d *Device) SetFilter(ctx context.Context, bandwidth radio.Hertz) (radio.Hertz, error) {
	least, most := radio.Hertz(filters[0]), radio.Hertz(filters[len(filters)-1])
	if !(bandwidth >= least && bandwidth <= most) {
		return 0, fmt.Errorf("the filter of %s is %v; allowed is %v to %v", d.info.URI, bandwidth, least, most)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	err := d.disturb(func() error { return d.setFilter(bandwidth) })
	return radio.Hertz(d.filter), err
}

// setFilter sets the filter that the user asked for; 0 is the rate's own, which is
// there already.
func (d *Device) setFilter(bandwidth radio.Hertz) error {
	if bandwidth == 0 {
		return nil
	}
	return d.sendFilter(filterUpTo(bandwidth))
}

func (d *Device) sendFilter(f uint32) error {
	value, index := wide(f)
	if err := d.send(setFilter, value, index, nil); err != nil {
		return err
	}
	d.filter = f
	return nil
}

// GainStages returns amp, lna and vga to receive, txvga and amp to transmit.
func (d *Device) GainStages(dir radio.Direction) []radio.GainStage {
	var all []radio.GainStage
	for _, g := range stages(dir) {
		all = append(all, radio.GainStage{Name: g.name(), Span: g.span()})
	}
	return all
}

// Gain returns a stage's gain.
func (d *Device) Gain(dir radio.Direction, stage string) (radio.Decibels, error) {
	g, err := d.named(dir, stage)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gains[g], nil
}

// SetGain sets a stage's gain, rounded down to the board's steps. The sum of those
// to transmit must be permitted.
func (d *Device) SetGain(ctx context.Context, dir radio.Direction, stage string, v radio.Decibels) (radio.Decibels, error) {
	g, err := d.named(dir, stage)
	if err != nil {
		return 0, err
	}
	v, err = g.span().Floor(fmt.Sprintf("the %v gain %s of %s", dir, stage, d.info.URI), v)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	if dir == radio.Transmit {
		if total := d.gains[txvga] + d.gains[txAmp] - d.gains[g] + v; total > 0 {
			if err := d.permit.Gain(total); err != nil {
				return 0, err
			}
		}
	}
	if g == rxAmp || g == txAmp {
		err = d.setAmpFor(g, v)
	} else {
		err = d.disturb(func() error { return d.sendGain(g, v) })
	}
	if err != nil {
		return 0, err
	}
	d.gains[g] = v
	return v, nil
}

// setAmpFor switches the amplifier if a stream of its direction is open; otherwise
// that is done when one starts.
func (d *Device) setAmpFor(g gain, v radio.Decibels) error {
	if d.stream == nil || !slices.Contains(stages(d.stream.direction()), g) {
		return nil
	}
	return d.disturb(func() error { return d.sendAmp(v > 0) })
}

func (d *Device) sendAmp(on bool) error {
	if on == d.amp {
		return nil
	}
	if err := d.send(setAmp, bit(on), 0, nil); err != nil {
		return err
	}
	d.amp = on
	return nil
}

// sendGain sends a gain that the board answers to.
func (d *Device) sendGain(g gain, v radio.Decibels) error {
	r := map[gain]request{lna: setLNA, vga: setVGA, txvga: setTXVGA}[g]
	answer, err := d.ask(r, 0, uint16(v), 1)
	if err != nil {
		return err
	}
	if answer[0] == 0 {
		return fmt.Errorf("setting %s: the board refused %v", r.name, v)
	}
	return nil
}

// SetBias switches the power for an amplifier at the antenna, which must be permitted. It is
// on only while a stream runs.
func (d *Device) SetBias(ctx context.Context, on bool) error {
	if on {
		if err := d.permit.Bias(); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return err
	}
	if !hasBias(d.board.Identity.Product) {
		return fmt.Errorf("%s cannot power an antenna", d.info.Model)
	}
	if d.stream != nil && d.stream.State() != radio.Ready {
		if err := d.disturb(func() error { return d.send(setBias, bit(on), 0, nil) }); err != nil {
			return err
		}
	}
	d.bias = on
	return nil
}

// The clock sources. A board takes up an external clock by itself, whenever a
// stream starts, if there is one.
const (
	clockAuto     = "auto"
	clockExternal = "external"
)

// ClockSources returns auto, which takes what is there, and external, which must be.
func (d *Device) ClockSources() []string { return []string{clockAuto, clockExternal} }

// ClockSource returns what was chosen.
func (d *Device) ClockSource() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock
}

// SetClockSource chooses for streams started from now on; external fails with
// ErrNoClock where there is none.
func (d *Device) SetClockSource(ctx context.Context, name string) error {
	if !slices.Contains(d.ClockSources(), name) {
		return fmt.Errorf("the clock source of %s is %q; allowed is %v", d.info.URI, name, d.ClockSources())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return err
	}
	old := d.clock
	d.clock = name
	if err := d.requireClock(ctx); err != nil {
		d.clock = old
		return err
	}
	return nil
}

// requireClock fails where the clock that was chosen is not there. The lock is
// held.
func (d *Device) requireClock(context.Context) error {
	if d.clock != clockExternal {
		return nil
	}
	there, err := d.clockThere()
	if err == nil && !there {
		err = fmt.Errorf("%w: clock=%s needs 10 MHz there", ErrNoClock, clockExternal)
	}
	return err
}

func (d *Device) clockThere() (bool, error) {
	b, err := d.ask(getClockInput, 0, 0, 1)
	return err == nil && b[0] != 0, err
}

// ClockLocked reports whether there are 10 MHz at the clock input. A board follows
// them from the start of the next stream on.
func (d *Device) ClockLocked(ctx context.Context) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return false, err
	}
	return d.clockThere()
}

// SetClockOut switches the 10 MHz at the clock output.
func (d *Device) SetClockOut(ctx context.Context, on bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return err
	}
	return d.send(setClockOut, bit(on), 0, nil)
}

const triggerIn = "trigger-in"

// TriggerSources returns trigger-in, and none for a HackRF Pro: see TriggerProblem. Every
// other board pulses its trigger output when its own stream starts.
func (d *Device) TriggerSources() []string {
	if d.pro {
		return nil
	}
	return []string{triggerIn}
}

// TriggerProblem returns why the board neither waits for a trigger nor gives one, nil where
// it does both.
func (d *Device) TriggerProblem() error {
	if !d.pro {
		return nil
	}
	return errors.New("a HackRF Pro has its trigger at P1 and P2, which this driver does not switch to it (requests 51 and 52, P2_CTRL and P1_CTRL): start without a trigger")
}

// triggers says why a stream of the board cannot wait for a trigger.
func (d *Device) triggers() error {
	if d.api < apiTrigger {
		return d.tooOld(setTrigger)
	}
	return d.TriggerProblem()
}

// SetTrigger chooses for streams started from now on.
func (d *Device) SetTrigger(ctx context.Context, source string) error {
	if source != "" && source != triggerIn {
		return fmt.Errorf("the trigger source of %s is %q; allowed is %s, or none", d.info.URI, source, triggerIn)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(ctx); err != nil {
		return err
	}
	if source != "" {
		if err := d.triggers(); err != nil {
			return err
		}
	}
	d.trigger = source
	return nil
}

// arm makes all requests that come before a mode. The lock is held.
func (d *Device) arm(ctx context.Context, dir radio.Direction) error {
	if err := d.requireClock(ctx); err != nil {
		return err
	}
	amp := rxAmp
	if dir == radio.Transmit {
		amp = txAmp
	}
	if err := d.sendAmp(d.gains[amp] > 0); err != nil {
		return err
	}
	if d.bias { // the board forgets it whenever it is switched off
		if err := d.send(setBias, 1, 0, nil); err != nil {
			return err
		}
	}
	if d.api >= apiTrigger {
		if err := d.send(setTrigger, bit(d.trigger != ""), 0, nil); err != nil {
			return err
		}
	}
	return d.setLimit(dir)
}

// setLimit bounds shortfalls: of a transmitter so that samples end with a dead host, of
// a receiver not at all, whatever someone set before.
func (d *Device) setLimit(dir radio.Direction) error {
	if d.api < apiM0 {
		return nil
	}
	if dir == radio.Receive {
		return d.send(setOverrun, 0, 0, nil)
	}
	value, index := wide(limitBytes(d.opts.limit, d.rate))
	return d.send(setUnderrun, value, index, nil)
}

// startState is that of a stream that was just started. The lock is held.
func (d *Device) startState() radio.State {
	if d.trigger != "" {
		return radio.Armed
	}
	return radio.Running
}
