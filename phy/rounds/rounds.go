// Package rounds simulates rounds of the protocol symbol by symbol, and says how often
// they are read.
//
// It takes in what is known of a bench's links (the distribution of each device's gain,
// its phase and its delay, with their uncertainty), the receiver's noise and the
// converters, and a way to run the protocol: regime, groups, digits, pulses and the
// blocks of a round's frames. It gives for each attempt at a round the repeats that every
// frame needed. Symbols have their noise, their converters and the interference that the
// modem's own pulses leave at the devices' delays, and are read by the receiver of
// phy/lattice: a thousand rounds take less time than the samples of ten (phy/trial, by
// which this package is judged). It knows nothing of keys, of parameter sets, or of who
// asks.
package rounds

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"

	"golang.org/x/sync/errgroup"

	"ringwave/crypto/keystream"
	"ringwave/phy/bench"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
)

// Config says which rounds are simulated.
type Config struct {
	Bench Bench
	// Regime is how gains come to lie on a lattice: of scale Alpha if it is known,
	// exactly or with a Tolerance above 0 up to that relative error, and otherwise of one
	// up to MaxAlpha that the receiver finds.
	Regime                     bench.Regime
	Alpha, Tolerance, MaxAlpha float64
	// Group is how many devices share a slot. Groups is how many groups are simulated,
	// from the first on; 0 for all.
	Group, Groups int
	// Base is that of the digits, odd, 3 to 15. BlockSymbols bounds the length of a block.
	Base         int
	Modem        modem.Config
	BlockSymbols int
	Layout       Layout
	// Attempts is how often a round is tried, and Repeats how often a frame that fails is
	// sent again and averaged with what there is of it.
	Attempts, Repeats int
	// Least is how many of the devices simulated must not have H_i = 0 in the blind
	// regime.
	Least int
	// Whole simulates all blocks of a frame. Otherwise only the first are, and the others'
	// errors are drawn with the probability that the distances of these to the boundaries
	// between integers give. In the blind regime, what is drawn in place of the last six
	// of nine blocks fails up to five points too often.
	Whole bool
	// Patterns is the seed of the devices' patterns, Seed fixes all other draws.
	Patterns keystream.Seed
	Seed     uint64
}

// simulatedBlocks is how many blocks of a frame are simulated unless all are.
const simulatedBlocks = 3

func (c Config) validate() error {
	switch err := c.Bench.Validate(); {
	case err != nil:
		return err
	case c.Regime < bench.Emulated || c.Regime > bench.Blind:
		return fmt.Errorf("rounds in regime %d: allowed are 0 to %d", c.Regime, bench.Blind)
	case c.Regime != bench.Blind && !(c.Alpha > 0 && !math.IsInf(c.Alpha, 0)):
		return fmt.Errorf("rounds in the %v regime at the scale %v: it must be positive and finite", c.Regime, c.Alpha)
	case !(c.Tolerance >= 0 && c.Tolerance < 1):
		return fmt.Errorf("rounds at a scale known within %v: the tolerance must be from 0 to below 1", c.Tolerance)
	case c.Group < 1 || c.Groups < 0:
		return fmt.Errorf("%d groups of %d devices are simulated: a group has 1 at least, and their number must not be negative", c.Groups, c.Group)
	case c.Base < 3 || c.Base > 15 || c.Base%2 == 0:
		return fmt.Errorf("the digits' base is %d: it must be odd, from 3 to 15", c.Base)
	case c.Attempts < 1 || c.Repeats < 0:
		return fmt.Errorf("rounds of %d attempts with %d repeats: at least one attempt is needed, and no fewer repeats than 0", c.Attempts, c.Repeats)
	case c.Least < 0 || c.Least > len(c.Bench.Devices):
		return fmt.Errorf("%d devices must be heard, of %d", c.Least, len(c.Bench.Devices))
	}
	return c.Layout.validate()
}

// Attempt is what became of one attempt.
type Attempt struct {
	// Needed has for each transmission the most repeats that a group needed, Unread if
	// one was not read at all; and Sent those that each group needed, shorter if the
	// attempt ended there.
	Needed [slot.Transmissions]int
	Sent   [slot.Transmissions][]int
	// Alpha is the mean of the groups' scales; Misfit the largest |H_i/alpha - h_i|/|h_i|,
	// and ZeroGains the number of H_i = 0. They are 0 unless all was read.
	Alpha, Misfit float64
	ZeroGains     int
}

