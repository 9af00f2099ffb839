package wire

import (
	"bytes"
	"fmt"
	"time"
)

// PresenceNonce is the length of a Presence's nonce, in bytes.
const PresenceNonce = 16

// Presence is the body of Pulse: which process of the server it is that speaks.
type Presence struct {
	// Nonce is drawn when the process begins, Count counts its pulses.
	Nonce []byte
	Count uint64
	// Host names the machine, and Since is when the process began, by its clock.
	Host  string
	Since time.Time
	// Leads reports whether it leads the run of the message, which Name names.
	Leads bool
	Name  string
	// Other is the nonce of another process with the server's identity that this one has
	// heard: a pulse with one's own nonce was sent by who lives. Empty for none.
	Other []byte
	// Ends is when the run is likely to end; zero where that is not known.
	Ends time.Time `json:",omitzero"`
}

// Before reports whether of two processes with one identity p is the one that goes on: the
// one that leads, then the older one.
func (p Presence) Before(q Presence) bool {
	if p.Leads != q.Leads {
		return p.Leads
	}
	if !p.Since.Equal(q.Since) {
		return p.Since.Before(q.Since)
	}
	return bytes.Compare(p.Nonce, q.Nonce) < 0
}

// ParsePresence reads a body.
func ParsePresence(b []byte) (p Presence, err error) {
	if len(b) > maxPresence {
		return p, fmt.Errorf("%w: %d bytes of a server's presence; allowed are up to %d", ErrMessage, len(b), maxPresence)
	}
	if err := ParseJSON(b, &p); err != nil {
		return p, err
	}
	if len(p.Nonce) != PresenceNonce || len(p.Other) != 0 && len(p.Other) != PresenceNonce {
		return p, fmt.Errorf("%w: nonces of %d and %d bytes in a server's presence; allowed are %d, and none for the other", ErrMessage, len(p.Nonce), len(p.Other), PresenceNonce)
	}
	return p, nil
}

// maxPresence bounds a body: names of hosts and runs are short.
const maxPresence = 1 << 14
