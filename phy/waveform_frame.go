package phy

import (
	"fmt"
	"math/cmplx"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/frame"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// members are the devices of a time slot, counted from first on, and what they share with
// the receiver.
type members struct {
	number, first, size int
	patterns            *frame.Patterns
	residues            []zq.Vector // of the patterns
	weights             frame.Weights
}

// membersOf returns the members of a link's group.
func (cfg *WaveformConfig) membersOf(number int) *members {
	first := number * cfg.Group
	p := frame.NewPatterns(min(cfg.Group, cfg.Devices-first), cfg.Secret.Derive("patterns", uint64(number)))
	return &members{
		number: number, first: first, size: p.Devices(), patterns: p, residues: p.Residues(cfg.Modulus),
		weights: frame.NewWeights(cfg.Secret, uint64(number)),
	}
}

// indices returns the numbers of the devices, from 0.
func (m *members) indices() []int {
	all := make([]int, m.size)
	for k := range all {
		all[k] = m.first + k
	}
	return all
}

// framer makes the symbols of one device's frames.
type framer struct {
	layout  *layout
	members *members
	index   int  // of the device
	peak    int8 // level of the header's symbols
	symbols []int8
	scratch map[*frame.Payload][]frame.Scratch
	sent    bool // of the transmission
}

func newFramer(l *layout, m *members, index int, peak float32) *framer {
	return &framer{layout: l, members: m, index: index, peak: int8(peak), scratch: map[*frame.Payload][]frame.Scratch{}}
}

// open begins a transmission, of which nothing was sent.
func (f *framer) open(p *frame.Payload) {
	f.sent = false
	if f.scratch[p] == nil {
		f.scratch[p] = p.NewScratch()
	}
}

// take writes the digits of x. Header and checks are written for each repeat, later.
func (f *framer) take(p *frame.Payload, x zq.Vector) {
	patterns := f.members.patterns
	start := f.layout.start(patterns.Symbols())
	n := start + p.Symbols()
	if cap(f.symbols) < n {
		f.symbols = make([]int8, n)
	}
	f.symbols = f.symbols[:n]
	copy(f.symbols, f.layout.preamble)
	pattern := f.symbols[f.layout.pattern():start]
	for k := range pattern {
		pattern[k] = int8(patterns.Symbol(f.index-f.members.first, k))
	}
	p.Encode(f.symbols[start:], x, f.scratch[p])
	f.sent = true
}

// finish writes what is of one repeat: header, and checks by weights that were drawn.
func (f *framer) finish(p *frame.Payload, h frame.Header) {
	f.members.encodeChecks(f, p)
	header := f.symbols[f.layout.header():f.layout.pattern()]
	h.Symbols(header, f.layout.format)
	for k := range header {
		header[k] *= f.peak
	}
}

func (m *members) encodeChecks(f *framer, p *frame.Payload) {
	p.EncodeChecks(f.symbols[f.layout.start(m.patterns.Symbols()):], m.residues[f.index-m.first], f.scratch[p])
}

// The gains that devices draw for a retry are uniform in [RetryLeast, 1].
const RetryLeast = 0.7

// retries draws every device's gain for an attempt: 1 in the first, and then fresh ones
// that pose a new lattice problem (phy/README.md, section 3). Where the scale is known
// there is no such problem, and a gain that is on its lattice or aligned must stay so.
type retries struct {
	stream *keystream.Stream
	blind  bool      // nobody knows the scale, so that retries may have other gains
	gains  []float32 // of the attempt: 1, or in [0.7, 1] in retries
}

func newRetries(cfg *WaveformConfig) *retries {
	r := &retries{stream: cfg.Secret.Derive("retry gains").Stream(), blind: cfg.Alpha == 0, gains: make([]float32, cfg.Devices)}
	for i := range r.gains {
		r.gains[i] = 1
	}
	return r
}

func (r *retries) draw(at slot.Slot) {
	r.stream.Start(at.Round, at.Attempt)
	for i := range r.gains {
		r.gains[i] = 1
		if u := float64(r.stream.Uint64()>>11) * 0x1p-53; r.differ(at) {
			r.gains[i] = float32(RetryLeast + (1-RetryLeast)*u)
		}
	}
}

// differ reports whether devices draw gains for an attempt.
func (r *retries) differ(at slot.Slot) bool { return at.Attempt > 0 && r.blind }

// mean is folded into alpha, so that M keeps its scale in the mean. The gains of attempts
// that succeed are not a fair sample: what this bias leaves is within the spread of [0.7, 1].
func (r *retries) mean(at slot.Slot) float64 {
	if !r.differ(at) {
		return 1
	}
	return (1 + RetryLeast) / 2
}

// drive is how a device sends that makes up for what a has of it, and the magnitude of its
// trim. All keep the headroom that the largest correction asks for, so that it is no gain of
// one of them.
func (cfg *WaveformConfig) drive(a Alignment, i int) (d modem.Drive, trim float64) {
	headroom := 1.0
	for _, c := range a.Correction {
		headroom = min(headroom, c.Headroom())
	}
	d = modem.Drive{Peak: cfg.Modem.Preamble.Level, Amplitude: cfg.Amplitude}
	d.Amplitude *= modem.Amplitude(headroom)
	if a.Advance != nil {
		d.Advance = a.Advance[i]
	}
	if a.Trim == nil {
		return d, 1
	}
	size, phase := cmplx.Polar(complex128(a.Trim[i]))
	trim = min(1, size)
	d.Amplitude *= modem.Amplitude(trim)
	d.Phase = modem.Radians(phase)
	return d, trim
}

// unit returns the soft symbol of the digit 1 from a device of gain 1 that makes up for a.
func (cfg *WaveformConfig) unit(a Alignment) (float64, error) {
	drive, trim := cfg.drive(a, cfg.Devices-1)
	m, err := modem.NewModulator(cfg.Modem, drive)
	if err != nil {
		return 0, fmt.Errorf("device %d: %w", cfg.Devices, err)
	}
	return float64(m.Scale()) / trim * cfg.Level, nil
}

// prepare checks a configuration and fills in what both halves of a link need.
func (cfg *WaveformConfig) prepare() (*digit.Codec, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return digit.New(cfg.Modulus, cfg.Base)
}

// WaveformFrame is what a device of a waveform link sends, as it gives it to the air of a
// simulation: symbols, and how its own transmitter sends them.
type WaveformFrame struct {
	// Group is the device's time slot, and Repeat counts frames of the same payload.
	Group, Repeat int
	// Symbols are all of the frame, preamble first.
	Symbols []int8
	// Gain is what the device weakens its samples by.
	Gain float32
	MakeUp
}

// MakeUp is how a device sends that makes up for its link and for its own transmitter.
type MakeUp struct {
	Drive      modem.Drive
	Correction modem.Correction
}

// MakeUps returns what each device makes up for, by the configuration's Alignment.
func (cfg WaveformConfig) MakeUps() []MakeUp {
	cfg.setDefaults()
	all := make([]MakeUp, cfg.Devices)
	for i := range all {
		all[i].Drive, _ = cfg.drive(cfg.Alignment, i)
		if cfg.Correction != nil {
			all[i].Correction = cfg.Correction[i]
		}
	}
	return all
}

// WaveformSender is the sending half of a waveform link: one device's end. It knows the
// secret, and neither gains nor what others send. It is for one goroutine.
type WaveformSender struct {
	cfg     WaveformConfig
	framer  *framer
	retries *retries
	frame   WaveformFrame // but for its symbols
}

// NewWaveformSender returns the sending half of device i, from 0, of a link that is described
// as its receiver's. Streams and observers of cfg are not used.
func NewWaveformSender(cfg WaveformConfig, i int) (*WaveformSender, error) {
	cfg.Transmitters, cfg.Receiver = nil, nil
	codec, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= cfg.Devices {
		return nil, fmt.Errorf("device %d of a link of %d devices", i+1, cfg.Devices)
	}
	s := &WaveformSender{cfg: cfg, retries: newRetries(&cfg), frame: WaveformFrame{Group: i / cfg.Group}}
	own := cfg.MakeUps()[i]
	m, err := modem.NewModulator(cfg.Modem, own.Drive)
	if err != nil {
		return nil, err
	}
	s.frame.MakeUp = own
	group := cfg.membersOf(s.frame.Group)
	largest := group.patterns.Symbols()
	if s.frame.Group > 0 {
		largest = cfg.membersOf(0).patterns.Symbols()
	}
	s.framer = newFramer(newLayout(&cfg, codec, largest, m), group, i, cfg.Modem.Preamble.Level)
	return s, nil
}

// Group returns the device's time slot.
func (s *WaveformSender) Group() int { return s.frame.Group }

// Align has the device make up for what was measured, from its next frame on.
func (s *WaveformSender) Align(m MakeUp) error {
	if peak := s.cfg.Modem.Preamble.Level; m.Drive.Peak != peak {
		return fmt.Errorf("a drive for symbols up to %v: allowed are those up to %v", m.Drive.Peak, peak)
	}
	if _, err := modem.NewModulator(s.cfg.Modem, m.Drive); err != nil {
		return err
	}
	if err := m.Correction.Validate(); err != nil {
		return err
	}
	s.frame.MakeUp = m
	return nil
}

// Repeats returns how often a frame is sent again at most.
func (s *WaveformSender) Repeats() int { return s.cfg.Repeats }

// Frame returns the frame of x in a transmission, or one of its repeats. The same arguments
// give the same symbols. They hold until the next call.
func (s *WaveformSender) Frame(at slot.Slot, repeat int, x zq.Vector) (WaveformFrame, error) {
	if err := at.Validate(); err != nil {
		return WaveformFrame{}, err
	}
	if repeat < 0 || repeat > s.cfg.Repeats {
		return WaveformFrame{}, fmt.Errorf("a frame of %v is to be sent again for the %d. time: allowed are %d", at.Transmission, repeat, s.cfg.Repeats)
	}
	p, err := s.framer.layout.payload(at.Transmission, x.Len())
	if err != nil {
		return WaveformFrame{}, err
	}
	h := headerOf(at, s.cfg.Run, s.frame.Group, uint8(repeat))
	p.Draw(s.framer.members.weights.Of(h), at.Again > 0)
	s.framer.open(p)
	s.framer.take(p, x)
	s.framer.finish(p, h)
	s.retries.draw(at)
	f := s.frame
	f.Repeat, f.Symbols, f.Gain = repeat, s.framer.symbols, s.retries.gains[s.framer.index]
	return f, nil
}
