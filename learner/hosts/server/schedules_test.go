package server_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/bus/bustest"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/hoststest"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/slot"
)

// world is a testing.TB for one of several schedules at once, with an end of its own.
type world struct {
	testing.TB
	ctx      context.Context
	dir      string
	mu       sync.Mutex
	failures []string
	cleanups []func()
	dirs     int
}

// inWorld calls f and returns what failed.
func inWorld(t *testing.T, within time.Duration, f func(w *world)) []string {
	ctx, cancel := context.WithTimeoutCause(context.Background(), within, fmt.Errorf("it hangs: it has not ended within %v", within))
	defer cancel()
	w := &world{TB: t, ctx: ctx, dir: t.TempDir()}
	done := make(chan bool)
	go func() {
		defer close(done)
		defer w.end()
		f(w)
	}()
	<-done
	return w.failures
}

func (w *world) end() {
	for _, f := range slices.Backward(w.cleanups) {
		f()
	}
}

func (w *world) Cleanup(f func())         { w.cleanups = append(w.cleanups, f) }
func (w *world) Context() context.Context { return w.ctx }
func (w *world) Helper()                  {}

func (w *world) TempDir() string {
	w.dirs++
	dir := filepath.Join(w.dir, fmt.Sprint(w.dirs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	return dir
}

func (w *world) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

func (w *world) Fatal(args ...any) {
	w.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (w *world) Fatalf(format string, args ...any) { w.Fatal(fmt.Sprintf(format, args...)) }

// The kinds of faults, and of hosts by number: devices have theirs, from 1.
const (
	part    = "parted" // nothing goes through, without an error
	cut     = "cut"
	stall   = "stalled"
	delay   = "slow"
	restart = "begun anew"

	theServer, theAir = 0, -1
)

// fault is one that befalls a host once the server has published so many messages.
type fault struct {
	at   int
	kind string
	host int
	last time.Duration
}

// schedule is a run with the faults that befall it.
type schedule struct {
	seed               uint64
	kind               string
	n, minimum, rounds int
	epochRounds        int // 0 for one key epoch a process
	loss               bustest.Schedule
	faults             []fault
}

// The kinds of schedules.
var kinds = []string{"messages", "partitions", "connections", "restarts", "all of them"}

// newSchedule draws a schedule.
func newSchedule(seed uint64) schedule {
	rnd := rand.New(rand.NewPCG(seed, 16))
	s := schedule{seed: seed, kind: kinds[seed%uint64(len(kinds))], n: 2 + rnd.IntN(3), rounds: 8, epochRounds: rnd.IntN(2) * 2}
	s.minimum = max(2, s.n-rnd.IntN(2))
	all := s.kind == kinds[4]
	if s.kind == "messages" || all {
		s.loss = bustest.Schedule{Seed: seed, Drop: 0.1 * rnd.Float64(), Repeat: 0.2 * rnd.Float64(), Delay: 0.3 * rnd.Float64(), Others: rnd.IntN(6), After: time.Duration(1+rnd.IntN(300)) * time.Millisecond}
	}
	of := map[string][]string{"partitions": {part}, "connections": {cut, stall, delay}, "restarts": {restart}, kinds[4]: {part, cut, stall, delay, restart}}[s.kind]
	if of == nil {
		return s
	}
	for range 1 + rnd.IntN(4) {
		f := fault{at: 1 + rnd.IntN(40), kind: of[rnd.IntN(len(of))], host: rnd.IntN(s.n+2) - 1, last: time.Duration(20+rnd.IntN(2500)) * time.Millisecond}
		if f.kind == delay {
			f.last = time.Duration(1+rnd.IntN(30)) * time.Millisecond
		}
		s.faults = append(s.faults, f)
	}
	return s
}

// play is a schedule being played.
type play struct {
	*bench
	s       schedule
	w       *world
	proxies map[int]*bustest.Proxy
	devices []*being
	journal []string // the files of devices
	atOnce  sync.Mutex
	running sync.WaitGroup

	mu      sync.Mutex
	lines   map[int]*bustest.Interposer
	visits  uint64
	sent    int
	present map[[2]uint32][]bool // of attempts that the server has announced
	ended   bool
	stop    context.CancelCauseFunc // of the sitting
	closeA  func()                  // the air

	waves *waves // of a waveform link; nil for the ring link

	lost, void, sittings, behind int
}

// being is a process of a device.
type being struct {
	cancel context.CancelFunc
	conn   bus.Conn
	ended  chan error
	member *member
}

// errRestart is why a sitting ends that is to begin anew.
var errRestart = errors.New("the server is begun anew")

// tapped is the server's connection, of which every message is looked at.
type tapped struct {
	bus.Conn
	look func(payload []byte)
}

func (c tapped) Publish(subject string, payload []byte) error {
	c.look(payload)
	return c.Conn.Publish(subject, payload)
}

// look notes who takes part in an attempt, and has the faults happen that are due.
func (p *play) look(payload []byte) {
	m, err := wire.Parse(payload)
	if err != nil {
		p.w.Errorf("the server says what is no message: %v", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent++; p.ended {
		return
	}
	if m.Kind == wire.Send {
		r, err := wire.ParseRequest(m.Body, p.n)
		at := [2]uint32{m.Slot.Round, m.Slot.Attempt}
		if before := p.present[at]; err != nil || before != nil && !slices.Equal(before, r.Present) {
			p.w.Errorf("attempt %v of %v devices, before of %v, %v", at, r.Present, before, err)
		}
		p.present[at] = r.Present
	}
	for _, f := range p.s.faults {
		if f.at == p.sent {
			p.running.Go(func() { p.strike(f) })
		}
	}
}

// strike has a fault happen, and mends it.
func (p *play) strike(f fault) {
	after := func() {
		select {
		case <-time.After(f.last):
		case <-p.w.ctx.Done():
		}
	}
	p.mu.Lock()
	i, x := p.lines[f.host], p.proxies[f.host]
	p.mu.Unlock()
	switch f.kind {
	case part:
		i.Part(true)
		after()
		i.Part(false)
	case cut:
		x.Cut()
	case stall:
		x.Stall(true)
		after()
		x.Stall(false)
	case delay:
		x.Delay(f.last)
	case restart:
		p.atOnce.Lock()
		defer p.atOnce.Unlock()
		switch f.host {
		case theServer:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.stop(errRestart)
		case theAir:
			p.closeA()
			p.beginAir()
		default:
			p.end(f.host)
			p.begin(f.host)
		}
	}
}

// hostNumber numbers hosts as faults do.
func hostNumber(role identity.Role, index int) int {
	switch role {
	case identity.Server:
		return theServer
	case identity.Air:
		return theAir
	}
	return index
}

func newPlay(w *world, s schedule) *play {
	p := &play{
		s: s, bench: newBench(w, s.n, s.rounds), w: w, proxies: map[int]*bustest.Proxy{}, lines: map[int]*bustest.Interposer{},
		present: map[[2]uint32][]bool{}, devices: make([]*being, s.n),
	}
	p.minimum, p.deadline, p.silence = s.minimum, 3*time.Second, 1500*time.Millisecond
	for host := -1; host <= s.n; host++ {
		p.proxies[host] = bustest.NewProxy(w, p.nats.URL())
	}
	p.url = func(role identity.Role, index int) string { return p.proxies[hostNumber(role, index)].URL() }
	p.between = func(role identity.Role, index int, c bus.Conn) bus.Conn {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.visits++
		loss := s.loss
		loss.Seed += 1000 * p.visits
		i := bustest.Interpose(c, loss, bustest.Schedule{})
		p.lines[hostNumber(role, index)] = i
		if role == identity.Server {
			return tapped{i, p.look}
		}
		return i
	}
	for range s.n {
		p.journal = append(p.journal, filepath.Join(w.TempDir(), "shares.journal"))
	}
	return p
}

func (p *play) beginAir() {
	if p.waves != nil {
		p.closeA = p.waves.sky()
		return
	}
	p.closeA = p.air().Close
}

// lead begins a server.
func (p *play) lead() {
	if p.waves != nil {
		p.waves.lead()
		return
	}
	p.serve()
}

// framer returns what makes frames of device i from 1.
func (p *play) framer(i int) (device.Framer, error) {
	if p.waves != nil {
		return p.waves.framer(i)
	}
	m := p.bench.ctx.Modulus()
	f, err := phy.NewRingFramer(m, p.n, [slot.Transmissions]float64{}, p.root.Derive("link"))
	if err != nil {
		return nil, err
	}
	return device.NewRing(f, m, i-1), nil
}

// begin begins a device that has nothing but its journal.
func (p *play) begin(i int) {
	id, conn := p.dial(identity.Device, i)
	ctx, cancel := context.WithCancel(p.w.ctx)
	x := &being{cancel: cancel, conn: conn, ended: make(chan error, 1), member: &member{index: i}}
	d, err := device.New(device.Config{
		Identity: id, Bus: conn, Version: "v", Beat: 50 * time.Millisecond, Say: func(text string) { p.said.say(fmt.Sprintf("%d: %s", i, text)) },
		Join: func(wire.RunID, wire.Run) (*device.Part, error) { return p.join(i, x) },
	})
	p.must(err)
	p.devices[i-1] = x
	go func() {
		err := d.Run(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, device.ErrBehind) {
			p.w.Errorf("device %d has ended: %v", i, err)
		}
		x.ended <- err
	}()
}

// end ends a device. What it had in memory is lost.
func (p *play) end(i int) {
	x := p.devices[i-1]
	x.cancel()
	<-x.ended
	x.conn.Close()
}

// join makes a device's part, with keys of the system's generator.
func (p *play) join(i int, x *being) (*device.Part, error) {
	j, err := xmkckks.OpenJournal(p.journal[i-1], xmkckks.JournalConfig{Limit: 100, System: true})
	if err != nil {
		return nil, err
	}
	base, err := j.Begin()
	if err != nil {
		return nil, err
	}
	seed, err := keystream.FromSystem()
	if err != nil {
		return nil, err
	}
	mu, _ := p.channel.Moments()
	cipher, err := p.bench.ctx.NewDevice(xmkckks.DeviceConfig{Index: i - 1, Mu: mu[i-1], DeltaMax: 2, Seed: seed, Guard: &both{j, p.guard}})
	if err != nil {
		return nil, err
	}
	f, err := p.framer(i)
	if err != nil {
		return nil, err
	}
	first := 0
	return &device.Part{
		Context: p.bench.ctx, Cipher: cipher, Member: x.member, Rounds: p.rounds, Minimum: p.minimum, Readiness: wire.Readiness{Devices: p.n},
		Framer: f, Close: j.Close,
		Epoch: func(k int) uint32 {
			if first == 0 {
				first = k
			}
			if p.s.epochRounds == 0 {
				return base
			}
			return base + uint32((k-1)/p.s.epochRounds-(first-1)/p.s.epochRounds)
		},
	}, nil
}

// both is a journal and, behind it, a guard that outlives it.
type both struct {
	*xmkckks.Journal
	after *guard
}

func (b *both) Answer(r xmkckks.ShareRecord) error {
	if err := b.Journal.Answer(r); err != nil {
		return err
	}
	return b.after.count(r)
}

// play plays the schedule, as often as the server is begun.
func (p *play) play() {
	p.beginAir()
	for i := range p.n {
		p.begin(i + 1)
	}
	for broken := false; ; {
		p.sittings++
		err := p.sit(&broken)
		if err == nil {
			break
		}
		p.server.Close()
		p.lines[theServer].Close()
		if p.w.ctx.Err() != nil {
			p.said.mu.Lock()
			defer p.said.mu.Unlock()
			p.w.Fatalf("%v in round %d: %v\n%s", context.Cause(p.w.ctx), p.model.round+1, err, strings.Join(p.said.lines, "\n"))
		}
		if p.sittings > 20 {
			p.w.Fatalf("stopped again and again: %v", err)
		}
		if text := err.Error(); !errors.Is(err, context.Canceled) && strings.ContainsAny(text, "\n\r") {
			p.w.Errorf("stopped without one sentence: %s", text)
		}
	}
	p.leave()
}

// sit is one sitting of the server. Broken says that a round was broken off in it.
func (p *play) sit(broken *bool) error {
	ctx, cancel := context.WithCancelCause(p.w.ctx)
	defer cancel(nil)
	p.mu.Lock()
	p.stop = cancel
	p.mu.Unlock()
	p.lead()
	if *broken {
		before := p.model.Digest()
		p.must(p.model.Skip(p.model.round + 1))
		p.must(p.keep(wire.Record{Round: uint32(p.model.round), Before: before}))
		p.lost++
		*broken = false
	}
	for p.model.round < p.rounds {
		k := p.model.round + 1
		if err := p.server.Await(ctx, p.minimum); err != nil {
			return err
		}
		*broken = true
		theta := p.model.theta
		out, err := p.stepped(ctx, k)
		if err != nil {
			return err
		}
		*broken = false
		p.void += len(out.Failures)
		if out.Skipped {
			p.lost++
		} else {
			p.check(k, theta, out)
		}
	}
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.running.Wait()
	verdict, err := p.server.End(p.w.ctx, p.model.Digest())
	if err != nil || len(verdict.Wrong) > 0 {
		p.w.Errorf("at the end: %v, %v", verdict, err)
	}
	return nil
}

// stepped is one round.
func (p *play) stepped(ctx context.Context, k int) (round.Outcome, error) {
	before := p.model.Digest()
	out, err := p.engine.Run(ctx, uint32(k), nil)
	if err != nil {
		return out, err
	}
	r := wire.Record{Round: uint32(k), Before: before}
	if out.Skipped {
		err = p.model.Skip(k)
	} else {
		r.M = append(r.M, out.M...)
		err = p.model.Apply(k, r.M)
	}
	if err != nil {
		return out, err
	}
	return out, p.keep(r)
}

// check compares M with the sum of those who took part.
func (p *play) check(k int, theta float64, out round.Outcome) {
	p.mu.Lock()
	present := p.present[[2]uint32{uint32(k), out.Attempt}]
	p.mu.Unlock()
	if present == nil {
		p.w.Errorf("round %d has M of attempt %d, which the server has not announced", k, out.Attempt)
		return
	}
	h, n := make([]float64, p.n), 0
	p.channel.Scaled(h, uint32(k), out.Attempt, int(slot.TxC0))
	mu, _ := p.channel.Moments()
	ideal := 0.0
	for i, there := range present {
		if !there {
			h[i] = 0
			continue
		}
		n++
		values, _, _, _, _ := (&member{index: i + 1, theta: theta}).Scalars(p.w.ctx, k)
		ideal += h[i] / out.Alpha * values[0] / mu[i]
	}
	if std := p.design.ConditionalStdAt(p.bench.ctx, h, out.Alpha); n < p.minimum || n != out.Present || !(math.Abs(out.M[0]-ideal) <= 8*std+1e-12) {
		p.w.Errorf("round %d of %v: M is %v and must be %v, within %v", k, present, out.M[0], ideal, 8*std)
	}
}

// leave has the devices go, of which those who are there have the server's model, and looks
// into what they have left.
func (p *play) leave() {
	there := map[int]bool{}
	for _, h := range p.server.Census().Hosts {
		there[h.Index] = h.State == "present"
	}
	for i, x := range p.devices {
		var err error
		select {
		case err = <-x.ended:
		case <-time.After(p.deadline):
			x.cancel()
			<-x.ended
			err = errors.New("it has not heard of the end")
		}
		if err != nil {
			p.behind++
		}
		if x.member.round == p.rounds && x.member.theta != p.model.theta || err == nil && x.member.round != p.rounds {
			p.w.Errorf("device %d is after round %d with theta = %v, the server after round %d with %v", i+1, x.member.round, x.member.theta, p.rounds, p.model.theta)
		}
		if err != nil && there[i+1] && p.s.loss.Drop == 0 {
			p.w.Errorf("device %d is there, and %v", i+1, err)
		}
	}
	for i, path := range p.journal {
		shares, err := hoststest.Shares(path)
		if err == nil {
			err = hoststest.Once(shares)
		}
		if err != nil {
			p.w.Errorf("device %d: %v", i+1, err)
		}
	}
}

// TestSchedules plays schedules of faults, of messages, of connections and of hosts, of
// which each has its seed. Whatever they do: no device answers twice, no wrong M comes into
// the model, all who are there have the same model, and nothing hangs.
func TestSchedules(t *testing.T) {
	count := 15
	if os.Getenv("RINGWAVE_LONG") != "" {
		count = 170
	}
	room := 3 * runtime.GOMAXPROCS(0) // they wait more than they compute
	playAll(t, count, room, func(w *world, s schedule) *play { return newPlay(w, s) }, newSchedule)
}

// TestSchedulesOverWaveform does the same over a waveform link, whose air simulates what a
// receiver hears.
func TestSchedulesOverWaveform(t *testing.T) {
	count := 1
	if os.Getenv("RINGWAVE_LONG") != "" {
		count = 15
	}
	playAll(t, count, runtime.GOMAXPROCS(0), func(w *world, s schedule) *play {
		p := newPlay(w, s)
		p.waves = &waves{bench: p.bench, noise: 1e-3}
		return p
	}, func(seed uint64) schedule {
		s := newSchedule(4 - seed%5 + seed/5*5) // all kinds of faults at once come first
		s.rounds = 6
		return s
	})
}

// playAll plays so many schedules, as many at once as there is room for.
func playAll(t *testing.T, count, atOnce int, begin func(*world, schedule) *play, draw func(seed uint64) schedule) {
	type total struct{ schedules, rounds, lost, void, sittings, behind, failed int }
	var mu sync.Mutex
	totals := map[string]*total{}
	room := make(chan bool, atOnce)
	var all sync.WaitGroup
	for seed := range count {
		room <- true
		all.Go(func() {
			defer func() { <-room }()
			s := draw(uint64(seed))
			var p *play
			failures := inWorld(t, 4*time.Minute, func(w *world) {
				p = begin(w, s)
				p.play()
			})
			mu.Lock()
			defer mu.Unlock()
			x := totals[s.kind]
			if x == nil {
				x = &total{}
				totals[s.kind] = x
			}
			x.schedules++
			x.rounds += s.rounds
			if p != nil {
				x.lost, x.void, x.sittings, x.behind = x.lost+p.lost, x.void+p.void, x.sittings+p.sittings, x.behind+p.behind
			}
			for _, f := range failures {
				t.Errorf("schedule %d (%s): %s", seed, s.kind, f)
			}
			if len(failures) > 0 {
				x.failed++
			}
		})
	}
	all.Wait()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "faults of\tschedules\tfailed\trounds\tlost\tvoid attempts\tsittings\tdevices that missed the end\t")
	for _, kind := range kinds {
		if x := totals[kind]; x != nil {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", kind, x.schedules, x.failed, x.rounds, x.lost, x.void, x.sittings, x.behind)
		}
	}
	w.Flush()
	t.Log("\n" + table.String())
}
