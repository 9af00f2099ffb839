//go:build unix

package hosts_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"ringwave/learner/experiment"
	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/hosts"
	"ringwave/learner/hosts/hoststest"
)

// program builds ringwave.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ringwave")
	if out, err := exec.Command("go", "build", "-o", path, "ringwave/cmd/ringwave").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// process is a running ringwave.
type process struct {
	*exec.Cmd
	out   words
	ended chan bool
}

// words is what a process has said so far.
type words struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// benchOf is a bench of processes.
type benchOf struct {
	program, dir, url string
	devices           int
	air               bool // in a process of its own
	resumed           bool
	running           map[string]*process
	enter, flags      []string // what a device's command is begun with, and its flags; nil for none
}

// start starts a process; its output is kept.
func (b *benchOf) start(name string, args ...string) error {
	whole := append([]string{b.program}, args...)
	if args[0] == "device" {
		whole = append(append(slices.Clone(b.enter), whole...), b.flags...)
	}
	p := &process{Cmd: exec.Command(whole[0], whole[1:]...), ended: make(chan bool)}
	p.Dir, p.Stdout, p.Stderr = b.dir, &p.out, &p.out
	if err := p.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.Wait() // its state tells
		close(p.ended)
	}()
	b.running[name] = p
	return nil
}

// begin starts a host: "server", "air" or the number of a device.
func (b *benchOf) begin(host string) error {
	switch host {
	case "server":
		args := []string{"serve", "config.toml", "--out", "run"}
		if b.resumed {
			args = []string{"serve", "--resume", "run"}
		}
		b.resumed = true
		return b.start(host, append(args, "--bench", "bench", "--deadline", "3s", "--silence", "1500ms", fmt.Sprintf("--air=%v", !b.air))...)
	case "air":
		return b.start(host, "air", "config.toml", "--identity", "bench/air.identity", "--out", "air.csv")
	}
	return b.start(host, "device", fmt.Sprintf("bench/device-%03s.identity", host), "--state", "state-"+host)
}

// newBenchOf enrols a bench of so many devices, and writes the run's config.
func newBenchOf(program, dir string, devices, rounds int, air bool, set ...string) (*benchOf, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	url := "tls://" + l.Addr().String()
	l.Close()
	b := &benchOf{program: program, dir: dir, url: url, devices: devices, air: air, running: map[string]*process{}}
	set = append([]string{"task.dataset=strokes", "task.strokes_train=200", "task.strokes_test=50", "encryption.parameter_set=lean-2048", "encryption.delta_max=4",
		"optimizer.checkpoint_every_rounds=4", fmt.Sprintf("devices.count=%d", devices), fmt.Sprintf("optimizer.rounds=%d", rounds)}, set...)
	c, err := experiment.Load("../../hw-configs/hosts.toml", set...)
	if err != nil {
		return nil, err
	}
	text, err := c.Encode()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), text, 0o644); err != nil {
		return nil, err
	}
	enroll := exec.Command(program, "enroll", "bench", "--devices", fmt.Sprint(devices), "--url", url)
	enroll.Dir = dir
	if out, err := enroll.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return b, nil
}

// hosts names all.
func (b *benchOf) hosts() (all []string) {
	all = append(all, "server")
	if b.air {
		all = append(all, "air")
	}
	for i := range b.devices {
		all = append(all, fmt.Sprint(i+1))
	}
	return all
}

// kill ends all that runs.
func (b *benchOf) kill() {
	for _, p := range b.running {
		_ = p.Process.Kill()
		<-p.ended
	}
}

// lines returns how many rounds metrics.csv has.
func (b *benchOf) lines() int {
	text, err := os.ReadFile(filepath.Join(b.dir, "run", runfolder.MetricsName))
	if err != nil {
		return 0
	}
	return max(0, bytes.Count(text, []byte("\n"))-1)
}

// blow is what befalls a process once metrics.csv has so many rounds, and a moment later.
type blow struct {
	round  int
	moment time.Duration
	host   string
	stop   time.Duration // for so long it stands still; 0 for kill -9
}

// killings is one schedule of blows.
type killings struct {
	*benchOf
	seed   uint64
	rounds int
	blows  []blow

	lost, sittings, stopped, behind int
	failures                        []string
}

func (k *killings) errorf(format string, args ...any) {
	k.failures = append(k.failures, fmt.Sprintf(format, args...))
}

