package loopback_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/loopback"
)

const rate radio.Hertz = 1e6

// samples returns n samples that are exact in float32 sums: integers.
func samples(seed uint64, n int) []complex64 {
	rnd := rand.New(rand.NewPCG(seed, 1))
	x := make([]complex64, n)
	for k := range x {
		x[k] = complex(float32(rnd.IntN(201)-100), float32(rnd.IntN(201)-100))
	}
	return x
}

func medium(t testing.TB, cfg loopback.Config) *loopback.Medium {
	t.Helper()
	if cfg.Rate == 0 {
		cfg.Rate = rate
	}
	cfg.Name = "bench"
	m, err := loopback.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func transmitter(t testing.TB, m *loopback.Medium, i int) radio.Transmitter {
	t.Helper()
	d, err := m.Transmitter(i)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := d.(radio.TransmitOpener).OpenTransmitter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tx
}

func receiver(t testing.TB, m *loopback.Medium, start radio.SampleIndex) radio.Receiver {
	t.Helper()
	d, err := m.Receiver(start)
	if err != nil {
		t.Fatal(err)
	}
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := rx.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rx
}

func write(t testing.TB, tx radio.Transmitter, x []complex64, meta radio.TxMeta) {
	t.Helper()
	if n, err := tx.Write(t.Context(), x, meta); n != len(x) || err != nil {
		t.Fatalf("wrote %d of %d: %v", n, len(x), err)
	}
}

func idle(t testing.TB, tx radio.Transmitter, until radio.SampleIndex) {
	t.Helper()
	if err := tx.(radio.Idler).Idle(t.Context(), until); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, rx radio.Receiver, n int) ([]complex64, radio.Meta) {
	t.Helper()
	x := make([]complex64, n)
	got, meta, err := radio.ReadFull(t.Context(), rx, x)
	if got != n || err != nil {
		t.Fatalf("read %d of %d: %v", got, n, err)
	}
	return x, meta
}

// done is a context that is over: Event polls with it.
func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func events(tx radio.Transmitter) []radio.Event {
	var all []radio.Event
	for {
		e, err := tx.Event(done())
		if err != nil {
			return all
		}
		all = append(all, e)
	}
}

func equal(t *testing.T, got, want []complex64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d samples instead of %d", len(got), len(want))
	}
	for k := range want {
		if got[k] != want[k] {
			t.Fatalf("sample %d is %v instead of %v", k, got[k], want[k])
		}
	}
}

// y[n] = sum_i g_i x_i[n - d_i], sample by sample, whatever the blocks.
func TestSuperposition(t *testing.T) {
	gains := []complex64{1, 3, -2 + 1i}
	delays := []int{0, 7, 5000}
	const n = 20000
	cfg := loopback.Config{}
	for i := range gains {
		cfg.Devices = append(cfg.Devices, loopback.Device{Gain: gains[i], Delay: radio.SampleCount(delays[i])})
	}
	want := make([]complex64, n)
	m := medium(t, cfg)
	for i, g := range gains {
		x := samples(uint64(i), n)
		for k := range n - delays[i] {
			want[k+delays[i]] += g * x[k]
		}
		tx := transmitter(t, m, i)
		for at, size := 0, 1; at < n; at, size = at+size, min(size*2+1, n) {
			write(t, tx, x[at:min(n, at+size)], radio.TxMeta{})
		}
	}
	rx := receiver(t, m, 0)
	var got []complex64
	for _, k := range []int{1, 2, 2047, 2048, 2049, 10000, n - 16147} {
		x, meta := read(t, rx, k)
		if meta.First != radio.SampleIndex(len(got)) || len(meta.Gaps) > 0 || meta.Flags != 0 || meta.Epoch != 1 {
			t.Fatalf("at %d: %+v", len(got), meta)
		}
		got = append(got, x...)
	}
	equal(t, got, want)
}

