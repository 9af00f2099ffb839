package sigmf

import (
	"cmp"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"ringwave/radio"
	"ringwave/radio/iq"
)

const (
	dataSuffix = ".sigmf-data"
	metaSuffix = ".sigmf-meta"
)

// Config describes a recording to be made.
type Config struct {
	Datatype Datatype
	// SampleRate is 1 Hz to 1 THz.
	SampleRate radio.Hertz
	// FullScale is the amplitude of each of I and Q up to which an integer
	// datatype does not clip, 1e-20 to 1e20; 0 stands for 1. It is not used for
	// cf32.
	FullScale radio.Amplitude
	// ClipLevel is that of the receiver (radio.Ranged), 1e-30 to 1e30, 0 if it has
	// none.
	ClipLevel radio.Amplitude
	// Frequency is the carrier, -1 THz to 1 THz; nil if not known.
	Frequency *radio.Hertz
	// Primes are those of the modulus q of the ring elements that samples carry,
	// 1 to 16 of them in [3, 2^62]; nil if there are none.
	Primes []uint64
	// FrameFormat is that of the frames that samples carry, 0 if there are none.
	FrameFormat uint8
	// Frames is their form; nil leaves it out.
	Frames *Frames
	// Zero is the time of sample index 0. Where it is the zero time, Now tells it as the
	// first block is handed over, whose last sample is from now: later than it was by what
	// buffers hold. Without either, times are left out.
	Zero time.Time
	Now  func() time.Time
	// For people; the empty ones are left out.
	Hardware, Author, Description, Recorder string
}

// Annotation is about the samples from index First on, by the stream's clock.
type Annotation struct {
	First radio.SampleIndex
	Count radio.SampleCount // 0 or more
	// Band is what it is about of the spectrum, at the frequencies that Config.Frequency
	// counts: -1 THz to 1 THz; nil leaves it out.
	Band    *radio.Span[radio.Hertz]
	Label   string // at most 256 bytes; SigMF recommends 20 characters
	Comment string // at most 256 bytes
	Tag     *Tag
}

// Written says what a Writer did.
type Written struct {
	Samples radio.SampleCount
	// Clipped samples were beyond full scale, Invalid ones NaN or infinite.
	Clipped, Invalid radio.SampleCount
}

// Writer makes one recording. Until Close nothing is there under the recording's
// name, and a failure leaves nothing behind. It is a radio.Sink, for one
// goroutine.
type Writer struct {
	cfg      Config
	base     string // path without suffix
	scale    float64
	codec    *iq.Codec
	data     *os.File
	digest   hash.Hash
	buffer   []byte
	captures []Capture
	due      radio.SampleIndex // the index of the sample after the last
	written  Written
	// reports are annotations of what the receiver reported, in datasets' counts.
	reports     []DatasetAnnotation
	annotations []Annotation
	failed      error // the first failure, for good
	closed      bool
}

// Create begins the recording base.sigmf-data and base.sigmf-meta, neither of
// which may be there, in a folder that must. A base that ends in one of the
// suffixes is taken without it.
func Create(base string, cfg Config) (*Writer, error) {
	base = trimSuffix(base)
	if err := cfg.check(base); err != nil {
		return nil, err
	}
	w := &Writer{cfg: cfg, base: base, digest: sha512.New(), scale: 1}
	if cfg.FullScale == 0 {
		w.cfg.FullScale = 1
	}
	if cfg.Datatype != CF32 {
		w.scale = float64(w.cfg.FullScale) / cfg.Datatype.limit()
	}
	w.codec = cfg.Datatype.codec(w.scale)
	if err := w.vacant(); err != nil {
		return nil, err
	}
	var err error
	if w.data, err = temporary(base, dataSuffix); err != nil {
		return nil, err
	}
	return w, nil
}

func trimSuffix(path string) string {
	for _, s := range []string{dataSuffix, metaSuffix} {
		if base, ok := strings.CutSuffix(path, s); ok {
			return base
		}
	}
	return path
}

func temporary(base, suffix string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(base), ".tmp-"+filepath.Base(base)+"-*"+suffix)
}

