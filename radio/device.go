package radio

import (
	"context"
	"fmt"
	"strings"
)

// Device is an open radio, recording or place in memory. It is safe for use by
// several goroutines.
type Device interface {
	Info() Info
	// Close closes the device and its streams. A second Close does nothing.
	Close() error
}

// ReceiveOpener is a Device that receives.
type ReceiveOpener interface {
	// OpenReceiver returns a stream that is Ready; ErrBusy if the device has no
	// other to give.
	OpenReceiver(ctx context.Context) (Receiver, error)
}

// TransmitOpener is a Device that transmits.
type TransmitOpener interface {
	// OpenTransmitter returns a stream that is Ready; ErrBusy if the device has no
	// other to give.
	OpenTransmitter(ctx context.Context) (Transmitter, error)
}

// Info is what a device says of itself; what it cannot say is empty.
type Info struct {
	URI      string // opens this device again
	Driver   string
	Model    string
	Serial   string
	Firmware string
	Revision string
	// Notes are sentences that a user should read, as that a driver was never
	// tried on hardware.
	Notes []string
}

// Description is what a device is and can do, for printing.
type Description struct {
	Info         Info
	Capabilities []Capability
}

// Capability is one line of a Description.
type Capability struct{ Name, Value string }

// Describe collects what d is and can do. It asks the device for nothing that
// takes time.
func Describe(d Device) Description {
	desc := Description{Info: d.Info()}
	for _, dir := range directions(d) {
		desc.add(dir.String(), "yes")
		desc.describeTuning(d, dir)
		desc.describeGains(d, dir)
		if a, ok := d.(AntennaControl); ok {
			desc.add(dir.String()+" antenna", choice(a.Antennas(dir), a.Antenna(dir)))
		}
	}
	if c, ok := d.(ClockControl); ok && len(c.ClockSources()) > 0 {
		desc.add("clock", choice(c.ClockSources(), c.ClockSource()))
	}
	if t, ok := d.(TriggerControl); ok && len(t.TriggerSources()) > 0 {
		desc.add("trigger", strings.Join(t.TriggerSources(), ", "))
	}
	if t, ok := d.(TimedStart); ok && len(t.TimeSources()) > 0 {
		desc.add("time", choice(t.TimeSources(), t.TimeSource()))
	}
	if _, ok := d.(TimeControl); ok {
		desc.add("indices", "counted by the device")
	} else {
		desc.add("indices", "counted by the host")
	}
	return desc
}

func directions(d Device) []Direction {
	var dirs []Direction
	if _, ok := d.(ReceiveOpener); ok {
		dirs = append(dirs, Receive)
	}
	if _, ok := d.(TransmitOpener); ok {
		dirs = append(dirs, Transmit)
	}
	return dirs
}

func (desc *Description) add(name, value string) {
	desc.Capabilities = append(desc.Capabilities, Capability{name, value})
}

func (desc *Description) describeTuning(d Device, dir Direction) {
	if f, ok := d.(FrequencyControl); ok {
		desc.add(dir.String()+" frequency", fmt.Sprintf("%v (%v)", f.Frequency(dir), f.Frequencies(dir)))
	}
	if r, ok := d.(RateControl); ok {
		desc.add(dir.String()+" sample rate", fmt.Sprintf("%v (%v)", r.SampleRate(dir), r.SampleRates(dir)))
	}
}

func (desc *Description) describeGains(d Device, dir Direction) {
	g, ok := d.(GainControl)
	if !ok {
		return
	}
	for _, stage := range g.GainStages(dir) {
		value := stage.Span.String()
		if now, err := g.Gain(dir, stage.Name); err == nil {
			value = fmt.Sprintf("%v (%v)", now, stage.Span)
		}
		desc.add(fmt.Sprintf("%v gain %s", dir, stage.Name), value)
	}
}

// choice returns what is set and what could be.
func choice(all []string, now string) string {
	return fmt.Sprintf("%s (of %s)", now, strings.Join(all, ", "))
}

// String returns one line for what the device is, one a capability and one a note.
func (desc Description) String() string {
	var b strings.Builder
	i := desc.Info
	b.WriteString(i.URI)
	for _, part := range []struct{ name, value string }{
		{"", i.Model}, {"serial ", i.Serial}, {"firmware ", i.Firmware}, {"revision ", i.Revision}, {"driver ", i.Driver},
	} {
		if part.value != "" {
			b.WriteString(", " + part.name + part.value)
		}
	}
	for _, c := range desc.Capabilities {
		fmt.Fprintf(&b, "\n  %s: %s", c.Name, c.Value)
	}
	for _, n := range i.Notes {
		b.WriteString("\n  note: " + n)
	}
	return b.String()
}
