package learner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/learner/dataset"
	"ringwave/learner/model"
)

// ErrDone says that all K rounds have been run.
var ErrDone = errors.New("all rounds have been run")

// ErrDiverged says that a loss, or M_k, is no finite number. With Config.Overflow only
// M_k can be the cause.
var ErrDiverged = errors.New("training has diverged")

// MaxPacked is the most directions that a round may have: as many coefficients as the
// largest ring has.
const MaxPacked = 1 << 16

// Config is how to train.
type Config struct {
	// Rounds is K, 1..2^31-1.
	Rounds int
	// BatchSize is the number of samples that a device draws a round, at least 1.
	BatchSize int
	// Directions is the distribution of Phi_k.
	Directions Directions
	// Packed is P, the number of directions of a round, whose scalars travel together;
	// 0 is 1, the paper's. The step is along their mean, so that its expectation is that
	// of one direction with the same laws.
	Packed int
	// PairLoss says that Record.TrainLoss is the mean of the losses at theta +- gamma
	// Phi, which the devices have anyway, in place of the loss at theta: a third of the
	// forward passes less, for a loss that is higher by about gamma^2/2 times the trace
	// of the Hessian.
	PairLoss bool
	// Clip bounds what a device sends: a scalar beyond +-Clip is cut to it, so that a
	// step in the wrong direction, which a negative gain makes, does not feed the next
	// one. 0 is no bound, as in the paper.
	Clip float64
	// Estimator is which losses make a device's scalar; TwoPoint unless set.
	Estimator Estimator
	// Overflow lets a run go on although losses overflow, for aggregators that are
	// known to fail and whose failure is to be seen: the model stays as it is, a mean
	// loss that is no finite number is reported as math.MaxFloat64, and a device's
	// scalar is sent as 0 if it is no number and as +-math.MaxFloat64 if it is infinite.
	Overflow bool
	// Eta and Gamma are the laws of eta_k and gamma_k.
	Eta, Gamma StepLaw
	// EvalEvery is the number of rounds from one evaluation on the test set to
	// the next; 0 for one after round K only, where there always is one.
	EvalEvery int
	// Workers is the number of goroutines that compute losses; 0 for
	// GOMAXPROCS. It changes no result.
	Workers int
}

// Task is what to train, on what, through what.
type Task struct {
	Model model.Model
	// Train and Test have samples of Model.Features features, in two classes.
	Train, Test *dataset.Set
	// Shards holds the indices into Train of each device i's samples, at least
	// one each. Its length is N.
	Shards [][]int
	// Aggregator runs the uplink.
	Aggregator Aggregator
	// Seed is the root of all that the learner draws: the initial model,
	// the directions (which all devices share), each device's batches.
	Seed keystream.Seed
}

// Record is what happened in one round.
type Record struct {
	// Round is k, from 1.
	Round int
	// TrainLoss is the mean over devices of f_i(theta_k, xi_{i,k}): the loss on
	// the round's batches before the update. With Config.PairLoss it is the mean of
	// the losses around theta_k.
	TrainLoss float64
	// Evaluated says that the model after the update was tried on the test set;
	// TestLoss is then its mean loss and TestAccuracy its share of correct
	// predictions, 0..1. Both are 0 otherwise.
	Evaluated              bool
	TestLoss, TestAccuracy float64
	// M is M_k, MIdeal its value without epsilon_k, Eps = M - MIdeal, and
	// EpsStdPredicted the predicted deviation of Eps. All are 0 in a skipped
	// round. Of packed directions they are those of the first. But for M they are NaN
	// unless the Aggregator is Simulated and knows them. Where gradients are
	// aggregated, M and MIdeal are NaN, and Eps is the root of the mean over the
	// components of their squared error.
	M, MIdeal, Eps, EpsStdPredicted float64
	// Attempts and Skipped are those of the Outcome. Clipped adds to the Outcome's the
	// scalars that Config.Clip has cut.
	Attempts int
	Skipped  bool
	Clipped  int
	// EpsSquare is the mean over the directions of (eps_k / its predicted deviation)^2,
	// which has expectation 1; 0 where none is predicted or known.
	EpsSquare float64
	// Overflowed counts the scalars, over devices and directions, that were no finite
	// number, with Config.Overflow.
	Overflowed int
	// Eta and Gamma are eta_k and gamma_k.
	Eta, Gamma float64
}

