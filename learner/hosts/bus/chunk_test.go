package bus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var small = Limits{Message: 1 << 16, Sender: 1 << 17, Unfinished: 4, Total: 1 << 18, Stale: time.Minute}

// chunksOf returns the chunks of a payload, of 1 KiB each.
func chunksOf(t testing.TB, id uint64, payload []byte) (list [][]byte) {
	t.Helper()
	var name [idSize]byte
	binary.BigEndian.PutUint64(name[:], id)
	if err := split(payload, name, leastChunk, func(c []byte) error {
		list = append(list, bytes.Clone(c))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

func payloadOf(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

var began = time.Unix(1e9, 0)

// checkHeld says whether an assembler counts what it keeps, and keeps to its limits.
func checkHeld(t testing.TB, a *assembler) {
	t.Helper()
	all := 0
	for name, s := range a.senders {
		of := 0
		for _, p := range s.unfinished {
			n := overhead + len(p.parts)*perChunk
			for _, part := range p.parts {
				n += len(part)
			}
			if n != p.held || p.missing == 0 {
				t.Fatalf("%s: a message of %d bytes counts as %d, with %d chunks missing", name, n, p.held, p.missing)
			}
			of += n
		}
		if of != s.held || of > a.limits.Sender || len(s.unfinished) > a.limits.Unfinished {
			t.Fatalf("%s: %d bytes of %d messages, counted as %d", name, of, len(s.unfinished), s.held)
		}
		all += of
	}
	if all != a.held || all > a.limits.Total {
		t.Fatalf("%d bytes in all, counted as %d", all, a.held)
	}
}

// Chunks of several messages in any order, each up to three times, give each message once,
// and nothing is left.
func TestReassembly(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		a := newAssembler(small)
		var all [][]byte
		want := map[string]int{}
		for id := range uint64(3) {
			payload := payloadOf(random, random.IntN(20*leastChunk))
			want[string(payload)]++
			for _, c := range chunksOf(t, id+1, payload) {
				for range 1 + random.IntN(3) {
					all = append(all, c)
				}
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, c := range all {
			m, err := a.take("rw.r.device.1.x", "", c, began)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if m != nil {
				if want[string(m.Payload)]--; m.Digest != sha256.Sum256(m.Payload) || m.Subject != "rw.r.device.1.x" {
					t.Errorf("seed %d: %s, %x", seed, m.Subject, m.Digest)
				}
			}
			checkHeld(t, a)
		}
		for payload, n := range want {
			if n != 0 {
				t.Errorf("seed %d: a message of %d bytes came %d times", seed, len(payload), 1-n)
			}
		}
		if a.held != 0 {
			t.Errorf("seed %d: %d bytes are left", seed, a.held)
		}
	}
}

// A chunk that is not what its sender sent is dropped, with what it belongs to where that
// cannot be told apart.
func TestDamagedChunks(t *testing.T) {
	payload := payloadOf(rand.New(rand.NewPCG(1, 1)), 3*leastChunk)
	good := chunksOf(t, 1, payload)
	at := len(magic) + idSize
	for want, change := range map[string]func(c []byte) []byte{
		"it is no chunk of a message":                   func(c []byte) []byte { return c[:headerSize-1] },
		"dropped: it is no chunk of a message":          func(c []byte) []byte { c[0] = 'x'; return c },
		"it has 1023 bytes in place of 1024":            func(c []byte) []byte { return c[:len(c)-1] },
		"it has 1025 bytes in place of 1024":            func(c []byte) []byte { return append(c, 1) },
		"of a message of 65537 bytes; allowed is":       func(c []byte) []byte { binary.BigEndian.PutUint32(c[at:], 1<<16+1); return c },
		"of a message of 4294967295 bytes; allowed is":  func(c []byte) []byte { binary.BigEndian.PutUint32(c[at:], 1<<32-1); return c },
		"it is chunk 1 of 0 bytes":                      func(c []byte) []byte { binary.BigEndian.PutUint32(c[at+4:], 0); return c },
		"it is chunk 1 of 1023 bytes":                   func(c []byte) []byte { binary.BigEndian.PutUint32(c[at+4:], 1023); return c },
		"it is chunk 3 of 1024 bytes of a message of 3": func(c []byte) []byte { binary.BigEndian.PutUint32(c[at+8:], 3); return c },
		"it does not fit to what came before":           func(c []byte) []byte { c[headerSize-1]++; return c },
		"its 3072 bytes are not those of its checksum":  func(c []byte) []byte { c[headerSize]++; return c },
	} {
		a := newAssembler(small)
		if m, err := a.take("rw.r.device.1.x", "", bytes.Clone(good[0]), began); m != nil || err != nil {
			t.Fatal(m, err)
		}
		_, err := a.take("rw.r.device.1.x", "", change(bytes.Clone(good[1])), began)
		if _, last := a.take("rw.r.device.1.x", "", bytes.Clone(good[2]), began); err == nil {
			err = last
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
		checkHeld(t, a)
	}
	a := newAssembler(small)
	for i, c := range []struct{ subject, reply string }{{"rw.r.device.1.x", ""}, {"rw.r.device.1.y", ""}, {"rw.r.device.1.x", "inbox"}} {
		if m, err := a.take(c.subject, c.reply, good[i], began); m != nil || (err == nil) != (i == 0) {
			t.Errorf("chunk %d for %s: %v, %v", i, c.subject, m, err)
		}
	}
}

// One sender's unfinished messages do not take the room of another's, however many.
func TestLimits(t *testing.T) {
	a := newAssembler(small)
	random := rand.New(rand.NewPCG(1, 1))
	honest := chunksOf(t, 1, payloadOf(random, 1<<16))
	for _, c := range honest[1:] {
		if _, err := a.take("rw.r.device.2.x", "", c, began); err != nil {
			t.Fatal(err)
		}
	}
	dropped := 0
	for id := range uint64(200) {
		// Many runs are still one sender's.
		subject := fmt.Sprintf("rw.r%d.device.1.x", id)
		for _, c := range chunksOf(t, 1000+id, payloadOf(random, 1<<16))[1:40] {
			if _, err := a.take(subject, "", c, began); err != nil {
				dropped++
			}
			checkHeld(t, a)
		}
	}
	if len(a.senders) != 2 || dropped != 196 && dropped < 190 {
		t.Errorf("%d senders, %d messages dropped", len(a.senders), dropped)
	}
	if m, err := a.take("rw.r.device.2.x", "", honest[0], began); m == nil || err != nil {
		t.Errorf("the other's message is lost: %v", err)
	}
	// Four senders at their bounds are beyond what all may have: who has the most gives way.
	for sender := range 8 {
		for _, c := range chunksOf(t, 5000+uint64(sender), payloadOf(random, 1<<16))[1:] {
			_, _ = a.take(fmt.Sprintf("rw.r.device.%d.x", 10+sender), "", c, began)
			checkHeld(t, a)
		}
	}
}

// Messages that are short are bounded by their number.
func TestUnfinished(t *testing.T) {
	a := newAssembler(small)
	for id := range uint64(10) {
		_, err := a.take("rw.r.device.1.x", "", chunksOf(t, id+1, make([]byte, leastChunk+1))[1], began)
		if (err != nil) != (id >= uint64(small.Unfinished)) {
			t.Errorf("message %d: %v", id, err)
		}
		checkHeld(t, a)
	}
}

// A message that waits too long for its next chunk is dropped, also when another's comes.
func TestStale(t *testing.T) {
	a := newAssembler(small)
	random := rand.New(rand.NewPCG(1, 1))
	first, second := chunksOf(t, 1, payloadOf(random, 3*leastChunk)), chunksOf(t, 2, payloadOf(random, 10))
	for i, at := range []time.Duration{0, 59 * time.Second} {
		if _, err := a.take("rw.r.device.1.x", "", first[i], began.Add(at)); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := a.take("rw.r.device.2.x", "", second[0], began.Add(118*time.Second)); m == nil || err != nil || a.held == 0 {
		t.Errorf("%v, %v, %d bytes", m, err, a.held)
	}
	third := chunksOf(t, 3, payloadOf(random, 10))
	m, err := a.take("rw.r.device.2.x", "", third[0], began.Add(134*time.Second))
	if m == nil || err == nil || !strings.Contains(err.Error(), "a message for \"rw.r.device.1.x\" is dropped: 1 of its 3 chunks have not come within 1m0s") || a.held != 0 {
		t.Errorf("%v, %v, %d bytes", m, err, a.held)
	}
}

// Who sends is told by what the sender cannot choose.
func TestSenderOf(t *testing.T) {
	for subject, want := range map[string]string{
		"rw.a.device.7.x": "device.7", "rw.b.device.7.y.z": "device.7", "rw.a.air.7.x": "air.7", "rw.a.ask.7.x": "ask", "rw.a.super.x.y": "super",
		"rw.a.server.all.x": "server", "inbox.observer.x.y": "inbox", "x": "x", "rw.a": "rw", "rw.a.device.7": "device",
	} {
		if got := senderOf(subject); got != want {
			t.Errorf("%s: %s, not %s", subject, got, want)
		}
	}
}

// Limits that are none are refused.
func TestLimitsCheck(t *testing.T) {
	if err := DefaultLimits().check(); err != nil {
		t.Error(err)
	}
	for i, change := range []func(l *Limits){
		func(l *Limits) { l.Message = 0 }, func(l *Limits) { l.Message = 1<<30 + 1 }, func(l *Limits) { l.Sender = l.needs() - 1 },
		func(l *Limits) { l.Total = l.Sender - 1 }, func(l *Limits) { l.Unfinished = 0 }, func(l *Limits) { l.Stale = 0 },
	} {
		l := DefaultLimits()
		if change(&l); l.check() == nil {
			t.Errorf("%d: %+v is taken", i, l)
		}
	}
}

// Whatever comes, in whatever order: what is kept is within the limits, and what is given is
// what its checksum says.
func FuzzReassembly(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 1))
	var some []byte
	for _, c := range slices.Concat(chunksOf(f, 1, payloadOf(random, 3000)), chunksOf(f, 2, nil)) {
		some = binary.BigEndian.AppendUint16(some, uint16(len(c)))
		some = append(some, c...)
	}
	f.Add(some, uint8(1))
	f.Add([]byte{0, 3, 1, 2, 3}, uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, senders uint8) {
		a := newAssembler(small)
		now := began
		for i := 0; len(data) >= 2; i++ {
			n := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
			m, _ := a.take(fmt.Sprintf("rw.r.device.%d.x", i%(int(senders)+1)), "", data[2:2+n], now)
			data, now = data[2+n:], now.Add(time.Second)
			if m != nil && (sha256.Sum256(m.Payload) != m.Digest || len(m.Payload) > small.Message) {
				t.Fatalf("%d bytes with another checksum", len(m.Payload))
			}
			checkHeld(t, a)
		}
	})
}
