package sweeps_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/hosts/sweeps"
	"ringwave/learner/paper"
)

// changed writes a sweep's file anew, with texts replaced.
func changed(t *testing.T, spec string, pairs ...string) {
	t.Helper()
	text := strings.NewReplacer(pairs...).Replace(string(experimenttest.ReadFile(t, spec)))
	if err := os.WriteFile(spec, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// status returns what the program says of a sweep.
func status(t *testing.T, out string) (s sweeps.State) {
	t.Helper()
	text, err := exec.Command(built(t), "sweep", "status", out, "--json").Output()
	if err != nil || json.Unmarshal(text, &s) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}

// ended waits for a process, and wants its exit status.
func ended(t *testing.T, p *exec.Cmd, said *spoken, want int) {
	t.Helper()
	_ = p.Wait() // its status says it
	if got := p.ProcessState.ExitCode(); got != want {
		t.Fatalf("%v ended with %d in place of %d: %s", p.Args, got, want, said)
	}
}

// Ctrl-C stops a sweep within a run's round, whose first rounds are not run again; cancel
// stops it from outside, status says how far it is, and the same command goes on: with the
// results of serial runs, and nothing else in their place.
func TestStopAndGoOn(t *testing.T) {
	built(t) // before the home of the build cache is another
	experimenttest.NoData(t)
	spec, _ := shortSweep(t, 12)
	changed(t, spec, "optimizer.rounds = 12", "optimizer.rounds = 400") // so that there is something to stop
	plan, err := sweep.Load(experiment.Lab{}, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := serial(t, plan)
	out := filepath.Join(t.TempDir(), "out")
	words := []string{built(t), "sweep", spec, "--out", out, "--workers", "2"}
	p, said := begin(t, words...)
	until(t, "a result", func() bool { return len(results(t, out)) > 0 })
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended(t, p, said, 130)
	if !strings.Contains(said.String(), "the same command goes on") {
		t.Errorf("said %s", said)
	}
	s := status(t, out)
	if s.Active || s.Done == 0 || s.Done == 12 || s.Runs != 12 {
		t.Errorf("%+v", s)
	}
	before := stamps(t, out)
	p, said = begin(t, words...)
	until(t, "another result", func() bool { return len(results(t, out)) > len(before) })
	if text, err := exec.Command(built(t), "sweep", "cancel", out).CombinedOutput(); err != nil || !strings.Contains(string(text), "Cancelled with") {
		t.Errorf("%v: %s", err, text)
	}
	ended(t, p, said, 2)
	if !strings.Contains(said.String(), "the sweep was cancelled") || !status(t, out).Cancelled {
		t.Errorf("said %s", said)
	}
	p, said = begin(t, words...)
	ended(t, p, said, 0)
	same(t, out, plan, want)
	after := stamps(t, out)
	for name, at := range before {
		if !after[name].Equal(at) {
			t.Errorf("%s was computed again", name)
		}
	}
	// With more seeds the results that there are stay.
	changed(t, spec, `"1-3"`, `"1-4"`)
	p, said = begin(t, words...)
	ended(t, p, said, 0)
	if !strings.Contains(said.String(), "16 runs into "+out+", of which 12 are there") || len(results(t, out)) != 16 {
		t.Errorf("said %s", said)
	}
}

// stamps returns when the results of a sweep were made.
func stamps(t *testing.T, out string) map[string]time.Time {
	t.Helper()
	at := map[string]time.Time{}
	for _, dir := range results(t, out) {
		info, err := os.Stat(filepath.Join(dir, "summary.json"))
		if err != nil {
			t.Fatal(err)
		}
		at[dir] = info.ModTime()
	}
	return at
}

// A combination that cannot be run, and a run whose process is killed each time, are set
// aside with a sentence and a log, the others go on, and --retry takes them up again.
func TestSetAside(t *testing.T) {
	built(t) // before the home of the build cache is another
	experimenttest.NoData(t)
	spec, _ := shortSweep(t, 4)
	changed(t, spec, "devices.count = [2, 3]", "devices.count = [2, 300]", "channel.std = [0.1, 1.0]", "channel.std = [0.1]", "optimizer.rounds = 12", "optimizer.rounds = 100000")
	out := filepath.Join(t.TempDir(), "out")
	p, said := begin(t, built(t), "sweep", spec, "--out", out, "--workers", "1", "--json")
	for range 3 {
		until(t, "a run on its way", func() bool { return kill(t, p.Process.Pid, out) })
	}
	ended(t, p, said, 3)
	experimenttest.WantAll(t, said.String(),
		"set aside: count=300, std=0.1, seed=1: sharing out strokes: ",
		"count=2, std=0.1, seed=1 failed at worker", "attempt 2 of 3",
		"set aside: count=2, std=0.1, seed=1: its process ended: signal: killed",
		`"without_result": [`, "of 2 runs 2 were set aside")
	for _, name := range []string{"error.txt", "log.txt"} {
		if found, err := filepath.Glob(filepath.Join(out, "failed", "*", name)); err != nil || len(found) != 2 {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
	changed(t, spec, "100000", "6", "[2, 300]", "[2]")
	p, said = begin(t, built(t), "sweep", spec, "--out", out, "--retry")
	ended(t, p, said, 0)
}

// kill ends the process that computes a run for a process, if it has begun one, and reports
// whether it has.
func kill(t *testing.T, of int, out string) bool {
	t.Helper()
	begun, err := filepath.Glob(filepath.Join(out, "queue", "scratch", "*", "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", of, of))
	if err != nil || len(begun) == 0 {
		return false
	}
	// Another thread may be its parent.
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tasks {
		more, err := os.ReadFile(path)
		if err == nil {
			text = append(append(text, ' '), more...)
		}
	}
	killed := false
	for _, word := range bytes.Fields(text) {
		pid, err := strconv.Atoi(string(word))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed = true
		}
	}
	if killed {
		for _, path := range begun {
			if err := os.RemoveAll(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return killed
}

// A machine whose disk is full by itself stops with a sentence, and goes on when there is
// room.
func TestFullDiskOfASweep(t *testing.T) {
	built(t) // before the home of the build cache is another
	experimenttest.NoData(t)
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=200k"); err != nil {
		t.Skipf("a small file system is needed to fill, and mounting one failed: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	spec, plan := shortSweep(t, 8)
	out := filepath.Join(mount, "out")
	p, said := begin(t, built(t), "sweep", spec, "--out", out)
	ended(t, p, said, 1)
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "no space left on device") {
		t.Errorf("the last word is %q of %s", last, said)
	}
	if err := syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	p, said = begin(t, built(t), "sweep", spec, "--out", out)
	ended(t, p, said, 0)
	same(t, out, plan, serial(t, plan))
}

// Two processes are not at one sweep.
func TestOneProcess(t *testing.T) {
	built(t) // before the home of the build cache is another
	experimenttest.NoData(t)
	spec, _ := shortSweep(t, 4)
	out := filepath.Join(t.TempDir(), "out")
	begin(t, built(t), "sweep", spec, "--out", out, "--workers", "-1", "--listen", freeAddress(t))
	until(t, "the sweep's begin", func() bool {
		_, err := os.Stat(filepath.Join(out, "state.json"))
		return err == nil
	})
	p, said := begin(t, built(t), "sweep", spec, "--out", out)
	ended(t, p, said, 2)
	if !strings.Contains(said.String(), "another process is at it") {
		t.Errorf("said %s", said)
	}
}

// A report whose runs two workers of other processes compute is that of one process, byte by
// byte, and the workers go when it is done.
func TestReproduceWithWorkers(t *testing.T) {
	built(t) // before the home of the build cache is another
	experimenttest.NoData(t)
	options := paper.Options{Quick: true, Seeds: 1, CIFARSeeds: 1, Rounds: 20, Only: []string{"mnist", "packed"}, Out: filepath.Join(t.TempDir(), "alone")}
	options, err := options.Complete()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := paper.Reproduce(t.Context(), options, io.Discard); err != nil {
		t.Fatal(err)
	}
	out, address := filepath.Join(t.TempDir(), "report"), freeAddress(t)
	p, said := begin(t, built(t), "reproduce", "--quick", "--seeds", "1", "--rounds", "20", "--only", "mnist,packed", "--out", out, "--listen", address, "--workers", "-1")
	id := filepath.Join(out, "queue", "enrolled", "worker.identity")
	until(t, "the report's identity", func() bool { return strings.Contains(said.String(), "--join") })
	workers := map[*exec.Cmd]*spoken{}
	for range 2 {
		w, words := begin(t, built(t), "worker", id, "--join", "tls://"+address, "--jobs", "1", "--scratch", t.TempDir())
		workers[w] = words
	}
	ended(t, p, said, 0)
	for w, words := range workers {
		ended(t, w, words, 0)
	}
	for _, name := range []string{"report.md", "report.html", filepath.Join("plots", "packed.png"), filepath.Join("plots", "packed.svg")} {
		if !bytes.Equal(experimenttest.ReadFile(t, options.Out, name), experimenttest.ReadFile(t, out, name)) {
			t.Errorf("%s is another one", name)
		}
	}
}
