//go:build soapy && cgo

package native_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/radiotest"
	"ringwave/radio/soapy"
	"ringwave/radio/soapy/native"
	"ringwave/radio/soapy/soapytest"
)

var (
	rx = soapy.Channel{Direction: radio.Receive}
	tx = soapy.Channel{Direction: radio.Transmit}
)

// made opens a board of the module.
func made(t testing.TB, b *soapytest.Bench, serial, more string) soapy.Board {
	t.Helper()
	args, err := soapy.ParseArgs(more)
	ok(t, err)
	for k, v := range b.Args(serial) {
		args[k] = v
	}
	board, err := b.Backend.Make(t.Context(), radio.URI{}, args)
	ok(t, err)
	t.Cleanup(func() { board.Close() })
	return board
}

// streaming returns a stream of CS16 that is active.
func streaming(t testing.TB, b soapy.Board, at soapy.Channel) soapy.Stream {
	t.Helper()
	s, err := b.SetupStream(t.Context(), at, "CS16", nil)
	ok(t, err)
	ok(t, s.Activate(t.Context(), 0, 0))
	return s
}

// got fails unless a call gave a value.
func got[T any](t *testing.T, what string, value, want T, err error, same func(T, T) bool) {
	t.Helper()
	if err != nil || !same(value, want) {
		t.Errorf("%s gives %v, %v, want %v", what, value, err, want)
	}
}

func equal[T comparable](a, b T) bool { return a == b }

