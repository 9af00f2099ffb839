package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ringwave/learner/experiment/config"
	"ringwave/phy"
	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/boards"
	"ringwave/radio/guard"
	"ringwave/radio/intake"
)

// registryOf makes a registry of devices for a session and a permit.
type registryOf func(session context.Context, permit radio.TransmitPermit) (*radio.Registry, error)

// permitOf gives what the user has confirmed that may be sent: signals as wide as the
// sample rate.
func permitOf(c config.Config) (radio.TransmitPermit, error) {
	if !c.Radio.Transmit {
		return radio.TransmitPermit{}, nil
	}
	band := radio.Span[radio.Hertz]{Min: radio.Hertz(c.Radio.BandHz[0]), Max: radio.Hertz(c.Radio.BandHz[1])}
	return radio.NewTransmitPermit(band, radio.Hertz(c.Link.SampleRateHz), radio.Decibels(c.Radio.MostGainDB))
}

// arrayConfig gives the array of a configuration.
func arrayConfig(c config.Config) array.Config {
	r := c.Radio
	return array.Config{
		Transmitters: r.Transmitters, Receiver: r.Receiver,
		Rate: radio.Hertz(c.Link.SampleRateHz), Frequency: radio.Hertz(r.FrequencyHz),
		TransmitGains: decibels(r.TransmitGainsDB), ReceiveGains: decibels(r.ReceiveGainsDB),
		Clock:   map[string]array.Clock{"external": array.ExternalClock, "shared": array.SharedClock, "internal": array.InternalClock}[r.Clock],
		Trigger: map[string]array.Trigger{"wired": array.WiredTrigger, "none": array.NoTrigger, "lock-step": array.LockStep}[r.Trigger],
	}
}

// radioLevel gives the amplitude that counts as gain 1.
func radioLevel(c config.Config) float64 {
	if c.Radio.Level > 0 {
		return c.Radio.Level
	}
	return 1 / float64(c.Devices.Count)
}

func decibels(list []string) map[string]radio.Decibels {
	gains := map[string]radio.Decibels{}
	for stage, g := range config.Gains(list) {
		gains[stage] = radio.Decibels(g)
	}
	return gains
}

// errClosed says that radios are no longer needed.
var errClosed = errors.New("the run has ended")

// endRadios takes carriers off at once, whatever was written and not yet sent, and
// before anything else is closed, which takes time.
func (s *session) endRadios(why error) {
	if s.carriersOff != nil {
		s.carriersOff(why)
	}
}

// radioPatience is how long radios may stand still, besides what they are put off and
// searched for. It is far longer than any frame.
const radioPatience = time.Minute

// stoodStill says what to raise where radios wait for each other.
func (s *session) stoodStill(err error) error {
	return intake.UserError(fmt.Errorf("%w: raise radio.search_seconds, which is %v, and where no room was found the window of the URIs in radio.transmitters", err, s.cfg.Radio.SearchSeconds))
}

// connect opens the radios of a session that goes over some, once. They live until
// ctx ends, training fails or the session is closed.
func (s *session) connect(ctx context.Context) error {
	if !s.cfg.OverRadios() || s.protocol == nil {
		return nil
	}
	link, ok := s.protocol.link.(*waveLink)
	if !ok || link.radios != nil {
		return nil
	}
	ctx, s.carriersOff = context.WithCancelCause(ctx)
	a, guarded, err := s.lab.Radios.open(ctx, s.cfg)
	s.guarded = guarded
	if err != nil {
		return err // a caller closes the session
	}
	if err := link.connect(ctx, s.cfg, a, cmp.Or(s.patience, radioPatience)); err != nil {
		return intake.UserError(errors.Join(err, a.Close()))
	}
	if s.log != nil {
		for i, info := range a.Infos() {
			s.log.Info("radio", "index", i, "uri", info.URI, "model", info.Model, "serial", info.Serial, "firmware", info.Firmware)
		}
		if permit, err := permitOf(s.cfg); err == nil {
			s.log.Info("radios may send", "permit", permit.String())
		}
	}
	return nil
}

// Radios is where the devices of [radio] come from. The zero value has the boards of this
// machine, of which those that another process must be able to switch off do not send.
type Radios struct {
	// Drivers are known beside those of radio/boards.
	Drivers []boards.Driver
	// Guard starts the process that takes the carriers of boards off when this one no
	// longer can, as guard.Start does.
	Guard func(ctx context.Context) (*guard.Client, error)
	// Registry, if it is not nil, stands in place of all boards.
	Registry registryOf
}

// open opens the radios of a configuration, as far as the user permits. guarded says why
// their guard is lost, once it is, which any of the radios may fail by first.
func (r Radios) open(ctx context.Context, c config.Config) (a *array.Array, guarded func() error, err error) {
	permit, err := permitOf(c)
	if err != nil {
		return nil, nil, intake.UserError(err)
	}
	devices, guarded, err := r.registry(ctx, c, permit)
	if err != nil {
		return nil, nil, err
	}
	a, err = array.Open(ctx, devices, arrayConfig(c))
	return a, guarded, intake.UserError(err)
}

