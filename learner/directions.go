package learner

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
)

// Directions is the distribution of the perturbation vector Phi_k. In all of
// them an entry has mean 0 and variance 1, and two entries are uncorrelated.
type Directions int

// The distributions of Phi_k in R^d.
const (
	// Rademacher entries are +1 or -1, each with probability 1/2, independent.
	Rademacher Directions = iota
	// Gaussian entries are N(0, 1), independent. The norm has no bound, which
	// the paper's Assumption 3.4 asks for.
	Gaussian
	// Sphere is uniform on the sphere of radius sqrt(d). Its entries are not
	// independent, which Assumption 3.4 asks for.
	Sphere
)

// ParseDirections returns the distribution named rademacher, gaussian or sphere.
func ParseDirections(name string) (Directions, error) {
	for _, d := range []Directions{Rademacher, Gaussian, Sphere} {
		if name == d.String() {
			return d, nil
		}
	}
	return 0, fmt.Errorf("directions are %q; allowed is rademacher, gaussian or sphere", name)
}

// String returns the name that ParseDirections takes.
func (d Directions) String() string {
	switch d {
	case Rademacher:
		return "rademacher"
	case Gaussian:
		return "gaussian"
	case Sphere:
		return "sphere"
	}
	return fmt.Sprintf("Directions(%d)", int(d))
}

// B1 returns b_1 = E[(Phi^j)^2] of Assumption 3.4, which is 1: then c_1 = 2 b_1 of
// Lemma 1 is 2.
func (d Directions) B1() float64 { return 1 }

// B2Squared returns b_2^2, the bound on ||Phi||^2 of Assumption 3.4, for vectors
// of length dim: dim. For Gaussian there is no such bound, and dim is the mean
// of ||Phi||^2 instead.
func (d Directions) B2Squared(dim int) float64 { return float64(dim) }

// Draw fills phi with one vector.
func (d Directions) Draw(phi []float64, rnd *rand.Rand) {
	switch d {
	case Gaussian:
		drawGaussian(phi, rnd)
	case Sphere:
		drawSphere(phi, rnd)
	default:
		drawRademacher(phi, rnd)
	}
}

// drawRademacher takes one bit an entry, lowest first, from 64 at a time.
func drawRademacher(phi []float64, rnd *rand.Rand) {
	one := math.Float64bits(1)
	for len(phi) > 0 {
		bits := rnd.Uint64()
		n := min(64, len(phi))
		for j := range phi[:n] {
			// The bit becomes the sign bit of 1.
			phi[j] = math.Float64frombits(one | bits<<63)
			bits >>= 1
		}
		phi = phi[n:]
	}
}

func drawGaussian(phi []float64, rnd *rand.Rand) {
	for j := range phi {
		phi[j] = rnd.NormFloat64()
	}
}

func drawSphere(phi []float64, rnd *rand.Rand) {
	if len(phi) == 0 {
		return
	}
	drawGaussian(phi, rnd)
	norm := floats.Norm(phi, 2)
	for norm == 0 {
		drawGaussian(phi, rnd)
		norm = floats.Norm(phi, 2)
	}
	floats.Scale(math.Sqrt(float64(len(phi)))/norm, phi)
}
