package channel

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
)

// spectrum returns the response of a filter at a frequency, of an impulse of so many
// samples.
func spectrum(apply func([]complex64), cycles float64, n int) complex128 {
	x := make([]complex64, n)
	x[0] = 1
	apply(x)
	var sum complex128
	for k, v := range x {
		sum += complex128(v) * cmplx.Exp(complex(0, -2*math.Pi*cycles*float64(k)))
	}
	return sum
}

// decibels returns how large an error is against 1.
func decibels(x complex128) float64 { return 20 * math.Log10(cmplx.Abs(x)) }

// A filter's response is that of Butterworth's of third order, in closed form, and 3 dB
// down at its corner.
func TestLowPass(t *testing.T) {
	for _, corner := range []float64{0.01, 0.1, 0.26, 0.45} {
		for _, cycles := range []float64{0, corner / 3, corner, -corner, 0.2, 0.48} {
			got := spectrum(func(x []complex64) { newLowPass(corner).apply(x) }, cycles, 4096)
			want := 1 / math.Sqrt(1+math.Pow(math.Tan(math.Pi*cycles)/math.Tan(math.Pi*corner), 6))
			if math.Abs(cmplx.Abs(got)-want) > 1e-5 {
				t.Errorf("corner %v: %v at %v, want %v", corner, cmplx.Abs(got), cycles, want)
			}
		}
	}
	if newLowPass(0) != nil {
		t.Error("a filter without a corner is one")
	}
}

// A DC block has the response a (1 - z^-1)/(1 - a z^-1), and is 3 dB down at its corner.
func TestHighPass(t *testing.T) {
	for _, corner := range []float64{1e-4, 1e-3, 0.02} {
		a := math.Exp(-2 * math.Pi * corner)
		for _, cycles := range []float64{0, corner, -corner, 0.1, 0.5} {
			z := cmplx.Exp(complex(0, -2*math.Pi*cycles))
			want := complex(a, 0) * (1 - z) / (1 - complex(a, 0)*z)
			got := spectrum(func(x []complex64) { newHighPass(corner).apply(x) }, cycles, 1<<16)
			if cmplx.Abs(got-want) > 2e-4 {
				t.Errorf("corner %v: %v at %v, want %v", corner, got, cycles, want)
			}
			if cycles == corner && math.Abs(decibels(got)+3.01) > 0.3 && corner < 0.01 {
				t.Errorf("corner %v: %.2f dB there", corner, decibels(got))
			}
		}
	}
}

// Amplitudes come out by Rapp's curve, turned by what the power asks for.
func TestAmplifier(t *testing.T) {
	a := Amplifier{Saturation: 1.5, Smoothness: 3, PhaseRad: 0.3}
	for _, r := range []float64{0, 0.1, 0.5, 1, 1.4, 10} {
		x := []complex64{complex64(cmplx.Rect(r, 0.7))}
		a.apply(x)
		want := cmplx.Rect(r/math.Pow(1+math.Pow(r/1.5, 6), 1.0/6), 0.7+0.3*r*r)
		if cmplx.Abs(complex128(x[0])-want) > 1e-5 {
			t.Errorf("%v gives %v, want %v", r, x[0], want)
		}
	}
	usual, given := []complex64{1}, []complex64{1}
	Amplifier{Saturation: 1}.apply(usual)
	Amplifier{Saturation: 1, Smoothness: 2}.apply(given)
	if usual[0] != given[0] || math.Abs(float64(real(usual[0]))-math.Pow(2, -0.25)) > 1e-6 {
		t.Errorf("full drive at saturation gives %v by itself and %v with p = 2", usual, given)
	}
	linear := []complex64{3 - 4i}
	Amplifier{}.apply(linear)
	if linear[0] != 3-4i {
		t.Errorf("a linear amplifier gives %v", linear)
	}
}

