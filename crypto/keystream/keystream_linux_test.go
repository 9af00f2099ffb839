package keystream

import (
	"crypto/sha256"
	"encoding"
	"slices"
	"testing"

	"ringwave/crypto/secret"
	"ringwave/crypto/secret/secrettest"
)

// Seeds are searched for in the process's own memory: deriving leaves no copy of a
// seed, of what was derived or of a key schedule, and Wipe leaves none at all.
func TestNoCopiesLeft(t *testing.T) {
	if !secrettest.Unpreempted(t) {
		return
	}
	root, err := FromSystem()
	if err != nil {
		t.Fatal(err)
	}
	var needles secrettest.Needles
	find := func(want ...string) {
		t.Helper()
		found, err := needles.Find()
		if err != nil {
			t.Fatal(err)
		}
		if got := secrettest.Names(found); !slices.Equal(got, want) {
			t.Errorf("found %v, expected %v", got, want)
		}
		for name, n := range found {
			if n > 1 && name != "stream's key" { // the cipher and its mode have one each
				t.Errorf("found %d copies of the %s", n, name)
			}
		}
	}
	needles.Add("root", root[:])
	addHMAC(&needles, root)
	derived := root.DeriveSecret("derived", 1)
	needles.Add("derived seed", derived[:])
	key := derived.DeriveSecret("stream")
	needles.Add("stream's key", key[:])
	find("derived seed", "root", "stream's key")
	key.Wipe()
	find("derived seed", "root")

	stream := derived.DeriveStream("stream")
	find("derived seed", "root", "stream's key") // at the start of its schedule
	var drawn [4096]byte
	stream.Fill(drawn[:])
	needles.Add("stream", drawn[chunkSize:chunkSize+64])
	clear(drawn[:])
	find("derived seed", "root", "stream", "stream's key")
	stream.Wipe()
	derived.Wipe()
	find("root")
	root.Wipe()
	find()
}

// addHMAC adds what HMAC makes of a key alone: the masked key and the state of the hash
// behind it, which serves as well as the key does.
func addHMAC(needles *secrettest.Needles, key *Seed) {
	for name, mask := range map[string]byte{"inner": innerPad, "outer": outerPad} {
		block, hash, state := new([sha256.BlockSize]byte), sha256.New(), make([]byte, 0, 256)
		secret.Do(func() {
			key.pad(block, mask)
			hash.Write(block[:])
			state, _ = hash.(encoding.BinaryAppender).AppendBinary(state)
		})
		needles.Add(name+" key block", block[:32])
		needles.Add(name+" hash state", state[len("sha\x03"):][:sha256.Size])
		clear(block[:])
		clear(state)
		secret.Clear(hash)
	}
}
