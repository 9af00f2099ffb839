package hackrf_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/hackrf"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/virtual"
)

// done is a context that polls.
func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// events returns what has happened to a transmission so far.
func events(tx radio.Transmitter) (all []radio.Event) {
	for {
		e, err := tx.Event(done())
		if err != nil {
			return all
		}
		all = append(all, e)
	}
}

// kinds leaves of events their kinds.
func kinds(all []radio.Event) (k []radio.EventKind) {
	for _, e := range all {
		k = append(k, e.Kind)
	}
	return k
}

// until runs step until met, which something that runs by itself brings about.
func until(t testing.TB, what string, met func() bool, step func()) {
	t.Helper()
	for end := time.Now().Add(patience); !met(); step() {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		runtime.Gosched()
	}
}

// served reports whether a board that streams has had from its host all that it needs
// for a millisecond and more.
func served(b *virtual.HackRF) bool {
	const comfort = 16 << 10
	switch m := b.M0(); m.Active {
	case virtual.M0TXStart:
		return b.Armed()
	case virtual.M0TXRun:
		return int32(m.M4Count-m.M0Count) >= comfort
	case virtual.M0Receive:
		return int32(m.M0Count-m.M4Count) <= comfort
	}
	return true
}

// run lets time go on, no faster than hosts serve their boards.
func (r *rig) run(clock *loopback.ManualClock, d time.Duration) {
	r.t.Helper()
	for range d / time.Millisecond {
		until(r.t, "hosts to serve their boards", func() bool {
			for _, b := range r.boards {
				if !served(b) {
					return false
				}
			}
			return true
		}, func() {})
		clock.Advance(time.Millisecond)
		r.bench.Index() // brings the bench up to its clock
	}
}

// realtime are the parameters for a bench with a clock that the test moves: nothing
// goes by the machine's.
const realtime = "rate_hz=2e6&lna=0&vga=0&transfer=16384&poll_ms=60000&deadline_ms=0&"

// A transmitter that is kept fed: the index goes on with time, blocks go where they
// are written or are late, and a burst that dries up is an underrun.
func TestFill(t *testing.T) {
	radiotest.Leaks(t)
	clock := &loopback.ManualClock{}
	r := newRig(t, rigConfig{boards: 2, clock: clock})
	tx, rx := transmitter(t, r.open(0, realtime)), receiver(t, r.open(1, realtime))
	start(t, rx, tx)
	ctx := limited(t)
	pacer := tx.(radio.Pacer)
	r.run(clock, 20*time.Millisecond)
	early := pacer.Earliest()
	if early < 40000 {
		t.Errorf("after 20 ms at 2 Msps the index is %d", early)
	}
	x := noise(1, 5000)
	at := early + 100000 // the driver may not have filled its queue yet
	_, err := tx.Write(ctx, x, radio.TxMeta{Timed: true, Start: at, BurstEnd: true})
	ok(t, err)
	_, err = tx.Write(ctx, x[:700], radio.TxMeta{Timed: true, Start: early - 1, BurstEnd: true})
	ok(t, err)
	open := at + 30000
	_, err = tx.Write(ctx, x[:3000], radio.TxMeta{Timed: true, Start: open})
	ok(t, err)
	r.run(clock, 150*time.Millisecond)

	got := make([]complex64, 270000)
	n, meta, err := radio.ReadFull(ctx, rx, got)
	ok(t, err)
	first := find(got[:n], x)
	second := find(got[first+5000:n], x[:3000]) + first + 5000
	if first < 0 || second-first != 30000 || len(meta.Gaps) > 0 || len(meta.Changes) > 0 {
		t.Errorf("blocks at %d and %d, %+v", first, second, meta)
	}
	var sent []radio.Event
	until(t, "three events", func() bool { sent = append(sent, events(tx)...); return len(sent) >= 3 }, func() { r.run(clock, time.Millisecond) })
	want := map[radio.EventKind]radio.SampleIndex{radio.Late: early - 1, radio.BurstSent: at + 5000, radio.Underrun: open + 3000}
	for _, e := range sent {
		if index, ok := want[e.Kind]; !ok || e.Index != index || !e.Exact {
			t.Errorf("event %+v, want %+v", e, want)
		}
	}
	if len(sent) != 3 {
		t.Errorf("events %+v", sent)
	}
	// What follows an underrun without an index goes next.
	next := pacer.Earliest()
	_, err = tx.Write(ctx, x[:10], radio.TxMeta{BurstEnd: true})
	ok(t, err)
	until(t, "the burst", func() bool { sent = events(tx); return len(sent) > 0 }, func() { r.run(clock, time.Millisecond) })
	if e := sent[0]; e.Kind != radio.BurstSent || e.Index < next+10 {
		t.Errorf("event %+v, written at %d", e, next)
	}
}

