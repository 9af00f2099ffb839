//go:build !(goexperiment.runtimesecret && linux && (amd64 || arm64))

package secret

import "runtime"

const (
	// depth is how many bytes of stack f can use and Do overwrites. Samplers, AES and
	// SHA-256 use at most 5 KiB, in assembly and in Go, with and without optimization.
	depth = 16 << 10
	// ballast is how many bytes Do keeps in use above f.
	ballast = 16 << 10
)

// Do calls f and overwrites the 16 KiB of stack below its own frame, where f and all
// that it calls kept their variables. f must not need more stack, and so must not
// call Do. If f panics the stack stays as it is.
//
// The stack must not move while f runs, because the runtime does not overwrite a
// stack that it leaves. It moves to grow, so Do makes it large enough first. And it
// moves when the garbage collector shrinks a stack of which less than a quarter is
// in use, which the ballast above f prevents, unless the goroutine needed more than
// 64 KiB of stack before.
//
//go:noinline
func Do(f func()) {
	var above [ballast]byte
	overwrite()
	f()
	overwrite()
	runtime.KeepAlive(&above)
}

// overwrite clears the stack below its caller's frame.
//
//go:noinline
func overwrite() {
	var below [depth]byte
	use(&below)
}

// use has the compiler take its argument's memory for needed.
//
//go:noinline
func use(*[depth]byte) {}
