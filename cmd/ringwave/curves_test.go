package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/curves"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// fewCurves is a matter of a second: short blocks, some of which are not read.
var fewCurves = []string{"curves", "--devices", "2,3", "--sigma", "0.3", "--snr", "20:30:10", "--blocks", "6", "--attempts", "2", "--set", "link.block_symbols=1000"}

func curvesOf(t *testing.T, dir string) curves.Result {
	t.Helper()
	var r curves.Result
	if err := json.Unmarshal(experimenttest.ReadFile(t, dir, curves.JSONName), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCurves: longer, or of more branches, than most because it is one history of a folder, whose steps have branches of their own.
func TestCurves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "curves")
	stdout, stderr := mustRun(t, append(fewCurves, "--out", dir)...)
	r := curvesOf(t, dir)
	if len(r.Points) != 4 || !r.Complete {
		t.Fatalf("%+v", r)
	}
	for i, p := range r.Points {
		sum := 0
		for _, n := range p.ReadAt {
			sum += n
		}
		if p.Blocks != 6 || p.Wrong != 0 || len(p.ReadAt) != 2 || p.ReadAt[0] != p.ReadFirst || sum != p.ReadWithin || p.PhysicsRead != nil {
			t.Errorf("point %d: %+v", i+1, p)
		}
		if !(p.FirstLow <= p.First && p.First <= p.FirstHigh && p.WithinLow <= p.Within && p.Within <= p.WithinHigh && p.First <= p.Within) {
			t.Errorf("point %d: shares %+v", i+1, p)
		}
	}
	if n := bytes.Count(experimenttest.ReadFile(t, dir, curves.CSVName), []byte("\n")); n != 5 {
		t.Errorf("%d lines in %s", n, curves.CSVName)
	}
	if m, err := runfolder.ReadManifest(filepath.Join(dir, runfolder.ManifestName)); err != nil || m.Seeds["experiment"] != 1 || m.ConfigDigest == (runfolder.Digest{}) {
		t.Errorf("manifest %+v, %v", m, err)
	}
	if _, err := config.Load(filepath.Join(dir, runfolder.ConfigName), nil); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"success-snr", "success-retry", "success-devices", "success-sigma", "misfit-snr"} {
		for _, ext := range []string{".svg", ".png"} {
			if info, err := os.Stat(filepath.Join(dir, name+ext)); err != nil || info.Size() == 0 {
				t.Errorf("plot %s%s: %v", name, ext, err)
			}
		}
		if !strings.Contains(stdout, name+".png") {
			t.Errorf("the result does not say where %s.png is", name)
		}
	}
	if !strings.Contains(stderr, "left") || !strings.Contains(stdout, "Nothing was accepted that is not") {
		t.Errorf("%s\n%s", stdout, stderr)
	}
}

// The same bytes on one and on two cores, from one sitting or several; another seed
// gives others.
func TestCurvesAreRepeatable(t *testing.T) {
	var files [][]byte
	for _, procs := range []int{1, 2} {
		before := runtime.GOMAXPROCS(procs)
		dir := filepath.Join(t.TempDir(), "curves")
		mustRun(t, append(fewCurves, "--out", dir)...)
		runtime.GOMAXPROCS(before)
		files = append(files, slices.Concat(experimenttest.ReadFile(t, dir, curves.JSONName), experimenttest.ReadFile(t, dir, curves.CSVName)))
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the results differ between GOMAXPROCS 1 and 2")
	}
	dir := filepath.Join(t.TempDir(), "curves")
	mustRun(t, append(fewCurves, "--seed", "2", "--out", dir)...)
	if bytes.Equal(files[0], slices.Concat(experimenttest.ReadFile(t, dir, curves.JSONName), experimenttest.ReadFile(t, dir, curves.CSVName))) {
		t.Error("another seed gives the same results")
	}
}

// stopAt cancels a context once a text is written.
type stopAt struct {
	bytes.Buffer
	text string
	stop context.CancelFunc
}

func (w *stopAt) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.text) {
		w.stop()
	}
	return n, err
}

