package iiod_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/virtual/iiod"
)

func ok(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// serve starts a board on a medium with one transmitter and gives its address.
func serve(t *testing.T, medium loopback.Config, change func(*iiod.Config)) string {
	t.Helper()
	medium.Name, medium.Devices = "air", []loopback.Device{{Gain: 1}}
	if medium.Rate == 0 {
		medium.Rate = 4e6
	}
	m, err := loopback.New(medium)
	ok(t, err)
	rx, err := m.Receiver(0)
	ok(t, err)
	tx, err := m.Transmitter(0)
	ok(t, err)
	cfg := iiod.Config{Receive: rx, Transmit: tx, Serial: "1234"}
	if change != nil {
		change(&cfg)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	s, err := iiod.Serve(ln, cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close(), m.Close()) })
	return ln.Addr().String()
}

// tool returns a command of Debian's libiio-utils for a board.
func tool(t *testing.T, ctx context.Context, name, address string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("RINGWAVE_REQUIRE_BENCH") == "1" {
			t.Fatalf("%s is missing: install the package libiio-utils", name)
		}
		t.Skipf("skipped: %s is missing, install the package libiio-utils", name)
	}
	return exec.CommandContext(ctx, path, append([]string{"-u", "ip:" + address}, args...)...)
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, errs.Bytes())
	}
	return string(out)
}

// libiio finds all devices and reads all attributes.
func TestInfo(t *testing.T) {
	radiotest.Goroutines(t)
	address := serve(t, loopback.Config{}, nil)
	out := output(t, tool(t, t.Context(), "iio_info", address))
	for _, want := range []string{
		"IIO context created with network backend.", "Backend version: 0.25", "hw_model: Analog Devices PlutoSDR", "hw_serial: 1234",
		"IIO context has 4 devices:", "iio:device0: ad9361-phy", "iio:device2: cf-ad9361-dds-core-lpc (buffer capable)", "iio:device3: cf-ad9361-lpc (buffer capable)",
		"voltage0:  (input, index: 0, format: le:S12/16>>0)", "voltage1:  (output, index: 1, format: le:S16/16>>0)",
		"gain_control_mode value: slow_attack", "hardwaregain_available value: [-89.750000 0.250000 0.000000]", "attr  0: frequency value: 2400000000",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(out, "ERROR") {
		t.Error("an attribute cannot be read")
	}
	if t.Failed() {
		t.Log(out)
	}
}

// So it does of all other boards, whose samples it lists by channel.
func TestInfoOfProfiles(t *testing.T) {
	radiotest.Goroutines(t)
	for name, p := range iiod.Profiles() {
		address := serve(t, loopback.Config{}, func(cfg *iiod.Config) { cfg.Profile = p })
		out := output(t, tool(t, t.Context(), "iio_info", address))
		for _, want := range []string{
			fmt.Sprintf("IIO context has %d devices:", 3+p.Transceivers), "ad9361-phy,model: " + p.Transceiver, p.Receiver + " (buffer capable)",
			fmt.Sprintf("frequency_available value: [%.0f 1 6000000000]", 70e6),
			fmt.Sprintf("voltage%d:  (input, index: %[1]d, format: le:S12/16>>0)", 2*p.Paths-1),
			fmt.Sprintf("voltage%d:  (output, index: %[1]d, format: le:S16/16>>0)", 2*p.Paths-1),
			fmt.Sprintf("TX%d_Q_F2 (output)", p.Paths),
		} {
			if name == "pluto" {
				want = strings.Replace(want, "[70000000 1 6000000000]", "[325000000 1 3800000000]", 1)
			}
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing", name, want)
			}
		}
		if strings.Contains(out, "ERROR") || strings.Contains(out, fmt.Sprintf("voltage%d:  (input, index", 2*p.Paths)) {
			t.Errorf("%s: an attribute cannot be read, or there are too many channels\n%s", name, out)
		}
	}
}

