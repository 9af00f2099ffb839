//go:build linux

package rtlsdr_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbfs"
)

// paced is a bench in real time. librtlsdr queues transfers again that end while it
// cancels, and does not come to an end with a board that has no pace.
func paced(t *testing.T, b virtual.Radio, hears func(dst []complex64, first int64)) *virtual.Bench {
	t.Helper()
	cfg := virtual.Config{Boards: []virtual.Place{{Radio: b}}, Clock: loopback.WallClock()}
	if hears != nil {
		cfg.Ears = []virtual.Ear{{Noise: adder(hears)}}
	}
	bn, err := virtual.NewBench(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bn.Close() })
	return bn
}

// numbered is a signal whose samples say their number, modulo 65536.
func numbered(dst []complex64, first int64) {
	for k := range dst {
		i := first + int64(k)
		dst[k] = complex((float32(byte(i))-127.5)/128, (float32(byte(i>>8))-127.5)/128)
	}
}

// received runs rtl_sdr and gives what it received.
func received(t *testing.T, bus *usbfs.Bus, n int, args ...string) (bytes []byte, out string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "samples")
	args = append(args, "-n", strconv.Itoa(n), file)
	said, err := radiotest.Tool(t, bus, "rtl-sdr", "rtl_sdr", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	bytes, err = os.ReadFile(file)
	if err != nil || len(bytes) != 2*n {
		t.Fatalf("%d bytes of %d samples: %v\n%s", len(bytes), n, err, said)
	}
	return bytes, string(said)
}

func requireLines(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in the output\n%s", line, out)
		}
	}
}

// rtl_sdr, unmodified, tunes either board and receives what its antenna hears, byte
// for byte but for what the board lost.
func TestRTLSDRReceives(t *testing.T) {
	for _, tuner := range []virtual.RTLTuner{virtual.R820T, virtual.R828D} {
		b := board(t, virtual.RTL2832UConfig{Tuner: tuner})
		paced(t, b, numbered)
		const n = 1_000_000 // rtl_sdr does not end at a multiple of its buffers
		got, out := received(t, radiotest.Bus(t, b), n, "-f", "433920000", "-s", "2400000", "-g", "0.1")
		requireLines(t, out, "SN: 00000001", "Sampling at 2400000 S/s.", "Tuned to 433920000 Hz.", "Found Rafael Micro R82")
		// What comes between the emptying of the board's buffer and the first
		// transfer does not fit into it.
		lost, last := radio.SampleCount(0), uint16(0xffff)
		for k := range n {
			index := uint16(got[2*k]) | uint16(got[2*k+1])<<8
			lost += radio.SampleCount(index - last - 1)
			last = index
		}
		if of := b.State().Lost; lost > of {
			t.Errorf("%d samples are missing, the board lost %d", lost, of)
		}
	}
}

// rtl_sdr warns of a synthesizer that does not lock, and receives.
func TestRTLSDRUnlocked(t *testing.T) {
	b := board(t, virtual.RTL2832UConfig{Unlocked: true})
	paced(t, b, numbered)
	_, out := received(t, radiotest.Bus(t, b), 50_000, "-f", "433920000", "-s", "2400000")
	requireLines(t, out, "PLL not locked")
}

// bias=on switches what rtl_biast does.
func TestSameBiasAsDebian(t *testing.T) {
	their := board(t, virtual.RTL2832UConfig{})
	paced(t, their, nil)
	if out, err := radiotest.Tool(t, radiotest.Bus(t, their), "rtl-sdr", "rtl_biast", "-b", "1").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	our := board(t, virtual.RTL2832UConfig{})
	bench(t, our, nil)
	d, err := openWith(t.Context(), inProcess(t, our), radio.TransmitPermit{}.WithBias(), "rtlsdr:?bias=on")
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := after(our.Transcript()), after(their.Transcript())
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for _, pin := range []string{"block 2 3001", "block 2 3003", "block 2 3004"} {
		v, set := theirs[pin]
		if o, ok := ours[pin]; o != v || ok != set || !set {
			t.Errorf("%s is %02x (set: %v) instead of %02x (set: %v)", pin, o, ok, v, set)
		}
	}
}

// fetched is a board that remembers what it had lost when its first transfer was
// queued, and when the last was.
type fetched struct {
	*virtual.RTL2832U
	mu    sync.Mutex
	began bool
	lost  [2]radio.SampleCount
}

