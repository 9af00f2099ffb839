package chart

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// axis is the range of one axis and what is written along it.
type axis struct {
	lo, hi      float64 // lo < hi; both positive if logarithmic
	logarithmic bool
	offset      float64 // what tick labels leave out and the axis label says
	ticks       []plot.Tick
}

// extent is the smallest range that holds all values given to it.
type extent struct {
	lo, hi  float64
	any     bool
	integer bool // so far
}

func (e *extent) add(v float64) {
	if !e.any {
		*e = extent{lo: v, hi: v, any: true, integer: true}
	}
	e.lo, e.hi = min(e.lo, v), max(e.hi, v)
	e.integer = e.integer && v == math.Trunc(v)
}

// linearAxis returns an axis that holds e with a margin, a share of the range, on
// either side, and with about n ticks.
func linearAxis(e extent, margin float64, n int) axis {
	if !e.any {
		e = extent{lo: 0, hi: 1}
	}
	magnitude := max(math.Abs(e.lo), math.Abs(e.hi))
	span := e.hi - e.lo
	flat := span <= 1e-14*magnitude // no more than rounding errors of one value
	if flat && e.integer || magnitude == 0 {
		e.lo, e.hi = e.lo-1, e.hi+1
	} else if flat {
		e.lo, e.hi = e.lo-0.1*magnitude, e.hi+0.1*magnitude
	}
	if e.hi <= e.lo { // integers so large that 1 is nothing to them
		e.lo, e.hi = e.lo-magnitude, e.hi+magnitude
	}
	a := axis{lo: e.lo, hi: e.hi}
	if pad := margin * (a.hi - a.lo); !flat {
		// What starts at zero is seen to: a density, a loss, a count.
		if e.lo != 0 {
			a.lo -= pad
		}
		a.hi += pad
	}
	a.offset = offsetFor(a.lo, a.hi)
	a.ticks = linearTicks(a.lo, a.hi, a.offset, n, e.integer)
	return a
}

// offsetFor returns 0, or, where lo and hi agree in more digits than a reader
// wants to see at every tick, a short number between them.
func offsetFor(lo, hi float64) float64 {
	if hi-lo > 1e-4*max(math.Abs(lo), math.Abs(hi)) {
		return 0
	}
	unit := int(math.Ceil(math.Log10(hi - lo)))
	v, err := strconv.ParseFloat(strconv.FormatFloat(lo/2+hi/2, 'e', max(0, exponentOf(hi)-unit), 64), 64)
	if err != nil {
		return 0
	}
	return v
}

// exponentOf returns floor(log10 |v|), exactly, for v other than 0.
func exponentOf(v float64) int {
	s := strconv.FormatFloat(v, 'e', -1, 64)
	e, err := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if err != nil {
		return 0 // FormatFloat always writes an exponent for finite numbers
	}
	return e
}

// linearTicks returns about n ticks at multiples of 1, 2 or 5 times a power of
// ten, counted from offset; at whole numbers only if integer.
func linearTicks(lo, hi, offset float64, n int, integer bool) []plot.Tick {
	mantissa, power := step((hi - lo) / float64(n))
	if integer && power < 0 {
		mantissa, power = 1, 0
	}
	at := func(i float64) float64 {
		if power < 0 {
			return i * mantissa / math.Pow10(-power) // a decimal as exact as can be
		}
		return i * mantissa * math.Pow10(power)
	}
	const slack = 1e-6 // of a step: rounding must not lose the tick at an end
	first := math.Ceil((lo-offset)/at(1) - slack)
	last := math.Floor((hi-offset)/at(1) + slack)
	largest := max(math.Abs(at(first)), math.Abs(at(last)))
	var ticks []plot.Tick
	for i := first; i <= last && len(ticks) < 4*n; i++ {
		v := min(max(offset+at(i), lo), hi)
		ticks = append(ticks, plot.Tick{Value: v, Label: tickLabel(at(i), largest, power)})
	}
	return ticks
}

// step returns the smallest 1, 2 or 5 times a power of ten that is at least raw.
func step(raw float64) (mantissa float64, power int) {
	power = exponentOf(raw)
	m := raw / math.Pow10(power)
	for _, mantissa := range []float64{1, 2, 5} {
		if m <= mantissa*(1+1e-9) {
			return mantissa, power
		}
	}
	return 1, power + 1
}

