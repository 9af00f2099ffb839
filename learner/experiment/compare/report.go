package compare

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// The files that a comparison adds to its plots.
const (
	HTMLName     = "comparison.html"
	MarkdownName = "comparison.md"
)

// Write draws the plots and writes both reports into a new folder, which is not there
// afterwards if it cannot.
func (c Comparison) Write(out string) (plots []chart.Plot, err error) {
	if len(c.groups) == 0 {
		return nil, errNone
	}
	folder, err := runfolder.Create(out)
	if err != nil {
		return nil, intake.PathError(err)
	}
	defer func() {
		folder.Close()
		if err != nil {
			_ = os.RemoveAll(out)
		}
	}()
	var named []chart.NamedRun
	names := c.names()
	for i, g := range c.groups {
		for _, r := range g.runs {
			named = append(named, chart.NamedRun{Label: names[i], Rows: r.rows})
		}
	}
	if plots, err = chart.ComparePlots(out, c.heading(), named); err != nil {
		return nil, fmt.Errorf("drawing the comparison: %w", err)
	}
	rep, err := c.report(plots)
	if err != nil {
		return nil, err
	}
	page, err := rep.HTML(out)
	if err != nil {
		return nil, err
	}
	text, err := rep.Markdown()
	if err != nil {
		return nil, err
	}
	if err := folder.WriteAtomic(HTMLName, page); err != nil {
		return nil, err
	}
	return plots, folder.WriteAtomic(MarkdownName, text)
}

// Letter names a group in tables and legends: A to Z, then AA.
func Letter(position int) string {
	name := string(rune('A' + position%26))
	if position < 26 {
		return name
	}
	return Letter(position/26-1) + name
}

// names returns the groups' names in legends: the letter, where there are several, and
// what of the label not all have in front, the aggregator first and keys without their
// section: a legend has little room.
func (c Comparison) names() []string {
	if len(c.groups) == 1 {
		return []string{c.groups[0].label}
	}
	const separator = ", "
	var fields [][]string
	for _, g := range c.groups {
		fields = append(fields, strings.Split(g.label, separator))
	}
	shared := 0
	for !slices.ContainsFunc(fields, func(f []string) bool { return len(f) <= shared+1 || f[shared] != fields[0][shared] }) {
		shared++
	}
	var names []string
	for i, f := range fields {
		var first, rest []string
		for _, field := range f[shared:] {
			key, value, isKey := strings.Cut(field, "=")
			_, short, inSection := strings.Cut(key, ".")
			switch {
			case key == "experiment.aggregator":
				first = append(first, value)
			case isKey && inSection:
				rest = append(rest, short+"="+value)
			default:
				rest = append(rest, field)
			}
		}
		names = append(names, Letter(i)+": "+strings.Join(append(first, rest...), separator))
	}
	return names
}

// heading says how many runs there are, what they have in common and their seeds.
func (c Comparison) heading() string {
	runs, seeds := 0, []uint64{}
	for _, l := range c.Table {
		runs += l.Runs
		seeds = append(seeds, l.Seeds...)
	}
	slices.Sort(seeds)
	seeds = slices.Compact(seeds)
	traits := slices.DeleteFunc(c.groups[0].cfg.Traits(), func(trait string) bool {
		return slices.ContainsFunc(c.groups, func(g *group) bool { return !slices.Contains(g.cfg.Traits(), trait) })
	})
	if len(c.groups) == 1 {
		traits = slices.Insert(traits, 0, c.groups[0].cfg.Experiment.Name)
	}
	word := "seeds"
	if len(seeds) == 1 {
		word = "seed"
	}
	traits = append(traits, word+" "+seedList(seeds))
	return fmt.Sprintf("%s in %s: %s", report.Counted(runs, "run"), report.Counted(len(c.groups), "group"), strings.Join(traits, ", "))
}

// report puts tables and plots together.
func (c Comparison) report(plots []chart.Plot) (report.Report, error) {
	runs := 0
	for _, l := range c.Table {
		runs += l.Runs
	}
	rep := report.Report{
		Title: fmt.Sprintf("Comparison of %s in %s", report.Counted(runs, "run"), report.Counted(len(c.groups), "group")),
		Lead:  []string{"Runs that differ in nothing but the seed and the name, and used the same data, are one group. Spreads are median and quartiles over its runs."},
	}
	compared, err := c.comparedSection()
	if err != nil {
		return rep, err
	}
	rep.Sections = append(rep.Sections, compared, c.resultsSection())
	if s := c.pairedSection(); len(s.Blocks) > 0 {
		rep.Sections = append(rep.Sections, s)
	}
	if s := c.reachedSection(); len(s.Blocks) > 0 {
		rep.Sections = append(rep.Sections, s)
	}
	figures := report.Section{Title: "Plots"}
	if slices.ContainsFunc(c.groups, func(g *group) bool { return g.cfg.Optimizer.PackedDirections > 1 }) {
		figures.Blocks = append(figures.Blocks, report.Paragraph("Of packed directions, the message M is that of the first."))
	}
	for _, p := range plots {
		figures.Blocks = append(figures.Blocks, report.Figure{Base: p.Name, Caption: p.Caption})
	}
	rep.Sections = append(rep.Sections, figures)
	return rep, nil
}

