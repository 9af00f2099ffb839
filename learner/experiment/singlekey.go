package experiment

import (
	"context"
	"fmt"
	"math"

	"ringwave/crypto/airhe"
	"ringwave/crypto/heairfed"
	"ringwave/learner"
	"ringwave/learner/experiment/config"
)

// trainer is a training loop: learner.Trainer, or learner.GradientTrainer.
type trainer interface {
	Step(ctx context.Context) (learner.Record, error)
	Done() bool
	State() learner.State
	Restore(s learner.State) error
	Final() learner.Result
}

// symbolNoise returns the deviation of the receiver noise against a device of gain 1 at
// full amplitude.
func symbolNoise(l config.Link) float64 { return math.Pow(10, -l.SNRdB/20) }

// newHEAirFed makes the uplink of gradients.
func newHEAirFed(s Setting) (learner.Aggregator, []string, error) {
	c := s.Config
	fading, err := heairfed.ParseFading(c.Channel.AntennaFading)
	if err != nil {
		return nil, nil, err
	}
	a, err := heairfed.New(heairfed.Config{
		Devices: c.Devices.Count, Dim: s.Dim, Antennas: c.Channel.Antennas, Fading: fading,
		PilotStd: c.Channel.PilotStd, NoiseStd: symbolNoise(c.Link), Clip: c.Encryption.DeltaMax,
	}, s.Gains, s.Seed.Derive("heairfed"))
	if err != nil {
		return nil, nil, err
	}
	return a, []string{heairfedFacts(c, a)}, nil
}

// heairfedFacts says what a round takes.
func heairfedFacts(c config.Config, a *heairfed.Aggregator) string {
	return fmt.Sprintf("heairfed: single-key CKKS, n = %d and q near 2^30, on the whole gradient: ciphertexts a device and round %d, complex symbols %d, heard by %d antennas that are known up to %v; eps is the root mean square of the gradient's components",
		heairfed.N, a.Ciphertexts(), a.Symbols(), c.Channel.Antennas, c.Channel.PilotStd)
}

// newAirHE makes the uplink of scalars under one key.
func newAirHE(s Setting) (learner.Aggregator, []string, error) {
	c := s.Config
	a, err := airhe.New(airhe.Config{
		Devices: c.Devices.Count, DeltaMax: c.Encryption.DeltaMax,
		PilotStd: c.Channel.PilotStd, NoiseStd: symbolNoise(c.Link),
	}, s.Gains, s.Seed.Derive("airhe"))
	if err != nil {
		return nil, nil, err
	}
	return a, []string{airheFacts(c, a)}, nil
}

// airheFacts says what a round takes.
func airheFacts(c config.Config, a *airhe.Aggregator) string {
	symbols := fmt.Sprintf("%d symbols a round", a.Symbols()*c.Optimizer.PackedDirections)
	if p := c.Optimizer.PackedDirections; p > 1 {
		symbols += fmt.Sprintf(" in %d ciphertexts, one a direction", p)
	}
	return fmt.Sprintf("airhe: single-key LWE, n = %d and q = %d, digits base %d over gains that each device knows up to %v and inverts: %.4g integers a unit of Delta f, %s; a smaller encryption.delta_max makes it finer",
		airhe.N, airhe.Q, airhe.Base, c.Channel.PilotStd, a.Scale(), symbols)
}
