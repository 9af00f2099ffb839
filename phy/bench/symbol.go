package bench

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/phy/modem"
)

// DigitPower returns E[d^2] of balanced digits, uniform from -(B-1)/2 to (B-1)/2.
func DigitPower(base int) float64 { return float64(base*base-1) / 12 }

// Amplitude returns the largest magnitude of a sample that transmitters send whose
// converters have so many bits, 0 for none: the largest code of the coarsest, so that the
// flat tops of the largest digit, of either sign, take a code exactly.
func Amplitude(bits ...int) modem.Amplitude {
	amplitude := modem.Amplitude(1)
	for _, b := range bits {
		if b > 0 {
			amplitude = min(amplitude, 1-modem.Amplitude(math.Ldexp(1, 1-b)))
		}
	}
	return amplitude
}

// SymbolScale returns the amplitude of the digit 1 from a device at full drive, whose
// largest sample has the given amplitude.
func SymbolScale(m modem.Config, base int, amplitude modem.Amplitude) (float64, error) {
	modulator, err := modem.NewModulator(m, modem.Drive{Peak: float32(base-1) / 2, Amplitude: amplitude})
	if err != nil {
		return 0, err
	}
	return float64(modulator.Scale()), nil
}

// NoiseStd returns the deviation of the noise a branch and sample at which a soft real
// symbol has an SNR, E[d^2]/variance with d in units of the received digit; scale is the
// digit 1's amplitude.
func NoiseStd(m modem.Config, base int, snrDB, scale float64) float64 {
	noise := DigitPower(base) / math.Pow(10, snrDB/10)
	return scale * math.Sqrt(noise/modem.NoiseBandwidth(m.Pulse, m.SamplesPerSymbol))
}

// NeededSNR returns the SNR in dB at which so many symbols on a lattice of scale alpha
// all fall to the right integer but for one time in a thousand: half a unit is z
// deviations of the noise.
func NeededSNR(base int, alpha float64, symbols int) float64 {
	z := distuv.UnitNormal.Quantile(1 - 1e-3/(2*float64(symbols)))
	return 20 * math.Log10(2*z*alpha*math.Sqrt(DigitPower(base)))
}
