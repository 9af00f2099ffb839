package hackrf

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"ringwave/radio"
	"ringwave/radio/life"
	"ringwave/radio/usb"
)

// offAttempts is how often switching off is tried.
const offAttempts = 3

// Device is an open board: a radio.Device that receives and transmits, with
// control of frequency, rate, gains, clock and trigger. It is safe for use by
// several goroutines.
type Device struct {
	transport usb.Transport
	board     usb.Listed
	api       API
	opts      options
	permit    radio.TransmitPermit
	guard     radio.Guard
	session   *life.Life
	info      radio.Info
	flush     int  // bytes that push samples through the board's buffers
	pro       bool // a HackRF Pro

	epochs  atomic.Uint64 // the last one given out
	maybeOn atomic.Bool   // the board could not be switched off

	// mu guards what follows. It is held over requests that belong together, and
	// taken before the lock of a stream.
	mu       sync.Mutex
	closed   bool
	stream   stream // the open one, or nil
	tuning   radio.Hertz
	explicit bool // tuned in parts, not to be sent with
	rate     radio.Hertz
	filter   uint32
	gains    map[gain]radio.Decibels
	amp      bool // as the board has it
	bias     bool
	clock    string
	trigger  string
	// watch is the guard's, from the first transmitter on; nil before.
	watch radio.Watch
}

// stream is a receiver or transmitter, as its device sees it.
type stream interface {
	radio.Stream
	direction() radio.Direction
	// counted returns the board's byte count now, as far as it can be known.
	counted() counted
	// disturbed begins an epoch for the stretch between two counts, and another
	// behind it.
	disturbed(from, to counted)
}

func newDevice(t usb.Transport, board usb.Listed, opts options, o *Opener) *Device {
	return &Device{
		transport: t, board: board, api: API(board.Identity.Release), opts: opts, permit: o.permit, guard: o.guard, session: o.session,
		flush: flushBytes, gains: maps.Clone(opts.gains), bias: opts.bias, clock: opts.clock, trigger: opts.trigger,
	}
}

