package soapy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ringwave/radio"
	"ringwave/radio/feed"
	"ringwave/radio/life"
)

const (
	// window is how many samples may wait for the board.
	window = 1 << 22
	// priming bounds how long a board may take samples at once before it is full.
	priming = 5 * time.Second
	// most bursts whose end is waited for are kept.
	maxBursts = 1 << 16
)

// transmitter is the transmit stream of a device. One goroutine hands samples to the board,
// another hears what became of them.
type transmitter struct {
	d       *device
	mode    feeding
	queue   *feed.Queue
	events  *radio.EventQueue
	clipped atomic.Int64
	rate    radio.Hertz

	clock clock // since Start, of a board with a clock
	host  hostClock

	mu       sync.Mutex
	state    radio.State
	starting bool
	failed   error
	epoch    radio.Epoch
	ends     []radio.SampleIndex // of bursts that are not known to be on air
	held     radio.SampleCount   // that were handed over until the board was full

	stream Stream
	life   life.Life // ends when nothing more is sent; its cause says why
	primed chan struct{}
	fed    chan struct{} // closed when nothing more is handed over and the board is off
	heard  chan struct{} // closed when nobody listens any more
	power  sync.Mutex    // over the board's going on and off
	isOff  bool
	offErr error
	closer sync.Once
	result error
}

// OpenTransmitter returns a stream that is Ready: radio.Pacer, radio.Idler and
// radio.ClipCounter. It fails with radio.ErrBusy while another is open, or while a receiver is
// of a board that cannot do both, with radio.ErrNotPermitted where frequency or gains are not
// permitted, and with radio.ErrNoGuard or radio.ErrGuard where no guard watches over the board.
func (t transmits) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	d := t.d
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return nil, err
	}
	fail := func(err error) (radio.Transmitter, error) {
		return nil, fmt.Errorf("opening the transmitter of %s: %w", d.info.URI, err)
	}
	d.mu.Lock()
	busy := d.tx != nil || d.rx != nil && !d.fullDuplex
	d.mu.Unlock()
	if busy {
		return fail(radio.ErrBusy)
	}
	if err := d.permitted(); err != nil {
		return fail(err)
	}
	if err := d.watchOver(ctx); err != nil {
		return fail(err)
	}
	f := d.ways[radio.Transmit].format
	s := &transmitter{
		d: d, mode: fill, events: radio.NewEventQueue(), epoch: d.nextEpoch(), rate: d.SampleRate(radio.Transmit),
		primed: make(chan struct{}), fed: make(chan struct{}), heard: make(chan struct{}),
	}
	if d.timed {
		s.mode = bursts
	}
	if d.opts.feed != nil {
		s.mode = *d.opts.feed
	}
	s.queue = feed.NewQueue(feed.Config{Codec: f.codec, SampleBytes: f.bytes, Window: window, Packet: 1, Block: 1})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fail(radio.ErrClosed)
	}
	d.tx = s
	return s, nil
}

// may says why there must be no carrier.
func (t *transmitter) may() error {
	if err := t.d.permitted(); err != nil {
		return err
	}
	if err := t.d.session.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrSessionOver, err)
	}
	t.d.mu.Lock()
	w := t.d.watch
	t.d.mu.Unlock()
	return w.Err()
}

// Start makes the stream, at the time that was chosen if one was, and begins to feed it.
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
	t.starting = false
	t.mu.Unlock()
	if err != nil {
		return fmt.Errorf("starting to transmit with %s: %w", t.d.info.URI, err)
	}
	// Until it is full the board takes all there is at once, and a program could not keep
	// up.
	select {
	case <-t.primed:
	case <-ctx.Done():
	case <-t.fed:
		return t.ready(ctx)
	}
	return nil
}

