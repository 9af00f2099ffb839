package hackrf_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ringwave/radio"
	"ringwave/radio/hackrf"
	"ringwave/radio/loopback"
	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// patience bounds every wait of these tests; none comes near it unless something
// hangs.
const patience = 20 * time.Second

func ok(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// limited returns a context that ends before a test hangs.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// anything permits what these tests send.
func anything(t testing.TB) radio.TransmitPermit {
	p, err := radio.NewTransmitPermit(radio.Span[radio.Hertz]{Min: 1e6, Max: 6e9}, 0, 58)
	ok(t, err)
	return p.WithBias()
}

// serial returns the serial number of board i.
func serial(i int) string { return fmt.Sprintf("0000000000000000%016x", 0xa0+i) }

// rig is a bench with boards and their host.
type rig struct {
	t      testing.TB
	bench  *virtual.Bench
	boards []*virtual.HackRF
	faulty []*virtual.Faulty // the boards as they are plugged in, where things go wrong
	host   usb.Host
	guard  *virtual.Guard
	opener *hackrf.Opener
	cut    context.CancelFunc // ends the session
}

// front plugs boards into a host for the test: one in this process, or what else a
// build has.
var front = inProcess

func inProcess(_ testing.TB, boards []virtual.Board) usb.Host { return virtual.NewHost(boards...) }

// rigConfig says how a rig is built: every board but the last is heard by the
// last.
type rigConfig struct {
	boards    int
	api       uint16
	clock     loopback.Clock // nil for lock-step
	triggers  []virtual.Wire
	reference bool
	faults    bool                  // things will go wrong
	permit    *radio.TransmitPermit // nil for anything
}

func newRig(t testing.TB, c rigConfig) *rig {
	r := &rig{t: t, guard: virtual.NewGuard()}
	cfg := virtual.Config{Clock: c.clock, Triggers: c.triggers}
	var plugged []virtual.Board
	for i := range c.boards {
		b, err := virtual.NewHackRF(virtual.HackRFConfig{Serial: serial(i), API: c.api, Reference: &virtual.Gains{}})
		ok(t, err)
		r.boards = append(r.boards, b)
		if c.faults {
			f := virtual.NewFaulty(b)
			r.faulty, plugged = append(r.faulty, f), append(plugged, f)
		} else {
			plugged = append(plugged, b)
		}
		cfg.Boards = append(cfg.Boards, virtual.Place{Radio: b, Reference: c.reference})
		if last := c.boards - 1; i < last {
			cfg.Links = append(cfg.Links, virtual.Link{From: i, To: last, Gain: 1})
		}
	}
	if c.clock == nil { // nothing happens before all stream
		for i := range c.boards {
			cfg.Await = append(cfg.Await, i)
		}
	}
	var err error
	r.bench, err = virtual.NewBench(cfg)
	ok(t, err)
	t.Cleanup(func() { ok(t, r.bench.Close()) })
	r.host = front(t, plugged)
	permit := anything(t)
	if c.permit != nil {
		permit = *c.permit
	}
	session, cut := context.WithCancel(context.Background())
	t.Cleanup(cut)
	r.cut = cut
	r.opener = hackrf.NewOpener(session, r.host, permit, r.guard)
	return r
}

// open opens board i; nothing may be left running when the test ends.
func (r *rig) open(i int, params string) *hackrf.Device {
	r.t.Helper()
	d, err := r.tryOpen(i, params)
	ok(r.t, err)
	r.t.Cleanup(func() {
		r.cut() // what is still to be sent is no matter
		// It may be unplugged, or switch off under protest; the tests look at that.
		_ = d.Close()
	})
	return d
}

func (r *rig) tryOpen(i int, params string) (*hackrf.Device, error) {
	u, err := radio.ParseURI("hackrf:" + serial(i)[16:] + "?" + params)
	ok(r.t, err)
	d, err := r.opener.Open(limited(r.t), u)
	if err != nil {
		return nil, err
	}
	return d.(*hackrf.Device), nil
}

// noise returns samples that 8 bits carry exactly, the same for the same seed.
func noise(seed uint64, n int) []complex64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]complex64, n)
	for k := range x {
		x[k] = complex(float32(rng.IntN(253)-126)/127, float32(rng.IntN(253)-126)/127)
	}
	return x
}

func receiver(t testing.TB, d *hackrf.Device) radio.Receiver {
	t.Helper()
	rx, err := d.OpenReceiver(limited(t))
	ok(t, err)
	return rx
}

func transmitter(t testing.TB, d *hackrf.Device) radio.Transmitter {
	t.Helper()
	tx, err := d.OpenTransmitter(limited(t))
	ok(t, err)
	return tx
}

func start(t testing.TB, streams ...radio.Stream) {
	t.Helper()
	for _, s := range streams {
		ok(t, s.Start(limited(t)))
	}
}

