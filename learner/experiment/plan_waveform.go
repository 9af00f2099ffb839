package experiment

import (
	"context"
	"fmt"
	"math"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy/bench"
	"ringwave/phy/trial"
	"ringwave/radio/intake"
)

// WaveformPlan is what a waveform link will need and give.
type WaveformPlan struct {
	SymbolsPerRound int     `json:"symbols_per_round"`
	SampleRateHz    float64 `json:"sample_rate_hz"`
	// For emulated gains: the SNR that the chosen lattice needs, and how far all
	// errors together must lie below the superposed signal.
	NeededSNRdB   float64     `json:"needed_snr_db,omitempty"`
	ErrorsBelowdB float64     `json:"errors_below_db,omitempty"`
	Groups        []GroupPlan `json:"groups,omitempty"`
	// Losses says which faults cost rounds, where they do: of groups of the run's size.
	Losses *LossPlan `json:"losses,omitempty"`
	// FluctuationMargin is, for aligned gains, what half a unit of the lattice has
	// left for noise once the mean fluctuation of a group is taken off.
	FluctuationMargin float64 `json:"fluctuation_margin,omitempty"`
}

// GroupPlan is the outlook for one group size, of so many simulated rounds, the first of
// which had all attempts. Probabilities have the ends of their 95 % intervals.
type GroupPlan struct {
	Size       int             `json:"size"`
	Slots      int             `json:"slots"`
	Reads      float64         `json:"probability_one_attempt"`
	ReadsLow   float64         `json:"probability_one_attempt_low"`
	ReadsHigh  float64         `json:"probability_one_attempt_high"`
	ReadsRetry float64         `json:"probability_all_attempts"`
	RetryLow   float64         `json:"probability_all_attempts_low"`
	RetryHigh  float64         `json:"probability_all_attempts_high"`
	Rounds     int             `json:"simulated_rounds"`
	Retried    int             `json:"simulated_rounds_all_attempts"`
	Wrong      int             `json:"wrong_rounds,omitempty"`
	Failure    string          `json:"first_failure,omitempty"`
	Misfit     runfolder.Float `json:"median_largest_misfit"`
	ZeroGains  runfolder.Float `json:"mean_zero_gains"`
	Airtime    float64         `json:"airtime_seconds_per_attempt"`
}

// How far a share's interval may reach to either side, and the least rounds that it is of:
// with the group size in use, and with others. There are mostTrials at most, or fewer where
// the budget is spent.
const (
	ownReach, otherReach = 0.025, 0.05
	ownLeast, otherLeast = 60, 20
	mostTrials           = 400
	// trialBudget is in samples of all transmitters: some 40 s of one core.
	trialBudget = 2_000_000_000
)

// planWaveform computes the outlook.
func planWaveform(ctx context.Context, s *Experiment, watch PlanWatch) (*WaveformPlan, float64, error) {
	c, link := s.Config, s.protocol.waveform
	samples, err := link.AttemptSamples()
	if err != nil {
		return nil, 0, err
	}
	slots := (c.Devices.Count + link.Group - 1) / link.Group
	perSlot := float64(samples) / c.Link.SampleRateHz
	p := &WaveformPlan{SymbolsPerRound: samples / c.Link.SamplesPerSymbol, SampleRateHz: c.Link.SampleRateHz}
	sizes := []int{link.Group}
	switch link.Regime {
	case bench.Emulated:
		p.NeededSNRdB = bench.NeededSNR(c.Link.Base, s.Channel.Alpha(), setup.RoundSymbols(c, *s.Design))
		p.ErrorsBelowdB = p.NeededSNRdB + setup.SuperposedDB(s.Channel)
	case bench.MeanAligned:
		p.FluctuationMargin = setup.AlignedMargin(c, s.links())
		sizes = plannedSizes(c)
	default:
		sizes = plannedSizes(c)
	}
	var own []trial.Outcome
	for _, size := range sizes {
		g, outcomes, err := planGroup(ctx, s, size, watch)
		if err != nil {
			return nil, 0, err
		}
		g.Airtime = perSlot * float64(g.Slots)
		p.Groups = append(p.Groups, g)
		if size == link.Group {
			own = outcomes
		}
	}
	if p.Losses, err = planLosses(ctx, s, own, watch); err != nil {
		return nil, 0, err
	}
	return p, perSlot * float64(slots), nil
}

