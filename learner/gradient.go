package learner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/aggregate"
	"ringwave/learner/model"
)

// GradientTrainer trains by federated gradient descent:
//
//	theta_{k+1} = theta_k - 2 eta_k gamma_k g_k,  g_k = sum_i grad f_i(theta_k, xi_{i,k}) + error.
//
// Each device makes Config.LocalSteps steps of its own, of 2 N eta_k gamma_k times the gradient
// on a batch each, and g_k is the sum of what they came to over that rate: with several it is
// federated averaging (McMahan et al., "Communication-Efficient Learning of Deep Networks from
// Decentralized Data", arXiv 1602.05629, Algorithm 1), as theta_{k+1} is then the mean of the
// devices' models.
//
// The factor 2 gamma_k makes a round's expected step that of Trainer with the
// same laws and b_1 = 1, for E[g_k] of Eq. 18 is 2 b_1 gamma_k grad F (Lemma 1 of
// the paper), so that the two can be put side by side. The initial model and the
// batches are those of a Trainer of the same seed. It gives the same results
// whatever the number of goroutines, and is for one goroutine.
type GradientTrainer struct {
	inner     *Trainer
	grad      [][]float64
	local     [][]float64 // each device's model, where it makes several steps
	perDevice func(w model.Worker, i int)
}

// NewGradientTrainer returns a trainer before its first round. The task's Aggregator
// carries gradients. The directions of the config are not used. The model must have
// gradients: see model.GradientWorker.
func NewGradientTrainer(cfg Config, task Task) (*GradientTrainer, error) {
	if cfg.Packed > 1 {
		return nil, fmt.Errorf("setting up training by gradients: %d packed directions; allowed is 1, as a gradient has none", cfg.Packed)
	}
	if !cfg.paper() {
		return nil, errors.New("setting up training by gradients: an estimator or a step of scalars; allowed is none, as gradients are sent whole")
	}
	inner, err := New(cfg, task)
	if err != nil {
		return nil, err
	}
	if _, ok := inner.pool.workers[0].(model.GradientWorker); !ok {
		return nil, errors.New("setting up training by gradients: the model has no gradient, only losses; allowed is logistic or softmax regression")
	}
	t := &GradientTrainer{inner: inner}
	for range inner.devices {
		t.grad = append(t.grad, make([]float64, task.Model.Dim()))
		if cfg.LocalSteps > 1 {
			t.local = append(t.local, make([]float64, task.Model.Dim()))
		}
	}
	t.perDevice = func(w model.Worker, i int) {
		d, g := inner.devices[i], w.(model.GradientWorker)
		d.draw(uint32(inner.replica.round+1), 0)
		d.loss = g.Gradient(t.grad[i], inner.replica.theta, inner.task.Train, d.batch)
		if t.local != nil {
			t.further(g, i)
		}
	}
	return t, nil
}

// further makes a device's steps, of which grad has the first gradient, and leaves their sum over
// the rate in grad.
func (t *GradientTrainer) further(w model.GradientWorker, i int) {
	in, d, grad, local := t.inner, t.inner.devices[i], t.grad[i], t.local[i]
	k, cfg := in.replica.round+1, in.config()
	rate := 2 * float64(len(in.devices)) * cfg.Eta.At(k) * cfg.Gamma.At(k)
	copy(local, in.replica.theta)
	floats.AddScaled(local, -rate, grad)
	for step := 1; step < cfg.LocalSteps; step++ {
		d.draw(uint32(k), uint32(step))
		w.Gradient(grad, local, in.task.Train, d.batch)
		floats.AddScaled(local, -rate, grad)
	}
	floats.SubTo(grad, in.replica.theta, local)
	floats.Scale(1/rate, grad)
}

