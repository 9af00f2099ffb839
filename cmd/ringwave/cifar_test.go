package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/crypto/vector"
	"ringwave/learner/experiment/experimenttest"
)

// TestSameBytesOfLeNet runs the network each way that this processor has: the metrics
// must be the same to the byte, and other ones where the loss is a sum.
func TestSameBytesOfLeNet(t *testing.T) {
	data := experimenttest.FewImages(t)
	metrics := func(path string, more ...string) []byte {
		t.Setenv(vector.Environment, path)
		out := t.TempDir()
		status, _, stderr := run(t, append([]string{"run", experimenttest.CIFARConfig, "--data", data, "--out", out, "--set", "optimizer.rounds=3", "--set", "optimizer.batch_size=10"}, more...)...)
		if status != 0 && status != exitUnusable { // as it is where the loss is a sum
			t.Fatalf("status %d\n%s", status, stderr)
		}
		csv, err := os.ReadFile(filepath.Join(out, "metrics.csv"))
		if err != nil {
			t.Fatal(err)
		}
		return csv
	}
	want := metrics("portable")
	for _, p := range vector.Paths() {
		if lacking := p.Lacks(); lacking != "" {
			t.Logf("SKIPPED: %s did not run: this processor lacks %s", p, lacking)
		} else if !bytes.Equal(metrics(p.String()), want) {
			t.Errorf("%s gives other metrics than portable", p)
		}
	}
	if bytes.Equal(metrics("portable", "--set", "task.loss=sum"), want) {
		t.Error("sums and means give the same metrics")
	}
}

func TestLeNetRefusals(t *testing.T) {
	data := experimenttest.FewImages(t)
	t.Setenv(vector.Environment, "mmx")
	status, _, stderr := run(t, "run", experimenttest.CIFARConfig, "--data", data, "--out", t.TempDir())
	if status != 2 || !strings.Contains(stderr, `RINGWAVE_KERNEL is "mmx": allowed are portable, avx2 and avx512`) {
		t.Errorf("status %d: %s", status, stderr)
	}
	t.Setenv(vector.Environment, "")
	t.Setenv("RINGWAVE_DATA", "")
	status, _, stderr = run(t, "run", experimenttest.CIFARConfig, "--data", t.TempDir(), "--out", t.TempDir())
	if status != 2 || !strings.Contains(stderr, "ringwave data fetch cifar10") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if err := os.WriteFile(filepath.Join(data, "data_batch_3.bin"), []byte("no records"), 0o644); err != nil {
		t.Fatal(err)
	}
	status, _, stderr = run(t, "run", experimenttest.CIFARConfig, "--data", data, "--out", t.TempDir())
	if status != 2 || !strings.Contains(stderr, "data_batch_3.bin: the length is 10 bytes; allowed is one or more records of 3073 bytes") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if status, _, stderr := run(t, "data", "fetch", "cifar"); status != 2 || !strings.Contains(stderr, `"cifar" is not known; allowed is mnist or cifar10`) {
		t.Errorf("status %d: %s", status, stderr)
	}
}
