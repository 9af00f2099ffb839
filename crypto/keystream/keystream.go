// Package keystream turns one seed into any number of named streams of
// pseudorandom bytes.
//
// It takes in a 256-bit Seed (from a user's integer, or from crypto/rand) and
// gives derived seeds, by name, and streams, by round and attempt. A stream's
// bytes depend on its seed, its round and its attempt alone: never on how many
// other streams exist, on the order in which they are read, or on the number of
// cores. It knows nothing of what the bytes are for.
//
// Secret seeds are handled by pointer (FromSystem, DeriveSecret, DeriveStream), so
// that one Wipe overwrites the only copy. After Wipe of the seeds and of the streams
// made from them nothing of a secret is left in the variables of this package or of
// the standard library's AES and SHA-256: no seed, no key schedule, no hash state, no
// stack frame in which they were. What Go offers no way to overwrite is said in
// package secret. Derive and Stream return and take seeds by value: they are for seeds
// that protect nothing, such as those of simulated channels.
package keystream

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"ringwave/crypto/secret"
	"ringwave/crypto/vector"
)

// Seed is the root of a tree of named streams. Who holds a Seed can compute all
// that is derived from it.
type Seed [32]byte

// FromInteger returns the root seed for a user's integer. It holds at most 64
// bits of entropy: it is for experiments that can be repeated, not for secrets.
func FromInteger(seed uint64) Seed {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	return Seed(sha256.Sum256(append([]byte("ringwave root seed v1 "), b[:]...)))
}

// FromSystem returns a seed of 256 bits from the operating system's generator. The
// caller wipes it.
func FromSystem() (*Seed, error) {
	s := new(Seed)
	if _, err := rand.Read(s[:]); err != nil {
		return nil, fmt.Errorf("reading the system's random generator: %w", err)
	}
	return s, nil
}

// Derive returns the seed of the given name and indices: HMAC-SHA-256 under s of
// the length-prefixed name followed by the indices, so that no two different
// names or lists of indices share an input. It is for seeds that are not secret:
// for others, see DeriveSecret.
func (s Seed) Derive(name string, index ...uint64) Seed {
	var derived Seed
	s.derive(&derived, name, index)
	return derived
}

// DeriveSecret returns what Derive does and leaves no other copy of it. The caller
// wipes it.
func (s *Seed) DeriveSecret(name string, index ...uint64) *Seed {
	derived := new(Seed)
	secret.Do(func() { s.derive(derived, name, index) })
	return derived
}

// DeriveStream returns the stream of the seed of the given name and indices, and
// leaves no copy of that seed. The caller wipes the stream.
func (s *Seed) DeriveStream(name string, index ...uint64) *Stream {
	key := s.DeriveSecret(name, index...)
	defer key.Wipe()
	var stream *Stream
	secret.Do(func() { stream = newStream(key) })
	return stream
}

// The bytes with which HMAC (RFC 2104) masks a key before the inner and before the
// outer hash.
const (
	innerPad = 0x36
	outerPad = 0x5c
)

// derive sets dst to the seed of the given name and indices. It is HMAC over a hash
// and a key block that can be overwritten, which those of crypto/hmac cannot.
func (s *Seed) derive(dst *Seed, name string, index []uint64) {
	var key [sha256.BlockSize]byte
	hash := sha256.New()
	defer func() {
		clear(key[:])
		secret.Clear(hash)
	}()
	s.pad(&key, innerPad)
	hash.Write(key[:])
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(len(name)))
	hash.Write(b[:])
	hash.Write([]byte(name))
	for _, i := range index {
		binary.BigEndian.PutUint64(b[:], i)
		hash.Write(b[:])
	}
	hash.Sum(dst[:0]) // of the inner hash, for as long as it takes to hash it
	hash.Reset()
	s.pad(&key, outerPad)
	hash.Write(key[:])
	hash.Write(dst[:])
	hash.Sum(dst[:0])
}

// pad sets key to the seed, with zeros behind it, masked with the byte mask.
func (s *Seed) pad(key *[sha256.BlockSize]byte, mask byte) {
	n := copy(key[:], s[:])
	clear(key[n:])
	for i := range key {
		key[i] ^= mask
	}
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
// The first 12 bytes of a counter block are round, attempt and a chunk count, 32 bits
// each; the last four count from 2 in each chunk, as GCM does. It is computed in vectors
// (see package vector) or else by the standard library.
//
// A Stream is for one goroutine.
type Stream struct {
	vectors vectors
	sealer  sealer // where vectors do not serve
	first   [16]byte
	chunk   uint32
	pos     int // bytes of buf already given out
	buf     [chunkSize + tagSize]byte
}

// Stream returns the stream whose AES key is s, started at round 0, attempt 0. It is
// for seeds that are not secret: for others, see DeriveStream.
func (s Seed) Stream() *Stream { return newStream(&s) }

func newStream(key *Seed) *Stream { return newStreamOn(key, vector.Fastest()) }

func newStreamOn(key *Seed, path vector.Path) *Stream {
	st := &Stream{}
	if !st.vectors.expand(key, path) {
		st.sealer = newSealer(key)
	}
	st.first[15] = 2
	st.Start(0, 0)
	return st
}

// Start restarts the stream at the first byte of the given round and attempt.
func (s *Stream) Start(round, attempt uint32) {
	binary.BigEndian.PutUint32(s.first[0:], round)
	binary.BigEndian.PutUint32(s.first[4:], attempt)
	s.chunk = 0
	s.pos = chunkSize
}

func (s *Stream) refill() {
	binary.BigEndian.PutUint32(s.first[8:], s.chunk)
	s.chunk++
	if s.chunk == 0 {
		panic("keystream: more than 8 TiB drawn from one stream")
	}
	if !s.vectors.fill(s.buf[:chunkSize], &s.first) {
		s.sealer.fill(&s.buf, s.first[:12])
	}
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

// Uint64 returns the next eight bytes of the stream, little-endian.
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

// Wipe overwrites the bytes that the stream holds ready and the expanded AES key. The
// stream is of no use afterwards.
func (s *Stream) Wipe() {
	s.vectors.wipe()
	s.sealer.wipe()
	clear(s.buf[:])
	s.pos = chunkSize
}

// sealer computes chunks as AES-GCM that seals zeros, the one form of CTR in Go's
// standard library that takes a new nonce without a new object; the tag is thrown away.
type sealer struct {
	block cipher.Block // which aead may refer to: kept to be wiped with it
	aead  cipher.AEAD
}

func newSealer(key *Seed) sealer {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("keystream: a 32-byte AES key was refused: " + err.Error())
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("keystream: AES-GCM is not available: " + err.Error())
	}
	return sealer{block, aead}
}

func (s *sealer) fill(buf *[chunkSize + tagSize]byte, nonce []byte) {
	clear(buf[:])
	s.aead.Seal(buf[:0], nonce, buf[:chunkSize], nil)
}

func (s *sealer) wipe() {
	secret.Clear(s.aead)
	secret.Clear(s.block)
	*s = sealer{}
}
