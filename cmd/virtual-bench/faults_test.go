package main

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/radio"
	"ringwave/radio/virtual"
)

// rate is that of the streams below.
const rate radio.Hertz = 2e6

// built returns the bench that a command line describes, of 2 transmitters.
func built(t *testing.T, faults ...string) virtual.Config {
	t.Helper()
	o := options{transmitters: 2, transmitter: kindHackRF, api: "0106", faults: faults, backlog: 1e9, seed: 1}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	b := &bench{gains: []float64{1, 1}}
	for i := range 3 {
		b.seats = append(b.seats, seat{board: i, sends: true, hears: true})
	}
	cfg, err := b.config(o, keystream.FromInteger(o.seed))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// tone returns n samples of a tone.
func tone(n int, amplitude, hz float64) []complex64 {
	x := make([]complex64, n)
	for k := range x {
		x[k] = complex64(cmplx.Rect(amplitude, 2*math.Pi*hz/float64(rate)*float64(k)))
	}
	return x
}

// part returns the amplitude of a tone in x but for its beginning.
func part(x []complex64, hz float64) float64 {
	var sum complex128
	for k, v := range x[1000:] {
		sum += complex128(v) * cmplx.Rect(1, -2*math.Pi*hz/float64(rate)*float64(k))
	}
	return cmplx.Abs(sum) / float64(len(x)-1000)
}

// TestHardware: each fault does what it says to a tone of 100 kHz, to what boards send, to
// what they hear, or to both.
func TestHardware(t *testing.T) {
	const n, hz, amplitude = 101_000, 100e3, 0.25 // whole periods
	for _, c := range []struct {
		fault string
		at    float64 // where to look
		sent  float64 // what is found there
		heard float64
	}{
		{"dc=0.02", 0, 0.02, 0.02},
		{"dc=0.02", hz, amplitude, amplitude},
		{"iq-gain-db=0.5", -hz, amplitude * (math.Pow(10, 0.5/20) - 1) / 2, amplitude * (math.Pow(10, 0.5/20) - 1) / 2},
		{"iq-phase-rad=0.1", -hz, amplitude * 0.05, amplitude * 0.05},
		{"filter-hz=100e3", hz, amplitude / math.Sqrt2, amplitude / math.Sqrt2},
		{"filter-hz=5e6,dc=0.02", 0, 0.02, 0.02}, // beyond what the rate shows
		{"phase-noise-rad=0.3", hz, amplitude * math.Exp(-0.3*0.3/2), amplitude * math.Exp(-0.3*0.3/2)},
		{"jitter=0.5", hz, amplitude * math.Exp(-math.Pow(2*math.Pi*0.05*0.5, 2)/2), amplitude * math.Exp(-math.Pow(2*math.Pi*0.05*0.5, 2)/2)},
		{"saturation=0.25,smoothness=1", hz, amplitude / math.Sqrt2, amplitude},
		{"dc-block-hz=100e3,dc=0", hz, amplitude, amplitude * 0.64},
		{"tone-hz=-50e3,tone=0.1", -50e3, 0, 0.1},
	} {
		for board, name := range map[int]string{1: "2", 2: "rx"} {
			p := built(t, fmt.Sprintf("%s:%s", name, c.fault)).Boards[board]
			for way, want := range map[string]float64{"sent": c.sent, "heard": c.heard} {
				chain := p.Transmit
				if way == "heard" {
					chain = p.Receive
				}
				x := tone(n, amplitude, hz)
				if apply := chain(rate, 1); apply != nil {
					apply(x)
				}
				room := 0.1*want + 1e-3
				if got := part(x, c.at); math.Abs(got-want) > room {
					t.Errorf("board %s, %s: %s is %.4g at %v Hz, want %.4g", name, c.fault, way, got, c.at, want)
				}
			}
		}
	}
}

// TestCoarseAndWide: a converter of few bits gives few values, and a wide line is no line.
func TestCoarseAndWide(t *testing.T) {
	cfg := built(t, "1:bits=3", "2:linewidth-hz=10e3")
	for _, chain := range []virtual.Chain{cfg.Boards[0].Transmit, cfg.Boards[0].Receive} {
		x := tone(1000, 0.8, 1e5)
		chain(rate, 1)(x)
		for k, v := range x {
			if v4 := 4 * v; real(v4) != float32(math.Round(float64(real(v4)))) || imag(v4) != float32(math.Round(float64(imag(v4)))) {
				t.Fatalf("sample %d is %v, no multiple of 1/4", k, v)
			}
		}
	}
	for _, chain := range []virtual.Chain{cfg.Boards[1].Transmit, cfg.Boards[1].Receive} {
		x := tone(101_000, 0.8, 1e5)
		chain(rate, 1)(x)
		if got := part(x, 1e5); got > 0.2 {
			t.Errorf("of a tone of 0.8 a line of %.3g is left, want less than 0.2", got)
		}
	}
}

// TestFaultsAreDrawn: what is random is of the seed, the board and the stream, and how a
// stream is cut changes nothing; boards that nothing is said of are perfect.
func TestFaultsAreDrawn(t *testing.T) {
	hear := func(p virtual.Place, stream uint64, sizes ...int) []complex64 {
		apply := p.Receive(rate, stream)
		x := tone(10_000, 0.25, 1e5)
		for first, k := 0, 0; first < len(x); k++ {
			end := min(len(x), first+sizes[k%len(sizes)])
			apply(x[first:end])
			first = end
		}
		return x
	}
	cfg := built(t, "tx:dc=0.02,linewidth-hz=100,burst-every=500,burst=20,burst-std=0.2")
	first := hear(cfg.Boards[0], 1, 10_000)
	if !slices.Equal(first, hear(built(t, "tx:dc=0.02,linewidth-hz=100,burst-every=500,burst=20,burst-std=0.2").Boards[0], 1, 1, 700, 33)) {
		t.Error("another bench of the same seed, or another cut of the stream, is another")
	}
	if slices.Equal(first, hear(cfg.Boards[0], 2, 10_000)) || slices.Equal(first, hear(cfg.Boards[1], 1, 10_000)) {
		t.Error("two streams, or two boards, have the same phase noise and bursts")
	}
	if p := cfg.Boards[2]; p.Receive(rate, 1) != nil || p.Transmit(rate, 1) != nil || !p.Reference || p.OffsetPPM != 0 {
		t.Errorf("the receiver of perfect hardware is %+v", p)
	}
}

// TestClocksOfFaults: an error of the reference is one of carrier and sampling clock, and
// takes the common 10 MHz from that board alone.
func TestClocksOfFaults(t *testing.T) {
	cfg := built(t, "rx:ppm=20,carrier-ppm=1", "1:clock-ppm=-3")
	for i, want := range []virtual.Place{{SamplePPM: -3}, {Reference: true}, {OffsetPPM: 21, SamplePPM: 20}} {
		if p := cfg.Boards[i]; p.Reference != want.Reference || p.OffsetPPM != want.OffsetPPM || p.SamplePPM != want.SamplePPM {
			t.Errorf("board %d: reference %v, %v and %v ppm, want %+v", i, p.Reference, p.OffsetPPM, p.SamplePPM, want)
		}
	}
}

// TestEchoes: what a board sends is followed by its echoes and comes later by its delay,
// all other ways being delayed alike.
func TestEchoes(t *testing.T) {
	cfg := built(t, "1:echo=8/-20/0,echo=3/-6.0206,delay=5")
	for _, l := range cfg.Links {
		x := make([]complex64, 100)
		x[0] = 1
		out := make([]complex64, len(x))
		l.Path.Apply(out, x, 0)
		want := map[int]float64{7: 1}
		if l.From == 0 {
			want = map[int]float64{12: 1, 20: 0.1, 15: 0.5}
		}
		for k, v := range out {
			if math.Abs(cmplx.Abs(complex128(v))-want[k]) > 1e-3 {
				t.Errorf("from board %d to %d: sample %d is %v, want a size of %v", l.From, l.To, k, v, want[k])
			}
		}
	}
	for _, l := range built(t, "all:dc=0.1").Links {
		if l.Path != nil {
			t.Errorf("the way from board %d has a path, without echo or delay", l.From)
		}
	}
}

// A trigger wire that is not there leads to no board, and what is half given is refused.
func TestWiresAndLosses(t *testing.T) {
	to := func(faults ...string) (count [3]int) {
		for _, w := range built(t, faults...).Triggers {
			count[w.To]++
		}
		return count
	}
	if got := to(); got != [3]int{2, 2, 2} {
		t.Errorf("wires to the boards: %v", got)
	}
	if got := to("2:no-trigger=1"); got != [3]int{2, 0, 2} {
		t.Errorf("wires to the boards: %v", got)
	}
	for _, fault := range []string{"rx:lose=5", "rx:lose-every=5", "rx:lose-every=5,lose=6", "rx:no-trigger=0.5", "rx:stays=2"} {
		o := options{transmitters: 2, api: "0106", faults: []string{fault}, backlog: 1e9}
		if o.check() == nil {
			t.Errorf("%s is taken", fault)
		}
	}
}

// Where the hardware of one transmitter bends what it sends, those of all delay alike.
func TestTransmittersDelayAlike(t *testing.T) {
	at := func(p virtual.Place) int {
		x := make([]complex64, 100)
		x[10] = 1
		if apply := p.Transmit(rate, 1); apply != nil {
			apply(x)
		}
		return slices.IndexFunc(x, func(v complex64) bool { return cmplx.Abs(complex128(v)) > 0.5 })
	}
	if cfg := built(t); at(cfg.Boards[0]) != 10 {
		t.Errorf("a board of no fault delays by %d samples", at(cfg.Boards[0])-10)
	}
	cfg := built(t, "1:iq-gain-db=1")
	if a, b := at(cfg.Boards[0]), at(cfg.Boards[1]); a != b {
		t.Errorf("the transmitters delay by %d and %d samples", a-10, b-10)
	}
}
