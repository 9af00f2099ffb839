package console

import "sync"

// Speaker is a console that several goroutines speak at, with a progress of rounds.
type Speaker struct {
	mu       sync.Mutex
	console  *Console
	progress *Progress // nil before the first round
	last     int
}

// NewSpeaker returns a speaker at a console.
func NewSpeaker(c *Console) *Speaker { return &Speaker{console: c} }

// Say says something beside the progress.
func (s *Speaker) Say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Stop()
	s.console.Say("%s", text)
}

// Write writes lines that a package says of its own progress.
func (s *Speaker) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Stop()
	return s.console.Writer().Write(text)
}

// Share tells that so many units of all are done, and a share of the work, of which first was
// behind in the beginning.
func (s *Speaker) Share(unit string, done, of int, first, share float64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress == nil {
		s.progress = s.console.Progress(unit, of, done, first)
	}
	s.progress.of = of
	s.progress.Report(done, share, text)
}

// Round tells of a round, once.
func (s *Speaker) Round(k, rounds int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress == nil {
		s.progress = s.console.Progress("round", rounds, k-1, float64(k-1)/float64(rounds))
	}
	if k > s.last {
		s.last = k
		s.progress.Report(k, float64(k)/float64(rounds), text)
	}
}

// Stop ends the progress.
func (s *Speaker) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Stop()
}
