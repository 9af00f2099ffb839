package virtual

import (
	"context"
	"fmt"
	"slices"

	"ringwave/radio"
	"ringwave/radio/iq"
)

// RTL2832UConfig describes an emulated receiver with an RTL2832U.
type RTL2832UConfig struct {
	Serial string // "00000001", as most boards have it, if empty
	Tuner  RTLTuner
	// Unlocked says that the tuner's synthesizer never locks.
	Unlocked bool
	// BiasTee says that the pin which feeds a bias tee is on at power-on, as
	// another program may have left it.
	BiasTee bool
}

// RTL2832U is an emulated USB receiver with an RTL2832U and a tuner: a Radio that
// only receives. Samples are unsigned 8-bit I and Q; 0 is between 127 and 128. The
// reference setting of its gain is 0 dB by hand, and automatic gain stays there.
//
// The size of its buffer is invented, and that it keeps the newest; correction of the crystal, filters and the
// digital gain control do nothing.
type RTL2832U struct {
	cfg         RTL2832UConfig
	descriptors Descriptors
	seat        *Seat

	// The seat's lock guards all below.
	unplugged bool
	usb, sys  map[uint16]byte
	demod     [16][256]byte // by page and register
	tuner     r82xx
	buffer    []byte // sent by the board and not yet fetched
	queue     queue
	counter   byte
	streaming bool
	stream    uint64
	lost      int64

	transcript []Request
}

// rtlBuffer is what the board holds while no transfer is queued, in bytes.
const rtlBuffer = 16384

// Blocks of registers, as the high byte of wIndex has them.
const (
	rtlDemod = iota
	rtlUSB
	rtlSys
	rtlTuner
	rtlROM
	rtlIR
	rtlI2C
)

const (
	rtlCrystal = 28.8e6
	rtlBulkIn  = 0x81
	rtlWrite   = 0x10 // in wIndex
	rtlStatus  = 0x0a // the page of the demodulator's status
	rtlPowered = 0x88 // in DEMOD_CTL: demodulator and converter I on
	rtlMaxI2C  = 8    // bytes of a message
)

// The registers that do something.
const (
	rtlEPACtl   = 0x2148
	rtlDemodCtl = 0x3000
	rtlGPO      = 0x3001
)

// NewRTL2832U makes a board that is plugged in and powered off.
func NewRTL2832U(cfg RTL2832UConfig) (*RTL2832U, error) {
	if cfg.Tuner < R820T || cfg.Tuner > NoTuner {
		return nil, fmt.Errorf("the tuner of an emulated RTL2832U is %d; allowed is R820T, R828D or NoTuner", int(cfg.Tuner))
	}
	if cfg.Serial == "" {
		cfg.Serial = "00000001"
	}
	b := &RTL2832U{
		cfg: cfg, descriptors: rtlDescriptors(cfg.Serial),
		usb: map[uint16]byte{rtlEPACtl: 0x10, rtlEPACtl + 1: 0x02},
		sys: map[uint16]byte{},
	}
	if cfg.BiasTee {
		b.sys[rtlGPO] = 0x01
	}
	b.tuner.model, b.tuner.unlocked = cfg.Tuner, cfg.Unlocked
	return b, nil
}

// rtlDescriptors are those of the usual board: two interfaces, the second for a
// remote control without any endpoint.
func rtlDescriptors(serial string) Descriptors {
	return Descriptors{
		Device: []byte{
			18, typeDevice, 0x00, 0x02, 0, 0, 0, 64, // USB 2.0
			0xda, 0x0b, 0x38, 0x28, 0x00, 0x01, // 0bda:2838, release 1.00
			1, 2, 3, 1,
		},
		Configuration: []byte{
			9, typeConfiguration, 34, 0, 2, 1, 4, 0x80, 250,
			9, 4, 0, 0, 1, 0xff, 0xff, 0xff, 5,
			7, 5, rtlBulkIn, 2, 0x00, 0x02, 0,
			9, 4, 1, 0, 0, 0xff, 0xff, 0xff, 5,
		},
		Strings: []string{1: "Realtek", 2: "RTL2838UHIDIR", 3: serial, 4: "USB2.0-Bulk&Iso", 5: "Bulk-In, Interface"},
	}
}

// Descriptors returns what the board says of itself.
func (b *RTL2832U) Descriptors() Descriptors { return b.descriptors }

// Join gives the board its seat.
func (b *RTL2832U) Join(s *Seat) { b.seat = s }

// RTLState is what an RTL2832U does, as its registers say.
type RTLState struct {
	Receiving bool
	Frequency radio.Hertz // the carrier that comes out at 0
	Rate      radio.Hertz
	Gain      radio.Decibels
	BiasTee   bool // the pin that feeds one is on
	// Lost is the number of samples that were lost in the present stream because
	// nothing was fetched in time.
	Lost radio.SampleCount
}

