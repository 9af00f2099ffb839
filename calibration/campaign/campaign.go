// Package campaign makes a calibration of a bench: soundings over it, what they say of
// its links, and what the bench can carry.
//
// It takes in a bench as running streams (sounder.Config), with what is known of it from
// elsewhere (its converters, the law of simulated gains, which boards it has), and gives
// blocks of soundings, and of them a Result: the calibration file, the raw gains, their
// spectra, the statistics with the assumptions that the bench violates, and the advice;
// as texts for people and as values for JSON. It knows nothing of the experiment's
// configuration, of folders, of plots or of the command line, nor who opened the bench.
package campaign

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"ringwave/calibration"
	"ringwave/calibration/advice"
	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/radio"
	"ringwave/radio/intake"
)

// Config describes a campaign: what is sounded, and what is known of the bench before.
type Config struct {
	// Soundings are those that were played. Of its streams the analysis uses none.
	Soundings  sounder.Config
	SampleRate radio.Hertz
	// RoundSeconds is how long a round of the protocol lasts, over which the looks of a
	// block are spread; 0 where it is not known.
	RoundSeconds float64
	// Law is that of the gains where it is known, as of a simulated channel. What
	// soundings say of it can seldom tell a Rician envelope from a Gaussian gain.
	Law moments.Model
	// OnLattice says that gains are emulated ones, rounded to multiples of
	// 2^-LatticeBits.
	OnLattice   bool
	LatticeBits int
	// Converters are those that soundings passed.
	Converters Converters
	// Valid is how long what was measured is taken for true.
	Valid time.Duration
	// Program is the name and version of what makes the calibration.
	Program string
}

// Result is what came of a campaign.
type Result struct {
	File   calibration.File
	Series moments.Bench // what was measured, burst by burst
	Links  moments.Result
	// Advice is what the bench can carry; nil before Advise.
	Advice *advice.Advice

	cfg Config
}

// Sound plays the soundings of cfg that are left, writes each block to table, a
// sounder's, and hands it to each. Blocks come in order, and one that each has got is in
// the table.
func Sound(ctx context.Context, cfg sounder.Config, table io.Writer, each func(sounder.Block)) error {
	s, err := sounder.New(cfg)
	if err != nil {
		return intake.UserError(err)
	}
	return s.Run(ctx, func(b sounder.Block) error {
		if err := sounder.WriteBlock(table, b, cfg.Devices); err != nil {
			return err
		}
		each(b)
		return nil
	})
}

// Analyse makes statistics and the calibration file of all blocks. bench is the one that
// they were played over, as of bench.Now, when the calibration counts as made.
func Analyse(cfg Config, blocks []sounder.Block, bench calibration.Want) (Result, error) {
	if err := cfg.validate(blocks, bench); err != nil {
		return Result{}, err
	}
	echoes, err := cfg.echoes(blocks)
	if err != nil {
		return Result{}, err
	}
	if blocks, err = FirstPaths(&cfg.Soundings, blocks, echoes); err != nil {
		return Result{}, err
	}
	carriers := cfg.carriers(blocks)
	r := Result{cfg: cfg, Series: cfg.series(Stilled(&cfg.Soundings, float64(cfg.SampleRate), blocks, carriers))}
	distortion := cfg.allowRounding(r.Series)
	r.Links, err = moments.Analyse(r.Series, moments.Options{
		RoundSeconds: cfg.RoundSeconds, OffsetHz: cfg.offsetTolerance(), Model: cfg.Law,
		DistortionTolerance: distortion, GainStep: cfg.gainStep(),
	})
	if err != nil {
		return r, intake.UserError(fmt.Errorf("what the soundings say: %w", err))
	}
	r.File = cfg.file(blocks, r.Links, bench, carriers)
	for i, some := range echoes {
		describeEchoes(&r.File.Devices[i], some)
	}
	return r, nil
}

// validate refuses what does not fit together.
func (c *Config) validate(blocks []sounder.Block, bench calibration.Want) error {
	s := &c.Soundings
	switch {
	case s.Sounding == nil || s.Devices < 1 || s.Looks < 1:
		return fmt.Errorf("a campaign of %d devices and %d looks: it needs a sounding and at least one of each", s.Devices, s.Looks)
	case !(c.SampleRate > 0) || math.IsInf(float64(c.SampleRate), 0):
		return fmt.Errorf("the sample rate is %v: it must be positive", c.SampleRate)
	case len(bench.Transmitters) != s.Devices:
		return fmt.Errorf("%d transmitters for %d devices: there must be one a device", len(bench.Transmitters), s.Devices)
	}
	if err := c.Converters.validate(s.Devices); err != nil {
		return err
	}
	for _, b := range blocks {
		if len(b.Records) != s.Devices*s.Looks {
			return fmt.Errorf("block %d has %d records: it must have %d of each of %d devices", b.Number, len(b.Records), s.Looks, s.Devices)
		}
	}
	return nil
}

// gainStep returns the step of emulated gains, 0 for others.
func (c *Config) gainStep() float64 {
	if !c.OnLattice {
		return 0
	}
	return math.Ldexp(1, -c.LatticeBits)
}

// offsetTolerance returns how far a carrier may be off, in hertz: so far that it turns
// the phase by 0.1 rad in the round's time, or in a millisecond where that is not known.
func (c *Config) offsetTolerance() float64 {
	round := c.RoundSeconds
	if round == 0 {
		round = 1e-3
	}
	return 0.1 / (2 * math.Pi * round)
}

// Gains returns the raw gains of device i, from 0, for NumPy: complex128, in order of
// blocks and looks.
func (r *Result) Gains(i int) ([]byte, error) {
	return calibration.EncodeGains(r.Series.Devices[i].Gain)
}
