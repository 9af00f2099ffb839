package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"

	"ringwave/calibration"
	"ringwave/calibration/moments"
	"ringwave/learner/experiment/chart"
	"ringwave/learner/experiment/runfolder"
)

// spectraName is the file of the spectra of phases and gains. They are not in
// calibration.toml, whose readers refuse keys that they do not know.
const spectraName = "spectra.csv"

// noise is a spectrum in decibels: L(f) in dBc/Hz of a phase, dB/Hz of a gain.
type noise struct {
	offsets, values []float64
	// low and high are what the ends of the interval are off, in dB.
	low, high, floor float64
	rms              float64 // radians, or relative
}

func noiseOf(s moments.Spectrum, decibels func(float64) float64) noise {
	n := noise{offsets: s.Hertz, low: 10 * math.Log10(s.Low), high: 10 * math.Log10(s.High), floor: decibels(s.Floor), rms: s.RMS()}
	for _, d := range s.Density {
		n.values = append(n.values, decibels(d))
	}
	return n
}

func phaseNoiseOf(d moments.Device) noise { return noiseOf(d.PhaseSpectrum, moments.PhaseNoise) }

func gainNoiseOf(d moments.Device) noise {
	return noiseOf(d.GainSpectrum, func(density float64) float64 { return 10 * math.Log10(density) })
}

// plot gives the noise as it is drawn.
func (n noise) plot() chart.Noise {
	out := chart.Noise{Offset: n.offsets, Value: n.values, Floor: n.floor}
	for _, v := range n.values {
		out.Low, out.High = append(out.Low, v+n.low), append(out.High, v+n.high)
	}
	return out
}

// encodeSpectra gives the table of all spectra: a line a device and offset, with empty
// cells for what is not known.
func encodeSpectra(devices []moments.Device) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	header := []string{
		"device", "offset_hz", "phase_noise_dbc_hz", "phase_noise_low_dbc_hz", "phase_noise_high_dbc_hz", "phase_floor_dbc_hz",
		"gain_db_hz", "gain_low_db_hz", "gain_high_db_hz", "gain_floor_db_hz",
	}
	if err := w.Write(header); err != nil {
		return nil, err
	}
	for i, d := range devices {
		phase, gain := phaseNoiseOf(d), gainNoiseOf(d)
		for k, f := range gain.offsets { // the phase's, too, if it was readable
			line := append([]string{strconv.Itoa(i + 1), significant(f)}, phase.cells(k)...)
			if err := w.Write(append(line, gain.cells(k)...)); err != nil {
				return nil, err
			}
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// cells gives the value at offset k, its interval and the floor.
func (n noise) cells(k int) []string {
	if k >= len(n.values) {
		return make([]string, 4)
	}
	v := n.values[k]
	return []string{significant(v), significant(v + n.low), significant(v + n.high), significant(n.floor)}
}

// significant writes a number with six digits: fewer than would show in which order a
// machine added.
func significant(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// jsonNoise is a spectrum for machines.
type jsonNoise struct {
	Offsets []runfolder.Float `json:"offset_hz"`
	Values  []runfolder.Float `json:"db"`
	Low     runfolder.Float   `json:"low_db"`
	High    runfolder.Float   `json:"high_db"`
	Floor   runfolder.Float   `json:"floor_db"`
	RMS     runfolder.Float   `json:"rms"`
}

func (n noise) json() *jsonNoise {
	if len(n.offsets) == 0 {
		return nil
	}
	out := jsonNoise{Low: runfolder.Float(n.low), High: runfolder.Float(n.high), Floor: runfolder.Float(n.floor), RMS: runfolder.Float(n.rms)}
	for k, f := range n.offsets {
		out.Offsets, out.Values = append(out.Offsets, runfolder.Float(f)), append(out.Values, runfolder.Float(n.values[k]))
	}
	return &out
}

// noiseColumns gives the columns of the terminal's table: L(f) at the first offset, the
// last and one between them, and what all offsets add up to.
func (r *calibrationResult) noiseColumns() []column {
	var offsets []float64
	for _, d := range r.moments.Devices {
		if len(d.PhaseSpectrum.Hertz) > 0 {
			offsets = d.PhaseSpectrum.Hertz
			break
		}
	}
	if offsets == nil {
		return nil
	}
	cell := func(text func(n noise) string) func(calibration.Device) string {
		return func(d calibration.Device) string {
			n := phaseNoiseOf(r.moments.Devices[d.Index-1])
			if len(n.offsets) == 0 {
				return "not readable"
			}
			return text(n)
		}
	}
	var columns []column
	last := len(offsets) - 1
	for _, k := range []int{0, int(math.Sqrt(float64(last))), last} {
		columns = append(columns, column{fmt.Sprintf("L(%.3g Hz), dBc/Hz", offsets[k]), cell(func(n noise) string {
			v := n.values[k]
			return fmt.Sprintf("%.1f [%.1f, %.1f]", v, v+n.low, v+n.high)
		})})
	}
	return append(columns,
		column{"of the soundings", cell(func(n noise) string { return fmt.Sprintf("%.1f", n.floor) })},
		column{"rms phase, rad", cell(func(n noise) string { return fmt.Sprintf("%.3g", n.rms) })})
}