// What is set is there afterwards, and what is not allowed is refused.
func TestAttributes(t *testing.T) {
	address := serve(t, loopback.Config{}, nil)
	attr := func(args ...string) *exec.Cmd {
		return tool(t, t.Context(), "iio_attr", address, args...)
	}
	for _, c := range []struct{ args, want string }{
		{"-c ad9361-phy TX_LO frequency 868000000", "868000000"},
		{"-c ad9361-phy altvoltage0 frequency 433920000", "433920000"},
		{"-o -c ad9361-phy voltage0 hardwaregain -12.3", "-12.250000 dB"},
		{"-i -c ad9361-phy voltage0 gain_control_mode manual", "manual"},
		{"-i -c ad9361-phy voltage0 hardwaregain 20", "20.000000 dB"},
		{"-c ad9361-phy TX_LO powerdown 1", "1"},
		{"-i -c ad9361-phy voltage0 rf_bandwidth 5000000", "5000000"},
		{"-D cf-ad9361-lpc direct_reg_access 0x80000088", "0x0"},
		{"-C hw_serial", "hw_serial: 1234"},
	} {
		if out, err := attr(strings.Fields(c.args)...).CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != c.want {
			t.Errorf("%s gives %q, %v; want %s", c.args, out, err, c.want)
		}
	}
	for args, want := range map[string]string{
		"-c ad9361-phy TX_LO frequency 100000000":            "Invalid argument (22)",
		"-o -c ad9361-phy voltage0 hardwaregain 1":           "Invalid argument (22)",
		"-i -c ad9361-phy voltage0 sampling_frequency 5e6":   "Invalid argument (22)",
		"-i -c ad9361-phy voltage0 sampling_frequency 50000": "Invalid argument (22)",
		"-i -c ad9361-phy voltage0 rssi 1":                   "Permission denied (13)",
	} {
		out, _ := attr(strings.Fields(args)...).CombinedOutput() // the tool's exit status says nothing
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: %s, want %s", args, out, want)
		}
	}
}

// A file that iio_writedev sends arrives at iio_readdev: the upper 12 bits of each
// number, byte for byte.
func TestWriteRead(t *testing.T) {
	radiotest.Goroutines(t)
	address := serve(t, loopback.Config{}, nil)
	output(t, tool(t, t.Context(), "iio_attr", address, "-o", "-c", "ad9361-phy", "voltage0", "hardwaregain", "0"))
	const samples = 100_000
	sent := make([]byte, 4*samples)
	rnd := rand.New(rand.NewPCG(1, 2))
	for k := range sent {
		sent[k] = byte(rnd.Uint32())
	}
	want := make([]byte, 0, len(sent))
	for k := 0; k < len(sent); k += 2 {
		want = binary.LittleEndian.AppendUint16(want, uint16(int16(binary.LittleEndian.Uint16(sent[k:]))>>4))
	}
	// The last blocks of what iio_writedev sends are lost with it, as on a board.
	writing, stop := context.WithCancel(t.Context())
	writer := tool(t, writing, "iio_writedev", address, "-b", "4096", "cf-ad9361-dds-core-lpc")
	writer.Stdin = io.MultiReader(bytes.NewReader(sent), bytes.NewReader(make([]byte, 1<<20)))
	ok(t, writer.Start())
	got := output(t, tool(t, t.Context(), "iio_readdev", address, "-b", "4096", "-s", fmt.Sprint(samples), "cf-ad9361-lpc"))
	stop()
	_ = writer.Wait() // killed, or done
	if got != string(want) {
		t.Errorf("%d bytes came, not the %d that were sent", len(got), len(want))
	}
}

// One component alone.
func TestOneChannel(t *testing.T) {
	c := dial(t, serve(t, loopback.Config{}, nil))
	c.say(t, "WRITE ad9361-phy OUTPUT voltage0 hardwaregain 1\r\n0", "1\n")
	c.say(t, "OPEN cf-ad9361-dds-core-lpc 4 00000002\r\n", "0\n")
	c.say(t, "OPEN cf-ad9361-lpc 4 00000003\r\n", "0\n")
	c.say(t, "WRITEBUF cf-ad9361-dds-core-lpc 8\r\n", "0\n")
	c.say(t, "\x10\x00\x2f\x00\x30\x00\xf0\xff", "8\n")
	c.say(t, "READBUF cf-ad9361-lpc 16\r\n", "16\n00000003\n\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\xff\xff")
	d := dial(t, c.address)
	d.say(t, "OPEN cf-ad9361-lpc 4 00000001\r\n", "-16\n") // held by the other
	c.say(t, "CLOSE cf-ad9361-lpc\r\n", "0\n")
	d.say(t, "open iio:device3 4 00000001\n", "0\n")
	for range 4 {
		c.say(t, "WRITEBUF cf-ad9361-dds-core-lpc 8\r\n", "0\n")
		c.say(t, "\x00\x00\x00\x00\x00\x00\x00\x00", "8\n")
	}
	d.say(t, "readbuf iio:device3 8\n", "8\n00000001\n\x00\x00\x00\x00\x00\x00\x00\x00")
}

