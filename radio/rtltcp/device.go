package rtltcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"ringwave/radio"
	"ringwave/radio/blocks"
	"ringwave/radio/life"
	"ringwave/radio/rtlsdr"
	"ringwave/radio/usb"
)

// gainStage is the one gain there is, as in package rtlsdr.
const gainStage = "TUNER"

// settings are what the server is told.
type settings struct {
	frequency, rate radio.Hertz
	auto            bool
	gain            radio.Decibels
	ppm             int
	agc, bias, test bool
}

// messages returns all settings as commands.
func (s settings) messages() []byte {
	var m []byte
	add := func(c command, parameter uint32) { m = append(m, message(c, parameter)...) }
	add(setBiasTee, bit(s.bias))
	add(setRate, uint32(math.Round(float64(s.rate))))
	add(setPPM, uint32(int32(s.ppm)))
	add(setFrequency, uint32(s.frequency))
	add(setAGC, bit(s.agc))
	add(setTest, bit(s.test))
	return append(m, s.gains()...)
}

// gains returns the commands for the gain.
func (s settings) gains() []byte {
	if s.auto {
		return message(setGainMode, 0)
	}
	return append(message(setGainMode, 1), message(setGain, uint32(math.Round(float64(s.gain)*10)))...)
}

func bit(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

// device is a board behind a server.
type device struct {
	uri     string
	address string
	dialer  Dialer
	options options

	life life.Life // ends with Close
	// link is the present connection; the one who has turn may replace it.
	link   atomic.Pointer[link]
	epochs atomic.Uint64

	// turn is held by the one who talks to the server, and guards what follows.
	turn     chan struct{}
	settings settings
	rx       *blocks.Receiver
}

// talk runs f while nobody else talks to the server. f's context ends with ctx and
// with the device.
func (d *device) talk(ctx context.Context, dir radio.Direction, f func(ctx context.Context) error) error {
	if dir != radio.Receive {
		return fmt.Errorf("%s cannot %v; allowed is receive", d.uri, dir)
	}
	ctx, release := d.life.Join(ctx)
	defer release()
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return d.ended(ctx)
	}
	if ctx.Err() != nil || d.life.Err() != nil {
		return d.ended(ctx)
	}
	err := f(ctx)
	if closed := d.life.Err(); err != nil && closed != nil {
		return closed
	}
	return err
}

// ended returns what a done ctx means.
func (d *device) ended(ctx context.Context) error {
	if err := d.life.Err(); err != nil {
		return err
	}
	return ctx.Err()
}

// locked runs f while nobody changes what turn guards.
func (d *device) locked(f func()) {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	f()
}

// send sends commands. They are among the settings, so that a new connection, where
// it needs one, sends them with the others.
func (d *device) send(ctx context.Context, messages []byte) error {
	l := d.link.Load()
	err := l.send(ctx, messages)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := d.connect(ctx); err != nil {
		return fmt.Errorf("connecting %s again: %w", d.uri, err)
	}
	return nil
}

// connect replaces the connection by a new one that knows all settings.
func (d *device) connect(ctx context.Context) error {
	if old := d.link.Load(); old != nil {
		_ = old.end() // whatever it has to say, it is lost
	}
	l, err := dial(ctx, d.dialer, d.address)
	if err != nil {
		return err
	}
	if err := l.send(ctx, d.settings.messages()); err != nil {
		return errors.Join(err, l.end())
	}
	d.link.Store(l)
	return nil
}

// Info says what the server says of the board.
func (d *device) Info() radio.Info {
	return radio.Info{
		URI: d.uri, Driver: "rtl_tcp", Model: "board with an RTL2832U behind rtl_tcp at " + d.address,
		Revision: d.link.Load().tuner.String(), Notes: notes,
	}
}

var notes = []string{
	"this driver was tried with rtl_tcp in front of an emulated board only, never with a real one",
	"the server confirms no setting and does not say when it drops samples",
}

// Close ends the connection.
func (d *device) Close() error {
	var rx *blocks.Receiver
	d.life.End(radio.ErrClosed)
	bias := false
	d.locked(func() { rx, bias = d.rx, d.settings.bias })
	var err error
	if rx != nil {
		err = rx.Close()
	}
	if bias {
		d.biasOff()
	}
	return errors.Join(err, d.link.Load().end())
}

// biasOff takes the power off the antenna's cable, which the server would leave there. Where
// the server is gone nobody can.
func (d *device) biasOff() {
	_ = d.link.Load().send(context.Background(), message(setBiasTee, 0)) // which has a patience of its own
}