func (t *transmitter) begin(ctx context.Context) error {
	d := t.d
	// Neither frequency nor gain may change between the look and the switch, and Close comes
	// before all of this or behind it.
	d.changing.Lock()
	defer d.changing.Unlock()
	if t.State() == radio.Closed {
		return radio.ErrClosed
	}
	ctx, cancel := d.call(ctx)
	defer cancel()
	if err := t.may(); err != nil {
		return err
	}
	stream, err := d.board.SetupStream(ctx, d.at(radio.Transmit), d.ways[radio.Transmit].format.name, d.opts.stream)
	if err != nil {
		return err
	}
	t.stream = stream
	chosen := false
	if d.timed {
		t.clock.rate = t.rate
		if t.clock.zero, chosen, err = d.firstTime(ctx, d.opts.lead); err == nil {
			err = t.readClock(ctx)
		}
	}
	if err == nil {
		err = t.switchOn(ctx)
	}
	if err != nil {
		return errors.Join(err, t.switchOff(), stream.Close())
	}
	t.mu.Lock()
	t.state = radio.Running
	t.mu.Unlock()
	go t.listen()
	go t.feed(chosen, d.session.AfterEnd(t.overTheSession), d.watchOf().AfterLoss(t.unguarded))
	return nil
}

func (d *device) watchOf() radio.Watch {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.watch
}

// switchOn lets the board transmit, unless it is off for good.
func (t *transmitter) switchOn(ctx context.Context) error {
	t.power.Lock()
	defer t.power.Unlock()
	if t.isOff {
		return radio.ErrClosed
	}
	if err := t.stream.Activate(ctx, 0, 0); err != nil {
		return err
	}
	return t.may() // the program may have been stopped just before
}

// switchOff ends what the board transmits, once, and for good. Of a board whose server is gone
// nobody knows whether it is off.
func (t *transmitter) switchOff() error {
	t.power.Lock()
	defer t.power.Unlock()
	if t.isOff {
		return t.offErr
	}
	t.isOff = true
	if t.stream == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(t.d.opts.call, offTimeout))
	defer cancel()
	err := t.stream.Deactivate(ctx, 0, 0)
	if err == nil {
		return nil
	}
	t.offErr = fmt.Errorf("%w (%w)", ErrCarrier, err)
	t.d.maybeOn.Store(true)
	return t.offErr
}

// switchedOff reports whether the board was switched off.
func (t *transmitter) switchedOff() bool {
	t.power.Lock()
	defer t.power.Unlock()
	return t.isOff
}

func (t *transmitter) overTheSession() {
	t.fail(fmt.Errorf("%w: %w", ErrSessionOver, t.d.session.Err()))
}

// unguarded ends the stream when the guard can no longer be relied on.
func (t *transmitter) unguarded() { t.fail(t.d.watchOf().Err()) }

// fail notes why the stream goes no further. What is queued is lost; a carrier goes off before
// anything else.
func (t *transmitter) fail(err error) {
	t.mu.Lock()
	if t.failed == nil { // else what fails now does so as the board goes off
		t.failed = fmt.Errorf("transmitting with %s: %w", t.d.info.URI, err)
	}
	t.mu.Unlock()
	_ = t.switchOff() // Close tells
	t.life.End(err)
}

// readClock asks the board for its clock.
func (t *transmitter) readClock(ctx context.Context) error {
	before := time.Now()
	now, err := t.d.board.HardwareTime(ctx, "")
	if err != nil {
		return fmt.Errorf("asking for the board's clock: %w", err)
	}
	t.host.set(now, before.Add(time.Since(before)/2))
	return nil
}

// State implements radio.Transmitter.
func (t *transmitter) State() radio.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// Epoch implements radio.Transmitter.
func (t *transmitter) Epoch() radio.Epoch {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch
}

// ready returns the error of a write in the present state.
func (t *transmitter) ready(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.state == radio.Closed:
		return radio.ErrClosed
	case t.failed != nil:
		return t.failed
	case t.state == radio.Ready:
		return radio.ErrNotStarted
	}
	return ctx.Err()
}