func (b *fetched) Queue(endpoint byte, data []byte, done func(n int, err error)) (cancel func()) {
	lost := b.State().Lost
	b.mu.Lock()
	if !b.began {
		b.began, b.lost[0] = true, lost
	}
	b.lost[1] = lost
	b.mu.Unlock()
	return b.RTL2832U.Queue(endpoint, data, done)
}

// missed returns how much was lost between the two. Nothing else is missing in what the
// program looks at: it queues a transfer again when it has looked at it.
func (b *fetched) missed() radio.SampleCount {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost[1] - b.lost[0]
}

// rtl_test, unmodified, finds the tuner and its gains. In real time at 2.4 Msps it
// misses no byte of the counter, unless the board itself says so.
func TestRTLTest(t *testing.T) {
	b := &fetched{RTL2832U: board(t, virtual.RTL2832UConfig{})}
	enough := make(chan struct{})
	passed := int64(0)
	paced(t, b, func(dst []complex64, first int64) {
		const at = 2_400_000
		if passed < at && first+int64(len(dst)) >= at {
			close(enough)
		}
		passed = first + int64(len(dst))
	})
	cmd := radiotest.Tool(t, radiotest.Bus(t, b), "rtl-sdr", "rtl_test", "-s", "2400000")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-enough:
	case err := <-ended:
		t.Fatalf("%v\n%s", err, out.String())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	requireLines(t, out.String(), "Found Rafael Micro R820T tuner",
		"Supported gain values (29): 0.0 0.9 1.4 2.7 3.7 7.7 8.7 12.5 14.4 15.7 16.6 19.7 20.7 22.9 25.4 28.0 29.7 32.8 33.8 36.4 37.2 38.6 40.2 42.1 43.4 43.9 44.5 48.0 49.6")
	if missed := b.missed(); missed == 0 {
		requireLines(t, out.String(), "Samples per million lost (minimum): 0")
	} else {
		t.Logf("the machine was too slow for the board, which lost %d samples", missed)
	}
}

// regs are the registers of an RTL2832U and of its tuner, after a transcript.
type regs map[string]byte

// after plays a transcript.
func after(requests []virtual.Request) regs {
	r := regs{}
	for _, q := range requests {
		s := q.Setup
		if s.RequestType&usb.DirectionIn != 0 || q.Err != nil {
			continue
		}
		for k, v := range q.Data {
			switch block := s.Index >> 8; block {
			case 0:
				r[fmt.Sprintf("demodulator %d:%02x", s.Index&0x0f, int(s.Value>>8)+k)] = v
			case 6:
				if k > 0 {
					r[fmt.Sprintf("tuner %02x", int(q.Data[0])+k-1)] = v
				}
			default:
				r[fmt.Sprintf("block %d %04x", block, int(s.Value)+k)] = v
			}
		}
	}
	return r
}

// spoken writes requests down, one a line.
func spoken(requests []virtual.Request) []string {
	var lines []string
	for _, q := range requests {
		line := fmt.Sprintf("%02x %04x %04x", q.Setup.RequestType, q.Setup.Value, q.Setup.Index)
		switch {
		case q.Err != nil:
			line += " refused"
		case q.Setup.RequestType&usb.DirectionIn != 0:
			line += fmt.Sprintf(" gives %d", len(q.Data))
		default:
			line += fmt.Sprintf(" % x", q.Data)
		}
		lines = append(lines, line)
	}
	return lines
}

// toStart cuts a transcript where the board begins to send.
func toStart(t *testing.T, requests []virtual.Request) []virtual.Request {
	t.Helper()
	for k, q := range requests {
		if q.Setup.Value == 0x2148 && bytes.Equal(q.Data, []byte{0, 0}) {
			return requests[:k+1]
		}
	}
	t.Fatal("the board was never told to send")
	return nil
}

// orderly leaves out of a request what need not be the same: what is read, and the
// values that the synthesizer's registers go through.
func orderly(line string) string {
	if strings.Contains(line[3:], "4 0610 1a 60 00 54 ae 4a c0") {
		return "the last registers of the tuner's" // and some that it does not have
	}
	for _, reg := range []string{"10", "12", "14", "15", "16", "1a"} {
		if strings.HasPrefix(line[3:], "0034 0610 "+reg+" ") || strings.HasPrefix(line[3:], "0074 0610 "+reg+" ") {
			return line[:len("40 0034 0610 10")]
		}
	}
	return line
}

