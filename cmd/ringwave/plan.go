package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"ringwave/crypto/airhe"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/config"
	"ringwave/learner/theory"
	"ringwave/radio/intake"
)

// plan is what a configuration will need and give, computed without running it.
type plan struct {
	ParameterSet  string             `json:"parameter_set,omitempty"`
	Form          string             `json:"form,omitempty"`
	Witnesses     int                `json:"witnesses"`
	Security      string             `json:"security,omitempty"`
	SecurityBits  float64            `json:"security_bits,omitempty"`
	Secret        string             `json:"secret,omitempty"`
	FloodingBits  float64            `json:"flooding_bits"` // of advantage, see xmkckks.FloodStd
	FloodDistance float64            `json:"flooding_distance,omitempty"`
	Shares        int                `json:"shares_per_key"`
	Alpha         float64            `json:"alpha"` // of Budget, with encryption; otherwise the channel's
	Budget        map[string]float64 `json:"noise_budget_variance,omitempty"`
	DecodedStd    float64            `json:"eps_std"`
	DecodedVar    float64            `json:"eps_variance"`
	FailureBound  float64            `json:"decryption_failure_bound"`
	MessageLog2   float64            `json:"message_bound_log2,omitempty"`
	ToleranceLog2 float64            `json:"noise_bound_log2,omitempty"`
	HalfQLog2     float64            `json:"half_q_log2,omitempty"`
	Lipschitz     float64            `json:"lipschitz_bound,omitempty"`
	Rho           float64            `json:"rho,omitempty"`

	CiphertextBytes int     `json:"ciphertext_bytes,omitempty"`
	Expansion       float64 `json:"expansion_factor,omitempty"`
	UplinkBits      int     `json:"uplink_bits_per_round"`
	Packed          int     `json:"packed_directions,omitempty"`        // if there are several
	UplinkSymbols   int     `json:"uplink_symbols_per_round,omitempty"` // analog ones, if there are several
	OverheadBits    int     `json:"uplink_overhead_bits_per_round"`
	BandwidthHz     float64 `json:"bandwidth_hz"`
	AirtimeSeconds  float64 `json:"transmission_seconds_per_round"`

	Waveform         *wavePlan     `json:"waveform,omitempty"`
	Links            []plannedLink `json:"links,omitempty"`
	CoherenceSeconds float64       `json:"coherence_seconds,omitempty"`

	MemoryBytes     uint64  `json:"memory_bytes"`
	RoundSeconds    float64 `json:"seconds_per_round"`
	DurationSeconds float64 `json:"expected_seconds"`

	Notes []string `json:"notes"`
}

// plannedLink is the budget of one device's terahertz link.
type plannedLink struct {
	Device int     `json:"device"`
	Mu     float64 `json:"mu"`
	Sigma  float64 `json:"sigma"`
	LossDB float64 `json:"loss_db"`
	GasDB  float64 `json:"gas_loss_db"`
	SNRdB  float64 `json:"snr_db"`
}

func newPlanCommand() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "plan CONFIG",
		Short: "Say what an experiment will need and give, without running it",
		Long: `Print, without running the experiment: the noise budget term by term, the noise
floor rho, security and flooding, uplink bits and transmission time at the given
bandwidth, memory and expected duration. Memory and duration are measured on a
few rounds that are thrown away.`,
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
			p, err := makePlan(cmd.Context(), s)
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

func makePlan(ctx context.Context, s *session) (p plan, err error) {
	if err := s.assemble(xmkckks.NewLedger(sharesPerKey(s.cfg)), 0, 1); err != nil {
		return p, err
	}
	if s.protocol != nil {
		defer s.protocol.close()
	}
	p = plan{Alpha: s.channel.Alpha(), BandwidthHz: s.cfg.Link.BandwidthHz, Notes: s.notes()}
	if s.cfg.Task.Model == "logistic" { // of others no bound is known
		if p.Lipschitz, err = theory.LogisticSmoothness(s.task.train, s.task.shards); err != nil {
			return p, err
		}
	}
	if s.design == nil {
		// One analog symbol a direction, and the receiver's noise in place of eps.
		p.UplinkBits, p.DecodedStd = 0, s.cfg.Channel.AnalogNoiseStd
	} else {
		p.addEncryption(s)
	}
	p.DecodedVar = p.DecodedStd * p.DecodedStd
	packed := s.cfg.Optimizer.PackedDirections
	if packed > 1 {
		p.addPacked(s.cfg)
	}
	if s.cfg.OverWaveform() {
		if p.Waveform, p.AirtimeSeconds, err = planWaveform(ctx, s); err != nil {
			return p, err
		}
	}
	if s.cfg.Channel.Model == modelTHz {
		if err := p.addLinks(s.cfg); err != nil {
			return p, intake.UserError(err)
		}
	}
	directions, err := learner.ParseDirections(s.cfg.Optimizer.Directions)
	if err != nil {
		return p, intake.UserError(err)
	}
	p.Rho = xmkckks.NoiseFloor(p.Lipschitz, directions.B1(), directions.B2Squared(s.task.model.Dim()), p.DecodedVar/float64(packed), s.cfg.Optimizer.Eta0, s.cfg.Optimizer.Gamma0)
	return p, p.measure(ctx, s)
}

