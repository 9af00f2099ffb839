package lattice

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// Gain is the distribution of one device's real effective gain h.
type Gain interface {
	Draw(rnd *rand.Rand) float64
}

// Normal is h ~ N(Mu, Sigma^2).
type Normal struct{ Mu, Sigma float64 }

// Draw gives one gain.
func (g Normal) Draw(rnd *rand.Rand) float64 { return g.Mu + g.Sigma*rnd.NormFloat64() }

// maxBase is the largest base of digits.
const maxBase = 15

// Converter rounds each branch of a sample to multiples of Step and clips it to
// FullScale either way, both in units of y, the superposed symbol. A Step of 0
// does nothing; a FullScale of 0 does not clip.
type Converter struct{ Step, FullScale float64 }

func (c Converter) convert(x float64) float64 {
	if c.Step == 0 {
		return x
	}
	x = math.RoundToEven(x/c.Step) * c.Step
	if c.FullScale > 0 {
		x = math.Max(-c.FullScale, math.Min(c.FullScale, x))
	}
	return x
}

// variance is that of a rounding error which is uniform over a step.
func (c Converter) variance() float64 { return c.Step * c.Step / 12 }

// Sampling is what converters see of a symbol: how it is made of samples.
type Sampling struct {
	// Transmit is the converter of every device, for a device of gain 1; Receive
	// the receiver's.
	Transmit, Receive Converter
	// Samples is W, the number of samples whose mean a symbol is: the noise of a
	// sample is sqrt(W) times that of a symbol. 0 stands for 1.
	Samples int
	// Flat says that all W samples of a symbol have the same value but for the
	// noise, as in the middle of a flat-top pulse. A transmitter's error is then
	// the same in all of them: it is a change of the digit, and is not averaged.
	// The receiver's is averaged as far as the noise takes the samples to
	// different codes: both are simulated sample by sample.
	//
	// Otherwise, as with root-raised-cosine pulses, samples take any value and
	// rounding errors are white, uniform over a step: a filter of noise bandwidth
	// 1/W leaves the variance Step^2/(12 W) a symbol, h_i^2 times it of device i's
	// converter. Clipping is not simulated then.
	Flat bool
}

// Trials describes a simulation of rounds on symbols: what a modem would give
// without interference of its own.
type Trials struct {
	// Gains are the devices' distributions, Phases their static phases in radians,
	// nil for none: the receiver turns their sum to the real axis and keeps the
	// real part.
	Gains  []Gain
	Phases []float64
	// Passages are what the way from symbol to symbol multiplies each gain by, nil
	// for 1: a filter's overshoot. The receiver's gains have them; misfits are
	// against gains without.
	Passages []float64
	// SNRdB is the SNR of a device of gain 1: E[d^2]/Var[noise] of a real symbol.
	SNRdB float64
	// Base is the digits' base, odd, 3 to 15.
	Base int
	// Symbols is the length of a block, at least MinSymbols.
	Symbols int
	// Blocks is how many blocks the gains and the scale must hold for: the scale
	// is found in the first and used in the others. 0 stands for 1.
	Blocks int
	// Frames, if not nil, stands in place of Symbols and Blocks: the lengths of the
	// blocks of each frame of a round. The first block of the first frame, where
	// the scale is found, has at least MinSymbols.
	Frames [][]int
	// Repeats is how often a frame that fails is sent again and averaged with what
	// there is of it.
	Repeats int
	// Attempts is how often a round may be tried, every device's signal multiplied
	// by a fresh gain in [0.7, 1] from the second time on unless the scale is
	// known. 0 stands for 1.
	Attempts int
	// Least is how many devices must not have H_i = 0 for a round to count as read.
	Least int
	// Alpha is the scale if it is known: exactly, or with a Tolerance above 0 up
	// to that relative error (Receiver.Near). 0 has it found.
	Alpha, Tolerance float64
	// Sampling is the converters; the zero value has none.
	Sampling Sampling
	// Trials is the number of independent draws of gains.
	Trials int
	// Seed fixes all draws, whatever the number of cores.
	Seed uint64
	// Options are the receiver's.
	Options Options
}

