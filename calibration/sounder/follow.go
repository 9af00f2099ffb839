package sounder

import (
	"math"

	"ringwave/calibration/sounding"
	"ringwave/phy/modem"
	"ringwave/radio"
)

// follower follows where bursts are heard from block to block, as the clocks of a board
// that sends and of one that receives run apart: 20 ppm are 40 samples a second at 2 MHz,
// which no search around one place has room for. It looks for each burst alone. Bursts too
// weak for that are not followed, nor are clocks that run alike, in which case all bursts
// are searched together.
type follower struct {
	trails []trail
	apart  bool // the clocks run apart, for the rest of the session
	slope  float64
}

// trail is where the bursts of a device were heard.
type trail struct {
	spots   []spot // the last ones
	first   float64
	offsets float64 // mean offset, weighted
	weights float64
	failed  int // bursts before the first that was found
}

// spot is one burst: at the transmitters' index at it was late by so many samples, against
// what was due when the session began.
type spot struct{ at, late float64 }

// The most spots that are kept of a device, and how many bursts that are not found by
// themselves end the following of one of which nothing was.
const (
	mostSpots   = 64
	mostFailing = 4
)

// Clocks run apart once bursts have moved by so many samples, and by so many deviations.
const (
	leastApart      = 0.5
	apartDeviations = 6
)

func newFollower(devices int) *follower { return &follower{trails: make([]trail, devices)} }

// note finds the bursts of a captured block, of which the first was due at the
// transmitters' index at.
func (f *follower) note(s *Sounder, c *captured, at radio.SampleIndex) {
	for k, w := range c.slots {
		t := &f.trails[k%s.cfg.Devices]
		if w == nil || t.weights == 0 && t.failed == mostFailing {
			continue
		}
		a, err := s.cfg.Sounding.Acquire([][]complex64{w}, s.nominal(), t.search(s.cfg.Search, s.cfg.Sounding.Burst()))
		if err != nil {
			t.failed++
			continue
		}
		x := at + s.cfg.slotStart(k/s.cfg.Devices, k%s.cfg.Devices)
		t.add(spot{float64(x), float64(a.Delay) + float64(c.shifts[k])}, a)
	}
	f.fit()
}

// search is that of one more burst: near the offset that was found.
func (t *trail) search(all sounding.Search, burst int) sounding.Search {
	if t.weights > 0 && all.Offset > 0 {
		all.Near, all.Offset = modem.CyclesPerSample(t.offsets), min(all.Offset, 1/modem.CyclesPerSample(burst))
	}
	return all
}

func (t *trail) add(p spot, a sounding.Acquired) {
	if t.weights == 0 {
		t.first = p.late
	}
	weight := 1 / max(a.OffsetVar, 1e-24)
	t.weights += weight
	t.offsets += (float64(a.Offset) - t.offsets) * weight / t.weights
	if t.spots = append(t.spots, p); len(t.spots) > mostSpots {
		t.spots = t.spots[1:]
	}
}

// middle returns the mean of the spots.
func (t *trail) middle() (m spot) {
	for _, p := range t.spots {
		m.at += p.at / float64(len(t.spots))
		m.late += p.late / float64(len(t.spots))
	}
	return m
}

// fit finds by how much later a sample bursts get, from one to the next.
func (f *follower) fit() {
	lever, slope, span, free := 0.0, 0.0, 0.0, -1.0
	for i := range f.trails {
		t := &f.trails[i]
		m := t.middle()
		for _, p := range t.spots {
			lever += (p.at - m.at) * (p.at - m.at)
			slope += (p.at - m.at) * (p.late - m.late)
			span = max(span, p.at-t.spots[0].at)
		}
		if n := len(t.spots); n > 0 {
			free += float64(n - 1)
		}
	}
	if lever == 0 || free < 1 {
		return
	}
	slope /= lever
	spread := 0.0
	for i := range f.trails {
		m := f.trails[i].middle()
		for _, p := range f.trails[i].spots {
			e := p.late - m.late - slope*(p.at-m.at)
			spread += e * e / free
		}
	}
	moved := math.Abs(slope)
	f.slope = slope
	f.apart = f.apart || moved*span >= leastApart && moved >= apartDeviations*math.Sqrt(spread/lever)
}

// late returns how late a burst of device i is that is due at the transmitters' index at;
// ok is false where clocks are not followed, or the device is not.
func (f *follower) late(i int, at radio.SampleIndex) (late float64, ok bool) {
	if !f.apart || len(f.trails[i].spots) == 0 {
		return 0, false
	}
	return f.line(i, at), true
}

// line returns what the spots of device i say of its lateness at the transmitters' index at.
func (f *follower) line(i int, at radio.SampleIndex) float64 {
	m := f.trails[i].middle()
	return m.late + f.slope*(float64(at)-m.at)
}

// shift returns by how many samples what is heard has moved since the session began.
func (f *follower) shift(at radio.SampleIndex) radio.SampleIndex {
	sum, n := 0.0, 0.0
	for i := range f.trails {
		if late, ok := f.late(i, at); ok {
			sum, n = sum+late-f.trails[i].first, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return radio.SampleIndex(math.Round(sum / n))
}

// place returns where in its window the burst of record k of a block is, that was due at
// the transmitters' index at.
func (s *Sounder) place(c *captured, k int, at radio.SampleIndex) Acquired {
	i := k % s.cfg.Devices
	place := s.acquired[i]
	if late, ok := s.follower.late(i, at+s.cfg.slotStart(k/s.cfg.Devices, i)); ok {
		place.Delay = modem.Samples(late) - modem.Samples(c.shifts[k])
	}
	return place
}
