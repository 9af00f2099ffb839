// Package airhe is the system AirHE (Xie et al.) that the paper compares itself
// with in Table I: scalars, encrypted by LWE under one key that all devices
// share, whose digits are sent as nested-lattice codewords over channels that
// each device estimates and inverts.
//
// It takes in the devices' scalars and the channel coefficients of a round, and
// gives the aggregated scalar (package aggregate). It knows nothing of
// training. Of several scalars a device and round each has a ciphertext of its own, one
// after another: a ciphertext of LWE holds one message.
//
// Of AirHE the paper says this much: single-key LWE with n = 9 and
// q = 6560 = 3^8 - 1; ciphertext digits are nested-lattice codewords; channels are
// estimated and transmission is pre-equalised. A public text with more was not
// found when this was written. The rest is assumed:
//
//   - A ciphertext is (a, b), a uniform in Z_q^n and fresh for each device and round,
//     b = <a, s> + e + m, e of sigma = 3.2; s is uniform in Z_q^n. All n+1 elements
//     are sent. A device's key is everyone's key.
//   - m = round(S Delta f), with S as large as leaves room in q for N scalars at their
//     bound and six deviations of N errors.
//   - An element, centred, is eight balanced trits, which reach +-3280: the nested
//     pair is Z and 3Z in each digit, one digit a real symbol, uncoded. The receiver
//     takes the sum in Z, not modulo 3, and adds up 3^l y_l modulo q: the carries
//     that a sum modulo 3 would lose stay in the digits' sums.
//   - Each device knows its own coefficient but for a pilot error, N(0, sigma_pilot^2),
//     fresh each round, and divides by what it knows (zero forcing), without a limit
//     on its power. One receive antenna; noise N(0, sigma_n^2) in units of a digit.
//   - The receiver rounds to the nearest sum that N trits can have, and hands
//     the aggregated ciphertext to the devices without error.
//
// n = 9 protects nothing: lattices of that dimension are reduced in no time. Nor is
// the key a secret here: like gains and noise it is drawn from the run's public seed,
// and nobody wipes it. With sigma_pilot = 0.1 and ten devices most digits are read
// wrong, and the sum is uniform modulo q; EpsStd tells by how much.
package airhe
