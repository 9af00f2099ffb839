// Package trial sends random blocks through the whole modem, again and again, and
// tells what became of each.
//
// It takes in the distribution of the devices' gains, their number, the SNR, the
// modem and the ranges of delays and phases, and gives for each trial the attempt
// at which it was read, whether what was read is the truth, and how well the
// integer gains weigh the devices. Digits become a frame, the frame pulses, the
// pulses meet delays, phases, gains and noise, and a receiver that knows none of
// these reads them (phy.Waveform over phy/bench). The package knows nothing
// of keys, of learning, or of what curves are drawn from its trials.
package trial

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"

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
	"ringwave/radio"
)

// prime is the modulus of all trials, of 27 bits: that of the smallest parameter
// set. A larger one would only make the check of a block longer.
const prime = 0x7fff801

// MaxDevices bounds Config.Devices: patterns of 64 symbols tell so many apart with
// room to spare.
const MaxDevices = 32

// Config describes trials.
type Config struct {
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
	// Minimum is how many devices must not have H_i = 0 for an attempt to count as read;
	// 0 asks for none, as a receiver does by itself.
	Minimum int
	// Aligned has each device turn its phase back and divide by the mean of Gain: the
	// receiver looks for scales near 1, within Tolerance relatively, and MaxAlpha and
	// retry gains have no say.
	Aligned   bool
	Tolerance float64
	// Seed fixes all draws.
	Seed keystream.Seed
}

func (c Config) validate() error {
	switch {
	case c.Devices < 1 || c.Devices > MaxDevices:
		return fmt.Errorf("trials with %d devices: allowed are 1 to %d", c.Devices, MaxDevices)
	case c.Gain == nil:
		return errors.New("trials without a distribution of gains")
	case math.IsNaN(c.SNRdB) || math.IsInf(c.SNRdB, 0):
		return fmt.Errorf("trials at an SNR of %v dB: it must be finite", c.SNRdB)
	case !(c.DelaySpread >= 0 && c.DelaySpread <= channel.MaxDelaySamples):
		return fmt.Errorf("trials with delays up to %v samples: allowed are 0 to %d", c.DelaySpread, channel.MaxDelaySamples)
	case !(c.PhaseSpread >= 0 && c.PhaseSpread <= 2*math.Pi):
		return fmt.Errorf("trials with phases over %v radians: allowed are 0 to 2 pi", c.PhaseSpread)
	case c.Aligned && !(c.Tolerance > 0 && c.Tolerance < 1):
		return fmt.Errorf("trials of aligned devices at a scale known within %v: the tolerance must be between 0 and 1", c.Tolerance)
	case c.Aligned && c.Gain.Mean() == 0:
		return errors.New("trials of aligned devices of mean gain 0: there is nothing to align")
	case c.Minimum < 0 || c.Minimum > c.Devices:
		return fmt.Errorf("trials that %d devices must be heard in: allowed are 0 to %d", c.Minimum, c.Devices)
	case c.Attempts < 1:
		return fmt.Errorf("trials of %d attempts: at least 1 is needed", c.Attempts)
	}
	return nil
}

// Outcome is what became of one trial.
type Outcome struct {
	// Attempt is the attempt, counted from 1, at which the trial was read; 0 if
	// none was.
	Attempt int
	// Alpha is the scale at which it was read, Misfit the largest
	// |H_i/alpha - h_i|/|h_i| with h_i as the receiver met it, and ZeroGains the
	// number of H_i = 0. They are 0 if it was not read.
	Alpha, Misfit float64
	ZeroGains     int
	// Wrong says what was accepted and is not the truth: a transmission that is no
	// sum_i H_i x_i with H_i = round(alpha h_i), not all 0. Empty, as it must be,
	// if there was none.
	Wrong string
	// Misread tells that a transmission was accepted, and rightly, whose pattern was
	// not read as what those H_i give: no check covers the pattern of a single
	// block. A whole round with such a pattern is void.
	Misread bool
}

