package runfolder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"ringwave/phy/gains"
	"ringwave/radio/intake"
)

// A checkpoint is, in this order: the magic bytes, a version byte, a uint32
// length and that many bytes of JSON, a uint32 count and that many float64 of
// theta as their bits, the same of the best theta where the JSON has one, and the
// SHA-256 of all before. Version 3 has behind these
// a uint32 count of rounds, one or more, and of each a uint32 count and that many
// float64 of its scalars; version 2 is that of a run without momentum, which has
// none. Integers and bits are little-endian.
const (
	checkpointMagic   = "RWCKPT"
	checkpointVersion = 2
	momentumVersion   = 3
)

// Digest is a SHA-256 sum. As text it is 64 lower-case hexadecimal digits.
type Digest [sha256.Size]byte

// MarshalText returns the digest in hexadecimal.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("a digest has %d hexadecimal digits, not %d", hex.EncodedLen(len(d)), len(text))
	}
	if _, err := hex.Decode(d[:], text); err != nil {
		return fmt.Errorf("reading a digest: %w", err)
	}
	return nil
}

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Checkpoint is all that a run needs to go on as if it had not stopped.
type Checkpoint struct {
	ConfigDigest  Digest  `json:"config_digest"`  // of the configuration that the run began with
	Round         int     `json:"round"`          // >= 0, the last round that is in Theta and metrics.csv
	Repeated      int     `json:"repeated"`       // >= 0, rounds tried more than once so far
	Skipped       int     `json:"skipped"`        // >= 0, rounds given up so far
	Clipped       int     `json:"clipped"`        // >= 0, messages clipped so far
	MetricsOffset int64   `json:"metrics_offset"` // >= 0, bytes of metrics.csv
	MetricsDigest Digest  `json:"metrics_digest"` // of these bytes
	Seconds       float64 `json:"seconds"`        // >= 0 and finite, time spent so far
	// KeyEpoch is the first of the process that wrote it, where keys come from the
	// system's generator.
	KeyEpoch uint32 `json:"key_epoch,omitempty"`
	// Gains is what the patterns have shown so far; nil for links without any.
	Gains *gains.State `json:"gains,omitempty"`
	// Best is the best model so far, by samples that are held out; nil where none are.
	Best  *Best     `json:"best,omitempty"`
	Theta []float64 `json:"-"` // the model, every bit kept, NaN too
	// Past has the scalars of the last rounds, where a step is made of those of earlier ones,
	// too; nil of a round that made none.
	Past [][]float64 `json:"-"`
}

// Best is the model whose loss on samples that are held out is the least so far.
type Best struct {
	Round    int       `json:"round"`    // that it is after, >= 0
	Loss     float64   `json:"loss"`     // finite
	Accuracy float64   `json:"accuracy"` // from 0 to 1
	Waited   int       `json:"waited"`   // >= 0, evaluations since
	Theta    []float64 `json:"-"`        // as many values as the checkpoint's
}

func (b *Best) check(after int) error {
	switch {
	case b.Round < 0 || b.Round > after:
		return fmt.Errorf("best.round is %d, but must be from 0 to %d", b.Round, after)
	case math.IsNaN(b.Loss) || math.IsInf(b.Loss, 0):
		return fmt.Errorf("best.loss is %g, but must be finite", b.Loss)
	case !(b.Accuracy >= 0 && b.Accuracy <= 1):
		return fmt.Errorf("best.accuracy is %g, but must be from 0 to 1", b.Accuracy)
	case b.Waited < 0:
		return fmt.Errorf("best.waited is %d, but must be at least 0", b.Waited)
	}
	return nil
}

