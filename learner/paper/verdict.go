package paper

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/learner/experiment/report"
)

// verdictLevel is the p-value below which the paper's number is called different.
const verdictLevel = 0.05

// Fewer seeds than these are too few to call a number different, or the same: the one
// needs a spread, the other a spread that is known well enough to have shown something.
const (
	fewestToDiffer = 3
	fewestToAgree  = 5
)

// verdictRule says what againstPaper does.
var verdictRule = fmt.Sprintf("The verdict's null hypothesis is that the paper's number is one more seed: an independent draw from the distribution that the seeds here come from. p is two-sided, that of Student's t for one more draw, with mean and deviation of the seeds' log-odds of a correct answer, which near 100 %% are closer to normal than accuracies are. Below %v the verdict is different, from there on the same, with fewer than %d seeds undecided. More seeds widen nothing: for seeds of one distribution p falls to that distribution's own as there are more of them. p by rank assumes no distribution, and cannot be less than 2/(n+1) with n seeds.", verdictLevel, fewestToAgree)

// surprise says how unlikely numbers of the paper are as further seeds.
type surprise struct {
	// fit is the two-sided p of Student's t on log-odds, raw that on the accuracies
	// themselves, and rank that of the exact rank-sum test.
	fit, raw, rank float64
	// least is the smallest rank that there is with so many seeds.
	least float64
}

// surpriseOf sets the paper's numbers, few of them, against those of the seeds, two or
// more, all shares of so many test images.
func surpriseOf(seeds, paper []float64, tests int) surprise {
	counted := make([]float64, len(paper))
	for i, x := range paper {
		counted[i] = wholeImages(x, tests)
	}
	rank, least := rankSum(seeds, counted)
	return surprise{
		fit: furtherDraws(logOdds(seeds, tests), logOdds(counted, tests)), raw: furtherDraws(seeds, counted),
		rank: rank, least: least,
	}
}

// wholeImages takes the rounding to two digits of a per cent from an accuracy where a
// number of test images does so.
func wholeImages(accuracy float64, tests int) float64 {
	const half = 0.5e-4
	n := float64(tests)
	if whole := math.Round(accuracy*n) / n; math.Abs(whole-accuracy) <= half*(1+1e-9) {
		return whole
	}
	return accuracy
}

// logOdds returns log(right/wrong) of each share of tests, with half an image added to
// either so that none is infinite.
func logOdds(shares []float64, tests int) []float64 {
	out := make([]float64, len(shares))
	for i, a := range shares {
		n := float64(tests)
		out[i] = math.Log((a*n + 0.5) / ((1-a)*n + 0.5))
	}
	return out
}

// furtherDraws returns the two-sided p of the mean of further values as draws from the
// normal distribution of which the first ones, two or more, are a sample.
func furtherDraws(sample, further []float64) float64 {
	mean, std := stat.MeanStdDev(sample, nil)
	n, k := float64(len(sample)), float64(len(further))
	distance := math.Abs(stat.Mean(further, nil) - mean)
	if distance == 0 {
		return 1
	}
	t := distance / (std * math.Sqrt(1/n+1/k)) // infinite where all seeds are equal
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Survival(t)
}

// rankSum returns the exact p of the rank-sum test, ties at their mean rank: of all ways to
// take so many values from all, the share whose rank sum is as low or as high, whichever
// is less, twice for the two sides; and the least p that any values could have.
func rankSum(seeds, further []float64) (p, least float64) {
	ranks := midRanks(slices.Concat(further, seeds))
	k := len(further)
	sum := func(of []int) float64 {
		s := 0.0
		for _, i := range of {
			s += ranks[i]
		}
		return s
	}
	first := make([]int, k)
	for i := range first {
		first[i] = i
	}
	found := sum(first)
	ways, asLow, asHigh := 0, 0, 0
	choice := first
	for g := combin.NewCombinationGenerator(len(ranks), k); g.Next(); {
		ways++
		s := sum(g.Combination(choice)) // of halves: exact
		if s <= found {
			asLow++
		}
		if s >= found {
			asHigh++
		}
	}
	return math.Min(1, 2*float64(min(asLow, asHigh))/float64(ways)), math.Min(1, 2/float64(ways))
}

// midRanks returns each value's rank from 1, equal ones their mean.
func midRanks(values []float64) []float64 {
	ranks := make([]float64, len(values))
	for i, x := range values {
		ranks[i] = 0.5
		for _, y := range values {
			switch {
			case y < x:
				ranks[i]++
			case y == x:
				ranks[i] += 0.5
			}
		}
	}
	return ranks
}

// againstPaper judges the paper's one number by the accuracies of the seeds, shares of
// so many test images, as verdictRule says.
func againstPaper(found []float64, paper float64, tests int) (report.Verdict, string) {
	if len(found) == 0 {
		return report.Missing, ""
	}
	why := fmt.Sprintf("the median is %+.2f points from the paper's", 100*(quartilesOf(found).median-paper))
	if len(found) < fewestToDiffer {
		return report.Undecided, why + fmt.Sprintf("; %s: no spread to judge it by", seedsText(len(found)))
	}
	s := surpriseOf(found, []float64{paper}, tests)
	why += fmt.Sprintf("; p = %s, by rank %s", pText(s.fit), pText(s.rank))
	switch {
	case s.fit < verdictLevel:
		return report.Differs, why
	case len(found) < fewestToAgree:
		return report.Undecided, why + fmt.Sprintf(": %s are too few to call it the same", seedsText(len(found)))
	}
	return report.Same, why
}

// pText writes a p-value.
func pText(p float64) string { return report.Number(p, 2) }

// unjudged says why nothing can be said of runs: they have fewer rounds than the paper's,
// or were made on other data. It is None where something can.
func unjudged(results []cellResult, full int, data dataInUse) (report.Verdict, string) {
	rounds, diverged := 0, false
	for _, c := range results {
		rounds, diverged = max(rounds, c.rounds()), diverged || c.Diverged
	}
	switch {
	case rounds < full && !diverged:
		return report.CutShort, fmt.Sprintf("cut to %d of %d rounds", rounds, full)
	case data.fallback:
		return report.Missing, "the paper's data are not on this machine"
	}
	return report.None, ""
}

// judgedAccuracy compares runs with the paper's accuracy, and writes theirs: a dash where they
// say nothing.
func judgedAccuracy(results []cellResult, full int, paper float64, data dataInUse) (here string, verdict report.Verdict, why string) {
	if verdict, why := unjudged(results, full, data); verdict != report.None {
		return "–", verdict, why
	}
	verdict, why = againstPaper(accuracies(results), paper, data.tests)
	diverged := 0
	for _, c := range results {
		if c.Diverged {
			diverged++
		}
	}
	if diverged > 0 {
		why = fmt.Sprintf("%d of %d diverged; %s", diverged, len(results), why)
	}
	return accuracyText(results), verdict, why
}
