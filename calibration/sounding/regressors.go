package sounding

import (
	"math"
	"math/cmplx"

	"ringwave/phy/modem"
)

// The unknowns of a fit, in the order of their elimination: what comes first is also
// known without what follows.
const (
	atGain = iota
	atImage
	atDC
	atLeak   // what leaks of the transmitter's carrier: known where it is not DC
	atDelay  // gain times an increment of the delay
	atOffset // gain times an increment of the offset
	unknowns

	nuisances = atDelay // the unknowns that enter linearly
)

type vector [unknowns]complex128

// leastTurns is by how many cycles the carrier must turn over the fitted samples for what
// leaks at it to be told from DC. Of less the two are nearly one.
const leastTurns = 1.5

// regressors are the signals that a window is a sum of, at one delay and offset: the
// burst, its image, 1, the carrier and the burst's derivatives with respect to delay and
// offset. All are held without the carrier offset, which rotation takes out of the samples.
type regressors struct {
	s      *Sounding
	valid  bool
	delay  modem.Samples
	offset modem.CyclesPerSample

	whole     int         // the delay's nearest integer
	signal    []complex64 // u
	slope     []complex64 // du/dt
	rotation  []complex64 // e^{-j 2 pi offset t}, t from the burst's centre; nil at offset 0
	rotations []complex64 // what rotation is made in
	leaks     bool        // the carrier is told from DC
	turned    []complex64 // the samples of the window at hand without the offset
	centre    float64     // of the burst, from the first fitted sample
	u         []complex128
	factor    [unknowns]vector // upper R with R^H R = X^H X
	variances vector           // diagonal of the inverse of X^H X
	step      [2][2]float64    // inverse of the real part of the two increments' own matrix
}

func newRegressors(s *Sounding) regressors {
	n := s.Fitted()
	return regressors{
		s: s, signal: make([]complex64, n), slope: make([]complex64, n), rotations: make([]complex64, n),
		turned: make([]complex64, n), u: make([]complex128, s.period),
	}
}

// set makes the regressors at a delay and offset, or keeps them where they are. The
// samples fitted begin whole samples later than without a delay: near the delay.
func (r *regressors) set(whole int, delay modem.Samples, offset modem.CyclesPerSample) {
	if r.valid && r.whole == whole && r.delay == delay && r.offset == offset {
		return
	}
	r.whole, r.delay, r.offset, r.valid = whole, delay, offset, true
	fraction := float64(delay) - float64(r.whole)
	r.centre = float64(len(r.signal)-1)/2 + fraction
	r.fill(r.signal, fraction, false)
	r.fill(r.slope, fraction, true)
	r.rotate(float64(offset))
	r.factorise()
}

func (r *regressors) fill(dst []complex64, fraction float64, derivative bool) {
	r.s.synthesise(r.u, fraction, derivative)
	// The shift in frequency belongs to the delayed signal: its own turn by the
	// fraction is in the lines.
	for n := range dst {
		dst[n] = complex64(r.s.extended(r.u, n))
	}
}

func (r *regressors) rotate(offset float64) {
	r.rotation = nil
	r.leaks = math.Abs(offset)*float64(len(r.signal)) >= leastTurns
	if offset == 0 {
		return
	}
	r.rotation = r.rotations
	for n := range r.rotation {
		r.rotation[n] = complex64(cmplx.Rect(1, -2*math.Pi*offset*(float64(n)-r.centre)))
	}
}

// at returns the regressors of one fitted sample, each turned back by the offset.
func (r *regressors) at(n int) vector {
	u := complex128(r.signal[n])
	x := vector{atGain: u, atImage: cmplx.Conj(u), atDC: 1, atDelay: -complex128(r.slope[n])}
	x[atOffset] = complex(0, 2*math.Pi*(float64(n)-r.centre)) * u
	if r.rotation != nil {
		x[atDC] = complex128(r.rotation[n])
	}
	if r.leaks {
		x[atLeak] = 1
	}
	return x
}

// factorise makes what is solved with. The sums are those of the very numbers that
// samples are multiplied by.
func (r *regressors) factorise() {
	var gram [unknowns]vector
	for n := range r.signal {
		x := r.at(n)
		for i := range x {
			for j := i; j < unknowns; j++ {
				gram[i][j] += cmplx.Conj(x[i]) * x[j]
			}
		}
	}
	if !r.leaks {
		gram[atLeak][atLeak] = 1 // an unknown of its own, which nothing is told of
	}
	r.factor = cholesky(gram)
	for i := range r.variances {
		r.variances[i] = r.backSolve(r.forward(unit(i)), unknowns)[i]
	}
	r.step = r.increments()
}

// unknowns returns the number of those that are told.
func (r *regressors) unknowns() int {
	if r.leaks {
		return unknowns
	}
	return unknowns - 1
}

func unit(i int) vector {
	var e vector
	e[i] = 1
	return e
}

