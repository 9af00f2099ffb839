package modem

import (
	"errors"
	"math"
	"testing"
)

// The timing of a root-raised-cosine preamble has no bias and the deviation of the
// Cramer-Rao bound, 1/sqrt(2 L S (2 pi B)^2) symbols, B^2 the mean square bandwidth
// of a raised cosine: 0.01 sample is reached from 30 dB on. Phase and frequency
// likewise meet theirs.
func TestEstimatorsMeetTheirBounds(t *testing.T) {
	const runs, offset = 150, 1e-4
	cfg := rootRaised(8)
	detector := mustDetector(t, cfg, Search{MaxOffset: 1e-4})
	l, beta := float64(cfg.Preamble.Length), 0.25
	for _, decibels := range []float64{20, 30, 40, 120} {
		snr := math.Pow(10, decibels/10)
		var timing, phase, frequency, bias float64
		for seed := range uint64(runs) {
			delay := Samples(newRand(seed).Float64())
			s := newScene(cfg, seed, 50, 3, device{gain: 1, phase: 0.3, delay: delay})
			s.offset, s.noise = offset, 8/snr
			samples, payload := s.capture(t)
			sync := mustFind(t, detector, samples)
			e := float64(sync.Payload - payload - delay)
			bias += e / runs
			timing += e * e / runs
			e = float64(wrap(float64(sync.Theta) - 0.3 - 2*math.Pi*offset*float64(sync.Reference)))
			phase += e * e / runs
			e = float64(sync.Offset) - offset
			frequency += e * e / runs
		}
		bandwidth := (1.0/12 + beta*beta*(0.25-2/(math.Pi*math.Pi))) * 4 * math.Pi * math.Pi
		bounds := [3]float64{
			8 / math.Sqrt(2*l*snr*bandwidth),
			1 / math.Sqrt(2*l*snr),
			math.Sqrt(6/(snr*l*l*l)) / (2 * math.Pi * 8),
		}
		got := [3]float64{math.Sqrt(timing), math.Sqrt(phase), math.Sqrt(frequency)}
		t.Logf("%.0f dB: timing %.2g samples (bound %.2g, bias %.1g), phase %.2g (%.2g), frequency %.2g (%.2g)",
			decibels, got[0], bounds[0], bias, got[1], bounds[1], got[2], bounds[2])
		for i, name := range []string{"timing", "phase", "frequency"} {
			// A deviation from 150 runs is off by 6 % a deviation; the floor is what
			// the arithmetic and the filter's cut-off leave.
			if floor := [3]float64{5e-5, 1e-6, 1e-10}[i]; got[i] > 1.25*bounds[i]+floor {
				t.Errorf("%.0f dB: %s is off by %.3g, the bound is %.3g", decibels, name, got[i], bounds[i])
			}
		}
		if limit := 4*bounds[0]/math.Sqrt(runs) + 2e-5; math.Abs(bias) > limit {
			t.Errorf("%.0f dB: the timing's bias is %.2g samples, allowed is %.2g", decibels, bias, limit)
		}
	}
}

// Instants that pass for a preamble are no more than Search.FalseAlarm says, in
// noise and in payloads of one device, which is the worst case.
func TestFalseAlarms(t *testing.T) {
	const p, n = 0.01, 100000
	cfg := flatTop(4, FlatTop{Edge: 0.5})
	detector := mustDetector(t, cfg, Search{FalseAlarm: p})
	noise := make([]complex64, 4*n)
	s := newScene(cfg, 1, 1, 3)
	for k := range noise {
		noise[k] = complex64(s.normal(1))
	}
	m := mustModulator(t, cfg, Drive{Peak: 7})
	payload := make([]complex64, 4*n)
	m.ModulateDigits(payload, randomDigits(newRand(2), n, 15))
	binary := make([]complex64, 4*n)
	for k, d := range randomDigits(newRand(3), n, 2) {
		m.Modulate(binary[4*k:4*k+4], []float32{2*float32(d) + 1})
	}
	for name, samples := range map[string][]complex64{"noise": noise, "digits": payload, "binary symbols": binary} {
		passed, tested := 0, 0
		for from := 0; from+len(detector.y) <= n; from += len(detector.score) {
			detector.correlate(detector.score, samples, from, n)
			for _, sc := range detector.score {
				tested += 2
				if sc.quality >= detector.threshold {
					passed++
				}
			}
		}
		t.Logf("%s: %d of %d instants pass, the bound is %.0f", name, passed, tested, p*float64(tested))
		if float64(passed) > p*float64(tested) {
			t.Errorf("%s: %d of %d instants passed, allowed are %v", name, passed, tested, p)
		}
	}
	// At the default probability there is none.
	detector = mustDetector(t, cfg, Search{MaxOffset: 1e-4})
	for name, samples := range map[string][]complex64{"noise": noise, "digits": payload, "binary symbols": binary} {
		if found := detector.Find(samples); len(found) != 0 {
			t.Errorf("%s: a preamble was found at %v", name, found[0].Start)
		}
	}
}

