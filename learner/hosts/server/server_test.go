package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/hosts/air"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/server"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
)

// bench is a bench of many hosts in one process, over a nats-server of the library's.
type bench struct {
	t       testing.TB
	n       int
	rounds  int
	folder  *identity.Folder
	nats    *bus.Server
	root    keystream.Seed
	channel *channel.Channel
	ctx     *xmkckks.Context
	design  xmkckks.Design
	run     wire.RunID
	server  *server.Server
	engine  *round.Engine
	model   *member  // the server's
	records [][]byte // of the rounds so far, sealed
	said    log
	guard   *guard
	minimum int
	// The times of the server, and what stands between a host and the bus; nil for nothing.
	deadline, silence time.Duration
	between           func(role identity.Role, index int, c bus.Conn) bus.Conn
	url               func(role identity.Role, index int) string
	admit             func(index int, nkey string) error
	herald            *server.Herald   // nil for the server's own
	now               func() time.Time // of the server
	beats             atomic.Int64     // of devices
	hellos            [8]atomic.Int64
}

// beating counts a device's beats and greetings.
type beating struct {
	bus.Conn
	b *bench
}

func (c beating) Publish(subject string, payload []byte) error {
	switch m, err := wire.Parse(payload); {
	case err != nil:
	case m.Kind == wire.Beat:
		c.b.beats.Add(1)
	case m.Kind == wire.Hello:
		c.b.hellos[m.Device].Add(1)
	}
	return c.Conn.Publish(subject, payload)
}

// log keeps what hosts say.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, text)
}

func (l *log) has(part string) bool { return l.count(part) > 0 }

func (l *log) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(strings.Join(l.lines, "\n"), part)
}

// guard counts shares by device and round.
type guard struct {
	mu     sync.Mutex
	ledger *xmkckks.Ledger
	shares map[[2]uint32]int
}

func newGuard() *guard {
	return &guard{ledger: xmkckks.NewLedger(1 << 20), shares: map[[2]uint32]int{}}
}

func (g *guard) Answer(r xmkckks.ShareRecord) error {
	if err := g.ledger.Answer(r); err != nil {
		return err
	}
	return g.count(r)
}

// count counts a share that is given, and refuses a second one of a round or attempt.
func (g *guard) count(r xmkckks.ShareRecord) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shares[[2]uint32{r.Device, r.Round}]++; g.shares[[2]uint32{r.Device, r.Round}] > 1 {
		panic(fmt.Sprintf("device %d gives a second share of round %d", r.Device+1, r.Round))
	}
	return nil
}

// member is a model of one number, and a device's scalars that depend on it.
type member struct {
	index, round int
	theta        float64
}

func (m *member) Round() int { return m.round }

func (m *member) Scalars(_ context.Context, k int) ([]float64, float64, int, int, error) {
	rnd := rand.New(rand.NewPCG(uint64(m.index), uint64(k)))
	return []float64{rnd.Float64() - 0.5 + 1e-3*m.theta}, 0, 0, 0, nil
}

func (m *member) Apply(k int, values []float64) error {
	if k != m.round+1 {
		return fmt.Errorf("round %d after %d", k, m.round)
	}
	m.round, m.theta = k, m.theta-0.1*values[0]
	return nil
}

func (m *member) Skip(k int) error {
	if k != m.round+1 {
		return fmt.Errorf("round %d after %d", k, m.round)
	}
	m.round = k
	return nil
}

func (m *member) Restore(round int, theta []float64) error {
	if len(theta) != 1 {
		return fmt.Errorf("theta of %d values", len(theta))
	}
	m.round, m.theta = round, theta[0]
	return nil
}

func (m *member) Digest() [32]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(m.round)), math.Float64bits(m.theta)))
}

