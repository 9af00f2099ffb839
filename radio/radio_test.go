package radio_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
)

// block is one Read of a script.
type block struct {
	n    int
	meta radio.Meta
	err  error
}

// script is a Receiver that gives blocks as they are written down; samples count
// up from 1. A block that does not fit is cut, gaps and all.
type script struct {
	blocks []block
	count  float32
}

func (s *script) Start(context.Context) error { return nil }
func (s *script) State() radio.State          { return radio.Running }
func (s *script) Epoch() radio.Epoch          { return 1 }
func (s *script) Close() error                { return nil }

func (s *script) Read(_ context.Context, dst []complex64) (int, radio.Meta, error) {
	if len(s.blocks) == 0 {
		return 0, radio.Meta{}, io.EOF
	}
	b := s.blocks[0]
	if b.n > len(dst) {
		panic("the script's block does not fit")
	}
	s.blocks = s.blocks[1:]
	for k := range b.n {
		s.count++
		dst[k] = complex(s.count, 0)
	}
	return b.n, b.meta, b.err
}

// Gaps, epochs, flags and counts keep their positions over blocks.
func TestReadFull(t *testing.T) {
	s := &script{blocks: []block{
		{n: 10, meta: radio.Meta{First: 100, Epoch: 1}},
		{n: 5, meta: radio.Meta{
			First: 113, Epoch: 1, Flags: radio.Overrun, Clipped: 2,
			Gaps: []radio.Gap{{At: 0, Length: 3, Exact: true}, {At: 4, Length: 2, Exact: true}},
		}},
		{}, // nothing, and no error
		{n: 5, meta: radio.Meta{First: 130, Epoch: 2, Invalid: 1, Flags: radio.Invalid, Changes: []radio.EpochChange{{At: 1, Epoch: 3}}}},
		{n: 1, meta: radio.Meta{First: 135, Epoch: 3}},
	}}
	dst := make([]complex64, 20)
	n, meta, err := radio.ReadFull(t.Context(), s, dst)
	want := radio.Meta{
		First: 100, Epoch: 1, Flags: radio.Overrun | radio.Invalid, Clipped: 2, Invalid: 1,
		Gaps:    []radio.Gap{{At: 10, Length: 3, Exact: true}, {At: 14, Length: 2, Exact: true}, {At: 15, Length: 10}},
		Changes: []radio.EpochChange{{At: 15, Epoch: 2}, {At: 16, Epoch: 3}},
	}
	if n != 20 || err != nil || !reflect.DeepEqual(meta, want) {
		t.Fatalf("%d samples, %v\n%+v instead of\n%+v", n, err, meta, want)
	}
	for k, index := range map[int]radio.SampleIndex{0: 100, 9: 109, 10: 113, 13: 116, 14: 119, 15: 130, 19: 134} {
		if meta.Index(k) != index {
			t.Errorf("sample %d has index %d instead of %d", k, meta.Index(k), index)
		}
	}
	for k, epoch := range map[int]radio.Epoch{0: 1, 14: 1, 15: 2, 16: 3, 19: 3} {
		if meta.EpochAt(k) != epoch {
			t.Errorf("sample %d has epoch %d instead of %d", k, meta.EpochAt(k), epoch)
		}
	}
	for k, x := range dst {
		if real(x) != float32(k+1) {
			t.Fatalf("sample %d is %v", k, x)
		}
	}
}

// A gap before the first sample is part of First.
func TestIndexAfterGap(t *testing.T) {
	m := radio.Meta{First: 50, Gaps: []radio.Gap{{At: 0, Length: 5, Exact: true}}}
	if m.Index(0) != 50 || m.Index(3) != 53 {
		t.Errorf("indices %d and %d", m.Index(0), m.Index(3))
	}
}

