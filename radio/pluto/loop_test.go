package pluto_test

import (
	"errors"
	"testing"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
)

// loop sends samples through an ideal channel and fails unless they come back.
func loop(t *testing.T, address string, n int, params string) {
	t.Helper()
	d := open(t, t.Context(), everything(t), address, ideal+"&feed=strict&block=4096&"+params)
	rx, tx := receiver(t, d), transmitter(t, d)
	if _, ok := tx.(radio.Pacer); ok {
		t.Error("a transmitter that is fed strictly says that its index goes on by itself")
	}
	sent := noise(1, n)
	done := make(chan error, 1)
	go func() {
		_, err := tx.Write(t.Context(), sent, radio.TxMeta{BurstEnd: true})
		// The board gives whole blocks.
		done <- errors.Join(err, tx.(radio.Idler).Idle(t.Context(), radio.SampleIndex(n)+4096))
	}()
	got := make([]complex64, n)
	k, meta, err := radio.ReadFull(t.Context(), rx, got)
	ok(t, err, <-done)
	if k != n || meta.First != 0 || len(meta.Gaps) > 0 || meta.Flags&^radio.Clipped != radio.HostCounted {
		t.Fatalf("%d samples, %+v", k, meta)
	}
	for k := range sent {
		if got[k] != sent[k] {
			t.Fatalf("sample %d is %v, was sent as %v", k, got[k], sent[k])
		}
	}
	if meta.EpochAt(n-1) != rx.Epoch() || len(meta.Changes) > 0 {
		t.Errorf("epochs %+v, now %d", meta, rx.Epoch())
	}
	ok(t, tx.Close(), rx.Close())
}

func TestLoop(t *testing.T) {
	radiotest.Goroutines(t)
	before := handles()
	t.Cleanup(func() {
		if after := handles(); after > before {
			t.Errorf("%d files open, %d before", after, before)
		}
	})
	b := newBench(t, loopback.Config{}, nil)
	loop(t, b.address, 100_000, "")
	b.isOff(t)
}

// The same with Debian's iiod between driver and board.
func TestLoopThroughIIOD(t *testing.T) {
	b := newBench(t, loopback.Config{}, nil)
	loop(t, b.realIIOD(t), 100_000, "")
	b.isOff(t)
}
