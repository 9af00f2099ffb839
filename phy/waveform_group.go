package phy

import (
	"iter"
	"math"

	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/zq"
)

// group is the devices of a time slot, as the receiver has them.
type group struct {
	*members
	lattice *lattice.Receiver

	// Of the current attempt.
	silent bool // none of its devices takes part
	alpha  float64
	scale  int64   // c_g
	key    []int64 // the pattern of b
	held   holding
	read   reading
}

// holding is what an attempt's first frame settles for all of them.
type holding struct {
	offset  modem.CyclesPerSample
	image   complex128            // of the receiver, as b has shown it
	block   modem.CyclesPerSample // corner of the receiver's DC block, likewise
	likely  modem.CyclesPerSample // that of one there may be, likewise
	tone    modem.CyclesPerSample // frequency of an interferer, likewise
	instant modem.Samples         // of the payload in phase 1, from where its capture was due
	timed   bool
	settled bool // the frame at hand has that instant
}

// reading is what is read of a group's frame, and held of it while it is sent again.
type reading struct {
	found   modem.Sync // of the frame at hand
	report  modem.Report
	y       zq.Vector
	pattern []int64
	soft    []float32             // of the frame at hand
	erased  []bool                // of soft
	sum     []float32             // means over repeats
	heard   []uint16              // over how many
	trial   modem.CyclesPerSample // corner of a DC block that is tried
	intact  bool                  // it is the first frame, and none of its symbols is erased
	checks  []checksOf
	passed  []bool         // blocks whose check held: they are in y
	tries   []float64      // sets of integers offered to each block's check beyond those read
	worst   WaveformReport // of the blocks that passed
	refined []float32      // of a block that was not read as it is
	refused []float64      // scales that did not read all of phase 1

	// Of the block at hand.
	joint           []float32 // pattern and block
	lost            []int32   // its erased symbols
	whole           []float32 // joint without them
	integers, shape []int32
}

// resize makes room for a frame of n symbols.
func (d *reading) resize(n int) {
	if cap(d.soft) < n {
		d.soft, d.sum, d.erased, d.heard = make([]float32, n), make([]float32, n), make([]bool, n), make([]uint16, n)
	}
	d.soft, d.sum, d.erased, d.heard = d.soft[:n], d.sum[:n], d.erased[:n], d.heard[:n]
}

// refuse drops the blocks that a scale has read.
func (d *reading) refuse() {
	clear(d.passed)
	d.worst = WaveformReport{Quality: 1}
}

// clear forgets the integers.
func (d *reading) clear() {
	d.y.Clear()
	clear(d.pattern)
}

// groups are those of a link: all of one size, but for the last, which may be smaller.
type groups []*group

func newGroups(cfg *WaveformConfig) (gs groups, err error) {
	for first := 0; first < cfg.Devices; first += cfg.Group {
		m := cfg.membersOf(len(gs))
		g := &group{members: m, key: make([]int64, m.patterns.Symbols()), read: reading{pattern: make([]int64, m.patterns.Symbols())}}
		if g.lattice, err = lattice.New(cfg.Lattice); err != nil {
			return nil, err
		}
		gs = append(gs, g)
	}
	return gs, nil
}

// of returns the group of device i.
func (gs groups) of(i int) *group { return gs[i/gs[0].size] }

// patternSymbols returns the symbols of all patterns.
func (gs groups) patternSymbols() int {
	sum := 0
	for _, g := range gs {
		sum += g.patterns.Symbols()
	}
	return sum
}

// begin begins an attempt, of which nothing is known.
func (gs groups) begin() {
	for _, g := range gs {
		g.held.timed, g.alpha, g.silent = false, 0, false
		g.lattice.Forget()
	}
}

// heard gives those of which a device takes part.
func (gs groups) heard() iter.Seq[*group] {
	return func(yield func(*group) bool) {
		for _, g := range gs {
			if !g.silent && !yield(g) {
				return
			}
		}
	}
}

// join adds what the groups have read to y, brought to one scale, and puts their
// patterns one behind the other.
func (gs groups) join(m *zq.Modulus, y zq.Vector, pattern []int64) {
	y.Clear()
	for _, g := range gs {
		m.AddScaled(y, g.scale, g.read.y)
		pattern = pattern[copy(pattern, g.read.pattern):]
	}
}

// alignScales chooses c_g = 1 for all: a known scale is that of all groups, and what
// aligned ones differ by is the fluctuation of their gains, and part of h.
func (gs groups) alignScales() {
	for _, g := range gs {
		g.scale = 1
	}
}

// groupMismatch is how far the groups' products c_g alpha_g may differ if a
// smaller c_g is to be had for it.
const groupMismatch = 0.01

// reconcile chooses the c_g, most at most: the smallest whose products agree well
// enough, or else those that agree best.
func (gs groups) reconcile(most int64) {
	gs.alignScales() // for scales too far apart: they are added as they are
	best, reference := math.Inf(1), 0.0
	for g := range gs.heard() {
		reference = g.alpha
		break
	}
	for c := int64(1); c <= most && best > groupMismatch; c++ {
		target, worst := float64(c)*reference, 0.0
		fits := true
		for g := range gs.heard() {
			cg := math.Round(target / g.alpha)
			fits = fits && cg >= 1 && cg <= float64(most)
			worst = math.Max(worst, math.Abs(cg*g.alpha/target-1))
		}
		if !fits || worst >= best {
			continue
		}
		best = worst
		for g := range gs.heard() {
			g.scale = int64(math.Round(target / g.alpha))
		}
	}
}

// alpha returns the mean of the groups' c_g alpha_g.
func (gs groups) alpha() float64 {
	sum, n := 0.0, 0
	for g := range gs.heard() {
		sum += float64(g.scale) * g.alpha
		n++
	}
	return sum / float64(n)
}

// gains writes the scaled gains c_g H_i, solved from the received patterns, to dst, and
// reports whether there are any.
func (gs groups) gains(dst []float64) bool {
	for _, g := range gs {
		h, ok := g.patterns.Solve(g.read.pattern)
		if !ok {
			return false
		}
		for i, v := range h {
			dst[g.first+i] = float64(g.scale * v)
		}
	}
	return true
}
