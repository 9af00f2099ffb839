package array

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ringwave/radio"
	"ringwave/radio/usb"
)

// Clock is what devices take for their reference.
type Clock int

// The clocks.
const (
	// ExternalClock: every device must follow the reference at its input.
	ExternalClock Clock = iota
	// SharedClock: the user says that they share one; devices are not asked.
	SharedClock
	// InternalClock: each has its own.
	InternalClock
)

// Trigger is how streams come to start together.
type Trigger int

// The triggers.
const (
	// WiredTrigger: wires lead from the first transmitter's trigger output to the
	// trigger inputs of all others.
	WiredTrigger Trigger = iota
	// NoTrigger: each starts when it starts.
	NoTrigger
	// LockStep: an emulated bench, whose time begins when all stream.
	LockStep
	// SoundedStart: each starts when it starts, and Config.Locate finds out when that was.
	SoundedStart
	// PulsedStart: each has a clock that a pulse sets (radio.TimedStart), and starts at one
	// time of it. Config.Locate, if it is there, measures how far apart that was.
	PulsedStart
)

// Config describes an Array.
type Config struct {
	Transmitters []string // URIs, 1 or more
	Receiver     string   // URI

	Rate, Frequency radio.Hertz
	// The gains of all transmitters and of the receiver, by the names of their
	// stages. Others stay as the URI has them.
	TransmitGains, ReceiveGains map[string]radio.Decibels

	Clock   Clock
	Trigger Trigger
	// Locate is for SoundedStart, and for PulsedStart, where it only measures. It is called at
	// the end of each Start: it says of each
	// running transmitter what must be added to its own index to get the one that all have
	// in common.
	Locate func(ctx context.Context, transmitters []radio.Transmitter, receiver radio.Receiver) ([]radio.SampleIndex, error)
}

// ErrIncoherent: the devices cannot be a coherent array; the text says why.
var ErrIncoherent = errors.New("no coherent array")

func incoherent(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrIncoherent, fmt.Errorf(format, args...))
}

// member is one device of an array.
type member struct {
	device radio.Device
	dir    radio.Direction
	role   string // for errors, as "transmitter 2"
	uri    string
	tuned  radio.Hertz

	// Of the present start.
	tx    radio.Transmitter // nil for the receiver
	rx    radio.Receiver    // nil for a transmitter
	armed bool              // waits for the trigger
	// common is tx by the index that all have in common, which is ahead of its own by offset.
	common radio.Transmitter
	offset radio.SampleIndex
	epoch  radio.Epoch // once all ran
}

// stream returns the open stream, nil if there is none.
func (m *member) stream() radio.Stream {
	switch {
	case m.tx != nil:
		return m.tx
	case m.rx != nil:
		return m.rx
	}
	return nil
}

// Array is an open array. It is for one goroutine, but for Close.
type Array struct {
	cfg     Config
	members []*member // the transmitters and then the receiver
	// starting is how long a stream may take to start.
	starting time.Duration

	mu     sync.Mutex // over Close and what it closes
	closed bool
	agreed bool               // clocks showed the same at a pulse
	apart  *radio.SampleCount // nil where it was not measured
}

// Open opens all devices, sets rate, carrier, gains and clocks, and checks that they
// can be coherent: ErrIncoherent, with the reason, where they cannot. Nothing is sent
// before Start.
func Open(ctx context.Context, devices *radio.Registry, cfg Config) (*Array, error) {
	if len(cfg.Transmitters) == 0 {
		return nil, errors.New("an array of 0 transmitters; allowed is 1 or more")
	}
	a := &Array{cfg: cfg, starting: starting}
	if err := a.open(ctx, devices); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Array) open(ctx context.Context, devices *radio.Registry) error {
	for i, uri := range a.cfg.Transmitters {
		if err := a.add(ctx, devices, fmt.Sprintf("transmitter %d", i+1), uri, radio.Transmit); err != nil {
			return err
		}
	}
	if err := a.add(ctx, devices, "the receiver", a.cfg.Receiver, radio.Receive); err != nil {
		return err
	}
	for _, m := range a.members {
		if err := a.set(ctx, m); err != nil {
			return fmt.Errorf("%s, %s: %w", m.role, m.uri, err)
		}
	}
	if err := a.checkCarriers(); err != nil {
		return err
	}
	if err := a.setClocks(ctx); err != nil {
		return err
	}
	return a.checkTriggers()
}

