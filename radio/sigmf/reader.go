package sigmf

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"

	"ringwave/radio"
	"ringwave/radio/intake"
	"ringwave/radio/iq"
)

// Options say how a recording is opened.
type Options struct {
	// SkipChecksum leaves core:sha512 unchecked, which otherwise reads all of the
	// dataset once more. A recording without the field is taken either way.
	SkipChecksum bool
}

// Recording is an open recording. It is safe for use by several goroutines.
type Recording struct {
	base  string
	meta  *Metadata
	data  *os.File
	n     radio.SampleCount
	scale float64
	codec *iq.Codec

	mu      sync.Mutex
	players map[*player]bool
	opened  radio.Epoch
	closed  bool
}

// Open opens the recording whose path is given with or without one of its
// suffixes, and checks it: its metadata, that the dataset is whole samples and as
// many as the metadata needs, its checksum. What is wrong with the content is a
// *FormatError.
func Open(path string, opt Options) (*Recording, error) {
	r := &Recording{base: trimSuffix(path), players: map[*player]bool{}}
	text, err := intake.ReadFile(r.base+metaSuffix, maxMeta)
	var excess *intake.Excess
	if errors.As(err, &excess) {
		return nil, &FormatError{r.base + metaSuffix, "the metadata's length", excess.Value, excess.Allowed}
	}
	if err != nil {
		return nil, err
	}
	if r.meta, err = ParseMeta(r.base+metaSuffix, text); err != nil {
		return nil, err
	}
	r.scale = float64(r.meta.Scale)
	if r.scale == 0 || r.meta.Datatype == CF32 {
		r.scale = r.meta.Datatype.customaryScale()
	}
	r.codec = r.meta.Datatype.codec(r.scale)
	if r.data, err = os.Open(r.base + dataSuffix); err != nil {
		return nil, err
	}
	if err := r.check(opt); err != nil {
		return nil, closing(r.data, err)
	}
	return r, nil
}

// closing closes what was only read from: its own failure would tell nothing.
func closing(c io.Closer, err error) error {
	_ = c.Close()
	return err
}

func (r *Recording) wrong(key string, value any, allowed string, args ...any) error {
	return &FormatError{r.base + dataSuffix, key, shown(fmt.Sprint(value)), fmt.Sprintf(allowed, args...)}
}

func (r *Recording) check(opt Options) error {
	info, err := r.data.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return r.wrong("the dataset", "no regular file", "a regular file")
	}
	size := int64(r.meta.Datatype.sampleBytes())
	if info.Size()%size != 0 {
		return r.wrong("the length", fmt.Sprintf("%d bytes", info.Size()), "a multiple of %d bytes, the samples of %s", size, r.meta.Datatype)
	}
	r.n = radio.SampleCount(info.Size() / size)
	if n := r.meta.Samples; n >= 0 && n != r.n {
		return r.wrong("the length", fmt.Sprintf("%d samples", r.n), "%d, as ringwave:samples says", n)
	}
	last := r.meta.Captures[len(r.meta.Captures)-1].Start
	if last > 0 && last >= r.n {
		return r.wrong("the length", fmt.Sprintf("%d samples", r.n), "more than %d, where the last capture begins", last)
	}
	for k, a := range r.meta.Annotations {
		if end := a.Start + max(a.Count, 0); end > r.n {
			return r.wrong("the length", fmt.Sprintf("%d samples", r.n), "%d or more, where annotations[%d] ends", end, k)
		}
	}
	if err := r.checkSpans(); err != nil {
		return err
	}
	if opt.SkipChecksum || r.meta.SHA512 == "" {
		return nil
	}
	return r.checksum()
}

// checkSpans compares what annotations are for by the stream's clock with the
// samples of the dataset that they are for.
func (r *Recording) checkSpans() error {
	for k, a := range r.meta.Annotations {
		s := a.Span
		if s == nil {
			continue
		}
		start := position(r.meta.Captures, r.n, s.First)
		end := position(r.meta.Captures, r.n, s.First+radio.SampleIndex(s.Count))
		if start != a.Start || a.Count >= 0 && end-start != a.Count {
			return &FormatError{r.base + metaSuffix, fmt.Sprintf("annotations[%d] ringwave:first_index and ringwave:index_count", k),
				fmt.Sprintf("%d and %d", s.First, s.Count), fmt.Sprintf("indices of the samples from %d on that it is for", a.Start)}
		}
	}
	return nil
}

