package virtual_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"ringwave/radio/radiotest"
	"ringwave/radio/usb"
	"ringwave/radio/virtual"
)

// sweepOf returns the data of request 26.
func sweepOf(step, offset uint32, style byte, ranges ...uint16) []byte {
	b := binary.LittleEndian.AppendUint32(nil, step)
	b = append(binary.LittleEndian.AppendUint32(b, offset), style)
	for _, mhz := range ranges {
		b = binary.LittleEndian.AppendUint16(b, mhz)
	}
	return b
}

// TestSweepOrder: the blocks of a sweep say at which frequencies they were heard, one after
// the other, from range to range and around.
func TestSweepOrder(t *testing.T) {
	const mode, request, block = 5, 26, 16 << 10
	for _, c := range []struct {
		name  string
		data  []byte
		dwell int
		want  []uint64 // MHz
	}{
		{"linear", sweepOf(20e6, 7.5e6, 0, 100, 140, 400, 410), 1, []uint64{100, 120, 400, 100, 120, 400}},
		{"interleaved", sweepOf(20e6, 7.5e6, 1, 100, 140), 1, []uint64{100, 105, 120, 125, 100, 105}},
		{"two blocks each", sweepOf(20e6, 0, 0, 100, 140), 2, []uint64{100, 100, 120, 120, 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := radiotest.HackRF(t, virtual.HackRFConfig{})
			radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
			d := open(t, h)
			d.rate(20e6)
			d.out(request, uint16(c.dwell*block), uint16(c.dwell*block>>16), c.data)
			d.out(1, mode, 0, nil)
			got := d.read(len(c.want) * block)
			var at []uint64
			for k := range c.want {
				b := got[k*block:]
				if b[0] != 0x7f || b[1] != 0x7f {
					t.Fatalf("block %d begins with % x", k, b[:10])
				}
				at = append(at, binary.LittleEndian.Uint64(b[2:])/1e6)
			}
			if !slices.Equal(at, c.want) {
				t.Errorf("frequencies %v; want %v", at, c.want)
			}
			d.mode(virtual.ModeOff)
		})
	}
}

func TestSweepRefused(t *testing.T) {
	h := radiotest.HackRF(t, virtual.HackRFConfig{})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: h}}})
	d := open(t, h)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, usb.ErrStall) {
			t.Errorf("%s gives %v, want a stall", what, err)
		}
	}
	refused("a sweep of nothing", d.tryOut(1, 5, 0, nil))
	good := sweepOf(20e6, 0, 0, 100, 120)
	for what, data := range map[string][]byte{
		"no data": nil, "no range": good[:9], "half a range": good[:11], "11 ranges": append(good[:9:9], make([]byte, 44)...),
		"steps of 0 Hz": sweepOf(0, 0, 0, 100, 120), "another style": sweepOf(20e6, 0, 2, 100, 120),
	} {
		refused(what, d.tryOut(26, 16<<10, 0, data))
	}
	refused("no block", d.tryOut(26, 0, 0, good))
	refused("half a block", d.tryOut(26, 8<<10, 0, good))
	d.out(26, 16<<10, 0, good)
	refused("mode 261", d.tryOut(1, 0x105, 0, nil))
	d.out(1, 5, 0, nil)
	d.mode(virtual.ModeOff)
	old := radiotest.HackRF(t, virtual.HackRFConfig{API: virtual.API2018})
	radiotest.Bench(t, virtual.Config{Boards: []virtual.Place{{Radio: old}}})
	d = open(t, old)
	d.out(26, 16<<10, 0, good)
	refused("a sweep with API 0102", d.tryOut(1, 5, 0, nil))
}
