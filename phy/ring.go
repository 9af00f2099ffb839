package phy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/phy/frame"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// Gains is where a Ring link has its gains from: channel.Channel, or a test's
// own.
type Gains interface {
	// Devices returns N.
	Devices() int
	// Alpha returns the lattice scale.
	Alpha() float64
	// Continuous tells that the scaled gains are no integers.
	Continuous() bool
	// Scaled writes alpha h_i of transmission t (0 to 3) of an attempt to dst.
	Scaled(dst []float64, round, attempt uint32, t int)
}

// RingConfig describes a Ring link.
type RingConfig struct {
	Modulus *zq.Modulus
	Gains   Gains
	// NoiseStd is sigma_w, the standard deviation of the ring noise before
	// rounding to integers, of each transmission in units of one coefficient:
	// w_b, w_0, w_1 and w_D of the paper.
	NoiseStd [slot.Transmissions]float64
	// Secret is the seed of patterns and check weights, which devices and server
	// share and nobody else knows; Noise that of the ring noise.
	Secret, Noise keystream.Seed
}

// RingFrame is what a device puts on the air of a ring link: its payload, and the check
// coefficients and pattern that let a receiver judge the superposition.
type RingFrame struct {
	Payload, Checks zq.Vector
	// Pattern has a +-1 a symbol.
	Pattern []int8
}

// RingFramer makes the frames of devices and judges their superposition. It knows the
// secret, and no gains. It is for one goroutine, but that Checks may be called by several at
// once between two calls of Open, each for a device of its own.
type RingFramer struct {
	modulus  *zq.Modulus
	noiseStd [slot.Transmissions]float64
	patterns *frame.Patterns
	residues []zq.Vector // of the patterns of devices whose checks were asked for
	weights  frame.Weights
	checks   [slot.Transmissions]map[int]*frame.Check
	check    *frame.Check // of the transmission at hand
}

// NewRingFramer returns the framer of so many devices.
func NewRingFramer(m *zq.Modulus, devices int, noiseStd [slot.Transmissions]float64, secret keystream.Seed) (*RingFramer, error) {
	for t, s := range noiseStd {
		if !(s >= 0) || s > math.Ldexp(1, 52) {
			return nil, fmt.Errorf("the ring noise of %v has standard deviation %v: allowed are 0 to 2^52", slot.Transmission(t), s)
		}
	}
	f := &RingFramer{
		modulus: m, noiseStd: noiseStd,
		patterns: frame.NewPatterns(devices, secret.Derive("patterns")),
		weights:  frame.NewWeights(secret, 0),
	}
	f.residues = make([]zq.Vector, devices)
	for t := range f.checks {
		f.checks[t] = map[int]*frame.Check{}
	}
	return f, nil
}

// PatternSymbols returns the length of each device's pattern.
func (f *RingFramer) PatternSymbols() int { return f.patterns.Symbols() }

// Pattern returns what device i sends as its pattern.
func (f *RingFramer) Pattern(i int) []int8 {
	p := make([]int8, f.patterns.Symbols())
	for t := range p {
		p[t] = int8(f.patterns.Symbol(i, t))
	}
	return p
}

// CheckCoefficients returns the number of check coefficients that go with a
// payload of n coefficients in transmission t. It is an error if the ring noise
// leaves no check that could tell right from wrong.
func (f *RingFramer) CheckCoefficients(t slot.Transmission, n int) (int, error) {
	c, err := f.checkFor(t, n)
	if err != nil {
		return 0, err
	}
	return c.Len(), nil
}

func (f *RingFramer) checkFor(t slot.Transmission, n int) (*frame.Check, error) {
	if c := f.checks[t][n]; c != nil {
		return c, nil
	}
	c, err := frame.NewCheck(f.modulus, n, f.patterns.Symbols(), f.noiseStd[t])
	if err != nil {
		return nil, fmt.Errorf("checking %v: %w", t, err)
	}
	f.checks[t][n] = c
	return c, nil
}

// Open draws the weights of a transmission of payloads of n coefficients, and returns how
// many check coefficients go with each.
func (f *RingFramer) Open(s slot.Slot, n int) (checks int, err error) {
	if err := s.Validate(); err != nil {
		return 0, err
	}
	if f.check, err = f.checkFor(s.Transmission, n); err != nil {
		return 0, err
	}
	f.check.Draw(f.weights.Of(headerOf(s, 0, 0, 0)))
	return f.check.Len(), nil
}

