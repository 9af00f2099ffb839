package wire_test

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/modem"
)

func waveFrame() phy.WaveformFrame {
	f := phy.WaveformFrame{
		Group: 3, Repeat: 2, Symbols: []int8{1, -1, 0, 2, -2, 127, -127}, Gain: 0.75,
		MakeUp: phy.MakeUp{
			Drive:      modem.Drive{Peak: 2, Amplitude: 0.5, Phase: -1.25, Advance: 0.375},
			Correction: modem.Correction{Offset: 1e-6, Since: -1 << 40, Image: complex(0.01, -0.02), Leakage: complex(-0.03, 0.04), Clock: 2e-6},
		},
	}
	f.Correction.Echoes[5] = modem.Echo{Delay: 7.5, Gain: complex(0.1, 0.2)}
	return f
}

// A device's frame comes back as it was sent.
func TestWaveformFrameComesBack(t *testing.T) {
	want := waveFrame()
	b := wire.AppendWaveformFrame(nil, want)
	got, err := wire.ParseWaveformFrame(b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; it was %+v", got, err, want)
	}
	for _, n := range []int{0, 2, 3, 100, len(b) - len(want.Symbols)} {
		if _, err := wire.ParseWaveformFrame(b[:n]); err == nil {
			t.Errorf("the first %d bytes are a frame", n)
		}
	}
	want.Drive.Amplitude = modem.Amplitude(math.NaN())
	if _, err := wire.ParseWaveformFrame(wire.AppendWaveformFrame(nil, want)); err == nil {
		t.Error("an amplitude that is no number is one")
	}
}

// So does what a device makes up for, alone and whole.
func TestMakeUpComesBack(t *testing.T) {
	want := waveFrame().MakeUp
	b := wire.AppendMakeUp(nil, want)
	if got, err := wire.ParseMakeUp(b); err != nil || got != want {
		t.Errorf("%+v, %v; it was %+v", got, err, want)
	}
	for _, bad := range [][]byte{nil, b[:8], b[:len(b)-1], append(b, 0)} {
		if _, err := wire.ParseMakeUp(bad); err == nil {
			t.Errorf("%d bytes of %d are what a device makes up for", len(bad), len(b))
		}
	}
}

// So do samples, to the bit.
func TestHeardComesBack(t *testing.T) {
	due := wire.Due{Group: 65535, Repeat: 255}
	h := phy.Heard{At: 5, Of: 9, Clipped: 1, Samples: []complex64{complex(1e-30, -2), complex(float32(math.Copysign(0, -1)), 3), 7}}
	b := wire.AppendHeard(nil, due, h)
	d, part, samples, err := wire.TakeHeard(b)
	got := make([]complex64, len(samples)/8)
	if err != nil || d != due || part.At != 5 || part.Of != 9 || part.Clipped != 1 || !wire.ReadSamples(got, samples) || !bytes.Equal(wire.AppendHeard(nil, d, phy.Heard{At: 5, Of: 9, Clipped: 1, Samples: got}), b) {
		t.Errorf("%+v, %+v, %v, %v", d, part, got, err)
	}
	for _, bad := range []phy.Heard{{At: 7, Of: 9, Samples: h.Samples}, {Of: wire.MaxSamples + 1, Samples: h.Samples}, {Of: 9, Clipped: 4, Samples: h.Samples}, {Of: 9}} {
		if _, _, _, err := wire.TakeHeard(wire.AppendHeard(nil, due, bad)); err == nil {
			t.Errorf("%+v is a part of a frame", bad)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, _, samples, err := wire.TakeHeard(wire.AppendHeard(nil, due, phy.Heard{Of: 9, Samples: []complex64{1, complex(0, float32(x))}}))
		if err != nil || wire.ReadSamples(got[:2], samples) {
			t.Errorf("%v is a number, %v", x, err)
		}
	}
}

// A request names what is sent again.
func TestRequestNamesAFrame(t *testing.T) {
	want := wire.Request{Due: wire.Due{Group: 2, Repeat: 1}, Present: []bool{true, false, true}, Broadcast: []byte{1, 2}}
	got, err := wire.ParseRequest(want.Bytes(), 3)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if d, err := wire.ParseDue(want.Due.Bytes()); err != nil || d != want.Due {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := wire.ParseDue([]byte{1, 2, 3, 4}); err == nil {
		t.Error("four bytes are a frame's name")
	}
}

// FuzzWaveform has nothing from outside end the program, or come back as anything else.
func FuzzWaveform(f *testing.F) {
	f.Add(wire.AppendWaveformFrame(nil, waveFrame()))
	f.Add(wire.AppendHeard(nil, wire.Due{Group: 1}, phy.Heard{Of: 2, Samples: []complex64{1}}))
	f.Add(wire.Due{Group: 1, Repeat: 2}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if frame, err := wire.ParseWaveformFrame(b); err == nil {
			again, err := wire.ParseWaveformFrame(wire.AppendWaveformFrame(nil, frame))
			if err != nil || !reflect.DeepEqual(again, frame) {
				t.Errorf("%+v, then %+v, %v", frame, again, err)
			}
		}
		if d, h, samples, err := wire.TakeHeard(b); err == nil {
			h.Samples = make([]complex64, len(samples)/8)
			if wire.ReadSamples(h.Samples, samples) && !bytes.Equal(wire.AppendHeard(nil, d, h), b) {
				t.Error("samples come back as others")
			}
		}
		if d, err := wire.ParseDue(b); err == nil && !bytes.Equal(d.Bytes(), b) {
			t.Error("a name comes back as another")
		}
	})
}
