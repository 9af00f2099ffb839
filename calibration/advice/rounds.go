package advice

import (
	"cmp"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
)

// maxRepeats bounds the frame repeats that are looked at.
const maxRepeats = 7

// simulatedBlocks is how many blocks of a frame are simulated; what is left of it is
// drawn with the error probability that these show.
const simulatedBlocks = 3

// mostWhole is how many symbols a round of a group may have for all of its blocks to be
// simulated where ways are judged. In the blind regime, what is drawn in place of the
// last six of nine blocks fails up to five points too often.
const mostWhole = 200_000

// attempt is what became of one attempt: for each transmission the most repeats that
// a group needed, unread if one was not read at all; shorter if it ended there.
type attempt struct {
	needed [transmissions]int
	sent   [transmissions][]int // repeats that each group needed
	alpha  float64              // mean of the groups'
	misfit float64
}

const unread = math.MaxInt32

// rounds simulates rounds of a candidate. It is for one goroutine.
type rounds struct {
	c       *candidate
	bench   *Bench
	opt     *Options
	seed    uint64
	source  *rand.PCG
	rnd     *rand.Rand
	groups  []*groupRounds
	noise   float64 // deviation of a soft symbol, in units of the digit 1 at gain 1
	samples int     // W, samples that a symbol is the mean of
	flat    bool
	probe   *probe
	least   float64 // share of a preamble's power that must be preamble
	half    int

	shift, stretch []float64 // of the trial: the calibration's errors
	drawn          []float64
	turned         []float64 // phases of the trial
	late           []modem.Samples
	unit           float64 // amplitude of the digit 1 at full drive, of an ideal converter
	compensated    bool
	whole          bool // every block is simulated
}

// groupRounds is one group's part in it.
type groupRounds struct {
	*rounds
	first, size int
	receiver    *lattice.Receiver
	patterns    *frame.Patterns // nil for none
	convert     lattice.Converter
	level       float64 // at which gain 1 arrives
	sent        [][]complex128
	placed      []placed // of the attempt
	way         []response

	gain    []complex128 // of the attempt, turned back by the common phase
	h       []float64    // what the receiver keeps, by the largest digit
	theta   float64
	cells   []cell
	lags    []int // with interference, 0 first
	alpha   float64
	integer []float64 // H_i as read
	held    []float64 // those of the first block
	digit   []float64 // of a symbol
	y, once []float32
	refused []float64
	from    int     // of the block at hand in the frame
	skip    int     // symbols of its pattern
	pattern []int32 // as read in the first transmission
	void    bool    // something was accepted that is not of the same H_i
	edges   edges
	white   float64 // deviation of converters' errors where they are white
}

// cell is devices whose digits are drawn as one index, and what each index gives.
type cell struct {
	first, size int // devices, in the group
	states      int
	in, quad    [2*reach + 1][]float64
	sum         []int32 // sum of H d, at alpha
	index       []uint16
}

// maxStates bounds the states of a cell.
const maxStates = 729

func (s *search) newRounds(c *candidate, g stage) (*rounds, error) {
	m := s.modem(c)
	modulator, err := modem.NewModulator(m, modem.Drive{Peak: m.Preamble.Level, Amplitude: s.amplitude()})
	if err != nil {
		return nil, err
	}
	probe, err := newProbe(m)
	if err != nil {
		return nil, err
	}
	_, flat := m.Pulse.(modem.FlatTop)
	n := len(s.bench.Devices)
	bandwidth := modem.NoiseBandwidth(m.Pulse, c.samples)
	scale := float64(modulator.Scale())
	r := &rounds{
		c: c, bench: &s.bench, opt: &s.opt, seed: s.seedOf(c), source: rand.NewPCG(0, 0), flat: flat,
		samples: int(math.Round(1 / bandwidth)), probe: probe, least: probe.detector.Threshold(), half: (c.base - 1) / 2,
		shift: make([]float64, n), stretch: make([]float64, n), drawn: make([]float64, n), turned: make([]float64, n), late: make([]modem.Samples, n),
		compensated: s.bench.Compensated || !flat, whole: s.opt.WholeFrames || g == freshly && c.layout.symbols() <= mostWhole,
	}
	unit, err := modem.NewModulator(m, modem.Drive{Peak: m.Preamble.Level})
	if err != nil {
		return nil, err
	}
	r.unit = float64(unit.Scale())
	r.rnd = rand.New(r.source)
	level := s.bench.links().Level(c.regime)
	r.noise = math.Sqrt(float64(s.bench.Noise)/2*bandwidth) / (scale * level)
	for first := 0; first < n; first += c.group {
		g, err := r.newGroup(first, min(c.group, n-first), scale, level)
		if err != nil {
			return nil, err
		}
		r.groups = append(r.groups, g)
	}
	return r, nil
}

