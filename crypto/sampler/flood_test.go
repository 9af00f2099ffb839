package sampler

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"testing"

	"ringwave/crypto/keystream"
)

func newFlood(t *testing.T, sigma float64) Flood {
	t.Helper()
	f, err := NewFlood(sigma)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestNewFlood(t *testing.T) {
	for log2 := 13.1; log2 < 110.05; log2 += 0.17 {
		sigma := math.Exp2(log2)
		f := newFlood(t, sigma)
		if f.Std() < sigma || f.Std() >= 2*sigma {
			t.Errorf("deviation 2^%.2f for 2^%.2f", math.Log2(f.Std()), log2)
		}
		if f.k > 0 && (Flood{f.k - 1}).Std() >= sigma {
			t.Errorf("2^%.2f does not need %d low bits", log2, f.k)
		}
	}
	for _, sigma := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 3.2, 8522, 0x1p111} {
		if _, err := NewFlood(sigma); err == nil {
			t.Errorf("deviation %g was taken", sigma)
		}
	}
}

// The law's constants, against the definition in exact integers.
func TestFloodConstants(t *testing.T) {
	for _, k := range []uint{0, 1, 41, 62, 63, 64, 96} {
		f := Flood{k}
		low := new(big.Int).Lsh(big.NewInt(1), k)
		low.Sub(low, big.NewInt(1))
		bound := big.NewInt(46 * 4 * 11 * 107)
		bound.Lsh(bound, k).Add(bound, new(big.Int).Lsh(low, 1))
		if f.Bound().big().Cmp(bound) != 0 || bound.BitLen() > 114 {
			t.Errorf("k = %d: bound %v, want %v", k, f.Bound().big(), bound)
		}
		want := math.Ldexp(25.6*10*101*11237, int(2*k)) + (math.Ldexp(1, int(2*k))-1)/3
		if math.Abs(f.Variance()/want-1) > 1e-14 {
			t.Errorf("k = %d: variance %g, want %g", k, f.Variance(), want)
		}
	}
}

// Sample against its defining formula in big integers, below, at and above the
// borders of one word.
func TestFloodDefinition(t *testing.T) {
	for _, k := range []uint{0, 1, 5, 41, 61, 62, 63, 64, 65, 80, 96} {
		got := make([]Int128, 50)
		Flood{k}.Sample(got, testStream("flood"))
		s := testStream("flood")
		for i, e := range got {
			if want := floodByDefinition(k, s); e.big().Cmp(want) != 0 {
				t.Fatalf("k = %d, sample %d is %v, by definition %v", k, i, e.big(), want)
			}
		}
	}
}

// A narrow one has the same samples in words, at every k that is narrow, and whatever the
// number of samples.
func TestNarrowFlood(t *testing.T) {
	for k := range uint(maxLowBits + 1) {
		f := Flood{k}
		if bound := f.Bound().big(); f.Narrow() && bound.BitLen() > 62 {
			t.Errorf("k = %d: a bound of %v is not below 2^62", k, bound)
		}
		if !f.Narrow() {
			if k < 44 {
				t.Errorf("k = %d is not narrow", k)
			}
			continue
		}
		for _, count := range []int{0, 1, 15, 16, 50} {
			want, got := make([]Int128, count), make([]int64, count)
			f.Sample(want, testStream("flood"))
			f.SampleNarrow(got, testStream("flood"))
			for i, e := range got {
				if Int128From(e) != want[i] {
					t.Fatalf("k = %d, sample %d of %d is %d, want %v", k, i, count, e, want[i].big())
				}
			}
		}
	}
}

func floodByDefinition(k uint, s *keystream.Stream) *big.Int {
	e := new(big.Int)
	for _, z := range []int64{1, 3, 10, 30, 106, 318, 1060, 3180} {
		u := s.Uint64()
		var x int64
		for _, c := range floodTail {
			if u >= -c {
				x++
			}
		}
		if u&1 == 1 {
			x = -x
		}
		e.Add(e, big.NewInt(x*z))
	}
	e.Lsh(e, k)
	modulus := new(big.Int).Lsh(big.NewInt(1), k)
	for range 4 {
		u := new(big.Int).SetUint64(s.Uint64())
		if k > 62 {
			u.Add(u, new(big.Int).Lsh(new(big.Int).SetUint64(s.Uint64()), 64))
		}
		e.Add(e, u.Mod(u, modulus))
	}
	return e.Sub(e, modulus.Sub(modulus, big.NewInt(1)).Lsh(modulus, 1))
}

