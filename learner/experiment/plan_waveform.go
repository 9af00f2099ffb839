package experiment

import (
	"context"
	"fmt"
	"math"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/rounds"
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
	// Trials is the number of simulated rounds for the link's own group size; the
	// others have a third of it.
	Trials int `json:"simulated_rounds,omitempty"`
	// FluctuationMargin is, for aligned gains, what half a unit of the lattice has
	// left for noise once the mean fluctuation of a group is taken off.
	FluctuationMargin float64 `json:"fluctuation_margin,omitempty"`
}

// GroupPlan is the outlook for one group size.
type GroupPlan struct {
	Size       int     `json:"size"`
	Slots      int     `json:"slots"`
	Reads      float64 `json:"probability_one_attempt"`
	ReadsRetry float64 `json:"probability_all_attempts"`
	Misfit     float64 `json:"median_largest_misfit"`
	ZeroGains  float64 `json:"mean_zero_gains"`
	Airtime    float64 `json:"airtime_seconds_per_attempt"`
	Trials     int     `json:"-"`
}

// planTrials is the number of simulated rounds for the group size in use.
const planTrials = 300

// planWaveform computes the outlook.
func planWaveform(ctx context.Context, s *Experiment) (*WaveformPlan, float64, error) {
	c, link := s.Config, s.protocol.waveform
	layout, err := roundLayout(s)
	if err != nil {
		return nil, 0, err
	}
	samples := layout.Airtime()
	slots := (c.Devices.Count + link.Group - 1) / link.Group
	perSlot := float64(samples) / c.Link.SampleRateHz
	p := &WaveformPlan{SymbolsPerRound: samples / c.Link.SamplesPerSymbol, SampleRateHz: c.Link.SampleRateHz}
	if !s.Channel.Continuous() {
		p.NeededSNRdB = bench.NeededSNR(c.Link.Base, s.Channel.Alpha(), setup.RoundSymbols(c, *s.Design))
		p.ErrorsBelowdB = p.NeededSNRdB + setup.SuperposedDB(s.Channel)
		return p, perSlot * float64(slots), nil
	}
	if link.Regime == bench.MeanAligned {
		p.FluctuationMargin = setup.AlignedMargin(c, s.links())
	}
	p.Trials = planTrials
	for _, size := range plannedSizes(c) {
		g, err := planGroup(ctx, s, size, layout)
		if err != nil {
			return nil, 0, err
		}
		g.Airtime = perSlot * float64(g.Slots)
		p.Groups = append(p.Groups, g)
	}
	return p, perSlot * float64(slots), nil
}

