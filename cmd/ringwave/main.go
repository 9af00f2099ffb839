// Command ringwave runs encrypted over-the-air federated learning: see README.md.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ringwave/cmd/internal/completion"
	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
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
	os.Exit(execute(untilStopped(context.Background()), os.Args[1:], os.Stdout, os.Stderr))
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
	go func() {
		<-ctx.Done()
		stop()
	}()
	return ctx
}

// badFlag returns an error of a flag's value with what is allowed in place of Go's words.
func badFlag(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	allowed := map[string]string{
		"bool": "true or false", "int": "a whole number", "int64": "a whole number", "duration": "a time such as 90s or 1h30m",
		"intSlice": "whole numbers, one or several with commas between", "float64Slice": "numbers, one or several with commas between",
	}[invalid.GetFlag().Value.Type()]
	if allowed == "" {
		return err
	}
	return fmt.Errorf("--%s is %q: allowed is %s", invalid.GetFlag().Name, intake.Sentence(invalid.GetValue()), allowed)
}

// results is standard output. Commands print there without looking back: what could not
// be written is remembered, and is the program's error in the end.
type results struct {
	w   io.Writer
	err error
}

// Write writes as w does, and nothing behind the first error.
func (r *results) Write(p []byte) (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	n, r.err = r.w.Write(p)
	return n, r.err
}

// lost returns err, or that results were lost where this is all that went wrong.
func (r *results) lost(err error) error {
	if r.err == nil || err != nil && !errors.Is(err, r.err) {
		return err
	}
	why := r.err
	if path := (*fs.PathError)(nil); errors.As(why, &path) {
		why = path.Err
	}
	return fmt.Errorf("writing the results to standard output: %w", why)
}

// execute runs the program and gives its exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &results{w: stdout}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := unknownCommand(root, args)
	if err == nil {
		err = out.lost(root.ExecuteContext(ctx))
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
		return intake.UserError(fmt.Errorf("%w: see %s --help", badFlag(err), cmd.CommandPath()))
	})
	root.AddCommand(newRunCommand(), newRunsCommand(), newEvaluateCommand(), newReplayCommand(), newPlanCommand(), newCompareCommand(), newDataCommand(), newSetsCommand(), newBenchCommand(), newAttackCommand(), newCalibrateCommand(), newBringUpCommand(), newBeaconCommand(), newCurvesCommand(), newDevicesCommand(), newReproduceCommand(), newConfigCommand(), newGuardCommand(), newEnrollCommand(), newServeCommand(), newDeviceCommand(), newAirCommand(), newHostsCommand(), newSweepCommand(), newWorkerCommand())
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

// unknownCommand refuses a word that stands where a command's name does and is none, also
// beside --help and help, which cobra answers with another command's.
func unknownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	at := root
	for i, word := range args {
		// The flags of commands that have others below them take no values.
		if !at.HasSubCommands() || strings.HasPrefix(word, cobra.ShellCompRequestCmd) {
			return nil
		}
		if strings.HasPrefix(word, "-") || i == 0 && word == "help" {
			continue
		}
		below := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
		if below < 0 && strings.Contains(at.Use, " ") {
			return nil // it is an argument
		}
		if below < 0 {
			return intake.UserError(fmt.Errorf("unknown command %q%s: see %s --help", word, meant(at, word), at.CommandPath()))
		}
		at = at.Commands()[below]
	}
	return nil
}

// meant names a command that is spelt nearly so.
func meant(at *cobra.Command, word string) string {
	at.SuggestionsMinimumDistance = 2
	if names := at.SuggestionsFor(word); len(names) > 0 {
		return fmt.Sprintf(", perhaps %s was meant", strings.Join(names, " or "))
	}
	return ""
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
