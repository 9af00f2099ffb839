//go:build soapy

package native

/*
#include <stdlib.h>
#include <time.h>
#include <SoapySDR/Device.h>
#include <SoapySDR/Errors.h>
#include <SoapySDR/Formats.h>

typedef struct {
	int code, flags;
	long long at;
} piece;

static long long now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// Reads pieces of up to n samples, one after the other, and returns how many: more than one
// where the samples were there already, so that a host that is behind need not go back and
// forth between threads for each.
static int read_stream(SoapySDRDevice *d, SoapySDRStream *s, char *buffer, size_t n, size_t size, piece *pieces, int most, long us) {
	for (int k = 0; k < most; k++) {
		void *buffers[1] = {buffer + (size_t)k * n * size};
		piece *p = &pieces[k];
		const long long began = now_ns();
		p->flags = 0;
		p->at = 0;
		p->code = SoapySDRDevice_readStream(d, s, buffers, n, &p->flags, &p->at, k == 0 ? us : 0);
		if (k > 0 && (p->code == 0 || p->code == SOAPY_SDR_TIMEOUT)) return k;
		if (p->code <= 0 || now_ns() - began > 100000) return k + 1;
	}
	return most;
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
	pieces  []piece     // of in, that were read and not yet given
	anew    atomic.Bool // what was read before is of no use
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

// piece is what one call of readStream gave.
type piece struct {
	samples unsafe.Pointer
	result
}

// mostPieces bounds how many are read at once.
const mostPieces = 16

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
	s.anew.Store(true)
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
	if s.anew.Swap(false) {
		s.pieces = nil
	}
	if len(s.pieces) == 0 {
		if err := s.fill(ctx, len(dst)/s.size, patience); err != nil {
			return 0, soapy.BlockInfo{}, err
		}
	}
	p := &s.pieces[0]
	n, err := p.made()
	if err == nil && n == 0 {
		err = soapy.ErrTimeout
	}
	if err != nil {
		s.pieces = s.pieces[1:]
		return 0, p.info, err
	}
	info, k := p.info, min(n, len(dst)/s.size)
	copy(dst, unsafe.Slice((*byte)(p.samples), k*s.size))
	if k == n {
		s.pieces = s.pieces[1:]
		return k * s.size, info, nil
	}
	p.samples = unsafe.Add(p.samples, k*s.size)
	p.code -= C.int(k)
	p.info = soapy.BlockInfo{Flags: p.info.Flags &^ soapy.HasTime}
	return k * s.size, soapy.BlockInfo{Flags: info.Flags &^ soapy.EndBurst, At: info.At}, nil
}

// fill reads pieces of n samples, or of the MTU if that is less.
func (s *stream) fill(ctx context.Context, n int, patience time.Duration) error {
	n = min(n, s.mtu)
	most := max(1, min(mostPieces, maxBuffer/max(n, 1)))
	at := s.in.room(most * (n*s.size + C.sizeof_piece))
	pieces := (*C.piece)(at) // in front, where they are aligned
	samples := unsafe.Add(at, most*C.sizeof_piece)
	r, err := uses(ctx, s, &s.in, func() result {
		return result{code: C.read_stream(s.b.d, s.s, (*C.char)(samples), C.size_t(n), C.size_t(s.size), pieces, C.int(most), C.long(patience.Microseconds()))}
	})
	if err != nil {
		return err
	}
	s.pieces = s.pieces[:0]
	for i, p := range unsafe.Slice(pieces, int(r.code)) {
		info := soapy.BlockInfo{Flags: soapy.Flags(p.flags), At: soapy.Time(p.at)}
		s.pieces = append(s.pieces, piece{unsafe.Add(samples, i*n*s.size), result{min(p.code, C.int(n)), info}})
	}
	return nil
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
