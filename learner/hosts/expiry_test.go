//go:build unix

package hosts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringwave/learner/hosts/identity"
)

// enrolAt enrols the bench anew, by a clock that is so far ahead.
func (b *benchOf) enrolAt(t *testing.T, ahead, valid time.Duration) *identity.Folder {
	t.Helper()
	dir := filepath.Join(b.dir, "bench")
	must(t, os.RemoveAll(dir))
	f, err := identity.Create(dir, identity.Options{Devices: b.devices, URL: b.url, Valid: valid, Now: func() time.Time { return time.Now().Add(ahead) }})
	must(t, err)
	return f
}

// Each command says of an identity that has expired, or is not yet valid, what it is and what to
// do, in one sentence and with status 2.
func TestIdentitiesOutOfTimeByCommand(t *testing.T) {
	t.Parallel() // they wait more than they compute
	b, err := newBenchOf(program(t), t.TempDir(), 2, 10, false)
	must(t, err)
	for _, c := range []struct {
		ahead time.Duration
		parts []string
	}{
		{-48 * time.Hour, []string{"expired at ", ", and this host's clock says ", ": enrol again, or set the clock"}},
		{48 * time.Hour, []string{"is valid from ", ", and this host's clock says ", "set the clock, or that of the host that enrolled it, and enrol again"}},
	} {
		b.enrolAt(t, c.ahead, 24*time.Hour)
		for role, args := range map[string][]string{
			"the server": {"serve", "config.toml", "--bench", "bench"}, "device 1": {"device", "bench/device-001.identity"},
			"the air": {"air", "config.toml"}, "the observer": {"hosts"},
		} {
			status, out := b.status(t, args...)
			for _, part := range append(c.parts, "the enrolment of "+role+" ", ".identity: ") {
				if status != 2 || strings.Count(out, "\n") != 1 || !strings.Contains(out, part) {
					t.Errorf("%v: status %d, %s; expected is %q", args, status, out, part)
				}
			}
		}
	}

	// One device's that has expired, of a bench that holds.
	f := b.enrolAt(t, -24*time.Hour, 48*time.Hour)
	must(t, f.Add(1, time.Hour))
	part := "the enrolment of device 3 expired at " + f.Registry.Hosts[len(f.Registry.Hosts)-1].Expires.UTC().Format(time.RFC3339)
	status, out := b.status(t, "serve", "config.toml", "--bench", "bench", "--set", "devices.count=3", "--out", "all")
	if status != 2 || !strings.Contains(out, "2 of 3 devices may connect, and a round takes 3 (devices.minimum): "+part) {
		t.Errorf("status %d, %s", status, out)
	}
	defer b.kill()
	must(t, b.start("server", "serve", "config.toml", "--bench", "bench", "--set", "devices.count=3", "--set", "devices.minimum=2", "--out", "run"))
	says(t, b.running["server"], "1 of 3 devices may not connect: "+part)
	if status, out = b.status(t, "device", "bench/device-003.identity"); status != 2 || !strings.Contains(out, part) {
		t.Errorf("status %d, %s", status, out)
	}
	for _, i := range []string{"1", "2"} {
		must(t, b.begin(i))
	}
	for _, host := range []string{"server", "1", "2"} {
		<-b.running[host].ended
		if p := b.running[host]; !p.ProcessState.Success() {
			t.Errorf("%s: %v\n%s", host, p.ProcessState, p.out.String())
		}
	}
}

// A bench that expires in the middle of a run: each host ends with one sentence and status 2, and
// nobody waits for another.
func TestBenchExpiresInARun(t *testing.T) {
	t.Parallel() // they wait more than they compute
	b, err := newBenchOf(program(t), t.TempDir(), 2, 1_000_000, true)
	must(t, err)
	defer b.kill()
	f := b.enrolAt(t, -time.Hour+15*time.Second, time.Hour)
	for _, h := range b.hosts() {
		must(t, b.begin(h))
	}
	b.reaches(t, 1)
	until := f.Registry.Expires.UTC().Format(time.RFC3339)
	for _, h := range b.hosts() {
		who := map[string]string{"server": "the server", "air": "the air"}[h]
		if who == "" {
			who = "device " + h
		}
		ends(t, b.running[h], 2, fmt.Sprintf("the identity of %s expired at %s: enrol it again", who, until))
	}
	says(t, b.running["server"], "the server's own identity expires at "+until)
	if status, out := b.status(t, "serve", "--resume", "run", "--bench", "bench"); status != 2 || !strings.Contains(out, "the enrolment of the server expired at "+until) {
		t.Errorf("status %d, %s", status, out)
	}
}
