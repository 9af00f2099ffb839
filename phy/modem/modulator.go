package modem

import (
	"fmt"
	"math"

	"ringwave/crypto/vector"
	"ringwave/phy/kernel"
)

// Drive is how one device sends.
type Drive struct {
	// Peak is the largest magnitude of a symbol, preamble included. It sets the
	// scale: no sequence of symbols up to Peak exceeds Amplitude.
	Peak float32
	// Amplitude is the largest magnitude of a sample, above 0 and at most 1. 0
	// stands for 1.
	Amplitude Amplitude
	// Phase turns all samples, for a device that trims its phase.
	Phase Radians
	// Advance makes every symbol earlier by so many samples, to make up for a
	// delay; at most one symbol either way. It is exact: the pulse itself is
	// evaluated at the shifted instants.
	Advance Samples
}

// chunk is the number of symbols a Modulator shapes at a time.
const chunk = 256

// Modulator shapes one device's stream of symbols. It is for one goroutine.
type Modulator struct {
	sps   int
	delay Samples
	tail  Symbols
	scale float64
	i, q  float32

	// A symbol period depends on perPhase symbols of the line, the last of which is the
	// newest. Beyond the chunk, line keeps the older symbols it depends on and,
	// as the pulse may start late in the support reserved for it, lag newer ones
	// that do not count yet.
	shaper   *kernel.Shaper
	taps     []float32
	perPhase int
	lag      int
	line     []float32

	form    Pulse
	advance Samples
	fine    *drifting // nil until it is needed
}

// NewModulator makes a device's modulator.
func NewModulator(cfg Config, drive Drive) (*Modulator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if drive.Amplitude == 0 {
		drive.Amplitude = 1
	}
	if !(drive.Peak > 0) || drive.Peak > 1e6 {
		return nil, fmt.Errorf("the peak of the symbols is %v: it must be above 0 and at most 1e6", drive.Peak)
	}
	if !(drive.Amplitude > 0 && drive.Amplitude <= 1) {
		return nil, fmt.Errorf("an amplitude of %v: it must be above 0 and at most 1", drive.Amplitude)
	}
	if limit := Samples(cfg.SamplesPerSymbol); !(drive.Advance >= -limit && drive.Advance <= limit) {
		return nil, fmt.Errorf("an advance of %v samples: it can be one symbol, %v samples, either way", drive.Advance, limit)
	}
	if math.IsNaN(float64(drive.Phase)) || math.IsInf(float64(drive.Phase), 0) {
		return nil, fmt.Errorf("a phase of %v", drive.Phase)
	}
	m := &Modulator{sps: cfg.SamplesPerSymbol, form: cfg.Pulse, advance: drive.Advance}
	m.setScale(cfg, drive)
	m.shape(cfg.Pulse, drive)
	return m, nil
}

// setScale finds the amplitude that keeps the worst sequence of symbols within
// the drive's amplitude. It is the same for every advance, so that an advance is
// no gain.
func (m *Modulator) setScale(cfg Config, drive Drive) {
	const (
		steps  = 32       // instants looked at per sample
		margin = 1 + 1e-3 // for what lies between them, and for rounding
	)
	worst := 0.0
	half := cfg.Pulse.half(m.sps)
	for s := range steps * m.sps {
		sum := 0.0
		t := Samples(s)/steps - Samples(m.sps)*Samples(math.Ceil(float64(half)/float64(m.sps)))
		for ; t <= half; t += Samples(m.sps) {
			sum += math.Abs(cfg.Pulse.at(t, m.sps))
		}
		worst = max(worst, sum)
	}
	m.scale = float64(drive.Amplitude) / (worst * margin * float64(drive.Peak))
}

// shape tabulates the pulse. A symbol's centre comes delay samples after the
// symbol period in which it is handed in begins, less the advance; the delay
// leaves room for any advance.
func (m *Modulator) shape(p Pulse, drive Drive) {
	half := p.half(m.sps)
	m.delay = Samples(math.Ceil(float64(half))) + Samples(m.sps)
	m.tail = Symbols(math.Ceil(float64(m.delay+half)/float64(m.sps))) + 1

	centre := m.delay - drive.Advance
	first := int(math.Ceil(float64(centre - half)))
	last := int(math.Floor(float64(centre + half)))
	m.lag = first / m.sps
	m.perPhase = last/m.sps - m.lag + 1
	m.taps = make([]float32, m.sps*m.perPhase)
	for j := range m.sps {
		for i := range m.perPhase {
			age := m.lag + m.perPhase - 1 - i // of the symbol, in periods
			m.taps[j*m.perPhase+i] = float32(p.at(Samples(j+age*m.sps)-centre, m.sps))
		}
	}
	sin, cos := math.Sincos(float64(drive.Phase))
	m.i, m.q = float32(m.scale*cos), float32(m.scale*sin)
	m.shaper = kernel.New(vector.Fastest()).NewShaper(m.taps, m.sps, complex(m.i, m.q))
	m.line = make([]float32, chunk+m.history())
}

// history is the number of earlier symbols that a period depends on.
func (m *Modulator) history() int { return m.lag + m.perPhase - 1 }

// Scale returns the amplitude of a symbol of 1, that is, of the height of a flat-top
// pulse: the real gain between symbols and samples.
func (m *Modulator) Scale() Amplitude { return Amplitude(m.scale) }

// Delay returns the instant of a symbol without advance, from the first sample of
// the period in which it is handed in.
func (m *Modulator) Delay() Samples { return m.delay }

// Tail returns how many zeros bring out the last symbol in full.
func (m *Modulator) Tail() Symbols { return m.tail }

// Modulate writes one symbol period of samples for each symbol:
// SamplesPerSymbol len(symbols) samples to dst, which holds that many. Symbols of
// magnitude up to Drive.Peak are expected. The stream goes on where the last call
// left it.
func (m *Modulator) Modulate(dst []complex64, symbols []float32) {
	for len(symbols) > 0 {
		n := copy(m.line[m.history():], symbols)
		m.emit(dst[:n*m.sps], n)
		dst, symbols = dst[n*m.sps:], symbols[n:]
	}
}

// ModulateDigits is Modulate for symbols that are small integers.
func (m *Modulator) ModulateDigits(dst []complex64, symbols []int8) {
	for len(symbols) > 0 {
		n := min(chunk, len(symbols))
		for k, d := range symbols[:n] {
			m.line[m.history()+k] = float32(d)
		}
		m.emit(dst[:n*m.sps], n)
		dst, symbols = dst[n*m.sps:], symbols[n:]
	}
}

// Idle sends zeros for the given number of symbols, as between frames.
func (m *Modulator) Idle(dst []complex64, symbols Symbols) {
	for symbols > 0 {
		n := min(chunk, int(symbols))
		clear(m.line[m.history() : m.history()+n])
		m.emit(dst[:n*m.sps], n)
		dst, symbols = dst[n*m.sps:], symbols-Symbols(n)
	}
}

// Reset forgets all symbols, as if the stream began.
func (m *Modulator) Reset() { clear(m.line) }

// emit writes the samples of n symbol periods and moves the line on.
func (m *Modulator) emit(dst []complex64, n int) {
	m.shaper.Shape(dst[:n*m.sps], m.line)
	copy(m.line, m.line[n:n+m.history()])
}
