package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A sweep whose report would have no place says so before its runs are computed, not after.
func TestSweepReportHasNoPlace(t *testing.T) {
	base, err := filepath.Abs("../../hw-configs/loopback.toml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, spec := filepath.Join(dir, "out"), filepath.Join(dir, "s.toml")
	if err := os.MkdirAll(filepath.Join(out, "report"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		spec:                             "[sweep]\nbase = '" + base + "'\nseeds = \"1-2\"\n[set]\ntask.dataset = \"strokes\"\noptimizer.rounds = 2\n",
		filepath.Join(out, "state.json"): `{"runs": 2}`, filepath.Join(out, "report", "thesis.tex"): "mine",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	status, _, stderr := run(t, "sweep", spec, "--out", out)
	if status != exitBadInput || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "holds thesis.tex") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if _, err := os.Stat(filepath.Join(out, "queue")); !os.IsNotExist(err) {
		t.Errorf("it has begun: %v", err)
	}
}
