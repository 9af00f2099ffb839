package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"ringwave/learner/hosts/remote"
	"ringwave/radio"
	"ringwave/radio/radiotest"
)

// Earliest is what was reported and the time since it was asked for while the stream runs;
// it stands still before, and does not go back.
func TestEarliest(t *testing.T) {
	now := newClock()
	f := newFake()
	h := hostOf(t, f, func(c *remote.HostConfig) { c.Now = now.Now })
	d, err := remote.OpenTimed(limited(t), &direct{host: h}, 0, now.Now, never)
	ok(t, err)
	f.set(func() { f.earliest = 50 })
	tx, err := d.(radio.TransmitOpener).OpenTransmitter(limited(t))
	ok(t, err)
	p := tx.(radio.Pacer)
	want := func(index radio.SampleIndex) {
		t.Helper()
		if got := p.Earliest(); got != index {
			t.Errorf("earliest %d; expected is %d", got, index)
		}
	}
	want(50)
	now.Add(time.Second)
	want(50) // it does not run
	f.set(func() { f.earliest, f.state = 70, radio.Running })
	remote.Look(tx)
	want(70)
	now.Add(time.Second) // at 1,000 samples a second
	want(1070)
	f.set(func() { f.earliest = 1000 })
	remote.Look(tx)
	want(1070)
	now.Add(100 * time.Millisecond)
	want(1100)
	f.set(func() { f.earliest = 5000 })
	want(1100)
	remote.Look(tx)
	want(5000)
	// What the host waited for is not added.
	f.set(func() { f.writes = func() { f.earliest = 6000; now.Add(10 * time.Second) } })
	_, err = tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
	ok(t, err)
	want(6000)
	ok(t, d.Close())
	now.Add(time.Hour)
	want(6000)
}

// A burst for which there is no room at once is taken as there is, and what is left follows.
func TestTakenInParts(t *testing.T) {
	f := newFake()
	f.room = 4
	tx := running(t, opened(t, &direct{host: hostOf(t, f, nil)}))
	ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
	defer cancel()
	n, err := tx.Write(ctx, noise(1, 6), radio.TxMeta{Timed: true, Start: 9, BurstEnd: true})
	ok(t, err)
	want := []radio.TxMeta{{Timed: true, Start: 9, BurstEnd: true}, {BurstEnd: true}}
	if n != 6 || len(f.written) != 2 || !reflect.DeepEqual(f.metas, want) {
		t.Fatalf("%d samples in %d parts, %+v", n, len(f.written), f.metas)
	}
	same(t, append(f.written[0], f.written[1]...), noise(1, 6))
	// What is not taken in time is told with what is.
	ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	f.room = 1
	n, err = tx.Write(ctx, noise(2, 60), radio.TxMeta{})
	if !errors.Is(err, context.DeadlineExceeded) || n == 0 || n != len(f.written)-2 {
		t.Errorf("%d samples of %d written: %v", n, len(f.written)-2, err)
	}
}

// Events whose answer was lost come with the next, once.
func TestLostAnswer(t *testing.T) {
	f := newFake()
	c := &direct{host: hostOf(t, f, nil)}
	tx := running(t, opened(t, c))
	for k := range 3 {
		f.queue.Push(radio.Event{Kind: radio.Late, Index: radio.SampleIndex(k)})
	}
	remote.Look(tx)
	f.queue.Push(radio.Event{Kind: radio.Late, Index: 3})
	c.mute = true
	if _, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{}); err == nil {
		t.Error("there was no answer")
	}
	c.mute = false
	f.queue.Push(radio.Event{Kind: radio.Late, Index: 4})
	remote.Look(tx)
	remote.Look(tx)
	all := events(tx)
	for k, e := range all {
		if e.Index != radio.SampleIndex(k) {
			t.Errorf("event %d is %+v", k, e)
		}
	}
	if len(all) != 5 {
		t.Errorf("%d events; expected are 5", len(all))
	}
}

// A host that is closed closes the stream, ends what waits, and answers nothing.
func TestHostCloses(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake()
	f.room = 1
	h := hostOf(t, f, nil)
	c := &taped{direct: direct{host: h}}
	tx := running(t, opened(t, c))
	done := make(chan error)
	waits := make(chan struct{})
	f.writes = func() { close(waits) }
	go func() {
		_, err := tx.Write(context.Background(), noise(1, 10), radio.TxMeta{})
		done <- err
	}()
	<-waits
	ok(t, h.Close())
	if err := <-done; !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if f.closed != 1 {
		t.Errorf("closed %d times", f.closed)
	}
	if a := h.Handle(limited(t), c.asked[0]); a != nil {
		t.Errorf("answer %q", a)
	}
	ok(t, h.Close())
}

// Samples that are not what their digest says are not sent.
func TestOtherDigest(t *testing.T) {
	f := newFake()
	h := hostOf(t, f, nil)
	c := &taped{direct: direct{host: h}}
	tx := running(t, opened(t, c))
	_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
	ok(t, err)
	b := bytes.Clone(c.asked[len(c.asked)-1])
	b[6]++ // the ID
	b[len(b)-8] ^= 1
	if a := h.Handle(limited(t), b); !bytes.Contains(a, []byte("another digest")) || len(f.written) != 1 {
		t.Errorf("answer %q, %d bursts", a, len(f.written))
	}
}

// A stream that waits for its trigger is full when Start returns.
func TestStartFills(t *testing.T) {
	f := newFake()
	tx, err := opened(t, &direct{host: hostOf(t, f, nil)}).(radio.TransmitOpener).OpenTransmitter(limited(t))
	ok(t, err)
	f.set(func() { f.state, f.filling = radio.Armed, 7 })
	ok(t, tx.Start(limited(t)))
	if at := tx.(radio.Pacer).Earliest(); at != 70 || tx.State() != radio.Armed {
		t.Errorf("%v at %d; expected is 70", tx.State(), at)
	}
	ok(t, tx.Close())
	if remote.Watched(tx) {
		t.Error("a stream that is closed is still asked how it does")
	}
}

// All events come, in order and once, however many there are at a time.
func TestManyEvents(t *testing.T) {
	f := newFake()
	tx := running(t, opened(t, &direct{host: hostOf(t, f, nil)}))
	ok(t, tx.(radio.LossChecker).CheckLoss(limited(t)))
	all := events(tx)
	for k, e := range all {
		if e.Index != radio.SampleIndex(k) || e.Kind != radio.Underrun {
			t.Fatalf("event %d is %+v", k, e)
		}
	}
	if len(all) != 1000 {
		t.Errorf("%d events; expected are 1000", len(all))
	}
	// Where there are more than a driver holds, some are lost, and it is told.
	ok(t, tx.(radio.LossChecker).CheckLoss(limited(t)))
	all = events(tx)
	if last := all[len(all)-1]; len(all) < 1000 || last.Kind != radio.EventsLost {
		t.Errorf("%d events, the last %+v", len(all), last)
	}
}

