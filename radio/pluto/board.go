package pluto

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ringwave/radio"
	"ringwave/radio/iq"
)

// The names of the board's drivers begin so. Behind that comes how a transceiver is wired
// ("lpc", "hpc"), or which of several it is: "ad9361-phy-B", "cf-ad9361-A".
const (
	phyName = "ad9361-phy"
	rxName  = "cf-ad9361-"
	txName  = "cf-ad9361-dds-core-"
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
	// What is to be silenced before anything is sent, of all channels: they share
	// oscillators. tones are the switches of the transmit synthesizers.
	attenuators, powerdowns, tones []attribute
}

// port is a device with samples. Ports compare by ==, which tells boards apart.
type port struct {
	device string // its id
	name   string
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

// parseBoard reads a description and finds what the driver needs of a channel, from 1; it
// fails where the board has no AD936x, or lacks something.
func parseBoard(text []byte, number int) (*board, error) {
	var d description
	if err := xml.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%w: its description cannot be read: %v", ErrProtocol, err)
	}
	b, err := d.board(number)
	if err != nil {
		return nil, fmt.Errorf("the board %q: %w", d.model(), err)
	}
	return b, nil
}

func (d *description) board(number int) (*board, error) {
	b := &board{model: d.model(), serial: d.value("hw_serial"), firmware: d.value("fw_version")}
	phys, err := d.devices(phyName, "")
	if err != nil {
		return nil, err
	}
	for _, s := range []struct {
		dir         radio.Direction
		name, other string
		place       string
		oscillator  string
	}{{radio.Receive, rxName, txName, "INPUT", "altvoltage0"}, {radio.Transmit, txName, "", "OUTPUT", "altvoltage1"}} {
		converters, err := d.devices(s.name, s.other)
		if err != nil {
			return nil, err
		}
		ports, err := portsOf(converters, s.place)
		if err != nil {
			return nil, err
		}
		paths, err := pathsOf(phys, s.place, s.oscillator)
		if err != nil {
			return nil, err
		}
		n := min(len(ports), len(paths))
		if number > n {
			return nil, fmt.Errorf("it has no channel %d to %v; allowed is channel=1 to channel=%d", number, s.dir, n)
		}
		b.ports[s.dir], b.path[s.dir], b.local[s.dir] = ports[number-1], paths[number-1].gain, paths[number-1].local
		if s.dir == radio.Transmit {
			b.silence(paths, converters)
		}
	}
	b.phy = b.path[radio.Receive].device
	return b, nil
}

// silence notes what sends, of all paths and synthesizers.
func (b *board) silence(paths []path, synthesizers []*deviceXML) {
	for _, p := range paths {
		gain, _ := p.gain.attribute(stage)
		b.attenuators = append(b.attenuators, gain)
		if a, ok := p.local.attribute("powerdown"); ok && !slices.Contains(b.powerdowns, a) {
			b.powerdowns = append(b.powerdowns, a)
		}
	}
	for _, d := range synthesizers {
		b.tones = append(b.tones, d.tones()...)
	}
}

