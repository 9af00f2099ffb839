package sampler

import (
	"math"
	"math/big"
	"testing"
)

// tableDistance returns the total variation of a tail table from the ideal
// distribution, and the table's variance over the ideal's, less 1.
func tableDistance(tail []uint64, v *big.Float) (distance, variance float64) {
	delta, have, want := tableErrors(tail, v)
	sum := new(big.Float).SetPrec(precision)
	for _, d := range delta {
		sum.Add(sum, new(big.Float).Abs(d))
	}
	distance, _ = sum.Float64()
	ratio := new(big.Float).Quo(have, want)
	variance, _ = ratio.Sub(ratio, big.NewFloat(1)).Float64()
	return distance / 2, variance
}

// tableErrors returns P_table(|x| = k) - P_ideal(|x| = k), k = 0, 1, ... until the
// ideal is below 2^-200, and both variances.
func tableErrors(tail []uint64, v *big.Float) (delta []*big.Float, have, want *big.Float) {
	weight, total := discreteGaussian(v)
	have = new(big.Float).SetPrec(precision)
	want = new(big.Float).SetPrec(precision)
	at := func(k int) *big.Float { // 2^64 P_table(|x| >= k)
		switch {
		case k == 0:
			return new(big.Float).SetPrec(precision).SetInt(new(big.Int).Lsh(big.NewInt(1), 64))
		case k > len(tail):
			return new(big.Float).SetPrec(precision)
		}
		return new(big.Float).SetPrec(precision).SetUint64(tail[k-1])
	}
	for k, w := range weight {
		p := at(k)
		p.Sub(p, at(k+1))
		p.SetMantExp(p, -64)
		q := new(big.Float).Quo(w, total)
		if k > 0 {
			q.Mul(q, big.NewFloat(2))
		}
		square := big.NewFloat(float64(k * k))
		have.Add(have, new(big.Float).Mul(p, square))
		want.Add(want, new(big.Float).Mul(q, square))
		delta = append(delta, p.Sub(p, q))
	}
	return delta, have, want
}

func TestTableDistance(t *testing.T) {
	for _, c := range []struct {
		name  string
		tail  []uint64
		v     *big.Float
		log2  float64 // claimed bound of the distance
		value float64
	}{
		{"gaussian", gaussianTail[:], gaussianParameter(), -60.7, 10.24},
		{"flood", floodTail[:], floodParameter(), -59.9, 25.6},
	} {
		d, variance := tableDistance(c.tail, c.v)
		t.Logf("%s: statistical distance 2^%.2f, variance off by 2^%.1f", c.name, math.Log2(d), math.Log2(math.Abs(variance)))
		if math.Log2(d) > c.log2 || math.Log2(d) < c.log2-0.2 {
			t.Errorf("%s: statistical distance 2^%.2f, stated as 2^%.1f", c.name, math.Log2(d), c.log2)
		}
		if math.Abs(variance) > 0x1p-62 {
			t.Errorf("%s: variance off by %g", c.name, variance)
		}
		if got := tableVariance(c.tail); math.Abs(got/c.value-1) > 0x1p-50 {
			t.Errorf("%s: tableVariance gives %.17g, want %v", c.name, got, c.value)
		}
	}
}

// The constant-time sum of carries against a plain search of the table, at and
// beside every step and with both signs.
func TestFromTable(t *testing.T) {
	for _, tail := range [][]uint64{gaussianTail[:], floodTail[:]} {
		u := []uint64{0, 1, 2, math.MaxUint64, math.MaxUint64 - 1, 1 << 63}
		for _, c := range tail {
			for d := range uint64(6) {
				u = append(u, -c+d-3)
			}
		}
		s := testStream("table")
		for range 2000 {
			u = append(u, s.Uint64())
		}
		for i := 0; i+4 <= len(u); i++ {
			words := [4]uint64(u[i : i+4])
			for j, m := range magnitudes(tail, &words) {
				k := 0
				for k < len(tail) && words[j] >= -tail[k] {
					k++
				}
				if int(m) != k {
					t.Fatalf("word %#x gives %d, the table has %d", words[j], m, k)
				}
				want := int64(k)
				if words[j]&1 == 1 {
					want = -want
				}
				if got := signed(m, words[j]); got != want {
					t.Fatalf("word %#x gives %d, want %d", words[j], got, want)
				}
			}
		}
	}
}
