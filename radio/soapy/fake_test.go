package soapy

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"sync"
	"time"

	"ringwave/radio"
)

// fake is a board whose time the test moves on. It has a clock unless it is plain.
type fake struct {
	Board // of calls that the session does not make: they panic

	plain, half bool
	strict      bool // a stream that is not active has no status
	rate        float64

	mu        sync.Mutex
	now       Time  // of the clock
	beat      *beat // pulses; nil for none
	first     int   // the pulse since which base holds
	base      Time  // of the clock at that
	next      *Time
	settings  []string
	gains     map[string]float64
	freq      map[radio.Direction]float64
	streams   []*fakeStream
	closed    int
	failing   map[string]error // by call
	hanging   map[string]bool
	source    string
	refLocked string
}

func newFake() *fake {
	return &fake{
		rate: 1e6, gains: map[string]float64{"A": 30, "B": 5}, freq: map[radio.Direction]float64{}, failing: map[string]error{},
		hanging: map[string]bool{}, source: "internal", refLocked: "true", now: 1e9,
	}
}

// call is what every call begins with.
func (f *fake) call(ctx context.Context, name string) error {
	f.mu.Lock()
	hang, err := f.hanging[name], f.failing[name]
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *fake) Hardware(ctx context.Context) (Hardware, error) {
	return Hardware{"fake", "Fake", Args{"serial": "F1"}}, f.call(ctx, "Hardware")
}
func (f *fake) Channels(ctx context.Context, _ radio.Direction) (int, error) {
	return 1, f.call(ctx, "Channels")
}
func (f *fake) FullDuplex(context.Context, Channel) (bool, error) { return !f.half, nil }
func (f *fake) Formats(context.Context, Channel) ([]string, error) {
	return []string{"CS16", "CF32"}, nil
}
func (f *fake) NativeFormat(context.Context, Channel) (string, float64, error) {
	return "CS16", 32768, nil
}
func (f *fake) Antennas(context.Context, Channel) ([]string, error) {
	return []string{"TX/RX", "RX2"}, nil
}
func (f *fake) Antenna(context.Context, Channel) (string, error)   { return "TX/RX", nil }
func (f *fake) SetAntenna(context.Context, Channel, string) error  { return nil }
func (f *fake) Gains(context.Context, Channel) ([]string, error)   { return []string{"A", "B"}, nil }
func (f *fake) HasGainMode(context.Context, Channel) (bool, error) { return false, nil }
func (f *fake) ClockSources(context.Context) ([]string, error) {
	return []string{"internal", "external"}, nil
}
func (f *fake) ClockSource(context.Context) (string, error)        { return "internal", nil }
func (f *fake) SetClockSource(context.Context, string) error       { return nil }
func (f *fake) Sensors(context.Context) ([]string, error)          { return []string{"ref_locked"}, nil }
func (f *fake) ReadSensor(context.Context, string) (string, error) { return f.refLocked, nil }
func (f *fake) WriteSetting(_ context.Context, key, v string) error {
	f.settings = append(f.settings, key+"="+v)
	return nil
}
func (f *fake) SampleRate(context.Context, Channel) (float64, error) { return f.rate, nil }
func (f *fake) GainRange(context.Context, Channel, string) (Range, error) {
	return Range{0, 40, 1}, nil
}
func (f *fake) FrequencyRange(context.Context, Channel) ([]Range, error) {
	return []Range{{70e6, 6e9, 0}}, nil
}
func (f *fake) SampleRateRange(context.Context, Channel) ([]Range, error) {
	return []Range{{1e5, 1e5, 0}, {5e5, 20e6, 0}}, nil
}
func (f *fake) BandwidthRange(context.Context, Channel) ([]Range, error) { return nil, nil }
func (f *fake) Gain(_ context.Context, _ Channel, name string) (float64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gains[name], nil
}
func (f *fake) SetGain(ctx context.Context, at Channel, name string, g float64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.Direction == radio.Transmit {
		f.gains[name] = g
	}
	return nil
}
func (f *fake) Frequency(_ context.Context, at Channel) (float64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.freq[at.Direction], nil
}
func (f *fake) SetFrequency(ctx context.Context, at Channel, hz float64) error {
	if err := f.call(ctx, "SetFrequency"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.freq[at.Direction] = hz
	return nil
}
func (f *fake) SetSampleRate(_ context.Context, _ Channel, hz float64) error {
	f.rate = hz
	return nil
}
func (f *fake) TimeSources(context.Context) ([]string, error) {
	if f.plain {
		return nil, nil
	}
	return []string{"internal", "external"}, nil
}
func (f *fake) TimeSource(context.Context) (string, error)            { return f.source, nil }
func (f *fake) SetTimeSource(_ context.Context, name string) error    { f.source = name; return nil }
func (f *fake) HasHardwareTime(context.Context, string) (bool, error) { return !f.plain, nil }
func (f *fake) HardwareTime(ctx context.Context, what string) (Time, error) {
	if err := f.call(ctx, "HardwareTime"); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.beat == nil {
		return f.now, nil
	}
	if what != "" {
		f.beat.ask()
	}
	if f.next != nil && f.beat.count() > f.first {
		f.base, f.next, f.first = *f.next, nil, f.first+1
	}
	return f.base + Time(f.beat.count()-f.first)*1e9, nil
}

// beat is the pulse that boards share; one comes with every other question.
type beat struct {
	mu    sync.Mutex
	asked int
}

func (b *beat) ask() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
}

