package pluto_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/pluto"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/iiod"
)

// Once Close has begun no transmitter is opened, whose carrier nobody would switch off:
// also while Close waits for a receiver's end.
func TestNothingOpensOnceCloseHasBegun(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b := newBench(t, loopback.Config{}, func(c *iiod.Config) {
		c.Log = func(_ int, line string) {
			if strings.HasPrefix(line, "CLOSE") {
				once.Do(func() { close(begun); <-goOn })
			}
		}
	})
	u, err := radio.ParseURI("pluto:" + b.address + "?" + ideal)
	ok(t, err)
	opened, err := pluto.NewOpener(t.Context(), everything(t), virtual.NewGuard()).Open(t.Context(), u)
	ok(t, err)
	d := opened.(*pluto.Device)
	r, err := d.OpenReceiver(t.Context())
	ok(t, err)
	ok(t, r.Start(t.Context()))
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	select {
	case <-begun:
	case err := <-closed: // the receiver ended without a CLOSE
		closed <- err
	}
	x, err := d.OpenTransmitter(t.Context())
	if !errors.Is(err, radio.ErrClosed) {
		t.Errorf("a transmitter was opened: %v", err)
	}
	if x != nil {
		_ = x.Start(t.Context())
	}
	if _, err := d.OpenReceiver(t.Context()); !errors.Is(err, radio.ErrClosed) {
		t.Errorf("a receiver was opened: %v", err)
	}
	close(goOn)
	ok(t, <-closed)
	if x != nil && !b.silent(t) {
		t.Error("the carrier is on")
	}
}
