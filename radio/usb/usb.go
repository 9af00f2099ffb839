package usb

import (
	"context"
	"fmt"
	"time"
)

// Identity is what the device descriptor says a board is.
type Identity struct {
	Vendor, Product uint16
	// Release is bcdDevice, as HackRFs give their API version in: 0x0106.
	Release uint16
}

// String returns vendor:product in hexadecimal.
func (i Identity) String() string { return fmt.Sprintf("%04x:%04x", i.Vendor, i.Product) }

// Address is where a board is plugged in, until it is unplugged.
type Address struct{ Bus, Device int }

// String returns bus/device as in /dev/bus/usb.
func (a Address) String() string { return fmt.Sprintf("%03d/%03d", a.Bus, a.Device) }

// Listed is a board that is plugged in.
type Listed struct {
	Address  Address
	Identity Identity
	// Manufacturer, Product and Serial are the descriptor's strings, empty where
	// the board has none or cannot be asked.
	Manufacturer, Product, Serial string
	// Driver is the kernel's driver that holds interface 0, empty where there is
	// none or it is not known. Open takes it off.
	Driver string
	// Blocked says why the board cannot be opened, nil where nothing is known that
	// stands against it: ErrAccess, ErrInUse, ErrUnplugged by errors.Is, or
	// another.
	Blocked error
}

// Host is where boards are plugged in. It is safe for use by several goroutines.
type Host interface {
	// List returns the boards that want asks for, in the order of their addresses.
	// It opens each for a moment; one that cannot be opened is listed as Blocked.
	// The error is ErrNoUSBBuild, or says why nothing can be listed.
	List(ctx context.Context, want func(Identity) bool) ([]Listed, error)
	// Open opens the board, takes a kernel driver off it, sets configuration 1
	// and claims interface 0.
	Open(ctx context.Context, at Address) (Transport, error)
	// OpenBeside opens the board for control requests alone, which another program may
	// have open: it claims and changes nothing. It fails with ErrUnplugged where no board
	// that want asks for is at the address.
	OpenBeside(ctx context.Context, at Address, want func(Identity) bool) (Controller, error)
}

// Setup is the head of a control request (USB 2.0, section 9.3).
type Setup struct {
	RequestType, Request uint8
	Value, Index         uint16
	// Length is that of the data. A Transport takes it from the data and ignores
	// what is here.
	Length uint16
}

// Bits of Setup.RequestType.
const (
	DirectionIn    uint8 = 0x80 // data goes to the host
	TypeVendor     uint8 = 0x40
	VendorIn       uint8 = DirectionIn | TypeVendor // to the device, not an interface
	VendorOut      uint8 = TypeVendor
	EndpointIn     byte  = 0x80 // in an endpoint's address: data goes to the host
	PacketSize     int   = 512  // of bulk endpoints at high speed, in bytes
	MaxControlData       = 4096 // of one control request, in bytes, by usbfs
)

// Controller is a board that takes control requests. It is safe for use by several
// goroutines; requests follow each other.
//
// Errors are of the kinds of this package where one fits, by errors.Is.
type Controller interface {
	// Control makes a control request. data is sent, or filled where s has
	// DirectionIn; n is the number of bytes that went. A timeout of 0 or less is
	// refused: nothing may wait for ever.
	Control(s Setup, data []byte, timeout time.Duration) (n int, err error)
	// Close returns the board back. A second Close does nothing.
	Close() error
}

// Transport is one open board: a Controller, whose Close ends the streams, too.
type Transport interface {
	Controller
	// OpenIn queues transfers on a bulk endpoint to the host.
	OpenIn(c InConfig) (InStream, error)
	// OpenOut makes ready a bulk endpoint from the host.
	OpenOut(c OutConfig) (OutStream, error)
}

// InConfig describes a stream to the host.
type InConfig struct {
	Endpoint byte // its address, with EndpointIn
	Size     int  // bytes a transfer, a multiple of PacketSize
	Count    int  // transfers queued with the board, 1 or more
	// Ring is the number of filled buffers that may wait for the reader, 1 or more.
	Ring int
	// Hold leaves data with the board while the ring is full: the board decides
	// what is lost. Without it they are taken and counted in Block.Lost.
	Hold bool
}

// InStream returns what a board sends. Next is for one goroutine at a time; Close
// may be called from any.
type InStream interface {
	// Next waits for the oldest block. An error comes after the blocks that were
	// filled before it, and then always: that of the board, or ErrClosed. Only
	// ctx's own error ends nothing.
	Next(ctx context.Context) (Block, error)
	// Waiting reports whether a block is there that Next has not returned. It may be
	// called from any goroutine.
	Waiting() bool
	// Close cancels what is queued and waits until the board has given it back.
	Close() error
}

// Block is the data of one transfer, at least one byte.
type Block struct {
	// Data is good until the next call of Next.
	Data []byte
	// Lost is the number of bytes that came before Data and were dropped because
	// nobody read in time.
	Lost int64
}

// OutConfig describes a stream from the host.
type OutConfig struct {
	Endpoint byte // its address
	Size     int  // the most bytes a transfer, a multiple of PacketSize
	Count    int  // the most transfers queued with the board, 1 or more
}

// OutStream sends to a board. It is for one goroutine, except that Close and Taken
// may be called from any.
type OutStream interface {
	// Write queues one transfer of 1 to Size bytes and waits for room in the
	// queue; p may be changed afterwards. If it fails the stream has ended and
	// nothing that is still queued is sent: ErrTimeout where ctx's deadline
	// passed, ErrCancelled where ctx was cancelled, ErrClosed after Close, or the
	// board's error.
	Write(ctx context.Context, p []byte) error
	// Taken returns the number of bytes that the board is known to have taken. It
	// is less than what it took by at most what is queued.
	Taken() int64
	// Finish waits until the board has taken all that was written and ends the
	// stream; errors as of Write.
	Finish(ctx context.Context) error
	// Close cancels what is queued and waits until the board has given it back.
	Close() error
}

// Check says what is wrong with c, if anything.
func (c InConfig) Check() error {
	switch {
	case c.Endpoint&EndpointIn == 0:
		return fmt.Errorf("a stream to the host on endpoint 0x%02x; allowed is 0x81 to 0x8f", c.Endpoint)
	case c.Ring < 1:
		return fmt.Errorf("a ring of %d buffers; allowed is 1 or more", c.Ring)
	}
	return checkTransfers(c.Size, c.Count)
}

// Check says what is wrong with c, if anything.
func (c OutConfig) Check() error {
	if c.Endpoint&EndpointIn != 0 {
		return fmt.Errorf("a stream from the host on endpoint 0x%02x; allowed is 0x01 to 0x0f", c.Endpoint)
	}
	return checkTransfers(c.Size, c.Count)
}

func checkTransfers(size, count int) error {
	if size < PacketSize || size%PacketSize != 0 {
		return fmt.Errorf("transfers of %d bytes; allowed are multiples of %d", size, PacketSize)
	}
	if count < 1 {
		return fmt.Errorf("%d transfers in the queue; allowed is 1 or more", count)
	}
	return nil
}
