package keystream

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"ringwave/crypto/vector"
)

// The stream must be plain AES-256-CTR: the judge is crypto/cipher's own CTR,
// started at GCM's first data block, nonce || 2.
func TestStreamIsCTR(t *testing.T) {
	for _, path := range vector.Paths() {
		if path.Lacks() == "" {
			t.Run(path.String(), func(t *testing.T) { streamIsCTR(t, path) })
		}
	}
}

func streamIsCTR(t *testing.T, path vector.Path) {
	seed := FromInteger(7).Derive("test", 3)
	s := newStreamOn(&seed, path)
	s.Start(5, 2)
	got := make([]byte, 3*chunkSize+13)
	s.Fill(got)

	block, err := aes.NewCipher(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, len(got))
	for chunk := 0; chunk*chunkSize < len(want); chunk++ {
		var iv [16]byte
		binary.BigEndian.PutUint32(iv[0:], 5)
		binary.BigEndian.PutUint32(iv[4:], 2)
		binary.BigEndian.PutUint32(iv[8:], uint32(chunk))
		binary.BigEndian.PutUint32(iv[12:], 2)
		part := want[chunk*chunkSize : min((chunk+1)*chunkSize, len(want))]
		cipher.NewCTR(block, iv[:]).XORKeyStream(part, part)
	}
	if !bytes.Equal(got, want) {
		t.Fatal("the stream differs from AES-256-CTR")
	}
}

func TestStreamIsAddressedByName(t *testing.T) {
	root := FromInteger(1)
	read := func(s Seed, round, attempt uint32) [32]byte {
		st := s.Stream()
		st.Uint64()
		st.Start(round, attempt)
		var b [32]byte
		st.Fill(b[:])
		return b
	}
	seen := map[[32]byte]string{}
	add := func(name string, b [32]byte) {
		if other, dup := seen[b]; dup {
			t.Errorf("%s and %s give the same bytes", name, other)
		}
		seen[b] = name
	}
	add("root", read(root, 0, 0))
	add("round 1", read(root, 1, 0))
	add("attempt 1", read(root, 0, 1))
	add("name a", read(root.Derive("a"), 0, 0))
	add("name a, 0", read(root.Derive("a", 0), 0, 0))
	add("name a, 1", read(root.Derive("a", 1), 0, 0))
	add("other seed", read(FromInteger(2), 0, 0))
	// An index and a name that ends in its bytes: the length of the name tells them
	// apart.
	add("name a, 65 times 2^56 + 1", read(root.Derive("a", 65<<56+1), 0, 0))
	add("name a and those bytes", read(root.Derive("a\x41\x00\x00\x00\x00\x00\x00\x01"), 0, 0))
	add("name aA", read(root.Derive("aA\x00\x00\x00\x00\x00\x00", 1), 0, 0))
	if again := read(root, 1, 2); again != read(root, 1, 2) {
		t.Error("the same name gives different bytes")
	}
}

// A derived seed is HMAC-SHA-256: the judge is crypto/hmac. All ways to it agree.
func TestDeriveIsHMAC(t *testing.T) {
	for length := range 200 {
		seed := FromInteger(uint64(length))
		name, index := strings.Repeat("n", length), make([]uint64, length%4)
		mac := hmac.New(sha256.New, seed[:])
		binary.Write(mac, binary.BigEndian, uint64(length))
		mac.Write([]byte(name))
		for i := range index {
			index[i] = uint64(length)<<32 + uint64(i)
			binary.Write(mac, binary.BigEndian, index[i])
		}
		want := Seed(mac.Sum(nil))
		if seed.Derive(name, index...) != want || *seed.DeriveSecret(name, index...) != want {
			t.Errorf("a name of %d bytes and %d indices: not HMAC-SHA-256", length, len(index))
		}
		if seed.DeriveStream(name, index...).Uint64() != want.Stream().Uint64() {
			t.Errorf("a name of %d bytes and %d indices: another stream", length, len(index))
		}
		if seed != FromInteger(uint64(length)) {
			t.Fatal("deriving changes the seed")
		}
	}
}

func TestFromSystem(t *testing.T) {
	a, err := FromSystem()
	if err != nil {
		t.Fatal(err)
	}
	b, err := FromSystem()
	if err != nil || *a == *b || *a == (Seed{}) {
		t.Errorf("two seeds from the system, equal or 0: %v", err)
	}
}

func TestUint64MatchesFill(t *testing.T) {
	a, b := FromInteger(3).Stream(), FromInteger(3).Stream()
	var odd [5]byte
	a.Fill(odd[:])
	b.Fill(odd[:])
	for range 1000 {
		var w [8]byte
		a.Fill(w[:])
		if got, want := b.Uint64(), binary.LittleEndian.Uint64(w[:]); got != want {
			t.Fatalf("Uint64 gave %x, Fill %x", got, want)
		}
	}
}

func TestNothingAllocated(t *testing.T) {
	s := FromInteger(3).Stream()
	buf, residues := make([]byte, 10000), make([]uint64, 1000)
	round := uint32(0)
	if n := testing.AllocsPerRun(100, func() {
		round++
		s.Start(round, 0)
		s.Fill(buf)
		s.Uint64()
		s.Uniform(residues, 257)
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func TestWipe(t *testing.T) {
	for _, path := range vector.Paths() {
		if path.Lacks() != "" {
			continue
		}
		seed := FromInteger(3)
		s := newStreamOn(&seed, path)
		s.Uint64()
		old := s.sealer
		s.Wipe()
		seed.Wipe()
		if s.buf != [chunkSize + tagSize]byte{} || seed != (Seed{}) || s.sealer != (sealer{}) {
			t.Errorf("%v: bytes are left after Wipe", path)
		}
		kept := reflect.ValueOf(s.vectors)
		if f := kept.FieldByName("schedule"); f.IsValid() && !f.IsZero() {
			t.Errorf("%v: a key is left after Wipe", path)
		}
		for _, cipher := range []any{old.block, old.aead} {
			if cipher == nil {
				continue
			}
			if v := reflect.ValueOf(cipher).Elem(); !v.IsZero() {
				t.Errorf("%v: a %v is left after Wipe that is not 0", path, v.Type())
			}
		}
		s.Wipe() // does nothing
	}
}

func BenchmarkFill(b *testing.B) {
	s := FromInteger(3).Stream()
	buf := make([]byte, 1<<15)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		s.Start(1, 0)
		s.Fill(buf)
	}
}
