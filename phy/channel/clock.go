package channel

import (
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
)

// The limits of sample clocks: relative, and in samples.
const (
	MaxSampleClock = 1e-3
	MaxJitter      = 1.0
)

// clockPhases is the number of fractions of a sample for which a resampler has a filter;
// between two it goes linearly, with an error of less than -80 dB.
const clockPhases = 128

// resampler gives samples at the instants of another clock.
type resampler struct {
	rate, jitter float64
	room         int
	table        [clockPhases + 1][delayTaps]float32
	n            int64       // samples since the transmission began
	history      []complex64 // as many of the last samples as it may look back
	work         []complex64
	stream       *keystream.Stream
	normal       *rand.Rand
}

// newResampler makes the resampler of a clock that takes 1 + rate samples of its input for
// one of its output, up to room samples too many or too few.
func newResampler(rate, jitter float64, room int, seed keystream.Seed) *resampler {
	r := &resampler{rate: rate, jitter: jitter, room: room}
	for k := range r.table {
		r.table[k] = fractionalDelay(1 - float64(k)/clockPhases)
	}
	r.history = make([]complex64, r.latency()+r.room+delayLatency)
	r.stream = seed.Derive("clock").Stream()
	r.normal = rand.New(r.stream)
	return r
}

// latency returns the delay of samples at the beginning of a transmission.
func (r *resampler) latency() int {
	if r == nil {
		return 0
	}
	return r.room + delayLatency + 1
}

// start begins a transmission: both clocks are at the same place.
func (r *resampler) start(m Moment) {
	if r == nil {
		return
	}
	r.n = 0
	r.stream.Start(m.Round, m.Part)
}

// rest forgets what came before.
func (r *resampler) rest() {
	if r != nil {
		clear(r.history)
	}
}

// apply resamples x in place.
func (r *resampler) apply(x []complex64) {
	if r == nil {
		return
	}
	keep := len(r.history)
	if cap(r.work) < keep+len(x) {
		r.work = make([]complex64, keep+len(x))
	}
	w := r.work[:keep+len(x)]
	copy(w, r.history)
	copy(w[keep:], x)
	copy(r.history, w[len(x):])
	for n := range x {
		ahead := r.rate * float64(r.n)
		r.n++
		if r.jitter > 0 {
			ahead += r.jitter * r.normal.NormFloat64()
		}
		ahead = max(-float64(r.room), min(ahead, float64(r.room)))
		whole := math.Floor(ahead)
		x[n] = r.at(w[keep+n-r.latency()+int(whole)-delayLatency:], ahead-whole)
	}
}

// at returns the value a fraction of a sample behind w[delayLatency].
func (r *resampler) at(w []complex64, fraction float64) complex64 {
	if fraction == 0 {
		return w[delayLatency]
	}
	place := fraction * clockPhases
	k := int(place)
	part := float32(place - float64(k))
	x := (*[delayTaps]complex64)(w)
	a, b := &r.table[k], &r.table[k+1]
	var re, im float32
	for i := range x {
		t := a[i] + part*(b[i]-a[i])
		re += t * real(x[delayTaps-1-i])
		im += t * imag(x[delayTaps-1-i])
	}
	return complex(re, im)
}
