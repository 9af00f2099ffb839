//go:build linux

package remote_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/remote"
	"ringwave/radio/soapy/soapytest"
	"ringwave/radio/usb"
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
	if modules, err := filepath.Glob("/usr/lib/*/SoapySDR/modules*/libHackRFSupport.so"); len(modules) == 0 {
		radiotest.Missing(t, fmt.Sprintf("SoapySDR's module for HackRFs is not installed (on Debian: apt-get install soapysdr-module-hackrf): %v", err))
	}
	cmd := radiotest.Tool(t, bus, "soapyremote-server", "SoapySDRServer", "--bind=127.0.0.1:"+freePort(t))
	s := &server{address: strings.TrimPrefix(cmd.Args[1], "--bind="), cmd: cmd, ended: make(chan struct{})}
	// It does not start without a bus of its system's, to which it tells its name.
	cmd.Env = append(append(cmd.Env, "DBUS_SYSTEM_BUS_ADDRESS="+soapytest.DBus(t)), env...)
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

const (
	serialA = "0000000000000000a06063c8234e5f5f"
	serialB = "000000000000000087c867dc2b6a3bcf"
)

var (
	receive  = soapy.Channel{Direction: radio.Receive}
	transmit = soapy.Channel{Direction: radio.Transmit}
)

// bench is boards on a bench in real time, with a server in front of them.
func bench(t testing.TB, cfg virtual.Config, serials ...string) (*server, []*virtual.HackRF) {
	t.Helper()
	radiotest.Goroutines(t)
	var boards []*virtual.HackRF
	for _, s := range serials {
		h := radiotest.HackRF(t, virtual.HackRFConfig{Serial: s})
		boards, cfg.Boards = append(boards, h), append(cfg.Boards, virtual.Place{Radio: h})
	}
	cfg.Clock = loopback.WallClock()
	bus := radiotest.Bus(t)
	radiotest.Bench(t, cfg)
	for _, h := range boards {
		must[usb.Address](t)(bus.Plug(h))
	}
	return serve(t, bus), boards
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for what a server does in its own time.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(radiotest.Patience); !is(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, radiotest.Patience)
		}
	}
}

