package iiod

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"ringwave/radio"
)

// board is what all connections share.
type board struct {
	cfg Config
	// devices and what their attributes point at are made once.
	devices []device
	xml     string

	mu  sync.Mutex
	set settings
	rx  port
	tx  port
}

// port is a device with samples; the board's lock guards it, but for held.
type port struct {
	dev    *device
	blocks int // what SET BUFFERS_COUNT chose
	status *status
	held   chan struct{} // has a token while a connection has the port
}

const (
	defaultBlocks = 4
	maxBlocks     = 64
	// pathsOfPhy is the number of paths of a transceiver that is not the last.
	pathsOfPhy = 2
)

func newBoard(cfg Config) *board {
	b := &board{cfg: cfg}
	b.set = powerOn(cfg.Profile, b.initialRate())
	for i := range b.set.phys {
		b.devices = append(b.devices, b.phy(i))
	}
	first := len(b.devices)
	b.devices = append(b.devices, b.xadc(), b.dds(), b.adc())
	for i := range b.devices {
		b.devices[i].id = fmt.Sprintf("iio:device%d", cfg.FirstDevice+i)
	}
	b.tx = port{dev: &b.devices[first+1], blocks: defaultBlocks, status: &b.set.txStatus, held: make(chan struct{}, 1)}
	b.rx = port{dev: &b.devices[first+2], blocks: defaultBlocks, status: &b.set.rxStatus, held: make(chan struct{}, 1)}
	b.xml = b.describe()
	return b
}

// initialRate is that of the ends, which may know only one.
func (b *board) initialRate() int64 {
	for d, end := range b.ends() {
		if r, ok := end.(radio.RateControl); ok {
			return int64(math.Round(float64(r.SampleRate(radio.Direction(d)))))
		}
	}
	return 30_720_000
}

// ends returns the ends by direction.
func (b *board) ends() [2]radio.Device {
	return [2]radio.Device{radio.Receive: b.cfg.Receive, radio.Transmit: b.cfg.Transmit}
}

// wired returns the transceiver and the path of it that the ends are joined to.
func (b *board) wired() (*phySettings, *pathSettings) {
	i := b.cfg.Path - 1
	phy := &b.set.phys[i/pathsOfPhy]
	return phy, &phy.paths[i%pathsOfPhy]
}

// retune passes an oscillator's new frequency on, and takes the receive gains to where they
// are allowed at it.
func (b *board) retune(s *phySettings, d radio.Direction) func(int64) error {
	return func(f int64) error {
		if d == radio.Receive {
			lo, hi := gains(f)
			for i := range s.paths {
				s.paths[i].rxGain = max(lo, min(hi, s.paths[i].rxGain))
			}
		}
		if phy, _ := b.wired(); phy != s {
			return nil
		}
		c, ok := b.ends()[d].(radio.FrequencyControl)
		if !ok {
			return nil
		}
		if _, err := c.SetFrequency(context.Background(), d, radio.Hertz(f)); err != nil {
			return einval
		}
		return nil
	}
}

// changeRate passes a new sample rate on; ends that know only one refuse others.
func (b *board) changeRate(rate int64) error {
	for d, end := range b.ends() {
		c, ok := end.(radio.RateControl)
		if !ok {
			continue
		}
		if _, err := c.SetSampleRate(context.Background(), radio.Direction(d), radio.Hertz(rate)); err != nil {
			return einval
		}
	}
	return nil
}

// rates are the attributes of the sample rate, which all devices show.
func (b *board) rates(prefix string) []attribute {
	lo, hi := int64(b.cfg.Profile.Rates.Min), int64(b.cfg.Profile.Rates.Max)
	// A bench may run at a rate that no board has.
	lo, hi = min(lo, b.set.rate), max(hi, b.set.rate)
	return []attribute{
		integer("sampling_frequency", prefix+"sampling_frequency", &b.set.rate, lo, hi, b.changeRate),
		fixed("sampling_frequency_available", prefix+"sampling_frequency_available", span(lo, 1, hi)),
	}
}

