package air

import (
	"math"

	"github.com/mjibson/go-dsp/window"
	"gonum.org/v1/gonum/dsp/fourier"
)

// The levels of a waterfall's bytes.
const lowDB, highDB = -150.0, 10.0

// transform makes spectra. It is for one goroutine.
type transform struct {
	fft    *fourier.CmplxFFT
	taper  []float64
	in     []complex128
	out    []complex128
	gain   float64 // of a tone's power
	silent float64
}

func newTransform() *transform {
	t := &transform{fft: fourier.NewCmplxFFT(Bins), taper: window.Hann(Bins), in: make([]complex128, Bins), out: make([]complex128, Bins)}
	sum := 0.0
	for _, w := range t.taper {
		sum += w
	}
	t.gain = sum * sum
	t.silent = math.Pow(10, lowDB/10)
	return t
}

// powers writes the power in each bin, from -1/2 of the sample rate on, of Bins samples: a
// tone of amplitude 1 in the middle of a bin has power 1 there. Samples that are no numbers
// count as 0.
func (t *transform) powers(dst []float64, samples []complex64) {
	for k, x := range samples[:Bins] {
		z := complex128(x)
		if !(real(z)*real(z)+imag(z)*imag(z) < 1e12) {
			z = 0
		}
		t.in[k] = z * complex(t.taper[k], 0)
	}
	t.fft.Coefficients(t.out, t.in)
	for k, z := range t.out {
		dst[(k+Bins/2)%Bins] = max(t.silent, (real(z)*real(z)+imag(z)*imag(z))/t.gain)
	}
}

// reduce returns levels in dB of so many columns: of the strongest bin that each covers.
func reduce(powers []float64, columns int) []float32 {
	out := make([]float32, columns)
	for c := range out {
		most := 0.0
		from, to := c*len(powers)/columns, (c+1)*len(powers)/columns
		for _, p := range powers[from:max(to, from+1)] {
			most = max(most, p)
		}
		out[c] = float32(10 * math.Log10(max(most, 1e-20)))
	}
	return out
}
