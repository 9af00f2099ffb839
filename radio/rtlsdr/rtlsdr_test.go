package rtlsdr_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/rtlsdr"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// bench is one emulated board that hears what is given, in lock-step.
func bench(t testing.TB, r virtual.Radio, hears func(dst []complex64, first int64)) *virtual.Bench {
	t.Helper()
	cfg := virtual.Config{Boards: []virtual.Place{{Radio: r}}}
	if hears != nil {
		cfg.Ears = []virtual.Ear{{Noise: adder(hears)}}
	}
	b, err := virtual.NewBench(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

type adder func(dst []complex64, first int64)

func (a adder) Add(dst []complex64, first int64) { a(dst, first) }

// front returns the host of boards, which a build with USB replaces.
var front = inProcess

func inProcess(_ testing.TB, boards ...virtual.Board) usb.Host { return virtual.NewHost(boards...) }

func board(t testing.TB, cfg virtual.RTL2832UConfig) *virtual.RTL2832U {
	t.Helper()
	b, err := virtual.NewRTL2832U(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func tryOpen(ctx context.Context, h usb.Host, uri string) (radio.Device, error) {
	return openWith(ctx, h, radio.TransmitPermit{}, uri)
}

func openWith(ctx context.Context, h usb.Host, permit radio.TransmitPermit, uri string) (radio.Device, error) {
	reg, err := radio.NewRegistry(map[string]radio.Opener{"rtlsdr": rtlsdr.NewOpener(h, permit)})
	if err != nil {
		return nil, err
	}
	return reg.Open(ctx, uri)
}

func open(t testing.TB, h usb.Host, uri string) radio.Device {
	t.Helper()
	d, err := tryOpen(t.Context(), h, uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// ramp is a signal that differs from sample to sample, and beyond full scale.
func ramp(dst []complex64, first int64) {
	for k := range dst {
		i := first + int64(k)
		dst[k] += complex(float32(i%300)/100-1.5, float32(i%7)/8)
	}
}

// What arrives is what the antenna hears, in 256 levels of 1/128 of which half are
// positive, clipped beyond, with indices that count on.
func TestReceive(t *testing.T) {
	radiotest.Leaks(t)
	for _, tuner := range []virtual.RTLTuner{virtual.R820T, virtual.R828D} {
		b := board(t, virtual.RTL2832UConfig{Tuner: tuner})
		bench(t, b, ramp)
		d := open(t, front(t, b), "rtlsdr:?hold=on")
		rx := radiotest.Started(t, d)
		const n = 100_000
		x, meta := radiotest.Read(t, rx, n)
		clipped := radio.SampleCount(0)
		for k, got := range x {
			var want [1]complex64
			ramp(want[:], int64(k))
			if q := complex(quantised(real(want[0])), quantised(imag(want[0]))); got != q {
				t.Fatalf("sample %d is %v instead of %v, of %v", k, got, q, want[0])
			}
			if real(want[0]) < -127.0/128 || real(want[0]) >= 127.0/128 {
				clipped++
			}
		}
		if meta.First != 0 || meta.Epoch != rx.Epoch() || len(meta.Changes)+len(meta.Gaps) > 0 ||
			meta.Flags != radio.HostCounted|radio.Clipped || meta.Clipped != clipped {
			t.Errorf("%+v, with %d clipped", meta, clipped)
		}
		if limit := radio.ClipLevel(rx); limit != 127.5/128 {
			t.Errorf("clip level %v", limit)
		}
		if _, meta := radiotest.Read(t, rx, 5); meta.First != n {
			t.Errorf("goes on at %d", meta.First)
		}
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		if rx.State() != radio.Closed {
			t.Errorf("the stream is %v", rx.State())
		}
	}
}

// quantised is the middle of the level that v falls into.
func quantised(v float32) float32 {
	level := min(max(math.Floor(float64(v)*128), -128), 127)
	return float32((level + 0.5) / 128)
}

// A frequency is taken to the nearest step, and the board is there as its own
// registers say, with either tuner and at any rate.
func TestTuning(t *testing.T) {
	for _, tuner := range []virtual.RTLTuner{virtual.R820T, virtual.R828D} {
		b := board(t, virtual.RTL2832UConfig{Tuner: tuner})
		bench(t, b, nil)
		d := open(t, front(t, b), "rtlsdr:")
		f, r := d.(radio.FrequencyControl), d.(radio.RateControl)
		for _, rate := range []radio.Hertz{250e3, 1e6, 2.048e6, 2.4e6, 3.2e6} {
			if got, err := r.SetSampleRate(t.Context(), radio.Receive, rate); err != nil || math.Abs(float64(got/rate-1)) > 1e-6 || got != r.SampleRate(radio.Receive) {
				t.Fatalf("rate %v is taken as %v: %v", rate, got, err)
			}
			span := f.Frequencies(radio.Receive)
			for _, want := range []radio.Hertz{span.Min, 54.3e6, 100e6, 299.999e6, 433.92e6, 868.3e6, 1575.42e6, span.Max} {
				got, err := f.SetFrequency(t.Context(), radio.Receive, want)
				// Half a step of the synthesizer and one of the demodulator.
				if err != nil || math.Abs(float64(got-want)) > 28.8e6/(1<<16)/2+7 {
					t.Errorf("%v: %v is taken as %v: %v", rate, want, got, err)
				}
				if at := b.State().Frequency; math.Abs(float64(at-got)) > 1e-3 || f.Frequency(radio.Receive) != got {
					t.Errorf("%v: at %v, says %v and %v", rate, at, got, f.Frequency(radio.Receive))
				}
			}
			for _, no := range []radio.Hertz{span.Min - 1, span.Max + 1, radio.Hertz(math.NaN())} {
				if got, err := f.SetFrequency(t.Context(), radio.Receive, no); err == nil || !strings.Contains(err.Error(), "allowed is") {
					t.Errorf("%v is taken as %v: %v", no, got, err)
				}
			}
		}
		if _, err := r.SetSampleRate(t.Context(), radio.Receive, 500e3); err == nil || !strings.Contains(err.Error(), "225.001 kHz to 300 kHz and 900.001 kHz to 3.2 MHz") {
			t.Error(err)
		}
	}
}

// The gain that is taken is what the tuner's two amplifiers do.
func TestGain(t *testing.T) {
	b := board(t, virtual.RTL2832UConfig{})
	heard := float32(0.001)
	bench(t, b, func(dst []complex64, _ int64) {
		for k := range dst {
			dst[k] += complex(heard, 0)
		}
	})
	d := open(t, front(t, b), "rtlsdr:?hold=on")
	g := d.(rtlsdr.AutoGainControl)
	stages := g.GainStages(radio.Receive)
	if len(stages) != 1 || stages[0].Span.Max != 49.6 || len(g.GainStages(radio.Transmit)) != 0 {
		t.Fatalf("%+v", stages)
	}
	for _, want := range []radio.Decibels{0, 0.9, 7.7, 20, 40.2, 49.6} {
		got, err := g.SetGain(t.Context(), radio.Receive, stages[0].Name, want)
		if now, _ := g.Gain(radio.Receive, stages[0].Name); err != nil || got > want || now != got {
			t.Fatalf("%v is taken as %v, then %v: %v", want, got, now, err)
		}
		rx := radiotest.Started(t, d)
		x, _ := radiotest.Read(t, rx, 1)
		if level := quantised(heard * float32(got.Amplitude())); real(x[0]) != level {
			t.Errorf("%v gives %v instead of %v", want, real(x[0]), level)
		}
		if err := rx.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.SetAutoGain(t.Context(), radio.Receive); err != nil {
		t.Fatal(err)
	}
	if now, err := g.Gain(radio.Receive, stages[0].Name); err == nil {
		t.Errorf("automatic gain is %v", now)
	}
	for stage, gain := range map[string]radio.Decibels{"LNA": 0, stages[0].Name: 50} {
		if _, err := g.SetGain(t.Context(), radio.Receive, stage, gain); err == nil || !strings.Contains(err.Error(), "allowed is") {
			t.Errorf("%s %v: %v", stage, gain, err)
		}
	}
	if _, err := g.SetGain(t.Context(), radio.Transmit, stages[0].Name, 0); err == nil || !strings.Contains(err.Error(), "allowed is receive") {
		t.Error(err)
	}
}

// In test mode the board counts bytes: what a reader who is late loses is where
// the gaps say it is, and nothing else is lost.
func TestGapsAreExact(t *testing.T) {
	radiotest.Leaks(t)
	b := board(t, virtual.RTL2832UConfig{})
	bn := bench(t, b, nil)
	d := open(t, front(t, b), "rtlsdr:?test=on&ring=4&transfers=2&transfer=4096")
	rx := radiotest.Started(t, d)
	var lost radio.SampleCount
	for range 10 {
		// More than ring and queue hold goes by.
		for end := bn.Index() + 100_000; bn.Index() < end; {
			runtime.Gosched()
		}
		x, meta := radiotest.Read(t, rx, 5000)
		for k, got := range x {
			at := int64(meta.Index(k))
			i := float32(byte(2*at)) - 127.5
			if got != complex(i/128, (float32(byte(2*at+1))-127.5)/128) {
				t.Fatalf("index %d is %v", at, got)
			}
		}
		for _, g := range meta.Gaps {
			if !g.Exact || g.Length <= 0 || meta.Flags&radio.Overrun == 0 {
				t.Fatalf("%+v", meta)
			}
			lost += g.Length
		}
	}
	if lost == 0 {
		t.Error("nothing was lost")
	}
	// A read up to an index ends there though the loss lies across it.
	bounded := rx.(radio.Bounded)
	_, meta := radiotest.Read(t, rx, 1)
	until := meta.First + 300
	for at := meta.First; at < until-1; {
		x := make([]complex64, 200)
		n, meta, err := bounded.ReadUntil(t.Context(), x, until)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if at = meta.Index(n - 1); at >= until {
			t.Fatalf("index %d was read, at most %d", at, until-1)
		}
	}
}

// tuned is a board whose antenna hears how it is tuned: 0.25 at a first frequency,
// 0.5 at any other.
type tuned struct {
	*virtual.RTL2832U
	first radio.Hertz
}

func (b *tuned) Receive(src []complex64) {
	level := complex64(0.5)
	if math.Abs(float64(b.Activity().Frequency-b.first)) < 1000 {
		level = 0.25
	}
	for k := range src {
		src[k] = level
	}
	b.RTL2832U.Receive(src)
}

// A retune in mid-stream: no sample of the epoch before is of after, none of the
// epoch after is of before.
func TestRetune(t *testing.T) {
	b := &tuned{board(t, virtual.RTL2832UConfig{}), 100e6}
	bench(t, b, nil)
	d := open(t, front(t, b), "rtlsdr:?freq_hz=100e6&hold=on&ring=4&transfers=3&transfer=1024")
	rx := radiotest.Started(t, d)
	first := rx.Epoch()
	if _, meta := radiotest.Read(t, rx, 3000); meta.Epoch != first || len(meta.Changes) > 0 {
		t.Fatalf("%+v", meta)
	}
	if _, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 200e6); err != nil {
		t.Fatal(err)
	}
	last := rx.Epoch()
	if last <= first {
		t.Fatalf("epoch %d after %d", last, first)
	}
	x, meta := radiotest.Read(t, rx, 60_000)
	low, high := quantised(0.25), quantised(0.5)
	seen := map[radio.Epoch]int{}
	for k := range x {
		e := meta.EpochAt(k)
		seen[e]++
		if e == first && real(x[k]) != low || e == last && real(x[k]) != high {
			t.Fatalf("sample %d of epoch %d is %v", k, e, real(x[k]))
		}
	}
	// What is in a block that was begun is of the epoch before.
	if len(seen) != 3 || seen[last] == 0 {
		t.Errorf("epochs and their samples: %v; the last is %d", seen, last)
	}
	// Another retune before the first has settled.
	for _, f := range []radio.Hertz{100e6, 300e6} {
		if _, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, f); err != nil {
			t.Fatal(err)
		}
	}
	x, meta = radiotest.Read(t, rx, 60_000)
	for k := range x {
		if e := meta.EpochAt(k); e == rx.Epoch() && real(x[k]) != high || e > rx.Epoch() {
			t.Fatalf("sample %d of epoch %d is %v", k, e, real(x[k]))
		}
	}
	if meta.EpochAt(len(x)-1) != rx.Epoch() {
		t.Errorf("never settles: %+v", meta)
	}
}

func TestStates(t *testing.T) {
	radiotest.Leaks(t)
	b := board(t, virtual.RTL2832UConfig{})
	bench(t, b, nil)
	d := open(t, front(t, b), "rtlsdr:?hold=on")
	rx := radiotest.Receiver(t, d)
	x := make([]complex64, 10)
	if _, _, err := rx.Read(t.Context(), x); !errors.Is(err, radio.ErrNotStarted) || rx.State() != radio.Ready {
		t.Errorf("%v: %v", rx.State(), err)
	}
	if _, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if _, err := d.(radio.RateControl).SetSampleRate(t.Context(), radio.Receive, 1e6); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	if err := rx.Start(t.Context()); err != nil || rx.State() != radio.Running {
		t.Fatal(err)
	}
	if err := rx.Start(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Error(err)
	}
	radiotest.Read(t, rx, 10)
	first := rx.Epoch()
	if err := errors.Join(rx.Close(), rx.Close()); err != nil {
		t.Error(err)
	}
	if _, _, err := rx.Read(t.Context(), x); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if err := rx.Start(t.Context()); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	again := radiotest.Started(t, d)
	if again.Epoch() <= first {
		t.Errorf("epoch %d after %d", again.Epoch(), first)
	}
	if _, meta := radiotest.Read(t, again, 10); meta.First != 0 || meta.Epoch != again.Epoch() {
		t.Errorf("%+v", meta)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context()); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if _, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 100e6); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
	if _, _, err := again.Read(t.Context(), x); !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// A closed stream and a closed board send no more: a bench in lock-step would wait
// for them.
func TestCloseStopsTheBoard(t *testing.T) {
	b := board(t, virtual.RTL2832UConfig{})
	bench(t, b, nil)
	d := open(t, front(t, b), "rtlsdr:?hold=on")
	rx := radiotest.Started(t, d)
	radiotest.Read(t, rx, 10)
	if s := b.State(); !s.Receiving {
		t.Errorf("%+v", s)
	}
	if err := rx.Close(); err != nil {
		t.Fatal(err)
	}
	if s := b.State(); s.Receiving {
		t.Errorf("%+v", s)
	}
}

// What waits in a stream ends when the stream, the context or the board does.
func TestWaitingEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(cancel func(), rx radio.Receiver, d radio.Device, b *virtual.RTL2832U)
		want error
	}{
		{"context", func(cancel func(), _ radio.Receiver, _ radio.Device, _ *virtual.RTL2832U) { cancel() }, context.Canceled},
		{"stream", func(_ func(), rx radio.Receiver, _ radio.Device, _ *virtual.RTL2832U) { _ = rx.Close() }, radio.ErrClosed},
		{"device", func(_ func(), _ radio.Receiver, d radio.Device, _ *virtual.RTL2832U) { _ = d.Close() }, radio.ErrClosed},
		{"unplug", func(_ func(), _ radio.Receiver, _ radio.Device, b *virtual.RTL2832U) { b.Unplug() }, usb.ErrUnplugged},
	} {
		t.Run(c.name, func(t *testing.T) {
			radiotest.Leaks(t)
			b := board(t, virtual.RTL2832UConfig{})
			clock := &loopback.ManualClock{} // at which nothing comes
			bn, err := virtual.NewBench(virtual.Config{Boards: []virtual.Place{{Radio: b}}, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = bn.Close() })
			d := open(t, front(t, b), "rtlsdr:?deadline_ms=0")
			rx := radiotest.Started(t, d)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error)
			go func() {
				_, _, err := rx.Read(ctx, make([]complex64, 10))
				ended <- err
			}()
			c.end(cancel, rx, d, b)
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("%v instead of %v", err, c.want)
			}
			if err := rx.Close(); err != nil {
				t.Errorf("closing the stream: %v", err)
			}
			if err := d.Close(); err != nil {
				t.Errorf("closing the device: %v", err)
			}
		})
	}
}

// A read that was given up has lost nothing.
func TestCancelKeepsSamples(t *testing.T) {
	b := board(t, virtual.RTL2832UConfig{})
	bench(t, b, nil)
	d := open(t, front(t, b), "rtlsdr:?test=on&hold=on")
	rx := radiotest.Started(t, d)
	radiotest.Read(t, rx, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if _, _, err := rx.Read(ctx, make([]complex64, 100)); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	x, meta := radiotest.Read(t, rx, 100)
	if u := float32(byte(2*meta.First)) - 127.5; real(x[0]) != u/128 {
		t.Errorf("index %d is %v", meta.First, x[0])
	}
}

// A board that sends nothing is found out, and told apart from one that is gone.
func TestSilence(t *testing.T) {
	b := board(t, virtual.RTL2832UConfig{})
	f := virtual.NewFaulty(b)
	bench(t, b, nil)
	if err := f.OnTransfer(0x81, 1, virtual.Hang); err != nil {
		t.Fatal(err)
	}
	d := open(t, front(t, f), "rtlsdr:?deadline_ms=20")
	rx := radiotest.Started(t, d)
	_, _, err := rx.Read(t.Context(), make([]complex64, 10))
	if !errors.Is(err, usb.ErrTimeout) || errors.Is(err, usb.ErrUnplugged) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// faultStep is how many requests lie between two that are made to fail.
var faultStep = 5

// faultSession opens a dongle, tunes it and receives a while.
func faultSession(t *testing.T, h usb.Host, deadline int) error {
	d, err := tryOpen(t.Context(), h, fmt.Sprintf("rtlsdr:?hold=on&transfers=4&deadline_ms=%d", deadline))
	if err != nil {
		return err
	}
	_, err = d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 433e6)
	rx, openErr := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	if openErr != nil {
		return errors.Join(err, openErr, d.Close())
	}
	if startErr := rx.Start(t.Context()); startErr == nil {
		_, _, readErr := radio.ReadFull(t.Context(), rx, make([]complex64, 50_000))
		err = errors.Join(err, readErr)
	} else {
		err = errors.Join(err, startErr)
	}
	return errors.Join(err, rx.Close(), d.Close())
}

// Whatever request or transfer fails, however, the driver ends with an error of
// its kind or none, closes, and leaves nothing behind.
func TestFaults(t *testing.T) {
	kinds := map[virtual.Fault]error{virtual.Stall: usb.ErrStall, virtual.Hang: usb.ErrTimeout, virtual.Vanish: usb.ErrUnplugged, virtual.Short: nil}
	for fault, kind := range kinds {
		t.Run(fault.String(), func(t *testing.T) {
			radiotest.Leaks(t)
			deadline := 60_000
			if fault == virtual.Hang {
				deadline = 50
			}
			plan := func(name string, apply func(f *virtual.Faulty) error) {
				b := board(t, virtual.RTL2832UConfig{})
				f := virtual.NewFaulty(b)
				bn, err := virtual.NewBench(virtual.Config{Boards: []virtual.Place{{Radio: b}}})
				if err != nil {
					t.Fatal(err)
				}
				defer bn.Close()
				if err := apply(f); err != nil {
					t.Fatal(err)
				}
				err = faultSession(t, front(t, f), deadline)
				f.Unplug()
				// A stall is also how a tuner that is not there answers.
				absent := fault == virtual.Stall && err != nil && strings.Contains(err.Error(), "tuner answers")
				if err != nil && kind != nil && !errors.Is(err, kind) && !absent {
					t.Errorf("%s: %v", name, err)
				}
			}
			step := faultStep
			if os.Getenv("RINGWAVE_LONG") == "1" {
				step = 1
			}
			if fault == virtual.Hang {
				step *= 8 // each costs a timeout
			}
			requests := []int{88, 89} // the questions to the tuner, of which a stall is an answer
			for nth := 1; nth < 400; nth += step {
				requests = append(requests, nth)
			}
			for _, nth := range requests {
				plan(fmt.Sprintf("request %d", nth), func(f *virtual.Faulty) error { return f.OnRequest(0, nth, fault) })
			}
			for nth := 1; nth < 8; nth++ {
				plan(fmt.Sprintf("transfer %d", nth), func(f *virtual.Faulty) error { return f.OnTransfer(0x81, nth, fault) })
			}
		})
	}
}

func TestBoards(t *testing.T) {
	noTuner := board(t, virtual.RTL2832UConfig{Tuner: virtual.NoTuner})
	bench(t, noTuner, nil)
	if _, err := tryOpen(t.Context(), front(t, noTuner), "rtlsdr:"); err == nil || !strings.Contains(err.Error(), "other tuners are not supported") {
		t.Error(err)
	}
	biased := board(t, virtual.RTL2832UConfig{BiasTee: true, Serial: "77771111153705700"})
	bench(t, biased, nil)
	d := open(t, front(t, biased), "rtlsdr:5700")
	if biased.State().BiasTee {
		t.Error("the bias tee is on")
	}
	got := radio.Describe(d).String()
	for _, want := range []string{
		"rtlsdr:5700, Realtek RTL2838UHIDIR, serial 77771111153705700, revision R820T/R820T2, driver rtlsdr",
		"receive: yes", "receive frequency: 99.999", "receive sample rate: 2.048 MHz (225.001 kHz to 3.2 MHz)",
		"receive gain TUNER: 0 dB (0 dB to 49.6 dB)", "indices: counted by the host", "note: this driver was tried on emulated boards only",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Power at the antenna's port must be permitted, and is off behind Close.
func TestBias(t *testing.T) {
	b := board(t, virtual.RTL2832UConfig{})
	bench(t, b, ramp)
	h := front(t, b)
	if _, err := tryOpen(t.Context(), h, "rtlsdr:?bias=on"); !errors.Is(err, radio.ErrNotPermitted) || !strings.Contains(err.Error(), "radio.bias_tee = true") {
		t.Error(err)
	}
	if b.State().BiasTee {
		t.Error("the bias tee is on, unasked")
	}
	d, err := openWith(t.Context(), h, radio.TransmitPermit{}.WithBias(), "rtlsdr:?bias=on")
	if err != nil {
		t.Fatal(err)
	}
	if !b.State().BiasTee {
		t.Error("the bias tee is off")
	}
	if err := d.Close(); err != nil || b.State().BiasTee {
		t.Errorf("behind Close the bias tee is on: %v; %v", b.State().BiasTee, err)
	}
}

// A synthesizer that does not lock is told of, and the board is used all the same.
func TestUnlocked(t *testing.T) {
	b := board(t, virtual.RTL2832UConfig{Unlocked: true})
	bench(t, b, ramp)
	d := open(t, front(t, b), "rtlsdr:?freq_hz=433.92e6&hold=on")
	const told = "note: the tuner's synthesizer does not lock at 433.9199"
	if got := radio.Describe(d).String(); !strings.Contains(got, told) {
		t.Errorf("no %q in\n%s", told, got)
	}
	radiotest.Read(t, radiotest.Started(t, d), 1000)
	locks := board(t, virtual.RTL2832UConfig{})
	bench(t, locks, nil)
	if got := radio.Describe(open(t, front(t, locks), "rtlsdr:")).String(); strings.Contains(got, "does not lock") {
		t.Error(got)
	}
}

// Direct sampling tunes the demodulator, to either side of 0 of nothing else.
func TestDirectSampling(t *testing.T) {
	b := board(t, virtual.RTL2832UConfig{})
	bench(t, b, ramp)
	d := open(t, front(t, b), "rtlsdr:?direct=q&freq_hz=7.1e6&hold=on")
	if f := d.(radio.FrequencyControl); math.Abs(float64(f.Frequency(radio.Receive)-7.1e6)) > 7 || b.State().Frequency != f.Frequency(radio.Receive) {
		t.Errorf("at %v, says %v", b.State().Frequency, f.Frequency(radio.Receive))
	}
	radiotest.Read(t, radiotest.Started(t, d), 1000)
	if g := d.(radio.GainControl); len(g.GainStages(radio.Receive)) > 0 {
		t.Error(g.GainStages(radio.Receive))
	}
	if _, err := d.(radio.GainControl).Gain(radio.Receive, "TUNER"); err == nil {
		t.Error("there is a gain")
	}
}

func TestChoice(t *testing.T) {
	var boards []virtual.Board
	for _, serial := range []string{"00000001", "00000001", "00000042"} {
		b := board(t, virtual.RTL2832UConfig{Serial: serial})
		bench(t, b, nil)
		boards = append(boards, b)
	}
	h := front(t, boards...)
	for uri, serial := range map[string]string{
		"rtlsdr:42": "00000042", "rtlsdr:?index=2": "00000042", "rtlsdr:01?index=1": "00000001", "rtlsdr:?at=001/002": "00000001",
	} {
		if d := open(t, h, uri); d.Info().Serial != serial {
			t.Errorf("%s opens %+v", uri, d.Info())
		} else if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for uri, want := range map[string]string{
		"rtlsdr:":                                 `can be several boards; allowed is a serial number that only one has, at= one of the addresses, or index=0 to 2: 001/001 (serial "00000001"), 001/002`,
		"rtlsdr:1":                                "or index=0 to 1",
		"rtlsdr:7":                                "was not found; there are 001/001",
		"rtlsdr:?at=002/001":                      "was not found",
		"rtlsdr:1?index=2":                        "index=2; allowed is 0 to 1",
		"rtlsdr:?index=x":                         "index=x; allowed is a whole number from 0 to 1000",
		"rtlsdr:?speed=1":                         `the parameter "speed"; allowed is index, at, freq_hz`,
		"rtlsdr:42?gain=50":                       "gain=50; allowed is a number from 0 to 49.6",
		"rtlsdr:42?gain=loud":                     "gain=loud; allowed is a number from 0 to 49.6",
		"rtlsdr:42?ppm=0.5":                       "ppm=0.5; allowed is a whole number from -400 to 400",
		"rtlsdr:42?rate_hz=5e5":                   "rate_hz=5e5; allowed is 225001 to 300000 and 900001 to 3200000",
		"rtlsdr:42?rate_hz=nan":                   "rate_hz=nan; allowed is",
		"rtlsdr:42?freq_hz=1e6":                   "the frequency is 1 MHz; allowed is",
		"rtlsdr:42?agc=1":                         "agc=1; allowed is off, on",
		"rtlsdr:42?direct=i&gain=3":               "gain=3; allowed is none beside direct",
		"rtlsdr:42?test=on&agc=on":                "agc=on; allowed is off beside test=on",
		"rtlsdr:42?transfer=1048576&transfers=17": "transfers=17; allowed is 1 to 16 of transfer=1048576",
		"rtlsdr:42?transfer=100":                  "transfer=100; allowed is a whole number from 512 to 1048576, a multiple of 512",
	} {
		if d, err := tryOpen(t.Context(), h, uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: %v", uri, d, err)
		}
	}
	if _, err := tryOpen(t.Context(), front(t), "rtlsdr:"); err == nil || !strings.Contains(err.Error(), "no board with an RTL2832U is plugged in") {
		t.Error(err)
	}
	if _, err := tryOpen(t.Context(), usb.System(), "rtlsdr:"); errors.Is(err, usb.ErrNoUSBBuild) != strings.Contains(fmt.Sprint(err), "-tags usb") {
		t.Error(err)
	}
}

// blocked is a host with one board that cannot be opened.
type blocked struct {
	usb.Host
	why     error
	product string
}

func (h blocked) List(context.Context, func(usb.Identity) bool) ([]usb.Listed, error) {
	return []usb.Listed{{Address: usb.Address{Bus: 1, Device: 2}, Blocked: h.why, Product: h.product}}, nil
}

// What keeps a board from being opened is told with what to do about it.
func TestBlocked(t *testing.T) {
	for want, h := range map[string]blocked{
		"blacklist dvb_usb_rtl28xxu":                {why: usb.ErrDriverBound},
		"Debian's package rtl-sdr":                  {why: usb.ErrAccess},
		"another program":                           {why: usb.ErrInUse},
		"whose inputs are switched in another way;": {product: "Blog V4"},
	} {
		_, err := tryOpen(t.Context(), h, "rtlsdr:")
		if err == nil || !strings.Contains(err.Error(), want) || h.why != nil && !errors.Is(err, h.why) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := tryOpen(t.Context(), blocked{why: usb.ErrDriverBound}, "rtlsdr:1"); err == nil || !strings.Contains(err.Error(), "blacklist") {
		t.Error(err)
	}
}

// Settings and reads from several goroutines at once, for the race detector, under which
// each setting takes a second of emulated transfers through libusb: two of each suffice for
// all to meet.
func TestConcurrent(t *testing.T) {
	settings := 8
	if testing.Short() {
		settings = 2
	}
	radiotest.Leaks(t)
	b := board(t, virtual.RTL2832UConfig{})
	bench(t, b, ramp)
	d := open(t, front(t, b), "rtlsdr:")
	rx := radiotest.Started(t, d)
	var wg sync.WaitGroup
	for k := range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range settings {
				_, _ = d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, radio.Hertz(100e6+float64(k*8+i)*1e6))
				_, _ = d.(radio.GainControl).SetGain(t.Context(), radio.Receive, "TUNER", radio.Decibels(i))
				_ = rx.Epoch()
				_ = radio.Describe(d).String()
			}
		}()
	}
	radiotest.Read(t, rx, 200_000)
	wg.Wait()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// stuck is a board that hears as many samples as it is let, on a machine that fetches
// nothing while it is held up.
type stuck struct {
	*virtual.RTL2832U
	held sync.Mutex // while nothing is queued again
	left atomic.Int64
}

func (b *stuck) Queue(endpoint byte, data []byte, done func(n int, err error)) (cancel func()) {
	b.held.Lock()
	defer b.held.Unlock()
	return b.RTL2832U.Queue(endpoint, data, done)
}

func (b *stuck) Activity() virtual.Activity {
	a := b.RTL2832U.Activity()
	a.Room = min(a.Room, int(b.left.Load()))
	return a
}

func (b *stuck) Receive(src []complex64) {
	b.left.Add(-int64(len(src)))
	b.RTL2832U.Receive(src)
}

// A machine that is busy elsewhere for 0.6 s loses nothing, whatever the rate, and no
// sample waits for long for the transfer that it is in.
func TestQueueOutlastsAStall(t *testing.T) {
	for _, rate := range []radio.Hertz{225_001, 300_000, 900_001, 1e6, 2.048e6, 2.4e6, 3.2e6} {
		t.Run(rate.String(), func(t *testing.T) {
			b := &stuck{RTL2832U: board(t, virtual.RTL2832UConfig{})}
			bn := bench(t, b, nil)
			d := open(t, inProcess(t, b), fmt.Sprintf("rtlsdr:?test=on&deadline_ms=0&rate_hz=%d", int64(rate)))
			n := int64(d.(interface{ BufferSamples() radio.SampleCount }).BufferSamples())
			if float64(n) > 0.04*float64(rate) {
				t.Errorf("a transfer is %d samples, more than 40 ms", n)
			}
			b.left.Store(n)
			rx := radiotest.Started(t, d)
			radiotest.Read(t, rx, int(n)) // so that the first transfer is queued again
			b.held.Lock()
			// In lock-step time goes on as far as the board has room, and no further.
			b.left.Store(1 << 40)
			lost := b.State().Lost
			stall := bn.Index() - n
			b.left.Store(0)
			b.held.Unlock()
			if least := int64(0.6 * float64(rate)); stall < least || lost > 0 {
				t.Fatalf("the queue takes %d samples while nothing is fetched, want %d; %d were lost", stall, least, lost)
			}
			t.Logf("%d samples, %.2f s", stall, float64(stall)/float64(rate))
			x, meta := radiotest.Read(t, rx, int(stall/n*n)) // whole transfers arrive
			for k := range x {
				if at := byte(2 * (int(n) + k)); real(x[k]) != (float32(at)-127.5)/128 {
					t.Fatalf("sample %d is %v", k, x[k])
				}
			}
			if len(meta.Gaps) > 0 {
				t.Errorf("%+v", meta)
			}
		})
	}
}

// A retune has settled when all that can be in flight was read, and not long after.
func TestSettlingTime(t *testing.T) {
	for rate, most := range map[radio.Hertz]float64{225_001: 11, 1e6: 3.4, 2.4e6: 1.9, 3.2e6: 1.5} {
		b := &tuned{board(t, virtual.RTL2832UConfig{}), 100e6}
		bench(t, b, nil)
		d := open(t, front(t, b), fmt.Sprintf("rtlsdr:?freq_hz=100e6&hold=on&deadline_ms=0&rate_hz=%d", int64(rate)))
		rx := radiotest.Started(t, d)
		first := rx.Epoch()
		radiotest.Read(t, rx, 3000)
		if _, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 200e6); err != nil {
			t.Fatal(err)
		}
		last, settled := rx.Epoch(), 0
		x := make([]complex64, 1<<16)
		for settled == 0 {
			n, meta, err := rx.Read(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			for k := range n {
				e := meta.EpochAt(k)
				if e == first && real(x[k]) != quantised(0.25) || e == last && real(x[k]) != quantised(0.5) {
					t.Fatalf("%v: sample %d of epoch %d is %v", rate, meta.Index(k), e, real(x[k]))
				}
				if e == last && settled == 0 {
					settled = int(meta.Index(k))
				}
			}
		}
		if s := float64(settled) / float64(rate); s > most {
			t.Errorf("%v: settled after %.2f s of samples, want %.1f at most", rate, s, most)
		}
	}
}
