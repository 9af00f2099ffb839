package lattice

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func newReceiver(t testing.TB, opt Options) *Receiver {
	t.Helper()
	r, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func all([]int32) bool  { return true }
func none([]int32) bool { return false }

// superposed returns trits superposed with the given gains.
func superposed(n int, noise float64, gains ...float64) *superposition {
	s := newSuperposition(blocks{
		gains: make([]normal, len(gains)), snrDB: 0, base: 3, symbols: n, trials: 1, seed: 7,
	})
	s.noise = noise
	copy(s.h, gains)
	s.transmit()
	return s
}

func TestCosTurn(t *testing.T) {
	for i := range 10001 {
		d := float64(i)/10000 - 0.5
		if got, want := cosTurn(d), math.Cos(2*math.Pi*d); math.Abs(got-want) > 3e-7 {
			t.Fatalf("cos(2 pi %v) = %v, got %v", d, want, got)
		}
	}
}

// slice writes the integers nearest to alpha y to dst and gives the statistics of all
// symbols; NaN and what exceeds MaxLevel count as distance 1/2.
func slice(dst []int32, y []float32, alpha float64) Stats {
	round(dst, y, alpha)
	return measure(y, alpha)
}

func TestSlice(t *testing.T) {
	y := []float32{0.26, -0.49, 1.1, -2, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 3e38}
	dst := make([]int32, len(y))
	s := slice(dst, y, 4)
	if want := []int32{1, -2, 4, -8, 0, MaxLevel, -MaxLevel, MaxLevel}; !slices.Equal(dst, want) {
		t.Errorf("got %v, want %v", dst, want)
	}
	if s.Largest != MaxLevel {
		t.Errorf("largest %d", s.Largest)
	}
	s = slice(dst[:4], y[:4], 4)
	distance, quality := 0.0, 0.0
	for _, v := range y[:4] {
		d := 4*float64(v) - math.Round(4*float64(v))
		distance += d * d / 4
		quality += math.Cos(2*math.Pi*d) / 4
	}
	if math.Abs(s.Distance-distance) > 1e-9 || math.Abs(s.Quality-quality) > 3e-7 || s.Largest != 8 {
		t.Errorf("got %+v, want distance %v, quality %v", s, distance, quality)
	}
	if s := slice(nil, nil, 1); s != (Stats{}) {
		t.Errorf("an empty block has %+v", s)
	}
}

// Emulated gains: multiples of 2^-8, so that Y = sum H_i d_i exactly.
func TestEmulated(t *testing.T) {
	s := superposed(1000, 0.0003, 300./256, -77./256, 1./256)
	out := make([]int32, 1000)
	slice(out, s.y, 256)
	s.receiver.alpha = 256
	if !s.correct(out) {
		t.Error("round is wrong")
	}
	res, err := s.receiver.At(s.y, 256, s.correct)
	if err != nil || res.Alpha != 256 || !slices.Equal(res.Y, out) || res.Stats.Largest > 378 {
		t.Errorf("At: %v, %+v", err, res.Stats)
	}
}

// Gains near small integers: the refined scale is near the given one, and a
// given scale too far off is not used.
func TestMeanAligned(t *testing.T) {
	s := superposed(4096, 0.02, 0.98*2, 1.01*2, 1.03*2)
	res, err := s.receiver.Near(s.y, 0.5, 0.1, s.correct)
	if err != nil || math.Abs(res.Alpha-0.5) > 0.05 {
		t.Fatalf("%v, alpha = %v", err, res.Alpha)
	}
	if res, err = s.receiver.Near(s.y, 0.4, 0.01, none); !errors.Is(err, ErrNoLattice) || res.Y != nil {
		t.Errorf("%v", err)
	}
	for _, alpha := range []float64{0, -1, math.NaN(), math.Inf(1), 1e12} {
		if _, err := s.receiver.At(s.y, alpha, all); !errors.Is(err, ErrScale) {
			t.Errorf("At %v: %v", alpha, err)
		}
	}
	if _, err := s.receiver.Near(s.y, math.NaN(), 0.1, all); !errors.Is(err, ErrScale) {
		t.Errorf("Near NaN: %v", err)
	}
}

// One device has a lattice at any scale; the finest is limited by MaxAlpha.
func TestSingleDevice(t *testing.T) {
	s := superposed(512, 0.01, 0.8)
	res, err := s.receiver.Search(s.y, s.correct)
	if err != nil || res.Alpha*0.8 < 2 {
		t.Fatalf("%v, alpha = %v", err, res.Alpha)
	}
	s.receiver = newReceiver(t, Options{MaxAlpha: 3})
	if res, err = s.receiver.Search(s.y, s.correct); err != nil || math.Abs(res.Alpha-2.5) > 0.02 {
		t.Errorf("%v, alpha = %v, want 2/0.8", err, res.Alpha)
	}
}

// The result does not depend on the receiver's gain, even at the ends of float32.
func TestAnyAmplitude(t *testing.T) {
	s := superposed(2048, 0.008, 1.2, 0.7, 0.9)
	res, err := s.receiver.Search(s.y, s.correct)
	if err != nil {
		t.Fatal(err)
	}
	want, alpha := slices.Clone(res.Y), res.Alpha
	for _, scale := range []float64{0x1p-100, 0x1p100, 0x1p126} {
		y := slices.Clone(s.y)
		for k := range y {
			y[k] = float32(float64(y[k]) * scale)
		}
		if math.IsInf(float64(slices.Max(y)), 0) {
			continue
		}
		res, err := s.receiver.Search(y, func(y []int32) bool { return slices.Equal(y, want) })
		if err != nil || math.Abs(res.Alpha*scale/alpha-1) > 1e-6 {
			t.Errorf("times %v: %v, alpha = %v", scale, err, res.Alpha)
		}
	}
}

func TestBadBlocks(t *testing.T) {
	r := newReceiver(t, Options{})
	with := func(bad float64) []float32 {
		s := superposed(100, 0.01, 1, 0.8)
		s.y[50] = float32(bad)
		return s.y
	}
	constant := slices.Repeat([]float32{0.7}, 100)
	for name, c := range map[string]struct {
		y    []float32
		want error
	}{
		"NaN":      {with(math.NaN()), ErrNotFinite},
		"Inf":      {with(math.Inf(1)), ErrNotFinite},
		"-Inf":     {with(math.Inf(-1)), ErrNotFinite},
		"zero":     {make([]float32, 100), ErrNoSignal},
		"constant": {constant, ErrNoSignal},
		"short":    {with(0)[:15], ErrTooShort},
		"empty":    {nil, ErrTooShort},
	} {
		if _, err := r.Candidates(c.y); !errors.Is(err, c.want) {
			t.Errorf("%s: Candidates gives %v", name, err)
		}
		if res, err := r.Search(c.y, all); !errors.Is(err, c.want) || res.Y != nil {
			t.Errorf("%s: Search gives %v", name, err)
		}
		if _, err := r.Near(c.y, 1, 0.1, all); !errors.Is(err, c.want) {
			t.Errorf("%s: Near gives %v", name, err)
		}
		if _, err := r.At(c.y, 1, all); name != "short" && !errors.Is(err, c.want) {
			t.Errorf("%s: At gives %v", name, err)
		}
	}
	if res, err := r.At(with(0)[:3], 1, all); err != nil || len(res.Y) != 3 {
		t.Errorf("three symbols at a known scale: %v", err)
	}
}

// Blocks without digits or of extreme shape are searched without a panic, and
// never offer all-zero integers.
func TestOddBlocks(t *testing.T) {
	r := newReceiver(t, Options{})
	rnd := rand.New(rand.NewPCG(1, 1))
	fill := func(n int, f func(k int) float64) []float32 {
		y := make([]float32, n)
		for k := range y {
			y[k] = float32(f(k))
		}
		return y
	}
	for name, y := range map[string][]float32{
		"noise":      fill(5000, func(int) float64 { return rnd.NormFloat64() }),
		"uniform":    fill(5000, func(int) float64 { return rnd.Float64() - 0.5 }),
		"one spike":  fill(5000, func(k int) float64 { return float64(max(0, k-4998)) }),
		"huge spike": fill(5000, func(k int) float64 { return rnd.NormFloat64() + 1e38*float64(max(0, k-4998)) }),
		"huge":       fill(5000, func(k int) float64 { return math.MaxFloat32 * float64(k%3-1) }),
		"tiny":       fill(5000, func(k int) float64 { return math.SmallestNonzeroFloat32 * float64(k%3-1) }),
		"two values": fill(16, func(k int) float64 { return float64(k % 2) }),
		"ramp":       fill(16, func(k int) float64 { return float64(k) }),
	} {
		offered := 0
		res, err := r.Search(y, func(y []int32) bool {
			offered++
			if zero(y) {
				t.Errorf("%s: all zeros were offered", name)
			}
			return false
		})
		if !errors.Is(err, ErrNoLattice) || res.Tried != offered {
			t.Errorf("%s: %v, tried %d, offered %d", name, err, res.Tried, offered)
		}
	}
}

// Blocks of 16 to 64 symbols of two devices still show a lattice.
func TestShortBlocks(t *testing.T) {
	for _, n := range []int{16, 32, 64} {
		got, _, _ := readShare(blocks{gains: devices(2, 0.3), snrDB: 40, base: 3, symbols: n, trials: 300, seed: 1})
		t.Logf("%d symbols: %.2f", n, got)
		if got < 0.8 {
			t.Errorf("%d symbols: success %.2f", n, got)
		}
	}
}

func TestCandidatesAreOrderedAndTrue(t *testing.T) {
	s := superposed(8192, 0.008, 1.3, 0.8, -0.5)
	list, err := s.receiver.Candidates(s.y)
	if err != nil || len(list) == 0 || len(list) > defaultCandidates {
		t.Fatalf("%v, %d candidates", err, len(list))
	}
	if !slices.IsSortedFunc(list, byScale) {
		t.Error("the candidates are out of order")
	}
	for _, c := range list {
		// The histogram's bins and the refined scale move the quality a little.
		if s := measure(s.y, c.Alpha); math.Abs(s.Quality-c.Quality) > 0.03 {
			t.Errorf("alpha = %v: quality %v, of all symbols %v", c.Alpha, c.Quality, s.Quality)
		}
		if c.Noise < 0.007 {
			t.Errorf("alpha = %v: noise and misfit of %v, the noise alone is 0.008", c.Alpha, c.Noise)
		}
	}
}

// The mean of m repetitions has 1/m of the noise's variance: 20,000 samples give
// it within 5 %, more than four deviations of sqrt(2/20000).
func TestCombine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	acc, y := make([]float32, 20000), make([]float32, 20000)
	for m := range 4 {
		for k := range y {
			y[k] = float32(3 + rnd.NormFloat64())
		}
		Combine(acc, y, float64(m))
		variance := 0.0
		for _, v := range acc {
			variance += (float64(v) - 3) * (float64(v) - 3) / float64(len(acc))
		}
		if want := 1 / float64(m+1); math.Abs(variance/want-1) > 0.05 {
			t.Errorf("%d repetitions: variance %.4f, want %.4f", m+1, variance, want)
		}
	}
}

