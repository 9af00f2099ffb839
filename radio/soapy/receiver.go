package soapy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"ringwave/radio"
	"ringwave/radio/blocks"
	"ringwave/radio/life"
)

const (
	// maxBlock bounds what is read or written at once, in samples.
	maxBlock = 1 << 16
	// ringSamples is how many samples may wait for the program, about.
	ringSamples = 1 << 22
)

// blockSamples returns how many samples of a stream are read or written at once.
func blockSamples(s Stream) int { return max(1, min(maxBlock, s.MTU())) }

// receiver is the receive stream of a device.
type receiver struct {
	*blocks.Receiver
	d      *device
	source *source
}

// OpenReceiver returns a stream that is Ready: radio.Bounded and radio.Ranged; radio.ErrBusy
// while another is open, or while a transmitter is of a board that cannot do both.
func (r receives) OpenReceiver(ctx context.Context) (radio.Receiver, error) {
	d := r.d
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, radio.ErrClosed
	}
	if d.rx != nil || d.tx != nil && !d.fullDuplex {
		return nil, fmt.Errorf("opening a receiver of %s: %w", d.info.URI, radio.ErrBusy)
	}
	rx := &receiver{d: d, source: &source{d: d, size: d.ways[radio.Receive].format.bytes, ended: make(chan struct{})}}
	f := d.ways[radio.Receive].format
	rx.Receiver = blocks.NewReceiver(blocks.Config{
		Format: blocks.Format{Codec: f.codec, Bytes: f.bytes, Clip: f.clip}, DeviceCounted: d.timed,
		Name: d.info.URI, Epoch: d.nextEpoch, Silence: d.opts.deadline,
		Start:  rx.source.start,
		Closed: func() { d.forgetReceiver(rx) },
	})
	d.rx = rx
	return rx, nil
}

func (d *device) forgetReceiver(rx *receiver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rx == rx {
		d.rx = nil
	}
}

// onTheWay returns the number of blocks that may be of before.
func (r *receiver) onTheWay() int {
	s := r.source
	rate := r.d.SampleRate(radio.Receive)
	per := s.perBlock.Load()
	if per == 0 {
		return 0 // nothing flows yet
	}
	return len(s.filled) + 2 + int(math.Ceil(float64(rate.Samples(r.d.opts.settle))/float64(per)))
}

// source reads blocks from the board into a ring.
type source struct {
	d      *device
	size   int // of a sample
	stream Stream
	life   life.Life // ends with Close

	perBlock     atomic.Int64 // samples
	free, filled chan blocks.Block
	current      []byte // what the reader has
	ended        chan struct{}
	err          error // why there is no more, once ended is closed

	mu       sync.Mutex
	clock    clock
	chosen   bool // clock.zero holds
	expected radio.SampleIndex
	lost     int64 // samples that the ring had no room for
	unknown  bool  // samples were lost, nobody knows how many
}

// counts returns what turns times into indices.
func (s *source) counts() clock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

// start lets samples flow.
func (s *source) start(ctx context.Context) (blocks.Source, error) {
	d := s.d
	d.changing.Lock()
	defer d.changing.Unlock()
	ctx, cancel := d.call(ctx)
	defer cancel()
	fail := func(err error) (blocks.Source, error) {
		return nil, fmt.Errorf("starting to receive with %s: %w", d.info.URI, err)
	}
	at := d.at(radio.Receive)
	stream, err := d.board.SetupStream(ctx, at, d.ways[radio.Receive].format.name, d.opts.stream)
	if err != nil {
		return fail(err)
	}
	s.stream = stream
	s.clock.rate = d.SampleRate(radio.Receive)
	flags, begin := Flags(0), Time(0)
	if d.timed {
		when, chosen, err := d.firstTime(ctx, 0)
		if err != nil {
			return fail(errors.Join(err, stream.Close()))
		}
		if chosen {
			flags, begin = HasTime, when
			s.clock.zero, s.chosen = when, true
		}
	}
	if err := stream.Activate(ctx, flags, begin); err != nil {
		return fail(errors.Join(err, stream.Close()))
	}
	per := blockSamples(stream)
	s.perBlock.Store(int64(per))
	// One more for the reader, one for the pump.
	n := max(8, ringSamples/per) + 2
	s.free, s.filled = make(chan blocks.Block, n), make(chan blocks.Block, n)
	memory := make([]byte, n*per*s.size)
	for i := range n {
		s.free <- blocks.Block{Data: memory[i*per*s.size : (i+1)*per*s.size : (i+1)*per*s.size]}
	}
	go s.pump()
	return s, nil
}

