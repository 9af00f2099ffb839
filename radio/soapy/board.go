package soapy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ringwave/radio"
)

// Backend makes SoapySDR's calls.
type Backend interface {
	// Find lists the boards that fit the arguments (SoapySDRDevice_enumerate).
	Find(ctx context.Context, where radio.URI, args Args) ([]Args, error)
	// Make opens the board that the arguments name (SoapySDRDevice_make). Where names the
	// server of a back end that has several, by its Name; of others it is not asked for.
	Make(ctx context.Context, where radio.URI, args Args) (Board, error)
}

// Board is an open device by SoapySDR's calls, whose names they have (SoapySDR/Device.h,
// 0.8). It is safe for use by several goroutines. A call that fails gives the library's or
// the module's own words; one that does not return by the end of ctx gives its error, and
// may be carried out all the same.
type Board interface {
	// Hardware returns what the board says of itself.
	Hardware(ctx context.Context) (Hardware, error)
	// Channels returns how many channels a direction has.
	Channels(ctx context.Context, dir radio.Direction) (int, error)
	// FullDuplex reports whether a channel sends and receives at the same time.
	FullDuplex(ctx context.Context, at Channel) (bool, error)

	// Formats returns the names of the formats that streams of a channel can have, and
	// NativeFormat that of the board's own and the integer that is its full scale.
	Formats(ctx context.Context, at Channel) ([]string, error)
	NativeFormat(ctx context.Context, at Channel) (format string, fullScale float64, err error)

	Antennas(ctx context.Context, at Channel) ([]string, error)
	Antenna(ctx context.Context, at Channel) (string, error)
	SetAntenna(ctx context.Context, at Channel, name string) error

	// Gains returns the names of the gain elements, in the order of the signal's way.
	Gains(ctx context.Context, at Channel) ([]string, error)
	GainRange(ctx context.Context, at Channel, element string) (Range, error)
	Gain(ctx context.Context, at Channel, element string) (float64, error)
	SetGain(ctx context.Context, at Channel, element string, dB float64) error
	// HasGainMode reports whether the board can control gains by itself, which
	// SetGainMode has it do or not.
	HasGainMode(ctx context.Context, at Channel) (bool, error)
	SetGainMode(ctx context.Context, at Channel, automatic bool) error

	FrequencyRange(ctx context.Context, at Channel) ([]Range, error)
	Frequency(ctx context.Context, at Channel) (float64, error)
	SetFrequency(ctx context.Context, at Channel, hertz float64) error

	SampleRateRange(ctx context.Context, at Channel) ([]Range, error)
	SampleRate(ctx context.Context, at Channel) (float64, error)
	SetSampleRate(ctx context.Context, at Channel, hertz float64) error

	BandwidthRange(ctx context.Context, at Channel) ([]Range, error)
	Bandwidth(ctx context.Context, at Channel) (float64, error)
	SetBandwidth(ctx context.Context, at Channel, hertz float64) error

	ClockSources(ctx context.Context) ([]string, error)
	ClockSource(ctx context.Context) (string, error)
	SetClockSource(ctx context.Context, name string) error
	TimeSources(ctx context.Context) ([]string, error)
	TimeSource(ctx context.Context) (string, error)
	SetTimeSource(ctx context.Context, name string) error

	// HasHardwareTime reports whether the board has a clock of a name: "" is its own, "PPS"
	// what it was at the last pulse, as modules have it.
	HasHardwareTime(ctx context.Context, what string) (bool, error)
	HardwareTime(ctx context.Context, what string) (Time, error)
	// SetHardwareTime sets a clock: "" at once, "PPS" at the next pulse.
	SetHardwareTime(ctx context.Context, t Time, what string) error

	// Sensors returns the names of the board's sensors, as ref_locked.
	Sensors(ctx context.Context) ([]string, error)
	ReadSensor(ctx context.Context, name string) (string, error)
	// ChannelSensors are those of a channel, as lo_locked.
	ChannelSensors(ctx context.Context, at Channel) ([]string, error)
	ReadChannelSensor(ctx context.Context, at Channel, name string) (string, error)

	// WriteSetting sets one of the module's own settings, and WriteChannelSetting one of a
	// channel.
	WriteSetting(ctx context.Context, key, value string) error
	WriteChannelSetting(ctx context.Context, at Channel, key, value string) error

	// SetupStream makes a stream of one channel, in one of its formats.
	SetupStream(ctx context.Context, at Channel, format string, args Args) (Stream, error)
	// Close gives the board back (SoapySDRDevice_unmake), its streams being closed first. A
	// second Close does nothing.
	Close() error
}