func (b *beat) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked / 2
}

func (f *fake) SetHardwareTime(_ context.Context, t Time, what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if what == "PPS" && f.beat != nil {
		// The clock goes on as it was until then.
		f.base, f.first = f.base+Time(f.beat.count()-f.first)*1e9, f.beat.count()
		f.next = &t
	}
	return nil
}

// advance moves time on.
func (f *fake) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += Time(d)
}

func (f *fake) SetupStream(ctx context.Context, at Channel, format string, _ Args) (Stream, error) {
	if err := f.call(ctx, "SetupStream"); err != nil {
		return nil, err
	}
	s := &fakeStream{f: f, at: at, news: make(chan fakeNews, 16), reads: make(chan fakeRead, 64), mtu: 100}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams = append(f.streams, s)
	return s, nil
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

// last returns the stream that was made last.
func (f *fake) stream() *fakeStream {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams[len(f.streams)-1]
}

type fakeNews struct {
	info BlockInfo
	err  error
}

type fakeRead struct {
	first int16 // of a counter in I
	n     int
	info  BlockInfo
	err   error
}

// fakeWrite is what was written at once.
type fakeWrite struct {
	info BlockInfo
	i    []int16
}

// fakeStream gives what it is told and keeps what it is given.
type fakeStream struct {
	f   *fake
	at  Channel
	mtu int

	news  chan fakeNews
	reads chan fakeRead

	mu     sync.Mutex
	active int // how often it was activated less how often not
	began  BlockInfo
	writes []fakeWrite
	waited bool
	closed bool
}

func (s *fakeStream) MTU() int { return s.mtu }

func (s *fakeStream) Activate(ctx context.Context, flags Flags, at Time) error {
	if err := s.f.call(ctx, "Activate"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
	s.began = BlockInfo{flags, at}
	return nil
}

func (s *fakeStream) Deactivate(ctx context.Context, _ Flags, _ Time) error {
	if err := s.f.call(ctx, "Deactivate"); err != nil {
		return err
	}
	s.mu.Lock()
	s.active = 0
	s.mu.Unlock()
	if s.f.strict { // who writes meanwhile is refused, before this returns
		for range 100 {
			runtime.Gosched()
		}
	}
	return nil
}

func (s *fakeStream) on() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active > 0
}

func (s *fakeStream) Read(ctx context.Context, dst []byte, patience time.Duration) (int, BlockInfo, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-s.reads:
		for k := range r.n {
			binary.LittleEndian.PutUint32(dst[4*k:], uint32(uint16(r.first+int16(k))))
		}
		return 4 * r.n, r.info, r.err
	case <-ctx.Done():
		return 0, BlockInfo{}, ctx.Err()
	case <-timer.C:
		return 0, BlockInfo{}, ErrTimeout
	}
}

func (s *fakeStream) Write(ctx context.Context, src []byte, b BlockInfo, patience time.Duration) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f.strict && s.active == 0 {
		return 0, ErrStream
	}
	if s.f.plain && len(s.writes) == 3 && !s.waited { // full, for longer than a block is
		s.waited = true
		timer := time.NewTimer(min(patience, time.Millisecond))
		defer timer.Stop()
		<-timer.C
		return 0, ErrTimeout
	}
	w := fakeWrite{info: b}
	for k := range len(src) / 4 {
		w.i = append(w.i, int16(binary.LittleEndian.Uint16(src[4*k:])))
	}
	s.writes = append(s.writes, w)
	return len(src), nil
}

func (s *fakeStream) Status(ctx context.Context, patience time.Duration) (BlockInfo, error) {
	timer := time.NewTimer(min(patience, 10*time.Millisecond))
	defer timer.Stop()
	if s.f.strict && !s.on() {
		return BlockInfo{}, ErrStream
	}
	select {
	case n := <-s.news:
		return n.info, n.err
	case <-ctx.Done():
		return BlockInfo{}, ctx.Err()
	case <-timer.C:
		return BlockInfo{}, ErrTimeout
	}
}

func (s *fakeStream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// written returns what is on the air by the index of each sample: bursts by their times.
func (s *fakeStream) written(c clock) map[radio.SampleIndex]int16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	air, at := map[radio.SampleIndex]int16{}, radio.SampleIndex(0)
	for _, w := range s.writes {
		if w.info.Flags&HasTime != 0 {
			at = c.index(w.info.At)
		}
		for _, v := range w.i {
			if v != 0 {
				air[at] = v
			}
			at++
		}
	}
	return air
}

// fakes is a back end of fakes by serial.
type fakes map[string]*fake

func (b fakes) Find(context.Context, radio.URI, Args) ([]Args, error) {
	return []Args{{"driver": "fake", "serial": "F1"}}, nil
}

func (b fakes) Make(_ context.Context, _ radio.URI, args Args) (Board, error) {
	f := b[args["serial"]]
	if f == nil {
		return nil, errors.New("no match")
	}
	return f, nil
}

// amplitude is that of a 16-bit integer.
func amplitude(v int) complex64 { return complex(float32(float64(v)/math.Exp2(15)), 0) }
