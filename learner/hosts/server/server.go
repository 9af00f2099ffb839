package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy/slot"
)

// Config is what a server is made of.
type Config struct {
	Identity identity.Identity
	Bus      bus.Conn
	// Admit says why a device of this index and nkey is not wanted, though its enrolment
	// holds; nil for none. It is asked at each greeting.
	Admit func(index int, nkey string) error
	// Run names the run, and Welcome is what devices must know of it.
	Run     wire.RunID
	Name    string
	Welcome wire.Run
	// Rounds is the run's K.
	Rounds  int
	Context *xmkckks.Context
	// Records are those of earlier sittings, sealed, of rounds 1 on.
	Records [][]byte
	// Deadline is how long a step may take a device before it counts as absent; 0 for 20 s.
	// Silence is how long a device may say nothing at all; 0 for 5 s.
	Deadline, Silence time.Duration
	// Herald says that the server is there; nil for one of its own.
	Herald *Herald
	// Now is the host's clock; nil for time.Now.
	Now func() time.Time
	// Say hears what a user should know; nil for nobody.
	Say func(text string)
}

// Server leads a run. Its methods are for one goroutine, but that the participants may be
// asked side by side and Census any time.
type Server struct {
	cfg   Config
	stops []func()
	now   func() time.Time
	done  context.CancelFunc
	ended sync.WaitGroup // of its goroutines

	mu      sync.Mutex
	devices []*remote
	asking  *asking       // nil between steps
	usual   time.Duration // about how long it takes until all have answered a step
	records [][]byte      // of rounds 1 on, sealed
	next    []byte        // the record that the next Prepare carries
	changed chan struct{} // closed when somebody comes or goes
	differs error         // a device whose model is another
	present []bool        // in the attempt at hand
	visits  []int         // of devices, when they got ready for it
	audit   audit
	left    map[int]wire.Digest // digests of the model of those who have heard of the end
	radio   ear                 // nil before there is one
	over    bool                // the run is
	theta   checkpoint          // the last that devices may have
	tempo   pace
	warned  bool // of its own identity's end
}

// remote is one device. What it has is guarded by its server's mu, but for the constants.
type remote struct {
	server *Server
	index  int // from 1
	host   wire.Host
	seen   time.Time
	nonce  string          // of the greeting that was welcomed
	past   map[string]bool // of greetings that were answered, whose repetitions on the bus are no greetings
	visit  int             // counts its welcomes
	gone   chan struct{}   // closed when it is lost; nil while it is not present
	rests  time.Time       // until when a device that refused is not asked again

	expires time.Time              // its identity
	warned  bool                   // of that
	history int                    // bytes of records and checkpoints that it was sent
	calls   map[uint64]chan []byte // requests to its radio that wait, by their names
}

// asking is a step that devices are asked for.
type asking struct {
	answer   wire.Kind // what answers it
	slot     slot.Slot
	message  []byte
	answered []chan struct{} // of each device, closed once it has answered
	refusals []string        // why it did not do it
	epochs   []uint32
	began    time.Time
	missing  int // of those who were here when it began, how many have not answered
	over     chan struct{}
}

