package paper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ringwave/learner/dataset"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
	"ringwave/learner/theory"
	"ringwave/radio/intake"
)

// paperCIFAR is the CIFAR-10 experiment of Section VI at the settings that it states,
// setup B: that of hw-configs/cifar10-lenet.toml.
func paperCIFAR() config.Config {
	c := config.Default()
	c.Task.Dataset, c.Task.Model = "cifar10", "lenet"
	o := &c.Optimizer
	o.Rounds, o.Eta0, o.Gamma0, o.TrainLoss = 7500, 0.005, 0.01, "pairs"
	o.EvaluateEvery, o.CheckpointEvery = 50, 50
	c.Encryption.ParameterSet, c.Encryption.Form = "paper-4096", "whole"
	c.Channel.Std = 10
	return c
}

// The accuracies on CIFAR-10 in Table III, all at sigma = 10.
const (
	cifarPaperA     = 0.8020 // (8192, 218)
	cifarPaperB     = 0.8015 // (4096, 109)
	cifarPaperPlain = 0.8170 // no encryption
)

// cifarGoal is what counts as learnt.
const cifarGoal = 0.80

// cifarSetting is a way to train LeNet on CIFAR-10.
type cifarSetting struct {
	name               string
	loss               string // mean or sum
	sigma              float64
	eta0, etaPower     float64
	gamma0, gammaPower float64
	batch, rounds      int
	packed             int     // directions of a round
	clip               float64 // of a device's scalar; 0 for none
	set, form          string
	// seeds is the most seeds that it is run with; 0 for as many as are asked for.
	seeds int
}

// cifarStated are the paper's steps. The first is the paper's experiment, as far as it
// says.
func cifarStated() []cifarSetting {
	var out []cifarSetting
	for _, sigma := range []float64{10, 1} {
		for _, loss := range []string{"mean", "sum"} {
			seeds := 0
			if sigma != 10 {
				seeds = 1 // of which the paper says nothing
			}
			out = append(out, cifarSetting{
				name: "stated steps", loss: loss, sigma: sigma,
				eta0: 0.005, etaPower: 0.5, gamma0: 0.01, gammaPower: 0.25,
				batch: 128, rounds: 7500, packed: 1, set: "paper-4096", form: "whole",
				seeds: seeds,
			})
		}
	}
	return out
}

// cifarDivided are the stated steps with the estimate divided by 2 gamma_k N, which
// makes it one of the gradient of the mean loss: eta_k/(2 gamma_k N) as the step of the
// paper's own estimate. Without fading it shows what those steps were meant to do, if
// they were.
func cifarDivided() cifarSetting {
	s := cifarStated()[0]
	s.name, s.sigma, s.seeds = "stated steps, divided by 2 gamma_k N", 0, 1
	s.eta0 /= 2 * s.gamma0 * float64(paperCIFAR().Devices.Count)
	s.etaPower -= s.gammaPower
	return s
}

// cifarLearns are settings that learn, the first of them those of
// hw-configs/cifar10-learns.toml: of what cifarTried has, those that searchCommand chooses
// with one seed by images held out of the training set. Its report says of each whether
// that is still so.
func cifarLearns() []cifarSetting {
	few := cifarSetting{
		loss: "mean", etaPower: 0, gamma0: 0.01, gammaPower: 0, batch: 64, packed: 1,
		set: "paper-4096", form: "short",
	}
	calm, wild, packed := few, few, few
	calm.name, calm.sigma, calm.eta0, calm.rounds = "constant steps", 1, 0.005, 4000
	wild.name, wild.sigma, wild.eta0, wild.rounds, wild.clip = "constant steps", 10, 0.0005, 7500, 0.1
	packed.name, packed.sigma, packed.eta0, packed.rounds, packed.clip = "16 packed directions", 10, 0.005, 1000, 0.1
	packed.packed, packed.batch = 16, 32
	return []cifarSetting{calm, wild, packed}
}

// cifarQuickRounds is how many rounds the quick form has, packed ones counting for all
// their directions at a batch of 128.
const cifarQuickRounds = 45

// quickened is a setting cut for the quick form: each run costs about the same.
func (s cifarSetting) quickened() cifarSetting {
	s.rounds = min(s.rounds, max(15, cifarQuickRounds*128/(s.batch*s.packed)))
	return s
}