// newKillings draws a schedule.
func newKillings(program, dir string, seed uint64) (k *killings, err error) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	k = &killings{seed: seed, rounds: 30}
	epochs := []string{"0", "7"}[rnd.IntN(2)]
	if k.benchOf, err = newBenchOf(program, dir, 3, k.rounds, rnd.IntN(2) == 0, "encryption.key_epoch_rounds="+epochs); err != nil {
		return nil, err
	}
	names := append(k.hosts(), "server") // which has the most to lose
	for range 1 + rnd.IntN(3) {
		b := blow{round: 1 + rnd.IntN(k.rounds-3), moment: time.Duration(rnd.IntN(40_000)) * time.Microsecond, host: names[rnd.IntN(len(names))]}
		if rnd.IntN(2) == 0 {
			b.stop = time.Duration(50+rnd.IntN(4000)) * time.Millisecond
		}
		k.blows = append(k.blows, b)
	}
	slices.SortFunc(k.blows, func(a, b blow) int { return a.round - b.round })
	return k, nil
}

// patience is how long a schedule may take: far longer than all of its deadlines.
const patience = 90 * time.Second

// run runs the schedule.
func (k *killings) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it hangs: it has not ended within %v", patience))
	defer cancel()
	defer k.kill()
	for _, h := range k.hosts() {
		if err := k.begin(h); err != nil {
			return err
		}
	}
	k.sittings = 1
	for _, b := range k.blows {
		if err := k.reach(ctx, b.round); err != nil {
			return err
		}
		<-time.After(b.moment) // anywhere in a round
		if err := k.strike(b); err != nil {
			return err
		}
	}
	if err := k.reach(ctx, math.MaxInt); err != nil {
		return err
	}
	k.leave()
	return nil
}

// reach waits until metrics.csv has so many rounds, or the run has come to its end. A server
// that stopped with a sentence is resumed.
func (k *killings) reach(ctx context.Context, round int) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if k.lines() >= round {
			return nil
		}
		p := k.running["server"]
		select {
		case <-tick.C:
		case <-p.ended:
			if p.ProcessState.Success() {
				return nil
			}
			lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
			if last := lines[len(lines)-1]; p.ProcessState.ExitCode() < 1 || strings.Contains(p.out.String(), "panic") || !strings.Contains(last, " ") {
				return fmt.Errorf("the server has ended without a sentence: %v\n%s", p.ProcessState, p.out.String())
			}
			if k.stopped++; k.stopped > 5 {
				return fmt.Errorf("stopped again and again: %s", p.out.String())
			}
			k.sittings++
			if err := k.begin("server"); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("%w, in round %d\n%s", context.Cause(ctx), k.lines()+1, k.words())
		}
	}
}

// words ends all, and returns what they have said.
func (k *killings) words() string {
	k.kill()
	var b strings.Builder
	for name, p := range k.running {
		fmt.Fprintf(&b, "%s: %s\n", name, p.out.String())
	}
	return b.String()
}

// strike has a blow befall a process that runs.
func (k *killings) strike(b blow) error {
	p := k.running[b.host]
	select {
	case <-p.ended:
		return nil // it came to its end before
	default:
	}
	if b.stop > 0 {
		if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.AfterFunc(b.stop, func() { _ = p.Process.Signal(syscall.SIGCONT) }) // it may be killed by then
		return nil
	}
	if err := p.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	if p.ProcessState.Success() {
		return nil
	}
	if b.host == "server" {
		k.sittings++
	}
	return k.begin(b.host)
}

// leave waits for devices to go. Who has not heard of the end waits for its server.
func (k *killings) leave() {
	for i := range k.devices {
		p := k.running[fmt.Sprint(i+1)]
		select {
		case <-p.ended:
			if !p.ProcessState.Success() {
				k.errorf("device %d: %v\n%s", i+1, p.ProcessState, p.out.String())
			}
		case <-time.After(12 * time.Second): // more than the ten beats after which it goes by itself
			k.behind++
		}
	}
}