func TestNothingAllocated(t *testing.T) {
	s := superposed(8192, 0.008, 1.3, 0.8, 0.5)
	r := newReceiver(t, Options{Symbols: 8192})
	if n := testing.AllocsPerRun(20, func() {
		if _, err := r.Search(s.y, all); err != nil {
			t.Fatal(err)
		}
		r.Search(s.y, none)
		r.At(s.y, 2, none)
		r.Near(s.y, 2, 0.1, none)
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// lengths of blocks: the table's, and a transmission of demo sets' size.
func lengths() map[string]int { return map[string]int{"8192": 8192, "71680": 71680} }

// BenchmarkSearch searches blocks of three devices at 40 dB: found is a block
// whose first candidate is accepted, refused one that no candidate reads.
func BenchmarkSearch(b *testing.B) {
	for name, n := range lengths() {
		s := superposed(n, 0.008, 1.3, 0.8, 0.5)
		r := newReceiver(b, Options{Symbols: n})
		b.Run("list/"+name, func(b *testing.B) {
			for b.Loop() {
				r.Candidates(s.y)
			}
		})
		b.Run("found/"+name, func(b *testing.B) {
			for b.Loop() {
				r.Search(s.y, all)
			}
		})
		b.Run("refused/"+name, func(b *testing.B) {
			for b.Loop() {
				r.Search(s.y, none)
			}
		})
	}
}

// BenchmarkFIR64 is what a search is measured against: 64 real multiply-adds a
// symbol, the strictest reading, and a filter with 64 real taps over complex
// samples, four a symbol.
func BenchmarkFIR64(b *testing.B) {
	taps := make([]float32, 64)
	for i := range taps {
		taps[i] = 1 / float32(i+1)
	}
	for name, n := range lengths() {
		x, y := make([]float32, n+63), make([]float32, n)
		b.Run("symbols/"+name, func(b *testing.B) {
			for b.Loop() {
				filter(y, x, taps)
			}
		})
		z, w := make([]complex64, 4*n+63), make([]complex64, 4*n)
		b.Run("samples/"+name, func(b *testing.B) {
			for b.Loop() {
				filterComplex(w, z, taps)
			}
		})
	}
}

func filter(y, x, taps []float32) {
	for k := range y {
		part := x[k : k+len(taps)]
		sum := float32(0)
		for i, t := range taps {
			sum += t * part[i]
		}
		y[k] = sum
	}
}

func filterComplex(y, x []complex64, taps []float32) {
	for k := range y {
		part := x[k : k+len(taps)]
		re, im := float32(0), float32(0)
		for i, t := range taps {
			re += t * real(part[i])
			im += t * imag(part[i])
		}
		y[k] = complex(re, im)
	}
}
