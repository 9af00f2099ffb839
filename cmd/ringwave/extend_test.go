package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// metricsBut returns the lines of metrics.csv, without the accuracy of a round: the last
// one of a run is evaluated.
func metricsBut(t *testing.T, dir, round string) string {
	t.Helper()
	text := string(experimenttest.ReadFile(t, dir, runfolder.MetricsName))
	return regexp.MustCompile(`(?m)^((?:`+round+`),[^,]*,)[^,]*`).ReplaceAllString(text, "$1")
}

// sameLines wants two texts to be the same, and shows the first line that is not.
func sameLines(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Errorf("line %d of metrics.csv is\n%s, want\n%s", i+1, g[i], w[i])
			return
		}
	}
	if len(g) != len(w) {
		t.Errorf("metrics.csv has %d lines, want %d", len(g), len(w))
	}
}

// copyOf copies a folder.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A run that is given more rounds has the lines of one that began with them, with and
// without keys, and its summary.
func TestExtend(t *testing.T) {
	for name, args := range map[string][]string{
		"plain":          plain(),
		"whole keys":     encrypted("--set", "encryption.key_epoch_rounds=5"),
		"without flood":  encrypted("--set", "encryption.parameter_set=paper-4096"),
		"keys of system": encrypted("--set", "encryption.randomness=system", "--set", "encryption.key_epoch_rounds=5"),
	} {
		t.Run(name, func(t *testing.T) {
			dir, whole := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "whole")
			mustRun(t, append(args, "--out", dir, "--rounds", "23")...)
			if s := summaryOf(t, dir); s.RoundsCompleted != 23 {
				t.Fatalf("--rounds: %d rounds", s.RoundsCompleted)
			}
			mustRun(t, "run", "--resume", dir, "--rounds", "31")
			mustRun(t, "run", "--resume", dir, "--set", "optimizer.rounds=40")
			mustRun(t, append(args, "--out", whole, "--rounds", "40")...)
			if s := summaryOf(t, dir); s.RoundsCompleted != 40 || s.Rounds != 40 {
				t.Errorf("%d of %d rounds", s.RoundsCompleted, s.Rounds)
			}
			if !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.ConfigName), experimenttest.ReadFile(t, whole, runfolder.ConfigName)) {
				t.Error("config.toml is not that of the longer run")
			}
			if !strings.Contains(name, "system") {
				sameLines(t, metricsBut(t, dir, "23|31"), metricsBut(t, whole, "23|31"))
			}
			mustRun(t, "compare", dir, whole, "--out", filepath.Join(t.TempDir(), "comparison"))
		})
	}
}

// encrypted is a short run with small devices.
func encrypted(args ...string) []string {
	all := append([]string{"run", experimenttest.LoopbackConfig}, small...)
	return append(append(all, "--set", "devices.count=2", "--set", "encryption.delta_max=1"), args...)
}

// Where its rounds would have been others, a run is not extended, and nothing of it is
// changed.
func TestExtendRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want   string
		begin, again []string
	}{
		{"flooded", "its decryption shares are flooded for 20 of one key, and 40 would be given", encrypted(), []string{"--rounds", "40"}},
		{"horizon", `the steps of optimizer.step_law = "theorem2"`, plain("--set", "optimizer.step_law=theorem2"), []string{"--rounds", "40"}},
		{"cosine", `the steps of optimizer.step_law = "cosine"`, plain("--set", "optimizer.step_law=cosine"), []string{"--rounds", "40"}},
		{"fewer", "it has 20, and none is taken back", plain(), []string{"--rounds", "19"}},
		{"the same", "it has them", plain(), []string{"--rounds", "20"}},
		{"none", "--rounds 0", plain(), []string{"--rounds", "0"}},
		{"negative", "--rounds -5", plain(), []string{"--rounds=-5"}},
		{"too many", "optimizer.rounds", plain(), []string{"--rounds", "1000000000"}},
		{"another key", "cannot go with --resume", plain(), []string{"--set", "optimizer.eta0=1"}},
		{"no number", "whole number of rounds", plain(), []string{"--set", "optimizer.rounds=x"}},
		{"part of a key", "its decryption shares are flooded for 20 of one key, and 25 would be given", encrypted("--set", "encryption.key_epoch_rounds=25"), []string{"--rounds", "40"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			mustRun(t, append(c.begin, "--out", dir, "--rounds", "20")...)
			before := filesOf(t, dir)
			status, stdout, stderr := run(t, append([]string{"run", "--resume", dir}, c.again...)...)
			if status != exitBadInput || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("status %d\n%s%s", status, stdout, stderr)
			}
			for name, data := range filesOf(t, dir) {
				if data != before[name] {
					t.Errorf("%s was changed", name)
				}
			}
		})
	}
}

// filesOf returns what a folder holds.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			files[e.Name()] = string(experimenttest.ReadFile(t, dir, e.Name()))
		}
	}
	return files
}

// Wherever the extension of a run is broken off, it can be resumed.
func TestExtendBrokenOff(t *testing.T) {
	short := filepath.Join(t.TempDir(), "run")
	mustRun(t, plain("--out", short, "--rounds", "20")...)
	long := copyOf(t, short)
	mustRun(t, "run", "--resume", long, "--rounds", "40")
	want := metricsBut(t, long, "20")
	replace := func(files ...string) string {
		dir := copyOf(t, short)
		for _, name := range files {
			if err := os.WriteFile(filepath.Join(dir, name), experimenttest.ReadFile(t, long, name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	early := replace(runfolder.ManifestName)
	mustRun(t, "run", "--resume", early)
	if s := summaryOf(t, early); s.RoundsCompleted != 20 {
		t.Errorf("before the configuration was written the run has %d rounds", s.RoundsCompleted)
	}
	mustRun(t, "run", "--resume", early, "--rounds", "40")
	late := replace(runfolder.ManifestName, runfolder.ConfigName)
	mustRun(t, "run", "--resume", late)
	for _, dir := range []string{early, late} {
		sameLines(t, metricsBut(t, dir, "20"), want)
	}
	edited := replace(runfolder.ManifestName)
	text := strings.Replace(string(experimenttest.ReadFile(t, long, runfolder.ConfigName)), "rounds = 40", "rounds = 50", 1)
	if err := os.WriteFile(filepath.Join(edited, runfolder.ConfigName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := run(t, "run", "--resume", edited); status != exitBadInput || !strings.Contains(stderr, "belongs to another configuration") {
		t.Errorf("a configuration of other rounds than the manifest's: status %d\n%s", status, stderr)
	}
	// Without the manifest's word another configuration is refused, as ever.
	if status, _, stderr := run(t, "run", "--resume", replace(runfolder.ConfigName)); status != exitBadInput || !strings.Contains(stderr, "belongs to another configuration") {
		t.Errorf("status %d\n%s", status, stderr)
	}
}
