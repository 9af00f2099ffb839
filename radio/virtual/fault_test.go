package virtual_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

func errorIs(err, target error) bool { return errors.Is(err, target) }

// faulty returns a receiver on a bench of its own, on which things can go wrong.
func faulty(t *testing.T) (*virtual.Faulty, driver) {
	t.Helper()
	h := radiotest.HackRF(t, virtual.HackRFConfig{})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
	f := virtual.NewFaulty(h)
	d := open(t, f)
	d.reference()
	return f, d
}

func plan(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFaultyRequests(t *testing.T) {
	radiotest.Leaks(t)
	f, d := faulty(t)
	plan(t, f.OnRequest(45, 2, virtual.Stall))
	plan(t, f.OnRequest(46, 1, virtual.Short))
	if d.in(45, 0, 1)[0] != 0x85 {
		t.Error("the request before the fault went wrong")
	}
	if _, err := d.tryIn(45, 0, 1); !errorIs(err, usb.ErrStall) {
		t.Errorf("the request gives %v, want a stall", err)
	}
	d.in(45, 0, 1)
	if got := d.in(46, 0, 4); len(got) != 3 {
		t.Errorf("%d bytes came, want 3", len(got))
	}
	// A plan that hits does not keep the others from counting.
	plan(t, f.OnRequest(45, 1, virtual.Stall))
	plan(t, f.OnRequest(45, 2, virtual.Stall))
	for i, want := range []error{usb.ErrStall, usb.ErrStall, nil} {
		if _, err := d.tryIn(45, 0, 1); !errorIs(err, want) {
			t.Errorf("request %d gives %v, want %v", i+1, err, want)
		}
	}
	plan(t, f.OnRequest(45, 1, virtual.Hang))
	if _, err := d.tr.Control(usb.Setup{RequestType: usb.VendorIn, Request: 45}, make([]byte, 1), 1); !errorIs(err, usb.ErrTimeout) {
		t.Errorf("the request gives %v, want a timeout", err)
	}
	plan(t, f.OnRequest(45, 1, virtual.Late))
	ended := make(chan error)
	go func() { _, err := d.tryIn(45, 0, 1); ended <- err }()
	for done := false; !done; { // the request may not be there yet
		f.Release()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			done = true
		default:
		}
	}
	plan(t, f.OnRequest(1, 1, virtual.Vanish))
	if err := d.tryOut(1, 1, 0, nil); !errorIs(err, usb.ErrUnplugged) {
		t.Errorf("the request gives %v, want unplugged", err)
	}
	if f.OnRequest(1, 0, virtual.Stall) == nil || f.OnTransfer(0x81, 0, virtual.Stall) == nil || f.OnTransfer(2, 1, virtual.Short) == nil {
		t.Error("a fault that cannot be is taken")
	}
}

