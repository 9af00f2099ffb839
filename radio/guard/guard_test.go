package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
)

// patience bounds every wait of these tests; none comes near it unless something hangs.
const patience = 30 * time.Second

// board is one that a guard may watch.
type board struct {
	mu       sync.Mutex
	off      int   // how often it was switched off
	refuses  int   // how often it does not go off, before it does
	ill      error // why it never does
	closed   bool
	switched chan struct{} // has a token after each attempt
}

func (b *board) Off() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() {
		select {
		case b.switched <- struct{}{}:
		default:
		}
	}()
	if b.refuses > 0 {
		b.refuses--
		return errors.New("not now")
	}
	if b.ill != nil {
		return b.ill
	}
	b.off++
	return nil
}

func (b *board) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

func (b *board) state() (off int, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.off, b.closed
}

// field are boards by their URIs, and a guard over them.
type field struct {
	boards  map[string]*board
	log     bytes.Buffer
	in      *io.PipeWriter
	program net.Conn // the guard's answers
	ended   chan error
}

func newField(names ...string) *field {
	f := emptyField(names...)
	f.serve(f.open, offPatience)
	return f
}

// emptyField is a field without a guard yet.
func emptyField(names ...string) *field {
	f := &field{boards: map[string]*board{}, ended: make(chan error, 1)}
	for _, n := range names {
		f.boards["test:"+n] = &board{switched: make(chan struct{}, 1)}
	}
	return f
}

// serve starts a guard.
func (f *field) serve(open Open, patience time.Duration) {
	in, toGuard := io.Pipe()
	fromGuard, out := net.Pipe()
	f.in, f.program = toGuard, fromGuard
	go func() {
		err := serve(in, out, open, &f.log, patience)
		_ = out.Close()
		f.ended <- err
	}()
}

func (f *field) open(_ context.Context, u radio.URI) (Switch, error) {
	b, ok := f.boards[u.String()]
	if !ok {
		return nil, fmt.Errorf("there is no %s\nat all", u)
	}
	return b, nil
}

// end waits for the guard's end and gives what it has logged.
func (f *field) end(t *testing.T) (string, error) {
	t.Helper()
	select {
	case err := <-f.ended:
		return f.log.String(), err
	case <-time.After(patience):
		t.Fatal("the guard does not end")
		return "", nil
	}
}

