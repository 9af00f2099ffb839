package xmkckks

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"ringwave/crypto/keystream"
	"ringwave/crypto/sampler"
	"ringwave/crypto/secret"
	"ringwave/crypto/secret/secrettest"
	"ringwave/phy/zq"
)

// Each secret of a device is searched for in the process's own memory: those of an
// epoch are gone at the next, all are gone after Close. Before, the search finds what
// the device holds.
func TestNoSecretLeftInMemory(t *testing.T) {
	if !secrettest.Unpreempted(t) {
		return
	}
	for _, x := range []struct {
		set      string // with wide or with small e*
		form     Form
		messages int
	}{{"ringwave-4096", Whole, 1}, {"ringwave-4096", Short, 32}, {"paper-4096", Short, 1}} {
		t.Run(fmt.Sprintf("%s, %v, %d messages", x.set, x.form, x.messages), func(t *testing.T) {
			c, err := NewContext(testSet(t, x.set), x.form, x.messages, 2, keystream.FromInteger(1))
			if err != nil {
				t.Fatal(err)
			}
			d := systemDevice(t, c)
			var needles secrettest.Needles
			needles.Add("seed", d.cfg.Seed[:])

			someRounds(t, c, d, 1)
			held := append(holds(t, &needles, d), "seed")
			expectFound(t, "in epoch 0", &needles, held)

			if err := d.NewEpoch(1); err != nil {
				t.Fatal(err)
			}
			someRounds(t, c, d, 4)
			held = append(holds(t, &needles, d), "seed")
			expectFound(t, "in epoch 1", &needles, held)

			d.Close()
			expectFound(t, "after Close", &needles, nil)
		})
	}
}

// systemDevice makes a device whose secrets nobody else has.
func systemDevice(t *testing.T, c *Context) *Device {
	t.Helper()
	seed, err := keystream.FromSystem()
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.NewDevice(DeviceConfig{Mu: 1, DeltaMax: 1, Seed: seed, Guard: NewLedger(1 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// someDelta is a value of Delta f whose message has no word of zeros.
const someDelta = -0.3

// someRounds carries rounds from the first on, on a goroutine of their own, as an engine
// does.
func someRounds(t *testing.T, c *Context, d *Device, first uint32) {
	t.Helper()
	key, c1 := c.NewAggregatedKey(), c.NewAggregatedC1()
	c.SetKey(key, d.PublicKey())
	deltas := make([]float64, c.Messages)
	for p := range deltas {
		deltas[p] = someDelta
	}
	round := func(k uint32) error {
		if err := d.Prepare(k, 0); err != nil {
			return err
		}
		if _, err := d.Encrypt(key, deltas); err != nil {
			return err
		}
		c.SetC1(c1, d.c1)
		_, err := d.Share(c1)
		return err
	}
	done := make(chan error)
	go func() {
		var err error
		for k := first; k < first+3 && err == nil; k++ {
			err = round(k)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// holds adds what the device holds of its epoch, and the seeds from which it drew it,
// to the needles, and returns the names of what the device holds.
func holds(t *testing.T, needles *secrettest.Needles, d *Device) (names []string) {
	t.Helper()
	notHeld := func(name string, secret []byte) string {
		name = fmt.Sprintf("%s of epoch %d", name, d.epoch)
		needles.Add(name, secret)
		return name
	}
	add := func(name string, secret []byte) { names = append(names, notHeld(name, secret)) }
	for name, x := range map[string][]int8{"s": d.s, "v": d.v, "e0": d.e0, "e1": d.e1, "sInner": d.sInner, "vInner": d.vInner, "small e*": d.small} {
		if len(x) >= 64 {
			add(name, telling(t, name, bytesOf(x)))
		}
	}
	for name, x := range map[string]zq.Vector{"sNTT": d.sNTT.Memory(), "vNTT": d.vNTT.Memory()} {
		if x != nil {
			add(name, telling(t, name, bytesOf(x[0])))
		}
	}
	if d.full != nil {
		add("s c~1", telling(t, "s c~1", bytesOf(d.full[0])))
	}
	if d.narrow != nil {
		add("narrow e*", bytesOf(d.narrow)[:32])
	}
	if d.flood != nil {
		add("wide e*", bytesOf(d.flood)[:32])
	}
	secret.Do(func() {
		m := []sampler.Int128{encode(someDelta, d.ctx.Params.LogLambda)}
		notHeld("message", bytesOf(m))
		clear(m)
	})

	epoch := d.cfg.Seed.DeriveSecret("key epoch", uint64(d.epoch))
	defer epoch.Wipe()
	notHeld("seed", epoch[:])
	for _, name := range []string{"v", "e0", "e1", "e*"} {
		key := epoch.DeriveSecret(name)
		add("key of "+name, key[:])
		key.Wipe()
	}
	key := epoch.DeriveSecret("s and e")
	notHeld("key of s and e", key[:])
	key.Wipe()
	return names
}

// telling returns 64 bytes of x that no other memory has by chance, and that do not
// begin with a word of zeros.
func telling(t *testing.T, name string, x []byte) []byte {
	t.Helper()
	for ; len(x) >= 64; x = x[8:] {
		if binary.LittleEndian.Uint64(x) != 0 {
			return x[:64]
		}
	}
	t.Fatalf("%s is 0", name)
	return nil
}

func bytesOf[T int8 | int64 | uint64 | sampler.Int128](x []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(one)))
}

// expectFound searches for the needles, of which those of the given names, and no
// others, must be there.
func expectFound(t *testing.T, when string, needles *secrettest.Needles, want []string) {
	t.Helper()
	found, err := needles.Find()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if got := secrettest.Names(found); !slices.Equal(got, want) {
		t.Errorf("%s: found %v, expected %v", when, got, want)
	}
}
