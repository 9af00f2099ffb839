package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringwave/learner/experiment/compare"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// runsToCompare are small runs: encrypted with seeds 1 to 3, plain with 1 and 2, and one
// with another data set.
type runsToCompare struct {
	encrypted, plain []string
	other            string
}

func (r runsToCompare) all() []string { return append(slices.Concat(r.encrypted, r.plain), r.other) }

func TestCompare(t *testing.T) {
	experimenttest.NoData(t)
	var r runsToCompare
	train := func(seed int, set ...string) string {
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, slices.Concat([]string{"run", experimenttest.LoopbackConfig, "--seed", strconv.Itoa(seed), "--out", dir}, small, sets(set...))...)
		return dir
	}
	for seed := 1; seed <= 3; seed++ {
		r.encrypted = append(r.encrypted, train(seed))
	}
	for seed := 1; seed <= 2; seed++ {
		r.plain = append(r.plain, train(seed, "experiment.aggregator=none", "channel.analog_noise_std=0.5"))
	}
	r.other = train(1, "task.strokes_test=200", "experiment.name=a|b <other>")
	t.Run("lines", r.lines)
	t.Run("figures", r.figures)
	t.Run("report", r.report)
	t.Run("one run", r.oneRun)
	t.Run("beside", r.beside)
	t.Run("bad input", r.badInput)
}

// A run without a usable result is named, in the terminal, in the tables and in the report.
func TestCompareNamesUnusable(t *testing.T) {
	experimenttest.NoData(t)
	dir := t.TempDir()
	var dirs []string
	for i, eta := range []string{"0.01", "1e20", "1e307"} {
		dirs = append(dirs, filepath.Join(dir, eta))
		run(t, slices.Concat([]string{"run", experimenttest.LoopbackConfig, "--seed", strconv.Itoa(i + 1), "--out", dirs[i]}, small,
			sets("experiment.aggregator=none", "optimizer.eta0="+eta))...)
	}
	stdout, _ := mustRun(t, slices.Concat([]string{"compare", "--out", filepath.Join(dir, "a")}, dirs)...)
	report := string(experimenttest.ReadFile(t, dir, "a", compare.MarkdownName))
	var table []compare.Line
	asJSON, _ := mustRun(t, slices.Concat([]string{"compare", "--json", "--out", filepath.Join(dir, "b")}, dirs)...)
	if err := json.Unmarshal([]byte(asJSON), &table); err != nil {
		t.Fatal(err)
	}
	for i, l := range table {
		if want := min(i, 1); len(l.Unusable) != want {
			t.Errorf("%s: %d unusable runs, want %d", l.Label, len(l.Unusable), want)
		}
		says := fmt.Sprintf("NOT USABLE: %s, seed %d: %s.", compare.Letter(i), i+1, summaryOf(t, dirs[i]).Unusable)
		if a, b := strings.Contains(stdout, says), strings.Contains(report, says); a != (i > 0) || b != (i > 0) {
			t.Errorf("%q: in the terminal %v, in the report %v", says, a, b)
		}
	}
}

// A line has the runs of one configuration, and its label says what differs.
func (r runsToCompare) lines(t *testing.T) {
	out := filepath.Join(t.TempDir(), "comparison")
	stdout, _ := mustRun(t, append([]string{"compare", "--json", "--out", out}, append(slices.Clone(r.encrypted), r.plain[0])...)...)
	var table []compare.Line
	if err := json.Unmarshal([]byte(stdout), &table); err != nil {
		t.Fatal(err)
	}
	if len(table) != 2 || table[0].Runs != 3 || table[1].Runs != 1 || table[0].Label == table[1].Label {
		t.Errorf("table %+v", table)
	}
	if !strings.Contains(table[1].Label, "aggregator=none") {
		t.Errorf("the label %q does not say what differs", table[1].Label)
	}
	// The same seed twice is no second sample, and other data are no other seed.
	again := filepath.Join(t.TempDir(), "again")
	stdout, _ = mustRun(t, "compare", "--json", "--out", again, r.encrypted[0], r.encrypted[0])
	if err := json.Unmarshal([]byte(stdout), &table); err != nil || len(table) != 2 {
		t.Errorf("one run given twice: %+v, %v", table, err)
	}
	if plots, _ := filepath.Glob(filepath.Join(out, "*.png")); len(plots) != 4 {
		t.Errorf("plots %v", plots)
	}
}

