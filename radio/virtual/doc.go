// Package virtual is emulated USB radios, and the bench that joins their antennas.
//
// It takes in control requests and bulk transfers, as a USB host makes them, and
// a description of the bench: which board hears which, at what gain and delay,
// through what distortion and noise, and what wires lie between boards. It gives
// what the boards answer and receive. It knows nothing of how transfers reach it
// (see Host for drivers in the same process, virtual/usbfs and virtual/usbip for
// programs on the same machine), nor of symbols, frames or keys.
//
// It was written from public descriptions of the boards' protocols. Nothing in it
// was compared with a board.
//
// # Time
//
// With a Clock, samples go at their rate as the clock does: boards whose hosts are
// late overrun and underrun. Without one, the bench is in lock-step: time goes on
// only while every transmitting board has samples and every receiving board's host
// waits for some. Then all that is received is a function of what is sent and of
// the order in which boards start, and of nothing else; nothing is ever lost.
//
// Samples are counted on the bench at one rate, that of the board which streams
// first. A board at another rate runs at its own, hears nothing and is not heard.
//
// # Levels
//
// A board's full scale is 1: 128 levels of a HackRF. Gains of settings are plain
// decibels against a reference setting, at which a sample sent is a sample
// received. There is no compression, no image, no leakage and no filter, but that
// what lies beyond half the sample rate is not heard.
package virtual