// setUp brings the board into a known state: whoever had it before may have left
// it transmitting, with any settings.
func (d *Device) setUp(ctx context.Context) error {
	// First, because asking changes how the board flushes.
	if d.api >= apiBufferSize {
		if err := d.askBuffers(); err != nil {
			return err
		}
	}
	if err := d.off(); err != nil {
		return err
	}
	if err := d.identify(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.setRate(d.opts.rate); err != nil {
		return err
	}
	if err := d.setFilter(d.opts.filter); err != nil {
		return err
	}
	if err := d.tune(d.opts.tuning); err != nil {
		return err
	}
	if err := d.setUpGains(); err != nil {
		return err
	}
	return d.setUpPorts(ctx)
}

func (d *Device) setUpGains() error {
	if err := d.send(setAmp, 0, 0, nil); err != nil {
		return err
	}
	if total := d.gains[txvga] + d.gains[txAmp]; total > 0 {
		if err := d.permit.Gain(total); err != nil {
			return err
		}
	}
	for _, g := range []gain{lna, vga, txvga} {
		v, err := g.span().Floor("the gain "+g.name(), d.gains[g])
		if err != nil {
			return err
		}
		d.gains[g] = v
		if err := d.sendGain(g, v); err != nil {
			return err
		}
	}
	// The amplifier's are sent when a stream starts.
	for _, g := range []gain{rxAmp, txAmp} {
		d.gains[g], _ = g.span().Floor("", d.gains[g]) // in the span by parseOptions
	}
	return nil
}

func (d *Device) setUpPorts(ctx context.Context) error {
	if d.bias {
		if err := d.permit.Bias(); err != nil {
			return err
		}
	}
	if hasBias(d.board.Identity.Product) {
		if err := d.send(setBias, 0, 0, nil); err != nil {
			return err
		}
	} else if d.bias {
		return fmt.Errorf("%s cannot power an antenna; allowed is bias=off", d.info.Model)
	}
	if d.opts.clkout != "" {
		if err := d.send(setClockOut, bit(d.opts.clkout == "on"), 0, nil); err != nil {
			return err
		}
	}
	if d.trigger != "" {
		if err := d.triggers(); err != nil {
			return err
		}
	}
	return d.requireClock(ctx)
}

func (d *Device) askBuffers() error {
	b, err := d.ask(getBufferBytes, 0, 0, 4)
	if err != nil {
		return err
	}
	n := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
	if n < 1 || n > maxFlushBytes {
		return fmt.Errorf("the board says that its buffers have %d bytes; allowed is 1 to %d", n, maxFlushBytes)
	}
	d.flush = int(n)
	return nil
}

// identify asks what the board is.
func (d *Device) identify() error {
	id, err := d.ask(boardID, 0, 0, 1)
	if err != nil {
		return err
	}
	d.pro = id[0] == boardPro
	version := make([]byte, 255)
	n, err := d.control(versionString, 0, 0, version)
	if err != nil {
		return err
	}
	d.info = radio.Info{
		URI:      radio.URI{Scheme: "hackrf", Name: d.board.Serial}.String(),
		Driver:   "hackrf",
		Model:    model(d.board.Identity.Product, id[0]),
		Serial:   d.board.Serial,
		Firmware: fmt.Sprintf("%s (USB interface %v)", printable(version[:n]), d.api),
		Notes: []string{
			"this driver was tested against an emulated board and was never tried on a real one",
			"if the host hangs, or this program and its guard are killed at once, while it transmits, the board sends no samples for longer than limit_ms but leaves its transmit chain on: what leaks of its oscillator goes on until it is unplugged, loses its power or is switched off",
		},
	}
	if d.api < apiM0 {
		d.info.Notes = append(d.info.Notes,
			fmt.Sprintf("firmware with USB interface %v does not tell of lost samples, of the clock input, nor does it stop sending when samples stop coming: update it to 2022.09 or later", d.api))
		return nil
	}
	r, err := d.ask(boardRevision, 0, 0, 1)
	if err != nil {
		return err
	}
	d.info.Revision = revision(r[0])
	return nil
}

// printable leaves of what a board says what can be printed.
func printable(b []byte) string {
	for i, c := range b {
		if c < ' ' || c > '~' {
			return string(b[:i])
		}
	}
	return string(b)
}

// Info tells what the board is.
func (d *Device) Info() radio.Info { return d.info }

// API returns the version of the board's USB interface.
func (d *Device) API() API { return d.api }

// BufferSamples returns the number of samples that the board's own buffers hold:
// what is sent comes on air when so many more were handed over.
func (d *Device) BufferSamples() radio.SampleCount { return radio.SampleCount(d.flush / sampleBytes) }

// Close ends the stream, switches the board off and gives it back. Error
// ErrCarrier says that it could not be switched off.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	s := d.stream
	d.mu.Unlock()
	var err error
	if s != nil {
		err = s.Close()
	}
	if d.watch != nil && !d.maybeOn.Load() {
		d.watch.Release()
	}
	return errors.Join(err, d.transport.Close())
}

// OpenReceiver returns the stream of what the board receives: radio.Bounded,
// radio.Ranged and radio.LossChecker.
func (d *Device) OpenReceiver(context.Context) (radio.Receiver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.free(); err != nil {
		return nil, err
	}
	r := newReceiver(d)
	d.stream = r
	return r, nil
}