// Result is the quality of a model on all training and all test samples: mean
// losses, and shares of correct predictions, 0..1.
type Result struct {
	TrainLoss, TrainAccuracy float64
	TestLoss, TestAccuracy   float64
}

// State is all that a run needs to be continued: everything else follows from
// Config and Task.
type State struct {
	// Round is the number of rounds run, 0..K.
	Round int
	// Theta is the model after them, of length d.
	Theta []float64
	// Repeated counts the rounds of more than one attempt, Skipped the skipped
	// rounds, Clipped the clipped messages and scalars, all over the rounds run.
	Repeated, Skipped, Clipped int
}

// Trainer runs Algorithm 1. What happens in round k depends on the config, the
// task, theta_k and k alone, to the bit on one kind of processor, whatever the
// number of goroutines. A Trainer is for one goroutine, and starts others that
// end within the call that started them.
type Trainer struct {
	cfg   Config
	task  Task
	state State

	directions *keystream.Stream
	rnd        *rand.Rand  // reads directions
	phi        [][]float64 // of each direction

	round uint32  // of the round that is run
	gamma float64 // of the round that is run

	devices []*device
	delta   [][]float64 // of each device, along each direction
	pool    *pool
	// perDevice runs one device's part of the round; it is made once so that a
	// round need not allocate it.
	perDevice func(w model.Worker, i int)
}

// New returns a trainer before its first round.
func New(cfg Config, task Task) (*Trainer, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("setting up training: %w", err)
	}
	if err := task.check(); err != nil {
		return nil, fmt.Errorf("setting up training: %w", err)
	}
	cfg.Packed = max(cfg.Packed, 1)
	directions := task.Seed.Derive("directions").Stream()
	t := &Trainer{
		cfg:        cfg,
		task:       task,
		state:      State{Theta: make([]float64, task.Model.Dim())},
		directions: directions,
		rnd:        rand.New(directions),
		pool:       newPool(task.Model, cfg.workers()),
	}
	for range cfg.Packed {
		t.phi = append(t.phi, make([]float64, task.Model.Dim()))
	}
	for i, shard := range task.Shards {
		t.delta = append(t.delta, make([]float64, cfg.Packed))
		t.devices = append(t.devices, newDevice(task.Seed.Derive("batches", uint64(i)), shard, cfg.BatchSize, cfg.Packed))
	}
	t.perDevice = func(w model.Worker, i int) {
		t.devices[i].compute(w, t.round, t.state.Theta, t.phi, t.gamma, t.task.Train, !cfg.PairLoss)
	}
	task.Model.Init(t.state.Theta, rand.New(task.Seed.Derive("initial model").Stream()))
	return t, nil
}

func (c Config) check() error {
	if c.Rounds < 1 || c.Rounds > math.MaxInt32 {
		return fmt.Errorf("the number of rounds is %d; allowed is 1 to %d", c.Rounds, math.MaxInt32)
	}
	if c.BatchSize < 1 {
		return fmt.Errorf("the batch size is %d; allowed is 1 or more", c.BatchSize)
	}
	if c.Directions < Rademacher || c.Directions > Sphere {
		return fmt.Errorf("the directions are %v; allowed is rademacher, gaussian or sphere", c.Directions)
	}
	if c.Packed < 0 || c.Packed > MaxPacked {
		return fmt.Errorf("the packed directions are %d; allowed is 0 to %d", c.Packed, MaxPacked)
	}
	if c.Estimator != TwoPoint && c.Estimator != OnePoint {
		return fmt.Errorf("the estimator is %v; allowed is two-point or one-point", c.Estimator)
	}
	if !(c.Clip >= 0) || math.IsInf(c.Clip, 0) {
		return fmt.Errorf("the bound on a device's scalar is %v; allowed is finite and 0 or more", c.Clip)
	}
	if c.EvalEvery < 0 {
		return fmt.Errorf("the rounds between evaluations are %d; allowed is 0 or more", c.EvalEvery)
	}
	if c.Workers < 0 {
		return fmt.Errorf("the number of workers is %d; allowed is 0 or more", c.Workers)
	}
	if err := checkLaw("eta", c.Eta, c.Rounds); err != nil {
		return err
	}
	return checkLaw("gamma", c.Gamma, c.Rounds)
}

func (c Config) workers() int {
	if c.Workers > 0 {
		return c.Workers
	}
	return runtime.GOMAXPROCS(0)
}

