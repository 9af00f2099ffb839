package pluto

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ringwave/radio"
	"ringwave/radio/iq"
	"ringwave/radio/life"
)

// drainGrace is how long sending what was written may take on Close, beyond the time
// that its samples last.
const drainGrace = time.Second

// segment is samples that wait for the board, in its format.
type segment struct {
	start radio.SampleIndex
	data  []byte
}

// burst is one whose end was written and is not yet known to be on air.
type burst struct {
	end radio.SampleIndex
	due int // the number of blocks after which it is; 0 while it waits here
}

// transmitter is the transmit stream of a device. One goroutine hands blocks to the
// board; Write fills the window that it takes them from.
type transmitter struct {
	d       *Device
	codec   *iq.Codec
	events  *radio.EventQueue
	clipped atomic.Int64

	mu       sync.Mutex
	state    radio.State
	starting bool
	closing  bool
	failed   error
	epoch    radio.Epoch
	segments []segment
	stored   int               // samples in segments
	handed   radio.SampleIndex // the next sample to be handed over
	tail     radio.SampleIndex // what was written or promised ends before it
	inBurst  bool              // more is to follow what was written last
	bursts   []burst
	blocks   int           // handed over
	changed  chan struct{} // closed at the next change; nil while nobody waits

	size    int         // samples of a block
	rate    radio.Hertz // since Start
	link    *link
	ended   chan struct{}
	unwatch func() // ends watching the session and the guard
	closer  sync.Once
	result  error

	// power is held while the carrier is switched, which happens once each way: on
	// never comes after off.
	power  sync.Mutex
	isOff  bool
	offErr error
	rising life.Life // ends when the carrier is to go off
}

// OpenTransmitter returns a stream that is Ready; radio.ErrBusy while another is open, of
// whichever channel of the board; radio.ErrNotPermitted where the board's frequency or gain
// is not permitted; radio.ErrNoGuard or radio.ErrGuard where no guard watches over the
// board. It switches off whatever the board transmits, of all its channels.
func (d *Device) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return nil, err
	}
	if err := d.sessionOver(); err != nil {
		return nil, fmt.Errorf("opening the transmitter of %s: %w", d.info.URI, err)
	}
	if d.isOpen(radio.Transmit) {
		return nil, radio.ErrBusy
	}
	if err := d.permit.Frequency(d.Frequency(radio.Transmit)); err != nil {
		return nil, fmt.Errorf("opening the transmitter of %s: %w", d.info.URI, err)
	}
	if err := d.watchOver(ctx); err != nil {
		return nil, fmt.Errorf("opening the transmitter of %s: %w", d.info.URI, err)
	}
	if !d.sending.take(d.opts.address) {
		return nil, fmt.Errorf("opening the transmitter of %s: this program sends with another channel of the board, which shares its oscillator; allowed is one transmitter a board: %w", d.info.URI, radio.ErrBusy)
	}
	t, err := d.silentTransmitter()
	if err != nil {
		d.sending.leave(d.opts.address)
		return nil, fmt.Errorf("opening the transmitter of %s: %w", d.info.URI, err)
	}
	return t, nil
}

// silentTransmitter switches the board off and makes its stream.
func (d *Device) silentTransmitter() (radio.Transmitter, error) {
	if err := d.off(); err != nil {
		return nil, err
	}
	t := &transmitter{d: d, codec: iq.New(d.board.ports[radio.Transmit].format), events: radio.NewEventQueue(), epoch: d.nextEpoch()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return nil, radio.ErrClosed
	}
	d.tx = t
	if d.opts.feed == strict {
		return t, nil
	}
	return paced{t}, nil
}

// sessionOver returns ErrSessionOver, with its cause, once nothing may be sent any more.
func (d *Device) sessionOver() error {
	if err := d.session.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrSessionOver, err)
	}
	return nil
}

