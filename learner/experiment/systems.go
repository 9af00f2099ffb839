package experiment

import (
	"context"
	"fmt"
	"math"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/mismatch"
	"ringwave/learner"
	"ringwave/learner/dataset"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/equalise"
)

// keyRound is the round whose gains the keys of stale-key meet.
const keyRound = 1

// systems returns those that every Lab knows, with how they are made. One that encrypts
// has nothing here: its aggregator is the protocol.
func systems() []System {
	made := map[string]func(Setting) (learner.Aggregator, []string, error){
		config.Plain: newAnalog, config.OnePoint: newAnalog, config.HEAirFed: newHEAirFed, config.AirHE: newAirHE, config.FedAvg: newFedAvg,
	}
	var all []System
	for _, s := range config.Systems() {
		all = append(all, System{s, made[s.Name]})
	}
	return all
}

// newFedAvg makes the links of federated averaging.
func newFedAvg(s Setting) (learner.Aggregator, []string, error) {
	bits := FedAvgBits(s.Dim)
	return &learner.Plain{}, []string{fmt.Sprintf("fedavg: each device sends d = %d parameters of 32 bits a round, %d bits, and %d steps of its own come to them (arXiv 1602.05629); what is sent is not rounded to 32 bits here",
		s.Dim, bits, s.Config.Optimizer.LocalSteps)}, nil
}

// FedAvgBits returns the bits that a device sends in a round of federated averaging of d
// parameters: a float32 each.
func FedAvgBits(d int) int { return 32 * d }

// mismatched is xMK-CKKS where gains do not match, decoded all the same, and the
// harness that predicts the error.
type mismatched struct {
	*protocol
	stale  bool
	before []float64 // gains of the keys, where they are stale
}

func newMismatched(c config.Config, p *protocol) *mismatched {
	m := &mismatched{protocol: p, stale: c.System().StaleKey, before: make([]float64, len(p.devices))}
	if m.stale {
		p.link.Truth(m.before, keyRound, 0)
	}
	return m
}

// Aggregate carries round k: learner.Aggregator.
func (m *mismatched) Aggregate(ctx context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
	if err := m.enterEpoch(k); err != nil {
		return aggregate.Outcome{}, err
	}
	out, err := m.engine.Run(ctx, uint32(k), delta)
	if err != nil {
		return aggregate.Outcome{}, err
	}
	for _, f := range out.Failures {
		m.failed(k, f)
	}
	m.learn(delta, out.Alpha, m.predict(k, out.Alpha))
	return aggregate.Outcome{M: out.M, Attempts: 1, Clipped: out.Clipped}, nil
}

// predict returns the deviation of eps_k given the gains of round k, which it leaves in
// m.scaled.
func (m *mismatched) predict(k int, alpha float64) float64 {
	m.link.Truth(m.scaled, uint32(k), 0)
	params := m.ctx.Params
	var r mismatch.Residual
	if m.stale {
		r = mismatch.Stale(params, m.before, m.scaled)
	}
	e := mismatch.Equalised(params, m.scaled)
	r.Direct, r.Products = r.Direct+e.Direct, r.Products+e.Products
	return r.DecodedStd(params, alpha, m.design.ConditionalStdAt(m.ctx, m.scaled, alpha))
}

// expected returns the root mean square of the predicted deviation over the rounds, or
// over the first hundred.
func (m *mismatched) expected(rounds int) float64 {
	square, n := 0.0, min(rounds, 100)
	for k := range n {
		std := m.predict(k+1, m.design.Link.Alpha)
		square += std * std / float64(n)
	}
	return math.Sqrt(square)
}

// systemNotes say what a compared system is.
func (s *Experiment) systemNotes() []string {
	c := s.Config
	method, equalises := setup.Equalisation(c)
	switch {
	case c.System().OnePoint:
		return []string{"each device sends f_i(theta + gamma Phi)/mu_i alone: the one-point form of EZOFL (arXiv 2401.17460)"}
	case c.System().StaleKey:
		return s.uncheckedNotes(fmt.Sprintf("stale-key: the keys were aggregated once, under the gains of round %d, and are used again under those of every round", keyRound))
	case equalises:
		formula := map[equalise.Method]string{equalise.ZF: "1/h^", equalise.MMSE: "h^/(h^^2 + sigma_pilot^2)"}[method]
		return s.uncheckedNotes(fmt.Sprintf("%v: each device estimates its gain from one pilot a round, h^ = h + N(0, %v^2), and sends its digital coefficients times %s: gains are then near 1, and no integers", method, c.Channel.PilotStd, formula))
	}
	return nil
}

// uncheckedNotes say by how much decryption fails.
func (s *Experiment) uncheckedNotes(what string) []string {
	notes := []string{what, "no check is made, as the paper has this system: crypto/round would declare such rounds void (log.jsonl says by which check), and M is decoded all the same"}
	if s.mismatched == nil {
		return notes
	}
	std, p := s.mismatched.expected(s.Config.Optimizer.Rounds), s.Design.Params
	expected := fmt.Sprintf("expected deviation of eps: %.3g, with q/Lambda = %.3g and alpha = %v", std, math.Exp2(p.LogQ()-float64(p.LogLambda)), s.Design.Link.Alpha)
	eta, _ := StepLaws(s.Config.Optimizer)
	if std > 1 && len(s.Config.Optimizer.Method()) == 0 && s.Config.Task.Model == "logistic" && len(s.Config.Task.Classes) == 2 && s.Config.Task.Loss != "sum" && s.Config.Optimizer.Rounds > 1 {
		step := std / math.Sqrt(float64(s.Config.Optimizer.PackedDirections)) // of the directions' mean
		expected += fmt.Sprintf("; of the loss in round 2 %.3g, in round %d %.3g",
			ExpectedLoss(s.Task.Train, eta, step, 2), s.Config.Optimizer.Rounds, ExpectedLoss(s.Task.Train, eta, step, s.Config.Optimizer.Rounds))
	}
	return append(notes, expected)
}

// ExpectedLoss returns the mean loss of logistic regression in round k after updates that
// were nothing but noise of deviation std: theta_k is then a sum of eta_j M_j Phi_j, a
// sample's logit u has the variance sum_j eta_j^2 std^2 ||(x, 1)||^2, and a loss
// max(0, +-u), for u nearly normal, the mean std(u)/sqrt(2 pi).
func ExpectedLoss(set *dataset.Set, eta learner.StepLaw, std float64, k int) float64 {
	sum := 0.0
	for j := 1; j < k; j++ {
		sum += eta.At(j) * eta.At(j)
	}
	return std * math.Sqrt(sum*meanSquareNorm(set)/(2*math.Pi))
}

// overflowedRows counts the rounds whose loss is reported as the largest number.
func overflowedRows(rows []runfolder.Row) int {
	n := 0
	for _, r := range rows {
		if r.TrainLoss == math.MaxFloat64 {
			n++
		}
	}
	return n
}
