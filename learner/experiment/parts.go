package experiment

import (
	"context"
	"fmt"

	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/setup"
)

// StartInMemory makes aggregator and trainer behind a state, which is empty for a run
// that begins. Keys come from the seed: they are those of before.
func (s *Experiment) StartInMemory(state learner.State) error {
	epoch := uint32(0)
	if e := s.Config.Encryption.KeyEpochRounds; e > 0 {
		epoch = uint32(state.Round / e)
	}
	if err := s.assemble(xmkckks.NewLedger(setup.SharesPerKey(s.Config)), epoch, state.Round+1); err != nil {
		return err
	}
	if state.Round == 0 {
		return nil
	}
	return s.Trainer.Restore(state)
}

// Carrier returns what carries a round of the experiment's system, values[i] being those of
// device i, and how many values a device has in a round.
func (s *Experiment) Carrier() (carry func(ctx context.Context, k int, values [][]float64) (sum []float64, spread float64, err error), payload int, err error) {
	payload = 1
	if s.Config.System().Gradients {
		payload = s.Task.Model.Dim()
	}
	made, err := s.aggregator(xmkckks.NewLedger(setup.SharesPerKey(s.Config)), 0, 1)
	if err != nil {
		return nil, 0, err
	}
	a, ok := made.(learner.Simulated)
	if !ok {
		return nil, 0, fmt.Errorf("%s is not simulated", s.Config.Experiment.Aggregator)
	}
	return func(ctx context.Context, k int, values [][]float64) ([]float64, float64, error) {
		out, err := a.Aggregate(ctx, k, values)
		return append([]float64(nil), out.M...), a.Truth().EpsStd, err
	}, payload, nil
}
