package virtual

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"sort"

	"ringwave/radio"
	"ringwave/radio/air"
)

// ear is a board's antenna while it receives.
type ear struct {
	member *member
	cfg    Ear
	links  []*link
	heard  int64 // samples
	mix    [block]complex64
	coming [][]complex64 // for Superpose
}

// gainStep is a change of gain before sample at.
type gainStep struct {
	at   int64
	gain complex64
}

// link is the way to an ear.
type link struct {
	cfg  Link
	gain complex64
	// asked counts the transmitter's samples, steps those that the ear has heard.
	asked, steps []gainStep
	// line holds the last Delay samples, oldest at head.
	line []complex64
	head int
	// loud tells that the line may hold something.
	loud      bool
	src, bent [block]complex64
}

// connect makes the ears and their links.
func (b *Bench) connect(cfg Config) error {
	for _, m := range b.members {
		b.ears = append(b.ears, &ear{member: m})
	}
	for _, e := range cfg.Ears {
		if err := b.check("the board of an ear", e.Board); err != nil {
			return err
		}
		b.ears[e.Board].cfg = e
	}
	for _, l := range cfg.Links {
		if err := b.check("the transmitter of a link", l.From); err != nil {
			return err
		}
		if err := b.check("the receiver of a link", l.To); err != nil {
			return err
		}
		if l.Delay < 0 || l.Delay > MaxDelay {
			return fmt.Errorf("bench: the link from board %d to board %d has a delay of %d samples; allowed is 0 to %d", l.From, l.To, l.Delay, MaxDelay)
		}
		e := b.ears[l.To]
		e.links = append(e.links, &link{cfg: l, gain: l.Gain, line: make([]complex64, l.Delay)})
		e.coming = append(e.coming, nil)
	}
	return nil
}

// SetGain returns the links from one board to another a new gain, from sample at on
// of the transmitter's stream: the present one, or its next if it does not
// transmit. A sample that has gone already stands for now.
func (b *Bench) SetGain(from, to int, at radio.SampleIndex, gain complex64) error {
	if err := b.check("the transmitter of a link", from); err != nil {
		return err
	}
	if err := b.check("the receiver of a link", to); err != nil {
		return err
	}
	b.lock()
	defer b.unlock()
	found := false
	for _, l := range b.ears[to].links {
		if l.cfg.From == from {
			l.asked = insertStep(l.asked, gainStep{int64(at), gain})
			found = true
		}
	}
	if !found {
		return fmt.Errorf("bench: there is no link from board %d to board %d", from, to)
	}
	return nil
}

// insertStep puts s behind all steps that are not later.
func insertStep(steps []gainStep, s gainStep) []gainStep {
	i := sort.Search(len(steps), func(i int) bool { return steps[i].at > s.at })
	return slices.Insert(steps, i, s)
}

// forget empties the links' lines: what was on its way when a receiver starts is
// not heard.
func (e *ear) forget() {
	for _, l := range e.links {
		clear(l.line)
		l.loud = false
		for _, s := range l.steps {
			l.gain = s.gain
		}
		l.steps = l.steps[:0]
	}
}

// pass lets n samples go by that the ear does not hear.
func (e *ear) pass(b *Bench, n int) {
	for _, l := range e.links {
		from := b.members[l.cfg.From]
		for from.now.Mode == Transmitting && len(l.asked) > 0 && l.asked[0].at < from.sent+int64(n) {
			l.gain = l.asked[0].gain
			l.asked = slices.Delete(l.asked, 0, 1)
		}
	}
}

// hear returns the next n samples at the board's converter; they hold until the next
// call.
func (e *ear) hear(b *Bench, n int) []complex64 {
	dst := e.mix[:n]
	clear(dst)
	for i, l := range e.links {
		src, silent := l.arrive(b, e, n)
		if e.cfg.Superpose != nil {
			l.amplify(src, src, e.heard, func(dst, src []complex64, gain complex64) { air.Scale(dst, gain) })
			e.coming[i] = src
			continue
		}
		if silent {
			l.skip(e.heard + int64(n))
			continue
		}
		l.amplify(dst, src, e.heard, air.Add)
	}
	if e.cfg.Superpose != nil {
		e.cfg.Superpose(dst, e.coming, e.heard)
	}
	if e.cfg.Noise != nil {
		e.cfg.Noise.Add(dst, e.heard)
	}
	if g := e.member.now.Gain; g != 0 {
		air.Scale(dst, complex(float32(g.Amplitude()), 0))
	}
	e.heard += int64(n)
	return dst
}

