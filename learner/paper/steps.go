package paper

import (
	"context"
	"fmt"
	"math"
	"strings"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
)

// stepsGoal is the loss of a round's batches to which rounds are counted.
const stepsGoal = 0.02

// stepsMethod is a way to estimate and to step.
type stepsMethod struct {
	name       string
	directions []int
	set        func(o *config.Optimizer)
	// passes returns the forward passes over its batch that a device needs in a round.
	passes func(directions int) int
}

// stepsMethods returns the paper's differences of two points, and FZOO.
func stepsMethods() []stepsMethod {
	return []stepsMethod{
		{
			name: "two-point", directions: []int{1, 4, 16, 64, 256},
			set:    func(*config.Optimizer) {},
			passes: func(p int) int { return 2 * p },
		},
		{
			name: "FZOO", directions: []int{2, 4, 16, 64, 256},
			set:    func(o *config.Optimizer) { o.Estimator, o.Step = config.OneSided, config.FZOO },
			passes: func(p int) int { return p + 1 },
		},
	}
}

// stepsSpeeds says what is run with P directions: the more there are, the fewer rounds.
func (r *reproduction) stepsSpeeds(directions int) packedSpeeds {
	s := packedSpeeds{
		grid: []float64{0.5, 0.16, 1.6, 0.05, 5, 0.016}, laws: []string{config.Constant, "power"}, rounds: max(60, 4000/directions),
		seeds: 5, tries: 3, firstTry: searchSeed, goal: Cell{GoalLoss: stepsGoal},
	}
	if r.opt.Quick || r.opt.Rounds > 0 {
		s.rounds, s.tries = min(s.rounds, 100), 1
	}
	s.seeds, s.tries = min(s.seeds, r.opt.Seeds), min(s.tries, r.opt.Seeds)
	if r.opt.Rounds > 0 {
		s.rounds = min(s.rounds, r.opt.Rounds)
	}
	return s
}

// stepsMNIST is the paper's MNIST experiment by a method with P directions, without encryption
// and receiver noise.
func stepsMNIST(m stepsMethod, directions int) config.Config {
	c := packedMNIST(1, directions)
	c.Optimizer.TrainLoss, c.Optimizer.EvaluateEvery = "exact", 10_000 // the loss decides
	m.set(&c.Optimizer)
	return c
}

// stepsPoint is what came of a method with P directions.
type stepsPoint struct {
	packedPoint
	method stepsMethod
	limit  int // of the rounds
}

// spread returns lower quartile, median and upper quartile by rank of what the rounds to the
// goal cost, of which one costs so much.
func (p stepsPoint) spread(each float64) (low, median, high float64) {
	rounds := roundsTo(p.encrypted)
	return each * rankOf(rounds, 0.25), each * rankOf(rounds, 0.5), each * rankOf(rounds, 0.75)
}

func (p stepsPoint) passes() float64 { return float64(p.method.passes(p.directions)) }

// steps shows what FZOO saves against differences of two points.
func (r *reproduction) steps(ctx context.Context) (report.Section, error) {
	s := report.Section{Title: "Steps: FZOO against differences of two points"}
	var points []stepsPoint
	var jobs []job
	for _, m := range stepsMethods() {
		for _, p := range m.directions {
			speeds, c := r.stepsSpeeds(p), stepsMNIST(m, p)
			c.Optimizer.Rounds = speeds.rounds
			for range speeds.tries*len(speeds.steps()) + 2*speeds.seeds {
				jobs = append(jobs, job{Cell: Cell{Config: c}})
			}
			points = append(points, stepsPoint{packedPoint{directions: p}, m, speeds.rounds})
		}
	}
	r.begin("steps", jobs, true)
	err := sideBySide(len(points), r.opt.atOnce(), func(k int) (err error) {
		p := &points[k]
		if p.packedPoint, err = r.packedPoint(ctx, r.stepsSpeeds(p.directions), stepsMNIST(p.method, p.directions)); err != nil {
			err = fmt.Errorf("%s, P = %d: %w", p.method.name, p.directions, err)
		}
		return err
	})
	if err != nil {
		return s, err
	}
	s.Blocks = append(s.Blocks, report.Paragraph("FZOO (ICLR 2026) takes P differences of one side, f(theta + gamma Phi_p) - f(theta), of which f(theta) is that of all, and divides the step along their mean by their standard deviation. Here the deviation is that of the P decoded sums of a round, which server and devices know, so that nothing more is sent. Differences of two points cost 2P forward passes a round and FZOO P+1; the uplink of a round is the same. Of two scalars the deviation is their distance by the root of 2: where it is small the step is large, and a decoding error counts. The paper has nothing to compare this with."),
		r.stepsTable(points))
	for _, f := range stepsFigures() {
		figure, err := r.stepsFigure(f, points)
		if err != nil {
			return s, err
		}
		s.Blocks = append(s.Blocks, figure)
	}
	s.Findings = stepsFindings(points)
	return s, nil
}

