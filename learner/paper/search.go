package paper

import (
	"context"
	"fmt"
	"slices"

	"ringwave/learner/experiment/report"
)

// searchCommand makes the chapter that chooses settings such as those of cifarLearns.
const searchCommand = "ringwave reproduce --only cifar-search"

// searchSeed is the first seed of the search: not one of those by which what it has
// chosen is measured.
const searchSeed = 1001

// cifarTried gives, for each setting of cifarLearns, what is tried in its place: the
// same rounds, batches and directions with other laws of the steps and other bounds.
// Settings are tried without encryption and receiver noise, which change no decision.
func cifarTried() [][]cifarSetting {
	type law struct{ eta0, etaPower, gammaPower, clip float64 }
	grids := [][]law{
		{{0.01, 0.25, 0, 0}, {0.02, 0.25, 0, 0}, {0.04, 0.25, 0, 0}, {0.0025, 0, 0, 0}, {0.005, 0, 0, 0}, {0.1, 0.25, 0.25, 0}, {0.1, 0.5, 0.25, 0}, {0.5, 0.5, 0.25, 0}},
		{{0.0025, 0.25, 0, 0.1}, {0.005, 0.25, 0, 0.1}, {0.01, 0.25, 0, 0.1}, {0.0005, 0, 0, 0.1}, {0.001, 0, 0, 0.1}, {0.005, 0.25, 0, 0}},
		{{0.01, 0.25, 0, 0.1}, {0.02, 0.25, 0, 0.1}, {0.04, 0.25, 0, 0.1}, {0.005, 0, 0, 0.1}, {0.02, 0.25, 0, 0}},
	}
	var out [][]cifarSetting
	for k, s := range cifarLearns() {
		var tried []cifarSetting
		for _, l := range grids[k] {
			s.eta0, s.etaPower, s.gammaPower, s.clip = l.eta0, l.etaPower, l.gammaPower, l.clip
			tried = append(tried, s)
		}
		out = append(out, tried)
	}
	return out
}

// searchJobs returns the runs of one setting.
func (r *reproduction) searchJobs(s cifarSetting) []job {
	c := plain(s.configure(r.opt.Quick), 0)
	c.Optimizer.EvaluateEvery = s.rounds // the choice is made at the end
	var jobs []job
	for seed := range r.opt.CIFARSeeds {
		c.Experiment.Seed = int64(searchSeed + seed)
		jobs = append(jobs, job{Cell: Cell{Config: c, Validate: true}, what: "search, " + s.title()})
	}
	return jobs
}

// searched is a setting with the accuracies on the validation samples.
type searched struct {
	cifarSetting
	results []cellResult
}

// score is what is compared: the median, and nothing where a run diverged.
func (s searched) score() float64 {
	for _, c := range s.results {
		if c.Diverged {
			return 0
		}
	}
	return quartilesOf(accuracies(s.results)).median
}

// best returns the setting with the highest score; of several the first.
func best(tried []searched) searched {
	return slices.MaxFunc(tried, func(a, b searched) int {
		switch {
		case a.score() > b.score():
			return 1
		case a.score() < b.score():
			return -1
		}
		return 0
	})
}

// search runs everything that is tried.
func (r *reproduction) search(ctx context.Context) ([][]searched, error) {
	var jobs []job
	for _, tried := range cifarTried() {
		for _, s := range tried {
			jobs = append(jobs, r.searchJobs(r.cut(s))...)
		}
	}
	r.begin("cifar-search", jobs, true)
	results, err := r.cells(ctx, jobs)
	if err != nil {
		return nil, err
	}
	var out [][]searched
	for _, tried := range cifarTried() {
		var of []searched
		for _, s := range tried {
			n := r.opt.CIFARSeeds
			of, results = append(of, searched{r.cut(s), results[:n:n]}), results[n:]
		}
		out = append(out, of)
	}
	return out, nil
}

// cut is a setting with as many rounds as are wanted of it.
func (r *reproduction) cut(s cifarSetting) cifarSetting {
	if r.opt.Quick {
		s = s.quickened()
	}
	if most := r.opt.Rounds; most > 0 {
		s.rounds = min(s.rounds, most)
	}
	return s
}

// cifarSearch makes the chapter on how the settings of cifarLearns were chosen.
func (r *reproduction) cifarSearch(ctx context.Context) (report.Section, error) {
	s := report.Section{Title: "CIFAR-10: the search for settings that learn"}
	missing, err := r.cifarAbsent()
	if err != nil {
		return s, err
	}
	if missing {
		s.Blocks = append(s.Blocks, report.Paragraph(cifarFetch))
		s.Findings = []report.Finding{{What: "settings that learn", Paper: "–", Here: "CIFAR-10 is not on this machine", Verdict: report.Missing}}
		return s, nil
	}
	found, err := r.search(ctx)
	if err != nil {
		return s, err
	}
	s.Blocks = append(s.Blocks, report.Paragraph(fmt.Sprintf(
		"Every setting was run without encryption and receiver noise on four fifths of the training images, the same for all, with %s from %d on; its accuracy is that on the fifth that was held out, after all rounds. The one with the highest is chosen, in the median where there are several seeds; a run that diverged counts for nothing. The test set has no part in it. The model, the data, N = 10 and the channel are the paper's; of gamma0, rounds, batches and directions one value each was tried.",
		seedsText(r.opt.CIFARSeeds), searchSeed)))
	for k, tried := range found {
		table, finding := r.searchTable(cifarLearns()[k], tried)
		s.Blocks, s.Findings = append(s.Blocks, table), append(s.Findings, finding)
	}
	return s, nil
}

// searchTable says what was tried for one setting of cifarLearns, and whether that one
// came out.
func (r *reproduction) searchTable(used cifarSetting, tried []searched) (report.Table, report.Finding) {
	t := report.Table{
		Caption: fmt.Sprintf("%s, sigma = %v: what was tried. The same means: the setting that this program uses is the one chosen.", used.name, used.sigma),
		Head:    []string{"setting", "rounds run", "accuracy on validation images", "chosen"},
	}
	whole := r.cut(used).rounds == used.rounds
	chosen := best(tried)
	for _, s := range tried {
		rounds := 0
		for _, c := range s.results {
			rounds = max(rounds, c.rounds())
		}
		row := report.Row{Cells: []string{s.steps(), fmt.Sprint(rounds), "–", ""}}
		switch {
		case s.score() == 0:
			row.Why = "diverged"
		case whole:
			row.Cells[2] = accuracyText(s.results)
		}
		if whole && s.cifarSetting == chosen.cifarSetting {
			row.Cells[3] = "chosen"
			row.Verdict, row.Against = same(s.cifarSetting == used), report.Control
		}
		t.Rows = append(t.Rows, row)
	}
	f := report.Finding{What: fmt.Sprintf("setting chosen, %s, sigma = %v", used.name, used.sigma), Paper: "–", Here: chosen.steps(), Verdict: same(chosen.cifarSetting == used)}
	if !whole {
		f.Here, f.Verdict = "–", report.CutShort
	}
	return t, f
}