func TestFloodVectors(t *testing.T) {
	const want = "9d74872f78ae3106c325ce60f259ddf0"
	h := sha256.New()
	s := keystream.FromInteger(1).Derive("vectors").Stream()
	for _, sigma := range []float64{0x1p14, 0x1p55, 0x1p76, 0x1p77, 0x1p110} {
		for _, n := range []int{0, 1, 2, 3, 1000} {
			x := make([]Int128, n)
			newFlood(t, sigma).Sample(x, s)
			binary.Write(h, binary.LittleEndian, x)
		}
	}
	if got := hexSum(h); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func TestFloodPrefix(t *testing.T) {
	long, short := make([]Int128, 200), make([]Int128, 3)
	f := newFlood(t, 0x1p55)
	f.Sample(long, testStream("prefix"))
	f.Sample(short, testStream("prefix"))
	if [3]Int128(long[:3]) != [3]Int128(short) {
		t.Error("three samples are not the first three of many")
	}
}

func TestFloodMoments(t *testing.T) {
	const n = 1 << 17
	const cells = 128
	x := make([]Int128, n)
	f64 := make([]float64, n)
	for _, k := range []uint{0, 41, 80} {
		f := Flood{k}
		f.Sample(x, testStream("flood moments"))
		count, prob := make([]int, cells), make([]float64, cells)
		var m4 float64
		for i, v := range x {
			f64[i] = v.Float64()
			q := f64[i] / f.Std()
			m4 += q * q * q * q / n
			// The Gaussian's quantile of v, in equal cells.
			count[int(cells*0.5*math.Erfc(-q/math.Sqrt2))]++
		}
		for i := range prob {
			prob[i] = 1. / cells
		}
		name := fmt.Sprintf("flood, k = %d", k)
		chiSquare(t, name, count, prob)
		checkMoments(t, name, f64, f.Variance(), 3)
		checkLags(t, name, f64, f.Variance())
		if d := (m4 - 3) / math.Sqrt(96./n); math.Abs(d) > 5 {
			t.Errorf("%s: fourth moment %.2f deviations from the Gaussian's", name, d)
		}
	}
}

// The low bits hide as well as the high ones: uniform, alone and together with
// the sign, wherever they lie.
func TestFloodLowBits(t *testing.T) {
	const n = 1 << 17
	x := make([]Int128, n)
	for _, c := range []struct{ k, shift uint }{{0, 0}, {1, 0}, {41, 0}, {41, 39}, {80, 0}, {80, 62}, {80, 78}} {
		Flood{c.k}.Sample(x, testStream("flood low bits"))
		count, prob := make([]int, 32), make([]float64, 32)
		for _, v := range x {
			bits := (v.Lo>>c.shift | uint64(v.Hi)<<(64-c.shift)) & 15
			if c.shift >= 64 {
				bits = uint64(v.Hi) >> (c.shift - 64) & 15
			}
			count[bits|uint64(v.Hi)>>63<<4]++
		}
		for i := range prob {
			prob[i] = 1. / 32
		}
		chiSquare(t, fmt.Sprintf("k = %d, bits from %d", c.k, c.shift), count, prob)
	}
}

// One convolution, computed in full: x + 3x' and x + 10x' are the discrete
// Gaussians of deviation 16 and 160.8 as far as float64 can tell.
func TestConvolutionLaw(t *testing.T) {
	first := convolve(gaussianLaw(25.6, 60), gaussianLaw(25.6, 60), z0)
	second := convolve(gaussianLaw(256, 180), gaussianLaw(256, 180), z1)
	for name, d := range map[string]float64{
		"x + 3x'":  distance(first, 25.6*10),
		"x + 10x'": distance(second, 256*101),
	} {
		t.Logf("%s: total variation 2^%.1f", name, math.Log2(d))
		if d > 0x1p-45 {
			t.Errorf("%s: total variation %g", name, d)
		}
	}
}

// The Poisson bound 2 exp(-2 pi^2 s^2) on the relative error, where it can be
// seen: too small a deviation for its z. And its values for the steps in use.
func TestConvolutionBound(t *testing.T) {
	for _, c := range []struct {
		v float64
		z int
	}{{9, 3}, {16, 5}, {25.6, 5}} {
		s2 := c.v / float64(1+c.z*c.z)
		bound := 2 * math.Exp(-2*math.Pi*math.Pi*s2)
		law := gaussianLaw(c.v, 60)
		d := distance(convolve(law, law, c.z), c.v*float64(1+c.z*c.z))
		t.Logf("variance %v, z = %d: total variation %.3g, bound %.3g", c.v, c.z, d, bound)
		if d > bound || d < bound/10 {
			t.Errorf("variance %v, z = %d: total variation %g, bound %g", c.v, c.z, d, bound)
		}
	}
	var sum, v float64 = 0, 25.6
	copies := 4.0
	for _, z := range []float64{z0, z1, z2} {
		s2 := v / (1 + z*z)
		sum += copies * 2 * math.Exp(-2*math.Pi*math.Pi*s2)
		v *= 1 + z*z
		copies /= 2
	}
	t.Logf("all steps: 2^%.2f", math.Log2(sum))
	if math.Log2(sum) > -64.4 {
		t.Errorf("the convolutions' distance is %g", sum)
	}
}

// hermite4 is E |Z^4 - 6 Z^2 + 3| for a standard normal Z.
const hermite4 = 2.801

// lowBitsBound is the distance that the comment at Flood gives for the low bits:
// the images, and the fourth cumulant.
func lowBitsBound(v float64) (images, cumulant float64) {
	zeta4 := math.Pow(math.Pi, 4) / 90
	images = 2 / math.Pi * zeta4 * hermite4 / math.Pow(4*math.Pi*math.Pi*v, 2)
	return images, hermite4 / (48 * 30 * v * v)
}

// The whole law of 2^k x + u1 + u2 + u3 + u4 at deviations small enough for the
// distance to be seen, against the discrete Gaussian of the same variance.
func TestLowBitsLaw(t *testing.T) {
	spread := convolve(gaussianLaw(64, 90), gaussianLaw(64, 90), 5) // deviation 40.8
	for _, c := range []struct {
		v   float64
		law []float64
		k   uint
	}{
		{16, gaussianLaw(16, 40), 3},
		{64, gaussianLaw(64, 80), 3},
		{64, gaussianLaw(64, 80), 6},
		{64 * 26, spread, 3},
	} {
		scale := 1 << c.k
		uniform := make([]float64, scale)
		for i := range uniform {
			uniform[i] = 1 / float64(scale)
		}
		law := convolve([]float64{1}, c.law, scale)
		for range 4 {
			law = convolve(law, uniform, 1)
		}
		square := float64(scale * scale)
		d := distance(law, square*c.v+(square-1)/3)
		images, cumulant := lowBitsBound(c.v)
		t.Logf("variance %v, k = %d: total variation %.3g, formula %.3g", c.v, c.k, d, images+cumulant)
		if d > images+cumulant || d < (images+cumulant)/4 {
			t.Errorf("variance %v, k = %d: total variation %g, formula %g", c.v, c.k, d, images+cumulant)
		}
	}
	v := (Flood{}).Variance()
	images, cumulant := lowBitsBound(v)
	t.Logf("in use: images 2^%.2f, cumulant 2^%.2f", math.Log2(images), math.Log2(cumulant))
	if math.Log2(images) > -65.8 || math.Log2(cumulant) > -65.2 {
		t.Errorf("in use: images %g, cumulant %g", images, cumulant)
	}
}

// What the rounding of the tables leaves in x: the law of the eight terms is
// carried together with its first-order change, (P, E), so that a further term of
// law p + delta gives (P * p, E * p + P * delta). The second order is below
// (8 2^-59.9)^2. The change is small as the rounding errors alternate from one
// value to the next, and the other seven terms blur neighbours together.
func TestFloodTableError(t *testing.T) {
	delta := tableErrorLaw()
	p := gaussianLaw(25.6, len(delta)/2)
	law, change := []float64{1}, []float64{0}
	for _, z := range []int{1, 3, 10, 30, 106, 318, 1060, 3180} {
		fromOld, fromNew := convolve(change, p, z), convolve(law, delta, z)
		for i := range fromOld {
			fromOld[i] += fromNew[i]
		}
		law, change = convolve(law, p, z), fromOld
	}
	var d, chi2 float64
	for i, c := range change {
		d += math.Abs(c) / 2
		if law[i] > 0 {
			chi2 += c * c / law[i]
		}
	}
	t.Logf("statistical distance 2^%.2f, chi-square divergence 2^%.2f", math.Log2(d), math.Log2(chi2))
	if math.Log2(d) > -63.4 || math.Log2(chi2) > -71 {
		t.Errorf("statistical distance 2^%.2f, chi-square divergence 2^%.2f", math.Log2(d), math.Log2(chi2))
	}
}

// tableErrorLaw returns P_table(x) - P_ideal(x) of the flood's table, on both sides.
func tableErrorLaw() []float64 {
	errors, _, _ := tableErrors(floodTail[:], floodParameter())
	n := 60 // the ideal is below 2^-100 there
	delta := make([]float64, 2*n+1)
	for k, e := range errors[:n+1] {
		v, _ := e.Float64()
		if k == 0 {
			delta[n] = v
			continue
		}
		delta[n+k], delta[n-k] = v/2, v/2
	}
	return delta
}
