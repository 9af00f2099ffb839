package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/uplink"
)

// A disk that fills in the middle of a run: status 1, one sentence that says so
// and how to go on, whole lines only, and a run that can be resumed once there
// is room.
func TestFullDisk(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=100k"); err != nil {
		t.Skipf("a small file system is needed to fill, and mounting one failed: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	dir := filepath.Join(mount, "run")
	args := append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, append(slices.Clone(small), "--set", "optimizer.rounds=1500", "--set", "encryption.parameter_set=lean-2048")...)
	status, _, stderr := run(t, args...)
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last := lines[len(lines)-1]
	if status != exitFailure || !strings.Contains(last, "no space left") || !strings.Contains(last, "--resume") {
		t.Fatalf("status %d, last line %q", status, last)
	}
	data := experimenttest.ReadFile(t, dir, runfolder.MetricsName)
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
	if s := summaryOf(t, dir); s.RoundsCompleted != 1500 {
		t.Errorf("resumed to round %d", s.RoundsCompleted)
	}

	// A disk that has no room for the first files leaves nothing.
	full := filepath.Join(mount, "full")
	if err := os.WriteFile(filepath.Join(mount, "ballast"), make([]byte, 1<<26), 0o644); err == nil {
		t.Fatal("64 MB fitted into what is left of 64 MB")
	}
	status, _, stderr = run(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", full}, small...)...)
	if status != exitFailure || !strings.Contains(stderr, "no space left") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if _, err := os.Stat(full); err == nil {
		t.Error("a half-written run folder was left behind")
	}
}

// A disk that fills while a round is recorded: as above, and no part of a recording
// is left. The resumed run has all of them, as one that was never short of room.
func TestFullDiskWhileRecording(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("a small file system is needed to fill, and mounting one failed: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	dir := filepath.Join(mount, "run")
	status, stdout, stderr := run(t, recorded("ci16_le", dir, "--set", "optimizer.rounds=8")...)
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last := lines[len(lines)-1]
	if status != exitFailure || stdout != "" || !strings.Contains(last, "no space left") || !strings.Contains(last, "--resume") || strings.Count(last, "no space left") != 1 {
		t.Fatalf("status %d, last line %q", status, last)
	}
	// What is there is whole: each recording, and a line of metrics.csv for it.
	entries, err := os.ReadDir(filepath.Join(dir, uplink.IQFolder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".tmp") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
	stdout, _ = mustRun(t, "replay", dir)
	t.Logf("%d files; %s", len(entries), stdout)

	if err := syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=256m"); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "run", "--resume", dir)
	mustRun(t, "replay", dir)
	roomy := filepath.Join(t.TempDir(), "roomy")
	mustRun(t, recorded("ci16_le", roomy, "--set", "optimizer.rounds=8")...)
	if !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.MetricsName), experimenttest.ReadFile(t, roomy, runfolder.MetricsName)) {
		t.Error("metrics.csv is another than that of a run that was never short of room")
	}
}

// A device whose disk is full takes part in no round, and says why, as the server does; the
// others go on, and with all of the devices needed the run waits for it.
func TestFullDiskOfDevice(t *testing.T) {
	for name, minimum := range map[string]string{"all are needed": "0", "one is needed": "1"} {
		t.Run(name, func(t *testing.T) {
			mount := t.TempDir()
			if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=16k"); err != nil {
				t.Skipf("a small file system is needed to fill, and mounting one failed: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
			e := enrol(t, 2)
			s := e.serve(append(few(2, 300), "--set", "devices.minimum="+minimum)...)
			whole := e.device("device-001")
			full := begin(t, "device", e.identity("device-002"), "--secrets-from-seed", "--state", filepath.Join(mount, "state"))
			full.says("no space left on device")
			s.says("device 2 is lost: ")
			s.says("no space left on device")
			if minimum == "0" {
				full.stop()
				full.ends(exitInterrupted)
				if err := os.RemoveAll(filepath.Join(mount, "state")); err != nil {
					t.Fatal(err)
				}
				full = e.device("device-002")
			}
			s.ends(0)
			whole.ends(0)
			full.ends(0)
		})
	}
}
