package soapy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/virtual"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// table is a session at a bench of fakes.
type table struct {
	boards fakes
	guard  *virtual.Guard
	opener *Opener
	end    context.CancelFunc
}

func newTable(t testing.TB, boards fakes) *table {
	t.Helper()
	permit, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 430e6, Max: 440e6}, 1e6, 20)
	ok(t, err)
	session, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	b := &table{boards: boards, guard: virtual.NewGuard(), end: end}
	b.opener = NewOpener(session, boards, permit.WithBias(), b.guard)
	return b
}

// open opens a board, tuned to what is permitted.
func (b *table) open(t testing.TB, params string) radio.Device {
	t.Helper()
	u, err := radio.ParseURI("soapy:driver=fake,serial=F1?freq_hz=435e6&call_ms=200" + params)
	ok(t, err)
	d, err := b.opener.Open(t.Context(), u)
	ok(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func sender(t testing.TB, d radio.Device) radio.Transmitter {
	t.Helper()
	tx, err := d.(radio.TransmitOpener).OpenTransmitter(t.Context())
	ok(t, err)
	return tx
}

// inner returns the driver's own transmitter.
func inner(tx radio.Transmitter) *transmitter { return tx.(*transmitter) }

// Bursts go with the times of their indices, whole, and their ends are told.
func TestBursts(t *testing.T) {
	f := newFake()
	d := newTable(t, fakes{"F1": f}).open(t, "")
	tx := sender(t, d)
	ok(t, tx.Start(t.Context()))
	x := make([]complex64, 250)
	for k := range x {
		x[k] = amplitude(k + 1)
	}
	first := tx.(radio.Pacer).Earliest() + 5000
	for _, at := range []radio.SampleIndex{first, first + 1000, first + 1250} {
		n, err := tx.Write(t.Context(), x, radio.TxMeta{Timed: true, Start: at, BurstEnd: at != first+1000})
		if n != len(x) || err != nil {
			t.Fatal(n, err)
		}
	}
	f.stream().news <- fakeNews{info: BlockInfo{Flags: EndBurst}}
	e, err := tx.Event(t.Context())
	ok(t, err)
	if e.Kind != radio.BurstSent || e.Index != first+250 || !e.Exact {
		t.Errorf("the first event is %+v", e)
	}
	ok(t, tx.Close())
	air := f.stream().written(inner(tx).clock)
	for _, at := range []radio.SampleIndex{first, first + 1000, first + 1250} {
		for k := range x {
			if air[at+radio.SampleIndex(k)] != int16(k+1) {
				t.Fatalf("at index %d + %d there is %d", at, k, air[at+radio.SampleIndex(k)])
			}
		}
	}
	ends := 0
	for _, w := range f.stream().writes {
		if w.info.Flags&EndBurst != 0 {
			ends++
		}
	}
	if ends != 2 || len(air) != 750 {
		t.Errorf("%d ends of bursts and %d samples; allowed are 2 and 750", ends, len(air))
	}
	if f.stream().on() {
		t.Error("the board is on")
	}
}

// A burst whose end is known only once its samples are with the board ends all the same.
func TestBurstEndsLater(t *testing.T) {
	f := newFake()
	tx := sender(t, newTable(t, fakes{"F1": f}).open(t, ""))
	ok(t, tx.Start(t.Context()))
	at := tx.(radio.Pacer).Earliest() + 1000
	_, err := tx.Write(t.Context(), make([]complex64, 10), radio.TxMeta{Timed: true, Start: at})
	ok(t, err)
	ok(t, tx.(radio.Idler).Idle(t.Context(), at+5000))
	ok(t, tx.Close())
	writes := f.stream().writes
	if last := writes[len(writes)-1]; last.info.Flags&EndBurst == 0 {
		t.Errorf("the last write has the flags %b", last.info.Flags)
	}
}

// What comes after its time is told, whether the driver notices or the board does.
func TestLateBursts(t *testing.T) {
	f := newFake()
	tx := sender(t, newTable(t, fakes{"F1": f}).open(t, ""))
	ok(t, tx.Start(t.Context()))
	f.advance(10 * time.Second)
	ok(t, inner(tx).readClock(t.Context()))
	if n, err := tx.Write(t.Context(), make([]complex64, 7), radio.TxMeta{Timed: true, Start: 20, BurstEnd: true}); n != 7 || err != nil {
		t.Fatal(n, err)
	}
	e, err := tx.Event(t.Context())
	ok(t, err)
	if e.Kind != radio.Late || e.Index != 20 || e.Count != 7 {
		t.Errorf("the driver told %+v", e)
	}
	f.stream().news <- fakeNews{BlockInfo{HasTime, inner(tx).clock.at(321)}, ErrLate}
	if e, err = tx.Event(t.Context()); e.Kind != radio.Late || e.Index != 321 || !e.Exact || err != nil {
		t.Errorf("of the board's news it told %+v, %v", e, err)
	}
	f.stream().news <- fakeNews{BlockInfo{HasTime, inner(tx).clock.at(400)}, ErrUnderflow}
	if e, err = tx.Event(t.Context()); e.Kind != radio.Underrun || e.Index != 400 || err != nil {
		t.Errorf("of an underflow it told %+v, %v", e, err)
	}
	ok(t, tx.Close())
}

// A board without a clock is kept fed, and its underflow makes an epoch: nobody knows where
// it is then.
func TestFill(t *testing.T) {
	f := newFake()
	f.plain = true
	d := newTable(t, fakes{"F1": f}).open(t, "")
	if _, timed := d.(radio.TimeControl); timed {
		t.Error("it says that it counts time")
	}
	tx := sender(t, d)
	ok(t, tx.Start(t.Context()))
	before := tx.Epoch()
	f.stream().news <- fakeNews{err: ErrUnderflow}
	kinds := []radio.EventKind{}
	for range 3 {
		e, err := tx.Event(t.Context())
		ok(t, err)
		kinds = append(kinds, e.Kind)
	}
	if want := []radio.EventKind{radio.Underrun, radio.EpochChanged, radio.EpochChanged}; fmt.Sprint(kinds) != fmt.Sprint(want) || tx.Epoch() == before {
		t.Errorf("events are %v, the epoch %d was %d", kinds, tx.Epoch(), before)
	}
	at := tx.(radio.Pacer).Earliest() + 100_000
	_, err := tx.Write(t.Context(), []complex64{amplitude(7)}, radio.TxMeta{Timed: true, Start: at, BurstEnd: true})
	ok(t, err)
	ok(t, tx.Close())
	if air := f.stream().written(clock{}); air[at] != 7 || len(air) != 1 {
		t.Errorf("on the air is %v; allowed is 7 at %d", air, at)
	}
}

// Samples stand where their times say; what is missing is counted.
func TestReceiveByTime(t *testing.T) {
	f := newFake()
	d := newTable(t, fakes{"F1": f}).open(t, "")
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	ok(t, err)
	d.(radio.TimedStart).StartAt(3e9)
	ok(t, rx.Start(t.Context()))
	s := f.stream()
	if s.began != (BlockInfo{HasTime, 3e9}) {
		t.Errorf("it began with %+v", s.began)
	}
	at := func(i int) BlockInfo { return BlockInfo{HasTime, 3e9 + 1000*Time(i)} }
	s.reads <- fakeRead{first: 5, n: 20, info: at(5)} // the first five were lost
	s.reads <- fakeRead{err: ErrOverflow}
	s.reads <- fakeRead{first: 125, n: 20, info: at(125)}
	s.reads <- fakeRead{first: 145, n: 10, info: at(145)}
	x := make([]complex64, 50)
	n, meta, err := radio.ReadFull(t.Context(), rx, x)
	if n != 50 || err != nil {
		t.Fatal(n, err)
	}
	for k := range x {
		if got := real(x[k]) * (1 << 15); radio.SampleIndex(got) != meta.Index(k) {
			t.Fatalf("sample %d has index %d and was sent as %v", k, meta.Index(k), got)
		}
	}
	lost := radio.SampleCount(0)
	for _, g := range meta.Gaps {
		if lost += g.Length; !g.Exact {
			t.Errorf("a gap of %d is not exact", g.Length)
		}
	}
	if lost != 105 || meta.Flags&radio.HostCounted != 0 || meta.Flags&radio.Overrun == 0 {
		t.Errorf("%d were lost, flags %v; allowed are 105", lost, meta.Flags)
	}
	ok(t, rx.Close())
	if s.on() || !s.closed {
		t.Error("the stream is on")
	}
}

// Without a clock nobody knows how many were lost: that is another epoch.
func TestReceiveWithoutTime(t *testing.T) {
	f := newFake()
	f.plain = true
	rx, err := newTable(t, fakes{"F1": f}).open(t, "").(radio.ReceiveOpener).OpenReceiver(t.Context())
	ok(t, err)
	ok(t, rx.Start(t.Context()))
	f.stream().reads <- fakeRead{n: 10}
	f.stream().reads <- fakeRead{err: ErrOverflow}
	f.stream().reads <- fakeRead{n: 10}
	n, meta, err := radio.ReadFull(t.Context(), rx, make([]complex64, 20))
	if n != 20 || err != nil {
		t.Fatal(n, err)
	}
	if len(meta.Gaps) != 1 || meta.Gaps[0].Exact || meta.Gaps[0].At != 10 || len(meta.Changes) != 1 || meta.Changes[0].At != 10 {
		t.Errorf("gaps are %+v, epochs %+v", meta.Gaps, meta.Changes)
	}
	f.stream().reads <- fakeRead{err: ErrStream}
	if _, _, err := rx.Read(t.Context(), make([]complex64, 1)); !errors.Is(err, ErrStream) {
		t.Errorf("a broken stream gave %v", err)
	}
	ok(t, rx.Close())
}

// A stream that was retuned before its start is of one epoch soon.
func TestRetunedBeforeStart(t *testing.T) {
	f := newFake()
	d := newTable(t, fakes{"F1": f}).open(t, "")
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	ok(t, err)
	_, err = d.(radio.FrequencyControl).SetFrequency(t.Context(), radio.Receive, 436e6)
	ok(t, err)
	ok(t, rx.Start(t.Context()))
	for i := range 4 {
		f.stream().reads <- fakeRead{n: 10, info: BlockInfo{HasTime, Time(10_000 * i)}}
	}
	_, meta, err := radio.ReadFull(t.Context(), rx, make([]complex64, 40))
	ok(t, err)
	if got := meta.EpochAt(39); got != rx.Epoch() {
		t.Errorf("the epoch is %d and not %d", got, rx.Epoch())
	}
	ok(t, rx.Close())
}

// Nothing is sent that was not permitted, or that nobody watches over.
func TestPermits(t *testing.T) {
	f := newFake()
	b := newTable(t, fakes{"F1": f})
	d := b.open(t, "")
	for name, g := range f.gains {
		if g != 0 {
			t.Errorf("the gain %s of a board that was opened is %v", name, g)
		}
	}
	g := d.(radio.GainControl)
	if _, err := g.SetGain(t.Context(), radio.Transmit, "A", 15); err != nil {
		t.Error(err)
	}
	if _, err := g.SetGain(t.Context(), radio.Transmit, "B", 6); !errors.Is(err, radio.ErrNotPermitted) || f.gains["B"] != 0 {
		t.Errorf("21 dB gave %v", err)
	}
	tune := d.(radio.FrequencyControl)
	_, err := tune.SetFrequency(t.Context(), radio.Transmit, 2.4e9)
	ok(t, err)
	if _, err := d.(radio.TransmitOpener).OpenTransmitter(t.Context()); !errors.Is(err, radio.ErrNotPermitted) {
		t.Errorf("at 2.4 GHz it gave %v", err)
	}
	_, err = tune.SetFrequency(t.Context(), radio.Transmit, 435e6)
	ok(t, err)
	tx := sender(t, d)
	if _, err := tune.SetFrequency(t.Context(), radio.Transmit, 2.4e9); !errors.Is(err, radio.ErrNotPermitted) || f.freq[radio.Transmit] != 435e6 {
		t.Errorf("a retune gave %v", err)
	}
	ok(t, tx.Close())
	b.opener.guard = nil
	d2 := b.open(t, "")
	if _, err := d2.(radio.TransmitOpener).OpenTransmitter(t.Context()); !errors.Is(err, radio.ErrNoGuard) {
		t.Errorf("without a guard it gave %v", err)
	}
}

// The carrier goes off when the session ends, when the guard is lost and when the stream
// fails, and stays off.
func TestOff(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*table, *fake)
		want error
	}{
		{"session", func(b *table, _ *fake) { b.end() }, ErrSessionOver},
		{"guard", func(b *table, _ *fake) { b.guard.Lose("it is a test") }, radio.ErrGuard},
		{"stream", func(_ *table, f *fake) { f.stream().news <- fakeNews{err: ErrStream} }, ErrStream},
	} {
		f := newFake()
		f.plain, f.strict = true, true
		b := newTable(t, fakes{"F1": f})
		d := b.open(t, "")
		tx := sender(t, d)
		ok(t, tx.Start(t.Context()))
		if !f.stream().on() {
			t.Fatal("it is not on")
		}
		c.do(b, f)
		<-inner(tx).fed
		if f.stream().on() {
			t.Errorf("%s: it is on", c.name)
		}
		if _, err := tx.Write(t.Context(), make([]complex64, 1), radio.TxMeta{}); !errors.Is(err, c.want) {
			t.Errorf("%s: a write gave %v", c.name, err)
		}
		_ = tx.Close()
		ok(t, d.Close())
		if len(b.guard.Watched()) != 0 {
			t.Errorf("%s: the guard watches on", c.name)
		}
	}
}

