package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/virtual"
)

// Every output says that radios take part and what they may send, and loudly where
// secrets come from the seed.
func TestRadioNotes(t *testing.T) {
	r := overBoards(t, 2, 1)
	notes := strings.Join(r.s.notes(), "\n")
	experimenttest.WantAll(t, notes, "NOTHING IS PROTECTED", "over radios: 2 transmitters at 433.92 MHz; allowed are 432 MHz to 436 MHz", "hackrf: this driver was tested against an emulated board")
	r.s.Config.Encryption.Randomness = "system"
	if notes := strings.Join(r.s.notes(), "\n"); strings.Contains(notes, "NOTHING IS PROTECTED") || !strings.Contains(notes, "those of all devices live in this one process") {
		t.Error(notes)
	}
	c := r.s.Config
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	experimenttest.WantAll(t, strings.Join(s.notes(), "\n"), "the radios were not opened")
}

// When the session ends in the middle of a round, as by Ctrl-C, all carriers are off
// and the run is interrupted, not failed.
func TestCarriersGoOffWithTheSession(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	r, boards := boardsUnder(t, ctx, 2, 3)
	transmissions := 0
	begin := r.link.OnAir
	r.link.OnAir = func(s slot.Slot, at radio.SampleIndex) error {
		if transmissions++; transmissions == 3 {
			interrupt()
		}
		return begin(s, at)
	}
	_, err := r.s.Trainer.Step(ctx)
	if err == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("the round gave %v", err)
	}
	// The session's end is heard beside the round's.
	for i, b := range boards {
		experimenttest.Until(t, fmt.Sprintf("board %d is off", i), func() bool { return b.Settings().Mode != virtual.ModeTransmit })
	}
	if r.s.Trainer.State().Round != 0 {
		t.Errorf("the model is after round %d", r.s.Trainer.State().Round)
	}
}
