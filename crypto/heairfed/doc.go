// Package heairfed is the system HEAirFed (Wang et al.) that the paper compares
// itself with in Table I: whole gradients, encrypted by CKKS under one key that
// all devices share, added over the air by receive beamforming.
//
// It takes in the devices' gradients and the channel coefficients of a round, and
// gives the aggregated gradient with its error (package aggregate). It
// knows nothing of models, of training, or of rings other than its own.
//
// Of HEAirFed the paper says this much: single-key CKKS with n = 4096 and
// q = 2^30; each device encrypts its full gradient; the server aggregates over
// the air by MIMO beamforming with channel state at devices and server. A public
// text with more was not found when this was written. The rest is assumed:
//
//   - q is 0x3fff4001, the largest prime below 2^30 that is 1 modulo 2n: a power of
//     two has no number-theoretic transform, and nothing here depends on the
//     difference of 3 parts in 100,000.
//   - Encryption is by the common public key: c0 = v b + e0 + m, c1 = v a + e1, with
//     ternary s and v, and errors of sigma = 3.2. All devices hold s. Here the keys
//     are no secret at all: like gains and noise they are drawn from the run's public
//     seed, and nobody wipes them.
//   - Coefficients carry the message, round(Delta x), n components a ciphertext:
//     ceil(d/n) ciphertexts. Only sums are wanted, which slots would not make
//     easier, and slots would carry half as many.
//   - Delta is the largest power of two that leaves room for the sum of N components
//     of the clipping bound and six deviations of the noise of encryption.
//   - c0[k] + j c1[k] is one complex symbol, centred and scaled to an amplitude of at
//     most 1: analog, uncoded, n symbols a ciphertext.
//   - One antenna a device, several at the server. With Rayleigh fading antenna m
//     hears device i with h_{i,k} times an independent CN(0, 1), fresh each round;
//     with LineOfSight with h_{i,k} times a phase that is fixed for the run. Either
//     way h_{i,k} are the gains of all other systems.
//   - The server knows each coefficient but for a pilot error CN(0, PilotStd^2). It
//     takes the unit vector w that makes the least |w^H h_i| large (a sequence of
//     convex problems from several starts: a local best) and tells each device
//     w^H h_i, as it knows it. Each inverts that, and all scale down to the weakest,
//     which sends at full amplitude.
//   - The server rounds to integers, reduces modulo q, and broadcasts without error.
//
// A pilot error leaves device i with a weight g_i that is not 1, and what is left
// over, (g_i - 1) times its ciphertext, is of size q: c0 + c1 s = m + e + q t with
// integer t of deviation sqrt((1 + |s|^2)/12), about 15. So q = 2^30 is no remedy;
// only nearly perfect channel state is, and a signal of some 80 dB over the noise.
// PredictedMSE says how much, and the tests that it is so.
package heairfed