// Stream is a stream of one channel. Read and Write are for one goroutine each, Status for
// another; Activate, Deactivate and Close may be called from any.
type Stream interface {
	// MTU returns the number of samples that are best read or written at once, 1 or more.
	MTU() int
	// Activate lets samples flow, at a time of the board's clock with HasTime.
	Activate(ctx context.Context, flags Flags, at Time) error
	// Deactivate ends that; Activate may follow.
	Deactivate(ctx context.Context, flags Flags, at Time) error
	// Read waits for samples, no longer than patience, and puts up to len(dst) bytes of
	// them into dst: whole samples, 1 or more where there is no error. Its errors are
	// Codes, of which ErrTimeout says that there were none within patience and ErrOverflow
	// that some were lost before those of the next Read: neither ends the stream.
	Read(ctx context.Context, dst []byte, patience time.Duration) (n int, b BlockInfo, err error)
	// Write waits for room, no longer than patience, and takes whole samples of src, n
	// bytes. With HasTime the first is for a time; with EndBurst the last is the end of a
	// burst, if all were taken. ErrTimeout says that none were taken within patience.
	Write(ctx context.Context, src []byte, b BlockInfo, patience time.Duration) (n int, err error)
	// Status waits for news of the stream, no longer than patience: err is a Code, nil for
	// an acknowledgement (as EndBurst), ErrUnderflow, ErrLate, ErrOverflow; ErrTimeout for
	// no news, ErrNotSupported where there never are any.
	Status(ctx context.Context, patience time.Duration) (BlockInfo, error)
	// Close ends the stream. A second Close does nothing.
	Close() error
}

// Channel is one channel of a direction, counted from 0.
type Channel struct {
	Direction radio.Direction
	Number    int
}

// Time is of a board's clock, in nanoseconds.
type Time int64

// Range is one of a setting's ranges; a step of 0 is for none.
type Range struct{ Min, Max, Step float64 }

// Hardware is what a board says of itself.
type Hardware struct {
	Driver, Key string // as "hackrf" and "HackRF One"
	Info        Args
}

// BlockInfo is what is known of samples.
type BlockInfo struct {
	Flags Flags
	At    Time // of the first sample, with HasTime
}

// Flags are SoapySDR's (SoapySDR/Constants.h).
type Flags int32

// The flags.
const (
	EndBurst      Flags = 1 << 1
	HasTime       Flags = 1 << 2
	EndAbrupt     Flags = 1 << 3 // samples were lost behind these
	OnePacket     Flags = 1 << 4
	MoreFragments Flags = 1 << 5
	WaitTrigger   Flags = 1 << 6
)

// Code is an error that SoapySDR gives a number (SoapySDR/Errors.h).
type Code int32

// The codes.
const (
	ErrTimeout      Code = -1
	ErrStream       Code = -2
	ErrCorruption   Code = -3
	ErrOverflow     Code = -4
	ErrNotSupported Code = -5
	ErrLate         Code = -6 // "time error"
	ErrUnderflow    Code = -7
)

// Error returns the code in words.
func (c Code) Error() string {
	switch c {
	case ErrTimeout:
		return "nothing within the time that was given"
	case ErrStream:
		return "the stream failed"
	case ErrCorruption:
		return "the data were corrupted"
	case ErrOverflow:
		return "samples were lost, as the host was too slow"
	case ErrNotSupported:
		return "the board's module does not support it"
	case ErrLate:
		return "the time had passed"
	case ErrUnderflow:
		return "samples came too late"
	}
	return fmt.Sprintf("SoapySDR's error %d", int32(c))
}

// ErrNoBuild: this build has no SoapySDR.
var ErrNoBuild = errors.New("this build has no SoapySDR")

// ErrGone: the board, or the server that has it, is gone.
var ErrGone = errors.New("the board is gone")
