package modem

import (
	"math"
	"math/cmplx"
	"slices"

	"ringwave/crypto/vector"
	"ringwave/phy/kernel"
)

// receiver is the filter that goes with a pulse. It gives 1 for a symbol of 1 sent
// with the pulse itself.
type receiver interface {
	// locate finds the instant of the pulse in a composite response: sample n of
	// the response lies at n - centre from where the pulse is believed to be, and
	// so does the result.
	locate(response []complex128, centre int) Samples
	// mindsSidelobes tells that locate needs a response free of the constant
	// sidelobes of the preamble's correlation.
	mindsSidelobes() bool
	// margin is how far around the believed instant locate looks.
	margin() int
	// settle returns by how many samples to move the instant of the first of so many
	// symbols that devices send independently of each other, where what they show
	// is significantly better than what the preamble did.
	settle(samples []complex64, t Samples, symbols int) int
	// tune sets the instant of symbol 0.
	tune(t Samples)
	// footprint returns the samples [first, end) that symbol 0 is made of.
	footprint() (first, end int)
	// filter sets dst[k] to the symbol at the tuned instant plus k symbol periods.
	// All footprints lie in samples.
	filter(dst, samples []complex64)
	// noise returns the noise power a symbol for noise power 1 a sample.
	noise() float64
	// response returns the symbol at the tuned instant of a tone that has phase 0 there.
	response(f CyclesPerSample) complex128
	// reach is by how many symbols the filter's output for one symbol lasts to either
	// side, where it should be 0; and at is that output. reach is 0 for a filter that
	// leaves none.
	reach() int
	at(symbol int) float64
}

// integrator takes the mean over the window of a flat-top pulse.
type integrator struct {
	sps, window int
	first       int // of symbol 0's samples
	taken       int // how many of the window are
	// Between samples, where these are not the pulse's own, all lie a fraction behind: in
	// units of 1/fractions.
	between  bool
	fraction int
	fine     *interpolator

	blemish, energy []float64 // of the windows that locate chooses from
	flatness        flatness
	mean            []float32 // taps of the tuned window
	kernel          kernel.Kernel
}

func newIntegrator(sps, window int) *integrator {
	return &integrator{
		sps: sps, window: window, blemish: make([]float64, sps+1), energy: make([]float64, sps+1),
		flatness: newFlatness(sps, window), kernel: kernel.New(vector.Fastest()),
	}
}

func (r *integrator) tune(t Samples) {
	begin := float64(t) - float64(r.window-1)/2
	r.first, r.fraction, r.taken = int(math.Round(begin)), 0, r.window
	if r.between {
		at := int(math.Round(begin * fractions))
		r.first = int(math.Floor(float64(at) / fractions))
		r.fraction = at - r.first*fractions
	}
}

// take has the tuned window be a share of the samples around.
func (r *integrator) take(s share) { r.first, r.taken = r.first+s.first, s.taken }

func (r *integrator) footprint() (first, end int) {
	if r.fraction == 0 {
		return r.first, r.first + r.taken
	}
	first = r.first - (interpolated/2 - 1)
	return first, first + interpolated + r.taken - 1
}

// core returns the first of the samples that weigh the most in symbol 0.
func (r *integrator) core() int { return r.first + (2*r.fraction+fractions-1)/(2*fractions) }

func (r *integrator) noise() float64 { return 1 / float64(r.window) }

func (r *integrator) response(f CyclesPerSample) complex128 {
	if f == 0 {
		return 1
	}
	// The window's middle is the instant up to half a sample, which is no phase to
	// speak of at the frequencies that carriers are off by.
	half := math.Pi * float64(f)
	return complex(math.Sin(half*float64(r.window))/(float64(r.window)*math.Sin(half)), 0)
}

func (r *integrator) reach() int { return 0 }

func (r *integrator) at(symbol int) float64 {
	if symbol == 0 {
		return 1
	}
	return 0
}

func (r *integrator) mindsSidelobes() bool { return true }

func (r *integrator) margin() int { return 2*r.sps + r.sps/2 }

