package phy

import (
	"context"
	"errors"
	"fmt"

	"ringwave/phy/frame"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/radio"
)

// Observation is one frame as the receiver had it, for recordings and plots. Its
// slices hold until OnFrame returns, and are not to be changed.
type Observation struct {
	Slot   slot.Slot
	Group  int
	Repeat int
	// First is the index of the first of Samples, the frame's capture with its
	// guard times; Sync is where the frame lies in it, zero if it was not found.
	First   radio.SampleIndex
	Samples []complex64
	Sync    modem.Sync
	// Devices is how many send, and Guard of how many samples the silence before and behind
	// the frame is.
	Devices, Guard int
	// Report is what demodulating it has shown; zero if it was not found. Symbols are then
	// the complex symbols behind the preamble, on the axis that devices have in common, and
	// Phase tells how far that has turned at each, as it was tracked.
	Report  modem.Report
	Symbols []complex64
	Phase   func(symbol int) modem.Radians
	// Soft is the payload's soft symbols, repeats combined; nil if there are none. Alpha is
	// their scale, 0 where none reads them: of a frame that was not read, that of b.
	Soft  []float32
	Alpha float64
	// Failure says why the frame was not read, empty if it was.
	Failure string
}

// WaveformReceiver is the receiving half of a waveform link: it finds the integers that
// superposed digits are, without knowing a gain (phy/README.md, sections 2 to 6). It is for
// one goroutine.
//
// It leads a frame through its parts: the other half puts it on the air, finder captures it
// from what the receiver hears, reader turns it into integers, and epochs says whether it
// still counts.
type WaveformReceiver struct {
	// cfg is as it was given: which streams, trims and advances there are now, the
	// parts know.
	cfg     WaveformConfig
	groups  groups
	layout  *layout
	streams *streams
	time    *timeline
	finder  *finder
	reader  *reader
	epochs  *epochs
	retries *retries
	unit    float64 // soft symbol of the digit 1 from a device of gain 1
	other   otherHalf
	sender  *sender // nil unless frames are placed here: on streams of this host, or by Cues

	slot    slot.Slot
	payload *frame.Payload
	keyed   bool // b of the attempt that slot is of was read
	report  WaveformReport

	starved  int  // attempts in a row that ended as streams did
	unread   int  // attempts in a row whose b was not read
	combined bool // the frame at hand was demodulated, and is in the group's means
}

// otherHalf is what the receiver asks of the sending half.
type otherHalf interface {
	// send has the devices of a group send the frame that is due, and gives the
	// transmitters' index at which it begins, guard time included.
	send(ctx context.Context, g *group, e expected) (radio.SampleIndex, error)
}

// WaveformReport says how the last transmission went.
type WaveformReport struct {
	// Frames is the number of frames sent, Repeated those among them sent again.
	Frames, Repeated int
	// Quality is the worst group's mean cos(2 pi alpha y), Distance its mean
	// squared distance to the lattice.
	Quality, Distance float64
	// Clipped is the number of samples that the receiver says it clipped.
	Clipped radio.SampleCount
	// Failure says why the last group failed, empty if none did.
	Failure string
}

// NewWaveformReceiver makes the receiving half of a link whose devices are elsewhere: on other
// hosts, where cfg.Call reaches them, or nowhere, for a link that only listens. Transmitters of
// other hosts are written to there: here frames are paced by them, and they are asked how they
// fare.
func NewWaveformReceiver(cfg WaveformConfig) (*WaveformReceiver, error) {
	if cfg.Transmitters != nil && cfg.Call == nil {
		return nil, fmt.Errorf("a receiver of devices elsewhere with %d transmitters of its own", len(cfg.Transmitters))
	}
	w, err := newWaveformReceiver(cfg)
	if err != nil || cfg.Call == nil {
		return w, err
	}
	w.other = &elsewhere{w}
	if cfg.Transmitters == nil {
		w.streams.tx = []radio.Transmitter{} // it does not only listen
		return w, nil
	}
	w.sender = newSender(&w.cfg, w.streams, w.time)
	return w, w.sender.adjust(&w.cfg, w.cfg.Alignment)
}

