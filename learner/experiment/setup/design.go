package setup

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tuneinsight/lattigo/v5/ring"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/equalise"
	"ringwave/radio/intake"
)

// ParameterSet returns the parameter set and the form of a configuration with its
// overrides. It refuses names that do not exist, primes that do not, and rings below 128
// bits of security (intake.UserError).
func ParameterSet(e config.Encryption) (xmkckks.Params, xmkckks.Form, error) {
	p, ok := xmkckks.Lookup(e.ParameterSet)
	if !ok {
		var names []string
		for _, s := range xmkckks.Sets() {
			names = append(names, s.Name)
		}
		return p, 0, intake.UserError(fmt.Errorf("encryption.parameter_set is %q: known are %v", e.ParameterSet, names))
	}
	if err := overrideRing(&p, e); err != nil {
		return p, 0, intake.UserError(err)
	}
	if e.Log2Lambda != 0 {
		p.LogLambda = e.Log2Lambda
	}
	if e.Log2FloodStd != 0 {
		p.LogFlood = e.Log2FloodStd
	}
	if e.N != 0 || len(e.ModulusBits) != 0 || e.Log2Lambda != 0 || e.Log2FloodStd != 0 {
		p.Note = fmt.Sprintf("changed from %s in the configuration: what is known of that set does not hold for it", p.Name)
		p.Name += "-changed"
	}
	form := p.Form
	switch e.Form {
	case "whole":
		form = xmkckks.Whole
	case "short":
		form = xmkckks.Short
	}
	return p, form, nil
}

// overrideRing applies encryption.n and encryption.modulus_bits.
func overrideRing(p *xmkckks.Params, e config.Encryption) error {
	if e.N == 0 && len(e.ModulusBits) == 0 {
		return nil
	}
	sizes := e.ModulusBits
	if len(sizes) == 0 {
		for _, prime := range p.Primes {
			sizes = append(sizes, bits.Len64(prime))
		}
	}
	if e.N != 0 {
		p.N = e.N
	}
	p.Primes = nil
	generators := map[int]*ring.NTTFriendlyPrimesGenerator{}
	for _, size := range sizes {
		if generators[size] == nil {
			g := ring.NewNTTFriendlyPrimesGenerator(uint64(size), uint64(2*p.N))
			generators[size] = &g
		}
		prime, err := generators[size].NextDownstreamPrime()
		if err != nil {
			return fmt.Errorf("encryption.modulus_bits: no more primes of %d bits that are 1 modulo 2n = %d: %w", size, 2*p.N, err)
		}
		p.Primes = append(p.Primes, prime)
	}
	if s := p.Security(); !s.MeetsStandard() {
		return fmt.Errorf("encryption.n = %d with log2 q = %.1f: q is too large for n; at most %.0f bits keep 128-bit security (HomomorphicEncryption.org 2018)", p.N, s.LogQ, s.Standard)
	}
	return nil
}

// SharesPerKey returns tau, the decryption shares that one key may give: one a round
// of its epoch, whatever the attempts.
func SharesPerKey(c config.Config) int {
	rounds := c.Optimizer.Rounds
	if e := c.Encryption.KeyEpochRounds; e > 0 {
		rounds = min(rounds, e)
	}
	return rounds
}

// NewDesign fits the parameter set of a configuration to its channel. Where noise and
// messages have no room in it, that is the user's to mend (intake.UserError).
func NewDesign(c config.Config, ch *channel.Channel) (xmkckks.Design, error) {
	p, form, err := ParameterSet(c.Encryption)
	if err != nil {
		return xmkckks.Design{}, err
	}
	mu, omega := LinkMoments(c, ch)
	link := xmkckks.Link{
		Mu: mu, Omega: omega, K: ch.KFactors(), Alpha: designAlpha(c, ch),
		DeltaMax: c.Encryption.DeltaMax, Shares: SharesPerKey(c), Messages: c.Optimizer.PackedDirections,
	}
	if _, ok := Equalisation(c); ok {
		intended(&link)
	}
	if !c.System().Ideal {
		for t := range link.NoiseStd {
			link.NoiseStd[t] = c.Link.NoiseStd
		}
	}
	d, err := xmkckks.NewDesign(p, form, link)
	if errors.Is(err, xmkckks.ErrNoRoom) {
		err = fmt.Errorf("optimizer.packed_directions is %d: %w", c.Optimizer.PackedDirections, err)
	}
	return d, intake.UserError(err)
}

// Airtime returns the seconds that bits take at a bandwidth, one bit a second and
// hertz as in Section IV-H of the paper.
func Airtime(bits int, bandwidthHz float64) float64 { return float64(bits) / bandwidthHz }

// Equalisation returns how devices pre-equalise, and whether they do.
func Equalisation(c config.Config) (equalise.Method, bool) {
	switch c.System().Equalisation {
	case "zf":
		return equalise.ZF, true
	case "mmse":
		return equalise.MMSE, true
	}
	return 0, false
}

// RingGains returns the gains that a ring link meets: the channel's, or what devices make
// of them.
func RingGains(c config.Config, root keystream.Seed, ch *channel.Channel) (phy.Gains, error) {
	method, ok := Equalisation(c)
	if !ok {
		return ch, nil
	}
	gains, err := equalise.New(ch, method, c.Channel.PilotStd, root.Derive("pilots"))
	return gains, intake.UserError(err)
}

// intended replaces a link's moments by those of the gains that pre-equalisation is
// meant to make: 1.
func intended(l *xmkckks.Link) {
	l.Mu, l.Omega = slices.Repeat([]float64{1}, len(l.Mu)), slices.Repeat([]float64{1}, len(l.Mu))
	l.K, l.Alpha = nil, 1
}

// designAlpha returns the scale that a design must bear: the channel's, that of
// aligned gains, or the finest that a blind receiver may find, times the groups'
// integers.
func designAlpha(c config.Config, ch *channel.Channel) float64 {
	if !c.OverWaveform() || !ch.Continuous() {
		return ch.Alpha()
	}
	if RegimeOf(c) == bench.MeanAligned {
		return bench.AlignedScale * (1 + LinksOf(ch).AlignedTolerance(GroupSize(c)))
	}
	if g := c.Link.GroupSize; g > 0 && g < c.Devices.Count {
		return c.Link.MaxAlpha * bench.GroupScale
	}
	return c.Link.MaxAlpha
}
