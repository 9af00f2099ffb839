// Package xmkckks is the multi-key scheme xMK-CKKS of the paper, over the ring
// R_q = Z_q[X]/(X^n+1), for superpositions with integer gains.
//
// It takes in a parameter set, a device's own secret randomness and the server's
// broadcasts, and gives partial public keys b, ciphertexts (c0, c1), decryption
// shares D, the recovered value M, and the noise budget of Appendix B. It knows
// nothing of channels: gains enter the budget as numbers, and no Device or Server
// ever sees one.
//
// Device and Server share no memory but what the protocol sends: b, c0, c1 and D
// up; b~, c~1 and M down. Context is public.
//
// A device gives one decryption share a round, of which a Guard takes note: a Ledger
// in memory, or a Journal on disk.
//
// The model is honest but curious. A server that may choose c~1 freely reads a
// device's secret from one share: see Device.Share. What is promised against whom is
// in crypto/README.md.
package xmkckks
