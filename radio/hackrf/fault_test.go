package hackrf_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/hackrf"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// brief are deadlines that tests need not wait for long.
const brief = "&control_ms=50&deadline_ms=50&poll_ms=60000"

// What goes wrong with a request while a board is opened is told by its kind.
func TestOpenFaults(t *testing.T) {
	radiotest.Leaks(t)
	for fault, want := range map[virtual.Fault]error{virtual.Stall: usb.ErrStall, virtual.Hang: usb.ErrTimeout, virtual.Vanish: usb.ErrUnplugged} {
		for _, request := range []byte{1, 6, 7, 14, 15, 16, 17, 19, 20, 21, 23, 45} {
			r := newRig(t, rigConfig{faults: true, boards: 1})
			ok(t, r.faulty[0].OnRequest(request, 1, fault))
			d, err := r.tryOpen(0, brief)
			if request == 1 && fault != virtual.Vanish { // the second attempt switches it off
				ok(t, err, d.Close())
				continue
			}
			if !errors.Is(err, want) {
				t.Errorf("%v at request %d: %v", fault, request, err)
			}
			// The board is not held: it can be opened again, unless it is gone or
			// waits for ever.
			if fault == virtual.Stall {
				again, err := r.tryOpen(0, "")
				ok(t, err, again.Close())
			}
			ok(t, r.bench.Close())
		}
	}
}

// What goes wrong with a pipe ends a stream with its kind, and the board is off
// unless it is gone.
func TestPipeFaults(t *testing.T) {
	radiotest.Leaks(t)
	for fault, want := range map[virtual.Fault]error{virtual.Stall: usb.ErrStall, virtual.Hang: usb.ErrTimeout, virtual.Vanish: usb.ErrUnplugged} {
		for _, nth := range []int{1, 3, 9} {
			t.Run(fmt.Sprintf("%v %d", fault, nth), func(t *testing.T) {
				r := newRig(t, rigConfig{faults: true, boards: 2, clock: loopback.WallClock()})
				// Only what hangs is waited for: a busy machine is late, too.
				params := "rate_hz=2e6&transfer=16384&poll_ms=60000&limit_ms=0&deadline_ms=20000"
				if fault == virtual.Hang {
					params = "rate_hz=2e6&transfer=16384&poll_ms=60000&limit_ms=0&deadline_ms=300"
				}
				ok(t, r.faulty[0].OnTransfer(0x02, nth, fault), r.faulty[1].OnTransfer(0x81, nth, fault))
				tx, rx := transmitter(t, r.open(0, params)), receiver(t, r.open(1, params))
				ctx := limited(t)
				err := errors.Join(tx.Start(ctx), rx.Start(ctx))
				if err != nil && !errors.Is(err, want) {
					t.Errorf("start: %v", err)
				}
				if err != nil {
					return
				}
				for dst := make([]complex64, 10000); err == nil; {
					_, _, err = rx.Read(ctx, dst)
				}
				if !errors.Is(err, want) {
					t.Errorf("read: %v", err)
				}
				if _, _, again := rx.Read(ctx, make([]complex64, 1)); !errors.Is(again, want) {
					t.Errorf("read again: %v", again)
				}
				err = nil
				for src := make([]complex64, 10000); err == nil; {
					_, err = tx.Write(ctx, src, radio.TxMeta{})
				}
				if !errors.Is(err, want) {
					t.Errorf("write: %v", err)
				}
				if mode := r.boards[0].Settings().Mode; mode != virtual.ModeOff && fault != virtual.Vanish {
					t.Errorf("mode %d after a failure", mode)
				}
				ok(t, rx.Close(), tx.Close())
				if fault == virtual.Vanish {
					return
				}
				if mode := r.boards[1].Settings().Mode; mode != virtual.ModeOff {
					t.Errorf("mode %d after Close", mode)
				}
			})
		}
	}
}

// A transfer that is short loses nothing.
func TestShortReads(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{faults: true, boards: 2})
	for _, nth := range []int{1, 2, 5} {
		ok(t, r.faulty[1].OnTransfer(0x81, nth, virtual.Short))
	}
	tx, rx := transmitter(t, r.open(0, lockstep)), receiver(t, r.open(1, lockstep))
	start(t, tx, rx)
	x := noise(11, 200000)
	feed(t, tx, x, 300000)
	got := make([]complex64, len(x))
	_, meta, err := radio.ReadFull(limited(t), rx, got)
	ok(t, err)
	if !same(got, x) || len(meta.Gaps) > 0 {
		t.Errorf("other samples, %+v", meta)
	}
}

