package external

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"ringwave/radio/intake"
)

const (
	// longestLine bounds an answer, in bytes: losses of a batch of each of some thousand
	// devices.
	longestLine = 1 << 20
	// lastWords bounds what is kept of what a program prints on standard error.
	lastWords = 4096
	// patience is how long a program may take to end once nothing is asked any more.
	patience = 2 * time.Second
)

// goneError is that of a program that has ended, or does not answer: another start may help.
type goneError struct{ what string }

func (e *goneError) Error() string { return e.what }

// program is a running one.
type program struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     io.Closer
	asked   uint64 // the number of the last request
	broken  bool   // a request was broken off
	errors  *tail
	lines   chan line
	stop    chan struct{} // closed when nobody reads lines any more
	ended   chan error    // what came of it
}

// line is one that it printed, or why there are no more.
type line struct {
	text []byte
	err  error
}

// startProgram starts a program in a process group of its own: Ctrl-C in a terminal is
// Ringwave's, which ends the program when it has what it needs.
func startProgram(c Config, said io.Writer) (*program, error) {
	p := &program{command: exec.Command(c.Command[0], c.Command[1:]...), errors: &tail{}, lines: make(chan line), stop: make(chan struct{}), ended: make(chan error, 1)}
	separate(p.command)
	p.command.Stderr = io.MultiWriter(p.errors, said)
	if c.Data != "" {
		p.command.Env = append(os.Environ(), "RINGWAVE_DATA="+c.Data)
	}
	p.command.WaitDelay = patience
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("cannot be started: %w%s", intake.Cause(err), oneText(c.Command[0]))
	}
	p.in, p.out = in, out
	go p.read(out)
	return p, nil
}

// oneText says what is likely where a program's name has a space.
func oneText(name string) string {
	if !strings.Contains(name, " ") {
		return ""
	}
	return `; each argument is a text of its own: ["python3", "learner.py"]`
}

// read hands lines on until there are no more, and then waits for the end.
func (p *program) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<16)
	for {
		text, err := readLine(r)
		if err != nil && err != errLong {
			// What has closed its output has ended, or is of no use.
			late := time.AfterFunc(patience, func() { kill(p.command) })
			err = p.command.Wait()
			late.Stop()
			p.ended <- err
			close(p.lines)
			return
		}
		select {
		case p.lines <- line{text, err}:
		case <-p.stop:
		}
	}
}

var errLong = fmt.Errorf("it answers a line of more than %d bytes", longestLine)

// readLine returns a line without its end. Of one that is too long it reads no more than that.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		if len(text) > longestLine {
			return nil, errLong
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return nil, err
		}
		return bytes.TrimSpace(text), nil
	}
}

// errInterrupted is that of a request that was broken off.
var errInterrupted = fmt.Errorf("it does not answer within %v of the run's end: %w", patience, context.Canceled)

// ask writes a request and reads the answer, in the time that there is for it: little, once
// interrupted is closed.
func (p *program) ask(r request, answer any, within time.Duration, interrupted <-chan struct{}) error {
	p.asked++
	r.ID = p.asked
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("putting the request into words: %w", err)
	}
	select {
	case l, open := <-p.lines:
		if !open {
			return p.gone()
		}
		return fmt.Errorf("it speaks unasked: %s; what it prints belongs on standard error", excerpt(l.text))
	default:
	}
	late := time.NewTimer(within)
	defer late.Stop()
	wrote := make(chan error, 1)
	go func() {
		_, err := p.in.Write(append(text, '\n'))
		wrote <- err
	}()
	for {
		select {
		case l, open := <-p.lines:
			if !open {
				return p.gone()
			}
			if l.err != nil {
				return l.err
			}
			return decode(l.text, r.ID, answer)
		case <-interrupted:
			interrupted = nil
			short := time.AfterFunc(min(patience, within), func() { kill(p.command) })
			defer short.Stop()
			p.broken = true
		case <-late.C:
			kill(p.command)
			return &goneError{fmt.Sprintf("it does not answer within %v%s", within, p.errors.words())}
		}
	}
}

// gone says how a program has ended.
func (p *program) gone() error {
	if p.broken {
		return errInterrupted
	}
	how := "it has ended"
	select {
	case err := <-p.ended:
		p.ended <- err
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			how += " with " + exit.Error()
		}
	default:
	}
	return &goneError{how + p.errors.words()}
}

// end tells the program that nothing comes any more, and kills it if it goes on.
func (p *program) end() {
	close(p.stop)
	p.in.Close()
	late := time.AfterFunc(patience, func() {
		kill(p.command)
		p.out.Close() // which a program that it has started may have open
	})
	defer late.Stop()
	p.ended <- <-p.ended
	kill(p.command) // what it has started and left
}

// recordMost bounds what is kept of what programs print on standard error, in bytes, and
// recordEarly what is kept of it before there is anywhere to write it to.
const (
	recordMost  = 16 << 20
	recordEarly = 64 << 10
)

// record writes down what programs print on standard error. It never fails a program.
type record struct {
	mu    sync.Mutex
	to    io.Writer
	early []byte
	kept  int
}

// begin has all written to w.
func (r *record) begin(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = w
	if len(r.early) > 0 {
		_, _ = w.Write(r.early)
		r.early = nil
	}
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := recordMost
	if r.to == nil {
		most = recordEarly
	}
	part := b[:max(0, min(len(b), most-r.kept))]
	r.kept += len(part)
	if r.to == nil {
		r.early = append(r.early, part...)
	} else if len(part) > 0 {
		_, _ = r.to.Write(part) // a full disk is not the program's fault
	}
	return len(b), nil
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-lastWords):]
	return len(b), nil
}

// words returns the last line, for an error.
func (t *tail) words() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Sprintf("; its last words are %.300q", last)
	}
	return ""
}
