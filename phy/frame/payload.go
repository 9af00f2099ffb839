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
// A payload that was not read is sent again under the same gains, and whether integers
// can be found depends on gains and digits: the same digits would hardly ever be read.
// So the digits of a payload that is sent again are those of x + u_i rho, where rho is
// uniform in Z_q^n and u_i = sum_s z_s p_is mod q is a linear form of device i's pattern
// p_i, rho and z drawn with the check weights. The superposition then has sum H_i u_i
// rho = (sum_s z_s P_s) rho more, which the receiver takes off without knowing a gain.
//
// Encode and EncodeChecks may be called by several goroutines between two calls of
// Draw, each with its own Scratch; DecodeBlock by one.
type Payload struct {
	mod    *zq.Modulus
	codec  *digit.Codec
	blocks []block
	n      int

	decoded []Scratch // one a block
	masked  bool      // by the last Draw
}

// block is a run of coefficients and its check.
type block struct {
	from, coefficients int
	check              *Check
	symbol             int // of the first digit
	mask               mask
}

// mask is what a block's coefficients are moved by.
type mask struct{ z, rho zq.Vector }

// Scratch is working memory for one block of one device.
type Scratch struct {
	part, sums zq.Vector
	u, minus   zq.Vector // one coefficient each: u_i and -u_i
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
		b := block{from: from, coefficients: k, check: check, symbol: symbol, mask: mask{mod.NewVector(check.pattern.Len()), mod.NewVector(k)}}
		p.blocks = append(p.blocks, b)
		p.decoded = append(p.decoded, p.scratch(b))
		symbol += (k + check.Len()) * codec.Digits()
	}
	return p, nil
}

func (p *Payload) scratch(b block) Scratch {
	return Scratch{
		part: p.mod.NewVector(b.coefficients), sums: p.mod.NewVector(b.check.Len()),
		u: p.mod.NewVector(1), minus: p.mod.NewVector(1),
	}
}

// NewScratch returns working memory for Encode: one set a device.
func (p *Payload) NewScratch() []Scratch {
	s := make([]Scratch, len(p.blocks))
	for i, b := range p.blocks {
		s[i] = p.scratch(b)
	}
	return s
}

// Len returns the number of coefficients, Symbols the length in symbols, Blocks
// the number of blocks.
func (p *Payload) Len() int    { return p.n }
func (p *Payload) Blocks() int { return len(p.blocks) }
func (p *Payload) Symbols() int {
	_, to := p.BlockSymbols(len(p.blocks) - 1)
	return to
}

// BlockSymbols returns the range of block i's symbols.
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

// Draw takes the check weights of a frame from their stream (see Weights), and a mask if
// the payload is sent again.
func (p *Payload) Draw(stream *keystream.Stream, again bool) {
	p.masked = again
	for _, b := range p.blocks {
		b.check.Draw(stream)
		if !again {
			continue
		}
		for j, prime := range p.mod.Primes() {
			stream.Uniform(b.mask.z[j], prime)
			stream.Uniform(b.mask.rho[j], prime)
		}
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
// scratch, behind a pattern given as residues; and the payload's once more where Draw has
// drawn a mask.
func (p *Payload) EncodeChecks(dst []int8, pattern zq.Vector, scratch []Scratch) {
	for i, b := range p.blocks {
		s := scratch[i]
		b.check.Sums(s.sums, s.part, pattern)
		from, to := p.CheckSymbols(i)
		p.codec.Split(dst[from:to], s.sums)
		if !p.masked {
			continue
		}
		b.mask.forms(p.mod, s.u, s.minus, pattern)
		p.mod.AddMultiple(s.part, s.u, b.mask.rho)
		p.codec.Split(dst[b.symbol:from], s.part)
		p.mod.AddMultiple(s.part, s.minus, b.mask.rho)
	}
}

// forms sets u to the linear form of a pattern, and minus to -u.
func (m *mask) forms(mod *zq.Modulus, u, minus, pattern zq.Vector) {
	for j, p := range mod.Primes() {
		u[j][0] = mod.Dot(j, m.z[j][:len(pattern[j])], pattern[j])
		minus[j][0] = (p - u[j][0]) % p
	}
}

// DecodeBlock joins the superposed digits of block i, writes its coefficients
// to v, of Len coefficients, and reports whether its linear check holds behind the
// superposed pattern.
func (p *Payload) DecodeBlock(v zq.Vector, i int, y []int32, pattern []int64) bool {
	b, s := p.blocks[i], p.decoded[i]
	p.join(b, s, y, pattern)
	for j := range v {
		copy(v[j][b.from:b.from+b.coefficients], s.part[j])
	}
	return b.check.Verify(s.part, pattern, s.sums)
}

// join sets the scratch's coefficients and checks to those of superposed digits, without
// their mask.
func (p *Payload) join(b block, s Scratch, y []int32, pattern []int64) {
	split := b.coefficients * p.codec.Digits()
	p.codec.Join(s.part, y[:split])
	p.codec.Join(s.sums, y[split:])
	if p.masked {
		b.check.take(pattern)
		b.mask.forms(p.mod, s.u, s.minus, b.check.pattern)
		p.mod.AddMultiple(s.part, s.minus, b.mask.rho)
	}
}
