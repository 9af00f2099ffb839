//go:build unix

package hosts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ends waits for the end of a process, and wants a status and words in its last line.
func ends(t *testing.T, p *process, status int, part string) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatalf("it goes on:\n%s", p.out.String())
	}
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	if last := lines[len(lines)-1]; p.ProcessState.ExitCode() != status || !strings.Contains(last, part) {
		t.Fatalf("status %d, want %d and %q:\n%s", p.ProcessState.ExitCode(), status, part, p.out.String())
	}
}

// reaches waits until metrics.csv has so many rounds.
func (b *benchOf) reaches(t *testing.T, rounds int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); b.lines() < rounds; {
		if time.Now().After(deadline) {
			t.Fatalf("%d rounds are done, and %d should be\n%s", b.lines(), rounds, b.running["server"].out.String())
		}
		<-time.After(5 * time.Millisecond) // between two looks
	}
}

// A server that was killed and does not come back is told by its devices: one waits for its
// patience and ends with status 1, one that stays is taken up when the server is back.
func TestServerKilledForGood(t *testing.T) {
	t.Parallel() // they wait more than they compute
	b, err := newBenchOf(program(t), t.TempDir(), 2, 1_000_000, false, "devices.minimum=2")
	must(t, err)
	defer b.kill()
	if status, out := b.status(t, "device", "bench/device-001.identity", "--silence", "1s"); status != 2 || !strings.Contains(out, "--silence is 1s; allowed is 3s or more, or 0 for without end") {
		t.Errorf("status %d, %s", status, out)
	}
	must(t, b.begin("server"))
	must(t, b.start("1", "device", "bench/device-001.identity", "--state", "state-1", "--silence", "3s", "--patience", "8s"))
	must(t, b.start("2", "device", "bench/device-002.identity", "--state", "state-2", "--silence", "3s", "--patience", "4s", "--stay"))
	b.reaches(t, 3)
	must(t, b.running["server"].Process.Kill())
	<-b.running["server"].ended
	for i, p := range map[string]*process{"1": b.running["1"], "2": b.running["2"]} {
		says(t, p, "device "+i+" waits until ringwave serve is there again")
	}
	ends(t, b.running["1"], 1, "no server is there: nothing was heard for ")
	done := b.lines()
	must(t, b.begin("server"))
	must(t, b.begin("1"))
	b.reaches(t, done+5)
	says(t, b.running["2"], "caught up to round")
}

// A server of a copy of the bench's folder, and of its run, is refused by the name of the first's
// host and run, and the first goes on.
func TestServersOfACopiedBench(t *testing.T) {
	t.Parallel() // they wait more than they compute
	dir := t.TempDir()
	b, err := newBenchOf(program(t), dir, 2, 1_000_000, false)
	must(t, err)
	defer b.kill()
	must(t, b.begin("server"))
	for _, i := range []string{"1", "2"} {
		must(t, b.begin(i))
	}
	b.reaches(t, 3)
	run, err := os.ReadFile(filepath.Join(dir, "run", "run.id"))
	must(t, err)
	for _, name := range []string{"bench", "run"} {
		copied := func() ([]byte, error) {
			must(t, os.RemoveAll(filepath.Join(dir, name+"-copy")))
			return exec.Command("cp", "-a", filepath.Join(dir, name), filepath.Join(dir, name+"-copy")).CombinedOutput()
		}
		out, err := copied()
		for try := 1; err != nil && try < 10; try++ { // a checkpoint that is being written goes from under cp
			out, err = copied()
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	want := "which leads run " + strings.TrimSpace(string(run)) + " (hosts) since "
	for _, args := range [][]string{{"config.toml", "--out", "second"}, {"--resume", "run-copy"}} {
		status, out := b.status(t, append(append([]string{"serve"}, args...), "--bench", "bench-copy", "--join", b.url)...)
		if status != 2 || !strings.Contains(out, "another ringwave serve has the identity of this bench's server: on ") || !strings.Contains(out, want) {
			t.Errorf("%v: status %d, %s", args, status, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "second")); !os.IsNotExist(err) {
		t.Errorf("the server that was refused has left its folder: %v", err)
	}
	says(t, b.running["server"], "it gives way to this one")
	b.reaches(t, b.lines()+3)
}

// With momentum, whose steps are made of earlier rounds' scalars, too, there is no checkpoint of
// theta: a device that lacks many rounds replays all, and has the model of the others.
func TestMomentumIsReplayed(t *testing.T) {
	t.Parallel() // they wait more than they compute
	b, err := newBenchOf(program(t), t.TempDir(), 3, 1_000_000, false, "devices.minimum=2", "optimizer.momentum=0.8")
	must(t, err)
	defer b.kill()
	for _, h := range []string{"server", "1", "2"} {
		must(t, b.begin(h))
	}
	b.reaches(t, 110)
	must(t, b.start("3", "device", "bench/device-003.identity", "--state", "state-3", "--replay-rounds", "20"))
	says(t, b.running["3"], "caught up to round")
	if out := b.running["3"].out.String(); strings.Contains(out, "theta") {
		t.Errorf("a checkpoint was taken or refused:\n%s", out)
	}
	done := b.lines()
	b.reaches(t, done+3) // with three devices, whose models agree
}

// A device that lacks many rounds takes theta from the checkpoint that the server has sent, also
// one of a server that was begun anew; where that file is damaged it replays.
func TestCheckpointByCommand(t *testing.T) {
	t.Parallel() // they wait more than they compute
	b, err := newBenchOf(program(t), t.TempDir(), 3, 1_000_000, false, "devices.minimum=2", "optimizer.checkpoint_every_rounds=1000")
	must(t, err)
	defer b.kill()
	if status, out := b.status(t, "device", "bench/device-001.identity", "--replay-rounds", "-1"); status != 2 || !strings.Contains(out, "--replay-rounds is -1; allowed is 1 or more, or 0 to replay all") {
		t.Errorf("status %d, %s", status, out)
	}
	for _, h := range []string{"server", "1", "2"} {
		must(t, b.begin(h))
	}
	b.reaches(t, 110)
	late := func() {
		t.Helper()
		must(t, b.start("3", "device", "bench/device-003.identity", "--state", "state-3", "--replay-rounds", "20"))
		says(t, b.running["3"], "caught up to round")
	}
	again := func(h string) {
		t.Helper()
		must(t, b.running[h].Process.Kill())
		<-b.running[h].ended
		if h != "3" {
			must(t, b.begin(h))
		}
	}
	late()
	if out := b.running["3"].out.String(); !strings.Contains(out, "took theta after round ") {
		t.Errorf("no checkpoint was taken:\n%s", out)
	}
	done := b.lines()
	b.reaches(t, done+3) // with three devices, whose models agree

	again("3")
	again("server")
	for _, h := range []string{"1", "2"} {
		again(h) // with nothing but the run's folder there is
	}
	late()
	if out := b.running["3"].out.String(); !strings.Contains(out, "took theta after round ") {
		t.Errorf("no checkpoint of before was taken:\n%s", out)
	}
	done = b.lines()
	b.reaches(t, done+3)

	again("3")
	must(t, b.running["server"].Process.Kill())
	<-b.running["server"].ended
	path := filepath.Join(b.dir, "run", "theta.bin")
	body, err := os.ReadFile(path)
	must(t, err)
	body[len(body)-2] ^= 1
	must(t, os.WriteFile(path, body, 0o644))
	must(t, b.begin("server"))
	says(t, b.running["server"], "run/theta.bin is not used, and devices replay in its place: theta is not that of the record of round ")
	late()
	done = b.lines()
	b.reaches(t, done+3)
}
