package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/hosts/wire"
)

// begun is a command that runs beside the test.
type begun struct {
	t      *testing.T
	name   string
	stop   context.CancelFunc
	mu     sync.Mutex
	text   bytes.Buffer // both of its outputs
	status chan int
}

func (b *begun) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// said returns what it has printed so far.
func (b *begun) said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// begin runs the program in this process until it ends or is stopped, at the latest with the
// test.
func begin(t *testing.T, args ...string) *begun {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	b := &begun{t: t, name: strings.Join(args[:min(2, len(args))], " "), stop: stop, status: make(chan int, 1)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.status <- execute(ctx, args, b, b)
	}()
	t.Cleanup(func() { stop(); <-over })
	return b
}

// patienceOfTests bounds every wait for another host, and is no measure of speed.
const patienceOfTests = 45 * time.Second

// ends waits for its end, and wants a status.
func (b *begun) ends(want int) {
	b.t.Helper()
	select {
	case got := <-b.status:
		if got != want {
			b.t.Fatalf("%s: status %d, want %d\n%s", b.name, got, want, b.said())
		}
	case <-time.After(patienceOfTests):
		b.t.Fatalf("%s has not ended\n%s", b.name, b.said())
	}
}

// until waits for something to be so.
func (b *begun) until(what string, so func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patienceOfTests); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s has not come: %s\n%s", what, b.name, b.said())
		}
	}
}

// says waits for words of its.
func (b *begun) says(words string) {
	b.t.Helper()
	b.until(words, func() bool { return strings.Contains(b.said(), words) })
}

// enrolled is a bench that a test has made.
type enrolled struct {
	t        *testing.T
	dir, url string
	run      string // the folder of the run
}

func enrol(t *testing.T, devices int) *enrolled {
	t.Helper()
	e := &enrolled{t: t, dir: filepath.Join(t.TempDir(), "bench"), url: "tls://" + freePort(t)}
	e.run = filepath.Join(e.dir, "run")
	mustRun(t, "enroll", e.dir, "--devices", fmt.Sprint(devices), "--url", e.url)
	return e
}

// freePort returns an address that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (e *enrolled) identity(role string) string { return filepath.Join(e.dir, role+".identity") }

// few makes a run of the bench's config small, and its secrets known.
func few(devices, rounds int) []string {
	return []string{"--set", "task.dataset=strokes", "--set", "task.strokes_train=600", "--set", "task.strokes_test=300", "--set", "encryption.parameter_set=lean-2048",
		"--set", "encryption.randomness=seed", "--set", fmt.Sprintf("devices.count=%d", devices), "--set", fmt.Sprintf("optimizer.rounds=%d", rounds)}
}

const hostsConfig = "../../hw-configs/hosts.toml"

func (e *enrolled) serve(args ...string) *begun {
	return begin(e.t, append([]string{"serve", hostsConfig, "--bench", e.dir, "--out", e.run, "--silence", "1s"}, args...)...)
}

// device begins a process of one device or several.
func (e *enrolled) device(args ...string) *begun {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") && strings.HasPrefix(a, "device-") {
			args[i] = e.identity(a)
		}
	}
	return begin(e.t, append([]string{"device", "--secrets-from-seed", "--state", filepath.Join(e.dir, "state")}, args...)...)
}

// rounds returns how many lines metrics.csv has.
func (e *enrolled) rounds() int {
	text, err := os.ReadFile(filepath.Join(e.run, runfolder.MetricsName))
	if err != nil {
		return 0
	}
	return max(0, bytes.Count(text, []byte("\n"))-1)
}

// toldModel is the digest that a device has told of the model.
var toldModel = regexp.MustCompile(`with the model ([0-9a-f]{16})`)

// hostsOf asks who is there.
func (e *enrolled) hostsOf() (a wire.Attendance) {
	e.t.Helper()
	stdout, _ := mustRun(e.t, "hosts", "--identity", e.identity("observer"), "--json")
	if err := json.Unmarshal([]byte(stdout), &a); err != nil {
		e.t.Fatal(err)
	}
	return a
}

// A device that comes late and devices that leave and return have the model of the others in
// the end, from records of a few bytes a round.
func TestLateAndReturningDevices(t *testing.T) {
	const rounds = 400
	e := enrol(t, 4)
	s := e.serve(append(few(4, rounds), "--set", "devices.minimum=2")...)
	all := map[string]*begun{}
	for _, i := range []string{"1", "2", "4"} {
		all[i] = e.device("device-00" + i)
	}
	reaches := func(k int) { s.until(fmt.Sprintf("round %d", k), func() bool { return e.rounds() >= k }) }
	leaves := func(i string) {
		all[i].stop()
		all[i].ends(exitInterrupted)
	}
	reaches(100)
	leaves("2")
	reaches(200)
	leaves("4") // one is left, and the run waits for another
	all["2"] = e.device("device-002")
	reaches(300)
	leaves("1")
	at := e.rounds()
	all["3"] = e.device("device-003")
	reaches(min(rounds-60, at+3)) // with 2 and 3
	all["1"], all["4"] = e.device("device-001"), e.device("device-004")
	for _, i := range []string{"1", "4"} {
		all[i].says("caught up to round")
	}
	var fetched [5]int
	for _, h := range e.hostsOf().Hosts {
		fetched[h.Index] = h.History
	}
	s.ends(0)
	var models []string
	for i, d := range all {
		d.ends(0)
		m := toldModel.FindStringSubmatch(d.said())
		if m == nil {
			t.Fatalf("device %s has told of no model\n%s", i, d.said())
		}
		models = append(models, m[1])
	}
	for _, m := range models {
		if m != models[0] {
			t.Errorf("devices have the models %q", models)
		}
	}
	// A record is 140 bytes: device 3 has replayed some 300 rounds, and device 2 some 100.
	per := wire.RecordSize(1)
	for i, least := range map[int]int{2: 90 * per, 3: 290 * per} {
		if fetched[i] < least || fetched[i] > 4*rounds*per {
			t.Errorf("device %d has fetched %d bytes of records, want %d or more", i, fetched[i], least)
		}
	}
	t.Logf("bytes of records that devices 1 to 4 fetched: %d", fetched[1:])
}

// A run over the nats-server of this host, which is begun anew in its middle, is that of one
// process.
func TestRunOverOtherServer(t *testing.T) {
	path, err := exec.LookPath("nats-server")
	if err != nil {
		t.Skip("there is no nats-server here (Debian: apt-get install nats-server)")
	}
	const rounds = 120
	e := enrol(t, 3)
	nats := func() *exec.Cmd {
		c := exec.Command(path, "-c", "nats-server.conf", "-a", "127.0.0.1")
		c.Dir = e.dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait() // killed, as it was meant to be
		})
		return c
	}
	first := nats()
	s := e.serve(append(few(3, rounds), "--join", e.url)...)
	devices := []*begun{e.device("device-001"), e.device("device-002", "device-003")}
	s.until("round 40", func() bool { return e.rounds() >= 40 })
	_ = first.Process.Kill()
	_ = first.Wait()
	s.says("nobody listens there")
	nats()
	s.ends(0)
	for _, d := range devices {
		d.ends(0)
	}
	one := filepath.Join(t.TempDir(), "one")
	mustRun(t, append([]string{"run", hostsConfig, "--out", one}, few(3, rounds)...)...)
	sameFile(t, filepath.Join(one, experiment.ModelNPYName), filepath.Join(e.run, experiment.ModelNPYName))
}

func sameFile(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := os.ReadFile(b); err != nil || !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ, %v", a, b, err)
	}
}
