package xmkckks

import (
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
)

// encodeInParts is encode in floating-point arithmetic, in three parts of at most 52
// bits. A part and its remainder share the value's sign and its 53 bits, so each step
// is exact. It branches on the value within math.Trunc and math.Round.
func encodeInParts(x float64, logLambda int) sampler.Int128 {
	rest := x * math.Exp2(float64(logLambda))
	high := math.Trunc(rest * 0x1p-104)
	rest -= high * 0x1p104
	mid := math.Trunc(rest * 0x1p-52)
	rest -= mid * 0x1p52
	return sampler.Int128From(int64(high)).Lsh(104).
		Add(sampler.Int128From(int64(mid)).Lsh(52)).
		Add(sampler.Int128From(int64(math.Round(rest))))
}

// Every exponent at every scale, with mantissas of all kinds: of all ones, of one bit,
// at random, and beside them.
func TestEncodeAgainstParts(t *testing.T) {
	rnd := rand.New(keystream.FromInteger(5).Stream())
	wrong := 0
	check := func(bits uint64, logLambda int) {
		for _, sign := range []uint64{0, 1 << 63} {
			x := math.Float64frombits(bits | sign)
			if !(math.Ldexp(math.Abs(x), logLambda) < 0x1p126) {
				continue
			}
			if got, want := encode(x, logLambda), encodeInParts(x, logLambda); got != want && wrong < 10 {
				t.Errorf("encode(%x, %d) = %x, expected %x", x, logLambda, got, want)
				wrong++
			}
		}
	}
	for logLambda := range maxLogLambda + 1 {
		for exponent := range uint64(0x7ff) {
			at := exponent << 52
			one := uint64(1) << rnd.Uint64N(52)
			for _, mantissa := range []uint64{0, 1, 1<<52 - 1, one, one - 1, rnd.Uint64N(1 << 52)} {
				check(at|mantissa, logLambda)
			}
		}
		// Halves, and the numbers beside them.
		for range 100 {
			half := math.Float64bits(math.Ldexp(float64(rnd.Uint64N(1<<rnd.Uint64N(53)))+0.5, -logLambda))
			check(half, logLambda)
			check(half+1, logLambda)
			check(half-1, logLambda)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, x := range []struct {
		name   string
		encode func(float64, int) sampler.Int128
	}{{"bits", encode}, {"parts", encodeInParts}} {
		b.Run(x.name, func(b *testing.B) {
			var sum sampler.Int128
			for b.Loop() {
				sum = sum.Add(x.encode(0.3, 74))
			}
		})
	}
}
