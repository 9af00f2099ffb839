package sounder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ringwave/radio"
)

// Sounder plays soundings and fits what is heard. It is for one goroutine.
type Sounder struct {
	cfg   Config
	burst []complex64

	session   int
	inSession int // blocks of the session so far
	acquired  []Acquired
	waiting   []captured // until the session's soundings are found

	cursor radio.SampleIndex // the transmitters', from which on nothing was sent
	sent   radio.SampleIndex // the transmitters', behind the last block
	next   radio.SampleIndex // the receiver's, of the next sample that it will give
	offset radio.SampleIndex // of the receiver's index against the transmitters'
	traced bool              // the offset is known

	known   bool // the session's epochs are
	rxEpoch radio.Epoch
	txEpoch []radio.Epoch
	waste   []complex64
}

// captured is a block that was heard and is not fitted yet.
type captured struct {
	block Block
	slots [][]complex64 // nil where missed
}

// errMoved: the session is over, its phases are gone.
var errMoved = errors.New("the tuning epoch changed")

// New makes a sounder.
func New(cfg Config) (*Sounder, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Sounder{cfg: cfg, session: cfg.Session, acquired: slices.Clone(cfg.Acquired), burst: cfg.Sounding.Samples(cfg.Amplitude)}
	s.inSession = cfg.First % cfg.sessionBlocks()
	s.begin()
	return s, nil
}

// begin takes up streams at their first sample.
func (s *Sounder) begin() {
	s.cursor, s.sent, s.next, s.offset = s.cfg.Start, s.cfg.Start, s.cfg.Start, 0
	s.traced = s.cfg.Reach == 0 || s.cfg.Transmitters == nil
	s.known = false
}

// Run makes the blocks that are left and hands each to emit, in order. It stops
// between two blocks when ctx is done, with ctx's error; what was emitted by then is
// done. The first blocks of a session come late, once their soundings are found.
func (s *Sounder) Run(ctx context.Context, emit func(Block) error) error {
	if s.cfg.Transmitters != nil && s.cfg.First > 0 {
		s.cursor += radio.SampleIndex(s.cfg.First) * radio.SampleIndex(s.cfg.BlockSamples())
	}
	if err := s.idle(ctx, s.cursor); err != nil {
		return err
	}
	for k := s.cfg.First; k < s.cfg.Blocks; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.turn(k, emit); err != nil {
			return err
		}
		c, err := s.capture(ctx, k)
		if err != nil {
			return fmt.Errorf("block %d: %w", k+1, err)
		}
		s.inSession++
		s.waiting = append(s.waiting, c)
		if err := s.settle(emit, false); err != nil {
			return err
		}
	}
	return s.settle(emit, true)
}

// Next gives the transmitters' index from which on nothing was sent.
func (s *Sounder) Next() radio.SampleIndex { return s.cursor }

// turn begins a new session before block k where one is due, or where the last one's
// phases are gone.
func (s *Sounder) turn(k int, emit func(Block) error) error {
	if s.cfg.Transmitters == nil {
		_, session, err := s.cfg.BlockAt(k)
		if err != nil || session == s.session {
			return err
		}
		return s.leave(session, emit)
	}
	lost := s.known && s.moved()
	due := k > s.cfg.First && s.inSession >= s.cfg.sessionBlocks()
	if !lost && !due {
		return nil
	}
	if err := s.leave(s.session+1, emit); err != nil {
		return err
	}
	if due {
		s.inSession = 0
	}
	return s.restart()
}

// leave ends a session and begins another.
func (s *Sounder) leave(session int, emit func(Block) error) error {
	if err := s.settle(emit, true); err != nil {
		return err
	}
	s.session, s.known, s.acquired = session, false, nil
	return nil
}

