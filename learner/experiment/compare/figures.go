package compare

import (
	"math"
	"slices"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/runfolder"
)

// Comparison is groups of runs and the figures that come of them.
type Comparison struct {
	Table []Line // a line a group
	// Accuracies are those to which rounds were counted, rising, as shares.
	Accuracies []float64
	// Skipped are the folders given that are no runs, in the order given.
	Skipped []Skipped

	groups []*group
}

// Line is a group's line of the table. Accuracies are shares, 0 to 1.
type Line struct {
	Label        string          `json:"label"`
	Runs         int             `json:"runs"`
	Seeds        []uint64        `json:"seeds"`
	Rounds       int             `json:"rounds"` // the most that a run completed
	AccuracyLow  runfolder.Float `json:"test_accuracy_lower_quartile"`
	Accuracy     runfolder.Float `json:"test_accuracy_median"`
	AccuracyHigh runfolder.Float `json:"test_accuracy_upper_quartile"`
	LossLow      runfolder.Float `json:"train_loss_lower_quartile"`
	Loss         runfolder.Float `json:"train_loss_median"`
	LossHigh     runfolder.Float `json:"train_loss_upper_quartile"`
	// WorstDeviations is the largest |eps| in predicted deviations.
	WorstDeviations runfolder.Float `json:"worst_deviations"`
	Skipped         int             `json:"rounds_skipped"`
	Repeated        int             `json:"rounds_repeated"`
	// Unusable are the runs that ended without a usable result; the figures count them.
	Unusable []UnusableRun `json:"unusable"`
	// UplinkBits are one device's in a round; 0 where they are not known.
	UplinkBits int64 `json:"uplink_bits_per_round"`
	// Airtime is that of a round in seconds; null where it is not known.
	Airtime runfolder.Float `json:"transmission_seconds_per_round"`

	Reached []ReachedLine `json:"reached"`
	Paired  []PairedLine  `json:"paired"`
}

// UnusableRun is a run that ended without a usable result, and why.
type UnusableRun struct {
	Seed   uint64 `json:"seed"`
	Reason string `json:"reason"`
}

// ReachedLine says when a group's runs were first seen to have an accuracy. Numbers
// over all runs are null where too many did not reach it.
type ReachedLine struct {
	Accuracy   float64         `json:"test_accuracy"`
	Runs       int             `json:"runs_that_reached"`
	RoundsLow  runfolder.Float `json:"rounds_lower_quartile"`
	Rounds     runfolder.Float `json:"rounds_median"`
	RoundsHigh runfolder.Float `json:"rounds_upper_quartile"`
	// Airtime is the median in seconds, every attempt counted.
	Airtime runfolder.Float `json:"transmission_seconds_median"`
}

// PairedLine compares a group with another, run by run of the same seed: the other's
// test accuracy less the group's own, in points (hundredths of the share).
type PairedLine struct {
	With   string          `json:"with"`
	Seeds  int             `json:"seeds"`
	Median runfolder.Float `json:"median_points"`
	// Largest has the largest magnitude, at the seed LargestSeed.
	Largest     runfolder.Float `json:"largest_points"`
	LargestSeed uint64          `json:"largest_seed"`

	of, other int // the positions of the group and of the one named by With
}

// compareGroups computes all figures. Without accuracies it chooses them.
func compareGroups(groups []*group, accuracies []float64) Comparison {
	c := Comparison{groups: groups, Accuracies: slices.Compact(slices.Sorted(slices.Values(accuracies)))}
	if len(accuracies) == 0 {
		c.Accuracies = telling(groups)
	}
	for i, g := range groups {
		line := g.line()
		for _, a := range c.Accuracies {
			line.Reached = append(line.Reached, g.reached(a))
		}
		for k, other := range groups[i+1:] {
			if p, ok := pair(g, other); ok {
				p.of, p.other = i, i+1+k
				line.Paired = append(line.Paired, p)
			}
		}
		c.Table = append(c.Table, line)
	}
	return c
}

// telling returns 90, 95 and 99 %, those that any run reached; where none did, the
// highest multiple of 5 % that one did.
func telling(groups []*group) []float64 {
	best := math.NaN()
	for _, g := range groups {
		for _, r := range g.runs {
			for _, row := range r.rows {
				if !math.IsNaN(row.TestAccuracy) && !(row.TestAccuracy <= best) {
					best = row.TestAccuracy
				}
			}
		}
	}
	var found []float64
	for _, a := range []float64{0.9, 0.95, 0.99} {
		if best >= a {
			found = append(found, a)
		}
	}
	if a := math.Floor(best*20+1e-9) / 20; len(found) == 0 && a > 0 {
		found = append(found, a)
	}
	return found
}