// reached returns the index that the board has reached, about.
func (t *transmitter) reached() radio.SampleIndex {
	if t.mode == bursts && t.State() == radio.Running {
		return max(0, t.clock.index(t.host.now()))
	}
	return t.queue.Handed()
}

// Earliest implements radio.Pacer.
func (t *transmitter) Earliest() radio.SampleIndex {
	if t.mode == fill {
		return t.queue.Handed()
	}
	soonest := t.reached() + radio.SampleIndex(t.rate.Samples(t.d.opts.lead))
	_, free := t.queue.Free()
	return max(soonest, free)
}

// Write implements radio.Transmitter.
func (t *transmitter) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (n int, err error) {
	if t.mode == bursts {
		at := t.reached()
		if !meta.Timed {
			at += radio.SampleIndex(t.rate.Samples(t.d.opts.lead))
		}
		t.queue.Reach(at)
	}
	w, err := t.queue.Write(ctx, src, meta, t.life.Done(), t.ready)
	t.clipped.Add(int64(w.Clipped))
	switch {
	case w.Late:
		t.tell(radio.Event{Kind: radio.Late, Index: meta.Start, Exact: true, Count: radio.SampleCount(len(src))})
	case err == nil && meta.BurstEnd:
		t.mu.Lock()
		if len(t.ends) < maxBursts {
			t.ends = append(t.ends, w.End)
		}
		t.mu.Unlock()
	}
	return w.N, err
}

// Idle implements radio.Idler.
func (t *transmitter) Idle(ctx context.Context, until radio.SampleIndex) error {
	if err := t.ready(ctx); err != nil {
		return err
	}
	t.queue.Idle(until)
	return nil
}

// Clipped implements radio.ClipCounter.
func (t *transmitter) Clipped() radio.SampleCount { return radio.SampleCount(t.clipped.Load()) }

// LosesSilently implements radio.SilentLoss: without a clock only the module knows what its board
// has lost, and not all of it.
func (t *transmitter) LosesSilently() bool { return !t.d.timed }

// Event implements radio.Transmitter.
func (t *transmitter) Event(ctx context.Context) (radio.Event, error) { return t.events.Next(ctx) }

// tell pushes an event of the present epoch.
func (t *transmitter) tell(e radio.Event) {
	if e.Epoch == 0 {
		e.Epoch = t.Epoch()
	}
	t.events.Push(e)
}

// turn begins an epoch at each of two indices: what lies between may be of before or after.
func (t *transmitter) turn(from, to radio.SampleIndex) {
	t.mu.Lock()
	first, second := t.d.nextEpoch(), t.d.nextEpoch()
	t.epoch = second
	ready := t.state == radio.Ready
	t.mu.Unlock()
	if ready {
		return
	}
	t.tell(radio.Event{Kind: radio.EpochChanged, Index: from, Epoch: first})
	t.tell(radio.Event{Kind: radio.EpochChanged, Index: max(from, to) + radio.SampleIndex(t.rate.Samples(t.d.opts.settle)), Epoch: second})
}

// feed hands samples to the board until the stream ends. However that is, even in a panic,
// the board is off behind it.
func (t *transmitter) feed(chosen bool, forgetSession, forgetGuard func() bool) {
	defer close(t.fed)
	defer forgetSession()
	defer forgetGuard()
	ctx, release := t.life.Join(context.Background())
	defer release()
	defer t.switchOff()
	var err error
	if t.mode == bursts {
		close(t.primed)
		err = t.feedBursts(ctx)
	} else {
		err = t.feedAlways(ctx, chosen)
	}
	if err != nil {
		if cause := t.life.Err(); cause != nil {
			err = cause
		}
		t.fail(err)
	}
}

