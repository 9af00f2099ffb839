package rtlsdr

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

// The boards, by vendor and product.
const vendor = 0x0bda

var products = [...]uint16{0x2832, 0x2838}

// Matches reports whether a board with that identity is one that this package
// drives, so far as the identity says it.
func Matches(i usb.Identity) bool {
	if i.Vendor != vendor {
		return false
	}
	for _, p := range products {
		if i.Product == p {
			return true
		}
	}
	return false
}

// notes are for whoever reads what a device is.
var notes = []string{
	"this driver was tried on emulated boards only, never on a real one",
	"the board has no clock input and does not say when it loses samples",
}

// Opener opens rtlsdr:SERIAL, where SERIAL is the end of a board's serial number;
// rtlsdr: is the only board there is. Many boards have the same, 00000001. The
// parameters are
//
//	index=1         the second board of that serial number, by bus and address
//	at=001/004      the board at that bus and address
//	freq_hz         carrier, 100e6 unless given
//	rate_hz         sample rate, 225001 to 300000 or 900001 to 3.2e6, 2.048e6 unless
//	                given
//	filter_hz       tuner's filter, 1 to 8e6, else that of the sample rate
//	gain            auto, or dB, 0 to 49.6, rounded down to the tuner's list; 0
//	                unless given
//	ppm             error of the crystal in parts per million, -400 to 400
//	agc=on          digital gain control
//	bias=on         power for an amplifier at the antenna, of boards with a bias tee at
//	                pin 0, from Open to Close; it must be permitted
//	direct=i|q      an input of the RTL2832U itself in place of the tuner
//	test=on         bytes that count up in place of samples
//	transfer, transfers
//	                bytes of a USB transfer, a multiple of 512: unless given, the
//	                largest power of two that takes at most 40 ms, 131072 from 1.64
//	                Msps on and 16384 at the slowest; the number that is queued, 32
//	                unless given or beyond 16 MiB together, which is what Linux gives
//	                to the transfers of all programs (usbfs_memory_mb). The queue is
//	                what a machine that is busy elsewhere may miss, 0.87 s at 2.4
//	                Msps.
//	ring            transfers that may wait for the program, as many as fill 4 MiB
//	                unless given. The larger ring and queue are, the longer it takes
//	                until samples are known to be of after a retune: 1.9 s of them at
//	                2.4 Msps.
//	hold=on         leave what is beyond the ring with the board, do not count it
//	deadline_ms     time without a sample after which a read fails, 1000 unless
//	                given, 0 for none
type Opener struct {
	host   usb.Host
	permit radio.TransmitPermit
}

// NewOpener makes an opener of the boards of a host. permit is what the user has confirmed
// that may be put out: of these boards, power at the antenna's port.
func NewOpener(host usb.Host, permit radio.TransmitPermit) *Opener { return &Opener{host, permit} }

// List returns the boards that are plugged in.
func List(ctx context.Context, host usb.Host) ([]usb.Listed, error) { return host.List(ctx, Matches) }

// options are the parameters of a URI.
type options struct {
	index  int // -1 for none
	at     string
	tuning radio.Hertz
	rate   radio.Hertz
	filter float64 // Hz, 0 to follow the sample rate
	auto   bool
	gain   int // tenths of dB
	ppm    int
	agc    bool
	bias   bool
	direct directSampling
	test   bool

	transfer int // bytes; 0 to follow the sample rate
	queue    int // transfers
	ring     int // transfers; 0 to follow their size
	hold     bool
	deadline time.Duration // 0 for none
}

// The least and the most of what can be chosen.
const (
	maxPPM      = 400 // what the register holds, and some room
	maxFilter   = 8e6
	maxTransfer = 1 << 20
	maxQueue    = 32
	maxRing     = 4096
	// maxQueued is usbfs's own bound for the transfers of all programs, in bytes.
	maxQueued = 16 << 20
)

// What is queued and kept where the URI does not say it.
const (
	// mostTransfer is as large as librtlsdr's queue is deep, of twice as many: it takes
	// 27 ms at 2.4 Msps.
	mostTransfer = 128 << 10
	// longestTransfer bounds how long a sample is with the board before the transfer
	// that it is in ends: at low rates large ones would take long.
	longestTransfer = 40 * time.Millisecond
	ringBytes       = 4 << 20
)

// transferAt returns the bytes of a transfer at a sample rate.
func (o options) transferAt(rate radio.Hertz) int {
	if o.transfer > 0 {
		return o.transfer
	}
	most := 2 * float64(rate) * longestTransfer.Seconds()
	size := mostTransfer
	for size > usb.PacketSize && float64(size) > most {
		size /= 2
	}
	return size
}

// ringOf returns the number of transfers of a size that may wait for the program.
func (o options) ringOf(transfer int) int {
	if o.ring > 0 {
		return o.ring
	}
	return min(max(ringBytes/transfer, 1), maxRing)
}