// Cutting a stream into blocks in any way gives the same Meta.
func TestReadFullOverAnyBlocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 2))
	for range 200 {
		const n = 60
		index, epoch := make([]radio.SampleIndex, n), make([]radio.Epoch, n)
		at, e := radio.SampleIndex(rnd.IntN(9)), radio.Epoch(1)
		for k := range n {
			if k > 0 && rnd.IntN(10) == 0 {
				at += radio.SampleIndex(1 + rnd.IntN(50))
			}
			if k > 0 && rnd.IntN(20) == 0 {
				e++
			}
			index[k], epoch[k] = at, e
			at++
		}
		s := &script{}
		for from := 0; from < n; {
			to := min(n, from+1+rnd.IntN(20))
			s.blocks = append(s.blocks, block{n: to - from, meta: metaOf(index, epoch, from, to)})
			from = to
		}
		got, meta, err := radio.ReadFull(t.Context(), s, make([]complex64, n))
		if want := metaOf(index, epoch, 0, n); got != n || err != nil || !reflect.DeepEqual(meta, want) {
			t.Fatalf("%v\n%+v instead of\n%+v", err, meta, want)
		}
	}
}

// metaOf returns the Meta of samples from to before to, of which index and epoch
// are known; a gap before from belongs to it.
func metaOf(index []radio.SampleIndex, epoch []radio.Epoch, from, to int) radio.Meta {
	m := radio.Meta{First: index[from], Epoch: epoch[from]}
	for k := max(from, 1); k < to; k++ {
		if lost := index[k] - index[k-1] - 1; lost > 0 {
			m.Gaps = append(m.Gaps, radio.Gap{At: k - from, Length: radio.SampleCount(lost), Exact: true})
		}
		if k > from && epoch[k] != epoch[k-1] {
			m.Changes = append(m.Changes, radio.EpochChange{At: k - from, Epoch: epoch[k]})
		}
	}
	return m
}

func TestReadFullErrors(t *testing.T) {
	broken := errors.New("unplugged")
	first := block{n: 5, meta: radio.Meta{First: 0}}
	for name, c := range map[string]struct {
		blocks []block
		n      int
		want   error
	}{
		"end at once":         {nil, 0, io.EOF},
		"end after samples":   {[]block{first}, 5, io.ErrUnexpectedEOF},
		"end with the last":   {[]block{{n: 10, err: io.EOF}}, 10, nil},
		"failure":             {[]block{first, {err: broken}}, 5, broken},
		"failure at the end":  {[]block{{n: 10, err: broken}}, 10, broken},
		"samples and failure": {[]block{first, {n: 2, meta: radio.Meta{First: 5}, err: broken}}, 7, broken},
		"burst end":           {[]block{{n: 5, meta: radio.Meta{Flags: radio.BurstEnded}}, first}, 5, radio.ErrBurstEnd},
		"burst end in time":   {[]block{{n: 10, meta: radio.Meta{Flags: radio.BurstEnded}}}, 10, nil},
		"nothing":             {make([]block, 200), 0, io.ErrNoProgress},
	} {
		n, _, err := radio.ReadFull(t.Context(), &script{blocks: c.blocks}, make([]complex64, 10))
		if n != c.n || !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %d samples and %v", name, n, err)
		}
	}
	n, _, err := radio.ReadFull(t.Context(), &script{blocks: []block{first, {n: 5, meta: radio.Meta{First: 3}}}}, make([]complex64, 10))
	if n != 5 || err == nil || !strings.Contains(err.Error(), "index 3 where 5 or more was due") {
		t.Errorf("backwards: %d samples and %v", n, err)
	}
}

// sink keeps what it is given and fails at block fail.
type sink struct {
	blocks, fail int
	samples      []complex64
	first        radio.SampleIndex
}

func (s *sink) Record(x []complex64, meta radio.Meta) error {
	if s.blocks++; s.blocks == s.fail {
		return errors.New("disk full")
	}
	s.samples = append(s.samples, x...)
	s.first = meta.First
	return nil
}