// pump reads blocks until the stream is closed or fails.
func (s *source) pump() {
	defer close(s.ended)
	ctx, release := s.life.Join(context.Background())
	defer release()
	buf := <-s.free
	for ctx.Err() == nil {
		n, info, err := s.stream.Read(ctx, buf.Data[:cap(buf.Data)], s.d.opts.patience)
		switch {
		case err == nil && n > 0:
			if s.deliver(blocks.Block{Data: buf.Data[:n]}, info) {
				buf = <-s.free
			}
		case err == nil, errors.Is(err, ErrTimeout):
		case errors.Is(err, ErrOverflow):
			s.overflow()
		default:
			s.err = err
			return
		}
	}
	s.err = s.life.Err()
}

func (s *source) overflow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown = true
}

// deliver puts a block into the ring, with what was lost before it, or drops it where the
// ring is full.
func (s *source) deliver(b blocks.Block, info BlockInfo) (taken bool) {
	n := int64(len(b.Data) / s.size)
	s.mu.Lock()
	if timed := info.Flags&HasTime != 0; timed && s.d.timed {
		b.Lost, b.Restarted = s.place(info.At)
		s.unknown = false
	} else if s.unknown {
		b.Lost, b.Restarted = s.lost, true
		s.unknown = false
	} else {
		b.Lost = s.lost
	}
	if len(s.free) == 0 { // the last is kept for the next read
		s.lost += n
		s.unknown = b.Restarted
		if s.d.timed && info.Flags&HasTime != 0 {
			s.lost = b.Lost + n
		}
		s.mu.Unlock()
		return false
	}
	s.expected += radio.SampleIndex(b.Lost + n)
	s.lost = 0
	s.unknown = s.unknown || info.Flags&EndAbrupt != 0
	s.mu.Unlock()
	b.Lost *= int64(s.size)
	s.filled <- b
	return true
}

// place returns how many samples are missing before a block of a time, or that the clock was
// set in between. The lock is held.
func (s *source) place(at Time) (lost int64, restarted bool) {
	if !s.chosen {
		s.clock.zero, s.chosen = at, true
		return 0, false
	}
	missing := s.clock.index(at) - s.expected
	const most = 1 << 40 // more than a day at any rate: the clock was set
	if missing < -1 || missing > most {
		s.clock.zero = at - (s.clock.at(s.expected) - s.clock.zero)
		return 0, true
	}
	return int64(max(0, missing)), false
}

// Next implements blocks.Source.
func (s *source) Next(ctx context.Context) (blocks.Block, error) {
	if s.current != nil {
		s.free <- blocks.Block{Data: s.current}
		s.current = nil
	}
	select {
	case b := <-s.filled:
		return s.give(b), nil
	default:
	}
	select {
	case b := <-s.filled:
		return s.give(b), nil
	case <-ctx.Done():
		return blocks.Block{}, ctx.Err()
	case <-s.ended:
	}
	select {
	case b := <-s.filled:
		return s.give(b), nil
	default:
		return blocks.Block{}, s.err
	}
}

func (s *source) give(b blocks.Block) blocks.Block {
	s.current = b.Data[:cap(b.Data)]
	return b
}

// Close implements blocks.Source.
func (s *source) Close() error {
	s.life.End(radio.ErrClosed)
	<-s.ended
	ctx, cancel := context.WithTimeout(context.Background(), min(s.d.opts.call, offTimeout))
	defer cancel()
	err := s.stream.Deactivate(ctx, 0, 0)
	if errors.Is(err, ErrGone) || errors.Is(err, ErrNotSupported) {
		err = nil // Next has said so
	}
	return errors.Join(err, s.stream.Close())
}

// offTimeout bounds each call that ends a stream, besides what the URI says.
const offTimeout = 3 * time.Second