// OpenTransmitter returns the stream of what the board sends: radio.Idler,
// radio.Pacer unless feed=strict, radio.LossChecker and radio.ClipCounter. It fails
// with radio.ErrNotPermitted where frequency or gains are not permitted, and with
// radio.ErrNoGuard or radio.ErrGuard where no guard watches over the board.
func (d *Device) OpenTransmitter(ctx context.Context) (radio.Transmitter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.free(); err != nil {
		return nil, err
	}
	if err := d.permitted(); err != nil {
		return nil, err
	}
	if d.api < apiM0 && d.opts.limit > 0 {
		return nil, fmt.Errorf("%w: with USB interface %v it does not stop sending when samples stop coming, which needs %v; update it, or open %s with limit_ms=0 and watch it",
			ErrOldFirmware, d.api, apiM0, d.info.URI)
	}
	if err := d.watchOver(ctx); err != nil {
		return nil, err
	}
	t := newSender(d)
	d.stream = t
	if d.opts.feed == strict {
		return t, nil
	}
	return paced{t}, nil
}

// watchOver has the guard watch over the board. The lock is held.
func (d *Device) watchOver(ctx context.Context) (err error) {
	switch {
	case d.guard == nil:
		return radio.ErrNoGuard
	case d.watch != nil:
		return d.watch.Err()
	}
	d.watch, err = d.guard.Watch(ctx, watched(d.board), d.opts.still)
	return err
}

// free says why no stream can be opened. The lock is held.
func (d *Device) free() error {
	switch {
	case d.closed:
		return radio.ErrClosed
	case d.stream != nil:
		return radio.ErrBusy
	}
	return nil
}

// release is called by the stream, once it was closed.
func (d *Device) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stream = nil
}

// permitted says why the present settings must not be sent with. The lock is held.
func (d *Device) permitted() error {
	if err := d.permit.Frequency(d.tuning); err != nil {
		return err
	}
	if d.explicit {
		return fmt.Errorf("%w: the board is tuned in parts, which lets images pass; allowed is a plain frequency", radio.ErrNotPermitted)
	}
	return d.permit.Gain(d.gains[txvga] + d.gains[txAmp])
}

// nextEpoch returns an epoch that this device never had.
func (d *Device) nextEpoch() radio.Epoch { return radio.Epoch(d.epochs.Add(1)) }

// control makes a request.
func (d *Device) control(r request, value, index uint16, data []byte) (int, error) {
	if d.api < r.since {
		return 0, d.tooOld(r)
	}
	s := usb.Setup{RequestType: usb.VendorOut, Request: r.number, Value: value, Index: index}
	verb := "setting"
	if r.in {
		s.RequestType, verb = usb.VendorIn, "asking for"
	}
	n, err := d.transport.Control(s, data, d.opts.control)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", verb, r.name, err)
	}
	return n, nil
}

func (d *Device) tooOld(r request) error {
	return fmt.Errorf("%w: %s needs USB interface %v and it has %v; update it", ErrOldFirmware, r.name, r.since, d.api)
}

// send makes a request to the board; all of data must arrive.
func (d *Device) send(r request, value, index uint16, data []byte) error {
	n, err := d.control(r, value, index, data)
	if err == nil && n != len(data) {
		err = fmt.Errorf("setting %s: %d of %d bytes arrived", r.name, n, len(data))
	}
	return err
}

// ask makes a request that is answered by n bytes.
func (d *Device) ask(r request, value, index uint16, n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := d.control(r, value, index, b)
	if err == nil && got != n {
		err = fmt.Errorf("asking for %s: the answer has %d bytes; allowed is %d", r.name, got, n)
	}
	return b, err
}

// off ends reception and transmission. It does not take the device's lock.
func (d *Device) off() (err error) {
	for range offAttempts {
		if err = d.send(setMode, modeOff, 0, nil); err == nil || gone(err) {
			d.maybeOn.Store(false)
			return err
		}
	}
	d.maybeOn.Store(true)
	return fmt.Errorf("%w (%w)", ErrCarrier, err)
}

// m0 asks for the board's counters.
func (d *Device) m0() (m0State, error) {
	b, err := d.ask(getM0, 0, 0, m0Bytes)
	if err != nil {
		return m0State{}, err
	}
	return decodeM0(b)
}

func bit(on bool) uint16 {
	if on {
		return 1
	}
	return 0
}
