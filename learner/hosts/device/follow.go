package device

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"time"

	"ringwave/learner/hosts/wire"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
	"ringwave/radio/intake"
)

// handle does what a message asks for. An error ends the device's part.
func (d *Device) handle(ctx context.Context, m wire.Message) error {
	switch m.Kind {
	case wire.Welcome:
		return d.join(m)
	case wire.Refused:
		return d.refusedBy(m)
	case wire.Greet:
		if d.part == nil || m.Run == d.run || d.now().Sub(d.heard) > abandoned*d.cfg.Beat {
			return d.greet()
		}
		return nil
	}
	if d.part == nil || m.Run != d.run {
		return nil // of a run that is not, or no longer, this device's
	}
	d.heard = d.now()
	if d.part.Member == nil {
		return d.sounded(m)
	}
	switch m.Kind {
	case wire.Prepare:
		return d.prepare(ctx, m)
	case wire.Send:
		return d.send(m)
	case wire.History:
		return d.history(ctx, m)
	case wire.Checkpoint:
		return d.checkpoint(ctx, m)
	case wire.End:
		return d.end(m)
	case wire.Pulse:
		d.pulse(m)
	}
	return nil
}

// abandoned is after how many beats without a word of its server a device follows that of
// another run, which asks for it.
const abandoned = 10

// refusedBy hears that the server does not let the device in, or not yet, or that another
// process is in its place.
func (d *Device) refusedBy(m wire.Message) error {
	if m.Device != uint32(d.index) || len(m.Body) < len(d.greeting.Nonce) {
		return nil
	}
	nonce, why := m.Body[:len(d.greeting.Nonce)], m.Body[len(d.greeting.Nonce):]
	replaced := d.part != nil && m.Run == d.run && bytes.Equal(nonce, d.welcomed)
	switch {
	case !replaced && !bytes.Equal(nonce, d.greeting.Nonce):
		return nil // another process's, or of another day
	case m.Slot.Again == 0:
		return intake.UserError(fmt.Errorf("the server refuses %s (%s): %s", d.cfg.Identity, d.cfg.Identity.Path, why))
	case d.part == nil:
		d.tell("the server asks to wait: " + string(why))
	}
	return nil
}

// join takes part in the run of a welcome to the last greeting.
func (d *Device) join(m wire.Message) error {
	var w wire.Run
	if err := wire.ParseJSON(m.Body, &w); err != nil {
		d.tell("ignored a welcome: " + err.Error())
		return nil
	}
	again := d.part != nil && m.Run == d.run && bytes.Equal(w.Nonce, d.welcomed) // for its answer was lost
	if m.Device != uint32(d.index) || !again && !bytes.Equal(w.Nonce, d.greeting.Nonce) {
		return nil // another device's, or of another day
	}
	if offset := w.Clock.Sub(d.now()); offset.Abs() > d.cfg.MaxOffset {
		return d.decline(m.Run, intake.UserError(fmt.Errorf("the clock of device %d's host and the server's are %v apart; allowed are %v: set that of the host (%s), or the server's (%s)",
			d.index, offset.Abs().Round(time.Second), d.cfg.MaxOffset, d.now().UTC().Format(time.RFC3339), w.Clock.UTC().Format(time.RFC3339))))
	}
	if w.Version != d.cfg.Version {
		return d.decline(m.Run, intake.UserError(fmt.Errorf("the host of device %d has version %s of the program and the server %s: install the same on both", d.index, d.cfg.Version, w.Version)))
	}
	if d.part != nil && m.Run == d.run {
		d.alive(w.Nonce)
		return d.ready() // the server was begun anew, the run is the same
	}
	if err := d.leave(); err != nil {
		return err
	}
	part, err := d.cfg.Join(m.Run, w)
	if err != nil {
		return d.decline(m.Run, err)
	}
	d.run, d.part, d.prepared, d.scored, d.opened = m.Run, part, false, 0, map[uint32][]byte{}
	d.at, d.share, d.commitment, d.answered = slot.Slot{}, nil, nil, make([]answer, slot.Transmissions)
	d.ended, d.leaders, d.warned, d.catching = time.Time{}, leaders{}, false, catching{}
	if part.Context != nil {
		d.key, d.c1 = part.Context.NewAggregatedKey(), part.Context.NewAggregatedC1()
		d.in = part.Context.Modulus().NewVector(part.Context.Params.N)
	}
	if part.Radio != nil {
		d.tuned.Store(&tuned{m.Run, part.Radio})
	}
	d.heard = d.now()
	d.alive(w.Nonce)
	return d.ready()
}

// ready tells that all is made.
func (d *Device) ready() error {
	r := d.part.Readiness
	if r.Nonce = d.welcomed; d.part.Member != nil {
		r.Rounds = d.part.Member.Round()
	}
	body, err := wire.AppendJSON(r)
	if err != nil {
		return err
	}
	return d.answer(wire.Message{Kind: wire.Ready, Body: body})
}

