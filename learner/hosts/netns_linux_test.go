package hosts_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Two ends of a cable between two worlds of networks: the server's, and that of the devices.
const (
	serverEnd, deviceEnd         = "rwserver", "rwdevices"
	serverAddress, deviceAddress = "10.77.0.1", "10.77.0.2"
)

// insideNamespaces has the test run again in a network of its own, and names the program to it.
const insideNamespaces = "RINGWAVE_TEST_NETNS"

// inNamespaces runs the test at hand again where it is root of a network of its own. It reports
// whether this is that one.
func inNamespaces(t *testing.T) (path string, inside bool) {
	t.Helper()
	if path = os.Getenv(insideNamespaces); path != "" {
		return path, true
	}
	for _, name := range []string{"unshare", "nsenter", "ip"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("networks are parted with %s, which is not here (Debian: apt-get install util-linux iproute2)", name)
		}
	}
	try := "ip link add name " + serverEnd + " type veth peer name " + deviceEnd + " && unshare -n true"
	if out, err := exec.Command("unshare", "-rn", "sh", "-c", try).CombinedOutput(); err != nil {
		t.Skipf("this host permits no network namespaces to tests: %v: %s", err, strings.TrimSpace(string(out)))
	}
	cmd := exec.Command("unshare", "-rn", os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideNamespaces+"="+program(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("in its namespace:\n%s", out)
	return "", false
}

// cable lays the cable, and returns how to enter the devices' side, and what cuts and mends it.
func cable(t *testing.T) (enter []string, plug func(in bool)) {
	t.Helper()
	hold := exec.Command("unshare", "-n", "cat")
	pipe, err := hold.StdinPipe() // which holds it open until the test ends, however it does
	must(t, err)
	must(t, hold.Start())
	t.Cleanup(func() {
		pipe.Close()
		_ = hold.Wait() // it was ended
	})
	do := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	own, err := os.Readlink("/proc/self/ns/net")
	must(t, err)
	pid := fmt.Sprint(hold.Process.Pid)
	for deadline := time.Now().Add(time.Minute); ; {
		other, err := os.Readlink("/proc/" + pid + "/ns/net")
		if err == nil && other != own {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no second namespace: %v", err)
		}
		<-time.After(time.Millisecond) // between two looks
	}
	enter = []string{"nsenter", "-t", pid, "-n"}
	do("ip", "link", "set", "lo", "up")
	do("ip", "link", "add", "name", serverEnd, "type", "veth", "peer", "name", deviceEnd)
	do("ip", "link", "set", deviceEnd, "netns", pid)
	do("ip", "addr", "add", serverAddress+"/24", "dev", serverEnd)
	do("ip", "link", "set", serverEnd, "up")
	for _, args := range [][]string{{"ip", "addr", "add", deviceAddress + "/24", "dev", deviceEnd}, {"ip", "link", "set", deviceEnd, "up"}, {"ip", "link", "set", "lo", "up"}} {
		do(append(enter[:len(enter):len(enter)], args...)...)
	}
	return enter, func(in bool) {
		t.Helper()
		do("ip", "link", "set", serverEnd, map[bool]string{true: "up", false: "down"}[in])
	}
}

// TestPartedNetworks cuts the network between a server and its devices and mends it again, for
// shorter than it takes a device to be lost, for longer than its deadline, and for longer than
// devices wait before they let go of their keys. No packet tells anybody.
func TestPartedNetworks(t *testing.T) {
	t.Parallel()
	path, inside := inNamespaces(t)
	if !inside {
		return
	}
	enter, plug := cable(t)
	type cut struct {
		round int
		last  time.Duration
	}
	cuts := []cut{{5, 700 * time.Millisecond}, {12, 4 * time.Second}}
	if os.Getenv("RINGWAVE_LONG") != "" {
		cuts = append(cuts, cut{20, 9 * time.Second}, cut{24, 40 * time.Second})
	}
	k := &killings{rounds: 30}
	var err error
	k.benchOf, err = newBenchOf(path, t.TempDir(), 3, k.rounds, false, "devices.minimum=2")
	must(t, err)
	u, err := url.Parse(k.url)
	must(t, err)
	k.url, k.enter, k.flags = "tls://"+serverAddress+":"+u.Port(), enter, []string{"--silence", "3s"}
	k.enrolAt(t, 0, time.Hour)
	defer k.kill()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Minute, fmt.Errorf("it hangs"))
	defer cancel()
	for _, h := range k.hosts() {
		must(t, k.begin(h))
	}
	for _, c := range cuts {
		must(t, k.reach(ctx, c.round))
		plug(false)
		if c.last > time.Second {
			says(t, k.running["server"], "is lost: nothing was heard for")
		}
		select {
		case <-time.After(c.last):
		case <-ctx.Done():
		}
		if c.last > 8*time.Second {
			says(t, k.running["1"], "device 1 waits until ringwave serve is there again")
		}
		at := k.lines()
		plug(true)
		must(t, k.reach(ctx, min(at+2, k.rounds)))
	}
	must(t, k.reach(ctx, 1<<30))
	k.leave()
	must(t, k.check())
	for _, f := range k.failures {
		t.Error(f)
	}
	t.Logf("%d cuts, %d rounds of which %d were lost, %d sittings, %d stopped with a sentence, %d devices that missed the end", len(cuts), k.rounds, k.lost, k.sittings+1, k.stopped, k.behind)
	if k.behind > 0 {
		t.Errorf("%d devices missed the end of a network that is whole again", k.behind)
	}
}