// Each call reaches the module and brings back what it says.
func TestCalls(t *testing.T) {
	board := made(t, bench(t), "CALLS", "channels=2")
	ctx := t.Context()
	h, err := board.Hardware(ctx)
	if err != nil || h.Driver != soapytest.Driver || h.Key != "Ringtest" || h.Info["serial"] != "CALLS" || h.Info["fw_version"] != "1.2" {
		t.Errorf("the board is %+v, %v", h, err)
	}
	texts, sources := slices.Equal[[]string], []string{"internal", "external", "gpsdo"}
	ranges := slices.Equal[[]soapy.Range]
	n, err := board.Channels(ctx, radio.Transmit)
	got(t, "Channels", n, 2, err, equal)
	duplex, err := board.FullDuplex(ctx, rx)
	got(t, "FullDuplex", duplex, true, err, equal)
	list, err := board.Formats(ctx, rx)
	got(t, "Formats", list, []string{"CF32", "CS16", "CS8"}, err, texts)
	name, scale, err := board.NativeFormat(ctx, tx)
	got(t, "NativeFormat", name, "CS16", err, equal)
	got(t, "NativeFormat", scale, 32768, err, equal)
	list, err = board.Antennas(ctx, rx)
	got(t, "Antennas", list, []string{"RX2", "TX/RX"}, err, texts)
	ok(t, board.SetAntenna(ctx, rx, "TX/RX"))
	name, err = board.Antenna(ctx, rx)
	got(t, "Antenna", name, "TX/RX", err, equal)
	list, err = board.Gains(ctx, tx)
	got(t, "Gains", list, []string{"PAD", "IAMP"}, err, texts)
	r, err := board.GainRange(ctx, tx, "IAMP")
	got(t, "GainRange", r, soapy.Range{Min: 0, Max: 12, Step: 2}, err, equal)
	second := soapy.Channel{Direction: radio.Transmit, Number: 1}
	ok(t, board.SetGain(ctx, second, "PAD", 17))
	v, err := board.Gain(ctx, second, "PAD")
	got(t, "Gain of channel 1", v, 17, err, equal)
	v, err = board.Gain(ctx, tx, "PAD")
	got(t, "Gain of channel 0", v, 0, err, equal)
	there, err := board.HasGainMode(ctx, rx)
	got(t, "HasGainMode", there, true, err, equal)
	ok(t, board.SetGainMode(ctx, rx, false))
	all, err := board.FrequencyRange(ctx, rx)
	got(t, "FrequencyRange", all, []soapy.Range{{Min: 10e6, Max: 6e9}}, err, ranges)
	ok(t, board.SetFrequency(ctx, rx, 433.92e6))
	v, err = board.Frequency(ctx, rx)
	got(t, "Frequency", v, 433.92e6, err, equal)
	all, err = board.SampleRateRange(ctx, rx)
	got(t, "SampleRateRange", all, []soapy.Range{{Min: 1e5, Max: 61.44e6}}, err, ranges)
	ok(t, board.SetSampleRate(ctx, rx, 2e6))
	v, err = board.SampleRate(ctx, rx)
	got(t, "SampleRate", v, 2e6, err, equal)
	all, err = board.BandwidthRange(ctx, tx)
	got(t, "BandwidthRange", all, []soapy.Range{{Min: 200e3, Max: 56e6}}, err, ranges)
	ok(t, board.SetBandwidth(ctx, tx, 5e6))
	v, err = board.Bandwidth(ctx, tx)
	got(t, "Bandwidth", v, 5e6, err, equal)
	list, err = board.ClockSources(ctx)
	got(t, "ClockSources", list, sources, err, texts)
	ok(t, board.SetClockSource(ctx, "external"))
	name, err = board.ClockSource(ctx)
	got(t, "ClockSource", name, "external", err, equal)
	list, err = board.TimeSources(ctx)
	got(t, "TimeSources", list, sources, err, texts)
	ok(t, board.SetTimeSource(ctx, "gpsdo"))
	name, err = board.TimeSource(ctx)
	got(t, "TimeSource", name, "gpsdo", err, equal)
	list, err = board.Sensors(ctx)
	got(t, "Sensors", list[:1], []string{"ref_locked"}, err, texts)
	ok(t, board.WriteSetting(ctx, "ref", "unlocked"))
	name, err = board.ReadSensor(ctx, "ref_locked")
	got(t, "ReadSensor", name, "false", err, equal)
	list, err = board.ChannelSensors(ctx, rx)
	got(t, "ChannelSensors", list, []string{"lo_locked"}, err, texts)
	name, err = board.ReadChannelSensor(ctx, rx, "lo_locked")
	got(t, "ReadChannelSensor", name, "true", err, equal)
	ok(t, board.WriteChannelSetting(ctx, rx, "ref", "locked"))
	name, err = board.ReadSensor(ctx, "ref_locked")
	got(t, "ReadSensor", name, "true", err, equal)
	there, err = board.HasHardwareTime(ctx, "PPS")
	got(t, "HasHardwareTime", there, true, err, equal)
	ok(t, board.SetHardwareTime(ctx, 5e9, ""))
	now, err := board.HardwareTime(ctx, "")
	if err != nil || now < 5e9 {
		t.Errorf("behind 5 s the clock shows %d, %v", now, err)
	}
}

// Errors are the module's own words, with the warning behind them, of the call that failed
// and of no other.
func TestWords(t *testing.T) {
	b := bench(t)
	board := made(t, b, "WORDS", "")
	ctx := t.Context()
	ok(t, board.WriteSetting(ctx, "throw", "setFrequency"))
	for range 3 {
		if err := board.SetFrequency(ctx, rx, 1e9); err == nil || !strings.Contains(err.Error(), "the board ringtest WORDS refuses setFrequency") {
			t.Fatalf("a setter that throws gives %v", err)
		}
		ok(t, board.SetGain(ctx, rx, "LNA", 3))
	}
	if _, err := board.ReadSensor(ctx, "nose"); err == nil || !strings.Contains(err.Error(), "ringtest has no sensor nose") {
		t.Errorf("a getter that throws gives %v", err)
	}
	if _, err := board.SetupStream(ctx, rx, "CS12", nil); err == nil {
		t.Error("a stream of a format that there is not")
	}
	if _, err := board.SetupStream(ctx, rx, "none", nil); !errors.Is(err, soapy.ErrNotSupported) {
		t.Errorf("a format that SoapySDR has not gives %v", err)
	}
	args := b.Args("OLD")
	args["fails"] = "no answer"
	_, err := b.Backend.Make(ctx, radio.URI{}, args)
	if err == nil || errors.Is(err, native.ErrNoModule) || !strings.Contains(err.Error(), "no answer") || !strings.Contains(err.Error(), "the firmware is too old") {
		t.Errorf("a board that does not open gives %v", err)
	}
}

