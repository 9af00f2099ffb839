package main

import (
	"errors"
	"fmt"
	"math"

	"ringwave/cmd/internal/chart"
	"ringwave/cmd/internal/config"
	"ringwave/cmd/internal/report"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
)

// diverged tells that training ended because a number was no longer finite.
func diverged(err error) bool { return errors.Is(err, learner.ErrDiverged) }

// paperSystem is one of the systems whose curves the paper draws.
type paperSystem struct {
	name, set  string // set is empty for the unencrypted one
	aggregator string
	noise      float64 // sigma_n
}

// paperSystems are setups A and B, the baseline as the paper has it, and the one that
// the encrypted systems should equal: no receiver noise.
func paperSystems() []paperSystem {
	return []paperSystem{
		{"A: (8192, 218)", "paper-8192", aggregatorXMK, 0},
		{"B: (4096, 109)", "paper-4096", aggregatorXMK, 0},
		{"no encryption, sigma_n = 1", "", aggregatorNone, 1},
		{"no encryption, sigma_n = 0", "", aggregatorNone, 0},
	}
}

// configure gives the system's configuration of an experiment.
func (s paperSystem) configure(c config.Config, sigma float64) config.Config {
	c.Experiment.Aggregator, c.Channel.Std, c.Channel.AnalogNoiseStd = s.aggregator, sigma, s.noise
	if s.set != "" {
		c.Encryption.ParameterSet, c.Encryption.Form = s.set, "whole"
	}
	return c
}

// paperMNIST is the experiment of Section VI.
func paperMNIST() config.Config {
	c := config.Default()
	c.Task.Fallback = "strokes"
	return c
}

// table3 holds the paper's accuracies on MNIST, by system and sigma.
var table3MNIST = map[string]map[float64]float64{
	"A: (8192, 218)":             {1: 0.9839, 10: 0.9352},
	"B: (4096, 109)":             {1: 0.9830, 10: 0.9456},
	"no encryption, sigma_n = 1": {1: 0.9778, 10: 0.9433},
}

// mnist makes Fig. 2 and the MNIST columns of Table III.
func (r *reproduction) mnist() (report.Section, error) {
	s := report.Section{Title: "MNIST 0 against 1: Fig. 2 and Table III"}
	t := report.Table{Caption: fmt.Sprintf("Test accuracy, median and quartiles over %d seeds; the paper gives one number without its spread.", r.flags.seeds),
		Head: []string{"system", "sigma", "paper", "here", "repeated rounds"}}
	pairs := report.Table{Caption: "Encrypted against unencrypted without receiver noise, on the same seeds and gains.",
		Head: []string{"system", "sigma", "largest difference in any seed, points", "largest |eps| in predicted deviations", "mean square of eps in predicted deviations"}}
	var figures []report.Block
	for _, sigma := range []float64{1, 10} {
		var curves []chart.Series
		byName := map[string][]cellResult{}
		for k, system := range paperSystems() {
			results, err := r.seeds(fmt.Sprintf("MNIST, sigma = %v, %s", sigma, system.name), system.configure(paperMNIST(), sigma), r.flags.seeds)
			if err != nil {
				return s, err
			}
			byName[system.name] = results
			t.Rows = append(t.Rows, accuracyRow(system.name, sigma, results, table3MNIST[system.name]))
			curves = append(curves, lossCurve(system.name, results, chart.Color(k+1))...)
		}
		plain := byName["no encryption, sigma_n = 0"]
		for _, system := range paperSystems()[:2] {
			pairs.Rows = append(pairs.Rows, pairRow(system.name, sigma, byName[system.name], plain))
		}
		f, err := r.figure(fmt.Sprintf("fig2-sigma-%v", sigma), fmt.Sprintf("Fig. 2, sigma = %v: training loss of the round's batches, median over seeds with quartiles.", sigma),
			chart.Figure{XLabel: "round k", YLabel: "training loss", LogY: sigma > 1, Series: curves})
		if err != nil {
			return s, err
		}
		figures = append(figures, f)
	}
	s.Blocks = append(append(s.Blocks, t, pairs), figures...)
	return s, nil
}

// accuracyRow compares with the paper's: the same if its number lies within the range
// of the seeds, or half a point beside the quartiles.
func accuracyRow(name string, sigma float64, results []cellResult, paper map[float64]float64) report.Row {
	sp := quartilesOf(accuracies(results))
	repeated := 0
	for _, c := range results {
		repeated += c.Repeated
	}
	row := report.Row{Cells: []string{name, fmt.Sprint(sigma), "-", sp.percent(), fmt.Sprint(repeated)}}
	p, ok := paper[sigma]
	if !ok {
		return row
	}
	row.Cells[2] = fmt.Sprintf("%.2f %%", 100*p)
	low, high := sp.low, sp.high
	for _, a := range accuracies(results) {
		low, high = math.Min(low, a), math.Max(high, a)
	}
	const slack = 0.005
	if p >= low-slack && p <= high+slack {
		row.Verdict = report.Same
		return row
	}
	row.Verdict = report.Differs
	row.Why = fmt.Sprintf("by %.2f points from the median; seeds range from %.2f to %.2f %%", 100*(sp.median-p), 100*low, 100*high)
	return row
}

