package experiment_test

import (
	"math"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/radio/intake"
)

// A configuration that a program makes itself is held to what a file is held to.
func TestNewChecksTheConfiguration(t *testing.T) {
	for key, change := range map[string]func(c *experiment.Config){
		"devices.count":         func(c *experiment.Config) { c.Devices.Count = -1 },
		"optimizer.rounds":      func(c *experiment.Config) { c.Optimizer.Rounds = 0 },
		"channel.mean":          func(c *experiment.Config) { c.Channel.Mean = math.NaN() },
		"experiment.aggregator": func(c *experiment.Config) { c.Experiment.Aggregator = "nonesuch" },
		"task.model":            func(c *experiment.Config) { c.Task.Model = "nonesuch" },
		"task.dataset":          func(c *experiment.Config) { c.Task.Dataset = "nonesuch" },
		"link.base":             func(c *experiment.Config) { c.Link.Base = 0 },
	} {
		t.Run(key, func(t *testing.T) {
			c := config.Default()
			change(&c)
			e, err := experiment.New(c)
			if e != nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), key) {
				t.Errorf("%v", err)
			}
		})
	}
}
