package uplink

import (
	"context"
	"testing"
	"time"

	"ringwave/radio"
)

// jumpClock is a clock that reaches what is waited for at once.
type jumpClock struct{ now time.Duration }

func (c *jumpClock) Now() time.Duration { return c.now }

func (c *jumpClock) Wait(_ context.Context, t time.Duration, _ <-chan struct{}) {
	c.now = t
}

// silence is a receiver of zeros.
type silence struct {
	radio.Receiver
	at radio.SampleIndex
}

func (s *silence) Read(_ context.Context, dst []complex64) (int, radio.Meta, error) {
	meta := radio.Meta{First: s.at}
	s.at += radio.SampleIndex(len(dst))
	return len(dst), meta, nil
}

// In real time a transmission takes as long as its samples, and the time between
// transmissions comes on top.
func TestPaced(t *testing.T) {
	clock := &jumpClock{}
	from := &silence{}
	p := &paced{from: from, clock: clock, rate: 1000}
	rx := p.receiver()
	buffer := make([]complex64, 250)
	for range 2 {
		began := clock.now
		p.begin(from.at)
		for range 4 {
			if _, _, err := rx.Read(t.Context(), buffer); err != nil {
				t.Fatal(err)
			}
		}
		if took := clock.now - began; took != time.Second {
			t.Errorf("1000 samples at 1 kHz took %v", took)
		}
		clock.now += time.Minute
	}
}