// find returns the position of needle in hay, -1 if it is not there.
func find(hay, needle []complex64) int {
	for k := 0; k+len(needle) <= len(hay); k++ {
		if hay[k] == needle[0] && same(hay[k:k+len(needle)], needle) {
			return k
		}
	}
	return -1
}

func same(a, b []complex64) bool {
	for k := range b {
		if a[k] != b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// lockstep are the parameters for a bench whose time waits: small transfers, so
// that little need be promised.
const lockstep = "feed=strict&hold=on&transfer=16384&deadline_ms=0&lna=0&vga=0"

// What is written arrives at the index at which it was written, to the bit, and
// zeros everywhere else.
func TestLockstep(t *testing.T) {
	for _, api := range []uint16{virtual.API2022, virtual.API2026} {
		t.Run(fmt.Sprintf("%04x", api), func(t *testing.T) {
			radiotest.Leaks(t)
			r := newRig(t, rigConfig{boards: 3, api: api})
			a, b, c := r.open(0, lockstep), r.open(1, lockstep), r.open(2, lockstep)
			tx1, tx2, rx := transmitter(t, a), transmitter(t, b), receiver(t, c)
			start(t, tx1, tx2, rx)
			ctx := limited(t)
			x, y := halves(1, 20000), halves(2, 3000)
			want := make([]complex64, 100000)
			copy(want[1000:], x)
			copy(want[50000:], y)
			_, err := tx1.Write(ctx, x, radio.TxMeta{Timed: true, Start: 1000, BurstEnd: true})
			ok(t, err)
			_, err = tx2.Write(ctx, y, radio.TxMeta{Timed: true, Start: 50000})
			ok(t, err)
			// Late: the index was passed by what is written already.
			n, err := tx2.Write(ctx, y, radio.TxMeta{Timed: true, Start: 52999})
			ok(t, err)
			if n != len(y) {
				t.Errorf("%d of %d samples of a late block taken", n, len(y))
			}
			for _, tx := range []radio.Transmitter{tx1, tx2} {
				ok(t, tx.(radio.Idler).Idle(ctx, 300000))
			}
			got := make([]complex64, len(want))
			n, meta, err := radio.ReadFull(ctx, rx, got)
			ok(t, err)
			if n != len(got) || meta.First != 0 || len(meta.Gaps) > 0 || len(meta.Changes) > 0 || meta.Flags != radio.HostCounted {
				t.Errorf("%d samples, %+v", n, meta)
			}
			if !same(got, want) {
				t.Errorf("other samples; the first block is at %d", find(got, x[:100]))
			}
			e, err := tx2.Event(ctx)
			ok(t, err)
			if e.Kind != radio.Late || e.Index != 52999 || e.Count != 3000 {
				t.Errorf("event %+v", e)
			}
			e, err = tx1.Event(ctx)
			ok(t, err)
			if e.Kind != radio.BurstSent || e.Index != 21000 || !e.Exact {
				t.Errorf("event %+v", e)
			}
			if _, ok := tx1.(radio.Pacer); ok {
				t.Error("a strict transmitter that is a Pacer")
			}
			ok(t, tx1.Close(), tx2.Close(), rx.Close(), a.Close(), b.Close(), c.Close())
			ok(t, r.bench.Close())
		})
	}
}

// halves returns samples as noise does, of which two add up to at most full scale.
func halves(seed uint64, n int) []complex64 {
	x := noise(seed, n)
	for k, v := range x {
		x[k] = complex(quantised(real(v)/2), quantised(imag(v)/2))
	}
	return x
}

func quantised(x float32) float32 { return float32(int(x*127)) / 127 }

// What was written right before Close is on air, whatever firmware flushes how.
func TestCloseFlushes(t *testing.T) {
	for _, api := range []uint16{virtual.API2018, virtual.API2022, 0x0111, virtual.API2026} {
		for _, n := range []int{1, 100, 8192, 16384, 40001, 200000} {
			t.Run(fmt.Sprintf("%04x %d", api, n), func(t *testing.T) {
				r := newRig(t, rigConfig{boards: 2, api: api})
				tx := transmitter(t, r.open(0, lockstep+"&limit_ms=0"))
				rx := receiver(t, r.open(1, lockstep+"&ring=200"))
				start(t, tx, rx)
				ctx := limited(t)
				x := noise(uint64(n), n)
				_, err := tx.Write(ctx, x, radio.TxMeta{})
				ok(t, err, tx.Close())
				got := make([]complex64, n)
				_, meta, err := radio.ReadFull(ctx, rx, got)
				ok(t, err)
				if meta.First != 0 || !same(got, x) {
					t.Errorf("%+v, other samples", meta)
				}
				if mode := r.boards[0].Settings().Mode; mode != virtual.ModeOff {
					t.Errorf("mode %d after Close", mode)
				}
			})
		}
	}
}