func TestTee(t *testing.T) {
	s := &sink{fail: 2}
	r := radio.Tee(&script{blocks: []block{{n: 3}, {n: 2, meta: radio.Meta{First: 3}, err: io.EOF}, {n: 1, meta: radio.Meta{First: 5}}}}, s)
	dst := make([]complex64, 3)
	if n, _, err := r.Read(t.Context(), dst); n != 3 || err != nil || !reflect.DeepEqual(s.samples, dst) {
		t.Fatal(n, err)
	}
	n, meta, err := r.Read(t.Context(), dst)
	var failed *radio.SinkError
	if n != 2 || meta.First != 3 || !errors.As(err, &failed) || !errors.Is(err, io.EOF) || failed.Error() != "recording stopped: disk full" || failed.Unwrap() == nil {
		t.Errorf("%d samples and %v", n, err)
	}
	if n, _, err := r.Read(t.Context(), dst); n != 1 || err != nil || s.blocks != 2 {
		t.Errorf("after the failure: %d samples, %v, sink used %d times", n, err, s.blocks)
	}
}

// ranged is a script that knows where its converter ends.
type ranged struct{ script }

func (*ranged) ClipLevel() radio.Amplitude { return 0.9 }

func TestClipLevel(t *testing.T) {
	if a, b := radio.ClipLevel(radio.Tee(&ranged{}, &sink{})), radio.ClipLevel(radio.Tee(&script{}, &sink{})); a != 0.9 || b != 0 {
		t.Errorf("clip levels %v and %v", a, b)
	}
}

// able is a script with all optional interfaces.
type able struct {
	ranged
	until  radio.SampleIndex
	losses int
}

func (a *able) ReadUntil(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	a.until = until
	return a.Read(ctx, dst)
}

func (a *able) CheckLoss(context.Context) error { a.losses++; return nil }

// seenThrough uses what a receiver that wraps a can, and returns its names.
func (a *able) seenThrough(t *testing.T, name string, tee radio.Receiver) (has []string) {
	t.Helper()
	if b, ok := tee.(radio.Bounded); ok {
		has = append(has, "Bounded")
		if _, _, _ = b.ReadUntil(t.Context(), nil, 7); a.until != 7 {
			t.Errorf("%s: read until %v instead of 7", name, a.until)
		}
	}
	if r, ok := tee.(radio.Ranged); ok {
		has = append(has, "Ranged")
		if l := r.ClipLevel(); l != 0.9 {
			t.Errorf("%s: clip level %v", name, l)
		}
	}
	if c, ok := tee.(radio.LossChecker); ok {
		has = append(has, "LossChecker")
		if err := c.CheckLoss(t.Context()); err != nil || a.losses != 1 {
			t.Errorf("%s: asked %d times for losses: %v", name, a.losses, err)
		}
	}
	return has
}

// A receiver that is wrapped has the optional interfaces of the one within, and no
// others: all eight combinations.
func TestWrapKeepsWhatAReceiverCan(t *testing.T) {
	a := &able{}
	type (
		receiver = radio.Receiver
		bounded  = radio.Bounded
		level    = radio.Ranged
		asked    = radio.LossChecker
	)
	for name, rx := range map[string]radio.Receiver{
		"": struct{ receiver }{a}, "Bounded": struct{ bounded }{a},
		"Ranged": struct {
			receiver
			level
		}{a, a},
		"LossChecker": struct {
			receiver
			asked
		}{a, a},
		"Bounded Ranged": struct {
			bounded
			level
		}{a, a},
		"Bounded LossChecker": struct {
			bounded
			asked
		}{a, a},
		"Ranged LossChecker": struct {
			receiver
			level
			asked
		}{a, a, a},
		"Bounded Ranged LossChecker": a,
	} {
		*a = able{ranged: ranged{script{blocks: make([]block, 2)}}}
		tee := radio.Tee(rx, &sink{})
		has := a.seenThrough(t, name, tee)
		if got := strings.Join(has, " "); got != name {
			t.Errorf("it has %q instead of %q", got, name)
		}
		if _, _, _ = tee.Read(t.Context(), nil); strings.Contains(name, "Bounded") && a.until != radio.Forever {
			t.Errorf("%s: a read until %v", name, a.until)
		}
	}
	clips := radio.Wrap(struct{ receiver }{a}, radio.Wrapping{ClipLevel: func() radio.Amplitude { return 0.5 }})
	if l := radio.ClipLevel(clips); l != 0.5 {
		t.Errorf("an own clip level is %v instead of 0.5", l)
	}
}

