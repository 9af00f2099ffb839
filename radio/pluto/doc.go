// Package pluto drives ADALM-Pluto boards, over the network that their USB plug
// is, as devices of package radio, and other boards with an AD9361, AD9363 or AD9364 behind
// an iiod.
//
// It takes in the address of a board's iiod and speaks the text protocol of libiio
// 0.x with it; it gives streams in both directions at once and settings. It knows
// nothing of USB, nor of what samples mean. Nothing in it was tried on real
// hardware; Info says so to the user. It was tried with Debian's iiod.
//
// # Boards
//
// What a board is called, how its devices are named and what it can tune, amplify and sample
// is read from its own description: Pluto+ and AntSDR E200 and E310 with firmware that has
// iiod, ADRV9361 and ADRV9364 modules, FMCOMMS2 to FMCOMMS5. The parameter channel chooses
// among the antennas that the firmware shows, of which a board may have more; only that
// channel's samples are asked for. The range of the receive gain goes with the frequency,
// and is read again when that changes. A board has one transmitter at a time: its channels
// share an oscillator, so that whoever opens one silences all.
//
// # Samples
//
// Converters have 12 bits. Full scale is 2047: an amplitude of 1 is sent as 2047,
// in the upper 12 of 16 bits, and 2047 is received as 1. What is above is limited,
// counted, and told by radio.Clipped or radio.ClipCounter. How samples lie in
// memory, and which devices and channels they are of, is read from the board's
// description.
//
// # Two streams
//
// A board receives and transmits at once, at one sample rate. Each stream has a
// connection of its own and blocks on the board, 4 unless told otherwise, each of
// some 20 ms; settings have a third connection. Blocks are also the delay between
// what is handed over and what is on air.
//
// # Losses
//
// The board's converter cores have a register that tells that samples were lost
// since it was last asked. The driver asks after each block, and at once by
// CheckLoss. On receive the loss lies within the blocks that the board holds, so it
// is a gap that is not exact at the end of that stretch, and the stretch has an
// epoch of its own. What the host itself drops because nobody reads is counted
// exactly. On transmit a shortfall is an Underrun and an EpochChanged event without
// exact indices, and from then on the board is behind the index by what is not
// known. A board without that register tells nothing, and Info says so.
//
// A retune is placed likewise: samples that were in the board's blocks have an
// epoch of their own.
//
// # Feeding a transmitter
//
// Index n is the n-th sample handed to the board since Start. With feed=fill, the
// default, the driver hands over zeros wherever the program has nothing, always: the
// index goes on with time, and a timed block whose index has gone by is a Late
// event (see radio.Pacer). With feed=strict it hands over what was written or
// promised by Idle and nothing else, in pairs of samples, so that what is sent
// depends on the program's calls alone. That is for benches in which time waits. On
// a real board strict feeding means shortfalls. Close sends what was written in
// either mode.
//
// # What keeps the carrier off
//
// Nothing is sent without a radio.TransmitPermit for the frequency and the gain, and
// without a radio.Guard that watches over the board. When a transmitter is opened the
// board is set to its greatest attenuation, its oscillator is switched off and so are the
// tones of its synthesizer, which sends by itself when no samples come; all this for each of
// its channels. It is undone for the one in use when the stream starts, but for the tones,
// and done again when it is closed, when it
// fails, when the session ends, when the guard is lost and when a panic takes the feeding
// goroutine down. However else the program ends, or when it stands still for longer than
// limit_ms, the guard does it (see Switch).
//
// Where nothing is left to do it, because the host hangs or dies, or program and guard are
// killed at once, samples end with the blocks that the board holds, but nothing on the
// board switches the oscillator off or the attenuator up: what leaks through goes on until
// someone opens the board, or unplugs it. A board with power of its own goes on when its
// host has none. Info says so.
package pluto