// Frequencies returns what R820T and R828D reach, whatever the filter.
func (d *device) Frequencies(dir radio.Direction) radio.Span[radio.Hertz] {
	if dir != radio.Receive {
		return radio.Span[radio.Hertz]{}
	}
	return frequencies
}

// frequencies are within what the tuners reach at any sample rate.
var frequencies = radio.Span[radio.Hertz]{Min: 27e6, Max: 1765e6, Step: 1}

// Frequency returns the carrier that was asked for last.
func (d *device) Frequency(dir radio.Direction) (f radio.Hertz) {
	if dir == radio.Receive {
		d.locked(func() { f = d.settings.frequency })
	}
	return f
}

// SetFrequency asks for a carrier of whole hertz.
func (d *device) SetFrequency(ctx context.Context, dir radio.Direction, f radio.Hertz) (radio.Hertz, error) {
	f, err := frequencies.Floor("the frequency of "+d.uri, f)
	if err != nil {
		return 0, err
	}
	err = d.talk(ctx, dir, func(ctx context.Context) error {
		if d.rx != nil {
			d.rx.Unsettle()
			defer func() { d.rx.Settle(ringLength + 2 + d.settling()) }()
		}
		d.settings.frequency = f
		return d.send(ctx, message(setFrequency, uint32(f)))
	})
	if err != nil {
		return 0, err
	}
	return f, nil
}

// serverTransfer is what rtl_tcp fetches from its board at once, in bytes. All of a
// transfer arrives when the last of it was made, which at low rates takes longer than
// all the rest of the way.
const serverTransfer = 16 * 32 * 512

// settling returns the number of blocks that may be on their way.
func (d *device) settling() int {
	bytes := 2 * float64(d.settings.rate) * d.options.settle.Seconds()
	return int(math.Ceil((serverTransfer + bytes) / blockSize))
}

// SampleRates returns the lowest and the highest rate; those between 300 kHz and
// 900.001 kHz are not allowed.
func (d *device) SampleRates(dir radio.Direction) radio.Span[radio.Hertz] {
	if dir != radio.Receive {
		return radio.Span[radio.Hertz]{}
	}
	return radio.Span[radio.Hertz]{Min: rtlsdr.MinRate, Max: rtlsdr.MaxRate}
}

// SampleRate returns the rate that the board makes of the one asked for last.
func (d *device) SampleRate(dir radio.Direction) (rate radio.Hertz) {
	if dir == radio.Receive {
		d.locked(func() { rate, _ = rtlsdr.NearestRate(d.settings.rate) })
	}
	return rate
}

// SetSampleRate asks for a rate of whole hertz. It fails with ErrBusy while a stream
// is open.
func (d *device) SetSampleRate(ctx context.Context, dir radio.Direction, rate radio.Hertz) (radio.Hertz, error) {
	rate = radio.Hertz(math.Round(float64(rate)))
	taken, err := rtlsdr.NearestRate(rate)
	if err != nil {
		return 0, fmt.Errorf("setting %s: %w", d.uri, err)
	}
	err = d.talk(ctx, dir, func(ctx context.Context) error {
		if d.rx != nil {
			return fmt.Errorf("setting the sample rate of %s: %w: a stream; close it first", d.uri, radio.ErrBusy)
		}
		d.settings.rate = rate
		return d.send(ctx, message(setRate, uint32(rate)))
	})
	if err != nil {
		return 0, err
	}
	return taken, nil
}

// GainStages returns the one stage that there is.
func (d *device) GainStages(dir radio.Direction) []radio.GainStage {
	if dir != radio.Receive {
		return nil
	}
	return []radio.GainStage{{Name: gainStage, Span: radio.Span[radio.Decibels]{Max: rtlsdr.MaxGain}}}
}

func (d *device) stage(name string) error {
	if name != gainStage {
		return fmt.Errorf("the gain stage of %s is %q; allowed is %s", d.uri, name, gainStage)
	}
	return nil
}

// Gain returns the gain that was asked for last; it fails while it is automatic.
func (d *device) Gain(dir radio.Direction, name string) (g radio.Decibels, err error) {
	if err := d.stage(name); err != nil {
		return 0, err
	}
	err = d.talk(context.Background(), dir, func(context.Context) error {
		if d.settings.auto {
			return fmt.Errorf("the gain of %s is automatic", d.uri)
		}
		g = d.settings.gain
		return nil
	})
	return g, err
}

