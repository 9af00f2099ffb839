package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"ringwave/radio"
)

// Switch is a guard's own way to a board.
type Switch interface {
	// Off switches off what the board transmits with, samples or none, and fails where it
	// cannot. A board that is gone is off.
	Off() error
	Close() error
}

// Open opens the way to the board that a URI names.
type Open func(ctx context.Context, board radio.URI) (Switch, error)

const (
	// openPatience bounds opening a way to a board.
	openPatience = 10 * time.Second
	// A board that does not go off is tried again, for so long and after such a pause.
	offPatience = 10 * time.Second
	offPause    = 20 * time.Millisecond
	// beats is how many signs of life go into a limit.
	beats = 8
	// idleBeat is how often a guard without a limit looks at its clock, which is never
	// needed.
	idleBeat = time.Second
)

// Serve watches over the program at the other end of in and out until in ends. It then
// switches off the boards that the program has not left, and says on log, in a line,
// whenever it has, and which boards could not be. The error says what was wrong with the
// pipe.
func Serve(in io.Reader, out io.Writer, open Open, log io.Writer) error {
	return serve(in, out, open, log, offPatience)
}

// serve is Serve that tries for patience to switch a board off.
func serve(in io.Reader, out io.Writer, open Open, log io.Writer, patience time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := &server{out: out, open: open, log: log, patience: patience, boards: map[uint64]watched{}, opened: make(chan opening)}
	defer g.closing.Wait()
	g.say(message{verb: verbHello, number: wireVersion})
	lines, ended := make(chan message), make(chan error, 1)
	go func() {
		r := newReader(in)
		for {
			m, err := r.next()
			if err != nil {
				ended <- err
				return
			}
			select {
			case lines <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	return g.serve(ctx, lines, ended)
}

// server is a guard at work. Its goroutine is serve's; those that open and close ways to
// boards touch nothing of it but opened and out.
type server struct {
	open     Open
	log      io.Writer
	patience time.Duration // with a board that does not go off
	opened   chan opening
	// closing counts ways that are being closed.
	closing sync.WaitGroup

	speaking sync.Mutex
	out      io.Writer

	boards map[uint64]watched
	// silent counts beats without a line.
	silent int
	fired  string // why boards were switched off; empty if they were not
}

// watched is a board and the way to it.
type watched struct {
	uri   string
	limit time.Duration
	way   Switch
}

// opening is what became of the wish to watch a board.
type opening struct {
	number uint64
	watched
	err error
}

func (g *server) serve(ctx context.Context, lines <-chan message, ended <-chan error) error {
	beat := time.NewTicker(idleBeat)
	defer beat.Stop()
	for {
		select {
		case m := <-lines:
			g.silent = 0
			if err := g.hear(ctx, m); err != nil {
				g.end()
				return err
			}
			beat.Reset(g.beat())
		case o := <-g.opened:
			g.settle(o)
			beat.Reset(g.beat())
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			g.end()
			return err
		case <-beat.C:
			g.count()
		}
	}
}

// limit returns the least of the boards' limits, 0 if there is none.
func (g *server) limit() (least time.Duration) {
	for _, w := range g.boards {
		if w.limit > 0 && (least == 0 || w.limit < least) {
			least = w.limit
		}
	}
	return least
}

func (g *server) beat() time.Duration {
	if limit := g.limit(); limit > 0 {
		return max(limit/beats, time.Millisecond)
	}
	return idleBeat
}

// count counts a beat. A guard that stood still has missed beats, which count as one: what
// came through the pipe meanwhile is heard before it fires.
func (g *server) count() {
	limit := g.limit()
	if limit == 0 || g.fired != "" {
		return
	}
	if g.silent++; g.silent <= beats {
		return
	}
	g.fired = fmt.Sprintf("the program gave no sign of life for %v", limit)
	g.say(message{verb: verbFired, text: g.fired})
	g.switchOff()
}

// hear does what a line asks for.
func (g *server) hear(ctx context.Context, m message) error {
	if g.fired != "" {
		// Whatever the program has done on waking.
		for _, w := range g.boards {
			_ = w.way.Off() // it is tried again, and then told, at the program's end
		}
		g.say(message{verb: verbFired, text: g.fired})
	}
	switch m.verb {
	case verbAlive:
		if g.fired == "" {
			g.say(message{verb: verbAlive, number: m.number})
		}
	case verbLeave:
		if w, ok := g.boards[m.number]; ok {
			delete(g.boards, m.number)
			g.close(w.way)
		}
	case verbWatch:
		return g.watch(ctx, m)
	default:
		return fmt.Errorf("%w: %.80q", errLine, m)
	}
	return nil
}

// watch opens the way to a board; others are watched meanwhile. Ctx ends with the guard.
func (g *server) watch(ctx context.Context, m message) error {
	refuse := func(err error) error {
		g.say(message{verb: verbRefused, number: m.number, text: err.Error()})
		return nil
	}
	if _, ok := g.boards[m.number]; ok {
		return fmt.Errorf("%w: %.80q has the number of another board", errLine, m)
	}
	if g.fired != "" {
		return refuse(fmt.Errorf("it has switched all boards off: %s", g.fired))
	}
	if len(g.boards) >= maxBoards {
		return refuse(fmt.Errorf("there are %d boards; allowed are no more", maxBoards))
	}
	u, err := radio.ParseURI(m.text)
	if err != nil {
		return refuse(err)
	}
	go func() {
		limited, cancel := context.WithTimeout(ctx, openPatience)
		defer cancel()
		way, err := g.open(limited, u)
		select {
		case g.opened <- opening{m.number, watched{m.text, m.limit, way}, err}:
		case <-ctx.Done(): // the program has ended, and never switched this board on
			if err == nil {
				_ = way.Close()
			}
		}
	}()
	return nil
}

// settle answers the wish to watch a board.
func (g *server) settle(o opening) {
	if o.err != nil {
		g.say(message{verb: verbRefused, number: o.number, text: o.err.Error()})
		return
	}
	g.boards[o.number] = o.watched
	if g.fired != "" {
		_ = o.way.Off()
	}
	g.silent = 0
	g.say(message{verb: verbWatching, number: o.number})
}

// say sends a line. A program that does not read it has ended, which its own pipe tells.
func (g *server) say(m message) {
	g.speaking.Lock()
	defer g.speaking.Unlock()
	_, _ = io.WriteString(g.out, m.String()+"\n")
}

// close closes a way without making anybody wait.
func (g *server) close(way Switch) {
	g.closing.Add(1)
	go func() {
		defer g.closing.Done()
		_ = way.Close() // the board is off
	}()
}

// end switches off what the program has left on.
func (g *server) end() {
	if len(g.boards) == 0 {
		return
	}
	if g.fired == "" {
		g.fired = "the program has ended without switching them off"
	} else {
		g.fired = "the program has ended"
	}
	g.switchOff()
	for _, w := range g.boards {
		g.close(w.way)
	}
}

// switchOff switches all boards off, at the same time, and says so.
func (g *server) switchOff() {
	numbers := make([]uint64, 0, len(g.boards))
	for n := range g.boards {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	errs := make([]error, len(numbers))
	var all sync.WaitGroup
	for i, n := range numbers {
		all.Add(1)
		go func() {
			defer all.Done()
			errs[i] = persist(g.boards[n].way, g.patience)
		}()
	}
	all.Wait()
	var off, on []string
	for i, n := range numbers {
		if errs[i] == nil {
			off = append(off, g.boards[n].uri)
			continue
		}
		on = append(on, fmt.Sprintf("%s could not be switched off, unplug it: %s", g.boards[n].uri, oneLine(errs[i].Error())))
	}
	line := "ringwave guard: " + g.fired
	if len(off) > 0 {
		line += ": switched off " + strings.Join(off, ", ")
	}
	for _, s := range on {
		line += "; " + s
	}
	_, _ = io.WriteString(g.log, line+"\n") // nobody else can be told
}

// persist switches a board off, with patience.
func persist(way Switch, patience time.Duration) (err error) {
	for end := time.Now().Add(patience); ; time.Sleep(offPause) {
		if err = way.Off(); err == nil || time.Now().After(end) {
			return err
		}
	}
}