// amplitude returns the largest magnitude of a sample.
func (s *search) amplitude() modem.Amplitude {
	var bits []int
	for _, d := range s.bench.Devices {
		bits = append(bits, d.ConverterBits)
	}
	return bench.Amplitude(bits...)
}

func (r *rounds) newGroup(first, size int, scale, level float64) (*groupRounds, error) {
	longest := 0
	for _, blocks := range r.c.layout.blocks {
		sum := 0
		for _, n := range r.simulated(blocks) {
			sum += n
		}
		longest = max(longest, sum)
	}
	receiver, err := lattice.New(lattice.Options{MaxAlpha: r.c.maxAlpha, Symbols: r.opt.BlockSymbols})
	if err != nil {
		return nil, err
	}
	g := &groupRounds{
		rounds: r, first: first, size: size, receiver: receiver, level: level,
		placed: make([]placed, size), gain: make([]complex128, size), h: make([]float64, size),
		y: make([]float32, longest), once: make([]float32, longest), integer: make([]float64, size), digit: make([]float64, size),
	}
	if bits := r.bench.ReceiverBits; bits > 0 {
		full := r.fullScale() / (scale * level)
		g.convert = lattice.Converter{Step: math.Ldexp(full, 1-bits), FullScale: full}
	}
	if r.c.layout.digits > 0 {
		g.patterns = frame.NewPatterns(size, r.opt.Seed.Derive("patterns", uint64(first)))
	}
	g.drive(scale)
	for from := 0; from < size; {
		cell := cell{first: from, states: 1}
		for from < size && cell.states*r.c.base <= maxStates {
			cell.states *= r.c.base
			cell.size++
			from++
		}
		for l := range cell.in {
			cell.in[l], cell.quad[l] = make([]float64, cell.states), make([]float64, cell.states)
		}
		cell.sum, cell.index = make([]int32, cell.states), make([]uint16, longest+2*reach)
		g.cells = append(g.cells, cell)
	}
	return g, nil
}

// fullScale returns the amplitude at which the receiver clips: as set, or what suits the
// gains.
func (r *rounds) fullScale() float64 {
	if r.bench.ReceiverFullScale > 0 {
		return r.bench.ReceiverFullScale
	}
	return r.bench.links().FullScale(r.c.regime, r.c.group, math.Sqrt(float64(r.bench.Noise)/2))
}

// drive gives what each device sends for each digit, in units of the digit: its
// converter rounds the flat top of each, turned and trimmed as it is.
func (g *groupRounds) drive(scale float64) {
	for _, d := range g.bench.Devices[g.first : g.first+g.size] {
		trim := complex(1, 0)
		if g.c.regime == bench.MeanAligned {
			trim = cmplx.Rect(g.level/math.Abs(d.Gain.Mean()), -float64(d.Phase))
		}
		levels := make([]complex128, g.c.base)
		for k := range levels {
			level := complex(float64(k-g.half), 0)
			if d.ConverterBits > 0 && g.flat {
				c := lattice.Converter{Step: math.Ldexp(1, 1-d.ConverterBits)}
				sent := level * trim * complex(scale, 0)
				level = complex(rounded(c, real(sent)), rounded(c, imag(sent))) / (trim * complex(scale, 0))
			}
			levels[k] = level
		}
		g.sent = append(g.sent, levels)
	}
}

// rounded rounds to a converter's codes.
func rounded(c lattice.Converter, x float64) float64 { return math.RoundToEven(x/c.Step) * c.Step }

