package experiment

import (
	"context"
	"errors"
	"testing"

	"ringwave/learner"
)

// interrupting is a trainer in the middle of whose round Ctrl-C comes.
type interrupting struct {
	trainer
	stop func()
}

func (s interrupting) Step(ctx context.Context) (learner.Record, error) {
	s.stop()
	return learner.Record{}, ctx.Err()
}

// In memory Ctrl-C waits for the end of a round that has begun; over radios it does not.
// No round begins after it.
func TestCtrlCWithinARound(t *testing.T) {
	for _, overRadios := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		s := &Experiment{Trainer: interrupting{stop: cancel}}
		if overRadios {
			s.Config = airConfig(t, 2, 1)
		}
		if _, err := s.Step(ctx); errors.Is(err, context.Canceled) != overRadios {
			t.Errorf("over radios %v: a round that has begun ends with %v", overRadios, err)
		}
		if _, err := s.Step(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("over radios %v: a round begins after the end: %v", overRadios, err)
		}
	}
}
