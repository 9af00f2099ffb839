package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ringwave/cmd/internal/console"
	"ringwave/cmd/internal/watching"
	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/catalogue"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/radio/intake"
)

// configFlags are what run and plan share.
type configFlags struct {
	set  []string
	data string
	seed int64
	json bool
	// rounds is the number of rounds in place of the config's, of run alone.
	rounds int
	watch  watching.Flags
}

func (f *configFlags) add(cmd *cobra.Command) {
	f.addConfig(cmd.Flags())
	addData(cmd.Flags(), &f.data)
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
}

// addConfig adds the flags of which the configuration is.
func (f *configFlags) addConfig(flags *pflag.FlagSet) {
	addSet(flags, &f.set)
	flags.Int64Var(&f.seed, "seed", 0, "seed of the experiment, in place of the config's")
}

func addSet(flags *pflag.FlagSet, set *[]string) {
	flags.StringArrayVar(set, "set", nil, "override one key of the config, as section.key=value (may be given several times)")
}

func addData(flags *pflag.FlagSet, data *string) {
	flags.StringVar(data, "data", "", "folder of data sets; then RINGWAVE_DATA and the user's cache are searched")
}

// configOrResume wants one CONFIG file, or none beside --resume.
func configOrResume(resume *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if *resume != "" {
			return exactly(0, "no CONFIG beside --resume")(cmd, args)
		}
		return exactly(1, "one CONFIG file")(cmd, args)
	}
}

// with returns the flags with another seed.
func (f *configFlags) with(seed int64) *configFlags {
	g := *f
	g.set = append(slices.Clone(f.set), fmt.Sprintf("experiment.seed=%d", seed))
	return &g
}

// load reads the configuration with the flags' overrides.
func (f *configFlags) load(cmd *cobra.Command, path string) (config.Config, error) {
	c, err := config.Load(path, f.overrides(cmd))
	return c, intake.UserError(err)
}

// overrides returns what the flags set in place of the configuration's.
func (f *configFlags) overrides(cmd *cobra.Command) []string {
	if !cmd.Flags().Changed("seed") {
		return f.set
	}
	return append(f.set, fmt.Sprintf("experiment.seed=%d", f.seed))
}

func newRunCommand() *cobra.Command {
	var flags configFlags
	var out, resume, seeds string
	cmd := &cobra.Command{
		Use: "run CONFIG",
		Example: `  ringwave run hw-configs/loopback.toml
  ringwave run hw-configs/paper-mnist-4096.toml --set channel.std=10
  ringwave run hw-configs/loopback.toml --seeds 1-20 --json -q
  ringwave run --resume runs/20261120T125703Z-loopback
  ringwave run --resume runs/20261120T125703Z-loopback --rounds 800`,
		Short: "Run an experiment into a run folder",
		Long: `Run an experiment and write its folder: config.toml with every default,
manifest.json, metrics.csv with a line a round, summary.json and plots.

Ctrl-C finishes the round and writes a checkpoint, and so does the end of the
terminal (SIGHUP; under nohup a run goes on); run --resume DIR goes on from
there, also after a crash. With keys from the system's generator, or over
radios, no round is sent twice: a resumed run takes what it has received from
metrics.csv (and messages.csv, of packed directions), and skips a round that
was broken off.

A run is extended with --resume DIR --rounds N: its rounds are then the first
of a longer run's. That is refused where they were made for their number: with
the steps of Theorem 2, and with shares that are flooded for so many of one
key, which encryption.key_epoch_rounds keeps the same.

With --seeds there is a run for each seed; the same command with the same --out
goes on with those that have not ended. --json prints an array then, and the
exit status is the worst of all.

Exit status: 3 for a run that ended without a usable result, for none of its
rounds was read, optimizer.end_after_lost_rounds were lost in a row, or training
diverged (no finite number, or a final loss over 69, a hundred times that of a
model which knows nothing, and for a program of yours over a hundred times that
of its first round); a model that has learned badly is a result.
summary.json has the reason in "unusable", -v says why each round was lost.
130 stopped, 2 something you can mend, 1 the machine.`,
		Args: configOrResume(&resume),
		RunE: func(cmd *cobra.Command, args []string) error {
			if resume != "" {
				return resumeRun(cmd, resume, &flags)
			}
			if cmd.Flags().Changed("rounds") {
				flags.set = append(flags.set, fmt.Sprintf("%s=%d", roundsKey, flags.rounds))
			}
			if !cmd.Flags().Changed("seeds") {
				return startRun(cmd, args[0], out, &flags)
			}
			if cmd.Flags().Changed("seed") || slices.ContainsFunc(flags.set, func(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "experiment.seed") }) {
				return intake.UserError(errors.New("--seeds names the seeds of the runs: it cannot go with --seed or --set experiment.seed"))
			}
			return startSeeds(cmd, args[0], out, seeds, &flags)
		},
	}
	flags.add(cmd)
	flags.watch.Add(cmd)
	cmd.Flags().StringVar(&out, "out", "", "the run's folder, new or empty (default runs/<utc>-<name>, -2 and so on behind it within the same second)")
	cmd.Flags().IntVar(&flags.rounds, "rounds", 0, "rounds, in place of the config's; with --resume more than the run has")
	cmd.Flags().StringVar(&seeds, "seeds", "", "run with each of these seeds, as in 1-20 or 1,3,5-7, each in its folder seed-N of --out")
	cmd.Flags().StringVar(&resume, "resume", "", "go on with the run in this folder")
	return cmd
}

