package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// faultyBench is a bench with every fault that the simulation has, small enough that some
// rounds are read.
var faultyBench = []string{"devices.linewidth_hz=0.001", "devices.carrier_offset_per_device_hz=[0.01, -0.02, 0.005]", "link.delay_spread_samples=1",
	"devices.converter_bits=12", "devices.dc_offset=0.001", "devices.iq_gain_db=0.05", "devices.iq_phase_rad=0.005",
	"devices.sample_clock_per_device_ppm=[0.1, -0.2, 0.05]", "devices.clock_jitter_samples=0.001", "devices.filter_hz=4e6", "devices.amplifier_saturation=4",
	"devices.amplifier_am_pm_rad=0.005", "link.receiver_converter_bits=12", "link.receiver_sample_clock_ppm=-0.1", "link.receiver_carrier_offset_hz=0.02",
	"link.receiver_linewidth_hz=0.001", "link.receiver_filter_hz=4e6", "link.receiver_dc_block_hz=1", "link.receiver_gain_control_hz=0.1",
	"link.burst_every_samples=400000", "link.burst_samples=20", "link.burst_db=-10", "link.tone_hz=1e6", "link.tone_db=-45",
	"channel.echo_delays_samples=[3.5]", "channel.echo_gains_db=[-45]", "channel.echoes=per-device", "channel.echo_k_factor=5", "channel.doppler_hz=0.01"}

// A run with every fault that was killed and goes on meets what one that ran through did.
func TestFaultyRunKilledAndResumed(t *testing.T) {
	args := slices.Concat(small, sets(faultyBench...), sets("optimizer.rounds=10", "optimizer.checkpoint_every_rounds=3",
		"encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16"))
	whole := filepath.Join(t.TempDir(), "whole")
	mustRun(t, slices.Concat([]string{"run", experimenttest.WaveformConfig, "--out", whole}, args)...)
	if s := summaryOf(t, whole); s.RoundsSkipped == 10 {
		t.Fatal("no round was read: all are the same")
	}
	want := experimenttest.ReadFile(t, whole, runfolder.MetricsName)
	dir := filepath.Join(t.TempDir(), "killed")
	killed(t, dir, int64(len(want)/2), slices.Concat([]string{"run", experimenttest.WaveformConfig, "--out", dir}, args)...)
	mustRun(t, "run", "--resume", dir)
	if got := experimenttest.ReadFile(t, dir, runfolder.MetricsName); !bytes.Equal(got, want) {
		t.Errorf("metrics.csv is\n%s\nwant\n%s", got, want)
	}
}