// measure finds the group's way through the modem at the attempt's gains, and tells
// whether there is one: otherwise the preamble drowned.
func (g *groupRounds) measure() bool {
	noise := math.Sqrt(float64(g.bench.Noise)/2) / g.level
	for i, gain := range g.gain {
		d := g.bench.Devices[g.first+i]
		p := placed{gain: gain, delay: g.late[g.first+i], scale: g.unit}
		if g.compensated {
			p.advance = d.Delay
			if g.flat {
				p.advance = modem.Samples(math.Round(float64(d.Delay)))
			}
		}
		g.placed[i] = p
	}
	way, err := g.probe.responses(g.placed, noise, g.rnd)
	if err != nil && g.c.regime == bench.Emulated {
		// Whose phase is known goes by the timing of an earlier preamble.
		for i := range g.placed {
			g.placed[i].gain = 1
		}
		way, err = g.probe.responses(g.placed, noise, g.rnd)
	}
	if err != nil {
		return false
	}
	g.way = way
	g.lags = append(g.lags[:0], reach)
	for l := range 2*reach + 1 {
		largest := 0.0
		for i := range way {
			largest = max(largest, math.Abs(way[i][l]))
		}
		if l != reach && largest > 1e-4 {
			g.lags = append(g.lags, l)
		}
	}
	return true
}

// simulated gives the blocks that are simulated of a frame.
func (r *rounds) simulated(blocks []int) []int {
	if r.whole {
		return blocks
	}
	return blocks[:min(len(blocks), simulatedBlocks)]
}

// trial simulates the attempts of a round, until one was read without a repeat.
func (r *rounds) trial(number int) []attempt {
	r.source.Seed(r.seed, uint64(number))
	for i, d := range r.bench.Devices {
		mu := d.Gain.Mean()
		r.shift[i] = d.MeanStd * r.rnd.NormFloat64()
		r.stretch[i] = 1
		if std := math.Sqrt(max(0, d.Gain.SecondMoment()-mu*mu)); std > 0 {
			r.stretch[i] = max(0, 1+d.StdStd/std*r.rnd.NormFloat64())
		}
		r.late[i] = max(0, d.Delay+d.DelayStd*modem.Samples(r.rnd.NormFloat64()))
		error := float64(d.PhaseStd) * r.rnd.NormFloat64()
		switch {
		case r.c.regime == bench.Emulated, r.c.regime == bench.MeanAligned || r.bench.Phases == PhasesTrimmed:
			r.turned[i] = error
		case r.bench.Phases == PhasesUnknown:
			r.turned[i] = 2 * math.Pi * r.rnd.Float64()
		default:
			r.turned[i] = float64(d.Phase) + error
		}
	}
	var out []attempt
	for number := range r.opt.Attempts {
		if number == 0 || r.bench.FreshOnRetry {
			r.draw()
		}
		out = append(out, r.attempt(number))
		if last := out[number]; last.needed == [transmissions]int{} {
			break
		}
	}
	return out
}

// draw draws the gains of a round.
func (r *rounds) draw() {
	for i, d := range r.bench.Devices {
		mu := d.Gain.Mean()
		h := mu + r.shift[i] + (d.Gain.Draw(r.rnd)-mu)*r.stretch[i]
		switch r.c.regime {
		case bench.Emulated:
			h = math.RoundToEven(h*r.c.alpha) / r.c.alpha
		case bench.MeanAligned:
			h /= mu
		}
		r.drawn[i] = h
	}
}

// attempt simulates one attempt: the first transmission that some group does not
// read is its last.
func (r *rounds) attempt(number int) attempt {
	var a attempt
	for _, g := range r.groups {
		g.begin(number)
	}
	for t := range transmissions {
		for _, g := range r.groups {
			sent := g.frame(t)
			a.sent[t] = append(a.sent[t], sent)
			a.needed[t] = max(a.needed[t], sent)
			if g.void {
				a.needed[t] = unread
			}
		}
		if a.needed[t] == unread {
			for ; t < transmissions; t++ {
				a.needed[t] = unread
			}
			return a
		}
		if t == 0 && !r.admits() {
			for ; t < transmissions-1; t++ {
				a.needed[t+1] = unread
			}
			return a
		}
	}
	for _, g := range r.groups {
		a.alpha += g.alpha / float64(len(r.groups))
		a.misfit = max(a.misfit, g.misfit())
	}
	return a
}

// admits tells whether enough devices have H_i other than 0, where the receiver finds
// the scale.
func (r *rounds) admits() bool {
	if r.c.regime != bench.Blind {
		return true
	}
	heard := 0
	for _, g := range r.groups {
		for _, h := range g.integer {
			if h != 0 {
				heard++
			}
		}
	}
	return heard >= cmp.Or(r.opt.Minimum, len(r.bench.Devices))
}

