package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringwave/calibration/campaign"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
)

// readSpectra returns the rows of each device.
func readSpectra(t *testing.T, dir string, devices int) [][][]float64 {
	t.Helper()
	lines, err := csv.NewReader(bytes.NewReader(experimenttest.ReadFile(t, dir, experiment.SpectraName))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := make([][][]float64, devices)
	for _, line := range lines[1:] {
		var row []float64
		for _, cell := range line {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			row = append(row, v)
		}
		out[int(row[0])-1] = append(out[int(row[0])-1], row)
	}
	return out
}

// A simulated oscillator of 0.2 Hz has L(f) = 0.2/(2 pi f^2), and one that does not wander
// the noise of the soundings: so say the table, the terminal and --json.
func TestCalibratePhaseNoise(t *testing.T) {
	const linewidth = 0.2
	dir := filepath.Join(t.TempDir(), "calibration")
	args := slices.Concat([]string{"calibrate", "../../hw-configs/waveform-8bit.toml", "--no-advice", "--json", "--out", dir}, sets(
		"devices.linewidth_per_device_hz=[0.2, 0]", "devices.carrier_offset_hz=0", "devices.converter_bits=0", "link.receiver_converter_bits=0",
		"channel.std=0.02", "calibration.blocks=1000", "calibration.sessions=1"))
	stdout, _ := mustRun(t, args...)
	rows := readSpectra(t, dir, 2)
	sum, n := 0.0, 0.0
	for _, row := range rows[0] {
		// Fast ones are folded, and averaged over the looks.
		if f := row[1]; f > 25 && f < 250 {
			sum, n = sum+row[2]-10*math.Log10(linewidth/(2*math.Pi*f*f)), n+1
		}
	}
	if off := sum / n; n < 15 || math.Abs(off) > 1.5 {
		t.Errorf("L(f) is off by %.2f dB in the mean of %v offsets", off, n)
	}
	sum = 0
	for _, row := range rows[1] {
		sum += row[2] - row[5]
		if !(row[3] < row[2] && row[2] < row[4] && row[7] < row[6] && row[6] < row[8]) {
			t.Errorf("the values are not within their intervals: %v", row)
		}
	}
	if off := sum / float64(len(rows[1])); math.Abs(off) > 1.5 {
		t.Errorf("without phase noise, it is %.2f dB over that of the soundings", off)
	}
	var result struct {
		Devices []struct {
			Phase campaign.NoiseSummary `json:"phase_noise"`
			Gain  campaign.NoiseSummary `json:"gain_noise"`
		}
		Files []string
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatal(err)
	}
	if p := result.Devices[0].Phase; len(p.Decibels) != len(rows[0]) || math.Abs(float64(p.Decibels[3])-rows[0][3][2]) > 1e-3 ||
		math.Abs(float64(p.Hertz[3])-rows[0][3][1]) > 1e-2 || !(p.RMS > 0.01 && p.RMS < 0.3) || !(p.Low < 0 && p.High > 0) {
		t.Errorf("--json has %+v, %s %v", p, experiment.SpectraName, rows[0][3])
	}
	for _, name := range []string{experiment.SpectraName, "noise.png"} {
		if !slices.Contains(result.Files, name) {
			t.Errorf("--json does not name %s: %v", name, result.Files)
		}
	}
}

// Of a calibration too short for spectra there is a table without a line, and no column.
func TestCalibrateWithoutSpectra(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "calibration")
	stdout, _ := mustRun(t, slices.Concat([]string{"calibrate", experimenttest.WaveformConfig, "--no-advice", "--out", dir}, sets("calibration.blocks=28", "calibration.sessions=2"))...)
	if strings.Contains(stdout, "L(") {
		t.Errorf("the terminal has spectra:\n%s", stdout)
	}
	if rows := readSpectra(t, dir, 3); len(slices.Concat(rows...)) != 0 {
		t.Errorf("%s has %d lines", experiment.SpectraName, len(rows))
	}
	stdout, _ = mustRun(t, slices.Concat([]string{"calibrate", experimenttest.WaveformConfig, "--no-advice", "--out", dir + "2"}, sets("calibration.blocks=64", "calibration.sessions=2"))...)
	if !strings.Contains(stdout, "Hz), dBc/Hz") || !strings.Contains(stdout, "of the soundings") {
		t.Errorf("the terminal has no spectra:\n%s", stdout)
	}
}
