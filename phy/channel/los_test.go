package channel

import (
	"math"
	"testing"

	"ringwave/phy/channel/p676"
)

// bench300 is ten metres at 300 GHz in a laboratory.
func bench300() LineOfSight {
	return LineOfSight{
		CarrierHz: 300e9, DistanceM: 10, TransmitGainDBi: 25, ReceiveGainDBi: 25, TransmitPowerDBm: 0,
		BandwidthHz: 1e9, NoiseFigureDB: 10, KFactor: 100, SpeedMps: 0.1,
		Air: p676.Air{PressureHPa: 1013.25, TemperatureK: 296, VapourDensity: 9.2},
	}
}

// Hand-computed figures of one link.
func TestLineOfSightBudget(t *testing.T) {
	l := bench300()
	b, err := l.Budget()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name                string
		got, want, accuracy float64
	}{
		// 32.45 + 20 log10(300,000 MHz) + 20 log10(0.01 km)
		{"free-space loss", b.FreeSpaceLossDB, 32.45 + 109.54 - 40, 0.01},
		{"gas loss, 6.07 dB/km over 10 m", b.GasLossDB, 0.0607, 1e-4},
		{"noise, -174 dBm/Hz over 1 GHz and 10 dB", b.NoiseDBm, -174 + 90 + 10, 0.03},
		{"received", b.ReceivedDBm, 50 - 101.99 - 0.06, 0.02},
		{"SNR", b.SNRdB, 50 - 102.05 + 73.98, 0.05},
		// wavelength 1 mm, 0.1 m/s: a Doppler shift of 100 Hz
		{"coherence time", b.CoherenceSeconds, 4.23e-3, 1e-5},
	} {
		if math.Abs(c.got-c.want) > c.accuracy {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	l.SpeedMps = 0
	if b, err := l.Budget(); err != nil || !math.IsInf(b.CoherenceSeconds, 1) {
		t.Errorf("a link at rest has coherence time %v, %v", b.CoherenceSeconds, err)
	}
	// A miss by half the half-power width of both beams costs 3 dB at each.
	l.MisalignmentDeg = math.Sqrt(41253/math.Pow(10, 2.5)) / 2
	if b, err := l.Budget(); err != nil || math.Abs(b.PointingLossDB-6) > 1e-9 {
		t.Errorf("half-power misalignment costs %v dB, %v", b.PointingLossDB, err)
	}
}

func TestLineOfSightFading(t *testing.T) {
	l := bench300()
	b, err := l.Budget()
	if err != nil {
		t.Fatal(err)
	}
	g, err := l.Fading(b.ReceivedDBm)
	if err != nil || g.Mu != 1 || math.Abs(g.Sigma-math.Sqrt(1.0/200)) > 1e-12 {
		t.Errorf("fading %+v, %v", g, err)
	}
	l.MisalignmentDeg = 1
	weaker, err := l.Fading(b.ReceivedDBm)
	if err != nil || !(weaker.Mu < 1) || math.Abs(weaker.Sigma/weaker.Mu-g.Sigma) > 1e-12 {
		t.Errorf("misaligned fading %+v, %v", weaker, err)
	}
	// At twice the distance the amplitude halves, but for a little more gas.
	l = bench300()
	l.DistanceM = 20
	if far, err := l.Fading(b.ReceivedDBm); err != nil || math.Abs(far.Mu-0.5*math.Pow(10, -0.0607/20)) > 1e-4 {
		t.Errorf("fading at twice the distance %+v, %v", far, err)
	}
}

func TestLineOfSightRanges(t *testing.T) {
	for name, change := range map[string]func(*LineOfSight){
		"carrier":  func(l *LineOfSight) { l.CarrierHz = 2e12 },
		"distance": func(l *LineOfSight) { l.DistanceM = 0 },
		"K":        func(l *LineOfSight) { l.KFactor = 0 },
		"NaN":      func(l *LineOfSight) { l.SpeedMps = math.NaN() },
		"air":      func(l *LineOfSight) { l.Air.TemperatureK = 0 },
	} {
		l := bench300()
		change(&l)
		if _, err := l.Budget(); err == nil {
			t.Errorf("%s out of range was taken", name)
		}
	}
}
