package frame

import (
	"math"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/zq"
)

// Format is the form of a frame's checks and header.
type Format uint8

const (
	// Format1 is that of early recordings: checks do not cover the pattern, their
	// number follows from q, and their weights are those of a round, an attempt and a
	// transmission, whatever the group and the repeat. It is only received.
	Format1 Format = iota + 1
	// Format2 has headers whose symbols are the bits as they are: it is only received, too.
	Format2
	// Format3 is the present one: every other symbol of a header changes its sign, so that
	// the runs of zeros in a header have no mean that a DC block would take.
	Format3

	// Present is the format that is sent; 0 stands for it.
	Present = Format3
)

// alternates reports whether every other symbol of a header changes its sign.
func (f Format) alternates() bool { return f == 0 || f >= Format3 }

// NewPayload1 is NewPayload for Format1. Draw1 takes the place of Draw.
func NewPayload1(mod *zq.Modulus, codec *digit.Codec, n, blockCoefficients, _ int) (*Payload, error) {
	return layOut(mod, codec, n, blockCoefficients, func(k int) (*Check, error) {
		c := newExactCheck(mod, k, 0, int(math.Ceil(SoundnessBits/mod.Log2())))
		return c, nil
	})
}

// Draw1 draws the check weights of Format1 from the transmission's seed.
func (p *Payload) Draw1(seed keystream.Seed, round, attempt uint32) {
	for i, b := range p.blocks {
		stream := seed.Derive("block", uint64(i)).Stream()
		stream.Start(round, attempt)
		b.check.Draw(stream)
	}
}
