package virtual

import (
	"context"
	"encoding/binary"

	"ringwave/radio"
)

// The vendor requests that are emulated.
const (
	setTransceiverMode   = 1
	max283xWrite         = 2
	max283xRead          = 3
	si5351cWrite         = 4
	si5351cRead          = 5
	sampleRateSet        = 6
	filterBandwidthSet   = 7
	rffc5071Write        = 8
	rffc5071Read         = 9
	boardIDRead          = 14
	versionStringRead    = 15
	setFrequency         = 16
	ampEnable            = 17
	partSerialRead       = 18
	setLNAGain           = 19
	setVGAGain           = 20
	setTXVGAGain         = 21
	antennaEnable        = 23
	setFrequencyExplicit = 24
	initSweep            = 26
	operaCakeGetBoards   = 27
	setHardwareSync      = 29
	resetBoard           = 30
	clkoutEnable         = 32
	flashStatus          = 33
	uiEnable             = 37
	getM0State           = 41
	setUnderrunLimit     = 42
	setOverrunLimit      = 43
	getClkinStatus       = 44
	boardRevisionRead    = 45
	platformRead         = 46
	setLEDs              = 47
	setBiasTeeOptions    = 48
	getBufferSize        = 61
)

// request says how the firmware does a vendor request.
type request struct {
	in    bool
	since uint16 // USB API
	// length is that of the data of a request out, to the byte; anyLength for one that
	// looks at it by itself.
	length int
	do     func(h *HackRF, s Setup, data []byte) (answer []byte, err error)
}

const anyLength = -1

func requestIn(since uint16, do func(h *HackRF, s Setup) ([]byte, error)) request {
	return request{in: true, since: since, do: func(h *HackRF, s Setup, _ []byte) ([]byte, error) { return do(h, s) }}
}

// requestFor answers the same whatever value and index are.
func requestFor(since uint16, answer func(h *HackRF) []byte) request {
	return requestIn(since, func(h *HackRF, _ Setup) ([]byte, error) { return answer(h), nil })
}

func requestOut(since uint16, length int, do func(h *HackRF, s Setup, data []byte) error) request {
	return request{since: since, length: length, do: func(h *HackRF, s Setup, data []byte) ([]byte, error) {
		return nil, do(h, s, data)
	}}
}

// requests returns them by number, but for the mode, which may wait.
func requests() map[byte]request {
	return map[byte]request{
		max283xWrite:         requestOut(0, 0, (*HackRF).writeMAX283x),
		max283xRead:          requestIn(0, (*HackRF).readMAX283x),
		si5351cWrite:         requestOut(0, 0, (*HackRF).writeSi5351C),
		si5351cRead:          requestIn(0, (*HackRF).readSi5351C),
		sampleRateSet:        requestOut(0, 8, (*HackRF).setRate),
		filterBandwidthSet:   requestOut(0, 0, (*HackRF).setFilter),
		rffc5071Write:        requestOut(0, 0, (*HackRF).writeRFFC5071),
		rffc5071Read:         requestIn(0, (*HackRF).readRFFC5071),
		boardIDRead:          requestFor(0, (*HackRF).boardID),
		versionStringRead:    requestFor(0, (*HackRF).version),
		setFrequency:         requestOut(0, 8, (*HackRF).setFrequency),
		ampEnable:            requestOut(0, 0, (*HackRF).setAmp),
		partSerialRead:       requestFor(0, (*HackRF).partAndSerial),
		setLNAGain:           requestIn(0, (*HackRF).setGain),
		setVGAGain:           requestIn(0, (*HackRF).setGain),
		setTXVGAGain:         requestIn(0, (*HackRF).setGain),
		antennaEnable:        requestOut(0, 0, (*HackRF).setBiasTee),
		setFrequencyExplicit: requestOut(0, 24, (*HackRF).setFrequencyExplicit),
		initSweep:            requestOut(0x0102, anyLength, (*HackRF).initSweep),
		operaCakeGetBoards:   requestFor(0x0105, (*HackRF).noOperaCake),
		setHardwareSync:      requestOut(0x0102, 0, (*HackRF).setSync),
		resetBoard:           requestOut(0x0102, 0, (*HackRF).reset),
		clkoutEnable:         requestOut(0x0103, 0, (*HackRF).setClockOut),
		flashStatus:          requestFor(0x0103, func(*HackRF) []byte { return []byte{0, 0} }),
		uiEnable:             requestOut(0x0104, 0, (*HackRF).ignore),
		getM0State:           requestFor(0x0106, func(h *HackRF) []byte { return h.stream.m0.encode() }),
		setUnderrunLimit:     requestOut(0x0106, 0, (*HackRF).setLimit),
		setOverrunLimit:      requestOut(0x0106, 0, (*HackRF).setLimit),
		getClkinStatus:       requestFor(0x0106, (*HackRF).clkin),
		boardRevisionRead:    requestFor(0x0106, (*HackRF).boardRevision),
		platformRead:         requestFor(0x0106, (*HackRF).platform),
		setLEDs:              requestOut(0x0107, 0, (*HackRF).ignore),
		setBiasTeeOptions:    requestOut(0x0108, 0, (*HackRF).ignore),
		getBufferSize:        requestFor(0x0112, (*HackRF).bufferSize),
	}
}

