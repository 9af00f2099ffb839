package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Theta is a model as it was before a round whose record has its digest.
type Theta struct {
	Next   Record // of the round after
	Values []float64
}

// Round returns the round that it is after.
func (t Theta) Round() int { return int(t.Next.Round) - 1 }

// CheckpointSize returns the length of the body of a Checkpoint.
func CheckpointSize(sealed []byte, values int) int { return len(sealed) + 4 + 8*values }

// AppendCheckpoint appends the body of a Checkpoint: the sealed record of a round, and theta
// before it.
func AppendCheckpoint(b, sealed []byte, theta []float64) []byte {
	b = append(slices.Grow(b, CheckpointSize(sealed, len(theta))), sealed...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(theta)))
	for _, x := range theta {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// OpenCheckpoint reads a body whose record is of a run, as verify judges it. That theta has the
// record's digest is not looked at.
func OpenCheckpoint(b []byte, run RunID, verify func(purpose string, message, signature []byte) error) (t Theta, err error) {
	sealed, rest, err := CutRecord(b, run)
	if err != nil {
		return t, err
	}
	records, err := OpenRecords(sealed, run, 1, verify)
	if err != nil {
		return t, err
	}
	if t.Next = records[0]; t.Next.Round == 0 {
		return t, fmt.Errorf("%w: a checkpoint before round 0; the first is 1", ErrMessage)
	}
	if len(rest) < 4 || int64(len(rest)-4) != 8*int64(binary.LittleEndian.Uint32(rest)) {
		return t, fmt.Errorf("%w: %d bytes of theta behind a record, which are not as many as they say", ErrMessage, len(rest))
	}
	t.Values = make([]float64, (len(rest)-4)/8)
	for i := range t.Values {
		t.Values[i] = math.Float64frombits(binary.LittleEndian.Uint64(rest[4+8*i:]))
	}
	return t, nil
}
