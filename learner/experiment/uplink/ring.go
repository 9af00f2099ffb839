package uplink

import (
	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/radio/intake"
)

// checkBits gives the size of what a round sends besides its payload: check
// coefficients and patterns of one symbol a bit.
func checkBits(r *phy.Ring, ctx *xmkckks.Context) (int, error) {
	coefficients := 0
	for t := range phy.Transmission(phy.Transmissions) {
		m, err := r.CheckCoefficients(t, ctx.PayloadLength(t))
		if err != nil {
			return 0, err
		}
		coefficients += m
	}
	return coefficients*ctx.Params.CoefficientBits() + phy.Transmissions*r.PatternSymbols(), nil
}

// Link is an uplink and what only its simulation knows.
type Link interface {
	phy.Uplink
	// truth writes the scaled gains H_i of an attempt that succeeded, the last one
	// made, to dst.
	Truth(dst []float64, k, attempt uint32)
	// overheadBits is what a device sends in a round besides its payload.
	OverheadBits() int
	// report tells how the link did in a round, nil if it has no frames.
	Row() *runfolder.LinkRow
	// clippedSamples is how many samples the receiver clipped in a round.
	ClippedSamples() int64
	// record begins to keep what is received in a run folder, if the configuration
	// wants it; endRound says that a round is over.
	Record(dir string) error
	EndRound() error
	// plots draws what a radio engineer wants to see of the last round into a
	// folder, and gives the files.
	Plot(dir string, rows []runfolder.Row) ([]string, error)
	// close lets go of what the link holds.
	Close() error
}

// Ring is the ring link over a simulated channel.
type Ring struct {
	*phy.Ring
	gains    phy.Gains
	overhead int
}

func (l *Ring) Truth(dst []float64, k, attempt uint32) {
	l.gains.Scaled(dst, k, attempt, int(phy.TxC0))
}

func (l *Ring) OverheadBits() int { return l.overhead }

func (l *Ring) Row() *runfolder.LinkRow { return nil }

func (l *Ring) ClippedSamples() int64 { return 0 }

func (l *Ring) Record(string) error { return nil }

func (l *Ring) EndRound() error { return nil }

func (l *Ring) Plot(string, []runfolder.Row) ([]string, error) {
	return nil, nil
}

func (l *Ring) Close() error { return nil }

func NewRing(root, secret keystream.Seed, gains phy.Gains, ctx *xmkckks.Context, design xmkckks.Design) (*Ring, error) {
	ring, err := phy.NewRing(phy.RingConfig{
		Modulus: ctx.Modulus(), Gains: gains, NoiseStd: design.Link.NoiseStd,
		Secret: secret, Noise: root.Derive("ring noise"),
	})
	if err != nil {
		return nil, err
	}
	bits, err := checkBits(ring, ctx)
	return &Ring{ring, gains, bits}, intake.UserError(err)
}

// New makes the link that the configuration names, over a channel of which k is
// known, or all if that is nil. Devices and server share the secret.
func New(c config.Config, root, secret keystream.Seed, ch *channel.Channel, k *LinkStats, ctx *xmkckks.Context, design xmkckks.Design) (Link, error) {
	if c.OverWaveform() {
		return NewWaveform(c, root, secret, ch, k, ctx)
	}
	gains, err := setup.RingGains(c, root, ch)
	if err != nil {
		return nil, err
	}
	l, err := NewRing(root, secret, gains, ctx, design)
	if err == nil && c.System().Unchecked {
		l.overhead = 0 // what nobody checks is not sent
	}
	return l, err
}
