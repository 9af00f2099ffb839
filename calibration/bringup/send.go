package bringup

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ringwave/radio"
	"ringwave/radio/life"
)

// carrier hears whether carriers go off: behind an end in good order, and behind that of a
// program that is killed.
func (b *bench) carrier(ctx context.Context, r *Result) error {
	uri := b.cfg.Second
	if uri == "" {
		uri = b.cfg.Array.Receiver
		r.find(OK, "heard by the bench's own receiver: --second URI names another board to hear it, which takes no part in the bench", "")
	}
	list, err := b.hearAll(ctx, uri)
	if err != nil {
		return err
	}
	for i, h := range list {
		b.judgeOff(r, b.named(i), h)
	}
	if r.Verdict == Fail || r.Verdict == Warn {
		return nil
	}
	if b.cfg.Child == nil {
		r.find(OK, "the end of a program that is killed was not tried", "")
		return nil
	}
	return b.killed(ctx, r, uri)
}

// stayOn is what to do about a carrier that stays on.
const stayOn = "unplug that board now, and do not send with it before it goes off by itself: bring its firmware up to date, and read \"What keeps a carrier off\" in radio/README.md"

// judgeOff says whether a transmitter was heard, and went off.
func (b *bench) judgeOff(r *Result, named string, h *hearing) {
	r.Spectra = append(r.Spectra, h.after)
	switch {
	case h.stays:
		f := h.after.Frequency(h.bin)
		h.after.Lines = append(h.after.Lines, Line{"stays on", f, radio.Power(h.after.Power[h.bin])})
		r.find(Fail, fmt.Sprintf("%s stays on: %.3g s after its end there is a line at %v, %.0f dB above the noise", named, h.off, h.after.Centre+f, float64(h.after.over(h.bin))), stayOn)
		r.Recordings = append(r.Recordings, h.after.recording("carrier-that-stays", h.tail))
	case !h.heard:
		r.find(Warn, named+" was not heard while it should have sent, so that nobody knows whether it goes off", "see the step levels")
	}
	r.measured(named+" off after", h.off, "s", none(), offWithin)
}

// killed has another program send, kills it, and hears whether carriers go off.
func (b *bench) killed(ctx context.Context, r *Result, uri string) (err error) {
	a := b.cfg.Array
	if err := b.ask(ctx, "a second program sends the tone at %v with all %d transmitters at once, and is killed; %s", a.Frequency+b.toneAbove(), len(a.Transmitters), b.loudness()); err != nil {
		return err
	}
	s, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = s.close(err) }()
	kill, err := b.cfg.Child(ctx)
	if err != nil {
		return fmt.Errorf("starting a second program that sends: %w", err)
	}
	dead := false
	defer func() {
		if !dead {
			_ = kill() // the error of what failed before says more
		}
	}()
	e, err := s.listen(ctx, uri, b.beside())
	if err != nil {
		return err
	}
	h := &hearing{}
	for left := b.patience(e); left > 0 && !h.heard; left -= window {
		_, during, err := e.look(ctx, "second program")
		if err != nil {
			return err
		}
		_, h.heard = b.sounds(e, during, b.quiet, false)
	}
	dead = true
	ended := make(chan error, 1)
	go func() { ended <- kill() }()
	h.before = b.quiet
	if err := h.behind(ctx, b, e, "second program", ended); err != nil {
		return err
	}
	b.judgeOff(r, "a transmitter whose program was killed", h)
	return nil
}

// The bounds of levels.
const (
	weak       = 0.1  // of radio.level
	apart      = 2.0  // from the gain that the configuration expects
	mostClips  = 1e-3 // share of samples
	resolution = 1.0 / 16
)

// levels says how loud each transmitter arrives.
func (b *bench) levels(ctx context.Context, r *Result) error {
	list, err := b.hearAll(ctx, b.cfg.Array.Receiver)
	if err != nil {
		return err
	}
	b.judgeLevels(r, list)
	return nil
}

