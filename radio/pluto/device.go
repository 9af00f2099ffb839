package pluto

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ringwave/radio"
	"ringwave/radio/life"
)

// stage is the one gain of each direction, by the name that the board has for it.
const stage = "hardwaregain"

// offTimeout bounds each attempt to switch the carrier off, unless deadline_ms is
// less, and offAttempts their number.
const (
	offTimeout  = 2 * time.Second
	offAttempts = 3
)

// ErrCarrier: the board could not be switched off.
var ErrCarrier = errors.New("the board could not be switched off, so that its carrier may still be on: unplug it")

// ErrSessionOver: the session's context has ended, and the carrier is off.
var ErrSessionOver = errors.New("the session is over")

// Device is an open board: a radio.Device that receives and transmits, with control
// of frequency, rate, gains and antenna ports. It is safe for use by several
// goroutines.
type Device struct {
	opts    options
	board   *board
	permit  radio.TransmitPermit
	guard   radio.Guard
	session *life.Life
	sending *senders
	info    radio.Info
	limits  [2]limits

	epochs  atomic.Uint64 // the last one given out
	maybeOn atomic.Bool   // the board could not be switched off

	// turn holds a token that whoever talks to control has taken.
	turn    chan struct{}
	control *link // nil after an error, until somebody needs it

	// changing is held over changes of a setting, so that they do not overlap. It
	// is taken before mu.
	changing sync.Mutex

	mu     sync.Mutex
	closed bool
	// closing says that Close has begun: nothing is opened any more, and OFF still goes.
	closing  bool
	now      [2]values
	rx       *receiver    // the open one, or nil
	tx       *transmitter // the open one, or nil
	rxGainOK bool         // the receive gain is in manual mode
	watch    radio.Watch  // the guard's, from the first transmitter on; nil before
}

// limits are what the board allows in one direction.
type limits struct {
	frequency, rate, bandwidth radio.Span[radio.Hertz]
	gain                       radio.Span[radio.Decibels]
	antennas                   []string
}

// values are the settings of one direction.
type values struct {
	frequency, rate, bandwidth radio.Hertz
	gain                       radio.Decibels
	antenna                    string
}

// customary are the limits of a board that tells none (AD9363; not verified).
var customary = [2]limits{
	radio.Receive: {
		frequency: radio.Span[radio.Hertz]{Min: 325e6, Max: 3800e6, Step: 1},
		rate:      radio.Span[radio.Hertz]{Min: 2083334, Max: 61440000, Step: 1},
		bandwidth: radio.Span[radio.Hertz]{Min: 200e3, Max: 56e6, Step: 1},
		gain:      radio.Span[radio.Decibels]{Min: -3, Max: 71, Step: 1},
	},
	radio.Transmit: {
		frequency: radio.Span[radio.Hertz]{Min: 325e6, Max: 3800e6, Step: 1},
		rate:      radio.Span[radio.Hertz]{Min: 2083334, Max: 61440000, Step: 1},
		bandwidth: radio.Span[radio.Hertz]{Min: 200e3, Max: 40e6, Step: 1},
		gain:      radio.Span[radio.Decibels]{Min: -89.75, Max: 0, Step: 0.25},
	},
}

var directions = [2]radio.Direction{radio.Receive, radio.Transmit}

