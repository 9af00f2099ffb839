package iiod

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// attribute is a file of the board's driver. get and set are called with the
// board's lock held.
type attribute struct {
	name string
	file string // "" for what has none
	get  func() string
	set  func(value string) error // nil for what can only be read
}

// scan says where a channel's samples are in a block.
type scan struct {
	index  int
	format string
}

// channel is one of a device.
type channel struct {
	id, name string
	output   bool
	scan     *scan // nil for a channel without samples
	attrs    []attribute
}

// device is one of the board's drivers. Channels with samples come first, as
// masks count them.
type device struct {
	id, name             string
	attrs, debug, buffer []attribute
	channels             []channel
}

// settings are what clients set; the board's lock guards them. Nothing is added to the
// lists later on: attributes point into them.
type settings struct {
	rate               int64 // Hz, of both directions
	phys               []phySettings
	tones              []tone
	rxStatus, txStatus status
}

// phySettings are those of a transceiver.
type phySettings struct {
	rxFrequency, txFrequency int64 // Hz
	rxDown, txDown           bool
	rxBandwidth, txBandwidth int64 // Hz
	paths                    []pathSettings
}

// pathSettings are those of an antenna each way.
type pathSettings struct {
	gainMode       string
	rxGain         float64 // dB
	txGain         float64 // dB, 0 or less
	rxPort, txPort string
}

// tone is a sine of the transmit synthesizer; it is stored and not sent.
type tone struct {
	raw, frequency, phase int64
	scale                 float64
}

// status is a converter core's register file, of which one is known.
type status struct {
	address uint32 // of the next read
	flags   uint32 // of statusRegister
}

const (
	// statusRegister tells of lost samples; what is written as 1 is cleared.
	statusRegister uint32 = 0x80000088
	underflow      uint32 = 1 << 0
	overflow       uint32 = 1 << 2
)

// The ranges that all transceivers have, and their receive gains at 2 GHz.
const (
	minBandwidth         = 200_000
	maxRxBandwidth       = 56_000_000
	maxTxBandwidth       = 40_000_000
	minRxGain, maxRxGain = -3, 71
	minTxGain            = -89.75
	txGainStep           = 0.25
)

const (
	gainModes = "manual fast_attack slow_attack hybrid"
	rxPorts   = "A_BALANCED B_BALANCED C_BALANCED A_N A_P B_N B_P C_N C_P TX_MONITOR1 TX_MONITOR2 TX_MONITOR1_2"
	txPorts   = "A B"
)

// The frequencies of a board that was just switched on.
const (
	firstRxFrequency = 2_400_000_000
	firstTxFrequency = 2_450_000_000
)

// tonesOfPath is the number of sines that a path's synthesizer has.
const tonesOfPath = 4

// powerOn returns the settings of a board that was just switched on.
func powerOn(p Profile, rate int64) settings {
	s := settings{rate: rate, phys: make([]phySettings, p.Transceivers), tones: make([]tone, tonesOfPath*p.Paths)}
	for i := range s.phys {
		s.phys[i] = phySettings{
			rxFrequency: firstRxFrequency, txFrequency: firstTxFrequency,
			rxBandwidth: 18_000_000, txBandwidth: 18_000_000,
		}
	}
	for i := range p.Paths {
		phy := &s.phys[i/pathsOfPhy]
		phy.paths = append(phy.paths, pathSettings{
			gainMode: "slow_attack", rxGain: maxRxGain, txGain: -10,
			rxPort: "A_BALANCED", txPort: "A",
		})
	}
	for i := range s.tones {
		s.tones[i].raw = 1
	}
	return s
}

// told is an attribute that can only be read.
func told(name, file string, get func() string) attribute { return attribute{name, file, get, nil} }

// fixed is an attribute that does not change.
func fixed(name, file, value string) attribute {
	return attribute{name, file, func() string { return value }, nil}
}

