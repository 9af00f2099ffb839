package sounding

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"

	"ringwave/phy/modem"
)

// echoFit explains a response by echoes, one after the other.
type echoFit struct {
	*responder
	seen     []complex128
	variance float64        // of a lag, by the bursts' scatter
	lag      float64        // or by what is left, if that is more
	bent     [][]complex128 // what filters do beside echoes
	steep    [][]complex128 // and what those alone do
	grid     []float64      // the delays looked at
	columns  [][]complex128
	delays   []float64 // of the echoes found
}

// more looks for one echo more and returns all, or nil where there is none.
func (f *echoFit) more() []Echo {
	best := f.strongest()
	if math.IsNaN(best) {
		return nil
	}
	delays := append(slices.Clone(f.delays), best)
	echoes := f.settle(delays)
	for _, e := range echoes {
		if size := cmplx.Abs(e.Gain); !(size >= leastEcho && size >= significantEcho*math.Sqrt(e.GainVar)) || math.Abs(float64(e.Delay)) < nearestEcho {
			return nil
		}
	}
	f.delays = delays
	return echoes
}

// strongest returns the delay of the grid that explains most of what is left.
func (f *echoFit) strongest() (delay float64) {
	q := orthonormal(f.all(f.delays))
	left := without(q, f.seen)
	delay = math.NaN()
	most := 0.0
	for k, column := range f.columns {
		fresh := without(q, column)
		size := power(fresh)
		if size < 1e-3*power(column) {
			continue // as good as explained
		}
		if c := square(dot(fresh, left)) / size; c > most {
			most, delay = c, f.grid[k]
		}
	}
	return delay
}

// settle moves delays to where echoes at them explain most, and returns these.
func (f *echoFit) settle(delays []float64) []Echo {
	columns := f.all(delays)
	for step := 0.5; step > 1e-3; step /= 2 {
		for k := range delays {
			f.improve(delays, columns, k, step)
		}
	}
	return f.explain(delays, columns)
}

// straighten returns the echoes as they are if no filter bends anything, which tells those near
// the first path far better, if they then explain as much.
func (f *echoFit) straighten(echoes []Echo) []Echo {
	const asMuch = 2
	bent, lag := f.bent, f.lag
	f.bent = nil
	if straight := f.settle(f.delays); f.lag <= asMuch*lag {
		return straight
	}
	f.bent, f.lag = bent, lag
	return echoes
}

// improve moves delay k, and its column with it, by a step to either side if more is then
// explained.
func (f *echoFit) improve(delays []float64, columns [][]complex128, k int, step float64) {
	own := &columns[len(f.bent)+k]
	at, least := delays[k], power(without(orthonormal(columns), f.seen))
	for _, d := range []float64{at - step, at + step} {
		if d < FirstLag || d > lastEcho {
			continue
		}
		before := *own
		*own = f.echo(d)
		if left := power(without(orthonormal(columns), f.seen)); left < least {
			least, delays[k] = left, d
			continue
		}
		*own = before
	}
}

// all returns the columns of what filters bend and of echoes at these delays.
func (f *echoFit) all(delays []float64) [][]complex128 {
	columns := slices.Clone(f.bent)
	for _, d := range delays {
		columns = append(columns, f.echo(d))
	}
	return columns
}

// explain returns the echoes of these delays that explain most, with variances as if delays
// were known.
func (f *echoFit) explain(delays []float64, columns [][]complex128) (echoes []Echo) {
	rest := without(orthonormal(columns), f.seen)
	chip := f.cfg.SamplesPerChip / lagStep // lags within a chip are no more than one
	free := max(1, Lags/chip-len(columns))
	f.lag = max(f.variance, power(rest)/float64(chip*free))
	for k, d := range delays {
		gain, variance := f.part(columns, k)
		echoes = append(echoes, Echo{Delay: modem.Samples(d), Gain: gain, GainVar: variance})
	}
	return echoes
}

// part returns what of echo k no other column explains, and its variance.
func (f *echoFit) part(columns [][]complex128, k int) (gain complex128, variance float64) {
	at := len(f.bent) + k
	others := slices.Delete(slices.Clone(columns), at, at+1)
	own := without(orthonormal(others), columns[at])
	size := power(own)
	return dot(own, f.seen) / complex(size, 0), f.lag * power(columns[at]) / size
}

// widen gives echoes the variances that they have as their delays are found with them, too.
func (f *echoFit) widen(echoes []Echo) {
	delays := make([]float64, len(echoes))
	for k, e := range echoes {
		delays[k] = float64(e.Delay)
	}
	columns := f.all(delays)
	for _, d := range delays {
		const step = 0.05
		slope := f.echo(d + step)
		for k, x := range f.echo(d - step) {
			slope[k] -= x
		}
		columns = append(columns, slope)
	}
	for k := range echoes {
		_, echoes[k].GainVar = f.part(columns, k)
	}
}

// bentOnly reports whether filters alone explain more than echoes near the first path do.
func (f *echoFit) bentOnly(echoes []Echo) bool {
	near := !slices.ContainsFunc(echoes, func(e Echo) bool { return math.Abs(float64(e.Delay)) > farEcho })
	return near && power(without(orthonormal(f.steep), f.seen)) < power(without(orthonormal(f.all(f.delays)), f.seen))
}

// direct returns echoes, which are against the gain that was fitted and its delay, against
// the first path: the fit has taken their mean with it for gain and delay.
func (s *Sounding) direct(echoes []Echo) ([]Echo, error) {
	out := []Echo{}
	if len(echoes) == 0 {
		return out, nil
	}
	f, err := newResponder(s.cfg)
	if err != nil {
		return nil, err
	}
	// The fit of the first path m and the echoes is 1 at the delay 0.
	added := f.fit(f.signal(func(c float64) complex128 {
		sum := complex128(0)
		for _, e := range echoes {
			sum += e.Gain * cmplx.Rect(1, -2*math.Pi*c*float64(e.Delay))
		}
		return sum
	}), 0)
	first := 1 - added.Gain
	slices.SortStableFunc(echoes, func(a, b Echo) int { return cmp.Compare(cmplx.Abs(b.Gain), cmplx.Abs(a.Gain)) })
	for _, e := range echoes {
		e.Gain, e.GainVar = e.Gain/first, e.GainVar/square(first)
		out = append(out, e)
	}
	shared, err := s.Shared(out)
	for k := range out {
		out[k].Delay += shared.DDelay
	}
	return out, err
}

func dot(a, b []complex128) (sum complex128) {
	for k := range a {
		sum += cmplx.Conj(a[k]) * b[k]
	}
	return sum
}

func power(a []complex128) (sum float64) {
	for _, x := range a {
		sum += square(x)
	}
	return sum
}

// without returns v without its parts along orthonormal vectors.
func without(basis [][]complex128, v []complex128) []complex128 {
	v = slices.Clone(v)
	for _, q := range basis {
		c := dot(q, v)
		for k := range v {
			v[k] -= c * q[k]
		}
	}
	return v
}

// orthonormal returns a basis of the columns, those left out that others explain.
func orthonormal(columns [][]complex128) (basis [][]complex128) {
	for _, column := range columns {
		v := without(basis, without(basis, column)) // twice, for rounding
		size := power(v)
		if size <= 1e-10*power(column) {
			continue
		}
		for k := range v {
			v[k] /= complex(math.Sqrt(size), 0)
		}
		basis = append(basis, v)
	}
	return basis
}
