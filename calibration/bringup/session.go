package bringup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"sync"

	"ringwave/radio"
	"ringwave/radio/array"
)

// session is the boards that a step has open.
type session struct {
	b       *bench
	devices *radio.Registry
	guarded func() error
	open    []radio.Device
}

// begin makes a session, to be closed.
func (b *bench) begin(ctx context.Context) (*session, error) {
	devices, guarded, err := b.cfg.Devices(ctx)
	if err != nil {
		return nil, err
	}
	return &session{b: b, devices: devices, guarded: guarded}, nil
}

// close closes what is open and returns err with what that said. All boards are closed at once:
// a transmitter ends when what was written is sent, for which a bench in virtual time may wait
// for a receiver that nobody reads any more.
func (s *session) close(err error) error {
	if err != nil && s.guarded != nil && s.guarded() != nil && !errors.Is(err, radio.ErrGuard) {
		err = fmt.Errorf("%w: %w", s.guarded(), err)
	}
	said := make([]error, len(s.open))
	var closing sync.WaitGroup
	for i, d := range s.open {
		closing.Go(func() { said[i] = d.Close() })
	}
	closing.Wait()
	for _, ended := range slices.Backward(said) {
		err = cmp.Or(err, ended)
	}
	s.open = nil
	return err
}

// device opens a board and sets it as runs do; tuned is its carrier as it took it.
func (s *session) device(ctx context.Context, role, uri string, dir radio.Direction, cfg array.Config) (d radio.Device, tuned radio.Hertz, err error) {
	d, err = s.devices.Open(ctx, uri)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", role, err)
	}
	s.open = append(s.open, d)
	if tuned, err = array.Set(ctx, d, dir, cfg); err != nil {
		return nil, 0, fmt.Errorf("%s, %s: %w", role, uri, err)
	}
	// Whether there is a clock is for the step that asks for it.
	if c, ok := d.(radio.ClockControl); ok && cfg.Clock == array.ExternalClock && slices.Contains(c.ClockSources(), external) {
		_ = c.SetClockSource(ctx, external)
	}
	return d, tuned, nil
}

// external is the clock source at a board's input.
const external = "external"

// transmitterRole names transmitter i, from 0.
func transmitterRole(i int) string { return fmt.Sprintf("transmitter %d", i+1) }

// named is how findings name a transmitter.
func (b *bench) named(i int) string {
	return fmt.Sprintf("%s, %s,", transmitterRole(i), b.cfg.Array.Transmitters[i])
}

// transmitter opens transmitter i.
func (s *session) transmitter(ctx context.Context, i int) (radio.Device, error) {
	d, _, err := s.device(ctx, transmitterRole(i), s.b.cfg.Array.Transmitters[i], radio.Transmit, s.b.cfg.Array)
	return d, err
}

// voice opens and starts transmitter i, which sends nothing yet.
func (s *session) voice(ctx context.Context, i int) (radio.Transmitter, error) {
	d, err := s.transmitter(ctx, i)
	if err != nil {
		return nil, err
	}
	named := s.b.named(i)
	o, ok := d.(radio.TransmitOpener)
	if !ok {
		return nil, fmt.Errorf("%s cannot transmit", named)
	}
	if t, ok := d.(radio.TriggerControl); ok {
		if err := t.SetTrigger(ctx, ""); err != nil {
			return nil, fmt.Errorf("%s: %w", named, err)
		}
	}
	tx, err := o.OpenTransmitter(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", named, err)
	}
	return tx, tx.Start(ctx)
}

// ear is a receiver that listens.
type ear struct {
	uri         string
	device      radio.Device
	rx          radio.Receiver
	rate, tuned radio.Hertz
}

