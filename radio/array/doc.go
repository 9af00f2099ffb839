// Package array opens N transmitters and one receiver as one coherent bench.
//
// It takes in the URIs of devices, one sample rate, one carrier, gains and what the
// user says of clocks and triggers. It gives running streams whose indices count
// from a common start, or the reason why there is none. It knows nothing of frames,
// nor of the drivers behind the URIs.
//
// # What makes devices coherent
//
// One reference clock: with ExternalClock every device must say that it follows the
// one at its input; SharedClock takes the user's word for it, as for boards that
// cannot be asked. Several transmitters on clocks of their own are refused.
//
// One rate and one carrier, as the devices took them. A receiver whose synthesizer has
// coarser steps may be up to 500 Hz beside: what it hears is turned back by the
// difference, which is known. A device that was retuned since is told by Coherent.
//
// One start: with WiredTrigger all transmitters but the first wait for the edge that
// the first gives when it starts, and so does the receiver if it can. Transmitters
// then share an index. A receiver that cannot wait counts from when it happened to
// start: its index differs by a constant, which is to be found with the first frame.
// With SoundedStart no wire is needed: each transmitter starts when it does, as those of
// several hosts must, and Config.Locate finds out at each Start what each counts from, as
// by soundings that the receiver hears (calibration/sounder). The transmitters that are
// given then have the index in common that it found, to within a sample. They must go on by
// themselves (radio.Pacer). This is for several Plutos, too, whose driver knows no trigger.
// With PulsedStart each has a clock that a pulse sets, once a second from one GPS receiver
// (PPS): at a pulse all are set to the same, and all streams start at one time of it. How far
// apart that was is measured by soundings, where Config.Locate is given; more than a sample is
// refused, and so are boards without such a clock or without pulses.
// Without a trigger several transmitters are refused, unless all of them count on one
// clock (radio.TimeControl, as in memory) or stand on a bench in lock-step; and so is a
// reference clock of which a device does not tell.
//
// Phases remain random, and are new after each Start (phy/README.md, section 6).
//
// The package was tried with emulated boards only.
package array
