package uplink

import (
	"math"
	"math/cmplx"

	"ringwave/calibration"
	"ringwave/learner/experiment/config"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// leastImageDB is the image that is corrected, in dB of the signal. A real symbol's image is
// but a part of its gain; of one that is turned it is a change of that, by as much.
const leastImageDB = -50

// correct takes what devices undo of their own hardware's faults from the file: what is
// told from nothing by two of its standard errors.
func (stats *LinkStats) correct(c config.Config) {
	rate := c.Link.SampleRateHz
	stats.corrections, stats.spread = nil, nil
	needed := false
	for _, d := range stats.File.Devices {
		var k modem.Correction
		left := math.NaN()
		if v := d.OffsetFromCommonHz; v != nil && !math.IsNaN(v.Value) {
			left = v.High - v.Value
			if math.Abs(v.Value) > left {
				k.Offset = modem.CyclesPerSample(v.Value / rate)
			}
		}
		if significant(d.LeakageI) || significant(d.LeakageQ) {
			k.Leakage = complex(d.LeakageI.Value, d.LeakageQ.Value)
		}
		if d.ImageDB >= leastImageDB {
			k.Image = imageOf(d)
		}
		if k.Validate() != nil {
			k = modem.Correction{} // of a board that is broken: it shows in what it cannot send
		}
		needed = needed || k != (modem.Correction{})
		stats.corrections, stats.spread = append(stats.corrections, k), append(stats.spread, left)
	}
	if !needed {
		stats.corrections = nil
	}
}

// significant reports whether an estimate is told from 0.
func significant(v *calibration.Value) bool { return v != nil && (v.Low > 0 || v.High < 0) }

// imageOf returns the image that a mismatch makes, b/a with a = (1 + g e^{j p})/2 and
// b = 1 - a*: the convention of calibration/sounding.
func imageOf(d calibration.Device) complex128 {
	a := (1 + cmplx.Rect(math.Pow(10, d.IQGainDB/20), d.IQPhaseRad)) / 2
	return (1 - cmplx.Conj(a)) / a
}

// since has carriers be as they were measured at a transmitters' index.
func (stats *LinkStats) since(at radio.SampleIndex) {
	for i := range stats.corrections {
		stats.corrections[i].Since = int64(at)
	}
}
