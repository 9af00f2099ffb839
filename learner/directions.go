package learner

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"ringwave/learner/philox"
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
	// Philox entries are Rademacher's, from a key that programs in other languages can make
	// the same vector of: package philox.
	Philox
)

// ParseDirections returns the distribution named rademacher, gaussian, sphere or philox.
func ParseDirections(name string) (Directions, error) {
	for _, d := range []Directions{Rademacher, Gaussian, Sphere, Philox} {
		if name == d.String() {
			return d, nil
		}
	}
	return 0, fmt.Errorf("directions are %q; allowed is rademacher, gaussian, sphere or philox", name)
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
	case Philox:
		return "philox"
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

// philoxKeyBits are those of the keys of Philox: whole numbers that every language's numbers
// hold.
const philoxKeyBits = 53

// Draw fills phi with one vector. It returns the key of Philox's.
func (d Directions) Draw(phi []float64, rnd *rand.Rand) (key uint64) {
	switch d {
	case Gaussian:
		drawGaussian(phi, rnd)
	case Sphere:
		drawSphere(phi, rnd)
	case Philox:
		key = rnd.Uint64() >> (64 - philoxKeyBits)
		drawSigns(phi, philox.New(key))
	default:
		drawSigns(phi, rnd)
	}
	return key
}

// drawSigns takes one bit an entry, lowest first, from 64 at a time: 0 is +1, 1 is -1.
func drawSigns(phi []float64, words rand.Source) {
	one := math.Float64bits(1)
	for len(phi) > 0 {
		bits := words.Uint64()
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
