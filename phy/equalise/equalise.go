// Package equalise makes a channel look nearly ideal by pre-equalisation at the
// devices, each with its own imperfect estimate of its gain.
//
// It takes in a channel of real gains and gives another one, that of devices which
// learn their gains h_i from a pilot, as hat h_i = h_i + N(0, sigma_pilot^2), and
// multiply what they send by p(hat h_i): the effective gains g_i = h_i p(hat h_i),
// near 1 and never on a lattice. This is the pre-equalisation that the paper
// compares with (Fig. 4), which says of it that it is zero-forcing or MMSE, and
// gives sigma_pilot. It knows nothing of what is sent.
package equalise

import (
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
)

// Method is how a device forms p(hat h).
type Method int

const (
	// ZF is zero-forcing: p = 1/hat h.
	ZF Method = iota
	// MMSE is the regularised inverse p = hat h/(hat h^2 + sigma_pilot^2). The paper
	// gives no formula: this is the Wiener form with the pilot's variance as noise,
	// for symbols of unit power.
	MMSE
)

// String returns the name of the method in configs.
func (m Method) String() string {
	if m == MMSE {
		return "mmse"
	}
	return "zf"
}

// MaxGain bounds the magnitude of an effective gain: no transmitter inverts a gain of
// nearly 0 with unlimited power. What exceeds it is set to it.
const MaxGain = 1 << 20

// Source is the channel to equalise: channel.Channel, or a test's own.
type Source interface {
	// Devices returns N.
	Devices() int
	// Alpha returns the scale of Scaled.
	Alpha() float64
	// Scaled writes alpha h_i of transmission t (0 to 3) of an attempt to dst.
	Scaled(dst []float64, round, attempt uint32, t int)
}

// Channel is the equalised channel. It is for one goroutine.
type Channel struct {
	source   Source
	method   Method
	pilotStd float64
	stream   *keystream.Stream
	rnd      *rand.Rand // reads stream
	pilot    []float64
}

// New equalises a source. The pilots have the estimation error pilotStd, sigma_pilot,
// finite and 0 or more, in units of h; that of an attempt depends on the seed, the
// round and the attempt alone.
func New(source Source, method Method, pilotStd float64, seed keystream.Seed) (*Channel, error) {
	if method != ZF && method != MMSE {
		return nil, fmt.Errorf("equalising: the method is %d: allowed are ZF and MMSE", method)
	}
	if !(pilotStd >= 0) || math.IsInf(pilotStd, 0) {
		return nil, fmt.Errorf("equalising: the pilots' error has standard deviation %v: allowed is finite and 0 or more", pilotStd)
	}
	stream := seed.Derive("pilots").Stream()
	return &Channel{
		source: source, method: method, pilotStd: pilotStd,
		stream: stream, rnd: rand.New(stream), pilot: make([]float64, source.Devices()),
	}, nil
}

// Devices returns N.
func (c *Channel) Devices() int { return c.source.Devices() }

// Alpha returns 1: effective gains are meant to be 1, and there is no lattice.
func (c *Channel) Alpha() float64 { return 1 }

// Continuous tells that the effective gains are no integers.
func (c *Channel) Continuous() bool { return true }

// Scaled writes the effective gains of transmission t (0 to 3) of an attempt to dst.
// One pilot serves an attempt: it is received in the block of transmission 0.
func (c *Channel) Scaled(dst []float64, round, attempt uint32, t int) {
	c.source.Scaled(c.pilot, round, attempt, 0)
	c.source.Scaled(dst, round, attempt, t)
	alpha := c.source.Alpha()
	c.stream.Start(round, attempt)
	for i := range dst {
		estimate := c.pilot[i]/alpha + c.pilotStd*c.rnd.NormFloat64()
		dst[i] = c.gain(dst[i]/alpha, estimate)
	}
}

// gain returns h p(hat h). A device whose estimate is 0 has nothing to invert, and
// sends nothing.
func (c *Channel) gain(h, estimate float64) float64 {
	if estimate == 0 {
		return 0
	}
	g := h / estimate
	if c.method == MMSE {
		g = h * estimate / (estimate*estimate + c.pilotStd*c.pilotStd)
	}
	return max(-MaxGain, min(g, MaxGain))
}
