//go:build linux

package usbfs

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"ringwave/radio/virtual"
)

// device is a board that is plugged in.
type device struct {
	bus      *Bus
	number   int
	board    virtual.Queuer
	listener *net.UnixListener
	gate     *gate
	ended    sync.WaitGroup

	mu     sync.Mutex
	conns  map[*conn]bool
	holder *conn // that has claimed interface 0
	gone   bool
	closed bool
	// finished is the number of transfers that nobody has reaped.
	finished int
}

// serve takes programs that open the node.
func (d *device) serve() {
	defer d.ended.Done()
	for {
		socket, err := d.listener.AcceptUnix()
		if err != nil {
			return
		}
		c := &conn{device: d, socket: socket, urbs: map[uint64]*urb{}, ended: make(chan struct{})}
		c.idle = sync.NewCond(&c.mu)
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			socket.Close()
			return
		}
		d.conns[c] = true
		d.ended.Add(1)
		d.mu.Unlock()
		go c.serve()
	}
}

// vanish takes the device out of sysfs. What is open stays, as with a kernel.
func (d *device) vanish() {
	d.mu.Lock()
	gone := d.gone
	d.gone = true
	d.mu.Unlock()
	if !gone {
		d.leave()
	}
}

// left reports whether the device is out of sysfs and no program has it open.
func (d *device) left() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone && len(d.conns) == 0
}

// bury waits for the end of a program other than c's that held the interface and
// has died: a kernel takes back what a program had before anyone hears of its
// death.
func (d *device) bury(c *conn) {
	d.mu.Lock()
	holder := d.holder
	d.mu.Unlock()
	if holder != nil && holder != c && hungUp(holder.socket) {
		<-holder.ended
	}
}

// hungUp reports whether the other side of a socket was closed, read or not.
func hungUp(socket *net.UnixConn) bool {
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	hup := false
	err = raw.Control(func(fd uintptr) {
		poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
		if err != nil {
			return
		}
		defer syscall.Close(poll)
		want := syscall.EpollEvent{Events: syscall.EPOLLRDHUP, Fd: int32(fd)}
		if err := syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, int(fd), &want); err != nil {
			return
		}
		var events [1]syscall.EpollEvent
		n, _ := syscall.EpollWait(poll, events[:], 0)
		hup = n > 0
	})
	return err != nil || hup
}

// close ends all connections and waits for them.
func (d *device) close() {
	d.mu.Lock()
	d.closed, d.gone = true, true
	for c := range d.conns {
		c.socket.Close()
	}
	d.mu.Unlock()
	if d.listener != nil {
		d.listener.Close()
	}
	d.ended.Wait()
	if d.gate != nil {
		d.gate.close()
	}
}

// count notes that so many more transfers can be reaped.
func (d *device) count(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished += n
	d.gate.set(d.finished > 0)
}

func (d *device) isGone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone
}

// The messages of the preload library: 24 bytes each, a command and two arguments.
const (
	msgIoctl    = 1 // request, address of its argument
	msgDone     = 3 // result, errno
	msgReadMem  = 5 // address, length; answered by the bytes
	msgWriteMem = 6 // address, length, followed by the bytes
	msgRead     = 7
	msgWrite    = 8
)

// The requests of usbfs that libusb makes, as on all 64-bit machines but MIPS,
// PowerPC and SPARC.
const (
	ioctlSetInterface     = 0x80085504
	ioctlSetConfiguration = 0x80045505
	ioctlGetDriver        = 0x41045508
	ioctlSubmitURB        = 0x8038550a
	ioctlDiscardURB       = 0x550b
	ioctlReapURBNoDelay   = 0x4008550d
	ioctlClaim            = 0x8004550f
	ioctlRelease          = 0x80045510
	ioctlDriver           = 0xc0105512
	ioctlReset            = 0x5514
	ioctlClearHalt        = 0x80045515
	ioctlGetCapabilities  = 0x8004551a
	ioctlDisconnectClaim  = 0x8108551b
	ioctlGetSpeed         = 0x551f
)

const (
	// capabilities: zero packet, no limit of packets, scatter and gather, reap
	// after disconnect. With them a transfer is one URB.
	capabilities = 0x1 | 0x4 | 0x8 | 0x10
	// highSpeed is Linux's number for it.
	highSpeed = 3
	// maxTransfer bounds what a program can make this one set aside.
	maxTransfer = 16 << 20
)

// The layout of struct usbdevfs_urb.
const (
	urbSize     = 56
	urbControl  = 2
	urbBulk     = 3
	atType      = 0
	atEndpoint  = 1
	atStatus    = 4
	atBuffer    = 16
	atLength    = 24
	atActual    = 28
	setupLength = 8
)

// urb is a transfer of a program.
type urb struct {
	address uint64 // of its struct, which is its name
	buffer  uint64 // in the program, of the data
	in      bool
	data    []byte
	cancel  func()

	n      int
	status syscall.Errno
}

