package pluto

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/iq"
)

// closeGrace is how long a stream that is closed may wait for the block under way,
// to leave the board in good order.
const closeGrace = 500 * time.Millisecond

// mark is something that begins at a position of a receive stream.
type mark struct {
	at    radio.SampleIndex
	epoch radio.Epoch
	gap   bool // samples were lost before it, nobody knows how many
}

// block is what the board gave at a time, or the rest of it.
type block struct {
	first radio.SampleIndex
	data  []byte // not empty
	whole []byte // what data is the rest of
}

// receiver is the receive stream of a device. One goroutine reads blocks from the
// board into a ring; Read takes them from there.
type receiver struct {
	d     *Device
	codec *iq.Codec

	mu       sync.Mutex
	state    radio.State
	starting bool
	failed   error       // why the stream gives no more
	epoch    radio.Epoch // the present one; readers may be behind
	marks    []mark      // ascending, none of them read yet
	ring     []block
	spare    [][]byte          // of blocks that were read
	pumped   radio.SampleIndex // the index of what the board gives next
	checked  radio.SampleIndex // pumped when the board was last asked for losses
	pos      radio.SampleIndex // the index to be read next
	changed  chan struct{}     // closed at the next change; nil while nobody waits

	readEpoch radio.Epoch // of the reader
	size      int         // samples of a block

	link   *link
	stop   chan struct{} // closed by Close
	ended  chan struct{} // closed by the pump
	closer sync.Once
}

// OpenReceiver returns a stream that is Ready; radio.ErrBusy while another is open.
// The receive gain goes into manual mode.
func (d *Device) OpenReceiver(ctx context.Context) (radio.Receiver, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return nil, err
	}
	if d.isOpen(radio.Receive) {
		return nil, radio.ErrBusy
	}
	if err := d.manual(ctx); err != nil {
		return nil, fmt.Errorf("opening the receiver of %s: %w", d.info.URI, err)
	}
	e := d.nextEpoch()
	r := &receiver{d: d, codec: iq.New(d.board.ports[radio.Receive].format), epoch: e, readEpoch: e, stop: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return nil, radio.ErrClosed
	}
	d.rx = r
	return r, nil
}

// isOpen reports whether a direction's stream is open.
func (d *Device) isOpen(dir radio.Direction) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dir == radio.Receive {
		return d.rx != nil
	}
	return d.tx != nil
}

// Start lets the board fill blocks.
func (r *receiver) Start(ctx context.Context) error {
	r.mu.Lock()
	switch {
	case r.state == radio.Closed:
		r.mu.Unlock()
		return radio.ErrClosed
	case r.state != radio.Ready || r.starting:
		r.mu.Unlock()
		return radio.ErrBusy
	}
	r.starting = true
	r.mu.Unlock()
	l, err := r.begin(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starting = false
	r.wake()
	switch {
	case err != nil:
		return fmt.Errorf("starting to receive with %s: %w", r.d.info.URI, err)
	case r.state == radio.Closed:
		_ = l.close() // nothing was read
		return radio.ErrClosed
	}
	r.link, r.state, r.ended = l, radio.Running, make(chan struct{})
	go r.pump(l)
	return nil
}

// begin connects and opens the board's device.
func (r *receiver) begin(ctx context.Context) (*link, error) {
	d := r.d
	l, err := d.stream(ctx, radio.Receive)
	if err != nil {
		return nil, err
	}
	p := d.board.ports[radio.Receive]
	r.size = d.opts.blockSamples(d.SampleRate(radio.Receive))
	// What was lost before is nobody's loss here.
	if _, err := d.shortfall(ctx, l, radio.Receive); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if err := l.openDevice(ctx, p.device, r.size, p.mask); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", p.name, err), l.close())
	}
	return l, nil
}

func (r *receiver) State() radio.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

func (r *receiver) Epoch() radio.Epoch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch
}