// A Start that Close has overtaken switches nothing on, and one that it waits for leaves nothing
// on.
func TestStartAndClose(t *testing.T) {
	f := newFake()
	d := newTable(t, fakes{"F1": f}).open(t, "")
	tx := sender(t, d)
	ok(t, tx.Close())
	if err := inner(tx).begin(t.Context()); !errors.Is(err, radio.ErrClosed) || len(f.streams) != 0 {
		t.Errorf("behind Close a start gave %v and made %d streams", err, len(f.streams))
	}
	tx = sender(t, d)
	ok(t, inner(tx).begin(t.Context()))
	ok(t, tx.Close())
	if f.stream().on() || !f.stream().closed {
		t.Error("what had begun is on behind Close")
	}
}

// What a board says of a stream that was switched off is no failure.
func TestQuietEnd(t *testing.T) {
	f := newFake()
	f.strict = true
	d := newTable(t, fakes{"F1": f}).open(t, "")
	for range 20 {
		tx := sender(t, d)
		ok(t, tx.Start(t.Context()))
		_, err := tx.Write(t.Context(), make([]complex64, 10), radio.TxMeta{BurstEnd: true})
		ok(t, err)
		ok(t, tx.Close())
	}
}

// A board that cannot be switched off is said to be on, and its guard is not let go.
func TestCarrierStays(t *testing.T) {
	for _, hang := range []bool{false, true} {
		f := newFake()
		b := newTable(t, fakes{"F1": f})
		d := b.open(t, "")
		tx := sender(t, d)
		ok(t, tx.Start(t.Context()))
		f.mu.Lock()
		if hang {
			f.hanging["Deactivate"] = true
		} else {
			f.failing["Deactivate"] = ErrStream
		}
		f.mu.Unlock()
		if err := tx.Close(); !errors.Is(err, ErrCarrier) {
			t.Errorf("hanging %v: it closed with %v", hang, err)
		}
		_ = d.Close()
		if len(b.guard.Watched()) != 1 {
			t.Errorf("hanging %v: the guard has left it", hang)
		}
	}
}

