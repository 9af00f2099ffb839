package frame

import (
	"math"

	"ringwave/phy/zq"
)

// Unknown is an integer that a receiver lacks, somewhere from From to To: a symbol that
// was lost, or several of one coefficient, or the value that all clipped symbols have.
// What is known of a block is read with 0 in its place; Step is the residual that 1 of it
// adds (Payload.Residual).
type Unknown struct {
	From, To int64
	Step     zq.Vector
}

// Choices returns how many values an unknown may have.
func (u Unknown) Choices() float64 { return math.Max(0, float64(u.To)-float64(u.From)+1) }

// Spare returns how many further sets of integers a receiver may offer to the check of a
// block beyond those that it read: a set that is wrong passes with probability p^-C, p the
// smallest prime, so that one of floor(p^C/2^40) does with 2^-40 at most. More than
// maxSpare would take long, and are not spared.
func (p *Payload) Spare() float64 {
	least := math.Inf(1)
	for _, prime := range p.mod.Primes() {
		least = math.Min(least, float64(prime))
	}
	return math.Min(maxSpare, math.Floor(math.Pow(least, float64(p.blocks[0].check.Len()))/(1<<SoundnessBits)))
}

// maxSpare bounds Spare: so many residuals take some 20 ms.
const maxSpare = 1 << 22

// NewResidual returns room for a residual of block i.
func (p *Payload) NewResidual(i int) zq.Vector { return p.mod.NewVector(p.blocks[i].check.Len()) }

// Residual sets dst to what the check coefficients of block i are more than those of its
// coefficients and pattern: 0 for an integer superposition. It is linear in y and pattern.
func (p *Payload) Residual(dst zq.Vector, i int, y []int32, pattern []int64) {
	b, s := p.blocks[i], p.decoded[i]
	p.join(b, s, y, pattern)
	b.check.take(pattern)
	b.check.Sums(dst, s.part, b.check.pattern)
	for j, prime := range p.mod.Primes() {
		for c, sum := range dst[j] {
			d := s.sums[j][c] - sum
			dst[j][c] = min(d, d+prime)
		}
	}
}

// Solve finds values of unknowns that make a residual 0, trying one after the other, and
// writes them to values. How many there may be is for who calls: see Spare.
func (p *Payload) Solve(values []int64, residual zq.Vector, unknowns []Unknown) bool {
	if len(unknowns) == 0 {
		return zero(residual)
	}
	u, rest := unknowns[0], unknowns[1:]
	now := make(zq.Vector, len(residual))
	for j := range now {
		now[j] = append([]uint64(nil), residual[j]...)
	}
	p.mod.AddScaled(now, u.From, u.Step)
	for v := u.From; v <= u.To; v++ {
		if (len(rest) > 0 || now[0][0] == 0) && p.Solve(values[1:], now, rest) {
			values[0] = v
			return true
		}
		for j, prime := range p.mod.Primes() {
			for c, step := range u.Step[j] {
				s := now[j][c] + step
				now[j][c] = min(s, s-prime)
			}
		}
	}
	return false
}

func zero(v zq.Vector) bool {
	for _, row := range v {
		for _, x := range row {
			if x != 0 {
				return false
			}
		}
	}
	return true
}
