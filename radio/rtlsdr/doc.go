// Package rtlsdr drives receivers with an RTL2832U and an R820T, R820T2 or R828D
// tuner over USB.
//
// It takes in a usb.Host and a URI, and gives a radio.Device that receives. It
// knows nothing of libusb, nor of what is received. It was tried on emulated
// boards only, and its requests compared with those of librtlsdr 0.6.0; no real
// board has been there.
//
// Opener has the URIs. A bias tee that another program left on is switched off, and
// switched on by bias=on alone, where that is permitted.
//
// # What the board does not do
//
// It does not follow a reference clock, has no trigger, and does not say when it
// loses samples: they are lost on the board if the machine fetches nothing for
// longer than the queue of transfers lasts (0.9 s at 2.4 Msps, 0.6 to 1.3 s at other
// rates, unless set otherwise) and some milliseconds, and nothing tells. The driver
// counts what it had to drop because nobody read for longer than its ring lasts
// (0.9 s at 2.4 Msps, longer below). Automatic gains change the phase as well as the amplitude, without
// an epoch.
//
// A synthesizer that does not lock at a frequency is told of by Info, and what comes is
// received all the same, as by librtlsdr.
package rtlsdr