// At 6 dB a symbol and above no preamble of 400 is missed at the default
// false-alarm probability, whatever the fraction of a sample and the offset: so
// fewer than 1 % are (at 98 % confidence). None is found twice.
func TestNoPreambleIsMissed(t *testing.T) {
	for name, cfg := range map[string]Config{"flat": pulses["flat"], "rrc": pulses["rrc"], "rrc at 2": rootRaised(2), "rrc at 40": rootRaised(40)} {
		detector := mustDetector(t, cfg, Search{MaxOffset: 1e-4})
		rnd := newRand(3)
		misses, runs := 0, 400
		if cfg.SamplesPerSymbol == 40 {
			runs = 60
		}
		for seed := range uint64(runs) {
			s := newScene(cfg, seed, 30, 3, device{gain: 1, phase: 2, delay: Samples(rnd.Float64())})
			s.lead = rnd.IntN(2000)
			s.offset = CyclesPerSample(2e-4 * (rnd.Float64() - 0.5))
			s.noise = float64(cfg.SamplesPerSymbol) / 4
			samples, payload := s.capture(t)
			found := detector.Find(samples)
			if len(found) > 1 {
				t.Fatalf("%s: one preamble was found %d times", name, len(found))
			}
			// Half a symbol is where symbols begin to be mistaken for each other.
			if len(found) == 0 || math.Abs(float64(found[0].Payload-payload-s.devices[0].delay)) > float64(cfg.SamplesPerSymbol)/2 {
				misses++
			}
		}
		if misses > 0 {
			t.Errorf("%s: %d of %d preambles missed", name, misses, runs)
		}
	}
}

func TestSeveralFrames(t *testing.T) {
	const n = 500
	for name, cfg := range pulses {
		s := newScene(cfg, 1, n, 3, randomDevices(newRand(2), 3, 1)...)
		for i := range s.devices {
			s.devices[i].advance = s.devices[i].delay
		}
		one, payload := s.capture(t)
		var samples []complex64
		var want []Samples
		for range 7 {
			want = append(want, payload+Samples(len(samples)))
			samples = append(samples, one...)
		}
		for k := range samples {
			samples[k] += complex64(s.normal(1e-4))
		}
		found := mustDetector(t, cfg, Search{}).Find(samples)
		if len(found) != len(want) {
			t.Fatalf("%s: %d frames found, want %d", name, len(found), len(want))
		}
		theta, _ := s.common()
		for f, sync := range found {
			if d := math.Abs(float64(sync.Payload - want[f])); d > 1.5 {
				t.Errorf("%s: frame %d is off by %v samples", name, f, d)
			}
			y, _ := demodulate(t, cfg, Receive{}, samples, sync, n)
			if e := evm(y, s.want(theta)); e > -40 {
				t.Errorf("%s: frame %d has an error of %.1f dB", name, f, e)
			}
		}
	}
}