// cholesky returns the upper triangle R with R^H R = g, of which the upper triangle is
// read. The regressors of a valid configuration are independent.
func cholesky(g [unknowns]vector) (f [unknowns]vector) {
	for i := range f {
		for j := i; j < unknowns; j++ {
			sum := g[i][j]
			for k := range i {
				sum -= cmplx.Conj(f[k][i]) * f[k][j]
			}
			if i == j {
				f[i][i] = complex(math.Sqrt(real(sum)), 0)
				continue
			}
			f[i][j] = sum / f[i][i]
		}
	}
	return f
}

// forward solves R^H w = v: w are coordinates with respect to orthonormal regressors.
func (r *regressors) forward(v vector) vector {
	for i := range v {
		for k := range i {
			v[i] -= cmplx.Conj(r.factor[k][i]) * v[k]
		}
		v[i] /= r.factor[i][i]
	}
	return v
}

// backSolve solves R x = w for the first n unknowns, the others being 0.
func (r *regressors) backSolve(w vector, n int) vector {
	for i := n; i < unknowns; i++ {
		w[i] = 0
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			w[i] -= r.factor[i][k] * w[k]
		}
		w[i] /= r.factor[i][i]
	}
	return w
}

// increments returns the inverse of the real part of the matrix of the two derivatives'
// products, the unknowns before them projected out: increments are real.
func (r *regressors) increments() [2][2]float64 {
	a, b, d := r.factor[atDelay][atDelay], r.factor[atDelay][atOffset], r.factor[atOffset][atOffset]
	m00, m01, m11 := real(a)*real(a), real(cmplx.Conj(a)*b), real(b)*real(b)+imag(b)*imag(b)+real(d)*real(d)
	det := m00*m11 - m01*m01
	return [2][2]float64{{m11 / det, -m01 / det}, {-m01 / det, m00 / det}}
}

// newton returns the increments of delay and offset at which the likelihood is largest.
func (r *regressors) newton(v score) (modem.Samples, modem.CyclesPerSample) {
	delay := (r.step[0][0]*v.delay + r.step[0][1]*v.offset) / v.power
	offset := (r.step[1][0]*v.delay + r.step[1][1]*v.offset) / v.power
	return modem.Samples(delay), modem.CyclesPerSample(offset)
}

// newtonDelay is newton where the offset is known. It gives the matrix's inverse, too.
func (r *regressors) newtonDelay(v score) (delay modem.Samples, step float64) {
	step = 1 / square(r.factor[atDelay][atDelay])
	return modem.Samples(step * v.delay / v.power), step
}

// projected is what a fit sees of a window.
type projected struct {
	w      vector  // coordinates with respect to orthonormal regressors
	power  float64 // sum of |y|^2
	spread float64 // the same about the mean
}

// project takes the fitted samples of a window.
func (r *regressors) project(y []complex64) projected {
	z, mean := y, complex128(0)
	if r.rotation != nil {
		z, mean = r.turned, r.turn(y)
	}
	p, sum, power := r.correlate(z)
	if r.rotation == nil {
		mean = sum
	}
	p[atDC] = mean
	if r.leaks {
		p[atLeak] = sum
	}
	n := float64(len(y))
	return projected{
		w: r.forward(p), power: power,
		spread: power - (real(mean)*real(mean)+imag(mean)*imag(mean))/n,
	}
}

// turn takes the carrier offset out of the samples and gives their sum with it.
func (r *regressors) turn(y []complex64) (sum complex128) {
	turned, rotation := r.turned[:len(y)], r.rotation[:len(y)]
	for n, v := range y {
		sum += complex128(v)
		turned[n] = v * rotation[n]
	}
	return sum
}

// correlate returns the products of the conjugate regressors with the samples z = p + jq,
// but those of DC and the carrier, and the sum and power of the samples. The four products with the
// signal u = a + jb serve the image and the offset as well.
func (r *regressors) correlate(z []complex64) (v vector, sum complex128, power float64) {
	signal, slope := r.signal[:len(z)], r.slope[:len(z)]
	var ap, aq, bp, bq, timedRe, timedIm, slopeRe, slopeIm, sumRe, sumIm float64
	time := -r.centre
	for n, y := range z {
		p, q := float64(real(y)), float64(imag(y))
		a, b := float64(real(signal[n])), float64(imag(signal[n]))
		c, d := float64(real(slope[n])), float64(imag(slope[n]))
		power += p*p + q*q
		sumRe += p
		sumIm += q
		slopeRe += c*p + d*q
		slopeIm += c*q - d*p
		re, im := a*p, a*q
		ap += re
		aq += im
		p, q = b*p, b*q
		bp += p
		bq += q
		timedRe += time * (re + q)
		timedIm += time * (im - p)
		time++
	}
	v[atGain] = complex(ap+bq, aq-bp)
	v[atImage] = complex(ap-bq, aq+bp)
	v[atDelay] = -complex(slopeRe, slopeIm)
	v[atOffset] = complex(0, -2*math.Pi) * complex(timedRe, timedIm)
	return v, complex(sumRe, sumIm), power
}