// line returns the results of a group.
func (g *group) line() Line {
	line := Line{Label: g.label, Runs: len(g.runs), Airtime: runfolder.Float(g.airtime()), Reached: []ReachedLine{}, Paired: []PairedLine{}, Unusable: []UnusableRun{}}
	var accuracy, loss []float64
	worst := 0.0
	for _, r := range g.runs {
		accuracy = append(accuracy, float64(r.summary.TestAccuracy))
		loss = append(loss, float64(r.summary.TrainLoss))
		line.Seeds = append(line.Seeds, r.summary.Seed)
		if reason := r.summary.Unusable; reason != "" {
			line.Unusable = append(line.Unusable, UnusableRun{r.summary.Seed, reason})
		}
		line.Rounds = max(line.Rounds, r.summary.RoundsCompleted)
		line.Skipped += r.summary.RoundsSkipped
		line.Repeated += r.summary.RoundsRepeated
		line.UplinkBits = max(line.UplinkBits, r.summary.UplinkBitsPerRound)
		for _, row := range r.rows {
			if row.EpsStdPredicted > 0 {
				worst = math.Max(worst, math.Abs(row.Eps)/row.EpsStdPredicted)
			}
		}
	}
	slices.Sort(line.Seeds)
	line.AccuracyLow, line.Accuracy, line.AccuracyHigh = floatQuartiles(accuracy)
	line.LossLow, line.Loss, line.LossHigh = floatQuartiles(loss)
	line.WorstDeviations = runfolder.Float(worst)
	return line
}

func floatQuartiles(values []float64) (low, median, high runfolder.Float) {
	l, m, h := chart.Quartiles(values)
	return runfolder.Float(l), runfolder.Float(m), runfolder.Float(h)
}

// airtime returns the seconds of a round's one attempt, at one bit a second and hertz as
// in Section IV-H of the paper; NaN where they are not known: over a waveform they are not
// those of bits over a bandwidth, and without ciphertexts no bits are counted.
func (g *group) airtime() float64 {
	bits := g.runs[0].summary.UplinkBitsPerRound
	if bits <= 0 || g.cfg.Link.Kind != "ring" {
		return math.NaN()
	}
	return float64(bits) / g.cfg.Link.BandwidthHz
}

// reached finds when the group's runs had an accuracy. What a run did not reach it
// reaches after any number of rounds: medians and quartiles are over all runs.
func (g *group) reached(accuracy float64) ReachedLine {
	line := ReachedLine{Accuracy: accuracy}
	var rounds, seconds []float64
	for _, r := range g.runs {
		round, attempts, ok := r.reached(accuracy)
		if !ok {
			rounds, seconds = append(rounds, math.Inf(1)), append(seconds, math.Inf(1))
			continue
		}
		line.Runs++
		rounds, seconds = append(rounds, float64(round)), append(seconds, float64(attempts)*g.airtime())
	}
	line.RoundsLow, line.Rounds, line.RoundsHigh = floatQuartiles(rounds)
	line.Airtime = runfolder.Float(math.NaN())
	if !math.IsNaN(g.airtime()) {
		_, line.Airtime, _ = floatQuartiles(seconds)
	}
	return line
}

// reached returns the first evaluated round with an accuracy, and the attempts that all
// rounds up to it took.
func (r run) reached(accuracy float64) (round, attempts int, ok bool) {
	const slack = 1e-12 // 0.95 is no number of the machine's
	for _, row := range r.rows {
		attempts += row.Attempts
		if row.TestAccuracy >= accuracy-slack {
			return row.Round, attempts, true
		}
	}
	return 0, 0, false
}

// pair compares the runs of equal seeds; there are none if the data differ.
func pair(a, b *group) (PairedLine, bool) {
	if a.data != b.data {
		return PairedLine{}, false
	}
	line := PairedLine{With: b.label}
	var points []float64
	for _, r := range a.runs {
		for _, s := range b.runs {
			d := 100 * float64(s.summary.TestAccuracy-r.summary.TestAccuracy)
			if s.summary.Seed != r.summary.Seed || math.IsNaN(d) {
				continue
			}
			points = append(points, d)
			if len(points) == 1 || math.Abs(d) > math.Abs(float64(line.Largest)) {
				line.Largest, line.LargestSeed = runfolder.Float(d), s.summary.Seed
			}
		}
	}
	_, line.Median, _ = floatQuartiles(points)
	line.Seeds = len(points)
	return line, len(points) > 0
}
