package lattice

import (
	"math"
	"testing"
)

// devices returns n devices with h ~ N(1, sigma^2).
func devices(n int, sigma float64) []normal {
	g := make([]normal, n)
	for i := range g {
		g[i] = normal{1, sigma}
	}
	return g
}

// setting is a column of the table of phy/README.md, section 3.
type setting struct{ sigma, snrdB float64 }

func settings() []setting {
	return []setting{{0.05, 30}, {0.3, 30}, {0.3, 40}, {1, 40}, {1, 50}}
}

// table has the lower bounds of phy/README.md, section 3, of N = 2, 3, 4 at the settings.
func table() map[int][]float64 {
	return map[int][]float64{
		2: {1, 0.95, 1, 1, 1},
		3: {1, 0.69, 0.95, 0.97, 1},
		4: {1, 0.30, 0.61, 0.71, 0.97},
	}
}

// Success is at least the bounds of phy/README.md, section 3. They are rounded to
// 0.01, from an unknown number of blocks; three deviations of our own share are
// allowed below. At sigma = 1 two devices are sometimes both as weak as the noise,
// which no receiver mends: 1.00 there is 0.993 when enough blocks are counted.
func TestSuccessTable(t *testing.T) {
	trials := 1000
	if testing.Short() {
		trials = 300
	}
	for n := 2; n <= 4; n++ {
		for i, set := range settings() {
			got, misfit, zeros := readShare(blocks{
				gains: devices(n, set.sigma), snrDB: set.snrdB, base: 3, symbols: 8192, trials: trials, seed: 31,
			})
			want := table()[n][i]
			t.Logf("N = %d, sigma = %.2f, %.0f dB: %.3f, at least %.2f; misfit %.3f, dropped %.3f", n, set.sigma, set.snrdB, got, want, misfit, zeros)
			p := want - 0.005
			if bound := p - 3*math.Sqrt(p*(1-p)/float64(trials)); got < bound {
				t.Errorf("success %.3f is below %.3f", got, bound)
			}
		}
	}
}

// At N = 3, sigma = 0.3, 40 dB, four attempts read at least 99 % of the blocks;
// and retries help where one attempt does not do.
func TestRetry(t *testing.T) {
	for _, c := range []struct {
		devices     int
		snrdB, want float64
	}{{3, 40, 0.99}, {3, 30, 0.97}, {4, 40, 0.97}} {
		got, misfit, zeros := readShare(blocks{
			gains: devices(c.devices, 0.3), snrDB: c.snrdB, base: 3, symbols: 8192, attempts: 4, trials: 1000, seed: 2,
		})
		t.Logf("N = %d, %v dB: %.4f within four attempts, misfit %.3f, dropped %.3f", c.devices, c.snrdB, got, misfit, zeros)
		if got < c.want {
			t.Errorf("N = %d, %v dB: %.4f within four attempts, want %.2f", c.devices, c.snrdB, got, c.want)
		}
	}
}

// Which convention of SNR do the bounds have? Their own receiver, the scale of the
// best quality sliced as it is, gives less than the table where the SNR is
// mu^2/Var[noise], nearly the table at E[d^2] mu^2/Var, and more where half of the
// noise is taken to lie in the imaginary part. This package's convention is the
// middle one: at the table's SNR it has more noise than the last.
func TestConventionOfSNR(t *testing.T) {
	readings := []float64{-10 * math.Log10(1.5), 0, 10 * math.Log10(2)}
	for _, c := range []struct{ devices, column int }{{3, 1}, {4, 1}, {4, 2}, {4, 3}} {
		set, want := settings()[c.column], table()[c.devices][c.column]
		var share [3]float64
		for i, shift := range readings {
			share[i] = bestQuality(blocks{
				gains: devices(c.devices, set.sigma), snrDB: set.snrdB + shift, base: 3, symbols: 8192, trials: 500, seed: 4,
			})
		}
		t.Logf("N = %d, sigma = %v, %v dB: %.3f, %.3f, %.3f, the bound is %.2f", c.devices, set.sigma, set.snrdB, share[0], share[1], share[2], want)
		// Ours deviates by 0.022; the table by as much or more.
		if share[0] > want || math.Abs(share[1]-want) > 0.12 {
			t.Errorf("the readings %.3f do not lie about %.2f", share, want)
		}
	}
}

// bestQuality returns the share of blocks that the scale of the highest quality
// alone, sliced plainly, reads.
func bestQuality(cfg blocks) float64 {
	s := newSuperposition(cfg)
	ok := 0
	for range cfg.trials {
		for i, g := range s.cfg.gains {
			s.h[i] = g.draw(s.rnd)
		}
		s.transmit()
		if _, err := s.receiver.Candidates(s.y); err != nil {
			continue
		}
		best := Candidate{}
		for _, c := range s.receiver.found {
			if c.Quality > best.Quality {
				best = c
			}
		}
		tried := 0
		if best.Alpha > 0 && s.receiver.readPlain(s.y, best.Alpha, s.correct, &tried) {
			ok++
		}
	}
	return float64(ok) / float64(cfg.trials)
}
