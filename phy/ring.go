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

// Ring is the ring link: y = sum_i H_i x_i + w mod q on the coefficients
// themselves. With integer gains it is exact; with continuous gains it rounds
// the real superposition of the centred coefficients, as the paper describes it,
// and the residual of size q that this leaves shows in the checks.
type Ring struct {
	cfg      RingConfig
	patterns *frame.Patterns
	residues []zq.Vector // of the patterns
	weights  frame.Weights
	noise    [slot.Transmissions]*keystream.Stream
	normal   [slot.Transmissions]*rand.Rand
	checks   [slot.Transmissions]map[int]*frame.Check

	slot    slot.Slot
	check   *frame.Check
	scaled  []float64
	h       []int64
	payload []zq.Vector         // of device i, since Open
	sums    map[int][]zq.Vector // check coefficients of device i, by their number
	chk     []zq.Vector         // sums of the current length
	rxChk   map[int]zq.Vector
}

// NewRing makes a ring link.
func NewRing(cfg RingConfig) (*Ring, error) {
	for t, s := range cfg.NoiseStd {
		if !(s >= 0) || s > math.Ldexp(1, 52) {
			return nil, fmt.Errorf("the ring noise of %v has standard deviation %v: allowed are 0 to 2^52", slot.Transmission(t), s)
		}
	}
	n := cfg.Gains.Devices()
	r := &Ring{
		cfg:      cfg,
		patterns: frame.NewPatterns(n, cfg.Secret.Derive("patterns")),
		weights:  frame.NewWeights(cfg.Secret, 0),
		scaled:   make([]float64, n),
		h:        make([]int64, n),
		payload:  make([]zq.Vector, n),
		sums:     map[int][]zq.Vector{},
		rxChk:    map[int]zq.Vector{},
	}
	r.residues = r.patterns.Residues(cfg.Modulus)
	for t := range slot.Transmissions {
		r.noise[t] = cfg.Noise.Derive("ring noise", uint64(t)).Stream()
		r.normal[t] = rand.New(r.noise[t])
		r.checks[t] = map[int]*frame.Check{}
	}
	return r, nil
}

// PatternSymbols returns the length of each device's pattern.
func (r *Ring) PatternSymbols() int { return r.patterns.Symbols() }

// CheckCoefficients returns the number of check coefficients that go with a
// payload of n coefficients in transmission t. It is an error if the ring noise
// leaves no check that could tell right from wrong.
func (r *Ring) CheckCoefficients(t slot.Transmission, n int) (int, error) {
	c, err := r.checkFor(t, n)
	if err != nil {
		return 0, err
	}
	return c.Len(), nil
}

func (r *Ring) checkFor(t slot.Transmission, n int) (*frame.Check, error) {
	if c := r.checks[t][n]; c != nil {
		return c, nil
	}
	c, err := frame.NewCheck(r.cfg.Modulus, n, r.patterns.Symbols(), r.cfg.NoiseStd[t])
	if err != nil {
		return nil, fmt.Errorf("checking %v: %w", t, err)
	}
	r.checks[t][n] = c
	return c, nil
}

// Open begins a transmission of payloads of n coefficients. Like Receive it waits for
// nothing.
func (r *Ring) Open(_ context.Context, s slot.Slot, n int) error {
	if err := s.Validate(); err != nil {
		return err
	}
	r.slot = s
	check, err := r.checkFor(s.Transmission, n)
	if err != nil {
		return err
	}
	r.check = check
	r.check.Draw(r.weights.Of(headerOf(s, 0, 0, 0)))
	clear(r.payload)
	m := r.check.Len()
	if r.sums[m] == nil {
		r.sums[m] = make([]zq.Vector, len(r.payload))
		for i := range r.sums[m] {
			r.sums[m][i] = r.cfg.Modulus.NewVector(m)
		}
		r.rxChk[m] = r.cfg.Modulus.NewVector(m)
	}
	r.chk = r.sums[m]
	return nil
}

