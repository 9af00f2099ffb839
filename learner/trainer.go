package learner

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

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

// MaxMomentum is the most that momentum may be: a step is then made of 4603 rounds' scalars.
const MaxMomentum = 0.999

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
	// Estimator is which losses make a device's scalar; TwoPoint unless set. OneSided
	// does not go with PairLoss, as it has the loss at theta anyway.
	Estimator Estimator
	// Step is what a step makes of a round's scalars; PlainStep unless set.
	Step StepRule
	// MeanOf, if not 0, is the number of devices N: the estimate is divided by 2 gamma_k N
	// where the Estimator is TwoPoint, else by gamma_k N, so that Eta is a step in units of
	// the gradient of the mean loss. FZOO's step is the same with it and without.
	MeanOf int
	// Momentum is beta, from 0 to MaxMomentum: the step of round k is eta_k v_k with
	// v_k = g_k + beta v_{k-1}, of which the terms are kept that Window says: as scalars,
	// whose directions are drawn again. A round that was skipped makes no step, and its
	// g_k is 0.
	Momentum float64
	// LocalSteps is how many steps a device makes in a round of a GradientTrainer; 0 is 1.
	LocalSteps int
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
	// Train and Test have samples of Model.Features features and of the model's classes.
	Train, Test *dataset.Set
	// Validation is what the model is tried on beside Test, for who chooses by it; nil for
	// nothing.
	Validation *dataset.Set
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
	// the losses around theta_k. It is NaN where the devices are elsewhere.
	TrainLoss float64
	// Evaluated says that the model after the update was tried on the test set;
	// TestLoss is then its mean loss and TestAccuracy its share of correct
	// predictions, 0..1. Both are 0 otherwise.
	Evaluated              bool
	TestLoss, TestAccuracy float64
	// Validated says that it was tried on Task.Validation, too, and ValidationLoss and
	// ValidationAccuracy are what came of it; both are 0 otherwise.
	Validated                          bool
	ValidationLoss, ValidationAccuracy float64
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
// losses, and shares of correct predictions, 0..1; NaN of samples that it has not.
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
	// Past has, with momentum, M of the last rounds, of Window()-1 at most, from the
	// earliest on; nil of a round that made no step.
	Past [][]float64 `json:",omitempty"`
	// Repeated counts the rounds of more than one attempt, Skipped the skipped
	// rounds, Clipped the clipped messages and scalars, all over the rounds run.
	Repeated, Skipped, Clipped int
}

// Trainer runs Algorithm 1. What happens in round k depends on the config, the
// task, theta_k and k alone, to the bit on one kind of processor, whatever the
// number of goroutines. A Trainer is for one goroutine, and starts others that
// end within the call that started them.
type Trainer struct {
	replica *Replica
	task    Task
	counts  counts

	devices []*device   // nil where they are elsewhere
	delta   [][]float64 // of each device, along each direction
	pool    *pool
	groups  []*group
	// perGroup runs one group's part of the round; it is made once so that a
	// round need not allocate it.
	perGroup func(w model.Worker, g int)
}

// counts are those of State.
type counts struct{ repeated, skipped, clipped int }

// New returns a trainer before its first round.
func New(cfg Config, task Task) (*Trainer, error) {
	if err := task.check(); err != nil {
		return nil, fmt.Errorf("setting up training: %w", err)
	}
	t, err := newBare(cfg, task)
	if err != nil {
		return nil, err
	}
	for i, shard := range task.Shards {
		t.delta = append(t.delta, make([]float64, len(t.replica.phi)))
		t.devices = append(t.devices, newDevice(t.replica.cfg, task.Seed, i, shard))
	}
	t.groups = groups(t.devices, t.pool.workers[0])
	t.perGroup = func(w model.Worker, g int) { t.groups[g].compute(w, t.replica, t.task.Train) }
	return t, nil
}

// RemoteTask is what to train, through what, where the devices and their samples are
// elsewhere: a Member each.
type RemoteTask struct {
	Model model.Model
	// Test is what the model is tried on; nil for nothing.
	Test *dataset.Set
	// Aggregator runs the uplink. It gets no values: it has the devices send theirs.
	Aggregator Aggregator
	// Seed is that of the Members' tasks.
	Seed keystream.Seed
}