// The figures are those that come of the runs' files by other ways.
func (r runsToCompare) figures(t *testing.T) {
	encrypted, plain := r.encrypted, r.plain
	out := filepath.Join(t.TempDir(), "out")
	stdout, _ := mustRun(t, slices.Concat([]string{"compare", "--json", "--accuracy", "0.8,0.6", "--accuracy", "1", "--out", out}, r.all())...)
	var table []compare.Line
	if err := json.Unmarshal([]byte(stdout), &table); err != nil {
		t.Fatal(err)
	}
	if len(table) != 3 || !slices.Equal(table[0].Seeds, []uint64{1, 2, 3}) || !slices.Equal(table[1].Seeds, []uint64{1, 2}) || table[0].Rounds != 60 {
		t.Fatalf("table %+v", table)
	}
	s := summaryOf(t, encrypted[0])
	if a := table[0]; a.UplinkBits != s.UplinkBitsPerRound || math.Abs(float64(a.Airtime)-float64(s.UplinkBitsPerRound)/1e12) > 1e-18 {
		t.Errorf("uplink %d bits, %v s; want %d at 1 THz", a.UplinkBits, a.Airtime, s.UplinkBitsPerRound)
	}
	if !math.IsNaN(float64(table[1].Airtime)) {
		t.Errorf("without ciphertexts a round has %v s", table[1].Airtime)
	}

	// Differences on the same seeds, of two their mean; none where the data differ.
	var points []float64
	for k := range plain {
		points = append(points, 100*float64(summaryOf(t, plain[k]).TestAccuracy-summaryOf(t, encrypted[k]).TestAccuracy))
	}
	if p := table[0].Paired; len(p) != 1 || p[0].With != table[1].Label || p[0].Seeds != 2 ||
		math.Abs(float64(p[0].Median)-(points[0]+points[1])/2) > 1e-9 ||
		math.Abs(math.Abs(float64(p[0].Largest))-max(math.Abs(points[0]), math.Abs(points[1]))) > 1e-9 {
		t.Errorf("paired %+v, want the points %v", p, points)
	}
	if len(table[1].Paired) != 0 || len(table[2].Paired) != 0 {
		t.Error("runs on different data are paired")
	}

	for g, runs := range [][]string{encrypted, plain} {
		for k, accuracy := range []float64{0.6, 0.8, 1} {
			checkReached(t, table[g], table[g].Reached[k], accuracy, runs)
		}
	}
}

// checkReached reads when runs reached an accuracy, and compares the median.
func checkReached(t *testing.T, l compare.Line, got compare.ReachedLine, accuracy float64, runs []string) {
	t.Helper()
	var rounds []float64
	reached := 0
	for _, dir := range runs {
		rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		at := math.Inf(1)
		for _, r := range slices.Backward(rows) {
			if !math.IsNaN(r.TestAccuracy) && r.TestAccuracy >= accuracy {
				at = float64(r.Round)
			}
		}
		if !math.IsInf(at, 0) {
			reached++
		}
		rounds = append(rounds, at)
	}
	slices.Sort(rounds)
	want := (rounds[(len(rounds)-1)/2] + rounds[len(rounds)/2]) / 2
	if math.IsInf(want, 0) {
		want = math.NaN() // as JSON has it
	}
	same := func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*math.Abs(b) }
	if got.Accuracy != accuracy || got.Runs != reached || !same(float64(got.Rounds), want) {
		t.Errorf("%s to %v: %+v, want %d of the runs and %v rounds", l.Label, accuracy, got, reached, want)
	}
	if l.Repeated == 0 && !same(float64(got.Airtime), want*float64(l.Airtime)) {
		t.Errorf("%s to %v: airtime %v, want that of %v rounds", l.Label, accuracy, got.Airtime, want)
	}
}

// The report says what is compared, stands alone, and is the same for the same runs.
func (r runsToCompare) report(t *testing.T) {
	dirs := r.all()
	contents := func() map[string]string {
		out := filepath.Join(t.TempDir(), "out")
		stdout, _ := mustRun(t, slices.Concat([]string{"compare", "--out", out}, dirs)...)
		if !strings.Contains(stdout, compare.HTMLName) || !strings.Contains(stdout, "same seeds") {
			t.Errorf("the output is\n%s", stdout)
		}
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, e := range entries {
			files[e.Name()] = string(experimenttest.ReadFile(t, out, e.Name()))
		}
		return files
	}
	files := contents()
	if again := contents(); !maps.Equal(files, again) {
		t.Error("the same runs give other bytes")
	}
	page, text := files[compare.HTMLName], files[compare.MarkdownName]
	if n := strings.Count(page, "data:image/svg"); n != 4 {
		t.Errorf("%d plots are in the page, want 4", n)
	}
	if regexp.MustCompile(`(src|href)="(https?:|[a-z./-]+\.(svg|png|css|js))`).MatchString(page) || strings.Contains(page, "<script") {
		t.Error("the page needs other files")
	}
	for _, want := range []string{"# Comparison of 6 runs in 3 groups", "## What is compared", "experiment.aggregator", "task.strokes\\_test", "| A | loopback | 1 to 3 |", "| B | loopback | 1, 2 |",
		`a\|b &lt;other>`, "## Results", "## Differences on the same seeds", "| B − A | 2 |", "## Rounds to an accuracy", "running median over 13 rounds", "](compare-loss.png)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the report:\n%s", want, text)
		}
	}
	for _, never := range []string{"C − A", "optimizer.eta0", "experiment.seed"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is in the report, where it is no difference", never)
		}
	}
	for _, dir := range dirs {
		if strings.Contains(page+text, dir) {
			t.Error("the report names a folder of this machine")
		}
	}
}

