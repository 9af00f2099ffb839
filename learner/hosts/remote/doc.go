// Package remote is the transmitter of a radio that another host has.
//
// It takes in samples to send, as any radio.Device does that transmits, and gives
// requests: bytes, which a Caller brings to the radio's host. There a Host takes them in,
// drives the radio that it opens itself, and gives the answers. The package knows nothing of
// what carries them, of who may ask for what, or of keys, frames and learning.
//
// # At the server
//
// Open returns a radio.Device, with the capabilities that the far one has, of those that
// concern transmitting. Settings are those that the device took when it was last asked. Each
// answer tells how the stream does: its state, tuning epoch, index and events. State, Epoch
// and Event are what was heard last, and so is Earliest, to which the time since is added
// while the stream runs; CheckLoss asks. A stream that is open is asked once a second in any
// case. If that fails, and goes on failing, the next call returns why.
//
// Samples that are sent again and again travel once: a burst is named by its SHA-256 digest,
// and the far host keeps the last few.
//
// # On the way
//
// What carries requests may lose, repeat, delay and reorder them, and is to send the same
// bytes again until it has the answer, by the ID of both. IDs grow; a proxy's begin with the
// time, so that a later one's are greater. A Host does what is asked once for each ID,
// answers a repetition with the same bytes, and ignores whatever is older than what it did
// last. One request is under way at a time: a newer one says that nobody waits for the one
// before, and ends its wait. A new proxy takes the radio over, and the stream of the one
// before is closed.
//
// # Who trusts whom
//
// The far host's own permit, guard and session stand between requests and the radio: whoever
// may ask can have the device send any samples within that permit, and nothing beyond. What
// it refuses comes back as the sentence that it is. When nothing was asked for ten seconds
// the stream is closed: a carrier does not stay on because a server has gone. What the
// device sends itself, as an operation of the application's own (Transmitter.Do), is made on
// its host and goes to its radio: it cannot be read here. In turn what a device tells of
// itself is bounded and checked, and need not be true.
package remote