// Unread is more repeats than there are.
const Unread = math.MaxInt32

// Read reports whether the attempt was read with so many repeats.
func (a Attempt) Read(repeats int) bool {
	for _, n := range a.Needed {
		if n > repeats {
			return false
		}
	}
	return true
}

// Samples returns those sent in an attempt with so many repeats, up to the first
// transmission that failed.
func (a Attempt) Samples(l Layout, repeats int) int {
	sum := 0
	for t, groups := range a.Sent {
		for _, needed := range groups {
			sum += l.Samples[t] * (1 + min(needed, repeats))
		}
		if a.Needed[t] > repeats {
			break
		}
	}
	return sum
}

// Simulation simulates rounds. It is for one goroutine.
type Simulation struct {
	cfg     Config
	source  *rand.PCG
	rnd     *rand.Rand
	groups  []*group
	noise   float64 // deviation of a soft symbol, in units of the digit 1 at gain 1
	samples int     // W, samples that a symbol is the mean of
	flat    bool
	probe   *probe
	least   float64 // share of a preamble's power that must be preamble
	half    int

	shift, stretch []float64 // of the round: the errors of what is known
	drawn          []float64
	turned         []float64 // phases of the round
	late           []modem.Samples
	unit           float64 // amplitude of the digit 1 at full drive, of an ideal converter
	compensated    bool
}

// New makes a simulation.
func New(cfg Config) (*Simulation, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Modem.Preamble.Level = float32(cfg.Base-1) / 2
	scale, err := bench.SymbolScale(cfg.Modem, cfg.Base, cfg.Bench.Amplitude())
	if err != nil {
		return nil, err
	}
	unit, err := bench.SymbolScale(cfg.Modem, cfg.Base, 1)
	if err != nil {
		return nil, err
	}
	probe, err := newProbe(cfg.Modem)
	if err != nil {
		return nil, err
	}
	_, flat := cfg.Modem.Pulse.(modem.FlatTop)
	n := len(cfg.Bench.Devices)
	bandwidth := modem.NoiseBandwidth(cfg.Modem.Pulse, cfg.Modem.SamplesPerSymbol)
	level := cfg.Bench.Links().Level(cfg.Regime)
	s := &Simulation{
		cfg: cfg, source: rand.NewPCG(0, 0), flat: flat, unit: unit,
		samples: int(math.Round(1 / bandwidth)), probe: probe, least: probe.detector.Threshold(), half: (cfg.Base - 1) / 2,
		shift: make([]float64, n), stretch: make([]float64, n), drawn: make([]float64, n), turned: make([]float64, n), late: make([]modem.Samples, n),
		compensated: cfg.Bench.Compensated || !flat,
		noise:       math.Sqrt(float64(cfg.Bench.Noise)/2*bandwidth) / (scale * level),
	}
	s.rnd = rand.New(s.source)
	for first := 0; first < n && (cfg.Groups == 0 || len(s.groups) < cfg.Groups); first += cfg.Group {
		g, err := s.newGroup(first, min(cfg.Group, n-first), scale, level)
		if err != nil {
			return nil, err
		}
		s.groups = append(s.groups, g)
	}
	return s, nil
}

