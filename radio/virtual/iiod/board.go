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
)

func newBoard(cfg Config) *board {
	b := &board{cfg: cfg}
	b.set = powerOn(b.initialRate())
	b.devices = []device{b.phy(), b.xadc(), b.dds(), b.adc()}
	for i := range b.devices {
		b.devices[i].id = fmt.Sprintf("iio:device%d", cfg.FirstDevice+i)
	}
	b.tx = port{dev: &b.devices[2], blocks: defaultBlocks, status: &b.set.txStatus, held: make(chan struct{}, 1)}
	b.rx = port{dev: &b.devices[3], blocks: defaultBlocks, status: &b.set.rxStatus, held: make(chan struct{}, 1)}
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

// retune passes an oscillator's new frequency on.
func (b *board) retune(d radio.Direction) func(int64) error {
	return func(f int64) error {
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
	lo, hi := int64(minRate), int64(maxRate)
	// A bench may run at a rate that no board has.
	lo, hi = min(lo, b.set.rate), max(hi, b.set.rate)
	return []attribute{
		integer("sampling_frequency", prefix+"sampling_frequency", &b.set.rate, lo, hi, b.changeRate),
		fixed("sampling_frequency_available", prefix+"sampling_frequency_available", span(lo, 1, hi)),
	}
}

// phy is the transceiver's control.
func (b *board) phy() device {
	s := &b.set
	oscillator := func(id, name string, f *int64, down *bool, d radio.Direction) channel {
		prefix := "out_" + id + "_" + name + "_"
		return channel{id: id, name: name, output: true, attrs: []attribute{
			integer("frequency", prefix+"frequency", f, minFrequency, maxFrequency, b.retune(d)),
			fixed("frequency_available", prefix+"frequency_available", span(minFrequency, 1, int64(maxFrequency))),
			flag("powerdown", prefix+"powerdown", down),
		}}
	}
	rx := channel{id: "voltage0", attrs: append([]attribute{
		word("gain_control_mode", "in_voltage0_gain_control_mode", &s.gainMode, gainModes),
		fixed("gain_control_mode_available", "in_voltage0_gain_control_mode_available", gainModes),
		b.rxHardwareGain(),
		fixed("hardwaregain_available", "in_voltage0_hardwaregain_available", span(minRxGain, 1, maxRxGain)),
		integer("rf_bandwidth", "in_voltage_rf_bandwidth", &s.rxBandwidth, minBandwidth, maxRxBandwidth, nil),
		fixed("rf_bandwidth_available", "in_voltage_rf_bandwidth_available", span(minBandwidth, 1, maxRxBandwidth)),
		word("rf_port_select", "in_voltage0_rf_port_select", &s.rxPort, rxPorts),
		fixed("rf_port_select_available", "in_voltage_rf_port_select_available", rxPorts),
		fixed("rssi", "in_voltage0_rssi", "110.00 dB"),
	}, b.rates("in_voltage_")...)}
	tx := channel{id: "voltage0", output: true, attrs: append([]attribute{
		decibels("hardwaregain", "out_voltage0_hardwaregain", &s.txGain, minTxGain, 0, txGainStep),
		fixed("hardwaregain_available", "out_voltage0_hardwaregain_available", "[-89.750000 0.250000 0.000000]"),
		integer("rf_bandwidth", "out_voltage_rf_bandwidth", &s.txBandwidth, minBandwidth, maxTxBandwidth, nil),
		fixed("rf_bandwidth_available", "out_voltage_rf_bandwidth_available", span(minBandwidth, 1, maxTxBandwidth)),
		word("rf_port_select", "out_voltage0_rf_port_select", &s.txPort, txPorts),
		fixed("rf_port_select_available", "out_voltage_rf_port_select_available", txPorts),
		fixed("rssi", "out_voltage0_rssi", "0.00 dB"),
	}, b.rates("out_voltage_")...)}
	return device{
		name: "ad9361-phy",
		channels: []channel{
			oscillator("altvoltage1", "TX_LO", &s.txFrequency, &s.txDown, radio.Transmit),
			rx,
			oscillator("altvoltage0", "RX_LO", &s.rxFrequency, &s.rxDown, radio.Receive),
			tx,
			{id: "temp0", attrs: []attribute{fixed("input", "in_temp0_input", "35800")}},
		},
		attrs: []attribute{
			fixed("calib_mode", "calib_mode", "auto"),
			fixed("ensm_mode", "ensm_mode", "fdd"),
			fixed("ensm_mode_available", "ensm_mode_available", "sleep wait alert fdd pinctrl pinctrl_fdd_indep"),
			fixed("trx_rate_governor", "trx_rate_governor", "nominal"),
			fixed("xo_correction", "xo_correction", "40000000"),
		},
	}
}

// rxHardwareGain can be set in manual mode only, as the driver has it.
func (b *board) rxHardwareGain() attribute {
	a := decibels("hardwaregain", "in_voltage0_hardwaregain", &b.set.rxGain, minRxGain, maxRxGain, 1)
	manual := a.set
	a.set = func(value string) error {
		if b.set.gainMode != "manual" {
			return einval
		}
		return manual(value)
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
	for i, id := range []string{"voltage0", "voltage1"} {
		d.channels = append(d.channels, channel{
			id: id, output: true, scan: &scan{i, "le:S16/16>>0"},
			attrs: b.rates("out_voltage_"),
		})
	}
	for i, name := range []string{"TX1_I_F1", "TX1_I_F2", "TX1_Q_F1", "TX1_Q_F2"} {
		t := &b.set.tones[i]
		id := fmt.Sprintf("altvoltage%d", i)
		prefix := "out_" + id + "_" + name + "_"
		d.channels = append(d.channels, channel{id: id, name: name, output: true, attrs: []attribute{
			integer("frequency", prefix+"frequency", &t.frequency, 0, maxRate/2, nil),
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
		name:   "cf-ad9361-lpc",
		debug:  []attribute{registers(&b.set.rxStatus), fixed("pseudorandom_err_check", "", "CH0 : PN9 : Out of Sync : PN Error\nCH1 : PN9 : Out of Sync : PN Error")},
		buffer: []attribute{fixed("data_available", "", "0"), fixed("length_align_bytes", "", "8"), fixed("watermark", "", "2048")},
	}
	for i, id := range []string{"voltage0", "voltage1"} {
		d.channels = append(d.channels, channel{
			id: id, scan: &scan{i, "le:S12/16>>0"},
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
	if b.set.txDown {
		return 0
	}
	return float32(radio.Decibels(b.set.txGain).Amplitude())
}

// rxFactor returns what the receive amplifiers make of a sample.
func (b *board) rxFactor() float32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.set.rxDown {
		return 0
	}
	if b.set.gainMode != "manual" {
		return 1
	}
	return float32((radio.Decibels(b.set.rxGain) - b.cfg.UnitGain).Amplitude())
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
		{"hw_model", b.cfg.Model}, {"hw_model_variant", "0"}, {"hw_serial", b.cfg.Serial},
		{"fw_version", b.cfg.Firmware}, {"ad9361-phy,xo_correction", "40000000"}, {"ad9361-phy,model", "ad9363a"},
	} {
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