// What a user writes wrong is one sentence.
func TestURIs(t *testing.T) {
	b := newTable(t, fakes{"F1": newFake()})
	for _, c := range []struct{ uri, want string }{
		{"soapy:driver", `have "driver"; allowed is key=value`},
		{"soapy:driver=fake,serial=F1?nothing=1", "nothing=1; allowed is channel"},
		{"soapy:driver=fake,serial=F1?channel=x", "channel=x; allowed is a whole number from 0 to 63"},
		{"soapy:driver=fake,serial=F1?channel=3", "it has no channel 3"},
		{"soapy:driver=fake,serial=F1?format=CF64", "format=CF64; allowed is CF32, CS16, CS8, CU8"},
		{"soapy:driver=fake,serial=F1?format=CS8", "it has no format CS8 to receive; there are CS16, CF32"},
		{"soapy:driver=fake,serial=F1?rate_hz=3e5", "sample rate of soapy:"},
		{"soapy:driver=fake,serial=F1?rx_antenna=up", `has no receive antenna "up"; allowed is TX/RX, RX2`},
		{"soapy:driver=fake,serial=F1?rx_gain.C=1", `has no receive gain "C"; allowed is A, B`},
		{"soapy:driver=fake,serial=F1?tx_gain.A=30", "the transmit gains add up to 30 dB; allowed is at most 20 dB"},
		{"soapy:driver=fake,serial=F1?clock=moon", `no clock source "moon"; allowed is internal, external`},
		{"soapy:driver=fake,serial=F1?time=moon", `no time source "moon"; allowed is internal, external`},
		{"soapy:driver=fake,serial=F2", "no match; SoapySDR finds driver=fake,serial=F1"},
	} {
		u, err := radio.ParseURI(c.uri)
		ok(t, err)
		d, err := b.opener.Open(t.Context(), u)
		if err == nil {
			_ = d.Close()
			t.Errorf("%s was opened", c.uri)
		} else if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.uri, err)
		}
	}
	d := b.open(t, "&setting.biastee=true&rx_gain.A=7&rx_antenna=RX2&clock=external&time=external")
	if f := b.boards["F1"]; fmt.Sprint(f.settings) != "[biastee=true]" || f.source != "external" {
		t.Errorf("settings are %v, the time source %s", f.settings, f.source)
	}
	if a := d.(radio.AntennaControl); a.Antenna(radio.Receive) != "RX2" || a.Antenna(radio.Transmit) != "TX/RX" {
		t.Errorf("antennas are %s and %s", a.Antenna(radio.Receive), a.Antenna(radio.Transmit))
	}
}

