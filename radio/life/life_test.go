package life

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var errOver = errors.New("over")

// ended reports whether a channel is closed.
func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestEnd(t *testing.T) {
	for _, x := range []struct {
		name  string
		ends  []error
		cause error
	}{
		{"none", nil, nil},
		{"by a cause", []error{errOver}, errOver},
		{"by none", []error{nil}, context.Canceled},
		{"the first counts", []error{errOver, context.DeadlineExceeded}, errOver},
		{"the first counts, of none", []error{nil, errOver}, context.Canceled},
	} {
		var asked, unasked Life
		done := asked.Done()
		for _, cause := range x.ends {
			asked.End(cause)
			unasked.End(cause)
		}
		for what, got := range map[string]bool{"Done before": ended(done), "Done behind": ended(asked.Done()), "Done first asked behind": ended(unasked.Done())} {
			if got != (x.cause != nil) {
				t.Errorf("%s: %s is closed: %v", x.name, what, got)
			}
		}
		if asked.Err() != x.cause || unasked.Err() != x.cause {
			t.Errorf("%s: %v, %v, want %v", x.name, asked.Err(), unasked.Err(), x.cause)
		}
	}
}

// A joined context ends with either, at once, and keeps what Err and Cause say of it. It is
// forgotten when it is released, however it ended.
func TestJoin(t *testing.T) {
	theirs := errors.New("the caller's")
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancelLate()
	for _, x := range []struct {
		name       string
		before     bool // what ends it has happened before
		ctx, life  bool // end it, in this order
		late       bool
		err, cause error
	}{
		{name: "neither"},
		{name: "the call", ctx: true, err: context.Canceled, cause: theirs},
		{name: "the life", life: true, err: context.Canceled, cause: errOver},
		{name: "both", ctx: true, life: true, err: context.Canceled, cause: theirs},
		{name: "the call before", before: true, ctx: true, err: context.Canceled, cause: theirs},
		{name: "the life before", before: true, life: true, err: context.Canceled, cause: errOver},
		{name: "both before", before: true, ctx: true, life: true, err: context.Canceled, cause: theirs},
		{name: "a deadline", late: true, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
		{name: "a deadline, and the life", late: true, life: true, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
	} {
		var l Life
		parent := t.Context()
		if x.late {
			parent = late
		}
		parent, cancel := context.WithCancelCause(parent)
		end := func() {
			if x.ctx {
				cancel(theirs)
			}
			if x.life {
				l.End(errOver)
			}
		}
		if x.before {
			end()
		}
		ctx, release := l.Join(parent)
		if !x.before {
			end()
		}
		if ctx.Err() != x.err || context.Cause(ctx) != x.cause {
			t.Errorf("%s: %v by %v, want %v by %v", x.name, ctx.Err(), context.Cause(ctx), x.err, x.cause)
		}
		if parent.Err() != nil && !x.ctx && !x.late {
			t.Errorf("%s: the caller's has ended, too", x.name)
		}
		if x.life && len(l.joined) != 0 {
			t.Errorf("%s: %d are kept behind the end", x.name, len(l.joined))
		}
		release()
		if ctx.Err() == nil || len(l.joined) != 0 {
			t.Errorf("%s: released: %v, %d are kept", x.name, ctx.Err(), len(l.joined))
		}
		cancel(nil)
	}
}

// watched is a context that tells when one that was made of it has ended.
type watched struct {
	context.Context
	told func()
}

func (w watched) Done() <-chan struct{} { return make(chan struct{}) }

// AfterFunc is what package context asks for before it starts a goroutine.
func (w watched) AfterFunc(func()) (stop func() bool) {
	return func() bool { w.told(); return true }
}

// Who waits for the life and for what follows from its end sees its end first.
func TestOrder(t *testing.T) {
	var l Life
	done, asked := l.Done(), 0
	ctx, release := l.Join(watched{t.Context(), func() {
		asked++
		if !ended(done) {
			t.Error("what was joined ended before the life")
		}
	}})
	defer release()
	l.End(errOver)
	if asked != 1 || ctx.Err() == nil {
		t.Errorf("asked %d times, %v", asked, ctx.Err())
	}
}

// A life of a context has ended as soon as that has, by its cause.
func TestOf(t *testing.T) {
	if l := Of(context.Background()); l.Err() != nil {
		t.Errorf("of one without an end: %v", l.Err())
	}
	for range 1000 {
		ctx, cancel := context.WithCancelCause(t.Context())
		asked, joined, waited := Of(ctx), Of(ctx), Of(ctx)
		if err := asked.Err(); err != nil {
			t.Fatal(err)
		}
		before, release := joined.Join(t.Context())
		defer release()
		cancel(errOver)
		if err := asked.Err(); err != errOver {
			t.Fatalf("asked: %v", err)
		}
		behind, release := joined.Join(t.Context())
		defer release()
		if context.Cause(behind) != errOver || context.Cause(before) != errOver {
			t.Fatalf("joined: %v, %v", context.Cause(behind), context.Cause(before))
		}
		<-waited.Done()
		if err := Of(ctx).Err(); err != errOver {
			t.Fatalf("of one that has ended: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := Of(ctx).Err(); err != context.DeadlineExceeded {
		t.Errorf("of a deadline: %v", err)
	}
}

func TestAfterEnd(t *testing.T) {
	var l Life
	calls := make(chan int, 8)
	stop := l.AfterEnd(func() { calls <- 1 })
	stopped := l.AfterEnd(func() { calls <- 2 })
	if !stopped() || stopped() {
		t.Error("it is stopped once")
	}
	if len(l.joined) != 1 {
		t.Errorf("%d are kept", len(l.joined))
	}
	l.End(errOver)
	if stop() {
		t.Error("it was stopped behind the end")
	}
	if n := <-calls; n != 1 {
		t.Errorf("called %d", n)
	}
	stop = l.AfterEnd(func() { calls <- 3 })
	if n := <-calls; n != 3 || stop() {
		t.Errorf("behind the end: called %d", n)
	}
	// A function may ask, and join, whatever the life is at.
	var again Life
	asked := make(chan error)
	again.AfterEnd(func() {
		ctx, release := again.Join(context.Background())
		defer release()
		asked <- errors.Join(again.Err(), context.Cause(ctx))
	})
	again.End(errOver)
	if err := <-asked; !errors.Is(err, errOver) {
		t.Error(err)
	}
	if len(calls) != 0 {
		t.Error("called again")
	}
}

// Whoever comes when, all that was joined has ended once Err says so.
func TestManyAtOnce(t *testing.T) {
	for range 200 {
		var l Life
		var all sync.WaitGroup
		var first atomic.Pointer[error]
		for k := range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				ctx, release := l.Join(t.Context())
				defer release()
				if k == 3 || k == 5 {
					cause := errors.New("of one")
					l.End(cause)
					err := l.Err()
					if !first.CompareAndSwap(nil, &err) && *first.Load() != err {
						t.Errorf("%v, and %v", *first.Load(), err)
					}
				}
				if l.Err() != nil && ctx.Err() == nil {
					t.Error("the life has ended and what was joined has not")
				}
				<-ctx.Done()
			}()
		}
		all.Wait()
		if len(l.joined) != 0 {
			t.Errorf("%d are kept", len(l.joined))
		}
	}
}

func TestEnded(t *testing.T) {
	if ctx := Ended(); ctx.Err() != context.Canceled || !ended(ctx.Done()) {
		t.Error(ctx.Err())
	}
}
