package soapytest

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ringwave/radio/radiotest"
)

// Serve runs Debian's SoapySDRServer, unmodified, with what env adds to this process's
// environment, and returns its address once it listens. It ends with the test.
func Serve(t testing.TB, env ...string) (address string) {
	t.Helper()
	path, err := exec.LookPath("SoapySDRServer")
	if err != nil {
		radiotest.Missing(t, "SoapySDRServer is not installed (on Debian: apt-get install soapyremote-server)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close()
	cmd := exec.Command(path, "--bind="+address)
	// It does not start without a bus of its system's, to which it tells its name.
	cmd.Env = append(append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+DBus(t)), env...)
	begin(t, cmd)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for range 500 {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		<-again.C
	}
	t.Fatal("SoapySDRServer does not listen")
	return ""
}

// DBus runs a bus that nobody else is on.
func DBus(t testing.TB) (address string) {
	t.Helper()
	path, err := exec.LookPath("dbus-daemon")
	if err != nil {
		radiotest.Missing(t, "dbus-daemon is not installed (on Debian: apt-get install dbus)")
	}
	cmd := exec.Command(path, "--session", "--print-address", "--nofork")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin(t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// begin starts a program that ends with the test.
func begin(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}
