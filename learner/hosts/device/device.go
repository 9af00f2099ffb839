package device

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// Member is a device's copy of the model, and its losses: learner.Member.
type Member interface {
	Round() int
	Scalars(ctx context.Context, k int) (values []float64, loss float64, clipped, overflowed int, err error)
	Apply(k int, m []float64) error
	Skip(k int) error
	// Restore puts it where another was.
	Restore(round int, theta []float64) error
	Digest() [32]byte
}

// Framer makes of a vector what the air takes.
type Framer interface {
	// Frame returns the frame of a transmission, or one of its repeats, which are counted
	// from 1. The vector may change afterwards. The same arguments give the same bytes.
	Frame(s slot.Slot, repeat int, x zq.Vector) ([]byte, error)
	// Group returns the device's time slot, and Repeats how often a frame may be sent again.
	Group() int
	Repeats() int
}

// Radio is a device's own transmitter, as the server asks it: remote.Host.
type Radio interface {
	// Handle does what a request asks for, and returns the answer; nil for none. Several may
	// be handled at once.
	Handle(ctx context.Context, request []byte) (answer []byte)
}

// Part is what a device is in a run, or in a calibration, which has a Radio and a Readiness
// alone.
type Part struct {
	Context *xmkckks.Context
	Cipher  *xmkckks.Device
	Member  Member
	Framer  Framer
	// Radio, if not nil, is what the Framer's frames go over, in place of the bus.
	Radio Radio
	// Rounds is the run's K.
	Rounds int
	// Epoch returns the key epoch of a round.
	Epoch func(k int) uint32
	// Minimum is with how many others and itself it takes part.
	Minimum   int
	Readiness wire.Readiness
	// Note, if not nil, takes note of a round: its mean loss, and the scalars.
	Note func(k int, loss float64, values []float64, clipped int) error
	// Close lets go of all that it holds.
	Close func() error
}

// Config is what a device is made of.
type Config struct {
	Identity identity.Identity
	Bus      bus.Conn
	// Version is that of the program.
	Version string
	// Join makes the device's part in a run, or says why it cannot.
	Join func(run wire.RunID, w wire.Run) (*Part, error)
	// Beat is how often the device says that it is there; 0 for once a second.
	Beat time.Duration
	// Silence is after what time without a word of its run's server the device greets anew,
	// and Patience after what time without a word of any it ends; 0 for never. One that
	// stays does not end.
	Silence, Patience time.Duration
	// ReplayRounds is how many rounds it replays at most where it may take a checkpoint of
	// theta; 0 for all.
	ReplayRounds int
	// MaxOffset is by how much the server's clock may differ; 0 for a minute.
	MaxOffset time.Duration
	// Now is the host's clock; nil for time.Now.
	Now func() time.Time
	// Say hears what a user should know; nil for nobody.
	Say func(text string)
	// Stay has the device wait for the next run behind one's end.
	Stay bool
}

// Device is one of a bench. Its Run is for one goroutine.
type Device struct {
	cfg   Config
	index int // from 1
	inbox chan []byte
	asked chan []byte // requests to the radio
	tuned atomic.Pointer[tuned]
	now   func() time.Time

	greeting  wire.Greeting
	run       wire.RunID
	part      *Part // nil before it has joined
	beat      atomic.Pointer[[]byte]
	welcomed  []byte    // the nonce of the greeting that the part comes of
	heard     time.Time // when the run's server last said something
	word      time.Time // when any did
	quiet     int       // for how many beats it has been too long
	leaders   leaders
	warned    bool   // of its identity's end, in this run
	refused   string // the last refusal that was told
	lastAsked time.Time

	key *xmkckks.AggregatedKey
	c1  *xmkckks.AggregatedC1
	in  zq.Vector // of broadcasts

	at       slot.Slot // the attempt at hand
	prepared bool
	next     slot.Transmission
	present  []bool
	values   []float64
	scored   int          // the round of values
	note     func() error // takes note of that round, until it has
	share    zq.Vector
	answered []answer // of the attempt, by transmission
	pending  *wire.Message
	opened   map[uint32][]byte // b of epochs that are over

	replayed, fetched int // rounds, and bytes of their records, since it lacked any
	catching          catching

	commitment []byte // to b of the epoch below; nil before
	committed  uint32

	ended time.Time // when the device first heard of the end; zero before
}

// answer is what was sent in a transmission, and under which broadcast.
type answer struct {
	slot      slot.Slot
	repeat    int
	frame     []byte
	broadcast wire.Digest // of repeat 0, which alone has one
}

var (
	// ErrEnded says that the run is over, and why.
	ErrEnded = errors.New("the run has ended")
	// ErrBehind says that it is over for a device that has not heard of all of it.
	ErrBehind = errors.New("the run is over")
)

