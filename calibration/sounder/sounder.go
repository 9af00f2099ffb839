package sounder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ringwave/phy/modem"
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
	// follower is of the session, as clocks were when it was traced.
	follower *follower
	// uncounted says which transmitter has lost count of its samples, and with it the
	// time that it shares with others; empty if none has.
	uncounted string
	lost      int // blocks in a row
	unasked   int // samples since transmitters were last looked at

	adrift     bool // the receiver lost samples in the block, and not how many
	haveEpochs bool // of this session's streams
	rxEpoch    radio.Epoch
	txEpoch    []radio.Epoch
	waste      []complex64
}

// captured is a block that was heard and is not fitted yet.
type captured struct {
	block Block
	slots [][]complex64     // nil where missed
	due   radio.SampleIndex // the transmitters', of its first sample
	// shifts are by how many samples later slots were captured than block.At - block.Moved
	// has them.
	shifts []radio.SampleIndex
}

// ErrUncounted: a transmitter has lost count of its samples, and there is no Restart by
// which all could begin anew.
var ErrUncounted = errors.New("the transmitters no longer count alike")

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
	s.haveEpochs, s.uncounted = false, ""
	s.follower = newFollower(s.cfg.Devices)
}

// Run makes the blocks that are left and hands each to emit, in order. It stops
// between two blocks when ctx is done, with ctx's error; what was emitted by then is
// done. The first blocks of a session come late, once their soundings are found.
// Errors are a stream's, ErrStalled, ErrUncounted and *NotHeardError.
func (s *Sounder) Run(ctx context.Context, emit func(Block) error) error {
	if s.cfg.Transmitters != nil && s.cfg.Restart == nil {
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
		if errors.Is(err, radio.ErrStarved) && s.cfg.Restart != nil {
			err = s.starve(&c, k, err)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", k+1, err)
		}
		if err := s.count(&c); err != nil {
			return err
		}
		s.inSession++
		s.waiting = append(s.waiting, c)
		if err := s.settle(emit, false); err != nil {
			return err
		}
	}
	return s.settle(emit, true)
}

// starve gives up a block in which a stream ended as this machine was too slow for a board:
// streams begin anew before the next one, with another session.
func (s *Sounder) starve(c *captured, k int, why error) error {
	s.uncounted = why.Error()
	*c = captured{block: Block{Number: k, Session: s.session, At: s.cursor + s.offset, Transmitters: s.epochs()}}
	c.slots = make([][]complex64, s.cfg.Looks*s.cfg.Devices)
	for range c.slots {
		c.block.Records = append(c.block.Records, Record{Missed: s.uncounted})
	}
	if s.cfg.OnBlock == nil {
		return nil
	}
	return s.cfg.OnBlock(k, s.session, c.block.At, c.block.At+1)
}

// lostBlocks is how many blocks in a row may be missed whole. Boards that lose samples in
// each of them, as on a machine that is too slow, will do so in all.
const lostBlocks = 16

// count counts blocks that were missed whole.
func (s *Sounder) count(c *captured) error {
	for _, w := range c.slots {
		if w != nil {
			s.lost = 0
			return nil
		}
	}
	if s.lost++; s.lost < lostBlocks {
		return nil
	}
	return &NotHeardError{Device: -1, Bursts: lostBlocks * len(c.slots), Err: fmt.Errorf("the last %d blocks were missed: %s", lostBlocks, c.block.Records[0].Missed)}
}

// Next returns the transmitters' index from which on nothing was sent.
func (s *Sounder) Next() radio.SampleIndex { return s.cursor }

// Ahead returns by how much the receiver's index is ahead of the transmitters', as found
// with the session's first block.
func (s *Sounder) Ahead() radio.SampleIndex { return s.offset }

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
	if s.uncounted != "" && s.cfg.Restart == nil && s.cfg.Devices > 1 {
		return fmt.Errorf("%w: %s", ErrUncounted, s.uncounted)
	}
	lost := s.haveEpochs && s.moved() || s.uncounted != ""
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
	s.session, s.haveEpochs, s.acquired, s.follower = session, false, nil, newFollower(s.cfg.Devices)
	return nil
}

// restart takes up new streams, where there are any.
func (s *Sounder) restart() error {
	if s.cfg.Restart == nil {
		if s.uncounted != "" { // the receiver's index is all that can differ
			s.uncounted, s.traced = "", s.cfg.Reach == 0
		}
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
		for _, c := range s.waiting {
			for t := range s.cfg.Looks {
				if w := c.slots[t*s.cfg.Devices+i]; w != nil {
					windows = append(windows, w)
				}
			}
		}
		if t := &s.follower.trails[i]; s.follower.apart && t.weights > 0 {
			found[i] = Acquired{modem.Samples(t.first), modem.CyclesPerSample(t.offsets)}
			continue
		}
		if len(windows) == 0 {
			continue // a session that ended before it was heard: its blocks are missed
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
		at := s.place(c, k, c.due)
		e, err := s.cfg.Sounding.Fit(w, s.nominal(), at.Delay, at.Offset)
		if err != nil {
			c.block.Records[k].Missed = err.Error()
			continue
		}
		e.Response = s.cfg.Sounding.Response(w, s.nominal())
		e = e.Sent(s.cfg.Amplitude)
		e.Delay += modem.Samples(int64(c.shifts[k]) - c.block.Moved)
		c.block.Records[k].Estimate = &e
	}
	c.slots = nil
}

// capture plays block k and keeps what is heard.
func (s *Sounder) capture(ctx context.Context, k int) (captured, error) {
	s.adrift = false
	at, err := s.playTraced(ctx, k)
	if err != nil {
		return captured{}, err
	}
	moved := s.follower.shift(at)
	first := at + s.offset + moved
	c := captured{due: at, block: Block{Number: k, Session: s.session, At: first, Moved: int64(moved), Transmitters: s.epochs()}}
	for n := range s.cfg.Looks * s.cfg.Devices {
		start := at + s.cfg.slotStart(n/s.cfg.Devices, n%s.cfg.Devices)
		shift := s.follower.shift(at + s.cfg.slotStart(n/s.cfg.Devices, 0))
		slot, record, err := s.hear(ctx, start+s.offset+shift, &c.block)
		if err != nil {
			return c, err
		}
		c.slots, c.block.Records, c.shifts = append(c.slots, slot), append(c.block.Records, record), append(c.shifts, shift)
	}
	if err := s.judge(ctx, &c); err != nil {
		return c, err
	}
	if s.cfg.Reach > 0 && s.cfg.Transmitters != nil {
		s.follower.note(s, &c, at)
	}
	if s.cfg.OnBlock == nil {
		return c, nil
	}
	return c, s.cfg.OnBlock(k, s.session, first, first+radio.SampleIndex(s.cfg.span()))
}

// traceTries is how many blocks are played to find out what the receiver's index
// differs by.
const traceTries = 4

// playTraced plays block k, and before it first looks that are thrown away where the
// receiver's index is not known.
func (s *Sounder) playTraced(ctx context.Context, k int) (radio.SampleIndex, error) {
	for try := 1; !s.traced; try++ {
		at, err := s.play(ctx, k, 1)
		if err != nil {
			return 0, err
		}
		err = s.trace(ctx, at)
		var unheard *NotHeardError
		if err != nil && (!errors.As(err, &unheard) || try == traceTries) {
			return 0, err
		}
	}
	return s.play(ctx, k, s.cfg.Looks)
}
