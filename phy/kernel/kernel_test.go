package kernel

import (
	"encoding/binary"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"ringwave/crypto/vector"
)

// fast returns the kernels of the paths that this processor has, beside the portable one.
func fast(t testing.TB) []Kernel {
	var all []Kernel
	for _, p := range vector.Paths() {
		if p != vector.Portable && p.Lacks() == "" {
			all = append(all, New(p))
		}
	}
	if len(all) == 0 {
		t.Skip("this processor has no vectors that are used")
	}
	return all
}

// bytes returns eight random bytes for each of n samples.
func bytes(rnd *rand.Rand, n int) []byte {
	b := make([]byte, 0, 8*n)
	for range n {
		b = binary.LittleEndian.AppendUint64(b, rnd.Uint64())
	}
	return b
}

// samples returns samples of all magnitudes, zeros of both signs among them.
func samples(rnd *rand.Rand, n int) []complex64 {
	one := func() float32 {
		switch rnd.IntN(20) {
		case 0:
			return 0
		case 1:
			return float32(math.Copysign(0, -1))
		}
		return float32(rnd.NormFloat64() * math.Pow(10, float64(rnd.IntN(12)-6)))
	}
	x := make([]complex64, n)
	for i := range x {
		x[i] = complex(one(), one())
	}
	return x
}

func taps(rnd *rand.Rand, n int) []float32 {
	t := make([]float32, n)
	for i := range t {
		t[i] = float32(rnd.NormFloat64())
	}
	return t
}

// same reports whether two slices are the same bits.
func same(a, b []complex64) bool {
	return slices.EqualFunc(a, b, func(x, y complex64) bool {
		return math.Float32bits(real(x)) == math.Float32bits(real(y)) && math.Float32bits(imag(x)) == math.Float32bits(imag(y))
	})
}

// All paths give the same bits, whatever the lengths, and write nothing else.
func TestPaths(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n, count, stride := rnd.IntN(150), 1+rnd.IntN(40), 1+rnd.IntN(20)
		x, f := samples(rnd, 20*150+count), taps(rnd, count)
		random, line := bytes(rnd, n), taps(rnd, 300)
		by, gain, std := samples(rnd, 1)[0], float32(rnd.NormFloat64()), rnd.Float32()
		for name, op := range map[string]func(k Kernel, dst []complex64){
			"convolve":  func(k Kernel, dst []complex64) { k.Convolve(dst, x[:n+count-1], f, gain) },
			"correlate": func(k Kernel, dst []complex64) { k.Correlate(dst, x[:max(0, n-1)*stride+count], f, stride) },
			"turn":      func(k Kernel, dst []complex64) { k.Turn(dst, by) },
			"noise":     func(k Kernel, dst []complex64) { k.AddNoise(dst, random, std) },
			"shape": func(k Kernel, dst []complex64) {
				whole := len(f) / stride * stride
				if whole > 0 {
					k.NewShaper(f[:whole], stride, by).Shape(dst, line)
				}
			},
		} {
			want := slices.Clone(x[:n+8])
			op(Kernel{}, want[:n])
			for _, k := range fast(t) {
				got := slices.Clone(x[:n+8])
				op(k, got[:n])
				if !same(got, want) {
					t.Fatalf("%s of %d samples, %d taps, stride %d: %s gives other bits than the portable path", name, n, count, stride, k.path)
				}
			}
		}
	}
}

// The sums are those of double precision, to its error.
func TestSums(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 1))
	f := taps(rnd, 33)
	x := make([]complex64, 33+400)
	for i := range x {
		x[i] = complex(float32(rnd.NormFloat64()), float32(rnd.NormFloat64()))
	}
	for _, k := range append(fast(t), Kernel{}) {
		dense, sparse := make([]complex64, 50), make([]complex64, 50)
		k.Convolve(dense, x, f, 2)
		k.Correlate(sparse, x, f, 7)
		for n := range dense {
			var a, b complex128
			for i, t := range f {
				a += 2 * complex(float64(t), 0) * complex128(x[n+len(f)-1-i])
				b += complex(float64(t), 0) * complex128(x[7*n+i])
			}
			if d := cmplx.Abs(complex128(dense[n]) - a); d > 2e-5 {
				t.Fatalf("%s: sample %d of Convolve is off by %g", k.path, n, d)
			}
			if d := cmplx.Abs(complex128(sparse[n]) - b); d > 1e-5 {
				t.Fatalf("%s: sample %d of Correlate is off by %g", k.path, n, d)
			}
		}
		turned := slices.Clone(x)
		k.Turn(turned, complex(0.6, -0.8))
		for n, y := range turned {
			if want := x[n] * complex(0.6, -0.8); y != want {
				t.Fatalf("%s: sample %d is turned to %v, want the compiler's %v", k.path, n, y, want)
			}
		}
	}
}

