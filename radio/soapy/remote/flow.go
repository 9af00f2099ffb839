package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
	"ringwave/radio/soapy"
)

// flow is what a stream's samples and news go through while the server has it.
type flow struct {
	link       *link
	id         int32
	size, most int // bytes of a sample, and of a block
	datagrams  bool
	scarce     bool // datagrams take more than SoapyRemote reckons with
	data, news conn
	in, told   *bufio.Reader // of data and news
	life       life.Life     // ends with the connections
	forget     func() bool

	// Of Read.
	left     int // bytes of the block that are still to come
	info     soapy.BlockInfo
	next     uint32 // the number of the next block
	heard    uint32 // what was acknowledged last
	window   uint32 // blocks that may be on their way
	stalled  uint32 // blocks that are given up as lost
	flowing  bool   // samples came
	patience atomic.Int64

	// Of Write.
	out  []byte
	sent atomic.Uint32 // blocks
	// writing is held while a block goes; torn says that one went in part.
	writing sync.Mutex
	torn    bool

	// What the server acknowledges.
	mu    sync.Mutex
	taken uint32        // blocks
	room  uint32        // blocks that may be on their way
	more  chan struct{} // has a token when the server has acknowledged something
	pumps sync.WaitGroup

	mute bool // of Status: there are no news
}

// grace is how long the board may take to begin: until then what is wrong with a stream is
// that it is not active yet.
const grace = time.Second

// unlimited is how many blocks may be on their way over TCP, which bounds it itself. A server
// that waits for a client to let it go on cannot be waited for by the client (see the
// package's documentation).
const unlimited = 1 << 30

func newFlow(s *stream, id int32, data, news conn) *flow {
	f := &flow{
		link: s.b.link, id: id, size: s.size, most: s.most, datagrams: s.b.opts.datagrams, data: data, news: news,
		in: bufio.NewReaderSize(data, max(1<<16, s.most)), told: bufio.NewReaderSize(news, max(1<<10, s.most)),
		window: unlimited, more: make(chan struct{}, 1),
	}
	if d, ok := data.(*datagrams); ok {
		f.window = uint32(max(1, roomFor(d, s.window())/blockCost(s.b.opts.mtu)))
		f.scarce = s.b.opts.mtu > 1500
	}
	if s.at.Direction == radio.Transmit {
		f.out = make([]byte, s.most)
	}
	return f
}

// roomFor has the system keep as many bytes of datagrams as it may, and returns how many it
// keeps of those that come, with what it needs besides.
func roomFor(d *datagrams, window int) int {
	_ = d.SetWriteBuffer(window) // what there is will do
	_ = d.SetReadBuffer(window)
	return min(2*window, readBuffer(d.UDPConn, window))
}

// blockCost is what a block may take of that: memory comes in powers of two.
func blockCost(mtu int) int { return 2*mtu + 1024 }

// start begins what goes on until the end.
func (f *flow) start() {
	f.forget = f.link.life.AfterEnd(func() { f.cut(errNotActive) })
	if f.out == nil {
		f.acknowledge()
		return
	}
	f.pumps.Add(1)
	go f.listen()
}

// cut ends the connections, and all that waits for them.
func (f *flow) cut(cause error) {
	f.life.End(cause)
	f.data.Close()
	f.news.Close()
}

// stop ends what uses the connections, which stay until the server has closed the stream: at
// the end of one its threads may read on without end. A block that is under way is finished,
// or its connection ends all the same. A receiver's is emptied, as the server's thread may
// stand in sending, and does not hear of anything else before.
func (f *flow) stop() {
	f.life.End(errNotActive)
	f.forget()
	_ = f.news.SetReadDeadline(time.Unix(1, 0)) // Status tells
	if f.out == nil {
		f.pumps.Add(1)
		go f.drain()
		return
	}
	_ = f.data.SetWriteDeadline(time.Now().Add(min(goodbye, f.link.limit))) // write tells
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.torn {
		f.cut(errNotActive)
	}
}

// end cuts the connections and waits until nothing is left of them.
func (f *flow) end() {
	f.cut(errNotActive)
	f.pumps.Wait()
}

func (f *flow) drain() {
	defer f.pumps.Done()
	for err := os.ErrDeadlineExceeded; errors.Is(err, os.ErrDeadlineExceeded); {
		_ = f.data.SetReadDeadline(time.Time{}) // Copy tells
		_, err = io.Copy(io.Discard, f.data)
	}
}

