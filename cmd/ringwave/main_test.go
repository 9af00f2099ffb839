package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment"
	"ringwave/learner/experiment/experimenttest"
	"ringwave/learner/experiment/runfolder"
)

// In a child process the test binary is the program; with killAt it kills itself
// once metrics.csv, or the folder's file named by killFile, has that many bytes,
// wherever the program then is.
const (
	childArgs = "RINGWAVE_TEST_ARGS"
	killAt    = "RINGWAVE_TEST_KILL_AT"
	killFile  = "RINGWAVE_TEST_KILL_FILE"
	// panics says that SIGALRM is to be a panic in a goroutine of its own.
	panics = "RINGWAVE_TEST_PANIC"
)

func TestMain(m *testing.M) {
	// The program begins itself anew for runs, which is this one.
	if slices.Equal(os.Args[1:min(3, len(os.Args))], []string{"worker", "--" + childFlag}) {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == guardCommand { // of a child that sends
		main()
	}
	args := os.Getenv(childArgs)
	if args == "" {
		os.Exit(m.Run())
	}
	if at, err := strconv.ParseInt(os.Getenv(killAt), 10, 64); err == nil {
		go killSelf(filepath.Join(os.Getenv("RINGWAVE_TEST_DIR"), cmp.Or(os.Getenv(killFile), runfolder.MetricsName)), at)
	}
	if os.Getenv(panics) != "" {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGALRM)
		go func() {
			<-c
			panic("a bug in a pool")
		}()
	}
	os.Args = append(os.Args[:1:1], strings.Split(args, "\n")...)
	main()
}

func killSelf(path string, at int64) {
	for {
		if info, err := os.Stat(path); err == nil && info.Size() >= at {
			if self, err := os.FindProcess(os.Getpid()); err == nil { // syscall.Kill is not everywhere
				_ = self.Kill()
			}
		}
	}
}

// small makes any config a matter of moments.
var small = []string{"--set", "task.dataset=strokes", "--set", "task.strokes_train=600", "--set", "task.strokes_test=300",
	"--set", "optimizer.rounds=60", "--set", "optimizer.checkpoint_every_rounds=7"}

// run calls the program in this process.
func run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = execute(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// mustRun wants exit status 0.
func mustRun(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	status, stdout, stderr := run(t, args...)
	if status != 0 {
		t.Fatalf("ringwave %v: status %d\n%s", args, status, stderr)
	}
	return stdout, stderr
}

func summaryOf(t *testing.T, dir string) runfolder.Summary {
	t.Helper()
	s, err := runfolder.ReadSummary(filepath.Join(dir, runfolder.SummaryName))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFirstRunWithoutData(t *testing.T) {
	experimenttest.NoData(t)
	dir := filepath.Join(t.TempDir(), "run")
	stdout, stderr := mustRun(t, "run", experimenttest.LoopbackConfig, "--out", dir)
	if !strings.Contains(stderr, "NOT FOUND") || !strings.Contains(stderr, "ringwave data fetch mnist") || !strings.Contains(stderr, "train-images") {
		t.Errorf("the fallback is not said loudly:\n%s", stderr)
	}
	s := summaryOf(t, dir)
	if !s.FallbackUsed || s.Dataset != "strokes" || s.RoundsCompleted != 400 || s.TestAccuracy < 0.95 {
		t.Errorf("summary %+v", s)
	}
	if !strings.Contains(strings.Join(s.Notes, "\n"), "derived from the seed") || !strings.Contains(stdout+stderr, "derived from the seed") {
		t.Error("the output does not say that the keys come from the seed")
	}
	for _, name := range []string{"loss", "accuracy", "decoded-noise", "decoded-noise-histogram", "message"} {
		for _, ext := range []string{".svg", ".png"} {
			if info, err := os.Stat(filepath.Join(dir, name+ext)); err != nil || info.Size() == 0 {
				t.Errorf("plot %s%s: %v", name, ext, err)
			}
		}
		if !strings.Contains(stdout, name+".png") {
			t.Errorf("the result does not say where %s.png is", name)
		}
	}
	// Keys that other programs read.
	var keys map[string]any
	if err := json.Unmarshal(experimenttest.ReadFile(t, dir, runfolder.SummaryName), &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"dataset", "fallback_used", "model", "aggregator", "parameter_set", "seed", "rounds", "rounds_repeated", "rounds_skipped", "train_loss", "test_accuracy", "seconds", "uplink_bits_per_round"} {
		if _, ok := keys[k]; !ok {
			t.Errorf("summary.json lacks %s", k)
		}
	}
	header, _, _ := strings.Cut(string(experimenttest.ReadFile(t, dir, runfolder.MetricsName)), "\n")
	if !strings.HasPrefix(header, "round,train_loss,test_accuracy,m,m_ideal,eps,eps_std_predicted,attempts") {
		t.Errorf("metrics.csv begins with %q", header)
	}
	checkNoise(t, dir)
}

// checkNoise wants every eps within six deviations conditional on the gains.
func checkNoise(t *testing.T, dir string) {
	t.Helper()
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !(math.Abs(r.Eps) < 6*r.EpsStdPredicted) {
			t.Errorf("round %d: eps = %v, six deviations are %v", r.Round, r.Eps, 6*r.EpsStdPredicted)
		}
	}
}

func TestSameBytesOnOneAndTwoCores(t *testing.T) {
	var metrics [][]byte
	for _, procs := range []int{1, 2} {
		before := runtime.GOMAXPROCS(procs)
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, small...)...)
		runtime.GOMAXPROCS(before)
		metrics = append(metrics, experimenttest.ReadFile(t, dir, runfolder.MetricsName))
	}
	if !bytes.Equal(metrics[0], metrics[1]) {
		t.Error("metrics.csv differs between GOMAXPROCS 1 and 2")
	}
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, append([]string{"run", experimenttest.LoopbackConfig, "--seed", "2", "--out", dir}, small...)...)
	if bytes.Equal(metrics[0], experimenttest.ReadFile(t, dir, runfolder.MetricsName)) {
		t.Error("another seed gives the same metrics.csv")
	}
}