// State returns what the board does now.
func (b *RTL2832U) State() RTLState {
	b.seat.Lock()
	defer b.seat.Unlock()
	return RTLState{
		Receiving: b.streaming, Frequency: b.frequency(), Rate: b.rate(), Gain: b.gain(),
		BiasTee: b.sys[rtlGPO]&0x01 != 0, Lost: radio.SampleCount(b.lost),
	}
}

// Transcript returns the control requests so far, refused ones too.
func (b *RTL2832U) Transcript() []Request {
	b.seat.Lock()
	defer b.seat.Unlock()
	return slices.Clone(b.transcript)
}

// ClearTranscript forgets the control requests so far.
func (b *RTL2832U) ClearTranscript() {
	b.seat.Lock()
	defer b.seat.Unlock()
	b.transcript = nil
}

// Control reads or writes registers.
func (b *RTL2832U) Control(_ context.Context, s Setup, data []byte) (n int, err error) {
	if b.seat == nil {
		return 0, ErrUnplugged
	}
	b.seat.Lock()
	defer b.seat.Unlock()
	if b.unplugged {
		return 0, ErrUnplugged
	}
	if s.RequestType&typeBits == 0 {
		return Standard(b.descriptors, s, data)
	}
	n, err = b.answer(s, data)
	b.transcript = append(b.transcript, Request{Setup: s, Data: slices.Clone(data), Err: err})
	return n, err
}

func (b *RTL2832U) answer(s Setup, data []byte) (n int, err error) {
	in, write := s.RequestType == 0xc0, s.Index&rtlWrite != 0
	if s.Request != 0 || in == write || !in && s.RequestType != 0x40 || len(data) == 0 {
		return 0, ErrStall
	}
	block := int(s.Index >> 8)
	switch block {
	case rtlDemod:
		err = b.accessDemod(in, byte(s.Index&0x0f), s.Value, data)
	case rtlUSB:
		b.access(b.usb, in, s.Value, data)
		b.flow()
	case rtlSys:
		b.access(b.sys, in, s.Value, data)
		b.flow()
	case rtlTuner, rtlROM, rtlIR:
		if in {
			clear(data)
		}
	case rtlI2C:
		err = b.accessI2C(in, byte(s.Value), data)
	default:
		err = ErrStall
	}
	if err != nil {
		return 0, err
	}
	return len(data), nil
}

// access reads or writes registers from an address on. What was written high byte
// first is read low byte first.
func (b *RTL2832U) access(registers map[uint16]byte, in bool, address uint16, data []byte) {
	for k := range data {
		at := address + uint16(k)
		if in {
			data[k] = registers[at]
		} else {
			registers[at] = data[k]
		}
	}
	if in {
		slices.Reverse(data)
	}
}

// accessDemod reads or writes registers of a page of the demodulator.
func (b *RTL2832U) accessDemod(in bool, page byte, value uint16, data []byte) error {
	first := int(value >> 8)
	if byte(value) != 0x20 || first+len(data) > 256 {
		return ErrStall
	}
	registers := b.demod[page][first : first+len(data)]
	switch {
	case in && page == rtlStatus:
		clear(data)
	case in:
		copy(data, registers)
		slices.Reverse(data)
	default:
		before := b.intermediate()
		copy(registers, data)
		if b.intermediate() != before {
			b.tuner.turns++
		}
	}
	return nil
}

// accessI2C reads from or writes to a chip on the I2C bus. Only a tuner is there,
// and only while the repeater connects it.
func (b *RTL2832U) accessI2C(in bool, address byte, data []byte) error {
	repeater := b.demod[1][0x01]&0x08 != 0
	if !repeater || address != b.tuner.address() || b.cfg.Tuner == NoTuner || len(data) > rtlMaxI2C {
		return ErrStall
	}
	if in {
		b.tuner.read(data)
	} else {
		b.tuner.write(data)
	}
	return nil
}

// flowing reports whether samples go to the endpoint.
func (b *RTL2832U) flowing() bool {
	return !b.unplugged && b.sys[rtlDemodCtl]&rtlPowered == rtlPowered && b.usb[rtlEPACtl] == 0 && b.usb[rtlEPACtl+1] == 0
}

// flow looks whether a stream begins or has ended.
func (b *RTL2832U) flow() {
	was := b.streaming
	b.streaming = b.flowing()
	switch {
	case !b.streaming:
		b.buffer = b.buffer[:0]
	case !was:
		b.stream++
		b.lost = 0
	}
}

// intermediate returns the frequency that the demodulator shifts to 0.
func (b *RTL2832U) intermediate() float64 {
	r := &b.demod[1]
	word := int32(r[0x19])<<16 | int32(r[0x1a])<<8 | int32(r[0x1b])
	return -float64(word<<10>>10) * rtlCrystal / (1 << 22)
}