// tickLabel writes v, a multiple of 10^power, on an axis whose largest tick is
// largest: plainly if all ticks are short so, else as mantissa and exponent.
func tickLabel(v, largest float64, power int) string {
	if v == 0 || largest == 0 {
		return "0"
	}
	if largest >= 1e-3 && largest < 1e6 {
		return minus(strconv.FormatFloat(v, 'f', max(0, -power), 64))
	}
	e := exponentOf(largest)
	m := strconv.FormatFloat(v/math.Pow10(e), 'f', max(0, e-power), 64)
	return scientific(m, e)
}

// scientific writes m times ten to the e; text.go raises what follows raise.
func scientific(m string, e int) string {
	power := "10" + string(raise) + minus(strconv.Itoa(e))
	switch m {
	case "1":
		return power
	case "-1":
		return minus("-") + power
	}
	return minus(m) + "×" + power
}

// minus returns s with the proper sign, which is as wide as a digit.
func minus(s string) string { return strings.Replace(s, "-", "−", 1) }

// label returns an axis's label, with what the tick labels leave out.
func (a axis) label(text string) string {
	if a.offset == 0 {
		return text
	}
	sign := " − "
	if a.offset < 0 {
		sign = " + "
	}
	return text + sign + strconv.FormatFloat(math.Abs(a.offset), 'g', -1, 64)
}

// position returns where on the axis v lies: 0 at lo, 1 at hi.
func (a axis) position(v float64) float64 {
	if a.logarithmic {
		return (math.Log10(v) - math.Log10(a.lo)) / (math.Log10(a.hi) - math.Log10(a.lo))
	}
	return (v - a.lo) / (a.hi - a.lo)
}

// Normalize is position, as a plot.Normalizer. The range is a's own.
func (a axis) Normalize(_, _, v float64) float64 { return a.position(v) }

// Ticks returns a's ticks, as a plot.Ticker.
func (a axis) Ticks(_, _ float64) []plot.Tick { return a.ticks }

// logAxis returns a logarithmic axis that holds e, all of it positive, with a
// margin, a share of the range, on either side, and about n labels.
func logAxis(e extent, margin float64, n int) axis {
	if !e.any {
		e = extent{lo: 1, hi: 10}
	}
	lo, hi := math.Log10(e.lo), math.Log10(e.hi)
	if hi-lo < 1e-12 {
		lo, hi = lo-0.5, hi+0.5
	}
	pad := margin * (hi - lo)
	const reach = 305 // decades: the margin of a vast range must not overflow
	a := axis{lo: math.Pow(10, max(lo-pad, -reach)), hi: math.Pow(10, min(hi+pad, reach)), logarithmic: true}
	const fewest = 3 // labels by which a reader knows an axis
	a.ticks = logTicks(a.lo, a.hi, n)
	if labelled(a.ticks) < fewest {
		a.ticks = linearTicks(a.lo, a.hi, 0, n, e.integer)
	}
	return a
}

func labelled(ticks []plot.Tick) int {
	n := 0
	for _, t := range ticks {
		if !t.IsMinor() {
			n++
		}
	}
	return n
}

// logTicks labels every decade, or every so many if there are more than n, or
// also twos and fives where there may be fewer than three.
func logTicks(lo, hi float64, n int) []plot.Tick {
	first, last := exponentOf(lo), exponentOf(hi) // first's decade begins at lo or below
	stride := 1 + (last-first-1)/n
	fives := math.Log10(hi/lo) < 3
	var ticks []plot.Tick
	for e := first; e <= last; e++ {
		for m := 1; m <= 9; m++ {
			v := float64(m) * math.Pow10(e)
			const slack = 1e-9 // a rounding error must not lose the tick at an end
			if v < lo*(1-slack) || v > hi*(1+slack) {
				continue
			}
			v = min(max(v, lo), hi)
			switch {
			case m == 1 && e%stride == 0 || fives && (m == 2 || m == 5):
				ticks = append(ticks, plot.Tick{Value: v, Label: logLabel(m, e, first, last)})
			case stride == 1 || m == 1:
				ticks = append(ticks, plot.Tick{Value: v})
			}
		}
	}
	return ticks
}

// logLabel writes m times ten to the e, plainly if the whole axis, of the
// decades first to last, is plain so.
func logLabel(m, e, first, last int) string {
	if first >= -3 && last <= 3 {
		return strconv.FormatFloat(float64(m)*math.Pow10(e), 'f', max(0, -e), 64)
	}
	return scientific(strconv.Itoa(m), e)
}
