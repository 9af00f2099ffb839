package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/experimenttest"
)

// The keys are all there, with the range that a value is held to; words choose some.
func TestConfigKeys(t *testing.T) {
	stdout, _ := mustRun(t, "config", "keys")
	for _, k := range config.Keys() {
		if !strings.Contains("\n"+stdout, "\n"+k+" = ") {
			t.Errorf("%s is not there", k)
		}
	}
	want := "optimizer.rounds = 400\n  whole number from 1 to 10000000 [rounds]\n  K, the rounds of training\n"
	if !strings.Contains(stdout, want) {
		t.Errorf("%s\nlacks\n%s", stdout, want)
	}
	if stdout, _ = mustRun(t, "config", "keys", "experiment."); strings.Count(stdout, " = ") != 3 || !strings.HasPrefix(stdout, "experiment.name = ") {
		t.Errorf("of experiment. there is:\n%s", stdout)
	}
	if stdout, _ = mustRun(t, "config", "keys", "WIENER"); !strings.HasPrefix(stdout, "devices.linewidth_hz = ") {
		t.Errorf("of a word of a meaning there is:\n%s", stdout)
	}
	stdout, _ = mustRun(t, "config", "keys", "--json", "task.loss", "task.classes")
	var keys []config.Key
	if err := json.Unmarshal([]byte(stdout), &keys); err != nil || len(keys) != 2 || keys[0].Type != "list of whole numbers" || !slices.Equal(keys[1].Words, []string{"mean", "sum"}) {
		t.Errorf("as JSON: %v, %+v", err, keys)
	}
	if status, _, stderr := run(t, "config", "keys", "nonesuch"); status != 2 || !strings.Contains(stderr, `no key has "nonesuch"`) {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// What show prints is the configuration, with the default behind what differs.
func TestConfigShow(t *testing.T) {
	set := []string{"--set", "channel.std=0.5", "--set", `experiment.name="a = b"`}
	stdout, _ := mustRun(t, append([]string{"config", "show", experimenttest.LoopbackConfig}, set...)...)
	var changed []string
	for line := range strings.Lines(stdout) {
		if key, mark, found := strings.Cut(line, " # default: "); found {
			changed = append(changed, strings.TrimSpace(key)+" # "+strings.TrimSpace(mark))
		}
	}
	want := []string{`name = "a = b" # "experiment"`, `fallback = "strokes" # ""`, "batch_size = 64 # 128", "count = 8 # 10", "std = 0.5 # 1.0"}
	if !slices.Equal(changed, want) {
		t.Errorf("marked are %q, not %q", changed, want)
	}
	path := filepath.Join(t.TempDir(), "shown.toml")
	if err := os.WriteFile(path, []byte(stdout), 0o644); err != nil {
		t.Fatal(err)
	}
	if again, _ := mustRun(t, "config", "show", path); again != stdout {
		t.Errorf("what was shown is another configuration:\n%s\n%s", stdout, again)
	}
	if status, _, stderr := run(t, "config", "show", path, "--set", "optimizer.rounds=0"); status != 2 || !strings.Contains(stderr, "--set optimizer.rounds = 0: must be a whole number from 1 to 10000000") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// Every configuration that the repository has is shown, of benches that may not send, too.
func TestConfigShowsAll(t *testing.T) {
	files, err := filepath.Glob("../../hw-configs/*.toml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if stdout, _ := mustRun(t, "config", "show", file); strings.Contains(stdout, "transmit = true") && !strings.HasPrefix(filepath.Base(file), "virtual-bench") {
			t.Errorf("%s is shown with a permit to send that it does not give", file)
		}
	}
}

// A shell is told what may follow.
func TestCompletion(t *testing.T) {
	for begun, want := range map[string]string{
		"run --set optimizer.ro":                   "optimizer.rounds=\n:6\n",
		"plan x.toml --set task.loss=":             "task.loss=mean\ntask.loss=sum\n:4\n",
		"calibrate --set radio.transmit=f":         "radio.transmit=false\n:4\n",
		"curves --set encryption.parameter_set=le": "encryption.parameter_set=lean-2048\n:4\n",
		"config show --set nonesuch=":              ":4\n",
		"run ":                                     "toml\n:8\n",
		"config show ":                             "toml\n:8\n",
		"run x.toml ":                              ":4\n",
		"attack heair":                             "heairfed-client\n:4\n",
		"attack heairfed-client heair":             ":4\n",
		"reproduce --only cifar-s":                 "cifar-search\n:4\n",
		"data fetch ":                              "mnist\ncifar10\n:4\n",
		"config keys optimizer.eta":                "optimizer.eta0\noptimizer.eta_power\n:4\n",
		"compare ":                                 ":16\n",
	} {
		stdout, _ := mustRun(t, append([]string{"__complete"}, strings.Split(begun, " ")...)...)
		if stdout != want {
			t.Errorf("behind %q there is %q, not %q", begun, stdout, want)
		}
	}
}