// evaluateEvery returns the rounds from one look at the test set to the next.
func (s cifarSetting) evaluateEvery(quick bool) int {
	points := 75
	if quick {
		points = 15
	}
	return max(1, s.rounds/points)
}

// controlRounds is after how many rounds an encrypted run may end that is there to be
// compared with the unencrypted one: a multiple of evaluateEvery.
func (s cifarSetting) controlRounds(quick bool) int {
	every := s.evaluateEvery(quick)
	return max(1, s.rounds*2/15/every) * every
}

// steps writes the laws.
func (s cifarSetting) steps() string {
	text := fmt.Sprintf("eta = %v (1+k)^-%v, gamma = %v (1+k)^-%v, batch %d, K = %d", s.eta0, s.etaPower, s.gamma0, s.gammaPower, s.batch, s.rounds)
	if s.packed > 1 {
		text += fmt.Sprintf(", P = %d", s.packed)
	}
	if s.clip > 0 {
		text += fmt.Sprintf(", scalars cut to +-%v", s.clip)
	}
	return text
}

// title names a setting in a table.
func (s cifarSetting) title() string {
	return fmt.Sprintf("%s, loss as batch %s: %s", s.name, s.loss, s.steps())
}

// configure returns the setting's configuration, encrypted.
func (s cifarSetting) configure(quick bool) config.Config {
	c := paperCIFAR()
	c.Task.Loss, c.Channel.Std = s.loss, s.sigma
	o := &c.Optimizer
	o.Rounds, o.BatchSize, o.PackedDirections, o.EvaluateEvery = s.rounds, s.batch, s.packed, s.evaluateEvery(quick)
	o.Eta0, o.EtaPower, o.Gamma0, o.GammaPower, o.Clip = s.eta0, s.etaPower, s.gamma0, s.gammaPower, s.clip
	c.Encryption.ParameterSet, c.Encryption.Form = s.set, s.form
	if s.loss == "sum" {
		c.Encryption.DeltaMax *= float64(s.batch) // nothing is clipped that is not with the mean
	}
	return c
}

// plain is a configuration without encryption, on the same gains, with the receiver
// noise sigma_n.
func plain(c config.Config, noise float64) config.Config {
	c.Experiment.Aggregator, c.Channel.AnalogNoiseStd = config.Plain, noise
	return c
}

// perSample is by what a loss is divided to be that of one sample.
func (s cifarSetting) perSample() float64 {
	if s.loss == "sum" {
		return float64(s.batch)
	}
	return 1
}

// cifarRun is a setting with what came of it.
type cifarRun struct {
	cifarSetting
	seeds int
	// full is K where nothing was cut.
	full int
	data dataInUse
	// plain are the runs without encryption, sigma_n = 0; noisy those with sigma_n = 1,
	// where there are any. Encrypted are the whole runs; control has encrypted first
	// rounds, to be compared, where there are no whole ones.
	plain, noisy, encrypted, control []cellResult
}

// runCIFAR runs all settings. At the stated steps the paper's own experiment is
// encrypted throughout with the first seed; the others are encrypted for their first
// rounds.
func (r *reproduction) runCIFAR(ctx context.Context) (stated, learns []cifarRun, divided cifarRun, err error) {
	settings := slices.Concat(cifarStated(), cifarLearns(), []cifarSetting{cifarDivided()})
	data, err := r.dataOf(paperCIFAR())
	if err != nil {
		return nil, nil, divided, err
	}
	few, last := len(cifarStated()), len(settings)-1
	runs := make([]cifarRun, len(settings))
	var list []series
	var to []*[]cellResult
	add := func(c config.Config, seeds int, results *[]cellResult) {
		list = append(list, series{fmt.Sprintf("CIFAR-10, sigma = %v, eta0 = %v", c.Channel.Std, c.Optimizer.Eta0), c, seeds})
		to = append(to, results)
	}
	for k, s := range settings {
		run := &runs[k]
		run.cifarSetting, run.full, run.seeds, run.data = s, s.rounds, r.opt.CIFARSeeds, data
		if r.opt.Quick {
			run.cifarSetting = s.quickened()
		}
		if s.seeds > 0 {
			run.seeds = min(run.seeds, s.seeds)
		}
		c := run.configure(r.opt.Quick)
		add(plain(c, 0), run.seeds, &run.plain)
		switch {
		case k == 0:
			add(plain(c, 1), 1, &run.noisy)
			add(c, 1, &run.encrypted)
		case k < few:
			c.Optimizer.Rounds = run.controlRounds(r.opt.Quick)
			add(c, 1, &run.control)
		case k < last:
			add(c, run.seeds, &run.encrypted)
		}
	}
	r.begin("cifar", jobsOf(list), false)
	found, err := r.all(ctx, list)
	if err != nil {
		return nil, nil, divided, err
	}
	for k, results := range found {
		*to[k] = results
	}
	return runs[:few], runs[few:last], runs[last], nil
}

