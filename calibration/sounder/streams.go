package sounder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/cmplx"
	"slices"

	"ringwave/radio"
)

// nominal is where a burst begins in its slot.
func (s *Sounder) nominal() int { return int(s.cfg.Guard) }

// margin is how far around its due time a block is looked for.
func (s *Sounder) margin() radio.SampleIndex {
	if s.traced {
		return 0
	}
	return radio.SampleIndex(s.cfg.Reach)
}

// play sends so many looks of block k and gives the index at which it begins: the
// transmitters', or where there are none, the receiver's.
func (s *Sounder) play(ctx context.Context, k, looks int) (radio.SampleIndex, error) {
	if s.cfg.Transmitters == nil {
		at, _, err := s.cfg.BlockAt(k)
		return at, err
	}
	s.putOff(k)
	at := s.cursor
	if err := s.announce(ctx, k, looks, at); err != nil {
		return 0, err
	}
	every, span := s.cfg.BlockSamples(), s.cfg.span()
	if looks < s.cfg.Looks {
		every, span = 0, s.cfg.lookSpan()
	}
	end := at + radio.SampleIndex(span)
	s.cursor = max(at+radio.SampleIndex(every), end+s.margin()+radio.SampleIndex(s.cfg.Flush+s.cfg.Reach))
	s.sent = end
	for i, tx := range s.cfg.Transmitters {
		for t := range looks {
			start := at + s.cfg.slotStart(t, i) + radio.SampleIndex(s.cfg.Guard)
			if err := s.write(ctx, tx, radio.TxMeta{Timed: true, Start: start, BurstEnd: true}); err != nil {
				return 0, fmt.Errorf("device %d sends a sounding: %w", i+1, err)
			}
		}
	}
	return at, s.idle(ctx, s.cursor)
}

// announce tells of a block's looks. In memory all that comes before has been received
// by then, so that what a simulation sets is the same in a resumed calibration.
func (s *Sounder) announce(ctx context.Context, k, looks int, at radio.SampleIndex) error {
	if s.cfg.OnLook == nil {
		return nil
	}
	if s.cfg.Flush == 0 && s.cfg.Reach == 0 {
		if err := s.skip(ctx, at); err != nil {
			return err
		}
	}
	for t := range looks {
		if err := s.cfg.OnLook(k, t, at+s.cfg.slotStart(t, 0)); err != nil {
			return err
		}
	}
	return nil
}

// idle promises zeros of all transmitters that do not go on by themselves.
func (s *Sounder) idle(ctx context.Context, until radio.SampleIndex) error {
	for i, tx := range s.cfg.Transmitters {
		if _, paced := tx.(radio.Pacer); paced {
			continue
		}
		idler, ok := tx.(radio.Idler)
		if !ok {
			return fmt.Errorf("device %d can neither idle nor pace itself", i+1)
		}
		if err := idler.Idle(ctx, until); err != nil {
			return fmt.Errorf("device %d idles: %w", i+1, err)
		}
	}
	return nil
}

// unevenly is by how much of Lead blocks are put off at most that come as fast as they can:
// evenly spaced ones could not tell how often a carrier has turned in between.
const unevenly = 0.5

// putOff moves the cursor to where block k can be sent: late enough for boards that
// go on by themselves, and, where it must be looked for, clear of the last one.
func (s *Sounder) putOff(k int) {
	s.cursor = max(s.cursor, s.sent+2*s.margin())
	_, part := math.Modf(float64(k) * math.Phi)
	more := radio.SampleIndex(unevenly * part * float64(s.cfg.Lead))
	for _, tx := range s.cfg.Transmitters {
		if p, ok := tx.(radio.Pacer); ok {
			s.cursor = max(s.cursor, p.Earliest()+radio.SampleIndex(s.cfg.Lead)+more)
		}
	}
}

// skipped is the number of samples that are thrown away at a time.
const skipped = 1 << 14

// skip throws away what comes before the receiver's index due.
func (s *Sounder) skip(ctx context.Context, due radio.SampleIndex) error {
	if s.waste == nil {
		s.waste = make([]complex64, skipped)
	}
	for s.next < due {
		n, _, err := s.read(ctx, s.waste[:min(skipped, due-s.next)], due)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil // what is left was lost
		}
	}
	return nil
}

// read is radio.ReadFullUntil of the receiver, no longer than the sounder is patient and
// the transmitters are there.
func (s *Sounder) read(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	if err := s.checkSenders(ctx, len(dst)); err != nil {
		return 0, radio.Meta{}, err
	}
	return s.take(ctx, dst, until)
}

