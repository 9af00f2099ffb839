package attack

import (
	"context"
	"errors"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
)

// Every attack comes out as stated.
func TestAttacks(t *testing.T) {
	names := map[string]bool{}
	for _, a := range All() {
		if names[a.Name] || a.Short == "" {
			t.Errorf("attack %q has its name twice or no description", a.Name)
		}
		names[a.Name] = true
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			results, err := a.Run(context.Background(), keystream.FromInteger(1))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				t.Logf("%s\n  attack  %+v\n  control %+v\n  guard   %s", r.Target, r.Attack, r.Control, r.Guard)
				if !r.AsStated || r.Name != a.Name {
					t.Errorf("%s: %s", r.Target, r.Verdict)
				}
			}
		})
	}
}

// The guards must be the library's: these attacks have one, the others none.
func TestGuards(t *testing.T) {
	guarded := []string{"many-answers", "nearby-c1", "refreshed-errors", "lying-server", "lost-device"}
	for _, a := range All() {
		if a.Name != "chosen-c1" && a.Name != "chosen-b" && !slices.Contains(guarded, a.Name) {
			continue
		}
		results, err := a.Run(context.Background(), keystream.FromInteger(2))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if !r.AsStated || (r.Guard != "") != slices.Contains(guarded, a.Name) {
				t.Errorf("%s: as stated %v, guard %q", a.Name, r.AsStated, r.Guard)
			}
		}
	}
}

// The same seed gives the same results, another seed others.
func TestDeterminism(t *testing.T) {
	run := func(seed uint64) Result {
		r, err := All()[0].Run(context.Background(), keystream.FromInteger(seed))
		if err != nil {
			t.Fatal(err)
		}
		return r[0]
	}
	if run(1) != run(1) || run(1) == run(3) {
		t.Error("results do not depend on the seed alone")
	}
}

// A cancelled context ends the long attacks.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, a := range All() {
		switch a.Name {
		case "xmkckks-client", "colluding-clients", "small-share-noise", "unflooded-rounds", "many-answers", "refreshed-errors", "lying-server", "lost-device", "chosen-b":
			if _, err := a.Run(ctx, keystream.FromInteger(1)); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", a.Name, err)
			}
		}
	}
}

