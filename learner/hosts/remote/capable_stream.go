package remote

import (
	"context"

	"ringwave/radio"
)

// pacing, idling, checking and counting are what not every stream does.
type (
	pacing   struct{ t *Transmitter }
	idling   struct{ t *Transmitter }
	checking struct{ t *Transmitter }
	counting struct{ t *Transmitter }
)

// Earliest implements radio.Pacer: the index of the last answer, and the time since that was
// asked for if the stream runs. It does not go back.
func (p pacing) Earliest() radio.SampleIndex { return p.t.earliest() }

// Idle implements radio.Idler.
func (i idling) Idle(ctx context.Context, until radio.SampleIndex) error {
	_, err := i.t.call(ctx, &request{Op: opIdle, Index: until})
	return err
}

// CheckLoss implements radio.LossChecker.
func (c checking) CheckLoss(ctx context.Context) error {
	_, err := c.t.call(ctx, &request{Op: opLosses})
	return err
}

// Clipped implements radio.ClipCounter.
func (c counting) Clipped() radio.SampleCount {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	return c.t.clipped
}

// What a stream does beyond what all do.
const (
	idles = 1 << iota
	checks
	counts
)

// capable returns t with the capabilities that the radio's stream has, and no others.
func (t *Transmitter) capable(s *status) radio.Transmitter {
	set := bit(s.Idles, idles) | bit(s.Checks, checks) | bit(s.Counts, counts)
	if s.Paces {
		return t.paced(set)
	}
	return t.unpaced(set)
}

// paced is capable for streams that are paced.
func (t *Transmitter) paced(set int) radio.Transmitter {
	switch set {
	case idles:
		return struct {
			*Transmitter
			radio.Pacer
			radio.Idler
		}{t, pacing{t}, idling{t}}
	case checks:
		return struct {
			*Transmitter
			radio.Pacer
			radio.LossChecker
		}{t, pacing{t}, checking{t}}
	case idles | checks:
		return struct {
			*Transmitter
			radio.Pacer
			radio.Idler
			radio.LossChecker
		}{t, pacing{t}, idling{t}, checking{t}}
	case counts:
		return struct {
			*Transmitter
			radio.Pacer
			radio.ClipCounter
		}{t, pacing{t}, counting{t}}
	case idles | counts:
		return struct {
			*Transmitter
			radio.Pacer
			radio.Idler
			radio.ClipCounter
		}{t, pacing{t}, idling{t}, counting{t}}
	case checks | counts:
		return struct {
			*Transmitter
			radio.Pacer
			radio.LossChecker
			radio.ClipCounter
		}{t, pacing{t}, checking{t}, counting{t}}
	case idles | checks | counts:
		return struct {
			*Transmitter
			radio.Pacer
			radio.Idler
			radio.LossChecker
			radio.ClipCounter
		}{t, pacing{t}, idling{t}, checking{t}, counting{t}}
	}
	return struct {
		*Transmitter
		radio.Pacer
	}{t, pacing{t}}
}

// unpaced is capable for streams that are not.
func (t *Transmitter) unpaced(set int) radio.Transmitter {
	switch set {
	case idles:
		return struct {
			*Transmitter
			radio.Idler
		}{t, idling{t}}
	case checks:
		return struct {
			*Transmitter
			radio.LossChecker
		}{t, checking{t}}
	case idles | checks:
		return struct {
			*Transmitter
			radio.Idler
			radio.LossChecker
		}{t, idling{t}, checking{t}}
	case counts:
		return struct {
			*Transmitter
			radio.ClipCounter
		}{t, counting{t}}
	case idles | counts:
		return struct {
			*Transmitter
			radio.Idler
			radio.ClipCounter
		}{t, idling{t}, counting{t}}
	case checks | counts:
		return struct {
			*Transmitter
			radio.LossChecker
			radio.ClipCounter
		}{t, checking{t}, counting{t}}
	case idles | checks | counts:
		return struct {
			*Transmitter
			radio.Idler
			radio.LossChecker
			radio.ClipCounter
		}{t, idling{t}, checking{t}, counting{t}}
	}
	return t
}
