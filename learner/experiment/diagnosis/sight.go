package diagnosis

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"

	"ringwave/phy"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
)

// Link is what a receiver knows of its link.
type Link struct {
	SampleRate       float64 // a second
	SamplesPerSymbol int
	PreambleSymbols  int
	// MaxOffset is up to which common carrier offset preambles are searched for, in cycles
	// a sample.
	MaxOffset modem.CyclesPerSample
	// NoiseBandwidth is the pulse's: modem.NoiseBandwidth.
	NoiseBandwidth float64
	// Held tells that the phase is trusted to be known, as of emulated gains, and is not
	// tracked.
	Held bool
}

// Sight is what the receiver saw of one frame.
type Sight struct {
	Read, Found  bool
	Transmission slot.Transmission
	Devices      int
	Symbols      int // behind the preamble
	Sync         modem.Sync
	Report       modem.Report
	// Of a frame that was lost: the power that moves where it was due over that in the
	// silence around it; the power that stands still there over the same; and the offset of
	// the carrier as the squares of its samples show it, which real symbols leave as a line
	// at twice that, 0 without a line.
	Excess, Standing float64
	Line             modem.CyclesPerSample
	// Of one that was found: how far the axis of its symbols turns from the first to the
	// last, in radians, beyond what was tracked; by how much what was tracked deviates from
	// an even turn from a part to the next, as a mean square's root; and how real symbols
	// are in the least real and in the most real parts of the frame, from 0 to 1.
	Turn, Wander        float64
	LeastReal, MostReal float64
	// Also of one that was found: over how many symbols' lengths the line that symbols leave
	// at their rate slips from the frame's first part to the last, and how much of it is
	// left in the end, of 1 in the beginning; the power of its strong parts over that of its
	// weak ones; the share of short stretches that stand out; and by how many dB a device's
	// amplitude exceeds what moves in the silence.
	Slip, Timed, Fade, Struck, Quiet float64
	// Tone is the frequency of the one tone that what moves in the silence is, 0 for none.
	Tone modem.CyclesPerSample
}

// parts is how many a frame is divided into.
const parts = 64

// Of returns what is to be seen of a frame.
func (l Link) Of(o phy.Observation) Sight {
	s := Sight{
		Read: o.Failure == "", Found: o.Sync != (modem.Sync{}), Transmission: o.Slot.Transmission, Devices: o.Devices,
		Symbols: len(o.Symbols), Sync: o.Sync, Report: o.Report,
	}
	if !s.Read {
		s.silence(o.Samples, o.Guard)
		s.Line = line(o.Samples)
	}
	if !s.Read && s.Found {
		s.follow(o)
		s.pulse(o, l.SamplesPerSymbol)
		s.quiet(o, l.NoiseBandwidth)
	}
	return s
}

// silence compares a frame with so many samples of silence at either end.
func (s *Sight) silence(samples []complex64, guard int) {
	half := guard / 2 // filters and echoes reach into the rest
	s.Excess, s.Standing = math.NaN(), math.NaN()
	if half == 0 || len(samples) < 8*guard {
		return
	}
	n := len(samples)
	still, before := moving(samples[:half])
	_, after := moving(samples[n-half:])
	_, there := moving(samples[2*guard : n-2*guard])
	silent := max((before+after)/2, math.SmallestNonzeroFloat32)
	s.Excess, s.Standing = there/silent, still/silent
}

// moving returns the power of the samples' mean, and that of what deviates from it.
func moving(samples []complex64) (still, rest float64) {
	var sum complex128
	for _, x := range samples {
		if power(x) < unreal {
			sum += complex128(x)
		}
	}
	mean := sum / complex(float64(len(samples)), 0)
	still = real(mean)*real(mean) + imag(mean)*imag(mean)
	all := 0.0
	for _, x := range samples {
		if p := power(x); p < unreal {
			all += p
		}
	}
	return still, max(0, all/float64(len(samples))-still)
}

// follow measures what is left of the phase in the parts of a frame.
func (s *Sight) follow(o phy.Observation) {
	nan := math.NaN()
	s.Turn, s.Wander, s.LeastReal, s.MostReal = nan, nan, nan, nan
	size := len(o.Symbols) / parts
	if size < 16 { // a short frame shows nothing of this
		return
	}
	s.Turn = 0
	var weights []float64
	last, before, steps := 0.0, 0.0, 0.0
	for b := range parts {
		var squares complex128
		energy := 0.0
		for _, x := range o.Symbols[b*size : (b+1)*size] {
			if p := power(x); p < unreal {
				squares += complex128(x * x)
				energy += p
			}
		}
		weights = append(weights, cmplx.Abs(squares)/max(energy, math.SmallestNonzeroFloat64))
		angle := cmplx.Phase(squares)
		if b > 0 {
			s.Turn += math.Remainder(angle-last, 2*math.Pi) / 2
		}
		last = angle
		step := float64(o.Phase((b+1)*size) - o.Phase(b*size))
		if b > 0 {
			steps += (step - before) * (step - before) / 2 / (parts - 1)
		}
		before = step
	}
	slices.Sort(weights)
	s.Wander = math.Sqrt(steps)
	s.LeastReal, s.MostReal = weights[parts/8], weights[parts-1-parts/8]
}

// unreal is the power from which a sample is none.
const unreal = 1e30

// power returns that of a sample, unreal or more if it is no number.
func power(x complex64) float64 {
	p := float64(real(x))*float64(real(x)) + float64(imag(x))*float64(imag(x))
	if math.IsNaN(p) {
		return math.Inf(1)
	}
	return p
}

// lineSamples is how many samples, of a frame's middle, a line is looked for in.
const lineSamples = 1 << 14

// line returns half the frequency of the strongest line of the samples' squares, 0 if none
// stands out.
func line(samples []complex64) modem.CyclesPerSample {
	n := lineSamples
	for n > len(samples) {
		n /= 2
	}
	if n < 256 {
		return 0
	}
	samples = samples[(len(samples)-n)/2:][:n]
	squares := make([]complex128, n)
	for k, x := range samples {
		if power(x) < unreal {
			squares[k] = complex128(x * x)
		}
	}
	spectrum := fourier.NewCmplxFFT(n).Coefficients(nil, squares)
	best, sum := 0, 0.0
	for k, x := range spectrum {
		p := cmplx.Abs(x) * cmplx.Abs(x)
		sum += p
		if p > cmplx.Abs(spectrum[best])*cmplx.Abs(spectrum[best]) {
			best = k
		}
	}
	// A phase that wanders leaves no line, but a hill.
	const least = 0.1 // of all power
	line := 0.0
	for _, k := range [...]int{best, (best + 1) % n, (best + n - 1) % n} {
		line += cmplx.Abs(spectrum[k]) * cmplx.Abs(spectrum[k])
	}
	if !(line > least*sum) {
		return 0
	}
	f := float64(best) / float64(n)
	if f >= 0.5 {
		f--
	}
	return modem.CyclesPerSample(f / 2)
}
