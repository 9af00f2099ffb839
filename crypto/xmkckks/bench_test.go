package xmkckks

import (
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tuneinsight/lattigo/v5/core/rlwe"
)

// The sets of the comparison, one a ring dimension and the paper's own beside
// the default at 4096.
func speedSets(t testing.TB) []Params {
	return []Params{
		testSet(t, "demo-1024"), testSet(t, "lean-2048"), testSet(t, "ringwave-4096-100"),
		testSet(t, "paper-4096"), testSet(t, "paper-8192"),
	}
}

// speedWitnesses is more than any set but demo-1024 takes.
const speedWitnesses = 4

// speed is one device's work and that of its peer at one parameter set. Its
// functions do one operation each.
type speed struct {
	// whole is an encryption from nothing but the received b~: its transform,
	// Prepare and Encrypt, in the whole form.
	whole func()
	// afterKey is what is left to do once b~ is there, in the short form.
	afterKey func()
	// share and shareShort are decryption shares, the transform and the digest
	// of the received c~1 included.
	share, shareShort func()
	// encrypt is lattigo's public-key encryption of a plaintext in the same
	// ring, from and to coefficient form.
	encrypt func()
	// keySwitch is the ring arithmetic of a decryption share done as lattigo's
	// multiparty key switch does it: transform of c1, product with s, transform
	// back, one Gaussian of lattigo's. Its smudging is 6 bits wide at most.
	keySwitch func()
}

func newSpeed(t testing.TB, p Params) speed {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var s speed
	attempt := uint32(0)
	for _, form := range forms() {
		c := testContext(t, p, form, speedWitnesses)
		d := testDevice(t, c, 0, openGuard{})
		key, c1 := c.NewAggregatedKey(), c.NewAggregatedC1()
		received := c.mod.NewVector(p.N)
		received.Copy(d.PublicKey())
		share := func() {
			d.stage = encrypted // one attempt's share again and again
			c.SetC1(c1, received)
			_, err := d.Share(c1)
			check(err)
		}
		if form == Whole {
			s.share = share
			s.whole = func() {
				attempt++
				d.shared = false // one device does everything in turns
				check(d.Prepare(0, attempt))
				c.SetKey(key, received)
				_, err := d.Encrypt(key, []float64{0.25})
				check(err)
			}
			continue
		}
		s.shareShort = share
		check(d.Prepare(0, 1))
		s.afterKey = func() {
			d.stage = prepared // what Prepare drew serves again: only the time is looked at
			c.SetKey(key, received)
			_, err := d.Encrypt(key, []float64{0.25})
			check(err)
		}
	}

	s.lattigo(t, p)
	return s
}

// lattigo sets what lattigo does in place of ours.
func (s *speed) lattigo(t testing.TB, p Params) {
	t.Helper()
	params := judgeParameters(t, p)
	sk, pk := rlwe.NewKeyGenerator(params).GenKeyPairNew()
	encryptor := rlwe.NewEncryptor(params, pk)
	pt := rlwe.NewPlaintext(params, params.MaxLevel())
	pt.IsNTT = false
	pt.Value.Coeffs[0][0] = 1
	ct := rlwe.NewCiphertext(params, 1, params.MaxLevel())
	s.encrypt = func() {
		if err := encryptor.Encrypt(pt, ct); err != nil {
			t.Fatal(err)
		}
	}

	errorSampler := lattigoGaussian(t, params)
	r, poly := params.RingQ(), params.RingQ().NewPoly()
	s.keySwitch = func() {
		r.NTT(ct.Value[1], poly)
		r.MulCoeffsMontgomery(poly, sk.Value.Q, poly)
		r.INTT(poly, poly)
		errorSampler.ReadAndAdd(poly)
	}
}

func benchmark(b *testing.B, operation func()) {
	b.ReportAllocs()
	for b.Loop() {
		operation()
	}
}

func BenchmarkEncrypt(b *testing.B) {
	for _, p := range speedSets(b) {
		s := newSpeed(b, p)
		name := fmt.Sprintf("n=%d/%s/", p.N, p.Name)
		b.Run(name+"ringwave", func(b *testing.B) { benchmark(b, s.whole) })
		b.Run(name+"short-after-key", func(b *testing.B) { benchmark(b, s.afterKey) })
		b.Run(name+"lattigo", func(b *testing.B) { benchmark(b, s.encrypt) })
	}
}

func BenchmarkShare(b *testing.B) {
	for _, p := range speedSets(b) {
		s := newSpeed(b, p)
		name := fmt.Sprintf("n=%d/%s/", p.N, p.Name)
		b.Run(name+"ringwave", func(b *testing.B) { benchmark(b, s.share) })
		b.Run(name+"short", func(b *testing.B) { benchmark(b, s.shareShort) })
		b.Run(name+"lattigo", func(b *testing.B) { benchmark(b, s.keySwitch) })
	}
}

// BenchmarkPhases shows where the time of an encryption goes.
func BenchmarkPhases(b *testing.B) {
	for _, p := range speedSets(b) {
		name := fmt.Sprintf("n=%d/%s/", p.N, p.Name)
		for _, form := range forms() {
			c := testContext(b, p, form, speedWitnesses)
			d := testDevice(b, c, 0, openGuard{})
			key := c.NewAggregatedKey()
			attempt := uint32(0)
			b.Run(name+form.String()+"/Prepare", func(b *testing.B) {
				benchmark(b, func() {
					attempt++
					if err := d.Prepare(0, attempt); err != nil {
						b.Fatal(err)
					}
				})
			})
			b.Run(name+form.String()+"/SetKey", func(b *testing.B) {
				benchmark(b, func() { c.SetKey(key, d.b) })
			})
			b.Run(name+form.String()+"/Encrypt", func(b *testing.B) {
				benchmark(b, func() {
					d.stage = prepared
					if _, err := d.Encrypt(key, []float64{0.25}); err != nil {
						b.Fatal(err)
					}
				})
			})
		}
	}
}

// TestSpeedRatios prints what encryption costs beside lattigo's, both measured
// in turns in one process on one core, so that what else the machine does weighs
// on both. It judges nothing: the time is the machine's, not the code's.
func TestSpeedRatios(t *testing.T) {
	if os.Getenv("RINGWAVE_SPEED") != "1" {
		t.Skip("a measurement, not a test: set RINGWAVE_SPEED=1 and run with -v to see the ratios")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, p := range speedSets(t) {
		s := newSpeed(t, p)
		operations := []func(){s.whole, s.encrypt, s.afterKey, s.share, s.shareShort, s.keySwitch}
		// About as many microseconds for each dimension.
		turns := 200 * 1024 * 128 / (p.N * bits.Len(uint(p.N)))
		times := make([][]time.Duration, len(operations))
		for turn := range turns + 3 {
			for i, operation := range operations {
				start := time.Now()
				operation()
				if took := time.Since(start); turn >= 3 { // the first turns warm the caches
					times[i] = append(times[i], took)
				}
			}
		}
		median := make([]float64, len(operations))
		for i := range times {
			slices.Sort(times[i])
			median[i] = float64(times[i][turns/2]) / 1e3
		}
		t.Logf("n = %4d %-14s %4d turns: whole %.0f us, lattigo %.0f us, ratio %.3f; short after key %.1f us, %.3f of the whole; share %.0f us (short %.0f), lattigo %.0f us, ratio %.3f (%.3f)",
			p.N, p.Name, turns, median[0], median[1], median[0]/median[1],
			median[2], median[2]/median[0],
			median[3], median[4], median[5], median[3]/median[5], median[4]/median[5])
	}
}