func (r *Recording) checksum() error {
	h := sha512.New()
	if _, err := io.Copy(h, io.NewSectionReader(r.data, 0, r.bytes())); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != strings.ToLower(r.meta.SHA512) {
		return r.wrong("SHA-512", sum[:16]+"...", "%s..., that of core:sha512", r.meta.SHA512[:16])
	}
	return nil
}

func (r *Recording) bytes() int64 { return int64(r.n) * int64(r.meta.Datatype.sampleBytes()) }

// Metadata returns what the recording says of itself; it is not to be changed.
func (r *Recording) Metadata() *Metadata { return r.meta }

// Samples returns the number of samples.
func (r *Recording) Samples() radio.SampleCount { return r.n }

// Annotations returns the annotations by the stream's clock, gaps within them
// counted, ascending.
func (r *Recording) Annotations() []Annotation {
	var all []Annotation
	for _, a := range r.meta.Annotations {
		b := Annotation{First: r.index(a.Start), Label: a.Label, Comment: a.Comment, Tag: a.Tag, Band: a.Band}
		if s := a.Span; s != nil {
			b.First, b.Count = s.First, s.Count
			all = append(all, b)
			continue
		}
		count := a.Count
		if count < 0 {
			count = r.captureEnd(a.Start) - a.Start
		}
		if count > 0 {
			b.Count = radio.SampleCount(r.index(a.Start+count-1) + 1 - b.First)
		}
		all = append(all, b)
	}
	return all
}

// capture returns the number of the capture that position p lies in.
func (r *Recording) capture(p radio.SampleCount) int {
	return sort.Search(len(r.meta.Captures), func(k int) bool { return r.meta.Captures[k].Start > p }) - 1
}

func (r *Recording) captureEnd(p radio.SampleCount) radio.SampleCount {
	if k := r.capture(p) + 1; k < len(r.meta.Captures) {
		return r.meta.Captures[k].Start
	}
	return r.n
}

// index returns the stream's index of the sample at position p.
func (r *Recording) index(p radio.SampleCount) radio.SampleIndex {
	c := r.meta.Captures[r.capture(p)]
	return c.Index + radio.SampleIndex(p-c.Start)
}

// Info tells what the recording is.
func (r *Recording) Info() radio.Info {
	i := radio.Info{URI: radio.URI{Scheme: "file", Name: r.base + metaSuffix}.String(), Driver: "sigmf", Model: "recording"}
	if r.meta.Hardware != "" {
		i.Model = "recording of " + r.meta.Hardware
	}
	return i
}

// SampleRates returns the one rate of the recording, 0 if it does not say.
func (r *Recording) SampleRates(radio.Direction) radio.Span[radio.Hertz] {
	return radio.Span[radio.Hertz]{Min: r.meta.SampleRate, Max: r.meta.SampleRate}
}

// SampleRate returns the rate of the recording, 0 if it does not say.
func (r *Recording) SampleRate(radio.Direction) radio.Hertz { return r.meta.SampleRate }

// SetSampleRate takes the rate of the recording only.
func (r *Recording) SetSampleRate(_ context.Context, d radio.Direction, rate radio.Hertz) (radio.Hertz, error) {
	return r.SampleRates(d).Floor("the sample rate of "+r.base, rate)
}

// OpenReceiver returns a stream that plays the recording from its beginning, as
// fast as it is read. Any number may be open at a time.
//
// A block is of one capture segment, and has as a gap before it what
// core:global_index jumps over. Invalid samples are 0 and counted. What the
// receiver reported when it recorded is told with the first sample that the
// report was about. The epoch is that of the recording, or the number of the
// stream if the recording has none.
func (r *Recording) OpenReceiver(context.Context) (radio.Receiver, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, radio.ErrClosed
	}
	r.opened++
	p := &player{r: r, epoch: r.opened, data: io.NewSectionReader(r.data, 0, r.bytes())}
	r.players[p] = true
	return p, nil
}

// Close closes the recording and its streams.
func (r *Recording) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	for p := range r.players {
		p.setState(radio.Closed)
	}
	clear(r.players)
	return r.data.Close()
}

// player is a stream that plays a recording.
type player struct {
	r    *Recording
	data *io.SectionReader
	pos  radio.SampleCount
	raw  []byte
	next int // the first annotation not yet told

	mu    sync.Mutex
	state radio.State
	epoch radio.Epoch
}

func (p *player) setState(s radio.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
}

func (p *player) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case radio.Closed:
		return radio.ErrClosed
	case radio.Running:
		return radio.ErrBusy
	}
	p.state = radio.Running
	return nil
}