// Our driver sends what librtlsdr sends for the same settings: the same registers
// in the same order, and the same values at the end. What librtlsdr sends besides
// are questions to other tuners, registers that the tuner does not have, a retune
// to 0 Hz, and the gain up to three times.
func TestSameRequestsAsLibrtlsdr(t *testing.T) {
	for _, c := range []struct {
		tuner virtual.RTLTuner
		args  string
		uri   string
	}{
		{virtual.R820T, "-f 433920000 -s 2400000 -g 40.2", "freq_hz=433920000&rate_hz=2400000&gain=40.2"},
		{virtual.R820T, "-f 100000000 -s 2048000 -g 0", "gain=auto"},
		{virtual.R820T, "-f 30000000 -s 3200000 -g 0.9", "freq_hz=30e6&rate_hz=3.2e6&gain=0.9"},
		{virtual.R820T, "-f 1700000000 -s 1000000 -g 49.6", "freq_hz=1.7e9&rate_hz=1e6&gain=49.6"},
		{virtual.R820T, "-f 868300000 -s 1800000 -g 19.7", "freq_hz=868.3e6&rate_hz=1.8e6&gain=19.7"},
		{virtual.R820T, "-f 145000000 -s 2048000 -g 25.4 -p 57", "freq_hz=145e6&gain=25.4&ppm=57"},
		{virtual.R828D, "-f 433920000 -s 2400000 -g 33.8", "freq_hz=433920000&rate_hz=2400000&gain=33.8"},
		{virtual.R828D, "-f 178352000 -s 2048000 -g 0", "freq_hz=178352e3&gain=auto"},
	} {
		t.Run(c.uri, func(t *testing.T) {
			their := board(t, virtual.RTL2832UConfig{Tuner: c.tuner})
			paced(t, their, nil)
			received(t, radiotest.Bus(t, their), 50_000, strings.Fields(c.args)...)
			our := board(t, virtual.RTL2832UConfig{Tuner: c.tuner})
			bench(t, our, nil)
			d := open(t, inProcess(t, our), "rtlsdr:?hold=on&"+c.uri)
			radiotest.Started(t, d)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			ppm := strings.Contains(c.uri, "ppm")
			sameState(t, toStart(t, our.Transcript()), toStart(t, their.Transcript()), ppm)
			if !ppm { // which rtl_sdr sets last
				sameOrder(t, our.Transcript(), their.Transcript())
			}
			// librtlsdr rounds the synthesizer's fraction down in steps of a
			// kilohertz of the oscillator.
			if o, th := our.State(), their.State(); math.Abs(float64(o.Frequency-th.Frequency)) > 1000 || o.Rate != th.Rate || o.Gain != th.Gain {
				t.Errorf("%+v instead of %+v", o, th)
			}
		})
	}
}

// sameState compares the registers at the end. With a correction of the crystal
// librtlsdr leaves the demodulator's frequency as it was without.
func sameState(t *testing.T, ours, theirs []virtual.Request, ppm bool) {
	t.Helper()
	our, their := after(ours), after(theirs)
	for _, reg := range []string{"tuner 20", "tuner 21", "tuner 22"} {
		delete(their, reg) // there are none
	}
	except := []string{"tuner 15", "tuner 16"} // the synthesizer's fraction
	if ppm {
		except = append(except, "demodulator 1:1a", "demodulator 1:1b")
	}
	for reg, v := range their {
		if o, ok := our[reg]; !ok || o != v && !slices.Contains(except, reg) {
			t.Errorf("%s is %02x (set: %v) instead of %02x", reg, o, ok, v)
		}
	}
	for reg, v := range our {
		if _, ok := their[reg]; !ok {
			t.Errorf("%s is %02x, librtlsdr does not set it", reg, v)
		}
	}
}

// sameOrder looks for what we sent, in its order, among what librtlsdr sent, and
// whether anything else is left of that than is known.
func sameOrder(t *testing.T, ours, theirs []virtual.Request) {
	t.Helper()
	own := []string{
		"c0 3001 0200 gives 1", // whether a bias tee is on
		"40 2148 0110 10 02",   // the end of a stream
	}
	rest := spoken(theirs)
	var left []string
	for _, line := range spoken(ours) {
		k := slices.IndexFunc(rest, func(l string) bool { return orderly(l) == orderly(line) })
		if k < 0 {
			if slices.Contains(own, line) {
				continue
			}
			t.Errorf("%s does not come next in librtlsdr's", line)
			return
		}
		left = append(left, rest[:k]...)
		rest = rest[k+1:]
	}
	for _, line := range append(left, rest...) {
		if !besides.MatchString(line) {
			t.Errorf("librtlsdr also sends %s", line)
		}
	}
}

