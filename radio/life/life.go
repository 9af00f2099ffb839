// Package life says how long something lives that calls wait within: a connection, a
// stream, a session. A context says how long one call may wait, and is handed on from call
// to call; what outlives a call keeps a Life in its place, and joins the two wherever it
// waits. It knows nothing of what it is that lives.
package life

import (
	"context"
	"sync"
)

// Life lasts until its End. The zero value is one that has begun. It is safe for use by
// several goroutines and must not be copied.
type Life struct {
	// over is closed where End is on its way: by the context that this life is of. It is
	// nil for a life of its own.
	over <-chan struct{}

	mu    sync.Mutex
	done  chan struct{} // nil until somebody asks for it
	cause error         // nil while it lasts
	// joined end the contexts that end with this life.
	joined map[*context.CancelCauseFunc]struct{}
}

// Of returns a life that ends with ctx, by its cause.
func Of(ctx context.Context) *Life {
	l := &Life{over: ctx.Done()}
	context.AfterFunc(ctx, func() { l.End(context.Cause(ctx)) })
	return l
}

// End ends the life and all contexts that are joined with it. The first cause counts; nil
// stands for context.Canceled.
func (l *Life) End(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	l.cause = cause
	close(l.channel()) // who waits for both is to see the life's end, not what follows from it
	for cancel := range l.joined {
		(*cancel)(cause) // calls nothing that could ask for the lock
	}
	l.joined = nil
}

// channel returns what Done gives. The lock is held.
func (l *Life) channel() chan struct{} {
	if l.done == nil {
		l.done = make(chan struct{})
	}
	return l.done
}

// Done returns a channel that is closed once the life has ended.
func (l *Life) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channel()
}

// Err returns why the life has ended, nil while it lasts.
func (l *Life) Err() error {
	l.catchUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// catchUp waits for an End that is on its way: a life of a context must not seem to last
// to who has seen the context end.
func (l *Life) catchUp() {
	select {
	case <-l.over:
		<-l.Done()
	default:
	}
}

// Join returns a context that ends with ctx or with the life, whichever is first, and by
// its cause. Release lets go of it, and ends it.
func (l *Life) Join(ctx context.Context) (_ context.Context, release context.CancelFunc) {
	l.catchUp()
	ctx, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		cancel(l.cause)
		return ctx, func() {}
	}
	if l.joined == nil {
		l.joined = map[*context.CancelCauseFunc]struct{}{}
	}
	l.joined[&cancel] = struct{}{}
	return ctx, func() {
		l.mu.Lock()
		delete(l.joined, &cancel)
		l.mu.Unlock()
		cancel(nil)
	}
}

// AfterEnd calls f in a goroutine of its own once the life has ended. Stop has it not
// called, and reports whether that was so: it is false once f was called.
func (l *Life) AfterEnd(f func()) (stop func() bool) {
	ctx, release := l.Join(context.Background())
	keep := context.AfterFunc(ctx, f)
	return func() bool {
		defer release()
		return keep()
	}
}

// Ended returns a context that has ended, for who takes what is there and waits for
// nothing.
func Ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
