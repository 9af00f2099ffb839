package virtual

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
)

// Place is one board of a bench.
type Place struct {
	Radio Radio
	// Reference says that the bench's 10 MHz is on the board's clock input.
	Reference bool
	// OffsetPPM is the error of the board's own oscillator in parts per million,
	// at most MaxOffsetPPM. It shifts the carrier. SamplePPM is what it makes of the
	// sampling clock, which of a real board is the same; it is apart for what takes
	// clocks that are all alike, as the bench does up to a thousandth of a rate. Neither
	// counts while the board follows the reference.
	OffsetPPM, SamplePPM float64
	// Transmit is what the board's hardware does to what it sends, before the gain of
	// the direction, and Receive to what it hears, behind that gain; nil does nothing.
	Transmit, Receive Chain
}

// Chain gives what a board's hardware does to a stream, the board's start number n, that
// has a rate: apply changes the next samples in place. How the stream is cut into calls must
// not change what comes out.
type Chain func(rate radio.Hertz, n uint64) (apply func(x []complex64))

// Link is the way from one board's antenna to another's.
type Link struct {
	From, To int // places
	// Gain multiplies; a Gain of 0 is silence.
	Gain complex64
	// Delay is the travelling time in samples, 0 to MaxDelay.
	Delay int
	// Path distorts before gain and delay; nil does nothing. Its index counts what
	// the receiving board has heard, less the delay.
	Path loopback.Path
}

// Ear is what is special at a receiving board; a board without one hears the sum
// of its links.
type Ear struct {
	Board int // place
	// Superpose replaces the sum over the board's links, which is taken in their
	// order.
	Superpose loopback.Superposition
	Noise     loopback.Noise // nil for none
}

// Wire leads from a board's trigger output to another's input.
type Wire struct{ From, To int }

// Config describes a Bench.
type Config struct {
	Boards   []Place
	Links    []Link
	Ears     []Ear
	Triggers []Wire
	// Clock makes the bench run in real time; nil is lock-step.
	Clock loopback.Clock
	// Backlog is how far a bench in real time may be behind its clock, above 0; 0
	// stands for DefaultBacklog. What is more is left out and told by Slipped: on a
	// machine that has no time for anybody, a small Backlog makes the bench slower
	// than real time where boards would overrun.
	Backlog time.Duration
	// Await lists boards without whose streams time does not begin: what comes
	// first is then no matter of who started first. See Bench.Await.
	Await []int
	// Phase returns the phase that a board's carrier has after its start or retune
	// number turn, from 1 on; nil leaves all at 0.
	Phase func(board int, turn uint64) loopback.Radians
}

const (
	// MaxDelay bounds the delay of a link, in samples.
	MaxDelay = 1 << 20
	// MaxOffsetPPM bounds the error of an oscillator.
	MaxOffsetPPM = 1000
	// block is the number of samples that are moved at a time: it stays in the
	// first-level cache.
	block = 2048
	// tick is how often a bench in real time looks at its clock by itself. A board
	// has room for 1.6 ms at the highest rate, but transfers that are queued take
	// what came in between.
	tick = time.Millisecond
	// DefaultBacklog is more than any buffer of a host holds.
	DefaultBacklog = 2 * time.Second
)

// Bench is a number of boards, joined. It is safe for use by several goroutines.
type Bench struct {
	cfg     Config
	members []*member
	ears    []*ear
	// The goroutine that lets time go on in real time: began has a token when the
	// first board streams.
	stop  context.CancelFunc
	began chan struct{}
	ended sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// rate is that of the bench while any board streams; since is when index was
	// origin.
	rate          radio.Hertz
	since         time.Duration
	origin, index int64
	slipped       time.Duration
	cut           map[Wire]bool
	completions   []func()
	delivering    bool
	// changed is closed when something happens that a waiter may wait for; nil
	// while nobody waits.
	changed chan struct{}
}