// conn is an open node. Its goroutine reads and writes the socket; transfers end
// in others.
type conn struct {
	device *device
	socket *net.UnixConn
	ended  chan struct{} // closed when the connection is done with
	out    []byte        // what is to be written next

	mu       sync.Mutex
	idle     *sync.Cond
	urbs     map[uint64]*urb // under way
	finished []*urb
	control  chan struct{} // closed when the last control request has ended
	spare    [][]byte
}

// serve does what the program asks for until it closes the node.
func (c *conn) serve() {
	defer c.device.ended.Done()
	defer c.close()
	var head [24]byte
	for {
		if _, err := io.ReadFull(c.socket, head[:]); err != nil {
			return
		}
		command := binary.LittleEndian.Uint64(head[:])
		request, arg := binary.LittleEndian.Uint64(head[8:]), binary.LittleEndian.Uint64(head[16:])
		errno := syscall.Errno(syscall.EINVAL)
		result := 0
		if command == msgIoctl {
			var err error
			if result, err = c.ioctl(request, arg); err != nil && !errors.As(err, &errno) {
				return // the socket
			} else if err == nil {
				errno = 0
			}
		}
		if errno != 0 {
			result = -1
		}
		c.message(msgDone, uint64(int64(result)), uint64(errno))
		if err := c.flush(); err != nil {
			return
		}
	}
}

// close cancels what the program has under way, and waits for it.
func (c *conn) close() {
	c.socket.Close()
	c.mu.Lock()
	cancels := make([]func(), 0, len(c.urbs))
	for _, u := range c.urbs {
		cancels = append(cancels, u.cancel)
	}
	c.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	c.mu.Lock()
	for len(c.urbs) > 0 {
		c.idle.Wait()
	}
	left := len(c.finished)
	c.finished = nil
	c.mu.Unlock()
	d := c.device
	d.count(-left)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	if d.holder == c {
		d.holder = nil
	}
	close(c.ended)
}

func (c *conn) message(command, a, b uint64) {
	c.out = binary.LittleEndian.AppendUint64(c.out, command)
	c.out = binary.LittleEndian.AppendUint64(c.out, a)
	c.out = binary.LittleEndian.AppendUint64(c.out, b)
}

func (c *conn) flush() error {
	_, err := c.socket.Write(c.out)
	c.out = c.out[:0]
	return err
}

// peek reads the program's memory.
func (c *conn) peek(address uint64, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	c.message(msgReadMem, address, uint64(len(dst)))
	if err := c.flush(); err != nil {
		return err
	}
	_, err := io.ReadFull(c.socket, dst)
	return err
}

// poke writes the program's memory, with the next flush.
func (c *conn) poke(address uint64, src []byte) {
	c.message(msgWriteMem, address, uint64(len(src)))
	c.out = append(c.out, src...)
}

func (c *conn) poke32(address uint64, v uint32) {
	c.poke(address, binary.LittleEndian.AppendUint32(nil, v))
}

func (c *conn) peek32(address uint64) (uint32, error) {
	var b [4]byte
	err := c.peek(address, b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

// ioctl does a request of usbfs; errors are an Errno, or the socket's.
func (c *conn) ioctl(request, arg uint64) (result int, err error) {
	d := c.device
	switch request {
	case ioctlReapURBNoDelay:
		return 0, c.reap(arg)
	case ioctlDiscardURB:
		return 0, c.discard(arg)
	}
	if d.isGone() {
		return 0, syscall.ENODEV
	}
	switch request {
	case ioctlSubmitURB:
		return 0, c.submit(arg)
	case ioctlGetCapabilities:
		c.poke32(arg, capabilities)
		return 0, nil
	case ioctlClaim, ioctlDisconnectClaim:
		return 0, c.claim(arg)
	case ioctlRelease:
		return 0, c.release(arg)
	case ioctlSetConfiguration:
		return 0, c.configure(arg)
	case ioctlGetDriver, ioctlDriver:
		return 0, syscall.ENODATA // no driver is bound
	case ioctlGetSpeed:
		return highSpeed, nil
	case ioctlSetInterface, ioctlReset:
		return 0, nil
	case ioctlClearHalt:
		endpoint, err := c.peek32(arg)
		if err == nil {
			virtual.ClearHalt(d.board, byte(endpoint))
		}
		return 0, err
	}
	return 0, syscall.ENOTTY
}

// claim takes an interface for this program alone.
func (c *conn) claim(arg uint64) error {
	number, err := c.peek32(arg)
	if err != nil {
		return err
	}
	d := c.device
	d.bury(c)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case number >= uint32(d.board.Descriptors().Configuration[4]):
		return syscall.ENOENT
	case number != 0:
		return nil // only the first has endpoints
	case d.holder != nil && d.holder != c:
		return syscall.EBUSY
	}
	d.holder = c
	return nil
}

func (c *conn) release(arg uint64) error {
	number, err := c.peek32(arg)
	if err != nil {
		return err
	}
	d := c.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if number == 0 && d.holder == c {
		d.holder = nil
	}
	return nil
}

// configure sets the one configuration, which the kernel refuses while another
// program has claimed the interface.
func (c *conn) configure(arg uint64) error {
	value, err := c.peek32(arg)
	if err != nil {
		return err
	}
	d := c.device
	d.bury(c)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case value != uint32(d.board.Descriptors().Configuration[5]):
		return syscall.EINVAL
	case d.holder != nil && d.holder != c:
		return syscall.EBUSY
	}
	return nil
}

