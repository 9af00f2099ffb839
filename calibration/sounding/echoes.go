package sounding

import (
	"math"
	"math/cmplx"
	"strconv"

	"ringwave/phy/modem"
)

// Echo is a copy of a burst that arrives by another path than the first.
type Echo struct {
	Delay   modem.Samples // behind the first path
	Gain    complex128    // against it
	GainVar float64       // E|error of Gain|^2
}

// MaxEchoes is how many are found at most.
const MaxEchoes = 8

// The lags of a Response, in samples behind the burst's own delay: those that its prefix and
// suffix leave periodic, as close as the signal's band asks for.
const (
	FirstLag, LastLag = -4, 48
	lagStep           = MinSamplesPerChip
	Lags              = (LastLag-FirstLag)/lagStep + 1
)

const (
	// nearestEcho is how close to the first path an echo may lie: closer ones and what
	// filters do cannot be told apart.
	// lastEcho is how late one may come, with its chip within the lags.
	nearestEcho = 2.0
	lastEcho    = LastLag - 2.0
	// significantEcho is how many of its standard errors an echo stands out by, and leastEcho
	// the weakest, -45 dB: what a receiver's rounding and an amplifier leave may look like one.
	significantEcho = 5.0
	leastEcho       = 0.0056
	// bends is how many powers of the frequency, from the square on, are taken for what
	// filters do beside echoes: gain and delay are the first two. Where all echoes are as
	// near as farEcho, steepBends must not explain more without any.
	bends, steepBends = 3, 6
	farEcho           = 8.0
)

// Response returns what is left of the burst that Fit took last out of the same window,
// beside all that was fitted: correlated with the burst at the lags, per Energy. An echo
// shows at its delay.
func (s *Sounding) Response(window []complex64, start int) []complex64 {
	r := &s.reg
	first := start + s.guard + r.whole
	y := window[first : first+s.Fitted()]
	p := r.project(y)
	x := r.backSolve(p.w, unknowns)
	if r.rotation != nil {
		y = r.turned
	}
	folded := make([]complex128, s.period)
	for n, v := range y {
		left := complex128(v)
		for i, a := range r.at(n) {
			left -= x[i] * a
		}
		if s.cfg.Kind == MSequence {
			left *= cmplx.Rect(1, -math.Pi*float64(n)/float64(s.period))
		}
		folded[n%s.period] += left
	}
	return s.lagged(folded, float64(r.delay)-float64(r.whole))
}

// lagged correlates a sum of periods with the burst delayed by a fraction of a sample.
func (s *Sounding) lagged(folded []complex128, fraction float64) []complex64 {
	s.fft.Coefficients(folded, folded)
	products := make([]complex128, s.period)
	for _, l := range s.lines {
		products[l.bin] = cmplx.Conj(l.value) * cmplx.Rect(1, 2*math.Pi*l.cycles*fraction) * folded[l.bin]
	}
	s.fft.Sequence(products, products)
	out := make([]complex64, Lags)
	for k := range out {
		lag := k*lagStep + FirstLag
		turn := cmplx.Rect(1/s.Energy(), 2*math.Pi*s.shift()*float64(lag)/float64(s.period))
		out[k] = complex64(products[(lag+s.period)%s.period] * turn)
	}
	return out
}

// rounded returns x to four digits, which is as good in a mean and takes little to write down.
func rounded(x float32) float32 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'e', 3, 32), 32)
	if err != nil {
		return x // rounded up to beyond the largest number
	}
	return float32(v)
}

// responder tells what a Sounding would see of signals of its own lines.
type responder struct {
	*Sounding
	window []complex64
	u      []complex128
}

func newResponder(cfg Config) (*responder, error) {
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	s.reg.set(0, 0, 0)
	return &responder{s, make([]complex64, s.Burst()), make([]complex128, s.period)}, nil
}

