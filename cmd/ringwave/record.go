package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"ringwave/phy"
	"ringwave/phy/zq"
	"ringwave/radio"
	"ringwave/radio/sigmf"
)

// recordNone is the value of link.record for runs that keep no samples.
const recordNone = "none"

// iqName is the run folder's place for recordings.
const iqName = "iq"

// The labels and comments of a recording's annotations: one annotation for each
// frame, and one for each transmission, all groups and repeats of it, that says
// what was received.
const (
	labelFrame        = "frame"
	labelTransmission = "transmission"
	commentElements   = "sha256 "
	commentVoid       = "void: "
)

// recordingBase gives the path of a round's recording, without suffix.
func recordingBase(dir string, round uint32) string {
	return filepath.Join(dir, iqName, fmt.Sprintf("round-%06d", round))
}

// elementsDigest gives the SHA-256 of ring elements: the residues modulo one
// prime after the other, as little-endian 64-bit integers.
func elementsDigest(y zq.Vector) string {
	h := sha256.New()
	var b []byte
	for _, residues := range y {
		b = b[:0]
		for _, r := range residues {
			b = binary.LittleEndian.AppendUint64(b, r)
		}
		h.Write(b) // a hash does not fail
	}
	return hex.EncodeToString(h.Sum(nil))
}

// verdict says what a transmission gave, as a comment of its annotation.
func verdict(rx *phy.Reception, r phy.WaveformReport) string {
	if !rx.CheckPassed {
		return commentVoid + r.Failure
	}
	return commentElements + elementsDigest(rx.Y)
}

// converter is an analog-to-digital converter of the recording's format, behind a
// receiver: what is decoded is then, to the bit, what the recording gives back.
type converter struct {
	from        radio.Receiver
	step, limit float64
}

// converted returns r behind a converter, and r itself for formats that are not
// integers.
func converted(r radio.Receiver, cfg sigmf.Config) radio.Receiver {
	limit := largestCode(cfg.Datatype)
	if limit == 0 {
		return r
	}
	c := &converter{from: r, step: float64(cfg.FullScale) / limit, limit: limit}
	return radio.Wrap(r, radio.Wrapping{ReadUntil: c.readUntil, ClipLevel: c.clipLevel})
}

// largestCode gives the largest code of an integer format, and 0 of others.
func largestCode(t sigmf.Datatype) float64 {
	switch t {
	case sigmf.CI8:
		return math.MaxInt8
	case sigmf.CI16:
		return math.MaxInt16
	}
	return 0
}

// clipLevel returns what no step but the last reaches.
func (c *converter) clipLevel() radio.Amplitude {
	level := radio.Amplitude(c.step * (c.limit - 0.5))
	if before := radio.ClipLevel(c.from); before > 0 && before < level {
		return before
	}
	return level
}

func (c *converter) readUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	n, meta, err := radio.ReadUntil(ctx, c.from, dst, until)
	for k, x := range dst[:n] {
		re, clippedRe := c.convert(real(x))
		im, clippedIm := c.convert(imag(x))
		dst[k] = complex(re, im)
		if clippedRe || clippedIm {
			meta.Clipped++
			meta.Flags |= radio.Clipped
		}
	}
	return n, meta, err
}

func (c *converter) convert(x float32) (y float32, clipped bool) {
	code := math.RoundToEven(float64(x) / c.step)
	if code > c.limit || code < -c.limit {
		code, clipped = math.Copysign(c.limit, code), true
	}
	return float32(code * c.step), clipped
}

// recorder keeps what the receiver hears, one recording a round. It is the sink
// of a radio.Tee. A round is there whole or not at all, and one that a resumed
// run repeats takes the place of the one before.
type recorder struct {
	cfg    sigmf.Config
	dir    string // the run folder; empty where nothing is kept, as for plan
	writer *sigmf.Writer
	round  uint32
}

// tape gives a receiver whose samples go through the recording's converter and are
// recorded.
func (r *recorder) tape(from radio.Receiver) radio.Receiver {
	heard := converted(from, r.cfg)
	r.cfg.ClipLevel = radio.ClipLevel(heard)
	return radio.Tee(heard, r)
}

// start begins to keep rounds in a run folder.
func (r *recorder) start(dir string) error {
	iq := filepath.Join(dir, iqName)
	if err := os.MkdirAll(iq, 0o755); err != nil {
		return fmt.Errorf("making the folder of recordings: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(iq, ".tmp-*")) // by a killed process
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing what a killed run left: %w", err)
		}
	}
	r.dir = dir
	return nil
}

// staged gives where a recording is until it is whole.
func (r *recorder) staged() string {
	return filepath.Join(r.dir, iqName, fmt.Sprintf(".tmp-round-%06d", r.round))
}

// begin begins a round, unless it is begun.
func (r *recorder) begin(round uint32) (err error) {
	if r.dir == "" || r.writer != nil && r.round == round {
		return nil
	}
	r.abort()
	r.round = round
	r.writer, err = sigmf.Create(r.staged(), r.cfg)
	return err
}

// Record implements radio.Sink.
func (r *recorder) Record(samples []complex64, meta radio.Meta) error {
	if r.writer == nil {
		return nil
	}
	return r.writer.Record(samples, meta)
}

// note is what an annotation says: about the samples [first, end), the tuning
// epochs of the receiver and of the transmitters, and in words.
type note struct {
	slot           phy.Slot
	group          int // -1 for all
	first, end     radio.SampleIndex
	epoch          radio.Epoch
	transmitters   []radio.Epoch
	label, comment string
}

// annotate adds an annotation to the round's recording.
func (r *recorder) annotate(n note) error {
	if r.writer == nil {
		return nil
	}
	return r.writer.Annotate(sigmf.Annotation{
		First: n.first, Count: radio.SampleCount(n.end - n.first), Label: n.label, Comment: n.comment,
		Tag: &sigmf.Tag{
			Round: n.slot.Round, Attempt: n.slot.Attempt, Again: n.slot.Again, Phase: n.slot.Transmission.String(), Device: -1, Group: n.group,
			Epoch: n.epoch, Transmitters: slices.Clone(n.transmitters),
		},
	})
}

// end makes the round's recording be there. The metadata comes last: without it
// there is no recording.
func (r *recorder) end() error {
	if r.writer == nil {
		return nil
	}
	err := r.writer.Close()
	r.writer = nil
	if err != nil {
		return err
	}
	const data, meta = ".sigmf-data", ".sigmf-meta"
	base, staged := recordingBase(r.dir, r.round), r.staged()
	if err := os.Remove(base + meta); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replacing the recording of round %d: %w", r.round, err)
	}
	if err := errors.Join(os.Rename(staged+data, base+data), os.Rename(staged+meta, base+meta)); err != nil {
		return fmt.Errorf("keeping the recording of round %d: %w", r.round, err)
	}
	return nil
}

// abort drops the round at hand, if there is one.
func (r *recorder) abort() {
	if r.writer != nil {
		r.writer.Abort()
		r.writer = nil
	}
}