// connect returns the program's side.
func (f *field) connect(t *testing.T) *Client {
	t.Helper()
	c, err := connect(t.Context(), f.program, f.in)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func watchOver(t *testing.T, c *Client, name string, limit time.Duration) radio.Watch {
	t.Helper()
	w, err := c.Watch(t.Context(), radio.URI{Scheme: "test", Name: name}, limit)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The end of the pipe switches off what was not left, whatever it takes, and nothing else.
func TestEnd(t *testing.T) {
	f := newField("a", "b", "left")
	f.boards["test:b"].refuses = 3
	c := f.connect(t)
	watchOver(t, c, "a", 0)
	watchOver(t, c, "b", time.Minute)
	watchOver(t, c, "left", time.Minute).Release()
	_ = f.in.Close()
	log, err := f.end(t)
	if err != nil || log != "ringwave guard: the program has ended without switching them off: switched off test:a, test:b\n" {
		t.Errorf("%q, %v", log, err)
	}
	for name, want := range map[string]int{"test:a": 1, "test:b": 1, "test:left": 0} {
		if off, closed := f.boards[name].state(); off != want || !closed {
			t.Errorf("%s: switched off %d times, closed %v", name, off, closed)
		}
	}
	<-c.life.Done() // the guard's pipe has ended
	if err := c.Err(); !errors.Is(err, radio.ErrGuard) {
		t.Errorf("without a guard: %v", err)
	}
}

// A program that leaves all its boards is left alone.
func TestOrderly(t *testing.T) {
	f := newField("a")
	c := f.connect(t)
	watchOver(t, c, "a", time.Minute).Release()
	c.endWhenLeft()
	if log, err := f.end(t); err != nil || log != "" {
		t.Errorf("%q, %v", log, err)
	}
	if off, closed := f.boards["test:a"].state(); off != 0 || !closed {
		t.Errorf("switched off %d times, closed %v", off, closed)
	}
}

// A board that cannot be switched off is named.
func TestStaysOn(t *testing.T) {
	f := emptyField("a", "b")
	f.serve(f.open, 10*offPause)
	f.boards["test:a"].ill = errors.New("ill\nand worse")
	c := f.connect(t)
	watchOver(t, c, "a", 0)
	watchOver(t, c, "b", 0)
	_ = f.in.Close()
	log, err := f.end(t)
	want := "ringwave guard: the program has ended without switching them off: switched off test:b; test:a could not be switched off, unplug it: ill; and worse\n"
	if err != nil || log != want {
		t.Errorf("%q, %v", log, err)
	}
}

// A refusal says why, and a guard has no board twice.
func TestRefused(t *testing.T) {
	f := newField("a")
	c := f.connect(t)
	_, err := c.Watch(t.Context(), radio.URI{Scheme: "test", Name: "none"}, 0)
	if !errors.Is(err, radio.ErrGuard) || !strings.Contains(err.Error(), "refuses: there is no test:none; at all") {
		t.Error(err)
	}
	if _, err := c.Watch(t.Context(), radio.URI{Scheme: "test", Name: "a"}, -1); err == nil || !strings.Contains(err.Error(), "allowed is 0 to 10m0s") {
		t.Error(err)
	}
	_ = f.in.Close()
	if log, err := f.end(t); err != nil || log != "" {
		t.Errorf("%q, %v", log, err)
	}
}

// raw speaks to a guard by hand.
type raw struct {
	t     *testing.T
	f     *field
	lines reader
}

func newRaw(t *testing.T, f *field) *raw {
	r := &raw{t, f, newReader(f.program)}
	r.want("guard 1")
	return r
}

func (r *raw) say(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.f.in, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) want(line string) {
	r.t.Helper()
	_ = r.f.program.SetReadDeadline(time.Now().Add(patience))
	m, err := r.lines.next()
	if err != nil || m.String() != line {
		r.t.Fatalf("%q, %v; want %q", m, err, line)
	}
}

// A program that gives no sign of life has its boards switched off, once and for all: at
// each sign that it gives later they are switched off again, and it is told.
func TestSilence(t *testing.T) {
	f := newField("a", "b")
	a := f.boards["test:a"]
	r := newRaw(t, f)
	r.say("watch 1 20 test:a")
	r.want("watching 1")
	const told = "fired the program gave no sign of life for 20ms"
	r.want(told)
	<-a.switched
	for range 3 {
		r.say("alive 7")
		r.want(told)
		<-a.switched
	}
	r.say("watch 2 20 test:b")
	r.want(told)
	r.want("refused 2 it has switched all boards off: the program gave no sign of life for 20ms")
	_ = f.in.Close()
	log, err := f.end(t)
	want := "ringwave guard: the program gave no sign of life for 20ms: switched off test:a\nringwave guard: the program has ended: switched off test:a\n"
	if err != nil || log != want {
		t.Errorf("%q, %v", log, err)
	}
}

// A program that gives signs of life, to a guard that answers, goes on; time is not what
// this goes by, so that it holds on any machine: the limit is far longer than the test.
func TestAlive(t *testing.T) {
	f := newField("a")
	r := newRaw(t, f)
	r.say("watch 1 60000 test:a")
	r.want("watching 1")
	for n := range 100 {
		r.say(fmt.Sprintf("alive %d", n))
		r.want(fmt.Sprintf("alive %d", n))
	}
	r.say("leave 1")
	_ = f.in.Close()
	if log, err := f.end(t); err != nil || log != "" {
		t.Errorf("%q, %v", log, err)
	}
}

// The least of the boards' limits holds, and none where all have none.
func TestLimits(t *testing.T) {
	g := &server{boards: map[uint64]watched{1: {}, 2: {limit: 3 * time.Second}, 3: {limit: time.Second}}}
	if got := g.limit(); got != time.Second {
		t.Errorf("limit %v", got)
	}
	g.boards = map[uint64]watched{1: {}}
	for range 10 * beats {
		g.count()
	}
	if g.limit() != 0 || g.fired != "" {
		t.Errorf("limit %v, fired: %q", g.limit(), g.fired)
	}
	g = &server{out: io.Discard, log: io.Discard, boards: map[uint64]watched{1: {limit: time.Second, way: &board{}}}}
	for range beats {
		g.count()
	}
	if g.fired != "" {
		t.Errorf("fired early: %s", g.fired)
	}
	if g.count(); g.fired == "" {
		t.Error("never fired")
	}
}

// Boards are watched while the way to another is being opened.
func TestSlowOpening(t *testing.T) {
	f := emptyField("a", "slow")
	opening, goOn := make(chan struct{}), make(chan struct{})
	f.serve(func(ctx context.Context, u radio.URI) (Switch, error) {
		if u.Name == "slow" {
			close(opening)
			<-goOn
		}
		return f.open(ctx, u)
	}, offPatience)
	r := newRaw(t, f)
	r.say("watch 1 0 test:a")
	r.want("watching 1")
	r.say("watch 2 20 test:slow")
	<-opening
	r.say("alive 1")
	r.want("alive 1")
	_ = f.in.Close()
	if log, err := f.end(t); err != nil || !strings.HasSuffix(log, "switched off test:a\n") {
		t.Errorf("%q, %v", log, err)
	}
	close(goOn)
}

// What is no line of the protocol ends the guard, boards off.
func TestGarbage(t *testing.T) {
	for _, line := range []string{"nonsense", "alive", "alive x", "watch 1 0", "watch 1 99999999 test:a", "watching 1", "fired no", strings.Repeat("x", 2*MaxLine)} {
		f := newField("a")
		r := newRaw(t, f)
		r.say("watch 1 0 test:a")
		r.want("watching 1")
		go func() { _, _ = io.WriteString(f.in, line+"\n") }() // the guard may not read it all
		log, err := f.end(t)
		if !errors.Is(err, errLine) || !strings.Contains(log, "switched off test:a") {
			t.Errorf("%.20q: %q, %v", line, log, err)
		}
		_ = f.in.Close()
	}
}

// A guard that leaves signs of life without an answer is lost, and so is one that never
// begins as a guard does.
func TestGuardIsSilent(t *testing.T) {
	in, toGuard := io.Pipe()
	fromGuard, out := net.Pipe()
	go func() {
		_, _ = io.WriteString(out, "guard 1\nwatching 1\n")
		_, _ = io.Copy(io.Discard, in)
	}()
	c, err := connect(t.Context(), fromGuard, toGuard)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock() // before the answer comes
	answered := make(chan message, 1)
	c.waiting[1] = answered
	c.limits[1] = 0
	c.heartbeat()
	c.mu.Unlock()
	select {
	case <-c.life.Done():
	case <-time.After(patience):
		t.Fatal("it is not missed")
	}
	if err := c.Err(); !errors.Is(err, radio.ErrGuard) || !strings.Contains(err.Error(), "it has not answered for") {
		t.Error(err)
	}
	fromGuard, out = net.Pipe()
	go func() { _, _ = io.WriteString(out, "ok  	ringwave/radio/guard\n") }()
	if _, err := connect(t.Context(), fromGuard, toGuard); !errors.Is(err, radio.ErrGuard) || !strings.Contains(err.Error(), "did not start") {
		t.Error(err)
	}
}

// A program learns at once that it stood still for longer than the limit, before the
// goroutine that gives signs of life has run.
func TestStoodStill(t *testing.T) {
	c := &Client{began: time.Now().Add(-time.Hour)}
	c.limit.Store(int64(time.Minute))
	c.beaten.Store(int64(time.Hour - 50*time.Second))
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	c.beaten.Store(int64(time.Hour - 2*time.Minute))
	if err := c.Err(); !errors.Is(err, radio.ErrGuard) || !errors.Is(err, radio.ErrStoodStill) || !strings.Contains(err.Error(), "this program stood still for 2m0") {
		t.Error(err)
	}
	c.beaten.Store(int64(time.Hour)) // it stays so
	if c.Err() == nil {
		t.Error("it is forgotten")
	}
	c.limit.Store(0)
	free := &Client{began: time.Now().Add(-time.Hour)}
	if err := free.Err(); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

// What is too long for a line is cut where it explains, and refused where it names.
func TestLong(t *testing.T) {
	long := strings.Repeat("x", 2*MaxLine)
	line := message{verb: verbFired, text: long}.String()
	if m, err := parse(line); err != nil || len(line) != MaxLine-1 || !strings.HasPrefix(m.text, "xxx") {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	f := newField()
	c := f.connect(t)
	if _, err := c.Watch(t.Context(), radio.URI{Scheme: "test", Name: long}, 0); err == nil || !strings.Contains(err.Error(), "allowed are") {
		t.Error(err)
	}
	_ = f.in.Close()
	if log, err := f.end(t); err != nil || log != "" {
		t.Errorf("%q, %v", log, err)
	}
}

// FuzzLine: whatever comes is read within bounds, and what is taken is what was said.
func FuzzLine(f *testing.F) {
	for _, m := range []message{
		{verb: verbHello, number: 1}, {verb: verbWatch, number: 3, limit: time.Second, text: "hackrf:1?at=001%2F002"},
		{verb: verbLeave, number: 3}, {verb: verbAlive, number: 1 << 63}, {verb: verbRefused, number: 1, text: "no way"}, {verb: verbFired, text: "late"},
	} {
		f.Add([]byte(m.String() + "\n"))
	}
	f.Add([]byte("watch 1 0 \n"))
	f.Add(bytes.Repeat([]byte("alive 1 "), MaxLine))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newReader(bytes.NewReader(data))
		for {
			m, err := r.next()
			if err != nil {
				return
			}
			line := m.String()
			again, err := parse(line)
			if err != nil || again != m || len(line) >= MaxLine {
				t.Fatalf("%q was taken as %+v, and is %+v again, %v", line, m, again, err)
			}
			if !slices.Contains([]string{verbHello, verbWatch, verbLeave, verbAlive, verbWatching, verbRefused, verbFired}, m.verb) {
				t.Fatalf("%q", m.verb)
			}
		}
	})
}