// receiver opens a receiver, the bench's or the second, beside the carrier by beside. The
// second may be of another kind: its gains are left as they are, and it has the rate that
// it can have next to the bench's.
func (s *session) receiver(ctx context.Context, uri string, beside radio.Hertz) (e *ear, err error) {
	cfg, role := s.b.cfg.Array, "the receiver"
	cfg.Frequency -= beside
	e = &ear{uri: uri, rate: cfg.Rate}
	if uri == cfg.Receiver {
		e.device, e.tuned, err = s.device(ctx, role, uri, radio.Receive, cfg)
		return e, err
	}
	role = "the second receiver"
	if e.device, err = s.devices.Open(ctx, uri); err != nil {
		return e, fmt.Errorf("%s: %w", role, err)
	}
	s.open = append(s.open, e.device)
	rate, hasRate := e.device.(radio.RateControl)
	tuner, hasTuner := e.device.(radio.FrequencyControl)
	if !hasRate || !hasTuner {
		return e, fmt.Errorf("%s, %s, cannot be tuned", role, uri)
	}
	span := rate.SampleRates(radio.Receive)
	if e.rate, err = rate.SetSampleRate(ctx, radio.Receive, min(max(cfg.Rate, span.Min), span.Max)); err == nil {
		e.tuned, err = tuner.SetFrequency(ctx, radio.Receive, cfg.Frequency)
	}
	if err != nil {
		err = fmt.Errorf("%s, %s: %w", role, uri, err)
	}
	return e, err
}

// listen opens and starts a receiver.
func (s *session) listen(ctx context.Context, uri string, beside radio.Hertz) (*ear, error) {
	e, err := s.receiver(ctx, uri, beside)
	if err != nil {
		return nil, err
	}
	role, d := "the receiver", e.device
	if uri != s.b.cfg.Array.Receiver {
		role = "the second receiver"
	}
	o, ok := d.(radio.ReceiveOpener)
	if !ok {
		return nil, fmt.Errorf("%s, %s, cannot receive", role, uri)
	}
	if t, ok := d.(radio.TriggerControl); ok {
		if err := t.SetTrigger(ctx, ""); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", role, uri, err)
		}
	}
	if e.rx, err = o.OpenReceiver(ctx); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", role, uri, err)
	}
	return e, e.rx.Start(ctx)
}

// take reads n samples, and how many of them were clipped.
func (e *ear) take(ctx context.Context, n int) (samples []complex64, clipped radio.SampleCount, err error) {
	samples = make([]complex64, n)
	got, meta, err := radio.ReadFull(ctx, e.rx, samples)
	if err != nil {
		return samples[:got], meta.Clipped, fmt.Errorf("the receiver, %s: %w", e.uri, err)
	}
	return samples, meta.Clipped, nil
}

// The receiver is tuned 1/besideParts of the rate below the carrier, and the tone is
// toneParts/32 of the rate above it. With it the lines that doc.go names fall apart.
const (
	besideParts = 8
	toneParts   = 3
	tonePeriod  = 32
)

func (b *bench) beside() radio.Hertz { return b.cfg.Array.Rate / besideParts }
func (b *bench) toneAbove() radio.Hertz {
	return b.cfg.Array.Rate * toneParts / tonePeriod
}

// tone is whole periods of the tone.
func (b *bench) tone() []complex64 {
	list := make([]complex64, 256*tonePeriod)
	for k := range list {
		list[k] = complex64(cmplx.Rect(float64(b.cfg.Amplitude), 2*math.Pi*float64(k*toneParts%tonePeriod)/tonePeriod))
	}
	return list
}

// hum writes the tone until ctx ends, or the stream does.
func hum(ctx context.Context, tx radio.Transmitter, tone []complex64) error {
	for ctx.Err() == nil {
		if _, err := tx.Write(ctx, tone, radio.TxMeta{}); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// Beacon sends the tone with all transmitters at once until ctx ends. ready hears once they
// send.
func Beacon(ctx context.Context, cfg Config, ready func()) (err error) {
	b := &bench{cfg: cfg}
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := b.begin(own)
	if err != nil {
		return err
	}
	defer func() { err = s.close(err) }()
	var all []radio.Transmitter
	for i := range cfg.Array.Transmitters {
		tx, err := s.voice(own, i)
		if err != nil {
			return err
		}
		all = append(all, tx)
	}
	ended := make(chan error, len(all))
	for _, tx := range all {
		go func() { ended <- hum(own, tx, b.tone()) }()
	}
	ready()
	for range all {
		err = errors.Join(err, <-ended)
		cancel()
	}
	return err
}
