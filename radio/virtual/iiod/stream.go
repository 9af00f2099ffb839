package iiod

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"time"

	"ringwave/radio"
)

// fullScale is the integer of a sample of 1, at 12 bits.
const fullScale = 1 << 11

// components says which channels a client wants, as the bits of a mask: I and Q of each
// path.
type components uint32

// parseMask reads the mask of a device with samples: 8 hexadecimal digits for
// each 32 channels, of which the first have samples.
func parseMask(d *device, mask string) (components, error) {
	words := (len(d.channels) + 31) / 32
	if len(mask) != 8*words {
		return 0, einval
	}
	wanted, err := strconv.ParseUint(mask, 16, 32) // more digits are more channels than the board has
	if err != nil || wanted == 0 || wanted>>d.scanned() != 0 {
		return 0, einval
	}
	return components(wanted), nil
}

// scanned returns the number of channels with samples.
func (d *device) scanned() (n int) {
	for _, c := range d.channels {
		if c.scan != nil {
			n++
		}
	}
	return n
}

// bytes returns the length of a sample.
func (c components) bytes() int { return 2 * bits.OnesCount32(uint32(c)) }

// offset returns where in a sample a channel is; ok tells whether it is wanted.
func (c components) offset(channel int) (at int, ok bool) {
	return (c & (1<<channel - 1)).bytes(), c>>channel&1 != 0
}

// append adds samples of a path, from 1, to dst as the converter gives them: times factor,
// rounded and clipped to 12 bits. The other paths hear nothing.
func (c components) append(dst []byte, path int, samples []complex64, factor float32) []byte {
	size, start := c.bytes(), len(dst)
	dst = append(dst, make([]byte, size*len(samples))...)
	if at, ok := c.offset(2*path - 2); ok {
		for k, x := range samples {
			binary.LittleEndian.PutUint16(dst[start+k*size+at:], convert(real(x), factor))
		}
	}
	if at, ok := c.offset(2*path - 1); ok {
		for k, x := range samples {
			binary.LittleEndian.PutUint16(dst[start+k*size+at:], convert(imag(x), factor))
		}
	}
	return dst
}

func convert(v, factor float32) uint16 {
	code := math.RoundToEven(float64(v) * float64(factor) * fullScale)
	switch {
	case code != code:
		code = 0
	case code > fullScale-1:
		code = fullScale - 1
	case code < -fullScale:
		code = -fullScale
	}
	return uint16(int16(code))
}

// parse returns the samples of src for a path, from 1, of which the converter uses the
// upper 12 bits of 16.
func (c components) parse(src []byte, path int, factor float32) []complex64 {
	size := c.bytes()
	samples := make([]complex64, len(src)/size)
	inPhase, hasI := c.offset(2*path - 2)
	quadrature, hasQ := c.offset(2*path - 1)
	value := func(at int) float32 {
		return float32(int16(binary.LittleEndian.Uint16(src[at:]))>>4) / fullScale * factor
	}
	for k := range samples {
		var i, q float32
		if hasI {
			i = value(k*size + inPhase)
		}
		if hasQ {
			q = value(k*size + quadrature)
		}
		samples[k] = complex(i, q)
	}
	return samples
}

// stream is a device with samples that a connection opened: a queue of blocks
// between the connection and the end that the samples go to or come from.
type stream struct {
	b      *board
	port   *port
	kept   components
	block  int         // bytes
	queue  chan []byte // of blocks
	cyclic bool
	cancel context.CancelFunc
	// done is closed at the end, when err says why.
	done chan struct{}
	err  error
}

