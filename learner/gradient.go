package learner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ringwave/learner/model"
)

// GradientAggregator turns the devices' gradients into the one vector that all
// of them get back: what Aggregator is for scalars. Systems that send whole
// gradients are GradientAggregators; the paper's protocol is none.
type GradientAggregator interface {
	// AggregateGradients runs round k, 1 <= k <= K, with gradients[i] the gradient
	// of f_i at theta_k, of length d. It must not keep or change them. An error ends
	// the run; a round that merely failed is an Outcome with Skipped set.
	//
	// The outcome should depend on k and the gradients alone.
	AggregateGradients(ctx context.Context, k int, gradients [][]float64) (GradientOutcome, error)
}

// GradientOutcome is what one round of aggregating gradients gave.
type GradientOutcome struct {
	// Sum is the aggregated gradient, of length d: about Ideal. It may be reused by
	// the next round.
	Sum []float64
	// Ideal is what Sum would be without error, sum_i grad f_i, computed by the
	// harness. No device and no server knows it.
	Ideal []float64
	// MSE is the mean over the d components of (Sum - Ideal)^2; PredictedMSE its
	// expectation given the channel.
	MSE, PredictedMSE float64
	// Clipped counts the components, over all devices, that were out of range and
	// were cut to it.
	Clipped int
	// Skipped says that there is no Sum and the model must not change.
	Skipped bool
}

// GradientRecord is what happened in one round of a GradientTrainer. In its
// Record M, MIdeal and Eps are 0, for no scalar is sent, and EpsStdPredicted is
// the root of PredictedMSE.
type GradientRecord struct {
	Record
	// MSE and PredictedMSE are those of the GradientOutcome.
	MSE, PredictedMSE float64
}

// GradientTask is a Task whose uplink carries gradients.
type GradientTask struct {
	// Task holds everything else. Its Aggregator is not looked at.
	Task
	// Gradients runs the uplink.
	Gradients GradientAggregator
}

// GradientTrainer trains by federated gradient descent:
//
//	theta_{k+1} = theta_k - 2 eta_k gamma_k g_k,  g_k = sum_i grad f_i(theta_k, xi_{i,k}) + error.
//
// The factor 2 gamma_k makes a round's expected step that of Trainer with the
// same laws and b_1 = 1, for E[g_k] of Eq. 18 is 2 b_1 gamma_k grad F (Lemma 1 of
// the paper), so that the two can be put side by side. The initial model and the
// batches are those of a Trainer of the same seed. It gives the same results
// whatever the number of goroutines, and is for one goroutine.
type GradientTrainer struct {
	inner     *Trainer
	gradients GradientAggregator
	grad      [][]float64
	perDevice func(w model.Worker, i int)
}

// NewGradientTrainer gives a trainer before its first round. The directions of
// the config are not used. The model must have gradients: see
// model.GradientWorker.
func NewGradientTrainer(cfg Config, task GradientTask) (*GradientTrainer, error) {
	if task.Gradients == nil {
		return nil, errors.New("setting up training by gradients: the task lacks its aggregator of gradients")
	}
	if cfg.Packed > 1 {
		return nil, fmt.Errorf("setting up training by gradients: %d packed directions; allowed is 1, as a gradient has none", cfg.Packed)
	}
	task.Aggregator = noScalars{}
	inner, err := New(cfg, task.Task)
	if err != nil {
		return nil, err
	}
	if _, ok := inner.pool.workers[0].(model.GradientWorker); !ok {
		return nil, errors.New("setting up training by gradients: the model has no gradient, only losses; allowed is logistic regression")
	}
	t := &GradientTrainer{inner: inner, gradients: task.Gradients}
	for range inner.devices {
		t.grad = append(t.grad, make([]float64, task.Model.Dim()))
	}
	t.perDevice = func(w model.Worker, i int) {
		d := inner.devices[i]
		d.draw(inner.round)
		d.loss = w.(model.GradientWorker).Gradient(t.grad[i], inner.state.Theta, inner.task.Train, d.batch)
	}
	return t, nil
}