// The carrier goes off when the session ends, whatever the program is doing.
func TestSessionEnds(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1, clock: loopback.WallClock()})
	d := r.open(0, "rate_hz=2e6")
	tx := transmitter(t, d)
	start(t, tx)
	ended := make(chan error)
	go func() {
		var err error
		for src := make([]complex64, 100000); err == nil; {
			_, err = tx.Write(limited(t), src, radio.TxMeta{})
		}
		ended <- err
	}()
	until(t, "the carrier", func() bool { return r.boards[0].M0().Active == virtual.M0TXRun }, func() {})
	r.cut()
	if err := <-ended; !errors.Is(err, hackrf.ErrSessionOver) || !errors.Is(err, context.Canceled) {
		t.Errorf("write: %v", err)
	}
	if mode := r.boards[0].Settings().Mode; mode != virtual.ModeOff {
		t.Errorf("mode %d when a write has failed", mode)
	}
	ok(t, tx.Close(), d.Close())
	// Nothing can be sent after it.
	d = r.open(0, "")
	tx = transmitter(t, d)
	if err := tx.Start(limited(t)); !errors.Is(err, hackrf.ErrSessionOver) {
		t.Error(err)
	}
}

// Nothing is switched on for a session that is over, however short a time ago.
func TestStartBehindTheSession(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1})
	d := r.open(0, "")
	tx := transmitter(t, d)
	r.cut()
	if err := tx.Start(limited(t)); !errors.Is(err, hackrf.ErrSessionOver) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ok(t, tx.Close(), d.Close())
}

// Who transmits has a guard, from before the board is switched on until it is off; without
// one, or with one that is lost, there is no carrier.
func TestGuard(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1, clock: loopback.WallClock()})
	board := r.boards[0]
	never := func(what string) { t.Helper(); neverOn(t, board, what) }
	guarded := r.opener
	r.opener = hackrf.NewOpener(context.Background(), r.host, anything(t), nil)
	d := r.open(0, "rate_hz=2e6")
	if _, err := d.OpenTransmitter(limited(t)); !errors.Is(err, radio.ErrNoGuard) {
		t.Error(err)
	}
	ok(t, d.Close())
	never("no guard")
	r.opener = guarded
	d = r.open(0, "rate_hz=2e6")
	ok(t, receiver(t, d).Close())
	if w := r.guard.Watched(); len(w) != 0 {
		t.Errorf("who receives is watched: %q", w)
	}
	tx := transmitter(t, d)
	if w, want := r.guard.Watched(), r.watched(); len(w) != 1 || w[0] != want {
		t.Errorf("watched are %q, want %s", w, want)
	}
	never("opened")
	start(t, tx)
	if !board.Carrier() {
		t.Error("there is no carrier")
	}
	r.guard.Lose("a reason")
	var err error
	for src := make([]complex64, 100000); err == nil; {
		_, err = tx.Write(limited(t), src, radio.TxMeta{})
	}
	if !errors.Is(err, radio.ErrGuard) || !strings.Contains(err.Error(), "cannot be relied on: a reason") {
		t.Error(err)
	}
	if board.Carrier() {
		t.Error("the carrier is on without a guard")
	}
	board.ClearTranscript()
	_ = tx.Close() // it has failed
	if _, err := d.OpenTransmitter(limited(t)); !errors.Is(err, radio.ErrGuard) {
		t.Errorf("once more: %v", err)
	}
	ok(t, d.Close())
	if w := r.guard.Watched(); len(w) != 0 {
		t.Errorf("what is off is watched: %q", w)
	}
	if _, err := r.open(0, "").OpenTransmitter(limited(t)); !errors.Is(err, radio.ErrGuard) {
		t.Errorf("opened anew: %v", err)
	}
	never("lost")
}