// restart takes up new streams, where there are any.
func (s *Sounder) restart() error {
	if s.cfg.Restart == nil {
		return nil
	}
	tx, rx, err := s.cfg.Restart()
	if err != nil {
		return fmt.Errorf("beginning session %d: %w", s.session+1, err)
	}
	if len(tx) != s.cfg.Devices || rx == nil {
		return fmt.Errorf("beginning session %d: there are %d transmitters and a receiver %v for %d devices", s.session+1, len(tx), rx, s.cfg.Devices)
	}
	s.cfg.Transmitters, s.cfg.Receiver = tx, rx
	s.begin()
	return nil
}

// settle fits what waits, once there is enough to find the soundings in, or no more
// will come.
func (s *Sounder) settle(emit func(Block) error, last bool) error {
	if len(s.waiting) == 0 || s.acquired == nil && !last && len(s.waiting)*s.cfg.Looks < AcquisitionBursts {
		return nil
	}
	if s.acquired == nil {
		if err := s.acquire(); err != nil {
			return err
		}
	}
	for _, c := range s.waiting {
		s.fit(&c)
		if err := emit(c.block); err != nil {
			return err
		}
	}
	s.waiting = s.waiting[:0]
	return nil
}

// acquire finds each device's soundings in all that waits.
func (s *Sounder) acquire() error {
	found := make([]Acquired, s.cfg.Devices)
	for i := range found {
		var windows [][]complex64
		missed := ""
		for _, c := range s.waiting {
			for t := range s.cfg.Looks {
				if w := c.slots[t*s.cfg.Devices+i]; w != nil {
					windows = append(windows, w)
				} else {
					missed = c.block.Records[t*s.cfg.Devices+i].Missed
				}
			}
		}
		if len(windows) == 0 {
			return &NotHeardError{Device: i, Err: fmt.Errorf("all were missed: %s", missed)}
		}
		a, err := s.cfg.Sounding.Acquire(windows, s.nominal(), s.cfg.Search)
		if err != nil {
			return &NotHeardError{Device: i, Bursts: len(windows), Err: err}
		}
		found[i] = Acquired{a.Delay, a.Offset}
	}
	s.acquired = found
	return nil
}

// fit estimates a captured block's bursts.
func (s *Sounder) fit(c *captured) {
	for k, w := range c.slots {
		if w == nil {
			continue
		}
		at := s.acquired[k%s.cfg.Devices]
		e, err := s.cfg.Sounding.Fit(w, s.nominal(), at.Delay, at.Offset)
		if err != nil {
			c.block.Records[k].Missed = err.Error()
			continue
		}
		e = e.Sent(s.cfg.Amplitude)
		c.block.Records[k].Estimate = &e
	}
	c.slots = nil
}

// capture plays block k and keeps what is heard.
func (s *Sounder) capture(ctx context.Context, k int) (captured, error) {
	at, err := s.playTraced(ctx, k)
	if err != nil {
		return captured{}, err
	}
	first := at + s.offset
	c := captured{block: Block{Number: k, Session: s.session, At: first, Transmitters: s.epochs()}}
	for n := range s.cfg.Looks * s.cfg.Devices {
		place := s.cfg.place(n/s.cfg.Devices, n%s.cfg.Devices)
		slot, record, err := s.hear(ctx, first+place, &c.block)
		if err != nil {
			return c, err
		}
		c.slots, c.block.Records = append(c.slots, slot), append(c.block.Records, record)
	}
	if err := s.judge(ctx, &c); err != nil {
		return c, err
	}
	if s.cfg.OnBlock == nil {
		return c, nil
	}
	return c, s.cfg.OnBlock(k, s.session, first, first+radio.SampleIndex(s.cfg.span()))
}

// traceTries is how many blocks are played to find out what the receiver's index
// differs by.
const traceTries = 4

// playTraced plays block k, and before it blocks that are thrown away where the
// receiver's index is not known.
func (s *Sounder) playTraced(ctx context.Context, k int) (radio.SampleIndex, error) {
	for try := 1; !s.traced; try++ {
		at, err := s.play(ctx, k)
		if err != nil {
			return 0, err
		}
		err = s.trace(ctx, at)
		var unheard *NotHeardError
		if err != nil && (!errors.As(err, &unheard) || try == traceTries) {
			return 0, err
		}
	}
	return s.play(ctx, k)
}
