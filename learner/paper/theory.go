package paper

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"ringwave/learner"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/report"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/theory"
	"ringwave/radio/intake"
)

// theory makes the section on Theorems 1 and 2.
func (r *reproduction) theory(ctx context.Context) (report.Section, error) {
	s := report.Section{Title: "Convergence: Lemma 1 and Theorem 2"}
	options := theory.Whole(seedOf("theory"))
	if r.opt.Quick || r.opt.Rounds > 0 {
		options = theory.Quick(seedOf("theory"))
	}
	found, err := r.verified(ctx, options)
	if err != nil {
		return s, err
	}
	s.Blocks = append(s.Blocks, report.Paragraph("Test problems of which L, b and F* are known: min over k of E||grad F||^2 against R/sqrt(K) + rho, with gains N(mu, sigma^2) and decoded noise. The same means that the bound holds; the last column says by how much it could be smaller (of a minimum that is not biased by having looked for it: k is of one half of the seeds, the value of the other), and a bound that is so far off says little of how fast these runs learn."))
	for k, setting := range found.Settings {
		measured := chart.Series{Name: "measured", Style: chart.LinePoints, Color: chart.Blue}
		bound := chart.Series{Name: "Theorem 2: R/√K + ρ", Dashed: true, Color: chart.Vermillion}
		for _, p := range setting.Points {
			measured.X, measured.Y = append(measured.X, float64(p.Rounds)), append(measured.Y, p.Minimum)
			bound.X, bound.Y = append(bound.X, float64(p.Rounds)), append(bound.Y, p.Bound)
		}
		f, err := r.figure(fmt.Sprintf("theory-%d", k+1), setting.Name+": measured against Theorem 2.", chart.Figure{XLabel: "rounds K", YLabel: "least mean squared gradient norm of F", LogX: true, LogY: true, Series: []chart.Series{bound, measured}})
		if err != nil {
			return s, err
		}
		s.Blocks = append(s.Blocks, boundTable(setting), f)
	}
	s.Findings = []report.Finding{boundFinding(found.Settings)}
	s.Blocks = append(s.Blocks, report.List(found.Findings))
	return s, nil
}

// boundTable sets what was measured beside Theorem 2's bound, and says by how much that
// is larger.
func boundTable(setting theorySetting) report.Table {
	t := report.Table{Caption: setting.Name + ".", Head: []string{"K", "min E||grad F||^2", "standard error", "bound R/sqrt(K) + rho", "minimum, held out", "bound over that"}}
	for _, p := range setting.Points {
		t.Rows = append(t.Rows, report.Row{
			Cells:   []string{fmt.Sprint(p.Rounds), report.Number(p.Minimum, 3), report.Number(p.StdErr, 2), report.Number(p.Bound, 3), report.Number(p.HeldOut, 3), report.Number(p.ratio(), 2)},
			Verdict: same(p.Below), Against: report.Statement,
		})
	}
	return t
}

// boundFinding says where the bound holds, and how far above it is.
func boundFinding(settings []theorySetting) report.Finding {
	below, points, tightest, loosest := 0, 0, math.Inf(1), 0.0
	for _, setting := range settings {
		for _, p := range setting.Points {
			points++
			if p.Below {
				below++
			}
			tightest, loosest = math.Min(tightest, p.ratio()), math.Max(loosest, p.ratio())
		}
	}
	return report.Finding{
		What: "min E||grad F||^2 at most R/sqrt(K) + rho", Paper: "always", Verdict: same(below == points),
		Here: fmt.Sprintf("at %d of %d points, where the bound is %s to %s times what is measured", below, points, report.Number(tightest, 2), report.Number(loosest, 2)),
	}
}

// theoryFound is what the section takes of a theory.Report.
type theoryFound struct {
	Settings []theorySetting `json:"settings"`
	Findings []string        `json:"findings"`
}

type theorySetting struct {
	Name   string        `json:"name"`
	Points []theoryPoint `json:"points"`
}

type theoryPoint struct {
	Rounds                 int
	Minimum, StdErr, Bound float64
	Below                  bool
	// HeldOut is the minimum without the bias of having looked for it: see theory.Point.
	HeldOut float64
}

// ratio is by how much the bound is above what was measured.
func (p theoryPoint) ratio() float64 { return p.Bound / p.HeldOut }

// theoryVersion is part of the key of what is kept: raise it when what theory.Verify
// computes changes.
const theoryVersion = 3

// verified runs theory.Verify, or gives what an earlier sitting's run of it gave.
func (r *reproduction) verified(ctx context.Context, o theory.Options) (theoryFound, error) {
	var out theoryFound
	key := sha256.Sum256(fmt.Appendf(nil, "theory %d: %v %d %v %d %d %x", theoryVersion, o.Rounds, o.Seeds, o.RingRounds, o.RingSeeds, o.LemmaDraws, o.Seed))
	path := filepath.Join(r.dir, "cache", fmt.Sprintf("theory-%x.json", key[:16]))
	if data, err := intake.ReadFile(path, mostKept(0)); err == nil && json.Unmarshal(data, &out) == nil {
		return out, nil
	}
	said := time.Now()
	found, err := theory.Verify(ctx, o, openTheoryLink, func(done, total int) {
		if now := time.Now(); now.Sub(said) > sayEvery {
			fmt.Fprintf(r.stderr, "theory: %d of %d rounds\n", done, total)
			said = now
		}
	})
	if err != nil {
		return out, err
	}
	out = theoryFound{Findings: found.Findings()}
	for _, s := range found.Settings {
		kept := theorySetting{Name: s.Name}
		for _, p := range s.Points {
			kept.Points = append(kept.Points, theoryPoint{p.Rounds, p.Minimum, p.StdErr, p.Bound, p.Below, p.HeldOut})
		}
		out.Settings = append(out.Settings, kept)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return out, fmt.Errorf("keeping what theory gave: %w", err)
	}
	return out, runfolder.WriteFile(path, data)
}

