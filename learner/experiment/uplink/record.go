package uplink

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

	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
	"ringwave/radio/sigmf"
)

// IQFolder is the run folder's place for recordings.
const IQFolder = "iq"

// The labels and comments of a recording's annotations: one annotation for each
// frame, and one for each transmission, all groups and repeats of it, that says
// what was received.
const (
	LabelFrame        = "frame"
	LabelTransmission = "transmission"
	CommentElements   = "sha256 "
	CommentVoid       = "void: "
)

// RecordingBase returns the path of a round's recording in a run folder, without suffix.
func RecordingBase(dir string, round uint32) string {
	return filepath.Join(dir, IQFolder, fmt.Sprintf("round-%06d", round))
}

// ElementsDigest returns the SHA-256 of ring elements: the residues modulo one
// prime after the other, as little-endian 64-bit integers.
func ElementsDigest(y zq.Vector) string {
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

// Verdict says what a transmission gave, as a comment of its annotation.
func Verdict(rx *phy.Reception, r phy.WaveformReport) string {
	if !rx.CheckPassed {
		return CommentVoid + r.Failure
	}
	return CommentElements + ElementsDigest(rx.Y)
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
	limit := setup.LargestCode(cfg.Datatype)
	if limit == 0 {
		return r
	}
	c := &converter{from: r, step: float64(cfg.FullScale) / limit, limit: limit}
	return radio.Wrap(r, radio.Wrapping{ReadUntil: c.readUntil, ClipLevel: c.clipLevel})
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

// Recorder keeps what the receiver hears, one recording a round. It is the sink
// of a radio.Tee. A round is there whole or not at all, and one that a resumed
// run repeats takes the place of the one before.
type Recorder struct {
	Cfg    sigmf.Config
	Band   radio.Span[radio.Hertz] // of what is annotated
	dir    string                  // the run folder; empty where nothing is kept, as for plan
	writer *sigmf.Writer
	round  uint32
}

// Tape returns a receiver whose samples go through the recording's converter and are
// recorded.
func (r *Recorder) Tape(from radio.Receiver) radio.Receiver {
	heard := converted(from, r.Cfg)
	r.Cfg.ClipLevel = radio.ClipLevel(heard)
	return radio.Tee(heard, r)
}

// Start begins to keep rounds in a run folder, and removes what a killed process left
// there of one.
func (r *Recorder) Start(dir string) error {
	iq := filepath.Join(dir, IQFolder)
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

// staged returns where a recording is until it is whole.
func (r *Recorder) staged() string {
	return filepath.Join(r.dir, IQFolder, fmt.Sprintf(".tmp-round-%06d", r.round))
}

// Begin begins a round, unless it is begun or Start was not called.
func (r *Recorder) Begin(round uint32) (err error) {
	if r.dir == "" || r.writer != nil && r.round == round {
		return nil
	}
	r.Abort()
	r.round = round
	r.writer, err = sigmf.Create(r.staged(), r.Cfg)
	return err
}

// Record implements radio.Sink.
func (r *Recorder) Record(samples []complex64, meta radio.Meta) error {
	if r.writer == nil {
		return nil
	}
	return r.writer.Record(samples, meta)
}

// Note is what an annotation says: about the samples [first, end), the tuning
// epochs of the receiver and of the transmitters, the scale at which integers were read,
// and in words.
type Note struct {
	Slot           slot.Slot
	Group          int // -1 for all
	First, End     radio.SampleIndex
	epoch          radio.Epoch
	transmitters   []radio.Epoch
	alpha          float64 // of what was read, 0 for none
	factors        []int   // of the groups, nil for none
	Label, Comment string
}

// Annotate adds an annotation to the round's recording.
func (r *Recorder) Annotate(n Note) error {
	if r.writer == nil {
		return nil
	}
	return r.writer.Annotate(sigmf.Annotation{
		First: n.First, Count: radio.SampleCount(n.End - n.First), Label: n.Label, Comment: n.Comment, Band: &r.Band,
		Tag: &sigmf.Tag{
			Round: n.Slot.Round, Attempt: n.Slot.Attempt, Again: n.Slot.Again, Phase: n.Slot.Transmission.String(), Device: -1, Group: n.Group,
			Epoch: n.epoch, Transmitters: slices.Clone(n.transmitters),
			Alpha: n.alpha, Factors: n.factors,
		},
	})
}

// End puts the round's recording in its place. The metadata comes last: without it there
// is no recording.
func (r *Recorder) End() error {
	if r.writer == nil {
		return nil
	}
	err := r.writer.Close()
	r.writer = nil
	if err != nil {
		return err
	}
	const data, meta = ".sigmf-data", ".sigmf-meta"
	base, staged := RecordingBase(r.dir, r.round), r.staged()
	if err := os.Remove(base + meta); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replacing the recording of round %d: %w", r.round, err)
	}
	if err := errors.Join(os.Rename(staged+data, base+data), os.Rename(staged+meta, base+meta)); err != nil {
		return fmt.Errorf("keeping the recording of round %d: %w", r.round, err)
	}
	return nil
}

// Abort drops the round at hand, if there is one.
func (r *Recorder) Abort() {
	if r.writer != nil {
		r.writer.Abort()
		r.writer = nil
	}
}

// FileScheme is the scheme of the URIs of recordings, file:PATH.
const FileScheme = "file"

// RecordedDevice is a device that plays a recording and tells what was noted about its
// samples.
type RecordedDevice interface {
	radio.Device
	radio.ReceiveOpener
	radio.RateControl
	Metadata() *sigmf.Metadata
	Annotations() []sigmf.Annotation
}
