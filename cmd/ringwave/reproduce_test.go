package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
)

// reproduced makes a small report of some chapters and gives its page.
func reproduced(t *testing.T, dir, chapters string, more ...string) string {
	t.Helper()
	mustRun(t, append([]string{"reproduce", "--only", chapters, "--seeds", "1", "--rounds", "3", "--out", dir}, more...)...)
	return string(readFile(t, dir, "report.html"))
}

func wantIn(t *testing.T, page string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the report", want)
		}
	}
}

// kept gives the files of a report's cache.
func kept(t *testing.T, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "cache", pattern))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A small report has every chapter asked for, the same bytes when it is made again from
// the cache and in another folder, and needs nothing beside it to be read.
func TestReproduce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	const chapters = "parameters,mnist,disagreements"
	page := reproduced(t, dir, chapters)
	wantIn(t, page, "Table II", "Fig. 2", "446464 bytes", "data:image/svg", "numbers disagree", `id="summary"`, "rho by Eq. 21, measured", "grows by alpha^2", "timing.md")
	// Each table speaks for itself: what exceeds one is not called the same as 128 bits.
	wantIn(t, page, "exceeds the limit of 106 for 128 bits: about 124 bits", "exceeds the limit of 214 for 128 bits: about 126 bits")
	for _, line := range strings.Split(string(readFile(t, dir, "report.md")), "\n") {
		if strings.Contains(line, "| security") && strings.Contains(line, "same") && (!strings.Contains(line, "meets") || strings.Contains(line, "exceeds")) {
			t.Errorf("a verdict beside its contrary: %s", line)
		}
	}
	// The runs that give rho are some of Fig. 2's.
	if files := kept(t, dir, "*.json"); len(files) != 10 {
		t.Errorf("%d results are kept", len(files))
	}
	if page != reproduced(t, dir, chapters) {
		t.Error("made from the cache, the report is another")
	}
	if one := reproduced(t, dir, "disagreements"); one != reproduced(t, filepath.Join(t.TempDir(), "other"), "disagreements") {
		t.Error("made anew, the report is another")
	}
	for _, name := range []string{"report.md", "timing.md", "plots/fig2-sigma-1.png"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The chapter on CIFAR-10 judges nothing by runs that were cut short, and shows
// encrypted runs to be what unencrypted ones are.
func TestReproduceCIFAR(t *testing.T) {
	dir, data := t.TempDir(), fewImages(t)
	page := reproduced(t, dir, "cifar", "--data", data)
	wantIn(t, page, "Fig. 3", "81.70 %", "cut to 3 of 7500 rounds", "16 packed directions", "Settings that learn")
	for _, line := range strings.Split(string(readFile(t, dir, "report.md")), "\n") {
		if strings.HasPrefix(line, "| stated steps") && !strings.Contains(line, "✓ same") {
			t.Errorf("encrypted and unencrypted runs differ: %s", line)
		}
	}
	stated, learns := len(cifarStated()), len(cifarLearns())
	if files := kept(t, dir, "*.json"); len(files) != 2*stated+1+2*learns+1 {
		t.Errorf("%d results are kept", len(files))
	}
	for _, line := range strings.Split(string(readFile(t, dir, "report.md")), "\n") {
		_, here, _ := strings.Cut(line, "80.15 %") // the paper's
		if strings.Contains(line, "cut short") && strings.Contains(here, " %") {
			t.Errorf("a number of runs that were cut short: %s", line)
		}
	}
	wantIn(t, page, "Why the stated steps cannot learn")
	for _, name := range []string{"fig3-sigma-10", "fig3-sigma-1", "fig3-learns-sigma-10-accuracy"} {
		if _, err := os.Stat(filepath.Join(dir, "plots", name+".png")); err != nil {
			t.Error(err)
		}
	}
}

// The sums of the stated steps are computed, and the run that divides by 2 gamma_k N is
// one that a user can repeat.
func TestStepsTable(t *testing.T) {
	divided := cifarDivided()
	table := stepsTable(cifarRun{cifarSetting: divided, full: divided.rounds, plain: runsOf(divided.rounds, []float64{0.7})})
	for k, want := range []string{"0.67", "0.033", "0.85"} {
		if got := table.Rows[k].Cells[4]; got != want {
			t.Errorf("%s: the sum is %s, want %s", table.Rows[k].Cells[0], got, want)
		}
	}
	if got := table.Rows[2].Cells[6]; got != "70.00 %" {
		t.Errorf("the accuracy is %s", got)
	}
	_, sets, _ := strings.Cut(strings.ReplaceAll(divided.overrides(), "--set ", ","), ",")
	c, err := config.Load(cifarConfig, strings.Split(strings.ReplaceAll(sets, " ", ""), ","))
	if err != nil {
		t.Fatal(err)
	}
	eta, gamma := stepLaws(c.Optimizer)
	stated, _ := stepLaws(paperCIFAR().Optimizer)
	for _, k := range []int{1, 100, 7500} {
		want := stated.At(k) / (2 * gamma.At(k) * float64(c.Devices.Count))
		if got := eta.At(k); math.Abs(got-want) > 1e-12*want {
			t.Errorf("in round %d eta is %v, want %v", k, got, want)
		}
	}
	if c.Channel.Std != 0 || c.Experiment.Aggregator != config.Plain || c.Channel.AnalogNoiseStd != 0 {
		t.Errorf("%+v", c.Channel)
	}
}

// Without the data the report goes on, and says how to get them.
func TestReproduceWithoutCIFAR(t *testing.T) {
	t.Setenv("RINGWAVE_DATA", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	page := reproduced(t, t.TempDir(), "cifar,disagreements")
	wantIn(t, page, "ringwave data fetch cifar10", `class="verdict missing">– not run`, "numbers disagree")
}

// countdown is a context that ends when it was asked so many times whether it has, by
// runs side by side.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A report that is interrupted again and again, amid runs too, is in the end that of
// one sitting, to the byte, encrypted runs with packed directions included.
func TestReproduceGoesOn(t *testing.T) {
	data := fewImages(t)
	sitting := func(ctx context.Context, dir string) error {
		for _, sub := range []string{"cache", "plots"} {
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		r := &reproduction{opt: Options{Out: dir, Data: data, Seeds: 1, CIFARSeeds: 1, Rounds: 3}, dir: dir, stderr: io.Discard, began: time.Now()}
		todo, err := chosen([]string{"cifar"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.write(ctx, todo)
		return err
	}
	whole, parts := t.TempDir(), t.TempDir()
	if err := sitting(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	sittings, amid := 1, 0
	for ; ; sittings++ {
		ctx := &countdown{Context: t.Context()}
		ctx.left.Store(14)
		err := sitting(ctx, parts)
		if err == nil {
			break
		}
		if !errors.Is(err, errInterrupted) || sittings > 100 {
			t.Fatalf("sitting %d: %v", sittings, err)
		}
		amid += len(kept(t, parts, "*.part"))
	}
	if sittings < 3 || amid == 0 {
		t.Errorf("%d sittings, %d of them ended amid a run", sittings, amid)
	}
	for _, name := range []string{"report.html", "report.md"} {
		if !bytes.Equal(readFile(t, whole, name), readFile(t, parts, name)) {
			t.Errorf("%s is another after %d sittings", name, sittings)
		}
	}
	if left := kept(t, parts, "*.part"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A report on the built-in data says so, and what it kept is not taken for the other
// set's.
func TestReproduceSaysWhichData(t *testing.T) {
	c, r := paperMNIST(), &reproduction{}
	noData(t)
	strokes, err := r.dataOf(c)
	if err != nil || !strokes.fallback {
		t.Fatalf("%+v, %v", strokes, err)
	}
	mine, errA := job{cfg: c}.key(strokes)
	other, errB := job{cfg: c}.key(dataInUse{name: "mnist", sums: "00"})
	if errA != nil || errB != nil || mine == other {
		t.Errorf("one key for two data sets: %s, %v, %v", mine, errA, errB)
	}
	dir := t.TempDir()
	mustRun(t, "reproduce", "--only", "disagreements", "--seeds", "1", "--rounds", "3", "--out", dir)
	if text := string(readFile(t, dir, "report.md")); !strings.Contains(text, "MNIST was not found") {
		t.Error("the report does not say that it has no MNIST")
	}
}

// What an interrupted report says to go on with makes the same report.
func TestReproduceSaysHowToGoOn(t *testing.T) {
	f := Options{Out: "a", Data: "b", Quick: true, Seeds: 2, CIFARSeeds: 1, Rounds: 3, Only: []string{"mnist", "packed"}}
	cmd := newReproduceCommand()
	if err := cmd.ParseFlags(strings.Fields(reproduceArguments(f))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"out": "a", "data": "b", "quick": "true", "seeds": "2", "cifar-seeds": "1", "rounds": "3", "only": "[mnist,packed]"} {
		if got := cmd.Flag(name).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", name, got, want)
		}
	}
}

// A damaged record of a run on its way is as good as none.
func TestTallyIsChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.part")
	for _, text := range []string{"", "{", `{"state":{"Round":4}}`, `{"state":{"Round":1},"result":{"loss":[1,2]}}`} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := loadTally(path, 3); got.State.Round != 0 || got.Result.rounds() != 0 {
			t.Errorf("%q is taken for a run after round %d", text, got.State.Round)
		}
	}
}

func TestReproducePacked(t *testing.T) {
	dir := t.TempDir()
	page := reproduced(t, dir, "packed")
	wantIn(t, page, "Packed directions", "not within 3", "uplink a round")
	if strings.Contains(page, "different") {
		t.Error("encrypted runs took other numbers of rounds")
	}
}

// Table I comes out of the programs as the paper has it, all of it.
func TestReproduceTable1(t *testing.T) {
	r := &reproduction{opt: Options{Seeds: 1, Rounds: 3}, dir: t.TempDir(), stderr: io.Discard}
	table, err := r.table1(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	settings := 0
	for _, row := range table.Rows {
		switch row.Verdict {
		case report.Setting:
			settings++
		case report.Same:
		default:
			t.Errorf("%v", row.Cells)
		}
	}
	if settings != 3 { // scheme, n and q
		t.Errorf("%d rows are settings", settings)
	}
	// A setting that were not the paper's would be a difference, and a result is none.
	for _, c := range []struct {
		equal, setting bool
		verdict        report.Verdict
		against        report.Against
	}{
		{true, true, report.Setting, report.Nothing}, {false, true, report.Differs, report.PaperValue},
		{true, false, report.Same, report.PaperValue}, {false, false, report.Differs, report.PaperValue},
	} {
		if row := table1Row(nil, c.equal, c.setting); row.Verdict != c.verdict || row.Against != c.against {
			t.Errorf("%+v gives %v, %v", c, row.Verdict, row.Against)
		}
	}
}

// The configurations of the report are those which users are given.
func TestPaperCIFARIsTheFile(t *testing.T) {
	for file, settings := range map[string]cifarSetting{cifarConfig: cifarStated()[0], "../../hw-configs/cifar10-learns.toml": cifarLearns()[0]} {
		want, err := config.Load(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := settings.configure(false)
		got.Experiment.Name = want.Experiment.Name
		got.Optimizer.EvaluateEvery = want.Optimizer.EvaluateEvery
		a, errA := want.Encode()
		b, errB := got.Encode()
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%v, %v: the file has\n%s\nthe report\n%s", errA, errB, a, b)
		}
	}
}

// Encrypted control runs end where the unencrypted ones are evaluated, at any length.
func TestControlRounds(t *testing.T) {
	for rounds := 1; rounds < 8000; rounds += 7 {
		for _, quick := range []bool{false, true} {
			s := cifarSetting{rounds: rounds}
			every, n := s.evaluateEvery(quick), s.controlRounds(quick)
			if n < 1 || n > rounds || n%every != 0 {
				t.Fatalf("K = %d: control after %d rounds, evaluated every %d", rounds, n, every)
			}
		}
	}
}

// Pairs are judged by rounds that both have, and what clips or parts them is said.
func TestPairs(t *testing.T) {
	ran := func(rounds int, accuracy float64) cellResult {
		c := cellResult{Accuracy: accuracy}
		for k := 1; k <= rounds; k++ {
			c.Loss, c.Evaluated, c.Accuracies = append(c.Loss, 1), append(c.Evaluated, k), append(c.Accuracies, 0.1*float64(k))
		}
		return c
	}
	clipped := ran(3, 0.9)
	clipped.Clipped = 4
	for _, c := range []struct {
		encrypted, plain cellResult
		verdict          report.Verdict
		why              string
	}{
		{ran(3, 0.3), ran(3, 0.3), report.Same, ""},
		{ran(3, 0.3), ran(9, 0.7), report.Same, ""},
		{ran(3, 0.3), ran(2, 0.3), report.Differs, "1 unencrypted run diverged, and in other rounds than encrypted"},
		{ran(3, 0.9), ran(3, 0.3), report.Differs, "0.2 points or more"},
		{clipped, ran(3, 0.3), report.Differs, "0.2 points or more; messages were clipped, which unencrypted ones are not"},
	} {
		row := cifarRun{encrypted: []cellResult{c.encrypted}, plain: []cellResult{c.plain}}.pairs()
		if row.Verdict != c.verdict || row.Why != c.why {
			t.Errorf("%v, %q; want %v, %q", row.Verdict, row.Why, c.verdict, c.why)
		}
	}
}

func TestSmoothing(t *testing.T) {
	if got := runningMedian([]float64{9, 1, 5, 100, 4, 3}, 3); !slices.Equal(got, []float64{9, 5, 5, 5, 4, 3}) {
		t.Errorf("the running median is %v", got)
	}
}

func TestRanks(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		rounds []int
		median float64
	}{{[]int{7}, 7}, {[]int{9, 0, 5}, 9}, {[]int{0, 0, 5}, inf}, {[]int{0, 5}, inf}, {[]int{3, 5}, 5}, {[]int{3, 1, 4, 0, 5}, 4}} {
		var results []cellResult
		for _, n := range c.rounds {
			results = append(results, cellResult{Reached: n})
		}
		if got := rankOf(roundsTo(results), 0.5); got != c.median {
			t.Errorf("of %v the median is %v, want %v", c.rounds, got, c.median)
		}
	}
}

func TestReproduceRefuses(t *testing.T) {
	for _, args := range [][]string{{"--only", "table9"}, {"--seeds", "-1"}, {"--cifar-seeds", "0"}, {"more"}} {
		status, _, stderr := run(t, append([]string{"reproduce"}, args...)...)
		if status != exitBadInput || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: status %d: %s", args, status, stderr)
		}
	}
}
