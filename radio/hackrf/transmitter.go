package hackrf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"ringwave/radio"
	"ringwave/radio/feed"
	"ringwave/radio/usb"
)

// errUnsent: a stream that was closed could not send what was left.
var errUnsent = fmt.Errorf("the board did not take all that was written: %w", usb.ErrTimeout)

// paced is a sender that is kept fed, so that its index goes on by itself.
type paced struct{ *sender }

// Earliest is radio.Pacer.
func (t paced) Earliest() radio.SampleIndex {
	return t.queue.Handed()
}

// sender is the transmit stream of a device, strict by itself.
type sender struct {
	queue   *feed.Queue
	events  *radio.EventQueue
	clipped atomic.Int64

	pump                       // its lock guards what follows, too
	bursts []radio.SampleIndex // ends not yet on air

	out    usb.OutStream
	primed chan struct{} // closed when all transfers of the queue were handed over
	fed    chan struct{} // closed when nothing more is fed and the board is off
}

// newQueue makes a queue for the board. A short packet would end a transfer of its own, and
// less than a block stays in its buffers for ever.
func newQueue(window int, strict bool) *feed.Queue {
	const packet, block radio.SampleIndex = radio.SampleIndex(usb.PacketSize) / sampleBytes, 8192
	return feed.NewQueue(feed.Config{
		Codec: samples, SampleBytes: sampleBytes, Window: max(window, minWindow), Strict: strict, Packet: packet, Block: block,
	})
}

func newSender(d *Device) *sender {
	t := &sender{
		queue: newQueue(d.opts.window, d.opts.feed == strict), events: radio.NewEventQueue(),
		primed: make(chan struct{}), fed: make(chan struct{}),
	}
	t.init(d, outwards, t.look)
	return t
}

// Start sets the underrun limit and the gains, switches the board to transmit, or
// arms it, and begins to feed it.
func (t *sender) Start(ctx context.Context) error {
	if err := t.start(ctx, t.may, t.open); err != nil {
		return err
	}
	go t.feed(t.d.session.AfterEnd(t.overTheSession), t.d.watch.AfterLoss(t.unguarded))
	// Until its queue is full the board takes all there is at once, and a program
	// could not keep up.
	select {
	case <-t.primed:
	case <-ctx.Done():
	case <-t.fed:
		return t.ready(ctx)
	}
	return nil
}

// may says why there must be no carrier. The device's lock is held.
func (t *sender) may() error {
	if err := t.d.permitted(); err != nil {
		return err
	}
	if err := t.d.session.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrSessionOver, err)
	}
	return t.d.watch.Err()
}

func (t *sender) open() (_ io.Closer, err error) {
	t.out, err = t.d.transport.OpenOut(usb.OutConfig{Endpoint: endpointOut, Size: t.size, Count: t.d.opts.queue})
	return t.out, err
}

func (t *sender) overTheSession() {
	t.fail(fmt.Errorf("%w: %w", ErrSessionOver, t.d.session.Err()))
}

// unguarded ends the stream when the guard can no longer be relied on.
func (t *sender) unguarded() { t.fail(t.d.watch.Err()) }

// Clipped is radio.ClipCounter.
func (t *sender) Clipped() radio.SampleCount { return radio.SampleCount(t.clipped.Load()) }

func (t *sender) Event(ctx context.Context) (radio.Event, error) { return t.events.Next(ctx) }

// Write takes src in whole, as far as there is room, so that a block shorter than
// the window never has an underrun within.
func (t *sender) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (n int, err error) {
	w, err := t.queue.Write(ctx, src, meta, t.cut.Done(), t.ready)
	t.clipped.Add(int64(w.Clipped))
	switch {
	case w.Late:
		t.late(meta.Start, len(src))
	case err == nil && meta.BurstEnd:
		t.endsBurst(w.End)
	}
	return w.N, err
}

func (t *sender) endsBurst(end radio.SampleIndex) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bursts = append(t.bursts, end)
}

func (t *sender) late(at radio.SampleIndex, n int) {
	t.tell(radio.Event{Kind: radio.Late, Index: at, Exact: true, Count: radio.SampleCount(n)})
}

// tell pushes an event of the present epoch.
func (t *sender) tell(e radio.Event) {
	if e.Epoch == 0 {
		e.Epoch = t.Epoch()
	}
	t.events.Push(e)
}

// Idle promises zeros; it never waits, because they take no room.
func (t *sender) Idle(ctx context.Context, until radio.SampleIndex) error {
	if err := t.ready(ctx); err != nil {
		return err
	}
	t.queue.Idle(until)
	return nil
}

// Close sends what was written, as long as the board takes it in time, and switches
// it off.
func (t *sender) Close() error {
	err := t.close(t.drain)
	t.events.Close()
	return err
}

// drain waits for what was written to be sent and the board to be off.
func (t *sender) drain(failed bool) error {
	left := t.queue.End(radio.SampleIndex(t.d.flush / sampleBytes))
	left += radio.SampleCount((t.d.opts.queue*t.size + t.d.flush) / sampleBytes)
	patience := t.d.opts.deadline
	if patience == 0 { // no deadline: what waits behind a busy machine is sent, too
		patience = 10 * time.Second
	}
	timer := time.AfterFunc(t.d.rateOf().Duration(left)+patience, func() { t.cut.End(errUnsent) })
	defer timer.Stop()
	<-t.fed
	t.mu.Lock()
	defer t.mu.Unlock()
	if failed || errors.Is(t.failed, ErrSessionOver) { // it was told, and who ended the session knows
		return nil
	}
	return t.failed
}

