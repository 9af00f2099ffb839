package boards

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteText writes an inventory for people to read.
func (inv Inventory) WriteText(w io.Writer) error {
	var b strings.Builder
	if !inv.USB.Listed {
		fmt.Fprintln(&b, "USB was not looked at:", inv.USB.Problem)
		writeToDo(&b, inv.USB.ToDo)
	} else if !slices.ContainsFunc(inv.Devices, Found.OnUSB) {
		b.WriteString("No radio on USB: no HackRF, RTL-SDR or ADALM-Pluto is plugged in.\n")
	}
	if !inv.Soapy.Listed {
		fmt.Fprintln(&b, "Boards of SoapySDR were not looked for:", inv.Soapy.Problem)
		writeToDo(&b, inv.Soapy.ToDo)
	}
	for _, f := range inv.Devices {
		f.write(&b)
	}
	if slices.ContainsFunc(inv.Devices, func(f Found) bool { return f.URI != "" && !f.Opened && f.Problem == "" }) {
		b.WriteString("Not opened yet; --probe opens each and asks for firmware, clock and capabilities.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// write writes a device, and what a user can do about it.
func (f Found) write(b *strings.Builder) {
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
	if f.OnUSB() {
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
