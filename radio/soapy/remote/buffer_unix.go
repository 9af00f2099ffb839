//go:build unix

package remote

import (
	"net"
	"runtime"
	"syscall"
)

// readBuffer returns how many bytes of datagrams the system keeps, unset where it does not
// say.
func readBuffer(c *net.UDPConn, unset int) int {
	raw, err := c.SyscallConn()
	if err != nil {
		return unset
	}
	n := unset
	_ = raw.Control(func(fd uintptr) {
		if v, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF); err == nil {
			n = v
		}
	})
	if runtime.GOOS == "linux" {
		n /= 2 // the rest is the kernel's own
	}
	return n
}
