// Package blocks is the receive stream of boards that give bytes: those with an RTL2832U,
// whether on USB or behind a server, and those behind SoapySDR.
//
// It takes in blocks of whole samples in a Format, with what was lost before each, and gives
// a radio.Receiver. It knows nothing of boards, nor of where blocks come from.
//
// # What a retune does to the epoch
//
// Nobody marks the sample at which a retune takes effect: when it begins, samples
// of before it are on their way, and when it is done there still are. So it makes
// two epochs. The first is of the samples that may be of before, of after, or of
// the retune itself: it is not to be used. The second, which Epoch gives once the
// retune is done, begins where no sample of before can be left.
package blocks
