package xmkckks

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/slot"
)

// refused checks that err is the wanted refusal and that its text says why.
func refused(t *testing.T, err, want error, why string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, expected a refusal: %v", err, want)
	}
	if !strings.Contains(err.Error(), why) {
		t.Errorf("the refusal %q does not say %q", err, why)
	}
}

func allowed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
}

func share(device, epoch, round, attempt uint32, digest byte) ShareRecord {
	return ShareRecord{Device: device, Epoch: epoch, Round: round, Attempt: attempt, Digest: Digest{digest}}
}

// guards are the two that must behave alike.
func guards(t *testing.T, limit int) map[string]Guard {
	t.Helper()
	j := openJournal(t, t.TempDir()+"/journal", JournalConfig{Limit: limit})
	return map[string]Guard{"ledger": NewLedger(limit), "journal": j}
}

// A device gives one share a round, whatever the attempt, the key epoch and the
// c~1, and none for a round before the last or for a c~1 of another round.
func TestGuardRefusesSecondShare(t *testing.T) {
	for name, g := range guards(t, 100) {
		t.Run(name, func(t *testing.T) {
			allowed(t, g.Answer(share(0, 1, 5, 1, 1)))
			refused(t, g.Answer(share(0, 1, 5, 1, 1)), ErrAnswered, "already answered round 5 (key epoch 1, attempt 1, c1 01000000)")
			refused(t, g.Answer(share(0, 1, 5, 1, 2)), ErrAnswered, "asked again (key epoch 1, attempt 1, c1 02000000)")
			// The server that calls the attempt void, and asks for the next.
			refused(t, g.Answer(share(0, 1, 5, 2, 3)), ErrAnswered, "asked again (key epoch 1, attempt 2")
			refused(t, g.Answer(share(0, 1, 5, 0, 3)), ErrAnswered, "asked again (key epoch 1, attempt 0")
			// The one that calls a device lost, and begins a key epoch.
			refused(t, g.Answer(share(0, 2, 5, 0, 3)), ErrAnswered, "asked again (key epoch 2, attempt 0")
			refused(t, g.Answer(share(0, 1, 4, 9, 4)), ErrAnswered, "already answered round 5, and is asked for round 4")
			refused(t, g.Answer(share(0, 2, 4, 0, 4)), ErrAnswered, "already answered round 5, and is asked for round 4")
			refused(t, g.Answer(share(0, 1, 6, 0, 1)), ErrAnswered, "round 6 brings it again")
			refused(t, g.Answer(share(0, 0, 6, 0, 5)), ErrAnswered, "left key epoch 0")
			// None of these was recorded.
			allowed(t, g.Answer(share(0, 1, 6, 2, 2)))
			// Another device answers for itself.
			allowed(t, g.Answer(share(1, 1, 5, 1, 1)))
			// A new key answers what the old one did, in a new round.
			allowed(t, g.Answer(share(0, 2, 7, 0, 1)))
			allowed(t, g.Answer(share(0, 2, 8, 0, 2)))
			refused(t, g.Answer(share(0, 1, 9, 0, 9)), ErrAnswered, "left key epoch 1")
		})
	}
}

func TestGuardCountsShares(t *testing.T) {
	const limit = 3
	for name, g := range guards(t, limit) {
		t.Run(name, func(t *testing.T) {
			answered := func(device, want int) {
				t.Helper()
				if got := g.(interface{ Answered(int) int }).Answered(device); got != want {
					t.Fatalf("device %d has given %d shares, expected %d", device+1, got, want)
				}
			}
			for k := range uint32(limit) {
				answered(0, int(k))
				allowed(t, g.Answer(share(0, 0, k, 0, byte(k))))
				// A refusal is not counted.
				if g.Answer(share(0, 0, k, 0, 100)) == nil {
					t.Fatal("a second share was given")
				}
			}
			answered(0, limit)
			answered(1, 0)
			refused(t, g.Answer(share(0, 0, limit, 0, limit)), ErrExhausted, "device 1, 3 shares")
			allowed(t, g.Answer(share(1, 0, limit, 0, limit)))
			// A new key starts counting again.
			allowed(t, g.Answer(share(0, 1, limit, 0, 0)))
			answered(0, 1)
		})
	}
}