// What the board loses is a gap that is not exact, between two epochs; what comes
// after it is at its index again, because the board says how long one loss was.
func TestBoardLosesReceived(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 2})
	tx, rx := transmitter(t, r.open(0, lockstep)), receiver(t, r.open(1, lockstep+"&poll_ms=60000&ring=4"))
	ok(t, r.boards[1].Lose(60000, 777))
	start(t, tx, rx)
	ctx := limited(t)
	x := noise(3, 400000)
	feed(t, tx, x, 500000)
	e0 := rx.Epoch()

	got := make([]complex64, 8192)
	_, meta, err := radio.ReadFull(ctx, rx, got)
	ok(t, err, rx.(radio.LossChecker).CheckLoss(ctx))
	if meta.Epoch != e0 {
		t.Errorf("epoch %d, want %d", meta.Epoch, e0)
	}
	all := append([]complex64(nil), got...)
	whole := meta
	for len(all) < 300000 {
		n, meta, err := rx.Read(ctx, got)
		ok(t, err)
		ok(t, whole.Append(len(all), meta))
		all = append(all, got[:n]...)
		ok(t, rx.(radio.LossChecker).CheckLoss(ctx))
	}
	if len(whole.Gaps) != 1 || whole.Gaps[0].Exact || whole.Gaps[0].Length != 777 || whole.Flags&radio.Overrun == 0 {
		t.Fatalf("gaps %+v", whole.Gaps)
	}
	at := whole.Gaps[0].At
	if at < 60000 || at > 60000+(4+2+4+1)*8192+32768 { // ring, reader, filler, queue and board
		t.Errorf("the gap is at %d", at)
	}
	if !same(all[:60000], x[:60000]) {
		t.Error("other samples before the loss")
	}
	for k := at; k < len(all); k++ {
		if all[k] != x[whole.Index(k)] {
			t.Fatalf("another sample at %d, index %d", k, whole.Index(k))
		}
	}
	// A reader that is in step with the board hears of the loss a read later.
	if len(whole.Changes) != 2 || whole.Changes[0].At > 60000+8192 || whole.Changes[1].At < 60000 || whole.EpochAt(len(all)-1) != rx.Epoch() {
		t.Errorf("epochs %+v, now %d", whole.Changes, rx.Epoch())
	}
}