// member is a board and what the bench knows of it.
type member struct {
	index      int
	radio      Radio
	reference  bool
	locked     bool // to the reference, as of the last start
	offset     float64
	skew       float64    // of the sampling clock
	clock      *resampler // nil where that has no error
	send, hear Chain
	await      bool // time waits for it to stream
	rejoin     bool // await is to be set once no board streams

	now   Activity
	turns uint64              // starts and retunes
	phase float64             // of the last of them, in radians
	sent  int64               // samples of the stream so far
	due   float64             // samples due at a rate of its own
	chain func(x []complex64) // of the stream; nil for none
	buf   [block + clockSlack]complex64
}

// NewBench joins boards, which belong to it from then on.
func NewBench(cfg Config) (*Bench, error) {
	if cfg.Backlog < 0 {
		return nil, fmt.Errorf("bench: its backlog is %v; allowed is above 0", cfg.Backlog)
	}
	if cfg.Backlog == 0 {
		cfg.Backlog = DefaultBacklog
	}
	b := &Bench{cfg: cfg, cut: map[Wire]bool{}, began: make(chan struct{}, 1)}
	for i, p := range cfg.Boards {
		m, err := newMember(i, p)
		if err != nil {
			return nil, err
		}
		b.members = append(b.members, m)
	}
	if err := b.connect(cfg); err != nil {
		return nil, err
	}
	for _, i := range cfg.Await {
		if err := b.check("a board to wait for", i); err != nil {
			return nil, err
		}
		b.members[i].await = true
	}
	for _, w := range cfg.Triggers {
		if err := b.checkWire(w); err != nil {
			return nil, err
		}
	}
	for _, m := range b.members {
		m.radio.Join(&Seat{bench: b, member: m})
	}
	if cfg.Clock != nil {
		ctx, cancel := context.WithCancel(context.Background())
		b.stop = cancel
		b.ended.Add(1)
		go b.pump(ctx)
	}
	return b, nil
}

// newMember takes up the board of place i.
func newMember(i int, p Place) (*member, error) {
	if p.Radio == nil {
		return nil, fmt.Errorf("bench: place %d has no board", i)
	}
	for _, e := range []struct {
		of  string
		ppm float64
	}{{"oscillator", p.OffsetPPM}, {"sampling clock", p.SamplePPM}} {
		if !(math.Abs(e.ppm) <= MaxOffsetPPM) {
			return nil, fmt.Errorf("bench: board %d has an %s error of %v ppm; allowed is -%d to %d", i, e.of, e.ppm, MaxOffsetPPM, MaxOffsetPPM)
		}
	}
	m := &member{
		index: i, radio: p.Radio, reference: p.Reference, offset: p.OffsetPPM * 1e-6, skew: p.SamplePPM * 1e-6,
		send: p.Transmit, hear: p.Receive,
	}
	if m.skew != 0 {
		m.clock = newResampler()
	}
	return m, nil
}

func (b *Bench) check(what string, i int) error {
	if i < 0 || i >= len(b.members) {
		return fmt.Errorf("bench: %s is %d; allowed is 0 to %d", what, i, len(b.members)-1)
	}
	return nil
}

func (b *Bench) checkWire(w Wire) error {
	if err := b.check("the board at one end of a trigger wire", w.From); err != nil {
		return err
	}
	return b.check("the board at one end of a trigger wire", w.To)
}

// Close unplugs all boards and ends the bench. A second Close does nothing.
func (b *Bench) Close() error {
	for _, m := range b.members {
		m.radio.Unplug()
	}
	b.mu.Lock()
	b.closed = true
	b.wake()
	b.mu.Unlock()
	if b.stop != nil {
		b.stop()
	}
	b.ended.Wait()
	return nil
}

// Await keeps time from going on while the board does not stream, until it next
// starts; lock-step only. Thus a restart is at the same sample in each run.
func (b *Bench) Await(board int) error {
	if err := b.check("a board to wait for", board); err != nil {
		return err
	}
	b.lock()
	defer b.unlock()
	b.members[board].await = true
	return nil
}

// AwaitRestart is Await for several boards from when no board streams any more. So
// those that end their streams together all come to an end, though one has less to send
// than another, and then begin together.
func (b *Bench) AwaitRestart(boards ...int) error {
	for _, i := range boards {
		if err := b.check("a board to wait for", i); err != nil {
			return err
		}
	}
	b.lock()
	defer b.unlock()
	for _, i := range boards {
		b.members[i].rejoin = true
	}
	return nil
}

