package external

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// bytesOf returns theta as the program has it: its numbers one after the other, little-endian.
func bytesOf(theta []float64, says hello) []byte {
	b := make([]byte, 0, len(theta)*says.size())
	for _, x := range theta {
		if says.single() {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b
}

// digestOf returns the SHA-256 of theta's bytes.
func digestOf(theta []float64, says hello) string {
	sum := sha256.Sum256(bytesOf(theta, says))
	return hex.EncodeToString(sum[:])
}

// inFile does something with the path of a file of its own, which is removed then.
func inFile(do func(path string) error) error {
	dir, err := os.MkdirTemp("", "ringwave-learner-")
	if err != nil {
		return fmt.Errorf("making a folder for theta: %w", err)
	}
	return errors.Join(do(filepath.Join(dir, "theta")), os.RemoveAll(dir))
}

// writeTheta writes theta's bytes.
func writeTheta(path string, theta []float64, says hello) error {
	return os.WriteFile(path, bytesOf(theta, says), 0o600)
}

// readTheta reads what a program has saved, and no more than that should be.
func readTheta(path string, says hello) ([]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("it saved nothing at %s: %w", path, err)
	}
	defer f.Close()
	want := says.Dim * says.size()
	b, err := io.ReadAll(io.LimitReader(f, int64(want)+1))
	if err != nil {
		return nil, fmt.Errorf("reading what it saved: %w", err)
	}
	if len(b) != want {
		return nil, fmt.Errorf("it saved %d bytes or more; allowed is %d, %d numbers of %s", len(b), want, says.Dim, says.Dtype)
	}
	theta := make([]float64, 0, says.Dim)
	for x := range slices.Chunk(b, says.size()) {
		if says.single() {
			theta = append(theta, float64(math.Float32frombits(binary.LittleEndian.Uint32(x))))
		} else {
			theta = append(theta, math.Float64frombits(binary.LittleEndian.Uint64(x)))
		}
	}
	for i, x := range theta {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("it saved %v as theta[%d]; allowed is finite", x, i)
		}
	}
	return theta, nil
}
