package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"ringwave/phy"
	"ringwave/phy/zq"
)

// AppendVector appends a vector's residues, prime by prime, 8 bytes each, lowest first.
func AppendVector(b []byte, v zq.Vector) []byte {
	at := len(b)
	b = slices.Grow(b, 8*len(v)*v.Len())[:at+8*len(v)*v.Len()]
	for _, residues := range v {
		to := b[at:]
		for k, x := range residues {
			binary.LittleEndian.PutUint64(to[8*k:], x)
		}
		at += 8 * len(residues)
	}
	return b
}

// VectorSize returns the length of a vector of n coefficients.
func VectorSize(m *zq.Modulus, n int) int { return 8 * n * len(m.Primes()) }

// takeVector reads a vector of v's length, and returns what is behind it.
func takeVector(b []byte, m *zq.Modulus, v zq.Vector) (rest []byte, err error) {
	n := v.Len()
	if len(b) < VectorSize(m, n) {
		return nil, fmt.Errorf("%w: %d bytes where %d coefficients modulo %d primes have %d", ErrMessage, len(b), n, len(m.Primes()), VectorSize(m, n))
	}
	for j := range v {
		for k := range v[j] {
			v[j][k] = binary.LittleEndian.Uint64(b[8*k:])
		}
		b = b[8*len(v[j]):]
	}
	if err := m.Valid(v, n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return b, nil
}

// ParseVector reads a vector of v's length that is all of b.
func ParseVector(b []byte, m *zq.Modulus, v zq.Vector) error {
	rest, err := takeVector(b, m, v)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes behind a vector", ErrMessage, len(rest))
	}
	return err
}

// AppendRingFrame appends what a device puts on the air of a ring link. A frame names its
// own lengths: who superposes frames knows nothing of what they hold.
func AppendRingFrame(b []byte, f phy.RingFrame) []byte {
	b = slices.Grow(b, 12+(len(f.Pattern)+7)/8+8*len(f.Payload)*(f.Payload.Len()+f.Checks.Len()))
	for _, n := range []int{f.Payload.Len(), f.Checks.Len(), len(f.Pattern)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	minus := make([]bool, len(f.Pattern))
	for t, p := range f.Pattern {
		minus[t] = p < 0
	}
	b = appendBits(b, minus)
	return AppendVector(AppendVector(b, f.Payload), f.Checks)
}

// The most that a ring frame has of each.
const (
	maxCoefficients = 1 << 17
	maxPattern      = 1 << 17
)

// lengths reads three lengths within bounds.
func lengths(b []byte) (payload, checks, pattern int, rest []byte, err error) {
	if len(b) < 12 {
		return 0, 0, 0, nil, fmt.Errorf("%w: %d bytes where lengths should be", ErrMessage, len(b))
	}
	n := [3]uint32{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
	if n[0] == 0 || n[0] > maxCoefficients || n[1] > maxCoefficients || n[2] > maxPattern {
		return 0, 0, 0, nil, fmt.Errorf("%w: %d coefficients, %d checks and %d symbols of a pattern; allowed are 1 to %d, and up to %d and %d", ErrMessage, n[0], n[1], n[2], maxCoefficients, maxCoefficients, maxPattern)
	}
	return int(n[0]), int(n[1]), int(n[2]), b[12:], nil
}

// ParseRingFrame reads a frame that is all of b.
func ParseRingFrame(b []byte, m *zq.Modulus) (f phy.RingFrame, err error) {
	payload, checks, pattern, b, err := lengths(b)
	if err != nil {
		return f, err
	}
	if want := (pattern+7)/8 + VectorSize(m, payload) + VectorSize(m, checks); len(b) != want {
		return f, fmt.Errorf("%w: a frame has %d bytes behind its lengths, which say %d", ErrMessage, len(b), want)
	}
	minus, b := takeBits(b, pattern)
	f = phy.RingFrame{Payload: m.NewVector(payload), Checks: m.NewVector(checks), Pattern: make([]int8, pattern)}
	for t := range f.Pattern {
		f.Pattern[t] = 1
		if minus[t] {
			f.Pattern[t] = -1
		}
	}
	if b, err = takeVector(b, m, f.Payload); err != nil {
		return f, err
	}
	return f, ParseVector(b, m, f.Checks)
}

// AppendReception appends what arrives over a ring link, not yet judged: the superposition
// and its check coefficients.
func AppendReception(b []byte, rx *phy.Reception, chk zq.Vector) []byte {
	b = slices.Grow(b, 20+8*len(rx.Pattern)+8*len(rx.Y)*(rx.Y.Len()+chk.Len()))
	for _, n := range []int{rx.Y.Len(), chk.Len(), len(rx.Pattern)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(rx.Alpha))
	for _, x := range rx.Pattern {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return AppendVector(AppendVector(b, rx.Y), chk)
}

// ParseReception reads what arrived into rx and chk, whose lengths it must have.
func ParseReception(b []byte, m *zq.Modulus, rx *phy.Reception, chk zq.Vector) error {
	payload, checks, pattern, b, err := lengths(b)
	if err != nil {
		return err
	}
	if payload != rx.Y.Len() || checks != chk.Len() || pattern != len(rx.Pattern) {
		return fmt.Errorf("%w: a superposition of %d coefficients, %d checks and %d symbols; expected are %d, %d and %d", ErrMessage, payload, checks, pattern, rx.Y.Len(), chk.Len(), len(rx.Pattern))
	}
	if want := 8 + 8*pattern + VectorSize(m, payload) + VectorSize(m, checks); len(b) != want {
		return fmt.Errorf("%w: a superposition has %d bytes behind its lengths, which say %d", ErrMessage, len(b), want)
	}
	rx.Alpha = math.Float64frombits(binary.LittleEndian.Uint64(b))
	if !(rx.Alpha > 0) || math.IsInf(rx.Alpha, 0) {
		return fmt.Errorf("%w: the lattice scale is %v: it must be positive and finite", ErrMessage, rx.Alpha)
	}
	b = b[8:]
	for t := range rx.Pattern {
		rx.Pattern[t] = int64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if b, err = takeVector(b, m, rx.Y); err != nil {
		return err
	}
	return ParseVector(b, m, chk)
}