// SetReference plugs 10 MHz into a board's clock input, or pulls it out. A board
// looks for it when it starts; one that loses it goes on by its own oscillator.
func (b *Bench) SetReference(board int, present bool) error {
	if err := b.check("a board with a clock input", board); err != nil {
		return err
	}
	b.lock()
	defer b.unlock()
	m := b.members[board]
	m.reference = present
	m.locked = m.locked && present
	return nil
}

// CutTrigger cuts a trigger wire: its edges arrive no more.
func (b *Bench) CutTrigger(w Wire) error {
	if err := b.checkWire(w); err != nil {
		return err
	}
	b.lock()
	defer b.unlock()
	b.cut[w] = true
	return nil
}

// Slipped returns how much time the bench has left out because the machine was too
// slow for it.
func (b *Bench) Slipped() time.Duration {
	b.lock()
	defer b.unlock()
	return b.slipped
}

// Index returns the number of samples that the bench has gone through while any
// board streamed.
func (b *Bench) Index() int64 {
	b.lock()
	defer b.unlock()
	return b.index
}

// Carriers returns the places of the boards whose transmit chains are on, with samples or
// without.
func (b *Bench) Carriers() (places []int) {
	b.lock()
	defer b.unlock()
	for _, m := range b.members {
		if m.radio.Activity().Carrier {
			places = append(places, m.index)
		}
	}
	return places
}

// lock locks and brings time up to now.
func (b *Bench) lock() {
	b.mu.Lock()
	b.settle()
}

// unlock lets time go on, unlocks and delivers.
func (b *Bench) unlock() {
	b.note()
	b.step()
	b.wake()
	b.release()
}

// release unlocks and delivers. Only one goroutine delivers at a time, so that the
// order is kept.
func (b *Bench) release() {
	if b.delivering {
		b.mu.Unlock()
		return
	}
	b.delivering = true
	for len(b.completions) > 0 {
		due := b.completions
		b.completions = nil
		b.mu.Unlock()
		for _, done := range due {
			done()
		}
		b.mu.Lock()
	}
	b.delivering = false
	b.mu.Unlock()
}

