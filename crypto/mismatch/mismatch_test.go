package mismatch

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/equalise"
	"ringwave/phy/slot"
)

// tiny is the paper's set of 109 bits in a ring of dimension 64: as exact, of no
// security, and fast enough for statistics.
func tiny(t testing.TB) xmkckks.Params {
	t.Helper()
	p, ok := xmkckks.Lookup("paper-4096")
	if !ok {
		t.Fatal("no parameter set paper-4096")
	}
	p.N = 64
	return p
}

// bench is a protocol in one process over a ring link of the given gains.
type bench struct {
	engine  *round.Engine // measures
	round   *round.Engine // refuses, on the same seeds
	devices []*xmkckks.Device
	ctx     *xmkckks.Context
	design  xmkckks.Design
	rnd     *rand.Rand
}

func newBench(t testing.TB, p xmkckks.Params, gains phy.Gains, keyRound uint32) *bench {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	n := gains.Devices()
	link := xmkckks.Link{Alpha: gains.Alpha(), DeltaMax: 1, Shares: 1 << 20}
	for range n {
		link.Mu, link.Omega = append(link.Mu, 1), append(link.Omega, 2)
	}
	root := keystream.FromInteger(11)
	b := &bench{rnd: rand.New(root.Derive("delta").Stream())}
	var err error
	b.design, err = xmkckks.NewDesign(p, p.Form, link)
	must(err)
	b.ctx, err = xmkckks.NewContext(p, p.Form, 1, b.design.Witnesses, root.Derive("public"))
	must(err)
	parts := func() (uplink phy.Uplink, devices []*xmkckks.Device) {
		uplink, err = phy.NewRing(phy.RingConfig{
			Modulus: b.ctx.Modulus(), Gains: gains, Secret: root.Derive("public link"), Noise: root.Derive("link"),
		})
		must(err)
		for i := range n {
			d, err := b.ctx.NewDevice(xmkckks.DeviceConfig{
				Index: i, Mu: 1, DeltaMax: 1, Seed: root.DeriveSecret("device", uint64(i)), Guard: xmkckks.NewLedger(1 << 30),
			})
			must(err)
			devices = append(devices, d)
		}
		return uplink, devices
	}
	uplink, devices := parts()
	b.devices = devices
	b.engine, err = round.New(round.Config{
		Context: b.ctx, Participants: round.Locals(devices, uplink), Server: b.ctx.NewServer(b.design), Receiver: uplink, Attempts: 1,
		Policy: round.Measure, KeyRound: keyRound,
	})
	must(err)
	t.Cleanup(b.engine.Close)
	uplink, devices = parts()
	b.round, err = round.New(round.Config{Context: b.ctx, Participants: round.Locals(devices, uplink), Server: b.ctx.NewServer(b.design), Receiver: uplink, Attempts: 1})
	must(err)
	t.Cleanup(b.round.Close)
	return b
}

// refusal returns the check by which a measured round would have been refused.
func refusal(out round.Outcome) (f round.Failure) {
	if len(out.Failures) > 0 {
		f = out.Failures[0]
	}
	return f
}