// A stream is asked how it does, so that what happens comes without a call.
func TestAskedNowAndThen(t *testing.T) {
	radiotest.Leaks(t)
	f := newFake()
	d, err := remote.OpenTimed(limited(t), &direct{host: hostOf(t, f, nil)}, 0, time.Now, time.Millisecond)
	ok(t, err)
	tx := running(t, d)
	f.queue.Push(radio.Event{Kind: radio.BurstSent, Index: 77})
	e, err := tx.Event(limited(t))
	ok(t, err)
	if e.Kind != radio.BurstSent || e.Index != 77 {
		t.Errorf("%+v", e)
	}
	ok(t, d.Close())
	if _, err := tx.Event(limited(t)); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// That the host is gone is told by the next call, once, unless it is back by then.
func TestGone(t *testing.T) {
	c := &direct{host: hostOf(t, newFake(), nil)}
	tx := running(t, opened(t, c))
	write := func() error {
		_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
		return err
	}
	c.setGone(true)
	remote.Look(tx)
	c.setGone(false)
	if err := write(); !errors.Is(err, errGone) {
		t.Error(err)
	}
	ok(t, write())
	c.setGone(true)
	remote.Look(tx)
	c.setGone(false)
	remote.Look(tx)
	ok(t, write())
	c.setGone(true)
	if err := write(); !errors.Is(err, errGone) {
		t.Error(err)
	}
	if err := tx.Close(); !errors.Is(err, errGone) || tx.State() != radio.Closed {
		t.Error(err)
	}
}

// What a stream fails with is told apart at the proxy as on its host.
func TestKinds(t *testing.T) {
	f := newFake()
	for _, kind := range []error{radio.ErrStarved, radio.ErrBusy, radio.ErrUntimed, radio.ErrNotStarted, radio.ErrNotPermitted, radio.ErrNoGuard, radio.ErrGuard, radio.ErrClosed} {
		tx := running(t, opened(t, &direct{host: hostOf(t, f, nil)}))
		fails := fmt.Errorf("sending with fake: %w", kind)
		f.set(func() { f.fails = fails })
		_, err := tx.Write(limited(t), noise(1, 10), radio.TxMeta{})
		if !errors.Is(err, kind) || err.Error() != fails.Error() {
			t.Errorf("%v; expected is %v", err, fails)
		}
		if kind != radio.ErrBusy && errors.Is(err, radio.ErrBusy) {
			t.Errorf("%v is taken for another", err)
		}
	}
}

// An operation of the application's own is done on the stream.
func TestDo(t *testing.T) {
	f := newFake()
	h := hostOf(t, f, func(c *remote.HostConfig) {
		c.Do = func(ctx context.Context, tx radio.Transmitter, op string, args []byte) ([]byte, error) {
			if op != "frame" {
				return nil, fmt.Errorf("no operation %q", op)
			}
			_, err := tx.Write(ctx, make([]complex64, len(args)), radio.TxMeta{})
			return append(args, '!'), err
		}
	})
	tx := running(t, opened(t, &direct{host: h}))
	own := tx.(interface {
		Do(ctx context.Context, op string, args []byte) ([]byte, error)
	})
	f.queue.Push(radio.Event{Kind: radio.Late, Index: 5})
	got, err := own.Do(limited(t), "frame", []byte{1, 2, 3})
	ok(t, err)
	if string(got) != "\x01\x02\x03!" || len(f.written) != 1 || len(f.written[0]) != 3 {
		t.Errorf("%q, %v", got, f.written)
	}
	if all := events(tx); len(all) != 1 || all[0].Index != 5 {
		t.Errorf("%v", all)
	}
	if _, err := own.Do(limited(t), "else", nil); err == nil || err.Error() != `no operation "else"` {
		t.Error(err)
	}
	tx = running(t, opened(t, &direct{host: hostOf(t, f, nil)}))
	_, err = tx.(interface {
		Do(ctx context.Context, op string, args []byte) ([]byte, error)
	}).Do(limited(t), "frame", nil)
	if err == nil {
		t.Error("a host without operations has done one")
	}
}

// Each set of capabilities is the one that was asked for.
func TestCapabilitySets(t *testing.T) {
	for set := range 16 {
		has := func(b int) bool { return set&b != 0 }
		tx := remote.Streams(has(1), has(2), has(4), has(8))
		_, paces := tx.(radio.Pacer)
		_, idles := tx.(radio.Idler)
		_, checks := tx.(radio.LossChecker)
		_, counts := tx.(radio.ClipCounter)
		if paces != has(1) || idles != has(2) || checks != has(4) || counts != has(8) {
			t.Errorf("set %04b is %v, %v, %v, %v", set, counts, checks, idles, paces)
		}
		d := remote.Devices(has(1), has(2), has(4))
		_, clock := d.(radio.ClockControl)
		_, trigger := d.(radio.TriggerControl)
		_, timed := d.(radio.TimeControl)
		if clock != has(1) || trigger != has(2) || timed != has(4) {
			t.Errorf("set %03b is %v, %v, %v", set&7, timed, trigger, clock)
		}
	}
}
