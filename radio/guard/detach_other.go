//go:build !unix

package guard

import (
	"os"
	"os/exec"
	"os/signal"
)

// detach does nothing where there are no sessions.
func detach(*exec.Cmd) {}

// Ignore makes this process, a guard, outlive what ends programs from a terminal. The end
// of its pipe ends it.
func Ignore() { signal.Ignore(os.Interrupt) }
