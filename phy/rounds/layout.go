package rounds

import (
	"errors"
	"fmt"
	"math"

	"ringwave/phy/digit"
	"ringwave/phy/lattice"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// Layout is the frames of a round.
type Layout struct {
	// Blocks are the symbols of each frame's blocks, those of the pattern in the first;
	// Samples all that a frame takes.
	Blocks  [slot.Transmissions][]int
	Samples [slot.Transmissions]int
	// Digits is L, those of a coefficient, and Top the distribution of the last one: the
	// probability of each digit and of those below it. 0 stands for digits that are all
	// uniform, and frames without a pattern.
	Digits int
	Top    []float64
}

// link is what knows the lengths of frames: a phy.Waveform.
type link interface {
	FrameBlocks(t slot.Transmission, n int) ([]int, error)
	FrameSamples(t slot.Transmission, n int) (int, error)
}

// LayoutOf asks a link for the frames of a round: of elements modulo q in digits of a
// base, as many coefficients a transmission as length says.
func LayoutOf(w link, mod *zq.Modulus, base int, length func(t slot.Transmission) int) (Layout, error) {
	codec, err := digit.New(mod, base)
	if err != nil {
		return Layout{}, err
	}
	l := Layout{Digits: codec.Digits()}
	l.Top = topDigit(base, math.Exp2(mod.Log2()-float64(l.Digits-1)*math.Log2(float64(base))))
	for t := range slot.Transmission(slot.Transmissions) {
		n := length(t)
		if l.Blocks[t], err = w.FrameBlocks(t, n); err != nil {
			return Layout{}, err
		}
		if l.Samples[t], err = w.FrameSamples(t, n); err != nil {
			return Layout{}, err
		}
	}
	return l, nil
}

// topDigit returns the distribution of the last of the balanced digits of an integer that
// is uniform in (-q/2, q/2), for q = ratio B^(L-1): the probability of each digit and of
// those below it. It is not uniform, and near 0 for a ratio near 1.
func topDigit(base int, ratio float64) []float64 {
	sum, out := 0.0, make([]float64, base)
	for k := range out {
		d := float64(k - (base-1)/2)
		sum += max(0, min(ratio/2, d+0.5)-max(-ratio/2, d-0.5)) / ratio
		out[k] = sum
	}
	return out
}

// Airtime returns the samples of all frames of a group.
func (l Layout) Airtime() int {
	sum := 0
	for _, n := range l.Samples {
		sum += n
	}
	return sum
}

// Symbols returns those of all blocks of a group.
func (l Layout) Symbols() int {
	sum := 0
	for _, blocks := range l.Blocks {
		for _, n := range blocks {
			sum += n
		}
	}
	return sum
}

func (l Layout) validate() error {
	for t, blocks := range l.Blocks {
		if len(blocks) == 0 {
			return fmt.Errorf("transmission %d has no blocks", t)
		}
		for i, n := range blocks {
			if n < 1 || t == 0 && i == 0 && n < lattice.MinSymbols {
				return fmt.Errorf("%w: %d symbols in block %d of transmission %d", lattice.ErrTooShort, n, i+1, t)
			}
		}
	}
	if l.Digits < 0 {
		return errors.New("a coefficient of fewer digits than 0")
	}
	return nil
}
