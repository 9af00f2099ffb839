package rtlsdr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"ringwave/radio"
	"ringwave/radio/blocks"
	"ringwave/radio/usb"
)

// AutoGainControl is a device that can set its gain by itself; SetGain ends it.
type AutoGainControl interface {
	radio.GainControl
	SetAutoGain(ctx context.Context, d radio.Direction) error
}

// gainStage is the one gain there is: the first amplifier and the mixer together.
const gainStage = "TUNER"

// device is an open board.
type device struct {
	info    radio.Info
	board   usb.Transport
	options options

	mu     sync.Mutex // guards all below, and requests
	closed bool
	regs   registers
	tuner  tuner
	// intermediate is where the tuner puts the frequency; ifTaken is what the
	// demodulator shifts by.
	intermediate, ifTaken float64
	frequency             radio.Hertz // 0 while none was set
	rate                  radio.Hertz
	gain                  int // tenths of dB
	auto                  bool
	rx                    *blocks.Receiver

	epochs atomic.Uint64
}

// open brings up a board.
func open(board usb.Transport, info radio.Info, o options) (*device, error) {
	d := &device{info: info, board: board, options: o, intermediate: defaultIF}
	d.regs.board = board
	d.tuner.regs = &d.regs
	if err := d.bringUp(); err != nil {
		return nil, fmt.Errorf("opening %s: %w", info.URI, err)
	}
	d.info.Revision = d.tuner.model.String()
	return d, nil
}

func (d *device) bringUp() error {
	// After a crash of another program the first request may fail; what counts is
	// the second, which is the same.
	d.regs.write(usbBlock, usbSysctl, 0x09)
	if err := d.regs.take(); errors.Is(err, usb.ErrUnplugged) {
		return err
	}
	d.regs.initDemod()
	d.regs.biasTeeOff()
	if err := d.regs.take(); err != nil {
		return fmt.Errorf("%w; if the board is stuck, unplug it and plug it in again", err)
	}
	if err := d.startTuner(); err != nil {
		return err
	}
	if d.options.direct != throughTuner {
		d.goAroundTuner()
	}
	if err := d.setRate(d.options.rate); err != nil {
		return err
	}
	f, err := d.frequencies().Floor("the frequency", d.options.tuning)
	if err != nil {
		return err
	}
	if _, err := d.tune(f); err != nil {
		return err
	}
	if d.options.direct == throughTuner {
		d.auto, d.gain = d.options.auto, d.options.gain
		d.sendGain()
	}
	d.regs.setSamples(d.options)
	if d.options.bias {
		d.regs.biasTeeOn()
	}
	return d.regs.take()
}

// startTuner finds the tuner and brings it up.
func (d *device) startTuner() error {
	r := &d.regs
	r.repeater(true)
	switch {
	case r.present(r820t.address(), tunerID):
		d.tuner.model = r820t
	case r.present(r828d.address(), tunerID):
		d.tuner.model = r828d
	default:
		if err := r.take(); err != nil {
			return err
		}
		return errNoTuner
	}
	d.tuner.crystal = corrected(d.tuner.model.crystal(), d.options.ppm)
	d.ifTaken = r.useR82xx(d.crystal())
	err := d.tuner.init()
	r.repeater(false)
	return r.orTake(err)
}

// goAroundTuner samples an input of the RTL2832U itself.
func (d *device) goAroundTuner() {
	d.regs.repeater(true)
	d.tuner.standby()
	d.regs.repeater(false)
	d.regs.bypassTuner(d.options.direct)
}

// crystal returns that of the demodulator as corrected.
func (d *device) crystal() float64 { return corrected(demodCrystal, d.options.ppm) }

func corrected(crystal float64, ppm int) float64 { return crystal * (1 + float64(ppm)*1e-6) }

// Info says what the board is, and whether its synthesizer has locked: of one that has not,
// others' drivers warn, and go on.
func (d *device) Info() radio.Info {
	d.mu.Lock()
	defer d.mu.Unlock()
	info := d.info
	if d.tuner.unlocked && d.options.direct == throughTuner {
		info.Notes = append(slices.Clone(info.Notes), fmt.Sprintf("the tuner's synthesizer does not lock at %v: it may receive at another frequency, or nothing but noise; try another frequency", d.frequency))
	}
	return info
}

