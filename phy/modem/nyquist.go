package modem

import "math"

// nyquist takes off what a pulse that is cut off and its matched filter leave between
// symbols: it is known, and the same for all devices.
type nyquist struct {
	reach int
	pairs []pair  // of the inverse's taps; nil if nothing is left
	own   float32 // its tap in the middle
	line  []complex64
}

func newNyquist(r receiver) nyquist {
	n := nyquist{reach: r.reach()}
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
	for at, e := range inverse[:n.reach] {
		if math.Abs(e) >= matters {
			n.pairs = append(n.pairs, pair{at, float32(e)})
		}
	}
	n.own = float32(inverse[n.reach])
	return n
}

// pair is two taps of a filter that is the same either way round: one so many from its
// beginning, and one as many from its end.
type pair struct {
	at  int
	tap float32
}

// even returns what a filter that is the same either way round, own in its middle, makes
// of the symbols x.
func even(x []complex64, own float32, pairs []pair) complex64 {
	middle := x[len(x)/2]
	re0, im0 := real(middle)*own, imag(middle)*own
	var re1, im1 float32
	for ; len(pairs) >= 2; pairs = pairs[2:] {
		p, q := pairs[0], pairs[1]
		a, b := x[p.at], x[len(x)-1-p.at]
		re0 += (real(a) + real(b)) * p.tap
		im0 += (imag(a) + imag(b)) * p.tap
		a, b = x[q.at], x[len(x)-1-q.at]
		re1 += (real(a) + real(b)) * q.tap
		im1 += (imag(a) + imag(b)) * q.tap
	}
	for _, p := range pairs {
		a, b := x[p.at], x[len(x)-1-p.at]
		re0 += (real(a) + real(b)) * p.tap
		im0 += (imag(a) + imag(b)) * p.tap
	}
	return complex(re0+re1, im0+im1)
}

// take filters the symbols, beyond which there is silence. Those that are flagged are 0,
// and remain so.
func (n *nyquist) take(z []complex64, flags []bool) {
	if n.pairs == nil {
		return
	}
	if cap(n.line) < len(z)+2*n.reach {
		n.line = make([]complex64, len(z)+2*n.reach)
	}
	line := n.line[:len(z)+2*n.reach]
	clear(line[:n.reach])
	clear(line[n.reach+len(z):])
	copy(line[n.reach:], z)
	for k := range z {
		if flags[k] {
			continue
		}
		z[k] = even(line[k:k+2*n.reach+1], n.own, n.pairs)
	}
}
