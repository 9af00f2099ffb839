//go:build unix

package external

import (
	"os/exec"
	"syscall"
)

// separate makes a program the first of a process group.
func separate(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill ends the group.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
