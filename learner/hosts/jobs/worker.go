package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"ringwave/crypto/lockfile"
	"ringwave/learner/hosts/bus"
	"ringwave/radio/intake"
	"ringwave/radio/life"
)

// WorkerOptions say what a Worker is.
type WorkerOptions struct {
	Conn    bus.Conn // of the role of workers
	Name    string   // of its own, of letters, digits, _ and -
	Program string   // Program()
	Slots   int      // how many jobs at a time
	// Scratch is a folder for jobs on their way. One that is begun again there goes on.
	Scratch string
	// Command is what runs ServeChild.
	Command []string
	// Stay says to wait for other jobs when those of a broker are over.
	Stay bool
	// Say hears what a user should know. Busy, if it is not nil, hears how many jobs the
	// worker has, and how many it has done.
	Say  func(string)
	Busy func(jobs, done int)
}

// Worker does jobs.
type Worker struct {
	o WorkerOptions

	mu    sync.Mutex
	queue *bus.Queue
	held  map[*holding]bool
	done  int
	over  bool // a broker has no jobs any more
	began time.Time
	heard map[string]time.Time // when each sweep's broker was heard last
	// refused are the sweeps that do not want this worker.
	refused map[string]bool

	live life.Life // ends when it takes no more jobs, and gives back what it has
}

// holding is a job that the worker has.
type holding struct {
	taken *bus.Taken
	at    held
	stop  chan struct{} // closed when nobody needs it
	once  sync.Once
}

// RunWorker does jobs until ctx ends, there are none any more, or this host cannot: its disk
// is full, or it is another program than the jobs want.
func RunWorker(ctx context.Context, o WorkerOptions) error {
	if o.Slots < 1 || o.Slots > MostSlots {
		return intake.UserError(fmt.Errorf("%d jobs at a time: allowed are 1 to %d", o.Slots, MostSlots))
	}
	if !nameForm.MatchString(o.Name) {
		return fmt.Errorf("the worker's name is %.80q; allowed are up to 64 letters, digits, _ and -", o.Name)
	}
	if err := os.MkdirAll(o.Scratch, 0o755); err != nil {
		return intake.PathError(fmt.Errorf("making the folder for jobs on their way: %w", err))
	}
	w := &Worker{o: o, held: map[*holding]bool{}, began: time.Now(), heard: map[string]time.Time{}, refused: map[string]bool{}}
	end, err := o.Conn.Subscribe(orderSubject("*"), w.ordered)
	if err != nil {
		return err
	}
	defer end()
	ended := context.AfterFunc(ctx, func() { w.live.End(nil) })
	defer ended()
	var running sync.WaitGroup
	for range o.Slots {
		running.Go(w.work)
	}
	beating := make(chan struct{})
	go w.beat(beating)
	running.Wait()
	close(beating)
	if err := w.live.Err(); !errors.Is(err, context.Canceled) && err != nil {
		return err
	}
	return ctx.Err()
}

// ending reports whether the worker takes no more jobs.
func (w *Worker) ending() bool { return w.live.Err() != nil }

// ordered hears what a broker says to all.
func (w *Worker) ordered(m bus.Message) {
	var o order
	if _, err := decode(m.Payload, &o); err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	sweep := strings.Split(m.Subject, ".")[1]
	switch {
	case o.Over:
		w.over = true
		delete(w.heard, sweep)
	case len(w.heard) < mostSweeps:
		w.heard[sweep] = time.Now()
	}
	for h := range w.held {
		if slices.Contains(o.Stop, h.at.Job) && m.Subject == orderSubject(h.at.Sweep) {
			h.once.Do(func() { close(h.stop) })
		}
	}
}

// beat says every second what the worker has.
func (w *Worker) beat(over <-chan struct{}) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		b := beat{Worker: w.o.Name, Slots: w.o.Slots, Jobs: []held{}}
		w.mu.Lock()
		var have []*holding
		for h := range w.held {
			b.Jobs = append(b.Jobs, h.at)
			have = append(have, h)
		}
		done := w.done
		w.mu.Unlock()
		if text, err := encode(b, nil); err == nil {
			_ = w.o.Conn.Publish(beatSubject, text) // the next one will come
		}
		if n%2 == 0 {
			for _, h := range have {
				_ = h.taken.Busy()
			}
		}
		if w.o.Busy != nil {
			w.o.Busy(len(have), done)
		}
		select {
		case <-over:
			return
		case <-ticker.C:
		}
	}
}

