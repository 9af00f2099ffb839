package bench_test

import (
	"math"
	"math/cmplx"
	"slices"
	"testing"

	"ringwave/phy/bench"
	"ringwave/phy/channel"
	"ringwave/radio"
)

// faulty is a bench of two devices with all faults.
func faulty(t *testing.T) *bench.Bench {
	t.Helper()
	device := channel.Impairments{
		CarrierOffset: 1e-5, PhaseNoiseStd: 1e-3, DC: 0.01, ConverterBits: 10, SampleClock: 2e-6, ClockJitter: 0.01,
		Filter: 0.3, Amplifier: channel.Amplifier{Saturation: 2},
	}
	other := device
	other.CarrierOffset, other.SampleClock = -3e-5, -1e-6
	return newBench(t, bench.Config{
		Devices: []channel.Impairments{device, other}, NoiseStd: 0.01, Channel: channelOf(t, 2), FullScale: 8,
		Receiver: channel.Impairments{
			CarrierOffset: 1e-4, PhaseNoiseStd: 1e-4, SampleClock: 1e-6, Filter: 0.4, HighPass: 1e-4, GainControl: 1e-4, ConverterBits: 12,
			Interference: channel.Interference{BurstEvery: 300, BurstLength: 5, BurstStd: 0.1, Tone: 0.1, ToneAmplitude: 0.01},
		},
		Echoes:    channel.Air{Echoes: []channel.Echo{{DelaySamples: 5.5, Gain: 0.1}}, KFactor: 3, Doppler: 1e-4},
		PerDevice: true,
	})
}

// attempt plays the transmissions of an attempt and returns what is received of them.
func attempt(t *testing.T, b *bench.Bench, tx []radio.Transmitter, rx radio.Receiver, at *radio.SampleIndex, round, number uint32) []complex64 {
	t.Helper()
	var all []complex64
	for part := range 4 {
		if err := b.Fade(round, number, part, *at); err != nil {
			t.Fatal(err)
		}
		const n = 700
		for i := range tx {
			x := impulse(100+10*i, n)
			for k := range 300 {
				x[200+k] = complex(float32(math.Sin(float64(k*(i+1)))), 0)
			}
			if _, err := tx[i].Write(t.Context(), x, radio.TxMeta{BurstEnd: part == 3}); err != nil {
				t.Fatal(err)
			}
		}
		y := make([]complex64, n)
		for read := 0; read < n; {
			k, _, err := rx.Read(t.Context(), y[read:])
			if err != nil {
				t.Fatal(err)
			}
			read += k
		}
		all, *at = append(all, y...), *at+n
	}
	return all
}

// What an attempt meets goes by its name alone, with all faults: a bench that was resumed
// gives what one that ran on does.
func TestFaultsResume(t *testing.T) {
	play := func(names ...[2]uint32) (last []complex64, gains []float64) {
		b := faulty(t)
		tx, rx, err := b.Streams()
		if err != nil {
			t.Fatal(err)
		}
		at := radio.SampleIndex(0)
		for _, name := range names {
			last = attempt(t, b, tx, rx, &at, name[0], name[1])
		}
		return last, slices.Clone(b.H)
	}
	want, gains := play([2]uint32{7, 1})
	got, again := play([2]uint32{2, 0}, [2]uint32{7, 0}, [2]uint32{7, 1})
	if !slices.Equal(got, want) || !slices.Equal(gains, again) {
		t.Errorf("attempt 1 of round 7 depends on what came before; gains %v and %v", gains, again)
	}
	for _, name := range [][2]uint32{{7, 0}, {6, 1}} {
		if other, _ := play(name); slices.Equal(other, want) {
			t.Errorf("%v meets what 7 and 1 do", name)
		}
	}
}

// Carriers that are apart go on apart from round to round, by the nominal time of a round,
// whatever was sent before, and through the transmissions of an attempt by samples.
func TestCarriersDriftApart(t *testing.T) {
	const offset, n = 1e-5, 64
	b := newBench(t, bench.Config{Devices: []channel.Impairments{{}, {CarrierOffset: offset}}, Channel: channelOf(t, 2)})
	b.RoundSamples = 12345
	tx, rx, err := b.Streams()
	if err != nil {
		t.Fatal(err)
	}
	at := radio.SampleIndex(0)
	for _, name := range [][3]uint32{{1, 0, 0}, {1, 0, 1}, {3, 1, 0}, {3, 1, 3}, {1, 0, 0}} {
		if err := b.Fade(name[0], name[1], int(name[2]), at); err != nil {
			t.Fatal(err)
		}
		for i := range tx {
			if _, err := tx[i].Write(t.Context(), impulse(20+20*i, n), radio.TxMeta{BurstEnd: true}); err != nil {
				t.Fatal(err)
			}
		}
		y := make([]complex64, n)
		if _, _, err := rx.Read(t.Context(), y); err != nil {
			t.Fatal(err)
		}
		at += n
		place := 40 + b.Latency()
		since := float64(place)
		if name[2] > 0 {
			since += n // one transmission was sent before
		}
		turned := 2 * math.Pi * offset * (b.RoundSamples*float64(name[0]+name[1]) + since)
		got := complex128(y[place]) / complex(b.H[1], 0)
		if d := cmplx.Abs(got - cmplx.Exp(complex(0, turned))); d > 1e-5 {
			t.Errorf("%v: the phase is off by %v", name, d)
		}
		if first := complex128(y[20+b.Latency()]) / complex(b.H[0], 0); cmplx.Abs(first-1) > 1e-5 {
			t.Errorf("%v: the device without an offset has %v", name, first)
		}
	}
}

