//go:build unix

package hosts_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// status runs a command to its end.
func (b *benchOf) status(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.program, args...)
	cmd.Dir = b.dir
	out, _ := cmd.CombinedOutput() // its status tells
	return cmd.ProcessState.ExitCode(), string(out)
}

// says waits until a process has said something.
func says(t *testing.T, p *process, part string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(p.out.String(), part); {
		if time.Now().After(deadline) {
			t.Fatalf("%q is not said:\n%s", part, p.out.String())
		}
		<-time.After(5 * time.Millisecond) // between two looks
	}
}

// Identities that are none of this bench's devices, or no longer, are refused by the command
// with one sentence and status 2; two processes of one are one device.
// Longer than most because it is one bench's history.
func TestIdentitiesByCommand(t *testing.T) {
	dir := t.TempDir()
	b, err := newBenchOf(program(t), dir, 2, 1_000_000, false)
	must(t, err)
	defer b.kill()
	must(t, b.begin("server"))
	must(t, b.begin("1"))
	says(t, b.running["server"], "device 1 is here")

	if status, out := b.status(t, "enroll", "other", "--devices", "2", "--url", b.url); status != 0 {
		t.Fatal(out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "bench", "device-001.identity"))
	must(t, err)
	edited := strings.Replace(string(text), "index = 1", "index = 2", 1)
	if edited == string(text) {
		t.Fatalf("no index to change in %s", text)
	}
	must(t, os.WriteFile(filepath.Join(dir, "edited.identity"), []byte(edited), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "open.identity"), text, 0o644))
	refused := func(part string, args ...string) {
		t.Helper()
		status, out := b.status(t, append(append([]string{"device"}, args...), "--state", "state-x")...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if last := lines[len(lines)-1]; status != 2 || !strings.Contains(last, part) || !strings.Contains(last, args[0]) {
			t.Errorf("%v: status %d, %s; expected is %q", args, status, out, part)
		}
	}
	refused("its certificate is not of this bench's authority", "other/device-002.identity")
	refused("the identity is that of the air; allowed is that of a device", "bench/air.identity")
	refused("the identity is that of the server; allowed is that of a device", "bench/server.identity")
	refused("the enrolment of device 2 is not signed by its bench", "edited.identity")
	refused("chmod 600", "open.identity")

	must(t, b.start("twin", "device", "bench/device-001.identity", "--state", "state-twin"))
	says(t, b.running["twin"], "the server asks to wait: device 1 is here already")
	must(t, b.begin("2"))
	says(t, b.running["server"], "device 2 is here")
	for deadline := time.Now().Add(time.Minute); b.lines() < 3; {
		if time.Now().After(deadline) {
			t.Fatalf("no rounds are done beside a second process of device 1\n%s", b.running["server"].out.String())
		}
		<-time.After(5 * time.Millisecond) // between two looks
	}

	if status, out := b.status(t, "enroll", "bench", "--revoke", "2"); status != 0 {
		t.Fatal(out)
	}
	p := b.running["2"]
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatal("a device that was revoked goes on")
	}
	const gone = "the bus does not admit device 2: it was revoked, has expired, or is of another bench"
	if out := p.out.String(); p.ProcessState.ExitCode() != 2 || !strings.Contains(out, gone) {
		t.Errorf("revoked in mid-run: status %d, %s", p.ProcessState.ExitCode(), out)
	}
	says(t, b.running["server"], "device 2 is lost")
	refused(gone, "bench/device-002.identity")

	must(t, b.running["1"].Process.Kill())
	says(t, b.running["server"], "device 1 is lost")
	says(t, b.running["twin"], "device 1 of run hosts: ")

	// A server that has one device only would see its values.
	alone, err := newBenchOf(b.program, t.TempDir(), 1, 10, false)
	must(t, err)
	defer alone.kill()
	must(t, alone.begin("server"))
	status, out := alone.status(t, "device", "bench/device-001.identity", "--state", "state-1")
	if part := "devices.count = 1: the server would see this device's own values"; status != 2 || !strings.Contains(out, part) {
		t.Errorf("status %d, %s", status, out)
	}
	says(t, alone.running["server"], "device 1 cannot take part: devices.count = 1")
}
