package experiment

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
)

// asking is an aggregator that asks devices for their values.
type asking struct {
	members []*learner.Member
	through learner.Aggregator
}

func (a *asking) Aggregate(ctx context.Context, k int, _ [][]float64) (aggregate.Outcome, error) {
	var values [][]float64
	for _, m := range a.members {
		own, _, _, _, err := m.Scalars(ctx, k)
		if err != nil {
			return aggregate.Outcome{}, err
		}
		values = append(values, own)
	}
	out, err := a.through.Aggregate(ctx, k, values)
	if err != nil {
		return out, err
	}
	for _, m := range a.members {
		if out.Skipped {
			err = m.Skip(k)
		} else {
			err = m.Apply(k, out.M)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// apartFrom returns a server, and the devices, of a configuration, each with nothing but
// its own data; the uplink is that of an experiment of the same configuration.
func apartFrom(t *testing.T, lab Lab, c Config) (*learner.Trainer, *asking) {
	t.Helper()
	s, err := lab.New(c)
	if err != nil {
		t.Fatal(err)
	}
	through, err := s.aggregator(xmkckks.NewLedger(setup.SharesPerKey(c)), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	far := &asking{through: through}
	for i := range c.Devices.Count {
		shard, err := lab.LoadShard(c, i, false)
		if err != nil {
			t.Fatal(err)
		}
		if shard.Test != nil || shard.Shards != nil || shard.Train.Len() >= s.Task.Train.Len() || shard.FallbackUsed != s.Task.FallbackUsed || shard.Name != s.Task.Name {
			t.Errorf("device %d has %d of %d samples of %s, and a test set: %v", i+1, shard.Train.Len(), s.Task.Train.Len(), shard.Name, shard.Test != nil)
		}
		if n := len(shard.Files); !slices.Equal(shard.Files, s.Task.Files[:n]) || n == 0 && len(s.Task.Files) > 0 {
			t.Errorf("device %d has read %+v", i+1, shard.Files)
		}
		m, err := shard.Member(c)
		if err != nil {
			t.Fatal(err)
		}
		far.members = append(far.members, m)
	}
	task, err := lab.LoadTest(c)
	if err != nil {
		t.Fatal(err)
	}
	if task.Train != nil || task.Shards != nil || task.Test.Len() != s.Task.Test.Len() {
		t.Errorf("the server has training samples, or %d test samples", task.Test.Len())
	}
	server, err := task.Remote(c, far)
	if err != nil {
		t.Fatal(err)
	}
	return server, far
}

// serverKnows is a line of metrics.csv with what a server of devices elsewhere knows of it.
func serverKnows(r learner.Record) runfolder.Row {
	line, nan := row(r), math.NaN()
	line.TrainLoss, line.MIdeal, line.Eps, line.EpsStdPredicted = nan, nan, nan, nan
	return line
}

// Devices that load nothing but their own samples, and a server that loads none, do to the
// bit what one process does.
func TestShardsTogetherAreTheTask(t *testing.T) {
	experimenttest.NoData(t)
	strokes := []string{"task.strokes_train=600", "task.strokes_test=300", "optimizer.rounds=12"}
	for name, x := range map[string]struct {
		config, data string
		set          []string
	}{
		"iid":       {experimenttest.LoopbackConfig, "", append(strokes, "task.dataset=strokes")},
		"fallback":  {experimenttest.LoopbackConfig, "", append(strokes, "task.dataset=mnist", "task.fallback=strokes", "task.partition=iid")},
		"dirichlet": {experimenttest.LoopbackConfig, "", append(strokes, "task.dataset=strokes", "task.partition=dirichlet", "task.dirichlet_alpha=0.3")},
		"lenet":     {experimenttest.CIFARConfig, experimenttest.FewImages(t), []string{"optimizer.rounds=2", "experiment.aggregator=ezofl", "optimizer.batch_size=4"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Load(x.config, x.set)
			if err != nil {
				t.Fatal(err)
			}
			lab := Lab{Data: x.data}
			whole, err := lab.New(c)
			if err != nil {
				t.Fatal(err)
			}
			defer whole.Close()
			if err := whole.StartInMemory(learner.State{}); err != nil {
				t.Fatal(err)
			}
			server, far := apartFrom(t, lab, c)
			for !server.Done() {
				want, err := whole.Step(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got, err := server.Step(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if a, b := lineOf(t, serverKnows(got)), lineOf(t, serverKnows(want)); a != b {
					t.Fatalf("the line is\n%swant\n%s", a, b)
				}
			}
			digest := whole.Trainer.(*learner.Trainer).Digest()
			for i, m := range far.members {
				if m.Digest() != digest {
					t.Errorf("theta of device %d differs", i+1)
				}
			}
			if server.Digest() != digest {
				t.Error("theta of the server differs")
			}
		})
	}
}

// lineOf returns a row as metrics.csv has it.
func lineOf(t *testing.T, r runfolder.Row) string {
	t.Helper()
	f, err := runfolder.Create(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := f.CreateMetrics(runfolder.InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Add(r); err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(experimenttest.ReadFile(t, f.Path(), runfolder.MetricsName)), "\n")
	return line
}

// writeIDX writes images of 28 x 28 and their labels, and returns the files.
func writeIDX(t *testing.T, labels ...byte) (images, labelled string) {
	t.Helper()
	head := func(dims ...uint32) []byte {
		b := []byte{0, 0, 8, byte(len(dims))}
		for _, d := range dims {
			b = binary.BigEndian.AppendUint32(b, d)
		}
		return b
	}
	n := uint32(len(labels))
	pixels := head(n, 28, 28)
	for i := range n * 28 * 28 {
		pixels = append(pixels, byte(i*i))
	}
	dir := t.TempDir()
	images, labelled = filepath.Join(dir, "images"), filepath.Join(dir, "labels")
	for path, data := range map[string][]byte{images: pixels, labelled: append(head(n), labels...)} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return images, labelled
}

// A device's own files are all its own, of one class if need be, and it needs no test set.
func TestOwnShard(t *testing.T) {
	experimenttest.NoData(t)
	images, labels := writeIDX(t, 1, 1, 5, 1)
	load := func(index int, own bool, more ...string) (*Shard, error) {
		t.Helper()
		c, err := config.Load(experimenttest.LoopbackConfig, append([]string{"task.dataset=idx", "task.classes=[0, 1]",
			"task.train_images=" + images, "task.train_labels=" + labels, "task.test_images=not/there", "task.test_labels=nor/this"}, more...))
		if err != nil {
			t.Fatal(err)
		}
		return Lab{}.LoadShard(c, index, own)
	}
	s, err := load(3, true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Train.Y, []uint8{1, 1, 1}) || s.Index != 3 || len(s.Files) != 2 || s.Files[0].Path != images || len(s.Files[0].SHA256) != 64 {
		t.Errorf("device 4 has the classes %v of %+v", s.Train.Y, s.Files)
	}
	for want, err := range map[string]error{
		"the device's index is 8; allowed is 0 to 7, with devices.count = 8": second(load(8, true)),
		"the device's index is -1":                    second(load(-1, true)),
		"the number of samples of class 0":            second(load(0, false)),
		"the number of samples of class 2":            second(load(0, true, "task.classes=[2, 3]")),
		"not/here":                                    second(load(0, true, "task.train_images=not/here")),
		`task.dataset = "strokes" is drawn of a seed`: second(load(0, true, "task.dataset=strokes", "task.train_images=", "task.train_labels=", "task.test_images=", "task.test_labels=")),
		"mnist": second(load(0, true, "task.dataset=mnist", "task.train_images=", "task.train_labels=", "task.test_images=", "task.test_labels=")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func second(_ *Shard, err error) error { return err }

// A server needs no training files.
func TestServerNeedsNoTrainingFiles(t *testing.T) {
	images, labels := writeIDX(t, 1, 0, 5, 1)
	c, err := config.Load(experimenttest.LoopbackConfig, []string{"task.dataset=idx", "task.classes=[0, 1]",
		"task.test_images=" + images, "task.test_labels=" + labels, "task.train_images=not/there", "task.train_labels=nor/this"})
	if err != nil {
		t.Fatal(err)
	}
	task, err := Lab{}.LoadTest(c)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(task.Test.Y, []uint8{1, 0, 1}) || task.Train != nil || len(task.Files) != 2 || task.Model.Features() != 28*28 {
		t.Errorf("the server has %+v", task)
	}
}

// What sends gradients has no devices by themselves.
func TestGradientsAreNotApart(t *testing.T) {
	c, err := config.Load(experimenttest.LoopbackConfig, []string{"task.dataset=strokes"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range systems() {
		c.Experiment.Aggregator = s.Name
		shard := &Shard{Task: &Task{Train: &dataset.Set{}}}
		_, err := shard.Member(c)
		if refused := strings.Contains(err.Error(), "sends gradients"); refused != s.Gradients {
			t.Errorf("%s: %v", s.Name, err)
		}
		if _, err := shard.Remote(c, nil); strings.Contains(err.Error(), "sends gradients") != s.Gradients {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}
