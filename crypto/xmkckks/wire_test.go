package xmkckks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/phy/zq"
)

func vectorKinds() []Kind {
	return []Kind{KindKey, KindC0, KindC1, KindShare, KindAggregatedKey, KindAggregatedC1}
}

// randomVector returns a vector of a kind with both edges of every prime in it.
func randomVector(c *Context, k Kind, rnd *rand.Rand) zq.Vector {
	n, err := c.coefficients(k)
	if err != nil {
		panic(err)
	}
	v := c.mod.NewVector(n)
	for j, p := range c.Params.Primes {
		for i := range v[j] {
			v[j][i] = rnd.Uint64N(p)
		}
		v[j][0] = p - 1
		v[j][n-1] = 0
	}
	return v
}

func testHeader(k Kind) Header {
	return Header{Kind: k, Device: FromServer, Epoch: 2, Round: 0x01020304, Attempt: 5}
}

func encodeVector(t testing.TB, c *Context, k Kind, v zq.Vector) []byte {
	t.Helper()
	b, err := c.AppendVector(nil, testHeader(k), v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decodeAny decodes a message by its kind and encodes what it found again.
func decodeAny(c *Context, b []byte) (again []byte, err error) {
	h, err := c.DecodeHeader(b)
	if err != nil {
		return nil, err
	}
	if h.Kind == KindUpdate {
		h, m, err := decodeOne(c, b)
		if err != nil {
			return nil, err
		}
		return c.AppendUpdate(nil, h, []float64{m})
	}
	n, err := c.coefficients(h.Kind)
	if err != nil {
		return nil, err
	}
	v := c.mod.NewVector(n)
	if h, err = c.DecodeVector(b, v); err != nil {
		return nil, err
	}
	return c.AppendVector(nil, h, v)
}

func TestWireRoundTrip(t *testing.T) {
	rnd := rand.New(keystream.FromInteger(5).Stream())
	prefix := []byte("before")
	for _, set := range append(Sets(), smallSet(t, 16)) {
		for _, form := range forms() {
			c := testContext(t, set, form, 2)
			for _, k := range vectorKinds() {
				v := randomVector(c, k, rnd)
				b, err := c.AppendVector(prefix, testHeader(k), v)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.HasPrefix(b, prefix) {
					t.Fatal("what stood before the message is gone")
				}
				w := c.mod.NewVector(v.Len())
				h, err := c.DecodeVector(b[len(prefix):], w)
				if err != nil {
					t.Fatalf("%s, %v, %v: %v", set.Name, form, k, err)
				}
				if h != testHeader(k) || !v.Equal(w) {
					t.Errorf("%s, %v: %v does not come back", set.Name, form, k)
				}
			}
			for _, m := range []float64{0, math.Copysign(0, -1), 1.5, -0x1p-1074, math.MaxFloat64} {
				b := appendOne(t, c, testHeader(KindUpdate), m)
				h, got, err := decodeOne(c, b)
				if err != nil || h != testHeader(KindUpdate) || math.Float64bits(got) != math.Float64bits(m) {
					t.Errorf("M = %v comes back as %v with %+v, %v", m, got, h, err)
				}
			}
		}
	}
}

// What the messages cost is what the paper says that ciphertexts cost: its 109
// KB are 109 KiB, its 446 KB are 446,464 bytes.
func TestWireSizeIsPublishedSize(t *testing.T) {
	for name, want := range map[string]int{
		"ringwave-4096-100": 102_400, "ringwave-8192-200": 409_600, "ringwave-4096": 111_616, "paper-4096": 111_616, "paper-8192": 446_464, "lean-2048": 27_648, "demo-1024": 6_912,
	} {
		c := testContext(t, testSet(t, name), Whole, 0)
		v := c.mod.NewVector(c.Params.N)
		got := 0
		for _, k := range []Kind{KindC0, KindC1} {
			got += len(encodeVector(t, c, k, v)) - headerSize
		}
		if got != want || c.Params.CiphertextBytes() != want {
			t.Errorf("%s: (c0, c1) is packed in %d bytes and said to have %d, expected %d", name, got, c.Params.CiphertextBytes(), want)
		}
	}
}

// The four messages of a round are the uplink's bits, but for the filling of the
// last bytes.
func TestWireSizeIsUplinkSize(t *testing.T) {
	const witnesses = 3
	for _, set := range Sets() {
		for _, form := range forms() {
			c := testContext(t, set, form, witnesses)
			bits := 0
			for _, k := range []Kind{KindKey, KindC0, KindC1, KindShare} {
				n, err := c.coefficients(k)
				if err != nil {
					t.Fatal(err)
				}
				bits += 8 * (len(encodeVector(t, c, k, c.mod.NewVector(n))) - headerSize)
			}
			if want := set.UplinkBits(form, 1, witnesses); bits < want || bits >= want+4*8 {
				t.Errorf("%s, %v: the messages have %d bits, the uplink %d", set.Name, form, bits, want)
			}
		}
	}
}

// tinyContext has messages with filling bits: 1+2 coefficients of 2 * 57 bits
// leave 2.
func tinyContext(t testing.TB) *Context { return testContext(t, smallSet(t, 16), Short, 2) }

func TestWireIsStrict(t *testing.T) {
	c := tinyContext(t)
	rnd := rand.New(keystream.FromInteger(6).Stream())
	v := randomVector(c, KindC0, rnd)
	good := encodeVector(t, c, KindC0, v)
	update := appendOne(t, c, testHeader(KindUpdate), 2.5)
	check := func(what string, b []byte, why string) {
		t.Helper()
		_, err := decodeAny(c, b)
		if !errors.Is(err, ErrWire) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, expected a refusal that says %q", what, err, why)
		}
	}
	change := func(at int, x byte) []byte {
		b := bytes.Clone(good)
		b[at] = x
		return b
	}

	for _, message := range [][]byte{good, update} {
		for length := range message {
			why := "the header alone has 36"
			if length >= headerSize {
				why = "a payload of"
			}
			check("cut off", message[:length], why)
		}
		check("one byte more", append(bytes.Clone(message), 0), "a payload of")
	}
	check("magic", change(3, 'k'), "it begins with")
	for _, version := range []byte{0, 2, 255} {
		check("version", change(4, version), "its version is")
	}
	for _, kind := range []byte{0, byte(KindUpdate) + 1, 255} {
		check("kind", change(5, kind), "its kind is")
	}
	check("reserved byte", change(6, 1), "expected zeros")
	check("reserved byte", change(7, 128), "expected zeros")
	check("fingerprint", change(8, good[8]^1), "its parameter fingerprint is")
	check("fingerprint", change(15, good[15]^0x80), "its parameter fingerprint is")
	check("length", change(32, good[32]+1), "a payload of")
	check("length", change(35, 1), "a payload of")
	check("filling bits", change(len(good)-1, good[len(good)-1]|0x40), "filling bits")
	check("filling bits", change(len(good)-1, good[len(good)-1]|0x80), "filling bits")
	// A kind of another length, under this payload and under its own.
	check("another kind", change(5, byte(KindC1)), "a payload of")
	check("M that is no number", appendOne(t, c, testHeader(KindUpdate), math.NaN()), "it must be finite")
	check("infinite M", appendOne(t, c, testHeader(KindUpdate), math.Inf(-1)), "it must be finite")

	// A vector of the same length under another name is another message.
	if _, err := c.DecodeVector(update, c.mod.NewVector(16)); !errors.Is(err, ErrWire) {
		t.Errorf("M as a vector: %v", err)
	}
	if _, _, err := decodeOne(c, good); !errors.Is(err, ErrWire) {
		t.Errorf("c0 as M: %v", err)
	}
	if _, err := c.DecodeVector(good, c.mod.NewVector(4)); err == nil {
		t.Error("three coefficients were read into room for four")
	}
}

// Every residue from p on is refused, at every place.
func TestWireRefusesUnreducedResidues(t *testing.T) {
	c := tinyContext(t)
	for _, k := range []Kind{KindC0, KindC1} {
		n, err := c.coefficients(k)
		if err != nil {
			t.Fatal(err)
		}
		for j, p := range c.Params.Primes {
			for i := range n {
				for _, residue := range []uint64{p, p + 1, 1<<zq.MaxPrimeBits - 1} {
					v := c.mod.NewVector(n)
					v[j][i] = residue
					if _, err := c.AppendVector(nil, testHeader(k), v); !errors.Is(err, zq.ErrNotReduced) {
						t.Fatalf("%d modulo %d was encoded: %v", residue, p, err)
					}
					b := c.appendPacked(c.appendHeader(nil, testHeader(k), (n*c.Params.CoefficientBits()+7)/8), v, n)
					if _, err := c.DecodeVector(b, c.mod.NewVector(n)); !errors.Is(err, ErrWire) || !strings.Contains(err.Error(), "it must be below it") {
						t.Fatalf("%d modulo %d was decoded: %v", residue, p, err)
					}
				}
			}
		}
	}
}

// Whatever bit of a message is changed: it is refused, or it is the one encoding
// of another value.
func TestWireIsUnique(t *testing.T) {
	c := tinyContext(t)
	rnd := rand.New(keystream.FromInteger(8).Stream())
	for _, k := range append(vectorKinds(), KindUpdate) {
		b := appendOne(t, c, testHeader(k), 2.5)
		if k != KindUpdate {
			b = encodeVector(t, c, k, randomVector(c, k, rnd))
		}
		accepted := 0
		for i := range 8 * len(b) {
			b[i/8] ^= 1 << (i % 8)
			if again, err := decodeAny(c, b); err == nil {
				accepted++
				if !bytes.Equal(again, b) {
					t.Fatalf("%v with bit %d changed is encoded anew as other bytes", k, i)
				}
			} else if !errors.Is(err, ErrWire) {
				t.Fatalf("%v with bit %d changed: %v", k, i, err)
			}
			b[i/8] ^= 1 << (i % 8)
		}
		if accepted < 4*32 { // device, epoch, round and attempt are free
			t.Errorf("%v: only %d changed messages are accepted", k, accepted)
		}
	}
}

// Contexts that differ in anything that both sides must share do not read each
// other's messages.
func TestFingerprintTellsContextsApart(t *testing.T) {
	base := smallSet(t, 16)
	seen := map[Fingerprint]string{}
	add := func(what string, change func(*Params), form Form, witnesses int, seed uint64) {
		t.Helper()
		p := base
		change(&p)
		c, err := NewContext(p, form, 1, witnesses, keystream.FromInteger(seed))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[c.Fingerprint()]; ok {
			t.Errorf("%s has the fingerprint of %s", what, other)
		}
		seen[c.Fingerprint()] = what
	}
	same := func(*Params) {}
	add("the base", same, Whole, 2, 1)
	add("another form", same, Short, 2, 1)
	add("other witnesses", same, Whole, 3, 1)
	add("another a", same, Whole, 2, 2)
	add("another n", func(p *Params) { p.N, p.Primes = 32, largestPrimes(t, 32, zq.MaxPrimeBits, 2) }, Whole, 2, 1)
	add("fewer primes", func(p *Params) { p.Primes = p.Primes[:1] }, Whole, 2, 1)
	add("primes in another order", func(p *Params) { p.Primes = []uint64{p.Primes[1], p.Primes[0]} }, Whole, 2, 1)
	add("another Lambda", func(p *Params) { p.LogLambda++ }, Whole, 2, 1)
	add("another flooding", func(p *Params) { p.LogFlood++ }, Whole, 2, 1)
	for what, change := range map[string]func(*Params){
		"another s":  func(p *Params) { p.Secret = sampler.Signs },
		"another v":  func(p *Params) { p.Ephemeral = sampler.Signs },
		"another e":  func(p *Params) { p.KeyError = sampler.Gaussian },
		"another e0": func(p *Params) { p.Error0 = sampler.Gaussian },
		"another e1": func(p *Params) { p.Error1 = sampler.Binomial },
		"another e*": func(p *Params) { p.ShareError = sampler.Binomial },
	} {
		add(what, change, Whole, 2, 1)
	}
	again, err := NewContext(base, Whole, 1, 2, keystream.FromInteger(1))
	if err != nil {
		t.Fatal(err)
	}
	if seen[again.Fingerprint()] != "the base" {
		t.Error("the same context has another fingerprint")
	}
}

func TestKindNames(t *testing.T) {
	for k, want := range map[Kind]string{
		KindKey: "b", KindC0: "c0", KindC1: "c1", KindShare: "D", KindAggregatedKey: "b~", KindAggregatedC1: "c~1", KindUpdate: "M",
		0: "kind 0", 8: "kind 8", 255: "kind 255",
	} {
		if got := k.String(); got != want {
			t.Errorf("kind %d is called %q, expected %q", uint8(k), got, want)
		}
	}
}

// Whatever bytes come in, they are refused or are the one encoding of what was
// read.
func FuzzWire(f *testing.F) {
	c := tinyContext(f)
	rnd := rand.New(keystream.FromInteger(9).Stream())
	for _, k := range vectorKinds() {
		b := encodeVector(f, c, k, randomVector(c, k, rnd))
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Add(appendOne(f, c, testHeader(KindUpdate), -1))
	f.Add(binary.LittleEndian.AppendUint64(c.appendHeader(nil, testHeader(KindUpdate), 8), math.Float64bits(math.NaN())))
	f.Add([]byte(wireMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		again, err := decodeAny(c, b)
		if err != nil {
			if !errors.Is(err, ErrWire) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("%x was read and written as %x", b, again)
		}
	})
}