// cut reports whether runs have fewer rounds than the setting has, so that their figures
// are of no use.
func (run cifarRun) cut(results []cellResult) bool {
	verdict, _ := unjudged(results, run.full, run.data)
	return verdict != report.None
}

// accuracyText writes accuracies, and a dash for those of runs that were cut short.
func (run cifarRun) accuracyText(results []cellResult) string {
	if run.cut(results) {
		return "–"
	}
	return accuracyText(results)
}

// cifar makes Fig. 3 and the CIFAR-10 column of Table III.
func (r *reproduction) cifar(ctx context.Context) (report.Section, error) {
	s := report.Section{Title: "CIFAR-10 0 against 1, LeNet: Fig. 3 and Table III"}
	missing, err := r.cifarAbsent()
	if err != nil {
		return s, err
	}
	if missing {
		return cifarMissing(s), nil
	}
	stated, learns, divided, err := r.runCIFAR(ctx)
	if err != nil {
		return s, err
	}
	s.Findings = cifarFindings(stated[0], learns)
	s.Blocks = append(s.Blocks, report.Paragraph(cifarLead(stated)), cifarTable3(stated),
		report.Paragraph(stepsReading), stepsTable(divided))
	if err := r.cifarFigures(&s, stated, "fig3", "Fig. 3, the stated steps"); err != nil {
		return s, err
	}
	s.Blocks = append(s.Blocks,
		report.Paragraph("Settings that learn: the steps below were found by hand, by the test accuracy of a seed or two, which flatters them; \""+searchCommand+"\" chooses by training images alone, and says what was tried and whether it chooses these. The model, the data, N = 10 and the channel are the paper's. Encrypted and unencrypted runs meet the same gains, batches and directions."),
		cifarLearnsTable(learns))
	if err := r.cifarFigures(&s, learns, "fig3-learns", "Settings that learn"); err != nil {
		return s, err
	}
	s.Blocks = append(s.Blocks, cifarPairs(slices.Concat(stated, learns)))
	return s, nil
}

// cifarAbsent reports whether the data are not on the machine.
func (r *reproduction) cifarAbsent() (bool, error) {
	return r.absent(func(roots []string) error {
		_, err := dataset.FindCIFAR10(roots)
		return err
	})
}

// absent reports whether a data set is not on this machine.
func (r *reproduction) absent(find func(roots []string) error) (bool, error) {
	roots, _ := experiment.DataRoots(r.opt.Data)
	err := find(roots)
	var missing *dataset.MissingError
	if errors.As(err, &missing) {
		return true, nil
	}
	return false, intake.UserError(err)
}

// cifarFetch says how to get the data.
const cifarFetch = "CIFAR-10 was not found, and no experiment on it was run. Get it with \"ringwave data fetch cifar10\", or point --data or RINGWAVE_DATA at a folder that has its six binary files, in itself or in cifar10/; then run reproduce again with the same --out: only this chapter is then computed."

