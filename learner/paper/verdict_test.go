package paper

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/learner/experiment/report"
)

// mnistTests is the number of MNIST's test images of 0 and 1.
const mnistTests = 2115

// evenly returns the accuracies of n seeds that lie on a distribution's quantiles, in an
// order of no meaning, so that any first few are a sample of it.
func evenly(n int, quantile func(p float64) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = quantile((float64(i) + 0.5) / float64(n))
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// A verdict gets no more lenient with more seeds of the same distribution, whatever its
// shape: what differs with few differs with many, and p falls towards its limit. By the
// range of the seeds it was the other way: among a thousand some are as far off as any
// number of the paper.
func TestVerdictWithMoreSeeds(t *testing.T) {
	normal := distuv.Normal{Mu: 0.9, Sigma: 0.02}
	for name, quantile := range map[string]func(float64) float64{
		"normal":  normal.Quantile,
		"uniform": func(p float64) float64 { return 0.85 + 0.1*p },
		"skewed":  func(p float64) float64 { return 1 - 0.06*math.Pow(1-p, 2) - 0.005 },
	} {
		values := []float64{quantile(0.0001), quantile(0.001), quantile(0.02), quantile(0.5), quantile(0.98)}
		for _, paper := range append(values, quantile(0.0001)-0.1) {
			before, differed := math.Inf(1), false
			for _, n := range []int{5, 10, 20, 50, 200, 1000} {
				seeds := evenly(n, quantile)
				p := surpriseOf(seeds, []float64{paper}, mnistTests).fit
				if p > before*1.05+1e-12 {
					t.Errorf("%s seeds, the paper's %.4f: p rises from %v to %v with %d of them", name, paper, before, p, n)
				}
				before = p
				verdict, why := againstPaper(seeds, paper, mnistTests)
				if differed && verdict != report.Differs {
					t.Errorf("%s seeds, the paper's %.4f: with %d of them it is %v (%s), and was different with fewer", name, paper, n, verdict, why)
				}
				differed = verdict == report.Differs
			}
			if far := paper < quantile(0.0001); far && !differed {
				t.Errorf("%s seeds: %.4f is not different", name, paper)
			}
		}
	}
}

// A number within the range of many seeds, and in their tail, is different.
func TestVerdictIsNotTheRange(t *testing.T) {
	normal := distuv.Normal{Mu: 0.9, Sigma: 0.02}
	seeds := evenly(1000, normal.Quantile)
	paper := normal.Quantile(0.005)
	if paper < slices.Min(seeds) {
		t.Fatal("the number must be within the range")
	}
	if verdict, why := againstPaper(seeds, paper, mnistTests); verdict != report.Differs {
		t.Errorf("%v, %s", verdict, why)
	}
	// And such a seed as the paper's number among few does not make it the same.
	few := []float64{0.9941, 0.9938, 0.9950, 0.9945, 0.9932, 0.9948, 0.9940, 0.9936, 0.9943, 0.9947}
	if verdict, why := againstPaper(few, 0.98, mnistTests); verdict != report.Differs {
		t.Errorf("%v, %s", verdict, why)
	}
}

// Draws of one distribution are called different as often as the level says: p of the
// t fit is uniform for normal log-odds. 4,000 trials at 5 % have a deviation of 0.34 %.
func TestVerdictLevel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 7))
	for _, k := range []int{1, 2} {
		different := 0
		const trials = 4000
		for range trials {
			draw := make([]float64, 20+k)
			for i := range draw {
				draw[i] = 5 + 0.6*rnd.NormFloat64()
			}
			if furtherDraws(draw[k:], draw[:k]) < verdictLevel {
				different++
			}
		}
		if share := float64(different) / trials; math.Abs(share-verdictLevel) > 5*0.0034 {
			t.Errorf("of %d further draws %v are called different, the level is %v", k, share, verdictLevel)
		}
	}
}

// Few seeds decide little, and never that a number is the same.
func TestVerdictOfFewSeeds(t *testing.T) {
	for _, c := range []struct {
		seeds   []float64
		paper   float64
		verdict report.Verdict
		why     string
	}{
		{nil, 0.8, report.Missing, ""},
		{[]float64{0.529}, 0.8015, report.Undecided, "no spread"},
		{[]float64{0.80, 0.81}, 0.8015, report.Undecided, "no spread"},
		{[]float64{0.80, 0.81, 0.79}, 0.8015, report.Undecided, "too few"},
		{[]float64{0.53, 0.54, 0.55}, 0.8015, report.Differs, "p = "},
		{[]float64{0.80, 0.81, 0.79, 0.78, 0.82}, 0.8015, report.Same, "p = "},
		{[]float64{0.9, 0.9, 0.9, 0.9, 0.9}, 0.8, report.Differs, "p = 0"},
		{[]float64{1, 1, 1, 1, 1}, 1, report.Same, "p = 1"},
	} {
		verdict, why := againstPaper(c.seeds, c.paper, 2000)
		if verdict != c.verdict || !strings.Contains(why, c.why) {
			t.Errorf("%v against %v: %v (%s), want %v (%s)", c.seeds, c.paper, verdict, why, c.verdict, c.why)
		}
	}
}

