package phy

import (
	"math"

	"ringwave/phy/modem"
	"ringwave/radio"
)

// maxMissed is the number of frames in a row without preamble after which the
// receiver's index is in doubt.
const maxMissed = 2

// timeline is where a link is on two counts of samples: that of the transmitters, and
// that of the receiver, which has offset more.
type timeline struct {
	// reach is by how much the counts may differ.
	reach radio.SampleIndex
	// cursor is where the next frame can be, and sent the end of the last one, of the
	// transmitters; next is the first sample that was not read, of the receiver.
	cursor, sent, next radio.SampleIndex
	offset             radio.SampleIndex
	traced             bool // offset is known
	sought             bool // cursor is where the next frame is due
	missed             int  // frames in a row without preamble
	// astray counts those since the receiver has lost samples of which nobody knows how many,
	// until one is found; adrift says that it has.
	astray int
	adrift bool
	// rate is by how many samples a sample of theirs the receiver's count gains on the
	// transmitters', as calibrated; gained is what it has gained at their index since, and
	// offset has not taken in, being whole.
	rate, gained float64
	since        radio.SampleIndex
	// timing is the last preamble found: all captures begin alike before their
	// frames.
	timing   modem.Sync
	hasTimed bool
	// placed is where in their captures frames lay when the receiver's index was traced.
	placed    modem.Samples
	hasPlaced bool
}

func newTimeline(start radio.SampleIndex, reach radio.SampleCount) *timeline {
	l := &timeline{reach: radio.SampleIndex(reach)}
	l.begin(start)
	return l
}

// begin has both counts begin at start, as with new streams.
func (l *timeline) begin(start radio.SampleIndex) {
	l.moveTo(start)
	l.offset, l.since, l.gained = 0, start, 0
	l.adrift, l.astray = false, 0
	l.loseTrace()
	l.hasTimed = false
}

// moveTo goes on at index at, before which nothing is sent or read any more.
func (l *timeline) moveTo(at radio.SampleIndex) { l.cursor, l.sent, l.next = at, at, at }

// seek makes the next frame be due at the receiver's index at.
func (l *timeline) seek(at radio.SampleIndex) { l.cursor, l.next, l.sought = at, at, true }

// due returns the receiver's index at which the next frame is due at the earliest.
func (l *timeline) due() radio.SampleIndex { return l.cursor + l.offset }

// margin is how far around its due time a frame is searched for: 0 while it is
// known by how much the receiver's index differs from the transmitters'.
func (l *timeline) margin() radio.SampleIndex {
	if l.traced {
		return 0
	}
	return l.reach
}

// loseTrace says that the receiver's index is in doubt from the next frame on.
func (l *timeline) loseTrace() {
	l.missed = 0
	l.traced, l.hasPlaced = l.reach == 0, false
	l.hasTimed = l.hasTimed && l.traced
}

// noteLoss looks for losses of a length that nobody knows: indices are then shifted.
func (l *timeline) noteLoss(gaps []radio.Gap) {
	for _, gap := range gaps {
		if !gap.Exact {
			l.adrift = true
			l.loseTrace()
		}
	}
}

// missedFrame counts a frame without preamble, which may lie elsewhere.
func (l *timeline) missedFrame() {
	if l.adrift {
		l.astray++
	}
	if l.missed++; l.missed >= maxMissed {
		l.loseTrace()
	}
}

// foundFrame takes in a frame that lay off from where it was due by shift.
func (l *timeline) foundFrame(shift radio.SampleIndex) {
	l.offset += shift
	l.traced, l.missed = true, 0
	l.adrift, l.astray = false, 0
}

// follow takes in where in its capture a frame lay whose index was looked for once. Clocks
// that run apart move it from frame to frame: the captures move with it, by whole samples.
func (l *timeline) follow(at modem.Samples) {
	const moves = 4 // samples, beyond what chance and delays move a frame by
	if l.reach == 0 || !l.traced {
		return
	}
	if !l.hasPlaced {
		l.placed, l.hasPlaced = at, true
	}
	if off := math.Round(float64(at - l.placed)); math.Abs(off) >= moves {
		l.offset += radio.SampleIndex(off)
		l.hasTimed = false // it was that of other captures
	}
}

// gain returns what the receiver's count has gained at the transmitters' index at: whole
// samples, by which captures are to move, and what is left, by which devices send earlier.
// So all frames lie at the same instants between samples.
func (l *timeline) gain(at radio.SampleIndex) (whole radio.SampleIndex, left float64) {
	gained := l.gained + float64(at-l.since)*l.rate
	whole = radio.SampleIndex(math.Round(gained))
	return whole, gained - float64(whole)
}

// pass takes in what is gained until a transmission begins at index at.
func (l *timeline) pass(at radio.SampleIndex) {
	whole, left := l.gain(at)
	l.offset += whole
	l.gained, l.since = left, at
}

// heardUntil says that all before the receiver's index end was read or lost.
func (l *timeline) heardUntil(end radio.SampleIndex) {
	l.next = max(l.next, end)
	l.cursor = max(l.cursor, l.next-l.offset)
}
