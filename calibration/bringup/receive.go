package bringup

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ringwave/radio"
	"ringwave/radio/array"
)

// boards opens every board once, sets it as runs do, and sends nothing.
func (b *bench) boards(ctx context.Context, r *Result) error {
	s, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.close(nil) }()
	for i := range b.cfg.Array.Transmitters {
		if err := s.meet(ctx, r, transmitterRole(i), func() (radio.Device, error) { return s.transmitter(ctx, i) }); err != nil {
			return err
		}
	}
	others := []string{b.cfg.Array.Receiver, b.cfg.Second}
	for k, role := range []string{"the receiver", "the second receiver"} {
		if others[k] == "" {
			continue
		}
		err := s.meet(ctx, r, role, func() (radio.Device, error) {
			e, err := s.receiver(ctx, others[k], b.beside())
			return e.device, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// meet opens a board and a stream, which it does not start, and notes what the board says of
// itself. The error is ctx's.
func (s *session) meet(ctx context.Context, r *Result, role string, open func() (radio.Device, error)) error {
	d, err := open()
	if err == nil {
		err = opensStream(ctx, d, role)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch {
	case err != nil && d != nil:
		r.find(Fail, sentence(err), "bring that board's firmware up to date, or do what the sentence names; ringwave devices --probe says what else is the matter with it")
	case err != nil:
		r.find(Fail, sentence(err), remedy(Step{Name: r.Step}, err))
	}
	if d != nil {
		i := d.Info()
		r.Boards = append(r.Boards, Board{role, i.URI, i.Driver, i.Model, i.Serial, i.Firmware, i.Revision, i.Notes})
	}
	return nil
}

// opensStream opens a device's stream and closes it: firmware that is too old says so then.
func opensStream(ctx context.Context, d radio.Device, role string) error {
	var err error
	var st radio.Stream
	tx, sends := d.(radio.TransmitOpener)
	rx, receives := d.(radio.ReceiveOpener)
	switch transmits := role != "the receiver" && role != "the second receiver"; {
	case transmits && sends:
		st, err = tx.OpenTransmitter(ctx)
	case !transmits && receives:
		st, err = rx.OpenReceiver(ctx)
	default:
		return fmt.Errorf("%s, %s, cannot do that: it is a board for the other direction", role, d.Info().URI)
	}
	if err != nil {
		return fmt.Errorf("%s, %s: %w", role, d.Info().URI, err)
	}
	return st.Close()
}

// clock asks every board for the reference clock, where one is at their inputs.
func (b *bench) clock(ctx context.Context, r *Result) (err error) {
	switch b.cfg.Array.Clock {
	case array.SharedClock:
		r.find(OK, "radio.clock = \"shared\" is your word for it, and no board is asked: the step ppm tells", "")
		return nil
	case array.InternalClock:
		r.find(OK, "each board goes by its own oscillator, as radio.clock = \"internal\" says", "")
		return nil
	}
	s, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = s.close(err) }()
	a := b.cfg.Array
	for i, uri := range append(slices.Clone(a.Transmitters), a.Receiver) {
		role, dir := transmitterRole(i), radio.Transmit
		if i == len(a.Transmitters) {
			role, dir = "the receiver", radio.Receive
		}
		d, _, err := s.device(ctx, role, uri, dir, a)
		if err != nil {
			return err
		}
		b.judgeClock(ctx, r, fmt.Sprintf("%s, %s,", role, uri), d)
	}
	return nil
}

// judgeClock says whether a board follows the reference at its input.
func (b *bench) judgeClock(ctx context.Context, r *Result, named string, d radio.Device) {
	const toDo = "connect the 10 MHz reference to that board's clock input, one source to all boards; or, if they have a common clock that they do not tell of, say radio.clock = \"shared\""
	c, ok := d.(radio.ClockControl)
	if !ok || !slices.Contains(c.ClockSources(), external) {
		r.find(Fail, named+" cannot tell whether it follows a reference clock", toDo)
		return
	}
	if err := c.SetClockSource(ctx, external); err != nil {
		r.find(Fail, fmt.Sprintf("%s does not follow a reference clock: %v", named, err), toDo)
		return
	}
	locked, err := c.ClockLocked(ctx)
	switch {
	case err != nil:
		r.find(Fail, fmt.Sprintf("%s does not tell whether it follows the reference clock: %v", named, err), toDo)
	case !locked:
		r.find(Fail, named+" has no reference clock at its input", toDo)
	}
}

// silence listens while nothing is sent.
func (b *bench) silence(ctx context.Context, r *Result) (err error) {
	s, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = s.close(err) }()
	e, err := s.listen(ctx, b.cfg.Array.Receiver, b.beside())
	if err != nil {
		return err
	}
	if _, _, err := e.take(ctx, window); err != nil { // as it starts
		return err
	}
	x, clipped, err := e.take(ctx, stretch)
	if err != nil {
		return err
	}
	q := newSpectrum("silence", x, e.rate, e.tuned)
	b.quiet = q
	b.judgeSilence(r, q, float64(clipped)/stretch)
	r.Spectra = append(r.Spectra, q)
	if r.Verdict == Fail {
		r.Recordings = append(r.Recordings, q.recording("silence", x))
	}
	return nil
}

// The bounds of what is heard of nobody, in parts of radio.level.
const (
	littleDC, mostDC                      = 0.1, 0.3
	littleNoise, mostNoise                = 0.1, 0.3
	littleTone, mostTone                  = 0.05, 0.3
	aloneClips                            = 1e-4 // share of samples
	noiseBandwidth                        = 2.0  // of the window, in bins
	toneOver               radio.Decibels = 20
)

// judgeSilence says what is wrong with a receiver, or with what it hears.
func (b *bench) judgeSilence(r *Result, q *Spectrum, clipped float64) {
	level := float64(b.cfg.Level)
	noise := math.Sqrt(q.floor() * bins / noiseBandwidth)
	dc := math.Sqrt(float64(q.line("DC", 0)))
	tone := q.loudestBeside(0)
	strength := 0.0
	if q.over(tone) > toneOver {
		strength = math.Sqrt(q.Power[tone])
		q.Lines = append(q.Lines, Line{"something else", q.Frequency(tone), radio.Power(q.Power[tone])})
	}
	r.measured("noise", decibels(noise), "dB of full scale", none(), decibels(level*mostNoise))
	r.measured("DC", decibels(dc), "dB of full scale", none(), decibels(level*mostDC))
	r.measured("loudest other line", decibels(strength), "dB of full scale", none(), decibels(level*mostTone))
	r.measured("clipped", clipped, "share of samples", none(), aloneClips)
	if clipped > aloneClips {
		r.find(Fail, fmt.Sprintf("the receiver clips %s of its samples though nothing is sent: something near it is far too loud", share(clipped)), "lower radio.receive_gains_db, the amplifier first, or put a filter before the receiver")
		return
	}
	b.grade(r, dc/level, littleDC, mostDC, fmt.Sprintf("the receiver has a DC spike of %.1f dB of full scale, %s of radio.level", decibels(dc), share(dc/level)),
		"switch on the board's DC correction, lower its gain behind the mixer (VGA) and raise the one before it, or take another board for the receiver")
	b.grade(r, noise/level, littleNoise, mostNoise, fmt.Sprintf("noise is %.1f dB of full scale, %s of radio.level, though nothing is sent", decibels(noise), share(noise/level)),
		"raise the first gain of radio.receive_gains_db and lower the last one, or choose a quieter band")
	b.grade(r, strength/level, littleTone, mostTone, fmt.Sprintf("something sends at %v, %.1f dB of full scale, though the bench is silent", q.Centre+q.Frequency(tone), decibels(strength)),
		"find what it is (another transmitter, a clock's harmonic, a board of this bench that stays on: unplug the boards one by one), or choose another radio.frequency_hz")
}

// grade adds a finding where a value is above little, and fails above most.
func (b *bench) grade(r *Result, value, little, most float64, text, toDo string) {
	switch {
	case value > most:
		r.find(Fail, text, toDo)
	case value > little:
		r.find(Warn, text, toDo)
	}
}

// loudestBeside returns the largest bin that does not belong to a line.
func (s *Spectrum) loudestBeside(f radio.Hertz) (bin int) {
	line, best := s.bin(f), -1.0
	for k, p := range s.Power {
		if k < line-2*lobe || k > line+2*lobe {
			if p > best {
				bin, best = k, p
			}
		}
	}
	return bin
}
