package runfolder

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// tinyDisk mounts a file system of 16 kB, and skips the test where it may not.
func tinyDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("a full disk needs a small tmpfs, which only root may mount")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("a full disk needs a small tmpfs, which cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

func TestOnAFullFileSystem(t *testing.T) {
	f, err := Create(filepath.Join(tinyDisk(t), "run"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := testCheckpoint()
	if err := f.SaveCheckpoint(c); err != nil {
		t.Fatal(err)
	}
	m, err := f.CreateMetrics(InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var rows []Row
	for {
		r := testRows()[0]
		r.Round = len(rows)
		if err = m.Add(r); err != nil || len(rows) > 1000 {
			break
		}
		rows = append(rows, r)
	}
	wantError(t, err, "writing round", f.file(MetricsName), "no space left on device")
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v does not wrap ENOSPC", err)
	}
	wantRows(t, f.file(MetricsName), rows)

	more := c
	more.Theta = make([]float64, 1000)
	wantError(t, f.SaveCheckpoint(more), f.file(CheckpointName), "no space left on device", "unchanged")
	onlyHas(t, f.Path(), lockName, CheckpointName, MetricsName)
	got, err := f.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encode(t, got), encode(t, c)) {
		t.Error("the old checkpoint is not intact")
	}
}
