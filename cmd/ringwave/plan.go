package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ringwave/cmd/internal/console"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/catalogue"
	"ringwave/learner/experiment/config"
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
			watch, stop := planned(console.New(cmd))
			p, err := s.Plan(cmd.Context(), watch)
			stop()
			if err != nil {
				return err
			}
			if flags.json {
				return printJSON(cmd.OutOrStdout(), p)
			}
			printPlan(cmd.OutOrStdout(), s, p)
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}

func printPlan(w io.Writer, s *experiment.Experiment, p experiment.Plan) {
	c := s.Config
	fmt.Fprintf(w, "%s: %s, %d devices, %d rounds, aggregator %s\n", c.Experiment.Name, s.Task.Name, c.Devices.Count, c.Optimizer.Rounds, c.Experiment.Aggregator)
	if s.Design != nil {
		fmt.Fprintf(w, "\nParameter set %s\n", p.ParameterSet)
		catalogue.PrintSet(w, *s.Design)
		printBudget(w, p)
	}
	if len(p.Links) > 0 {
		fmt.Fprintf(w, "\nTerahertz links at %.4g GHz, coherence time %s\n", c.Channel.CarrierHz/1e9, coherenceText(p.CoherenceSeconds))
		for _, l := range p.Links {
			fmt.Fprintf(w, "  device %-3d         mu %.4f, sigma %.4f, loss %.1f dB (gas %.3f dB), SNR %.1f dB\n", l.Device, l.Mu, l.Sigma, l.LossDB, l.GasDB, l.SNRdB)
		}
	}
	if p.Waveform != nil {
		fmt.Fprint(w, p.Waveform.Text(c))
	}
	fmt.Fprintf(w, "\nLearning\n")
	fmt.Fprintf(w, "  std of eps_k       %.3g (variance %.3g)\n", p.DecodedStd, p.DecodedVar)
	switch {
	case c.System().SharesKey:
	case p.Lipschitz == 0:
		fmt.Fprintf(w, "  noise floor rho    not known: Eq. 21 needs a bound on L, and there is none for %s\n", c.Task.Model)
	default:
		fmt.Fprintf(w, "  noise floor rho    %.3g%s, with L <= %.3g, a quarter of the largest eigenvalue of the training data's second moments (Eq. 21)\n", p.Rho, rhoCondition(c.Optimizer), p.Lipschitz)
	}
	fmt.Fprintf(w, "\nCost\n")
	printPacked(w, s, p)
	if s.Design != nil {
		fmt.Fprintf(w, "  uplink             %d bits a device and round, and %d of checks and patterns\n", p.UplinkBits, p.OverheadBits)
		if p.Waveform != nil {
			fmt.Fprintf(w, "  airtime            %.4g s an attempt, all slots and guard times\n", p.AirtimeSeconds)
		} else {
			fmt.Fprintf(w, "  transmission time  %.4g s a round at %.4g Hz, one bit a second and hertz (Section IV-H)\n", p.AirtimeSeconds, p.BandwidthHz)
		}
	}
	fmt.Fprintf(w, "  memory             about %.0f MB\n", float64(p.MemoryBytes)/1e6)
	fmt.Fprintf(w, "  duration           about %v, %.1f ms a round on this machine\n", time.Duration(p.DurationSeconds*float64(time.Second)).Round(100*time.Millisecond), 1e3*p.RoundSeconds)
	for _, n := range p.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
}

// printPacked says what several directions take.
func printPacked(w io.Writer, s *experiment.Experiment, p experiment.Plan) {
	if p.Packed < 2 {
		return
	}
	if s.Design == nil {
		fmt.Fprintf(w, "  packed directions  %d: %d symbols a round from all devices at once, %.4g s at %.4g Hz\n", p.Packed, p.UplinkSymbols, p.AirtimeSeconds, p.BandwidthHz)
		return
	}
	one := s.Design.Params.UplinkBits(s.Design.Form, 1, s.Design.Witnesses)
	fmt.Fprintf(w, "  packed directions  %d in one ciphertext, %.4g times the uplink of one direction with as many witnesses", p.Packed, float64(p.UplinkBits)/float64(one))
	if p.Waveform != nil {
		fmt.Fprintf(w, ", %d symbols a group and attempt", p.Waveform.SymbolsPerRound)
	}
	fmt.Fprintln(w)
}

// rhoCondition says where Theorem 2, and so rho, does not apply as it stands.
func rhoCondition(o config.Optimizer) string {
	if o.StepLaw == "theorem2" {
		return ""
	}
	return " if Theorem 2's steps were taken"
}

func coherenceText(seconds float64) string {
	if seconds == 0 {
		return "unlimited (nothing moves)"
	}
	return fmt.Sprintf("%.3g s", seconds)
}

func printBudget(w io.Writer, p experiment.Plan) {
	fmt.Fprintf(w, "\nNoise budget (Appendix B), variance of one coefficient in units of the ring, alpha = %.6g\n", p.Alpha)
	for _, term := range []struct{ key, text string }{
		{"A", "V E~           "}, {"B1", "sum H e0       "}, {"B2", "w_0            "}, {"C1", "S~ sum H e1    "},
		{"C2", "S~ w_1         "}, {"D", "w_D            "}, {"E", "sum H e*       "}, {"rounding", "rounding of m  "},
	} {
		fmt.Fprintf(w, "  %-8s %s %.4g\n", term.key, term.text, p.Budget[term.key])
	}
	fmt.Fprintf(w, "  decryption failure at most %.3g (Proposition 1)\n", p.FailureBound)
	fmt.Fprintf(w, "  alpha Lambda |M| up to 2^%.1f, six deviations of noise up to 2^%.1f, q/2 = 2^%.1f\n", p.MessageLog2, p.ToleranceLog2, p.HalfQLog2)
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
