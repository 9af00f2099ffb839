// Package rtltcp receives from a board with an RTL2832U that an rtl_tcp server
// shares over a network.
//
// It takes in a server's address and gives a radio.Device that receives. It knows
// nothing of USB boards; gains and sample rates are those of package rtlsdr. It was
// tried with Debian's rtl_tcp in front of an emulated board, never with a real one.
//
// # What the protocol does not tell
//
// The server acknowledges nothing: a setting that is given as taken was sent, and
// whether the board took it nobody knows. It drops samples without a word if the
// network is slow; the driver counts only what it drops itself because nobody read.
// Nobody marks the sample at which a retune took effect either, so the epoch after
// it begins when a time has passed that is longer than samples are expected to be
// on their way (the parameter settle_ms, and 131,072 samples that the server fetches
// from its board at once). The same holds for a start: the server sends from the
// moment it is connected.
//
// # When the connection is lost
//
// A read, a setting or a start connects again and sends all settings anew. A stream
// goes on with a gap of unknown length and a new epoch. A read tries for as long as
// a stream may be silent, and fails then; the next tries again.
package rtltcp
