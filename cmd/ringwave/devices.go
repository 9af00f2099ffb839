package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ringwave/learner/experiment"
	"ringwave/radio/boards"
	"ringwave/radio/usb"
)

func newDevicesCommand() *cobra.Command {
	var asJSON, probe bool
	cmd := &cobra.Command{
		Use: "devices [URI...]",
		Example: `  ringwave devices
  ringwave devices --probe pluto:192.168.2.1 rtl_tcp:host:1234`,
		Short: "List radios, and what to do about those that cannot be opened",
		Long: `List the radios on USB (HackRF, RTL-SDR) and those given by URI, such as
pluto:192.168.2.1 or rtl_tcp:host:1234; and for each that cannot be opened why,
and what to do about it.

Without --probe nothing is opened, but for a look at names and serial numbers
on USB. With it each device is opened as a run would, which switches a HackRF
off and gives it settings to begin with, and is asked what it is and can do.
Nothing is ever sent.

Exit status 2 says that this build has no USB and no URI was given, or that a
device which --probe was to open could not be.`,
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
	all, err := boards.New(ctx, boards.Config{USB: host})
	if err != nil {
		return err
	}
	named, err := all.Parse(uris)
	if err != nil {
		return err
	}
	inv, problem := all.Inventory(ctx, named)
	if probe {
		problem = errors.Join(problem, all.Probe(ctx, &inv))
	}
	if ctx.Err() != nil {
		return experiment.ErrInterrupted
	}
	if asJSON {
		err = printJSON(w, inv)
	} else {
		_, err = io.WriteString(w, inventoryText(inv))
	}
	return errors.Join(err, problem)
}

// inventoryText returns an inventory for people to read.
func inventoryText(inv boards.Inventory) string {
	var b strings.Builder
	if !inv.USB.Listed {
		fmt.Fprintln(&b, "USB was not looked at:", inv.USB.Problem)
		writeToDo(&b, inv.USB.ToDo)
	} else if !slices.ContainsFunc(inv.Devices, boards.Found.OnUSB) {
		b.WriteString("No radio on USB: no HackRF, RTL-SDR or ADALM-Pluto is plugged in.\n")
	}
	for _, f := range inv.Devices {
		writeFound(&b, f)
	}
	if slices.ContainsFunc(inv.Devices, func(f boards.Found) bool { return f.URI != "" && !f.Opened && f.Problem == "" }) {
		b.WriteString("Not opened yet; --probe opens each and asks for firmware, clock and capabilities.\n")
	}
	return b.String()
}

func writeFound(b *strings.Builder, f boards.Found) {
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
