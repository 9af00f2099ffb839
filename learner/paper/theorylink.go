package paper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/theory"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
)

// theoryLink is a theory.Uplink fitted to a run: its gains, and the noise that its
// encryption leaves.
type theoryLink struct {
	channel *channel.Channel
	design  xmkckks.Design
	ctx     *xmkckks.Context
	// mu and omega are the moments of the gains on their lattice.
	mu, omega []float64
	seed      keystream.Seed
	scaled    []float64
	truth     aggregate.Truth // of the last round
}

// openTheoryLink opens the link of one run: theory.OpenLink.
func openTheoryLink(run theory.Run) (theory.Link, error) {
	l, err := newTheoryLink(run)
	if err != nil {
		return nil, fmt.Errorf("the link of %d rounds: %w", run.Rounds, err)
	}
	if !run.Ring {
		return newDrawnLink(l), nil
	}
	r := &ringLink{theoryLink: l}
	if err := r.open(); err != nil {
		r.Close()
		return nil, fmt.Errorf("the link of %d rounds over the ring: %w", run.Rounds, err)
	}
	return r, nil
}

func newTheoryLink(run theory.Run) (*theoryLink, error) {
	u := run.Uplink
	params, ok := xmkckks.Lookup(u.ParameterSet)
	if !ok {
		return nil, fmt.Errorf("the parameter set is %q; allowed is one of the program's", u.ParameterSet)
	}
	cfg := channel.Config{LatticeBits: u.LatticeBits}
	for range run.Devices {
		cfg.Devices = append(cfg.Devices, channel.Gaussian{Mu: u.Mu, Sigma: u.Sigma})
	}
	l := &theoryLink{seed: run.Seed, scaled: make([]float64, run.Devices)}
	var err error
	if l.channel, err = channel.New(cfg, l.seed.Derive("channel")); err != nil {
		return nil, err
	}
	l.mu, l.omega = l.channel.Moments()
	for i := range l.omega {
		// Rounding a Gaussian of many lattice steps adds a twelfth of a step's square.
		l.omega[i] += 1 / (12 * l.channel.Alpha() * l.channel.Alpha())
	}
	l.design, err = xmkckks.NewDesign(params, params.Form, xmkckks.Link{
		Mu: l.mu, Omega: l.omega, Alpha: l.channel.Alpha(), DeltaMax: run.DeltaMax, Shares: run.Rounds,
	})
	if err != nil {
		return nil, err
	}
	l.ctx, err = xmkckks.NewContext(l.design.Params, l.design.Form, 1, l.design.Witnesses, l.seed.Derive("public"))
	return l, err
}

// Moments returns those of the gains, and the variance that the budget predicts for the
// decoded noise.
func (l *theoryLink) Moments() (mu, omega []float64, decodedVariance float64) {
	std := l.design.DecodedStd()
	return l.mu, l.omega, std * std
}

// Close has nothing to give up: without devices there are no keys.
func (l *theoryLink) Close() {}

// learn reads the gains of a round into the truth: sum_i (h_i/mu_i) Delta f_i, and the
// deviation of epsilon given these gains.
func (l *theoryLink) learn(k int, delta [][]float64) {
	l.channel.Scaled(l.scaled, uint32(k), 0, int(slot.TxC0))
	sum := 0.0
	for i, h := range l.scaled {
		sum += h / l.channel.Alpha() * (delta[i][0] / l.mu[i])
	}
	l.truth = aggregate.Truth{Ideal: []float64{sum}, EpsStd: l.design.ConditionalStd(l.ctx, l.scaled)}
}

// Truth returns what the simulation knows of the last round: learner.Simulated.
func (l *theoryLink) Truth() aggregate.Truth { return l.truth }

// drawnLink is the link without the ring: the same gains, and noise of the
// deviation that the budget predicts given these gains.
type drawnLink struct {
	*theoryLink
	stream *keystream.Stream
	rnd    *rand.Rand
}

func newDrawnLink(l *theoryLink) *drawnLink {
	stream := l.seed.Derive("decoded noise").Stream()
	return &drawnLink{theoryLink: l, stream: stream, rnd: rand.New(stream)}
}

// Aggregate draws M_k: learner.Aggregator.
func (a *drawnLink) Aggregate(_ context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
	a.learn(k, delta)
	a.stream.Start(uint32(k), 0)
	return aggregate.Outcome{M: []float64{a.truth.Ideal[0] + a.truth.EpsStd*a.rnd.NormFloat64()}, Attempts: 1}, nil
}

// ringLink is the link as it is: the protocol's four phases over ring elements.
type ringLink struct {
	*theoryLink
	engine  *round.Engine
	devices []*xmkckks.Device
}

// open makes the ring, the devices with their keys, and the engine.
func (r *ringLink) open() error {
	l := r.theoryLink
	uplink, err := phy.NewRing(phy.RingConfig{
		Modulus: l.ctx.Modulus(), Gains: l.channel,
		Secret: l.seed.Derive("public link"), Noise: l.seed.Derive("ring noise"),
	})
	if err != nil {
		return err
	}
	guard := xmkckks.NewLedger(l.design.Link.Shares)
	for i := range l.channel.Devices() {
		d, err := l.ctx.NewDevice(xmkckks.DeviceConfig{
			Index: i, Mu: l.mu[i], DeltaMax: l.design.Link.DeltaMax, Seed: l.seed.DeriveSecret("device", uint64(i)), Guard: guard,
		})
		if err != nil {
			return err
		}
		r.devices = append(r.devices, d)
	}
	r.engine, err = round.New(round.Config{
		Context: l.ctx, Participants: round.Locals(r.devices, uplink), Server: l.ctx.NewServer(l.design), Receiver: uplink, Attempts: 1, Workers: 1,
	})
	return err
}

// Close overwrites what the devices and the engine hold.
func (r *ringLink) Close() {
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
func (r *ringLink) Aggregate(ctx context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
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
