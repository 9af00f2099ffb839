package phy

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// tuned is a transmitter that has an epoch, and keeps what it is given.
type tuned struct {
	radio.Transmitter
	epoch   radio.Epoch
	written []complex64
	meta    radio.TxMeta
	silent  radio.SampleIndex
}

func (x *tuned) Epoch() radio.Epoch { return x.epoch }

func (x *tuned) Write(_ context.Context, block []complex64, meta radio.TxMeta) (int, error) {
	x.written, x.meta = append(x.written, block...), meta
	return len(block), nil
}

func (x *tuned) Idle(_ context.Context, until radio.SampleIndex) error {
	x.silent = max(x.silent, until)
	return nil
}

// An attempt is void from the first change of an epoch on, and the next is not; what
// makes it void longer is a phase that was measured in another epoch, or a transmitter
// that has lost count.
func TestEpochs(t *testing.T) {
	const changed = "the tuning epoch of device 2 changed"
	for name, x := range map[string]struct {
		phase       bool
		happens     func(e *epochs, device *tuned, meta *radio.Meta)
		void, after string
	}{
		"nothing": {},
		"device":  {happens: func(_ *epochs, device *tuned, _ *radio.Meta) { device.epoch++ }, void: changed},
		"device, phase given": {phase: true, happens: func(_ *epochs, device *tuned, _ *radio.Meta) { device.epoch++ }, void: changed,
			after: "the phase given is that of an earlier tuning epoch of device 2: it must be measured again"},
		"receiver": {happens: func(_ *epochs, _ *tuned, meta *radio.Meta) { meta.Epoch++ }, void: "the receiver's tuning epoch changed"},
		"receiver, phase given": {phase: true, happens: func(_ *epochs, _ *tuned, meta *radio.Meta) { meta.Epoch++ },
			void:  "the phase given is that of an earlier tuning epoch of the receiver: it must be measured again",
			after: "the phase given is that of an earlier tuning epoch of the receiver: it must be measured again"},
		"receiver, inside": {happens: func(_ *epochs, _ *tuned, meta *radio.Meta) {
			meta.Changes = []radio.EpochChange{{At: 3, Epoch: 1}}
		}, void: "the receiver's tuning epoch changed"},
		"counted underrun": {happens: func(e *epochs, _ *tuned, _ *radio.Meta) {
			e.hear(1, radio.Event{Kind: radio.Underrun, Exact: true})
		}, void: "device 2 had an underrun"},
		"underrun": {happens: func(e *epochs, _ *tuned, _ *radio.Meta) { e.hear(1, radio.Event{Kind: radio.Underrun}) },
			void:  "device 2 had an underrun",
			after: "device 2 lost count of its samples in an underrun: its streams must be opened anew"},
	} {
		t.Run(name, func(t *testing.T) {
			device, meta := &tuned{}, radio.Meta{Epoch: 1}
			e := &epochs{streams: &streams{tx: []radio.Transmitter{&tuned{}, device}}, phaseGiven: x.phase}
			e.begin()
			e.check(meta, true)
			if e.void != "" {
				t.Fatalf("void before anything happened: %s", e.void)
			}
			if x.happens != nil {
				x.happens(e, device, &meta)
			}
			e.check(meta, true)
			if e.void != x.void {
				t.Errorf("void is %q, not %q", e.void, x.void)
			}
			meta.Changes = nil
			e.begin()
			e.check(meta, true)
			if e.void != x.after {
				t.Errorf("void in the next attempt is %q, not %q", e.void, x.after)
			}
		})
	}
}