// A transmission's faults begin with its first sample, though it is told of before: blocks
// that are read across it are cut there.
func TestTransmissionBegins(t *testing.T) {
	const n, at = 4096, 1000
	b := newBench(t, bench.Config{Devices: make([]channel.Impairments, 1), Channel: channelOf(t, 1), Receiver: channel.Impairments{CarrierOffset: 1e-4}})
	b.RoundSamples = 2500 // a quarter of a turn
	for k := range uint32(2) {
		if err := b.Fade(k, 0, 0, radio.SampleIndex(at*k)); err != nil {
			t.Fatal(err)
		}
	}
	tx, rx, err := b.Streams()
	if err != nil {
		t.Fatal(err)
	}
	x := make([]complex64, n)
	for k := range x {
		x[k] = 1
	}
	if _, err := tx[0].Write(t.Context(), x, radio.TxMeta{BurstEnd: true}); err != nil {
		t.Fatal(err)
	}
	y := make([]complex64, 2*at)
	if _, _, err := rx.Read(t.Context(), y); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[int]float64{at - 1: -2 * math.Pi * 1e-4 * (at - 1), at + 20: -math.Pi/2 - 2*math.Pi*1e-4*20} {
		if got := cmplx.Phase(complex128(y[k])); math.Abs(got-want) > 1e-5 {
			t.Errorf("the phase of sample %d is %v, want %v", k, got, want)
		}
	}
}

// What is sent again meets other bursts than before.
func TestAgainMeetsOtherBursts(t *testing.T) {
	const n = 4096
	b := newBench(t, bench.Config{
		Devices: make([]channel.Impairments, 1), Channel: channelOf(t, 1),
		Receiver: channel.Impairments{Interference: channel.Interference{BurstEvery: n, BurstLength: 10, BurstStd: 1}},
	})
	tx, rx, err := b.Streams()
	if err != nil {
		t.Fatal(err)
	}
	var places []int
	for k, again := range []uint8{0, 1, 0} {
		b.Again = again
		if err := b.Fade(3, 2, 3, radio.SampleIndex(k*n)); err != nil {
			t.Fatal(err)
		}
		y := silence(t, tx[0], rx, n)
		places = append(places, slices.IndexFunc(y, func(x complex64) bool { return x != 0 }))
	}
	if places[0] == places[1] || places[0] != places[2] {
		t.Errorf("bursts begin at %v", places)
	}
}

// Gains that fade within a round are those that are said to be drawn as an attempt begins,
// and others later.
func TestGainsFade(t *testing.T) {
	const n = 4096
	b := newBench(t, bench.Config{Devices: make([]channel.Impairments, 1), Channel: channelOf(t, 1), Echoes: channel.Air{Doppler: 1e-3}})
	if err := b.Fade(5, 1, 0, 0); err != nil {
		t.Fatal(err)
	}
	x := make([]complex64, n)
	for k := range x {
		x[k] = 1
	}
	y, _ := heard(t, b, x)
	first, least, most := float64(real(y[b.Latency()])), math.Inf(1), math.Inf(-1)
	for _, v := range y[b.Latency():] {
		least, most = min(least, float64(real(v))), max(most, float64(real(v)))
	}
	drawn := b.H[0]
	if b.Draw(5, 2, 0); math.Abs(b.H[0]-drawn) < 1e-3 {
		t.Errorf("the next attempt begins with the same gain, %v", drawn)
	}
	// Seven samples are at most 0.044 of a turn's radian, times some deviations of 0.5.
	if math.Abs(first-drawn) > 0.06 || most-least < 0.3 {
		t.Errorf("the gain begins with %v and goes from %v to %v; drawn was %v", first, least, most, drawn)
	}
}

// All devices keep their places beside one whose clock is wrong, and echoes are the same
// for all, or each device's own.
func TestClocksAndEchoes(t *testing.T) {
	for _, own := range []bool{false, true} {
		b := newBench(t, bench.Config{
			Devices: []channel.Impairments{{SampleClock: 2e-6}, {DelaySamples: 100}}, PerDevice: own,
			Echoes: channel.Air{Echoes: []channel.Echo{{DelaySamples: 30, Gain: 0.5}}},
		})
		y, _ := heard(t, b, impulse(20, 256), impulse(20, 256))
		var echoes []complex128
		for i, place := range []int{20 + b.Latency(), 120 + b.Latency()} {
			if cmplx.Abs(complex128(y[place])-1) > 1e-3 {
				t.Errorf("device %d arrives with %v", i+1, y[place])
			}
			echoes = append(echoes, complex128(y[place+30]))
			if math.Abs(cmplx.Abs(echoes[i])-0.5) > 1e-3 {
				t.Errorf("device %d has the echo %v", i+1, echoes[i])
			}
		}
		if same := cmplx.Abs(echoes[0]-echoes[1]) < 1e-2; same == own {
			t.Errorf("with phases of their own %v: the echoes %v", own, echoes)
		}
	}
}

// silence returns n samples received while nothing is sent.
func silence(t *testing.T, tx radio.Transmitter, rx radio.Receiver, n int) []complex64 {
	t.Helper()
	if _, err := tx.Write(t.Context(), make([]complex64, n), radio.TxMeta{}); err != nil {
		t.Fatal(err)
	}
	y := make([]complex64, n)
	for read := 0; read < n; {
		k, _, err := rx.Read(t.Context(), y[read:])
		if err != nil {
			t.Fatal(err)
		}
		read += k
	}
	return y
}
