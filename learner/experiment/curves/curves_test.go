package curves

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringwave/learner/experiment/runfolder"
	"ringwave/phy/modem"
	"ringwave/phy/trial"
	"ringwave/radio/intake"
)

// few is a matter of a second: short blocks, some of which are not read.
func few() Options {
	return Options{
		Settings: Settings{
			Devices: []int{2, 3}, Sigma: []float64{0.3}, SNRdB: []float64{20, 30}, Blocks: 4, Attempts: 2, Seed: 1,
			Base: 3, BlockSymbols: 1000, Pulse: "flat-top", SamplesPerSymbol: 4, DelaySpreadSamples: 1, PhaseSpreadRad: 0.2,
		},
		Modem: modem.Config{
			SamplesPerSymbol: 4, Preamble: modem.Preamble{Length: 255},
			Pulse: modem.FlatTop{Edge: 1, Tolerance: 1},
		},
		Config:   []byte("[experiment]\n"),
		Manifest: runfolder.NewManifest(time.Unix(0, 0)),
	}
}

// measured measures curves in a folder, until ctx ends.
func measured(t *testing.T, ctx context.Context, dir string, o Options, w Watch) (Result, error) {
	t.Helper()
	c, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Measure(ctx, w)
	return c.Result(), err
}

// Curves that were stopped say so with the error of their context, and end as those that
// were not.
func TestMeasureGoesOn(t *testing.T) {
	whole, parted := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parted")
	if r, err := measured(t, t.Context(), whole, few(), Watch{}); err != nil || !r.Complete || len(r.Points) != 4 || r.Wrong() != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	trials, points := 0, 0
	r, err := measured(t, ctx, parted, few(), Watch{Trial: func() { trials++ }, Point: func(Point) {
		if points++; points == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || intake.IsUserError(err) || len(r.Points) != 2 || r.Complete || trials < 8 {
		t.Fatalf("%d trials, %+v, %v", trials, r, err)
	}
	trials = 0
	if r, err := measured(t, t.Context(), parted, few(), Watch{Trial: func() { trials++ }}); err != nil || !r.Complete || trials != 2*4 {
		t.Fatalf("%d trials for two points, %+v, %v", trials, r, err)
	}
	for _, name := range []string{JSONName, CSVName, runfolder.ConfigName} {
		a, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(parted, name))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs from that of curves that were not stopped: %v", name, err)
		}
	}
}

// Curves whose folder an earlier program wrote, with another name for the bound, go on and
// have it.
func TestEarlierCurvesGoOn(t *testing.T) {
	o := few()
	o.Devices, o.SNRdB, o.Blocks, o.BlockSymbols = []int{2}, []float64{30}, 1, 8192
	dir := filepath.Join(t.TempDir(), "curves")
	if r, err := measured(t, t.Context(), dir, o, Watch{}); err != nil || r.Points[0].PhysicsRead == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	path := filepath.Join(dir, JSONName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	earlier := bytes.ReplaceAll(data, []byte("prototype_share"), []byte("physics_md_share"))
	if bytes.Equal(earlier, data) {
		t.Fatalf("no share of the prototype in %s", data)
	}
	if err := os.WriteFile(path, earlier, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := measured(t, t.Context(), dir, o, Watch{}); err != nil || r.Points[0].PhysicsRead == nil || *r.Points[0].PhysicsRead != 0.95 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What cannot be measured is refused before a folder is there.
func TestOpenRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "curves")
	for want, change := range map[string]func(*Options){
		"devices is 0: allowed are 1 to 1000":   func(o *Options) { o.Devices = nil },
		"snr_db is 1001":                        func(o *Options) { o.SNRdB = make([]float64, 1001) },
		"points is 2000000: allowed are 1 to":   func(o *Options) { o.Sigma, o.SNRdB = make([]float64, 1000), make([]float64, 1000) },
		"blocks is 0: allowed are 1 to 1000000": func(o *Options) { o.Blocks = 0 },
		"attempts is 1001":                      func(o *Options) { o.Attempts = 1001 },
		"64 symbols":                            func(o *Options) { o.BlockSymbols = 64 },
		"33":                                    func(o *Options) { o.Devices = []int{33, 2} },
		"0 samples a symbol":                    func(o *Options) { o.Modem = modem.Config{} },
		"no pulse":                              func(o *Options) { o.Modem.Pulse = nil },
	} {
		o := few()
		change(&o)
		if c, err := Open(dir, o); c != nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("%q: a folder was left behind", want)
		}
	}
}

// The table is compared only with what it measures, and pulses that want their
// delays compensated get it.
func TestGrid(t *testing.T) {
	o := few()
	o.Devices, o.Sigma, o.SNRdB, o.BlockSymbols = []int{2, 3, 4}, []float64{0.05, 0.3, 1}, []float64{30, 40, 50}, 8192
	count := func(s Settings) (marked int) {
		for _, p := range s.Grid() {
			if p.PhysicsRead != nil {
				marked++
			}
		}
		return marked
	}
	if n := count(o.Settings); n != len(physicsTable) {
		t.Errorf("%d of the table's %d entries are marked", n, len(physicsTable))
	}
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Base = 5 },
		func(s *Settings) { s.BlockSymbols = 4096 },
		func(s *Settings) { s.WholeRounds = true },
	} {
		other := o.Settings
		change(&other)
		if count(other) != 0 {
			t.Error("the table is compared with another measure")
		}
	}
	if o.trials(Point{Devices: 2}).Compensated {
		t.Error("flat tops are compensated")
	}
	o.Modem.Pulse = modem.RootRaisedCosine{RollOff: 0.25, Span: 8}
	if !o.trials(Point{Devices: 2}).Compensated {
		t.Error("root-raised-cosine pulses are not compensated")
	}
}

// What was accepted and is not true is said loudly, and is a failure.
func TestWrongIsSaid(t *testing.T) {
	var tally trial.Tally
	tally.Add(trial.Outcome{Attempt: 1, Wrong: "trial 7"})
	p := Point{Devices: 3}
	p.fill(&tally, 4)
	err := Result{Points: []Point{{}, p}}.Wrong()
	if err == nil || intake.IsUserError(err) || !strings.Contains(err.Error(), "1 TRIALS ACCEPTED WHAT IS NOT TRUE") || !strings.Contains(err.Error(), "trial 7") {
		t.Errorf("%v", err)
	}
	if err := (Result{Points: []Point{{}, {}}}).Wrong(); err != nil {
		t.Error(err)
	}
}
