package paper

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
)

// reproduced makes a small report of some chapters, of data in a folder or of those that
// are found, and gives its page.
func reproduced(t *testing.T, dir, data string, chapters ...string) string {
	t.Helper()
	opt, err := Options{Out: dir, Data: data, Seeds: 1, CIFARSeeds: 1, Rounds: 3, Only: chapters}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Reproduce(t.Context(), opt, io.Discard); err != nil {
		t.Fatal(err)
	}
	return string(experimenttest.ReadFile(t, dir, "report.html"))
}

// A small report has every chapter asked for, the same bytes when it is made again from
// the cache and in another folder, and needs nothing beside it to be read.
func TestReproduce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	chapters := []string{"parameters", "mnist", "disagreements"}
	page := reproduced(t, dir, "", chapters...)
	experimenttest.WantAll(t, page, "Table II", "Fig. 2", "446464 bytes", "data:image/svg", "numbers disagree", `id="summary"`, "rho by Eq. 21, measured", "grows by alpha^2", "timing.md")
	// Each table speaks for itself: what exceeds one is not called the same as 128 bits.
	experimenttest.WantAll(t, page, "exceeds the limit of 106 for 128 bits: about 124 bits", "exceeds the limit of 214 for 128 bits: about 126 bits")
	for _, line := range strings.Split(string(experimenttest.ReadFile(t, dir, "report.md")), "\n") {
		if strings.Contains(line, "| security") && strings.Contains(line, "same") && (!strings.Contains(line, "meets") || strings.Contains(line, "exceeds")) {
			t.Errorf("a verdict beside its contrary: %s", line)
		}
	}
	// The runs that give rho are some of Fig. 2's.
	if files := experimenttest.CacheFiles(t, dir, "*.json"); len(files) != 10 {
		t.Errorf("%d results are kept", len(files))
	}
	if page != reproduced(t, dir, "", chapters...) {
		t.Error("made from the cache, the report is another")
	}
	if one := reproduced(t, dir, "", "disagreements"); one != reproduced(t, filepath.Join(t.TempDir(), "other"), "", "disagreements") {
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
	page := reproduced(t, dir, data, "cifar")
	experimenttest.WantAll(t, page, "Fig. 3", "81.70 %", "cut to 3 of 7500 rounds", "16 packed directions", "Settings that learn")
	for _, line := range strings.Split(string(experimenttest.ReadFile(t, dir, "report.md")), "\n") {
		if strings.HasPrefix(line, "| stated steps") && !strings.Contains(line, "✓ same") {
			t.Errorf("encrypted and unencrypted runs differ: %s", line)
		}
	}
	stated, learns := len(cifarStated()), len(cifarLearns())
	if files := experimenttest.CacheFiles(t, dir, "*.json"); len(files) != 2*stated+1+2*learns+1 {
		t.Errorf("%d results are kept", len(files))
	}
	for _, line := range strings.Split(string(experimenttest.ReadFile(t, dir, "report.md")), "\n") {
		_, here, _ := strings.Cut(line, "80.15 %") // the paper's
		if strings.Contains(line, "cut short") && strings.Contains(here, " %") {
			t.Errorf("a number of runs that were cut short: %s", line)
		}
	}
	experimenttest.WantAll(t, page, "Why the stated steps cannot learn")
	for _, name := range []string{"fig3-sigma-10", "fig3-sigma-1", "fig3-learns-sigma-10-accuracy"} {
		if _, err := os.Stat(filepath.Join(dir, "plots", name+".png")); err != nil {
			t.Error(err)
		}
	}
}

// What is kept of a report on the built-in data is not taken for another set's.
func TestReproduceSaysWhichData(t *testing.T) {
	experimenttest.NoData(t)
	c, r := paperMNIST(), &reproduction{}
	strokes, err := r.dataOf(c)
	if err != nil || !strokes.fallback {
		t.Fatalf("%+v, %v", strokes, err)
	}
	mine, errA := job{Cell: Cell{Config: c}}.key(strokes)
	other, errB := job{Cell: Cell{Config: c}}.key(dataInUse{name: "mnist", sums: "00"})
	if errA != nil || errB != nil || mine == other {
		t.Errorf("one key for two data sets: %s, %v, %v", mine, errA, errB)
	}
}

func TestReproducePacked(t *testing.T) {
	page := reproduced(t, t.TempDir(), "", "packed")
	experimenttest.WantAll(t, page, "Packed directions", "not within 3", "uplink a round")
	if strings.Contains(page, "different") {
		t.Error("encrypted runs took other numbers of rounds")
	}
}

// The chapter on steps is made only where it is asked for, and encrypted runs are those without
// encryption.
func TestReproduceSteps(t *testing.T) {
	page := reproduced(t, t.TempDir(), "", "steps")
	experimenttest.WantAll(t, page, "FZOO against differences of two points", "not within 3", "passes a round", "least rounds to a loss of 0.02", "two-point not reached; FZOO not reached", `<td>FZOO</td><td class="n">256</td>`, `<td class="n">257</td>`, `<td class="n">512</td>`)
	if strings.Contains(page, "different") {
		t.Error("encrypted runs took other numbers of rounds")
	}
	if all, err := chosen(nil); err != nil || slices.ContainsFunc(all, func(c chapter) bool { return c.name == "steps" }) {
		t.Errorf("a report of all has the chapter: %v", err)
	}
}

// A search that was cut short chooses nothing and shows no accuracy; it is made only
// where it is asked for.
func TestReproduceSearch(t *testing.T) {
	dir := t.TempDir()
	page := reproduced(t, dir, experimenttest.FewImages(t), "cifar-search")
	experimenttest.WantAll(t, page, "held out", "16 packed directions", "– cut short", "rounds run")
	for _, tried := range cifarTried() {
		for _, s := range tried {
			s.rounds = 3
			experimenttest.WantAll(t, string(experimenttest.ReadFile(t, dir, "report.md")), escaped(s.steps()))
		}
	}
	if strings.Contains(page, ">chosen</td>") || strings.Contains(page, " %</td>") {
		t.Error("a search that was cut short has a result")
	}
	all, err := chosen(nil)
	if err != nil || slices.ContainsFunc(all, func(c chapter) bool { return c.name == "cifar-search" }) {
		t.Errorf("a report of all has the search: %v", err)
	}
	if one, err := chosen([]string{"cifar-search"}); err != nil || len(one) != 1 {
		t.Errorf("%v, %v", one, err)
	}
}

// escaped is text as Markdown has it.
func escaped(text string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`).Replace(text)
}
