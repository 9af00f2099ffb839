package phy

import (
	"math"
	"testing"

	"ringwave/phy/modem"
	"ringwave/radio"
	"ringwave/radio/radiotest"
)

// Frames of devices that know their clocks lie at the same instants of a receiver whose
// clock runs apart, over rounds in which that comes to many samples.
func TestFramesKeepTheirInstants(t *testing.T) {
	const ppm = 40e-6
	var starts []float64
	b, _ := newLive(t, func(c *WaveformConfig) {
		c.Receiver = radiotest.NewDrifting(c.Receiver, 1/(1+ppm))
		c.Reach = 5000
		for range c.Devices {
			c.Correction = append(c.Correction, modem.Correction{Clock: 1/(1+ppm) - 1})
		}
		passes := c.OnFrame
		c.OnFrame = func(o Observation) error {
			starts = append(starts, float64(o.Sync.Start))
			return passes(o)
		}
	})
	for k := range uint32(3) {
		if v := b.round(t, k); !v.good {
			t.Errorf("round %d: %v: %s", k, v.failed, v.reason)
		}
	}
	if b.w.time.offset < 40 {
		t.Errorf("the clocks have run apart by %d samples only", b.w.time.offset)
	}
	for k, s := range starts[1:] {
		if math.Abs(s-starts[1]) > 0.1 {
			t.Errorf("frame %d begins %v samples later in its capture than the second", k+2, s-starts[1])
		}
	}
}

// What is gained in all is neither lost nor counted twice, and devices make up for what
// captures do not move by.
func TestWhatIsGained(t *testing.T) {
	l := newTimeline(100, 5)
	l.rate = 2e-5
	at := radio.SampleIndex(100)
	for k := range radio.SampleIndex(50) {
		at += 12345 + 777*k
		whole, left := l.gain(at)
		if sum := float64(l.offset+whole) + left; math.Abs(sum-2e-5*float64(at-100)) > 1e-9 || math.Abs(left) > 0.5 {
			t.Fatalf("at %d: %d and %d and %v", at, l.offset, whole, left)
		}
		l.pass(at)
	}
	b, _ := newLive(t, nil)
	d := b.w.sender.devices[0]
	d.correction.Clock = -2e-5
	d.symbols = make([]int8, 100)
	for k := range d.symbols {
		d.symbols[k] = int8(k%3 - 1)
	}
	d.drift(8, drifted{elapsed: 40_000})
	want := append([]complex64(nil), d.samples...)
	early := d.earlier
	d.drift(8, drifted{elapsed: 25_000, gained: 15_000 * (1/(1-2e-5) - 1)})
	if d.earlier != early || len(d.samples) != len(want) {
		t.Fatalf("%d samples %d earlier, not %d %d earlier", len(d.samples), d.earlier, len(want), early)
	}
	for k, x := range want {
		if d.samples[k] != x {
			t.Fatalf("sample %d is %v, not %v", k, d.samples[k], x)
		}
	}
}

// Frames that begin between two samples are read at the instant of b, whichever of the two
// their preambles and symbols show; a loss of samples is not made up for.
func TestHeldInstant(t *testing.T) {
	for _, off := range []modem.Samples{-3, -2, -1, 0, 1, 2, 3} {
		var h holding
		h.timing(modem.Sync{Start: 200, Payload: 1270}, 5)
		got := h.timing(modem.Sync{Start: 200 + off, Payload: 1270 + off}, 5)
		want := modem.Samples(1270)
		if math.Abs(float64(off)) > 2 {
			want += off
		}
		if got.Payload != want || got.Start != want-1070 {
			t.Errorf("%v samples off: read at %v", off, got.Payload)
		}
	}
}
