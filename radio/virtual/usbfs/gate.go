//go:build linux

package usbfs

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// gate is a device's node as poll sees it. libusb waits until the node can be
// written to, which means that a transfer has ended. A file always can, so that it
// would wait without sleeping; the node is a pipe of one page, full while it is
// shut and empty while it is open.
type gate struct {
	mu   sync.Mutex
	pipe *os.File
	open bool
	page []byte
}

// setPipeSize is F_SETPIPE_SZ, which package syscall does not have.
const setPipeSize = 1031

func newGate(path string) (*gate, error) {
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	size, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), setPipeSize, uintptr(os.Getpagesize()))
	if errno != 0 {
		syscall.Close(fd)
		return nil, fmt.Errorf("setting the size of the pipe %s: %w", path, errno)
	}
	g := &gate{pipe: os.NewFile(uintptr(fd), path), open: true, page: make([]byte, size)}
	g.set(false)
	return g, nil
}

// set opens or shuts the gate.
func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if open == g.open || g.pipe == nil {
		return
	}
	g.open = open
	// Neither can wait: the pipe is empty or full, and nobody else uses it.
	if open {
		_, _ = g.pipe.Read(g.page)
	} else {
		_, _ = g.pipe.Write(g.page)
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe != nil {
		g.pipe.Close()
		g.pipe = nil
	}
}
