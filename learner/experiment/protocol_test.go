package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/round"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// bothLinks sends what the waveform link sends over the ring link, too, and
// compares every element that is received.
type bothLinks struct {
	*uplink.Waveform
	t                *testing.T
	ctx              *xmkckks.Context
	ring             *uplink.Ring
	slot             slot.Slot
	other            phy.Reception
	elements, frames int
}

func (b *bothLinks) Open(ctx context.Context, s slot.Slot, n int) error {
	b.slot = s
	b.other = phy.Reception{Y: b.ctx.Modulus().NewVector(n), Pattern: make([]int64, b.ring.PatternSymbols())}
	if err := b.ring.Open(ctx, s, n); err != nil {
		return err
	}
	return b.Waveform.Open(ctx, s, n)
}

func (b *bothLinks) Transmit(i int, x zq.Vector) error {
	if err := b.ring.Transmit(i, x); err != nil {
		return err
	}
	return b.Waveform.Transmit(i, x)
}

func (b *bothLinks) Receive(ctx context.Context, rx *phy.Reception) error {
	if err := b.ring.Receive(ctx, &b.other); err != nil {
		return err
	}
	if err := b.Waveform.Receive(ctx, rx); err != nil {
		return err
	}
	b.frames++
	b.elements += rx.Y.Len()
	switch {
	case !rx.CheckPassed:
		b.t.Errorf("%+v: not read: %s", b.slot, b.Report().Failure)
	case !rx.Y.Equal(b.other.Y) || rx.Alpha != b.other.Alpha:
		b.t.Errorf("%+v: the links differ", b.slot)
	}
	return nil
}

// The paper's channel, N = 10, over the waveform with emulated gains: every
// element of every transmission is the ring link's, and both give the message that
// the gains and the devices' values have.
func TestPaperChannelIsTheRingLink(t *testing.T) {
	type setting struct {
		set    string
		rounds int
	}
	settings := []setting{{"demo-1024", 2}}
	if os.Getenv("RINGWAVE_LONG") != "" {
		settings = []setting{{"paper-4096", 20}, {"paper-8192", 20}}
	}
	for _, e := range settings {
		for _, ch := range []struct{ sigma, bits string }{{"1", "2"}, {"10", "0"}} {
			t.Run(fmt.Sprintf("%s/sigma=%s/f=%s", e.set, ch.sigma, ch.bits), func(t *testing.T) {
				more := []string{"encryption.parameter_set=" + e.set, "channel.std=" + ch.sigma, "channel.gain_lattice_bits=" + ch.bits}
				if e.set == "demo-1024" {
					more = append(more, "encryption.delta_max=0.01") // of which q leaves room for ten devices
				}
				c, err := config.Load("../../hw-configs/paper-waveform-4096.toml", more)
				if err != nil {
					t.Fatal(err)
				}
				compareLinks(t, c, e.rounds)
			})
		}
	}
}

func compareLinks(t *testing.T, c config.Config, rounds int) {
	root := keystream.FromInteger(uint64(c.Experiment.Seed))
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		t.Fatal(err)
	}
	design, err := setup.NewDesign(c, ch)
	if err != nil {
		t.Fatal(err)
	}
	if err := setup.CheckWaveform(c, ch, design); err != nil {
		t.Fatal(err)
	}
	p, err := newProtocol(c, root, uplink.SeedLinkSecret(root), ch, nil, nil, design, xmkckks.NewLedger(setup.SharesPerKey(c)), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	b := &bothLinks{Waveform: p.waveform, t: t, ctx: p.ctx}
	c.Link.Kind = "ring"
	ring, err := uplink.New(uplink.Setting{Config: c, Seed: root, Secret: uplink.SeedLinkSecret(root), Channel: ch, Context: p.ctx, Design: design})
	if err != nil {
		t.Fatal(err)
	}
	b.ring = ring.(*uplink.Ring)
	p.engine.Close()
	p.engine, err = round.New(round.Config{Context: p.ctx, Participants: round.Locals(p.devices, b), Server: p.ctx.NewServer(design), Receiver: b, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for k := 1; k <= rounds; k++ {
		delta := make([][]float64, c.Devices.Count)
		for i := range delta {
			delta[i] = []float64{c.Encryption.DeltaMax * (2*rnd.Float64() - 1)}
		}
		out, err := p.Aggregate(t.Context(), k, delta)
		if err != nil {
			t.Fatal(err)
		}
		if out.Skipped {
			t.Fatalf("round %d: skipped", k)
		}
		truth := p.Truth()
		if d := out.M[0] - truth.Ideal[0]; d > 6*truth.EpsStd || d < -6*truth.EpsStd {
			t.Errorf("round %d: M is off by %v, the noise deviates by %v", k, d, truth.EpsStd)
		}
	}
	t.Logf("%d transmissions, %d elements compared", b.frames, b.elements)
	if b.frames != 4*rounds {
		t.Errorf("%d transmissions in %d rounds", b.frames, rounds)
	}
}
