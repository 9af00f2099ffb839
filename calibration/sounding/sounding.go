// Package sounding knows one known signal, the sounding, and what a received burst
// of it tells about the link that it came over.
//
// It takes in a kind of sequence and gives the samples of a burst; it takes in
// received windows of samples and gives, by maximum likelihood, the delay and carrier
// offset that bursts have in common and, burst by burst, the complex gain, the noise,
// DC and IQ image, each with its variance, and the Cramer-Rao bounds of all this. It
// knows nothing of devices, streams, sessions or of what gains are used for.
//
// # The signal
//
// A period is Length chips of constant magnitude, interpolated by trigonometric
// polynomials to Length times SamplesPerChip samples: it occupies
// 1/SamplesPerChip of the band and is periodic, so that a delay of any fraction of a
// sample is exactly a phase ramp over its spectral lines. The line at 0 Hz is left out.
// A burst is a cyclic prefix, Repetitions periods and a cyclic suffix. Only the periods
// are estimated from. Prefix and suffix need not be whole periods: they must outlast
// the memory of filters on the way, and the error of the delay at which a burst is
// fitted, which Acquire leaves far below a sample. They are 64 samples long, or a
// period where that is shorter: four times phy/channel's filter. Whole periods at
// Repetitions = 4 would cost a third of the airtime for nothing.
//
// Zadoff-Chu chips are complex. An m-sequence is real and hence its own image: its
// whole signal is shifted in frequency by half the distance of two lines, so that
// periods alternate in sign and the image can be told from the gain. The mean over an
// even number of periods is then exactly zero; over an odd one, nearly so, and the
// fit has the mean as an unknown of its own.
//
// A Zadoff-Chu signal of root u that is shifted in frequency by k lines, k/Period
// cycles a sample, is the same signal delayed by k/u chips modulo Length. Acquire
// refuses to search where the two could be confused; an m-sequence has no such twin.
//
// # The model
//
// Sample n of a window, at instant t = n - start - delay behind the burst's first
// sample, u(t) being the burst that Samples(1) gives, T = (Burst-1)/2 its centre:
//
//	y = (gain (u(t) + image u*(t)) + leak) e^{j 2 pi offset (t - T)} + dc + noise.
//
// The gain's phase is thus that at the burst's centre as received, and a positive delay
// is a later burst. A phy/channel.Path of delay d, carrier offset f and phase p, whose
// sample 0 is the window's, gives delay = d + Latency (start being where the burst
// begins in what was sent), offset = f and, at the centre, the phase
// p + 2 pi f (start + delay + T).
//
// Offsets are the device's against the receiver. DC is the receiver's own; a carrier
// that leaks from the transmitter stands at the offset, and within a burst looks like
// DC where that turns by less than leastTurns: it is an unknown of its own beyond. The image is the transmitter's;
// the receiver's stands at the negative offset, and the two look alike on the same
// condition: see TransmitterIQ.
package sounding

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"

	"ringwave/phy/modem"
)

// Kind is a kind of sequence.
type Kind int

const (
	// ZadoffChu is a polyphase sequence with ideal periodic autocorrelation.
	ZadoffChu Kind = iota + 1
	// MSequence is a maximum-length sequence of +-1, whose periodic autocorrelation is
	// Length or -1. Its chips are those of phy/modem's preambles.
	MSequence
)

// ParseKind reads "zadoff-chu" or "m-sequence".
func ParseKind(name string) (Kind, error) {
	for _, k := range []Kind{ZadoffChu, MSequence} {
		if name == k.String() {
			return k, nil
		}
	}
	return 0, fmt.Errorf("a sounding of kind %q: allowed are %q and %q", name, ZadoffChu, MSequence)
}

