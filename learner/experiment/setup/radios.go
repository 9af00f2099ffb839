package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringwave/calibration/sounder"
	"ringwave/learner/experiment/config"
	"ringwave/radio"
	"ringwave/radio/array"
	"ringwave/radio/boards"
	"ringwave/radio/guard"
	"ringwave/radio/intake"
)

// LostGuard returns err, behind the guard's own error if the guard was lost: what else
// failed then may be but a consequence. Where the program stood still it is, and the guard's
// error is all that is returned: no board has failed. No guard is nil.
func LostGuard(guarded func() error, err error) error {
	if err == nil || guarded == nil || guarded() == nil {
		return err
	}
	if errors.Is(guarded(), radio.ErrStoodStill) {
		return guarded()
	}
	if errors.Is(err, radio.ErrGuard) {
		return err
	}
	return fmt.Errorf("%w: %w", guarded(), err)
}

// Registry makes a registry of devices, which may send what the permit allows, until
// session ends.
type Registry func(session context.Context, permit radio.TransmitPermit) (*radio.Registry, error)

// PermitOf returns what the user has confirmed that may be sent: signals as wide as the
// sample rate, in radio.band_hz, at gains up to radio.most_gain_db, and power at antennas'
// ports with radio.bias_tee. The zero permit, which allows nothing, stands for
// radio.transmit = false and radio.bias_tee = false.
func PermitOf(c config.Config) (p radio.TransmitPermit, err error) {
	if c.Radio.Transmit {
		band := radio.Span[radio.Hertz]{Min: radio.Hertz(c.Radio.BandHz[0]), Max: radio.Hertz(c.Radio.BandHz[1])}
		p, err = radio.NewTransmitPermit(band, radio.Hertz(c.Link.SampleRateHz), radio.Decibels(c.Radio.MostGainDB))
	}
	if c.Radio.BiasTee {
		p = p.WithBias()
	}
	return p, err
}

// ArrayConfig returns the array of a configuration.
func ArrayConfig(c config.Config) (array.Config, error) {
	r := c.Radio
	cfg := array.Config{
		Transmitters: r.Transmitters, Receiver: r.Receiver,
		Rate: radio.Hertz(c.Link.SampleRateHz), Frequency: radio.Hertz(r.FrequencyHz),
		TransmitGains: decibels(r.TransmitGainsDB), ReceiveGains: decibels(r.ReceiveGainsDB),
		Clock:   map[string]array.Clock{"external": array.ExternalClock, "shared": array.SharedClock, "internal": array.InternalClock}[r.Clock],
		Trigger: map[string]array.Trigger{"wired": array.WiredTrigger, "none": array.NoTrigger, "lock-step": array.LockStep, "sounded": array.SoundedStart, "pps": array.PulsedStart}[r.Trigger],
	}
	if cfg.Trigger != array.SoundedStart && cfg.Trigger != array.PulsedStart {
		return cfg, nil
	}
	var err error
	cfg.Locate, err = locate(c)
	return cfg, err
}

// locateReach is how much later than it was due a device may be heard whose index is not
// known, besides radio.search_seconds: its host may be another one, which is far and busy.
const locateReach = time.Second

// locate returns what brings transmitters that began at different times to one index, by
// soundings of the calibration.
func locate(c config.Config) (func(context.Context, []radio.Transmitter, radio.Receiver) ([]radio.SampleIndex, error), error) {
	c.Calibration.Blocks, c.Calibration.Looks, c.Calibration.Sessions = 1, 1, 1
	c.Calibration.RoundSeconds, c.Calibration.BlockSeconds = 0, 0
	cfg, err := SoundingConfig(c)
	if err != nil {
		return nil, err
	}
	rate := radio.Hertz(c.Link.SampleRateHz)
	cfg.Lead = radio.SampleCount(c.Radio.LeadSeconds * float64(rate))
	cfg.Reach = radio.SampleCount((locateReach.Seconds() + c.Radio.SearchSeconds) * float64(rate))
	cfg.Patience = SoundingPatience(&cfg, c, RadioPatience)
	return func(ctx context.Context, tx []radio.Transmitter, rx radio.Receiver) ([]radio.SampleIndex, error) {
		sounded := cfg
		sounded.Transmitters, sounded.Receiver = tx, rx
		offsets, err := sounder.Locate(ctx, sounded)
		var unheard *sounder.NotHeardError
		if errors.As(err, &unheard) {
			return nil, intake.UserError(Unheard(unheard, c.Calibration, true))
		}
		return offsets, err
	}, nil
}

