package experiment_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/radio/intake"
)

// methods are keys of what is not the paper's.
func methods() map[string][]string {
	return map[string][]string{
		"one-sided": {"optimizer.estimator=one-sided"},
		"fzoo":      {"optimizer.estimator=one-sided", "optimizer.step=fzoo", "optimizer.packed_directions=4"},
		"gradient":  {"optimizer.estimate=gradient", "optimizer.step_law=constant", "optimizer.warmup_rounds=5"},
		"momentum":  {"optimizer.momentum=0.8", "optimizer.step_law=cosine"},
		"all":       {"optimizer.estimator=one-sided", "optimizer.step=fzoo", "optimizer.packed_directions=2", "optimizer.momentum=0.5"},
	}
}

// A run with each method that was interrupted goes on to the same bytes, from a checkpoint and
// also from lines behind it, where no round may be sent twice.
func TestMethodsGoOn(t *testing.T) {
	for name, keys := range methods() {
		for _, randomness := range []string{"seed", "system"} {
			keys := append([]string{"encryption.randomness=" + randomness}, keys...)
			want, dir := short(t, keys...), filepath.Join(t.TempDir(), "whole")
			if randomness == "seed" {
				if _, err := want.Run(t.Context(), dir, experiment.Observer{}); err != nil {
					t.Fatal(err)
				}
			}
			e, other := short(t, keys...), filepath.Join(t.TempDir(), "run")
			ctx, cancel := context.WithCancel(t.Context())
			_, err := e.Run(ctx, other, experiment.Observer{Round: func(r learner.Record) {
				if r.Round == 14 {
					cancel()
				}
			}})
			if !errors.Is(err, experiment.ErrInterrupted) {
				t.Fatalf("%s: %v", name, err)
			}
			point, err := runfolder.ReadCheckpoint(other)
			if err != nil || point.Round != 14 {
				t.Fatalf("%s: after round %d, %v", name, point.Round, err)
			}
			if kept, momentum := len(point.Past), map[string]int{"momentum": 14, "all": 6}[name]; kept != momentum {
				t.Errorf("%s: the checkpoint has the scalars of %d rounds, want %d", name, kept, momentum)
			}
			r, err := experiment.Resume(t.Context(), other, experiment.Observer{})
			if err != nil || r.Round != 25 {
				t.Fatalf("%s, %s: %+v, %v", name, randomness, r, err)
			}
			if randomness == "seed" && !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.MetricsName), experimenttest.ReadFile(t, other, runfolder.MetricsName)) {
				t.Errorf("%s: the rounds of a run that was interrupted are others", name)
			}
		}
	}
}

// Momentum over more scalars than are kept is refused before a folder is there.
func TestMomentumOfManyDirections(t *testing.T) {
	experimenttest.NoData(t)
	c, err := experiment.Load(experimenttest.LoopbackConfig, "task.dataset=strokes", "optimizer.momentum=0.999", "optimizer.packed_directions=256")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (experiment.Lab{}).New(c); err == nil || !intake.IsUserError(err) || !strings.Contains(err.Error(), "optimizer.momentum, optimizer.packed_directions: the momentum is 0.999 with 256 packed directions, whose steps are made of 1178368 scalars; allowed is 1048576") {
		t.Errorf("got %v", err)
	}
}

// A run whose steps depend on K is not extended.
func TestExtendCosine(t *testing.T) {
	for law, refused := range map[string]bool{"cosine": true, "theorem2": true, "constant": false} {
		e, dir := short(t, "optimizer.step_law="+law, "optimizer.warmup_rounds=3", "optimizer.momentum=0.5"), filepath.Join(t.TempDir(), "run")
		if _, err := e.Run(t.Context(), dir, experiment.Observer{}); err != nil {
			t.Fatal(err)
		}
		_, err := experiment.Lab{}.Extend(t.Context(), dir, 30, experiment.Observer{})
		if refused != (err != nil) || refused && (!intake.IsUserError(err) || !strings.Contains(err.Error(), `the steps of optimizer.step_law = "`+law+`" are of all 25 rounds`)) {
			t.Errorf("%s: %v", law, err)
		}
	}
}

// Plans and results name what is not the paper's, and how many forward passes a round takes.
func TestMethodIsSaid(t *testing.T) {
	for name, want := range map[string][]string{
		"":          {"forward passes     3 over its batch, a device and round"},
		"one-sided": {"forward passes     2 over", "this is one-sided differences", "each device sends f_i(theta + gamma Phi) - f_i(theta)"},
		"fzoo":      {"forward passes     5 over", "one-sided differences, FZOO steps", "the standard deviation of the 4 values of M"},
		"gradient":  {"forward passes     3 over", "M is divided by 2 gamma_k N, with N = 2"},
		"momentum":  {"momentum 0.8: each step is along the directions of the last 21 rounds"},
	} {
		s := short(t, methods()[name]...)
		p, err := s.Plan(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := p.WriteText(&b, s); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%q: the plan lacks %q:\n%s", name, w, b.String())
			}
		}
		if (p.Rho > 0) != (name == "") {
			t.Errorf("%q: rho is %v", name, p.Rho)
		}
	}
}

// The laws are those that the keys name, and each is above 0 in all rounds.
func TestStepLaws(t *testing.T) {
	o := config.Default().Optimizer
	for law, want := range map[string][2]float64{
		"power": {0.05 / 10, 0.05}, "theorem2": {0.05 / 4, 0.05 / 4}, "constant": {0.05, 0.05}, "cosine": {0.025, 0.05},
	} {
		o.StepLaw, o.GammaPower, o.Rounds = law, 0, 256
		k := 129
		if law == "power" {
			k = 99
		}
		eta, gamma := experiment.StepLaws(o)
		if e, g := eta.At(k), gamma.At(k); !near(e, want[0]) || !near(g, want[1]) {
			t.Errorf("%s: eta and gamma of round %d are %v and %v, want %v", law, k, e, g, want)
		}
		for k := range o.Rounds {
			if !(eta.At(k+1) > 0) || !(gamma.At(k+1) > 0) {
				t.Fatalf("%s: a step of round %d is not above 0", law, k+1)
			}
		}
		o.WarmupRounds = 10
		warm, _ := experiment.StepLaws(o)
		if !near(warm.At(4), 0.4*eta.At(4)) || warm.At(10) != eta.At(10) || warm.At(200) != eta.At(200) {
			t.Errorf("%s: warmed up, eta is %v in round 4", law, warm.At(4))
		}
		o.WarmupRounds = 0
	}
}

func near(x, want float64) bool { return x > want*(1-1e-12) && x < want*(1+1e-12) }
