package remote_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"ringwave/learner/hosts/remote"
	"ringwave/radio"
	"ringwave/radio/radiotest"
)

// The same samples arrive through a proxy as directly, at their indices, and the same events
// are told.
func TestSameSamples(t *testing.T) {
	radiotest.Leaks(t)
	play := func(d radio.Device, rx radio.Receiver) ([]complex64, []radio.Event) {
		tx := running(t, d)
		ctx := limited(t)
		for k, meta := range []radio.TxMeta{{}, {Timed: true, Start: 9000}, {BurstEnd: true}, {Timed: true, Start: 10000, BurstEnd: true}, {Timed: true, Start: 20000, BurstEnd: true}} {
			x := noise(uint64(k), 1000+500*k)
			n, err := tx.Write(ctx, x, meta)
			ok(t, err)
			if n != len(x) {
				t.Fatalf("%d of %d samples were taken", n, len(x))
			}
		}
		ok(t, tx.(radio.Idler).Idle(ctx, 40000))
		x := read(t, rx, 40000)
		_, err := d.(radio.FrequencyControl).SetFrequency(ctx, radio.Transmit, 433e6)
		ok(t, err)
		all := events(tx)
		ok(t, tx.Close())
		if _, err := tx.Write(ctx, x[:1], radio.TxMeta{}); !errors.Is(err, radio.ErrClosed) {
			t.Error(err)
		}
		if s := tx.State(); s != radio.Closed {
			t.Errorf("the stream is %v", s)
		}
		ok(t, d.Close())
		return x, all
	}
	m := medium(t)
	local, err := m.Transmitter(0)
	ok(t, err)
	want, told := play(local, receive(t, m))
	m = medium(t)
	got, again := play(opened(t, &direct{host: hosted(t, m, nil)}), receive(t, m))
	same(t, got, want)
	if len(told) < 4 || !reflect.DeepEqual(again, told) {
		t.Errorf("events %v; expected are %v", again, told)
	}
}

// A block that comes too late is dropped whole, and an event tells. A retune begins an epoch.
func TestLateAndEpoch(t *testing.T) {
	m := medium(t)
	rx := receive(t, m)
	d := opened(t, &direct{host: hosted(t, m, nil)})
	tx := running(t, d)
	ctx := limited(t)
	_, err := tx.Write(ctx, noise(1, 5000), radio.TxMeta{BurstEnd: true})
	ok(t, err)
	n, err := tx.Write(ctx, noise(2, 700), radio.TxMeta{Timed: true, Start: 4000})
	ok(t, err)
	if all := events(tx); n != 700 || len(all) != 1 || all[0].Kind != radio.Late || all[0].Index != 4000 || all[0].Count != 700 {
		t.Errorf("%d samples were taken; events %+v", n, all)
	}
	before := tx.Epoch()
	f, err := d.(radio.FrequencyControl).SetFrequency(ctx, radio.Transmit, 434e6)
	ok(t, err)
	if f != 434e6 || d.(radio.FrequencyControl).Frequency(radio.Transmit) != f || tx.Epoch() == before {
		t.Errorf("tuned to %v, epoch %d", f, tx.Epoch())
	}
	ok(t, tx.(radio.Idler).Idle(ctx, 10000))
	read(t, rx, 10000)
	if _, ok := tx.(radio.Pacer); ok {
		t.Error("it is a Pacer, and the radio's is not")
	}
}

// What fails is told in the words of the radio's host, and errors.Is finds what it was.
func TestErrors(t *testing.T) {
	m := medium(t)
	d := opened(t, &direct{host: hosted(t, m, nil)})
	ctx := limited(t)
	_, direct := func() (float64, error) {
		local, err := m.Transmitter(0)
		ok(t, err)
		v, err := local.(radio.FrequencyControl).SetFrequency(ctx, radio.Transmit, -1)
		return float64(v), err
	}()
	if _, err := d.(radio.FrequencyControl).SetFrequency(ctx, radio.Transmit, -1); err == nil || err.Error() != direct.Error() {
		t.Errorf("%v; expected is %v", err, direct)
	}
	tx, err := d.(radio.TransmitOpener).OpenTransmitter(ctx)
	ok(t, err)
	if _, err := tx.Write(ctx, noise(1, 10), radio.TxMeta{}); !errors.Is(err, radio.ErrNotStarted) {
		t.Error(err)
	}
	if _, err := d.(radio.TransmitOpener).OpenTransmitter(ctx); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	ok(t, tx.Start(ctx))
	if err := tx.Start(ctx); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	x := noise(1, 10)
	x[7] = complex(float32(inf()), 0)
	if _, err := tx.Write(ctx, x, radio.TxMeta{}); err == nil || !strings.Contains(err.Error(), "sample 7") {
		t.Error(err)
	}
	if _, err := tx.Write(ctx, make([]complex64, remote.MaxSamples+1), radio.TxMeta{}); err == nil || !strings.Contains(err.Error(), "allowed is at most 1048576") {
		t.Error(err)
	}
	if _, err := d.(radio.GainControl).SetGain(ctx, radio.Transmit, "vga", 3); err == nil || !strings.Contains(err.Error(), "has no control of its gains") {
		t.Error(err)
	}
	if _, err := d.(radio.FrequencyControl).SetFrequency(ctx, radio.Receive, 1e6); err == nil || !strings.Contains(err.Error(), "to transmit") {
		t.Error(err)
	}
}

// The capabilities are those of the radio.
func TestDeviceCapabilities(t *testing.T) {
	m := medium(t)
	d := opened(t, &direct{host: hosted(t, m, nil)})
	local, err := m.Transmitter(0)
	ok(t, err)
	if d.Info().URI != "loopback:m?tx=0" || !reflect.DeepEqual(d.Info(), local.Info()) {
		t.Errorf("%+v", d.Info())
	}
	_, clock := d.(radio.ClockControl)
	_, trigger := d.(radio.TriggerControl)
	tc, timed := d.(radio.TimeControl)
	_, receives := d.(radio.ReceiveOpener)
	if clock || trigger || !timed || receives {
		t.Errorf("clock %v, trigger %v, time %v, receive %v", clock, trigger, timed, receives)
	}
	if n, err := tc.Now(limited(t)); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// A Write waits for room, no longer than its context; what was taken is counted.
func TestWriteWaits(t *testing.T) {
	m := medium(t) // nobody reads
	tx := running(t, opened(t, &direct{host: hosted(t, m, nil)}))
	x := noise(1, remote.MaxSamples)
	for range 4 { // the medium's window
		_, err := tx.Write(limited(t), x, radio.TxMeta{})
		ok(t, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if n, err := tx.Write(ctx, x[:100], radio.TxMeta{}); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(n, err)
	}
	// One that is cancelled, or closed, does not keep what comes after it waiting.
	ctx, cancel = context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := tx.Write(ctx, x[:100], radio.TxMeta{})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() {
		_, err := tx.Write(context.Background(), x[:100], radio.TxMeta{})
		done <- err
	}()
	ok(t, tx.Close())
	if err := <-done; !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

func inf() float64 { return 1 / zero }

var zero float64
