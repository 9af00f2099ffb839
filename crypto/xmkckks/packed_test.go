package xmkckks

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

func packedContext(t testing.TB, p Params, form Form, messages, witnesses int) *Context {
	t.Helper()
	c, err := NewContext(p, form, messages, witnesses, keystream.FromInteger(1).Derive("public"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// packedDeltas draws messages in (-1, 1), device by device.
func packedDeltas(rnd *rand.Rand, devices, messages int) [][]float64 {
	delta := make([][]float64, devices)
	for i := range delta {
		for range messages {
			delta[i] = append(delta[i], 2*rnd.Float64()-1)
		}
	}
	return delta
}

// As in TestJudgeAgrees: what the server sums, less what lattigo's decryptor finds in
// (c~0, c~1), is sum H_j e*_j at every coefficient, exactly; and the decryptor finds
// sum H_i m_{i,p} and noise within seven deviations at coefficient p, and noise alone
// at all others.
func TestJudgeAgreesOnPackedMessages(t *testing.T) {
	gains := []int64{7, -3, 5}
	scaled := []float64{7, -3, 5}
	for _, set := range tried() {
		for _, messages := range []int{2, 8, set.N - 8} {
			t.Run(fmt.Sprintf("%s/P=%d", set.Name, messages), func(t *testing.T) {
				c := packedContext(t, set, Whole, messages, 8)
				p := newParty(t, c, gains)
				delta := packedDeltas(rand.New(keystream.FromInteger(12).Stream()), 3, messages)
				p.attemptPacked(t, 3, 1, delta)
				judged := judge(t, set, p.aggregatedSecret(), p.sum[slot.TxC0], p.sum[slot.TxC1])

				q := modulus(set.Primes)
				b := c.Budget(SumsOf(scaled), [slot.Transmissions]float64{})
				std := math.Sqrt(b.A + b.B1 + b.C1)
				worst := 0.0
				for k := range set.N {
					got := lift(set.Primes, judged, k)
					server := new(big.Int).Add(lift(set.Primes, p.sum[slot.TxC0], k), lift(set.Primes, p.sum[slot.TxShare], k))
					want := new(big.Int)
					for i, d := range p.devices {
						want.Add(want, new(big.Int).Mul(big.NewInt(gains[i]), d.flooded(k)))
					}
					if difference := centre(server.Sub(server, got), q); difference.Cmp(want) != 0 {
						t.Fatalf("coefficient %d of the server's sum less the judge's is %d, sum H e* is %d", k, difference, want)
					}
					if k < messages {
						for i, h := range gains {
							got.Sub(got, new(big.Int).Mul(big.NewInt(h), rounded(delta[i][k], set.LogLambda)))
						}
					}
					worst = max(worst, math.Abs(float(centre(got, q)))/std)
				}
				t.Logf("noise at most %.2f deviations of 2^%.1f", worst, math.Log2(std))
				if worst > 7 {
					t.Errorf("the noise reaches %.2f deviations of the budget", worst)
				}
			})
		}
	}
}

// The short form of P messages is the first P+W coefficients of the whole one, bit for
// bit, whether a device computes them one by one or by transforms; and so is that of
// one message, but for the messages themselves.
func TestPackedShortFormIsPartOfWhole(t *testing.T) {
	const witnesses = 4
	gains := []int64{3, -2, 5}
	for _, set := range append(tried(), smallSet(t, 64)) {
		for _, messages := range []int{3, 20} {
			whole := newParty(t, packedContext(t, set, Whole, messages, witnesses), gains)
			short := newParty(t, packedContext(t, set, Short, messages, witnesses), gains)
			if short.ctx.transforms() != (messages == 20) {
				t.Fatalf("%d messages: the test does not meet both ways", messages)
			}
			delta := packedDeltas(rand.New(keystream.FromInteger(13).Stream()), 3, messages)
			for attempt := range uint32(2) {
				whole.attemptPacked(t, attempt, attempt, delta)
				short.attemptPacked(t, attempt, attempt, delta)
				for tx, sent := range short.sent {
					for i, s := range sent {
						w := whole.sent[tx][i]
						if tx := slot.Transmission(tx); tx == slot.TxC0 || tx == slot.TxShare {
							if s.Len() != messages+witnesses {
								t.Fatalf("%v has %d coefficients, expected %d", tx, s.Len(), messages+witnesses)
							}
							w = firstCoefficients(w, s.Len())
						}
						if !s.Equal(w) {
							t.Errorf("%s, P = %d, attempt %d: %v of device %d differs between the forms", set.Name, messages, attempt, slot.Transmission(tx), i+1)
						}
					}
				}
			}
		}
	}
}

// A device that computes whole products in the short form holds one of them more, and
// wipes it.
func TestCloseWipesPackedSecrets(t *testing.T) {
	c := packedContext(t, testSet(t, "lean-2048"), Short, 30, 2)
	p := newParty(t, c, []int64{1})
	p.attemptPacked(t, 0, 0, packedDeltas(rand.New(keystream.FromInteger(1).Stream()), 1, 30))
	d := p.devices[0]
	if nonzero(d.full[0]) == 0 || nonzero(d.sNTT.Memory()[0]) == 0 {
		t.Error("the test looks at the wrong place")
	}
	d.Close()
	if nonzero(d.full[0])+nonzero(d.sNTT.Memory()[0]) != 0 {
		t.Error("secrets are left after Close")
	}
}

// One message is encrypted and recovered by either call to the same bits, and a
// context of one has the fingerprint that contexts had before there were more.
func TestOnePackedMessageIsTheOldOne(t *testing.T) {
	for name, want := range map[string]string{
		"ringwave-4096/whole": "21ec9dd02c3ca8d5", "ringwave-4096/short": "2aa05e1e143c7298",
		"paper-4096/whole": "309f5eda758fb259", "paper-4096/short": "761812547202a3fe",
		"paper-8192/whole": "b5974209c3b6aee2", "paper-8192/short": "a0d50b5864fe4305",
		"lean-2048/whole": "fed04b3e131b20d9", "lean-2048/short": "3d1412d890a225e9",
		"demo-1024/whole": "1b365bab177e914e", "demo-1024/short": "5944feb23ca2084a",
	} {
		set, formName, _ := strings.Cut(name, "/")
		form := Whole
		if formName == "short" {
			form = Short
		}
		old, packed := testContext(t, testSet(t, set), form, 2), packedContext(t, testSet(t, set), form, 1, 2)
		if got := fmt.Sprintf("%x", packed.Fingerprint()); got != want || old.Fingerprint() != packed.Fingerprint() {
			t.Errorf("%s: the fingerprint is %s, known is %s", name, got, want)
		}
		if packedContext(t, testSet(t, set), form, 2, 2).Fingerprint() == old.Fingerprint() {
			t.Errorf("%s: two messages have the fingerprint of one", name)
		}
		a, b := newParty(t, old, []int64{4, -1}), newParty(t, packed, []int64{4, -1})
		a.attempt(t, 0, 0, []float64{0.25, -0.5})
		b.attemptPacked(t, 0, 0, [][]float64{{0.25}, {-0.5}})
		for tx := range a.sent {
			for i := range a.sent[tx] {
				if !a.sent[tx][i].Equal(b.sent[tx][i]) {
					t.Errorf("%s: %v of device %d differs", name, slot.Transmission(tx), i+1)
				}
			}
		}
	}
}

// packedDesign is testDesign for P messages.
func packedDesign(t testing.TB, set Params, form Form, messages, devices, attempts int) Design {
	t.Helper()
	mu, omega := equalGains(devices, 1)
	d, err := NewDesign(set, form, Link{Mu: mu, Omega: omega, Alpha: 4, DeltaMax: 1, Shares: attempts, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The server recovers every message, and the witnesses behind them find what is broken:
// any one of them, and gains that change on the way.
func TestServerRecoversPackedMessages(t *testing.T) {
	const messages, alpha = 5, 4
	gains := []int64{4, -2, 7}
	for _, set := range tried() {
		for _, form := range forms() {
			d := packedDesign(t, set, form, messages, 3, 10)
			c := packedContext(t, d.Params, form, messages, d.Witnesses)
			server := c.NewServer(d)
			p := newParty(t, c, gains)
			delta := packedDeltas(rand.New(keystream.FromInteger(14).Stream()), 3, messages)
			p.attemptPacked(t, 0, 0, delta)
			c0, share := p.sum[slot.TxC0], p.sum[slot.TxShare]
			m := make([]float64, messages)
			if err := server.Recover(m, c0, share, alpha); err != nil {
				t.Fatalf("%s, %v: %v", set.Name, form, err)
			}
			std := d.ConditionalStd(c, []float64{4, -2, 7})
			for k, got := range m {
				want := 0.0
				for i, h := range gains {
					want += float64(h) / alpha * delta[i][k]
				}
				if math.Abs(got-want) > 6*std+0x1p-50 {
					t.Errorf("%s, %v: message %d is %v, expected %v within six times %v", set.Name, form, k, got, want, std)
				}
			}
			before := append([]float64(nil), m...)
			for k := messages; k < messages+d.Witnesses; k++ {
				broken := c.mod.NewVector(c0.Len())
				broken.Copy(c0)
				for j, prime := range c.Params.Primes {
					broken[j][k] = (broken[j][k] + prime/2) % prime
				}
				if err := server.Recover(m, broken, share, alpha); !errors.Is(err, ErrWitness) || !strings.Contains(err.Error(), fmt.Sprintf("coefficient %d ", k)) {
					t.Errorf("%s, %v: witness %d broken: %v", set.Name, form, k, err)
				}
			}
			if err := server.Recover(m, c0, p.resum(slot.TxShare, []int64{4, -2, 6}), alpha); !errors.Is(err, ErrWitness) {
				t.Errorf("%s, %v: D at other gains: %v", set.Name, form, err)
			}
			if fmt.Sprint(m) != fmt.Sprint(before) {
				t.Errorf("%s, %v: a refusal left %v where %v was", set.Name, form, m, before)
			}
		}
	}
}

// Messages are clipped and counted one by one.
func TestPackedClipping(t *testing.T) {
	set := smallSet(t, 16)
	set.Error0 = sampler.Zero
	for _, form := range forms() {
		c := packedContext(t, set, form, 6, 2)
		d := testDevice(t, c, 0, openGuard{})
		key := c.NewAggregatedKey() // b~ is 0, so that c0 is m
		c.SetKey(key, c.mod.NewVector(set.N))
		allowed(t, d.Prepare(0, 0))
		clipped, err := d.Encrypt(key, []float64{0.5, 2, -0.25, math.Inf(-1), 1, -1.001})
		if err != nil || clipped != 3 {
			t.Errorf("%v: %d messages clipped, %v; want 3", form, clipped, err)
		}
		for k, want := range []float64{0.5, 1, -0.25, -1, 1, -1, 0, 0} {
			if got := c.mod.Centred(d.c0, k).Float64() / c.Params.Lambda(); got != want {
				t.Errorf("%v: coefficient %d is %v Lambda, expected %v", form, k, got, want)
			}
		}
		// A refusal costs nothing: the randomness still serves one encryption.
		allowed(t, d.Prepare(0, 1))
		for want, deltas := range map[string][]float64{
			"5 messages where a ciphertext has 6": {1, 2, 3, 4, 5}, "7 messages": {1, 2, 3, 4, 5, 6, 7},
			"Delta f is NaN": {1, 2, 3, math.NaN(), 5, 6},
		} {
			if _, err := d.Encrypt(key, deltas); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q: %v", form, want, err)
			}
		}
		if _, err := d.Encrypt(key, []float64{1}); err == nil || !strings.Contains(err.Error(), "1 messages where a ciphertext has 6") {
			t.Errorf("%v: one message: %v", form, err)
		}
		if _, err := d.Encrypt(key, make([]float64, 6)); err != nil {
			t.Error(err)
		}
	}
}

// All messages of a round of P = 4 come back from their bytes, and their sizes are the
// uplink's, but for the filling of the last bytes.
func TestPackedWireRoundTrip(t *testing.T) {
	const messages, witnesses = 4, 2
	rnd := rand.New(keystream.FromInteger(15).Stream())
	for _, set := range append(Sets(), smallSet(t, 16)) {
		for _, form := range forms() {
			c := packedContext(t, set, form, messages, witnesses)
			bits := 0
			for _, k := range vectorKinds() {
				v := randomVector(c, k, rnd)
				b := encodeVector(t, c, k, v)
				w := c.mod.NewVector(v.Len())
				if h, err := c.DecodeVector(b, w); err != nil || h != testHeader(k) || !v.Equal(w) {
					t.Errorf("%s, %v: %v does not come back: %v", set.Name, form, k, err)
				}
				if k <= KindShare {
					bits += 8 * (len(b) - headerSize)
				}
			}
			if want := set.UplinkBits(form, messages, witnesses); bits < want || bits >= want+4*8 {
				t.Errorf("%s, %v: the messages have %d bits, the uplink %d", set.Name, form, bits, want)
			}
			m := []float64{1.5, math.Copysign(0, -1), -0x1p-1074, math.MaxFloat64}
			b, err := c.AppendUpdate(nil, testHeader(KindUpdate), m)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float64, messages)
			h, err := c.DecodeUpdate(b, got)
			if err != nil || h != testHeader(KindUpdate) {
				t.Fatalf("%s, %v: %+v, %v", set.Name, form, h, err)
			}
			for p := range m {
				if math.Float64bits(got[p]) != math.Float64bits(m[p]) {
					t.Errorf("M = %v comes back as %v", m, got)
				}
			}
		}
	}
}

// One encoding of each update, and nothing else is taken.
func TestPackedUpdateIsStrict(t *testing.T) {
	set := smallSet(t, 16)
	c, one := packedContext(t, set, Short, 4, 2), testContext(t, set, Short, 2)
	good, err := c.AppendUpdate(nil, testHeader(KindUpdate), []float64{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	m := make([]float64, 4)
	for what, b := range map[string][]byte{
		"short":          good[:len(good)-8],
		"long":           append(bytes.Clone(good), make([]byte, 8)...),
		"not finite":     append(bytes.Clone(good[:len(good)-8]), 0, 0, 0, 0, 0, 0, 0xf0, 0x7f),
		"of one message": appendOne(t, one, testHeader(KindUpdate), 1),
		"no update":      encodeVector(t, c, KindC0, c.mod.NewVector(6)),
	} {
		if _, err := c.DecodeUpdate(b, m); !errors.Is(err, ErrWire) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := one.DecodeHeader(good); !errors.Is(err, ErrWire) {
		t.Errorf("a context of one message takes four: %v", err)
	}
	if _, err := c.DecodeUpdate(good, m[:3]); err == nil {
		t.Error("four values were read into three")
	}
	if _, _, err := decodeOne(c, good); err == nil {
		t.Error("four values were read as one")
	}
	if _, err := c.AppendUpdate(nil, testHeader(KindUpdate), m[:3]); err == nil {
		t.Error("three values were written for four")
	}
}

// Every revealed coefficient counts against the flooding: t grows as sqrt(P+W) in the
// short form, up to the whole form's, which does not depend on P; the statistical bits
// fall by twice its logarithm where the flooding stays, and it grows where they must not
// fall below the set's.
func TestFloodingCountsMessages(t *testing.T) {
	set := testSet(t, "paper-4096") // no flooding that would adapt
	set.LogFlood, set.FloodingBits = 55, 0
	one := packedDesign(t, set, Short, 1, 10, 1600)
	whole := packedDesign(t, set, Whole, 1, 10, 1600)
	for _, messages := range []int{1, 2, 8, 64, 160, 200, 1000, set.N - 2} {
		d := packedDesign(t, set, Short, messages, 10, 1600)
		w := packedDesign(t, set, Whole, messages, 10, 1600)
		if d.Witnesses != one.Witnesses || w.Witnesses != whole.Witnesses {
			t.Fatalf("P = %d: %d and %d witnesses", messages, d.Witnesses, w.Witnesses)
		}
		lost := math.Log2(float64(messages+d.Witnesses) / float64(1+d.Witnesses))
		want := max(one.FloodingBits-lost, whole.FloodingBits)
		t.Logf("P = %d: %.2f bits in the short form, %.2f in the whole one", messages, d.FloodingBits, w.FloodingBits)
		near(t, fmt.Sprintf("flooding of %d messages in the short form", messages), d.FloodingBits, want, 1e-9)
		near(t, fmt.Sprintf("flooding of %d messages in the whole form", messages), w.FloodingBits, whole.FloodingBits, 1e-12)
		if d.Rare.Noise() != one.Rare.Noise() || d.Tolerance != one.Tolerance || d.MessageBound != one.MessageBound {
			t.Errorf("P = %d: the budget of a coefficient changes", messages)
		}
	}
	// The default's 40 bits are kept, by more flooding if need be.
	mu, omega := equalGains(10, 10)
	least := 0.0
	for _, messages := range []int{1, 16, 64, 4000} {
		d, err := NewDesign(Sets()[0], Short, Link{Mu: mu, Omega: omega, Alpha: 256, DeltaMax: 1, Shares: 100_000, Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("P = %d, 100,000 attempts: sigma* = 2^%v, %.2f bits, W = %d", messages, d.Params.LogFlood, d.FloodingBits, d.Witnesses)
		if d.FloodingBits < 40 || d.Params.LogFlood < least {
			t.Errorf("P = %d: %.2f bits with sigma* = 2^%v", messages, d.FloodingBits, d.Params.LogFlood)
		}
		least = d.Params.LogFlood
	}
}

// The uplink grows by 2 coefficients a message in the short form and not at all in the
// whole one.
func TestPackedUplink(t *testing.T) {
	for _, set := range Sets() {
		devices := 10
		if set.N == 1024 {
			devices = 3
		}
		text := set.Name
		for _, form := range forms() {
			for _, messages := range []int{1, 4, 16, 64} {
				d := packedDesign(t, set, form, messages, devices, 1600)
				want := 4 * set.N * set.CoefficientBits()
				if form == Short {
					want = 2 * (set.N + messages + d.Witnesses) * set.CoefficientBits()
				}
				if got := d.UplinkBits(); got != want {
					t.Errorf("%s, %v, P = %d: %d bits, expected %d", set.Name, form, messages, got, want)
				}
				c := packedContext(t, d.Params, form, messages, d.Witnesses)
				if c.Revealed() != d.Revealed() {
					t.Errorf("%s, %v, P = %d: %d coefficients and %d", set.Name, form, messages, c.Revealed(), d.Revealed())
				}
				for tx, want := range map[slot.Transmission]int{slot.TxKey: set.N, slot.TxC0: d.Revealed(), slot.TxC1: set.N, slot.TxShare: d.Revealed()} {
					if of, by := c.PayloadLength(tx), d.PayloadLength(tx); of != want || by != want {
						t.Errorf("%s, %v, P = %d: %d and %d coefficients of %v, expected %d", set.Name, form, messages, of, by, tx, want)
					}
				}
				text += fmt.Sprintf(" | %v P=%d W=%d: %d", form, messages, d.Witnesses, d.UplinkBits())
			}
		}
		t.Log(text)
	}
}

func TestPackedRefusals(t *testing.T) {
	set := smallSet(t, 16)
	public := keystream.FromInteger(1)
	for _, x := range []struct {
		messages, witnesses int
		want                string
		noRoom              bool
	}{
		{0, 1, "0 messages a ciphertext: at least 1", false}, {-3, 1, "-3 messages", false},
		{15, 2, "n = 16 coefficients, too few for P = 15 messages and W = 2: allowed are at most 14", true},
		{math.MaxInt, 1, "allowed are at most 15", true}, {1, 16, "16 witnesses", false},
	} {
		_, err := NewContext(set, Short, x.messages, x.witnesses, public)
		if err == nil || !strings.Contains(err.Error(), x.want) || errors.Is(err, ErrNoRoom) != x.noRoom {
			t.Errorf("P = %d, W = %d: %v", x.messages, x.witnesses, err)
		}
	}
	for _, form := range forms() {
		if c := packedContext(t, set, form, 14, 2); c.Revealed() != 16 {
			t.Errorf("%v: %d coefficients of 16", form, c.Revealed())
		}
		for messages, noRoom := range map[int]bool{-1: false, 1022: true, 1024: true, math.MaxInt: true} {
			mu, omega := equalGains(3, 1)
			_, err := NewDesign(testSet(t, "demo-1024"), form, Link{Mu: mu, Omega: omega, Alpha: 1, DeltaMax: 1, Shares: 1, Messages: messages})
			if err == nil || errors.Is(err, ErrNoRoom) != noRoom {
				t.Errorf("%v, P = %d: %v", form, messages, err)
			}
		}
	}
	// As many as fit do.
	d := packedDesign(t, testSet(t, "demo-1024"), Short, 1000, 3, 1)
	d = packedDesign(t, testSet(t, "demo-1024"), Short, 1024-d.Witnesses, 3, 1)
	c := packedContext(t, d.Params, Short, d.Link.Messages, d.Witnesses)
	if err := c.NewServer(d).Recover(make([]float64, 3), c.mod.NewVector(1024), c.mod.NewVector(1024), 1); err == nil {
		t.Error("a thousand messages were recovered into three values")
	}
}

func vectors(n int) []zq.Vector { return make([]zq.Vector, n) }