const (
	vendorOut byte = 0x40
	vendorIn  byte = 0xc0
	// madeByGSG marks the revision of a board made by Great Scott Gadgets.
	madeByGSG = 0x80
)

// Control does a vendor request. Only leaving transmission may make it wait.
func (h *HackRF) Control(ctx context.Context, s Setup, data []byte) (n int, err error) {
	if h.seat == nil {
		return 0, ErrUnplugged
	}
	if s.RequestType&typeBits == 0 {
		return h.standard(s, data)
	}
	select {
	case h.ep0 <- struct{}{}:
		defer func() { <-h.ep0 }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	h.seat.Lock()
	defer h.seat.Unlock()
	if h.unplugged {
		return 0, ErrUnplugged
	}
	answer, err := h.answer(ctx, s, data)
	n = len(data)
	told := data
	if comesIn(s) {
		n = copy(data, answer)
		told = data[:n]
	}
	if err != nil {
		n = 0
	}
	h.transcript = append(h.transcript, Request{Setup: s, Data: append([]byte(nil), told...), Err: err})
	return n, err
}

// standard answers at once, so that a host learns whether the board is there.
func (h *HackRF) standard(s Setup, data []byte) (int, error) {
	h.seat.Lock()
	defer h.seat.Unlock()
	if h.unplugged {
		return 0, ErrUnplugged
	}
	return Standard(h.Descriptors(), s, data)
}

// answer does a request and gives what it is answered.
func (h *HackRF) answer(ctx context.Context, s Setup, data []byte) ([]byte, error) {
	if s.Request == setTransceiverMode && s.RequestType == vendorOut && len(data) == 0 {
		return nil, h.setMode(ctx, s)
	}
	r, ok := h.requests[s.Request]
	if !ok || h.api < r.since {
		return nil, ErrStall
	}
	if r.in && s.RequestType != vendorIn || !r.in && s.RequestType != vendorOut {
		return nil, ErrStall
	}
	if !r.in && r.length != anyLength && len(data) != r.length {
		return nil, ErrStall
	}
	return r.do(h, s, data)
}

// setMode changes between off, receiving, transmitting and sweeping. With a firmware that
// flushes by itself, leaving transmission waits until all has been sent.
func (h *HackRF) setMode(ctx context.Context, s Setup) error {
	mode := TransceiverMode(s.Value)
	sweeps := h.api >= apiSweep && len(h.sweep.ranges) > 0
	if s.Value > uint16(ModeTransmit) && !(s.Value == uint16(ModeSweep) && sweeps) {
		return ErrStall
	}
	if h.settings.Mode == ModeTransmit && h.api >= API2026 && !h.settings.HostFlush {
		h.stream.draining = true
		err := h.seat.Wait(ctx, func() bool { return h.unplugged || !h.stream.flows() || h.stream.dry() })
		h.stream.draining = false
		if err != nil {
			return err
		}
		if h.unplugged {
			return ErrUnplugged
		}
	}
	h.settings.Mode = mode
	if mode == ModeOff {
		h.settings.BiasTee = false
	}
	h.stream.start(mode)
	return nil
}

func (h *HackRF) setRate(_ Setup, data []byte) error {
	hz, divider := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
	if hz == 0 || divider == 0 {
		return ErrStall
	}
	// What the processor's own limits make of it.
	h.settings.Rate = min(max(radio.Hertz(hz)/radio.Hertz(divider), 0.2e6), 21.8e6)
	return nil
}

func (h *HackRF) setFilter(s Setup, _ []byte) error {
	h.settings.Filter = radio.Hertz(uint32(s.Index)<<16 | uint32(s.Value))
	return nil
}

// maxFrequency is what the firmware takes, beyond what is supported.
const maxFrequency radio.Hertz = 7250e6

func (h *HackRF) setFrequency(_ Setup, data []byte) error {
	mhz, hz := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
	f := radio.Hertz(mhz)*1e6 + radio.Hertz(hz)
	if hz >= 1e6 || f > maxFrequency {
		return ErrStall
	}
	h.tune(f, false)
	return nil
}

func (h *HackRF) setFrequencyExplicit(_ Setup, data []byte) error {
	mid := radio.Hertz(binary.LittleEndian.Uint64(data))
	lo := radio.Hertz(binary.LittleEndian.Uint64(data[8:]))
	const bypass, lowPass, highPass = 0, 1, 2
	path := data[16]
	if mid < 2000e6 || mid > 3000e6 || path > highPass || path != bypass && (lo < 84.375e6 || lo > 5400e6) {
		return ErrStall
	}
	switch path {
	case bypass:
		h.tune(mid, true)
	case lowPass:
		h.tune(mid-lo, true)
	case highPass:
		h.tune(mid+lo, true)
	}
	return nil
}

func (h *HackRF) tune(f radio.Hertz, explicit bool) {
	h.settings.Frequency, h.settings.Explicit = f, explicit
	h.registers.tuning++
}

func (h *HackRF) setAmp(s Setup, _ []byte) error {
	return h.toggle(s, &h.settings.Gains.Amp)
}

func (h *HackRF) setBiasTee(s Setup, _ []byte) error { return h.toggle(s, &h.settings.BiasTee) }
func (h *HackRF) setSync(s Setup, _ []byte) error    { return h.toggle(s, &h.settings.HardwareSync) }
func (h *HackRF) setClockOut(s Setup, _ []byte) error {
	return h.toggle(s, &h.settings.ClockOut)
}

func (h *HackRF) toggle(s Setup, to *bool) error {
	if s.Value > 1 {
		return ErrStall
	}
	*to = s.Value == 1
	return nil
}

// setGain sets one of the three gains. Firmware before 2026 answers 0 to what is
// off the grid; that of 2026 rounds down and answers 1 to anything.
func (h *HackRF) setGain(s Setup) ([]byte, error) {
	g := &h.settings.Gains
	to, most, step := &g.LNA, 40, 8
	switch s.Request {
	case setVGAGain:
		to, most, step = &g.VGA, 62, 2
	case setTXVGAGain:
		to, most, step = &g.TXVGA, 47, 1
	}
	value := int(s.Index)
	if h.api < API2026 && (value > most || value%step != 0) {
		return []byte{0}, nil
	}
	value = min(value, most)
	*to = radio.Decibels(value - value%step)
	return []byte{1}, nil
}

func (h *HackRF) setLimit(s Setup, _ []byte) error {
	limit := uint32(s.Index)<<16 | uint32(s.Value)
	if s.Request == setOverrunLimit {
		h.settings.OverrunLimit = limit
	} else {
		h.settings.UnderrunLimit = limit
	}
	return nil
}

// reset does what a reset of the board does, but for leaving the bus.
func (h *HackRF) reset(Setup, []byte) error {
	h.settings.Mode = ModeOff
	h.stream.start(ModeOff)
	h.powerUp()
	return nil
}

func (h *HackRF) ignore(Setup, []byte) error { return nil }

// noOperaCake returns the free addresses.
func (h *HackRF) noOperaCake() []byte { return []byte{255, 255, 255, 255, 255, 255, 255, 255} }

func (h *HackRF) boardRevision() []byte { return []byte{byte(h.revision) | madeByGSG} }

// platform returns the boards that the firmware's image is for, big-endian: HackRF
// One of all revisions.
func (h *HackRF) platform() []byte { return []byte{0, 0, 0, 1<<1 | 1<<3} }

// boardID returns 2 for a HackRF One and 4 for its r9; r10 went back to the parts of
// the earlier ones.
func (h *HackRF) boardID() []byte {
	if h.revision == R9 {
		return []byte{4}
	}
	return []byte{2}
}

func (h *HackRF) version() []byte {
	switch h.api {
	case API2018:
		return []byte("2018.01.1")
	case API2022:
		return []byte("2022.09.1")
	}
	return []byte("git") // no release is known to have it
}

func (h *HackRF) partAndSerial() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa000cb3c)
	b = binary.LittleEndian.AppendUint32(b, 0x00000000)
	for _, w := range h.words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func (h *HackRF) clkin() []byte {
	if h.seat.Reference() {
		return []byte{1}
	}
	return []byte{0}
}

