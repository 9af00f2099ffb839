// Package air reduces what a receiver hears to what a viewer's screen can show.
//
// It takes in blocks of samples as a receiver reads them and frames as it had them
// (chart.LinkView), and gives spectra with average and peak hold, lines of a waterfall, and
// frames' constellations, eyes and teeth, as binary messages of package watch. It knows no
// experiment and no network. Who receives never waits for it: what nobody looks at is not
// taken, and what comes too fast is left out.
//
// # Messages
//
// The headers of the binary messages have a field kind. Frequencies are in hertz, from the
// carrier: centre_hz, 0 where it is not known. Powers are in dB of full scale, or of
// amplitude 1 where a receiver has none, of a column's strongest bin.
//
//	{"kind":"spectrum","columns":N,"low_hz":L,"high_hz":H,"centre_hz":C,"bin_hz":B,"seconds":T}
//
// has 3 N float32: the newest spectrum, the average, and the peak hold since it was reset.
// Column k is of frequencies from L + k (H-L)/N up to L + (k+1)(H-L)/N.
//
//	{"kind":"waterfall","columns":N,"lines":M,"low_db":A,"high_db":B,"low_hz":L,"high_hz":H,"seconds":[...]}
//
// has M lines of N bytes, the oldest first: v is A + v (B-A)/255 dB. Seconds are the times
// of the lines, by the samples' index over the rate.
//
//	{"kind":"frame","name":"round 3, attempt 1, b","failure":"","alpha":5,"snr_db":33,
//	 "symbols":K,"soft":S,"traces":R,"trace_points":P,"bins":D,"bin_width":W,
//	 "teeth":[{"from":0.7,"to":1.3,"integer":1},...],"plain":false,"margin":0.2,
//	 "phase_points":Q}
//
// has 2 K float32 of symbols in the plane (along the common axis, beside it), S of soft
// symbols in their order, both times alpha so that the lattice is the integers (times 1
// where alpha is 0: no scale is known), R times P of an eye over the two symbols from -1 to
// 1 about a symbol's middle, D of the density of |alpha y| in bins of W, and Q times 3 of
// phases: seconds, radians as seen, radians as tracked (NaN where it was not). Names are of
// the field's parts in chart.LinkView.
package air
