package phy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ringwave/phy/slot"
	"ringwave/radio"
)

// shifted is a receiver whose board has its own count: offset more than the medium's
// at first, and less by what was lost since without anybody noticing.
type shifted struct {
	radio.Receiver
	offset radio.SampleIndex
	// lose are losses that come: at an index of the medium's, of so many samples.
	lose []struct{ at, n radio.SampleIndex }
	// told makes a loss a gap of unknown length.
	told bool
}

func (s *shifted) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	return s.ReadUntil(ctx, dst, radio.Forever)
}

// ReadUntil is radio.Bounded.
func (s *shifted) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	if until != radio.Forever {
		until -= s.offset
	}
	lost := false
	if len(s.lose) > 0 {
		until = min(until, s.lose[0].at)
	}
	n, meta, err := radio.ReadUntil(ctx, s.Receiver, dst, until)
	if n == 0 && err == nil && len(s.lose) > 0 && until == s.lose[0].at {
		waste := make([]complex64, s.lose[0].n)
		if _, _, err := radio.ReadFull(ctx, s.Receiver, waste); err != nil {
			return 0, meta, err
		}
		s.offset -= s.lose[0].n
		until += s.lose[0].n + radio.SampleIndex(len(dst))
		s.lose, lost = s.lose[1:], s.told
		n, meta, err = radio.ReadUntil(ctx, s.Receiver, dst, until)
	}
	meta.First += s.offset
	if lost {
		meta.Gaps, meta.Flags = append(meta.Gaps, radio.Gap{}), meta.Flags|radio.Overrun
	}
	return n, meta, err
}

// A receiver whose index differs from the transmitters' by a constant within reach is
// read from the first frame on, and none is read where nobody looks for it.
func TestWaveformFindsTheReceiversIndex(t *testing.T) {
	for _, offset := range []radio.SampleIndex{0, 1, 150, -3000, 4999, 5000, -5000} {
		b := newBench(t, func(c *WaveformConfig) {
			c.Receiver = &shifted{Receiver: c.Receiver, offset: offset}
			c.Reach = 5000
		})
		for k := range uint32(3) {
			if v := b.round(t, k); !v.good {
				t.Errorf("offset %d: round %d: %v: %s", offset, k, v.failed, v.reason)
			}
		}
		if b.w.time.offset < offset-10 || b.w.time.offset > offset+10 {
			t.Errorf("offset %d: found is %d", offset, b.w.time.offset)
		}
	}
	b := newBench(t, func(c *WaveformConfig) {
		c.Receiver = &shifted{Receiver: c.Receiver, offset: 3000}
		c.Reach = 1000
	})
	if v := b.round(t, 0); v.good || !strings.Contains(v.reason, "no preamble within 1000 samples") {
		t.Errorf("out of reach: good = %v, %q", v.good, v.reason)
	}
}

// A loss that was noticed without its length spoils the round that it is in; one that
// nobody noticed, longer than the guard time, also the two whose frames have then no
// preamble; and none of them all that come after.
func TestWaveformFindsItselfAgain(t *testing.T) {
	for _, told := range []bool{false, true} {
		for _, length := range []radio.SampleIndex{300, 2500} {
			source := &shifted{told: told}
			b := newBench(t, func(c *WaveformConfig) {
				source.Receiver = c.Receiver
				c.Receiver = source
				c.Reach = 5000
			})
			for k := range uint32(6) {
				if k == 1 {
					source.lose = append(source.lose, struct{ at, n radio.SampleIndex }{b.w.Next() - source.offset + 9000, length})
				}
				good := k == 0 || k > 3 || told && k > 1
				if v := b.round(t, k); v.good != good {
					t.Errorf("told %v, %d samples lost: round %d: good = %v, %v: %s", told, length, k, v.good, v.failed, v.reason)
				}
			}
		}
	}
}

// pacing makes of a medium's transmitter one that goes on by itself: between its
// frames, time passes.
type pacing struct {
	radio.Transmitter
	now    *radio.SampleIndex
	events []radio.Event
	late   bool // the next frame
}

// Earliest is radio.Pacer.
func (p *pacing) Earliest() radio.SampleIndex { return *p.now }

func (p *pacing) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (int, error) {
	if p.late || meta.Start < *p.now {
		p.late = false
		p.events = append(p.events, radio.Event{Kind: radio.Late, Index: meta.Start, Exact: true})
		return len(src), p.Transmitter.(radio.Idler).Idle(ctx, meta.Start+radio.SampleIndex(len(src))+1<<16)
	}
	n, err := p.Transmitter.Write(ctx, src, meta)
	if err == nil {
		err = p.Transmitter.(radio.Idler).Idle(ctx, meta.Start+radio.SampleIndex(len(src))+1<<16)
	}
	return n, err
}

func (p *pacing) Event(context.Context) (radio.Event, error) {
	if len(p.events) == 0 {
		return radio.Event{}, context.Canceled
	}
	e := p.events[0]
	p.events = p.events[1:]
	return e, nil
}

// newLive is a bench whose transmitters go on by themselves, a hundred thousand samples
// and some between two frames.
func newLive(t *testing.T, change func(*WaveformConfig)) (*bench, []*pacing) {
	now := new(radio.SampleIndex)
	var pacers []*pacing
	b := newBench(t, func(c *WaveformConfig) {
		for i, tx := range c.Transmitters {
			pacers = append(pacers, &pacing{Transmitter: tx, now: now})
			c.Transmitters[i] = pacers[i]
		}
		c.Lead = 1000
		set := c.OnTransmission
		c.OnTransmission = func(ctx context.Context, s slot.Slot, at radio.SampleIndex) error { return set(ctx, s, at) }
		c.OnFrame = func(o Observation) error {
			*now = o.First + 2<<16 // what is computed takes as long
			return nil
		}
		if change != nil {
			change(c)
		}
	})
	return b, pacers
}

// Frames of transmitters that go on by themselves are sent ahead of them, and what
// lies in between is thrown away.
func TestWaveformInRealTime(t *testing.T) {
	var frames []radio.SampleIndex
	b, _ := newLive(t, func(c *WaveformConfig) {
		passes := c.OnFrame
		c.OnFrame = func(o Observation) error {
			frames = append(frames, o.First)
			return passes(o)
		}
	})
	for k := range uint32(2) {
		if v := b.round(t, k); !v.good {
			t.Errorf("round %d: %v: %s", k, v.failed, v.reason)
		}
	}
	for k := 1; k < len(frames); k++ {
		if d := frames[k] - frames[k-1]; d != 2<<16+1000 {
			t.Errorf("frame %d begins %d samples after the one before it; allowed is %d", k+1, d, 2<<16+1000)
		}
	}
}

// What transmitters tell of a frame makes the attempt void, by its reason, and a lost
// count begins all streams anew before the next one.
func TestWaveformEvents(t *testing.T) {
	for _, c := range []struct {
		name     string
		event    radio.Event
		late     bool
		want     string
		restarts int
	}{
		{name: "late", late: true, want: "device 2 was late"},
		{name: "underrun", event: radio.Event{Kind: radio.Underrun, Exact: true}, want: "device 2 had an underrun"},
		{name: "lost count", event: radio.Event{Kind: radio.Underrun}, want: "device 2 had an underrun", restarts: 1},
		{name: "lost events", event: radio.Event{Kind: radio.EventsLost, Count: 3}, want: "3 events of device 2 were lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			restarts := 0
			b, pacers := newLive(t, nil)
			b.w.cfg.Restart = func(context.Context) ([]radio.Transmitter, radio.Receiver, error) {
				restarts++
				b.w.cfg.Start = *pacers[0].now // the medium goes on where it was
				return b.w.streams.tx, b.w.streams.rx, nil
			}
			b.harm = func(s slot.Slot, _ radio.SampleIndex) {
				if s.Round != 1 || s.Transmission != slot.TxC1 {
					return
				}
				pacers[1].late = c.late
				if !c.late {
					pacers[1].events = append(pacers[1].events, c.event)
				}
			}
			for k := range uint32(3) {
				v := b.round(t, k)
				if v.good != (k != 1) {
					t.Errorf("round %d: good = %v, %v: %s", k, v.good, v.failed, v.reason)
				}
				if k == 1 && (v.failed != slot.TxC1 || !strings.Contains(v.reason, c.want)) {
					t.Errorf("%v failed by %q; expected is %q", v.failed, v.reason, c.want)
				}
			}
			if restarts != c.restarts {
				t.Errorf("%d restarts, expected are %d", restarts, c.restarts)
			}
		})
	}
}