func (cfg Config) check(base string) error {
	wrong := func(key string, value any, allowed string) error {
		return &FormatError{base, key, fmt.Sprint(value), allowed}
	}
	if _, ok := cfg.Datatype.format(); !ok {
		return wrong("the datatype", fmt.Sprintf("%q", string(cfg.Datatype)), allowedDatatypes)
	}
	if !(cfg.SampleRate >= 1 && cfg.SampleRate <= maxRate) {
		return wrong("the sample rate", cfg.SampleRate, "1 Hz to 1 THz")
	}
	if a := cfg.FullScale; a != 0 && !(a >= 1e-20 && a <= 1e20) {
		return wrong("full scale", a, "1e-20 to 1e20")
	}
	if a := cfg.ClipLevel; a != 0 && !(a >= 1e-30 && a <= 1e30) {
		return wrong("the clip level", a, "1e-30 to 1e30")
	}
	if !validPrimes(cfg.Primes) {
		return wrong("the primes", cfg.Primes, allowedPrimes)
	}
	if cfg.Frames != nil {
		if err := cfg.Frames.check(base); err != nil {
			return err
		}
	}
	if f := cfg.Frequency; f != nil && !(*f >= -maxFrequency && *f <= maxFrequency) {
		return wrong("the frequency", *f, "-1 THz to 1 THz")
	}
	return nil
}

// vacant fails where the recording is there.
func (w *Writer) vacant() error {
	for _, suffix := range []string{dataSuffix, metaSuffix} {
		if _, err := os.Lstat(w.base + suffix); err == nil {
			return fmt.Errorf("%s is there already; allowed is a new name: %w", w.base+suffix, fs.ErrExist)
		}
	}
	return nil
}

// Record appends a block. It fails, and so does the recording, where the index is
// before that of the block's predecessor's end.
func (w *Writer) Record(samples []complex64, meta radio.Meta) error {
	if err := w.usable(); err != nil {
		return err
	}
	if len(samples) == 0 {
		return nil
	}
	if meta.First < 0 || meta.First > maxPosition || w.written.Samples > 0 && meta.First < w.due {
		return w.fail(&FormatError{w.base, "the index of a block's first sample", fmt.Sprint(meta.First), fmt.Sprintf("%d or more", w.due)})
	}
	w.setClock(len(samples), meta)
	if w.capture(len(samples), meta); len(w.captures) > maxSegments {
		return w.fail(&FormatError{w.base, "the number of gaps and epochs", fmt.Sprint(len(w.captures)), fmt.Sprintf("at most %d", maxSegments)})
	}
	w.report(len(samples), meta)
	if err := w.append(samples); err != nil {
		return w.fail(err)
	}
	w.due = meta.Index(len(samples)-1) + 1
	return nil
}

func (w *Writer) usable() error {
	if w.failed != nil {
		return w.failed
	}
	if w.closed {
		return radio.ErrClosed
	}
	return nil
}

// fail returns the recording up.
func (w *Writer) fail(err error) error {
	w.failed = err
	w.discard()
	return err
}

func (w *Writer) discard() {
	_ = w.data.Close()
	_ = os.Remove(w.data.Name())
}

// setClock finds the time of index 0, if it is not known and there is a clock.
func (w *Writer) setClock(n int, meta radio.Meta) {
	if w.cfg.Now == nil || !w.cfg.Zero.IsZero() {
		return
	}
	w.cfg.Zero = w.cfg.Now().Add(-w.cfg.SampleRate.Duration(radio.SampleCount(meta.Index(n-1) + 1)))
}

// capture begins segments where the block of n samples does not go on as it was.
func (w *Writer) capture(n int, meta radio.Meta) {
	var at []int
	if w.written.Samples == 0 || meta.First != w.due || meta.Epoch != w.epoch() {
		at = append(at, 0)
	}
	for _, g := range meta.Gaps {
		at = append(at, g.At)
	}
	for _, c := range meta.Changes {
		at = append(at, c.At)
	}
	slices.Sort(at)
	for _, k := range slices.Compact(at) {
		if k >= n {
			continue
		}
		c := Capture{
			Start: w.written.Samples + radio.SampleCount(k), Index: meta.Index(k),
			Frequency: w.cfg.Frequency, Epoch: meta.EpochAt(k),
		}
		// A step in index that no gap explains was counted by nobody.
		c.GapEstimated = k == 0 && w.written.Samples > 0 && meta.First != w.due
		for _, g := range meta.Gaps {
			if g.At == k {
				c.GapEstimated = !g.Exact
			}
		}
		if !w.cfg.Zero.IsZero() {
			c.Time = w.cfg.Zero.Add(w.cfg.SampleRate.Duration(radio.SampleCount(c.Index))).UTC()
		}
		w.captures = append(w.captures, c)
	}
}

