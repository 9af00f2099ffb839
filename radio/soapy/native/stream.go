//go:build soapy

package native

/*
#include <stdlib.h>
#include <SoapySDR/Device.h>
#include <SoapySDR/Formats.h>

static int read_stream(SoapySDRDevice *d, SoapySDRStream *s, void *buffer, size_t n, int *flags, long long *at, long us) {
	void *buffers[1] = {buffer};
	*flags = 0;
	*at = 0;
	return SoapySDRDevice_readStream(d, s, buffers, n, flags, at, us);
}

static int write_stream(SoapySDRDevice *d, SoapySDRStream *s, const void *buffer, size_t n, int flags, long long at, long us) {
	const void *buffers[1] = {buffer};
	return SoapySDRDevice_writeStream(d, s, buffers, n, &flags, at, us);
}

static int read_status(SoapySDRDevice *d, SoapySDRStream *s, int *flags, long long *at, long us) {
	size_t channels = 0;
	*flags = 0;
	*at = 0;
	return SoapySDRDevice_readStreamStatus(d, s, &channels, flags, at, us);
}
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"ringwave/radio/soapy"
)

// stream is a stream of one channel. Its buffers are C's, as a call that has not returned may
// still write to them; they are given back with the stream.
type stream struct {
	b    *board
	s    *C.SoapySDRStream
	size int // of a sample
	mtu  int

	in, out buffer
	active  atomic.Bool // or may be

	calls
}

// asks makes a call of the stream.
func asks[T any](ctx context.Context, s *stream, f func() T) (T, error) {
	return within(ctx, []*calls{&s.b.calls, &s.calls}, nil, f)
}

// uses makes a call of the stream with a buffer. One that does not return keeps it.
func uses(ctx context.Context, s *stream, b *buffer, f func() result) (result, error) {
	at := b.at
	r, err := within(ctx, []*calls{&s.b.calls, &s.calls}, func(result) { C.free(at) }, f)
	if errors.As(err, new(unanswered)) {
		*b = buffer{}
	}
	return r, err
}

// buffer is C's memory for one goroutine.
type buffer struct {
	at    unsafe.Pointer
	bytes int
}

// room returns a buffer of n bytes or more.
func (b *buffer) room(n int) unsafe.Pointer {
	if n > b.bytes {
		C.free(b.at)
		b.at, b.bytes = C.malloc(C.size_t(n)), n
	}
	return b.at
}

// maxBuffer bounds what is read or written at once, in samples.
const maxBuffer = 1 << 18

func (b *board) SetupStream(ctx context.Context, at soapy.Channel, format string, args soapy.Args) (soapy.Stream, error) {
	d, n := of(at)
	size := int(named(format, func(s *C.char) C.size_t { return C.SoapySDR_formatToSize(s) }))
	if size == 0 {
		return nil, fmt.Errorf("the format %s: %w", format, soapy.ErrNotSupported)
	}
	if err := b.enter(); err != nil {
		return nil, err
	}
	s, err := ask(ctx, b.giveUp, func() *C.SoapySDRStream {
		defer b.leave()
		list, release := kwargs(args)
		defer release()
		channel := (*C.size_t)(C.malloc(C.sizeof_size_t))
		defer C.free(unsafe.Pointer(channel))
		*channel = n
		return named(format, func(f *C.char) *C.SoapySDRStream { return C.SoapySDRDevice_setupStream(b.d, d, f, channel, 1, list) })
	})
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("SoapySDR made no stream")
	}
	mtu, err := query(ctx, b, func() C.size_t { return C.SoapySDRDevice_getStreamMTU(b.d, s) })
	st := &stream{b: b, s: s, size: size, mtu: int(min(max(mtu, 1), maxBuffer))}
	b.listing.Lock()
	b.streams[st] = true
	b.listing.Unlock()
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}

// giveUp closes a stream that nobody waits for any more, unless its board is gone.
func (b *board) giveUp(s *C.SoapySDRStream) {
	if s == nil || b.enter() != nil {
		return
	}
	defer b.leave()
	C.SoapySDRDevice_closeStream(b.d, s)
}

// do makes a call that gives a code.
func (s *stream) do(ctx context.Context, f func() C.int) error {
	code, err := asks(ctx, s, f)
	if err == nil && code != 0 {
		return soapy.Code(code)
	}
	return err
}

func (s *stream) MTU() int { return s.mtu }

func (s *stream) Activate(ctx context.Context, flags soapy.Flags, at soapy.Time) error {
	s.active.Store(true)
	return s.do(ctx, func() C.int { return C.SoapySDRDevice_activateStream(s.b.d, s.s, C.int(flags), C.longlong(at), 0) })
}

func (s *stream) Deactivate(ctx context.Context, flags soapy.Flags, at soapy.Time) error {
	err := s.do(ctx, func() C.int { return C.SoapySDRDevice_deactivateStream(s.b.d, s.s, C.int(flags), C.longlong(at)) })
	if err == nil {
		s.active.Store(false)
	}
	return err
}

// result is what a call of a stream gave.
type result struct {
	code C.int
	info soapy.BlockInfo
}

// made returns the number of samples of a call, or its code as an error.
func (r result) made() (int, error) {
	if r.code < 0 {
		return 0, soapy.Code(r.code)
	}
	return int(r.code), nil
}

func (s *stream) Read(ctx context.Context, dst []byte, patience time.Duration) (int, soapy.BlockInfo, error) {
	if err := s.enter(); err != nil { // the buffer is there until leave
		return 0, soapy.BlockInfo{}, err
	}
	defer s.leave()
	n := min(len(dst)/s.size, maxBuffer)
	at := s.in.room(n * s.size)
	r, err := uses(ctx, s, &s.in, func() result {
		var flags C.int
		var when C.longlong
		code := C.read_stream(s.b.d, s.s, at, C.size_t(n), &flags, &when, C.long(patience.Microseconds()))
		return result{code, soapy.BlockInfo{Flags: soapy.Flags(flags), At: soapy.Time(when)}}
	})
	if err != nil {
		return 0, soapy.BlockInfo{}, err
	}
	got, err := r.made()
	if err != nil {
		return 0, r.info, err
	}
	got = min(got, n)
	copy(dst, unsafe.Slice((*byte)(at), got*s.size))
	if got == 0 {
		return 0, r.info, soapy.ErrTimeout
	}
	return got * s.size, r.info, nil
}

func (s *stream) Write(ctx context.Context, src []byte, b soapy.BlockInfo, patience time.Duration) (int, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	n := min(len(src)/s.size, maxBuffer)
	at := s.out.room(n * s.size)
	copy(unsafe.Slice((*byte)(at), n*s.size), src)
	flags := b.Flags
	if n < len(src)/s.size {
		flags &^= soapy.EndBurst
	}
	r, err := uses(ctx, s, &s.out, func() result {
		return result{code: C.write_stream(s.b.d, s.s, at, C.size_t(n), C.int(flags), C.longlong(b.At), C.long(patience.Microseconds()))}
	})
	if err != nil {
		return 0, err
	}
	got, err := r.made()
	return min(got, n) * s.size, err
}

func (s *stream) Status(ctx context.Context, patience time.Duration) (soapy.BlockInfo, error) {
	r, err := asks(ctx, s, func() result {
		var flags C.int
		var when C.longlong
		code := C.read_status(s.b.d, s.s, &flags, &when, C.long(patience.Microseconds()))
		return result{code, soapy.BlockInfo{Flags: soapy.Flags(flags), At: soapy.Time(when)}}
	})
	if err != nil {
		return soapy.BlockInfo{}, err
	}
	_, err = r.made()
	return r.info, err
}

// Close implements soapy.Stream; one that is active is deactivated. The board is not given back meanwhile.
func (s *stream) Close() error {
	if !s.close() {
		return nil
	}
	if err := s.b.enter(); err != nil {
		return err
	}
	s.b.listing.Lock()
	delete(s.b.streams, s)
	s.b.listing.Unlock()
	if !s.drain(s.b.closing) {
		s.b.leave()
		return errors.New("a call of SoapySDR has not returned: its stream is not closed")
	}
	C.free(s.in.at)
	C.free(s.out.at)
	s.in, s.out = buffer{}, buffer{}
	ctx, cancel := context.WithTimeout(context.Background(), s.b.closing)
	defer cancel()
	_, err := ask(ctx, nil, func() C.int {
		defer s.b.leave()
		if s.active.Load() { // modules take the buffers of a stream that is closed from under their own threads
			C.SoapySDRDevice_deactivateStream(s.b.d, s.s, 0, 0)
		}
		return C.SoapySDRDevice_closeStream(s.b.d, s.s)
	})
	return err
}
