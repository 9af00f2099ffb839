package hackrf

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ringwave/radio"
	"ringwave/radio/life"
	"ringwave/radio/usb"
)

// Opener opens hackrf:SERIAL, where SERIAL is the end of a board's serial number, of
// hexadecimal digits in either case, or as it is written where it has others; hackrf:
// is the only board there is. The parameters are
//
//	at=001/004      the board's bus and address, where serial numbers do not tell
//	freq_hz         carrier, 1e6 to 6e9, 2.45e9 unless given
//	rate_hz         sample rate, 2e6 to 20e6, 10e6 unless given
//	filter_hz       baseband filter, 1.75e6 to 28e6, else 3/4 of the rate
//	rx_amp, lna, vga, txvga, tx_amp
//	                gains in dB: 0 or 11, 0 to 40, 0 to 62, 0 to 47, 0 or 11; those
//	                for transmitting are 0 unless given, lna and vga 16
//	bias=on         power for an amplifier at the antenna, which must be permitted
//	clkout=on|off   10 MHz at the clock output; left as it is unless given
//	clock=external  fail where there are no 10 MHz at the clock input
//	trigger=trigger-in
//	                streams wait for an edge at the trigger input
//	feed=strict     see the package
//	transfer, transfers
//	                bytes of a USB transfer, 262144 unless given, a multiple of 512;
//	                the number that is queued, 4 unless given
//	ring            transfers that may wait for the program when receiving, 64
//	hold=on         leave what is beyond the ring with the board, do not count it
//	window          samples that may wait for the board when transmitting, 4194304
//	poll_ms         time between two questions for losses, 250 unless given
//	deadline_ms     time without a sample after which a stream fails, 1000 unless
//	                given, 0 for none
//	limit_ms        time without a sample after which the board itself sends none
//	                any more, and for which the program may stand still before its
//	                guard switches the board off: 200 and 1000 unless given, 0 for
//	                neither
//	control_ms      time that a control request may take, 1000 unless given
type Opener struct {
	session *life.Life
	host    usb.Host
	permit  radio.TransmitPermit
	guard   radio.Guard
}

// NewOpener makes an opener of the boards of a host. When session ends, whatever
// the boards transmit is cut off at once and their carriers go off. permit is what
// the user has confirmed that may be sent, and guard watches over the boards that do;
// their zero values are for receiving.
func NewOpener(session context.Context, host usb.Host, permit radio.TransmitPermit, guard radio.Guard) *Opener {
	return &Opener{life.Of(session), host, permit, guard}
}

// List returns the boards that are plugged in.
func List(ctx context.Context, host usb.Host) ([]usb.Listed, error) {
	return host.List(ctx, IsBoard)
}

// Open opens a board, switches it off and gives it the URI's settings.
func (o *Opener) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	opts, err := parseOptions(u)
	if err != nil {
		return nil, err
	}
	board, err := o.find(ctx, u, opts)
	if err != nil {
		return nil, err
	}
	if board.Blocked != nil {
		return nil, fmt.Errorf("opening device %q: %w", u, board.Blocked)
	}
	t, err := o.host.Open(ctx, board.Address)
	if err != nil {
		return nil, fmt.Errorf("opening device %q: %w", u, err)
	}
	d := newDevice(t, board, opts, o)
	if err := d.setUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening device %q: %w", u, err), t.Close())
	}
	return d, nil
}

// find returns the one board that a URI names.
func (o *Opener) find(ctx context.Context, u radio.URI, opts options) (usb.Listed, error) {
	boards, err := List(ctx, o.host)
	if err != nil {
		return usb.Listed{}, fmt.Errorf("opening device %q: %w", u, err)
	}
	var named []usb.Listed
	for _, b := range boards {
		if endsIn(b.Serial, u.Name) && (opts.at == "" || opts.at == b.Address.String()) {
			named = append(named, b)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(boards) == 0:
		return usb.Listed{}, fmt.Errorf("device %q: no HackRF is plugged in", u)
	case len(named) == 0:
		return usb.Listed{}, fmt.Errorf("device %q: no HackRF is known by this; there are %s", u, describe(boards))
	}
	return usb.Listed{}, fmt.Errorf("device %q: %d boards are known by this; allowed is one, by more digits of its serial number or by at=BUS/DEVICE, of %s", u, len(named), describe(named))
}

// endsIn reports whether a serial number ends in what a user wrote. Hexadecimal digits
// are the same in either case; other names, as that of a board whose firmware runs from
// RAM, are not.
func endsIn(serial, end string) bool {
	if strings.Trim(serial, "0123456789abcdefABCDEF") == "" {
		serial, end = strings.ToLower(serial), strings.ToLower(end)
	}
	return strings.HasSuffix(serial, end)
}

// describe returns boards in a sentence.
func describe(boards []usb.Listed) string {
	var each []string
	for _, b := range boards {
		s := "serial " + b.Serial
		if b.Serial == "" {
			s = "one without a serial number"
		}
		s += fmt.Sprintf(" at %v", b.Address)
		if b.Blocked != nil {
			s += fmt.Sprintf(" (%v)", b.Blocked)
		}
		each = append(each, s)
	}
	return strings.Join(each, ", ")
}