func (w *Writer) epoch() radio.Epoch { return w.captures[len(w.captures)-1].Epoch }

// maxReports leaves room for the caller's annotations. Beyond it reports are one
// long one, which says less and is still true.
const maxReports = maxSegments / 2

// report keeps what the receiver said of the block. A report that goes on where
// the one before ended is one with it: a receiver that clips does so for long. Those
// of samples that do not show by themselves stay apart, so that the block is known
// by them: invalid ones are 0 now, and clipped ones are like others where the
// receiver has no clip level.
func (w *Writer) report(n int, meta radio.Meta) {
	a := DatasetAnnotation{
		Start: w.written.Samples, Count: radio.SampleCount(n),
		Clipped: meta.Clipped, Invalid: meta.Invalid, Overrun: meta.Flags&radio.Overrun != 0,
	}
	if a.Clipped == 0 && a.Invalid == 0 && !a.Overrun {
		return
	}
	apart := a.Invalid > 0 || a.Clipped > 0 && w.cfg.ClipLevel == 0
	if k := len(w.reports); k > 0 {
		last := &w.reports[k-1]
		apart = apart || last.Invalid > 0 || last.Clipped > 0 && w.cfg.ClipLevel == 0
		if last.Start+last.Count == a.Start && last.Overrun == a.Overrun && !apart || k == maxReports {
			last.Count = a.Start + a.Count - last.Start
			last.Clipped += a.Clipped
			last.Invalid += a.Invalid
			return
		}
	}
	w.reports = append(w.reports, a)
}

// encodeBlock bounds the memory for encoded samples.
const encodeBlock = 1 << 14

func (w *Writer) append(samples []complex64) error {
	for part := range slices.Chunk(samples, encodeBlock) {
		size := len(part) * w.cfg.Datatype.sampleBytes()
		w.buffer = slices.Grow(w.buffer[:0], size)[:size]
		c := w.codec.Encode(w.buffer, part)
		w.digest.Write(w.buffer) // a hash does not fail
		if _, err := w.data.Write(w.buffer); err != nil {
			return fmt.Errorf("recording %s: %w", w.base, err)
		}
		w.written.Samples += radio.SampleCount(len(part))
		w.written.Clipped += radio.SampleCount(c.Clipped)
		w.written.Invalid += radio.SampleCount(c.Invalid)
	}
	return nil
}

// maxText bounds an annotation's texts, so that maxSegments of them fit into
// maxMeta.
const maxText = 256

// Annotate adds an annotation about samples recorded before or after, some of which
// may be in a gap.
func (w *Writer) Annotate(a Annotation) error {
	if err := w.usable(); err != nil {
		return err
	}
	if a.Count < 0 || a.Count > maxPosition || a.First < 0 || a.First > maxPosition {
		return &FormatError{w.base, "an annotation", fmt.Sprintf("at index %d for %d samples", a.First, a.Count), "0 or more of both"}
	}
	if a.Tag != nil {
		if err := a.Tag.check(w.base); err != nil {
			return err
		}
	}
	if a.Band != nil && !validBand(*a.Band) {
		return &FormatError{w.base, "the band of an annotation", fmt.Sprintf("%v to %v", a.Band.Min, a.Band.Max), allowedBand}
	}
	if len(a.Label) > maxText || len(a.Comment) > maxText {
		return &FormatError{w.base, "the length of an annotation's text", fmt.Sprint(max(len(a.Label), len(a.Comment))), fmt.Sprintf("at most %d bytes", maxText)}
	}
	if len(w.annotations) == maxSegments-maxReports {
		return &FormatError{w.base, "the number of annotations", fmt.Sprint(len(w.annotations) + 1), fmt.Sprintf("at most %d", len(w.annotations))}
	}
	w.annotations = append(w.annotations, a)
	return nil
}

// Written says what was recorded so far.
func (w *Writer) Written() Written { return w.written }

// Close makes the recording be there: the dataset first and then the metadata,
// each whole. If that fails neither is left. A second Close does nothing.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	if w.failed != nil {
		return w.failed
	}
	if err := w.publish(); err != nil {
		w.discard()
		return fmt.Errorf("recording %s: %w", w.base, err)
	}
	return nil
}