// prepare begins an attempt, once the model is where the server's is.
func (d *Device) prepare(ctx context.Context, m wire.Message) error {
	k := int(m.Slot.Round)
	if k <= d.part.Member.Round() || k > d.part.Rounds || d.prepared && older(m.Slot, d.at) {
		return nil // said before, and heard late
	}
	if err := d.take(m.Body, signed); err != nil {
		return err
	}
	if d.part.Member.Round() != k-1 {
		d.pending = &m
		return d.askFor(k - 1)
	}
	d.pending = nil
	d.caughtUp()
	if d.prepared && m.Slot.Round == d.at.Round && m.Slot.Attempt == d.at.Attempt {
		return d.confirm()
	}
	if err := d.enter(ctx, m.Slot); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return d.refuse(m.Slot, err)
	}
	return d.confirm()
}

// older reports whether an attempt comes before another.
func older(a, b slot.Slot) bool {
	return a.Round < b.Round || a.Round == b.Round && a.Attempt < b.Attempt
}

// enter gets ready for an attempt: keys of its epoch, scalars of its round, fresh randomness.
func (d *Device) enter(ctx context.Context, s slot.Slot) error {
	k, c := int(s.Round), d.part.Cipher
	if epoch := d.part.Epoch(k); epoch != c.Epoch() {
		d.opened[c.Epoch()] = wire.AppendVector(nil, c.PublicKey())
		if err := c.NewEpoch(epoch); err != nil {
			return err
		}
		if err := d.openKeys(false); err != nil {
			return err
		}
	}
	if d.scored != k {
		values, loss, clipped, _, err := d.part.Member.Scalars(ctx, k)
		if err != nil {
			return err
		}
		d.values, d.scored = slices.Clone(values), k
		d.note = func() error { return nil }
		if d.part.Note != nil {
			d.note = func() error { return d.part.Note(k, loss, d.values, clipped) }
		}
	}
	// A device that cannot write leaves the attempt to others, before anyone has answered.
	if err := d.note(); err != nil {
		return err
	}
	d.note = func() error { return nil }
	if err := c.Prepare(s.Round, s.Attempt); err != nil {
		return err
	}
	d.at, d.prepared, d.next, d.present = slot.Slot{Round: s.Round, Attempt: s.Attempt}, true, slot.TxKey, nil
	clear(d.answered)
	return nil
}

// confirm tells that the attempt's randomness is drawn, and what the device's b will be.
func (d *Device) confirm() error {
	if epoch := d.part.Cipher.Epoch(); d.commitment == nil || d.committed != epoch {
		c := wire.Commitment(d.run, d.index, epoch, wire.AppendVector(nil, d.part.Cipher.PublicKey()))
		d.commitment, d.committed = c[:], epoch
	}
	return d.answer(wire.Message{Kind: wire.Prepared, Slot: d.at, Body: d.commitment})
}

// send sends a transmission, or what was sent of it again.
func (d *Device) send(m wire.Message) error {
	s := m.Slot
	if !d.prepared || s.Round != d.at.Round || s.Attempt != d.at.Attempt {
		return nil
	}
	r, err := wire.ParseRequest(m.Body, d.part.Readiness.Devices)
	if err != nil {
		return d.refuse(s, err)
	}
	a, broadcast := d.answered[s.Transmission], wire.Digest(sha256.Sum256(r.Broadcast))
	known := a.frame != nil && a.slot == s
	if a.frame != nil && (r.Due.Repeat == 0 && a.broadcast != broadcast || !slices.Equal(r.Present, d.present)) {
		return d.refuse(s, fmt.Errorf("the server asks for %v of round %d, attempt %d, again with another broadcast or for other devices; what was answered once is not answered otherwise", s.Transmission, s.Round, s.Attempt))
	}
	if known && a.repeat == r.Due.Repeat {
		return d.transmit(a)
	}
	var frame []byte
	if r.Due.Repeat > 0 {
		if !known || r.Due.Group != d.part.Framer.Group() {
			return nil
		}
		broadcast = a.broadcast
		frame, err = d.repeat(s, r)
	} else {
		frame, err = d.make(s, r)
	}
	if err != nil {
		return d.refuse(s, err)
	}
	if frame == nil {
		return nil
	}
	d.answered[s.Transmission] = answer{s, r.Due.Repeat, frame, broadcast}
	return d.transmit(d.answered[s.Transmission])
}

