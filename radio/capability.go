package radio

import (
	"context"
	"fmt"
	"math"
)

// Direction is that of samples, seen from the program.
type Direction int

const (
	Receive Direction = iota
	Transmit
)

// String returns the direction's name.
func (d Direction) String() string {
	if d == Transmit {
		return "transmit"
	}
	return "receive"
}

// Span is a range of a setting, Min to Max, in steps counted from Min; Step 0 is
// for settings without steps.
type Span[T ~float64] struct{ Min, Max, Step T }

// Floor returns the largest setting of the span that is not above v: boards differ
// in what they do with a value off the grid, so it is rounded here. It fails
// where v is outside the span; name is that of the setting, for the error.
func (s Span[T]) Floor(name string, v T) (T, error) {
	if !(v >= s.Min && v <= s.Max) {
		return 0, fmt.Errorf("%s is %v; allowed is %v", name, v, s)
	}
	if s.Step <= 0 {
		return v, nil
	}
	// A value that is on the grid but for rounding is on the grid.
	steps := math.Floor(float64((v-s.Min)/s.Step) + 1e-9)
	return min(s.Min+T(steps)*s.Step, s.Max), nil
}

// String returns the range and the step.
func (s Span[T]) String() string {
	switch {
	case s.Min == s.Max:
		return fmt.Sprint(s.Min)
	case s.Step > 0:
		return fmt.Sprintf("%v to %v in steps of %v", s.Min, s.Max, s.Step)
	}
	return fmt.Sprintf("%v to %v", s.Min, s.Max)
}

// GainStage is one amplifier or attenuator of a device.
type GainStage struct {
	Name string
	Span Span[Decibels]
}

// The capabilities of devices. Setters give the value that the device took, or
// an error that names the setting, the value and what is allowed.

// FrequencyControl is a device whose carrier can be set. A retune begins a new
// epoch, even to the same frequency.
type FrequencyControl interface {
	Frequencies(d Direction) Span[Hertz]
	Frequency(d Direction) Hertz
	SetFrequency(ctx context.Context, d Direction, f Hertz) (Hertz, error)
}

// RateControl is a device that tells its sample rate, and sets it where the span
// has more than one.
type RateControl interface {
	SampleRates(d Direction) Span[Hertz]
	SampleRate(d Direction) Hertz
	SetSampleRate(ctx context.Context, d Direction, rate Hertz) (Hertz, error)
}

// GainControl is a device with gain stages, in the order of the signal's way.
type GainControl interface {
	GainStages(d Direction) []GainStage
	Gain(d Direction, stage string) (Decibels, error)
	SetGain(ctx context.Context, d Direction, stage string, g Decibels) (Decibels, error)
}

// AntennaControl is a device with more than one antenna port.
type AntennaControl interface {
	Antennas(d Direction) []string
	Antenna(d Direction) string
	SetAntenna(ctx context.Context, d Direction, name string) error
}

// ClockControl is a device that can follow a reference clock. Devices that share
// one stay coherent.
type ClockControl interface {
	ClockSources() []string
	ClockSource() string
	SetClockSource(ctx context.Context, name string) error
	// ClockLocked reports whether the chosen reference is there and followed.
	ClockLocked(ctx context.Context) (bool, error)
}

// TriggerControl is a device whose streams can wait for an edge. With a source
// set, a stream is Armed from Start until the edge.
type TriggerControl interface {
	TriggerSources() []string
	// SetTrigger chooses the source for streams started from now on; the empty
	// name starts them at once.
	SetTrigger(ctx context.Context, source string) error
}

// TimeControl is a device that counts samples itself: indices are exact, and
// TxMeta.Timed is honoured.
type TimeControl interface {
	// Now returns the index that the device's clock has reached.
	Now(ctx context.Context) (SampleIndex, error)
}

// DeviceTime is of a device's own clock, in nanoseconds.
type DeviceTime int64

// TimedStart is a device with a clock that several can set at one pulse, as that of a GPS
// receiver once a second (PPS), and whose streams start at a time of it.
type TimedStart interface {
	TimeSources() []string
	TimeSource() string
	// SetTimeSource chooses where the pulses come from.
	SetTimeSource(ctx context.Context, name string) error
	// Time returns what the clock shows, and LastPulse what it showed at the last pulse.
	Time(ctx context.Context) (DeviceTime, error)
	LastPulse(ctx context.Context) (DeviceTime, error)
	// SetTimeAtPulse has the clock show t at the next pulse.
	SetTimeAtPulse(ctx context.Context, t DeviceTime) error
	// StartAt has streams that are started from now on begin at t, which is then index 0 of
	// each. A Start that comes later than t fails.
	StartAt(t DeviceTime)
}

// The capabilities of streams, found by type assertion as those of devices are.

// Pacer is a Transmitter that keeps its board fed: where nothing was written,
// zeros go, so that its index goes on with time. TxMeta.Timed is honoured on the
// driver's own count, that of samples handed to the board since Start.
type Pacer interface {
	// Earliest returns the index that the next sample handed to the board will
	// have. A timed block must start at it or later, with as much to spare as the
	// program needs until it writes.
	Earliest() SampleIndex
}

// LossChecker is a stream whose board tells what it lost only when asked, which
// the driver otherwise does now and then.
type LossChecker interface {
	// CheckLoss asks now. After it Epoch, and the Meta or events that follow, know
	// of all that was lost before the call.
	CheckLoss(ctx context.Context) error
}

// ClipCounter is a Transmitter that counts the samples that were above full scale
// and were limited to it.
type ClipCounter interface {
	Clipped() SampleCount
}

// SilentLoss is a stream whose board may lose samples that nobody tells of: its index may have
// moved although no event says so.
type SilentLoss interface {
	LosesSilently() bool
}

// LosesSilently reports whether a stream is a SilentLoss, or what it is wrapped around is.
func LosesSilently(s Stream) bool {
	for {
		if l, ok := s.(SilentLoss); ok {
			return l.LosesSilently()
		}
		u, ok := s.(interface{ Unwrap() Transmitter })
		if !ok {
			return false
		}
		s = u.Unwrap()
	}
}
