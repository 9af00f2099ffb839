// Package kernel computes layers of neural networks on many samples at once.
//
// It takes in samples in panels, in which the values of one unit in neighbouring
// samples lie side by side, and packed weights, and gives the layer's units in the
// same form. A unit of a fully connected layer is the sum bias + w[0] x[0] + w[1] x[1] ...
// in this order; a convolution takes fewer products than its definition, as the comment of
// convolution says. It knows nothing of models or of training.
//
// Each product is rounded before it is added, and sums have their order: all paths
// give the same bits, as do the formulas written down naively in float32.
//
// The assembly is written by package vector's generator.
package kernel

import "ringwave/crypto/vector"

// Lanes returns the number of samples in a panel.
func Lanes(p vector.Path) int {
	switch p {
	case vector.AVX2:
		return 16
	case vector.AVX512:
		return 32
	}
	return portableLanes
}

// Exercise does nothing but n multiplications of whole registers, or at least that
// many, each followed by an addition, and gives how many of single numbers these
// were: it measures the most that a core can do. The path must lack nothing.
func Exercise(p vector.Path, n int) int {
	if p == vector.Portable {
		return exercisePortable(n)
	}
	return exercise(p, n)
}