// begun notes that the stream is active.
func (f *flow) begun() { f.patience.Store(time.Now().Add(grace).UnixNano()) }

// failure returns what a call's error is: that of ctx, a Code, or that the server has gone.
func (f *flow) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f.link.life.Err() != nil {
		return f.link.gone()
	}
	if cause := f.life.Err(); cause != nil {
		err = cause
	}
	var code soapy.Code
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return soapy.ErrTimeout
	case err == errNotActive, errors.As(err, &code) && err == error(code):
		return err
	case errors.As(err, &code):
		return fmt.Errorf("SoapyRemote server %s: %w", f.link.address, err)
	case errors.Is(err, io.EOF):
		err = errors.New("it ended the stream")
	}
	return fmt.Errorf("SoapyRemote server %s: %w: %w", f.link.address, err, soapy.ErrGone)
}

// until sets a deadline that has passed when ctx is done.
func until(ctx context.Context, patience time.Duration, deadline func(time.Time) error) (stop func() bool) {
	// What has come is not looked at behind a deadline. That of a closed connection the call
	// tells of.
	_ = deadline(time.Now().Add(max(patience, time.Millisecond)))
	return context.AfterFunc(ctx, func() { _ = deadline(time.Unix(1, 0)) })
}

// read is Stream.Read.
func (f *flow) read(ctx context.Context, dst []byte, patience time.Duration) (n int, info soapy.BlockInfo, err error) {
	if len(dst) == 0 || ctx.Err() != nil {
		return 0, info, context.Cause(ctx)
	}
	if f.in.Buffered() < min(f.left, len(dst)) || f.left == 0 {
		defer until(ctx, patience, f.data.SetReadDeadline)()
	}
	for f.left == 0 {
		if err := f.block(); err != nil {
			if err = f.failure(ctx, err); f.datagrams && err == soapy.ErrTimeout {
				// All that was on its way may be lost, and then the server waits.
				f.stalled = min(f.stalled+f.window, unlimited)
				f.acknowledge()
			}
			return 0, info, err
		}
	}
	n, err = f.fill(dst[:min(len(dst), f.left)])
	if n == 0 || f.life.Err() != nil { // or drain was quicker
		return 0, info, f.failure(ctx, err)
	}
	info, f.left = f.info, f.left-n
	f.info.Flags &^= soapy.HasTime // of what is left
	if f.left > 0 {
		info.Flags = info.Flags&soapy.HasTime | soapy.MoreFragments
	}
	return n, info, nil
}

// fill takes samples until dst is full. An error says why there are fewer.
func (f *flow) fill(dst []byte) (n int, err error) {
	for n < len(dst) {
		if _, err := f.in.Peek(f.size); err != nil {
			return n, err
		}
		k := min(len(dst)-n, f.in.Buffered()/f.size*f.size)
		k, _ = f.in.Read(dst[n : n+k]) // they are there
		n += k
	}
	return n, nil
}

// block takes what stands before a block, until there is one with samples. Its errors are
// Codes and those of the connection.
func (f *flow) block() error {
	b, err := f.in.Peek(frameHead)
	if err != nil {
		return err
	}
	h := parseFrame(b)
	if err := h.check(f.size, f.most); err != nil {
		if !f.datagrams {
			return err
		}
		_, _ = f.in.Discard(f.in.Buffered()) // it counts as lost
		return nil
	}
	switch missing := int32(h.sequence - f.next); {
	case missing < 0: // it was late, and is counted as lost
		_, _ = f.in.Discard(int(h.bytes))
		return nil
	case missing > 0:
		f.next = h.sequence // it stays for the next read
		return soapy.ErrOverflow
	}
	f.next, f.stalled = f.next+1, 0
	_, _ = f.in.Discard(frameHead)
	if f.next-f.heard >= max(1, f.window/8) {
		f.acknowledge()
	}
	if h.elems < 0 {
		return f.code(soapy.Code(h.elems))
	}
	f.left = int(h.elems) * f.size
	f.flowing = f.flowing || h.elems > 0
	f.info = soapy.BlockInfo{Flags: h.flags, At: h.time}
	return nil
}

