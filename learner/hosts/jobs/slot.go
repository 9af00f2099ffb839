package jobs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// slot is a place of a worker for one job at a time, with a process that computes them.
type slot struct {
	command []string
	env     []string

	process *exec.Cmd // nil before the first job, and after one that crashed
	in      io.WriteCloser
	reports chan report // closed when the process says no more
	log     *tail
}

// start begins the process.
func (s *slot) start() error {
	s.log = &tail{}
	p := exec.Command(s.command[0], s.command[1:]...)
	p.Env, p.Stderr = append(os.Environ(), s.env...), s.log
	in, err := p.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting a process for jobs: %w", err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting a process for jobs: %w", err)
	}
	if err := p.Start(); err != nil {
		return fmt.Errorf("starting a process for jobs: %w", err)
	}
	s.process, s.in, s.reports = p, in, make(chan report, 16)
	go read(out, s.reports)
	return nil
}

// read passes on what a child says, until it says no more.
func read(out io.Reader, reports chan<- report) {
	defer close(reports)
	lines := bufio.NewReader(out)
	for {
		var r report
		line, err := readLine(lines, mostReport)
		if err != nil || json.Unmarshal(line, &r) != nil || r.Done < 0 || r.Done > r.Of {
			return
		}
		reports <- r
	}
}

// do computes a task. It tells how far it is. Where stop is closed the process is asked to
// end, and given some time for it.
func (s *slot) do(t task, progress func(done, of int), stop <-chan struct{}) report {
	if s.process == nil {
		if err := s.start(); err != nil {
			return report{Class: machine, Why: err.Error()}
		}
	}
	line, err := json.Marshal(t)
	if err != nil {
		return report{Class: bad, Why: err.Error()}
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return s.died()
	}
	still := time.NewTimer(stillAlive)
	defer still.Stop()
	for {
		select {
		case r, ok := <-s.reports:
			if !ok {
				return s.died()
			}
			if r.End {
				return r
			}
			progress(r.Done, r.Of)
			still.Reset(stillAlive)
		case <-still.C:
			s.end(0)
			return report{Class: crash, Why: fmt.Sprintf("its process said nothing for %v, and was killed", stillAlive)}
		case <-stop:
			s.end(stopWait)
			return report{Class: stopped, Why: "the worker ends"}
		}
	}
}

// stopWait is how long a process has to end its round.
const stopWait = 20 * time.Second

// end ends the process, which has some time for it.
func (s *slot) end(wait time.Duration) {
	if s.process == nil {
		return
	}
	_ = s.in.Close() // which is how it learns that it is to end
	timer := time.AfterFunc(wait, func() { _ = s.process.Process.Kill() })
	for range s.reports {
	}
	_ = s.process.Wait() // its status was its last report's to tell
	timer.Stop()
	s.process = nil
}

// died says why the process is no more.
func (s *slot) died() report {
	for range s.reports {
	}
	_ = s.in.Close()
	_ = s.process.Process.Kill() // one that speaks nonsense lives on
	err := s.process.Wait()
	s.process = nil
	why := "its process ended"
	if err != nil {
		why += ": " + err.Error()
	}
	if last := s.log.reason(); last != "" {
		why += ": " + last
	}
	return report{Class: crash, Why: why}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps the last mostLog bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*mostLog {
		t.text = append(t.text[:0], t.text[len(t.text)-mostLog:]...)
	}
	return len(p), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cut(string(t.text), mostLog)
}

// reason returns the line that says why a program of Go ended, if there is one.
func (t *tail) reason() string {
	for _, line := range strings.Split(t.String(), "\n") {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "runtime: ") {
			return line
		}
	}
	return ""
}