// lowpass is y[n] = x[n] + x[n-1], with a check that calls follow each other.
type lowpass struct {
	t    *testing.T
	last complex64
	next int64
}

func (p *lowpass) Apply(dst, src []complex64, first int64) {
	if first != p.next {
		p.t.Errorf("a path is called at index %d instead of %d", first, p.next)
	}
	p.next = first + int64(len(src))
	for k, x := range src {
		dst[k] = x + p.last
		p.last = x
	}
}

type plusOne struct{}

func (plusOne) Add(dst []complex64, _ int64) {
	for k := range dst {
		dst[k]++
	}
}

// limit clips at 100.
type limit struct{}

func (limit) Convert(dst []complex64, _ int64) (clipped int) {
	for k, x := range dst {
		if real(x) > 100 {
			dst[k] = complex(100, imag(x))
			clipped++
		}
	}
	return clipped
}

func TestPathNoiseConverter(t *testing.T) {
	const n, delay = 9000, 11
	x := samples(3, n)
	want := make([]complex64, n)
	clipped := radio.SampleCount(0)
	for k := range want {
		if j := k - delay; j >= 0 {
			want[k] = 2 * x[j]
			if j > 0 {
				want[k] += 2 * x[j-1]
			}
		}
		if want[k]++; real(want[k]) > 100 {
			want[k] = complex(100, imag(want[k]))
			clipped++
		}
	}
	m := medium(t, loopback.Config{
		Devices: []loopback.Device{{Gain: 2, Delay: delay, Path: &lowpass{t: t, next: -delay}}},
		Noise:   plusOne{}, Converter: limit{},
	})
	tx, rx := transmitter(t, m, 0), receiver(t, m, 0)
	write(t, tx, x[:1000], radio.TxMeta{})
	a, metaA := read(t, rx, 900)
	write(t, tx, x[1000:], radio.TxMeta{})
	b, metaB := read(t, rx, n-900)
	equal(t, append(a, b...), want)
	if got := metaA.Clipped + metaB.Clipped; got != clipped || metaB.Flags != radio.Clipped {
		t.Errorf("%d clipped instead of %d, flags %v", got, clipped, metaB.Flags)
	}
}

func TestSuperpositionFunction(t *testing.T) {
	m := medium(t, loopback.Config{
		Devices: []loopback.Device{{Gain: 2}, {Gain: 3}},
		Superpose: func(dst []complex64, arriving [][]complex64, first int64) {
			for k := range dst {
				dst[k] = arriving[0][k]*arriving[1][k] + complex(float32(first+int64(k)), 0)
			}
		},
	})
	for i := range 2 {
		write(t, transmitter(t, m, i), []complex64{1, 2i, 3}, radio.TxMeta{})
	}
	got, _ := read(t, receiver(t, m, 0), 3)
	equal(t, got, []complex64{6, -24 + 1, 54 + 2})
}

