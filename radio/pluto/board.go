package pluto

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ringwave/radio"
	"ringwave/radio/iq"
)

// The names of the board's drivers.
const (
	phyName = "ad9361-phy"
	rxName  = "cf-ad9361-lpc"
	txName  = "cf-ad9361-dds-core-lpc"
)

// description is the context as iiod prints it.
type description struct {
	XMLName    xml.Name       `xml:"context"`
	Attributes []contextValue `xml:"context-attribute"`
	Devices    []deviceXML    `xml:"device"`
}

type contextValue struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type deviceXML struct {
	ID       string       `xml:"id,attr"`
	Name     string       `xml:"name,attr"`
	Channels []channelXML `xml:"channel"`
	Debug    []namedXML   `xml:"debug-attribute"`
}

type channelXML struct {
	ID         string     `xml:"id,attr"`
	Name       string     `xml:"name,attr"`
	Type       string     `xml:"type,attr"`
	Scan       *scanXML   `xml:"scan-element"`
	Attributes []namedXML `xml:"attribute"`
}

type namedXML struct {
	Name string `xml:"name,attr"`
}

type scanXML struct {
	Index  int    `xml:"index,attr"`
	Format string `xml:"format,attr"`
}

// board is what the driver needs of a description.
type board struct {
	model, serial, firmware string
	phy                     string // the device's id
	ports                   [2]port
	// local are the local oscillators by direction.
	local [2]channel
	// path are the receive and transmit paths: gain, bandwidth, rate, port.
	path [2]channel
	// tones are the transmit synthesizer's switches, to be turned off.
	tones []attribute
}

// port is a device with samples. Ports compare by ==, which tells boards apart.
type port struct {
	device string // its id
	mask   string // of I and Q, as OPEN has it
	format iq.Config
	// status is the register access, with an empty name where there is none.
	status attribute
}

// channel is one of the transceiver's with its attributes.
type channel struct {
	device, place, id string
	has               []string
}

// attribute returns one of the channel's; ok tells whether the board has it.
func (c channel) attribute(name string) (a attribute, ok bool) {
	return attribute{c.device, c.place, c.id, name}, slices.Contains(c.has, name)
}

// parseBoard reads a description and finds what the driver needs; it fails where
// the board is no Pluto or one of another kind.
func parseBoard(text []byte) (*board, error) {
	var d description
	if err := xml.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%w: its description cannot be read: %v", ErrProtocol, err)
	}
	b := &board{model: d.value("hw_model"), serial: d.value("hw_serial"), firmware: d.value("fw_version")}
	phy, err := d.device(phyName)
	if err != nil {
		return nil, err
	}
	b.phy = phy.ID
	for _, s := range []struct {
		dir           radio.Direction
		device, place string
		oscillator    string
	}{{radio.Receive, rxName, "INPUT", "altvoltage0"}, {radio.Transmit, txName, "OUTPUT", "altvoltage1"}} {
		device, err := d.device(s.device)
		if err != nil {
			return nil, err
		}
		if b.ports[s.dir], err = device.port(s.place); err != nil {
			return nil, err
		}
		if b.local[s.dir], err = phy.channel(s.oscillator, "OUTPUT"); err != nil {
			return nil, err
		}
		if b.path[s.dir], err = phy.channel("voltage0", s.place); err != nil {
			return nil, err
		}
		if s.dir == radio.Transmit {
			b.tones = device.tones()
		}
	}
	return b, nil
}