// neverOn tells where a board was switched to transmit since it was last asked.
func neverOn(t *testing.T, board *virtual.HackRF, what string) {
	t.Helper()
	for _, q := range board.Transcript() {
		if isMode(q.Setup, 2) {
			t.Errorf("%s: the board was switched to transmit", what)
		}
	}
	board.ClearTranscript()
}

// watched returns the URI by which a guard finds the first board.
func (r *rig) watched() string {
	r.t.Helper()
	boards, err := hackrf.List(limited(r.t), r.host)
	ok(r.t, err)
	return "hackrf:" + serial(0) + "?at=" + strings.ReplaceAll(boards[0].Address.String(), "/", "%2F")
}

// A program that stood still just before the board is switched on learns it behind that,
// before anything else tells it: the board is off again, without a sample sent.
func TestGuardLostWhileStarting(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1, clock: loopback.WallClock()})
	var stood atomic.Bool
	r.opener = hackrf.NewOpener(context.Background(), meddled{r.host, func(s usb.Setup) error {
		if isMode(s, 2) { // a program stands still when its board is to transmit
			stood.Store(true)
		}
		return nil
	}}, anything(t), radiotest.StandingGuard{Stood: &stood})
	tx := transmitter(t, r.open(0, "rate_hz=2e6"))
	if err := tx.Start(limited(t)); !errors.Is(err, radio.ErrGuard) {
		t.Error(err)
	}
	if n := r.boards[0].M0().M0Count; n != 0 || r.boards[0].Carrier() {
		t.Errorf("carrier %v, %d bytes sent", r.boards[0].Carrier(), n)
	}
	ok(t, tx.Close())
}

// meddled is a host whose boards' requests are seen first, and fail where that fails.
type meddled struct {
	usb.Host
	see func(usb.Setup) error
}

func (m meddled) Open(ctx context.Context, at usb.Address) (usb.Transport, error) {
	t, err := m.Host.Open(ctx, at)
	return meddledBoard{t, m.see}, err
}

type meddledBoard struct {
	usb.Transport
	see func(usb.Setup) error
}

func (b meddledBoard) Control(s usb.Setup, data []byte, timeout time.Duration) (int, error) {
	if err := b.see(s); err != nil {
		return 0, err
	}
	return b.Transport.Control(s, data, timeout)
}

// isMode reports whether a request sets a mode of the board.
func isMode(s usb.Setup, mode uint16) bool { return s.Request == 1 && s.Value == mode }

// A guard's way to a board works beside the program that has it open, in each of a
// transmission's states, and touches nothing but the carrier and the amplifier.
func TestSwitch(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1, clock: loopback.WallClock()})
	board := r.boards[0]
	u, err := radio.ParseURI(r.watched())
	ok(t, err)
	way, err := hackrf.OpenSwitch(limited(t), r.host, u)
	ok(t, err)
	for _, c := range []struct {
		params string
		want   virtual.M0Mode
	}{
		{"feed=strict", virtual.M0TXStart}, {"trigger=trigger-in", virtual.M0TXStart}, {"tx_amp=11", virtual.M0TXRun},
	} {
		d := r.open(0, "rate_hz=2e6&"+c.params)
		tx := transmitter(t, d)
		start(t, tx)
		until(t, "the board", func() bool { return board.M0().Active == c.want }, func() {})
		if !board.Carrier() || len(r.bench.Carriers()) != 1 {
			t.Errorf("%s: no carrier", c.params)
		}
		before := board.Settings()
		ok(t, way.Off())
		before.Mode, before.Gains.Amp = virtual.ModeOff, false
		if after := board.Settings(); after != before || board.Carrier() || len(r.bench.Carriers()) != 0 {
			t.Errorf("%s: %+v, want %+v", c.params, after, before)
		}
		r.cut() // what is still to be sent is no matter
		_ = tx.Close()
		ok(t, d.Close())
		session, cut := context.WithCancel(context.Background())
		t.Cleanup(cut)
		r.cut = cut
		r.opener = hackrf.NewOpener(session, r.host, anything(t), r.guard)
	}
	for _, bad := range []string{"hackrf:1", "hackrf:1?at=1", "hackrf:1?at=001/x", "hackrf:1?at=001/001&lna=8"} {
		u, err := radio.ParseURI(bad)
		ok(t, err)
		if _, err := hackrf.OpenSwitch(limited(t), r.host, u); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	u.Params.Set("at", "001/099")
	if _, err := hackrf.OpenSwitch(limited(t), r.host, u); !errors.Is(err, usb.ErrUnplugged) {
		t.Error(err)
	}
	board.Unplug()
	ok(t, way.Off(), way.Close())
}

