package experiment

import (
	"context"
	"fmt"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy/bench"
	"ringwave/phy/slot"
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
	// FluctuationMargin is, for aligned gains, what half a unit of the lattice has
	// left for noise once the mean fluctuation of a group is taken off.
	FluctuationMargin float64 `json:"fluctuation_margin,omitempty"`
}

// GroupPlan is the outlook for one group size, of so many simulated rounds. Probabilities
// have the ends of their 95 % intervals.
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
	samples, err := attemptSamples(s)
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
	for _, size := range sizes {
		g, err := planGroup(ctx, s, size, samples, watch)
		if err != nil {
			return nil, 0, err
		}
		g.Airtime = perSlot * float64(g.Slots)
		p.Groups = append(p.Groups, g)
	}
	return p, perSlot * float64(slots), nil
}

// attemptSamples returns the samples of all frames of a group.
func attemptSamples(s *Experiment) (int, error) {
	sum := 0
	for t := range slot.Transmission(slot.Transmissions) {
		n, err := s.protocol.waveform.FrameSamples(t, s.protocol.ctx.PayloadLength(t))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
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
func planGroup(ctx context.Context, s *Experiment, size, samples int, watch PlanWatch) (GroupPlan, error) {
	c := s.Config
	g := GroupPlan{Size: size, Slots: (c.Devices.Count + size - 1) / size}
	effort := trial.Effort{Least: ownLeast, Most: mostTrials, Reach: ownReach, Samples: trialBudget / c.Devices.Count}
	if size != setup.GroupSize(c) {
		effort.Reach, effort.Least = otherReach, otherLeast
	}
	done := 0
	effort.Done = func() {
		done++
		watch.rounds(size, done, mostTrials)
	}
	outcomes, err := trial.Simulate(ctx, s.trials(size), effort)
	if ctx.Err() != nil {
		return GroupPlan{}, ErrInterrupted
	}
	if err != nil {
		return GroupPlan{}, intake.UserError(fmt.Errorf("simulating groups of %d: %w", size, err))
	}
	g.fill(outcomes, c.Encryption.AttemptsPerRound)
	return g, nil
}

// trials returns trials of the run's rounds in groups of a size.
func (s *Experiment) trials(size int) trial.Config {
	c := s.Config
	c.Link.GroupSize = size
	return uplink.Trials(uplink.Setting{Config: c, Seed: s.root, Stats: s.known, Context: s.protocol.ctx}, s.root.Derive("plan"))
}

// fill writes what was counted.
func (g *GroupPlan) fill(outcomes []trial.Outcome, attempts int) {
	var t trial.Tally
	for _, o := range outcomes {
		t.Add(o)
	}
	once, within := t.Within(1), t.Within(attempts)
	g.Rounds, g.Wrong, g.Failure = t.Trials, t.Wrong, t.FirstFailure
	g.Reads, g.ReadsRetry = float64(once)/float64(t.Trials), float64(within)/float64(t.Trials)
	g.ReadsLow, g.ReadsHigh = trial.Wilson(once, t.Trials)
	g.RetryLow, g.RetryHigh = trial.Wilson(within, t.Trials)
	g.Misfit, g.ZeroGains = runfolder.Float(t.Misfit()), runfolder.Float(t.ZeroGains())
}
