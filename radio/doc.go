// Package radio is the session between a program and radios, recordings or
// memory: streams of complex samples, their metadata, and devices found by URI.
//
// It takes in samples to send and gives samples received, each block with the
// index of its first sample, with what was lost and where, and with the tuning
// epoch that its phase belongs to. It knows nothing of symbols, frames, rings or
// keys.
//
// # Streams
//
// A stream is Ready when opened, Running after Start (Armed before that while it
// waits for a trigger) and Closed after Close. It is not started twice: opening
// another one begins a new epoch. Streams are meant to stay open for a whole
// session, with zeros between frames, because a restart leaves a new random phase
// (phy/README.md, section 6).
//
// What goes wrong on the way of samples is told in-band and ends nothing: a
// Receiver's Meta has gaps and flags, a Transmitter's events have underruns and
// late blocks. An error means that the stream or the request failed. What some
// receivers can do besides is a small interface: Bounded reads up to an index,
// Ranged tells from which amplitude on a sample is clipped.
//
// A Receiver or Transmitter is for one goroutine at a time, except that Close,
// State, Epoch and Event may be called from any.
//
// # Indices and boards without timestamps
//
// Every sample has an index on its stream's own clock, which counts sample
// periods and not samples delivered: what was lost has indices too. Where a board
// counts in hardware, indices are exact and TimeControl is there. Where it does
// not (HackRF, RTL2832U), the driver counts from 0 at the first sample it gets:
//   - HostCounted is set in each Meta: a loss that nobody noticed shifts all
//     later indices, so they order samples and do not date them;
//   - a loss that was noticed, but not counted or not placed, is a Gap with Exact
//     false; its Length is an estimate, and 0 where there is none;
//   - a Write at a given index fails with ErrUntimed, unless the Transmitter is a
//     Pacer or an Idler: then the index is counted in samples handed to the board
//     since Start, and an EpochChanged event tells that the board lost count. A
//     Write without an index follows what was written before.
//
// # Tuning epochs
//
// An Epoch changes whenever the phase may no longer be what it was: a retune, a
// restart of the stream, a lost clock. A device tells its own epoch and cannot
// know another's, so a round is good only if the epochs of its receiver and of
// each of its transmitters stayed as they were.
//
// # Devices
//
// A Device is found by URI through a Registry, which is a value that the program
// makes with the schemes it wants. What a device can do beyond opening a stream
// is a small interface, found by type assertion: FrequencyControl, RateControl,
// GainControl, AntennaControl, ClockControl, TriggerControl, TimeControl. Describe
// prints them.
//
// What sends does so by a TransmitPermit, the user's word for band and gain, and under a
// Guard, which switches a board off when the program no longer can (package guard).
//
// The shape owes to UHD (metadata on each read, asynchronous transmit events),
// seify (small capabilities) and hz.tools/sdr (samples read as bytes are in io).
package radio
