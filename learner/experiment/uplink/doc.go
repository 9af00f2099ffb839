// Package uplink has the links that carry the transmissions of a round, with what only
// their simulation knows.
//
// It takes in a configuration, its channel and design, and what the run knows of its
// links (LinkStats: a calibration, or what the user assumes), and gives a Link: a
// phy.Uplink that crypto/round sends over, beside it the gains of the simulation, the
// round's figures for metrics.csv, plots and recordings. Ring computes the superposition in
// the ring, to the bit; Waveform sends samples, over the bench in memory or over radios.
// It knows nothing of keys, of training or of run folders but for their recordings.
//
// To add a link: implement Link, make it in New for its value of link.kind, and name that
// in config/keys.go.
package uplink