// begin sets the gains of an attempt, and what the receiver's preamble makes of them.
func (g *groupRounds) begin(number int) {
	g.alpha, g.void = 0, false
	for i := range g.gain {
		h := g.drawn[g.first+i]
		if number > 0 && g.c.alpha == 0 {
			h *= phy.RetryLeast + (1-phy.RetryLeast)*g.rnd.Float64()
		}
		g.gain[i] = cmplx.Rect(1, g.turned[g.first+i]) * complex(h, 0)
	}
	if !g.measure() {
		g.alpha = math.NaN()
		return
	}
	way := g.way
	var sum complex128
	for i := range g.gain {
		sum += g.gain[i] * complex(way[i][reach], 0) * g.sent[i][g.c.base-1]
	}
	g.theta = 0
	power, noise := real(sum)*real(sum)+imag(sum)*imag(sum), 2*g.noise*g.noise
	if g.c.regime != bench.Emulated {
		// The phase of a preamble of L symbols has the variance 1/(2 L S).
		g.theta = cmplx.Phase(sum) + g.rnd.NormFloat64()*math.Sqrt(noise/power/2/float64(cmp.Or(g.opt.Modem.Preamble.Length, modem.DefaultPreamble)))
	}
	if g.c.regime != bench.Emulated && power < g.least*(power+noise) {
		g.alpha = math.NaN() // no preamble
	}
	g.fill(way)
}

// fill tabulates what each state of a cell gives.
func (g *groupRounds) fill(way []response) {
	back := cmplx.Rect(1, -g.theta)
	variance := 0.0
	for i := range g.gain {
		g.h[i] = real(g.gain[i]*back*g.sent[i][g.c.base-1]) * way[i][reach] / float64(g.half)
		if bits := g.bench.Devices[g.first+i].ConverterBits; bits > 0 && !g.flat {
			step := math.Ldexp(1, 1-bits)
			variance += real(g.gain[i]*cmplx.Conj(g.gain[i])) * step * step / 12
		}
	}
	if !g.flat {
		variance += g.convert.Step * g.convert.Step / 12
	}
	g.white = math.Sqrt(variance / float64(g.samples))
	for k := range g.cells {
		c := &g.cells[k]
		for _, l := range g.lags {
			for state := range c.states {
				var sum complex128
				rest := state
				for i := c.first; i < c.first+c.size; i++ {
					sum += g.gain[i] * g.sent[i][rest%g.c.base] * complex(way[i][l], 0)
					rest /= g.c.base
				}
				if !g.sampled() {
					sum *= back
				}
				c.in[l][state], c.quad[l][state] = real(sum), imag(sum)
			}
		}
	}
}

// sampled tells whether the samples of a symbol are simulated one by one.
func (g *groupRounds) sampled() bool { return g.flat && g.convert.Step > 0 }

// frame sends and reads a frame, and gives the repeats that this took.
func (g *groupRounds) frame(t int) int {
	if math.IsNaN(g.alpha) {
		return unread
	}
	all := g.c.layout.blocks[t]
	blocks := g.simulated(all)
	n, extra := 0, 0
	for i, b := range all {
		if i < len(blocks) {
			n += b
		} else {
			extra += b
		}
	}
	g.digits(n)
	g.shape(blocks)
	for repeat := range max(0, g.opt.Repeats) + 1 {
		g.send(g.once[:n])
		lattice.Combine(g.y[:n], g.once[:n], float64(repeat))
		if g.read(t, blocks, extra) {
			return repeat
		}
	}
	return unread
}

// digits draws those of n symbols, and of the neighbours beyond.
func (g *groupRounds) digits(n int) {
	for k := range g.cells {
		c := &g.cells[k]
		index := c.index[:n+2*reach]
		states := uint64(c.states)
		for j := 0; j+1 < len(index); j += 2 {
			v := g.rnd.Uint64()
			index[j] = uint16(v & 0xffffffff * states >> 32)
			index[j+1] = uint16(v >> 32 * states >> 32)
		}
		if len(index)%2 == 1 {
			index[len(index)-1] = uint16(g.rnd.Uint64() >> 32 * states >> 32)
		}
	}
}

