package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// quick makes a waveform config a matter of moments.
func quick(name, dir string, rounds int, more ...string) []string {
	args := append([]string{"run", "../../hw-configs/" + name, "--out", dir}, small...)
	args = append(args, "--set", fmt.Sprintf("optimizer.rounds=%d", rounds), "--set", "encryption.parameter_set=demo-1024",
		"--set", "encryption.delta_max=1", "--set", "link.max_alpha=16")
	for _, m := range more {
		args = append(args, "--set", m)
	}
	return args
}

func metricsOf(t *testing.T, dir string) []runfolder.Row {
	t.Helper()
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Aligned devices: ten of quite different means are read at the first attempt, and
// M means what it does without encryption: sum (h_i/mu_i) Delta f_i, as the plain
// aggregator of the same seed has it, but for the fluctuations of 2 % that rounding
// takes away.
func TestAlignedRun(t *testing.T) {
	experimenttest.NoData(t)
	rounds := 15
	if os.Getenv("RINGWAVE_LONG") != "" {
		rounds = 400
	}
	means := "channel.mean_per_device=[1.0, 0.6, 1.4, -0.8, 1.0, 0.9, 1.2, 0.7, 1.1, 1.3]"
	stds := "channel.std_per_device=[0.02, 0.012, 0.028, 0.016, 0.02, 0.018, 0.024, 0.014, 0.022, 0.026]"
	// The weakest arrives 4.4 dB below a device of gain 1.
	dir, plain := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "plain")
	mustRun(t, quick("waveform-aligned.toml", dir, rounds, means, stds, "link.snr_db=39.4")...)
	mustRun(t, quick("waveform-aligned.toml", plain, 1, means, stds, "experiment.aggregator=none", "channel.analog_noise_std=0")...)
	checkNoise(t, dir)
	rows := metricsOf(t, dir)
	first := 0
	for _, r := range rows {
		if r.Attempts == 1 && !r.Skipped {
			first++
		}
		if r.Link.ZeroGains > 0 || r.Link.Misfit > 0.12 || math.Abs(r.Link.Alpha-1) > 0.06 {
			t.Errorf("round %d: alpha %v, misfit %v, %v gains of 0", r.Round, r.Link.Alpha, r.Link.Misfit, r.Link.ZeroGains)
		}
	}
	t.Logf("%d of %d rounds read at once", first, rounds)
	if first*100 < rounds*99 {
		t.Errorf("%d of %d rounds were read at once: wanted are 99 %%", first, rounds)
	}
	got, want := rows[0].M, metricsOf(t, plain)[0].M
	if math.Abs(got-want) > 0.1*math.Abs(want) {
		t.Errorf("M of round 1 is %v, without encryption %v", got, want)
	}
}

// A recording of 16 bits holds the codes of an 8-bit converter and rounds nothing
// more: the run is, to the byte, the one that is not recorded, and replays.
func TestRecordingBehindAConverter(t *testing.T) {
	experimenttest.NoData(t)
	with, without := filepath.Join(t.TempDir(), "with"), filepath.Join(t.TempDir(), "without")
	mustRun(t, quick("waveform-8bit.toml", with, 3, "link.record=ci16_le")...)
	mustRun(t, quick("waveform-8bit.toml", without, 3)...)
	if !bytes.Equal(experimenttest.ReadFile(t, with, runfolder.MetricsName), experimenttest.ReadFile(t, without, runfolder.MetricsName)) {
		t.Error("recording changed the run")
	}
	if stdout, _ := mustRun(t, "replay", with); !strings.Contains(stdout, "agree") {
		t.Errorf("replay says\n%s", stdout)
	}
}

// A receiver that clips says so in the log.
func TestClippingIsLogged(t *testing.T) {
	experimenttest.NoData(t)
	dir := filepath.Join(t.TempDir(), "run")
	status, _, stderr := run(t, quick("waveform-8bit.toml", dir, 2, "link.burst_every_samples=2000", "link.burst_samples=1000", "link.burst_db=30", "encryption.attempts_per_round=1")...)
	if status != exitUnusable {
		t.Errorf("of a run of which no round is read the status is %d\n%s", status, stderr)
	}
	if log := string(experimenttest.ReadFile(t, dir, runfolder.LogName)); !strings.Contains(log, "the receiver clipped") {
		t.Errorf("no word of clipping in\n%s", log)
	}
}

// Real time changes nothing but the time.
func TestRealTimeGivesTheSameBytes(t *testing.T) {
	experimenttest.NoData(t)
	paced, free := filepath.Join(t.TempDir(), "paced"), filepath.Join(t.TempDir(), "free")
	mustRun(t, quick("waveform-8bit.toml", paced, 1, "link.real_time=true")...)
	mustRun(t, quick("waveform-8bit.toml", free, 1)...)
	if !bytes.Equal(experimenttest.ReadFile(t, paced, runfolder.MetricsName), experimenttest.ReadFile(t, free, runfolder.MetricsName)) {
		t.Error("metrics.csv differs")
	}
}

func TestWaveformRefusals(t *testing.T) {
	experimenttest.NoData(t)
	for _, c := range []struct {
		name, config string
		more         []string
		want         []string
	}{
		{"fluctuations", "waveform-aligned.toml", []string{"channel.std=0.3"}, []string{"mean-aligned", "channel.std", "0.5"}},
		{"noise", "waveform-aligned.toml", []string{"link.snr_db=5"}, []string{"link.snr_db is 5", "aligned"}},
		{"emulated, few bits", "paper-waveform-4096.toml", []string{"link.receiver_converter_bits=4"}, []string{"converters", "gain_lattice_bits"}},
		{"regime", "waveform-aligned.toml", []string{"link.regime=emulated"}, []string{"link.regime", "lattice"}},
	} {
		args := []string{"plan", "../../hw-configs/" + c.config}
		for _, m := range append(c.more, "task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300") {
			args = append(args, "--set", m)
		}
		status, _, stderr := run(t, args...)
		if status != 2 {
			t.Errorf("%s: status %d", c.name, status)
		}
		for _, w := range c.want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%s: %q does not say %q", c.name, stderr, w)
			}
		}
	}
}

// The coherence time of a terahertz bench is held against the waveform's own
// airtime, all slots and guard times, and not against bits over a bandwidth.
func TestCoherenceAgainstTheWaveform(t *testing.T) {
	args := []string{"plan", "../../hw-configs/thz-los.toml", "--json"}
	for _, set := range []string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=300",
		"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16", "channel.gains=continuous", "link.kind=waveform"} {
		args = append(args, "--set", set)
	}
	stdout, _ := mustRun(t, args...)
	var p experiment.Plan
	if err := json.Unmarshal([]byte(stdout), &p); err != nil {
		t.Fatal(err)
	}
	if p.Waveform == nil || p.CoherenceSeconds == 0 {
		t.Fatalf("no waveform or coherence time in\n%s", stdout)
	}
	want := float64(p.Waveform.SymbolsPerRound) * 8 / p.Waveform.SampleRateHz
	if math.Abs(p.AirtimeSeconds/want-1) > 1e-3 || want < p.CoherenceSeconds {
		t.Fatalf("%v s of airtime, %v s of samples, coherent for %v s", p.AirtimeSeconds, want, p.CoherenceSeconds)
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, fmt.Sprintf("take %.3g s", want)) {
		t.Errorf("no warning in %s", notes)
	}
}
