package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ringwave/cmd/internal/runfolder"
)

// A disk that fills in the middle of a run: status 1, one sentence that says so
// and how to go on, whole lines only, and a run that can be resumed once there
// is room.
func TestFullDisk(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=160k"); err != nil {
		t.Skipf("a small file system is needed to fill, and mounting one failed: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	dir := filepath.Join(mount, "run")
	args := append([]string{"run", loopbackConfig, "--out", dir}, append(slices.Clone(small), "--set", "optimizer.rounds=3000")...)
	status, _, stderr := run(t, args...)
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last := lines[len(lines)-1]
	if status != exitFailure || !strings.Contains(last, "no space left") || !strings.Contains(last, "--resume") {
		t.Fatalf("status %d, last line %q", status, last)
	}
	data := readFile(t, dir, runfolder.MetricsName)
	if data[len(data)-1] != '\n' {
		t.Error("metrics.csv ends in half a line")
	}
	if temps, _ := filepath.Glob(filepath.Join(dir, ".tmp*")); len(temps) != 0 {
		t.Errorf("left behind: %v", temps)
	}
	if err := syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "run", "--resume", dir)
	if s := summaryOf(t, dir); s.RoundsCompleted != 3000 {
		t.Errorf("resumed to round %d", s.RoundsCompleted)
	}

	// A disk that has no room for the first files leaves nothing.
	full := filepath.Join(mount, "full")
	if err := os.WriteFile(filepath.Join(mount, "ballast"), make([]byte, 1<<26), 0o644); err == nil {
		t.Fatal("64 MB fitted into what is left of 64 MB")
	}
	status, _, stderr = run(t, append([]string{"run", loopbackConfig, "--out", full}, small...)...)
	if status != exitFailure || !strings.Contains(stderr, "no space left") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if _, err := os.Stat(full); err == nil {
		t.Error("a half-written run folder was left behind")
	}
}