// Blocks with a time, idle stretches and silence of muted and closed devices.
func TestTimedAndIdle(t *testing.T) {
	m := medium(t, loopback.Config{Devices: make([]loopback.Device, 4)})
	for i := range 4 {
		if err := m.SetGain(i, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Mute(3); err != nil {
		t.Fatal(err)
	}
	a, b, c := transmitter(t, m, 0), transmitter(t, m, 1), transmitter(t, m, 2)
	write(t, a, []complex64{1, 2}, radio.TxMeta{Timed: true, Start: 3, BurstEnd: true})
	write(t, a, []complex64{9, 9, 9}, radio.TxMeta{Timed: true, Start: 4}) // late
	write(t, a, []complex64{3}, radio.TxMeta{Timed: true, Start: 6})
	idle(t, a, radio.Forever)
	idle(t, b, 5)
	write(t, b, []complex64{10}, radio.TxMeta{})
	idle(t, b, 1)
	idle(t, b, 10)
	write(t, c, []complex64{100}, radio.TxMeta{})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := read(t, receiver(t, m, 0), 10)
	equal(t, got, []complex64{100, 0, 0, 1, 2, 10, 3, 0, 0, 0})
	want := []radio.Event{
		{Kind: radio.Late, Index: 4, Exact: true, Count: 3, Epoch: 1},
		{Kind: radio.BurstSent, Index: 5, Exact: true, Epoch: 1},
	}
	if e := events(a); fmt.Sprint(e) != fmt.Sprint(want) {
		t.Errorf("events %+v instead of %+v", e, want)
	}
}

// Each fault where it was put, with positions that ReadFull and Read agree on.
func TestFaults(t *testing.T) {
	const n = 12000
	x := samples(5, n)
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1, Delay: 3}}})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(m.Drop(100, 50))
	check(m.Drop(5000, 3000))
	check(m.Drop(5500, 2600)) // reaches to 8100
	check(m.Underrun(0, 200, 10))
	check(m.Underrun(0, 9000, 2500)) // longer than what is mixed at a time
	check(m.Retune(0, 300, loopback.Radians(0)))
	check(m.RetuneReceiver(400, 0))
	check(m.SetGain(0, 1000, 2))
	tx, rx := transmitter(t, m, 0), receiver(t, m, 0)
	write(t, tx, x, radio.TxMeta{})
	air := make([]complex64, n) // three samples late, and twice as strong from 1000 on
	copy(air[3:], x[:n-3])
	for k := 1003; k < n; k++ {
		air[k] *= 2
	}
	clear(air[203:213])
	clear(air[9003:11503])
	want := slices.Concat(air[:100], air[150:5000], air[8100:])
	got, meta := read(t, rx, len(want))
	equal(t, got, want)
	wantMeta := radio.Meta{
		Epoch: 1, Flags: radio.Overrun,
		Gaps:    []radio.Gap{{At: 100, Length: 50, Exact: true}, {At: 4950, Length: 3100, Exact: true}},
		Changes: []radio.EpochChange{{At: 350, Epoch: 2}},
	}
	if fmt.Sprint(meta) != fmt.Sprint(wantMeta) {
		t.Errorf("meta %+v instead of %+v", meta, wantMeta)
	}
	if meta.Index(99) != 99 || meta.Index(100) != 150 || meta.Index(4950) != 8100 || meta.EpochAt(349) != 1 || meta.EpochAt(350) != 2 {
		t.Error("indices or epochs are not where they should be")
	}
	wantEvents := []radio.Event{
		{Kind: radio.Underrun, Index: 200, Exact: true, Count: 10, Epoch: 1},
		{Kind: radio.EpochChanged, Index: 300, Exact: true, Epoch: 2},
		{Kind: radio.Underrun, Index: 9000, Exact: true, Count: 2500, Epoch: 2},
	}
	if e := events(tx); fmt.Sprint(e) != fmt.Sprint(wantEvents) {
		t.Errorf("events %+v instead of %+v", e, wantEvents)
	}
	if err := m.Drop(50, 1); err == nil || !strings.Contains(err.Error(), "index 50; allowed is 12000 to") {
		t.Errorf("a loss in the past: %v", err)
	}
	if err := m.SetGain(0, 50, 1); err == nil || !strings.Contains(err.Error(), "allowed is 11997 to") {
		t.Errorf("a change of gain in the past: %v", err)
	}
}

// A retune turns the phase by its angle and begins an epoch at once.
func TestRetuneTurnsThePhase(t *testing.T) {
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1}}})
	tx, rx := transmitter(t, m, 0), receiver(t, m, 0)
	if err := m.Retune(0, 2, loopback.Radians(3.141592653589793)); err != nil {
		t.Fatal(err)
	}
	write(t, tx, []complex64{1, 1, 1, 1}, radio.TxMeta{})
	got, _ := read(t, rx, 4)
	for k, want := range []complex64{1, 1, -1, -1} {
		if d := got[k] - want; real(d)*real(d)+imag(d)*imag(d) > 1e-12 {
			t.Errorf("sample %d is %v instead of %v", k, got[k], want)
		}
	}
	d, err := m.Transmitter(0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Transmit, 300e9)
	if f != 300e9 || err != nil || tx.Epoch() != 3 {
		t.Errorf("tuned to %v in epoch %d: %v", f, tx.Epoch(), err)
	}
	write(t, tx, []complex64{1}, radio.TxMeta{})
	if got, _ := read(t, rx, 1); got[0] == -1 || got[0] == 1 {
		t.Errorf("the phase stayed: %v", got[0])
	}
}

