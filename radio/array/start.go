package array

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ringwave/radio"
)

const (
	// look is how often a board is looked at that is waited for.
	look = 20 * time.Millisecond
	// settled is for how long a board has taken no more samples that is full.
	settled = 5 * look
	// filling and edge are how long a board may take to be full, and to start at the
	// trigger.
	filling = 5 * time.Second
	// starting is how long a board may take to be switched on and given its first
	// samples.
	starting = 20 * time.Second
	edge     = 2 * time.Second
)

// startTries is how often streams are started of which one has starved meanwhile.
const startTries = 3

// Start opens and starts all streams, those of an earlier Start being closed first.
// The first transmitter starts last. It fails with ErrIncoherent where a trigger
// does not come or a device was retuned; then all streams are closed. Where a stream starves
// before all run it starts all of them again, a few times.
func (a *Array) Start(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return radio.ErrClosed
	}
	if err := a.stop(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := a.start(ctx)
		if err == nil {
			return nil
		}
		err = errors.Join(err, a.stop())
		var unlocated *unlocatedError
		again := errors.Is(err, radio.ErrStarved) || errors.As(err, &unlocated)
		if try == startTries || !again || ctx.Err() != nil {
			return err
		}
	}
}

func (a *Array) start(ctx context.Context) error {
	if err := a.Coherent(ctx); err != nil {
		return err
	}
	if err := a.chooseTriggers(ctx); err != nil {
		return err
	}
	if err := a.appoint(ctx); err != nil {
		return err
	}
	for _, m := range a.members {
		if err := m.open(ctx); err != nil {
			return fmt.Errorf("opening the stream of %s, %s: %w", m.role, m.uri, err)
		}
	}
	if err := a.checkPaced(); err != nil {
		return err
	}
	// The receiver first, so that it misses nothing; then who waits for the edge.
	order := append([]*member{a.receiver()}, a.transmitters()[1:]...)
	for _, m := range order {
		if err := m.begin(ctx, a.starting); err != nil {
			return err
		}
	}
	for _, m := range order {
		if err := m.filled(ctx); err != nil {
			return err
		}
	}
	if err := a.settle(ctx); err != nil {
		return err
	}
	if err := a.members[0].begin(ctx, a.starting); err != nil {
		return err
	}
	for _, m := range order {
		if err := m.triggered(ctx); err != nil {
			return err
		}
	}
	if err := a.locate(ctx); err != nil {
		return err
	}
	for _, m := range a.members {
		m.epoch = m.stream().Epoch()
	}
	return a.Coherent(ctx)
}

// chooseTriggers arms all but the first transmitter.
func (a *Array) chooseTriggers(ctx context.Context) error {
	for i, m := range a.members {
		t, ok := m.device.(radio.TriggerControl)
		if !ok {
			continue
		}
		input := ""
		if a.cfg.Trigger == WiredTrigger && i > 0 {
			input = source(m)
		}
		if err := t.SetTrigger(ctx, input); err != nil {
			return fmt.Errorf("setting the trigger of %s, %s: %w", m.role, m.uri, err)
		}
		m.armed = input != ""
	}
	return nil
}

// open opens the member's stream.
func (m *member) open(ctx context.Context) (err error) {
	if m.dir == radio.Receive {
		m.rx, err = m.device.(radio.ReceiveOpener).OpenReceiver(ctx)
		return err
	}
	m.tx, err = m.device.(radio.TransmitOpener).OpenTransmitter(ctx)
	if err != nil {
		m.tx = nil
	}
	return err
}

// begin starts a member's stream.
func (m *member) begin(ctx context.Context, patience time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := m.stream().Start(limited)
	// Some streams start all the same when they were not given time to be full.
	if ctx.Err() == nil && limited.Err() != nil {
		return incoherent("%s, %s, did not start within %v: %w", m.role, m.uri, patience, limited.Err())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.role, err)
	}
	return nil
}

// filled waits until an armed transmitter's board has all the samples that it can
// hold: one that has not yet filled its buffers misses the edge.
func (m *member) filled(ctx context.Context) error {
	if !m.armed || m.tx == nil {
		return nil
	}
	p, ok := m.tx.(radio.Pacer)
	if !ok {
		return incoherent("%s, %s, is not fed while it waits for the trigger", m.role, m.uri)
	}
	handed, same := radio.SampleIndex(0), time.Duration(0)
	return m.until(ctx, filling, "did not fill its buffers", func() (bool, error) {
		now := p.Earliest()
		if now != handed || now == 0 {
			handed, same = now, 0
			return false, nil
		}
		same += look
		return same >= settled, nil
	})
}

// settle gives a receiver that waits for the edge of the only transmitter the time that it
// has by itself where others fill their buffers: a board that is not yet armed misses it.
func (a *Array) settle(ctx context.Context) error {
	m := a.receiver()
	if !m.armed || len(a.cfg.Transmitters) > 1 {
		return nil
	}
	waited := time.Duration(0)
	return m.until(ctx, filling, "was not armed", func() (bool, error) {
		if err := m.checkLoss(ctx); err != nil || waited >= settled {
			return true, err
		}
		waited += look
		return false, nil
	})
}

// checkLoss has a stream that can look at what its board says.
func (m *member) checkLoss(ctx context.Context) error {
	if c, ok := m.stream().(radio.LossChecker); ok {
		return c.CheckLoss(ctx)
	}
	return nil
}

// triggered waits until an armed stream runs.
func (m *member) triggered(ctx context.Context) error {
	if !m.armed {
		return nil
	}
	return m.until(ctx, edge, "was never triggered: is there a wire from the trigger output of transmitter 1 to its trigger input?", func() (bool, error) {
		if err := m.checkLoss(ctx); err != nil {
			return false, err
		}
		return m.stream().State() == radio.Running, nil
	})
}

// until waits until met, no longer than patience.
func (m *member) until(ctx context.Context, patience time.Duration, otherwise string, met func() (bool, error)) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for waited := time.Duration(0); waited < patience; waited += look {
		if ok, err := met(); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return incoherent("%s, %s, %s", m.role, m.uri, otherwise)
}