func TestFaultyTransfers(t *testing.T) {
	radiotest.Leaks(t)
	open := func(d driver) usb.InStream {
		in, err := d.tr.OpenIn(usb.InConfig{Endpoint: 0x81, Size: 16 << 10, Count: 2, Ring: 2, Hold: true})
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	next := func(in usb.InStream) (int, error) {
		ctx, cancel := context.WithTimeout(context.Background(), radiotest.Patience)
		defer cancel()
		b, err := in.Next(ctx)
		return len(b.Data), err
	}
	for _, c := range []struct {
		fault virtual.Fault
		want  error
	}{{virtual.Stall, usb.ErrStall}, {virtual.Vanish, usb.ErrUnplugged}} {
		f, d := faulty(t)
		d.mode(virtual.ModeReceive)
		plan(t, f.OnTransfer(0x81, 5, c.fault))
		in := open(d)
		for range 4 {
			if n, err := next(in); n != 16<<10 || err != nil {
				if c.fault == virtual.Vanish && errorIs(err, c.want) {
					break // the board may go before what was queued has been filled
				}
				t.Errorf("%v: a transfer before gives %d bytes and %v", c.fault, n, err)
			}
		}
		if _, err := next(in); !errorIs(err, c.want) {
			t.Errorf("%v: the transfer gives %v, want %v", c.fault, err, c.want)
		}
		in.Close()
		if c.fault != virtual.Stall {
			continue
		}
		in = open(d)
		if _, err := next(in); !errorIs(err, usb.ErrStall) {
			t.Errorf("a halted endpoint gives %v", err)
		}
		in.Close()
		if _, err := d.tr.Control(usb.Setup{RequestType: 2, Request: 1, Index: 0x81}, nil, radiotest.Patience); err != nil {
			t.Error(err)
		}
		in = open(d)
		if _, err := next(in); err != nil {
			t.Errorf("after the halt was cleared: %v", err)
		}
		in.Close()
	}
}

// TestShortRead: a short transfer loses nothing.
func TestShortRead(t *testing.T) {
	a := newAir(t, 1, nil)
	a.start()
	data := ramp(256<<10, 4)
	f := virtual.NewFaulty(a.radio[1])
	plan(t, f.OnTransfer(0x81, 3, virtual.Short))
	d := open(t, f)
	go func() { _ = a.host[0].tryWrite(append(data, make([]byte, 64<<10)...)) }()
	in, err := d.tr.OpenIn(usb.InConfig{Endpoint: 0x81, Size: 16 << 10, Count: 2, Ring: 2, Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if got := readAll(t, in, 200<<10); !bytes.Equal(got, data[:len(got)]) {
		t.Error("what was received is not what was sent")
	}
}

// TestHangAndLate: what hangs or is late holds back what comes after, and can be
// cancelled.
func TestHangAndLate(t *testing.T) {
	radiotest.Leaks(t)
	f, d := faulty(t)
	d.mode(virtual.ModeReceive)
	plan(t, f.OnTransfer(0x81, 2, virtual.Late))
	ended := make(chan int, 3)
	queue := func(i int) func() {
		return f.Queue(0x81, make([]byte, 16<<10), func(n int, err error) {
			if err != nil {
				i = -i
			}
			ended <- i
		})
	}
	for i := range 3 {
		queue(i + 1)
	}
	if i := <-ended; i != 1 {
		t.Errorf("transfer %d ended first", i)
	}
	select {
	case i := <-ended:
		t.Errorf("transfer %d ended before its release", i)
	default:
	}
	f.Release()
	if i, j := <-ended, <-ended; i != 2 || j != 3 {
		t.Errorf("transfers %d and %d ended, want 2 and 3", i, j)
	}
	plan(t, f.OnTransfer(0x81, 1, virtual.Late))
	cancel := queue(4)
	cancel()
	if i := <-ended; i != -4 {
		t.Errorf("transfer %d ended, want 4 as cancelled", i)
	}
	plan(t, f.OnTransfer(0x81, 1, virtual.Hang))
	cancels := []func(){queue(5), queue(6)}
	cancels[1]()
	if i := <-ended; i != -6 {
		t.Errorf("transfer %d ended, want 6 as cancelled", i)
	}
	cancels[0]()
	if i := <-ended; i != -5 {
		t.Errorf("transfer %d ended, want 5 as cancelled", i)
	}
	queue(7)
	f.Unplug()
	if i := <-ended; i != -7 {
		t.Errorf("transfer %d ended, want 7 as unplugged", i)
	}
}

// TestHost: addresses, serial numbers, and one program a board.
func TestHost(t *testing.T) {
	radiotest.Leaks(t)
	a, b := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serial}), radiotest.HackRF(t, virtual.HackRFConfig{Serial: serial})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: a}, {Radio: b}}})
	host := virtual.NewHost(a, b)
	ctx := context.Background()
	list := func() []usb.Listed {
		all, err := host.List(ctx, func(i usb.Identity) bool { return i.Vendor == 0x1d50 && i.Product == 0x6089 && i.Release == 0x0106 })
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := list()
	if len(all) != 2 || all[0].Serial != serial || all[1].Serial != serial || all[0].Product != "HackRF One" || all[0].Blocked != nil {
		t.Fatalf("boards are %+v", all)
	}
	tr, err := host.Open(ctx, all[1].Address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Open(ctx, all[1].Address); !errorIs(err, usb.ErrInUse) {
		t.Errorf("a second program gets %v", err)
	}
	if l := list()[1]; !errorIs(l.Blocked, usb.ErrInUse) {
		t.Errorf("the open board is listed as %+v", l)
	}
	if _, err := tr.Control(usb.Setup{}, nil, 0); err == nil {
		t.Error("a request may wait for ever")
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if _, err := tr.Control(usb.Setup{RequestType: usb.VendorIn, Request: 14}, make([]byte, 1), radiotest.Patience); !errorIs(err, usb.ErrClosed) {
		t.Errorf("a closed board gives %v", err)
	}
	a.Unplug()
	if all := list(); len(all) != 1 || all[0].Address.Device != 2 || all[0].Blocked != nil {
		t.Errorf("after unplugging boards are %+v", all)
	}
}

// TestStreamsEnd: streams end with their contexts and with Close, and leave nothing
// queued.
func TestStreamsEnd(t *testing.T) {
	radiotest.Leaks(t)
	_, d := faulty(t) // off: nothing flows
	out, err := d.tr.OpenOut(usb.OutConfig{Endpoint: 2, Size: 16 << 10, Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	for range 2 {
		if err := out.Write(ctx, make([]byte, 16<<10)); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := out.Write(ctx, make([]byte, 512)); !errorIs(err, usb.ErrCancelled) {
		t.Errorf("a write gives %v", err)
	}
	if n := out.Taken(); n != 0 {
		t.Errorf("%d bytes were taken", n)
	}
	again, err := d.tr.OpenOut(usb.OutConfig{Endpoint: 2, Size: 16 << 10, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Write(context.Background(), make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- again.Write(context.Background(), make([]byte, 512)) }()
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errorIs(err, usb.ErrClosed) {
		t.Errorf("a write gives %v", err)
	}
}
