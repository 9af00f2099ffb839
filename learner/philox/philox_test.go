package philox

import (
	"fmt"
	"slices"
	"testing"
)

// TestBlock has the known answers that Random123 publishes (kat_vectors, philox4x64 10).
func TestBlock(t *testing.T) {
	ones := ^uint64(0)
	for _, v := range []struct {
		counter [4]uint64
		key     [2]uint64
		want    string
	}{
		{[4]uint64{}, [2]uint64{}, "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"},
		{[4]uint64{ones, ones, ones, ones}, [2]uint64{ones, ones}, "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0"},
		{[4]uint64{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89}, [2]uint64{0x452821e638d01377, 0xbe5466cf34e90c6c},
			"a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6"},
	} {
		b := block(v.counter, v.key)
		if got := fmt.Sprintf("%016x %016x %016x %016x", b[0], b[1], b[2], b[3]); got != v.want {
			t.Errorf("counter %x, key %x: got %s, want %s", v.counter, v.key, got, v.want)
		}
	}
}

// What NumPy 1.24.2 gives: numpy.random.Philox(key=1234567890123).random_raw(6).
func TestNumPy(t *testing.T) {
	want := []uint64{0xf6bca3ddfa3b727c, 0x4a451bb136559668, 0x36a881b668290ee1, 0x17f8857e19c100a8, 0x2119e1816f6f835e, 0xd9163187184d4185}
	g := New(1234567890123)
	var got []uint64
	for range want {
		got = append(got, g.Uint64())
	}
	if !slices.Equal(got, want) {
		t.Errorf("words are %d, NumPy's are %d", got, want)
	}
}
