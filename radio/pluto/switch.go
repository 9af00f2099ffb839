package pluto

import (
	"context"
	"fmt"
	"strconv"

	"ringwave/radio"
	"ringwave/radio/life"
)

// Switch is a guard's way to a board: a connection of its own, over which it switches the
// board's transmitter off beside the program that sends with it.
type Switch struct{ d *Device }

// watched returns the URI by which a guard finds the board.
func (o options) watched() radio.URI {
	return radio.URI{Scheme: "pluto", Name: o.address, Params: map[string][]string{
		"deadline_ms": {strconv.FormatInt(min(o.deadline, offTimeout).Milliseconds(), 10)},
	}}
}

// OpenSwitch opens the way to a board: pluto:HOST:PORT, of whose parameters only
// deadline_ms is allowed. It changes nothing.
func OpenSwitch(ctx context.Context, u radio.URI) (*Switch, error) {
	if err := u.Only("deadline_ms"); err != nil {
		return nil, err
	}
	opts, err := parseOptions(u)
	if err != nil {
		return nil, err
	}
	if opts.deadline == 0 { // a guard waits for nothing for ever
		opts.deadline = offTimeout
	}
	d, err := open(ctx, u, opts, &Opener{session: &life.Life{}})
	if err != nil {
		return nil, fmt.Errorf("opening device %q for a guard: %w", u, err)
	}
	return &Switch{d}, nil
}

// Off sets the greatest attenuation and switches the transmit oscillator and the
// synthesizer's tones off, over a new connection where the last one broke.
func (s *Switch) Off() error { return s.d.off() }

// Close returns the board back as it is.
func (s *Switch) Close() error { return s.d.Close() }