// comparedSection says what the groups are, and the keys in which they differ.
func (c Comparison) comparedSection() (report.Section, error) {
	s := report.Section{Title: "What is compared"}
	keys, values, err := differing(c.groups)
	if err != nil {
		return s, err
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "experiment.name" }) // a column of its own
	groups := report.Table{Caption: "The groups and their seeds.", Head: []string{"group", "experiment", "seeds"}}
	for i, g := range c.groups {
		groups.Rows = append(groups.Rows, report.Row{Cells: []string{Letter(i), g.cfg.Experiment.Name, seedList(c.Table[i].Seeds)}})
	}
	const most = 4 // of the keys that a table of groups is wide enough for
	if len(keys) <= most {
		groups.Head = append(groups.Head, keys...)
		for i := range groups.Rows {
			for _, key := range keys {
				groups.Rows[i].Cells = append(groups.Rows[i].Cells, shown(values[i][key]))
			}
		}
	}
	switch {
	case len(c.groups) == 1:
	case len(keys) == 0:
		groups.Caption += " Their configurations and data sets have the same keys and names: the groups are repetitions of a seed, or their files differ."
	case len(keys) <= most:
		groups.Caption += " The columns behind have the keys in which they differ; they share all others."
	}
	s.Blocks = append(s.Blocks, groups)
	if len(keys) > most {
		s.Blocks = append(s.Blocks, keyTable(keys, values))
	}
	return s, nil
}

