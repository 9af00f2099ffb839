package paper

import (
	"math"
	"testing"
)

// TestStatedNoises has the formula's values by hand: at n = 4096, sigma = 1 the sums
// are S = 20 and Q = 400 + 80 - 20 = 460, and all but the products of polynomials
// is below a thousandth.
func TestStatedNoises(t *testing.T) {
	rows, err := statedNoises(12, 785)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 {
		t.Fatalf("there are %d rows; there must be two sets times two sigmas", len(rows))
	}
	for _, r := range rows {
		t.Logf("%s sigma %v: formula %.3g = %.3g Omega^2, samplers %.3g, rho %.3g (%.3g for L = b_2 = 1), Table II %.1g at a factor of %v in place of %v, stated %v",
			r.ParameterSet, r.Sigma, r.Variance, r.PerOmega2, r.Sampled, r.Rho, r.RhoUnit, r.TableRho, r.TableFactor, r.Factor, r.Stated)
		q := map[float64]float64{1: 460, 10: 1010*1010 + 2*10*101*101 - 20}[r.Sigma]
		wantNear(t, "the formula's variance", r.Variance, float64(r.N)*10.24*q*5/3/math.Exp2(80), 1e-3)
		wantNear(t, "the samplers' variance", r.Sampled, r.Variance, 1e-3)
		wantNear(t, "rho", r.Rho, 12*785*r.Variance/2, 1e-12)
		wantNear(t, "rho for L = b_2 = 1", r.RhoUnit, r.Variance/2, 1e-12)
		wantNear(t, "Table II's factor", r.TableFactor, 1, 1e-12)
		if len(r.Stated) != 3 {
			t.Fatalf("there are %d stated values; the text has three", len(r.Stated))
		}
		for _, s := range r.Stated {
			wantNear(t, s.Where, s.Variance/s.Ratio, r.Variance, 1e-12)
			if s.Ratio < 2 {
				t.Errorf("%s sigma %v: %s states %v times the formula; it is known to be more than twice", r.ParameterSet, r.Sigma, s.Where, s.Ratio)
			}
		}
	}
	wantNear(t, "(4096, 109) at sigma = 1", rows[0].Variance, 2.7e-17, 0.02)
	wantNear(t, "(4096, 109) at sigma = 10, over Omega^2", rows[1].PerOmega2, 6.9e-18, 0.01)
	wantNear(t, "(8192, 218) against (4096, 109)", rows[2].Variance/rows[0].Variance, 2, 1e-3)

	for _, bad := range []struct {
		l float64
		d int
	}{{0, 1}, {math.NaN(), 1}, {1, 0}} {
		if _, err := statedNoises(bad.l, bad.d); err == nil {
			t.Errorf("L = %v and d = %d were taken", bad.l, bad.d)
		}
	}
}

// TestAppendixBHasAllTerms checks the channel noises' terms, which the paper's
// figures leave at 0.
func TestAppendixBHasAllTerms(t *testing.T) {
	b := appendixB{N: 8, Devices: 3, LogLambda: 2, SigmaE: 2, SigmaPhi: 5, SigmaW: 7, Mu: 0.5, Omega: 1.25}
	const s = 3.75
	q := s*s + 2*3*1.25*1.25 - 2*3*0.0625
	want := 8*(4*q+49*s)*2/3 + 4*s + 49 + 8*4*q + 8*49*s + 25*s + 49
	wantNear(t, "the variance", b.decodedVariance(), want/16, 1e-14)
}

func wantNear(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !near(got, want, within) {
		t.Errorf("%s is %v; it must be %v to a share of %v", what, got, want, within)
	}
}