// integer is an attribute of whole numbers from lo to hi; changed may refuse.
func integer(name, file string, v *int64, lo, hi int64, changed func(int64) error) attribute {
	return attribute{name, file,
		func() string { return strconv.FormatInt(*v, 10) },
		func(value string) error {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < lo || n > hi {
				return einval
			}
			if changed != nil {
				if err := changed(n); err != nil {
					return err
				}
			}
			*v = n
			return nil
		}}
}

// decibels is an attribute of gain from lo to hi in steps; drivers write a unit
// and take it.
func decibels(name, file string, v *float64, lo, hi, step float64) attribute {
	return attribute{name, file,
		func() string { return fmt.Sprintf("%.6f dB", *v) },
		func(value string) error {
			g, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(value, "dB")), 64)
			if err != nil || !(g >= lo && g <= hi) {
				return einval
			}
			*v = math.Round(g/step) * step
			return nil
		}}
}

// word is an attribute of one of several words; "" allows any.
func word(name, file string, v *string, allowed string) attribute {
	return attribute{name, file,
		func() string { return *v },
		func(value string) error {
			for _, a := range strings.Fields(allowed) {
				if a == value {
					*v = value
					return nil
				}
			}
			return einval
		}}
}

func flag(name, file string, v *bool) attribute {
	return attribute{name, file,
		func() string {
			if *v {
				return "1"
			}
			return "0"
		},
		func(value string) error {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return einval
			}
			*v = n != 0
			return nil
		}}
}

// span is how drivers write a range.
func span(lo, step, hi any) string { return fmt.Sprintf("[%v %v %v]", lo, step, hi) }

// registers returns a core's direct_reg_access: "ADDRESS" chooses what the next read
// gives, "ADDRESS VALUE" writes.
func registers(s *status) attribute {
	return attribute{"direct_reg_access", "",
		func() string {
			if s.address == statusRegister {
				return fmt.Sprintf("0x%X", s.flags)
			}
			return "0x0"
		},
		func(value string) error {
			w := strings.Fields(value)
			if len(w) < 1 || len(w) > 2 {
				return einval
			}
			address, err := strconv.ParseUint(w[0], 0, 32)
			if err != nil {
				return einval
			}
			if len(w) == 2 {
				set, err := strconv.ParseUint(w[1], 0, 32)
				if err != nil {
					return einval
				}
				if uint32(address) == statusRegister {
					s.flags &^= uint32(set)
				}
			}
			s.address = uint32(address)
			return nil
		}}
}

// findDevice returns the device of an id or name, nil if there is none.
func (b *board) findDevice(name string) *device {
	for i := range b.devices {
		if d := &b.devices[i]; d.id == name || d.name == name {
			return d
		}
	}
	return nil
}

// list returns the attributes that a command is about.
func (d *device) list(c command) ([]attribute, error) {
	switch c.place {
	case ofDebug:
		return d.debug, nil
	case ofBuffer:
		return d.buffer, nil
	case ofInput, ofOutput:
		for _, ch := range d.channels {
			if ch.output == (c.place == ofOutput) && (ch.id == c.channel || ch.name == c.channel && ch.name != "") {
				return ch.attrs, nil
			}
		}
		return nil, enxio
	}
	return d.attrs, nil
}

// find returns the attribute that a command names.
func (b *board) find(c command) (attribute, error) {
	d := b.findDevice(c.device)
	if d == nil {
		return attribute{}, enodev
	}
	all, err := d.list(c)
	if err != nil {
		return attribute{}, err
	}
	for _, a := range all {
		if a.name == c.attr || a.file == c.attr && a.file != "" {
			return a, nil
		}
	}
	return attribute{}, enoent
}

// read returns the value of the attribute that a command names.
func (b *board) read(c command) (string, error) {
	a, err := b.find(c)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.get(), nil
}

// write sets the attribute that a command names; libiio ends values with a zero
// byte, people with a line feed.
func (b *board) write(c command, value []byte) error {
	a, err := b.find(c)
	if err != nil {
		return err
	}
	if a.set == nil {
		return eacces
	}
	text, _, _ := strings.Cut(string(value), "\x00")
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.set(strings.TrimSpace(text))
}
