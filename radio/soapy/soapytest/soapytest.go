// Package soapytest has a module of SoapySDR for tests: it takes in nothing and gives the
// folder of the module, compiled, for SOAPY_SDR_PLUGIN_PATH, and reads what a board of it
// shows of itself to the outside. The module runs in any program that has the library, this
// one or SoapySDRServer, and knows nothing of Go.
//
// Its driver key is ringtest. Each board has one channel a direction (channels=N for more),
// formats CF32, CS16 (its own) and CS8, gains PAD and IAMP to transmit and LNA and PGA to
// receive, clock sources and time sources internal, external and gpsdo, sensors ref_locked
// and lo_locked, and a clock. RINGTEST_BOARDS=A,B has the serial numbers that are there; without
// it there is R0, and any that is asked for.
//
// What boards of a process send on one frequency, at one rate, receivers of that frequency
// read as a sum, by the sample; gains of 0 dB pass amplitudes as they are. The common clock is the machine's (CLOCK_MONOTONIC), and each
// board's own is away from it. With RINGTEST_STATE=FOLDER each board keeps a file there with
// what it sends (ReadState), which stays when the process is killed, and is locked against
// other programs.
//
// These are arguments of a board and settings, too (SoapySDRDevice_writeSetting):
//
//	pace=real|free        samples come as time passes, or as they are read (argument only)
//	epoch_ns=N            what the board's clock shows now; offset_ns=N, by how much it is
//	                      ahead of the common one
//	pps_ms=N, pps=on|off  the period of pulses, which begin with those of all boards unless
//	                      the time source is internal; whether there are any
//	ref=locked|unlocked, time=on|off, duplex=full|half, status=on|off
//	gain=X, noise=X       a factor of what is sent; the standard deviation of noise
//	buffer=N, txbuffer=N, latency_us=N, mtu=N
//	short=N               at most that many samples are written at once
//	counter=on            samples count from Activate on: CS16 has 32 bits, I the lower half;
//	                      sensors tx_samples, tx_lost and tx_breaks tell of those sent
//	carrier=stream|burst  what the state calls a carrier
//	late=on               whatever has a time is late
//	overflow=N, lose=N, steal=N
//	                      that many samples are lost and told of; lost, as times show; lost,
//	                      and times do not show it
//	stream_error=N, corrupt=N, timeouts=N
//	                      so many calls of a stream end so
//	throw=CALL, hang=CALL:MS, hang=CALL
//	                      that call fails, or lasts that long, or for ever; none ends it
//	gone=on               the board is unplugged
//	stuck_on=on           it does not stop to send
//	fault=NAME[=N]        one fault instead of all others: no_pps, unlocked, no_status, late,
//	                      short, gone, throw, stuck_on, overflow, lose=N, stream, corrupt,
//	                      deaf=MS (streams time out), hang=MS (all calls do), none
//
// The argument fails=WORDS has the board not open.
package soapytest

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ringwave/radio/radiotest"
)

//go:embed testdata/module.cpp
var source []byte

// Driver is the driver key of the module's boards.
const Driver = "ringtest"

// PluginPath is the variable that names folders with modules. It is read once, when the
// library is first used.
const PluginPath = "SOAPY_SDR_PLUGIN_PATH"

// Build returns the folder of the compiled module. It skips the test without a compiler or
// SoapySDR, and fails it where a bench is required.
func Build(t testing.TB) (folder string) {
	t.Helper()
	return build(t, source, "libringtest.so", "-shared", "-fPIC")
}

// Program returns the path of a C++ program over SoapySDR, compiled from its source.
func Program(t testing.TB, source []byte) (path string) {
	t.Helper()
	return filepath.Join(build(t, source, "program"), "program")
}

// build returns a folder of the user's cache that has what is compiled from a source.
func build(t testing.TB, source []byte, name string, flags ...string) string {
	t.Helper()
	flags = append([]string{"-std=c++17", "-O2", "-Wall", "-Wextra", "-pthread"}, flags...)
	library, err := exec.Command("pkg-config", "--cflags", "--libs", "SoapySDR").Output()
	if err != nil {
		radiotest.Missing(t, "there is no SoapySDR to compile with (on Debian: apt-get install libsoapysdr-dev pkg-config)")
	}
	compiler, err := exec.LookPath("g++")
	if err != nil {
		radiotest.Missing(t, "g++ is not installed (on Debian: apt-get install g++)")
	}
	of, err := exec.Command(compiler, "-dumpfullversion").Output()
	if err != nil {
		t.Fatalf("asking for the version of g++: %v", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", source, library, of, flags))
	folder := filepath.Join(cache, "ringwave-soapytest", fmt.Sprintf("%x", key[:16]))
	if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
		return folder
	}
	if err := compile(compiler, folder, name, source, append(flags, strings.Fields(string(library))...)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// compile makes the folder at once: tests of several packages may do so at the same time.
func compile(compiler, folder, name string, source []byte, flags []string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(filepath.Dir(folder), "draft-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	cpp := filepath.Join(draft, "source.cpp")
	if err := os.WriteFile(cpp, source, 0o600); err != nil {
		return err
	}
	args := append([]string{"-o", filepath.Join(draft, name), cpp}, flags...)
	if said, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("compiling %s: %w\n%s", name, err, said)
	}
	if err := os.Remove(cpp); err != nil {
		return err
	}
	if err := os.Rename(draft, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// State is what a board shows of its transmitter.
type State struct {
	Carrier bool // as the board's argument carrier has it
	Active  bool // a stream is
	Burst   bool // one is on air
	Gain    float64
	Hertz   float64
}

// ReadState reads the state of a board from the folder of RINGTEST_STATE.
func ReadState(folder, serial string) (State, error) {
	path := filepath.Join(folder, serial)
	b, err := os.ReadFile(path)
	if err != nil {
		return State{}, err
	}
	word, rest, _ := strings.Cut(string(b), "\n")
	values := map[string]string{}
	for line := range strings.Lines(rest) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[key] = value
	}
	s := State{Carrier: word == "on", Active: values["active"] == "1", Burst: values["burst"] == "1"}
	var gainErr, hertzErr error
	s.Gain, gainErr = strconv.ParseFloat(values["gain"], 64)
	s.Hertz, hertzErr = strconv.ParseFloat(values["frequency"], 64)
	if err := errors.Join(gainErr, hertzErr); err != nil {
		return State{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return s, nil
}