// lower is what to do about samples that clip.
const lower = "lower radio.receive_gains_db or put attenuators between the boards, and then radio.level in proportion"

// judgeLevels says which transmitters are too weak and which too loud, one by one and all
// at once.
func (b *bench) judgeLevels(r *Result, list []*hearing) {
	all, clips := 0.0, false
	for i, h := range list {
		r.Spectra = append(r.Spectra, h.tone)
		clipped := float64(h.clipped) / float64(max(1, len(h.samples)))
		gain := float64(h.amplitude) / float64(b.cfg.Amplitude) / float64(b.cfg.Level)
		r.measured(transmitterRole(i)+" level", decibels(float64(h.amplitude)), "dB of full scale", decibels(weak*float64(b.cfg.Level)*float64(b.cfg.Amplitude)), 0)
		r.measured(transmitterRole(i)+" gain", gain, "of radio.level", weak, none())
		r.measured(transmitterRole(i)+" clipped", clipped, "share of samples", none(), mostClips)
		before := len(r.Findings)
		b.judgeLevel(r, i, h, gain, clipped)
		if clips = clips || clipped > mostClips; len(r.Findings) > before {
			r.Recordings = append(r.Recordings, h.tone.recording(transmitterRole(i)+" tone", h.samples))
		}
		all += float64(h.amplitude)
	}
	r.measured("all at once", all, "of full scale", resolution, 1)
	switch {
	case clips || r.Verdict == Fail:
	case all > 1:
		r.find(Fail, fmt.Sprintf("all transmitters at once reach %.2f of the receiver's full scale, and clip where they add up", all), fmt.Sprintf("%s, by %.0f dB", lower, math.Ceil(decibels(all)+1)))
	case all < resolution:
		r.find(Warn, fmt.Sprintf("all transmitters at once reach %.3f of the receiver's full scale: most of its converter's bits are not used", all), "raise radio.receive_gains_db, and radio.level in proportion")
	}
}

// judgeLevel says what is wrong with one transmitter's level.
func (b *bench) judgeLevel(r *Result, i int, h *hearing, gain, clipped float64) {
	named := b.named(i)
	switch {
	case !h.heard:
		r.find(Fail, named+" is not heard at all", "look at its cable or antenna, raise radio.transmit_gains_db or radio.receive_gains_db, and see whether its light says that it sends")
	case clipped > mostClips:
		r.find(Fail, fmt.Sprintf("%s clips %s of the receiver's samples", named, share(clipped)), lower+", by 6 dB at a time")
	case gain < weak:
		r.find(Fail, fmt.Sprintf("%s is weak: it arrives at %.3g of radio.level", named, gain), "look at its cable or antenna, raise radio.transmit_gains_db within radio.most_gain_db, or lower radio.level")
	case i < len(b.cfg.Means) && b.cfg.Means[i] > 0 && (gain > apart*b.cfg.Means[i] || gain < b.cfg.Means[i]/apart):
		r.find(Warn, fmt.Sprintf("%s arrives at %.3g of radio.level, and the configuration expects %.3g", named, gain, b.cfg.Means[i]), "write the gains that were measured into channel.mean_per_device, or give runs a calibration: ringwave calibrate")
	}
}

// The bounds of what stands beside a tone, in decibels of it.
const (
	littleLeak, mostLeak         = -30, -20
	littleImage, mostImage       = -30, -20
	littleHarmonic, mostHarmonic = -30, -20
)