// Checks sets chk to the check coefficients of device i's payload x.
func (f *RingFramer) Checks(i int, chk, x zq.Vector) {
	if f.residues[i] == nil { // a device in a process of its own has no use for the others'
		f.residues[i] = f.patterns.Residue(i, f.modulus)
	}
	f.check.Sums(chk, x, f.residues[i])
}

// Verify reports whether what was received belongs together.
func (f *RingFramer) Verify(y, chk zq.Vector, pattern []int64) bool {
	return f.check.Verify(y, pattern, chk)
}

// RingAir superposes frames: the channel of a ring link. It knows the gains, and no secret
// of devices or server. It is for one goroutine.
type RingAir struct {
	modulus  *zq.Modulus
	gains    Gains
	noiseStd [slot.Transmissions]float64
	noise    [slot.Transmissions]*keystream.Stream
	normal   [slot.Transmissions]*rand.Rand
	scaled   []float64
	h        []int64
}

// NewRingAir returns the channel of given gains, with noise from a seed.
func NewRingAir(m *zq.Modulus, gains Gains, noiseStd [slot.Transmissions]float64, noise keystream.Seed) *RingAir {
	a := &RingAir{
		modulus: m, gains: gains, noiseStd: noiseStd,
		scaled: make([]float64, gains.Devices()), h: make([]int64, gains.Devices()),
	}
	for t := range a.noise {
		a.noise[t] = noise.Derive("ring noise", uint64(t)).Stream()
		a.normal[t] = rand.New(a.noise[t])
	}
	return a
}

// Superpose sets rx to what arrives of the frames, one a device, of which one without
// payload sends nothing, and chk to their check coefficients. It judges nothing.
func (a *RingAir) Superpose(s slot.Slot, rx *Reception, chk zq.Vector, frames []RingFrame) error {
	a.gains.Scaled(a.scaled, s.Round, s.Attempt, int(s.Transmission))
	for i, g := range a.scaled {
		if a.gains.Continuous() && !(math.Abs(g) < maxGain) {
			return fmt.Errorf("device %d has the scaled gain %v in round %d: allowed is below 2^%d in magnitude", i+1, g, s.Round, 63-gainFraction)
		}
		a.h[i] = int64(math.RoundToEven(g))
	}
	rx.Alpha = a.gains.Alpha()
	payload, checks := func(f *RingFrame) zq.Vector { return f.Payload }, func(f *RingFrame) zq.Vector { return f.Checks }
	if a.gains.Continuous() {
		a.superposeReal(rx.Y, frames, payload)
		a.superposeReal(chk, frames, checks)
		a.patternReal(rx.Pattern, frames)
	} else {
		a.superpose(rx.Y, frames, payload)
		a.superpose(chk, frames, checks)
		a.pattern(rx.Pattern, frames)
	}
	a.addNoise(s, rx.Y, chk)
	return nil
}

// Ring is the ring link: y = sum_i H_i x_i + w mod q on the coefficients
// themselves. With integer gains it is exact; with continuous gains it rounds
// the real superposition of the centred coefficients, as the paper describes it,
// and the residual of size q that this leaves shows in the checks.
//
// It is a RingFramer at both ends of a RingAir.
type Ring struct {
	*RingFramer
	air *RingAir

	slot   slot.Slot
	length int
	frames []RingFrame         // of device i, since Open
	sums   map[int][]zq.Vector // check coefficients of device i, by their number
	rxChk  map[int]zq.Vector
	checks int
}

// NewRing makes a ring link.
func NewRing(cfg RingConfig) (*Ring, error) {
	n := cfg.Gains.Devices()
	f, err := NewRingFramer(cfg.Modulus, n, cfg.NoiseStd, cfg.Secret)
	if err != nil {
		return nil, err
	}
	r := &Ring{
		RingFramer: f, air: NewRingAir(cfg.Modulus, cfg.Gains, cfg.NoiseStd, cfg.Noise),
		frames: make([]RingFrame, n), sums: map[int][]zq.Vector{}, rxChk: map[int]zq.Vector{},
	}
	for i := range r.frames {
		r.frames[i].Pattern = f.Pattern(i)
	}
	return r, nil
}

// Open begins a transmission of payloads of n coefficients. Like Receive it waits for
// nothing.
func (r *Ring) Open(_ context.Context, s slot.Slot, n int) (err error) {
	if r.checks, err = r.RingFramer.Open(s, n); err != nil {
		return err
	}
	r.slot, r.length = s, n
	m := r.checks
	if r.sums[m] == nil {
		r.sums[m] = make([]zq.Vector, len(r.frames))
		for i := range r.sums[m] {
			r.sums[m][i] = r.modulus.NewVector(m)
		}
		r.rxChk[m] = r.modulus.NewVector(m)
	}
	for i := range r.frames {
		r.frames[i].Payload, r.frames[i].Checks = nil, r.sums[m][i]
	}
	return nil
}

