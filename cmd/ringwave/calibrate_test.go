package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringwave/calibration"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/compare"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

const unequalConfig = "../../hw-configs/calibration-mnist.toml"

// sets returns flags that change keys.
func sets(keys ...string) []string {
	var out []string
	for _, k := range keys {
		out = append(out, "--set", k)
	}
	return out
}

// calibrate calibrates quickly and gives the folder.
func calibrate(t *testing.T, path string, set ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "calibration")
	mustRun(t, slices.Concat([]string{"calibrate", path, "--no-advice", "--out", dir}, sets(experimenttest.Quickly...), sets(set...))...)
	return dir
}

// imperfect is a bench with all that could make a resumed calibration differ: phases
// that walk, filters with a memory, converters.
var imperfect = []string{"devices.linewidth_hz=0.5", "devices.carrier_offset_per_device_hz=[20, -30, 5]", "link.delay_spread_samples=3",
	"devices.converter_bits=8", "link.receiver_converter_bits=8", "devices.dc_offset=0.01", "calibration.sessions=3",
	"devices.sample_clock_per_device_ppm=[1, -2, 0.5]", "devices.clock_jitter_samples=0.01", "devices.filter_hz=4e6", "link.receiver_filter_hz=4e6",
	"devices.amplifier_saturation=3", "link.receiver_sample_clock_ppm=-1", "link.receiver_carrier_offset_hz=7", "link.receiver_linewidth_hz=0.5",
	"link.receiver_dc_block_hz=10", "link.receiver_gain_control_hz=1", "link.burst_every_samples=100000", "link.burst_samples=50", "link.burst_db=-20",
	"link.tone_hz=1e6", "link.tone_db=-40", "channel.echo_delays_samples=[3.5]", "channel.echo_gains_db=[-30]", "channel.echo_k_factor=5", "channel.doppler_hz=0.01"}

// dated are the lines of a calibration file that tell when and by what it was made.
var dated = regexp.MustCompile(`(?m)^(created|valid_until|program) = .*$`)

// sameCalibration compares two folders but for dates.
func sameCalibration(t *testing.T, got, want string) {
	t.Helper()
	if a, b := experimenttest.ReadFile(t, got, experiment.SoundingsName), experimenttest.ReadFile(t, want, experiment.SoundingsName); !bytes.Equal(a, b) {
		t.Errorf("%s differs from that of the uninterrupted calibration, from byte %d of %d on", experiment.SoundingsName, differAt(a, b), len(b))
	}
	if a, b := experimenttest.ReadFile(t, got, experiment.SpectraName), experimenttest.ReadFile(t, want, experiment.SpectraName); !bytes.Equal(a, b) {
		t.Errorf("%s is\n%s\nwant\n%s", experiment.SpectraName, a, b)
	}
	a, b := experimenttest.ReadFile(t, got, runfolder.CalibrationName), experimenttest.ReadFile(t, want, runfolder.CalibrationName)
	if a, b = dated.ReplaceAll(a, nil), dated.ReplaceAll(b, nil); !bytes.Equal(a, b) {
		t.Errorf("%s is\n%s\nwant\n%s", runfolder.CalibrationName, a, b)
	}
	for i := 1; i <= 3; i++ {
		name := "gains-" + strconv.Itoa(i) + ".npy"
		if !bytes.Equal(experimenttest.ReadFile(t, got, name), experimenttest.ReadFile(t, want, name)) {
			t.Errorf("%s differs", name)
		}
	}
	entries := func(dir string) (names []string) {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names
	}
	if a, b := entries(got), entries(want); !slices.Equal(a, b) {
		t.Errorf("the folder holds %v, want %v", a, b)
	}
}

func differAt(a, b []byte) int {
	for k := range min(len(a), len(b)) {
		if a[k] != b[k] {
			return k
		}
	}
	return min(len(a), len(b))
}