// RadioLevel returns the received amplitude that counts as gain 1, full scale being 1.
func RadioLevel(c config.Config) float64 {
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

// RadioPatience is how long radios may stand still, besides what they are put off and
// searched for. It is far longer than any frame.
const RadioPatience = time.Minute

// Radios is where the devices of [radio] come from. The zero value has the boards of this
// machine, of which those that another process must be able to switch off do not send.
type Radios struct {
	// Drivers are known beside those of radio/boards.
	Drivers []boards.Driver
	// Guard starts the process that takes the carriers of boards off when this one no
	// longer can, as guard.Start does.
	Guard func(ctx context.Context) (*guard.Client, error)
	// Registry, if it is not nil, stands in place of all boards.
	Registry Registry
}

// HostScheme is that of the URIs of radios on other hosts: host:1 is that of device 1.
const HostScheme = "host"

// checkHosts says what to do about radios of other hosts that nothing here reaches.
func (r Radios) checkHosts(c config.Config) error {
	reached := slices.ContainsFunc(r.Drivers, func(d boards.Driver) bool { return d.Scheme == HostScheme })
	for i, uri := range c.Radio.Transmitters {
		if strings.HasPrefix(uri, HostScheme+":") && !reached && r.Registry == nil {
			return fmt.Errorf("radio.transmitters has %q for device %d, which is on a host of its own: run with ringwave serve, calibrate with --bench, or name radios of this host", uri, i+1)
		}
	}
	return nil
}

// Open opens the radios of a configuration, to send as far as the user permits. guarded
// returns why their guard is lost, once it is; any of the radios may fail by that first.
// The radios live until ctx ends, or the array is closed.
func (r Radios) Open(ctx context.Context, c config.Config) (a *array.Array, guarded func() error, err error) {
	devices, guarded, err := r.Devices(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := ArrayConfig(c)
	if err != nil {
		return nil, guarded, err
	}
	a, err = array.Open(ctx, devices, cfg)
	return a, guarded, LostGuard(guarded, intake.UserError(err))
}

// Devices returns what opens the radios of a configuration one by one, to send as far as the
// user permits. guarded and ctx are as Open has them.
func (r Radios) Devices(ctx context.Context, c config.Config) (devices *radio.Registry, guarded func() error, err error) {
	if err := r.checkHosts(c); err != nil {
		return nil, nil, intake.UserError(err)
	}
	permit, err := PermitOf(c)
	if err != nil {
		return nil, nil, intake.UserError(err)
	}
	return r.registry(ctx, permit, c.Radio.Transmitters...)
}

// OpenOne opens one radio, to send as far as permitted. It lives until ctx ends, or it is
// closed.
func (r Radios) OpenOne(ctx context.Context, permit radio.TransmitPermit, uri string) (d radio.Device, guarded func() error, err error) {
	devices, guarded, err := r.registry(ctx, permit, uri)
	if err != nil {
		return nil, nil, err
	}
	d, err = devices.Open(ctx, uri)
	return d, guarded, LostGuard(guarded, intake.UserError(err))
}

// registry makes what opens the devices, under a guard if the transmitters need one.
func (r Radios) registry(ctx context.Context, permit radio.TransmitPermit, transmitters ...string) (devices *radio.Registry, guarded func() error, err error) {
	guarded = func() error { return nil }
	if r.Registry != nil {
		devices, err = r.Registry(ctx, permit)
		return devices, guarded, err
	}
	cfg := boards.Config{Permit: permit, Drivers: r.Drivers}
	if r.needsGuard(permit, transmitters) && r.Guard != nil {
		g, err := r.Guard(ctx)
		if err != nil {
			return nil, nil, err
		}
		if g != nil {
			cfg.Guard, guarded = g, g.Err
		}
	}
	devices, err = boards.NewRegistry(ctx, cfg)
	return devices, guarded, err
}

// needsGuard reports whether something may be sent, by a board that another process must
// be able to switch off.
func (r Radios) needsGuard(permit radio.TransmitPermit, transmitters []string) bool {
	return permit.Allowed() && slices.ContainsFunc(transmitters, boards.Config{Drivers: r.Drivers}.Guarded)
}
