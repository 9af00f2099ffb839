package hackrf

import (
	"encoding/binary"
	"fmt"
	"math"

	"ringwave/radio"
	"ringwave/radio/usb"
)

// The USB identities of boards.
const (
	vendor       = 0x1d50
	productOne   = 0x6089 // and Pro
	productJaw   = 0x604b
	productRad1o = 0xcc15
)

// IsBoard reports whether an identity is that of a board of this package.
func IsBoard(i usb.Identity) bool {
	return i.Vendor == vendor && (i.Product == productOne || i.Product == productJaw || i.Product == productRad1o)
}

// The bulk endpoints.
const (
	endpointIn  = 0x81
	endpointOut = 0x02
)

// API is a version of the USB interface of the firmware, as bcdDevice has it.
type API uint16

// String returns four hexadecimal digits, as 0106.
func (a API) String() string { return fmt.Sprintf("%04x", uint16(a)) }

// What API versions brought.
const (
	apiTrigger    API = 0x0102
	apiClockOut   API = 0x0103
	apiM0         API = 0x0106 // counters, limits, clock input, revision
	apiBufferSize API = 0x0112
)

// request is a vendor request.
type request struct {
	number uint8
	in     bool
	since  API
	name   string
}

// The vendor requests that the driver makes. Those that write registers, flash or
// logic are left out on purpose.
var (
	setMode        = request{1, false, 0, "the mode"}
	setRate        = request{6, false, 0, "the sample rate"}
	setFilter      = request{7, false, 0, "the baseband filter"}
	boardID        = request{14, true, 0, "the board's kind"}
	versionString  = request{15, true, 0, "the firmware's version"}
	setFrequency   = request{16, false, 0, "the frequency"}
	setAmp         = request{17, false, 0, "the amplifier"}
	setLNA         = request{19, true, 0, "the gain lna"}
	setVGA         = request{20, true, 0, "the gain vga"}
	setTXVGA       = request{21, true, 0, "the gain txvga"}
	setBias        = request{23, false, 0, "the antenna's power"}
	setExplicit    = request{24, false, 0, "the explicit frequency"}
	setTrigger     = request{29, false, apiTrigger, "the trigger"}
	setClockOut    = request{32, false, apiClockOut, "the clock output"}
	getM0          = request{41, true, apiM0, "the sample counters"}
	setUnderrun    = request{42, false, apiM0, "the underrun limit"}
	setOverrun     = request{43, false, apiM0, "the overrun limit"}
	getClockInput  = request{44, true, apiM0, "the clock input"}
	boardRevision  = request{45, true, apiM0, "the board's revision"}
	getBufferBytes = request{61, true, apiBufferSize, "the size of the board's buffers"}
)

// The modes of the board.
const (
	modeOff      = 0
	modeReceive  = 1
	modeTransmit = 2
)

// flushBytes is what pushes samples through the buffers of firmware that cannot
// tell their size.
const flushBytes = 32768

// maxFlushBytes bounds what firmware may say: 16 times today's.
const maxFlushBytes = 1 << 20

// wide splits a number of 32 bits into wValue and wIndex.
func wide(v uint32) (value, index uint16) { return uint16(v), uint16(v >> 16) }

// Ranges and grids of settings.
var (
	frequencies = radio.Span[radio.Hertz]{Min: 1e6, Max: 6e9, Step: 1}
	rates       = radio.Span[radio.Hertz]{Min: 2e6, Max: 20e6}
	// intermediate and oscillator are for explicit tuning.
	intermediate = radio.Span[radio.Hertz]{Min: 2e9, Max: 3e9, Step: 1}
	oscillator   = radio.Span[radio.Hertz]{Min: 84.375e6, Max: 5.4e9, Step: 1}

	spanAmp   = radio.Span[radio.Decibels]{Max: 11, Step: 11}
	spanLNA   = radio.Span[radio.Decibels]{Max: 40, Step: 8}
	spanVGA   = radio.Span[radio.Decibels]{Max: 62, Step: 2}
	spanTXVGA = radio.Span[radio.Decibels]{Max: 47, Step: 1}
)

