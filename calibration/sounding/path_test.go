package sounding

import (
	"math"
	"math/cmplx"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
)

// Through phy/channel's path: what is put in comes out, with its signs. Where the
// fractional-delay filter has nothing to do, to the samples' precision; otherwise to its
// -60 dB.
func TestThroughPath(t *testing.T) {
	for _, cfg := range manyConfigs() {
		s := newSounding(t, cfg)
		for _, imp := range []channel.Impairments{
			{},
			{DelaySamples: 3, PhaseRad: 0.7, CarrierOffset: 1e-4},
			{DelaySamples: 0.25, PhaseRad: -2},
			{DelaySamples: 5.5, CarrierOffset: -2e-4, IQGainDB: 0.5, IQPhaseRad: 0.03},
			{DelaySamples: 1.9, PhaseRad: 1, IQGainDB: -0.3, IQPhaseRad: -0.02, DC: 0.02 - 0.01i},
		} {
			throughPath(t, s, imp, -0.4)
		}
	}
}

func throughPath(t *testing.T, s *Sounding, imp channel.Impairments, h float64) {
	t.Helper()
	p, err := channel.NewPath(imp, keystream.FromInteger(5))
	if err != nil {
		t.Fatal(err)
	}
	p.SetGain(h)
	const start, reach = 60, 20
	w := make([]complex64, start+s.Burst()+60)
	copy(w[start:], s.Samples(0.5))
	p.Apply(w, w)
	found, err := s.Acquire([][]complex64{w}, start, Search{Delay: reach, Offset: 5e-4})
	if err != nil {
		t.Fatalf("%+v: %v", imp, err)
	}
	e, err := s.Fit(w, start, found.Delay, found.Offset)
	if err != nil {
		t.Fatal(err)
	}
	delay := imp.DelaySamples + float64(p.Latency())
	centre := start + delay + float64(s.Burst()-1)/2
	turn := cmplx.Rect(1, imp.PhaseRad+2*math.Pi*imp.CarrierOffset*centre)
	mismatch := cmplx.Rect(math.Pow(10, imp.IQGainDB/20), imp.IQPhaseRad)
	gain := complex(h/2, 0) * turn * (1 + mismatch) / 2
	// The leak turns with the carrier's offset, if there is one, and is not judged then.
	leak := complex128(imp.DC) * complex(h, 0) * turn
	iqGain, iqPhase := TransmitterIQ(e.Image)
	accuracy := 2e-5
	if imp.DelaySamples != math.Trunc(imp.DelaySamples) {
		accuracy = 1e-3
	}
	for name, d := range map[string]float64{
		"delay":           float64(found.Delay) - delay,
		"offset":          (float64(found.Offset) - imp.CarrierOffset) * float64(s.Burst()),
		"gain":            cmplx.Abs(e.Gain-gain) / cmplx.Abs(gain),
		"dc":              cmplx.Abs(e.DC - leak),
		"IQ gain, nepers": (iqGain - imp.IQGainDB) / 20 * math.Ln10,
		"IQ phase":        iqPhase - imp.IQPhaseRad,
		"unexplained":     math.Sqrt(1 - e.Explained),
	} {
		if math.Abs(d) > accuracy {
			t.Errorf("%+v, %+v: %s is off by %.3g", s.Config(), imp, name, d)
		}
	}
	if per := e.Sent(0.5); cmplx.Abs(per.Gain-2*e.Gain) > 1e-12 {
		t.Errorf("gain %v per sent amplitude, of %v", per.Gain, e.Gain)
	}
}

// A receiver's own mismatch and DC.
func TestThroughFront(t *testing.T) {
	for _, cfg := range manyConfigs() {
		s := newSounding(t, cfg)
		imp := channel.Impairments{IQGainDB: 0.4, IQPhaseRad: -0.05, DC: 0.1 + 0.05i}
		f, err := channel.NewFront(imp, 0, 0.5, keystream.FromInteger(5))
		if err != nil {
			t.Fatal(err)
		}
		w := make([]complex64, s.Burst())
		turn := complex64(cmplx.Rect(1, 0.9))
		for n, x := range s.Samples(1) {
			w[n] = x * turn
		}
		f.Apply(w)
		e, err := s.Fit(w, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		gain, phase := receiverIQ(e.Image, e.Gain)
		if math.Abs(gain-0.4) > 1e-3 || math.Abs(phase+0.05) > 1e-4 || cmplx.Abs(e.DC-complex128(imp.DC)) > 1e-5 {
			t.Errorf("%+v: %v dB, %v rad, DC %v", cfg, gain, phase, e.DC)
		}
	}
}

// receiverIQ is TransmitterIQ for a mismatch of the receiver that alone made the image
// of a burst received with the gain: there the conjugate of the received signal is
// added, b* / a of which, turned by twice the gain's phase, is Image. Bursts of unlike
// phases tell the two apart: the transmitter's image is the same in all.
func receiverIQ(image, gain complex128) (gainDB, phaseRad float64) {
	ratio := image * gain / cmplx.Conj(gain) // b over a*
	a := 1 / (1 + cmplx.Conj(ratio))
	return mismatch(2*a - 1)
}