// Simulate simulates so many rounds on all cores. What becomes of each depends on its
// number alone.
func Simulate(ctx context.Context, cfg Config, rounds int) ([][]Attempt, error) {
	out := make([][]Attempt, rounds)
	workers := min(runtime.GOMAXPROCS(0), rounds)
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			s, err := New(cfg)
			if err != nil {
				return err
			}
			for k := w; k < rounds; k += workers {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				out[k] = s.Round(k)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// simulated returns the blocks that are simulated of a frame.
func (s *Simulation) simulated(blocks []int) []int {
	if s.cfg.Whole {
		return blocks
	}
	return blocks[:min(len(blocks), simulatedBlocks)]
}

// Round simulates the attempts of a round, until one was read without a repeat.
func (s *Simulation) Round(number int) []Attempt {
	s.source.Seed(s.cfg.Seed, uint64(number))
	for i, d := range s.cfg.Bench.Devices {
		mu := d.Gain.Mean()
		s.shift[i] = d.MeanStd * s.rnd.NormFloat64()
		s.stretch[i] = 1
		if std := math.Sqrt(max(0, d.Gain.SecondMoment()-mu*mu)); std > 0 {
			s.stretch[i] = max(0, 1+d.StdStd/std*s.rnd.NormFloat64())
		}
		s.late[i] = max(0, d.Delay+d.DelayStd*modem.Samples(s.rnd.NormFloat64()))
		off := float64(d.PhaseStd) * s.rnd.NormFloat64()
		switch {
		case s.cfg.Regime == bench.Emulated, s.cfg.Regime == bench.MeanAligned || s.cfg.Bench.Phases == PhasesTrimmed:
			s.turned[i] = off
		case s.cfg.Bench.Phases == PhasesUnknown:
			s.turned[i] = 2 * math.Pi * s.rnd.Float64()
		default:
			s.turned[i] = float64(d.Phase) + off
		}
	}
	var out []Attempt
	for number := range s.cfg.Attempts {
		if number == 0 || s.cfg.Bench.FreshOnRetry {
			s.draw()
		}
		out = append(out, s.attempt(number))
		if last := out[number]; last.Needed == [slot.Transmissions]int{} {
			break
		}
	}
	return out
}

// draw draws the gains of a round.
func (s *Simulation) draw() {
	for i, d := range s.cfg.Bench.Devices {
		mu := d.Gain.Mean()
		h := mu + s.shift[i] + (d.Gain.Draw(s.rnd)-mu)*s.stretch[i]
		switch s.cfg.Regime {
		case bench.Emulated:
			h = math.RoundToEven(h*s.cfg.Alpha) / s.cfg.Alpha
		case bench.MeanAligned:
			h /= mu
		}
		s.drawn[i] = h
	}
}

// attempt simulates one attempt: the first transmission that some group does not
// read is its last.
func (s *Simulation) attempt(number int) Attempt {
	var a Attempt
	for _, g := range s.groups {
		g.begin(number)
	}
	for t := range slot.Transmissions {
		for _, g := range s.groups {
			sent := g.frame(t)
			a.Sent[t] = append(a.Sent[t], sent)
			a.Needed[t] = max(a.Needed[t], sent)
			if g.void {
				a.Needed[t] = Unread
			}
		}
		if a.Needed[t] == Unread {
			a.unreadFrom(t)
			return a
		}
		if t == 0 && !s.admits() {
			a.unreadFrom(1)
			return a
		}
	}
	for _, g := range s.groups {
		a.Alpha += g.alpha / float64(len(s.groups))
		a.Misfit = max(a.Misfit, g.misfit())
	}
	a.ZeroGains = s.zeroGains()
	return a
}

// unreadFrom says that nothing was read from a transmission on.
func (a *Attempt) unreadFrom(t int) {
	for ; t < slot.Transmissions; t++ {
		a.Needed[t] = Unread
	}
}

// admits reports whether enough devices have H_i other than 0, where the receiver finds
// the scale.
func (s *Simulation) admits() bool {
	if s.cfg.Regime != bench.Blind {
		return true
	}
	devices := 0
	for _, g := range s.groups {
		devices += g.size
	}
	return devices-s.zeroGains() >= s.cfg.Least
}

// zeroGains returns the number of H_i = 0.
func (s *Simulation) zeroGains() int {
	zeros := 0
	for _, g := range s.groups {
		for _, h := range g.integer {
			if h == 0 {
				zeros++
			}
		}
	}
	return zeros
}

// fullScale returns the amplitude at which the receiver clips: as set, or what suits the
// gains.
func (s *Simulation) fullScale() float64 {
	if s.cfg.Bench.ReceiverFullScale > 0 {
		return s.cfg.Bench.ReceiverFullScale
	}
	return s.cfg.Bench.Links().FullScale(s.cfg.Regime, s.cfg.Group, math.Sqrt(float64(s.cfg.Bench.Noise)/2))
}
