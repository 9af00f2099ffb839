package uplink

import (
	"context"
	"errors"
	"math"
	"time"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/array"
)

// ErrClosed is the cause with which the radios of a run that has ended are switched off.
var ErrClosed = errors.New("the run has ended")

// Connect takes up the radios of an array, in place of the bench in memory, and measures
// phases and delays anew where the calibration in use asks for that. They may stand still
// for patience, besides what they are put off and searched for. It refuses an array other
// than the calibrated one before anything is sent. The link closes the array once it has
// taken it up; after an error that is left to the caller.
func (l *Waveform) Connect(ctx context.Context, c config.Config, a *array.Array, patience time.Duration) (err error) {
	cfg := l.receiving
	rate := radio.Hertz(c.Link.SampleRateHz)
	cfg.Lead = radio.SampleCount(c.Radio.LeadSeconds * float64(rate))
	cfg.Reach = radio.SampleCount(c.Radio.SearchSeconds * float64(rate))
	cfg.Patience = patience + rate.Duration(cfg.Lead+2*cfg.Reach)
	start := func(ctx context.Context) ([]radio.Transmitter, radio.Receiver, error) {
		if err := a.Start(ctx); err != nil {
			return nil, nil, err
		}
		l.Transmitters, l.receiver = a.Transmitters(), a.Receiver()
		if l.recorder == nil {
			return l.Transmitters, l.receiver, nil
		}
		return l.Transmitters, l.recorder.Tape(l.receiver), nil
	}
	// A file of another bench is refused before anything is sent.
	if err := l.matchRadios(c, a); err != nil {
		return err
	}
	if cfg.Transmitters, cfg.Receiver, err = start(ctx); err != nil {
		return err
	}
	cfg.Restart, cfg.Flush = start, a.Flush()
	if err := l.alignRadios(ctx, c, a, &cfg, patience); err != nil {
		return err
	}
	w, err := phy.NewWaveform(cfg)
	if err != nil {
		return err
	}
	err = l.Bench.Close()
	l.Waveform, l.Radios, l.paced = w, a, nil
	l.describeFrames()
	return err
}

// matchRadios compares these radios with those of the calibration that the run goes by.
func (l *Waveform) matchRadios(c config.Config, a *array.Array) error {
	if l.known == nil || l.known.File == nil {
		return nil
	}
	want := setup.RadioBench(c, a)
	want.Now = time.Now()
	return l.known.Match(want, c.Calibration.QuickBlocks)
}

// alignRadios has devices make up for what a calibration says of these radios, and for
// what is found anew of it where phases do not last.
func (l *Waveform) alignRadios(ctx context.Context, c config.Config, a *array.Array, cfg *phy.WaveformConfig, patience time.Duration) (err error) {
	stats := l.known
	if stats == nil || stats.File == nil {
		return nil
	}
	l.level = cfg.Level
	if !stats.Quick {
		l.Trims, err = stats.trims(c)
		cfg.Trim, cfg.Advance = l.Trims, advances(c, stats.delays)
		return err
	}
	cfg.Remeasure = func(ctx context.Context) ([]phy.Trim, []modem.Samples, radio.SampleIndex, error) {
		start, err := stats.remeasure(ctx, c, a, l.Transmitters, l.receiver, patience)
		if err != nil {
			return nil, nil, 0, err
		}
		l.Trims, err = stats.trims(c)
		return l.Trims, advances(c, stats.delays), start, err
	}
	for try := 1; ; try++ {
		cfg.Trim, cfg.Advance, cfg.Start, err = cfg.Remeasure(ctx)
		if try == quickTries || !errors.Is(err, phy.ErrAgain) {
			return err
		}
		if cfg.Transmitters, cfg.Receiver, err = cfg.Restart(ctx); err != nil {
			return err
		}
	}
}

// read writes the scaled gains H_i that the patterns of an attempt show to dst, NaN where
// they show none. Over the air nothing tells their misfit, which is NaN in the row.
func (l *Waveform) read(dst []float64) {
	nan := math.NaN()
	l.row.Alpha, l.row.Misfit, l.row.ZeroGains = l.Waveform.Alpha(), nan, nan
	if !l.Waveform.Gains(dst) {
		for i := range dst {
			dst[i] = nan
		}
		return
	}
	l.row.ZeroGains = 0
	for _, h := range dst {
		if h == 0 {
			l.row.ZeroGains++
		}
	}
}