// Tones through sample clocks that run apart are those of other instants, to -60 dB up to
// 0.3 cycles a sample: a transmitter's ahead of time, a receiver's behind.
func TestSampleClocks(t *testing.T) {
	const n, room = 40_000, 24
	for _, e := range []float64{5e-4, 2e-6, -3e-4} {
		for _, cycles := range []float64{0.01, -0.11, 0.3} {
			p := newPath(t, Impairments{SampleClock: e, ClockRoom: room})
			p.Begin(Moment{Round: 1})
			x := tone(n, cycles)
			p.Apply(x, x)
			worst := 0.0
			for k := 200; k < n; k++ {
				at := float64(k-delayLatency)*(1+e) - float64(p.Latency()-delayLatency)
				worst = max(worst, cmplx.Abs(complex128(x[k])-cmplx.Exp(complex(0, 2*math.Pi*cycles*at))))
			}
			if worst > 1e-3 {
				t.Errorf("transmitter %v, %v cycles a sample: error %.1f dB", e, cycles, 20*math.Log10(worst))
			}
			f, err := NewFront(Impairments{SampleClock: e, ClockRoom: room}, 0, 1, keystream.FromInteger(1))
			if err != nil {
				t.Fatal(err)
			}
			f.Begin(Moment{})
			x = tone(n, cycles)
			f.Apply(x)
			worst = 0
			for k := 200; k < n; k++ {
				at := float64(k)/(1+e) - float64(f.Latency())
				worst = max(worst, cmplx.Abs(complex128(x[k])-cmplx.Exp(complex(0, 2*math.Pi*cycles*at))))
			}
			if worst > 1e-3 {
				t.Errorf("receiver %v, %v cycles a sample: error %.1f dB", e, cycles, 20*math.Log10(worst))
			}
		}
	}
}

// A clock's error begins anew with each transmission, and where its room ends it grows no
// further.
func TestSampleClockBegins(t *testing.T) {
	const e, room = 1e-3, 4
	p := newPath(t, Impairments{SampleClock: e, ClockRoom: room})
	ahead := func(n int) float64 { // of the last of n samples
		x := tone(n, 1e-3)
		y := make([]complex64, n)
		p.Apply(y, x)
		phase := cmplx.Phase(complex128(y[n-1]) / cmplx.Exp(complex(0, 2*math.Pi*1e-3*float64(n-1-p.Latency()))))
		return phase / (2 * math.Pi * 1e-3)
	}
	for part := range uint32(2) {
		p.Begin(Moment{Part: part})
		if got := ahead(2000); math.Abs(got-2) > 0.02 {
			t.Errorf("part %d: %v samples ahead after 2000, want 2", part, got)
		}
	}
	p.Begin(Moment{Part: 2})
	if got := ahead(20_000); math.Abs(got-room) > 0.02 {
		t.Errorf("%v samples ahead, and there is room for %v", got, room)
	}
}

// Jitter turns a tone by 2 pi f times its deviation; the mean of 40,000 squares deviates
// by 0.7 %.
func TestJitter(t *testing.T) {
	const std, cycles, n = 0.05, 0.05, 40_000
	p := newPath(t, Impairments{ClockJitter: std, ClockRoom: 1})
	x := tone(n, cycles)
	p.Apply(x, x)
	sum := 0.0
	for k := 100; k < n; k++ {
		d := cmplx.Phase(complex128(x[k]) / cmplx.Exp(complex(0, 2*math.Pi*cycles*float64(k-p.Latency()))))
		sum += d * d
	}
	if got := math.Sqrt(sum / (n - 100)); math.Abs(got/(2*math.Pi*cycles*std)-1) > 0.02 {
		t.Errorf("the phase deviates by %v, want %v", got, 2*math.Pi*cycles*std)
	}
}