// Transmit frames device i's payload and puts it on the air.
func (r *Ring) Transmit(i int, x zq.Vector) error {
	if i < 0 || i >= len(r.frames) {
		return fmt.Errorf("device %d transmits on a link of %d devices", i+1, len(r.frames))
	}
	if x.Len() != r.length {
		return fmt.Errorf("device %d sent %d coefficients of %v, the receiver expects %d", i+1, x.Len(), r.slot.Transmission, r.length)
	}
	f := &r.frames[i]
	r.Checks(i, f.Checks, x)
	f.Payload = x
	return nil
}

// Receive superposes what the devices sent.
func (r *Ring) Receive(_ context.Context, rx *Reception) error {
	for i := range r.frames {
		if r.frames[i].Payload == nil {
			return fmt.Errorf("device %d sent no %v in round %d", i+1, r.slot.Transmission, r.slot.Round)
		}
	}
	if n := rx.Y.Len(); n != r.length {
		return fmt.Errorf("%d coefficients of %v are received where %d were sent", n, r.slot.Transmission, r.length)
	}
	chk := r.rxChk[r.checks]
	if err := r.air.Superpose(r.slot, rx, chk, r.frames); err != nil {
		return err
	}
	rx.CheckPassed = r.Verify(rx.Y, chk, rx.Pattern)
	return nil
}

// superpose sets y = sum_i H_i x_i mod q.
func (a *RingAir) superpose(y zq.Vector, frames []RingFrame, part func(*RingFrame) zq.Vector) {
	y.Clear()
	for i, h := range a.h {
		if frames[i].Payload != nil {
			a.modulus.AddScaled(y, h, part(&frames[i]))
		}
	}
}

// pattern sets y to the superposition of the patterns.
func (a *RingAir) pattern(y []int64, frames []RingFrame) {
	clear(y)
	for i, h := range a.h {
		if frames[i].Payload == nil {
			continue
		}
		for t, p := range frames[i].Pattern {
			y[t] += h * int64(p)
		}
	}
}

// gainFraction is the number of fraction bits of a continuous gain, and maxGain the
// largest that then fits an int64.
const (
	gainFraction = 38
	maxGain      = 1 << (63 - gainFraction)
)

// superposeReal sets y = round(sum_i alpha h_i x_i) mod q, x_i centred and h_i
// real up to 2^-38/alpha.
//
// It is exact without a number longer than a word. With G_i = 2^38 alpha h_i, an
// integer, the sum to be rounded is z/2^38, z = 2^37 + sum_i G_i x_i. As q is odd,
// floor(z/2^38) = (z - r) 2^-38 mod q with r = z mod 2^38. For z mod q any
// representatives of the x_i do; for r their centred ones are needed, but of these
// the low 64 bits only.
func (a *RingAir) superposeReal(y zq.Vector, frames []RingFrame, part func(*RingFrame) zq.Vector) {
	const mask = 1<<gainFraction - 1
	m := a.modulus
	for i, g := range a.scaled {
		a.h[i] = int64(math.Round(math.Ldexp(g, gainFraction)))
	}
	a.superpose(y, frames, part)
	for k := range y.Len() {
		low := uint64(1) << (gainFraction - 1)
		for i, h := range a.h {
			if frames[i].Payload != nil {
				low += uint64(h) * m.Centred(part(&frames[i]), k).Low64()
			}
		}
		m.AddInt(y, k, 1<<(gainFraction-1)-int64(low&mask))
	}
	m.Halve(y, gainFraction)
}

// patternReal sets y to the nearest integers of the pattern's superposition
// under continuous gains.
func (a *RingAir) patternReal(y []int64, frames []RingFrame) {
	for t := range y {
		sum := 0.0
		for i, g := range a.scaled {
			if frames[i].Payload != nil {
				sum += g * float64(frames[i].Pattern[t])
			}
		}
		y[t] = int64(math.RoundToEven(sum))
	}
}

// addNoise adds w, a Gaussian rounded to integers, to every coefficient.
func (a *RingAir) addNoise(s slot.Slot, y, chk zq.Vector) {
	t := s.Transmission
	std := a.noiseStd[t]
	if std == 0 {
		return
	}
	a.noise[t].Start(s.Round, s.Attempt|uint32(s.Again)<<16)
	for _, v := range []zq.Vector{y, chk} {
		for k := range v.Len() {
			a.modulus.AddInt(v, k, int64(math.RoundToEven(std*a.normal[t].NormFloat64())))
		}
	}
}
