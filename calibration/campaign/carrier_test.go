package campaign_test

import (
	"cmp"
	"context"
	"io"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"ringwave/calibration"
	"ringwave/calibration/campaign"
	"ringwave/calibration/moments"
	"ringwave/calibration/sounder"
	"ringwave/calibration/sounding"
	"ringwave/crypto/keystream"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// faultyBench is a bench whose transmitters turn, leak and have images.
type faultyBench struct {
	offsets     []float64 // hertz
	clocks      []float64 // parts per million; nil for those of the receiver
	leakage     complex64 // of each transmitter
	receiver    complex64 // the receiver's own offset
	gain, phase float64   // of the quadrature branches
	sigma       float64   // of the gains, of mean 1
	search      float64   // cycles a sample; 0 for 2e-4
}

// calibrate returns the calibration of a bench at 10 MHz, of 100 blocks of 2 looks.
func (f faultyBench) calibrate(t testing.TB, seed uint64) calibration.File {
	t.Helper()
	const rate, blocks, looks = 10e6, 100, 2
	of := bench.Config{Rate: rate, NoiseStd: 0.01, Seed: keystream.FromInteger(seed), Receiver: channel.Impairments{DC: f.receiver}}
	for i, hz := range f.offsets {
		imp := channel.Impairments{CarrierOffset: hz / rate, PhaseRad: 0.4 + float64(i), DC: f.leakage, IQGainDB: f.gain, IQPhaseRad: f.phase}
		if f.clocks != nil {
			imp.SampleClock = 1e-6 * f.clocks[i]
		}
		of.Devices = append(of.Devices, imp)
	}
	air, err := bench.New(of)
	if err != nil {
		t.Fatal(err)
	}
	defer air.Close()
	c := campaign.Config{Soundings: sounded(t, len(f.offsets), blocks, looks), SampleRate: rate, Law: moments.Gaussian}
	s := &c.Soundings
	s.BlockEvery, s.Amplitude, s.Search = 5000, 1, sounding.Search{Delay: 20, Offset: modem.CyclesPerSample(cmp.Or(f.search, 2e-4))}
	rnd, h := rand.New(rand.NewPCG(seed, 4)), make([]float64, len(f.offsets))
	s.OnLook = func(_, look int, at radio.SampleIndex) error {
		for i := range h {
			if look == 0 {
				h[i] = 1 + f.sigma*rnd.NormFloat64()
			}
			if err := air.Medium.SetGain(i, at, complex(float32(h[i]), 0)); err != nil {
				return err
			}
		}
		return nil
	}
	if s.Transmitters, s.Receiver, err = air.Streams(); err != nil {
		t.Fatal(err)
	}
	var all []sounder.Block
	if err := campaign.Sound(context.Background(), *s, io.Discard, func(b sounder.Block) { all = append(all, b) }); err != nil {
		t.Fatal(err)
	}
	w := calibration.Want{Bench: calibration.Bench{Kind: calibration.Simulated, SampleRateHz: rate}, Transmitters: make([]calibration.Transmitter, len(h))}
	r, err := campaign.Analyse(c, all, w)
	if err != nil {
		t.Fatal(err)
	}
	return r.File
}

// Over 40 benches the intervals of carrier offsets, own and against the median device's, of
// the phases at the session's first sample, and of what transmitters leak apart from the
// receiver hold the truth in at least 0.90 of 120 each (2.5 deviations below 0.95). In
// sessions of 25 ms offsets are known to a hundredth of a hertz, although a burst tells it
// to some ten, and gains are those of benches that stand still.
func TestFaultsAreMeasured(t *testing.T) {
	b := faultyBench{offsets: []float64{0.1, 0.4, -0.3}, leakage: complex(0.02, -0.01), receiver: complex(-0.03, 0.01), gain: 0.4, phase: 0.03, sigma: 0.3}
	a := (1 + cmplx.Rect(math.Pow(10, b.gain/20), b.phase)) / 2
	leak := complex128(b.leakage) / a
	held, of := map[string]int{}, map[string]int{}
	check := func(name string, v *calibration.Value, truth float64) {
		of[name]++
		if v != nil && v.Low <= truth && truth <= v.High {
			held[name]++
		}
	}
	for seed := range uint64(40) {
		f := b.calibrate(t, seed)
		for i, d := range f.Devices {
			check("offset", &d.OffsetHz, b.offsets[i])
			if i > 0 {
				check("from the median", d.OffsetFromCommonHz, b.offsets[i]-b.offsets[0])
			}
			phase := 0.4 + float64(i) + cmplx.Phase(a)
			check("phase", &d.PhaseRad, math.Remainder(phase, 2*math.Pi))
			check("leakage I", d.LeakageI, real(leak))
			check("leakage Q", d.LeakageQ, imag(leak))
			check("sigma", &d.Sigma, b.sigma*cmplx.Abs(a))
			if w := d.OffsetHz.High - d.OffsetHz.Low; w > 0.015 {
				t.Errorf("the offset of device %d is known to %v Hz", i+1, w)
			}
		}
		if c := f.Devices[0].OffsetFromCommonHz; c.Value != 0 || c.High != 0 {
			t.Errorf("of the median device the offset from the common one is %+v", c)
		}
	}
	for name, n := range of {
		t.Logf("%s: held %d of %d", name, held[name], n)
		if float64(held[name]) < 0.90*float64(n) {
			t.Errorf("intervals of %s hold %d of %d", name, held[name], n)
		}
	}
}

// What leaks at carriers that turn several times in a burst is told from the receiver's
// offset, and of which device it is as gains fade: in at least 62 of 72 intervals (2.5
// deviations below 0.95, and some).
func TestLeakageFarFromDC(t *testing.T) {
	b := faultyBench{offsets: []float64{60_500, 60_500.4, 60_499.7}, leakage: complex(0.02, -0.01), receiver: complex(-0.03, 0.01), sigma: 0.3, search: 7e-3}
	held := 0
	for seed := range uint64(12) {
		for i, d := range b.calibrate(t, seed).Devices {
			for k, v := range []*calibration.Value{d.LeakageI, d.LeakageQ} {
				if truth := []float64{0.02, -0.01}[k]; v != nil && v.Low <= truth && truth <= v.High {
					held++
				}
			}
			if d.LeakageI != nil && d.LeakageI.High-d.LeakageI.Low > 0.01 {
				t.Errorf("what device %d leaks is known to %v", i+1, d.LeakageI.High-d.LeakageI.Low)
			}
		}
	}
	if t.Logf("held %d of 72", held); held < 62 {
		t.Errorf("intervals of what leaks hold %d of 72", held)
	}
}

// Over 15 benches the intervals of sample clocks hold them, to a part per million from pairs
// of looks 1,200 samples apart, in at least 39 of 45 (2.5 deviations below 0.95).
func TestClocksAreMeasured(t *testing.T) {
	b := faultyBench{offsets: []float64{0, 0, 0}, clocks: []float64{0.8, -0.5, 0}, sigma: 0.1}
	held := 0
	for seed := range uint64(15) {
		for i, d := range b.calibrate(t, seed).Devices {
			if v := d.ClockPPM; v != nil && v.Low <= b.clocks[i] && b.clocks[i] <= v.High {
				held++
			}
			if w := d.ClockPPM.High - d.ClockPPM.Low; w > 2 {
				t.Errorf("the clock of device %d is known to %v ppm", i+1, w)
			}
		}
	}
	t.Logf("held %d of 45", held)
	if held < 39 {
		t.Errorf("intervals of clocks hold %d of 45", held)
	}
}

// Gains that neither fade nor turn tell only the sum of what transmitters leak and the
// receiver adds, which stands in dc_i and dc_q; and none is said to be known.
func TestLeakageThatCannotBeTold(t *testing.T) {
	b := faultyBench{offsets: []float64{0, 0}, leakage: 0.02, receiver: -0.03i}
	f := b.calibrate(t, 1)
	for i, d := range f.Devices {
		if d.LeakageI != nil || d.LeakageQ != nil {
			t.Errorf("device %d: leakage %+v, %+v", i+1, d.LeakageI, d.LeakageQ)
		}
		sum := -0.03i + 0.02*(cmplx.Rect(1, 0.4)+cmplx.Rect(1, 1.4))
		if cmplx.Abs(complex(d.DCI, d.DCQ)-sum) > 1e-3 {
			t.Errorf("device %d: the sum is %v, %v, want %v", i+1, d.DCI, d.DCQ, sum)
		}
	}
}
