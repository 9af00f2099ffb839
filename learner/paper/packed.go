package paper

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/setup"
)

// packedGoal is the test accuracy to which rounds are counted.
const packedGoal = 0.99

// packedSpeeds says what of the packed experiment is run.
type packedSpeeds struct {
	directions []int
	// grid are the values of eta0 that are tried, from the likeliest on, each with these laws.
	grid   []float64
	laws   []string
	rounds int // K, after which an accuracy or loss counts as not reached
	seeds  int
	// The grid is tried with so many seeds from a first one on.
	tries, firstTry int
	// goal is what rounds are counted to.
	goal Cell
}

func (r *reproduction) packedSpeeds() packedSpeeds {
	p := packedSpeeds{directions: []int{1, 4, 16, 64}, grid: []float64{0.16, 0.5, 0.05, 1.6, 0.016, 5}, rounds: 1000, seeds: 5}
	if r.opt.Quick || r.opt.Rounds > 0 {
		p.grid, p.rounds, p.seeds = p.grid[:3], 100, 3
	}
	p.seeds = min(p.seeds, r.opt.Seeds)
	if r.opt.Rounds > 0 {
		p.rounds = min(p.rounds, r.opt.Rounds)
	}
	p.laws, p.tries, p.firstTry, p.goal = []string{"power"}, p.seeds, 1, Cell{Goal: packedGoal}
	return p
}

// gridStep is one that is tried.
type gridStep struct {
	eta0 float64
	law  string
}

// steps returns all that are tried, from the likeliest on.
func (s packedSpeeds) steps() (all []gridStep) {
	for _, eta0 := range s.grid {
		for _, law := range s.laws {
			all = append(all, gridStep{eta0, law})
		}
	}
	return all
}

// merit tells runs that have not got to the goal apart: by their accuracy or, where the goal is
// a loss, by how small that is.
func (s packedSpeeds) merit(results []cellResult) float64 {
	if s.goal.GoalLoss == 0 {
		return quartilesOf(accuracies(results)).median
	}
	largest := 0.0 // of the final losses
	for _, c := range results {
		if c.Diverged {
			return math.Inf(-1)
		}
		largest = max(largest, float64(c.Final))
	}
	return -largest
}

// packedMNIST is the paper's MNIST experiment with P directions a round, without
// encryption and receiver noise.
func packedMNIST(sigma float64, directions int) config.Config {
	c := plain(paperMNIST(), 0)
	c.Channel.Std = sigma
	c.Optimizer.PackedDirections, c.Optimizer.TrainLoss, c.Optimizer.EvaluateEvery = directions, "pairs", 1
	return c
}

// packedPoint is what came of one P at one sigma, and of one method.
type packedPoint struct {
	sigma            float64
	directions       int
	eta0             float64 // the best of the grid, with its law
	law              string
	plain, encrypted []cellResult
	uplink           int     // bits a device and round
	seconds          float64 // airtime of a round
}

// rounds returns the median number of rounds to the goal: infinite where half of the
// seeds did not get there.
func (p packedPoint) rounds() float64 { return rankOf(roundsTo(p.encrypted), 0.5) }

// airtime returns the seconds on the air to the goal.
func (p packedPoint) airtime() float64 { return p.rounds() * p.seconds }