// work does one job after the other.
func (w *Worker) work() {
	s := &slot{command: w.o.Command, env: []string{fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.NumCPU()/w.o.Slots))}}
	defer s.end(stopWait)
	for !w.ending() {
		taken := w.next()
		if taken != nil {
			w.handle(s, taken)
			continue
		}
		w.mu.Lock()
		leave := w.over && !w.o.Stay && !w.others("")
		w.mu.Unlock()
		if leave {
			return
		}
	}
}

// takeWait is how long a worker waits for a job before it asks again.
const takeWait = time.Second

// next returns the next job of the queue; nil for none now.
func (w *Worker) next() *bus.Taken {
	ctx, cancel := w.live.Join(context.Background())
	defer cancel()
	w.mu.Lock()
	q := w.queue
	w.mu.Unlock()
	if q == nil {
		within, over := context.WithTimeout(ctx, takeWait)
		defer over()
		var err error
		if q, err = bus.OpenQueue(within, w.o.Conn); err != nil {
			pause(ctx, time.Second) // nobody has made it, or the bus is lost
			return nil
		}
		w.mu.Lock()
		w.queue = q
		w.mu.Unlock()
	}
	taken, err := q.Take(takeWait)
	if err != nil {
		w.mu.Lock()
		w.queue = nil // it may have been made anew
		w.mu.Unlock()
		pause(ctx, time.Second)
	}
	return taken
}

// pause waits, and reports whether ctx has not ended before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// handle does a job that was taken, if its broker says so.
func (w *Worker) handle(s *slot, taken *bus.Taken) {
	h := &holding{taken: taken, at: held{Sweep: taken.Sweep, Job: taken.Job}, stop: make(chan struct{})}
	if !sweepForm.MatchString(taken.Sweep) || !jobForm.MatchString(taken.Job) {
		_ = taken.Done() // it is nobody's
		return
	}
	if w.ending() {
		_ = taken.Return(0)
		return
	}
	if after := w.silent(taken.Sweep); after > 0 {
		_ = taken.Return(after)
		return
	}
	a, err := w.ask(taken.Sweep, request{Verb: grant, Job: taken.Job}, askWait)
	if err != nil {
		_ = taken.Return(retryAfter) // its broker is not there
		return
	}
	switch a.Verdict {
	case drop:
		_ = taken.Done()
		return
	case refused:
		_ = taken.Return(0)
		w.refuse(taken.Sweep, a.Why)
		return
	case begin:
	default:
		_ = taken.Return(retryAfter)
		return
	}
	w.hold(h)
	defer w.release(h)
	w.compute(s, h, a)
}

// refuse ends the worker that a sweep has refused, unless it is another's, too.
func (w *Worker) refuse(sweep, why string) {
	w.mu.Lock()
	w.refused[sweep] = true
	others := w.others(sweep)
	w.mu.Unlock()
	if !others {
		w.live.End(intake.UserError(errors.New(why)))
	}
}

// others reports whether sweeps speak, besides one, that have not refused the worker. The
// caller holds mu.
func (w *Worker) others(but string) bool {
	for sweep, at := range w.heard {
		if sweep != but && !w.refused[sweep] && time.Since(at) < 5*beatEvery {
			return true
		}
	}
	return false
}

// silent returns how long a job is to wait whose broker is not there: other sweeps' jobs, of
// which it may stand in the way, come first. It is 0 where the broker speaks.
func (w *Worker) silent(sweep string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.refused[sweep]:
		return absentAfter
	case time.Since(w.heard[sweep]) < 5*beatEvery:
		return 0
	case time.Since(w.began) < 3*beatEvery:
		return beatEvery / 2 // it could not have been heard yet
	}
	return absentAfter
}

const (
	// mostSweeps bounds the sweeps that a worker knows.
	mostSweeps = 10_000
	// absentAfter is the time after which a job whose broker is not there is tried again. A
	// broker that comes back has all of its jobs be tried at once.
	absentAfter = 20 * time.Second
	// askWait is how long a broker has to answer, and retryAfter the time after which a job that
	// cannot be begun now is tried again.
	askWait    = 5 * time.Second
	retryAfter = 2 * time.Second
	// dataAfter is the time after which a job for which this host has other data is tried again.
	dataAfter = 10 * time.Second
)

func (w *Worker) hold(h *holding) {
	w.mu.Lock()
	w.held[h] = true
	w.mu.Unlock()
}

