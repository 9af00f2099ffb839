package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asProgram has this test binary be the program, which a bench's own programs call.
const asProgram = "VIRTUAL_BENCH_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// onBench runs a shell script on a bench; virtual-bench in it is this program.
func onBench(t *testing.T, script string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	needBench(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asProgram, "1")
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "virtual-bench")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	var out, told bytes.Buffer
	status = execute(t.Context(), append(args, "--", "sh", "-c", script), &out, &told)
	return out.String(), told.String(), status
}

// needTool skips without one of Debian's programs, or fails where they are required.
func needTool(t *testing.T, name, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
			t.Fatal(err)
		}
		t.Skipf("%s is not installed (on Debian: apt-get install %s)", name, pkg)
	}
}

// TestUnplug: a board that is taken away is not there for the next program, and one that has
// it open loses it.
func TestUnplug(t *testing.T) {
	needTool(t, "hackrf_transfer", "hackrf")
	script := `
serial=000000000000000072696e6700000001
hackrf_transfer -d $serial -r - -s 2000000 2>told | { dd bs=65536 count=1 of=/dev/null 2>/dev/null; virtual-bench unplug 2; cat >/dev/null; }
grep -c "hackrf_exit() done" told
virtual-bench join hackrf_info | grep -c "Found HackRF"
virtual-bench unplug rx && virtual-bench join hackrf_info | grep -c "Found HackRF"
`
	t.Chdir(t.TempDir())
	out, told, status := onBench(t, script, "-n", "2")
	if got := strings.Fields(out); status != 0 || !slices.Equal(got, []string{"1", "2", "1"}) {
		t.Errorf("status %d, %q; want 1 2 1\n%s", status, got, told)
	}
}

// TestUnplugPluto: who reaches a board of the network finds nobody there.
func TestUnplugPluto(t *testing.T) {
	out, told, status := onBench(t, "virtual-bench unplug 1; virtual-bench unplug 1; virtual-bench unplug 3", "--transmitter", "pluto", "--port", "0")
	if status != exitBadInput || !strings.Contains(told, `the board is "3"; allowed is 1, 2, rx`) {
		t.Errorf("status %d, %q %q", status, out, told)
	}
}

// TestTogether: several of Debian's programs begin at once, each in a folder of its own.
func TestTogether(t *testing.T) {
	needTool(t, "hackrf_info", "hackrf")
	const programs = 6
	start := func(program string) string {
		return strings.Repeat("virtual-bench join "+program+" & ", programs) + "wait"
	}
	out, told, status := onBench(t, start("hackrf_info"), "-n", "2")
	if n := strings.Count(out, "Found HackRF"); status != 0 || n != 3*programs {
		t.Errorf("status %d, %d boards were found, want %d\n%s%s", status, n, 3*programs, out, told)
	}
	out, told, status = onBench(t, start(`sh -c 'echo $UMOCKDEV_DIR'`), "-n", "2")
	folders := strings.Fields(out)
	slices.Sort(folders)
	if n := len(slices.Compact(folders)); status != 0 || n != programs {
		t.Errorf("status %d, %d folders, want %d\n%s", status, n, programs, told)
	}
}

func TestControlRefuses(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"virtual-bench unplug 3", `the board is "3"; allowed is 1, 2, rx, rtl`},
		{"virtual-bench unplug ''", `the board is ""`},
		{"virtual-bench unplug", "accepts 1 arg"},
		{"virtual-bench join", "at least 1 arg"},
		{"virtual-bench join no-such-program-here", "the program to run, no-such-program-here"},
		{"VIRTUAL_BENCH= virtual-bench unplug rx", "this is not the environment of a bench"},
		{"VIRTUAL_BENCH=/nowhere virtual-bench unplug rx", "has ended"},
	} {
		out, told, status := onBench(t, c.script, "-n", "2", "--rtl")
		if status != exitBadInput || !strings.Contains(told, c.want) {
			t.Errorf("%s: status %d, %q; want %q", c.script, status, fmt.Sprint(out, told), c.want)
		}
	}
}
