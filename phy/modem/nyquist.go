package modem

import (
	"math"
	"slices"

	"ringwave/crypto/vector"
	"ringwave/phy/kernel"
)

// nyquist takes off what a pulse that is cut off and its matched filter leave between
// symbols: it is known, and the same for all devices.
type nyquist struct {
	reach  int
	taps   []float32 // of the inverse, the same either way round; nil if nothing is left
	line   []complex64
	kernel kernel.Kernel
}

func newNyquist(r receiver) nyquist {
	n := nyquist{reach: r.reach(), kernel: kernel.New(vector.Fastest())}
	if n.reach == 0 {
		return n
	}
	response := make([]float64, 2*n.reach+1)
	own := r.at(0)
	for l := range response {
		if l != n.reach {
			response[l] = r.at(l-n.reach) / own
		}
	}
	// 1/(1 + r) = 1 - r + r^2 - ...; r is some percent at most.
	inverse := make([]float64, len(response))
	for range 6 {
		next := make([]float64, len(response))
		next[n.reach] = 1
		for m, e := range inverse {
			for l, r := range response {
				if at := m + l - n.reach; at >= 0 && at < len(next) {
					next[at] -= e * r
				}
			}
		}
		inverse = next
	}
	const matters = 1e-5 // of a symbol: 100 dB below it
	taps := make([]float32, len(inverse))
	for at, e := range inverse {
		if math.Abs(e) >= matters {
			taps[at] = float32(e)
		}
	}
	if taps[n.reach] = 0; slices.ContainsFunc(taps, func(t float32) bool { return t != 0 }) {
		n.taps = taps
	}
	taps[n.reach] = float32(inverse[n.reach])
	return n
}

// take filters the symbols, beyond which there is silence. Those that are flagged are 0,
// and remain so.
func (n *nyquist) take(z []complex64, flags []bool) {
	if n.taps == nil {
		return
	}
	if cap(n.line) < len(z)+2*n.reach {
		n.line = make([]complex64, len(z)+2*n.reach)
	}
	line := n.line[:len(z)+2*n.reach]
	clear(line[:n.reach])
	clear(line[n.reach+len(z):])
	copy(line[n.reach:], z)
	n.kernel.Convolve(z, line, n.taps, 1)
	for k, flagged := range flags[:len(z)] {
		if flagged {
			z[k] = line[n.reach+k]
		}
	}
}
