package paper

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"ringwave/learner/dataset"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/setup"
)

// classesGoals returns the test accuracies to which rounds are counted.
func classesGoals() []float64 { return []float64{0.80, 0.85, 0.90} }

// classesMethod is a way to learn all ten digits, with the steps that are tried.
type classesMethod struct {
	name       string
	rounds     int
	directions int // P; 0 for gradients
	local      int // steps of a device's own, by gradients
	tried      []classesSteps
}

// classesSteps are steps in units of the gradient of the mean loss.
type classesSteps struct {
	eta0   float64
	law    string
	warmup int // rounds
}

func (s classesSteps) String() string {
	text := fmt.Sprintf("%s, eta0 = %v", s.law, s.eta0)
	if s.warmup > 0 {
		text += fmt.Sprintf(", warm-up over %d rounds", s.warmup)
	}
	return text
}

// classesMethods returns what is put side by side.
func (r *reproduction) classesMethods() []classesMethod {
	scalars := func(directions, rounds int, eta ...float64) classesMethod {
		m := classesMethod{name: fmt.Sprintf("zero-order, P = %d", directions), rounds: rounds, directions: directions}
		for _, e := range eta {
			m.tried = append(m.tried, classesSteps{e, "constant", rounds / 4})
		}
		m.tried = append(m.tried, classesSteps{eta[0], "constant", 0}, classesSteps{eta[len(eta)-1], "cosine", rounds / 4})
		return m
	}
	gradients := func(local, rounds int, eta ...float64) classesMethod {
		m := classesMethod{name: fmt.Sprintf("FedAvg, %s", report.Counted(local, "local step")), rounds: rounds, local: local}
		for _, e := range eta {
			m.tried = append(m.tried, classesSteps{e, "constant", 0})
		}
		return m
	}
	all := []classesMethod{
		scalars(64, 600, 0.1, 0.2, 0.4, 0.7), scalars(256, 160, 0.3, 0.6, 1.2),
		gradients(1, 200, 0.2, 0.5, 1, 2, 4), gradients(10, 60, 0.05, 0.2, 0.5, 1, 2, 4),
	}
	if r.opt.Quick {
		for k := range all {
			all[k].rounds /= 4
		}
	}
	return all
}

// configure returns the experiment with steps, by scalars without encryption.
func (m classesMethod) configure(s classesSteps) config.Config {
	c := plain(paperMNIST(), 0)
	c.Task.Classes, c.Task.Fallback = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, ""
	o := &c.Optimizer
	o.Rounds, o.EvaluateEvery, o.StepLaw, o.WarmupRounds = m.rounds, max(1, m.rounds/40), s.law, s.warmup
	o.Gamma0, o.GammaPower, o.EtaPower = 0.01, 0, 0
	if m.directions > 0 {
		o.PackedDirections, o.TrainLoss, o.Estimate, o.Eta0 = m.directions, "pairs", "gradient", s.eta0
		return c
	}
	// Its step is 2 N eta gamma times the gradient of the mean loss.
	c.Experiment.Aggregator, o.LocalSteps = config.FedAvg, m.local
	o.Eta0 = s.eta0 / (2 * float64(c.Devices.Count) * o.Gamma0)
	return c
}

// passes returns the forward passes that a device makes in a round over a batch, of which a gradient
// counts for three: its backward pass takes two.
func (m classesMethod) passes() int {
	if m.directions > 0 {
		return 2 * m.directions
	}
	return 3 * m.local
}

// classesResult is what came of a method.
type classesResult struct {
	classesMethod
	scores           []float64 // of what was tried, on samples held out
	chosen           classesSteps
	plain, encrypted []cellResult // encrypted is nil of gradients
	uplink           int          // bits a device and round
	seconds          float64      // on the air, a round
}

// encrypt returns the same experiment over the air, encrypted.
func encrypt(c config.Config) config.Config {
	c.Experiment.Aggregator, c.Encryption.ParameterSet, c.Encryption.Form = config.XMKCKKS, "ringwave-4096-100", "short"
	return c
}

// classesSeeds is with how many seeds a method is measured.
func (r *reproduction) classesSeeds() int { return min(5, r.opt.Seeds) }