// roundsTo returns the rounds to the goal, in ascending order, infinite where it was not
// reached.
func roundsTo(results []cellResult) []float64 {
	var out []float64
	for _, c := range results {
		n := math.Inf(1)
		if c.Reached > 0 {
			n = float64(c.Reached)
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// rankOf returns the ascending value at a share of the ranks, the later one between two: no
// mean of them, as one may be infinite, and no better than what half of the seeds got.
func rankOf(ascending []float64, share float64) float64 {
	if len(ascending) == 0 {
		return math.NaN()
	}
	return ascending[min(len(ascending)-1, int(share*float64(len(ascending))))]
}

// packed shows what P scalars a round save.
func (r *reproduction) packed(ctx context.Context) (report.Section, error) {
	s := report.Section{Title: "Packed directions: rounds and airtime against P"}
	speeds := r.packedSpeeds()
	var jobs []job
	for _, sigma := range []float64{1, 10} {
		for _, directions := range speeds.directions {
			c := packedMNIST(sigma, directions)
			c.Optimizer.Rounds = speeds.rounds
			jobs = append(jobs, slices.Repeat([]job{{Cell: Cell{Config: c, Goal: packedGoal}}}, speeds.seeds*(len(speeds.grid)+2))...)
		}
	}
	r.begin("packed", jobs, true)
	var points []packedPoint
	for _, sigma := range []float64{1, 10} {
		for _, directions := range speeds.directions {
			points = append(points, packedPoint{sigma: sigma, directions: directions})
		}
	}
	err := sideBySide(len(points), r.opt.atOnce(), func(k int) (err error) {
		p := &points[k]
		if *p, err = r.packedPoint(ctx, speeds, packedMNIST(p.sigma, p.directions)); err != nil {
			err = fmt.Errorf("sigma = %v, P = %d: %w", p.sigma, p.directions, err)
		}
		return err
	})
	if err != nil {
		return s, err
	}
	s.Blocks = append(s.Blocks, report.Paragraph("A ciphertext has n coefficients, and the paper uses one of them. Here P scalars, for P directions of the same round, travel in P coefficients under the same gains, and the step is along the mean of the P estimates. The part of the estimate's variance that comes from the directions falls as 1/P; the error of the gains h_i/mu_i is common to all directions of a round and stays, so that beyond some P more of them bring nothing. The paper has nothing to compare this with."),
		packedTable(points, speeds))
	f, err := r.packedFigure(points)
	if err != nil {
		return s, err
	}
	s.Blocks = append(s.Blocks, f)
	s.Findings = packedFindings(points)
	return s, nil
}

// packedPoint finds the best step of the grid without encryption, and runs that one
// with and without it.
func (r *reproduction) packedPoint(ctx context.Context, speeds packedSpeeds, c config.Config) (packedPoint, error) {
	p := packedPoint{sigma: c.Channel.Std, directions: c.Optimizer.PackedDirections, eta0: speeds.grid[0], law: speeds.laws[0]}
	best, merit := math.Inf(1), math.Inf(-1)
	for _, step := range speeds.steps() {
		c.Optimizer.Eta0, c.Optimizer.StepLaw, c.Optimizer.Rounds = step.eta0, step.law, speeds.rounds
		if !math.IsInf(best, 1) {
			c.Optimizer.Rounds = int(best) // who needs more is no better
		}
		results, median, err := r.hopeful(ctx, c, speeds)
		if err != nil {
			return p, err
		}
		end := speeds.merit(results)
		if median < best || math.IsInf(best, 1) && end > merit {
			best, merit, p.eta0, p.law = median, end, step.eta0, step.law
		}
	}
	c.Optimizer.Eta0, c.Optimizer.StepLaw, c.Optimizer.Rounds = p.eta0, p.law, speeds.rounds
	encrypted := c
	encrypted.Experiment.Aggregator, encrypted.Encryption.ParameterSet, encrypted.Encryption.Form = config.XMKCKKS, "ringwave-4096-100", "short"
	both, err := r.until(ctx, speeds, c, encrypted)
	if err != nil {
		return p, err
	}
	p.plain, p.encrypted = both[0], both[1]
	p.uplink, p.seconds, err = r.uplinkOf(encrypted)
	return p, err
}

// until runs configurations with the seeds from 1 on, each until the goal.
func (r *reproduction) until(ctx context.Context, speeds packedSpeeds, of ...config.Config) ([][]cellResult, error) {
	var list []series
	for _, c := range of {
		list = append(list, series{fmt.Sprintf("to the goal, %s", c.Experiment.Aggregator), c, speeds.seeds})
	}
	jobs := jobsOf(list)
	for k := range jobs {
		jobs[k].Goal, jobs[k].GoalLoss = speeds.goal.Goal, speeds.goal.GoalLoss
	}
	results, err := r.cells(ctx, jobs)
	return ofSeries(list, results), err
}

// hopeful is until with the seeds of the grid, given up, with an infinite median, once half of
// them can no longer get to the goal.
func (r *reproduction) hopeful(ctx context.Context, c config.Config, speeds packedSpeeds) ([]cellResult, float64, error) {
	var out []cellResult
	n := speeds.tries
	for failed := 0; len(out) < n; {
		c.Experiment.Seed = int64(speeds.firstTry + len(out))
		res, err := r.cell(ctx, job{Cell: Cell{Config: c, Goal: speeds.goal.Goal, GoalLoss: speeds.goal.GoalLoss}})
		if err != nil {
			return out, 0, err
		}
		out = append(out, res)
		if res.Reached == 0 {
			failed++
		}
		if n-failed <= n/2 {
			return out, math.Inf(1), nil
		}
	}
	return out, rankOf(roundsTo(out), 0.5), nil
}

// uplinkOf returns the bits that a device sends in a round, and the seconds that they
// take: what plan prints.
func (r *reproduction) uplinkOf(c config.Config) (bits int, seconds float64, err error) {
	s, err := r.lab().New(r.shortened(c))
	if err != nil {
		return 0, 0, err
	}
	bits = s.Design.UplinkBits()
	return bits, setup.Airtime(bits, c.Link.BandwidthHz), s.Close()
}

// packedTable has a row for each P and sigma.
func packedTable(points []packedPoint, speeds packedSpeeds) report.Table {
	t := report.Table{
		Caption: fmt.Sprintf("Rounds and airtime to %.0f %% test accuracy on MNIST 0 against 1: batch 128, N = 10, ringwave-4096-100 in its short form over %.0f THz, %s, K = %d. Rounds are the median and the quartiles by rank; the accuracy is looked at after every round, and the first time that it is there counts. eta0 is the best of %s, chosen without encryption on the same seeds; gamma0 and the powers are the paper's. The same means: with and without encryption every seed took as many rounds.",
			100*packedGoal, config.Default().Link.BandwidthHz/1e12, seedsText(speeds.seeds), speeds.rounds, gridText(speeds.grid)),
		Head: []string{"sigma", "P", "eta0", "rounds, no encryption", "rounds, encrypted", "uplink a round, bits", "airtime a round, µs", "airtime, ms", "against P = 1"},
	}
	var one packedPoint
	for _, p := range points {
		if p.directions == 1 {
			one = p
		}
		t.Rows = append(t.Rows, report.Row{
			Cells: []string{
				fmt.Sprint(p.sigma), fmt.Sprint(p.directions), fmt.Sprint(p.eta0), roundsText(p.plain, speeds.rounds), roundsText(p.encrypted, speeds.rounds),
				fmt.Sprint(p.uplink), fmt.Sprintf("%.4f", 1e6*p.seconds), airtimeText(p), gainText(p.airtime(), one.airtime()),
			},
			Verdict: sameRounds(p), Against: report.Control,
		})
	}
	return t
}

// gridText writes the values of eta0 that were tried.
func gridText(grid []float64) string {
	var texts []string
	for _, eta0 := range slices.Sorted(slices.Values(grid)) {
		texts = append(texts, fmt.Sprint(eta0))
	}
	return strings.Join(texts, ", ")
}

// sameRounds judges whether encrypted runs took as many rounds as those without encryption.
func sameRounds(p packedPoint) report.Verdict {
	return same(slices.Equal(roundsTo(p.plain), roundsTo(p.encrypted)))
}

// roundsText writes median and quartiles of the rounds to the goal.
func roundsText(results []cellResult, limit int) string {
	rounds := roundsTo(results)
	one := func(x float64) string {
		if math.IsInf(x, 1) {
			return fmt.Sprintf("> %d", limit)
		}
		return fmt.Sprint(x)
	}
	if math.IsInf(rankOf(rounds, 0.5), 1) {
		return fmt.Sprintf("not within %d", limit)
	}
	return fmt.Sprintf("%s (%s to %s)", one(rankOf(rounds, 0.5)), one(rankOf(rounds, 0.25)), one(rankOf(rounds, 0.75)))
}

func airtimeText(p packedPoint) string {
	if math.IsInf(p.airtime(), 1) {
		return "–"
	}
	return report.Number(1e3*p.airtime(), 3)
}

// gainText writes by how much less airtime is needed than with one direction.
func gainText(airtime, one float64) string {
	if math.IsInf(airtime, 1) || math.IsInf(one, 1) {
		return "–"
	}
	return fmt.Sprintf("1/%.1f", one/airtime)
}

// packedFigure draws rounds and airtime against P.
func (r *reproduction) packedFigure(points []packedPoint) (report.Figure, error) {
	var series []chart.Series
	for k, sigma := range []float64{1, 10} {
		rounds := chart.Series{Name: fmt.Sprintf("rounds, sigma = %v", sigma), Style: chart.LinePoints, Color: chart.Blue + chart.Color(k)}
		air := chart.Series{Name: fmt.Sprintf("airtime in µs, sigma = %v", sigma), Style: chart.LinePoints, Dashed: true, Color: chart.Blue + chart.Color(k)}
		for _, p := range points {
			if p.sigma != sigma {
				continue
			}
			rounds.X, rounds.Y = append(rounds.X, float64(p.directions)), append(rounds.Y, p.rounds())
			air.X, air.Y = append(air.X, float64(p.directions)), append(air.Y, 1e6*p.airtime())
		}
		series = append(series, rounds, air)
	}
	return r.figure("packed", fmt.Sprintf("Rounds, and airtime in microseconds, to %.0f %% test accuracy on MNIST against the directions P of a round, encrypted, median over seeds. What was not reached has no point.", 100*packedGoal),
		chart.Figure{XLabel: "directions P", YLabel: "rounds; airtime, µs", LogX: true, LogY: true, Series: series})
}

// packedFindings compare the largest P with one.
func packedFindings(points []packedPoint) []report.Finding {
	var out []report.Finding
	for _, sigma := range []float64{1, 10} {
		var of []packedPoint
		for _, p := range points {
			if p.sigma == sigma {
				of = append(of, p)
			}
		}
		first, last := of[0], of[len(of)-1]
		out = append(out, report.Finding{
			What: fmt.Sprintf("rounds to %.0f %%, sigma = %v, P = %d and %d", 100*packedGoal, sigma, first.directions, last.directions), Paper: "–",
			Here: countText(first.rounds()) + " and " + countText(last.rounds()),
		})
	}
	return out
}

func countText(rounds float64) string {
	if math.IsInf(rounds, 1) {
		return "not reached"
	}
	return fmt.Sprint(rounds)
}