// Bench carries out trials, each by its number alone: the same whatever came
// before. It is for one goroutine.
type Bench struct {
	cfg    Config
	wave   *phy.Waveform
	air    *bench.Bench
	placed bool // delays were drawn
	delays []modem.Samples
	mod    *zq.Modulus
	truth  *truth

	places     *keystream.Stream
	placeDraws *rand.Rand
	data       *keystream.Stream
	dataDraws  *rand.Rand

	phases  []float64
	x       []zq.Vector
	rx      phy.Reception
	pattern []int64   // of the attempt's first transmission
	solved  []float64 // H_i by the received pattern
}

// New makes a bench.
func New(cfg Config) (*Bench, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	mod, err := zq.NewModulus([]uint64{prime})
	if err != nil {
		return nil, err
	}
	codec, err := digit.New(mod, cfg.Base)
	if err != nil {
		return nil, err
	}
	n, err := coefficients(mod, codec, cfg.BlockSymbols)
	if err != nil {
		return nil, err
	}
	if n*codec.Digits() < 16*cfg.Devices {
		return nil, fmt.Errorf("blocks of %d symbols for %d devices: whose gain is what is told from 16 symbols a device on", cfg.BlockSymbols, cfg.Devices)
	}
	b := &Bench{
		cfg: cfg, mod: mod, truth: newTruth(codec, cfg.Devices, n),
		phases: make([]float64, cfg.Devices), solved: make([]float64, cfg.Devices), delays: make([]modem.Samples, cfg.Devices),
		places: cfg.Seed.Derive("places").Stream(), data: cfg.Seed.Derive("payloads").Stream(),
	}
	b.placeDraws, b.dataDraws = rand.New(b.places), rand.New(b.data)
	for range cfg.Devices {
		b.x = append(b.x, mod.NewVector(n))
	}
	if err := b.build(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	b.rx = phy.Reception{Y: mod.NewVector(n), Pattern: make([]int64, b.wave.PatternSymbols())}
	return b, nil
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

func (b *Bench) build() error {
	gains, err := b.newGains()
	if err != nil {
		return err
	}
	scale, err := bench.SymbolScale(b.cfg.Modem, b.cfg.Base, 1)
	if err != nil {
		return err
	}
	b.air, err = bench.New(bench.Config{
		Rate: 1e6, Devices: make([]channel.Impairments, b.cfg.Devices), Channel: gains, Seed: b.cfg.Seed,
		NoiseStd: bench.NoiseStd(b.cfg.Modem, b.cfg.Base, b.cfg.SNRdB, scale),
	})
	if err != nil {
		return err
	}
	if err := b.place(0); err != nil {
		return err
	}
	return b.newWaveform()
}

func (b *Bench) newGains() (*channel.Channel, error) {
	cfg := channel.Config{Continuous: true}
	for range b.cfg.Devices {
		cfg.Devices = append(cfg.Devices, b.cfg.Gain)
	}
	return channel.New(cfg, b.cfg.Seed.Derive("gains"))
}

func (b *Bench) newWaveform() (err error) {
	cfg := phy.WaveformConfig{
		Modulus: b.mod, Devices: b.cfg.Devices, Base: b.cfg.Base, BlockSymbols: b.cfg.BlockSymbols, Modem: b.cfg.Modem,
		Lattice: lattice.Options{MaxAlpha: b.cfg.MaxAlpha, Symbols: b.cfg.BlockSymbols},
		Secret:  b.cfg.Seed.Derive("public link"), OnTransmission: b.begin, OnFrame: b.truth.hear,
	}
	if b.cfg.Compensated {
		cfg.Advance = b.delays
	}
	if b.cfg.Aligned {
		cfg.Alpha, cfg.Tolerance = 1, b.cfg.Tolerance
	}
	if cfg.Transmitters, cfg.Receiver, err = b.air.Streams(); err != nil {
		return err
	}
	b.wave, err = phy.NewWaveform(cfg)
	return err
}

// Close lets go of the streams.
func (b *Bench) Close() error {
	if b.air == nil {
		return nil
	}
	return b.air.Close()
}

// place draws delays and phases of a trial.
func (b *Bench) place(trial uint32) error {
	b.places.Start(trial, 0)
	for i := range b.delays {
		delay := b.cfg.DelaySpread * modem.Samples(b.placeDraws.Float64())
		b.phases[i] = float64(b.cfg.PhaseSpread) * (b.placeDraws.Float64() - 0.5)
		if b.cfg.Compensated && b.placed {
			delay = b.delays[i]
		}
		b.delays[i] = delay
		if err := b.air.Move(i, float64(delay)); err != nil {
			return err
		}
	}
	b.placed = true
	return nil
}

// begin readies the channel for a transmission from sample at on. Its noise is
// drawn by name, so that it does not depend on earlier transmissions.
func (b *Bench) begin(_ context.Context, s slot.Slot, at radio.SampleIndex) error {
	b.air.Draw(s.Round, s.Attempt, int(s.Transmission))
	for i, h := range b.air.H {
		if b.cfg.Aligned { // as if the devices' trims were the channel's
			h, b.phases[i] = h/b.cfg.Gain.Mean(), 0
		}
		if err := b.air.Medium.SetGain(i, at, complex64(cmplx.Rect(1, b.phases[i])*complex(h, 0))); err != nil {
			return err
		}
	}
	return nil
}

// Trial carries out the trial of a number. An error is one of the bench and not
// of the trial, which may well fail.
func (b *Bench) Trial(ctx context.Context, number uint32) (Outcome, error) {
	var out Outcome
	if err := b.place(number); err != nil {
		return out, err
	}
	for attempt := range uint32(b.cfg.Attempts) {
		read, err := b.attempt(ctx, number, attempt, &out)
		if err != nil {
			return out, fmt.Errorf("trial %d, attempt %d: %w", number, attempt+1, err)
		}
		if read {
			out.Attempt = int(attempt) + 1
			return out, nil
		}
	}
	out.Alpha, out.Misfit, out.ZeroGains = 0, 0, 0
	return out, nil
}

// attempt reports whether all transmissions of an attempt were read, as the judge of
// a round has it (crypto/round): each check passed, one pattern, not all 0.
func (b *Bench) attempt(ctx context.Context, number, attempt uint32, out *Outcome) (bool, error) {
	transmissions := 1
	if b.cfg.WholeRounds {
		transmissions = slot.Transmissions
	}
	for t := range slot.Transmission(transmissions) {
		if err := b.send(ctx, slot.Slot{Round: number, Attempt: attempt, Transmission: t}); err != nil {
			return false, err
		}
		if !b.rx.CheckPassed {
			return false, nil
		}
		solved := b.solved
		if !b.wave.Gains(solved) {
			solved = nil
		}
		verdict, err := b.truth.judge(b.mod, solved, b.x, b.rx.Y)
		if err != nil {
			return false, err
		}
		out.Misread = out.Misread || verdict.misread
		if verdict.wrong != "" && out.Wrong == "" {
			out.Wrong = fmt.Sprintf("trial %d, attempt %d, %v: %s", number, attempt+1, t, verdict.wrong)
		}
		if t == slot.TxKey {
			b.pattern = append(b.pattern[:0], b.rx.Pattern...)
			out.Alpha, out.Misfit, out.ZeroGains = verdict.alpha, verdict.misfit, verdict.zeros
			if b.cfg.Devices-out.ZeroGains < b.cfg.Minimum {
				return false, nil
			}
		}
		if !slices.Equal(b.pattern, b.rx.Pattern) {
			return false, nil // the gains were read as others: the attempt is void
		}
	}
	return slices.ContainsFunc(b.pattern, func(p int64) bool { return p != 0 }), nil
}

// send carries fresh random payloads.
func (b *Bench) send(ctx context.Context, s slot.Slot) error {
	b.data.Start(s.Round, s.Attempt*slot.Transmissions+uint32(s.Transmission))
	if err := b.wave.Open(ctx, s, b.x[0].Len()); err != nil {
		return err
	}
	for i, x := range b.x {
		for j, p := range b.mod.Primes() {
			for k := range x[j] {
				x[j][k] = b.dataDraws.Uint64N(p)
			}
		}
		if err := b.wave.Transmit(i, x); err != nil {
			return err
		}
	}
	return b.wave.Receive(ctx, &b.rx)
}
