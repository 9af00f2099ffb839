package keystream

import (
	"slices"
	"testing"

	"ringwave/crypto/secret/secrettest"
)

// Seeds are searched for in the process's own memory: deriving leaves no copy of a
// seed, of what was derived or of a key schedule, and Wipe leaves none at all.
func TestNoCopiesLeft(t *testing.T) {
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
