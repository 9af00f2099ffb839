package round

import (
	"context"
	"sync"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/slot"
)

// openGuard lets every share be given. It keeps nothing, so that a test can run
// for any number of rounds.
type openGuard struct{}

func (openGuard) Answer(xmkckks.ShareRecord) error { return nil }

// tally lets every share be given and counts the shares of each attempt.
type tally struct {
	mu     sync.Mutex
	shares map[[2]uint32]int // by round and attempt
}

func newTally() *tally { return &tally{shares: map[[2]uint32]int{}} }

func (g *tally) Answer(r xmkckks.ShareRecord) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shares[[2]uint32{r.Round, r.Attempt}]++
	return nil
}

// tap is an uplink that shows, and may change, what the server receives.
type tap struct {
	phy.Uplink
	slot  slot.Slot
	after func(s slot.Slot, rx *phy.Reception)
}

func (l *tap) Open(ctx context.Context, s slot.Slot, n int) error {
	l.slot = s
	return l.Uplink.Open(ctx, s, n)
}

func (l *tap) Receive(ctx context.Context, rx *phy.Reception) error {
	if err := l.Uplink.Receive(ctx, rx); err != nil {
		return err
	}
	l.after(l.slot, rx)
	return nil
}

// tapped returns a setup's wrap that calls the functions in turn after each
// reception.
func tapped(after ...func(slot.Slot, *phy.Reception)) func(phy.Uplink) phy.Uplink {
	return func(u phy.Uplink) phy.Uplink {
		return &tap{Uplink: u, after: func(s slot.Slot, rx *phy.Reception) {
			for _, f := range after {
				f(s, rx)
			}
		}}
	}
}

// altered is a channel whose scaled gains a test changes.
type altered struct {
	phy.Gains
	change func(h []float64, round, attempt uint32, t slot.Transmission)
}

func (g *altered) Scaled(dst []float64, round, attempt uint32, t int) {
	g.Gains.Scaled(dst, round, attempt, t)
	g.change(dst, round, attempt, slot.Transmission(t))
}
