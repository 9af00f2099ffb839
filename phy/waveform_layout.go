package phy

import (
	"fmt"

	"ringwave/phy/digit"
	"ringwave/phy/frame"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
)

// guardSymbols is the silence before a frame and after it.
const guardSymbols = 24

// layout says where in a frame is what: in symbols from the first of the preamble, and
// in samples with the guard times.
type layout struct {
	modulus      *zq.Modulus
	codec        *digit.Codec
	format       frame.Format
	blockSymbols int
	sps          int    // samples a symbol
	preamble     []int8 // its symbols
	// delay is that of the modulators' filter, the same for all, and tail how many
	// symbols bring out the last one.
	delay    modem.Samples
	tail     modem.Symbols
	patterns int                    // symbols of the largest group's
	payloads map[int]*frame.Payload // by their length
}

// newLayout returns the layout of frames of a link whose groups' patterns have so many
// symbols at most, as m modulates them.
func newLayout(cfg *WaveformConfig, codec *digit.Codec, patterns int, m *modem.Modulator) *layout {
	l := &layout{
		modulus: cfg.Modulus, codec: codec, format: cfg.Format, blockSymbols: cfg.BlockSymbols,
		sps: cfg.Modem.SamplesPerSymbol, delay: m.Delay(), tail: m.Tail(),
		patterns: patterns, payloads: map[int]*frame.Payload{},
	}
	for _, s := range cfg.Modem.PreambleSymbols() {
		l.preamble = append(l.preamble, int8(s))
	}
	return l
}

// payload returns the blocks of payloads of n coefficients.
func (l *layout) payload(t slot.Transmission, n int) (*frame.Payload, error) {
	if p := l.payloads[n]; p != nil {
		return p, nil
	}
	perBlock := max(1, l.blockSymbols/l.codec.Digits())
	newPayload := frame.NewPayload
	if l.format == frame.Format1 {
		newPayload = frame.NewPayload1
	}
	p, err := newPayload(l.modulus, l.codec, n, perBlock, l.patterns)
	if err != nil {
		return nil, fmt.Errorf("laying out %v: %w", t, err)
	}
	l.payloads[n] = p
	return p, nil
}

// blocks returns the symbols of each block; those of the pattern are read with the first.
func (l *layout) blocks(p *frame.Payload) []int {
	lengths := make([]int, p.Blocks())
	for i := range lengths {
		from, to := p.BlockSymbols(i)
		lengths[i] = to - from
	}
	lengths[0] += l.patterns
	return lengths
}

// header, pattern and start return the symbol at which a frame's header, its pattern,
// and the payload behind a pattern of so many symbols begin.
func (l *layout) header() int            { return len(l.preamble) }
func (l *layout) pattern() int           { return l.header() + frame.HeaderSymbols }
func (l *layout) start(patterns int) int { return l.pattern() + patterns }

// window returns the samples of a frame with its guard times.
func (l *layout) window(patterns int, p *frame.Payload) int {
	return (2*guardSymbols + l.start(patterns) + p.Symbols() + int(l.tail)) * l.sps
}

// half returns how far a symbol's pulse reaches from its centre, in samples.
func (l *layout) half() int { return int(l.delay) - l.sps }

// guard returns the samples of one guard time.
func (l *layout) guard() radio.SampleIndex { return radio.SampleIndex(guardSymbols * l.sps) }

// guardOf is guard of a modem.
func guardOf(c modem.Config) radio.SampleIndex {
	return radio.SampleIndex(guardSymbols * c.SamplesPerSymbol)
}
