package paper

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

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/report"
)

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
	c, err := config.Load(experimenttest.CIFARConfig, strings.Split(strings.ReplaceAll(sets, " ", ""), ","))
	if err != nil {
		t.Fatal(err)
	}
	eta, gamma := experiment.StepLaws(c.Optimizer)
	stated, _ := experiment.StepLaws(paperCIFAR().Optimizer)
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
	data := experimenttest.FewImages(t)
	sitting := func(ctx context.Context, dir string) error {
		_, err := Reproduce(ctx, Options{Out: dir, Data: data, Seeds: 1, CIFARSeeds: 1, Rounds: 3, Only: []string{"cifar"}}, io.Discard)
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
		if !errors.Is(err, experiment.ErrInterrupted) || sittings > 100 {
			t.Fatalf("sitting %d: %v", sittings, err)
		}
		amid += len(experimenttest.CacheFiles(t, parts, "*.part"))
	}
	if sittings < 3 || amid == 0 {
		t.Errorf("%d sittings, %d of them ended amid a run", sittings, amid)
	}
	for _, name := range []string{"report.html", "report.md"} {
		if !bytes.Equal(experimenttest.ReadFile(t, whole, name), experimenttest.ReadFile(t, parts, name)) {
			t.Errorf("%s is another after %d sittings", name, sittings)
		}
	}
	if left := experimenttest.CacheFiles(t, parts, "*.part"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
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
	for file, settings := range map[string]cifarSetting{experimenttest.CIFARConfig: cifarStated()[0], "../../hw-configs/cifar10-learns.toml": cifarLearns()[0]} {
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
