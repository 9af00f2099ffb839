// Package bus carries messages between the hosts of a bench, over NATS.
//
// Embed runs a nats-server in this program, from the folder that enrolled the bench; Dial
// connects a host to that or to any other nats-server, with the host's identity. Both speak
// TLS 1.3 under the bench's own authority, and what a host may publish and subscribe is
// identity.Permissions. A Conn takes in payloads up to a bound and gives them to whoever
// subscribed. It knows nothing of what they mean.
//
// The bus may lose, repeat, delay and reorder anything at any time, and nothing wrong may
// follow: NATS without JetStream delivers at most once, a connection that is lost loses what
// was on its way, and hosts retry. Whoever needs an answer asks again until a deadline;
// whoever is asked twice answers the same. Messages are either whole or not there: a long one
// goes in chunks below the server's bound, and SHA-256 over all of it is checked when they
// are put together. That catches what was mixed up on the way, not who made it up: messages
// that must be genuine are signed, for which Message.Digest is at hand.
//
// A bus with a store has a Queue besides: names of jobs, each taken by one host at a time. It
// may lose these, too.
//
// A receiver's memory is bounded by Limits for each sender and in all, so that no sender
// takes another's share; beyond them the oldest unfinished message is dropped.
package bus