// feedAlways hands over zeros where nothing was written.
func (t *transmitter) feedAlways(ctx context.Context, chosen bool) error {
	f := t.d.ways[radio.Transmit].format
	buf := make([]byte, blockSamples(t.stream)*f.bytes)
	info, primed, began := BlockInfo{}, false, time.Now()
	if chosen {
		info = BlockInfo{HasTime, t.clock.zero}
	}
	for {
		next := t.queue.Take(buf)
		if next.Starved {
			t.tell(radio.Event{Kind: radio.Underrun, Index: next.At, Exact: true})
		}
		before := time.Now()
		if err := t.write(ctx, buf[:next.Bytes], info, false); err != nil {
			return err
		}
		info = BlockInfo{}
		// A board that is full takes a block when it has sent one.
		full := time.Since(before) > t.rate.Duration(radio.SampleCount(next.Bytes/f.bytes))/2
		if !primed && (full || time.Since(began) > priming) {
			primed = true
			t.mu.Lock()
			t.held = radio.SampleCount(t.queue.Handed())
			t.mu.Unlock()
			close(t.primed)
		}
		if next.Finished {
			return nil
		}
	}
}

// feedBursts hands over what was written, each burst with its time.
func (t *transmitter) feedBursts(ctx context.Context) error {
	f := t.d.ways[radio.Transmit].format
	buf := make([]byte, blockSamples(t.stream)*f.bytes)
	open := false
	for ctx.Err() == nil {
		b := t.queue.TakeBurst(buf)
		data := buf[:b.Bytes]
		if b.Ends && b.Bytes == 0 { // an end cannot go alone
			data = buf[:f.bytes]
			clear(data)
		}
		if len(data) > 0 {
			info := BlockInfo{}
			if !open {
				info = BlockInfo{HasTime, t.clock.at(b.At)}
			}
			if err := t.write(ctx, data, info, b.Ends); err != nil {
				return err
			}
			open = !b.Ends
		}
		switch {
		case b.Finished:
			return t.await(ctx, t.queue.LastWritten())
		case len(data) == 0:
			select {
			case <-t.queue.More():
			case <-ctx.Done():
			}
		}
	}
	return context.Cause(ctx)
}

// await waits until what was sent last is on air.
func (t *transmitter) await(ctx context.Context, end radio.SampleIndex) error {
	if end == 0 {
		return nil
	}
	left := time.Duration(t.clock.at(end)-t.host.now()) + t.d.opts.lead
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write hands over all of data. The board may take its time, until what it holds is due and
// the deadline has passed.
func (t *transmitter) write(ctx context.Context, data []byte, info BlockInfo, ends bool) error {
	if ends {
		info.Flags |= EndBurst
	}
	waiting := time.Now()
	if info.Flags&HasTime != 0 {
		waiting = waiting.Add(max(0, time.Duration(info.At-t.host.now())))
	}
	for len(data) > 0 {
		n, err := t.stream.Write(ctx, data, info, t.d.opts.patience)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, ErrTimeout):
			return err
		case n > 0:
			data, waiting = data[n:], time.Now()
			info.Flags &^= HasTime
		case t.d.opts.deadline > 0 && time.Since(waiting) > t.d.opts.deadline:
			return fmt.Errorf("no samples taken for %v: %w", t.d.opts.deadline, ErrTimeout)
		}
	}
	return nil
}

// listen hears what became of samples until the stream ends.
func (t *transmitter) listen() {
	defer close(t.heard)
	ctx, release := t.life.Join(context.Background())
	defer release()
	asked := time.Now()
	for ctx.Err() == nil {
		info, err := t.stream.Status(ctx, t.d.opts.patience)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && info.Flags&EndBurst != 0:
			t.sent(true)
		case err == nil, errors.Is(err, ErrTimeout):
		case errors.Is(err, ErrUnderflow):
			t.starved(info)
		case errors.Is(err, ErrLate):
			t.late(info)
		case errors.Is(err, ErrNotSupported):
			timer := time.NewTimer(t.d.opts.poll)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		case errors.Is(err, ErrOverflow):
		case t.switchedOff(): // what is off has no more news
			return
		default:
			t.fail(err)
			return
		}
		t.sent(false)
		if t.d.timed && time.Since(asked) > time.Second {
			asked = time.Now()
			limited, cancel := t.d.call(ctx)
			err := t.readClock(limited)
			cancel()
			if err != nil && ctx.Err() == nil {
				t.fail(err)
				return
			}
		}
	}
}