// A receiver that starts within the preamble's sequence or after it finds nothing
// and says so; one that misses only the guard finds the frame.
func TestLateReceiver(t *testing.T) {
	const n = 3000
	for name, cfg := range pulses {
		s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 1})
		samples, payload := s.capture(t)
		detector := mustDetector(t, cfg, Search{MaxOffset: 1e-5})
		guard := Samples(cfg.Pulse.guard(8)) * 8
		sequence := payload - guard - 127*8
		late := int(sequence) - 12
		sync := mustFind(t, detector, samples[late:])
		if d := math.Abs(float64(sync.Payload - payload + Samples(late))); d > 2 {
			t.Errorf("%s: without its guard the frame is found %v samples off", name, d)
		}
		for start := int(sequence) + 8; start < int(payload)+8*n/2; start += 101 {
			if s, err := detector.First(samples[start:]); !errors.Is(err, ErrNoPreamble) {
				t.Fatalf("%s: starting %v samples into the sequence gives a frame, quality %.2f", name, Samples(start)-sequence, s.Quality)
			}
		}
		for _, short := range [][]complex64{nil, samples[:1], samples[:500]} {
			if _, err := detector.First(short); !errors.Is(err, ErrNoPreamble) {
				t.Errorf("%s: a capture of %d samples gives a frame", name, len(short))
			}
		}
	}
}

// An error of the phase adds dtheta times the quadrature, as the package says.
func TestPhaseErrorIsQuadrature(t *testing.T) {
	const n, dtheta = 4000, 0.01
	cfg := pulses["flat"]
	s := newScene(cfg, 1, n, 3, device{gain: 1, phase: 1.2}, device{gain: 0.8, phase: -0.4})
	samples, _ := s.capture(t)
	theta, _ := s.common()
	sync := mustFind(t, mustDetector(t, cfg, Search{}), samples)
	sync.Theta += dtheta
	y, _ := demodulate(t, cfg, Receive{}, samples, sync, n)
	want, quadrature := s.want(theta), s.want(theta+math.Pi/2)
	predicted := 10 * math.Log10(dtheta*dtheta*meanSquare(quadrature)/meanSquare(want))
	if e := evm(y, want); math.Abs(e-predicted) > 0.1 {
		t.Errorf("error %.2f dB, predicted %.2f", e, predicted)
	}
}

// Random bytes as 8-bit samples, odd shapes of captures, and floats of any bits
// neither panic nor lead to numbers that are none.
func FuzzDetector(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add(make([]byte, 5000), uint8(1))
	rnd := newRand(1)
	noise := make([]byte, 9000)
	for k := range noise {
		noise[k] = byte(rnd.UintN(256))
	}
	f.Add(noise, uint8(2))
	cfg := flatTop(4, FlatTop{Edge: 1})
	cfg.Preamble.Length = 63
	s := newScene(cfg, 1, 100, 3, device{gain: 0.1})
	samples, _ := s.capture(f)
	frame := make([]byte, 2*len(samples))
	converter.Encode(frame, samples)
	f.Add(frame, uint8(0))
	f.Add(frame[300:], uint8(4))
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		cfg := flatTop(4, FlatTop{Edge: 1})
		if kind&1 != 0 {
			cfg = Config{SamplesPerSymbol: 3, Pulse: RootRaisedCosine{RollOff: 0.5, Span: 5}}
		}
		cfg.Preamble.Length = 63
		samples := make([]complex64, len(data)/2)
		converter.Decode(samples, data)
		if kind&2 != 0 { // the same bytes as raw floats
			samples = samples[:len(data)/8]
			for k := range samples {
				samples[k] = complex(rawFloat(data[8*k:]), rawFloat(data[8*k+4:]))
			}
		}
		detector := mustDetector(t, cfg, Search{MaxOffset: 1e-3, FalseAlarm: 1e-2})
		demod := mustDemodulator(t, cfg, Receive{Tracking: Follow, Block: 16, Clip: clipLevel})
		y, erased := make([]float32, 100), make([]bool, 100)
		for _, s := range append(detector.Find(samples), Sync{Payload: Samples(kind)*50 - 3000}) {
			s = detector.Settle(samples, s, Symbols(len(y)))
			demod.Demodulate(y, erased, Frame{Samples: samples, Sync: s})
			for k, v := range y {
				if v-v != 0 {
					t.Fatalf("symbol %d is %v", k, v)
				}
			}
		}
	})
}

func rawFloat(b []byte) float32 {
	return math.Float32frombits(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
}
