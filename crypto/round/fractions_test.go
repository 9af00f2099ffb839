package round

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"ringwave/crypto/xmkckks"
	"ringwave/phy"
)

// fractions are real gains a_i/b that a test sets: a link that rounds the real
// superposition of the coefficients, as for continuous gains.
type fractions struct {
	phy.Gains
	scaled []float64
}

func (f *fractions) Continuous() bool                         { return true }
func (f *fractions) Scaled(dst []float64, _, _ uint32, _ int) { copy(dst, f.scaled) }

// Gains a_i/b that are no integers leave errors of multiples of q/b. None of 20,000
// rounds (RINGWAVE_LONG=1; 210 otherwise) over all sets, b up to 12, 1 to 10 devices
// and ring noise of deviation 0.1 to 8 is accepted. The controls beside them, integer
// gains and the same noise, are all read, within 8 predicted deviations of what was
// sent. (Without ring noise the check is another, and one.)
func TestFractions(t *testing.T) {
	rounds := 210
	if os.Getenv("RINGWAVE_LONG") == "1" {
		rounds = 20_000
	}
	rnd := rand.New(rand.NewPCG(11, 12))
	benches, gains := fractionBenches(t)
	wrong, read := 0, 0
	for k := range rounds {
		b, f := benches[k%len(benches)], gains[k%len(benches)]
		delta := b.deltas()
		d := int64(2) // in every second round: the largest residuals, of q/2
		if k%2 == 1 {
			d += 1 + rnd.Int64N(10)
		}
		whole := true
		for whole {
			for i := range f.scaled {
				a := rnd.Int64N(6*d+1) - 3*d
				whole = whole && a%d == 0
				f.scaled[i] = float64(a) / float64(d)
			}
		}
		out, err := b.engine.Run(t.Context(), uint32(2*k), delta)
		if err != nil {
			t.Fatal(err)
		}
		if !out.Skipped {
			wrong++
			t.Errorf("%s: gains %v were accepted: M = %v, sent %g", b.ctx.Params.Name, f.scaled, out.M, b.ideal(f.scaled, delta, 0))
		}
		for i := range f.scaled {
			f.scaled[i] = float64(1 + rnd.Int64N(3)*(1-2*rnd.Int64N(2)))
		}
		f.scaled[0] = 1
		out, err = b.engine.Run(t.Context(), uint32(2*k+1), delta)
		if err != nil {
			t.Fatal(err)
		}
		if out.Skipped {
			t.Errorf("%s: gains %v were refused: %v", b.ctx.Params.Name, f.scaled, out.Failures)
			continue
		}
		read++
		if eps, std := out.M[0]-b.ideal(f.scaled, delta, 0), b.design.ConditionalStdAt(b.ctx, f.scaled, out.Alpha); math.Abs(eps) > 8*std {
			t.Errorf("%s: gains %v: eps = %g, its deviation %g", b.ctx.Params.Name, f.scaled, eps, std)
		}
	}
	t.Logf("%d benches: %d of %d rounds of fractions accepted, %d of %d controls read", len(benches), wrong, rounds, read, rounds)
}

// fractionBenches returns benches over all sets, devices and noise, and the gains of each.
func fractionBenches(t *testing.T) (benches []*bench, gains []*fractions) {
	for _, p := range xmkckks.Sets() {
		for i, devices := range []int{1, 2, 3, 6, 10} {
			noise := []float64{0, 0.1, 0.5, 2, 8}[(i+len(benches))%5]
			link := xmkckks.Link{Alpha: 1, DeltaMax: 1, Shares: 1000, NoiseStd: [4]float64{noise, noise, noise, noise}}
			for range devices {
				link.Mu, link.Omega = append(link.Mu, 1), append(link.Omega, 2)
			}
			if _, err := xmkckks.NewDesign(p, p.Form, link); err != nil {
				continue // the smallest set has no room for so many devices
			}
			f := &fractions{scaled: make([]float64, devices)}
			benches = append(benches, newBench(t, setup{
				params: p, form: p.Form, devices: devices, sigma: 1, noise: link.NoiseStd,
				gains: func(g phy.Gains) phy.Gains { f.Gains = g; return f }, seed: uint64(i),
			}))
			gains = append(gains, f)
		}
	}
	return benches, gains
}