// What the package makes again is what the library makes: b_i and c1_i from seeds,
// to the bit.
func TestRemadeIsTheLibrarys(t *testing.T) {
	for _, p := range xmkckks.Sets() {
		q, err := newParty(p, p.Form, 2, 4, keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		w := q.bench
		s, e := w.ownKey(q.seeds[1])
		b := w.multiply(w.a, w.transform(lift(w, s)))
		minus := w.mod.NewVector(p.N)
		w.mod.AddScaled(minus, -1, b)
		w.mod.Add(minus, minus, lift(w, e))
		if !minus.Equal(q.devices[1].PublicKey()) {
			t.Errorf("%s: b differs", p.Name)
		}
		_, c1, err := q.encrypt(1, 3, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		v, _, e1 := w.ownRandomness(q.seeds[1], 3)
		again := w.multiply(w.a, w.transform(lift(w, v)))
		w.mod.Add(again, again, lift(w, e1))
		if !again.Equal(c1) {
			t.Errorf("%s: c1 differs", p.Name)
		}
		// firstOf is coefficient 0 of the product; divide undoes multiply.
		product := w.multiply(w.transform(c1), w.transform(lift(w, s)))
		if first := firstOf(w, s)(c1); first[0][0] != product[0][0] {
			t.Errorf("%s: coefficient 0 of s c1 is %d, expected %d", p.Name, first[0][0], product[0][0])
		}
		if quotient := w.divide(product, w.transform(c1)); !quotient.Equal(lift(w, s)) {
			t.Errorf("%s: s c1/c1 is not s", p.Name)
		}
		q.close()
	}
}

// Opening under the right key has the noise of openingStd: 300 of them per set.
func TestOpeningStd(t *testing.T) {
	p, err := set("demo-1024")
	if err != nil {
		t.Fatal(err)
	}
	q, err := newParty(p, p.Form, 3, 4, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	var keys [][]int8
	for _, s := range q.seeds {
		own, _ := q.bench.ownKey(s)
		keys = append(keys, own)
	}
	open, square := firstOf(q.bench, added(keys...)), 0.0
	const rounds = 2000
	for k := range uint32(rounds) {
		c0, c1, err := q.encrypt(0, k+1, 0.25)
		if err != nil {
			t.Fatal(err)
		}
		e := (q.bench.open(c0, c1, open) - 0.25) / q.bench.openingStd(3)
		square += e * e / rounds
	}
	// The variance itself strays with the fixed keys by sqrt(2/n) of each half.
	if math.Abs(square-1) > 5*(math.Sqrt(2./rounds)+math.Sqrt(2./1024)) {
		t.Errorf("the noise has %.3f of the expected variance", square)
	}
}

// The regression finds s without noise exactly, by a product computed elsewhere.
func TestRegression(t *testing.T) {
	const n = 64
	rnd := rand.New(keystream.FromInteger(1).Stream())
	small := func() []int8 {
		x := make([]int8, n)
		for k := range x {
			x[k] = int8(rnd.IntN(7) - 3)
		}
		return x
	}
	product := func(a, b []int8) []float64 {
		y := make([]float64, n)
		for i, u := range a {
			for j, v := range b {
				if i+j < n {
					y[i+j] += float64(u) * float64(v)
				} else {
					y[i+j-n] -= float64(u) * float64(v)
				}
			}
		}
		return y
	}
	s, r := small(), newRegression(n)
	for range 3 {
		x, u, v := small(), small(), small()
		y, known := product(s, x), product(u, v)
		for k := range y {
			y[k] += known[k]
		}
		r.add(y, x, [2][]int8{u, v})
	}
	for k, x := range r.solve() {
		if math.Abs(x-float64(s[k])) > 1e-9 {
			t.Fatalf("coefficient %d is %v, expected %d", k, x, s[k])
		}
	}
}

func TestSolve(t *testing.T) {
	rnd := rand.New(keystream.FromInteger(1).Stream())
	for n := range 6 {
		n++
		x, rows, keep := make([]complex128, n), make([][]complex128, n), make([][]complex128, n)
		for i := range rows {
			x[i] = complex(rnd.NormFloat64(), rnd.NormFloat64())
			for range n {
				rows[i] = append(rows[i], complex(rnd.NormFloat64(), rnd.NormFloat64()))
			}
		}
		rows[0][0] = 0 // needs a pivot
		if n == 1 {
			rows[0][0] = 2
		}
		for i := range rows {
			sum := complex(0, 0)
			for j := range x {
				sum += rows[i][j] * x[j]
			}
			rows[i] = append(rows[i], sum)
			keep[i] = slices.Clone(rows[i])
		}
		for i, got := range solve(rows) {
			if cmplx.Abs(got-x[i]) > 1e-9 {
				t.Errorf("n = %d: unknown %d is %v, expected %v (%v)", n, i, got, x[i], keep)
			}
		}
	}
}

// The listener's misread rounds are as many as its closed form says, counted at
// three noises on 20,000 channels each.
func TestMisread(t *testing.T) {
	rnd := rand.New(keystream.FromInteger(9).Stream())
	const rounds, trits = 20000, 80
	for _, noise := range []float64{0.01, 0.03, 0.1} {
		wrong := 0
		for range rounds {
			l := newListener(sharedDevices, 0, noise, rnd)
			for range trits {
				d := float64(rnd.IntN(3) - 1)
				if math.Max(-1, math.Min(1, math.Round(real(l.hear(complex(d, 0)))))) != d {
					wrong++
					break
				}
			}
		}
		p, got := misread(noise, trits), float64(wrong)/rounds
		t.Logf("noise %v: %.5f misread, expected %.5f", noise, got, p)
		if math.Abs(got-p) > 5*math.Sqrt(p*(1-p)/rounds) {
			t.Errorf("noise %v: %.5f of the rounds misread, expected %.5f", noise, got, p)
		}
	}
}

func TestMeasure(t *testing.T) {
	m := measure("", []float64{1, 0, -2, 3}, []float64{1, 2, -1, 0}, 0.5)
	if m.Exact != 0.25 || math.Abs(m.Advantage-2./3) > 1e-12 || m.Samples != 4 {
		t.Errorf("%+v", m)
	}
	if c := correlation([]float64{1, 2, 3}, []float64{-2, -4, -6}); math.Abs(c+1) > 1e-12 {
		t.Errorf("correlation %v", c)
	}
	if c := correlation([]float64{1, 1, 1}, []float64{1, 2, 3}); c != 0 {
		t.Errorf("correlation %v with a constant", c)
	}
}

// average finds the first error of a sequence, across the modulus.
func TestAverage(t *testing.T) {
	p, err := set("paper-4096")
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorkbench(p, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	first, later := []uint64{2, 7, p.Primes[0] - 1}, []uint64{p.Primes[0] - 1, 8, 1}
	e, err := w.average(first, 1, func(dst []uint64) error { copy(dst, later); return nil })
	if err != nil || !slices.Equal(e, []float64{1.5, -0.5, -1}) {
		t.Errorf("%v, %v", e, err)
	}
}
