package modem_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/phy/modem"
)

// faulty are the faults of a transmitter, and undoing what makes up for them: of
// q' = g (q cos p + i sin p) the image is b/a with a = (1 + g e^{jp})/2 and b = 1 - a*, and
// a constant arrives as itself over a.
func faulty() (channel.Impairments, modem.Correction, complex128) {
	imp := channel.Impairments{CarrierOffset: 3e-5, IQGainDB: 0.8, IQPhaseRad: -0.05, DC: complex64(complex(0.06, -0.03))}
	a := (1 + cmplx.Rect(math.Pow(10, imp.IQGainDB/20), imp.IQPhaseRad)) / 2
	c := modem.Correction{Offset: modem.CyclesPerSample(imp.CarrierOffset), Image: (1 - cmplx.Conj(a)) / a, Leakage: complex128(imp.DC) / a}
	return imp, c, a
}

// What a transmitter with an offset, an image and a leakage makes of corrected samples are
// the samples themselves, times a gain and a phase that stay, in one block or in several.
func TestCorrection(t *testing.T) {
	imp, c, a := faulty()
	rnd := rand.New(rand.NewPCG(15, 3))
	want := make([]complex64, 5000)
	for n := range want {
		want[n] = complex64(complex(rnd.Float64()-0.5, rnd.Float64()-0.5))
	}
	sent := append([]complex64(nil), want...)
	const cut = 1700
	c.Apply(sent[:cut], 0)
	c.Apply(sent[cut:], cut)
	path, err := channel.NewPath(imp, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	heard := make([]complex64, len(sent))
	path.Apply(heard, sent)
	late := path.Latency()
	gain := a * cmplx.Rect(1, 2*math.Pi*imp.CarrierOffset*float64(late))
	for n := late; n < len(heard); n++ {
		if e := cmplx.Abs(complex128(heard[n]) - gain*complex128(want[n-late])); e > 2e-6 {
			t.Fatalf("sample %d is %v off", n, e)
		}
	}
}

// A correction of an index far on in a session goes on where the one before it ended.
func TestCorrectionGoesOn(t *testing.T) {
	c := modem.Correction{Offset: 4e-8, Since: 123}
	const at = int64(40e9)
	got := []complex64{1}
	c.Apply(got, at)
	want := cmplx.Rect(1, -2*math.Pi*math.Remainder(4e-8*float64(at-123), 1))
	if cmplx.Abs(complex128(got[0])-want) > 1e-6 {
		t.Errorf("at %d samples are turned by %v, want %v", at, got[0], want)
	}
	got = []complex64{1}
	if c.Apply(got, 123); got[0] != 1 {
		t.Errorf("where it turns by nothing, 1 becomes %v", got[0])
	}
}

// No corrected sample exceeds full scale where signals keep to the headroom, and the bound
// is met to 2 %.
func TestHeadroom(t *testing.T) {
	_, c, _ := faulty()
	c.Offset = 0
	most := 0.0
	for k := range 3600 {
		x := []complex64{complex64(cmplx.Rect(c.Headroom(), math.Pi*float64(k)/1800))}
		c.Apply(x, 0)
		most = max(most, cmplx.Abs(complex128(x[0])))
	}
	if most > 1+1e-6 || most < 0.98 {
		t.Errorf("the largest corrected sample is %v of full scale", most)
	}
	if h := (modem.Correction{Offset: 0.1}).Headroom(); h != 1 {
		t.Errorf("a correction of the carrier alone leaves %v of full scale", h)
	}
}

// What is no number, or far beyond any board, is refused.
func TestCorrectionRefuses(t *testing.T) {
	for _, c := range []modem.Correction{
		{Offset: 0.6}, {Offset: modem.CyclesPerSample(math.NaN())}, {Image: 0.6i}, {Image: cmplx.NaN()}, {Leakage: -0.6}, {Leakage: cmplx.Inf()},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if _, c, _ := faulty(); c.Validate() != nil {
		t.Error(c.Validate())
	}
}
