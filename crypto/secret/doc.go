// Package secret keeps copies of secrets from staying behind in memory.
//
// Do runs a function and overwrites the stack that it used; Clear overwrites an
// object whose fields are another package's. It knows nothing of what the secrets
// are.
//
// Go promises less than one would like. A value in a variable may be copied to
// registers, and from there to the stack of a signal handler or to where the
// scheduler keeps the registers of a goroutine that it interrupts; the kernel may
// write pages to a swap file or to a core dump. Nothing in this package reaches
// those. Built with Go 1.26 or later and GOEXPERIMENT=runtimesecret, on Linux on
// amd64 and arm64, Do is the runtime's own, which clears registers and signal
// stacks, too.
package secret
