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

// echoes are some of a link, as the air has them and as a correction.
func echoes() (air channel.Air, corrected [modem.MaxEchoes]modem.Echo) {
	air.Echoes = []channel.Echo{{DelaySamples: 8, Gain: 0.1, PhaseRad: 2}, {DelaySamples: 13.5, Gain: 0.12, PhaseRad: -1}, {DelaySamples: 3.3, Gain: 0.05, PhaseRad: 0.4}}
	for k, e := range air.Echoes {
		corrected[k] = modem.Echo{Delay: modem.Samples(e.DelaySamples), Gain: cmplx.Rect(e.Gain, e.PhaseRad)}
	}
	return air, corrected
}

// Of corrected samples the first path alone arrives, to -60 dB, whatever else the transmitter
// undoes: before they are cut off by its end, and with nothing of what was before.
func TestCorrectionOfEchoes(t *testing.T) {
	for _, faults := range []bool{false, true} {
		air, corrected := echoes()
		imp, c, a := channel.Impairments{}, modem.Correction{}, complex128(1)
		if faults { // and echoes that are all later than delays reach
			imp, c, a = faulty()
			air.Echoes, corrected[2] = air.Echoes[:2], modem.Echo{}
		}
		c.Echoes = corrected
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(15, 4))
		want := make([]complex64, 4000)
		for n := range want {
			want[n] = complex64(complex(rnd.Float64()-0.5, rnd.Float64()-0.5))
		}
		smooth(want)
		sent := append([]complex64(nil), want...)
		c.Apply(sent, 0)
		path, err := channel.NewPathThrough(imp, air, keystream.FromInteger(1))
		if err != nil {
			t.Fatal(err)
		}
		heard := make([]complex64, len(sent))
		path.Apply(heard, sent)
		late := path.Latency()
		gain := a * cmplx.Rect(1, 2*math.Pi*imp.CarrierOffset*float64(late))
		wrong, power := 0.0, 0.0
		for n := late + 100; n < len(heard); n++ {
			x := gain * complex128(want[n-late])
			e := cmplx.Abs(complex128(heard[n]) - x)
			wrong, power = wrong+e*e, power+real(x)*real(x)+imag(x)*imag(x)
		}
		if db := 10 * math.Log10(wrong/power); !(db < -60) {
			t.Errorf("with faults %v: what is left of echoes is %.1f dB", faults, db)
		}
	}
}

// smooth takes a running mean of 5 samples, twice.
func smooth(x []complex64) {
	for range 2 {
		sum := complex64(0)
		past := append(make([]complex64, 5), x...)
		for n := range x {
			sum += past[n+5] - past[n]
			x[n] = sum / 5
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
	_, c.Echoes = echoes()
	c.Leakage, c.Image = 0, 0
	x, room := make([]complex64, 400), c.Headroom()
	rnd := rand.New(rand.NewPCG(15, 5))
	for range 200 {
		for n := range x {
			x[n] = complex64(cmplx.Rect(room, 2*math.Pi*rnd.Float64()))
		}
		c.Apply(x, 0)
		for _, v := range x {
			if cmplx.Abs(complex128(v)) > 1+1e-6 {
				t.Fatalf("with echoes a corrected sample is %v of full scale", v)
			}
		}
	}
	if one := (modem.Correction{Echoes: [modem.MaxEchoes]modem.Echo{{Delay: 8, Gain: 0.1i}}}).Headroom(); math.Abs(one-0.9) > 1e-4 {
		t.Errorf("an echo of a tenth leaves %v of full scale, want 1/(1 + 0.1 + 0.01 + ...)", one)
	}
	if h := (modem.Correction{Offset: 0.1}).Headroom(); h != 1 {
		t.Errorf("a correction of the carrier alone leaves %v of full scale", h)
	}
}

// What is no number, or far beyond any board, is refused.
func TestCorrectionRefuses(t *testing.T) {
	for _, c := range []modem.Correction{
		{Offset: 0.6}, {Offset: modem.CyclesPerSample(math.NaN())}, {Image: 0.6i}, {Image: cmplx.NaN()}, {Leakage: -0.6}, {Leakage: cmplx.Inf()},
		{Echoes: [modem.MaxEchoes]modem.Echo{{Delay: 3, Gain: 0.3}, {Delay: 9, Gain: 0.3i}}}, {Echoes: [modem.MaxEchoes]modem.Echo{{Gain: cmplx.NaN()}}},
		{Echoes: [modem.MaxEchoes]modem.Echo{{Delay: 65, Gain: 0.1}}}, {Echoes: [modem.MaxEchoes]modem.Echo{{Delay: modem.Samples(math.NaN()), Gain: 0.1}}},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if _, c, _ := faulty(); c.Validate() != nil {
		t.Error(c.Validate())
	}
}
