package server_test

import (
	"strings"
	"testing"
	"time"

	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/wire"
	"ringwave/radio/intake"
)

// A device whose host differs from the server's in what both must have alike is told so in
// one sentence, and the server has a line; the run goes on without it.
func TestDevicesThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*device.Config, *device.Part)
		device, server string
	}{
		"a clock a day before": {
			func(c *device.Config, _ *device.Part) {
				if c != nil {
					c.Now = func() time.Time { return time.Now().Add(-24 * time.Hour) }
				}
			}, "the clock of device 1's host and the server's are 24h0m0s apart; allowed are 1m0s: set that of the host (", "device 1 cannot take part: the clock of device 1's host"},
		"a clock a day behind": {
			func(c *device.Config, _ *device.Part) {
				if c != nil {
					c.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
				}
			}, "are 24h0m0s apart; allowed are 1m0s", "device 1 cannot take part: the clock of device 1's host"},
		"another version": {
			func(c *device.Config, _ *device.Part) {
				if c != nil {
					c.Version = "w"
				}
			}, "the host of device 1 has version w of the program and the server v: install the same on both", "device 1 cannot take part: the host of device 1 has version w"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, 1)
			b.serve()
			err := endOf(t, b.device(t.Context(), 1, c.change))
			if err == nil || !strings.Contains(err.Error(), c.device) || strings.Contains(err.Error(), "\n") || !intake.IsUserError(err) {
				t.Errorf("the device says %v, want %q", err, c.device)
			}
			b.says(c.server)
			if h := b.server.Census().Hosts[0]; h.State != "refused" || !strings.Contains(c.server, h.Why[:20]) {
				t.Errorf("it is %q: %s", h.State, h.Why)
			}
		})
	}
}

// A device whose data set is another than that of the others is not let in, unless its data
// are its own.
func TestOtherData(t *testing.T) {
	b := newBench(t, 3, 1)
	b.serve()
	data := func(digest string, own bool) func(*device.Config, *device.Part) {
		return func(_ *device.Config, p *device.Part) {
			if p != nil {
				p.Readiness = wire.Readiness{Devices: b.n, Data: digest, Own: own}
			}
		}
	}
	b.device(t.Context(), 1, data("aa", false))
	b.says("device 1 is here")
	ended := b.device(t.Context(), 2, data("bb", false))
	if err := endOf(t, ended); err == nil || !strings.Contains(err.Error(), "have the digest bb, and those of device 1 aa") {
		t.Errorf("device 2 says %v", err)
	}
	b.says("device 2 cannot take part: the files of its data set have the digest bb")
	b.device(t.Context(), 3, data("cc", true))
	b.says("device 3 is here")
}

// endOf waits for the end of a device.
func endOf(t *testing.T, ended chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the device goes on")
		return nil
	}
}

// says waits until a host has said something.
func (b *bench) says(part string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); !b.said.has(part); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("nobody says %q", part)
		}
	}
}