// A share that a board failed to send is sent again, and read, though what the board told
// made the attempt void.
func TestWaveformSendsAgainAfterEvents(t *testing.T) {
	b, pacers := newLive(t, nil)
	const n = 100
	x := randomPayloads(b.m, 2, n, b.rnd)
	rx := Reception{Y: b.m.NewVector(n), Pattern: make([]int64, b.w.PatternSymbols())}
	for tr := range slot.TxShare {
		sendOver(t, b.w, slot.Slot{Transmission: tr}, x, &rx)
		if !rx.CheckPassed {
			t.Fatalf("%v: %s", tr, rx.Reason)
		}
	}
	pacers[1].late = true
	for again, reason := range []string{"device 2 was late", ""} {
		sendOver(t, b.w, slot.Slot{Transmission: slot.TxShare, Again: uint8(again)}, x, &rx)
		if rx.CheckPassed != (reason == "") || !strings.Contains(rx.Reason, reason) {
			t.Errorf("sent again %d times: passed is %v, %q", again, rx.CheckPassed, rx.Reason)
		}
	}
}

// Nobody can mend a lost count without Restart, but for a single device; a Restart
// that fails ends the link.
func TestWaveformLostCount(t *testing.T) {
	b, pacers := newLive(t, nil)
	pacers[0].events = []radio.Event{{Kind: radio.Underrun}}
	for k := range uint32(2) {
		if v := b.round(t, k); v.good || !strings.Contains(v.reason, "device 1 lost count of its samples") {
			t.Errorf("round %d: good = %v, %q", k, v.good, v.reason)
		}
	}
	gone := errors.New("gone")
	b.w.cfg.Restart = func(context.Context) ([]radio.Transmitter, radio.Receiver, error) { return nil, nil, gone }
	if err := b.w.Open(t.Context(), slot.Slot{Round: 2}, 10); !errors.Is(err, gone) || !strings.Contains(err.Error(), "device 1") {
		t.Error(err)
	}
}

// asked is a receiver whose board tells a loss only when asked.
type asked struct {
	radio.Receiver
	loses int // asks until it has lost something
	epoch radio.Epoch
	err   error
}

func (a *asked) Epoch() radio.Epoch { return a.Receiver.Epoch() + a.epoch }

func (a *asked) CheckLoss(context.Context) error {
	if a.loses--; a.loses == 0 {
		a.epoch++
	}
	return a.err
}

// A loss that the board tells only when asked makes the attempt void that it was in.
func TestWaveformAsksForLosses(t *testing.T) {
	source := &asked{}
	b := newBench(t, func(c *WaveformConfig) {
		source.Receiver = c.Receiver
		c.Receiver = source
	})
	if v := b.round(t, 0); !v.good {
		t.Fatal(v.reason)
	}
	source.loses = 4 // before the attempt, and behind each of three frames
	if v := b.round(t, 1); v.good || v.failed != slot.TxC1 || !strings.Contains(v.reason, "receiver's tuning epoch") {
		t.Errorf("good = %v, %v: %q", v.good, v.failed, v.reason)
	}
	source.err = radio.ErrClosed
	if err := b.w.Open(t.Context(), slot.Slot{Round: 2}, 10); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// A receiver that is further behind the transmitters than it is looked for waits for
// what nobody sends: the link ends, and says so, also when one has no room.
func TestWaveformStandsStill(t *testing.T) {
	b := newBench(t, func(c *WaveformConfig) {
		c.Receiver = &shifted{Receiver: c.Receiver, offset: -200_000}
		c.Reach, c.Patience = 1000, time.Second
	})
	err := b.once(t.Context(), 100)
	if !errors.Is(err, ErrStalled) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "more than the 1000 samples within which it is looked for") {
		t.Error(err)
	}
	b = newBench(t, func(c *WaveformConfig) {
		c.Transmitters[1] = full{c.Transmitters[1]}
		c.Patience = time.Second
	})
	if err := b.once(t.Context(), 100); !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), "device 2 sends") || !strings.Contains(err.Error(), "a whole frame must find room") {
		t.Error(err)
	}
}

