// Package bringup tries a bench of real boards for the first time, step by step: whether they
// are there and share a clock, whether their carriers go off, how loud and how clean they are,
// how far their carriers are off, what they lose, whether they start together, and whether one
// encrypted round passes.
//
// It takes in the URIs of the boards, their settings and what is expected of them (Config), with
// functions that open boards, ask for the user's permission, start a second program that
// transmits, and make a round. It returns a Result a step: a verdict, findings of one sentence
// each with what to do, the figures measured with their bounds, spectra and samples.
//
// It knows nothing of the experiment's configuration, of files, of plots or of the command
// line, and prints nothing. Before each step that sends it asks (Config.Ask) and says what
// will be sent. When a step ends, in whatever way, its boards are closed and their carriers off.
//
// # The tone
//
// Each transmitter sends a tone alone while the receiver is tuned beside its carrier, by
// an eighth of the rate. So the lines of a spectrum fall apart, each where it says whose it is:
//
//	0            the receiver's own DC spike
//	carrier      what leaks of the transmitter's oscillator
//	tone         carrier + 3/32 of the rate
//	2c - t       the transmitter's image
//	-t           the receiver's image
//	t + (t - c)  the transmitter's second harmonic; and its third, t + 2 (t - c)
//
// with t the tone and c the carrier, as the receiver measures them. Where they are found is
// counted from the tone that was heard, so that carriers may be off.
//
// The bounds are of boards as they are sold: who calibrates takes more off. They were never
// compared with real boards.
package bringup
