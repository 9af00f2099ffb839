package trial

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Effort says how many rounds are enough.
type Effort struct {
	// Most is the most rounds. Fewer are enough from Least on, once the 95 % interval of
	// the share read at once is no wider than twice Reach, if that is above 0; and however
	// few they are, once each transmitter has sent so many Samples, if that is above 0.
	Least, Most int
	Reach       float64
	Samples     int
	// Enough, if not nil, reports whether the rounds so far are enough, for reasons of its
	// user's own. It is asked under a lock behind each.
	Enough func(rounds []Outcome) bool
	// Workers is the number of goroutines; 0 for one a core.
	Workers int
	// Done, if not nil, hears of each round, under a lock.
	Done func()
}

// Simulate carries out the rounds 0, 1 and so on until there are enough, on all cores. How
// many that are, and what becomes of each, does not depend on how many cores there are.
func Simulate(ctx context.Context, cfg Config, e Effort) ([]Outcome, error) {
	s := &simulation{effort: e, done: make([]bool, e.Most), outcomes: make([]Outcome, e.Most), enough: e.Most}
	workers := e.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	group, working := errgroup.WithContext(working)
	for range min(workers, e.Most) {
		group.Go(func() error {
			for {
				k, more := s.take()
				if !more || working.Err() != nil {
					return nil
				}
				out, err := Round(working, cfg, uint32(k))
				if err != nil {
					return s.unlessEnough(k, err)
				}
				if s.add(k, out) {
					stop() // what goes on beyond is not wanted
				}
			}
		})
	}
	err := group.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("simulating rounds: %w", context.Cause(ctx))
	case err != nil:
		return nil, err
	}
	return s.outcomes[:s.enough], nil
}

// Further goes on from rounds that were simulated with the same effort until their samples
// were spent, with the first attempts of others alone, and returns all: for those as many
// samples may be sent again, until the interval is within Reach.
func Further(ctx context.Context, cfg Config, e Effort, rounds []Outcome) ([]Outcome, error) {
	first, number := uint32(len(rounds)), cfg.Number
	cfg.Attempts, cfg.Number = 1, func(k uint32) uint32 {
		if k += first; number != nil {
			k = number(k)
		}
		return k
	}
	once, reach := AtOnce(rounds), e.Reach
	known := func(more []Outcome) bool {
		low, high := Wilson(once+AtOnce(more), len(rounds)+len(more))
		return reach > 0 && high-low <= 2*reach
	}
	if e.Most -= len(rounds); e.Most <= 0 || known(nil) {
		return rounds, nil
	}
	e.Reach, e.Enough = 0, known
	more, err := Simulate(ctx, cfg, e)
	return append(rounds, more...), err
}

// AtOnce returns how many of some rounds were read at once.
func AtOnce(rounds []Outcome) (n int) {
	for _, o := range rounds {
		if o.Attempt == 1 {
			n++
		}
	}
	return n
}

// simulation counts the rounds that are done. How many are enough is decided by those
// whose predecessors are all done, as if one came after the other.
type simulation struct {
	effort Effort

	mu       sync.Mutex
	next     int // to be begun
	prefix   int // of rounds that are done
	enough   int
	once     int // of the prefix, read at once
	samples  int
	done     []bool
	outcomes []Outcome
}

// take returns the number of a round to be carried out, if there is one.
func (s *simulation) take() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return s.next - 1, s.next <= s.enough
}

// unlessEnough returns the error of a round that counts.
func (s *simulation) unlessEnough(k int, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k >= s.enough {
		return nil
	}
	return err
}

// add keeps an outcome and reports whether there are enough.
func (s *simulation) add(k int, o Outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[k], s.done[k] = o, true
	if k < s.enough && s.effort.Done != nil {
		s.effort.Done()
	}
	for s.prefix < s.enough && s.done[s.prefix] {
		o := s.outcomes[s.prefix]
		if o.Attempt == 1 {
			s.once++
		}
		for _, t := range o.Tries {
			s.samples += t.Samples
		}
		s.prefix++
		if s.effort.satisfied(s.once, s.samples, s.outcomes[:s.prefix]) {
			s.enough = s.prefix
		}
	}
	return s.prefix == s.enough
}

// satisfied reports whether rounds are enough, of which some were read at once.
func (e Effort) satisfied(once, samples int, rounds []Outcome) bool {
	low, high := Wilson(once, len(rounds))
	return e.Samples > 0 && samples >= e.Samples || e.Reach > 0 && len(rounds) >= e.Least && high-low <= 2*e.Reach ||
		e.Enough != nil && e.Enough(rounds)
}