func (d *description) value(name string) string {
	for _, a := range d.Attributes {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// names lists the devices, for errors.
func (d *description) names() string {
	var names []string
	for _, dev := range d.Devices {
		names = append(names, strconv.Quote(dev.Name))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (d *description) device(name string) (*deviceXML, error) {
	for i := range d.Devices {
		if dev := &d.Devices[i]; dev.Name == name {
			return dev, dev.check()
		}
	}
	return nil, fmt.Errorf("the board has no device %q and is no Pluto; it has %s", name, d.names())
}

// word is what commands can carry in one piece.
var word = regexp.MustCompile(`^[A-Za-z0-9_.,:-]{1,64}$`)

// check fails for names that would not be one word of a command.
func (d *deviceXML) check() error {
	names := []string{d.ID}
	for _, c := range d.Channels {
		names = append(names, c.ID)
		for _, a := range c.Attributes {
			names = append(names, a.Name)
		}
	}
	for _, n := range names {
		if !word.MatchString(n) {
			return fmt.Errorf("%w: its device %s has something named %q", ErrProtocol, d.Name, n)
		}
	}
	return nil
}

func (c *channelXML) place() string {
	if c.Type == "output" {
		return "OUTPUT"
	}
	return "INPUT"
}

func (d *deviceXML) channel(id, place string) (channel, error) {
	for _, c := range d.Channels {
		if c.ID != id || c.place() != place {
			continue
		}
		ch := channel{device: d.ID, place: place, id: id}
		for _, a := range c.Attributes {
			ch.has = append(ch.has, a.Name)
		}
		return ch, nil
	}
	return channel{}, fmt.Errorf("the board's device %s has no channel %s %s", d.Name, strings.ToLower(place), id)
}

// port finds I and Q of a device with samples.
func (d *deviceXML) port(place string) (port, error) {
	p := port{device: d.ID}
	words := make([]uint32, (len(d.Channels)+31)/32)
	var found [2]*scanXML
	for i := range d.Channels {
		c := &d.Channels[i]
		for k, id := range []string{"voltage0", "voltage1"} {
			if c.ID == id && c.place() == place && c.Scan != nil {
				// Masks count channels as the description lists them.
				words[i/32] |= 1 << (i % 32)
				found[k] = c.Scan
			}
		}
	}
	if found[0] == nil || found[1] == nil || found[0].Index >= found[1].Index || found[0].Format != found[1].Format {
		return port{}, fmt.Errorf("the board's device %s has no channels voltage0 and voltage1 that carry I before Q in one format", d.Name)
	}
	var err error
	if p.format, err = parseFormat(found[0].Format); err != nil {
		return port{}, fmt.Errorf("the board's device %s: %w", d.Name, err)
	}
	for i := len(words) - 1; i >= 0; i-- {
		p.mask += fmt.Sprintf("%08x", words[i])
	}
	for _, a := range d.Debug {
		if a.Name == "direct_reg_access" {
			p.status = attribute{device: d.ID, place: "DEBUG", name: a.Name}
		}
	}
	return p, nil
}

// tones returns the switches of a synthesizer: it goes on by itself when no samples
// come.
func (d *deviceXML) tones() (switches []attribute) {
	for _, c := range d.Channels {
		if !strings.HasPrefix(c.ID, "altvoltage") || c.place() != "OUTPUT" {
			continue
		}
		for _, a := range c.Attributes {
			if a.Name == "raw" {
				switches = append(switches, attribute{d.ID, "OUTPUT", c.ID, a.Name})
			}
		}
	}
	return switches
}

// parseSpan reads a range as drivers write it: [least step most].
func parseSpan(s string) (lo, step, hi float64, err error) {
	w := strings.Fields(strings.Trim(strings.TrimSpace(s), "[]"))
	if len(w) != 3 {
		return 0, 0, 0, fmt.Errorf("%w: a range was due and %q came", ErrProtocol, s)
	}
	for i, v := range []*float64{&lo, &step, &hi} {
		if *v, err = strconv.ParseFloat(w[i], 64); err != nil {
			return 0, 0, 0, fmt.Errorf("%w: a range was due and %q came", ErrProtocol, s)
		}
	}
	if !(lo <= hi && step >= 0 && hi < 1e15 && lo > -1e15) {
		return 0, 0, 0, fmt.Errorf("%w: a range was due and %q came", ErrProtocol, s)
	}
	return lo, step, hi, nil
}

// parseValue reads a value that may have a unit, as "71.000000 dB".
func parseValue(s string) (float64, error) {
	number, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v > -1e15 && v < 1e15) {
		return 0, fmt.Errorf("%w: a value was due and %q came", ErrProtocol, s)
	}
	return v, nil
}
