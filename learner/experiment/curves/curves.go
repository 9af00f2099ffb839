package curves

import (
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/learner/experiment/runfolder"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/phy/trial"
)

// physicsTable has the lower bounds of phy/README.md, section 3: shares of blocks of 8192 trits
// without an error, gains N(1, sigma^2).
var physicsTable = []tableEntry{
	{2, 0.05, 30, 1}, {2, 0.3, 30, 0.95}, {2, 0.3, 40, 1}, {2, 1, 40, 1}, {2, 1, 50, 1},
	{3, 0.05, 30, 1}, {3, 0.3, 30, 0.69}, {3, 0.3, 40, 0.95}, {3, 1, 40, 0.97}, {3, 1, 50, 1},
	{4, 0.05, 30, 1}, {4, 0.3, 30, 0.30}, {4, 0.3, 40, 0.61}, {4, 1, 40, 0.71}, {4, 1, 50, 0.97},
}

type tableEntry struct {
	devices           int
	sigma, snr, share float64
}

// Settings are what a folder of curves is measured with, and begun with. Lists rise; each
// of their values meets each of the others'.
type Settings struct {
	Devices     []int     `json:"devices"`
	Sigma       []float64 `json:"sigma"`
	SNRdB       []float64 `json:"snr_db"`
	Blocks      int       `json:"blocks"`
	Attempts    int       `json:"attempts"`
	WholeRounds bool      `json:"whole_rounds"`
	Seed        int64     `json:"seed"`

	// The rest is the configuration of the link, of which those of the pulse are only
	// kept: what counts is Options.Modem.
	Base               int     `json:"base"`
	BlockSymbols       int     `json:"block_symbols"`
	Pulse              string  `json:"pulse"`
	SamplesPerSymbol   int     `json:"samples_per_symbol"`
	EdgeSamples        float64 `json:"edge_samples"`
	ToleranceSamples   float64 `json:"tolerance_samples"`
	RollOff            float64 `json:"roll_off"`
	SpanSymbols        int     `json:"span_symbols"`
	PreambleSymbols    int     `json:"preamble_symbols"`
	MaxAlpha           float64 `json:"max_alpha"`
	DelaySpreadSamples float64 `json:"delay_spread_samples"`
	PhaseSpreadRad     float64 `json:"phase_spread_rad"`
}

// The most that Settings may ask for: values of a list, points of all curves, blocks of a
// point and attempts at a block.
const (
	MaxList     = 1000
	MaxPoints   = 1 << 16
	MaxBlocks   = 1_000_000
	MaxAttempts = 1000
)

// Options are what curves are begun with.
type Options struct {
	Settings
	// Modem is what blocks go through.
	Modem modem.Config
	// Config and Manifest are written beside the results, as config.toml and
	// manifest.json, and say what the settings come from.
	Config   []byte
	Manifest runfolder.Manifest
}

// check refuses what would take for ever, or has no points.
func (s Settings) check() error {
	for _, number := range []struct {
		of       string
		is, most int
	}{
		{"devices", len(s.Devices), MaxList}, {"sigma", len(s.Sigma), MaxList}, {"snr_db", len(s.SNRdB), MaxList},
		{"points", len(s.Devices) * len(s.Sigma) * len(s.SNRdB), MaxPoints}, {"blocks", s.Blocks, MaxBlocks}, {"attempts", s.Attempts, MaxAttempts},
	} {
		if number.is < 1 || number.is > number.most {
			return fmt.Errorf("the number of %s is %d: allowed are 1 to %d", number.of, number.is, number.most)
		}
	}
	return nil
}

// Point is what was measured at one N, sigma and SNR. Shares are from 0 to 1,
// with the ends of their 95 % intervals.
type Point struct {
	Devices     int             `json:"devices"`
	Sigma       float64         `json:"sigma"`
	SNRdB       float64         `json:"snr_db"`
	Blocks      int             `json:"blocks"`
	ReadFirst   int             `json:"read_first"`
	First       float64         `json:"first_share"`
	FirstLow    float64         `json:"first_low"`
	FirstHigh   float64         `json:"first_high"`
	ReadWithin  int             `json:"read_within"`
	Within      float64         `json:"within_share"`
	WithinLow   float64         `json:"within_low"`
	WithinHigh  float64         `json:"within_high"`
	Wrong       int             `json:"wrong"`
	FirstWrong  string          `json:"first_wrong,omitempty"`
	Misread     int             `json:"patterns_misread"`
	Misfit      runfolder.Float `json:"median_misfit"`
	ZeroGains   runfolder.Float `json:"mean_zero_gains"`
	ReadAt      []int           `json:"read_at_attempt"`
	PhysicsRead *float64        `json:"prototype_share,omitempty"`
}

