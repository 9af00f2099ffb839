package paper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/theory"
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
		{"A: (8192, 218)", "paper-8192", config.XMKCKKS, 0},
		{"B: (4096, 109)", "paper-4096", config.XMKCKKS, 0},
		{"no encryption, sigma_n = 1", "", config.Plain, 1},
		{plainSystem, "", config.Plain, 0},
	}
}

// plainSystem is the one that encrypted systems should equal.
const plainSystem = "no encryption, sigma_n = 0"

// configure returns the system's configuration of an experiment.
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
func (r *reproduction) mnist(ctx context.Context) (report.Section, error) {
	s := report.Section{Title: "MNIST 0 against 1: Fig. 2 and Table III"}
	t := report.Table{Caption: fmt.Sprintf("Test accuracy, median and quartiles over %s; the paper gives one number without its spread. %s", seedsText(r.opt.Seeds), verdictRule),
		Head: []string{"system", "sigma", "paper", "here", "repeated rounds"}}
	pairs := report.Table{Caption: "Encrypted against unencrypted without receiver noise, on the same seeds and gains.",
		Head: []string{"system", "sigma", "largest difference in any seed, points", "largest |eps| in predicted deviations", "mean square of eps in predicted deviations"}}
	data, err := r.dataOf(r.shortened(paperMNIST()))
	if err != nil {
		return s, err
	}
	var figures []report.Block
	sigmas := []float64{1, 10}
	var draws []drawsOf
	var list []series
	for _, sigma := range sigmas {
		for _, system := range paperSystems() {
			list = append(list, series{fmt.Sprintf("MNIST, sigma = %v, %s", sigma, system.name), system.configure(paperMNIST(), sigma), r.opt.Seeds})
		}
	}
	r.begin("mnist", jobsOf(list), false)
	found, err := r.all(ctx, list)
	if err != nil {
		return s, err
	}
	for _, sigma := range sigmas {
		byName := map[string][]cellResult{}
		for _, system := range paperSystems() {
			results := found[0]
			found = found[1:]
			byName[system.name] = results
			row := accuracyRow(system.name, sigma, results, table3MNIST[system.name], data)
			t.Rows = append(t.Rows, row)
			if system.name != plainSystem {
				s.Findings = append(s.Findings, report.Finding{What: fmt.Sprintf("%s, sigma = %v", system.name, sigma), Paper: row.Cells[2], Here: row.Cells[3], Verdict: row.Verdict})
			}
		}
		draws = append(draws, drawsOf{sigma, byName})
		plain := byName[plainSystem]
		for _, system := range paperSystems()[:2] {
			pairs.Rows = append(pairs.Rows, pairRow(system.name, sigma, byName[system.name], plain))
		}
		f, err := r.figure(fmt.Sprintf("fig2-sigma-%v", sigma), fmt.Sprintf("Fig. 2, sigma = %v: training loss of the round's batches, median over seeds; bands are the quartiles of the unencrypted systems. The encrypted ones are drawn wide, as they lie under the last.", sigma),
			chart.Figure{XLabel: "round k", YLabel: "training loss", LogY: sigma > 1, Series: systemCurves(byName)})
		if err != nil {
			return s, err
		}
		figures = append(figures, f)
	}
	noise, findings, reading := noiseOfPaper(draws, data)
	s.Findings = append(s.Findings, findings...)
	s.Blocks = append(append(s.Blocks, t, pairs, noise, reading), figures...)
	return s, nil
}

// systemCurves returns the training losses of the paper's systems.
func systemCurves(byName map[string][]cellResult) (curves []chart.Series) {
	for k, system := range paperSystems() {
		curve := lossCurve(system.name, byName[system.name], chart.Color(k+1))
		if system.set != "" {
			// It may lie under another: wider, and without a band on top of bands.
			curve = curve[len(curve)-1:]
			curve[0].Width = vg.Points(5 - 1.6*float64(k))
		}
		curves = append(curves, curve...)
	}
	return curves
}

// accuracyRow compares with the paper's accuracy, where it has one.
func accuracyRow(name string, sigma float64, results []cellResult, paper map[float64]float64, data dataInUse) report.Row {
	repeated := 0
	for _, c := range results {
		repeated += c.Repeated
	}
	full := paperMNIST().Optimizer.Rounds
	row := report.Row{Cells: []string{name, fmt.Sprint(sigma), "–", "–", fmt.Sprint(repeated)}}
	p, ok := paper[sigma]
	if !ok {
		if verdict, _ := unjudged(results, full, data); verdict == report.None {
			row.Cells[3] = accuracyText(results)
		}
		return row
	}
	row.Cells[2], row.Against = percent(p), report.PaperValue
	row.Cells[3], row.Verdict, row.Why = judgedAccuracy(results, full, p, data)
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
	row := report.Row{Cells: []string{name, fmt.Sprint(sigma), fmt.Sprintf("%.3f", 100*worst), fmt.Sprintf("%.2f", worstEps), fmt.Sprintf("%.3f", squares)}, Verdict: report.Same, Against: report.Control}
	if worst >= pairTolerance {
		row.Verdict, row.Why = report.Differs, "0.2 points or more"
	}
	return row
}

