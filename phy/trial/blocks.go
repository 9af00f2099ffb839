package trial

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
	"ringwave/phy"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/digit"
	"ringwave/phy/frame"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// prime is the modulus of trials of Blocks, of 27 bits: that of the smallest parameter
// set. A larger one would only make the check of a block longer.
const prime = 0x7fff801

// MaxDevices bounds Blocks.Devices: patterns of 64 symbols tell so many apart with
// room to spare.
const MaxDevices = 32

// Blocks describes trials of single blocks of equal devices in the blind regime, over an
// ideal bench with delays and phases.
type Blocks struct {
	// Devices is N, from 1 to MaxDevices, and Gain the distribution of each one's
	// real gain h_i, drawn once a trial.
	Devices int
	Gain    channel.Fading
	// SNRdB is that of a device of gain 1 and a soft real symbol: E[d^2]/Var[noise].
	SNRdB float64
	// Base is B of the balanced digits. BlockSymbols is the length of a block,
	// check included, to within a coefficient's digits.
	Base         int
	BlockSymbols int
	Modem        modem.Config
	// MaxAlpha bounds the lattice scale that the receiver looks for; 0: no bound.
	MaxAlpha float64
	// The devices' delays are uniform in [0, DelaySpread], their phases in
	// [-PhaseSpread/2, PhaseSpread/2], drawn for each trial.
	DelaySpread modem.Samples
	PhaseSpread modem.Radians
	// Compensated has each device send earlier by its delay, as after a
	// calibration. Delays are then drawn once for all trials of the seed.
	Compensated bool
	// Attempts is how often a trial is tried, every device's signal multiplied by a
	// fresh gain in [0.7, 1] from the second time on.
	Attempts int
	// WholeRounds makes an attempt of the four transmissions of a round, a block
	// each, read at the scale of the first and with its pattern. Otherwise an
	// attempt is one block.
	WholeRounds bool
	// Seed fixes all draws.
	Seed keystream.Seed
}

func (b Blocks) validate() error {
	switch {
	case b.Devices < 1 || b.Devices > MaxDevices:
		return fmt.Errorf("trials with %d devices: allowed are 1 to %d", b.Devices, MaxDevices)
	case b.Gain == nil:
		return errors.New("trials without a distribution of gains")
	case math.IsNaN(b.SNRdB) || math.IsInf(b.SNRdB, 0):
		return fmt.Errorf("trials at an SNR of %v dB: it must be finite", b.SNRdB)
	case !(b.DelaySpread >= 0 && b.DelaySpread <= channel.MaxDelaySamples):
		return fmt.Errorf("trials with delays up to %v samples: allowed are 0 to %d", b.DelaySpread, channel.MaxDelaySamples)
	case !(b.PhaseSpread >= 0 && b.PhaseSpread <= 2*math.Pi):
		return fmt.Errorf("trials with phases over %v radians: allowed are 0 to 2 pi", b.PhaseSpread)
	}
	return nil
}

// Config returns the trials, and refuses what the link cannot be.
func (b Blocks) Config() (Config, error) {
	if err := b.validate(); err != nil {
		return Config{}, err
	}
	mod, err := zq.NewModulus([]uint64{prime})
	if err != nil {
		return Config{}, err
	}
	codec, err := digit.New(mod, b.Base)
	if err != nil {
		return Config{}, err
	}
	n, err := coefficients(mod, codec, b.BlockSymbols)
	if err != nil {
		return Config{}, err
	}
	if n*codec.Digits() < 16*b.Devices {
		return Config{}, fmt.Errorf("blocks of %d symbols for %d devices: whose gain is what is told from 16 symbols a device on", b.BlockSymbols, b.Devices)
	}
	scale, err := bench.SymbolScale(b.Modem, b.Base, 1)
	if err != nil {
		return Config{}, err
	}
	c := Config{
		Attempts: b.Attempts, Seed: b.Seed,
		Setup: func(number uint32) (bench.Config, phy.WaveformConfig, error) { return b.setup(number, mod, scale) },
	}
	c.Lengths[0] = n
	if b.WholeRounds {
		c.Lengths = [slot.Transmissions]int{n, n, n, n}
	}
	if err := c.validate(); err != nil {
		return Config{}, err
	}
	r, err := newRound(c, 0)
	if err != nil {
		return Config{}, err
	}
	return c, r.air.Close()
}

// coefficients returns how many coefficients make a block of so many symbols, check
// included.
func coefficients(mod *zq.Modulus, codec *digit.Codec, symbols int) (int, error) {
	least, err := frame.NewPayload(mod, codec, 1, 1, 0)
	if err != nil {
		return 0, err
	}
	checks := least.Symbols()/codec.Digits() - 1
	n := symbols/codec.Digits() - checks
	if n < 1 {
		return 0, fmt.Errorf("blocks of %d symbols: a coefficient and its check take %d", symbols, least.Symbols())
	}
	return n, nil
}

// setup makes bench and link of a trial.
func (b Blocks) setup(number uint32, mod *zq.Modulus, scale float64) (bench.Config, phy.WaveformConfig, error) {
	gains := channel.Config{Continuous: true}
	for range b.Devices {
		gains.Devices = append(gains.Devices, b.Gain)
	}
	ch, err := channel.New(gains, b.Seed.Derive("gains"))
	if err != nil {
		return bench.Config{}, phy.WaveformConfig{}, err
	}
	delays, phases := b.place(number)
	air := bench.Config{Rate: 1e6, Channel: ch, Seed: b.Seed, NoiseStd: bench.NoiseStd(b.Modem, b.Base, b.SNRdB, scale)}
	link := phy.WaveformConfig{
		Modulus: mod, Devices: b.Devices, Base: b.Base, BlockSymbols: b.BlockSymbols, Modem: b.Modem,
		Lattice: lattice.Options{MaxAlpha: b.MaxAlpha, Symbols: b.BlockSymbols},
		Secret:  b.Seed.Derive("public link"),
	}
	if b.Compensated {
		delays, _ = b.place(0)
		link.Advance = delays
	}
	for i := range delays {
		air.Devices = append(air.Devices, channel.Impairments{DelaySamples: float64(delays[i]), PhaseRad: phases[i]})
	}
	return air, link, nil
}

// place draws delays and phases of a trial.
func (b Blocks) place(number uint32) (delays []modem.Samples, phases []float64) {
	places := b.Seed.Derive("places").Stream()
	places.Start(number, 0)
	draws := rand.New(places)
	for range b.Devices {
		delays = append(delays, b.DelaySpread*modem.Samples(draws.Float64()))
		phases = append(phases, float64(b.PhaseSpread)*(draws.Float64()-0.5))
	}
	return delays, phases
}