// signal lays out a window with each line multiplied by what shape says of its frequency.
func (p *responder) signal(shape func(cycles float64) complex128) []complex64 {
	clear(p.u)
	for _, l := range p.lines {
		p.u[l.bin] = l.value * shape(l.cycles)
	}
	p.fft.Sequence(p.u, p.u)
	for n := range p.window {
		p.window[n] = complex64(p.extended(p.u, n-p.guard))
	}
	return p.window
}

// response returns the response to such a signal.
func (p *responder) response(shape func(cycles float64) complex128) []complex128 {
	out := make([]complex128, Lags)
	for k, v := range p.Response(p.signal(shape), 0) {
		out[k] = complex128(v)
	}
	return out
}

// echo is the response to an echo of gain 1.
func (p *responder) echo(delay float64) []complex128 {
	return p.response(func(f float64) complex128 { return cmplx.Rect(1, -2*math.Pi*f*delay) })
}

// bend is the response to a power of the frequency.
func (p *responder) bend(power int) []complex128 {
	return p.response(func(f float64) complex128 { return complex(math.Pow(4*f, float64(power)), 0) })
}

// Shared returns what Fit sees of a burst of gain 1 at the delay 0 that has those echoes:
// its gain, image, delay and noise are what they add to those of the first path.
func (s *Sounding) Shared(echoes []Echo) (Estimate, error) {
	p, err := newResponder(s.cfg)
	if err != nil {
		return Estimate{}, err
	}
	return p.fit(p.signal(func(f float64) complex128 {
		sum := complex(1, 0)
		for _, e := range echoes {
			sum += e.Gain * cmplx.Rect(1, -2*math.Pi*f*float64(e.Delay))
		}
		return sum
	}), 0), nil
}

// leastShare is what of the noise is left at least: echoes are not known better than that.
const leastShare = 1e-3

// Without returns an estimate of a burst of an amplitude, gains per that, without what echoes
// add to it, as Shared has told.
func (e Estimate) Without(shared Estimate, amplitude modem.Amplitude) Estimate {
	direct := e.Gain / shared.Gain
	share := 1.0
	if e.Noise > 0 {
		share = max(leastShare, 1-square(direct)*float64(amplitude*amplitude)*float64(shared.Noise/e.Noise))
	}
	e.Gain, e.Noise = direct, e.Noise*modem.Power(share)
	e.Image -= shared.Image
	e.DDelay -= shared.DDelay
	e.DOffset -= shared.DOffset
	e.GainVar *= share / square(shared.Gain)
	for _, v := range []*float64{&e.DDelayVar, &e.DOffsetVar, &e.DCVar, &e.LeakVar, &e.ImageVar} {
		*v *= share
	}
	return e
}

// Echoes returns the echoes that a mean of so many responses, each per gain of its burst,
// tells of, the strongest first; variance is E|error|^2 of a lag. The chips' shape is known,
// and filters bend the response about the first path: what is told from both by 5 standard
// errors counts.
func (s *Sounding) Echoes(mean []complex128, variance float64) ([]Echo, error) {
	cfg := s.cfg
	cfg.Repetitions = MinRepetitions // periods are alike
	p, err := newResponder(cfg)
	if err != nil {
		return nil, err
	}
	f := echoFit{responder: p, seen: mean, variance: variance}
	for k := range steepBends {
		f.steep = append(f.steep, p.bend(k+2))
	}
	f.bent = f.steep[:bends:bends]
	for d := float64(FirstLag); d <= lastEcho; d += 0.5 {
		if math.Abs(d) >= nearestEcho {
			f.grid = append(f.grid, d)
			f.columns = append(f.columns, p.echo(d))
		}
	}
	var found []Echo
	for len(f.delays) < MaxEchoes {
		echoes := f.more()
		if echoes == nil {
			break
		}
		found = echoes
	}
	if f.bentOnly(found) {
		found = nil
	}
	if found != nil {
		found = f.straighten(found)
		f.widen(found)
	}
	return s.direct(found)
}
