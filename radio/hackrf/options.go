package hackrf

import (
	"fmt"
	"math"
	"strconv"
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
	transfer int // bytes
	queue    int // transfers
	ring     int // transfers
	hold     bool
	window   int // samples
	poll     time.Duration
	deadline time.Duration // 0 for none
	limit    time.Duration // of underruns, 0 for none
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

// params reads the parameters of a URI and keeps the first error.
type params struct {
	uri radio.URI
	err error
}

func (p *params) wrong(key, allowed string) {
	if p.err == nil {
		p.err = fmt.Errorf("device %q has the parameter %s=%s; allowed is %s", p.uri, key, p.uri.Params.Get(key), allowed)
	}
}

func (p *params) number(key string, unset, least, most float64) float64 {
	if !p.uri.Params.Has(key) {
		return unset
	}
	v, err := strconv.ParseFloat(p.uri.Params.Get(key), 64)
	if err != nil || !(v >= least && v <= most) {
		p.wrong(key, fmt.Sprintf("a number from %s to %s", strconv.FormatFloat(least, 'f', -1, 64), strconv.FormatFloat(most, 'f', -1, 64)))
		return unset
	}
	return v
}

func (p *params) whole(key string, unset, least, most, step int) int {
	if !p.uri.Params.Has(key) {
		return unset
	}
	v, err := strconv.Atoi(p.uri.Params.Get(key))
	if err != nil || v < least || v > most || v%step != 0 {
		multiple := ""
		if step > 1 {
			multiple = fmt.Sprintf(", a multiple of %d", step)
		}
		p.wrong(key, fmt.Sprintf("a whole number from %d to %d%s", least, most, multiple))
		return unset
	}
	return v
}

func (p *params) milliseconds(key string, unset time.Duration, least, most int) time.Duration {
	return time.Duration(p.whole(key, int(unset/time.Millisecond), least, most, 1)) * time.Millisecond
}

// word gives one of a few words, the first where the parameter is not there.
func (p *params) word(key string, words ...string) string {
	if !p.uri.Params.Has(key) {
		return words[0]
	}
	allowed := ""
	for _, w := range words {
		if w == "" {
			continue
		}
		if p.uri.Params.Get(key) == w {
			return w
		}
		if allowed != "" {
			allowed += ", "
		}
		allowed += w
	}
	p.wrong(key, allowed)
	return words[0]
}

func parseOptions(u radio.URI) (options, error) {
	if err := u.Only(allowedParams...); err != nil {
		return options{}, err
	}
	p := &params{uri: u}
	o := options{
		at:      u.Params.Get("at"),
		tuning:  radio.Hertz(p.number("freq_hz", 2.45e9, float64(frequencies.Min), float64(frequencies.Max))),
		rate:    radio.Hertz(p.number("rate_hz", 10e6, float64(rates.Min), float64(rates.Max))),
		filter:  radio.Hertz(p.number("filter_hz", 0, float64(filters[0]), float64(filters[len(filters)-1]))),
		bias:    p.word("bias", "off", "on") == "on",
		clkout:  p.word("clkout", "", "on", "off"),
		clock:   p.word("clock", clockAuto, clockExternal),
		trigger: p.word("trigger", "", triggerIn),

		transfer: p.whole("transfer", 1<<18, usb.PacketSize, maxTransfer, usb.PacketSize),
		queue:    p.whole("transfers", 4, 1, maxQueue, 1),
		ring:     p.whole("ring", 64, 1, maxRing, 1),
		hold:     p.word("hold", "off", "on") == "on",
		window:   p.whole("window", 1<<22, minWindow, maxWindow, 1),
		poll:     p.milliseconds("poll_ms", 250*time.Millisecond, 1, 60_000),
		deadline: p.milliseconds("deadline_ms", time.Second, 0, 600_000),
		limit:    p.milliseconds("limit_ms", 200*time.Millisecond, 0, 10_000),
		// Generous, because leaving transmission may wait for buffers to drain.
		control: p.milliseconds("control_ms", time.Second, 1, 60_000),
	}
	o.gains = map[gain]radio.Decibels{}
	for _, g := range []struct {
		key string
		of  gain
	}{{"rx_amp", rxAmp}, {"lna", lna}, {"vga", vga}, {"txvga", txvga}, {"tx_amp", txAmp}} {
		span := g.of.span()
		o.gains[g.of] = radio.Decibels(p.number(g.key, float64(g.of.unset()), float64(span.Min), float64(span.Max)))
	}
	if p.word("feed", "fill", "strict") == "strict" {
		o.feed = strict
	}
	return o, p.err
}

// limitBytes gives a length of time in bytes at a sample rate, as limits count.
func limitBytes(d time.Duration, rate radio.Hertz) uint32 {
	return uint32(min(math.MaxUint32, sampleBytes*int64(rate.Samples(d))))
}
