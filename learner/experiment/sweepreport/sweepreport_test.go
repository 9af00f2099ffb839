package sweepreport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/experiment/sweepreport"
	"ringwave/radio/intake"
)

// planOf reads a sweep over a small base.
func planOf(t testing.TB, text string, set ...string) sweep.Plan {
	t.Helper()
	dir := t.TempDir()
	base := "[task]\ndataset = \"strokes\"\n[optimizer]\nrounds = 20\nevaluate_every_rounds = 5\n"
	for name, content := range map[string]string{"base.toml": base, "some.toml": "[sweep]\nbase = \"base.toml\"\n" + text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := sweep.Load(experiment.Lab{}, filepath.Join(dir, "some.toml"), set)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ended makes the folder of a run that ended with an accuracy, which it neared in as many
// evaluations as there are.
func ended(t testing.TB, dir string, c config.Config, accuracy float64, unusable string) string {
	t.Helper()
	f, err := runfolder.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	encoded, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteAtomic(runfolder.ConfigName, encoded); err != nil {
		t.Fatal(err)
	}
	m, err := f.CreateMetrics(runfolder.InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	every, rounds := c.Optimizer.EvaluateEvery, c.Optimizer.Rounds
	for k := 1; k <= rounds; k++ {
		row := runfolder.Row{Round: k, TrainLoss: 1 - accuracy*float64(k)/float64(rounds), TestAccuracy: math.NaN(), Attempts: 1, Eps: 1, EpsStdPredicted: 2}
		if k%every == 0 {
			row.TestAccuracy = 0.5 + (accuracy-0.5)*float64(k)/float64(rounds)
		}
		if err := m.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.WriteSummary(runfolder.Summary{
		Dataset: "strokes, \"made\"", Seed: uint64(c.Experiment.Seed), Devices: c.Devices.Count, Rounds: rounds, RoundsCompleted: rounds, RoundsSkipped: 1,
		TrainLoss: runfolder.Float(1 - accuracy), TestAccuracy: runfolder.Float(accuracy), Seconds: 1, UplinkBitsPerRound: 1000, ZeroGains: runfolder.Float(math.NaN()), Unusable: unusable,
	}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// folders makes a folder for every run, of which the accuracy is that of a function.
func folders(t testing.TB, p sweep.Plan, accuracy func(c config.Config) float64) (dirs []string) {
	t.Helper()
	parent := t.TempDir()
	for i, point := range p.Points {
		a := accuracy(point.Config)
		if math.IsNaN(a) {
			dirs = append(dirs, "")
			continue
		}
		unusable := ""
		if a < 0.5 {
			unusable = "training, \"diverged\""
		}
		dirs = append(dirs, ended(t, filepath.Join(parent, fmt.Sprint(i)), point.Config, a, unusable))
	}
	return dirs
}

const twoKeys = `
name = "two keys"
seeds = "1-3"
[grid]
channel.std = [10, 1, 3]
devices.count = [2, 4]
`

// accuracyOf rises with the seed by a hundredth; one run of devices.count = 2, std = 1 is
// missing, all of std = 3 with 4 devices are, and one is of no use.
func accuracyOf(c config.Config) float64 {
	n, std, seed := c.Devices.Count, c.Channel.Std, c.Experiment.Seed
	switch {
	case n == 2 && std == 1 && seed == 2, n == 4 && std == 3:
		return math.NaN()
	case n == 2 && std == 10 && seed == 1:
		return 0.4
	}
	return 0.9 - 0.02*std + 0.01*float64(seed) + 0.01*float64(n)
}

func writeReport(t *testing.T, p sweep.Plan, accuracy func(c config.Config) float64) (sweepreport.Report, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	r, err := sweepreport.Write(t.Context(), p, out, folders(t, p, accuracy))
	if err != nil {
		t.Fatal(err)
	}
	return r, out
}

// The table has medians and quartiles by value, and what has no result is counted and named.
func TestReport(t *testing.T) {
	r, out := writeReport(t, planOf(t, twoKeys), accuracyOf)
	if len(r.Table) != 6 || r.Runs != 18 || len(r.Without) != 4 || r.Without[0].Run != 7 || r.Without[0].Values["channel.std"] != 1.0 || r.Without[0].Seed != 2 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []struct {
		n, without, unusable   int
		std, low, median, high float64
	}{
		{2, 0, 1, 10, 0.57, 0.74, 0.745}, {4, 0, 0, 10, 0.755, 0.76, 0.765},
		{2, 1, 0, 1, 0.915, 0.92, 0.925}, {4, 0, 0, 1, 0.935, 0.94, 0.945},
		{2, 0, 0, 3, 0.875, 0.88, 0.885}, {4, 3, 0, 3, math.NaN(), math.NaN(), math.NaN()},
	} {
		l := r.Table[i]
		for _, pair := range [][2]float64{{float64(l.AccuracyLow), want.low}, {float64(l.Accuracy), want.median}, {float64(l.AccuracyHigh), want.high}} {
			if !(math.Abs(pair[0]-pair[1]) < 1e-9) && !math.IsNaN(pair[0]+pair[1]) {
				t.Errorf("line %d: %v instead of %v", i, pair[0], pair[1])
			}
		}
		if l.Values["devices.count"] != want.n || l.Values["channel.std"] != want.std || l.Without != want.without || len(l.Unusable) != want.unusable || l.Runs != 3-want.without || l.Skipped != l.Runs {
			t.Errorf("line %d: %+v", i, l)
		}
	}
	// 0.5 + 0.44 k/20 is first above 0.9 in the last evaluation, at round 20.
	if !slices.Equal(r.Accuracies, []float64{0.9, 0.95}) && !slices.Equal(r.Accuracies, []float64{0.9}) || r.Table[3].Reached[0].Rounds != 20 || r.Table[3].Reached[0].Runs != 3 {
		t.Errorf("to %v: %+v", r.Accuracies, r.Table[3].Reached)
	}
	text := string(experimenttest.ReadFile(t, out, sweepreport.MarkdownName))
	experimenttest.WantAll(t, text, "# Sweep two keys: 18 runs of 6 combinations", "WITHOUT A RESULT: 4 of 18 runs", "NOT USABLE: 1 of 18 runs",
		"NO RESULT: channel.std = 1, devices.count = 2, seed 2, run 7.", `NOT USABLE: channel.std = 10, devices.count = 2, seed 1: training, "diverged"`,
		"| 3 | 4 | 0 | – | – |", "| 1 | 4 | 3 | 94.00 (93.50 to 94.50) |", "| 10, 1, 3 |")
	for _, name := range r.Figures {
		if !strings.Contains(text, name+".png") {
			t.Errorf("%s is not in the report", name)
		}
		whole(t, filepath.Join(out, name+".png"))
	}
	if want := []string{"sweep-loss", "sweep-accuracy", "sweep-accuracy-against-channel-std", "sweep-accuracy-against-devices-count", "sweep-map-accuracy"}; !slices.Equal(r.Figures, want) {
		t.Errorf("figures %q", r.Figures)
	}
	if b, err := json.Marshal(r); err != nil || !bytes.Contains(b, []byte(`"values":{"channel.std":10,"devices.count":2},"runs":3`)) || !bytes.Contains(b, []byte(`"test_accuracy_median":null`)) {
		t.Errorf("%s, %v", b, err)
	}
	svg := string(experimenttest.ReadFile(t, out, "sweep-map-accuracy.svg"))
	experimenttest.WantAll(t, svg, ">no result<", ">94.00<", ">channel.std (gain)<", ">devices.count (devices)<", ">test accuracy (%)<")
	if strings.Index(svg, ">1<") > strings.Index(svg, ">10<") { // rising, whatever the file's order
		t.Error("values along an axis do not rise")
	}
}

// whole wants a picture whose outermost pixels are white: what leaves it crosses them.
func whole(t *testing.T, path string) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(experimenttest.ReadFile(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	b, inked := picture.Bounds(), 0
	look := func(x, y int) {
		if r, g, b, _ := picture.At(x, y).RGBA(); r+g+b < 3*0xf000 {
			inked++
		}
	}
	for x := b.Min.X; x < b.Max.X; x++ {
		look(x, b.Min.Y)
		look(x, b.Max.Y-1)
	}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		look(b.Min.X, y)
		look(b.Max.X-1, y)
	}
	if inked > 0 {
		t.Errorf("%s: %d pixels at its edge are not white", filepath.Base(path), inked)
	}
}

// table reads a file as numpy.genfromtxt does with names=True: fields are parted by commas
// alone, whatever quotes there are, and a # begins a comment.
func table(t *testing.T, path string) (columns map[string][]string) {
	t.Helper()
	var names []string
	columns = map[string][]string{}
	for line := range strings.Lines(string(experimenttest.ReadFile(t, path))) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), ",")
		if names == nil {
			names = fields
			for _, n := range names {
				if strings.Trim(n, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" || columns[n] != nil {
					t.Errorf("%s: the column %q", path, n)
				}
				columns[n] = []string{}
			}
			continue
		}
		if len(fields) != len(names) || strings.ContainsAny(line, "#\"'") {
			t.Fatalf("%s: %d fields of %d in %s", path, len(fields), len(names), line)
		}
		for i, f := range fields {
			if f == "" {
				t.Errorf("%s: an empty %s", path, names[i])
			}
			columns[names[i]] = append(columns[names[i]], f)
		}
	}
	return columns
}

func numbers(t *testing.T, texts []string) (values []float64) {
	t.Helper()
	for _, text := range texts {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

// Every number is in the files, a line a run and a line a round, for NumPy.
func TestCSV(t *testing.T) {
	p := planOf(t, twoKeys+"experiment.name = [\"a, \\\"b\\\" # c\"]\n")
	r, out := writeReport(t, p, accuracyOf)
	runs := table(t, filepath.Join(out, sweepreport.RunsName))
	accuracy, std, seeds, count := numbers(t, runs["test_accuracy"]), numbers(t, runs["channel_std"]), numbers(t, runs["seed"]), numbers(t, runs["devices_count"])
	reached, airtime := numbers(t, runs["rounds_to_90"]), numbers(t, runs["transmission_seconds_to_90"])
	if len(accuracy) != 18 || len(r.Accuracies) == 0 {
		t.Fatalf("%d lines", len(accuracy))
	}
	for i, point := range p.Points {
		c := point.Config
		want := accuracyOf(c)
		if seeds[i] != float64(c.Experiment.Seed) || std[i] != c.Channel.Std || count[i] != float64(c.Devices.Count) || runs["combination"][i] != fmt.Sprint(i/3) || runs["run"][i] != fmt.Sprint(i) {
			t.Errorf("line %d is of another run", i)
		}
		state, steps := "usable", math.Inf(1)
		switch {
		case math.IsNaN(want):
			state, steps = "none", math.NaN()
		case want < 0.5:
			state = "unusable"
		case want >= 0.9:
			steps = 20
		}
		if runs["result"][i] != state || accuracy[i] != want && !math.IsNaN(want) || math.IsNaN(want) != math.IsNaN(accuracy[i]) || reached[i] != steps && !math.IsNaN(steps) {
			t.Errorf("line %d: %s, accuracy %v, %v rounds instead of %s, %v, %v", i, runs["result"][i], accuracy[i], reached[i], state, want, steps)
		}
		if steps == 20 && math.Abs(airtime[i]-20*1000/c.Link.BandwidthHz) > 1e-20 {
			t.Errorf("line %d: %v s", i, airtime[i])
		}
		if dir := runs["folder"][i]; state != "none" {
			if _, err := os.Stat(filepath.Join(out, dir, runfolder.SummaryName)); err != nil {
				t.Errorf("line %d: %v", i, err)
			}
		}
		if runs["experiment_name"][i] != "a; _b_ _ c" {
			t.Errorf("a name is %s", runs["experiment_name"][i])
		}
	}
	curves := table(t, filepath.Join(out, sweepreport.CurvesName))
	if n := len(curves["run"]); n != 14*20 || len(curves) != 4 {
		t.Errorf("%d rounds, %d columns", n, len(curves))
	}
	loss, evaluated := numbers(t, curves["train_loss"]), numbers(t, curves["test_accuracy"])
	for i, run := range numbers(t, curves["run"]) {
		k := i%20 + 1
		want := 1 - accuracy[int(run)]*float64(k)/20
		if curves["round"][i] != fmt.Sprint(k) || loss[i] != want || math.IsNaN(evaluated[i]) != (k%5 != 0) {
			t.Fatalf("line %d: round %s, loss %v instead of %v, accuracy %v", i, curves["round"][i], loss[i], want, evaluated[i])
		}
	}
}

// NumPy reads the files by the lines that the report has.
func TestNumPy(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skip("there is no NumPy")
	}
	_, out := writeReport(t, planOf(t, twoKeys+"experiment.name = [\"a, \\\"b\\\" # c\"]\n"), accuracyOf)
	script := []string{"import numpy as np"}
	for line := range strings.Lines(string(experimenttest.ReadFile(t, out, sweepreport.MarkdownName))) {
		if code, is := strings.CutPrefix(strings.TrimSpace(line), "- "); is && strings.Contains(code, "np.") {
			script = append(script, code)
		}
	}
	script = append(script, `print(runs.shape, curves.shape, np.nansum(runs["test_accuracy"]).round(6), sorted(set(runs["devices_count"])), runs["experiment_name"][0], runs["result"][7], np.isinf(runs["rounds_to_90"]).sum(), curves["round"].max(), np.isnan(curves["test_accuracy"]).sum())`)
	run := exec.Command(python, "-c", strings.Join(script, "\n"))
	run.Dir = out
	said, err := run.CombinedOutput()
	if want := "(18,) (280,) 11.47 [2, 4] a; _b_ _ c none 9 20.0 224\n"; err != nil || string(said) != want {
		t.Errorf("%v: %s instead of %s", err, said, want)
	}
}

// A report replaces an earlier one as a whole, and nothing else.
func TestReportIsReplaced(t *testing.T) {
	p := planOf(t, twoKeys)
	dirs := folders(t, p, accuracyOf)
	parent := t.TempDir()
	out := filepath.Join(parent, "out")
	write := func(dirs []string) error {
		_, err := sweepreport.Write(t.Context(), p, out, dirs)
		return err
	}
	if err := write(make([]string, len(dirs))); err != nil {
		t.Fatalf("without any result: %v", err)
	}
	before, err := os.ReadDir(out)
	if err != nil || len(before) != 4 {
		t.Errorf("%d files where there is no result, %v", len(before), err)
	}
	if err := write(dirs); err != nil {
		t.Fatal(err)
	}
	first := experimenttest.ReadFile(t, out, sweepreport.RunsName)
	// A folder of another run, and a damaged one, leave it as it is.
	other := slices.Clone(dirs)
	other[0] = dirs[1]
	if err := write(other); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "config.toml is not the configuration that the sweep asks for: must be that of the run with seed 1") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(dirs[4], runfolder.MetricsName), []byte("round\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(dirs); err == nil || !strings.Contains(err.Error(), runfolder.MetricsName) {
		t.Errorf("%v", err)
	}
	if got := experimenttest.ReadFile(t, out, sweepreport.RunsName); !bytes.Equal(got, first) {
		t.Error("a report that could not be made has changed the one before")
	}
	own := filepath.Join(out, "thesis.tex")
	if err := os.WriteFile(own, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dirs[4] = ""
	if err := write(dirs); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "holds thesis.tex: must be new or empty, or have an earlier report alone") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(own); err != nil {
		t.Fatalf("the file is gone: %v", err)
	}
	if err := write(dirs); err != nil {
		t.Fatal(err)
	}
	if got := experimenttest.ReadFile(t, out, sweepreport.RunsName); bytes.Equal(got, first) {
		t.Error("the report is the one before")
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("%v lie beside the report, %v", entries, err)
	}
	if err := write(dirs[1:]); err == nil {
		t.Error("a folder too few")
	}
	p.Seeds = nil
	if err := write(dirs); err == nil {
		t.Error("a plan without seeds")
	}
}

// Whatever is swept, no figure has more than a reader can tell apart, and what is left out
// is said.
func TestManyValues(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		figures int
		says    []string
	}{
		"seeds alone": {"seeds = \"1-3\"", 2, []string{"one combination"}},
		"a single key": {"[grid]\ndevices.count = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", 3,
			[]string{"Of 10 values of devices.count only 7 are drawn."}},
		"texts": {"seeds = \"1-2\"\n[grid]\ntask.partition = [\"iid\", \"dirichlet\"]\nexperiment.name = [\"" + strings.Repeat("long ", 19) + "\", \"b\"]", 3, []string{"long long"}},
		"a zip": {"[[zip]]\nchannel.std = [1, 2, 20]\ntask.partition = [\"iid\", \"iid\", \"dirichlet\"]\n[grid]\noptimizer.eta0 = [0.001, 0.1, 5]", 5,
			[]string{"With channel.std, task.partition goes along.", "channel.std / task.partition"}},
		"many keys": {"[grid]\ndevices.count = [1, 2, 3, 4, 5, 6, 7, 8, 9]\nchannel.std = [1, 2, 3, 4]\nchannel.mean = [1, 2, 3, 4]\noptimizer.eta0 = [1, 2, 3]", 12,
			[]string{"only 12 are drawn", "The maps are over devices.count and channel.std, which have the most values: one each for the values of the other keys, of which the first 6 of 12."}},
		"more than a map has": {"[grid]\ndevices.count = [1, 2]\noptimizer.eta0 = [" + upTo(150) + "]", 5,
			[]string{"Of 150 values of optimizer.eta0 the maps have 100."}},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, c.text, "optimizer.rounds=2", "optimizer.evaluate_every_rounds=1")
			r, out := writeReport(t, p, func(c config.Config) float64 {
				if c.Channel.Mean > 1 || c.Optimizer.Eta0 > 5 { // of many runs a few are enough
					return math.NaN()
				}
				return 0.5 + 0.4/(1+c.Channel.Std) + 0.001*float64(c.Devices.Count)
			})
			if len(r.Figures) != c.figures {
				t.Errorf("%d figures: %q", len(r.Figures), r.Figures)
			}
			text := string(experimenttest.ReadFile(t, out, sweepreport.MarkdownName))
			experimenttest.WantAll(t, strings.ReplaceAll(text, `\_`, "_"), c.says...)
			for _, name := range r.Figures {
				whole(t, filepath.Join(out, name+".png"))
			}
			if strings.Contains(name, "more than a map") && strings.Contains(string(experimenttest.ReadFile(t, out, "sweep-map-accuracy.svg")), ">3<") {
				t.Error("the map has the third of 150 values")
			}
		})
	}
}

// Where a quarter of the runs never got to an accuracy, the band of the rounds goes up to
// their last round: here 18 and 19 rounds in the median, of 20.
func TestRoundsNeverReached(t *testing.T) {
	p := planOf(t, "seeds = \"1-3\"\n[grid]\nchannel.std = [1, 2]", "optimizer.evaluate_every_rounds=1")
	r, out := writeReport(t, p, func(c config.Config) float64 {
		if c.Experiment.Seed == 3 {
			return 0.85
		}
		return 0.968 - 0.019*c.Channel.Std
	})
	if a, b := r.Table[0].Reached[0], r.Table[1].Reached[0]; a.Rounds != 18 || b.Rounds != 19 || !math.IsInf(float64(a.RoundsHigh), 1) {
		t.Fatalf("%+v, %+v", a, b)
	}
	experimenttest.WantAll(t, string(experimenttest.ReadFile(t, out, "sweep-rounds-against-channel-std.svg")), ">18<", ">19<", ">20<", ">rounds to 90 %<")
}

// upTo lists the whole numbers from 1 on.
func upTo(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint(i+1))
	}
	return strings.Join(list, ", ")
}
