package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"reflect"
	"testing"
	"unsafe"
)

// memory returns the bytes of what x points at.
func memory(x any) []byte {
	v := reflect.ValueOf(x)
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Elem().Type().Size())
}

func nonzero(b []byte) (n int) {
	for _, x := range b {
		if x != 0 {
			n++
		}
	}
	return n
}

// The ciphers and hashes of the standard library keep nothing that Clear does not
// reach: otherwise a new version of Go has another layout, and Clear must follow.
func TestClearStandardLibrary(t *testing.T) {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i + 1)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	hash.Write(key)
	for name, x := range map[string]any{"AES": block, "AES-GCM": aead, "SHA-256": hash} {
		held := memory(x)
		if nonzero(held) < 32 {
			t.Errorf("%s: %d bytes are not 0 before Clear: the test looks at the wrong place", name, nonzero(held))
		}
		if !Clear(x) {
			t.Errorf("%s: Clear did not reach all of a %T", name, x)
		}
		if n := nonzero(held); n != 0 {
			t.Errorf("%s: %d bytes are not 0 after Clear", name, n)
		}
	}
}

func TestClearLeavesPointers(t *testing.T) {
	type inner struct {
		key  [3]uint16
		next *int
	}
	type object struct {
		a      [2]inner
		plain  struct{ x, y float64 }
		secret []byte
		on     bool
	}
	n, secret := 7, []byte{1, 2, 3}
	x := &object{secret: secret, on: true}
	x.plain.x, x.plain.y = 1, 2
	for i := range x.a {
		x.a[i] = inner{key: [3]uint16{1, 2, 3}, next: &n}
	}
	if Clear(x) {
		t.Error("Clear reports that it cleared pointers")
	}
	want := object{secret: secret, a: [2]inner{{next: &n}, {next: &n}}}
	if !reflect.DeepEqual(*x, want) || n != 7 || secret[0] != 1 {
		t.Errorf("after Clear: %+v, %d, %v", *x, n, secret)
	}
	if Clear(nil) || Clear(7) || Clear((*int)(nil)) {
		t.Error("Clear reports that it cleared what cannot be")
	}
}

func TestDoRunsAndAllocatesNothing(t *testing.T) {
	ran := 0
	if n := testing.AllocsPerRun(100, func() { Do(func() { ran++ }) }); n != 0 || ran != 101 {
		t.Errorf("%v allocations, %d runs", n, ran)
	}
}

func BenchmarkDo(b *testing.B) {
	n := 0
	for b.Loop() {
		Do(func() { n++ })
	}
}