// The receiver's index is searched for until a frame is found, and again behind a loss
// that nobody has counted and behind two frames that are not there; never without reach.
func TestTimeline(t *testing.T) {
	l := newTimeline(100, 50)
	want := func(what string, margin, due radio.SampleIndex) {
		t.Helper()
		if l.margin() != margin || l.due() != due {
			t.Errorf("%s: within %d samples of %d, not %d of %d", what, l.margin(), l.due(), margin, due)
		}
	}
	want("new", 50, 100)
	l.foundFrame(7)
	want("found", 0, 107)
	l.noteLoss([]radio.Gap{{Length: 9, Exact: true}})
	want("counted loss", 0, 107)
	l.noteLoss([]radio.Gap{{Length: 9, Exact: true}, {}})
	want("loss", 50, 107)
	l.foundFrame(-2)
	l.hasTimed = true
	l.missedFrame()
	want("one frame missed", 0, 105)
	l.missedFrame()
	want("two frames missed", 50, 105)
	if l.hasTimed {
		t.Error("a preamble's place is kept though the index is in doubt")
	}
	l.heardUntil(305)
	want("heard", 50, 305)
	l.missedFrame()
	if l.astray != 0 {
		t.Errorf("%d frames astray without a loss", l.astray)
	}
	l.noteLoss([]radio.Gap{{}})
	l.missedFrame()
	l.missedFrame()
	if l.astray != 2 {
		t.Errorf("%d frames astray, and not 2", l.astray)
	}
	l.foundFrame(0)
	l.missedFrame()
	if l.astray != 0 {
		t.Errorf("%d frames astray once one was found", l.astray)
	}
	l.begin(1000)
	want("begun anew", 50, 1000)

	l = newTimeline(0, 0)
	l.hasTimed = true
	for range 2 * maxMissed {
		l.missedFrame()
	}
	want("no reach", 0, 0)
	if !l.hasTimed {
		t.Error("a preamble's place is forgotten though the index is not in doubt")
	}
}

// Groups are brought to one scale by the smallest integers that do, and by 1 where none
// do.
func TestGroupsReconcile(t *testing.T) {
	for _, x := range []struct {
		alpha []float64
		most  int64
		want  []int64
	}{
		{[]float64{17}, 50, []int64{1}},
		{[]float64{10, 10.05}, 50, []int64{1, 1}},
		{[]float64{10, 15}, 50, []int64{3, 2}},
		{[]float64{15, 10, 30}, 50, []int64{2, 3, 1}},
		{[]float64{10, 13}, 5, []int64{4, 3}}, // the best that is to be had
		{[]float64{10, 13}, 50, []int64{13, 10}},
		{[]float64{1, 200}, 50, []int64{1, 1}},
	} {
		var gs groups
		for _, alpha := range x.alpha {
			gs = append(gs, &group{alpha: alpha})
		}
		gs.reconcile(x.most)
		mean := 0.0
		for i, g := range gs {
			if g.scale != x.want[i] {
				t.Errorf("%v, %d at most: group %d has the scale %d, not %d", x.alpha, x.most, i+1, g.scale, x.want[i])
			}
			mean += float64(x.want[i]) * x.alpha[i] / float64(len(x.alpha))
		}
		if math.Abs(gs.alpha()-mean) > 1e-12*mean {
			t.Errorf("%v: alpha is %v, not %v", x.alpha, gs.alpha(), mean)
		}
	}
}