// noScalars is the aggregator of a Trainer that never aggregates scalars.
type noScalars struct{}

func (noScalars) Aggregate(context.Context, int, []float64) (Outcome, error) {
	return Outcome{}, errors.New("a trainer by gradients was asked to aggregate scalars")
}

// Step runs the next round, with the guarantees of Trainer.Step.
func (t *GradientTrainer) Step(ctx context.Context) (GradientRecord, error) {
	if err := ctx.Err(); err != nil {
		return GradientRecord{}, err
	}
	in := t.inner
	if in.Done() {
		return GradientRecord{}, ErrDone
	}
	k := in.state.Round + 1
	record := GradientRecord{Record: Record{Round: k, Eta: in.cfg.Eta.At(k), Gamma: in.cfg.Gamma.At(k)}}
	if err := t.compute(k, &record.Record); err != nil {
		return GradientRecord{}, fmt.Errorf("round %d: %w", k, err)
	}
	out, err := t.gradients.AggregateGradients(context.WithoutCancel(ctx), k, t.grad)
	if err != nil {
		return GradientRecord{}, fmt.Errorf("round %d: aggregating: %w", k, err)
	}
	if err := t.update(out, &record); err != nil {
		return GradientRecord{}, fmt.Errorf("round %d: %w", k, err)
	}
	if in.evaluates(k) {
		record.Evaluated = true
		record.TestLoss, record.TestAccuracy = in.pool.evaluate(in.state.Theta, in.task.Test)
	}
	return record, nil
}

// compute has every device compute its gradient, and notes the mean loss.
func (t *GradientTrainer) compute(k int, record *Record) error {
	in := t.inner
	in.round = uint32(k)
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

// update makes the step, unless the round was skipped, and counts what happened.
func (t *GradientTrainer) update(out GradientOutcome, record *GradientRecord) error {
	in := t.inner
	record.Attempts, record.Skipped, record.Clipped = 1, out.Skipped, out.Clipped
	if !out.Skipped {
		if len(out.Sum) != len(in.state.Theta) {
			return fmt.Errorf("the aggregated gradient has %d components; allowed is %d, the model's", len(out.Sum), len(in.state.Theta))
		}
		if slices.ContainsFunc(out.Sum, func(x float64) bool { return !isFinite(x) }) {
			return fmt.Errorf("the aggregated gradient has a component that is no finite number: %w", ErrDiverged)
		}
		record.MSE, record.PredictedMSE = out.MSE, out.PredictedMSE
		record.EpsStdPredicted = math.Sqrt(out.PredictedMSE)
		floats.AddScaled(in.state.Theta, -2*record.Eta*record.Gamma, out.Sum)
	} else {
		in.state.Skipped++
	}
	in.state.Clipped += out.Clipped
	in.state.Round++
	return nil
}

// Done says whether all K rounds have been run.
func (t *GradientTrainer) Done() bool { return t.inner.Done() }

// State gives a copy of the run's state.
func (t *GradientTrainer) State() State { return t.inner.State() }

// Restore continues from a state that a trainer of the same config and task has
// given. It takes a copy.
func (t *GradientTrainer) Restore(s State) error { return t.inner.Restore(s) }

// Final evaluates the model as it is on all training and all test samples.
func (t *GradientTrainer) Final() Result { return t.inner.Final() }

// PlainGradients adds gradients over an ideal channel: the control of the
// systems that encrypt them.
type PlainGradients struct{ sum []float64 }

// AggregateGradients gives the sum, without error.
func (a *PlainGradients) AggregateGradients(_ context.Context, _ int, gradients [][]float64) (GradientOutcome, error) {
	if len(gradients) == 0 {
		return GradientOutcome{}, errors.New("adding gradients: there are 0; allowed is one a device")
	}
	a.sum = append(a.sum[:0], gradients[0]...)
	for _, g := range gradients[1:] {
		floats.Add(a.sum, g)
	}
	return GradientOutcome{Sum: a.sum, Ideal: a.sum}, nil
}
