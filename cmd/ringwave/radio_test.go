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
		{"radio.frequency_hz=0", "--set radio.frequency_hz = 0: must be a number above 0"},
		{"radio.band_hz=[0.0, 1e9]", "--set radio.band_hz = [0, 1e9]: must be two numbers above 0"},
		{"radio.band_hz=[433e6, 434e6]", "radio.frequency_hz = 433920000: must be such that a signal of link.sample_rate_hz = 2e6 lies within radio.band_hz, 433e6 to 434e6: it would lie from 432920000 to 434920000"},
		{"radio.most_gain_db=-1000", "--set radio.most_gain_db = -1000: must be given with radios, from -200 to 200"},
		{"radio.most_gain_db=1000", "--set radio.most_gain_db = 1000: must be a number from -200 to 200"},
		{`radio.transmitters=["hackrf:1"]`, `radio.transmitters = ["hackrf:1"]: must be one URI a device (devices.count = 2)`},
		{`radio.transmitters=["hackrf:1", ""]`, `radio.transmitters = ["hackrf:1", ""]: must be one URI a device`},
		{`radio.transmitters=[]`, "radio.transmitters = [ ]: must be one URI a device"},
		{`radio.receiver=`, `radio.receiver = "": must be the URI`},
		{`radio.transmit_gains_db=["txvga"]`, `radio.transmit_gains_db = ["txvga"]: must be a list of texts "stage=dB"`},
		{`radio.receive_gains_db=["lna=1", "lna=2"]`, "each stage once"},
		{"radio.clock=mine", `radio.clock = "mine": must be "external", "shared" or "internal"`},
		{"radio.trigger=mine", `radio.trigger = "mine": must be "wired", "none", "lock-step", "sounded" or "pps"`},
		{"radio.lead_seconds=-1", "radio.lead_seconds = -1: must be a number from 0 to 10"},
		{"radio.level=-1", "radio.level = -1: must be a number from 0 to 100"},
		{"encryption.randomness=seed", `encryption.randomness = "seed": must be "system" with radios`},
		{"link.kind=ring", "radios carry link.kind = \"waveform\""},
		{"channel.gains=lattice", `channel.gains = "lattice": must be "continuous" with radios`},
		{"link.regime=mean-aligned", `link.regime = "mean-aligned": must be "auto" or "blind" with radios`},
		{"link.real_time=true", "link.real_time = true: must be false with radios"},
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
