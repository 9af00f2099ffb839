package frame

import "ringwave/crypto/keystream"

// Weights is where the weights of a group's checks come from: a secret of devices and
// server. It is for one goroutine.
type Weights struct{ stream *keystream.Stream }

// NewWeights makes the weights of the devices of one group.
func NewWeights(secret keystream.Seed, group uint64) Weights {
	return Weights{secret.Derive("check weights", group).Stream()}
}

// Of returns the stream of one frame's weights, those of its blocks one behind the
// other. It is another one for every round, attempt, transmission and repeat; the
// group is that of Weights.
func (w Weights) Of(h Header) *keystream.Stream {
	w.stream.Start(h.Round, uint32(h.Attempt)<<16|uint32(h.Transmission)<<8|uint32(h.Repeat))
	return w.stream
}