// wait gives up the lock until met. It wakes nobody in its loop, nor brings time up to
// now, which wakes all: two who wait would wake each other for ever.
func (b *Bench) wait(ctx context.Context, met func() bool) error {
	b.wake()
	for {
		b.note()
		b.step()
		if met() {
			b.settle()
			return nil
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.release()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		b.mu.Lock()
		if !met() && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (b *Bench) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

func (b *Bench) fire(from int) {
	for _, w := range b.cfg.Triggers {
		if w.From == from && !b.cut[w] {
			b.members[w.To].radio.Edge()
		}
	}
}

// pump lets time go on while nobody asks.
func (b *Bench) pump(ctx context.Context) {
	defer b.ended.Done()
	for ctx.Err() == nil {
		b.lock()
		streams := b.rate > 0
		b.release()
		if streams {
			b.cfg.Clock.Wait(ctx, b.cfg.Clock.Now()+tick, nil)
			continue
		}
		select {
		case <-b.began:
		case <-ctx.Done():
		}
	}
}

// settle brings a bench in real time up to its clock.
func (b *Bench) settle() {
	if b.cfg.Clock == nil || b.rate == 0 {
		return
	}
	now := b.cfg.Clock.Now()
	if late := now - b.reached(); late > b.cfg.Backlog {
		b.since += late - b.cfg.Backlog
		b.slipped += late - b.cfg.Backlog
	}
	for b.rate > 0 {
		target := b.origin + int64(b.rate.Samples(max(0, now-b.since)))
		if b.index >= target {
			return
		}
		b.advance(int(min(block, target-b.index)))
		b.note()
	}
}

// reached returns the time of index.
func (b *Bench) reached() time.Duration {
	return b.since + b.rate.Duration(radio.SampleCount(b.index-b.origin))
}

// step lets a bench in lock-step go on as far as all boards are ready.
func (b *Bench) step() {
	if b.cfg.Clock != nil {
		return
	}
	for n := b.room(); n > 0; n = b.room() {
		b.advance(n)
		b.note()
	}
}

// room returns how far lock-step may go, at most a block.
func (b *Bench) room() int {
	n, streams := block, false
	for _, m := range b.members {
		switch {
		case m.now.Stays:
		case m.now.Mode != Off:
			streams = true
			n = min(n, m.room())
		case m.await:
			return 0
		}
	}
	if !streams {
		return 0
	}
	return max(0, n)
}

// note looks at what the boards do now.
func (b *Bench) note() {
	var first *member // that streams
	kept := false     // one streams at the bench's rate
	for _, m := range b.members {
		was := m.now
		m.now = m.radio.Activity()
		if m.now.Mode == Off {
			continue
		}
		switch {
		case was.Mode == Off || was.Stream != m.now.Stream:
			b.begin(m)
		case was.Tuning != m.now.Tuning:
			b.turn(m)
		}
		if first == nil {
			first = m
		}
		kept = kept || b.atRate(m)
	}
	switch {
	case first == nil:
		b.rate = 0
		for _, m := range b.members {
			m.await, m.rejoin = m.await || m.rejoin, false
		}
	case !kept:
		b.rebase(first.now.Rate)
	}
}

// rebase makes the bench go at another rate from now on.
func (b *Bench) rebase(rate radio.Hertz) {
	if b.rate > 0 {
		b.since = b.reached()
	} else if b.cfg.Clock != nil {
		b.since = b.cfg.Clock.Now()
		select {
		case b.began <- struct{}{}:
		default:
		}
	}
	b.rate, b.origin = rate, b.index
}

// atRate reports whether m streams at the bench's rate, up to what oscillators and
// dividers leave.
func (b *Bench) atRate(m *member) bool {
	return math.Abs(float64(m.now.Rate/b.rate)-1) < 1e-4
}

// begin notes that m starts to stream.
func (b *Bench) begin(m *member) {
	m.sent, m.due = 0, 0
	m.await = false
	m.locked = m.reference
	b.turn(m)
	made := m.send
	if m.now.Mode == Receiving {
		b.ears[m.index].forget()
		made = m.hear
	}
	m.chain = nil
	if made != nil {
		m.chain = made(m.now.Rate, m.now.Stream)
	}
	if m.clock != nil {
		m.clock.rest()
	}
}

// turn returns m's carrier a new phase.
func (b *Bench) turn(m *member) {
	m.turns++
	if b.cfg.Phase != nil {
		m.phase = float64(b.cfg.Phase(m.index, m.turns))
	}
}

// advance moves n samples, at most a block, from antenna to antenna.
func (b *Bench) advance(n int) {
	for _, m := range b.members {
		if m.now.Mode != Transmitting {
			continue
		}
		if b.atRate(m) {
			m.transmit(n)
			continue
		}
		b.alone(m, n, m.radio.Send)
	}
	for _, e := range b.ears {
		m := e.member
		if m.now.Mode != Receiving {
			e.pass(b, n)
			continue
		}
		if b.atRate(m) {
			m.receive(e.hear(b, n))
			continue
		}
		e.pass(b, n)
		b.alone(m, n, func(buf []complex64) {
			clear(buf)
			m.radio.Receive(buf)
		})
	}
	for _, m := range b.members {
		if m.now.Mode != Off {
			m.sent += int64(n)
		}
	}
	b.index += int64(n)
	b.wake()
}

// alone runs a board at its own rate for n samples of the bench. In lock-step it
// goes sample by sample with the others.
func (b *Bench) alone(m *member, n int, do func([]complex64)) {
	own := n
	if b.cfg.Clock != nil {
		m.due += float64(n) * float64(m.now.Rate/b.rate)
		own = int(m.due)
		m.due -= float64(own)
	}
	for own > 0 {
		k := min(own, block)
		do(m.buf[:k])
		own -= k
	}
}
