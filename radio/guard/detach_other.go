//go:build !unix

package guard

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
)

// detach does nothing where there are no sessions.
func detach(*exec.Cmd) {}

// Ignore makes this process, a guard, outlive what ends programs from a terminal. The end
// of its pipe ends it.
func Ignore() { signal.Ignore(os.Interrupt) }

// EndProgram fails: a process does not know here whether the one that started it still lives.
func EndProgram(int) error {
	return errors.New("a program that stands still is not ended here: end it")
}
