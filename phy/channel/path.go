package channel

import (
	"fmt"
	"math"

	"ringwave/crypto/keystream"
	"ringwave/crypto/vector"
	"ringwave/phy/kernel"
)

// Moment names a transmission, and so what is random in it: a run that was resumed meets
// the same.
type Moment struct {
	// Every is how many samples lie between attempts, in nominal time; 0 if they do not
	// follow each other.
	Every          float64
	Round, Attempt uint32
	// Part is the number of the transmission in the round, whatever its attempt.
	Part uint32
	// Block names the fading block among the round's.
	Block uint32
	// Time is when the attempt begins, in samples: nominal, and no more than a function
	// of round and attempt.
	Time float64
	// Running says that sample clocks run on from the attempt's transmission before, as
	// within a block of soundings: nobody triggers boards there.
	Running bool
}

// attempt reports whether two moments are of the same attempt.
func (m Moment) attempt(o Moment) bool { return m.Round == o.Round && m.Attempt == o.Attempt }

// Path is what lies between a transmitter's samples and the receiver's antenna: the
// transmitter's impairments, the gain of the current fading block, the delay and the
// echoes. In their order samples meet IQ mismatch, DC and converter, the sample clock, the
// board's filter, the amplifier, delay and echoes, the gain, and the carrier's phase. It is
// a stream: blocks must come in their order, and how it is cut into blocks changes no
// bit. It is for one goroutine and allocates nothing after NewPath, for blocks up to the
// largest that it has seen.
type Path struct {
	imp     Impairments
	front   frontEnd
	clock   *resampler
	filter  *lowPass
	amp     Amplifier
	gain    float32
	direct  tap
	echoes  *echoes
	fading  *doppler    // nil for gains that stay
	preview *doppler    // of moments that have not begun
	reach   int         // the largest whole delay
	history []complex64 // the last reach + delayTaps - 1 samples
	work    []complex64
	rotor   rotor
	kernel  kernel.Kernel
	begun   *Moment // the last one
}

// NewPath makes a path of gain 1 without echoes. The seed is that of its phase noise and
// its clock's jitter.
func NewPath(imp Impairments, seed keystream.Seed) (*Path, error) {
	return NewPathThrough(imp, Air{}, seed)
}

// NewPathThrough makes a path of gain 1 through the air given.
func NewPathThrough(imp Impairments, air Air, seed keystream.Seed) (*Path, error) {
	if err := imp.validate(); err != nil {
		return nil, err
	}
	if err := air.validate(); err != nil {
		return nil, err
	}
	p := &Path{
		imp: imp, front: newFrontEnd(imp), gain: 1, amp: imp.Amplifier, direct: newTap(imp.DelaySamples),
		filter: newLowPass(imp.Filter), rotor: newRotor(imp, seed), kernel: kernel.New(vector.Fastest()),
		echoes: newEchoes(imp.DelaySamples, air), fading: newDoppler(air, seed.Derive("doppler")), preview: newDoppler(air, seed.Derive("doppler")),
	}
	if imp.SampleClock != 0 || imp.ClockJitter != 0 || imp.ClockRoom != 0 {
		p.clock = newResampler(imp.SampleClock, imp.ClockJitter, imp.ClockRoom, seed)
	}
	p.reach = max(p.direct.whole, p.echoes.reach())
	p.history = make([]complex64, p.reach+delayTaps-1)
	return p, nil
}

// Begin begins a transmission with the next sample: the sample clock's error begins at 0,
// and with the first transmission of an attempt the carrier's phase, its noise, the echoes
// and a gain that fades become those of the moment, and all else is as if the path were
// new: between attempts nothing is sent.
func (p *Path) Begin(m Moment) {
	fresh := p.begun == nil || !p.begun.attempt(m)
	if fresh || !m.Running {
		p.clock.start(m)
	}
	if !fresh {
		return
	}
	p.begun = &m
	p.rotor.start(m)
	p.echoes.start(m)
	p.fading.start(m)
	p.filter.rest()
	p.clock.rest()
	clear(p.history)
}

// SetGain sets the real gain h of the samples that follow.
func (p *Path) SetGain(h float64) { p.gain = float32(h) }

// Fades reports whether the gain changes within a round, and returns that at the beginning
// of the attempt of m: the path multiplies samples by what it becomes against that, so that
// gain is to be set.
func (p *Path) Fades(m Moment) (gain float64, fades bool) {
	if p.fading == nil {
		return 0, false
	}
	p.preview.start(m)
	return p.preview.first, true
}

// Latency returns the constant delay of every path, in samples: that of the
// fractional-delay filter, and of the sample clock's where there is one.
func (p *Path) Latency() int { return delayLatency + p.clock.latency() }

// Apply passes the next len(src) samples: dst, as long, gets them delayed by
// Latency and the path's own delay. The two may be the same slice.
func (p *Path) Apply(dst, src []complex64) {
	keep := len(p.history)
	if cap(p.work) < keep+len(src) {
		p.work = make([]complex64, keep+len(src))
	}
	w := p.work[:keep+len(src)]
	copy(w, p.history)
	fresh := w[keep:]
	copy(fresh, src)
	p.front.apply(fresh)
	p.clock.apply(fresh)
	p.filter.apply(fresh)
	p.amp.apply(fresh)
	copy(p.history, w[len(src):])
	p.direct.filter(p.kernel, dst, w[p.reach-p.direct.whole:], p.gain)
	p.echoes.add(p.kernel, dst, w, p.reach, p.gain)
	p.fading.apply(dst)
	p.rotor.apply(p.kernel, dst)
}

// tap is a delay, a fraction of a sample included.
type tap struct {
	whole int // the integer part
	exact bool
	taps  [delayTaps]float32
}

func newTap(samples float64) tap {
	whole := int(samples)
	return tap{whole: whole, exact: float64(whole) == samples, taps: fractionalDelay(samples - float64(whole))}
}

// filter sets each sample of dst to the gain times the filter's output whose newest
// input is delayTaps - 1 samples further on in w.
func (t *tap) filter(k kernel.Kernel, dst, w []complex64, gain float32) {
	if t.exact { // nothing to interpolate
		for n, x := range w[delayTaps-1-delayLatency:][:len(dst)] {
			dst[n] = complex(gain*real(x), gain*imag(x))
		}
		return
	}
	k.Convolve(dst, w[:len(dst)+delayTaps-1], t.taps[:], gain)
}

// validate says what is wrong with the air.
func (a Air) validate() error {
	for k, e := range a.Echoes {
		if !(e.DelaySamples >= 0 && e.DelaySamples <= MaxDelaySamples) {
			return fmt.Errorf("echo %d: the delay in samples is %v: allowed are 0 to %d", k+1, e.DelaySamples, MaxDelaySamples)
		}
		if !(e.Gain >= 0 && e.Gain <= 1e3) || math.IsNaN(e.PhaseRad) || math.IsInf(e.PhaseRad, 0) {
			return fmt.Errorf("echo %d: the gain is %v and the phase %v: the first must be from 0 to 1000, the second finite", k+1, e.Gain, e.PhaseRad)
		}
	}
	if !(a.KFactor >= 0) || math.IsInf(a.KFactor, 0) {
		return fmt.Errorf("the K-factor of echoes is %v: it must be 0 or more", a.KFactor)
	}
	if !(a.Doppler >= 0 && a.Doppler <= MaxDoppler) || a.Doppler > 0 && a.Gain == nil {
		return fmt.Errorf("a Doppler spread of %v cycles a sample: allowed are 0 to %v, of gains whose law is known", a.Doppler, MaxDoppler)
	}
	return nil
}