// besides is what librtlsdr sends and we do not.
var besides = regexp.MustCompile(strings.Join([]string{
	"^40 00c[68] 0610|^c0 00c[68] 0600",                             // questions to other tuners
	"^40 0120 0011 1[08]$|^c0 0120 000a",                            // the repeater, and the status after it
	"^40 00[37]4 0610 00$|^c0 00[37]4 0600",                         // reading the tuner
	"^40 00[37]4 0610 1a 60 00 54 ae 4a c0 00$|^40 00[37]4 0610 21", // registers that there are not
	"^40 00[37]4 0610 (17|1a|1b|10|08|09|12|14|15|16) ..$",          // a retune
	"^40 00[37]4 0610 (05|07|0c) ..$",                               // a gain
}, "|"))

// watched is a board that tells when it is first at a frequency, to 1 kHz.
type watched struct {
	*virtual.RTL2832U
	at    radio.Hertz
	once  sync.Once
	there chan struct{}
}

func (b *watched) Control(ctx context.Context, s virtual.Setup, data []byte) (int, error) {
	n, err := b.RTL2832U.Control(ctx, s, data)
	if math.Abs(float64(b.State().Frequency-b.at)) < 1000 {
		b.once.Do(func() { close(b.there) })
	}
	return n, err
}

// Retuning over all bands of the tuner's front end sends what librtlsdr sends,
// which rtl_tcp does at each command.
func TestSameBandsAsLibrtlsdr(t *testing.T) {
	var tunings []radio.Hertz
	for _, threshold := range []radio.Hertz{50, 55, 60, 65, 70, 75, 80, 90, 100, 110, 120, 140, 180, 220, 250, 280, 310, 345, 450, 588, 650} {
		// The local oscillator is 1.625 MHz above.
		for _, off := range []radio.Hertz{-1.9, 0.3} {
			tunings = append(tunings, (threshold+off)*1e6)
		}
	}
	for tuner, tunings := range map[virtual.RTLTuner][]radio.Hertz{virtual.R820T: tunings, virtual.R828D: {344e6, 345.4e6, 346e6, 1e9}} {
		their := &watched{RTL2832U: board(t, virtual.RTL2832UConfig{Tuner: tuner}), at: tunings[len(tunings)-1], there: make(chan struct{})}
		paced(t, their, nil)
		server := radiotest.Tool(t, radiotest.Bus(t, their), "rtl-sdr", "rtl_tcp", "-p", freePort(t))
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- server.Wait() }()
		conn := dial(t, "127.0.0.1:"+server.Args[2])
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		for _, f := range tunings {
			if _, err := conn.Write(binary.BigEndian.AppendUint32([]byte{1}, uint32(f))); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-their.there:
		case err := <-ended:
			t.Fatal("rtl_tcp has ended: ", err)
		}
		conn.Close()
		our := board(t, virtual.RTL2832UConfig{Tuner: tuner})
		bench(t, our, nil)
		d := open(t, inProcess(t, our), "rtlsdr:")
		for _, f := range tunings {
			if _, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, f); err != nil {
				t.Fatal(err)
			}
		}
		ours, theirs := bandsOf(our.Transcript()), bandsOf(their.Transcript())
		// Theirs has a retune to 0 Hz before.
		if n := len(ours); n < len(tunings) || len(theirs) < n || !slices.Equal(ours, theirs[len(theirs)-n:]) {
			t.Errorf("bands\n%v instead of\n%v", ours, theirs)
		}
		_ = server.Process.Kill() // it does not end by itself once it had a client
		<-ended
	}
}

// bandsOf returns what each retune switches: the registers 05, 17, 1a and 1b as they
// are when 1b is written.
func bandsOf(requests []virtual.Request) (bands []string) {
	r := regs{}
	for k, q := range requests {
		for reg, v := range after(requests[k : k+1]) {
			r[reg] = v
		}
		if q.Setup.Index == 0x0610 && len(q.Data) == 2 && q.Data[0] == 0x1b {
			bands = append(bands, fmt.Sprintf("%02x %02x %02x %02x", r["tuner 05"]&0x60, r["tuner 17"]&0x08, r["tuner 1a"]&0xc3, r["tuner 1b"]))
		}
	}
	return bands
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// dial connects to a server that may not listen yet.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-again.C {
		if conn, err := net.Dial("tcp", address); err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
	}
	t.Fatalf("nobody listens at %s", address)
	return nil
}
