package soapy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ringwave/radio"
	"ringwave/radio/life"
)

// ErrCarrier: the board could not be switched off.
var ErrCarrier = errors.New("the board could not be switched off, so that its carrier may still be on: unplug it")

// ErrSessionOver: the session's context has ended, and nothing is sent any more.
var ErrSessionOver = errors.New("the session is over")

// device is an open board. Methods that are not of all boards are in capable.
type device struct {
	uri     radio.URI
	opts    options
	board   Board
	permit  radio.TransmitPermit
	guard   radio.Guard
	session *life.Life
	info    radio.Info

	// Of the board, and not changing.
	ways       [2]way // by direction; one without channels has no formats
	clocks     []string
	times      []string
	timed      bool // it has a clock of its own
	fullDuplex bool
	refLocked  bool // it has the sensor

	epochs  atomic.Uint64 // the last one given out
	maybeOn atomic.Bool   // the board could not be switched off

	// changing is held over changes, so that they do not overlap. It is taken before mu.
	changing sync.Mutex

	mu      sync.Mutex
	closed  bool
	now     [2]values
	clock   string
	time    string
	startAt *Time
	rx      *receiver    // the open one, or nil
	tx      *transmitter // the open one, or nil
	watch   radio.Watch  // the guard's, from the first transmitter on; nil before
}

// way is what a board can in one direction.
type way struct {
	there       bool
	format      format
	antennas    []string
	stages      []radio.GainStage
	frequencies []Range
	rates       []Range
	filters     []Range
}

// values are the settings of one direction.
type values struct {
	frequency, rate radio.Hertz
	antenna         string
	gains           map[string]radio.Decibels
}

func (d *device) at(dir radio.Direction) Channel { return Channel{dir, d.opts.channel} }

// call returns a context for one call.
func (d *device) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.opts.call)
}

// setUp asks the board what it is and can, and gives it the URI's settings.
func (d *device) setUp(ctx context.Context) error {
	ctx, cancel := d.call(ctx)
	defer cancel()
	if err := d.identify(ctx); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(d.opts.settings)) {
		if err := d.board.WriteSetting(ctx, key, d.opts.settings[key]); err != nil {
			return fmt.Errorf("setting %s: %w", key, err)
		}
	}
	for _, dir := range []radio.Direction{radio.Receive, radio.Transmit} {
		if err := d.learn(ctx, dir); err != nil {
			return err
		}
	}
	if !d.ways[radio.Receive].there && !d.ways[radio.Transmit].there {
		return fmt.Errorf("it has no channel %d", d.opts.channel)
	}
	if err := d.learnClocks(ctx); err != nil {
		return err
	}
	if d.opts.feed != nil && *d.opts.feed == bursts && !d.timed {
		return errors.New("it has no clock of its own, which feed=bursts needs; allowed is feed=fill")
	}
	return d.apply(ctx)
}

// identify asks what the board is.
func (d *device) identify(ctx context.Context) error {
	h, err := d.board.Hardware(ctx)
	if err != nil {
		return fmt.Errorf("asking what it is: %w", err)
	}
	serial := d.opts.args["serial"]
	if s := h.Info["serial"]; s != "" {
		serial = s
	}
	d.info = radio.Info{
		URI: d.uri.String(), Driver: d.uri.Scheme, Model: strings.TrimSpace(h.Key + " (SoapySDR's driver " + h.Driver + ")"), Serial: serial,
		Firmware: first(h.Info, "firmware", "fw_version", "version"), Revision: first(h.Info, "revision", "hardware", "fpga_version"),
		Notes: []string{
			"this driver was never tried on real hardware, only with SoapySDR's modules for HackRF and RTL-SDR on emulated boards, and with a module that is made for tests",
			"if the host hangs, or this program and its guard are killed at once, while it transmits, what goes on is up to the board and its module",
		},
	}
	return nil
}

// first returns what stands behind the first of the keys that is there.
func first(a Args, keys ...string) string {
	for _, k := range keys {
		if a[k] != "" {
			return a[k]
		}
	}
	return ""
}