// shape gives the symbols of a frame what is not uniform in them: the header before
// them, which all devices send alike; the pattern of +-1 that is read with the first
// block, a good part of it if the frame is short; and the coefficients' last digits.
func (g *groupRounds) shape(blocks []int) {
	if g.patterns == nil {
		return
	}
	for k := range reach {
		digit := 2 * g.half * g.rnd.IntN(2)
		for n := range g.cells {
			c := &g.cells[n]
			c.index[k] = g.state(c, func(int) int { return digit })
		}
	}
	from := g.patterns.Symbols()
	for n := range g.cells {
		c := &g.cells[n]
		for k := range from {
			c.index[reach+k] = g.state(c, func(i int) int { return g.half + int(g.patterns.Symbol(i, k)) })
		}
	}
	to := 0
	for _, n := range blocks {
		to += n
		for k := from + g.c.layout.digits - 1; k < to; k += g.c.layout.digits {
			for n := range g.cells {
				c := &g.cells[n]
				c.index[reach+k] = g.state(c, g.topDigit)
			}
		}
		from = to
	}
}

// state gives that of a cell's devices of the given digits, the least of which is 0.
func (g *groupRounds) state(c *cell, digit func(device int) int) uint16 {
	state := 0
	for i := c.first + c.size - 1; i >= c.first; i-- {
		state = state*g.c.base + digit(i)
	}
	return uint16(state)
}

// topDigit draws a coefficient's last digit.
func (g *groupRounds) topDigit(int) int {
	u, k := g.rnd.Float64(), 0
	for k < g.c.base-1 && u >= g.c.layout.top[k] {
		k++
	}
	return k
}

// send superposes symbols.
func (g *groupRounds) send(y []float32) {
	if g.sampled() {
		g.sendSamples(y)
		return
	}
	noise := math.Hypot(g.noise, g.white)
	for k := range y {
		y[k] = float32(noise * g.rnd.NormFloat64())
	}
	for n := range g.cells {
		c := &g.cells[n]
		for _, l := range g.lags {
			table, index := c.in[l], c.index[2*reach-l:]
			for k := range y {
				y[k] += float32(table[index[k]])
			}
		}
	}
}

// sendSamples makes each symbol the mean of samples that the receiver's converter
// rounds, each branch by itself, before they are turned back.
func (g *groupRounds) sendSamples(y []float32) {
	noise := g.noise * math.Sqrt(float64(g.samples))
	sin, cos := math.Sincos(g.theta)
	for k := range y {
		var in, quad, sum float64
		for n := range g.cells {
			c := &g.cells[n]
			for _, l := range g.lags {
				state := c.index[k+2*reach-l]
				in += c.in[l][state]
				quad += c.quad[l][state]
			}
		}
		for range g.samples {
			sum += cos * convert(g.convert, in+noise*g.rnd.NormFloat64())
			if sin != 0 {
				sum += sin * convert(g.convert, quad+noise*g.rnd.NormFloat64())
			}
		}
		y[k] = float32(sum / float64(g.samples))
	}
}

// convert rounds and clips.
func convert(c lattice.Converter, x float64) float64 {
	return math.Max(-c.FullScale, math.Min(c.FullScale-c.Step, rounded(c, x)))
}

// read reads the blocks of a frame, and finds the scale in the first transmission:
// one that reads all of them, and what is not simulated.
func (g *groupRounds) read(t int, blocks []int, extra int) bool {
	searching := t == 0 && g.c.alpha == 0
	if t == 0 {
		g.alpha = 0
	}
	g.refused = g.refused[:0]
	if g.c.regime == bench.Emulated {
		for i, h := range g.h {
			g.integer[i] = math.RoundToEven(g.c.alpha * h)
		}
		g.tabulate()
	}
	for {
		failed := g.readAt(t, blocks)
		if failed < 0 && g.survives(extra) {
			return true
		}
		if !searching || failed == 0 {
			return false
		}
		g.refused = append(g.refused, g.alpha)
		g.alpha = 0
	}
}