// Start hands zeros to the board and then switches its carrier on.
func (t *transmitter) Start(ctx context.Context) error {
	t.mu.Lock()
	switch {
	case t.state == radio.Closed:
		t.mu.Unlock()
		return radio.ErrClosed
	case t.state != radio.Ready || t.starting:
		t.mu.Unlock()
		return radio.ErrBusy
	}
	t.starting = true
	t.mu.Unlock()
	err := t.begin(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starting = false
	t.wake()
	if err != nil {
		return fmt.Errorf("starting to transmit with %s: %w", t.d.info.URI, err)
	}
	if t.state == radio.Closed {
		return radio.ErrClosed
	}
	t.state = radio.Running
	return nil
}

func (t *transmitter) begin(ctx context.Context) error {
	d := t.d
	// Neither frequency nor gain may change between the look and the switch.
	d.changing.Lock()
	defer d.changing.Unlock()
	d.mu.Lock()
	guard := d.watch
	d.mu.Unlock()
	if err := errors.Join(d.sessionOver(), guard.Err()); err != nil {
		return err
	}
	l, err := d.stream(ctx, radio.Transmit)
	if err != nil {
		return err
	}
	p := d.board.ports[radio.Transmit]
	t.rate = d.SampleRate(radio.Transmit)
	t.size = d.opts.blockSamples(t.rate)
	if err := l.openDevice(ctx, p.device, t.size, p.mask); err != nil {
		return errors.Join(fmt.Errorf("opening %s: %w", p.name, err), l.close())
	}
	t.mu.Lock()
	if t.state == radio.Closed || t.closing {
		t.mu.Unlock()
		_ = l.close() // nothing was sent
		return radio.ErrClosed
	}
	t.link, t.ended = l, make(chan struct{})
	forgetSession := watch(d.session.AfterEnd, func() {
		t.cut(fmt.Errorf("transmitting with %s: %w", d.info.URI, d.sessionOver()))
	})
	forgetGuard := watch(guard.AfterLoss, func() {
		t.cut(fmt.Errorf("transmitting with %s: %w", d.info.URI, guard.Err()))
	})
	t.unwatch = func() { forgetSession(); forgetGuard() }
	t.mu.Unlock()
	// The board has samples from before its carrier is on until after it is off.
	go t.pump()
	err = t.powered(ctx, func(ctx context.Context) error {
		// Again behind it: the program may have been stopped just before.
		return errors.Join(d.on(ctx), d.sessionOver(), guard.Err())
	})
	if err != nil {
		t.cut(err)
	}
	return err
}

// watch has f called after an end. The function that it gives ends that, and waits for f
// if it was called.
func watch(after func(func()) (stop func() bool), f func()) (unwatch func()) {
	over := make(chan struct{})
	stop := after(func() {
		defer close(over)
		f()
	})
	return func() {
		if !stop() {
			<-over
		}
	}
}

// powered does what raises the power, unless it is off for good. The carrier's going
// off interrupts it.
func (t *transmitter) powered(ctx context.Context, f func(context.Context) error) error {
	t.power.Lock()
	defer t.power.Unlock()
	ctx, release := t.rising.Join(ctx)
	defer release()
	if t.isOff || t.rising.Err() != nil {
		return t.whyOff()
	}
	err := f(ctx)
	if err != nil && t.rising.Err() != nil {
		return t.whyOff()
	}
	return err
}

// whyOff returns why the carrier is off for good.
func (t *transmitter) whyOff() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed != nil {
		return t.failed
	}
	return radio.ErrClosed
}

func (t *transmitter) State() radio.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

func (t *transmitter) Epoch() radio.Epoch {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch
}

// next returns the index of the next sample to be handed over.
func (t *transmitter) next() radio.SampleIndex {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handed
}

// paced is a transmitter whose board is kept fed, so that its index goes on by
// itself.
type paced struct{ *transmitter }

// Earliest is radio.Pacer's.
func (t paced) Earliest() radio.SampleIndex { return t.next() }

