package main

import (
	"bytes"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// shortFig4 is Fig. 4 on images that need no files, in 20 rounds.
var shortFig4 = []string{"--set", "task.dataset=strokes", "--set", "task.strokes_train=600", "--set", "task.strokes_test=300",
	"--set", "optimizer.rounds=20", "--set", "optimizer.checkpoint_every_rounds=3"}

// runSystem runs 20 rounds and gives the rows and the summary.
func runSystem(t *testing.T, more ...string) ([]runfolder.Row, runfolder.Summary) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	status, _, stderr := run(t, slices.Concat([]string{"run", experimenttest.Fig4Config, "--out", dir}, shortFig4, more)...)
	s := summaryOf(t, dir)
	if spoilt := s.Unusable != ""; status != map[bool]int{true: exitUnusable}[spoilt] {
		t.Errorf("%v: status %d, and the summary says %q\n%s", more, status, s.Unusable, stderr)
	}
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return rows, s
}

// TestEverySystemRuns runs every aggregator through the command on the same gains, data
// and directions.
func TestEverySystemRuns(t *testing.T) {
	experimenttest.NoData(t)
	rows := map[string][]runfolder.Row{}
	for _, system := range config.Systems() {
		name := system.Name
		r, s := runSystem(t, "--set", "experiment.aggregator="+name, "--set", "devices.count=4", "--set", "encryption.delta_max=1")
		if len(r) != 20 || s.RoundsCompleted != 20 || s.RoundsSkipped != 0 || s.Aggregator != name {
			t.Errorf("%s: %d rows, summary %+v", name, len(r), s)
		}
		for _, row := range r {
			if math.IsNaN(row.TrainLoss) || math.IsInf(row.TrainLoss, 0) || math.IsNaN(row.Eps) || math.IsNaN(row.EpsStdPredicted) {
				t.Errorf("%s: round %d has loss %v, eps %v, predicted %v", name, row.Round, row.TrainLoss, row.Eps, row.EpsStdPredicted)
			}
		}
		rows[name] = r
	}
	// The first round is before any update: the same scalars meet the same gains.
	for _, same := range [][]string{{config.XMKCKKS, config.Plain, config.StaleKey}, {config.Digital, config.AirHE}} {
		for _, name := range same[1:] {
			if got, want := rows[name][0].MIdeal, rows[same[0]][0].MIdeal; math.Abs(got-want) > 1e-12 {
				t.Errorf("round 1 of %s aims at %v, that of %s at %v", name, got, same[0], want)
			}
		}
	}
	// One-point scalars are losses, all log 2 or so; two-point ones are differences.
	if one, two := rows[config.OnePoint][0], rows[config.Plain][0]; math.Abs(one.MIdeal) < math.Abs(two.MIdeal) || math.Abs(one.Eps-two.Eps) > 1e-12 {
		t.Errorf("one-point: M is %v and its noise %v; two-point: %v and %v", one.M, one.Eps, two.M, two.Eps)
	}
	if got, want := rows[config.StaleKey][0].M, rows[config.XMKCKKS][0].M; got != want {
		t.Errorf("in the round of its keys stale-key decodes %v, xmk-ckks %v", got, want)
	}
	for _, row := range rows[config.StaleKey][1:] {
		checkUniform(t, config.StaleKey, row)
	}
}

// checkUniform wants an error of size q/(alpha Lambda) that stays within the range of a
// centred residue, sqrt(3) of its predicted deviation.
func checkUniform(t *testing.T, name string, r runfolder.Row) {
	t.Helper()
	if math.Abs(r.Eps) < 1e6 || math.Abs(r.Eps) > 1.0001*math.Sqrt(3)*r.EpsStdPredicted {
		t.Errorf("%s: in round %d eps is %v, with a predicted deviation of %v", name, r.Round, r.Eps, r.EpsStdPredicted)
	}
}