// killed runs the program in a child that kills itself once metrics.csv has at
// bytes.
func killed(t *testing.T, dir string, at int64, args ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childArgs+"="+strings.Join(args, "\n"), "RINGWAVE_TEST_DIR="+dir, killAt+"="+strconv.FormatInt(at, 10))
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v\n%s", err, out)
	}
}

// Ten kills at random moments of one run, resumed each time, must leave the same
// metrics.csv as a run that was never interrupted; with key epochs, retries and
// skipped rounds in it.
func TestKilledTenTimesAndResumed(t *testing.T) {
	args := append(slices.Clone(small), "--set", "encryption.parameter_set=lean-2048", "--set", "encryption.key_epoch_rounds=11",
		"--set", "channel.drift=after-ciphertext", "--set", "channel.drift_std=0.1", "--set", "channel.drift_probability=0.6",
		"--set", "optimizer.rounds=120")
	whole := filepath.Join(t.TempDir(), "whole")
	mustRun(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", whole}, args...)...)
	want := experimenttest.ReadFile(t, whole, runfolder.MetricsName)
	reference := summaryOf(t, whole)
	if reference.RoundsRepeated == 0 || reference.RoundsSkipped == 0 {
		t.Fatalf("the run has %d repeated and %d skipped rounds: it tries too little", reference.RoundsRepeated, reference.RoundsSkipped)
	}

	rnd := rand.New(rand.NewPCG(7, 7))
	header := bytes.IndexByte(want, '\n') + 1
	var moments []int64
	for range 10 {
		// On a busy machine a kill comes late: not after the end.
		moments = append(moments, int64(header+rnd.IntN((len(want)-header)*3/4)))
	}
	slices.Sort(moments)
	dir := filepath.Join(t.TempDir(), "killed")
	killed(t, dir, moments[0], append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, args...)...)
	for _, at := range moments[1:] {
		killed(t, dir, at, "run", "--resume", dir)
	}
	mustRun(t, "run", "--resume", dir)
	if !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.MetricsName), want) {
		t.Error("metrics.csv differs from that of the uninterrupted run")
	}
	got := summaryOf(t, dir)
	got.Seconds, reference.Seconds = 0, 0
	if fmt.Sprint(got) != fmt.Sprint(reference) {
		t.Errorf("summary\n%+v, want\n%+v", got, reference)
	}
	// Devices answer side by side, so that the order within a round may differ.
	if !slices.Equal(journalRecords(t, dir), journalRecords(t, whole)) {
		t.Error("the journal of decryption shares has other answers than that of the uninterrupted run")
	}
}

