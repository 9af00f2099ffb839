package calibration

import (
	"fmt"
	"math/cmplx"
	"slices"
	"time"
)

// Version is that of the file's format.
const Version = 1

// File is a calibration: what the bench was, what was sent, and what was found of each
// device. Keys carry their units. A number that is not known is NaN.
type File struct {
	Version int `toml:"version"`
	// Created and ValidUntil are kept to the second, in UTC.
	Created    time.Time `toml:"created"`
	ValidUntil time.Time `toml:"valid_until"`
	// Program is the name and version of what wrote the file.
	Program string `toml:"program"`
	// Violations are sentences on assumptions that the bench as a whole violates.
	Violations []string `toml:"violations" note:"Assumptions that the bench as a whole violates."`

	Bench    Bench        `toml:"bench"`
	Sounding Sounding     `toml:"sounding"`
	Devices  []Device     `toml:"device"`
	Advice   []AdviceLine `toml:"advice,omitempty"`
}

// BenchKind tells what gave the samples.
type BenchKind string

// The kinds of benches.
const (
	Simulated BenchKind = "simulated"
	Radios    BenchKind = "radios"
	Recording BenchKind = "recording"
)

// Bench is what a calibration holds for, but for the transmitters.
type Bench struct {
	Kind BenchKind `toml:"kind"`
	// Identity is a digest of what the bench is, empty where there is none.
	Identity       string `toml:"identity"`
	ReceiverURI    string `toml:"receiver_uri"`
	ReceiverDriver string `toml:"receiver_driver"`
	ReceiverSerial string `toml:"receiver_serial"`
	// ReceiveGainsDB are the gains of the receiver's stages by their names.
	ReceiveGainsDB map[string]float64 `toml:"receive_gains_db"`
	FrequencyHz    float64            `toml:"frequency_hz,exact"` // of the carrier; 0 where there is none
	SampleRateHz   float64            `toml:"sample_rate_hz,exact"`
	// Clock says where boards have their clock from; empty where there are none.
	Clock string `toml:"clock"`
	// ReceiverEpoch is the receiver's tuning epoch, 0 if not known.
	ReceiverEpoch uint64 `toml:"receiver_epoch"`
	// SessionID is a random name of the session of streams. Phases, and the numbers of
	// epochs, mean something in it alone.
	SessionID string `toml:"session_id" note:"Phases hold in this session of streams alone, unless a device has phase_lasts = true."`
}

// Sounding is what each device sent.
type Sounding struct {
	Kind           string  `toml:"kind"` // zadoff-chu or m-sequence
	Length         int     `toml:"length"`
	Root           int     `toml:"root"`
	SamplesPerChip int     `toml:"samples_per_chip"`
	Repetitions    int     `toml:"repetitions"`
	Blocks         int     `toml:"blocks"`
	Looks          int     `toml:"looks"`
	Sessions       int     `toml:"sessions"`
	BlockSeconds   float64 `toml:"block_seconds"`
	RoundSeconds   float64 `toml:"round_seconds"`
	Amplitude      float64 `toml:"amplitude"` // of full scale
}

// The families of soundings, as a file names them.
const (
	ZadoffChu = "zadoff-chu"
	MSequence = "m-sequence"
)

// Transmitter is a device's board and how it is set.
type Transmitter struct {
	URI             string             `toml:"uri"`
	Driver          string             `toml:"driver"`
	Serial          string             `toml:"serial"`
	TransmitGainsDB map[string]float64 `toml:"transmit_gains_db"`
	Epoch           uint64             `toml:"epoch"` // of tuning, 0 if not known
}

// Value is an estimate with its interval of 95 %. All three are NaN where nothing was
// measured; the ends alone are where there is no interval.
type Value struct {
	Value float64 `toml:"value"`
	Low   float64 `toml:"low"`
	High  float64 `toml:"high"`
}

// Interval returns a Value whose interval holds it: one that a correction for bias has
// moved past its interval's end becomes that end.
func Interval(value, low, high float64) Value {
	if value < low {
		low = value
	}
	if value > high {
		high = value
	}
	return Value{Value: value, Low: low, High: high}
}

// Model is the family of distributions that a device's real gains fit.
type Model string

// The models of fading.
const (
	Gaussian Model = "gaussian"
	Rician   Model = "rician"
)

