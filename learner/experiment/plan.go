package experiment

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"ringwave/crypto/airhe"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/theory"
	"ringwave/radio/intake"
)

// Plan is what a configuration will need and give, computed without running it.
type Plan struct {
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
	Passes        int                `json:"forward_passes_per_round,omitempty"` // of a device, if it sends scalars
	Rho           float64            `json:"rho,omitempty"`

	CiphertextBytes int     `json:"ciphertext_bytes,omitempty"`
	Expansion       float64 `json:"expansion_factor,omitempty"`
	UplinkBits      int     `json:"uplink_bits_per_round"`
	Packed          int     `json:"packed_directions,omitempty"`        // if there are several
	UplinkSymbols   int     `json:"uplink_symbols_per_round,omitempty"` // analog ones, if there are several
	OverheadBits    int     `json:"uplink_overhead_bits_per_round"`
	BandwidthHz     float64 `json:"bandwidth_hz"`
	AirtimeSeconds  float64 `json:"transmission_seconds_per_round"`

	Waveform         *WaveformPlan `json:"waveform,omitempty"`
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

// PlanWatch hears how far a plan is: of the rounds simulated in groups of a size, of so
// many at most, and with a size of 0 of those that tell what faults cost. nil hears
// nothing. One call follows another.
type PlanWatch func(size, done, most int)

func (w PlanWatch) rounds(size, done, most int) {
	if w != nil {
		w(size, done, most)
	}
}

// Plan computes what the run will need and give, and runs a few rounds in memory that are
// thrown away. A run behind it begins anew.
func (s *Experiment) Plan(ctx context.Context, watch PlanWatch) (p Plan, err error) {
	if err := s.assemble(xmkckks.NewLedger(setup.SharesPerKey(s.Config)), 0, 1); err != nil {
		return p, err
	}
	if s.protocol != nil {
		defer s.protocol.Close()
	}
	p = Plan{Alpha: s.Channel.Alpha(), BandwidthHz: s.Config.Link.BandwidthHz, Notes: s.notes()}
	if s.Config.Task.Model == "logistic" && !s.Config.System().Gradients { // of others no bound is known
		if p.Lipschitz, err = theory.LogisticSmoothness(s.Task.Train, s.Task.Shards); err != nil {
			return p, err
		}
		if len(s.Config.Task.Classes) > 2 {
			p.Lipschitz *= 2 // diag(p) - p p^T has eigenvalues up to 1/2, p (1-p) is 1/4 at most
		}
	}
	switch {
	case s.Config.Experiment.Aggregator == config.FedAvg:
		p.UplinkBits = FedAvgBits(s.Task.Model.Dim())
		p.AirtimeSeconds = setup.Airtime(p.UplinkBits*s.Config.Devices.Count, s.Config.Link.BandwidthHz)
	case s.Design == nil:
		// One analog symbol a direction, and the receiver's noise in place of eps.
		p.UplinkBits, p.DecodedStd = 0, s.Config.Channel.AnalogNoiseStd
	default:
		p.addEncryption(s)
	}
	p.DecodedVar = p.DecodedStd * p.DecodedStd
	packed := s.Config.Optimizer.PackedDirections
	if packed > 1 {
		p.addPacked(s.Config)
	}
	if s.Config.OverWaveform() {
		if p.Waveform, p.AirtimeSeconds, err = planWaveform(ctx, s, watch); err != nil {
			return p, err
		}
	}
	if s.Config.Channel.Model == setup.ModelTHz {
		if err := p.addLinks(s.Config); err != nil {
			return p, intake.UserError(err)
		}
	}
	directions, err := learner.ParseDirections(s.Config.Optimizer.Directions)
	if err != nil {
		return p, intake.UserError(err)
	}
	if !s.Config.System().Gradients {
		if p.Passes, err = Passes(s.Config); err != nil {
			return p, err
		}
	}
	if len(s.Config.Optimizer.Method()) > 0 { // of which Theorem 2 is not
		return p, p.measure(ctx, s)
	}
	p.Rho = theory.NoiseFloor(p.Lipschitz, directions.B1(), directions.B2Squared(s.Task.Model.Dim()), p.DecodedVar/float64(packed), s.Config.Optimizer.Eta0, s.Config.Optimizer.Gamma0)
	return p, p.measure(ctx, s)
}

func (p *Plan) addEncryption(s *Experiment) {
	d, c := *s.Design, s.protocol.ctx
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
		p.DecodedStd = s.mismatched.expected(s.Config.Optimizer.Rounds)
		p.Notes = append(p.Notes, "the noise budget and the bounds are those of the scheme where gains match, which here they do not")
	}
	p.FailureBound = c.FailureBound(b)
	p.MessageLog2, p.ToleranceLog2, p.HalfQLog2 = math.Log2(d.MessageBound), math.Log2(d.Tolerance), d.Params.LogQ()-1
	p.CiphertextBytes, p.Expansion = d.Params.CiphertextBytes(), d.Params.ExpansionFactor()
	p.UplinkBits = d.UplinkBits()
	p.OverheadBits = s.protocol.link.OverheadBits()
	p.AirtimeSeconds = setup.Airtime(p.UplinkBits, p.BandwidthHz)
}

// addPacked says what several directions take. Without a ciphertext each takes symbols
// of its own, which last a second and hertz.
func (p *Plan) addPacked(c config.Config) {
	p.Packed = c.Optimizer.PackedDirections
	switch {
	case c.System().Encrypts:
		return
	case c.Experiment.Aggregator == config.AirHE:
		p.UplinkSymbols = p.Packed * airhe.Elements * airhe.Digits
	default:
		p.UplinkSymbols = p.Packed
	}
	p.AirtimeSeconds = setup.Airtime(p.UplinkSymbols, p.BandwidthHz)
}

// addLinks computes the terahertz links, and warns where the protocol outlasts
// their coherence.
func (p *Plan) addLinks(c config.Config) error {
	for i := range c.Devices.Count {
		l := setup.LineOfSight(c, i)
		b, err := l.Budget()
		if err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
		f, err := setup.ThzFading(c, i)
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
		p.Notes = append(p.Notes, fmt.Sprintf("WARNING: the four transmissions of a round take %.3g s, longer than the channel's coherence time of %.3g s: gains will change within a round, which channel.doppler_hz = %.3g simulates", p.AirtimeSeconds, t, 0.423/t))
	}
	return nil
}

// plannedRounds is how many rounds are timed; the fastest counts.
const plannedRounds = 3

// measure runs a few rounds in memory and scales them up.
func (p *Plan) measure(ctx context.Context, s *Experiment) error {
	best := time.Duration(math.MaxInt64)
	square := 0.0
	for k := range min(plannedRounds, s.Config.Optimizer.Rounds) {
		began := time.Now()
		record, err := s.Step(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return ErrInterrupted
			}
			return err
		}
		best = min(best, time.Since(began))
		square += (record.EpsStdPredicted*record.EpsStdPredicted - square) / float64(k+1)
	}
	if s.Config.System().SharesKey {
		p.DecodedStd, p.DecodedVar, p.Rho = math.Sqrt(square), square, 0
		p.Notes = append(p.Notes, "the deviation of eps is that of the rounds that were tried; rho is not defined for this system")
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p.MemoryBytes = m.Sys
	p.RoundSeconds = best.Seconds()
	p.DurationSeconds = best.Seconds() * float64(s.Config.Optimizer.Rounds)
	return nil
}
