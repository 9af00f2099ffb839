package lattice

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Gain is the distribution of one device's real effective gain h.
type Gain interface {
	Draw(rnd *rand.Rand) float64
}

// Normal is h ~ N(Mu, Sigma^2).
type Normal struct{ Mu, Sigma float64 }

// Draw gives one gain.
func (g Normal) Draw(rnd *rand.Rand) float64 { return g.Mu + g.Sigma*rnd.NormFloat64() }

// Trials describes a simulation of the blind search on symbols: what a modem
// would give without interference of its own.
type Trials struct {
	// Gains are the devices' distributions.
	Gains []Gain
	// SNRdB is the SNR of a device of gain 1: E[d^2]/Var[noise] of a real symbol.
	SNRdB float64
	// Base is the digits' base, odd, 3 to 15.
	Base int
	// Symbols is the length of a block, at least MinSymbols.
	Symbols int
	// Blocks is how many blocks the gains and the scale must hold for: the scale
	// is found in the first and used in the others. 0 stands for 1.
	Blocks int
	// Attempts is how often a block may be sent, every device's signal multiplied
	// by a fresh gain in [0.7, 1] from the second time on. 0 stands for 1.
	Attempts int
	// Trials is the number of independent draws of gains.
	Trials int
	// Seed fixes all draws.
	Seed uint64
	// Options are the receiver's.
	Options Options
}

// Validate says what is wrong with the description.
func (t Trials) Validate() error {
	switch {
	case len(t.Gains) == 0:
		return fmt.Errorf("a simulation of the lattice search needs at least one device")
	case t.Base < 3 || t.Base > 15 || t.Base%2 == 0:
		return fmt.Errorf("the digits' base is %d: it must be odd, from 3 to 15", t.Base)
	case t.Symbols < MinSymbols:
		return fmt.Errorf("%w: %d symbols, at least %d", ErrTooShort, t.Symbols, MinSymbols)
	case t.Trials < 1 || t.Blocks < 0 || t.Attempts < 0:
		return fmt.Errorf("%d trials of %d blocks and %d attempts", t.Trials, t.Blocks, t.Attempts)
	case math.IsNaN(t.SNRdB):
		return fmt.Errorf("the SNR is not a number")
	}
	_, err := New(t.Options)
	return err
}

// Simulate gives the share of trials in which all blocks were read at one scale
// without an error and not all-zero; among these the median of the largest
// relative misfit |H_i/alpha - h_i|/|h_i| of a trial (1 where a device is
// dropped), and the mean number of devices with H_i = 0. The last two are NaN if
// nothing succeeded; all are NaN if Validate gives an error.
func Simulate(t Trials) (success, misfit, zeroGains float64) {
	if t.Validate() != nil {
		return math.NaN(), math.NaN(), math.NaN()
	}
	s := newSimulation(t)
	var misfits []float64
	zeros := 0
	for range t.Trials {
		if s.trial() {
			m, z := s.misfit()
			misfits = append(misfits, m)
			zeros += z
		}
	}
	n := float64(len(misfits))
	if n == 0 {
		return 0, math.NaN(), math.NaN()
	}
	slices.Sort(misfits)
	return n / float64(t.Trials), misfits[len(misfits)/2], float64(zeros) / n
}

type simulation struct {
	cfg      Trials
	rnd      *rand.Rand
	receiver *Receiver
	noise    float64
	drawn    []float64 // h_i as drawn
	h        []float64 // times the attempt's public gain
	digits   [][]int8
	y        []float32
}

func newSimulation(t Trials) *simulation {
	t.Blocks = cmp.Or(t.Blocks, 1)
	t.Attempts = cmp.Or(t.Attempts, 1)
	t.Options.Symbols = t.Symbols
	r, err := New(t.Options)
	if err != nil {
		panic("lattice: options changed after Validate: " + err.Error())
	}
	b := float64(t.Base)
	s := &simulation{
		cfg:      t,
		rnd:      rand.New(rand.NewPCG(t.Seed, 0x6c617474696365)),
		receiver: r,
		noise:    math.Sqrt((b*b-1)/12) * math.Pow(10, -t.SNRdB/20),
		drawn:    make([]float64, len(t.Gains)),
		h:        make([]float64, len(t.Gains)),
		y:        make([]float32, t.Symbols),
	}
	for range t.Gains {
		s.digits = append(s.digits, make([]int8, t.Symbols))
	}
	return s
}

// trial draws gains and tells whether some attempt succeeds.
func (s *simulation) trial() bool {
	for i, g := range s.cfg.Gains {
		s.drawn[i] = g.Draw(s.rnd)
	}
	for attempt := range s.cfg.Attempts {
		for i, h := range s.drawn {
			s.h[i] = h
			if attempt > 0 {
				s.h[i] *= 0.7 + 0.3*s.rnd.Float64()
			}
		}
		if s.attempt() {
			return true
		}
	}
	return false
}

// attempt reads all blocks at the scale of the first.
func (s *simulation) attempt() bool {
	alpha := 0.0
	for range s.cfg.Blocks {
		s.send()
		var res Result
		var err error
		if alpha == 0 {
			res, err = s.receiver.Search(s.y, s.correct)
		} else {
			res, err = s.receiver.At(s.y, alpha, s.correct)
		}
		if err != nil {
			return false
		}
		alpha = res.Alpha
	}
	return true
}

// send draws digits and noise and superposes them.
func (s *simulation) send() {
	half := int8(s.cfg.Base-1) / 2
	for k := range s.y {
		s.y[k] = float32(s.noise * s.rnd.NormFloat64())
	}
	for i, d := range s.digits {
		h := float32(s.h[i])
		for k := range d {
			d[k] = int8(s.rnd.Uint32N(uint32(s.cfg.Base))) - half
			s.y[k] += h * float32(d[k])
		}
	}
}

// correct stands for the linear check: y = sum_i round(alpha h_i) d_i.
func (s *simulation) correct(y []int32) bool {
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

// misfit gives the largest relative misfit at the accepted scale and the number
// of dropped devices.
func (s *simulation) misfit() (worst float64, zeros int) {
	for _, h := range s.h {
		integer := math.RoundToEven(s.receiver.alpha * h)
		if integer == 0 {
			zeros++
		}
		if h != 0 {
			worst = math.Max(worst, math.Abs(integer/s.receiver.alpha-h)/math.Abs(h))
		}
	}
	return worst, zeros
}
