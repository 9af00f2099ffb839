package moments

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"
)

// jump is a step of a device's phase (rad; known up to pi only where the mean gain
// is lost in the fading) or delay (samples) between block-1 and block.
type jump struct {
	device, block int
	delay         bool
	size, se      float64
	chi, p        float64
}

// maxJumps is how many jumps a session may have and still be called steady but for
// them; beyond, its phase wanders.
const maxJumps = 4

// findJumps looks for jumps of phase and delay, session by session. moved says that
// a session's phase has more jumps than are told one by one; they are then left out.
func (l *link) findJumps(alpha float64, o Options) (found []jump, moved bool) {
	// The smallest probability speaks for the device: kept even if it is no jump.
	for _, sp := range l.spans {
		phases := l.split(sp, alpha, l.phaseStep(sp, o))
		if len(phases) > maxJumps {
			phases, moved = nil, true
		}
		found = append(found, phases...)
		if l.series.Delay == nil {
			continue
		}
		delays := l.split(sp, alpha, l.delayStep(sp, o))
		if len(delays) <= maxJumps {
			found = append(found, delays...)
		}
	}
	slices.SortFunc(found, func(a, b jump) int { return a.block - b.block })
	return found, moved
}

// step returns the best place to cut the blocks from first to before end in two, with
// chi the improvement of the fit and p its probability for that one place.
type step func(first, end int) jump

// split cuts a session in two at its best place, and its parts again, as long as the
// cut cannot be chance. All places were tried: p is multiplied by their number.
func (l *link) split(sp span, alpha float64, best step) []jump {
	if sp.end-sp.first < 2 {
		return nil
	}
	j := best(sp.first, sp.end)
	j.p *= float64(len(l.x))
	if !(j.p < alpha) {
		return nil
	}
	out := append(l.split(span{sp.first, j.block}, alpha, best), j)
	out = append(out, l.split(span{j.block, sp.end}, alpha, best)...)
	// A step's size is that against the part next to it, cut where that is cut.
	for i := range out {
		first, end := sp.first, sp.end
		if i > 0 {
			first = out[i-1].block
		}
		if i+1 < len(out) {
			end = out[i+1].block
		}
		out[i].size, out[i].se = l.sizeOf(out[i], first, end)
	}
	return out
}

// phaseStep works on z^2, in which the sign of a real gain is no phase. With
// A = sum of z^2/(2w) before a place and B after, the square error falls by
// |A|+|B|-|A+B| if each side has a phase of its own: chi-square of one degree of
// freedom; where the gain is lost in noise it is at most that of two, which is used.
func (l *link) phaseStep(sp span, o Options) step {
	sums := make([]complex128, sp.end-sp.first+1)
	for k := sp.first; k < sp.end; k++ {
		i := k - sp.first
		sums[i+1] = sums[i]
		if z := l.z[k]; !cmplx.IsNaN(z) {
			size := real(z)*real(z) + imag(z)*imag(z)
			sums[i+1] += z * z / complex(2*(l.w[k]+o.PhaseTolerance*o.PhaseTolerance*size), 0)
		}
	}
	return func(first, end int) jump {
		best := jump{device: l.index, p: 1}
		from, to := sums[first-sp.first], sums[end-sp.first]
		for k := first + 1; k < end; k++ {
			a, b := sums[k-sp.first]-from, to-sums[k-sp.first]
			if chi := cmplx.Abs(a) + cmplx.Abs(b) - cmplx.Abs(a+b); chi > best.chi {
				best.chi, best.block = chi, k
			}
		}
		best.p = math.Exp(-best.chi / 2)
		return best
	}
}

// delays returns each block's delay, the weighted mean of its looks, and its weight;
// 0 where the gain is too weak to tell one.
func (l *link) delays(o Options) (delay, weight []float64) {
	n := l.bench.Looks
	delay, weight = make([]float64, len(l.x)), make([]float64, len(l.x))
	for k := range l.x {
		if !l.readable(k) {
			continue
		}
		for t := k * n; t < (k+1)*n; t++ {
			d, v := l.series.Delay[t], l.series.DelayVar[t]
			if !math.IsNaN(d) && v > 0 && !math.IsInf(v, 0) {
				delay[k] += d / v
				weight[k] += 1 / v
			}
		}
		if weight[k] > 0 {
			delay[k] /= weight[k]
			weight[k] = 1 / (1/weight[k] + o.DelayTolerance*o.DelayTolerance)
		}
	}
	return delay, weight
}

