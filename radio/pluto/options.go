package pluto

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
)

// The customary address of a board and the port of its iiod.
const (
	defaultHost = "192.168.2.1"
	defaultPort = "30431"
)

// feeding is how a transmitter's board is fed.
type feeding int

const (
	fill   feeding = iota // zeros where nothing was written
	strict                // only what was written or promised
)

// options are the parameters of a URI.
type options struct {
	address  string
	channel  int          // from 1
	tuning   *radio.Hertz // of both directions; nil leaves the board's
	rate     *radio.Hertz // likewise
	filter   radio.Hertz  // 0 for the one that goes with the rate
	rxGain   *radio.Decibels
	txGain   *radio.Decibels
	feed     feeding
	block    int // samples; 0 for some 20 ms
	blocks   int // on the board, each direction
	ring     int // blocks
	hold     bool
	window   int           // samples
	deadline time.Duration // 0 for none
	still    time.Duration // how long the program may stand still, 0 for ever
}

// The least and the most of what can be chosen.
const (
	minBlock  = 256
	maxBlock  = 1 << 20
	minBlocks = 2
	maxBlocks = 64
	maxRing   = 4096
	minWindow = 1 << 12
	maxWindow = 1 << 28
	// maxChannel is that of four transceivers, which no board has.
	maxChannel = 8
)

// blockTime is the length of a block unless told otherwise.
const blockTime = 20 * time.Millisecond

// allowedParams are the parameters of a URI.
var allowedParams = []string{"channel", "freq_hz", "rate_hz", "filter_hz", "rx_gain", "tx_gain",
	"feed", "block", "blocks", "ring", "hold", "window", "deadline_ms", "limit_ms"}

// given reads a number that the board keeps its own of where it is not there: nil then.
func given(p *radio.Settings, key string, least, most float64) *float64 {
	if !p.Has(key) {
		return nil
	}
	v := p.Number(key, least, least, most)
	return &v
}

func parseOptions(u radio.URI) (options, error) {
	p := radio.ReadSettings(u, allowedParams...)
	o := options{
		tuning: (*radio.Hertz)(given(p, "freq_hz", 1e6, 10e9)),
		rate:   (*radio.Hertz)(given(p, "rate_hz", 1, 100e6)),
		rxGain: (*radio.Decibels)(given(p, "rx_gain", -100, 100)),
		txGain: (*radio.Decibels)(given(p, "tx_gain", -100, 0)),

		channel:  p.Whole("channel", 1, 1, maxChannel, 1),
		hold:     p.Word("hold", "off", "on") == "on",
		block:    p.Whole("block", 0, minBlock, maxBlock, 1) &^ 1,
		blocks:   p.Whole("blocks", 4, minBlocks, maxBlocks, 1),
		ring:     p.Whole("ring", 64, 1, maxRing, 1),
		window:   p.Whole("window", 1<<22, minWindow, maxWindow, 1),
		deadline: p.Milliseconds("deadline_ms", 5*time.Second, 0, 600_000),
		still:    p.Milliseconds("limit_ms", time.Second, 0, 10_000),
	}
	if f := given(p, "filter_hz", 1, 100e6); f != nil {
		o.filter = radio.Hertz(*f)
	}
	if p.Word("feed", "fill", "strict") == "strict" {
		o.feed = strict
	}
	if err := p.Err(); err != nil {
		return options{}, err
	}
	var err error
	o.address, err = address(u)
	return o, err
}

// address returns host and port of what a URI names.
func address(u radio.URI) (string, error) {
	name := u.Name
	if name == "" {
		name = defaultHost
	}
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		// Without a port, and an IPv6 address may be without brackets then.
		host, port = strings.Trim(name, "[]"), defaultPort
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "" || strings.ContainsAny(host, "/ ") {
		return "", fmt.Errorf("device %q has the name %q; allowed is a host, or host:port with a port from 1 to 65535", u, u.Name)
	}
	return net.JoinHostPort(host, port), nil
}

// blockSamples returns the length of a block at a rate.
func (o options) blockSamples(rate radio.Hertz) int {
	if o.block > 0 {
		return o.block
	}
	n := minBlock
	for n < 1<<18 && rate.Duration(radio.SampleCount(2*n)) <= blockTime {
		n *= 2
	}
	return n
}

// Opener opens pluto:HOST or pluto:HOST:PORT; pluto: is 192.168.2.1, which boards
// have by custom. The parameters are
//
//	channel         the board's antennas: 1, unless given, is RX1 and TX1, 2 is RX2 and
//	                TX2; 3 and 4 are those of a second transceiver
//	freq_hz         carrier, both ways; left as the board has it unless given
//	rate_hz         sample rate, both ways; likewise
//	filter_hz       analog bandwidth, both ways; that of the rate unless given
//	rx_gain         dB, as the board tells, -3 to 71 at 2 GHz; likewise left, but always
//	                in manual mode
//	tx_gain         dB, -89.75 to 0, the least unless given
//	feed=strict     see the package
//	block, blocks   samples of a block, some 20 ms unless given, an even number of
//	                256 or more; the number that the board holds, 4
//	ring            blocks that may wait for the program when receiving, 64
//	hold=on         leave what is beyond the ring with the board, do not count it
//	window          samples that may wait for the board when transmitting, 4194304
//	deadline_ms     time without an answer after which a request or a stream fails,
//	                5000 unless given, 0 for none
//	limit_ms        time for which the program may stand still before its guard
//	                switches the transmitter off, 1000 unless given, 0 for ever
type Opener struct {
	session *life.Life
	permit  radio.TransmitPermit
	guard   radio.Guard
	sending *senders
}

// senders are the addresses of the boards that an opener's devices transmit with.
type senders struct {
	mu sync.Mutex
	at map[string]bool
}

// take reports whether nobody transmits there yet.
func (s *senders) take(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[address] {
		return false
	}
	s.at[address] = true
	return true
}

func (s *senders) leave(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, address)
}

// NewOpener makes an opener. When session ends, whatever the boards transmit is cut
// off at once and their carriers go off. permit is what the user has confirmed that
// may be sent, and guard watches over the boards that do; their zero values are for
// receiving.
func NewOpener(session context.Context, permit radio.TransmitPermit, guard radio.Guard) *Opener {
	return &Opener{life.Of(session), permit, guard, &senders{at: map[string]bool{}}}
}

// Open connects to a board and gives it the URI's settings. It leaves what transmits
// alone: another program may have it.
func (o *Opener) Open(ctx context.Context, u radio.URI) (radio.Device, error) {
	opts, err := parseOptions(u)
	if err != nil {
		return nil, err
	}
	d, err := open(ctx, u, opts, o)
	if err != nil {
		return nil, fmt.Errorf("opening device %q: %w", u, err)
	}
	return d, nil
}
