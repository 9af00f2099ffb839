package main

import (
	"context"
	"errors"

	"ringwave/crypto/aggregate"
	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/radio/intake"
)

// protocol is the encrypted aggregator: crypto/round over a ring link, and the
// harness that knows the gains and so the noiseless value.
type protocol struct {
	engine  *round.Engine
	devices []*xmkckks.Device
	design  xmkckks.Design
	ctx     *xmkckks.Context
	link    simulatedLink
	mu      []float64
	scaled  []float64
	known   aggregate.Truth // of the last round

	epochRounds int
	baseEpoch   uint32 // of the round firstRound
	firstRound  int

	// failed hears of every attempt that a check declared void.
	failed func(k int, f round.Failure)
}

// simulatedLink is an uplink and what only its simulation knows.
type simulatedLink interface {
	phy.Uplink
	// truth writes the scaled gains H_i of an attempt that succeeded, the last one
	// made, to dst.
	truth(dst []float64, k, attempt uint32)
	// overheadBits is what a device sends in a round besides its payload.
	overheadBits() int
	// report tells how the link did in a round, nil if it has no frames.
	report() *runfolder.LinkRow
	// clippedSamples is how many samples the receiver clipped in a round.
	clippedSamples() int64
	// record begins to keep what is received in a run folder, if the configuration
	// wants it; endRound says that a round is over.
	record(dir string) error
	endRound() error
	// plots draws what a radio engineer wants to see of the last round into a
	// folder, and gives the files.
	plots(dir string, rows []runfolder.Row) ([]string, error)
	// close lets go of what the link holds.
	close() error
}

// ringLink is the ring link over a simulated channel.
type ringLink struct {
	*phy.Ring
	gains    phy.Gains
	overhead int
}

func (l *ringLink) truth(dst []float64, k, attempt uint32) {
	l.gains.Scaled(dst, k, attempt, int(phy.TxC0))
}
func (l *ringLink) overheadBits() int          { return l.overhead }
func (l *ringLink) report() *runfolder.LinkRow { return nil }
func (l *ringLink) clippedSamples() int64      { return 0 }
func (l *ringLink) record(string) error        { return nil }
func (l *ringLink) endRound() error            { return nil }
func (l *ringLink) plots(string, []runfolder.Row) ([]string, error) {
	return nil, nil
}
func (l *ringLink) close() error { return nil }

func newRingLink(root, secret keystream.Seed, gains phy.Gains, ctx *xmkckks.Context, design xmkckks.Design) (*ringLink, error) {
	ring, err := phy.NewRing(phy.RingConfig{
		Modulus: ctx.Modulus(), Gains: gains, NoiseStd: design.Link.NoiseStd,
		Secret: secret, Noise: root.Derive("ring noise"),
	})
	if err != nil {
		return nil, err
	}
	bits, err := checkBits(ring, ctx)
	return &ringLink{ring, gains, bits}, intake.UserError(err)
}

// newLink makes the link that the configuration names, over a channel of which k is
// known, or all if that is nil. Devices and server share the secret.
func newLink(c config.Config, root, secret keystream.Seed, ch *channel.Channel, k *known, ctx *xmkckks.Context, design xmkckks.Design) (simulatedLink, error) {
	if c.OverWaveform() {
		return newWaveLink(c, root, secret, ch, k, ctx)
	}
	gains, err := ringGains(c, root, ch)
	if err != nil {
		return nil, err
	}
	l, err := newRingLink(root, secret, gains, ctx, design)
	if err == nil && c.System().Unchecked {
		l.overhead = 0 // what nobody checks is not sent
	}
	return l, err
}