func (l *link) delayStep(_ span, o Options) step {
	delay, weight := l.delays(o)
	sums, weights := make([]float64, len(delay)+1), make([]float64, len(delay)+1)
	for k := range delay {
		sums[k+1] = sums[k] + weight[k]*delay[k]
		weights[k+1] = weights[k] + weight[k]
	}
	return func(first, end int) jump {
		best := jump{device: l.index, delay: true, p: 1}
		for k := first + 1; k < end; k++ {
			wa, wb := weights[k]-weights[first], weights[end]-weights[k]
			if wa == 0 || wb == 0 {
				continue
			}
			size := (sums[end]-sums[k])/wb - (sums[k]-sums[first])/wa
			if chi := size * size / (1/wa + 1/wb); chi > best.chi {
				best.chi, best.block = chi, k
				best.size, best.se = size, math.Sqrt(1/wa+1/wb)
			}
		}
		best.p = normalTail(math.Sqrt(best.chi))
		return best
	}
}

// sizeOf measures a phase jump between its neighbours; a delay's is kept.
func (l *link) sizeOf(j jump, first, end int) (size, se float64) {
	if j.delay {
		return j.size, j.se
	}
	before, ea := l.axis(span{first, j.block})
	after, eb := l.axis(span{j.block, end})
	if math.IsNaN(ea) {
		ea = 0
	}
	if math.IsNaN(eb) {
		eb = 0
	}
	size = foldHalf(after - before)
	// Where both means stand clear of zero, they tell the two halves of the circle
	// apart.
	if a, b := l.clearance(span{first, j.block}, before), l.clearance(span{j.block, end}, before+size); math.Min(math.Abs(a), math.Abs(b)) > signCertainty+1 && a*b < 0 {
		size = wrap(size + math.Pi)
	}
	return size, math.Hypot(ea, eb)
}

// clearance is the mean of the gains along the given phase in its standard errors.
func (l *link) clearance(sp span, phase float64) float64 {
	turn := cmplx.Rect(1, -phase)
	var sum, square, n float64
	for k := sp.first; k < sp.end; k++ {
		if !cmplx.IsNaN(l.z[k]) {
			x := real(l.z[k] * turn)
			sum, square, n = sum+x, square+x*x, n+1
		}
	}
	if n < 2 {
		return 0
	}
	return sum / n / math.Sqrt((square-sum*sum/n)/(n*(n-1)))
}

// straighten returns the link with its phase jumps taken out; itself if there are none.
func (l *link) straighten(jumps []jump) *link {
	phase := func(j jump) bool { return !j.delay }
	if !slices.ContainsFunc(jumps, phase) {
		return l
	}
	out := *l
	out.z = slices.Clone(l.z)
	for _, sp := range l.spans {
		turn := 0.0
		for k := sp.first; k < sp.end; k++ {
			for _, j := range jumps {
				if phase(j) && j.block == k && k > sp.first {
					turn += j.size
				}
			}
			out.z[k] *= cmplx.Rect(1, -turn)
		}
	}
	out.align()
	return &out
}

// clocks tells who shares a jump: jumps of several devices within two blocks are one
// event. All devices of a bench at once speak for the receiver, some for a clock that
// they share.
func clocks(jumps []jump, devices int) []finding {
	var out []finding
	for _, group := range grouped(jumps) {
		strongest := group[0]
		var who []int
		for _, j := range group {
			if j.chi > strongest.chi {
				strongest = j
			}
			if !slices.Contains(who, j.device) {
				who = append(who, j.device)
			}
		}
		slices.Sort(who)
		var sizes []string
		for _, i := range who {
			for _, j := range group {
				if j.device != i {
					continue
				}
				unit := "rad"
				if j.delay {
					unit = "samples"
				}
				sizes = append(sizes, fmt.Sprintf("%+.3g (standard error %.2g) %s on device %d", j.size, j.se, unit, i+1))
			}
		}
		var whose string
		switch {
		case devices == 1:
			whose = "the clock of the device or of the receiver"
		case len(who) == devices && devices == 2:
			whose = "a clock that both devices share, or the receiver's,"
		case len(who) == devices:
			whose = "the receiver's clock, since all devices are hit at once,"
		case len(who) > 1:
			whose = fmt.Sprintf("a clock that devices %s share", list(who))
		default:
			whose = fmt.Sprintf("the clock of device %d alone", who[0]+1)
		}
		out = append(out, finding{
			name: OneClock, devices: who, statistic: strongest.chi, p: strongest.p, violated: true,
			say: fmt.Sprintf("%s jumped before block %d: %s", whose, strongest.block+1, strings.Join(sizes, ", ")),
		})
	}
	return out
}

func grouped(jumps []jump) [][]jump {
	slices.SortStableFunc(jumps, func(a, b jump) int { return a.block - b.block })
	var groups [][]jump
	for _, j := range jumps {
		if n := len(groups); n > 0 && j.block-groups[n-1][0].block <= 2 {
			groups[n-1] = append(groups[n-1], j)
			continue
		}
		groups = append(groups, []jump{j})
	}
	return groups
}

// list writes device numbers, from 1: "1, 2 and 5".
func list(devices []int) string {
	var b strings.Builder
	for i, d := range devices {
		switch {
		case i > 0 && i == len(devices)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, d+1)
	}
	return b.String()
}
