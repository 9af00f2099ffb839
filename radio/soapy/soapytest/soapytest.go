// Package soapytest has boards in memory for tests of what goes through SoapySDR: a module of
// its, in C++, that is compiled when a test asks for it. It knows nothing of who loads it.
package soapytest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ringwave/radio/radiotest"
)

//go:embed testdata/module.cpp
var source []byte

// Driver is the driver key of the module's boards.
const Driver = "ringtest"

// Build compiles the module and returns the folder that SOAPY_SDR_PLUGIN_PATH is to name, and
// skips where there is no compiler or no SoapySDR.
func Build(t testing.TB) (folder string) {
	t.Helper()
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "SoapySDR").Output()
	if err != nil {
		radiotest.Missing(t, "no SoapySDR: Debian's libsoapysdr-dev and pkg-config")
	}
	if _, err := exec.LookPath("g++"); err != nil {
		radiotest.Missing(t, "no g++")
	}
	folder = t.TempDir()
	from := filepath.Join(folder, "module.cpp")
	if err := os.WriteFile(from, source, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-std=c++17", from, "-o", filepath.Join(folder, "libringtest.so")}, strings.Fields(string(flags))...)
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("compiling the module: %v\n%s", err, out)
	}
	return folder
}
