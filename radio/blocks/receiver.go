package blocks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/iq"
	"ringwave/radio/usb"
)

// Block is a number of bytes that follow each other.
type Block struct {
	// Data is good until the next call of Next. It has whole samples.
	Data []byte
	// Lost is the number of bytes that are missing before Data, of whole samples.
	Lost int64
	// Restarted says that the board or the way to it started again before Data:
	// an unknown number of bytes is missing, and the phase is another.
	Restarted bool
}

// Source is where blocks come from. Next is for one goroutine; Close may be called
// from any, makes a Next that waits fail, and is called once.
type Source interface {
	// Next waits for a block. When ctx is done it gives ctx's error, or says what
	// it waits for, and nothing has ended; any other error is final.
	Next(ctx context.Context) (Block, error)
	Close() error
}

// Format is what samples are in bytes.
type Format struct {
	Codec *iq.Codec
	Bytes int             // of a sample
	Clip  radio.Amplitude // as radio.Ranged has it
}

// CU8 returns the format of an RTL2832U: a byte u stands for (u - 127.5)/128, which is exact
// in float32, so that +-1 is half a step beyond the outermost bytes.
func CU8() Format {
	return Format{Codec: iq.New(iq.Config{Format: iq.CU8, Step: 1.0 / 128}), Bytes: 2, Clip: 127.5 / 128}
}

// Config describes a stream.
type Config struct {
	Format Format
	// DeviceCounted says that losses are counted by the board, so that its indices are.
	DeviceCounted bool
	// Name is that of the device, for errors.
	Name string
	// Start lets samples flow.
	Start func(ctx context.Context) (Source, error)
	// Epoch returns the device's next epoch.
	Epoch func() radio.Epoch
	// Silence is how long a block may take before a read fails, 0 for ever. A board
	// that receives sends without a pause.
	Silence time.Duration
	// Closed is called once, when the stream is closed.
	Closed func()
}

// ErrSilent: nothing was received for too long. It is a usb.ErrTimeout.
var ErrSilent = fmt.Errorf("no samples: %w", usb.ErrTimeout)

// Receiver is a radio.Receiver of blocks; it is Bounded and Ranged. Unsettle and
// Settle may be called from any goroutine.
type Receiver struct {
	cfg Config

	mu     sync.Mutex
	state  radio.State
	source Source // nil until started
	// starting is closed when the Start that is under way is over.
	starting chan struct{}
	epoch    radio.Epoch // the newest
	steps    []step      // epochs that are to come, ascending
	blocks   int64       // taken from the source

	// reading is held by the one who reads, and guards the rest.
	reading sync.Mutex
	data    []byte            // left of the block
	index   radio.SampleIndex // of the first sample of data
	current radio.Epoch       // of data
	gaps    []radio.Gap       // before data, not told yet
}

// step is an epoch that begins after a number of blocks.
type step struct {
	after int64
	epoch radio.Epoch
}

// NewReceiver returns a stream that is Ready.
func NewReceiver(cfg Config) *Receiver {
	r := &Receiver{cfg: cfg}
	r.epoch = cfg.Epoch()
	r.current = r.epoch
	return r
}

// Start lets samples flow.
func (r *Receiver) Start(ctx context.Context) error {
	started, err := r.claimStart()
	if err != nil {
		return err
	}
	source, err := r.cfg.Start(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starting = nil
	close(started)
	switch {
	case err != nil:
		return err
	case r.state == radio.Closed:
		return errors.Join(radio.ErrClosed, source.Close())
	}
	r.state, r.source = radio.Running, source
	return nil
}

// claimStart lets one Start at a time through.
func (r *Receiver) claimStart() (chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.state == radio.Closed:
		return nil, radio.ErrClosed
	case r.state != radio.Ready || r.starting != nil:
		return nil, radio.ErrBusy
	}
	r.starting = make(chan struct{})
	return r.starting, nil
}

// State returns the stream's state.
func (r *Receiver) State() radio.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Epoch returns the newest epoch. Samples have it once those that were on their way
// are read.
func (r *Receiver) Epoch() radio.Epoch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch
}

// Close ends the stream.
func (r *Receiver) Close() error {
	r.mu.Lock()
	if r.state == radio.Closed {
		r.mu.Unlock()
		return nil
	}
	r.state = radio.Closed
	source, starting := r.source, r.starting
	r.mu.Unlock()
	if starting != nil {
		<-starting // the Start closes what it opened
	}
	var err error
	if source != nil {
		err = source.Close()
	}
	// What a read still has in its hands is good until it returns.
	r.reading.Lock()
	defer r.reading.Unlock()
	r.cfg.Closed()
	return err
}

