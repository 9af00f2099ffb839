package channel

import "math"

// MaxFilter is the highest corner of a filter, in cycles a sample.
const MaxFilter = 0.49

// lowPass is a board's filter: a Butterworth filter of third order, as those of
// integrated transceivers are, by the bilinear transform. Its corner, where it is 3 dB
// down, is exact.
type lowPass struct {
	// A section of first order and one of second, in the direct form II transposed.
	b1, a1     float64    // (1 + z^-1) b1 / (1 + a1 z^-1)
	b2, c1, c2 float64    // (1 + z^-1)^2 b2 / (1 + c1 z^-1 + c2 z^-2)
	s1, t1, t2 complex128 // their states
}

// newLowPass makes a filter of a corner in cycles a sample; nil for 0, none.
func newLowPass(corner float64) *lowPass {
	if corner == 0 {
		return nil
	}
	w := math.Tan(math.Pi * corner)
	first, second := 1+w, 1+w+w*w // 1 + s/w and 1 + s/w + (s/w)^2, s = (1-z^-1)/(1+z^-1)
	return &lowPass{
		b1: w / first, a1: (w - 1) / first,
		b2: w * w / second, c1: 2 * (w*w - 1) / second, c2: (1 - w + w*w) / second,
	}
}

// rest begins anew.
func (f *lowPass) rest() {
	if f != nil {
		f.s1, f.t1, f.t2 = 0, 0, 0
	}
}

// apply filters x in place.
func (f *lowPass) apply(x []complex64) {
	if f == nil {
		return
	}
	for n, v := range x {
		in := scaled(complex128(v), f.b1)
		y := in + f.s1
		f.s1 = in - scaled(y, f.a1)
		in = scaled(y, f.b2)
		y = in + f.t1
		f.t1 = 2*in - scaled(y, f.c1) + f.t2
		f.t2 = in - scaled(y, f.c2)
		x[n] = complex64(y)
	}
}

// scaled returns z times a real number, without the products that 0 takes part in.
func scaled(z complex128, by float64) complex128 { return complex(by*real(z), by*imag(z)) }

// highPass is a DC block of first order, y[n] = a (y[n-1] + x[n] - x[n-1]) with
// a = e^(-2 pi corner): 3 dB down at the corner where that is far below the rate.
type highPass struct {
	a    float64
	x, y complex128
}

func newHighPass(corner float64) *highPass {
	if corner == 0 {
		return nil
	}
	return &highPass{a: math.Exp(-2 * math.Pi * corner)}
}

// rest begins anew.
func (h *highPass) rest() {
	if h != nil {
		h.x, h.y = 0, 0
	}
}

func (h *highPass) apply(x []complex64) {
	if h == nil {
		return
	}
	for n, v := range x {
		in := complex128(v)
		h.y = scaled(h.y+in-h.x, h.a)
		h.x = in
		x[n] = complex64(h.y)
	}
}

// gainControl is an automatic gain control: the power, by a mean of first order whose
// bandwidth is that of the loop, decides on a gain which brings it to where the gain is 1.
type gainControl struct {
	k         float64 // 1 - e^(-2 pi bandwidth)
	reference float64 // the power at which the gain is 1
	power     float64
}

// gainRange is how far a gain control goes, either way, as a factor of power: 20 dB.
const gainRange = 100

// newGainControl makes the control of a receiver with a full scale. Its reference leaves
// 12 dB to that.
func newGainControl(bandwidth, full float64) *gainControl {
	if bandwidth == 0 {
		return nil
	}
	reference := full * full / 16
	return &gainControl{k: -math.Expm1(-2 * math.Pi * bandwidth), reference: reference, power: reference}
}

// rest begins at gain 1.
func (g *gainControl) rest() {
	if g != nil {
		g.power = g.reference
	}
}

func (g *gainControl) apply(x []complex64) {
	if g == nil {
		return
	}
	for n, v := range x {
		re, im := float64(real(v)), float64(imag(v))
		g.power += g.k * (re*re + im*im - g.power)
		gain := math.Sqrt(g.reference / max(g.reference/gainRange, min(g.power, g.reference*gainRange)))
		x[n] = complex(float32(gain*re), float32(gain*im))
	}
}