// lossCurve draws the median over seeds with its quartiles.
func lossCurve(name string, results []cellResult, color chart.Color) []chart.Series {
	var rows [][]float64
	for _, c := range results {
		var losses []float64
		for _, l := range c.Loss {
			losses = append(losses, float64(l))
		}
		rows = append(rows, losses)
	}
	return spreadCurve(name, rows, func(k int) float64 { return float64(k + 1) }, color, false)
}

// parameters makes Table II.
func (r *reproduction) parameters(ctx context.Context) (report.Section, error) {
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
		bytes, uplink := set.CiphertextBytes(), set.UplinkBits(xmkckks.Whole, 1, 0)
		why, whyExpansion := "the paper's KB are 1,024 bytes here", "the paper takes the 109 KB for 109,000 bytes here"
		if set.N == 8192 {
			why, whyExpansion = "the paper's KB are 1,000 bytes here, and 1,024 at n = 4096", ""
		}
		t.Rows = append(t.Rows,
			report.Row{Cells: []string{"ciphertext", n, p.size, fmt.Sprintf("%d bytes", bytes)}, Verdict: same(bytes == p.ciphertext), Against: report.PaperValue, Why: why},
			report.Row{Cells: []string{"expansion of 8 bytes", n, report.Number(p.expansion, 3), report.Number(set.ExpansionFactor(), 3)}, Verdict: same(near(set.ExpansionFactor(), p.expansion, 0.005)), Against: report.PaperValue, Why: whyExpansion},
			report.Row{Cells: []string{"uplink a round and device", n, p.uplink, fmt.Sprintf("%d bits", uplink)}, Verdict: same(near(float64(uplink)/1e6, p.bits, 0.02)), Against: report.PaperValue},
			report.Row{Cells: []string{"transmission at 1 THz", n, fmt.Sprintf("%.1f µs", 1e6*p.ttx), fmt.Sprintf("%.3f µs", 1e6*setup.Airtime(uplink, 1e12))}, Verdict: same(near(setup.Airtime(uplink, 1e12), p.ttx, 0.02)), Against: report.PaperValue},
			report.Row{Cells: []string{"security by the HE standard of 2018", n, "128 bits", set.Security().ByStandard()}, Verdict: same(set.Security().MeetsStandard()), Against: report.PaperValue, Why: set.Security().Caveat()},
			report.Row{Cells: []string{"security by the tables of 2024", n, "", set.Security().ByNewer()}, Verdict: report.None, Why: "eprint 2024/463: later than what the paper cites"},
		)
	}
	s.Findings = tableFindings(t)
	s.Blocks = append(s.Blocks, t, report.Paragraph("The remaining row of Table II, the encryption time (23.92 ms and 55.56 ms in the paper), is what a clock gives: it is in timing.md, beside that of lattigo's own encryptor on the same machine."))
	rho, why, err := r.noiseFloors(ctx)
	if err != nil {
		return s, err
	}
	s.Findings = append(s.Findings, tableFindings(rho)...)
	s.Blocks = append(s.Blocks, rho, why)
	return s, r.timeEncryption()
}

// tableFindings makes a table of figure, n, paper and here findings, a line each.
func tableFindings(t report.Table) []report.Finding {
	var out []report.Finding
	for _, row := range t.Rows {
		if row.Verdict == report.None {
			continue
		}
		here, _, _ := strings.Cut(row.Cells[3], ";") // the rest is in the table
		out = append(out, report.Finding{What: row.Cells[0] + ", n = " + row.Cells[1], Paper: row.Cells[2], Here: here, Verdict: row.Verdict})
	}
	return out
}

// mostRhoSeeds bounds the seeds over which the decoded noise is measured.
const mostRhoSeeds = 5

