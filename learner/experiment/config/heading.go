package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Heading says in a line what runs: the title of a run's plots.
func (c Config) Heading() string {
	return fmt.Sprintf("%s: %s, seed %d", c.Experiment.Name, strings.Join(c.Traits(), ", "), c.Experiment.Seed)
}

// CalibrationHeading says in a line what is calibrated, where no system counts.
func (c Config) CalibrationHeading() string {
	return fmt.Sprintf("%s: calibration, %s, seed %d", c.Experiment.Name, strings.Join(c.bench(), ", "), c.Experiment.Seed)
}

// Traits are what a reader asks first of a run: the system, the parameter set where it
// encrypts, the devices and the deviation of their gains.
func (c Config) Traits() []string {
	traits := []string{c.Experiment.Aggregator}
	if c.System().Encrypts {
		traits = append(traits, c.Encryption.ParameterSet)
	}
	if n := c.Optimizer.PackedDirections; n > 1 {
		traits = append(traits, fmt.Sprintf("%d packed directions", n))
	}
	traits = append(traits, c.Optimizer.Method()...)
	if c.System().Ideal {
		return append(traits, c.devices())
	}
	return append(traits, c.bench()...)
}

func (c Config) devices() string { return fmt.Sprintf("N = %d", c.Devices.Count) }

// bench says over what devices send, and how their gains fade where the configuration
// decides that.
func (c Config) bench() []string {
	if c.OverRadios() {
		return []string{"radios", c.devices()}
	}
	return []string{c.Link.Kind + " link", c.devices(), c.fading()}
}

// fading says what sigma is, or what it follows from.
func (c Config) fading() string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	switch per := c.Channel.StdPerDevice; {
	case c.Channel.Model == "rician":
		return "Rician gains, K = " + number(c.Channel.KFactor)
	case c.Channel.Model != "gaussian":
		return c.Channel.Model + " gains"
	case len(per) > 0 && slices.Min(per) < slices.Max(per):
		return fmt.Sprintf("σ = %s to %s", number(slices.Min(per)), number(slices.Max(per)))
	case len(per) > 0:
		return "σ = " + number(per[0])
	}
	return "σ = " + number(c.Channel.Std)
}
