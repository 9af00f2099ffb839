package array

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringwave/radio"
)

// set gives a device rate, carrier and gains.
func (a *Array) set(ctx context.Context, m *member) (err error) {
	m.tuned, err = Set(ctx, m.device, m.dir, a.cfg)
	return err
}

// Set gives one device the rate, the carrier and the gains that an array's devices of that
// direction have, and returns its carrier as it took it.
func Set(ctx context.Context, d radio.Device, dir radio.Direction, cfg Config) (tuned radio.Hertz, err error) {
	rate, ok := d.(radio.RateControl)
	if !ok {
		return 0, errors.New("it does not tell its sample rate")
	}
	got, err := rate.SetSampleRate(ctx, dir, cfg.Rate)
	if err != nil {
		return 0, err
	}
	if got != cfg.Rate {
		return 0, incoherent("it takes a sample rate of %v in place of %v: all must have the same", got, cfg.Rate)
	}
	tuner, ok := d.(radio.FrequencyControl)
	if !ok {
		return 0, errors.New("its carrier cannot be set")
	}
	if tuned, err = tuner.SetFrequency(ctx, dir, cfg.Frequency); err != nil {
		return 0, err
	}
	gains := cfg.ReceiveGains
	if dir == radio.Transmit {
		gains = cfg.TransmitGains
	}
	return tuned, setGains(ctx, d, dir, gains)
}

// setGains sets gains in the order of their names, so that errors do not depend on
// the run.
func setGains(ctx context.Context, d radio.Device, dir radio.Direction, gains map[string]radio.Decibels) error {
	if len(gains) == 0 {
		return nil
	}
	g, ok := d.(radio.GainControl)
	if !ok {
		return fmt.Errorf("it has no %v gains", dir)
	}
	var names []string
	for _, s := range g.GainStages(dir) {
		names = append(names, s.Name)
	}
	// Those that are lowered come first: on the way, no sum is above both ends.
	order := slices.Sorted(maps.Keys(gains))
	for _, stage := range order {
		if !slices.Contains(names, stage) {
			return fmt.Errorf("it has no %v gain %q; allowed is %s", dir, stage, strings.Join(names, ", "))
		}
	}
	slices.SortStableFunc(order, func(x, y string) int { return rank(g, dir, x, gains[x]) - rank(g, dir, y, gains[y]) })
	for _, stage := range order {
		if _, err := g.SetGain(ctx, dir, stage, gains[stage]); err != nil {
			return err
		}
	}
	return nil
}

// rank is 0 for a gain that is lowered and 1 for others.
func rank(g radio.GainControl, dir radio.Direction, stage string, to radio.Decibels) int {
	if now, err := g.Gain(dir, stage); err == nil && to < now {
		return 0
	}
	return 1
}

// checkCarriers wants one carrier, as the devices took it; a receiver may be a little
// beside it.
func (a *Array) checkCarriers() error {
	first := a.members[0]
	for _, m := range a.members[1:] {
		allowed := radio.Hertz(0)
		if m == a.receiver() {
			allowed = beside
		}
		if d := m.tuned - first.tuned; d < -allowed || d > allowed {
			return incoherent("%s, %s, is tuned to %v, and %s to %v", m.role, m.uri, m.tuned, first.role, first.tuned)
		}
	}
	return nil
}

// external is what clock sources at an input have in their names.
const external = "external"

// setClocks chooses the reference clock of all devices.
func (a *Array) setClocks(ctx context.Context) error {
	switch a.cfg.Clock {
	case SharedClock:
		return nil
	case InternalClock:
		if n := len(a.cfg.Transmitters); n > 1 {
			return incoherent("%d transmitters have no common clock, as each takes its own", n)
		}
		return nil
	}
	for _, m := range a.members {
		c, ok := m.device.(radio.ClockControl)
		if !ok {
			return incoherent("%s, %s, does not tell whether it follows a reference clock: if all share one, say that the clock is shared", m.role, m.uri)
		}
		if !slices.Contains(c.ClockSources(), external) {
			return incoherent("%s, %s, cannot follow a reference clock: its clocks are %s", m.role, m.uri, strings.Join(c.ClockSources(), ", "))
		}
		if err := c.SetClockSource(ctx, external); err != nil {
			return incoherent("%s, %s, has no common clock: %w", m.role, m.uri, err)
		}
	}
	return a.checkClocks(ctx)
}

// checkClocks asks whether the reference is there.
func (a *Array) checkClocks(ctx context.Context) error {
	if a.cfg.Clock != ExternalClock {
		return nil
	}
	for _, m := range a.members {
		locked, err := m.device.(radio.ClockControl).ClockLocked(ctx)
		if err != nil {
			return incoherent("%s, %s, does not tell whether it follows the reference clock (if all share one, say that the clock is shared): %w", m.role, m.uri, err)
		}
		if !locked {
			return incoherent("%s, %s, has no reference clock at its input", m.role, m.uri)
		}
	}
	return nil
}

// checkTriggers says why transmitters could not start together.
func (a *Array) checkTriggers() error {
	if len(a.cfg.Transmitters) == 1 {
		return nil
	}
	switch a.cfg.Trigger {
	case PulsedStart:
		return a.checkPulses()
	case NoTrigger:
		for _, m := range a.transmitters() {
			if _, ok := m.device.(radio.TimeControl); !ok {
				return incoherent("%d transmitters have no trigger, so that they start at different times", len(a.cfg.Transmitters))
			}
		}
	case WiredTrigger:
		for _, m := range a.transmitters() {
			if p, ok := m.device.(interface{ TriggerProblem() error }); ok && p.TriggerProblem() != nil {
				return incoherent("%s, %s, can have no trigger wire: %w", m.role, m.uri, p.TriggerProblem())
			}
		}
		for _, m := range a.transmitters()[1:] {
			if source(m) == "" {
				return incoherent("%s, %s, has no trigger input: of several transmitters, all but the first need one", m.role, m.uri)
			}
		}
	case SoundedStart:
		if a.cfg.Locate == nil {
			return incoherent("%d transmitters start at different times, and there is nothing that locates them by soundings", len(a.cfg.Transmitters))
		}
	}
	return nil
}

// source returns a device's trigger input, "" if it has none.
func source(m *member) string {
	if t, ok := m.device.(radio.TriggerControl); ok && len(t.TriggerSources()) > 0 {
		return t.TriggerSources()[0]
	}
	return ""
}

// Coherent says why the array is not coherent any more: ErrIncoherent where a clock
// is lost or a device was retuned since Start.
func (a *Array) Coherent(ctx context.Context) error {
	for _, m := range a.members {
		if f := m.device.(radio.FrequencyControl).Frequency(m.dir); f != m.tuned {
			return incoherent("%s, %s, was retuned in between, to %v", m.role, m.uri, f)
		}
		if s := m.stream(); s != nil && m.epoch != 0 && s.Epoch() != m.epoch {
			return incoherent("%s, %s, was retuned in between, or lost samples or its clock: its tuning epoch is %d and was %d", m.role, m.uri, s.Epoch(), m.epoch)
		}
	}
	return a.checkClocks(ctx)
}