// A receiver that cannot end its reads at an index gives no sample beyond it but
// those that it stepped to over a loss.
func TestReadFullUntil(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks []block
		until  radio.SampleIndex
		n      int
		err    error
	}{
		{"at a block's end", []block{{n: 3}, {n: 2, meta: radio.Meta{First: 3}}, {n: 3, meta: radio.Meta{First: 5}}}, 5, 5, nil},
		{"stepped over", []block{{n: 3}, {n: 2, meta: radio.Meta{First: 7, Gaps: []radio.Gap{{Length: 4, Exact: true}}}}, {n: 3, meta: radio.Meta{First: 9}}}, 5, 5, nil},
		{"the end before it", []block{{n: 3}, {meta: radio.Meta{First: 3}, err: io.EOF}}, 5, 3, io.ErrUnexpectedEOF},
		{"nothing", nil, 5, 0, io.EOF},
		{"full before it", []block{{n: 3}, {n: 3, meta: radio.Meta{First: 3}}, {n: 2, meta: radio.Meta{First: 6}}}, 50, 8, nil},
	} {
		n, meta, err := radio.ReadFullUntil(t.Context(), &script{blocks: c.blocks}, make([]complex64, 8), c.until)
		if n != c.n || err != c.err {
			t.Errorf("%s: %d samples, %+v, %v", c.name, n, meta, err)
		}
	}
}

func TestEventQueue(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	q := radio.NewEventQueue()
	if _, err := q.Next(over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	const pushed, kept = 1500, 1024
	for k := range pushed {
		q.Push(radio.Event{Kind: radio.Late, Index: radio.SampleIndex(k)})
	}
	// What was dropped comes before what is pushed afterwards.
	if _, err := q.Next(over); err != nil {
		t.Error(err)
	}
	q.Push(radio.Event{Kind: radio.BurstSent})
	for k := 1; k < kept; k++ {
		if e, err := q.Next(over); err != nil || e.Kind != radio.Late || e.Index != radio.SampleIndex(k) {
			t.Fatalf("event %d is %+v: %v", k, e, err)
		}
	}
	if e, err := q.Next(over); err != nil || e.Kind != radio.EventsLost || e.Count != pushed-kept {
		t.Errorf("%+v: %v", e, err)
	}
	if e, err := q.Next(over); err != nil || e.Kind != radio.BurstSent {
		t.Errorf("%+v: %v", e, err)
	}
	result := make(chan error)
	for range 2 {
		go func() {
			for {
				if _, err := q.Next(context.Background()); err != nil {
					result <- err
					return
				}
			}
		}()
	}
	q.Push(radio.Event{})
	q.Close()
	q.Push(radio.Event{})
	for range 2 {
		if err := <-result; !errors.Is(err, radio.ErrClosed) {
			t.Error(err)
		}
	}
}

// Durations against exact rationals, and back.
func TestDuration(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 1))
	for range 10000 {
		rate := radio.Hertz(1 + rnd.Int64N(1e9))
		n := radio.SampleCount(rnd.Int64N(1 << uint(1+rnd.IntN(62))))
		exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(int64(n)), big.NewInt(1e9)), big.NewInt(int64(rate)))
		ceil := new(big.Int).Add(exact.Num(), new(big.Int).Sub(exact.Denom(), big.NewInt(1)))
		ceil.Div(ceil, exact.Denom())
		want := time.Duration(math.MaxInt64)
		if ceil.IsInt64() {
			want = time.Duration(ceil.Int64())
		}
		got := rate.Duration(n)
		if got != want {
			t.Fatalf("%d samples at %v take %v instead of %v", n, rate, got, want)
		}
		if want != math.MaxInt64 && rate.Samples(got) != n {
			t.Fatalf("%v at %v are %d samples instead of %d", got, rate, rate.Samples(got), n)
		}
	}
	if d := radio.Hertz(0.5).Duration(3); d != 6*time.Second || radio.Hertz(0.5).Samples(d) != 3 {
		t.Errorf("3 samples at 0.5 Hz take %v", d)
	}
	if radio.Hertz(0.5).Duration(math.MaxInt64) != math.MaxInt64 || radio.Hertz(1e18).Samples(math.MaxInt64) != math.MaxInt64 {
		t.Error("no saturation")
	}
}