// A driver without a module is named, with what modules there are.
func TestNoModule(t *testing.T) {
	b := bench(t)
	_, err := b.Backend.Make(t.Context(), radio.URI{}, soapy.Args{"driver": "nosuch"})
	if !errors.Is(err, native.ErrNoModule) || !strings.Contains(err.Error(), "driver=nosuch") || !strings.Contains(err.Error(), "libringtest.so") {
		t.Errorf("a driver without a module gives %v", err)
	}
	found, err := b.Backend.Find(t.Context(), radio.URI{}, soapy.Args{"driver": "nosuch"})
	if err != nil || len(found) != 0 {
		t.Errorf("it finds %v, %v", found, err)
	}
}

// Find lists boards; Make with the same arguments gives the same board, which is there until
// both are given back, and no other program has meanwhile.
func TestSameBoard(t *testing.T) {
	b := bench(t)
	t.Setenv("RINGTEST_BOARDS", "X,Y")
	found, err := b.Backend.Find(t.Context(), radio.URI{}, soapy.Args{"driver": soapytest.Driver})
	ok(t, err)
	if len(found) != 2 || found[0]["serial"] != "X" || found[1]["serial"] != "Y" || found[1]["driver"] != soapytest.Driver {
		t.Errorf("it finds %v", found)
	}
	one, two := made(t, b, "X", ""), made(t, b, "X", "")
	ok(t, one.SetFrequency(t.Context(), tx, 777e6))
	f, err := two.Frequency(t.Context(), tx)
	got(t, "Frequency of the same board", f, 777e6, err, equal)
	ok(t, one.Close())
	ok(t, one.Close())
	if _, err := one.Frequency(t.Context(), tx); !errors.Is(err, radio.ErrClosed) {
		t.Errorf("a closed board gives %v", err)
	}
	if out := another(t, "X"); !strings.Contains(out, "in use by another program") {
		t.Errorf("another program says of it: %s", out)
	}
	ok(t, two.Close())
	if out := another(t, "X"); !strings.Contains(out, "opened X") {
		t.Errorf("another program says of the board that was given back: %s", out)
	}
}

// another opens a board with SoapySDR's own program.
func another(t *testing.T, serial string) string {
	t.Helper()
	path, err := exec.LookPath("SoapySDRUtil")
	if err != nil {
		radiotest.Missing(t, "SoapySDRUtil is not installed (on Debian: apt-get install soapysdr-tools)")
	}
	out, _ := exec.Command(path, "--make=driver="+soapytest.Driver+",serial="+serial).CombinedOutput() // it fails on purpose
	return string(out)
}

