//go:build unix

package model

import (
	"syscall"
	"time"
)

// processorTime returns how long this process has computed. Other than by the clock on
// the wall, a benchmark then need not have the core to itself.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no cause
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
