package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/radio/intake"
	"ringwave/radio/life"
)

// BrokerOptions say what a Broker is made of.
type BrokerOptions struct {
	Conn    bus.Conn // of the role of sweeps
	Queue   *bus.Queue
	Sweep   string // 16 hexadecimal digits that name these jobs on the bus
	Program string // what workers must be: Program()
	Kinds   map[string]Kind
	// Incoming is a folder for results on their way, on the disk that they are to be on.
	Incoming string
	// Silence is how long a worker may say nothing before its jobs are others'; 0 for
	// DefaultSilence.
	Silence time.Duration
	// Attempts are how often a job may fail before it is set aside, and Losses how often the
	// worker that has it may vanish; 0 for DefaultAttempts and DefaultLosses.
	Attempts, Losses int
	// Say hears what a user should know, a sentence each.
	Say func(string)
}

// The defaults of BrokerOptions.
const (
	DefaultSilence  = 15 * time.Second
	DefaultAttempts = 3
	DefaultLosses   = 5
)

// state is where a job stands.
type state int

const (
	waiting state = iota // in the queue, or about to be
	running              // a worker's
	storing              // its result has come
	ended                // done or set aside
)

// entry is a job.
type entry struct {
	job    Job
	dir    string // of its result
	state  state
	queued bool
	worker string
	heard  time.Time // when its worker last said that it has it
	share  float64   // of it that is done
	failed int
	lost   int
	// gaveBack is the worker that gave it back last, and when.
	gaveBack string
	at       time.Time
	done     func(error) // is told nil, or a *Failure
}

// Broker gives jobs to workers, and takes in their results.
type Broker struct {
	o    BrokerOptions
	stop []func() // of subscriptions

	mu      sync.Mutex
	entries map[string]*entry
	ended   int
	aside   int
	workers map[string]*WorkerStatus
	told    map[string]bool // what was said of a worker once
	away    bool            // the bus is not there
	back    time.Time       // when that changed
	err     error           // why jobs cannot be done
	broke   chan struct{}   // closed when err is set

	changed chan struct{} // there is something to put into the queue
	live    life.Life     // ends with Close
	closed  bool
	running sync.WaitGroup
	store   chan struct{} // room for results that are written
}

// NewBroker begins to answer workers.
func NewBroker(o BrokerOptions) (*Broker, error) {
	o.Silence, o.Attempts, o.Losses = cmp.Or(o.Silence, DefaultSilence), cmp.Or(o.Attempts, DefaultAttempts), cmp.Or(o.Losses, DefaultLosses)
	if !sweepForm.MatchString(o.Sweep) {
		return nil, fmt.Errorf("the name %q of jobs on the bus: allowed are 16 hexadecimal digits", o.Sweep)
	}
	// What was on its way when an earlier broker ended is sent again.
	if err := errors.Join(os.RemoveAll(o.Incoming), os.MkdirAll(o.Incoming, 0o755)); err != nil {
		return nil, fmt.Errorf("making the folder for results on their way: %w", err)
	}
	b := &Broker{o: o, entries: map[string]*entry{}, workers: map[string]*WorkerStatus{}, told: map[string]bool{}, back: time.Now(),
		changed: make(chan struct{}, 1), broke: make(chan struct{}), store: make(chan struct{}, 4)}
	for subject, handle := range map[string]func(bus.Message){askSubject(o.Sweep): b.asked, beatSubject: b.heard} {
		stop, err := o.Conn.Subscribe(subject, handle)
		if err != nil {
			b.Close()
			return nil, err
		}
		b.stop = append(b.stop, stop)
	}
	b.running.Go(b.feed)
	b.running.Go(b.watch)
	return b, nil
}

// Connected says whether there is a connection to the bus: without one no worker is heard.
func (b *Broker) Connected(is bool) {
	b.mu.Lock()
	b.away, b.back = !is, time.Now()
	b.mu.Unlock()
}

// Close ends the broker. Workers go on with what they have, and offer its result to the
// next broker of the same name.
func (b *Broker) Close() {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.closed = true
	b.live.End(nil)
	b.mu.Unlock()
	for _, stop := range b.stop {
		stop()
	}
	b.running.Wait()
}

// Over tells workers that there are no jobs any more.
func (b *Broker) Over() error { return b.order(order{Over: true}) }

func (b *Broker) order(o order) error {
	text, err := encode(o, nil)
	if err != nil {
		return err
	}
	return b.o.Conn.Publish(orderSubject(b.o.Sweep), text)
}

