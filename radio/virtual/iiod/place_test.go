package iiod_test

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/radiotest"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/iiod"
)

// A board with its two antennas on a bench in lock-step: what it sends it hears, at
// the gain of the link, and at no other frequency.
func TestPlaces(t *testing.T) {
	radiotest.Goroutines(t)
	tx, rx := iiod.NewPlace(radio.Transmit), iiod.NewPlace(radio.Receive)
	bench, err := virtual.NewBench(virtual.Config{
		Boards: []virtual.Place{{Radio: tx}, {Radio: rx}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 2}},
		Await:  []int{0, 1},
	})
	ok(t, err)
	defer func() { ok(t, bench.Close()) }()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	s, err := iiod.Serve(ln, iiod.Config{Receive: rx, Transmit: tx})
	ok(t, err)
	defer func() { ok(t, s.Close()) }()
	c := dial(t, ln.Addr().String())
	c.say(t, "WRITE ad9361-phy OUTPUT voltage0 hardwaregain 1\r\n0", "1\n")
	c.say(t, "WRITE ad9361-phy OUTPUT TX_LO frequency 10\r\n2400000000", "10\n")
	c.say(t, "WRITE ad9361-phy INPUT voltage0 sampling_frequency 7\r\n4000000", "7\n")
	c.say(t, "OPEN iio:device2 2 00000003\r\n", "0\n")
	c.say(t, "OPEN iio:device3 2 00000003\r\n", "0\n")
	block := func(sent, want string) {
		t.Helper()
		c.say(t, "WRITEBUF iio:device2 8\r\n", "0\n")
		c.say(t, sent, "8\n")
		if want != "" {
			c.say(t, "READBUF iio:device3 8\r\n", "8\n00000003\n"+want)
		}
	}
	block("\x10\x00\x20\x00\x30\x00\xf0\xff", "\x02\x00\x04\x00\x06\x00\xfe\xff")
	c.say(t, "WRITE ad9361-phy OUTPUT TX_LO frequency 10\r\n2500000000", "10\n")
	block("\x10\x00\x20\x00\x30\x00\xf0\xff", strings.Repeat("\x00", 8))
	c.say(t, "WRITE ad9361-phy OUTPUT TX_LO powerdown 1\r\n1", "1\n")
	c.say(t, "CLOSE iio:device2\r\n", "0\n")
	// Without anyone on the air it hears silence.
	c.say(t, "READBUF iio:device3 8\r\n", "8\n00000003\n"+strings.Repeat("\x00", 8))
	rx.Unplug()
	c.say(t, "CLOSE iio:device3\r\n", "0\n")
	c.say(t, "OPEN iio:device3 2 00000003\r\n", "-19\n")
}

// slowClock is a clock on which each look takes a microsecond, and a wait ten.
type slowClock struct {
	mu    sync.Mutex
	now   time.Duration
	looks int
}

func (c *slowClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += time.Microsecond
	c.looks++
	return c.now
}

func (c *slowClock) Wait(context.Context, time.Duration, <-chan struct{}) {
	for range 200 { // for others to run
		runtime.Gosched()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += 10 * time.Microsecond
}

// Those who wait for samples in real time do not bring time up to now: they would wake one
// another at each sample.
func TestWaitersRest(t *testing.T) {
	radiotest.Goroutines(t)
	const samples = 20_000
	clock := &slowClock{}
	cfg := virtual.Config{Clock: clock}
	var places []*iiod.Place
	for range 3 {
		p := iiod.NewPlace(radio.Receive)
		places = append(places, p)
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: p})
	}
	bench, err := virtual.NewBench(cfg)
	ok(t, err)
	defer func() { ok(t, bench.Close()) }()
	done := make(chan error)
	for _, p := range places {
		_, err := p.SetSampleRate(t.Context(), radio.Receive, 1e6)
		ok(t, err)
		r, err := p.OpenReceiver(t.Context())
		ok(t, err, r.Start(t.Context()))
		go func() {
			_, _, err := r.Read(t.Context(), make([]complex64, samples))
			done <- err
		}()
	}
	for range places {
		ok(t, <-done)
	}
	// The bench looks twice for each wait, of twelve microseconds in all.
	clock.mu.Lock()
	defer clock.mu.Unlock()
	if passed := int(clock.now / time.Microsecond); clock.looks > passed/4 {
		t.Errorf("the clock was looked at %d times in %d us", clock.looks, passed)
	}
}