// feed writes x in a goroutine and promises zeros after it.
func feed(t testing.TB, tx radio.Transmitter, x []complex64, idle radio.SampleIndex) {
	ctx := limited(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := tx.Write(ctx, x, radio.TxMeta{BurstEnd: true}); err != nil {
			if !errors.Is(err, radio.ErrClosed) {
				t.Error(err)
			}
			return
		}
		if err := tx.(radio.Idler).Idle(ctx, idle); err != nil && !errors.Is(err, radio.ErrClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { <-ended })
}

// What the host drops is counted to the sample.
func TestHostDrops(t *testing.T) {
	radiotest.Leaks(t)
	clock := &loopback.ManualClock{}
	r := newRig(t, rigConfig{boards: 2, clock: clock})
	tx, rx := transmitter(t, r.open(0, realtime)), receiver(t, r.open(1, realtime+"ring=16"))
	start(t, rx, tx)
	ctx := limited(t)
	x := noise(4, 400000)
	_, err := tx.Write(ctx, x, radio.TxMeta{})
	ok(t, err)
	r.run(clock, 130*time.Millisecond)
	epoch := rx.Epoch()
	var all []complex64
	var whole radio.Meta
	got := make([]complex64, 5000)
	for len(all) < 200000 {
		n, meta, err := rx.Read(ctx, got)
		ok(t, err)
		ok(t, whole.Append(len(all), meta))
		all = append(all, got[:n]...)
		r.run(clock, 2*time.Millisecond)
	}
	if len(whole.Gaps) == 0 {
		t.Fatal("no gaps")
	}
	for _, g := range whole.Gaps {
		if !g.Exact || g.Length <= 0 {
			t.Errorf("gap %+v", g)
		}
	}
	if rx.Epoch() != epoch {
		t.Error("a loss that was counted began an epoch")
	}
	// Where the transmission begins in the receiver's count is known from before
	// the gap.
	origin := find(all[:whole.Gaps[0].At], x[:100])
	if origin < 0 {
		t.Fatal("the beginning was lost as well")
	}
	for k := range all {
		if i := int(whole.Index(k)) - origin; i >= 0 && all[k] != x[i] {
			t.Fatalf("another sample at %d, index %d", k, whole.Index(k))
		}
	}
}

// A shortfall of a transmitter is told with an estimate, and begins an epoch.
func TestBoardLosesSent(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 2})
	tx, rx := transmitter(t, r.open(0, lockstep+"&poll_ms=60000")), receiver(t, r.open(1, lockstep))
	ok(t, r.boards[0].Lose(60000, 555))
	start(t, tx, rx)
	ctx := limited(t)
	x := noise(5, 200000)
	feed(t, tx, x, 300000)
	e0 := tx.Epoch()
	got := make([]complex64, 150000)
	_, _, err := radio.ReadFull(ctx, rx, got)
	ok(t, err, tx.(radio.LossChecker).CheckLoss(ctx))
	if !same(got[:60000], x[:60000]) || !same(got[60555:100000], x[60000:100000-555]) {
		t.Error("other samples")
	}
	all := events(tx)
	var told []radio.Event
	for _, e := range all {
		if e.Kind != radio.BurstSent {
			told = append(told, e)
		}
	}
	if len(told) != 3 || told[0].Kind != radio.Underrun || told[0].Exact || told[0].Count != 555 || told[1].Kind != radio.EpochChanged || told[2].Epoch != tx.Epoch() || tx.Epoch() == e0 {
		t.Fatalf("events %+v", all)
	}
	if told[1].Index > 60000 || told[2].Index < 60000 {
		t.Errorf("the loss is told between %d and %d", told[1].Index, told[2].Index)
	}
}

// A retune begins epochs around it on every kind of stream.
func TestRetune(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 2})
	a, b := r.open(0, lockstep), r.open(1, lockstep+"&ring=2")
	tx, rx := transmitter(t, a), receiver(t, b)
	start(t, tx, rx)
	ctx := limited(t)
	feed(t, tx, noise(6, 300000), 500000)
	got := make([]complex64, 250000)
	_, before, err := radio.ReadFull(ctx, rx, got[:10000])
	ok(t, err)
	counted := r.boards[1].M0().M0Count / 2
	_, err = b.SetFrequency(ctx, radio.Receive, 915e6)
	ok(t, err)
	_, meta, err := radio.ReadFull(ctx, rx, got[10000:])
	ok(t, err)
	if meta.Epoch != before.Epoch || len(meta.Changes) != 2 || len(meta.Gaps) != 0 {
		t.Fatalf("%+v", meta)
	}
	// The bench may have gone on meanwhile by what the host had room for, and the
	// synthesizer settles for 1 ms, 10,000 samples.
	from, to := meta.Index(meta.Changes[0].At), meta.Index(meta.Changes[1].At)
	if from < radio.SampleIndex(counted) || to < from+10000 || to > from+10000+100000 {
		t.Errorf("epochs begin at %d and %d; the board was at %d", from, to, counted)
	}
	e0 := tx.Epoch()
	_, err = a.SetFrequency(ctx, radio.Transmit, 915e6)
	ok(t, err)
	k := slices.DeleteFunc(kinds(events(tx)), func(k radio.EventKind) bool { return k == radio.BurstSent })
	if len(k) != 2 || k[0] != radio.EpochChanged || tx.Epoch() == e0 {
		t.Errorf("events %v, epoch %d after %d", k, tx.Epoch(), e0)
	}
	if f := r.boards[0].Settings().Frequency; f != 915e6 {
		t.Errorf("the board is at %v", f)
	}
}