// cifarMissing is the section where the data are not on the machine.
func cifarMissing(s report.Section) report.Section {
	t := report.Table{Caption: "Table III, CIFAR-10, sigma = 10.", Head: []string{"system", "paper", "here"}}
	for _, row := range []struct {
		name  string
		paper float64
	}{{"A: (8192, 218)", cifarPaperA}, {"B: (4096, 109)", cifarPaperB}, {noisySystem, cifarPaperPlain}} {
		t.Rows = append(t.Rows, report.Row{Cells: []string{row.name, percent(row.paper), "–"}, Verdict: report.Missing, Against: report.PaperValue, Why: "CIFAR-10 is not on this machine"})
	}
	s.Blocks = append(s.Blocks,
		report.Paragraph(cifarFetch),
		t)
	s.Findings = []report.Finding{{What: "test accuracy, sigma = 10", Paper: percent(cifarPaperB), Here: "CIFAR-10 is not on this machine", Verdict: report.Missing}}
	return s
}

// cifarLead says what the stated steps give.
func cifarLead(stated []cifarRun) string {
	paper := stated[0]
	spread := quartilesOf(accuracies(paper.plain))
	steps := fmt.Sprintf("At the steps that the paper states (%s; sigma = 10, loss as batch mean)", cifarStated()[0].steps())
	text := fmt.Sprintf("%s the test accuracy is %s, where the paper has %s; guessing gives 50 %%.", steps, accuracyText(paper.plain), percent(cifarPaperB))
	switch {
	case paper.cut(paper.plain):
		text = fmt.Sprintf("%s the paper has %s. The runs here are cut short, to %d of %d rounds: no accuracy is given of them, as they say nothing of the whole.", steps, percent(cifarPaperB), paper.plain[0].rounds(), paper.full)
	case spread.median < cifarGoal-0.05:
		text += " At its stated steps the paper's number does not come out."
	}
	text += fmt.Sprintf(" The paper gives neither the batch size, for which that of its MNIST experiment stands here, nor whether a device's loss is the mean or the sum over its batch: a sum makes Delta f %d times larger, and is given beside it.", paper.batch)
	return text + fmt.Sprintf(" Without encryption and receiver noise %s run. The paper's experiment is encrypted throughout with the first seed, the others for their first rounds: the last table of this section compares them with the unencrypted ones.", wereRun(paper.seeds))
}

func wereRun(seeds int) string {
	if seeds == 1 {
		return "one seed was"
	}
	return fmt.Sprintf("%d seeds were", seeds)
}

// cifarTable3 is the CIFAR-10 column of Table III.
func cifarTable3(stated []cifarRun) report.Table {
	paper := stated[0]
	t := report.Table{
		Caption: "Table III, CIFAR-10: test accuracy at the stated steps, median and quartiles where there are several seeds. The paper has sigma = 10 alone, and does not say which loss.",
		Head:    []string{"system", "loss", "sigma", "seeds", "rounds", "paper", "here", "final training loss"},
		Rows: []report.Row{
			{Cells: []string{"A: (8192, 218)", "mean", "10", "0", "0", percent(cifarPaperA), "–", "–"}, Verdict: report.Missing, Against: report.PaperValue,
				Why: "not run on CIFAR-10: the sets differ in the decoded noise, by which the chapter on MNIST compares them"},
			paper.row("B: (4096, 109)", paper.encrypted, cifarPaperB),
			paper.row(noisySystem, paper.noisy, cifarPaperPlain),
		},
	}
	for _, run := range stated {
		against := 0.0
		if run.sigma == 10 {
			against = cifarPaperB
		}
		t.Rows = append(t.Rows, run.row(plainSystem, run.plain, against))
	}
	return t
}

// row compares with the paper's value, if that is not 0.
func (run cifarRun) row(name string, results []cellResult, paper float64) report.Row {
	rounds, losses := 0, []float64(nil)
	for _, c := range results {
		rounds = max(rounds, c.rounds())
		losses = append(losses, float64(c.Final)/run.perSample())
	}
	row := report.Row{Cells: []string{name, run.loss, fmt.Sprint(run.sigma), fmt.Sprint(len(results)), fmt.Sprint(rounds), "–", run.accuracyText(results), "–"}}
	if !run.cut(results) {
		row.Cells[7] = report.Number(quartilesOf(losses).median, 3)
	}
	if paper > 0 {
		row.Cells[5], row.Against = percent(paper), report.PaperValue
		_, row.Verdict, row.Why = judgedAccuracy(results, run.full, paper, run.data)
	}
	return row
}