// A receiver that starts late: the first index is where it was told to start,
// and the state of paths is as if it had listened from 0.
func TestLateReceiver(t *testing.T) {
	const n, start = 9000, 4321
	x := samples(7, n)
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1, Path: &lowpass{t: t}}}})
	if err := m.Drop(start-10, 15); err != nil {
		t.Fatal(err)
	}
	write(t, transmitter(t, m, 0), x, radio.TxMeta{})
	got, meta := read(t, receiver(t, m, start), 100)
	if meta.First != start+5 || len(meta.Gaps) != 1 || meta.Gaps[0] != (radio.Gap{Length: 5, Exact: true}) || meta.Index(0) != start+5 {
		t.Errorf("meta %+v", meta)
	}
	for k, y := range got {
		if j := start + 5 + k; y != x[j]+x[j-1] {
			t.Fatalf("sample %d is %v", j, y)
		}
	}
}

// run sends n samples from each of three devices in goroutines of their own, in
// blocks by chance, and gives all that came out, metadata and events included. With a window
// of n or more, all is written before it is read.
func run(t *testing.T, seed uint64, window int) string {
	const n, devices = 30000, 3
	cfg := loopback.Config{Window: window, Noise: plusOne{}}
	for i := range devices {
		cfg.Devices = append(cfg.Devices, loopback.Device{
			// Not exact in float32, so that the order of the sum shows.
			Gain: complex(0.1+0.3*float32(i), 0.7), Delay: radio.SampleCount(100 * i), Path: &lowpass{t: t, next: int64(-100 * i)},
		})
	}
	m := medium(t, cfg)
	for _, err := range []error{m.Drop(777, 5000), m.Underrun(1, 9000, 7), m.Retune(2, 12000, 1), m.RetuneReceiver(15000, 2)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var wait, written sync.WaitGroup
	told := make([][]radio.Event, devices)
	sent := make(chan struct{})
	written.Add(devices)
	for i := range devices {
		tx, x := transmitter(t, m, i), samples(uint64(i), n)
		wait.Add(1)
		go func() {
			defer wait.Done()
			rnd := rand.New(rand.NewPCG(seed, uint64(i))) // of the blocks only
			for at := 0; at < n; {
				if rnd.IntN(4) == 0 {
					runtime.Gosched()
				}
				k := min(1+rnd.IntN(3000), n-at)
				if _, err := tx.Write(context.Background(), x[at:at+k], radio.TxMeta{BurstEnd: at+k == n}); err != nil {
					t.Error(err)
				}
				at += k
			}
			if err := tx.(radio.Idler).Idle(context.Background(), n+1000); err != nil {
				t.Error(err)
			}
			written.Done()
			<-sent
			told[i] = events(tx)
		}()
	}
	if window >= n {
		written.Wait()
	}
	x, meta := read(t, receiver(t, m, 0), n-5000+500)
	close(sent)
	wait.Wait()
	return fmt.Sprint(x, meta, told)
}

func TestDeterminism(t *testing.T) {
	runs := 20
	if testing.Short() {
		runs = 6
	}
	want := run(t, 0, loopback.MinWindow)
	for _, procs := range []int{1, 2, 4} {
		before := runtime.GOMAXPROCS(procs)
		for seed := range runs {
			// In stretches as long as they may be, too: those are mixed on all cores.
			for _, window := range []int{loopback.MinWindow, loopback.DefaultWindow} {
				if run(t, uint64(seed), window) != want {
					t.Errorf("GOMAXPROCS %d, blocks %d, window %d: not what came out before", procs, seed, window)
				}
			}
		}
		runtime.GOMAXPROCS(before)
	}
}

// What waits ends by context and by Close, and what was done until then counts.
func TestWaitingEnds(t *testing.T) {
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1}}, Window: loopback.MinWindow})
	tx, rx := transmitter(t, m, 0), receiver(t, m, 0)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	write(t, tx, make([]complex64, loopback.MinWindow), radio.TxMeta{})
	go func() {
		n, err := tx.Write(ctx, make([]complex64, 10), radio.TxMeta{})
		if n != 0 {
			t.Errorf("%d samples taken beyond the window", n)
		}
		result <- err
	}()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("write: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		_, _, err := rx.Read(ctx, make([]complex64, 10*loopback.MinWindow))
		result <- err
	}()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	go func() {
		_, err := tx.Event(context.Background())
		result <- err
	}()
	go func() {
		_, _, err := rx.Read(context.Background(), make([]complex64, 10*loopback.MinWindow))
		result <- err
	}()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-result; !errors.Is(err, radio.ErrClosed) {
			t.Errorf("after the medium's close: %v", err)
		}
	}
	if tx.State() != radio.Closed || rx.State() != radio.Closed {
		t.Error("streams survive their medium")
	}
	if _, err := tx.Write(t.Context(), []complex64{1}, radio.TxMeta{}); !errors.Is(err, radio.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

// Samples that were mixed before a read was cancelled are given with the error.
func TestCancelKeepsSamples(t *testing.T) {
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1}}})
	tx, rx := transmitter(t, m, 0), receiver(t, m, 0)
	x := samples(1, 5000)
	write(t, tx, x, radio.TxMeta{})
	ctx, cancel := context.WithCancel(t.Context())
	type got struct {
		n   int
		err error
	}
	result := make(chan got)
	dst := make([]complex64, 10000)
	go func() {
		n, _, err := rx.Read(ctx, dst)
		result <- got{n, err}
	}()
	cancel()
	g := <-result
	if !errors.Is(g.err, context.Canceled) {
		t.Fatal(g.err)
	}
	rest, meta := read(t, rx, 5000-g.n)
	if meta.First != radio.SampleIndex(g.n) {
		t.Errorf("goes on at %d after %d samples", meta.First, g.n)
	}
	equal(t, append(dst[:g.n:g.n], rest...), x)
}

