package experiment

import (
	"testing"

	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/virtual"
)

// A panic in the loop that runs the rounds passes through what closes the session, and
// all carriers are off behind it.
func TestCarriersGoOffAtPanic(t *testing.T) {
	r, boards := boardsUnder(t, t.Context(), 2, 3)
	transmissions := 0
	begin := r.link.OnAir
	r.link.OnAir = func(s slot.Slot, at radio.SampleIndex) error {
		if transmissions++; transmissions == 3 {
			if s := boards[0].Settings(); s.Mode != virtual.ModeTransmit {
				t.Errorf("board 0 is in mode %d in the middle of a round", s.Mode)
			}
			panic("a bug")
		}
		return begin(s, at)
	}
	func() {
		defer func() {
			if cause := recover(); cause != "a bug" {
				t.Errorf("the panic became %v", cause)
			}
		}()
		defer func() { // as Experiment.run does
			if err := r.s.Close(); err != nil {
				t.Error(err)
			}
			r.s.protocol.engine, r.s.protocol.devices = nil, nil // the harness closes it, too
		}()
		_, err := r.s.Trainer.Step(t.Context())
		t.Errorf("a round with a bug in it gave %v", err)
	}()
	for i, b := range boards {
		if mode := b.Settings().Mode; mode != virtual.ModeOff {
			t.Errorf("board %d is in mode %d", i, mode)
		}
	}
}
