package bench

import "math"

// Regime is how gains come to lie on a lattice (phy/README.md, section 3).
type Regime int

const (
	// Emulated gains are multiples of 1/alpha as the channel draws them.
	Emulated Regime = iota
	// MeanAligned gains are 1 in the mean: each device divides by its own.
	MeanAligned
	// Blind leaves gains as they are, and the receiver finds a scale at which they are
	// nearly integers.
	Blind
)

// String returns the name of the regime in configs.
func (r Regime) String() string {
	return [...]string{"emulated", "mean-aligned", "blind"}[r]
}

// AlignedScale is the scale of aligned gains. All H_i are then 1: a higher scale
// would weigh no device better, and fluctuations, noise and the decoded noise grow
// in proportion to it.
const AlignedScale = 1

// GroupScale bounds the integers that bring groups to one scale.
const GroupScale = 50

// Links are the moments of the devices' real gains: E[h_i] and E[h_i^2].
type Links struct{ Mu, Omega []float64 }

// RelativeVariance returns the variance of h/mu.
func RelativeVariance(mu, omega float64) float64 { return max(0, omega/(mu*mu)-1) }

// Met returns the moments of the gains as the protocol meets them: of aligned devices,
// whose own division by mu_i is done, those of h_i/mu_i.
func (l Links) Met(r Regime) Links {
	if r != MeanAligned {
		return l
	}
	met := Links{make([]float64, len(l.Mu)), make([]float64, len(l.Mu))}
	for i := range l.Mu {
		met.Mu[i], met.Omega[i] = 1, 1+RelativeVariance(l.Mu[i], l.Omega[i])
	}
	return met
}

// Level returns the amplitude at which devices arrive that count as gain 1: that of the
// weakest where they are aligned.
func (l Links) Level(r Regime) float64 {
	if r != MeanAligned {
		return 1
	}
	level := math.Inf(1)
	for _, mu := range l.Mu {
		level = min(level, math.Abs(mu))
	}
	return level
}

// FullScale returns the amplitude up to which a receiver need not clip: four deviations
// of the sum of a group's gains, and of the noise of a branch. One setting serves all
// groups.
func (l Links) FullScale(r Regime, group int, noiseStd float64) float64 {
	return l.largest(r, group, 4) + 4*noiseStd
}

// largest returns the amplitude of the largest sum of a group's gains within so many
// deviations.
func (l Links) largest(r Regime, group int, deviations float64) float64 {
	met := l.Met(r)
	return l.Level(r) * l.worst(group, func(first, to int) float64 {
		sum, variance := 0.0, 0.0
		for i := first; i < to; i++ {
			sum += math.Abs(met.Mu[i])
			variance += max(0, met.Omega[i]-met.Mu[i]*met.Mu[i])
		}
		return sum + deviations*math.Sqrt(variance)
	})
}

// Drive returns the share of their full drive at which devices send to a receiver that
// clips at the given amplitude, that of a device of gain 1 being 1. Lower drive costs SNR, and a
// sum that is clipped alone can be solved by its check: the best of both is where the sum of a
// group's gains within 1.6 deviations fits. (At N = 3, N(1, 0.3^2), 40 dB and a full scale
// of 2.5, of 150 rounds 111 were read at once at full drive, 142 at 0.85, 145 at 0.75 and
// 146 at 0.65, which this rule gives; 148 without clipping.)
func (l Links) Drive(r Regime, group int, fullScale float64) float64 {
	return min(1, fullScale/l.largest(r, group, 1.6))
}

// AlignedTolerance returns by how much the scale of a group of aligned devices may differ
// from AlignedScale, relatively: four deviations of the mean of its gains, and what a
// fractional delay adds to a gain.
func (l Links) AlignedTolerance(group int) float64 {
	const passage = 0.02
	return min(0.3, passage+4*l.worst(group, func(first, to int) float64 {
		sum := 0.0
		for i := first; i < to; i++ {
			sum += RelativeVariance(l.Mu[i], l.Omega[i])
		}
		return math.Sqrt(sum) / float64(to-first)
	}))
}

// Fluctuation returns the mean fluctuation of the worst group of aligned devices at the
// largest digit, in units of the lattice: alpha sum_i E|h_i/mu_i - 1| (B-1)/2. Rounding
// absorbs less than half a unit of it, noise included.
func (l Links) Fluctuation(group, base int) float64 {
	return AlignedScale * l.worst(group, func(first, to int) float64 {
		sum := 0.0
		for i := first; i < to; i++ {
			sum += math.Sqrt(2 / math.Pi * RelativeVariance(l.Mu[i], l.Omega[i]))
		}
		return sum
	}) * float64(base-1) / 2
}

// worst returns the largest of what the groups have, and 0 at least.
func (l Links) worst(group int, of func(first, to int) float64) float64 {
	worst := 0.0
	for first := 0; first < len(l.Mu); first += group {
		worst = max(worst, of(first, min(first+group, len(l.Mu))))
	}
	return worst
}