// Unsettle begins an epoch with the next block: the phase is about to change.
func (r *Receiver) Unsettle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch = r.cfg.Epoch()
	// An epoch that has not begun never will: its phase is none.
	r.steps = append(r.steps[:0], step{r.blocks, r.epoch})
}

// Settle begins an epoch when inFlight more blocks have come: the phase is a new
// one, and no more blocks than that can be of before.
func (r *Receiver) Settle(inFlight int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch = r.cfg.Epoch()
	// One more may be in the reader's hands and not counted.
	r.steps = append(r.steps, step{r.blocks + int64(inFlight) + 1, r.epoch})
}

// ClipLevel is that of the format.
func (r *Receiver) ClipLevel() radio.Amplitude { return r.cfg.Format.Clip }

// Read returns samples of one block.
func (r *Receiver) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return r.ReadUntil(ctx, dst, radio.Forever)
}

// ReadUntil returns samples of one block that come before index until.
func (r *Receiver) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (n int, meta radio.Meta, err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	source, err := r.running()
	if err != nil || len(dst) == 0 || r.index >= until {
		return 0, meta, err
	}
	if len(r.data) == 0 {
		if err := r.fetch(ctx, source); err != nil {
			return 0, meta, err
		}
		if r.index >= until {
			return 0, meta, nil // what came before was lost
		}
	}
	n = int(min(radio.SampleIndex(min(len(dst), len(r.data)/r.cfg.Format.Bytes)), until-r.index))
	meta = radio.Meta{First: r.index, Epoch: r.current, Gaps: r.gaps}
	if !r.cfg.DeviceCounted {
		meta.Flags |= radio.HostCounted
	}
	if len(r.gaps) > 0 {
		meta.Flags |= radio.Overrun
		r.gaps = nil
	}
	r.decode(dst[:n], &meta)
	r.data = r.data[n*r.cfg.Format.Bytes:]
	r.index += radio.SampleIndex(n)
	return n, meta, nil
}

// decode reads samples, and notes what is wrong with them.
func (r *Receiver) decode(dst []complex64, meta *radio.Meta) {
	counts := r.cfg.Format.Codec.Decode(dst, r.data)
	meta.Clipped, meta.Invalid = radio.SampleCount(counts.Clipped), radio.SampleCount(counts.Invalid)
	if meta.Clipped > 0 {
		meta.Flags |= radio.Clipped
	}
	if meta.Invalid > 0 {
		meta.Flags |= radio.Invalid
	}
}

func (r *Receiver) running() (Source, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case radio.Running:
		return r.source, nil
	case radio.Closed:
		return nil, radio.ErrClosed
	}
	return nil, radio.ErrNotStarted
}

// fetch takes the next block.
func (r *Receiver) fetch(ctx context.Context, source Source) error {
	b, err := r.await(ctx, source)
	if err != nil {
		return err
	}
	size := r.cfg.Format.Bytes
	if len(b.Data)%size != 0 || b.Lost%int64(size) != 0 {
		// I and Q would be exchanged from here on.
		return fmt.Errorf("receiving from %s: %d bytes after %d that were lost; allowed are multiples of %d", r.cfg.Name, len(b.Data), b.Lost, size)
	}
	if b.Restarted {
		r.gaps = append(r.gaps, radio.Gap{})
	}
	if b.Lost > 0 {
		r.gaps = append(r.gaps, radio.Gap{Length: radio.SampleCount(b.Lost / int64(size)), Exact: true})
		r.index += radio.SampleIndex(b.Lost / int64(size))
	}
	r.data = b.Data
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.Restarted {
		r.epoch = r.cfg.Epoch()
		r.steps = r.steps[:0]
		r.current = r.epoch
	}
	for len(r.steps) > 0 && r.steps[0].after <= r.blocks {
		r.current = r.steps[0].epoch
		r.steps = r.steps[1:]
	}
	r.blocks++
	return nil
}

// await waits for the next block, but not for ever.
func (r *Receiver) await(ctx context.Context, source Source) (Block, error) {
	limited := ctx
	if r.cfg.Silence > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, r.cfg.Silence)
		defer cancel()
	}
	b, err := source.Next(limited)
	switch {
	case err == nil:
		return b, nil
	case r.State() == radio.Closed:
		return b, radio.ErrClosed
	case ctx.Err() != nil:
		return b, ctx.Err()
	case err == limited.Err():
		return b, fmt.Errorf("receiving from %s: %w for %v", r.cfg.Name, ErrSilent, r.cfg.Silence)
	case limited.Err() != nil:
		return b, fmt.Errorf("receiving from %s: %w for %v: %w", r.cfg.Name, ErrSilent, r.cfg.Silence, err)
	}
	return b, fmt.Errorf("receiving from %s: %w", r.cfg.Name, err)
}