// ClipLevel is that of the board's converter: radio.Ranged.
func (r *receiver) ClipLevel() radio.Amplitude { return clipLevel }

// wake lets all who wait look again.
func (r *receiver) wake() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// wait gives up the lock until something changed or one of the channels is ready.
func (r *receiver) wait(done, stop <-chan struct{}) {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	changed := r.changed
	r.mu.Unlock()
	select {
	case <-changed:
	case <-done:
	case <-stop:
	}
	r.mu.Lock()
}

// pump reads blocks until the stream is closed or fails.
func (r *receiver) pump(l *link) {
	defer close(r.ended)
	err := r.readBlocks(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed = fmt.Errorf("receiving with %s: %w", r.d.info.URI, err)
	}
	r.wake()
}

func (r *receiver) readBlocks(l *link) error {
	ctx := context.Background() // Close ends the connection
	p := r.d.board.ports[radio.Receive]
	for !r.stopped() {
		buf := r.buffer()
		n, err := l.readBlock(ctx, p.device, p.mask, buf)
		if err != nil {
			return err
		}
		// Before anybody reads the block: the loss may be in it.
		lost, err := r.d.shortfall(ctx, l, radio.Receive)
		if err != nil {
			return err
		}
		r.told(lost)
		if n -= n % sampleBytes; n > 0 {
			r.deliver(buf, n)
		}
	}
	if err := l.closeDevice(ctx, p.device); err != nil {
		return err
	}
	return l.leave(ctx)
}

func (r *receiver) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// buffer returns room for a block.
func (r *receiver) buffer() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := len(r.spare) - 1; k >= 0 {
		b := r.spare[k]
		r.spare = r.spare[:k]
		return b
	}
	return make([]byte, sampleBytes*r.size)
}

// deliver puts n bytes of a block into the ring, or drops them where that is full
// and nobody is to wait.
func (r *receiver) deliver(buf []byte, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := r.d.opts.hold || r.d.opts.feed == strict
	for hold && len(r.ring) >= r.d.opts.ring && !r.stopped() {
		r.wait(nil, r.stop)
	}
	first := r.pumped
	r.pumped += radio.SampleIndex(n / sampleBytes)
	if len(r.ring) >= r.d.opts.ring {
		r.spare = append(r.spare, buf)
		return // the reader sees the next block's index
	}
	r.ring = append(r.ring, block{first, buf[:n], buf})
	r.wake()
}

// told takes in what the board said of losses. What was read before the last
// question is sound.
func (r *receiver) told(lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lost {
		r.disturb(r.checked, true)
	}
	r.checked = r.pumped
}

// mark returns the position before which everything was received by now.
func (r *receiver) mark() radio.SampleIndex {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pumped
}

// disturbed begins an epoch at from, and another where what the board had in its
// blocks by now has been received.
func (r *receiver) disturbed(from radio.SampleIndex) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disturb(from, false)
}

// disturb is disturbed with the lock held; lost says that samples are missing in
// between.
func (r *receiver) disturb(from radio.SampleIndex, lost bool) {
	from = max(from, r.pos)
	to := r.pumped
	if r.state == radio.Running {
		// The block under way, one that waits to be delivered, and all that the board
		// holds.
		to += radio.SampleIndex(r.d.opts.blocks+2) * radio.SampleIndex(r.size)
	}
	for k, m := range r.marks {
		if m.at >= from {
			for _, m := range r.marks[k:] {
				lost = lost || m.gap
			}
			r.marks = r.marks[:k]
			break
		}
	}
	r.marks = append(r.marks, mark{at: from, epoch: r.d.nextEpoch()})
	r.epoch = r.d.nextEpoch()
	r.marks = append(r.marks, mark{at: to, epoch: r.epoch, gap: lost})
}

