package sweeps_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/hosts/sweeps"
)

// spoken is what a process says.
type spoken struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// begin begins a process that ends with the test.
func begin(t *testing.T, words ...string) (*exec.Cmd, *spoken) {
	t.Helper()
	said := &spoken{}
	p := exec.Command(words[0], words[1:]...)
	p.Stdout, p.Stderr = said, said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p, said
}

// otherFiles copies a folder of data, and changes a byte of each file.
func otherFiles(t *testing.T, data string) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text[len(text)-1] ^= 1
		name, err := filepath.Rel(data, path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Workers that have other data, are another build, have a full disk, or are stopped in the
// middle of a run: each is told of in a sentence, by itself or by the sweep, and the sweep is
// done by who is left, with the results of serial runs.
func TestUnfitWorkers(t *testing.T) {
	data := experimenttest.FewImages(t)
	small := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("a small file system is needed to fill, and mounting one failed: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	other := filepath.Join(t.TempDir(), "other")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s", "-o", other, "ringwave/cmd/ringwave").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	spec, _ := shortSweep(t, 24)
	text := bytes.ReplaceAll(experimenttest.ReadFile(t, spec), []byte(`task.dataset = "strokes"`), []byte("task.dataset = \"cifar10\"\ntask.classes = [0, 1]"))
	if err := os.WriteFile(spec, text, 0o644); err != nil {
		t.Fatal(err)
	}
	plan, err := sweep.Load(experiment.Lab{Data: data}, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := serialOn(t, plan, data)
	out, address := filepath.Join(t.TempDir(), "out"), freeAddress(t)
	lead, said := begin(t, built(t), "sweep", spec, "--out", out, "--data", data, "--listen", address, "--workers", "-1", "--silence", "3s")
	id := filepath.Join(out, "queue", "enrolled", "worker.identity")
	until(t, "the sweep's identity: "+said.String(), func() bool { return strings.Contains(said.String(), "--join") })
	worker := func(program, data, scratch string) (*exec.Cmd, *spoken) {
		return begin(t, program, "worker", id, "--join", "tls://"+address, "--jobs", "1", "--data", data, "--scratch", scratch)
	}
	sentence := func(what string, s *spoken, words ...string) {
		t.Helper()
		until(t, what, func() bool {
			for line := range strings.Lines(s.String()) {
				if experimenttest.ContainsAll(line, words) {
					return true
				}
			}
			return false
		})
	}
	p, itself := worker(other, data, t.TempDir())
	sentence("another build", said, "is another program", "is refused")
	if err := p.Wait(); err == nil || p.ProcessState.ExitCode() != 2 || !strings.Contains(itself.String(), "start the same program") {
		t.Errorf("another build ended with %v: %s", err, itself)
	}
	p, itself = worker(built(t), data, small)
	sentence("a full disk", said, "takes no more runs", "no space left on device")
	if err := p.Wait(); err == nil || p.ProcessState.ExitCode() != 1 || !strings.Contains(itself.String(), "no space left on device") {
		t.Errorf("a full disk ended with %v: %s", err, itself)
	}
	p, _ = worker(built(t), otherFiles(t, data), t.TempDir())
	sentence("other data", said, "cannot do such runs", "other data are here", "is another file")
	_ = p.Process.Kill()
	_ = p.Wait()
	p, _ = worker(built(t), data, t.TempDir())
	until(t, "a result", func() bool { return len(results(t, out)) > 0 })
	// Stopped between two runs it has none, and is stopped again.
	until(t, "a run of a stopped worker", func() bool {
		if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		stopped := time.Now()
		var state sweeps.State
		until(t, "a later state", func() bool {
			var err error
			if state, err = sweeps.Look(out); err != nil {
				t.Fatal(err)
			}
			return state.Written.After(stopped)
		})
		if state.Running == 1 {
			return true
		}
		if err := p.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		return false
	})
	worker(built(t), data, t.TempDir())
	if err := lead.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	sentence("a stopped worker", said, "has not been heard for 3s", "goes to another")
	same(t, out, plan, want)
	for _, words := range [][]string{{"is another program"}, {"takes no more runs"}, {"cannot do such runs"}} {
		if n := strings.Count(said.String(), words[0]); n != 1 {
			t.Errorf("%q was said %d times: %s", words, n, said)
		}
	}
}

// results returns the folders of results.
func results(t *testing.T, out string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(out, "runs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}
