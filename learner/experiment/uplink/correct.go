package uplink

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/learner/experiment/config"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// leastImageDB is the image that is corrected, in dB of the signal. A real symbol's image is
// but a part of its gain; of one that is turned it is a change of that, by as much.
const leastImageDB = -50

// deviations is how many standard errors an interval of 95 % reaches to either side.
const deviations = 1.96

// correct takes what devices undo of their own hardware's faults from the file: what is
// told from nothing by two of its standard errors.
func (stats *LinkStats) correct(c config.Config) {
	stats.corrections, stats.left = nil, stats.uncorrected()
	for i, d := range stats.File.Devices {
		var k modem.Correction
		if v := d.OffsetFromCommonHz; significant(v) {
			k.Offset = modem.CyclesPerSample(v.Value / c.Link.SampleRateHz)
			stats.left[i] = (v.High - v.Value) / deviations
		}
		if significant(d.LeakageI) || significant(d.LeakageQ) {
			k.Leakage = complex(d.LeakageI.Value, d.LeakageQ.Value)
		}
		if significant(d.ClockPPM) {
			k.Clock = 1e-6 * d.ClockPPM.Value
		}
		if d.ImageDB >= leastImageDB {
			k.Image = imageOf(d)
		}
		if k.Validate() != nil {
			k = modem.Correction{Offset: k.Offset} // a board that is broken shows in what is read
		}
		plain := k
		if k.Echoes = echoesOf(d); k.Validate() != nil {
			k = plain
		}
		stats.corrections = append(stats.corrections, k)
	}
	if c.OverWaveform() {
		stats.echoes = stats.echoNote()
	}
	if !slices.ContainsFunc(stats.corrections, func(k modem.Correction) bool { return k != modem.Correction{} }) {
		stats.corrections = nil
	}
}

// echoesOf returns the echoes of a device that are told from nothing.
func echoesOf(d calibration.Device) (echoes [modem.MaxEchoes]modem.Echo) {
	for k, e := range campaign.EchoesOf(d) {
		if cmplx.Abs(e.Gain) > deviations*math.Sqrt(e.GainVar) {
			echoes[k] = modem.Echo{Delay: e.Delay, Gain: e.Gain}
		}
	}
	return echoes
}

// TakesOffEchoes reports whether devices take echoes that differ off what they send, as far as
// there are any.
func (stats *LinkStats) TakesOffEchoes() bool {
	if stats == nil || stats.File == nil {
		return false
	}
	for i, d := range stats.File.Devices {
		if d.EchoDelaysSamples == nil || echoesOf(d) != stats.undone(i) {
			return false
		}
	}
	return true
}

// undone returns the echoes that device i takes off what it sends.
func (stats *LinkStats) undone(i int) (echoes [modem.MaxEchoes]modem.Echo) {
	if stats.corrections == nil {
		return echoes
	}
	return stats.corrections[i].Echoes
}

// echoNote says what devices do about the echoes of the file, and what is left; empty where
// it has none.
func (stats *LinkStats) echoNote() string {
	strongest, left := 0.0, 0.0
	for i, d := range stats.File.Devices {
		total, variance := 0.0, 0.0
		for _, e := range campaign.EchoesOf(d) {
			total += cmplx.Abs(e.Gain)
			variance += e.GainVar
		}
		if echoesOf(d) != stats.undone(i) {
			return fmt.Sprintf("WARNING: the echoes of device %d add up to %.2g of its first path, and devices take off %v at most: what differs from device to device stays: move antennas, or have fewer share a slot (link.group_size; with 1 all echoes are common to the slot)", i+1, total, modem.MaxEcho)
		}
		strongest, left = max(strongest, total), max(left, math.Sqrt(variance))
	}
	if strongest == 0 {
		return ""
	}
	return fmt.Sprintf("devices take their echoes, of up to %.1f dB, off what they send, as calibrated; of what is left, %.1f dB is the calibration's error", 20*math.Log10(strongest), 20*math.Log10(left))
}

// uncorrected returns, for each device of a file without offset_from_common_hz, by how
// much at least its carrier differs from the median one; 0 where nothing tells so.
func (stats *LinkStats) uncorrected() []float64 {
	devices := stats.File.Devices
	left := make([]float64, len(devices))
	order := make([]int, len(devices))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(math.Copysign(1, devices[a].OffsetHz.Value-devices[b].OffsetHz.Value))
	})
	median := devices[order[(len(order)-1)/2]].OffsetHz
	for i, d := range devices {
		if v := d.OffsetHz; d.OffsetFromCommonHz == nil && !math.IsNaN(v.Value) && !math.IsNaN(median.Value) {
			left[i] = max(0, math.Abs(v.Value-median.Value)-math.Hypot(v.High-v.Value, median.High-median.Value))
		}
	}
	return left
}

// significant reports whether an estimate is told from 0.
func significant(v *calibration.Value) bool { return v != nil && (v.Low > 0 || v.High < 0) }

