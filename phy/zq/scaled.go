package zq

import "math/bits"

// addScaledPortable sets y += h x mod p for h, x, y < p, with Shoup's multiplication:
// for h' = floor(h 2^64 / p), h x - floor(h' x / 2^64) p lies in [0, 2p).
func addScaledPortable(y []uint64, h, hs uint64, x []uint64, p uint64) {
	for k, xk := range x {
		hi, _ := bits.Mul64(hs, xk)
		r := h*xk - hi*p        // < 2p
		s := y[k] + min(r, r-p) // < 2p: r-p wraps high when r < p
		y[k] = min(s, s-p)
	}
}