func open(ctx context.Context, u radio.URI, opts options, o *Opener) (*Device, error) {
	d := &Device{opts: opts, permit: o.permit, guard: o.guard, session: o.session, sending: o.sending, turn: make(chan struct{}, 1)}
	l, version, b, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	d.control, d.board = l, b
	d.describe(u, version)
	if err := d.setUp(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// connect makes a control connection.
func (d *Device) connect(ctx context.Context) (l *link, version string, b *board, err error) {
	if l, err = dial(ctx, d.opts.address, d.opts.deadline); err != nil {
		return nil, "", nil, err
	}
	if version, b, err = d.greet(ctx, l); err != nil {
		return nil, "", nil, errors.Join(err, l.close())
	}
	return l, version, b, nil
}

// greet asks who is there, in the order in which libiio does.
func (d *Device) greet(ctx context.Context, l *link) (version string, b *board, err error) {
	text, err := l.context(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("asking for the board's description: %w", err)
	}
	if b, err = parseBoard(text, d.opts.channel); err != nil {
		return "", nil, err
	}
	if err = l.timeout(ctx, d.remoteTimeout()); err != nil {
		return "", nil, fmt.Errorf("setting the board's timeout: %w", err)
	}
	if version, err = l.version(ctx); err != nil {
		return "", nil, fmt.Errorf("asking for iiod's version: %w", err)
	}
	return version, b, nil
}

// remoteTimeout is how long the board may wait for its converters: less than the
// driver waits for the board, so that it can say so.
func (d *Device) remoteTimeout() time.Duration { return d.opts.deadline / 2 }

func (d *Device) describe(u radio.URI, version string) {
	d.info = radio.Info{
		URI: u.String(), Driver: "pluto", Model: d.board.model, Serial: d.board.serial,
		Firmware: strings.TrimSpace(d.board.firmware + " (iiod " + version + ")"),
		Notes: []string{
			"this driver was never tried on real hardware, only with Debian's iiod and an emulated board",
			"if the host hangs or dies, or this program and its guard are killed at once, while it transmits, samples end but the board leaves its oscillator and attenuator as they are: what leaks through goes on until it is unplugged, loses its power or is switched off",
			"a network over USB carries a few million samples a second in all",
		},
	}
	if len(d.board.powerdowns) == 0 {
		d.info.Notes = append(d.info.Notes, "this board cannot switch its transmit oscillator off, only its attenuator up")
	}
	for _, dir := range directions {
		if d.board.ports[dir].status.name == "" {
			d.info.Notes = append(d.info.Notes, fmt.Sprintf("this board does not tell of samples lost on %v", dir))
		}
	}
}

// Info returns what the board says of itself.
func (d *Device) Info() radio.Info { return d.info }

// talk lets f use the control connection, alone, and makes another where the last
// one broke.
func (d *Device) talk(ctx context.Context, f func(*link) error) error {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.turn }()
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return radio.ErrClosed
	}
	return d.talkNow(ctx, f)
}

// talkNow is talk for who has the turn.
func (d *Device) talkNow(ctx context.Context, f func(*link) error) error {
	if d.control == nil {
		l, _, b, err := d.connect(ctx)
		if err != nil {
			return err
		}
		if b.serial != d.board.serial || b.phy != d.board.phy || b.ports != d.board.ports {
			return errors.Join(fmt.Errorf("%w: serial %q in place of %q", ErrOtherBoard, b.serial, d.board.serial), l.close())
		}
		d.control = l
	}
	err := f(d.control)
	if d.control.broken != nil {
		d.control.drop()
		d.control = nil
	}
	return err
}

// setUp reads what the board can and has, and gives it the URI's settings.
func (d *Device) setUp(ctx context.Context) error {
	for _, dir := range directions {
		if err := d.learn(ctx, dir); err != nil {
			return err
		}
	}
	d.now[radio.Transmit].gain = d.limits[radio.Transmit].gain.Min
	if r := d.opts.rate; r != nil {
		if _, err := d.SetSampleRate(ctx, radio.Receive, *r); err != nil {
			return err
		}
	}
	for _, dir := range directions {
		if f := d.opts.tuning; f != nil && (dir == radio.Receive || d.permit.Allowed()) {
			if _, err := d.SetFrequency(ctx, dir, *f); err != nil {
				return err
			}
		}
	}
	if g := d.opts.rxGain; g != nil {
		if _, err := d.SetGain(ctx, radio.Receive, stage, *g); err != nil {
			return err
		}
	}
	if g := d.opts.txGain; g != nil && d.permit.Allowed() {
		if _, err := d.SetGain(ctx, radio.Transmit, stage, *g); err != nil {
			return err
		}
	}
	return nil
}

