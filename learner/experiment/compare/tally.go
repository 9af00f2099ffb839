package compare

import (
	"math"
	"slices"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
)

// Results are those of runs that differ in nothing but the seed. Accuracies are shares, 0
// to 1.
type Results struct {
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

// Tally takes in the runs of one configuration with different seeds, one by one, and gives
// their results. It keeps of a run what these need, and no rows.
type Tally struct {
	link config.Link
	runs []tallied
}

// tallied is what is kept of a run.
type tallied struct {
	seed                   uint64
	accuracy, loss, worst  float64 // worst is the largest |eps|, in predicted deviations
	rounds, skipped, again int
	bits                   int64
	unusable               string
	climbs                 []climb
}

// climb is an evaluated round with a higher test accuracy than all before it, and the
// attempts that all rounds up to it took.
type climb struct {
	accuracy        float64
	round, attempts int
}

// NewTally returns a tally of no runs yet, of a configuration.
func NewTally(c config.Config) *Tally { return &Tally{link: c.Link} }

// Add takes in a run, and returns its place.
func (t *Tally) Add(s runfolder.Summary, rows []runfolder.Row) int {
	r := tallied{
		seed: s.Seed, accuracy: float64(s.TestAccuracy), loss: float64(s.TrainLoss), bits: s.UplinkBitsPerRound,
		rounds: s.RoundsCompleted, skipped: s.RoundsSkipped, again: s.RoundsRepeated, unusable: s.Unusable,
	}
	best, attempts := math.Inf(-1), 0
	for _, row := range rows {
		attempts += row.Attempts
		if row.TestAccuracy > best {
			best = row.TestAccuracy
			r.climbs = append(r.climbs, climb{best, row.Round, attempts})
		}
		if row.EpsStdPredicted > 0 {
			r.worst = math.Max(r.worst, math.Abs(row.Eps)/row.EpsStdPredicted)
		}
	}
	t.runs = append(t.runs, r)
	return len(t.runs) - 1
}

// Single is what one run gives beside its summary. Rounds and airtime are infinite where it
// did not reach an accuracy, and airtime is NaN where it is not known.
type Single struct {
	WorstDeviations float64
	Airtime         float64   // of a round, in seconds
	Rounds, Seconds []float64 // to each accuracy
}

// Single returns what the run at a place gives.
func (t *Tally) Single(i int, accuracies []float64) Single {
	one := Single{WorstDeviations: t.runs[i].worst, Airtime: t.airtime()}
	for _, a := range accuracies {
		rounds, seconds := math.Inf(1), math.Inf(1)
		if round, attempts, ok := t.runs[i].reached(a); ok {
			rounds, seconds = float64(round), float64(attempts)*t.airtime()
		}
		if math.IsNaN(t.airtime()) {
			seconds = math.NaN()
		}
		one.Rounds, one.Seconds = append(one.Rounds, rounds), append(one.Seconds, seconds)
	}
	return one
}

// Telling returns 90, 95 and 99 %, those that any run reached; where none did, the highest
// multiple of 5 % that one did.
func Telling(tallies []*Tally) []float64 {
	best := math.NaN()
	for _, t := range tallies {
		for _, r := range t.runs {
			if n := len(r.climbs); n > 0 && !(r.climbs[n-1].accuracy <= best) {
				best = r.climbs[n-1].accuracy
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

// Results returns the results over all runs, with the rounds to some accuracies.
func (t *Tally) Results(accuracies []float64) Results {
	res := Results{Runs: len(t.runs), Seeds: []uint64{}, Airtime: runfolder.Float(t.airtime()), Reached: []ReachedLine{}, Unusable: []UnusableRun{}}
	var accuracy, loss []float64
	worst := 0.0
	for _, r := range t.runs {
		accuracy, loss = append(accuracy, r.accuracy), append(loss, r.loss)
		res.Seeds = append(res.Seeds, r.seed)
		if r.unusable != "" {
			res.Unusable = append(res.Unusable, UnusableRun{r.seed, r.unusable})
		}
		res.Rounds = max(res.Rounds, r.rounds)
		res.Skipped += r.skipped
		res.Repeated += r.again
		res.UplinkBits = max(res.UplinkBits, r.bits)
		worst = math.Max(worst, r.worst)
	}
	slices.Sort(res.Seeds)
	res.AccuracyLow, res.Accuracy, res.AccuracyHigh = floatQuartiles(accuracy)
	res.LossLow, res.Loss, res.LossHigh = floatQuartiles(loss)
	res.WorstDeviations = runfolder.Float(worst)
	for _, a := range accuracies {
		res.Reached = append(res.Reached, t.reached(a))
	}
	return res
}

func floatQuartiles(values []float64) (low, median, high runfolder.Float) {
	l, m, h := chart.Quartiles(values)
	return runfolder.Float(l), runfolder.Float(m), runfolder.Float(h)
}

// airtime returns the seconds of a round's one attempt, at one bit a second and hertz as
// in Section IV-H of the paper; NaN where they are not known: over a waveform they are not
// those of bits over a bandwidth, and without ciphertexts no bits are counted.
func (t *Tally) airtime() float64 {
	if len(t.runs) == 0 || t.runs[0].bits <= 0 || t.link.Kind != "ring" {
		return math.NaN()
	}
	return float64(t.runs[0].bits) / t.link.BandwidthHz
}

// reached finds when the runs had an accuracy. What a run did not reach it reaches after
// any number of rounds: medians and quartiles are over all runs.
func (t *Tally) reached(accuracy float64) ReachedLine {
	line := ReachedLine{Accuracy: accuracy}
	var rounds, seconds []float64
	for _, r := range t.runs {
		round, attempts, ok := r.reached(accuracy)
		if !ok {
			rounds, seconds = append(rounds, math.Inf(1)), append(seconds, math.Inf(1))
			continue
		}
		line.Runs++
		rounds, seconds = append(rounds, float64(round)), append(seconds, float64(attempts)*t.airtime())
	}
	line.RoundsLow, line.Rounds, line.RoundsHigh = floatQuartiles(rounds)
	line.Airtime = runfolder.Float(math.NaN())
	if !math.IsNaN(t.airtime()) {
		_, line.Airtime, _ = floatQuartiles(seconds)
	}
	return line
}

// reached returns the first evaluated round with an accuracy, and the attempts that all
// rounds up to it took.
func (r tallied) reached(accuracy float64) (round, attempts int, ok bool) {
	const slack = 1e-12 // 0.95 is no number of the machine's
	for _, c := range r.climbs {
		if c.accuracy >= accuracy-slack {
			return c.round, c.attempts, true
		}
	}
	return 0, 0, false
}