// disagreements computes where the paper's numbers disagree with its formulas.
func (r *reproduction) disagreements(ctx context.Context) (report.Section, error) {
	s := report.Section{Title: "Where the paper's own numbers disagree"}
	c := r.shortened(paperMNIST())
	task, err := r.lab().LoadTask(c, seedOf("task"), nil)
	if err != nil {
		return s, err
	}
	l, err := theory.LogisticSmoothness(task.Train, task.Shards)
	if err != nil {
		return s, err
	}
	rows, err := statedNoises(l, task.Model.Dim())
	if err != nil {
		return s, err
	}
	t := report.Table{Caption: "Decoded noise variance by the formula of Appendix B with the paper's own parameters, beside the values in its text, and rho by Eq. 21 with L of this data set.",
		Head: []string{"n", "sigma", "by formula", "over Omega^2", "with the samplers' variances", "stated", "rho by formula", "rho in Table II"}}
	for _, f := range rows {
		var stated []string
		agree := 0
		for _, v := range f.Stated {
			if near(v.Ratio, 1, 0.1) {
				agree++
			}
			stated = append(stated, fmt.Sprintf("%s (%s, %.2g times the formula)", report.Number(v.Variance, 2), v.Where, v.Ratio))
		}
		s.Findings = append(s.Findings, report.Finding{What: fmt.Sprintf("decoded noise variance, n = %d, sigma = %v", f.N, f.Sigma), Paper: "three stated values", Here: fmt.Sprintf("%d of them are its own formula's, %s", agree, report.Number(f.Variance, 2)), Verdict: same(agree == len(f.Stated))})
		t.Rows = append(t.Rows, report.Row{
			Cells:   []string{fmt.Sprint(f.N), fmt.Sprint(f.Sigma), report.Number(f.Variance, 3), report.Number(f.PerOmega2, 3), report.Number(f.Sampled, 3), strings.Join(stated, "; "), report.Number(f.Rho, 3), report.Number(f.TableRho, 1)},
			Verdict: same(agree == len(f.Stated)), Against: report.PaperValue, Why: fmt.Sprintf("%d of %d stated values are the formula's, within 10 %%", agree, len(f.Stated)),
		})
	}
	s.Blocks = append(s.Blocks, t)
	o := c.Optimizer
	s.Blocks = append(s.Blocks,
		report.Paragraph(fmt.Sprintf("Step sizes of the experiments, eta_k = %v (1+k)^-%v and gamma_k = %v (1+k)^-%v. Theorem 1 is about such laws and asks for Assumption 3.3 and a finite sum of eta_k^2; Theorem 2 is not about them, as its laws are constant over a run.", o.Eta0, o.EtaPower, o.Gamma0, o.GammaPower)),
		conditionList(theory.PowerConditions(learner.PowerLaw{X0: o.Eta0, P: o.EtaPower}, learner.PowerLaw{X0: o.Gamma0, P: o.GammaPower})),
		report.Paragraph(fmt.Sprintf("Step sizes of Theorem 2, eta_k = %v K^-1/4 and gamma_k = %v K^-1/4 in all of K rounds. It asks for Assumption 3.3, as far as sums over K rounds grow or stay bounded with K; Theorem 1, and with it a finite sum of eta_k^2, is not about them: what that sum adds is rho.", o.Eta0, o.Gamma0)),
		conditionList(theory.HorizonConditions(o.Eta0, o.Gamma0)))
	rounding, err := r.latticeTable(ctx)
	if err != nil {
		return s, err
	}
	s.Blocks = append(s.Blocks, rounding)
	return s, nil
}

func conditionList(conditions []theory.Condition) report.List {
	var out report.List
	for _, c := range conditions {
		out = append(out, c.String())
	}
	return out
}

// latticeTable shows that rounding recovers ring elements on a lattice of gains alone.
func (r *reproduction) latticeTable(ctx context.Context) (report.Table, error) {
	t := report.Table{Caption: "Rounding the superposition recovers the ring element only if every gain is an integer multiple of 1/alpha: 20 rounds of MNIST at (4096, 109), sigma = 1.",
		Head: []string{"gains", "largest |eps|"}}
	gains := []string{"on a lattice of 2^-8", "real (pilot error 0.1)"}
	var list []series
	for k, aggregator := range []string{config.XMKCKKS, config.ZF} {
		c := paperMNIST()
		c.Experiment.Aggregator, c.Optimizer.Rounds = aggregator, 20
		c.Encryption.ParameterSet, c.Encryption.Form = "paper-4096", "whole"
		list = append(list, series{"lattice, " + gains[k], c, 1})
	}
	found, err := r.all(ctx, list)
	if err != nil {
		return t, err
	}
	for k, results := range found {
		t.Rows = append(t.Rows, report.Row{Cells: []string{gains[k], report.Number(largestEps(results), 3)}})
	}
	return t, nil
}

func largestEps(results []cellResult) float64 {
	worst := 0.0
	for _, c := range results {
		worst = math.Max(worst, float64(c.LargestEps))
	}
	return worst
}