// place returns the index of news.
func (t *transmitter) place(info BlockInfo) (at radio.SampleIndex, exact bool) {
	if info.Flags&HasTime != 0 && t.d.timed {
		return t.clock.index(info.At), true
	}
	return t.reached(), false
}

// starved tells of samples that came too late. A board that counts time goes on where it
// would be; of others the index has moved, nobody knows by how much.
func (t *transmitter) starved(info BlockInfo) {
	select {
	case <-t.primed:
	default:
		return // it is not full yet
	}
	at, exact := t.place(info)
	t.tell(radio.Event{Kind: radio.Underrun, Index: at, Exact: exact})
	if t.mode == fill {
		t.turn(at, t.queue.Handed())
	}
}

// late tells of a burst that the board has dropped.
func (t *transmitter) late(info BlockInfo) {
	at, exact := t.place(info)
	t.tell(radio.Event{Kind: radio.Late, Index: at, Exact: exact})
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ends) > 0 { // it has no end on the air
		t.ends = t.ends[1:]
	}
}

// sent tells of bursts that are on air: the oldest, that the board has acknowledged, or those
// whose time has passed long since.
func (t *transmitter) sent(acknowledged bool) {
	slack := radio.SampleIndex(t.rate.Samples(t.d.opts.settle))
	reached := t.reached()
	t.mu.Lock()
	if t.mode == fill {
		slack += radio.SampleIndex(t.held)
	}
	var on []radio.SampleIndex
	for len(t.ends) > 0 && (acknowledged && len(on) == 0 || t.ends[0]+slack < reached) {
		on, t.ends = append(on, t.ends[0]), t.ends[1:]
	}
	t.mu.Unlock()
	for i, end := range on {
		t.tell(radio.Event{Kind: radio.BurstSent, Index: end, Exact: acknowledged && i == 0})
	}
}

// Close sends what was written, as long as the board takes it in time, and switches it off.
func (t *transmitter) Close() error {
	t.closer.Do(func() {
		t.d.changing.Lock() // a Start is over, or finds the stream closed
		t.mu.Lock()
		started, failed, held := t.stream != nil && t.state == radio.Running, t.failed != nil, t.held
		t.state = radio.Closed
		t.mu.Unlock()
		t.d.changing.Unlock()
		if started {
			t.result = t.drain(failed, held)
		}
		t.d.mu.Lock()
		t.d.tx = nil
		t.d.mu.Unlock()
		t.events.Close()
	})
	return t.result
}

// drain waits for what was written to be sent and the board to be off.
func (t *transmitter) drain(failed bool, held radio.SampleCount) error {
	left := t.queue.End(radio.SampleIndex(held))
	patience := t.d.opts.deadline
	if patience == 0 {
		patience = 10 * time.Second
	}
	if t.mode == bursts {
		left = max(0, radio.SampleCount(t.queue.LastWritten()-t.reached()))
	}
	errUnsent := fmt.Errorf("the board did not take all that was written: %w", ErrTimeout)
	timer := time.AfterFunc(t.rate.Duration(left+held)+patience, func() { t.life.End(errUnsent) })
	<-t.fed
	timer.Stop()
	t.life.End(nil)
	<-t.heard
	t.mu.Lock()
	err := t.failed
	t.mu.Unlock()
	if failed || errors.Is(err, ErrSessionOver) { // it was told, and who ended the session knows
		err = nil
	}
	return errors.Join(err, t.switchOff(), t.stream.Close())
}
