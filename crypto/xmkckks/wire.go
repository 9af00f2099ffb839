package xmkckks

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"ringwave/phy/zq"
)

// Kind is what a message carries.
type Kind uint8

// The messages of the protocol, up (b, c0, c1, D) and down (b~, c~1, M).
const (
	KindKey Kind = iota + 1
	KindC0
	KindC1
	KindShare
	KindAggregatedKey
	KindAggregatedC1
	KindUpdate
)

// String returns the paper's symbol.
func (k Kind) String() string {
	names := [...]string{"", "b", "c0", "c1", "D", "b~", "c~1", "M"}
	if int(k) < len(names) && k != 0 {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// FromServer is the Device of a Header whose sender is the server.
const FromServer = math.MaxUint32

// Header names a message.
type Header struct {
	Kind                          Kind
	Device, Epoch, Round, Attempt uint32
}

// Fingerprint identifies a Context: messages of different parameter sets, forms
// or public polynomials do not mix.
type Fingerprint [8]byte

// Fingerprint returns the first 64 bits of SHA-256 over the parameters and a.
func (c *Context) Fingerprint() Fingerprint { return c.fingerprint }

// computeFingerprint takes the residues of a's transform, in lattigo's order.
func (c *Context) computeFingerprint(a zq.Vector) Fingerprint {
	p := c.Params
	h := sha256.New()
	fmt.Fprintf(h, "n=%d primes=%d lambda=2^%d s=%v v=%v e=%v e0=%v e1=%v share=%v flood=2^%v form=%v witnesses=%d ",
		p.N, p.Primes, p.LogLambda, p.Secret, p.Ephemeral, p.KeyError, p.Error0, p.Error1, p.ShareError, p.LogFlood, c.Form, c.Witnesses)
	if c.Messages > 1 { // so that one leaves the text as it was before there were more
		fmt.Fprintf(h, "messages=%d ", c.Messages)
	}
	io.WriteString(h, "a=")
	// Hashed is the beginning of the SHA-256 of the Montgomery form of a, 2^64 a, as it was
	// when that form was kept.
	form := sha256.New()
	for j, prime := range p.Primes {
		b := make([]byte, 0, 8*p.N)
		for _, x := range a[j] {
			b = binary.LittleEndian.AppendUint64(b, bits.Rem64(x, 0, prime))
		}
		form.Write(b)
	}
	h.Write(form.Sum(nil)[:16])
	return Fingerprint(h.Sum(nil)[:8])
}

// A message is
//
//	magic "RWMK", version 1, kind, two zero bytes,
//	fingerprint (8), device, epoch, round, attempt (4 each), payload length in bytes (4),
//	payload
//
// with integers little-endian. The payload of a vector packs, coefficient by
// coefficient and prime by prime, each residue in as many bits as its prime has,
// lowest bit first; the last byte is filled with zero bits. That of M is a
// float64 for each message. There is exactly one encoding of each value, and nothing
// else is taken.
const (
	wireMagic   = "RWMK"
	wireVersion = 1
	headerSize  = 8 + 8 + 5*4
)

// ErrWire says that bytes are no message of this context.
var ErrWire = errors.New("not a message of this run")

// coefficients returns the number of coefficients of a kind, 0 for the update.
func (c *Context) coefficients(k Kind) (int, error) {
	switch k {
	case KindKey, KindC1, KindAggregatedKey, KindAggregatedC1:
		return c.Params.N, nil
	case KindC0, KindShare:
		return c.Revealed(), nil
	case KindUpdate:
		return 0, nil
	}
	return 0, fmt.Errorf("%w: its kind is %d: allowed are 1 to %d", ErrWire, uint8(k), uint8(KindUpdate))
}

// AppendVector appends the message of a vector to b.
func (c *Context) AppendVector(b []byte, h Header, v zq.Vector) ([]byte, error) {
	n, err := c.coefficients(h.Kind)
	if err != nil {
		return nil, err
	}
	if h.Kind == KindUpdate {
		return nil, fmt.Errorf("encoding %v: it is a number, not a vector", h.Kind)
	}
	if err := c.mod.Valid(v, n); err != nil {
		return nil, fmt.Errorf("encoding %v: %w", h.Kind, err)
	}
	size := (n*c.Params.CoefficientBits() + 7) / 8
	b = c.appendHeader(b, h, size)
	return c.appendPacked(b, v, n), nil
}

// AppendUpdate appends the message of the context's P values of M_k to b.
func (c *Context) AppendUpdate(b []byte, h Header, m []float64) ([]byte, error) {
	if err := c.checkMessages(len(m)); err != nil {
		return nil, fmt.Errorf("encoding %v: %w", KindUpdate, err)
	}
	h.Kind = KindUpdate
	b = c.appendHeader(b, h, 8*len(m))
	for _, x := range m {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b, nil
}

func (c *Context) appendHeader(b []byte, h Header, payload int) []byte {
	b = append(b, wireMagic...)
	b = append(b, wireVersion, byte(h.Kind), 0, 0)
	f := c.Fingerprint()
	b = append(b, f[:]...)
	for _, x := range []uint32{h.Device, h.Epoch, h.Round, h.Attempt, uint32(payload)} {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func (c *Context) appendPacked(b []byte, v zq.Vector, n int) []byte {
	var hold uint64 // fill bits, at most 7 between two residues
	fill := 0
	for k := range n {
		for j, p := range c.Params.Primes {
			hold |= v[j][k] << fill // 57 bits and 7
			fill += bits.Len64(p)
			for ; fill >= 8; fill -= 8 {
				b = append(b, byte(hold))
				hold >>= 8
			}
		}
	}
	if fill > 0 {
		b = append(b, byte(hold))
	}
	return b
}

// DecodeHeader reads the header of a message of this context and checks that
// the payload has the length that its kind asks for.
func (c *Context) DecodeHeader(b []byte) (Header, error) {
	if len(b) < headerSize {
		return Header{}, fmt.Errorf("%w: %d bytes, and the header alone has %d", ErrWire, len(b), headerSize)
	}
	if string(b[:4]) != wireMagic {
		return Header{}, fmt.Errorf("%w: it begins with %q, expected %q", ErrWire, b[:4], wireMagic)
	}
	if b[4] != wireVersion {
		return Header{}, fmt.Errorf("%w: its version is %d, expected %d", ErrWire, b[4], wireVersion)
	}
	if b[6] != 0 || b[7] != 0 {
		return Header{}, fmt.Errorf("%w: bytes 6 and 7 are %d and %d, expected zeros", ErrWire, b[6], b[7])
	}
	if f := c.Fingerprint(); Fingerprint(b[8:16]) != f {
		return Header{}, fmt.Errorf("%w: its parameter fingerprint is %x, ours is %x", ErrWire, b[8:16], f)
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[16+4*i:]) }
	h := Header{Kind: Kind(b[5]), Device: word(0), Epoch: word(1), Round: word(2), Attempt: word(3)}
	n, err := c.coefficients(h.Kind)
	if err != nil {
		return Header{}, err
	}
	want := (n*c.Params.CoefficientBits() + 7) / 8
	if h.Kind == KindUpdate {
		want = 8 * c.Messages
	}
	if int(word(4)) != want || len(b)-headerSize != want {
		return Header{}, fmt.Errorf("%w: a payload of %d bytes announced and %d there, %v has %d", ErrWire, word(4), len(b)-headerSize, h.Kind, want)
	}
	return h, nil
}

// DecodeVector reads a message that carries a vector into v, which has the
// kind's number of coefficients. On an error v may be partly overwritten.
func (c *Context) DecodeVector(b []byte, v zq.Vector) (Header, error) {
	h, err := c.DecodeHeader(b)
	if err != nil {
		return Header{}, err
	}
	n, err := c.coefficients(h.Kind)
	if err != nil || n == 0 {
		return Header{}, fmt.Errorf("%w: %v where a vector was expected", ErrWire, h.Kind)
	}
	if len(v) != len(c.Params.Primes) || v.Len() != n {
		return Header{}, fmt.Errorf("decoding %v: room for %d coefficients, it has %d", h.Kind, v.Len(), n)
	}
	return h, c.unpack(b[headerSize:], v, n)
}

func (c *Context) unpack(b []byte, v zq.Vector, n int) error {
	var hold uint64
	fill, pos := 0, 0
	for k := range n {
		for j, p := range c.Params.Primes {
			width := bits.Len64(p)
			for ; fill < width; fill += 8 { // fill stays at most 64
				hold |= uint64(b[pos]) << fill
				pos++
			}
			x := hold & (1<<width - 1)
			hold >>= width
			fill -= width
			if x >= p {
				return fmt.Errorf("%w: coefficient %d is %d modulo the prime %d: it must be below it", ErrWire, k, x, p)
			}
			v[j][k] = x
		}
	}
	if hold != 0 {
		return fmt.Errorf("%w: the filling bits of the last byte are not zero", ErrWire)
	}
	return nil
}

// DecodeUpdate reads the message of the context's P values of M_k into m. All must be
// finite. On an error m may be partly overwritten.
func (c *Context) DecodeUpdate(b []byte, m []float64) (Header, error) {
	h, err := c.DecodeHeader(b)
	if err != nil {
		return Header{}, err
	}
	if h.Kind != KindUpdate {
		return Header{}, fmt.Errorf("%w: %v where M was expected", ErrWire, h.Kind)
	}
	if err := c.checkMessages(len(m)); err != nil {
		return Header{}, fmt.Errorf("decoding %v: %w", h.Kind, err)
	}
	for p := range m {
		m[p] = math.Float64frombits(binary.LittleEndian.Uint64(b[headerSize+8*p:]))
		if math.IsNaN(m[p]) || math.IsInf(m[p], 0) {
			return Header{}, fmt.Errorf("%w: M is %v: it must be finite", ErrWire, m[p])
		}
	}
	return h, nil
}
