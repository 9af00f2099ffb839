package server_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/identity"
	"ringwave/radio/intake"
)

// An identity that expires before the run is likely to end: device and server say so once the
// pace of rounds is known; one that has expired meanwhile is refused at the device's next
// greeting, with one sentence and by the server's clock.
func TestIdentityExpiresInARun(t *testing.T) {
	const rounds = 1000
	b := newBench(t, 2, rounds)
	var c clock // of the server
	b.now = c.now
	b.minimum = 1
	expires := b.folder.Registry.Expires
	b.air()
	b.serve()
	for i := 1; i <= 2; i++ {
		b.device(t.Context(), i, func(cfg *device.Config, _ *device.Part) {
			if cfg != nil {
				cfg.MaxOffset = 2 * identity.DefaultValid
				if i == 2 {
					cfg.Identity.Expires = cfg.Identity.Expires.Add(100 * 365 * 24 * time.Hour) // of what it says itself
				}
			}
		})
	}
	for k := 1; k <= 10; k++ {
		if k == 3 {
			c.forward(300 * 24 * time.Hour) // of which nobody can say yet whether it is usual
		}
		_, err := b.step(t.Context(), k)
		b.must(err)
	}
	if b.said.has("expire") {
		t.Errorf("it warns before the pace is known: %q", b.said.lines)
	}
	_, err := b.step(t.Context(), 11) // 30 days a round
	b.must(err)
	stamp := expires.UTC().Format(time.RFC3339)
	b.says("the server's own identity expires at " + stamp + ", and the run is likely to go on until ")
	b.says("identities expire before the run is likely to end at ")
	b.says("of device 1 at " + stamp)
	b.says("the identity of device 1 (" + b.folder.IdentityPath(identity.Device, 1) + ") expires at " + stamp + ", and the run is likely to go on until ")
	if b.said.has("the identity of device 2 (") {
		t.Errorf("device 2's own identity holds for longer: %q", b.said.lines)
	}

	c.forward(100 * 24 * time.Hour)
	err = endOf(t, b.device(t.Context(), 1, nil))
	want := "the server refuses device 1 (" + b.folder.IdentityPath(identity.Device, 1) + "): the enrolment of device 1 expired at " + stamp + ", and the server's clock says "
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") || !intake.IsUserError(err) {
		t.Errorf("the device says %v, want %s", err, want)
	}
	b.says("device 1 is not let in: the enrolment of device 1 expired at " + stamp)
}

// The bus cuts off whose identity expires, with a sentence that says so, and the server knows why
// it hears nothing.
func TestBusEndsWithTheIdentity(t *testing.T) {
	folder, err := identity.Create(filepath.Join(t.TempDir(), "bench"), identity.Options{
		Devices: 1, Valid: time.Hour, Now: func() time.Time { return time.Now().Add(-time.Minute + 4*time.Second) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Add(1, time.Minute); err != nil { // which expires in some seconds
		t.Fatal(err)
	}
	nats, err := bus.Embed(t.Context(), bus.ServerOptions{Folder: folder, Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nats.Close)
	id, err := identity.Load(folder.IdentityPath(identity.Device, 2))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	for _, o := range []bus.Options{{}, {InProcess: nats}} {
		o.Ended = func(err error) { ended <- err }
		conn, err := bus.Dial(t.Context(), id, nats.URL(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	for range 2 {
		select {
		case err := <-ended:
			if want := "the identity of device 2 expired at " + id.Expires.UTC().Format(time.RFC3339) + ": enrol it again"; !strings.Contains(err.Error(), want) || !intake.IsUserError(err) {
				t.Errorf("%v, want %s", err, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("an identity that has expired goes on")
		}
	}
}