// CheckLoss asks the board now: radio.LossChecker.
func (r *receiver) CheckLoss(ctx context.Context) error {
	var lost bool
	err := r.d.talk(ctx, func(l *link) (err error) {
		lost, err = r.d.shortfall(ctx, l, radio.Receive)
		return err
	})
	if err != nil {
		return fmt.Errorf("asking %s for losses: %w", r.d.info.URI, err)
	}
	if lost {
		r.told(true)
	}
	return nil
}

// Read returns what is in one block, up to where an epoch ends.
func (r *receiver) Read(ctx context.Context, dst []complex64) (n int, meta radio.Meta, err error) {
	return r.ReadUntil(ctx, dst, radio.Forever)
}

// ReadUntil is Read for the samples before index until: radio.Bounded.
func (r *receiver) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (n int, meta radio.Meta, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if err := r.ready(ctx); err != nil {
			return 0, meta, err
		}
		if len(dst) == 0 || r.pos >= until || len(r.ring) > 0 && r.ring[0].first >= until {
			return 0, meta, nil
		}
		if len(r.ring) > 0 {
			break
		}
		if r.failed != nil {
			return 0, meta, r.failed
		}
		r.wait(ctx.Done(), nil)
	}
	b := &r.ring[0]
	meta = r.advance(b.first)
	n = min(len(dst), len(b.data)/sampleBytes)
	n = int(min(radio.SampleIndex(n), until-r.pos))
	if len(r.marks) > 0 {
		n = int(min(radio.SampleIndex(n), r.marks[0].at-r.pos))
	}
	meta.Clipped = radio.SampleCount(r.codec.Decode(dst[:n], b.data).Clipped)
	if meta.Clipped > 0 {
		meta.Flags |= radio.Clipped
	}
	r.pos += radio.SampleIndex(n)
	r.consume(b, n)
	return n, meta, nil
}

// advance goes to the index of the next sample there is, past what was dropped here
// and past the marks before it.
func (r *receiver) advance(first radio.SampleIndex) radio.Meta {
	meta := radio.Meta{First: first, Flags: radio.HostCounted}
	gap := radio.Gap{Length: radio.SampleCount(first - r.pos), Exact: true}
	r.pos = first
	for len(r.marks) > 0 && r.marks[0].at <= first {
		r.readEpoch = r.marks[0].epoch
		gap.Exact = gap.Exact && !r.marks[0].gap
		r.marks = slices.Delete(r.marks, 0, 1)
	}
	meta.Epoch = r.readEpoch
	if gap.Length > 0 || !gap.Exact {
		meta.Gaps = []radio.Gap{gap}
		meta.Flags |= radio.Overrun
	}
	return meta
}

// consume takes n samples off the oldest block.
func (r *receiver) consume(b *block, n int) {
	b.data = b.data[n*sampleBytes:]
	b.first += radio.SampleIndex(n)
	if len(b.data) > 0 {
		return
	}
	r.spare = append(r.spare, b.whole)
	r.ring = slices.Delete(r.ring, 0, 1)
	r.wake()
}

// ready returns the error of a read in the present state.
func (r *receiver) ready(ctx context.Context) error {
	switch r.state {
	case radio.Closed:
		return radio.ErrClosed
	case radio.Ready, radio.Armed:
		return radio.ErrNotStarted
	}
	return ctx.Err()
}

// Close ends the stream and waits until the connection is gone.
func (r *receiver) Close() error {
	r.closer.Do(func() {
		r.mu.Lock()
		r.state = radio.Closed
		l, ended := r.link, r.ended
		r.wake()
		r.mu.Unlock()
		close(r.stop)
		if l != nil {
			grace := closeGrace
			if r.d.opts.feed == strict {
				grace = 0 // the block under way may never come
			}
			leave(l, ended, grace)
		}
		r.d.mu.Lock()
		r.d.rx = nil
		r.d.mu.Unlock()
	})
	return nil
}

// leave waits for a pump, and ends its connection after a while.
func leave(l *link, ended <-chan struct{}, grace time.Duration) {
	if grace > 0 {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
		}
	}
	_ = l.close() // for the second time, if all went well
	<-ended
}
