package channel

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
)

func newPath(t testing.TB, imp Impairments) *Path {
	t.Helper()
	p, err := NewPath(imp, keystream.FromInteger(3))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tone returns n samples of a tone of unit amplitude.
func tone(n int, cycles float64) []complex64 {
	x := make([]complex64, n)
	for i := range x {
		x[i] = unit(2 * math.Pi * cycles * float64(i))
	}
	return x
}

// Tones come out delayed by exactly the latency and the path's delay, to -60 dB,
// whatever the blocks they are passed in.
func TestPathDelays(t *testing.T) {
	for _, delay := range []float64{0, 0.25, 0.5, 0.99, 1, 3.7, 100.125} {
		for _, cycles := range []float64{0, 0.03, -0.11, 0.3} {
			p := newPath(t, Impairments{DelaySamples: delay})
			p.SetGain(-2)
			x := tone(600, cycles)
			y := make([]complex64, len(x))
			for from, block := 0, 1; from < len(x); block = block%97 + 13 {
				to := min(from+block, len(x))
				p.Apply(y[from:to], x[from:to])
				from = to
			}
			worst := 0.0
			for n := 200; n < len(x); n++ {
				want := -2 * cmplx.Exp(complex(0, 2*math.Pi*cycles*(float64(n)-delay-float64(p.Latency()))))
				worst = math.Max(worst, cmplx.Abs(complex128(y[n])-want)/2)
			}
			if worst > 1e-3 {
				t.Errorf("delay %v, %v cycles a sample: error %.1f dB", delay, cycles, 20*math.Log10(worst))
			}
		}
	}
}

// How a stream is cut into blocks changes no bit, and a whole delay changes nothing
// but the place.
func TestPathBlocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	x := make([]complex64, 500)
	for n := range x {
		x[n] = complex(float32(rnd.NormFloat64()), float32(rnd.NormFloat64()))
	}
	for _, delay := range []float64{0, 3, 0.4, 7.9} {
		whole, cut := newPath(t, Impairments{DelaySamples: delay}), newPath(t, Impairments{DelaySamples: delay})
		y, z := make([]complex64, len(x)), make([]complex64, len(x))
		whole.Apply(y, x)
		for from := 0; from < len(x); {
			to := min(from+rnd.IntN(20), len(x))
			cut.Apply(z[from:to], x[from:to])
			from = to
		}
		if !slices.Equal(y, z) {
			t.Errorf("delay %v: the blocks matter", delay)
		}
		if first := int(delay) + whole.Latency(); delay == math.Trunc(delay) && !slices.Equal(y[first:], x[:len(x)-first]) {
			t.Errorf("delay %v: the samples changed", delay)
		}
	}
}

func TestPathTurns(t *testing.T) {
	p := newPath(t, Impairments{CarrierOffset: 1e-3, PhaseRad: 0.5})
	x := tone(5000, 0)
	p.Apply(x, x)
	for n := 100; n < len(x); n++ {
		want := cmplx.Exp(complex(0, 0.5+2*math.Pi*1e-3*float64(n)))
		if cmplx.Abs(complex128(x[n])-want) > 1e-4 {
			t.Fatalf("sample %d is %v, want %v", n, x[n], want)
		}
	}
	// The phase of a Wiener process after n steps has variance n std^2: the mean
	// square of independent increments over 100 samples, within five standard
	// errors.
	const std, step = 1e-3, 100
	p = newPath(t, Impairments{PhaseNoiseStd: std})
	x = tone(500*step+100, 0)
	p.Apply(x, x)
	sum := 0.0
	for n := 100; n+step < len(x); n += step {
		d := cmplx.Phase(complex128(x[n+step]) / complex128(x[n]))
		sum += d * d
	}
	ratio := sum / 500 / (step * std * std)
	if math.Abs(ratio-1) > 5*math.Sqrt(2.0/500) {
		t.Errorf("phase noise has %v of its variance", ratio)
	}
}

