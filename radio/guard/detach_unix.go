//go:build unix

package guard

import (
	"os/exec"
	"os/signal"
	"syscall"
)

// detach puts a guard into a session of its own, where the terminal's signals, and those
// for the program's group, do not reach it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Ignore makes this process, a guard, outlive what ends programs from outside, SIGKILL and
// SIGSTOP apart. The end of its pipe ends it.
func Ignore() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE,
		syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
}
