package bringup

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ringwave/radio"
)

const (
	// window is how many samples are looked at to see whether something is heard, and
	// stretch how many are measured.
	window  = 8 * bins
	stretch = 32 * bins
	// standsOut is by how much a line must stand out of the noise to be heard, and louder by
	// how much it must be above what was there before.
	standsOut radio.Decibels = 10
	louder    float64        = 4
	// offWithin is how long after its end a carrier may still be heard: the guard's limit is
	// a second unless given, and what is received comes late.
	offWithin = 2.0 // seconds
)

// hearing is what a receiver hears of one transmitter.
type hearing struct {
	before  *Spectrum
	tone    *Spectrum
	samples []complex64 // of the tone
	clipped radio.SampleCount
	heard   bool
	// Frequency of the tone from the receiver's carrier, and what it was to be.
	frequency, due radio.Hertz
	amplitude      radio.Amplitude

	after *Spectrum
	tail  []complex64 // samples of after
	// stays says that something is heard of it after its end, as a line at bin; else off is
	// how many seconds after it nothing is heard any more.
	stays bool
	bin   int
	off   float64
}

// band returns where the transmitters' tone, or their carriers and their tone, may be
// heard, from the receiver's carrier: half way to the neighbouring lines.
func (b *bench) band(e *ear, carriers bool) (low, high radio.Hertz) {
	const half = radio.Hertz(toneParts) / tonePeriod / 2
	centre := b.cfg.Array.Frequency - e.tuned
	low, high = centre+b.toneAbove()-half*e.rate, centre+b.toneAbove()+half*e.rate
	if carriers {
		low = centre - half*e.rate
	}
	return low, high
}

// sounds reports whether something is heard that was not there before, and where.
func (b *bench) sounds(e *ear, s, before *Spectrum, carriers bool) (bin int, yes bool) {
	low, high := b.band(e, carriers)
	bin = s.loudest(low, high, before)
	return bin, s.over(bin) > standsOut && (before == nil || s.Power[bin] > louder*before.Power[bin])
}

// look takes a window of samples and its spectrum.
func (e *ear) look(ctx context.Context, name string) ([]complex64, *Spectrum, error) {
	x, _, err := e.take(ctx, window)
	if err != nil {
		return x, nil, err
	}
	return x, newSpectrum(name, x, e.rate, e.tuned), nil
}

// tries is how often something is tried that a machine with other things to do may spoil.
const tries = 3

// hearOne has transmitter i send the tone alone, and listens before, meanwhile and after;
// again where the board starved meanwhile.
func (s *session) hearOne(ctx context.Context, e *ear, i int) (h *hearing, err error) {
	for range tries {
		if h, err = s.hearOnce(ctx, e, i); !errors.Is(err, radio.ErrStarved) {
			break
		}
	}
	return h, err
}

// hearOnce is one try of hearOne.
func (s *session) hearOnce(ctx context.Context, e *ear, i int) (h *hearing, err error) {
	b := s.b
	h = &hearing{due: b.cfg.Array.Frequency + b.toneAbove() - e.tuned}
	if _, h.before, err = e.look(ctx, transmitterRole(i)+", before"); err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	v := &session{b: b, devices: s.devices, guarded: s.guarded}
	tx, err := v.voice(own, i)
	if err != nil {
		return nil, v.close(err)
	}
	humming := make(chan error, 1)
	go func() { humming <- hum(own, tx, b.tone()) }()
	err = h.during(ctx, b, e, transmitterRole(i))
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- v.close(<-humming) }()
	if err != nil {
		<-ended
		return nil, err
	}
	return h, h.behind(ctx, b, e, transmitterRole(i), ended)
}

// during listens while a transmitter sends, from when it is heard.
func (h *hearing) during(ctx context.Context, b *bench, e *ear, role string) error {
	bin := 0
	for left := b.patience(e); left > 0 && !h.heard; left -= window {
		_, s, err := e.look(ctx, role)
		if err != nil {
			return err
		}
		bin, h.heard = b.sounds(e, s, h.before, false)
	}
	var err error
	if h.samples, h.clipped, err = e.take(ctx, stretch); err != nil {
		return err
	}
	h.measure(e, role, bin)
	return nil
}

// measure measures the tone in the samples, if it is heard, of which a bin is known.
func (h *hearing) measure(e *ear, role string, bin int) {
	h.tone = newSpectrum(role, h.samples, e.rate, e.tuned)
	if !h.heard {
		return
	}
	h.frequency, h.amplitude = refine(h.samples, e.rate, h.tone.Frequency(bin))
}

// patience returns for how many samples a transmitter is waited for.
func (b *bench) patience(e *ear) int {
	return int(float64(e.rate)*2) + int(b.cfg.Soundings.Lead+b.cfg.Soundings.Reach)
}

// behind listens behind the end of a transmitter, until nothing is heard of it any more.
func (h *hearing) behind(ctx context.Context, b *bench, e *ear, role string, ended <-chan error) (err error) {
	before := h.before
	if b.quiet != nil && b.quiet.Centre == e.tuned {
		before = b.quiet
	}
	if err := e.until(ctx, ended); err != nil {
		return err
	}
	for since := window; ; since += window {
		if h.tail, h.after, err = e.look(ctx, role+", after"); err != nil {
			return err
		}
		h.off = float64(since) / float64(e.rate)
		if h.bin, h.stays = b.sounds(e, h.after, before, true); !h.stays || h.off > offWithin {
			return nil
		}
	}
}

// until throws samples away until something has ended, and returns its error.
func (e *ear) until(ctx context.Context, ended <-chan error) error {
	for {
		select {
		case err := <-ended:
			return err
		default:
		}
		if _, _, err := e.take(ctx, window); err != nil {
			return err
		}
	}
}

// hearAll has each transmitter heard by a receiver, once.
func (b *bench) hearAll(ctx context.Context, uri string) (list []*hearing, err error) {
	if list := b.heard[uri]; list != nil {
		return list, nil
	}
	a := b.cfg.Array
	if err := b.ask(ctx, "%d transmitters, one after the other, send a tone at %v, each for about a second, and what leaks beside it within %v around %v; %s",
		len(a.Transmitters), a.Frequency+b.toneAbove(), a.Rate, a.Frequency, b.loudness()); err != nil {
		return nil, err
	}
	s, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = s.close(err) }()
	e, err := s.listen(ctx, uri, b.beside())
	if err != nil {
		return nil, err
	}
	for i := range a.Transmitters {
		h, err := s.hearOne(ctx, e, i)
		if err != nil {
			return nil, err
		}
		list = append(list, h)
		if h.stays {
			break // what it goes on sending would be taken for another's
		}
	}
	b.heard[uri] = list
	return list, nil
}

// recording keeps a part of samples, to be sent back.
func (e *Spectrum) recording(name string, samples []complex64) Recording {
	const most = 1 << 14
	return Recording{Name: name, Rate: e.Rate, Centre: e.Centre, Samples: samples[:min(most, len(samples))]}
}

// decibels returns 20 log10 of an amplitude, no less than -200.
func decibels(a float64) float64 { return 20 * math.Log10(max(a, 1e-10)) }

// share is a share as text.
func share(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }
