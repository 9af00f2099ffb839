//go:build !purego

package ntt

import (
	"math/bits"

	"ringwave/crypto/vector"
)

// leastN is the least n that vectors serve.
const leastN = 256

// newField returns the ring modulo one prime on the path.
func newField(r roots, path vector.Path) field {
	switch {
	case path == vector.Portable || len(r.forward) < leastN:
		return newPortable(r)
	case path == vector.AVX2:
		return newVectors(r, passesAVX2())
	case bits.Len64(r.p) <= 50 && vector.HasIFMA():
		return newVectors(r, passesIFMA())
	}
	return newVectors(r, passesDQ())
}

// pass does some stages of a transform: see the assembly's generator.
type pass func(x, w, c *uint64, groups, stride int)

// passes are the functions of one instruction set.
type passes struct {
	lanes int
	beta  uint // of Shoup's and of Montgomery's products
	// forwards and inverses have passes of as many stages as their index says.
	forwards, inverses, ends     [4]pass
	forwardBlocks, inverseBlocks func(x, w, c *uint64, blocks int)
	multiply                     func(z, x, y, c *uint64, vectors int)
}

func passesIFMA() passes {
	return passes{
		lanes: 8, beta: 52,
		forwards:      [4]pass{2: forward4IFMA, 3: forward8IFMA},
		inverses:      [4]pass{2: inverse4IFMA, 3: inverse8IFMA},
		ends:          [4]pass{2: inverseEnd4IFMA, 3: inverseEnd8IFMA},
		forwardBlocks: forwardBlocksIFMA, inverseBlocks: inverseBlocksIFMA, multiply: multiplyIFMA,
	}
}

func passesDQ() passes {
	return passes{
		lanes: 8, beta: 64,
		forwards:      [4]pass{2: forward4DQ, 3: forward8DQ},
		inverses:      [4]pass{2: inverse4DQ, 3: inverse8DQ},
		ends:          [4]pass{2: inverseEnd4DQ, 3: inverseEnd8DQ},
		forwardBlocks: forwardBlocksDQ, inverseBlocks: inverseBlocksDQ, multiply: multiplyDQ,
	}
}

func passesAVX2() passes {
	return passes{
		lanes: 4, beta: 64,
		forwards:      [4]pass{1: forward2AVX2, 2: forward4AVX2},
		inverses:      [4]pass{1: inverse2AVX2, 2: inverse4AVX2},
		ends:          [4]pass{2: inverseEnd4AVX2},
		forwardBlocks: forwardBlocksAVX2, inverseBlocks: inverseBlocksAVX2, multiply: multiplyAVX2,
	}
}

// vectors computes in vectors: first or last, passes of several stages through memory on
// vectors far apart, and last or first one on blocks of lanes^2 words, which transforms
// leave transposed.
type vectors struct {
	passes
	n         int
	constants []uint64 // 8 words each, as in the assembly's generator
	steps     []step
	forwardW  []uint64 // of the blocks
	backwardW []uint64
}

// step is a pass over the memory.
type step struct {
	stages, groups, stride int // the stride in bytes
	forward, backward      []uint64
}

// padding is how many words behind a table are read and not used.
const padding = 2

func newVectors(r roots, with passes) *vectors {
	n, p := len(r.forward), r.p
	f := &vectors{passes: with, n: n}
	invP := inverseWord(p) & (1<<with.beta - 1)
	for _, c := range []uint64{p, 2 * p, p >> 32, 4 * p, 1<<52 - p, 1<<52 - 1, 0, 0, invP, invP >> 32} {
		f.constants = append(f.constants, c, c, c, c, c, c, c, c)
	}
	copy(f.constants[8*7:], []uint64{1, shoup(1, p, with.beta)})

	scale := r.inverseN
	for range with.beta {
		scale = min(2*scale, 2*scale-p)
	}
	groups := 1
	for _, stages := range f.plan() {
		s := step{stages: stages, groups: groups, stride: 8 * n / groups >> stages}
		s.forward, s.backward = f.broadcasts(r.forward, p, groups, stages), f.broadcasts(r.backward, p, groups, stages)
		if groups == 1 {
			last := mulMod(scale, r.backward[1], p)
			copy(s.backward, []uint64{last, shoup(last, p, with.beta)})
			copy(s.backward[2*(1<<stages-1):], []uint64{scale, shoup(scale, p, with.beta)})
		}
		f.steps = append(f.steps, s)
		groups <<= stages
	}
	f.forwardW, f.backwardW = f.blocks(r.forward, p), f.blocks(r.backward, p)
	return f
}

