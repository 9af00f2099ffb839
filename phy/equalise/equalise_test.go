package equalise

import (
	"math"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
)

// constant is a channel of one gain for all devices and rounds.
type constant struct {
	devices  int
	h, alpha float64
}

func (c constant) Devices() int   { return c.devices }
func (c constant) Alpha() float64 { return c.alpha }
func (c constant) Scaled(dst []float64, _, _ uint32, _ int) {
	for i := range dst {
		dst[i] = c.h * c.alpha
	}
}

// TestPerfectPilots: without estimation error both methods make every gain 1.
func TestPerfectPilots(t *testing.T) {
	source, err := channel.New(channel.Config{
		Devices: []channel.Fading{channel.Gaussian{Mu: 1, Sigma: 10}, channel.Gaussian{Mu: -2, Sigma: 1}}, LatticeBits: 24,
	}, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []Method{ZF, MMSE} {
		c, err := New(source, method, 0, keystream.FromInteger(2))
		if err != nil {
			t.Fatal(err)
		}
		g := make([]float64, 2)
		for round := range uint32(1000) {
			if c.Scaled(g, round, 0, 3); math.Abs(g[0]-1) > 1e-15 || math.Abs(g[1]-1) > 1e-15 {
				t.Fatalf("%v, round %d: gains %v, want 1", method, round, g)
			}
		}
	}
}

// TestGainMoments: at h = 1 and small sigma, g = 1/(1+e) = 1 - e + e^2 - ... of ZF has
// mean 1 + sigma^2 and variance sigma^2 to first order, and MMSE, which is
// (1+e)/((1+e)^2 + sigma^2), a mean lower by sigma^2. R = 10^5 draws of standard
// deviation 0.02 bound the mean's error by 5 x 0.02/sqrt(R) = 3.2e-4, where
// sigma^2 = 4e-4; terms of order sigma^4 are 5e-7. The variance's relative error is
// 5 sqrt(2/R) = 2.2 %, and 8 sigma^2 = 0.3 % of the next order.
func TestGainMoments(t *testing.T) {
	const sigma, rounds, devices = 0.02, 10_000, 10
	for method, want := range map[Method]float64{ZF: sigma * sigma, MMSE: 0} {
		c, err := New(constant{devices, 1, 256}, method, sigma, keystream.FromInteger(3))
		if err != nil {
			t.Fatal(err)
		}
		g := make([]float64, devices)
		var mean, square float64
		for round := range uint32(rounds) {
			c.Scaled(g, round, 0, 0)
			for _, x := range g {
				mean += (x - 1) / (rounds * devices)
				square += (x - 1) * (x - 1) / (rounds * devices)
			}
		}
		if math.Abs(mean-want) > 3.3e-4 {
			t.Errorf("%v: mean gain 1 %+.2e, want 1 %+.2e", method, mean, want)
		}
		if variance := square - mean*mean; math.Abs(variance/(sigma*sigma)-1) > 0.025 {
			t.Errorf("%v: variance %.3e, want %.3e", method, variance, sigma*sigma)
		}
	}
}

// TestOnePilotAnAttempt: within an attempt the gains stay, and another attempt and
// another round have pilots of their own.
func TestOnePilotAnAttempt(t *testing.T) {
	c, err := New(constant{3, 1, 1}, ZF, 0.1, keystream.FromInteger(4))
	if err != nil {
		t.Fatal(err)
	}
	first, other := make([]float64, 3), make([]float64, 3)
	c.Scaled(first, 5, 0, 0)
	for transmission := range 4 {
		if c.Scaled(other, 5, 0, transmission); other[1] != first[1] {
			t.Errorf("transmission %d has the gain %v, transmission 0 %v", transmission, other[1], first[1])
		}
	}
	for _, slot := range [][2]uint32{{5, 1}, {6, 0}} {
		if c.Scaled(other, slot[0], slot[1], 0); other[1] == first[1] {
			t.Errorf("round %d, attempt %d has the pilots of round 5, attempt 0", slot[0], slot[1])
		}
	}
	if !c.Continuous() || c.Alpha() != 1 || c.Devices() != 3 {
		t.Errorf("continuous %v, alpha %v, %d devices", c.Continuous(), c.Alpha(), c.Devices())
	}
}

// TestLimits: power is limited, and without an estimate nothing is sent.
func TestLimits(t *testing.T) {
	c, err := New(constant{1, 1, 1}, ZF, 0.1, keystream.FromInteger(5))
	if err != nil {
		t.Fatal(err)
	}
	for estimate, want := range map[float64]float64{1e-9: MaxGain, -1e-9: -MaxGain, 0: 0, 2: 0.5} {
		if g := c.gain(1, estimate); g != want {
			t.Errorf("the gain at the estimate %v is %v, want %v", estimate, g, want)
		}
	}
	for _, std := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := New(constant{1, 1, 1}, ZF, std, keystream.FromInteger(1)); err == nil || !strings.Contains(err.Error(), "0 or more") {
			t.Errorf("pilots of deviation %v: %v", std, err)
		}
	}
	if _, err := New(constant{1, 1, 1}, 7, 0.1, keystream.FromInteger(1)); err == nil {
		t.Error("method 7 is accepted")
	}
}
