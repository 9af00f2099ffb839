//go:build linux

package sweeps_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/hosts/identity"
)

// A nats-server that is not part of the program has the queue, by the configuration that an
// enrolment writes.
func TestOtherServer(t *testing.T) {
	path, err := exec.LookPath("nats-server")
	if err != nil {
		t.Skip("there is no nats-server here")
	}
	program := built(t) // before the home of the build cache is another
	experimenttest.NoData(t)
	spec, plan := shortSweep(t, 8)
	address := freeAddress(t)
	bench, out := filepath.Join(t.TempDir(), "queue"), filepath.Join(t.TempDir(), "out")
	if _, err := identity.Create(bench, identity.Options{Sweeps: true, URL: "tls://" + address}); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(path, "-c", "nats-server.conf")
	server.Dir = bench
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	w, words := begin(t, program, "worker", filepath.Join(bench, "worker.identity"), "--scratch", t.TempDir())
	p, said := begin(t, program, "sweep", spec, "--out", out, "--bench", bench, "--join", "tls://"+address)
	ended(t, p, said, 0)
	ended(t, w, words, 0)
	same(t, out, plan, serial(t, plan))
}