func (p *player) State() radio.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *player) Epoch() radio.Epoch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch
}

func (p *player) Close() error {
	p.setState(radio.Closed)
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	delete(p.r.players, p)
	return nil
}

func (p *player) ready(ctx context.Context) error {
	switch p.State() {
	case radio.Closed:
		return radio.ErrClosed
	case radio.Ready, radio.Armed:
		return radio.ErrNotStarted
	}
	return ctx.Err()
}

// readBlock bounds what one Read gives, and so its memory.
const readBlock = 1 << 16

func (p *player) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return p.ReadUntil(ctx, dst, radio.Forever)
}

// ClipLevel returns the lower of the receiver's level and of the amplitude that only
// the datatype's largest integer stands for.
func (p *player) ClipLevel() radio.Amplitude {
	level, d := p.r.meta.ClipLevel, p.r.meta.Datatype
	if d == CF32 {
		return level
	}
	own := radio.Amplitude(p.r.scale * (d.limit() - 0.5))
	if level == 0 || own < level {
		return own
	}
	return level
}

func (p *player) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	var meta radio.Meta
	if err := p.ready(ctx); err != nil || len(dst) == 0 {
		return 0, meta, err
	}
	if p.pos == p.r.n {
		return 0, meta, io.EOF
	}
	k := p.r.capture(p.pos)
	left := radio.SampleCount(until - p.r.index(p.pos))
	if left <= 0 {
		return 0, meta, nil
	}
	n := int(min(radio.SampleCount(min(len(dst), readBlock)), p.r.captureEnd(p.pos)-p.pos, left))
	size := p.r.meta.Datatype.sampleBytes()
	p.raw = slices.Grow(p.raw[:0], n*size)[:n*size]
	if _, err := p.data.ReadAt(p.raw, int64(p.pos)*int64(size)); err != nil {
		if p.State() == radio.Closed {
			err = radio.ErrClosed // the file was closed meanwhile
		}
		return 0, meta, fmt.Errorf("%s: %w", p.r.base+dataSuffix, err)
	}
	if meta.Invalid = radio.SampleCount(p.r.codec.Decode(dst[:n], p.raw).Invalid); meta.Invalid > 0 {
		meta.Flags |= radio.Invalid
	}
	p.describe(&meta, k, n)
	p.pos += radio.SampleCount(n)
	return n, meta, nil
}

// describe tells of the n samples of capture k from pos on.
func (p *player) describe(meta *radio.Meta, k, n int) {
	c := p.r.meta.Captures[k]
	meta.First = p.r.index(p.pos)
	p.mu.Lock()
	if c.Epoch != 0 {
		p.epoch = c.Epoch
	}
	meta.Epoch = p.epoch
	p.mu.Unlock()
	if k > 0 && p.pos == c.Start {
		lost := radio.SampleCount(c.Index - p.r.index(p.pos-1) - 1)
		if lost > 0 || c.GapEstimated {
			meta.Gaps = []radio.Gap{{Length: lost, Exact: !c.GapEstimated}}
			meta.Flags |= radio.Overrun
		}
	}
	end := p.pos + radio.SampleCount(n)
	for all := p.r.meta.Annotations; p.next < len(all) && all[p.next].Start < end; p.next++ {
		if all[p.next].Clipped > 0 {
			meta.Clipped += all[p.next].Clipped
			meta.Flags |= radio.Clipped
		}
		if all[p.next].Invalid > 0 {
			meta.Invalid += all[p.next].Invalid
			meta.Flags |= radio.Invalid
		}
		if all[p.next].Overrun {
			meta.Flags |= radio.Overrun
		}
	}
}

// Opener opens file:PATH, the recording at PATH, with or without a suffix;
// file:PATH?checksum=skip leaves core:sha512 unchecked.
type Opener struct{}

// Open opens a recording as a radio.ReceiveOpener.
func (Opener) Open(_ context.Context, u radio.URI) (radio.Device, error) {
	if err := u.Only("checksum"); err != nil {
		return nil, err
	}
	how := u.Params.Get("checksum")
	if u.Params.Has("checksum") && how != "skip" && how != "verify" {
		return nil, fmt.Errorf("device %q has the parameter checksum=%s; allowed is skip or verify", u, how)
	}
	r, err := Open(u.Name, Options{SkipChecksum: how == "skip"})
	if err != nil {
		return nil, err // not a nil recording in an interface
	}
	return r, nil
}
