package virtual

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"ringwave/radio"
)

// Revision is a board's hardware revision.
type Revision byte

// The revisions of a HackRF One that can be emulated, by their numbers on the
// wire.
const (
	R9  Revision = 4
	R10 Revision = 5
)

// USB API versions. Firmware is told apart by these, and never by the name of a release:
// which of them 2026.01.1 to 2026.01.3 have is not known here, but that Pro boards, which
// they are the first to have, need 0x0109. Only from API2026 on does a board tell the size
// of its buffers and flush them by itself.
const (
	API2018 = 0x0102 // 2018.01.1
	API2022 = 0x0106 // 2022.09.1
	API2026 = 0x0112 // of the firmware's sources in June 2026
)

// Gains are a HackRF's gain settings.
type Gains struct {
	LNA, VGA, TXVGA radio.Decibels
	Amp             bool
}

// ampGain is that of the switched amplifier, in either direction.
const ampGain radio.Decibels = 11

// DefaultReference is what hackrf_transfer sets when it is told nothing.
var DefaultReference = Gains{LNA: 8, VGA: 20}

// HackRFConfig describes an emulated HackRF One. The zero value is an r10 with the
// firmware of 2022.
type HackRFConfig struct {
	// Serial is 32 lower-case hexadecimal digits; two boards may have the same, as
	// clones do. Empty stands for zeros.
	Serial string
	// Revision is R9 or R10; 0 stands for R10.
	Revision Revision
	// API is API2018 to API2026; 0 stands for API2022.
	API uint16
	// Reference is the setting whose gain is 0 dB, both on the way out and on the
	// way in; nil stands for DefaultReference.
	Reference *Gains
	// Of each LoseEvery samples of a stream the board loses the last LoseLength, as Lose has
	// it; 0 for none.
	LoseEvery, LoseLength radio.SampleCount
	// Stays is the amplitude, of full scale, of a carrier that a broken board goes on sending
	// once it has sent and was switched off; 0 for none.
	Stays radio.Amplitude
}

// HackRF is an emulated HackRF One, which a Bench must have before a host can talk
// to it. It is a Radio and a Queuer.
//
// It models the control requests of radio and clocks, the 32 KiB ring between
// converter and USB, the 32 KiB buffer behind it that firmware of 2026 has, their
// counters and limits, the flush of each firmware, trigger and clock input.
// The flash, the Opera Cake and what only a HackRF Pro has are refused by a stall.
//
// A board in ModeTransmit has its transmit chain on, whether samples come or not, until it
// is put into another mode: from before its ring is full, while it waits for a trigger,
// and also after its underrun limit, which ends samples only. See Carrier.
//
// Where public descriptions leave a choice, it is what asks most of a driver: a
// trigger's edge is lost on a board that is not yet armed, or has not yet filled
// its ring; and data of less than a full block of 16 KiB are never sent.
type HackRF struct {
	api           uint16
	revision      Revision
	serial        string
	words         [4]uint32
	reference     Gains
	every, length int64 // of losses that recur, in samples
	stays         float32
	requests      map[byte]request
	// ep0 has a token while a control request is under way: one at a time.
	ep0 chan struct{}

	// The rest is guarded by the seat.
	seat       *Seat
	unplugged  bool
	settings   Settings
	sweep      sweep
	registers  registers
	transcript []Request
	stream     stream
}

// Settings are what a HackRF's host has set.
type Settings struct {
	Mode      TransceiverMode
	Frequency radio.Hertz
	// Explicit says that Frequency was given by its parts.
	Explicit     bool
	Rate         radio.Hertz
	Filter       radio.Hertz
	Gains        Gains
	BiasTee      bool
	ClockOut     bool
	HardwareSync bool
	// The limits in bytes, 0 for none.
	UnderrunLimit, OverrunLimit uint32
	// HostFlush says that the host has promised to flush by itself.
	HostFlush bool
}

// TransceiverMode is what request 1 sets.
type TransceiverMode byte

// The modes that are emulated.
const (
	ModeOff      TransceiverMode = 0
	ModeReceive  TransceiverMode = 1
	ModeTransmit TransceiverMode = 2
	ModeSweep    TransceiverMode = 5 // receives, at one frequency after the other
)

// Request is a control request as a board saw it.
type Request struct {
	Setup Setup
	// Data is what came with it, or what it was answered.
	Data []byte
	Err  error
}

// String returns direction, number, value, index and data in hexadecimal.
func (r Request) String() string {
	way := "out"
	if comesIn(r.Setup) {
		way = "in "
	}
	s := fmt.Sprintf("%s %2d value %04x index %04x length %d data %s", way, r.Setup.Request, r.Setup.Value, r.Setup.Index, r.Setup.Length, hex.EncodeToString(r.Data))
	if r.Err != nil {
		s += " (" + r.Err.Error() + ")"
	}
	return s
}

func comesIn(s Setup) bool { return s.RequestType&0x80 != 0 }