// A burst is heard at its time, by the sample, and its end is acknowledged; one that is late
// and one that runs dry are told of.
func TestBursts(t *testing.T) {
	board := made(t, bench(t), "BURSTS", "mtu=1000")
	ctx := t.Context()
	in, out := streaming(t, board, rx), streaming(t, board, tx)
	if in.MTU() != 1000 {
		t.Errorf("the MTU is %d", in.MTU())
	}
	burst := make([]byte, 4*300)
	for i := range 300 {
		binary.LittleEndian.PutUint16(burst[4*i:], uint16(i+1))
	}
	now, err := board.HardwareTime(ctx, "")
	ok(t, err)
	at := (now + 500e6) / 1000 * 1000
	write := func(from []byte, info soapy.BlockInfo) {
		t.Helper()
		n, err := out.Write(ctx, from, info, radiotest.Patience)
		if n != len(from) || err != nil {
			t.Fatalf("%d of %d bytes were taken: %v", n, len(from), err)
		}
	}
	write(burst[:400], soapy.BlockInfo{Flags: soapy.HasTime, At: at})
	write(burst[400:], soapy.BlockInfo{Flags: soapy.EndBurst})
	block := make([]byte, 4*in.MTU())
	var heard []uint16
	for first := soapy.Time(0); len(heard) < 300; {
		n, info, err := in.Read(ctx, block, radiotest.Patience)
		ok(t, err)
		if info.Flags&soapy.HasTime == 0 || n%4 != 0 || n == 0 {
			t.Fatalf("%d bytes with the flags %v", n, info.Flags)
		}
		for i := range n / 4 {
			if v := binary.LittleEndian.Uint16(block[4*i:]); v != 0 {
				if first == 0 {
					first = info.At + soapy.Time(i)*1000
				}
				heard = append(heard, v)
			}
		}
		if first != 0 && (first < at-500 || first > at+500) {
			t.Fatalf("heard at %d, sent for %d", first, at)
		}
	}
	for i, v := range heard {
		if v != uint16(i+1) {
			t.Fatalf("sample %d is %d", i, v)
		}
	}
	info, err := out.Status(ctx, radiotest.Patience)
	if err != nil || info.Flags != soapy.EndBurst|soapy.HasTime || info.At < at {
		t.Errorf("behind the burst there is %+v, %v", info, err)
	}
	write(burst, soapy.BlockInfo{Flags: soapy.HasTime | soapy.EndBurst, At: at})
	if info, err := out.Status(ctx, radiotest.Patience); !errors.Is(err, soapy.ErrLate) || info.At < at-500 || info.At > at+500 {
		t.Errorf("of a late burst there is %+v, %v", info, err)
	}
	write(burst, soapy.BlockInfo{})
	if _, err := out.Status(ctx, radiotest.Patience); !errors.Is(err, soapy.ErrUnderflow) {
		t.Errorf("of a burst that ran dry there is %v", err)
	}
	if _, err := out.Status(ctx, time.Millisecond); !errors.Is(err, soapy.ErrTimeout) {
		t.Errorf("without news there is %v", err)
	}
	if _, err := in.Status(ctx, time.Millisecond); !errors.Is(err, soapy.ErrNotSupported) {
		t.Errorf("of a stream that has none there is %v", err)
	}
	ok(t, out.Deactivate(ctx, 0, 0))
	if err := out.Activate(ctx, soapy.HasTime, at); !errors.Is(err, soapy.ErrLate) {
		t.Errorf("activating in the past gives %v", err)
	}
}

// Faults of streams are codes, and go on behind those that do not end them.
func TestCodes(t *testing.T) {
	board := made(t, bench(t), "CODES", "counter=on")
	ctx := t.Context()
	in := streaming(t, board, rx)
	block := make([]byte, 4*in.MTU())
	// What was read ahead comes first.
	const ahead = 64
	for setting, want := range map[string]soapy.Code{"overflow": soapy.ErrOverflow, "stream_error": soapy.ErrStream, "corrupt": soapy.ErrCorruption, "timeouts": soapy.ErrTimeout} {
		ok(t, board.WriteSetting(ctx, setting, "1"))
		var err error
		for k := 0; k < ahead && err == nil; k++ {
			_, _, err = in.Read(ctx, block, 100*time.Millisecond)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s gives %v", setting, err)
		}
		_, _, err = in.Read(ctx, block, radiotest.Patience)
		ok(t, err)
	}
	// Samples that are lost without a word show by their times, and by what they count.
	n, first, err := in.Read(ctx, block, radiotest.Patience)
	ok(t, err)
	begun := binary.LittleEndian.Uint32(block)
	ok(t, board.WriteSetting(ctx, "lose", "77"))
	var lost uint32
	samples := n / 4
	for k := 0; k < ahead && lost == 0; k++ {
		next := binary.LittleEndian.Uint32(block) + uint32(samples)
		n, info, err := in.Read(ctx, block, radiotest.Patience)
		ok(t, err)
		samples = n / 4
		counted := binary.LittleEndian.Uint32(block)
		if told := uint32((info.At - first.At) / 1000); told != counted-begun {
			t.Fatalf("times tell of %d samples, there were %d", told, counted-begun)
		}
		lost = counted - next
	}
	if lost != 77 {
		t.Errorf("of 77 samples that are lost %d show", lost)
	}
	ok(t, board.WriteSetting(ctx, "gone", "on"))
	for k := 0; k < ahead && err == nil; k++ {
		_, _, err = in.Read(ctx, block, radiotest.Patience)
	}
	if err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("a board that is gone gives %v", err)
	}
}

