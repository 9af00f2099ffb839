package soapy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ringwave/radio"
)

// refLocked is the sensor that says whether the reference clock is followed, by the name that
// modules have for it.
const refLocked = "ref_locked"

// ErrNoSensor: the board does not tell whether it follows a reference clock.
var ErrNoSensor = errors.New("it has no sensor " + refLocked)

// span returns the range that others lie in.
func span(all []Range) (s radio.Span[radio.Hertz]) {
	for i, r := range all {
		if i == 0 {
			s = radio.Span[radio.Hertz]{Min: radio.Hertz(r.Min), Max: radio.Hertz(r.Max), Step: radio.Hertz(r.Step)}
			continue
		}
		s.Min, s.Max, s.Step = min(s.Min, radio.Hertz(r.Min)), max(s.Max, radio.Hertz(r.Max)), 0
	}
	return s
}

// within fails where no range has v. Where a board names none it is asked.
func within(name string, all []Range, v radio.Hertz) error {
	var allowed []string
	for _, r := range all {
		if float64(v) >= r.Min && float64(v) <= r.Max {
			return nil
		}
		allowed = append(allowed, radio.Span[radio.Hertz]{Min: radio.Hertz(r.Min), Max: radio.Hertz(r.Max)}.String())
	}
	if len(all) == 0 && v > 0 && !math.IsInf(float64(v), 0) {
		return nil
	}
	const few = 8
	if len(allowed) > few {
		allowed = []string{span(all).String()}
	}
	return fmt.Errorf("%s is %v; allowed is %s", name, v, strings.Join(allowed, ", "))
}

// set runs a change, alone.
func (d *device) set(ctx context.Context, dir radio.Direction, change func(ctx context.Context) error) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return err
	}
	if !d.ways[dir].there {
		return fmt.Errorf("%s cannot %v", d.info.URI, dir)
	}
	ctx, cancel := d.call(ctx)
	defer cancel()
	return change(ctx)
}

// disturb makes a change that turns the phase of a direction's stream.
func (d *device) disturb(dir radio.Direction, change func() error) error {
	d.mu.Lock()
	rx, tx := d.rx, d.tx
	d.mu.Unlock()
	if rx != nil && (dir == radio.Receive || !d.fullDuplex) {
		rx.Unsettle()
		// Even a change that failed may have happened.
		defer func() { rx.Settle(rx.onTheWay()) }()
	}
	if tx != nil && (dir == radio.Transmit || !d.fullDuplex) {
		from := tx.reached()
		defer func() { tx.turn(from, tx.reached()) }()
	}
	return change()
}

// Frequencies returns the range that the board's ranges lie in.
func (d *device) Frequencies(dir radio.Direction) radio.Span[radio.Hertz] {
	return span(d.ways[dir].frequencies)
}

// Frequency returns the carrier that the board took last.
func (d *device) Frequency(dir radio.Direction) radio.Hertz { return d.values(dir).frequency }

func (d *device) values(dir radio.Direction) values {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now[dir]
}

// SetFrequency tunes one direction and gives what the board took. While a transmitter is open
// its frequency must be permitted.
func (d *device) SetFrequency(ctx context.Context, dir radio.Direction, f radio.Hertz) (got radio.Hertz, err error) {
	if err := within(fmt.Sprintf("the %v frequency of %s", dir, d.info.URI), d.ways[dir].frequencies, f); err != nil {
		return 0, err
	}
	err = d.set(ctx, dir, func(ctx context.Context) error {
		if dir == radio.Transmit && d.sends() {
			if err := d.permit.Frequency(f); err != nil {
				return err
			}
		}
		return d.disturb(dir, func() error {
			if err := d.board.SetFrequency(ctx, d.at(dir), float64(f)); err != nil {
				return fmt.Errorf("tuning %s to %v: %w", d.info.URI, f, err)
			}
			v, err := d.board.Frequency(ctx, d.at(dir))
			if err != nil {
				return fmt.Errorf("asking %s for its frequency: %w", d.info.URI, err)
			}
			got = radio.Hertz(v)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.now[dir].frequency = got
			return nil
		})
	})
	return got, err
}