// phy is the control of a transceiver.
func (b *board) phy(i int) device {
	s := &b.set.phys[i]
	oscillator := func(id, name string, f *int64, down *bool, d radio.Direction, r radio.Span[radio.Hertz]) channel {
		prefix := "out_" + id + "_" + name + "_"
		lo, hi := int64(r.Min), int64(r.Max)
		return channel{id: id, name: name, output: true, attrs: []attribute{
			integer("frequency", prefix+"frequency", f, lo, hi, b.retune(s, d)),
			fixed("frequency_available", prefix+"frequency_available", span(lo, 1, hi)),
			flag("powerdown", prefix+"powerdown", down),
		}}
	}
	name := "ad9361-phy"
	if i > 0 {
		name += "-" + string(rune('A'+i))
	}
	d := device{
		name: name,
		channels: []channel{
			oscillator("altvoltage1", "TX_LO", &s.txFrequency, &s.txDown, radio.Transmit, b.cfg.Profile.TxFrequencies),
			oscillator("altvoltage0", "RX_LO", &s.rxFrequency, &s.rxDown, radio.Receive, b.cfg.Profile.RxFrequencies),
			{id: "temp0", attrs: []attribute{fixed("input", "in_temp0_input", "35800")}},
			// The auxiliary converters have the shared attributes, too.
			{id: "voltage2", attrs: append([]attribute{fixed("raw", "in_voltage2_raw", "1406")}, b.rates("in_voltage_")...)},
			{id: "voltage2", output: true, attrs: append([]attribute{fixed("raw", "out_voltage2_raw", "306")}, b.rates("out_voltage_")...)},
		},
		attrs: []attribute{
			fixed("calib_mode", "calib_mode", "auto"),
			fixed("ensm_mode", "ensm_mode", "fdd"),
			fixed("ensm_mode_available", "ensm_mode_available", "sleep wait alert fdd pinctrl pinctrl_fdd_indep"),
			fixed("trx_rate_governor", "trx_rate_governor", "nominal"),
			fixed("xo_correction", "xo_correction", "40000000"),
		},
	}
	for k := range s.paths {
		d.channels = append(d.channels, b.hearing(s, k), b.sending(s, k))
	}
	return d
}

// hearing is the receive path k of a transceiver.
func (b *board) hearing(s *phySettings, k int) channel {
	p, id := &s.paths[k], fmt.Sprintf("voltage%d", k)
	own := "in_" + id + "_"
	return channel{id: id, attrs: append([]attribute{
		word("gain_control_mode", own+"gain_control_mode", &p.gainMode, gainModes),
		fixed("gain_control_mode_available", "in_voltage_gain_control_mode_available", gainModes),
		rxHardwareGain(own, s, p),
		told("hardwaregain_available", own+"hardwaregain_available", func() string {
			lo, hi := gains(s.rxFrequency)
			return span(lo, 1, hi)
		}),
		integer("rf_bandwidth", "in_voltage_rf_bandwidth", &s.rxBandwidth, minBandwidth, maxRxBandwidth, nil),
		fixed("rf_bandwidth_available", "in_voltage_rf_bandwidth_available", span(minBandwidth, 1, maxRxBandwidth)),
		word("rf_port_select", own+"rf_port_select", &p.rxPort, rxPorts),
		fixed("rf_port_select_available", "in_voltage_rf_port_select_available", rxPorts),
		fixed("rssi", own+"rssi", "110.00 dB"),
	}, b.rates("in_voltage_")...)}
}

// sending is the transmit path k of a transceiver.
func (b *board) sending(s *phySettings, k int) channel {
	p, id := &s.paths[k], fmt.Sprintf("voltage%d", k)
	own := "out_" + id + "_"
	return channel{id: id, output: true, attrs: append([]attribute{
		decibels("hardwaregain", own+"hardwaregain", &p.txGain, minTxGain, 0, txGainStep),
		fixed("hardwaregain_available", own+"hardwaregain_available", "[-89.750000 0.250000 0.000000]"),
		integer("rf_bandwidth", "out_voltage_rf_bandwidth", &s.txBandwidth, minBandwidth, maxTxBandwidth, nil),
		fixed("rf_bandwidth_available", "out_voltage_rf_bandwidth_available", span(minBandwidth, 1, maxTxBandwidth)),
		word("rf_port_select", own+"rf_port_select", &p.txPort, txPorts),
		fixed("rf_port_select_available", "out_voltage_rf_port_select_available", txPorts),
		fixed("rssi", own+"rssi", "0.00 dB"),
	}, b.rates("out_voltage_")...)}
}