// Add puts a job into the queue. Its result is to be the folder dir, which is not there yet;
// done is told nil when it is, or else a *Failure. An ID that is there already is an error.
func (b *Broker) Add(j Job, dir string, done func(error)) error {
	if b.o.Kinds[j.Kind] == nil || !jobForm.MatchString(j.ID) {
		return fmt.Errorf("the job %q is of the kind %q; allowed are an ID of NewID and a kind that is known", j.ID, j.Kind)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[j.ID]; e != nil && e.state != ended {
		return intake.UserError(fmt.Errorf("%s is the same as %s: allowed is each once", j.Title, e.job.Title))
	}
	b.entries[j.ID] = &entry{job: j, dir: dir, done: done}
	b.nudge()
	return nil
}

// Do has a job done, and returns when its result is the folder dir, or with a *Failure.
func (b *Broker) Do(ctx context.Context, j Job, dir string, progress func(share float64)) error {
	outcome := make(chan error, 1)
	if err := b.Add(j, dir, func(err error) { outcome <- err }); err != nil {
		return err
	}
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-outcome:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-b.broke:
			return b.Err()
		case <-b.live.Done():
			return errClosed
		case <-ticker.C:
			b.mu.Lock()
			share := b.entries[j.ID].share
			b.mu.Unlock()
			progress(share)
		}
	}
}

// nudge has the queue be fed. The caller holds mu.
func (b *Broker) nudge() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// errClosed is the error of jobs that were not done when the broker was closed.
var errClosed = errors.New("the jobs' broker was closed")

// Fail has all who wait for jobs know why they cannot be done.
func (b *Broker) Fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.breaks(err)
}

// breaks keeps the first reason. The caller holds mu.
func (b *Broker) breaks(err error) {
	if b.err == nil {
		b.err = err
		close(b.broke)
	}
}

// Err returns why jobs cannot be done; nil where they can.
func (b *Broker) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// WorkerStatus is a worker as the broker has heard of it.
type WorkerStatus struct {
	Name  string    `json:"name"`
	Slots int       `json:"slots"` // how many jobs it does at a time
	Jobs  int       `json:"jobs"`  // of these that it has
	Done  int       `json:"done"`  // that it has done in this sitting
	Heard time.Time `json:"heard"`
}

// Status is where the broker's jobs stand.
type Status struct {
	Jobs    int            `json:"jobs"`
	Ended   int            `json:"ended"` // done or set aside
	Aside   int            `json:"aside"`
	Running int            `json:"running"`
	Share   float64        `json:"share"` // of the work, jobs on their way counted in part
	Workers []WorkerStatus `json:"workers"`
}

// Status returns where the jobs stand, and the workers that were heard lately.
func (b *Broker) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Status{Jobs: len(b.entries), Ended: b.ended, Aside: b.aside, Workers: []WorkerStatus{}}
	work := float64(b.ended)
	for _, e := range b.entries {
		if e.state == running || e.state == storing {
			s.Running++
			work += e.share
		}
	}
	s.Share = work / float64(max(1, s.Jobs))
	for _, w := range b.workers {
		if time.Since(w.Heard) < b.o.Silence {
			s.Workers = append(s.Workers, *w)
		}
	}
	slices.SortFunc(s.Workers, func(a, c WorkerStatus) int { return cmp.Compare(a.Name, c.Name) })
	return s
}

// OnItsWay is a job that a worker has.
type OnItsWay struct {
	Worker string
	Share  float64 // of it that is done
}

// Running returns the jobs that workers have, by their IDs.
func (b *Broker) Running() map[string]OnItsWay {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := map[string]OnItsWay{}
	for id, e := range b.entries {
		if e.state == running || e.state == storing {
			list[id] = OnItsWay{e.worker, e.share}
		}
	}
	return list
}

// once says a sentence that was not said before. The caller holds mu.
func (b *Broker) once(text string) {
	if !b.told[text] {
		b.told[text] = true
		b.o.Say(text)
	}
}

