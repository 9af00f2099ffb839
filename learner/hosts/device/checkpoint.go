package device

import (
	"context"
	"fmt"
	"time"

	"ringwave/learner"
	"ringwave/learner/hosts/wire"
	"ringwave/phy/slot"
)

// catching is how a device comes to the model of the others.
type catching struct {
	asks    int  // for a checkpoint, without an answer
	refused bool // one came that is none: it replays
	from    int  // the round of the one that was taken; 0 for none
	bytes   int  // of it
}

const (
	// checkpointPause is how many beats a checkpoint has to come in, and mostAsks after how
	// many that have not come the device replays.
	checkpointPause, mostAsks = 2, 3
)

// askFor asks for what the model lacks of so many rounds: records, or where these are more than
// it should replay a checkpoint, in whose place records come if there is none.
func (d *Device) askFor(rounds int) error {
	now, c := d.now(), &d.catching
	most := d.cfg.ReplayRounds
	wanted := most > 0 && rounds-d.part.Member.Round() > most && !c.refused && c.asks < mostAsks
	pause := d.cfg.Beat / 4
	if wanted {
		pause = checkpointPause * d.cfg.Beat
	}
	if now.Sub(d.lastAsked) < pause {
		return nil
	}
	d.lastAsked = now
	m := wire.Message{Kind: wire.Behind, Slot: slot.Slot{Round: uint32(d.part.Member.Round() + 1)}}
	if wanted {
		c.asks++
		m.Slot.Again = 1
	}
	return d.answer(m)
}

// checkpoint takes theta as it was before a round from a server's message, if it is what the
// signed record of that round says; else the device replays.
func (d *Device) checkpoint(ctx context.Context, m wire.Message) error {
	member, c := d.part.Member, &d.catching
	if c.asks == 0 || c.refused {
		return nil
	}
	t, err := wire.OpenCheckpoint(m.Body, d.run, d.verify)
	if err == nil && (t.Round() <= member.Round() || t.Round() > d.part.Rounds) {
		return nil // asked for twice
	}
	if err == nil {
		err = d.restore(t)
	}
	c.asks, d.lastAsked = 0, time.Time{}
	if err != nil {
		c.refused = true
		d.cfg.Say(fmt.Sprintf("device %d takes no checkpoint, and replays in its place: %v", d.index, err))
	} else {
		c.from, c.bytes = t.Round(), len(m.Body)
	}
	return d.goOn(ctx)
}

// restore puts the model where a checkpoint has it.
func (d *Device) restore(t wire.Theta) error {
	if own := wire.Digest(learner.DigestOf(t.Round(), t.Values)); own != t.Next.Before {
		return fmt.Errorf("theta after round %d has the digest %.8x…, and the signed record of round %d says %.8x…", t.Round(), own, t.Next.Round, t.Next.Before)
	}
	return d.part.Member.Restore(t.Round(), t.Values)
}