// New returns a server that listens to devices.
func New(cfg Config) (*Server, error) {
	if cfg.Identity.Role != identity.Server {
		return nil, fmt.Errorf("%s: the identity is that of %s; allowed is that of the server", cfg.Identity.Path, cfg.Identity)
	}
	if cfg.Deadline == 0 {
		cfg.Deadline = 20 * time.Second
	}
	if cfg.Silence == 0 {
		cfg.Silence = 5 * time.Second
	}
	if cfg.Say == nil {
		cfg.Say = func(string) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, now: cfg.Now, changed: make(chan struct{}), audit: newAudit(), left: map[int]wire.Digest{}, records: cfg.Records}
	if n := len(s.records); n > 0 {
		s.next = s.records[n-1]
	}
	for i := range cfg.Welcome.Devices {
		s.devices = append(s.devices, &remote{server: s, index: i + 1, past: map[string]bool{}, calls: map[uint64]chan []byte{}, host: wire.Host{Index: i + 1, State: neverSeen}})
	}
	s.present, s.visits = make([]bool, len(s.devices)), make([]int, len(s.devices))
	if err := s.listen(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.done = cancel
	s.ended.Go(func() { s.watch(ctx) })
	s.tellAll(wire.Message{Kind: wire.Greet})
	return s, nil
}

// listen listens to devices and observers, and has the herald speak for the run.
func (s *Server) listen() (err error) {
	defer func() {
		if err != nil {
			for _, stop := range s.stops {
				stop()
			}
		}
	}()
	if s.cfg.Herald == nil {
		if s.cfg.Herald, err = NewHerald(HeraldConfig{Identity: s.cfg.Identity, Bus: s.cfg.Bus, Now: s.cfg.Now, Say: s.cfg.Say}); err != nil {
			return err
		}
		s.stops = append(s.stops, s.cfg.Herald.Close)
	}
	stop, err := s.cfg.Bus.Subscribe(wire.AllFromDevices, s.hear)
	if err != nil {
		return fmt.Errorf("listening to devices: %w", err)
	}
	s.stops = append(s.stops, stop)
	if stop, err = s.cfg.Bus.Subscribe(wire.AllAsks, s.asked); err != nil {
		return fmt.Errorf("listening to observers: %w", err)
	}
	s.stops = append(s.stops, stop)
	s.cfg.Herald.Lead(s.cfg.Run, s.cfg.Name)
	return nil
}

// Close stops listening.
func (s *Server) Close() {
	for _, stop := range s.stops {
		stop()
	}
	s.stops = nil
	s.done()
	s.mu.Lock()
	s.close() // a step that was broken off would be asked for without end
	s.mu.Unlock()
	s.ended.Wait()
}

// The states of a host.
const (
	neverSeen = "never seen"
	greeted   = "joining"
	isPresent = "present"
	isLost    = "lost"
	isRefused = "refused"
)

// hear handles what a device says.
func (s *Server) hear(b bus.Message) {
	words := strings.Split(b.Subject, ".")
	if len(words) < 4 {
		return
	}
	index, err := strconv.Atoi(words[3])
	m, parse := wire.Parse(b.Payload)
	if err != nil || parse != nil || index < 1 || index != int(m.Device) {
		return // what is no message, or says that it is another device's
	}
	if index > len(s.devices) {
		if m.Kind == wire.Hello {
			s.refuseGreeting(index, m, fmt.Errorf("this run has %d devices (devices.count), and there is no device %d", len(s.devices), index), false)
		}
		return
	}
	if m.Kind == wire.Hello {
		s.greeted(s.devices[index-1], m)
		return
	}
	if m.Run == s.cfg.Run {
		s.heard(s.devices[index-1], m)
	}
}

// greeted welcomes a device to the run, or says why not.
func (s *Server) greeted(d *remote, m wire.Message) {
	var g wire.Greeting
	if err := wire.ParseJSON(m.Body, &g); err != nil || len(g.Nonce) != nonceSize {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return // who stays greets the next run's server
	}
	if err := s.admit(d.index, g); err != nil {
		d.host.State, d.host.Why = isRefused, err.Error()
		s.refuseGreeting(d.index, m, err, false)
		return
	}
	if d.past[string(g.Nonce)] {
		return // heard twice; where the welcome is lost, it is sent at the next beat or greeting
	}
	if d.gone != nil && s.now().Sub(d.seen) < min(s.cfg.Silence, max(s.cfg.Silence/2, twoBeats)) {
		s.refuseGreeting(d.index, m, fmt.Errorf("device %d is here already, on %s: one process at a time may be it", d.index, d.host.Host), true)
		return
	}
	s.lose(d, fmt.Sprintf("it greets anew, on %s", g.Host))
	d.nonce, d.seen = string(g.Nonce), s.now()
	if len(d.past) >= maxPast {
		clear(d.past)
	}
	d.past[d.nonce] = true
	d.visit++
	d.expires, d.warned = g.Expires, false
	d.host = wire.Host{Index: d.index, Nkey: g.Nkey, Host: g.Host, Version: g.Version, State: greeted, Offset: g.Clock.Sub(d.seen)}
	s.welcome(d)
}

// welcome tells a device of the run, as the answer to its greeting.
func (s *Server) welcome(d *remote) {
	w := s.cfg.Welcome
	w.Nonce, w.Clock, w.Rounds = []byte(d.nonce), s.now(), len(s.records)
	body, err := wire.AppendJSON(w)
	if err == nil {
		err = s.tell(d.index, wire.Message{Kind: wire.Welcome, Body: body})
	}
	if err != nil {
		s.cfg.Say(fmt.Sprintf("device %d was not welcomed: %v", d.index, err))
	}
}

const nonceSize = 16

// maxPast bounds the greetings that are remembered of a device.
const maxPast = 1 << 10

// twoBeats is in what time a device that is there has surely been heard.
const twoBeats = 2 * time.Second

// admit says why a greeting is not one of this bench's device.
func (s *Server) admit(index int, g wire.Greeting) error {
	bench := s.cfg.Identity.Bench
	st := identity.Statement{Bench: bench, Role: identity.Device, Index: index, Nkey: g.Nkey, NotBefore: g.NotBefore, Expires: g.Expires, Signature: g.Statement}
	if err := st.Check(bench, s.now()); err != nil {
		return err
	}
	if s.cfg.Admit == nil {
		return nil
	}
	return s.cfg.Admit(index, g.Nkey)
}

// refuseGreeting tells a device why it is not welcome; for now, if it may try again.
func (s *Server) refuseGreeting(index int, m wire.Message, why error, forNow bool) {
	var g wire.Greeting
	if err := wire.ParseJSON(m.Body, &g); err != nil {
		return
	}
	refusal := wire.Message{Kind: wire.Refused, Body: append(g.Nonce, why.Error()...)}
	if forNow {
		refusal.Slot.Again = 1
	}
	s.cfg.Say(fmt.Sprintf("device %d is not let in: %v", index, why))
	_ = s.tell(index, refusal) // it greets again
}

// heard handles what a device of this run says.
func (s *Server) heard(d *remote, m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.nonce == "" {
		_ = s.tell(d.index, wire.Message{Kind: wire.Greet}) // of before this server began; it is asked again
		return
	}
	if m.Kind == wire.Beat {
		s.beat(d, m)
		return
	}
	d.seen = s.now()
	switch m.Kind {
	case wire.Ready:
		s.ready(d, m)
	case wire.Prepared, wire.Sent:
		s.answered(d, m, "")
	case wire.Refused:
		s.refused(d, m)
	case wire.Behind:
		if m.Slot.Again == 0 || !s.sendCheckpoint(d, int(m.Slot.Round)) {
			s.sendHistory(d, int(m.Slot.Round))
		}
	case wire.Differs:
		s.differs = errors.New(string(m.Body))
		s.signal()
	case wire.Opened:
		s.openedKey(d, m)
	case wire.Radioed:
		s.radioed(d, m)
	}
}

// beat hears that a process is there. One that has the nonce of no greeting that holds has
// missed its welcome, or another process has taken its place.
func (s *Server) beat(d *remote, m wire.Message) {
	own := string(m.Body) == d.nonce
	switch {
	case len(m.Body) != nonceSize:
		return
	case d.gone != nil && !own:
		why := fmt.Sprintf("another process has become device %d, on %s: one at a time may be it", d.index, d.host.Host)
		s.cfg.Say(fmt.Sprintf("a process is no longer device %d: %s", d.index, why))
		_ = s.tell(d.index, wire.Message{Kind: wire.Refused, Body: append(slices.Clone(m.Body), why...)}) // it beats again
		return
	case own && d.host.State == isLost:
		if !s.now().Before(d.rests) {
			s.arrive(d)
		}
	case own && d.host.State == greeted:
		s.welcome(d) // its answer is lost, or late
	case d.gone == nil:
		_ = s.tell(d.index, wire.Message{Kind: wire.Greet}) // it beats again
	}
	d.seen = s.now()
}

// ready takes a device in.
func (s *Server) ready(d *remote, m wire.Message) {
	var r wire.Readiness
	if err := wire.ParseJSON(m.Body, &r); err != nil || string(r.Nonce) != d.nonce {
		return // no answer to the last welcome
	}
	if why := s.otherData(d, r); why != "" {
		d.host.State, d.host.Why = isRefused, why
		s.cfg.Say(fmt.Sprintf("device %d cannot take part: %s", d.index, why))
		_ = s.tell(d.index, wire.Message{Kind: wire.Refused, Body: []byte(d.nonce + why)}) // it says so again
		return
	}
	d.host.Data, d.host.Own, d.host.Samples, d.host.Radio, d.host.Rounds = r.Data, r.Own, r.Samples, r.Radio, r.Rounds
	if d.gone == nil {
		s.cfg.Say(fmt.Sprintf("device %d is here, on %s", d.index, d.host.Host))
		s.arrive(d)
	}
}

// otherData says why a device's part is not one of the data that the others have theirs of.
func (s *Server) otherData(d *remote, r wire.Readiness) string {
	for _, other := range s.devices {
		if o := other.host; other != d && other.gone != nil && !o.Own && !r.Own && o.Data != r.Data {
			return fmt.Sprintf("the files of its data set have the digest %s, and those of device %d %s: all devices share out the same, or have their --own", r.Data, other.index, o.Data)
		}
	}
	return ""
}

// arrive has a device present.
func (s *Server) arrive(d *remote) {
	d.gone, d.host.State, d.host.Why, d.rests = make(chan struct{}), isPresent, "", time.Time{}
	s.signal()
}

// lose has it absent from here on.
func (s *Server) lose(d *remote, why string) {
	if d.gone == nil {
		return
	}
	close(d.gone)
	d.gone, d.host.State, d.host.Why = nil, isLost, why
	if why != "" {
		s.cfg.Say(fmt.Sprintf("device %d is lost: %s", d.index, why))
	}
	s.signal()
}

// signal wakes who waits for somebody to come or go.
func (s *Server) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// refused notes why a device does not do what it was asked for.
func (s *Server) refused(d *remote, m wire.Message) {
	text := string(m.Body)
	if m.Slot.Round == 0 && d.gone != nil {
		s.lose(d, text)
		return
	}
	if m.Slot.Round == 0 {
		d.host.State, d.host.Why = isRefused, text
		s.cfg.Say(fmt.Sprintf("device %d cannot take part: %s", d.index, text))
		return
	}
	s.answered(d, m, text)
}

// answered notes an answer to what is asked for, or why there is none.
func (s *Server) answered(d *remote, m wire.Message, refusal string) {
	a := s.asking
	if a == nil || m.Slot != a.slot || m.Kind != a.answer && m.Kind != wire.Refused {
		return
	}
	select {
	case <-a.answered[d.index-1]:
		return
	default:
	}
	if m.Kind == wire.Prepared {
		if refusal = s.commit(d, m); refusal == "" {
			d.host.Rounds = int(m.Slot.Round) - 1
		}
	}
	a.refusals[d.index-1], a.epochs[d.index-1] = refusal, m.Epoch
	close(a.answered[d.index-1])
	s.pace(a)
	if refusal != "" && (a.answer == wire.Prepared || s.present[d.index-1]) {
		// Rounds would be lost as fast as it refuses them.
		d.rests = s.now().Add(s.cfg.Deadline)
		s.lose(d, refusal)
	}
}

// sendHistory sends records from a round on, as many as a message should have.
func (s *Server) sendHistory(d *remote, from int) {
	if from < 1 || from > len(s.records) {
		return
	}
	var body []byte
	for _, r := range s.records[from-1:] {
		if len(body)+len(r) > historyBytes && body != nil {
			break
		}
		body = append(body, r...)
	}
	d.history += len(body)
	_ = s.tell(d.index, wire.Message{Kind: wire.History, Body: body}) // it asks again
}

// historyBytes is about how many bytes of records a message carries.
const historyBytes = 1 << 18

// tell says something to one device.
func (s *Server) tell(index int, m wire.Message) error {
	m.Run, m.Device = s.cfg.Run, uint32(index)
	b, err := wire.Seal(s.cfg.Identity, m)
	if err != nil {
		return err
	}
	return s.cfg.Bus.Publish(s.cfg.Run.ToDevice(index), b)
}

// tellAll says something to all, and to the air.
func (s *Server) tellAll(m wire.Message) {
	m.Run = s.cfg.Run
	b, err := wire.Seal(s.cfg.Identity, m)
	if err == nil {
		err = s.cfg.Bus.Publish(s.cfg.Run.ToAll(), b)
	}
	if err != nil {
		s.cfg.Say(fmt.Sprintf("a %v was not sent: %v", m.Kind, err))
	}
}

// watch loses devices that say nothing.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Silence / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		for _, d := range s.devices {
			if silent := s.now().Sub(d.seen); d.gone != nil && silent > s.cfg.Silence {
				s.lose(d, s.silent(d, silent))
			}
		}
		s.mu.Unlock()
	}
}

