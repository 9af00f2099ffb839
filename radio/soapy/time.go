package soapy

import (
	"math"
	"sync"
	"time"

	"ringwave/radio"
)

const second = int64(time.Second)

// clock turns times of a board into indices of a stream and back. Its zero value is none.
type clock struct {
	rate radio.Hertz
	zero Time // of index 0
}

// index returns the index whose time is nearest to t. Seconds are apart from the rest, so
// that nothing is lost over months.
func (c clock) index(t Time) radio.SampleIndex {
	d := int64(t - c.zero)
	s, ns := d/second, d%second
	whole := math.Floor(float64(s) * float64(c.rate))
	rest := float64(s)*float64(c.rate) - whole
	return radio.SampleIndex(whole) + radio.SampleIndex(math.Round(rest+float64(ns)*float64(c.rate)/float64(second)))
}

// at returns the time of an index, to the nearest nanosecond.
func (c clock) at(i radio.SampleIndex) Time {
	s := math.Floor(float64(i) / float64(c.rate))
	rest := float64(i) - s*float64(c.rate)
	return c.zero + Time(int64(s)*second+int64(math.Round(rest/float64(c.rate)*float64(second))))
}

// hostClock says what a board's clock shows by the host's, from one question to the next.
type hostClock struct {
	mu   sync.Mutex
	read Time
	when time.Time
}

// set notes what the board's clock showed at a moment of the host's.
func (h *hostClock) set(t Time, when time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read, h.when = t, when
}

// now returns what the board's clock shows about now.
func (h *hostClock) now() Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.read + Time(time.Since(h.when))
}