// arrive returns the next n samples of a link but for its gain, and whether they are
// all zero.
func (l *link) arrive(b *Bench, e *ear, n int) (src []complex64, silent bool) {
	from := b.members[l.cfg.From]
	l.schedule(from, e.heard, n)
	src = l.src[:n]
	heard := from.now.Mode == Transmitting && b.atRate(from) && l.radiate(b, from, e.member, src)
	if !heard {
		clear(src)
	}
	if l.cfg.Path != nil {
		l.cfg.Path.Apply(l.bent[:n], src, e.heard-int64(len(l.line)))
		src = l.bent[:n]
		heard = true
	}
	if len(l.line) == 0 {
		return src, !heard
	}
	if !heard && !l.loud {
		return src, true
	}
	l.loud = l.delay(src) || heard
	return src, false
}

// schedule turns what was asked for at one of the transmitter's samples to where
// the ear hears it.
func (l *link) schedule(from *member, heard int64, n int) {
	for from.now.Mode == Transmitting && len(l.asked) > 0 && l.asked[0].at < from.sent+int64(n) {
		s := l.asked[0]
		at := heard + max(0, s.at-from.sent) + int64(len(l.line))
		l.steps = insertStep(l.steps, gainStep{at, s.gain})
		l.asked = slices.Delete(l.asked, 0, 1)
	}
}

// radiate puts into dst what the transmitter sends, at its gain and turned by what
// its carrier and the receiver's differ. It tells whether it is within what the
// receiver hears.
func (l *link) radiate(b *Bench, from, to *member, dst []complex64) bool {
	away := carrier(from) - carrier(to)
	if math.Abs(away) > float64(b.rate)/2 {
		return false
	}
	copy(dst, from.buf[:len(dst)])
	amplitude := float64(from.now.Gain.Amplitude())
	turn := cmplx.Rect(amplitude, from.phase-to.phase)
	if away != 0 {
		rotate(dst, turn, away/float64(b.rate), b.index)
	} else if turn != 1 {
		air.Scale(dst, complex64(turn))
	}
	return true
}

// carrier returns the true frequency of a board's carrier in hertz.
func carrier(m *member) float64 {
	f := float64(m.now.Frequency)
	if m.locked {
		return f
	}
	return f * (1 + m.offset)
}

// delay passes src through the line and tells whether anything is left in it.
func (l *link) delay(src []complex64) (loud bool) {
	for k, x := range src {
		src[k], l.line[l.head] = l.line[l.head], x
		if l.head++; l.head == len(l.line) {
			l.head = 0
		}
	}
	return slices.ContainsFunc(l.line, func(x complex64) bool { return x != 0 })
}

// amplify does add with each stretch of one gain.
func (l *link) amplify(dst, src []complex64, heard int64, add func(dst, src []complex64, gain complex64)) {
	at := 0
	for len(l.steps) > 0 && l.steps[0].at < heard+int64(len(src)) {
		if k := int(l.steps[0].at - heard); k > at {
			add(dst[at:k], src[at:k], l.gain)
			at = k
		}
		l.gain = l.steps[0].gain
		l.steps = slices.Delete(l.steps, 0, 1)
	}
	add(dst[at:], src[at:], l.gain)
}

// skip makes the changes of gain before an index.
func (l *link) skip(end int64) {
	for len(l.steps) > 0 && l.steps[0].at < end {
		l.gain = l.steps[0].gain
		l.steps = slices.Delete(l.steps, 0, 1)
	}
}

// rotorStep is the number of samples between two exact phases of rotate.
const rotorStep = 64

// rotate multiplies x, whose first sample has the given index, by turn and by a
// carrier of so many cycles a sample. How a stream is cut into calls changes
// nothing.
func rotate(x []complex64, turn complex128, cycles float64, index int64) {
	var powers [rotorStep]complex128
	for k := range powers {
		powers[k] = cmplx.Rect(1, 2*math.Pi*cycles*float64(k))
	}
	var base complex128
	exact := int64(-1)
	for k, v := range x {
		i := index + int64(k)
		if i/rotorStep != exact {
			exact = i / rotorStep
			_, phase := math.Modf(cycles * float64(exact*rotorStep))
			base = turn * cmplx.Rect(1, 2*math.Pi*phase)
		}
		x[k] = complex64(complex128(v) * base * powers[i%rotorStep])
	}
}