// Await waits until so many devices are present. It ends with an error where a device's
// model differs from the server's, where another server goes before this one, or ctx has
// ended.
func (s *Server) Await(ctx context.Context, n int) error {
	tick := time.NewTicker(s.cfg.Silence)
	defer tick.Stop()
	for {
		s.mu.Lock()
		there, changed, differs := 0, s.changed, s.differs
		for _, d := range s.devices {
			if d.gone != nil {
				there++
			}
		}
		s.mu.Unlock()
		if err := cmp.Or(differs, s.cfg.Herald.Yielded()); err != nil {
			return err
		}
		if there >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d devices are here, and %d are needed: %w", there, len(s.devices), n, context.Cause(ctx))
		case <-changed:
		case <-s.cfg.Herald.yields:
		case <-tick.C:
			s.callOthers()
		}
	}
}

// callOthers has devices greet that have not yet: they may still be in another run.
func (s *Server) callOthers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		if d.nonce == "" {
			_ = s.tell(d.index, wire.Message{Kind: wire.Greet}) // they are called again
		}
	}
}

// Census says who is there.
func (s *Server) Census() wire.Attendance {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := wire.Attendance{Run: s.cfg.Run.String(), Name: s.cfg.Name, Round: len(s.records), Rounds: s.cfg.Rounds, Clock: s.now()}
	for _, d := range s.devices {
		h := d.host
		h.Seen, h.History = d.seen, d.history
		a.Hosts = append(a.Hosts, h)
	}
	return a
}

// asked tells an observer who is there.
func (s *Server) asked(m bus.Message) {
	body, err := wire.AppendJSON(s.Census())
	if err == nil {
		err = s.cfg.Bus.Respond(m, body)
	}
	if err != nil {
		s.cfg.Say("an observer got no answer: " + err.Error())
	}
}

// Participants returns the devices.
func (s *Server) Participants() []round.Participant {
	all := make([]round.Participant, len(s.devices))
	for i, d := range s.devices {
		all[i] = d
	}
	return all
}
