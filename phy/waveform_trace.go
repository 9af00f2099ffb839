package phy

import (
	"math"

	"ringwave/phy/modem"
	"ringwave/radio"
)

// maxMissed is the number of frames in a row without preamble after which the
// receiver's index is in doubt.
const maxMissed = 2

// margin is how far around its due time a frame is searched for: 0 while it is
// known by how much the receiver's index differs from the transmitters'.
func (w *Waveform) margin() radio.SampleIndex {
	if w.traced {
		return 0
	}
	return radio.SampleIndex(w.cfg.Reach)
}

// loseTrace says that the receiver's index is in doubt from the next frame on.
func (w *Waveform) loseTrace() {
	w.missed = 0
	w.traced = w.cfg.Reach == 0
	w.hasTimed = w.hasTimed && w.traced
}

// noteLoss looks for losses of a length that nobody knows: indices are then shifted.
func (w *Waveform) noteLoss(meta radio.Meta) {
	for _, gap := range meta.Gaps {
		if !gap.Exact {
			w.loseTrace()
		}
	}
}

// missedFrame counts a frame without preamble, which may lie elsewhere.
func (w *Waveform) missedFrame() {
	if w.missed++; w.missed >= maxMissed {
		w.loseTrace()
	}
}

// trace looks for the frame in a capture that was made longer, and cuts the capture
// to the frame with its guard times. at is where it was due.
func (w *Waveform) trace(meta *radio.Meta, at radio.SampleIndex, window int) {
	found, err := w.detector.First(w.capture)
	begins := found.Start - w.devices[0].modulator.Delay() - modem.Samples(w.guardSamples())
	// Delays of the devices may put a frame at the edge a little beyond it.
	first := max(0, min(int(math.Round(float64(begins))), w.heard-window))
	if w.heard < window || err != nil || math.Abs(float64(begins)-float64(first)) > float64(w.guardSamples()/2) {
		w.capture, w.heard = w.capture[:window], min(w.heard, window)
		w.untraced = true
		return
	}
	w.cut(meta, at, first, window)
}

// cut makes the capture begin at the sample that is first of it now, and of the
// length of a frame.
func (w *Waveform) cut(meta *radio.Meta, at radio.SampleIndex, first, window int) {
	w.capture, w.heard = w.capture[first:first+window], window
	begins := meta.Index(first)
	w.offset += begins - at
	w.due, w.punctual = begins, true
	w.traced, w.missed = true, 0
	meta.First, meta.Epoch = begins, meta.EpochAt(first)
	meta.Changes = within(meta.Changes, first, window)
	meta.Gaps = nil // the detector has found the frame behind them
}

// within gives the changes of epoch inside a part of a capture.
func within(changes []radio.EpochChange, first, window int) []radio.EpochChange {
	var kept []radio.EpochChange
	for _, c := range changes {
		if c.At > first && c.At < first+window {
			kept = append(kept, radio.EpochChange{At: c.At - first, Epoch: c.Epoch})
		}
	}
	return kept
}
