package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ringwave/cmd/internal/console"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/catalogue"
	"ringwave/learner/experiment/experimenttest"
)

// full takes some bytes, and then none, as a disk that is full.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	}
	f.room -= len(p)
	return len(p), nil
}

// Results that cannot be written are an error of the machine, whatever prints them, also
// where only their end is lost.
func TestLostResults(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "run")
	args := append([]string{"run", experimenttest.LoopbackConfig, "--out", whole}, small...)
	args = append(args, "--set", "experiment.aggregator=none", "--set", "optimizer.rounds=3")
	mustRun(t, args...)
	for _, args := range [][]string{
		{"sets"}, {"sets", "--json"}, {"--help"}, {"run", "--help"}, {"help", "run"}, {"--version"}, {"completion", "bash"},
		{"plan", experimenttest.LoopbackConfig, "--set", "task.dataset=strokes"}, {"run", "--resume", whole}, {"run", "--json", "--resume", whole},
		{"compare", whole, "--out", filepath.Join(dir, "comparison")}, {"attack", "ghost"},
		{"bench", "--devices", "1", "--rounds", "1", "--out", filepath.Join(dir, "bench")},
	} {
		for _, room := range []int{0, 100} {
			if room > 0 && args[0] != "sets" && args[0] != "--help" {
				continue // it takes its time
			}
			var errs bytes.Buffer
			if args[0] == "compare" || args[0] == "bench" {
				args[len(args)-1] += "-again"
			}
			status := execute(t.Context(), args, &full{room}, &errs)
			if last := lastLine(errs.String()); status != exitFailure || last != "ringwave: writing the results to standard output: no space left on device" {
				t.Errorf("%v with room for %d bytes: status %d, %q", args, room, status, last)
			}
		}
	}
	other := errors.New("another error")
	r := &console.Results{Err: errors.New("full")}
	if got := r.Lost(other); got != other {
		t.Errorf("lost results hide %v behind %v", other, got)
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// A word that is no command is refused also beside --help, at every level.
func TestUnknownCommands(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"gpu", `unknown command "gpu": see ringwave --help`},
		{"gpu --help", `unknown command "gpu": see ringwave --help`},
		{"--help gpu", `unknown command "gpu": see ringwave --help`},
		{"gpu -h --json", `unknown command "gpu": see ringwave --help`},
		{"help gpu", `unknown command "gpu": see ringwave --help`},
		{"-q gpu", `unknown command "gpu": see ringwave --help`},
		{"plna config.toml", `unknown command "plna", perhaps plan was meant: see ringwave --help`},
		{"data ftch mnist", `unknown command "ftch", perhaps fetch was meant: see ringwave data --help`},
		{"data gpu --help", `unknown command "gpu": see ringwave data --help`},
		{"help data gpu", `unknown command "gpu": see ringwave data --help`},
	} {
		status, stdout, stderr := run(t, strings.Fields(c.args)...)
		if status != exitBadInput || stdout != "" || stderr != "ringwave: "+c.want+"\n" {
			t.Errorf("%s: status %d\n%s%s", c.args, status, stdout, stderr)
		}
	}
	for _, args := range []string{"", "--help", "-h", "help", "help run", "help data fetch", "data", "data fetch --help", "run --help", "--version", "completion bash", "__complete ru"} {
		if status, stdout, stderr := run(t, strings.Fields(args)...); status != 0 || stdout == "" {
			t.Errorf("%q: status %d, stdout %q\n%s", args, status, stdout, stderr)
		}
	}
}

// That another data set is used than was asked for is said once; quiet, by the result.
func TestFallbackIsToldOnce(t *testing.T) {
	experimenttest.NoData(t)
	args := []string{"run", experimenttest.LoopbackConfig, "--set", "experiment.aggregator=none", "--set", "optimizer.rounds=3", "--set", "task.strokes_train=600", "--set", "task.strokes_test=300"}
	stdout, stderr := mustRun(t, append(args, "--out", filepath.Join(t.TempDir(), "run"))...)
	if n := strings.Count(stderr, "NOT FOUND"); n != 1 || strings.Contains(stdout, "not found") || !strings.Contains(stdout, "strokes  (fallback)") {
		t.Errorf("the fallback is not said once:\n%s%s", stderr, stdout)
	}
	stdout, stderr = mustRun(t, append(args, "-q", "--out", filepath.Join(t.TempDir(), "run"))...)
	if stderr != "" || strings.Count(stdout, "not found") != 1 {
		t.Errorf("quiet, the fallback is not said once:\n%s%s", stderr, stdout)
	}
}

