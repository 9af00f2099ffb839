//go:build unix

package guard

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
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

// EndProgram ends the program with a process number that started this guard, if it lives, and
// returns once it is gone. It is for boards that only one process can have: while a program
// that stands still has one, nobody else can switch it off.
func EndProgram(number int) error {
	ended := time.Now().Add(endPatience)
	for os.Getppid() == number { // it is this process's parent for as long as it lives
		if err := syscall.Kill(number, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending the program, process %d: %w", number, err)
		}
		if time.Now().After(ended) {
			return fmt.Errorf("the program, process %d, did not end within %v", number, endPatience)
		}
		time.Sleep(endPause)
	}
	return nil
}

// A program that is killed is gone after a moment.
const endPatience, endPause = 2 * time.Second, 2 * time.Millisecond
