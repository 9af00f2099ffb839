package phy

import (
	"context"
	"fmt"
	"math/cmplx"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/zq"
	"ringwave/radio"
)

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
	payloads map[int]*frame.Payload // by their length
	detector *modem.Detector
	demod    *modem.Demodulator
	retry    *keystream.Stream
	cursor   radio.SampleIndex
	unit     float64 // soft symbol of the digit 1 from a device of gain 1

	slot    Slot
	payload *frame.Payload
	// capture is the frame with its guard times, a part of buffer; waste is room for
	// what is thrown away.
	capture, buffer, waste []complex64
	report                 WaveformReport
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
	keyed    bool // b of the attempt that slot is of was read
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

	// cursor and sent, the end of the last frame, are indices of the transmitters;
	// next, the first that was not read, is the receiver's, who has offset more.
	// traced says that offset is known.
	sent, next, offset radio.SampleIndex
	traced             bool
	untraced           bool // the frame at hand was searched for and not found
	missed             int  // frames in a row without preamble
	unasked            int  // samples since transmitters were last looked at
	// uncounted says which transmitter has lost count, empty if none has.
	uncounted string
}

// group is the devices of a time slot, counted from first on.
type group struct {
	first, size int
	patterns    *frame.Patterns
	residues    []zq.Vector // of the patterns
	weights     frame.Weights
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
	w := &Waveform{cfg: cfg, codec: codec, half: int8(cfg.Base-1) / 2, cursor: cfg.Start, sent: cfg.Start, next: cfg.Start, traced: cfg.Reach == 0, retry: cfg.Secret.Derive("retry gains").Stream(), payloads: map[int]*frame.Payload{}}
	w.cfg.Modem.Preamble.Level = float32(w.half)
	if w.detector, err = modem.NewDetector(w.cfg.Modem, cfg.Search); err != nil {
		return nil, err
	}
	if w.demod, err = modem.NewDemodulator(w.cfg.Modem, cfg.Receive); err != nil {
		return nil, err
	}
	if err := w.makeGroups(); err != nil {
		return nil, err
	}
	return w, w.makeDevices()
}

func (w *Waveform) makeGroups() error {
	for first := 0; first < w.cfg.Devices; first += w.cfg.Group {
		size := min(w.cfg.Group, w.cfg.Devices-first)
		receiver, err := lattice.New(w.cfg.Lattice)
		if err != nil {
			return err
		}
		p := frame.NewPatterns(size, w.cfg.Secret.Derive("patterns", uint64(len(w.groups))))
		w.groups = append(w.groups, &group{
			first: first, size: size, patterns: p, residues: p.Residues(w.cfg.Modulus), receiver: receiver,
			weights: frame.NewWeights(w.cfg.Secret, uint64(len(w.groups))), pattern: make([]int64, p.Symbols()),
		})
	}
	return nil
}

func (w *Waveform) makeDevices() error {
	for i := range w.cfg.Devices {
		m, err := w.modulatorOf(i)
		if err != nil {
			return err
		}
		w.devices = append(w.devices, &waveDevice{modulator: m, scratch: map[*frame.Payload][]frame.Scratch{}, gain: 1})
	}
	return nil
}

// modulatorOf makes device i's modulator, with its trim and advance.
func (w *Waveform) modulatorOf(i int) (*modem.Modulator, error) {
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
		return nil, fmt.Errorf("device %d: %w", i+1, err)
	}
	w.unit = float64(m.Scale()) / trim * w.cfg.Level
	return m, nil
}

// header returns the header of a group's frame in the slot at hand.
func (w *Waveform) header(group int, repeat uint8) frame.Header {
	return headerOf(w.slot, w.cfg.Run, group, repeat)
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
	if p := w.payloads[n]; p != nil {
		return p, nil
	}
	perBlock := max(1, w.cfg.BlockSymbols/w.codec.Digits())
	newPayload := frame.NewPayload
	if w.cfg.Format == frame.Format1 {
		newPayload = frame.NewPayload1
	}
	p, err := newPayload(w.cfg.Modulus, w.codec, n, perBlock, w.groups[0].patterns.Symbols())
	if err != nil {
		return nil, fmt.Errorf("laying out %v: %w", t, err)
	}
	w.payloads[n] = p
	return p, nil
}

