package phy

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

func newModulus(t testing.TB, primes ...uint64) *zq.Modulus {
	t.Helper()
	m, err := zq.NewModulus(primes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newRing(t testing.TB, m *zq.Modulus, ch channel.Config, noise [slot.Transmissions]float64) (*Ring, *channel.Channel) {
	t.Helper()
	c, err := channel.New(ch, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRing(RingConfig{Modulus: m, Gains: c, NoiseStd: noise, Secret: keystream.FromInteger(2), Noise: keystream.FromInteger(3)})
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

func randomPayloads(m *zq.Modulus, devices, n int, rnd *rand.Rand) []zq.Vector {
	x := make([]zq.Vector, devices)
	for i := range x {
		x[i] = m.NewVector(n)
		for j, p := range m.Primes() {
			for k := range x[i][j] {
				x[i][j][k] = rnd.Uint64N(p)
			}
		}
	}
	return x
}

func send(t testing.TB, r *Ring, s slot.Slot, x []zq.Vector, rx *Reception) {
	t.Helper()
	if err := r.Open(t.Context(), s, x[0].Len()); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if err := r.Transmit(i, x[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Receive(t.Context(), rx); err != nil {
		t.Fatal(err)
	}
}

var gaussian3 = []channel.Fading{channel.Gaussian{Mu: 1, Sigma: 1}, channel.Gaussian{Mu: 1, Sigma: 10}, channel.Gaussian{Mu: -2, Sigma: 1}}

func TestRingIsTheIntegerSuperposition(t *testing.T) {
	m := newModulus(t, 0x3ffffffffd6001, 0x7ffffffffb4001)
	r, c := newRing(t, m, channel.Config{Devices: gaussian3, LatticeBits: 8}, [slot.Transmissions]float64{})
	rnd := rand.New(rand.NewPCG(1, 1))
	const n = 30
	rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, r.PatternSymbols())}
	h := make([]float64, 3)
	for round := range uint32(50) {
		x := randomPayloads(m, 3, n, rnd)
		s := slot.Slot{Round: round, Transmission: slot.Transmission(round % 4)}
		send(t, r, s, x, &rx)
		if !rx.CheckPassed || rx.Alpha != 256 {
			t.Fatalf("round %d: check %v, alpha %v", round, rx.CheckPassed, rx.Alpha)
		}
		c.Scaled(h, round, 0, int(s.Transmission))
		for k := range n {
			want := new(big.Int)
			for i := range x {
				want.Add(want, new(big.Int).Mul(big.NewInt(int64(h[i])), m.Centred(x[i], k).Big()))
			}
			want.Sub(want, m.Centred(rx.Y, k).Big())
			if want.Mod(want, m.Big()).Sign() != 0 {
				t.Fatalf("round %d: coefficient %d is no superposition", round, k)
			}
		}
	}
}

func TestRingNoisePassesItsCheck(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	noise := [slot.Transmissions]float64{3, 3, 3, 3}
	r, _ := newRing(t, m, channel.Config{Devices: gaussian3, LatticeBits: 4}, noise)
	rnd := rand.New(rand.NewPCG(1, 1))
	rx := Reception{Y: m.NewVector(100), Pattern: make([]int64, r.PatternSymbols())}
	for round := range uint32(500) {
		send(t, r, slot.Slot{Round: round}, randomPayloads(m, 3, 100, rnd), &rx)
		if !rx.CheckPassed {
			t.Fatalf("round %d: ring noise alone failed the check", round)
		}
	}
}

func TestContinuousGainsFailTheLinearCheck(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	r, _ := newRing(t, m, channel.Config{Devices: gaussian3, LatticeBits: 4, Continuous: true}, [slot.Transmissions]float64{})
	rnd := rand.New(rand.NewPCG(1, 1))
	rx := Reception{Y: m.NewVector(20), Pattern: make([]int64, r.PatternSymbols())}
	for round := range uint32(1000) {
		send(t, r, slot.Slot{Round: round}, randomPayloads(m, 3, 20, rnd), &rx)
		if rx.CheckPassed {
			t.Fatalf("round %d: continuous gains passed the linear check", round)
		}
	}
}

// TestContinuousGainsAreExact compares the received payload with the rounded real
// superposition computed with large integers, for every size of modulus.
func TestContinuousGainsAreExact(t *testing.T) {
	for _, primes := range [][]uint64{
		{0x7fff801}, {0x3ffffffffd6001, 0x7ffffffffb4001},
		{0x3fffffffef8001, 0x3fffffffeb8001, 0x7ffffffffb4001, 0x7fffffffeac001},
	} {
		m := newModulus(t, primes...)
		r, ch := newRing(t, m, channel.Config{Devices: gaussian3, LatticeBits: 4, Continuous: true}, [slot.Transmissions]float64{})
		rnd := rand.New(rand.NewPCG(1, 1))
		rx := Reception{Y: m.NewVector(50), Pattern: make([]int64, r.PatternSymbols())}
		want, gains := m.NewVector(1), make([]float64, 3)
		for round := range uint32(20) {
			x := randomPayloads(m, 3, 50, rnd)
			send(t, r, slot.Slot{Round: round}, x, &rx)
			ch.Scaled(gains, round, 0, 0)
			for k := range 50 {
				sum := big.NewInt(1 << 37)
				for i, g := range gains {
					gain := big.NewInt(int64(math.Round(math.Ldexp(g, 38))))
					sum.Add(sum, gain.Mul(gain, m.Centred(x[i], k).Big()))
				}
				m.SetBig(want, 0, sum.Rsh(sum, 38))
				if got, want := m.Centred(rx.Y, k), m.Centred(want, 0); got != want {
					t.Fatalf("%d primes, round %d, coefficient %d: %v, want %v", len(primes), round, k, got.Big(), want.Big())
				}
			}
		}
	}
}

// hugeGains are continuous gains that no number of 38 fraction bits holds.
type hugeGains struct{ ch *channel.Channel }

func (g hugeGains) Devices() int     { return g.ch.Devices() }
func (g hugeGains) Alpha() float64   { return 1 }
func (g hugeGains) Continuous() bool { return true }
func (g hugeGains) Scaled(dst []float64, _, _ uint32, _ int) {
	for i := range dst {
		dst[i] = 1 << 25
	}
}

func TestHugeContinuousGainsAreRefused(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	r, ch := newRing(t, m, channel.Config{Devices: gaussian3}, [slot.Transmissions]float64{})
	r.air.gains = hugeGains{ch}
	rx := Reception{Y: m.NewVector(1), Pattern: make([]int64, r.PatternSymbols())}
	if err := r.Open(t.Context(), slot.Slot{}, 1); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := r.Transmit(i, m.NewVector(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Receive(t.Context(), &rx); err == nil || !strings.Contains(err.Error(), "2^25") {
		t.Errorf("gains of 2^25: %v", err)
	}
}

func TestMissingDevice(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	r, _ := newRing(t, m, channel.Config{Devices: gaussian3}, [slot.Transmissions]float64{})
	rx := Reception{Y: m.NewVector(5), Pattern: make([]int64, r.PatternSymbols())}
	if err := r.Open(t.Context(), slot.Slot{}, 5); err != nil {
		t.Fatal(err)
	}
	if err := r.Transmit(0, m.NewVector(5)); err != nil {
		t.Fatal(err)
	}
	if err := r.Receive(t.Context(), &rx); err == nil {
		t.Error("a round without device 2 was received")
	}
	if err := r.Transmit(3, m.NewVector(5)); err == nil {
		t.Error("a fourth device transmitted")
	}
}

func TestRingAllocatesNothing(t *testing.T) {
	m := newModulus(t, 0x3ffffffffd6001, 0x7ffffffffb4001)
	r, _ := newRing(t, m, channel.Config{Devices: gaussian3, LatticeBits: 8}, [slot.Transmissions]float64{1, 1, 1, 1})
	x := randomPayloads(m, 3, 64, rand.New(rand.NewPCG(1, 1)))
	rx := Reception{Y: m.NewVector(64), Pattern: make([]int64, r.PatternSymbols())}
	s := slot.Slot{}
	send(t, r, s, x, &rx)
	if n := testing.AllocsPerRun(50, func() {
		s.Round++
		send(t, r, s, x, &rx)
	}); n != 0 {
		t.Errorf("%v allocations a transmission", n)
	}
}
