// Package kernel computes layers of neural networks on many samples at once.
//
// It takes in samples in panels, in which the values of one unit in neighbouring
// samples lie side by side, and packed weights, and gives the layer's units in the
// same form. Convolutions and fully connected layers are one loop, with a table of
// where a term's input lies: sum[row] = bias[row], then for ascending k
// sum[row] += w[row][k] * x[offset[k]]. It knows nothing of models or of training.
//
// Each product is rounded before it is added, and each unit has one sum: all paths
// give the same bits, as does the formula written down naively in float32.
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
		return 64
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
