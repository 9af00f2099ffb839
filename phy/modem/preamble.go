package modem

import (
	"fmt"
	"math/bits"
)

// DefaultPreamble is a length that suits most frames.
const DefaultPreamble Symbols = 127

// The bounds of Preamble.Length.
const (
	minOrder, maxOrder = 5, 12
	MinPreamble        = Symbols(1<<minOrder - 1)
	MaxPreamble        = Symbols(1<<maxOrder - 1)
)

// feedback holds, for each order from minOrder, a primitive polynomial over GF(2)
// without its highest term: bit i is the coefficient of x^i. (x^5+x^2+1, x^6+x+1,
// x^7+x+1, x^8+x^4+x^3+x^2+1, x^9+x^4+1, x^10+x^3+1, x^11+x^2+1,
// x^12+x^6+x^4+x+1; the tests verify the periods.)
func feedback(order int) uint {
	return [...]uint{0x05, 0x03, 0x03, 0x1d, 0x11, 0x09, 0x05, 0x53}[order-minOrder]
}

// Preamble is a maximum-length sequence of +-1 between cyclic guards: the last
// symbols of the sequence once more before it, the first ones after it. Thanks to
// the guards the correlation with the sequence is the periodic one, L at the right
// instant and -1 at all others, so that neighbouring symbols pull neither the
// timing nor the phase.
type Preamble struct {
	// Length is L without guards, 2^m - 1 from 31 to 4095.
	Length Symbols
	// Level is the amplitude of the symbols; 0 stands for 1. Where the frame's
	// symbols go up to a peak, a preamble of that level is received best.
	Level float32
}

func (p Preamble) order() int { return bits.Len(uint(p.Length)) }

func (p Preamble) level() float32 {
	if p.Level == 0 {
		return 1
	}
	return p.Level
}

func (p Preamble) validate() error {
	if p.Length < MinPreamble || p.Length > MaxPreamble || p.Length&(p.Length+1) != 0 {
		return fmt.Errorf("a preamble of %d symbols: allowed are 2^m - 1 from %d to %d", p.Length, MinPreamble, MaxPreamble)
	}
	if !(p.Level >= 0 && p.Level <= 1e6) {
		return fmt.Errorf("a preamble of level %v: it must be positive, at most 1e6", p.Level)
	}
	return nil
}

// sequence returns the L symbols between the guards, +-1. Their sum is -1.
func (p Preamble) sequence() []float32 {
	order, taps := p.order(), feedback(p.order())
	seq := make([]float32, p.Length)
	state := uint(1)
	for k := range seq {
		seq[k] = 1 - 2*float32(state&1)
		parity := uint(bits.OnesCount(state&taps)) & 1
		state = state>>1 | parity<<(order-1)
	}
	return seq
}

// symbols returns the sequence with its guards, at its level.
func (p Preamble) symbols(guard Symbols) []float32 {
	seq := p.sequence()
	out := make([]float32, 0, p.Length+2*guard)
	out = append(out, seq[p.Length-guard:]...)
	out = append(out, seq...)
	out = append(out, seq[:guard]...)
	for k := range out {
		out[k] *= p.level()
	}
	return out
}
