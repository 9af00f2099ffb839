package hosts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/external/externaltest"
	"ringwave/learner/hosts"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/wire"
)

// world is a bench of many hosts in one process, each with a connection of its own over TLS.
type world struct {
	t      *testing.T
	folder string
	config experiment.Config
	state  string

	set []string // of each device

	mu   sync.Mutex
	said []string
}

func (w *world) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWorld enrols a bench for a quick run of so many devices.
func newWorld(t *testing.T, devices, rounds int, set ...string) *world {
	t.Helper()
	w := &world{t: t, folder: filepath.Join(t.TempDir(), "bench"), state: t.TempDir()}
	_, err := identity.Create(w.folder, identity.Options{Devices: devices})
	must(t, err)
	set = append([]string{"task.dataset=strokes", "task.strokes_train=600", "task.strokes_test=200", "encryption.parameter_set=lean-2048", "encryption.delta_max=4",
		fmt.Sprintf("devices.count=%d", devices), fmt.Sprintf("optimizer.rounds=%d", rounds)}, set...)
	w.config, err = experiment.Load("../../hw-configs/hosts.toml", set...)
	must(t, err)
	return w
}

// serve runs a server, and devices for as long as it does. It returns the run's folder.
func (w *world) serve(seedSecrets bool) (experiment.Result, string) {
	t := w.t
	t.Helper()
	bench, err := hosts.NewBench(t.Context(), hosts.BenchOptions{Folder: w.folder, Listen: "localhost:0", Air: true, Version: "v", Say: w.say})
	must(t, err)
	defer bench.Close()
	e, err := experiment.Lab{Fleet: bench}.New(w.config)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var devices sync.WaitGroup
	for i := range w.config.Devices.Count {
		devices.Go(func() {
			o := hosts.DeviceOptions{
				Identity: filepath.Join(w.folder, fmt.Sprintf("device-%03d.identity", i+1)), URL: bench.URL(),
				State: w.state, SeedSecrets: seedSecrets, Version: "v", Say: w.say, Set: w.set,
			}
			if err := hosts.RunDevice(ctx, o); err != nil {
				t.Errorf("device %d: %v", i+1, err)
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "run")
	result, err := e.Run(t.Context(), dir, experiment.Observer{})
	if err != nil {
		cancel()
	}
	devices.Wait()
	cancel()
	must(t, err)
	return result, dir
}

func readRows(t *testing.T, dir string, rounds int) []runfolder.Row {
	t.Helper()
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), rounds)
	must(t, err)
	return rows
}

// Devices in worlds of their own and a server give what one process gives: the columns that
// a server knows, the model, and, once the logs of air and devices are merged, all others.
func TestHostsAreOneProcess(t *testing.T) {
	for i, set := range [][]string{
		{"optimizer.packed_directions=3", "encryption.key_epoch_rounds=5"},
		{"optimizer.packed_directions=2", "optimizer.estimator=one-sided", "optimizer.step=fzoo", "optimizer.momentum=0.6"},
		nil,
		{"task.partition=dirichlet", "optimizer.evaluate_every_rounds=4"},
	} {
		if testing.Short() && i > 0 {
			break // the same processes with less to say
		}
		const rounds = 12
		w := newWorld(t, 4, rounds, append(set, "encryption.randomness=seed")...)
		result, dir := w.serve(true)
		one, err := experiment.New(w.config)
		must(t, err)
		alone := filepath.Join(t.TempDir(), "alone")
		want, err := one.Run(t.Context(), alone, experiment.Observer{})
		must(t, err)
		if result.Summary.TestAccuracy != want.Summary.TestAccuracy {
			t.Errorf("%v: accuracy %v, in one process %v", set, result.Summary.TestAccuracy, want.Summary.TestAccuracy)
		}
		a, err := os.ReadFile(filepath.Join(dir, experiment.ModelNPYName))
		must(t, err)
		b, err := os.ReadFile(filepath.Join(alone, experiment.ModelNPYName))
		must(t, err)
		if !bytes.Equal(a, b) {
			t.Errorf("%v: the model is another than that of one process", set)
		}
		rows := readRows(t, dir, rounds)
		merged, err := hosts.Merge(experiment.Lab{}, dir, []string{w.state}, rows)
		must(t, err)
		for k, x := range readRows(t, alone, rounds) {
			row := merged[k]
			if row.Present != 4 {
				t.Errorf("%v: round %d had %d devices", set, k+1, row.Present)
			}
			row.Present = 0
			if fmt.Sprint(row) != fmt.Sprint(x) {
				t.Errorf("%v: round %d is\n%+v, in one process\n%+v", set, k+1, row, x)
			}
		}
		if !slices.ContainsFunc(result.Summary.Notes, func(n string) bool {
			return n == fmt.Sprintf("%d aggregated keys were the sums of the keys that devices had committed to", rounds)
		}) {
			t.Errorf("%v: notes are %q", set, result.Summary.Notes)
		}
	}
}

// The name of a run that was not yet written when the process was killed is drawn anew; one
// that is there is kept, and a damaged one is said so.
// A model that is a program: each host has its own, by the host's own command, and all have the
// rounds of one process with one program.
func TestHostsWithPrograms(t *testing.T) {
	const rounds = 6
	text, err := json.Marshal(externaltest.Command(t, "single"))
	must(t, err)
	command := "task.command=" + string(text)
	w := newWorld(t, 3, rounds, "task.model=process", "task.dataset=process", "task.fallback=", command, "optimizer.directions=philox",
		"optimizer.batch_size=2", "optimizer.eta0=0.001", "optimizer.gamma0=0.1", "encryption.delta_max=1000", "encryption.randomness=seed")
	w.set = []string{command}
	result, dir := w.serve(true)
	one, err := experiment.New(w.config)
	must(t, err)
	alone := filepath.Join(t.TempDir(), "alone")
	want, err := one.Run(t.Context(), alone, experiment.Observer{})
	must(t, err)
	if result.Summary.TestAccuracy != want.Summary.TestAccuracy {
		t.Errorf("the accuracy is %v, in one process %v", result.Summary.TestAccuracy, want.Summary.TestAccuracy)
	}
	a, err := os.ReadFile(filepath.Join(dir, experiment.ModelNPYName))
	must(t, err)
	b, err := os.ReadFile(filepath.Join(alone, experiment.ModelNPYName))
	must(t, err)
	if !bytes.Equal(a, b) {
		t.Error("the model is another than that of one process")
	}
}

// What a server's configuration wants to run does not run on a device's host.
func TestServerNamesNoProgram(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	text, err := json.Marshal([]string{"touch", mark})
	must(t, err)
	c, err := experiment.Load("../../hw-configs/hosts.toml", "task.model=process", "task.dataset=process", "task.fallback=", "task.command="+string(text), "optimizer.directions=philox")
	must(t, err)
	encoded, err := c.Encode()
	must(t, err)
	_, err = hosts.ConfigOf(hosts.DeviceOptions{SeedSecrets: true}, wire.Run{Config: encoded, Devices: c.Devices.Count})
	if err == nil || !strings.Contains(err.Error(), "what runs here is not the server's to say") {
		t.Errorf("got %v", err)
	}
	own, err := hosts.ConfigOf(hosts.DeviceOptions{SeedSecrets: true, Set: []string{`task.command=["mine"]`}}, wire.Run{Config: encoded, Devices: c.Devices.Count})
	if err != nil || !slices.Equal(own.Task.Command, []string{"mine"}) {
		t.Errorf("got %v, %v", own.Task.Command, err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the server's program ran")
	}
}

func TestMain(m *testing.M) {
	if !externaltest.Play() {
		os.Exit(m.Run())
	}
}

func TestRunID(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.id")
	must(t, os.WriteFile(path, nil, 0o644))
	id, err := hosts.RunIDOf(dir)
	must(t, err)
	if again, err := hosts.RunIDOf(dir); err != nil || again != id || id == (wire.RunID{}).String() {
		t.Errorf("%s, then %s, %v", id, again, err)
	}
	must(t, os.WriteFile(path, []byte(id[:9]), 0o644))
	if _, err := hosts.RunIDOf(dir); err == nil || !strings.Contains(err.Error(), "it must have 32 hexadecimal digits") {
		t.Errorf("%v", err)
	}
}
