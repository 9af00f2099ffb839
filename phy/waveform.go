package phy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"
	"sync"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// WaveformConfig describes a Waveform link.
type WaveformConfig struct {
	Modulus *zq.Modulus
	// Devices is N. Group is G, the most devices that share a time slot; 0 for
	// all N.
	Devices, Group int
	// Base is B, of the balanced digits that symbols carry.
	Base int
	// BlockSymbols is about how many symbols share a linear check; 0 stands for
	// 8192.
	BlockSymbols int

	// Modem, Search and Receive are the modem's; the preamble's level is set to
	// the largest digit, and Receive.Clip, where it is 0, to the receiver's clip
	// level if it tells one (radio.Ranged). Advance is how much earlier each device sends, to make
	// up for its delay; nil for none.
	Modem   modem.Config
	Search  modem.Search
	Receive modem.Receive
	Advance []modem.Samples

	// Alpha is the scale where it is known: exactly, of emulated gains; with a
	// Tolerance above 0 up to that relative error, of gains that Trim aligns to
	// means of 1. 0 has the receiver find it.
	Alpha, Tolerance float64
	// Trim is what each device makes up for its channel's mean with, and Level the
	// amplitude at which a device that does so arrives, which then counts as gain
	// 1 (see Align). nil and 0 stand for none, and 1.
	Trim  []Trim
	Level float64
	// Amplitude is the largest magnitude of a sample that an untrimmed device
	// sends, above 0 and at most 1; 0 stands for 1. A transmit converter takes
	// its largest code for it.
	Amplitude modem.Amplitude
	// Phase is the common phase of the tuning epoch where it is known, as it must
	// be for gains whose sum may be negative or nearly 0: their preamble shows
	// neither sign nor, sometimes, itself. It is that of the epochs of the first
	// attempt: once one of them changes, every attempt is void. nil takes each round's
	// preamble.
	Phase *modem.Radians
	// Lattice bounds the blind search. Its noise deviation is not used.
	Lattice lattice.Options
	// GroupScale bounds the integers c_g by which the groups' results are brought
	// to one scale; 0 stands for 50.
	GroupScale int64
	// Repeats is how often a frame that fails is sent again, bit for bit, before
	// the attempt is given up.
	Repeats int

	// Run marks frames, so that those of another run are told apart.
	Run uint16
	// Public is the seed of patterns, check weights and retry gains, known to
	// everyone.
	Public keystream.Seed

	// Transmitters, one a device, and Receiver are running streams of one clock,
	// whose next samples have index Start. The transmitters take timed blocks and
	// can idle. Without any, the link only listens, as to a recording: what devices
	// hand to Transmit is not wanted.
	Transmitters []radio.Transmitter
	Receiver     radio.Receiver
	Start        radio.SampleIndex
	// SenderEpochs, for a link that only listens, gives the present tuning epochs of
	// those who send, as a recording has kept them; nil, or a nil slice, where they
	// are not known.
	SenderEpochs func() []radio.Epoch
	// OnTransmission, if not nil, hears the slot of each transmission and the
	// first sample of its first frame before it is sent: a simulation sets the
	// gains there.
	OnTransmission func(slot Slot, at radio.SampleIndex) error
	// OnFrame, if not nil, hears of each frame once it was read or given up.
	OnFrame func(Observation) error
}

// Observation is one frame as the receiver had it, for recordings and plots. Its
// slices hold until OnFrame returns, and are not to be changed.
type Observation struct {
	Slot   Slot
	Group  int
	Repeat int
	// First is the index of the first of Samples, the frame's capture with its
	// guard times; Sync is where the frame lies in it, zero if it was not found.
	First   radio.SampleIndex
	Samples []complex64
	Sync    modem.Sync
	// Soft is the payload's soft symbols, repeats combined, and Alpha their scale;
	// nil and 0 if they were not read.
	Soft  []float32
	Alpha float64
	// Failure says why the frame was not read, empty if it was.
	Failure string
}

// Waveform is the waveform link: digits of ring elements as symbols that really
// superpose, and a receiver that finds the integers again without knowing a gain
// (physics.md sections 2 to 6). It is for one goroutine but for Transmit.
type Waveform struct {
	cfg      WaveformConfig
	codec    *digit.Codec
	half     int8 // the largest digit
	groups   []*group
	devices  []*waveDevice
	payloads [Transmissions]map[int]*frame.Payload
	detector *modem.Detector
	demod    *modem.Demodulator
	retry    *keystream.Stream
	cursor   radio.SampleIndex
	unit     float64 // soft symbol of the digit 1 from a device of gain 1

	slot    Slot
	payload *frame.Payload
	capture []complex64
	report  WaveformReport
	// timing is the last preamble found: all captures begin alike before their
	// frames.
	timing   modem.Sync
	hasTimed bool

	// The tuning epochs of the attempt, and why it is void if one changed: the
	// gains are then no longer the same (physics.md section 6).
	rxEpoch  radio.Epoch
	rxKnown  bool
	txEpoch  []radio.Epoch
	nowEpoch []radio.Epoch // room for the transmitters' present ones
	void     string
	opened   bool // a transmission was opened
	// Those that Config.Phase is for.
	phaseRx      radio.Epoch
	phaseRxKnown bool
	phaseTx      []radio.Epoch

	// Of the capture: how many samples of it were received, how many of these the
	// receiver said were clipped or no numbers, and whether it begins where it was due.
	heard            int
	clipped, invalid radio.SampleCount
	punctual         bool
	due              radio.SampleIndex // where that is
	sought           bool              // cursor is where the next frame is due
}