// Device is what was found of one device's link. Its gain is g, received per sent
// amplitude; its real effective gain is the real part of g after the phase of the mean.
type Device struct {
	Index int `toml:"index"` // from 1, as the paper counts
	Transmitter

	Soundings int   `toml:"soundings" note:"Bursts that were estimated, bursts that were not found, and samples at the converter's ends."`
	Missed    int   `toml:"missed"`
	Clipped   int64 `toml:"clipped"`

	// Mu and Omega are the mean and the second moment of the real effective gain,
	// without the estimation's noise; Sigma is its deviation.
	Mu      Value `toml:"mu" note:"The real effective gain: its mean, second moment and deviation."`
	Omega   Value `toml:"omega"`
	Sigma   Value `toml:"sigma"`
	KFactor Value `toml:"k_factor"`
	SNRdB   Value `toml:"snr_db"`
	// PhaseRad is the phase of the mean of g, DelaySamples the delay behind the first
	// device's and OffsetHz the carrier offset from the receiver's. Where the carrier
	// turns, the phase is the one that it had at the first sample of the session.
	PhaseRad     Value `toml:"phase_rad" note:"Of the complex gain's mean; then the delay behind the first device's."`
	DelaySamples Value `toml:"delay_samples"`
	OffsetHz     Value `toml:"offset_hz"`
	// OffsetFromCommonHz is the carrier offset from the device's whose own is the median;
	// nil in files of programs that did not measure it.
	OffsetFromCommonHz *Value `toml:"offset_from_common_hz,omitempty" note:"From the carrier that devices have in common: that of the median one."`
	// ClockPPM is how much faster the device's sample clock is than the receiver's, in parts
	// per million; nil where a block has one look.
	ClockPPM *Value `toml:"clock_ppm,omitempty" note:"By how much the sample clock is faster than the receiver's."`
	// LeakageI and LeakageQ are what the transmitter adds to all that it sends, in parts
	// of its full scale, as it arrives by the device's gain: apart from what the receiver
	// adds. nil where the two cannot be told apart.
	LeakageI *Value `toml:"leakage_i,omitempty" note:"What the transmitter adds to all that it sends, in parts of its full scale."`
	LeakageQ *Value `toml:"leakage_q,omitempty"`
	// EchoDelaysSamples are by how much later than its first path the link's others arrive,
	// EchoI and EchoQ their gains against that, and EchoErrors the standard errors of these.
	// Gains, phases and delays are those of the first path. Empty where there are none, nil
	// in files of programs that did not look for them.
	EchoDelaysSamples []float64 `toml:"echo_delays_samples,omitempty" note:"Other paths: by how much later than the first they arrive, their complex gains against it, and the errors of these."`
	EchoI             []float64 `toml:"echo_i,omitempty"`
	EchoQ             []float64 `toml:"echo_q,omitempty"`
	EchoErrors        []float64 `toml:"echo_errors,omitempty"`

	// DCI and DCQ are the receiver's offset in parts of full scale, ImageDB is the power
	// of the image over the signal's, and the two after it what mismatch of the
	// quadrature branch explains it.
	DCI        float64 `toml:"dc_i" note:"Offset in parts of full scale, and the image with the mismatch that explains it."`
	DCQ        float64 `toml:"dc_q"`
	ImageDB    float64 `toml:"image_db"`
	IQGainDB   float64 `toml:"iq_gain_db"`
	IQPhaseRad float64 `toml:"iq_phase_rad"`

	Model Model `toml:"model"`
	// PhaseLasts reports whether the phase was the same in all sessions; nil if there
	// was but one.
	PhaseLasts *bool `toml:"phase_lasts,omitempty"`
	// PhasePerSessionRad is the phase of the mean in each session.
	PhasePerSessionRad []float64 `toml:"phase_per_session_rad"`
	// CoherenceSeconds is infinite where the gain did not fade while it was looked at.
	CoherenceSeconds       float64 `toml:"coherence_seconds"`
	PhaseDriftRadPerSecond Value   `toml:"phase_drift_rad_per_second"`
	GainDriftDBPerSecond   Value   `toml:"gain_drift_db_per_second"`

	// Violations are sentences on assumptions that this link violates.
	Violations []string `toml:"violations"`
}

// AdviceLine is one way in which the bench carries the protocol.
type AdviceLine struct {
	// Own says that it is the way that the configuration asks for.
	Own              bool   `toml:"own,omitempty"`
	Regime           string `toml:"regime"` // emulated, mean-aligned or blind
	Group            int    `toml:"group"`  // G, devices that share a slot
	Base             int    `toml:"base"`   // B, of the digits
	SamplesPerSymbol int    `toml:"samples_per_symbol"`
	Repeats          int    `toml:"repeats"` // of a frame that fails, combined with it
	ParameterSet     string `toml:"parameter_set"`
	// Success is the probability that a round is read at once.
	Success        Value   `toml:"success_probability"`
	AirtimeSeconds float64 `toml:"airtime_seconds"` // of an attempt
}

// MeanGain returns the mean of the complex gain of the device at position i, from 0, of
// Devices: mu e^{j phase}.
func (f File) MeanGain(i int) complex128 {
	d := f.Devices[i]
	return cmplx.Rect(1, d.PhaseRad.Value) * complex(d.Mu.Value, 0)
}

// Anonymous returns the file without what tells when, by what and on which boards it was
// made: dates, program, the bench's kind and identity, URIs, drivers, serials, epochs
// and the session's name. Two files of one bench's signals have equal Text after it.
func (f File) Anonymous() File {
	f.Created, f.ValidUntil, f.Program = time.Time{}, time.Time{}, ""
	b := &f.Bench
	b.Kind, b.Identity, b.ReceiverURI, b.ReceiverDriver, b.ReceiverSerial = "", "", "", "", ""
	b.ReceiverEpoch, b.SessionID = 0, ""
	f.Devices = slices.Clone(f.Devices)
	for i := range f.Devices {
		t := &f.Devices[i].Transmitter
		*t = Transmitter{TransmitGainsDB: t.TransmitGainsDB}
	}
	return f
}

// Error says what is wrong with a calibration file, or why it does not fit: it is the
// user's to mend.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func failf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }
