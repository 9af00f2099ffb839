package radio

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The errors that callers tell apart, by errors.Is.
var (
	// ErrClosed: the stream or device was closed.
	ErrClosed = errors.New("the stream is closed")
	// ErrNotStarted: the stream is Ready.
	ErrNotStarted = errors.New("the stream was not started")
	// ErrUntimed: the device cannot send at a given index.
	ErrUntimed = errors.New("the device cannot send at a given index")
	// ErrBusy: what was asked for is already open.
	ErrBusy = errors.New("already open")
	// ErrStarved: the stream has stopped as the host was too slow for it. Another one can
	// begin.
	ErrStarved = errors.New("the stream has stopped as the host was too slow for it")
	// ErrBurstEnd: a burst ended before ReadFull had what it was asked for.
	ErrBurstEnd = errors.New("the burst ended")
)

// State is where a stream is in its life; it only goes forward.
type State int

const (
	Ready   State = iota // opened, not started
	Armed                // started, waits for a trigger
	Running              // samples flow
	Closed               // for good
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Armed:
		return "armed"
	case Running:
		return "running"
	case Closed:
		return "closed"
	}
	return "unknown state"
}

// Stream is what transmit and receive streams share.
type Stream interface {
	// Start lets samples flow. It fails with ErrClosed on a closed stream and
	// with ErrBusy on one that was started before. On a stream that is Armed a Read
	// waits for the trigger, and a Write takes in what is sent after it.
	Start(ctx context.Context) error
	State() State
	// Epoch returns the present tuning epoch.
	Epoch() Epoch
	// Close ends the stream and makes calls that wait in it return ErrClosed. A
	// second Close does nothing.
	Close() error
}

// Receiver is a stream of received samples.
type Receiver interface {
	Stream
	// Read waits for samples and puts up to len(dst) of them into dst. The n
	// samples are good and meta tells of them even where err is not nil. With
	// room in dst and no error n is at least 1.
	//
	// The error is ctx's, ErrClosed, ErrNotStarted, io.EOF at the end of what
	// ends, or the failure of the device. Loss of samples is none.
	Read(ctx context.Context, dst []complex64) (n int, meta Meta, err error)
}

// Bounded is a Receiver whose reads can be kept from stepping over an index. A read
// steps over a loss and fills its block behind it. Where time waits for what is
// written, as in memory, that may be for ever if the reader is the one who writes.
type Bounded interface {
	Receiver
	// ReadUntil is Read for the samples before index until. n is 0 without an error
	// if there is none left: what would come before until was lost or read.
	ReadUntil(ctx context.Context, dst []complex64, until SampleIndex) (n int, meta Meta, err error)
}

// Ranged is a Receiver that knows where its converter ends.
type Ranged interface {
	// ClipLevel returns the amplitude of I or Q that only samples at the converter's
	// limit reach, at most 1 for a board; 0 where there is no limit.
	ClipLevel() Amplitude
}

// ClipLevel returns r's clip level, 0 if it knows none.
func ClipLevel(r Receiver) Amplitude {
	if c, ok := r.(Ranged); ok {
		return c.ClipLevel()
	}
	return 0
}

// Transmitter is a stream of samples to send.
type Transmitter interface {
	Stream
	// Write waits for room and takes src in; it does not wait until samples are
	// on air. If it fails, the first n samples were taken and will be sent.
	//
	// The error is ctx's, ErrClosed, ErrNotStarted, ErrUntimed, or the failure of
	// the device. Underruns and late blocks are events.
	Write(ctx context.Context, src []complex64, meta TxMeta) (n int, err error)
	// Event returns the oldest event not yet given and waits for one. An event
	// that is there is given even if ctx is done, so that a done ctx polls. After
	// Close come the events that are left, then ErrClosed.
	Event(ctx context.Context) (Event, error)
}

// Idler is a Transmitter that sends zeros without being given them.
type Idler interface {
	// Idle promises that nothing is written before index until: zeros are sent.
	// An index that was already reached changes nothing.
	Idle(ctx context.Context, until SampleIndex) error
}

