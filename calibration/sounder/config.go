package sounder

import (
	"fmt"
	"math"
	"time"

	"ringwave/calibration/sounding"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// MaxBlockSamples bounds the length of a block: streams in memory hold that much of
// what was written and not yet read.
const MaxBlockSamples radio.SampleCount = 1 << 24

// AcquisitionBursts is the number of a device's first bursts in a session that are
// searched together for its delay and carrier offset: with it a delay's error of
// 0.02 samples from one burst becomes 0.004, which takes 6e-6 off the gain.
const AcquisitionBursts = 32

// Config describes what is played over what.
type Config struct {
	Sounding *sounding.Sounding
	Devices  int
	// Blocks is their number, Looks the bursts of each device in a block, 1 or more.
	Blocks, Looks int
	// Sessions is in how many parts, as equal as can be, the blocks are made; between
	// them streams begin anew by Restart, if there is one. 0 stands for 1.
	Sessions int
	// LookEvery is the time from a look to the next, BlockEvery that from a block to
	// the next; as long as it takes where that is longer.
	LookEvery, BlockEvery radio.SampleCount
	// Guard is the silence before a burst and after it, longer than any delay.
	Guard radio.SampleCount
	// Search is where bursts are looked for around their nominal place; its delay is
	// at most Guard.
	Search sounding.Search
	// Amplitude is the largest magnitude of a sample sent, above 0 and at most 1.
	Amplitude modem.Amplitude

	// Transmitters, one a device, and Receiver are running streams of one clock whose
	// next samples have index Start. Without transmitters the sounder listens only,
	// as to a recording, and BlockAt says where blocks are.
	Transmitters []radio.Transmitter
	Receiver     radio.Receiver
	Start        radio.SampleIndex
	// Lead, Reach, Flush and Restart are what phy.WaveformConfig says of them. What
	// the receiver's index differs by is found with the first block of a session.
	Lead    radio.SampleCount
	Reach   radio.SampleCount
	Flush   radio.SampleCount
	Restart func() (transmitters []radio.Transmitter, receiver radio.Receiver, err error)
	// Patience is how long a stream may give or take nothing before Run ends with
	// ErrStalled; 0 for ever, as in memory. It must be longer than a block, its Lead
	// and twice its Reach take on the air.
	Patience time.Duration
	// BlockAt returns the receiver's index at which a block begins, and its session.
	BlockAt func(block int) (at radio.SampleIndex, session int, err error)

	// First is the number of blocks that are done; Session is the session to which
	// block First belongs, and Acquired what was found in it, nil where it begins.
	// Streams that cannot begin anew by Restart are those in which these blocks were
	// played, or others that must go on behind them all the same, as in memory.
	First    int
	Session  int
	Acquired []Acquired

	// OnLook, if not nil, hears of each look, with the transmitters' index at which
	// it begins, before it is sent: a simulation sets the gains there.
	OnLook func(block, look int, at radio.SampleIndex) error
	// OnBlock, if not nil, hears of each block that was captured, with the receiver's
	// indices of its first sample and behind its last.
	OnBlock func(block, session int, first, end radio.SampleIndex) error
}

// Acquired is where the soundings of a device are found in a session.
type Acquired struct {
	Delay  modem.Samples
	Offset modem.CyclesPerSample
}

// A list of checks, one after the other: parts of it would read no better.
func (c *Config) validate() error {
	switch {
	case c.Sounding == nil || c.Receiver == nil:
		return fmt.Errorf("a sounder needs a sounding and a receiver")
	case c.Devices < 1 || c.Transmitters != nil && len(c.Transmitters) != c.Devices:
		return fmt.Errorf("%d transmitters for %d devices: there must be one a device", len(c.Transmitters), c.Devices)
	case c.Blocks < 1 || c.Looks < 1 || c.Sessions < 0 || c.Sessions > c.Blocks:
		return fmt.Errorf("%d blocks of %d looks in %d sessions: there must be at least one of each, and a block in each session", c.Blocks, c.Looks, c.Sessions)
	case c.LookEvery < 0 || c.BlockEvery < 0 || c.Guard < 1:
		return fmt.Errorf("a look every %d samples, a block every %d, guards of %d: they must not be negative, and guards at least 1", c.LookEvery, c.BlockEvery, c.Guard)
	case !(c.Search.Delay >= 0 && c.Search.Delay <= modem.Samples(c.Guard)):
		return fmt.Errorf("a search over %v samples either way: allowed are 0 to the guard's %d", c.Search.Delay, c.Guard)
	case !(c.Amplitude > 0 && c.Amplitude <= 1):
		return fmt.Errorf("an amplitude of %v: it must be above 0 and at most 1", c.Amplitude)
	case c.Transmitters == nil && c.BlockAt == nil:
		return fmt.Errorf("a sounder that only listens must be told where blocks are")
	case c.Patience < 0:
		return fmt.Errorf("a patience of %v: it must be positive, or 0 for ever", c.Patience)
	case c.First < 0 || c.First > c.Blocks:
		return fmt.Errorf("%d of %d blocks are done", c.First, c.Blocks)
	case c.Acquired != nil && len(c.Acquired) != c.Devices:
		return fmt.Errorf("delays of %d devices for %d", len(c.Acquired), c.Devices)
	}
	if n := c.span(); n > MaxBlockSamples {
		return fmt.Errorf("a block of %d looks lasts %d samples: allowed are at most %d: shorten the time from look to look", c.Looks, n, MaxBlockSamples)
	}
	return nil
}

// slot returns the samples of a burst with its guards.
func (c *Config) slot() radio.SampleCount {
	return radio.SampleCount(c.Sounding.Burst()) + 2*c.Guard
}

// lookEvery returns the samples from a look to the next.
func (c *Config) lookEvery() radio.SampleCount {
	return max(c.LookEvery, radio.SampleCount(c.Devices)*c.slot())
}

// span returns the samples of a block, pause not included.
func (c *Config) span() radio.SampleCount {
	if c.Devices > math.MaxInt32 || c.lookEvery() > MaxBlockSamples {
		return c.lookEvery()
	}
	return radio.SampleCount(c.Looks-1)*c.lookEvery() + radio.SampleCount(c.Devices)*c.slot()
}

// lookSpan returns the samples of a look.
func (c *Config) lookSpan() radio.SampleCount { return radio.SampleCount(c.Devices) * c.slot() }

// BlockSamples returns the samples from a block to the next, where boards do not ask
// for more.
func (c *Config) BlockSamples() radio.SampleCount { return max(c.BlockEvery, c.span()) }

// slotStart returns where the slot of a burst begins in its block, in samples.
func (c *Config) slotStart(look, device int) radio.SampleIndex {
	return radio.SampleIndex(radio.SampleCount(look)*c.lookEvery() + radio.SampleCount(device)*c.slot())
}

// sessionBlocks returns the blocks of a session, the last one's perhaps fewer.
func (c *Config) sessionBlocks() int {
	n := max(1, c.Sessions)
	return (c.Blocks + n - 1) / n
}

// LookSamples returns the samples from a look to the next.
func (c *Config) LookSamples() radio.SampleCount { return c.lookEvery() }

// BurstCentre returns where the centre of a burst lies behind the first sample of its
// block, in samples, without the device's delay.
func (c *Config) BurstCentre(look, device int) float64 {
	return float64(c.slotStart(look, device)) + float64(c.Guard) + float64(c.Sounding.Burst()-1)/2
}