// journalRecords returns the records of a run's journal, 40 bytes each behind 8 of
// magic, sorted.
func journalRecords(t *testing.T, dir string) []string {
	t.Helper()
	data := experimenttest.ReadFile(t, dir, experiment.JournalName)[8:]
	var records []string
	for len(data) >= 40 {
		records, data = append(records, string(data[:40])), data[40:]
	}
	slices.Sort(records)
	return records
}

// cancelAfter cancels once metrics.csv has some rows.
func cancelAfter(path string, size int64, cancel func()) {
	for {
		if info, err := os.Stat(path); err == nil && info.Size() >= size {
			cancel()
			return
		}
		runtime.Gosched()
	}
}

func TestInterruptAndResume(t *testing.T) {
	// Few and small devices: how a run stops and goes on does not depend on them. Many
	// rounds, so that it is not over before it is stopped.
	args := append(slices.Clone(small), "--set", "optimizer.rounds=1000", "--set", "devices.count=2", "--set", "encryption.parameter_set=lean-2048")
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go cancelAfter(filepath.Join(dir, runfolder.MetricsName), 3000, cancel)
	var out, errs bytes.Buffer
	status := execute(ctx, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, args...), &out, &errs)
	if status != exitInterrupted || !strings.Contains(errs.String(), "ringwave run --resume "+dir) {
		t.Fatalf("status %d\n%s", status, errs.String())
	}
	stopped := bytes.Count(experimenttest.ReadFile(t, dir, runfolder.MetricsName), []byte("\n")) - 1
	_, stderr := mustRun(t, "run", "--resume", dir)
	if strings.Contains(stderr, "round 1 of") {
		t.Error("the resumed run began anew")
	}
	whole := filepath.Join(t.TempDir(), "whole")
	mustRun(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", whole}, args...)...)
	if !bytes.Equal(experimenttest.ReadFile(t, dir, runfolder.MetricsName), experimenttest.ReadFile(t, whole, runfolder.MetricsName)) {
		t.Errorf("stopped after %d rounds and resumed, metrics.csv differs from an uninterrupted run's", stopped)
	}
	// A run that has ended can be asked to go on: it only writes its result again.
	mustRun(t, "run", "--resume", dir)
}

// With keys from the system, the noise differs between two runs and nothing else
// does, and resuming starts a new key epoch.
func TestSystemRandomness(t *testing.T) {
	args := append(slices.Clone(small), "--set", "encryption.randomness=system")
	var rows [2][]runfolder.Row
	for i := range rows {
		dir := filepath.Join(t.TempDir(), "run")
		_, stderr := mustRun(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, args...)...)
		if !strings.Contains(stderr, "system's generator") {
			t.Errorf("the output does not say where the keys come from:\n%s", stderr)
		}
		var err error
		if rows[i], err = runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if rows[0][0].Eps == rows[1][0].Eps || rows[0][0].MIdeal != rows[1][0].MIdeal {
		t.Errorf("first rounds %+v and %+v", rows[0][0], rows[1][0])
	}
	dir := filepath.Join(t.TempDir(), "killed")
	killed(t, dir, 3000, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, args...)...)
	mustRun(t, "run", "--resume", dir)
	if s := summaryOf(t, dir); s.KeyEpochs != 2 || s.RoundsCompleted != 60 {
		t.Errorf("%d key epochs and %d rounds after resuming", s.KeyEpochs, s.RoundsCompleted)
	}
}