// Indices and times belong together, for months and at rates that no nanosecond divides.
func TestClock(t *testing.T) {
	for _, rate := range []radio.Hertz{1e6, 61.44e6, 20e6 / 3, 270833.3333, 4e7 / 7} {
		c := clock{rate, 123456789}
		for _, i := range []radio.SampleIndex{0, 1, 7, 1e6 + 1, 12345678901, 3e14 + 1} {
			if got := c.index(c.at(i)); got != i {
				t.Errorf("at %v index %d is %d", rate, i, got)
			}
		}
	}
}

// A board that cannot do both at once refuses to.
func TestHalfDuplex(t *testing.T) {
	f := newFake()
	f.half = true
	d := newTable(t, fakes{"F1": f}).open(t, "")
	rx, err := d.(radio.ReceiveOpener).OpenReceiver(t.Context())
	ok(t, err)
	if _, err := d.(radio.TransmitOpener).OpenTransmitter(t.Context()); !errors.Is(err, radio.ErrBusy) {
		t.Errorf("while it receives it gave %v", err)
	}
	ok(t, rx.Close())
	ok(t, sender(t, d).Close())
}

// Transmitters on one pulse start at one time of clocks that had shown different times, and
// what cannot is refused with the reason.
func TestPulsedArray(t *testing.T) {
	for _, c := range []struct {
		name string
		make func([]*fake)
		want string
	}{
		{"all well", func([]*fake) {}, ""},
		{"no clock", func(f []*fake) { f[1].plain = true }, "transmitter 2, soapy:serial=B, has no clock that a pulse sets"},
		{"no pulse", func(f []*fake) {
			for _, f := range f {
				f.beat = nil
			}
		}, "had no pulse within 2.5s from its time source external"},
		{"other pulses", func(f []*fake) { f[2].beat = nil }, "do all get the same pulses?"},
		{"no reference", func(f []*fake) { f[0].refLocked = "false" }, "has no reference clock at its input"},
	} {
		boards, all := fakes{}, []*fake{}
		pulses := &beat{}
		for i, name := range []string{"A", "B", "C", "R"} {
			f := newFake()
			f.beat, f.base = pulses, Time(1e9*(i+1)+i)
			boards[name], all = f, append(all, f)
		}
		c.make(all)
		b := newTable(t, boards)
		devices, err := radio.NewRegistry(map[string]radio.Opener{"soapy": b.opener})
		ok(t, err)
		a, err := array.Open(t.Context(), devices, array.Config{
			Transmitters: []string{"soapy:serial=A", "soapy:serial=B", "soapy:serial=C"}, Receiver: "soapy:serial=R",
			Rate: 1e6, Frequency: 435e6, Clock: array.ExternalClock, Trigger: array.PulsedStart,
		})
		if err == nil {
			err = a.Start(context.Background())
		}
		switch {
		case c.want != "" && (err == nil || !errors.Is(err, array.ErrIncoherent) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: it gave %v", c.name, err)
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			for i, tx := range a.Transmitters() {
				if zero := tx.(*transmitter).clock.zero; zero != a.Transmitters()[0].(*transmitter).clock.zero || all[i].first == 0 {
					t.Errorf("transmitter %d starts at %d of its clock", i+1, zero)
				}
			}
			if began := all[3].stream().began; began.Flags != HasTime || began.At != a.Transmitters()[0].(*transmitter).clock.zero {
				t.Errorf("the receiver began with %+v", began)
			}
		}
		if a != nil {
			_ = a.Close()
		}
	}
}

// A guard ends the program that has the board, and takes gains and carrier down.
func TestSwitch(t *testing.T) {
	f := newFake()
	u, err := radio.ParseURI("soapy:driver=fake,serial=F1?freq_hz=435e6")
	ok(t, err)
	ended := 0
	s, err := OpenSwitch(u, fakes{"F1": f}, false, nil, func() error { ended++; return nil })
	ok(t, err)
	ok(t, s.Off())
	if ended != 1 || f.gains["A"] != 0 || f.gains["B"] != 0 || f.stream().on() || !f.stream().closed || f.closed != 1 {
		t.Errorf("the program ended %d times, gains are %v, closed %d times", ended, f.gains, f.closed)
	}
	s, err = OpenSwitch(u, fakes{}, false, nil, func() error { return nil })
	ok(t, err)
	if s.Off() == nil {
		t.Error("a board that cannot be opened was switched off")
	}
}

// Modules name power at the antenna's port differently; all of them need the permit.
func TestBias(t *testing.T) {
	b := newTable(t, fakes{"F1": newFake()})
	for params, refused := range map[string]bool{
		"?setting.biastee=true": true, "?setting.bias_tx=1": true, "?setting.biasT_ctrl=true": true, ",bias=1": true, "?stream.bias=on": true,
		"?setting.biastee=false": false, "?setting.biastee=0": false, "?setting.offset_tune=true": false,
	} {
		u, err := radio.ParseURI("soapy:driver=fake,serial=F1" + params)
		ok(t, err)
		d, err := NewOpener(t.Context(), b.boards, radio.TransmitPermit{}, b.guard).Open(t.Context(), u)
		if err == nil {
			ok(t, d.Close())
		}
		if refused != (errors.Is(err, radio.ErrNotPermitted) && strings.Contains(err.Error(), "radio.bias_tee")) {
			t.Errorf("%s: %v", params, err)
		}
		d, err = b.opener.Open(t.Context(), u)
		ok(t, err)
		ok(t, d.Close())
	}
}