// Validate says what is wrong with the description.
func (t Trials) Validate() error {
	switch {
	case len(t.Gains) == 0:
		return fmt.Errorf("a simulation of the lattice search needs at least one device")
	case t.Phases != nil && len(t.Phases) != len(t.Gains):
		return fmt.Errorf("%d phases for %d devices: give one a device, or none", len(t.Phases), len(t.Gains))
	case t.Passages != nil && len(t.Passages) != len(t.Gains):
		return fmt.Errorf("%d passages for %d devices: give one a device, or none", len(t.Passages), len(t.Gains))
	case t.Base < 3 || t.Base > maxBase || t.Base%2 == 0:
		return fmt.Errorf("the digits' base is %d: it must be odd, from 3 to 15", t.Base)
	case t.Least < 0 || t.Least > len(t.Gains):
		return fmt.Errorf("%d devices must be heard, of %d", t.Least, len(t.Gains))
	case t.Trials < 1 || t.Blocks < 0 || t.Attempts < 0 || t.Repeats < 0:
		return fmt.Errorf("%d trials of %d blocks, %d attempts and %d repeats", t.Trials, t.Blocks, t.Attempts, t.Repeats)
	case math.IsNaN(t.SNRdB):
		return fmt.Errorf("the SNR is not a number")
	case !(t.Alpha >= 0) || math.IsInf(t.Alpha, 0) || !(t.Tolerance >= 0 && t.Tolerance < 1):
		return fmt.Errorf("%w: %v, within %v", ErrScale, t.Alpha, t.Tolerance)
	}
	if err := t.Sampling.validate(); err != nil {
		return err
	}
	for f, blocks := range t.frames() {
		for i, n := range blocks {
			if n < 1 || f == 0 && i == 0 && n < MinSymbols {
				return fmt.Errorf("%w: %d symbols, at least %d", ErrTooShort, n, MinSymbols)
			}
		}
	}
	_, err := New(t.Options)
	return err
}

func (s Sampling) validate() error {
	for _, v := range []float64{s.Transmit.Step, s.Transmit.FullScale, s.Receive.Step, s.Receive.FullScale} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("a converter with a step or full scale of %v: both must be 0 or more", v)
		}
	}
	if s.Samples < 0 {
		return fmt.Errorf("a symbol of %d samples", s.Samples)
	}
	return nil
}

// frames gives the lengths of all blocks.
func (t Trials) frames() [][]int {
	if t.Frames != nil {
		return t.Frames
	}
	blocks := make([]int, max(1, t.Blocks))
	for i := range blocks {
		blocks[i] = t.Symbols
	}
	return [][]int{blocks}
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
	var misfits []float64
	zeros := 0
	for _, o := range t.run() {
		if o.read {
			misfits = append(misfits, o.misfit)
			zeros += o.zeros
		}
	}
	n := float64(len(misfits))
	if n == 0 {
		return 0, math.NaN(), math.NaN()
	}
	slices.Sort(misfits)
	return n / float64(t.Trials), misfits[len(misfits)/2], float64(zeros) / n
}

// outcome is that of a trial.
type outcome struct {
	read   bool
	misfit float64
	zeros  int
}

// run makes all trials, each from its own seed, on all cores.
func (t Trials) run() []outcome {
	outcomes := make([]outcome, t.Trials)
	workers := min(runtime.GOMAXPROCS(0), t.Trials)
	var done sync.WaitGroup
	for w := range workers {
		done.Add(1)
		go func() {
			defer done.Done()
			s := newSimulation(t)
			for i := w; i < t.Trials; i += workers {
				s.source.Seed(t.Seed, uint64(i))
				if outcomes[i].read = s.trial(); outcomes[i].read {
					outcomes[i].misfit, outcomes[i].zeros = s.misfit()
				}
			}
		}()
	}
	done.Wait()
	return outcomes
}

type simulation struct {
	cfg      Trials
	frames   [][]int
	source   *rand.PCG
	rnd      *rand.Rand
	receiver *Receiver
	half     int
	samples  int       // W
	noise    float64   // deviation of a symbol's noise, each branch
	drawn    []float64 // h_i as drawn
	sent     []float64 // times the attempt's drawn gain
	in, quad []float64 // both branches of it, turned by the device's phase
	kept     []float64 // what of it the receiver keeps
	h        []float64 // that, by what the largest digit is sent as
	sin, cos float64   // of the phase that the receiver turns back
	levels   []float64 // what each digit is sent as
	error    float64   // deviation of what converters add if not flat
	digits   [][]int8  // of a frame
	y        []float32 // of a frame, repeats averaged
	once     []float32 // of one repeat
	from     int       // of the block at hand, in its frame
	refused  []float64 // scales that did not read the whole frame
}