// images says how clean each transmitter and the receiver are.
func (b *bench) images(ctx context.Context, r *Result) error {
	list, err := b.hearAll(ctx, b.cfg.Array.Receiver)
	if err != nil {
		return err
	}
	receiver := -math.MaxFloat64
	for i, h := range list {
		if !h.heard || float64(h.clipped) > mostClips*float64(len(h.samples)) {
			r.find(Skipped, b.named(i)+" was not heard well enough: see the step levels", "")
			continue
		}
		before := r.Verdict
		receiver = max(receiver, b.judgeImages(r, i, h))
		r.Spectra = append(r.Spectra, h.tone)
		if r.Verdict == Fail && before != Fail {
			r.Recordings = append(r.Recordings, h.tone.recording(transmitterRole(i)+" images", h.samples))
		}
	}
	if receiver > -math.MaxFloat64 {
		r.measured("receiver image", receiver, "dB of the tone", none(), mostImage)
		b.grade(r, receiver, littleImage, mostImage, fmt.Sprintf("the receiver, %s, has an image of %.1f dB: its I and Q differ", b.cfg.Array.Receiver, receiver),
			"switch on the board's IQ correction, tune it anew, or take another board for the receiver")
	}
	return nil
}

// judgeImages measures the lines beside a transmitter's tone, and returns the receiver's
// image in decibels.
func (b *bench) judgeImages(r *Result, i int, h *hearing) (receiver float64) {
	up, role, named := b.toneAbove(), transmitterRole(i), b.named(i)
	h.tone.Lines = nil
	tone := radio.Power(h.amplitude * h.amplitude)
	h.tone.Lines = append(h.tone.Lines, Line{"tone", h.frequency, tone})
	h.tone.line("receiver's DC", 0)
	beside := func(name string, f radio.Hertz) float64 {
		return max(-200, float64((h.tone.line(name, f) / tone).Decibels()))
	}
	leak, image := beside("leak", h.frequency-up), beside("image", h.frequency-2*up)
	harmonic := max(beside("2nd harmonic", h.frequency+up), beside("3rd harmonic", h.frequency+2*up), beside("3rd harmonic's image", h.frequency-4*up))
	receiver = beside("receiver's image", -h.frequency)
	r.measured(role+" leak", leak, "dB of the tone", none(), mostLeak)
	r.measured(role+" image", image, "dB of the tone", none(), mostImage)
	r.measured(role+" harmonics", harmonic, "dB of the tone", none(), mostHarmonic)
	b.grade(r, leak, littleLeak, mostLeak, fmt.Sprintf("%s leaks its oscillator at %.1f dB of what it sends: a DC spike in the middle of the band", named, leak),
		"raise radio.transmit_gains_db and attenuate behind the board, switch on its DC correction, or take another board")
	b.grade(r, image, littleImage, mostImage, fmt.Sprintf("%s has an image of %.1f dB: its I and Q differ", named, image),
		"switch on the board's IQ correction, tune it anew, or take another board")
	b.grade(r, harmonic, littleHarmonic, mostHarmonic, fmt.Sprintf("%s has harmonics of %.1f dB: its amplifier is overdriven, or the receiver's is", named, harmonic),
		"lower radio.transmit_gains_db, then radio.receive_gains_db, and look which of them helps")
	return receiver
}

// mostBetween is how far carriers of transmitters with a common clock may be apart, in hertz:
// in a frame of a tenth of a second they turn by a radian against each other at 1.6 Hz.
const mostBetween = 2.0

// ppm says how far carriers are off.
func (b *bench) ppm(ctx context.Context, r *Result) error {
	list, err := b.hearAll(ctx, b.cfg.Array.Receiver)
	if err != nil {
		return err
	}
	b.judgePPM(r, list)
	return nil
}