// learn asks what the board can in one direction.
func (d *device) learn(ctx context.Context, dir radio.Direction) error {
	fail := func(what string, err error) error {
		return fmt.Errorf("asking for the %s to %v: %w", what, dir, err)
	}
	n, err := d.board.Channels(ctx, dir)
	if err != nil {
		return fail("channels", err)
	}
	if d.opts.channel >= n {
		return nil
	}
	w, now, at := &d.ways[dir], &d.now[dir], d.at(dir)
	w.there = true
	if w.format, err = d.chooseFormat(ctx, at); err != nil {
		return err
	}
	if w.antennas, err = d.board.Antennas(ctx, at); err != nil {
		return fail("antennas", err)
	}
	if now.antenna, err = d.board.Antenna(ctx, at); err != nil {
		return fail("antenna", err)
	}
	if err := d.learnGains(ctx, dir); err != nil {
		return fail("gains", err)
	}
	if w.frequencies, err = d.board.FrequencyRange(ctx, at); err != nil {
		return fail("frequencies", err)
	}
	if w.rates, err = d.board.SampleRateRange(ctx, at); err != nil {
		return fail("sample rates", err)
	}
	if w.filters, err = d.board.BandwidthRange(ctx, at); err != nil {
		return fail("filters", err)
	}
	f, err := d.board.Frequency(ctx, at)
	if err != nil {
		return fail("frequency", err)
	}
	rate, err := d.board.SampleRate(ctx, at)
	if err != nil {
		return fail("sample rate", err)
	}
	now.frequency, now.rate = radio.Hertz(f), radio.Hertz(rate)
	return nil
}

// chooseFormat takes the board's own format if there is a codec for it, so that nothing is
// converted on the way.
func (d *device) chooseFormat(ctx context.Context, at Channel) (format, error) {
	native, fullScale, err := d.board.NativeFormat(ctx, at)
	if err != nil {
		return format{}, fmt.Errorf("asking for the format to %v: %w", at.Direction, err)
	}
	there, err := d.board.Formats(ctx, at)
	if err != nil {
		return format{}, fmt.Errorf("asking for the formats to %v: %w", at.Direction, err)
	}
	wanted := []string{native, "CS16", "CF32", "CS8"}
	if d.opts.format != "" {
		wanted = []string{d.opts.format}
	}
	for _, name := range wanted {
		scale := fullScale
		if name != native {
			scale = 1 << 15
		}
		if f, ok := newFormat(name, scale); ok && scale > 0 && (name == native || slices.Contains(there, name)) {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("it has no format %s to %v; there are %s", strings.Join(wanted, " or "), at.Direction, strings.Join(there, ", "))
}

// maxStages bounds what is asked for of a board that names gains without end.
const maxStages = 64

func (d *device) learnGains(ctx context.Context, dir radio.Direction) error {
	w, now, at := &d.ways[dir], &d.now[dir], d.at(dir)
	names, err := d.board.Gains(ctx, at)
	if err != nil {
		return err
	}
	now.gains = map[string]radio.Decibels{}
	for _, name := range names[:min(len(names), maxStages)] {
		r, err := d.board.GainRange(ctx, at, name)
		if err != nil {
			return err
		}
		g, err := d.board.Gain(ctx, at, name)
		if err != nil {
			return err
		}
		w.stages = append(w.stages, radio.GainStage{Name: name, Span: radio.Span[radio.Decibels]{
			Min: radio.Decibels(r.Min), Max: radio.Decibels(r.Max), Step: radio.Decibels(r.Step),
		}})
		now.gains[name] = radio.Decibels(g)
	}
	return nil
}

func (d *device) learnClocks(ctx context.Context) (err error) {
	if d.clocks, err = d.board.ClockSources(ctx); err != nil {
		return fmt.Errorf("asking for clock sources: %w", err)
	}
	if len(d.clocks) > 0 {
		if d.clock, err = d.board.ClockSource(ctx); err != nil {
			return fmt.Errorf("asking for the clock source: %w", err)
		}
	}
	if d.times, err = d.board.TimeSources(ctx); err != nil {
		return fmt.Errorf("asking for time sources: %w", err)
	}
	if len(d.times) > 0 {
		if d.time, err = d.board.TimeSource(ctx); err != nil {
			return fmt.Errorf("asking for the time source: %w", err)
		}
	}
	if d.timed, err = d.board.HasHardwareTime(ctx, ""); err != nil {
		return fmt.Errorf("asking for the clock: %w", err)
	}
	if d.ways[radio.Receive].there && d.ways[radio.Transmit].there {
		if d.fullDuplex, err = d.board.FullDuplex(ctx, d.at(radio.Transmit)); err != nil {
			return fmt.Errorf("asking whether it sends while it receives: %w", err)
		}
	}
	sensors, err := d.board.Sensors(ctx)
	if err != nil {
		return fmt.Errorf("asking for sensors: %w", err)
	}
	d.refLocked = slices.Contains(sensors, refLocked)
	for _, name := range sensors[:min(len(sensors), maxStages)] {
		if v, err := d.board.ReadSensor(ctx, name); err == nil {
			d.info.Notes = append(d.info.Notes, fmt.Sprintf("sensor %s: %s", name, v))
		}
	}
	return nil
}

// apply gives the board the URI's settings. Its transmit gains go to their least first: what
// another program has left them at was not permitted.
func (d *device) apply(ctx context.Context) error {
	for _, s := range d.ways[radio.Transmit].stages {
		if err := d.setGain(ctx, radio.Transmit, s.Name, s.Span.Min); err != nil {
			return err
		}
	}
	for dir := range d.ways {
		if dir := radio.Direction(dir); d.ways[dir].there {
			if err := d.applyTo(ctx, dir); err != nil {
				return err
			}
		}
	}
	if d.opts.clock != "" {
		if err := d.SetClockSource(ctx, d.opts.clock); err != nil {
			return err
		}
	}
	if d.opts.time == "" {
		return nil
	}
	return timekeeper{d}.SetTimeSource(ctx, d.opts.time)
}

func (d *device) applyTo(ctx context.Context, dir radio.Direction) error {
	if name := d.opts.antenna[dir]; name != "" {
		if err := d.SetAntenna(ctx, dir, name); err != nil {
			return err
		}
	}
	if r := d.opts.rate; r != nil {
		if _, err := d.SetSampleRate(ctx, dir, *r); err != nil {
			return err
		}
	}
	if f := d.opts.filter; f != nil {
		if err := d.setFilter(ctx, dir, *f); err != nil {
			return err
		}
	}
	if dir == radio.Transmit && !d.permit.Allowed() {
		return nil
	}
	if f := d.opts.tuning; f != nil {
		if _, err := d.SetFrequency(ctx, dir, *f); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.opts.gains[dir])) {
		if _, err := d.SetGain(ctx, dir, name, d.opts.gains[dir][name]); err != nil {
			return err
		}
	}
	if dir == radio.Receive {
		return d.manual(ctx)
	}
	return nil
}

// manual keeps the board from changing receive gains by itself.
func (d *device) manual(ctx context.Context) error {
	there, err := d.board.HasGainMode(ctx, d.at(radio.Receive))
	if err != nil || !there {
		return err
	}
	if err := d.board.SetGainMode(ctx, d.at(radio.Receive), false); err != nil {
		return fmt.Errorf("switching automatic gain off: %w", err)
	}
	return nil
}

// capable returns the device with what its board can.
func (d *device) capable() radio.Device {
	rx, tx := receives{d}, transmits{d}
	both := d.ways[radio.Receive].there && d.ways[radio.Transmit].there
	switch {
	case both && d.timed:
		return struct {
			*device
			receives
			transmits
			timekeeper
		}{d, rx, tx, timekeeper{d}}
	case both:
		return struct {
			*device
			receives
			transmits
		}{d, rx, tx}
	case d.ways[radio.Receive].there && d.timed:
		return struct {
			*device
			receives
			timekeeper
		}{d, rx, timekeeper{d}}
	case d.ways[radio.Receive].there:
		return struct {
			*device
			receives
		}{d, rx}
	case d.timed:
		return struct {
			*device
			transmits
			timekeeper
		}{d, tx, timekeeper{d}}
	}
	return struct {
		*device
		transmits
	}{d, tx}
}

// receives, transmits and timekeeper are what some boards can.
type (
	receives   struct{ d *device }
	transmits  struct{ d *device }
	timekeeper struct{ d *device }
)

// Info returns what the board says of itself.
func (d *device) Info() radio.Info { return d.info }

// nextEpoch returns an epoch that none was before.
func (d *device) nextEpoch() radio.Epoch { return radio.Epoch(d.epochs.Add(1)) }

// usable says why settings cannot change.
func (d *device) usable(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return radio.ErrClosed
	}
	return ctx.Err()
}