// plan returns how many stages each pass does before the blocks: as many as go at once,
// in the first no fewer than two.
func (f *vectors) plan() (stages []int) {
	most := bits.Len(uint(f.lanes)) - 1
	for left := bits.Len(uint(f.n)) - 1 - 2*most; left > 0; {
		s := min(left, most)
		if left == 4 && most == 3 {
			s = 2 // for no pass of AVX-512 does one stage
		}
		stages = append(stages, s)
		left -= s
	}
	return stages
}

// broadcasts returns the factors of a pass: see group.
func (f *vectors) broadcasts(w []uint64, p uint64, groups, stages int) (table []uint64) {
	for i := range groups {
		table = f.group(table, w, p, groups+i, stages)
	}
	return append(table, make([]uint64, padding)...)
}

// group appends the factors, each with its quotient, of stages that begin at the group
// whose factor is w[first].
func (f *vectors) group(table, w []uint64, p uint64, first, stages int) []uint64 {
	for s := range stages {
		for k := range 1 << s {
			x := w[first<<s+k]
			table = append(table, x, shoup(x, p, f.beta))
		}
	}
	return table
}

// blocks returns the factors of the blocks: for each those of the stages before it is
// transposed, one for all lanes, then those of the stages behind, one a lane.
func (f *vectors) blocks(w []uint64, p uint64) (table []uint64) {
	count, log := f.n/(f.lanes*f.lanes), bits.Len(uint(f.lanes))-1
	for b := range count {
		table = f.group(table, w, p, count+b, log)
		for s := range log {
			for h := range 1 << s {
				row := make([]uint64, 2*f.lanes)
				for lane := range f.lanes {
					x := w[((count+b)*f.lanes+lane)<<s+h]
					row[lane], row[f.lanes+lane] = x, shoup(x, p, f.beta)
				}
				table = append(table, row...)
			}
		}
	}
	return append(table, make([]uint64, padding)...)
}

// place: within a block rows and columns are exchanged.
func (f *vectors) place(i int) int {
	block := f.lanes * f.lanes
	within := i % block
	return i - within + within%f.lanes*f.lanes + within/f.lanes
}

func (f *vectors) forward(x []uint64) {
	x = x[:f.n]
	for _, s := range f.steps {
		f.forwards[s.stages](&x[0], &s.forward[0], &f.constants[0], s.groups, s.stride)
	}
	f.forwardBlocks(&x[0], &f.forwardW[0], &f.constants[0], f.n/(f.lanes*f.lanes))
}

func (f *vectors) multiply(z, x, y []uint64) {
	z, x, y = z[:f.n], x[:f.n], y[:f.n]
	f.passes.multiply(&z[0], &x[0], &y[0], &f.constants[0], f.n/f.lanes)
	f.inverseBlocks(&z[0], &f.backwardW[0], &f.constants[0], f.n/(f.lanes*f.lanes))
	for i := len(f.steps) - 1; i > 0; i-- {
		s := f.steps[i]
		f.inverses[s.stages](&z[0], &s.backward[0], &f.constants[0], s.groups, s.stride)
	}
	s := f.steps[0]
	f.ends[s.stages](&z[0], &s.backward[0], &f.constants[0], s.groups, s.stride)
}
