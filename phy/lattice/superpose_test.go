package lattice

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// normal is a gain h ~ N(mu, sigma^2).
type normal struct{ mu, sigma float64 }

func (g normal) draw(rnd *rand.Rand) float64 { return g.mu + g.sigma*rnd.NormFloat64() }

// blocks describes blocks of symbols for the receiver: digits by real gains, and white
// noise. Rounds of the protocol are simulated by phy/trial.
type blocks struct {
	gains []normal
	// snrDB is that of a device of gain 1: E[d^2]/Var[noise].
	snrDB         float64
	base, symbols int
	// attempts is how often a block is tried, by fresh gains in [0.7, 1] from the second
	// time on; 0 stands for 1.
	attempts, trials int
	seed             uint64
}

// superposition is a block with its truth.
type superposition struct {
	cfg      blocks
	source   *rand.PCG
	rnd      *rand.Rand
	receiver *Receiver
	noise    float64
	h        []float64
	digits   [][]int8
	y        []float32
}

func newSuperposition(c blocks) *superposition {
	s := &superposition{
		cfg: c, source: rand.NewPCG(c.seed, 0), h: make([]float64, len(c.gains)), y: make([]float32, c.symbols),
		noise: math.Sqrt(float64(c.base*c.base-1)/12) * math.Pow(10, -c.snrDB/20),
	}
	var err error
	if s.receiver, err = New(Options{Symbols: c.symbols}); err != nil {
		panic(err)
	}
	s.rnd = rand.New(s.source)
	for range c.gains {
		s.digits = append(s.digits, make([]int8, c.symbols))
	}
	return s
}

// transmit sends fresh digits by the gains in h.
func (s *superposition) transmit() {
	half := (s.cfg.base - 1) / 2
	for _, digits := range s.digits {
		for k := range digits {
			digits[k] = int8(int(s.rnd.Uint32N(uint32(s.cfg.base))) - half)
		}
	}
	for k := range s.y {
		s.y[k] = float32(s.noise * s.rnd.NormFloat64())
	}
	for i, digits := range s.digits {
		for k, d := range digits {
			s.y[k] += float32(s.h[i] * float64(d))
		}
	}
}

// correct stands for the linear check: y = sum_i round(alpha h_i) d_i.
func (s *superposition) correct(y []int32) bool {
	for k, v := range y {
		for i, d := range s.digits {
			v -= int32(math.RoundToEven(s.receiver.alpha*s.h[i])) * int32(d[k])
		}
		if v != 0 {
			return false
		}
	}
	return true
}

// misfit returns the largest relative misfit at the accepted scale, and the number of
// dropped devices.
func (s *superposition) misfit() (worst float64, zeros int) {
	for _, h := range s.h {
		integer := math.RoundToEven(s.receiver.alpha * h)
		if integer == 0 {
			zeros++
		}
		worst = math.Max(worst, math.Abs(integer/s.receiver.alpha-h)/math.Abs(h))
	}
	return worst, zeros
}

// trial draws gains and reports whether some attempt is read.
func (s *superposition) trial() bool {
	drawn := make([]float64, len(s.h))
	for i, g := range s.cfg.gains {
		drawn[i] = g.draw(s.rnd)
	}
	for attempt := range max(1, s.cfg.attempts) {
		for i, h := range drawn {
			if s.h[i] = h; attempt > 0 {
				s.h[i] *= 0.7 + 0.3*s.rnd.Float64()
			}
		}
		s.transmit()
		if _, err := s.receiver.Search(s.y, s.correct); err == nil {
			return true
		}
	}
	return false
}

// readShare returns the share of trials that are read; among these the median of the
// largest relative misfit, and the mean number of devices with H_i = 0.
func readShare(c blocks) (share, misfit, zeroGains float64) {
	var group errgroup.Group
	var mu sync.Mutex
	var misfits []float64
	zeros, workers := 0, runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() error {
			s := newSuperposition(c)
			for i := w; i < c.trials; i += workers {
				s.source.Seed(c.seed, uint64(i))
				if !s.trial() {
					continue
				}
				worst, dropped := s.misfit()
				mu.Lock()
				misfits, zeros = append(misfits, worst), zeros+dropped
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		panic(err)
	}
	n := float64(len(misfits))
	if n == 0 {
		return 0, math.NaN(), math.NaN()
	}
	slices.Sort(misfits)
	return n / float64(c.trials), misfits[len(misfits)/2], float64(zeros) / n
}
