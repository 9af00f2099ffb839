package frame

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// Header names a frame: all devices of a group send the same, so that its
// superposition has the sign of each symbol (the sum of the gains being positive
// after the common phase is taken out).
type Header struct {
	// Run identifies the run, so that frames of another are told apart.
	Run uint16
	// Round and Attempt are those of slot.Slot; Transmission is its transmission, 0 to
	// 3, and 4 times how often that was sent again.
	Round        uint32
	Attempt      uint16
	Transmission uint8
	// Group is the devices' group. Repeat counts frames of the same payload, under new
	// check weights.
	Group  uint16
	Repeat uint8
}

// A header is 12 bytes and the low 32 bits of their CRC-32C, one symbol a bit,
// highest bit first, +1 for 0 and -1 for 1, every other symbol turned over.
const (
	headerBytes = 12
	// HeaderSymbols is the length of a header.
	HeaderSymbols = 8 * (headerBytes + 4)
)

// ErrHeader says that symbols are no header.
var ErrHeader = errors.New("not a frame's header")

func (h Header) bytes() (b [headerBytes + 4]byte) {
	for i, v := range []struct {
		value uint32
		size  int
	}{
		{uint32(h.Run), 2}, {h.Round, 4}, {uint32(h.Attempt), 2}, {uint32(h.Transmission), 1}, {uint32(h.Group), 2}, {uint32(h.Repeat), 1},
	} {
		at := [...]int{0, 2, 6, 8, 9, 11}[i]
		for k := range v.size {
			b[at+k] = byte(v.value >> (8 * (v.size - 1 - k)))
		}
	}
	sum := crc32.Checksum(b[:headerBytes], crc32.MakeTable(crc32.Castagnoli))
	for k := range 4 {
		b[headerBytes+k] = byte(sum >> (24 - 8*k))
	}
	return b
}

// Soft appends the header's symbols to dst, of the given level.
func (h Header) Soft(dst []float32, level int8, f Format) []float32 {
	var symbols [HeaderSymbols]int8
	h.Symbols(symbols[:], f)
	for _, s := range symbols {
		dst = append(dst, float32(s*level))
	}
	return dst
}

// Symbols writes the header to dst, of HeaderSymbols symbols.
func (h Header) Symbols(dst []int8, f Format) {
	b := h.bytes()
	for i := range dst[:HeaderSymbols] {
		dst[i] = 1 - 2*int8(b[i/8]>>(7-i%8)&1)
		if i%2 == 1 && f.alternates() {
			dst[i] = -dst[i]
		}
	}
}

// DecodeHeader reads a header from soft symbols by their signs.
func DecodeHeader(y []float32, f Format) (Header, error) {
	if len(y) < HeaderSymbols {
		return Header{}, fmt.Errorf("%w: %d symbols, it has %d", ErrHeader, len(y), HeaderSymbols)
	}
	var b [headerBytes + 4]byte
	for i, v := range y[:HeaderSymbols] {
		if v == 0 || math.IsNaN(float64(v)) {
			return Header{}, fmt.Errorf("%w: symbol %d is %v, neither positive nor negative", ErrHeader, i, v)
		}
		if v < 0 != (i%2 == 1 && f.alternates()) {
			b[i/8] |= 1 << (7 - i%8)
		}
	}
	u16 := func(i int) uint16 { return uint16(b[i])<<8 | uint16(b[i+1]) }
	h := Header{
		Run: u16(0), Round: uint32(u16(2))<<16 | uint32(u16(4)), Attempt: u16(6),
		Transmission: b[8], Group: u16(9), Repeat: b[11],
	}
	if h.bytes() != b {
		return Header{}, fmt.Errorf("%w: its CRC-32C does not match", ErrHeader)
	}
	return h, nil
}