// full is a transmitter that has no room.
type full struct{ radio.Transmitter }

func (full) Write(ctx context.Context, _ []complex64, _ radio.TxMeta) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (f full) Idle(ctx context.Context, until radio.SampleIndex) error {
	return f.Transmitter.(radio.Idler).Idle(ctx, until)
}

// lost is a transmitter that goes on by itself until its board is lost.
type lost struct {
	*pacing
	err error
}

// Idle tells what has become of the stream.
func (l *lost) Idle(context.Context, radio.SampleIndex) error { return l.err }

// A transmitter that is lost ends the link before the receiver has heard all that was
// written.
func TestWaveformLosesATransmitter(t *testing.T) {
	gone := errors.New("gone")
	read := 0
	b, _ := newLive(t, func(c *WaveformConfig) {
		c.Transmitters[1] = &lost{c.Transmitters[1].(*pacing), gone}
		c.OnFrame = func(Observation) error { read++; return nil }
	})
	if err := b.once(t.Context(), 2000); !errors.Is(err, gone) || !strings.Contains(err.Error(), "device 2") || read != 0 {
		t.Errorf("%v, after %d frames", err, read)
	}
}

// starving is a transmitter whose board stops at some writes, for as long as its stream is
// not begun anew.
type starving struct {
	*pacing
	at      map[int]bool // writes
	writes  int
	stopped bool
}

func (s *starving) Write(ctx context.Context, src []complex64, meta radio.TxMeta) (int, error) {
	s.writes++
	if s.stopped = s.stopped || s.at[s.writes]; s.stopped {
		return 0, fmt.Errorf("transmitting: %w", radio.ErrStarved)
	}
	return s.pacing.Write(ctx, src, meta)
}

// A board that stopped as it was not fed in time makes the attempt void, and its streams
// begin anew; only where that goes on and on the link ends.
func TestWaveformStarves(t *testing.T) {
	var board *starving
	restarts := 0
	b, pacers := newLive(t, func(c *WaveformConfig) {
		board = &starving{pacing: c.Transmitters[1].(*pacing), at: map[int]bool{6: true}}
		c.Transmitters[1] = board
	})
	b.w.cfg.Restart = func(ctx context.Context) ([]radio.Transmitter, radio.Receiver, error) {
		restarts++
		board.stopped = false
		b.w.cfg.Start = *pacers[0].now + 1<<20 // the medium goes on, behind all that was written
		for _, p := range pacers {
			if err := p.Transmitter.(radio.Idler).Idle(ctx, b.w.cfg.Start); err != nil {
				return nil, nil, err
			}
		}
		for at := radio.SampleIndex(0); at < b.w.cfg.Start; {
			n, meta, err := radio.ReadFullUntil(ctx, b.w.streams.rx, make([]complex64, 1<<14), b.w.cfg.Start)
			if err != nil {
				return nil, nil, err
			}
			at = meta.Index(n-1) + 1
		}
		return b.w.streams.tx, b.w.streams.rx, nil
	}
	for k := range uint32(4) {
		v := b.round(t, k)
		if v.good != (k != 1) {
			t.Errorf("round %d: good = %v, %v: %s", k, v.good, v.failed, v.reason)
		}
		if k == 1 && !strings.Contains(v.reason, "too slow") {
			t.Errorf("%v failed by %q", v.failed, v.reason)
		}
	}
	if restarts != 1 {
		t.Errorf("%d restarts", restarts)
	}
	b.w.cfg.Restart = func(context.Context) ([]radio.Transmitter, radio.Receiver, error) {
		return b.w.streams.tx, b.w.streams.rx, nil
	}
	board.stopped = true
	var err error
	attempts := 0
	for ; err == nil && attempts < 100; attempts++ {
		err = b.once(t.Context(), 10)
	}
	if !errors.Is(err, radio.ErrStarved) || attempts != mostStarved+1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
}

