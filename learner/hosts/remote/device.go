package remote

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"ringwave/radio"
	"ringwave/radio/life"
)

// Device is another host's transmitter. It is safe for use by several goroutines.
type Device struct {
	link
	life life.Life // ends with Close

	mu       sync.Mutex
	settings settings
	tx       *Transmitter // the last one opened, or nil
	closed   bool
}

// call asks for something of the device, and takes in what the answer tells.
func (d *Device) call(ctx context.Context, r *request, payload []byte) (*answer, error) {
	ctx, release := joined(ctx, &d.life)
	defer release()
	if err := d.take(ctx); err != nil {
		return nil, err
	}
	defer d.give()
	return d.ask(ctx, d.stream(), r, payload)
}

// ask is call with the turn taken, in a context that knows of all that may end it. What the
// answer tells of stream tx is taken in; it may be nil.
func (d *Device) ask(ctx context.Context, tx *Transmitter, r *request, payload []byte) (*answer, error) {
	if tx != nil {
		r.Stream, r.Seen = tx.number, tx.seen()
	}
	a, sent, err := d.exchange(ctx, r, payload)
	if err != nil {
		return nil, err
	}
	if a.Device != nil {
		d.mu.Lock()
		d.settings = *a.Device
		d.mu.Unlock()
	}
	if tx != nil && a.Stream != nil && a.Stream.Number == tx.number {
		tx.learn(a.Stream, sent.Add(a.Took))
	}
	return a, a.failure()
}

// stream returns the stream that was opened last, or nil.
func (d *Device) stream() *Transmitter {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tx
}

// known returns the settings that were heard of last.
func (d *Device) known() settings {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settings
}

// Info returns what the radio says of itself on its host.
func (d *Device) Info() radio.Info { return d.known().Info }

// BufferSamples returns the number of samples that the radio's own buffers hold, 0 if it
// does not tell.
func (d *Device) BufferSamples() radio.SampleCount { return d.known().Buffer }

// Close closes the stream, and the radio on its host.
func (d *Device) Close() error {
	d.mu.Lock()
	closed, tx := d.closed, d.tx
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	if tx != nil {
		tx.cut()
	}
	d.life.End(radio.ErrClosed)
	ctx, cancel := ending()
	defer cancel()
	if err := d.take(ctx); err != nil {
		return err
	}
	defer d.give()
	_, err := d.ask(ctx, tx, &request{Op: opLeave}, nil)
	if tx != nil {
		tx.end(nil)
	}
	return unlessClosed(err)
}

// onlyTransmits says why a setting cannot be made.
func (d *Device) onlyTransmits(dir radio.Direction) error {
	if dir == radio.Transmit {
		return nil
	}
	return fmt.Errorf("host %d's radio is there to transmit; allowed is no setting to %v", d.index, dir)
}

// set makes a setting, and returns the value that the radio took.
func (d *Device) set(ctx context.Context, dir radio.Direction, r *request) (float64, error) {
	if err := d.onlyTransmits(dir); err != nil {
		return 0, err
	}
	a, err := d.call(ctx, r, nil)
	if err != nil {
		return 0, err
	}
	return a.Value, nil
}

// Frequencies implements radio.FrequencyControl.
func (d *Device) Frequencies(dir radio.Direction) radio.Span[radio.Hertz] {
	if dir != radio.Transmit {
		return radio.Span[radio.Hertz]{}
	}
	return d.known().Frequencies
}

// Frequency implements radio.FrequencyControl.
func (d *Device) Frequency(dir radio.Direction) radio.Hertz {
	if dir != radio.Transmit {
		return 0
	}
	return d.known().Frequency
}

// SetFrequency implements radio.FrequencyControl.
func (d *Device) SetFrequency(ctx context.Context, dir radio.Direction, f radio.Hertz) (radio.Hertz, error) {
	v, err := d.set(ctx, dir, &request{Op: opFrequency, Value: float64(f)})
	return radio.Hertz(v), err
}

// SampleRates implements radio.RateControl.
func (d *Device) SampleRates(dir radio.Direction) radio.Span[radio.Hertz] {
	if dir != radio.Transmit {
		return radio.Span[radio.Hertz]{}
	}
	return d.known().SampleRates
}

// SampleRate implements radio.RateControl.
func (d *Device) SampleRate(dir radio.Direction) radio.Hertz {
	if dir != radio.Transmit {
		return 0
	}
	return d.known().SampleRate
}

// SetSampleRate implements radio.RateControl.
func (d *Device) SetSampleRate(ctx context.Context, dir radio.Direction, rate radio.Hertz) (radio.Hertz, error) {
	v, err := d.set(ctx, dir, &request{Op: opRate, Value: float64(rate)})
	return radio.Hertz(v), err
}

// GainStages implements radio.GainControl.
func (d *Device) GainStages(dir radio.Direction) []radio.GainStage {
	if dir != radio.Transmit {
		return nil
	}
	var all []radio.GainStage
	for _, s := range d.known().Stages {
		all = append(all, s.GainStage)
	}
	return all
}

// Gain implements radio.GainControl.
func (d *Device) Gain(dir radio.Direction, name string) (radio.Decibels, error) {
	if err := d.onlyTransmits(dir); err != nil {
		return 0, err
	}
	var names []string
	for _, s := range d.known().Stages {
		if s.Name == name {
			return s.Gain, nil
		}
		names = append(names, s.Name)
	}
	return 0, fmt.Errorf("host %d's radio has no %v gain %q; allowed is %s", d.index, dir, name, strings.Join(names, ", "))
}

// SetGain implements radio.GainControl.
func (d *Device) SetGain(ctx context.Context, dir radio.Direction, name string, g radio.Decibels) (radio.Decibels, error) {
	v, err := d.set(ctx, dir, &request{Op: opGain, Name: name, Value: float64(g)})
	return radio.Decibels(v), err
}

// OpenTransmitter returns a stream of the radio's: a *Transmitter, or one with what else the
// radio's can do.
func (d *Device) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	ctx, release := joined(ctx, &d.life)
	defer release()
	if err := d.take(ctx); err != nil {
		return nil, err
	}
	defer d.give()
	a, sent, err := d.exchange(ctx, &request{Op: opTransmit}, nil)
	if err == nil {
		err = a.failure()
	}
	if err != nil {
		return nil, err
	}
	if a.Stream == nil {
		return nil, fmt.Errorf("%w: host %d says nothing of the stream that it has opened", errMessage, d.index)
	}
	t := newTransmitter(d, a.Stream, sent.Add(a.Took))
	if !d.replace(t) { // the radio is closed next, and the stream with it
		t.abandon()
		return nil, radio.ErrClosed
	}
	return t.capable(a.Stream), nil
}

// replace has t be the stream, unless the device is closed, in place of one that the radio
// has ended by itself.
func (d *Device) replace(t *Transmitter) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if d.tx != nil {
		d.tx.abandon()
	}
	d.tx = t
	return true
}