// client is a connection.
type client struct {
	conn    net.Conn
	in      *bufio.Reader
	address string
}

func dial(t *testing.T, address string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	ok(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &client{conn, bufio.NewReader(conn), address}
}

// say sends text and fails unless the answer begins as it should.
func (c *client) say(t *testing.T, text, want string) {
	t.Helper()
	_, err := io.WriteString(c.conn, text)
	ok(t, err, c.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.in, got)
	if string(got[:n]) != want {
		t.Fatalf("%q: %q, want %q (%v)", text, got[:n], want, err)
	}
}

// The answers of Debian's iiod 0.24 to the same commands, which were noted down with
// it in front of this one.
func TestAnswers(t *testing.T) {
	c := dial(t, serve(t, loopback.Config{}, nil))
	for _, s := range []struct{ text, want string }{
		{"TIMEOUT 1000\r\n", "0\n"},
		{"READ ad9361-phy OUTPUT TX_LO frequency\r\n", "10\n2450000000\n"},
		{"READ ad9361-phy nothing\r\n", "-2\n"},
		{"BLAH\r\n", "-22\n"},
		{"READ iio:device3 DEBUG direct_reg_access\r\n", "3\n0x0\n"},
		{"GETTRIG iio:device3\r\n", "-2\n"},
		{"SET iio:device3 BUFFERS_COUNT 8\r\n", "0\n"},
		{"OPEN iio:device3 1024 00000003\r\n", "0\n"},
		{"READBUF iio:device3 2\r\n", "0\n"},
		{"CLOSE iio:device3\r\n", "0\n"},
		{"CLOSE iio:device3\r\n", "-6\n"},
		{"READBUF iio:device3 4096\r\n", "-9\n"},
		{"READ iio:device9 name\r\n", "-19\n"},
		{"OPEN iio:device3 1024 3\r\n", "-22\n"},
		{"\r\n\r\nprint\n", "7"},
	} {
		c.say(t, s.text, s.want)
	}
}

// Nobody writes, so that nothing comes: the timeout says so and the connection goes
// on.
func TestTimeout(t *testing.T) {
	c := dial(t, serve(t, loopback.Config{}, nil))
	c.say(t, "TIMEOUT 1\r\nOPEN iio:device3 16 00000003\r\nREADBUF iio:device3 64\r\n", "0\n0\n-110\n")
	c.say(t, "CLOSE iio:device3\r\n", "0\n")
}

// A client that leaves in the middle of anything leaves nothing behind.
func TestDisconnect(t *testing.T) {
	radiotest.Goroutines(t)
	address := serve(t, loopback.Config{Window: loopback.MinWindow}, nil)
	for _, text := range []string{
		"READBUF iio:device3 6400\r\n",
		"WRITEBUF iio:device2 6400\r\n",
		"WRITEBUF iio:device2 6400\r\n" + strings.Repeat("x", 100),
		"WRITEBUF iio:device2 640000\r\n" + strings.Repeat("x", 640000), // more than there is room for
		"WRITE ad9361-phy OUTPUT voltage0 hardwaregain 10\r\n0",
		"CLO",
	} {
		c := dial(t, address)
		c.say(t, "TIMEOUT 0\r\nOPEN iio:device3 1600 00000003\r\nOPEN iio:device2 1600 00000003\r\n", "0\n0\n0\n")
		_, err := io.WriteString(c.conn, text)
		ok(t, err, c.conn.Close())
	}
	dial(t, address).say(t, "OPEN iio:device3 16 00000003\r\nOPEN iio:device2 16 00000003\r\n", "0\n0\n")
}

// In real time, who comes late loses samples, and the status register says so until
// it is cleared, to libiio's own check as well.
func TestStatus(t *testing.T) {
	clock := &loopback.ManualClock{}
	address := serve(t, loopback.Config{Clock: clock, Window: loopback.MinWindow}, func(c *iiod.Config) { c.RealTime = true })
	c, ask := dial(t, address), dial(t, address)
	status := func(device, want string) {
		t.Helper()
		for got := ""; got != want; { // the converters notice in their own time
			_, err := fmt.Fprintf(ask.conn, "WRITE %s DEBUG direct_reg_access 10\r\n0x80000088READ %s DEBUG direct_reg_access\r\n", device, device)
			ok(t, err, ask.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
			for range 3 {
				got, err = ask.in.ReadString('\n')
				ok(t, err)
			}
			got = strings.TrimSpace(got)
			clock.Advance(time.Millisecond)
		}
	}
	c.say(t, "TIMEOUT 0\r\nOPEN iio:device3 1024 00000003\r\n", "0\n0\n")
	status("iio:device3", "0x4") // nobody reads
	ask.say(t, "WRITE iio:device3 DEBUG direct_reg_access 14\r\n0x80000088 0x1", "14\n")
	status("iio:device3", "0x4")
	c.say(t, "CLOSE iio:device3\r\n", "0\n")
	ask.say(t, "WRITE iio:device3 DEBUG direct_reg_access 14\r\n0x80000088 0x4", "14\n")
	status("iio:device3", "0x0")
	c.say(t, "OPEN iio:device3 1024 00000003\r\nOPEN iio:device2 16 00000003\r\nWRITEBUF iio:device2 64\r\n", "0\n0\n0\n")
	c.say(t, strings.Repeat("x", 64), "64\n")
	// Time goes on by what is read.
	go func() {
		for range 100 {
			clock.Advance(time.Millisecond)
		}
	}()
	c.say(t, "READBUF iio:device3 4096\r\n", "4096\n00000003\n")
	status("iio:device2", "0x1")
}

// iio_adi_xflow_check, which reads the status register as it runs, agrees.
func TestFlowCheck(t *testing.T) {
	if os.Getenv("RINGWAVE_LONG") != "1" {
		t.Skip("skipped: takes seconds of real time; RINGWAVE_LONG=1 runs it")
	}
	// A rate that a busy machine keeps up with, too.
	address := serve(t, loopback.Config{Rate: 500e3, Clock: loopback.WallClock()}, func(c *iiod.Config) { c.RealTime = true })
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	cmd := tool(t, ctx, "iio_adi_xflow_check", address, "-s", "8192", "cf-ad9361-lpc")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, _ := cmd.CombinedOutput() // ended by the context
	if !strings.Contains(string(out), "Monitoring cf-ad9361-lpc") || regexp.MustCompile("(?i)fail|unable").Match(out) {
		t.Errorf("%s", out)
	}
}

// The same block again and again.
func TestCyclic(t *testing.T) {
	c := dial(t, serve(t, loopback.Config{}, nil))
	c.say(t, "WRITE ad9361-phy OUTPUT voltage0 hardwaregain 1\r\n0", "1\n")
	c.say(t, "OPEN iio:device2 2 00000003 CYCLIC\r\nOPEN iio:device3 6 00000003\r\nWRITEBUF iio:device2 8\r\n", "0\n0\n0\n")
	c.say(t, "\x10\x00\x20\x00\x30\x00\x40\x00", "8\n")
	const two = "\x01\x00\x02\x00\x03\x00\x04\x00"
	c.say(t, "READBUF iio:device3 24\r\n", "24\n00000003\n"+two+two+two)
}

func TestBadConfig(t *testing.T) {
	m, err := loopback.New(loopback.Config{Rate: 1e6, Devices: []loopback.Device{{}}})
	ok(t, err)
	rx, err := m.Receiver(0)
	ok(t, err)
	tx, err := m.Transmitter(0)
	ok(t, err)
	for want, cfg := range map[string]iiod.Config{
		"loopback:?tx=0 does not receive": {Receive: tx},
		"loopback: does not transmit":     {Transmit: rx},
		"the first device is -1":          {FirstDevice: -1},
		"the unit gain is 72 dB":          {UnitGain: 72},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		ok(t, err)
		if _, err := iiod.Serve(ln, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
