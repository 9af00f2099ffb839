package usbip_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"ringwave/radio/virtual"
	"ringwave/radio/virtual/usbip"
)

const patience = 20 * time.Second

// kernel is the other side of the wire.
type kernel struct {
	t    *testing.T
	conn net.Conn
	// ended gets what Serve gives.
	ended    chan error
	sequence uint32
}

func serve(t *testing.T, board virtual.Board) *kernel {
	t.Helper()
	ours, theirs := net.Pipe()
	if err := ours.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	k := &kernel{t: t, conn: ours, ended: make(chan error, 1)}
	go func() { k.ended <- usbip.Serve(theirs, board) }()
	return k
}

// close closes the kernel's side and checks that the server ends well.
func (k *kernel) close() {
	k.t.Helper()
	k.conn.Close()
	if err := <-k.ended; err != nil {
		k.t.Error(err)
	}
}

func (k *kernel) send(b []byte) {
	k.t.Helper()
	if _, err := k.conn.Write(b); err != nil {
		k.t.Fatal(err)
	}
}

// message makes a header by the protocol's tables.
func message(words ...uint32) []byte {
	b := make([]byte, 48)
	for i, w := range words {
		binary.BigEndian.PutUint32(b[4*i:], w)
	}
	return b
}

// submit sends a transfer, and gives its sequence number.
func (k *kernel) submit(in uint32, endpoint, length uint32, setup string, data []byte) uint32 {
	k.t.Helper()
	k.sequence++
	b := message(1, k.sequence, 0x10002, in, endpoint, 0, length, 0, 0xffffffff, 0)
	if setup != "" {
		raw, err := hex.DecodeString(setup)
		if err != nil {
			k.t.Fatal(err)
		}
		copy(b[40:], raw)
	}
	k.send(append(b, data...))
	return k.sequence
}

func (k *kernel) unlink(victim uint32) uint32 {
	k.t.Helper()
	k.sequence++
	k.send(message(2, k.sequence, 0x10002, 0, 0, victim))
	return k.sequence
}

// answer is what the server says.
type answer struct {
	command, sequence uint32
	status            int32
	actual            int
	data              []byte
}

// next reads an answer; in tells whether data follow the one to a submit.
func (k *kernel) next(in func(sequence uint32) bool) answer {
	k.t.Helper()
	var b [48]byte
	if _, err := io.ReadFull(k.conn, b[:]); err != nil {
		k.t.Fatal(err)
	}
	a := answer{
		command: binary.BigEndian.Uint32(b[0:]), sequence: binary.BigEndian.Uint32(b[4:]),
		status: int32(binary.BigEndian.Uint32(b[20:])),
	}
	if a.command == 3 {
		a.actual = int(binary.BigEndian.Uint32(b[24:]))
		if in(a.sequence) {
			a.data = make([]byte, a.actual)
			if _, err := io.ReadFull(k.conn, a.data); err != nil {
				k.t.Fatal(err)
			}
		}
	}
	return a
}

func incoming(uint32) bool { return true }
func outgoing(uint32) bool { return false }

func newBoard(t *testing.T) *virtual.HackRF {
	t.Helper()
	h, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: "0000000000000000a06063c8234e5f5f"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := virtual.NewBench(virtual.Config{Boards: []virtual.Place{{Radio: h}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return h
}

// noLeaks fails the test if it leaves goroutines behind. Call it first.
func noLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines were left, before there were %d", runtime.NumGoroutine(), before)
			}
		}
	})
}