// roundsKey is the one key that a resumed run may have another value of.
const roundsKey = "optimizer.rounds"

// resumeRun goes on with a run, which may be given more rounds.
func resumeRun(cmd *cobra.Command, dir string, flags *configFlags) error {
	for _, name := range []string{"seed", "seeds", "out"} {
		if cmd.Flags().Changed(name) {
			return intake.UserError(fmt.Errorf("--%s cannot go with --resume: a run goes on as it began", name))
		}
	}
	rounds, more := flags.rounds, cmd.Flags().Changed("rounds")
	for _, set := range flags.set {
		key, value, _ := strings.Cut(set, "=")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if strings.TrimSpace(key) != roundsKey || more {
			return intake.UserError(fmt.Errorf("--set %s cannot go with --resume: a run goes on as it began, but that it may be given more rounds, by --rounds or --set %s=N", intake.Sentence(set), roundsKey))
		}
		if err != nil {
			return intake.UserError(fmt.Errorf("--set %s: allowed is a whole number of rounds", intake.Sentence(set)))
		}
		rounds, more = n, true
	}
	if more && rounds < 1 {
		return intake.UserError(fmt.Errorf("--rounds %d: allowed is a number above that of the run", rounds))
	}
	l, err := flags.listener(cmd)
	if err != nil {
		return err
	}
	defer l.page.Close()
	if !more {
		result, err := lab(flags.data).Resume(cmd.Context(), dir, l.observer())
		return l.report(cmd, result, err, flags.json)
	}
	result, err := lab(flags.data).Extend(cmd.Context(), dir, rounds, l.observer())
	return l.report(cmd, result, err, flags.json)
}

func startRun(cmd *cobra.Command, path, out string, flags *configFlags) error {
	c, err := flags.load(cmd, path)
	if err != nil {
		return err
	}
	e, err := lab(flags.data).New(c)
	if err != nil {
		return err
	}
	l, err := flags.listener(cmd)
	if err != nil {
		return err
	}
	defer l.page.Close()
	result, err := e.Run(cmd.Context(), out, l.observer())
	return l.report(cmd, result, err, flags.json)
}

// lab returns what this program makes experiments with.
func lab(data string) experiment.Lab { return experiment.Lab{Data: data, Radios: radios()} }

// radios returns where this program's radios come from.
func radios() setup.Radios { return setup.Radios{Guard: startGuard} }

// listener tells of a run.
type listener struct {
	mu       sync.Mutex // for a fleet speaks at any time
	resume   string     // the command that goes on with a run, but for its folder
	console  *console.Console
	rounds   int
	started  bool
	told     string            // the note that was printed in the beginning; "" for none
	accuracy float64           // the last that was evaluated
	progress *console.Progress // nil before the run has started
	page     *watching.Page    // nil unless it is watched
}

// listener returns what tells of a run, also on the page of --watch.
func (f *configFlags) listener(cmd *cobra.Command) (*listener, error) {
	page, err := f.watch.Open(cmd, hostVersion())
	return &listener{console: console.New(cmd), accuracy: noAccuracy(), resume: "ringwave run --resume", page: page}, intake.UserError(err)
}

// noAccuracy is that of a run before its first evaluation.
func noAccuracy() float64 { return math.NaN() }

func (l *listener) observer() experiment.Observer { return l.page.Observer(l.ownObserver()) }

// ownObserver is observer without the page.
func (l *listener) ownObserver() experiment.Observer {
	return experiment.Observer{
		Started: func(s *experiment.Experiment) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.start(s)
			l.rounds = s.Config.Optimizer.Rounds
			done := s.Trainer.State().Round
			l.progress = l.console.Progress("round", l.rounds, done, float64(done)/float64(l.rounds))
		},
		Round: func(r learner.Record) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.progress.Report(r.Round, float64(r.Round)/float64(l.rounds), l.figuresOf(r))
		},
		Lost: func(round int, why string) {
			if l.console.Verbose {
				l.say(fmt.Sprintf("round %d was not read: %s", round, why))
			}
		},
		Warned: func(text string) { l.say("WARNING: " + text) },
	}
}

// say prints a line beside the progress.
func (l *listener) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress.Stop()
	l.console.Say("%s", text)
}