// repeat makes the frame of what was sent once more: the same payload, under the check
// weights of the repeat.
func (d *Device) repeat(s slot.Slot, r wire.Request) ([]byte, error) {
	f := d.part.Framer
	if most := f.Repeats(); r.Due.Repeat > most {
		return nil, fmt.Errorf("the server asks for %v for the %d. time; allowed are %d repeats (link.frame_repeats)", s.Transmission, r.Due.Repeat+1, most)
	}
	if err := d.agree(r.Present); err != nil {
		return nil, err
	}
	c0, c1 := d.part.Cipher.Ciphertext()
	x := [...]zq.Vector{slot.TxKey: d.part.Cipher.PublicKey(), slot.TxC0: c0, slot.TxC1: c1, slot.TxShare: d.share}[s.Transmission]
	return f.Frame(s, r.Due.Repeat, x)
}

// transmit gives a frame to the air, and tells the server. One of a radio is ready for the
// server's cue.
func (d *Device) transmit(a answer) error {
	if d.part.Radio != nil {
		return d.answer(wire.Message{Kind: wire.Sent, Slot: a.slot})
	}
	frame := wire.Message{Kind: wire.Frame, Run: d.run, Device: uint32(d.index), Epoch: d.part.Cipher.Epoch(), Slot: a.slot, Body: a.frame}
	if err := d.cfg.Bus.Publish(d.run.OnAir(d.index), frame.Bytes()); err != nil {
		d.tell("the bus does not take frames: " + err.Error())
		return nil
	}
	return d.answer(wire.Message{Kind: wire.Sent, Slot: a.slot})
}

// make makes the frame of a transmission that is due, nil for one that is not.
func (d *Device) make(s slot.Slot, r wire.Request) (frame []byte, err error) {
	c := d.part.Cipher
	if err := d.agree(r.Present); err != nil {
		return nil, err
	}
	again := s.Transmission == slot.TxShare && s.Again > 0 && d.share != nil && d.next > slot.TxShare
	if s.Transmission != d.next && !again || s.Again > 0 && !again {
		return nil, nil
	}
	x := d.share
	switch {
	case again:
	case s.Transmission == slot.TxKey:
		x = c.PublicKey()
	case s.Transmission == slot.TxC0:
		if err := d.broadcast(r.Broadcast, "b~"); err != nil {
			return nil, err
		}
		d.part.Context.SetKey(d.key, d.in)
		if _, err := c.Encrypt(d.key, d.values); err != nil {
			return nil, err
		}
		x, _ = c.Ciphertext()
	case s.Transmission == slot.TxC1:
		_, x = c.Ciphertext()
	default:
		if err := d.broadcast(r.Broadcast, "c~1"); err != nil {
			return nil, err
		}
		d.part.Context.SetC1(d.c1, d.in)
		if x, err = c.Share(d.c1); err != nil {
			return nil, err
		}
		d.share = x
	}
	frame, err = d.part.Framer.Frame(s, 0, x)
	if err == nil && !again {
		d.next++
	}
	return frame, err
}

// agree refuses an attempt of too few devices, of which this one is none, or whose
// participants are others than in its first transmission: fewer than agreed would tell
// the server more of each one's value.
func (d *Device) agree(present []bool) error {
	n := 0
	for _, there := range present {
		if there {
			n++
		}
	}
	if !present[d.index-1] {
		return fmt.Errorf("the server asks device %d to send in an attempt that it has left it out of", d.index)
	}
	if n < d.part.Minimum {
		return fmt.Errorf("the server announces %d devices; allowed are %d (devices.minimum) or more", n, d.part.Minimum)
	}
	if d.present == nil {
		d.present = present
	} else if !slices.Equal(d.present, present) {
		return errors.New("the server announces other devices than it began the attempt with")
	}
	return nil
}

// broadcast reads b~ or c~1, which are as good as uniform where devices have made them. One
// of zeros, or that is small, sparse or of few values, would have the device send its
// message, or its share, under no key.
func (d *Device) broadcast(b []byte, name string) error {
	modulus := d.part.Context.Modulus()
	if err := wire.ParseVector(b, modulus, d.in); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	for j, p := range modulus.Primes() {
		if most := crowded(d.in[j], p); most > 0 {
			return fmt.Errorf("the server announces %s of which %d of %d coefficients are alike; allowed is one that hides what is sent under it, as a sum of devices' own does", name, most, len(d.in[j]))
		}
	}
	return nil
}

// crowded returns how many values of x lie in the fullest sixteenth of 0 to p, if that are
// more than ever do of uniform ones: ten standard deviations above the mean; 0 elsewhere.
func crowded(x []uint64, p uint64) (most int) {
	const parts = 16
	var count [parts]int
	for _, v := range x {
		part, _ := bits.Div64(v>>60, v<<4, p)
		count[part]++
	}
	mean := float64(len(x)) / parts
	if most = slices.Max(count[:]); float64(most) <= mean+10*math.Sqrt(mean) {
		return 0
	}
	return most
}

