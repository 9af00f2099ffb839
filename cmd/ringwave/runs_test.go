package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
)

// Every state of a run is told, of runs at all depths; what is no run is left out, and
// what is damaged keeps nobody from seeing the others. To look leaves no trace.
// Longer, or of more branches, than most because it is one history, of which each step goes on from the last.
func TestRuns(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	mustRun(t, plain("--out", at("a-finished"), "--set", "optimizer.rounds=20")...)
	mustRun(t, plain("--seeds", "10,9", "--out", at("seeds"), "--set", "optimizer.rounds=20")...)
	for _, name := range []string{"b-stopped", "c-running", "d-unusable", "e-damaged", "f-no-config"} {
		if err := os.CopyFS(at(name), os.DirFS(at("a-finished"))); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(name, file string, change func(string) string) {
		path := filepath.Join(at(name), file)
		if err := os.WriteFile(path, []byte(change(string(experimenttest.ReadFile(t, at(name), file)))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name, file string) {
		if err := os.Remove(filepath.Join(at(name), file)); err != nil {
			t.Fatal(err)
		}
	}
	remove("b-stopped", runfolder.SummaryName)
	remove("b-stopped", ".lock")
	edit("b-stopped", runfolder.MetricsName, func(s string) string { return strings.Join(strings.SplitAfter(s, "\n")[:6], "") })
	remove("c-running", runfolder.SummaryName)
	holder, err := runfolder.Open(at("c-running"))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	edit("d-unusable", runfolder.SummaryName, func(s string) string { return strings.Replace(s, `"unusable": ""`, `"unusable": "diverged"`, 1) })
	edit("e-damaged", runfolder.MetricsName, func(s string) string { return s[:len(s)/2] + "\x00" + s[len(s)/2:] })
	remove("f-no-config", runfolder.ConfigName)
	if err := os.MkdirAll(at("no-run/deeper"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, _ := mustRun(t, "runs", "--json", root, at("a-finished"))
	var lines []sweep.Listed
	if err := json.Unmarshal([]byte(stdout), &lines); err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name, state string
		round       int
		seed        int64
	}{
		{"a-finished", "finished", 20, 1}, {"b-stopped", "stopped", 5, 1}, {"c-running", "running", 20, 1}, {"d-unusable", "unusable", 20, 1},
		{"e-damaged", "damaged", 0, 1}, {"f-no-config", "damaged", 0, 0}, {"seeds/seed-9", "finished", 20, 9}, {"seeds/seed-10", "finished", 20, 10},
	}
	if len(lines) != len(want) {
		t.Fatalf("%d runs:\n%s", len(lines), stdout)
	}
	for i, w := range want {
		l := lines[i]
		if l.Dir != at(w.name) || l.State != w.state || l.Round != w.round || l.Seed != w.seed {
			t.Errorf("run %d is %+v, want %+v", i, l, w)
		}
		if l.State != sweep.Damaged && (l.Name != "loopback" || l.System != "none" || l.Rounds != 20 || l.Started == nil || time.Since(*l.Started) > time.Hour) {
			t.Errorf("run %d is %+v", i, l)
		}
		if (l.State == sweep.Damaged) != (l.Problem != "") {
			t.Errorf("%s: problem %q", l.State, l.Problem)
		}
		if finished := l.State == "finished"; finished && !(l.Accuracy > 0.5) || w.round == 5 && !math.IsNaN(float64(l.Accuracy)) {
			t.Errorf("accuracy %v", l.Accuracy)
		}
	}
	if _, err := os.Stat(filepath.Join(at("b-stopped"), ".lock")); err == nil {
		t.Error("to look has left a lock file")
	}
	stdout, _ = mustRun(t, "runs", root)
	for _, w := range []string{"a-finished", "20/20", "5/20", "running", "unusable", "e-damaged is damaged: ", "seed-10"} {
		if !strings.Contains(stdout, w) {
			t.Errorf("the table does not say %q:\n%s", w, stdout)
		}
	}
}

func TestRunsOfNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	stdout, _ := mustRun(t, "runs")
	if !strings.Contains(stdout, "There is no folder runs here yet") {
		t.Errorf("printed %q", stdout)
	}
	if stdout, _ = mustRun(t, "runs", "--json"); stdout != "[]\n" {
		t.Errorf("JSON %q", stdout)
	}
	if err := os.WriteFile("file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "nowhere"} {
		if status, _, stderr := run(t, "runs", name); status != exitBadInput || !strings.Contains(stderr, name) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d, %q", name, status, stderr)
		}
	}
}

// The version names the module, the revision and Go.
func TestVersion(t *testing.T) {
	stdout, _ := mustRun(t, "--version")
	m := runfolder.NewManifest(time.Now())
	for _, w := range []string{m.Program.Path, "revision ", m.Revision, m.Go} {
		if !strings.Contains(stdout, w) {
			t.Errorf("the version does not say %q:\n%s", w, stdout)
		}
	}
}