func TestUnits(t *testing.T) {
	for f, want := range map[radio.Hertz]string{
		0: "0 Hz", 433.92e6: "433.92 MHz", -2.4e9: "-2.4 GHz", 300e9: "300 GHz", 1e12: "1 THz", 1234.5: "1.2345 kHz",
	} {
		if f.String() != want {
			t.Errorf("%v instead of %s", f, want)
		}
	}
	if p := radio.Decibels(20).Power(); math.Abs(float64(p)-100) > 1e-12 || math.Abs(float64(p.Decibels())-20) > 1e-12 {
		t.Errorf("20 dB of power are %v", p)
	}
	if a := radio.Decibels(20).Amplitude(); math.Abs(float64(a)-10) > 1e-12 || math.Abs(float64(a.Power())-100) > 1e-12 {
		t.Errorf("20 dB of amplitude are %v", a)
	}
	names := fmt.Sprint(radio.Overrun|radio.Unlocked, radio.Flags(0), radio.Ready, radio.Armed, radio.Running, radio.Closed, radio.State(9),
		radio.Underrun, radio.Late, radio.BurstSent, radio.EpochChanged, radio.EventsLost, radio.EventKind(9), radio.Receive, radio.Transmit, radio.Decibels(3))
	if names != "overrun, unlocked none ready armed running closed unknown state underrun late burst sent epoch changed events lost unknown event receive transmit 3 dB" {
		t.Error(names)
	}
}

// HackRF's LNA: 0 to 40 dB in steps of 8, rounded down.
func TestSpan(t *testing.T) {
	lna := radio.Span[radio.Decibels]{Max: 40, Step: 8}
	for v, want := range map[radio.Decibels]radio.Decibels{0: 0, 7.9: 0, 8: 8, 39: 32, 40: 40} {
		if got, err := lna.Floor("lna", v); got != want || err != nil {
			t.Errorf("%v becomes %v: %v", v, got, err)
		}
	}
	fine := radio.Span[radio.Decibels]{Min: -89.75, Step: 0.25}
	if got, err := fine.Floor("pluto", -0.25); got != -0.25 || err != nil {
		t.Errorf("%v: %v", got, err)
	}
	for _, v := range []radio.Decibels{-1, 41, radio.Decibels(math.NaN())} {
		if _, err := lna.Floor("lna", v); err == nil || !strings.Contains(err.Error(), "lna is "+v.String()+"; allowed is 0 dB to 40 dB in steps of 8 dB") {
			t.Errorf("%v: %v", v, err)
		}
	}
}

// board has all that can be described.
type board struct{}

