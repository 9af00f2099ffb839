package hackrf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
	"ringwave/radio/usb"
)

// errStuck: the board has moved nothing for the deadline.
var errStuck = errors.New("stuck")

// way is what tells the two directions of a pump apart.
type way struct {
	dir     radio.Direction
	mode    uint16 // of the board
	verb    string // as in "to receive"
	doing   string // as in "receiving"
	nothing string // as in "no samples"
	timeout uint32 // the board's error when it had waited for the host for too long
	halted  error  // what that error means
}

var (
	inwards = way{dir: radio.Receive, mode: modeReceive, verb: "receive", doing: "receiving",
		nothing: "no samples", timeout: m0RXTimeout, halted: ErrOverrunLimit}
	outwards = way{dir: radio.Transmit, mode: modeTransmit, verb: "transmit", doing: "transmitting",
		nothing: "no samples taken", timeout: m0TXTimeout, halted: ErrUnderrunLimit}
)

// pump moves transfers between the host and a board, one way. It has what a stream does
// alike in both: start, wait for a board that may hang, ask it for losses, fail, and end in
// an order that leaves the board off. What the samples in the transfers are, and where
// losses belong among them, is the stream's.
type pump struct {
	way
	d    *Device
	look func() error // asks the board what it has lost

	mu      sync.Mutex
	state   radio.State
	failed  error       // why the stream goes no further
	epoch   radio.Epoch // the present one; readers may be behind
	watched watcher

	transfers io.Closer // nil before Start
	size      int       // of each in bytes
	// waiting belongs to who moves transfers: since when the board has moved none; zero
	// while it does.
	waiting time.Time

	// cut ends all waits once the stream has failed or is closed; its cause says why.
	cut   life.Life
	watch sync.WaitGroup

	silence sync.Once
	offErr  error // of switching off
	closer  sync.Once
	result  error // of Close
}

// init readies a pump that has not moved yet. look is called from several goroutines, one at
// a time.
func (p *pump) init(d *Device, w way, look func() error) {
	p.way, p.d, p.look, p.epoch = w, d, look, d.nextEpoch()
	p.size = d.opts.transferBytes(d.rate) // which does not change under a stream
}

func (p *pump) direction() radio.Direction { return p.dir }

// State implements radio.Receiver and radio.Transmitter.
func (p *pump) State() radio.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Epoch implements radio.Receiver and radio.Transmitter.
func (p *pump) Epoch() radio.Epoch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch
}

// ready returns the error of a read or write in the present state.
func (p *pump) ready(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state == radio.Closed:
		return radio.ErrClosed
	case p.state == radio.Ready:
		return radio.ErrNotStarted
	case p.failed != nil:
		return p.failed
	}
	return ctx.Err()
}

// began notes that samples flow.
func (p *pump) began() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == radio.Armed {
		p.state = radio.Running
	}
}

// start opens the transfers and switches the board on, or arms it. may says why it must not
// be on; it is asked before the board is, and behind that.
func (p *pump) start(ctx context.Context, may func() error, open func() (io.Closer, error)) error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	switch state := p.State(); {
	case state == radio.Closed:
		return radio.ErrClosed
	case state != radio.Ready:
		return radio.ErrBusy
	}
	if err := p.d.usable(ctx); err != nil {
		return err
	}
	if err := p.switchOn(ctx, may, open); err != nil {
		return fmt.Errorf("starting to %s with %s: %w", p.verb, p.d.info.URI, err)
	}
	p.watch.Add(1)
	go func() {
		defer p.watch.Done()
		watch(p.cut.Done(), p.d.opts.poll, func() error { return p.CheckLoss(context.Background()) })
	}()
	return nil
}