// New returns a device that has not greeted yet.
func New(cfg Config) (*Device, error) {
	if cfg.Identity.Role != identity.Device {
		return nil, fmt.Errorf("%s: the identity is that of %s; allowed is that of a device", cfg.Identity.Path, cfg.Identity)
	}
	if cfg.Beat == 0 {
		cfg.Beat = time.Second
	}
	if cfg.MaxOffset == 0 {
		cfg.MaxOffset = time.Minute
	}
	if cfg.Say == nil {
		cfg.Say = func(string) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Device{cfg: cfg, index: cfg.Identity.Index, inbox: make(chan []byte, inboxSize), asked: make(chan []byte, inboxSize), now: cfg.Now}, nil
}

// inboxSize is how many messages wait for the device; more are lost, as the bus may lose
// them, and are said again.
const inboxSize = 256

// Run takes part until the run ends, or ctx does. It returns nil where the run came to its
// end.
func (d *Device) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	receive := func(m bus.Message) {
		to := d.inbox
		if wire.IsRadio(m.Payload) { // which does not wait for what the device computes
			to = d.asked
		}
		select {
		case to <- m.Payload:
		default:
		}
	}
	for _, pattern := range []string{wire.AllToAll, wire.AllToDevice(d.index)} {
		stop, err := d.cfg.Bus.Subscribe(pattern, receive)
		if err != nil {
			return fmt.Errorf("listening to the server: %w", err)
		}
		defer stop()
	}
	var beats sync.WaitGroup
	beats.Go(func() { d.beats(ctx) })
	beats.Go(func() { d.sound(ctx) })
	defer beats.Wait()
	defer cancel()
	defer func() { err = errors.Join(err, d.leave()) }()
	err = d.follow(ctx)
	if d.part != nil && ctx.Err() != nil { // else the server hears of it by silence
		err = errors.Join(err, d.answer(wire.Message{Kind: wire.Refused, Body: []byte("it was stopped")}))
	}
	return err
}

// follow handles messages as they come.
func (d *Device) follow(ctx context.Context) error {
	d.word = d.now()
	if err := d.greet(); err != nil {
		return err
	}
	tick := time.NewTicker(d.cfg.Beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := d.tick(); err != nil {
				if errors.Is(err, ErrEnded) && !d.cfg.Stay {
					return nil
				}
				return err
			}
		case b := <-d.inbox:
			m, err := d.open(b)
			if err != nil {
				d.tell("ignored a message: " + err.Error())
				continue
			}
			d.word = d.now()
			if err := d.handle(ctx, m); errors.Is(err, ErrEnded) && !d.cfg.Stay {
				return nil
			} else if err != nil && !errors.Is(err, ErrEnded) {
				return err
			}
		}
	}
}

// alive has the device say from here on that it is in the run, by the greeting with which it
// was let in: a process that another has taken the place of is told so.
func (d *Device) alive(nonce []byte) {
	d.welcomed = bytes.Clone(nonce)
	beat := wire.Message{Kind: wire.Beat, Run: d.run, Device: uint32(d.index), Body: d.welcomed}.Bytes()
	d.beat.Store(&beat)
}

// tick judges silence, greets while the device has no part, and leaves where nobody says that it may go.
func (d *Device) tick() error {
	if err := d.listen(); err != nil {
		return err
	}
	if d.part == nil {
		return d.greet()
	}
	if !d.ended.IsZero() && d.now().Sub(d.ended) > 10*d.cfg.Beat {
		return errors.Join(ErrEnded, d.leave())
	}
	return nil
}

// open reads a message of the server's.
func (d *Device) open(b []byte) (wire.Message, error) {
	return wire.Open(b, d.verify)
}

func (d *Device) verify(purpose string, message, signature []byte) error {
	return identity.Verify(d.cfg.Identity.Server, purpose, message, signature)
}

// tell tells the user something once.
func (d *Device) tell(text string) {
	if text != d.refused {
		d.refused = text
		d.cfg.Say(text)
	}
}

// beats says every so often that the device is there, whatever it is doing.
func (d *Device) beats(ctx context.Context) {
	tick := time.NewTicker(d.cfg.Beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if b := d.beat.Load(); b != nil {
			m, err := wire.Parse(*b)
			if err == nil {
				_ = d.cfg.Bus.Publish(m.Run.FromDevice(d.index), *b) // the next may arrive
			}
		}
	}
}

// greet says hello with a new nonce. Hellos are of no run.
func (d *Device) greet() error {
	id := d.cfg.Identity
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	nonce := make([]byte, 16)
	if _, err := rand.Read(nonce); err != nil {
		return fmt.Errorf("drawing a nonce: %w", err)
	}
	d.greeting = wire.Greeting{
		Nonce: nonce, Version: d.cfg.Version, Clock: d.now(), Host: host,
		Nkey: id.Nkey, NotBefore: id.NotBefore, Expires: id.Expires, Statement: id.Signature,
	}
	body, err := wire.AppendJSON(d.greeting)
	if err != nil {
		return err
	}
	return d.say(wire.Message{Kind: wire.Hello, Body: body})
}

// say sends a message to the server. Where the bus is gone for now, it is as if lost.
func (d *Device) say(m wire.Message) error {
	m.Device = uint32(d.index)
	if err := d.cfg.Bus.Publish(m.Run.FromDevice(d.index), m.Bytes()); err != nil {
		d.tell("the bus does not take messages: " + err.Error())
	}
	return nil
}

// answer sends a message of the run.
func (d *Device) answer(m wire.Message) error {
	if m.Run = d.run; d.part.Cipher != nil {
		m.Epoch = d.part.Cipher.Epoch()
	}
	return d.say(m)
}

// refuse tells the server, and the user, why something is not done.
func (d *Device) refuse(s slot.Slot, why error) error {
	d.tell(why.Error())
	return d.answer(wire.Message{Kind: wire.Refused, Slot: s, Body: []byte(why.Error())})
}

// decline tells the server, and returns to the user, why the device has no part in a run.
func (d *Device) decline(run wire.RunID, why error) error {
	return errors.Join(why, d.say(wire.Message{Kind: wire.Refused, Run: run, Body: []byte(why.Error())}))
}

// leave lets go of the part in a run.
func (d *Device) leave() error {
	d.beat.Store(nil)
	d.tuned.Store(nil)
	if d.part == nil {
		return nil
	}
	part := d.part
	d.part, d.pending = nil, nil
	if part.Cipher != nil {
		part.Cipher.Close()
	}
	if part.Close == nil {
		return nil
	}
	return part.Close()
}