// rate returns the sample rate.
func (b *RTL2832U) rate() radio.Hertz {
	r := &b.demod[1]
	ratio := uint32(r[0x9f])<<24 | uint32(r[0xa0])<<16 | uint32(r[0xa1])<<8 | uint32(r[0xa2])
	ratio &= 0x0fffffff
	ratio |= ratio & 0x08000000 << 1
	if ratio == 0 {
		return 1 // never set
	}
	return radio.Hertz(rtlCrystal * (1 << 22) / float64(ratio))
}

// direct reports whether an input of the RTL2832U itself is sampled: without the
// spectrum's turn there is no tuner in the way.
func (b *RTL2832U) direct() bool { return b.demod[1][0x15]&0x01 == 0 }

// frequency returns the carrier that comes out at 0.
func (b *RTL2832U) frequency() radio.Hertz {
	if b.direct() {
		return radio.Hertz(b.intermediate())
	}
	return radio.Hertz(b.tuner.lo() - b.intermediate())
}

func (b *RTL2832U) gain() radio.Decibels {
	if b.direct() {
		return 0
	}
	return b.tuner.gain()
}

// Activity tells what the board does.
func (b *RTL2832U) Activity() Activity {
	if !b.streaming {
		return Activity{}
	}
	room := b.queue.wanted() + rtlBuffer - len(b.buffer)
	return Activity{
		Mode: Receiving, Stream: b.stream, Tuning: b.tuner.turns,
		Rate: b.rate(), Frequency: b.frequency(), Gain: b.gain(), Room: room / 2,
	}
}

// Send is never called: the board only receives.
func (b *RTL2832U) Send(dst []complex64) { clear(dst) }

// Edge does nothing: the board has no trigger.
func (b *RTL2832U) Edge() {}

// Receive returns the board what it hears.
func (b *RTL2832U) Receive(src []complex64) {
	var bytes [2 * block]byte
	for len(src) > 0 {
		n := min(len(src), block)
		b.convert(bytes[:2*n], src[:n])
		b.send(bytes[:2*n])
		src = src[n:]
	}
}

// convert makes the bytes of samples, or counts.
func (b *RTL2832U) convert(dst []byte, src []complex64) {
	if b.demod[0][0x19] == 0x03 {
		for k := range dst {
			dst[k] = b.counter
			b.counter++
		}
		return
	}
	rtlConverter.Encode(dst, src)
}

// rtlConverter has 256 levels over -1 to 1, and clips beyond.
var rtlConverter = iq.New(iq.Config{Format: iq.CU8, Step: 1.0 / 128})

// send fills transfers, and then the buffer, which keeps what is newest. What is in
// the buffer came before: a transfer that is queued has emptied it.
func (b *RTL2832U) send(bytes []byte) {
	b.buffer = append(b.buffer, bytes[b.queue.fill(b.seat, bytes):]...)
	if over := len(b.buffer) - rtlBuffer; over > 0 {
		b.lost += int64(over) / 2
		b.buffer = b.buffer[:copy(b.buffer, b.buffer[over:])]
	}
}

// Queue queues a transfer from the board: Queuer. Its length is even.
func (b *RTL2832U) Queue(endpoint byte, data []byte, done func(n int, err error)) (cancel func()) {
	if b.seat == nil {
		done(0, ErrUnplugged)
		return func() {}
	}
	b.seat.Lock()
	defer b.seat.Unlock()
	switch {
	case b.unplugged:
		b.seat.Complete(func() { done(0, ErrUnplugged) })
		return func() {}
	case endpoint != rtlBulkIn || len(data)%2 != 0:
		b.seat.Complete(func() { done(0, ErrStall) })
		return func() {}
	}
	t := &transfer{data: data, done: done}
	b.queue.transfers = append(b.queue.transfers, t)
	n := b.queue.fill(b.seat, b.buffer)
	b.buffer = b.buffer[:copy(b.buffer, b.buffer[n:])]
	return func() {
		b.seat.Lock()
		defer b.seat.Unlock()
		b.queue.cancel(b.seat, t)
	}
}

// In is one transfer from the board.
func (b *RTL2832U) In(ctx context.Context, endpoint byte, dst []byte) (n int, err error) {
	return transferNow(ctx, b, endpoint, dst)
}

// Out stalls: there is nothing to send to.
func (b *RTL2832U) Out(context.Context, byte, []byte) (n int, err error) { return 0, ErrStall }

// Unplug takes the board away.
func (b *RTL2832U) Unplug() {
	if b.seat == nil {
		return
	}
	b.seat.Lock()
	defer b.seat.Unlock()
	b.unplugged = true
	b.flow()
	b.queue.fail(b.seat, ErrUnplugged)
}
