// Package attack measures attacks on the schemes that the paper compares, each
// with an honest control beside it.
//
// It takes in a seed, and gives what each attack recovered, what the same attempt
// recovers where it should fail or succeed, and what the guards of crypto/xmkckks answer
// to it, as figures and as text. It knows nothing of learning. Everything runs in memory
// against devices that it makes itself, from seeds that protect nothing.
//
// Victims are the library's own devices where the attack works on them as they
// are. Where a guard stands in the way, or where a device has no such setting,
// the step is made again here (ring.go) from public pieces: the published a, the
// samplers, and seeds that the package chose itself. The library has no door for
// it.
package attack
