package bus_test

import (
	"crypto/tls"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
)

// A bus whose every identity has expired admits nobody: without a user NATS would admit all.
func TestBusOfAnExpiredBench(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"at the beginning": -2 * time.Hour, "meanwhile": -time.Hour + 3*time.Second} {
		t.Run(name, func(t *testing.T) {
			folder, err := identity.Create(filepath.Join(t.TempDir(), "bench"), identity.Options{
				Devices: 1, Valid: time.Hour, Now: func() time.Time { return time.Now().Add(ahead) },
			})
			if err != nil {
				t.Fatal(err)
			}
			s, err := bus.Embed(t.Context(), bus.ServerOptions{Folder: folder, Address: "127.0.0.1:0"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			if ahead > -time.Hour {
				id, err := identity.Load(folder.IdentityPath(identity.Device, 1))
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan bool)
				c, err := bus.Dial(t.Context(), id, s.URL(), bus.Options{Ended: func(error) { close(ended) }})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				select {
				case <-ended:
				case <-time.After(time.Minute):
					t.Fatal("a host whose identity has expired goes on")
				}
			}
			nc, err := nats.Connect(s.URL(), nats.Secure(&tls.Config{InsecureSkipVerify: true}), nats.MaxReconnects(0))
			if err == nil {
				nc.Close()
			}
			if !errors.Is(err, nats.ErrAuthorization) && (err == nil || !strings.Contains(strings.ToLower(err.Error()), "authorization")) {
				t.Errorf("a stranger is told %v", err)
			}
		})
	}
}
