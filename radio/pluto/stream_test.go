package pluto_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ringwave/radio"
	"ringwave/radio/loopback"
	"ringwave/radio/virtual/iiod"
)

// source is an end whose samples tell their index and the tuning they were received
// at, and that loses some.
type source struct {
	mu    sync.Mutex
	index int          // of the next sample
	loses map[int]int  // how many, before which index
	tunes int          // retunes so far
	state atomic.Int32 // radio.State
}

func (s *source) Info() radio.Info { return radio.Info{URI: "test:source"} }
func (s *source) Close() error     { s.state.Store(int32(radio.Closed)); return nil }

func (s *source) OpenReceiver(context.Context) (radio.Receiver, error) { return s, nil }
func (s *source) Start(context.Context) error                          { s.state.Store(int32(radio.Running)); return nil }
func (s *source) State() radio.State                                   { return radio.State(s.state.Load()) }
func (s *source) Epoch() radio.Epoch                                   { return 1 }

func (s *source) Frequencies(radio.Direction) radio.Span[radio.Hertz] {
	return radio.Span[radio.Hertz]{Max: 1e10}
}
func (s *source) Frequency(radio.Direction) radio.Hertz { return 0 }
func (s *source) SetFrequency(context.Context, radio.Direction, radio.Hertz) (radio.Hertz, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tunes++
	return 0, nil
}

// The index is in 9 bits of I and 11 of Q, the tuning in 2 of I.
func (s *source) Read(ctx context.Context, dst []complex64) (int, radio.Meta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	meta := radio.Meta{First: radio.SampleIndex(s.index)}
	for k := range dst {
		if n := s.loses[s.index]; n > 0 {
			delete(s.loses, s.index)
			s.index += n
			meta.Flags |= radio.Overrun
		}
		i, q := s.tunes%4<<9|s.index>>11&0x1ff, s.index&0x7ff
		dst[k] = complex(float32(i)/2048, float32(q)/2048)
		s.index++
	}
	return len(dst), meta, ctx.Err()
}

// told gives back what a sample tells.
func told(x complex64) (index, tunes int) {
	i, q := int(real(x)*2047+0.5), int(imag(x)*2047+0.5)
	return i&0x1ff<<11 | q, i >> 9
}

// sourceBench is a board with a source.
func sourceBench(t *testing.T, s *source) *bench {
	return newBench(t, loopback.Config{}, func(c *iiod.Config) { c.Receive = s })
}

// Wherever samples are lost on the board: the loss lies in a stretch with an epoch of
// its own, at whose end a gap is told.
func TestLostOnBoard(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		at := rnd.IntN(40_000)
		s := &source{loses: map[int]int{at: 1 + rnd.IntN(5000)}}
		b := sourceBench(t, s)
		r := receiver(t, open(t, t.Context(), radio.TransmitPermit{}, b.address, ideal+"&block=1024&hold=on&ring=3"))
		x := make([]complex64, 60_000)
		_, meta, err := radio.ReadFull(t.Context(), r, x)
		ok(t, err)
		if len(meta.Gaps) != 1 || meta.Gaps[0].Exact || meta.Gaps[0].Length != 0 || meta.Flags&(radio.Overrun|radio.HostCounted) != radio.Overrun|radio.HostCounted {
			t.Fatalf("seed %d: %+v", seed, meta)
		}
		for k := 1; k < len(x); k++ {
			was, _ := told(x[k-1])
			now, _ := told(x[k])
			if now == was+1 {
				continue
			}
			told := meta.Gaps[0].At
			if doubtful := meta.EpochAt(told - 1); k > told || k < told && meta.EpochAt(k) != doubtful || meta.EpochAt(told) == doubtful {
				t.Errorf("seed %d: lost at %d, told %+v", seed, k, meta)
			}
		}
		if meta.EpochAt(len(x)-1) != r.Epoch() {
			t.Errorf("seed %d: epoch %d, the last sample's is %d", seed, r.Epoch(), meta.EpochAt(len(x)-1))
		}
		ok(t, r.Close())
	}
}

// A loss is known after CheckLoss, though nothing was read since.
func TestCheckLoss(t *testing.T) {
	s := &source{loses: map[int]int{}}
	b := sourceBench(t, s)
	r := receiver(t, open(t, t.Context(), radio.TransmitPermit{}, b.address, ideal+"&block=1024&hold=on&ring=1"))
	x := make([]complex64, 100)
	_, _, err := radio.ReadFull(t.Context(), r, x)
	ok(t, err)
	// The board goes on until its blocks are full; what it takes then is lost.
	for range 100 {
		before := r.Epoch()
		s.mu.Lock()
		s.loses[s.index] = 77
		s.mu.Unlock()
		for lost := false; !lost; {
			_, _, err := radio.ReadFull(t.Context(), r, make([]complex64, 1024))
			ok(t, err)
			s.mu.Lock()
			lost = len(s.loses) == 0
			s.mu.Unlock()
		}
		// The converter may be about to raise the flag.
		for r.Epoch() == before {
			ok(t, r.(radio.LossChecker).CheckLoss(t.Context()))
		}
	}
}