func parseOptions(u radio.URI) (o options, err error) {
	p := radio.ReadSettings(u, "index", "at", "freq_hz", "rate_hz", "filter_hz", "gain", "ppm", "agc", "bias", "direct", "test",
		"transfer", "transfers", "ring", "hold", "deadline_ms")
	o = options{
		index:    p.Whole("index", -1, 0, 1000, 1),
		at:       u.Params.Get("at"),
		tuning:   radio.Hertz(p.Number("freq_hz", 100e6, 0, maxVCO/2)),
		rate:     radio.Hertz(p.Number("rate_hz", float64(DefaultRate), float64(MinRate), float64(MaxRate))),
		filter:   p.Number("filter_hz", 0, 1, maxFilter),
		ppm:      p.Whole("ppm", 0, -maxPPM, maxPPM, 1),
		agc:      p.Word("agc", "off", "on") == "on",
		bias:     p.Word("bias", "off", "on") == "on",
		test:     p.Word("test", "off", "on") == "on",
		transfer: p.Whole("transfer", 0, usb.PacketSize, maxTransfer, usb.PacketSize),
		ring:     p.Whole("ring", 0, 1, maxRing, 1),
		hold:     p.Word("hold", "off", "on") == "on",
		deadline: p.Milliseconds("deadline_ms", time.Second, 0, 600_000),
	}
	o.queue = p.Whole("transfers", min(maxQueue, maxQueued/max(o.transfer, mostTransfer)), 1, maxQueue, 1)
	switch p.Word("direct", "off", "i", "q") {
	case "i":
		o.direct = directI
	case "q":
		o.direct = directQ
	}
	if o.auto = u.Params.Get("gain") == "auto"; !o.auto {
		g := radio.Decibels(p.Number("gain", 0, 0, float64(MaxGain)))
		if o.gain, err = floorGain(g); err != nil {
			return o, err // never: g is within the range
		}
	}
	switch _, _, err := planRate(o.rate); {
	case err != nil:
		p.Wrong("rate_hz", fmt.Sprintf("%s to %s and %s to %s", plain(float64(MinRate)), plain(float64(endSlowRate)), plain(float64(minFastRate)), plain(float64(MaxRate))))
	case o.direct != throughTuner && u.Params.Has("gain"):
		p.Wrong("gain", "none beside direct: the gain is the tuner's")
	case o.transfer*o.queue > maxQueued:
		p.Wrong("transfers", fmt.Sprintf("1 to %d of transfer=%d: a queue has at most %d bytes", maxQueued/o.transfer, o.transfer, maxQueued))
	case o.agc && o.test:
		p.Wrong("agc", "off beside test=on")
	}
	return o, p.Err()
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Open opens the board that a URI names and brings it up.
func (o *Opener) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	opts, err := parseOptions(u)
	if err != nil {
		return nil, err
	}
	if opts.bias {
		if err := o.permit.Bias(); err != nil {
			return nil, fmt.Errorf("opening %s: %w", u, err)
		}
	}
	all, err := List(ctx, o.host)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", u, err)
	}
	at, err := choose(u, opts, all)
	if err != nil {
		return nil, err
	}
	if at.Blocked != nil {
		return nil, fmt.Errorf("opening %s: the board at %v: %w%s", u, at.Address, at.Blocked, advice(at.Blocked))
	}
	if at.Product == "Blog V4" {
		return nil, fmt.Errorf("opening %s: the board at %v is a %s %s, whose inputs are switched in another way; allowed are boards before it", u, at.Address, at.Manufacturer, at.Product)
	}
	board, err := o.host.Open(ctx, at.Address)
	if err != nil {
		return nil, fmt.Errorf("opening %s: the board at %v: %w%s", u, at.Address, err, advice(err))
	}
	d, err := open(board, radio.Info{
		URI: u.String(), Driver: "rtlsdr", Model: strings.TrimSpace(at.Manufacturer + " " + at.Product),
		Serial: at.Serial, Notes: notes,
	}, opts)
	if err != nil {
		return nil, errors.Join(err, board.Close())
	}
	return d, nil
}

// choose returns the board of the list that the URI means.
func choose(u radio.URI, o options, all []usb.Listed) (usb.Listed, error) {
	var found []usb.Listed
	for _, l := range all {
		if strings.HasSuffix(l.Serial, u.Name) && (o.at == "" || l.Address.String() == o.at) {
			found = append(found, l)
		}
	}
	switch {
	case o.index >= 0 && o.index < len(found):
		return found[o.index], nil
	case o.index >= 0:
		return usb.Listed{}, fmt.Errorf("device %q has the parameter index=%d; %s", u, o.index, present(found, all))
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return usb.Listed{}, fmt.Errorf("device %q can be several boards; allowed is a serial number that only one has, at= one of the addresses, or index=0 to %d: %s", u, len(found)-1, list(found))
	}
	return usb.Listed{}, fmt.Errorf("device %q was not found; %s", u, present(nil, all))
}

// present says what there is: the boards found by name, or else all.
func present(found, all []usb.Listed) string {
	switch {
	case len(found) > 0:
		return fmt.Sprintf("allowed is 0 to %d: %s", len(found)-1, list(found))
	case len(all) > 0:
		return "there are " + list(all)
	}
	return "no board with an RTL2832U is plugged in"
}

func list(boards []usb.Listed) string {
	var names []string
	for _, b := range boards {
		name := fmt.Sprintf("%v (serial %q)", b.Address, b.Serial)
		if b.Blocked != nil {
			name = fmt.Sprintf("%v (%v%s)", b.Address, b.Blocked, advice(b.Blocked))
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// advice says what a user can do about a board that cannot be opened.
func advice(err error) string {
	switch {
	case errors.Is(err, usb.ErrDriverBound):
		return "; it is the one for television: put \"blacklist dvb_usb_rtl28xxu\" into a file in /etc/modprobe.d and unplug the board"
	case errors.Is(err, usb.ErrAccess):
		return "; Debian's package rtl-sdr has the rule"
	}
	return ""
}
