package main

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/replay"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy/slot"
	"ringwave/radio"
	"ringwave/radio/sigmf"
)

// recorded returns the arguments of a short run over a waveform that is recorded.
func recorded(format, dir string, more ...string) []string {
	args := append([]string{"run", experimenttest.WaveformConfig, "--out", dir}, small...)
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
			status, stdout, stderr := run(t, recorded(c.format, dir, c.more...)...)
			if status != 0 && (c.name != "clipping" || status != exitUnusable) { // of which no round may have been read
				t.Fatalf("status %d\n%s", status, stderr)
			}
			for _, name := range []string{"quality", "retries", "spectrum", "eye", "scatter", "phase", "constellation", "density", "lattice-distance", "misfit", "gains"} {
				if c.name == "clipping" {
					break
				}
				if !strings.Contains(stdout, name+".png") {
					t.Errorf("the result does not say where %s.png is", name)
				}
				for _, ext := range []string{".svg", ".png"} {
					if len(experimenttest.ReadFile(t, dir, name+ext)) == 0 {
						t.Errorf("%s%s is empty", name, ext)
					}
				}
			}
			namesModulus(t, dir)
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

// namesModulus checks that the manifest and a recording say what q is.
func namesModulus(t *testing.T, dir string) {
	t.Helper()
	c, err := config.Load(filepath.Join(dir, runfolder.ConfigName), nil)
	if err != nil {
		t.Fatal(err)
	}
	set, _ := xmkckks.Lookup(c.Encryption.ParameterSet)
	m, err := runfolder.ReadManifest(filepath.Join(dir, runfolder.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	if m.Modulus != set.Modulus().String() || !slices.Equal(m.Primes, set.Primes) {
		t.Errorf("the manifest has the modulus %s of %v, the set %s has %v of %v", m.Modulus, m.Primes, set.Name, set.Modulus(), set.Primes)
	}
	const name = "round-000001.sigmf-meta"
	meta, err := sigmf.ParseMeta(name, experimenttest.ReadFile(t, dir, uplink.IQFolder, name))
	if err != nil || !slices.Equal(meta.Primes, set.Primes) {
		t.Errorf("the recording has the primes %v, the set %s has %v: %v", meta.Primes, set.Name, set.Primes, err)
	}
}

// Recording in floats changes nothing in the run.
func TestRecordingChangesNothing(t *testing.T) {
	with, without := filepath.Join(t.TempDir(), "with"), filepath.Join(t.TempDir(), "without")
	mustRun(t, recorded("cf32_le", with)...)
	mustRun(t, recorded("none", without)...)
	if !bytes.Equal(experimenttest.ReadFile(t, with, runfolder.MetricsName), experimenttest.ReadFile(t, without, runfolder.MetricsName)) {
		t.Error("metrics.csv differs between a recorded run and one that is not")
	}
	if _, err := os.Stat(filepath.Join(without, uplink.IQFolder)); err == nil {
		t.Error("a run that is not recorded has a folder of recordings")
	}
}

// A killed run repeats rounds whose recordings are there, and may have left parts
// of one.
func TestRecordingResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	// Some rounds are recorded then, and no checkpoint but the first is there.
	killed(t, dir, 450, recorded("ci16_le", dir, "--set", "optimizer.rounds=6", "--set", "optimizer.checkpoint_every_rounds=5")...)
	experimenttest.ReadFile(t, dir, uplink.IQFolder, "round-000001.sigmf-meta")
	if err := os.WriteFile(filepath.Join(dir, uplink.IQFolder, ".tmp-round-000004.sigmf-data"), []byte("part"), 0o644); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "run", "--resume", dir)
	mustRun(t, "replay", dir)
	entries, err := os.ReadDir(filepath.Join(dir, uplink.IQFolder))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2*6 {
		t.Errorf("%d files of 6 rounds: %v", len(entries), entries)
	}
}

// TestReplayDamaged: longer, or of more branches, than most because it is a table of damages.
func TestReplayDamaged(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	mustRun(t, recorded("ci8", ran)...)
	ring := filepath.Join(t.TempDir(), "ring")
	mustRun(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", ring}, small...)...)
	data := filepath.Join(uplink.IQFolder, "round-000002.sigmf-data")
	meta := filepath.Join(uplink.IQFolder, "round-000002.sigmf-meta")
	edit := func(name string, change func(b []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), change(experimenttest.ReadFile(t, dir, name)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	replaced := func(from, to string) func(b []byte) []byte {
		return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(from), []byte(to)) }
	}
	// forged changes data and makes the checksum that of what they are then.
	forged := func(name string, change func(b []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			edit(name, change)(t, dir)
			sum := sha512.Sum512(experimenttest.ReadFile(t, dir, name))
			edit(meta, func(b []byte) []byte {
				return regexp.MustCompile(`[0-9a-f]{128}`).ReplaceAll(b, []byte(hex.EncodeToString(sum[:])))
			})(t, dir)
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
		{"zero-length data", edit(data, func([]byte) []byte { return nil }), exitBadInput, "the length is 0 samples"},
		{"zero-length metadata", edit(meta, func([]byte) []byte { return nil }), exitBadInput, "the metadata is no JSON at byte 0; allowed is JSON"},
		{"another datatype", edit(meta, replaced(`"ci8"`, `"ci16_le"`)), exitBadInput, "the length"},
		{"a datatype that is not read", edit(meta, replaced(`"ci8"`, `"ci16_be"`)), exitBadInput, "core:datatype is ci16_be; allowed is"},
		{"another sample rate", edit(meta, replaced(`"core:sample_rate": 10000000`, `"core:sample_rate": 2000000`)), exitBadInput, "core:sample_rate is 2 MHz; allowed is 10 MHz, the configuration's link.sample_rate_hz"},
		{"no sample rate", edit(meta, replaced(`"core:sample_rate": 10000000,`, ``)), exitBadInput, "core:sample_rate is 0 Hz"},
		{"a comment that is no verdict", edit(meta, replaced(uplink.CommentElements, "md5 ")), exitBadInput, "allowed is sha256 or void:"},
		{"transmissions over each other", func(t *testing.T, dir string) {
			text := string(experimenttest.ReadFile(t, dir, meta))
			at := regexp.MustCompile(`"core:sample_start": [0-9]+,\s+"core:sample_count": ([0-9]+),\s+("core:freq_[a-z]+_edge": [-0-9.]+,\s+)*"core:label": "transmission"`).FindStringSubmatchIndex(text)
			longer := text[:at[2]] + "1" + text[at[2]:]
			if err := os.WriteFile(filepath.Join(dir, meta), []byte(longer), 0o644); err != nil {
				t.Fatal(err)
			}
		}, exitBadInput, "sample"},
		{"more transmissions than a round has", edit(meta, func(b []byte) []byte {
			one := `{"core:sample_start": 0, "core:sample_count": 0, "core:label": "transmission", "core:comment": "void: x", "ringwave:round": 2, "ringwave:attempt": 0, "ringwave:phase": "b"},`
			return bytes.Replace(b, []byte(`"annotations": [`), []byte(`"annotations": [`+strings.Repeat(one, 300)), 1)
		}), exitBadInput, "transmissions; allowed are at most 268, those of encryption.attempts_per_round = 4 attempts"},
		{"two recordings joined", func(t *testing.T, dir string) {
			other := experimenttest.ReadFile(t, dir, uplink.IQFolder, "round-000003.sigmf-data")
			edit(data, func(b []byte) []byte { return append(b, other...) })(t, dir)
		}, exitBadInput, "as ringwave:samples says"},
		{"another round's data", func(t *testing.T, dir string) {
			other := experimenttest.ReadFile(t, dir, uplink.IQFolder, "round-000003.sigmf-data")
			edit(data, func(b []byte) []byte { return slices.Concat(other, b)[:len(b)] })(t, dir)
		}, exitBadInput, "SHA-512"},
		// Whoever changes samples and their checksum has a recording that is sound, of
		// something else.
		{"noise in one frame", forged(data, func(b []byte) []byte {
			for k := range b[:20000] {
				b[20000+k] = byte(k * k >> 3)
			}
			return b
		}), exitFailure, "differ from what the run received"},
		{"a transmission in another's place", forged(data, func(b []byte) []byte {
			copy(b[len(b)/2:], slices.Clone(b[:len(b)/2]))
			return b
		}), exitFailure, "differ from what the run received"},
		{"silence", forged(data, func(b []byte) []byte { clear(b); return b }), exitFailure, "differ from what the run received"},
		{"I and Q changed places", forged(data, func(b []byte) []byte {
			for k := 0; k < len(b); k += 2 {
				b[k], b[k+1] = b[k+1], b[k]
			}
			return b
		}), 0, ""}, // symbols are real, and their phase is found: nothing is lost
		{"conjugated", forged(data, func(b []byte) []byte {
			for k := 1; k < len(b); k += 2 {
				b[k] = -b[k]
			}
			return b
		}), 0, ""},
		{"another round", func(t *testing.T, dir string) {
			for _, ext := range []string{"data", "meta"} {
				from, to := filepath.Join(dir, uplink.IQFolder, "round-000001.sigmf-"+ext), filepath.Join(dir, uplink.IQFolder, "round-000002.sigmf-"+ext)
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(from, experimenttest.ReadFile(t, to), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}, exitBadInput, "one of this round"},
		{"no recordings", remove(uplink.IQFolder), exitBadInput, "round 1"},
		{"a round is missing", remove(data), exitBadInput, "round 2"},
		{"no config", remove(runfolder.ConfigName), exitBadInput, runfolder.ConfigName},
		{"no metrics", remove(runfolder.MetricsName), exitBadInput, runfolder.MetricsName},
		{"other elements", edit(meta, func(b []byte) []byte {
			at := bytes.Index(b, []byte(uplink.CommentElements)) + len(uplink.CommentElements)
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
			if c.status == 0 {
				return
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
	if status, _, stderr := run(t, "plan", experimenttest.LoopbackConfig, "--set", "link.record=ci8"); status != exitBadInput || !strings.Contains(stderr, "link.record") {
		t.Errorf("recording a ring link: status %d, %s", status, stderr)
	}
}

// One recording by its path or its URI, with the configuration that lies beside it
// or is given, and the verdicts as JSON.
func TestReplayOneRecording(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a run?") // a name that a URI must escape
	mustRun(t, recorded("ci16_le", dir)...)
	base := filepath.Join(dir, uplink.IQFolder, "round-000003")
	uri := radio.URI{Scheme: uplink.FileScheme, Name: base}.String()
	for _, name := range []string{base + ".sigmf-meta", base + ".sigmf-data", uri, uri + ".sigmf-meta", uri + "?checksum=skip"} {
		stdout, _ := mustRun(t, "replay", name)
		if !strings.Contains(stdout, "4 of 4 transmissions of a round agree") {
			t.Errorf("%s: %s", name, stdout)
		}
	}

	// Elsewhere it needs to be told the configuration.
	lone := filepath.Join(t.TempDir(), "lone")
	for _, ext := range []string{".sigmf-meta", ".sigmf-data"} {
		if err := os.WriteFile(lone+ext, experimenttest.ReadFile(t, base+ext), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stdout, _ := mustRun(t, "replay", "--json", "--config", filepath.Join(dir, runfolder.ConfigName), "file:"+lone)
	var result replay.Result
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if result.Rounds != 1 || result.Transmissions != 4 || result.Agree != 4 || result.Read+result.Void != 4 || len(result.Verdicts) != 4 {
		t.Errorf("%+v", result)
	}
	for k, v := range result.Verdicts {
		if v.Round != 3 || v.Transmission != slot.Transmission(k).String() || !v.Agrees || len(v.Then.Elements) != 64 || v.Now != v.Then {
			t.Errorf("%+v", v)
		}
	}

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"file:" + lone}, "give it with --config"},
		{[]string{"loopback:bench", "--config", filepath.Join(dir, runfolder.ConfigName)}, `the scheme "loopback"; allowed is file`},
		{[]string{"file:" + lone + "?checksum=no", "--config", filepath.Join(dir, runfolder.ConfigName)}, "allowed is skip or verify"},
		{[]string{"file:" + lone + "-none", "--config", filepath.Join(dir, runfolder.ConfigName)}, "no such file"},
		{[]string{"file:" + lone, "--config", "none.toml"}, "none.toml"},
		{[]string{"file:" + lone, "--config", experimenttest.LoopbackConfig}, "link.kind is ring"},
		{[]string{"file:%zz", "--config", experimenttest.LoopbackConfig}, "two hexadecimal digits"},
		{[]string{lone}, "no run folder and no recording"},
		{[]string{filepath.Join(dir, runfolder.ConfigName)}, "no run folder and no recording"},
		{[]string{"file:" + lone, "--config", filepath.Join(dir, runfolder.ConfigName), "more"}, "one recording; got 2 arguments"},
	} {
		status, stdout, stderr := run(t, append([]string{"replay"}, c.args...)...)
		if status != exitBadInput || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: status %d, %s%s", c.args, status, stdout, stderr)
		}
	}
}
