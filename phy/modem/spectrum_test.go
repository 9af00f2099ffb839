package modem

import (
	"math"
	"testing"
)

// A rectangle's spectrum is the square of a sine over its argument, with zeros at the
// symbol rate; of a root-raised-cosine 99 % lie within (1 + roll-off) symbol rates, and
// half of the power at the symbol rate's half.
func TestSpectrum(t *testing.T) {
	const n, sps = 1024, 8
	flat := Config{Pulse: FlatTop{Tolerance: 1}, SamplesPerSymbol: sps, Preamble: Preamble{Length: 127}}
	s := flat.Spectrum(n)
	sum := 0.0
	for k, p := range s {
		sum += p
		f := float64(k)
		if k >= n/2 {
			f -= n
		}
		want := 1.0
		if f != 0 {
			x := math.Sin(math.Pi*f/n*sps) / (sps * math.Sin(math.Pi*f/n))
			want = x * x
		}
		if math.Abs(p/s[0]-want) > 1e-9 {
			t.Fatalf("bin %d has %v of the first, want %v", k, p/s[0], want)
		}
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("the shares' sum is %v", sum)
	}
	root := Config{Pulse: RootRaisedCosine{RollOff: 0.25, Span: 16}, SamplesPerSymbol: sps, Preamble: Preamble{Length: 127}}
	low, high := OccupiedBand(root.Spectrum(n), 0.99)
	if low != -high || !(high > 0.5/sps) || high > 0.5*1.25/sps {
		t.Errorf("99 %% between %v and %v cycles a sample", low, high)
	}
	if (Config{}).Spectrum(n) != nil {
		t.Error("a spectrum of nothing")
	}
}

// All that a band leaves out is no more than its share, evenly on both sides.
func TestOccupiedBand(t *testing.T) {
	for _, c := range []struct {
		power     []float64
		low, high CyclesPerSample
	}{
		{[]float64{1, 0, 0, 0, 0, 0, 0, 0}, -0.0625, 0.0625},
		{[]float64{0, 0, 1, 0, 0, 0, 0, 0}, 0.1875, 0.3125},
		{[]float64{1, 1, 1, 1, 1, 1, 1, 1}, -0.5625, 0.4375}, // the bin at the half is the lowest
		{nil, 0, 0},
	} {
		if low, high := OccupiedBand(c.power, 0.99); low != c.low || high != c.high {
			t.Errorf("%v: from %v to %v, want %v to %v", c.power, low, high, c.low, c.high)
		}
	}
	even := make([]float64, 1001)
	for k := range even {
		even[k] = 1
	}
	if low, high := OccupiedBand(even, 0.5); math.Abs(float64(low)+0.25) > 2e-3 || math.Abs(float64(high)-0.25) > 2e-3 {
		t.Errorf("half of an even spectrum is from %v to %v", low, high)
	}
}

// What symbols of a root-raised-cosine leave in each other is what their documentation says.
func TestInterference(t *testing.T) {
	for _, c := range []struct {
		rollOff float64
		span    Symbols
		want    float64 // dB
	}{{0.25, 8, -39}, {0.25, 12, -38}, {0.25, 16, -54}, {0.25, 24, -62}, {0.35, 12, -59}, {0.5, 8, -51}, {0.5, 16, -65}, {0.1, 16, -32}} {
		got := 10 * math.Log10(RootRaisedCosine{RollOff: c.rollOff, Span: c.span}.Interference(8))
		if math.Abs(got-c.want) > 0.5 {
			t.Errorf("at a roll-off of %v over %v symbols it is %.1f dB, want %v dB", c.rollOff, c.span, got, c.want)
		}
	}
}
