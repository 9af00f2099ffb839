package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
)

const (
	// helloPatience bounds the start of a guard.
	helloPatience = 10 * time.Second
	// answerPatience is how long a guard may leave signs of life without an answer; more
	// where the program itself may stand still for longer.
	answerPatience = time.Second
)

// Client is a program's side of a guard: a radio.Guard. It is safe for use by several
// goroutines.
type Client struct {
	life  life.Life // ends when the guard can no longer be relied on, by why
	began time.Time
	// beaten and answered are when the last sign of life was given, and when the guard
	// last answered one, since began.
	beaten, answered atomic.Int64
	limit            atomic.Int64  // the least of the boards', 0 for none
	kick             chan struct{} // has a token when limit has changed

	speaking sync.Mutex
	to       io.WriteCloser

	mu      sync.Mutex
	last    uint64 // number of a board
	limits  map[uint64]time.Duration
	waiting map[uint64]chan message
	ending  bool
	heart   bool // beats
}

// connect begins to talk to a guard.
func connect(ctx context.Context, from io.Reader, to io.WriteCloser) (*Client, error) {
	c := &Client{began: time.Now(), kick: make(chan struct{}, 1), to: to, limits: map[uint64]time.Duration{}, waiting: map[uint64]chan message{}}
	hello := make(chan error, 1)
	go c.listen(newReader(from), hello)
	timer := time.NewTimer(helloPatience)
	defer timer.Stop()
	var err error
	select {
	case err = <-hello:
	case <-timer.C:
		err = fmt.Errorf("it has not begun within %v", helloPatience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w did not start: %w", radio.ErrGuard, err), to.Close())
	}
	return c, nil
}

// listen takes what the guard says until its pipe ends.
func (c *Client) listen(r reader, hello chan<- error) {
	m, err := r.next()
	if err == nil && (m.verb != verbHello || m.number != wireVersion) {
		err = fmt.Errorf("%w: %.80q", errLine, m)
	}
	hello <- err
	for err == nil {
		if m, err = r.next(); err == nil {
			c.hear(m)
		}
	}
	if errors.Is(err, io.EOF) {
		c.lost(errors.New("it has ended"))
		return
	}
	c.lost(err)
}

func (c *Client) hear(m message) {
	switch m.verb {
	case verbAlive:
		c.answered.Store(int64(time.Since(c.began)))
	case verbFired:
		c.lost(fmt.Errorf("%w, and it has switched the boards off: %s", radio.ErrStoodStill, m.text))
	case verbWatching, verbRefused:
		c.mu.Lock()
		answer := c.waiting[m.number]
		delete(c.waiting, m.number)
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// lost notes that the guard can no longer be relied on.
func (c *Client) lost(why error) {
	c.life.End(fmt.Errorf("%w cannot be relied on: %w", radio.ErrGuard, why))
}

// Err returns why the guard can no longer be relied on, which is why nothing is to be sent;
// nil while it can.
func (c *Client) Err() error {
	if err := c.life.Err(); err != nil {
		return err
	}
	if limit := time.Duration(c.limit.Load()); limit > 0 {
		if still := time.Since(c.began) - time.Duration(c.beaten.Load()); still > limit {
			c.lost(fmt.Errorf("%w for %v, longer than %v", radio.ErrStoodStill, still.Round(time.Millisecond), limit))
			return c.life.Err()
		}
	}
	return nil
}

// say sends a line.
func (c *Client) say(m message) error {
	c.speaking.Lock()
	defer c.speaking.Unlock()
	_, err := io.WriteString(c.to, m.String()+"\n")
	return err
}

// beat returns signs of life until the guard is lost or no longer needed.
func (c *Client) beat() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := uint64(1); ; n++ {
		limit := time.Duration(c.limit.Load())
		every := answerPatience / beats
		if limit > 0 {
			every = max(min(every, limit/beats), time.Millisecond)
		}
		timer.Reset(every)
		select {
		case <-c.life.Done():
			return
		case <-c.kick:
		case <-timer.C:
		}
		if c.Err() != nil {
			return
		}
		now := time.Since(c.began)
		if silent := now - time.Duration(c.answered.Load()); silent > max(limit, answerPatience) {
			c.lost(fmt.Errorf("it has not answered for %v", silent.Round(time.Millisecond)))
			return
		}
		c.beaten.Store(int64(now))
		if c.say(message{verb: verbAlive, number: n}) != nil {
			return // listen says more
		}
	}
}

// Watch implements radio.Guard.
func (c *Client) Watch(ctx context.Context, board radio.URI, limit time.Duration) (radio.Watch, error) {
	fail := func(err error) (radio.Watch, error) {
		return nil, fmt.Errorf("having a guard watch over %s: %w", board, err)
	}
	limit, err := wholeMilliseconds(limit)
	if err != nil {
		return fail(err)
	}
	if n := len(board.String()); n > maxURI {
		return nil, fmt.Errorf("having a guard watch over a board: its URI has %d bytes; allowed are %d", n, maxURI)
	}
	if err := c.Err(); err != nil {
		return fail(err)
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	c.last++
	number := c.last
	c.waiting[number] = answer
	c.limits[number] = limit
	c.heartbeat()
	c.mu.Unlock()
	w := &watch{c, number}
	if err := c.say(message{verb: verbWatch, number: number, limit: limit, text: board.String()}); err != nil {
		w.Release()
		return fail(fmt.Errorf("%w: %w", radio.ErrGuard, err))
	}
	select {
	case m := <-answer:
		if m.verb == verbWatching {
			return w, nil
		}
		err = fmt.Errorf("%w refuses: %s", radio.ErrGuard, m.text)
	case <-c.life.Done():
		err = c.life.Err()
	case <-ctx.Done():
		err = ctx.Err()
	}
	w.Release()
	return fail(err)
}

// heartbeat begins signs of life, or has them go by other limits. The lock is held.
func (c *Client) heartbeat() {
	var least time.Duration
	for _, limit := range c.limits {
		if limit > 0 && (least == 0 || limit < least) {
			least = limit
		}
	}
	if !c.heart {
		c.heart = true
		now := int64(time.Since(c.began))
		c.beaten.Store(now)
		c.answered.Store(now)
		go c.beat()
	}
	if c.limit.Load() != int64(least) {
		c.beaten.Store(int64(time.Since(c.began))) // by the limit that holds from now on
		c.limit.Store(int64(least))
		select {
		case c.kick <- struct{}{}:
		default:
		}
	}
}

// endWhenLeft ends the guard once no board is watched.
func (c *Client) endWhenLeft() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	c.endIfLeft()
}

// endIfLeft is called with the lock held.
func (c *Client) endIfLeft() {
	if c.ending && len(c.limits) == 0 {
		c.lost(errors.New("it was ended"))
		_ = c.to.Close() // the guard ends either way
	}
}

// watch is a radio.Watch.
type watch struct {
	c      *Client
	number uint64
}

func (w *watch) AfterLoss(f func()) (stop func() bool) { return w.c.life.AfterEnd(f) }
func (w *watch) Err() error                            { return w.c.Err() }

func (w *watch) Release() {
	w.c.mu.Lock()
	_, held := w.c.limits[w.number]
	delete(w.c.limits, w.number)
	delete(w.c.waiting, w.number)
	w.c.heartbeat()
	w.c.mu.Unlock()
	if held {
		_ = w.c.say(message{verb: verbLeave, number: w.number}) // a guard that is gone has left it
	}
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.endIfLeft()
}