// Quiet, a command prints what it does otherwise on standard output, and nothing else;
// verbose, a line for each round. Both at once are refused.
func TestQuietAndVerbose(t *testing.T) {
	args := append([]string{"run", experimenttest.LoopbackConfig}, small...)
	args = append(args, "--set", "experiment.aggregator=none", "--set", "optimizer.rounds=23")
	stdout, stderr := mustRun(t, append(args, "--quiet", "--out", filepath.Join(t.TempDir(), "run"))...)
	if stderr != "" || !strings.Contains(stdout, "Result after 23 rounds") {
		t.Errorf("quiet:\n%s%s", stdout, stderr)
	}
	_, stderr = mustRun(t, append([]string{"-v"}, append(args, "--out", filepath.Join(t.TempDir(), "run"))...)...)
	if n := strings.Count(stderr, " of 23, loss "); n != 23 {
		t.Errorf("verbose: %d lines of 23 rounds:\n%s", n, stderr)
	}
	for _, args := range [][]string{
		{"attack", "ghost", "-q"}, {"bench", "-q", "--devices", "1", "--rounds", "1", "--out", filepath.Join(t.TempDir(), "bench")},
		{"curves", "-q", "--devices", "2", "--sigma", "0.05", "--snr", "40", "--blocks", "1", "--set", "link.block_symbols=256", "--out", filepath.Join(t.TempDir(), "curves")},
		{"calibrate", "-q", experimenttest.LoopbackConfig, "--no-advice", "--set", "task.dataset=strokes", "--set", "calibration.blocks=20", "--out", filepath.Join(t.TempDir(), "calibration")},
	} {
		if _, stderr := mustRun(t, args...); stderr != "" {
			t.Errorf("%v:\n%s", args, stderr)
		}
	}
	if status, _, stderr := run(t, "sets", "-q", "-v"); status != exitBadInput || !strings.Contains(stderr, "contradict") {
		t.Errorf("quiet and verbose: status %d\n%s", status, stderr)
	}
}

// What sets and bench print as JSON is what they print as text.
func TestSetsAndBenchAsJSON(t *testing.T) {
	stdout, _ := mustRun(t, "sets", "--json")
	var sets []catalogue.Figures
	if err := json.Unmarshal([]byte(stdout), &sets); err != nil {
		t.Fatal(err)
	}
	for i, p := range xmkckks.Sets() {
		if s := sets[i]; s.Name != p.Name || s.Modulus != p.Modulus().String() || s.N != p.N || len(s.Primes) != len(p.Primes) || s.UplinkBits <= 0 || s.Security2018 == "" || s.Devices == 0 {
			t.Errorf("set %d is %+v", i, s)
		}
	}
	out := filepath.Join(t.TempDir(), "bench")
	stdout, _ = mustRun(t, "bench", "--json", "--devices", "1,2", "--rounds", "1", "--parameter-set", "demo-1024", "--out", out)
	var r experiment.RoundTimes
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.ParameterSet != "demo-1024" || len(r.Points) != 2 || r.Points[1].Devices != 2 || !(r.Points[1].Seconds > 0) {
		t.Errorf("bench %+v", r)
	}
	experimenttest.ReadFile(t, out, filepath.Base(r.Plot))

	stdout, _ = mustRun(t, "bench", "--json", "--devices", "2", "--dimensions", "1024,4096", "--rounds", "1", "--parameter-set", "demo-1024", "--out", filepath.Join(t.TempDir(), "dimensions"))
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	small, large := r.Points[0], r.Points[1]
	if small.Dimension != 1024 || large.Dimension != 4096 || !(large.DeviceBytes > 2*small.DeviceBytes) || math.IsNaN(float64(r.Exponent)) {
		t.Errorf("bench by dimension %+v", r)
	}
	for _, dimensions := range []string{"1000", "512", "32768"} {
		if status, _, stderr := run(t, "bench", "--devices", "2", "--dimensions", dimensions); status != 2 || !strings.Contains(stderr, "not a power of two from 1024 to 16384") {
			t.Errorf("--dimensions %s: status %d: %s", dimensions, status, stderr)
		}
	}
	if status, _, stderr := run(t, "bench", "--devices", "2,3", "--dimensions", "1024"); status != 2 || !strings.Contains(stderr, "one number of --devices") {
		t.Errorf("two numbers of devices: status %d: %s", status, stderr)
	}
}
