package theory

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"ringwave/crypto/keystream"
	"ringwave/learner"
)

// LemmaCheck is Lemma 1 at one fixed theta: what the real estimator gives over
// many rounds, what it must give, and the bounds.
type LemmaCheck struct {
	// Gamma is gamma, Draws the number of rounds, all from the same theta.
	Gamma float64
	Draws int
	// Delta is ||mean(g)/(c_1 gamma) - grad F||, DeltaErr the root mean square that
	// chance alone gives it, DeltaExact ||delta|| by summing over all 2^d
	// directions, and DeltaBound is c_3 gamma.
	Delta, DeltaErr, DeltaExact, DeltaBound float64
	// Offset is the distance of the measured mean(g)/(c_1 gamma) from the one summed
	// over all directions, in units of DeltaErr: near 1.
	Offset float64
	// Second is the mean of ||g||^2, SecondErr its standard error, SecondExact the
	// sum over all directions, and SecondBound C'_gamma gamma^2 + C'_eps.
	Second, SecondErr, SecondExact, SecondBound float64
}

// Holds reports whether both bounds of Lemma 1 hold: exactly, and as measured, to
// within five standard errors.
func (l LemmaCheck) Holds() bool {
	return l.DeltaExact <= l.DeltaBound && l.Delta <= l.DeltaBound+5*l.DeltaErr &&
		l.SecondExact <= l.SecondBound && l.Second <= l.SecondBound+5*l.SecondErr
}

// measureLemma draws the estimator of the learner's own rounds at theta, over the
// link that aggregator stands for, and sets it against Lemma 1.
func (p *Problem) measureLemma(ctx context.Context, c Constants, a learner.Aggregator, theta []float64, gamma float64, draws int, seed keystream.Seed) (LemmaCheck, error) {
	// With eta = 1 a step from theta is -g.
	trainer, err := learner.New(learner.Config{
		Rounds: draws, BatchSize: p.Batch, Eta: learner.PowerLaw{X0: 1}, Gamma: learner.PowerLaw{X0: gamma}, Workers: 1,
	}, p.task(a, seed))
	if err != nil {
		return LemmaCheck{}, err
	}
	sum, squares, g := make([]float64, p.Dim), make([]float64, p.Dim), make([]float64, p.Dim)
	var norm, normSquares float64
	for k := range draws {
		if err := trainer.Restore(learner.State{Round: k, Theta: theta}); err != nil {
			return LemmaCheck{}, err
		}
		if _, err := trainer.Step(ctx); err != nil {
			return LemmaCheck{}, err
		}
		floats.SubTo(g, theta, trainer.State().Theta)
		for j, x := range g {
			sum[j] += x
			squares[j] += x * x
		}
		n := floats.Dot(g, g)
		norm += n
		normSquares += n * n
	}
	exact, second, err := p.enumerate(c.assumptions, theta, gamma)
	if err != nil {
		return LemmaCheck{}, err
	}
	n := float64(draws)
	l := LemmaCheck{
		Gamma: gamma, Draws: draws, DeltaBound: c.Bias(gamma), SecondBound: c.SecondMoment(gamma),
		Second: norm / n, SecondErr: math.Sqrt((normSquares/n - norm*norm/(n*n)) / n), SecondExact: second,
	}
	var variance float64
	for j := range sum {
		mean := sum[j] / n
		variance += (squares[j]/n - mean*mean) / n
		sum[j] = mean / (c.C1 * gamma)
		exact[j] /= c.C1 * gamma
	}
	l.DeltaErr = math.Sqrt(variance) / (c.C1 * gamma)
	l.Offset = floats.Distance(sum, exact, 2) / l.DeltaErr
	gradient := make([]float64, p.Dim)
	p.Gradient(gradient, theta)
	l.Delta, l.DeltaExact = floats.Distance(sum, gradient, 2), floats.Distance(exact, gradient, 2)
	return l, nil
}

// mostDirections bounds d for a sum over all 2^d directions.
const mostDirections = 16

// enumerate returns E[g] and E[||g||^2] at theta without chance: by summing over all
// +-1 directions, with the moments of gains and noise and of batches drawn
// without replacement.
func (p *Problem) enumerate(a Assumptions, theta []float64, gamma float64) (mean []float64, second float64, err error) {
	d := p.Dim
	if d > mostDirections {
		return nil, 0, fmt.Errorf("the sum over all directions: d is %d; allowed is up to %d", d, mostDirections)
	}
	worker := p.model.NewWorker()
	mean, phi := make([]float64, d), make([]float64, d)
	for bits := range 1 << d {
		for j := range phi {
			phi[j] = float64(1 - 2*(bits>>j&1))
		}
		var total, square float64
		for i, shard := range p.shards {
			var sum, squares float64
			for _, s := range shard {
				_, plus, minus := worker.Losses(theta, phi, gamma, p.set, []int{s})
				sum += plus - minus
				squares += (plus - minus) * (plus - minus)
			}
			n, b := float64(len(shard)), float64(p.Batch)
			delta := sum / n
			batch := max(0, squares/n-delta*delta) * (n - b) / (b * (n - 1))
			total += delta
			square += a.Omega[i]/(a.Mu[i]*a.Mu[i])*(delta*delta+batch) - delta*delta
		}
		weight := 1 / float64(int(1)<<d)
		floats.AddScaled(mean, total*weight, phi)
		second += weight * float64(d) * (total*total + square + a.DecodedVariance)
	}
	return mean, second, nil
}

// task is the problem for the learner. It is tested on what it is trained on: no
// result of a test is used.
func (p *Problem) task(a learner.Aggregator, seed keystream.Seed) learner.Task {
	return learner.Task{Model: p.model, Train: p.set, Test: p.set, Shards: slices.Clone(p.shards), Aggregator: a, Seed: seed}
}
