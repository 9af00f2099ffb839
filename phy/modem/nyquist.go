package modem

// nyquist takes off what a pulse that is cut off and its matched filter leave between
// symbols: it is known, and the same for all devices.
type nyquist struct {
	reach int
	taps  []float32 // of the inverse, from -reach on; nil if nothing is left
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
	for _, e := range inverse {
		n.taps = append(n.taps, float32(e))
	}
	return n
}

// even is dot for taps that are the same either way round, one in the middle and an even
// number to either side, which receivers' reach is.
func even(x []complex64, taps []float32) complex64 {
	middle := len(taps) / 2
	x, half := x[:2*middle+1], taps[:middle]
	re0, im0 := real(x[middle])*taps[middle], imag(x[middle])*taps[middle]
	var re1, im1 float32
	for n := 0; n+1 < len(half); n += 2 {
		a, b := x[n], x[len(x)-1-n]
		re0 += (real(a) + real(b)) * half[n]
		im0 += (imag(a) + imag(b)) * half[n]
		a, b = x[n+1], x[len(x)-2-n]
		re1 += (real(a) + real(b)) * half[n+1]
		im1 += (imag(a) + imag(b)) * half[n+1]
	}
	return complex(re0+re1, im0+im1)
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
	for k := range z {
		if flags[k] {
			continue
		}
		z[k] = even(line[k:k+len(n.taps)], n.taps)
	}
}
