package sampler

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"ringwave/crypto/vector"
)

// words returns random words, the least and the largest, and for each entry of a table
// those on both sides of where it is reached.
func words(tail []uint64, rng *rand.Rand, random int) []byte {
	all := []uint64{0, 1, ^uint64(0), ^uint64(0) - 1, 1 << 63, 1<<63 - 1}
	for _, t := range tail {
		all = append(all, -t, -t-1, -t+1)
	}
	for range random {
		all = append(all, rng.Uint64())
	}
	for len(all)%4 != 0 {
		all = append(all, rng.Uint64())
	}
	var b []byte
	for _, u := range all {
		b = binary.LittleEndian.AppendUint64(b, u)
	}
	return b
}

// expected draws samples one by one, as the definition of a tail table has it.
func expected(tail []uint64, random []byte) (x []int8) {
	for ; len(random) > 0; random = random[8:] {
		u := binary.LittleEndian.Uint64(random)
		m := int8(0)
		for _, t := range tail {
			if u+t < u { // the sum is 2^64 or more
				m++
			}
		}
		if u&1 == 1 {
			m = -m
		}
		x = append(x, m)
	}
	return x
}

// TestPathsAgree: samples of tables are the same on every path that this processor has,
// at the edges of each entry and elsewhere, however many are drawn.
func TestPathsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, path := range vector.Paths() {
		if path.Lacks() != "" {
			t.Logf("SKIPPED: %v: this processor lacks %s", path, path.Lacks())
			continue
		}
		for _, tail := range [][]uint64{gaussianTail[:], floodTail[:]} {
			table := newTable(tail, path)
			for more := range 40 {
				random := words(tail, rng, 8*more)
				got := make([]int8, len(random)/8)
				table.sample(got, random)
				if want := expected(tail, random); !slices.Equal(got, want) {
					t.Fatalf("%v: %d samples differ", path, len(got))
				}
			}
		}
	}
}

func FuzzPaths(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	tables := map[vector.Path]*table{}
	for _, path := range vector.Paths() {
		if path.Lacks() == "" {
			tables[path] = newTable(floodTail[:], path)
		}
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		random := words([]uint64{a, b, a ^ b, a + b}, rand.New(rand.NewPCG(a, b)), 61)
		want := expected(floodTail[:], random)
		for path, table := range tables {
			got := make([]int8, len(random)/8)
			if table.sample(got, random); !slices.Equal(got, want) {
				t.Fatalf("%v: samples differ", path)
			}
		}
	})
}

// TestBinomialPathsAgree: three samples of each 16 bytes are the same on every path, all
// ones and zeros included, and so is what is left of what no whole vector takes.
func TestBinomialPathsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, path := range vector.Paths() {
		if path.Lacks() != "" {
			t.Logf("SKIPPED: %v: this processor lacks %s", path, path.Lacks())
			continue
		}
		for groups := range blockSize/16 + 1 {
			var random [blockSize]byte
			for i := range random {
				random[i] = byte([]uint64{0, 0xff, rng.Uint64(), rng.Uint64()}[rng.IntN(4)])
			}
			copy(random[:], make([]byte, 16*rng.IntN(3)))
			var samples [blockSize/16*3 + spare]int8
			done := binomialInVectors(path, &samples, &random, groups)
			if done > groups || path != vector.Portable && groups >= 4 && done == 0 {
				t.Fatalf("%v: %d of %d groups", path, done, groups)
			}
			for g := range done {
				var want [3]int8
				for i := range 128 {
					one := int8(random[16*g+i/8] >> (i % 8) & 1)
					switch bit := i % 64; {
					case bit < 42:
						want[i/64] += one
					case bit > 42:
						want[2] += one
					}
				}
				for i, w := range want {
					if got := samples[3*g+i]; got != w-eta {
						t.Fatalf("%v, group %d: sample %d is %d, expected %d", path, g, i, got, w-eta)
					}
				}
			}
		}
	}
}

// TestTritsPathsAgree: the digits of every byte are the same on every path.
func TestTritsPathsAgree(t *testing.T) {
	for _, path := range vector.Paths() {
		if path.Lacks() != "" {
			t.Logf("SKIPPED: %v: this processor lacks %s", path, path.Lacks())
			continue
		}
		for count := range 243 {
			var bytes [blockSize + 1]byte
			for i := range count {
				bytes[i] = byte(242 - i)
			}
			var samples [5*blockSize + spare]int8
			done := tritsInVectors(path, &samples, &bytes, count)
			if done > count || path != vector.Portable && done < count-2 {
				t.Fatalf("%v: %d of %d bytes", path, done, count)
			}
			for k := range done {
				value := 0
				for _, x := range samples[5*k : 5*k+5] {
					value = 3*value + int(x) + 1
				}
				if value != 242-k {
					t.Fatalf("%v: the digits of %d are those of %d", path, 242-k, value)
				}
			}
		}
	}
}
