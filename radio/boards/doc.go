// Package boards is the list of the radios there are: which drivers open which URIs,
// which boards on USB each is for, and what a user can do about one that cannot be
// opened.
//
// It takes in a USB host, a permit, a guard and the drivers that a program brings along,
// and returns a registry that opens devices by URI, and an inventory of what is plugged
// in, also as text. A program makes its own Boards; there are none for all. It knows
// nothing of arrays, of runs or of what samples mean, and prints nothing.
//
// # Adding a radio
//
//  1. Write radio/NAME with a radio.Opener. Its Open reads the URI, refuses parameters
//     that it does not know (URI.Only), and returns a radio.Device with OpenReceiver,
//     OpenTransmitter or both. A radio/array, as runs need it, also asks for
//     radio.RateControl and FrequencyControl, and for GainControl where gains are set.
//  2. One that sends asks the radio.TransmitPermit before it tunes and sets gains, and
//     radio.Guard before it switches its transmit chain on; give it a switch for Driver's
//     OpenSwitch, on which another process takes the carrier off.
//  3. Add a Driver to the list in New. For one on USB say its Kinds, and add the line that
//     Rule returns for each to scripts/70-ringwave.rules.
//  4. Give radio/NAME a row in cmd/internal/layers, and tests (see radio/radiotest).
//
// Runs, calibrations, the listing of devices and the guard know it by then; only the help
// of the command devices names drivers besides. A program with a radio of its own leaves
// out 3 and 4, and gives the same Driver in Config.Drivers, or for experiments in
// Lab.Radios of learner/experiment, where the example of Radios is one; NewOpener in
// place of Opener tells it the permit and the guard.
package boards