func newBench(t testing.TB, n, rounds int) *bench {
	t.Helper()
	b := &bench{
		t: t, n: n, rounds: rounds, root: keystream.FromInteger(7), run: wire.RunID{1, 2, 3}, guard: newGuard(), minimum: n, model: &member{},
		deadline: 5 * time.Second, silence: 2 * time.Second,
	}
	dir := filepath.Join(t.TempDir(), "bench")
	var err error
	b.folder, err = identity.Create(dir, identity.Options{Devices: n})
	b.must(err)
	b.nats, err = bus.Embed(t.Context(), bus.ServerOptions{Folder: b.folder, Address: "127.0.0.1:0"})
	b.must(err)
	t.Cleanup(b.nats.Close)
	p, _ := xmkckks.Lookup("demo-1024")
	cfg := channel.Config{LatticeBits: 4}
	for range n {
		cfg.Devices = append(cfg.Devices, channel.Gaussian{Mu: 1, Sigma: 0.2})
	}
	b.channel, err = channel.New(cfg, b.root.Derive("channel"))
	b.must(err)
	mu, omega := b.channel.Moments()
	b.design, err = xmkckks.NewDesign(p, p.Form, xmkckks.Link{Mu: mu, Omega: omega, Alpha: b.channel.Alpha(), DeltaMax: 2, Shares: rounds})
	b.must(err)
	b.ctx, err = xmkckks.NewContext(b.design.Params, b.design.Form, 1, b.design.Witnesses, b.root.Derive("public"))
	b.must(err)
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// dial connects a host.
func (b *bench) dial(role identity.Role, index int) (identity.Identity, bus.Conn) {
	b.t.Helper()
	id, err := identity.Load(b.folder.IdentityPath(role, index))
	b.must(err)
	o, url := bus.Options{InProcess: b.nats}, ""
	if b.url != nil {
		o, url = bus.Options{Patience: time.Minute}, b.url(role, index)
	}
	c, err := bus.Dial(b.t.Context(), id, url, o)
	b.must(err)
	if b.between != nil {
		c = b.between(role, index, c)
	}
	b.t.Cleanup(func() { c.Close() })
	return id, c
}

// serve begins a server with an engine over its devices.
func (b *bench) serve() {
	b.t.Helper()
	b.begin()
	rx, err := b.server.NewRingReceiver([slot.Transmissions]float64{}, b.root.Derive("link"))
	b.must(err)
	b.drive(rx)
}

// begin begins a server.
func (b *bench) begin() {
	b.t.Helper()
	id, conn := b.dial(identity.Server, 0)
	var err error
	b.server, err = server.New(server.Config{
		Identity: id, Bus: conn, Run: b.run, Name: "test", Rounds: b.rounds, Context: b.ctx,
		Welcome: wire.Run{Version: "v", Devices: b.n}, Say: b.said.say, Deadline: b.deadline, Silence: b.silence, Records: b.records, Admit: b.admit, Herald: b.herald, Now: b.now,
	})
	b.must(err)
	b.t.Cleanup(b.server.Close)
}

// drive makes the engine over the server's devices and a receiver.
func (b *bench) drive(rx phy.Receiver) {
	b.t.Helper()
	var err error
	b.engine, err = round.New(round.Config{
		Context: b.ctx, Participants: b.server.Participants(), Server: b.ctx.NewServer(b.design), Receiver: rx,
		Attempts: 4, Workers: b.n, Minimum: b.minimum,
	})
	b.must(err)
	b.t.Cleanup(b.engine.Close)
}

// air begins the air.
func (b *bench) air() *air.Air {
	b.t.Helper()
	id, conn := b.dial(identity.Air, 0)
	ring := phy.NewRingAir(b.ctx.Modulus(), b.channel, [slot.Transmissions]float64{}, b.root.Derive("noise"))
	a, err := air.New(air.Config{Identity: id, Bus: conn, Modulus: b.ctx.Modulus(), Ring: ring, Devices: b.n, Say: b.said.say})
	b.must(err)
	b.t.Cleanup(a.Close)
	return a
}

// cipher returns the crypto of device i from 1.
func (b *bench) cipher(i int, g xmkckks.Guard) *xmkckks.Device {
	b.t.Helper()
	mu, _ := b.channel.Moments()
	d, err := b.ctx.NewDevice(xmkckks.DeviceConfig{Index: i - 1, Mu: mu[i-1], DeltaMax: 2, Seed: b.root.DeriveSecret("device", uint64(i)), Guard: g})
	b.must(err)
	return d
}

// device begins device i, with a model that has heard of nothing. Its end is sent to ended.
func (b *bench) device(ctx context.Context, i int, change func(*device.Config, *device.Part)) (ended chan error) {
	b.t.Helper()
	id, conn := b.dial(identity.Device, i)
	cfg := device.Config{Identity: id, Bus: beating{conn, b}, Version: "v", Beat: 100 * time.Millisecond, Say: b.said.say}
	minimum := b.minimum // now: a test may wait for more by the time that the device joins
	cfg.Join = func(wire.RunID, wire.Run) (*device.Part, error) {
		f, err := phy.NewRingFramer(b.ctx.Modulus(), b.n, [slot.Transmissions]float64{}, b.root.Derive("link"))
		if err != nil {
			return nil, err
		}
		p := &device.Part{
			Context: b.ctx, Cipher: b.cipher(i, b.guard), Member: &member{index: i}, Rounds: b.rounds, Minimum: minimum,
			Framer: device.NewRing(f, b.ctx.Modulus(), i-1), Epoch: func(int) uint32 { return 0 }, Readiness: wire.Readiness{Devices: b.n},
		}
		if change != nil {
			change(nil, p)
		}
		return p, nil
	}
	if change != nil {
		change(&cfg, nil)
	}
	d, err := device.New(cfg)
	b.must(err)
	ended = make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return ended
}

// step runs a round, as a trainer does.
func (b *bench) step(ctx context.Context, k int) (round.Outcome, error) {
	if err := b.server.Await(ctx, b.minimum); err != nil {
		return round.Outcome{}, err
	}
	before := b.model.Digest()
	out, err := b.engine.Run(ctx, uint32(k), nil)
	if err != nil {
		return out, err
	}
	r := wire.Record{Round: uint32(k), Before: before}
	if out.Skipped {
		err = b.model.Skip(k)
	} else {
		r.M = append(r.M, out.M...)
		err = b.model.Apply(k, r.M)
	}
	if err != nil {
		return out, err
	}
	return out, b.keep(r)
}

// keep keeps a record, at the server and for its next sitting.
func (b *bench) keep(r wire.Record) error {
	sealed, err := b.server.Keep(r)
	if err == nil {
		b.records = append(b.records, sealed)
	}
	return err
}

// Devices in their own worlds, over a real bus, give the M of devices in one process, to the
// bit, and have the server's model in the end.
func TestRoundsAreThoseOfOneProcess(t *testing.T) {
	const n, rounds = 3, 20
	b := newBench(t, n, rounds)
	b.air()
	b.serve()
	var ends []chan error
	for i := range n {
		ends = append(ends, b.device(t.Context(), i+1, nil))
	}

	ring, err := phy.NewRing(phy.RingConfig{Modulus: b.ctx.Modulus(), Gains: b.channel, Secret: b.root.Derive("link"), Noise: b.root.Derive("noise")})
	b.must(err)
	var local []*xmkckks.Device
	var members []*member
	for i := range n {
		local = append(local, b.cipher(i+1, xmkckks.NewLedger(1000)))
		members = append(members, &member{index: i + 1})
	}
	one, err := round.New(round.Config{Context: b.ctx, Participants: round.Locals(local, ring), Receiver: ring, Server: b.ctx.NewServer(b.design), Attempts: 4})
	b.must(err)
	defer one.Close()

	for k := 1; k <= rounds; k++ {
		out, err := b.step(t.Context(), k)
		b.must(err)
		var deltas [][]float64
		for _, m := range members {
			values, _, _, _, _ := m.Scalars(t.Context(), k)
			deltas = append(deltas, values)
		}
		want, err := one.Run(t.Context(), uint32(k), deltas)
		b.must(err)
		if out.Skipped || out.M[0] != want.M[0] || out.Attempts != want.Attempts || out.Alpha != want.Alpha {
			t.Fatalf("round %d: M = %v in %d attempts, in one process %v in %d", k, out.M, out.Attempts, want.M, want.Attempts)
		}
		for _, m := range members {
			b.must(m.Apply(k, want.M))
		}
	}
	verdict, err := b.server.End(t.Context(), b.model.Digest())
	b.must(err)
	if verdict.Checked != rounds || verdict.Unchecked != 0 || len(verdict.Wrong) > 0 {
		t.Errorf("%+v", verdict)
	}
	for i, ended := range ends {
		if err := <-ended; err != nil {
			t.Errorf("device %d: %v", i+1, err)
		}
	}
}
