package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/paper"
)

// reproduced makes a small report of some chapters and gives its page.
func reproduced(t *testing.T, dir, chapters string, more ...string) string {
	t.Helper()
	mustRun(t, append([]string{"reproduce", "--only", chapters, "--seeds", "1", "--rounds", "3", "--out", dir}, more...)...)
	return string(experimenttest.ReadFile(t, dir, "report.html"))
}

func wantIn(t *testing.T, page string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the report", want)
		}
	}
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
	for _, line := range strings.Split(string(experimenttest.ReadFile(t, dir, "report.md")), "\n") {
		if strings.Contains(line, "| security") && strings.Contains(line, "same") && (!strings.Contains(line, "meets") || strings.Contains(line, "exceeds")) {
			t.Errorf("a verdict beside its contrary: %s", line)
		}
	}
	// The runs that give rho are some of Fig. 2's.
	if files := experimenttest.CacheFiles(t, dir, "*.json"); len(files) != 10 {
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
	dir, data := t.TempDir(), experimenttest.FewImages(t)
	page := reproduced(t, dir, "cifar", "--data", data)
	wantIn(t, page, "Fig. 3", "81.70 %", "cut to 3 of 7500 rounds", "16 packed directions", "Settings that learn")
	for _, line := range strings.Split(string(experimenttest.ReadFile(t, dir, "report.md")), "\n") {
		if strings.HasPrefix(line, "| stated steps") && !strings.Contains(line, "✓ same") {
			t.Errorf("encrypted and unencrypted runs differ: %s", line)
		}
	}
	stated, learns := len(paper.CifarStated()), len(paper.CifarLearns())
	if files := experimenttest.CacheFiles(t, dir, "*.json"); len(files) != 2*stated+1+2*learns+1 {
		t.Errorf("%d results are kept", len(files))
	}
	for _, line := range strings.Split(string(experimenttest.ReadFile(t, dir, "report.md")), "\n") {
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

// Without the data the report goes on, and says how to get them.
func TestReproduceWithoutCIFAR(t *testing.T) {
	t.Setenv("RINGWAVE_DATA", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	page := reproduced(t, t.TempDir(), "cifar,disagreements")
	wantIn(t, page, "ringwave data fetch cifar10", `class="verdict missing">– not run`, "numbers disagree")
}

// A report on the built-in data says so, and what it kept is not taken for the other
// set's.
func TestReproduceSaysWhichData(t *testing.T) {
	c, r := paper.PaperMNIST(), &paper.Reproduction{}
	experimenttest.NoData(t)
	strokes, err := r.DataOf(c)
	if err != nil || !strokes.Fallback {
		t.Fatalf("%+v, %v", strokes, err)
	}
	mine, errA := paper.Job{Cfg: c}.Key(strokes)
	other, errB := paper.Job{Cfg: c}.Key(paper.DataInUse{Name: "mnist", Sums: "00"})
	if errA != nil || errB != nil || mine == other {
		t.Errorf("one key for two data sets: %s, %v, %v", mine, errA, errB)
	}
	dir := t.TempDir()
	mustRun(t, "reproduce", "--only", "disagreements", "--seeds", "1", "--rounds", "3", "--out", dir)
	if text := string(experimenttest.ReadFile(t, dir, "report.md")); !strings.Contains(text, "MNIST was not found") {
		t.Error("the report does not say that it has no MNIST")
	}
}

// What an interrupted report says to go on with makes the same report.
func TestReproduceSaysHowToGoOn(t *testing.T) {
	f := paper.Options{Out: "a", Data: "b", Quick: true, Seeds: 2, CIFARSeeds: 1, Rounds: 3, Only: []string{"mnist", "packed"}}
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

func TestReproducePacked(t *testing.T) {
	dir := t.TempDir()
	page := reproduced(t, dir, "packed")
	wantIn(t, page, "Packed directions", "not within 3", "uplink a round")
	if strings.Contains(page, "different") {
		t.Error("encrypted runs took other numbers of rounds")
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