// learn reads limits and values of a direction.
func (d *Device) learn(ctx context.Context, dir radio.Direction) error {
	d.limits[dir] = customary[dir]
	lim, now := &d.limits[dir], &d.now[dir]
	path, local := d.board.path[dir], d.board.local[dir]
	for _, s := range []struct {
		of    channel
		name  string
		value *radio.Hertz
		limit *radio.Span[radio.Hertz]
	}{
		{local, "frequency", &now.frequency, &lim.frequency},
		{path, "sampling_frequency", &now.rate, &lim.rate},
		{path, "rf_bandwidth", &now.bandwidth, &lim.bandwidth},
	} {
		v, err := d.value(ctx, s.of, s.name)
		if err != nil {
			return err
		}
		*s.value = radio.Hertz(v)
		if err := readSpan(ctx, d, s.of, s.name, s.limit, parseSpan); err != nil {
			return err
		}
	}
	if err := d.learnGain(ctx, dir); err != nil {
		return err
	}
	return d.learnAntennas(ctx, dir)
}

// learnGain reads limits and value of a direction's gain.
func (d *Device) learnGain(ctx context.Context, dir radio.Direction) error {
	path, span, parse := d.board.path[dir], d.gains(dir), parseSpan
	if dir == radio.Transmit {
		parse = parseAttenuation
	}
	g, err := d.value(ctx, path, stage)
	if err != nil {
		return err
	}
	if err := readSpan(ctx, d, path, stage, &span, parse); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limits[dir].gain, d.now[dir].gain = span, radio.Decibels(g)
	return nil
}

// value reads a setting.
func (d *Device) value(ctx context.Context, of channel, name string) (v float64, err error) {
	text, err := d.text(ctx, of, name)
	if err != nil {
		return 0, err
	}
	if v, err = parseValue(text); err != nil {
		err = fmt.Errorf("reading %s of %s: %w", name, of.id, err)
	}
	return v, err
}

func (d *Device) text(ctx context.Context, of channel, name string) (text string, err error) {
	a, _ := of.attribute(name)
	err = d.talk(ctx, func(l *link) error {
		text, err = l.read(ctx, a)
		return err
	})
	return text, err
}

// set writes a setting and gives what the board made of it.
func (d *Device) set(ctx context.Context, of channel, name, value string) (v float64, err error) {
	a, _ := of.attribute(name)
	if err := d.write(ctx, a, value); err != nil {
		return 0, err
	}
	return d.value(ctx, of, name)
}

// write sets an attribute. Ctx ends it before the command and not while the board works
// on it: a command whose answer nobody awaits may be carried out behind those of another
// connection, and switch on again what they have switched off.
func (d *Device) write(ctx context.Context, a attribute, value string) error {
	return d.talk(ctx, func(l *link) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		awaited := context.WithoutCancel(ctx)
		if l.wait == 0 || l.wait > offTimeout { // else the link ends it, and says so
			var cancel context.CancelFunc
			awaited, cancel = context.WithTimeout(awaited, offTimeout)
			defer cancel()
		}
		return l.write(awaited, a, value)
	})
}

// patience bounds a command that has to do with the carrier.
func (d *Device) patience() time.Duration {
	if d.opts.deadline > 0 {
		return min(offTimeout, d.opts.deadline)
	}
	return offTimeout
}

// readSpan reads the limits of a setting, and leaves what is there where the board
// tells none.
func readSpan[T ~float64](ctx context.Context, d *Device, of channel, name string, s *radio.Span[T], parse func(string) (lo, step, hi float64, err error)) error {
	name += "_available"
	if _, ok := of.attribute(name); !ok {
		return nil
	}
	text, err := d.text(ctx, of, name)
	if err != nil {
		return err
	}
	lo, step, hi, err := parse(text)
	if err != nil {
		return fmt.Errorf("reading %s of %s: %w", name, of.id, err)
	}
	*s = radio.Span[T]{Min: T(lo), Max: T(hi), Step: T(step)}
	return nil
}

func (d *Device) learnAntennas(ctx context.Context, dir radio.Direction) error {
	path := d.board.path[dir]
	const name = "rf_port_select"
	if _, ok := path.attribute(name); !ok {
		return nil
	}
	now, err := d.text(ctx, path, name)
	if err != nil {
		return err
	}
	d.now[dir].antenna, d.limits[dir].antennas = now, []string{now}
	if _, ok := path.attribute(name + "_available"); !ok {
		return nil
	}
	all, err := d.text(ctx, path, name+"_available")
	if err == nil && len(strings.Fields(all)) > 0 {
		d.limits[dir].antennas = strings.Fields(all)
	}
	return err
}

