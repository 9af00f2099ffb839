package frame

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"ringwave/crypto/keystream"
	"ringwave/phy/digit"
	"ringwave/phy/zq"
)

// The symbols of the first format are those that its last program sent, and are read
// behind any pattern.
func TestFormat1(t *testing.T) {
	m := testModulus(t, 0x3ffffffffd6001, 0x7ffffffffb4001)
	codec, err := digit.New(m, 3)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPayload1(m, codec, 130, 50, patternWord)
	if err != nil {
		t.Fatal(err)
	}
	p.Draw1(keystream.FromInteger(4).Derive("payload", 2), 7, 1)
	symbols, scratch, none := make([]int8, p.Symbols()), p.NewScratch(), m.NewVector(0)
	x := randomVector(m, 130, keystream.FromInteger(9).Stream())
	p.Encode(symbols, x, scratch)
	p.EncodeChecks(symbols, none, scratch)
	bytes, y := make([]byte, len(symbols)), make([]int32, len(symbols))
	for k, s := range symbols {
		bytes[k], y[k] = byte(s), -3*int32(s)
	}
	sum := sha256.Sum256(bytes)
	if got := hex.EncodeToString(sum[:]); got != "a00d586801a6d0264f253d5a9afda70184120ab0195e8e164e527940e6757fe1" {
		t.Errorf("%d symbols of hash %s", len(symbols), got)
	}
	got := zq.Vector(m.NewVector(130))
	pattern := make([]int64, patternWord)
	pattern[5] = 1
	for i := range p.Blocks() {
		from, to := p.BlockSymbols(i)
		if !p.DecodeBlock(got, i, y[from:to], pattern) {
			t.Errorf("block %d was refused", i)
		}
		y[from]++
		if p.DecodeBlock(got, i, y[from:to], pattern) {
			t.Errorf("block %d passed with a wrong digit", i)
		}
	}
}
