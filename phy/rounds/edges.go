package rounds

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// edges are the boundaries between integers as a receiver had them in the blocks that
// it read: between the largest symbol that it took for one and the smallest that it
// took for the next.
type edges struct {
	low, high map[int32]float32
}

func (e *edges) clear() {
	if e.low == nil {
		e.low, e.high = map[int32]float32{}, map[int32]float32{}
	}
	clear(e.low)
	clear(e.high)
}

// add takes in a block.
func (e *edges) add(y []float32, integers []int32) {
	const width = 1 << 8
	var low, high [2 * width]float32
	var seen [2 * width]bool
	for k, v := range integers {
		if v < -width || v >= width {
			continue // of scales so fine, the grid itself is boundary enough
		}
		x, i := y[k], v+width
		if !seen[i] {
			seen[i], low[i], high[i] = true, x, x
			continue
		}
		low[i], high[i] = min(low[i], x), max(high[i], x)
	}
	for i, s := range seen {
		if !s {
			continue
		}
		v := int32(i) - width
		if old, ok := e.low[v]; !ok || low[i] < old {
			e.low[v] = low[i]
		}
		if old, ok := e.high[v]; !ok || high[i] > old {
			e.high[v] = high[i]
		}
	}
}

// bounds returns between which symbols each integer from -largest to largest is read.
// Integers that were not seen have the grid's own boundaries at the scale alpha: what
// lies between two that were seen goes to the nearer.
func (e *edges) bounds(largest int, alpha float64) (from, to []float64) {
	from, to = make([]float64, 2*largest+1), make([]float64, 2*largest+1)
	last, found := 0, false
	for i := range from {
		v := int32(i - largest)
		from[i], to[i] = (float64(v)-0.5)/alpha, (float64(v)+0.5)/alpha
		low, ok := e.low[v]
		if !ok {
			continue
		}
		from[i], to[i] = math.Inf(-1), math.Inf(1)
		if found {
			middle := float64(e.high[int32(last-largest)]+low) / 2
			to[last], from[i] = middle, middle
		}
		last, found = i, true
	}
	return from, to
}

// mostStates bounds the superpositions that are looked at one by one.
const mostStates = 1 << 16

// survives draws whether what is not simulated of a frame is read, too.
func (g *group) survives(extra int) bool {
	if extra == 0 {
		return true
	}
	u := g.rnd.Float64() // in any case: what comes after it is then the same
	return u >= -math.Expm1(-float64(extra)*g.errorRate())
}

// errorRate returns the probability that a symbol is taken for another integer: the
// noise, as the simulated symbols have it, reaches over a boundary.
func (g *group) errorRate() float64 {
	std := g.residual()
	sin, cos := math.Sincos(g.theta)
	if !g.sampled() {
		sin, cos = 0, 1
	}
	largest := 0
	for _, h := range g.integer {
		largest += int(math.Abs(h)) * g.half
	}
	from, to := g.edges.bounds(largest, g.alpha)
	states := 1
	for _, c := range g.cells {
		states = min(states*c.states, 2*mostStates)
	}
	drawn := states > mostStates
	states = min(states, mostStates)
	sum := 0.0
	for state := range states {
		y, v, rest := 0.0, largest, state
		for n := range g.cells {
			c := &g.cells[n]
			s := rest % c.states
			rest /= c.states
			if drawn {
				s = g.rnd.IntN(c.states)
			}
			y += cos*c.in[reach][s] + sin*c.quad[reach][s]
			v += int(c.sum[s])
		}
		sum += tail((to[v]-y)/std) + tail((y-from[v])/std)
	}
	return sum / float64(states)
}

// tail is the probability that a standard normal variable exceeds x.
func tail(x float64) float64 {
	if x > 9 {
		return 0
	}
	return distuv.UnitNormal.CDF(-x) // Survival loses the digits of a small one
}

// residual returns the deviation of the simulated symbols from what the gains alone
// give: noise, converters and interference.
func (g *group) residual() float64 {
	sin, cos := math.Sincos(g.theta)
	if !g.sampled() {
		sin, cos = 0, 1
	}
	sum, n := 0.0, min(g.from, 1<<13)
	for k := range n {
		y := 0.0
		for i := range g.cells {
			c := &g.cells[i]
			s := c.index[reach+k]
			y += cos*c.in[reach][s] + sin*c.quad[reach][s]
		}
		d := float64(g.y[k]) - y
		sum += d * d
	}
	return math.Sqrt(sum / float64(n))
}