// rxHardwareGain can be set in manual mode only, as the driver has it.
func rxHardwareGain(own string, s *phySettings, p *pathSettings) attribute {
	a := decibels("hardwaregain", own+"hardwaregain", &p.rxGain, 0, 0, 1)
	a.set = func(value string) error {
		if p.gainMode != "manual" {
			return einval
		}
		lo, hi := gains(s.rxFrequency)
		return decibels("", "", &p.rxGain, lo, hi, 1).set(value)
	}
	return a
}

// xadc is the processor's own converter, there so that not all devices are radio.
func (b *board) xadc() device {
	return device{
		name:     "xadc",
		channels: []channel{{id: "temp0", attrs: []attribute{fixed("raw", "in_temp0_raw", "2600")}}},
		attrs:    []attribute{fixed("sampling_frequency", "sampling_frequency", "961538")},
	}
}

// dds is the transmit converter with its synthesizer.
func (b *board) dds() device {
	d := device{name: "cf-ad9361-dds-core-lpc", debug: []attribute{registers(&b.set.txStatus)}}
	for i := range 2 * b.cfg.Profile.Paths {
		d.channels = append(d.channels, channel{
			id: fmt.Sprintf("voltage%d", i), output: true, scan: &scan{i, "le:S16/16>>0"},
			attrs: b.rates("out_voltage_"),
		})
	}
	for i := range b.set.tones {
		t, k := &b.set.tones[i], i%tonesOfPath
		name := fmt.Sprintf("TX%d_%c_F%d", i/tonesOfPath+1, "IQ"[k/2], k%2+1)
		id := fmt.Sprintf("altvoltage%d", i)
		prefix := "out_" + id + "_" + name + "_"
		d.channels = append(d.channels, channel{id: id, name: name, output: true, attrs: []attribute{
			integer("frequency", prefix+"frequency", &t.frequency, 0, int64(b.cfg.Profile.Rates.Max)/2, nil),
			integer("phase", prefix+"phase", &t.phase, 0, 360_000, nil),
			integer("raw", prefix+"raw", &t.raw, 0, 1, nil),
			fraction("scale", prefix+"scale", &t.scale),
		}})
	}
	return d
}

// fraction is an attribute from 0 to 1.
func fraction(name, file string, v *float64) attribute {
	a := decibels(name, file, v, 0, 1, 1e-6)
	a.get = func() string { return fmt.Sprintf("%.6f", *v) }
	return a
}

// adc is the receive converter.
func (b *board) adc() device {
	d := device{
		name:   b.cfg.Profile.Receiver,
		debug:  []attribute{registers(&b.set.rxStatus), fixed("pseudorandom_err_check", "", "CH0 : PN9 : Out of Sync : PN Error\nCH1 : PN9 : Out of Sync : PN Error")},
		buffer: []attribute{fixed("data_available", "", "0"), fixed("length_align_bytes", "", "8"), fixed("watermark", "", "2048")},
	}
	for i := range 2 * b.cfg.Profile.Paths {
		d.channels = append(d.channels, channel{
			id: fmt.Sprintf("voltage%d", i), scan: &scan{i, "le:S12/16>>0"},
			attrs: b.rates("in_voltage_"),
		})
	}
	return d
}

// txFactor returns what the attenuator makes of a sample, 0 with the oscillator
// down.
func (b *board) txFactor() float32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	phy, path := b.wired()
	if phy.txDown {
		return 0
	}
	return float32(radio.Decibels(path.txGain).Amplitude())
}

// rxFactor returns what the receive amplifiers make of a sample.
func (b *board) rxFactor() float32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	phy, path := b.wired()
	if phy.rxDown {
		return 0
	}
	if path.gainMode != "manual" {
		return 1
	}
	return float32((radio.Decibels(path.rxGain) - b.cfg.UnitGain).Amplitude())
}