// What Debian's server and its module for HackRFs say is what SoapySDR's own programs show,
// and what is set is what the board has.
func TestSettings(t *testing.T) {
	s, boards := bench(t, virtual.Config{}, serialA, serialB)
	where := parse(t, "soapy-remote:"+s.address)
	found := must[[]soapy.Args](t)(remote.New(&patient{}).Find(t.Context(), where, soapy.Args{"driver": "hackrf"}))
	slices.SortFunc(found, func(a, b soapy.Args) int { return strings.Compare(a["serial"], b["serial"]) })
	_, stop := found[0]["soapy_remote_no_deeper"] // which is not the caller's
	if len(found) != 2 || found[0]["serial"] != serialB || found[1]["driver"] != "hackrf" || stop {
		t.Errorf("found %v", found)
	}
	b, h, ctx := made(t, s, "", soapy.Args{"driver": "hackrf", "serial": serialB}), boards[1], t.Context()
	hw := must[soapy.Hardware](t)(b.Hardware(ctx))
	if hw.Driver != "HackRF" || hw.Key != "HackRF One" || hw.Info["serial"] != serialB || hw.Info["version"] != "2022.09.1" {
		t.Errorf("hardware %v", hw)
	}
	format, scale, err := b.NativeFormat(ctx, transmit)
	ranges := must[[]soapy.Range](t)
	gain, err2 := b.GainRange(ctx, transmit, "VGA")
	ok(t, err, err2)
	for _, c := range []struct{ got, want any }{
		{must[int](t)(b.Channels(ctx, radio.Transmit)), 1},
		{must[bool](t)(b.FullDuplex(ctx, receive)), false},
		{must[[]string](t)(b.Formats(ctx, receive)), []string{"CS8", "CS16", "CF32", "CF64"}},
		{[]any{format, scale}, []any{"CS8", 128.0}},
		{must[[]string](t)(b.Antennas(ctx, receive)), []string{"TX/RX"}},
		{must[string](t)(b.Antenna(ctx, transmit)), "TX/RX"},
		{must[[]string](t)(b.Gains(ctx, transmit)), []string{"VGA", "AMP"}},
		{gain, soapy.Range{Max: 47}},
		{must[bool](t)(b.HasGainMode(ctx, receive)), false},
		{ranges(b.FrequencyRange(ctx, receive)), []soapy.Range{{Max: 7.25e9}}},
		{ranges(b.SampleRateRange(ctx, receive))[19], soapy.Range{Min: 20e6, Max: 20e6}},
		{ranges(b.BandwidthRange(ctx, receive))[0], soapy.Range{Min: 1.75e6, Max: 1.75e6}},
		{must[[]string](t)(b.ClockSources(ctx)), []string(nil)},
		{must[[]string](t)(b.TimeSources(ctx)), []string(nil)},
		{must[bool](t)(b.HasHardwareTime(ctx, "")), false},
		{must[soapy.Time](t)(b.HardwareTime(ctx, "")), soapy.Time(0)},
		{must[[]string](t)(b.Sensors(ctx)), []string(nil)},
		{must[[]string](t)(b.ChannelSensors(ctx, receive)), []string(nil)},
		{must[string](t)(b.ReadSensor(ctx, "none")), ""},
		{must[string](t)(b.ReadChannelSensor(ctx, receive, "none")), ""},
		{must[string](t)(b.ClockSource(ctx)), ""},
		{must[string](t)(b.TimeSource(ctx)), ""},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%#v, want %#v", c.got, c.want)
		}
	}
	ok(t, b.SetAntenna(ctx, receive, "TX/RX"), b.SetGainMode(ctx, receive, false), b.SetClockSource(ctx, "external"),
		b.SetTimeSource(ctx, "none"), b.SetHardwareTime(ctx, 5, ""), b.WriteSetting(ctx, "bias_tx", "true"),
		b.WriteChannelSetting(ctx, receive, "none", "none"),
		b.SetFrequency(ctx, receive, 2.45e9+1), b.SetSampleRate(ctx, receive, 10e6), b.SetBandwidth(ctx, receive, 5e6),
		b.SetGain(ctx, receive, "LNA", 24), b.SetGain(ctx, receive, "VGA", 30), b.SetGain(ctx, receive, "AMP", 14))
	want := virtual.Settings{Frequency: 2.45e9 + 1, Rate: 10e6, Filter: 5e6, Gains: virtual.Gains{LNA: 24, VGA: 30}, BiasTee: true}
	if got := h.Settings(); got != want {
		t.Errorf("the board has\n%+v, want\n%+v", got, want)
	}
	for _, c := range []struct{ got, want float64 }{
		{must[float64](t)(b.Frequency(ctx, receive)), 2.45e9 + 1},
		{must[float64](t)(b.SampleRate(ctx, receive)), 10e6},
		{must[float64](t)(b.Bandwidth(ctx, receive)), 5e6},
		{must[float64](t)(b.Gain(ctx, receive, "LNA")), 24},
		{must[float64](t)(b.Gain(ctx, receive, "AMP")), 14}, // which the board has when it streams
	} {
		if c.got != c.want {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	ok(t, b.Close(), b.Close())
	if _, err := b.Channels(ctx, radio.Receive); !errors.Is(err, soapy.ErrGone) {
		t.Errorf("a board that is closed: %v", err)
	}
}

// A board that another client has, or that is not there, is the server's to refuse, in its
// words.
func TestRefused(t *testing.T) {
	s, _ := bench(t, virtual.Config{}, serialA)
	made(t, s, "", soapy.Args{"driver": "hackrf"})
	for _, args := range []soapy.Args{{"driver": "hackrf", "serial": serialB}, {"driver": "none"}} {
		b, err := remote.New(&patient{}).Make(t.Context(), parse(t, "soapy-remote:"+s.address), args)
		if err == nil || !strings.HasPrefix(err.Error(), "SoapyRemote server "+s.address+": it refused: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, %v", args, b, err)
		}
	}
}

