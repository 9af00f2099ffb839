package array

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringwave/radio"
)

const (
	// pulsePatience is how long a pulse may take that comes once a second.
	pulsePatience = 2500 * time.Millisecond
	// A start is so far ahead of a board's clock, for the array and for each stream that is
	// made until then.
	aheadOfStart, perStream = 500 * time.Millisecond, 250 * time.Millisecond
	// apart is how far apart, in samples, transmitters may be heard that started at one time.
	apart radio.SampleCount = 1
)

// timeOf returns a member's clock; nil if a pulse sets none.
func (m *member) timeOf() radio.TimedStart {
	t, ok := m.device.(radio.TimedStart)
	if !ok || pulseSource(t) == "" {
		return nil
	}
	return t
}

// pulseSource returns where a board's pulses come from: what its URI has chosen, else from
// its input, else from its own GPS receiver.
func pulseSource(t radio.TimedStart) string {
	all := t.TimeSources()
	for _, name := range []string{t.TimeSource(), external, "gpsdo", "mimo"} {
		if inside := name == "" || name == "none" || name == "internal"; !inside && slices.Contains(all, name) {
			return name
		}
	}
	return ""
}

// checkPulses says why transmitters could not start at one time of their clocks.
func (a *Array) checkPulses() error {
	for _, m := range a.transmitters() {
		t, ok := m.device.(radio.TimedStart)
		switch {
		case !ok:
			return incoherent("%s, %s, has no clock that a pulse sets: transmitters without one start together by trigger wires (wired), or are found by soundings (sounded)", m.role, m.uri)
		case m.timeOf() == nil:
			return incoherent("%s, %s, takes no pulses: its time sources are %s", m.role, m.uri, strings.Join(t.TimeSources(), ", "))
		}
	}
	return nil
}

// keepers are the members whose clocks pulses set: the transmitters, and the receiver if it
// has one.
func (a *Array) keepers() (list []*member) {
	for _, m := range a.members {
		if m.timeOf() != nil {
			list = append(list, m)
		}
	}
	return list
}

// appoint has all streams start at one time of clocks that show the same.
func (a *Array) appoint(ctx context.Context) error {
	if a.cfg.Trigger != PulsedStart {
		return nil
	}
	all := a.keepers()
	if err := a.sameTime(ctx, all); err != nil {
		return err
	}
	latest := radio.DeviceTime(0)
	for _, m := range all {
		now, err := m.timeOf().Time(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", m.role, err)
		}
		latest = max(latest, now)
	}
	start := latest + radio.DeviceTime(aheadOfStart+time.Duration(len(a.members))*perStream)
	for _, m := range all {
		m.timeOf().StartAt(start)
	}
	return nil
}

// sameTime has all clocks show the same, which holds until a board is opened anew.
func (a *Array) sameTime(ctx context.Context, all []*member) error {
	for _, m := range all {
		t := m.timeOf()
		if source := pulseSource(t); t.TimeSource() != source {
			if err := t.SetTimeSource(ctx, source); err != nil {
				return fmt.Errorf("%s: %w", m.role, err)
			}
		}
	}
	if a.agreed {
		return a.agree(ctx, all)
	}
	// Behind a pulse there is almost a second to tell all before the next.
	if err := a.awaitPulse(ctx, all[0]); err != nil {
		return err
	}
	for _, m := range all {
		if err := m.timeOf().SetTimeAtPulse(ctx, 0); err != nil {
			return fmt.Errorf("%s: %w", m.role, err)
		}
	}
	if err := a.awaitPulse(ctx, all[0]); err != nil {
		return err
	}
	if err := a.agree(ctx, all); err != nil {
		return err
	}
	a.agreed = true
	return nil
}

// awaitPulse waits until a clock has had a pulse.
func (a *Array) awaitPulse(ctx context.Context, m *member) error {
	before, err := m.timeOf().LastPulse(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", m.role, err)
	}
	return m.until(ctx, pulsePatience, "had no pulse within "+pulsePatience.String()+" from its time source "+m.timeOf().TimeSource(), func() (bool, error) {
		now, err := m.timeOf().LastPulse(ctx)
		return now != before, err
	})
}

// agree says which clock showed something else at the last pulse than the first. A pulse may
// come while they are asked: what one says is compared with what the first says before and
// after it.
func (a *Array) agree(ctx context.Context, all []*member) error {
	first := all[0].timeOf()
	for _, m := range all[1:] {
		before, err := first.LastPulse(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", all[0].role, err)
		}
		its, err := m.timeOf().LastPulse(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", m.role, err)
		}
		after, err := first.LastPulse(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", all[0].role, err)
		}
		if its != before && its != after {
			a.agreed = false
			return incoherent("%s, %s, showed %v at the last pulse, where %s showed %v: do all get the same pulses?", m.role, m.uri, time.Duration(its), all[0].role, time.Duration(before))
		}
	}
	return nil
}

// measure finds out by soundings how far apart transmitters have started that were told a
// time, and leaves their indices as they are.
func (a *Array) measure(ctx context.Context, own []radio.Transmitter) error {
	if a.cfg.Trigger != PulsedStart || a.cfg.Locate == nil || len(own) == 1 {
		return nil
	}
	offsets, err := a.cfg.Locate(ctx, own, a.Receiver())
	if err != nil {
		return fmt.Errorf("measuring by soundings how far apart the transmitters started: %w", err)
	}
	spread := radio.SampleCount(slices.Max(offsets) - slices.Min(offsets))
	a.apart = &spread
	if spread > apart {
		return incoherent("the transmitters have started %d samples apart, as soundings show; allowed is %d", spread, apart)
	}
	return nil
}

// Apart returns how far apart the transmitters have started by what was measured; ok is false
// where it was not.
func (a *Array) Apart() (samples radio.SampleCount, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.apart == nil {
		return 0, false
	}
	return *a.apart, true
}