func TestStates(t *testing.T) {
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1}}})
	d, err := m.Transmitter(0)
	if err != nil {
		t.Fatal(err)
	}
	open := d.(radio.TransmitOpener).OpenTransmitter
	tx, err := open(t.Context())
	if err != nil || tx.State() != radio.Ready || tx.Epoch() != 1 {
		t.Fatal(err, tx.State())
	}
	if _, err := tx.Write(t.Context(), nil, radio.TxMeta{}); !errors.Is(err, radio.ErrNotStarted) {
		t.Errorf("write before start: %v", err)
	}
	if _, err := open(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Errorf("second stream: %v", err)
	}
	if err := m.Mute(0); err == nil {
		t.Error("an open device is muted")
	}
	if err := tx.Start(t.Context()); err != nil || tx.State() != radio.Running {
		t.Error(err)
	}
	if err := tx.Start(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Errorf("second start: %v", err)
	}
	for range 2 {
		if err := d.Close(); err != nil || tx.State() != radio.Closed {
			t.Error(err)
		}
	}
	if err := tx.Start(t.Context()); !errors.Is(err, radio.ErrClosed) {
		t.Errorf("start after close: %v", err)
	}
	if again, err := open(t.Context()); err != nil || again.Epoch() != 2 {
		t.Errorf("a restarted stream has epoch %d: %v", again.Epoch(), err)
	}
	rd, err := m.Receiver(0)
	if err != nil {
		t.Fatal(err)
	}
	rx, err := rd.(radio.ReceiveOpener).OpenReceiver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := rx.Read(t.Context(), make([]complex64, 1)); !errors.Is(err, radio.ErrNotStarted) {
		t.Errorf("read before start: %v", err)
	}
}

