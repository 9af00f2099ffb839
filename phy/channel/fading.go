// Package channel draws the gains of a fading channel.
//
// It takes in a fading model a device, the scale of the gain lattice and a seed,
// and returns the gains of each round: block fading, constant over the round's
// transmissions, independent across rounds and devices (Eq. 2 of the paper). It
// knows nothing of what is sent.
package channel

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Fading is the distribution of one device's real effective gain h.
type Fading interface {
	// Draw returns one gain.
	Draw(rnd *rand.Rand) float64
	// Mean returns mu = E[h].
	Mean() float64
	// SecondMoment returns Omega = E[h^2].
	SecondMoment() float64
}

// Gaussian is h ~ N(Mu, Sigma^2), the channel of the paper's experiments.
type Gaussian struct{ Mu, Sigma float64 }

func (g Gaussian) Draw(rnd *rand.Rand) float64 { return g.Mu + g.Sigma*rnd.NormFloat64() }
func (g Gaussian) Mean() float64               { return g.Mu }
func (g Gaussian) SecondMoment() float64       { return g.Mu*g.Mu + g.Sigma*g.Sigma }

// Rician is the envelope of a line-of-sight path and a scattered part of complex
// Gaussian amplitude, K times weaker in power; Omega is the total power.
type Rician struct{ K, Omega float64 }

// NewRicianMean returns the Rician envelope of the given K-factor whose mean is mu.
func NewRicianMean(k, mu float64) Rician {
	unit := Rician{K: k, Omega: 1}.Mean()
	return Rician{K: k, Omega: mu * mu / (unit * unit)}
}

func (r Rician) Draw(rnd *rand.Rand) float64 {
	los := math.Sqrt(r.Omega * r.K / (r.K + 1))
	scatter := math.Sqrt(r.Omega / (2 * (r.K + 1)))
	return math.Hypot(los+scatter*rnd.NormFloat64(), scatter*rnd.NormFloat64())
}

// Mean is sqrt(pi Omega / (4 (K+1))) L_{1/2}(-K), with the Laguerre function
// L_{1/2}(x) = e^(x/2) [(1-x) I_0(-x/2) - x I_1(-x/2)].
func (r Rician) Mean() float64 {
	y := r.K / 2
	laguerre := (1+r.K)*ScaledBesselI(0, y) + r.K*ScaledBesselI(1, y)
	return math.Sqrt(math.Pi*r.Omega/(4*(r.K+1))) * laguerre
}

func (r Rician) SecondMoment() float64 { return r.Omega }

// ScaledBesselI returns e^-y I_n(y) for n = 0, 1 and y >= 0, from the integral
// (1/pi) int_0^pi e^(y (cos t - 1)) cos(n t) dt. The trapezoidal rule converges
// faster than any power on a periodic analytic integrand; its number of points
// grows with the width 1/sqrt(y) of the peak.
func ScaledBesselI(n int, y float64) float64 {
	points := 64 + int(16*math.Sqrt(y))
	sum := 0.0
	for i := range points {
		t := math.Pi * (float64(i) + 0.5) / float64(points)
		sum += math.Exp(y*(math.Cos(t)-1)) * math.Cos(float64(n)*t)
	}
	return sum / float64(points)
}

// validate says what is wrong with a fading model.
func validate(i int, f Fading) error {
	switch f := f.(type) {
	case Gaussian:
		if f.Sigma < 0 || math.IsNaN(f.Sigma) || math.IsInf(f.Sigma, 0) {
			return fmt.Errorf("device %d: the gain's standard deviation is %v: it must be 0 or more", i+1, f.Sigma)
		}
	case Rician:
		if !(f.K >= 0 && f.K <= 1e6) {
			return fmt.Errorf("device %d: the K-factor is %v: it must be from 0 to 1e6", i+1, f.K)
		}
		if !(f.Omega > 0) || math.IsInf(f.Omega, 0) {
			return fmt.Errorf("device %d: the channel's second moment is %v: it must be positive", i+1, f.Omega)
		}
	}
	if mu := f.Mean(); mu == 0 || math.IsNaN(mu) || math.IsInf(mu, 0) {
		return fmt.Errorf("device %d: the channel mean mu is %v: the scheme needs a nonzero mean (Eq. 2 of the paper)", i+1, mu)
	}
	return nil
}

// Density returns the probability density of the envelope at h.
func (r Rician) Density(h float64) float64 {
	if h <= 0 || !(r.Omega > 0) {
		return 0
	}
	scale := (r.K + 1) / r.Omega
	x := 2 * h * math.Sqrt(r.K*scale)
	// I_0(x) = e^x times its scaled form, which does not overflow.
	return 2 * h * scale * math.Exp(x-r.K-scale*h*h) * ScaledBesselI(0, x)
}
