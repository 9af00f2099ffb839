package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
)

// Runs that several processes begin at the same moment, without a name for their
// folders, all come to their end, each in a folder of its own.
func TestRunsAtOnceLoseNothing(t *testing.T) {
	config, err := filepath.Abs(experimenttest.LoopbackConfig)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var children []*exec.Cmd
	for seed := range 4 {
		child := exec.Command(os.Args[0])
		args := append([]string{"run", config, "--seed", strconv.Itoa(seed)}, small...)
		args = append(args, "--set", "experiment.aggregator=none", "--set", "optimizer.rounds=2")
		child.Dir, child.Env = dir, append(os.Environ(), childArgs+"="+strings.Join(args, "\n"))
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, child)
	}
	for _, child := range children {
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
	}
	summaries, err := filepath.Glob(filepath.Join(dir, "runs", "*", "summary.json"))
	if err != nil || len(summaries) != len(children) {
		t.Errorf("%d of %d runs have a summary: %v", len(summaries), len(children), summaries)
	}
}
