package hosts_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A device whose disk is full refuses, and says so, as the server does. It gives no share
// that it has not written down, and nothing dies: the run goes on once there is room.
func TestFullDiskOfADevice(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state-2")
	must(t, os.Mkdir(state, 0o700))
	if err := syscall.Mount("tmpfs", state, "tmpfs", 0, "size=48k"); err != nil {
		t.Skipf("a small file system is needed to fill, and mounting one failed: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(state, syscall.MNT_DETACH) })
	b, err := newBenchOf(program(t), dir, 3, 150, false)
	must(t, err)
	k := &killings{benchOf: b, rounds: 150}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	defer k.kill()
	for _, h := range k.hosts() {
		must(t, k.begin(h))
	}
	must(t, k.reach(ctx, 5))
	ballast := filepath.Join(state, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("1 MB fitted into 48 kB")
	}
	device, server := k.running["2"], k.running["server"]
	for !strings.Contains(device.out.String(), "no space left on device") || !strings.Contains(server.out.String(), "device 2 is lost: ") {
		select {
		case <-time.After(5 * time.Millisecond): // between two looks
		case <-device.ended:
			t.Fatalf("the device has died: %s", device.out.String())
		case <-ctx.Done():
			t.Fatalf("nobody says that the disk is full\n%s", k.words())
		}
	}
	must(t, os.Remove(ballast))
	must(t, k.reach(ctx, math.MaxInt))
	k.leave()
	must(t, k.check())
	for _, f := range k.failures {
		t.Error(f)
	}
	if k.lost > 10 || k.stopped > 0 {
		t.Errorf("%d rounds are lost, and the server has stopped %d times\n%s", k.lost, k.stopped, server.out.String())
	}
	t.Logf("%d of %d rounds are lost; %s", k.lost, k.rounds, lineWith(server.out.String(), "device 2 is lost"))
}

// lineWith returns the first line that has a part.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
