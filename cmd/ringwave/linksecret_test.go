package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/uplink"
)

// Where randomness is the system's, patterns and check weights come from a secret of the
// run's own, which its owner alone may read; a resumed run and replay have it from the
// folder. Where it is the seed's there is none.
func TestLinkSecret(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, recorded("ci16_le", dir, "--set", "encryption.randomness=system")...)
	path := filepath.Join(dir, uplink.LinkSecretName)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 65 {
		t.Fatalf("%v, %v", info, err)
	}
	own := experimenttest.ReadFile(t, path)
	if stdout, _ := mustRun(t, "replay", dir); strings.Contains(stdout, "(0 were read") {
		t.Errorf("replay says %s", stdout)
	}

	other := filepath.Join(t.TempDir(), "run")
	oneRound(t, other)
	if bytes.Equal(own, experimenttest.ReadFile(t, other, uplink.LinkSecretName)) {
		t.Error("two runs have the same secret")
	}
	// With another secret no transmission can be read.
	if err := os.WriteFile(path, experimenttest.ReadFile(t, other, uplink.LinkSecretName), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, _ := run(t, "replay", dir, "--json"); status != 1 || strings.Count(stdout, `"elements"`) != strings.Count(stdout, `"agrees": false`) {
		t.Errorf("with another secret: status %d, %s", status, stdout)
	}
	for name, content := range map[string]string{"short": "abcd\n", "long": string(own[:64]) + "00\n", "letters": strings.Repeat("x", 64) + "\n", "empty": ""} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, _, stderr := run(t, "replay", dir); status != 2 || !strings.Contains(stderr, uplink.LinkSecretName) || !strings.Contains(stderr, "64 hexadecimal digits") {
			t.Errorf("%s: status %d, %s", name, status, stderr)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"replay", dir}, {"run", "--resume", dir}} {
		if status, _, stderr := run(t, args...); status != 2 || !strings.Contains(stderr, uplink.LinkSecretName+" is missing") {
			t.Errorf("%v without the secret: status %d, %s", args, status, stderr)
		}
	}

	seeded := filepath.Join(t.TempDir(), "run")
	mustRun(t, recorded("ci16_le", seeded, "--set", "optimizer.rounds=1")...)
	if _, err := os.Stat(filepath.Join(seeded, uplink.LinkSecretName)); err == nil {
		t.Error("a run from a seed keeps a secret")
	}
}

// oneRound records a round whose keys are the system's. One in some hundreds is not read
// in any attempt, which is then the run's status.
func oneRound(t *testing.T, dir string) {
	t.Helper()
	args := recorded("ci16_le", dir, "--set", "encryption.randomness=system", "--set", "optimizer.rounds=1")
	if status, _, stderr := run(t, args...); status != 0 && status != exitUnusable {
		t.Fatalf("status %d\n%s", status, stderr)
	}
}

// Recordings of the first frame format need no file: their secret was the seed's, with
// keys from the system too. A recording of today that says to be one is void throughout.
func TestFirstFormatNeedsNoSecret(t *testing.T) {
	experimenttest.NoData(t)
	dir := filepath.Join(t.TempDir(), "run")
	oneRound(t, dir)
	meta := filepath.Join(dir, "iq", "round-000001.sigmf-meta")
	format := regexp.MustCompile(`"ringwave:frame_format": *3,`)
	text := experimenttest.ReadFile(t, meta)
	if !format.Match(text) {
		t.Fatalf("no frame format in %s", text)
	}
	if err := os.WriteFile(meta, format.ReplaceAll(text, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, uplink.LinkSecretName)); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := run(t, "replay", dir)
	if status != 1 || !strings.Contains(stdout, "b of the attempt was not read") || strings.Contains(stderr, uplink.LinkSecretName) {
		t.Errorf("status %d, %s%s", status, stdout, stderr)
	}
}
