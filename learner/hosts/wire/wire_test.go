package wire

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// key signs as a server does, with a key of the test's.
type key struct{ private ed25519.PrivateKey }

func newKey(n byte) key { return key{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, 32))} }

func (k key) Sign(purpose string, message []byte) ([]byte, error) {
	return ed25519.Sign(k.private, append([]byte(purpose), message...)), nil
}

var errForged = errors.New("forged")

func (k key) verify(purpose string, message, signature []byte) error {
	if !ed25519.Verify(k.private.Public().(ed25519.PublicKey), append([]byte(purpose), message...), signature) {
		return errForged
	}
	return nil
}

func newModulus(t testing.TB) *zq.Modulus {
	t.Helper()
	m, err := zq.NewModulus([]uint64{0x7fff801, 0x3ffffffffed001})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func randomVector(m *zq.Modulus, n int, rnd *rand.Rand) zq.Vector {
	v := m.NewVector(n)
	for j, p := range m.Primes() {
		for k := range v[j] {
			v[j][k] = rnd.Uint64N(p)
		}
	}
	return v
}

func sample() Message {
	return Message{
		Kind: Send, Run: RunID{1, 2, 255}, Device: 7, Epoch: 3,
		Slot: slot.Slot{Round: 400, Attempt: 5, Transmission: slot.TxShare, Again: 2}, Body: []byte("body"),
	}
}

// What is written is read, signed or not; what is changed in any bit is refused or is another
// message, and no change of a signed one is taken.
func TestMessages(t *testing.T) {
	want := sample()
	got, err := Parse(want.Bytes())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	server := newKey(1)
	sealed, err := Seal(server, want)
	if err != nil {
		t.Fatal(err)
	}
	got, err = Open(sealed, server.verify)
	if got.Signature = nil; err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := Open(sealed, newKey(2).verify); !errors.Is(err, errForged) {
		t.Errorf("another's key: %v", err)
	}
	if _, err := Open(want.Bytes(), server.verify); err == nil || !strings.Contains(err.Error(), "without the server's signature") {
		t.Errorf("no signature: %v", err)
	}
	for bit := range 8 * len(sealed) {
		b := bytes.Clone(sealed)
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := Open(b, server.verify); err == nil {
			t.Errorf("bit %d may be another", bit)
		}
	}
	for n := range len(sealed) {
		if _, err := Open(sealed[:n], server.verify); err == nil {
			t.Errorf("%d of %d bytes are taken", n, len(sealed))
		}
	}
}

// Every kind has a name of its own.
func TestKinds(t *testing.T) {
	names := map[string]bool{}
	for k := Kind(1); k < kinds; k++ {
		if names[k.String()] || strings.HasPrefix(k.String(), "kind ") || k.String() == "" {
			t.Errorf("kind %d is %q", k, k)
		}
		names[k.String()] = true
	}
}

// Records are read as they were sealed, for their run alone, and one that is cut, forged or
// of another run is refused.
func TestRecords(t *testing.T) {
	server, run := newKey(1), RunID{9}
	want := []Record{{Round: 1, M: []float64{0.5}, Before: Digest{1}}, {Round: 2, Before: Digest{2}}, {Round: 3, M: []float64{-1, math.MaxFloat64}, Before: Digest{3}}}
	var all []byte
	var ends []int
	for _, r := range want {
		sealed, err := SealRecord(server, run, r)
		if err != nil {
			t.Fatal(err)
		}
		if len(sealed) != RecordSize(len(r.M)) {
			t.Errorf("a record of %d values has %d bytes, said are %d", len(r.M), len(sealed), RecordSize(len(r.M)))
		}
		all = append(all, sealed...)
		ends = append(ends, len(all))
	}
	got, err := OpenRecords(all, run, 3, server.verify)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := OpenRecords(all, run, 2, server.verify); err == nil {
		t.Error("more records than allowed are taken")
	}
	if _, err := OpenRecords(all, RunID{8}, 3, server.verify); err == nil {
		t.Error("another run's records are taken")
	}
	if _, err := OpenRecords(all, run, 3, newKey(2).verify); !errors.Is(err, errForged) {
		t.Errorf("another's key: %v", err)
	}
	for n := range len(all) {
		whole := n == 0
		for _, end := range ends {
			whole = whole || n == end
		}
		if _, err := OpenRecords(all[:n], run, 3, server.verify); (err == nil) != whole {
			t.Errorf("%d of %d bytes: %v", n, len(all), err)
		}
	}
	first, rest, err := CutRecord(all, run)
	if err != nil || !bytes.Equal(append(bytes.Clone(first), rest...), all) || len(first) != ends[0] {
		t.Errorf("the first record has %d bytes, %v", len(first), err)
	}
	nan, err := SealRecord(server, run, Record{Round: 1, M: []float64{math.NaN()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRecords(nan, run, 1, server.verify); err == nil {
		t.Error("M = NaN is taken")
	}
}

// A request is for as many devices as it says.
func TestRequests(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 1000} {
		want := Request{Present: make([]bool, n), Broadcast: []byte("b~")}
		want.Present[n-1] = true
		got, err := ParseRequest(want.Bytes(), n)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d devices: %+v, %v", n, got, err)
		}
		if _, err := ParseRequest(want.Bytes(), n+1); err == nil {
			t.Errorf("a request for %d devices is taken for %d", n, n+1)
		}
	}
}

// Frames of a ring link and what arrives are read as they were written, and values that are
// no residues are refused.
func TestRingFrames(t *testing.T) {
	m, rnd := newModulus(t), rand.New(rand.NewPCG(1, 2))
	want := phy.RingFrame{Payload: randomVector(m, 5, rnd), Checks: randomVector(m, 3, rnd), Pattern: []int8{1, -1, -1, 1, 1, 1, 1, 1, -1}}
	b := AppendRingFrame(nil, want)
	got, err := ParseRingFrame(b, m)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for n := range len(b) {
		if _, err := ParseRingFrame(b[:n], m); err == nil {
			t.Errorf("%d of %d bytes are taken", n, len(b))
		}
	}
	big := bytes.Clone(b)
	copy(big[12+2:], []byte{255, 255, 255, 255, 255, 255, 255, 255})
	if _, err := ParseRingFrame(big, m); err == nil {
		t.Error("a residue beyond its prime is taken")
	}

	rx := phy.Reception{Y: randomVector(m, 4, rnd), Pattern: []int64{3, -5, 0}, Alpha: 256}
	chk := randomVector(m, 2, rnd)
	b = AppendReception(nil, &rx, chk)
	into, intoChk := phy.Reception{Y: m.NewVector(4), Pattern: make([]int64, 3)}, m.NewVector(2)
	if err := ParseReception(b, m, &into, intoChk); err != nil || !reflect.DeepEqual(into, rx) || !intoChk.Equal(chk) {
		t.Fatalf("%+v, %v", into, err)
	}
	if err := ParseReception(b, m, &phy.Reception{Y: m.NewVector(5), Pattern: make([]int64, 3)}, intoChk); err == nil {
		t.Error("a superposition of another length is taken")
	}
	for n := range len(b) {
		if err := ParseReception(b[:n], m, &into, intoChk); err == nil {
			t.Errorf("%d of %d bytes are taken", n, len(b))
		}
	}
	rx.Alpha = math.NaN()
	if err := ParseReception(AppendReception(nil, &rx, chk), m, &into, intoChk); err == nil {
		t.Error("alpha = NaN is taken")
	}
}

// JSON that has more than it should is refused.
func TestJSON(t *testing.T) {
	var r Readiness
	for text, ok := range map[string]bool{
		`{"Rounds":3,"Devices":2}`: true, `{"Rounds":3} {}`: false, `{"rounds_":3}`: false, `{"Rounds":"3"}`: false, ``: false,
	} {
		if err := ParseJSON([]byte(text), &r); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A commitment binds to all that it is made of.
func TestCommitment(t *testing.T) {
	base := Commitment(RunID{1}, 2, 3, []byte("b"))
	for i, other := range []Digest{
		Commitment(RunID{2}, 2, 3, []byte("b")), Commitment(RunID{1}, 3, 3, []byte("b")),
		Commitment(RunID{1}, 2, 4, []byte("b")), Commitment(RunID{1}, 2, 3, []byte("c")),
	} {
		if other == base {
			t.Errorf("commitment %d is the same", i)
		}
	}
}

// Whatever bytes come, decoders say yes or no, and what they take is written as it was.
func FuzzDecoders(f *testing.F) {
	m := newModulus(f)
	server := newKey(1)
	rnd := rand.New(rand.NewPCG(1, 2))
	sealed, _ := Seal(server, sample())
	record, _ := SealRecord(server, RunID{9}, Record{Round: 1, M: []float64{1}})
	rx := phy.Reception{Y: randomVector(m, 4, rnd), Pattern: []int64{3, -5, 0}, Alpha: 256}
	frame := AppendRingFrame(nil, phy.RingFrame{Payload: randomVector(m, 2, rnd), Checks: randomVector(m, 1, rnd), Pattern: []int8{1, -1}})
	for _, b := range [][]byte{sample().Bytes(), sealed, record, frame, AppendReception(nil, &rx, randomVector(m, 2, rnd)), Request{Present: []bool{true, false}}.Bytes(), AppendCheckpoint(nil, record, []float64{1, 2})} {
		f.Add(b)
	}
	presence, _ := AppendJSON(Presence{Nonce: make([]byte, PresenceNonce), Host: "a"})
	f.Add(presence)
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, err := Parse(b); err == nil && !bytes.Equal(append(x.Bytes(), x.Signature...), b) {
			t.Errorf("%x is read as %+v", b, x)
		}
		if _, err := Open(b, server.verify); err == nil && !bytes.Equal(b, sealed) {
			t.Errorf("%x was never sealed", b)
		}
		if all, err := OpenRecords(b, RunID{9}, 4, server.verify); err == nil && len(all) > 4 {
			t.Errorf("%d records", len(all))
		}
		if r, err := ParseRequest(b, 2); err == nil && len(r.Present) != 2 {
			t.Errorf("%d devices", len(r.Present))
		}
		if x, err := ParseRingFrame(b, m); err == nil && len(x.Pattern)%8 == 0 && !bytes.Equal(AppendRingFrame(nil, x), b) {
			t.Errorf("%x is read as %+v", b, x)
		}
		_ = ParseReception(b, m, &phy.Reception{Y: m.NewVector(4), Pattern: make([]int64, 3)}, m.NewVector(2))
		_ = ParseVector(b, m, m.NewVector(2))
		if t9, err := OpenCheckpoint(b, RunID{9}, server.verify); err == nil && !bytes.Equal(AppendCheckpoint(nil, record, t9.Values), b) {
			t.Errorf("%x is read as %+v", b, t9)
		}
		if p, err := ParsePresence(b); err == nil && len(p.Nonce) != PresenceNonce {
			t.Errorf("%x is read as %+v", b, p)
		}
		var w Run
		_ = ParseJSON(b, &w)
	})
}