// classes makes the chapter on all ten digits.
func (r *reproduction) classes(ctx context.Context) (report.Section, error) {
	s := report.Section{Title: "Ten classes: softmax regression on all digits of MNIST"}
	missing, err := r.absent(func(roots []string) error {
		_, err := dataset.Find("mnist", roots)
		return err
	})
	if err != nil {
		return s, err
	}
	if missing {
		s.Blocks = append(s.Blocks, report.Paragraph("MNIST was not found, and no other set here has ten classes. Get it with \"ringwave data fetch mnist\", or point --data or RINGWAVE_DATA at it."))
		s.Findings = []report.Finding{{What: "ten classes", Paper: "–", Here: "MNIST is not on this machine", Verdict: report.Missing}}
		return s, nil
	}
	methods := r.classesMethods()
	var search []job
	for _, m := range methods {
		for _, steps := range m.tried {
			c := m.configure(steps)
			c.Optimizer.EvaluateEvery, c.Experiment.Seed = m.rounds, searchSeed
			search = append(search, job{Cell: Cell{Config: c, Validate: true}, what: "search, " + m.name})
		}
	}
	all := slices.Clone(search)
	for _, l := range r.classesSeries(methods) {
		all = append(all, jobsOf([]series{l})...)
	}
	r.begin("classes", all, true)
	tried, err := r.cells(ctx, search)
	if err != nil {
		return s, err
	}
	var found []classesResult
	for _, m := range methods {
		res := classesResult{classesMethod: m}
		for k, c := range tried[:len(m.tried)] {
			score := c.Accuracy
			if c.Diverged {
				score = 0
			}
			if res.scores = append(res.scores, score); score >= slices.Max(res.scores) {
				res.chosen = m.tried[k]
			}
		}
		tried = tried[len(m.tried):]
		found = append(found, res)
	}
	if err := r.measureClasses(ctx, found); err != nil {
		return s, err
	}
	return r.classesSection(s, found)
}

// classesSeries returns the runs by which methods are measured with the first of their steps.
func (r *reproduction) classesSeries(methods []classesMethod) (list []series) {
	for _, m := range methods {
		c := m.configure(m.tried[0])
		list = append(list, series{m.name, c, r.classesSeeds()})
		if m.directions > 0 {
			list = append(list, series{m.name + ", encrypted", encrypt(c), r.classesSeeds()})
		}
	}
	return list
}

// measureClasses runs what was chosen, with and without encryption.
func (r *reproduction) measureClasses(ctx context.Context, found []classesResult) error {
	var methods []classesMethod
	for _, m := range found {
		m.tried = []classesSteps{m.chosen}
		methods = append(methods, m.classesMethod)
	}
	list := r.classesSeries(methods)
	results, err := r.cells(ctx, jobsOf(list))
	if err != nil {
		return err
	}
	of := ofSeries(list, results)
	for k := range found {
		m := &found[k]
		c := m.configure(m.chosen)
		m.plain, of = of[0], of[1:]
		if m.directions == 0 {
			features := 28 * 28
			m.uplink = experiment.FedAvgBits(len(c.Task.Classes) * (features + 1))
			m.seconds = setup.Airtime(m.uplink*c.Devices.Count, c.Link.BandwidthHz)
			continue
		}
		m.encrypted, of = of[0], of[1:]
		if m.uplink, m.seconds, err = r.uplinkOf(encrypt(c)); err != nil {
			return err
		}
	}
	return nil
}