// TestEnumeration asks what Linux asks of a new device.
func TestEnumeration(t *testing.T) {
	noLeaks(t)
	k := serve(t, newBoard(t))
	defer k.close()
	for _, c := range []struct {
		name, setup string
		length      uint32
		want        string
	}{
		{"device", "8006000100004000", 64, "1201000200000040501d89600601010204" + "01"},
		{"qualifier", "8006000600000a00", 10, "0a060002000000400100"},
		{"configuration", "8006000200000900", 9, "0902200001010380fa"},
		{"languages", "800600030000ff00", 255, "04030904"},
	} {
		n := k.submit(1, 0, c.length, c.setup, nil)
		a := k.next(incoming)
		if a.command != 3 || a.sequence != n || a.status != 0 || hex.EncodeToString(a.data) != c.want {
			t.Errorf("%s: %+v, want %s", c.name, a, c.want)
		}
	}
	n := k.submit(0, 0, 0, "0009010000000000", nil)
	if a := k.next(outgoing); a.command != 3 || a.sequence != n || a.status != 0 {
		t.Errorf("setting the configuration: %+v", a)
	}
	k.submit(1, 0, 8, "c00d000000000800", nil)
	if a := k.next(incoming); a.status != -32 || a.actual != 0 {
		t.Errorf("an unknown request: %+v, want a stall", a)
	}
}

// TestTransfers: requests with data, and bulk data in and out.
func TestTransfers(t *testing.T) {
	noLeaks(t)
	h := newBoard(t)
	k := serve(t, h)
	defer k.close()
	rate, _ := hex.DecodeString("002d310101000000")
	k.submit(0, 0, 8, "4006000000000800", rate)
	if a := k.next(outgoing); a.status != 0 || a.actual != 8 {
		t.Errorf("setting the rate: %+v", a)
	}
	if r := h.Settings().Rate; r != 20e6 {
		t.Errorf("the rate is %v, want 20 MHz", r)
	}
	// Pending transfers hold up no requests.
	first := k.submit(1, 1, 32768, "", nil)
	second := k.submit(1, 1, 32768, "", nil)
	k.submit(0, 0, 0, "4001010000000000", nil)
	done := map[uint32]bool{}
	for range 3 {
		a := k.next(func(sequence uint32) bool { return sequence == first || sequence == second })
		if a.sequence == second && !done[first] {
			t.Error("transfers ended out of order")
		}
		if a.status != 0 || a.data != nil && len(a.data) != 32768 {
			t.Errorf("answer %d is %d with %d bytes", a.sequence, a.status, len(a.data))
		}
		done[a.sequence] = true
	}
	k.submit(0, 0, 0, "4001020000000000", nil)
	k.next(outgoing)
	k.submit(0, 2, 32768, "", bytes.Repeat([]byte{1, 2}, 16384))
	if a := k.next(outgoing); a.status != 0 || a.actual != 32768 {
		t.Errorf("sending: %+v", a)
	}
	if m := h.M0(); m.M0Count != 32768 {
		t.Errorf("counters are %+v", m)
	}
}

// TestUnlink: a pending transfer is given back without an answer of its own; of one
// that has ended, the kernel hears that it was too late.
func TestUnlink(t *testing.T) {
	noLeaks(t)
	k := serve(t, newBoard(t))
	defer k.close()
	n := k.submit(1, 1, 512, "", nil) // the board is off
	u := k.unlink(n)
	if a := k.next(incoming); a.command != 4 || a.sequence != u || a.status != -104 {
		t.Errorf("unlinking a pending transfer: %+v", a)
	}
	n = k.submit(1, 0, 1, "c00e000000000100", nil)
	if a := k.next(incoming); a.command != 3 || a.sequence != n {
		t.Errorf("a request: %+v", a)
	}
	u = k.unlink(n)
	if a := k.next(incoming); a.command != 4 || a.sequence != u || a.status != 0 {
		t.Errorf("unlinking one that has ended: %+v", a)
	}
}