// A frame goes from sender to finder to reader, without a Waveform: where it was to be
// and where it is not, as the finder's timeline then knows.
func TestFrameThroughParts(t *testing.T) {
	const n, late, start = 50, 37, 5000
	cfg := WaveformConfig{
		Modulus: newModulus(t, 0x7fff801), Devices: 1, Base: 3, Modem: flatTop, Alpha: 1,
		Secret: keystream.FromInteger(31), Flush: 11,
	}
	cfg.setDefaults()
	cfg.Modem.Preamble.Level = 1
	codec, err := digit.New(cfg.Modulus, cfg.Base)
	must(t, err)
	detector, err := modem.NewDetector(cfg.Modem, cfg.Search)
	must(t, err)
	demod, err := modem.NewDemodulator(cfg.Modem, cfg.Receive)
	must(t, err)
	gs, err := newGroups(&cfg)
	must(t, err)
	g, device := gs[0], &tuned{}

	s := newSender(&cfg, &streams{tx: []radio.Transmitter{device}}, newTimeline(start, 0))
	must(t, s.adjust(&cfg, cfg.Alignment))
	l := newLayout(&cfg, codec, g.patterns.Symbols(), s.devices[0].modulator)
	p, err := l.payload(slot.TxKey, n)
	must(t, err)
	unit, err := cfg.unit(cfg.Alignment)
	must(t, err)
	e := expected{header: headerOf(slot.Slot{}, 0, 0, 0), payload: p, unit: unit}
	r := &reader{layout: l, time: newTimeline(0, 100), detector: detector, demod: demod, secret: cfg.Secret, alpha: 1}
	r.draw(g, e)
	x := randomPayloads(cfg.Modulus, 1, n, rand.New(rand.NewPCG(31, 31)))[0]
	own := newFramer(l, g.members, 0, cfg.Modem.Preamble.Level)
	own.open(p)
	if own.sent {
		t.Error("a device that has sent nothing has sent something")
	}
	own.take(p, x)
	s.modulate(g.indices(), func(int) {
		own.finish(p, e.header)
		s.devices[0].symbols = own.symbols
	})
	window, guard := l.window(g.patterns.Symbols(), p), l.guard()
	c := s.place(s.window(len(own.symbols)))
	must(t, s.send(t.Context(), g.indices(), c, slot.TxKey))
	at := c.At
	if at != start {
		t.Errorf("sent at %d: due at %d", at, start)
	}
	checkSent(t, s, device, at, window)

	air := &tape{samples: make([]complex64, 4*window), next: 100} // as far ahead as it may lie
	copy(air.samples[guard+200+late:], device.written)
	f := &finder{layout: l, streams: &streams{rx: air}, time: r.time, detector: detector}
	f.time.seek(200)
	_, err = f.hear(t.Context(), 200, window)
	must(t, err)
	if c := &f.capture; c.untraced || len(c.samples) != window || c.first < 200+late-2 || c.first > 200+late+2 || f.time.offset != c.first-200 {
		t.Errorf("found at %d, offset %d: it begins at %d", c.first, f.time.offset, 200+late)
	}
	readAlone(t, r, &f.capture, g, e)
	gs.alignScales()
	y, pattern := cfg.Modulus.NewVector(n), make([]int64, gs.patternSymbols())
	gs.join(cfg.Modulus, y, pattern)
	if !y.Equal(x) {
		t.Error("what was read is not what was sent")
	}
}

// checkSent reports an error unless a frame of window samples was sent at index at, is
// followed by silence, and leaves room for what flushes it.
func checkSent(t *testing.T, s *sender, device *tuned, at radio.SampleIndex, window int) {
	t.Helper()
	guard := s.guard
	if !device.meta.Timed || device.meta.Start != at+guard {
		t.Errorf("sent at %d, the frame at %d", at, device.meta.Start)
	}
	if want := at + radio.SampleIndex(window) + guard; device.silent != want {
		t.Errorf("silence is promised until %d, not %d", device.silent, want)
	}
	if want := at + radio.SampleIndex(window) + 11; s.time.cursor != want {
		t.Errorf("the next frame can be at %d, not behind what flushes this one, at %d", s.time.cursor, want)
	}
}

// readAlone has a reader read a capture without noise.
func readAlone(t *testing.T, r *reader, c *capture, g *group, e expected) {
	t.Helper()
	g.read.y = r.layout.modulus.NewVector(e.payload.Len())
	if failure := r.demodulate(c, g, e); failure != "" {
		t.Fatal(failure)
	}
	g.read.begin(e.payload.Blocks())
	r.combine(g, e)
	worst := WaveformReport{Quality: 1}
	if failure := r.decode(g, e, &worst); failure != "" {
		t.Fatal(failure)
	}
	if !(worst.Quality > 0.99 && worst.Quality < 1) {
		t.Errorf("the quality without noise is %v", worst.Quality)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Captures follow frames that clocks move, by whole samples, once a frame was looked for;
// where indices are the same they stay.
func TestTimelineFollows(t *testing.T) {
	l := newTimeline(0, 1000)
	l.follow(500) // not traced yet
	l.foundFrame(20)
	for _, step := range []struct {
		at   modem.Samples
		want radio.SampleIndex
	}{{210.3, 20}, {213.4, 20}, {215.1, 25}, {209, 25}, {203.2, 18}} {
		if l.follow(step.at); l.offset != step.want {
			t.Errorf("a frame at %v leaves an offset of %d, want %d", step.at, l.offset, step.want)
		}
	}
	same := newTimeline(0, 0)
	same.follow(1)
	if same.follow(90); same.offset != 0 {
		t.Errorf("indices that are the same differ by %d", same.offset)
	}
}