// to returns the rounds to a goal of each run, ascending, infinite where it was not reached.
func (m classesResult) to(goal float64) []float64 {
	results := m.plain
	if m.encrypted != nil {
		results = m.encrypted
	}
	var out []float64
	for _, c := range results {
		n := math.Inf(1)
		for k, a := range c.Accuracies {
			if a >= goal {
				n = float64(c.Evaluated[k])
				break
			}
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// apart returns the largest difference of a seed's accuracies with and without encryption.
func (m classesResult) apart() float64 {
	most := 0.0
	for k, c := range m.encrypted {
		most = max(most, math.Abs(c.Accuracy-m.plain[k].Accuracy))
	}
	return most
}

// classesSection writes what came of it.
func (r *reproduction) classesSection(s report.Section, found []classesResult) (report.Section, error) {
	s.Blocks = append(s.Blocks, report.Paragraph(fmt.Sprintf("Softmax regression on all ten digits, d = 7850, by N = 10 devices with batches of 128 at sigma = 1: by scalars along P directions, encrypted (ringwave-4096-100, short form) and not, and by federated averaging of whole models over digital links. Steps are in units of the gradient of the mean loss, gamma = 0.01. They were chosen on a fifth of the training samples that was held out, with seed %d, and measured with %s on the test set. The paper has two classes.", searchSeed, seedsText(r.classesSeeds()))))
	searched := report.Table{Caption: "What was tried, and the accuracy on samples that were held out.", Head: []string{"method", "steps", "rounds", "accuracy", "chosen"}}
	results := report.Table{
		Caption: "Accuracy on the test set after all rounds, and what it takes to get to 80, 85 and 90 %: rounds; forward passes of a device over a batch, of which a gradient counts for three; and time on the air, at one bit a second and hertz over " + fmt.Sprintf("%.4g Hz", config.Default().Link.BandwidthHz) + ", where scalars of all devices are sent at once and models one after the other. Medians over seeds; of scalars encrypted.",
		Head:    []string{"method", "rounds", "accuracy", "encrypted", "a seed's largest difference", "bits a device and round", "to 80 %", "to 85 %", "to 90 %"},
	}
	for _, m := range found {
		for k, steps := range m.tried {
			row := report.Row{Cells: []string{m.name, steps.String(), fmt.Sprint(m.rounds), percent(m.scores[k]), ""}}
			if steps == m.chosen {
				row.Cells[4] = "chosen"
			}
			searched.Rows = append(searched.Rows, row)
		}
		row := report.Row{Cells: []string{m.name, fmt.Sprint(m.rounds), accuracyText(m.plain), "–", "–", fmt.Sprint(m.uplink)}}
		if m.encrypted != nil {
			row.Cells[3], row.Cells[4] = accuracyText(m.encrypted), fmt.Sprintf("%.2f points", 100*m.apart())
			row.Verdict, row.Against = same(m.apart() <= 0.002), report.Control
		}
		for _, goal := range classesGoals() {
			row.Cells = append(row.Cells, m.costText(goal))
		}
		results.Rows = append(results.Rows, row)
	}
	s.Blocks = append(s.Blocks, searched, results)
	f, err := r.classesFigure(found)
	if err != nil {
		return s, err
	}
	s.Blocks = append(s.Blocks, f)
	for _, m := range found {
		if m.encrypted == nil {
			continue
		}
		s.Findings = append(s.Findings, report.Finding{
			What: "ten classes, " + m.name + ", encrypted and not", Paper: "–", Verdict: same(m.apart() <= 0.002),
			Here: fmt.Sprintf("%s and %s", percent(quartilesOf(accuracies(m.encrypted)).median), percent(quartilesOf(accuracies(m.plain)).median)),
		})
	}
	return s, nil
}

// costText says what a goal takes.
func (m classesResult) costText(goal float64) string {
	rounds := rankOf(m.to(goal), 0.5)
	if math.IsInf(rounds, 1) {
		return fmt.Sprintf("not within %d", m.rounds)
	}
	return strings.Join([]string{
		fmt.Sprintf("%.0f rounds", rounds), fmt.Sprintf("%.0f passes", rounds*float64(m.passes())),
		report.Number(1e6*rounds*m.seconds, 3) + " µs",
	}, ", ")
}

// classesFigure draws accuracy against time on the air.
func (r *reproduction) classesFigure(found []classesResult) (report.Figure, error) {
	var lines []chart.Series
	for k, m := range found {
		results, name := m.plain, m.name
		if m.encrypted != nil {
			results, name = m.encrypted, m.name+", encrypted"
		}
		line := chart.Series{Name: name, Color: chart.Blue + chart.Color(k), Style: chart.LinePoints, Dashed: m.encrypted == nil}
		for e, round := range results[0].Evaluated {
			var at []float64
			for _, c := range results {
				if e < len(c.Accuracies) {
					at = append(at, 100*c.Accuracies[e])
				}
			}
			line.X, line.Y = append(line.X, 1e6*m.seconds*float64(round)), append(line.Y, quartilesOf(at).median)
		}
		lines = append(lines, line)
	}
	return r.figure("classes", "Test accuracy on all ten digits against time on the air, median over seeds.",
		chart.Figure{XLabel: "time on the air, µs", YLabel: "test accuracy, %", LogX: true, Series: lines})
}
