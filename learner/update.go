package learner

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// StepRule is what a round's step makes of its scalars M_p, of P directions Phi_p.
type StepRule int

const (
	// PlainStep is the paper's, eta_k/P sum_p M_p Phi_p.
	PlainStep StepRule = iota
	// FZOO divides the step by the standard deviation of the scalars,
	// sigma_k^2 = 1/(P-1) sum_p (M_p - mean)^2, which all that hear them know: the step of
	// FZOO (ICLR 2026), there of one-sided differences on one machine. It is the same
	// whatever all M_p are multiplied by. Where they are all equal there is no step.
	FZOO
)

// ParseStepRule returns the rule named plain or fzoo.
func ParseStepRule(name string) (StepRule, error) {
	for _, s := range []StepRule{PlainStep, FZOO} {
		if name == s.String() {
			return s, nil
		}
	}
	return 0, fmt.Errorf("the step is %q; allowed is plain or fzoo", name)
}

// String returns the name that ParseStepRule takes.
func (s StepRule) String() string {
	switch s {
	case PlainStep:
		return "plain"
	case FZOO:
		return "fzoo"
	}
	return fmt.Sprintf("StepRule(%d)", int(s))
}

// leastWeight is the weight of a round's scalars in a later step from which on momentum leaves
// them out.
const leastWeight = 0.01

// maxRemembered is the most scalars that momentum may keep, of all rounds together.
const maxRemembered = 1 << 20

// Window returns W, of how many rounds' scalars a step is made: the least with
// Momentum^W <= 1 %.
func (c Config) Window() int {
	w := 1
	for x := c.Momentum; x > leastWeight; x *= c.Momentum {
		w++
	}
	return w
}

// checkUpdate refuses what no step can be made by.
func (c Config) checkUpdate() error {
	if c.Step < PlainStep || c.Step > FZOO {
		return fmt.Errorf("the step is %v; allowed is plain or fzoo", c.Step)
	}
	if c.Step == FZOO && c.Packed < 2 {
		return fmt.Errorf("the packed directions are %d with the step fzoo; allowed is 2 or more, of whose scalars there is a standard deviation", max(c.Packed, 1))
	}
	if c.MeanOf < 0 {
		return fmt.Errorf("the estimate is divided by %d devices; allowed is 0 or more", c.MeanOf)
	}
	if !(c.Momentum >= 0 && c.Momentum <= MaxMomentum) {
		return fmt.Errorf("the momentum is %v; allowed is 0 to %v", c.Momentum, MaxMomentum)
	}
	return c.CheckMomentum()
}

// CheckMomentum refuses steps that are made of more scalars than are kept.
func (c Config) CheckMomentum() error {
	if kept := c.Window() * max(c.Packed, 1); c.Momentum > 0 && kept > maxRemembered {
		return fmt.Errorf("the momentum is %v with %d packed directions, whose steps are made of %d scalars; allowed is %d, of a smaller momentum or fewer directions", c.Momentum, max(c.Packed, 1), kept, maxRemembered)
	}
	return nil
}

// paper reports whether estimate and step are those of the paper or of OnePoint.
func (c Config) paper() bool {
	return c.Estimator != OneSided && c.Step == PlainStep && c.MeanOf == 0 && c.Momentum == 0
}

// weights returns by how much a round's scalars move theta along each direction, but for
// eta_k/P. It may write into dst. It returns nil for no step.
func (c *Config) weights(dst []float64, k int, m []float64) []float64 {
	switch {
	case m == nil:
		return nil
	case c.Step == FZOO:
		return standardised(dst, m)
	case c.MeanOf > 0:
		unit := c.Estimator.Slope() * c.Gamma.At(k) * float64(c.MeanOf)
		for p, x := range m {
			dst[p] = x / unit
		}
		return dst
	}
	return m
}

// standardised returns the values over their standard deviation; nil where that is 0. They are
// brought to the largest first: of equal values each is 1 then, and no square overflows.
func standardised(dst, m []float64) []float64 {
	largest, mean, square := 0.0, 0.0, 0.0
	for _, x := range m {
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 {
		return nil
	}
	for p, x := range m {
		dst[p] = x / largest
		mean += dst[p]
	}
	mean /= float64(len(m))
	for _, x := range dst {
		square += (x - mean) * (x - mean)
	}
	std := math.Sqrt(square / float64(len(m)-1))
	if std == 0 {
		return nil
	}
	for p := range dst {
		dst[p] /= std
	}
	return dst
}

// steps calls step with the size of each step that round k, of scalars m, makes: along each of
// its directions and then, with momentum beta, along those of the rounds before, which are
// drawn again: of the j-th before eta_k/P beta^j times its weights. phi has the directions.
func (r *Replica) steps(k int, m []float64, step func(direction int, size float64)) {
	eta, decay := r.cfg.Eta.At(k)/float64(len(r.phi)), 1.0
	for j := range min(r.window, len(r.past)+1) {
		if j > 0 {
			m, decay = r.past[len(r.past)-j], decay*r.cfg.Momentum
		}
		weights := r.cfg.weights(r.weights, k-j, m)
		if weights == nil {
			continue
		}
		r.draw(k - j)
		for p, x := range weights {
			step(p, eta*(decay*x))
		}
	}
}

// remember keeps a round's scalars for the steps of later ones, with momentum. nil is of a
// round that made none.
func (r *Replica) remember(m []float64) {
	if r.window == 1 {
		return
	}
	if len(r.past) == r.window-1 {
		r.past = slices.Delete(r.past, 0, 1)
	}
	r.past = append(r.past, slices.Clone(m))
}

// restore is Restore with the scalars of the rounds before, from the earliest on, which it
// takes a copy of.
func (r *Replica) restore(round int, theta []float64, past [][]float64) error {
	if err := r.checkState(round, theta); err != nil {
		return err
	}
	if want := min(round, r.window-1); len(past) != want {
		return fmt.Errorf("restoring training: the scalars of %d rounds; allowed is %d, of which the next step is made", len(past), want)
	}
	for i, m := range past {
		if m != nil && len(m) != len(r.phi) {
			return fmt.Errorf("restoring training: %d scalars of round %d; allowed is %d, or none where it was skipped", len(m), round-len(past)+1+i, len(r.phi))
		}
		if slices.ContainsFunc(m, func(x float64) bool { return !isFinite(x) }) {
			return fmt.Errorf("restoring training: a scalar of round %d is no finite number", round-len(past)+1+i)
		}
	}
	r.round = round
	copy(r.theta, theta)
	r.past = copied(past)
	r.serial++
	return nil
}

// copied returns a copy of rounds' scalars, nil for none.
func copied(past [][]float64) (out [][]float64) {
	for _, m := range past {
		out = append(out, slices.Clone(m))
	}
	return out
}

// errTheta is that of theta where it is not all of a model.
var errTheta = errors.New("restoring training: theta alone of a model with momentum, whose next step is made of earlier rounds' scalars, too; allowed is to replay these rounds")
