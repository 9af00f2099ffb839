package virtual

import (
	"encoding/binary"
	"fmt"
	"slices"

	"ringwave/radio"
)

const (
	bulkIn  byte = 0x81
	bulkOut byte = 0x02

	// ringSize is that of the ring between converter and USB, in bytes.
	ringSize = 32 << 10
	// usbBlock is what the firmware hands to USB at a time, in bytes.
	usbBlock = 16 << 10
	// levels is full scale.
	levels = 128
)

// M0Mode is what the part of the firmware does that serves the converters.
type M0Mode uint32

// The modes that occur here.
const (
	M0Idle    M0Mode = 0
	M0Receive M0Mode = 2
	M0TXStart M0Mode = 3
	M0TXRun   M0Mode = 4
)

// M0Error is why streaming ended.
type M0Error uint32

// The errors of limits that were reached.
const (
	M0NoError   M0Error = 0
	M0RXTimeout M0Error = 1
	M0TXTimeout M0Error = 2
)

// M0State is what request 41 gives: counts of bytes, modulo 2^32.
type M0State struct {
	Requested                    uint16
	Active                       M0Mode
	M0Count, M4Count             uint32
	Shortfalls, LongestShortfall uint32
	ShortfallLimit               uint32
	Error                        M0Error
}

// encode returns the 40 bytes on the wire.
func (m M0State) encode() []byte {
	b := binary.LittleEndian.AppendUint16(nil, m.Requested)
	b = binary.LittleEndian.AppendUint16(b, 0) // the request is done
	for _, v := range []uint32{
		uint32(m.Active), m.M0Count, m.M4Count, m.Shortfalls, m.LongestShortfall,
		m.ShortfallLimit, 0, 0, uint32(m.Error),
	} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// loss is a stretch of samples that is made to be lost.
type loss struct{ first, end int64 }

// stream is the board's converters and buffers; the seat guards it.
type stream struct {
	h      *HackRF
	number uint64 // of starts
	m0     M0State
	// armed: waits for a trigger. running: the converter goes.
	armed, running, draining bool
	in, out                  queue

	// buffer holds the bytes from tail to head, each at its count modulo the
	// length: the ring, and what firmware of 2026 has behind it. When receiving,
	// head is the converter's and tail the host's; when transmitting it is the
	// other way round.
	buffer     []byte
	head, tail int64

	seen    int64 // samples since the start, lost ones too
	clipped int64
	losses  []loss
	hasSent bool // since the board has its power
	// The shortfall that goes on, and the longest before it, in bytes.
	short, longestBefore int64
}

// blocks rounds down to whole blocks of USB.
func blocks(n int64) int64 { return n &^ (usbBlock - 1) }

func (st *stream) reset(h *HackRF) {
	in, out, number := st.in, st.out, st.number
	*st = stream{h: h, in: in, out: out, number: number, buffer: make([]byte, ringSize)}
	if h.api >= API2026 {
		st.buffer = make([]byte, 2*ringSize)
	}
}

// capacity is what a host must push out of the board to flush it.
func (st *stream) capacity() int { return len(st.buffer) }

// behind is the size of the buffer behind the ring.
func (st *stream) behind() int64 { return int64(len(st.buffer) - ringSize) }

// flows reports whether samples go.
func (st *stream) flows() bool {
	return st.running && (st.m0.Active == M0Receive || st.m0.Active == M0TXRun)
}

// start changes the mode. Transfers that the host has queued stay queued.
func (st *stream) start(mode TransceiverMode) {
	st.stop()
	if mode == ModeOff {
		return
	}
	st.number++
	st.m0 = M0State{}
	st.head, st.tail, st.seen, st.clipped = 0, 0, 0, 0
	st.short, st.longestBefore = 0, 0
	if mode == ModeSweep {
		st.h.beginSweep()
	}
	if mode != ModeTransmit {
		st.m0.Requested, st.m0.Active = uint16(M0Receive), M0Receive
		st.m0.ShortfallLimit = st.h.settings.OverrunLimit
		st.arm()
		return
	}
	st.m0.Requested, st.m0.Active = uint16(M0TXStart), M0TXStart
	st.m0.ShortfallLimit = st.h.settings.UnderrunLimit
	st.take()
}

// stop ends streaming. A shortfall that goes on is not counted: it is the stop's
// own.
func (st *stream) stop() {
	if st.short > 0 && st.m0.Error == M0NoError {
		st.m0.Shortfalls--
		st.m0.LongestShortfall = uint32(st.longestBefore)
	}
	st.short = 0
	st.running, st.armed = false, false
	st.m0.Requested, st.m0.Active = uint16(M0Idle), M0Idle
}

// halt ends streaming and all transfers, for good.
func (st *stream) halt(err error) {
	st.stop()
	st.in.fail(st.h.seat, err)
	st.out.fail(st.h.seat, err)
}

// arm lets the converter go, or wait for the trigger.
func (st *stream) arm() {
	if st.h.settings.HardwareSync {
		st.armed = true
		return
	}
	st.run()
}

func (st *stream) run() {
	st.armed, st.running = false, true
	if st.m0.Active == M0TXStart {
		st.m0.Active = M0TXRun
	}
	st.h.seat.Fire()
}

// Edge starts a board that is armed.
func (h *HackRF) Edge() {
	if h.stream.armed {
		h.stream.run()
	}
}

// Queue queues a bulk transfer.
func (h *HackRF) Queue(endpoint byte, data []byte, done func(n int, err error)) (cancel func()) {
	if h.seat == nil {
		done(0, ErrUnplugged)
		return func() {}
	}
	h.seat.Lock()
	defer h.seat.Unlock()
	t := &transfer{data: data, done: done}
	q := &h.stream.in
	switch {
	case h.unplugged:
		h.seat.Complete(func() { done(0, ErrUnplugged) })
		return func() {}
	case endpoint == bulkOut:
		q = &h.stream.out
	case endpoint != bulkIn:
		h.seat.Complete(func() { done(0, ErrStall) })
		return func() {}
	}
	q.transfers = append(q.transfers, t)
	h.stream.give()
	h.stream.take()
	return func() {
		h.seat.Lock()
		defer h.seat.Unlock()
		q.cancel(h.seat, t)
	}
}

// Lose makes the board lose n samples (1 or more) from sample at of its present
// stream on, or of its next one if it does not stream: what it hears, or what it
// should have sent, zeros in its place. It is counted as a shortfall.
func (h *HackRF) Lose(at radio.SampleIndex, n radio.SampleCount) error {
	if at < 0 || n < 1 {
		return fmt.Errorf("virtual HackRF: a loss of %d samples at index %d; allowed is 1 or more, at 0 or later", n, at)
	}
	h.seat.Lock()
	defer h.seat.Unlock()
	st := &h.stream
	st.losses = append(st.losses, loss{int64(at), int64(at) + int64(n)})
	slices.SortFunc(st.losses, func(a, b loss) int { return int(a.first - b.first) })
	return nil
}

// M0 returns the counters.
func (h *HackRF) M0() M0State {
	h.seat.Lock()
	defer h.seat.Unlock()
	return h.stream.m0
}

// Clipped returns how many samples of the present stream were beyond full scale.
func (h *HackRF) Clipped() radio.SampleCount {
	h.seat.Lock()
	defer h.seat.Unlock()
	return radio.SampleCount(h.stream.clipped)
}

// Armed reports whether the board waits for a trigger, and a transmitter has filled
// its ring.
func (h *HackRF) Armed() bool {
	h.seat.Lock()
	defer h.seat.Unlock()
	return h.stream.armed
}

// piece returns how many of n samples go before something changes, and whether they
// are to be lost.
func (st *stream) piece(n int64) (k int64, lost bool) {
	for len(st.losses) > 0 && st.losses[0].end <= st.seen {
		st.losses = slices.Delete(st.losses, 0, 1)
	}
	if every := st.h.every; every > 0 {
		at := st.seen % every
		if first := every - st.h.length; at < first {
			n = min(n, first-at)
		} else {
			return min(n, every-at), true
		}
	}
	if len(st.losses) == 0 {
		return n, false
	}
	l := st.losses[0]
	if l.first > st.seen {
		return min(n, l.first-st.seen), false
	}
	return min(n, l.end-st.seen), true
}

// shortfall counts n bytes that had no room, or were not there. At the limit the
// converter's processor goes idle; the other knows nothing of it, so that the mode and the
// transmit chain stay.
func (st *stream) shortfall(n int64) {
	if st.short == 0 {
		st.m0.Shortfalls++
		st.longestBefore = int64(st.m0.LongestShortfall)
	}
	st.short += n
	st.m0.LongestShortfall = uint32(max(st.longestBefore, st.short))
	if limit := int64(st.m0.ShortfallLimit); limit > 0 && st.short >= limit {
		st.m0.Error = M0TXTimeout
		if st.m0.Active == M0Receive {
			st.m0.Error = M0RXTimeout
		}
		st.m0.Active = M0Idle
		st.running = false
	}
}

// moved is what has left the ring on its way to the host.
func (st *stream) moved() int64 {
	if st.behind() == 0 {
		return blocks(st.tail)
	}
	return min(blocks(st.head), blocks(st.tail)+st.behind())
}

// Receive puts samples into the ring.
func (h *HackRF) Receive(src []complex64) {
	st := &h.stream
	for len(src) > 0 && st.flows() {
		k, lost := st.piece(int64(len(src)))
		room := (ringSize - (st.head - st.moved())) / 2
		if !lost && room > 0 {
			k = min(k, room, (usbBlock-st.head%usbBlock)/2)
			st.convert(src[:k])
			st.short = 0
			if h.settings.Mode == ModeSweep && st.head%usbBlock == 0 {
				st.sweepBlock()
			}
			st.give()
		} else {
			st.shortfall(2 * k)
		}
		st.seen += k
		src = src[k:]
	}
}

// convert puts samples that have room behind head.
func (st *stream) convert(src []complex64) {
	mask := len(st.buffer) - 1
	at := int(st.head) & mask
	for _, x := range src {
		st.buffer[at] = byte(st.level(real(x)))
		st.buffer[at+1] = byte(st.level(imag(x)))
		at = (at + 2) & mask
		if limited(real(x)) || limited(imag(x)) {
			st.clipped++
		}
	}
	st.head += 2 * int64(len(src))
	st.m0.M0Count = uint32(st.head)
}

// level rounds to the nearest of the converter's 256 codes.
func (st *stream) level(x float32) int8 {
	v := x * levels
	switch {
	case v >= levels-1:
		return levels - 1
	case v <= -levels:
		return -levels
	case v >= 0:
		return int8(v + 0.5)
	}
	return int8(v - 0.5)
}

// limited reports whether a converter cannot give x within half a step.
func limited(x float32) bool { return x*levels >= levels-0.5 || x*levels <= -levels-0.5 }

// give hands whole blocks that were received to the host.
func (st *stream) give() {
	if st.m0.Requested != uint16(M0Receive) {
		return
	}
	mask := int64(len(st.buffer) - 1)
	for {
		ready := blocks(st.head)
		if st.behind() > 0 {
			ready = st.moved()
		}
		at := st.tail & mask
		n := st.in.fill(st.h.seat, st.buffer[at:min(at+ready-st.tail, int64(len(st.buffer)))])
		st.tail += int64(n)
		st.m0.M4Count = uint32(st.moved())
		if n == 0 {
			return
		}
	}
}

// receiveRoom returns how many samples fill what the host waits for, in whole blocks.
func (st *stream) receiveRoom() int {
	wanted := int64(st.in.wanted())
	if wanted == 0 {
		return 0
	}
	k, _ := st.piece((blocks(st.tail+wanted+usbBlock-1) - st.head) / 2)
	return int(k)
}

// ready is what the converter may send, in bytes.
func (st *stream) ready() int64 { return blocks(st.head) - st.tail }

// dry reports whether all blocks were sent.
func (st *stream) dry() bool { return st.ready() == 0 }

// take gets what the host has queued, as far as there is room, and starts
// transmission once the ring is full.
func (st *stream) take() {
	if st.m0.Active != M0TXStart && st.m0.Active != M0TXRun {
		return
	}
	mask := int64(len(st.buffer) - 1)
	for {
		room := int64(len(st.buffer)) - (st.head - blocks(st.tail))
		at := st.head & mask
		n := st.out.drain(st.h.seat, st.buffer[at:min(at+room, int64(len(st.buffer)))])
		if n == 0 {
			break
		}
		st.head += int64(n)
	}
	st.m0.M4Count = uint32(min(blocks(st.head), blocks(st.tail)+ringSize))
	if st.m0.Active == M0TXStart && !st.armed && blocks(st.head) >= ringSize {
		st.arm()
	}
}

// Send takes samples out of the ring, zeros where there are none.
func (h *HackRF) Send(dst []complex64) {
	clear(dst)
	if h.stayed() {
		for k := range dst {
			dst[k] = complex(h.stays, 0)
		}
		return
	}
	st := &h.stream
	st.hasSent = true
	for len(dst) > 0 && st.flows() {
		k, lost := st.piece(int64(len(dst)))
		there := st.ready() / 2
		switch {
		case !lost && there > 0:
			k = min(k, there)
			st.restore(dst[:k])
			st.short = 0
			st.take()
		case !lost && st.draining:
		default:
			st.shortfall(2 * k)
		}
		st.seen += k
		dst = dst[k:]
	}
}

// restore takes len(dst) samples that are there from tail.
func (st *stream) restore(dst []complex64) {
	mask := len(st.buffer) - 1
	at := int(st.tail) & mask
	for k := range dst {
		dst[k] = complex(float32(int8(st.buffer[at]))/levels, float32(int8(st.buffer[at+1]))/levels)
		at = (at + 2) & mask
	}
	st.tail += 2 * int64(len(dst))
	st.m0.M0Count = uint32(st.tail)
}

// transmitRoom returns how many samples can be sent without a shortfall.
func (st *stream) transmitRoom() int {
	k, lost := st.piece(block)
	if lost {
		return int(k)
	}
	return int(min(k, st.ready()/2))
}
