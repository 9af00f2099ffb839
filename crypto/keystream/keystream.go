// Package keystream turns one seed into any number of named streams of
// pseudorandom bytes.
//
// It takes in a 256-bit Seed (from a user's integer, or from crypto/rand) and
// gives derived seeds, by name, and streams, by round and attempt. A stream's
// bytes depend on its seed, its round and its attempt alone: never on how many
// other streams exist, on the order in which they are read, or on the number of
// cores. It knows nothing of what the bytes are for.
package keystream

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Seed is the root of a tree of named streams. Who holds a Seed can compute all
// that is derived from it.
type Seed [32]byte

// FromInteger gives the root seed for a user's integer. It holds at most 64
// bits of entropy: it is for experiments that can be repeated, not for secrets.
func FromInteger(seed uint64) Seed {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	return Seed(sha256.Sum256(append([]byte("ringwave root seed v1 "), b[:]...)))
}

// FromSystem gives a seed of 256 bits from the operating system's generator.
func FromSystem() (Seed, error) {
	var s Seed
	if _, err := rand.Read(s[:]); err != nil {
		return Seed{}, fmt.Errorf("reading the system's random generator: %w", err)
	}
	return s, nil
}

// Derive gives the seed of the given name and indices: HMAC-SHA-256 under s of
// the length-prefixed name followed by the indices, so that no two different
// names or lists of indices share an input.
func (s Seed) Derive(name string, index ...uint64) Seed {
	mac := hmac.New(sha256.New, s[:])
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(len(name)))
	mac.Write(b[:])
	mac.Write([]byte(name))
	for _, i := range index {
		binary.BigEndian.PutUint64(b[:], i)
		mac.Write(b[:])
	}
	return Seed(mac.Sum(nil))
}

// String keeps a seed out of logs and errors.
func (s Seed) String() string { return "(a seed)" }

// GoString does so for %#v.
func (s Seed) GoString() string { return s.String() }

// Wipe overwrites the seed.
func (s *Seed) Wipe() { clear(s[:]) }

const (
	chunkSize = 2048
	tagSize   = 16
)

// Stream is an AES-256-CTR keystream that can be restarted at any (round,
// attempt) without allocating. It implements math/rand/v2's Source.
//
// The counter mode is that of AES-GCM sealing zeros, the one form of CTR in
// Go's standard library that takes a new nonce without a new object; the tag is
// thrown away. The nonce is round, attempt and a chunk count, 32 bits each.
//
// A Stream is for one goroutine.
type Stream struct {
	aead  cipher.AEAD
	nonce [12]byte
	chunk uint32
	pos   int // bytes of buf already given out
	buf   [chunkSize + tagSize]byte
}

// Stream gives the stream whose AES key is s, started at round 0, attempt 0.
func (s Seed) Stream() *Stream {
	block, err := aes.NewCipher(s[:])
	if err != nil {
		panic("keystream: a 32-byte AES key was refused: " + err.Error())
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("keystream: AES-GCM is not available: " + err.Error())
	}
	st := &Stream{aead: aead}
	st.Start(0, 0)
	return st
}

// Start restarts the stream at the first byte of the given round and attempt.
func (s *Stream) Start(round, attempt uint32) {
	binary.BigEndian.PutUint32(s.nonce[0:], round)
	binary.BigEndian.PutUint32(s.nonce[4:], attempt)
	s.chunk = 0
	s.pos = chunkSize
}

func (s *Stream) refill() {
	binary.BigEndian.PutUint32(s.nonce[8:], s.chunk)
	s.chunk++
	if s.chunk == 0 {
		panic("keystream: more than 8 TiB drawn from one stream")
	}
	clear(s.buf[:])
	s.aead.Seal(s.buf[:0], s.nonce[:], s.buf[:chunkSize], nil)
	s.pos = 0
}

// Fill writes the next len(dst) bytes of the stream to dst.
func (s *Stream) Fill(dst []byte) {
	for len(dst) > 0 {
		if s.pos == chunkSize {
			s.refill()
		}
		n := copy(dst, s.buf[s.pos:chunkSize])
		s.pos += n
		dst = dst[n:]
	}
}

// Uint64 gives the next eight bytes of the stream, little-endian.
func (s *Stream) Uint64() uint64 {
	if s.pos+8 <= chunkSize {
		v := binary.LittleEndian.Uint64(s.buf[s.pos:])
		s.pos += 8
		return v
	}
	var b [8]byte
	s.Fill(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Wipe overwrites the bytes that the stream holds ready. The expanded AES key
// lives in Go's cipher object, which offers no way to clear it: drop the Stream
// afterwards.
func (s *Stream) Wipe() {
	clear(s.buf[:])
	s.pos = chunkSize
	s.aead = nil
}
