package theory

import (
	"fmt"
	"math"
	"strings"
)

// Findings says in a sentence each what the report shows, setting by setting.
func (r Report) Findings() []string {
	var all []string
	for _, s := range r.Settings {
		for _, f := range s.findings() {
			all = append(all, s.Name+": "+f)
		}
	}
	return all
}

// Holds reports whether everything came out as the theory promises: every point below
// its bound, within the ball, Lemma 1 at both places, and over the ring, too.
func (r Report) Holds() bool {
	for _, s := range r.Settings {
		if s.below() < len(s.Points) || !s.inBall() || !s.AtStart.Holds() || !s.AtMinimum.Holds() {
			return false
		}
		for _, p := range s.Ring {
			if p.Ring > p.Bound {
				return false
			}
		}
	}
	return true
}

func (r *SettingReport) below() int {
	n := 0
	for _, p := range r.Points {
		if p.Below {
			n++
		}
	}
	return n
}

func (r *SettingReport) inBall() bool {
	for _, p := range r.Points {
		if p.Reached > r.Problem.Radius {
			return false
		}
	}
	return true
}

func (r *SettingReport) findings() []string {
	f := []string{r.boundFinding(), r.ballFinding()}
	f = append(f, r.slopeFindings()...)
	f = append(f, r.floorFinding())
	for _, p := range r.Ring {
		f = append(f, fmt.Sprintf("over the protocol's own rounds, K = %d, %d seeds: min E||grad F||^2 is %.4g, without the ring %.4g, bound %.4g; the courses differ by at most %.2g of ||grad F(theta_1)||^2, and epsilon is %.3f +- %.3f of its predicted deviation",
			p.Rounds, p.Seeds, p.Ring, p.Statistics, p.Bound, p.Difference, p.EpsRatio, p.EpsRatioErr))
	}
	return append(f, lemmaFinding("theta_1", r.AtStart), lemmaFinding("the minimiser", r.AtMinimum))
}

func (r *SettingReport) boundFinding() string {
	loosest, tightest, informative := 0.0, math.Inf(1), 0
	for _, p := range r.Points {
		ratio := p.Bound / p.HeldOut
		loosest, tightest = max(loosest, ratio), min(tightest, ratio)
		if p.Informative && informative == 0 {
			informative = p.Rounds
		}
	}
	says := "at none of these K does the bound say more than ||grad F(theta_1)||^2"
	if informative > 0 {
		says = fmt.Sprintf("the bound says more than ||grad F(theta_1)||^2 from K = %d on", informative)
	}
	return fmt.Sprintf("min E||grad F||^2 stays below R/sqrt(K) + rho (R = %.4g, rho = %.3g) at %d of %d horizons from K = %d to %d; the bound is %.3g to %.3g times what is measured; %s",
		r.Rate.R, r.Rate.Rho, r.below(), len(r.Points), r.Points[0].Rounds, r.Points[len(r.Points)-1].Rounds, tightest, loosest, says)
}

func (r *SettingReport) ballFinding() string {
	reached := 0.0
	for _, p := range r.Points {
		reached = max(reached, p.Reached)
	}
	if !r.inBall() {
		return fmt.Sprintf("a run went %.3g from the minimiser, out of the ball of radius %.3g in which Assumption 3.2 holds: there the bound has no proof", reached, r.Problem.Radius)
	}
	return fmt.Sprintf("all runs stayed within %.3g of the minimiser, in the ball of radius %.3g in which Assumption 3.2 holds", reached, r.Problem.Radius)
}

func (r *SettingReport) slopeFindings() []string {
	var slopes []string
	dropped := 0
	for _, f := range r.Fits {
		dropped = max(dropped, f.Dropped)
		if f.Known {
			slopes = append(slopes, fmt.Sprintf("%s from K = %d on %.3f +- %.3f", f.Of, f.From, f.Slope, f.StdErr))
		}
	}
	var all []string
	if len(slopes) > 0 {
		all = append(all, "slope of log(min E||grad F||^2 - rho) against log K, of which Theorem 2 promises -1/2 or steeper: "+strings.Join(slopes, ", "))
	}
	if dropped > 0 {
		all = append(all, fmt.Sprintf("at up to %d horizons the measured value is already below rho, and its excess has no logarithm: rho is an upper bound and not where the course ends", dropped))
	}
	return all
}

func (r *SettingReport) floorFinding() string {
	s := fmt.Sprintf("rho is %.3g", r.Floor.Rho)
	if r.Floor.Known {
		s += fmt.Sprintf(", the floor fitted to the course %.3g +- %.2g", r.Floor.Value, r.Floor.StdErr)
	}
	if r.Floor.HasLimit {
		s += fmt.Sprintf(", the floor in closed form %.3g: %.3g of rho", r.Floor.Limit, r.Floor.Limit/r.Floor.Rho)
	}
	return s
}

func lemmaFinding(where string, l LemmaCheck) string {
	verdict := "holds"
	if !l.Holds() {
		verdict = "is BROKEN"
	}
	return fmt.Sprintf("Lemma 1 %s at %s, gamma = %.3g: ||delta|| is %.2g summed over all directions and %.2g as measured (chance alone %.2g), bound %.3g; E||g||^2 is %.4g, measured %.4g +- %.2g, bound %.4g",
		verdict, where, l.Gamma, l.DeltaExact, l.Delta, l.DeltaErr, l.DeltaBound, l.SecondExact, l.Second, l.SecondErr, l.SecondBound)
}
