package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ringwave/learner/hosts/device"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/server"
	"ringwave/learner/hosts/wire"
	"ringwave/radio/intake"
)

// clock is a host's, which a test sets forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) forward(d time.Duration) { c.ahead.Add(int64(d)) }

// wait waits until something is so.
func (b *bench) wait(what string, so func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s has not come\n%s", what, strings.Join(b.said.lines, "\n"))
		}
	}
}

// patient makes a device that counts its parts, and goes by a clock.
func (b *bench) patient(c *clock, joins *atomic.Int64, stay bool) func(*device.Config, *device.Part) {
	return func(cfg *device.Config, p *device.Part) {
		if p != nil {
			joins.Add(1)
			return
		}
		if cfg != nil {
			cfg.Now, cfg.MaxOffset, cfg.Silence, cfg.Patience, cfg.Stay = c.now, 24*time.Hour, time.Minute, 10*time.Minute, stay
		}
	}
}

// A device whose server has gone without a word says so, lets go of its key, and is taken up by
// the next, whose history it replays.
func TestServerIsSilent(t *testing.T) {
	const rounds = 6
	b := newBench(t, 2, rounds)
	b.air()
	b.serve()
	var c clock
	var joins atomic.Int64
	var ends []chan error
	for i := range 2 {
		ends = append(ends, b.device(t.Context(), i+1, b.patient(&c, &joins, false)))
	}
	for k := 1; k <= 3; k++ {
		_, err := b.step(t.Context(), k)
		b.must(err)
	}
	c.forward(50 * time.Second) // and no more than that
	b.wait("a beat", func() bool { return b.server.Census().Hosts[1].State == "present" })
	b.server.Close()
	if b.said.has("nothing was heard from the server") {
		t.Error("a device has heard nothing before its time")
	}
	c.forward(2 * time.Minute)
	for _, i := range []string{"1", "2"} {
		b.says("device " + i + " waits until ringwave serve is there again")
	}
	b.serve()
	for k := 4; k <= rounds; k++ {
		_, err := b.step(t.Context(), k)
		b.must(err)
	}
	_, err := b.server.End(t.Context(), b.model.Digest())
	b.must(err)
	for i, ended := range ends {
		if err := endOf(t, ended); err != nil {
			t.Errorf("device %d: %v", i+1, err)
		}
	}
	if n := joins.Load(); n != 4 {
		t.Errorf("the devices have had %d parts, want 4: two each", n)
	}
}

// A device that hears its server all along keeps its part, however its own clock jumps.
func TestServerIsHeard(t *testing.T) {
	b := newBench(t, 2, 4)
	b.air()
	id, conn := b.dial(identity.Server, 0)
	herald, err := server.NewHerald(server.HeraldConfig{Identity: id, Bus: conn, Every: 20 * time.Millisecond})
	b.must(err)
	t.Cleanup(herald.Close)
	b.herald = herald
	b.serve()
	var c clock
	var joins atomic.Int64
	for i := range 2 {
		b.device(t.Context(), i+1, b.patient(&c, &joins, false))
	}
	_, err = b.step(t.Context(), 1)
	b.must(err)
	// Who is not let in hears the server, too, and waits for longer than for one that is not there.
	twin := b.device(t.Context(), 1, b.patient(&c, &joins, false))
	b.says("the server asks to wait: device 1 is here already")
	for range 6 {
		c.forward(2 * time.Minute)
		beats := b.beats.Load()
		b.wait("ten beats", func() bool { return b.beats.Load() > beats+10 })
	}
	_, err = b.step(t.Context(), 2)
	b.must(err)
	if b.said.has("nothing was heard") || joins.Load() != 2 {
		t.Errorf("%d parts, want 2; %.2000q", joins.Load(), b.said.lines)
	}
	select {
	case err := <-twin:
		t.Errorf("a device that the server asks to wait has ended: %v", err)
	default:
	}
}

// Nobody's word for long ends a device with a sentence that is not the user's fault, unless it
// is to stay.
func TestNoServer(t *testing.T) {
	b := newBench(t, 2, 1)
	var c clock
	var joins atomic.Int64
	ended := b.device(t.Context(), 1, b.patient(&c, &joins, false))
	stays, leave := context.WithCancel(t.Context())
	defer leave()
	staying := b.device(stays, 2, b.patient(&c, &joins, true))
	b.wait("greetings", func() bool { return b.hellos[1].Load() > 0 && b.hellos[2].Load() > 0 })
	c.forward(11 * time.Minute)
	err := endOf(t, ended)
	if !errors.Is(err, device.ErrSilent) || intake.IsUserError(err) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "nothing was heard for 11m0s; begin device 1 again once ringwave serve is there") {
		t.Errorf("%v", err)
	}
	b.serve()
	b.says("device 2 is here")
	leave()
	if err := endOf(t, staying); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A device that stays takes part in a second run, for longer than it waits at an end to be let
// go.
func TestStayingForAnotherRun(t *testing.T) {
	b := newBench(t, 2, 2)
	b.air()
	b.serve()
	var c clock
	var joins atomic.Int64
	for i := range 2 {
		b.device(t.Context(), i+1, b.patient(&c, &joins, true))
	}
	for run := range 2 {
		for k := 1; k <= 2; k++ {
			c.forward(2 * time.Second) // twenty beats
			beats := b.beats.Load()
			b.wait("ten beats", func() bool { return b.beats.Load() > beats+10 })
			_, err := b.step(t.Context(), k)
			b.must(err)
		}
		_, err := b.server.End(t.Context(), b.model.Digest())
		b.must(err)
		b.server.Close()
		if run == 0 {
			b.run, b.model, b.records, b.guard.shares = wire.RunID{9}, &member{}, nil, map[[2]uint32]int{}
			b.serve()
		}
	}
	if n := joins.Load(); n != 4 {
		t.Errorf("%d parts, want 4: one a device and run", n)
	}
}