// An order is what a device refuses without asking its guard.
// Longer than 60 lines because it is one history, of which each step goes on from the last.
func TestDeviceKeepsOrder(t *testing.T) {
	for _, form := range forms() {
		t.Run(form.String(), func(t *testing.T) {
			c := testContext(t, smallSet(t, 16), form, 1)
			d := testDevice(t, c, 0, openGuard{})
			key, c1 := c.NewAggregatedKey(), c.NewAggregatedC1()
			c.SetKey(key, d.PublicKey())
			c.SetC1(c1, d.PublicKey())
			encrypt := func() error { _, err := d.Encrypt(key, []float64{0.5}); return err }
			share := func() error {
				v, err := d.Share(c1)
				if (v == nil) != (err != nil) {
					t.Fatalf("a share %v beside the error %v", v, err)
				}
				return err
			}

			refused(t, encrypt(), ErrOrder, "without fresh randomness")
			refused(t, share(), ErrOrder, "before it has encrypted")
			allowed(t, d.Prepare(3, 1))
			refused(t, share(), ErrOrder, "before it has encrypted")
			allowed(t, encrypt())
			refused(t, encrypt(), ErrOrder, "without fresh randomness")
			refused(t, d.Prepare(3, 1), ErrOrder, "round 3, attempt 1")
			refused(t, d.Prepare(3, 0), ErrOrder, "round 3, attempt 0")
			refused(t, d.Prepare(2, 9), ErrOrder, "round 2, attempt 9")
			// None of the refusals has undone the encryption.
			allowed(t, share())
			refused(t, share(), ErrOrder, "or twice")
			refused(t, encrypt(), ErrOrder, "without fresh randomness")
			// The share was given: no attempt follows it.
			refused(t, d.Prepare(3, 1), ErrOrder, "has given its decryption share of round 3, and is asked to encrypt for round 3")
			refused(t, d.Prepare(3, 2), ErrOrder, "has given its decryption share of round 3")
			refused(t, d.Prepare(2, 0), ErrOrder, "asked to encrypt for round 2")

			// A round that is given up leaves nothing behind.
			allowed(t, d.Prepare(4, 0))
			allowed(t, encrypt())
			allowed(t, d.Prepare(4, 1))
			refused(t, share(), ErrOrder, "before it has encrypted")

			// A new key repeats what was given up, and nothing that was answered.
			allowed(t, d.NewEpoch(1))
			refused(t, d.NewEpoch(1), ErrOrder, "asked for epoch 1")
			refused(t, d.NewEpoch(0), ErrOrder, "asked for epoch 0")
			refused(t, encrypt(), ErrOrder, "without fresh randomness")
			refused(t, d.Prepare(3, 0), ErrOrder, "has given its decryption share of round 3")
			allowed(t, d.Prepare(4, 0))
			allowed(t, encrypt())
			refused(t, encrypt(), ErrOrder, "without fresh randomness")
			allowed(t, share())
			refused(t, encrypt(), ErrOrder, "without fresh randomness")

			// A closed device refuses everything.
			d.Close()
			refused(t, d.NewEpoch(2), ErrOrder, "asked for epoch 2")
			refused(t, d.Prepare(5, 0), ErrOrder, "closed")
			refused(t, encrypt(), ErrOrder, "without fresh randomness")
			refused(t, share(), ErrOrder, "before it has encrypted")
		})
	}
}

// b_i is one value for a whole key epoch, whatever is encrypted; what is drawn
// for an encryption is another in every attempt, round, epoch and device.
func TestKeyIsFixedAndRandomnessFresh(t *testing.T) {
	for _, form := range forms() {
		c := testContext(t, smallSet(t, 64), form, 1)
		seenKey, seenC1, seenS := map[Digest]string{}, map[Digest]string{}, map[string]string{}
		hash := c.newDigester()
		fresh := func(seen map[Digest]string, d Digest, what string) {
			t.Helper()
			if other, ok := seen[d]; ok {
				t.Errorf("%v: %s is %s again", form, what, other)
			}
			seen[d] = what
		}
		for i := range 2 {
			d := testDevice(t, c, i, openGuard{})
			for epoch := range uint32(2) {
				if epoch > 0 {
					allowed(t, d.NewEpoch(epoch))
				}
				if d.Epoch() != epoch {
					t.Errorf("the epoch is %d, expected %d", d.Epoch(), epoch)
				}
				name := fmt.Sprintf("device %d, epoch %d", i+1, epoch)
				key := hash.vector(d.PublicKey())
				fresh(seenKey, key, "b of "+name)
				if other, ok := seenS[fmt.Sprint(d.s)]; ok {
					t.Errorf("%v: s of %s is s of %s again", form, name, other)
				}
				seenS[fmt.Sprint(d.s)] = name
				for round := range uint32(2) {
					for attempt := range uint32(2) {
						allowed(t, d.Prepare(round, attempt))
						_, c1 := d.Ciphertext()
						fresh(seenC1, hash.vector(c1), fmt.Sprintf("c1 of %s, round %d, attempt %d", name, round, attempt))
						if hash.vector(d.PublicKey()) != key {
							t.Errorf("%v: b of %s has changed", form, name)
						}
					}
				}
			}
		}
	}
}

