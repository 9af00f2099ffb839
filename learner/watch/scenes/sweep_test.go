package scenes_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/experiment/sweepreport"
	"ringwave/learner/hosts/jobs"
	"ringwave/learner/hosts/sweeps"
	"ringwave/learner/watch"
	"ringwave/learner/watch/scenes"
)

// childVariable has this program be a process that computes jobs.
const childVariable = "RINGWAVE_SCENES_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := jobs.ServeChild(context.Background(), os.Stdin, os.Stdout, map[string]jobs.Kind{sweeps.RunKind: sweeps.Runs{}, sweeps.CellKind: sweeps.Cells{}}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// planOf reads a sweep over a small base.
func planOf(t testing.TB, text string) sweep.Plan {
	t.Helper()
	dir := t.TempDir()
	base := "[task]\ndataset = \"strokes\"\nstrokes_train = 200\nstrokes_test = 50\n[optimizer]\nrounds = 6\nbatch_size = 16\nevaluate_every_rounds = 2\n"
	for name, content := range map[string]string{"base.toml": base, "some.toml": "[sweep]\nbase = \"base.toml\"\n" + text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := sweep.Load(experiment.Lab{}, filepath.Join(dir, "some.toml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// swept computes a sweep of two runs by two seeds into a folder, shown by a scene.
func swept(t *testing.T, b *watch.Board, out string) (*scenes.Sweep, *sweeps.Sweep) {
	t.Helper()
	t.Setenv(childVariable, "1")
	plan := planOf(t, "seeds = \"1,2\"\n[grid]\n\"channel.std\" = [0.1, 0.3]\n")
	var scene *scenes.Sweep
	s, err := sweeps.New(t.Context(), sweeps.Options{
		Plan: plan, Out: out, Say: func(string) {}, Progress: func(st sweeps.State) { scene.Tell(st) },
		Engine: sweeps.EngineOptions{Workers: 2, Command: []string{os.Args[0]}},
	})
	if err != nil {
		t.Fatal(err)
	}
	scene = scenes.NewSweep(scenes.WorkOptions{Board: b}, plan, s.States)
	err = s.Run(t.Context())
	if cerr := s.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	if _, err := sweepreport.Write(t.Context(), plan, filepath.Join(out, sweeps.ReportName), s.Dirs()); err != nil {
		t.Fatal(err)
	}
	return scene, s
}

// The scene of a sweep shows where its runs stand, and of those that have ended what their
// folders have; a page sees the same of the sweep's folder.
func TestSweep(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	b := newBoard()
	scene, s := swept(t, b, out)
	p := open(t, b)
	p.look(0)
	p.until("results", func() bool { return len(p.table("results").Rows) == 4 && len(p.plots()) == 2 && len(p.events) >= 4 })
	for _, run := range s.States() {
		sum, err := runfolder.ReadSummary(filepath.Join(run.Dir, runfolder.SummaryName))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{run.Title, "yes", "6", strconv.FormatFloat(float64(sum.TestAccuracy), 'g', -1, 64), strconv.FormatFloat(float64(sum.TrainLoss), 'g', -1, 64)}
		if !slices.ContainsFunc(p.table("results").Rows, func(row []string) bool { return slices.Equal(row, want) }) {
			t.Errorf("%v is not in %v", want, p.table("results").Rows)
		}
	}
	var m watch.Matrix
	p.part(watch.PartMatrix, &m)
	want := watch.Matrix{Columns: []string{"seed 1", "seed 2"}, Rows: []watch.MatrixRow{{Label: "std=0.1", States: "dd"}, {Label: "std=0.3", States: "dd"}}}
	if fmt.Sprint(m) != fmt.Sprint(want) {
		t.Errorf("%+v", m)
	}
	if st := p.status(); st.State != watch.StateRunning || st.Done != 4 || st.Of != 4 || st.Share != 1 {
		t.Errorf("%+v", st)
	}
	for _, plot := range p.plots() {
		if text := p.svg(plot.Name); !strings.Contains(text, "std = 0.1") || !strings.HasPrefix(plot.Name, "sweep-") || !strings.Contains(plot.Caption, "Of 4 runs") {
			t.Errorf("%+v", plot)
		}
	}
	if !p.has(watch.EventInfo, "done: std=0.1, seed=1") {
		t.Errorf("%+v", p.events)
	}
	if err := scene.End(nil); err != nil {
		t.Error(err)
	}
	p.until("the end", func() bool { return p.status().State == watch.StateEnded })

	folder := newBoard()
	if err := scenes.Folder(folder, out); err != nil {
		t.Fatal(err)
	}
	p = open(t, folder)
	p.look(0)
	p.until("the folder", func() bool { return p.parts[watch.PartMatrix] != nil && len(p.plots()) > 2 })
	if st := p.status(); st.State != watch.StateEnded || st.Done != 4 || st.Of != 4 {
		t.Errorf("%+v", st)
	}
	m = watch.Matrix{}
	if p.part(watch.PartMatrix, &m); fmt.Sprint(m) != fmt.Sprint(want) {
		t.Errorf("of the folder: %+v", m)
	}
	if p.svg("sweep-accuracy") != string(experimenttest.ReadFile(t, out, sweeps.ReportName, "sweep-accuracy.svg")) {
		t.Error("the report's figure is another")
	}
}

// Ten thousand runs have room in messages and in memory, and those that failed say why.
func TestLargeSweep(t *testing.T) {
	var values []string
	for k := range 5000 {
		values = append(values, strconv.FormatFloat(1+float64(k)/1e4, 'g', -1, 64))
	}
	plan := planOf(t, "seeds = \"1,2\"\n[grid]\n\"channel.mean\" = ["+strings.Join(values, ", ")+"]\n")
	done := filepath.Join(t.TempDir(), "run")
	f, err := runfolder.Create(done)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	metrics, err := f.CreateMetrics(runfolder.InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Close()
	for k := 1; k <= 6; k++ {
		if err := metrics.Add(runfolder.Row{Round: k, TrainLoss: 1 / float64(k), TestAccuracy: 0.5, Attempts: 1, M: math.NaN()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.WriteSummary(runfolder.Summary{TestAccuracy: 0.5, Unusable: "it diverged"}); err != nil {
		t.Fatal(err)
	}
	list := make([]sweeps.RunState, len(plan.Points))
	for i := range list {
		list[i].Title = fmt.Sprintf("run %d", i)
		switch {
		case i%10 == 0:
			list[i].Done, list[i].Dir = true, done
		case i == 5:
			list[i].Aside, list[i].Why = true, "<script>alert(1)</script>"
		case i == 7:
			list[i].Running, list[i].Worker, list[i].Share = true, "w", 0.25
		}
	}
	b := newBoard()
	scene := scenes.NewSweep(scenes.WorkOptions{Board: b}, plan, func() []sweeps.RunState { return slices.Clone(list) })
	scene.Tell(sweeps.State{Runs: len(list), Done: 1000, Aside: 1, Running: 1, Share: 0.1, SecondsLeft: 3600, Workers: []jobs.WorkerStatus{{Name: "w", Slots: 2, Jobs: 1, Heard: time.Now()}}})
	p := open(t, b)
	p.look(0)
	var m watch.Matrix
	p.until("the matrix", func() bool {
		p.part(watch.PartMatrix, &m)
		return len(m.Rows) == 100 && strings.Count(fmt.Sprint(m), "u") >= 1000 && strings.Contains(p.table("results").Note, "of 1000 are")
	})
	if m.Rows[0].States[:12] != "u....x.r..u." {
		t.Errorf("%q", m.Rows[0].States)
	}
	if rows := p.table("aside").Rows; len(rows) != 1 || rows[0][1] != "<script>alert(1)</script>" {
		t.Errorf("%v", rows)
	}
	if rows := p.table("running").Rows; len(rows) != 1 || rows[0][2] != "25.0" {
		t.Errorf("%v", rows)
	}
	if n := len(p.table("results").Rows); n != 200 {
		t.Errorf("%d results", n)
	}
	if size := len(p.parts[watch.PartMatrix]); size > 30_000 {
		t.Errorf("a matrix of %d bytes", size)
	}
	for _, plot := range p.plots() {
		p.svg(plot.Name)
	}
}