// figuresOf says how well training goes.
func (l *listener) figuresOf(r learner.Record) string {
	if r.Evaluated {
		l.accuracy = r.TestAccuracy
	}
	loss := ""
	if !math.IsNaN(r.TrainLoss) { // else it is the devices' own
		loss = fmt.Sprintf("loss %.4g, ", r.TrainLoss)
	}
	if math.IsNaN(l.accuracy) {
		return loss + "accuracy not evaluated yet"
	}
	return fmt.Sprintf("%saccuracy %.2f %%", loss, 100*l.accuracy)
}

// report prints what came of a run, and how it goes on where it has stopped.
func (l *listener) report(cmd *cobra.Command, result experiment.Result, err error, asJSON bool) error {
	if err = l.page.End(err); l.progress == nil {
		return err
	}
	l.progress.Stop()
	if errors.Is(err, experiment.ErrInterrupted) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Stopped after round %d of %d. Go on with:\n  %s %s\n", result.Round, l.rounds, l.resume, result.Dir)
		return err
	}
	var spoilt *experiment.Unusable
	if err != nil && !errors.As(err, &spoilt) {
		if intake.IsUserError(err) {
			return err
		}
		return fmt.Errorf("%w; the run can go on from its last checkpoint with: %s %s", err, l.resume, result.Dir)
	}
	return errors.Join(show(cmd.OutOrStdout(), asJSON, result.Summary, func(w io.Writer) error {
		printResult(w, result, l.told)
		return nil
	}), err)
}

// start says what is about to run, and loudly what a user might not expect.
func (l *listener) start(s *experiment.Experiment) {
	say, c := l.console.Say, s.Config
	if note := s.FallbackNote(); note != "" {
		say("*** DATA SET %s NOT FOUND: running on the fallback, %s, which the program makes by itself.", strings.ToUpper(c.Task.Dataset), s.Task.Name)
		say("*** %v", s.Task.Missing)
		if !l.console.Quiet {
			l.told = note
		}
	}
	if why := s.Task.Unpublished(); why != "" {
		say("*** DATA SET %s IS NOT THE PUBLISHED ONE, as far as can be told.", strings.ToUpper(s.Task.Name))
		say("*** WARNING: %s", why)
	}
	say("%s: %s, %d devices, %d rounds, aggregator %s, seed %d",
		c.Experiment.Name, s.Task.What(c), c.Devices.Count, c.Optimizer.Rounds, c.Experiment.Aggregator, c.Experiment.Seed)
	if s.Design != nil {
		say("%s, %v form, witnesses %d, alpha = %v, flooding %s: %s",
			s.Design.Params.Name, s.Design.Form, s.Design.Witnesses, s.Design.Link.Alpha, catalogue.Flooding(*s.Design), s.Design.Params.Note)
	}
	say("Note: %s", s.RandomnessNote())
}

// printResult is a run's last word, but for the note that was told in the beginning.
func printResult(w io.Writer, r experiment.Result, told string) {
	s := r.Summary
	fmt.Fprintf(w, "\nResult after %d rounds in %.1f s\n", s.RoundsCompleted, s.Seconds)
	if s.Unusable != "" {
		fmt.Fprintf(w, "  *** NOT USABLE     %s\n", s.Unusable)
	}
	fmt.Fprintf(w, "  data set           %s%s%s\n", s.Dataset, map[bool]string{true: "  (fallback)"}[s.FallbackUsed],
		map[bool]string{true: "  (WARNING: not the published files, see the notes)"}[s.DataUnpublished])
	fmt.Fprintf(w, "  test accuracy      %.2f %%\n", 100*float64(s.TestAccuracy))
	if loss := float64(s.TrainLoss); math.IsNaN(loss) {
		fmt.Fprintln(w, "  training loss      the devices' own")
	} else {
		fmt.Fprintf(w, "  training loss      %.4g  (all training samples, at the end)\n", loss)
	}
	fmt.Fprintf(w, "  rounds repeated    %d, skipped %d\n", s.RoundsRepeated, s.RoundsSkipped)
	if s.MessagesClipped > 0 {
		fmt.Fprintf(w, "  messages clipped   %d\n", s.MessagesClipped)
	}
	if s.ParameterSet != "" {
		fmt.Fprintf(w, "  uplink             %d bits a device and round (%s, %s form), and %d of checks and patterns\n",
			s.UplinkBitsPerRound, s.ParameterSet, s.Form, s.UplinkOverheadBitsPerRound)
	}
	for _, n := range s.Notes {
		if n != told {
			fmt.Fprintf(w, "  note: %s\n", n)
		}
	}
	fmt.Fprintf(w, "Folder: %s\nModel: %s (and %s)\n", r.Dir, filepath.Join(r.Dir, experiment.ModelName), experiment.ModelNPYName)
	showPlots(w, r.Plots)
}