func (w *Worker) release(h *holding) {
	w.mu.Lock()
	delete(w.held, h)
	w.mu.Unlock()
}

// compute does a job that is the worker's.
func (w *Worker) compute(s *slot, h *holding, a answer) {
	stop := make(chan struct{})
	over := make(chan struct{})
	go func() {
		select {
		case <-w.live.Done():
		case <-h.stop:
		case <-over:
			return
		}
		close(stop)
	}()
	dir := filepath.Join(w.o.Scratch, h.at.Job)
	r := s.do(task{Kind: a.Kind, Body: a.body, Dir: dir}, func(done, of int) {
		w.mu.Lock()
		h.at.Done, h.at.Of = done, of
		w.mu.Unlock()
	}, stop)
	close(over)
	if r.Class != "" {
		w.fail(s, h, a, r)
		return
	}
	archive, err := pack(dir, r.Files)
	if err != nil {
		w.fail(s, h, a, report{Class: machine, Why: err.Error()})
		return
	}
	if len(archive) > mostArchive {
		w.fail(s, h, a, report{Class: bad, Why: fmt.Sprintf("its result has %d bytes; allowed are %d", len(archive), mostArchive)})
		return
	}
	w.deliver(h, archive)
}

// fail says that the job has no result.
func (w *Worker) fail(s *slot, h *holding, a answer, r report) {
	w.release(h) // before its broker knows that nobody has it
	verb := failed
	if r.Class == stopped {
		verb = returned
	}
	log := ""
	if s.log != nil {
		log = printable(s.log.String()) // which JSON makes no longer than a message may be
	}
	answered, err := w.ask(h.at.Sweep, request{Verb: verb, Job: h.at.Job, Class: r.Class, Why: intake.Sentence(r.Why), Log: log}, askWait)
	dropped := err == nil && answered.Verdict == drop
	switch {
	case dropped:
		_ = h.taken.Done()
	case r.Class == data:
		_ = h.taken.Return(dataAfter) // what comes back at once would come before all others
	default:
		_ = h.taken.Return(0)
	}
	if r.Class != stopped && r.Class != machine || dropped {
		w.clear(h) // what it has left is of no use
	}
	switch r.Class {
	case machine:
		w.live.End(fmt.Errorf("%s: %s", a.Title, r.Why))
	case data:
		w.o.Say(fmt.Sprintf("%s: %s", a.Title, r.Why))
		ctx, cancel := w.live.Join(context.Background())
		defer cancel()
		pause(ctx, time.Second) // others have their turn
	case crash, bad:
		w.o.Say(fmt.Sprintf("%s: %s", a.Title, r.Why))
	}
}

// clear removes the job's folder, unless another worker of this host computes the same job.
func (w *Worker) clear(h *holding) {
	dir := filepath.Join(w.o.Scratch, h.at.Job)
	lock, err := lockfile.Open(lockOf(dir))
	if err != nil {
		return
	}
	defer lock.Close()
	_ = os.RemoveAll(dir) // what is left is in nobody's way
	_ = os.Remove(lockOf(dir))
}

// deliver has the broker store the result, however long it is away.
func (w *Worker) deliver(h *holding, archive []byte) {
	w.mu.Lock()
	h.at.Done = h.at.Of
	w.mu.Unlock()
	for {
		a, err := w.ask(h.at.Sweep, request{Verb: result, Job: h.at.Job, result: archive}, 2*askWait)
		switch {
		case err == nil && (a.Verdict == stored || a.Verdict == drop):
			_ = h.taken.Done()
			w.clear(h)
			w.mu.Lock()
			w.done++
			w.mu.Unlock()
			return
		case err == nil && a.Verdict == again:
			_ = h.taken.Return(0)
			w.clear(h)
			return
		case err == nil:
			_ = h.taken.Return(retryAfter)
			return
		}
		// What is on the disk goes on from its end when the worker begins again.
		if w.ending() {
			_ = h.taken.Return(0)
			return
		}
		ctx, cancel := w.live.Join(context.Background())
		pause(ctx, time.Second)
		cancel()
	}
}

// ask asks a sweep's broker.
func (w *Worker) ask(sweep string, r request, wait time.Duration) (answer, error) {
	r.Worker, r.Program = w.o.Name, w.o.Program
	message, err := encode(r, r.result)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	m, err := w.o.Conn.Ask(ctx, askSubject(sweep), message)
	if err != nil {
		return answer{}, err
	}
	return decodeAnswer(m.Payload)
}