func (r *integrator) filter(dst, samples []complex64) {
	if r.fraction != 0 {
		if r.fine == nil {
			r.fine = newInterpolator(r.window)
		}
		first, _ := r.footprint()
		r.kernel.Correlate(dst, samples[first:], r.fine.mean(r.fraction, r.taken), r.sps)
		return
	}
	scale := 1 / float32(r.taken)
	first := r.first
	if r.taken == 3 { // as most have
		for k := range dst {
			w := (*[3]complex64)(samples[first:])
			re, im := real(w[0])+real(w[1])+real(w[2]), imag(w[0])+imag(w[1])+imag(w[2])
			dst[k] = complex(re*scale, im*scale)
			first += r.sps
		}
		return
	}
	r.mean = r.mean[:0]
	for range r.taken {
		r.mean = append(r.mean, scale)
	}
	r.kernel.Correlate(dst, samples[first:], r.mean, r.sps)
}

// locate returns the middle of the windows that are as good as any: where the
// response is flat, and vanishes one symbol before and after. That asks for what
// is wanted of the window, and of no device where it is. Gains of both signs can
// make the response stronger, and as flat, on edges: settle is for these.
func (r *integrator) locate(response []complex128, centre int) Samples {
	lowest := centre - r.sps/2 - r.window/2
	r.blemishes(response, lowest)
	best := 0
	for s, b := range r.blemish {
		if b < r.blemish[best] {
			best = s
		}
	}
	energy := slices.Max(r.energy)
	// Where windows are faultless their blemishes are sums of 3 W squared noises:
	// equal within a few deviations, a fraction sqrt(1/(3 W)) each.
	limit := r.blemish[best]*(1+4/math.Sqrt(float64(3*r.window))) + 1e-7*energy
	from, to := best, best
	for from > 0 && r.blemish[from-1] <= limit {
		from--
	}
	for to < len(r.blemish)-1 && r.blemish[to+1] <= limit {
		to++
	}
	first := lowest + (from+to)/2
	return Samples(first-centre) + Samples(r.window-1)/2
}

// blemishes sets, for each window of a symbol's range, its energy, and in blemish
// how far the response is from constant within the window and from zero a symbol
// before and after it. A little is added for energy that other windows have more
// of: between pulses everything is flat.
func (r *integrator) blemishes(response []complex128, lowest int) {
	const energyCounts = 0.05
	for s := range r.blemish {
		r.blemish[s], r.energy[s] = r.judge(response, lowest+s)
	}
	most := slices.Max(r.energy)
	for s, e := range r.energy {
		r.blemish[s] += energyCounts * (most - e)
	}
}

func (r *integrator) judge(response []complex128, first int) (blemish, energy float64) {
	var mean complex128
	window := response[first : first+r.window]
	for _, x := range window {
		mean += x
	}
	mean /= complex(float64(r.window), 0)
	for n, x := range window {
		blemish += power(x-mean) + power(response[first+n-r.sps]) + power(response[first+n+r.sps])
	}
	return blemish, float64(r.window) * power(mean)
}

func power(x complex128) float64 { return real(x)*real(x) + imag(x)*imag(x) }

// settle looks for the flattest windows. A window of one sample is always flat.
func (r *integrator) settle(samples []complex64, t Samples, symbols int) int {
	if r.window < 2 {
		return 0
	}
	r.tune(t)
	r.flatness.measure(samples, r.first, symbols)
	return r.flatness.better()
}

// matched is the matched filter of a pulse, evaluated at the tuned instant: there
// is no interpolation between samples.
type matched struct {
	pulse RootRaisedCosine
	sps   int
	first int
	taps  []float32
	buf   []float32 // of taps, for the longest filter
	row   []float64 // of the pulse, for output

	kernel kernel.Kernel
}

func newMatched(p RootRaisedCosine, sps int) *matched {
	return &matched{pulse: p, sps: sps, buf: make([]float32, int(2*p.half(sps))+2), kernel: kernel.New(vector.Fastest())}
}