// TxMeta says how a block is to be sent. The zero value appends the block to what
// was written before.
type TxMeta struct {
	// Timed sends the first sample at index Start, with zeros before it. A block
	// whose time has passed is dropped whole and a Late event tells.
	Timed bool
	Start SampleIndex
	// BurstEnd says that nothing need follow: running dry is then no underrun.
	BurstEnd bool
}

// Flags say what happened to a block of received samples.
type Flags uint32

const (
	// Overrun: samples were lost; Gaps tell where and how many.
	Overrun Flags = 1 << iota
	// Clipped: samples were at the converter's limit.
	Clipped
	// Invalid: samples were NaN or infinite and are 0 in the block.
	Invalid
	// BurstEnded: the block's last sample is the last of a burst.
	BurstEnded
	// HostCounted: indices are counted by the host, not by the board.
	HostCounted
	// Unlocked: the reference clock was lost.
	Unlocked
)

// String returns the names of the flags that are set.
func (f Flags) String() string {
	names := [...]string{"overrun", "clipped", "invalid", "burst end", "host counted", "unlocked"}
	var set []string
	for i, name := range names {
		if f&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return "none"
	}
	return strings.Join(set, ", ")
}

// Gap says that samples are missing from a block.
type Gap struct {
	// At is the position in the block of the first sample after the gap.
	At int
	// Length is the number of samples missing. Indices in the block step over
	// them.
	Length SampleCount
	// Exact says that At and Length were counted. Otherwise the loss lies
	// somewhere between the block before and At, and Length is an estimate, 0 if
	// there is none.
	Exact bool
}

// EpochChange says that a new epoch begins within a block.
type EpochChange struct {
	At    int // the position in the block of the new epoch's first sample
	Epoch Epoch
}

// Meta tells of the samples of one block. Its slices belong to whoever got it.
type Meta struct {
	// First is the index of the block's first sample, after a gap at 0 if there
	// is one.
	First SampleIndex
	// Epoch is that of the first sample, Changes are what follows, ascending.
	Epoch   Epoch
	Changes []EpochChange
	// Gaps are ascending by At; At is less than the number of samples.
	Gaps  []Gap
	Flags Flags
	// Clipped and Invalid count samples, each at most once.
	Clipped, Invalid SampleCount
}

// Index returns the index of the sample at position k of the block.
func (m *Meta) Index(k int) SampleIndex {
	i := m.First + SampleIndex(k)
	for _, g := range m.Gaps {
		// A gap before the first sample is part of First.
		if g.At > 0 && g.At <= k {
			i += SampleIndex(g.Length)
		}
	}
	return i
}

// EpochAt returns the epoch of the sample at position k of the block.
func (m *Meta) EpochAt(k int) Epoch {
	e := m.Epoch
	for _, c := range m.Changes {
		if c.At <= k {
			e = c.Epoch
		}
	}
	return e
}

// Append makes m, which tells of n samples, tell of those and of the block after
// them. A step in index that next does not explain becomes a gap that is not
// exact. It fails, and leaves m as it was, where the index steps backwards.
func (m *Meta) Append(n int, next Meta) error {
	if n == 0 {
		*m = next
		return nil
	}
	expected := m.Index(n-1) + 1
	for _, g := range next.Gaps {
		if g.At == 0 {
			expected += SampleIndex(g.Length)
		}
	}
	if next.First < expected {
		return fmt.Errorf("a receiver's block begins at index %d where %d or more was due", next.First, expected)
	}
	if e := m.EpochAt(n - 1); next.Epoch != e {
		m.Changes = append(m.Changes, EpochChange{At: n, Epoch: next.Epoch})
	}
	if missing := next.First - expected; missing > 0 {
		m.Gaps = append(m.Gaps, Gap{At: n, Length: SampleCount(missing)})
		m.Flags |= Overrun
	}
	for _, g := range next.Gaps {
		g.At += n
		m.Gaps = append(m.Gaps, g)
	}
	for _, c := range next.Changes {
		c.At += n
		m.Changes = append(m.Changes, c)
	}
	m.Flags |= next.Flags
	m.Clipped += next.Clipped
	m.Invalid += next.Invalid
	return nil
}
