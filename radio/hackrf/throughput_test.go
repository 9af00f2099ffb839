//go:build linux

package hackrf_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
)

// fullRate is a board's highest, with the driver's own transfers, and more of them
// in the queue than it has unless told, because here one machine does all.
const fullRate = "rate_hz=20e6&transfers=32&lna=0&vga=0&limit_ms=10000&deadline_ms=20000"

// seconds of signal that the throughput tests move: a minute where time does not
// matter.
func seconds() int {
	if os.Getenv("RINGWAVE_LONG") == "1" {
		return 60
	}
	return 1
}

// cpu returns the processor time that this process has taken.
func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	ok(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs move and gives the share of one core that it took, the emulated
// boards included.
func measure(t testing.TB, what string, move func()) {
	began, used := time.Now(), cpu(t)
	move()
	took, used := time.Since(began), cpu(t)-used
	t.Logf("%s: %.2f s, %.0f %% of a core, boards included", what, took.Seconds(), 100*used.Seconds()/took.Seconds())
}

// gapless tells of losses. They are failures only in the long run, which is for a
// machine that does nothing else.
func gapless(t testing.TB, what string, lost int) {
	switch {
	case lost == 0:
		t.Logf("%s: nothing lost", what)
	case os.Getenv("RINGWAVE_LONG") == "1":
		t.Errorf("%s: %d losses", what, lost)
	default:
		t.Logf("%s: %d losses, on a machine that does other things besides", what, lost)
	}
}

// TestThroughput receives at 20 Msps, then transmits at 20 Msps, from and to boards
// in real time.
func TestThroughput(t *testing.T) {
	radiotest.Leaks(t)
	r := newRig(t, rigConfig{boards: 1, clock: loopback.WallClock()})
	d := r.open(0, fullRate)
	measure(t, "receive", func() { gapless(t, "receive", receiveFor(t, d.OpenReceiver)) })
	measure(t, "transmit", func() { gapless(t, "transmit", transmitFor(t, d.OpenTransmitter)) })
	if s := r.bench.Slipped(); s > 0 {
		t.Logf("the emulated boards were too slow by %v", s)
	}
}

func receiveFor(t testing.TB, open func(context.Context) (radio.Receiver, error)) (lost int) {
	rx, err := open(t.Context())
	ok(t, err, rx.Start(t.Context()))
	dst := make([]complex64, 1<<17)
	for left := seconds() * 20_000_000; left > 0; {
		n, meta, err := rx.Read(t.Context(), dst)
		ok(t, err)
		for _, g := range meta.Gaps {
			t.Logf("%d samples to go: %+v", left, g)
			lost++
		}
		left -= n
	}
	ok(t, rx.(radio.LossChecker).CheckLoss(t.Context()))
	_, meta, err := rx.Read(t.Context(), dst)
	ok(t, err, rx.Close())
	return lost + len(meta.Gaps)
}

func transmitFor(t testing.TB, open func(context.Context) (radio.Transmitter, error)) (lost int) {
	tx, err := open(t.Context())
	ok(t, err, tx.Start(t.Context()))
	src := noise(1, 1<<17)
	for left := seconds() * 20_000_000; left > 0; left -= len(src) {
		_, err := tx.Write(t.Context(), src, radio.TxMeta{BurstEnd: left <= len(src)})
		ok(t, err)
	}
	ok(t, tx.(radio.LossChecker).CheckLoss(t.Context()), tx.Close())
	for _, e := range events(tx) {
		if e.Kind == radio.Underrun {
			t.Logf("%+v", e)
			lost++
		}
	}
	return lost
}