// Boards that wait for a trigger are armed until it comes, and then begin at the
// same sample.
func TestTrigger(t *testing.T) {
	for _, api := range []uint16{virtual.API2018, virtual.API2022, virtual.API2026} {
		radiotest.Leaks(t)
		r := newRig(t, rigConfig{boards: 4, api: api, triggers: []virtual.Wire{{From: 3, To: 0}, {From: 3, To: 1}}})
		slave := lockstep + "&trigger=trigger-in&poll_ms=1&limit_ms=0"
		a, b := r.open(0, slave), r.open(1, slave)
		// The board that fires receives; board 2 streams not, and so must not be
		// awaited: it transmits nothing.
		c := r.open(2, lockstep+"&limit_ms=0")
		tx1, tx2, tx3 := transmitter(t, a), transmitter(t, b), transmitter(t, c)
		rx := receiver(t, r.open(3, lockstep))
		start(t, tx1, tx2, tx3)
		ctx := limited(t)
		x, y := halves(7, 50000), halves(8, 50000)
		for tx, s := range map[radio.Transmitter][]complex64{tx1: x, tx2: y} {
			_, err := tx.Write(ctx, s, radio.TxMeta{BurstEnd: true})
			ok(t, err, tx.(radio.Idler).Idle(ctx, 200000))
			if tx.State() != radio.Armed {
				t.Errorf("state %v before the trigger", tx.State())
			}
		}
		ok(t, tx3.(radio.Idler).Idle(ctx, 200000))
		until(t, "the boards to be armed", func() bool { return r.boards[0].Armed() && r.boards[1].Armed() }, func() {})
		start(t, rx)
		got := make([]complex64, 50000)
		_, _, err := radio.ReadFull(ctx, rx, got)
		ok(t, err)
		for k := range got {
			if d := got[k] - x[k] - y[k]; max(real(d), -real(d), imag(d), -imag(d)) > 1e-6 {
				t.Fatalf("sample %d is %v, want %v", k, got[k], x[k]+y[k])
			}
		}
		until(t, "both to run", func() bool { return tx1.State() == radio.Running && tx2.State() == radio.Running }, func() {})
		ok(t, rx.Close())
	}
}

// A trigger that never comes: reads wait as long as their context, and Close ends
// it all.
func TestTriggerNever(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 2, clock: loopback.WallClock()})
	params := "rate_hz=2e6&trigger=trigger-in&deadline_ms=1"
	a, b := r.open(0, params), r.open(1, params)
	tx, rx := transmitter(t, a), receiver(t, b)
	start(t, tx, rx)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := rx.Read(ctx, make([]complex64, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if rx.State() != radio.Armed || tx.State() != radio.Armed {
		t.Errorf("states %v, %v", rx.State(), tx.State())
	}
	_, err := tx.Write(limited(t), noise(1, 1000), radio.TxMeta{})
	ok(t, err, rx.Close())
	// A board that never began has sent nothing of it, and says so.
	if err := tx.Close(); err == nil {
		t.Error("a burst that never began was sent")
	}
	if m := r.boards[0].Settings().Mode; m != virtual.ModeOff {
		t.Errorf("mode %d", m)
	}
}

// A clock that is lost while a stream runs.
func TestClockLost(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 2, reference: true})
	params := lockstep + "&clock=external&poll_ms=60000"
	tx, rx := transmitter(t, r.open(0, params)), receiver(t, r.open(1, params+"&ring=2"))
	start(t, tx, rx)
	ctx := limited(t)
	feed(t, tx, noise(9, 300000), 400000)
	got := make([]complex64, 100000)
	_, meta, err := radio.ReadFull(ctx, rx, got)
	ok(t, err, rx.(radio.LossChecker).CheckLoss(ctx), tx.(radio.LossChecker).CheckLoss(ctx))
	if meta.Flags&radio.Unlocked != 0 || len(meta.Changes) > 0 || len(events(tx)) > 0 {
		t.Errorf("%+v", meta)
	}
	ok(t, r.bench.SetReference(0, false), r.bench.SetReference(1, false))
	ok(t, rx.(radio.LossChecker).CheckLoss(ctx), tx.(radio.LossChecker).CheckLoss(ctx))
	_, meta, err = radio.ReadFull(ctx, rx, got)
	ok(t, err)
	if meta.Flags&radio.Unlocked == 0 || meta.EpochAt(len(got)-1) != rx.Epoch() || rx.Epoch() == 1 {
		t.Errorf("%+v", meta)
	}
	if k := kinds(events(tx)); len(k) != 2 || k[0] != radio.EpochChanged {
		t.Errorf("events %v", k)
	}
}

