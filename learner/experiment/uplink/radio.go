package uplink

import (
	"context"
	"errors"
	"time"

	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/phy"
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
	l.Waveform, l.Radios, l.paced, l.putOff = w, a, nil, true
	l.through, l.Link = w, w.WaveformReceiver
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
		cfg.Alignment, err = stats.alignment(c)
		l.Trims = cfg.Trim
		return err
	}
	cfg.Remeasure = func(ctx context.Context) (phy.Alignment, radio.SampleIndex, error) {
		start, err := stats.remeasure(ctx, c, a, l.Transmitters, l.receiver, patience)
		if err != nil {
			return phy.Alignment{}, 0, err
		}
		if err := stats.checkCarriers(c, l.seconds); err != nil {
			return phy.Alignment{}, 0, err
		}
		found, err := stats.alignment(c)
		l.Trims = found.Trim
		return found, start, err
	}
	for try := 1; ; try++ {
		cfg.Alignment, cfg.Start, err = cfg.Remeasure(ctx)
		if try == quickTries || !errors.Is(err, phy.ErrAgain) {
			return err
		}
		if cfg.Transmitters, cfg.Receiver, err = cfg.Restart(ctx); err != nil {
			return err
		}
	}
}