// filters are the bandwidths of the baseband filter, ascending, in hertz.
var filters = [...]uint32{1750000, 2500000, 3500000, 5000000, 5500000, 6000000, 7000000, 8000000, 9000000,
	10000000, 12000000, 14000000, 15000000, 20000000, 24000000, 28000000}

// filterUpTo returns the widest filter of at most bandwidth, the narrowest if none
// is.
func filterUpTo(bandwidth radio.Hertz) uint32 {
	chosen := filters[0]
	for _, f := range filters {
		if radio.Hertz(f) <= bandwidth {
			chosen = f
		}
	}
	return chosen
}

// filterFor returns the filter that goes with a sample rate: three quarters of it.
func filterFor(rate radio.Hertz) uint32 { return filterUpTo(0.75 * rate) }

// maxDivider bounds the divider of a sample rate.
const maxDivider = 31

// fraction returns a rate as frequency/divider with the smallest divider that makes
// the frequency whole, to a millihertz; if there is none the nearest whole rate.
func fraction(rate radio.Hertz) (frequency, divider uint32) {
	for d := uint32(1); d <= maxDivider; d++ {
		f := float64(rate) * float64(d)
		if math.Abs(f-math.Round(f)) < 1e-3 {
			return uint32(math.Round(f)), d
		}
	}
	return uint32(math.Round(float64(rate))), 1
}

func encodeRate(frequency, divider uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, frequency)
	return binary.LittleEndian.AppendUint32(b, divider)
}

// encodeFrequency returns megahertz and the hertz that are left.
func encodeFrequency(f radio.Hertz) []byte {
	hz := uint64(f)
	b := binary.LittleEndian.AppendUint32(nil, uint32(hz/1e6))
	return binary.LittleEndian.AppendUint32(b, uint32(hz%1e6))
}

// explicitBytes is the length of a C structure: 17 bytes and what pads it.
const explicitBytes = 24

func encodeExplicit(e Explicit) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, explicitBytes), uint64(e.IF))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.LO))
	return append(b, byte(e.Path))[:explicitBytes]
}

// m0State is what the board's sample processor counts. Bytes wrap at 2^32, and
// stand still during a shortfall.
type m0State struct {
	activeMode       uint32
	bytes            uint32 // to or from the radio since the mode began
	shortfalls       uint32
	longestShortfall uint32 // in bytes
	err              uint32
}

// The active modes and errors of m0State that matter.
const (
	m0Receiving    = 2
	m0Transmitting = 4

	m0RXTimeout = 1
	m0TXTimeout = 2
)

const m0Bytes = 40

func decodeM0(b []byte) (m0State, error) {
	if len(b) != m0Bytes {
		return m0State{}, fmt.Errorf("the sample counters have %d bytes; allowed is %d", len(b), m0Bytes)
	}
	le := binary.LittleEndian
	return m0State{
		activeMode: le.Uint32(b[4:]), bytes: le.Uint32(b[8:]),
		shortfalls: le.Uint32(b[16:]), longestShortfall: le.Uint32(b[20:]), err: le.Uint32(b[36:]),
	}, nil
}

// boardPro is the number that a HackRF Pro gives.
const boardPro = 5

// models by the number that the board gives.
func model(product uint16, id byte) string {
	switch id {
	case 0:
		return "Jellybean"
	case 1:
		return "HackRF Jawbreaker"
	case 2, 4:
		return "HackRF One"
	case 3:
		return "rad1o"
	case boardPro:
		return "HackRF Pro"
	}
	switch product {
	case productJaw:
		return "HackRF Jawbreaker"
	case productRad1o:
		return "rad1o"
	}
	return "HackRF (unrecognised)"
}

// hasBias reports whether the board can power an antenna.
func hasBias(product uint16) bool { return product == productOne }

// revision returns the board's revision in words, empty if not known.
func revision(r byte) string {
	names := [...]string{"older than r6", "r6", "r7", "r8", "r9", "r10",
		"Pro r0.1", "Pro r0.2", "Pro r0.3", "Pro r1.0", "Pro r1.1", "Pro r1.2"}
	const official = 0x80
	n := r &^ official
	if r >= 0xfe || int(n) >= len(names) {
		return ""
	}
	return names[n]
}
