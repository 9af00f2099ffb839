package sweepreport

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"ringwave/learner/experiment/compare"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
)

// The most lines that a page is for; files have all.
const (
	mostRows    = 1000
	mostMissing = 100
)

// writeReport writes the page and its Markdown, with the sections of figures.
func (w *writer) writeReport(figures []report.Section) error {
	rep := report.Report{
		Title:    fmt.Sprintf("Sweep %s: %s of %s", w.plan.Name, report.Counted(len(w.dirs), "run"), report.Counted(len(w.combos), "combination")),
		Lead:     w.lead(),
		Sections: slices.Concat([]report.Section{w.sweptSection(), w.resultsSection()}, figures, []report.Section{w.filesSection()}),
	}
	page, err := rep.HTML(w.dir)
	if err != nil {
		return err
	}
	text, err := rep.Markdown()
	if err != nil {
		return err
	}
	if err := runfolder.WriteFile(filepath.Join(w.dir, HTMLName), page); err != nil {
		return err
	}
	return runfolder.WriteFile(filepath.Join(w.dir, MarkdownName), text)
}

func (w *writer) lead() []string {
	lead := []string{fmt.Sprintf("Every run is of %s. Spreads are median and quartiles over the seeds of a combination.", strings.Join(w.shared(), ", "))}
	if n := len(w.report.Without); n > 0 {
		lead = append(lead, fmt.Sprintf("WITHOUT A RESULT: %d of %d runs; the section on results names them. Figures and medians are over the others.", n, len(w.dirs)))
	}
	unusable := 0
	for _, l := range w.report.Table {
		unusable += len(l.Unusable)
	}
	if unusable > 0 {
		lead = append(lead, fmt.Sprintf("NOT USABLE: %d of %d runs ended without a usable result. Figures and medians count them.", unusable, len(w.dirs)))
	}
	return lead
}

// sweptSection says what values there are.
func (w *writer) sweptSection() report.Section {
	t := report.Table{Caption: "The keys that are swept, and their values; keys in one row go together.", Head: []string{"key", "number", "values"}}
	for k, a := range w.plan.Axes {
		var values []string
		for place := range a.Values {
			values = append(values, strings.Join(w.valuesOf(k, []int{place}), ""))
		}
		t.Rows = append(t.Rows, report.Row{Cells: []string{strings.Join(a.Keys, " / "), fmt.Sprint(len(values)), abridged(values)}})
	}
	var seeds []string
	for _, s := range w.plan.Seeds {
		seeds = append(seeds, fmt.Sprint(s))
	}
	t.Rows = append(t.Rows, report.Row{Cells: []string{"experiment.seed", fmt.Sprint(len(seeds)), abridged(seeds)}})
	return report.Section{Title: "What is swept", Blocks: []report.Block{t}}
}

// abridged lists values, of many the first and the last.
func abridged(values []string) string {
	const most = 20
	if n := len(values); n > most {
		return strings.Join(values[:most-1], ", ") + ", ..., " + values[n-1]
	}
	return strings.Join(values, ", ")
}

// dash stands where there is no number.
const dash = "–"

// resultsSection has the table by value.
func (w *writer) resultsSection() report.Section {
	columns := w.columns()
	t := report.Table{Caption: "Results by value: median and, of several seeds, quartiles. The loss is that of all training samples at the end. Rounds to an accuracy are to the first evaluated round with at least so much, where a run that never gets there counts as more than it has rounds; in brackets how many runs did, where not all. Rounds repeated and lost are those of all seeds."}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	blocks := []report.Block{}
	if len(w.report.Table) > mostRows {
		blocks = append(blocks, report.Paragraph(fmt.Sprintf("The table has the first %d of %d combinations; %s has every run.", mostRows, len(w.report.Table), RunsName)))
	}
	for _, l := range w.report.Table[:min(mostRows, len(w.report.Table))] {
		var row report.Row
		for _, c := range columns {
			row.Cells = append(row.Cells, c.of(l))
		}
		t.Rows = append(t.Rows, row)
	}
	blocks = append(blocks, t)
	if list := w.troubles(); len(list) > 0 {
		blocks = append(blocks, report.Paragraph("Runs that have no result, or none that is usable:"), report.List(list))
	}
	return report.Section{Title: "Results", Blocks: blocks}
}