func newSimulation(t Trials) *simulation {
	t.Attempts = cmp.Or(t.Attempts, 1)
	s := &simulation{
		cfg: t, frames: t.frames(), source: rand.NewPCG(t.Seed, 0), half: (t.Base - 1) / 2,
		samples: cmp.Or(t.Sampling.Samples, 1),
		noise:   math.Sqrt(digitPower(t.Base)) * math.Pow(10, -t.SNRdB/20),
	}
	longest := 0
	for _, blocks := range s.frames {
		sum := 0
		for _, n := range blocks {
			sum += n
			t.Options.Symbols = max(t.Options.Symbols, n)
		}
		longest = max(longest, sum)
	}
	var err error
	if s.receiver, err = New(t.Options); err != nil {
		panic("lattice: options changed after Validate: " + err.Error())
	}
	s.rnd = rand.New(s.source)
	s.y, s.once = make([]float32, longest), make([]float32, longest)
	n := len(t.Gains)
	s.drawn, s.sent, s.h = make([]float64, n), make([]float64, n), make([]float64, n)
	s.in, s.quad, s.kept = make([]float64, n), make([]float64, n), make([]float64, n)
	for d := -s.half; d <= s.half; d++ {
		level := float64(d)
		if t.Sampling.Flat {
			level = t.Sampling.Transmit.convert(level)
		}
		s.levels = append(s.levels, level)
	}
	for range t.Gains {
		s.digits = append(s.digits, make([]int8, longest))
	}
	return s
}

// digitPower gives E[d^2] of balanced digits.
func digitPower(base int) float64 { return float64(base*base-1) / 12 }

// trial draws gains and tells whether some attempt succeeds.
func (s *simulation) trial() bool {
	for i, g := range s.cfg.Gains {
		s.drawn[i] = g.Draw(s.rnd)
	}
	for attempt := range s.cfg.Attempts {
		for i, h := range s.drawn {
			s.sent[i] = h
			if attempt > 0 && s.cfg.Alpha == 0 {
				s.sent[i] *= 0.7 + 0.3*s.rnd.Float64()
			}
		}
		s.turn()
		if s.attempt() && s.heard() >= s.cfg.Least {
			return true
		}
	}
	return false
}

// turn turns the sum of all devices to the real axis, as the preamble shows it,
// and sets the gains that the receiver then keeps. Every device's largest digit
// counts as what it is sent as.
func (s *simulation) turn() {
	var re, im float64
	for i, h := range s.sent {
		h *= s.passage(i)
		s.in[i], s.quad[i] = h, 0
		if s.cfg.Phases != nil {
			sin, cos := math.Sincos(s.cfg.Phases[i])
			s.in[i], s.quad[i] = h*cos, h*sin
		}
		re += s.in[i]
		im += s.quad[i]
	}
	white := 0.0
	s.sin, s.cos = math.Sincos(math.Atan2(im, re))
	if s.cfg.Phases == nil || s.cfg.Alpha > 0 && s.cfg.Tolerance == 0 {
		s.sin, s.cos = 0, 1 // of emulated gains the phase is known, sign and all
	}
	peak := s.levels[s.cfg.Base-1] / float64(s.half)
	for i, h := range s.sent {
		s.kept[i] = s.in[i]*s.cos + s.quad[i]*s.sin
		s.h[i] = s.kept[i] * peak
		white += h * h * s.cfg.Sampling.Transmit.variance()
	}
	white += s.cfg.Sampling.Receive.variance()
	s.error = math.Sqrt(white / float64(s.samples))
}

func (s *simulation) passage(i int) float64 {
	if s.cfg.Passages == nil {
		return 1
	}
	return s.cfg.Passages[i]
}

// attempt reads all frames at the scale of the first block.
func (s *simulation) attempt() bool {
	alpha := 0.0
	for number, blocks := range s.frames {
		read := false
		for repeat := 0; repeat <= s.cfg.Repeats && !read; repeat++ {
			s.send(blocks, repeat)
			if number == 0 {
				alpha = 0
			}
			alpha, read = s.read(blocks, alpha)
		}
		if !read {
			return false
		}
	}
	return true
}

