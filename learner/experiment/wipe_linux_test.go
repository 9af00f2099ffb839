package experiment

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/secret/secrettest"
	"ringwave/crypto/xmkckks"
	"ringwave/learner/experiment/config"
	"ringwave/learner/experiment/setup"
	"ringwave/learner/experiment/uplink"
)

// The seeds of a run's secrets are searched for in the process's own memory: while it
// goes on each device holds its own and nobody the root; afterwards nobody holds any.
// Longer, or of more branches, than most because it is one history of a process, of which each step goes on from the last.
func TestRunLeavesNoSeeds(t *testing.T) {
	if !secrettest.Unpreempted(t) {
		return
	}
	c := config.Default()
	c.Devices.Count, c.Encryption.KeyEpochRounds = 3, 2
	random, err := keystream.FromSystem()
	if err != nil {
		t.Fatal(err)
	}
	root := *random // of gains and noise, too: public
	ch, err := setup.NewChannel(c, root)
	if err != nil {
		t.Fatal(err)
	}
	design, err := setup.NewDesign(c, ch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProtocol(c, root, uplink.SeedLinkSecret(root), ch, nil, nil, design, xmkckks.NewLedger(setup.SharesPerKey(c)), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= 5; k++ {
		if _, err := p.Aggregate(context.Background(), k, [][]float64{{0.1}, {0.2}, {0.3}}); err != nil {
			t.Fatal(err)
		}
	}

	var needles secrettest.Needles
	var held []string
	secrets := root.DeriveSecret("secrets")
	needles.Add("secrets", secrets[:])
	for i := range c.Devices.Count {
		device := secrets.DeriveSecret("device", uint64(i))
		name := fmt.Sprintf("device %d", i+1)
		needles.Add(name, device[:])
		held = append(held, name)
		for epoch := range uint64(3) {
			seed := device.DeriveSecret("key epoch", epoch)
			needles.Add(fmt.Sprintf("%s, key epoch %d", name, epoch), seed[:])
			key := seed.DeriveSecret("v")
			name := fmt.Sprintf("%s, key epoch %d, v", name, epoch)
			needles.Add(name, key[:])
			if epoch == 2 {
				held = append(held, name)
			}
			key.Wipe()
			seed.Wipe()
		}
		device.Wipe()
	}
	secrets.Wipe()
	slices.Sort(held)
	for _, x := range []struct {
		when string
		want []string
	}{{"in round 5", held}, {"after close", nil}} {
		if x.want == nil {
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
		found, err := needles.Find()
		if err != nil {
			t.Fatal(err)
		}
		if got := secrettest.Names(found); !slices.Equal(got, x.want) {
			t.Errorf("%s: found %v, expected %v", x.when, got, x.want)
		}
	}
}
