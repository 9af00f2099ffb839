// Package hackrf drives HackRF boards (HackRF One, HackRF Pro, Jawbreaker and
// rad1o) as devices of package radio.
//
// It takes in a usb.Host where boards are plugged in, and gives streams, settings,
// clock and trigger. It knows nothing of libusb, nor of what samples mean. Nothing
// in it was tried on real hardware; Info says so to the user.
//
// # Samples
//
// Boards carry 8 bits each of I and Q. Full scale is 127: an amplitude of 1 is
// sent as 127 and 127 is received as 1. What is above is limited, counted, and
// told by radio.Clipped or radio.ClipCounter.
//
// # One stream at a time
//
// A board receives or transmits, and there is one frequency and one sample rate
// for both. Gains are kept for each direction and sent when a stream starts.
//
// # Losses
//
// The board counts bytes and shortfalls (API 0106 and later), and tells them when
// asked: now and then, and at once by CheckLoss. It does not say where a shortfall
// was, only how many there were and how long the longest was. So a loss on receive
// is a gap that is not exact, at the end of the stretch between two questions, and
// that stretch has an epoch of its own. What the host itself drops because nobody
// reads is counted exactly. On transmit a shortfall is an Underrun and an
// EpochChanged event without exact indices, and from then on the board is behind
// the index by what is not known. Older firmware tells nothing.
//
// A retune is placed likewise: between what the board had counted before and
// after, and a millisecond for the synthesizer to settle.
//
// # Feeding a transmitter
//
// Index n is the n-th sample handed to the board since Start. With feed=fill, the
// default, the driver hands over zeros wherever the program has nothing, always: the
// index goes on with time, and a timed block whose index has gone by is a Late
// event (see radio.Pacer). What it hands over goes ahead of the air by all transfers that
// are queued, transfers=4 of them: transfer=BYTES each, and unless given 256 KiB or what
// takes 40 ms, if that is less. With feed=strict it hands over what was written or
// promised by Idle and nothing else, in whole packets of 256 samples, so that what
// is sent depends on the program's calls alone. That is for benches in which time
// waits, where hold=on and deadline_ms=0 belong to it. On a real board strict
// feeding means shortfalls, and soon the underrun limit. The last samples before a
// silence come on air only when enough zeros after them were promised to push them
// through the board's buffers: BufferSamples and a block of 8192. Close sends them
// in either mode.
//
// # What keeps the carrier off
//
// Nothing is sent without a radio.TransmitPermit for the frequency and the sum of
// the gains, and without a radio.Guard that watches over the board. A board is switched
// off when it is opened, with all transmit gains at their least. The driver switches it
// off when the stream is closed, when it fails, when the session's context ends, when the
// guard is lost, and when a panic takes the feeding goroutine down. However else the
// program ends, or when it stands still for longer than limit_ms, the guard switches it
// off (see Switch).
//
// Before each transmission the board gets an underrun limit. It is no more than a help:
// after it (firmware of 2022.09 and later) the board sends no samples, but its transmit
// chain stays on, mixer, amplifier and what leaks of the oscillator, until it is put into
// another mode; and there is no limit at all before the first 32 KiB have come, or while it
// waits for a trigger. That is what remains where nothing is left to switch it off: where
// the host hangs, or program and guard are killed at once. A host that is switched off
// takes the board's power away with it, unless a hub with power of its own is between
// them.
package hackrf
