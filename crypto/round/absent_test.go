package round

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// flaky is a participant that does not answer where a test says so.
type flaky struct {
	Participant
	missing func(s slot.Slot, preparing bool) bool
	shares  *int
}

func (f *flaky) Prepare(ctx context.Context, round, attempt uint32) error {
	if f.missing(slot.Slot{Round: round, Attempt: attempt}, true) {
		return fmt.Errorf("no answer: %w", ErrAbsent)
	}
	return f.Participant.Prepare(ctx, round, attempt)
}

func (f *flaky) Send(ctx context.Context, step Step) (int, error) {
	if f.missing(step.Slot, false) {
		return 0, fmt.Errorf("no answer: %w", ErrAbsent)
	}
	if step.Slot.Transmission == slot.TxShare {
		*f.shares++
	}
	return f.Participant.Send(ctx, step)
}

// partial is a ring link that does without devices that send nothing.
type partial struct {
	*phy.RingFramer
	air    *phy.RingAir
	ctx    *xmkckks.Context
	slot   slot.Slot
	frames []phy.RingFrame
	chk    zq.Vector
}

func newPartial(t *testing.T, b *bench) *partial {
	t.Helper()
	none := [slot.Transmissions]float64{}
	f, err := phy.NewRingFramer(b.ctx.Modulus(), len(b.devices), none, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	return &partial{RingFramer: f, air: phy.NewRingAir(b.ctx.Modulus(), b.channel, none, keystream.FromInteger(2)), ctx: b.ctx}
}

func (p *partial) Open(_ context.Context, s slot.Slot, n int) error {
	m, err := p.RingFramer.Open(s, n)
	p.slot, p.frames, p.chk = s, make([]phy.RingFrame, 4), p.ctx.Modulus().NewVector(m)
	return err
}

func (p *partial) Transmit(i int, x zq.Vector) error {
	f := phy.RingFrame{Payload: x, Checks: p.ctx.Modulus().NewVector(p.chk.Len()), Pattern: p.Pattern(i)}
	p.Checks(i, f.Checks, x)
	p.frames[i] = f
	return nil
}

func (p *partial) Receive(_ context.Context, rx *phy.Reception) error {
	err := p.air.Superpose(p.slot, rx, p.chk, p.frames)
	rx.CheckPassed = p.Verify(rx.Y, p.chk, rx.Pattern)
	return err
}

// over puts another link in the place of a bench's.
func (b *bench) over(t *testing.T, u phy.Uplink) {
	t.Helper()
	cfg := b.engine.cfg
	cfg.Participants, cfg.Receiver = Locals(b.devices, u), u
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	b.engine = e
}

// A device that is not there when an attempt begins is left out of it, one that is lost
// before the shares voids it, and one that is lost later ends the round.
func TestAbsentDevices(t *testing.T) {
	const n = 4
	for _, c := range []struct {
		name     string
		minimum  int
		missing  func(s slot.Slot, preparing bool) bool // of device 2
		attempts int
		skipped  bool
		present  int
		shares   int // of device 2
	}{
		{"never", 0, func(slot.Slot, bool) bool { return false }, 1, false, n, 1},
		{"from the beginning", 3, func(slot.Slot, bool) bool { return true }, 1, false, n - 1, 0},
		{"from the beginning, all needed", 0, func(slot.Slot, bool) bool { return true }, 5, true, n - 1, 0},
		{"in the first attempt", 0, func(s slot.Slot, _ bool) bool { return s.Attempt == 0 }, 2, false, n, 1},
		{"at b", 3, func(s slot.Slot, p bool) bool { return s.Attempt > 0 || !p && s.Transmission == slot.TxKey }, 2, false, n - 1, 0},
		{"at c0, and back", 3, func(s slot.Slot, p bool) bool {
			return s.Attempt == 0 && !p && s.Transmission == slot.TxC0
		}, 2, false, n, 1},
		{"at c1, all needed", 0, func(s slot.Slot, p bool) bool { return !p && s.Transmission == slot.TxC1 }, 5, true, n - 1, 0},
		{"at D", 3, func(s slot.Slot, p bool) bool { return !p && s.Transmission == slot.TxShare }, 1, true, n - 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, setup{params: params(t, "demo-1024"), devices: n, attempts: 5, seed: 3})
			b.over(t, newPartial(t, b))
			shares := 0
			for i, p := range b.engine.cfg.Participants {
				if i == 2 {
					b.engine.cfg.Participants[i] = &flaky{p, c.missing, &shares}
				}
			}
			if c.minimum > 0 {
				b.engine.cfg.Minimum = c.minimum
			}
			delta := b.deltas()
			out, err := b.engine.Run(t.Context(), 1, delta)
			if err != nil {
				t.Fatal(err)
			}
			if out.Attempts != c.attempts || out.Skipped != c.skipped || out.Present != c.present || shares != c.shares {
				t.Errorf("%d attempts, skipped is %v, %d present, %d shares of device 2; expected %d, %v, %d, %d: %v",
					out.Attempts, out.Skipped, out.Present, shares, c.attempts, c.skipped, c.present, c.shares, out.Failures)
			}
			for _, f := range out.Failures {
				if f.Check != Presence || f.Reason == "" {
					t.Errorf("failed by %v, reason %q", f.Check, f.Reason)
				}
			}
			if out.Skipped {
				return
			}
			h := b.gains(1)
			b.channel.Scaled(h, 1, out.Attempt, 0)
			if c.present < n {
				h[2] = 0
			}
			if m, ideal := out.M[0], b.ideal(h, delta, 0); math.Abs(m-ideal) > 8*b.design.DecodedStd() {
				t.Errorf("M = %v, that of those present is %v", m, ideal)
			}
		})
	}
}

// An error that is no absence ends the run.
func TestParticipantFails(t *testing.T) {
	b := newBench(t, setup{params: params(t, "demo-1024"), devices: 2, seed: 3})
	broken := errors.New("broken")
	b.engine.cfg.Participants[1] = failing{b.engine.cfg.Participants[1], broken}
	if _, err := b.engine.Run(t.Context(), 1, b.deltas()); !errors.Is(err, broken) {
		t.Errorf("%v, expected %v", err, broken)
	}
}

type failing struct {
	Participant
	err error
}

func (f failing) Send(context.Context, Step) (int, error) { return 0, f.err }