// In real time, with a clock moved by hand: silence, underrun, late block,
// overrun.
func TestRealTime(t *testing.T) {
	clock := &loopback.ManualClock{}
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1}, {Gain: 1}}, Clock: clock, ReceiveBuffer: 100})
	tx, rx := transmitter(t, m, 0), receiver(t, m, 0) // device 1 is not waited for
	write(t, tx, []complex64{1, 2, 3}, radio.TxMeta{})
	clock.Advance(10 * time.Microsecond)
	got, _ := read(t, rx, 6)
	equal(t, got, []complex64{1, 2, 3, 0, 0, 0})
	write(t, tx, []complex64{4}, radio.TxMeta{BurstEnd: true}) // at 6, as soon as possible
	write(t, tx, []complex64{5}, radio.TxMeta{Timed: true, Start: 2})
	got, meta := read(t, rx, 4)
	equal(t, got, []complex64{4, 0, 0, 0})
	if meta.First != 6 {
		t.Errorf("first %d", meta.First)
	}
	clock.Advance(300 * time.Microsecond) // at 310, and 210 is the oldest kept
	_, meta = read(t, rx, 50)
	if meta.First != 210 || len(meta.Gaps) != 1 || meta.Gaps[0] != (radio.Gap{Length: 200, Exact: true}) || meta.Flags != radio.Overrun {
		t.Errorf("overrun: %+v", meta)
	}
	want := []radio.Event{
		{Kind: radio.Underrun, Index: 3, Exact: true, Epoch: 1},
		{Kind: radio.Late, Index: 2, Exact: true, Count: 1, Epoch: 1},
		{Kind: radio.BurstSent, Index: 7, Exact: true, Epoch: 1},
	}
	if e := events(tx); fmt.Sprint(e) != fmt.Sprint(want) {
		t.Errorf("events %+v instead of %+v", e, want)
	}

	// A read waits for the clock, and for nothing else.
	result := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _, err := rx.Read(ctx, make([]complex64, 100))
		result <- err
	}()
	clock.Advance(50 * time.Microsecond)
	if err := <-result; err != nil {
		t.Error(err)
	}
	go func() {
		_, _, err := rx.Read(ctx, make([]complex64, 100))
		result <- err
	}()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() {
		_, _, err := rx.Read(context.Background(), make([]complex64, 1000))
		result <- err
	}()
	if err := rx.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, radio.ErrClosed) {
		t.Error(err)
	}
}

// A receiver that is closed while it computes and the next one share the medium.
func TestReopenedReceiver(t *testing.T) {
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1}}})
	tx := transmitter(t, m, 0)
	idle(t, tx, radio.Forever)
	var wait sync.WaitGroup
	for k := range 20 {
		rx := receiver(t, m, 0)
		if rx.Epoch() != radio.Epoch(k+1) {
			t.Errorf("epoch %d of stream %d", rx.Epoch(), k)
		}
		wait.Add(1)
		go func() {
			defer wait.Done()
			if _, _, err := rx.Read(context.Background(), make([]complex64, 50000)); err != nil && !errors.Is(err, radio.ErrClosed) {
				t.Error(err)
			}
		}()
		runtime.Gosched()
		_ = rx.Close()
	}
	wait.Wait()
}

// gate is a Path that tells when it is entered and waits to be let out.
type gate struct{ entered, leave chan struct{} }

func (g gate) Apply(dst, src []complex64, _ int64) {
	g.entered <- struct{}{}
	<-g.leave
	copy(dst, src)
}