// noiseFloors sets rho of Table II against Eq. 21: with the variance of Appendix B,
// with that of this program's design, and with the one measured over the rounds of
// encrypted runs.
func (r *reproduction) noiseFloors(ctx context.Context) (report.Table, report.List, error) {
	var why report.List
	n := min(mostRhoSeeds, r.opt.Seeds)
	t := report.Table{
		Caption: fmt.Sprintf("rho of Table II by Eq. 21, MNIST, sigma = 1, eta0 = gamma0 = 0.05, with L and d of these data, and the decoded noise variance that goes into it. Measured: the mean of eps^2 over the rounds of encrypted runs, whole form, %s.", seedsText(n)),
		Head:    []string{"figure", "n", "paper", "here"},
	}
	var list []series
	for _, system := range paperSystems()[:2] {
		list = append(list, series{"rho, " + system.name, system.configure(paperMNIST(), 1), n})
	}
	found, err := r.all(ctx, list)
	if err != nil {
		return t, why, err
	}
	for k, system := range paperSystems()[:2] {
		c, results := list[k].cfg, found[k]
		s, err := r.lab().New(r.shortened(c))
		if err != nil {
			return t, why, err
		}
		dim := s.Task.Model.Dim()
		l, errL := theory.LogisticSmoothness(s.Task.Train, s.Task.Shards)
		rows, err := statedNoises(l, dim)
		if err := errors.Join(errL, err, s.Close()); err != nil {
			return t, why, err
		}
		f := rows[slices.IndexFunc(rows, func(f statedNoise) bool { return f.ParameterSet == system.set && f.Sigma == 1 })]
		why = append(why, fmt.Sprintf("n = %d: Eq. 21 multiplies the variance by L b_2^2 eta_0/(2 b_1 gamma_0) = %s, with L = %s, a quarter of the largest eigenvalue of the sum over devices of the mean of (x, 1)(x, 1)^T in these data, and b_2^2 = d = %d. Table II's rho is %s times the variance that the numerical results state for Omega = 1, and Omega is %v here.",
			f.N, report.Number(f.Factor, 3), report.Number(l, 3), dim, report.Number(f.TableFactor, 2), f.Omega))
		t.Rows = append(t.Rows, noiseRows(f, s.Design.DecodedStd(), meanSquareEps(results), s.Channel.Alpha(), func(variance float64) float64 {
			return theory.NoiseFloor(l, 1, float64(dim), variance, c.Optimizer.Eta0, c.Optimizer.Gamma0)
		})...)
	}
	return t, append(why, "The gains of this program lie on a lattice of 1/alpha, as the ring asks for: the ring sees alpha h_i, and the decoded variance grows by alpha^2. Appendix B has continuous gains, alpha = 1."), nil
}

// meanSquareEps returns the mean of eps^2 over all rounds of all runs.
func meanSquareEps(results []cellResult) float64 {
	sum := 0.0
	for _, c := range results {
		sum += float64(c.EpsVariance) / float64(len(results))
	}
	return sum
}

// noiseRows are the rows of one parameter set.
func noiseRows(f statedNoise, std, measured, alpha float64, rho func(variance float64) float64) []report.Row {
	n, designed := fmt.Sprint(f.N), std*std
	stated := f.Stated[len(f.Stated)-1].Variance
	table := "~ " + report.Number(f.TableRho, 1)
	row := func(name, paper string, value float64, verdict report.Verdict, why string) report.Row {
		out := report.Row{Cells: []string{name, n, paper, report.Number(value, 2)}, Verdict: verdict, Why: why}
		if verdict != report.None {
			out.Against = report.PaperValue
		}
		return out
	}
	times := func(x float64) string { return report.Number(x/f.TableRho, 2) + " times Table II's" }
	return []report.Row{
		row("variance of eps by Appendix B, the paper's constants", "~ "+report.Number(stated, 2), f.Variance, same(near(f.Variance, stated, 0.5)), fmt.Sprintf("the numerical results' value times Omega^2, %.2g times the formula's", stated/f.Variance)),
		row(fmt.Sprintf("variance of eps by this program's design, alpha = %v", alpha), "–", designed, report.None, "the samplers' own variances, and gains alpha h_i"),
		row("variance of eps, measured", "–", measured, report.None, fmt.Sprintf("%.3g times the design's", measured/designed)),
		row("rho by Eq. 21 with Appendix B", table, f.Rho, same(near(f.Rho, f.TableRho, 0.5)), times(f.Rho)),
		row("rho by Eq. 21 with the design", table, rho(designed), same(near(rho(designed), f.TableRho, 0.5)), times(rho(designed))),
		row("rho by Eq. 21, measured", table, rho(measured), same(near(rho(measured), f.TableRho, 0.5)), times(rho(measured))),
	}
}

func same(ok bool) report.Verdict {
	if ok {
		return report.Same
	}
	return report.Differs
}

// near reports whether two figures agree within a relative error.
func near(a, b, within float64) bool { return math.Abs(a-b) <= within*math.Abs(b) }
