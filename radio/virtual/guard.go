package virtual

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
)

// Guard is a radio.Guard of emulated boards that are in the same process as the program
// that sends with them: they end with it, so that there is nothing to switch off. It is
// for these alone. It can be lost, as a real one can.
type Guard struct {
	life life.Life // ends when it is lost

	mu      sync.Mutex
	watched []string
}

// NewGuard makes a guard.
func NewGuard() *Guard { return &Guard{} }

// Lose has programs lose the guard, for a reason.
func (g *Guard) Lose(why string) {
	g.life.End(fmt.Errorf("%w cannot be relied on: %s", radio.ErrGuard, why))
}

// Watched returns the URIs of the boards that are watched, in the order in which they came.
func (g *Guard) Watched() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.watched)
}

// Watch implements radio.Guard.
func (g *Guard) Watch(ctx context.Context, board radio.URI, _ time.Duration) (radio.Watch, error) {
	if err := g.life.Err(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watched = append(g.watched, board.String())
	return &watch{g, board.String()}, nil
}

// watch is a radio.Watch.
type watch struct {
	g   *Guard
	uri string
}

func (w *watch) AfterLoss(f func()) (stop func() bool) { return w.g.life.AfterEnd(f) }

func (w *watch) Err() error { return w.g.life.Err() }

func (w *watch) Release() {
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	if i := slices.Index(w.g.watched, w.uri); i >= 0 {
		w.g.watched = slices.Delete(w.g.watched, i, i+1)
	}
}
