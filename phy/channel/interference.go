package channel

import (
	"math"
	"math/rand/v2"

	"ringwave/crypto/keystream"
)

// Interference is what a receiver hears beside the devices: bursts of noise and a tone.
type Interference struct {
	// BurstEvery is how many samples lie from a burst's first to the next one's,
	// BurstLength how long each is, and BurstStd the deviation of a branch in it. The first
	// of a transmission lies anywhere.
	BurstEvery, BurstLength int
	BurstStd                float64
	// Tone is in cycles a sample.
	Tone, ToneAmplitude float64
}

// interferer adds interference.
type interferer struct {
	Interference
	until  int // samples to the next burst's beginning; negative within one
	phase  float64
	n      int64 // samples of the tone since its phase was phase
	bursts *keystream.Stream
	normal *rand.Rand
	tones  *keystream.Stream
	drawn  *rand.Rand
}

// newInterferer returns nil for none.
func newInterferer(i Interference, seed keystream.Seed) *interferer {
	if (i.BurstEvery == 0 || i.BurstLength == 0 || i.BurstStd == 0) && i.ToneAmplitude == 0 {
		return nil
	}
	f := &interferer{Interference: i, bursts: seed.Derive("bursts").Stream(), tones: seed.Derive("tone").Stream()}
	f.normal, f.drawn = rand.New(f.bursts), rand.New(f.tones)
	f.place()
	return f
}

// place draws where the first burst is.
func (f *interferer) place() {
	if f.BurstEvery > 0 {
		f.until = f.normal.IntN(f.BurstEvery)
	}
}

// start begins a transmission, whose bursts lie where its name says, and with fresh also
// an attempt, whose tone has a phase of its own.
func (f *interferer) start(m Moment, fresh bool) {
	if f == nil {
		return
	}
	f.bursts.Start(m.Round, m.Part)
	f.place()
	if fresh {
		f.tones.Start(m.Round, m.Attempt)
		f.phase, f.n = 2*math.Pi*f.drawn.Float64(), 0
	}
}

func (f *interferer) add(x []complex64) {
	if f == nil {
		return
	}
	if f.ToneAmplitude > 0 {
		for n := range x {
			t := unit(f.phase + 2*math.Pi*turns(f.Tone*float64(f.n)))
			x[n] += complex(float32(f.ToneAmplitude), 0) * t
			f.n++
		}
	}
	if f.BurstEvery > 0 && f.BurstLength > 0 {
		f.addBursts(x)
	}
}

func (f *interferer) addBursts(x []complex64) {
	for n := 0; n < len(x); {
		if f.until > 0 { // between bursts
			skip := min(f.until, len(x)-n)
			n, f.until = n+skip, f.until-skip
			continue
		}
		x[n] += complex(float32(f.BurstStd*f.normal.NormFloat64()), float32(f.BurstStd*f.normal.NormFloat64()))
		n++
		if f.until--; f.until <= -f.BurstLength {
			f.until += f.BurstEvery
		}
	}
}