// NewHackRF makes a board as it is after power-up.
func NewHackRF(cfg HackRFConfig) (*HackRF, error) {
	h := &HackRF{api: cfg.API, revision: cfg.Revision, serial: cfg.Serial, reference: DefaultReference, requests: requests(), ep0: make(chan struct{}, 1)}
	if h.api == 0 {
		h.api = API2022
	}
	if h.revision == 0 {
		h.revision = R10
	}
	if h.serial == "" {
		h.serial = "00000000000000000000000000000000"
	}
	if cfg.Reference != nil {
		h.reference = *cfg.Reference
	}
	h.every, h.length, h.stays = int64(cfg.LoseEvery), int64(cfg.LoseLength), float32(cfg.Stays)
	if h.every < 0 || h.length < 0 || h.length > h.every || h.every > 0 && h.length == 0 {
		return nil, fmt.Errorf("virtual HackRF: it loses %d of %d samples; allowed is 0 of 0, or 1 or more and at most all", h.length, h.every)
	}
	if h.api < API2018 || h.api > API2026 {
		return nil, fmt.Errorf("virtual HackRF: its USB API is 0x%04x; allowed is 0x%04x to 0x%04x", h.api, API2018, API2026)
	}
	if h.revision != R9 && h.revision != R10 {
		return nil, fmt.Errorf("virtual HackRF: its revision is number %d; allowed is %d (r9) or %d (r10)", h.revision, R9, R10)
	}
	words, err := hex.DecodeString(h.serial)
	if err != nil || len(words) != 16 || !bytes.Equal(bytes.ToLower([]byte(h.serial)), []byte(h.serial)) {
		return nil, fmt.Errorf("virtual HackRF: its serial number is %q; allowed is 32 lower-case hexadecimal digits", h.serial)
	}
	for i := range h.words {
		h.words[i] = binary.BigEndian.Uint32(words[4*i:])
	}
	h.powerUp()
	return h, nil
}

// powerUp sets what the firmware starts with.
func (h *HackRF) powerUp() {
	h.sweep = sweep{}
	h.settings = Settings{Frequency: 2450e6, Rate: 10e6, Filter: 1.75e6}
	h.registers = newRegisters()
	h.stream.reset(h)
}

// Descriptors returns those of a HackRF One at high speed.
func (h *HackRF) Descriptors() Descriptors {
	release := binary.LittleEndian.AppendUint16(nil, h.api)
	return Descriptors{
		Device: []byte{
			18, typeDevice, 0x00, 0x02, // USB 2.0
			0, 0, 0, 64, // class by interface; packets of 64 bytes at endpoint 0
			0x50, 0x1d, 0x89, 0x60, release[0], release[1],
			1, 2, 4, 1, // strings; one configuration
		},
		Configuration: []byte{
			9, typeConfiguration, 32, 0, 1, 1, 3, 0x80, 250, // bus powered, 500 mA
			9, 4, 0, 0, 2, 0xff, 0xff, 0xff, 0,
			7, 5, bulkIn, 2, 0x00, 0x02, 0,
			7, 5, bulkOut, 2, 0x00, 0x02, 0,
		},
		Strings: []string{"", "Great Scott Gadgets", "HackRF One", "Transceiver", h.serial},
	}
}

// Join gives the board its seat.
func (h *HackRF) Join(s *Seat) { h.seat = s }

// Serial returns the serial number.
func (h *HackRF) Serial() string { return h.serial }

// Settings returns what is set now.
func (h *HackRF) Settings() Settings {
	h.seat.Lock()
	defer h.seat.Unlock()
	return h.settings
}

// Carrier reports whether the transmit chain is on: the oscillator leaks to the antenna then,
// with samples and without.
func (h *HackRF) Carrier() bool {
	h.seat.Lock()
	defer h.seat.Unlock()
	return h.carrier()
}

func (h *HackRF) carrier() bool { return h.settings.Mode == ModeTransmit && !h.unplugged }

// stayed reports whether a board is off that goes on sending.
func (h *HackRF) stayed() bool {
	return h.stays > 0 && h.stream.hasSent && h.settings.Mode == ModeOff && !h.unplugged
}

// Transcript returns the control requests so far, refused ones too.
func (h *HackRF) Transcript() []Request {
	h.seat.Lock()
	defer h.seat.Unlock()
	return append([]Request(nil), h.transcript...)
}

// ClearTranscript forgets the control requests so far.
func (h *HackRF) ClearTranscript() {
	h.seat.Lock()
	defer h.seat.Unlock()
	h.transcript = nil
}

// Activity reports whether samples go.
func (h *HackRF) Activity() Activity {
	a := Activity{Stream: h.stream.number, Tuning: h.registers.tuning, Rate: h.settings.Rate, Frequency: h.settings.Frequency, Carrier: h.carrier()}
	if h.stayed() {
		a.Mode, a.Room, a.Carrier, a.Stays = Transmitting, block, true, true
		return a
	}
	if !h.stream.flows() {
		return a
	}
	g, ref := h.settings.Gains, h.reference
	if g.Amp {
		a.Gain += ampGain
	}
	if ref.Amp {
		a.Gain -= ampGain
	}
	if h.settings.Mode != ModeTransmit {
		a.Mode = Receiving
		a.Gain += g.LNA - ref.LNA + g.VGA - ref.VGA
		a.Room = h.stream.receiveRoom()
		return a
	}
	a.Mode = Transmitting
	a.Gain += g.TXVGA - ref.TXVGA
	a.Room = h.stream.transmitRoom()
	return a
}

// Unplug takes the board away.
func (h *HackRF) Unplug() {
	if h.seat == nil {
		return
	}
	h.seat.Lock()
	defer h.seat.Unlock()
	h.unplugged = true
	h.stream.halt(ErrUnplugged)
}

// In waits for a bulk transfer to the host.
func (h *HackRF) In(ctx context.Context, endpoint byte, dst []byte) (int, error) {
	return transferNow(ctx, h, endpoint, dst)
}

// Out waits for a bulk transfer from the host.
func (h *HackRF) Out(ctx context.Context, endpoint byte, src []byte) (int, error) {
	return transferNow(ctx, h, endpoint, src)
}
