//go:build unix

package sweeps_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/sweep"
	"ringwave/learner/hosts/bus"
	"ringwave/learner/hosts/identity"
	"ringwave/learner/hosts/jobs"
	"ringwave/learner/hosts/sweeps"
)

// busVariable has this program be the bus of a folder: in it are the folder, the address and
// the store, with a vertical line between.
const busVariable = "RINGWAVE_SWEEPS_BUS"

// childVariable has this program be a process that computes jobs.
const childVariable = "RINGWAVE_SWEEPS_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(busVariable); text != "" {
		serveBus(strings.Split(text, "|"))
	}
	if os.Getenv(childVariable) != "" {
		kinds := map[string]jobs.Kind{sweeps.RunKind: sweeps.Runs{}, sweeps.CellKind: sweeps.Cells{}}
		if err := jobs.ServeChild(context.Background(), os.Stdin, os.Stdout, kinds); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func serveBus(words []string) {
	folder, err := identity.Open(words[0])
	if err == nil {
		_, err = bus.Embed(context.Background(), bus.ServerOptions{Folder: folder, Address: words[1], Store: words[2], Log: func(text string) { fmt.Fprintln(os.Stderr, text) }})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// program builds ringwave, once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ringwave-test")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ringwave")
	if out, err := exec.Command("go", "build", "-o", path, "ringwave/cmd/ringwave").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func built(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the program in processes of its own is not tried by short tests")
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// crew is a sweep, its workers and their bus as processes of their own.
type crew struct {
	t        *testing.T
	dir, url string
	spec     string
	members  map[string]*exec.Cmd
	output   map[string]*bytes.Buffer
}

// start begins a member: "sweep", "bus" or "worker-" and a number.
func (c *crew) start(name string) {
	c.t.Helper()
	bench := filepath.Join(c.dir, "bench")
	var p *exec.Cmd
	switch {
	case name == "bus":
		p = exec.Command(os.Args[0])
		p.Env = append(os.Environ(), busVariable+"="+strings.Join([]string{bench, strings.TrimPrefix(c.url, "tls://"), filepath.Join(c.dir, "store")}, "|"))
	case name == "sweep":
		p = exec.Command(built(c.t), "sweep", c.spec, "--out", filepath.Join(c.dir, "out"), "--bench", bench, "--join", c.url, "-q")
	default:
		p = exec.Command(built(c.t), "worker", filepath.Join(bench, "worker.identity"), "--join", c.url, "--jobs", "1", "--stay", "--scratch", filepath.Join(c.dir, "scratch"))
	}
	if c.output[name] == nil {
		c.output[name] = &bytes.Buffer{}
	}
	said := &bytes.Buffer{}
	p.Stdout, p.Stderr = said, said
	if err := p.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.members[name] = p
	c.output[name] = said
}

// kill ends a member as a lost host would.
func (c *crew) kill(name string) {
	_ = c.members[name].Process.Kill() // it may have ended
	_ = c.members[name].Wait()
}

// newCrew makes the folder of a bus at an address that was free.
func newCrew(t *testing.T, spec string) *crew {
	t.Helper()
	c := &crew{t: t, dir: t.TempDir(), spec: spec, members: map[string]*exec.Cmd{}, output: map[string]*bytes.Buffer{}}
	c.url = "tls://" + freeAddress(t)
	if _, err := identity.Create(filepath.Join(c.dir, "bench"), identity.Options{Sweeps: true, URL: c.url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for name := range c.members {
			c.kill(name)
		}
	})
	return c
}

// shortSweep writes a sweep of so many short runs, over values and seeds.
func shortSweep(t *testing.T, runs int) (path string, plan sweep.Plan) {
	t.Helper()
	base, err := filepath.Abs("../../experiment/" + experimenttest.LoopbackConfig)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "short.toml")
	text := fmt.Sprintf(`[sweep]
base = %q
seeds = "1-%d"
[set]
task.dataset = "strokes"
task.strokes_train = 200
task.strokes_test = 100
optimizer.rounds = 12
optimizer.checkpoint_every_rounds = 4
[grid]
devices.count = [2, 3]
channel.std = [0.1, 1.0]
`, base, runs/4)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if plan, err = sweep.Load(experiment.Lab{}, path, nil); err != nil {
		t.Fatal(err)
	}
	if len(plan.Points) != runs {
		t.Fatalf("%d points in place of %d", len(plan.Points), runs)
	}
	return path, plan
}

// serial runs the points of a plan one after the other, each by itself, and returns their
// folders.
func serial(t *testing.T, plan sweep.Plan) []string { return serialOn(t, plan, "") }

// serialOn is serial with a folder of data.
func serialOn(t *testing.T, plan sweep.Plan, data string) (dirs []string) {
	t.Helper()
	root := t.TempDir()
	for i, p := range plan.Points {
		e, err := experiment.Lab{Data: data, NoPlots: true}.New(p.Config)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(root, fmt.Sprint(i))
		if _, err := e.Run(t.Context(), dir, experiment.Observer{}); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// same compares the results of a sweep with those of serial runs, byte by byte, and wants
// each once.
func same(t *testing.T, out string, plan sweep.Plan, want []string) {
	t.Helper()
	found := map[string][]string{} // by configuration
	entries, err := os.ReadDir(filepath.Join(out, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		dir := filepath.Join(out, "runs", e.Name())
		c, err := experiment.Load(filepath.Join(dir, runfolder.ConfigName))
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Digest()
		if err != nil {
			t.Fatal(err)
		}
		found[fmt.Sprintf("%x", d)] = append(found[fmt.Sprintf("%x", d)], dir)
	}
	if len(entries) != len(plan.Points) {
		t.Errorf("%d results of %d runs", len(entries), len(plan.Points))
	}
	for i, p := range plan.Points {
		d, err := p.Config.Digest()
		if err != nil {
			t.Fatal(err)
		}
		dirs := found[fmt.Sprintf("%x", d)]
		if len(dirs) != 1 {
			t.Errorf("run %d has %d results", i, len(dirs))
			continue
		}
		for _, name := range []string{runfolder.MetricsName, experiment.ModelNPYName} {
			a, err1 := os.ReadFile(filepath.Join(dirs[0], name))
			b, err2 := os.ReadFile(filepath.Join(want[i], name))
			if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
				t.Errorf("run %d: %s differs from a serial run's (%v, %v)", i, name, err1, err2)
			}
		}
	}
}

// Schedules of kills and stops, of workers, the bus and the sweep itself: all results are
// there once, and are those of serial runs to the byte. RINGWAVE_LONG=1 has 20 of 200 runs.
func TestSchedules(t *testing.T) {
	built(t)
	schedules, runs, faults := 1, 24, 10
	if os.Getenv("RINGWAVE_LONG") != "" {
		schedules, runs, faults = 20, 200, 60
	}
	built(t) // before the home of the build cache is another
	experimenttest.NoData(t)
	spec, plan := shortSweep(t, runs)
	want := serial(t, plan)
	for seed := range schedules {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newCrew(t, spec)
			played := c.play(rand.New(rand.NewPCG(uint64(seed), 17)), 4, faults)
			same(t, filepath.Join(c.dir, "out"), plan, want)
			t.Logf("%d runs with %v", runs, played)
		})
	}
}

// play runs the sweep with so many workers, and with so many faults at random as long as it
// runs. It returns how often each kind of fault was.
func (c *crew) play(random *rand.Rand, workers, most int) map[string]int {
	c.t.Helper()
	c.start("bus")
	names := []string{"bus", "sweep"}
	for i := range workers {
		names = append(names, fmt.Sprint("worker-", i))
		c.start(names[len(names)-1])
	}
	c.start("sweep")
	faults := map[string]int{}
	ended := make(chan error, 1)
	watch := func(p *exec.Cmd) { go func() { ended <- p.Wait() }() }
	watch(c.members["sweep"])
	after := time.NewTimer(0)
	for n := 0; ; n++ {
		after.Reset(time.Duration(100+random.IntN(1400)) * time.Millisecond)
		if n >= most {
			after.Reset(4 * time.Minute)
		}
		select {
		case err := <-ended:
			if err != nil {
				c.t.Fatalf("the sweep ended with %v: %s", err, c.output["sweep"])
			}
			return faults
		case <-after.C:
			if n >= most {
				c.t.Fatalf("the sweep has not ended: %s\n%s", c.output["sweep"], c.look())
			}
		}
		name := names[random.IntN(len(names))]
		if strings.HasPrefix(name, "worker") && random.IntN(3) == 0 {
			faults["stopped worker"]++
			p := c.members[name].Process
			_ = p.Signal(syscall.SIGSTOP)
			time.AfterFunc(time.Duration(random.IntN(2000))*time.Millisecond, func() { _ = p.Signal(syscall.SIGCONT) })
			continue
		}
		faults["killed "+strings.TrimRight(name, "-0123456789")]++
		if name != "sweep" {
			c.kill(name)
			c.start(name)
			continue
		}
		_ = c.members[name].Process.Kill()
		if err := <-ended; err == nil {
			return faults // it had ended by itself
		}
		c.start(name)
		watch(c.members[name])
	}
}

// look returns what is known of a crew that hangs.
func (c *crew) look() string {
	text, err := os.ReadFile(filepath.Join(c.dir, "out", "state.json"))
	words := fmt.Sprintf("%s, %v\n", text, err)
	for name, p := range c.members {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
		state, _, _ := strings.Cut(string(status), "Tgid")
		words += fmt.Sprintf("%s: %q, %v, said %s\n", name, state, err, c.output[name])
	}
	return words
}

// A sweep of this process, whose runs its children compute: results as of serial runs, and a
// state that says so.
func TestSweep(t *testing.T) {
	experimenttest.NoData(t)
	t.Setenv(childVariable, "1")
	_, plan := shortSweep(t, 8)
	out := filepath.Join(t.TempDir(), "out")
	var last sweeps.State
	s, err := sweeps.New(t.Context(), sweeps.Options{
		Plan: plan, Out: out, Say: func(text string) { t.Log(text) }, Progress: func(s sweeps.State) { last = s },
		Engine: sweeps.EngineOptions{Workers: 2, Command: []string{os.Args[0]}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Run(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	same(t, out, plan, serial(t, plan))
	if last.Done != 8 || last.Share != 1 || len(s.Failed()) != 0 || s.Unusable() != nil {
		t.Errorf("%+v, %v, %v", last, s.Failed(), s.Unusable())
	}
	for _, name := range []string{"jetstream", "scratch", "incoming"} {
		if _, err := os.Stat(filepath.Join(out, "queue", name)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}

// A sweep in one process, with its own bus and workers that are its children, and again with
// nothing left to do.
func TestSweepByCommand(t *testing.T) {
	built(t) // before the home of the build cache is another
	experimenttest.NoData(t)
	spec, plan := shortSweep(t, 8)
	want := serial(t, plan)
	out := filepath.Join(t.TempDir(), "out")
	for range 2 {
		if text, err := exec.Command(built(t), "sweep", spec, "--out", out).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		same(t, out, plan, want)
	}
	text, err := exec.Command(built(t), "sweep", "status", out, "--json").Output()
	var state sweeps.State
	if err != nil || json.Unmarshal(text, &state) != nil || state.Done != 8 || state.Active || state.Share != 1 {
		t.Errorf("%s, %v", text, err)
	}
}
