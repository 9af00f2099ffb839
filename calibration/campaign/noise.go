package campaign

import (
	"bytes"
	"encoding/csv"
	"math"
	"strconv"

	"ringwave/calibration/moments"
)

// Noise is a spectrum in decibels: L(f) in dBc/Hz of a phase, dB/Hz of a gain.
type Noise struct {
	Hertz, Decibels []float64 // offsets, and the values at them
	// Low and High are what the ends of the interval are off, Floor is what the noise
	// of the soundings alone gives, all in decibels.
	Low, High, Floor float64
	// RMS is what all offsets add up to, in radians or relative.
	RMS float64
}

// PhaseNoise returns L(f) of a device's phase; empty where there are too few blocks.
func PhaseNoise(d moments.Device) Noise { return noiseOf(d.PhaseSpectrum, moments.PhaseNoise) }

// GainNoise returns the spectrum of a device's gain relative to its root mean square;
// empty where there are too few blocks.
func GainNoise(d moments.Device) Noise {
	return noiseOf(d.GainSpectrum, func(density float64) float64 { return 10 * math.Log10(density) })
}

func noiseOf(s moments.Spectrum, decibels func(float64) float64) Noise {
	n := Noise{Hertz: s.Hertz, Low: 10 * math.Log10(s.Low), High: 10 * math.Log10(s.High), Floor: decibels(s.Floor), RMS: s.RMS()}
	for _, d := range s.Density {
		n.Decibels = append(n.Decibels, decibels(d))
	}
	return n
}

// Spectra returns the table of all spectra as CSV: a line a device and offset, with empty
// cells for what is not known.
func (r *Result) Spectra() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	header := []string{
		"device", "offset_hz", "phase_noise_dbc_hz", "phase_noise_low_dbc_hz", "phase_noise_high_dbc_hz", "phase_floor_dbc_hz",
		"gain_db_hz", "gain_low_db_hz", "gain_high_db_hz", "gain_floor_db_hz",
	}
	if err := w.Write(header); err != nil {
		return nil, err
	}
	for i, d := range r.Links.Devices {
		phase, gain := PhaseNoise(d), GainNoise(d)
		for k, f := range gain.Hertz { // the phase's, too, if it was readable
			line := append([]string{strconv.Itoa(i + 1), significant(f)}, phase.cells(k)...)
			if err := w.Write(append(line, gain.cells(k)...)); err != nil {
				return nil, err
			}
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// cells returns the value at offset k, its interval and the floor.
func (n Noise) cells(k int) []string {
	if k >= len(n.Decibels) {
		return make([]string, 4)
	}
	v := n.Decibels[k]
	return []string{significant(v), significant(v + n.Low), significant(v + n.High), significant(n.Floor)}
}

// significant writes a number with six digits: fewer than would show in which order a
// machine added.
func significant(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
