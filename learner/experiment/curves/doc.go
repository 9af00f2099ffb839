// Package curves measures how often the blind receiver reads, against SNR, number of
// devices and spread of their gains.
//
// It takes in typed settings and a modem's configuration, and gives for each point the
// shares of blocks that were read at once and within all attempts, with intervals, kept
// in a folder that a stopped measurement goes on from: as JSON, as CSV and as plots, and
// as text for people. A point's result depends on the settings and its own coordinates
// alone, not on cores or sittings. It knows nothing of keys, of learning, or of the flags
// and files that the settings come from, and prints nothing.
package curves
