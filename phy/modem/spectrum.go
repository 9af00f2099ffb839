package modem

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// Spectrum returns the shares of the power of independent symbols that lie in each of n
// bins of the sample rate, n being a power of two: bin k is at k/n cycles a sample, those
// from n/2 on at k/n - 1. It is nil for a configuration that is none.
func (c Config) Spectrum(n int) []float64 {
	if c.validate() != nil || n < 1 {
		return nil
	}
	// The spectrum of a pulse longer than n samples is that of the pulse laid around n.
	sum := make([]complex128, n)
	half := int(math.Ceil(float64(c.Pulse.half(c.SamplesPerSymbol))))
	for t := -half; t <= half; t++ {
		sum[((t%n)+n)%n] += complex(c.Pulse.at(Samples(t), c.SamplesPerSymbol), 0)
	}
	shares := make([]float64, n)
	total := 0.0
	for k, x := range fourier.NewCmplxFFT(n).Coefficients(nil, sum) {
		shares[k] = cmplx.Abs(x) * cmplx.Abs(x)
		total += shares[k]
	}
	for k := range shares {
		shares[k] /= total
	}
	return shares
}

// OccupiedBand returns the edges of the band that holds a share of the power of a spectrum
// of bins as Spectrum has them, in cycles a sample: as much lies below it as above.
func OccupiedBand(power []float64, share float64) (low, high CyclesPerSample) {
	n := len(power)
	if n == 0 {
		return 0, 0
	}
	ordered := slices.Concat(power[(n+1)/2:], power[:(n+1)/2]) // from the lowest frequency on
	total := 0.0
	for _, p := range ordered {
		total += p
	}
	outside := (1 - share) / 2 * total
	first, last := 0, n-1
	for sum := ordered[0]; sum <= outside && first < n-1; sum += ordered[first] {
		first++
	}
	for sum := ordered[last]; sum <= outside && last > first; sum += ordered[last] {
		last--
	}
	at := func(edge float64) CyclesPerSample { return CyclesPerSample((edge - float64(n/2)) / float64(n)) }
	return at(float64(first) - 0.5), at(float64(last) + 0.5)
}
