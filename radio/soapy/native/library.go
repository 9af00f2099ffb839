//go:build soapy

package native

/*
#cgo pkg-config: SoapySDR
#include <stdlib.h>
#include <string.h>
#include <SoapySDR/Device.h>
#include <SoapySDR/Formats.h>
#include <SoapySDR/Logger.h>
#include <SoapySDR/Modules.h>

// The last warning of this thread: a call and what it says of its failure are one thread's.
static __thread char warned[512];

static void keep(const SoapySDRLogLevel level, const char *message) {
	if (level <= SOAPY_SDR_WARNING && message != NULL) {
		strncpy(warned, message, sizeof warned - 1);
	}
}

static void keep_log(void) { SoapySDR_registerLogHandler(keep); }
static void forget_warning(void) { warned[0] = 0; }
static const char *last_warning(void) { return warned; }
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"ringwave/radio"
	"ringwave/radio/soapy"
)

// New returns the machine's own SoapySDR. From then on the library prints nothing.
func New() soapy.Backend {
	C.keep_log()
	return library{}
}

type library struct{}

// answer is what a call gave.
type answer[T any] struct {
	value T
	err   error
}

// unanswered is the error of a call that nobody waits for any more: it may be under way.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// ask makes a call, in any case, on a thread of its own and waits for it until ctx ends;
// late, if it is not nil, then takes what it gives. Whatever the call writes to must not be
// Go's.
func ask[T any](ctx context.Context, late func(T), f func() T) (T, error) {
	done := make(chan answer[T], 1)
	go func() {
		runtime.LockOSThread() // errors are the thread's
		defer runtime.UnlockOSThread()
		C.forget_warning()
		v := f()
		done <- answer[T]{v, failure()}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		if late != nil {
			go func() { late((<-done).value) }()
		}
		var none T
		return none, unanswered{fmt.Errorf("SoapySDR has not answered: %w", ctx.Err())}
	}
}

// failure returns what the last call of this thread says of its failure, nil where it did not
// fail.
func failure() error {
	if C.SoapySDRDevice_lastStatus() == 0 {
		return nil
	}
	return says(C.GoString(C.SoapySDRDevice_lastError()))
}

// says makes an error of the library's words and the last warning, in one line.
func says(words string) error {
	if warning := C.GoString(C.last_warning()); warning != "" && !strings.Contains(words, warning) {
		words += " (" + warning + ")"
	}
	return errors.New(strings.Join(strings.Fields(words), " "))
}

// kwargs makes the library's arguments, which release gives back.
func kwargs(args soapy.Args) (list *C.SoapySDRKwargs, release func()) {
	list = (*C.SoapySDRKwargs)(C.calloc(1, C.sizeof_SoapySDRKwargs))
	for key, value := range args {
		k, v := C.CString(key), C.CString(value)
		C.SoapySDRKwargs_set(list, k, v)
		C.free(unsafe.Pointer(k))
		C.free(unsafe.Pointer(v))
	}
	return list, func() {
		C.SoapySDRKwargs_clear(list)
		C.free(unsafe.Pointer(list))
	}
}

// argsOf copies the library's arguments.
func argsOf(list C.SoapySDRKwargs) soapy.Args {
	args := soapy.Args{}
	if list.size == 0 {
		return args
	}
	keys, vals := unsafe.Slice(list.keys, int(list.size)), unsafe.Slice(list.vals, int(list.size))
	for i := range keys {
		args[C.GoString(keys[i])] = C.GoString(vals[i])
	}
	return args
}

// Find implements soapy.Backend.
func (library) Find(ctx context.Context, _ radio.URI, args soapy.Args) ([]soapy.Args, error) {
	return ask(ctx, nil, func() (all []soapy.Args) {
		list, release := kwargs(args)
		defer release()
		var n C.size_t
		found := C.SoapySDRDevice_enumerate(list, &n)
		if n > 0 {
			for _, one := range unsafe.Slice(found, int(n)) {
				all = append(all, argsOf(one))
			}
		}
		C.SoapySDRKwargsList_clear(found, n)
		return all
	})
}

// Make implements soapy.Backend.
func (l library) Make(ctx context.Context, _ radio.URI, args soapy.Args) (soapy.Board, error) {
	unmake := func(d *C.SoapySDRDevice) {
		if d != nil {
			C.SoapySDRDevice_unmake(d)
		}
	}
	d, err := ask(ctx, unmake, func() *C.SoapySDRDevice {
		list, release := kwargs(args)
		defer release()
		return C.SoapySDRDevice_make(list)
	})
	switch {
	case ctx.Err() != nil && d == nil:
		return nil, fmt.Errorf("making %s: %w", args, err)
	case d == nil:
		return nil, fmt.Errorf("making %s: %w; SoapySDR has %w", args, errors.Join(err), l.modules(err))
	}
	return newBoard(d), nil
}

// modules says what there is to drive boards with, as an error: ErrNoModule where no module
// has a board for the arguments.
func (library) modules(made error) error {
	var n C.size_t
	var names []string
	for _, path := range texts(C.SoapySDR_listModules(&n), n) {
		names = append(names, filepath.Base(path))
	}
	have := "the modules " + strings.Join(names, ", ")
	if len(names) == 0 {
		have = "no modules in " + strings.Join(texts(C.SoapySDR_listSearchPaths(&n), n), ", ")
	}
	if made == nil || strings.Contains(made.Error(), "no match") {
		return fmt.Errorf("%s: %w", have, ErrNoModule)
	}
	return errors.New(have)
}