// SetGain asks for the largest gain of the tuner's list that is not above g, and
// ends automatic gain.
func (d *device) SetGain(ctx context.Context, dir radio.Direction, name string, g radio.Decibels) (radio.Decibels, error) {
	if err := d.stage(name); err != nil {
		return 0, err
	}
	taken, err := rtlsdr.FloorGain(g)
	if err != nil {
		return 0, fmt.Errorf("setting %s: %w", d.uri, err)
	}
	err = d.talk(ctx, dir, func(ctx context.Context) error {
		d.settings.auto, d.settings.gain = false, taken
		return d.send(ctx, d.settings.gains())
	})
	if err != nil {
		return 0, err
	}
	return taken, nil
}

// SetAutoGain lets the tuner set its gain: rtlsdr.AutoGainControl.
func (d *device) SetAutoGain(ctx context.Context, dir radio.Direction) error {
	return d.talk(ctx, dir, func(ctx context.Context) error {
		d.settings.auto = true
		return d.send(ctx, d.settings.gains())
	})
}

// OpenReceiver returns the one stream that there is.
func (d *device) OpenReceiver(ctx context.Context) (radio.Receiver, error) {
	var rx *blocks.Receiver
	err := d.talk(ctx, radio.Receive, func(context.Context) error {
		if d.rx != nil {
			return fmt.Errorf("opening a stream of %s: %w", d.uri, radio.ErrBusy)
		}
		rx = blocks.NewReceiver(blocks.Config{
			Format: blocks.CU8(), Name: d.uri,
			Start:   d.start,
			Epoch:   func() radio.Epoch { return radio.Epoch(d.epochs.Add(1)) },
			Silence: d.options.deadline,
			Closed:  func() { d.locked(func() { d.rx = nil }) },
		})
		d.rx = rx
		return nil
	})
	if err != nil {
		return nil, err // not a nil receiver in an interface
	}
	return rx, nil
}

// start drops what has come so far. What is still on its way may be of before the
// last retune.
func (d *device) start(ctx context.Context) (blocks.Source, error) {
	s := &source{d: d, tried: time.Now()}
	err := d.talk(ctx, radio.Receive, func(ctx context.Context) error {
		l := d.link.Load()
		if l.lost.Load() {
			if err := d.connect(ctx); err != nil {
				return fmt.Errorf("connecting %s again: %w", d.uri, err)
			}
			l = d.link.Load()
		}
		drop(l.in)
		s.link = l
		if d.rx != nil {
			d.rx.Settle(d.settling())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// drop takes the blocks that are there.
func drop(in usb.InStream) {
	for {
		if _, err := in.Next(life.Ended()); err != nil {
			return
		}
	}
}

// source returns the blocks of one connection after the other.
type source struct {
	d    *device
	life life.Life // ends with Close
	link *link     // that of the last block
	// tried is when a connection was last made or tried.
	tried time.Time
	// restarted tells that no block of link was given, and some of another were or
	// may have been.
	restarted bool
}

// Next returns the next block, and connects again where there is none.
func (s *source) Next(ctx context.Context) (blocks.Block, error) {
	ctx, release := s.life.Join(ctx)
	defer release()
	for {
		b, err := s.link.in.Next(ctx)
		if err == nil {
			restarted := s.restarted
			s.restarted = false
			return blocks.Block{Data: b.Data, Lost: b.Lost, Restarted: restarted}, nil
		}
		if ctx.Err() != nil {
			return blocks.Block{}, ctx.Err()
		}
		if err := s.reconnect(ctx, err); err != nil {
			return blocks.Block{}, err
		}
		s.restarted = true
	}
}

// retryAfter is the least time between two attempts to connect: a server that ends
// every connection is not to be flooded.
const retryAfter = 200 * time.Millisecond

// reconnect waits until there is another connection, and when ctx is done tells what
// kept it, at first why the last one ended.
func (s *source) reconnect(ctx context.Context, why error) error {
	for {
		if err := pause(ctx, time.Until(s.tried.Add(retryAfter))); err != nil {
			return fmt.Errorf("connecting again: %w", why)
		}
		s.tried = time.Now()
		why = s.d.talk(ctx, radio.Receive, func(ctx context.Context) error {
			if s.d.link.Load() != s.link {
				return nil // somebody has connected
			}
			return s.d.connect(ctx)
		})
		switch {
		case why == nil:
			s.link = s.d.link.Load()
			return nil
		case errors.Is(why, radio.ErrClosed):
			return why
		}
	}
}

// pause waits, or fails when ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends a Next that waits.
func (s *source) Close() error {
	s.life.End(radio.ErrClosed)
	return nil
}