// NewRemote returns a trainer of devices that are elsewhere, before its first round. It
// does not know the devices' losses: TrainLoss, of a Record and of a Result, and
// TrainAccuracy are NaN. Without a test set it never evaluates, and TestLoss and
// TestAccuracy of its Result are NaN.
func NewRemote(cfg Config, task RemoteTask) (*Trainer, error) {
	if err := task.check(); err != nil {
		return nil, fmt.Errorf("setting up training: %w", err)
	}
	return newBare(cfg, Task{Model: task.Model, Test: task.Test, Aggregator: task.Aggregator, Seed: task.Seed})
}

// newBare returns a trainer without devices.
func newBare(cfg Config, task Task) (*Trainer, error) {
	replica, err := NewReplica(cfg, task.Model, task.Seed)
	if err != nil {
		return nil, err
	}
	return &Trainer{replica: replica, task: task, pool: newPool(task.Model, cfg.workers())}, nil
}

func (c Config) check() error {
	if c.Rounds < 1 || c.Rounds > math.MaxInt32 {
		return fmt.Errorf("the number of rounds is %d; allowed is 1 to %d", c.Rounds, math.MaxInt32)
	}
	if c.BatchSize < 1 {
		return fmt.Errorf("the batch size is %d; allowed is 1 or more", c.BatchSize)
	}
	if c.Directions < Rademacher || c.Directions > Philox {
		return fmt.Errorf("the directions are %v; allowed is rademacher, gaussian, sphere or philox", c.Directions)
	}
	if c.Packed < 0 || c.Packed > MaxPacked {
		return fmt.Errorf("the packed directions are %d; allowed is 0 to %d", c.Packed, MaxPacked)
	}
	if c.Estimator < TwoPoint || c.Estimator > OneSided {
		return fmt.Errorf("the estimator is %v; allowed is two-point, one-point or one-sided", c.Estimator)
	}
	if c.Estimator == OneSided && c.PairLoss {
		return errors.New("the loss of pairs with one-sided differences; allowed is the loss at theta, which these have anyway")
	}
	if !(c.Clip >= 0) || math.IsInf(c.Clip, 0) {
		return fmt.Errorf("the bound on a device's scalar is %v; allowed is finite and 0 or more", c.Clip)
	}
	if c.LocalSteps < 0 {
		return fmt.Errorf("a device's steps are %d; allowed is 0 or more", c.LocalSteps)
	}
	if err := c.checkUpdate(); err != nil {
		return err
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
	if t.Validation != nil {
		if err := checkSet("validation", t.Validation, t.Model); err != nil {
			return err
		}
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

func (t RemoteTask) check() error {
	if t.Model == nil || t.Aggregator == nil {
		return errors.New("the task lacks its model or aggregator")
	}
	if t.Test == nil {
		return nil
	}
	return checkSet("test", t.Test, t.Model)
}

func checkSet(name string, set *dataset.Set, m model.Model) error {
	if set.Len() == 0 {
		return fmt.Errorf("the %s set has no sample; allowed is 1 or more", name)
	}
	if set.Dim != m.Features() || set.Values() != set.Len()*set.Dim {
		return fmt.Errorf("the %s set has %d samples of %d features and %d values; allowed is samples of %d features, the model's",
			name, set.Len(), set.Dim, set.Values(), m.Features())
	}
	classes := model.Classes(m)
	if len(set.Classes) != classes || int(slices.Max(set.Y)) >= classes {
		return fmt.Errorf("the %s set has %d classes; allowed is %d, the model's", name, len(set.Classes), classes)
	}
	return nil
}

// Step runs the next round. It gives ctx's error, and does nothing, if ctx has
// ended before the round starts; the Aggregator gets ctx, and may give its error later.
// After an error the trainer is as it was before the call, unless it is that of evaluating a
// model.Follower. After round K the error is ErrDone; where a loss or
// M_k is no finite number it wraps ErrDiverged.
func (t *Trainer) Step(ctx context.Context) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	if t.Done() {
		return Record{}, ErrDone
	}
	k := t.replica.round + 1
	record := Record{Round: k, TrainLoss: math.NaN(), Eta: t.config().Eta.At(k), Gamma: t.config().Gamma.At(k)}
	if t.devices != nil {
		if err := t.scalars(&record); err != nil {
			return Record{}, fmt.Errorf("round %d: %w", k, err)
		}
	}
	out, err := t.task.Aggregator.Aggregate(ctx, k, t.delta)
	if err != nil {
		return Record{}, fmt.Errorf("round %d: aggregating: %w", k, err)
	}
	if err := t.update(k, out); err != nil {
		return Record{}, fmt.Errorf("round %d: %w", k, err)
	}
	out.Clipped += record.Clipped
	record.fill(out, t.task.Aggregator)
	t.counts.add(out)
	t.evaluate(&record)
	if err := model.Err(t.task.Model); err != nil {
		return Record{}, fmt.Errorf("round %d: %w", k, err)
	}
	return record, nil
}

// config returns how it trains.
func (t *Trainer) config() Config { return t.replica.cfg }

// scalars draws Phi_k and has every device compute its scalar, Delta f_{i,k} (Eq. 3)
// unless the estimator is another, into t.delta; of packed directions, each of them.
// Into the record it writes the mean of f_i(theta_k, xi_{i,k}).
func (t *Trainer) scalars(r *Record) error {
	t.replica.draw(r.Round)
	t.pool.run(len(t.groups), t.perGroup)
	if err := model.Err(t.task.Model); err != nil {
		return err
	}
	var sum float64
	for i, d := range t.devices {
		clipped, overflowed, err := d.scalars(t.delta[i], &t.replica.cfg)
		if err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
		r.Clipped += clipped
		r.Overflowed += overflowed
		sum += d.loss
	}
	r.TrainLoss = sum / float64(len(t.devices))
	if t.config().Overflow {
		r.TrainLoss = overflowed(r.TrainLoss, math.MaxFloat64)
	}
	return nil
}

// update makes the step of a round, unless it was skipped.
func (t *Trainer) update(k int, out aggregate.Outcome) error {
	if out.Skipped {
		return t.replica.Skip(k)
	}
	return t.replica.Apply(k, out.M)
}

// overflowed returns x within the finite numbers, and what stands for one that is none.
func overflowed(x, none float64) float64 {
	if math.IsNaN(x) {
		return none
	}
	return max(-math.MaxFloat64, min(x, math.MaxFloat64))
}

// add counts what happened in a round.
func (c *counts) add(out aggregate.Outcome) {
	c.clipped += out.Clipped
	if out.Attempts > 1 {
		c.repeated++
	}
	if out.Skipped {
		c.skipped++
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

// evaluate tries the model on the test set where the record's round is one after which
// that is done.
func (t *Trainer) evaluate(r *Record) {
	every := t.config().EvalEvery
	if t.task.Test == nil || !t.Done() && (every == 0 || r.Round%every != 0) {
		return
	}
	r.Evaluated = true
	r.TestLoss, r.TestAccuracy = t.pool.evaluate(t.replica.theta, t.task.Test)
	if r.Validated = t.task.Validation != nil; r.Validated {
		r.ValidationLoss, r.ValidationAccuracy = t.pool.evaluate(t.replica.theta, t.task.Validation)
	}
}

// Done says whether all K rounds have been run.
func (t *Trainer) Done() bool { return t.replica.Done() }

// Digest returns that of the replica that is trained: of the round and theta.
func (t *Trainer) Digest() [sha256.Size]byte { return t.replica.Digest() }

// State returns a copy of the run's state.
func (t *Trainer) State() State {
	s := State{Repeated: t.counts.repeated, Skipped: t.counts.skipped, Clipped: t.counts.clipped}
	s.Round, s.Theta = t.replica.State()
	s.Past = copied(t.replica.past)
	return s
}

// Restore continues from a state that a trainer of the same config and task has
// given. It takes a copy.
func (t *Trainer) Restore(s State) error {
	if s.Repeated < 0 || s.Skipped < 0 || s.Clipped < 0 {
		return fmt.Errorf("restoring training: repeated, skipped and clipped are %d, %d and %d; allowed is 0 or more",
			s.Repeated, s.Skipped, s.Clipped)
	}
	if err := t.replica.restore(s.Round, s.Theta, s.Past); err != nil {
		return err
	}
	t.counts = counts{s.Repeated, s.Skipped, s.Clipped}
	return nil
}

// Final evaluates the model as it is on all training and all test samples, where there
// are such.
func (t *Trainer) Final() Result {
	nan := math.NaN()
	r := Result{nan, nan, nan, nan}
	if t.task.Train != nil {
		r.TrainLoss, r.TrainAccuracy = t.pool.evaluate(t.replica.theta, t.task.Train)
	}
	if t.task.Test != nil {
		r.TestLoss, r.TestAccuracy = t.pool.evaluate(t.replica.theta, t.task.Test)
	}
	return r
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
