package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A bench is enrolled, grows and loses devices by the commands of the help, and what is
// wrong leaves it as it is.
func TestEnroll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bench")
	for _, c := range []struct{ args, want string }{
		{"--devices 3 --url tls://10.0.0.5:4333 --valid 48h", "bus        tls://10.0.0.5:4333\n  devices    3, of which 3 may connect\n"},
		{"--add 2", "devices    5, of which 5 may connect\n"},
		{"--revoke 4,2", "devices    5, of which 3 may connect\n"},
		{"--add 1 --valid 1h", "devices    6, of which 4 may connect\n"},
	} {
		if stdout, _ := mustRun(t, append([]string{"enroll", dir}, strings.Fields(c.args)...)...); !strings.Contains(stdout, c.want) {
			t.Errorf("%s: %s", c.args, stdout)
		}
	}
	if list, err := filepath.Glob(filepath.Join(dir, "device-*.identity")); err != nil || len(list) != 6 {
		t.Errorf("%q, %v", list, err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "enrolment.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                              "enroll has 0 of --devices or --sweeps for a new folder, --add and --revoke; allowed is one",
		"--add 1 --revoke 1":            "enroll has 2 of --devices or --sweeps",
		"--devices 3":                   "is there already; allowed is",
		"--devices x":                   `--devices is "x": allowed is a whole number`,
		"--add -1":                      "--add is -1; allowed is 1 to 9994, as there are 6 devices",
		"--add 1 --valid 49h":           "--valid is 49h0m0s; allowed is 1m0s to the 4",
		"--add 1 --valid 0s":            "--valid is 0; allowed is a time such as 8760h",
		"--add 1 --url tls://x:1":       "--add is given with what it has no use for",
		"--revoke 1 --valid 1h":         "--revoke is given with what it has no use for",
		"--revoke 7":                    "--revoke has 7; allowed are the devices of the bench, 1 to 6",
		"--revoke 1,x":                  "allowed is whole numbers",
		"--devices 1 --host a/b":        `--host is "a/b"; allowed is`,
		"--devices 1 --url tcp://x:1":   `--url is "tcp://x:1"; allowed is tls://host:port`,
		"--devices 1 --valid 999999h":   "--valid is 999999h0m0s; allowed is",
		"--devices 1 --valid yesterday": `--valid is "yesterday": allowed is a time`,
		"again --devices 1":             "takes a folder; got 2 arguments",
	} {
		status, stdout, stderr := run(t, append([]string{"enroll", dir}, strings.Fields(args)...)...)
		if status != exitBadInput || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d: %s%s", args, status, stdout, stderr)
		}
	}
	if after, err := os.ReadFile(filepath.Join(dir, "enrolment.toml")); err != nil || string(before) != string(after) {
		t.Errorf("the bench was changed, %v", err)
	}
	if status, _, stderr := run(t, "enroll", dir+"x", "--add", "1"); status != exitBadInput || !strings.Contains(stderr, "enrolment.toml: the registry cannot be read") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
