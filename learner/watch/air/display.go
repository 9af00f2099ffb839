package air

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ringwave/learner/experiment/chart"
	"ringwave/learner/watch"
	"ringwave/radio"
)

const (
	// Bins is the resolution of spectra.
	Bins = 2048
	// between is the least time between two lines of the waterfall.
	between = 45 * time.Millisecond
	// betweenFrames is the least time between two frames.
	betweenFrames = 300 * time.Millisecond
	// even is how many blocks between two lines are taken at even distances, and strong how
	// many besides for their power: a short burst is not missed by much.
	even, strong = 4, 2
	// probes is how many samples of a block its power is estimated by.
	probes = 64
	// keptLines is how many lines a viewer may be late by.
	keptLines = 64
	// newest is the weight of a new block in the average.
	newest = 0.05
)

// Config says what is heard.
type Config struct {
	SampleRate radio.Hertz
	Centre     radio.Hertz // the carrier; 0 where it is not known
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// Display is what a receiver hears, for viewers: a radio.Sink, and an uplink.Viewer. Its
// methods are for any goroutine; those of a receiver never wait.
type Display struct {
	cfg   Config
	looks atomic.Int32

	in     sync.Mutex // held for a copy at most
	blocks []block    // that were not analysed yet, at most even
	loud   []block    // at most strong
	taken  time.Time  // when the last of blocks was
	free   [][]complex64
	part   []complex64 // of blocks that were too short, from the index partAt on
	partAt radio.SampleIndex

	frame   atomic.Pointer[pending] // that nobody has drawn yet
	frameAt atomic.Int64            // when the last was taken, in nanoseconds; 0 for never

	mu      sync.Mutex
	fft     *transform
	now     []float64 // power in each bin
	average []float64
	peak    []float64
	heard   bool // there is a spectrum
	seconds float64
	lines   []line // a ring: line s is at s % keptLines
	made    uint64 // lines
	madeAt  time.Time
	sent    map[int][2][]byte // spectrum and last line for viewers of so many columns, of now
	drawn   []byte            // the last frame's message
	frames  uint64
}

// block is samples that are to be analysed.
type block struct {
	samples []complex64
	first   radio.SampleIndex
	power   float64 // by which it was taken; 0 where it was for its time
}

// line is a line of the waterfall: power in each bin.
type line struct {
	seconds float64
	powers  []float64
}

// pending is a frame that is to be drawn.
type pending struct{ look func() chart.LinkView }

// New returns a display of what is heard at a sample rate.
func New(cfg Config) *Display {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Display{cfg: cfg, fft: newTransform(), lines: make([]line, keptLines)}
}

// Record takes in what a receiver has read, as far as somebody looks: radio.Sink. It never
// fails.
func (d *Display) Record(samples []complex64, meta radio.Meta) error {
	if d.looks.Load() == 0 || len(samples) == 0 {
		return nil
	}
	d.in.Lock()
	defer d.in.Unlock()
	if len(samples) < Bins {
		if samples, meta = d.together(samples, meta); samples == nil {
			return nil
		}
	}
	now := d.cfg.Now()
	due := len(d.blocks) == 0 || len(d.blocks) < even && now.Sub(d.taken) >= between/even
	at, power := strongest(samples)
	switch {
	case due:
		d.taken = now
		d.blocks = append(d.blocks, d.copied(samples, 0, meta, 0))
		if power > 0 && at >= Bins { // what stands out elsewhere in the block
			d.keepLoud(samples, at, meta, power)
		}
	default:
		d.keepLoud(samples, at, meta, power)
	}
	return nil
}

// together puts short blocks that follow each other together. It returns nil until there are
// Bins samples.
func (d *Display) together(samples []complex64, meta radio.Meta) ([]complex64, radio.Meta) {
	first := meta.Index(0)
	if n := len(d.part); n >= Bins || n > 0 && d.partAt+radio.SampleIndex(n) != first {
		d.part = d.part[:0]
	}
	if len(d.part) == 0 {
		d.partAt = first
	}
	d.part = append(d.part, samples...)
	if len(d.part) < Bins {
		return nil, meta
	}
	return d.part, radio.Meta{First: d.partAt}
}

// keepLoud keeps the part of a block around an index if it is among the loudest.
func (d *Display) keepLoud(samples []complex64, at int, meta radio.Meta, power float64) {
	from := min(max(0, at-Bins/2), len(samples)-Bins)
	if len(d.loud) < strong {
		d.loud = append(d.loud, d.copied(samples, from, meta, power))
		return
	}
	least := 0
	for k := range d.loud {
		if d.loud[k].power < d.loud[least].power {
			least = k
		}
	}
	if d.loud[least].power < power {
		d.free = append(d.free, d.loud[least].samples)
		d.loud[least] = d.copied(samples, from, meta, power)
	}
}

// copied returns Bins samples from an index on as a block.
func (d *Display) copied(samples []complex64, from int, meta radio.Meta, power float64) block {
	var own []complex64
	if n := len(d.free); n > 0 {
		own, d.free = d.free[n-1], d.free[:n-1]
	} else {
		own = make([]complex64, Bins)
	}
	copy(own, samples[from:])
	return block{samples: own, first: meta.Index(from), power: power}
}

// strongest returns where a block is strongest, by some of its samples, and how strong.
func strongest(samples []complex64) (at int, power float64) {
	step := max(1, len(samples)/probes)
	for k := 0; k < len(samples); k += step {
		x := samples[k]
		if p := float64(real(x))*float64(real(x)) + float64(imag(x))*float64(imag(x)); p > power {
			at, power = k, p
		}
	}
	return at, power
}

// WantsFrame reports whether a viewer looks that has seen the last frame, a moment ago:
// uplink.Viewer. How a frame is drawn takes more than all else that is shown.
func (d *Display) WantsFrame() bool {
	if d.looks.Load() == 0 || d.frame.Load() != nil {
		return false
	}
	at := d.frameAt.Load()
	return at == 0 || d.cfg.Now().UnixNano()-at >= int64(betweenFrames)
}

// Frame takes a frame, which is drawn once a viewer asks for it: uplink.Viewer.
func (d *Display) Frame(look func() chart.LinkView) {
	d.frameAt.Store(d.cfg.Now().UnixNano())
	d.frame.Store(&pending{look})
}

// Look begins a viewer's look: watch.Air.
func (d *Display) Look() watch.Look {
	if d.looks.Add(1) == 1 {
		d.forget()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &look{of: d, lines: d.made}
}

// forget drops what was heard while nobody looked, but for the last frame.
func (d *Display) forget() {
	d.in.Lock()
	d.blocks, d.loud, d.free = nil, nil, nil
	d.in.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = false
}

// take returns the blocks that were not analysed yet.
func (d *Display) take() (blocks, loud []block) {
	d.in.Lock()
	defer d.in.Unlock()
	blocks, loud = d.blocks, d.loud
	d.blocks, d.loud = nil, nil
	return blocks, loud
}

// analyse takes in what was heard since the last line, once for all viewers. The caller has
// mu.
func (d *Display) analyse() {
	now := d.cfg.Now()
	if d.made > 0 && now.Sub(d.madeAt) < between {
		return
	}
	blocks, loud := d.take()
	if len(blocks)+len(loud) == 0 {
		return
	}
	if !d.heard {
		d.heard = true
		d.average, d.peak, d.now = nil, make([]float64, Bins), make([]float64, Bins)
	}
	powers := make([]float64, Bins)
	all := slices.Concat(blocks, loud)
	slices.SortStableFunc(all, func(a, b block) int { return cmp.Compare(a.first, b.first) }) // the newest is what there is now
	for _, b := range all {
		d.fft.powers(d.now, b.samples)
		d.seconds = float64(b.first) / float64(d.cfg.SampleRate)
		for i, p := range d.now {
			powers[i], d.peak[i] = max(powers[i], p), max(d.peak[i], p)
		}
		if b.power == 0 { // it was taken for its time
			d.addAverage()
		}
	}
	d.in.Lock()
	for _, b := range all {
		if len(d.free) < 2*(even+strong) {
			d.free = append(d.free, b.samples)
		}
	}
	d.in.Unlock()
	d.lines[d.made%keptLines] = line{d.seconds, powers}
	d.sent = map[int][2][]byte{}
	d.made, d.madeAt = d.made+1, now
}

// addAverage takes the newest spectrum into the average.
func (d *Display) addAverage() {
	if d.average == nil {
		d.average = append([]float64(nil), d.now...)
		return
	}
	for i, p := range d.now {
		d.average[i] += newest * (p - d.average[i])
	}
}

// draw makes the message of a frame that waits.
func (d *Display) draw() {
	p := d.frame.Load()
	if p == nil {
		return
	}
	if message, err := frameMessage(p.look()); err == nil { // a frame has JSON
		d.drawn = message
		d.frames++
	}
	d.frame.Store(nil)
}

// look is one viewer's look.
type look struct {
	of     *Display
	lines  uint64 // that it has
	frames uint64
}

// Next returns what is new: watch.Look.
func (l *look) Next(columns int) (messages [][]byte) {
	d := l.of
	d.mu.Lock()
	defer d.mu.Unlock()
	d.analyse()
	d.draw()
	if l.lines < d.made {
		messages = append(messages, d.messages(l.lines, columns)...)
		l.lines = d.made
	}
	if l.frames < d.frames {
		messages = append(messages, d.drawn)
		l.frames = d.frames
	}
	return messages
}

// messages returns spectrum and lines for a viewer that has so many lines. Most viewers lack
// the last line alone, and those of as many columns share its message. The caller has mu.
func (d *Display) messages(has uint64, columns int) [][]byte {
	if has != d.made-1 {
		return [][]byte{d.spectrumMessage(columns), d.waterfallMessage(has, columns)}
	}
	both, ok := d.sent[columns]
	if !ok {
		both = [2][]byte{d.spectrumMessage(columns), d.waterfallMessage(has, columns)}
		d.sent[columns] = both
	}
	return both[:]
}

// Ask resets the peak hold and the average of all viewers on "reset": watch.Look.
func (l *look) Ask(word string) {
	if word != "reset" {
		return
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.heard = false
}

// Close ends the look.
func (l *look) Close() { l.of.looks.Add(-1) }