// What lies beside runs and is none is skipped with a word, and changes nothing: the
// comparison of a folder of runs can be made again where it was written among them.
func (r runsToCompare) beside(t *testing.T) {
	dir := t.TempDir()
	file, calibration := filepath.Join(dir, "notes.txt"), filepath.Join(dir, "cal")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(calibration, 0o700),
		os.WriteFile(filepath.Join(calibration, runfolder.ConfigName), []byte("[experiment]\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(dir, "first")
	alone, _ := mustRun(t, slices.Concat([]string{"compare", "--json", "--out", first}, r.plain)...)
	status, stdout, stderr := run(t, slices.Concat([]string{"compare", "--json", "--out", filepath.Join(dir, "second"), file, first}, r.plain, []string{calibration})...)
	if status != 0 || stdout != alone {
		t.Errorf("status %d; with others beside the runs other figures come out", status)
	}
	for _, want := range []string{file + " is no run folder: it is a file", first + " is no run folder: it has neither", calibration + " is no run folder"} {
		if strings.Count(stderr, want) != 1 {
			t.Errorf("%q is not said once in\n%s", want, stderr)
		}
	}
	// Where nothing else is said, it is written beside the folder of runs and not into it.
	t.Chdir(dir)
	mustRun(t, "compare", r.plain[0])
	if made, err := filepath.Glob(filepath.Join("*", "*", compare.HTMLName)); err != nil || len(made) != 1 || !strings.HasPrefix(made[0], "comparisons") {
		t.Errorf("comparisons are in %v, %v", made, err)
	}
	// A run that lost a file is no stranger.
	broken := filepath.Join(dir, "broken")
	if err := os.CopyFS(broken, os.DirFS(r.plain[0])); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{runfolder.SummaryName, runfolder.MetricsName} {
		path := filepath.Join(broken, name)
		whole := experimenttest.ReadFile(t, broken, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if status, _, stderr := run(t, "compare", "--out", filepath.Join(dir, "third"), r.plain[0], broken); status != exitBadInput || !strings.Contains(stderr, path) {
			t.Errorf("without %s: status %d\n%s", name, status, stderr)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (r runsToCompare) oneRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "compare", "--accuracy", "1", "--out", out, r.encrypted[0])
	text := string(experimenttest.ReadFile(t, out, compare.MarkdownName))
	if !strings.Contains(text, "not within 60") || strings.Contains(text, "same seeds") || strings.Contains(text, "differ;") {
		t.Errorf("the report of one run is\n%s", text)
	}
}

func (r runsToCompare) badInput(t *testing.T) {
	dir, out := r.plain[0], filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--accuracy", "95", dir}, []string{"--accuracy 95", "at most 1"}},
		{[]string{"--accuracy", "0.9,0", dir}, []string{"--accuracy 0", "above 0"}},
		{[]string{"--accuracy", "NaN", dir}, []string{"--accuracy NaN"}},
		{[]string{"--accuracy", "high", dir}, []string{"--accuracy", "high"}},
		{[]string{"--accuracies", "0.9", dir}, []string{"--accuracies"}},
		{[]string{filepath.Dir(dir)}, []string{"no run folders to compare", filepath.Dir(dir) + " is no run folder: it has neither metrics.csv nor summary.json"}},
		{[]string{dir, out + "none"}, []string{out + "none"}},
		{nil, []string{"run folders"}},
	} {
		status, stdout, stderr := run(t, append([]string{"compare", "--out", out}, c.args...)...)
		if status != exitBadInput || stdout != "" || strings.Contains(strings.TrimSpace(stderr), "\n") {
			t.Errorf("%v: status %d\n%s%s", c.args, status, stdout, stderr)
		}
		for _, w := range c.want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%v: %q does not say %q", c.args, stderr, w)
			}
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%v: a folder was left behind", c.args)
		}
	}
	if status, _, stderr := run(t, "compare", "--out", dir, dir); status != exitBadInput || !strings.Contains(stderr, "not empty") {
		t.Errorf("into a folder that is not empty: status %d\n%s", status, stderr)
	}
	if len(experimenttest.ReadFile(t, dir, runfolder.SummaryName)) == 0 {
		t.Error("the folder that was not empty is no longer whole")
	}
}
