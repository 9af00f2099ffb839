package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
)

func newPlanCommand() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use: "plan CONFIG",
		Example: `  ringwave plan hw-configs/thz-los.toml
  ringwave plan hw-configs/loopback.toml --set devices.count=100 --json`,
		Short: "Say what an experiment will need and give, without running it",
		Long: `Print, without running the experiment: the noise budget term by term, the noise
floor rho, security and flooding, uplink bits and transmission time at the
given bandwidth, memory and expected duration. Memory and duration are measured
on a few rounds that are thrown away. Over a waveform, how often rounds are read
comes from simulated ones: the run's own, by its seed, with other payloads.
Where faults cost rounds, the keys that do are named, with how many and why.`,
		Args: exactly(1, "one CONFIG file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.load(cmd, args[0])
			if err != nil {
				return err
			}
			s, err := lab(flags.data).New(c)
			if err != nil {
				return err
			}
			defer s.Close()
			watch, stop := planned(console.New(cmd))
			p, err := s.Plan(cmd.Context(), watch)
			stop()
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), flags.json, p, func(w io.Writer) error { return p.WriteText(w, s) })
		},
	}
	flags.add(cmd)
	return cmd
}

// planned returns what hears how far a plan is.
func planned(c *console.Console) (watch experiment.PlanWatch, stop func()) {
	var p *console.Progress
	of := -1
	return func(size, done, most int) {
		share := float64(done) / float64(most)
		if size != of {
			p.Stop()
			label := fmt.Sprintf("groups of %d: round", size)
			if size == 0 {
				label = "what faults cost: round"
			}
			of, p = size, c.Progress(label, most, 0, 0)
		}
		p.Report(done, share, "at the most")
	}, func() { p.Stop() }
}
