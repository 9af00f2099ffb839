package remote_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"ringwave/learner/hosts/remote"
	"ringwave/radio"
	"ringwave/radio/life"
	"ringwave/radio/loopback"
)

// patience bounds every wait of these tests; none comes near it unless something hangs.
const patience = 30 * time.Second

func ok(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// limited returns a context that ends before a test hangs.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// errGone: the host cannot be reached.
var errGone = errors.New("the host is gone")

// direct brings requests to a host in this process.
type direct struct {
	host *remote.Host

	mu    sync.Mutex
	gone  bool
	mute  bool // answers are lost
	bytes int  // of all requests
}

// Call implements remote.Caller.
func (c *direct) Call(ctx context.Context, b []byte) ([]byte, error) {
	c.mu.Lock()
	c.bytes += len(b)
	gone, mute := c.gone, c.mute
	c.mu.Unlock()
	if gone {
		return nil, errGone
	}
	answered := make(chan []byte, 1)
	go func() { answered <- c.host.Handle(context.WithoutCancel(ctx), b) }()
	select {
	case a := <-answered:
		if a == nil || mute {
			return nil, errors.New("there is no answer")
		}
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *direct) setGone(gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = gone
}

// carried returns how many bytes were asked with since the last call.
func (c *direct) carried() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.bytes
	c.bytes = 0
	return n
}

// clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1e9, 0)} }

// Now returns the time.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock.
func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// never is for streams that are not to be asked how they do.
const never = time.Hour

const rate radio.Hertz = 2e6

// medium returns a medium of one transmitter.
func medium(t testing.TB) *loopback.Medium {
	t.Helper()
	m, err := loopback.New(loopback.Config{Name: "m", Rate: rate, Devices: []loopback.Device{{Gain: 1}}})
	ok(t, err)
	t.Cleanup(func() { ok(t, m.Close()) })
	return m
}

// receive opens the medium's other end.
func receive(t testing.TB, m *loopback.Medium) radio.Receiver {
	t.Helper()
	d, err := m.Receiver(0)
	ok(t, err)
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(limited(t))
	ok(t, err, rx.Start(limited(t)))
	return rx
}

// hosted returns a host with the medium's transmitter, as change has it.
func hosted(t testing.TB, m *loopback.Medium, change func(*remote.HostConfig)) *remote.Host {
	t.Helper()
	cfg := remote.HostConfig{
		Open: func(context.Context) (radio.Device, error) { return m.Transmitter(0) },
		Say:  func(text string) { t.Log(text) },
	}
	if change != nil {
		change(&cfg)
	}
	h := remote.NewHost(cfg)
	t.Cleanup(func() { ok(t, h.Close()) })
	return h
}

// opened opens a proxy whose time stands still.
func opened(t testing.TB, c remote.Caller) radio.Device {
	t.Helper()
	d, err := remote.OpenTimed(limited(t), c, 3, newClock().Now, never)
	ok(t, err)
	t.Cleanup(func() { _ = d.Close() }) // tests look at it themselves
	return d
}

// running opens a stream and starts it.
func running(t testing.TB, d radio.Device) radio.Transmitter {
	t.Helper()
	tx, err := d.(radio.TransmitOpener).OpenTransmitter(limited(t))
	ok(t, err, tx.Start(limited(t)))
	return tx
}

// events returns what a stream has to tell now.
func events(tx radio.Transmitter) []radio.Event {
	var all []radio.Event
	for {
		e, err := tx.Event(life.Ended())
		if err != nil {
			return all
		}
		all = append(all, e)
	}
}

// noise returns samples, the same for the same seed.
func noise(seed uint64, n int) []complex64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]complex64, n)
	for k := range x {
		x[k] = complex(float32(rng.NormFloat64()), float32(rng.NormFloat64()))
	}
	return x
}

func read(t testing.TB, rx radio.Receiver, n int) []complex64 {
	t.Helper()
	x := make([]complex64, n)
	got, _, err := radio.ReadFull(limited(t), rx, x)
	if got != n {
		t.Fatalf("%d of %d samples: %v", got, n, err)
	}
	return x
}

func same(t testing.TB, got, want []complex64) {
	t.Helper()
	for k := range want {
		if got[k] != want[k] {
			t.Fatalf("sample %d is %v; expected is %v", k, got[k], want[k])
		}
	}
}

func serial(i int) string { return fmt.Sprintf("0000000000000000%016x", 0xc0+i) }
