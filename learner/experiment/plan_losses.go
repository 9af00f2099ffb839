package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ringwave/learner/experiment/setup"
	"ringwave/phy/trial"
)

// LossPlan says what rounds the faults of a bench cost, and which keys they are.
type LossPlan struct {
	// Of so many of the plan's rounds these shares are read at once, as the bench is and
	// without any fault.
	Rounds  int     `json:"simulated_rounds"`
	Reads   float64 `json:"probability_one_attempt"`
	Without float64 `json:"probability_one_attempt_without_faults"`
	Keys    []Loss  `json:"keys"`
}

// Loss is what keys of a configuration cost by themselves.
type Loss struct {
	Set     string `json:"set"`
	Instead string `json:"usually"`
	Reason  string `json:"reason"`
	// Of Lost of the rounds that faults cost, so many are Read with the usual values, by
	// which a share of rounds of about Reads is read at once.
	Lost  int     `json:"lost_rounds"`
	Read  int     `json:"lost_rounds_read"`
	Reads float64 `json:"probability_one_attempt"`
}

const (
	// noLoss is the share of rounds by which faults may change what is read before a plan
	// says why.
	noLoss = 0.02
	// mostCompared and mostLost bound the rounds that are tried without any fault, and those
	// tried again without one of them.
	mostCompared, mostLost = 200, 40
	// leastNamed is the part of the lost rounds that a key must cost to be named: some rounds are
	// read by chance as soon as anything is another.
	leastNamed = 0.25
)

// planLosses finds out which faults cost the rounds that were simulated of the run's own
// groups, and were not read: it leaves out all of them, and then each in turn, in the very
// same rounds. It returns nil where nothing is lost. What calibrated devices make up for is
// no fault any more, and radios have theirs by themselves.
func planLosses(ctx context.Context, s *Experiment, own []trial.Outcome, watch PlanWatch) (*LossPlan, error) {
	if s.Config.OverRadios() || s.known != nil && s.known.File != nil || float64(trial.AtOnce(own)) > (1-noLoss)*float64(len(own)) {
		return nil, nil
	}
	burdens, faultless := setup.Burdens(s.Config, s.Channel)
	if len(burdens) == 0 {
		return nil, nil
	}
	l := retrial{s: s, watch: watch, of: min(len(own), mostCompared) + mostLost*len(burdens)}
	read, err := l.again(ctx, faultless, own[:min(len(own), mostCompared)])
	if err != nil {
		return nil, err
	}
	own = own[:len(read)]
	var lost []trial.Outcome
	for k, o := range read {
		if o.Attempt == 1 && own[k].Attempt != 1 {
			lost = append(lost, own[k])
		}
	}
	n := float64(len(own))
	p := &LossPlan{Rounds: len(own), Reads: float64(trial.AtOnce(own)) / n, Without: float64(trial.AtOnce(read)) / n}
	if p.Without-p.Reads <= noLoss {
		return nil, nil
	}
	for _, b := range burdens {
		read, err := l.again(ctx, setup.Relieved(s.Config, b), lost[:min(len(lost), mostLost)])
		if err != nil {
			return nil, err
		}
		readable := trial.AtOnce(read)
		if share := float64(readable) / float64(len(read)); share >= leastNamed {
			p.Keys = append(p.Keys, Loss{
				Set: b.Set, Instead: b.Instead, Reason: b.Reason, Lost: len(read), Read: readable,
				Reads: p.Reads + share*(p.Without-p.Reads),
			})
		}
	}
	slices.SortStableFunc(p.Keys, func(a, b Loss) int { return cmp.Compare(b.Reads, a.Reads) })
	return p, nil
}

// retrial tries rounds again.
type retrial struct {
	s        *Experiment
	watch    PlanWatch
	done, of int
}

// again returns what becomes of rounds with another configuration, in their first attempt:
// of fewer where the budget is spent, but of one at least.
func (l *retrial) again(ctx context.Context, c Config, rounds []trial.Outcome) ([]trial.Outcome, error) {
	cfg := l.s.trials(c, setup.GroupSize(c))
	cfg.Attempts, cfg.Number = 1, func(k uint32) uint32 { return rounds[k].Number }
	done := l.done
	l.done += len(rounds)
	outcomes, err := trial.Simulate(ctx, cfg, trial.Effort{
		Most: len(rounds), Samples: trialBudget / c.Devices.Count / 4,
		Done: func() { done++; l.watch.rounds(0, done, l.of) },
	})
	if ctx.Err() != nil {
		return nil, ErrInterrupted
	}
	if err != nil {
		return nil, fmt.Errorf("simulating rounds without faults: %w", err)
	}
	return outcomes, nil
}