// take is read that leaves the transmitters alone, as while they are written to.
func (s *Sounder) take(ctx context.Context, dst []complex64, until radio.SampleIndex) (int, radio.Meta, error) {
	waiting, release := s.patient(ctx)
	defer release()
	n, meta, err := radio.ReadFullUntil(waiting, s.cfg.Receiver, dst, until)
	if n > 0 {
		s.next = meta.Index(n-1) + 1
		s.adrift = s.adrift || uncounted(meta.Gaps)
	}
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return n, meta, fmt.Errorf("%w: the receiver gave nothing for %v, after its index %d and before %d; if it waits for what transmitters have not sent, its index differs from theirs by more than the %d samples within which it is looked for: %w",
			ErrStalled, s.cfg.Patience, s.next, until, s.cfg.Reach, err)
	}
	return n, meta, ended(err)
}

// uncounted reports whether one of the gaps is of unknown length.
func uncounted(gaps []radio.Gap) bool {
	return slices.ContainsFunc(gaps, func(g radio.Gap) bool { return !g.Exact })
}

// write sends a burst, no longer than the sounder is patient.
func (s *Sounder) write(ctx context.Context, tx radio.Transmitter, meta radio.TxMeta) error {
	waiting, release := s.patient(ctx)
	defer release()
	n, err := tx.Write(waiting, s.burst, meta)
	if err == nil || waiting.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: in %v %d of %d samples of a sounding found room; if its board waits for others, a whole block must find room: %w",
		ErrStalled, s.cfg.Patience, n, len(s.burst), err)
}

// checkSenders looks, every so many samples that are received, whether a transmitter
// has failed: what others have written must not go on being sent until the receiver
// has heard all of it.
func (s *Sounder) checkSenders(ctx context.Context, samples int) error {
	if s.unasked += samples; s.unasked < skipped {
		return nil
	}
	s.unasked = 0
	for i, tx := range s.cfg.Transmitters {
		if t, ok := tx.(radio.Idler); ok {
			if err := t.Idle(ctx, 0); err != nil { // promises nothing
				return fmt.Errorf("device %d: %w", i+1, err)
			}
		}
	}
	return nil
}

// ErrStalled: a stream gave or took nothing for as long as the sounder is patient.
var ErrStalled = errors.New("the radios stand still")

// patient returns the context of one wait, which is to be released behind it.
func (s *Sounder) patient(ctx context.Context) (waiting context.Context, release context.CancelFunc) {
	if s.cfg.Patience == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.cfg.Patience)
}

// ended makes a sentence of a stream's end.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("what is received ends here: %w", err)
	}
	return err
}

// hear captures a slot that begins at the receiver's index at. Damage is told in the
// record.
func (s *Sounder) hear(ctx context.Context, at radio.SampleIndex, b *Block) ([]complex64, Record, error) {
	if err := s.skip(ctx, at); err != nil {
		return nil, Record{}, err
	}
	slot := make([]complex64, s.cfg.slot())
	n, meta, err := s.read(ctx, slot, at+radio.SampleIndex(len(slot)))
	if n > 0 {
		if !s.haveEpochs {
			s.rxEpoch, s.haveEpochs = meta.Epoch, true
			s.txEpoch = s.epochs()
		}
		b.Receiver = meta.Epoch
	}
	if err != nil {
		return nil, Record{}, err
	}
	r := Record{Clipped: int64(meta.Clipped)}
	switch {
	case s.adrift || n < len(slot) || meta.First != at || len(meta.Gaps) > 0:
		r.Missed = "samples were lost"
	case meta.Invalid > 0:
		r.Missed = fmt.Sprintf("%d samples are no numbers", meta.Invalid)
	case meta.Epoch != s.rxEpoch || len(meta.Changes) > 0:
		r.Missed = errMoved.Error()
	}
	if r.Missed != "" {
		slot = nil
	}
	return slot, r, nil
}

// epochs returns the transmitters' present tuning epochs.
func (s *Sounder) epochs() []radio.Epoch {
	var epochs []radio.Epoch
	for _, tx := range s.cfg.Transmitters {
		epochs = append(epochs, tx.Epoch())
	}
	return epochs
}

// moved reports whether an epoch is no longer what it was in this session.
func (s *Sounder) moved() bool {
	if s.cfg.Transmitters == nil {
		return false
	}
	for i, e := range s.epochs() {
		if e != s.txEpoch[i] {
			return true
		}
	}
	return s.cfg.Receiver.Epoch() != s.rxEpoch
}

// judge asks the boards what they lost while a block was made, and gives its bursts
// up if anything was.
func (s *Sounder) judge(ctx context.Context, c *captured) error {
	if s.cfg.Transmitters == nil {
		return nil
	}
	reason, err := s.askForLosses(ctx)
	if err != nil {
		return err
	}
	if s.adrift && s.cfg.Reach > 0 {
		s.traced = false // the next block is looked for
	}
	if reason == "" && s.haveEpochs && s.moved() {
		reason = errMoved.Error()
	}
	if reason == "" {
		return nil
	}
	for k := range c.slots {
		c.slots[k], c.block.Records[k].Missed = nil, reason
	}
	return nil
}

