package main

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"github.com/tuneinsight/lattigo/v5/ring"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/model"
	"ringwave/learner/model/kernel"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/channel/p676"
	"ringwave/radio/intake"
)

// task is what is learned, loaded.
type task struct {
	name         string // of the data set in use
	fallbackUsed bool
	missing      error // why the fallback is used
	train, test  *dataset.Set
	files        []dataset.File
	model        model.Model
	shards       [][]int
}

// LoadTask loads the data set of a configuration, or its fallback: but not where the user
// has said where the data are. Design is nil without encryption.
func (l Lab) LoadTask(c config.Config, root keystream.Seed, design *xmkckks.Design) (*task, error) {
	t := &task{name: c.Task.Dataset}
	err := t.load(l, c, root, design)
	var missing *dataset.MissingError
	if errors.As(err, &missing) && l.Data == "" && c.Task.Fallback != "" && c.Task.Fallback != t.name {
		t.name, t.fallbackUsed, t.missing = c.Task.Fallback, true, err
		err = t.load(l, c, root, design)
	}
	if err != nil {
		return nil, intake.UserError(err)
	}
	seed := root.Derive("partition")
	if c.Task.Partition == "dirichlet" {
		t.shards, err = dataset.Dirichlet(t.train.Y, c.Devices.Count, c.Task.DirichletAlpha, seed)
	} else {
		t.shards, err = dataset.IID(t.train.Len(), c.Devices.Count, seed)
	}
	if err != nil {
		return nil, intake.UserError(fmt.Errorf("sharing out %s: %w", t.name, err))
	}
	t.model, err = l.newModel(c.Task, t.train)
	return t, intake.UserError(err)
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
		{"logistic", func(_ config.Task, set *dataset.Set) (model.Model, error) { return model.NewLogistic(set.Dim) }},
		{"lenet", func(config.Task, *dataset.Set) (model.Model, error) {
			path, err := kernel.Choose(os.Getenv(kernel.Environment))
			if err != nil {
				return nil, err
			}
			return model.NewLeNet(path), nil
		}},
	}
}

// load loads the data set, if all that the run needs fits into memory.
func (t *task) load(l Lab, c config.Config, root keystream.Seed, design *xmkckks.Design) error {
	kind, err := l.dataSet(t.name)
	if err != nil {
		return err
	}
	c.Task.Dataset = t.name
	loaded, err := kind.Load(Request{
		Task: c.Task, Data: l.Data, Seed: root.Derive(t.name),
		Fits: func(e dataset.Extent) error { return checkMemory(c, needed(c, design, e)) },
	})
	t.train, t.test, t.files = loaded.Train, loaded.Test, loaded.Files
	return err
}

// dataSets returns those that every Lab knows.
func dataSets() []DataSet {
	return []DataSet{
		{"strokes", loadStrokes},
		{"cifar10", func(r Request) (dataset.Task, error) {
			roots, _ := dataRoots(r.Data)
			source, err := dataset.FindCIFAR10(roots)
			if err != nil {
				return dataset.Task{}, err
			}
			return loadBinary(r, source)
		}},
		{"mnist", func(r Request) (dataset.Task, error) {
			roots, cache := dataRoots(r.Data)
			source, err := dataset.Find("mnist", roots)
			if err != nil {
				return dataset.Task{}, err
			}
			source.Verify = cache != "" && source.Root == cache
			return loadBinary(r, source)
		}},
		{"idx", func(r Request) (dataset.Task, error) {
			return loadBinary(r, dataset.Source{Paths: dataset.Paths{
				TrainImages: r.Task.TrainImages, TrainLabels: r.Task.TrainLabels,
				TestImages: r.Task.TestImages, TestLabels: r.Task.TestLabels,
			}})
		}},
	}
}

// loadStrokes makes the built-in set.
func loadStrokes(r Request) (out dataset.Task, err error) {
	if err := r.Fits(dataset.StrokesExtent(r.Task.StrokesTrain, r.Task.StrokesTest)); err != nil {
		return out, err
	}
	train, test, err := dataset.Strokes(r.Seed, r.Task.StrokesTrain, r.Task.StrokesTest)
	if err != nil {
		return out, err
	}
	if out.Train, err = train.Binary(r.Task.Classes); err != nil {
		return out, err
	}
	out.Test, err = test.Binary(r.Task.Classes)
	return out, err
}