// heard takes in what a worker says of itself.
func (b *Broker) heard(m bus.Message) {
	beat, err := decodeBeat(m.Payload)
	if err != nil {
		b.o.Say("what a worker says of itself is not understood: " + err.Error())
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	w := b.worker(beat.Worker)
	w.Slots, w.Jobs, w.Heard = beat.Slots, 0, now
	for _, h := range beat.Jobs {
		e := b.entries[h.Job]
		if h.Sweep != b.o.Sweep || e == nil {
			continue
		}
		if e.state == waiting && (e.gaveBack != beat.Worker || now.Sub(e.at) > lateBeat) {
			e.state, e.worker = running, beat.Worker // an earlier broker has given it, or this one has given it up
		}
		if e.state == running && e.worker == beat.Worker {
			e.heard, e.share = now, float64(h.Done)/float64(max(1, h.Of))
			w.Jobs++
		}
	}
}

// worker returns that of a name. The caller holds mu.
func (b *Broker) worker(name string) *WorkerStatus {
	w := b.workers[name]
	if w == nil {
		w = &WorkerStatus{Name: name, Slots: 1}
		b.workers[name] = w
	}
	w.Heard = time.Now()
	return w
}

// asked answers a worker.
func (b *Broker) asked(m bus.Message) {
	r, err := decodeRequest(m.Payload)
	if err != nil {
		b.o.Say("what a worker asks is not understood: " + err.Error())
		return
	}
	if r.Verb != result {
		b.respond(m, b.answer(r))
		return
	}
	// Its files are written beside what others ask.
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.running.Go(func() {
		b.store <- struct{}{}
		defer func() { <-b.store }()
		b.respond(m, b.take(r))
	})
}

func (b *Broker) respond(m bus.Message, a answer) {
	if a.Verdict == "" {
		return // the worker asks again
	}
	text, err := encode(a, a.body)
	if err == nil {
		err = b.o.Conn.Respond(m, text)
	}
	if err != nil && !errors.Is(err, bus.ErrLost) && !errors.Is(err, bus.ErrClosed) {
		b.o.Say("answering a worker: " + err.Error())
	}
}

// answer says what becomes of a job.
func (b *Broker) answer(r request) answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.worker(r.Worker)
	e := b.entries[r.Job]
	switch {
	case r.Program != b.o.Program:
		b.once(fmt.Sprintf("worker %s is another program (%.100s), and is refused: these runs want %s", r.Worker, r.Program, b.o.Program))
		return answer{Verdict: refused, Why: fmt.Sprintf("this worker is %s, and these runs want %s: start the same program", r.Program, b.o.Program)}
	case e == nil || e.state == ended:
		return answer{Verdict: drop}
	case e.state == storing, e.state == running && e.worker != r.Worker:
		if r.Verb == grant {
			return answer{Verdict: later}
		}
		return answer{Verdict: drop} // it is not this worker's any more
	case r.Verb == grant:
		e.state, e.worker, e.heard, e.share = running, r.Worker, time.Now(), 0
		return answer{Verdict: begin, Kind: e.job.Kind, Title: e.job.Title, body: e.job.Body}
	}
	if r.Verb == failed {
		return b.fail(e, r)
	}
	e.giveBack(r.Worker)
	return answer{Verdict: again}
}

// giveBack has a job wait for another worker.
func (e *entry) giveBack(worker string) {
	e.state, e.worker, e.gaveBack, e.at = waiting, "", worker, time.Now()
}

// lateBeat is how much later a worker may be heard to have a job that it has given back.
const lateBeat = 5 * beatEvery

// fail takes in that a job has no result. The caller holds mu.
func (b *Broker) fail(e *entry, r request) answer {
	e.giveBack(r.Worker)
	switch r.Class {
	case machine:
		b.once(fmt.Sprintf("worker %s takes no more runs, and gives %s back: %s", r.Worker, e.job.Title, r.Why))
		return answer{Verdict: again}
	case data:
		b.once(fmt.Sprintf("worker %s cannot do such runs: %s", r.Worker, r.Why))
		return answer{Verdict: again}
	case stopped:
		return answer{Verdict: again}
	case crash:
		e.failed++
		if e.failed < b.o.Attempts {
			b.o.Say(fmt.Sprintf("%s failed at worker %s, attempt %d of %d: %s", e.job.Title, r.Worker, e.failed, b.o.Attempts, r.Why))
			return answer{Verdict: again}
		}
	}
	b.end(e, &Failure{e.job, r.Why, r.Log})
	return answer{Verdict: drop}
}

// end tells what became of a job. The caller holds mu.
func (b *Broker) end(e *entry, failure *Failure) {
	e.state = ended
	b.ended++
	e.job.Body = nil // which may be long
	done := e.done
	e.done = nil
	if failure == nil {
		go done(nil)
		return
	}
	b.aside++
	b.o.Say("set aside: " + failure.Error())
	go done(failure)
}