func newWaveformReceiver(cfg WaveformConfig) (*WaveformReceiver, error) {
	codec, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	if cfg.Receive.Clip == 0 {
		cfg.Receive.Clip = modem.Amplitude(radio.ClipLevel(cfg.Receiver))
	}
	w := &WaveformReceiver{
		cfg: cfg, time: newTimeline(cfg.Start, cfg.Reach), retries: newRetries(&cfg),
		streams: &streams{tx: cfg.Transmitters, rx: cfg.Receiver, patience: cfg.Patience, reach: cfg.Reach},
	}
	detector, err := modem.NewDetector(cfg.Modem, cfg.Search)
	if err != nil {
		return nil, err
	}
	demod, err := modem.NewDemodulator(cfg.Modem, cfg.Receive)
	if err != nil {
		return nil, err
	}
	if w.groups, err = newGroups(&cfg); err != nil {
		return nil, err
	}
	if w.unit, err = cfg.unit(cfg.Alignment); err != nil {
		return nil, err
	}
	drive, _ := cfg.drive(Alignment{}, 0)
	m, err := modem.NewModulator(cfg.Modem, drive)
	if err != nil {
		return nil, err
	}
	w.layout = newLayout(&cfg, codec, w.groups[0].patterns.Symbols(), m)
	w.finder = &finder{layout: w.layout, streams: w.streams, time: w.time, detector: detector}
	w.reader = &reader{
		layout: w.layout, time: w.time, detector: detector, demod: demod, secret: cfg.Secret,
		phase: cfg.Phase, alpha: cfg.Alpha, tolerance: cfg.Tolerance, marksClipped: cfg.Receive.Clip != 0,
		level: int8(cfg.Modem.Preamble.Level),
	}
	w.epochs = &epochs{streams: w.streams, recorded: cfg.SenderEpochs, phaseGiven: cfg.Phase != nil}
	return w, nil
}

// PatternSymbols returns the length of Reception.Pattern: the groups' patterns one
// behind the other.
func (w *WaveformReceiver) PatternSymbols() int { return w.groups.patternSymbols() }

// Report tells how the last transmission went.
func (w *WaveformReceiver) Report() WaveformReport { return w.report }

// Next returns the receiver's index at which the next frame is due at the earliest,
// its guard time included.
func (w *WaveformReceiver) Next() radio.SampleIndex { return w.time.due() }

// Seek makes the next frame be due at index at. It is for a link that only listens,
// and that otherwise takes the first sample it gets for the beginning of a frame.
func (w *WaveformReceiver) Seek(at radio.SampleIndex) { w.time.seek(at) }

// FrameSamples returns the samples that one frame of transmission t with payloads
// of n coefficients takes, guard time included.
func (w *WaveformReceiver) FrameSamples(t slot.Transmission, n int) (int, error) {
	p, err := w.layout.payload(t, n)
	if err != nil {
		return 0, err
	}
	return w.layout.window(w.layout.patterns, p), nil
}

// FrameBlocks returns the symbols of each block of a frame of transmission t with
// payloads of n coefficients; those of the pattern are read with the first.
func (w *WaveformReceiver) FrameBlocks(t slot.Transmission, n int) ([]int, error) {
	p, err := w.layout.payload(t, n)
	if err != nil {
		return nil, err
	}
	return w.layout.blocks(p), nil
}

// Open begins a transmission of payloads of n coefficients.
func (w *WaveformReceiver) Open(ctx context.Context, s slot.Slot, n int) error {
	if err := s.Validate(); err != nil {
		return err
	}
	p, err := w.layout.payload(s.Transmission, n)
	if err != nil {
		return err
	}
	w.keyed = w.keyed && s.Transmission != slot.TxKey && s.Round == w.slot.Round && s.Attempt == w.slot.Attempt
	w.slot, w.payload = s, p
	if w.sender != nil {
		w.sender.begun = false
	}
	// What is sent again is for an attempt that cannot be made anew. Where a board failed it
	// the gains may be the same all the same, of which the patterns are the judge.
	again := s.Again > 0 && w.epochs.void != ""
	if s.Transmission == slot.TxKey || !w.epochs.begun || again {
		if err := w.recount(ctx); err != nil {
			return err
		}
		w.epochs.begin()
	}
	if s.Transmission == slot.TxKey {
		w.retries.draw(s)
		w.groups.begin()
	} else if !w.keyed {
		// It tells the scales of the groups and the phase that gains are measured
		// against: what is read without is of none, though its checks pass.
		w.epochs.spoil("b of the attempt was not read")
	}
	return nil
}

// Receive sends the groups' frames one after the other, receives them, and joins
// their integers. A frame that was written when ctx ends may still be sent: taking
// carriers off is for who opened the radios.
func (w *WaveformReceiver) Receive(ctx context.Context, rx *Reception) error {
	if w.sender != nil {
		w.sender.putOff()
	}
	if w.cfg.OnTransmission != nil {
		if err := w.cfg.OnTransmission(ctx, w.slot, w.time.cursor); err != nil {
			return err
		}
	}
	w.report = WaveformReport{Quality: 1}
	rx.CheckPassed, rx.Reason = true, ""
	for _, g := range w.groups {
		ok, err := w.receiveGroup(ctx, g)
		if err != nil {
			return err
		}
		if !ok {
			rx.CheckPassed, rx.Reason = false, w.report.Failure
		}
	}
	w.join(rx)
	if w.slot.Transmission == slot.TxKey {
		w.unread++
	}
	if rx.CheckPassed {
		w.unread = 0
	}
	w.keyed = w.keyed || w.slot.Transmission == slot.TxKey && rx.CheckPassed
	return nil
}

