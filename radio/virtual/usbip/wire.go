package usbip

import (
	"encoding/binary"
	"fmt"
)

// Commands, in the first four bytes of a message. All numbers are big-endian.
const (
	cmdSubmit = 1
	cmdUnlink = 2
	retSubmit = 3
	retUnlink = 4

	headerLength = 48
	// maxTransfer bounds what a peer can make this program set aside.
	maxTransfer = 16 << 20
)

// The kernel's numbers of what a transfer ended in.
const (
	statusStall     int32 = -32  // EPIPE
	statusProtocol  int32 = -71  // EPROTO
	statusReset     int32 = -104 // ECONNRESET: unlinked
	statusUnplugged int32 = -108 // ESHUTDOWN
)

// command is what a kernel asks.
type command struct {
	number   uint32
	sequence uint32
	in       bool
	endpoint byte    // its number
	length   int     // of the data in bytes
	setup    [8]byte // of endpoint 0
	victim   uint32  // the sequence that is to be unlinked
}

// parse reads a header.
func parse(b *[headerLength]byte) (c command, err error) {
	word := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	c.number, c.sequence = word(0), word(4)
	switch c.number {
	case cmdUnlink:
		c.victim = word(20)
		return c, nil
	case cmdSubmit:
	default:
		return c, fmt.Errorf("USB/IP: command %d; allowed is %d (submit) or %d (unlink)", c.number, cmdSubmit, cmdUnlink)
	}
	endpoint, length := word(16), word(24)
	if endpoint > 15 {
		return c, fmt.Errorf("USB/IP: endpoint %d; allowed is 0 to 15", endpoint)
	}
	if length > maxTransfer {
		return c, fmt.Errorf("USB/IP: a transfer of %d bytes; allowed is at most %d", length, maxTransfer)
	}
	// Of transfers without isochronous packets, kernels say 0 or -1.
	if n := word(32); n != 0 && n != 0xffffffff {
		return c, fmt.Errorf("USB/IP: a transfer of %d isochronous packets; allowed is none", n)
	}
	c.in = word(12) == 1
	c.endpoint, c.length = byte(endpoint), int(length)
	copy(c.setup[:], b[40:])
	return c, nil
}

// submitted makes the answer to a submit, data of a transfer in included.
func submitted(sequence uint32, status int32, actual int, data []byte) []byte {
	b := make([]byte, headerLength, headerLength+len(data))
	binary.BigEndian.PutUint32(b[0:], retSubmit)
	binary.BigEndian.PutUint32(b[4:], sequence)
	binary.BigEndian.PutUint32(b[20:], uint32(status))
	binary.BigEndian.PutUint32(b[24:], uint32(actual))
	return append(b, data...)
}

// unlinked makes the answer to an unlink.
func unlinked(sequence uint32, status int32) []byte {
	b := make([]byte, headerLength)
	binary.BigEndian.PutUint32(b[0:], retUnlink)
	binary.BigEndian.PutUint32(b[4:], sequence)
	binary.BigEndian.PutUint32(b[20:], uint32(status))
	return b
}