// rateOf returns the rate, which does not change under a stream.
func (d *Device) rateOf() radio.Hertz {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rate
}

// feed feeds the board until the stream is cut, fails or is done. However it ends,
// even in a panic, the carrier is off behind it.
func (t *sender) feed(forgetSession, forgetGuard func() bool) {
	defer close(t.fed)
	defer forgetSession()
	defer forgetGuard()
	ctx, release := t.cut.Join(context.Background())
	defer release()
	defer t.switchOff()
	buf := make([]byte, t.size)
	if t.queue.Strict() {
		close(t.primed)
	}
	for handed := 0; ctx.Err() == nil; handed++ {
		if handed == t.d.opts.queue && !t.queue.Strict() {
			close(t.primed)
		}
		next := t.queue.Take(buf)
		if next.Starved {
			t.tell(radio.Event{Kind: radio.Underrun, Index: next.At, Exact: true})
		}
		if next.Bytes > 0 {
			err := t.move(ctx, func(wait context.Context) error { return t.out.Write(wait, buf[:next.Bytes]) })
			if err != nil {
				t.fail(t.why(err))
				return
			}
			t.progress(t.out.Taken())
		}
		if next.Finished {
			t.finishUp(ctx)
			return
		}
		if next.Bytes == 0 {
			select {
			case <-t.queue.More():
			case <-ctx.Done():
			}
		}
	}
	t.fail(t.cut.Err())
}

// why returns the cause of the end of a stream that was cut.
func (t *sender) why(err error) error {
	if cause := t.cut.Err(); cause != nil {
		return cause
	}
	return err
}

// finishUp waits until all that was written is on air, which may long be so.
func (t *sender) finishUp(ctx context.Context) {
	behind := int64(t.d.flush) + sampleBytes*int64(t.queue.LastWritten())
	if t.queue.LastWritten() == 0 || t.out.Taken() >= behind {
		t.progress(t.out.Taken())
		return
	}
	if err := t.out.Finish(ctx); err != nil {
		t.fail(t.why(err))
		return
	}
	t.progress(t.out.Taken())
}

// progress tells of the bursts that are on air when the board has taken so many
// bytes, and that an armed board has begun.
func (t *sender) progress(taken int64) {
	onAir := radio.SampleIndex((taken - int64(t.d.flush)) / sampleBytes)
	t.mu.Lock()
	n := 0
	for n < len(t.bursts) && t.bursts[n] <= onAir {
		n++
	}
	sent := slices.Clone(t.bursts[:n])
	t.bursts = slices.Delete(t.bursts, 0, n)
	t.mu.Unlock()
	if taken > int64(t.d.flush) {
		t.began()
	}
	for _, end := range sent {
		t.tell(radio.Event{Kind: radio.BurstSent, Index: end, Exact: true})
	}
}

// counted returns how far the board has got.
func (t *sender) counted() counted {
	if n, ok := t.count(); ok {
		return counted{t.behind(n), true}
	}
	if t.State() == radio.Ready {
		return counted{}
	}
	return counted{max(0, t.out.Taken()-int64(t.d.flush)), false}
}

// behind makes a position of a count of the board's, which wraps and is not ahead
// of what was handed over.
func (t *sender) behind(m0 uint32) int64 {
	handed := sampleBytes * int64(t.queue.Handed())
	return max(0, handed-int64(uint32(handed)-m0))
}

// disturbed begins epochs at both ends of a stretch, and again a moment later.
func (t *sender) disturbed(from, to counted) {
	if t.State() == radio.Ready {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.epoch = t.d.nextEpoch()
		return
	}
	end := to.bytes + int64(limitBytes(settle, t.d.rate))
	if !to.exact {
		end = sampleBytes * int64(t.queue.Handed())
	}
	t.turn(from.bytes, end)
}

// turn begins an epoch at each of two positions in bytes.
func (t *sender) turn(from, to int64) {
	t.mu.Lock()
	first, second := t.d.nextEpoch(), t.d.nextEpoch()
	t.epoch = second
	t.mu.Unlock()
	t.tell(radio.Event{Kind: radio.EpochChanged, Index: radio.SampleIndex(from / sampleBytes), Epoch: first})
	t.tell(radio.Event{Kind: radio.EpochChanged, Index: radio.SampleIndex(max(from, to) / sampleBytes), Epoch: second})
}

// look asks the board what it has lost.
func (t *sender) look() error {
	news, err := t.watched.ask(t.d, t.State() == radio.Armed)
	if err != nil || !news.asked {
		return err
	}
	now := t.behind(news.state.bytes)
	if news.state.activeMode == m0Transmitting && news.state.bytes > 0 {
		t.began()
	}
	if news.shortfalls > 0 {
		// Between bursts a strict transmitter has nothing to send.
		if sampleBytes*int64(t.queue.LastWritten()) > t.watched.seen || !t.queue.Strict() {
			t.tell(radio.Event{Kind: radio.Underrun, Index: radio.SampleIndex(now / sampleBytes), Count: radio.SampleCount(news.longest / sampleBytes)})
		}
	}
	if news.shortfalls > 0 || news.clockLost {
		t.turn(t.watched.seen, now)
	}
	t.watched.seen = now
	return t.halt(news.state)
}