// Samples from before a retune and from after it do not share an epoch.
func TestRetune(t *testing.T) {
	s := &source{}
	b := sourceBench(t, s)
	d := open(t, t.Context(), radio.TransmitPermit{}, b.address, "rx_gain=0&block=1024&hold=on&ring=2")
	r := receiver(t, d)
	seen := map[radio.Epoch]int{} // the tuning, by the epoch
	mixed := map[radio.Epoch]bool{}
	read := func(n int) {
		x := make([]complex64, n)
		_, meta, err := radio.ReadFull(t.Context(), r, x)
		ok(t, err)
		for k := range x {
			_, tunes := told(x[k])
			e := meta.EpochAt(k)
			if was, ok := seen[e]; ok && was != tunes {
				mixed[e] = true
			}
			seen[e] = tunes
		}
		if len(meta.Gaps) > 0 {
			t.Errorf("%+v", meta)
		}
	}
	steady := map[radio.Epoch]bool{r.Epoch(): true}
	rnd := rand.New(rand.NewPCG(1, 1))
	for k := range 20 {
		read(rnd.IntN(20_000))
		_, err := d.SetFrequency(t.Context(), radio.Receive, radio.Hertz(1e9+1e6*float64(k)))
		ok(t, err)
		steady[r.Epoch()] = true
	}
	read(20_000)
	if len(steady) != 21 {
		t.Errorf("%d epochs", len(steady))
	}
	for e := range mixed {
		if steady[e] {
			t.Errorf("epoch %d has samples of two tunings", e)
		}
	}
}

// What the host drops is counted.
func TestLostOnHost(t *testing.T) {
	s := &source{}
	b := sourceBench(t, s)
	r := receiver(t, open(t, t.Context(), radio.TransmitPermit{}, b.address, ideal+"&block=1024&ring=4"))
	gaps := 0
	for range 5 {
		// Until the board has given more than there is room for.
		for blocks := 0; blocks < 10; {
			for _, l := range b.take() {
				if strings.Contains(l, "READBUF") {
					blocks++
				}
			}
			runtime.Gosched()
		}
		x := make([]complex64, 8*1024)
		_, meta, err := radio.ReadFull(t.Context(), r, x)
		ok(t, err)
		for k := range x {
			if index, _ := told(x[k]); index != int(meta.Index(k))&0xfffff {
				t.Fatalf("sample %d has index %d and is %d: %+v", k, meta.Index(k), index, meta)
			}
		}
		for _, g := range meta.Gaps {
			if !g.Exact {
				t.Errorf("%+v", meta)
			}
			gaps++
		}
	}
	if gaps == 0 {
		t.Error("nothing was dropped")
	}
	if len(b.take()) > 0 && r.Epoch() == 0 {
		t.Error("no epoch")
	}
}

// With feed=fill the index goes on with time: timed blocks come when they are to, and
// what is late is told.
func TestFill(t *testing.T) {
	b := newBench(t, loopback.Config{Window: 1 << 14}, nil)
	d := open(t, t.Context(), everything(t), b.address, ideal+"&block=1024&hold=on&ring=4")
	rx, tx := receiver(t, d), transmitter(t, d)
	pacer := tx.(radio.Pacer)
	const n = 300_000
	x := make([]complex64, n)
	got, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		if k, meta, err := radio.ReadFull(t.Context(), rx, x); err != nil || len(meta.Gaps) > 0 || meta.First != 0 {
			t.Errorf("%d samples, %+v, %v", k, meta, err)
		}
		close(got)
		drain(rx)
	}()
	sent := noise(3, 5000)
	start := pacer.Earliest() + 50_000
	k, err := tx.Write(t.Context(), sent, radio.TxMeta{Timed: true, Start: start, BurstEnd: true})
	ok(t, err)
	late, err := tx.Write(t.Context(), sent, radio.TxMeta{Timed: true, Start: start})
	ok(t, err)
	if k != len(sent) || late != len(sent) {
		t.Errorf("took %d and %d", k, late)
	}
	// A burst that breaks off.
	broken := start + 40_000
	_, err = tx.Write(t.Context(), sent[:1001], radio.TxMeta{Timed: true, Start: broken})
	ok(t, err)
	for _, want := range []radio.Event{
		{Kind: radio.Late, Index: start, Exact: true, Count: 5000},
		{Kind: radio.BurstSent, Index: start + 5000, Exact: true},
		{Kind: radio.Underrun, Index: broken + 1001, Exact: true},
	} {
		want.Epoch = tx.Epoch()
		if e, err := tx.Event(t.Context()); err != nil || e != want {
			t.Errorf("%+v, %v; want %+v", e, err, want)
		}
	}
	<-got
	want := make([]complex64, n)
	copy(want[start:], sent)
	copy(want[broken:], sent[:1001])
	for k := range x {
		if x[k] != want[k] {
			t.Fatalf("sample %d is %v, want %v (blocks at %d and %d)", k, x[k], want[k], start, broken)
		}
	}
	if c := tx.(radio.ClipCounter).Clipped(); c != 0 {
		t.Errorf("%d clipped", c)
	}
	_, err = tx.Write(t.Context(), []complex64{1, 1.1, -1i, -1.1i}, radio.TxMeta{BurstEnd: true})
	ok(t, err)
	if c := tx.(radio.ClipCounter).Clipped(); c != 2 {
		t.Errorf("%d clipped", c)
	}
	ok(t, tx.Close(), rx.Close())
	<-ended
	b.isOff(t)
}