// Streams follow each other on a board, one at a time, each in its own epoch.
func TestStreamsInTurn(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1, clock: loopback.WallClock()})
	d := r.open(0, "rate_hz=2e6")
	ctx := limited(t)
	seen := map[radio.Epoch]bool{}
	for range 3 {
		epoch := receiveInTurn(t, d)
		if seen[epoch] {
			t.Errorf("epoch %d again", epoch)
		}
		seen[epoch] = true
		sendInTurn(t, d)
	}
	ok(t, d.Close(), d.Close())
	if _, err := d.OpenReceiver(ctx); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if _, err := d.SetFrequency(ctx, radio.Receive, 1e9); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// receiveInTurn takes a receiver through all its states, and returns its epoch.
func receiveInTurn(t *testing.T, d *hackrf.Device) radio.Epoch {
	ctx := limited(t)
	rx := receiver(t, d)
	if _, err := d.OpenTransmitter(ctx); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if _, _, err := rx.Read(ctx, make([]complex64, 1)); !errors.Is(err, radio.ErrNotStarted) {
		t.Error(err)
	}
	start(t, rx)
	if err := rx.Start(ctx); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if _, err := d.SetSampleRate(ctx, radio.Receive, 4e6); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	_, meta, err := radio.ReadFull(ctx, rx, make([]complex64, 1000))
	ok(t, err, rx.Close(), rx.Close())
	if _, _, err := rx.Read(ctx, make([]complex64, 1)); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if err := rx.Start(ctx); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	return meta.Epoch
}

// sendInTurn takes a transmitter through all its states.
func sendInTurn(t *testing.T, d *hackrf.Device) {
	ctx := limited(t)
	tx := transmitter(t, d)
	if _, err := tx.Write(ctx, make([]complex64, 1), radio.TxMeta{}); !errors.Is(err, radio.ErrNotStarted) {
		t.Error(err)
	}
	start(t, tx)
	_, err := tx.Write(ctx, []complex64{2, 0, complex(0, -3)}, radio.TxMeta{BurstEnd: true})
	ok(t, err)
	if n := tx.(radio.ClipCounter).Clipped(); n != 2 {
		t.Errorf("%d samples clipped, want 2", n)
	}
	ok(t, tx.Close(), tx.Close())
	if _, err := tx.Write(ctx, make([]complex64, 1), radio.TxMeta{}); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if e, err := tx.Event(ctx); err != nil || e.Kind != radio.BurstSent {
		t.Errorf("event %+v, %v", e, err)
	}
	if _, err := tx.Event(ctx); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// A read that is bounded does not step over its bound.
func TestReadUntil(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1})
	rx := receiver(t, r.open(0, lockstep))
	start(t, rx)
	ctx := limited(t)
	dst := make([]complex64, 20000)
	index := radio.SampleIndex(0)
	for _, bound := range []radio.SampleIndex{100, 8192, 8193, 50000} {
		for index < bound {
			n, meta, err := rx.(radio.Bounded).ReadUntil(ctx, dst, bound)
			ok(t, err)
			if n == 0 || meta.First != index || meta.Index(n-1) >= bound {
				t.Fatalf("%d samples from %d, bound %d", n, meta.First, bound)
			}
			index += radio.SampleIndex(n)
		}
		if n, _, err := rx.(radio.Bounded).ReadUntil(ctx, dst, bound); n != 0 || err != nil {
			t.Errorf("at the bound: %d, %v", n, err)
		}
	}
	if l := radio.ClipLevel(rx); !(l > 0.99 && l < 1) {
		t.Errorf("clip level %v", l)
	}
}

var _ radio.Device = (*hackrf.Device)(nil)
