package modem

import (
	"math"
	"slices"
	"testing"

	"github.com/mjibson/go-dsp/fft"
	"github.com/mjibson/go-dsp/spectral"
)

// raisedCosine is the power spectrum of a root-raised-cosine pulse, 1 at 0, at f cycles a
// symbol.
func raisedCosine(f, rollOff float64) float64 {
	over := (math.Abs(f) - (1-rollOff)/2) / rollOff
	switch {
	case over <= 0:
		return 1
	case over >= 1:
		return 0
	}
	return (1 + math.Cos(math.Pi*over)) / 2
}

// trapezium is the spectrum of a flat-top pulse of the given width at half height, whose
// raised-cosine edges are so long, at f cycles a sample.
func trapezium(f, width, edge float64) float64 {
	if f == 0 {
		return width
	}
	return math.Sin(math.Pi*f*width) / (math.Pi * f) * math.Cos(math.Pi*f*edge) / (1 - 4*edge*edge*f*f)
}

// Random digits have the spectrum of their pulse, by Welch's estimate of another library
// and the pulses' Fourier transforms in closed form.
func TestSpectrumOfPulses(t *testing.T) {
	const sps, size, symbols = 8, 256, 1 << 15
	for _, c := range []struct {
		name  string
		pulse Pulse
		power func(f float64) float64 // |P(f)|^2, in samples squared
		below float64                 // cycles a sample
		quiet float64                 // from where on nothing is sent, 0 for nowhere
	}{
		{"root raised cosine", RootRaisedCosine{RollOff: 0.25, Span: 24}, func(f float64) float64 { return sps * sps * raisedCosine(f*sps, 0.25) }, 0.8 / 2 / sps, 1.5 / 2 / sps},
		{"root raised cosine, wide", RootRaisedCosine{RollOff: 1, Span: 16}, func(f float64) float64 { return sps * sps * raisedCosine(f*sps, 1) }, 1.2 / 2 / sps, 2.3 / 2 / sps},
		{"flat top", FlatTop{Edge: 2}, func(f float64) float64 { p := trapezium(f, sps-2, 2); return p * p }, 0.12, 0},
		{"flat top, overlapping", FlatTop{Edge: 2, Overlap: true}, func(f float64) float64 { p := trapezium(f, sps, 2); return p * p }, 0.09, 0},
	} {
		cfg := Config{SamplesPerSymbol: sps, Pulse: c.pulse, Preamble: Preamble{Length: 127}}
		m := mustModulator(t, cfg, Drive{Peak: 1})
		x := make([]complex64, symbols*sps)
		m.ModulateDigits(x, randomDigits(newRand(3), symbols, 3))
		re := make([]float64, len(x))
		for k, v := range x {
			re[k] = float64(real(v)) / float64(m.Scale())
		}
		density, hertz := spectral.Pwelch(re, 1, &spectral.PwelchOptions{NFFT: size, Noverlap: size / 2})
		const digitPower = 2. / 3
		top := 2 * digitPower / sps * c.power(0)
		for k, f := range hertz {
			if k == 0 { // stands for one sideband alone
				continue
			}
			want := 2 * digitPower / sps * c.power(f)
			if off := 10 * math.Log10(density[k]/want); f < c.below && math.Abs(off) > 0.6 {
				t.Errorf("%s at %.4f cycles a sample: %.2f dB off", c.name, f, off)
			}
			if level := 10 * math.Log10(density[k]/top); c.quiet > 0 && f > c.quiet && level > -40 {
				t.Errorf("%s at %.4f cycles a sample: %.1f dB out of the band", c.name, f, level)
			}
		}
	}
}

// Scores are those of a correlation by another library's transform.
func TestScoresByConvolution(t *testing.T) {
	for name, cfg := range pulses {
		s := newScene(cfg, 5, 300, 3, device{gain: 1}, device{gain: -0.4, phase: 1, delay: 0.4})
		s.noise = 0.5
		samples, _ := s.capture(t)
		d := mustDetector(t, cfg, Search{})
		threshold := d.threshold
		d.threshold = 0 // below it, scores are left out
		total := len(samples) / cfg.SamplesPerSymbol
		got := make([]score, min(len(d.score), total-len(d.sequence)+1))
		d.correlate(got, samples, 0, total)
		want := make([]float64, len(got))
		for half := range 2 {
			y := d.y[:len(got)+len(d.sequence)-1]
			d.means(y, samples, 0, half)
			reversed, wide := make([]complex128, len(d.y)), make([]complex128, len(d.y))
			for k, x := range y {
				wide[k] = complex128(x)
			}
			for k, p := range slices.Backward(d.sequence) {
				reversed[len(d.sequence)-1-k] = complex(float64(p), 0)
			}
			product := fft.Convolve(wide, reversed) // circular: what is used does not reach the end
			for k := range want {
				c, energy := product[k+len(d.sequence)-1], 0.0
				for _, y := range wide[k : k+len(d.sequence)] {
					energy += power(y)
				}
				want[k] = max(want[k], power(c)/(float64(len(d.sequence))*energy))
			}
		}
		for k, w := range want {
			if math.Abs(got[k].quality-w) > 1e-5 {
				t.Fatalf("%s: symbol %d has the score %v, by convolution %v", name, k, got[k].quality, w)
			}
		}
		if top := slices.Max(want); top < threshold {
			t.Errorf("%s: the preamble's score is %v, which tests little", name, top)
		}
	}
}
