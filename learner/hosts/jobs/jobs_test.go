package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/bus/bustest"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/jobs"
	"ringwave/radio/intake"
)

// childVariable tells this program that it is a worker's child.
const childVariable = "RINGWAVE_JOBS_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := jobs.ServeChild(context.Background(), os.Stdin, os.Stdout, kinds()); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func kinds() map[string]jobs.Kind { return map[string]jobs.Kind{"word": words{}} }

// words are jobs whose body says what becomes of them, and a count of how often each was
// computed in the folder that the second word names.
type words struct{}

func (words) Compute(ctx context.Context, body []byte, dir string, progress func(done, of int)) error {
	fields := strings.Fields(string(body))
	what, log := fields[0], fields[1]
	file, err := os.OpenFile(filepath.Join(log, filepath.Base(dir)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	fmt.Fprintln(file, os.Getpid())
	if err := file.Close(); err != nil {
		return err
	}
	progress(1, 2)
	switch what {
	case "crash":
		go panic("a bug in it")
		select {}
	case "garbage":
		go panic(strings.Repeat("\x01", 28_000))
		select {}
	case "bad":
		return intake.UserError(errors.New("it asks for what is not there"))
	case "fails":
		return errors.New("it does not work")
	case "other":
		return jobs.Other(errors.New("mnist in place of strokes"))
	case "full":
		return fmt.Errorf("writing: %w", syscall.ENOSPC)
	case "waits":
		<-ctx.Done()
		return ctx.Err()
	}
	return os.WriteFile(filepath.Join(dir, "result.txt"), []byte(what), 0o644)
}

func (words) Result(string) ([]string, error) { return []string{"result.txt"}, nil }

func (words) Check(body []byte, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "result.txt"))
	if err != nil {
		return err
	}
	if want := strings.Fields(string(body))[0]; string(text) != want {
		return fmt.Errorf("it is %q in place of %q", text, want)
	}
	return nil
}

// farm is a broker with workers.
type farm struct {
	t      *testing.T
	bench  *bustest.Bench
	broker *jobs.Broker
	conn   bus.Conn
	out    string
	log    string // where each computation leaves a line

	mu   sync.Mutex
	said []string
	end  sync.WaitGroup
	got  map[string]error
}

func newFarm(t *testing.T) *farm {
	t.Helper()
	f := &farm{t: t, bench: bustest.NewSweeps(t, ""), out: t.TempDir(), log: t.TempDir(), got: map[string]error{}}
	f.begin()
	return f
}

// begin begins a broker, after an earlier one, too.
func (f *farm) begin() {
	f.t.Helper()
	f.conn = f.bench.Dial(identity.Sweep, 0, bus.Options{})
	queue, err := bus.NewQueue(f.t.Context(), f.conn)
	if err != nil {
		f.t.Fatal(err)
	}
	f.broker, err = jobs.NewBroker(jobs.BrokerOptions{
		Conn: f.conn, Queue: queue, Sweep: "0123456789abcdef", Program: "program 1", Kinds: kinds(),
		Incoming: filepath.Join(f.out, ".incoming"), Silence: 2 * time.Second, Say: f.say,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(f.broker.Close)
}

func (f *farm) say(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, text)
}

// sayings returns how many sentences were said that have all these words.
func (f *farm) sayings(words ...string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.said {
		has := true
		for _, w := range words {
			has = has && strings.Contains(s, w)
		}
		if has {
			n++
		}
	}
	return n
}

// add puts a job that does what its word says.
func (f *farm) add(word string, n int) string {
	f.t.Helper()
	body := []byte(word + " " + f.log)
	id := jobs.NewID("program 1", body, fmt.Append(nil, n))
	f.end.Add(1)
	err := f.broker.Add(jobs.Job{ID: id, Kind: "word", Title: fmt.Sprint(word, " ", n), Body: body}, filepath.Join(f.out, id), func(err error) {
		f.mu.Lock()
		f.got[id] = err
		f.mu.Unlock()
		f.end.Done()
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// worker runs one until the test ends or stop is called; ended gives its error.
func (f *farm) worker(name, program string, slots int) (stop func(), ended <-chan error) {
	f.t.Helper()
	f.t.Setenv(childVariable, "1")
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan error, 1)
	conn, scratch := f.bench.Dial(identity.Worker, 0, bus.Options{}), f.t.TempDir()
	var running sync.WaitGroup
	running.Go(func() {
		done <- jobs.RunWorker(ctx, jobs.WorkerOptions{
			Conn: conn, Name: name, Program: program, Slots: slots, Scratch: scratch, Command: []string{os.Args[0]}, Say: func(string) {},
		})
	})
	f.t.Cleanup(func() { cancel(); running.Wait() })
	return cancel, done
}

// computed returns how often a job was begun.
func (f *farm) computed(id string) int {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.log, id))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

const deadline = time.Minute

// wait waits until all jobs have ended.
func (f *farm) wait() {
	f.t.Helper()
	over := make(chan bool)
	go func() { f.end.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(deadline):
		f.t.Fatalf("the jobs have not ended in %v: %+v, %q", deadline, f.broker.Status(), f.said)
	}
}

func (f *farm) until(what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(deadline); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: not within %v; said was %q", what, deadline, f.said)
		}
	}
}

