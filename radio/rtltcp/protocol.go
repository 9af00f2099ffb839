package rtltcp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// command is what the server is told to do; its parameter has 32 bits.
type command byte

const (
	setFrequency command = 0x01 // Hz
	setRate      command = 0x02 // Hz
	setGainMode  command = 0x03 // 1 by hand, 0 automatic
	setGain      command = 0x04 // tenths of dB
	setPPM       command = 0x05
	setTest      command = 0x07 // 1 for a counter in place of samples
	setAGC       command = 0x08 // 1 for digital gain control
	setBiasTee   command = 0x0e // 1 for power on the antenna's cable
)

// message returns the 5 bytes of a command.
func message(c command, parameter uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(c)}, parameter)
}

// headerLength is that of what the server says first, in bytes.
const headerLength = 12

// tuner is what the server calls the board's tuner.
type tuner uint32

const (
	r820t tuner = 5
	r828d tuner = 6
)

// String returns the name that users know.
func (t tuner) String() string {
	names := [...]string{"unknown", "E4000", "FC0012", "FC0013", "FC2580", "R820T/R820T2", "R828D"}
	if int64(t) < int64(len(names)) {
		return names[t]
	}
	return names[0]
}

// errNotServer: what was connected to does not talk like rtl_tcp.
var errNotServer = errors.New("this is no rtl_tcp server")

// parseHeader reads what the server says first: "RTL0", the tuner and the number of
// its gains.
func parseHeader(h [headerLength]byte) (tuner, error) {
	if string(h[:4]) != "RTL0" {
		return 0, fmt.Errorf("%w: it begins with %q; allowed is \"RTL0\"", errNotServer, h[:4])
	}
	t := tuner(binary.BigEndian.Uint32(h[4:]))
	if t != r820t && t != r828d {
		return 0, fmt.Errorf("the server's board has tuner %d (%v); allowed are R820T, R820T2 and R828D", uint32(t), t)
	}
	return t, nil
}
