package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/experiment/config"
	"ringwave/phy"
	"ringwave/radio"
	"ringwave/radio/virtual"
)

const virtualBenchConfig = "../../hw-configs/virtual-bench.toml"

// What may be sent is said in full or nothing is: every gap is one sentence that names
// its key, status 2, and no run folder is left.
func TestRadioRefusals(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"radio.transmit=false", "radios send only with radio.transmit = true"},
		{"radio.frequency_hz=0", "radio.frequency_hz is 0"},
		{"radio.band_hz=[0.0, 1e9]", "radio.band_hz is 0"},
		{"radio.band_hz=[433e6, 434e6]", "radio.band_hz allows 4.33e+08 to 4.34e+08"},
		{"radio.most_gain_db=-1000", "radio.most_gain_db is not given"},
		{"radio.most_gain_db=1000", "radio.most_gain_db is 1000"},
		{`radio.transmitters=["hackrf:1"]`, "radio.transmitters has 1 URIs for 2 devices"},
		{`radio.transmitters=["hackrf:1", ""]`, "radio.transmitters has no URI for device 2"},
		{`radio.transmitters=[]`, "radio.transmitters is empty"},
		{`radio.receiver=`, "radio.receiver is empty"},
		{`radio.transmit_gains_db=["txvga"]`, `radio.transmit_gains_db has "txvga"`},
		{`radio.receive_gains_db=["lna=1", "lna=2"]`, "twice"},
		{"radio.clock=mine", "radio.clock is \"mine\": allowed are external, shared, internal"},
		{"radio.trigger=mine", "radio.trigger is \"mine\": allowed are wired, none, lock-step"},
		{"radio.lead_seconds=-1", "radio.lead_seconds is -1"},
		{"radio.level=-1", "radio.level is -1"},
		{"encryption.randomness=seed", "encryption.randomness is \"seed\" with radios"},
		{"link.kind=ring", "radios carry link.kind = \"waveform\""},
		{"channel.gains=lattice", "channel.gains is \"lattice\" with radios"},
		{"link.regime=mean-aligned", "link.regime is \"mean-aligned\" with radios"},
		{"link.real_time=true", "link.real_time is true with radios"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		status, _, stderr := run(t, "run", virtualBenchConfig, "--out", dir, "--set", c.set, "--set", "task.dataset=strokes")
		if status != exitBadInput || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d, %q; expected is %q", c.set, status, stderr, c.want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: there is a run folder: %v", c.set, err)
		}
	}
}

// A device that cannot be opened is said in a sentence, and leaves nothing.
func TestRadioThatIsNotThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	status, _, stderr := run(t, "run", virtualBenchConfig, "--out", dir, "--set", "task.dataset=strokes",
		"--set", `radio.transmitters=["nosuch:1", "nosuch:2"]`)
	if status != exitBadInput || !strings.Contains(stderr, `transmitter 1: device "nosuch:1" has the scheme "nosuch"`) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("status %d, %q", status, stderr)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("there is a run folder: %v", err)
	}
}

// The permit is the user's band, for signals as wide as the sample rate, and the most
// gain.
func TestPermitOf(t *testing.T) {
	c, err := config.Load(virtualBenchConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := permitOf(c)
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[radio.Hertz]bool{432.9e6: false, 433e6: true, 435e6: true, 435.1e6: false} {
		if got := p.Frequency(f) == nil; got != want {
			t.Errorf("%v permitted: %v", f, got)
		}
	}
	if p.Gain(0) != nil || p.Gain(0.1) == nil {
		t.Errorf("gains: %v, %v", p.Gain(0), p.Gain(0.1))
	}
	c.Radio.Transmit = false
	if p, err := permitOf(c); err != nil || p.Allowed() {
		t.Errorf("%v: %v", p, err)
	}
}

// Every output says that radios take part and what they may send, and loudly where
// secrets come from the seed.
func TestRadioNotes(t *testing.T) {
	r := overBoards(t, 2, 1)
	notes := strings.Join(r.s.notes(), "\n")
	wantAll(t, notes, "NOTHING IS PROTECTED", "over radios: 2 transmitters at 433.92 MHz; allowed are 432 MHz to 436 MHz", "hackrf: this driver was tested against an emulated board")
	r.s.cfg.Encryption.Randomness = "system"
	if notes := strings.Join(r.s.notes(), "\n"); strings.Contains(notes, "NOTHING IS PROTECTED") || !strings.Contains(notes, "those of all devices live in this one process") {
		t.Error(notes)
	}
	c := r.s.cfg
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	wantAll(t, strings.Join(s.notes(), "\n"), "the radios were not opened")
}

// When the session ends in the middle of a round, as by Ctrl-C, all carriers are off
// and the run is interrupted, not failed.
func TestCarriersGoOffWithTheSession(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	r, boards := boardsUnder(t, ctx, 2, 3)
	transmissions := 0
	begin := r.link.onAir
	r.link.onAir = func(slot phy.Slot, at radio.SampleIndex) error {
		if transmissions++; transmissions == 3 {
			interrupt()
		}
		return begin(slot, at)
	}
	_, err := r.s.trainer.Step(ctx)
	if err == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("the round gave %v", err)
	}
	for i, b := range boards {
		if b.Settings().Mode == virtual.ModeTransmit {
			t.Errorf("board %d still transmits", i)
		}
	}
	if r.s.trainer.State().Round != 0 {
		t.Errorf("the model is after round %d", r.s.trainer.State().Round)
	}
}
