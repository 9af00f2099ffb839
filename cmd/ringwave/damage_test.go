package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// wantRefused wants a resume to end with a sentence that names a file and says why,
// before a round runs: checkpoint and metrics.csv stay as they are.
func wantRefused(t *testing.T, dir, name string, says ...string) {
	t.Helper()
	metrics, checkpoint := experimenttest.ReadFile(t, dir, runfolder.MetricsName), experimenttest.ReadFile(t, dir, runfolder.CheckpointName)
	status, _, stderr := run(t, "run", "--resume", dir)
	if status != exitBadInput || strings.Count(strings.TrimSpace(stderr), "\n") != 0 {
		t.Errorf("%s: status %d: %s", name, status, stderr)
	}
	for _, part := range append(says, dir) {
		if !strings.Contains(stderr, part) {
			t.Errorf("%s: %q does not say %q", name, stderr, part)
		}
	}
	if !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.MetricsName), metrics) || !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.CheckpointName), checkpoint) {
		t.Errorf("%s: the run went on", name)
	}
}

func writeFile(t *testing.T, data []byte, path ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path...), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// plainArgs is a run of which a resume takes milliseconds.
var plainArgs = append(slices.Clone(small), "--set", "experiment.aggregator=none", "--set", "devices.count=2",
	"--set", "task.strokes_train=40", "--set", "task.strokes_test=20", "--set", "optimizer.batch_size=4", "--set", "optimizer.rounds=3000",
	"--set", "optimizer.checkpoint_every_rounds=500")

func TestResumeRefusesFlippedBits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	stopped(t, dir, 4000, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, plainArgs...)...)
	good := experimenttest.ReadFile(t, dir, runfolder.MetricsName)
	c, err := runfolder.DecodeCheckpoint(experimenttest.ReadFile(t, dir, runfolder.CheckpointName))
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(12, 10))
	for range 200 {
		at, bit := rnd.IntN(int(c.MetricsOffset)), rnd.IntN(8)
		bad := bytes.Clone(good)
		bad[at] ^= 1 << bit
		writeFile(t, bad, dir, runfolder.MetricsName)
		wantRefused(t, dir, "a flipped bit", filepath.Join(dir, runfolder.MetricsName), "the run cannot be resumed")
	}
	writeFile(t, good, dir, runfolder.MetricsName)
	mustRun(t, "run", "--resume", dir)
	whole := filepath.Join(t.TempDir(), "whole")
	mustRun(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", whole}, plainArgs...)...)
	if !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.MetricsName), experimenttest.ReadFile(t, whole, runfolder.MetricsName)) {
		t.Error("stopped and resumed, metrics.csv is not that of the uninterrupted run")
	}
}

// Lines behind the checkpoint, from which a run with the system's keys takes rounds,
// are in no digest: they must fit each other and what training says again.
func TestResumeRefusesDamageBeyondCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := append(slices.Clone(systemArgs), "--set", "channel.drift=none", "--set", "optimizer.checkpoint_every_rounds=200")
	killed(t, dir, 3000, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, args...)...)
	data := experimenttest.ReadFile(t, dir, runfolder.MetricsName)
	lines := strings.SplitAfter(string(data[:bytes.LastIndexByte(data, '\n')+1]), "\n")
	lines = lines[:len(lines)-1]
	columns := strings.Split(strings.TrimSpace(lines[0]), ",")
	for _, column := range []string{"train_loss", "m", "m_ideal", "eps", "eta", "gamma"} {
		for _, n := range []int{2, len(lines) - 1} {
			fields := strings.Split(lines[n], ",")
			fields[slices.Index(columns, column)] = anotherDigit(fields[slices.Index(columns, column)])
			bad := slices.Clone(lines)
			bad[n] = strings.Join(fields, ",")
			writeFile(t, []byte(strings.Join(bad, "")), dir, runfolder.MetricsName)
			wantRefused(t, dir, column, runfolder.MetricsName, "the run cannot be resumed")
		}
	}
	writeFile(t, data, dir, runfolder.MetricsName)
	mustRun(t, "run", "--resume", dir)
}

// anotherDigit changes the lowest bit of a number's first digit that is not 0.
func anotherDigit(field string) string {
	b := []byte(field)
	b[bytes.IndexAny(b, "123456789")] ^= 1
	return string(b)
}

// With keys from a seed a journal that was deleted or cut is noticed as with those of
// the system; one that is whole lets the run repeat what the seed gives.
func TestJournalOfSeedsTamperedWith(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := append(slices.Clone(systemArgs), "--set", "encryption.randomness=seed", "--set", "channel.drift=none", "--set", "optimizer.rounds=400")
	stopped(t, dir, 1200, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, args...)...)
	path := filepath.Join(dir, experiment.JournalName)
	journal := experimenttest.ReadFile(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, "deleted", path, "is missing")
	if _, err := os.Stat(path); err == nil {
		t.Error("a new journal was made")
	}
	writeFile(t, nil, path)
	wantRefused(t, dir, "emptied", path, "no decryption share of device 1 in round 1, which metrics.csv has")
	writeFile(t, journal[:len(journal)-2*40], path)
	wantRefused(t, dir, "cut", path, "no decryption share of device")
	const most = 64 * (3*400 + 65536) // bytes: of each share, and of as many sittings as nobody has
	writeFile(t, journal, path)
	if err := os.Truncate(path, most+1); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, "long", path, fmt.Sprintf("has %d bytes; allowed is a regular file of at most %d bytes", most+1, most))
	if err := os.Truncate(path, most); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, "padded", path, "damaged")
	writeFile(t, journal, path)
	before := len(metricsOf(t, dir))
	stopped(t, dir, int64(len(experimenttest.ReadFile(t, dir, runfolder.MetricsName))+300), "run", "--resume", dir)
	if len(metricsOf(t, dir)) <= before {
		t.Error("with its journal put back the run did not go on")
	}
}