// model is what the board calls itself; boards that put a card on another's carrier have
// no name, and are described by their transceiver.
func (d *description) model() string {
	if m := d.value("hw_model"); m != "" {
		return m
	}
	if m := d.value(phyName + ",model"); m != "" {
		return m
	}
	return "AD936x"
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

// second is how the names of what belongs to another transceiver than the first end.
var second = regexp.MustCompile(`-[B-Z]$`)

// devices returns those whose names begin so, and not as other, in the order of the
// transceivers that they belong to.
func (d *description) devices(name, other string) (list []*deviceXML, err error) {
	for i := range d.Devices {
		dev := &d.Devices[i]
		if !strings.HasPrefix(dev.Name, name) || other != "" && strings.HasPrefix(dev.Name, other) {
			continue
		}
		if err := dev.check(); err != nil {
			return nil, err
		}
		list = append(list, dev)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("it has no device %q and so no AD936x as this driver knows it; it has %s", name, d.names())
	}
	slices.SortStableFunc(list, func(a, b *deviceXML) int {
		return cmp.Compare(second.FindString(a.Name), second.FindString(b.Name))
	})
	return list, nil
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

// channel finds one of a device, which must have some attributes.
func (d *deviceXML) channel(id, place string, needs ...string) (channel, error) {
	for _, c := range d.Channels {
		if c.ID != id || c.place() != place {
			continue
		}
		ch := channel{device: d.ID, place: place, id: id}
		for _, a := range c.Attributes {
			ch.has = append(ch.has, a.Name)
		}
		for _, n := range needs {
			if !slices.Contains(ch.has, n) {
				return channel{}, fmt.Errorf("the channel %s %s of its device %s has no %s", strings.ToLower(place), id, d.Name, n)
			}
		}
		return ch, nil
	}
	return channel{}, fmt.Errorf("its device %s has no channel %s %s", d.Name, strings.ToLower(place), id)
}

// path is a way between an antenna and a converter.
type path struct{ gain, local channel }

// pathsOf returns the paths of a board's transceivers, of which each has one or two. Other
// channels of theirs are auxiliary converters, which have no gain.
func pathsOf(phys []*deviceXML, place, oscillator string) (paths []path, err error) {
	for _, d := range phys {
		local, err := d.channel(oscillator, "OUTPUT", "frequency")
		if err != nil {
			return nil, err
		}
		first, err := d.channel("voltage0", place, stage, "sampling_frequency", "rf_bandwidth")
		if err != nil {
			return nil, err
		}
		paths = append(paths, path{first, local})
		if second, err := d.channel("voltage1", place, stage, "sampling_frequency", "rf_bandwidth"); err == nil {
			paths = append(paths, path{second, local})
		}
	}
	return paths, nil
}

// portsOf returns what the converters' samples are read and written by, I and Q each. Of a
// board with several transceivers one device may have the samples of all.
func portsOf(converters []*deviceXML, place string) (ports []port, err error) {
	for _, d := range converters {
		for k := range maxChannel {
			p, e := d.port(place, fmt.Sprintf("voltage%d", 2*k), fmt.Sprintf("voltage%d", 2*k+1))
			if e != nil {
				err = cmp.Or(err, e)
				break
			}
			ports = append(ports, p)
		}
	}
	if len(ports) == 0 {
		return nil, err
	}
	return ports, nil
}

// port finds I and Q of a device with samples. No other channels are asked for.
func (d *deviceXML) port(place, inPhase, quadrature string) (port, error) {
	p := port{device: d.ID, name: d.Name}
	words := make([]uint32, (len(d.Channels)+31)/32)
	var found [2]*scanXML
	for i := range d.Channels {
		c := &d.Channels[i]
		for k, id := range []string{inPhase, quadrature} {
			if c.ID == id && c.place() == place && c.Scan != nil {
				// Masks count channels as the description lists them.
				words[i/32] |= 1 << (i % 32)
				found[k] = c.Scan
			}
		}
	}
	if found[0] == nil || found[1] == nil || found[0].Index >= found[1].Index || found[0].Format != found[1].Format {
		return port{}, fmt.Errorf("its device %s has no channels %s and %s that carry I before Q in one format", d.Name, inPhase, quadrature)
	}
	var err error
	if p.format, err = parseFormat(found[0].Format); err != nil {
		return port{}, fmt.Errorf("its device %s: %w", d.Name, err)
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

// parseAttenuation reads the range of a transmit gain: that of other ranges, or as older
// firmware writes it, an attenuation in thousandths of a decibel, or the least gain alone.
func parseAttenuation(s string) (lo, step, hi float64, err error) {
	if w := strings.Fields(strings.Trim(strings.TrimSpace(s), "[]")); len(w) == 1 {
		s = w[0] + " 0.25 0"
	}
	lo, step, hi, err = parseSpan(s)
	if err == nil && hi > 100 {
		lo, step, hi = -hi/1000, step/1000, -lo/1000+0
	}
	return lo, step, hi, err
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