// TestFig4 is the paper's Fig. 4 in 20 rounds: both methods fail from the first round
// on at both channel variances, and eps and the loss have the predicted size within a
// factor of ten.
func TestFig4(t *testing.T) {
	experimenttest.NoData(t)
	for _, more := range [][]string{
		{"experiment.aggregator=zf", "channel.std=1"}, {"experiment.aggregator=zf", "channel.std=10"},
		{"experiment.aggregator=mmse", "channel.std=1"}, {"experiment.aggregator=mmse", "channel.std=10"},
	} {
		name := strings.Join(more, " ")
		rows, s := runSystem(t, "--set", more[0], "--set", more[1])
		c, err := config.Load(experimenttest.Fig4Config, []string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300", more[0], more[1]})
		if err != nil {
			t.Fatal(err)
		}
		session, err := experiment.New(c)
		if err != nil {
			t.Fatal(err)
		}
		p := session.Design.Params
		want := math.Exp2(p.LogQ()-float64(p.LogLambda)) / math.Sqrt(12)
		eta, _ := experiment.StepLaws(c.Optimizer)
		square, least, most := 0.0, math.Inf(1), 0.0
		for _, r := range rows {
			checkUniform(t, name, r)
			if math.Abs(r.EpsStdPredicted/want-1) > 1e-6 {
				t.Errorf("%s: in round %d the predicted deviation is %v, want q/(sqrt(12) Lambda) = %v", name, r.Round, r.EpsStdPredicted, want)
			}
			square += r.Eps * r.Eps / float64(len(rows))
			if r.Round == 1 {
				continue
			}
			ratio := r.TrainLoss / experiment.ExpectedLoss(session.Task.Train, eta, want, r.Round)
			least, most = min(least, ratio), max(most, ratio)
		}
		t.Logf("%s: rms of eps %.3g of the predicted %.3g; losses %.2f to %.2f of the predicted, the last %.3g", name, math.Sqrt(square)/want, want, least, most, rows[19].TrainLoss)
		// Of 20 uniform errors the mean square is within 5 sqrt(0.8/20) = 1 of its mean.
		if square > 2*want*want || least < 0.1 || most > 10 {
			t.Errorf("%s: the mean square of eps is %v of its prediction, losses %v to %v of theirs", name, square/(want*want), least, most)
		}
		if notes := strings.Join(s.Notes, "\n"); !strings.Contains(notes, "no check is made") || !strings.Contains(notes, "q/Lambda = 5.9e+20") {
			t.Errorf("%s: the notes are\n%s", name, notes)
		}
	}
}

// TestPerfectPilots is Fig. 4's control: with gains of exactly 1 ZF decodes what an
// ideal channel gives, to the bit.
func TestPerfectPilots(t *testing.T) {
	experimenttest.NoData(t)
	perfect, _ := runSystem(t, "--set", "channel.pilot_std=0", "--set", "devices.count=4")
	digital, _ := runSystem(t, "--set", "experiment.aggregator=digital", "--set", "devices.count=4")
	for i, r := range perfect {
		if r.M != digital[i].M || r.Eps != digital[i].Eps {
			t.Fatalf("round %d: M is %v and eps %v, over an ideal channel %v and %v", r.Round, r.M, r.Eps, digital[i].M, digital[i].Eps)
		}
	}
}

// TestSystemsResume: broken off at any round, a run goes on to the same bytes, and so
// does one on another number of cores. stale-key aggregates the keys of round 1 anew.
func TestSystemsResume(t *testing.T) {
	experimenttest.NoData(t)
	for _, name := range []string{config.StaleKey, config.MMSE, config.HEAirFed} {
		args := append(slices.Clone(shortFig4), "--set", "experiment.aggregator="+name, "--set", "devices.count=3")
		whole := filepath.Join(t.TempDir(), "whole")
		before := runtime.GOMAXPROCS(1)
		status, _, _ := run(t, append([]string{"run", experimenttest.Fig4Config, "--out", whole}, args...)...)
		runtime.GOMAXPROCS(before)
		want := experimenttest.ReadFile(t, whole, runfolder.MetricsName)

		dir := filepath.Join(t.TempDir(), "run")
		killed(t, dir, int64(len(want)/2), append([]string{"run", experimenttest.Fig4Config, "--out", dir}, args...)...)
		if again, _, stderr := run(t, "run", "--resume", dir); again != status || status != 0 && status != exitUnusable {
			t.Errorf("%s: status %d, resumed %d\n%s", name, status, again, stderr)
		}
		if got := experimenttest.ReadFile(t, dir, runfolder.MetricsName); !bytes.Equal(got, want) {
			t.Errorf("%s: resumed, metrics.csv is\n%s, want\n%s", name, got, want)
		}
	}
}

// TestPlanOfASystem: plan says what the system is, and by how much it fails.
func TestPlanOfASystem(t *testing.T) {
	experimenttest.NoData(t)
	for name, want := range map[string][]string{
		config.ZF:       {"sends its digital coefficients times 1/h^", "expected deviation of eps: 1.7e+20", "gains match, which here they do not"},
		config.StaleKey: {"aggregated once", "alpha = 256"},
		config.OnePoint: {"one-point form"},
		config.HEAirFed: {"single-key CKKS", "one key"},
		config.AirHE:    {"single-key LWE", "one key"},
	} {
		stdout, _ := mustRun(t, slices.Concat([]string{"plan", experimenttest.Fig4Config, "--set", "experiment.aggregator=" + name, "--set", "devices.count=10"}, shortFig4)...)
		for _, w := range want {
			if !strings.Contains(stdout, w) {
				t.Errorf("the plan of %s does not say %q:\n%s", name, w, stdout)
			}
		}
	}
}
