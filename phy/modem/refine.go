package modem

import (
	"math"
	"math/cmplx"
)

// segments is the number of parts of a preamble whose phases give the frequency that is
// left when a hypothesis was taken off: more of them are noisier.
const segments = 8

// refiner measures a preamble whose place is known to half a symbol.
type refiner struct {
	sps      int
	level    float64
	sequence []float32
	despread []float32 // the weights that give the composite response
	offset   bool      // whether there may be a frequency offset
	recv     receiver

	work     []complex64  // the preamble's samples, turned back
	response []complex128 // the composite response of all devices
	z        []complex64  // the preamble's soft symbols
	lost     []bool
}

func newRefiner(cfg Config, sequence []float32, offset bool) refiner {
	r := refiner{
		sps:      cfg.SamplesPerSymbol,
		level:    float64(cfg.Preamble.level()),
		sequence: sequence,
		despread: make([]float32, len(sequence)),
		offset:   offset,
		recv:     cfg.Pulse.receiver(cfg.SamplesPerSymbol),
		z:        make([]complex64, len(sequence)),
		lost:     make([]bool, len(sequence)),
	}
	// The sequence's periodic correlation is L at lag 0 and -1 elsewhere, and its
	// sum is -1: with 1 taken from every weight the sidelobes are 0, for twice the
	// noise power.
	bias := float32(0)
	if r.recv.mindsSidelobes() {
		bias = -1
	}
	for k, p := range sequence {
		r.despread[k] = p + bias
	}
	r.response = make([]complex128, 2*r.recv.margin()+1)
	r.work = make([]complex64, len(r.response)+(len(sequence)-1)*r.sps)
	return r
}

// refine measures the preamble whose sequence begins near the instant. Start in
// what it gives is the sequence's first symbol.
//
// Where there may be an offset, a first frequency comes from the instant given,
// and instant and frequency are found twice, the second time with what the first
// left of the frequency gone.
func (r *refiner) refine(samples []complex64, instant Samples, f CyclesPerSample) (Sync, bool) {
	centre := r.recv.margin()
	origin := int(math.Round(float64(instant))) - centre // of work, in the capture
	at := instant - Samples(origin)
	r.turnBack(samples, origin, f)
	if r.offset {
		f += r.slope(at)
		r.turnBack(samples, origin, f)
		r.respond()
		at = Samples(centre) + r.recv.locate(r.response, centre)
		f += r.slope(at)
		r.turnBack(samples, origin, f)
	}
	r.respond()
	at = Samples(centre) + r.recv.locate(r.response, centre)
	if r.offset {
		f += r.slope(at)
	}
	return r.take(samples, origin, at, f)
}

// take measures the preamble whose sequence begins at the instant given in work,
// at the frequency f.
func (r *refiner) take(samples []complex64, origin int, at Samples, f CyclesPerSample) (Sync, bool) {
	r.turnBack(samples, origin, f)
	r.recv.tune(at)
	r.recv.filter(r.z, r.work)
	r.flagLost(samples, origin)
	return r.measure(origin, at, f)
}

// again measures the preamble whose sequence begins at the instant, which is known.
func (r *refiner) again(samples []complex64, instant Samples, f CyclesPerSample) (Sync, bool) {
	origin := int(math.Round(float64(instant))) - r.recv.margin()
	return r.take(samples, origin, instant-Samples(origin), f)
}

// turnBack copies the preamble's samples and turns them back by the frequency,
// about the preamble's middle. What is no sample becomes 0.
func (r *refiner) turnBack(samples []complex64, origin int, f CyclesPerSample) {
	clear(r.work)
	low, high := max(0, origin), min(len(samples), origin+len(r.work))
	step := -2 * math.Pi * float64(f)
	phase := step * (float64(low-origin) - r.middle())
	w, turn := cmplx.Rect(1, phase), cmplx.Rect(1, step)
	for n := low; n < high; n++ {
		if x := samples[n]; valid(x) {
			r.work[n-origin] = complex64(complex128(x) * w)
		}
		w *= turn
	}
}

// middle is the fixed point of turnBack in work.
func (r *refiner) middle() float64 { return float64(len(r.work)-1) / 2 }

// respond correlates with the sequence at every sample: up to noise the result is
// sum_i h_i e^{j phi_i} p(t - tau_i), the pulse as all devices together send it.
func (r *refiner) respond() {
	clear(r.response)
	for k, w := range r.despread {
		for n, x := range r.work[k*r.sps : k*r.sps+len(r.response)] {
			r.response[n] += complex128(complex(real(x)*w, imag(x)*w))
		}
	}
}

// slope returns the frequency that the preamble's symbols, the first of them at the
// instant given in work, still turn at: roughly from one segment to the next, which has no ambiguity, then from a line through
// the segments' phases.
func (r *refiner) slope(at Samples) CyclesPerSample {
	r.recv.tune(at)
	r.recv.filter(r.z, r.work)
	length := len(r.z) / segments
	var part [segments]complex128
	for s := range part {
		for k := s * length; k < (s+1)*length; k++ {
			part[s] += complex128(r.z[k]) * complex(float64(r.sequence[k]), 0)
		}
	}
	var next complex128
	for s := 1; s < segments; s++ {
		next += part[s] * cmplx.Conj(part[s-1])
	}
	rough := cmplx.Phase(next)
	var sum complex128
	for s := range part {
		part[s] *= cmplx.Rect(1, -rough*float64(s))
		sum += part[s]
	}
	var num, den float64
	for s, x := range part {
		u := float64(s) - float64(segments-1)/2
		weight := cmplx.Abs(x)
		num += weight * u * cmplx.Phase(x*cmplx.Conj(sum))
		den += weight * u * u
	}
	if den == 0 {
		return 0
	}
	return CyclesPerSample((rough + num/den) / (2 * math.Pi * float64(length*r.sps)))
}

// flagLost marks the symbols that depend on what is no sample or not in the
// capture.
func (r *refiner) flagLost(samples []complex64, origin int) {
	clear(r.lost)
	first, end := r.recv.footprint()
	c := comb{first + origin, end + origin, r.sps}
	c.flag(r.lost, samples, 0)
	from, to := c.inside(len(samples), len(r.lost))
	for k := range r.lost {
		if k < from || k >= to {
			r.lost[k] = true
		}
	}
}

// measure returns phase, amplitude and noise of the symbols that are not lost. It
// fails if less than half of them remain.
func (r *refiner) measure(origin int, at Samples, f CyclesPerSample) (Sync, bool) {
	var sum complex128
	energy, used := 0.0, 0
	for k, x := range r.z {
		if !r.lost[k] {
			sum += complex128(x) * complex(float64(r.sequence[k]), 0)
			energy += power(complex128(x))
			used++
		}
	}
	if 2*used < len(r.z) || energy == 0 {
		return Sync{}, false
	}
	n := float64(used)
	reference := at + Samples(len(r.z)-1)/2*Samples(r.sps)
	turn := 2 * math.Pi * float64(f) * (float64(reference) - r.middle())
	return Sync{
		Start:     at + Samples(origin),
		Reference: reference + Samples(origin),
		Theta:     wrap(cmplx.Phase(sum) + turn),
		Offset:    f,
		Amplitude: Amplitude(cmplx.Abs(sum) / n / r.level),
		Noise:     Power(max(0, (energy-power(sum)/n)/(n-1))),
		Quality:   power(sum) / (n * energy),
		Lost:      Symbols(len(r.z) - used),
	}, true
}