// group is the devices of a time slot, counted from first on.
type group struct {
	first, size int
	patterns    *frame.Patterns
	receiver    *lattice.Receiver

	// Of the current attempt.
	alpha   float64
	scale   int64 // c_g
	sync    modem.Sync
	at      radio.SampleIndex // of sync's capture
	held    bool
	instant modem.Samples // of the payload in phase 1, from where its capture was due
	timed   bool
	found   modem.Sync // of the frame at hand
	y       zq.Vector
	pattern []int64
	soft    []float32
	sum     []float32 // of repeats
	erased  []bool
	joint   []float32 // pattern and block
	refused []float64 // scales that did not read all of phase 1
}

// waveDevice is one device's end of the link.
type waveDevice struct {
	modulator *modem.Modulator
	symbols   []int8
	samples   []complex64
	scratch   map[*frame.Payload][]frame.Scratch
	sent      bool
	gain      float32 // of the attempt: 1, or in [0.7, 1] in retries
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

// The gains that devices draw for a retry are uniform in [retryLeast, 1].
const retryLeast = 0.7

// NewWaveform makes a waveform link.
func NewWaveform(cfg WaveformConfig) (*Waveform, error) {
	if cfg.Group == 0 {
		cfg.Group = cfg.Devices
	}
	if cfg.BlockSymbols == 0 {
		cfg.BlockSymbols = 8192
	}
	if cfg.GroupScale == 0 {
		cfg.GroupScale = 50
	}
	if cfg.Level == 0 {
		cfg.Level = 1
	}
	if cfg.Amplitude == 0 {
		cfg.Amplitude = 1
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	codec, err := digit.New(cfg.Modulus, cfg.Base)
	if err != nil {
		return nil, err
	}
	if cfg.Receive.Clip == 0 {
		cfg.Receive.Clip = modem.Amplitude(radio.ClipLevel(cfg.Receiver))
	}
	w := &Waveform{cfg: cfg, codec: codec, half: int8(cfg.Base-1) / 2, cursor: cfg.Start, retry: cfg.Public.Derive("retry gains").Stream()}
	w.cfg.Modem.Preamble.Level = float32(w.half)
	if w.detector, err = modem.NewDetector(w.cfg.Modem, cfg.Search); err != nil {
		return nil, err
	}
	if w.demod, err = modem.NewDemodulator(w.cfg.Modem, cfg.Receive); err != nil {
		return nil, err
	}
	for t := range w.payloads {
		w.payloads[t] = map[int]*frame.Payload{}
	}
	if err := w.makeGroups(); err != nil {
		return nil, err
	}
	return w, w.makeDevices()
}

func (cfg *WaveformConfig) validate() error {
	if cfg.Devices < 1 || cfg.Group < 1 || cfg.Transmitters != nil && len(cfg.Transmitters) != cfg.Devices {
		return fmt.Errorf("a waveform link of %d devices in groups of %d with %d transmitters: it needs one transmitter a device and groups of 1 or more", cfg.Devices, cfg.Group, len(cfg.Transmitters))
	}
	if cfg.Advance != nil && len(cfg.Advance) != cfg.Devices {
		return fmt.Errorf("a waveform link of %d devices with %d advances: it needs one a device, or none", cfg.Devices, len(cfg.Advance))
	}
	if !(cfg.Alpha >= 0) || math.IsInf(cfg.Alpha, 0) {
		return fmt.Errorf("the scale of emulated gains is %v: it must be positive, or 0 to be found", cfg.Alpha)
	}
	if !(cfg.Tolerance >= 0 && cfg.Tolerance < 1) || cfg.Tolerance > 0 && cfg.Alpha == 0 {
		return fmt.Errorf("a scale of %v known within %v of itself: the tolerance must be from 0 to below 1, and 0 where the scale is to be found", cfg.Alpha, cfg.Tolerance)
	}
	if cfg.Trim != nil && len(cfg.Trim) != cfg.Devices {
		return fmt.Errorf("a waveform link of %d devices with %d trims: it needs one a device, or none", cfg.Devices, len(cfg.Trim))
	}
	for i, t := range cfg.Trim {
		if size := cmplx.Abs(complex128(t)); !(size > 0 && size <= 1+1e-9) {
			return fmt.Errorf("the trim of device %d is %v: its magnitude must be above 0 and at most 1", i+1, t)
		}
	}
	if !(cfg.Level > 0) || math.IsInf(cfg.Level, 0) {
		return fmt.Errorf("a device of gain 1 arrives at the level %v: it must be positive", cfg.Level)
	}
	if cfg.Repeats < 0 || cfg.Repeats > math.MaxUint8 {
		return fmt.Errorf("a frame is sent again %d times: allowed are 0 to %d", cfg.Repeats, math.MaxUint8)
	}
	for i, t := range cfg.Transmitters {
		if _, ok := t.(radio.Idler); !ok {
			return fmt.Errorf("the transmitter of device %d cannot idle between frames", i+1)
		}
	}
	return nil
}

func (w *Waveform) makeGroups() error {
	for first := 0; first < w.cfg.Devices; first += w.cfg.Group {
		size := min(w.cfg.Group, w.cfg.Devices-first)
		receiver, err := lattice.New(w.cfg.Lattice)
		if err != nil {
			return err
		}
		p := frame.NewPatterns(size, w.cfg.Public.Derive("patterns", uint64(len(w.groups))))
		w.groups = append(w.groups, &group{first: first, size: size, patterns: p, receiver: receiver, pattern: make([]int64, p.Symbols())})
	}
	return nil
}

func (w *Waveform) makeDevices() error {
	for i := range w.cfg.Devices {
		drive := modem.Drive{Peak: float32(w.half), Amplitude: w.cfg.Amplitude}
		if w.cfg.Advance != nil {
			drive.Advance = w.cfg.Advance[i]
		}
		trim := 1.0
		if w.cfg.Trim != nil {
			size, phase := cmplx.Polar(complex128(w.cfg.Trim[i]))
			trim = min(1, size)
			drive.Amplitude *= modem.Amplitude(trim)
			drive.Phase = modem.Radians(phase)
		}
		m, err := modem.NewModulator(w.cfg.Modem, drive)
		if err != nil {
			return fmt.Errorf("device %d: %w", i+1, err)
		}
		w.unit = float64(m.Scale()) / trim * w.cfg.Level
		w.devices = append(w.devices, &waveDevice{modulator: m, scratch: map[*frame.Payload][]frame.Scratch{}, gain: 1})
	}
	return nil
}

// PatternSymbols gives the length of Reception.Pattern: the groups' patterns one
// behind the other.
func (w *Waveform) PatternSymbols() int {
	sum := 0
	for _, g := range w.groups {
		sum += g.patterns.Symbols()
	}
	return sum
}

// Report tells how the last transmission went.
func (w *Waveform) Report() WaveformReport { return w.report }

// FrameSamples gives the samples that one frame of transmission t with payloads
// of n coefficients takes, guard time included.
func (w *Waveform) FrameSamples(t Transmission, n int) (int, error) {
	p, err := w.payloadFor(t, n)
	if err != nil {
		return 0, err
	}
	return w.window(w.groups[0], p), nil
}

// FrameBlocks gives the symbols of each block of a frame of transmission t with
// payloads of n coefficients; those of the pattern are read with the first.
func (w *Waveform) FrameBlocks(t Transmission, n int) ([]int, error) {
	p, err := w.payloadFor(t, n)
	if err != nil {
		return nil, err
	}
	lengths := make([]int, p.Blocks())
	for i := range lengths {
		from, to := p.BlockSymbols(i)
		lengths[i] = to - from
	}
	lengths[0] += w.groups[0].patterns.Symbols()
	return lengths, nil
}

func (w *Waveform) payloadFor(t Transmission, n int) (*frame.Payload, error) {
	if p := w.payloads[t][n]; p != nil {
		return p, nil
	}
	perBlock := max(1, w.cfg.BlockSymbols/w.codec.Digits())
	p, err := frame.NewPayload(w.cfg.Modulus, w.codec, n, perBlock, w.cfg.Public.Derive("payload", uint64(t)))
	if err != nil {
		return nil, fmt.Errorf("laying out %v: %w", t, err)
	}
	w.payloads[t][n] = p
	return p, nil
}

// Open begins a transmission of payloads of n coefficients.
func (w *Waveform) Open(slot Slot, n int) error {
	if slot.Transmission < 0 || slot.Transmission >= Transmissions {
		return fmt.Errorf("transmission %d: a round has %d", slot.Transmission, Transmissions)
	}
	p, err := w.payloadFor(slot.Transmission, n)
	if err != nil {
		return err
	}
	p.Draw(slot.Round, slot.Attempt)
	w.slot, w.payload = slot, p
	for _, d := range w.devices {
		d.sent = false
		if d.scratch[p] == nil {
			d.scratch[p] = p.NewScratch()
		}
	}
	if slot.Transmission == TxKey || !w.opened {
		w.opened = true
		w.holdEpochs()
	}
	if slot.Transmission == TxKey {
		w.drawRetryGains()
		for _, g := range w.groups {
			g.held, g.timed, g.alpha = false, false, 0
		}
	}
	return nil
}

// holdEpochs begins an attempt: its epochs are those of the transmitters now and
// of the receiver's next sample.
func (w *Waveform) holdEpochs() {
	w.rxKnown, w.void = false, ""
	w.txEpoch = w.senderEpochs(w.txEpoch[:0])
	if w.cfg.Phase == nil {
		return
	}
	if w.phaseTx == nil {
		w.phaseTx = slices.Clone(w.txEpoch)
	}
	if i := changedEpoch(w.phaseTx, w.txEpoch); i >= 0 {
		w.void = fmt.Sprintf("the phase given is that of an earlier tuning epoch of device %d: it must be measured again", i+1)
	}
}

// senderEpochs appends the present epochs of those who send, as far as they are
// known.
func (w *Waveform) senderEpochs(dst []radio.Epoch) []radio.Epoch {
	for _, t := range w.cfg.Transmitters {
		dst = append(dst, t.Epoch())
	}
	if w.cfg.Transmitters == nil && w.cfg.SenderEpochs != nil {
		dst = append(dst, w.cfg.SenderEpochs()...)
	}
	return dst
}

// changedEpoch gives the first device whose epoch is another now, -1 if there is
// none. One that was not known, or is not, did not change.
func changedEpoch(before, now []radio.Epoch) int {
	for i := range min(len(before), len(now)) {
		if before[i] != now[i] {
			return i
		}
	}
	return -1
}

// checkEpochs makes the attempt void if an epoch is no longer what it was.
func (w *Waveform) checkEpochs(meta radio.Meta) {
	if w.heard > 0 {
		w.checkReceiverEpoch(meta)
	}
	w.nowEpoch = w.senderEpochs(w.nowEpoch[:0])
	if i := changedEpoch(w.txEpoch, w.nowEpoch); i >= 0 {
		w.void = fmt.Sprintf("the tuning epoch of device %d changed", i+1)
	}
}

func (w *Waveform) checkReceiverEpoch(meta radio.Meta) {
	if !w.rxKnown {
		w.rxEpoch, w.rxKnown = meta.Epoch, true
	}
	if !w.phaseRxKnown {
		w.phaseRx, w.phaseRxKnown = meta.Epoch, true
	}
	if w.cfg.Phase != nil && meta.Epoch != w.phaseRx {
		w.void = "the phase given is that of an earlier tuning epoch of the receiver: it must be measured again"
	}
	if meta.Epoch != w.rxEpoch || len(meta.Changes) > 0 {
		w.void = "the receiver's tuning epoch changed"
	}
}

// drawRetryGains gives every device its gain for the attempt: 1 in the first,
// and then fresh public ones that pose a new lattice problem (physics.md
// section 3). Where the scale is known there is no such problem, and a gain that
// is on its lattice or aligned must stay so.
func (w *Waveform) drawRetryGains() {
	w.retry.Start(w.slot.Round, w.slot.Attempt)
	for _, d := range w.devices {
		d.gain = 1
		if u := float64(w.retry.Uint64()>>11) * 0x1p-53; w.drawsRetryGains() {
			d.gain = float32(retryLeast + (1-retryLeast)*u)
		}
	}
}

// drawsRetryGains tells whether devices draw gains for the attempt.
func (w *Waveform) drawsRetryGains() bool { return w.slot.Attempt > 0 && w.cfg.Alpha == 0 }

// meanRetryGain is folded into alpha, so that M keeps its scale in the mean. The
// gains of attempts that succeed are not a fair sample: what this bias leaves is
// within the spread of [0.7, 1].
func (w *Waveform) meanRetryGain() float64 {
	if !w.drawsRetryGains() {
		return 1
	}
	return (1 + retryLeast) / 2
}

// prefix gives the symbols before the payload: preamble, header and pattern.
func (w *Waveform) prefix(g *group) (preamble, header, pattern int) {
	preamble = len(w.cfg.Modem.PreambleSymbols())
	return preamble, preamble + frame.HeaderSymbols, preamble + frame.HeaderSymbols + g.patterns.Symbols()
}

// Transmit writes device i's digits. The header is written for each repeat, later.
func (w *Waveform) Transmit(i int, x zq.Vector) error {
	if i < 0 || i >= len(w.devices) {
		return fmt.Errorf("device %d transmits on a link of %d devices", i+1, len(w.devices))
	}
	if x.Len() != w.payload.Len() {
		return fmt.Errorf("device %d sends %d coefficients of %v where %d are expected", i+1, x.Len(), w.slot.Transmission, w.payload.Len())
	}
	d, g := w.devices[i], w.groups[i/w.cfg.Group]
	_, header, start := w.prefix(g)
	if n := start + w.payload.Symbols(); cap(d.symbols) < n {
		d.symbols = make([]int8, n)
	}
	d.symbols = d.symbols[:start+w.payload.Symbols()]
	for k, s := range w.cfg.Modem.PreambleSymbols() {
		d.symbols[k] = int8(s)
	}
	for k := range g.patterns.Symbols() {
		d.symbols[header+k] = int8(g.patterns.Symbol(i-g.first, k))
	}
	w.payload.Encode(d.symbols[start:], x, d.scratch[w.payload])
	d.sent = true
	return nil
}

// guardSymbols is the silence before a frame and after it.
const guardSymbols = 24

// window gives the samples of a frame with its guard times.
func (w *Waveform) window(g *group, p *frame.Payload) int {
	_, _, start := w.prefix(g)
	symbols := 2*guardSymbols + start + p.Symbols() + int(w.devices[g.first].modulator.Tail())
	return symbols * w.cfg.Modem.SamplesPerSymbol
}

// Receive sends the groups' frames one after the other, receives them, and joins
// their integers.
func (w *Waveform) Receive(rx *Reception) error {
	for i, d := range w.devices {
		if !d.sent && w.cfg.Transmitters != nil {
			return fmt.Errorf("device %d sent no %v in round %d", i+1, w.slot.Transmission, w.slot.Round)
		}
	}
	if w.cfg.OnTransmission != nil {
		if err := w.cfg.OnTransmission(w.slot, w.cursor); err != nil {
			return err
		}
	}
	w.report = WaveformReport{Quality: 1}
	rx.CheckPassed, rx.Reason = true, ""
	for number, g := range w.groups {
		ok, err := w.receiveGroup(number, g)
		if err != nil {
			return err
		}
		if !ok {
			rx.CheckPassed, rx.Reason = false, w.report.Failure
		}
	}
	w.join(rx)
	return nil
}

// receiveGroup sends a group's frame until it is read, and tells whether it was.
func (w *Waveform) receiveGroup(number int, g *group) (bool, error) {
	if g.y.Len() != w.payload.Len() {
		g.y = w.cfg.Modulus.NewVector(w.payload.Len())
	}
	held := 0
	for repeat := range w.cfg.Repeats + 1 {
		w.report.Frames++
		if repeat > 0 {
			w.report.Repeated++
		}
		at, err := w.exchange(number, g, uint8(repeat))
		if err != nil {
			return false, err
		}
		failure := w.void
		if failure == "" {
			failure = w.demodulate(number, g, uint8(repeat), at)
		} else {
			g.found = modem.Sync{}
		}
		if failure == "" {
			lattice.Combine(g.sum, g.soft, float64(held))
			held++
			failure = w.decode(g)
		}
		failure = w.blame(failure)
		w.report.Failure = failure
		if err := w.observe(number, g, repeat, at); err != nil {
			return false, err
		}
		if failure == "" {
			return true, nil
		}
		if w.void != "" {
			break // for the attempt: sending again mends nothing
		}
	}
	g.y.Clear()
	clear(g.pattern)
	return false, nil
}

// clippedNote is what to say of n clipped samples.
func clippedNote[T ~int | ~int64](n T) string {
	return fmt.Sprintf("%d samples clipped: lower the receiver's gain", n)
}

// blame adds to a failure what the receiver said of the samples, unless the failure
// says it already.
func (w *Waveform) blame(failure string) string {
	if failure == "" || w.void != "" || w.clipped == 0 || strings.Contains(failure, "clipped") {
		return failure
	}
	return failure + "; " + clippedNote(w.clipped)
}

// observe tells OnFrame of the frame just received.
func (w *Waveform) observe(number int, g *group, repeat int, at radio.SampleIndex) error {
	if w.cfg.OnFrame == nil {
		return nil
	}
	o := Observation{
		Slot: w.slot, Group: number, Repeat: repeat, First: at, Samples: w.capture,
		Sync: g.found, Failure: w.report.Failure,
	}
	if o.Failure == "" {
		o.Soft, o.Alpha = g.sum[frame.HeaderSymbols+g.patterns.Symbols():], g.alpha
	}
	return w.cfg.OnFrame(o)
}

// exchange sends one frame of a group and captures what the receiver hears.
func (w *Waveform) exchange(number int, g *group, repeat uint8) (radio.SampleIndex, error) {
	ctx := context.Background() // a frame that has begun is finished
	window := w.window(g, w.payload)
	at := w.cursor
	end := at + radio.SampleIndex(window)
	if w.cfg.Transmitters != nil {
		w.modulate(number, g, repeat)
	}
	for i, tx := range w.cfg.Transmitters {
		if i >= g.first && i < g.first+g.size {
			start := at + w.guardSamples()
			if _, err := tx.Write(ctx, w.devices[i].samples, radio.TxMeta{Timed: true, Start: start, BurstEnd: true}); err != nil {
				return 0, fmt.Errorf("device %d sends %v: %w", i+1, w.slot.Transmission, err)
			}
		}
		// The next frame's own guard time may be promised too. A receiver that loses
		// samples towards the end of this one need not wait for the next.
		if err := tx.(radio.Idler).Idle(ctx, end+w.guardSamples()); err != nil {
			return 0, fmt.Errorf("device %d idles: %w", i+1, err)
		}
	}
	if cap(w.capture) < window {
		w.capture = make([]complex64, window)
	}
	w.capture = w.capture[:window]
	meta, err := w.listen(ctx, at)
	if err != nil {
		return 0, fmt.Errorf("receiving %v: %w", w.slot.Transmission, err)
	}
	w.checkEpochs(meta)
	w.report.Clipped += meta.Clipped
	if w.heard == 0 {
		return at, nil
	}
	return meta.First, nil
}

// Next gives the index at which the next frame is due, its guard time included.
func (w *Waveform) Next() radio.SampleIndex { return w.cursor }

// Seek makes the next frame be due at index at. It is for a link that only listens,
// and that otherwise takes the first sample it gets for the beginning of a frame.
func (w *Waveform) Seek(at radio.SampleIndex) { w.cursor, w.sought = at, true }

func (w *Waveform) guardSamples() radio.SampleIndex {
	return radio.SampleIndex(guardSymbols * w.cfg.Modem.SamplesPerSymbol)
}

// listen fills the capture, due to begin at index at, and moves the cursor to its
// end. It reads up to an index and not a number of samples: what was lost would
// otherwise be taken from the next frame, and all later captures begin too late. Nor
// does it wait there for what comes after a loss: nobody sends it before this frame
// is done with. The capture begins with the first sample that was not lost; from the next loss
// on it is marked as lost.
func (w *Waveform) listen(ctx context.Context, at radio.SampleIndex) (meta radio.Meta, err error) {
	// A receiver that cannot end its reads at an index steps over a loss and fills its
	// block behind it. Blocks no longer than the guard time keep it within what the
	// transmitters have promised, unless the loss ends beyond.
	most := int(w.guardSamples())
	if w.cfg.Transmitters == nil {
		most = len(w.capture)
	}
	n := 0
	next, end := at, at+radio.SampleIndex(len(w.capture))
	adrift := w.cfg.Transmitters == nil && !w.sought
	until := end
	if adrift {
		until = radio.Forever
	}
	for n < len(w.capture) && next < end {
		size := min(most, len(w.capture)-n, int(end-next))
		k, m, err := radio.ReadFullUntil(ctx, w.cfg.Receiver, w.capture[n:n+size], until)
		if err != nil {
			return meta, err
		}
		if k == 0 {
			break // all that is left was lost
		}
		if err := meta.Append(n, m); err != nil {
			return meta, err
		}
		if n == 0 && adrift {
			at, end = m.First, m.First+radio.SampleIndex(len(w.capture))
			until = end
		}
		n += k
		next = meta.Index(n-1) + 1
	}
	w.cursor = max(end, next)
	w.heard, w.clipped, w.invalid = n, meta.Clipped, meta.Invalid
	w.due, w.punctual = at, n > 0 && meta.First == at
	for _, gap := range meta.Gaps {
		if gap.At > 0 {
			n = gap.At
			break
		}
	}
	modem.MarkLost(w.capture[n:])
	return meta, nil
}

// modulate makes the samples of a group's devices, side by side.
func (w *Waveform) modulate(number int, g *group, repeat uint8) {
	header := frame.Header{
		Run: w.cfg.Run, Round: w.slot.Round, Attempt: uint16(w.slot.Attempt),
		Transmission: uint8(w.slot.Transmission), Group: uint16(number), Repeat: repeat,
	}
	preamble, _, _ := w.prefix(g)
	sps := w.cfg.Modem.SamplesPerSymbol
	var done sync.WaitGroup
	for _, d := range w.devices[g.first : g.first+g.size] {
		done.Add(1)
		go func() {
			defer done.Done()
			header.Symbols(d.symbols[preamble:])
			for k := range d.symbols[preamble : preamble+frame.HeaderSymbols] {
				d.symbols[preamble+k] *= w.half
			}
			tail := d.modulator.Tail()
			n := (len(d.symbols) + int(tail)) * sps
			if cap(d.samples) < n {
				d.samples = make([]complex64, n)
			}
			d.samples = d.samples[:n]
			d.modulator.Reset()
			d.modulator.ModulateDigits(d.samples[:len(d.symbols)*sps], d.symbols)
			d.modulator.Idle(d.samples[len(d.symbols)*sps:], tail)
			if d.gain == 1 {
				return
			}
			for k := range d.samples {
				d.samples[k] *= complex(d.gain, 0)
			}
		}()
	}
	done.Wait()
}

// demodulate finds the frame in the capture and fills g.soft, in units of a
// device of gain 1 that sends the digit 1. It says in a few words what failed.
func (w *Waveform) demodulate(number int, g *group, repeat uint8, at radio.SampleIndex) string {
	g.found = modem.Sync{}
	_, header, start := w.prefix(g)
	preamble := header - frame.HeaderSymbols
	n := start - preamble + w.payload.Symbols()
	if w.heard == 0 {
		return "no sample of the frame was received"
	}
	found, err := w.detector.First(w.capture)
	switch {
	case err == nil:
	case w.cfg.Phase != nil && w.hasTimed:
		found = w.timing
	default:
		return "no preamble"
	}
	found = w.detector.Settle(w.capture, found, modem.Symbols(n))
	if w.punctual && err == nil {
		w.timing, w.hasTimed = found, true
	}
	found = w.holdTiming(g, found, at)
	// One common phase serves all phases of a round, so that gains are the same.
	if w.cfg.Phase != nil {
		found.Theta, found.Offset = *w.cfg.Phase, 0
	} else if w.slot.Transmission == TxKey && !g.held {
		g.sync, g.at, g.held = found, at, true
	} else if g.held {
		found = found.Hold(g.sync, modem.Samples(at-g.at))
	}
	g.found = found
	if cap(g.soft) < n {
		g.soft, g.sum, g.erased = make([]float32, n), make([]float32, n), make([]bool, n)
	}
	g.soft, g.sum, g.erased = g.soft[:n], g.sum[:n], g.erased[:n]
	report := w.demod.Demodulate(g.soft, g.erased, w.capture, found)
	switch {
	case report.Erased > 0 && report.Clipped > 0:
		return clippedNote(report.Clipped)
	case report.Erased > 0:
		return fmt.Sprintf("%d symbols erased", report.Erased)
	case w.clipped > 0 && w.cfg.Receive.Clip == 0: // nobody knows which
		return clippedNote(w.clipped)
	case w.invalid > 0: // they are 0 now, and nobody knows which
		return fmt.Sprintf("%d samples were no numbers", w.invalid)
	}
	// A header that cannot be read is no verdict: the check weights are drawn by
	// round and attempt, so that a frame of another one fails its checks.
	h, err := frame.DecodeHeader(g.soft)
	want := frame.Header{
		Run: w.cfg.Run, Round: w.slot.Round, Attempt: uint16(w.slot.Attempt),
		Transmission: uint8(w.slot.Transmission), Group: uint16(number), Repeat: repeat,
	}
	if err == nil && h != want {
		return fmt.Sprintf("a frame of run %d, round %d, attempt %d, %v, where another was expected", h.Run, h.Round, h.Attempt, Transmission(h.Transmission))
	}
	scale := 1 / float32(w.unit)
	for k := range g.soft {
		g.soft[k] *= scale
	}
	return ""
}

// sameInstant is how far, in samples, two frames' instants may lie apart by chance.
const sameInstant = 1.0

// holdTiming gives a frame the timing of the round's first one: what a fractional
// delay leaves of the pulse's edges weighs differently at another instant, and the
// gains would change with it. An instant further off is no chance: samples were
// lost that nobody noticed.
func (w *Waveform) holdTiming(g *group, found modem.Sync, at radio.SampleIndex) modem.Sync {
	instant := found.Payload + modem.Samples(at-w.due)
	if !g.timed {
		g.instant, g.timed = instant, true
		return found
	}
	shift := g.instant - instant
	if math.Abs(float64(shift)) > sameInstant {
		return found
	}
	found.Start += shift
	found.Payload += shift
	return found
}

// decode turns the combined soft symbols into integers, block by block. The
// scale is found with the first block of phase 1 and holds for the round. A scale
// that does not read all blocks of phase 1 makes room for the next.
func (w *Waveform) decode(g *group) string {
	searching := w.slot.Transmission == TxKey && w.cfg.Alpha == 0
	g.refused = g.refused[:0]
	for failure := ""; ; {
		block, err := w.decodeBlocks(g)
		if err == nil {
			return ""
		}
		if failure == "" { // the finest scale's says most
			failure = fmt.Sprintf("block %d: %v", block+1, err)
		}
		if !searching || block == 0 {
			return failure
		}
		g.refused = append(g.refused, g.alpha)
	}
}

// decodeBlocks decodes at one scale, and gives the block that failed.
func (w *Waveform) decodeBlocks(g *group) (int, error) {
	symbols := g.patterns.Symbols()
	payload := g.sum[frame.HeaderSymbols+symbols:]
	worst := w.report
	for i := range w.payload.Blocks() {
		from, to := w.payload.BlockSymbols(i)
		// The pattern is read together with the first block: alone it is too short
		// to show the lattice.
		joint := payload[from:to]
		skip := 0
		if i == 0 {
			g.joint = append(append(g.joint[:0], g.sum[frame.HeaderSymbols:frame.HeaderSymbols+symbols]...), joint...)
			joint, skip = g.joint, symbols
		}
		accept := func(y []int32) bool { return w.payload.DecodeBlock(g.y, i, y[skip:]) }
		result, err := w.read(g, i, joint, accept)
		if err != nil {
			return i, err
		}
		if i == 0 {
			g.alpha = result.Alpha
			for k := range g.pattern {
				g.pattern[k] = int64(result.Y[k])
			}
		}
		if result.Stats.Quality < worst.Quality {
			worst.Quality, worst.Distance = result.Stats.Quality, result.Stats.Distance
		}
	}
	w.report = worst
	return 0, nil
}

// read gives the integers of a block: at the scale that is known, or searching.
func (w *Waveform) read(g *group, block int, y []float32, accept lattice.Accept) (lattice.Result, error) {
	switch {
	case w.cfg.Alpha > 0 && w.cfg.Tolerance == 0:
		return g.receiver.At(y, w.cfg.Alpha, accept)
	case w.slot.Transmission == TxKey && block == 0 && w.cfg.Alpha > 0:
		return g.receiver.Near(y, w.cfg.Alpha, w.cfg.Tolerance, accept)
	case w.slot.Transmission == TxKey && block == 0:
		return g.receiver.SearchExcept(y, g.refused, accept)
	case g.alpha > 0:
		return g.receiver.At(y, g.alpha, accept)
	}
	return lattice.Result{}, errors.New("phase 1 found no scale")
}

// join adds the groups' results, brought to one scale by integers that are
// chosen in phase 1, and puts their patterns one behind the other.
func (w *Waveform) join(rx *Reception) {
	if w.slot.Transmission == TxKey {
		w.reconcile()
	}
	rx.Y.Clear()
	pattern := rx.Pattern
	for _, g := range w.groups {
		w.cfg.Modulus.AddScaled(rx.Y, g.scale, g.y)
		pattern = pattern[copy(pattern, g.pattern):]
	}
	rx.Alpha = w.Alpha()
}

// groupMismatch is how far the groups' products c_g alpha_g may differ if a
// smaller c_g is to be had for it.
const groupMismatch = 0.01

// reconcile chooses the c_g: the smallest whose products agree well enough, or
// else those that agree best. A known scale is that of all groups: what aligned
// ones differ by is the fluctuation of their gains, and part of h.
func (w *Waveform) reconcile() {
	if w.cfg.Alpha > 0 {
		for _, g := range w.groups {
			g.scale = 1
		}
		return
	}
	first := w.groups[0]
	best := math.Inf(1)
	for c := int64(1); c <= w.cfg.GroupScale && best > groupMismatch; c++ {
		target, worst := float64(c)*first.alpha, 0.0
		fits := true
		for _, g := range w.groups {
			cg := math.Round(target / g.alpha)
			fits = fits && cg >= 1 && cg <= float64(w.cfg.GroupScale)
			worst = math.Max(worst, math.Abs(cg*g.alpha/target-1))
		}
		if !fits || worst >= best {
			continue
		}
		best = worst
		for _, g := range w.groups {
			g.scale = int64(math.Round(target / g.alpha))
		}
	}
	if math.IsInf(best, 1) { // scales too far apart: they are added as they are
		for _, g := range w.groups {
			g.scale = 1
		}
	}
}

// Alpha gives the scale of the current attempt, retry gains folded in, as in
// Reception.Alpha.
func (w *Waveform) Alpha() float64 {
	sum := 0.0
	for _, g := range w.groups {
		sum += float64(g.scale) * g.alpha
	}
	return sum / float64(len(w.groups)) * w.meanRetryGain()
}

// Gains writes the scaled gains c_g H_i of the last transmission, solved from the
// received patterns, to dst, and tells whether there are any. It is for the
// harness of a simulation, which compares them with what the channel was told:
// a gain near the middle between two integers may be read as either.
func (w *Waveform) Gains(dst []float64) bool {
	for _, g := range w.groups {
		h, ok := g.patterns.Solve(g.pattern)
		if !ok {
			return false
		}
		for i, v := range h {
			dst[g.first+i] = float64(g.scale * v)
		}
	}
	return true
}

// Scaled writes the effective scaled gains c_g round(alpha_g h_i g_i) of the last
// attempt to dst, where h holds the channel's real gains and g_i is the device's
// retry gain. It is for the harness of a simulation: a receiver does not know h.
func (w *Waveform) Scaled(dst, h []float64) {
	for i, d := range w.devices {
		g := w.groups[i/w.cfg.Group]
		dst[i] = float64(g.scale) * math.Round(g.alpha*h[i]*float64(d.gain))
	}
}
