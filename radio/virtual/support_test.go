package virtual_test

import (
	"context"
	"encoding/binary"
	"testing"

	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// board opens a board of a host of its own.
func open(t *testing.T, b virtual.Board) driver {
	t.Helper()
	tr, err := virtual.NewHost(b).Open(context.Background(), usb.Address{Bus: 1, Device: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return driver{t, tr}
}

// driver is a very small driver of a HackRF.
type driver struct {
	t  *testing.T
	tr usb.Transport
}

func (d driver) out(request byte, value, index uint16, data []byte) {
	d.t.Helper()
	if err := d.tryOut(request, value, index, data); err != nil {
		d.t.Fatalf("request %d: %v", request, err)
	}
}

func (d driver) tryOut(request byte, value, index uint16, data []byte) error {
	_, err := d.tr.Control(usb.Setup{RequestType: usb.VendorOut, Request: request, Value: value, Index: index}, data, radiotest.Patience)
	return err
}

func (d driver) in(request byte, index uint16, length int) []byte {
	d.t.Helper()
	data, err := d.tryIn(request, index, length)
	if err != nil {
		d.t.Fatalf("request %d: %v", request, err)
	}
	return data
}

func (d driver) tryIn(request byte, index uint16, length int) ([]byte, error) {
	data := make([]byte, length)
	n, err := d.tr.Control(usb.Setup{RequestType: usb.VendorIn, Request: request, Index: index}, data, radiotest.Patience)
	return data[:n], err
}

func (d driver) rate(hz uint32) {
	d.t.Helper()
	d.out(6, 0, 0, binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, hz), 1))
}

func (d driver) frequency(mhz, hz uint32) {
	d.t.Helper()
	d.out(16, 0, 0, binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, mhz), hz))
}

// reference sets the gains at which a sample sent is a sample received.
func (d driver) reference() {
	d.t.Helper()
	d.in(19, 8, 1)
	d.in(20, 20, 1)
	d.in(21, 0, 1)
}

func (d driver) mode(m virtual.TransceiverMode) { d.t.Helper(); d.out(1, uint16(m), 0, nil) }

// read reads n bytes through a stream of its own of blocks of 16 KiB.
func (d driver) read(n int) []byte {
	d.t.Helper()
	in, err := d.tr.OpenIn(usb.InConfig{Endpoint: 0x81, Size: 16 << 10, Count: 4, Ring: 4, Hold: true})
	if err != nil {
		d.t.Fatal(err)
	}
	defer in.Close()
	return readAll(d.t, in, n)
}

func readAll(t *testing.T, in usb.InStream, n int) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), radiotest.Patience)
	defer cancel()
	var got []byte
	for len(got) < n {
		b, err := in.Next(ctx)
		if err != nil {
			t.Fatalf("after %d of %d bytes: %v", len(got), n, err)
		}
		got = append(got, b.Data...)
	}
	return got[:n]
}

// write sends all of data in transfers of 16 KiB and waits until it was taken.
func (d driver) write(data []byte) {
	d.t.Helper()
	if err := d.tryWrite(data); err != nil {
		d.t.Fatal(err)
	}
}

func (d driver) tryWrite(data []byte) error {
	out, err := d.tr.OpenOut(usb.OutConfig{Endpoint: 0x02, Size: 16 << 10, Count: 4})
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(context.Background(), radiotest.Patience)
	defer cancel()
	for len(data) > 0 {
		k := min(len(data), 16<<10)
		if err := out.Write(ctx, data[:k]); err != nil {
			return err
		}
		data = data[k:]
	}
	return out.Finish(ctx)
}

// ramp returns n bytes of a pattern in which no stretch repeats soon.
func ramp(n int, seed uint32) []byte {
	b := make([]byte, n)
	x := seed*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// quiet returns a pattern of at most a third of full scale, so that a few add up
// without clipping.
func quiet(n int, seed uint32) []byte {
	b := ramp(n, seed)
	for i, v := range b {
		b[i] = byte(int8(v) / 4)
	}
	return b
}
