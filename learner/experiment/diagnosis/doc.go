// Package diagnosis says why frames of a waveform link were not read, from what its
// receiver saw of them and nothing else: no channel state, and no fault that a simulation
// was told of.
//
// A Tally takes in frames, a Report is what the lost ones had in common, and its Causes are
// sentences with figures and with what to do, the likeliest first.
package diagnosis