// Clipped is radio.ClipCounter's.
func (t *transmitter) Clipped() radio.SampleCount { return radio.SampleCount(t.clipped.Load()) }

// Event returns what happened.
func (t *transmitter) Event(ctx context.Context) (radio.Event, error) { return t.events.Next(ctx) }

func (t *transmitter) wake() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// wait gives up the lock until something changed, done is ready or late comes.
func (t *transmitter) wait(done <-chan struct{}, late <-chan time.Time) (isLate bool) {
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	changed := t.changed
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-changed:
	case <-done:
	case <-late:
		return true
	}
	return false
}

// ready returns the error of a write in the present state.
func (t *transmitter) ready(ctx context.Context) error {
	switch {
	case t.state == radio.Closed:
		return radio.ErrClosed
	case t.failed != nil:
		return t.failed
	case t.state != radio.Running:
		return radio.ErrNotStarted
	}
	return ctx.Err()
}

// Write takes samples into the window. A timed block counts on the driver's own
// index: radio.Pacer.
func (t *transmitter) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ready(ctx); err != nil {
		return 0, err
	}
	at := max(t.tail, t.handed)
	if meta.Timed {
		if meta.Start < at {
			t.tell(radio.Late, meta.Start, true, radio.SampleCount(len(src)))
			return len(src), nil
		}
		at = meta.Start
	}
	for n < len(src) {
		k := min(len(src)-n, t.d.opts.window-t.stored)
		if k == 0 {
			t.wait(ctx.Done(), nil)
			if err := t.ready(ctx); err != nil {
				return n, err
			}
			at = max(at, t.handed)
			continue
		}
		t.store(at, src[n:n+k])
		at += radio.SampleIndex(k)
		n += k
	}
	t.tail = max(t.tail, at)
	t.inBurst = len(src) > 0 && !meta.BurstEnd || len(src) == 0 && t.inBurst && !meta.BurstEnd
	if meta.BurstEnd {
		t.bursts = append(t.bursts, burst{end: t.tail})
		t.dueBursts()
	}
	t.wake()
	return n, nil
}

// store puts samples into the window.
func (t *transmitter) store(at radio.SampleIndex, src []complex64) {
	data := make([]byte, sampleBytes*len(src))
	t.clipped.Add(int64(t.codec.Encode(data, src).Limited))
	t.segments = append(t.segments, segment{at, data})
	t.stored += len(src)
	t.tail = at + radio.SampleIndex(len(src))
	t.inBurst = true // while the rest waits for room
	t.wake()
}

// Idle promises zeros: radio.Idler. Where the board is kept fed all that is not
// written is zeros anyway.
func (t *transmitter) Idle(ctx context.Context, until radio.SampleIndex) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ready(ctx); err != nil {
		return err
	}
	t.tail = max(t.tail, until)
	t.inBurst = false
	t.wake()
	return nil
}

// tell pushes an event.
func (t *transmitter) tell(kind radio.EventKind, at radio.SampleIndex, exact bool, count radio.SampleCount) {
	t.events.Push(radio.Event{Kind: kind, Index: at, Exact: exact, Count: count, Epoch: t.epoch})
}

// pump hands blocks to the board until the stream is closed or fails.
func (t *transmitter) pump() {
	defer close(t.ended)
	defer func() {
		if failure := recover(); failure != nil {
			_ = t.offNow() // the panic says more
			panic(failure)
		}
	}()
	if err := t.feed(context.Background()); err != nil {
		t.cut(fmt.Errorf("transmitting with %s: %w", t.d.info.URI, err))
	}
}