// The waveform link end to end: continuous gains that nobody is told, noise and
// delays; eps stays within six deviations of what H_i = round(alpha h_i) says,
// and a killed run resumes to the same bytes.
func TestWaveform(t *testing.T) {
	args := append([]string{"run", experimenttest.WaveformConfig}, small...)
	args = append(args, "--set", "optimizer.rounds=12", "--set", "optimizer.checkpoint_every_rounds=5", "--set", "encryption.parameter_set=demo-1024",
		"--set", "encryption.delta_max=1", "--set", "link.max_alpha=16")
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, append(args, "--out", dir)...)
	checkNoise(t, dir)
	rows, err := runfolder.ReadMetrics(filepath.Join(dir, runfolder.MetricsName), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, r := range rows {
		if r.Link == nil {
			t.Fatalf("round %d has no figures of the link", r.Round)
		}
		if !r.Skipped && r.Link.Alpha > 0 && r.Link.Misfit < 1 {
			read++
		}
	}
	if read < 9 {
		t.Errorf("%d of 12 rounds were read", read)
	}
	cut := filepath.Join(t.TempDir(), "killed")
	killed(t, cut, 1200, append(args, "--out", cut)...)
	mustRun(t, "run", "--resume", cut)
	if a, b := experimenttest.ReadFile(t, dir, runfolder.MetricsName), experimenttest.ReadFile(t, cut, runfolder.MetricsName); !bytes.Equal(a, b) {
		t.Errorf("resumed, metrics.csv is\n%s, want\n%s", b, a)
	}
	groups := filepath.Join(t.TempDir(), "groups")
	mustRun(t, append(args, "--out", groups, "--set", "devices.count=4", "--set", "link.group_size=2", "--set", "encryption.parameter_set=lean-2048", "--set", "optimizer.rounds=3")...)
	checkNoise(t, groups)
}

func TestContinuousGainsNeverTouchTheModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	status, stdout, stderr := run(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "channel.gains=continuous", "--set", "encryption.attempts_per_round=2",
		"--set", "encryption.parameter_set=demo-1024", "--set", "encryption.delta_max=1", "--set", "channel.gain_lattice_bits=1"}, append(slices.Clone(small), "--set", "optimizer.rounds=12")...)...)
	s := summaryOf(t, dir)
	if s.RoundsSkipped != 12 || math.Abs(float64(s.TrainLoss)-math.Ln2) > 1e-12 {
		t.Errorf("%d of 12 rounds skipped, training loss %v: the model must stay at theta_0", s.RoundsSkipped, s.TrainLoss)
	}
	const reason = "none of the 12 rounds was read"
	if status != exitUnusable || !strings.HasPrefix(s.Unusable, reason) || !strings.Contains(stdout, reason) || !strings.Contains(stderr, reason) {
		t.Errorf("status %d, unusable %q\n%s%s", status, s.Unusable, stdout, stderr)
	}
	if strings.Count(stderr, "WARNING: none of the first 10 rounds was read") != 1 {
		t.Errorf("the run does not warn once:\n%s", stderr)
	}
	if log := string(experimenttest.ReadFile(t, dir, runfolder.LogName)); strings.Count(log, "linear check") != 24 {
		t.Errorf("the log does not name the check that failed, twice a round:\n%s", log)
	}
}

// Every set is listed with its modulus and primes, with what either table grants, and
// with what its bits of flooding are bits of. None is said to have 128 bits and fewer.
func TestSets(t *testing.T) {
	stdout, _ := mustRun(t, "sets")
	blocks := strings.Split(stdout, "\n\n")
	sets := xmkckks.Sets()
	if len(blocks) != len(sets)+1 {
		t.Fatalf("%d blocks for %d sets:\n%s", len(blocks), len(sets), stdout)
	}
	for i, set := range sets {
		s := set.Security()
		want := []string{set.Name + ": ", "modulus q          " + set.Modulus().String() + "\n", s.ByStandard() + " (HomomorphicEncryption.org", s.ByNewer() + " (eprint 2024/463)", s.Caveat()}
		for _, prime := range set.Primes {
			want = append(want, fmt.Sprintf(" %d = %#x\n", prime, prime))
		}
		if set.LogFlood != 0 {
			want = append(want, "bits of statistical security (advantage; distance at most 2^-", "over 400 shares of one key")
		}
		for _, w := range want {
			if !strings.Contains(blocks[i], w) {
				t.Errorf("%s does not say %q:\n%s", set.Name, w, blocks[i])
			}
		}
	}
	for _, w := range []string{"Micciancio and Walter", "statistical distance", "liberal security"} {
		if !strings.Contains(blocks[len(sets)], w) {
			t.Errorf("what flooding means does not say %q:\n%s", w, blocks[len(sets)])
		}
	}
}