// Step runs the next round, with the guarantees of Trainer.Step.
func (t *GradientTrainer) Step(ctx context.Context) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	in := t.inner
	if in.Done() {
		return Record{}, ErrDone
	}
	k := in.replica.round + 1
	record := Record{Round: k, Eta: in.config().Eta.At(k), Gamma: in.config().Gamma.At(k)}
	if err := t.compute(&record); err != nil {
		return Record{}, fmt.Errorf("round %d: %w", k, err)
	}
	out, err := in.task.Aggregator.Aggregate(ctx, k, t.grad)
	if err != nil {
		return Record{}, fmt.Errorf("round %d: aggregating: %w", k, err)
	}
	if err := t.update(out, &record); err != nil {
		return Record{}, fmt.Errorf("round %d: %w", k, err)
	}
	in.evaluate(&record)
	return record, nil
}

// compute has every device compute its gradient, and notes the mean loss.
func (t *GradientTrainer) compute(record *Record) error {
	in := t.inner
	in.pool.run(len(in.devices), t.perDevice)
	for i, d := range in.devices {
		if !isFinite(d.loss) || slices.ContainsFunc(t.grad[i], func(x float64) bool { return !isFinite(x) }) {
			return fmt.Errorf("device %d: its loss or gradient is no finite number: %w", i+1, ErrDiverged)
		}
		record.TrainLoss += d.loss
	}
	record.TrainLoss /= float64(len(in.devices))
	return nil
}

// update makes the step, unless the round was skipped, and notes and counts what
// happened.
func (t *GradientTrainer) update(out aggregate.Outcome, record *Record) error {
	in, theta := t.inner, t.inner.replica.theta
	record.Attempts, record.Skipped, record.Clipped = out.Attempts, out.Skipped, out.Clipped
	if !out.Skipped {
		if len(out.M) != len(theta) {
			return fmt.Errorf("the aggregated gradient has %d components; allowed is %d, the model's", len(out.M), len(theta))
		}
		if slices.ContainsFunc(out.M, func(x float64) bool { return !isFinite(x) }) {
			return fmt.Errorf("the aggregated gradient has a component that is no finite number: %w", ErrDiverged)
		}
		record.fillGradient(out, in.task.Aggregator)
		floats.AddScaled(theta, -2*record.Eta*record.Gamma, out.M)
	}
	in.counts.add(out)
	return in.replica.Skip(record.Round) // of Phi_k, along which there is no step
}

// fillGradient writes how far the aggregated gradient is from the true sum.
func (r *Record) fillGradient(out aggregate.Outcome, a Aggregator) {
	r.M, r.MIdeal, r.Eps, r.EpsStdPredicted = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	truth, known := truthOf(a)
	if !known {
		return
	}
	mse := 0.0
	for j, x := range out.M {
		e := x - truth.Ideal[j]
		mse += e * e / float64(len(out.M))
	}
	r.Eps, r.EpsStdPredicted = math.Sqrt(mse), truth.EpsStd
}

// Done says whether all K rounds have been run.
func (t *GradientTrainer) Done() bool { return t.inner.Done() }

// State returns a copy of the run's state.
func (t *GradientTrainer) State() State { return t.inner.State() }

// Restore continues from a state that a trainer of the same config and task has
// given. It takes a copy.
func (t *GradientTrainer) Restore(s State) error { return t.inner.Restore(s) }

// Final evaluates the model as it is on all training and all test samples.
func (t *GradientTrainer) Final() Result { return t.inner.Final() }

// Plain adds the devices' values over an ideal channel: the control of the systems that
// encrypt them.
type Plain struct{ sum []float64 }

// Aggregate returns the sums, without error.
func (a *Plain) Aggregate(_ context.Context, _ int, values [][]float64) (aggregate.Outcome, error) {
	if _, err := aggregate.Width(values); err != nil {
		return aggregate.Outcome{}, fmt.Errorf("adding: %w", err)
	}
	a.sum = append(a.sum[:0], values[0]...)
	for _, v := range values[1:] {
		floats.Add(a.sum, v)
	}
	return aggregate.Outcome{M: a.sum, Attempts: 1}, nil
}

// Truth returns that there is no error.
func (a *Plain) Truth() aggregate.Truth { return aggregate.Truth{Ideal: a.sum} }