// usable says whether settings can change.
func (d *Device) usable(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return radio.ErrClosed
	}
	return ctx.Err()
}

// disturb makes a change that turns the phase of a direction's stream.
func (d *Device) disturb(dir radio.Direction, change func() error) error {
	d.mu.Lock()
	rx, tx := d.rx, d.tx
	d.mu.Unlock()
	switch {
	case dir == radio.Receive && rx != nil:
		from := rx.mark()
		// Even a change that failed may have happened.
		defer func() { rx.disturbed(from) }()
	case dir == radio.Transmit && tx != nil:
		from := tx.mark()
		defer func() { tx.disturbed(from) }()
	}
	return change()
}

// nextEpoch returns an epoch that none was before.
func (d *Device) nextEpoch() radio.Epoch { return radio.Epoch(d.epochs.Add(1)) }

// Frequencies returns the range that the board tells.
func (d *Device) Frequencies(dir radio.Direction) radio.Span[radio.Hertz] {
	return d.limits[dir].frequency
}

// Frequency returns the carrier; each direction has its own.
func (d *Device) Frequency(dir radio.Direction) radio.Hertz {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now[dir].frequency
}

// SetFrequency tunes one direction, in whole hertz, and gives what the board took. The range
// of the receive gain may be another one then.
// While a transmitter is open its frequency must be permitted.
func (d *Device) SetFrequency(ctx context.Context, dir radio.Direction, f radio.Hertz) (radio.Hertz, error) {
	span := d.limits[dir].frequency
	f, err := span.Floor(fmt.Sprintf("the %v frequency of %s", dir, d.info.URI), f)
	if err != nil {
		return 0, err
	}
	f = max(radio.Hertz(math.Floor(float64(f))), span.Min)
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	if dir == radio.Transmit && d.transmits() {
		if err := d.permit.Frequency(f); err != nil {
			return 0, err
		}
	}
	f, err = d.setHertz(ctx, dir, d.board.local[dir], "frequency", f, &d.now[dir].frequency)
	if err == nil && dir == radio.Receive {
		// Another table of gains may hold there.
		err = d.learnGain(ctx, dir)
	}
	return f, err
}

// setHertz sets what turns the phase of a direction, and notes what the board took.
func (d *Device) setHertz(ctx context.Context, dir radio.Direction, of channel, name string, f radio.Hertz, now *radio.Hertz) (radio.Hertz, error) {
	var got float64
	err := d.disturb(dir, func() (err error) {
		got, err = d.set(ctx, of, name, whole(f))
		return err
	})
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	*now = radio.Hertz(got)
	return *now, nil
}

// whole writes a number of hertz.
func whole(f radio.Hertz) string { return strconv.FormatInt(int64(math.Round(float64(f))), 10) }

// transmits reports whether a transmitter is open.
func (d *Device) transmits() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tx != nil
}

// streams reports whether a stream is open.
func (d *Device) streams() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tx != nil || d.rx != nil
}

// SampleRates returns the range that the board tells; rates below 2.083 MHz need a
// filter in the board that this driver does not load.
func (d *Device) SampleRates(dir radio.Direction) radio.Span[radio.Hertz] { return d.limits[dir].rate }

// SampleRate returns the rate, which is one for both directions.
func (d *Device) SampleRate(dir radio.Direction) radio.Hertz {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now[dir].rate
}

// BufferSamples returns the number of samples of a block, at the higher of both rates:
// boards take and give whole ones.
func (d *Device) BufferSamples() radio.SampleCount {
	rate := max(d.SampleRate(radio.Receive), d.SampleRate(radio.Transmit))
	return radio.SampleCount(d.opts.blockSamples(rate))
}

