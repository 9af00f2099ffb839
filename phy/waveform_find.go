package phy

import (
	"context"
	"math"

	"ringwave/phy/modem"
	"ringwave/radio"
)

// finder captures the frames that the receiver hears.
type finder struct {
	layout   *layout
	streams  *streams
	time     *timeline
	detector *modem.Detector
	capture  capture
	// buffer is what the capture's samples are a part of; waste is room for what is
	// thrown away.
	buffer, waste []complex64
}

// capture is a frame with its guard times as the receiver had it.
type capture struct {
	samples []complex64
	// first is the receiver's index of the first of samples, due where that was to be,
	// and punctual says that both are the same.
	first, due radio.SampleIndex
	punctual   bool
	// heard is how many of samples were received, and how many of these the receiver
	// said were clipped or no numbers.
	heard            int
	clipped, invalid radio.SampleCount
	untraced         bool // the frame was searched for and not found
}

// hear captures a frame of window samples that is due at the receiver's index at, guard
// time included. Where the index is not known for sure, it looks for it around.
func (f *finder) hear(ctx context.Context, at radio.SampleIndex, window int) (radio.Meta, error) {
	f.capture.untraced = false
	margin := f.time.margin()
	if err := f.skip(ctx, at-margin); err != nil {
		return radio.Meta{}, err
	}
	size := window + 2*int(margin)
	if cap(f.buffer) < size {
		f.buffer = make([]complex64, size)
	}
	f.capture.samples = f.buffer[:size]
	meta, err := f.listen(ctx, at-margin)
	if err != nil {
		return meta, err
	}
	if margin > 0 {
		f.trace(&meta, at, window)
	}
	f.capture.first = at
	if f.capture.heard > 0 {
		f.capture.first = meta.First
	}
	return meta, nil
}

// skipped is the number of samples that are thrown away at a time.
const skipped = 1 << 14

// skip throws away what comes before index due.
func (f *finder) skip(ctx context.Context, due radio.SampleIndex) error {
	for !f.streams.listenOnly() && f.time.next < due {
		if f.waste == nil {
			f.waste = make([]complex64, skipped)
		}
		size := min(radio.SampleIndex(skipped), due-f.time.next)
		n, meta, err := f.streams.readUntil(ctx, f.waste[:size], f.time.next, due)
		if n > 0 {
			f.time.next = meta.Index(n-1) + 1
			f.time.noteLoss(meta.Gaps)
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

// listen fills the capture, due to begin at index at, and moves the timeline to its
// end. It reads up to an index and not a number of samples: what was lost would
// otherwise be taken from the next frame, and all later captures begin too late. Nor
// does it wait there for what comes after a loss: nobody sends it before this frame
// is done with. The capture begins with the first sample that was not lost; from the next loss
// on it is marked as lost.
func (f *finder) listen(ctx context.Context, at radio.SampleIndex) (meta radio.Meta, err error) {
	// A receiver that cannot end its reads at an index steps over a loss and fills its
	// block behind it. Blocks no longer than the guard time keep it within what the
	// transmitters have promised, unless the loss ends beyond.
	c := &f.capture
	most := int(f.layout.guard())
	if f.streams.listenOnly() {
		most = len(c.samples)
	}
	n := 0
	next, end := at, at+radio.SampleIndex(len(c.samples))
	adrift := f.streams.listenOnly() && !f.time.sought
	until := end
	if adrift {
		until = radio.Forever
	}
	for n < len(c.samples) && next < end {
		size := min(most, len(c.samples)-n, int(end-next))
		k, m, err := f.streams.readUntil(ctx, c.samples[n:n+size], f.time.next, until)
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
			at, end = m.First, m.First+radio.SampleIndex(len(c.samples))
			until = end
		}
		n += k
		next = meta.Index(n-1) + 1
	}
	f.time.heardUntil(max(end, next))
	c.heard, c.clipped, c.invalid = n, meta.Clipped, meta.Invalid
	c.due, c.punctual = at, n > 0 && meta.First == at
	f.time.noteLoss(meta.Gaps)
	c.markLost(meta.Gaps)
	return meta, nil
}

// markLost marks what is behind the first gap, or was not heard.
func (c *capture) markLost(gaps []radio.Gap) {
	n := c.heard
	for _, gap := range gaps {
		if gap.At > 0 {
			n = gap.At
			break
		}
	}
	modem.MarkLost(c.samples[n:])
}

// trace looks for the frame in a capture that was made longer, and cuts the capture
// to the frame with its guard times. at is where it was due.
func (f *finder) trace(meta *radio.Meta, at radio.SampleIndex, window int) {
	c := &f.capture
	found, err := f.detector.First(c.samples)
	guard := f.layout.guard()
	begins := found.Start - f.layout.delay - modem.Samples(guard)
	// Delays of the devices may put a frame at the edge a little beyond it.
	first := max(0, min(int(math.Round(float64(begins))), c.heard-window))
	if c.heard < window || err != nil || math.Abs(float64(begins)-float64(first)) > float64(guard/2) {
		c.samples, c.heard = c.samples[:window], min(c.heard, window)
		c.untraced = true
		return
	}
	begin := c.cut(meta, first, window)
	f.time.foundFrame(begin - at)
}

// cut makes the capture begin at the sample that is first of it now, and of the
// length of a frame. It returns the receiver's index of that sample.
func (c *capture) cut(meta *radio.Meta, first, window int) radio.SampleIndex {
	c.samples, c.heard = c.samples[first:first+window], window
	begins := meta.Index(first)
	c.due, c.punctual = begins, true
	meta.First, meta.Epoch = begins, meta.EpochAt(first)
	meta.Changes = within(meta.Changes, first, window)
	meta.Gaps = nil // the detector has found the frame behind them
	return begins
}

// within returns the changes of epoch inside a part of a capture.
func within(changes []radio.EpochChange, first, window int) []radio.EpochChange {
	var kept []radio.EpochChange
	for _, c := range changes {
		if c.At > first && c.At < first+window {
			kept = append(kept, radio.EpochChange{At: c.At - first, Epoch: c.Epoch})
		}
	}
	return kept
}