// A command line that cannot be served: one sentence, the given status, and
// nothing left behind.
// Longer, or of more branches, than most because it is a table of what is refused.
func TestBadInput(t *testing.T) {
	experimenttest.NoData(t)
	dir := filepath.Join(t.TempDir(), "run")
	ran := filepath.Join(t.TempDir(), "ran")
	mustRun(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", ran}, small...)...)
	broken := func(name string, change func(path string)) string {
		copyDir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(copyDir, os.DirFS(ran)); err != nil {
			t.Fatal(err)
		}
		change(copyDir)
		return copyDir
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	otherConfig := broken("config", func(d string) {
		text := string(experimenttest.ReadFile(t, d, runfolder.ConfigName))
		write(filepath.Join(d, runfolder.ConfigName), strings.Replace(text, "std = 0.3", "std = 0.4", 1))
	})
	cutCheckpoint := broken("checkpoint", func(d string) {
		text := string(experimenttest.ReadFile(t, d, runfolder.CheckpointName))
		write(filepath.Join(d, runfolder.CheckpointName), text[:len(text)/2])
	})
	noCheckpoint := broken("none", func(d string) { _ = os.Remove(filepath.Join(d, runfolder.CheckpointName)) })
	idx := t.TempDir()
	write(filepath.Join(idx, "images"), "\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x02abc")
	write(filepath.Join(idx, "labels"), "\x00\x00\x08\x01\x00\x00\x00\x02\x00\x01")
	idxFlags := []string{"--set", "task.dataset=idx", "--set", "task.fallback=", "--set", "task.train_images=" + idx + "/images",
		"--set", "task.train_labels=" + idx + "/labels", "--set", "task.test_images=" + idx + "/images", "--set", "task.test_labels=" + idx + "/labels"}

	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"unknown key", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "channel.sdt=1"}, []string{"channel.sdt", "channel.std"}},
		{"N = 0", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "devices.count=0"}, []string{"--set devices.count = 0: must be a whole number from 1"}},
		{"n", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "encryption.n=1000"}, []string{"--set encryption.n = 1000: must be"}},
		{"q too large", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "encryption.n=2048"}, []string{"q is too large for n"}},
		{"Lambda", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "encryption.log2_lambda=96"}, []string{"Lambda", "q/2"}},
		{"Lambda, plan", []string{"plan", experimenttest.LoopbackConfig, "--set", "encryption.log2_lambda=96"}, []string{"Lambda", "q/2"}},
		{"ring noise", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "link.noise_std=1e15", "--set", "encryption.parameter_set=lean-2048"}, []string{"noise"}},
		{"sigma", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "channel.std=-1"}, []string{"channel.std"}},
		{"set", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "encryption.parameter_set=tiny"}, []string{"tiny", "lean-2048"}},
		{"no data", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "task.fallback="}, []string{"mnist", "ringwave data fetch mnist"}},
		{"no data where the user points", []string{"run", experimenttest.LoopbackConfig, "--out", dir, "--data", t.TempDir()}, []string{"mnist", "lacks"}},
		{"truncated data", append([]string{"run", experimenttest.LoopbackConfig, "--out", dir}, idxFlags...), []string{"images"}},
		{"no config", []string{"run", "none.toml", "--out", dir}, []string{"none.toml"}},
		{"no argument", []string{"run"}, []string{"CONFIG"}},
		{"unknown flag", []string{"run", experimenttest.LoopbackConfig, "--fast"}, []string{"--fast"}},
		{"unknown command", []string{"walk"}, []string{"walk"}},
		{"full folder", []string{"run", experimenttest.LoopbackConfig, "--out", ran}, []string{"not empty"}},
		{"resume nothing", []string{"run", "--resume", dir}, []string{dir}},
		{"resume with --set", []string{"run", "--resume", ran, "--set", "channel.std=2"}, []string{"--set", "--resume"}},
		{"resume another config", []string{"run", "--resume", otherConfig}, []string{"another configuration", "version of the program"}},
		{"resume a cut checkpoint", []string{"run", "--resume", cutCheckpoint}, []string{"checkpoint"}},
		{"resume without checkpoint", []string{"run", "--resume", noCheckpoint}, []string{"checkpoint"}},
		{"fetch unknown", []string{"data", "fetch", "imagenet"}, []string{"imagenet", "mnist"}},
		{"compare nothing", []string{"compare"}, []string{"run folders"}},
		{"compare no run", []string{"compare", t.TempDir()}, []string{"is no run folder"}},
	} {
		status, stdout, stderr := run(t, c.args...)
		if status != exitBadInput {
			t.Errorf("%s: status %d, want %d\n%s", c.name, status, exitBadInput, stderr)
		}
		if text := strings.TrimSpace(stderr); strings.Contains(text, "\n") || stdout != "" {
			t.Errorf("%s: more than one sentence:\n%s%s", c.name, stdout, stderr)
		}
		for _, w := range c.want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%s: %q does not say %q", c.name, stderr, w)
			}
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("%s: a run folder was left behind", c.name)
		}
	}
}

