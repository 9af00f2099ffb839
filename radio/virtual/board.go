package virtual

import (
	"context"
	"encoding/binary"
	"unicode/utf16"

	"ringwave/radio/usb"
)

// The errors of a Board, told apart by errors.Is. They are what a wire can say.
var (
	// ErrStall: the board refuses the request, or the endpoint is halted.
	ErrStall = usb.ErrStall
	// ErrUnplugged: the board is no longer there.
	ErrUnplugged = usb.ErrUnplugged
)

// Setup is the head of a control request, Length included.
type Setup = usb.Setup

// ParseSetup reads the 8 setup bytes as they are on the wire.
func ParseSetup(b [8]byte) Setup {
	return Setup{
		RequestType: b[0],
		Request:     b[1],
		Value:       binary.LittleEndian.Uint16(b[2:]),
		Index:       binary.LittleEndian.Uint16(b[4:]),
		Length:      binary.LittleEndian.Uint16(b[6:]),
	}
}

// Descriptors are what a board says of itself to a host that enumerates it.
type Descriptors struct {
	Device        []byte // the device descriptor, 18 bytes
	Configuration []byte // the configuration descriptor with all that follows it
	// Strings are by index; there is none at index 0, which is for languages, and
	// "" stands for an index without a string.
	Strings []string
}

// String returns the string at an index of the device descriptor, "" if there is
// none.
func (d Descriptors) String(index byte) string {
	if index == 0 || int(index) >= len(d.Strings) {
		return ""
	}
	return d.Strings[index]
}

// Vendor, Product and Release give idVendor, idProduct and bcdDevice.
func (d Descriptors) Vendor() uint16  { return binary.LittleEndian.Uint16(d.Device[8:]) }
func (d Descriptors) Product() uint16 { return binary.LittleEndian.Uint16(d.Device[10:]) }
func (d Descriptors) Release() uint16 { return binary.LittleEndian.Uint16(d.Device[12:]) }

// Serial returns the serial number, "" if there is none.
func (d Descriptors) Serial() string { return d.String(d.Device[16]) }

// Board is an emulated board as its USB plug shows it. It is safe for use by
// several goroutines; transfers to one endpoint come one at a time, in the order
// in which the host queued them.
//
// Errors are ErrStall, ErrUnplugged or ctx's.
type Board interface {
	Descriptors() Descriptors
	// Control does a vendor or class request; front ends answer the standard ones
	// by Standard. data is s.Length long: read if s goes out, filled if it comes
	// in. n is what was read or filled. It may wait, as a board that delays a
	// request does.
	Control(ctx context.Context, s Setup, data []byte) (n int, err error)
	// In is a bulk IN transfer from an endpoint address (0x81, say). It waits until
	// dst is full, as a board does that sends no short packets; n is less only with
	// an error or after a short packet. A transfer given up by ctx has taken
	// nothing that is not in dst[:n].
	In(ctx context.Context, endpoint byte, dst []byte) (n int, err error)
	// Out is a bulk OUT transfer to an endpoint address (0x02, say). It waits until
	// the board has taken all of src; with an error it took n bytes.
	Out(ctx context.Context, endpoint byte, src []byte) (n int, err error)
	// Unplug takes the board away: all that waits and all that comes fails with
	// ErrUnplugged. A second Unplug does nothing.
	Unplug()
}

// Queuer is a Board that lets its host queue transfers ahead, as USB does: what
// is queued then goes on without a gap however late the host's goroutines run.
type Queuer interface {
	Board
	// Queue queues a bulk transfer of data behind the others of its endpoint; by
	// the endpoint's address it is filled or sent. done is called once, transfers
	// of an endpoint in their order, from any goroutine, with no lock held, and
	// possibly before Queue returns; it must not wait.
	//
	// cancel gives up a transfer that has not ended: done is then called with what
	// has gone and context.Canceled. It does not wait for done.
	Queue(endpoint byte, data []byte, done func(n int, err error)) (cancel func())
}

// The standard requests that Standard answers.
const (
	typeBits         = 0x60 // of a request's type; 0 is standard
	standardIn       = 0x80
	standardOut      = 0x00
	interfaceIn      = 0x81
	interfaceOut     = 0x01
	endpointOut      = 0x02
	getStatus        = 0
	clearFeature     = 1
	setAddress       = 5
	getDescriptor    = 6
	getConfiguration = 8
	setConfiguration = 9
	getInterface     = 10
	setInterface     = 11

	typeDevice        = 1
	typeConfiguration = 2
	typeString        = 3
	typeQualifier     = 6

	americanEnglish = 0x0409
)

// Standard answers a standard request (type bits 0) for a board, as front ends do
// whose host enumerates by itself; it fails with ErrStall for what no board here
// knows. It keeps no state: each board has one configuration, which is set.
func Standard(d Descriptors, s Setup, data []byte) (n int, err error) {
	switch {
	case s.RequestType == standardIn && s.Request == getDescriptor:
		answer, err := d.descriptor(byte(s.Value>>8), byte(s.Value))
		return copy(data, answer), err
	case s.RequestType == standardIn && s.Request == getConfiguration:
		return copy(data, []byte{d.Configuration[5]}), nil
	case s.RequestType == standardIn && s.Request == getStatus, s.RequestType == interfaceIn && s.Request == getStatus:
		return copy(data, []byte{0, 0}), nil
	case s.RequestType == interfaceIn && s.Request == getInterface:
		return copy(data, []byte{0}), nil
	case s.RequestType == standardOut && s.Request == setConfiguration && byte(s.Value) == d.Configuration[5],
		s.RequestType == standardOut && s.Request == setAddress,
		s.RequestType == interfaceOut && s.Request == setInterface && s.Value == 0,
		s.RequestType == endpointOut && s.Request == clearFeature:
		return 0, nil
	}
	return 0, ErrStall
}

func (d Descriptors) descriptor(kind, index byte) ([]byte, error) {
	switch {
	case kind == typeDevice:
		return d.Device, nil
	case kind == typeConfiguration && index == 0:
		return d.Configuration, nil
	case kind == typeQualifier:
		// The same device at the other speed: the fields from bcdUSB to
		// bMaxPacketSize0, then the number of configurations.
		q := append([]byte{10, typeQualifier}, d.Device[2:8]...)
		return append(q, d.Device[17], 0), nil
	case kind == typeString && index == 0:
		return []byte{4, typeString, americanEnglish & 0xff, americanEnglish >> 8}, nil
	case kind == typeString && d.String(index) != "":
		return stringDescriptor(d.String(index)), nil
	}
	return nil, ErrStall
}

func stringDescriptor(s string) []byte {
	b := []byte{0, typeString}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	b[0] = byte(len(b))
	return b
}
