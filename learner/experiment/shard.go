package experiment

import (
	"fmt"

	"ringwave/crypto/keystream"
	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/radio/intake"
)

// Shard is what one device trains on, in a process of its own, loaded: a Task of which
// Train is the device's samples, and that has nothing of the others' and no test set.
type Shard struct {
	*Task
	Index int // the device's, from 0
}

// Shards are the samples that a process of one device or several takes its shards from.
type Shards struct {
	lab    Lab
	config config.Config
	own    bool
	task   *Task
}

// LoadShards loads the samples of devices: the data set of the configuration, shared out as
// in LoadTask by the configuration's seed; or, where a device's data are its own, all
// training samples that its files have. No file of test samples is opened.
func (l Lab) LoadShards(c config.Config, own bool) (*Shards, error) {
	if c.Task.Model == process {
		return &Shards{lab: l, config: c, own: own}, nil
	}
	t, err := l.loadSets(c, rootOf(c), nil, Request{Part: dataset.TrainOnly, Own: own})
	if err != nil {
		return nil, err
	}
	if !own {
		if err := t.share(c, rootOf(c)); err != nil {
			return nil, err
		}
	}
	t.Test = nil
	return &Shards{l, c, own, t}, nil
}

// Of returns what the device of an index from 0 trains on. It keeps nothing of the others'
// samples.
func (s *Shards) Of(index int) (*Shard, error) {
	if n := s.config.Devices.Count; index < 0 || index >= n {
		return nil, intake.UserError(fmt.Errorf("the device's index is %d; allowed is 0 to %d, with devices.count = %d", index, n-1, n))
	}
	if s.config.Task.Model == process {
		return s.process(index)
	}
	t := *s.task
	if !s.own {
		t.Train = t.Train.Subset(t.Shards[index])
	}
	t.Shards = nil
	return &Shard{Task: &t, Index: index}, t.makeModel(s.lab, s.config.Task, t.Train)
}

// LoadShard loads the samples of one device, of an index from 0.
func (l Lab) LoadShard(c config.Config, index int, own bool) (*Shard, error) {
	all, err := l.LoadShards(c, own)
	if err != nil {
		return nil, err
	}
	return all.Of(index)
}

// Member returns the device before its first round. Members of all shards and a Remote of
// the same configuration do together what a run of it does.
func (s *Shard) Member(c config.Config) (*learner.Member, error) {
	cfg, err := remoteLearning(c)
	if err != nil {
		return nil, err
	}
	m, err := learner.NewMember(cfg, learner.MemberTask{Model: s.Model, Samples: s.Train, Index: s.Index, Seed: learnerSeed(rootOf(c))})
	return m, intake.UserError(err)
}

// LoadTest loads what a server of devices that are elsewhere has: the test set, and the
// model. No file of training samples is opened.
func (l Lab) LoadTest(c config.Config) (*Task, error) {
	t, err := l.loadSets(c, rootOf(c), nil, Request{Part: dataset.TestOnly})
	if err != nil {
		return nil, err
	}
	t.Train = nil // which a data set may have loaded all the same
	return t, t.makeModel(l, c.Task, t.Test)
}

// Remote returns the training loop of a server, around an aggregator that has devices
// elsewhere send their values.
func (t *Task) Remote(c config.Config, a learner.Aggregator) (*learner.Trainer, error) {
	cfg, err := remoteLearning(c)
	if err != nil {
		return nil, err
	}
	r, err := learner.NewRemote(cfg, learner.RemoteTask{Model: t.Model, Test: t.Test, Aggregator: a, Seed: learnerSeed(rootOf(c))})
	return r, intake.UserError(err)
}

// remoteLearning returns how devices and a server train that are apart, where they can be.
func remoteLearning(c config.Config) (learner.Config, error) {
	if c.System().Gradients {
		return learner.Config{}, intake.UserError(fmt.Errorf("experiment.aggregator = %q sends gradients; allowed is a system that sends scalars, as devices in processes of their own do", c.Experiment.Aggregator))
	}
	if c.Task.Validation > 0 {
		return learner.Config{}, intake.UserError(fmt.Errorf("task.validation_share = %v holds out samples of all devices; allowed is 0 where devices are in processes of their own, whose samples nobody else has", c.Task.Validation))
	}
	return learningOf(c)
}

// learnerSeed returns the seed of all that the learner draws.
func learnerSeed(root keystream.Seed) keystream.Seed { return root.Derive("learner") }
