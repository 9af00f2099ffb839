package uplink

import (
	"math/cmplx"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/slot"
	"ringwave/phy/trial"
)

// Trials returns trials of the rounds of a waveform link: over the bench in memory that
// New makes, by a receiver that knows what the run's does, and with the run's attempts.
// Where devices stand is the run's; all else that is chance comes from draws. Where these
// are s.Seed, gains, phases, noise and patterns of a trial are those that the run's bench
// in memory will have in that round, so that the shares of both differ by their payloads
// alone. Radios of which a calibration is known stand as it found them, and everything
// else is drawn anew for each trial.
func Trials(s Setting, draws keystream.Seed) trial.Config {
	c := s.Config
	// The format of a recording is a converter, too.
	c.Link.ReceiverConverterBits, c.Link.ReceiverFullScale = setup.ConfiguredConverter(c)
	if c.OverRadios() && c.Link.ReceiverConverterBits > 0 && c.Link.ReceiverFullScale == 0 {
		c.Link.ReceiverFullScale = 1 // that of radios
	}
	s.Config = c
	cfg := trial.Config{
		Setup:    func(number uint32) (bench.Config, phy.WaveformConfig, error) { return s.trial(number, draws) },
		Attempts: c.Encryption.AttemptsPerRound, Number: trial.Spread(c.Optimizer.Rounds), Seed: draws,
	}
	if setup.RegimeOf(c) == bench.Blind {
		cfg.Least = setup.LeastHeard(c)
	}
	for t := range slot.Transmission(slot.Transmissions) {
		cfg.Lengths[t] = s.Context.PayloadLength(t)
	}
	return cfg
}

// trial makes bench and link of a trial.
func (s Setting) trial(number uint32, draws keystream.Seed) (bench.Config, phy.WaveformConfig, error) {
	seed := draws
	if s.Config.OverRadios() {
		seed = draws.Derive("round", uint64(number))
	}
	air, err := s.bench(seed)
	if err != nil {
		return bench.Config{}, phy.WaveformConfig{}, err
	}
	link := ReceiveConfig(s.Config, SeedLinkSecret(seed), air.Channel, s.Stats, s.Context)
	link.Level /= s.Stats.unitOf(s.Config) // the bench in memory has gains in these units
	delays, phases := setup.Positions(s.Config, s.Seed)
	if err := compensate(&link, s.Config, s.Stats, air.Channel, delays, phases); err != nil {
		return bench.Config{}, phy.WaveformConfig{}, err
	}
	if s.Config.OverRadios() {
		link.Correction = nil // the bench in memory has none of the boards' faults
	}
	return air, link, nil
}

// bench returns the bench as a run's begins.
func (s Setting) bench(seed keystream.Seed) (bench.Config, error) {
	c, stats := s.Config, s.Stats
	ch, err := setup.NewChannel(c, seed)
	calibrated := c.OverRadios() && stats != nil && stats.File != nil
	if calibrated {
		of := LinkStats{Fading: stats.Fading}
		err, ch = of.draw(c, seed), of.Channel
	}
	if err != nil {
		return bench.Config{}, err
	}
	air, err := setup.SimulatedConfig(c, s.Seed, seed, ch)
	if err != nil || !calibrated {
		return air, err
	}
	for i := range air.Devices {
		air.Devices[i].DelaySamples, air.Devices[i].PhaseRad = float64(stats.delays[i]), cmplx.Phase(stats.Means[i])
	}
	return air, nil
}
