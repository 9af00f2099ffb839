package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/paper"
)

// reproduced makes a small report of some chapters by the command, and gives its page.
func reproduced(t *testing.T, dir, chapters string, more ...string) string {
	t.Helper()
	stdout, _ := mustRun(t, append([]string{"reproduce", "--only", chapters, "--seeds", "1", "--rounds", "3", "--out", dir}, more...)...)
	experimenttest.WantAll(t, stdout, "Report: "+filepath.Join(dir, "report.html"))
	return string(experimenttest.ReadFile(t, dir, "report.html"))
}

// The command makes the report of the data in a named folder.
func TestReproduceCIFAR(t *testing.T) {
	experimenttest.NoData(t)
	page := reproduced(t, t.TempDir(), "cifar", "--data", experimenttest.FewImages(t), "--rounds", "1")
	experimenttest.WantAll(t, page, "81.70 %", "cut to 1 of 7500 rounds")
}

// Without the data the report goes on, and says how to get them.
func TestReproduceWithoutCIFAR(t *testing.T) {
	t.Setenv("RINGWAVE_DATA", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	page := reproduced(t, t.TempDir(), "cifar,disagreements")
	experimenttest.WantAll(t, page, "ringwave data fetch cifar10", `class="verdict missing">– not run`, "numbers disagree")
}

// A report on the built-in data says so.
func TestReproduceSaysWhichData(t *testing.T) {
	experimenttest.NoData(t)
	dir := t.TempDir()
	reproduced(t, dir, "disagreements")
	if text := string(experimenttest.ReadFile(t, dir, "report.md")); !strings.Contains(text, "MNIST was not found") {
		t.Error("the report does not say that it has no MNIST")
	}
}

// What an interrupted report says to go on with makes the same report.
func TestReproduceSaysHowToGoOn(t *testing.T) {
	f := paper.Options{Out: "a", Data: "b", Quick: true, Seeds: 2, CIFARSeeds: 1, Rounds: 3, Only: []string{"mnist", "packed"}}
	cmd := newReproduceCommand()
	if err := cmd.ParseFlags(strings.Fields(reproduceArguments(f))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"out": "a", "data": "b", "quick": "true", "seeds": "2", "cifar-seeds": "1", "rounds": "3", "only": "[mnist,packed]"} {
		if got := cmd.Flag(name).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", name, got, want)
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
