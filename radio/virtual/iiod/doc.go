// Package iiod emulates an ADALM-Pluto as it shows itself on the network: its
// iiod, the attributes of its transceiver, and its converters. A Profile makes it one of
// its relatives, with other names, ranges and numbers of antennas.
//
// It takes in two ends of a radio.Device, one that receives and one that
// transmits, and serves them to any client of iiod's text protocol (Debian's
// libiio-utils, for example). What clients transmit goes to the one, what they
// receive comes from the other: with the ends of a loopback.Medium, transmitted
// samples come back through its channel; with a Place for each, the board is on a
// virtual.Bench among others. It knows nothing of channels, and nothing of
// radio/pluto, which is tested with it.
//
// # What is emulated
//
// The commands VERSION, PRINT, TIMEOUT, READ, WRITE, SET BUFFERS_COUNT, OPEN,
// READBUF, WRITEBUF, CLOSE, GETTRIG, SETTRIG, HELP and EXIT; the devices
// ad9361-phy, xadc, cf-ad9361-dds-core-lpc and cf-ad9361-lpc, or those of the profile,
// whose antennas but one lead nowhere. The transmit
// attenuation, the receive gain in manual mode and the powering down of the
// transmit oscillator act on the samples; oscillator frequencies are passed on to
// devices that have them. Samples are 12 bits wide: what is received is rounded,
// of what is transmitted the lower 4 of 16 bits are cut off, as the converter
// does.
//
// # Time
//
// A device that is opened by a client holds a number of blocks, 4 if the client
// says nothing. Time is that of the ends. A medium without a clock goes on as far
// as all transmitters have written and nothing is ever lost; TIMEOUT then bounds
// how long a client waits for another. With a clock, and RealTime, samples are lost
// of who comes late, and the status register 0x80000088 says so as the board's does:
// bit 2 for received samples lost, bit 0 for a transmitter that ran dry.
//
// # What is not
//
// A device that is open for one client is busy for others, where a real iiod
// shares it. Closing drops what was taken and not yet transmitted, as a board
// does. Oscillators, filters, automatic gain control (it stays at the reference
// gain), quadrature errors and tones of the synthesizer are not modelled. Nothing
// here was compared with a real board.
package iiod
