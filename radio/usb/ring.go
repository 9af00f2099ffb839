package usb

import (
	"context"
	"sync"

	"ringwave/radio/life"
)

// InSource is where a stream to the host gets its data; a Transport has one, and
// NewInStream makes the stream of it.
type InSource interface {
	// Read waits for the oldest transfer, puts its data into p, which has room for
	// it, and queues it again. n may be 0. ctx done makes it fail soon, at the
	// latest after the transfers that are queued.
	Read(ctx context.Context, p []byte) (n int, err error)
	// Close cancels what is queued and waits until the board has given it back.
	// It comes once, after the last Read.
	Close() error
}

// ring is an InStream: one goroutine fills buffers, the reader takes them.
type ring struct {
	source InSource
	hold   bool
	size   int
	life   life.Life // ends with Close

	// Every buffer is in free, in filled, or with the filler or the reader, so
	// that sending to either never waits.
	free    chan []byte
	filled  chan Block
	current []byte // what the reader has

	// ended is closed when the filler is done, after err and the last block.
	ended chan struct{}
	err   error

	closing   sync.Once
	closedErr error
}

// NewInStream makes a stream of a source and starts to read it.
func NewInStream(c InConfig, source InSource) InStream {
	// One buffer more for the reader, one for the filler.
	buffers := c.Ring + 2
	r := &ring{
		source: source, hold: c.Hold, size: c.Size,
		free: make(chan []byte, buffers), filled: make(chan Block, buffers),
		ended: make(chan struct{}),
	}
	memory := make([]byte, buffers*c.Size)
	for i := range buffers {
		r.free <- memory[i*c.Size : (i+1)*c.Size : (i+1)*c.Size]
	}
	go r.fill()
	return r
}

// fill does nothing but hand buffers over.
func (r *ring) fill() {
	defer close(r.ended)
	ctx, release := r.life.Join(context.Background())
	defer release()
	var lost int64
	var buf []byte
	for {
		if buf == nil {
			buf = r.next(ctx)
		}
		// A source that always has data may never look at its context.
		if err := FromContext(ctx); err != nil {
			r.err = err
			return
		}
		n, err := r.source.Read(ctx, buf)
		switch {
		case n > 0 && err == nil && len(r.free) == 0 && !r.hold:
			lost += int64(n)
		case n > 0:
			r.filled <- Block{Data: buf[:n], Lost: lost}
			lost, buf = 0, nil
		}
		if err != nil {
			r.err = err
			return
		}
	}
}

// next returns a free buffer and waits for one if it holds; otherwise there always
// is one, because the last is overwritten and not handed over.
func (r *ring) next(ctx context.Context) []byte {
	select {
	case buf := <-r.free:
		return buf[:r.size]
	case <-ctx.Done():
		return nil
	}
}

// Next returns the oldest block.
func (r *ring) Next(ctx context.Context) (Block, error) {
	if r.current != nil {
		r.free <- r.current
		r.current = nil
	}
	select {
	case b := <-r.filled:
		return r.give(b), nil
	default:
	}
	select {
	case b := <-r.filled:
		return r.give(b), nil
	case <-ctx.Done():
		return Block{}, ctx.Err()
	case <-r.life.Done():
		return Block{}, r.life.Err()
	case <-r.ended:
	}
	select {
	case b := <-r.filled:
		return r.give(b), nil
	default:
	}
	if err := r.life.Err(); err != nil {
		return Block{}, err
	}
	return Block{}, r.err
}

// Waiting implements InStream.
func (r *ring) Waiting() bool { return len(r.filled) > 0 }

func (r *ring) give(b Block) Block {
	r.current = b.Data[:cap(b.Data)]
	return b
}

// Close ends the filler and then the source.
func (r *ring) Close() error {
	r.closing.Do(func() {
		r.life.End(ErrClosed)
		<-r.ended
		r.closedErr = r.source.Close()
	})
	return r.closedErr
}
