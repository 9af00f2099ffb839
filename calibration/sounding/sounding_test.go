package sounding

import (
	"errors"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/mjibson/go-dsp/fft"

	"ringwave/crypto/keystream"
	"ringwave/phy/modem"
)

// counted returns the number of trials: many with RINGWAVE_LONG in the environment, few
// with -short.
func counted(usual int) int {
	switch {
	case os.Getenv("RINGWAVE_LONG") != "":
		return 10 * usual
	case testing.Short():
		return usual / 4
	}
	return usual
}

func newSounding(t testing.TB, cfg Config) *Sounding {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// small configurations of both kinds, and others of many shapes.
func smallConfigs() []Config {
	return []Config{
		{Kind: ZadoffChu, Length: 63, Repetitions: 2},
		{Kind: MSequence, Length: 63, Repetitions: 2},
	}
}

func manyConfigs() []Config {
	return append(smallConfigs(),
		Config{Kind: ZadoffChu, Length: 139, Root: 1, Repetitions: 4},
		Config{Kind: ZadoffChu, Length: 139, Root: 53, Repetitions: 3, SamplesPerChip: 3},
		Config{Kind: ZadoffChu, Length: 31, Repetitions: 3},
		Config{Kind: MSequence, Length: 127, Repetitions: 4},
		Config{Kind: MSequence, Length: 31, Repetitions: 3, SamplesPerChip: 5},
		Config{Kind: MSequence, Length: 255, Repetitions: 2, SamplesPerChip: 4},
	)
}

// link is what lies between a burst and a window.
type link struct {
	gain   complex128
	delay  float64
	offset float64
	dc     complex128
	image  complex128
	noise  float64 // variance of a complex sample
}

// bench makes windows from the samples of a burst alone: between them it evaluates the
// trigonometric polynomial through two of its periods, by transforms of another library
// than the one that is tested.
type bench struct {
	s        *Sounding
	spectrum []complex128
	start    int
	length   int
	rnd      *rand.Rand
	signal   []complex128 // at delay
	delay    float64
	window   []complex64
}

func newBench(s *Sounding, start, length int, seed uint64) *bench {
	x := s.Samples(1)
	two := make([]complex128, 2*s.Period())
	for n := range two {
		two[n] = complex128(x[s.Guard()+n])
	}
	return &bench{
		s: s, spectrum: fft.FFT(two), start: start, length: length,
		rnd: rand.New(keystream.FromInteger(seed).Derive("sounding test").Stream()), delay: math.NaN(), window: make([]complex64, length),
	}
}

// shift evaluates the burst between its samples.
func (b *bench) shift(delay float64) {
	if b.delay == delay {
		return
	}
	b.delay = delay
	n := len(b.spectrum)
	ramp := make([]complex128, n)
	for k, x := range b.spectrum {
		signed := k
		if k > n/2 {
			signed -= n
		}
		ramp[k] = x * cmplx.Rect(1, -2*math.Pi*float64(signed)*delay/float64(n))
	}
	two := fft.IFFT(ramp)
	b.signal = make([]complex128, b.length)
	for m := range b.signal {
		t := m - b.start
		if float64(t) >= delay && float64(t) <= float64(b.s.Burst()-1)+delay {
			b.signal[m] = two[((t-b.s.Guard())%n+n)%n]
		}
	}
}

// receive returns a window, which the next call overwrites.
func (b *bench) receive(l link) []complex64 {
	b.shift(l.delay)
	centre := float64(b.start) + l.delay + float64(b.s.Burst()-1)/2
	std := math.Sqrt(l.noise / 2)
	for n, u := range b.signal {
		y := l.dc
		if u != 0 && l.gain != 0 {
			y += l.gain * (u + l.image*cmplx.Conj(u)) * cmplx.Rect(1, 2*math.Pi*l.offset*(float64(n)-centre))
		}
		if std > 0 {
			y += complex(std*b.rnd.NormFloat64(), std*b.rnd.NormFloat64())
		}
		b.window[n] = complex64(y)
	}
	return b.window
}

// Periodic autocorrelations: L and 0 of Zadoff-Chu sequences, L and -1 of m-sequences,
// by transforms that we did not write.
func TestSequences(t *testing.T) {
	check := func(chips []complex128, side complex128) {
		t.Helper()
		n := len(chips)
		x := fft.FFT(chips)
		for k := range x {
			x[k] = complex(square(x[k]), 0)
		}
		for lag, r := range fft.IFFT(x) {
			want := side
			if lag == 0 {
				want = complex(float64(n), 0)
			}
			if cmplx.Abs(r-want) > 1e-8*float64(n) {
				t.Fatalf("%d chips: the autocorrelation at %d is %v, want %v", n, lag, r, want)
			}
		}
		for k, c := range chips {
			if math.Abs(cmplx.Abs(c)-1) > 1e-12 {
				t.Fatalf("chip %d is %v", k, c)
			}
		}
	}
	for _, c := range [][2]int{{31, 1}, {31, 30}, {63, 2}, {139, 53}, {255, 128}, {839, 129}, {4095, 2}} {
		check(zadoffChu(c[0], c[1]), 0)
	}
	for order := 5; order <= 12; order++ {
		check(mSequence(1<<order-1), -1)
	}
}

// The samples pass through the chips (less the line at 0 Hz), lie within their band,
// repeat, and never exceed their amplitude.
func TestSamples(t *testing.T) {
	for _, cfg := range manyConfigs() {
		s := newSounding(t, cfg)
		cfg = s.Config()
		for _, amplitude := range []modem.Amplitude{1, 0.7, 1.0 / 3, 1e-3} {
			x := s.Samples(amplitude)
			if len(x) != s.Burst() || s.Burst() != s.Fitted()+2*s.Guard() || s.Fitted() != cfg.Repetitions*s.Period() {
				t.Fatalf("%+v: %d samples", cfg, len(x))
			}
			peak := 0.0
			for _, v := range x {
				peak = max(peak, cmplx.Abs(complex128(v)))
			}
			if peak > float64(amplitude) || peak < (1-1e-6)*float64(amplitude) {
				t.Errorf("%+v: peak %v of %v", cfg, peak, amplitude)
			}
		}
		checkSpectrum(t, s)
	}
	x := newSounding(t, smallConfigs()[0]).Samples(0)
	if slices.ContainsFunc(x, func(v complex64) bool { return v != 0 }) {
		t.Error("amplitude 0 is not silent")
	}
}

func checkSpectrum(t *testing.T, s *Sounding) {
	t.Helper()
	x, cfg := s.Samples(1), s.Config()
	n := 2 * s.Period()
	two := make([]complex128, n)
	var energy float64
	for m := range two {
		two[m] = complex128(x[s.Guard()+m])
		energy += square(two[m])
	}
	var chips, mean complex128
	for _, c := range cfg.chips() {
		mean += c / complex(float64(cfg.Length), 0)
	}
	sent := 0.0
	for k, c := range cfg.chips() {
		turn := cmplx.Rect(1, -2*math.Pi*s.shift()*float64(k)/float64(cfg.Length))
		chips += two[k*cfg.SamplesPerChip] * turn * cmplx.Conj(c-mean)
		sent += square(c - mean)
	}
	scale := chips / complex(sent, 0)
	for k, c := range cfg.chips() {
		turn := cmplx.Rect(1, -2*math.Pi*s.shift()*float64(k)/float64(cfg.Length))
		if d := two[k*cfg.SamplesPerChip]*turn - scale*(c-mean); cmplx.Abs(d) > 1e-5 {
			t.Fatalf("%+v: chip %d is off by %v", cfg, k, d)
		}
	}
	edge := float64(cfg.Length+1) / 2 / float64(s.Period())
	spectrum := fft.FFT(two)
	outside, bandwidth := 0.0, 0.0
	for k, v := range spectrum {
		f := float64(k) / float64(n)
		if f > 0.5 {
			f--
		}
		bandwidth += square(v) * f * f
		if math.Abs(f) > edge || k == 0 {
			outside += square(v)
		}
	}
	if outside > 1e-12*energy*float64(n) {
		t.Errorf("%+v: %v of the power is out of the band or at 0 Hz", cfg, outside/energy/float64(n))
	}
	bandwidth = math.Sqrt(bandwidth / energy / float64(n))
	if got := float64(s.RMSBandwidth()); math.Abs(got/bandwidth-1) > 1e-5 {
		t.Errorf("%+v: rms bandwidth %v, the samples' is %v", cfg, got, bandwidth)
	}
	if got := float64(s.MeanPower()); math.Abs(got/(energy/float64(n))-1) > 1e-5 {
		t.Errorf("%+v: mean power %v, the samples' is %v", cfg, got, energy/float64(n))
	}
}

// Without noise everything put in comes out, to the precision of samples of 24 bits.
func TestExact(t *testing.T) {
	for _, cfg := range manyConfigs() {
		s := newSounding(t, cfg)
		b := newBench(s, 40, s.Burst()+80, 1)
		for _, l := range []link{
			{gain: 1},
			{gain: 0.3 - 0.2i, delay: 2.4, offset: 2e-4, dc: 0.1 + 0.05i, image: 0.03 - 0.02i},
			{gain: -0.7, delay: -3.5, offset: -3e-4, dc: -0.4},
			{gain: 1i, delay: 0.5, dc: 0.2i, image: -0.1i},
		} {
			w := b.receive(l)
			found, err := s.Acquire([][]complex64{w}, 40, Search{Delay: 5, Offset: 4e-4})
			if err != nil {
				t.Fatalf("%+v %+v: %v", cfg, l, err)
			}
			e, err := s.Fit(w, 40, found.Delay, found.Offset)
			if err != nil {
				t.Fatal(err)
			}
			for name, d := range map[string]float64{
				"delay": float64(found.Delay) - l.delay, "offset": (float64(found.Offset) - l.offset) * float64(s.Burst()),
				"gain": cmplx.Abs(e.Gain - l.gain), "dc": cmplx.Abs(e.DC - l.dc), "image": cmplx.Abs(e.Image - l.image),
				"explained": 1 - e.Explained, "increment": float64(e.DDelay),
			} {
				if math.Abs(d) > 2e-5 {
					t.Errorf("%+v %+v: %s is off by %v", cfg, l, name, d)
				}
			}
			if e.Noise > 1e-9 || e.Delay != found.Delay || e.Offset != found.Offset {
				t.Errorf("%+v %+v: %+v", cfg, l, e)
			}
			if sent := e.Sent(0.5); cmplx.Abs(sent.Gain-2*e.Gain) > 1e-12 || math.Abs(sent.GainVar/e.GainVar-4) > 1e-9 {
				t.Errorf("per sent amplitude: %+v of %+v", sent, e)
			}
		}
	}
}

func TestIQ(t *testing.T) {
	for _, c := range [][2]float64{{0, 0}, {0.5, 0.02}, {-1, 0.1}, {3, -0.3}} {
		gain := cmplx.Rect(math.Pow(10, c[0]/20), c[1])
		a := (1 + gain) / 2
		b := (1 - cmplx.Conj(gain)) / 2
		if g, p := TransmitterIQ(b / a); math.Abs(g-c[0]) > 1e-9 || math.Abs(p-c[1]) > 1e-9 {
			t.Errorf("transmitter: %v dB, %v rad, want %v", g, p, c)
		}
		path := cmplx.Rect(0.4, 2.2)
		if g, p := receiverIQ(b*cmplx.Conj(path)/(a*path), a*path); math.Abs(g-c[0]) > 1e-9 || math.Abs(p-c[1]) > 1e-9 {
			t.Errorf("receiver: %v dB, %v rad, want %v", g, p, c)
		}
	}
}

func TestConfigs(t *testing.T) {
	for _, cfg := range []Config{
		{}, {Kind: 3, Length: 63, Repetitions: 2},
		{Kind: ZadoffChu, Length: 64, Repetitions: 2}, {Kind: ZadoffChu, Length: 29, Repetitions: 2},
		{Kind: ZadoffChu, Length: 4097, Repetitions: 2}, {Kind: ZadoffChu, Length: 63, Root: 3, Repetitions: 2},
		{Kind: ZadoffChu, Length: 63, Root: 63, Repetitions: 2}, {Kind: ZadoffChu, Length: 63, Root: -1, Repetitions: 2},
		{Kind: MSequence, Length: 64, Repetitions: 2}, {Kind: MSequence, Length: 139, Repetitions: 2},
		{Kind: MSequence, Length: 63, Root: 1, Repetitions: 2}, {Kind: MSequence, Length: 63, Repetitions: 1},
		{Kind: MSequence, Length: 63, Repetitions: 2, SamplesPerChip: 1}, {Kind: MSequence, Length: 63, Repetitions: 2, SamplesPerChip: 17},
		{Kind: MSequence, Length: 63, Repetitions: 1025}, {Kind: MSequence, Length: 4095, Repetitions: 1000},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	for _, k := range []Kind{ZadoffChu, MSequence} {
		if got, err := ParseKind(k.String()); err != nil || got != k {
			t.Errorf("%v: %v, %v", k, got, err)
		}
	}
	if _, err := ParseKind("chirp"); err == nil {
		t.Error("a chirp was taken")
	}
}

// Windows that are too short, damaged or searched too widely are refused.
func TestRefusals(t *testing.T) {
	s := newSounding(t, smallConfigs()[0])
	w := make([]complex64, s.Burst()+20)
	copy(w[10:], s.Samples(1))
	search := Search{Delay: 10}
	if _, err := s.Acquire([][]complex64{w}, 10, search); err != nil {
		t.Error(err)
	}
	for _, bad := range []Search{
		{Delay: 11}, {Delay: -1}, {Delay: modem.Samples(math.NaN())}, {Offset: 0.26}, {Offset: -1}, {FalseAlarm: 1}, {FalseAlarm: -1},
		// Lines lie 1/126 apart; two make a shift by one chip.
		{Delay: 1, Offset: 1.01 / 126},
	} {
		if _, err := s.Acquire([][]complex64{w}, 10, bad); err == nil || errors.Is(err, ErrNoSounding) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := s.Acquire([][]complex64{w}, 10, Search{Delay: 10, Offset: 0.99 / 126}); err != nil {
		t.Error(err)
	}
	if _, err := s.Acquire(nil, 10, search); err == nil {
		t.Error("no window was taken")
	}
	for _, delay := range []modem.Samples{-75, 75, 1e12, modem.Samples(math.NaN())} {
		if _, err := s.Fit(w, 10, delay, 0); err == nil {
			t.Errorf("a delay of %v was taken", delay)
		}
	}
	if _, err := s.Fit(w, 10, 0, 1); err == nil {
		t.Error("an offset of 1 was taken")
	}
	for _, at := range []int{0, 10, 150, len(w) - 1} {
		lost := slices.Clone(w)
		modem.MarkLost(lost[at : at+1])
		if _, err := s.Fit(lost, 10, 0, 0); !errors.Is(err, ErrLost) {
			t.Errorf("sample %d lost: %v", at, err)
		}
		if _, err := s.Acquire([][]complex64{w, lost}, 10, search); !errors.Is(err, ErrLost) {
			t.Errorf("sample %d lost: %v", at, err)
		}
	}
	silent := make([]complex64, len(w))
	if _, err := s.Acquire([][]complex64{silent}, 10, search); !errors.Is(err, ErrNoSounding) {
		t.Errorf("silence: %v", err)
	}
}

func TestFitAllocatesNothing(t *testing.T) {
	for _, cfg := range smallConfigs() {
		s := newSounding(t, cfg)
		w := make([]complex64, s.Burst()+20)
		copy(w[10:], s.Samples(1))
		offset := modem.CyclesPerSample(0)
		if n := testing.AllocsPerRun(20, func() {
			offset += 1e-6
			for range 2 {
				if _, err := s.Fit(w, 10, 0.25, offset); err != nil {
					t.Fatal(err)
				}
			}
		}); n != 0 {
			t.Errorf("%v allocations a fit", n)
		}
	}
}
