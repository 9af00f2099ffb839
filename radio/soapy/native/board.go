//go:build soapy

package native

/*
#include <stdlib.h>
#include <SoapySDR/Device.h>
*/
import "C"

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
	"unsafe"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// closing bounds how long Close waits for calls that are under way, and for the library.
const closing = 5 * time.Second

// calls counts those that are under way.
type calls struct {
	mu      sync.Mutex
	closed  bool
	pending int           // that have not returned
	idle    chan struct{} // closed when none is, once somebody waits
}

// enter lets a call begin, which leave ends.
func (c *calls) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return radio.ErrClosed
	}
	c.pending++
	return nil
}

func (c *calls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending--; c.pending == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// close lets no other begin; first reports whether nobody had closed before.
func (c *calls) close() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, c.closed = !c.closed, true
	return first
}

// drain waits until no call is under way.
func (c *calls) drain(patience time.Duration) bool {
	c.mu.Lock()
	if c.pending == 0 {
		c.mu.Unlock()
		return true
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}

// board is an open device.
type board struct {
	d *C.SoapySDRDevice
	calls
	closing time.Duration // bounds waiting in Close

	listing sync.Mutex
	streams map[*stream]bool // that are open
}

func newBoard(d *C.SoapySDRDevice) *board {
	return &board{d: d, closing: closing, streams: map[*stream]bool{}}
}

// query makes a call of the board.
func query[T any](ctx context.Context, b *board, f func() T) (T, error) {
	return within(ctx, []*calls{&b.calls}, nil, f)
}

// within makes a call that all of several count; late is as in ask.
func within[T any](ctx context.Context, all []*calls, late func(T), f func() T) (none T, err error) {
	for i, c := range all {
		if err = c.enter(); err != nil {
			leave(all[:i])
			return none, err
		}
	}
	if err := ctx.Err(); err != nil {
		leave(all)
		return none, err
	}
	return ask(ctx, late, func() T {
		defer leave(all)
		return f()
	})
}

func leave(all []*calls) {
	for _, c := range all {
		c.leave()
	}
}

// do makes a call that gives a code.
func (b *board) do(ctx context.Context, f func() C.int) error {
	code, err := query(ctx, b, f)
	if err == nil && code != 0 {
		return soapy.Code(code)
	}
	return err
}

// Close implements soapy.Board. Streams that are open are closed first.
func (b *board) Close() error {
	var errs []error
	b.listing.Lock()
	open := slices.Collect(maps.Keys(b.streams))
	b.listing.Unlock()
	for _, s := range open {
		errs = append(errs, s.Close())
	}
	if !b.close() {
		return nil
	}
	if !b.drain(b.closing) {
		return errors.Join(append(errs, errors.New("a call of SoapySDR has not returned: the board is not given back before the program ends"))...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.closing)
	defer cancel()
	_, err := ask(ctx, nil, func() C.int { return C.SoapySDRDevice_unmake(b.d) })
	return errors.Join(append(errs, err)...)
}

// dir returns the library's name of a direction.
func dir(d radio.Direction) C.int {
	if d == radio.Transmit {
		return C.SOAPY_SDR_TX
	}
	return C.SOAPY_SDR_RX
}

// of returns a channel as the library takes it.
func of(at soapy.Channel) (C.int, C.size_t) { return dir(at.Direction), C.size_t(at.Number) }

// named calls f with a string of C's.
func named[T any](name string, f func(*C.char) T) T {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return f(s)
}

// text copies and gives back a string.
func text(s *C.char) string {
	defer C.SoapySDR_free(unsafe.Pointer(s))
	return C.GoString(s)
}

// texts copies and gives back strings.
func texts(list **C.char, n C.size_t) (all []string) {
	if n > 0 {
		for _, s := range unsafe.Slice(list, int(n)) {
			all = append(all, C.GoString(s))
		}
	}
	C.SoapySDRStrings_clear(&list, n)
	return all
}

// ranges copies and gives back ranges.
func ranges(list *C.SoapySDRRange, n C.size_t) (all []soapy.Range) {
	if n > 0 {
		for _, r := range unsafe.Slice(list, int(n)) {
			all = append(all, rangeOf(r))
		}
	}
	C.SoapySDR_free(unsafe.Pointer(list))
	return all
}

func rangeOf(r C.SoapySDRRange) soapy.Range {
	return soapy.Range{Min: float64(r.minimum), Max: float64(r.maximum), Step: float64(r.step)}
}

func (b *board) Hardware(ctx context.Context) (soapy.Hardware, error) {
	return query(ctx, b, func() soapy.Hardware {
		h := soapy.Hardware{Driver: text(C.SoapySDRDevice_getDriverKey(b.d)), Key: text(C.SoapySDRDevice_getHardwareKey(b.d))}
		info := C.SoapySDRDevice_getHardwareInfo(b.d)
		h.Info = argsOf(info)
		C.SoapySDRKwargs_clear(&info)
		return h
	})
}

func (b *board) Channels(ctx context.Context, d radio.Direction) (int, error) {
	return query(ctx, b, func() int { return int(C.SoapySDRDevice_getNumChannels(b.d, dir(d))) })
}

func (b *board) FullDuplex(ctx context.Context, at soapy.Channel) (bool, error) {
	d, n := of(at)
	return query(ctx, b, func() bool { return bool(C.SoapySDRDevice_getFullDuplex(b.d, d, n)) })
}

func (b *board) Formats(ctx context.Context, at soapy.Channel) ([]string, error) {
	d, n := of(at)
	return query(ctx, b, func() []string {
		var k C.size_t
		list := C.SoapySDRDevice_getStreamFormats(b.d, d, n, &k)
		return texts(list, k)
	})
}

func (b *board) NativeFormat(ctx context.Context, at soapy.Channel) (string, float64, error) {
	d, n := of(at)
	type native struct {
		name  string
		scale float64
	}
	v, err := query(ctx, b, func() native {
		var scale C.double
		name := text(C.SoapySDRDevice_getNativeStreamFormat(b.d, d, n, &scale))
		return native{name, float64(scale)}
	})
	return v.name, v.scale, err
}

func (b *board) Antennas(ctx context.Context, at soapy.Channel) ([]string, error) {
	d, n := of(at)
	return query(ctx, b, func() []string {
		var k C.size_t
		list := C.SoapySDRDevice_listAntennas(b.d, d, n, &k)
		return texts(list, k)
	})
}

func (b *board) Antenna(ctx context.Context, at soapy.Channel) (string, error) {
	d, n := of(at)
	return query(ctx, b, func() string { return text(C.SoapySDRDevice_getAntenna(b.d, d, n)) })
}

func (b *board) SetAntenna(ctx context.Context, at soapy.Channel, name string) error {
	d, n := of(at)
	return b.do(ctx, func() C.int {
		return named(name, func(s *C.char) C.int { return C.SoapySDRDevice_setAntenna(b.d, d, n, s) })
	})
}

func (b *board) Gains(ctx context.Context, at soapy.Channel) ([]string, error) {
	d, n := of(at)
	return query(ctx, b, func() []string {
		var k C.size_t
		list := C.SoapySDRDevice_listGains(b.d, d, n, &k)
		return texts(list, k)
	})
}

func (b *board) GainRange(ctx context.Context, at soapy.Channel, element string) (soapy.Range, error) {
	d, n := of(at)
	return query(ctx, b, func() soapy.Range {
		return named(element, func(s *C.char) soapy.Range { return rangeOf(C.SoapySDRDevice_getGainElementRange(b.d, d, n, s)) })
	})
}

func (b *board) Gain(ctx context.Context, at soapy.Channel, element string) (float64, error) {
	d, n := of(at)
	return query(ctx, b, func() float64 {
		return named(element, func(s *C.char) float64 { return float64(C.SoapySDRDevice_getGainElement(b.d, d, n, s)) })
	})
}

func (b *board) SetGain(ctx context.Context, at soapy.Channel, element string, dB float64) error {
	d, n := of(at)
	return b.do(ctx, func() C.int {
		return named(element, func(s *C.char) C.int { return C.SoapySDRDevice_setGainElement(b.d, d, n, s, C.double(dB)) })
	})
}

func (b *board) HasGainMode(ctx context.Context, at soapy.Channel) (bool, error) {
	d, n := of(at)
	return query(ctx, b, func() bool { return bool(C.SoapySDRDevice_hasGainMode(b.d, d, n)) })
}

func (b *board) SetGainMode(ctx context.Context, at soapy.Channel, automatic bool) error {
	d, n := of(at)
	return b.do(ctx, func() C.int { return C.SoapySDRDevice_setGainMode(b.d, d, n, C.bool(automatic)) })
}

func (b *board) FrequencyRange(ctx context.Context, at soapy.Channel) ([]soapy.Range, error) {
	d, n := of(at)
	return query(ctx, b, func() []soapy.Range {
		var k C.size_t
		list := C.SoapySDRDevice_getFrequencyRange(b.d, d, n, &k)
		return ranges(list, k)
	})
}

func (b *board) Frequency(ctx context.Context, at soapy.Channel) (float64, error) {
	d, n := of(at)
	return query(ctx, b, func() float64 { return float64(C.SoapySDRDevice_getFrequency(b.d, d, n)) })
}

func (b *board) SetFrequency(ctx context.Context, at soapy.Channel, hertz float64) error {
	d, n := of(at)
	return b.do(ctx, func() C.int {
		none, release := kwargs(nil)
		defer release()
		return C.SoapySDRDevice_setFrequency(b.d, d, n, C.double(hertz), none)
	})
}

func (b *board) SampleRateRange(ctx context.Context, at soapy.Channel) ([]soapy.Range, error) {
	d, n := of(at)
	return query(ctx, b, func() []soapy.Range {
		var k C.size_t
		list := C.SoapySDRDevice_getSampleRateRange(b.d, d, n, &k)
		return ranges(list, k)
	})
}

func (b *board) SampleRate(ctx context.Context, at soapy.Channel) (float64, error) {
	d, n := of(at)
	return query(ctx, b, func() float64 { return float64(C.SoapySDRDevice_getSampleRate(b.d, d, n)) })
}

func (b *board) SetSampleRate(ctx context.Context, at soapy.Channel, hertz float64) error {
	d, n := of(at)
	return b.do(ctx, func() C.int { return C.SoapySDRDevice_setSampleRate(b.d, d, n, C.double(hertz)) })
}

func (b *board) BandwidthRange(ctx context.Context, at soapy.Channel) ([]soapy.Range, error) {
	d, n := of(at)
	return query(ctx, b, func() []soapy.Range {
		var k C.size_t
		list := C.SoapySDRDevice_getBandwidthRange(b.d, d, n, &k)
		return ranges(list, k)
	})
}

func (b *board) Bandwidth(ctx context.Context, at soapy.Channel) (float64, error) {
	d, n := of(at)
	return query(ctx, b, func() float64 { return float64(C.SoapySDRDevice_getBandwidth(b.d, d, n)) })
}

func (b *board) SetBandwidth(ctx context.Context, at soapy.Channel, hertz float64) error {
	d, n := of(at)
	return b.do(ctx, func() C.int { return C.SoapySDRDevice_setBandwidth(b.d, d, n, C.double(hertz)) })
}

func (b *board) ClockSources(ctx context.Context) ([]string, error) {
	return query(ctx, b, func() []string {
		var k C.size_t
		list := C.SoapySDRDevice_listClockSources(b.d, &k)
		return texts(list, k)
	})
}

func (b *board) ClockSource(ctx context.Context) (string, error) {
	return query(ctx, b, func() string { return text(C.SoapySDRDevice_getClockSource(b.d)) })
}

func (b *board) SetClockSource(ctx context.Context, name string) error {
	return b.do(ctx, func() C.int {
		return named(name, func(s *C.char) C.int { return C.SoapySDRDevice_setClockSource(b.d, s) })
	})
}

func (b *board) TimeSources(ctx context.Context) ([]string, error) {
	return query(ctx, b, func() []string {
		var k C.size_t
		list := C.SoapySDRDevice_listTimeSources(b.d, &k)
		return texts(list, k)
	})
}

func (b *board) TimeSource(ctx context.Context) (string, error) {
	return query(ctx, b, func() string { return text(C.SoapySDRDevice_getTimeSource(b.d)) })
}

func (b *board) SetTimeSource(ctx context.Context, name string) error {
	return b.do(ctx, func() C.int {
		return named(name, func(s *C.char) C.int { return C.SoapySDRDevice_setTimeSource(b.d, s) })
	})
}

func (b *board) HasHardwareTime(ctx context.Context, what string) (bool, error) {
	return query(ctx, b, func() bool {
		return named(what, func(s *C.char) bool { return bool(C.SoapySDRDevice_hasHardwareTime(b.d, s)) })
	})
}

func (b *board) HardwareTime(ctx context.Context, what string) (soapy.Time, error) {
	return query(ctx, b, func() soapy.Time {
		return named(what, func(s *C.char) soapy.Time { return soapy.Time(C.SoapySDRDevice_getHardwareTime(b.d, s)) })
	})
}

func (b *board) SetHardwareTime(ctx context.Context, t soapy.Time, what string) error {
	return b.do(ctx, func() C.int {
		return named(what, func(s *C.char) C.int { return C.SoapySDRDevice_setHardwareTime(b.d, C.longlong(t), s) })
	})
}

func (b *board) Sensors(ctx context.Context) ([]string, error) {
	return query(ctx, b, func() []string {
		var k C.size_t
		list := C.SoapySDRDevice_listSensors(b.d, &k)
		return texts(list, k)
	})
}

func (b *board) ReadSensor(ctx context.Context, name string) (string, error) {
	return query(ctx, b, func() string {
		return named(name, func(s *C.char) string { return text(C.SoapySDRDevice_readSensor(b.d, s)) })
	})
}

func (b *board) ChannelSensors(ctx context.Context, at soapy.Channel) ([]string, error) {
	d, n := of(at)
	return query(ctx, b, func() []string {
		var k C.size_t
		list := C.SoapySDRDevice_listChannelSensors(b.d, d, n, &k)
		return texts(list, k)
	})
}

func (b *board) ReadChannelSensor(ctx context.Context, at soapy.Channel, name string) (string, error) {
	d, n := of(at)
	return query(ctx, b, func() string {
		return named(name, func(s *C.char) string { return text(C.SoapySDRDevice_readChannelSensor(b.d, d, n, s)) })
	})
}

func (b *board) WriteSetting(ctx context.Context, key, value string) error {
	return b.do(ctx, func() C.int {
		return named(key, func(k *C.char) C.int {
			return named(value, func(v *C.char) C.int { return C.SoapySDRDevice_writeSetting(b.d, k, v) })
		})
	})
}

func (b *board) WriteChannelSetting(ctx context.Context, at soapy.Channel, key, value string) error {
	d, n := of(at)
	return b.do(ctx, func() C.int {
		return named(key, func(k *C.char) C.int {
			return named(value, func(v *C.char) C.int { return C.SoapySDRDevice_writeChannelSetting(b.d, d, n, k, v) })
		})
	})
}