// The guard knows a broadcast by its coefficients: the same c~1 under the name
// of a new round is refused, one that differs in one residue is another.
func TestDeviceRefusesSameC1UnderNewLabel(t *testing.T) {
	for _, form := range forms() {
		t.Run(form.String(), func(t *testing.T) {
			c := testContext(t, smallSet(t, 16), form, 1)
			d := testDevice(t, c, 0, NewLedger(100))
			key, c1 := c.NewAggregatedKey(), c.NewAggregatedC1()
			c.SetKey(key, d.PublicKey())
			received := c.mod.NewVector(16)
			received.Copy(d.PublicKey())
			c.SetC1(c1, received)
			encrypt := func(round uint32) {
				t.Helper()
				allowed(t, d.Prepare(round, 0))
				_, err := d.Encrypt(key, []float64{0.5})
				allowed(t, err)
			}
			encrypt(0)
			_, err := d.Share(c1)
			allowed(t, err)

			encrypt(1)
			again := c.NewAggregatedC1()
			c.SetC1(again, received)
			v, err := d.Share(again)
			refused(t, err, ErrAnswered, "round 1 brings it again")
			if v != nil {
				t.Error("a refused share was given all the same")
			}
			c.mod.AddInt(received, 15, 1)
			c.SetC1(c1, received)
			_, err = d.Share(c1)
			allowed(t, err)
		})
	}
}

func TestDigestDependsOnEveryResidue(t *testing.T) {
	c := testContext(t, smallSet(t, 1024), Whole, 0)
	v, a := c.mod.NewVector(1024), c.NewAggregatedC1()
	c.SetC1(a, v)
	seen := map[Digest]string{a.digest: "zero"}
	for j := range v {
		for k := range v[j] {
			v[j][k] = 1
			c.SetC1(a, v)
			v[j][k] = 0
			name := fmt.Sprintf("1 at %d modulo prime %d", k, j)
			if other, ok := seen[a.digest]; ok {
				t.Fatalf("%s has the digest of %s", name, other)
			}
			seen[a.digest] = name
		}
	}
}

// A share stays what it was until the next: it can be sent again.
func TestShareStays(t *testing.T) {
	for _, form := range forms() {
		p := newParty(t, testContext(t, smallSet(t, 64), form, 1), []int64{3, -2})
		p.attempt(t, 7, 1, []float64{0.5, -0.25})
		for i, d := range p.devices {
			if !d.share.Equal(p.sent[slot.TxShare][i]) {
				t.Errorf("%v: device %d's share is another", form, i+1)
			}
			refused(t, d.Prepare(7, 2), ErrOrder, "has given its decryption share")
			_, err := d.Encrypt(p.key, []float64{0.5})
			refused(t, err, ErrOrder, "without fresh randomness")
			_, err = d.Share(p.c1)
			refused(t, err, ErrOrder, "or twice")
			if !d.share.Equal(p.sent[slot.TxShare][i]) {
				t.Errorf("%v: refusals have changed device %d's share", form, i+1)
			}
		}
	}
}

func TestDeviceNeedsGuard(t *testing.T) {
	c := testContext(t, smallSet(t, 16), Whole, 0)
	seed := keystream.FromInteger(1)
	d, err := c.NewDevice(DeviceConfig{Index: 2, Mu: 1, DeltaMax: 1, Seed: &seed})
	if d != nil || err == nil || !strings.Contains(err.Error(), "device 3: DeviceConfig.Guard is nil: it must be a guard") {
		t.Errorf("without a guard: %v", err)
	}
}

