package frame

import (
	"fmt"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/zq"
)

// Payload maps vectors of n coefficients to symbols and superposed symbols back
// to vectors, in blocks that each carry their own linear check.
//
// Encode and EncodeChecks may be called by several goroutines between two calls of
// Draw, each with its own Scratch; DecodeBlock by one.
type Payload struct {
	mod    *zq.Modulus
	codec  *digit.Codec
	blocks []block
	n      int

	decoded []Scratch // one a block
}

// block is a run of coefficients and its check.
type block struct {
	from, coefficients int
	check              *Check
	symbol             int // of the first digit
}

// Scratch is working memory for one block of one device.
type Scratch struct {
	part, sums zq.Vector
}

// NewPayload lays out payloads of n coefficients in blocks of at most
// blockCoefficients, behind patterns of the given number of symbols.
func NewPayload(mod *zq.Modulus, codec *digit.Codec, n, blockCoefficients, patternSymbols int) (*Payload, error) {
	return layOut(mod, codec, n, blockCoefficients, func(k int) (*Check, error) {
		return NewCheck(mod, k, patternSymbols, 0)
	})
}

func layOut(mod *zq.Modulus, codec *digit.Codec, n, blockCoefficients int, newCheck func(k int) (*Check, error)) (*Payload, error) {
	if n < 1 || blockCoefficients < 1 {
		return nil, fmt.Errorf("a payload of %d coefficients in blocks of %d: both must be positive", n, blockCoefficients)
	}
	p := &Payload{mod: mod, codec: codec, n: n}
	symbol := 0
	for from := 0; from < n; from += blockCoefficients {
		k := min(blockCoefficients, n-from)
		check, err := newCheck(k)
		if err != nil {
			return nil, err
		}
		b := block{from: from, coefficients: k, check: check, symbol: symbol}
		p.blocks = append(p.blocks, b)
		p.decoded = append(p.decoded, p.scratch(b))
		symbol += (k + check.Len()) * codec.Digits()
	}
	return p, nil
}

func (p *Payload) scratch(b block) Scratch {
	return Scratch{part: p.mod.NewVector(b.coefficients), sums: p.mod.NewVector(b.check.Len())}
}

// NewScratch gives working memory for Encode: one set a device.
func (p *Payload) NewScratch() []Scratch {
	s := make([]Scratch, len(p.blocks))
	for i, b := range p.blocks {
		s[i] = p.scratch(b)
	}
	return s
}

// Len gives the number of coefficients, Symbols the length in symbols, Blocks
// the number of blocks.
func (p *Payload) Len() int    { return p.n }
func (p *Payload) Blocks() int { return len(p.blocks) }
func (p *Payload) Symbols() int {
	_, to := p.BlockSymbols(len(p.blocks) - 1)
	return to
}

// BlockSymbols gives the range of block i's symbols.
func (p *Payload) BlockSymbols(i int) (from, to int) {
	b := p.blocks[i]
	return b.symbol, b.symbol + (b.coefficients+b.check.Len())*p.codec.Digits()
}

// CheckSymbols returns the range of block i's symbols that carry its check, the last
// ones.
func (p *Payload) CheckSymbols(i int) (from, to int) {
	from, to = p.BlockSymbols(i)
	return from + p.blocks[i].coefficients*p.codec.Digits(), to
}

// Draw takes the check weights of a frame from their stream: see Weights.
func (p *Payload) Draw(stream *keystream.Stream) {
	for _, b := range p.blocks {
		b.check.Draw(stream)
	}
}

// Encode writes the digits of x to dst. Those of its checks are EncodeChecks's.
func (p *Payload) Encode(dst []int8, x zq.Vector, scratch []Scratch) {
	for i, b := range p.blocks {
		s := scratch[i]
		for j := range s.part {
			copy(s.part[j], x[j][b.from:b.from+b.coefficients])
		}
		split, _ := p.CheckSymbols(i)
		p.codec.Split(dst[b.symbol:split], s.part)
	}
}

// EncodeChecks writes the digits of the checks of what Encode took last with the same
// scratch, behind a pattern given as residues.
func (p *Payload) EncodeChecks(dst []int8, pattern zq.Vector, scratch []Scratch) {
	for i, b := range p.blocks {
		s := scratch[i]
		b.check.Sums(s.sums, s.part, pattern)
		from, to := p.CheckSymbols(i)
		p.codec.Split(dst[from:to], s.sums)
	}
}

// DecodeBlock joins the superposed digits of block i, writes its coefficients
// to v, of Len coefficients, and reports whether its linear check holds behind the
// superposed pattern.
func (p *Payload) DecodeBlock(v zq.Vector, i int, y []int32, pattern []int64) bool {
	b, s := p.blocks[i], p.decoded[i]
	split := b.coefficients * p.codec.Digits()
	p.codec.Join(s.part, y[:split])
	p.codec.Join(s.sums, y[split:])
	for j := range v {
		copy(v[j][b.from:b.from+b.coefficients], s.part[j])
	}
	return b.check.Verify(s.part, pattern, s.sums)
}