// A program that stops feeding a board that is fed strictly: the board stops sending by
// itself, and keeps its transmit chain on until the driver switches it off, and says so.
func TestUnderrunLimit(t *testing.T) {
	radiotest.Leaks(t)
	clock := &loopback.ManualClock{}
	r := newRig(t, rigConfig{boards: 1, clock: clock})
	tx := transmitter(t, r.open(0, realtime+"feed=strict&limit_ms=10"))
	start(t, tx)
	ctx := limited(t)
	_, err := tx.Write(ctx, make([]complex64, 65536), radio.TxMeta{})
	ok(t, err)
	until(t, "the carrier", func() bool { return r.boards[0].M0().Active == virtual.M0TXRun }, func() {})
	until(t, "the board to stop", func() bool { return r.boards[0].M0().Active == virtual.M0Idle }, func() { clock.Advance(time.Millisecond); r.bench.Index() })
	if !r.boards[0].Carrier() {
		t.Error("the carrier went off by itself, which it does on no board")
	}
	if err := tx.(radio.LossChecker).CheckLoss(ctx); !errors.Is(err, hackrf.ErrUnderrunLimit) {
		t.Error(err)
	}
	if r.boards[0].Carrier() {
		t.Error("the driver has left the carrier on")
	}
	if _, err := tx.Write(ctx, make([]complex64, 1), radio.TxMeta{}); !errors.Is(err, hackrf.ErrUnderrunLimit) || !errors.Is(err, radio.ErrStarved) {
		t.Error(err)
	}
	ok(t, tx.Close())
}

// As above for one that is found by the write that never ends.
func TestUnderrunLimitWhileWriting(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{faults: true, boards: 1, clock: loopback.WallClock()})
	// The host's transfers are held back for longer than the board's patience.
	ok(t, r.faulty[0].OnTransfer(0x02, 10, virtual.Hang))
	tx := transmitter(t, r.open(0, "rate_hz=20e6&transfer=16384&limit_ms=5&deadline_ms=300&poll_ms=60000"))
	start(t, tx)
	var err error
	for src := make([]complex64, 10000); err == nil; {
		_, err = tx.Write(limited(t), src, radio.TxMeta{})
	}
	if !errors.Is(err, hackrf.ErrUnderrunLimit) {
		t.Error(err)
	}
	ok(t, tx.Close())
}

// A board that cannot be switched off is named so: somebody must pull its plug.
func TestCarrierStays(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1, clock: loopback.WallClock()})
	var on atomic.Bool
	r.opener = hackrf.NewOpener(context.Background(), meddled{r.host, func(s usb.Setup) error {
		if isMode(s, 0) && on.Load() { // the board refuses to be switched off
			return usb.ErrStall
		}
		return nil
	}}, anything(t), r.guard)
	d := r.open(0, "rate_hz=2e6"+brief)
	tx := transmitter(t, d)
	start(t, tx)
	on.Store(true)
	if err := tx.Close(); !errors.Is(err, hackrf.ErrCarrier) {
		t.Error(err)
	}
	// The guard is to try again.
	ok(t, d.Close())
	if w := r.guard.Watched(); len(w) != 1 {
		t.Errorf("what may be on is not watched: %q", w)
	}
}

// Whatever goes wrong and whenever: calls end, with an error of a known kind or
// none, the board is off or gone, and nothing is left running.
func TestRandomFaults(t *testing.T) { manyFaults(t, 60, 1000) }

// manyFaults runs a number of schedules, more where time does not matter, and a quarter
// of them with -short.
func manyFaults(t *testing.T, schedules, long int) {
	switch {
	case os.Getenv("RINGWAVE_LONG") == "1":
		schedules = long
	case testing.Short():
		schedules /= 4
	}
	for seed := range schedules {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			radiotest.Leaks(t)
			randomFaults(t, rand.New(rand.NewPCG(uint64(seed), 5)))
		})
	}
}