// pairRow compares runs seed by seed.
func pairRow(name string, sigma float64, encrypted, plain []cellResult) report.Row {
	worst, worstEps, squares := 0.0, 0.0, 0.0
	for k, e := range encrypted {
		worst = math.Max(worst, math.Abs(e.Accuracy-plain[k].Accuracy))
		worstEps = math.Max(worstEps, float64(e.WorstEps))
		squares += float64(e.EpsMean2) / float64(len(encrypted))
	}
	row := report.Row{Cells: []string{name, fmt.Sprint(sigma), fmt.Sprintf("%.3f", 100*worst), fmt.Sprintf("%.2f", worstEps), fmt.Sprintf("%.3f", squares)}, Verdict: report.Same}
	if worst >= 0.002 {
		row.Verdict, row.Why = report.Differs, "0.2 points or more"
	}
	return row
}

// lossCurve draws the median over seeds with its quartiles.
func lossCurve(name string, results []cellResult, color chart.Color) []chart.Series {
	rounds := 0
	for _, c := range results {
		rounds = max(rounds, len(c.Loss))
	}
	line, band := chart.Series{Name: name, Color: color}, chart.Series{Style: chart.Band, Color: color}
	for k := range rounds {
		var at []float64
		for _, c := range results {
			if k < len(c.Loss) {
				at = append(at, float64(c.Loss[k]))
			}
		}
		sp := quartilesOf(at)
		line.X, line.Y = append(line.X, float64(k+1)), append(line.Y, sp.median)
		band.X, band.YLow, band.YHigh = append(band.X, float64(k+1)), append(band.YLow, sp.low), append(band.YHigh, sp.high)
	}
	return []chart.Series{band, line}
}

// parameters makes Table II.
func (r *reproduction) parameters() (report.Section, error) {
	s := report.Section{Title: "Parameter sets and overhead: Table II"}
	t := report.Table{Caption: "Sizes of the paper's two parameter sets.", Head: []string{"figure", "n", "paper", "here"}}
	for _, p := range []struct {
		set                  string
		ciphertext           int
		bits, expansion, ttx float64
		size, uplink         string
	}{
		{"paper-4096", 111616, 1.8, 1.36e4, 1.8e-6, "109 KB", "1.8 Mbit"},
		{"paper-8192", 446464, 7.1, 5.58e4, 7.1e-6, "446 KB", "7.1 Mbit"},
	} {
		set, ok := xmkckks.Lookup(p.set)
		if !ok {
			return s, fmt.Errorf("the set %s is not there", p.set)
		}
		n := fmt.Sprint(set.N)
		bytes, uplink := set.CiphertextBytes(), set.UplinkBits(xmkckks.Whole, 0)
		why, whyExpansion := "the paper's KB are 1,024 bytes here", "the paper takes the 109 KB for 109,000 bytes here"
		if set.N == 8192 {
			why, whyExpansion = "the paper's KB are 1,000 bytes here, and 1,024 at n = 4096", ""
		}
		t.Rows = append(t.Rows,
			report.Row{Cells: []string{"ciphertext", n, p.size, fmt.Sprintf("%d bytes", bytes)}, Verdict: same(bytes == p.ciphertext), Why: why},
			report.Row{Cells: []string{"expansion of 8 bytes", n, fmt.Sprintf("%.3g", p.expansion), fmt.Sprintf("%.4g", set.ExpansionFactor())}, Verdict: same(near(set.ExpansionFactor(), p.expansion, 0.005)), Why: whyExpansion},
			report.Row{Cells: []string{"uplink a round and device", n, p.uplink, fmt.Sprintf("%d bits", uplink)}, Verdict: same(near(float64(uplink)/1e6, p.bits, 0.02))},
			report.Row{Cells: []string{"transmission at 1 THz", n, fmt.Sprintf("%.2g s", p.ttx), fmt.Sprintf("%.4g s", airtime(uplink, 1e12))}, Verdict: same(near(airtime(uplink, 1e12), p.ttx, 0.02))},
			report.Row{Cells: []string{"security", n, "128 bits (HE standard)", set.Security().String()}, Verdict: same(set.Security().MeetsStandard())},
		)
	}
	s.Blocks = append(s.Blocks, t, report.Paragraph("Encryption times, which a clock gives, are in timing.md."))
	return s, r.timeEncryption()
}

func same(ok bool) report.Verdict {
	if ok {
		return report.Same
	}
	return report.Differs
}

// near tells whether two figures agree within a relative error.
func near(a, b, within float64) bool { return math.Abs(a-b) <= within*math.Abs(b) }
