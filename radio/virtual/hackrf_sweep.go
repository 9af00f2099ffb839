package virtual

import (
	"encoding/binary"

	"ringwave/radio"
)

const (
	// apiSweep is the USB API from which on hosts may sweep; to set it up took less.
	apiSweep = 0x0104
	// sweepHead is the length of a sweep's initial data without its ranges, of 4 bytes each.
	sweepHead    = 9
	sweepRange   = 4
	maxRanges    = 10
	sweepMHz     = 1e6 // ranges are in whole MHz
	interleaved  = 1
	sweepThrown  = 2 // blocks behind a retune, while the synthesizer settles
	sweepMark    = 0x7f
	sweepMarkLen = 2
)

// sweep is what request 26 sets, and where the sweep is.
type sweep struct {
	blocks       int // of a frequency that go to the host
	step, offset radio.Hertz
	interleaved  bool
	ranges       [][2]radio.Hertz

	at     radio.Hertz // without the offset
	in     int         // the range that it is in
	second bool        // the second of a pair of frequencies, where they are interleaved
	sent   int         // blocks of this frequency
	thrown int         // blocks still to be thrown away
}

// initSweep is request 26.
func (h *HackRF) initSweep(s Setup, data []byte) error {
	n, ranges := int(s.Index)<<16|int(s.Value), (len(data)-sweepHead)/sweepRange
	if n < usbBlock || n%usbBlock != 0 || len(data) != sweepHead+sweepRange*ranges || ranges < 1 || ranges > maxRanges {
		return ErrStall
	}
	w := sweep{
		blocks: n / usbBlock,
		step:   radio.Hertz(binary.LittleEndian.Uint32(data)), offset: radio.Hertz(binary.LittleEndian.Uint32(data[4:])),
		interleaved: data[8] == interleaved,
	}
	if w.step < 1 || data[8] > interleaved {
		return ErrStall
	}
	for at := data[sweepHead:]; len(at) > 0; at = at[sweepRange:] {
		w.ranges = append(w.ranges, [2]radio.Hertz{
			sweepMHz * radio.Hertz(binary.LittleEndian.Uint16(at)), sweepMHz * radio.Hertz(binary.LittleEndian.Uint16(at[2:])),
		})
	}
	h.sweep = w
	return nil
}

// beginSweep tunes to where a sweep begins.
func (h *HackRF) beginSweep() {
	w := &h.sweep
	w.at, w.in, w.second, w.sent, w.thrown = w.ranges[0][0], 0, false, 0, sweepThrown
	h.tune(w.at+w.offset, false)
}

// next is where the sweep goes from where it is.
func (w *sweep) next() {
	first := w.interleaved && !w.second
	switch {
	case first:
		w.at += w.step / 4
	case w.at+w.step >= w.ranges[w.in][1]:
		w.in = (w.in + 1) % len(w.ranges)
		w.at = w.ranges[w.in][0]
	case w.interleaved:
		w.at += 3 * w.step / 4
	default:
		w.at += w.step
	}
	w.second = first
}

// sweepBlock sees to a block that a sweeping board has filled: it is marked by its
// frequency, or thrown away, and after the last of a frequency comes the next.
func (st *stream) sweepBlock() {
	w := &st.h.sweep
	if w.thrown > 0 {
		w.thrown--
		st.head -= usbBlock
		return
	}
	// Whole blocks do not wrap around.
	mark := st.buffer[(st.head-usbBlock)&int64(len(st.buffer)-1):]
	mark[0], mark[1] = sweepMark, sweepMark
	binary.LittleEndian.PutUint64(mark[sweepMarkLen:], uint64(w.at))
	if w.sent++; w.sent < w.blocks {
		return
	}
	w.next()
	w.sent, w.thrown = 0, sweepThrown
	st.h.tune(w.at+w.offset, false)
}
