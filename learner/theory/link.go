package theory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
)

// Uplink is the encryption and the channel of a setting.
type Uplink struct {
	// ParameterSet is the name of one of xmkckks.Sets.
	ParameterSet string
	// Mu and Sigma are the mean and the deviation of every gain, h ~ N(mu,
	// sigma^2), rounded to multiples of 2^-LatticeBits.
	Mu, Sigma   float64
	LatticeBits int
}

// link is an Uplink fitted to a problem: its gains, and the noise that its
// encryption leaves.
type link struct {
	channel *channel.Channel
	design  xmkckks.Design
	ctx     *xmkckks.Context
	// mu and omega are the moments of the gains on their lattice.
	mu, omega []float64
	root      keystream.Seed
	scaled    []float64
	truth     aggregate.Truth // of the last round
}

// newLink makes the link of one run. deltaMax bounds |Delta f/mu|; rounds is how
// many the key answers.
func newLink(u Uplink, devices int, deltaMax float64, rounds int, root keystream.Seed) (*link, error) {
	params, ok := xmkckks.Lookup(u.ParameterSet)
	if !ok {
		return nil, fmt.Errorf("the parameter set is %q; allowed is one of the program's", u.ParameterSet)
	}
	cfg := channel.Config{LatticeBits: u.LatticeBits}
	for range devices {
		cfg.Devices = append(cfg.Devices, channel.Gaussian{Mu: u.Mu, Sigma: u.Sigma})
	}
	l := &link{root: root, scaled: make([]float64, devices)}
	var err error
	if l.channel, err = channel.New(cfg, root.Derive("channel")); err != nil {
		return nil, err
	}
	l.mu, l.omega = l.channel.Moments()
	for i := range l.omega {
		// Rounding a Gaussian of many lattice steps adds a twelfth of a step's square.
		l.omega[i] += 1 / (12 * l.channel.Alpha() * l.channel.Alpha())
	}
	l.design, err = xmkckks.NewDesign(params, params.Form, xmkckks.Link{
		Mu: l.mu, Omega: l.omega, Alpha: l.channel.Alpha(), DeltaMax: deltaMax, Shares: rounds,
	})
	if err != nil {
		return nil, err
	}
	l.ctx, err = xmkckks.NewContext(l.design.Params, l.design.Form, 1, l.design.Witnesses, root.Derive("public"))
	return l, err
}

// learn reads the gains of a round into the truth: sum_i (h_i/mu_i) Delta f_i, and the
// deviation of epsilon given these gains.
func (l *link) learn(k int, delta [][]float64) {
	l.channel.Scaled(l.scaled, uint32(k), 0, int(slot.TxC0))
	sum := 0.0
	for i, h := range l.scaled {
		sum += h / l.channel.Alpha() * (delta[i][0] / l.mu[i])
	}
	l.truth = aggregate.Truth{Ideal: []float64{sum}, EpsStd: l.design.ConditionalStd(l.ctx, l.scaled)}
}

// Truth returns what the harness knows of the last round: learner.Simulated.
func (l *link) Truth() aggregate.Truth { return l.truth }

// statistics is the link without the ring: the same gains, and noise of the
// deviation that the budget predicts given these gains.
type statistics struct {
	*link
	stream *keystream.Stream
	rnd    *rand.Rand
}

func newStatistics(l *link) *statistics {
	stream := l.root.Derive("decoded noise").Stream()
	return &statistics{link: l, stream: stream, rnd: rand.New(stream)}
}

// Aggregate draws M_k: learner.Aggregator.
func (a *statistics) Aggregate(_ context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
	a.learn(k, delta)
	a.stream.Start(uint32(k), 0)
	return aggregate.Outcome{M: []float64{a.truth.Ideal[0] + a.truth.EpsStd*a.rnd.NormFloat64()}, Attempts: 1}, nil
}

// ring is the link as it is: the protocol's four phases over ring elements.
type ring struct {
	*link
	engine  *round.Engine
	devices []*xmkckks.Device
}

func newRing(l *link) (*ring, error) {
	uplink, err := phy.NewRing(phy.RingConfig{
		Modulus: l.ctx.Modulus(), Gains: l.channel,
		Secret: l.root.Derive("public link"), Noise: l.root.Derive("ring noise"),
	})
	if err != nil {
		return nil, err
	}
	r := &ring{link: l}
	guard := xmkckks.NewLedger(l.design.Link.Shares)
	for i := range l.channel.Devices() {
		d, err := l.ctx.NewDevice(xmkckks.DeviceConfig{
			Index: i, Mu: l.mu[i], DeltaMax: l.design.Link.DeltaMax, Seed: l.root.DeriveSecret("device", uint64(i)), Guard: guard,
		})
		if err != nil {
			return nil, err
		}
		r.devices = append(r.devices, d)
	}
	r.engine, err = round.New(round.Config{
		Context: l.ctx, Devices: r.devices, Server: l.ctx.NewServer(l.design), Uplink: uplink, Attempts: 1, Workers: 1,
	})
	return r, err
}

func (r *ring) close() {
	if r.engine != nil {
		r.engine.Close()
	}
	for _, d := range r.devices {
		d.Close()
	}
}

var errVoidRound = errors.New("the checks found a round void, although no fault was made")

// Aggregate carries round k: learner.Aggregator. No round may fail here: the gains
// are on a lattice and nothing disturbs them.
func (r *ring) Aggregate(ctx context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
	out, err := r.engine.Run(ctx, uint32(k), delta)
	if err != nil {
		return aggregate.Outcome{}, err
	}
	if out.Skipped {
		return aggregate.Outcome{}, fmt.Errorf("%w: %v", errVoidRound, out.Failures)
	}
	r.learn(k, delta)
	return aggregate.Outcome{M: out.M, Attempts: out.Attempts, Clipped: out.Clipped}, nil
}
