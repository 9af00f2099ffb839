package experiment

import (
	"fmt"

	"ringwave/learner"
	"ringwave/learner/experiment/config"
	"ringwave/radio/intake"
)

// StepLaws returns the laws of eta and gamma.
func StepLaws(o config.Optimizer) (eta, gamma learner.StepLaw) {
	eta, gamma = learner.PowerLaw{X0: o.Eta0}, learner.PowerLaw{X0: o.Gamma0}
	switch o.StepLaw {
	case "power":
		eta, gamma = learner.PowerLaw{X0: o.Eta0, P: o.EtaPower}, learner.PowerLaw{X0: o.Gamma0, P: o.GammaPower}
	case config.Theorem2:
		eta, gamma = learner.HorizonLaw{X0: o.Eta0, K: o.Rounds}, learner.HorizonLaw{X0: o.Gamma0, K: o.Rounds}
	case config.Cosine:
		eta = learner.CosineLaw{X0: o.Eta0, K: o.Rounds}
	}
	if o.WarmupRounds > 0 {
		eta = learner.WarmUp{Law: eta, Rounds: o.WarmupRounds}
	}
	return eta, gamma
}

// setMethod sets what devices send, and what a step makes of it.
func setMethod(cfg *learner.Config, c config.Config) (err error) {
	o := c.Optimizer
	if cfg.Estimator, err = learner.ParseEstimator(o.Estimator); err != nil {
		return intake.UserError(err)
	}
	if c.System().OnePoint {
		cfg.Estimator = learner.OnePoint
	}
	if cfg.Step, err = learner.ParseStepRule(o.Step); err != nil {
		return intake.UserError(err)
	}
	if o.Estimate == config.Gradient {
		cfg.MeanOf = c.Devices.Count
	}
	cfg.Momentum = o.Momentum
	if err := cfg.CheckMomentum(); err != nil {
		return intake.UserError(fmt.Errorf("optimizer.momentum, optimizer.packed_directions: %w", err))
	}
	return nil
}

// Passes returns how many forward passes over its batch a device makes in a round: losses
// that it computes.
func Passes(c config.Config) (int, error) {
	cfg, err := learningOf(c)
	return cfg.Passes(), err
}

// methodNotes say what of estimator and step is not the paper's.
func methodNotes(c config.Config) (notes []string) {
	o := c.Optimizer
	if o.Estimator == config.OneSided {
		notes = append(notes, "each device sends f_i(theta + gamma Phi) - f_i(theta), of which f_i(theta) is that of all directions of a round: the estimate is half of the two-point one in the mean, so that the same steps move theta half as far")
	}
	if o.Step == config.FZOO {
		notes = append(notes, fmt.Sprintf("each step is divided by the standard deviation of the %d values of M of its round (FZOO): eta0 is in other units than without", o.PackedDirections))
	}
	if o.Estimate == config.Gradient {
		notes = append(notes, fmt.Sprintf("the estimate is that of the gradient of the mean loss: M is divided by %s N, with N = %d", map[bool]string{true: "gamma_k", false: "2 gamma_k"}[o.Estimator == config.OneSided || c.System().OnePoint], c.Devices.Count))
	}
	if o.Momentum > 0 {
		notes = append(notes, fmt.Sprintf("momentum %v: each step is along the directions of the last %d rounds, which are drawn again; steps of one direction add up to 1/(1-beta) = %.3g of one", o.Momentum, learner.Config{Momentum: o.Momentum}.Window(), 1/(1-o.Momentum)))
	}
	return notes
}
