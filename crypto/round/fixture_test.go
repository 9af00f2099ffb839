package round

import (
	"math/rand/v2"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/xmkckks"
	"ringwave/phy"
	"ringwave/phy/channel"
	"ringwave/phy/slot"
)

// bench is a whole protocol in one process.
type bench struct {
	design  xmkckks.Design
	ctx     *xmkckks.Context
	channel *channel.Channel
	devices []*xmkckks.Device
	server  *xmkckks.Server
	engine  *Engine
	rnd     *rand.Rand
}

// setup says how a bench differs from the usual.
type setup struct {
	params   xmkckks.Params
	form     xmkckks.Form
	messages int // 0 for one
	devices  int
	sigma    float64
	f        int
	noise    [slot.Transmissions]float64
	attempts int
	channel  func(*channel.Config)
	wrap     func(phy.Uplink) phy.Uplink
	gains    func(phy.Gains) phy.Gains
	deltaMax float64
	workers  int
	guard    xmkckks.Guard
	seed     uint64
	policy   Policy
	keyRound uint32
}

func params(t testing.TB, name string) xmkckks.Params {
	t.Helper()
	p, ok := xmkckks.Lookup(name)
	if !ok {
		t.Fatalf("no parameter set %s", name)
	}
	return p
}

// withDefaults fills in what a test leaves out.
func (s setup) withDefaults() setup {
	if s.attempts == 0 {
		s.attempts = 1
	}
	if s.deltaMax == 0 {
		s.deltaMax = 1
	}
	if s.guard == nil {
		s.guard = xmkckks.NewLedger(1 << 30)
	}
	return s
}

func newBench(t testing.TB, s setup) *bench {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s = s.withDefaults()
	root := keystream.FromInteger(s.seed)
	b := &bench{rnd: rand.New(root.Derive("delta").Stream())}

	cfg := channel.Config{LatticeBits: s.f}
	for range s.devices {
		cfg.Devices = append(cfg.Devices, channel.Gaussian{Mu: 1, Sigma: s.sigma})
	}
	if s.channel != nil {
		s.channel(&cfg)
	}
	var err error
	b.channel, err = channel.New(cfg, root.Derive("channel"))
	must(err)
	mu, omega := b.channel.Moments()
	b.design, err = xmkckks.NewDesign(s.params, s.form, xmkckks.Link{
		Mu: mu, Omega: omega, Alpha: b.channel.Alpha(), NoiseStd: s.noise, DeltaMax: s.deltaMax, Shares: 1000, Messages: s.messages,
	})
	must(err)
	b.ctx, err = xmkckks.NewContext(b.design.Params, s.form, b.design.Link.Messages, b.design.Witnesses, root.Derive("public"))
	must(err)
	var gains phy.Gains = b.channel
	if s.gains != nil {
		gains = s.gains(gains)
	}
	ring, err := phy.NewRing(phy.RingConfig{
		Modulus: b.ctx.Modulus(), Gains: gains, NoiseStd: s.noise,
		Secret: root.Derive("public link"), Noise: root.Derive("link"),
	})
	must(err)
	var uplink phy.Uplink = ring
	if s.wrap != nil {
		uplink = s.wrap(uplink)
	}
	for i := range s.devices {
		d, err := b.ctx.NewDevice(xmkckks.DeviceConfig{
			Index: i, Mu: mu[i], DeltaMax: s.deltaMax, Seed: root.DeriveSecret("device", uint64(i)), Guard: s.guard,
		})
		must(err)
		b.devices = append(b.devices, d)
	}
	b.server = b.ctx.NewServer(b.design)
	b.engine, err = New(Config{
		Context: b.ctx, Participants: Locals(b.devices, uplink), Server: b.server, Receiver: uplink,
		Attempts: s.attempts, Workers: s.workers, Policy: s.policy, KeyRound: s.keyRound,
	})
	must(err)
	t.Cleanup(b.engine.Close)
	return b
}

// deltas draws Delta f of every device along every direction, in (-1/2, 1/2).
func (b *bench) deltas() [][]float64 {
	d := make([][]float64, len(b.devices))
	for range b.ctx.Messages {
		for i := range d {
			d[i] = append(d[i], b.rnd.Float64()-0.5)
		}
	}
	return d
}

// gains returns H_i of a round.
func (b *bench) gains(k uint32) []float64 {
	h := make([]float64, len(b.devices))
	b.channel.Scaled(h, k, 0, 0)
	return h
}

// ideal returns sum (H_i/alpha)(Delta_i/mu_i) along direction p, mu = 1.
func (b *bench) ideal(h []float64, delta [][]float64, p int) float64 {
	m := 0.0
	for i := range h {
		m += h[i] / b.channel.Alpha() * delta[i][p]
	}
	return m
}
