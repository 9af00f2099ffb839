package virtual

import "math"

const (
	// clockTaps is how many samples an instant between two of them is made of: a
	// polynomial through them, which up to a quarter of the rate is off by less than 0.3 %
	// and exact where there is a sample.
	clockTaps = 16
	// clockPhases is the number of instants between two samples.
	clockPhases = 1 << 12
	// clockSlack is more than what a block grows by as the fastest clock has it.
	clockSlack = block*MaxOffsetPPM/1_000_000 + 2
)

// resampler turns samples of one clock into those of another. It takes in samples and
// gives others, for as long as a stream lasts, and the delay of clockTaps/2 samples is what
// it costs.
type resampler struct {
	taps [clockPhases][clockTaps]float32
	// line has the samples that are still needed, and at is where in it the polynomial
	// of the next one given begins.
	line []complex64
	at   float64
}

// newResampler makes a resampler that begins at rest.
func newResampler() *resampler {
	r := &resampler{line: make([]complex64, clockTaps-1, clockTaps+block+clockSlack)}
	for p := range r.taps {
		// The value between the two in the middle, by Lagrange's polynomials.
		x := clockTaps/2 - 1 + float64(p)/clockPhases
		for i := range r.taps[p] {
			weight := 1.0
			for j := range clockTaps {
				if j != i {
					weight *= (x - float64(j)) / float64(i-j)
				}
			}
			r.taps[p][i] = float32(weight)
		}
	}
	return r
}

// rest forgets all samples.
func (r *resampler) rest() {
	r.line, r.at = r.line[:clockTaps-1], 0
	clear(r.line)
}

// need returns how many samples must be put before n can be taken, each step samples
// behind the one before.
func (r *resampler) need(n int, step float64) int {
	last := int(r.at + float64(n-1)*step)
	return max(0, last+clockTaps-len(r.line))
}

// put returns room for n samples, which are to be filled in.
func (r *resampler) put(n int) []complex64 {
	for range n {
		r.line = append(r.line, 0)
	}
	return r.line[len(r.line)-n:]
}

// take gives as many samples as there are and have room, each step samples behind the one
// before.
func (r *resampler) take(dst []complex64, step float64) (n int) {
	for n < len(dst) {
		whole := int(r.at)
		if whole+clockTaps > len(r.line) {
			break
		}
		dst[n] = r.between(whole, r.at-float64(whole))
		r.at += step
		n++
	}
	spent := min(int(r.at), len(r.line))
	r.line = r.line[:copy(r.line, r.line[spent:])]
	r.at -= float64(spent)
	return n
}

// between returns the value of the polynomial that begins at first.
func (r *resampler) between(first int, fraction float64) complex64 {
	phase := int(math.Round(fraction * clockPhases))
	if phase == clockPhases { // the next sample, which may not be there yet
		phase--
	}
	var re, im float32
	x := (*[clockTaps]complex64)(r.line[first:])
	for i, t := range r.taps[phase] {
		re += t * real(x[i])
		im += t * imag(x[i])
	}
	return complex(re, im)
}
