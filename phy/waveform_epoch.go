package phy

import (
	"fmt"
	"slices"

	"ringwave/radio"
)

// epochs keeps the tuning epochs of an attempt, and why it is void if one changed: the
// gains are then no longer the same (phy/README.md, section 6).
type epochs struct {
	streams *streams
	// recorded returns the epochs of who sends on a link that only listens; nil where
	// they are not known.
	recorded   func() []radio.Epoch
	phaseGiven bool // and so of one epoch of each board
	// attempt and phase are the epochs of the attempt, and those that the phase given
	// is for; now is room for the transmitters' present ones.
	attempt, phase epochSet
	now            []radio.Epoch
	begun          bool // attempt is set
	void           string
	// uncounted says which transmitter has lost count, empty if none has.
	uncounted string
}

// epochSet is the epochs of all boards, as far as they are known.
type epochSet struct {
	rx      radio.Epoch
	rxKnown bool
	tx      []radio.Epoch
}

// begin begins an attempt: its epochs are those of the transmitters now and of the
// receiver's next sample.
func (e *epochs) begin() {
	e.begun, e.attempt.rxKnown, e.void = true, false, e.uncounted
	e.attempt.tx = e.senders(e.attempt.tx[:0])
	if !e.phaseGiven {
		return
	}
	if e.phase.tx == nil {
		e.phase.tx = slices.Clone(e.attempt.tx)
	}
	if i := changedEpoch(e.phase.tx, e.attempt.tx); i >= 0 {
		e.spoil(fmt.Sprintf("the phase given is that of an earlier tuning epoch of device %d: it must be measured again", i+1))
	}
}

// senders appends the present epochs of those who send, as far as they are known.
func (e *epochs) senders(dst []radio.Epoch) []radio.Epoch {
	for _, t := range e.streams.tx {
		dst = append(dst, t.Epoch())
	}
	if e.streams.listenOnly() && e.recorded != nil {
		dst = append(dst, e.recorded()...)
	}
	return dst
}

// changedEpoch returns the first device whose epoch is another now, -1 if there is
// none. One that was not known, or is not, did not change.
func changedEpoch(before, now []radio.Epoch) int {
	for i := range min(len(before), len(now)) {
		if before[i] != now[i] {
			return i
		}
	}
	return -1
}

// check makes the attempt void if an epoch is no longer what it was. meta is that of
// the samples heard, if there are any.
func (e *epochs) check(meta radio.Meta, heard bool) {
	if heard {
		e.checkReceiver(meta)
	}
	e.now = e.senders(e.now[:0])
	if i := changedEpoch(e.attempt.tx, e.now); i >= 0 {
		e.spoil(fmt.Sprintf("the tuning epoch of device %d changed", i+1))
	}
	e.checkPresent()
}

func (e *epochs) checkReceiver(meta radio.Meta) {
	if !e.attempt.rxKnown {
		e.attempt.rx, e.attempt.rxKnown = meta.Epoch, true
	}
	if !e.phase.rxKnown {
		e.phase.rx, e.phase.rxKnown = meta.Epoch, true
	}
	if e.phaseGiven && meta.Epoch != e.phase.rx {
		e.spoil("the phase given is that of an earlier tuning epoch of the receiver: it must be measured again")
	}
	if meta.Epoch != e.attempt.rx || len(meta.Changes) > 0 {
		e.spoil("the receiver's tuning epoch changed")
	}
}

// checkPresent makes the attempt void if the receiver has lost something since: what
// was read already does not say so.
func (e *epochs) checkPresent() {
	_, asked := e.streams.rx.(radio.LossChecker)
	if asked && e.attempt.rxKnown && e.streams.rx.Epoch() != e.attempt.rx {
		e.spoil("the receiver's tuning epoch changed, as by a loss of samples")
	}
}

// hear takes in an event of device i.
func (e *epochs) hear(i int, event radio.Event) {
	switch event.Kind {
	case radio.Late:
		e.spoil(fmt.Sprintf("device %d was late: its frame came after the board had passed its time", i+1))
	case radio.Underrun:
		e.spoil(fmt.Sprintf("device %d had an underrun", i+1))
		if !event.Exact {
			e.uncounted = fmt.Sprintf("device %d lost count of its samples in an underrun: its streams must be opened anew", i+1)
		}
	case radio.EventsLost:
		e.spoil(fmt.Sprintf("%d events of device %d were lost", event.Count, i+1))
	}
}

// spoil makes the attempt void, unless it is so for an earlier reason.
func (e *epochs) spoil(reason string) {
	if e.void == "" {
		e.void = reason
	}
}