// Training that diverges has no usable result, whether the loss stays a number (which
// only shows at the end) or not, even in the first round: a reason, a summary, no advice
// to resume.
func TestDivergence(t *testing.T) {
	for _, c := range []struct {
		set    string
		rounds int // completed
		warns  int
	}{
		{"optimizer.eta0=1e20", 60, 1},
		{"optimizer.eta0=1e307", 1, 0},
		{"optimizer.gamma0=1e308", 0, 0},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		status, stdout, stderr := run(t, append([]string{"run", experimenttest.LoopbackConfig, "--out", dir, "--set", "experiment.aggregator=none", "--set", c.set}, small...)...)
		if status != exitUnusable || !strings.Contains(stderr, "diverged") || strings.Contains(stderr, "--resume") || !strings.Contains(stdout, "NOT USABLE") {
			t.Errorf("%s: status %d\n%s%s", c.set, status, stdout, stderr)
		}
		if n := strings.Count(stderr, "WARNING: in round 2 the loss is"); n != c.warns {
			t.Errorf("%s: %d warnings, want %d\n%s", c.set, n, c.warns, stderr)
		}
		if log := string(experimenttest.ReadFile(t, dir, runfolder.LogName)); strings.Contains(log, "!ERROR") {
			t.Errorf("%s: the log has a loss that is no JSON:\n%s", c.set, log)
		}
		if s := summaryOf(t, dir); s.RoundsCompleted != c.rounds || !strings.Contains(s.Unusable, "diverged") {
			t.Errorf("%s: %d rounds, unusable %q", c.set, s.RoundsCompleted, s.Unusable)
		}
	}
}

// The paper's MNIST experiment at (4096, 109) and sigma = 1: accuracy, noise,
// and the same learning as without encryption on the same gains and seeds. One seed;
// with RINGWAVE_LONG in the environment five, and the accuracy is their median.
func TestMNIST(t *testing.T) {
	if os.Getenv("RINGWAVE_DATA") == "" {
		t.Skip("RINGWAVE_DATA is not set: MNIST is needed")
	}
	if testing.Short() {
		t.Skip("seconds of training: not with -short")
	}
	seeds := 1
	if os.Getenv("RINGWAVE_LONG") != "" {
		seeds = 5
	}
	config := "../../hw-configs/paper-mnist-4096.toml"
	var accuracies []float64
	for seed := 1; seed <= seeds; seed++ {
		dir, plain := filepath.Join(t.TempDir(), "encrypted"), filepath.Join(t.TempDir(), "plain")
		mustRun(t, "run", config, "--seed", strconv.Itoa(seed), "--out", dir)
		checkNoise(t, dir)
		mustRun(t, "run", config, "--seed", strconv.Itoa(seed), "--out", plain,
			"--set", "experiment.aggregator=none", "--set", "channel.analog_noise_std=0")
		a, b := summaryOf(t, dir), summaryOf(t, plain)
		t.Logf("seed %d: encrypted %.2f %%, without encryption %.2f %%, %.1f s", seed, 100*a.TestAccuracy, 100*b.TestAccuracy, a.Seconds)
		if math.Abs(float64(a.TestAccuracy-b.TestAccuracy)) > 0.002 {
			t.Errorf("seed %d: encrypted and plain accuracy differ by more than 0.2 points", seed)
		}
		if a.RoundsSkipped+a.RoundsRepeated != 0 || a.UplinkBitsPerRound != 1785856 {
			t.Errorf("seed %d: %+v", seed, a)
		}
		accuracies = append(accuracies, float64(a.TestAccuracy))
	}
	slices.Sort(accuracies)
	if median := accuracies[seeds/2]; median < 0.98 {
		t.Errorf("median accuracy %.4f, want 0.98", median)
	}
}