func (a *Array) add(ctx context.Context, devices *radio.Registry, role, uri string, dir radio.Direction) error {
	for _, m := range a.members {
		if m.uri == uri {
			return again(role, uri, m)
		}
	}
	d, err := devices.Open(ctx, uri)
	if errors.Is(err, usb.ErrInUse) {
		for _, m := range a.members {
			if m.named(uri) {
				return again(role, uri, m)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", role, err)
	}
	a.members = append(a.members, &member{device: d, dir: dir, role: role, uri: uri})
	_, receives := d.(radio.ReceiveOpener)
	_, transmits := d.(radio.TransmitOpener)
	if dir == radio.Transmit && !transmits || dir == radio.Receive && !receives {
		return fmt.Errorf("%s: %s cannot %v", role, uri, dir)
	}
	return nil
}

// again says that a device has another place already.
func again(role, uri string, m *member) error {
	return fmt.Errorf("%s, %s, is the same board as %s, %s; allowed is a board of its own for each", role, uri, m.role, m.uri)
}

// named reports whether a URI names the member's board by another name: drivers take the end
// of a serial number.
func (m *member) named(uri string) bool {
	u, err := radio.ParseURI(uri)
	info := m.device.Info()
	return err == nil && u.Scheme == info.Driver && strings.HasSuffix(strings.ToLower(info.Serial), strings.ToLower(u.Name))
}

// transmitters and receiver give the members by what they are there for.
func (a *Array) transmitters() []*member { return a.members[:len(a.cfg.Transmitters)] }
func (a *Array) receiver() *member       { return a.members[len(a.members)-1] }

// Infos tells what the devices are, the receiver last.
func (a *Array) Infos() []radio.Info {
	var all []radio.Info
	for _, m := range a.members {
		all = append(all, m.device.Info())
	}
	return all
}

// Transmitters returns the running streams, in the order of the URIs, by the index that
// they have in common; it is for after Start, and so are Offsets and Receiver.
func (a *Array) Transmitters() []radio.Transmitter {
	var all []radio.Transmitter
	for _, m := range a.transmitters() {
		all = append(all, m.common)
	}
	return all
}

// Offsets returns by how much the common index is ahead of each transmitter's own: 0 but
// for those that Config.Locate has found.
func (a *Array) Offsets() []radio.SampleIndex {
	var all []radio.SampleIndex
	for _, m := range a.transmitters() {
		all = append(all, m.offset)
	}
	return all
}

// Receiver returns the running receiver, at the transmitters' carrier.
func (a *Array) Receiver() radio.Receiver {
	r := a.receiver()
	return turn(r.rx, r.tuned, a.members[0].tuned, a.cfg.Rate)
}

// Flush returns the number of zeros that must be promised behind what is sent before
// the receiver has all of it: 0 where transmitters go on by themselves
// (radio.Pacer), else what the buffers on both ways hold.
func (a *Array) Flush() radio.SampleCount {
	most, paced := radio.SampleCount(0), true
	for _, m := range a.transmitters() {
		if _, ok := m.tx.(radio.Pacer); !ok {
			most, paced = max(most, m.buffered()), false
		}
	}
	if paced {
		return 0
	}
	return most + max(most, a.receiver().buffered())
}

// buffered returns the number of samples that a board's own buffers hold, 0 if it does
// not tell.
func (m *member) buffered() radio.SampleCount {
	if b, ok := m.device.(interface{ BufferSamples() radio.SampleCount }); ok {
		return b.BufferSamples()
	}
	return 0
}

// Close ends all streams, the transmitters' first and all at once, and closes the
// devices. A second Close does nothing.
func (a *Array) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	errs := []error{a.stop()}
	for _, m := range a.members {
		if err := m.device.Close(); err != nil {
			errs = append(errs, fmt.Errorf("closing %s, %s: %w", m.role, m.uri, err))
		}
	}
	return errors.Join(errs...)
}

// stop ends all streams. One that takes its time must not keep another's carrier on.
// The lock is held.
func (a *Array) stop() error {
	silent := a.hearOn()
	errs := make([]error, len(a.members))
	var done sync.WaitGroup
	for i, m := range a.members {
		if m.tx == nil {
			continue
		}
		done.Add(1)
		go func() {
			defer done.Done()
			errs[i] = m.end()
		}()
	}
	done.Wait()
	silent()
	for i, m := range a.members {
		if m.rx != nil {
			errs[i] = m.end()
		}
	}
	return errors.Join(errs...)
}

// hearOn has the receiver throw away what it hears, until the function it returns is
// called. Boards that wait for one another, as emulated ones may, take nothing more from
// their transmitters once nobody reads.
func (a *Array) hearOn() (end func()) {
	var rx radio.Receiver
	for _, m := range a.members { // not all may be open
		if m.rx != nil {
			rx = m.rx
		}
	}
	if rx == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		waste := make([]complex64, 1<<14)
		for {
			if _, _, err := rx.Read(ctx, waste); err != nil {
				return
			}
		}
	}()
	return func() {
		cancel()
		done.Wait()
	}
}

// end ends a member's stream.
func (m *member) end() error {
	err := m.stream().Close()
	m.tx, m.rx, m.armed, m.epoch, m.common, m.offset = nil, nil, false, 0, nil, 0
	if err != nil {
		err = fmt.Errorf("closing the stream of %s, %s: %w", m.role, m.uri, err)
	}
	return err
}
