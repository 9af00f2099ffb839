package hackrf

import (
	"math"
	"time"

	"ringwave/radio"
	"ringwave/radio/usb"
)

// feeding is how a transmitter's board is fed.
type feeding int

const (
	fill   feeding = iota // zeros where nothing was written
	strict                // only what was written or promised
)

// options are the parameters of a URI.
type options struct {
	at      string // bus/device, empty for any
	tuning  radio.Hertz
	rate    radio.Hertz
	filter  radio.Hertz // 0 for the one that goes with the rate
	gains   map[gain]radio.Decibels
	bias    bool
	clkout  string // on, off, or empty to leave it
	clock   string
	trigger string

	feed     feeding
	transfer int // bytes, 0 for what goes with the rate
	queue    int // transfers
	ring     int // transfers
	hold     bool
	window   int // samples
	poll     time.Duration
	deadline time.Duration // 0 for none
	limit    time.Duration // of underruns, 0 for none
	still    time.Duration // how long the program may stand still, 0 for ever
	control  time.Duration // of a control request
}

// The least and the most of what can be chosen.
const (
	maxTransfer = 1 << 20
	maxQueue    = 32
	maxRing     = 4096
	minWindow   = 1 << 12
	maxWindow   = 1 << 28
)

// allowedParams are the parameters of a URI.
var allowedParams = []string{"at", "freq_hz", "rate_hz", "filter_hz",
	"rx_amp", "lna", "vga", "txvga", "tx_amp", "bias", "clkout", "clock", "trigger",
	"feed", "transfer", "transfers", "ring", "hold", "window", "poll_ms", "deadline_ms", "limit_ms", "control_ms"}

func parseOptions(u radio.URI) (options, error) {
	p := radio.ReadSettings(u, allowedParams...)
	o := options{
		at:      u.Params.Get("at"),
		tuning:  radio.Hertz(p.Number("freq_hz", 2.45e9, float64(frequencies.Min), float64(frequencies.Max))),
		rate:    radio.Hertz(p.Number("rate_hz", 10e6, float64(rates.Min), float64(rates.Max))),
		filter:  radio.Hertz(p.Number("filter_hz", 0, float64(filters[0]), float64(filters[len(filters)-1]))),
		bias:    p.Word("bias", "off", "on") == "on",
		clkout:  p.Word("clkout", "", "on", "off"),
		clock:   p.Word("clock", clockAuto, clockExternal),
		trigger: p.Word("trigger", "", triggerIn),

		transfer: p.Whole("transfer", 0, usb.PacketSize, maxTransfer, usb.PacketSize),
		queue:    p.Whole("transfers", 4, 1, maxQueue, 1),
		ring:     p.Whole("ring", 64, 1, maxRing, 1),
		hold:     p.Word("hold", "off", "on") == "on",
		window:   p.Whole("window", 1<<22, minWindow, maxWindow, 1),
		poll:     p.Milliseconds("poll_ms", 250*time.Millisecond, 1, 60_000),
		deadline: p.Milliseconds("deadline_ms", time.Second, 0, 600_000),
		limit:    p.Milliseconds("limit_ms", 200*time.Millisecond, 0, 10_000),
		still:    p.Milliseconds("limit_ms", time.Second, 0, 10_000),
		// Generous, because leaving transmission may wait for buffers to drain.
		control: p.Milliseconds("control_ms", time.Second, 1, 60_000),
	}
	o.gains = map[gain]radio.Decibels{}
	for _, g := range []struct {
		key string
		of  gain
	}{{"rx_amp", rxAmp}, {"lna", lna}, {"vga", vga}, {"txvga", txvga}, {"tx_amp", txAmp}} {
		span := g.of.span()
		o.gains[g.of] = radio.Decibels(p.Number(g.key, float64(g.of.unset()), float64(span.Min), float64(span.Max)))
	}
	if p.Word("feed", "fill", "strict") == "strict" {
		o.feed = strict
	}
	return o, p.Err()
}

// The most that a transfer is unless a URI says so, in bytes and in time.
const (
	usualTransfer = 1 << 18
	longTransfer  = 40 * time.Millisecond
)

// transferBytes returns the size of transfers at a rate. All that is queued is between
// what a program sends and the air, and at the lower rates the usual size, which is for
// the higher ones, would be there for longer than any host is busy elsewhere.
func (o *options) transferBytes(rate radio.Hertz) int {
	size := o.transfer
	if size == 0 {
		for size = usualTransfer; size > usualTransfer/16 && int64(size) > sampleBytes*int64(rate.Samples(longTransfer)); {
			size /= 2
		}
	}
	return size
}

// limitBytes returns a length of time in bytes at a sample rate, as limits count.
func limitBytes(d time.Duration, rate radio.Hertz) uint32 {
	return uint32(min(math.MaxUint32, sampleBytes*int64(rate.Samples(d))))
}