// take stores a result, whoever brings it first.
func (b *Broker) take(r request) answer {
	e, a := b.arrive(r)
	if e == nil {
		return a
	}
	err := b.write(e, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	var disk *storeError
	switch {
	case errors.As(err, &disk):
		e.state, e.worker, e.heard = running, r.Worker, time.Now()
		b.breaks(fmt.Errorf("storing the result of %s: %w", e.job.Title, err))
		return answer{}
	case err != nil:
		return b.fail(e, request{Worker: r.Worker, Class: crash, Why: "its result cannot be used: " + err.Error()})
	}
	b.worker(r.Worker).Done++
	if e.worker != r.Worker {
		// Another has it, too, which may not have heard: then its result comes for nothing.
		_ = b.order(order{Stop: []string{e.job.ID}})
	}
	b.end(e, nil)
	return answer{Verdict: stored}
}

// arrive returns the job whose result has come; or none, and what to say.
func (b *Broker) arrive(r request) (*entry, answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.worker(r.Worker)
	e := b.entries[r.Job]
	switch {
	case r.Program != b.o.Program:
		return nil, answer{Verdict: refused, Why: "the result is another program's"}
	case b.err != nil || e != nil && e.state == storing:
		return nil, answer{} // ask again
	case e == nil || e.state == ended:
		return nil, answer{Verdict: drop}
	}
	e.state = storing
	return e, answer{}
}

// write has the result's folder appear, whole.
func (b *Broker) write(e *entry, r request) error {
	temp := filepath.Join(b.o.Incoming, e.job.ID)
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o755)); err != nil {
		return &storeError{err}
	}
	defer os.RemoveAll(temp)
	if err := unpack(r.result, temp); err != nil {
		return err
	}
	if err := b.o.Kinds[e.job.Kind].Check(e.job.Body, temp); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(e.dir), 0o755); err != nil {
		return &storeError{err}
	}
	if err := os.Rename(temp, e.dir); err != nil {
		return &storeError{err}
	}
	return nil
}

// feed puts into the queue what is not in it.
func (b *Broker) feed() {
	ctx, cancel := b.live.Join(context.Background())
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	reconcile := time.Now()
	for {
		select {
		case <-b.live.Done():
			return
		case <-b.changed:
		case <-ticker.C:
		}
		if time.Since(reconcile) > b.o.Silence/2 {
			reconcile = time.Now()
			b.reconcile(ctx)
		}
		b.put(ctx)
	}
}

// put puts jobs that wait into the queue.
func (b *Broker) put(ctx context.Context) {
	var names []string
	b.mu.Lock()
	for id, e := range b.entries {
		if e.state == waiting && !e.queued {
			names = append(names, id)
		}
	}
	b.mu.Unlock()
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := b.o.Queue.Put(ctx, b.o.Sweep, names...); err != nil {
		if ctx.Err() == nil {
			b.mu.Lock()
			b.once(err.Error())
			b.mu.Unlock()
		}
		return // the next turn does
	}
	b.mu.Lock()
	for _, id := range names {
		b.entries[id].queued = true
	}
	b.mu.Unlock()
}

// reconcile looks what is in the queue: it may have lost what it acknowledged, and kept what
// is done.
func (b *Broker) reconcile(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	b.mu.Lock()
	var before []string
	for id, e := range b.entries {
		if e.queued && e.state != ended {
			before = append(before, id)
		}
	}
	b.mu.Unlock()
	if err := b.o.Queue.Mend(ctx); err != nil {
		return // the next turn does
	}
	left, err := b.o.Queue.Left(ctx, b.o.Sweep)
	if err != nil {
		return
	}
	b.mu.Lock()
	var over []string
	for _, id := range before {
		if !left[id] {
			b.entries[id].queued = false
		}
	}
	for id := range left {
		if e := b.entries[id]; e == nil || e.state == ended {
			over = append(over, id)
		}
	}
	b.mu.Unlock()
	for _, id := range over {
		if b.o.Queue.Drop(ctx, b.o.Sweep, id) != nil {
			return
		}
	}
}

// watch gives the jobs of workers that are not heard any more to others.
func (b *Broker) watch() {
	ctx, cancel := b.live.Join(context.Background())
	defer cancel()
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	_ = b.order(order{}) // which workers that wait need not wait for
	for {
		select {
		case <-b.live.Done():
			return
		case <-ticker.C:
		}
		_ = b.order(order{}) // it is here: the next one will come
		for _, id := range b.vanished() {
			// Put again it is given out at once.
			if b.o.Queue.Drop(ctx, b.o.Sweep, id) != nil {
				continue
			}
			b.mu.Lock()
			b.entries[id].queued = false
			b.nudge()
			b.mu.Unlock()
		}
	}
}

// vanished returns the jobs whose workers are not heard, which are nobody's now.
func (b *Broker) vanished() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away || time.Since(b.back) < b.o.Silence {
		return nil // workers may not be back yet
	}
	for id, e := range b.entries {
		if e.state != running || time.Since(e.heard) < b.o.Silence {
			continue
		}
		e.lost++
		b.o.Say(fmt.Sprintf("worker %s has not been heard for %v: %s goes to another", e.worker, b.o.Silence, e.job.Title))
		e.state, e.worker = waiting, ""
		if e.lost >= b.o.Losses {
			b.end(e, &Failure{e.job, fmt.Sprintf("%d workers that had it were not heard any more", e.lost), ""})
			continue
		}
		ids = append(ids, id)
	}
	return ids
}