// Result is what curves.json holds.
type Result struct {
	Settings Settings `json:"settings"`
	Complete bool     `json:"complete"`
	Points   []Point  `json:"points"`
}

// Grid returns the points to be measured, in their order.
func (s Settings) Grid() []Point {
	var grid []Point
	for _, n := range s.Devices {
		for _, sigma := range s.Sigma {
			for _, snr := range s.SNRdB {
				grid = append(grid, Point{Devices: n, Sigma: sigma, SNRdB: snr, PhysicsRead: s.physics(n, sigma, snr)})
			}
		}
	}
	return grid
}

// physics returns the table's share at a point, where it is of the same measure: a
// block of 8192 trits.
func (s Settings) physics(n int, sigma, snr float64) *float64 {
	if s.Base != 3 || s.BlockSymbols != 8192 || s.WholeRounds {
		return nil
	}
	for _, e := range physicsTable {
		if e.devices == n && e.sigma == sigma && e.snr == snr {
			return &e.share
		}
	}
	return nil
}

// trials returns the trials of a point. Their seed has the point's coordinates in it:
// its result does not depend on which others are measured. Flat tops bear delays; other
// pulses have them compensated, as after a calibration.
func (o Options) trials(p Point) trial.Blocks {
	_, flat := o.Modem.Pulse.(modem.FlatTop)
	return trial.Blocks{
		Devices: p.Devices, Gain: channel.Gaussian{Mu: 1, Sigma: p.Sigma}, SNRdB: p.SNRdB,
		Base: o.Base, BlockSymbols: o.BlockSymbols, Modem: o.Modem, MaxAlpha: o.MaxAlpha,
		DelaySpread: modem.Samples(o.DelaySpreadSamples), PhaseSpread: modem.Radians(o.PhaseSpreadRad),
		Compensated: !flat, Attempts: o.Attempts, WholeRounds: o.WholeRounds,
		Seed: keystream.FromInteger(uint64(o.Seed)).Derive("curves", uint64(p.Devices), math.Float64bits(p.Sigma), math.Float64bits(p.SNRdB)),
	}
}

// fill writes what was counted.
func (p *Point) fill(t *trial.Tally, attempts int) {
	p.Blocks, p.ReadFirst, p.ReadWithin = t.Trials, t.Within(1), t.Within(attempts)
	p.First, p.Within = float64(p.ReadFirst)/float64(p.Blocks), float64(p.ReadWithin)/float64(p.Blocks)
	p.FirstLow, p.FirstHigh = trial.Wilson(p.ReadFirst, p.Blocks)
	p.WithinLow, p.WithinHigh = trial.Wilson(p.ReadWithin, p.Blocks)
	p.Wrong, p.FirstWrong, p.Misread = t.Wrong, t.FirstWrong, t.Misread
	p.Misfit, p.ZeroGains = runfolder.Float(t.Misfit()), runfolder.Float(t.ZeroGains())
	p.ReadAt = make([]int, attempts)
	copy(p.ReadAt, t.ReadAt)
}

// Wrong returns the error of a receiver that accepted what is not true, nil if it never
// did.
func (r Result) Wrong() error {
	wrong, first := 0, ""
	for _, p := range r.Points {
		wrong += p.Wrong
		if first == "" && p.Wrong > 0 {
			first = fmt.Sprintf("N = %d, sigma = %v, %v dB, %s", p.Devices, p.Sigma, p.SNRdB, p.FirstWrong)
		}
	}
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("*** %d TRIALS ACCEPTED WHAT IS NOT TRUE: the receiver is broken; the first: %s", wrong, first)
}