func (c Checkpoint) check() error {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"round", int64(c.Round)}, {"repeated", int64(c.Repeated)}, {"skipped", int64(c.Skipped)},
		{"clipped", int64(c.Clipped)}, {"metrics_offset", c.MetricsOffset},
	} {
		if n.value < 0 {
			return fmt.Errorf("%s is %d, but must be at least 0", n.name, n.value)
		}
	}
	if !(c.Seconds >= 0) || math.IsInf(c.Seconds, 1) {
		return fmt.Errorf("seconds is %g, but must be at least 0 and finite", c.Seconds)
	}
	if c.Best != nil {
		if err := c.Best.check(c.Round); err != nil {
			return err
		}
	}
	if c.Gains != nil {
		return c.Gains.Validate()
	}
	return nil
}

// Encode returns the checkpoint's bytes: the same for the same content. It is an
// error if a field is out of its range.
func (c Checkpoint) Encode() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("encoding a checkpoint: %w", err)
	}
	if uint64(len(c.Theta)) > math.MaxUint32 {
		return nil, fmt.Errorf("encoding a checkpoint: theta has %d elements, but may have %d", len(c.Theta), uint32(math.MaxUint32))
	}
	meta, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding a checkpoint: %w", err)
	}
	if c.Best != nil && len(c.Best.Theta) != len(c.Theta) {
		return nil, fmt.Errorf("encoding a checkpoint: the best theta has %d elements, but must have %d", len(c.Best.Theta), len(c.Theta))
	}
	b := make([]byte, 0, len(checkpointMagic)+1+4+len(meta)+4+8*len(c.Theta)+sha256.Size)
	b = append(b, checkpointMagic...)
	if c.Past == nil {
		b = append(b, checkpointVersion)
	} else {
		b = append(b, momentumVersion)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(meta)))
	b = append(b, meta...)
	b = appendFloats(b, c.Theta)
	if c.Best != nil {
		b = appendFloats(b, c.Best.Theta)
	}
	if c.Past != nil {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Past)))
	}
	for _, m := range c.Past {
		b = appendFloats(b, m)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// appendFloats appends a count and the bits of so many numbers.
func appendFloats(b []byte, values []float64) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(values)))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// takeFloats returns what appendFloats has appended, nil of none, and what is behind it. What
// says whose they are.
func takeFloats(b []byte, what string) (values []float64, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("the checkpoint's %s is cut off", what)
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; uint64(len(b)) < 8*count {
		return nil, nil, fmt.Errorf("the checkpoint's %s has %d elements, %d bytes, but there are %d", what, count, 8*count, len(b))
	}
	if count == 0 {
		return nil, b, nil
	}
	values = make([]float64, count)
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return values, b[8*count:], nil
}

// takePast returns the scalars of rounds.
func takePast(b []byte) (past [][]float64, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errors.New("the checkpoint's count of rounds with scalars is cut off")
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; count == 0 || uint64(len(b)) < 4*count {
		return nil, nil, fmt.Errorf("the checkpoint has scalars of %d rounds in %d bytes, but must have one round or more, of 4 bytes at least", count, len(b))
	}
	past = make([][]float64, count)
	for i := range past {
		if past[i], b, err = takeFloats(b, "list of scalars"); err != nil {
			return nil, nil, err
		}
	}
	return past, b, nil
}

// DecodeCheckpoint reads what Encode wrote, and nothing else: whatever it
// accepts, Encode gives back to the byte. It allocates no more than a small
// multiple of len(b).
func DecodeCheckpoint(b []byte) (Checkpoint, error) {
	const head = len(checkpointMagic) + 1
	const shortest = head + 4 + 4 + sha256.Size
	if len(b) < head || string(b[:len(checkpointMagic)]) != checkpointMagic {
		return Checkpoint{}, fmt.Errorf("not a checkpoint: it does not begin with %s", checkpointMagic)
	}
	version := b[head-1]
	if version != checkpointVersion && version != momentumVersion {
		return Checkpoint{}, fmt.Errorf("a checkpoint of version %d, but this program reads versions %d and %d: go on with the program that wrote it, or start a new run", version, checkpointVersion, momentumVersion)
	}
	if len(b) < shortest {
		return Checkpoint{}, fmt.Errorf("a checkpoint of %d bytes is cut off: it has at least %d", len(b), shortest)
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return Checkpoint{}, fmt.Errorf("the checkpoint is damaged or cut off: its SHA-256 is %x, but its content gives %x", sum[:8], want[:8])
	}
	return decodeBody(body[head:], version)
}

