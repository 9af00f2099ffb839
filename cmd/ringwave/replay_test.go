package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/cmd/internal/runfolder"
)

// recorded gives the arguments of a short run over a waveform that is recorded.
func recorded(format, dir string, more ...string) []string {
	args := append([]string{"run", "../../hw-configs/waveform-mnist.toml", "--out", dir}, small...)
	args = append(args, "--set", "optimizer.rounds=4", "--set", "optimizer.checkpoint_every_rounds=2", "--set", "encryption.parameter_set=demo-1024",
		"--set", "encryption.delta_max=1", "--set", "link.max_alpha=16", "--set", "link.record="+format)
	return append(args, more...)
}

// What was recorded, repeats and void attempts included, gives the same ring
// elements again.
func TestRecordAndReplay(t *testing.T) {
	for _, c := range []struct {
		name, format string
		more         []string
	}{
		{"8 bits", "ci8", nil},
		{"16 bits", "ci16_le", nil},
		{"floats", "cf32_le", nil},
		{"clipping", "ci16_le", []string{"--set", "link.record_full_scale=2"}},
		{"emulated gains", "ci16_le", []string{"--set", "channel.gains=lattice", "--set", "channel.gain_lattice_bits=1", "--set", "link.phase_spread_rad=0"}},
		{"groups", "cf32_le", []string{"--set", "devices.count=4", "--set", "link.group_size=2", "--set", "encryption.parameter_set=lean-2048", "--set", "optimizer.rounds=2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			stdout, _ := mustRun(t, recorded(c.format, dir, c.more...)...)
			for _, name := range []string{"quality", "retries", "spectrum", "eye", "constellation", "lattice-distance"} {
				if c.name == "clipping" {
					break // no round may have been read
				}
				if !strings.Contains(stdout, name+".png") {
					t.Errorf("the result does not say where %s.png is", name)
				}
				for _, ext := range []string{".svg", ".png"} {
					if len(readFile(t, dir, name+ext)) == 0 {
						t.Errorf("%s%s is empty", name, ext)
					}
				}
			}
			stdout, _ = mustRun(t, "replay", dir)
			if strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, "agree") {
				t.Errorf("replay says\n%s", stdout)
			}
			if c.name != "clipping" && strings.Contains(stdout, "(0 were read") {
				t.Errorf("no transmission was read: %s", stdout)
			}
		})
	}
}

// Recording in floats changes nothing in the run.
func TestRecordingChangesNothing(t *testing.T) {
	with, without := filepath.Join(t.TempDir(), "with"), filepath.Join(t.TempDir(), "without")
	mustRun(t, recorded("cf32_le", with)...)
	mustRun(t, recorded("none", without)...)
	if !bytes.Equal(readFile(t, with, runfolder.MetricsName), readFile(t, without, runfolder.MetricsName)) {
		t.Error("metrics.csv differs between a recorded run and one that is not")
	}
	if _, err := os.Stat(filepath.Join(without, iqName)); err == nil {
		t.Error("a run that is not recorded has a folder of recordings")
	}
}

// A killed run repeats rounds whose recordings are there, and may have left parts
// of one.
func TestRecordingResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	// Some rounds are recorded then, and no checkpoint but the first is there.
	killed(t, dir, 450, recorded("ci16_le", dir, "--set", "optimizer.rounds=6", "--set", "optimizer.checkpoint_every_rounds=5")...)
	readFile(t, dir, iqName, "round-000001.sigmf-meta")
	if err := os.WriteFile(filepath.Join(dir, iqName, ".tmp-round-000004.sigmf-data"), []byte("part"), 0o644); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "run", "--resume", dir)
	mustRun(t, "replay", dir)
	entries, err := os.ReadDir(filepath.Join(dir, iqName))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2*6 {
		t.Errorf("%d files of 6 rounds: %v", len(entries), entries)
	}
}

func TestReplayDamaged(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	mustRun(t, recorded("ci8", ran)...)
	ring := filepath.Join(t.TempDir(), "ring")
	mustRun(t, append([]string{"run", loopbackConfig, "--out", ring}, small...)...)
	data := filepath.Join(iqName, "round-000002.sigmf-data")
	meta := filepath.Join(iqName, "round-000002.sigmf-meta")
	edit := func(name string, change func(b []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), change(readFile(t, dir, name)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
		status int
		want   string
	}{
		{"truncated data", edit(data, func(b []byte) []byte { return b[:len(b)/2] }), exitBadInput, "round-000002"},
		{"half a sample", edit(data, func(b []byte) []byte { return b[:len(b)-1] }), exitBadInput, "round-000002"},
		{"a changed byte", edit(data, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), exitBadInput, "sha512"},
		{"truncated metadata", edit(meta, func(b []byte) []byte { return b[:len(b)/2] }), exitBadInput, "round-000002"},
		{"no annotation", edit(meta, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"transmission"`), []byte(`"other"`)) }), exitBadInput, "annotation"},
		{"another round", func(t *testing.T, dir string) {
			for _, ext := range []string{"data", "meta"} {
				from, to := filepath.Join(dir, iqName, "round-000001.sigmf-"+ext), filepath.Join(dir, iqName, "round-000002.sigmf-"+ext)
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(from, readFile(t, to), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}, exitBadInput, "one of this round"},
		{"no recordings", remove(iqName), exitBadInput, "round 1"},
		{"a round is missing", remove(data), exitBadInput, "round 2"},
		{"no config", remove(runfolder.ConfigName), exitBadInput, runfolder.ConfigName},
		{"no metrics", remove(runfolder.MetricsName), exitBadInput, runfolder.MetricsName},
		{"other elements", edit(meta, func(b []byte) []byte {
			at := bytes.Index(b, []byte(commentElements)) + len(commentElements)
			b[at] = '0' + (b[at]-'0'+1)%10
			return b
		}), exitFailure, "1 of 16 transmissions differ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(dir, os.DirFS(ran)); err != nil {
				t.Fatal(err)
			}
			c.change(t, dir)
			status, stdout, stderr := run(t, "replay", dir)
			if status != c.status || !strings.Contains(stderr, c.want) {
				t.Errorf("status %d, want %d, and a word of %q:\n%s", status, c.status, c.want, stderr)
			}
			if strings.Count(stderr, "\n") != 1 || stdout != "" && c.status == exitBadInput {
				t.Errorf("more than one sentence:\n%s%s", stdout, stderr)
			}
		})
	}
	for _, dir := range []string{ring, t.TempDir()} {
		if status, stdout, stderr := run(t, "replay", dir); status != exitBadInput || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("status %d\n%s%s", status, stdout, stderr)
		}
	}
	if status, _, stderr := run(t, "plan", loopbackConfig, "--set", "link.record=ci8"); status != exitBadInput || !strings.Contains(stderr, "link.record") {
		t.Errorf("recording a ring link: status %d, %s", status, stderr)
	}
}
