package secrettest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// unpreempted is the setting of GODEBUG without which signals preempt goroutines.
const unpreempted = "asyncpreemptoff=1"

// Unpreempted reports whether this process preempts no goroutine by a signal. Where it
// does, it first runs the test by itself in a process that does not, and the caller is
// to return. A signal may come while a secret is in registers, and leaves these on its
// handler's stack, where a search finds them: nothing in Go overwrites that stack, as
// package secret says, and so a search must not depend on when signals come.
func Unpreempted(t *testing.T) bool {
	t.Helper()
	settings := os.Getenv("GODEBUG")
	if strings.Contains(settings, unpreempted) {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), "GODEBUG="+strings.TrimPrefix(settings+","+unpreempted, ","))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