func (t Task) check() error {
	if t.Model == nil || t.Aggregator == nil || t.Train == nil || t.Test == nil {
		return errors.New("the task lacks its model, aggregator, training set or test set")
	}
	if err := checkSet("training", t.Train, t.Model); err != nil {
		return err
	}
	if err := checkSet("test", t.Test, t.Model); err != nil {
		return err
	}
	if len(t.Shards) == 0 {
		return errors.New("the number of devices is 0; allowed is 1 or more")
	}
	for i, shard := range t.Shards {
		if len(shard) == 0 {
			return fmt.Errorf("device %d has no sample; allowed is 1 or more", i+1)
		}
		for _, j := range shard {
			if j < 0 || j >= t.Train.Len() {
				return fmt.Errorf("device %d has sample %d; allowed is 0 to %d", i+1, j, t.Train.Len()-1)
			}
		}
	}
	return nil
}

func checkSet(name string, set *dataset.Set, m model.Model) error {
	if set.Len() == 0 {
		return fmt.Errorf("the %s set has no sample; allowed is 1 or more", name)
	}
	if set.Dim != m.Features() || len(set.X) != set.Len()*set.Dim {
		return fmt.Errorf("the %s set has %d samples of %d features and %d values; allowed is samples of %d features, the model's",
			name, set.Len(), set.Dim, len(set.X), m.Features())
	}
	if len(set.Classes) != 2 || slices.Max(set.Y) > 1 {
		return fmt.Errorf("the %s set has %d classes; allowed is 2", name, len(set.Classes))
	}
	return nil
}

// Step runs the next round. It gives ctx's error, and does nothing, if ctx has
// ended before the round starts; the Aggregator gets ctx, and may give its error later.
// After an error the trainer is as it was before the call. After round K the error is ErrDone; where a loss or
// M_k is no finite number it wraps ErrDiverged.
func (t *Trainer) Step(ctx context.Context) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	if t.Done() {
		return Record{}, ErrDone
	}
	k := t.state.Round + 1
	record := Record{Round: k, Eta: t.cfg.Eta.At(k), Gamma: t.cfg.Gamma.At(k)}
	if err := t.scalars(&record); err != nil {
		return Record{}, fmt.Errorf("round %d: %w", k, err)
	}
	out, err := t.task.Aggregator.Aggregate(ctx, k, t.delta)
	if err != nil {
		return Record{}, fmt.Errorf("round %d: aggregating: %w", k, err)
	}
	if err := t.accept(out); err != nil {
		return Record{}, fmt.Errorf("round %d: %w", k, err)
	}
	out.Clipped += record.Clipped
	record.fill(out, t.task.Aggregator)
	t.update(out, record.Eta)
	if t.evaluates(k) {
		record.Evaluated = true
		record.TestLoss, record.TestAccuracy = t.pool.evaluate(t.state.Theta, t.task.Test)
	}
	return record, nil
}

// scalars draws Phi_k and has every device compute its scalar, Delta f_{i,k} (Eq. 3)
// unless the estimator is another, into t.delta; of packed directions, each of them.
// Into the record it writes the mean of f_i(theta_k, xi_{i,k}).
func (t *Trainer) scalars(r *Record) error {
	for p, phi := range t.phi {
		t.directions.Start(uint32(r.Round), uint32(p))
		t.cfg.Directions.Draw(phi, t.rnd)
	}
	t.round, t.gamma = uint32(r.Round), r.Gamma
	t.pool.run(len(t.devices), t.perDevice)
	var sum float64
	for i, d := range t.devices {
		delta := t.delta[i]
		for p := range delta {
			delta[p] = t.cfg.Estimator.scalar(d.plus[p], d.minus[p])
			if !isFinite(delta[p]) {
				if !t.cfg.Overflow {
					return fmt.Errorf("device %d: %s is %v: %w", i+1, t.cfg.Estimator.symbol(), delta[p], ErrDiverged)
				}
				delta[p] = overflowed(delta[p], 0)
				r.Overflowed++
			}
			if clip := t.cfg.Clip; clip > 0 && math.Abs(delta[p]) > clip {
				delta[p] = math.Copysign(clip, delta[p])
				r.Clipped++
			}
		}
		sum += d.loss
	}
	r.TrainLoss = sum / float64(len(t.devices))
	if t.cfg.Overflow {
		r.TrainLoss = overflowed(r.TrainLoss, math.MaxFloat64)
	}
	return nil
}

