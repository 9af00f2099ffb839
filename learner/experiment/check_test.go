package experiment_test

import (
	"math"
	"strings"
	"testing"

	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/model"
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

// What a Lab adds has a name of its own and can be made: nothing is shadowed, and nothing
// fails only when it is needed.
func TestLabIsChecked(t *testing.T) {
	made := func(experiment.Setting) (learner.Aggregator, []string, error) { return mean{}, nil, nil }
	system := func(name string) experiment.System {
		return experiment.System{System: config.System{Name: name}, New: made}
	}
	encrypts := system("own")
	encrypts.Encrypts = true
	for want, lab := range map[string]experiment.Lab{
		`a system of the name "none", which another has`:   {Systems: []experiment.System{system("none")}},
		`a system of the name "ezofl", which another has`:  {Systems: []experiment.System{system("ezofl")}},
		`a system of the name "own", which another has`:    {Systems: []experiment.System{system("own"), system("own")}},
		`a system without a name`:                          {Systems: []experiment.System{system("")}},
		`a system of the name "own" that nothing makes`:    {Systems: []experiment.System{{System: config.System{Name: "own"}}}},
		`a system of the name "own" with New and Encrypts`: {Systems: []experiment.System{encrypts}},
		`a model of the name "lenet", which another has`:   {Models: []experiment.Model{{Name: "lenet"}}},
		`a model of the name "own" that nothing makes`:     {Models: []experiment.Model{{Name: "own"}}},
		`a data set of the name "idx", which another has`:  {DataSets: []experiment.DataSet{{Name: "idx"}}},
		`a data set of the name "own" that nothing makes`:  {DataSets: []experiment.DataSet{{Name: "own"}}},
	} {
		if _, err := lab.Load("../../hw-configs/loopback.toml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load: %v, in place of %s", err, want)
		}
		if _, err := lab.New(config.Default()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, in place of %s", err, want)
		}
	}
}

// large is a model that says that it has so many parameters.
type large struct {
	model.Model
	dim int
}

func (l large) Dim() int { return l.dim }

// A model whose checkpoints could not be read back is refused before it has made any.
func TestModelsThatAreTooLarge(t *testing.T) {
	experimenttest.NoData(t)
	lab := experiment.Lab{Models: []experiment.Model{{Name: "large", New: func(_ config.Task, set *dataset.Set) (model.Model, error) {
		m, err := model.NewLogistic(set.Dim)
		return large{m, runfolder.MaxTheta + 1}, err
	}}}}
	c, err := lab.Load("../../hw-configs/loopback.toml", "task.dataset=strokes", "task.model=large")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lab.New(c); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), `task.model = "large" has 67108865 parameters with these samples; allowed is at most 67108864`) {
		t.Errorf("got %v", err)
	}
}