func TestCurvesStopAndGoOn(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	mustRun(t, append(fewCurves, "--out", whole)...)

	dir := filepath.Join(t.TempDir(), "curves")
	args := append(fewCurves, "--out", dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &stopAt{text: "point 2 of 4", stop: cancel}
	if status := execute(ctx, args, &bytes.Buffer{}, stderr); status != exitInterrupted {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	if !strings.Contains(stderr.String(), "Stopped after point 2 of 4") || !strings.Contains(stderr.String(), "--out "+dir) {
		t.Errorf("%s", stderr)
	}
	if r := curvesOf(t, dir); len(r.Points) != 2 || r.Complete {
		t.Errorf("%d points after the stop, complete: %v", len(r.Points), r.Complete)
	}
	if n := bytes.Count(experimenttest.ReadFile(t, dir, curves.CSVName), []byte("\n")); n != 3 {
		t.Errorf("%d lines in %s after the stop", n, curves.CSVName)
	}

	status, stdout, errs := run(t, append(slices.Clone(args), "--attempts", "3")...)
	if status != exitBadInput || stdout != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "attempts = 2") || !strings.Contains(errs, "now it is 3") {
		t.Errorf("another setting: status %d\n%s%s", status, stdout, errs)
	}
	mustRun(t, args...)
	mustRun(t, args...) // complete: only drawn again
	for _, name := range []string{curves.JSONName, curves.CSVName} {
		if !bytes.Equal(experimenttest.ReadFile(t, dir, name), experimenttest.ReadFile(t, whole, name)) {
			t.Errorf("%s differs from that of a run that was not stopped", name)
		}
	}
}

func TestCurvesRefuse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "curves")
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	torn := t.TempDir()
	if err := os.WriteFile(filepath.Join(torn, curves.JSONName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Short points would take gigabytes.
	long := t.TempDir()
	if err := os.WriteFile(filepath.Join(long, curves.JSONName), []byte(`{"points": [{}`+strings.Repeat(",{}", 2000)+"]}"), 0o644); err != nil {
		t.Fatal(err)
	}
	huge := t.TempDir()
	if err := os.WriteFile(filepath.Join(huge, curves.JSONName), bytes.Repeat([]byte(" "), 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--out", long}, "the length of points is more than 1000; allowed is at most 1000"},
		{[]string{"--out", huge}, curves.JSONName + ": the length is more than"},
		{[]string{"--devices", "1:9:1", "--sigma", "1:100:1", "--snr", "1:100:1"}, "make 90000 points: allowed are at most 65536"},
		{[]string{"--snr", "1:50:0.1,50.05:150:0.1"}, "--snr has 1491 values: allowed are at most 1000"},
		{[]string{"--devices", "0"}, "--devices: 0 is not allowed: allowed are 1 to 32"},
		{[]string{"--devices", "2.5"}, "2.5 is not a whole number"},
		{[]string{"--devices", ""}, `"" is neither`},
		{[]string{"--snr", "20:60"}, `"20:60" is neither`},
		{[]string{"--snr", "60:20:5"}, "neither"},
		{[]string{"--snr", "20:60:0"}, "neither"},
		{[]string{"--snr", "20:60:NaN"}, "neither"},
		{[]string{"--snr", "0:200:1e-9"}, "at most 1000 values"},
		{[]string{"--snr", "NaN"}, "NaN is not allowed"},
		{[]string{"--snr", "300"}, "300 is not allowed"},
		{[]string{"--sigma", "-1"}, "-1 is not allowed"},
		{[]string{"--blocks", "0"}, "--blocks is 0"},
		{[]string{"--attempts", "0"}, "--attempts is 0"},
		{[]string{"--set", "link.snr_d=3"}, "link.snr_db"},
		{[]string{"--set", "link.block_symbols=64"}, "64 symbols"},
		{[]string{"--set", "link.edge_samples=8"}, "edge"},
		{[]string{"--out", full}, "not empty"},
		{[]string{"--out", torn}, "not what this command writes"},
		{[]string{"none.toml"}, "none.toml"},
		{[]string{"a", "b"}, "one CONFIG file or none"},
	} {
		status, stdout, stderr := run(t, append([]string{"curves", "--out", dir}, c.args...)...)
		if status != exitBadInput || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d, want one sentence with %q:\n%s%s", c.args, status, c.want, stdout, stderr)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("%v: a folder was left behind", c.args)
		}
	}
}

// A block of more samples than a medium holds by default is sent, too.
func TestCurvesOfLongBlocks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"curves", "--devices", "2", "--sigma", "0.3", "--snr", "40", "--blocks", "1", "--attempts", "1",
		"--set", "link.block_symbols=65536", "--set", "link.samples_per_symbol=64", "--out", filepath.Join(t.TempDir(), "curves")}
	done := make(chan int, 1)
	var errs bytes.Buffer
	go func() { done <- execute(ctx, args, &bytes.Buffer{}, &errs) }()
	select {
	case status := <-done:
		if status != 0 {
			t.Errorf("status %d\n%s", status, &errs)
		}
	case <-ctx.Done():
		t.Error("the block never arrived")
	}
}

func TestLists(t *testing.T) {
	for text, want := range map[string][]float64{
		"3":               {3},
		"20:40:5,50":      {20, 25, 30, 35, 40, 50},
		"0.1:0.3:0.1":     {0.1, 0.2, 0.3},
		"4, 2,3,2":        {2, 3, 4},
		"-5:5:7":          {-5, 2},
		"40:40:1":         {40},
		"1e-2,1:2.05:0.5": {0.01, 1, 1.5, 2},
	} {
		if got, err := curves.ParseList("--x", text, -10, 100); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}
