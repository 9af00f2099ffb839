//go:build usb

package usb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/gousb"

	"ringwave/radio/life"
)

// System returns the machine's own USB through libusb. It keeps nothing open: each
// listing and each board has a libusb context of its own, because without udev a
// context never hears of boards that come after it.
func System() Host { return libusb{} }

type libusb struct{}

// start makes a context; gousb panics where libusb cannot start.
func start() (c *gousb.Context, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("libusb cannot start: %v", cause)
		}
	}()
	return gousb.NewContext(), nil
}

// List opens each board that want asks for, one after the other.
func (libusb) List(ctx context.Context, want func(Identity) bool) (boards []Listed, err error) {
	c, err := start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var descs []*gousb.DeviceDesc
	// One that has an unreadable descriptor is none that was asked for.
	if _, err := c.OpenDevices(func(d *gousb.DeviceDesc) bool {
		if want(identity(d)) {
			descs = append(descs, d)
		}
		return false
	}); err != nil && len(descs) == 0 {
		return nil, fmt.Errorf("listing USB: %w", classify(err))
	}
	slices.SortFunc(descs, func(a, b *gousb.DeviceDesc) int {
		return cmp.Or(cmp.Compare(a.Bus, b.Bus), cmp.Compare(a.Address, b.Address))
	})
	for _, d := range descs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		boards = append(boards, look(c, d))
	}
	return boards, nil
}

// look opens a board for as long as it takes to read its strings.
func look(c *gousb.Context, d *gousb.DeviceDesc) Listed {
	l := Listed{Address: Address{d.Bus, d.Address}, Identity: identity(d), Driver: kernelDriver(d)}
	if l.Driver == usbfs {
		l.Driver, l.Blocked = "", ErrInUse
	}
	dev, err := openAt(c, l.Address)
	if err != nil {
		l.Blocked = err
		return l
	}
	defer dev.Close() // nothing of it is claimed, so that it cannot fail
	for _, s := range []struct {
		to  *string
		get func() (string, error)
	}{{&l.Manufacturer, dev.Manufacturer}, {&l.Product, dev.Product}, {&l.Serial, dev.SerialNumber}} {
		if *s.to, err = s.get(); err != nil && l.Blocked == nil {
			l.Blocked = fmt.Errorf("reading the board's name and serial number: %w", classify(err))
		}
	}
	return l
}

// openAt opens the board at an address.
func openAt(c *gousb.Context, at Address) (*gousb.Device, error) {
	devs, err := c.OpenDevices(func(d *gousb.DeviceDesc) bool {
		return d.Bus == at.Bus && d.Address == at.Device
	})
	if len(devs) > 0 {
		return devs[0], nil // the error is that of another board
	}
	if err != nil {
		return nil, classify(err)
	}
	return nil, ErrUnplugged
}

// Open opens the board at an address.
func (libusb) Open(ctx context.Context, at Address) (Transport, error) {
	b, err := reach(ctx, at, func(b *board) error { return b.open(at) })
	if err != nil {
		return nil, err
	}
	return b, nil
}

// reach makes a board by a way of opening it, of which nothing is left where it fails.
func reach(ctx context.Context, at Address, open func(*board) error) (*board, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := start()
	if err != nil {
		return nil, err
	}
	b := &board{context: c}
	if err := open(b); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the board at %v: %w", at, err), b.Close())
	}
	return b, nil
}