// Kills at random moments of a calibration, of its soundings and of what is written
// behind them, leave what can be resumed to the same soundings and the same file.
func TestCalibrationKilledAndResumed(t *testing.T) {
	kills := 2
	if os.Getenv("RINGWAVE_LONG") != "" {
		kills = 20
	}
	whole := calibrate(t, experimenttest.WaveformConfig, imperfect...)
	want := experimenttest.ReadFile(t, whole, experiment.SoundingsName)
	rnd := rand.New(rand.NewPCG(8, 8))
	var moments []int64
	for range kills {
		moments = append(moments, int64(rnd.IntN(len(want))))
	}
	slices.Sort(moments)
	dir := filepath.Join(t.TempDir(), "killed")
	args := slices.Concat([]string{"calibrate", experimenttest.WaveformConfig, "--no-advice", "--out", dir}, sets(experimenttest.Quickly...), sets(imperfect...))
	t.Setenv(killFile, experiment.SoundingsName)
	for _, at := range moments {
		killed(t, dir, at, args...)
		if _, err := os.Stat(filepath.Join(dir, runfolder.CalibrationName)); err == nil {
			t.Fatalf("killed at byte %d of %s, there is a %s", at, experiment.SoundingsName, runfolder.CalibrationName)
		}
		args = []string{"calibrate", "--resume", dir, "--no-advice"}
	}
	// Behind the soundings: while gains are written, and while plots are drawn.
	for _, name := range []string{"gains-2.npy", runfolder.CalibrationName, "gain-histogram.png"} {
		t.Setenv(killFile, name)
		killed(t, dir, 1, args...)
		if data, err := os.ReadFile(filepath.Join(dir, runfolder.CalibrationName)); err == nil {
			if _, err := calibration.Parse(runfolder.CalibrationName, data); err != nil {
				t.Errorf("killed once %s was there: %v", name, err)
			}
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, args...)
	sameCalibration(t, dir, whole)
}

// Ctrl-C stops after a block, says how to go on, and leaves no calibration file.
func TestCalibrationInterruptedAndResumed(t *testing.T) {
	set := append(slices.Clone(imperfect), "calibration.blocks=120")
	whole := calibrate(t, experimenttest.WaveformConfig, set...)
	dir := filepath.Join(t.TempDir(), "calibration")
	args := slices.Concat([]string{"calibrate", experimenttest.WaveformConfig, "--no-advice", "--out", dir}, sets(experimenttest.Quickly...), sets(set...))
	stop := func(size int64, args ...string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go cancelAfter(filepath.Join(dir, experiment.SoundingsName), size, cancel)
		var out, errs bytes.Buffer
		if status := execute(ctx, args, &out, &errs); status != exitInterrupted || !strings.Contains(errs.String(), "ringwave calibrate --resume "+dir) {
			t.Fatalf("status %d\n%s", status, errs.String())
		}
		if _, err := os.Stat(filepath.Join(dir, runfolder.CalibrationName)); err == nil {
			t.Errorf("stopped, and there is a %s", runfolder.CalibrationName)
		}
	}
	length := int64(len(experimenttest.ReadFile(t, whole, experiment.SoundingsName)))
	stop(0, args...) // at once: before the first block perhaps
	stop(length/3, "calibrate", "--resume", dir, "--no-advice")
	stop(length/2, "calibrate", "--resume", dir, "--no-advice")
	_, stderr := mustRun(t, "calibrate", "--resume", dir, "--no-advice")
	if strings.Contains(stderr, "block 12 of 120") {
		t.Error("the resumed calibration began anew")
	}
	sameCalibration(t, dir, whole)
	// One that has ended only writes its result again.
	mustRun(t, "calibrate", "--resume", dir, "--no-advice")
	sameCalibration(t, dir, whole)
}

// Calibrations, and runs by one, that cannot be served: one sentence, status 2, and
// nothing left behind.
// Longer, or of more branches, than most because it is a table of what is refused.
func TestBadCalibration(t *testing.T) {
	experimenttest.NoData(t)
	dir, scratch := filepath.Join(t.TempDir(), "run"), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(scratch, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	few := []string{"calibration.blocks=32", "calibration.looks=1"}
	done := calibrate(t, experimenttest.WaveformConfig, append([]string{"link.record=ci16_le"}, few...)...)
	good := filepath.Join(done, runfolder.CalibrationName)
	text := string(experimenttest.ReadFile(t, good))
	changedTo := func(name, from, to string) string {
		if !strings.Contains(text, from) {
			t.Fatalf("%s has no %q", good, from)
		}
		return write(name, strings.Replace(text, from, to, 1))
	}
	oneKey := func(name, key, value string) string {
		line := regexp.MustCompile(`(?m)^` + key + ` = .*$`)
		if !line.MatchString(text) {
			t.Fatalf("%s has no %s", good, key)
		}
		first := true
		return write(name, line.ReplaceAllStringFunc(text, func(old string) string {
			if !first {
				return old
			}
			first = false
			return key + " = " + value
		}))
	}
	ran := filepath.Join(t.TempDir(), "ran")
	mustRun(t, slices.Concat([]string{"run", experimenttest.WaveformConfig, "--out", ran, "--set", "calibration.file=" + good, "--set", "link.record=ci16_le"},
		small, sets("optimizer.rounds=1", "encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.max_alpha=16"))...)
	folder := func(name, of string, change func(d string)) string {
		d := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(d, os.DirFS(of)); err != nil {
			t.Fatal(err)
		}
		change(d)
		return d
	}
	rewrite := func(d, name string, edit func(s string) string) {
		if err := os.WriteFile(filepath.Join(d, name), []byte(edit(string(experimenttest.ReadFile(t, d, name)))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	soundings := func(name string, edit func(s string) string) string {
		return folder(name, done, func(d string) { rewrite(d, experiment.SoundingsName, edit) })
	}
	line := func(n int, edit func(fields []string)) func(s string) string {
		return func(s string) string {
			lines := strings.Split(s, "\n")
			fields := strings.Split(lines[n-1], ",")
			edit(fields)
			lines[n-1] = strings.Join(fields, ",")
			return strings.Join(lines, "\n")
		}
	}
	run2 := func(file string, more ...string) []string {
		return slices.Concat([]string{"run", experimenttest.WaveformConfig, "--out", dir, "--set", "calibration.file=" + file}, small, sets(more...))
	}
	measure := func(more ...string) []string {
		return slices.Concat([]string{"calibrate", experimenttest.WaveformConfig, "--out", dir, "--no-advice"}, sets(experimenttest.Quickly...), sets(few...), sets(more...))
	}
	again := func(d string) []string { return []string{"calibrate", "--resume", d, "--no-advice"} }
	listen := func(what string, more ...string) []string { return append(measure(more...), "--recording", what) }

	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		// Settings.
		{"no config", []string{"calibrate", "--out", dir}, []string{"CONFIG"}},
		{"no such config", []string{"calibrate", "none.toml", "--out", dir}, []string{"none.toml"}},
		{"unknown key", measure("calibration.bloks=3"), []string{"calibration.bloks", "calibration.blocks"}},
		{"digital", measure("experiment.aggregator=digital"), []string{"experiment.aggregator", "digital", "nothing to calibrate"}},
		{"too few blocks", measure("calibration.blocks=15"), []string{"calibration.blocks = 15: must be a whole number from 16"}},
		{"looks", measure("calibration.looks=5"), []string{"calibration.looks = 5: must be a whole number from 1 to 4"}},
		{"sessions", measure("calibration.sessions=9"), []string{"calibration.sessions = 9: must be a whole number from 1 to 100 or calibration.blocks/4, 8"}},
		{"sequence", measure("calibration.sequence=noise"), []string{"calibration.sequence", "noise", "m-sequence"}},
		{"length of an m-sequence", measure("calibration.sequence=m-sequence", "calibration.length_chips=100"), []string{"m-sequence of 100 chips", "2^m - 1 from 31 to 4095"}},
		{"even zadoff-chu", measure("calibration.length_chips=64"), []string{"64", "odd"}},
		{"root", measure("calibration.length_chips=63", "calibration.root=21"), []string{"root 21", "63"}},
		{"one repetition", measure("calibration.repetitions=1"), []string{"calibration.repetitions = 1: must be"}},
		{"delay beyond the guard", measure("calibration.delay_search_samples=49"), []string{"calibration.delay_search_samples = 49: must be", "calibration.guard_samples, 48"}},
		{"offset beyond the rate", measure("calibration.offset_search_hz=9e5", "link.sample_rate_hz=1e6"), []string{"calibration.offset_search_hz = 9e5: must be below half of link.sample_rate_hz, 5e5"}},
		{"search beyond the sounding", measure("calibration.offset_search_hz=500e3"), []string{"calibration.offset_search_hz", "500000"}},
		{"a long block", measure("calibration.looks=4", "calibration.round_seconds=60"), []string{"calibration.round_seconds", "16777216"}},
		{"validity", measure("calibration.valid_hours=0"), []string{"calibration.valid_hours = 0: must be a number from 0.001"}},
		{"full folder", []string{"calibrate", experimenttest.WaveformConfig, "--out", ran}, []string{"not empty"}},
		{"not heard", measure("calibration.delay_search_samples=2"), []string{"no sounding of device 1", "calibration.delay_search_samples, 2"}},
		// Folders.
		{"resume nothing", again(dir), []string{dir}},
		{"resume with --set", append(again(done), "--set", "calibration.blocks=64"), []string{"--set", "--resume"}},
		{"resume another config", again(folder("changed", done, func(d string) {
			rewrite(d, runfolder.ConfigName, func(s string) string { return strings.Replace(s, "seed = 1\n", "seed = 2\n", 1) })
		})), []string{runfolder.ConfigName, "was changed"}},
		{"resume a run", again(ran), []string{experiment.SoundingsName, "no calibration's folder"}},
		{"run resumes a calibration", []string{"run", "--resume", done}, []string{"checkpoint"}},
		{"damaged line", again(soundings("number", line(20, func(f []string) { f[9] = "x" }))), []string{experiment.SoundingsName, "line 20", "gain_i", `"x"`}},
		{"wild number", again(soundings("wild", line(20, func(f []string) { f[9] = "NaN" }))), []string{experiment.SoundingsName, "line 20", "gain_i", `"NaN"`}},
		{"swapped lines", again(soundings("order", line(5, func(f []string) { f[3] = "2" }))), []string{experiment.SoundingsName, "line 5", "device 2"}},
		{"a long line", again(soundings("long", line(20, func(f []string) { f[9] = strings.Repeat("1", 5000) }))), []string{experiment.SoundingsName, "line 20 is longer than 4096 bytes; allowed is at most 4096 bytes"}},
		{"more lines", again(soundings("more", func(s string) string { return s + strings.Repeat("\n", 10) })), []string{experiment.SoundingsName, "the number of lines is more than", "allowed is at most"}},
		{"a column too few", again(soundings("columns", func(s string) string { return strings.Replace(s, ",", ";", 40) })), []string{experiment.SoundingsName, "line 1"}},
		{"fewer blocks", again(folder("fewer", done, func(d string) {
			rewrite(d, runfolder.ConfigName, func(s string) string {
				return regexp.MustCompile(`(?m)^(\s*)blocks = 32$`).ReplaceAllString(s, "${1}blocks = 16")
			})
		})), []string{runfolder.ConfigName, "was changed"}},
		{"other looks", again(folder("looks", done, func(d string) {
			rewrite(d, runfolder.ConfigName, func(s string) string { return strings.Replace(s, "looks = 1", "looks = 2", 1) })
		})), []string{runfolder.ConfigName, "was changed"}},
		// Recordings.
		{"no recording", listen(filepath.Join(scratch, "none")), []string{"--recording", "none"}},
		{"recording of a run", listen(ran), []string{"no block of soundings is annotated"}},
		{"a folder without recordings", listen(scratch), []string{"there is no recording"}},
		{"recording of fewer blocks", listen(done, "calibration.blocks=33"), []string{"block 33 of 33 is not annotated"}},
		{"recording at another rate", listen(done, "link.sample_rate_hz=5e6"), []string{"core:sample_rate"}},
		{"recording of other soundings", listen(done, "calibration.length_chips=61"), []string{"no sounding of device 1"}},
		// Files.
		{"no such file", run2("none.toml"), []string{"none.toml", "cannot be read"}},
		{"a folder", run2(done), []string{done, "cannot be read"}},
		{"no TOML", run2(filepath.Join(done, experiment.SoundingsName)), []string{experiment.SoundingsName}},
		{"truncated", run2(write("cut.toml", text[:len(text)/2])), []string{"cut.toml"}},
		{"cut behind a table", run2(write("table.toml", text[:strings.LastIndex(text, "[[device]]")])), []string{"table.toml", "3"}},
		{"key not known", run2(changedTo("key.toml", "omega = ", "omegga = ")), []string{"key.toml", "omegga", "omega"}},
		{"version", run2(oneKey("version.toml", "version", "9")), []string{"version.toml", "version is 9"}},
		{"zero mean", run2(oneKey("mu.toml", "mu", "{ value = 0.0, low = 0.0, high = 0.0 }")), []string{"mu.toml", "mu"}},
		{"expired", run2(oneKey("old.toml", "valid_until", "2001-01-02T00:00:00Z")), []string{"old.toml"}},
		{"other spread", run2(good, "channel.std=0.4"), []string{"bench.identity", "calibrate this bench"}},
		{"other seed, other delays", run2(good, "experiment.seed=2"), []string{"bench.identity", "calibrate this bench"}},
		{"other rate", run2(good, "link.sample_rate_hz=5e6"), []string{"bench.sample_rate_hz is 1e+07", "5e+06"}},
		{"another count", run2(good, "devices.count=4"), []string{"it is of 3 devices", "devices.count is 4"}},
		{"of a recording", run2(oneKey("kind.toml", "kind", `"recording"`)), []string{"bench.kind", `"simulated"`}},
		{"file and assumption", run2(good, "calibration.assumed_mean=[1, 1, 1]"), []string{"calibration.assumed_mean", "calibration.file"}},
		{"assumptions", run2("", "calibration.assumed_mean=[1, 1]"), []string{"calibration.assumed_mean = [1, 1]: must be", "one a device (devices.count = 3)"}},
		{"negative assumption", run2("", "calibration.assumed_mean=[1, -1, 1]"), []string{"calibration.assumed_mean = [1, -1, 1]: must be a list of numbers from"}},
		{"plan", []string{"plan", experimenttest.WaveformConfig, "--set", "calibration.file=" + good, "--set", "channel.mean=2", "--set", "task.dataset=strokes"}, []string{"bench.identity"}},
		{"resume without the copy", []string{"run", "--resume", folder("gone", ran, func(d string) { _ = os.Remove(filepath.Join(d, runfolder.CalibrationName)) })}, []string{runfolder.CalibrationName, "cannot be read"}},
		{"replay with a damaged copy", []string{"replay", folder("torn", ran, func(d string) {
			rewrite(d, runfolder.CalibrationName, func(s string) string { return s[:len(s)/2] })
		})}, []string{runfolder.CalibrationName}},
		{"compare without the copy", []string{"compare", "--out", dir, folder("lost", ran, func(d string) { _ = os.Remove(filepath.Join(d, runfolder.CalibrationName)) })}, []string{runfolder.CalibrationName}},
	} {
		status, stdout, stderr := run(t, c.args...)
		if status != exitBadInput {
			t.Errorf("%s: status %d, want %d\n%s", c.name, status, exitBadInput, stderr)
		}
		if text := strings.TrimSpace(stderr); strings.Contains(text, "\n") || stdout != "" {
			t.Errorf("%s: more than one sentence:\n%s%s", c.name, stdout, stderr)
		}
		if !experimenttest.ContainsAll(stderr, c.want) {
			t.Errorf("%s: %q does not say %q", c.name, stderr, c.want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("%s: a folder was left behind", c.name)
		}
	}
}

// A run goes by its own copy of the calibration: it resumes when the file is gone or
// has expired, and its recordings replay to the bit.
func TestRunKeepsItsCalibration(t *testing.T) {
	bench := []string{"devices.count=3", "channel.mean_per_device=[0.5, 0.6, 0.7]", "encryption.parameter_set=demo-1024", "encryption.delta_max=1", "link.record=cf32_le"}
	found := calibrate(t, experimenttest.AlignedConfig, bench...)
	file := filepath.Join(t.TempDir(), "taken.toml")
	if err := os.WriteFile(file, experimenttest.ReadFile(t, found, runfolder.CalibrationName), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := calibration.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(small, sets(bench...), sets("optimizer.rounds=4", "optimizer.checkpoint_every_rounds=2", "calibration.file="+file))
	whole, cut := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "cut")
	mustRun(t, append([]string{"run", experimenttest.AlignedConfig, "--out", whole}, args...)...)
	if s := summaryOf(t, whole); s.RoundsSkipped != 0 || !strings.Contains(strings.Join(s.Notes, "\n"), "of a calibration of ") {
		t.Errorf("summary %+v", s)
	}
	stdout, _ := mustRun(t, append([]string{"plan", experimenttest.AlignedConfig, "--json"}, args...)...)
	var p experiment.Plan
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || p.Waveform == nil || len(p.Waveform.Groups) == 0 {
		t.Errorf("plan: %v\n%s", err, stdout)
	}
	killed(t, cut, int64(len(experimenttest.ReadFile(t, whole, runfolder.MetricsName))/2), append([]string{"run", experimenttest.AlignedConfig, "--out", cut}, args...)...)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(cut, runfolder.CalibrationName)
	f.Created = f.Created.Add(-time.Hour) // and no longer valid
	f.ValidUntil = f.Created.Add(time.Second)
	if err := os.WriteFile(copied, f.Text(), 0o644); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "run", "--resume", cut)
	if !bytes.Equal(experimenttest.ReadFile(t, cut, runfolder.MetricsName), experimenttest.ReadFile(t, whole, runfolder.MetricsName)) {
		t.Error("resumed, metrics.csv differs")
	}
	for _, dir := range []string{whole, cut} {
		if stdout, _ := mustRun(t, "replay", dir); !strings.HasPrefix(stdout, "16 of 16 transmissions of 4 rounds agree") {
			t.Error(stdout)
		}
	}
	mustRun(t, "replay", filepath.Join(whole, "iq", "round-000001.sigmf-meta"))
}

// compare groups runs by what they went by, not by its name.
func TestCompareCalibrations(t *testing.T) {
	one := filepath.Join(calibrate(t, experimenttest.LoopbackConfig, "calibration.blocks=64", "calibration.looks=1", "devices.count=2"), runfolder.CalibrationName)
	other := filepath.Join(calibrate(t, experimenttest.LoopbackConfig, "calibration.blocks=65", "calibration.looks=1", "devices.count=2"), runfolder.CalibrationName)
	file := filepath.Join(t.TempDir(), "calibration.toml")
	var dirs []string
	go1 := func(seed int, set ...string) {
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, slices.Concat([]string{"run", experimenttest.LoopbackConfig, "--seed", strconv.Itoa(seed), "--out", dir}, small, sets("optimizer.rounds=5", "devices.count=2"), sets(set...))...)
		dirs = append(dirs, dir)
	}
	by := func(from string, seed int) {
		if err := os.WriteFile(file, experimenttest.ReadFile(t, from), 0o644); err != nil {
			t.Fatal(err)
		}
		go1(seed, "calibration.file="+file)
	}
	by(one, 1)
	by(other, 2) // the same name, another calibration
	go1(3, "calibration.file="+one)
	go1(1)
	go1(1, "calibration.assumed_mean=[1, 1]")
	stdout, _ := mustRun(t, append([]string{"compare", "--json", "--out", filepath.Join(t.TempDir(), "comparison")}, dirs...)...)
	var table []compare.Line
	if err := json.Unmarshal([]byte(stdout), &table); err != nil {
		t.Fatal(err)
	}
	labels := map[string]int{}
	for _, l := range table {
		labels[l.Label] = l.Runs
	}
	if len(table) != 4 || len(labels) != 4 || table[0].Runs != 2 || table[1].Runs != 1 || !strings.Contains(table[0].Label, "calibration=") || !strings.Contains(table[3].Label, "assumed_mean=[1 ") {
		t.Errorf("table %+v", table)
	}
}

// Wrong mu_i hurts, and a calibration cures it: MNIST, shared out unevenly over ten
// devices with mu_i from 0.5 to 2. Scaled by what a calibration found, a run learns as
// it does scaled by the truth, at the same seed. The plain form has one seed without
// encryption, whose learning is the same; the long one five, encrypted.
func TestCalibrationCures(t *testing.T) {
	if os.Getenv("RINGWAVE_DATA") == "" {
		t.Skip("RINGWAVE_DATA is not set: MNIST is needed")
	}
	seeds, set := 1, []string{"experiment.aggregator=none", "channel.analog_noise_std=0"}
	if os.Getenv("RINGWAVE_LONG") != "" {
		seeds, set = 5, nil
	}
	dir := filepath.Join(t.TempDir(), "calibration")
	mustRun(t, slices.Concat([]string{"calibrate", unequalConfig, "--no-advice", "--out", dir}, sets("calibration.looks=1", "calibration.length_chips=63"), sets(set...))...)
	ways := []struct{ name, set string }{
		{"true", "calibration.file="},
		{"calibrated", "calibration.file=" + filepath.Join(dir, runfolder.CalibrationName)},
		{"assumed", "calibration.assumed_mean=[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"},
	}
	var accuracy [3][]float64
	var dirs []string
	for seed := 1; seed <= seeds; seed++ {
		for w, way := range ways {
			out := filepath.Join(t.TempDir(), "run")
			mustRun(t, slices.Concat([]string{"run", unequalConfig, "--seed", strconv.Itoa(seed), "--out", out}, sets(set...), sets(way.set, "experiment.name="+way.name+" mu"))...)
			accuracy[w] = append(accuracy[w], 100*float64(summaryOf(t, out).TestAccuracy))
			dirs = append(dirs, out)
		}
		t.Logf("seed %d: true %.2f %%, calibrated %.2f %%, assumed %.2f %%", seed, accuracy[0][seed-1], accuracy[1][seed-1], accuracy[2][seed-1])
		if d := math.Abs(accuracy[1][seed-1] - accuracy[0][seed-1]); d > 0.2 {
			t.Errorf("seed %d: calibrated and true differ by %.2f points", seed, d)
		}
	}
	lost := 0.0
	for k := range accuracy[0] {
		lost = max(lost, accuracy[0][k]-accuracy[2][k])
	}
	if lost < 1 {
		t.Errorf("an assumed mean costs %.2f points at most: it should show", lost)
	}
	stdout, _ := mustRun(t, append([]string{"compare", "--out", filepath.Join(t.TempDir(), "comparison")}, dirs...)...)
	t.Log("\n" + stdout)
}
