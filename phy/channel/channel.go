package channel

import (
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
)

// Boundary is a place between two of a round's four transmissions b, c0, c1, D.
type Boundary int

const (
	// NoDrift keeps the gains for the whole round, as the paper assumes.
	NoDrift Boundary = iota
	// AfterKey lies between phase 1 (b) and phase 2 (c0, c1).
	AfterKey
	// WithinCiphertext lies between c0 and c1.
	WithinCiphertext
	// AfterCiphertext lies between phase 2 and phase 3 (D).
	AfterCiphertext
)

// MaxLatticeBits bounds f: a gain of 2^10 on a lattice of 2^-24 still leaves
// exact products with what is superposed.
const MaxLatticeBits = 24

// Config describes a channel.
type Config struct {
	Devices []Fading
	// LatticeBits is f: gains are rounded to multiples of 2^-f, so that
	// H = alpha h is an integer for alpha = 2^f (phy/README.md, section 3,
	// "emulated").
	LatticeBits int
	// Continuous leaves the gains as they are drawn. The ring identities then
	// fail: it exists to show that.
	Continuous bool
	// DriftAt is where in a round the gains change, DriftStd the standard
	// deviation of the change of each gain, DriftProbability the chance that an
	// attempt is hit.
	DriftAt          Boundary
	DriftStd         float64
	DriftProbability float64
	// FreshOnRetry draws a new fading block for each attempt at a round;
	// otherwise a repeated round meets the same gains.
	FreshOnRetry bool
}

// Channel draws gains. It is for one goroutine.
type Channel struct {
	cfg    Config
	alpha  float64
	fading []*keystream.Stream
	drift  *keystream.Stream
	normal *rand.Rand // over drift
	draws  []*rand.Rand
}

// New makes the channel whose draws come from seed.
func New(cfg Config, seed keystream.Seed) (*Channel, error) {
	if len(cfg.Devices) == 0 {
		return nil, fmt.Errorf("a channel needs at least one device")
	}
	if cfg.LatticeBits < 0 || cfg.LatticeBits > MaxLatticeBits {
		return nil, fmt.Errorf("the gain lattice has %d bits: allowed are 0 to %d", cfg.LatticeBits, MaxLatticeBits)
	}
	if !(cfg.DriftStd >= 0) || !(cfg.DriftProbability >= 0 && cfg.DriftProbability <= 1) {
		return nil, fmt.Errorf("drift of standard deviation %v with probability %v: the first must be 0 or more, the second from 0 to 1", cfg.DriftStd, cfg.DriftProbability)
	}
	c := &Channel{cfg: cfg, alpha: math.Ldexp(1, cfg.LatticeBits)}
	for i, f := range cfg.Devices {
		if err := validate(i, f); err != nil {
			return nil, err
		}
		s := seed.Derive("fading", uint64(i)).Stream()
		c.fading = append(c.fading, s)
		c.draws = append(c.draws, rand.New(s))
	}
	c.drift = seed.Derive("drift").Stream()
	c.normal = rand.New(c.drift)
	return c, nil
}

// Devices returns N.
func (c *Channel) Devices() int { return len(c.cfg.Devices) }

// Alpha returns the lattice scale 2^f: the one number about the gains that a
// server is told.
func (c *Channel) Alpha() float64 { return c.alpha }

// Continuous reports whether the gains stay off the lattice.
func (c *Channel) Continuous() bool { return c.cfg.Continuous }

// Scaled writes alpha h_i of transmission t (0 to 3: b, c0, c1, D) of an attempt
// to dst: integers H_i, unless the channel is continuous.
func (c *Channel) Scaled(dst []float64, round, attempt uint32, t int) {
	block := c.Block(attempt)
	hit := c.startDrift(round, attempt, t)
	for i, f := range c.cfg.Devices {
		c.fading[i].Start(round, block)
		h := f.Draw(c.draws[i])
		if hit {
			h += c.cfg.DriftStd * c.normal.NormFloat64()
		}
		dst[i] = h * c.alpha
		if !c.cfg.Continuous {
			dst[i] = math.RoundToEven(dst[i])
		}
	}
}

// Block returns which of a round's fading blocks an attempt meets.
func (c *Channel) Block(attempt uint32) uint32 {
	if c.cfg.FreshOnRetry {
		return attempt
	}
	return 0
}

// Law returns the law of device i's gain.
func (c *Channel) Law(i int) Fading { return c.cfg.Devices[i] }

// startDrift reports whether transmission t of the attempt comes after a change,
// and sets the drift stream to the change's draws.
func (c *Channel) startDrift(round, attempt uint32, t int) bool {
	if c.cfg.DriftAt == NoDrift || t < int(c.cfg.DriftAt) {
		return false
	}
	c.drift.Start(round, attempt)
	return c.normal.Float64() < c.cfg.DriftProbability
}

// KFactors returns the K-factor of every device where all are Rician, and nil
// otherwise.
func (c *Channel) KFactors() []float64 {
	var k []float64
	for _, f := range c.cfg.Devices {
		r, ok := f.(Rician)
		if !ok {
			return nil
		}
		k = append(k, r.K)
	}
	return k
}

// Moments returns mu_i and Omega_i of every device.
func (c *Channel) Moments() (mu, omega []float64) {
	for _, f := range c.cfg.Devices {
		mu = append(mu, f.Mean())
		omega = append(omega, f.SecondMoment())
	}
	return mu, omega
}