// Logarithm, sine and cosine are those of package math, at the ends of their ranges too.
func TestFunctions(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for i := range uint32(1 << 20) {
		u := rnd.Uint32()
		switch {
		case i < 1000:
			u = i
		case i < 200_000: // near 1
			u = math.MaxUint32 - i
		}
		exact := math.Log(float64(float32(u>>1|1)) / (1 << 31))
		got := logarithm(u)
		if got > 0 || math.Abs(float64(got)-exact) > 2e-7*math.Abs(exact) {
			t.Fatalf("the logarithm of %d is %v, want %v", u, got, exact)
		}
		angle := (float64(u>>30) + float64(u&(1<<30-1))/(1<<30) - 0.5) * math.Pi / 2
		sin, cos := sincos(u)
		if s, c := math.Sincos(angle); math.Abs(float64(sin)-s) > 1.2e-7 || math.Abs(float64(cos)-c) > 1.2e-7 {
			t.Fatalf("angle %v: %v and %v, want %v and %v", angle, sin, cos, s, c)
		}
	}
}

// Noise is normal: its distribution function, moments, tails and independence. The bounds
// are of five deviations.
func TestNoise(t *testing.T) {
	const n = 1 << 22
	rnd := rand.New(rand.NewPCG(4, 1))
	x := make([]complex64, n)
	New(vector.Fastest()).AddNoise(x, bytes(rnd, n), 1)
	var both, far, squares float64
	all := make([]float64, 0, 2*n)
	for k, v := range x {
		re, im := float64(real(v)), float64(imag(v))
		all = append(all, re, im)
		both += re * im
		squares += (re*re - 1) * (im*im - 1)
		if k > 0 {
			far += re * float64(real(x[k-1]))
		}
	}
	deviation := 1 / math.Sqrt(n)
	for name, v := range map[string][2]float64{
		"re im": {both / n, deviation}, "re^2 im^2": {squares / n, 2 * deviation}, "neighbours": {far / n, deviation},
	} {
		if math.Abs(v[0]) > 5*v[1] {
			t.Errorf("%s: a mean of %v, want 0 to %v", name, v[0], 5*v[1])
		}
	}
	for p, want := range map[float64][2]float64{1: {0, 1}, 2: {1, math.Sqrt(2)}, 3: {0, math.Sqrt(15)}, 4: {3, math.Sqrt(96)}, 6: {15, math.Sqrt(10395 - 225)}} {
		sum := 0.0
		for _, v := range all {
			sum += math.Pow(v, p)
		}
		if mean, bound := sum/(2*n), 5*want[1]/math.Sqrt(2*n); math.Abs(mean-want[0]) > bound {
			t.Errorf("moment %v is %v, want %v to %v", p, mean, want[0], bound)
		}
	}
	for _, level := range []float64{3, 4, 5} {
		count := 0.0
		for _, v := range all {
			if math.Abs(v) > level {
				count++
			}
		}
		want := 2 * n * 2 * distuv.UnitNormal.Survival(level)
		if math.Abs(count-want) > 5*math.Sqrt(want) {
			t.Errorf("%v numbers are beyond %v, want %v", count, level, want)
		}
	}
	// Kolmogorov and Smirnov: P(sqrt(n) D > 2.5) < 1e-5.
	slices.Sort(all)
	worst := 0.0
	for i, v := range all {
		f := distuv.UnitNormal.CDF(v)
		worst = max(worst, math.Abs(f-float64(i)/(2*n)), math.Abs(f-float64(i+1)/(2*n)))
	}
	if d := worst * math.Sqrt(2*n); d > 2.5 {
		t.Errorf("the distribution is off by %v over the square root of the number", d)
	}
}

func BenchmarkKernel(b *testing.B) {
	const n = 2048
	rnd := rand.New(rand.NewPCG(1, 1))
	x, dst, f := samples(rnd, 16*n+200), make([]complex64, n), taps(rnd, 16)
	long := taps(rnd, 300)
	random := bytes(rnd, n)
	for _, k := range append([]Kernel{{}}, fast(b)...) {
		flat, rrc := k.NewShaper(f, 8, 1i), k.NewShaper(taps(rnd, 8*17), 8, 1i)
		for name, op := range map[string]func(){
			"convolve-16":  func() { k.Convolve(dst, x, f, 1) },
			"convolve-127": func() { k.Convolve(dst, x, long[:127], 1) },
			"correlate-8":  func() { k.Correlate(dst, x, f[:8], 16) },
			"correlate-33": func() { k.Correlate(dst, x, long[:33], 2) },
			"turn":         func() { k.Turn(dst, complex(0.6, 0.8)) },
			"shape-2":      func() { flat.Shape(dst, long) },
			"shape-17":     func() { rrc.Shape(dst, long) },
			"noise":        func() { k.AddNoise(dst, random, 1e-9) },
		} {
			b.Run(name+"/"+k.path.String(), func(b *testing.B) {
				for b.Loop() {
					op()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
			})
		}
	}
}