// stepsTable has a row for each method and P.
func (r *reproduction) stepsTable(points []stepsPoint) report.Table {
	speeds := r.stepsSpeeds(1)
	t := report.Table{
		Caption: fmt.Sprintf("Rounds, forward passes of a device over its batch, and airtime to a loss of %v on MNIST 0 against 1: sigma = 1, batch 128, N = 10, ringwave-4096-100 in its short form over %.0f THz, %s. The last of the first %d rounds in a row in whose batches the loss is that or less counts; rounds are the median and the quartiles by rank, of encrypted runs, and the verdict is whether runs without encryption took as many on every seed. For each method and P the step is the best of eta0 = %v, each constant and by the paper's power laws, by the median of %s of its own without encryption; gamma0 is the paper's. Passes are those that a method needs, without the one of two points that is for the record only.",
			stepsGoal, config.Default().Link.BandwidthHz/1e12, seedsText(speeds.seeds), steadyRounds, gridText(speeds.grid), seedsText(speeds.tries)),
		Head: []string{"method", "P", "eta0", "law", "rounds", "passes a round", "passes", "uplink a round, bits", "airtime a round, µs", "airtime, ms"},
	}
	for _, p := range points {
		_, passes, _ := p.spread(p.passes())
		t.Rows = append(t.Rows, report.Row{
			Cells: []string{
				p.method.name, fmt.Sprint(p.directions), fmt.Sprint(p.eta0), p.law, roundsText(p.encrypted, p.limit), fmt.Sprint(p.passes()), countOrNone(passes),
				fmt.Sprint(p.uplink), fmt.Sprintf("%.4f", 1e6*p.seconds), airtimeText(p.packedPoint),
			},
			Verdict: sameRounds(p.packedPoint), Against: report.Control,
		})
	}
	return t
}

// countOrNone writes a count, and a dash for one that is infinite.
func countOrNone(x float64) string {
	if math.IsInf(x, 1) {
		return "–"
	}
	return fmt.Sprint(x)
}

// stepsCost is what a figure shows against P.
type stepsCost struct {
	name, what, label string
	each              func(p stepsPoint) float64 // of a round
}

func stepsFigures() []stepsCost {
	return []stepsCost{
		{"steps-rounds", "Rounds", "rounds", func(stepsPoint) float64 { return 1 }},
		{"steps-passes", "Forward passes of a device", "passes over the batch", stepsPoint.passes},
		{"steps-airtime", "Airtime", "airtime, µs", func(p stepsPoint) float64 { return 1e6 * p.seconds }},
	}
}

// stepsFigure draws a cost against P, median and quartiles.
func (r *reproduction) stepsFigure(f stepsCost, points []stepsPoint) (report.Figure, error) {
	var series []chart.Series
	for k, m := range stepsMethods() {
		line := chart.Series{Name: m.name, Style: chart.LinePoints, Color: chart.Blue + chart.Color(k)}
		band := chart.Series{Style: chart.Band, Color: line.Color}
		for _, p := range points {
			if p.method.name != m.name {
				continue
			}
			low, median, high := p.spread(f.each(p))
			x := float64(p.directions)
			line.X, line.Y = append(line.X, x), append(line.Y, median)
			band.X, band.YLow, band.YHigh = append(band.X, x), append(band.YLow, low), append(band.YHigh, high)
		}
		series = append(series, band, line)
	}
	return r.figure(f.name, fmt.Sprintf("%s to a loss of %v on MNIST against the directions P of a round: encrypted, median and quartiles over seeds. What was not reached has no point.", f.what, stepsGoal),
		chart.Figure{XLabel: "directions P", YLabel: f.label, LogX: true, LogY: true, Series: series})
}

// stepsFindings name the least passes and airtime of each method.
func stepsFindings(points []stepsPoint) []report.Finding {
	var out []report.Finding
	for _, f := range stepsFigures() {
		var texts []string
		for _, m := range stepsMethods() {
			texts = append(texts, m.name+" "+leastCost(f, m, points))
		}
		out = append(out, report.Finding{What: fmt.Sprintf("least %s to a loss of %v", f.label, stepsGoal), Paper: "–", Here: strings.Join(texts, "; ")})
	}
	return out
}

// leastCost writes what a method costs at the P at which it costs least, in the median.
func leastCost(f stepsCost, m stepsMethod, points []stepsPoint) string {
	best, directions := math.Inf(1), 0
	for _, p := range points {
		if _, median, _ := p.spread(f.each(p)); p.method.name == m.name && median < best {
			best, directions = median, p.directions
		}
	}
	if directions == 0 {
		return "not reached"
	}
	return fmt.Sprintf("%s (P = %d)", report.Number(best, 3), directions)
}
