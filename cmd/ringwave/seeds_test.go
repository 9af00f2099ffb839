package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
)

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]int64{
		"7": {7}, "1-4": {1, 2, 3, 4}, "1,3,5-7": {1, 3, 5, 6, 7}, " 3 , 1 - 2,2": {1, 2, 3}, "0": {0},
		"9223372036854775806-9223372036854775807": {9223372036854775806, 9223372036854775807},
	} {
		if got, err := sweep.ParseSeeds(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", ",", "a", "1-", "-1", "3-1", "1--2", "1.5", "1-10001", "1-5000,5001-10001", "0-9223372036854775807", "9223372036854775808", "1;2"} {
		if got, err := sweep.ParseSeeds(text); err == nil || strings.Contains(err.Error(), "strconv") {
			t.Errorf("%q: %d seeds, %v", text, len(got), err)
		}
	}
}

// plain is a run in a moment, without encryption.
func plain(args ...string) []string {
	return append(append([]string{"run", experimenttest.LoopbackConfig}, small...), append([]string{"--set", "experiment.aggregator=none"}, args...)...)
}

// Each seed's run is what it is alone; the folder goes on with what it lacks, and refuses
// another configuration. JSON is an array.
func TestSeeds(t *testing.T) {
	out := filepath.Join(t.TempDir(), "all")
	stdout, stderr := mustRun(t, plain("--seeds", "4,1-2", "--out", out)...)
	if !strings.Contains(stdout, "Accuracy: median ") || strings.Count(stderr, "Note:") != 1 || !strings.Contains(stderr, "round 180 of 180, seed 4, ") {
		t.Errorf("printed:\n%s%s", stdout, stderr)
	}
	alone := filepath.Join(t.TempDir(), "alone")
	mustRun(t, plain("--seed", "4", "--out", alone)...)
	if !bytes.Equal(experimenttest.ReadFile(t, alone, runfolder.MetricsName), experimenttest.ReadFile(t, filepath.Join(out, "seed-4"), runfolder.MetricsName)) {
		t.Error("seed 4 of several is another run than seed 4 alone")
	}
	mustRun(t, "compare", filepath.Join(out, "seed-1"), filepath.Join(out, "seed-2"), "--out", filepath.Join(t.TempDir(), "comparison"))

	before := experimenttest.ReadFile(t, filepath.Join(out, "seed-1"), runfolder.SummaryName)
	stdout, _ = mustRun(t, plain("--seeds", "1-4", "--out", out, "--json")...)
	var figures []sweep.Figures
	if err := json.Unmarshal([]byte(stdout), &figures); err != nil {
		t.Fatal(err)
	}
	for i, f := range figures {
		if f.Seed != uint64(i+1) || f.Dir != filepath.Join(out, "seed-"+strconv.Itoa(i+1)) || f.RoundsCompleted != 60 {
			t.Errorf("element %d is %+v", i, f)
		}
	}
	if len(figures) != 4 || !bytes.Equal(before, experimenttest.ReadFile(t, filepath.Join(out, "seed-1"), runfolder.SummaryName)) {
		t.Errorf("%d runs, or one that had ended was run again", len(figures))
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{plain("--seeds", "1-5", "--out", out, "--set", "optimizer.rounds=61"), "seed-1 was begun with another configuration"},
		{plain("--seeds", "1-5", "--out", alone), "--out " + alone + " holds "},
		{plain("--seeds", "1-5", "--seed", "3"), "--seeds names the seeds"},
		{plain("--seeds", "1-5", "--set", "experiment.seed=3"), "--seeds names the seeds"},
		{plain("--seeds", "5-1"), "neither a seed nor a range"},
		{[]string{"run", "--resume", alone, "--seeds", "1-2"}, "--seeds cannot go with --resume"},
	} {
		status, stdout, stderr := run(t, c.args...)
		if status != exitBadInput || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: status %d\n%s%s", c.args, status, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "seed-5")); err == nil {
		t.Error("a refused command has begun a run")
	}
}

// The status is the worst of all runs', and one without a result keeps no other from its
// own.
func TestSeedsWithoutResult(t *testing.T) {
	out := filepath.Join(t.TempDir(), "all")
	args := plain("--seeds", "1-3", "--out", out, "--set", "optimizer.rounds=20")
	mustRun(t, plain("--seeds", "2", "--out", out, "--set", "optimizer.rounds=20")...)
	path := filepath.Join(out, "seed-2", runfolder.SummaryName)
	text := strings.Replace(string(experimenttest.ReadFile(t, filepath.Join(out, "seed-2"), runfolder.SummaryName)), `"unusable": ""`, `"unusable": "training diverged"`, 1)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := run(t, args...)
	if status != exitUnusable || !strings.Contains(stderr, "1 of 3 seeds have none: 2;") || strings.Count(stdout, "*** not usable") != 1 {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	for _, seed := range []string{"seed-1", "seed-3"} {
		if s := summaryOf(t, filepath.Join(out, seed)); s.RoundsCompleted != 20 {
			t.Errorf("%s: %+v", seed, s)
		}
	}
}

// Stopped in the midst of a seed, the command says how to go on, and what it says does:
// to the bytes of runs that were never stopped.
func TestSeedsStopAndGoOn(t *testing.T) {
	out := filepath.Join(t.TempDir(), "all of them")
	args := plain("--seeds", "1-3", "--set", "optimizer.rounds=1500")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go cancelAfter(filepath.Join(out, "seed-2", runfolder.MetricsName), 3000, cancel)
	var stdout, stderr bytes.Buffer
	status := execute(ctx, append(slices.Clone(args), "--out", out), &stdout, &stderr)
	if status != exitInterrupted || stdout.Len() > 0 || !strings.Contains(stderr.String(), "Stopped with 1 of 3 seeds done. Go on with:") {
		t.Fatalf("status %d\n%s%s", status, stdout.String(), stderr.String())
	}
	listed, _ := mustRun(t, "runs", out, "--json")
	var lines []sweep.Listed
	if err := json.Unmarshal([]byte(listed), &lines); err != nil || len(lines) != 2 || lines[0].State != "finished" || lines[1].State != "stopped" || !(lines[1].Round > 0 && lines[1].Round < 1500) {
		t.Errorf("%v, runs %+v", err, lines)
	}
	again := exec.Command("sh", "-c", `printf '%s\n' `+strings.TrimPrefix(lastLine(stderr.String()), "  "))
	words, err := again.Output()
	if err != nil {
		t.Skip("no shell:", err)
	}
	mustRun(t, strings.Split(strings.TrimSpace(string(words)), "\n")[1:]...)
	whole := filepath.Join(t.TempDir(), "whole")
	mustRun(t, append(args, "--out", whole)...)
	for _, seed := range []string{"seed-1", "seed-2", "seed-3"} {
		if !bytes.Equal(experimenttest.ReadFile(t, filepath.Join(out, seed), runfolder.MetricsName), experimenttest.ReadFile(t, filepath.Join(whole, seed), runfolder.MetricsName)) {
			t.Errorf("%s differs from that of a command that was not stopped", seed)
		}
	}
}