// loadBinary loads two classes from files, if what they need fits.
func loadBinary(r Request, source interface {
	Extent(classes [2]int) (dataset.Extent, error)
	Binary(classes [2]int) (*dataset.Task, error)
}) (out dataset.Task, err error) {
	if extent, err := source.Extent(r.Task.Classes); err == nil {
		if err := r.Fits(extent); err != nil {
			return out, err
		}
	}
	loaded, err := source.Binary(r.Task.Classes)
	if err != nil {
		return out, err
	}
	return *loaded, nil
}

// unpublished says that files that go by a published set's name are not, or are not
// known to be, the published ones; "" where they are, or where nothing is published.
func (t *task) unpublished() string {
	if t.name == "idx" {
		return ""
	}
	differ, unknown, first := 0, 0, ""
	for _, f := range t.files {
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
		return fmt.Sprintf("the files of %s are not the published ones (%d of %d differ; %s): no figure is one of %s", t.name, differ, len(t.files), first, t.name)
	}
	if unknown > 0 {
		return fmt.Sprintf("the files of %s are not known to be the published ones: only the archive's checksum is published, and those that `ringwave data fetch %s` writes beside its files are not there", t.name, t.name)
	}
	return ""
}

// stepLaws gives the laws of eta and gamma.
func stepLaws(o config.Optimizer) (eta, gamma learner.StepLaw) {
	if o.StepLaw == "theorem2" {
		return learner.HorizonLaw{X0: o.Eta0, K: o.Rounds}, learner.HorizonLaw{X0: o.Gamma0, K: o.Rounds}
	}
	return learner.PowerLaw{X0: o.Eta0, P: o.EtaPower}, learner.PowerLaw{X0: o.Gamma0, P: o.GammaPower}
}

// trainer makes the training loop around an aggregator.
func (t *task) trainer(c config.Config, a learner.Aggregator, root keystream.Seed) (trainer, error) {
	cfg, task, err := t.learning(c, root)
	if err != nil {
		return nil, err
	}
	task.Aggregator = a
	if c.System().Gradients {
		g, err := learner.NewGradientTrainer(cfg, task)
		return g, intake.UserError(err)
	}
	z, err := learner.New(cfg, task)
	return z, intake.UserError(err)
}

// learning gives what is trained and how, but for the aggregator.
func (t *task) learning(c config.Config, root keystream.Seed) (learner.Config, learner.Task, error) {
	directions, err := learner.ParseDirections(c.Optimizer.Directions)
	if err != nil {
		return learner.Config{}, learner.Task{}, intake.UserError(err)
	}
	eta, gamma := stepLaws(c.Optimizer)
	cfg := learner.Config{
		Rounds: c.Optimizer.Rounds, BatchSize: c.Optimizer.BatchSize, Directions: directions,
		Eta: eta, Gamma: gamma, EvalEvery: c.Optimizer.EvaluateEvery,
		Packed: c.Optimizer.PackedDirections, PairLoss: c.Optimizer.TrainLoss == "pairs", Clip: c.Optimizer.Clip,
		Estimator: estimatorOf(c), Overflow: c.System().Unchecked,
	}
	return cfg, learner.Task{
		Model: t.model, Train: t.train, Test: t.test, Shards: t.shards, Seed: root.Derive("learner"),
	}, nil
}

// newChannel makes the channel of a configuration: for the digital aggregator an
// ideal one, all gains 1.
func newChannel(c config.Config, root keystream.Seed) (*channel.Channel, error) {
	cfg := channelConfig(c)
	for i := range c.Devices.Count {
		f, err := fadingOf(c, i)
		if err != nil {
			return nil, intake.UserError(fmt.Errorf("device %d: %w", i+1, err))
		}
		cfg.Devices = append(cfg.Devices, f)
	}
	ch, err := channel.New(cfg, root.Derive("channel"))
	return ch, intake.UserError(err)
}