func TestFrontEnd(t *testing.T) {
	// IQ mismatch: the image of a tone against the tone, in closed form
	// |1 - g e^(-j phi)|/|1 + g e^(j phi)|.
	imp := Impairments{IQGainDB: 0.5, IQPhaseRad: 0.02}
	x := tone(1000, 0.1)
	newFrontEnd(imp).apply(x)
	var signal, image complex128
	for n, v := range x {
		signal += complex128(v) * cmplx.Exp(complex(0, -2*math.Pi*0.1*float64(n)))
		image += complex128(v) * cmplx.Exp(complex(0, 2*math.Pi*0.1*float64(n)))
	}
	g := math.Pow(10, 0.5/20)
	want := cmplx.Abs(1-complex(g, 0)*cmplx.Exp(complex(0, 0.02))) / cmplx.Abs(1+complex(g, 0)*cmplx.Exp(complex(0, 0.02)))
	if got := cmplx.Abs(image / signal); math.Abs(got/want-1) > 0.01 {
		t.Errorf("image %v of the signal, want %v", got, want)
	}

	// Converters: 6.02 bits + 1.76 dB for a sine of amplitude 1 - 2^(1-bits) in
	// each branch, less that amplitude, within half a decibel.
	for _, bits := range []int{4, 8, 12} {
		x, ref := tone(20000, 0.0371), tone(20000, 0.0371)
		for n := range x {
			x[n] *= complex(1-float32(math.Ldexp(1, 1-bits)), 0)
			ref[n] = x[n]
		}
		clipped := newFrontEnd(Impairments{ConverterBits: bits}).apply(x)
		var noise, power float64
		for n := range x {
			noise += math.Pow(cmplx.Abs(complex128(x[n]-ref[n])), 2)
			power += math.Pow(cmplx.Abs(complex128(ref[n])), 2)
		}
		if snr := 10 * math.Log10(power/noise); clipped != 0 || math.Abs(snr-6.02*float64(bits)-1.76-20*math.Log10(1-math.Ldexp(1, 1-bits))) > 0.5 {
			t.Errorf("%d bits: %.2f dB, %d clipped", bits, snr, clipped)
		}
	}
	loud := []complex64{2, -3i, 0.5, complex(float32(math.Inf(1)), 0)}
	if c := newFrontEnd(Impairments{ConverterBits: 8}).apply(loud); c != 3 || real(loud[0]) >= 1 || imag(loud[1]) != -1 {
		t.Errorf("%d of 3 loud samples clipped: %v", c, loud)
	}

	f, err := NewFront(Impairments{}, 0.1, 3, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]complex64, 50000)
	f.Apply(noise)
	power := 0.0
	for _, v := range noise {
		power += math.Pow(cmplx.Abs(complex128(v)), 2)
	}
	if ratio := power / 50000 / (2 * 0.09); math.Abs(ratio-1) > 5/math.Sqrt(50000) {
		t.Errorf("receiver noise has %v of its power", ratio)
	}
}

func TestImpairmentRanges(t *testing.T) {
	for _, imp := range []Impairments{
		{DelaySamples: -1}, {DelaySamples: 1e9}, {DelaySamples: math.NaN()}, {CarrierOffset: 1},
		{PhaseNoiseStd: -1}, {IQGainDB: 100}, {ConverterBits: 40}, {DC: 2},
	} {
		if _, err := NewPath(imp, keystream.Seed{}); err == nil {
			t.Errorf("%+v was taken", imp)
		}
	}
	if _, err := NewFront(Impairments{}, -1, 1, keystream.Seed{}); err == nil {
		t.Error("negative noise was taken")
	}
}

func TestPathAllocatesNothing(t *testing.T) {
	p := newPath(t, Impairments{DelaySamples: 5.3, CarrierOffset: 1e-5, PhaseNoiseStd: 1e-4, ConverterBits: 8})
	x := make([]complex64, 512)
	if n := testing.AllocsPerRun(20, func() { p.Apply(x, x) }); n != 0 {
		t.Errorf("%v allocations a block", n)
	}
}

func BenchmarkPath(b *testing.B) {
	x := make([]complex64, 4096)
	for name, imp := range map[string]Impairments{"delay": {DelaySamples: 0.3, PhaseRad: 1}, "all": {DelaySamples: 5.3, CarrierOffset: 1e-5, PhaseNoiseStd: 1e-4, ConverterBits: 8}} {
		b.Run(name, func(b *testing.B) {
			p := newPath(b, imp)
			b.SetBytes(int64(8 * len(x)))
			for b.Loop() {
				p.Apply(x, x)
			}
		})
	}
}
