package main

import (
	"context"
	"errors"
	"io"

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
	return errors.Join(show(w, asJSON, inv, inv.WriteText), problem)
}