func (p *plan) addEncryption(s *session) {
	d, c := *s.design, s.protocol.ctx
	security := d.Params.Security()
	p.ParameterSet, p.Form, p.Witnesses = d.Params.Name, d.Form.String(), d.Witnesses
	p.Security, p.SecurityBits, p.Secret = security.String(), security.Bits, d.Params.Secret.String()
	p.FloodingBits, p.FloodDistance, p.Shares = d.FloodingBits, d.FloodingDistance, d.Link.Shares
	// Over a waveform the design bears the finest scale that the receiver may find, which
	// is not the channel's.
	p.Alpha = d.Link.Alpha
	b := d.Expected
	p.Budget = map[string]float64{"A": b.A, "B1": b.B1, "B2": b.B2, "C1": b.C1, "C2": b.C2, "D": b.D, "E": b.E, "rounding": b.R}
	p.DecodedStd = d.DecodedStd()
	if s.mismatched != nil {
		p.DecodedStd = s.mismatched.expected(s.cfg.Optimizer.Rounds)
		p.Notes = append(p.Notes, "the noise budget and the bounds are those of the scheme where gains match, which here they do not")
	}
	p.FailureBound = c.FailureBound(b)
	p.MessageLog2, p.ToleranceLog2, p.HalfQLog2 = math.Log2(d.MessageBound), math.Log2(d.Tolerance), d.Params.LogQ()-1
	p.CiphertextBytes, p.Expansion = d.Params.CiphertextBytes(), d.Params.ExpansionFactor()
	p.UplinkBits = d.UplinkBits()
	p.OverheadBits = s.protocol.link.overheadBits()
	p.AirtimeSeconds = airtime(p.UplinkBits, p.BandwidthHz)
}

// addPacked says what several directions take. Without a ciphertext each takes symbols
// of its own, which last a second and hertz.
func (p *plan) addPacked(c config.Config) {
	p.Packed = c.Optimizer.PackedDirections
	switch {
	case c.System().Encrypts:
		return
	case c.Experiment.Aggregator == config.AirHE:
		p.UplinkSymbols = p.Packed * airhe.Elements * airhe.Digits
	default:
		p.UplinkSymbols = p.Packed
	}
	p.AirtimeSeconds = airtime(p.UplinkSymbols, p.BandwidthHz)
}

// addLinks computes the terahertz links, and warns where the protocol outlasts
// their coherence.
func (p *plan) addLinks(c config.Config) error {
	for i := range c.Devices.Count {
		l := lineOfSight(c, i)
		b, err := l.Budget()
		if err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
		f, err := thzFading(c, i)
		if err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
		p.Links = append(p.Links, plannedLink{
			Device: i + 1, Mu: f.Mu, Sigma: f.Sigma, GasDB: b.GasLossDB, SNRdB: b.SNRdB,
			LossDB: b.FreeSpaceLossDB + b.GasLossDB + b.PointingLossDB,
		})
		if math.IsInf(b.CoherenceSeconds, 1) {
			continue
		}
		p.CoherenceSeconds = b.CoherenceSeconds
	}
	if t := p.CoherenceSeconds; t > 0 && p.AirtimeSeconds > t {
		p.Notes = append(p.Notes, fmt.Sprintf("WARNING: the four transmissions of a round take %.3g s, longer than the channel's coherence time of %.3g s: gains will change within a round", p.AirtimeSeconds, t))
	}
	return nil
}

// plannedRounds is how many rounds are timed; the fastest counts.
const plannedRounds = 3

// measure runs a few rounds in memory and scales them up.
func (p *plan) measure(ctx context.Context, s *session) error {
	best := time.Duration(math.MaxInt64)
	square := 0.0
	for k := range min(plannedRounds, s.cfg.Optimizer.Rounds) {
		began := time.Now()
		record, err := s.step(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return errInterrupted
			}
			return err
		}
		best = min(best, time.Since(began))
		square += (record.EpsStdPredicted*record.EpsStdPredicted - square) / float64(k+1)
	}
	if s.cfg.System().SharesKey {
		p.DecodedStd, p.DecodedVar, p.Rho = math.Sqrt(square), square, 0
		p.Notes = append(p.Notes, "the deviation of eps is that of the rounds that were tried; rho is not defined for this system")
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p.MemoryBytes = m.Sys
	p.RoundSeconds = best.Seconds()
	p.DurationSeconds = best.Seconds() * float64(s.cfg.Optimizer.Rounds)
	return nil
}

func printPlan(w io.Writer, s *session, p plan) {
	c := s.cfg
	fmt.Fprintf(w, "%s: %s, %d devices, %d rounds, aggregator %s\n", c.Experiment.Name, s.task.name, c.Devices.Count, c.Optimizer.Rounds, c.Experiment.Aggregator)
	if s.design != nil {
		fmt.Fprintf(w, "\nParameter set %s\n", p.ParameterSet)
		printSet(w, *s.design)
		printBudget(w, p)
	}
	if len(p.Links) > 0 {
		fmt.Fprintf(w, "\nTerahertz links at %.4g GHz, coherence time %s\n", c.Channel.CarrierHz/1e9, coherenceText(p.CoherenceSeconds))
		for _, l := range p.Links {
			fmt.Fprintf(w, "  device %-3d         mu %.4f, sigma %.4f, loss %.1f dB (gas %.3f dB), SNR %.1f dB\n", l.Device, l.Mu, l.Sigma, l.LossDB, l.GasDB, l.SNRdB)
		}
	}
	if p.Waveform != nil {
		printWavePlan(w, c, p.Waveform)
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
	if s.design != nil {
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
func printPacked(w io.Writer, s *session, p plan) {
	if p.Packed < 2 {
		return
	}
	if s.design == nil {
		fmt.Fprintf(w, "  packed directions  %d: %d symbols a round from all devices at once, %.4g s at %.4g Hz\n", p.Packed, p.UplinkSymbols, p.AirtimeSeconds, p.BandwidthHz)
		return
	}
	one := s.design.Params.UplinkBits(s.design.Form, 1, s.design.Witnesses)
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

func printBudget(w io.Writer, p plan) {
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