// Who waits for a call that hangs goes when the context ends. The board is given back when the
// call has returned, and is not while it has not.
func TestHanging(t *testing.T) {
	radiotest.Goroutines(t)
	b := bench(t)
	hangs := fmt.Sprint("HANGS", time.Now().UnixNano()) // it stays open
	board := made(t, b, hangs, "")
	in := streaming(t, board, rx)
	ok(t, board.WriteSetting(t.Context(), "hang", "readStream"))
	ok(t, board.WriteSetting(t.Context(), "hang", "setFrequency"))
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := board.SetFrequency(limited, rx, 1e9); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that hangs gives %v", err)
	}
	limited, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := in.Read(limited, make([]byte, 4000), time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read that hangs gives %v", err)
	}
	// The same board by another handle, to end it.
	other := made(t, b, hangs, "")
	native.Closing(board, 10*time.Millisecond)
	if err := board.Close(); err == nil || !strings.Contains(err.Error(), "not given back") || !strings.Contains(err.Error(), "stream is not closed") {
		t.Errorf("closing a board that hangs gives %v", err)
	}
	ok(t, other.WriteSetting(t.Context(), "hang", "none"))

	// One that returns in time is closed.
	slow := made(t, b, "SLOW", "")
	ok(t, slow.WriteSetting(t.Context(), "hang", "setFrequency:100"))
	limited, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := slow.SetFrequency(limited, rx, 1e9); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that is slow gives %v", err)
	}
	ok(t, slow.Close())
	if out := another(t, "SLOW"); !strings.Contains(out, "opened SLOW") {
		t.Errorf("the board that was slow was not given back: %s", out)
	}
}

// A board may be closed while its streams are read and written.
func TestCloseMeanwhile(t *testing.T) {
	radiotest.Goroutines(t)
	b := bench(t)
	for range 20 {
		board := made(t, b, "MEANWHILE", "latency_us=0")
		in, out := streaming(t, board, rx), streaming(t, board, tx)
		ended := make(chan error, 3)
		until := func(f func() error) {
			var err error
			for err == nil || errors.Is(err, soapy.ErrTimeout) || errors.Is(err, soapy.ErrUnderflow) {
				err = f()
			}
			ended <- err
		}
		begun := make(chan struct{})
		go until(func() error {
			_, _, err := in.Read(context.Background(), make([]byte, 400), time.Millisecond)
			select {
			case begun <- struct{}{}:
			default:
			}
			return err
		})
		go until(func() error {
			_, err := out.Write(context.Background(), make([]byte, 400), soapy.BlockInfo{}, time.Millisecond)
			return err
		})
		go until(func() error { _, err := out.Status(context.Background(), time.Millisecond); return err })
		<-begun
		ok(t, board.Close())
		for range 3 {
			if err := <-ended; !errors.Is(err, radio.ErrClosed) {
				t.Fatalf("a stream of a closed board gives %v", err)
			}
		}
	}
}

// The library prints nothing, and a program that has it shows what it says only in errors.
func TestPrintsNothing(t *testing.T) {
	const variable = "RINGWAVE_TEST_OPENS"
	b := bench(t)
	if os.Getenv(variable) != "" {
		made(t, b, "QUIET", "").Close()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPrintsNothing$", "-test.v=false")
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Env = append(os.Environ(), variable+"=1")
	if err := cmd.Run(); err != nil || said.Len() > 0 {
		t.Errorf("a program that opens a board prints %q, %v", said.String(), err)
	}
}