// The exact rank-sum test by hand: of the 10 pairs of 5 values, one has the rank sum 3,
// two have 7.
func TestRankSum(t *testing.T) {
	for _, c := range []struct {
		seeds, paper []float64
		p, least     float64
	}{
		{[]float64{3, 4, 5}, []float64{1, 2}, 0.2, 0.2},
		{[]float64{1, 3, 5}, []float64{2, 4}, 1, 0.2},
		{[]float64{1, 2, 4}, []float64{3, 5}, 0.4, 0.2}, // rank sum 8: of 8 and 9 there is one each
		{[]float64{2, 2, 2}, []float64{2, 2}, 1, 0.2},
		{[]float64{2, 3, 4, 5}, []float64{1}, 0.4, 0.4},
		{[]float64{1, 1, 1, 1}, []float64{2}, 0.4, 0.4},
	} {
		p, least := rankSum(c.seeds, c.paper)
		if math.Abs(p-c.p) > 1e-12 || math.Abs(least-c.least) > 1e-12 {
			t.Errorf("%v among %v: p = %v and least %v, want %v and %v", c.paper, c.seeds, p, least, c.p, c.least)
		}
	}
}

// The paper's MNIST accuracies are whole numbers of the 2,115 test images of 0 and 1.
func TestWholeImages(t *testing.T) {
	for _, bySigma := range table3MNIST {
		for _, a := range bySigma {
			n := wholeImages(a, mnistTests) * mnistTests
			if math.Abs(n-math.Round(n)) > 1e-9 || math.Abs(n/mnistTests-a) > 1e-4 {
				t.Errorf("%v is %v images", a, n)
			}
		}
	}
	if got := wholeImages(0.12345, 10); got != 0.12345 {
		t.Errorf("of ten images 0.12345 is %v", got)
	}
}

// runsOf makes whole runs of the given accuracies.
func runsOf(rounds int, accuracies []float64) []cellResult {
	var out []cellResult
	for _, a := range accuracies {
		c := cellResult{Accuracy: a}
		c.Loss = slices.Grow(c.Loss, rounds)[:rounds]
		out = append(out, c)
	}
	return out
}

// The paper's two encrypted accuracies are set against runs with and without receiver
// noise, and the report says which they look like; runs that were cut short, or on other
// data, say nothing.
func TestNoiseOfPaper(t *testing.T) {
	const rounds = 400
	quiet := evenly(20, distuv.Normal{Mu: 0.9945, Sigma: 0.002}.Quantile)
	noisy := evenly(20, distuv.Normal{Mu: 0.982, Sigma: 0.006}.Quantile)
	draws := func(rounds int, with []float64) []drawsOf {
		return []drawsOf{{1, map[string][]cellResult{"B: (4096, 109)": runsOf(rounds, quiet), noisySystem: runsOf(rounds, with)}}}
	}
	data := dataInUse{tests: mnistTests}
	table, findings, reading := noiseOfPaper(draws(rounds, noisy), data)
	if table.Rows[0].Verdict != report.Differs || table.Rows[1].Verdict != report.Same || len(findings) != 2 {
		t.Errorf("%+v", table.Rows)
	}
	if !strings.Contains(string(reading), "look as if they had receiver noise") {
		t.Errorf("%q", reading)
	}
	// 1 of the 231 pairs of 22 is lowest, on one of two sides.
	if got := table.Rows[0].Cells[8]; got != pText(2.0/231) {
		t.Errorf("by rank p is %s", got)
	}
	if _, _, reading = noiseOfPaper(draws(rounds, quiet), data); !strings.Contains(string(reading), "does not tell") {
		t.Errorf("%q", reading)
	}
	for _, c := range []struct {
		rounds  int
		data    dataInUse
		verdict report.Verdict
	}{{3, data, report.CutShort}, {rounds, dataInUse{tests: mnistTests, fallback: true}, report.Missing}} {
		table, _, reading := noiseOfPaper(draws(c.rounds, noisy), c.data)
		if row := table.Rows[0]; row.Verdict != c.verdict || strings.Contains(strings.Join(row.Cells[4:], ""), "%") || strings.Contains(string(reading), "look as if") {
			t.Errorf("%v: %v, %s", c, row, reading)
		}
	}
}

// What was cut short has a verdict and no number; what diverged early was not cut.
func TestCutShortHasNoNumber(t *testing.T) {
	short, full := runsOf(45, []float64{0.529}), 7500
	if here, verdict, _ := judgedAccuracy(short, full, cifarPaperB, dataInUse{tests: 2000}); here != "–" || verdict != report.CutShort {
		t.Errorf("%s, %v", here, verdict)
	}
	short[0].Diverged = true
	if here, verdict, why := judgedAccuracy(short, full, cifarPaperB, dataInUse{tests: 2000}); here == "–" || verdict == report.CutShort || !strings.Contains(why, "1 of 1 diverged") {
		t.Errorf("%s, %v, %s", here, verdict, why)
	}
}