// read reads the blocks of a frame, and finds the scale if it is 0: one that reads
// all of them.
func (s *simulation) read(blocks []int, alpha float64) (float64, bool) {
	s.refused = s.refused[:0]
	for searching := alpha == 0 && s.cfg.Alpha == 0; ; {
		at, first, read := s.readAt(blocks, alpha)
		if read || first || !searching {
			return at, read
		}
		s.refused = append(s.refused, at)
	}
}

// readAt reads the blocks at one scale, and tells whether the first one failed.
func (s *simulation) readAt(blocks []int, alpha float64) (at float64, first, read bool) {
	s.from = 0
	for i, n := range blocks {
		res, err := s.block(s.y[s.from:s.from+n], alpha)
		if err != nil {
			return alpha, i == 0, false
		}
		alpha = res.Alpha
		s.from += n
	}
	return alpha, false, true
}

func (s *simulation) block(y []float32, alpha float64) (Result, error) {
	switch {
	case alpha > 0:
		return s.receiver.At(y, alpha, s.correct)
	case s.cfg.Tolerance > 0:
		return s.receiver.Near(y, s.cfg.Alpha, s.cfg.Tolerance, s.correct)
	case s.cfg.Alpha > 0:
		return s.receiver.At(y, s.cfg.Alpha, s.correct)
	}
	return s.receiver.SearchExcept(y, s.refused, s.correct)
}

// send superposes a frame's digits, drawn for the first repeat, and noise, and
// averages with the repeats before.
func (s *simulation) send(blocks []int, repeat int) {
	n := 0
	for _, b := range blocks {
		n += b
	}
	if repeat == 0 {
		for _, d := range s.digits {
			for k := range d[:n] {
				d[k] = int8(int(s.rnd.Uint32N(uint32(s.cfg.Base))) - s.half)
			}
		}
	}
	if s.cfg.Sampling.Flat && s.cfg.Sampling.Receive.Step > 0 {
		s.sample(s.once[:n])
	} else {
		s.superpose(s.once[:n])
	}
	Combine(s.y[:n], s.once[:n], float64(repeat))
}

// superpose writes symbols without a look at their samples.
func (s *simulation) superpose(y []float32) {
	noise := s.noise
	if !s.cfg.Sampling.Flat {
		noise = math.Hypot(noise, s.error)
	}
	for k := range y {
		y[k] = float32(noise * s.rnd.NormFloat64())
	}
	var received [maxBase]float32
	for i, digits := range s.digits {
		for d := range s.cfg.Base {
			received[d] = float32(s.kept[i] * s.levels[d])
		}
		for k := range y {
			y[k] += received[int(digits[k])+s.half]
		}
	}
}

// sample writes symbols as the means of samples that the receiver's converter
// rounds, each branch by itself, before they are turned.
func (s *simulation) sample(y []float32) {
	noise := s.noise * math.Sqrt(float64(s.samples))
	receive := s.cfg.Sampling.Receive
	for k := range y {
		var in, quad, sum float64
		for i, d := range s.digits {
			level := s.levels[int(d[k])+s.half]
			in += s.in[i] * level
			quad += s.quad[i] * level
		}
		for range s.samples {
			sum += s.cos * receive.convert(in+noise*s.rnd.NormFloat64())
			if s.sin != 0 {
				sum += s.sin * receive.convert(quad+noise*s.rnd.NormFloat64())
			}
		}
		y[k] = float32(sum / float64(s.samples))
	}
}

// correct stands for the linear check: y = sum_i round(alpha h_i) d_i.
func (s *simulation) correct(y []int32) bool {
	for k, v := range y {
		for i, d := range s.digits {
			v -= int32(math.RoundToEven(s.receiver.alpha*s.h[i])) * int32(d[s.from+k])
		}
		if v != 0 {
			return false
		}
	}
	return true
}

// heard gives the number of devices with H_i != 0.
func (s *simulation) heard() int {
	_, zeros := s.misfit()
	return len(s.h) - zeros
}

// misfit gives the largest relative misfit at the accepted scale and the number
// of dropped devices.
func (s *simulation) misfit() (worst float64, zeros int) {
	for i, h := range s.h {
		integer := math.RoundToEven(s.receiver.alpha * h)
		h = s.kept[i] / s.passage(i)
		if integer == 0 {
			zeros++
		}
		if h != 0 {
			worst = math.Max(worst, math.Abs(integer/s.receiver.alpha-h)/math.Abs(h))
		}
	}
	return worst, zeros
}
