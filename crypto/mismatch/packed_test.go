package mismatch

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
)

// packedBench is newBench for P messages.
func packedBench(t testing.TB, gains phy.Gains, messages int) *bench {
	t.Helper()
	b := newBench(t, tiny(t), gains, 0)
	root := keystream.FromInteger(11)
	var err error
	link := b.design.Link
	link.Messages = messages
	if b.design, err = xmkckks.NewDesign(tiny(t), tiny(t).Form, link); err != nil {
		t.Fatal(err)
	}
	if b.ctx, err = xmkckks.NewContext(tiny(t), tiny(t).Form, messages, b.design.Witnesses, root.Derive("public")); err != nil {
		t.Fatal(err)
	}
	parts := func() (phy.Uplink, []*xmkckks.Device) {
		uplink, err := phy.NewRing(phy.RingConfig{
			Modulus: b.ctx.Modulus(), Gains: gains, Secret: root.Derive("public link"), Noise: root.Derive("link"),
		})
		if err != nil {
			t.Fatal(err)
		}
		var devices []*xmkckks.Device
		for i := range gains.Devices() {
			d, err := b.ctx.NewDevice(xmkckks.DeviceConfig{
				Index: i, Mu: 1, DeltaMax: 1, Seed: root.DeriveSecret("device", uint64(i)), Guard: xmkckks.NewLedger(1 << 30),
			})
			if err != nil {
				t.Fatal(err)
			}
			devices = append(devices, d)
		}
		return uplink, devices
	}
	uplink, devices := parts()
	b.devices = devices
	b.engine, err = round.New(round.Config{
		Context: b.ctx, Participants: round.Locals(devices, uplink), Server: b.ctx.NewServer(b.design), Receiver: uplink, Attempts: 1, Policy: round.Measure,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.engine.Close)
	uplink, devices = parts()
	b.round, err = round.New(round.Config{Context: b.ctx, Participants: round.Locals(devices, uplink), Server: b.ctx.NewServer(b.design), Receiver: uplink, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.round.Close)
	return b
}

// On integer gains every message is that of crypto/round, to the bit; and clipping is
// counted by message.
func TestPackedWithoutMismatch(t *testing.T) {
	for _, messages := range []int{1, 4} {
		b := packedBench(t, lattice(t, 3, 1), messages)
		for k := range uint32(20) {
			delta := b.deltas()
			got, err := b.engine.Run(t.Context(), k+1, delta)
			if err != nil {
				t.Fatal(err)
			}
			want, err := b.round.Run(t.Context(), k+1, delta)
			if err != nil {
				t.Fatal(err)
			}
			if want.Skipped || !slices.Equal(got.M, want.M) || refusal(got).Check != 0 {
				t.Fatalf("P = %d, round %d: %+v, want %+v", messages, k+1, got, want)
			}
		}
	}
	b := packedBench(t, lattice(t, 3, 1), 2)
	if out, err := b.engine.Run(t.Context(), 1, [][]float64{{2, 0}, {0, 5}, {-3, 0}}); err != nil || out.Clipped != 3 {
		t.Errorf("%+v, %v: three messages are beyond 1", out, err)
	}
	if _, err := b.engine.Run(t.Context(), 2, [][]float64{{0}, {0}, {0}}); err == nil || !strings.Contains(err.Error(), "along 1 directions where a ciphertext carries 2") {
		t.Error(err)
	}
	if _, err := b.engine.Run(t.Context(), 2, [][]float64{{0, 0}, {0, 0}}); err == nil || !strings.Contains(err.Error(), "scalars of 2 devices where there are 3") {
		t.Error(err)
	}
}

// The residual of real gains is as large in every message as it is in one: as in
// TestResidualOfRealGains, within 9 % of the predicted deviation for each of four.
func TestPackedResidual(t *testing.T) {
	const rounds = 1500
	for _, off := range []float64{1e-3, 0.3} {
		g := fixed{1 + off, 1 - off, 1 + off}
		b := packedBench(t, g, 4)
		square := make([]float64, 4)
		for k := range uint32(rounds) {
			delta := b.deltas()
			out := b.fresh(t, k+1, delta)
			for p, m := range out.M {
				eps := m - ideal(g, delta, p)
				square[p] += eps * eps / rounds
			}
		}
		want := Equalised(tiny(t), g).DecodedStd(tiny(t), 1, 0)
		for p, s := range square {
			t.Logf("gains off by %v, message %d: %.3f of the predicted deviation", off, p, math.Sqrt(s)/want)
			if math.Abs(math.Sqrt(s)/want-1) > 0.09 {
				t.Errorf("gains off by %v: eps of message %d has deviation %.4g, predicted %.4g", off, p, math.Sqrt(s), want)
			}
		}
	}
}
