package modem

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// device is one transmitter as the channel sees it.
type device struct {
	gain    float64 // of its symbols, whatever its scale
	phase   Radians
	delay   Samples
	advance Samples // what the device makes up for
}

// scene is what a receiver hears: frames of all devices at once.
type scene struct {
	cfg     Config
	devices []device
	symbols [][]int8 // payload of each device
	lead    int      // samples before the frame
	offset  CyclesPerSample
	noise   float64 // complex noise power a sample
	rnd     *rand.Rand
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }

func randomDigits(rnd *rand.Rand, n, base int) []int8 {
	d := make([]int8, n)
	for k := range d {
		d[k] = int8(rnd.IntN(base) - base/2)
	}
	return d
}

// newScene makes devices' payloads of n symbols to a base.
func newScene(cfg Config, seed uint64, n, base int, devices ...device) *scene {
	s := &scene{cfg: cfg, devices: devices, lead: 100, rnd: newRand(seed)}
	for range devices {
		s.symbols = append(s.symbols, randomDigits(s.rnd, n, base))
	}
	return s
}

// capture returns the superposed samples. The true instant of the first payload
// symbol of a device without delay is payload.
func (s *scene) capture(t testing.TB) (samples []complex64, payload Samples) {
	t.Helper()
	pre := s.cfg.PreambleSymbols()
	sps := s.cfg.SamplesPerSymbol
	for i, dev := range s.devices {
		m := mustModulator(t, s.cfg, Drive{Peak: 7, Phase: dev.phase, Advance: dev.advance - dev.delay})
		n := len(pre) + len(s.symbols[i]) + int(m.Tail())
		x := make([]complex64, n*sps)
		m.Modulate(x, pre)
		m.ModulateDigits(x[len(pre)*sps:], s.symbols[i])
		m.Idle(x[(len(pre)+len(s.symbols[i]))*sps:], m.Tail())
		if samples == nil {
			samples = make([]complex64, s.lead+len(x)+100)
			payload = Samples(s.lead+len(pre)*sps) + m.Delay()
		}
		g := complex64(complex(dev.gain/float64(m.Scale()), 0))
		for k, v := range x {
			samples[s.lead+k] += g * v
		}
	}
	for k := range samples {
		v := complex128(samples[k]) * cmplx.Rect(1, 2*math.Pi*math.Mod(float64(s.offset)*float64(k), 1))
		samples[k] = complex64(v + s.normal(s.noise))
	}
	return samples, payload
}

func (s *scene) normal(power float64) complex128 {
	std := math.Sqrt(power / 2)
	return complex(std*s.rnd.NormFloat64(), std*s.rnd.NormFloat64())
}

// want returns the soft symbols that the gains and a common phase make.
func (s *scene) want(theta Radians) []float64 {
	y := make([]float64, len(s.symbols[0]))
	for i, dev := range s.devices {
		g := dev.gain * math.Cos(float64(dev.phase-theta))
		for k, d := range s.symbols[i] {
			y[k] += g * float64(d)
		}
	}
	return y
}

// common returns the argument and magnitude of the sum of the devices' channels.
func (s *scene) common() (Radians, float64) {
	var sum complex128
	for _, dev := range s.devices {
		sum += cmplx.Rect(dev.gain, float64(dev.phase))
	}
	return Radians(cmplx.Phase(sum)), cmplx.Abs(sum)
}

// evm returns the power of y's error over the power of want, in dB.
func evm(y []float32, want []float64) float64 {
	var e, p float64
	for k, w := range want {
		d := float64(y[k]) - w
		e += d * d
		p += w * w
	}
	return 10 * math.Log10(e/p)
}

func meanSquare(want []float64) float64 {
	p := 0.0
	for _, w := range want {
		p += w * w
	}
	return p / float64(len(want))
}

