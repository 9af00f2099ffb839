package jobs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ringwave/crypto/lockfile"
	"ringwave/radio/intake"
)

// task is what a worker tells its child: a line of JSON.
type task struct {
	Kind string `json:"kind"`
	Body []byte `json:"body"`
	Dir  string `json:"dir"`
}

// report is what a child says to its worker: a line of JSON, one every tellEvery at least.
type report struct {
	Done int `json:"done"`
	Of   int `json:"of"`
	// End says that the task has ended: with its result, the files of these names, or with a
	// class and a sentence.
	End   bool     `json:"end,omitempty"`
	Files []string `json:"files,omitempty"`
	Class class    `json:"class,omitempty"`
	Why   string   `json:"why,omitempty"`
}

const (
	// tellEvery is how often a child speaks. One that says nothing for stillAlive is taken for
	// dead.
	tellEvery  = time.Second
	stillAlive = 30 * time.Second
	// mostTask bounds a line to a child, mostReport one of it, in bytes.
	mostTask   = 128 << 20
	mostReport = 1 << 16
	// lockWait is how long a task's folder may still be held by a child whose worker has died.
	lockWait = time.Minute
)

// ServeChild computes tasks that a worker writes to in, one after the other, and tells out
// how far they are, until in ends or ctx does.
func ServeChild(ctx context.Context, in io.Reader, out io.Writer, kinds map[string]Kind) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tasks := make(chan task)
	go func() {
		// Its end is that of the worker, whatever is being computed.
		defer cancel()
		defer close(tasks)
		lines := bufio.NewReaderSize(in, 1<<16)
		for {
			var t task
			line, err := readLine(lines, mostTask)
			if err != nil || json.Unmarshal(line, &t) != nil {
				return
			}
			select {
			case tasks <- t:
			case <-ctx.Done():
				return
			}
		}
	}()
	c := &child{out: json.NewEncoder(out), kinds: kinds}
	for t := range tasks {
		if err := c.do(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// readLine returns a line of at most so many bytes, without its end.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > most {
			return nil, fmt.Errorf("a line of more than %d bytes", most)
		}
		if err == nil {
			return line[:len(line)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// child computes tasks.
type child struct {
	kinds map[string]Kind

	mu  sync.Mutex
	out *json.Encoder
	at  report // what was said last
}

// do computes a task and says how it ended. The error is that nobody listens.
func (c *child) do(ctx context.Context, t task) error {
	c.tell(func(r *report) { *r = report{} })
	over := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(tellEvery)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				c.tell(func(*report) {})
			}
		}
	})
	files, err := c.compute(ctx, t)
	close(over)
	ticking.Wait()
	return c.tell(func(r *report) {
		r.End, r.Files = true, files
		if err != nil {
			r.Class, r.Why = classOf(err), intake.Sentence(err.Error())
		}
	})
}

func (c *child) tell(change func(*report)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.at)
	if err := c.out.Encode(c.at); err != nil {
		return fmt.Errorf("telling the worker: %w", err)
	}
	return nil
}

// compute returns the names of the result's files.
func (c *child) compute(ctx context.Context, t task) ([]string, error) {
	kind := c.kinds[t.Kind]
	if kind == nil {
		return nil, intake.UserError(fmt.Errorf("no job of the kind %.40q is known here", t.Kind))
	}
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the job's folder: %w", err)
	}
	lock, err := holdFolder(ctx, t.Dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	err = kind.Compute(ctx, t.Body, t.Dir, func(done, of int) {
		c.mu.Lock()
		c.at.Done, c.at.Of = done, of
		c.mu.Unlock()
	})
	if err != nil {
		return nil, err
	}
	return kind.Result(t.Dir)
}

// lockOf returns the file beside a task's folder that who is at the task holds.
func lockOf(dir string) string { return filepath.Clean(dir) + ".lock" }

// holdFolder locks a task's folder. A child whose worker was killed lets go of it a moment
// later.
func holdFolder(ctx context.Context, dir string) (*lockfile.File, error) {
	path := lockOf(dir)
	for until := time.Now().Add(lockWait); ; {
		lock, err := lockfile.Open(path)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, lockfile.ErrHeld) {
			return nil, fmt.Errorf("locking the job's folder: %w", err)
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("%s is another process's: %w", dir, context.Canceled)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
