package identity_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringwave/learner/hosts/identity"
	"ringwave/radio/intake"
)

// A registry says who may not connect at a time, and why; a bench that has expired takes no more
// devices.
func TestExpiry(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second) // identities are read by the host's clock
	at := func(after time.Duration) string { return now.Add(after).Format(time.RFC3339) }
	f, err := identity.Create(filepath.Join(t.TempDir(), "bench"), identity.Options{Devices: 3, Valid: 48 * time.Hour, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(1, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := f.Revoke([]int{2}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		count int
		want  []string
	}{
		{0, 4, []string{"the identity of device 2 was revoked at " + at(0)}},
		{time.Hour, 1, nil},
		{time.Hour, 3, []string{"device 2 was revoked"}},
		{time.Hour, 99, []string{"device 2 was revoked", "the enrolment of device 4 expired at " + at(time.Hour) + ", and this host's clock says " + at(time.Hour)}},
		{-2 * time.Hour, 1, []string{"the enrolment of device 1 is valid from " + at(-time.Hour) + ", and this host's clock says " + at(-2*time.Hour)}},
		{48 * time.Hour, 2, []string{"the enrolment of device 1 expired at " + at(48*time.Hour), "device 2 was revoked"}},
	} {
		got := f.Registry.Unready(c.count, now.Add(c.after))
		if len(got) != len(c.want) {
			t.Errorf("after %v: %q", c.after, got)
			continue
		}
		for i, part := range c.want {
			if !strings.Contains(got[i], part) {
				t.Errorf("after %v: %q, want %q", c.after, got[i], part)
			}
		}
	}
	want := "expires at " + at(48*time.Hour) + ", and this host's clock says " + at(72*time.Hour) + "; allowed is one that is valid for 1m0s or longer: enrol a new one"
	now = now.Add(72 * time.Hour)
	for _, valid := range []time.Duration{0, time.Hour} {
		err := f.Add(1, valid)
		if err == nil || !intake.IsUserError(err) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}