// accept refuses M_k that are not one finite number a direction.
func (t *Trainer) accept(out aggregate.Outcome) error {
	if out.Skipped {
		return nil
	}
	if len(out.M) != len(t.phi) {
		return fmt.Errorf("aggregating: %d values of M for %d directions", len(out.M), len(t.phi))
	}
	for _, m := range out.M {
		if !isFinite(m) {
			return fmt.Errorf("the aggregated M is %v: %w", m, ErrDiverged)
		}
	}
	return nil
}

// overflowed returns x within the finite numbers, and what stands for one that is none.
func overflowed(x, none float64) float64 {
	if math.IsNaN(x) {
		return none
	}
	return max(-math.MaxFloat64, min(x, math.MaxFloat64))
}

// update makes the step theta_{k+1} = theta_k - eta_k g_k with g_k = Phi_k M_k
// (Eq. 18), of packed directions their mean, unless the round was skipped, and counts
// what happened.
func (t *Trainer) update(out aggregate.Outcome, eta float64) {
	t.count(out)
	if out.Skipped {
		return
	}
	for p, m := range out.M {
		floats.AddScaled(t.state.Theta, -eta/float64(len(t.phi))*m, t.phi[p])
	}
}

// count counts a round and what happened in it.
func (t *Trainer) count(out aggregate.Outcome) {
	t.state.Round++
	t.state.Clipped += out.Clipped
	if out.Attempts > 1 {
		t.state.Repeated++
	}
	if out.Skipped {
		t.state.Skipped++
	}
}

// fill writes what a round gave, and what is known beside it.
func (r *Record) fill(out aggregate.Outcome, a Aggregator) {
	r.Attempts, r.Skipped, r.Clipped = out.Attempts, out.Skipped, out.Clipped
	if out.Skipped {
		return
	}
	r.M, r.MIdeal, r.Eps, r.EpsStdPredicted = out.M[0], math.NaN(), math.NaN(), math.NaN()
	truth, known := truthOf(a)
	if !known {
		return
	}
	r.MIdeal, r.Eps, r.EpsStdPredicted = truth.Ideal[0], out.M[0]-truth.Ideal[0], truth.EpsStd
	if !(truth.EpsStd > 0) {
		return
	}
	for p, ideal := range truth.Ideal {
		x := (out.M[p] - ideal) / truth.EpsStd
		r.EpsSquare += x * x / float64(len(out.M))
	}
}

func (t *Trainer) evaluates(k int) bool {
	return k == t.cfg.Rounds || t.cfg.EvalEvery > 0 && k%t.cfg.EvalEvery == 0
}

// Done says whether all K rounds have been run.
func (t *Trainer) Done() bool { return t.state.Round >= t.cfg.Rounds }

// State returns a copy of the run's state.
func (t *Trainer) State() State {
	s := t.state
	s.Theta = slices.Clone(s.Theta)
	return s
}

// Restore continues from a state that a trainer of the same config and task has
// given. It takes a copy.
func (t *Trainer) Restore(s State) error {
	if s.Round < 0 || s.Round > t.cfg.Rounds {
		return fmt.Errorf("restoring training: the round is %d; allowed is 0 to %d", s.Round, t.cfg.Rounds)
	}
	if d := t.task.Model.Dim(); len(s.Theta) != d {
		return fmt.Errorf("restoring training: theta has %d values; allowed is %d, the model's", len(s.Theta), d)
	}
	for j, x := range s.Theta {
		if !isFinite(x) {
			return fmt.Errorf("restoring training: theta[%d] is %v; allowed is finite", j, x)
		}
	}
	if s.Repeated < 0 || s.Skipped < 0 || s.Clipped < 0 {
		return fmt.Errorf("restoring training: repeated, skipped and clipped are %d, %d and %d; allowed is 0 or more",
			s.Repeated, s.Skipped, s.Clipped)
	}
	s.Theta = slices.Clone(s.Theta)
	t.state = s
	return nil
}

// Final evaluates the model as it is on all training and all test samples.
func (t *Trainer) Final() Result {
	var r Result
	r.TrainLoss, r.TrainAccuracy = t.pool.evaluate(t.state.Theta, t.task.Train)
	r.TestLoss, r.TestAccuracy = t.pool.evaluate(t.state.Theta, t.task.Test)
	return r
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
