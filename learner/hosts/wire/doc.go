// Package wire has the messages between the hosts of a bench.
//
// It takes in messages as values and gives their bytes, and back; what the server sends to
// devices is signed. Vectors over Z_q, frames of ring and waveform links, samples, records of
// rounds and the words by which device and server meet have one encoding each. The bus may
// lose, repeat, delay and reorder messages, and each names its run, round, attempt and
// transmission, so that whoever gets it can tell what it is an answer to. The package knows
// nothing of who sends what when, nor of the bus but that it has subjects.
package wire