// plannedSizes returns the group sizes to look at: up to 5, and the one in use.
func plannedSizes(c config.Config) []int {
	var sizes []int
	for size := 1; size <= min(c.Devices.Count, 5); size++ {
		sizes = append(sizes, size)
	}
	if own := setup.GroupSize(c); own > len(sizes) {
		sizes = append(sizes, own)
	}
	return sizes
}

// planGroup simulates rounds in groups of a size: bench and link are the run's.
func planGroup(ctx context.Context, s *Experiment, size int, watch PlanWatch) (g GroupPlan, outcomes []trial.Outcome, err error) {
	c := s.Config
	g = GroupPlan{Size: size, Slots: (c.Devices.Count + size - 1) / size}
	effort := trial.Effort{Least: ownLeast, Most: mostTrials, Reach: ownReach, Samples: trialBudget / c.Devices.Count}
	if size != setup.GroupSize(c) {
		effort.Reach, effort.Least = otherReach, otherLeast
	}
	done := 0
	effort.Done = func() {
		done++
		watch.rounds(size, done, mostTrials)
	}
	cfg := s.trials(c, size)
	outcomes, err = trial.Simulate(ctx, cfg, effort)
	retried := len(outcomes)
	if err == nil && size == setup.GroupSize(c) {
		effort.Reach = otherReach
		outcomes, err = trial.Further(ctx, cfg, effort, outcomes)
	}
	if ctx.Err() != nil {
		return g, nil, ErrInterrupted
	}
	if err != nil {
		return g, nil, intake.UserError(fmt.Errorf("simulating groups of %d: %w", size, err))
	}
	g.fill(outcomes, retried, c.Encryption.AttemptsPerRound)
	return g, outcomes, nil
}

// trials returns trials of the run's own rounds with a configuration like the run's, in
// groups of a size: of its seed, and with its keys where they never change.
func (s *Experiment) trials(c config.Config, size int) trial.Config {
	c.Link.GroupSize = size
	cfg := uplink.Trials(uplink.Setting{Config: c, Seed: s.root, Stats: s.known, Context: s.protocol.ctx}, s.root)
	for _, d := range s.protocol.devices {
		if c.Encryption.KeyEpochRounds == 0 {
			cfg.Key = append(cfg.Key, d.PublicKey())
		}
	}
	return cfg
}

// fill writes what was counted of outcomes, the first of which, so many, had all attempts.
func (g *GroupPlan) fill(outcomes []trial.Outcome, retried, attempts int) {
	var t, all trial.Tally
	for k, o := range outcomes {
		if t.Add(o); k < retried {
			all.Add(o)
		}
	}
	once := t.Within(1)
	g.Rounds, g.Retried, g.Wrong, g.Failure = t.Trials, retried, t.Wrong, t.FirstFailure
	g.Reads = float64(once) / float64(t.Trials)
	g.ReadsLow, g.ReadsHigh = trial.Wilson(once, t.Trials)
	g.ReadsRetry = g.Reads
	if failed := retried - all.Within(1); failed > 0 {
		g.ReadsRetry += (1 - g.Reads) * float64(all.Within(attempts)-all.Within(1)) / float64(failed)
	}
	g.RetryLow, g.RetryHigh = trial.Wilson(int(math.Round(g.ReadsRetry*float64(retried))), retried)
	g.Misfit, g.ZeroGains = runfolder.Float(t.Misfit()), runfolder.Float(t.ZeroGains())
}