func mustModulator(t testing.TB, cfg Config, drive Drive) *Modulator {
	t.Helper()
	m, err := NewModulator(cfg, drive)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustDetector(t testing.TB, cfg Config, search Search) *Detector {
	t.Helper()
	d, err := NewDetector(cfg, search)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustDemodulator(t testing.TB, cfg Config, receive Receive) *Demodulator {
	t.Helper()
	d, err := NewDemodulator(cfg, receive)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustFind(t testing.TB, d *Detector, samples []complex64) Sync {
	t.Helper()
	s, err := d.First(samples)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// demodulate returns the soft symbols of a capture of which none may be erased.
func demodulate(t testing.TB, cfg Config, receive Receive, samples []complex64, s Sync, n int) ([]float32, Report) {
	t.Helper()
	y, erased := make([]float32, n), make([]bool, n)
	r := mustDemodulator(t, cfg, receive).Demodulate(y, erased, Frame{Samples: samples, Sync: s})
	if r.Erased != 0 {
		t.Fatalf("%d symbols erased", r.Erased)
	}
	return y, r
}

func flatTop(sps int, p FlatTop) Config {
	return Config{SamplesPerSymbol: sps, Pulse: p, Preamble: Preamble{Length: DefaultPreamble}}
}

func rootRaised(sps int) Config {
	return Config{SamplesPerSymbol: sps, Pulse: RootRaisedCosine{RollOff: 0.25, Span: 16}, Preamble: Preamble{Length: DefaultPreamble}}
}

var pulses = map[string]Config{
	"flat":            flatTop(8, FlatTop{Edge: 1}),
	"flat wide":       flatTop(8, FlatTop{Edge: 2}),
	"overlapped":      flatTop(8, FlatTop{Edge: 1, Overlap: true}),
	"overlapped wide": flatTop(8, FlatTop{Edge: 2, Overlap: true}),
	"rrc":             rootRaised(8),
}

// The error of soft symbols in white noise is what NoiseBandwidth says, and
// NoiseBandwidth is 1/W or 1/sps.
func TestNoiseAsPredicted(t *testing.T) {
	const n = 40000
	for name, cfg := range pulses {
		s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 0.7})
		s.noise = 0.01
		samples, _ := s.capture(t)
		sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
		y, _ := demodulate(t, cfg, Receive{}, samples, sync, n)
		want := s.want(0.7)
		got := evm(y, want)
		predicted := 10 * math.Log10(s.noise*NoiseBandwidth(cfg.Pulse, cfg.SamplesPerSymbol)/2/meanSquare(want))
		// A variance over n symbols is off by sqrt(2/n): 0.03 dB a deviation.
		if math.Abs(got-predicted) > 0.12 {
			t.Errorf("%s: EVM %.2f dB, predicted %.2f", name, got, predicted)
		}
		t.Logf("%s: EVM %.2f dB, predicted %.2f", name, got, predicted)
		// The preamble's own estimate of the noise, from 127 symbols: 0.4 dB.
		if e := 10 * math.Log10(float64(sync.Noise)/(s.noise*NoiseBandwidth(cfg.Pulse, cfg.SamplesPerSymbol))); math.Abs(e) > 1.6 {
			t.Errorf("%s: the preamble says noise is %.2f dB off", name, e)
		}
	}
	for name, w := range map[string]float64{"flat": 5, "flat wide": 2, "overlapped": 6, "overlapped wide": 4, "rrc": 8} {
		if got := 1 / NoiseBandwidth(pulses[name].Pulse, 8); math.Abs(got/w-1) > 0.005 {
			t.Errorf("%s: the noise is averaged over %.3f samples, want %v", name, got, w)
		}
	}
}

// The signal-to-noise ratio that a flat-top pulse costs, against a filter matched
// to the same pulse, is as its documentation says.
func TestFlatTopCost(t *testing.T) {
	for name, want := range map[string]float64{"flat": 1.3, "flat wide": 4.4, "overlapped": 1.1, "overlapped wide": 2.7} {
		p := pulses[name].Pulse.(FlatTop)
		energy := 0.0
		for x := -800; x <= 800; x++ { // the integral over the pulse, not its samples
			h := p.at(Samples(x)/100, 8)
			energy += h * h / 100
		}
		if got := 10 * math.Log10(energy*NoiseBandwidth(p, 8)); math.Abs(got-want) > 0.06 {
			t.Errorf("%s costs %.2f dB, documented are %.1f", name, got, want)
		}
	}
}

func randomDevices(rnd *rand.Rand, n int, spread Samples) []device {
	devices := make([]device, n)
	for i := range devices {
		devices[i] = device{
			gain:  0.5 + rnd.Float64(),
			phase: Radians(2 * (rnd.Float64() - 0.5)),
			delay: spread * Samples(rnd.Float64()),
		}
	}
	if n > 1 { // the whole spread is used
		devices[0].delay, devices[1].delay = 0, spread
	}
	return devices
}

// Delays of ten devices up to the tolerance leave neither interference nor any
// influence on the gains with flat-top pulses.
func TestFlatTopToleratesDelays(t *testing.T) {
	const n = 2000
	worst := math.Inf(-1)
	for name, cfg := range pulses {
		p, ok := cfg.Pulse.(FlatTop)
		if !ok {
			continue
		}
		detector := mustDetector(t, cfg, Search{})
		for seed := range uint64(40) {
			s := newScene(cfg, 100+seed, n, 5, randomDevices(newRand(seed), 10, p.tolerance())...)
			s.lead += int(seed % 13)
			samples, _ := s.capture(t)
			sync := mustFind(t, detector, samples)
			theta, g := s.common()
			y, _ := demodulate(t, cfg, Receive{}, samples, sync, n)
			worst = max(worst, evm(y, s.want(theta)))
			if e := evm(y, s.want(theta)); e > -60 {
				t.Errorf("%s, seed %d: error %.1f dB, want -60 or less", name, seed, e)
			}
			if math.Abs(float64(sync.Theta-theta)) > 1e-4 || math.Abs(float64(sync.Amplitude)/g-1) > 1e-4 {
				t.Errorf("%s: phase %v, amplitude %v, want %v, %v", name, sync.Theta, sync.Amplitude, theta, g)
			}
		}
	}
	t.Logf("worst error %.1f dB", worst)
}

// Root-raised-cosine devices that are out of time by as much as each other leave what the
// receiver takes off, and those that are apart by 0.01 symbol the interference of
// phy/README.md, section 6, that either has of the other's timing.
func TestRootRaisedCosineCompensation(t *testing.T) {
	const n = 4000
	cfg := rootRaised(8)
	rnd := newRand(5)
	for _, c := range []struct {
		name      string
		off       Samples // of the second device's timing, or all of them
		devices   int
		low, high float64
	}{
		{"0.01 symbol off, alone", 0.08, 1, -120, -60},
		{"two devices, 0.02 symbol apart", 0.16, 2, -37.5, -34},
		{"two devices, 0.02 sample apart", 0.02, 2, -56, -52},
		{"ten devices, compensated to 0.01 sample", 0.01, 10, -64, -56},
		{"ten devices, compensated exactly", 0, 10, -140, -90},
	} {
		devices := []device{{gain: 1, delay: c.off}}
		switch c.devices {
		case 2:
			devices = append([]device{{gain: 1}}, devices...)
		case 10:
			devices = randomDevices(rnd, 10, 3)
			for i := range devices {
				devices[i].phase = 0
				devices[i].advance = devices[i].delay + c.off*Samples(2*rnd.Float64()-1)
			}
		}
		s := newScene(cfg, 3, n, 3, devices...)
		samples, _ := s.capture(t)
		sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
		y, _ := demodulate(t, cfg, Receive{}, samples, sync, n)
		e := evm(y, s.want(0))
		t.Logf("%s: %.1f dB", c.name, e)
		if e < c.low || e > c.high {
			t.Errorf("%s: error %.1f dB, want %v to %v", c.name, e, c.low, c.high)
		}
	}
}

// Every symbol rate works with both pulses from a random fractional instant.
func TestEverySymbolRate(t *testing.T) {
	const n = 300
	rnd := newRand(9)
	for sps := MinSamplesPerSymbol; sps <= MaxSamplesPerSymbol; sps++ {
		edge := Samples(sps) / 8
		for _, cfg := range []Config{flatTop(sps, FlatTop{Edge: edge, Overlap: true}), flatTop(sps, FlatTop{Edge: edge}), rootRaised(sps)} {
			s := newScene(cfg, uint64(sps), n, 7, device{gain: 2, phase: -2, delay: Samples(rnd.Float64())})
			s.lead = rnd.IntN(300)
			samples, _ := s.capture(t)
			sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
			y, _ := demodulate(t, cfg, Receive{}, samples, sync, n)
			if e := evm(y, s.want(-2)); e > -50 {
				t.Errorf("%d samples a symbol, %T: error %.1f dB", sps, cfg.Pulse, e)
			}
		}
	}
}

// phy/README.md has the number of symbols that settle windows.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("\n| symbols that settle windows | %d |\n", settling), fmt.Sprintf("by the first %d symbols", settling)} {
		if !strings.Contains(strings.ReplaceAll(string(text), "first\n512", "first 512"), want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
}
