package experiment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
func (t *Task) startProcess(l Lab, c config.Config, root keystream.Seed, device int, part dataset.Part) error {
	learns, err := external.Start(external.Config{
		Command: c.Task.Command, Answer: time.Duration(c.Task.AnswerSeconds * float64(time.Second)), Restarts: c.Task.Restarts,
		Device: device, Devices: c.Devices.Count, Seed: root.Derive(process).Stream().Uint64() >> 11,
		Data: l.Data,
	})
	if err != nil {
		return intake.UserError(err)
	}
	t.Name, t.Model = process, learns
	// In the place of files: a run is not to go on with another program or other samples.
	t.Files = []dataset.File{{Path: learns.Name(), SHA256: learns.Digest()}}
	t.Train, t.Test = learns.Samples()
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
	var errs []error
	for _, c := range []any{t.Model, t.said} {
		if c, ok := c.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	t.said = nil
	return errors.Join(errs...)
}

// LearnerLogName is the file of a run's folder that has what a program which learns has printed
// on standard error, if anything.
const LearnerLogName = "learner.log"

// record has what the program that the model is, if it is one, prints for people written into a
// folder.
func (t *Task) record(dir string) {
	if l, ok := t.Model.(*external.Learner); ok {
		said := &lateFile{path: filepath.Join(dir, LearnerLogName)}
		t.said = said
		l.Record(said)
	}
}

// lateFile is a file that is made once there is something to write.
type lateFile struct {
	path string
	file *os.File
}

func (f *lateFile) Write(b []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
			return 0, err
		}
	}
	return f.file.Write(b)
}

func (f *lateFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// process returns what the program of one device trains on.
func (s *Shards) process(index int) (*Shard, error) {
	device := 0
	if s.own {
		device = index + 1
	}
	t := &Task{}
	if err := t.startProcess(s.lab, s.config, rootOf(s.config), device, dataset.TrainOnly); err != nil {
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

// timesOf writes how often.
func timesOf(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// newlyRestarted says that it was started again since it was asked before; "" where it was not.
func (t *Task) newlyRestarted() string {
	l, ok := t.Model.(*external.Learner)
	if !ok {
		return ""
	}
	n, why := l.Restarts()
	if n == t.restarts {
		return ""
	}
	t.restarts = n
	return fmt.Sprintf("the program that learns was started again, %s so far, and got the model back: %s", timesOf(n), why)
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
	return fmt.Sprintf("the program that learns was started again, %s in this sitting, and got the model back (the last time %s)", timesOf(n), why)
}