// drain reads until the stream is closed.
func drain(r radio.Receiver) {
	x := make([]complex64, 1024)
	for {
		if _, _, err := r.Read(context.Background(), x); err != nil {
			return
		}
	}
}

// sink is an end that runs dry when told to.
type sink struct {
	bare
	dry chan struct{}
}

type sinkStream struct {
	radio.Transmitter
	s      *sink
	events *radio.EventQueue
}

func (s *sink) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	x, err := s.bare.OpenTransmitter(ctx)
	return &sinkStream{x, s, radio.NewEventQueue()}, err
}

func (s *sinkStream) Write(ctx context.Context, x []complex64, m radio.TxMeta) (int, error) {
	select {
	case <-s.s.dry:
		s.events.Push(radio.Event{Kind: radio.Underrun})
	default:
	}
	return s.Transmitter.Write(ctx, x, m)
}

func (s *sinkStream) Event(ctx context.Context) (radio.Event, error) { return s.events.Next(ctx) }

func (s *sinkStream) Close() error {
	s.events.Close()
	return s.Transmitter.Close()
}

// A board that ran dry is told of as an underrun, and a new epoch.
func TestBoardRanDry(t *testing.T) {
	s := &sink{dry: make(chan struct{})}
	b := newBench(t, loopback.Config{Window: 1 << 14}, func(c *iiod.Config) {
		s.bare = c.Transmit.(bare)
		c.Transmit = s
	})
	d := open(t, t.Context(), everything(t), b.address, ideal+"&block=1024")
	rx, tx := receiver(t, d), transmitter(t, d)
	before := tx.Epoch()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		drain(rx)
	}()
	for tx.(radio.Pacer).Earliest() < 20*1024 {
		runtime.Gosched()
	}
	s.dry <- struct{}{}
	for _, kind := range []radio.EventKind{radio.Underrun, radio.EpochChanged} {
		e, err := tx.Event(t.Context())
		if err != nil || e.Kind != kind || e.Exact || e.Index < 15*1024-5*1024 {
			t.Errorf("%v: %+v, %v", kind, e, err)
		}
	}
	if tx.Epoch() == before {
		t.Error("the epoch stayed")
	}
	ok(t, tx.Close(), rx.Close())
	<-ended
}

// Close sends all that was written before it, though the board drops what it holds
// when its device is closed.
func TestCloseSends(t *testing.T) {
	for _, feed := range []string{"fill", "strict"} {
		b := newBench(t, loopback.Config{Window: 1 << 14}, nil)
		d := open(t, t.Context(), everything(t), b.address, ideal+"&block=1024&hold=on&feed="+feed)
		rx, tx := receiver(t, d), transmitter(t, d)
		sent := noise(4, 50_001)
		got := make(chan []complex64)
		go func() {
			// Behind the end the medium is silent.
			var all []complex64
			x := make([]complex64, 1024)
			for len(all) < 1 || all[len(all)-1] != sent[len(sent)-1] {
				n, _, err := radio.ReadFull(t.Context(), rx, x)
				if err != nil || len(all) > 10*len(sent) {
					break
				}
				for _, v := range x[:n] {
					if v != 0 {
						all = append(all, v)
					}
				}
			}
			got <- all
			drain(rx)
		}()
		_, err := tx.Write(t.Context(), sent, radio.TxMeta{})
		ok(t, err, tx.Close())
		var want []complex64
		for _, v := range sent {
			if v != 0 {
				want = append(want, v)
			}
		}
		if all := <-got; !slices.Equal(all, want) {
			t.Errorf("%s: %d samples came, of %d", feed, len(all), len(want))
		}
		b.isOff(t)
	}
}
