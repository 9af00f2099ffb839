package server

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ringwave/crypto/keystream"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// RingReceiver is the receiving half of a ring link whose air is on the bus: it hears the
// superposition and judges it, and knows no gain.
type RingReceiver struct {
	*phy.RingFramer
	server    *Server
	modulus   *zq.Modulus
	devices   int
	tolerance float64 // of a coefficient of b~

	at    slot.Slot
	chk   zq.Vector
	key   []int64 // the pattern of the last b
	heard chan []byte
	// silent counts the transmissions, one behind the other, of which nothing arrived.
	silent int
}

// airPatience is of how many transmissions, one behind the other, nothing may arrive before
// the air counts as gone.
const airPatience = 3

// NewRingReceiver returns the receiver of a server, whose framer goes by the secret that
// devices have, too.
func (s *Server) NewRingReceiver(noiseStd [slot.Transmissions]float64, secret keystream.Seed) (*RingReceiver, error) {
	m := s.cfg.Context.Modulus()
	f, err := phy.NewRingFramer(m, len(s.devices), noiseStd, secret)
	if err != nil {
		return nil, err
	}
	r := &RingReceiver{
		RingFramer: f, server: s, modulus: m, devices: len(s.devices),
		tolerance: math.Ceil(6.5 * noiseStd[slot.TxKey]), heard: make(chan []byte, 16),
	}
	stop, err := s.cfg.Bus.Subscribe(wire.AllFromAir, func(m bus.Message) {
		select {
		case r.heard <- m.Payload:
		default: // it is asked for again
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listening to the air: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, stop)
	s.radio = r
	return r, s.audit.choose(s.cfg.Context.Params.N)
}

// Open begins a transmission: phy.Receiver.
func (r *RingReceiver) Open(_ context.Context, s slot.Slot, n int) error {
	checks, err := r.RingFramer.Open(s, n)
	if err != nil {
		return err
	}
	r.at, r.chk = s, r.modulus.NewVector(checks)
	return nil
}

// Receive waits for the superposition of what devices have sent: phy.Receiver. Nothing
// arrives where a device was lost before its frame was on the air, and where the air is not
// there, which ends the run in the end.
func (r *RingReceiver) Receive(ctx context.Context, rx *phy.Reception) error {
	deadline := time.NewTimer(r.server.cfg.Deadline)
	defer deadline.Stop()
	pause := r.server.patience()
	again := time.NewTimer(pause)
	defer again.Stop()
	for {
		select {
		case b := <-r.heard:
			m, err := wire.Parse(b)
			if err != nil || m.Kind != wire.Superposition || m.Run != r.server.cfg.Run || m.Slot != r.at {
				continue
			}
			if err := wire.ParseReception(m.Body, r.modulus, rx, r.chk); err != nil {
				return fmt.Errorf("reading what arrives of %v: %w", r.at.Transmission, err)
			}
			rx.CheckPassed, rx.Reason, r.silent = r.Verify(rx.Y, r.chk, rx.Pattern), "", 0
			if r.at.Transmission == slot.TxKey {
				r.key = slices.Clone(rx.Pattern)
			}
			return nil
		case <-again.C:
			if lost := r.server.lostOne(); lost > 0 {
				rx.CheckPassed, rx.Reason = false, fmt.Sprintf("device %d was lost before its frame was heard", lost)
				return nil
			}
			if err := r.ask(); err != nil {
				return err
			}
			pause = max(pause, min(2*pause, lastRepeat))
			again.Reset(pause)
		case <-deadline.C:
			if r.silent++; r.silent < airPatience {
				rx.CheckPassed, rx.Reason = false, fmt.Sprintf("nothing arrived within %v", r.server.cfg.Deadline)
				return nil
			}
			return fmt.Errorf("nothing arrived of %v within %v: the air is not there (ringwave air)", r.at.Transmission, r.server.cfg.Deadline)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lostOne returns the first device of the attempt that is not there any more; 0 for none.
func (s *Server) lostOne() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range s.devices {
		if s.present[i] && (d.gone == nil || d.visit != s.visits[i]) {
			return i + 1
		}
	}
	return 0
}

// ask asks the air, and the devices, for what was lost on the bus.
func (r *RingReceiver) ask() error {
	s := r.server
	m := wire.Message{Kind: wire.Again, Run: s.cfg.Run, Slot: r.at}
	b, err := wire.Seal(s.cfg.Identity, m)
	if err != nil {
		return err
	}
	_ = s.cfg.Bus.Publish(s.cfg.Run.ToAir(), b) // and again
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.asking; a != nil && a.slot == r.at {
		return s.publish(a)
	}
	return nil
}

func roundInt(x float64) int64 { return int64(math.RoundToEven(x)) }
