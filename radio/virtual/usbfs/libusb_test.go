//go:build linux && usb

package usbfs_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

func TestMain(m *testing.M) { radiotest.Main(m) }

// TestLibusb: boards, libusb and this test in one process: what one board sends,
// another receives.
func TestLibusb(t *testing.T) {
	a, b := radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialA}), radiotest.HackRF(t, virtual.HackRFConfig{Serial: serialB})
	bus := plug(t, virtual.Config{
		Boards: []virtual.Place{{Radio: a}, {Radio: b}},
		Links:  []virtual.Link{{From: 0, To: 1, Gain: 1}},
		Await:  []int{0, 1},
	})
	t.Setenv("UMOCKDEV_DIR", bus.Dir())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host := usb.System()
	all, err := host.List(ctx, func(i usb.Identity) bool { return i.Vendor == 0x1d50 })
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Serial != serialA || all[1].Serial != serialB || all[0].Identity.Release != virtual.API2022 || all[0].Blocked != nil {
		t.Fatalf("boards are %+v", all)
	}
	var boards [2]usb.Transport
	for i := range boards {
		if boards[i], err = host.Open(ctx, all[i].Address); err != nil {
			t.Fatal(err)
		}
		defer boards[i].Close()
	}
	for _, tr := range boards {
		setUp(t, tr)
	}
	if _, err := boards[0].Control(usb.Setup{RequestType: usb.VendorIn, Request: 61}, make([]byte, 4), 10*time.Second); !errors.Is(err, usb.ErrStall) {
		t.Errorf("a request of newer firmware gives %v, want a stall", err)
	}
	control(t, boards[0], usb.Setup{RequestType: usb.VendorOut, Request: 1, Value: 2}, nil)
	control(t, boards[1], usb.Setup{RequestType: usb.VendorOut, Request: 1, Value: 1}, nil)
	in, err := boards[1].OpenIn(usb.InConfig{Endpoint: 0x81, Size: 64 << 10, Count: 4, Ring: 4, Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	carry(ctx, t, boards[0], in)
	// Unplugged in the middle of a stream.
	if err := bus.Unplug(all[1].Address); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = in.Next(ctx)
	}
	if !errors.Is(err, usb.ErrUnplugged) {
		t.Errorf("the stream of an unplugged board gives %v", err)
	}
	if all, err := host.List(ctx, func(usb.Identity) bool { return true }); err != nil || len(all) != 1 {
		t.Errorf("after unplugging there are %+v, %v", all, err)
	}
}

// setUp returns a board a rate and gains.
func setUp(t *testing.T, tr usb.Transport) {
	t.Helper()
	control(t, tr, usb.Setup{RequestType: usb.VendorOut, Request: 6}, []byte{0, 0x2d, 0x31, 1, 1, 0, 0, 0})
	for request, gain := range map[uint8]uint16{19: 8, 20: 20, 21: 0} {
		control(t, tr, usb.Setup{RequestType: usb.VendorIn, Request: request, Index: gain}, make([]byte, 1))
	}
}

func control(t *testing.T, tr usb.Transport, s usb.Setup, data []byte) {
	t.Helper()
	if _, err := tr.Control(s, data, 10*time.Second); err != nil {
		t.Fatalf("request %d: %v", s.Request, err)
	}
}

// carry sends from one board what another receives.
func carry(ctx context.Context, t *testing.T, from usb.Transport, in usb.InStream) {
	t.Helper()
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i*i>>8 ^ i)
	}
	sent := make(chan error, 1)
	go func() { sent <- send(ctx, from, data) }()
	var got []byte
	for len(got) < len(data)-32<<10 {
		block, err := in.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, block.Data...)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(data, got[:len(data)-32<<10]) {
		t.Error("what was received is not what was sent")
	}
}

func send(ctx context.Context, tr usb.Transport, data []byte) error {
	out, err := tr.OpenOut(usb.OutConfig{Endpoint: 2, Size: 64 << 10, Count: 4})
	if err != nil {
		return err
	}
	defer out.Close()
	for len(data) > 0 {
		if err := out.Write(ctx, data[:64<<10]); err != nil {
			return err
		}
		data = data[64<<10:]
	}
	return out.Finish(ctx)
}
