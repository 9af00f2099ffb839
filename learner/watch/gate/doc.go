// Package gate is the door of a page that a program serves.
//
// It takes in an address and a handler, and lets in who may come: on this machine's own
// addresses (loopback) with a token that it prints, elsewhere with a token over TLS. It
// refuses what another page in the user's browser may try (another Host or Origin), and
// bounds what anybody can take of connections, memory and time. It does not know what is
// behind it, but that some of it is open to all programs of this machine: metrics.
package gate