// OpenBeside opens the board at an address without its interface. Linux lets any program
// that may open a board make control requests to it as a whole.
func (libusb) OpenBeside(ctx context.Context, at Address, want func(Identity) bool) (Controller, error) {
	b, err := reach(ctx, at, func(b *board) (err error) {
		if b.device, err = openAt(b.context, at); err == nil && !want(identity(b.device.Desc)) {
			err = ErrUnplugged
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// board is a Transport, or without an interface a Controller alone.
type board struct {
	context *gousb.Context
	device  *gousb.Device
	config  *gousb.Config
	iface   *gousb.Interface

	// control guards the device's timeout, which belongs to one request.
	control sync.Mutex

	mu      sync.Mutex
	closed  bool
	streams []io.Closer
}

func (b *board) open(at Address) (err error) {
	if b.device, err = openAt(b.context, at); err != nil {
		return err
	}
	if err := b.device.SetAutoDetach(true); err != nil {
		return classify(err)
	}
	if b.config, err = b.device.Config(1); err != nil {
		if strings.Contains(err.Error(), "detach kernel driver") {
			return fmt.Errorf("%w: %w", ErrDriverBound, classify(err))
		}
		return classify(err)
	}
	if b.iface, err = b.config.Interface(0, 0); err != nil {
		if d := kernelDriver(b.device.Desc); d != "" && d != usbfs {
			return fmt.Errorf("%w: %s", ErrDriverBound, d)
		}
		return classify(err)
	}
	return nil
}

func (b *board) Control(s Setup, data []byte, timeout time.Duration) (int, error) {
	switch {
	case timeout <= 0:
		return 0, fmt.Errorf("a control request with a timeout of %v; allowed is more than 0", timeout)
	case len(data) > MaxControlData:
		return 0, fmt.Errorf("a control request with %d bytes; allowed is at most %d", len(data), MaxControlData)
	}
	b.control.Lock()
	defer b.control.Unlock()
	if b.isClosed() {
		return 0, ErrClosed
	}
	// libusb takes milliseconds, and 0 for ever.
	b.device.ControlTimeout = max(timeout, time.Millisecond)
	n, err := b.device.Control(s.RequestType, s.Request, s.Value, s.Index, data)
	if err != nil {
		return 0, classify(err)
	}
	return n, nil
}

func (b *board) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func (b *board) OpenIn(c InConfig) (InStream, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	ep, err := b.iface.InEndpoint(int(c.Endpoint &^ EndpointIn))
	if err != nil {
		return nil, err
	}
	s, err := ep.NewStream(c.Size, c.Count)
	if err != nil {
		return nil, classify(err)
	}
	source := &inSource{stream: s}
	in := NewInStream(c, source)
	source.forget = func() { b.forget(in) }
	b.streams = append(b.streams, in)
	return in, nil
}

func (b *board) OpenOut(c OutConfig) (OutStream, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	ep, err := b.iface.OutEndpoint(int(c.Endpoint))
	if err != nil {
		return nil, err
	}
	out := &outStream{endpoint: ep, size: c.Size, places: make([]place, c.Count)}
	out.forget = func() { b.forget(out) }
	b.streams = append(b.streams, out)
	return out, nil
}

// forget lets go of a stream that was closed, and of its buffers.
func (b *board) forget(s io.Closer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams = slices.DeleteFunc(b.streams, func(c io.Closer) bool { return c == s })
}

// Close goes the only way that libusb allows: streams, interface, configuration,
// device, context.
func (b *board) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	streams := slices.Clone(b.streams)
	b.mu.Unlock()
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.Close())
	}
	b.control.Lock() // a request that is under way ends first
	defer b.control.Unlock()
	if b.iface != nil {
		b.iface.Close()
	}
	if b.config != nil {
		errs = append(errs, b.config.Close())
	}
	if b.device != nil {
		errs = append(errs, b.device.Close())
	}
	return errors.Join(append(errs, b.context.Close())...)
}

// inSource reads a gousb stream.
type inSource struct {
	stream *gousb.ReadStream
	forget func() // set before anyone can close the stream
}

func (s *inSource) Read(ctx context.Context, p []byte) (int, error) {
	n, err := s.stream.ReadContext(ctx, p)
	if err == nil {
		return n, nil
	}
	// gousb hides that it was the context.
	if done := FromContext(ctx); done != nil {
		return 0, done
	}
	return 0, classify(err)
}

// Close marks the stream so that nothing is queued again, and then lets a context
// that is done cancel what is in flight. The mark is needed: with data at hand,
// gousb may overlook the context and queue for ever.
func (s *inSource) Close() error {
	defer s.forget()
	if err := s.stream.Close(); err != nil {
		return classify(err)
	}
	waste := make([]byte, 64<<10)
	for {
		if _, err := s.stream.ReadContext(life.Ended(), waste); err != nil {
			return nil
		}
	}
}

// outStream keeps a gousb stream of one transfer in each place of the queue, used in
// turn. A gousb stream of several would not do: it always sends its buffers whole,
// however little was written into one.
type outStream struct {
	endpoint *gousb.OutEndpoint
	size     int
	life     life.Life // ends with Close
	forget   func()
	taken    atomic.Int64

	mu     sync.Mutex // one of Write, Finish and Close at a time
	ended  error      // once it has
	places []place
	oldest int
}

// place has the transfer that is in flight, if one is.
type place struct {
	stream *gousb.WriteStream // nil before its first use
	size   int                // of the stream's transfer, in bytes
	flying bool
}

func (s *outStream) Taken() int64 { return s.taken.Load() }

// end notes why the stream ended: by Close, by ctx, or by the board.
func (s *outStream) end(ctx context.Context, err error) error {
	switch closed, done := s.life.Err(), FromContext(ctx); {
	case closed != nil:
		s.ended = closed
	case done != nil:
		s.ended = done
	default:
		s.ended = classify(err)
	}
	s.abort()
	return s.ended
}

func (s *outStream) Write(ctx context.Context, p []byte) error {
	if len(p) < 1 || len(p) > s.size {
		return fmt.Errorf("a USB transfer of %d bytes; allowed is 1 to %d", len(p), s.size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	joined, release := s.life.Join(ctx)
	defer release()
	// gousb may overlook a context that is done while the board takes data.
	err := joined.Err()
	if err == nil {
		err = s.queue(joined, p)
	}
	if err != nil {
		return s.end(ctx, err)
	}
	return nil
}

// queue waits for the oldest transfer and puts the next in its place.
func (s *outStream) queue(ctx context.Context, p []byte) error {
	at := &s.places[s.oldest]
	if at.stream != nil && at.size != len(p) {
		if err := s.wait(ctx, at); err != nil {
			return err
		}
	}
	if at.stream == nil {
		stream, err := s.endpoint.NewStream(len(p), 1)
		if err != nil {
			return err
		}
		*at = place{stream: stream, size: len(p)}
	}
	if _, err := at.stream.WriteContext(ctx, p); err != nil {
		return err
	}
	s.landed(at)
	at.flying = true
	s.oldest = (s.oldest + 1) % len(s.places)
	return nil
}

// wait waits for the transfer of a place and frees it.
func (s *outStream) wait(ctx context.Context, at *place) error {
	if err := at.stream.CloseContext(ctx); err != nil {
		return err
	}
	s.landed(at)
	at.stream = nil
	return nil
}

// landed counts a transfer that the board has taken.
func (s *outStream) landed(at *place) {
	if at.flying {
		s.taken.Add(int64(at.size))
		at.flying = false
	}
}

// abort cancels what is in flight, newest first so that nothing moves up, and waits
// until it is back.
func (s *outStream) abort() {
	for k := range s.places {
		at := &s.places[(s.oldest-1-k+2*len(s.places))%len(s.places)]
		if at.stream != nil {
			_ = at.stream.CloseContext(life.Ended()) // what it says is known already
			at.stream = nil
		}
	}
}

func (s *outStream) Finish(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	joined, release := s.life.Join(ctx)
	defer release()
	for k := range s.places {
		at := &s.places[(s.oldest+k)%len(s.places)]
		if at.stream == nil {
			continue
		}
		if err := s.wait(joined, at); err != nil {
			return s.end(ctx, err)
		}
	}
	s.ended = ErrClosed
	return nil
}

func (s *outStream) Close() error {
	s.life.End(ErrClosed) // before the lock, which a write that waits has
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = ErrClosed
		s.abort()
	}
	s.forget()
	return nil
}

func identity(d *gousb.DeviceDesc) Identity {
	return Identity{Vendor: uint16(d.Vendor), Product: uint16(d.Product), Release: uint16(d.Device)}
}

const usbfs = "usbfs" // the kernel's driver on behalf of programs

// kernelDriver returns the driver of interface 0, empty if there is none or the
// machine does not say.
func kernelDriver(d *gousb.DeviceDesc) string {
	if len(d.Path) == 0 {
		return ""
	}
	name := strconv.Itoa(d.Bus) + "-"
	for i, port := range d.Path {
		if i > 0 {
			name += "."
		}
		name += strconv.Itoa(port)
	}
	driver, err := os.Readlink("/sys/bus/usb/devices/" + name + ":1.0/driver")
	if err != nil {
		return ""
	}
	return filepath.Base(driver)
}

// code finds the number of a libusb error in the text of one that gousb has
// wrapped without keeping it.
var code = regexp.MustCompile(`\[code (-?\d+)\]`)

// classify returns the kind of an error of gousb. An unplugged board has two names
// there, by which transfer sees it first.
func classify(err error) error {
	var status gousb.TransferStatus
	if errors.As(err, &status) {
		switch status {
		case gousb.TransferStall:
			return ErrStall
		case gousb.TransferTimedOut:
			return ErrTimeout
		case gousb.TransferNoDevice:
			return ErrUnplugged
		case gousb.TransferCancelled:
			return ErrCancelled
		}
		return err
	}
	var e gousb.Error
	if !errors.As(err, &e) {
		found := code.FindStringSubmatch(err.Error())
		if found == nil {
			return err
		}
		n, convErr := strconv.Atoi(found[1])
		if convErr != nil {
			return err
		}
		e = gousb.Error(n)
	}
	switch e {
	case gousb.ErrorPipe:
		return ErrStall
	case gousb.ErrorTimeout:
		return ErrTimeout
	case gousb.ErrorNoDevice, gousb.ErrorNotFound:
		return ErrUnplugged
	case gousb.ErrorAccess:
		return ErrAccess
	case gousb.ErrorBusy:
		return ErrInUse
	}
	return err
}