// Streams begin anew where the receiver has lost samples that nobody counted and frames are not
// found since: its index is farther off than it is searched for.
func TestWaveformAstray(t *testing.T) {
	b, _ := newLive(t, nil)
	gone := errors.New("a test")
	b.w.cfg.Restart = func(context.Context) ([]radio.Transmitter, radio.Receiver, error) { return nil, nil, gone }
	b.w.time.astray = mostAstray - 1
	if err := b.w.recount(t.Context()); err != nil {
		t.Error(err)
	}
	b.w.time.astray = mostAstray
	if err := b.w.recount(t.Context()); !errors.Is(err, gone) || !strings.Contains(err.Error(), "frames were not found since") {
		t.Error(err)
	}
}

// silent is a transmitter whose board loses samples without a word.
type silent struct{ radio.Transmitter }

func (silent) LosesSilently() bool { return true }

// Streams of boards that do not tell of their losses begin anew where nothing is read; those of
// others do not.
func TestWaveformSilentLoss(t *testing.T) {
	b, _ := newLive(t, nil)
	gone := errors.New("a test")
	b.w.cfg.Restart = func(context.Context) ([]radio.Transmitter, radio.Receiver, error) { return nil, nil, gone }
	b.w.unread = mostUnread
	if err := b.w.recount(t.Context()); err != nil {
		t.Error(err)
	}
	b.w.streams.tx[1] = silent{b.w.streams.tx[1]}
	b.w.unread = mostUnread - 1
	if err := b.w.recount(t.Context()); err != nil {
		t.Error(err)
	}
	b.w.unread = mostUnread
	if err := b.w.recount(t.Context()); !errors.Is(err, gone) || !strings.Contains(err.Error(), "the radio of device 2 does not tell of all that it loses") {
		t.Error(err)
	}
}

// Who waits for a radio is released by the context, patient or not, and not told that the
// radios stand still; what a new stream is opened with ends with it, too.
func TestWaveformEndsWithItsContext(t *testing.T) {
	for _, patience := range []time.Duration{0, time.Hour} {
		ctx, cancel := context.WithCancel(t.Context())
		b := newBench(t, func(c *WaveformConfig) {
			c.Receiver, c.Patience = ending{c.Receiver, cancel}, patience
		})
		if err := b.once(ctx, 100); !errors.Is(err, context.Canceled) || errors.Is(err, ErrStalled) {
			t.Errorf("patience %v: %v", patience, err)
		}
	}
	b, pacers := newLive(t, nil)
	pacers[0].events = []radio.Event{{Kind: radio.Underrun}}
	if v := b.round(t, 0); v.good {
		t.Fatal("a lost count was not seen")
	}
	b.w.cfg.Restart = func(ctx context.Context) ([]radio.Transmitter, radio.Receiver, error) {
		return nil, nil, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.w.Open(ctx, slot.Slot{Round: 1}, 10); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// ending is a receiver of which the run's context ends while it waits.
type ending struct {
	radio.Receiver
	end func()
}

func (e ending) Read(ctx context.Context, _ []complex64) (int, radio.Meta, error) {
	if e.end(); ctx.Err() == nil {
		return 0, radio.Meta{}, errors.New("this waits under another context")
	}
	return 0, radio.Meta{}, ctx.Err()
}

// once sends n zeros from each device, in the first transmission of a round.
func (b *bench) once(ctx context.Context, n int) error {
	if err := b.w.Open(ctx, slot.Slot{}, n); err != nil {
		return err
	}
	for i := range b.devices {
		if err := b.w.Transmit(i, b.m.NewVector(n)); err != nil {
			return err
		}
	}
	return b.w.Receive(ctx, &Reception{Y: b.m.NewVector(n), Pattern: make([]int64, b.w.PatternSymbols())})
}