func newAirPath(t *testing.T, imp Impairments, air Air) *Path {
	t.Helper()
	p, err := NewPathThrough(imp, air, keystream.FromInteger(3))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each echo has its delay, gain and phase, fractions of a sample included.
func TestEchoes(t *testing.T) {
	air := Air{Echoes: []Echo{{DelaySamples: 8, Gain: 0.1}, {DelaySamples: 2.5, Gain: 0.3, PhaseRad: 1}, {DelaySamples: 40, Gain: 0.05, PhaseRad: -2}}}
	for _, delay := range []float64{0, 3, 0.7} {
		for _, cycles := range []float64{0, 0.07, -0.29} {
			p := newAirPath(t, Impairments{DelaySamples: delay}, air)
			p.SetGain(-2)
			x := tone(600, cycles)
			p.Apply(x, x)
			response := complex(-2, 0)
			for _, e := range air.Echoes {
				response -= 2 * cmplx.Rect(e.Gain, e.PhaseRad-2*math.Pi*cycles*e.DelaySamples)
			}
			for k := 200; k < len(x); k++ {
				want := response * cmplx.Exp(complex(0, 2*math.Pi*cycles*(float64(k)-delay-float64(p.Latency()))))
				if cmplx.Abs(complex128(x[k])-want) > 3e-3 {
					t.Fatalf("delay %v, %v cycles: sample %d is %v, want %v", delay, cycles, k, x[k], want)
				}
			}
		}
	}
}

// Echoes of one seed are the same, those with phases of their own differ, and of fading
// ones mean and variance over rounds are those of the K-factor.
func TestEchoesDraw(t *testing.T) {
	of := func(p *Path) complex128 { return complex128(p.echoes.gains[0]) }
	air := Air{Echoes: []Echo{{DelaySamples: 8, Gain: 1}}, DrawPhases: true, Seed: keystream.FromInteger(1)}
	a, b := newAirPath(t, Impairments{}, air), newAirPath(t, Impairments{}, air)
	air.Seed = keystream.FromInteger(2)
	c := newAirPath(t, Impairments{}, air)
	if of(a) != of(b) || cmplx.Abs(of(a)-of(c)) < 1e-3 || math.Abs(cmplx.Abs(of(c))-1) > 1e-6 {
		t.Errorf("echoes %v and %v of one seed, %v of another", of(a), of(b), of(c))
	}
	air.DrawPhases, air.KFactor = false, 3
	p := newAirPath(t, Impairments{}, air)
	const rounds = 20_000
	var mean complex128
	power := 0.0
	for r := range uint32(rounds) {
		p.Begin(Moment{Round: r})
		mean += of(p) / rounds
		power += real(of(p)*cmplx.Conj(of(p))) / rounds
	}
	// The deviation of each branch's mean is 0.0025, that of the power's below 0.005.
	if cmplx.Abs(mean-complex(math.Sqrt(0.75), 0)) > 0.012 || math.Abs(power-1) > 0.025 {
		t.Errorf("fading echoes: mean %v, want %v, and power %v", mean, math.Sqrt(0.75), power)
	}
	p.Begin(Moment{Round: 7})
	first := of(p)
	p.Begin(Moment{Round: 7, Attempt: 1})
	if of(p) != first {
		t.Error("another attempt in the same block has another echo")
	}
	p.Begin(Moment{Round: 7, Attempt: 2, Block: 2})
	if of(p) == first {
		t.Error("another block has the same echo")
	}
}

// faded returns n gains at distances of every samples, of a round.
func faded(p *Path, m Moment, n, every int) []float64 {
	p.Begin(m)
	h, _ := p.Fades(m)
	var all []float64
	x := make([]complex64, every)
	for range n {
		for k := range x {
			x[k] = 1
		}
		p.Apply(x, x)
		all = append(all, h*float64(real(x[every-1])))
	}
	return all
}

// A gain that fades has the mean and the second moment of its law at any instant, and its
// scattered part the autocorrelation J_0(2 pi f t): means of 3000 rounds, which deviate by
// 0.02 of the scattered part's variance.
func TestDoppler(t *testing.T) {
	const shift, every, n, rounds = 1e-3, 160, 12, 3000
	for name, law := range map[string]Fading{"gaussian": Gaussian{Mu: 2, Sigma: 0.5}, "rician": NewRicianMean(3, 1)} {
		p := newAirPath(t, Impairments{}, Air{Doppler: shift, Gain: law})
		mean, second := 0.0, 0.0
		var products [n]float64
		for r := range uint32(rounds) {
			h := faded(p, Moment{Round: r}, n, every)
			for k := range h {
				products[k] += (h[0] - law.Mean()) * (h[k] - law.Mean()) / rounds
			}
			mean += h[n-1] / rounds
			second += h[n-1] * h[n-1] / rounds
		}
		variance := law.SecondMoment() - law.Mean()*law.Mean()
		if math.Abs(mean-law.Mean()) > 5*math.Sqrt(variance/rounds) || math.Abs(second/law.SecondMoment()-1) > 0.05 {
			t.Errorf("%s: mean %v and second moment %v, want %v and %v", name, mean, second, law.Mean(), law.SecondMoment())
		}
		if name == "rician" {
			continue // an envelope's autocorrelation is another
		}
		for k, got := range products {
			if want := math.J0(2 * math.Pi * shift * float64(k*every)); math.Abs(got/variance-want) > 0.1 {
				t.Errorf("after %d samples the autocorrelation is %v, want %v", k*every, got/variance, want)
			}
		}
	}
}

// Attempts of one block of fading go on in it.
func TestDopplerGoesOn(t *testing.T) {
	p := newAirPath(t, Impairments{}, Air{Doppler: 1e-3, Gain: Gaussian{Mu: 2, Sigma: 0.5}})
	first := faded(p, Moment{Round: 3, Time: 3000}, 41, 25)
	second := faded(p, Moment{Round: 3, Attempt: 1, Time: 4000}, 1, 25)
	if math.Abs(first[40]-second[0]) > 2e-3 {
		t.Errorf("1025 samples after an attempt's beginning the gain is %v, and of the attempt that began 1000 after it %v", first[40], second[0])
	}
}

// Bursts come at their distance, as long and as strong as they are asked for, the first
// anywhere; the mean of 4000 squares deviates by 2.2 %.
func TestBursts(t *testing.T) {
	const every, length, std = 1000, 20, 0.5
	f, err := NewFront(Impairments{Interference: Interference{BurstEvery: every, BurstLength: length, BurstStd: std}}, 0, 1, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	firsts := map[int]bool{}
	for part := range uint32(4) {
		f.Begin(Moment{Part: part})
		x := make([]complex64, 100*every)
		f.Apply(x)
		first := slices.IndexFunc(x, func(v complex64) bool { return v != 0 })
		firsts[first] = true
		power := 0.0
		for k, v := range x {
			if within := (k-first+every)%every < length; within != (v != 0) {
				t.Fatalf("part %d: sample %d is %v, and the first burst at %d", part, k, v, first)
			}
			power += math.Pow(cmplx.Abs(complex128(v)), 2)
		}
		if got := power / (100 * length * 2 * std * std); first >= every || math.Abs(got-1) > 0.12 {
			t.Errorf("part %d: the first burst is at %d, their power %v of what it should be", part, first, got)
		}
	}
	if len(firsts) < 4 {
		t.Errorf("the first bursts are at %v", firsts)
	}
}

func TestTone(t *testing.T) {
	f, err := NewFront(Impairments{Interference: Interference{Tone: 0.123, ToneAmplitude: 0.2}}, 0, 1, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	f.Begin(Moment{})
	x := make([]complex64, 5000)
	f.Apply(x)
	for k, v := range x {
		want := complex128(x[0]) * cmplx.Exp(complex(0, 2*math.Pi*0.123*float64(k)))
		if cmplx.Abs(complex128(v)-want) > 1e-5 || math.Abs(cmplx.Abs(want)-0.2) > 1e-6 {
			t.Fatalf("sample %d is %v, want %v", k, v, want)
		}
	}
}

// The gain control brings any power to 12 dB below full scale, within 20 dB, with the
// time constant of its bandwidth.
func TestGainControl(t *testing.T) {
	const bandwidth, gain = 1e-4, 0.5 // full scale is 2
	for amplitude, want := range map[float64]float64{0.5: 0.5, 1: 0.5, 0.1: 0.5, 0.01: 0.1, 50: 5} {
		f, err := NewFront(Impairments{GainControl: bandwidth}, 0, gain, keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		x := make([]complex64, 40_000)
		for k := range x {
			x[k] = complex64(complex(amplitude, 0))
		}
		f.Apply(x)
		if got := float64(real(x[len(x)-1])) / gain; math.Abs(got/want-1) > 1e-3 {
			t.Errorf("an amplitude of %v becomes %v, want %v", amplitude, got, want)
		}
		if amplitude == 1 {
			// After one time constant the power's mean is 1 - 3/4 e^-1.
			k := int(math.Round(1 / (2 * math.Pi * bandwidth)))
			if got, want := float64(real(x[k]))/gain, math.Sqrt(0.25/(1-0.75*math.Exp(-1))); math.Abs(got/want-1) > 1e-3 {
				t.Errorf("after a time constant the amplitude is %v, want %v", got, want)
			}
		}
	}
}

// A carrier's phase goes on through an attempt, and begins by its time; a receiver's turns
// the other way.
func TestPhaseByTime(t *testing.T) {
	const offset, n = 1.25e-3, 500
	path := newPath(t, Impairments{CarrierOffset: offset, PhaseRad: 0.5})
	front, err := NewFront(Impairments{CarrierOffset: offset}, 0, 1, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Moment{{Round: 1, Time: 700}, {Round: 5, Attempt: 2, Time: 1e9 + 3}, {Round: 1, Time: 700}} {
		for part := range uint32(3) {
			m.Part = part
			path.Begin(m)
			front.Begin(m)
			x, y := tone(n, 0), tone(n, 0)
			path.Apply(x, x)
			front.Apply(y)
			turned := 2 * math.Pi * offset * (m.Time + float64(int(part)*n+n-1))
			if d := complex128(x[n-1]) - cmplx.Exp(complex(0, 0.5+turned)); cmplx.Abs(d) > 1e-4 {
				t.Errorf("%+v: a device's phase is off by %v", m, cmplx.Abs(d))
			}
			if d := complex128(y[n-1]) - cmplx.Exp(complex(0, -turned)); cmplx.Abs(d) > 1e-4 {
				t.Errorf("%+v: a receiver's phase is off by %v", m, cmplx.Abs(d))
			}
		}
	}
}

// Noise within a loop deviates by std/sqrt(1 - keep^2): the mean of some 2000 independent
// squares deviates by 3 %.
func TestPhaseLoop(t *testing.T) {
	const std, loop, n = 1e-3, 0.01, 200_000
	p := newPath(t, Impairments{PhaseNoiseStd: std, PhaseLoop: loop})
	x := tone(n, 0)
	p.Apply(x, x)
	sum := 0.0
	for _, v := range x[1000:] {
		sum += math.Pow(cmplx.Phase(complex128(v)), 2)
	}
	want := std / math.Sqrt(-math.Expm1(-4*math.Pi*loop))
	if got := math.Sqrt(sum / (n - 1000)); math.Abs(got/want-1) > 0.06 {
		t.Errorf("the phase deviates by %v, want %v", got, want)
	}
}

// faulty returns a path and a receiver's end with all faults.
func faulty(t *testing.T) (*Path, *Front) {
	t.Helper()
	p := newAirPath(t, Impairments{
		DelaySamples: 1.3, CarrierOffset: 1e-4, PhaseRad: 1, PhaseNoiseStd: 1e-3, IQGainDB: 0.1, IQPhaseRad: 0.01, DC: 0.02,
		ConverterBits: 10, SampleClock: 1e-4, ClockJitter: 0.01, ClockRoom: 9, Filter: 0.3, Amplifier: Amplifier{Saturation: 1.5, PhaseRad: 0.1},
	}, Air{Echoes: []Echo{{8, 0.1, 1}, {2.5, 0.05, 2}}, KFactor: 4, DrawPhases: true, Doppler: 1e-4, Gain: Gaussian{1, 0.5}})
	f, err := NewFront(Impairments{
		CarrierOffset: 2e-4, PhaseNoiseStd: 1e-3, PhaseLoop: 0.1, SampleClock: -1e-4, ClockRoom: 9, Filter: 0.4, HighPass: 1e-4, GainControl: 1e-4,
		IQGainDB: 0.1, DC: 0.01, ConverterBits: 12, Interference: Interference{BurstEvery: 100, BurstLength: 7, BurstStd: 0.1, Tone: 0.1, ToneAmplitude: 0.05},
	}, 0.01, 0.3, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	return p, f
}

// How a stream is cut into blocks changes no bit of any fault, and what was before an
// attempt changes nothing in it.
func TestFaultsByName(t *testing.T) {
	m := Moment{Round: 4, Attempt: 1, Part: 4, Time: 12345}
	x := make([]complex64, 3000)
	rnd := rand.New(rand.NewPCG(4, 4))
	for n := range x {
		x[n] = complex(float32(0.3*rnd.NormFloat64()), float32(0.3*rnd.NormFloat64()))
	}
	p, f := faulty(t)
	p.Begin(m)
	f.Begin(m)
	f.Start(m.Round, m.Part)
	want := make([]complex64, len(x))
	p.Apply(want, x)
	f.Apply(want)

	p, f = faulty(t)
	for _, before := range []Moment{{Round: 3, Time: 99}, {Round: 3, Part: 1, Time: 99}, {Round: 4, Part: 1, Time: 5}} {
		p.Begin(before)
		f.Begin(before)
		f.Start(before.Round, before.Part)
		y := make([]complex64, len(x))
		p.Apply(y, x)
		f.Apply(y)
		if slices.Equal(y, want) {
			t.Errorf("%+v has the faults of %+v", before, m)
		}
	}
	p.Begin(m)
	f.Begin(m)
	f.Start(m.Round, m.Part)
	got := make([]complex64, len(x))
	for from := 0; from < len(x); {
		to := min(from+rnd.IntN(50), len(x))
		p.Apply(got[from:to], x[from:to])
		f.Apply(got[from:to])
		from = to
	}
	for n := range got {
		if got[n] != want[n] {
			t.Fatalf("sample %d is %v, and of a path and a receiver that are new %v", n, got[n], want[n])
		}
	}
	if n := testing.AllocsPerRun(20, func() { p.Apply(got[:500], x[:500]); f.Apply(got[:500]) }); n != 0 {
		t.Errorf("%v allocations a block", n)
	}
}

func TestFaultRanges(t *testing.T) {
	for want, imp := range map[string]Impairments{
		"error of the sample clock is 1:":                {SampleClock: 1},
		"jitter in samples is -1:":                       {ClockJitter: -1},
		"room of the clocks in samples is -1:":           {ClockRoom: -1},
		"filter's corner in cycles a sample is 0.5:":     {Filter: 0.5},
		"amplifier's saturation is NaN:":                 {Amplifier: Amplifier{Saturation: math.NaN()}},
		"amplifier's smoothness is 21:":                  {Amplifier: Amplifier{Smoothness: 21}},
		"amplifier's phase in radians is 4:":             {Amplifier: Amplifier{PhaseRad: 4}},
		"corner of the DC block":                         {HighPass: 1},
		"bandwidth of the gain control":                  {GainControl: -1},
		"bandwidth of the phase noise's loop":            {PhaseLoop: 1},
		"length of bursts in samples is 2:":              {Interference: Interference{BurstEvery: 1, BurstLength: 2}},
		"tone in cycles a sample is 1:":                  {Interference: Interference{Tone: 1}},
		"tone's amplitude is -1: allowed are 0 to 1e+06": {Interference: Interference{ToneAmplitude: -1}},
	} {
		if _, err := NewPath(imp, keystream.Seed{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for want, air := range map[string]Air{
		"echo 2: the delay":                         {Echoes: []Echo{{}, {DelaySamples: -1}}},
		"echo 1: the gain":                          {Echoes: []Echo{{Gain: math.Inf(1)}}},
		"K-factor of echoes":                        {KFactor: -1},
		"a Doppler spread of 0.1 cycles a sample":   {Doppler: 0.1, Gain: Gaussian{Mu: 1}},
		"a Doppler spread of 0.001 cycles a sample": {Doppler: 1e-3},
	} {
		if _, err := NewPathThrough(Impairments{}, air, keystream.Seed{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Each fault alone changes what goes through a path, or through a receiver's end, and no
// fault nothing.
func TestEachFaultIsThere(t *testing.T) {
	x := tone(300, 0.1)
	through := func(imp Impairments, air Air) []complex64 {
		y := slices.Clone(x)
		p := newAirPath(t, imp, air)
		p.Begin(Moment{})
		p.Apply(y, y)
		return y[p.Latency():]
	}
	received := func(imp Impairments) []complex64 {
		f, err := NewFront(imp, 0, 0.5, keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		f.Begin(Moment{})
		y := slices.Clone(x)
		f.Apply(y)
		return y[f.Latency():]
	}
	differ := func(a, b []complex64) bool { n := min(len(a), len(b)); return !slices.Equal(a[:n], b[:n]) }
	if got := through(Impairments{}, Air{}); differ(got, x) {
		t.Error("a path without faults changes samples")
	}
	for name, imp := range map[string]Impairments{
		"offset": {CarrierOffset: 1e-4}, "phase noise": {PhaseNoiseStd: 1e-3}, "DC": {DC: 0.1}, "clock": {SampleClock: 1e-4, ClockRoom: 2},
		"jitter": {ClockJitter: 0.1, ClockRoom: 2}, "filter": {Filter: 0.3}, "bits": {ConverterBits: 8},
	} {
		if !differ(through(imp, Air{}), x) {
			t.Errorf("a path has no %s", name)
		}
		if !differ(received(imp), received(Impairments{})) {
			t.Errorf("a receiver has no %s", name)
		}
	}
	if !differ(through(Impairments{Amplifier: Amplifier{Saturation: 2}}, Air{}), x) || !differ(through(Impairments{Amplifier: Amplifier{PhaseRad: 0.1}}, Air{}), x) {
		t.Error("a path has no amplifier")
	}
	if !differ(through(Impairments{}, Air{Echoes: []Echo{{10, 0.1, 0}}}), x) || !differ(through(Impairments{}, Air{Doppler: 1e-3, Gain: Gaussian{1, 1}}), x) {
		t.Error("a path has no air")
	}
	for name, imp := range map[string]Impairments{
		"DC block": {HighPass: 1e-3}, "gain control": {GainControl: 1e-3}, "tone": {Interference: Interference{ToneAmplitude: 0.1}},
		"bursts": {Interference: Interference{BurstEvery: 10, BurstLength: 1, BurstStd: 1}},
	} {
		if !differ(received(imp), received(Impairments{})) {
			t.Errorf("a receiver has no %s", name)
		}
	}
}
