package usbip

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"ringwave/radio/virtual"
)

// Controller is where Linux's virtual host controller is found, the first of them.
const Controller = "/sys/devices/platform/vhci_hcd.0"

// ErrNoController: the kernel's virtual host controller is not there.
var ErrNoController = errors.New("the kernel has no virtual USB host controller (load it by: modprobe vhci-hcd)")

// Attached is a board that is plugged into the kernel.
type Attached struct {
	conn  net.Conn
	ended chan struct{}
	err   error
	close sync.Once
}

// highSpeed is the kernel's number for it.
const highSpeed = 3

// Attach plugs a board into a free port of the controller, whose folder in sysfs is
// Controller but for tests. The kernel then enumerates it, which takes about a
// second: the entry in /sys/bus/usb/devices and the node in /dev/bus/usb come when
// it is done. It fails with ErrNoController or os.ErrPermission by errors.Is.
func Attach(controller string, board virtual.Board) (*Attached, error) {
	port, err := freePort(controller)
	if err != nil {
		return nil, err
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket for USB/IP: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "usbip"), os.NewFile(uintptr(fds[1]), "kernel's usbip")
	// The kernel keeps its end by itself, and FileConn duplicates ours.
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("making a socket for USB/IP: %w", err)
	}
	const device = 1<<16 | 2 // any bus and number
	line := fmt.Sprintf("%d %d %d %d", port, fds[1], device, highSpeed)
	if err := os.WriteFile(filepath.Join(controller, "attach"), []byte(line), 0); err != nil {
		conn.Close()
		return nil, fmt.Errorf("plugging a virtual board into the kernel: %w", err)
	}
	a := &Attached{conn: conn, ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		a.err = Serve(conn, board)
	}()
	return a, nil
}

// freePort returns the first high-speed port on which nothing is.
func freePort(controller string) (int, error) {
	status, err := os.ReadFile(filepath.Join(controller, "status"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, ErrNoController
	}
	if err != nil {
		return 0, fmt.Errorf("reading the ports of the virtual USB host controller: %w", err)
	}
	const free = 4
	for _, line := range strings.Split(string(status), "\n") {
		var port, state int
		if n, _ := fmt.Sscanf(line, "hs %d %d", &port, &state); n == 2 && state == free {
			return port, nil
		}
	}
	return 0, errors.New("all ports of the virtual USB host controller are in use")
}

// Done is closed when the board is no longer plugged in, by Close or by the kernel.
func (a *Attached) Done() <-chan struct{} { return a.ended }

// Close unplugs the board from the kernel, and gives what Serve gave. A second
// Close does nothing more.
func (a *Attached) Close() error {
	a.close.Do(func() { a.conn.Close() })
	<-a.ended
	return a.err
}