// fresh runs a round with new keys.
func (b *bench) fresh(t *testing.T, k uint32, delta [][]float64) round.Outcome {
	t.Helper()
	for _, d := range b.devices {
		if err := d.NewEpoch(k); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.engine.Run(t.Context(), k, delta)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// deltas draws Delta f of every device along every direction.
func (b *bench) deltas() [][]float64 {
	d := make([][]float64, len(b.devices))
	for range b.ctx.Messages {
		for i := range d {
			d[i] = append(d[i], b.rnd.Float64()-0.5)
		}
	}
	return d
}

// ideal returns sum_i g_i Delta f_i along direction p.
func ideal(g []float64, delta [][]float64, p int) float64 {
	m := 0.0
	for i := range g {
		m += g[i] * delta[i][p]
	}
	return m
}

// fixed are the same continuous gains in every round.
type fixed []float64

func (g fixed) Devices() int                             { return len(g) }
func (g fixed) Alpha() float64                           { return 1 }
func (g fixed) Continuous() bool                         { return true }
func (g fixed) Scaled(dst []float64, _, _ uint32, _ int) { copy(dst, g) }

// lattice returns a channel of Gaussian gains of mean 1 on multiples of 2^-8.
func lattice(t testing.TB, devices int, sigma float64) *channel.Channel {
	t.Helper()
	cfg := channel.Config{LatticeBits: 8}
	for range devices {
		cfg.Devices = append(cfg.Devices, channel.Gaussian{Mu: 1, Sigma: sigma})
	}
	ch, err := channel.New(cfg, keystream.FromInteger(5))
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// TestWithoutMismatch: on integer gains with keys of the round itself there is nothing
// to check, and M is that of crypto/round on the same seeds, to the bit.
func TestWithoutMismatch(t *testing.T) {
	b := newBench(t, tiny(t), lattice(t, 4, 1), 0)
	for k := range uint32(50) {
		delta := b.deltas()
		got, err := b.engine.Run(t.Context(), k+1, delta)
		if err != nil {
			t.Fatal(err)
		}
		want, err := b.round.Run(t.Context(), k+1, delta)
		if err != nil {
			t.Fatal(err)
		}
		if want.Skipped || !slices.Equal(got.M, want.M) || got.Alpha != want.Alpha || refusal(got).Check != 0 {
			t.Fatalf("round %d: %+v, want %+v", k+1, got, want)
		}
	}
}

// TestResidualOfRealGains measures eps of gains 1 + delta against the prediction, for
// residuals far below q, wrapped now and then, and uniform. R = 1500 rounds estimate
// the mean square of a Gaussian within 5 sqrt(2/R) = 18 %, of a deviation 9 %; flatter
// distributions better. b_i of an epoch is drawn once, so every round gets a new one:
// beta is a sum of n N products with it otherwise, and known to 1/sqrt(n N) only.
func TestResidualOfRealGains(t *testing.T) {
	const rounds = 1500
	p := tiny(t)
	for _, off := range []float64{1e-9, 1e-3, 0.03, 0.05, 0.3} {
		g := fixed{1 + off, 1 - off, 1 + off}
		b := newBench(t, p, g, 0)
		r := Equalised(p, g)
		var square float64
		for k := range uint32(rounds) {
			delta := b.deltas()
			out := b.fresh(t, k+1, delta)
			if f := refusal(out); f.Check != round.LinearCheck || f.Transmission != slot.TxKey {
				t.Fatalf("crypto/round would have said %v of round %d", f, k+1)
			}
			eps := out.M[0] - ideal(g, delta, 0)
			square += eps * eps / rounds
		}
		want := r.DecodedStd(p, 1, 0)
		t.Logf("gains off by %v: variance %.3g q^2 before the reduction; std of eps %.4g, predicted %.4g, q/Lambda %.3g",
			off, r.Variance(), math.Sqrt(square), want, math.Exp2(p.LogQ()-40))
		if math.Abs(math.Sqrt(square)/want-1) > 0.09 {
			t.Errorf("gains off by %v: eps has standard deviation %.4g, predicted %.4g", off, math.Sqrt(square), want)
		}
	}
}

// TestStaleKey: in the round of the keys M is that of crypto/round. In every later
// one the residual is uniform: its mean square is q^2/12/(alpha Lambda)^2 within five
// deviations, 5 sqrt(4/5/R), and it never leaves the range of a centred residue.
func TestStaleKey(t *testing.T) {
	const rounds = 3000
	p, ch := tiny(t), lattice(t, 4, 1)
	b := newBench(t, p, ch, 1)
	delta := b.deltas()
	first, err := b.engine.Run(t.Context(), 1, delta)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := b.round.Run(t.Context(), 1, delta); err != nil || first.M[0] != want.M[0] || refusal(first).Check != 0 {
		t.Errorf("in the keys' own round: %+v, want %+v (%v)", first, want, err)
	}
	before, now := make([]float64, 4), make([]float64, 4)
	ch.Scaled(before, 1, 0, 0)
	if r := Stale(p, before, before); r.Std() != 0 {
		t.Errorf("the residual in the keys' own round is %v", r)
	}
	unit := math.Exp2(p.LogQ()-float64(p.LogLambda)) / ch.Alpha()
	var square float64
	for k := uint32(2); k < 2+rounds; k++ {
		delta := b.deltas()
		out, err := b.engine.Run(t.Context(), k, delta)
		if err != nil {
			t.Fatal(err)
		}
		if f := refusal(out); f.Check != round.EqualGains || f.Transmission != slot.TxC0 {
			t.Fatalf("crypto/round would have said %v of round %d", f, k)
		}
		ch.Scaled(now, k, 0, 0)
		if std := Stale(p, before, now).DecodedStd(p, ch.Alpha(), 0); math.Abs(std/(unit/math.Sqrt(12))-1) > 1e-9 {
			t.Fatalf("round %d: the predicted deviation is %v, want %v", k, std, unit/math.Sqrt(12))
		}
		x := out.M[0] / unit
		if math.Abs(x) > 0.5 {
			t.Fatalf("round %d: M is %v q/(alpha Lambda)", k, x)
		}
		square += 12 * x * x / rounds
	}
	t.Logf("12 E[M^2] is %.4f (q/(alpha Lambda))^2", square)
	if math.Abs(square-1) > 5*math.Sqrt(0.8/rounds) {
		t.Errorf("12 E[M^2] is %.4f (q/(alpha Lambda))^2, want 1", square)
	}
}

// TestStaleKeyOfEqualGains: a channel that stands still lets keys be used again.
func TestStaleKeyOfEqualGains(t *testing.T) {
	b := newBench(t, tiny(t), lattice(t, 4, 0), 1)
	for k := range uint32(20) {
		delta := b.deltas()
		out, err := b.engine.Run(t.Context(), k+1, delta)
		if err != nil {
			t.Fatal(err)
		}
		if want := ideal([]float64{1, 1, 1, 1}, delta, 0); math.Abs(out.M[0]-want) > 1e-6 || refusal(out).Check != 0 {
			t.Errorf("round %d: M is %v, want %v (%v)", k+1, out.M[0], want, out.Failures)
		}
	}
}

// TestNewEpochHasItsOwnStaleKey: keys of another epoch belong to another secret.
func TestNewEpochHasItsOwnStaleKey(t *testing.T) {
	b := newBench(t, tiny(t), lattice(t, 4, 0), 1)
	for k := range uint32(4) {
		if k == 2 {
			for _, d := range b.devices {
				if err := d.NewEpoch(1); err != nil {
					t.Fatal(err)
				}
			}
		}
		out, err := b.engine.Run(t.Context(), k+1, [][]float64{{0}, {0}, {0}, {0}})
		if err != nil || math.Abs(out.M[0]) > 1e-6 {
			t.Errorf("round %d: %+v (%v)", k+1, out, err)
		}
	}
}

// TestPreEqualisationFails is Fig. 4 at its own parameters: (4096, 109), N = 10,
// sigma_pilot = 0.1. Decryption fails in every round from the first on, and the errors'
// size is within a factor of ten of the prediction: of R = 8 uniform errors the root
// mean square is between 0.5 and 1.5 of it.
func TestPreEqualisationFails(t *testing.T) {
	const rounds = 8
	p, ok := xmkckks.Lookup("paper-4096")
	if !ok {
		t.Fatal("no parameter set paper-4096")
	}
	for _, sigma := range []float64{1, 10} {
		for _, method := range []equalise.Method{equalise.ZF, equalise.MMSE} {
			gains, err := equalise.New(lattice(t, 10, sigma), method, 0.1, keystream.FromInteger(6))
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(t, p, gains, 0)
			g := make([]float64, 10)
			var square, predicted float64
			for k := range uint32(rounds) {
				delta := b.deltas()
				out, err := b.engine.Run(t.Context(), k+1, delta)
				if err != nil {
					t.Fatal(err)
				}
				gains.Scaled(g, k+1, 0, 0)
				eps := out.M[0] - ideal(g, delta, 0)
				if math.Abs(eps) < 1e6 || refusal(out).Check == 0 {
					t.Errorf("sigma %v, %v, round %d: eps is %v", sigma, method, k+1, eps)
				}
				std := Equalised(p, g).DecodedStd(p, 1, 0)
				square += eps * eps / rounds
				predicted += std * std / rounds
			}
			ratio := math.Sqrt(square / predicted)
			t.Logf("sigma %v, %v: eps %.3g, predicted %.3g = %.3f q/Lambda", sigma, method, math.Sqrt(square), math.Sqrt(predicted), math.Sqrt(predicted)/math.Exp2(p.LogQ()-40))
			if ratio < 0.5 || ratio > 1.5 {
				t.Errorf("sigma %v, %v: eps is %.3f of its prediction", sigma, method, ratio)
			}
		}
	}
}

// TestPerfectPilotsDecode is the control: without estimation error pre-equalised
// transmission decodes.
func TestPerfectPilotsDecode(t *testing.T) {
	gains, err := equalise.New(lattice(t, 10, 1), equalise.ZF, 0, keystream.FromInteger(6))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, tiny(t), gains, 0)
	for k := range uint32(20) {
		delta := b.deltas()
		g := make([]float64, 10)
		gains.Scaled(g, k+1, 0, 0)
		out, err := b.engine.Run(t.Context(), k+1, delta)
		if err != nil {
			t.Fatal(err)
		}
		if want := ideal(g, delta, 0); math.Abs(out.M[0]-want) > 1e-6 || refusal(out).Check != 0 {
			t.Errorf("round %d: M is %v, want %v (%v)", k+1, out.M[0], want, out.Failures)
		}
	}
}

// TestWrappedStd compares the closed form with the sum over the wrapped density's
// images, and with its limits.
func TestWrappedStd(t *testing.T) {
	for _, v := range []float64{1e-4, 1e-3, 0.01, 0.05, 0.2, 1, 100} {
		const steps = 2000
		var mass, square float64
		std := math.Sqrt(v)
		for i := range steps {
			x := (float64(i)+0.5)/steps - 0.5
			density := 0.0
			for j := -40; j <= 40; j++ {
				y := (x + float64(j)) / std
				density += math.Exp(-y * y / 2)
			}
			mass += density
			square += density * x * x
		}
		want := math.Sqrt(square / mass)
		if got := (Residual{Direct: v}).Std(); math.Abs(got/want-1) > 1e-4 {
			t.Errorf("variance %v: the wrapped deviation is %v, want %v", v, got, want)
		}
	}
	if s := (Residual{Direct: 1e-10}).Std(); s != 1e-5 {
		t.Errorf("a small residual has deviation %v, want 1e-5", s)
	}
	if s := (Residual{Products: 1e9}).Std(); math.Abs(s*s*12-1) > 1e-12 {
		t.Errorf("a large residual has the mean square %v, want 1/12", s*s)
	}
}

func TestBadInput(t *testing.T) {
	b := newBench(t, tiny(t), lattice(t, 2, 1), 0)
	if _, err := b.engine.Run(t.Context(), 1, [][]float64{{1}}); err == nil || !strings.Contains(err.Error(), "scalars of 1 devices where there are 2") {
		t.Errorf("one scalar for two devices: %v", err)
	}
	if _, err := b.engine.Run(t.Context(), 3, [][]float64{{1}, {1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.Run(t.Context(), 2, [][]float64{{1}, {1}}); err == nil {
		t.Error("round 2 after round 3")
	}
}