// String returns the name that ParseKind reads.
func (k Kind) String() string {
	switch k {
	case ZadoffChu:
		return "zadoff-chu"
	case MSequence:
		return "m-sequence"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// The bounds of a Config.
const (
	MinLength, MaxLength                 = 31, 4095
	MinSamplesPerChip, MaxSamplesPerChip = 2, 16
	MinRepetitions, MaxRepetitions       = 2, 1024
	maxFitted                            = 1 << 20 // samples that are estimated from
)

const (
	// DefaultSamplesPerChip keeps a sounding within half of the band, clear of the
	// edges where fractional-delay filters and boards' filters roll off.
	DefaultSamplesPerChip = 2
	// DefaultRoot sweeps the band twice a period. Its peaks are as low as those of root
	// 1 to a few tenths of a decibel, and the twin of its signal, one line away in
	// frequency, lies half a period away in time and not one chip.
	DefaultRoot = 2
)

// guardSamples is the length of the cyclic prefix and suffix, periods permitting.
const guardSamples = 64

// Config describes a sounding.
type Config struct {
	Kind Kind
	// Length is the number of chips a period, from 31 to 4095: odd for ZadoffChu,
	// 2^m - 1 for MSequence. Lengths with large prime factors are slow: to fit at a new
	// delay or offset takes five times as long at 353, a prime, as at 315.
	Length int
	// Root is that of a Zadoff-Chu sequence, below Length and coprime to it; 0 stands
	// for DefaultRoot. An m-sequence has none.
	Root int
	// SamplesPerChip is from 2 to 16; 0 stands for DefaultSamplesPerChip.
	SamplesPerChip int
	// Repetitions is the number of periods that are estimated from, from 2 to 1024,
	// and no more than 2^20 samples.
	Repetitions int
}

func (c Config) withDefaults() Config {
	if c.Root == 0 && c.Kind == ZadoffChu {
		c.Root = DefaultRoot
	}
	if c.SamplesPerChip == 0 {
		c.SamplesPerChip = DefaultSamplesPerChip
	}
	return c
}

func (c Config) validate() error {
	if c.Kind != ZadoffChu && c.Kind != MSequence {
		return fmt.Errorf("a sounding of kind %v: allowed are %q and %q", c.Kind, ZadoffChu, MSequence)
	}
	if c.Length < MinLength || c.Length > MaxLength {
		return fmt.Errorf("a sounding of %d chips: allowed are %d to %d", c.Length, MinLength, MaxLength)
	}
	if err := c.validateSequence(); err != nil {
		return err
	}
	if c.SamplesPerChip < MinSamplesPerChip || c.SamplesPerChip > MaxSamplesPerChip {
		return fmt.Errorf("a sounding of %d samples a chip: allowed are %d to %d", c.SamplesPerChip, MinSamplesPerChip, MaxSamplesPerChip)
	}
	if c.Repetitions < MinRepetitions || c.Repetitions > MaxRepetitions {
		return fmt.Errorf("a sounding of %d repetitions: allowed are %d to %d", c.Repetitions, MinRepetitions, MaxRepetitions)
	}
	if n := c.Length * c.SamplesPerChip * c.Repetitions; n > maxFitted {
		return fmt.Errorf("a sounding of %d samples (chips times samples a chip times repetitions): allowed are up to %d", n, maxFitted)
	}
	return nil
}

func (c Config) validateSequence() error {
	if c.Kind == MSequence {
		if c.Length&(c.Length+1) != 0 {
			return fmt.Errorf("an m-sequence of %d chips: allowed are 2^m - 1 from %d to %d", c.Length, MinLength, MaxLength)
		}
		if c.Root != 0 {
			return fmt.Errorf("an m-sequence with the root %d: only Zadoff-Chu sequences have one", c.Root)
		}
		return nil
	}
	if c.Length%2 == 0 {
		return fmt.Errorf("a Zadoff-Chu sequence of %d chips: allowed are odd numbers from %d to %d", c.Length, MinLength, MaxLength)
	}
	if c.Root < 1 || c.Root >= c.Length || gcd(c.Root, c.Length) != 1 {
		return fmt.Errorf("a Zadoff-Chu sequence of %d chips with the root %d: it must be from 1 to %d and have no divisor in common with %d", c.Length, c.Root, c.Length-1, c.Length)
	}
	return nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Sounding is a signal and its estimator. It is for one goroutine.
type Sounding struct {
	cfg    Config
	period int // samples
	guard  int // samples of the prefix, and of the suffix
	lines  []line
	fft    *fourier.CmplxFFT // of a period
	burst  []complex64       // peak 1
	bound  unitBounds

	reg  regressors // those of the last fit
	grid *grid      // that of the last search
}

// line is one spectral line of the signal.
type line struct {
	bin    int     // in a transform of a period
	cycles float64 // its frequency in cycles a sample
	value  complex128
}

// New makes a sounding.
func New(cfg Config) (*Sounding, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Sounding{cfg: cfg, period: cfg.Length * cfg.SamplesPerChip}
	s.guard = min(s.period, guardSamples)
	s.fft = fourier.NewCmplxFFT(s.period)
	s.makeLines()
	s.reg = newRegressors(s)
	s.makeBurst()
	s.reg.set(0, 0, 0)
	bound, err := newUnitBounds(&s.reg)
	s.bound = bound
	return s, err
}

// makeLines takes the chips' spectrum without its value at 0 Hz.
func (s *Sounding) makeLines() {
	length := s.cfg.Length
	spectrum := fourier.NewCmplxFFT(length).Coefficients(nil, s.cfg.chips())
	for m := -(length - 1) / 2; m <= (length-1)/2; m++ {
		if m == 0 {
			continue
		}
		s.lines = append(s.lines, line{
			bin:    (m + s.period) % s.period,
			cycles: (float64(m) + s.shift()) / float64(s.period),
			value:  spectrum[(m+length)%length] / complex(float64(length), 0),
		})
	}
}

// shift is by how many lines the signal is shifted in frequency.
func (s *Sounding) shift() float64 {
	if s.cfg.Kind == MSequence {
		return 0.5
	}
	return 0
}

// makeBurst lays out the samples and scales lines and samples to a peak of 1.
func (s *Sounding) makeBurst() {
	u := make([]complex128, s.period)
	s.synthesise(u, 0, false)
	peak := 0.0
	for _, x := range u {
		peak = max(peak, cmplx.Abs(x))
	}
	for i := range s.lines {
		s.lines[i].value /= complex(peak, 0)
	}
	s.burst = make([]complex64, s.Burst())
	for n := range s.burst {
		s.burst[n] = complex64(s.extended(u, n-s.guard) / complex(peak, 0))
	}
}

// synthesise sets a period to the signal delayed by a fraction of a sample, or to its
// derivative with respect to time, without the shift in frequency.
func (s *Sounding) synthesise(u []complex128, fraction float64, derivative bool) {
	clear(u)
	for _, l := range s.lines {
		v := l.value * cmplx.Rect(1, -2*math.Pi*l.cycles*fraction)
		if derivative {
			v *= complex(0, 2*math.Pi*l.cycles)
		}
		u[l.bin] = v
	}
	s.fft.Sequence(u, u)
}

// extended returns sample n, of any sign, of a signal of which one period is given.
func (s *Sounding) extended(u []complex128, n int) complex128 {
	m := (n%s.period + s.period) % s.period
	if s.cfg.Kind != MSequence {
		return u[m]
	}
	n = (n%(2*s.period) + 2*s.period) % (2 * s.period)
	return u[m] * cmplx.Rect(1, math.Pi*float64(n)/float64(s.period))
}

// Config returns the configuration, defaults filled in.
func (s *Sounding) Config() Config { return s.cfg }

// Period returns the samples of a period. The m-sequence's are negated from one period
// to the next.
func (s *Sounding) Period() int { return s.period }

// Burst returns the samples of a burst, prefix and suffix included.
func (s *Sounding) Burst() int { return s.Fitted() + 2*s.guard }

// Fitted returns the samples of a burst that are estimated from: those of all periods
// but not of prefix and suffix.
func (s *Sounding) Fitted() int { return s.period * s.cfg.Repetitions }

// Guard returns the samples of the cyclic prefix, and of the suffix.
func (s *Sounding) Guard() int { return s.guard }

// Samples returns the burst whose largest magnitude is the amplitude, and exceeds it by
// no rounding.
func (s *Sounding) Samples(amplitude modem.Amplitude) []complex64 {
	out := make([]complex64, len(s.burst))
	for scale := float64(amplitude); ; scale *= 1 - 0x1p-25 {
		peak := 0.0
		for n, x := range s.burst {
			out[n] = complex64(complex128(x) * complex(scale, 0))
			peak = max(peak, cmplx.Abs(complex128(out[n])))
		}
		if !(peak > float64(amplitude)) {
			return out
		}
	}
}

// MeanPower returns the mean power of the fitted samples of Samples(1): what they lie
// below their peak.
func (s *Sounding) MeanPower() modem.Power {
	return modem.Power(s.Energy() / float64(s.Fitted()))
}

// Energy returns the sum of the squared magnitudes of the fitted samples of Samples(1). A
// gain comes out with the variance noise/Energy.
func (s *Sounding) Energy() float64 { return s.bound.energy }

// RMSBandwidth returns the root of the mean square of the frequencies of the signal.
func (s *Sounding) RMSBandwidth() modem.CyclesPerSample {
	var square, sum float64
	for _, l := range s.lines {
		p := real(l.value)*real(l.value) + imag(l.value)*imag(l.value)
		square += p * l.cycles * l.cycles
		sum += p
	}
	return modem.CyclesPerSample(math.Sqrt(square / sum))
}

// chips returns the sequence.
func (c Config) chips() []complex128 {
	if c.Kind == MSequence {
		return mSequence(c.Length)
	}
	return zadoffChu(c.Length, c.Root)
}

// zadoffChu returns exp(-j pi u k (k+1)/L), for odd L.
func zadoffChu(length, root int) []complex128 {
	chips := make([]complex128, length)
	for k := range chips {
		turn := root * k * (k + 1) % (2 * length)
		chips[k] = cmplx.Rect(1, -math.Pi*float64(turn)/float64(length))
	}
	return chips
}

// mSequence takes the sequence of a preamble out of its guards, which are alike.
func mSequence(length int) []complex128 {
	symbols := modem.Config{
		SamplesPerSymbol: modem.MinSamplesPerSymbol, Pulse: modem.FlatTop{},
		Preamble: modem.Preamble{Length: modem.Symbols(length)},
	}.PreambleSymbols()
	guard := (len(symbols) - length) / 2
	chips := make([]complex128, length)
	for k, x := range slices.All(symbols[guard : guard+length]) {
		chips[k] = complex(float64(x), 0)
	}
	return chips
}