// askForLosses asks all boards what they have lost, and gives why what was heard is
// given up, empty if it is not.
func (s *Sounder) askForLosses(ctx context.Context) (reason string, err error) {
	ctx, release := s.patient(ctx)
	defer release()
	for i, tx := range s.cfg.Transmitters {
		if err := checkLoss(ctx, tx); err != nil {
			return "", fmt.Errorf("asking device %d for its losses: %w", i+1, err)
		}
		if r := s.events(i, tx); r != "" {
			reason = r
		}
	}
	if err := checkLoss(ctx, s.cfg.Receiver); err != nil {
		return "", fmt.Errorf("asking the receiver for its losses: %w", err)
	}
	return reason, nil
}

// checkLoss asks a stream that can be asked.
func checkLoss(ctx context.Context, st radio.Stream) error {
	if c, ok := st.(radio.LossChecker); ok {
		return c.CheckLoss(ctx)
	}
	return nil
}

// events takes what device i has to tell; empty if nothing was lost.
func (s *Sounder) events(i int, tx radio.Transmitter) (reason string) {
	poll, cancel := context.WithCancel(context.Background())
	cancel() // what is there is given all the same
	for {
		e, err := tx.Event(poll)
		if err != nil {
			return reason
		}
		switch e.Kind {
		case radio.Late:
			reason = fmt.Sprintf("device %d was late: its sounding came after the board had passed its time", i+1)
		case radio.Underrun, radio.EventsLost:
			reason = fmt.Sprintf("device %d had an underrun", i+1)
			if !e.Exact {
				s.uncounted = reason
			}
		}
	}
}

// traceFactor is by how much the bursts' places must stand out of all others.
const traceFactor = 4

// trace looks for the look that was played at the transmitters' index at around its
// due time, and so finds what the receiver's index differs by. It looks for what
// repeats with the sounding's period in all slots together: carrier offsets and
// single faded bursts do no harm.
func (s *Sounder) trace(ctx context.Context, at radio.SampleIndex) error {
	margin := s.margin()
	from := at + s.offset - margin
	s.follower = newFollower(s.cfg.Devices)
	if err := s.skip(ctx, from); err != nil {
		return err
	}
	buf := make([]complex64, int(s.cfg.lookSpan())+2*int(margin))
	n, meta, err := s.read(ctx, buf, from+radio.SampleIndex(len(buf)))
	if err != nil {
		return err
	}
	s.adrift = false
	for _, g := range meta.Gaps {
		if g.At > 0 {
			return &NotHeardError{-1, s.cfg.Devices, errors.New("samples were lost")}
		}
	}
	starts := make([]int, s.cfg.Devices)
	for i := range starts {
		starts[i] = int(s.cfg.slotStart(0, i)) + s.nominal()
	}
	shift, ok := s.repeats(buf[:n], starts, int(s.cfg.lookSpan()))
	if !ok {
		return &NotHeardError{-1, s.cfg.Devices, fmt.Errorf("the receiver's index may differ by more than %d samples, or nothing is received", margin)}
	}
	// The bursts are known to a few samples now; the search over delays does the rest.
	s.offset += meta.First + radio.SampleIndex(shift) - (at + s.offset)
	s.traced = true
	return nil
}

// repeats returns by how much bursts in buf are shifted that lie at starts in what is span
// samples long.
func (s *Sounder) repeats(buf []complex64, starts []int, span int) (shift int, ok bool) {
	period, length := s.cfg.Sounding.Period(), s.cfg.Sounding.Burst()
	inner := length - period
	shifts := len(buf) - span + 1
	if shifts < 1 {
		return 0, false
	}
	score, power := make([]float64, shifts), make([]float64, shifts)
	products, energy := make([]complex128, len(buf)-period+1), make([]float64, len(buf)-period+1)
	for k := range len(buf) - period {
		x, y := complex128(buf[k]), complex128(buf[k+period])
		products[k+1] = products[k] + cmplx.Conj(x)*y
		energy[k+1] = energy[k] + (real(x)*real(x)+imag(x)*imag(x)+real(y)*real(y)+imag(y)*imag(y))/2
	}
	for _, first := range starts {
		for k := range shifts {
			a, b := first+k, first+k+inner
			score[k] += cmplx.Abs(products[b] - products[a])
			power[k] += energy[b] - energy[a]
		}
	}
	best := 0
	for k := range score {
		if score[k] > score[best] {
			best = k
		}
	}
	// Noise alone repeats by 1/sqrt(inner) of its power.
	floor := power[best] * traceFactor / math.Sqrt(float64(inner))
	return best, score[best] > floor
}
