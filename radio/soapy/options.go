package soapy

import (
	"maps"
	"slices"
	"strings"
	"time"

	"ringwave/radio"
	"ringwave/radio/iq"
)

// feeding is how a transmitter is kept.
type feeding int

const (
	// fill hands over zeros where nothing was written, so that the index goes on.
	fill feeding = iota
	// bursts hands over what was written, with the time at which it is to be sent.
	bursts
)

// options are the parameters of a URI that are the driver's own.
type options struct {
	args, stream   Args // for Make and SetupStream
	settings       Args // the module's own
	channel        int
	tuning, rate   *radio.Hertz
	filter         *radio.Hertz
	antenna        map[radio.Direction]string
	gains          map[radio.Direction]map[string]radio.Decibels
	clock, time    string // sources
	format         string
	feed           *feeding
	lead, settle   time.Duration
	deadline       time.Duration
	call           time.Duration
	still          time.Duration
	patience, poll time.Duration
}

// own are the parameters that go to nobody else.
var own = []string{
	"channel", "freq_hz", "rate_hz", "filter_hz", "rx_antenna", "tx_antenna", "clock", "time", "format", "feed",
	"lead_ms", "settle_ms", "deadline_ms", "limit_ms", "call_ms",
}

// The parameters that go on, by what their keys begin with.
const (
	settingKey = "setting."
	streamKey  = "stream."
	rxGainKey  = "rx_gain."
	txGainKey  = "tx_gain."
)

// parseOptions reads a URI. Those of a back end with servers have SoapySDR's arguments among
// their parameters, others in their name; reserved are parameters of the back end's own.
func parseOptions(u radio.URI, remote bool, reserved []string) (o options, err error) {
	p := radio.ReadSettings(u, slices.Collect(maps.Keys(u.Params))...)
	o = options{
		args: Args{}, stream: Args{}, settings: Args{}, antenna: map[radio.Direction]string{},
		gains:   map[radio.Direction]map[string]radio.Decibels{radio.Receive: {}, radio.Transmit: {}},
		channel: p.Whole("channel", 0, 0, 63, 1),
		clock:   p.Text("clock"),
		time:    p.Text("time"),
		format:  p.Word("format", "", "CF32", "CS16", "CS8", "CU8"),
		// So long a block is written before its time, and samples are on their way.
		lead:     p.Milliseconds("lead_ms", 20*time.Millisecond, 1, 10_000),
		settle:   p.Milliseconds("settle_ms", 100*time.Millisecond, 0, 10_000),
		deadline: p.Milliseconds("deadline_ms", 2*time.Second, 0, 600_000),
		call:     p.Milliseconds("call_ms", 10*time.Second, 1, 600_000),
		still:    p.Milliseconds("limit_ms", time.Second, 0, 10_000),
		patience: 100 * time.Millisecond, poll: 250 * time.Millisecond,
	}
	for _, f := range []struct {
		key string
		to  **radio.Hertz
	}{{"freq_hz", &o.tuning}, {"rate_hz", &o.rate}, {"filter_hz", &o.filter}} {
		if p.Has(f.key) {
			v := radio.Hertz(p.Number(f.key, 0, 0, 1e12))
			*f.to = &v
		}
	}
	if p.Has("feed") {
		f := map[string]feeding{"fill": fill, "bursts": bursts}[p.Word("feed", "fill", "bursts")]
		o.feed = &f
	}
	o.antenna[radio.Receive], o.antenna[radio.Transmit] = p.Text("rx_antenna"), p.Text("tx_antenna")
	if !remote {
		if o.args, err = ParseArgs(u.Name); err != nil {
			return o, err
		}
	}
	o.passOn(p, u, remote, reserved)
	return o, p.Err()
}

// passOn sorts the parameters that have no fixed names.
func (o *options) passOn(p *radio.Settings, u radio.URI, remote bool, reserved []string) {
	for _, key := range slices.Sorted(maps.Keys(u.Params)) {
		name, value := "", u.Params.Get(key)
		into := func(prefix string) bool {
			found := false
			name, found = strings.CutPrefix(key, prefix)
			return found && name != ""
		}
		switch {
		case slices.Contains(own, key), slices.Contains(reserved, key):
		case into(settingKey):
			o.settings[name] = value
		case into(streamKey):
			o.stream[name] = value
		case into(rxGainKey):
			o.gains[radio.Receive][name] = radio.Decibels(p.Number(key, 0, -200, 200))
		case into(txGainKey):
			o.gains[radio.Transmit][name] = radio.Decibels(p.Number(key, 0, -200, 200))
		case remote:
			o.args[key] = value
		default:
			p.Wrong(key, strings.Join(own, ", ")+", setting.NAME, stream.NAME, rx_gain.NAME and tx_gain.NAME; SoapySDR's arguments come before the question mark")
		}
	}
}

// biased reports whether a module is to put power out at an antenna's port. Modules name that
// differently, and all say bias: biastee, bias_tx, biasT_ctrl.
func (o *options) biased() bool {
	for _, all := range []Args{o.settings, o.args, o.stream} {
		for key, value := range all {
			if strings.Contains(strings.ToLower(key), "bias") && !slices.Contains([]string{"false", "0", "off", ""}, strings.ToLower(value)) {
				return true
			}
		}
	}
	return false
}

// format is what samples of a channel are on their way.
type format struct {
	name  string // SoapySDR's
	codec *iq.Codec
	bytes int
	clip  radio.Amplitude
}

// newFormat returns the format of a name; ok is false for one that this package has no codec
// of. fullScale is the integer that stands for 1.
func newFormat(name string, fullScale float64) (f format, ok bool) {
	switch name {
	case "CF32":
		return format{name, iq.New(iq.Config{Format: iq.CF32LE}), 8, 0}, true
	case "CS8":
		fullScale = 128
		return format{name, iq.New(iq.Config{Format: iq.CI8, Step: 1 / fullScale, Single: true}), 2, 126.5 / 128}, true
	case "CU8":
		return format{name, iq.New(iq.Config{Format: iq.CU8, Step: 1.0 / 128}), 2, 127.5 / 128}, true
	case "CS16":
		width := 16
		for ; width > 2 && fullScale <= float64(int(1)<<(width-2)); width-- {
		}
		limit := float64(int(1)<<(width-1) - 1)
		return format{name, iq.New(iq.Config{Format: iq.CI16LE, Step: 1 / fullScale, Bits: width}), 4, radio.Amplitude((limit - 0.5) / fullScale)}, true
	}
	return format{}, false
}
