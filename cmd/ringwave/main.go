// Command ringwave runs encrypted over-the-air federated learning: see README.md.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/completion"
	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/memory"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
	"ringwave/radio/usb"
)

// The exit statuses.
const (
	exitFailure     = 1   // the machine: a full disk, a broken file system
	exitBadInput    = 2   // the user's to mend: a config, a data file, an argument
	exitUnusable    = 3   // a run that has ended without a usable result
	exitInterrupted = 130 // stopped by Ctrl-C, SIGTERM or SIGHUP, to be resumed
)

// interrupted returns experiment.ErrInterrupted for the error with which a package says that
// its context has ended, and other errors as they are.
func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return experiment.ErrInterrupted
	}
	return err
}

func main() {
	log.SetOutput(usb.WithoutEventErrors(os.Stderr))
	os.Exit(memory.Unhurried(func() int { return execute(untilStopped(context.Background()), os.Args[1:], os.Stdout, os.Stderr) }))
}

// untilStopped returns a context that ends when a clean stop is asked for: by Ctrl-C, by
// SIGTERM, or by SIGHUP, which comes when the terminal is gone. A second Ctrl-C or SIGTERM
// is not caught.
func untilStopped(parent context.Context) context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signals = append(signals, syscall.SIGHUP)
		// The system and the shell both may send it for the one terminal, so that the
		// second asks for no more than the first. It goes where nobody reads.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(parent, signals...)
	context.AfterFunc(ctx, stop)
	return ctx
}

// execute runs the program and gives its exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &console.Results{W: stdout}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := console.UnknownCommand(root, args)
	if err == nil {
		err = out.Lost(root.ExecuteContext(ctx))
	}
	var spoilt *experiment.Unusable
	switch {
	case err == nil:
		return 0
	case errors.Is(err, experiment.ErrInterrupted):
		return exitInterrupted
	case errors.As(err, &spoilt):
		fmt.Fprintln(stderr, "ringwave:", err)
		return exitUnusable
	case intake.IsUserError(err):
		fmt.Fprintln(stderr, "ringwave:", err)
		return exitBadInput
	}
	fmt.Fprintln(stderr, "ringwave:", err)
	return exitFailure
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "ringwave",
		Example: `  ringwave run hw-configs/loopback.toml
  ringwave plan hw-configs/paper-mnist-4096.toml
  ringwave runs
  ringwave help run`,
		Short: "Encrypted zero-order federated learning over the air",
		Long: `Ringwave runs the protocol of "Privacy-Enhanced Zero-Order Federated Learning
via xMK-CKKS over Wireless Channels": N devices learn one model, each sends one
encrypted scalar a round, and the sum is formed by the superposition of their
waves.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: console.CheckFlags,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	console.AddFlags(root)
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return intake.UserError(fmt.Errorf("%w: see %s --help", console.BadFlag(err), cmd.CommandPath()))
	})
	root.AddCommand(newRunCommand(), newRunsCommand(), newEvaluateCommand(), newReplayCommand(), newViewCommand(), newPlanCommand(), newCompareCommand(), newDataCommand(), newSetsCommand(), newBenchCommand(), newAttackCommand(), newCalibrateCommand(), newBringUpCommand(), newBeaconCommand(), newCurvesCommand(), newDevicesCommand(), newReproduceCommand(), newConfigCommand(), newGuardCommand(), newEnrollCommand(), newServeCommand(), newDeviceCommand(), newAirCommand(), newHostsCommand(), newSweepCommand(), newWorkerCommand())
	if err := completion.Add(root); err != nil {
		panic(err) // two completions of one flag
	}
	return root
}

// versionText says what was built, from which revision and by what.
func versionText() string {
	m := runfolder.NewManifest(time.Now())
	modified := map[bool]string{true: ", with changes"}[m.Modified]
	return fmt.Sprintf("%s %s\nrevision %s%s\n%s %s/%s", cmp.Or(m.Program.Path, "ringwave"), cmp.Or(m.Program.Version, "(no version)"), cmp.Or(m.Revision, "unknown"), modified, m.Go, m.OS, m.Arch)
}

// outFolder returns the folder that --out names, or makes a new one for results of that
// name.
func outFolder(out, parent, name string) (string, error) {
	if out != "" {
		return out, nil
	}
	out, err := runfolder.MakeDir(parent, name, time.Now())
	return out, intake.PathError(err)
}

// exactly wants n arguments, named for the error.
func exactly(n int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return intake.UserError(fmt.Errorf("%s takes %s; got %d arguments", cmd.CommandPath(), names, len(args)))
		}
		return nil
	}
}

// show prints a command's result: as JSON, or as its text.
func show(w io.Writer, asJSON bool, v any, text func(io.Writer) error) error {
	if asJSON {
		return printJSON(w, v)
	}
	return text(w)
}

// showPlots prints where plots are, by the paths of their PNGs among others.
func showPlots(w io.Writer, paths []string) {
	fmt.Fprintln(w, "Plots:")
	for _, p := range paths {
		if strings.HasSuffix(p, ".png") {
			fmt.Fprintf(w, "  %s (and .svg)\n", filepath.Clean(p))
		}
	}
}

// printJSON writes v as indented JSON.
func printJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