// raise sets flags of a port's status register.
func (b *board) raise(p *port, flags uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.status.flags |= flags
}

// describe writes the context as libiio does.
func (b *board) describe() string {
	var x strings.Builder
	x.WriteString(xmlHeader)
	fmt.Fprintf(&x, `<context name="network" description="emulated, Linux (none) armv7l" >`)
	for _, a := range [][2]string{
		{"hw_model", b.cfg.Profile.Model}, {"hw_model_variant", "0"}, {"hw_serial", b.cfg.Serial},
		{"fw_version", b.cfg.Firmware}, {"ad9361-phy,xo_correction", "40000000"}, {"ad9361-phy,model", b.cfg.Profile.Transceiver},
	} {
		if a[1] == "" {
			continue
		}
		fmt.Fprintf(&x, `<context-attribute name=%s value=%s />`, quote(a[0]), quote(a[1]))
	}
	for _, d := range b.devices {
		d.describe(&x)
	}
	x.WriteString("</context>")
	return x.String()
}

func (d *device) describe(x *strings.Builder) {
	fmt.Fprintf(x, `<device id=%s name=%s >`, quote(d.id), quote(d.name))
	for _, c := range d.channels {
		c.describe(x)
	}
	for _, a := range d.attrs {
		fmt.Fprintf(x, `<attribute name=%s />`, quote(a.name))
	}
	for _, a := range d.debug {
		fmt.Fprintf(x, `<debug-attribute name=%s />`, quote(a.name))
	}
	for _, a := range d.buffer {
		fmt.Fprintf(x, `<buffer-attribute name=%s />`, quote(a.name))
	}
	x.WriteString("</device>")
}

func (c *channel) describe(x *strings.Builder) {
	fmt.Fprintf(x, `<channel id=%s `, quote(c.id))
	if c.name != "" {
		fmt.Fprintf(x, `name=%s `, quote(c.name))
	}
	kind := "input"
	if c.output {
		kind = "output"
	}
	fmt.Fprintf(x, `type=%s >`, quote(kind))
	if c.scan != nil {
		fmt.Fprintf(x, `<scan-element index="%d" format=%s />`, c.scan.index, quote(c.scan.format))
	}
	for _, a := range c.attrs {
		fmt.Fprintf(x, `<attribute name=%s filename=%s />`, quote(a.name), quote(a.file))
	}
	x.WriteString("</channel>")
}

var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func quote(s string) string { return `"` + xmlEscapes.Replace(s) + `"` }

// xmlHeader has a document type, as libiio's has: a client must read over it.
const xmlHeader = `<?xml version="1.0" encoding="utf-8"?>` +
	`<!DOCTYPE context [<!ELEMENT context (device | context-attribute)*>` +
	`<!ELEMENT context-attribute EMPTY>` +
	`<!ELEMENT device (channel | attribute | debug-attribute | buffer-attribute)*>` +
	`<!ELEMENT channel (scan-element?, attribute*)>` +
	`<!ELEMENT attribute EMPTY><!ELEMENT scan-element EMPTY>` +
	`<!ELEMENT debug-attribute EMPTY><!ELEMENT buffer-attribute EMPTY>` +
	`<!ATTLIST context name CDATA #REQUIRED description CDATA #IMPLIED>` +
	`<!ATTLIST context-attribute name CDATA #REQUIRED value CDATA #REQUIRED>` +
	`<!ATTLIST device id CDATA #REQUIRED name CDATA #IMPLIED>` +
	`<!ATTLIST channel id CDATA #REQUIRED name CDATA #IMPLIED type (input|output) #REQUIRED>` +
	`<!ATTLIST scan-element index CDATA #REQUIRED format CDATA #REQUIRED scale CDATA #IMPLIED>` +
	`<!ATTLIST attribute name CDATA #REQUIRED filename CDATA #IMPLIED>` +
	`<!ATTLIST debug-attribute name CDATA #REQUIRED>` +
	`<!ATTLIST buffer-attribute name CDATA #REQUIRED>]>`