// channelConfig gives a channel without its devices.
func channelConfig(c config.Config) channel.Config {
	if c.System().Ideal {
		return channel.Config{}
	}
	return channel.Config{
		LatticeBits:      c.Channel.GainLatticeBits,
		Continuous:       c.Channel.Gains == "continuous",
		DriftAt:          channel.Boundary(slices.Index([]string{"none", "after-key", "within-ciphertext", "after-ciphertext"}, c.Channel.Drift)),
		DriftStd:         c.Channel.DriftStd,
		DriftProbability: c.Channel.DriftProbability,
		FreshOnRetry:     c.Channel.FreshBlockOnRetry,
	}
}

func fadingOf(c config.Config, i int) (channel.Fading, error) {
	if c.System().Ideal {
		return channel.Gaussian{Mu: 1}, nil
	}
	switch c.Channel.Model {
	case "rician":
		return channel.NewRicianMean(c.Channel.KFactor, c.Mean(i)), nil
	case modelTHz:
		return thzFading(c, i)
	}
	return channel.Gaussian{Mu: c.Mean(i), Sigma: c.Std(i)}, nil
}

// modelTHz is the value of channel.model that a link budget stands for.
const modelTHz = "thz-los"

// thzFading gives the gain of device i in units of the amplitude of an aligned
// link over channel.distance_m.
func thzFading(c config.Config, i int) (channel.Gaussian, error) {
	reference := lineOfSight(c, i)
	reference.DistanceM, reference.MisalignmentDeg = c.Channel.DistanceM, 0
	b, err := reference.Budget()
	if err != nil {
		return channel.Gaussian{}, err
	}
	return lineOfSight(c, i).Fading(b.ReceivedDBm)
}

// lineOfSight gives the link of device i of a terahertz channel.
func lineOfSight(c config.Config, i int) channel.LineOfSight {
	h := c.Channel
	return channel.LineOfSight{
		CarrierHz: h.CarrierHz, DistanceM: c.Distance(i),
		TransmitGainDBi: h.TransmitGainDBi, ReceiveGainDBi: h.ReceiveGainDBi,
		MisalignmentDeg: c.Misalignment(i), TransmitPowerDBm: h.TransmitPowerDBm,
		BandwidthHz: c.Link.BandwidthHz, NoiseFigureDB: h.NoiseFigureDB,
		KFactor: h.KFactor, SpeedMps: h.SpeedMps,
		Air: p676.Air{PressureHPa: h.PressureHPa, TemperatureK: h.TemperatureK, VapourDensity: h.VapourDensityGM3},
	}
}

// parameterSet gives the set of a configuration with its overrides.
func parameterSet(e config.Encryption) (xmkckks.Params, xmkckks.Form, error) {
	p, ok := xmkckks.Lookup(e.ParameterSet)
	if !ok {
		var names []string
		for _, s := range xmkckks.Sets() {
			names = append(names, s.Name)
		}
		return p, 0, intake.UserError(fmt.Errorf("encryption.parameter_set is %q: known are %v", e.ParameterSet, names))
	}
	if err := overrideRing(&p, e); err != nil {
		return p, 0, intake.UserError(err)
	}
	if e.Log2Lambda != 0 {
		p.LogLambda = e.Log2Lambda
	}
	if e.Log2FloodStd != 0 {
		p.LogFlood = e.Log2FloodStd
	}
	if e.N != 0 || len(e.ModulusBits) != 0 || e.Log2Lambda != 0 || e.Log2FloodStd != 0 {
		p.Note = fmt.Sprintf("changed from %s in the configuration: what is known of that set does not hold for it", p.Name)
		p.Name += "-changed"
	}
	form := p.Form
	switch e.Form {
	case "whole":
		form = xmkckks.Whole
	case "short":
		form = xmkckks.Short
	}
	return p, form, nil
}