// Close ends the streams, the transmitter's first, and gives the board back. Error ErrCarrier
// says that it could not be switched off.
func (d *device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	tx, rx := d.tx, d.rx
	d.mu.Unlock()
	var errs []error
	if tx != nil {
		errs = append(errs, tx.Close())
	}
	if rx != nil {
		errs = append(errs, rx.Close())
	}
	errs = append(errs, d.board.Close())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watch != nil && !d.maybeOn.Load() {
		d.watch.Release()
	}
	return errors.Join(errs...)
}

// watchOver has the guard watch over the board.
func (d *device) watchOver(ctx context.Context) error {
	d.mu.Lock()
	w := d.watch
	d.mu.Unlock()
	switch {
	case d.guard == nil:
		return radio.ErrNoGuard
	case w != nil:
		return w.Err()
	}
	w, err := d.guard.Watch(ctx, d.watched(), d.opts.still)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watch = w
	return nil
}

// permitted says why the present settings must not be sent with.
func (d *device) permitted() error {
	d.mu.Lock()
	now := d.now[radio.Transmit]
	total := total(now.gains)
	d.mu.Unlock()
	if err := d.permit.Frequency(now.frequency); err != nil {
		return err
	}
	return d.permit.Gain(total)
}

func total(gains map[string]radio.Decibels) (sum radio.Decibels) {
	for _, name := range slices.Sorted(maps.Keys(gains)) {
		sum += gains[name]
	}
	return sum
}
