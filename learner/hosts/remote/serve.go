package remote

import (
	"context"
	"errors"
	"fmt"

	"ringwave/radio"
)

// errPatience: the time that a request had is over.
var errPatience = fmt.Errorf("the request's time is over: %w", context.DeadlineExceeded)

// errEnds: the host is closed, or a newer request has come.
var errEnds = fmt.Errorf("%w: its host has ended what was under way", radio.ErrClosed)

// do does what a request asks for and returns the answer.
func (h *Host) do(ctx context.Context, r *request) []byte {
	began := h.cfg.Now()
	wait := longest
	if r.Wait > 0 {
		wait = min(wait, r.Wait)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errPatience)
	defer cancel()
	var a answer
	if err := h.perform(ctx, r, &a); err != nil {
		if context.Cause(ctx) == context.Canceled { // nobody at the proxy has cancelled it
			err = errEnds
		}
		a.fails(err)
	}
	a.Took = min(max(0, h.cfg.Now().Sub(began)), 2*longest)
	if h.stream != nil {
		seen := r.Seen
		if r.Stream != h.stream.number {
			seen = 0
		}
		a.Stream = h.stream.status(seen)
	}
	out, err := encode(answers, r.id, &a, a.payload)
	if err != nil {
		h.cfg.Say(err.Error())
		return refusal(r.id, err)
	}
	return out
}

// perform does what a request asks for.
func (h *Host) perform(ctx context.Context, r *request, a *answer) error {
	switch r.Op {
	case opOpen:
		return h.open(ctx, r, a)
	case opLeave:
		return h.shut()
	}
	if h.radio == nil {
		return radio.ErrClosed
	}
	var set func(context.Context, *request, *answer) error
	switch r.Op {
	case opTransmit:
		return h.transmit(ctx)
	case opFrequency:
		set = h.tune
	case opRate:
		set = h.rate
	case opGain:
		set = h.gain
	case opClock, opLocked:
		set = h.clock
	case opTrigger:
		set = h.trigger
	case opNow:
		set = h.now
	default:
		return h.onStream(ctx, r, a)
	}
	err := set(ctx, r, a)
	a.Device = describe(h.radio)
	return err
}

// open opens the radio for a new proxy, and closes what another had.
func (h *Host) open(ctx context.Context, r *request, a *answer) error {
	h.mu.Lock()
	h.session = r.id
	h.mu.Unlock()
	if err := h.shut(); err != nil {
		h.cfg.Say(fmt.Sprintf("closing the radio that another had open: %v", err))
	}
	h.stream, h.streams, h.bursts = nil, 0, kept{}
	d, err := h.cfg.Open(ctx)
	if err != nil {
		return err
	}
	if _, ok := d.(radio.TransmitOpener); !ok {
		return errors.Join(fmt.Errorf("%s cannot transmit", d.Info().URI), d.Close())
	}
	h.radio, a.Device = d, describe(d)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.info = d.Info()
	return nil
}

// transmit opens a stream.
func (h *Host) transmit(ctx context.Context) error {
	tx, err := h.radio.(radio.TransmitOpener).OpenTransmitter(ctx)
	if err != nil {
		return err
	}
	// One that the driver has ended by itself is still watched over.
	if err := h.end(); err != nil {
		return errors.Join(err, tx.Close())
	}
	h.streams++
	s := &stream{tx: tx, number: h.streams, over: make(chan struct{})}
	h.stream = s
	h.watches.Add(1)
	go h.watch(s)
	return nil
}

// cannot says that the radio has no such control.
func (h *Host) cannot(what string) error {
	return fmt.Errorf("%s has no control of its %s", h.radio.Info().URI, what)
}

func (h *Host) tune(ctx context.Context, r *request, a *answer) error {
	c, ok := h.radio.(radio.FrequencyControl)
	if !ok {
		return h.cannot("frequency")
	}
	got, err := c.SetFrequency(ctx, radio.Transmit, radio.Hertz(r.Value))
	a.Value = float64(got)
	return err
}

func (h *Host) rate(ctx context.Context, r *request, a *answer) error {
	c, ok := h.radio.(radio.RateControl)
	if !ok {
		return h.cannot("sample rate")
	}
	got, err := c.SetSampleRate(ctx, radio.Transmit, radio.Hertz(r.Value))
	a.Value = float64(got)
	return err
}

func (h *Host) gain(ctx context.Context, r *request, a *answer) error {
	c, ok := h.radio.(radio.GainControl)
	if !ok {
		return h.cannot("gains")
	}
	got, err := c.SetGain(ctx, radio.Transmit, r.Name, radio.Decibels(r.Value))
	a.Value = float64(got)
	return err
}

func (h *Host) clock(ctx context.Context, r *request, a *answer) (err error) {
	c, ok := h.radio.(radio.ClockControl)
	switch {
	case !ok:
		return h.cannot("clock")
	case r.Op == opClock:
		return c.SetClockSource(ctx, r.Name)
	}
	a.Yes, err = c.ClockLocked(ctx)
	return err
}

func (h *Host) trigger(ctx context.Context, r *request, _ *answer) error {
	c, ok := h.radio.(radio.TriggerControl)
	if !ok {
		return h.cannot("trigger")
	}
	return c.SetTrigger(ctx, r.Name)
}

func (h *Host) now(ctx context.Context, _ *request, a *answer) (err error) {
	c, ok := h.radio.(radio.TimeControl)
	if !ok {
		return h.cannot("time")
	}
	a.Index, err = c.Now(ctx)
	return err
}

// describe returns what a radio is, can do and is set to.
func describe(d radio.Device) *settings {
	s := &settings{Info: d.Info()}
	const dir = radio.Transmit
	if c, ok := d.(radio.FrequencyControl); ok {
		s.Tunes, s.Frequencies, s.Frequency = true, c.Frequencies(dir), c.Frequency(dir)
	}
	if c, ok := d.(radio.RateControl); ok {
		s.Rates, s.SampleRates, s.SampleRate = true, c.SampleRates(dir), c.SampleRate(dir)
	}
	if c, ok := d.(radio.GainControl); ok {
		s.Amplifies = true
		for _, g := range c.GainStages(dir) {
			now, err := c.Gain(dir, g.Name)
			if err == nil {
				s.Stages = append(s.Stages, stage{g, now})
			}
		}
	}
	if c, ok := d.(radio.ClockControl); ok {
		s.Clocked, s.Clocks, s.Clock = true, c.ClockSources(), c.ClockSource()
	}
	if c, ok := d.(radio.TriggerControl); ok {
		s.Triggered, s.Triggers = true, c.TriggerSources()
	}
	_, s.Timed = d.(radio.TimeControl)
	if b, ok := d.(interface{ BufferSamples() radio.SampleCount }); ok {
		s.Buffer = b.BufferSamples()
	}
	return s
}