// join adds the groups' results, brought to one scale by integers that are chosen in
// phase 1.
func (w *WaveformReceiver) join(rx *Reception) {
	switch {
	case w.slot.Transmission != slot.TxKey:
	case w.cfg.Alpha > 0:
		w.groups.alignScales()
	default:
		w.groups.reconcile(w.cfg.GroupScale)
	}
	w.groups.join(w.cfg.Modulus, rx.Y, rx.Pattern)
	rx.Alpha = w.Alpha()
}

// receiveGroup sends a group's frame until it is read, and tells whether it was.
func (w *WaveformReceiver) receiveGroup(ctx context.Context, g *group) (bool, error) {
	if g.read.y.Len() != w.payload.Len() {
		g.read.y = w.cfg.Modulus.NewVector(w.payload.Len())
	}
	g.read.begin(w.payload.Blocks())
	for repeat := range w.cfg.Repeats + 1 {
		w.report.Frames++
		if repeat > 0 {
			w.report.Repeated++
		}
		e := w.expect(g, uint8(repeat))
		w.reader.draw(g, e)
		if err := w.starve(w.exchange(ctx, g, e)); err != nil {
			return false, err
		}
		if g.silent {
			break
		}
		w.report.Failure = w.readFrame(g, e)
		if err := w.observe(g, repeat); err != nil {
			return false, err
		}
		if w.report.Failure == "" {
			return true, nil
		}
		if w.epochs.void != "" {
			break // for the attempt: sending again mends nothing
		}
	}
	g.read.clear()
	return g.silent, nil
}

// expect returns the frame of a group that is due in the slot at hand.
func (w *WaveformReceiver) expect(g *group, repeat uint8) expected {
	header := headerOf(w.slot, w.cfg.Run, g.number, repeat)
	return expected{slot: w.slot, header: header, payload: w.payload, unit: w.unit}
}

// exchange sends one frame of a group and captures what the receiver hears.
func (w *WaveformReceiver) exchange(ctx context.Context, g *group, e expected) (err error) {
	at := w.time.cursor
	if !w.streams.listenOnly() {
		at, err = w.other.send(ctx, g, e)
		if errors.Is(err, ErrUnsent) {
			w.epochs.spoil(err.Error())
			w.finder.capture.heard, w.finder.capture.clipped = 0, 0
			return nil
		}
		if err != nil || g.silent {
			return err
		}
		at += w.time.offset
	}
	meta, err := w.finder.hear(ctx, at, w.layout.window(g.patterns.Symbols(), w.payload))
	if err == nil {
		err = w.streams.askForLosses(ctx, w.epochs.hear)
	}
	if err != nil {
		return fmt.Errorf("receiving %v: %w", w.slot.Transmission, err)
	}
	w.epochs.check(meta, w.finder.capture.heard > 0)
	w.report.Clipped += meta.Clipped
	return nil
}

// readFrame reads the frame captured, together with what is held of those before it, and
// says in a few words what failed.
func (w *WaveformReceiver) readFrame(g *group, e expected) (failure string) {
	if w.epochs.void != "" {
		g.read.found, g.read.report, w.combined = modem.Sync{}, modem.Report{}, false
		return w.epochs.void
	}
	c := &w.finder.capture
	g.read.report, w.combined, g.read.trial = modem.Report{}, false, 0
	if failure = w.reader.demodulate(c, g, e); failure == "" {
		w.combined = true
		w.reader.combine(g, e)
		failure = w.reader.decode(g, e, &w.report)
	}
	if w.combined && failure != "" && w.reader.doubts(g, e) {
		if w.reader.demodulate(c, g, e) == "" {
			w.reader.combine(g, e)
			failure = w.reader.decode(g, e, &w.report)
		}
	}
	return c.blame(failure)
}

// observe tells OnFrame of the frame just received.
func (w *WaveformReceiver) observe(g *group, repeat int) error {
	if w.cfg.OnFrame == nil {
		return nil
	}
	o := Observation{
		Slot: w.slot, Group: g.number, Repeat: repeat, First: w.finder.capture.first, Samples: w.finder.capture.samples,
		Devices: g.size, Guard: int(w.layout.guard()),
		Sync: g.read.found, Report: g.read.report, Failure: w.report.Failure,
	}
	if o.Sync != (modem.Sync{}) {
		o.Symbols, o.Phase = w.reader.demod.Symbols(), w.reader.demod.Phase
	}
	if w.combined {
		o.Soft, o.Alpha = g.read.sum[frame.HeaderSymbols+g.patterns.Symbols():], g.alpha
	}
	return w.cfg.OnFrame(o)
}