// sends reports whether a transmitter is open.
func (d *device) sends() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tx != nil
}

// SampleRates returns the range that the board's ranges lie in.
func (d *device) SampleRates(dir radio.Direction) radio.Span[radio.Hertz] {
	return span(d.ways[dir].rates)
}

// SampleRate returns the rate that the board took last.
func (d *device) SampleRate(dir radio.Direction) radio.Hertz { return d.values(dir).rate }

// SetSampleRate sets the rate of one direction, and gives what the board took: with
// radio.ErrBusy while a stream is open.
func (d *device) SetSampleRate(ctx context.Context, dir radio.Direction, rate radio.Hertz) (got radio.Hertz, err error) {
	if err := within(fmt.Sprintf("the %v sample rate of %s", dir, d.info.URI), d.ways[dir].rates, rate); err != nil {
		return 0, err
	}
	err = d.set(ctx, dir, func(ctx context.Context) error {
		d.mu.Lock()
		busy := d.tx != nil || d.rx != nil
		d.mu.Unlock()
		if busy {
			return fmt.Errorf("setting the sample rate of %s: %w: a stream; close it first", d.info.URI, radio.ErrBusy)
		}
		if err := d.board.SetSampleRate(ctx, d.at(dir), float64(rate)); err != nil {
			return fmt.Errorf("setting the sample rate of %s to %v: %w", d.info.URI, rate, err)
		}
		v, err := d.board.SampleRate(ctx, d.at(dir))
		if err != nil {
			return fmt.Errorf("asking %s for its sample rate: %w", d.info.URI, err)
		}
		if got = radio.Hertz(v); !(got > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("%s says that its sample rate is %v; allowed is above 0", d.info.URI, got)
		}
		// Modules give back what they make of it in floating point.
		if math.Abs(float64(got-rate)) < 1e-6*float64(rate) && math.Abs(float64(got-rate)) < 0.5 {
			got = rate
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.now[dir].rate = got
		return nil
	})
	return got, err
}

// setFilter sets the analogue filter.
func (d *device) setFilter(ctx context.Context, dir radio.Direction, f radio.Hertz) error {
	if err := within(fmt.Sprintf("the %v filter of %s", dir, d.info.URI), d.ways[dir].filters, f); err != nil {
		return err
	}
	return d.set(ctx, dir, func(ctx context.Context) error { return d.board.SetBandwidth(ctx, d.at(dir), float64(f)) })
}

// GainStages returns the gain elements by the module's names.
func (d *device) GainStages(dir radio.Direction) []radio.GainStage {
	return slices.Clone(d.ways[dir].stages)
}

// Gain returns the gain that the board took last.
func (d *device) Gain(dir radio.Direction, stage string) (radio.Decibels, error) {
	if _, err := d.stage(dir, stage); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now[dir].gains[stage], nil
}

func (d *device) stage(dir radio.Direction, name string) (radio.GainStage, error) {
	var names []string
	for _, s := range d.ways[dir].stages {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return radio.GainStage{}, fmt.Errorf("%s has no %v gain %q; allowed is %s", d.info.URI, dir, name, strings.Join(names, ", "))
}

// SetGain sets one gain element, and gives what the board took. Where it may transmit, all of
// them together must be permitted.
func (d *device) SetGain(ctx context.Context, dir radio.Direction, stage string, g radio.Decibels) (radio.Decibels, error) {
	s, err := d.stage(dir, stage)
	if err != nil {
		return 0, err
	}
	if g, err = s.Span.Floor(fmt.Sprintf("the %v gain %s of %s", dir, stage, d.info.URI), g); err != nil {
		return 0, err
	}
	err = d.set(ctx, dir, func(ctx context.Context) error {
		if dir == radio.Transmit {
			if err := d.permit.Gain(d.totalWith(stage, g)); err != nil {
				return err
			}
		}
		return d.setGain(ctx, dir, stage, g)
	})
	if err != nil {
		return 0, err
	}
	return d.Gain(dir, stage)
}

// totalWith returns the sum of the transmit gains, had one a value.
func (d *device) totalWith(stage string, g radio.Decibels) radio.Decibels {
	d.mu.Lock()
	defer d.mu.Unlock()
	gains := d.now[radio.Transmit].gains
	return total(gains) - gains[stage] + g
}

// setGain sets a gain element and notes what the board took.
func (d *device) setGain(ctx context.Context, dir radio.Direction, stage string, g radio.Decibels) error {
	if err := d.board.SetGain(ctx, d.at(dir), stage, float64(g)); err != nil {
		return fmt.Errorf("setting the %v gain %s of %s to %v: %w", dir, stage, d.info.URI, g, err)
	}
	v, err := d.board.Gain(ctx, d.at(dir), stage)
	if err != nil {
		return fmt.Errorf("asking %s for its gain %s: %w", d.info.URI, stage, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now[dir].gains[stage] = radio.Decibels(v)
	return nil
}

// Antennas returns the ports by the module's names.
func (d *device) Antennas(dir radio.Direction) []string { return slices.Clone(d.ways[dir].antennas) }

// Antenna returns the port that was chosen last.
func (d *device) Antenna(dir radio.Direction) string { return d.values(dir).antenna }

// SetAntenna chooses a port.
func (d *device) SetAntenna(ctx context.Context, dir radio.Direction, name string) error {
	if !slices.Contains(d.ways[dir].antennas, name) {
		return fmt.Errorf("%s has no %v antenna %q; allowed is %s", d.info.URI, dir, name, strings.Join(d.ways[dir].antennas, ", "))
	}
	return d.set(ctx, dir, func(ctx context.Context) error {
		return d.disturb(dir, func() error {
			if err := d.board.SetAntenna(ctx, d.at(dir), name); err != nil {
				return fmt.Errorf("choosing the antenna %s of %s: %w", name, d.info.URI, err)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.now[dir].antenna = name
			return nil
		})
	})
}

// ClockSources returns the reference clocks by the module's names.
func (d *device) ClockSources() []string { return slices.Clone(d.clocks) }

// ClockSource returns the one that was chosen last.
func (d *device) ClockSource() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock
}

// anyWay returns a direction that is there.
func (d *device) anyWay() radio.Direction {
	if d.ways[radio.Receive].there {
		return radio.Receive
	}
	return radio.Transmit
}

// choose sets one of the board's sources.
func (d *device) choose(ctx context.Context, what, name string, all []string, set func(context.Context, string) error, to *string) error {
	if !slices.Contains(all, name) {
		return fmt.Errorf("%s has no %s source %q; allowed is %s", d.info.URI, what, name, strings.Join(all, ", "))
	}
	return d.set(ctx, d.anyWay(), func(ctx context.Context) error {
		if err := set(ctx, name); err != nil {
			return fmt.Errorf("choosing the %s source %s of %s: %w", what, name, d.info.URI, err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		*to = name
		return nil
	})
}

// SetClockSource chooses the reference clock.
func (d *device) SetClockSource(ctx context.Context, name string) error {
	return d.disturb(radio.Receive, func() error {
		return d.disturb(radio.Transmit, func() error {
			return d.choose(ctx, "clock", name, d.clocks, d.board.SetClockSource, &d.clock)
		})
	})
}

// ClockLocked asks the board's sensor ref_locked.
func (d *device) ClockLocked(ctx context.Context) (bool, error) {
	if !d.refLocked {
		return false, fmt.Errorf("%s: %w", d.info.URI, ErrNoSensor)
	}
	if err := d.usable(ctx); err != nil {
		return false, err
	}
	ctx, cancel := d.call(ctx)
	defer cancel()
	v, err := d.board.ReadSensor(ctx, refLocked)
	if err != nil {
		return false, fmt.Errorf("asking %s for %s: %w", d.info.URI, refLocked, err)
	}
	return strings.EqualFold(v, "true") || v == "1", nil
}

// TimeSources returns where pulses may come from, by the module's names.
func (t timekeeper) TimeSources() []string { return slices.Clone(t.d.times) }

// TimeSource returns the one that was chosen last.
func (t timekeeper) TimeSource() string {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	return t.d.time
}

// SetTimeSource chooses where pulses come from.
func (t timekeeper) SetTimeSource(ctx context.Context, name string) error {
	return t.d.choose(ctx, "time", name, t.d.times, t.d.board.SetTimeSource, &t.d.time)
}

// pulse is the clock of the last pulse, as modules name it.
const pulse = "PPS"

// Time returns what the board's clock shows.
func (t timekeeper) Time(ctx context.Context) (radio.DeviceTime, error) {
	return t.d.hardwareTime(ctx, "")
}

// LastPulse returns what it showed at the last pulse.
func (t timekeeper) LastPulse(ctx context.Context) (radio.DeviceTime, error) {
	ctx, cancel := t.d.call(ctx)
	defer cancel()
	there, err := t.d.board.HasHardwareTime(ctx, pulse)
	if err != nil {
		return 0, fmt.Errorf("asking %s for its clock at the last pulse: %w", t.d.info.URI, err)
	}
	if !there {
		return 0, fmt.Errorf("%s does not tell its clock at the last pulse", t.d.info.URI)
	}
	return t.d.hardwareTime(ctx, pulse)
}

func (d *device) hardwareTime(ctx context.Context, what string) (radio.DeviceTime, error) {
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := d.call(ctx)
	defer cancel()
	v, err := d.board.HardwareTime(ctx, what)
	if err != nil {
		return 0, fmt.Errorf("asking %s for its clock: %w", d.info.URI, err)
	}
	return radio.DeviceTime(v), nil
}

// SetTimeAtPulse has the clock show t at the next pulse.
func (t timekeeper) SetTimeAtPulse(ctx context.Context, at radio.DeviceTime) error {
	return t.d.set(ctx, t.d.anyWay(), func(ctx context.Context) error {
		if err := t.d.board.SetHardwareTime(ctx, Time(at), pulse); err != nil {
			return fmt.Errorf("setting the clock of %s: %w", t.d.info.URI, err)
		}
		return nil
	})
}

// StartAt has streams begin at a time.
func (t timekeeper) StartAt(at radio.DeviceTime) {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	zero := Time(at)
	t.d.startAt = &zero
}

// Now returns the index that the clock has reached, of the stream that is open: that of the
// transmitter, if both are.
func (t timekeeper) Now(ctx context.Context) (radio.SampleIndex, error) {
	now, err := t.Time(ctx)
	if err != nil {
		return 0, err
	}
	t.d.mu.Lock()
	rx, tx := t.d.rx, t.d.tx
	t.d.mu.Unlock()
	switch {
	case tx != nil && tx.State() == radio.Running:
		return tx.clock.index(Time(now)), nil
	case rx != nil && rx.State() == radio.Running:
		return rx.source.counts().index(Time(now)), nil
	}
	return 0, fmt.Errorf("asking %s for its index: %w", t.d.info.URI, radio.ErrNotStarted)
}

// firstTime returns when a stream is to begin that starts now, and whether the board is to be
// told. A stream of no time begins when it does.
func (d *device) firstTime(ctx context.Context, ahead time.Duration) (at Time, chosen bool, err error) {
	d.mu.Lock()
	start := d.startAt
	d.mu.Unlock()
	now, err := d.hardwareTime(ctx, "")
	switch {
	case err != nil:
		return 0, false, err
	case start == nil:
		return Time(now) + Time(ahead), false, nil
	case *start <= Time(now):
		return 0, false, fmt.Errorf("%s was to start %v ago", d.info.URI, time.Duration(Time(now)-*start))
	}
	return *start, true, nil
}