// Transmit frames device i's payload and puts it on the air.
func (r *Ring) Transmit(i int, x zq.Vector) error {
	if i < 0 || i >= len(r.payload) {
		return fmt.Errorf("device %d transmits on a link of %d devices", i+1, len(r.payload))
	}
	r.check.Sums(r.chk[i], x, r.residues[i])
	r.payload[i] = x
	return nil
}

// Receive superposes what the devices sent.
func (r *Ring) Receive(_ context.Context, rx *Reception) error {
	for i, x := range r.payload {
		if x == nil {
			return fmt.Errorf("device %d sent no %v in round %d", i+1, r.slot.Transmission, r.slot.Round)
		}
		if x.Len() != rx.Y.Len() {
			return fmt.Errorf("device %d sent %d coefficients of %v, the receiver expects %d", i+1, x.Len(), r.slot.Transmission, rx.Y.Len())
		}
	}
	t := r.slot.Transmission
	r.cfg.Gains.Scaled(r.scaled, r.slot.Round, r.slot.Attempt, int(t))
	for i, g := range r.scaled {
		if r.cfg.Gains.Continuous() && !(math.Abs(g) < maxGain) {
			return fmt.Errorf("device %d has the scaled gain %v in round %d: allowed is below 2^%d in magnitude", i+1, g, r.slot.Round, 63-gainFraction)
		}
		r.h[i] = int64(math.RoundToEven(g))
	}
	rx.Alpha = r.cfg.Gains.Alpha()
	chk := r.rxChk[r.check.Len()]
	if r.cfg.Gains.Continuous() {
		r.superposeReal(rx.Y, r.payload)
		r.superposeReal(chk, r.chk)
		r.patternReal(rx.Pattern)
	} else {
		r.superpose(rx.Y, r.payload)
		r.superpose(chk, r.chk)
		r.patterns.Superpose(rx.Pattern, r.h)
	}
	r.addNoise(rx.Y, chk)
	rx.CheckPassed = r.check.Verify(rx.Y, rx.Pattern, chk)
	return nil
}

// superpose sets y = sum_i H_i x_i mod q.
func (r *Ring) superpose(y zq.Vector, x []zq.Vector) {
	y.Clear()
	for i, h := range r.h {
		r.cfg.Modulus.AddScaled(y, h, x[i])
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
func (r *Ring) superposeReal(y zq.Vector, x []zq.Vector) {
	const mask = 1<<gainFraction - 1
	m := r.cfg.Modulus
	for i, g := range r.scaled {
		r.h[i] = int64(math.Round(math.Ldexp(g, gainFraction)))
	}
	r.superpose(y, x)
	for k := range y.Len() {
		low := uint64(1) << (gainFraction - 1)
		for i, h := range r.h {
			low += uint64(h) * m.Centred(x[i], k).Low64()
		}
		m.AddInt(y, k, 1<<(gainFraction-1)-int64(low&mask))
	}
	m.Halve(y, gainFraction)
}

// patternReal sets y to the nearest integers of the pattern's superposition
// under continuous gains.
func (r *Ring) patternReal(y []int64) {
	for t := range y {
		sum := 0.0
		for i, g := range r.scaled {
			sum += g * float64(r.patterns.Symbol(i, t))
		}
		y[t] = int64(math.RoundToEven(sum))
	}
}

// addNoise adds w, a Gaussian rounded to integers, to every coefficient.
func (r *Ring) addNoise(y, chk zq.Vector) {
	t := r.slot.Transmission
	std := r.cfg.NoiseStd[t]
	if std == 0 {
		return
	}
	r.noise[t].Start(r.slot.Round, r.slot.Attempt|uint32(r.slot.Again)<<16)
	for _, v := range []zq.Vector{y, chk} {
		for k := range v.Len() {
			r.cfg.Modulus.AddInt(v, k, int64(math.RoundToEven(std*r.normal[t].NormFloat64())))
		}
	}
}
