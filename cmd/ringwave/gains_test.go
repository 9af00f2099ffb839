package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/setup"
	"ringwave/phy/slot"
)

// turning has carriers that turn the devices' gains against each other, by a twelfth of
// a turn and more from round to round.
const turning = "devices.carrier_offset_per_device_hz=[0, 0.1, -0.1]"

// turningRun is a run under turning carriers. The short one has rounds a quarter as
// long, at a quarter of the rate.
func turningRun(dir string, more ...string) []string {
	if os.Getenv("RINGWAVE_LONG") == "" {
		return quick("waveform-mnist.toml", dir, 30, append([]string{turning, "link.sample_rate_hz=2.5e6"}, more...)...)
	}
	args := append([]string{"run", experimenttest.WaveformConfig, "--out", dir}, small...)
	for _, m := range append([]string{"optimizer.rounds=30", turning}, more...) {
		args = append(args, "--set", m)
	}
	return args
}

// named returns the lines of a run's log that name a device whose gain disagrees.
func named(t *testing.T, dir string) []string {
	t.Helper()
	var lines []string
	for _, line := range strings.Split(string(experimenttest.ReadFile(t, dir, runfolder.LogName)), "\n") {
		if strings.Contains(line, `"a gain disagrees"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Three devices whose carriers are a tenth of a hertz apart weigh each other's messages
// with gains that are not the channel's. Nothing that was checked before shows it: their
// running means do, of gains that fluctuate much, and their signs of others. Devices are
// named once each in the log, in the summary and in what is printed.
func TestTurningCarriersAreNamed(t *testing.T) {
	experimenttest.NoData(t)
	for name, c := range map[string]struct {
		set    string
		column func(*runfolder.LinkRow) float64
		what   string
	}{
		"mu/sigma 3.3": {"channel.std=0.3", func(l *runfolder.LinkRow) float64 { return l.MeansLeft }, "the running mean of H_i/alpha is "},
		"mu/sigma 20":  {"channel.std=0.05", func(l *runfolder.LinkRow) float64 { return l.WrongSigns }, "the sign of its gain is not that of mu_i"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			stdout, _ := mustRun(t, turningRun(dir, c.set)...)
			sum, read, misfit := 0.0, 0, 0.0
			for _, r := range metricsOf(t, dir) {
				if r.Skipped {
					continue
				}
				read++
				sum += c.column(r.Link)
				misfit = max(misfit, r.Link.Misfit)
			}
			summary := summaryOf(t, dir)
			log := named(t, dir)
			t.Logf("%d of 30 rounds read, misfit up to %.2f, %v of the verdicts; %v disagree\n%s", read, misfit, sum, summary.DisagreeingDevices, strings.Join(log, "\n"))
			if misfit < 1 {
				t.Fatalf("the misfit is at most %v: nothing turned", misfit)
			}
			if sum == 0 || len(log) == 0 || len(log) != len(summary.DisagreeingDevices) {
				t.Fatalf("%v verdicts in metrics.csv, %d warnings, devices %v", sum, len(log), summary.DisagreeingDevices)
			}
			for i, d := range summary.DisagreeingDevices {
				sentence := fmt.Sprintf("device %d: %s", d, c.what)
				if !strings.Contains(strings.Join(log, "\n"), sentence) || !strings.Contains(stdout, "note: "+sentence) {
					t.Errorf("device %d (%d) is not named: %s", d, i, stdout)
				}
			}
			if wrong := float64(summary.WrongSigns); name == "mu/sigma 20" && wrong != sum {
				t.Errorf("the summary has %v wrong signs, metrics.csv %v", wrong, sum)
			}
		})
	}
}

// With refuse the attempts of such rounds are void.
func TestTurningCarriersAreRefused(t *testing.T) {
	experimenttest.NoData(t)
	for _, std := range []string{"channel.std=0.3", "channel.std=0.05"} {
		dir := filepath.Join(t.TempDir(), std)
		mustRun(t, turningRun(dir, std, "devices.disagreement=refuse")...)
		read, worst := 0, 0.0
		for _, r := range metricsOf(t, dir) {
			if r.Skipped {
				continue
			}
			read++
			worst = max(worst, r.Link.WrongSigns+r.Link.MeansLeft)
		}
		log := string(experimenttest.ReadFile(t, dir, runfolder.LogName))
		void := strings.Count(log, `"check":"gains check","transmission":"b","reason":"device `)
		t.Logf("%s: %d of 30 rounds read, %d attempts void", std, read, void)
		if void == 0 || read > 24 || worst != 0 {
			t.Errorf("%s: %d of 30 rounds read, up to %v devices disagree in them, and %d attempts are void for it", std, read, worst, void)
		}
	}
}

// The ring link meets gains of 0 and below as its channel draws them: they are counted
// in the summary, and metrics.csv has nothing of them.
func TestRingCountsZeroGains(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, append(append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, small...), "--set", "channel.gain_lattice_bits=0", "--set", "channel.fresh_block_on_retry=true",
		"--set", "channel.drift=after-key", "--set", "channel.drift_std=1", "--set", "channel.drift_probability=0.3")...)
	c, err := config.Load(filepath.Join(dir, runfolder.ConfigName), nil)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := setup.NewChannel(c, keystream.FromInteger(uint64(c.Experiment.Seed)))
	if err != nil {
		t.Fatal(err)
	}
	want, repeated := 0.0, 0
	h := make([]float64, c.Devices.Count)
	for _, r := range metricsOf(t, dir) {
		if r.Link != nil {
			t.Fatalf("round %d has link columns: %+v", r.Round, *r.Link)
		}
		if r.Skipped {
			continue
		}
		repeated += r.Attempts - 1
		ch.Scaled(h, uint32(r.Round), uint32(r.Attempts-1), int(slot.TxC0))
		for _, x := range h {
			if x == 0 {
				want++
			}
		}
	}
	s := summaryOf(t, dir)
	t.Logf("%v gains of 0 in 60 rounds of 10 devices, %d attempts void", s.ZeroGains, repeated)
	if float64(s.ZeroGains) != want || want == 0 || repeated == 0 {
		t.Errorf("%v gains of 0, want %v; %d attempts void", s.ZeroGains, want, repeated)
	}
	if !math.IsNaN(float64(s.WrongSigns)) || len(s.DisagreeingDevices) != 0 {
		t.Errorf("wrong signs %v, devices %v: the ring link knows of none", s.WrongSigns, s.DisagreeingDevices)
	}
}