// decodeBody decodes what lies between version and sum. It has at least the 8
// bytes of its two lengths.
func decodeBody(b []byte, version byte) (Checkpoint, error) {
	size := uint64(binary.LittleEndian.Uint32(b))
	if size > uint64(len(b)-8) {
		return Checkpoint{}, fmt.Errorf("the checkpoint's meta data take %d bytes, but there are %d", size, len(b)-8)
	}
	meta, b := b[4:4+size], b[4+size:]
	c, err := decodeMeta(meta)
	if err != nil {
		return Checkpoint{}, err
	}
	if c.Theta, b, err = takeFloats(b, "theta"); err != nil {
		return Checkpoint{}, err
	}
	if c.Best != nil {
		if c.Best.Theta, b, err = takeFloats(b, "best theta"); err != nil {
			return Checkpoint{}, err
		}
		if len(c.Best.Theta) != len(c.Theta) {
			return Checkpoint{}, fmt.Errorf("the checkpoint's best theta has %d elements, but must have %d", len(c.Best.Theta), len(c.Theta))
		}
	}
	if version == momentumVersion {
		if c.Past, b, err = takePast(b); err != nil {
			return Checkpoint{}, err
		}
	}
	if len(b) > 0 {
		return Checkpoint{}, fmt.Errorf("the checkpoint's theta has %d elements, and %d bytes too many are behind", len(c.Theta), len(b))
	}
	return c, nil
}

func decodeMeta(meta []byte) (Checkpoint, error) {
	// First: decoded, short elements of a list take many times their text.
	if err := intake.CheckJSON("the checkpoint's meta data", meta, jsonLimits()); err != nil {
		return Checkpoint{}, err
	}
	var c Checkpoint
	d := json.NewDecoder(bytes.NewReader(meta))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Checkpoint{}, fmt.Errorf("reading the checkpoint's meta data: %w", err)
	}
	if err := c.check(); err != nil {
		return Checkpoint{}, fmt.Errorf("reading the checkpoint's meta data: %w", err)
	}
	// One spelling for one content: this refuses doubled, missing and
	// differently spelt keys and anything that follows, all at once.
	again, err := json.Marshal(c)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("reading the checkpoint's meta data: %w", err)
	}
	if !bytes.Equal(again, meta) {
		return Checkpoint{}, errors.New("the checkpoint's meta data are not spelt as this program spells them")
	}
	return c, nil
}

// SaveCheckpoint replaces the folder's checkpoint, atomically. Sync the metrics
// first: see Metrics.Sync.
func (f *Folder) SaveCheckpoint(c Checkpoint) error {
	b, err := c.Encode()
	if err != nil {
		return fmt.Errorf("saving %s: %w", f.file(CheckpointName), err)
	}
	return f.WriteAtomic(CheckpointName, b)
}

// LoadCheckpoint reads the folder's checkpoint.
func (f *Folder) LoadCheckpoint() (Checkpoint, error) { return ReadCheckpoint(f.path) }

// HasCheckpoint reports whether a folder has a checkpoint, good or damaged.
func HasCheckpoint(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, CheckpointName))
	return err == nil
}

// ReadCheckpoint reads the checkpoint of a run's folder, whether the run goes on or not.
func ReadCheckpoint(dir string) (Checkpoint, error) {
	path := filepath.Join(dir, CheckpointName)
	b, err := intake.ReadFile(path, maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, fmt.Errorf("%s has no checkpoint: the run ended before its first one, start it again", dir)
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("reading %s: %w", path, intake.Cause(err))
	}
	c, err := DecodeCheckpoint(b)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