// TestUnlinkRace: while the board fills transfers, each is unlinked as well. Of each,
// the kernel hears either that it ended and then that the unlink was late, or that
// it was unlinked; and no sample of those in between is lost.
func TestUnlinkRace(t *testing.T) {
	noLeaks(t)
	h := newBoard(t)
	f := virtual.NewFaulty(h)
	k := serve(t, f)
	defer k.close()
	k.submit(0, 0, 0, "4001010000000000", nil)
	k.next(outgoing)
	const rounds = 300
	received := 0
	for range rounds {
		n := k.submit(1, 1, 16384, "", nil)
		u := make(chan uint32, 1)
		// net.Pipe has no buffer: what is sent needs a reader, and the other way round.
		go func() { u <- k.unlink(n) }()
		a := k.next(incoming)
		if a.command == 3 {
			if a.sequence != n || a.status != 0 || len(a.data) != 16384 {
				t.Fatalf("the transfer: %+v", a.status)
			}
			received += len(a.data)
			a = k.next(incoming)
			if a.status != 0 {
				t.Fatalf("a late unlink: %d, want 0", a.status)
			}
		} else if a.status != -104 {
			t.Fatalf("an unlink: %d, want -104", a.status)
		}
		if a.command != 4 || a.sequence != <-u {
			t.Fatalf("the unlink: %+v", a)
		}
	}
	// In lock-step the board makes no more than its host asks for.
	if m := h.M0(); int(m.M0Count) > received+16384 {
		t.Errorf("%d bytes were made and %d received", m.M0Count, received)
	}
}

// TestHangingRequest: a request that hangs is unlinked like any other.
func TestHangingRequest(t *testing.T) {
	noLeaks(t)
	f := virtual.NewFaulty(newBoard(t))
	if err := f.OnRequest(14, 1, virtual.Hang); err != nil {
		t.Fatal(err)
	}
	k := serve(t, f)
	defer k.close()
	n := k.submit(1, 0, 1, "c00e000000000100", nil)
	u := k.unlink(n)
	if a := k.next(incoming); a.command != 4 || a.sequence != u || a.status != -104 {
		t.Errorf("unlinking: %+v", a)
	}
	k.submit(1, 0, 1, "c00e000000000100", nil)
	if a := k.next(incoming); a.status != 0 || !bytes.Equal(a.data, []byte{2}) {
		t.Errorf("the request after: %+v", a)
	}
}

// TestUnplugged: an unplugged board ends all that is pending.
func TestUnplugged(t *testing.T) {
	noLeaks(t)
	h := newBoard(t)
	k := serve(t, h)
	defer k.close()
	n := k.submit(1, 1, 512, "", nil)
	h.Unplug()
	if a := k.next(incoming); a.sequence != n || a.status != -108 {
		t.Errorf("the transfer: %+v", a)
	}
}

// TestEnds: the server takes back what is pending when the connection ends.
func TestEnds(t *testing.T) {
	noLeaks(t)
	h := newBoard(t)
	k := serve(t, h)
	k.submit(1, 1, 512, "", nil)
	k.close()
	// The transfer is gone from the board: the next one gets the first bytes.
	if _, err := h.Control(context.Background(), virtual.Setup{RequestType: 0x40, Request: 1, Value: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if n, err := h.In(context.Background(), 0x81, make([]byte, 512)); n != 512 || err != nil {
		t.Errorf("the next transfer gives %d bytes and %v", n, err)
	}
	if m := h.M0(); m.M0Count != 16384 {
		t.Errorf("counters are %+v, want one block", m)
	}
}

func TestBadCommands(t *testing.T) {
	noLeaks(t)
	for _, c := range []struct {
		message []byte
		want    string
	}{
		{message(7, 1), "command 7"},
		{message(1, 1, 0, 1, 16), "endpoint 16"},
		{message(1, 1, 0, 1, 1, 0, 1<<30), "at most"},
		{message(1, 1, 0, 1, 1, 0, 512, 0, 8), "isochronous"},
		{append(message(1, 1, 0, 1, 1, 0, 512), message(1, 1, 0, 1, 1, 0, 512)...), "twice"},
		{message(1, 1)[:20], "unexpected EOF"},
	} {
		k := serve(t, newBoard(t))
		k.send(c.message)
		if len(c.message) < 48 {
			k.conn.Close()
		}
		if err := <-k.ended; err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		k.conn.Close()
	}
}