func TestDeviceRefusesSenselessValues(t *testing.T) {
	c := testContext(t, smallSet(t, 16), Whole, 0)
	make := func(mu, deltaMax float64) (*Device, error) {
		seed := keystream.FromInteger(1)
		return c.NewDevice(DeviceConfig{Mu: mu, DeltaMax: deltaMax, Seed: &seed, Guard: openGuard{}})
	}
	for _, mu := range []float64{0, math.NaN(), math.Inf(1)} {
		if _, err := make(mu, 1); err == nil || !strings.Contains(err.Error(), "the channel mean mu is") {
			t.Errorf("mu = %v: %v", mu, err)
		}
	}
	// Lambda is 2^74: beyond 2^51 a message would leave encode's 126 bits, and a
	// bound that is no number would clip nothing.
	for _, most := range []float64{0, -1, math.NaN(), math.Inf(1), 0x1p52} {
		if _, err := make(1, most); err == nil || !strings.Contains(err.Error(), "the bound on |Delta f/mu| is") {
			t.Errorf("DeltaMax = %v: %v", most, err)
		}
	}
	if _, err := c.NewDevice(DeviceConfig{Mu: 1, DeltaMax: 1, Guard: openGuard{}}); err == nil || !strings.Contains(err.Error(), "it has no seed") {
		t.Errorf("without a seed: %v", err)
	}
	d, err := make(-2, 0.75)
	if err != nil {
		t.Fatal(err)
	}
	key := c.NewAggregatedKey()
	for attempt, x := range []struct {
		delta   float64
		clipped int
	}{{1.5, 0}, {-1.5, 0}, {1.6, 1}, {-1.6, 1}, {math.Inf(1), 1}, {math.Inf(-1), 1}, {0, 0}} {
		allowed(t, d.Prepare(0, uint32(attempt)))
		if clipped, err := d.Encrypt(key, []float64{x.delta}); err != nil || clipped != x.clipped {
			t.Errorf("Delta f = %v: clipped %v, error %v", x.delta, clipped, err)
		}
		// b~ is 0, so that c0 is m + e0.
		want := math.Max(-0.75, math.Min(0.75, x.delta/-2)) * 0x1p74
		if got := c.mod.Centred(d.c0, 0).Float64(); math.Abs(got-want) > 0x1p74*0x1p-50 {
			t.Errorf("Delta f = %v is encoded as %v, expected %v", x.delta, got, want)
		}
	}
	allowed(t, d.Prepare(1, 0))
	if _, err := d.Encrypt(key, []float64{math.NaN()}); err == nil {
		t.Error("a Delta f that is no number was encrypted")
	}
	// The refusal costs nothing: the randomness still serves one encryption.
	if _, err := d.Encrypt(key, []float64{1}); err != nil {
		t.Error(err)
	}
}

func TestCloseWipesSecrets(t *testing.T) {
	for _, name := range []string{"ringwave-8192-200", "ringwave-4096-100", "paper-4096"} { // wide, narrow and small e*
		for _, form := range forms() {
			set := testSet(t, name)
			p := newParty(t, testContext(t, set, form, 2), []int64{1})
			p.attempt(t, 0, 0, []float64{1})
			d := p.devices[0]
			count := func() map[string]int { // entries that are not 0
				held := map[string]int{"seed": nonzero(d.cfg.Seed[:])}
				for what, x := range map[string][]int8{
					"s": d.s, "sInner": d.sInner, "v": d.v, "vInner": d.vInner, "e0": d.e0, "e1": d.e1, "small e*": d.small,
				} {
					held[what] = nonzero(x)
				}
				for what, x := range map[string][][]uint64{"sNTT": d.sNTT.Memory(), "vNTT": d.vNTT.Memory()} {
					for _, residues := range x {
						held[what] += nonzero(residues)
					}
				}
				held["narrow e*"] = nonzero(d.narrow)
				for _, x := range d.flood {
					held["wide e*"] += nonzero([]int64{x.Hi, int64(x.Lo)})
				}
				return held
			}
			held := count()
			want := []string{"seed", "s", "v", "e0", "e1", "vNTT"}
			if form == Whole {
				want = append(want, "sNTT")
			} else {
				want = append(want, "sInner", "vInner")
			}
			want = append(want, map[string]string{"ringwave-8192-200": "wide e*", "ringwave-4096-100": "narrow e*", "paper-4096": "small e*"}[name])
			for _, what := range want {
				if held[what] == 0 {
					t.Errorf("%s, %v: %s is empty before Close: the test looks at the wrong place", name, form, what)
				}
			}
			d.Close()
			for what, n := range count() {
				if n != 0 {
					t.Errorf("%s, %v: %s has %d entries left after Close", name, form, what, n)
				}
			}
		}
	}
}

func nonzero[T comparable](x []T) (n int) {
	var zero T
	for _, y := range x {
		if y != zero {
			n++
		}
	}
	return n
}

// Nothing is allocated in a round. The guard is a stub: a Ledger's set of
// digests grows with every share that it records.
func TestRoundAllocatesNothing(t *testing.T) {
	for _, name := range []string{"ringwave-4096-100", "demo-1024"} { // wide and small e*
		for _, form := range forms() {
			c := testContext(t, testSet(t, name), form, 2)
			d := testDevice(t, c, 0, openGuard{})
			key, c1 := c.NewAggregatedKey(), c.NewAggregatedC1()
			round := uint32(0)
			got := testing.AllocsPerRun(3, func() {
				round++
				if err := d.Prepare(round, 0); err != nil {
					t.Fatal(err)
				}
				c.SetKey(key, d.b)
				if _, err := d.Encrypt(key, []float64{0.3}); err != nil {
					t.Fatal(err)
				}
				c.SetC1(c1, d.c1)
				if _, err := d.Share(c1); err != nil {
					t.Fatal(err)
				}
			})
			if got != 0 {
				t.Errorf("%s, %v: %v allocations in a round", name, form, got)
			}
		}
	}
}
