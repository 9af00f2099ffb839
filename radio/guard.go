package radio

import (
	"context"
	"errors"
	"time"
)

// Guard switches boards off for a program that no longer can, because it has died or
// stands still. A driver asks it before anything of a board's transmit chain is switched
// on, and sends nothing without it.
type Guard interface {
	// Watch has the guard take a way of its own to a board, which its URI names for the
	// guard, and keep it. It switches the board off when the program ends with the watch
	// held, and when the program gives no sign of life for longer than limit; 0 is for no
	// limit. It fails where the guard is not alive or has no way to the board.
	Watch(ctx context.Context, board URI, limit time.Duration) (Watch, error)
}

// Watch is a guard's over one board.
type Watch interface {
	// AfterLoss calls f, in a goroutine of its own, once the guard can no longer be relied
	// on, or has switched boards off. It stays so: nothing is to be sent any more. Stop
	// has f not called, and reports whether that was so: it is false once f was called.
	AfterLoss(f func()) (stop func() bool)
	// Err returns the cause of that now, and whether the program itself stood still for
	// longer than the limit, which it may learn here before f is called. It is to be asked
	// once more behind whatever switches a board on, because a program may be stopped
	// between any two of its steps.
	Err() error
	// Release lets go of a board that is off. It must not be called for one that could not
	// be switched off: the guard tries again when the program ends.
	Release()
}

// ErrNoGuard: nothing watches over the board.
var ErrNoGuard = errors.New("nothing is sent without a guard that switches the board off when this program cannot")

// ErrStoodStill: the program was stopped for longer than its boards may be without a sign of
// life. It comes with ErrGuard.
var ErrStoodStill = errors.New("this program stood still")

// ErrGuard: the guard can no longer be relied on, or has switched the boards off.
var ErrGuard = errors.New("the guard of the carriers")
