// Package calibration keeps what was measured of a bench: the calibration file.
//
// It takes in the statistics of every device's link as plain numbers with units and
// intervals, and gives one dated TOML file that a person can read, the same bytes for
// the same content; back from the file, checked key by key; and, against a bench as it
// is now, the reasons for which the file does not speak of it any more. It encodes the
// raw gains for NumPy, too. It knows nothing of how anything was measured (see its
// subpackages), of streams, of the protocol or of the command line.
package calibration
