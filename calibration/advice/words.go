package advice

import (
	"fmt"
	"math"

	"ringwave/phy/bench"
	"ringwave/phy/modem"
)

// symbolNoise returns the variance of a soft symbol, in units of the digit 1 from a
// device that counts as gain 1.
func (s *search) symbolNoise(regime Regime, base, samples int) float64 {
	m := s.opt.Modem
	m.SamplesPerSymbol = samples
	scale, err := bench.SymbolScale(m, base, s.bench.Amplitude())
	if err != nil {
		return math.Inf(1) // as such a modem cannot be
	}
	unit := scale * s.bench.Links().Level(regime)
	return float64(s.bench.Noise) / 2 * modem.NoiseBandwidth(m.Pulse, samples) / (unit * unit)
}

// refuse says in a sentence why a regime cannot do whatever the set, from closed
// forms; empty if it may.
func (s *search) refuse(regime Regime) string {
	if (regime == bench.Emulated) != s.bench.OnLattice {
		if s.bench.OnLattice {
			return fmt.Sprintf("%v: gains lie on a lattice of 2^-%d already, which the receiver knows", regime, s.bench.LatticeBits)
		}
		return "emulated: gains are continuous; only a simulated bench puts them on a lattice"
	}
	group, base, samples := s.easiest()
	switch {
	case regime == bench.Emulated:
		alpha := math.Ldexp(1, s.bench.LatticeBits)
		// As many symbols as a short frame has are the least that must be right.
		if snr, needed := s.snr(regime, base, samples), bench.NeededSNR(base, alpha, 100); snr < needed-10*math.Log10(float64(1+max(0, s.opt.Repeats))) {
			return fmt.Sprintf("emulated: a lattice of 2^-%d needs %.1f dB a symbol, and %d samples of it give %.1f dB", s.bench.LatticeBits, needed, samples, snr)
		}
	case regime == bench.MeanAligned && s.fluctuation(group, base) >= 0.5:
		return fmt.Sprintf("mean-aligned: mean fluctuations reach %.2f of a unit at G = %d and base %d, and rounding absorbs less than 0.5", s.fluctuation(group, base), group, base)
	case s.hopeless(regime, group, base, samples):
		return fmt.Sprintf("%v: %d samples a symbol give %.1f dB at base %d: noise alone spoils every round", regime, samples, s.snr(regime, base, samples), base)
	}
	return ""
}

// easiest returns the smallest group and base and the longest symbols.
func (s *search) easiest() (group, base, samples int) {
	group, base, samples = s.opt.Groups[0], s.opt.Bases[0], s.opt.SamplesPerSymbol[0]
	for _, g := range s.opt.Groups {
		group = min(group, g)
	}
	for _, b := range s.opt.Bases {
		base = min(base, b)
	}
	for _, n := range s.opt.SamplesPerSymbol {
		samples = max(samples, n)
	}
	return group, base, samples
}

// refuseTried says of each regime that does not reach what is wanted with all devices
// in one slot how far that is from it, and which groups are nearer.
func (s *search) refuseTried(results []result) {
	for _, regime := range s.opt.Regimes {
		var most, best Outlook
		for _, r := range results {
			if r.c.regime != regime {
				continue
			}
			for _, o := range s.outlooks(r) {
				switch {
				case o.Group > most.Group || o.Group == most.Group && o.Within > most.Within:
					most = o
				}
				if best.Group == 0 || o.Within > best.Within || o.Within == best.Within && o.Group > best.Group {
					best = o
				}
			}
		}
		if best.Group == 0 {
			continue
		}
		if all := len(s.bench.Devices); most.Group < all && regime == bench.MeanAligned && s.fluctuation(all, 3) >= 0.5 || most.Within < s.opt.Wanted && most.WithinHigh < s.opt.Wanted {
			s.refusals = append(s.refusals, s.grouped(regime, most, best))
		}
	}
}

// grouped says why devices do not all go into one slot.
func (s *search) grouped(regime Regime, most, best Outlook) string {
	all := len(s.bench.Devices)
	if regime == bench.MeanAligned {
		return fmt.Sprintf("mean-aligned: mean fluctuations add up to %.2f of half a unit at G = %d; G = %d leaves %.2f of it to the noise, and %.3f of rounds are read within %d attempts",
			s.fluctuation(all, 3)/0.5, all, best.Group, 1-s.fluctuation(best.Group, best.Base)/0.5, best.Within, s.opt.Attempts)
	}
	return fmt.Sprintf("%v: of rounds with groups of %d, %.3f are read within %d attempts, and with groups of %d %.3f (%d and %d rounds simulated)",
		regime, most.Group, most.Within, s.opt.Attempts, best.Group, best.Within, most.Rounds, best.Rounds)
}
