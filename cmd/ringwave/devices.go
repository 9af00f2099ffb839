package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"ringwave/radio"
	"ringwave/radio/hackrf"
	"ringwave/radio/intake"
	"ringwave/radio/usb"
)

// probePatience bounds what opening and asking one device may take.
const probePatience = 20 * time.Second

func newDevicesCommand() *cobra.Command {
	var asJSON, probe bool
	cmd := &cobra.Command{
		Use:   "devices [URI...]",
		Short: "List radios, and what to do about those that cannot be opened",
		Long: `List the radios on USB (HackRF, RTL-SDR) and those given by URI, such as
pluto:192.168.2.1 or rtl_tcp:host:1234; and for each that cannot be opened why, and
what to do about it.

Without --probe nothing is opened, but for a look at names and serial numbers on
USB. With it each device is opened as a run would, which switches a HackRF off and
gives it settings to begin with, and is asked what it is and can do. Nothing is ever
sent.

Exit status 2 says that this build has no USB and no URI was given, or that a device
which --probe was to open could not be.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return devices(cmd.Context(), usb.System(), args, probe, asJSON, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "open each device and ask for firmware, clock and capabilities")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// devices prints what there is, and then fails if something of it could not be told.
func devices(ctx context.Context, host usb.Host, uris []string, probe, asJSON bool, w io.Writer) error {
	registry, err := newRegistry(ctx, host, radio.TransmitPermit{}, nil)
	if err != nil {
		return err
	}
	named, err := parseURIs(registry, uris)
	if err != nil {
		return intake.UserError(err)
	}
	inv, problem := takeInventory(ctx, host, named)
	if probe {
		problem = errors.Join(problem, inv.probe(ctx, registry))
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	if asJSON {
		err = printJSON(w, inv)
	} else {
		_, err = io.WriteString(w, inv.String())
	}
	return errors.Join(err, problem)
}

// parseURIs takes URIs that the registry can open.
func parseURIs(registry *radio.Registry, uris []string) (named []radio.URI, err error) {
	schemes := registry.Schemes()
	for _, s := range uris {
		u, err := radio.ParseURI(s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(schemes, u.Scheme) {
			return nil, fmt.Errorf("device %q has the scheme %q; allowed is %s", s, u.Scheme, strings.Join(schemes, ", "))
		}
		named = append(named, u)
	}
	return named, nil
}

// inventory is what there is, as --json prints it.
type inventory struct {
	USB     usbState `json:"usb"`
	Devices []found  `json:"devices"`
}

// usbState tells whether USB could be looked at.
type usbState struct {
	Listed  bool     `json:"listed"`
	Problem string   `json:"problem,omitempty"`
	ToDo    []string `json:"to_do,omitempty"`
}

// found is a device; what is not known of it is empty.
type found struct {
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
	Capabilities []capability `json:"capabilities,omitempty"`
	// Opened says that --probe has opened it.
	Opened bool `json:"opened"`
	// TriedOnHardware says that its driver was ever tried on a real board; absent
	// for what is no board.
	TriedOnHardware *bool    `json:"tried_on_hardware,omitempty"`
	Notes           []string `json:"notes,omitempty"`
	Problem         string   `json:"problem,omitempty"` // why it cannot be opened
	ToDo            []string `json:"to_do,omitempty"`

	board *usb.Listed // nil for what was named
}

// capability is a radio.Capability in JSON.
type capability struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// takeInventory lists the boards on USB and the devices that were named. The error
// says that USB could not be looked at; what was named is there nevertheless, and
// with it a build without USB is no error.
func takeInventory(ctx context.Context, host usb.Host, named []radio.URI) (inventory, error) {
	inv := inventory{Devices: []found{}}
	boards, err := host.List(ctx, isKnown)
	inv.USB.Listed = err == nil
	if err != nil {
		inv.USB.Problem, inv.USB.ToDo = err.Error(), remedy(err, nil)
		err = fmt.Errorf("listing boards on USB: %w", err)
	}
	if errors.Is(err, usb.ErrNoUSBBuild) {
		inv.USB.Problem = "this build has no USB"
	}
	for _, b := range boards {
		inv.Devices = append(inv.Devices, describeBoard(b, boards))
	}
	for _, u := range named {
		inv.Devices = append(inv.Devices, found{URI: u.String(), Driver: u.Scheme, TriedOnHardware: tried(u.Scheme)})
	}
	if errors.Is(err, usb.ErrNoUSBBuild) {
		if len(named) > 0 {
			return inv, nil
		}
		return inv, intake.UserError(err)
	}
	return inv, err
}

// describeBoard tells what is known of a board that nobody has opened.
func describeBoard(b usb.Listed, all []usb.Listed) found {
	k := kindOf(b.Identity)
	f := found{
		Address: b.Address.String(), Identity: b.Identity.String(), Driver: k.driver, KernelDriver: b.Driver,
		Model: plainText(b.Product), Serial: plainText(b.Serial), TriedOnHardware: tried(k.driver), board: &b,
	}
	if f.Model == "" {
		f.Model = k.name
	}
	if k.driver == "" {
		f.Problem, f.ToDo = k.problem, k.toDo
		return f
	}
	f.URI = uriOf(k.driver, b, all)
	f.Notes = boardNotes(k, b)
	if k.driver == driverHackRF {
		f.API = hackrf.API(b.Identity.Release).String()
	}
	if b.Blocked != nil {
		f.fail(b.Blocked)
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

// uriOf gives a URI that opens this board and no other: drivers take the end of a
// serial number, which others may have too.
func uriOf(driver string, b usb.Listed, all []usb.Listed) string {
	u := radio.URI{Scheme: driver, Name: b.Serial}
	// In either case: that of hexadecimal digits does not count.
	name, same := strings.ToLower(b.Serial), 0
	for _, other := range all {
		if kindOf(other.Identity).driver == driver && strings.HasSuffix(strings.ToLower(other.Serial), name) {
			same++
		}
	}
	if same > 1 || u.Name == "" {
		u.Params = url.Values{"at": {b.Address.String()}}
	}
	return u.String()
}

// fail notes why a device cannot be opened.
func (f *found) fail(err error) {
	f.Problem, f.ToDo = err.Error(), remedy(err, f.board)
}

// probe opens each device, one after the other, and fails if one could not be.
func (inv *inventory) probe(ctx context.Context, registry *radio.Registry) error {
	asked, failed := 0, 0
	for i := range inv.Devices {
		f := &inv.Devices[i]
		if f.URI == "" {
			continue
		}
		if f.Problem == "" && ctx.Err() == nil {
			if err := f.ask(ctx, registry); err != nil {
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
func (f *found) ask(ctx context.Context, registry *radio.Registry) (err error) {
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
		f.Capabilities = append(f.Capabilities, capability{c.Name, c.Value})
	}
	if h, ok := d.(*hackrf.Device); ok {
		f.API = h.API().String()
	}
	return f.askClock(ctx, d)
}

// askClock asks whether there is a reference clock, where the device can tell.
func (f *found) askClock(ctx context.Context, d radio.Device) error {
	c, ok := d.(radio.ClockControl)
	if !ok {
		return nil
	}
	there, err := c.ClockLocked(ctx)
	switch {
	case errors.Is(err, hackrf.ErrOldFirmware):
		return nil // the notes say so
	case err != nil:
		return fmt.Errorf("asking for the clock input: %w", err)
	}
	f.ClockInput = &there
	return nil
}

// String gives the inventory for people to read.
func (inv inventory) String() string {
	var b strings.Builder
	if !inv.USB.Listed {
		fmt.Fprintln(&b, "USB was not looked at:", inv.USB.Problem)
		writeToDo(&b, inv.USB.ToDo)
	} else if !slices.ContainsFunc(inv.Devices, func(f found) bool { return f.board != nil }) {
		b.WriteString("No radio on USB: no HackRF, RTL-SDR or ADALM-Pluto is plugged in.\n")
	}
	for _, f := range inv.Devices {
		f.write(&b)
	}
	if slices.ContainsFunc(inv.Devices, func(f found) bool { return f.URI != "" && !f.Opened && f.Problem == "" }) {
		b.WriteString("Not opened yet; --probe opens each and asks for firmware, clock and capabilities.\n")
	}
	return b.String()
}

func (f found) write(b *strings.Builder) {
	head := []string{}
	for _, part := range []struct{ name, value string }{
		{"", f.URI}, {"", f.Model}, {"serial ", f.Serial}, {"firmware ", f.Firmware}, {"revision ", f.Revision},
	} {
		if part.value != "" {
			head = append(head, part.name+part.value)
		}
	}
	fmt.Fprintln(b, strings.Join(head, ", "))
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "  %s: %s\n", name, value)
		}
	}
	if f.board != nil {
		line("on USB", f.Address+", "+f.Identity)
	}
	line("USB API", f.API)
	if f.ClockInput != nil {
		line("clock input", map[bool]string{true: "there is a reference clock", false: "no reference clock"}[*f.ClockInput])
	}
	for _, c := range f.Capabilities {
		line(c.Name, c.Value)
	}
	if f.TriedOnHardware != nil && !*f.TriedOnHardware && !f.Opened { // else the notes say so
		line("note", "its driver was never tried on a real board")
	}
	for _, n := range f.Notes {
		line("note", n)
	}
	line("cannot be opened", f.Problem)
	writeToDo(b, f.ToDo)
}

// writeToDo writes what a user can do, ready to be copied.
func writeToDo(b *strings.Builder, lines []string) {
	for _, l := range lines {
		fmt.Fprintf(b, "    %s\n", l)
	}
}