// verifier judges a signature.
type verifier func(purpose string, message, signature []byte) error

// signed is the verifier of the one record that a message of the server has, whose own
// signature is of that, too. A history is records that were signed at their time.
func signed(string, []byte, []byte) error { return nil }

// take applies records that are the model's next; earlier ones are known.
func (d *Device) take(b []byte, v verifier) error {
	records, err := wire.OpenRecords(b, d.run, d.part.Rounds, v)
	if err != nil {
		d.tell("ignored records: " + err.Error())
		return nil
	}
	member := d.part.Member
	for _, r := range records {
		k := int(r.Round)
		if k != member.Round()+1 {
			continue
		}
		if own := wire.Digest(member.Digest()); own != r.Before {
			why := fmt.Errorf("the model of device %d differs from the server's before round %d: its digest is %.8x…, the server's %.8x…; the same version, config and processor give the same", d.index, k, own, r.Before)
			return errors.Join(why, d.answer(wire.Message{Kind: wire.Differs, Slot: slot.Slot{Round: r.Round}, Body: []byte(why.Error())}))
		}
		step := member.Skip
		if r.M != nil {
			step = func(k int) error { return member.Apply(k, r.M) }
		}
		if err := step(k); err != nil {
			return err
		}
	}
	return nil
}

// history replays records, and goes on with what waited for them.
func (d *Device) history(ctx context.Context, m wire.Message) error {
	before := d.part.Member.Round()
	if err := d.take(m.Body, d.verify); err != nil {
		return err
	}
	if after := d.part.Member.Round(); after > before {
		d.lastAsked, d.catching.asks = time.Time{}, 0
		d.replayed, d.fetched = d.replayed+after-before, d.fetched+len(m.Body)
	}
	return d.goOn(ctx)
}

// goOn goes on with what has waited for the model.
func (d *Device) goOn(ctx context.Context) error {
	if d.pending == nil {
		return nil
	}
	switch waiting := *d.pending; waiting.Kind {
	case wire.End:
		return d.end(waiting)
	default:
		return d.prepare(ctx, waiting)
	}
}

// caughtUp tells what it took to have the model of the others.
func (d *Device) caughtUp() {
	from := ""
	if d.catching.from > 0 {
		from = fmt.Sprintf("took theta after round %d from %d bytes, and ", d.catching.from, d.catching.bytes)
	}
	if d.replayed > 0 || from != "" {
		d.cfg.Say(fmt.Sprintf("caught up to round %d: %sreplayed %d rounds from %d bytes of records", d.part.Member.Round(), from, d.replayed, d.fetched))
	}
	d.replayed, d.fetched, d.catching = 0, 0, catching{}
}

// end applies the last record and opens the keys, as often as the server says so; then the
// device may go.
func (d *Device) end(m wire.Message) error {
	if int(m.Slot.Round) < d.part.Member.Round() {
		return nil // of an earlier sitting, heard again
	}
	if m.Slot.Again > 0 {
		return d.over(int(m.Slot.Round))
	}
	if err := d.take(m.Body, signed); err != nil {
		return err
	}
	if d.part.Member.Round() < int(m.Slot.Round) {
		d.pending = &m
		return d.askFor(int(m.Slot.Round))
	}
	d.caughtUp()
	c := d.part.Cipher
	d.opened[c.Epoch()] = wire.AppendVector(nil, c.PublicKey())
	d.ended = d.now()
	return d.openKeys(true)
}

// over leaves a run that has ended after so many rounds.
func (d *Device) over(rounds int) error {
	if known := d.part.Member.Round(); known < rounds {
		why := fmt.Errorf("%w after round %d, and this device has heard of %d rounds only: its model is not the run's", ErrBehind, rounds, known)
		if !d.cfg.Stay {
			return errors.Join(why, d.leave())
		}
		d.cfg.Say(why.Error())
	} else {
		d.cfg.Say(fmt.Sprintf("the run has ended after round %d, with the model %.8x…", rounds, d.part.Member.Digest()))
	}
	return errors.Join(ErrEnded, d.leave())
}

// openKeys gives b of the epochs that are over, each with the digest of the model. The last
// that a run has is marked.
func (d *Device) openKeys(ended bool) error {
	digest := d.part.Member.Digest()
	epochs := slices.Sorted(maps.Keys(d.opened))
	for i, epoch := range epochs {
		m := wire.Message{Kind: wire.Opened, Run: d.run, Epoch: epoch, Slot: slot.Slot{Round: uint32(d.part.Member.Round())}, Body: append(digest[:], d.opened[epoch]...)}
		if ended && i == len(epochs)-1 {
			m.Slot.Again = 1
		}
		if err := d.say(m); err != nil {
			return err
		}
	}
	return nil
}