// Open begins a transmission of payloads of n coefficients.
func (w *Waveform) Open(ctx context.Context, slot Slot, n int) error {
	if err := slot.Validate(); err != nil {
		return err
	}
	p, err := w.payloadFor(slot.Transmission, n)
	if err != nil {
		return err
	}
	w.keyed = w.keyed && slot.Transmission != TxKey && slot.Round == w.slot.Round && slot.Attempt == w.slot.Attempt
	w.slot, w.payload = slot, p
	for _, d := range w.devices {
		d.sent = false
		if d.scratch[p] == nil {
			d.scratch[p] = p.NewScratch()
		}
	}
	if slot.Transmission == TxKey || !w.opened {
		if err := w.recount(ctx); err != nil {
			return err
		}
		w.opened = true
		w.holdEpochs()
	}
	if slot.Transmission == TxKey {
		w.drawRetryGains()
		for _, g := range w.groups {
			g.held, g.timed, g.alpha = false, false, 0
		}
	} else if !w.keyed {
		// It tells the scales of the groups and the phase that gains are measured
		// against: what is read without is of none, though its checks pass.
		w.spoil("b of the attempt was not read")
	}
	return nil
}

// Receive sends the groups' frames one after the other, receives them, and joins
// their integers. A frame that was written when ctx ends may still be sent: taking
// carriers off is for who opened the radios.
func (w *Waveform) Receive(ctx context.Context, rx *Reception) error {
	for i, d := range w.devices {
		if !d.sent && w.cfg.Transmitters != nil {
			return fmt.Errorf("device %d sent no %v in round %d", i+1, w.slot.Transmission, w.slot.Round)
		}
	}
	w.putOff()
	if w.cfg.OnTransmission != nil {
		if err := w.cfg.OnTransmission(w.slot, w.cursor); err != nil {
			return err
		}
	}
	w.report = WaveformReport{Quality: 1}
	rx.CheckPassed, rx.Reason = true, ""
	for number, g := range w.groups {
		ok, err := w.receiveGroup(ctx, number, g)
		if err != nil {
			return err
		}
		if !ok {
			rx.CheckPassed, rx.Reason = false, w.report.Failure
		}
	}
	w.join(rx)
	w.keyed = w.keyed || w.slot.Transmission == TxKey && rx.CheckPassed
	return nil
}

// receiveGroup sends a group's frame until it is read, and tells whether it was.
func (w *Waveform) receiveGroup(ctx context.Context, number int, g *group) (bool, error) {
	if g.y.Len() != w.payload.Len() {
		g.y = w.cfg.Modulus.NewVector(w.payload.Len())
	}
	held := 0
	for repeat := range w.cfg.Repeats + 1 {
		w.report.Frames++
		if repeat > 0 {
			w.report.Repeated++
		}
		w.drawWeights(g, number, uint8(repeat))
		at, err := w.exchange(ctx, number, g, uint8(repeat))
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
			w.combine(g, held)
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

// drawWeights draws the check weights of a group's frame.
func (w *Waveform) drawWeights(g *group, number int, repeat uint8) {
	if w.cfg.Format == frame.Format1 {
		w.payload.Draw1(w.cfg.Secret.Derive("payload", uint64(w.slot.Transmission)), w.slot.Round, w.slot.Attempt)
		return
	}
	w.payload.Draw(g.weights.Of(w.header(number, repeat)), w.slot.Again > 0)
}

// combine adds the frame at hand to those held of the same payload. Its checks, of
// weights that only it has, take the place of theirs; all of it does where the payload
// is sent again, as each frame has a mask of its own then.
func (w *Waveform) combine(g *group, held int) {
	if w.slot.Again > 0 {
		held = 0
	}
	lattice.Combine(g.sum, g.soft, float64(held))
	if w.cfg.Format == frame.Format1 {
		return // they were the same
	}
	payload := frame.HeaderSymbols + g.patterns.Symbols()
	for i := range w.payload.Blocks() {
		from, to := w.payload.CheckSymbols(i)
		copy(g.sum[payload+from:payload+to], g.soft[payload+from:payload+to])
	}
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
