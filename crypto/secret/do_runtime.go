//go:build goexperiment.runtimesecret && linux && (amd64 || arm64)

package secret

import "runtime/secret"

// Do calls f under runtime/secret.Do: the stack and the registers that f used are
// erased before Do returns, and what f allocates is erased when the garbage
// collector finds it unreachable.
func Do(f func()) { secret.Do(f) }
