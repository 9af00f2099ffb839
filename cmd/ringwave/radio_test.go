package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
)

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
		status, _, stderr := run(t, "run", experimenttest.VirtualBenchConfig, "--out", dir, "--set", c.set, "--set", "task.dataset=strokes")
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
	status, _, stderr := run(t, "run", experimenttest.VirtualBenchConfig, "--out", dir, "--set", "task.dataset=strokes",
		"--set", `radio.transmitters=["nosuch:1", "nosuch:2"]`)
	if status != exitBadInput || !strings.Contains(stderr, `transmitter 1: device "nosuch:1" has the scheme "nosuch"`) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("status %d, %q", status, stderr)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("there is a run folder: %v", err)
	}
}