// Abort removes what was recorded; after Close it does nothing.
func (w *Writer) Abort() {
	if w.closed || w.failed != nil {
		w.closed = true
		return
	}
	w.closed = true
	w.discard()
}

func (w *Writer) publish() error {
	if err := errors.Join(w.data.Sync(), w.data.Close(), w.vacant()); err != nil {
		return err
	}
	meta, err := w.writeMeta()
	if err != nil {
		return err
	}
	defer os.Remove(meta) // does nothing once it has its name
	if err := os.Rename(w.data.Name(), w.base+dataSuffix); err != nil {
		return err
	}
	if err := os.Rename(meta, w.base+metaSuffix); err != nil {
		return errors.Join(err, os.Remove(w.base+dataSuffix))
	}
	return nil
}

// writeMeta returns the temporary name of the metadata. What cannot be read back is
// not written.
func (w *Writer) writeMeta() (string, error) {
	text, err := w.metadata().Encode()
	if err != nil {
		return "", err
	}
	if _, err := ParseMeta(w.base+metaSuffix, text); err != nil {
		return "", err
	}
	f, err := temporary(w.base, metaSuffix)
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	// Temporary files are for their owner only; a recording is as any file.
	if err := errors.Join(err, f.Chmod(0o644), os.Chmod(w.data.Name(), 0o644), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func (w *Writer) metadata() *Metadata {
	m := &Metadata{
		Datatype: w.cfg.Datatype, Version: Version, SampleRate: w.cfg.SampleRate,
		SHA512:   hex.EncodeToString(w.digest.Sum(nil)),
		Hardware: w.cfg.Hardware, Author: w.cfg.Author, Description: w.cfg.Description, Recorder: w.cfg.Recorder,
		ClipLevel: w.cfg.ClipLevel, Samples: w.written.Samples, Clipped: w.written.Clipped, Captures: w.captures,
		Primes: w.cfg.Primes, FrameFormat: w.cfg.FrameFormat, Frames: w.cfg.Frames,
	}
	if w.cfg.Datatype != CF32 {
		m.Scale = radio.Amplitude(w.scale)
	}
	m.Annotations = slices.Clone(w.reports)
	for _, a := range w.annotations {
		start, end := w.position(a.First), w.position(a.First+radio.SampleIndex(a.Count))
		m.Annotations = append(m.Annotations, DatasetAnnotation{
			Start: start, Count: end - start, Span: w.span(a, start, end), Band: a.Band,
			Label: a.Label, Comment: a.Comment, Tag: a.Tag,
		})
	}
	slices.SortStableFunc(m.Annotations, func(a, b DatasetAnnotation) int { return cmp.Compare(a.Start, b.Start) })
	return m
}

// span returns what an annotation is for by the stream's clock, nil where the samples
// [start, end) of the dataset tell.
func (w *Writer) span(a Annotation, start, end radio.SampleCount) *Span {
	last := a.First + radio.SampleIndex(a.Count) - 1
	if end > start && w.index(start) == a.First && w.index(end-1) == last {
		return nil
	}
	return &Span{a.First, a.Count}
}

// index returns the stream's index of the sample at position p of what was recorded.
func (w *Writer) index(p radio.SampleCount) radio.SampleIndex { return index(w.captures, p) }

// index is as above for captures.
func index(captures []Capture, p radio.SampleCount) radio.SampleIndex {
	c := captures[sort.Search(len(captures), func(k int) bool { return captures[k].Start > p })-1]
	return c.Index + radio.SampleIndex(p-c.Start)
}

// position returns where in the dataset the first sample of index i or later is.
func (w *Writer) position(i radio.SampleIndex) radio.SampleCount {
	return position(w.captures, w.written.Samples, i)
}

// position is as above for captures that hold for n samples.
func position(captures []Capture, n radio.SampleCount, i radio.SampleIndex) radio.SampleCount {
	k := sort.Search(len(captures), func(k int) bool { return captures[k].Index > i }) - 1
	if k < 0 {
		return 0
	}
	end := n
	if k+1 < len(captures) {
		end = captures[k+1].Start
	}
	return min(captures[k].Start+radio.SampleCount(i-captures[k].Index), end)
}
