package paper

import (
	"fmt"
	"math"

	"ringwave/learner/experiment/report"
)

// noisySystem is the unencrypted one with the paper's receiver noise.
const noisySystem = "no encryption, sigma_n = 1"

// drawsOf are the runs of each system at one sigma.
type drawsOf struct {
	sigma  float64
	byName map[string][]cellResult
}

// noiseOfPaper asks whether the paper's two encrypted accuracies look like runs without
// receiver noise, as the encrypted uplink has none here, or like runs with it.
func noiseOfPaper(draws []drawsOf, data dataInUse) (report.Table, []report.Finding, report.Paragraph) {
	t := report.Table{
		Caption: "The paper's two encrypted accuracies together, A and B, as two further draws of the seeds' distribution: the paper says that trajectories differ by independent channel realizations. Columns p: Student's t on log-odds, on the accuracies themselves, and the exact rank-sum test, all two-sided. Least is the smallest p by rank that so many seeds allow: a smaller p by t rests on the tails of a normal distribution, which so few seeds do not show.",
		Head:    []string{"if they were", "sigma", "paper, A and B", "seeds", "here", "seeds at or below A", "p", "p of accuracies", "p by rank", "least"},
	}
	var findings []report.Finding
	reading := "Whether the paper's encrypted runs had receiver noise, too few rounds or seeds were run to tell."
	for _, d := range draws {
		paper := []float64{table3MNIST["A: (8192, 218)"][d.sigma], table3MNIST["B: (4096, 109)"][d.sigma]}
		var of []surprise
		for _, as := range []struct{ name, system string }{
			{"encrypted, no receiver noise", "B: (4096, 109)"}, {"with receiver noise, sigma_n = 1", noisySystem},
		} {
			row, s := drawsRow(as.name, d.sigma, paper, d.byName[as.system], data)
			t.Rows = append(t.Rows, row)
			findings = append(findings, report.Finding{What: fmt.Sprintf("A and B, sigma = %v, %s", d.sigma, as.name), Paper: row.Cells[2], Here: drawsText(row), Verdict: row.Verdict})
			if row.Verdict == report.Same || row.Verdict == report.Differs {
				of = append(of, s)
			}
		}
		if d.sigma == 1 && len(of) == 2 {
			reading = noiseReading(of[0], of[1])
		}
	}
	return t, findings, report.Paragraph(reading)
}

// drawsRow sets two numbers of the paper against one system's seeds.
func drawsRow(name string, sigma float64, paper []float64, results []cellResult, data dataInUse) (report.Row, surprise) {
	row := report.Row{
		Cells:   []string{name, fmt.Sprint(sigma), percent(paper[0]) + ", " + percent(paper[1]), fmt.Sprint(len(results)), "–", "–", "–", "–", "–", "–"},
		Against: report.PaperValue,
	}
	if row.Verdict, row.Why = unjudged(results, paperMNIST().Optimizer.Rounds, data); row.Verdict != report.None {
		return row, surprise{}
	}
	row.Cells[4] = accuracyText(results)
	if len(results) < fewestToDiffer {
		row.Verdict, row.Why = report.Undecided, "too few seeds for a spread"
		return row, surprise{}
	}
	below := 0
	for _, c := range results {
		if c.Accuracy <= wholeImages(paper[0], data.tests) {
			below++
		}
	}
	s := surpriseOf(accuracies(results), paper, data.tests)
	for k, text := range []string{fmt.Sprint(below), pText(s.fit), pText(s.raw), pText(s.rank), pText(s.least)} {
		row.Cells[5+k] = text
	}
	row.Verdict = same(s.fit >= verdictLevel)
	if row.Verdict == report.Same && len(results) < fewestToAgree {
		row.Verdict, row.Why = report.Undecided, "too few seeds to call it the same"
	}
	return row, s
}

// drawsText writes what a row came to for the summary.
func drawsText(row report.Row) string {
	if row.Cells[6] == "–" {
		return row.Cells[4]
	}
	return fmt.Sprintf("%s; p = %s, by rank %s, of which %s is the least", row.Cells[4], row.Cells[6], row.Cells[8], row.Cells[9])
}

// noiseReading says what the two hypotheses come to at sigma = 1.
func noiseReading(without, with surprise) string {
	text := fmt.Sprintf("Two independent runs as far from the middle as the paper's A and B have p = %s at sigma = 1 if the uplink adds no receiver noise (%s by the accuracies themselves, %s by rank, where %s is the least that there is), and p = %s with sigma_n = 1 (%s, %s).",
		pText(without.fit), pText(without.raw), pText(without.rank), pText(without.least), pText(with.fit), pText(with.raw), pText(with.rank))
	span := math.Max(without.fit, without.raw) / math.Min(without.fit, without.raw)
	text += fmt.Sprintf(" The first two differ by a factor of %s: of so small a p the seeds give the order and no digit.", report.Number(span, 2))
	if without.fit < verdictLevel && without.rank < verdictLevel && with.fit >= verdictLevel && with.rank >= verdictLevel {
		return text + " The paper's encrypted runs look as if they had receiver noise, which its protocol's rounding takes away."
	}
	return text + " That does not tell the two apart."
}