// roundLayout returns the frames of a round.
func roundLayout(s *Experiment) (rounds.Layout, error) {
	p := s.protocol
	return rounds.LayoutOf(p.waveform, p.ctx.Modulus(), s.Config.Link.Base, p.ctx.PayloadLength)
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

// groupRounds describes rounds of one group of the first devices.
func groupRounds(s *Experiment, size int, layout rounds.Layout) (rounds.Config, error) {
	c, link := s.Config, s.protocol.waveform
	b, err := plannedBench(s)
	if err != nil {
		return rounds.Config{}, err
	}
	cfg := rounds.Config{
		Bench: b, Regime: link.Regime, MaxAlpha: c.Link.MaxAlpha, Group: size, Groups: 1,
		Base: c.Link.Base, Modem: setup.ModemConfig(c.Link), BlockSymbols: c.Link.BlockSymbols, Layout: layout,
		Attempts: 1, Repeats: c.Link.FrameRepeats, Whole: true,
		// Of other groups, all devices are taken to be heard.
		Least:    max(0, size-(c.Devices.Count-setup.LeastHeard(c))),
		Patterns: s.root.Derive("plan"), Seed: uint64(c.Experiment.Seed),
	}
	if link.Regime == bench.MeanAligned {
		cfg.Alpha, cfg.Tolerance = bench.AlignedScale, setup.LinksOf(s.links()).AlignedTolerance(size)
	}
	return cfg, nil
}

// plannedBench returns the bench as far as the run knows it.
func plannedBench(s *Experiment) (rounds.Bench, error) {
	c, link := s.Config, s.protocol.waveform
	b := rounds.Bench{Noise: modem.Power(2 * link.NoiseStd * link.NoiseStd), FreshOnRetry: c.Channel.FreshBlockOnRetry}
	b.ReceiverBits, b.ReceiverFullScale = setup.ConfiguredConverter(c)
	if c.OverRadios() && b.ReceiverBits > 0 && b.ReceiverFullScale == 0 {
		b.ReceiverFullScale = 1 // that of radios
	}
	if link.Trims != nil {
		b.Phases = rounds.PhasesTrimmed
	}
	delays := link.ResidualDelays()
	for i := range c.Devices.Count {
		f, err := s.fading(i)
		if err != nil {
			return b, err
		}
		b.Devices = append(b.Devices, rounds.Device{
			Gain: f, Phase: modem.Radians(link.Phases[i]), Delay: delays[i], ConverterBits: c.Transmitter(i).ConverterBits,
		})
	}
	return b, nil
}

// fading returns the law of device i's gain, as far as it is known.
func (s *Experiment) fading(i int) (channel.Fading, error) {
	if s.known != nil {
		return s.known.Fading[i], nil
	}
	return setup.FadingOf(s.Config, i)
}

// planGroup simulates rounds of one group and raises the result to the number of
// groups, which must all be read.
func planGroup(ctx context.Context, s *Experiment, size int, layout rounds.Layout) (GroupPlan, error) {
	c := s.Config
	cfg, err := groupRounds(s, size, layout)
	if err != nil {
		return GroupPlan{}, err
	}
	slots := (c.Devices.Count + size - 1) / size
	g := GroupPlan{Size: size, Slots: slots, Trials: planTrials}
	if size != setup.GroupSize(c) {
		g.Trials /= 3
	}
	if slots == 1 {
		cfg.Attempts = c.Encryption.AttemptsPerRound
	}
	simulated, err := rounds.Simulate(ctx, cfg, g.Trials)
	if ctx.Err() != nil {
		return GroupPlan{}, ErrInterrupted
	}
	if err != nil {
		return GroupPlan{}, intake.UserError(fmt.Errorf("simulating groups of %d: %w", size, err))
	}
	var once, all trial.Tally
	for _, attempts := range simulated {
		once.Add(outcomeOf(attempts[:1], cfg.Repeats))
		all.Add(outcomeOf(attempts, cfg.Repeats))
	}
	g.Reads = math.Pow(float64(once.Within(1))/float64(g.Trials), float64(slots))
	g.Misfit, g.ZeroGains = once.Misfit(), once.ZeroGains()
	if slots == 1 {
		g.ReadsRetry = float64(all.Within(cfg.Attempts)) / float64(g.Trials)
		return g, nil
	}
	// An attempt is good only if all groups are: here attempts are taken as
	// independent, which fresh gains make them nearly.
	g.ReadsRetry = 1 - math.Pow(1-g.Reads, float64(c.Encryption.AttemptsPerRound))
	return g, nil
}

// outcomeOf returns what became of a round of simulated attempts.
func outcomeOf(attempts []rounds.Attempt, repeats int) trial.Outcome {
	for i, a := range attempts {
		if a.Read(repeats) {
			return trial.Outcome{Attempt: i + 1, Alpha: a.Alpha, Misfit: a.Misfit, ZeroGains: a.ZeroGains}
		}
	}
	return trial.Outcome{}
}

// ReadsStd returns the deviation of Reads, the simulated share taken as one trial
// nearer to the middle than it is.
func (g GroupPlan) ReadsStd() float64 {
	n := float64(g.Trials)
	share := (math.Pow(g.Reads, 1/float64(g.Slots))*n + 1) / (n + 2)
	return float64(g.Slots) * math.Sqrt(share*(1-share)/n)
}