func (r *matched) tune(t Samples) {
	half := r.pulse.half(r.sps)
	r.first = int(math.Ceil(float64(t - half)))
	end := int(math.Floor(float64(t+half))) + 1
	r.taps = r.buf[:end-r.first]
	energy := 0.0
	r.row = slices.Grow(r.row[:0], len(r.taps))[:len(r.taps)]
	r.pulse.row(r.row, Samples(r.first)-t, r.sps)
	for _, p := range r.row {
		energy += p * p
	}
	for n, p := range r.row {
		r.taps[n] = float32(p / energy)
	}
}

func (r *matched) footprint() (first, end int) { return r.first, r.first + len(r.taps) }

func (r *matched) noise() float64 {
	sum := 0.0
	for _, t := range r.taps {
		sum += float64(t) * float64(t)
	}
	return sum
}

func (r *matched) response(f CyclesPerSample) complex128 {
	var sum complex128
	middle := float64(len(r.taps)-1) / 2
	for n, t := range r.taps {
		sum += cmplx.Rect(float64(t), 2*math.Pi*float64(f)*(float64(n)-middle))
	}
	return sum
}

func (r *matched) reach() int { return int(r.pulse.half(r.sps)) / r.sps * 2 }

func (r *matched) at(symbol int) float64 {
	r.tune(0)
	sum := 0.0
	for n, t := range r.taps {
		sum += float64(t) * r.pulse.at(Samples(r.first+n-symbol*r.sps), r.sps)
	}
	return sum
}

// Around the right instant the pulse's repetitions every symbol add up to a
// constant, so the sidelobes shift no maximum.
func (r *matched) mindsSidelobes() bool { return false }

// The preamble's maximum is all there is to know of the timing: a window that is
// flat there is none.
func (r *matched) settle([]complex64, Samples, int) int { return 0 }

func (r *matched) margin() int { return int(math.Ceil(float64(r.pulse.half(r.sps)))) + r.sps }

func (r *matched) filter(dst, samples []complex64) {
	r.kernel.Correlate(dst, samples[r.first:], r.taps, r.sps)
}

// locate maximises the matched filter's output power: on a grid of sixteenths of a
// symbol, 3/4 symbol to either side of the believed instant, then by golden section.
func (r *matched) locate(response []complex128, centre int) Samples {
	best, highest := 0.0, -1.0
	step := float64(r.sps) / 16
	for s := -12; s <= 12; s++ {
		if e := r.output(response, centre, float64(s)*step); e > highest {
			best, highest = float64(s)*step, e
		}
	}
	low, high := best-step, best+step
	const section = 0.6180339887498949
	a, b := high-section*(high-low), low+section*(high-low)
	ea, eb := r.output(response, centre, a), r.output(response, centre, b)
	// The maximum is flat: nearer than the square root of the arithmetic's
	// precision there is nothing to find.
	for high-low > 1e-5 {
		if ea > eb {
			high, b, eb = b, a, ea
			a = high - section*(high-low)
			ea = r.output(response, centre, a)
		} else {
			low, a, ea = a, b, eb
			b = low + section*(high-low)
			eb = r.output(response, centre, b)
		}
	}
	return Samples((low + high) / 2)
}

// output returns the power of the matched filter's output at t from the believed
// instant.
func (r *matched) output(response []complex128, centre int, t float64) float64 {
	half := float64(r.pulse.half(r.sps))
	first, last := max(int(math.Ceil(t-half)), -centre), min(int(math.Floor(t+half)), len(response)-1-centre)
	var re, im, energy float64
	if first > last {
		return 0
	}
	r.row = slices.Grow(r.row[:0], last-first+1)[:last-first+1]
	r.pulse.row(r.row, Samples(float64(first)-t), r.sps)
	for n, x := range response[centre+first : centre+last+1] {
		p := r.row[n]
		re += real(x) * p
		im += imag(x) * p
		energy += p * p
	}
	sum := complex(re, im)
	return power(sum) / max(energy, math.SmallestNonzeroFloat64)
}
