package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A small report has every chapter asked for, the same bytes when it is made again from
// the cache and in another folder, and needs nothing beside it to be read.
func TestReproduce(t *testing.T) {
	make := func(dir, chapters string) []byte {
		t.Helper()
		mustRun(t, "reproduce", "--only", chapters, "--seeds", "1", "--rounds", "3", "--out", dir)
		page, err := os.ReadFile(filepath.Join(dir, "report.html"))
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	dir := filepath.Join(t.TempDir(), "report")
	const chapters = "parameters,mnist,disagreements"
	page := make(dir, chapters)
	for _, want := range []string{"Table II", "Fig. 2", "446464 bytes", "data:image/svg", "numbers disagree"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%q is not in the report", want)
		}
	}
	cached, err := filepath.Glob(filepath.Join(dir, "cache", "*.json"))
	if err != nil || len(cached) != 10 {
		t.Errorf("%d results are kept: %v", len(cached), err)
	}
	if !bytes.Equal(page, make(dir, chapters)) {
		t.Error("made from the cache, the report is another")
	}
	if one := make(dir, "disagreements"); !bytes.Equal(one, make(filepath.Join(t.TempDir(), "other"), "disagreements")) {
		t.Error("made anew, the report is another")
	}
	for _, name := range []string{"report.md", "timing.md", "plots/fig2-sigma-1.png"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReproduceRefuses(t *testing.T) {
	for _, args := range [][]string{{"--only", "table9"}, {"--seeds", "-1"}, {"--cifar-seeds", "0"}, {"more"}} {
		status, _, stderr := run(t, append([]string{"reproduce"}, args...)...)
		if status != exitBadInput || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: status %d: %s", args, status, stderr)
		}
	}
}
