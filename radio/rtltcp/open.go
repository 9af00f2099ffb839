package rtltcp

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"ringwave/radio"
	"ringwave/radio/rtlsdr"
)

// Dialer connects to a server; a *net.Dialer is one.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Opener opens rtl_tcp:HOST:PORT; both can be left out and are 127.0.0.1 and 1234
// then. The parameters are
//
//	freq_hz      carrier, 27e6 to 1765e6, 100e6 unless given
//	rate_hz      sample rate, 225001 to 300000 or 900001 to 3.2e6, 2.048e6 unless
//	             given
//	gain         auto, or dB, 0 to 49.6, rounded down to the tuner's list; 0 unless
//	             given
//	ppm          error of the crystal in parts per million, -400 to 400
//	agc=on       digital gain control
//	bias=on      power for an amplifier at the antenna, until Close; it must be permitted
//	test=on      bytes that count up in place of samples
//	settle_ms    how long samples may be on their way at most, besides in the
//	             server's transfer from its board, 500 unless given: it is taken
//	             until then that a retune may not have reached them
//	deadline_ms  time without a sample after which a read fails, 5000 unless given,
//	             0 for none
type Opener struct {
	dialer Dialer
	permit radio.TransmitPermit
}

// NewOpener makes an opener. permit is what the user has confirmed that may be put out: of
// these boards, power at the antenna's port.
func NewOpener(d Dialer, permit radio.TransmitPermit) *Opener { return &Opener{d, permit} }

// options are the parameters of a URI that are not settings of the board.
type options struct{ settle, deadline time.Duration }

// Open connects to the server that a URI names, and sends the settings.
func (o *Opener) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	s, opts, err := parse(u)
	if err != nil {
		return nil, err
	}
	if s.bias {
		if err := o.permit.Bias(); err != nil {
			return nil, fmt.Errorf("opening %s: %w", u, err)
		}
	}
	address, err := addressOf(u)
	if err != nil {
		return nil, err
	}
	d := &device{uri: u.String(), address: address, dialer: o.dialer, options: opts, settings: s, turn: make(chan struct{}, 1)}
	if err := d.connect(ctx); err != nil {
		return nil, fmt.Errorf("opening %s: %w", u, err)
	}
	return d, nil
}

// addressOf returns host and port.
func addressOf(u radio.URI) (string, error) {
	host, port := "127.0.0.1", "1234"
	switch h, p, err := net.SplitHostPort(u.Name); {
	case u.Name == "":
	case err == nil:
		host, port = h, p
	case strings.Contains(u.Name, ":") && !strings.Contains(err.Error(), "missing port"):
		return "", fmt.Errorf("device %q has the address %q; allowed is HOST, HOST:PORT or [IPv6]:PORT", u, u.Name)
	default:
		host = strings.Trim(u.Name, "[]")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("device %q has the port %q; allowed is 1 to 65535", u, port)
	}
	return net.JoinHostPort(host, port), nil
}

const maxPPM = 400

func parse(u radio.URI) (s settings, o options, err error) {
	p := radio.ReadSettings(u, "freq_hz", "rate_hz", "gain", "ppm", "agc", "bias", "test", "settle_ms", "deadline_ms")
	s.frequency = radio.Hertz(p.Number("freq_hz", 100e6, float64(frequencies.Min), float64(frequencies.Max)))
	s.rate = radio.Hertz(p.Number("rate_hz", float64(rtlsdr.DefaultRate), float64(rtlsdr.MinRate), float64(rtlsdr.MaxRate)))
	if _, err := rtlsdr.NearestRate(s.rate); err != nil {
		p.Wrong("rate_hz", "225001 to 300000 and 900001 to 3200000")
	}
	if s.auto = u.Params.Get("gain") == "auto"; !s.auto {
		if s.gain, err = rtlsdr.FloorGain(radio.Decibels(p.Number("gain", 0, 0, float64(rtlsdr.MaxGain)))); err != nil {
			return s, o, err // never: it is within the range
		}
	}
	ppm := p.Number("ppm", 0, -maxPPM, maxPPM)
	if s.ppm = int(ppm); float64(s.ppm) != ppm {
		p.Wrong("ppm", "whole numbers")
	}
	s.agc, s.test = p.Word("agc", "off", "on") == "on", p.Word("test", "off", "on") == "on"
	s.bias = p.Word("bias", "off", "on") == "on"
	o.settle = p.Milliseconds("settle_ms", 500*time.Millisecond, 0, 60_000)
	o.deadline = p.Milliseconds("deadline_ms", 5*time.Second, 0, 600_000)
	return s, o, p.Err()
}