// imageOf returns the image that a mismatch makes, b/a with a = (1 + g e^{j p})/2 and
// b = 1 - a*: the convention of calibration/sounding.
func imageOf(d calibration.Device) complex128 {
	a := (1 + cmplx.Rect(math.Pow(10, d.IQGainDB/20), d.IQPhaseRad)) / 2
	return (1 - cmplx.Conj(a)) / a
}

// takeCarriers takes carriers from a session that is ahead of the transmitters' index by so
// much: those of the file where the session does not say otherwise, as the file has seen
// more of them. From then on they turn by nothing at the session's first sample.
func (stats *LinkStats) takeCarriers(found campaign.Carriers, rate float64, ahead radio.SampleIndex) {
	corrections := slices.Clone(stats.corrections)
	if corrections == nil {
		corrections = make([]modem.Correction, len(found.Common))
	}
	for i, v := range found.Common {
		k := &corrections[i]
		known := float64(k.Offset) * rate
		if reach := v.High - v.Value; math.Abs(v.Value-known) > 2*reach {
			k.Offset, stats.left[i] = modem.CyclesPerSample(v.Value/rate), reach/deviations
		}
		k.Since = -int64(ahead)
	}
	if slices.ContainsFunc(corrections, func(k modem.Correction) bool { return k != modem.Correction{Since: k.Since} }) {
		stats.corrections = corrections
	}
}

// The shares of half a step between two integers that gains may move by in an attempt:
// beyond the first none is read; up to the second it costs next to nothing beside the
// noise.
const (
	mostMove = 1.0
	someMove = 0.2
)

// moves returns by how much what is left of the carriers' offsets moves sums of symbols in
// an attempt of so many seconds, at the worst, of a half step between two integers at scale
// alpha. A device that turns by psi meanwhile, at a phase phi, has its real gain h change by
// up to h (|sin phi| psi + psi^2/2), and phi is what it has turned by in the run so far.
func (stats *LinkStats) moves(c config.Config, attempt, run, alpha float64) (moves float64, worst int) {
	most := 0.0
	for i, hz := range stats.left {
		psi := 2 * math.Pi * hz * attempt
		phi := min(math.Pi/2, 2*math.Pi*hz*run)
		h := stats.File.Devices[i].Mu.Value / stats.unit
		move := 2 * alpha * h * float64(c.Link.Base-1) / 2 * min(2, math.Sin(phi)*psi+psi*psi/2)
		if moves += move; move > most {
			most, worst = move, i
		}
	}
	return moves, worst
}

// checkCarriers refuses carriers that move gains off any lattice within an attempt, which
// lasts so many seconds.
func (stats *LinkStats) checkCarriers(c config.Config, attempt float64) error {
	if stats.File == nil || !turnsPhases(c) {
		return nil
	}
	moves, i := stats.moves(c, attempt, attempt, 1)
	if moves <= mostMove {
		return nil
	}
	return intake.UserError(fmt.Errorf("%s: the carrier of device %d is off from the others' by what is known to %.3g Hz only, which turns it by %.2g rad in an attempt of %.3g s and moves sums of symbols by %.2g of a half step between two integers: allowed is %v; calibrate again, with more calibration.blocks or a longer calibration.block_seconds, or give the boards one reference",
		stats.path, i+1, stats.left[i], 2*math.Pi*stats.left[i]*attempt, attempt, moves, mostMove))
}

// carrierNote says how devices turn, and what is left of it; empty where none does, and
// little is left.
func (stats *LinkStats) carrierNote(c config.Config, attempt float64) string {
	if stats.File == nil || !c.OverWaveform() {
		return ""
	}
	turned := slices.ContainsFunc(stats.corrections, func(k modem.Correction) bool { return k.Offset != 0 })
	run := attempt * float64(c.Optimizer.Rounds)
	moves, i := stats.moves(c, attempt, run, c.Link.MaxAlpha)
	if !turned && moves <= someMove {
		return ""
	}
	note := "devices do not turn their carriers"
	if turned {
		var turns []string
		for _, k := range stats.corrections {
			turns = append(turns, fmt.Sprintf("%.4g", 0-float64(k.Offset)*c.Link.SampleRateHz))
		}
		note = fmt.Sprintf("devices turn their carriers by %s Hz, as calibrated", strings.Join(turns, ", "))
	}
	note += fmt.Sprintf("; what is left of device %d's, %.2g Hz, is %.2g rad an attempt and %.2g rad a run, and may move sums of symbols by %.2g of a half step at link.max_alpha = %v",
		i+1, stats.left[i], 2*math.Pi*stats.left[i]*attempt, 2*math.Pi*stats.left[i]*run, moves, c.Link.MaxAlpha)
	if moves > someMove {
		note = "WARNING: " + note + ": finer scales will not be read; calibrate again, with more calibration.blocks or a longer calibration.block_seconds"
	}
	return note
}