// newProtocol makes devices, server and link, whose secret is given. The guard keeps the decryption
// shares; the first round of this process is firstRound, with baseEpoch's keys.
func newProtocol(c config.Config, root, secret keystream.Seed, ch *channel.Channel, k *known, design xmkckks.Design, guard xmkckks.Guard, baseEpoch uint32, firstRound int) (*protocol, error) {
	ctx, err := xmkckks.NewContext(design.Params, design.Form, design.Link.Messages, design.Witnesses, root.Derive("public"))
	if err != nil {
		return nil, err
	}
	link, err := newLink(c, root, secret, ch, k, ctx, design)
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
	for i := range ch.Devices() {
		seed := secrets.DeriveSecret("device", uint64(i))
		d, err := ctx.NewDevice(xmkckks.DeviceConfig{
			Index: i, Mu: p.mu[i], DeltaMax: design.Link.DeltaMax, Seed: seed, Guard: guard,
		})
		if err != nil {
			seed.Wipe()
			return nil, errors.Join(err, p.close())
		}
		p.devices = append(p.devices, d)
	}
	engine := round.Config{
		Context: ctx, Devices: p.devices, Server: ctx.NewServer(design), Uplink: link,
		Attempts: c.Encryption.AttemptsPerRound,
	}
	if c.System().Unchecked {
		engine.Policy, engine.Attempts = round.Measure, 1
		if c.System().StaleKey {
			engine.KeyRound = keyRound
		}
	} else if w := p.gains(); w != nil {
		engine.Admit = w.admit
	}
	p.engine, err = round.New(engine)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// close closes the link first, so that carriers go off, stops the engine, if there is
// one, and wipes the devices' secrets. A second close does nothing.
func (p *protocol) close() error {
	err := p.link.close()
	if p.engine != nil {
		p.engine.Close()
		p.engine = nil
	}
	for _, d := range p.devices {
		d.Close()
	}
	return err
}

// epochOf gives the key epoch of round k.
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

// ideal gives the noiseless M of a direction, of the gains in p.scaled.
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
	p.known.Ideal, p.known.EpsStd = p.known.Ideal[:0], std
	for d := range delta[0] {
		p.known.Ideal = append(p.known.Ideal, p.ideal(delta, d, alpha))
	}
}

// Truth returns what the gains of the last round tell: learner.Simulated.
func (p *protocol) Truth() aggregate.Truth { return p.known }

// Aggregate carries round k: learner.Aggregator.
func (p *protocol) Aggregate(ctx context.Context, k int, delta [][]float64) (aggregate.Outcome, error) {
	if err := p.enterEpoch(k); err != nil {
		return aggregate.Outcome{}, err
	}
	out, err := p.engine.Run(ctx, uint32(k), delta)
	if err != nil {
		return aggregate.Outcome{}, err
	}
	if err := p.link.endRound(); err != nil {
		return aggregate.Outcome{}, err
	}
	for _, f := range out.Failures {
		p.failed(k, f)
	}
	if w := p.gains(); w != nil {
		w.endRound(k, out.Failures)
	}
	if out.Skipped {
		return aggregate.Outcome{Attempts: out.Attempts, Skipped: true}, nil
	}
	p.link.truth(p.scaled, uint32(k), out.Attempt)
	p.learn(delta, out.Alpha, p.design.ConditionalStdAt(p.ctx, p.scaled, out.Alpha))
	return aggregate.Outcome{M: out.M, Attempts: out.Attempts, Clipped: out.Clipped}, nil
}

// analogGains gives the gains that the unencrypted aggregator meets: those that
// the encrypted one meets in the first attempt at a round, at b.
type analogGains struct {
	channel *channel.Channel
	h       []float64
}

// Gains gives h_i = H_i/alpha of a round: aggregate.Gains.
func (g *analogGains) Gains(k int) []float64 {
	g.channel.Scaled(g.h, uint32(k), 0, 0)
	for i := range g.h {
		g.h[i] /= g.channel.Alpha()
	}
	return g.h
}

// gainsOf gives the gains of a channel as systems without rings meet them.
func gainsOf(ch *channel.Channel) *analogGains {
	return &analogGains{ch, make([]float64, ch.Devices())}
}

// newAnalog makes the unencrypted aggregator, Eq. 4 of the paper.
func newAnalog(s Setting) (learner.Aggregator, []string, error) {
	a, err := learner.NewEZOFL(s.Gains, s.Mu, s.Config.Channel.AnalogNoiseStd, s.Seed.Derive("receiver noise"))
	return a, nil, err
}