// registry makes what opens the devices, under a guard if they need one.
func (r Radios) registry(ctx context.Context, c config.Config, permit radio.TransmitPermit) (devices *radio.Registry, guarded func() error, err error) {
	guarded = func() error { return nil }
	if r.Registry != nil {
		devices, err = r.Registry(ctx, permit)
		return devices, guarded, err
	}
	cfg := boards.Config{Permit: permit, Drivers: r.Drivers}
	needed, err := r.needsGuard(ctx, c, permit)
	if err != nil {
		return nil, nil, err
	}
	if needed && r.Guard != nil {
		g, err := r.Guard(ctx)
		if err != nil {
			return nil, nil, err
		}
		cfg.Guard, guarded = g, g.Err
	}
	devices, err = boards.NewRegistry(ctx, cfg)
	return devices, guarded, err
}

// needsGuard reports whether something may be sent, by a board that another process must
// be able to switch off.
func (r Radios) needsGuard(ctx context.Context, c config.Config, permit radio.TransmitPermit) (bool, error) {
	if !permit.Allowed() {
		return false, nil
	}
	all, err := boards.New(ctx, boards.Config{Drivers: r.Drivers})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(c.Radio.Transmitters, all.Guarded), nil
}

// radioNotes are the sentences that radios ask for, each once.
func (s *session) radioNotes() []string {
	if !s.cfg.OverRadios() {
		return nil
	}
	permit, err := permitOf(s.cfg)
	if err != nil {
		return nil // connect says so
	}
	notes := []string{fmt.Sprintf("over radios: %d transmitters at %v; allowed are %v", s.cfg.Devices.Count, radio.Hertz(s.cfg.Radio.FrequencyHz), permit)}
	link, ok := s.protocolLink()
	if !ok || link.radios == nil {
		return append(notes, "the radios were not opened: this was computed with the simulated channel of [channel]")
	}
	for _, info := range link.radios.Infos() {
		for _, n := range info.Notes {
			if n = info.Driver + ": " + n; !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}
	return notes
}

func (s *session) protocolLink() (*waveLink, bool) {
	if s.protocol == nil {
		return nil, false
	}
	l, ok := s.protocol.link.(*waveLink)
	return l, ok
}

// connect takes up the radios of an array, in place of the bench in memory. They may
// stand still for patience.
func (l *waveLink) connect(ctx context.Context, c config.Config, a *array.Array, patience time.Duration) (err error) {
	cfg := l.receiving
	rate := radio.Hertz(c.Link.SampleRateHz)
	cfg.Lead = radio.SampleCount(c.Radio.LeadSeconds * float64(rate))
	cfg.Reach = radio.SampleCount(c.Radio.SearchSeconds * float64(rate))
	cfg.Patience = patience + rate.Duration(cfg.Lead+2*cfg.Reach)
	start := func(ctx context.Context) ([]radio.Transmitter, radio.Receiver, error) {
		if err := a.Start(ctx); err != nil {
			return nil, nil, err
		}
		l.transmitters, l.receiver = a.Transmitters(), a.Receiver()
		if l.recorder == nil {
			return l.transmitters, l.receiver, nil
		}
		return l.transmitters, l.recorder.tape(l.receiver), nil
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
	l.Waveform, l.radios, l.paced = w, a, nil
	return err
}

// matchRadios compares these radios with those of the calibration that the run goes by.
func (l *waveLink) matchRadios(c config.Config, a *array.Array) error {
	if l.known == nil || l.known.file == nil {
		return nil
	}
	want := radioBench(c, a)
	want.Now = time.Now()
	return l.known.match(want, c.Calibration.QuickBlocks)
}

// alignRadios has devices make up for what a calibration says of these radios, and for
// what is found anew of it where phases do not last.
func (l *waveLink) alignRadios(ctx context.Context, c config.Config, a *array.Array, cfg *phy.WaveformConfig, patience time.Duration) (err error) {
	k := l.known
	if k == nil || k.file == nil {
		return nil
	}
	l.level = cfg.Level
	if !k.quick {
		l.trims, err = k.trims(c)
		cfg.Trim, cfg.Advance = l.trims, k.advances(c)
		return err
	}
	cfg.Remeasure = func(ctx context.Context) ([]phy.Trim, []modem.Samples, radio.SampleIndex, error) {
		start, err := k.remeasure(ctx, c, a, l.transmitters, l.receiver, patience)
		if err != nil {
			return nil, nil, 0, err
		}
		l.trims, err = k.trims(c)
		return l.trims, k.advances(c), start, err
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

// read gives the scaled gains H_i that the patterns of an attempt show, which is all
// that is known of the air: nothing is known of their misfit.
func (l *waveLink) read(dst []float64) {
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
