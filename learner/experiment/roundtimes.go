package experiment

import (
	"context"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
)

// RoundTimes returns how long each of some whole encrypted rounds took on the ring link,
// without learning, with all devices in this process. It ends with ErrInterrupted where
// ctx did.
func RoundTimes(ctx context.Context, parameterSet string, devices, rounds int) ([]time.Duration, error) {
	c := config.Default()
	c.Devices.Count, c.Encryption.ParameterSet, c.Encryption.DeltaMax = devices, parameterSet, 1
	c.Optimizer.Rounds, c.Channel.GainLatticeBits, c.Channel.Std = rounds+1, 2, 0.3
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		return nil, err
	}
	design, err := setup.NewDesign(c, ch)
	if err != nil {
		return nil, err
	}
	p, err := newProtocol(c, root, uplink.SeedLinkSecret(root), ch, nil, nil, design, xmkckks.NewLedger(setup.SharesPerKey(c)), 0, 1)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	delta := make([][]float64, devices)
	for i := range delta {
		delta[i] = make([]float64, 1)
	}
	var times []time.Duration
	for k := 1; k <= rounds+1; k++ { // the first warms up
		if ctx.Err() != nil {
			return nil, ErrInterrupted
		}
		began := time.Now()
		if _, err := p.Aggregate(ctx, k, delta); err != nil {
			return nil, err
		}
		if k > 1 {
			times = append(times, time.Since(began))
		}
	}
	return times, nil
}
