package sounder

import (
	"fmt"

	"ringwave/calibration/sounding"
	"ringwave/radio"
)

// Record is one burst.
type Record struct {
	// Missed says why there is no estimate; empty if there is one.
	Missed   string
	Estimate *sounding.Estimate // per sent amplitude
	// Clipped counts the samples of the burst's slot that were clipped.
	Clipped int64
}

// Block is what was heard of one block.
type Block struct {
	Number  int
	Session int
	At      radio.SampleIndex // the receiver's, of its first sample
	// Moved is by how many samples more than in the session's first block At is ahead of
	// the transmitters' index, as clocks run apart: a delay, from one block to another, is
	// that of its estimate and this.
	Moved int64
	// Receiver and Transmitters are tuning epochs.
	Receiver     radio.Epoch
	Transmitters []radio.Epoch
	// Records has that of look t and device i at t*devices + i.
	Records []Record
}

// NotHeardError says that a device's soundings were not found.
type NotHeardError struct {
	Device int // from 0 on; -1 for all
	Bursts int // in which it was looked for
	Err    error
}

// Error returns one sentence.
func (e *NotHeardError) Error() string {
	if e.Device < 0 {
		return fmt.Sprintf("no sounding of any device was found in %d bursts: %v", e.Bursts, e.Err)
	}
	return fmt.Sprintf("no sounding of device %d was found in %d bursts: %v", e.Device+1, e.Bursts, e.Err)
}

// Unwrap returns the reason.
func (e *NotHeardError) Unwrap() error { return e.Err }