// SetSampleRate sets the rate of both directions, and the analog bandwidth to it
// unless the URI has another; radio.ErrBusy while a stream is open, but for the rate
// that is there already.
func (d *Device) SetSampleRate(ctx context.Context, dir radio.Direction, rate radio.Hertz) (radio.Hertz, error) {
	rate, err := d.limits[dir].rate.Floor(fmt.Sprintf("the %v sample rate of %s", dir, d.info.URI), rate)
	if err != nil {
		return 0, err
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	if d.streams() {
		if now := d.SampleRate(dir); math.Abs(float64(now-rate)) <= 1 {
			return now, nil
		}
		return 0, fmt.Errorf("the sample rate of %s cannot change under a stream: %w", d.info.URI, radio.ErrBusy)
	}
	if _, err := d.set(ctx, d.board.path[radio.Receive], "sampling_frequency", whole(rate)); err != nil {
		return 0, err
	}
	for _, both := range directions {
		got, err := d.value(ctx, d.board.path[both], "sampling_frequency")
		if err != nil {
			return 0, err
		}
		d.mu.Lock()
		d.now[both].rate = radio.Hertz(got)
		d.mu.Unlock()
	}
	filter := d.opts.filter
	if filter == 0 {
		filter = rate
	}
	for _, both := range directions {
		if both == radio.Transmit && !d.permit.Allowed() {
			continue
		}
		if _, err := d.setFilter(ctx, both, filter); err != nil {
			return 0, err
		}
	}
	return d.SampleRate(dir), nil
}

// Filter returns the analog bandwidth of a direction.
func (d *Device) Filter(dir radio.Direction) radio.Hertz {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now[dir].bandwidth
}

// SetFilter sets the analog bandwidth of a direction, limited to what the board has,
// until the sample rate is set again.
func (d *Device) SetFilter(ctx context.Context, dir radio.Direction, bandwidth radio.Hertz) (radio.Hertz, error) {
	if !(bandwidth > 0) {
		return 0, fmt.Errorf("the %v filter of %s is %v; allowed is above 0 Hz", dir, d.info.URI, bandwidth)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	return d.setFilter(ctx, dir, bandwidth)
}

func (d *Device) setFilter(ctx context.Context, dir radio.Direction, bandwidth radio.Hertz) (radio.Hertz, error) {
	span := d.limits[dir].bandwidth
	bandwidth = max(span.Min, min(span.Max, bandwidth))
	return d.setHertz(ctx, dir, d.board.path[dir], "rf_bandwidth", bandwidth, &d.now[dir].bandwidth)
}

// GainStages returns hardwaregain, an amplification to receive and an attenuation to
// transmit.
func (d *Device) GainStages(dir radio.Direction) []radio.GainStage {
	return []radio.GainStage{{Name: stage, Span: d.gains(dir)}}
}

// Gain returns a direction's gain: that of a transmitter as it is or will be while it
// runs.
func (d *Device) Gain(dir radio.Direction, name string) (radio.Decibels, error) {
	if err := d.named(dir, name); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now[dir].gain, nil
}

// gains returns the range of a direction's gain, which to receive depends on the frequency.
func (d *Device) gains(dir radio.Direction) radio.Span[radio.Decibels] {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limits[dir].gain
}

func (d *Device) named(dir radio.Direction, name string) error {
	if name != stage {
		return fmt.Errorf("%s has no %v gain %q; allowed is %s", d.info.URI, dir, name, stage)
	}
	return nil
}

// SetGain sets a gain, rounded down to the board's steps. To receive it goes into
// manual mode. To transmit it must be permitted, and the board has it only while a
// transmitter runs.
func (d *Device) SetGain(ctx context.Context, dir radio.Direction, name string, g radio.Decibels) (radio.Decibels, error) {
	if err := d.named(dir, name); err != nil {
		return 0, err
	}
	span := d.gains(dir)
	g, err := span.Floor(fmt.Sprintf("the %v gain %s of %s", dir, name, d.info.URI), g)
	if err != nil {
		return 0, err
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	if dir == radio.Receive {
		return d.setReceiveGain(ctx, g)
	}
	if g > span.Min {
		if err := d.permit.Gain(g); err != nil {
			return 0, err
		}
	}
	d.mu.Lock()
	tx := d.tx
	d.mu.Unlock()
	if tx != nil && tx.State() == radio.Running {
		err := tx.powered(ctx, func(ctx context.Context) error {
			g, err = d.sendGain(ctx, radio.Transmit, g)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now[dir].gain = g
	return g, nil
}

func (d *Device) setReceiveGain(ctx context.Context, g radio.Decibels) (radio.Decibels, error) {
	if err := d.manual(ctx); err != nil {
		return 0, err
	}
	g, err := d.sendGain(ctx, radio.Receive, g)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now[radio.Receive].gain = g
	return g, nil
}

// sendGain sets a gain of the board, which may turn the phase.
func (d *Device) sendGain(ctx context.Context, dir radio.Direction, g radio.Decibels) (radio.Decibels, error) {
	var got float64
	err := d.disturb(dir, func() (err error) {
		got, err = d.set(ctx, d.board.path[dir], stage, strconv.FormatFloat(float64(g), 'f', -1, 64))
		return err
	})
	return radio.Decibels(got), err
}

// manual takes the receive gain out of the board's hands: a gain that changes
// within a frame spoils it.
func (d *Device) manual(ctx context.Context) error {
	d.mu.Lock()
	done := d.rxGainOK
	d.mu.Unlock()
	path := d.board.path[radio.Receive]
	a, ok := path.attribute("gain_control_mode")
	if done || !ok {
		return nil
	}
	if err := d.talk(ctx, func(l *link) error { return l.write(ctx, a, "manual") }); err != nil {
		return err
	}
	// The board keeps the gain that its control came to last.
	g, err := d.value(ctx, path, stage)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rxGainOK, d.now[radio.Receive].gain = true, radio.Decibels(g)
	return nil
}

// Antennas returns the names of the transceiver's ports; of most only one leads to a
// socket.
func (d *Device) Antennas(dir radio.Direction) []string { return d.limits[dir].antennas }

// Antenna returns the port that is chosen.
func (d *Device) Antenna(dir radio.Direction) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now[dir].antenna
}

// SetAntenna chooses a port.
func (d *Device) SetAntenna(ctx context.Context, dir radio.Direction, name string) error {
	known := false
	for _, a := range d.limits[dir].antennas {
		known = known || a == name
	}
	if !known {
		return fmt.Errorf("the %v antenna of %s is %q; allowed is %s", dir, d.info.URI, name, strings.Join(d.limits[dir].antennas, ", "))
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.usable(ctx); err != nil {
		return err
	}
	a, _ := d.board.path[dir].attribute("rf_port_select")
	err := d.disturb(dir, func() error {
		return d.talk(ctx, func(l *link) error { return l.write(ctx, a, name) })
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now[dir].antenna = name
	return nil
}

// powerdown returns the switch of the channel's transmit oscillator; ok tells whether the
// board has one.
func (d *Device) powerdown() (a attribute, ok bool) {
	return d.board.local[radio.Transmit].attribute("powerdown")
}

// off sets the greatest attenuation and switches the transmit oscillator and the
// synthesizer's tones off, of all channels: one oscillator drives two. It does as much of it as it can, in that order, whatever
// has become of the session.
func (d *Device) off() (err error) {
	for range offAttempts {
		if err = d.tryOff(); err == nil {
			d.maybeOn.Store(false)
			return nil
		}
	}
	d.maybeOn.Store(true)
	return fmt.Errorf("%w (%w)", ErrCarrier, err)
}

func (d *Device) tryOff() error {
	ctx, cancel := context.WithTimeout(context.Background(), d.patience())
	defer cancel()
	least := strconv.FormatFloat(float64(d.gains(radio.Transmit).Min), 'f', -1, 64)
	var errs []error
	set := func(a attribute, value string) {
		if err := d.talk(ctx, func(l *link) error { return l.write(ctx, a, value) }); err != nil {
			errs = append(errs, err)
		}
	}
	for _, a := range d.board.attenuators {
		set(a, least)
	}
	for _, a := range d.board.powerdowns {
		set(a, "1")
	}
	for _, a := range d.board.tones {
		set(a, "0")
	}
	return errors.Join(errs...)
}

// on switches the oscillator on and sets the gain that is wanted, if the board is
// still tuned to what is permitted: other programs can tune it, too.
func (d *Device) on(ctx context.Context) error {
	f, err := d.value(ctx, d.board.local[radio.Transmit], "frequency")
	if err != nil {
		return err
	}
	if err := d.permit.Frequency(radio.Hertz(f)); err != nil {
		return err
	}
	if a, ok := d.powerdown(); ok {
		if err := d.write(ctx, a, "0"); err != nil {
			return err
		}
	}
	d.mu.Lock()
	g := d.now[radio.Transmit].gain
	d.mu.Unlock()
	if g > d.gains(radio.Transmit).Min {
		if err := d.permit.Gain(g); err != nil {
			return err
		}
	}
	_, err = d.set(ctx, d.board.path[radio.Transmit], stage, strconv.FormatFloat(float64(g), 'f', -1, 64))
	return err
}

// watchOver has the guard watch over the board. It is called with changing held.
func (d *Device) watchOver(ctx context.Context) error {
	d.mu.Lock()
	w := d.watch
	d.mu.Unlock()
	switch {
	case d.guard == nil:
		return radio.ErrNoGuard
	case w != nil:
		return w.Err()
	}
	w, err := d.guard.Watch(ctx, d.opts.watched(), d.opts.still)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watch = w
	return nil
}

// stream makes a connection for samples.
func (d *Device) stream(ctx context.Context, dir radio.Direction) (*link, error) {
	wait := d.opts.deadline
	if d.opts.feed == strict {
		wait = 0 // time waits for other programs
	}
	l, err := dial(ctx, d.opts.address, wait)
	if err != nil {
		return nil, err
	}
	if err := l.timeout(ctx, wait/2); err != nil {
		return nil, errors.Join(fmt.Errorf("setting the board's timeout: %w", err), l.close())
	}
	device := d.board.ports[dir].device
	// Small servers have a fixed number of blocks.
	if err := l.setBuffers(ctx, device, d.opts.blocks); err != nil && !errors.Is(err, errnoInvalid) {
		return nil, errors.Join(fmt.Errorf("choosing the board's blocks to %v: %w", dir, err), l.close())
	}
	return l, nil
}

// shortfall asks whether the board has lost samples of a direction since it was last
// asked.
func (d *Device) shortfall(ctx context.Context, l *link, dir radio.Direction) (bool, error) {
	a := d.board.ports[dir].status
	if a.name == "" {
		return false, nil
	}
	text, err := l.ask(ctx, a, statusRegister)
	if err != nil {
		return false, err
	}
	flags, err := strconv.ParseUint(strings.TrimSpace(text), 0, 32)
	if err != nil {
		return false, fmt.Errorf("%w: a register was due and %q came", ErrProtocol, text)
	}
	if flags&lossFlags[dir] == 0 {
		return false, nil
	}
	return true, l.write(ctx, a, fmt.Sprintf("%s 0x%x", statusRegister, lossFlags[dir]))
}

// The status register of a converter core. What is written as 1 is cleared.
const statusRegister = "0x80000088"

// lossFlags say that samples were lost: bit 2 for received ones, bit 0 for ones
// that did not come to be sent.
var lossFlags = [2]uint64{radio.Receive: 1 << 2, radio.Transmit: 1 << 0}

// Close closes the streams and the connection.
func (d *Device) Close() error {
	d.mu.Lock()
	d.closing = true // before the streams are looked at: none is opened behind that
	rx, tx := d.rx, d.tx
	d.mu.Unlock()
	var errs []error
	if tx != nil {
		errs = append(errs, tx.Close())
	}
	if rx != nil {
		errs = append(errs, rx.Close())
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return errors.Join(errs...)
	}
	d.closed = true
	guarded := d.watch
	d.mu.Unlock()
	if guarded != nil && !d.maybeOn.Load() {
		guarded.Release()
	}
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.control != nil {
		ctx, cancel := context.WithTimeout(context.Background(), offTimeout)
		defer cancel()
		errs = append(errs, d.control.leave(ctx))
		d.control = nil
	}
	return errors.Join(errs...)
}
