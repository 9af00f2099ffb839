//go:build linux

package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/remote"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

// server is Debian's SoapySDRServer.
type server struct {
	address string
	cmd     *exec.Cmd
	ended   chan struct{}
}

// serve runs Debian's SoapySDRServer, unmodified, in front of a bus.
func serve(t testing.TB, bus *usbfs.Bus, env ...string) *server {
	t.Helper()
	cmd := radiotest.Tool(t, bus, "soapyremote-server", "SoapySDRServer", "--bind=127.0.0.1:"+freePort(t))
	s := &server{address: strings.TrimPrefix(cmd.Args[1], "--bind="), cmd: cmd, ended: make(chan struct{})}
	// It does not start without a bus of its system's, to which it tells its name.
	cmd.Env = append(append(cmd.Env, "DBUS_SYSTEM_BUS_ADDRESS="+dbus(t)), env...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() || testing.Verbose() {
			t.Log(said.String())
		}
	})
	return s
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// dbus runs a bus that nobody else is on.
func dbus(t testing.TB) (address string) {
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
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// patient is a Dialer for a server that may not listen yet.
type patient struct{ net.Dialer }

func (p *patient) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := p.Dialer.DialContext(ctx, network, address)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		<-again.C
	}
}

func parse(t testing.TB, uri string) radio.URI {
	t.Helper()
	u, err := radio.ParseURI(uri)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// made opens the first board of a server.
func made(t testing.TB, s *server, params string, args soapy.Args) soapy.Board {
	t.Helper()
	b, err := remote.New(&patient{}).Make(t.Context(), parse(t, "soapy-remote:"+s.address+params), args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

const serial = "0000000000000000a06063c8234e5f5f"

func TestMain(m *testing.M) { os.Exit(m.Run()) }

func TestTry(t *testing.T) {
	h := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serial})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
	bus := radiotest.Bus(t, h)
	s := serve(t, bus)
	found, err := remote.New(&patient{}).Find(t.Context(), parse(t, "soapy-remote:"+s.address), soapy.Args{})
	t.Log(found, err)
	b := made(t, s, "", soapy.Args{"driver": "hackrf"})
	ctx := t.Context()
	t.Log(b.Hardware(ctx))
	at := soapy.Channel{Direction: radio.Receive}
	t.Log(b.Channels(ctx, radio.Receive))
	t.Log(b.FullDuplex(ctx, at))
	t.Log(b.Formats(ctx, at))
	t.Log(b.NativeFormat(ctx, at))
	t.Log(b.Antennas(ctx, at))
	t.Log(b.Antenna(ctx, at))
	t.Log(b.Gains(ctx, at))
	t.Log(b.GainRange(ctx, at, "VGA"))
	t.Log(b.Gain(ctx, at, "VGA"))
	t.Log(b.SetGain(ctx, at, "VGA", 22))
	t.Log(b.Gain(ctx, at, "VGA"))
	t.Log(b.HasGainMode(ctx, at))
	t.Log(b.FrequencyRange(ctx, at))
	t.Log(b.SetFrequency(ctx, at, 433.92e6))
	t.Log(b.Frequency(ctx, at))
	t.Log(b.SampleRateRange(ctx, at))
	t.Log(b.SetSampleRate(ctx, at, 4e6))
	t.Log(b.SampleRate(ctx, at))
	t.Log(b.BandwidthRange(ctx, at))
	t.Log(b.ClockSources(ctx))
	t.Log(b.HasHardwareTime(ctx, ""))
	t.Log(b.HardwareTime(ctx, ""))
	t.Log(b.Sensors(ctx))
	t.Log(b.ReadSensor(ctx, "x"))
	st, err := b.SetupStream(ctx, at, "CS8", nil)
	t.Log(st, err)
	t.Log(st.Activate(ctx, 0, 0))
	dst := make([]byte, 65536)
	for range 10 {
		t.Log(st.Read(ctx, dst, time.Second))
	}
	t.Log(h.Settings())
	t.Log(st.Status(ctx, time.Second))
	t.Log(st.Deactivate(ctx, 0, 0))
	t.Log(h.Settings())
	t.Log(st.Close())
	t.Log(b.Close())
}