// known are the kinds of errors that a fault may end in.
var known = []error{usb.ErrStall, usb.ErrTimeout, usb.ErrUnplugged, hackrf.ErrUnderrunLimit, hackrf.ErrCarrier}

func randomFaults(t *testing.T, rng *rand.Rand) {
	apis := []uint16{virtual.API2018, virtual.API2022, virtual.API2026}
	r := newRig(t, rigConfig{faults: true, boards: 2, api: apis[rng.IntN(3)], clock: loopback.WallClock()})
	requests := []byte{1, 1, 1, 6, 16, 17, 21, 29, 41, 41, 41, 42, 44, 61}
	for range 1 + rng.IntN(3) {
		board := r.faulty[rng.IntN(2)]
		fault := virtual.Fault(rng.IntN(5))
		switch rng.IntN(3) {
		case 0:
			ok(t, board.OnRequest(requests[rng.IntN(len(requests))], 1+rng.IntN(6), fault))
		case 1:
			ok(t, board.OnTransfer(0x81, 1+rng.IntN(30), fault))
		default:
			if fault == virtual.Short {
				fault = virtual.Stall
			}
			ok(t, board.OnTransfer(0x02, 1+rng.IntN(30), fault))
		}
	}
	excused := false // the board is gone, or is known to stay on
	explained := func(what string, err error) {
		excused = excused || errors.Is(err, usb.ErrUnplugged) || errors.Is(err, hackrf.ErrCarrier)
		for _, k := range known {
			if errors.Is(err, k) {
				return
			}
		}
		// A short answer has no kind of its own.
		if err != nil && !short(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	session(t, r, explained) // what hangs in it meets its context's end, or that of go test
	if r.boards[0].Settings().Mode == virtual.ModeTransmit && !excused && !unplugged(t, r.boards[0]) {
		t.Error("the board still transmits")
	}
}

// unplugged asks the board itself, past its faults. One that goes as it is switched off
// is off, which no call need tell.
func unplugged(t *testing.T, board virtual.Board) bool {
	const boardID = 14
	_, err := board.Control(t.Context(), virtual.Setup{RequestType: usb.VendorIn, Request: boardID}, make([]byte, 1))
	return errors.Is(err, usb.ErrUnplugged)
}

func short(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if s := err.Error(); len(s) > 0 && (strings.Contains(s, "the answer has") || strings.Contains(s, "the sample counters have") || strings.Contains(s, "bytes arrived")) {
			return true
		}
	}
	return false
}

// session opens both boards, sends and receives a while with retunes, and closes.
func session(t *testing.T, r *rig, explained func(string, error)) {
	params := "rate_hz=20e6&transfer=16384&limit_ms=100&control_ms=50&deadline_ms=50&poll_ms=5"
	if r.boards[0].Descriptors().Release() < virtual.API2022 {
		params += "&limit_ms=0"
		params = "rate_hz=20e6&transfer=16384&limit_ms=0&control_ms=50&deadline_ms=50&poll_ms=5"
	}
	a, err := r.tryOpen(0, params)
	if err != nil {
		explained("opening the transmitter", err)
		return
	}
	defer func() { explained("closing the transmitter", a.Close()) }()
	b, err := r.tryOpen(1, params)
	if err != nil {
		explained("opening the receiver", err)
		return
	}
	defer func() { explained("closing the receiver", b.Close()) }()
	ctx := limited(t)
	tx, err := a.OpenTransmitter(ctx)
	ok(t, err)
	rx, err := b.OpenReceiver(ctx)
	ok(t, err)
	if err := rx.Start(ctx); err != nil {
		explained("starting the receiver", err)
		return
	}
	if err := tx.Start(ctx); err != nil {
		explained("starting the transmitter", err)
		return
	}
	buf := make([]complex64, 50000)
	for k := range 8 {
		if _, err := tx.Write(ctx, buf, radio.TxMeta{BurstEnd: true}); err != nil {
			explained("writing", err)
			return
		}
		if _, _, err := radio.ReadFull(ctx, rx, buf); err != nil {
			explained("reading", err)
			return
		}
		if k == 4 {
			_, err := a.SetFrequency(ctx, radio.Transmit, 915e6)
			explained("retuning", err)
		}
	}
	explained("ending the transmission", tx.Close())
	explained("ending the reception", rx.Close())
}