type adder func(dst []complex64, first int64)

func (a adder) Add(dst []complex64, first int64) { a(dst, first) }

// numbered is a signal whose samples say their number, modulo 65536.
func numbered(dst []complex64, first int64) {
	for k := range dst {
		i := first + int64(k)
		dst[k] = complex(float32(int8(i))/128, float32(int8(i>>8))/128)
	}
}

func alike(t testing.TB, b soapy.Board, dir soapy.Channel, rate float64) {
	t.Helper()
	ctx := t.Context()
	ok(t, b.SetSampleRate(ctx, dir, rate), b.SetFrequency(ctx, dir, 433.92e6), b.SetGain(ctx, dir, "VGA", map[soapy.Channel]float64{receive: 20}[dir]))
	if dir == receive {
		ok(t, b.SetGain(ctx, dir, "LNA", 8))
	}
}

// variants are parameters of streams.
func variants() []string {
	if long() {
		return []string{"", "?stream=udp", "?mtu=1000&window=65536", "?stream=udp&mtu=4144"}
	}
	return []string{"", "?stream=udp"}
}

// What the antenna hears comes byte for byte, over TCP and UDP, but for what the board or the
// module lost and said so.
func TestReceives(t *testing.T) {
	for _, params := range variants() {
		t.Run(params, func(t *testing.T) {
			s, boards := bench(t, virtual.Config{Ears: []virtual.Ear{{Noise: adder(numbered)}}}, serialA)
			b := made(t, s, params, soapy.Args{"driver": "hackrf"})
			alike(t, b, receive, 4e6)
			rx := must[soapy.Stream](t)(b.SetupStream(t.Context(), receive, "CS8", soapy.Args{"buffers": "32"}))
			ok(t, rx.Activate(t.Context(), 0, 0))
			r := reader{t: t, rx: rx, dst: make([]byte, 2*rx.MTU()), follow: func(n uint16) uint16 { return n + 1 }}
			r.run()
			if _, err := rx.Status(t.Context(), time.Second); !errors.Is(err, soapy.ErrNotSupported) {
				t.Errorf("news of a stream that has none: %v", err)
			}
			ok(t, rx.Deactivate(t.Context(), 0, 0))
			if mode := boards[0].Settings().Mode; mode != virtual.ModeOff {
				t.Errorf("mode %d behind Deactivate", mode)
			}
			// It may be activated again.
			ok(t, rx.Activate(t.Context(), 0, 0))
			r.take()
			ok(t, rx.Close(), rx.Close(), b.Close())
			if mode := boards[0].Settings().Mode; mode != virtual.ModeOff {
				t.Errorf("mode %d behind Close", mode)
			}
		})
	}
}

// reader looks for numbers, one after the other, in what is received.
type reader struct {
	t      testing.TB
	rx     soapy.Stream
	dst    []byte
	follow func(n uint16) uint16
	next   uint16
	inRow  int
}

// run reads until enough numbers have come one after the other. The module for HackRFs gives
// an old buffer now and then, when one comes from the board while it hands out another: it
// counts with what it has handed out already.
func (r *reader) run() {
	r.t.Helper()
	const enough, most = 500_000, 50_000_000
	for all := 0; r.inRow < enough; all += len(r.dst) / 2 {
		if all > most {
			r.t.Fatalf("%d samples of %d come one after the other", r.inRow, all)
		}
		r.take()
	}
}