// openStream takes a port for a connection and starts its end.
func (b *board) openStream(ctx context.Context, c command) (*stream, error) {
	var p *port
	switch b.findDevice(c.device) {
	case nil:
		return nil, enodev
	case b.rx.dev:
		p = &b.rx
	case b.tx.dev:
		p = &b.tx
	default:
		return nil, einval
	}
	kept, err := parseMask(p.dev, c.mask)
	if err != nil || c.number == 0 || c.number > maxTransfer/int64(kept.bytes()) {
		return nil, einval
	}
	blocks, err := b.take(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &stream{
		b: b, port: p, kept: kept, block: int(c.number) * kept.bytes(), cyclic: c.cyclic,
		// The end has one block in hand.
		queue: make(chan []byte, blocks-1),
		done:  make(chan struct{}),
	}
	ctx, s.cancel = context.WithCancel(ctx)
	if err := s.start(ctx); err != nil {
		s.cancel()
		b.release(p)
		return nil, err
	}
	return s, nil
}

// patience is how long a port is waited for: who closed it may have left just now,
// over another connection.
const patience = 500 * time.Millisecond

// take returns a port to the caller alone, and the number of its blocks.
func (b *board) take(ctx context.Context, p *port) (blocks int, err error) {
	late, stop := after(patience)
	defer stop()
	select {
	case p.held <- struct{}{}:
	case <-late:
		return 0, ebusy
	case <-ctx.Done():
		return 0, ebusy
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return p.blocks, nil
}

func (b *board) release(p *port) { <-p.held }

// start opens the end and lets it run.
func (s *stream) start(ctx context.Context) error {
	if s.port == &s.b.rx {
		return s.startReceive(ctx)
	}
	return s.startTransmit(ctx)
}

func (s *stream) startReceive(ctx context.Context) error {
	end, ok := s.b.cfg.Receive.(radio.ReceiveOpener)
	if !ok {
		return enodev
	}
	r, err := end.OpenReceiver(ctx)
	if err != nil {
		return number(err)
	}
	if err := r.Start(ctx); err != nil {
		return number(errors.Join(err, r.Close()))
	}
	go func() {
		defer close(s.done)
		s.err = number(s.receive(ctx, r))
		_ = r.Close() // an emulated end has nothing to add
	}()
	return nil
}

// receive fills blocks until ctx is done.
func (s *stream) receive(ctx context.Context, r radio.Receiver) error {
	samples := make([]complex64, s.block/s.kept.bytes())
	for {
		_, meta, err := radio.ReadFull(ctx, r, samples)
		if err != nil {
			return err
		}
		if meta.Flags&radio.Overrun != 0 {
			s.b.raise(s.port, overflow)
		}
		if s.b.cfg.RealTime && len(s.queue) == cap(s.queue) {
			s.b.raise(s.port, overflow)
			continue
		}
		block := s.kept.append(make([]byte, 0, s.block), s.b.cfg.Path, samples, s.b.rxFactor())
		select {
		case s.queue <- block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *stream) startTransmit(ctx context.Context) error {
	end, ok := s.b.cfg.Transmit.(radio.TransmitOpener)
	if !ok {
		return enodev
	}
	t, err := end.OpenTransmitter(ctx)
	if err != nil {
		return number(err)
	}
	if err := t.Start(ctx); err != nil {
		return number(errors.Join(err, t.Close()))
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(t)
	}()
	go func() {
		defer close(s.done)
		s.err = number(s.transmit(ctx, t))
		_ = t.Close() // an emulated end has nothing to add
		<-watched
	}()
	return nil
}

// watch sets the flag of what ran dry until the end is closed.
func (s *stream) watch(t radio.Transmitter) {
	for {
		e, err := t.Event(context.Background())
		if err != nil {
			return
		}
		if e.Kind == radio.Underrun {
			s.b.raise(s.port, underflow)
		}
	}
}

// transmit empties blocks until ctx is done.
func (s *stream) transmit(ctx context.Context, t radio.Transmitter) error {
	var block []byte
	for {
		if block == nil || !s.cyclic {
			select {
			case block = <-s.queue:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if _, err := t.Write(ctx, s.kept.parse(block, s.b.cfg.Path, s.b.txFactor()), radio.TxMeta{}); err != nil {
			return err
		}
	}
}

// number returns the error number for what went wrong at an end.
func number(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, radio.ErrBusy):
		return ebusy
	case errors.Is(err, radio.ErrClosed):
		return enodev
	}
	return eio
}

// after returns a channel for a timeout, nil for none, and what ends it.
func after(timeout time.Duration) (<-chan time.Time, func()) {
	if timeout <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(timeout)
	return t.C, func() { t.Stop() }
}

// pull waits for a block of received samples.
func (s *stream) pull(ctx context.Context, timeout time.Duration) ([]byte, error) {
	late, stop := after(timeout)
	defer stop()
	select {
	case b := <-s.queue:
		return b, nil
	case <-s.done:
		return nil, s.err
	case <-late:
		return nil, etimedout
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// push waits for room for a block to transmit.
func (s *stream) push(ctx context.Context, block []byte, timeout time.Duration) error {
	late, stop := after(timeout)
	defer stop()
	select {
	case s.queue <- block:
		return nil
	case <-s.done:
		return s.err
	case <-late:
		return etimedout
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the stream and frees its port.
func (s *stream) close() {
	s.cancel()
	<-s.done
	s.b.release(s.port)
}