// code returns what a code in place of samples means.
func (f *flow) code(c soapy.Code) error {
	switch {
	case c == soapy.ErrTimeout:
		return nil
	case c != soapy.ErrOverflow && !f.flowing && time.Now().UnixNano() < f.patience.Load():
		return nil
	}
	return c
}

// acknowledge tells the server up to where blocks have come, and how many more may.
func (f *flow) acknowledge() {
	var b [frameHead]byte
	frame{bytes: frameHead, sequence: f.next, elems: int32(f.window + f.stalled)}.put(b[:])
	_ = f.data.SetWriteDeadline(time.Now().Add(f.link.limit))
	_, _ = f.data.Write(b[:]) // Read tells of a connection that has failed
	f.heard = f.next
}

// listen hears what the server has taken, until the end.
func (f *flow) listen() {
	defer f.pumps.Done()
	for {
		b, err := f.in.Peek(frameHead)
		if err != nil {
			f.life.End(err)
			return
		}
		h := parseFrame(b)
		_, _ = f.in.Discard(frameHead)
		if h.bytes != frameHead {
			f.life.End(fmt.Errorf("an acknowledgement of %d bytes; allowed is %d: %w", h.bytes, frameHead, soapy.ErrCorruption))
			return
		}
		room := uint32(min(max(1, h.elems), unlimited))
		if f.scarce {
			room = (room + 1) / 2
		}
		f.mu.Lock()
		f.taken, f.room = h.sequence, room
		f.mu.Unlock()
		select {
		case f.more <- struct{}{}:
		default:
		}
	}
}

// full reports whether as many blocks are on their way as may be.
func (f *flow) full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent.Load()-f.taken >= f.room
}

// await waits until a block may go.
func (f *flow) await(ctx context.Context, patience time.Duration) error {
	if !f.full() {
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for f.full() {
		select {
		case <-f.more:
		case <-f.life.Done():
			return f.failure(ctx, f.life.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			if f.datagrams { // all that was on its way may be lost, or the news of it
				f.mu.Lock()
				f.room = min(f.room+1, unlimited)
				f.mu.Unlock()
			}
			return soapy.ErrTimeout
		}
	}
	return nil
}

// write is Stream.Write.
func (f *flow) write(ctx context.Context, src []byte, b soapy.BlockInfo, patience time.Duration) (n int, err error) {
	if len(src) == 0 || ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if f.out == nil {
		return 0, soapy.ErrNotSupported
	}
	if err := f.await(ctx, patience); err != nil {
		return 0, err
	}
	n = min(len(src), (f.most-frameHead)/f.size*f.size)
	if n < len(src) {
		b.Flags &^= soapy.EndBurst
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.life.Err() != nil {
		return 0, f.failure(ctx, f.life.Err())
	}
	frame{uint32(frameHead + n), f.sent.Load(), int32(n / f.size), b.Flags, b.At}.put(f.out)
	copy(f.out[frameHead:], src[:n])
	// There is room for the block with the server: what holds it up now is the network.
	stop := until(ctx, f.link.limit, f.data.SetWriteDeadline)
	defer stop()
	if k, err := f.data.Write(f.out[:frameHead+n]); err != nil {
		f.torn = k > 0
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("it took no samples for %v", f.link.limit)
		}
		f.life.End(err)
		return 0, f.failure(ctx, err)
	}
	f.sent.Add(1)
	return n, nil
}

// status is Stream.Status.
func (f *flow) status(ctx context.Context, patience time.Duration) (info soapy.BlockInfo, err error) {
	if ctx.Err() != nil {
		return info, context.Cause(ctx)
	}
	defer until(ctx, patience, f.news.SetReadDeadline)()
	b, err := f.told.Peek(frameHead)
	if err != nil {
		if err = f.failure(ctx, err); f.mute && err == soapy.ErrTimeout {
			err = soapy.ErrNotSupported
		}
		return info, err
	}
	h := parseFrame(b)
	_, _ = f.told.Discard(frameHead)
	if h.bytes != frameHead {
		err := fmt.Errorf("news of %d bytes; allowed is %d: %w", h.bytes, frameHead, soapy.ErrCorruption)
		return info, f.failure(ctx, err)
	}
	info = soapy.BlockInfo{Flags: h.flags, At: h.time}
	if h.elems < 0 {
		err = soapy.Code(h.elems)
		f.mute = f.mute || err == soapy.ErrNotSupported
	}
	return info, err
}