// readAt reads the blocks at one scale, and gives the one that failed, -1 if none.
func (g *groupRounds) readAt(t int, blocks []int) int {
	g.from, g.void = 0, false
	g.edges.clear()
	for i, n := range blocks {
		y := g.y[g.from : g.from+n]
		g.skip = 0
		if i == 0 && g.patterns != nil {
			g.skip = g.patterns.Symbols()
		}
		var res lattice.Result
		var err error
		switch {
		case g.alpha > 0:
			res, err = g.receiver.At(y, g.alpha, g.linear)
		case g.c.tolerance > 0:
			res, err = g.receiver.Near(y, g.c.alpha, g.c.tolerance, g.correct)
		case g.c.alpha > 0:
			res, err = g.receiver.At(y, g.c.alpha, g.same)
		default:
			res, err = g.receiver.SearchExcept(y, g.refused, g.correct)
		}
		if err != nil {
			return i
		}
		g.alpha = res.Alpha
		g.compare(t, res.Y[:g.skip])
		g.edges.add(y, res.Y)
		g.from += n
	}
	return -1
}

// compare keeps a frame's pattern as read in the first transmission. Another one later
// makes the attempt void: no repeat is asked for, as the payload passed its check.
func (g *groupRounds) compare(t int, y []int32) {
	switch {
	case len(y) == 0:
	case t == 0:
		g.pattern = append(g.pattern[:0], y...)
	case !slices.Equal(g.pattern, y):
		g.void = true
	}
}

// correct stands for the linear check of the block in which the scale is found: what
// was read must be sum_i H_i d_i, with whatever integers H_i, which hold from then on.
// It does not cover the pattern.
func (g *groupRounds) correct(y []int32) bool {
	if !g.solve(y) {
		return false
	}
	g.tabulate()
	return g.same(y)
}

// linear stands for the linear check of a later block, which other integers pass, too.
// The attempt is void then.
func (g *groupRounds) linear(y []int32) bool {
	if g.same(y) {
		return true
	}
	g.held = append(g.held[:0], g.integer...)
	passes := g.correct(y)
	g.void = g.void || passes
	copy(g.integer, g.held)
	g.tabulate()
	return passes
}

// solve finds the H_i from the first symbols of a block behind its pattern.
func (g *groupRounds) solve(y []int32) bool {
	gram, moment := mat.NewSymDense(g.size, nil), mat.NewVecDense(g.size, nil)
	for k := g.skip; k < min(len(y), g.skip+32+8*g.size); k++ {
		g.digitsOf(k)
		for i, d := range g.digit {
			for j := i; j < g.size; j++ {
				gram.SetSym(i, j, gram.At(i, j)+d*g.digit[j])
			}
			moment.SetVec(i, moment.AtVec(i)+d*float64(y[k]))
		}
	}
	var factor mat.Cholesky
	var x mat.VecDense
	if !factor.Factorize(gram) || factor.SolveVecTo(&x, moment) != nil {
		return false
	}
	for i := range g.integer {
		g.integer[i] = math.RoundToEven(x.AtVec(i))
	}
	return true
}

// digitsOf gives the digits of the block's symbol k.
func (g *groupRounds) digitsOf(k int) {
	for _, c := range g.cells {
		rest := int(c.index[reach+g.from+k])
		for i := c.first; i < c.first+c.size; i++ {
			g.digit[i] = float64(rest%g.c.base - g.half)
			rest /= g.c.base
		}
	}
}

// tabulate gives sum_i H_i d_i for each state of a cell.
func (g *groupRounds) tabulate() {
	for k := range g.cells {
		c := &g.cells[k]
		for state := range c.states {
			sum, rest := int32(0), state
			for i := c.first; i < c.first+c.size; i++ {
				sum += int32(g.integer[i]) * int32(rest%g.c.base-g.half)
				rest /= g.c.base
			}
			c.sum[state] = sum
		}
	}
}

// same compares a block with the table, but for its pattern.
func (g *groupRounds) same(y []int32) bool {
	for k, v := range y[g.skip:] {
		for n := range g.cells {
			c := &g.cells[n]
			v -= c.sum[c.index[reach+g.from+g.skip+k]]
		}
		if v != 0 {
			return false
		}
	}
	return true
}

// misfit gives the largest relative misfit of a device.
func (g *groupRounds) misfit() float64 {
	worst := 0.0
	for i, h := range g.h {
		if h != 0 {
			worst = max(worst, math.Abs(g.integer[i]/g.alpha-h)/math.Abs(h))
		}
	}
	return worst
}