// bufferSize tells the host what it must flush, and leaves that to it.
func (h *HackRF) bufferSize() []byte {
	h.settings.HostFlush = true
	return binary.LittleEndian.AppendUint32(nil, uint32(h.stream.capacity()))
}

// registers are those of the chips, and what counts retunes.
type registers struct {
	max283x  [32]uint16
	rffc5071 [31]uint16
	si5351c  [256]byte
	tuning   uint64
}

// newRegisters sets what programs show that read the clock generator: outputs
// powered, of 10 MHz at CLKOUT.
func newRegisters() registers {
	var r registers
	for k := range 8 {
		r.si5351c[16+k] = 0x4f
	}
	return r
}

func (h *HackRF) writeMAX283x(s Setup, _ []byte) error {
	if int(s.Index) >= len(h.registers.max283x) || s.Value >= 0x400 {
		return ErrStall
	}
	h.registers.max283x[s.Index] = s.Value
	return nil
}

func (h *HackRF) readMAX283x(s Setup) ([]byte, error) {
	if int(s.Index) >= len(h.registers.max283x) {
		return nil, ErrStall
	}
	return binary.LittleEndian.AppendUint16(nil, h.registers.max283x[s.Index]), nil
}

func (h *HackRF) writeRFFC5071(s Setup, _ []byte) error {
	if int(s.Index) >= len(h.registers.rffc5071) {
		return ErrStall
	}
	h.registers.rffc5071[s.Index] = s.Value
	return nil
}

func (h *HackRF) readRFFC5071(s Setup) ([]byte, error) {
	if int(s.Index) >= len(h.registers.rffc5071) {
		return nil, ErrStall
	}
	return binary.LittleEndian.AppendUint16(nil, h.registers.rffc5071[s.Index]), nil
}

func (h *HackRF) writeSi5351C(s Setup, _ []byte) error {
	if int(s.Index) >= len(h.registers.si5351c) || s.Value > 0xff {
		return ErrStall
	}
	h.registers.si5351c[s.Index] = byte(s.Value)
	return nil
}

func (h *HackRF) readSi5351C(s Setup) ([]byte, error) {
	if int(s.Index) >= len(h.registers.si5351c) {
		return nil, ErrStall
	}
	return []byte{h.registers.si5351c[s.Index]}, nil
}