// submit starts a transfer.
func (c *conn) submit(address uint64) error {
	var b [urbSize]byte
	if err := c.peek(address, b[:]); err != nil {
		return err
	}
	length := int(int32(binary.LittleEndian.Uint32(b[atLength:])))
	if length < 0 || length > maxTransfer {
		return syscall.EINVAL
	}
	u := &urb{address: address, buffer: binary.LittleEndian.Uint64(b[atBuffer:]), cancel: func() {}}
	endpoint := b[atEndpoint]
	switch b[atType] {
	case urbControl:
		return c.submitControl(u, length)
	case urbBulk:
	default:
		return syscall.EINVAL
	}
	c.device.mu.Lock()
	held := c.device.holder == c
	c.device.mu.Unlock()
	if !held {
		return syscall.EINVAL // libusb claims first
	}
	u.in = endpoint&0x80 != 0
	u.data = c.buffer(length)
	if !u.in {
		if err := c.peek(u.buffer, u.data); err != nil {
			return err
		}
	}
	c.begin(u)
	cancel := c.device.board.Queue(endpoint, u.data, func(n int, err error) { c.end(u, n, err) })
	c.mu.Lock()
	u.cancel = cancel
	c.mu.Unlock()
	return nil
}

// submitControl starts a control request, behind those before it.
func (c *conn) submitControl(u *urb, length int) error {
	if length < setupLength {
		return syscall.EINVAL
	}
	whole := make([]byte, length)
	if err := c.peek(u.buffer, whole[:setupLength]); err != nil {
		return err
	}
	s := virtual.ParseSetup([setupLength]byte(whole))
	if int(s.Length) > length-setupLength {
		return syscall.EINVAL
	}
	u.in = s.RequestType&0x80 != 0
	u.data = whole[setupLength : setupLength+int(s.Length)]
	u.buffer += setupLength
	if !u.in {
		if err := c.peek(u.buffer, u.data); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	c.begin(u)
	before, ended := c.control, make(chan struct{})
	c.control = ended
	go func() {
		defer cancel()
		if before != nil {
			<-before
		}
		n, err := virtual.Answer(ctx, c.device.board, s, u.data)
		close(ended)
		c.end(u, n, err)
	}()
	return nil
}

func (c *conn) begin(u *urb) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.urbs[u.address] = u
}

// end notes what a transfer ended in.
func (c *conn) end(u *urb, n int, err error) {
	u.n = n
	switch {
	case err == nil:
	case errors.Is(err, virtual.ErrStall):
		u.status = syscall.EPIPE
	case errors.Is(err, virtual.ErrUnplugged):
		u.status = syscall.ENODEV
		c.device.vanish()
	case errors.Is(err, context.Canceled):
		u.status = syscall.ENOENT
	default:
		u.status = syscall.EPROTO
	}
	// Counted before it can be reaped, so that the count never falls below 0.
	c.device.count(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.urbs, u.address)
	c.finished = append(c.finished, u)
	c.idle.Signal()
}

// discard cancels a transfer; it is still to be reaped.
func (c *conn) discard(address uint64) error {
	c.mu.Lock()
	u := c.urbs[address]
	var cancel func()
	if u != nil {
		cancel = u.cancel
	}
	c.mu.Unlock()
	if u == nil {
		return syscall.EINVAL // it has ended, as the kernel says it
	}
	cancel()
	return nil
}

// reap hands the oldest transfer that has ended to the program.
func (c *conn) reap(arg uint64) error {
	c.mu.Lock()
	if len(c.finished) == 0 {
		c.mu.Unlock()
		if c.device.isGone() {
			return syscall.ENODEV
		}
		return syscall.EAGAIN
	}
	u := c.finished[0]
	c.finished = append(c.finished[:0], c.finished[1:]...)
	c.mu.Unlock()
	c.device.count(-1)
	if u.in && u.n > 0 {
		c.poke(u.buffer, u.data[:u.n])
	}
	c.poke32(u.address+atStatus, uint32(-int32(u.status)))
	c.poke32(u.address+atActual, uint32(u.n))
	c.poke(arg, binary.LittleEndian.AppendUint64(nil, u.address))
	c.keep(u.data)
	return nil
}

// buffer returns room for a transfer, used before if possible.
func (c *conn) buffer(n int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, b := range c.spare {
		if cap(b) >= n {
			c.spare = append(c.spare[:i], c.spare[i+1:]...)
			return b[:n]
		}
	}
	return make([]byte, n)
}

func (c *conn) keep(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spare) < 32 {
		c.spare = append(c.spare, b)
	}
}
