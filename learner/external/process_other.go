//go:build !unix

package external

import "os/exec"

func separate(*exec.Cmd) {}

func kill(c *exec.Cmd) { _ = c.Process.Kill() }
