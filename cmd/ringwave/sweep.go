package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/experiment/sweepreport"
	"ringwave/learner/hosts/jobs"
	"ringwave/learner/hosts/sweeps"
	"ringwave/learner/watch/scenes"
	"ringwave/radio/intake"
)

func newSweepCommand() *cobra.Command {
	var flags configFlags
	var o sweeps.Options
	cmd := &cobra.Command{
		Use: "sweep SWEEP.toml",
		Example: `  ringwave sweep hw-configs/sweeps/sigma-and-devices.toml
  ringwave sweep hw-configs/sweeps/packed-directions.toml --set channel.mean=2
  ringwave sweep hw-configs/sweeps/packed-directions.toml --listen :4300
  ringwave sweep status sweeps/sigma-and-devices
  ringwave sweep cancel sweeps/sigma-and-devices`,
		Short: "Run a configuration with every combination of values of keys",
		Long: `Run the base configuration of SWEEP.toml with every combination of the values of
its grid, its lists that go together, and its seeds: learner/README.md has the
format. A run's folder is kept below --out in runs/, and report/ has a table by
value, curves, heat maps, and runs.csv and curves.csv.

The runs are computed by as many processes of this machine as it has cores, or
--workers of them. With --listen, workers on other hosts join, by the command
that is printed then; with --join the queue is that of a nats-server.

Ctrl-C and the same command go on, in the middle of a run, too; a run whose
result is there is not computed again, also where values were added. A run that
crashes three times is set aside in failed/, with its error and its log.

Exit status: 3 where a run has no usable result, 130 stopped, 2 something you
can mend, 1 the machine.`,
		Args: exactly(1, "one SWEEP.toml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Lab = lab(flags.data)
			plan, err := sweep.Load(o.Lab, args[0], flags.set)
			if err != nil {
				return err
			}
			o.Plan = plan
			if o.Out == "" {
				o.Out = sweeps.DefaultOut(plan)
			}
			return runSweep(cmd, o, &flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Out, "out", "", "the sweep's folder; one of an earlier sweep goes on (default sweeps/<name>)")
	addSet(f, &flags.set)
	flags.watch.Add(cmd)
	addData(f, &flags.data)
	f.BoolVar(&flags.json, "json", false, "print the table as JSON")
	f.BoolVar(&o.Retry, "retry", false, "take up again the runs that were set aside")
	engineFlags(cmd, &o.Engine)
	cmd.AddCommand(newSweepStatusCommand(), newSweepCancelCommand())
	return cmd
}

// engineFlags are those by which a command has its runs computed.
func engineFlags(cmd *cobra.Command, o *sweeps.EngineOptions) {
	f := cmd.Flags()
	f.IntVar(&o.Workers, "workers", 0, "how many runs this machine computes at a time; -1 for none (default as many as cores, or none with --join)")
	f.StringVar(&o.Listen, "listen", "", "where workers of other hosts find the queue, as host:port; without it there are none")
	f.StringVar(&o.Bench, "bench", "", "folder of ringwave enroll --sweeps, in place of one that is made for --listen")
	f.StringVar(&o.URL, "join", "", "a nats-server in place of the queue of this program")
	f.DurationVar(&o.Broker.Silence, "silence", jobs.DefaultSilence, "how long a worker may say nothing before its runs go to others")
}

// childFlag has worker be a process that computes runs for another.
const childFlag = "child"

// childCommand returns what runs such a process.
func childCommand(data string) []string {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	words := []string{path, "worker", "--" + childFlag}
	if data != "" {
		words = append(words, "--data", data)
	}
	return words
}

// jobKinds are what such a process computes.
func jobKinds(data string) map[string]jobs.Kind {
	l := lab(data)
	l.Sets = &experiment.Sets{} // for one run after the other
	return map[string]jobs.Kind{sweeps.RunKind: sweeps.Runs{Lab: l}, sweeps.CellKind: sweeps.Cells{Lab: l}}
}

// runSweep has all runs of a sweep done, and makes the report.
func runSweep(cmd *cobra.Command, o sweeps.Options, flags *configFlags) (err error) {
	speaker := console.NewSpeaker(console.New(cmd))
	o.Say, o.Engine.Command = speaker.Say, childCommand(o.Lab.Data)
	var scene *scenes.Sweep // nil unless it is watched
	o.Progress = func(s sweeps.State) {
		speaker.Share("run", s.Done+s.Aside, s.Runs, s.First, s.Share, s.Text())
		if scene != nil {
			scene.Tell(s)
		}
	}
	dir := filepath.Join(o.Out, sweeps.ReportName)
	if err := sweepreport.Replaceable(dir); err != nil { // not when all is computed
		return err
	}
	page, err := flags.watch.Open(cmd, hostVersion())
	if err != nil {
		return intake.UserError(err)
	}
	defer page.Close()
	s, err := sweeps.New(cmd.Context(), o)
	if err != nil {
		return interrupted(err)
	}
	tellSweep(speaker, o, s)
	scene = page.Sweep(o.Plan, s)
	if err = s.Run(cmd.Context()); scene != nil {
		_ = scene.End(err)
	}
	speaker.Stop()
	err = errors.Join(err, s.Close())
	if err != nil {
		if errors.Is(err, experiment.ErrInterrupted) {
			fmt.Fprintf(cmd.ErrOrStderr(), "Stopped. What is done is kept in %s: the same command goes on.\n", o.Out)
		}
		return err
	}
	speaker.Say("Drawing the report")
	r, err := sweepreport.Write(cmd.Context(), o.Plan, dir, s.Dirs())
	if err != nil {
		return interrupted(err)
	}
	if flags.json {
		return errors.Join(printJSON(cmd.OutOrStdout(), r), s.Unusable())
	}
	printSweepReport(cmd.OutOrStdout(), o.Out, r, s)
	return s.Unusable()
}

// tellSweep says what is about to be computed, and how others join.
func tellSweep(speaker *console.Speaker, o sweeps.Options, s *sweeps.Sweep) {
	done, aside := s.Resumed()
	text := fmt.Sprintf("%s: %s into %s", o.Plan.Name, report.Counted(len(o.Plan.Points), "run"), o.Out)
	if done > 0 {
		text += fmt.Sprintf(", of which %d are there", done)
	}
	speaker.Say(text)
	if aside > 0 {
		speaker.Say(fmt.Sprintf("%s set aside before: --retry takes them up again", report.Counted(aside, "run")))
	}
	tellJoin(speaker, s.Engine())
}

// tellJoin says how workers of other hosts join.
func tellJoin(speaker *console.Speaker, e *sweeps.Engine) {
	if !e.Alone() {
		url, identity := e.URL()
		speaker.Say("Workers join with a copy of " + identity + ":")
		speaker.Say("  ringwave worker worker.identity --join " + url)
	}
}

// printSweepReport prints the table by value, and where all is. What could not be written
// standard output remembers.
func printSweepReport(w io.Writer, out string, r sweepreport.Report, s *sweeps.Sweep) {
	_ = r.WriteText(w)
	for _, f := range s.Failed() {
		fmt.Fprintf(w, "*** SET ASIDE: %s: %s (log in %s)\n", f.Title, f.Why, f.Dir)
	}
	dir := filepath.Join(out, sweeps.ReportName)
	fmt.Fprintf(w, "Report: %s (and %s, %s, %s)\nPlots:\n", filepath.Join(dir, sweepreport.HTMLName), sweepreport.MarkdownName, sweepreport.RunsName, sweepreport.CurvesName)
	for _, name := range r.Figures {
		fmt.Fprintf(w, "  %s (and .svg)\n", filepath.Join(dir, name+".png"))
	}
}

func newSweepStatusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status DIR",
		Short:   "Say how far a sweep is",
		Example: `  ringwave sweep status sweeps/sigma-and-devices`,
		Args:    exactly(1, "the folder of a sweep"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := sweeps.Look(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), s)
			}
			return s.WriteText(cmd.OutOrStdout(), time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newSweepCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "cancel DIR",
		Short:   "Stop a sweep and withdraw what is left of its queue",
		Example: `  ringwave sweep cancel sweeps/sigma-and-devices`,
		Args:    exactly(1, "the folder of a sweep"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := sweeps.Cancel(cmd.Context(), args[0], console.NewSpeaker(console.New(cmd)).Say)
			if err != nil {
				return interrupted(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Cancelled with %d of %d runs done, which are kept; the sweep's command takes it up again.\n", s.Done, s.Runs)
			return err
		},
	}
}

func newWorkerCommand() *cobra.Command {
	var o sweeps.WorkOptions
	var data string
	var child bool
	cmd := &cobra.Command{
		Use: "worker IDENTITY",
		Example: `  ringwave worker worker.identity --join tls://10.0.0.5:4300
  ringwave worker worker.identity --jobs 8 --data /data --stay`,
		Short: "Compute runs of a sweep on this host",
		Long: `Take runs from the queue of a sweep (ringwave sweep --listen, or reproduce
--listen), compute them, as many at a time as there are cores, and bring the
results. IDENTITY is a copy of the file that the sweep names: whoever has it may
take runs and give results, so keep it secret.

A worker is refused that is another build of this program, on another kind of
processor, or has other data: its results might be other bytes. Runs are
computed in other processes than the worker's own. Ctrl-C gives back what is not
done. The worker ends by itself when the sweep is over, unless it is to --stay,
and when the queue was not there for --patience.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if child {
				return exactly(0, "no IDENTITY")(cmd, args)
			}
			return exactly(1, "one IDENTITY file")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if child {
				return jobs.ServeChild(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), jobKinds(data))
			}
			speaker := console.NewSpeaker(console.New(cmd))
			o.Identity, o.Command, o.Say = args[0], childCommand(data), speaker.Say
			err := sweeps.Work(cmd.Context(), o)
			speaker.Stop()
			return interrupted(err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.URL, "join", "", "where the queue is (default the URL of the identity)")
	addData(f, &data)
	f.IntVar(&o.Jobs, "jobs", 0, "how many runs at a time (default as many as cores)")
	f.StringVar(&o.Scratch, "scratch", "", "folder for runs on their way (default one among the system's temporary files)")
	f.BoolVar(&o.Stay, "stay", false, "wait for the next runs when those there were are over")
	f.DurationVar(&o.Patience, "patience", 10*time.Minute, "how long the queue may not be there; 0 for without end")
	f.BoolVar(&child, childFlag, false, "compute runs for the process that has started this one")
	_ = f.MarkHidden(childFlag) // it is there
	return cmd
}
