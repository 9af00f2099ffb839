package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusedHost is a command of a bench that the user has got wrong.
type refusedHost struct {
	name, args, want string
}

func (c refusedHost) try(t *testing.T) {
	t.Helper()
	status, stdout, stderr := run(t, strings.Fields(c.args)...)
	last := stderr[strings.LastIndexByte(strings.TrimSuffix(stderr, "\n"), '\n')+1:]
	if status != exitBadInput || stdout != "" || !strings.Contains(last, c.want) || strings.Count(stderr, "ringwave: ") != 1 {
		t.Errorf("%s: status %d, want %d and %q\n%s%s", c.name, status, exitBadInput, c.want, stdout, stderr)
	}
}

// What is wrong with a command of a bench of many hosts is said in one sentence, and nothing
// is left behind.
func TestBadHostCommands(t *testing.T) {
	e, dir := enrol(t, 3), t.TempDir()
	t.Chdir(dir)
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return path
	}
	own, err := os.ReadFile(e.identity("device-001"))
	if err != nil {
		t.Fatal(err)
	}
	d1, serve := "device "+e.identity("device-001"), "serve "+repoPath(t, "hw-configs/hosts.toml")+" --bench "+e.dir+" "+strings.Join(few(3, 5), " ")
	for _, c := range []refusedHost{
		{"no identity", "device", "device takes one IDENTITY file or several; got 0 arguments"},
		{"missing identity", "device nothing.identity", "nothing.identity: the identity cannot be read: no such file or directory; allowed is a file that ringwave enroll has made"},
		{"garbage for an identity", "device " + write("a", "garbage\n", 0o600), "line 1: expected"},
		{"an empty identity", "device " + write("a", "", 0o600), "there is no key version; allowed is 1"},
		{"half an identity", "device " + write("a", string(own[:len(own)/2]), 0o600), "line "},
		{"a changed identity", "device " + write("a", strings.Replace(string(own), "index = 1", "index = 2", 1), 0o600), "statement does not fit"},
		{"an identity for all to read", "device " + write("a", string(own), 0o644), "has the mode 0644, so that others than its owner may use it; allowed is 0600"},
		{"an identity for a group to write", "device " + write("a", string(own), 0o620), "has the mode 0620"},
		{"a folder for an identity", "device " + e.dir, "the identity is a folder; allowed is one of the files in it"},
		{"the server's identity for a device", "device " + e.identity("server"), "the identity is that of the server; allowed is that of a device"},
		{"a device's identity for an observer", "hosts --identity " + e.identity("device-001"), "the identity is that of device 1; allowed is that of the observer"},
		{"an observer's identity for the air", "air " + repoPath(t, "hw-configs/hosts.toml") + " --identity " + e.identity("observer"), "the identity is that of the observer; allowed is that of the air"},
		{"an identity twice", d1 + " " + e.identity("device-001"), "is given twice: one process at a time may be a device"},
		{"own data of several", d1 + " " + e.identity("device-002") + " --own", "--own is given with several identities"},
		{"one radio of several", d1 + " " + e.identity("device-002") + " --radio hackrf:", "--radio is given with several identities"},
		{"radios of hosts in one process", "run " + repoPath(t, "hw-configs/virtual-bench-hosts.toml") + " --set task.dataset=strokes", `radio.transmitters has "host:1" for device 1, which is on a host of its own: run with ringwave serve`},
		{"a calibration of hosts without them", "calibrate " + repoPath(t, "hw-configs/virtual-bench-hosts.toml"), "calibrate with --bench"},
		{"a recording of a bench", "calibrate " + repoPath(t, "hw-configs/virtual-bench-hosts.toml") + " --bench " + e.dir + " --recording x", "--bench cannot go with --recording"},
		{"radios of one host for a bench", "serve " + repoPath(t, "hw-configs/virtual-bench.toml") + " --bench " + e.dir + " --set task.dataset=strokes", `radio.transmitters has "hackrf:72696e6700000000" in the place of device 1: must be "host:1"`},
		{"a minimum of devices with radios", "serve " + repoPath(t, "hw-configs/virtual-bench-hosts.toml") + " --bench " + e.dir + " --set task.dataset=strokes --set devices.minimum=2", "devices.minimum = 2: must be 0, for all"},
		{"no URL", d1 + " --join nonsense", `the URL of the bus is "nonsense"; allowed is tls://host:port`},
		{"a URL without TLS", d1 + " --join nats://127.0.0.1:4222", `the URL of the bus is "nats://127.0.0.1:4222"; allowed is tls://host:port`},
		{"a URL without a port", d1 + " --join tls://127.0.0.1", "allowed is tls://host:port"},
		{"no bench", "serve " + repoPath(t, "hw-configs/hosts.toml") + " --bench nobench", "nobench/enrolment.toml: the registry cannot be read: no such file or directory; allowed is that of a folder that ringwave enroll has made"},
		{"no config", "serve nothing.toml --bench " + e.dir, "nothing.toml: the configuration cannot be read"},
		{"no address", serve + " --listen nonsense", `the address of the bus is "nonsense"; allowed is host:port`},
		{"another host's address", serve + " --listen 192.0.2.1:4222", "the bus cannot listen at 192.0.2.1:4222"},
		{"a URL that is none, to serve", serve + " --join nonsense", `the URL of the bus is "nonsense"; allowed is`},
		{"no deadline", serve + " --deadline -1s", "--deadline is -1s and --silence 5s: allowed is 100ms or more for each"},
		{"no silence", serve + " --silence 1ns", "--deadline is 20s and --silence 1ns: allowed is 100ms or more for each"},
		{"more devices than enrolled", serve + " --set devices.count=4", "devices.count = 4: must be at most 3, the devices that are enrolled in " + e.dir + "; enrol more with --add"},
		{"a minimum above N", serve + " --set devices.minimum=4", "devices.minimum = 4: must be a whole number from 1 to devices.count, 3, or 0 for all"},
		{"a system without encryption", serve + " --set experiment.aggregator=none", `experiment.aggregator = "none": must be a system of this program that encrypts and checks, for devices on other hosts`},
		{"an unknown run", "serve --bench " + e.dir + " --resume norun", "opening the run folder norun: no such file or directory"},
		{"a config beside --resume", serve + " --resume norun", "takes no CONFIG beside --resume; got 1 arguments"},
	} {
		c.try(t)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// repoPath returns the path of a file of the repository, from wherever the test is.
func repoPath(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(sourceDir, "../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// sourceDir is where tests begin.
var sourceDir, _ = os.Getwd()

// What a host may not do beside a bench that runs is said there and, where a device is
// concerned, at the server, which goes on.
func TestBadHostsOfRunningBench(t *testing.T) {
	e, other := enrol(t, 4), enrol(t, 1)
	s := e.serve(few(3, 40)...)
	s.says("Bus: ")
	s.says("hosts: strokes")
	for _, c := range []struct {
		refusedHost
		server string
	}{
		{refusedHost{"a second server", "serve " + hostsConfig + " --bench " + e.dir, "has another ringwave serve already"}, ""},
		{refusedHost{"another bench's device", "device " + other.identity("device-001") + " --join " + e.url, "its certificate is not of this bench's authority"}, ""},
		{refusedHost{"secrets from the seed", "device " + e.identity("device-002") + " --state " + t.TempDir(), "the run derives all secrets from its seed (encryption.randomness = \"seed\"), which protects nothing: allow it with --secrets-from-seed"},
			"device 2 cannot take part: the run derives all secrets from its seed"},
		{refusedHost{"one device more than the run has", "device " + e.identity("device-004") + " --secrets-from-seed --state " + t.TempDir(), "the server refuses device 4 (" + e.identity("device-004") + "): this run has 3 devices (devices.count), and there is no device 4"},
			"device 4 is not let in: this run has 3 devices"},
		{refusedHost{"data that are not there", "device " + e.identity("device-002") + " --secrets-from-seed --own --set task.train_images=nowhere --set task.train_labels=nowhere --state " + t.TempDir(), "nowhere"},
			"device 2 cannot take part: "},
		{refusedHost{"a key that is the run's", "device " + e.identity("device-002") + " --secrets-from-seed --set optimizer.rounds=1 --state " + t.TempDir(), "--set optimizer.rounds=1: allowed are keys of [task]"},
			"device 2 cannot take part: --set optimizer.rounds=1"},
		{refusedHost{"a state folder that may not be made", "device " + e.identity("device-002") + " --secrets-from-seed --state /dev/null/state", "making the folder of the run"},
			"device 2 cannot take part: making the folder of the run"},
	} {
		c.try(t)
		if c.server != "" {
			s.says(c.server)
		}
	}
	mustRun(t, "enroll", e.dir, "--revoke", "3")
	s.until("the bus takes the revocation in", func() bool {
		status, _, stderr := run(t, "device", e.identity("device-003"), "--secrets-from-seed", "--state", t.TempDir())
		return status == exitBadInput && strings.Contains(stderr, "the bus does not admit device 3: it was revoked")
	})
	if strings.Contains(s.said(), "panic") {
		t.Error(s.said())
	}
	s.stop()
	s.ends(exitInterrupted)
	if words := "ringwave serve --bench " + quoted(e.dir) + " --resume " + e.run; !strings.Contains(s.said(), words) {
		t.Errorf("the server does not say how to go on:\n%s", s.said())
	}
	// The two kinds of run are not each other's.
	refusedHost{"a run of hosts in one process", "run --resume " + e.run, "is a run whose devices are on other hosts: go on with ringwave serve --resume " + e.run}.try(t)
	one := filepath.Join(t.TempDir(), "one")
	mustRun(t, append([]string{"run", hostsConfig, "--out", one}, few(3, 5)...)...)
	refusedHost{"a run of one process over hosts", "serve --bench " + e.dir + " --resume " + one, "is a run whose devices are in one process: go on with ringwave run --resume " + one}.try(t)
}

// Two processes that are one device: the second waits, and both hosts say why.
func TestOneDeviceTwice(t *testing.T) {
	e := enrol(t, 2)
	s := e.serve(few(2, 10)...)
	first := e.device("device-001")
	s.says("device 1 is here")
	second := begin(t, "device", e.identity("device-001"), "--secrets-from-seed", "--state", t.TempDir())
	second.says("the server asks to wait: device 1 is here already")
	s.says("device 1 is not let in: device 1 is here already")
	second.stop()
	second.ends(exitInterrupted)
	last := e.device("device-002")
	for _, b := range []*begun{s, first, last} {
		b.ends(0)
	}
	// What a user reads has no figure that nobody knows, and nothing of how hosts connect.
	for _, word := range []string{"NaN", "Violation", "nkey"} {
		if strings.Contains(s.said()+first.said(), word) {
			t.Errorf("%q is told of:\n%s%s", word, s.said(), first.said())
		}
	}
}
