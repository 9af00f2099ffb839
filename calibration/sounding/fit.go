package sounding

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"ringwave/phy/modem"
)

// ErrLost says that a window has samples that were lost, or are no numbers.
var ErrLost = errors.New("samples of the window were lost")

// Estimate is what one burst tells. Amplitudes are those received for a burst of
// amplitude 1: see Sent.
type Estimate struct {
	// Gain is the received amplitude per sent amplitude, its phase that at the burst's
	// centre. It is linear in the samples and so unbiased whatever its size, 0
	// included, at the true delay and offset; errors of these it sees only at second
	// order. With IQ mismatch of the transmitter, it is that of the signal without its
	// image: (1 + g e^{j p})/2 times the channel's.
	Gain complex128
	// GainVar is E|error of Gain|^2 with delay, offset, image and DC unknown, estimated
	// as Noise is.
	GainVar float64
	// Delay is that of the burst's first sample behind the window's nominal start, and
	// Offset the carrier's, as the fit was given them.
	Delay  modem.Samples
	Offset modem.CyclesPerSample
	// DDelay and DOffset are what this burst alone says is to be added to them: one
	// step of Newton's, good for errors well below a sample and a cycle a burst. Where
	// the gain is 0 they are 0 and their variances infinite. Covariances over several
	// bursts are all in proportion, so that 1/DDelayVar weights both: see Pool.
	DDelay                modem.Samples
	DOffset               modem.CyclesPerSample
	DDelayVar, DOffsetVar float64
	Noise                 modem.Power // variance of a complex sample, unbiased
	NoiseDoF              int         // real degrees of freedom that Noise is made of
	DC                    complex128  // of the window, not in relation to the gain
	DCVar                 float64     // E|error of DC|^2
	// Leak is what stands at the carrier's offset and is no part of the burst, as at its
	// centre: what leaks of the transmitters that share the carrier. Where that is not told
	// from DC it is 0 and LeakVar infinite, and DC is the sum.
	Leak     complex128
	LeakVar  float64
	Image    complex128 // amplitude of the sent signal's conjugate, per Gain; of no use near Gain 0
	ImageVar float64    // E|error of Image|^2, where it is small against 1
	// Explained is the share of the fitted samples' power about their mean that is not
	// Noise, 0 to 1: near 0 there was no sounding at that delay.
	Explained float64
	// Response is what Response tells of the burst, per amplitude as Gain is; nil where that
	// was not asked.
	Response []complex64

	score score
}

// score is what one burst adds to the likelihood's slope, over Noise/2.
type score struct {
	delay, offset float64
	power         float64 // |gain|^2
}

func (a score) plus(b score) score {
	return score{a.delay + b.delay, a.offset + b.offset, a.power + b.power}
}

// Sent returns e for a burst of the given amplitude: gains per that amplitude, and the response
// to four digits.
func (e Estimate) Sent(amplitude modem.Amplitude) Estimate {
	e.Gain /= complex(float64(amplitude), 0)
	e.GainVar /= float64(amplitude * amplitude)
	e.Response = slices.Clone(e.Response)
	for k, x := range e.Response {
		e.Response[k] = complex(rounded(real(x)/float32(amplitude)), rounded(imag(x)/float32(amplitude)))
	}
	return e
}

// Fit takes a burst out of a window at a delay behind the nominal start, in samples of
// the window, and at an offset, by linear least squares. The sounding's periods must
// lie in the window at the delay. An error wraps ErrLost where a sample of the window,
// used or not, is no number.
//
// At a delay and offset of the last call nothing is allocated and only sums over the
// window are formed; at others the signal is made anew.
func (s *Sounding) Fit(window []complex64, start int, delay modem.Samples, offset modem.CyclesPerSample) (Estimate, error) {
	if err := s.placed(window, start, delay, offset); err != nil {
		return Estimate{}, err
	}
	if err := whole(window); err != nil {
		return Estimate{}, err
	}
	s.reg.set(int(math.Round(float64(delay))), delay, offset)
	return s.fit(window, start), nil
}

// placed tells what is wrong with where a burst is to be taken from.
func (s *Sounding) placed(window []complex64, start int, delay modem.Samples, offset modem.CyclesPerSample) error {
	if !(math.Abs(float64(delay)) <= math.MaxInt32) || !(math.Abs(float64(offset)) <= 0.5) {
		return fmt.Errorf("a burst at a delay of %v samples and an offset of %v cycles a sample: the offset must be from -0.5 to 0.5", delay, offset)
	}
	first := start + s.guard + int(math.Round(float64(delay)))
	if first < 0 || first+s.Fitted() > len(window) {
		return fmt.Errorf("a window of %d samples does not hold the %d from %d on that a burst at %d delayed by %v is estimated from", len(window), s.Fitted(), first, start, delay)
	}
	return nil
}

