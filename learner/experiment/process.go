package experiment

import (
	"errors"
	"fmt"
	"io"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/external"
	"ringwave/radio/intake"
)

// process is the name of the model that is a program, and of the samples that it has.
const process = "process"

// startProcess starts the program of a configuration, of the samples of one device, from 1, or
// of all of them, 0.
func (t *Task) startProcess(c config.Config, root keystream.Seed, device int, part dataset.Part) error {
	l, err := external.Start(external.Config{
		Command: c.Task.Command, Answer: time.Duration(c.Task.AnswerSeconds * float64(time.Second)), Restarts: c.Task.Restarts,
		Device: device, Devices: c.Devices.Count, Seed: root.Derive(process).Stream().Uint64() >> 11,
	})
	if err != nil {
		return intake.UserError(err)
	}
	t.Name, t.Model = process, l
	// In the place of files: a run is not to go on with another program or other samples.
	t.Files = []dataset.File{{Path: l.Name(), SHA256: l.Digest()}}
	t.Train, t.Test = l.Samples()
	switch part {
	case dataset.TrainOnly:
		t.Test = nil
	case dataset.TestOnly:
		t.Train = nil
	}
	return nil
}

// interrupt has the program that the model is, if it is one, keep nobody waiting.
func (t *Task) interrupt() {
	if l, ok := t.Model.(*external.Learner); ok {
		l.Interrupt()
	}
}

// Close ends the program that the model is, if it is one.
func (t *Task) Close() error {
	if c, ok := t.Model.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// process returns what the program of one device trains on.
func (s *Shards) process(index int) (*Shard, error) {
	device := 0
	if s.own {
		device = index + 1
	}
	t := &Task{}
	if err := t.startProcess(s.config, rootOf(s.config), device, dataset.TrainOnly); err != nil {
		return nil, err
	}
	if s.own {
		return &Shard{Task: t, Index: index}, nil
	}
	if err := t.share(s.config, rootOf(s.config)); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.Train, t.Shards = t.Train.Subset(t.Shards[index]), nil
	return &Shard{Task: t, Index: index}, nil
}

// What returns what is learned: a data set's classes, or what a program calls itself.
func (t *Task) What(c config.Config) string {
	if l, ok := t.Model.(*external.Learner); ok {
		return l.Name()
	}
	classes := c.Task.Classes
	text := fmt.Sprint(classes[0])
	for _, class := range classes[1 : len(classes)-1] {
		text += fmt.Sprintf(", %d", class)
	}
	return fmt.Sprintf("%s classes %s and %d", t.Name, text, classes[len(classes)-1])
}

// restarted says that the program was started again; "" where it was not.
func (t *Task) restarted() string {
	l, ok := t.Model.(*external.Learner)
	if !ok {
		return ""
	}
	n, why := l.Restarts()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("the program that learns was started again, %d times in this sitting, and got the model back (the last time %s)", n, why)
}
