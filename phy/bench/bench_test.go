package bench_test

import (
	"math"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/radio"
)

const rate = 1e6

// channelOf returns a channel of devices of mean 2 and deviation 0.5.
func channelOf(t *testing.T, devices int) *channel.Channel {
	t.Helper()
	cfg := channel.Config{Continuous: true}
	for range devices {
		cfg.Devices = append(cfg.Devices, channel.Gaussian{Mu: 2, Sigma: 0.5})
	}
	ch, err := channel.New(cfg, keystream.FromInteger(5))
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func newBench(t *testing.T, cfg bench.Config) *bench.Bench {
	t.Helper()
	cfg.Rate, cfg.Seed = rate, keystream.FromInteger(9)
	b, err := bench.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// heard sends what each device has, and then nothing, and returns what is received.
func heard(t *testing.T, b *bench.Bench, sent ...[]complex64) ([]complex64, radio.Meta) {
	t.Helper()
	tx, rx, err := b.Streams()
	if err != nil {
		t.Fatal(err)
	}
	if len(tx) != len(sent) {
		t.Fatalf("%d transmitters for %d devices", len(tx), len(sent))
	}
	for i, x := range sent {
		if _, err := tx[i].Write(t.Context(), x, radio.TxMeta{BurstEnd: true}); err != nil {
			t.Fatal(err)
		}
	}
	y := make([]complex64, len(sent[0]))
	n, meta, err := rx.Read(t.Context(), y)
	if err != nil {
		t.Fatal(err)
	}
	return y[:n], meta
}

// impulse is 1 at a sample, and otherwise 0.
func impulse(at, n int) []complex64 {
	x := make([]complex64, n)
	x[at] = 1
	return x
}

// What arrives is what each device sends, by its gain, phase and delay, superposed.
func TestSuperposes(t *testing.T) {
	b := newBench(t, bench.Config{
		Devices: []channel.Impairments{{DelaySamples: 3}, {DelaySamples: 10, PhaseRad: math.Pi / 2}}, Channel: channelOf(t, 2),
	})
	if err := b.Fade(4, 1, 2, 0); err != nil {
		t.Fatal(err)
	}
	y, _ := heard(t, b, impulse(20, 64), impulse(20, 64))
	for k, x := range y {
		want := complex64(0)
		switch k {
		case 23 + b.Latency():
			want = complex(float32(b.H[0]), 0)
		case 30 + b.Latency():
			want = complex(0, float32(b.H[1]))
		}
		if d := x - want; math.Hypot(float64(real(d)), float64(imag(d))) > 1e-6 {
			t.Errorf("sample %d is %v, want %v", k, x, want)
		}
	}
}

// A device that was moved has its new delay, and keeps its phase.
func TestMove(t *testing.T) {
	b := newBench(t, bench.Config{Devices: []channel.Impairments{{DelaySamples: 3, PhaseRad: math.Pi}}})
	if err := b.Move(0, 7); err != nil {
		t.Fatal(err)
	}
	y, _ := heard(t, b, impulse(20, 64))
	if got := y[27+b.Latency()]; math.Abs(float64(real(got))+1) > 1e-6 {
		t.Errorf("the impulse is %v", got)
	}
	if err := b.Move(0, -1); err == nil || !strings.Contains(err.Error(), "device 1: impairments: the delay in samples is -1") {
		t.Errorf("a delay of -1: %v", err)
	}
}

// Gains and noise of a transmission go by its name alone, whatever was drawn before.
func TestDrawsByName(t *testing.T) {
	receive := func(before ...uint32) ([]complex64, []float64) {
		b := newBench(t, bench.Config{Devices: make([]channel.Impairments, 2), NoiseStd: 0.1, Channel: channelOf(t, 2)})
		for _, round := range before {
			if err := b.Fade(round, 0, 1, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Fade(7, 2, 3, 0); err != nil {
			t.Fatal(err)
		}
		y, _ := heard(t, b, impulse(20, 64), impulse(40, 64))
		return y, b.H
	}
	y, h := receive()
	again, g := receive(3, 1, 7)
	for k := range y {
		if y[k] != again[k] {
			t.Fatalf("sample %d is %v, and after others %v", k, y[k], again[k])
		}
	}
	if h[0] != g[0] || h[1] != g[1] || h[0] == h[1] {
		t.Errorf("gains %v, and after others %v", h, g)
	}
	for _, name := range [][3]uint32{{6, 2, 3}, {7, 1, 3}, {7, 2, 2}} {
		b := newBench(t, bench.Config{Devices: make([]channel.Impairments, 2), NoiseStd: 0.1, Channel: channelOf(t, 2)})
		if err := b.Fade(name[0], name[1], int(name[2]), 0); err != nil {
			t.Fatal(err)
		}
		if other, _ := heard(t, b, impulse(20, 64), impulse(40, 64)); other[0] == y[0] {
			t.Errorf("round, attempt and transmission %v have the noise of 7, 2 and 3", name)
		}
	}
}

// A branch's noise has the deviation asked for.
func TestNoise(t *testing.T) {
	const n, std = 20000, 0.25
	b := newBench(t, bench.Config{Devices: make([]channel.Impairments, 1), NoiseStd: std})
	y, _ := heard(t, b, make([]complex64, n))
	sum := 0.0
	for _, x := range y {
		sum += float64(real(x)*real(x)) + float64(imag(x)*imag(x))
	}
	// The mean of 40,000 squares deviates by 0.7 %.
	if got := math.Sqrt(sum / (2 * float64(len(y)))); math.Abs(got/std-1) > 0.012 {
		t.Errorf("the noise deviates by %v, want %v", got, std)
	}
}

// The receiver rounds to steps of its full scale, where it clips and says so.
func TestConverter(t *testing.T) {
	const full = 3
	b := newBench(t, bench.Config{Devices: make([]channel.Impairments, 1), Receiver: channel.Impairments{ConverterBits: 3}, FullScale: full})
	x := make([]complex64, 64)
	for k, v := range []complex64{1, 2.9, complex(0.5, -1.6), -7, 3.6} {
		x[20+k] = v
	}
	y, meta := heard(t, b, x)
	const step = full / 4.0
	for k, want := range []complex64{step, 3 * step, complex(step, -2*step), -full, 3 * step} {
		if got := y[20+k+b.Latency()]; got != want {
			t.Errorf("%v is converted to %v, want %v", x[20+k], got, want)
		}
	}
	if meta.Clipped != 2 {
		t.Errorf("%d samples are said to be clipped", meta.Clipped)
	}
}

func TestRefusals(t *testing.T) {
	for want, cfg := range map[string]bench.Config{
		"a bench of 2 devices over a channel of 3": {Devices: make([]channel.Impairments, 2), Channel: channelOf(t, 3)},
		"device 2: impairments: the phase":         {Devices: []channel.Impairments{{}, {PhaseRad: math.NaN()}}},
		"the receiver's front end: impairments":    {Devices: make([]channel.Impairments, 1), Receiver: channel.Impairments{ConverterBits: 25}},
		"the receiver's front end: a receiver":     {Devices: make([]channel.Impairments, 1), NoiseStd: -1},
		"device":                                   {},
	} {
		cfg.Rate = rate
		if b, err := bench.New(cfg); err == nil || !strings.Contains(err.Error(), want) || b != nil {
			t.Errorf("want %q, got %v, %v", want, b, err)
		}
	}
}

// A receiver tells from which amplitude on its samples may be clipped: what lies below the
// last step, and 0 without a converter.
func TestClipLevel(t *testing.T) {
	for _, c := range []struct {
		bits int
		full float64
		want radio.Amplitude
	}{{0, 3, 0}, {8, 2, 2 * (1 - 1.5/128)}, {12, 1, 1 - 1.5/2048}} {
		b, err := bench.New(bench.Config{
			Rate: 1e6, Devices: make([]channel.Impairments, 1), Receiver: channel.Impairments{ConverterBits: c.bits}, FullScale: c.full,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, rx, err := b.Streams()
		if err != nil {
			t.Fatal(err)
		}
		if got := radio.ClipLevel(rx); got != c.want {
			t.Errorf("%d bits to %v: %v, want %v", c.bits, c.full, got, c.want)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
