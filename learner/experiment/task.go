package experiment

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"ringwave/crypto/keystream"
	"ringwave/crypto/vector"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/model"
	"ringwave/radio/intake"
)

// Task is what is learned, loaded.
type Task struct {
	Name         string // of the data set in use
	FallbackUsed bool
	Missing      error // why the fallback is used
	Train, Test  *dataset.Set
	Validation   *dataset.Set // nil where nothing is held out
	Files        []dataset.File
	Model        model.Model
	Shards       [][]int

	said     io.Closer // where a program's words go; nil for nowhere
	restarts int       // of a program, as they were told last
}

// LoadTask loads the data set of a configuration, or its fallback: but not where the user
// has said where the data are. Design is nil without encryption.
func (l Lab) LoadTask(c config.Config, root keystream.Seed, design *xmkckks.Design) (*Task, error) {
	t, err := l.loadSets(c, root, design, Request{})
	if err != nil {
		return nil, err
	}
	if err := t.share(c, root); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if c.Task.Validation > 0 {
		if err := t.holdOutShare(c.Task.Validation, root); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, t.makeModel(l, c.Task, t.Train)
}

// loadSets loads what is wanted of the data set of a configuration, or of its fallback.
// Samples of a device's own have none.
func (l Lab) loadSets(c config.Config, root keystream.Seed, design *xmkckks.Design, wanted Request) (*Task, error) {
	t := &Task{Name: c.Task.Dataset}
	if c.Task.Model == process {
		return t, t.startProcess(l, c, root, 0, wanted.Part)
	}
	err := t.load(l, c, root, design, wanted)
	var missing *dataset.MissingError
	if errors.As(err, &missing) && l.Data == "" && !wanted.Own && c.Task.Fallback != "" && c.Task.Fallback != t.Name {
		t.Name, t.FallbackUsed, t.Missing = c.Task.Fallback, true, err
		err = t.load(l, c, root, design, wanted)
	}
	return t, intake.UserError(err)
}

// share shares the training samples out among the devices.
func (t *Task) share(c config.Config, root keystream.Seed) (err error) {
	seed := root.Derive("partition")
	if c.Task.Partition == "dirichlet" {
		t.Shards, err = dataset.Dirichlet(t.Train.Y, c.Devices.Count, c.Task.DirichletAlpha, seed)
	} else {
		t.Shards, err = dataset.IID(t.Train.Len(), c.Devices.Count, seed)
	}
	if err != nil {
		return intake.UserError(fmt.Errorf("sharing out %s: %w", t.Name, err))
	}
	return nil
}

// makeModel makes the model, unless it is a program's, which is there already.
func (t *Task) makeModel(l Lab, c config.Task, set *dataset.Set) (err error) {
	if c.Model != process {
		t.Model, err = l.newModel(c, set)
	}
	return intake.UserError(err)
}

// newModel returns the model of a configuration for samples such as those of the set.
func (l Lab) newModel(c config.Task, set *dataset.Set) (model.Model, error) {
	kind, err := l.model(c.Model)
	if err != nil {
		return nil, err
	}
	m, err := kind.New(c, set)
	if err == nil && c.Loss == "sum" {
		m = model.BatchSum(m)
	}
	return m, err
}

// models returns those that every Lab knows.
func models() []Model {
	return []Model{
		{"logistic", func(_ config.Task, set *dataset.Set) (model.Model, error) {
			if n := len(set.Classes); n > 2 {
				return model.NewSoftmax(set.Dim, n)
			}
			return model.NewLogistic(set.Dim)
		}},
		{process, func(config.Task, *dataset.Set) (model.Model, error) {
			return nil, errors.New("task.model = \"process\": the program is started with its samples")
		}},
		{"lenet", func(_ config.Task, set *dataset.Set) (model.Model, error) {
			path, err := vector.Chosen()
			if err != nil {
				return nil, err
			}
			return model.NewLeNet(path, len(set.Classes)), nil
		}},
	}
}

// load loads the data set, if all that the run needs fits into memory.
func (t *Task) load(l Lab, c config.Config, root keystream.Seed, design *xmkckks.Design, wanted Request) error {
	kind, err := l.dataSet(t.Name)
	if err != nil {
		return err
	}
	c.Task.Dataset = t.Name
	wanted.Task, wanted.Data, wanted.Seed, wanted.sets = c.Task, l.Data, root.Derive(t.Name), l.Sets
	wanted.Fits = func(e dataset.Extent) error { return setup.CheckMemory(c, setup.Needed(c, design, e)) }
	loaded, err := kind.Load(wanted)
	t.Train, t.Test, t.Files = loaded.Train, loaded.Test, loaded.Files
	return err
}

// dataSets returns those that every Lab knows.
func dataSets() []DataSet {
	return []DataSet{
		{"strokes", loadStrokes},
		{process, func(Request) (dataset.Task, error) {
			return dataset.Task{}, errors.New("task.dataset = \"process\": the samples come with the program")
		}},
		{"cifar10", func(r Request) (dataset.Task, error) {
			roots, _ := DataRoots(r.Data)
			source, err := dataset.FindCIFAR10(roots)
			if err != nil {
				return dataset.Task{}, err
			}
			source = source.Only(r.Part)
			source.OneClass = r.Own
			return loadFiles(r, source)
		}},
		{"mnist", func(r Request) (dataset.Task, error) {
			roots, cache := DataRoots(r.Data)
			source, err := dataset.Find("mnist", roots)
			if err != nil {
				return dataset.Task{}, err
			}
			source = source.Only(r.Part)
			source.Verify, source.OneClass = cache != "" && source.Root == cache, r.Own
			return loadFiles(r, source)
		}},
		{"idx", func(r Request) (dataset.Task, error) {
			return loadFiles(r, dataset.Source{OneClass: r.Own, Paths: dataset.Paths{
				TrainImages: r.Task.TrainImages, TrainLabels: r.Task.TrainLabels,
				TestImages: r.Task.TestImages, TestLabels: r.Task.TestLabels,
			}}.Only(r.Part))
		}},
	}
}

// strokes is the built-in set, drawn of a seed.
type strokes struct {
	seed        keystream.Seed
	train, test int
}

// loadStrokes makes the built-in set.
func loadStrokes(r Request) (dataset.Task, error) {
	if r.Own {
		return dataset.Task{}, errors.New("task.dataset = \"strokes\" is drawn of a seed, and no device's own; allowed is one with files")
	}
	s := strokes{r.Seed, r.Task.StrokesTrain, r.Task.StrokesTest}
	return r.sets.load(r, fmt.Sprintf("strokes %x %d %d", s.seed[:], s.train, s.test), s)
}

// Extent returns that of what Load draws.
func (s strokes) Extent(classes []int) (dataset.Extent, error) {
	return dataset.StrokesExtent(s.train, s.test, len(classes)), nil
}

// Reads names no file.
func (s strokes) Reads() []string { return nil }

// Load draws the samples of some classes.
func (s strokes) Load(classes []int) (*dataset.Task, error) {
	train, test, err := dataset.Strokes(s.seed, s.train, s.test, classes...)
	if err != nil {
		return nil, err
	}
	var out dataset.Task
	if out.Train, err = train.Choose(classes); err != nil {
		return nil, err
	}
	out.Test, err = test.Choose(classes)
	return &out, err
}

// loadFiles loads some classes from files, if what they need fits.
func loadFiles(r Request, from source) (dataset.Task, error) {
	return r.sets.load(r, fmt.Sprintf("%#v", from), from)
}

// Unpublished says that files that go by a published set's name are not, or are not
// known to be, the published ones; "" where they are, or where nothing is published.
func (t *Task) Unpublished() string {
	if t.Name == "idx" || t.Name == process {
		return ""
	}
	differ, unknown, first := 0, 0, ""
	for _, f := range t.Files {
		switch {
		case f.Differs != "":
			if differ++; first == "" {
				first = fmt.Sprintf("%s: %s", filepath.Base(f.Path), f.Differs)
			}
		case !f.Published:
			unknown++
		}
	}
	if differ > 0 {
		return fmt.Sprintf("the files of %s are not the published ones (%d of %d differ; %s): no figure is one of %s", t.Name, differ, len(t.Files), first, t.Name)
	}
	if unknown > 0 {
		return fmt.Sprintf("the files of %s are not known to be the published ones: only the archive's checksum is published, and those that `ringwave data fetch %s` writes beside its files are not there", t.Name, t.Name)
	}
	return ""
}

// trainer makes the training loop around an aggregator.
func (t *Task) trainer(c config.Config, a learner.Aggregator, root keystream.Seed) (trainer, error) {
	cfg, err := learningOf(c)
	if err != nil {
		return nil, err
	}
	task := learner.Task{Model: t.Model, Train: t.Train, Test: t.Test, Validation: t.Validation, Shards: t.Shards, Aggregator: a, Seed: learnerSeed(root)}
	if c.System().Gradients {
		g, err := learner.NewGradientTrainer(cfg, task)
		return g, intake.UserError(err)
	}
	z, err := learner.New(cfg, task)
	return z, intake.UserError(err)
}

// learningOf returns how a configuration trains.
func learningOf(c config.Config) (learner.Config, error) {
	directions, err := learner.ParseDirections(c.Optimizer.Directions)
	if err != nil {
		return learner.Config{}, intake.UserError(err)
	}
	eta, gamma := StepLaws(c.Optimizer)
	cfg := learner.Config{
		Rounds: c.Optimizer.Rounds, BatchSize: c.Optimizer.BatchSize, Directions: directions,
		Eta: eta, Gamma: gamma, EvalEvery: c.Optimizer.EvaluateEvery,
		Packed: c.Optimizer.PackedDirections, PairLoss: c.Optimizer.TrainLoss == "pairs", Clip: c.Optimizer.Clip,
		LocalSteps: c.Optimizer.LocalSteps, Overflow: c.System().Unchecked,
	}
	return cfg, setMethod(&cfg, c)
}

// secretSeed returns the root of all secrets. The caller wipes it.
func secretSeed(c config.Config, root keystream.Seed) (*keystream.Seed, error) {
	if c.Encryption.Randomness == "system" {
		return keystream.FromSystem()
	}
	return root.DeriveSecret("secrets"), nil
}

// RandomnessNote says in every output where the secrets come from.
func (s *Experiment) RandomnessNote() string {
	c := s.Config
	if c.System().SharesKey {
		return fmt.Sprintf("the one key, which all devices share, and the encryption's randomness are derived from the seed %d: they protect nothing, and any device could read every other's values", c.Experiment.Seed)
	}
	if c.Experiment.Aggregator == config.FedAvg {
		return "nothing is encrypted: the server has the model of each device"
	}
	if !c.System().Encrypts {
		return "nothing is encrypted: the server sees the sum of the devices' values as the channel weights them"
	}
	if c.Encryption.Randomness == "system" {
		if s.lab.Fleet != nil {
			return "keys and encryption randomness come from the generator of each device's host, and stay there"
		}
		if c.OverRadios() {
			return "keys and encryption randomness come from the system's generator; those of all devices live in this one process"
		}
		return "keys and encryption randomness come from the system's generator; in loopback they all live in this one process"
	}
	if c.OverRadios() {
		return fmt.Sprintf("*** NOTHING IS PROTECTED: keys and encryption randomness are derived from the seed %d although radios send what they encrypt (radio.secrets_from_seed) ***", c.Experiment.Seed)
	}
	return fmt.Sprintf("keys and encryption randomness are derived from the seed %d, so that the run can be repeated: they protect nothing", c.Experiment.Seed)
}

// meanSquareNorm returns the mean of ||(x, 1)||^2 over the samples.
func meanSquareNorm(set *dataset.Set) float64 {
	sum := 0.0
	for i := range set.Len() {
		for _, x := range set.Row(i) {
			sum += x * x
		}
	}
	return sum/float64(set.Len()) + 1
}

// holdOut takes a share of the training samples, one at least, from the devices, and returns
// them.
func (t *Task) holdOut(share float64, seed keystream.Seed) *dataset.Set {
	held := dataset.Drawn(t.Train.Len(), max(1, int(share*float64(t.Train.Len()))), seed)
	for i, shard := range t.Shards {
		t.Shards[i] = slices.DeleteFunc(slices.Clone(shard), func(sample int) bool {
			_, found := slices.BinarySearch(held, sample)
			return found
		})
	}
	return t.Train.Subset(held)
}

// holdOutShare holds out what task.validation_share says, if each device keeps a sample.
func (t *Task) holdOutShare(share float64, root keystream.Seed) error {
	t.Validation = t.holdOut(share, root.Derive("validation"))
	if i := slices.IndexFunc(t.Shards, func(shard []int) bool { return len(shard) == 0 }); i >= 0 {
		return intake.UserError(fmt.Errorf("task.validation_share = %v: device %d of %d keeps no sample of the %d for training; allowed is a share that leaves each device one at least, with fewer devices or shards that are less uneven (task.partition, task.dirichlet_alpha)", share, i+1, len(t.Shards), t.Train.Len()))
	}
	return nil
}

// ValidationFolds is of how many training samples Validated holds one out.
const ValidationFolds = 5

// Validated puts a part of the training samples in the place of the test set, which is
// given up, and takes them from the devices: who chooses by them has not seen the test
// set.
func (t *Task) Validated(seed keystream.Seed) { t.Test = t.holdOut(1./ValidationFolds, seed) }