// keyTable has a row a key, and a column a group.
func keyTable(keys []string, values []map[string]string) report.Table {
	t := report.Table{Caption: "The keys in which the groups differ; they share all others.", Head: []string{"key"}}
	for i := range values {
		t.Head = append(t.Head, Letter(i))
	}
	for _, key := range keys {
		row := report.Row{Cells: []string{key}}
		for _, v := range values {
			row.Cells = append(row.Cells, shown(v[key]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// shown returns a value that a reader sees.
func shown(value string) string {
	if value == "" {
		return "(empty)"
	}
	return value
}

// seedList writes sorted seeds, those that follow each other as a range.
func seedList(seeds []uint64) string {
	var parts []string
	for from := 0; from < len(seeds); {
		to := from
		for to+1 < len(seeds) && seeds[to+1] == seeds[to]+1 {
			to++
		}
		switch to - from {
		case 0:
			parts = append(parts, fmt.Sprint(seeds[from]))
		case 1:
			parts = append(parts, fmt.Sprint(seeds[from]), fmt.Sprint(seeds[to]))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", seeds[from], seeds[to]))
		}
		from = to + 1
	}
	return strings.Join(parts, ", ")
}

// dash stands where there is no number.
const dash = "–"

// resultsSection has the results over the runs of each group.
func (c Comparison) resultsSection() report.Section {
	t := report.Table{
		Caption: "Results at the end: median and, of several runs, quartiles. The loss is that of all training samples. Rounds repeated and skipped are those of all runs. The noise is the largest of any round, in predicted deviations.",
		Head:    []string{"group", "runs", "rounds", "test accuracy, %", "training loss", "repeated", "skipped", "noise"},
	}
	uplink := slices.ContainsFunc(c.Table, func(l Line) bool { return l.UplinkBits > 0 })
	if uplink {
		t.Head = append(t.Head, "uplink, bits", "airtime of a round, s")
		t.Caption += " Uplink is one device's in a round; airtime is one bit a second and hertz, and not known over a waveform or without ciphertexts."
	}
	for i, l := range c.Table {
		row := report.Row{Cells: []string{
			Letter(i), fmt.Sprint(l.Runs), fmt.Sprint(l.Rounds),
			spreadText(l.Runs, 100*l.AccuracyLow, 100*l.Accuracy, 100*l.AccuracyHigh, hundredths),
			spreadText(l.Runs, l.LossLow, l.Loss, l.LossHigh, fourDigits),
			fmt.Sprint(l.Repeated), fmt.Sprint(l.Skipped), deviations(l.Results),
		}}
		if uplink {
			row.Cells = append(row.Cells, bitsText(l.UplinkBits), report.Number(float64(l.Airtime), 3))
		}
		t.Rows = append(t.Rows, row)
	}
	blocks := []report.Block{t}
	for _, warning := range c.Unusable() {
		blocks = append(blocks, report.Paragraph(warning))
	}
	return report.Section{Title: "Results", Blocks: blocks}
}

// Unusable returns a sentence for each run that ended without a usable result.
func (c Comparison) Unusable() (sentences []string) {
	for i, l := range c.Table {
		for _, u := range l.Unusable {
			sentences = append(sentences, fmt.Sprintf("NOT USABLE: %s, seed %d: %s. The figures of %s count it.", Letter(i), u.Seed, u.Reason, Letter(i)))
		}
	}
	return sentences
}

func bitsText(bits int64) string {
	if bits == 0 {
		return dash
	}
	return fmt.Sprint(bits)
}

// deviations writes the worst noise, if any was predicted.
func deviations(l Results) string {
	if l.WorstDeviations == 0 {
		return dash
	}
	return report.Number(float64(l.WorstDeviations), 3)
}

func hundredths(x float64) string {
	if math.IsNaN(x) {
		return dash
	}
	return fmt.Sprintf("%.2f", x)
}

func fourDigits(x float64) string { return report.Number(x, 4) }

// spreadText writes a median with quartiles, or the only value.
func spreadText(runs int, low, median, high runfolder.Float, write func(float64) string) string {
	if runs == 1 || math.IsNaN(float64(median)) {
		return write(float64(median))
	}
	return fmt.Sprintf("%s (%s to %s)", write(float64(median)), write(float64(low)), write(float64(high)))
}

// mostPairs is up to how many pairs of groups are all told.
const mostPairs = 10

// Pairs returns the lines of paired differences that are told, and whether there are
// others.
func (c Comparison) Pairs() (lines []PairedLine, others bool) {
	all := 0
	for _, l := range c.Table {
		all += len(l.Paired)
	}
	for i, l := range c.Table {
		if all > mostPairs && i > 0 && len(lines) > 0 {
			return lines, true
		}
		lines = append(lines, l.Paired...)
	}
	return lines, false
}

// Groups returns what is subtracted from what, by letters.
func (p PairedLine) Groups() string { return Letter(p.other) + " − " + Letter(p.of) }

// Points returns a difference with its sign.
func Points(d runfolder.Float) string {
	text := fmt.Sprintf("%+.2f", float64(d))
	if text == "+0.00" || text == "-0.00" {
		return "0.00"
	}
	return text
}

// pairedSection compares groups on the seeds that they share.
func (c Comparison) pairedSection() report.Section {
	s := report.Section{Title: "Differences on the same seeds"}
	lines, others := c.Pairs()
	if len(lines) == 0 {
		return s
	}
	t := report.Table{
		Caption: "Test accuracy at the end, the first group's less the second's, run by run of the same seed and data, in points: the median, and the largest in magnitude.",
		Head:    []string{"groups", "seeds", "median", "largest", "at seed"},
	}
	if others {
		t.Caption += fmt.Sprintf(" Only group %s is compared with the others; --json has all pairs.", Letter(lines[0].of))
	}
	for _, p := range lines {
		t.Rows = append(t.Rows, report.Row{Cells: []string{p.Groups(), fmt.Sprint(p.Seeds), Points(p.Median), Points(p.Largest), fmt.Sprint(p.LargestSeed)}})
	}
	s.Blocks = append(s.Blocks, t)
	return s
}

// reachedSection has rounds, and airtime where it is known, to each accuracy.
func (c Comparison) reachedSection() report.Section {
	s := report.Section{Title: "Rounds to an accuracy"}
	if len(c.Accuracies) == 0 {
		return s
	}
	rounds := report.Table{
		Caption: "The first evaluated round whose test accuracy is at least so much: median and quartiles over all runs, where a run that never gets there counts as more than it has rounds. In brackets how many runs did, where not all.",
		Head:    []string{"group"},
	}
	seconds := report.Table{Caption: "Airtime to there in seconds, in the median, with every attempt of every round.", Head: rounds.Head}
	for _, a := range c.Accuracies {
		rounds.Head = append(rounds.Head, AccuracyName(a))
	}
	seconds.Head = rounds.Head
	known := false
	for i, l := range c.Table {
		r, t := report.Row{Cells: []string{Letter(i)}}, report.Row{Cells: []string{Letter(i)}}
		for _, reached := range l.Reached {
			r.Cells = append(r.Cells, l.RoundsText(reached))
			t.Cells = append(t.Cells, l.AirtimeText(reached))
		}
		rounds.Rows, seconds.Rows = append(rounds.Rows, r), append(seconds.Rows, t)
		known = known || !math.IsNaN(float64(l.Airtime))
	}
	s.Blocks = append(s.Blocks, rounds)
	if known {
		s.Blocks = append(s.Blocks, seconds)
	}
	return s
}

// AccuracyName returns an accuracy in per cent.
func AccuracyName(share float64) string { return fmt.Sprintf("%.6g %%", 100*share) }

// RoundsText returns rounds to an accuracy.
func (l Results) RoundsText(r ReachedLine) string {
	text := fmt.Sprintf("not within %d", l.Rounds)
	if !math.IsInf(float64(r.Rounds), 0) {
		text = spreadText(l.Runs, r.RoundsLow, r.Rounds, r.RoundsHigh, func(x float64) string {
			if math.IsInf(x, 0) {
				return fmt.Sprintf("over %d", l.Rounds)
			}
			return fmt.Sprintf("%.6g", x)
		})
	}
	if r.Runs < l.Runs && r.Runs > 0 {
		text += fmt.Sprintf(" [%d of %d]", r.Runs, l.Runs)
	}
	return text
}

// AirtimeText writes airtime to an accuracy.
func (l Results) AirtimeText(r ReachedLine) string {
	if math.IsInf(float64(r.Airtime), 0) {
		return fmt.Sprintf("not within %d rounds", l.Rounds)
	}
	return report.Number(float64(r.Airtime), 3)
}
