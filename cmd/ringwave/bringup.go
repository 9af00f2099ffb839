package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ringwave/calibration/bringup"
	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/radio/intake"
)

// bringUpFlags are those of bringup.
type bringUpFlags struct {
	configFlags
	out, second string
	steps       []string
	yes         bool
}

func newBringUpCommand() *cobra.Command {
	var flags bringUpFlags
	cmd := &cobra.Command{
		Use: "bringup CONFIG",
		Example: `  ringwave bringup hw-configs/bench-hackrf.toml --set radio.transmit=true
  ringwave bringup hw-configs/virtual-bench.toml --steps boards,clock,silence
  ringwave bringup hw-configs/virtual-bench.toml --second rtlsdr:00000001 --yes`,
		Short: "Try real boards for the first time, step by step",
		Long: `Try the radios of a configuration, one step after the other, and say in a
sentence what is wrong and what to do about it:

` + stepList() + `
A step is skipped if one that it needs has failed. Before each step that sends
you are asked, and told what will be sent; --yes answers for scripts. The
configuration must permit it as for any run (radio.transmit = true).

--second names a receiver that takes no part in the bench, to hear whether
carriers go off: after an end in good order, and after that of a second program
which is killed while it transmits. Without it the bench's own receiver listens.

The folder gets results.json, report.html with plots, and bringup.tar.gz, to be
sent along when you ask for help: the configuration without folders and seed,
results, versions, boards, and a few samples of steps that failed. It has no
key, no model and no data.

Ctrl-C ends with carriers off, and keeps what was measured. Exit status: 0 if
all steps passed, 1 if one did not, 2 something you can mend before, 130
stopped.`,
		Args: exactly(1, "one CONFIG file"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.bringUp(cmd, args[0]) },
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.out, "out", "", "the folder, new or empty (default bringups/<utc>-<name>)")
	cmd.Flags().StringSliceVar(&flags.steps, "steps", nil, "make these steps only, as in boards,clock")
	cmd.Flags().StringVar(&flags.second, "second", "", "URI of another receiver, which hears whether carriers go off")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "permit every step to send what it says")
	return cmd
}

// stepList is the list of steps in the help.
func stepList() string {
	var b strings.Builder
	for _, s := range bringup.Steps() {
		fmt.Fprintf(&b, "  %-8s %s%s\n", s.Name, s.Title, map[bool]string{true: " (sends)"}[s.Sends])
	}
	return b.String()
}

// bringUp tries the boards.
func (f *bringUpFlags) bringUp(cmd *cobra.Command, path string) error {
	c, err := f.load(cmd, path)
	if err != nil {
		return err
	}
	say := console.New(cmd)
	u, err := lab(f.data).NewBringUp(c, experiment.BringUpOptions{
		Steps: f.steps, Second: f.second, Child: startBeacon,
		Ask: func(ctx context.Context, what string) error { return f.ask(ctx, cmd, say, what) },
	})
	if err != nil {
		return err
	}
	sends := slices.ContainsFunc(u.Steps, func(s bringup.Step) bool { return s.Sends })
	if sends && !f.yes && !isTerminal(cmd.InOrStdin()) {
		return intake.UserError(errors.New("there is no terminal to ask on whether boards may send: give --yes, or only steps that do not send, as --steps boards,clock,silence"))
	}
	say.Say("Permitted by the configuration: %v", u.Permit())
	r, err := u.Run(cmd.Context(), f.out, bringup.Observer{
		Begun: func(s bringup.Step) { say.Say("%s: %s ...", s.Name, s.Title) },
		Ended: func(r bringup.Result) { sayResult(say, r) },
	})
	if err != nil && !errors.Is(err, experiment.ErrInterrupted) {
		return err
	}
	return errors.Join(show(cmd.OutOrStdout(), f.json, r, func(w io.Writer) error { return printBringUp(w, r) }), err, notPassed(r))
}

// sayResult says what came of a step as it ends.
func sayResult(say *console.Console, r bringup.Result) {
	for _, f := range r.Findings {
		say.Say("  %s: %s", f.Verdict, f.Text)
	}
}

// notPassed is the error of a bring-up in which steps failed or were not made, nil if none.
func notPassed(r experiment.BringUpResult) error {
	names := map[bringup.Verdict][]string{}
	for _, s := range r.Results {
		names[s.Verdict] = append(names[s.Verdict], s.Step)
	}
	switch failed, skipped := names[bringup.Fail], names[bringup.Skipped]; {
	case len(failed) > 0:
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	case len(skipped) > 0:
		return fmt.Errorf("not made: %s", strings.Join(skipped, ", "))
	}
	return nil
}

// printBringUp prints the steps, and what to do.
func printBringUp(w io.Writer, r experiment.BringUpResult) error {
	var b bytes.Buffer
	for _, s := range r.Results {
		fmt.Fprintf(&b, "%-8s %s\n", s.Verdict, s.Title)
		for _, f := range s.Findings {
			if f.Verdict == bringup.OK {
				continue
			}
			fmt.Fprintln(&b, indented(f.Text))
			if f.ToDo != "" {
				fmt.Fprintln(&b, indented("To do: "+f.ToDo))
			}
		}
	}
	fmt.Fprintf(&b, "Page: %s\nTo send when you ask for help: %s\n", filepath.Join(r.Dir, experiment.BringUpReportName), filepath.Join(r.Dir, experiment.BringUpArchiveName))
	_, err := w.Write(b.Bytes())
	return err
}

// indented folds text below the names of steps.
func indented(text string) string {
	const indent = "         "
	return indent + strings.ReplaceAll(console.Fold(text, 70), "\n", "\n"+indent)
}

// isTerminal reports whether somebody can answer there.
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ask asks on the terminal, unless --yes has answered.
func (f *bringUpFlags) ask(ctx context.Context, cmd *cobra.Command, say *console.Console, what string) error {
	if f.yes {
		say.Say("  sends: %s", what)
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "  This will be sent: %s.\n  Send it? [y/N] ", what)
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // an end is a no
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return bringup.ErrRefused
	}
}

// beaconCommand is the name of the command that startBeacon starts.
const beaconCommand = "beacon"

func newBeaconCommand() *cobra.Command {
	return &cobra.Command{
		Use:    beaconCommand,
		Short:  "Send a tone with the transmitters of a configuration, to be killed",
		Hidden: true, // bringup starts it
		Long: `Read a configuration from standard input, and before it a line with its length
in bytes, and send a tone with its transmitters until standard input ends.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bringup.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), func(ctx context.Context, text []byte, ready func()) error {
				c, err := lab("").Parse("standard input", text, nil)
				if err != nil {
					return err
				}
				return lab("").Beacon(ctx, c, ready)
			})
		},
	}
}

// startBeacon starts this program anew as a beacon, and returns once it sends.
func startBeacon(ctx context.Context, text []byte) (kill func() error, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return bringup.Start(ctx, program, []string{beaconCommand}, text)
}
