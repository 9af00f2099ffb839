package experiment

import (
	"fmt"
	"io"
	"strings"
	"time"

	"ringwave/learner/experiment/catalogue"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/bench"
)

// WriteText writes the plan of an experiment for people to read.
func (p Plan) WriteText(to io.Writer, s *Experiment) error {
	c, w := s.Config, new(strings.Builder)
	fmt.Fprintf(w, "%s: %s, %d devices, %d rounds, aggregator %s\n", c.Experiment.Name, s.Task.Name, c.Devices.Count, c.Optimizer.Rounds, c.Experiment.Aggregator)
	if s.Design != nil {
		fmt.Fprintf(w, "\nParameter set %s\n", p.ParameterSet)
		catalogue.PrintSet(w, *s.Design)
		p.writeBudget(w)
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
	federated := c.Experiment.Aggregator == config.FedAvg
	if !federated {
		p.writeLearning(w, c)
	}
	fmt.Fprintf(w, "\nCost\n")
	if p.Passes > 0 {
		fmt.Fprintf(w, "  forward passes     %d over its batch, a device and round\n", p.Passes)
	}
	p.writePacked(w, s)
	if federated {
		fmt.Fprintf(w, "  uplink             %d bits a device and round: %.4g s for one device after the other at %.4g Hz, one bit a second and hertz\n", p.UplinkBits, p.AirtimeSeconds, p.BandwidthHz)
	}
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
	_, err := io.WriteString(to, w.String())
	return err
}

// writeLearning writes what noise does to learning by scalars.
func (p Plan) writeLearning(w io.Writer, c config.Config) {
	fmt.Fprintf(w, "\nLearning\n")
	fmt.Fprintf(w, "  std of eps_k       %.3g (variance %.3g)\n", p.DecodedStd, p.DecodedVar)
	switch {
	case c.System().SharesKey:
	case len(c.Optimizer.Method()) > 0:
		fmt.Fprintf(w, "  noise floor rho    not known: Eq. 21 is of the paper's estimator and steps, and this is %s\n", strings.Join(c.Optimizer.Method(), ", "))
	case p.Lipschitz == 0:
		fmt.Fprintf(w, "  noise floor rho    not known: Eq. 21 needs a bound on L, and there is none for %s\n", c.Task.Model)
	default:
		fmt.Fprintf(w, "  noise floor rho    %.3g%s, with L <= %.3g, %s of the largest eigenvalue of the training data's second moments (Eq. 21)\n", p.Rho, rhoCondition(c.Optimizer), p.Lipschitz, map[bool]string{true: "half", false: "a quarter"}[len(c.Task.Classes) > 2])
	}
}

// writePacked says what several directions take.
func (p Plan) writePacked(w io.Writer, s *Experiment) {
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
	if o.StepLaw == config.Theorem2 && o.WarmupRounds == 0 {
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

func (p Plan) writeBudget(w io.Writer) {
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

// Text returns the plan in words, of a run with configuration c.
func (p *WaveformPlan) Text(c config.Config) string {
	var w strings.Builder
	fmt.Fprintf(&w, "\nWaveform: base %d, %s, %d samples a symbol at %.4g samples a second, SNR %.4g dB\n", c.Link.Base, c.Link.Pulse, c.Link.SamplesPerSymbol, p.SampleRateHz, setup.SNR(c))
	switch {
	case p.NeededSNRdB > 0:
		fmt.Fprintf(&w, "  emulated gains     need %.1f dB a device, all errors together %.1f dB below the superposed signal\n", p.NeededSNRdB, p.ErrorsBelowdB)
	case p.FluctuationMargin > 0:
		fmt.Fprintf(&w, "  aligned gains      scale %d; mean fluctuations leave %.2f of half a unit to the noise\n", bench.AlignedScale, p.FluctuationMargin)
	default:
		fmt.Fprintln(&w, "  blind receiver")
	}
	if bits := c.Link.ReceiverConverterBits; bits > 0 {
		fmt.Fprintf(&w, "  receive converter  %d bits\n", bits)
	}
	for _, g := range p.Groups {
		fmt.Fprintf(&w, "  G = %d, slots %-4d   a round is read with probability %.3f (%.3f to %.3f) at once, %.3f (%.3f to %.3f) within %d attempts, %d simulated; misfit %.3f, %.3f gains of 0, %.3g s an attempt\n",
			g.Size, g.Slots, g.Reads, g.ReadsLow, g.ReadsHigh, g.ReadsRetry, g.RetryLow, g.RetryHigh, c.Encryption.AttemptsPerRound, g.Rounds, float64(g.Misfit), float64(g.ZeroGains), g.Airtime)
		if g.Failure != "" && g.ReadsHigh < oftenRead {
			fmt.Fprintf(&w, "                     the first that was not: %s\n", g.Failure)
		}
	}
	p.Losses.text(&w)
	return w.String()
}

// text writes which faults cost rounds; nil writes nothing.
func (l *LossPlan) text(w *strings.Builder) {
	if l == nil {
		return
	}
	fmt.Fprintf(w, "  faults cost rounds   %.3f are read at once, and without any fault %.3f, of %d simulated\n", l.Reads, l.Without, l.Rounds)
	for _, k := range l.Keys {
		fmt.Fprintf(w, "    %s\n      with %s about %.3f at once (%d of %d lost rounds): %s\n", k.Set, k.Instead, k.Reads, k.Read, k.Lost, k.Reason)
	}
	if len(l.Keys) == 0 {
		fmt.Fprintln(w, "    no key costs a quarter of these rounds by itself: several together do")
	}
}

// oftenRead is the share of rounds read at once below which a plan says why they are not.
const oftenRead = 0.9
