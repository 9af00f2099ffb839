package theory

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/stat"
)

// settled is the horizon from which the start is forgotten in all settings, so that
// the slope is that of the steady state.
const settled = 1_000

func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// fit fits the slopes and the floor of the setting's points.
func (r *SettingReport) fit() {
	type value struct {
		of string
		at func(Point) float64
	}
	values := []value{
		{"minimum", func(p Point) float64 { return p.Minimum }},
		{"held out", func(p Point) float64 { return p.HeldOut }},
		{"tail", func(p Point) float64 { return p.Tail }},
	}
	if r.Points[0].HasExact {
		values = append(values,
			value{"exact", func(p Point) float64 { return p.Exact }},
			value{"exact tail", func(p Point) float64 { return p.ExactTail }})
	}
	for _, v := range values {
		for _, from := range []int{r.Points[0].Rounds, settled} {
			f := slope(r.Points, from, r.Rate.Rho, v.at)
			f.Of = v.of
			r.Fits = append(r.Fits, f)
		}
	}
	r.Floor = floor(r.Points)
	r.Floor.Rho = r.Rate.Rho
	limit, err := r.Problem.NoiseLimit(r.Assumptions.DecodedVariance, r.Eta0, r.Gamma0)
	r.Floor.Limit, r.Floor.HasLimit = limit, err == nil
}

// slope fits log(value - rho) against log K by least squares; the standard error is
// that of the points' scatter about the line.
func slope(points []Point, from int, rho float64, value func(Point) float64) Fit {
	f := Fit{From: from}
	var x, y []float64
	for _, p := range points {
		if p.Rounds < from {
			continue
		}
		excess := value(p) - rho
		if !(excess > 0) {
			f.Dropped++
			continue
		}
		x, y = append(x, math.Log(float64(p.Rounds))), append(y, math.Log(excess))
	}
	f.Points = len(x)
	if f.Points < 3 {
		return f
	}
	f.Known = true
	var intercept float64
	intercept, f.Slope = stat.LinearRegression(x, y, nil, false)
	mean := stat.Mean(x, nil)
	var residuals, spread float64
	for i := range x {
		e := y[i] - intercept - f.Slope*x[i]
		residuals += e * e
		spread += (x[i] - mean) * (x[i] - mean)
	}
	f.StdErr = math.Sqrt(residuals / float64(f.Points-2) / spread)
	return f
}

// floor fits the tail's means from the settled horizons on by B + A/sqrt(K), with
// weights for equal relative errors; the standard error is that of the points'
// scatter about the curve.
func floor(points []Point) Floor {
	var x, y, weights []float64
	for _, p := range points {
		if p.Rounds >= settled {
			x, y = append(x, 1/math.Sqrt(float64(p.Rounds))), append(y, p.Tail)
			weights = append(weights, 1/(p.Tail*p.Tail))
		}
	}
	if len(x) < 3 {
		return Floor{}
	}
	value, a := stat.LinearRegression(x, y, weights, false)
	var w, wx, wxx, residuals float64
	for i := range x {
		e := y[i] - value - a*x[i]
		residuals += weights[i] * e * e
		w += weights[i]
		wx += weights[i] * x[i]
		wxx += weights[i] * x[i] * x[i]
	}
	scatter := residuals / float64(len(x)-2)
	return Floor{Value: value, StdErr: math.Sqrt(scatter * wxx / (w*wxx - wx*wx)), Known: true}
}