func (board) Info() radio.Info {
	return radio.Info{URI: "board:0", Driver: "test", Model: "Board", Serial: "7", Firmware: "2026.1", Revision: "r9", Notes: []string{"never tried on hardware"}}
}
func (board) Close() error                                                 { return nil }
func (board) OpenReceiver(context.Context) (radio.Receiver, error)         { return &script{}, nil }
func (board) Antennas(radio.Direction) []string                            { return []string{"A", "B"} }
func (board) Antenna(radio.Direction) string                               { return "A" }
func (board) SetAntenna(context.Context, radio.Direction, string) error    { return nil }
func (board) ClockSources() []string                                       { return []string{"internal", "10 MHz"} }
func (board) ClockSource() string                                          { return "internal" }
func (board) SetClockSource(context.Context, string) error                 { return nil }
func (board) ClockLocked(context.Context) (bool, error)                    { return true, nil }
func (board) TriggerSources() []string                                     { return []string{"P28"} }
func (board) SetTrigger(context.Context, string) error                     { return nil }
func (board) Gain(_ radio.Direction, stage string) (radio.Decibels, error) { return 16, nil }
func (board) SetGain(context.Context, radio.Direction, string, radio.Decibels) (radio.Decibels, error) {
	return 0, nil
}
func (board) GainStages(radio.Direction) []radio.GainStage {
	return []radio.GainStage{{Name: "LNA", Span: radio.Span[radio.Decibels]{Max: 40, Step: 8}}}
}

func TestDescribe(t *testing.T) {
	want := `board:0, Board, serial 7, firmware 2026.1, revision r9, driver test
  receive: yes
  receive gain LNA: 16 dB (0 dB to 40 dB in steps of 8 dB)
  receive antenna: A (of A, B)
  clock: internal (of internal, 10 MHz)
  trigger: P28
  indices: counted by the host
  note: never tried on hardware`
	if got := radio.Describe(board{}).String(); got != want {
		t.Errorf("described as\n%s", got)
	}
}

type opener struct{ name *string }

func (o opener) Open(_ context.Context, u radio.URI) (radio.Device, error) {
	*o.name = u.Name
	return board{}, nil
}

func TestRegistry(t *testing.T) {
	var name string
	r, err := radio.NewRegistry(map[string]radio.Opener{"board": opener{&name}, "a": opener{&name}})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := r.Open(t.Context(), "board:usb 1%3f?x=1"); d == nil || err != nil || name != "usb 1?" {
		t.Errorf("%q: %v", name, err)
	}
	if u, err := radio.ParseURI("rtl_tcp:localhost:1234"); err != nil || u.Scheme != "rtl_tcp" || u.Name != "localhost:1234" {
		t.Errorf("%+v: %v", u, err)
	}
	for uri, want := range map[string]string{
		"bored:0":      `scheme "bored"; allowed is a, board`,
		"board":        "has no scheme; allowed is scheme:name",
		"Board:0":      "has no scheme",
		":0":           "has no scheme",
		"_board:0":     "has no scheme",
		"board:%zz":    "two hexadecimal digits",
		"board:?a=%":   "allowed is key=value",
		"board:?a=1&a": `the parameter "a" 2 times; allowed is once`,
	} {
		if _, err := r.Open(t.Context(), uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for scheme, o := range map[string]radio.Opener{"1": opener{&name}, "b": nil} {
		if _, err := radio.NewRegistry(map[string]radio.Opener{scheme: o}); err == nil {
			t.Errorf("scheme %q with %v is taken", scheme, o)
		}
	}
	if empty, err := radio.NewRegistry(nil); err != nil || len(empty.Schemes()) != 0 {
		t.Error(err)
	} else if _, err := empty.Open(t.Context(), "a:"); err == nil || !strings.Contains(err.Error(), "allowed is none") {
		t.Error(err)
	}
}

func FuzzURI(f *testing.F) {
	for _, s := range []string{"loopback:bench?tx=0", "file:/a b%3F%25.sigmf-meta?checksum=skip", "a:", ":", "x:%zz", "h+1.-:?&=&;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := radio.ParseURI(s)
		if err != nil {
			return
		}
		again, err := radio.ParseURI(u.String())
		if err != nil || again.Scheme != u.Scheme || again.Name != u.Name || again.Params.Encode() != u.Params.Encode() {
			t.Fatalf("%q is %+v, written %q, read as %+v: %v", s, u, u.String(), again, err)
		}
	})
}
