package remote

import (
	"context"

	"ringwave/radio"
)

// clocked, triggered and timed are what not every radio has.
type (
	clocked   struct{ d *Device }
	triggered struct{ d *Device }
	timed     struct{ d *Device }
)

// ClockSources implements radio.ClockControl.
func (c clocked) ClockSources() []string { return c.d.known().Clocks }

// ClockSource implements radio.ClockControl.
func (c clocked) ClockSource() string { return c.d.known().Clock }

// SetClockSource implements radio.ClockControl.
func (c clocked) SetClockSource(ctx context.Context, name string) error {
	_, err := c.d.call(ctx, &request{Op: opClock, Name: name}, nil)
	return err
}

// ClockLocked implements radio.ClockControl.
func (c clocked) ClockLocked(ctx context.Context) (bool, error) {
	a, err := c.d.call(ctx, &request{Op: opLocked}, nil)
	return err == nil && a.Yes, err
}

// TriggerSources implements radio.TriggerControl.
func (t triggered) TriggerSources() []string { return t.d.known().Triggers }

// SetTrigger implements radio.TriggerControl.
func (t triggered) SetTrigger(ctx context.Context, source string) error {
	_, err := t.d.call(ctx, &request{Op: opTrigger, Name: source}, nil)
	return err
}

// Now implements radio.TimeControl.
func (t timed) Now(ctx context.Context) (radio.SampleIndex, error) {
	a, err := t.d.call(ctx, &request{Op: opNow}, nil)
	if err != nil {
		return 0, err
	}
	return a.Index, nil
}

// What a device has beyond what all have.
const (
	hasClock = 1 << iota
	hasTrigger
	hasTime
)

// capable returns d with the capabilities that the radio has, and no others.
func (d *Device) capable() radio.Device {
	s := d.known()
	c, t, n := clocked{d}, triggered{d}, timed{d}
	switch bit(s.Clocked, hasClock) | bit(s.Triggered, hasTrigger) | bit(s.Timed, hasTime) {
	case hasClock:
		return struct {
			*Device
			radio.ClockControl
		}{d, c}
	case hasTrigger:
		return struct {
			*Device
			radio.TriggerControl
		}{d, t}
	case hasClock | hasTrigger:
		return struct {
			*Device
			radio.ClockControl
			radio.TriggerControl
		}{d, c, t}
	case hasTime:
		return struct {
			*Device
			radio.TimeControl
		}{d, n}
	case hasClock | hasTime:
		return struct {
			*Device
			radio.ClockControl
			radio.TimeControl
		}{d, c, n}
	case hasTrigger | hasTime:
		return struct {
			*Device
			radio.TriggerControl
			radio.TimeControl
		}{d, t, n}
	case hasClock | hasTrigger | hasTime:
		return struct {
			*Device
			radio.ClockControl
			radio.TriggerControl
			radio.TimeControl
		}{d, c, t, n}
	}
	return d
}

// bit returns b if is.
func bit(is bool, b int) int {
	if is {
		return b
	}
	return 0
}