// overrideRing applies encryption.n and encryption.modulus_bits.
func overrideRing(p *xmkckks.Params, e config.Encryption) error {
	if e.N == 0 && len(e.ModulusBits) == 0 {
		return nil
	}
	sizes := e.ModulusBits
	if len(sizes) == 0 {
		for _, prime := range p.Primes {
			sizes = append(sizes, bits.Len64(prime))
		}
	}
	if e.N != 0 {
		p.N = e.N
	}
	p.Primes = nil
	generators := map[int]*ring.NTTFriendlyPrimesGenerator{}
	for _, size := range sizes {
		if generators[size] == nil {
			g := ring.NewNTTFriendlyPrimesGenerator(uint64(size), uint64(2*p.N))
			generators[size] = &g
		}
		prime, err := generators[size].NextDownstreamPrime()
		if err != nil {
			return fmt.Errorf("encryption.modulus_bits: no more primes of %d bits that are 1 modulo 2n = %d: %w", size, 2*p.N, err)
		}
		p.Primes = append(p.Primes, prime)
	}
	if s := p.Security(); !s.MeetsStandard() {
		return fmt.Errorf("encryption.n = %d with log2 q = %.1f: q is too large for n; at most %.0f bits keep 128-bit security (HomomorphicEncryption.org 2018)", p.N, s.LogQ, s.Standard)
	}
	return nil
}

// sharesPerKey returns tau, the decryption shares that one key may give: one a round
// of its epoch, whatever the attempts.
func sharesPerKey(c config.Config) int {
	rounds := c.Optimizer.Rounds
	if e := c.Encryption.KeyEpochRounds; e > 0 {
		rounds = min(rounds, e)
	}
	return rounds
}

// newDesign fits the parameter set of a configuration to its channel.
func newDesign(c config.Config, ch *channel.Channel) (xmkckks.Design, error) {
	p, form, err := parameterSet(c.Encryption)
	if err != nil {
		return xmkckks.Design{}, err
	}
	mu, omega := linkMoments(c, ch)
	link := xmkckks.Link{
		Mu: mu, Omega: omega, K: ch.KFactors(), Alpha: designAlpha(c, ch),
		DeltaMax: c.Encryption.DeltaMax, Shares: sharesPerKey(c), Messages: c.Optimizer.PackedDirections,
	}
	if _, ok := equalisation(c); ok {
		intended(&link)
	}
	if !c.System().Ideal {
		for t := range link.NoiseStd {
			link.NoiseStd[t] = c.Link.NoiseStd
		}
	}
	d, err := xmkckks.NewDesign(p, form, link)
	if errors.Is(err, xmkckks.ErrNoRoom) {
		err = fmt.Errorf("optimizer.packed_directions is %d: %w", c.Optimizer.PackedDirections, err)
	}
	return d, intake.UserError(err)
}

// secretSeed returns the root of all secrets. The caller wipes it.
func secretSeed(c config.Config, root keystream.Seed) (*keystream.Seed, error) {
	if c.Encryption.Randomness == "system" {
		return keystream.FromSystem()
	}
	return root.DeriveSecret("secrets"), nil
}

// randomnessNote says in every output where the secrets come from.
func randomnessNote(c config.Config) string {
	if c.System().SharesKey {
		return fmt.Sprintf("the one key, which all devices share, and the encryption's randomness are derived from the seed %d: they protect nothing, and any device could read every other's values", c.Experiment.Seed)
	}
	if !c.System().Encrypts {
		return "nothing is encrypted: the server sees the sum of the devices' values as the channel weights them"
	}
	if c.Encryption.Randomness == "system" {
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

// airtime gives the seconds that bits take at a bandwidth, one bit a second and
// hertz as in Section IV-H of the paper.
func airtime(bits int, bandwidthHz float64) float64 { return float64(bits) / bandwidthHz }

// meanSquareNorm gives the mean of ||(x, 1)||^2 over the samples.
func meanSquareNorm(set *dataset.Set) float64 {
	sum := 0.0
	for i := range set.Len() {
		for _, x := range set.Row(i) {
			sum += x * x
		}
	}
	return sum/float64(set.Len()) + 1
}

// checkBits gives the size of what a round sends besides its payload: check
// coefficients and patterns of one symbol a bit.
func checkBits(r *phy.Ring, ctx *xmkckks.Context) (int, error) {
	coefficients := 0
	for t := range phy.Transmission(phy.Transmissions) {
		m, err := r.CheckCoefficients(t, ctx.PayloadLength(t))
		if err != nil {
			return 0, err
		}
		coefficients += m
	}
	return coefficients*ctx.Params.CoefficientBits() + phy.Transmissions*r.PatternSymbols(), nil
}
