//go:build !purego

package ntt

import (
	"testing"

	"ringwave/crypto/vector"
)

// addSlower adds the products of 64 bits for primes for which IFMA would be taken.
func addSlower(t testing.TB, rings map[string]*Ring, n int, primes []uint64) {
	t.Helper()
	if vector.AVX512.Lacks() != "" || n < leastN || !vector.HasIFMA() {
		return
	}
	r, err := NewRing(n, primes, vector.AVX512)
	if err != nil {
		t.Fatal(err)
	}
	slower, err := NewRing(n, primes, vector.Portable)
	if err != nil {
		t.Fatal(err)
	}
	for j := range r.fields {
		if r.fields[j].(*vectors).beta == 64 {
			return // as it is
		}
	}
	for j, f := range slower.fields {
		slower.fields[j] = newVectors(f.(*portable).roots(), passesDQ())
	}
	rings["avx512 without IFMA"] = slower
}

// roots returns what the field was made of.
func (f *portable) roots() roots {
	r := roots{p: f.p, forward: make([]uint64, len(f.forwards)), backward: make([]uint64, len(f.forwards))}
	for i := range f.forwards {
		r.forward[i], r.backward[i] = f.forwards[i].w, f.backwards[i].w
	}
	r.inverseN = f.inverseN.w
	for range 64 { // out of Montgomery's product
		r.inverseN = (r.inverseN + r.inverseN%2*f.p) / 2
	}
	return r
}
