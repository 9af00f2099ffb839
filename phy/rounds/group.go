package rounds

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
)

// group is one group's part in it.
type group struct {
	*Simulation
	first, size int
	receiver    *lattice.Receiver
	patterns    *frame.Patterns // nil for none
	convert     converter
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

func (s *Simulation) newGroup(first, size int, scale, level float64) (*group, error) {
	longest := 0
	for _, blocks := range s.cfg.Layout.Blocks {
		sum := 0
		for _, n := range s.simulated(blocks) {
			sum += n
		}
		longest = max(longest, sum)
	}
	receiver, err := lattice.New(lattice.Options{MaxAlpha: s.cfg.MaxAlpha, Symbols: s.cfg.BlockSymbols})
	if err != nil {
		return nil, err
	}
	g := &group{
		Simulation: s, first: first, size: size, receiver: receiver, level: level,
		placed: make([]placed, size), gain: make([]complex128, size), h: make([]float64, size),
		y: make([]float32, longest), once: make([]float32, longest), integer: make([]float64, size), digit: make([]float64, size),
	}
	if bits := s.cfg.Bench.ReceiverBits; bits > 0 {
		full := s.fullScale() / (scale * level)
		g.convert = converter{step: math.Ldexp(full, 1-bits), full: full}
	}
	if s.cfg.Layout.Digits > 0 {
		g.patterns = frame.NewPatterns(size, s.cfg.Patterns.Derive("patterns", uint64(first)))
	}
	g.drive(scale)
	for from := 0; from < size; {
		cell := cell{first: from, states: 1}
		for from < size && cell.states*s.cfg.Base <= maxStates {
			cell.states *= s.cfg.Base
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

// drive returns what each device sends for each digit, in units of the digit: its
// converter rounds the flat top of each, turned and trimmed as it is.
func (g *group) drive(scale float64) {
	for _, d := range g.cfg.Bench.Devices[g.first : g.first+g.size] {
		trim := complex(1, 0)
		if g.cfg.Regime == bench.MeanAligned {
			trim = cmplx.Rect(g.level/math.Abs(d.Gain.Mean()), -float64(d.Phase))
		}
		levels := make([]complex128, g.cfg.Base)
		for k := range levels {
			level := complex(float64(k-g.half), 0)
			if d.ConverterBits > 0 && g.flat {
				c := converter{step: math.Ldexp(1, 1-d.ConverterBits)}
				sent := level * trim * complex(scale, 0)
				level = complex(c.rounded(real(sent)), c.rounded(imag(sent))) / (trim * complex(scale, 0))
			}
			levels[k] = level
		}
		g.sent = append(g.sent, levels)
	}
}

// measure finds the group's way through the modem at the attempt's gains, and tells
// whether there is one: otherwise the preamble drowned.
func (g *group) measure() bool {
	noise := math.Sqrt(float64(g.cfg.Bench.Noise)/2) / g.level
	for i, gain := range g.gain {
		d := g.cfg.Bench.Devices[g.first+i]
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
	if err != nil && g.cfg.Regime == bench.Emulated {
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

// begin sets the gains of an attempt, and what the receiver's preamble makes of them.
func (g *group) begin(number int) {
	g.alpha, g.void = 0, false
	for i := range g.gain {
		h := g.drawn[g.first+i]
		if number > 0 && g.cfg.Alpha == 0 {
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
		sum += g.gain[i] * complex(way[i][reach], 0) * g.sent[i][g.cfg.Base-1]
	}
	g.theta = 0
	power, noise := real(sum)*real(sum)+imag(sum)*imag(sum), 2*g.noise*g.noise
	if g.cfg.Regime != bench.Emulated {
		// The phase of a preamble of L symbols has the variance 1/(2 L S).
		g.theta = cmplx.Phase(sum) + g.rnd.NormFloat64()*math.Sqrt(noise/power/2/float64(cmp.Or(g.cfg.Modem.Preamble.Length, modem.DefaultPreamble)))
	}
	if g.cfg.Regime != bench.Emulated && power < g.least*(power+noise) {
		g.alpha = math.NaN() // no preamble
	}
	g.fill(way)
}

// fill tabulates what each state of a cell gives.
func (g *group) fill(way []response) {
	back := cmplx.Rect(1, -g.theta)
	variance := 0.0
	for i := range g.gain {
		g.h[i] = real(g.gain[i]*back*g.sent[i][g.cfg.Base-1]) * way[i][reach] / float64(g.half)
		if bits := g.cfg.Bench.Devices[g.first+i].ConverterBits; bits > 0 && !g.flat {
			step := math.Ldexp(1, 1-bits)
			variance += real(g.gain[i]*cmplx.Conj(g.gain[i])) * step * step / 12
		}
	}
	if !g.flat {
		variance += g.convert.step * g.convert.step / 12
	}
	g.white = math.Sqrt(variance / float64(g.samples))
	for k := range g.cells {
		c := &g.cells[k]
		for _, l := range g.lags {
			for state := range c.states {
				var sum complex128
				rest := state
				for i := c.first; i < c.first+c.size; i++ {
					sum += g.gain[i] * g.sent[i][rest%g.cfg.Base] * complex(way[i][l], 0)
					rest /= g.cfg.Base
				}
				if !g.sampled() {
					sum *= back
				}
				c.in[l][state], c.quad[l][state] = real(sum), imag(sum)
			}
		}
	}
}

// sampled reports whether the samples of a symbol are simulated one by one.
func (g *group) sampled() bool { return g.flat && g.convert.step > 0 }

// frame sends and reads a frame, and gives the repeats that this took.
func (g *group) frame(t int) int {
	if math.IsNaN(g.alpha) {
		return Unread
	}
	all := g.cfg.Layout.Blocks[t]
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
	for repeat := range max(0, g.cfg.Repeats) + 1 {
		g.send(g.once[:n])
		lattice.Combine(g.y[:n], g.once[:n], float64(repeat))
		if g.read(t, blocks, extra) {
			return repeat
		}
	}
	return Unread
}

// digits draws those of n symbols, and of the neighbours beyond.
func (g *group) digits(n int) {
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

// shape returns the symbols of a frame what is not uniform in them: the header before
// them, which all devices send alike; the pattern of +-1 that is read with the first
// block, a good part of it if the frame is short; and the coefficients' last digits.
func (g *group) shape(blocks []int) {
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
		for k := from + g.cfg.Layout.Digits - 1; k < to; k += g.cfg.Layout.Digits {
			for n := range g.cells {
				c := &g.cells[n]
				c.index[reach+k] = g.state(c, g.topDigit)
			}
		}
		from = to
	}
}

// state returns that of a cell's devices of the given digits, the least of which is 0.
func (g *group) state(c *cell, digit func(device int) int) uint16 {
	state := 0
	for i := c.first + c.size - 1; i >= c.first; i-- {
		state = state*g.cfg.Base + digit(i)
	}
	return uint16(state)
}

// topDigit draws a coefficient's last digit.
func (g *group) topDigit(int) int {
	u, k := g.rnd.Float64(), 0
	for k < g.cfg.Base-1 && u >= g.cfg.Layout.Top[k] {
		k++
	}
	return k
}

// send superposes symbols.
func (g *group) send(y []float32) {
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
func (g *group) sendSamples(y []float32) {
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
			sum += cos * g.convert.converted(in+noise*g.rnd.NormFloat64())
			if sin != 0 {
				sum += sin * g.convert.converted(quad+noise*g.rnd.NormFloat64())
			}
		}
		y[k] = float32(sum / float64(g.samples))
	}
}

// converter rounds to multiples of a step, and clips at full scale; a step of 0 stands for
// none.
type converter struct{ step, full float64 }

// rounded returns the nearest code.
func (c converter) rounded(x float64) float64 { return math.RoundToEven(x/c.step) * c.step }

// converted returns the nearest code that there is.
func (c converter) converted(x float64) float64 {
	return math.Max(-c.full, math.Min(c.full-c.step, c.rounded(x)))
}

// read reads the blocks of a frame, and finds the scale in the first transmission:
// one that reads all of them, and what is not simulated.
func (g *group) read(t int, blocks []int, extra int) bool {
	searching := t == 0 && g.cfg.Alpha == 0
	if t == 0 {
		g.alpha = 0
	}
	g.refused = g.refused[:0]
	if g.cfg.Regime == bench.Emulated {
		for i, h := range g.h {
			g.integer[i] = math.RoundToEven(g.cfg.Alpha * h)
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
func (g *group) readAt(t int, blocks []int) int {
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
		case g.cfg.Tolerance > 0:
			res, err = g.receiver.Near(y, g.cfg.Alpha, g.cfg.Tolerance, g.correct)
		case g.cfg.Alpha > 0:
			res, err = g.receiver.At(y, g.cfg.Alpha, g.same)
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
func (g *group) compare(t int, y []int32) {
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
func (g *group) correct(y []int32) bool {
	if !g.solve(y) {
		return false
	}
	g.tabulate()
	return g.same(y)
}

// linear stands for the linear check of a later block, which other integers pass, too.
// The attempt is void then.
func (g *group) linear(y []int32) bool {
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
func (g *group) solve(y []int32) bool {
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

// digitsOf returns the digits of the block's symbol k.
func (g *group) digitsOf(k int) {
	for _, c := range g.cells {
		rest := int(c.index[reach+g.from+k])
		for i := c.first; i < c.first+c.size; i++ {
			g.digit[i] = float64(rest%g.cfg.Base - g.half)
			rest /= g.cfg.Base
		}
	}
}

// tabulate returns sum_i H_i d_i for each state of a cell.
func (g *group) tabulate() {
	for k := range g.cells {
		c := &g.cells[k]
		for state := range c.states {
			sum, rest := int32(0), state
			for i := c.first; i < c.first+c.size; i++ {
				sum += int32(g.integer[i]) * int32(rest%g.cfg.Base-g.half)
				rest /= g.cfg.Base
			}
			c.sum[state] = sum
		}
	}
}

// same compares a block with the table, but for its pattern.
func (g *group) same(y []int32) bool {
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

// misfit returns the largest relative misfit of a device, against its gain as the channel
// has it: without what converters and the modem's filters add to it.
func (g *group) misfit() float64 {
	worst := 0.0
	for i, gain := range g.gain {
		if h := real(gain * cmplx.Rect(1, -g.theta)); h != 0 {
			worst = max(worst, math.Abs(g.integer[i]/g.alpha-h)/math.Abs(h))
		}
	}
	return worst
}
