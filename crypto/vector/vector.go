// Package vector says which of the processor's vector instructions to compute with.
//
// It takes in the name of a path, or nothing for the fastest, and gives a Path that this
// processor has. It knows nothing of what is computed: packages with assembly of their
// own ask it, and have a portable form of everything beside it, which gives the same bits.
//
// The assembly of these packages is written by the module in gen. The build tag purego
// leaves all of it out.
package vector

//go:generate go -C gen run .

import (
	"fmt"
	"os"

	"ringwave/radio/intake"
)

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
// this processor can take. An error is the user's to mend.
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
			return 0, intake.UserError(fmt.Errorf("%s is %q: this processor lacks %s", Environment, name, lacking))
		}
		return p, nil
	}
	if name != "" {
		return 0, intake.UserError(fmt.Errorf("%s is %q: allowed are portable, avx2 and avx512, or nothing for the fastest", Environment, name))
	}
	return best, nil
}

// Fastest returns what Chosen does, and Portable where there is an error, for packages
// whose callers have been told of it, or will be.
func Fastest() Path {
	path, err := Chosen()
	if err != nil {
		return Portable
	}
	return path
}

// Chosen returns the path that Environment names.
func Chosen() (Path, error) { return Choose(os.Getenv(Environment)) }