// whole checks that all samples are numbers.
func whole(window []complex64) error {
	const exponent = 0x7f800000 // all ones: no finite number
	lost := 0
	for _, x := range window {
		if math.Float32bits(real(x))&exponent == exponent || math.Float32bits(imag(x))&exponent == exponent {
			lost++
		}
	}
	if lost > 0 {
		return fmt.Errorf("%d of %d: %w", lost, len(window), ErrLost)
	}
	return nil
}

// fit is Fit at the regressors as they are.
func (s *Sounding) fit(window []complex64, start int) Estimate {
	r := &s.reg
	first := start + s.guard + r.whole
	p := r.project(window[first : first+s.Fitted()])
	explained := 0.0
	for _, w := range p.w {
		explained += square(w)
	}
	e := Estimate{Delay: r.delay, Offset: r.offset, NoiseDoF: 2 * (s.Fitted() - r.unknowns())}
	residual := max(0, p.power-explained)
	e.Noise = modem.Power(2 * residual / float64(e.NoiseDoF))
	if p.spread > 0 {
		e.Explained = min(1, max(0, 1-float64(e.Noise)*float64(s.Fitted()-1)/p.spread))
	}
	x := r.backSolve(p.w, unknowns)
	noise := float64(e.Noise)
	e.Gain, e.GainVar = x[atGain], noise*real(r.variances[atGain])
	e.DC, e.DCVar = x[atDC], noise*real(r.variances[atDC])
	if e.LeakVar = math.Inf(1); r.leaks {
		e.Leak, e.LeakVar = x[atLeak], noise*real(r.variances[atLeak])
	}
	e.Image = x[atImage] / x[atGain]
	e.ImageVar = noise * real(r.variances[atImage]) / square(x[atGain])
	s.increment(&e, p.w)
	return e
}

// increment sets what maximises the likelihood to first order. Its gain is the one at
// no increment, whose error is independent of the increments' scores.
func (s *Sounding) increment(e *Estimate, w vector) {
	r := &s.reg
	gain := r.backSolve(w, nuisances)[atGain]
	a, b, d := r.factor[atDelay][atDelay], r.factor[atDelay][atOffset], r.factor[atOffset][atOffset]
	e.score = score{
		delay:  real(cmplx.Conj(gain) * cmplx.Conj(a) * w[atDelay]),
		offset: real(cmplx.Conj(gain) * (cmplx.Conj(b)*w[atDelay] + cmplx.Conj(d)*w[atOffset])),
		power:  square(gain),
	}
	e.DDelayVar, e.DOffsetVar = math.Inf(1), math.Inf(1)
	if e.score.power == 0 {
		return
	}
	e.DDelay, e.DOffset = r.newton(e.score)
	half := float64(e.Noise) / (2 * e.score.power)
	e.DDelayVar, e.DOffsetVar = half*r.step[0][0], half*r.step[1][1]
}

func square(x complex128) float64 { return real(x)*real(x) + imag(x)*imag(x) }

// Pooled is the delay and offset that bursts agree on.
type Pooled struct {
	Delay               modem.Samples
	Offset              modem.CyclesPerSample
	DelayVar, OffsetVar float64
}

// Pool combines what bursts, each fitted somewhere, say of one common delay and offset,
// with the inverses of their variances, which grow with |gain|^2, as weights. Bursts
// without a gain count for nothing; without any that has one, variances are infinite.
func Pool(estimates []Estimate) Pooled {
	delay, offset := pool{}, pool{}
	for _, e := range estimates {
		delay.add(float64(e.Delay)+float64(e.DDelay), e.DDelayVar)
		offset.add(float64(e.Offset)+float64(e.DOffset), e.DOffsetVar)
	}
	var p Pooled
	var at float64
	at, p.DelayVar = delay.mean()
	p.Delay = modem.Samples(at)
	at, p.OffsetVar = offset.mean()
	p.Offset = modem.CyclesPerSample(at)
	return p
}

// pool is a mean weighted by the inverses of variances.
type pool struct {
	sum, weights float64
}

func (p *pool) add(value, variance float64) {
	const exact = 1e-290 // of a burst without any noise: less has no inverse
	weight := 1 / max(variance, exact)
	p.sum += weight * value
	p.weights += weight
}

func (p *pool) mean() (value, variance float64) {
	if p.weights == 0 {
		return 0, math.Inf(1)
	}
	return p.sum / p.weights, 1 / p.weights
}

// TransmitterIQ returns the mismatch of a transmitter's quadrature branch against its
// in-phase one, q' = g (q cos p + i sin p), from the image that it makes of what it
// sends, b/a with a = (1 + g e^{j p})/2 and b = 1 - a*: the convention of
// phy/channel.Impairments. |image| must be below 1. The gain is in dB, the phase in
// radians.
func TransmitterIQ(image complex128) (gainDB, phaseRad float64) {
	a := (1 - cmplx.Conj(image)) / complex(1-square(image), 0)
	return mismatch(2*a - 1)
}

func mismatch(turn complex128) (gainDB, phaseRad float64) {
	return 20 * math.Log10(cmplx.Abs(turn)), cmplx.Phase(turn)
}
