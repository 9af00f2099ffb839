package boards

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"ringwave/radio"
	"ringwave/radio/hackrf"
	"ringwave/radio/intake"
	"ringwave/radio/soapy"
	"ringwave/radio/usb"
)

// probePatience bounds what opening and asking one device may take.
const probePatience = 20 * time.Second

// Inventory is what there is.
type Inventory struct {
	USB     USBState `json:"usb"`
	Soapy   USBState `json:"soapy"`
	Devices []Found  `json:"devices"`
}

// USBState says whether USB could be looked at, or SoapySDR asked.
type USBState struct {
	Listed  bool     `json:"listed"`
	Problem string   `json:"problem,omitempty"`
	ToDo    []string `json:"to_do,omitempty"`
}

// Found is a device; what is not known of it is empty.
type Found struct {
	URI          string       `json:"uri,omitempty"` // opens it, and no other
	Address      string       `json:"usb_address,omitempty"`
	Identity     string       `json:"usb_id,omitempty"`
	Driver       string       `json:"driver,omitempty"`
	KernelDriver string       `json:"kernel_driver,omitempty"` // that has it now
	Model        string       `json:"model,omitempty"`
	Serial       string       `json:"serial,omitempty"`
	Firmware     string       `json:"firmware,omitempty"`
	API          string       `json:"usb_api,omitempty"` // of a HackRF's firmware
	Revision     string       `json:"revision,omitempty"`
	ClockInput   *bool        `json:"clock_input,omitempty"` // whether 10 MHz are there
	Capabilities []Capability `json:"capabilities,omitempty"`
	// Opened says that Probe has opened it.
	Opened bool `json:"opened"`
	// TriedOnHardware says that its driver was ever tried on a real board; absent
	// for what is no board.
	TriedOnHardware *bool    `json:"tried_on_hardware,omitempty"`
	Notes           []string `json:"notes,omitempty"`
	Problem         string   `json:"problem,omitempty"` // why it cannot be opened
	ToDo            []string `json:"to_do,omitempty"`

	board  *usb.Listed // nil for what was named
	driver Driver
}

// OnUSB reports whether the device is plugged in, and was not named.
func (f Found) OnUSB() bool { return f.board != nil }

// Capability is a radio.Capability in JSON.
type Capability struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Inventory lists the boards on USB and the devices that are named. The error says that
// USB could not be looked at; what was named is there nevertheless, and with it a build
// without USB is no error. That there is none is the user's to mend.
func (b *Boards) Inventory(ctx context.Context, named []radio.URI) (Inventory, error) {
	inv := Inventory{Devices: []Found{}}
	plugged, err := b.usb.List(ctx, func(i usb.Identity) bool { _, _, known := b.kindOf(i); return known })
	inv.USB.Listed = err == nil
	if err != nil {
		inv.USB.Problem, inv.USB.ToDo = err.Error(), Driver{}.remedy(err, nil)
		err = fmt.Errorf("listing boards on USB: %w", err)
	}
	if errors.Is(err, usb.ErrNoUSBBuild) {
		inv.USB.Problem = "this build has no USB"
	}
	for _, board := range plugged {
		inv.Devices = append(inv.Devices, b.describe(board, plugged))
	}
	b.addSoapy(ctx, &inv)
	for _, u := range named {
		inv.Devices = append(inv.Devices, b.expand(ctx, u)...)
	}
	if errors.Is(err, usb.ErrNoUSBBuild) {
		if len(named) > 0 || inv.Soapy.Listed {
			return inv, nil
		}
		return inv, intake.UserError(err)
	}
	return inv, err
}

// describe returns what is known of a board that nobody has opened.
func (b *Boards) describe(board usb.Listed, all []usb.Listed) Found {
	k, d, _ := b.kindOf(board.Identity)
	f := Found{
		Address: board.Address.String(), Identity: board.Identity.String(), KernelDriver: board.Driver,
		Model: plainText(board.Product), Serial: plainText(board.Serial), board: &board, driver: d,
	}
	if f.Model == "" {
		f.Model = k.Name
	}
	if k.Problem != "" {
		f.Problem, f.ToDo = k.Problem, k.ToDo
		return f
	}
	f.Driver, f.TriedOnHardware = d.Scheme, d.tried()
	f.URI = b.uriOf(d.Scheme, board, all)
	f.Notes = d.boardNotes(board)
	if d.API != nil {
		f.API = d.API(board.Identity)
	}
	if board.Blocked != nil {
		f.fail(board.Blocked)
	}
	return f
}

// plainText leaves of a board's string what can be printed.
func plainText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s))
}

// uriOf returns a URI that opens this board and no other: drivers take the end of a
// serial number, which others may have too.
func (b *Boards) uriOf(scheme string, board usb.Listed, all []usb.Listed) string {
	u := radio.URI{Scheme: scheme, Name: board.Serial}
	// In either case: that of hexadecimal digits does not count.
	name, same := strings.ToLower(board.Serial), 0
	for _, other := range all {
		k, d, _ := b.kindOf(other.Identity)
		if d.Scheme == scheme && k.Problem == "" && strings.HasSuffix(strings.ToLower(other.Serial), name) {
			same++
		}
	}
	if same > 1 || u.Name == "" {
		u.Params = url.Values{"at": {board.Address.String()}}
	}
	return u.String()
}

// fail notes why a device cannot be opened.
func (f *Found) fail(err error) {
	f.Problem, f.ToDo = err.Error(), f.driver.remedy(err, f.board)
}

// Probe opens each device of an inventory, one after the other, asks it what it is and
// can do, and closes it again. The error, that one could not be opened, is the user's to
// mend. Once ctx has ended no other is opened.
func (b *Boards) Probe(ctx context.Context, inv *Inventory) error {
	asked, failed := 0, 0
	for i := range inv.Devices {
		f := &inv.Devices[i]
		if f.URI == "" {
			continue
		}
		if f.Problem == "" && ctx.Err() == nil {
			if err := f.ask(ctx, b.registry); err != nil {
				f.fail(err)
			}
		}
		asked++
		if f.Problem != "" {
			failed++
		}
	}
	if failed > 0 {
		return intake.UserError(fmt.Errorf("%d of %d devices could not be opened", failed, asked))
	}
	return nil
}

// ask opens the device and asks it what it is and can do.
func (f *Found) ask(ctx context.Context, registry *radio.Registry) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	d, err := registry.Open(ctx, f.URI)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	desc := radio.Describe(d)
	f.Opened = true
	f.Firmware, f.Revision = plainText(desc.Info.Firmware), plainText(desc.Info.Revision)
	if f.board == nil || desc.Info.Model != "" {
		f.Model = plainText(desc.Info.Model)
	}
	if f.board == nil {
		f.Serial = plainText(desc.Info.Serial)
	}
	f.Notes = desc.Info.Notes
	for _, c := range desc.Capabilities {
		f.Capabilities = append(f.Capabilities, Capability{c.Name, c.Value})
	}
	if h, ok := d.(*hackrf.Device); ok {
		f.API = h.API().String()
	}
	return f.askClock(ctx, d)
}

// askClock asks whether there is a reference clock, where the device can tell.
func (f *Found) askClock(ctx context.Context, d radio.Device) error {
	c, ok := d.(radio.ClockControl)
	if !ok {
		return nil
	}
	there, err := c.ClockLocked(ctx)
	switch {
	case errors.Is(err, hackrf.ErrOldFirmware), errors.Is(err, soapy.ErrNoSensor):
		return nil // the notes and sensors say so
	case err != nil:
		return fmt.Errorf("asking for the clock input: %w", err)
	}
	f.ClockInput = &there
	return nil
}