func (t *transmitter) feed(ctx context.Context) error {
	device := t.d.board.ports[radio.Transmit].device
	buf := make([]byte, sampleBytes*t.size)
	for {
		n := t.take(buf)
		if n == 0 {
			break
		}
		if err := t.push(ctx, buf[:sampleBytes*n]); err != nil {
			return err
		}
	}
	// The board has sent a block when it takes another in its place.
	clear(buf)
	for range t.d.opts.blocks {
		if err := t.push(ctx, buf); err != nil {
			return err
		}
	}
	if err := t.offNow(); err != nil {
		return err
	}
	if err := t.link.closeDevice(ctx, device); err != nil {
		return err
	}
	return t.link.leave(ctx)
}

// push hands a block over and asks what became of those before.
func (t *transmitter) push(ctx context.Context, b []byte) error {
	if err := t.link.writeBlock(ctx, t.d.board.ports[radio.Transmit].device, b); err != nil {
		return err
	}
	lost, err := t.d.shortfall(ctx, t.link, radio.Transmit)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks++
	for len(t.bursts) > 0 && t.bursts[0].due > 0 && t.bursts[0].due <= t.blocks {
		t.tell(radio.BurstSent, t.bursts[0].end, true, 0)
		t.bursts = t.bursts[1:]
	}
	// While the board is filled for the first time it has nothing to send.
	if lost && t.state == radio.Running && t.blocks > t.d.opts.blocks {
		t.shortfell()
	}
	return nil
}

// shortfell tells that the board had nothing to send. The lock is held.
func (t *transmitter) shortfell() {
	at := t.onBoard(t.handed)
	t.tell(radio.Underrun, at, false, 0)
	t.epoch = t.d.nextEpoch()
	t.tell(radio.EpochChanged, at, false, 0)
}

// onBoard returns the earliest index that the board may not have sent when handed was
// handed over next.
func (t *transmitter) onBoard(handed radio.SampleIndex) radio.SampleIndex {
	return max(0, handed-radio.SampleIndex(t.d.opts.blocks+1)*radio.SampleIndex(t.size))
}

// mark returns the position that is handed over next.
func (t *transmitter) mark() radio.SampleIndex { return t.next() }

// disturbed begins an epoch for what the board may not have sent at from.
func (t *transmitter) disturbed(from radio.SampleIndex) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch = t.d.nextEpoch()
	t.tell(radio.EpochChanged, t.onBoard(from), false, 0)
}

