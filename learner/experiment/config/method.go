package config

import "fmt"

// Values of optimizer keys that are not the paper's.
const (
	OneSided = "one-sided" // of estimator
	FZOO     = "fzoo"      // of step
	Gradient = "gradient"  // of estimate
	Theorem2 = "theorem2"  // of step_law
	Constant = "constant"
	Cosine   = "cosine"
)

// Method returns in words what of estimator and step is not the paper's; nothing where all is.
func (o Optimizer) Method() (words []string) {
	if o.Estimator == OneSided {
		words = append(words, "one-sided differences")
	}
	if o.Step == FZOO {
		words = append(words, "FZOO steps")
	}
	if o.Estimate == Gradient {
		words = append(words, "steps in units of the gradient")
	}
	if o.Momentum > 0 {
		words = append(words, fmt.Sprintf("momentum %v", o.Momentum))
	}
	return words
}

// NeedsRounds reports whether the steps of all rounds depend on how many there are.
func (o Optimizer) NeedsRounds() bool { return o.StepLaw == Theorem2 || o.StepLaw == Cosine }

// checkMethod refuses estimators and steps that do not go with each other or with the system.
func (c *Config) checkMethod() error {
	o, system := c.Optimizer, c.System()
	switch {
	case o.Estimator == OneSided && system.OnePoint:
		return c.wrong("optimizer.estimator", `"two-point" with experiment.aggregator = %q, which sends one loss in place of a difference`, system.Name)
	case o.Estimator == OneSided && o.TrainLoss == "pairs":
		return c.wrong("optimizer.train_loss", `"exact" with optimizer.estimator = "one-sided", which has the loss at theta anyway, and no pairs`)
	case o.Step == FZOO && o.PackedDirections < 2:
		return c.wrong("optimizer.packed_directions", `2 or more with optimizer.step = "fzoo", which divides by the standard deviation of so many scalars`)
	case o.Step == FZOO && o.Estimate == Gradient:
		return c.wrong("optimizer.estimate", `"sum" with optimizer.step = "fzoo", whose step is the same whatever the scalars are multiplied by`)
	case !system.Gradients:
		return nil
	}
	for _, k := range []struct {
		key   string
		paper any
		is    bool
	}{
		{"optimizer.estimator", `"two-point"`, o.Estimator != OneSided},
		{"optimizer.step", `"plain"`, o.Step != FZOO},
		{"optimizer.estimate", `"sum"`, o.Estimate != Gradient},
		{"optimizer.momentum", 0, o.Momentum == 0},
	} {
		if !k.is {
			return c.wrong(k.key, "%v with experiment.aggregator = %q, which sends gradients, and no scalars", k.paper, system.Name)
		}
	}
	return nil
}
