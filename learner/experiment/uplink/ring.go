package uplink

import (
	"fmt"
	"slices"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
	"ringwave/radio/intake"
)

// checkBits returns the size of what a round sends besides its payload: check
// coefficients and patterns of one symbol a bit.
func checkBits(r *phy.Ring, ctx *xmkckks.Context) (int, error) {
	coefficients := 0
	for t := range slot.Transmission(slot.Transmissions) {
		m, err := r.CheckCoefficients(t, ctx.PayloadLength(t))
		if err != nil {
			return 0, err
		}
		coefficients += m
	}
	return coefficients*ctx.Params.CoefficientBits() + slot.Transmissions*r.PatternSymbols(), nil
}

// Link is an uplink and what only its simulation knows.
type Link interface {
	phy.Uplink
	// Truth writes the scaled gains H_i of an attempt that succeeded, the last one made,
	// to dst.
	Truth(dst []float64, k, attempt uint32)
	// OverheadBits returns what a device sends in a round besides its payload.
	OverheadBits() int
	// Close lets go of what the link holds.
	Close() error
}

// Kind is what link.kind names.
type Kind struct {
	Name string
	New  func(s Setting) (Link, error)
}

// Setting is what a link is made of.
type Setting struct {
	Config config.Config
	// Seed is the root of every random stream, which are derived by name; devices and
	// server share Secret, which patterns and check weights come from.
	Seed, Secret keystream.Seed
	Channel      *channel.Channel
	Stats        *LinkStats // nil for all that the channel's simulation knows
	Context      *xmkckks.Context
	Design       xmkckks.Design
}

// Kinds returns those that every program has.
func Kinds() []Kind {
	return []Kind{
		{setup.KindRing, newRing},
		{setup.KindWaveform, func(s Setting) (Link, error) {
			return newWaveform(s.Config, s.Seed, s.Secret, s.Channel, s.Stats, s.Context)
		}},
	}
}

// New makes the link that the configuration names, of this package's kinds and more.
// Systems that no waveform carries go over the ring.
func New(s Setting, more ...Kind) (Link, error) {
	name := s.Config.Link.Kind
	if name == setup.KindWaveform && !s.Config.OverWaveform() {
		name = setup.KindRing
	}
	for _, k := range slices.Concat(Kinds(), more) {
		if k.Name == name {
			return k.New(s)
		}
	}
	return nil, intake.UserError(fmt.Errorf("link.kind = %q: no such link is known here", name))
}

// Ring is the ring link over a simulated channel.
type Ring struct {
	*phy.Ring
	gains    phy.Gains
	overhead int
}

// Truth writes the gains of an attempt: Link.
func (l *Ring) Truth(dst []float64, k, attempt uint32) {
	l.gains.Scaled(dst, k, attempt, int(slot.TxC0))
}

// OverheadBits implements Link.
func (l *Ring) OverheadBits() int { return l.overhead }

// Close implements Link.
func (l *Ring) Close() error { return nil }

// NewRing makes the ring link over given gains.
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

// newRing is the Kind's.
func newRing(s Setting) (Link, error) {
	gains, err := setup.RingGains(s.Config, s.Seed, s.Channel)
	if err != nil {
		return nil, err
	}
	l, err := NewRing(s.Seed, s.Secret, gains, s.Context, s.Design)
	if err != nil {
		return nil, err
	}
	if s.Config.System().Unchecked {
		l.overhead = 0 // what nobody checks is not sent
	}
	return l, nil
}
