//go:build unix

package remote

import (
	"net"
	"syscall"
)

// readBuffer returns how many bytes the system keeps for datagrams, unset where it does not
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
	return n
}
