package phy

import (
	"context"
	"fmt"

	"ringwave/phy/frame"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// guardSymbols is the silence before a frame and after it.
const guardSymbols = 24

// window gives the samples of a frame with its guard times.
func (w *Waveform) window(g *group, p *frame.Payload) int {
	_, _, start := w.prefix(g)
	symbols := 2*guardSymbols + start + p.Symbols() + int(w.devices[g.first].modulator.Tail())
	return symbols * w.cfg.Modem.SamplesPerSymbol
}

func (w *Waveform) guardSamples() radio.SampleIndex {
	return radio.SampleIndex(guardSymbols * w.cfg.Modem.SamplesPerSymbol)
}

// Next gives the receiver's index at which the next frame is due at the earliest,
// its guard time included.
func (w *Waveform) Next() radio.SampleIndex { return w.cursor + w.offset }

// Seek makes the next frame be due at index at. It is for a link that only listens,
// and that otherwise takes the first sample it gets for the beginning of a frame.
func (w *Waveform) Seek(at radio.SampleIndex) { w.cursor, w.next, w.sought = at, at, true }

// exchange sends one frame of a group and captures what the receiver hears. It
// gives the receiver's index of the capture's first sample.
func (w *Waveform) exchange(ctx context.Context, number int, g *group, repeat uint8) (at radio.SampleIndex, err error) {
	w.untraced = false
	if w.cfg.Transmitters == nil {
		at = w.cursor
	} else {
		w.modulate(number, g, repeat)
		if at, err = w.send(ctx, g); err != nil {
			return 0, err
		}
		at += w.offset
	}
	meta, err := w.hear(ctx, at, w.window(g, w.payload))
	if err != nil {
		return 0, fmt.Errorf("receiving %v: %w", w.slot.Transmission, err)
	}
	if err := w.askForLosses(ctx); err != nil {
		return 0, fmt.Errorf("receiving %v: %w", w.slot.Transmission, err)
	}
	w.checkEpochs(meta)
	w.checkPresent()
	w.report.Clipped += meta.Clipped
	if w.heard == 0 {
		return at, nil
	}
	return meta.First, nil
}

// hear captures a frame that is due at the receiver's index at, guard time included.
// Where the index is not known for sure, it looks for it around.
func (w *Waveform) hear(ctx context.Context, at radio.SampleIndex, window int) (radio.Meta, error) {
	margin := w.margin()
	if err := w.skip(ctx, at-margin); err != nil {
		return radio.Meta{}, err
	}
	size := window + 2*int(margin)
	if cap(w.buffer) < size {
		w.buffer = make([]complex64, size)
	}
	w.capture = w.buffer[:size]
	meta, err := w.listen(ctx, at-margin)
	if err == nil && margin > 0 {
		w.trace(&meta, at, window)
	}
	return meta, err
}

// skipped is the number of samples that are thrown away at a time.
const skipped = 1 << 14

// skip throws away what comes before index due.
func (w *Waveform) skip(ctx context.Context, due radio.SampleIndex) error {
	for w.cfg.Transmitters != nil && w.next < due {
		if w.waste == nil {
			w.waste = make([]complex64, skipped)
		}
		size := min(radio.SampleIndex(skipped), due-w.next)
		n, meta, err := w.readUntil(ctx, w.waste[:size], due)
		if n > 0 {
			w.next = meta.Index(n-1) + 1
			w.noteLoss(meta)
		}
		if err != nil {
			return err
		}
		if n < int(size) {
			return nil // what is left was lost
		}
	}
	return nil
}

// listen fills the capture, due to begin at index at, and moves the cursor to its
// end. It reads up to an index and not a number of samples: what was lost would
// otherwise be taken from the next frame, and all later captures begin too late. Nor
// does it wait there for what comes after a loss: nobody sends it before this frame
// is done with. The capture begins with the first sample that was not lost; from the next loss
// on it is marked as lost.
func (w *Waveform) listen(ctx context.Context, at radio.SampleIndex) (meta radio.Meta, err error) {
	// A receiver that cannot end its reads at an index steps over a loss and fills its
	// block behind it. Blocks no longer than the guard time keep it within what the
	// transmitters have promised, unless the loss ends beyond.
	most := int(w.guardSamples())
	if w.cfg.Transmitters == nil {
		most = len(w.capture)
	}
	n := 0
	next, end := at, at+radio.SampleIndex(len(w.capture))
	adrift := w.cfg.Transmitters == nil && !w.sought
	until := end
	if adrift {
		until = radio.Forever
	}
	for n < len(w.capture) && next < end {
		size := min(most, len(w.capture)-n, int(end-next))
		k, m, err := w.readUntil(ctx, w.capture[n:n+size], until)
		if err != nil {
			return meta, err
		}
		if k == 0 {
			break // all that is left was lost
		}
		if err := meta.Append(n, m); err != nil {
			return meta, err
		}
		if n == 0 && adrift {
			at, end = m.First, m.First+radio.SampleIndex(len(w.capture))
			until = end
		}
		n += k
		next = meta.Index(n-1) + 1
	}
	w.next = max(w.next, end, next)
	w.cursor = max(w.cursor, w.next-w.offset)
	w.heard, w.clipped, w.invalid = n, meta.Clipped, meta.Invalid
	w.due, w.punctual = at, n > 0 && meta.First == at
	w.noteLoss(meta)
	for _, gap := range meta.Gaps {
		if gap.At > 0 {
			n = gap.At
			break
		}
	}
	modem.MarkLost(w.capture[n:])
	return meta, nil
}
