package soapy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ringwave/radio"
	"ringwave/radio/life"
)

// Opener opens the boards of a back end: soapy:ARGS, with SoapySDR's arguments as
// driver=uhd,serial=1234, or soapy-remote:HOST:PORT, whose arguments are parameters. Its own
// parameters are
//
//	channel         the channel of each direction, 0 unless given
//	freq_hz, rate_hz, filter_hz
//	                carrier, sample rate and analogue filter, left as they are unless given
//	rx_antenna, tx_antenna, clock, time
//	                ports, the reference clock and where pulses come from, by the module's
//	                names
//	rx_gain.NAME, tx_gain.NAME
//	                gains in dB by the module's names. All gains for transmitting are at their
//	                least unless given
//	setting.KEY     a setting of the module's own (those of power at the antenna's port,
//	                as biastee, must be permitted), and stream.KEY an argument of its streams,
//	                as stream.buffers=4 of a HackRF's
//	format          samples on their way: CF32, CS16, CS8, CU8; the board's own unless given
//	feed=bursts|fill
//	                transmit bursts at their times, or zeros where nothing is written; bursts
//	                is for boards with a clock, and theirs unless given
//	lead_ms         time for a burst's way to the board, 20 unless given
//	settle_ms       time that samples may be on their way to here, 100 unless given
//	deadline_ms     time without a sample after which a stream fails, 2000 unless given, 0
//	                for none
//	limit_ms        time that the program may stand still before its guard switches the board
//	                off, 1000 unless given, 0 for none
//	call_ms         time that a call of SoapySDR may take, 10000 unless given
//
// Parameters are given once. Those of a server's that have no such name go to SoapySDR.
type Opener struct {
	backend  Backend
	remote   bool     // the URI names a server
	reserved []string // parameters of the back end's own
	session  *life.Life
	permit   radio.TransmitPermit
	guard    radio.Guard
}

// NewOpener makes an opener of boards. When session ends nothing is sent any more. permit is
// what the user has confirmed that may be sent, and guard watches over the boards that do;
// their zero values are for receiving.
func NewOpener(session context.Context, backend Backend, permit radio.TransmitPermit, guard radio.Guard) *Opener {
	return &Opener{backend: backend, session: life.Of(session), permit: permit, guard: guard}
}

// NewRemoteOpener makes an opener of the boards of servers, which URIs name. Reserved are the
// parameters that the back end reads.
func NewRemoteOpener(session context.Context, backend Backend, permit radio.TransmitPermit, guard radio.Guard, reserved ...string) *Opener {
	o := NewOpener(session, backend, permit, guard)
	o.remote, o.reserved = true, reserved
	return o
}

// Open opens a board and gives it the URI's settings. Of a board that can send, all transmit
// gains go to their least.
func (o *Opener) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	opts, err := parseOptions(u, o.remote, o.reserved)
	if err != nil {
		return nil, err
	}
	if opts.biased() {
		if err := o.permit.Bias(); err != nil {
			return nil, fmt.Errorf("opening device %q: %w", u, err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, opts.call)
	defer cancel()
	b, err := o.backend.Make(limited, u, opts.args)
	if err != nil {
		return nil, o.notMade(ctx, u, opts, err)
	}
	d := &device{uri: u, opts: opts, board: b, permit: o.permit, guard: o.guard, session: o.session}
	if err := d.setUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening device %q: %w", u, err), d.Close())
	}
	return d.capable(), nil
}

// notMade says why a board was not opened, and which there are.
func (o *Opener) notMade(ctx context.Context, u radio.URI, opts options, err error) error {
	err = fmt.Errorf("opening device %q: %w", u, err)
	if errors.Is(err, ErrNoBuild) || ctx.Err() != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, opts.call)
	defer cancel()
	found, failed := o.backend.Find(limited, u, Args{})
	if failed != nil || len(found) == 0 {
		return err
	}
	var all []string
	for _, a := range found {
		all = append(all, a.brief())
	}
	return fmt.Errorf("%w; SoapySDR finds %s", err, strings.Join(all, " and "))
}

// brief returns what tells a board from others.
func (a Args) brief() string {
	few := Args{}
	for _, key := range []string{"driver", "serial", "label", "addr"} {
		if a[key] != "" {
			few[key] = a[key]
		}
	}
	return few.String()
}
