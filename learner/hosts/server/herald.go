package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
	"ringwave/radio/intake"
)

// HeraldConfig is what a Herald is made of.
type HeraldConfig struct {
	Identity identity.Identity
	Bus      bus.Conn
	// Host names the machine; "" for its own name.
	Host string
	// Every is how often it says that it is there; 0 for once a second.
	Every time.Duration
	// Now is the host's clock; nil for time.Now.
	Now func() time.Time
	// Say hears what a user should know; nil for nobody.
	Say func(text string)
}

// Herald says every second that the server is there, and hears whether another process has
// its identity, as where the folder of a bench was copied: one at a time may lead. What the
// bus delays or repeats of a process that is gone is told from one that lives by its nonce:
// who lives says the nonce of who it hears.
type Herald struct {
	cfg   HeraldConfig
	stop  func()
	done  context.CancelFunc
	ended sync.WaitGroup

	mu      sync.Mutex
	run     wire.RunID
	own     wire.Presence
	told    []byte // the nonce of the other that the user was told of last
	yielded error  // why this process must give way
	yields  chan struct{}
}

// NewHerald begins to say that the server is there. It lives until Close.
func NewHerald(cfg HeraldConfig) (*Herald, error) {
	if cfg.Host == "" {
		cfg.Host = "unknown"
		if name, err := os.Hostname(); err == nil {
			cfg.Host = name
		}
	}
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Say == nil {
		cfg.Say = func(string) {}
	}
	h := &Herald{cfg: cfg, yields: make(chan struct{})}
	h.own = wire.Presence{Nonce: make([]byte, wire.PresenceNonce), Host: cfg.Host, Since: cfg.Now().UTC()}
	if _, err := rand.Read(h.own.Nonce); err != nil {
		return nil, fmt.Errorf("drawing a nonce: %w", err)
	}
	var err error
	if h.stop, err = cfg.Bus.Subscribe(wire.AllPulses, h.hear); err != nil {
		return nil, fmt.Errorf("listening for another server: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.done = cancel
	h.ended.Go(func() { h.beat(ctx) })
	return h, nil
}

// Close has it say no more.
func (h *Herald) Close() {
	h.done()
	h.stop()
	h.ended.Wait()
}

// beat says every so often that the server is there.
func (h *Herald) beat(ctx context.Context) {
	tick := time.NewTicker(h.cfg.Every)
	defer tick.Stop()
	for h.pulse(); ; h.pulse() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pulse says that the server is there. Where the bus is gone for now it is as if lost.
func (h *Herald) pulse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.own.Count++
	body, err := wire.AppendJSON(h.own)
	if err != nil {
		return
	}
	b, err := wire.Seal(h.cfg.Identity, wire.Message{Kind: wire.Pulse, Run: h.run, Body: body})
	if err != nil {
		return // the identity was wiped
	}
	_ = h.cfg.Bus.Publish(h.run.Pulses(), b) // the next may arrive
}

// hear hears the pulses of all who have the server's identity, its own included.
func (h *Herald) hear(b bus.Message) {
	m, err := wire.Open(b.Payload, func(purpose string, message, signature []byte) error {
		return identity.Verify(h.cfg.Identity.Server, purpose, message, signature)
	})
	if err != nil || m.Kind != wire.Pulse {
		return
	}
	p, err := wire.ParsePresence(m.Body)
	if err == nil && h.meet(m.Run, p) {
		h.pulse()
	}
}

// meet takes in another process's pulse, and reports whether that one must be told that it
// was heard.
func (h *Herald) meet(run wire.RunID, p wire.Presence) (answer bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if bytes.Equal(p.Nonce, h.own.Nonce) {
		return false
	}
	h.own.Other = p.Nonce
	if !bytes.Equal(p.Other, h.own.Nonce) {
		return true // it may be gone for long
	}
	switch {
	case h.yielded != nil:
	case p.Before(h.own):
		h.yielded = intake.UserError(fmt.Errorf("another ringwave serve has the identity of this bench's server: on %s, %s; allowed is one at a time, also of copies of the bench's folder: end the other, or wait for its end",
			intake.Sentence(p.Host), doing(run, p)))
		close(h.yields)
	case !bytes.Equal(h.told, p.Nonce):
		h.told = p.Nonce
		h.cfg.Say(fmt.Sprintf("another ringwave serve with the identity of this bench's server is on %s: it gives way to this one", intake.Sentence(p.Host)))
	}
	return false
}

// doing says what a process does.
func doing(run wire.RunID, p wire.Presence) string {
	since := p.Since.UTC().Format(time.RFC3339)
	if !p.Leads {
		return "which has begun at " + since
	}
	return fmt.Sprintf("which leads run %s (%s) since %s", run, intake.Sentence(p.Name), since)
}

// Alone waits for so long whether another process answers, and says so if it goes before
// this one.
func (h *Herald) Alone(ctx context.Context, wait time.Duration) error {
	h.pulse()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	case <-h.yields:
		h.pulse() // for the other's user to know of
	}
	return h.Yielded()
}

// Lead has it speak for a run from here on.
func (h *Herald) Lead(run wire.RunID, name string) {
	h.mu.Lock()
	h.run, h.own.Leads, h.own.Name = run, true, name
	h.mu.Unlock()
	h.pulse()
}

// Yielded says why this process must give way to another, nil while it need not.
func (h *Herald) Yielded() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.yielded
}

// Ends has it say when the run is likely to end.
func (h *Herald) Ends(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.own.Ends = at
}
