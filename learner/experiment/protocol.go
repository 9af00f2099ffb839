package experiment

import (
	"context"
	"errors"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy/channel"
)

// protocol is the encrypted aggregator: crypto/round over a ring link, and the
// harness that knows the gains and so the noiseless value.
type protocol struct {
	engine  *round.Engine
	devices []*xmkckks.Device
	design  xmkckks.Design
	ctx     *xmkckks.Context
	link    uplink.Link
	// waveform is the link where it is one; nil elsewhere.
	waveform *uplink.Waveform
	mu       []float64
	scaled   []float64
	truth    aggregate.Truth // of the last round
	alpha    float64         // of scaled; 0 before there are any

	epochRounds int
	baseEpoch   uint32 // of the round firstRound
	firstRound  int

	// failed hears of every attempt that a check declared void.
	failed func(k int, f round.Failure)
}

// newProtocol makes devices, server and link, whose secret is given. The guard keeps the decryption
// shares; the first round of this process is firstRound, with baseEpoch's keys.
func newProtocol(c config.Config, root, secret keystream.Seed, ch *channel.Channel, stats *uplink.LinkStats, links []uplink.Kind, design xmkckks.Design, guard xmkckks.Guard, baseEpoch uint32, firstRound int) (*protocol, error) {
	ctx, err := xmkckks.NewContext(design.Params, design.Form, design.Link.Messages, design.Witnesses, root.Derive("public"))
	if err != nil {
		return nil, err
	}
	link, err := uplink.New(uplink.Setting{Config: c, Seed: root, Secret: secret, Channel: ch, Stats: stats, Context: ctx, Design: design}, links...)
	if err != nil {
		return nil, err
	}
	secrets, err := secretSeed(c, root)
	if err != nil {
		return nil, err
	}
	defer secrets.Wipe()
	p := &protocol{
		design: design, ctx: ctx, link: link, mu: design.Link.Mu,
		scaled: make([]float64, ch.Devices()), epochRounds: c.Encryption.KeyEpochRounds,
		baseEpoch: baseEpoch, firstRound: firstRound, failed: func(int, round.Failure) {},
	}
	p.waveform, _ = link.(*uplink.Waveform)
	for i := range ch.Devices() {
		seed := secrets.DeriveSecret("device", uint64(i))
		d, err := ctx.NewDevice(xmkckks.DeviceConfig{
			Index: i, Mu: p.mu[i], DeltaMax: design.Link.DeltaMax, Seed: seed, Guard: guard,
		})
		if err != nil {
			seed.Wipe()
			return nil, errors.Join(err, p.Close())
		}
		p.devices = append(p.devices, d)
	}
	engine := round.Config{
		Context: ctx, Participants: round.Locals(p.devices, link), Server: ctx.NewServer(design), Receiver: link,
		Attempts: c.Encryption.AttemptsPerRound,
	}
	if c.System().Unchecked {
		engine.Policy, engine.Attempts = round.Measure, 1
		if c.System().StaleKey {
			engine.KeyRound = keyRound
		}
	} else if p.waveform != nil {
		engine.Admit = p.waveform.Watch.Admit
	}
	p.engine, err = round.New(engine)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close closes the link first, so that carriers go off, stops the engine, if there is
// one, and wipes the devices' secrets. A second close does nothing.
func (p *protocol) Close() error {
	err := p.link.Close()
	if p.engine != nil {
		p.engine.Close()
		p.engine = nil
	}
	for _, d := range p.devices {
		d.Close()
	}
	return err
}

// epochOf returns the key epoch of round k.
func (p *protocol) epochOf(k int) uint32 {
	if p.epochRounds == 0 {
		return p.baseEpoch
	}
	return p.baseEpoch + uint32((k-1)/p.epochRounds-(p.firstRound-1)/p.epochRounds)
}

// enterEpoch gives the devices the keys of round k.
func (p *protocol) enterEpoch(k int) error {
	epoch := p.epochOf(k)
	if p.devices[0].Epoch() == epoch {
		return nil
	}
	for _, d := range p.devices {
		if err := d.NewEpoch(epoch); err != nil {
			return err
		}
	}
	return nil
}

// ideal returns the noiseless M of a direction, of the gains in p.scaled.
func (p *protocol) ideal(delta [][]float64, direction int, alpha float64) float64 {
	sum := 0.0
	for i, h := range p.scaled {
		sum += h / alpha * (delta[i][direction] / p.mu[i])
	}
	return sum
}

// learn writes down the noiseless M of each direction, of the gains in p.scaled, and the
// deviation of eps, which is the same for all.
func (p *protocol) learn(delta [][]float64, alpha, std float64) {
	p.truth.Ideal, p.truth.EpsStd = p.truth.Ideal[:0], std
	for d := range delta[0] {
		p.truth.Ideal = append(p.truth.Ideal, p.ideal(delta, d, alpha))
	}
}

// Truth returns what the gains of the last round tell: learner.Simulated.
func (p *protocol) Truth() aggregate.Truth { return p.truth }

// Aggregate carries round k: learner.Aggregator.
func (p *protocol) Aggregate(ctx context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
	if err := p.enterEpoch(k); err != nil {
		return aggregate.Outcome{}, err
	}
	out, err := p.engine.Run(ctx, uint32(k), delta)
	if err != nil {
		return aggregate.Outcome{}, err
	}
	for _, f := range out.Failures {
		p.failed(k, f)
	}
	if p.waveform != nil {
		if err := p.waveform.EndRound(k, out.Failures); err != nil {
			return aggregate.Outcome{}, err
		}
	}
	if out.Skipped {
		return aggregate.Outcome{Attempts: out.Attempts, Skipped: true}, nil
	}
	p.link.Truth(p.scaled, uint32(k), out.Attempt)
	p.alpha = out.Alpha
	p.learn(delta, out.Alpha, p.design.ConditionalStdAt(p.ctx, p.scaled, out.Alpha))
	return aggregate.Outcome{M: out.M, Attempts: out.Attempts, Clipped: out.Clipped}, nil
}

// analogGains returns the gains that the unencrypted aggregator meets: those that
// the encrypted one meets in the first attempt at a round, at b.
type analogGains struct {
	channel *channel.Channel
	h       []float64
}

// Gains returns h_i = H_i/alpha of a round: aggregate.Gains.
func (g *analogGains) Gains(k int) []float64 {
	g.channel.Scaled(g.h, uint32(k), 0, 0)
	for i := range g.h {
		g.h[i] /= g.channel.Alpha()
	}
	return g.h
}

// gainsOf returns the gains of a channel as systems without rings meet them.
func gainsOf(ch *channel.Channel) *analogGains {
	return &analogGains{ch, make([]float64, ch.Devices())}
}

// newAnalog makes the unencrypted aggregator, Eq. 4 of the paper.
func newAnalog(s Setting) (learner.Aggregator, []string, error) {
	a, err := learner.NewEZOFL(s.Gains, s.Mu, s.Config.Channel.AnalogNoiseStd, s.Seed.Derive("receiver noise"))
	return a, nil, err
}