// A stream opened while a closed one still computes waits for it: a Path is never
// entered twice.
func TestOnePathAtATime(t *testing.T) {
	g := gate{make(chan struct{}), make(chan struct{})}
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1, Path: g}}})
	idle(t, transmitter(t, m, 0), radio.Forever)
	result := make(chan error)
	start := func() radio.Receiver {
		rx := receiver(t, m, 0)
		go func() {
			_, _, err := rx.Read(context.Background(), make([]complex64, 10))
			result <- err
		}()
		return rx
	}
	first := start()
	<-g.entered
	_ = first.Close()
	start()
	for range 1000 {
		runtime.Gosched()
		select {
		case <-g.entered:
			t.Fatal("entered twice")
		default:
		}
	}
	g.leave <- struct{}{}
	<-g.entered
	g.leave <- struct{}{}
	for range 2 {
		if err := <-result; err != nil && !errors.Is(err, radio.ErrClosed) {
			t.Error(err)
		}
	}
}

func TestWallClock(t *testing.T) {
	clock := loopback.WallClock()
	before := clock.Now()
	clock.Wait(t.Context(), before+time.Microsecond, nil)
	clock.Wait(done(), time.Hour, nil)
	stop := make(chan struct{})
	close(stop)
	clock.Wait(t.Context(), time.Hour, stop)
	if clock.Now() < before {
		t.Error("time goes backwards")
	}
}

// The package starts no goroutines, so none can be left. They are told by who
// started them, not counted: one of an earlier test may end meanwhile.
func TestNoGoroutineLeft(t *testing.T) {
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1}, {Gain: 1}}})
	for i := range 2 {
		idle(t, transmitter(t, m, i), 10000)
	}
	read(t, receiver(t, m, 0), 10000)
	stacks := make([]byte, 1<<20)
	if s := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(s, "created by ringwave/radio/loopback.") {
		t.Errorf("a goroutine of this package:\n%s", s)
	}
}

func TestOpener(t *testing.T) {
	m := medium(t, loopback.Config{Devices: []loopback.Device{{Gain: 1}}})
	o, err := loopback.NewOpener(m)
	if err != nil {
		t.Fatal(err)
	}
	reg, err := radio.NewRegistry(map[string]radio.Opener{"loopback": o})
	if err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"loopback:bench?tx=0": "loopback:bench?tx=0, transmitter in memory, driver loopback\n  transmit: yes\n  transmit frequency: 0 Hz (0 Hz to 10 THz)\n  transmit sample rate: 1 MHz (1 MHz)\n  indices: counted by the device",
		"loopback:bench":      "loopback:bench, receiver in memory, driver loopback\n  receive: yes\n  receive frequency: 0 Hz (0 Hz to 10 THz)\n  receive sample rate: 1 MHz (1 MHz)\n  indices: counted by the device",
	} {
		d, err := reg.Open(t.Context(), uri)
		if err != nil {
			t.Fatal(err)
		}
		if got := radio.Describe(d).String(); got != want {
			t.Errorf("%s is described as\n%s", uri, got)
		}
		if _, err := d.(radio.RateControl).SetSampleRate(t.Context(), radio.Receive, 2e6); err == nil || !strings.Contains(err.Error(), "2 MHz; allowed is 1 MHz") {
			t.Errorf("rate: %v", err)
		}
		if now, err := d.(radio.TimeControl).Now(t.Context()); now != 0 || err != nil {
			t.Error(now, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct{ uri, want string }{
		{"loopback:other", `the name "other"; allowed is`},
		{"loopback:bench?tx=1", "no device 1; allowed is 0 to 0"},
		{"loopback:bench?tx=a", "tx=a; allowed is 0 to 0"},
		{"loopback:bench?start=-1", "index -1; allowed is 0 to"},
		{"loopback:bench?start=x", "start=x; allowed is 0 to"},
		{"loopback:bench?tx=0&start=1", "allowed is one of them"},
		{"loopback:bench?rx=0", `"rx"; allowed is tx, start`},
	} {
		if _, err := reg.Open(t.Context(), c.uri); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.uri, err)
		}
	}
	if _, err := loopback.NewOpener(m, m); err == nil {
		t.Error("two media of one name")
	}
}

