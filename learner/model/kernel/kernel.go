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
// The assembly is written by the module in gen:
//
//	cd gen && go run . -out ../tile_amd64.s -stubs ../tile_amd64.go -pkg kernel
package kernel

import "fmt"

// Environment is the variable that names the path to take: portable, avx2 or avx512.
const Environment = "RINGWAVE_KERNEL"

// Path is a way of computing, for one kind of processor.
type Path int

// The paths, from slow to fast.
const (
	Portable Path = iota
	AVX2
	AVX512
)

// Paths returns all paths, from slow to fast, whether or not this processor has them.
func Paths() []Path { return []Path{Portable, AVX2, AVX512} }

// String returns the name that Choose takes.
func (p Path) String() string {
	switch p {
	case Portable:
		return "portable"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	}
	return fmt.Sprintf("Path(%d)", int(p))
}

// Lacks says what this processor lacks for the path, such as "AVX512F"; empty if it
// can take it.
func (p Path) Lacks() string {
	if p == Portable {
		return ""
	}
	return lacks(p)
}

// Choose returns the path of the given name, or for an empty name the fastest that
// this processor can take.
func Choose(name string) (Path, error) {
	best := Portable
	for _, p := range Paths() {
		lacking := p.Lacks()
		if lacking == "" {
			best = p
		}
		if name != p.String() {
			continue
		}
		if lacking != "" {
			return 0, fmt.Errorf("%s is %q: this processor lacks %s", Environment, name, lacking)
		}
		return p, nil
	}
	if name != "" {
		return 0, fmt.Errorf("%s is %q: allowed are portable, avx2 and avx512, or nothing for the fastest", Environment, name)
	}
	return best, nil
}

// Lanes returns the number of samples in a panel.
func (p Path) Lanes() int {
	switch p {
	case AVX2:
		return 16
	case AVX512:
		return 64
	}
	return portableLanes
}

// Exercise does nothing but n multiplications of whole registers, or at least that
// many, each followed by an addition, and gives how many of single numbers these
// were: it measures the most that a core can do. The path must lack nothing.
func (p Path) Exercise(n int) int {
	if p == Portable {
		return exercisePortable(n)
	}
	return exercise(p, n)
}
