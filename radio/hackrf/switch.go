package hackrf

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ringwave/radio"
	"ringwave/radio/usb"
)

// switchTimeout bounds a control request of a guard.
const switchTimeout = time.Second

// Switch is a guard's way to a board: what switches it off beside the program that has it
// open.
type Switch struct{ board usb.Controller }

// watched returns the URI by which a guard finds a board.
func watched(b usb.Listed) radio.URI {
	return radio.URI{Scheme: "hackrf", Name: b.Serial, Params: map[string][]string{"at": {b.Address.String()}}}
}

// OpenSwitch opens the way to the board hackrf:SERIAL?at=BUS/DEVICE. It changes nothing.
func OpenSwitch(ctx context.Context, host usb.Host, u radio.URI) (*Switch, error) {
	p := radio.ReadSettings(u, "at")
	at, ok := parseAddress(p.Text("at"))
	if !ok {
		p.Wrong("at", "BUS/DEVICE")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	board, err := host.OpenBeside(ctx, at, IsBoard)
	if err != nil {
		return nil, fmt.Errorf("opening device %q for a guard: %w", u, err)
	}
	return &Switch{board}, nil
}

// parseAddress reads what Address.String gives.
func parseAddress(s string) (usb.Address, bool) {
	bus, device, _ := strings.Cut(s, "/")
	b, err := strconv.ParseUint(bus, 10, 16)
	d, err2 := strconv.ParseUint(device, 10, 16)
	return usb.Address{Bus: int(b), Device: int(d)}, err == nil && err2 == nil
}

// Off switches the board off and its amplifier with it. A board that is gone is off.
func (s *Switch) Off() error {
	for _, r := range []request{setMode, setAmp} { // to modeOff, and to no amplification
		_, err := s.board.Control(usb.Setup{RequestType: usb.VendorOut, Request: r.number}, nil, switchTimeout)
		switch {
		case errors.Is(err, usb.ErrUnplugged):
			return nil
		case err != nil:
			return fmt.Errorf("setting %s: %w", r.name, err)
		}
	}
	return nil
}

// Close returns the board back as it is.
func (s *Switch) Close() error { return s.board.Close() }