// Close switches the board off and gives it back.
func (d *device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	rx := d.rx
	d.mu.Unlock()
	var failed error
	if rx != nil {
		failed = rx.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.options.bias {
		d.regs.biasTeeOff()
	}
	d.regs.repeater(true)
	d.tuner.standby()
	d.regs.repeater(false)
	d.regs.powerOff()
	err := d.regs.take()
	if errors.Is(err, usb.ErrUnplugged) {
		err = nil // off it is
	}
	return errors.Join(failed, err, d.board.Close())
}

// locked runs f with the board's lock, unless the board is closed or the direction
// is not there.
func (d *device) locked(ctx context.Context, dir radio.Direction, f func() error) error {
	if dir != radio.Receive {
		return fmt.Errorf("%s cannot %v; allowed is receive", d.info.URI, dir)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return radio.ErrClosed
	}
	return f()
}

// Frequencies returns what the synthesizer reaches with the filter that is set, or
// what the converter does.
func (d *device) Frequencies(dir radio.Direction) radio.Span[radio.Hertz] {
	if dir != radio.Receive {
		return radio.Span[radio.Hertz]{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.frequencies()
}

func (d *device) frequencies() radio.Span[radio.Hertz] {
	if d.options.direct != throughTuner {
		return radio.Span[radio.Hertz]{Max: demodCrystal / 2}
	}
	return radio.Span[radio.Hertz]{
		Min: radio.Hertz(math.Ceil(minVCO/maxDivider - d.intermediate)),
		Max: radio.Hertz(math.Ceil(maxVCO/2-d.intermediate) - 1),
	}
}

// Frequency returns the carrier.
func (d *device) Frequency(dir radio.Direction) radio.Hertz {
	if dir != radio.Receive {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.frequency
}

// SetFrequency tunes to the frequency nearest to f.
func (d *device) SetFrequency(ctx context.Context, dir radio.Direction, f radio.Hertz) (taken radio.Hertz, err error) {
	err = d.locked(ctx, dir, func() error {
		if f, err = d.frequencies().Floor("the frequency of "+d.info.URI, f); err != nil {
			return err
		}
		d.unsettle()
		defer d.settle()
		taken, err = d.tune(f)
		return err
	})
	return taken, err
}

// tune sets the carrier by the tuner, or by the demodulator where there is none.
func (d *device) tune(f radio.Hertz) (radio.Hertz, error) {
	if d.options.direct != throughTuner {
		d.ifTaken = d.regs.setIF(float64(f), d.crystal())
		if err := d.regs.take(); err != nil {
			return 0, fmt.Errorf("tuning %s to %v: %w", d.info.URI, f, err)
		}
		d.frequency = radio.Hertz(d.ifTaken)
		return d.frequency, nil
	}
	d.regs.repeater(true)
	lo, err := d.tuner.tune(float64(f), d.intermediate)
	d.regs.repeater(false)
	if err := d.regs.orTake(err); err != nil {
		return 0, fmt.Errorf("tuning %s to %v: %w", d.info.URI, f, err)
	}
	d.frequency = radio.Hertz(lo - d.ifTaken)
	return d.frequency, nil
}

func (d *device) unsettle() {
	if d.rx != nil {
		d.rx.Unsettle()
	}
}

func (d *device) settle() {
	if d.rx != nil {
		// What can lie between board and reader: the board's buffer, the queue, the
		// ring, and a transfer in the hands of either end. The rate, and with it the
		// size of a transfer, stays as long as there is a stream.
		o, transfer := d.options, d.options.transferAt(d.rate)
		d.rx.Settle((maxBoardBuffer+transfer-1)/transfer + o.queue + o.ringOf(transfer) + 2)
	}
}

// SampleRates returns the lowest and the highest rate; none between 300 kHz and
// 900.001 kHz is allowed.
func (d *device) SampleRates(dir radio.Direction) radio.Span[radio.Hertz] {
	if dir != radio.Receive {
		return radio.Span[radio.Hertz]{}
	}
	return radio.Span[radio.Hertz]{Min: MinRate, Max: MaxRate}
}

func (d *device) SampleRate(dir radio.Direction) radio.Hertz {
	if dir != radio.Receive {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rate
}

// BufferSamples returns the number of samples of a transfer at the present rate: whole
// ones are received.
func (d *device) BufferSamples() radio.SampleCount {
	d.mu.Lock()
	defer d.mu.Unlock()
	return radio.SampleCount(d.options.transferAt(d.rate) / 2)
}

// SetSampleRate sets the rate nearest to what is asked for, and the tuner's filter
// with it, which retunes. It fails with ErrBusy while a stream is open: its
// indices count sample periods, of one length.
func (d *device) SetSampleRate(ctx context.Context, dir radio.Direction, rate radio.Hertz) (taken radio.Hertz, err error) {
	err = d.locked(ctx, dir, func() error {
		if d.rx != nil {
			return fmt.Errorf("setting the sample rate of %s: %w: a stream; close it first", d.info.URI, radio.ErrBusy)
		}
		err := d.setRate(rate)
		taken = d.rate
		return err
	})
	if err != nil {
		return 0, err
	}
	return taken, nil
}

func (d *device) setRate(rate radio.Hertz) error {
	ratio, actual, err := planRate(rate)
	if err != nil {
		return fmt.Errorf("setting %s: %w", d.info.URI, err)
	}
	if d.options.direct == throughTuner {
		if err := d.setChannel(actual); err != nil {
			return fmt.Errorf("setting the sample rate of %s: %w", d.info.URI, err)
		}
	}
	d.regs.setRatio(ratio, d.options.ppm)
	if err := d.regs.take(); err != nil {
		return fmt.Errorf("setting the sample rate of %s: %w", d.info.URI, err)
	}
	d.rate = actual
	return nil
}

// setChannel sets the tuner's filter for a sample rate, and what depends on it.
func (d *device) setChannel(rate radio.Hertz) error {
	bandwidth := math.Floor(float64(rate))
	if d.options.filter > 0 {
		bandwidth = d.options.filter
	}
	c := planChannel(bandwidth)
	d.regs.repeater(true)
	d.tuner.setChannel(c)
	d.intermediate = c.intermediate
	d.ifTaken = d.regs.setIF(c.intermediate, d.crystal())
	var err error
	if d.frequency > 0 { // not while the board is brought up
		// With the new filter the tuner may reach less far.
		span := d.frequencies()
		_, err = d.tune(min(max(d.frequency, span.Min), span.Max))
	}
	d.regs.repeater(false)
	return err
}

// GainStages returns the one stage that there is.
func (d *device) GainStages(dir radio.Direction) []radio.GainStage {
	if dir != radio.Receive || d.options.direct != throughTuner {
		return nil
	}
	return []radio.GainStage{{Name: gainStage, Span: radio.Span[radio.Decibels]{Max: MaxGain}}}
}

func decibels(tenths int) radio.Decibels { return radio.Decibels(tenths) / 10 }

// stage fails where there is no gain of that name.
func (d *device) stage(name string) error {
	switch {
	case d.options.direct != throughTuner:
		return fmt.Errorf("%s has no gain: it samples directly", d.info.URI)
	case name != gainStage:
		return fmt.Errorf("the gain stage of %s is %q; allowed is %s", d.info.URI, name, gainStage)
	}
	return nil
}

// Gain returns the gain; it fails while it is automatic.
func (d *device) Gain(dir radio.Direction, name string) (g radio.Decibels, err error) {
	err = d.locked(context.Background(), dir, func() error {
		if err := d.stage(name); err != nil {
			return err
		}
		if d.auto {
			return fmt.Errorf("the gain of %s is automatic", d.info.URI)
		}
		g = decibels(d.gain)
		return nil
	})
	return g, err
}

// SetGain sets the largest gain of the tuner's list that is not above g, and ends
// automatic gain.
func (d *device) SetGain(ctx context.Context, dir radio.Direction, name string, g radio.Decibels) (taken radio.Decibels, err error) {
	err = d.locked(ctx, dir, func() error {
		if err := d.stage(name); err != nil {
			return err
		}
		tenths, err := floorGain(g)
		if err != nil {
			return fmt.Errorf("setting %s: %w", d.info.URI, err)
		}
		d.auto, d.gain = false, tenths
		d.sendGain()
		taken = decibels(tenths)
		return d.sent("setting the gain")
	})
	if err != nil {
		return 0, err
	}
	return taken, nil
}

// SetAutoGain lets the tuner set its gain: AutoGainControl.
func (d *device) SetAutoGain(ctx context.Context, dir radio.Direction) error {
	return d.locked(ctx, dir, func() error {
		if err := d.stage(gainStage); err != nil {
			return err
		}
		d.auto = true
		d.sendGain()
		return d.sent("setting the gain")
	})
}

func (d *device) sent(what string) error {
	if err := d.regs.take(); err != nil {
		return fmt.Errorf("%s of %s: %w", what, d.info.URI, err)
	}
	return nil
}

func (d *device) sendGain() {
	d.regs.repeater(true)
	if d.auto {
		d.tuner.autoGain()
	} else {
		d.tuner.setGain(d.gain)
	}
	d.regs.repeater(false)
}

// MaxGain is the largest gain of the tuners' list.
const MaxGain radio.Decibels = 49.6

// FloorGain returns the largest gain of the tuners' list that is not above g. It
// fails where g is outside 0 to MaxGain.
func FloorGain(g radio.Decibels) (radio.Decibels, error) {
	tenths, err := floorGain(g)
	return decibels(tenths), err
}

func floorGain(g radio.Decibels) (tenths int, err error) {
	if _, err := (radio.Span[radio.Decibels]{Max: MaxGain}).Floor("the gain", g); err != nil {
		return 0, err
	}
	i, exact := slices.BinarySearch(gains[:], int(math.Floor(float64(g)*10+1e-6)))
	if !exact {
		i--
	}
	return gains[i], nil
}

const (
	// bulkIn is the endpoint of samples.
	bulkIn = 0x81
	// maxBoardBuffer is more than the board holds itself, in bytes; how much that
	// is nobody has published.
	maxBoardBuffer = 65536
)

// OpenReceiver returns the one stream that there is.
func (d *device) OpenReceiver(ctx context.Context) (radio.Receiver, error) {
	var rx *blocks.Receiver
	err := d.locked(ctx, radio.Receive, func() error {
		if d.rx != nil {
			return fmt.Errorf("opening a stream of %s: %w", d.info.URI, radio.ErrBusy)
		}
		rx = blocks.NewReceiver(blocks.Config{
			Format: blocks.CU8(), Name: d.info.URI, Start: d.start, Epoch: d.nextEpoch, Silence: d.options.deadline,
			Closed: func() { d.forget(rx) },
		})
		d.rx = rx
		return nil
	})
	if err != nil {
		return nil, err // not a nil receiver in an interface
	}
	return rx, nil
}

func (d *device) nextEpoch() radio.Epoch { return radio.Epoch(d.epochs.Add(1)) }

// start lets samples flow.
func (d *device) start(ctx context.Context) (blocks.Source, error) {
	var in usb.InStream
	err := d.locked(ctx, radio.Receive, func() (err error) {
		d.regs.emptyBuffer()
		if err := d.sent("starting a stream"); err != nil {
			return err
		}
		size := d.options.transferAt(d.rate)
		in, err = d.board.OpenIn(usb.InConfig{
			Endpoint: bulkIn, Size: size, Count: d.options.queue, Ring: d.options.ringOf(size), Hold: d.options.hold,
		})
		if err != nil {
			return fmt.Errorf("starting a stream of %s: %w", d.info.URI, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stream{in, d}, nil
}

// forget makes room for another stream when rx is closed.
func (d *device) forget(rx *blocks.Receiver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rx == rx {
		d.rx = nil
	}
}

// stop ends the flow of samples: nobody fetches them any more.
func (d *device) stop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.regs.write(usbBlock, usbEPACtl, 0x10, 0x02)
	if err := d.sent("stopping a stream"); !errors.Is(err, usb.ErrUnplugged) {
		return err
	}
	return nil
}

// stream is a usb.InStream as a source.
type stream struct {
	in usb.InStream
	d  *device
}

func (b stream) Next(ctx context.Context) (blocks.Block, error) {
	block, err := b.in.Next(ctx)
	return blocks.Block{Data: block.Data, Lost: block.Lost}, err
}

// Close stops the board first: one that still sends would go on filling what is
// cancelled.
func (b stream) Close() error { return errors.Join(b.d.stop(), b.in.Close()) }