// judgePPM judges carriers against the receiver, and among each other. Where all are off alike
// it is the receiver.
func (b *bench) judgePPM(r *Result, list []*hearing) {
	// What is heard is the tone, of which a receiver's crystal is off carrier and samples alike.
	carrier, allowed := float64(b.cfg.Array.Frequency+b.toneAbove()), float64(b.cfg.OffsetSearch)
	var offs []float64
	for i, h := range list {
		if !h.heard {
			r.find(Skipped, b.named(i)+" was not heard: see the step levels", "")
			continue
		}
		off := float64(h.frequency - h.due)
		r.measured(transmitterRole(i)+" carrier", off, "Hz from the receiver's", -allowed, allowed)
		r.measured(transmitterRole(i)+" carrier", off/carrier*1e6, "ppm", -allowed/carrier*1e6, allowed/carrier*1e6)
		if offs = append(offs, off); math.Abs(off-offs[0]) > mostBetween {
			r.find(Fail, fmt.Sprintf("%s is %.4g Hz (%.3g ppm) off the first transmitter: they share no clock", b.named(i), off-offs[0], (off-offs[0])/carrier*1e6),
				"connect one 10 MHz reference to the clock inputs of all transmitters: their carriers must be one")
		}
	}
	if len(offs) == 0 || math.Abs(offs[0]) <= allowed {
		return
	}
	r.find(Fail, fmt.Sprintf("the receiver, %s, is %.4g ppm off the first transmitter, %.5g Hz, and allowed is calibration.offset_search_hz = %.5g", b.cfg.Array.Receiver, -offs[0]/carrier*1e6, -offs[0], allowed),
		fmt.Sprintf("give all boards one 10 MHz reference; or raise calibration.offset_search_hz above %.0f, for which calibration.sequence = \"m-sequence\" may be needed", math.Abs(offs[0])))
}

// sampleSeconds is for how long all boards run to see what they lose.
const sampleSeconds = 2.0

// samples lets all boards run at once, and counts what they lose.
func (b *bench) samples(ctx context.Context, r *Result) (err error) {
	a := b.cfg.Array
	if err := b.ask(ctx, "all %d transmitters are switched on at %v for about %.0f s, or three times as long, and send zeros, so that their oscillators leak; %s", len(a.Transmitters), a.Frequency, sampleSeconds+1, b.loudness()); err != nil {
		return err
	}
	s, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = s.close(err) }()
	e, err := s.listen(ctx, a.Receiver, 0)
	if err != nil {
		return err
	}
	var voices []radio.Transmitter
	for i := range a.Transmitters {
		tx, err := s.voice(ctx, i)
		if err != nil {
			return err
		}
		voices = append(voices, tx)
	}
	for try := 1; ; try++ {
		l, err := run(ctx, e, voices, int(sampleSeconds*float64(a.Rate)))
		if err != nil {
			return err
		}
		switch {
		case !l.any() && try > 1:
			r.find(Warn, fmt.Sprintf("samples were lost in %d of %d stretches of %.3g s: this machine is at times too slow", try-1, try, sampleSeconds), "give this machine nothing else to do")
			fallthrough
		case !l.any() || try == tries:
			b.judgeLosses(r, l)
			return nil
		}
	}
}

// any reports whether anything was lost.
func (l *losses) any() bool {
	return l.gaps > 0 || slices.ContainsFunc(l.underruns, func(n int) bool { return n > 0 })
}

// losses are what was lost while boards ran.
type losses struct {
	received  int
	gaps      int
	missing   radio.SampleCount // 0 with gaps where that is not known
	underruns []int             // of each transmitter
}

// run receives so many samples while transmitters idle, those before all idled left out.
func run(ctx context.Context, e *ear, voices []radio.Transmitter, samples int) (l losses, err error) {
	l.underruns = make([]int, len(voices))
	for i, tx := range voices {
		if idler, ok := tx.(radio.Idler); ok {
			if _, paced := tx.(radio.Pacer); !paced {
				if err := idler.Idle(ctx, radio.SampleIndex(4*samples)); err != nil {
					return l, fmt.Errorf("%s: %w", transmitterRole(i), err)
				}
			}
		}
	}
	if err := l.ask(ctx, e, voices); err != nil {
		return l, err
	}
	if _, _, err := e.take(ctx, window); err != nil {
		return l, err
	}
	l = losses{underruns: make([]int, len(voices))}
	epoch := e.rx.Epoch()
	for l.received < samples {
		if err := l.hear(ctx, e); err != nil {
			return l, err
		}
	}
	if err := l.ask(ctx, e, voices); err != nil {
		return l, err
	}
	if l.gaps == 0 && e.rx.Epoch() != epoch {
		l.gaps = 1 // or more, in what is not read yet
	}
	return l, nil
}