// take reads a block.
func (r *reader) take() {
	r.t.Helper()
	n, info, err := r.rx.Read(r.t.Context(), r.dst, radiotest.Patience)
	if errors.Is(err, soapy.ErrOverflow) {
		r.inRow = 0
		return
	}
	if err != nil || n == 0 || n%2 != 0 || info.Flags&soapy.HasTime != 0 {
		r.t.Fatalf("%d bytes, %+v, %v", n, info, err)
	}
	for k := 0; k < n; k += 2 {
		number := binary.LittleEndian.Uint16(r.dst[k:])
		if number != r.next {
			r.inRow = 0
		}
		r.next = r.follow(number)
		r.inRow++
	}
}

// What is written is sent, in its order and whole, and the board is off behind Deactivate
// although samples still are on their way then.
func TestTransmits(t *testing.T) {
	for _, params := range variants() {
		t.Run(params, func(t *testing.T) { transmits(t, params) })
	}
}

func transmits(t *testing.T, params string) {
	s, boards := bench(t, virtual.Config{Links: []virtual.Link{{From: 0, To: 1, Gain: 1}}, Await: []int{0, 1}}, serialA, serialB)
	from, to := made(t, s, params, soapy.Args{"serial": serialA}), made(t, s, "", soapy.Args{"serial": serialB})
	alike(t, from, transmit, 4e6)
	alike(t, to, receive, 4e6)
	ctx := t.Context()
	rx := must[soapy.Stream](t)(to.SetupStream(ctx, receive, "CS8", soapy.Args{"buffers": "64"}))
	tx := must[soapy.Stream](t)(from.SetupStream(ctx, transmit, "CS8", soapy.Args{"buffers": "4"}))
	if boards[0].Carrier() {
		t.Fatal("a carrier before Activate")
	}
	ok(t, rx.Activate(ctx, 0, 0), tx.Activate(ctx, 0, 0))
	if !boards[0].Carrier() {
		t.Fatal("no carrier behind Activate")
	}
	wrote := make(chan error, 1)
	go func() { wrote <- numbers(ctx, tx) }()
	r := reader{t: t, rx: rx, dst: make([]byte, 2*rx.MTU()), follow: after}
	r.run()
	underruns := 0
	for {
		_, err := tx.Status(ctx, 0)
		if errors.Is(err, soapy.ErrTimeout) {
			break
		}
		if !errors.Is(err, soapy.ErrUnderflow) {
			t.Fatal(err)
		}
		underruns++
	}
	t.Logf("%d times there was nothing to send", underruns)
	// The writer goes on: what is on its way must not switch the board on again.
	ok(t, tx.Deactivate(ctx, 0, 0))
	for heard := 0; heard < 1_200_000; heard += rx.MTU() { // longer than the server's threads wait
		r.take()
	}
	if boards[0].Carrier() {
		t.Error("a carrier behind Deactivate")
	}
	if err := <-wrote; !errors.Is(err, soapy.ErrStream) {
		t.Errorf("a write behind Deactivate: %v", err)
	}
	ok(t, tx.Close(), rx.Close(), from.Close(), to.Close())
	if boards[0].Carrier() {
		t.Error("a carrier behind Close")
	}
}

// after returns the number that follows: 0 is silence.
func after(n uint16) uint16 {
	if n == 65535 {
		return 1
	}
	return n + 1
}

// numbers writes numbered samples until an error.
func numbers(ctx context.Context, tx soapy.Stream) error {
	buf, next := make([]byte, 2*tx.MTU()), uint16(1)
	for left := []byte(nil); ; {
		if len(left) == 0 {
			left = buf
			for i := 0; i < len(buf); i += 2 {
				binary.LittleEndian.PutUint16(buf[i:], next)
				next = after(next)
			}
		}
		n, err := tx.Write(ctx, left, soapy.BlockInfo{}, 100*time.Millisecond)
		if err != nil && !errors.Is(err, soapy.ErrTimeout) {
			return err
		}
		left = left[n:]
	}
}
