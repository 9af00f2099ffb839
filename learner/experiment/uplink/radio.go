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

// Elsewhere is the devices of a link over radios that are on other hosts, each with its own.
type Elsewhere interface {
	// Align tells each device, whose transmitters are those of an array, what it makes up
	// for, before it sends.
	Align(ctx context.Context, a *array.Array, all []phy.MakeUp) error
	// Call has devices send: phy.WaveformConfig.Call.
	Call(ctx context.Context, a *array.Array, d phy.Due) error
	// Await waits until all are there, and reports whether one of them was begun anew since
	// it was asked last.
	Await(ctx context.Context) (anew bool, err error)
}

// Connect takes up the radios of an array, in place of the bench in memory, and measures
// phases and delays anew where the calibration in use asks for that. They may stand still
// for patience, besides what they are put off and searched for. It refuses an array other
// than the calibrated one before anything is sent. The link closes the array once it has
// taken it up; after an error that is left to the caller.
func (l *Waveform) Connect(ctx context.Context, c config.Config, a *array.Array, patience time.Duration) error {
	cfg, err := l.connect(ctx, c, a, patience)
	if err != nil {
		return err
	}
	w, err := phy.NewWaveform(cfg)
	if err != nil {
		return err
	}
	err = l.Bench.Close()
	l.Waveform, l.paced = w, nil
	l.over(w, w.WaveformReceiver, a)
	return err
}

// connectTries is how often a run begins over radios of other hosts of which one is lost as it
// does.
const connectTries = 4

// Connect waits for devices elsewhere and takes up the radios that open opens, theirs and the
// receiver, as a Waveform's Connect does. It opens them anew where a device was begun anew.
func (l *Receiving) Connect(ctx context.Context, c config.Config, open func() (*array.Array, error), patience time.Duration) (err error) {
	if _, err := l.Elsewhere.Await(ctx); err != nil {
		return err
	}
	if l.Radios, err = open(); err != nil {
		return err
	}
	l.open = open
	cfg, err := l.connect(ctx, c, l.Radios, patience)
	for try := 1; try < connectTries && errors.Is(err, radio.ErrStarved); try++ {
		l.stale = true // a device was lost, or a board has starved
		cfg, err = l.connect(ctx, c, l.Radios, patience)
	}
	if err != nil {
		return err
	}
	cfg.Call = func(ctx context.Context, d phy.Due) error { return l.Elsewhere.Call(ctx, l.Radios, d) }
	w, err := phy.NewWaveformReceiver(cfg)
	if err != nil {
		return err
	}
	l.over(w, w, l.Radios)
	return nil
}

// over goes on over radios, through the whole that a link is half of.
func (l *Receiving) over(through phy.Receiver, link *phy.WaveformReceiver, a *array.Array) {
	l.through, l.Link, l.Radios, l.putOff = through, link, a, true
	l.describeFrames()
}

// connect starts the streams of an array, and returns the link's configuration over them.
func (l *Receiving) connect(ctx context.Context, c config.Config, a *array.Array, patience time.Duration) (cfg phy.WaveformConfig, err error) {
	cfg = l.receiving
	rate := radio.Hertz(c.Link.SampleRateHz)
	cfg.Lead = radio.SampleCount(c.Radio.LeadSeconds * float64(rate))
	cfg.Reach = radio.SampleCount(c.Radio.SearchSeconds * float64(rate))
	cfg.Patience = patience + rate.Duration(cfg.Lead+2*cfg.Reach)
	start := func(ctx context.Context) ([]radio.Transmitter, radio.Receiver, error) {
		next, err := l.again(ctx, a)
		if err != nil {
			return nil, nil, err
		}
		a = next
		if err := a.Start(ctx); err != nil {
			return nil, nil, err
		}
		l.Transmitters, l.receiver = a.Transmitters(), radio.Tee(a.Receiver(), shown{l})
		if l.recorder == nil {
			return l.Transmitters, l.receiver, nil
		}
		return l.Transmitters, l.recorder.Tape(l.receiver), nil
	}
	// A file of another bench is refused before anything is sent.
	if err := l.matchRadios(c, a); err != nil {
		return cfg, err
	}
	if cfg.Transmitters, cfg.Receiver, err = start(ctx); err != nil {
		return cfg, err
	}
	cfg.Restart, cfg.Flush = start, a.Flush()
	return cfg, l.alignRadios(ctx, c, &cfg, func() *array.Array { return a }, patience)
}

// again returns the array whose streams are to begin anew: another one where devices on other
// hosts were begun anew.
func (l *Receiving) again(ctx context.Context, a *array.Array) (*array.Array, error) {
	if l.Elsewhere == nil {
		return a, nil
	}
	anew, err := l.Elsewhere.Await(ctx)
	l.stale = l.stale || anew // until another is open
	if err != nil || !l.stale {
		return a, err
	}
	_ = a.Close() // a part of it is gone
	next, err := l.open()
	if err != nil {
		return nil, err
	}
	l.Radios, l.stale = next, false
	return next, nil
}

// matchRadios compares these radios with those of the calibration that the run goes by.
func (l *Receiving) matchRadios(c config.Config, a *array.Array) error {
	if l.known == nil || l.known.File == nil {
		return nil
	}
	want := setup.RadioBench(c, a)
	want.Now = time.Now()
	return l.known.Match(want, c.Calibration.QuickBlocks)
}

// alignRadios has devices make up for what a calibration says of these radios, and for
// what is found anew of it where phases do not last.
func (l *Receiving) alignRadios(ctx context.Context, c config.Config, cfg *phy.WaveformConfig, a func() *array.Array, patience time.Duration) (err error) {
	stats := l.known
	switch {
	case stats == nil || stats.File == nil:
		return l.align(ctx, cfg)
	case !stats.Quick:
		if cfg.Alignment, err = stats.alignment(c); err != nil {
			return err
		}
		return l.align(ctx, cfg)
	}
	own := *cfg
	cfg.Remeasure = func(ctx context.Context) (phy.Alignment, radio.SampleIndex, error) {
		start, err := stats.remeasure(ctx, c, a(), l.Transmitters, l.receiver, patience)
		if err != nil {
			return phy.Alignment{}, 0, err
		}
		if err := stats.checkCarriers(c, l.seconds); err != nil {
			return phy.Alignment{}, 0, err
		}
		if own.Alignment, err = stats.alignment(c); err != nil {
			return phy.Alignment{}, 0, err
		}
		return own.Alignment, start, l.align(ctx, &own)
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

// align tells devices on other hosts what they make up for.
func (l *Receiving) align(ctx context.Context, cfg *phy.WaveformConfig) error {
	if l.Elsewhere == nil {
		return nil
	}
	return l.Elsewhere.Align(ctx, l.Radios, cfg.MakeUps())
}