// hear receives a window, and counts what was lost of it and before.
func (l *losses) hear(ctx context.Context, e *ear) error {
	n, meta, err := radio.ReadFull(ctx, e.rx, make([]complex64, window))
	if err != nil {
		return fmt.Errorf("the receiver, %s: %w", e.uri, err)
	}
	l.received += n
	l.gaps += len(meta.Gaps)
	for _, g := range meta.Gaps {
		l.missing += g.Length
	}
	return nil
}

// ask asks all boards what they have lost.
func (l *losses) ask(ctx context.Context, e *ear, voices []radio.Transmitter) error {
	for i, tx := range voices {
		if c, ok := tx.(radio.LossChecker); ok {
			if err := c.CheckLoss(ctx); err != nil {
				return fmt.Errorf("%s: %w", transmitterRole(i), err)
			}
		}
		for {
			event, err := tx.Event(life.Ended())
			if err != nil {
				break
			}
			if event.Kind == radio.Underrun || event.Kind == radio.EventsLost {
				l.underruns[i]++
			}
		}
	}
	if c, ok := e.rx.(radio.LossChecker); ok {
		return c.CheckLoss(ctx)
	}
	return nil
}

// judgeLosses says who lost what.
func (b *bench) judgeLosses(r *Result, l losses) {
	const toDo = "give each board a USB controller of its own (three at 8 MHz are more than one USB 2 carries) and this machine nothing else to do, or lower link.sample_rate_hz"
	rate := b.cfg.Array.Rate
	r.measured("received", float64(l.received), "samples", none(), none())
	r.measured("receiver lost", float64(l.missing), "samples", none(), 0)
	r.measured("receiver gaps", float64(l.gaps), "", none(), 0)
	if l.gaps > 0 {
		r.find(Fail, fmt.Sprintf("the receiver, %s, lost samples %d times in %.3g s at %v, about %d of %d", b.cfg.Array.Receiver, l.gaps, float64(l.received)/float64(rate), rate, l.missing, l.received), toDo)
	}
	for i, n := range l.underruns {
		r.measured(transmitterRole(i)+" underruns", float64(n), "", none(), 0)
		if n > 0 {
			r.find(Fail, fmt.Sprintf("%s had nothing to send %d times in %.3g s at %v: an underrun", b.named(i), n, float64(l.received)/float64(rate), rate), toDo)
		}
	}
}

// round makes one encrypted round.
func (b *bench) round(ctx context.Context, r *Result) error {
	a := b.cfg.Array
	if b.cfg.Round == nil {
		r.find(Skipped, "there is nothing that makes a round", "")
		return nil
	}
	if err := b.ask(ctx, "one encrypted round, or a few: all %d transmitters send frames %v wide around %v; %s", len(a.Transmitters), a.Rate, a.Frequency, b.loudness()); err != nil {
		return err
	}
	for try := 1; try <= tries; try++ {
		lost, err := b.cfg.Round(ctx)
		if err != nil {
			return err
		}
		if lost == "" {
			r.measured("read at attempt", float64(try), "", none(), tries)
			r.find(OK, fmt.Sprintf("the round was read at attempt %d of %d", try, tries), "")
			return nil
		}
		r.find(OK, fmt.Sprintf("attempt %d was not read: %s", try, lost), "")
	}
	r.measured("read at attempt", math.NaN(), "", none(), tries)
	r.find(Fail, fmt.Sprintf("the round was not read in %d attempts, each with new phases", tries), "calibrate the bench (ringwave calibrate) and give the run its file as calibration.file: it finds gains and phases anew at each start")
	return nil
}
