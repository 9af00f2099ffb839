package phy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/channel"
	"ringwave/phy/lattice"
	"ringwave/phy/modem"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio"
	"ringwave/radio/loopback"
)

// air is a bench in memory: devices with impairments, one receiver.
type air struct {
	medium  *loopback.Medium
	gains   *channel.Channel
	h       []float64
	scaled  []float64
	devices int
}

// pathOf lets a channel.Path distort a device of the medium.
type pathOf struct{ *channel.Path }

func (p pathOf) Apply(dst, src []complex64, _ int64) { p.Path.Apply(dst, src) }

// noiseOf lets a channel.Front be the receiver's noise.
type noiseOf struct{ *channel.Front }

func (n noiseOf) Add(dst []complex64, _ int64) { n.Apply(dst) }

// scene says how an air differs from the ideal.
type scene struct {
	sigma    float64
	bits     int // of the gain lattice; -1 for continuous gains
	noiseStd float64
	impair   func(i int) channel.Impairments
}

func newAir(t testing.TB, devices int, s scene) *air {
	t.Helper()
	cfg := channel.Config{LatticeBits: max(0, s.bits), Continuous: s.bits < 0}
	for range devices {
		cfg.Devices = append(cfg.Devices, channel.Gaussian{Mu: 1, Sigma: s.sigma})
	}
	gains, err := channel.New(cfg, keystream.FromInteger(21))
	if err != nil {
		t.Fatal(err)
	}
	a := &air{gains: gains, devices: devices, h: make([]float64, devices), scaled: make([]float64, devices)}
	config := loopback.Config{Rate: 10e6}
	for i := range devices {
		var imp channel.Impairments
		if s.impair != nil {
			imp = s.impair(i)
		}
		p, err := channel.NewPath(imp, keystream.FromInteger(22).Derive("path", uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		config.Devices = append(config.Devices, loopback.Device{Gain: 1, Path: pathOf{p}})
	}
	if s.noiseStd > 0 {
		front, err := channel.NewFront(channel.Impairments{}, s.noiseStd, 1, keystream.FromInteger(23))
		if err != nil {
			t.Fatal(err)
		}
		config.Noise = noiseOf{front}
	}
	if a.medium, err = loopback.New(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.medium.Close() })
	return a
}

// set gives the devices the gains of a slot from a sample on.
func (a *air) set(_ context.Context, s slot.Slot, at radio.SampleIndex) error {
	a.gains.Scaled(a.h, s.Round, s.Attempt, int(s.Transmission))
	for i := range a.h {
		a.h[i] /= a.gains.Alpha()
		if err := a.medium.SetGain(i, at, complex(float32(a.h[i]), 0)); err != nil {
			return err
		}
	}
	return nil
}

// streams opens and starts everything.
func (a *air) streams(t testing.TB) (tx []radio.Transmitter, rx radio.Receiver) {
	t.Helper()
	ctx := t.Context()
	for i := range a.devices {
		d, err := a.medium.Transmitter(i)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.(radio.TransmitOpener).OpenTransmitter(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
		tx = append(tx, s)
	}
	d, err := a.medium.Receiver(0)
	if err != nil {
		t.Fatal(err)
	}
	if rx, err = d.(radio.ReceiveOpener).OpenReceiver(ctx); err != nil {
		t.Fatal(err)
	}
	if err := rx.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return tx, rx
}

var flatTop = modem.Config{SamplesPerSymbol: 8, Pulse: modem.FlatTop{Edge: 2, Tolerance: 1}, Preamble: modem.Preamble{Length: modem.DefaultPreamble}}
var rootRaised = modem.Config{SamplesPerSymbol: 4, Pulse: modem.RootRaisedCosine{RollOff: 0.5, Span: 16}, Preamble: modem.Preamble{Length: modem.DefaultPreamble}}

func newWaveform(t testing.TB, a *air, m *zq.Modulus, change func(*WaveformConfig)) *Waveform {
	t.Helper()
	tx, rx := a.streams(t)
	cfg := WaveformConfig{
		Modulus: m, Devices: a.devices, Base: 3, Modem: flatTop, Run: 77,
		Secret: keystream.FromInteger(24), Transmitters: tx, Receiver: rx, OnTransmission: a.set,
	}
	if change != nil {
		change(&cfg)
	}
	w, err := NewWaveform(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The last symbols of a frame are there whole, however long the pulse is.
func TestLongPulses(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	for _, span := range []modem.Symbols{4, 16, 32, 47, 64} {
		a := newAir(t, 2, scene{bits: 2, sigma: 0.2})
		w := newWaveform(t, a, m, func(c *WaveformConfig) {
			c.Modem = rootRaised
			c.Modem.Pulse = modem.RootRaisedCosine{RollOff: 0.5, Span: span}
			c.Alpha, c.Phase = 4, new(modem.Radians)
		})
		const n = 40
		rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
		sendOver(t, w, slot.Slot{Round: 1}, randomPayloads(m, 2, n, rand.New(rand.NewPCG(7, uint64(span)))), &rx)
		if r := w.Report(); !rx.CheckPassed || r.Frames != 1 {
			t.Errorf("span %d: %+v, %s", span, r, rx.Reason)
		}
	}
}

func sendOver(t testing.TB, u Uplink, s slot.Slot, x []zq.Vector, rx *Reception) {
	t.Helper()
	if err := u.Open(t.Context(), s, x[0].Len()); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if err := u.Transmit(i, x[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Receive(t.Context(), rx); err != nil {
		t.Fatal(err)
	}
}

// With the same integer gains and little noise, the waveform link gives the
// ring link's elements to the bit, scale given: delays up to a sample left as
// they are, or compensated.
func TestWaveformIsTheRingLink(t *testing.T) {
	m := newModulus(t, 0x3ffffffffed001)
	for _, base := range []int{3, 5, 7} {
		for _, devices := range []int{1, 3, 10} {
			for name, pulse := range map[string]modem.Config{"flat-top": flatTop, "root-raised-cosine": rootRaised} {
				t.Run(fmt.Sprintf("%s/B=%d/N=%d", name, base, devices), func(t *testing.T) {
					delays := make([]modem.Samples, devices)
					rnd := rand.New(rand.NewPCG(1, uint64(devices)))
					for i := range delays {
						delays[i] = modem.Samples(rnd.Float64())
					}
					a := newAir(t, devices, scene{sigma: 0.5, bits: 0, noiseStd: 1e-4, impair: func(i int) channel.Impairments {
						return channel.Impairments{DelaySamples: float64(delays[i])}
					}})
					w := newWaveform(t, a, m, func(c *WaveformConfig) {
						c.Base, c.Alpha, c.Phase, c.Modem = base, 1, new(modem.Radians), pulse
						if name != "flat-top" {
							c.Advance = delays
						}
					})
					ring, err := NewRing(RingConfig{Modulus: m, Gains: a.gains, Secret: keystream.FromInteger(2), Noise: keystream.FromInteger(3)})
					if err != nil {
						t.Fatal(err)
					}
					const n = 40
					got := Reception{Y: m.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
					want := Reception{Y: m.NewVector(n), Pattern: make([]int64, ring.PatternSymbols())}
					for k := range uint32(6 * slot.Transmissions) {
						x := randomPayloads(m, devices, n, rnd)
						s := slot.Slot{Round: k / slot.Transmissions, Transmission: slot.Transmission(k % slot.Transmissions)}
						sendOver(t, w, s, x, &got)
						sendOver(t, ring, s, x, &want)
						silent := true
						for _, h := range a.h {
							silent = silent && h == 0
						}
						if silent {
							continue // there is nothing to be received
						}
						if !got.CheckPassed {
							t.Errorf("round %d, %v, gains %v: %s", s.Round, s.Transmission, a.h, w.Report().Failure)
							continue
						}
						if !got.Y.Equal(want.Y) {
							t.Fatalf("round %d, %v: the links differ", s.Round, s.Transmission)
						}
					}
				})
			}
		}
	}
}

// Blind: continuous gains that nobody is told. What is accepted is the
// superposition with H_i = round(alpha h_i), the same in all four transmissions.
func TestWaveformBlind(t *testing.T) {
	m := newModulus(t, 0x7fff801)
	const devices, n = 3, 400
	// 40 dB a device: E[d^2] = 2/3 against the noise of a soft real symbol.
	bandwidth := modem.NoiseBandwidth(flatTop.Pulse, flatTop.SamplesPerSymbol)
	noise := math.Sqrt(2.0 / 3 / 1e4 / bandwidth)
	a := newAir(t, devices, scene{sigma: 0.3, bits: -1, noiseStd: noise, impair: func(i int) channel.Impairments {
		return channel.Impairments{DelaySamples: 0.3 * float64(i), PhaseRad: 0.1 * float64(i)}
	}})
	w := newWaveform(t, a, m, func(c *WaveformConfig) {
		c.Repeats, c.Lattice = 1, lattice.Options{MaxAlpha: 40}
	})
	rnd := rand.New(rand.NewPCG(5, 5))
	rx := Reception{Y: m.NewVector(n), Pattern: make([]int64, w.PatternSymbols())}
	rounds, good := 40, 0
	h := make([]float64, devices)
	for k := range uint32(rounds) {
		var pattern []int64
		passed := true
		for tr := range slot.Transmission(slot.Transmissions) {
			x := randomPayloads(m, devices, n, rnd)
			sendOver(t, w, slot.Slot{Round: k, Transmission: tr}, x, &rx)
			if !rx.CheckPassed {
				passed = false
				break
			}
			if tr == slot.TxKey {
				pattern = append([]int64(nil), rx.Pattern...)
			} else if fmt.Sprint(pattern) != fmt.Sprint(rx.Pattern) {
				t.Errorf("round %d: the pattern of %v is another than that of b", k, tr)
			}
			theta := math.Atan2(
				a.h[0]*math.Sin(0)+a.h[1]*math.Sin(0.1)+a.h[2]*math.Sin(0.2),
				a.h[0]+a.h[1]*math.Cos(0.1)+a.h[2]*math.Cos(0.2))
			for i := range h {
				h[i] = a.h[i] * math.Cos(0.1*float64(i)-theta)
			}
			w.Scaled(a.scaled, h)
			want := m.NewVector(n)
			for i := range x {
				m.AddScaled(want, int64(a.scaled[i]), x[i])
			}
			if !rx.Y.Equal(want) {
				t.Errorf("round %d, %v: accepted, and not the superposition with H = %v", k, tr, a.scaled)
			}
		}
		if passed {
			good++
		}
	}
	t.Logf("%d of %d rounds read", good, rounds)
	if good < rounds*8/10 {
		t.Errorf("only %d of %d rounds were read", good, rounds)
	}
}

// OnTransmission has the context that Receive was given: what it sends ends with that.
func TestOnTransmissionHasTheContext(t *testing.T) {
	type key struct{}
	m := newModulus(t, 0x7fff801)
	heard := any(nil)
	w := newWaveform(t, newAir(t, 1, scene{bits: 0}), m, func(c *WaveformConfig) {
		c.OnTransmission = func(ctx context.Context, _ slot.Slot, _ radio.SampleIndex) error {
			heard = ctx.Value(key{})
			return nil
		}
	})
	x := m.NewVector(10)
	if err := w.Open(t.Context(), slot.Slot{}, x.Len()); err != nil {
		t.Fatal(err)
	}
	if err := w.Transmit(0, x); err != nil {
		t.Fatal(err)
	}
	rx := Reception{Y: m.NewVector(x.Len()), Pattern: make([]int64, w.PatternSymbols())}
	if err := w.Receive(context.WithValue(t.Context(), key{}, 5), &rx); err != nil || heard != 5 {
		t.Errorf("heard %v, %v: it is not the context of Receive", heard, err)
	}
}
