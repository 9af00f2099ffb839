package phy

import (
	"fmt"
	"slices"

	"ringwave/radio"
)

// holdEpochs begins an attempt: its epochs are those of the transmitters now and
// of the receiver's next sample.
func (w *Waveform) holdEpochs() {
	w.rxKnown, w.void = false, w.uncounted
	w.txEpoch = w.senderEpochs(w.txEpoch[:0])
	if w.cfg.Phase == nil {
		return
	}
	if w.phaseTx == nil {
		w.phaseTx = slices.Clone(w.txEpoch)
	}
	if i := changedEpoch(w.phaseTx, w.txEpoch); i >= 0 {
		w.spoil(fmt.Sprintf("the phase given is that of an earlier tuning epoch of device %d: it must be measured again", i+1))
	}
}

// senderEpochs appends the present epochs of those who send, as far as they are
// known.
func (w *Waveform) senderEpochs(dst []radio.Epoch) []radio.Epoch {
	for _, t := range w.cfg.Transmitters {
		dst = append(dst, t.Epoch())
	}
	if w.cfg.Transmitters == nil && w.cfg.SenderEpochs != nil {
		dst = append(dst, w.cfg.SenderEpochs()...)
	}
	return dst
}

// changedEpoch gives the first device whose epoch is another now, -1 if there is
// none. One that was not known, or is not, did not change.
func changedEpoch(before, now []radio.Epoch) int {
	for i := range min(len(before), len(now)) {
		if before[i] != now[i] {
			return i
		}
	}
	return -1
}

// checkEpochs makes the attempt void if an epoch is no longer what it was.
func (w *Waveform) checkEpochs(meta radio.Meta) {
	if w.heard > 0 {
		w.checkReceiverEpoch(meta)
	}
	w.nowEpoch = w.senderEpochs(w.nowEpoch[:0])
	if i := changedEpoch(w.txEpoch, w.nowEpoch); i >= 0 {
		w.spoil(fmt.Sprintf("the tuning epoch of device %d changed", i+1))
	}
}

// spoil makes the attempt void, unless it is so for an earlier reason.
func (w *Waveform) spoil(reason string) {
	if w.void == "" {
		w.void = reason
	}
}

func (w *Waveform) checkReceiverEpoch(meta radio.Meta) {
	if !w.rxKnown {
		w.rxEpoch, w.rxKnown = meta.Epoch, true
	}
	if !w.phaseRxKnown {
		w.phaseRx, w.phaseRxKnown = meta.Epoch, true
	}
	if w.cfg.Phase != nil && meta.Epoch != w.phaseRx {
		w.spoil("the phase given is that of an earlier tuning epoch of the receiver: it must be measured again")
	}
	if meta.Epoch != w.rxEpoch || len(meta.Changes) > 0 {
		w.spoil("the receiver's tuning epoch changed")
	}
}