// tableColumn is one of the table by value.
type tableColumn struct {
	head string
	of   func(l Line) string
}

func (w *writer) columns() (list []tableColumn) {
	add := func(head string, of func(l Line) string) { list = append(list, tableColumn{head, of}) }
	for i, key := range w.plan.Keys {
		add(w.name(key), func(l Line) string { return shown(l.texts[i]) })
	}
	add("seeds", func(l Line) string { return fmt.Sprint(l.Runs) })
	add("test accuracy, %", func(l Line) string {
		return spreadText(l.Runs, 100*l.AccuracyLow, 100*l.Accuracy, 100*l.AccuracyHigh, hundredths)
	})
	add("training loss", func(l Line) string {
		return spreadText(l.Runs, l.LossLow, l.Loss, l.LossHigh, func(x float64) string { return report.Number(x, 4) })
	})
	for i, a := range w.report.Accuracies {
		add("rounds to "+compare.AccuracyName(a), func(l Line) string {
			if l.Runs == 0 {
				return dash
			}
			return l.RoundsText(l.Reached[i])
		})
	}
	if slices.ContainsFunc(w.report.Table, func(l Line) bool { return !math.IsNaN(float64(l.Airtime)) }) {
		add("airtime of a round, s", func(l Line) string { return report.Number(float64(l.Airtime), 3) })
		for i, a := range w.report.Accuracies {
			add("airtime to "+compare.AccuracyName(a)+", s", func(l Line) string {
				if l.Runs == 0 {
					return dash
				}
				return l.AirtimeText(l.Reached[i])
			})
		}
	}
	add("repeated", func(l Line) string { return fmt.Sprint(l.Repeated) })
	add("lost", func(l Line) string { return fmt.Sprint(l.Skipped) })
	add("unusable", func(l Line) string { return fmt.Sprint(len(l.Unusable)) })
	if len(w.report.Without) > 0 {
		add("no result", func(l Line) string { return fmt.Sprint(l.Without) })
	}
	return list
}

func hundredths(x float64) string {
	if math.IsNaN(x) {
		return dash
	}
	return fmt.Sprintf("%.2f", x)
}

// troubles names the runs that came to nothing.
func (w *writer) troubles() (list []string) {
	for _, m := range w.report.Without {
		list = append(list, fmt.Sprintf("NO RESULT: %s, run %d.", w.runName(m.texts, uint64(m.Seed)), m.Run))
	}
	for _, l := range w.report.Table {
		for _, u := range l.Unusable {
			list = append(list, fmt.Sprintf("NOT USABLE: %s: %s. The figures count it.", w.runName(l.texts, u.Seed), u.Reason))
		}
	}
	if n := len(list); n > mostMissing {
		list = append(list[:mostMissing], fmt.Sprintf("And %d more, which %s has.", n-mostMissing, RunsName))
	}
	return list
}

// runName says which run a sentence is about.
func (w *writer) runName(values []string, seed uint64) string {
	var parts []string
	for i, key := range w.plan.Keys {
		parts = append(parts, key+" = "+shown(values[i]))
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", seed)), ", ")
}

// filesSection says how the numbers are read by other programs.
func (w *writer) filesSection() report.Section {
	return report.Section{Title: "Files", Blocks: []report.Block{
		report.Paragraph(fmt.Sprintf(`%s has a line a run: its values, seed and folder, and the numbers of its summary.json and of the table. %s has a line a round of a run, which the column "run" names. NumPy reads them so:`, RunsName, CurvesName)),
		report.List{
			fmt.Sprintf(`runs = np.genfromtxt("%s", delimiter=",", names=True, dtype=None, encoding="utf-8")`, RunsName),
			fmt.Sprintf(`curves = np.genfromtxt("%s", delimiter=",", names=True)`, CurvesName),
		},
	}}
}