// Jobs are done once each, by any of several workers, and their folders hold the results.
func TestJobsAreDoneOnce(t *testing.T) {
	f := newFarm(t)
	var ids []string
	for n := range 40 {
		ids = append(ids, f.add("fine", n))
	}
	f.worker("a", "program 1", 2)
	f.worker("b", "program 1", 2)
	f.wait()
	for _, id := range ids {
		text, err := os.ReadFile(filepath.Join(f.out, id, "result.txt"))
		if err != nil || string(text) != "fine" || f.got[id] != nil || f.computed(id) != 1 {
			t.Errorf("%q, %v, %v, computed %d times", text, err, f.got[id], f.computed(id))
		}
	}
	s := f.broker.Status()
	if s.Ended != 40 || s.Share != 1 || len(s.Workers) != 2 || s.Workers[0].Done+s.Workers[1].Done != 40 {
		t.Errorf("%+v", s)
	}
}

// A job that crashes its process, or cannot be done, is set aside with a sentence and with
// what its process said, and the others go on.
func TestPoisonIsSetAside(t *testing.T) {
	f := newFarm(t)
	crash, bad, fails, fine := f.add("crash", 0), f.add("bad", 0), f.add("fails", 0), f.add("fine", 0)
	f.worker("a", "program 1", 2)
	f.wait()
	for _, want := range []struct {
		id       string
		times    int
		why, log string
	}{
		{crash, 3, "its process ended: exit status 2: panic: a bug in it", "goroutine"},
		{bad, 1, "it asks for what is not there", ""},
		{fails, 3, "it does not work", ""},
	} {
		var failure *jobs.Failure
		if !errors.As(f.got[want.id], &failure) || failure.Why != want.why || !strings.Contains(failure.Log, want.log) {
			t.Errorf("%v in place of %q", f.got[want.id], want.why)
		}
		if n := f.computed(want.id); n != want.times {
			t.Errorf("%s was begun %d times in place of %d", want.why, n, want.times)
		}
		if f.sayings("set aside", want.why) != 1 {
			t.Errorf("said %q of %s", f.said, want.why)
		}
	}
	if f.got[fine] != nil || f.computed(fine) != 1 {
		t.Errorf("the job without a fault: %v, begun %d times", f.got[fine], f.computed(fine))
	}
}

// So is one whose last words are long and no text, which JSON makes longer: a worker that
// could not tell of it would be taken for lost.
func TestLongLastWords(t *testing.T) {
	f := newFarm(t)
	id := f.add("garbage", 0)
	f.worker("a", "program 1", 1)
	f.wait()
	var failure *jobs.Failure
	if !errors.As(f.got[id], &failure) || !strings.Contains(failure.Why, "panic: ") || !strings.Contains(failure.Log, "goroutine") {
		t.Errorf("%.200v", f.got[id])
	}
	if n := f.computed(id); n != 3 {
		t.Errorf("it was begun %d times in place of 3", n)
	}
}

// Workers that are another program, whose disk is full, or that have other data are told
// apart, said once each, and their jobs are done by others.
func TestUnfitWorkers(t *testing.T) {
	f := newFarm(t)
	id := f.add("fine", 0)
	_, ended := f.worker("old", "program 0", 1)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "start the same program") || !intake.IsUserError(err) {
		t.Errorf("another program: %v", err)
	}
	if f.sayings("worker old is another program") != 1 || f.computed(id) != 0 {
		t.Errorf("%q", f.said)
	}
	full := f.add("full", 0)
	_, ended = f.worker("small", "program 1", 1)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("a full disk: %v", err)
	}
	if f.sayings("worker small takes no more runs") != 1 || f.got[full] != nil {
		t.Errorf("%q", f.said)
	}
	if f.computed(id) > 1 {
		t.Error("the job was done twice")
	}
}

// A worker with other data says so once; what it cannot do others do.
func TestOtherData(t *testing.T) {
	f := newFarm(t)
	f.add("other", 0)
	fine := f.add("fine", 0)
	f.worker("a", "program 1", 1)
	f.until("the sentence, and the job that needs none", func() bool {
		f.mu.Lock()
		_, done := f.got[fine]
		f.mu.Unlock()
		return done && f.sayings("worker a cannot do such runs: mnist in place of strokes") == 1
	})
}

// A worker that stops gives its jobs back at once, and another has them done; so does one
// that vanishes, after a while.
func TestWorkersThatGo(t *testing.T) {
	f := newFarm(t)
	id := f.add("waits", 0)
	stop, ended := f.worker("a", "program 1", 1)
	f.until("the job's begin", func() bool { return f.computed(id) == 1 })
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	f.until("its being nobody's", func() bool { return f.broker.Status().Running == 0 })
	if f.sayings("not been heard") != 0 {
		t.Errorf("%q", f.said)
	}
	f.worker("b", "program 1", 1)
	f.until("its being another's", func() bool { return f.computed(id) == 2 })
}

// A result that no broker was there to take is brought to the next one, without being
// computed again.
func TestResultOutlivesTheBroker(t *testing.T) {
	f := newFarm(t)
	id := f.add("fine", 0)
	f.broker.Close()
	f.worker("a", "program 1", 1)
	if f.computed(id) != 0 {
		t.Error("a job was begun without a broker's word")
	}
	f.begin()
	f.end.Done() // the first broker's
	f.add("fine", 0)
	f.wait()
	if f.computed(id) != 1 {
		t.Errorf("computed %d times", f.computed(id))
	}
}

// Jobs of a queue that the bus has lost are put into the new one.
func TestQueueIsLost(t *testing.T) {
	f := newFarm(t)
	id := f.add("fine", 0)
	queue, err := bus.NewQueue(t.Context(), f.conn)
	if err != nil {
		t.Fatal(err)
	}
	f.until("the job in the queue", func() bool {
		left, err := queue.Left(t.Context(), "0123456789abcdef")
		return err == nil && left[id]
	})
	if err := queue.DropAll(t.Context(), "0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
	f.worker("a", "program 1", 1)
	f.wait()
	if f.got[id] != nil {
		t.Error(f.got[id])
	}
}