// switchOn is start with the device's lock held.
func (p *pump) switchOn(ctx context.Context, may func() error, open func() (io.Closer, error)) error {
	if err := may(); err != nil {
		return err
	}
	if err := p.d.arm(ctx, p.dir); err != nil {
		return err
	}
	// Transfers first: a board that streams is not waited for with nothing queued.
	transfers, err := open()
	if err != nil {
		return err
	}
	err = p.d.send(setMode, p.mode, 0, nil)
	if err == nil { // the program may have been stopped just before
		err = may()
	}
	if err != nil {
		return errors.Join(err, p.d.off(), transfers.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.transfers, p.state = transfers, p.d.startState()
	return nil
}

// switchOff switches the board off, once, and returns why that failed. One that is gone is
// off.
func (p *pump) switchOff() error {
	p.silence.Do(func() {
		if err := p.d.off(); !gone(err) {
			p.offErr = err
		}
	})
	return p.offErr
}

// fail notes why the stream goes no further and cuts what waits; what is queued is lost. A
// carrier goes off before anything else.
func (p *pump) fail(err error) error {
	if p.dir == radio.Transmit {
		_ = p.switchOff() // Close tells
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = fmt.Errorf("%s with %s: %w", p.doing, p.d.info.URI, err)
	}
	p.cut.End(err)
	if p.state == radio.Closed {
		return radio.ErrClosed
	}
	return p.failed
}

// close ends the stream. drain waits until what is under way is done with; failed says that
// the stream had failed before. The board is off before the transfers end: one that streams
// on may keep a cancelled queue busy.
func (p *pump) close(drain func(failed bool) error) error {
	p.closer.Do(func() {
		// The device's lock keeps a Start from happening in between.
		p.d.mu.Lock()
		p.mu.Lock()
		transfers, failed := p.transfers, p.failed != nil
		p.state = radio.Closed
		p.mu.Unlock()
		p.d.mu.Unlock()
		if transfers != nil {
			p.result = errors.Join(drain(failed), p.switchOff(), transfers.Close())
		}
		p.cut.End(nil)
		p.watch.Wait()
		p.d.release()
	})
	return p.result
}

// move makes one step of the transfers: it ends with ctx, with the stream, and when a board
// that runs has moved nothing for the deadline. While the board waits for its trigger it may
// take as long as it likes.
func (p *pump) move(ctx context.Context, step func(context.Context) error) error {
	wait, release := p.patient(ctx)
	defer release()
	err := step(wait)
	switch {
	case err == nil:
		p.waiting = time.Time{}
	case ctx.Err() == nil && context.Cause(wait) == errStuck:
		return p.stuck()
	}
	return err
}

// patient returns ctx with the ends that move names.
func (p *pump) patient(ctx context.Context) (context.Context, func()) {
	ctx, release := p.cut.Join(ctx)
	deadline := p.d.opts.deadline
	if deadline == 0 {
		return ctx, release
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if p.waiting.IsZero() || p.State() == radio.Armed {
		p.waiting = time.Now()
	}
	var timer *time.Timer
	set := make(chan struct{}) // closed once timer is
	timer = time.AfterFunc(time.Until(p.waiting.Add(deadline)), func() {
		<-set
		if p.State() == radio.Armed {
			timer.Reset(deadline)
			return
		}
		cancel(errStuck)
	})
	close(set)
	return ctx, func() { timer.Stop(); cancel(nil); release() }
}

// stuck says why a board that runs moves no samples.
func (p *pump) stuck() error {
	if p.d.api >= apiM0 {
		state, err := p.d.m0()
		if err == nil {
			err = p.halt(state)
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%s for %v: %w", p.nothing, p.d.opts.deadline, usb.ErrTimeout)
}

// halt returns why the board has stopped, nil where it has not.
func (p *pump) halt(state m0State) error {
	if state.err == p.timeout {
		return p.halted
	}
	return nil
}

// count returns what the board counts; ok is false where it cannot be asked.
func (p *pump) count() (bytes uint32, ok bool) {
	if p.State() == radio.Ready || p.d.api < apiM0 {
		return 0, false
	}
	state, err := p.d.m0()
	return state.bytes, err == nil
}

// CheckLoss is radio.LossChecker.
func (p *pump) CheckLoss(ctx context.Context) error {
	if err := p.ready(ctx); err != nil {
		return err
	}
	p.watched.mu.Lock()
	err := p.look()
	p.watched.mu.Unlock()
	if err != nil {
		return p.fail(err)
	}
	return nil
}