// check looks into what the hosts have written.
func (k *killings) check() error {
	rows, err := runfolder.ReadMetrics(filepath.Join(k.dir, "run", runfolder.MetricsName), k.rounds)
	if err != nil {
		return err
	}
	if len(rows) != k.rounds {
		k.errorf("metrics.csv has %d of %d rounds", len(rows), k.rounds)
	}
	c, err := experiment.Load(filepath.Join(k.dir, "config.toml"))
	if err != nil {
		return err
	}
	common, err := experiment.Lab{}.Common(c, "")
	if err != nil {
		return err
	}
	name := map[bool]string{true: "air.csv", false: "run/air.csv"}[k.air]
	gains, err := logOf(filepath.Join(k.dir, name), func(f []string) string { return f[0] + "," + f[1] })
	if err != nil {
		return err
	}
	attempts := map[uint32]map[int]uint32{} // of each round and device
	var deltas []map[string][]string
	for i := range k.devices {
		dirs, err := filepath.Glob(filepath.Join(k.dir, fmt.Sprintf("state-%d", i+1), "*", "*"))
		if err != nil || len(dirs) != 1 {
			return fmt.Errorf("device %d has the folders %v, %v", i+1, dirs, err)
		}
		shares, err := hoststest.Shares(filepath.Join(dirs[0], hosts.JournalName))
		if err == nil {
			err = hoststest.Once(shares)
		}
		if err != nil {
			return err
		}
		for _, s := range shares {
			if attempts[s.Round] == nil {
				attempts[s.Round] = map[int]uint32{}
			}
			attempts[s.Round][i] = s.Attempt
		}
		d, err := logOf(filepath.Join(dirs[0], "device.csv"), func(f []string) string { return f[0] })
		if err != nil {
			return err
		}
		deltas = append(deltas, d)
	}
	for _, row := range rows {
		if row.Skipped {
			k.lost++
			continue
		}
		if err := k.checkRound(common, row, attempts[uint32(row.Round)], gains, deltas); err != nil {
			k.errorf("round %d: %v", row.Round, err)
		}
	}
	return nil
}

// checkRound compares M with the sum of those who gave a share.
func (k *killings) checkRound(c *experiment.Common, row runfolder.Row, attempts map[int]uint32, gains map[string][]string, deltas []map[string][]string) error {
	if len(attempts) != row.Present {
		return fmt.Errorf("%d devices gave shares, and metrics.csv says %d", len(attempts), row.Present)
	}
	ideal, h, alpha := 0.0, make([]float64, k.devices), 0.0
	for i, attempt := range attempts {
		line := gains[fmt.Sprintf("%d,%d", row.Round, attempt)]
		delta := deltas[i][fmt.Sprint(row.Round)]
		if line == nil || delta == nil {
			return fmt.Errorf("no gains of attempt %d or no scalar of device %d are written down", attempt, i+1)
		}
		var err error
		if alpha, err = strconv.ParseFloat(line[2], 64); err != nil {
			return err
		}
		if h[i], err = strconv.ParseFloat(strings.Fields(line[3])[i], 64); err != nil {
			return err
		}
		x, err := strconv.ParseFloat(delta[4], 64)
		if err != nil {
			return err
		}
		ideal += h[i] / alpha * x / c.Design.Link.Mu[i]
	}
	if within := 8 * c.Design.ConditionalStdAt(c.Context, h, alpha); !(math.Abs(row.M-ideal) <= within) {
		return fmt.Errorf("M is %v and must be %v, within %v", row.M, ideal, within)
	}
	return nil
}

// logOf returns the last line of each key.
func logOf(path string, key func(fields []string) string) (map[string][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m := map[string][]string{}
	for _, line := range all {
		m[key(line)] = line
	}
	return m, nil
}

// TestSchedulesOfProcesses kills and stops servers, devices and air at random moments. They
// are begun again, the server with --resume.
func TestSchedulesOfProcesses(t *testing.T) {
	count := 3
	if os.Getenv("RINGWAVE_LONG") != "" {
		count = 32
	}
	path := program(t)
	var mu sync.Mutex
	var all sync.WaitGroup
	var done []*killings
	room := make(chan bool, 4)
	for seed := range count {
		room <- true
		dir := t.TempDir()
		all.Go(func() {
			defer func() { <-room }()
			k, err := newKillings(path, dir, uint64(seed))
			if err == nil {
				err = k.run(context.Background())
			}
			if err == nil {
				err = k.check()
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("schedule %d: %v", seed, err)
				return
			}
			for _, f := range k.failures {
				t.Errorf("schedule %d: %s", seed, f)
			}
			done = append(done, k)
		})
	}
	all.Wait()
	var killed, stopped, rounds, lost, sittings, sentences, behind int
	for _, k := range done {
		for _, b := range k.blows {
			if b.stop > 0 {
				stopped++
			} else {
				killed++
			}
		}
		rounds, lost, sittings, sentences, behind = rounds+k.rounds, lost+k.lost, sittings+k.sittings, sentences+k.stopped, behind+k.behind
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "schedules\tkill -9\tSIGSTOP\trounds\tlost\tsittings\tstopped with a sentence\tdevices that missed the end\t")
	fmt.Fprintf(w, "%d of %d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", len(done), count, killed, stopped, rounds, lost, sittings, sentences, behind)
	w.Flush()
	t.Log("\n" + table.String())
}
