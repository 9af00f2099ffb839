package soapy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ringwave/radio"
)

// Switch is a guard's way to a board that only one program can have at a time.
type Switch struct {
	backend Backend
	uri     radio.URI
	opts    options
	end     func() error
}

// watched returns the URI by which a guard finds the board.
func (d *device) watched() radio.URI { return d.uri }

// OpenSwitch returns a guard's way to a board: a URI that was opened. End ends the program that
// has the board, if it lives, and returns once it is gone: while it stands still it keeps the
// board from everybody else. It opens nothing yet.
func OpenSwitch(u radio.URI, backend Backend, remote bool, reserved []string, end func() error) (*Switch, error) {
	opts, err := parseOptions(u, remote, reserved)
	if err != nil {
		return nil, err
	}
	return &Switch{backend, u, opts, end}, nil
}

// switchPatience bounds one try to switch a board off.
const switchPatience = 5 * time.Second

// Off ends the program, opens the board, takes its transmit gains to their least, ends what it
// transmits and gives it back.
func (s *Switch) Off() (err error) {
	if err := s.end(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), switchPatience)
	defer cancel()
	b, err := s.backend.Make(ctx, s.uri, s.opts.args)
	if err != nil {
		return fmt.Errorf("opening device %q for a guard: %w", s.uri, err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	at := Channel{radio.Transmit, s.opts.channel}
	gains, err := b.Gains(ctx, at)
	if err != nil {
		return fmt.Errorf("asking %q for its gains: %w", s.uri, err)
	}
	for _, name := range gains[:min(len(gains), maxStages)] {
		r, err := b.GainRange(ctx, at, name)
		if err == nil {
			err = b.SetGain(ctx, at, name, r.Min)
		}
		if err != nil {
			return fmt.Errorf("setting the gain %s of %q: %w", name, s.uri, err)
		}
	}
	formats, err := b.Formats(ctx, at)
	if err != nil || len(formats) == 0 {
		return errors.Join(fmt.Errorf("asking %q for its formats", s.uri), err)
	}
	stream, err := b.SetupStream(ctx, at, formats[0], nil)
	if err != nil {
		return fmt.Errorf("making a stream of %q: %w", s.uri, err)
	}
	return errors.Join(stream.Deactivate(ctx, 0, 0), stream.Close())
}

// Close gives nothing back: nothing is open.
func (s *Switch) Close() error { return nil }
