package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
)

// Digest is a SHA-256.
type Digest [32]byte

// Record is what came of a round, for whoever follows the run: a device's model is moved
// by records alone.
type Record struct {
	Round uint32
	// M holds M_k of each direction; nil where the round was skipped.
	M []float64
	// Before is the digest of theta before the round, as learner.Replica.Digest returns it.
	Before Digest
}

// Commitment binds a device to its b of an epoch, given as AppendVector has it, before it is
// sent. That b is uniform to who does not know s hides it.
func Commitment(run RunID, device int, epoch uint32, b []byte) Digest {
	h := sha256.New()
	h.Write([]byte("ringwave commitment to b"))
	h.Write(run[:])
	h.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(device)), epoch))
	h.Write(b)
	return Digest(h.Sum(nil))
}

// recordPurpose is what a server's signature of a record is for.
const recordPurpose = "record of a round"

// maxValues bounds the values of a record.
const maxValues = 1 << 16

// bytes returns what is signed: the record with the run that it is of.
func (r Record) bytes(run RunID) []byte {
	b := append([]byte("RWR1"), run[:]...)
	b = binary.LittleEndian.AppendUint32(b, r.Round)
	b = append(b, r.Before[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.M)))
	for _, x := range r.M {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// SealRecord returns a record's bytes with the server's signature.
func SealRecord(s Signer, run RunID, r Record) ([]byte, error) {
	b := r.bytes(run)
	signature, err := s.Sign(recordPurpose, b)
	if err != nil {
		return nil, err
	}
	return append(b, signature...), nil
}

// OpenRecords reads records of a run, one behind the other, as verify judges them. There
// are no more than most.
func OpenRecords(b []byte, run RunID, most int, verify func(purpose string, message, signature []byte) error) ([]Record, error) {
	var all []Record
	for len(b) > 0 {
		if len(all) == most {
			return nil, fmt.Errorf("%w: more than %d records", ErrMessage, most)
		}
		r, size, err := parseRecord(b, run)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(all)+1, err)
		}
		if err := verify(recordPurpose, b[:size], b[size:size+signatureSize]); err != nil {
			return nil, fmt.Errorf("record of round %d: %w", r.Round, err)
		}
		all, b = append(all, r), b[size+signatureSize:]
	}
	return all, nil
}

// RecordSize returns the length of a sealed record of so many values.
func RecordSize(values int) int { return recordSize + 8*values + signatureSize }

// CutRecord returns the first sealed record of b, not yet verified, and what is behind it.
func CutRecord(b []byte, run RunID) (sealed, rest []byte, err error) {
	_, size, err := parseRecord(b, run)
	if err != nil {
		return nil, b, err
	}
	return b[:size+signatureSize], b[size+signatureSize:], nil
}

// recordSize is that of a record without values and signature.
const recordSize = 4 + 16 + 4 + 32 + 4

// parseRecord reads the first record of b, and says how long it is without its signature.
func parseRecord(b []byte, run RunID) (r Record, size int, err error) {
	if len(b) < recordSize || string(b[:4]) != "RWR1" {
		return r, 0, fmt.Errorf("%w: %d bytes that do not begin with a record", ErrMessage, len(b))
	}
	if RunID(b[4:20]) != run {
		return r, 0, fmt.Errorf("%w: a record of run %x, ours is %s", ErrMessage, b[4:20], run)
	}
	r.Round = binary.LittleEndian.Uint32(b[20:])
	r.Before = Digest(b[24:56])
	n := binary.LittleEndian.Uint32(b[56:])
	if size = recordSize + 8*int(min(n, maxValues)); n > maxValues || len(b) < size+signatureSize {
		return r, 0, fmt.Errorf("%w: a record of %d values in %d bytes; allowed are up to %d values, and %d bytes of a signature", ErrMessage, n, len(b), maxValues, signatureSize)
	}
	for i := range int(n) {
		x := math.Float64frombits(binary.LittleEndian.Uint64(b[recordSize+8*i:]))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return r, 0, fmt.Errorf("%w: M is %v in round %d: it must be finite", ErrMessage, x, r.Round)
		}
		r.M = append(r.M, x)
	}
	return r, size, nil
}

// Request is the body of Send.
type Request struct {
	// Due is the frame that is sent again where its Repeat is above 0, by devices of its
	// group; zero elsewhere.
	Due Due
	// Present reports of each device whether it takes part in the attempt.
	Present []bool
	// Broadcast is b~ for c0 and c~1 for D, as AppendVector has it; empty elsewhere.
	Broadcast []byte
}

// Bytes returns the body.
func (r Request) Bytes() []byte {
	b := binary.LittleEndian.AppendUint32(r.Due.append(nil), uint32(len(r.Present)))
	b = appendBits(b, r.Present)
	return append(b, r.Broadcast...)
}

// ParseRequest reads a body for so many devices. It keeps b.
func ParseRequest(b []byte, devices int) (r Request, err error) {
	if r.Due, b, err = takeDue(b); err != nil {
		return r, err
	}
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != uint32(devices) || len(b) < 4+(devices+7)/8 {
		return r, fmt.Errorf("%w: a request of %d bytes that is not for %d devices", ErrMessage, len(b), devices)
	}
	r.Present, b = takeBits(b[4:], devices)
	r.Broadcast = b
	return r, nil
}

// appendBits appends one bit a value, lowest first.
func appendBits(b []byte, values []bool) []byte {
	at := len(b)
	b = append(b, make([]byte, (len(values)+7)/8)...)
	for i, v := range values {
		if v {
			b[at+i/8] |= 1 << (i % 8)
		}
	}
	return b
}

// takeBits reads n bits, and returns what is behind them.
func takeBits(b []byte, n int) (values []bool, rest []byte) {
	values = make([]bool, n)
	for i := range values {
		values[i] = b[i/8]>>(i%8)&1 == 1
	}
	return values, b[(n+7)/8:]
}