// cifarLearnsTable compares the settings that learn with the paper's value and with the
// goal.
func cifarLearnsTable(learns []cifarRun) report.Table {
	t := report.Table{
		Caption: fmt.Sprintf("Settings that learn: test accuracy at the end, median and quartiles where there are several seeds; %.0f %% in the median is wanted.", 100*cifarGoal),
		Head:    []string{"setting", "sigma", "seeds", "encrypted", "no encryption", "80 %", "paper"},
	}
	for _, run := range learns {
		row := report.Row{Cells: []string{run.title(), fmt.Sprint(run.sigma), fmt.Sprint(len(run.encrypted)), run.accuracyText(run.encrypted), run.accuracyText(run.plain), "–", "–"}}
		if !run.cut(run.encrypted) {
			row.Cells[5] = goalText(quartilesOf(accuracies(run.encrypted)).median)
		}
		if run.sigma == 10 {
			row.Cells[6], row.Against = percent(cifarPaperB), report.PaperValue
			_, row.Verdict, row.Why = judgedAccuracy(run.encrypted, run.full, cifarPaperB, run.data)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// stepsReading says what stepsTable shows.
const stepsReading = "Why the stated steps cannot learn: in the mean a round moves the model by 2 b_1 N eta_k gamma_k times the gradient of the devices' mean loss (Lemma 1, b_1 = 1 and F = N times that loss), so that the sum over all rounds is for how long gradient descent goes on. To get anywhere with a network it takes the order of 1. Dividing the estimate by 2 gamma_k N, as estimators of the gradient have it and the paper's does not, makes that sum the one of eta_k."

// stepsTable computes how far the paper's steps go, and what they give when they are
// those of an estimate of the gradient.
func stepsTable(divided cifarRun) report.Table {
	t := report.Table{
		Caption: "How long gradient descent on the mean loss goes on: sum over k = 1..K of 2 N eta_k gamma_k. The last row is a run without fading, encryption and receiver noise, and can be repeated by: ringwave run hw-configs/cifar10-lenet.toml " + divided.overrides() + ".",
		Head:    []string{"experiment", "eta_k", "gamma_k", "K", "sum of 2 N eta_k gamma_k", "seeds", "test accuracy"},
	}
	for _, e := range []struct {
		name string
		cfg  config.Config
	}{{"MNIST, stated steps", paperMNIST()}, {"CIFAR-10, stated steps", paperCIFAR()}} {
		t.Rows = append(t.Rows, report.Row{Cells: append(stepsCells(e.name, e.cfg), "–", "–")})
	}
	c := divided.cifarSetting
	c.rounds = divided.full
	cells := append(stepsCells("CIFAR-10, "+divided.name+", sigma = 0", c.configure(false)), fmt.Sprint(len(divided.plain)), divided.accuracyText(divided.plain))
	row := report.Row{Cells: cells}
	if _, why := unjudged(divided.plain, divided.full, divided.data); why != "" {
		row.Why = why
	}
	t.Rows = append(t.Rows, row)
	return t
}

// stepsCells writes a law and its sum.
func stepsCells(name string, c config.Config) []string {
	o := c.Optimizer
	eta, gamma := experiment.StepLaws(o)
	return []string{
		name, fmt.Sprintf("%v (1+k)^-%v", o.Eta0, o.EtaPower), fmt.Sprintf("%v (1+k)^-%v", o.Gamma0, o.GammaPower), fmt.Sprint(o.Rounds),
		report.Number(theory.DescentTime(eta, gamma, 1, c.Devices.Count, o.Rounds), 2),
	}
}

// overrides writes what of the configuration a setting without encryption changes.
func (s cifarSetting) overrides() string {
	return fmt.Sprintf("--set optimizer.eta0=%v --set optimizer.eta_power=%v --set channel.std=%v --set experiment.aggregator=%s --set channel.analog_noise_std=0", s.eta0, s.etaPower, s.sigma, config.Plain)
}

func goalText(median float64) string {
	if median >= cifarGoal {
		return "reached"
	}
	return fmt.Sprintf("missed by %.1f points", 100*(cifarGoal-median))
}

// pairTolerance is by how much encrypted and unencrypted runs may differ.
const pairTolerance = 0.002

// cifarPairs compares encrypted with unencrypted runs.
func cifarPairs(runs []cifarRun) report.Table {
	t := report.Table{
		Caption: "Encrypted against unencrypted without receiver noise, on the same gains, batches and directions, after as many rounds as were run encrypted. The difference of loss is the largest of the training loss in any round, in parts of that loss; clipped are messages beyond delta_max, of the encrypted runs.",
		Head:    []string{"setting", "sigma", "seeds", "rounds", "difference of accuracy, points", "of loss", "clipped"},
	}
	for _, run := range runs {
		t.Rows = append(t.Rows, run.pairs())
	}
	return t
}

// pairs compares a setting's runs. What differs is explained by what was counted, and
// by nothing else.
func (run cifarRun) pairs() report.Row {
	encrypted := slices.Concat(run.encrypted, run.control)
	accuracy, loss, rounds, clipped, parted := 0.0, 0.0, 0, 0, 0
	for k, e := range encrypted {
		p := run.plain[k]
		rounds, clipped = max(rounds, e.rounds()), clipped+e.Clipped
		if run.clip > 0 {
			clipped -= p.Clipped // which the setting's own bound has cut in both
		}
		loss = math.Max(loss, lossDifference(e, p))
		if after, ok := atSameRound(e, p); ok {
			accuracy = math.Max(accuracy, math.Abs(e.Accuracy-after))
		} else {
			parted++
		}
	}
	clipped = max(clipped, 0) // the two part by rounding, and the bound cuts a few others
	row := report.Row{
		Cells:   []string{run.title(), fmt.Sprint(run.sigma), fmt.Sprint(len(encrypted)), fmt.Sprint(rounds), fmt.Sprintf("%.2f", 100*accuracy), report.Number(loss, 2), fmt.Sprint(clipped)},
		Verdict: same(accuracy < pairTolerance && parted == 0), Against: report.Control,
	}
	if row.Verdict == report.Same {
		return row
	}
	var why []string
	if parted > 0 {
		why = append(why, fmt.Sprintf("%s diverged, and in other rounds than encrypted", count(parted, "unencrypted run")))
	}
	if accuracy >= pairTolerance {
		why = append(why, "0.2 points or more")
	}
	if clipped > 0 {
		why = append(why, "messages were clipped, which unencrypted ones are not")
	}
	row.Why = strings.Join(why, "; ")
	return row
}

// count writes a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// atSameRound returns the accuracy of a run after as many rounds as another has, if it got
// there.
func atSameRound(short, long cellResult) (float64, bool) {
	if short.rounds() == long.rounds() {
		return long.Accuracy, true
	}
	accuracy := long.accuracyAfter(short.rounds())
	return accuracy, !math.IsNaN(accuracy)
}

// lossDifference returns the largest relative difference of two runs' losses.
func lossDifference(a, b cellResult) float64 {
	worst := 0.0
	for k := range min(len(a.Loss), len(b.Loss)) {
		x, y := float64(a.Loss[k]), float64(b.Loss[k])
		if scale := math.Max(math.Abs(x), math.Abs(y)); scale > 0 {
			worst = math.Max(worst, math.Abs(x-y)/scale)
		}
	}
	return worst
}

// cifarFindings are the section's lines of the summary.
func cifarFindings(paper cifarRun, learns []cifarRun) []report.Finding {
	finding := func(run cifarRun, what string, results []cellResult, value float64) report.Finding {
		f := report.Finding{What: what, Paper: "–", Here: run.accuracyText(results)}
		if value > 0 {
			f.Paper = percent(value)
			_, f.Verdict, _ = judgedAccuracy(results, run.full, value, run.data)
		}
		return f
	}
	out := []report.Finding{
		finding(paper, "(4096, 109), sigma = 10, stated steps", paper.encrypted, cifarPaperB),
		finding(paper, "no encryption, sigma_n = 1, sigma = 10, stated steps", paper.noisy, cifarPaperPlain),
		finding(paper, "no encryption, sigma_n = 0, sigma = 10, stated steps", paper.plain, cifarPaperB),
	}
	for _, run := range learns {
		against := 0.0
		if run.sigma == 10 {
			against = cifarPaperB
		}
		out = append(out, finding(run, fmt.Sprintf("encrypted, sigma = %v, %s", run.sigma, run.name), run.encrypted, against))
	}
	return out
}