func TestConfigErrors(t *testing.T) {
	one := []loopback.Device{{Gain: 1}}
	for _, c := range []struct {
		cfg  loopback.Config
		want string
	}{
		{loopback.Config{Devices: one}, "0 Hz; allowed is above 0 to 1 GHz"},
		{loopback.Config{Rate: 1}, "0 devices; allowed is 1 or more"},
		{loopback.Config{Rate: 1, Devices: one, Window: 5}, "5 samples; allowed is 2048 or more"},
		{loopback.Config{Rate: 1, Devices: one, ReceiveBuffer: -1}, "-1 samples; allowed is 1 or more"},
		{loopback.Config{Rate: 1, Devices: []loopback.Device{{Delay: -1}}}, "device 0 has a delay of -1 samples; allowed is 0 to 1000000000"},
	} {
		if _, err := loopback.New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v instead of %q", err, c.want)
		}
	}
}

// Three devices beside a reader of 64 Ki samples, and a copy of as many samples.
// The rate is that of received samples.
func BenchmarkLoopback3(b *testing.B) {
	benchmark(b, []complex64{1, 2, 3}, 0)
}

func BenchmarkLoopback3ComplexGains(b *testing.B) {
	benchmark(b, []complex64{0.3 + 0.1i, 0.7i, -0.2 - 0.9i}, 5)
}

const benchBlock = 1 << 16

func benchmark(b *testing.B, gains []complex64, delay radio.SampleCount) {
	cfg := loopback.Config{Window: 1 << 18}
	for i, g := range gains {
		cfg.Devices = append(cfg.Devices, loopback.Device{Gain: g, Delay: delay * radio.SampleCount(i)})
	}
	m := medium(b, cfg)
	ctx, cancel := context.WithCancel(b.Context())
	var wait sync.WaitGroup
	for i := range gains {
		tx, x := transmitter(b, m, i), samples(uint64(i), benchBlock)
		wait.Add(1)
		go func() {
			defer wait.Done()
			for {
				if _, err := tx.Write(ctx, x, radio.TxMeta{}); err != nil {
					return
				}
			}
		}()
	}
	rx, dst := receiver(b, m, 0), make([]complex64, benchBlock)
	b.SetBytes(8 * benchBlock)
	for b.Loop() {
		if _, _, err := rx.Read(ctx, dst); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	wait.Wait()
	b.ReportMetric(float64(b.N)*benchBlock/1e6/b.Elapsed().Seconds(), "Msamples/s")
}

// BenchmarkLoopback3OneGoroutine writes and reads in turn.
func BenchmarkLoopback3OneGoroutine(b *testing.B) {
	cfg := loopback.Config{Devices: []loopback.Device{{Gain: 1}, {Gain: 2}, {Gain: 3}}}
	m := medium(b, cfg)
	var txs []radio.Transmitter
	for i := range cfg.Devices {
		txs = append(txs, transmitter(b, m, i))
	}
	rx, dst, x := receiver(b, m, 0), make([]complex64, benchBlock), samples(1, benchBlock)
	ctx := b.Context()
	b.SetBytes(8 * benchBlock)
	b.ReportAllocs()
	for b.Loop() {
		for _, tx := range txs {
			if _, err := tx.Write(ctx, x, radio.TxMeta{}); err != nil {
				b.Fatal(err)
			}
		}
		if _, _, err := rx.Read(ctx, dst); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*benchBlock/1e6/b.Elapsed().Seconds(), "Msamples/s")
}

func BenchmarkCopy(b *testing.B) {
	src, dst := samples(1, benchBlock), make([]complex64, benchBlock)
	b.SetBytes(8 * benchBlock)
	for b.Loop() {
		copy(dst, src)
	}
	b.ReportMetric(float64(b.N)*benchBlock/1e6/b.Elapsed().Seconds(), "Msamples/s")
}
