package loopback

import (
	"context"
	"fmt"
	"math"
	"sync"

	"ringwave/radio"
)

// Path is the distortion of one device's signal.
type Path interface {
	// Apply distorts src into dst, of the same length and apart from it;
	// firstIndex is the transmit index of src[0]. Calls follow each other without
	// gaps from index -Delay on, zeros included, so a Path may keep state. How the
	// stream is cut into calls must not change what comes out.
	Apply(dst, src []complex64, firstIndex int64)
}

// Noise adds the receiver's noise.
type Noise interface {
	// Add adds noise to dst; firstIndex is the receive index of dst[0]. Calls
	// follow each other as those of a Path do.
	Add(dst []complex64, firstIndex int64)
}

// Converter is what the receiver does to what it hears last: amplification,
// quantisation, clipping. One that also has ClipLevel() radio.Amplitude lends it to
// the receiver (radio.Ranged).
type Converter interface {
	// Convert works in place and gives the number of samples that it clipped.
	Convert(dst []complex64, firstIndex int64) (clipped int)
}

// Superposition puts into dst what the receiver hears when arriving[i] is what
// comes from device i, gain included, all of dst's length. It may change arriving.
type Superposition func(dst []complex64, arriving [][]complex64, firstIndex int64)

// Device describes one transmitter.
type Device struct {
	// Gain multiplies its samples; a Gain of 0 is silence.
	Gain complex64
	// Delay is the travelling time in samples, 0 to MaxDelay. What is less than a
	// sample belongs to the Path.
	Delay radio.SampleCount
	// Path distorts, before gain and delay; nil does nothing.
	Path Path
}

// Config describes a Medium.
type Config struct {
	// Name is what URIs call it.
	Name string
	// Rate is the sample rate of all, above 0 and at most MaxRate.
	Rate    radio.Hertz
	Devices []Device
	// Superpose replaces the sum over devices, which is taken in their order.
	Superpose Superposition
	Noise     Noise     // nil for none
	Converter Converter // nil for none
	// Clock makes the medium run in real time.
	Clock Clock
	// Window is the number of written samples that may wait for the reader, for
	// each device; 0 is DefaultWindow, the least is MinWindow.
	Window int
	// ReceiveBuffer is the number of samples that a receiver in real time may be
	// behind before it overruns; 0 is DefaultReceiveBuffer.
	ReceiveBuffer radio.SampleCount
}

const (
	// MaxDelay is 100 s at 10 Msps.
	MaxDelay radio.SampleCount = 1e9
	// MaxRate leaves each sample more than a nanosecond's length.
	MaxRate radio.Hertz = 1e9
	// DefaultWindow holds the longest frame of one device that is usual, with room
	// to spare, in 32 MB; memory is taken as it is needed.
	DefaultWindow = 1 << 22
	// MinWindow is the block that is mixed at a time: with less, reader and writer
	// would wait for each other.
	MinWindow = mixBlock
	// DefaultReceiveBuffer is 0.1 s at 10 Msps.
	DefaultReceiveBuffer radio.SampleCount = 1e6
	// mixBlock keeps the samples of a few devices in the first-level cache, and mixStretch
	// those of all devices in the second.
	mixBlock   = 2048
	mixStretch = 1 << 15
	// lastIndex leaves room to add delays to any index.
	lastIndex = radio.SampleIndex(math.MaxInt64) - radio.SampleIndex(MaxDelay)
)

// Medium joins transmitters and a receiver. It is safe for use by several
// goroutines.
type Medium struct {
	cfg   Config
	lines []*line

	mu     sync.Mutex
	next   radio.SampleIndex // the first index that was not mixed
	closed bool
	rx     *receiver // the open one, or nil
	// mixing is set while a reader computes without the lock: a reader that was
	// closed meanwhile and the one opened after it must not do so together.
	mixing bool
	// rxEpoch, rxTurn and rxFrequency outlive streams.
	rxEpoch     radio.Epoch
	rxTurn      complex64
	rxFrequency radio.Hertz
	drops       []span
	rxTurns     []step
	// changed is closed when something happens that a waiter may wait for; nil
	// while nobody waits.
	changed chan struct{}
}

// New makes a medium at index 0.
func New(cfg Config) (*Medium, error) {
	if !(cfg.Rate > 0 && cfg.Rate <= MaxRate) {
		return nil, fmt.Errorf("loopback %q has a sample rate of %v; allowed is above 0 to %v", cfg.Name, cfg.Rate, MaxRate)
	}
	if len(cfg.Devices) == 0 {
		return nil, fmt.Errorf("loopback %q has 0 devices; allowed is 1 or more", cfg.Name)
	}
	if cfg.Window == 0 {
		cfg.Window = DefaultWindow
	}
	if cfg.Window < MinWindow {
		return nil, fmt.Errorf("loopback %q has a window of %d samples; allowed is %d or more", cfg.Name, cfg.Window, MinWindow)
	}
	if cfg.ReceiveBuffer == 0 {
		cfg.ReceiveBuffer = DefaultReceiveBuffer
	}
	if cfg.ReceiveBuffer < 0 {
		return nil, fmt.Errorf("loopback %q has a receive buffer of %d samples; allowed is 1 or more", cfg.Name, cfg.ReceiveBuffer)
	}
	m := &Medium{cfg: cfg, rxTurn: 1}
	for i, d := range cfg.Devices {
		if d.Delay < 0 || d.Delay > MaxDelay {
			return nil, fmt.Errorf("loopback %q: device %d has a delay of %d samples; allowed is 0 to %d", cfg.Name, i, d.Delay, MaxDelay)
		}
		m.lines = append(m.lines, &line{gain: d.Gain, turn: 1, delay: radio.SampleIndex(d.Delay), path: d.Path})
	}
	return m, nil
}

// Name returns the name in the config.
func (m *Medium) Name() string { return m.cfg.Name }

// Close closes the medium and all its streams.
func (m *Medium) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.rx != nil {
		m.rx.close()
	}
	for _, l := range m.lines {
		if l.tx != nil {
			l.tx.close()
		}
	}
	m.wake()
	return nil
}

// wait gives up the lock until something changed or ctx is done; the caller looks
// which.
func (m *Medium) wait(ctx context.Context) {
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	changed := m.changed
	m.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	m.mu.Lock()
}

// wake lets all who wait look again.
func (m *Medium) wake() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// line returns device i's line, with the lock held.
func (m *Medium) line(i int) (*line, error) {
	if m.closed {
		return nil, radio.ErrClosed
	}
	if i < 0 || i >= len(m.lines) {
		return nil, fmt.Errorf("loopback %q has no device %d; allowed is 0 to %d", m.cfg.Name, i, len(m.lines)-1)
	}
	return m.lines[i], nil
}

// cursor is the first transmit index of l that was not mixed.
func (m *Medium) cursor(l *line) radio.SampleIndex { return m.next - l.delay }

// Mute says that device i sends nothing before it is opened, so that no read
// waits for it.
func (m *Medium) Mute(i int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.line(i)
	if err != nil {
		return err
	}
	if l.tx != nil {
		return fmt.Errorf("loopback %q: device %d is open; allowed is to mute one that is not", m.cfg.Name, i)
	}
	l.done = true
	m.wake()
	return nil
}