// CheckLoss asks the board now: radio.LossChecker.
func (t *transmitter) CheckLoss(ctx context.Context) error {
	var lost bool
	err := t.d.talk(ctx, func(l *link) (err error) {
		lost, err = t.d.shortfall(ctx, l, radio.Transmit)
		return err
	})
	if err != nil {
		return fmt.Errorf("asking %s for losses: %w", t.d.info.URI, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if lost && t.blocks > t.d.opts.blocks {
		t.shortfell()
	}
	return nil
}

// take waits for samples for the board and puts them into b; n is 0 at the end.
func (t *transmitter) take(b []byte) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := len(b) / sampleBytes
	if t.d.opts.feed == strict {
		n = t.takeStrict(room)
	} else {
		n = t.takeFilling(room)
	}
	t.compose(b[:sampleBytes*n])
	return n
}

// takeStrict waits for what was written or promised, in pairs of samples: boards
// move 8 bytes at a time.
func (t *transmitter) takeStrict(room int) int {
	for {
		known := t.tail - t.handed
		if t.closing {
			known = t.written() - t.handed
			known += known & 1
		}
		n := int(min(radio.SampleIndex(room), known)) &^ 1
		if n > 0 || t.closing || t.failed != nil {
			return max(n, 0)
		}
		t.wait(nil, nil)
	}
}

// written returns the index behind the last sample that was written and not yet handed
// over.
func (t *transmitter) written() radio.SampleIndex {
	if len(t.segments) == 0 {
		return t.handed
	}
	last := t.segments[len(t.segments)-1]
	return last.start + radio.SampleIndex(len(last.data)/sampleBytes)
}

// takeFilling returns a whole block always. Within a burst it waits for the rest as
// long as the board can do without.
func (t *transmitter) takeFilling(room int) int {
	var late <-chan time.Time
	end := t.handed + radio.SampleIndex(room)
	for t.inBurst && t.tail < end && !t.closing && t.failed == nil {
		if late == nil {
			timer := time.NewTimer(t.grace())
			defer timer.Stop()
			late = timer.C
		}
		if t.wait(nil, late) {
			if t.inBurst && t.tail < end {
				t.tell(radio.Underrun, max(t.tail, t.handed), true, 0)
				t.inBurst = false
			}
			break
		}
	}
	if t.failed != nil || t.closing && len(t.segments) == 0 {
		return 0
	}
	return room
}

// grace is how long the board can do without a block.
func (t *transmitter) grace() time.Duration {
	spare := max(t.d.opts.blocks-2, 0)
	return t.rate.Duration(radio.SampleCount(spare*t.size + t.size/2))
}

// compose fills b with what was written for the next indices and zeros elsewhere.
func (t *transmitter) compose(b []byte) {
	clear(b)
	end := t.handed + radio.SampleIndex(len(b)/sampleBytes)
	for len(t.segments) > 0 && t.segments[0].start < end {
		s := &t.segments[0]
		k := copy(b[sampleBytes*int(s.start-t.handed):], s.data)
		s.start += radio.SampleIndex(k / sampleBytes)
		s.data = s.data[k:]
		t.stored -= k / sampleBytes
		if len(s.data) > 0 {
			break
		}
		t.segments = t.segments[1:]
	}
	t.handed = end
	t.dueBursts()
	t.wake()
}

// dueBursts notes after which block the bursts that were handed over are on air: the
// board sends a block before it takes another in its place.
func (t *transmitter) dueBursts() {
	for i := range t.bursts {
		if b := &t.bursts[i]; b.due == 0 && b.end <= t.handed {
			b.due = t.blocks + 1 + t.d.opts.blocks
		}
	}
}

// cut ends the stream at once: the carrier goes off, what was not sent is lost.
func (t *transmitter) cut(why error) {
	t.mu.Lock()
	if t.failed == nil {
		t.failed = why
	}
	l := t.link
	t.wake()
	t.mu.Unlock()
	err := t.offNow()
	if l != nil {
		_ = l.close() // ends a block under way
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && !errors.Is(t.failed, ErrCarrier) {
		t.failed = errors.Join(t.failed, err)
	}
}

// offNow switches the carrier off for good.
func (t *transmitter) offNow() error {
	t.rising.End(nil)
	t.power.Lock()
	defer t.power.Unlock()
	if !t.isOff {
		t.isOff, t.offErr = true, t.d.off()
	}
	return t.offErr
}

// Close sends what was written, switches the carrier off and waits until the
// connection is gone. Its error says what kept it from one of these.
func (t *transmitter) Close() error {
	t.closer.Do(func() {
		t.mu.Lock()
		t.state, t.closing = radio.Closed, true
		l, ended, before := t.link, t.ended, t.failed
		grace := drainGrace
		if t.rate > 0 {
			grace += t.rate.Duration(radio.SampleCount(t.written()-t.handed) + radio.SampleCount((t.d.opts.blocks+1)*t.size))
		}
		t.wake()
		t.mu.Unlock()
		if l != nil {
			leave(l, ended, grace)
			t.unwatch()
		}
		t.result = t.offNow()
		t.mu.Lock()
		// Who ended the session knows what that has cut off.
		if before == nil && t.failed != nil && !errors.Is(t.failed, ErrSessionOver) {
			t.result = errors.Join(t.failed, t.result) // what was written was not all sent
		}
		t.mu.Unlock()
		t.events.Close()
		t.d.mu.Lock()
		t.d.tx = nil
		t.d.mu.Unlock()
		t.d.sending.leave(t.d.opts.address)
	})
	return t.result
}
