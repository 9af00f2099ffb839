package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/cmd/internal/watching"
	"ringwave/learner/experiment"
	"ringwave/learner/hosts/sweeps"
	"ringwave/learner/paper"
	"ringwave/radio/intake"
)

func newReproduceCommand() *cobra.Command {
	var opt paper.Options
	var engine sweeps.EngineOptions
	var asJSON bool
	var watch watching.Flags
	cmd := &cobra.Command{
		Use: "reproduce",
		Example: `  ringwave reproduce --quick
  ringwave reproduce --only mnist,theory --out report
  ringwave reproduce --out report --seeds 20`,
		Short: "Run the paper's experiments and what it compares with, and write one report",
		Long: `Run every experiment, table and figure of the paper, the systems that it cites
and the attacks that it argues about, and write a report that puts its numbers
beside these: report.html opens from disk by itself, report.md has the same for
a repository, with plots/ beside them. What is timed by a clock is in
timing.md: the report's bytes are the same for the same seeds.

Results are kept in the folder's cache/ by what they were computed from: Ctrl-C
and the same --out go on, in the middle of a run, too, and what has not changed
is not run again.

"--only cifar-search" chooses steps for CIFAR-10, half an hour on two free
cores, "--only steps" compares FZOO with two-point differences, five minutes,
and "--only classes" learns all ten digits, half an hour; no other form of
this command does.

Experiments are run as those of a sweep are: by processes of this machine, and
with --listen by workers of other hosts, too (ringwave worker).

CIFAR-10 is fetched by "ringwave data fetch cifar10"; without it its chapter
says so, and the others go on.

` + console.Fold("Chapters: "+strings.Join(paper.Chapters(), ", "), 79) + `.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("only") && len(opt.Only) == 0 {
				return intake.UserError(errors.New("--only is empty: name one chapter or more"))
			}
			return reproduce(cmd, opt, engine, &watch, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Out, "out", "", "the report's folder; one of an earlier reproduce goes on (default reports/<utc>-paper)")
	f.StringVar(&opt.Data, "data", "", "folder of data sets; then RINGWAVE_DATA and the user's cache are searched")
	f.BoolVar(&opt.Quick, "quick", false, "minutes in place of an hour: fewer seeds and rounds")
	f.IntVar(&opt.Seeds, "seeds", 0, "seeds of the MNIST experiments (default 20, or 3 with --quick)")
	f.IntVar(&opt.CIFARSeeds, "cifar-seeds", 1, "seeds of the CIFAR-10 experiments")
	f.IntVar(&opt.Rounds, "rounds", 0, "most rounds of any experiment, for a look at the whole (default: all)")
	f.StringSliceVar(&opt.Only, "only", nil, "these chapters alone")
	engineFlags(cmd, &engine)
	watch.Add(cmd)
	f.BoolVar(&asJSON, "json", false, "print the files and what came of the report as JSON")
	return cmd
}

// madeReport is what reproduce --json prints.
type madeReport struct {
	Report   string   `json:"report"`
	Markdown string   `json:"markdown"`
	Timing   string   `json:"timing"`
	Tally    []string `json:"tally"` // sentences
}

func reproduce(cmd *cobra.Command, opt paper.Options, engine sweeps.EngineOptions, watch *watching.Flags, asJSON bool) (err error) {
	page, err := watch.Open(cmd, hostVersion())
	if err != nil {
		return intake.UserError(err)
	}
	defer page.Close()
	if opt, err = opt.Complete(); err != nil {
		return err
	}
	speaker := console.NewSpeaker(console.New(cmd))
	opt.Verbose = console.New(cmd).Verbose
	engine.Folder, engine.Command, engine.Kinds, engine.Say = filepath.Join(opt.Out, "queue"), childCommand(opt.Data), jobKinds(opt.Data), speaker.Say
	e, err := sweeps.Open(cmd.Context(), engine)
	if err != nil {
		return interrupted(err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	tellJoin(speaker, e)
	opt.Compute, opt.AtOnce = e.Cell, math.MaxInt
	progress, ended := page.Report(&opt, e, speaker)
	tally, err := paper.Reproduce(cmd.Context(), opt, progress)
	_ = ended(err)
	if errors.Is(err, experiment.ErrInterrupted) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Stopped. Go on with:\n  ringwave reproduce %s\n", reproduceArguments(opt))
	}
	if err != nil {
		return err
	}
	if err := e.Finish(); err != nil {
		speaker.Say("workers may not know that there is nothing left: " + err.Error())
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), madeReport{
			Report: filepath.Join(opt.Out, "report.html"), Markdown: filepath.Join(opt.Out, "report.md"), Timing: filepath.Join(opt.Out, "timing.md"),
			Tally: append([]string{}, tally...),
		})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\nReport: %s (and report.md, timing.md)\n", strings.Join(tally, "\n"), filepath.Join(opt.Out, "report.html"))
	return nil
}

// reproduceArguments writes the flags that make a report again.
func reproduceArguments(o paper.Options) string {
	text := fmt.Sprintf("--out %s --seeds %d --cifar-seeds %d", o.Out, o.Seeds, o.CIFARSeeds)
	if o.Quick {
		text += " --quick"
	}
	if o.Rounds > 0 {
		text += fmt.Sprintf(" --rounds %d", o.Rounds)
	}
	if len(o.Only) > 0 {
		text += " --only " + strings.Join(o.Only, ",")
	}
	if o.Data != "" {
		text += " --data " + o.Data
	}
	return text
}
