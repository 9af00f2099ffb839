package device

import (
	"errors"
	"fmt"
	"time"

	"ringwave/learner/hosts/wire"
	"ringwave/radio/intake"
)

// ErrSilent says that no server is there.
var ErrSilent = errors.New("no server is there")

// surely is of how many beats, one behind the other, silence is judged: a device that stood
// still itself hears first what came in the meantime.
const surely = 3

// listen judges how long nothing was heard. In a run it is the run's server that must be
// heard: where it is gone the device lets go of its part, and greets until a server takes it
// up again, as one that was begun anew. Where none does so for long it is an error.
func (d *Device) listen() error {
	last, most := d.word, d.cfg.Patience
	if d.part != nil {
		last, most = d.heard, d.cfg.Silence
	} else if d.cfg.Stay {
		most = 0
	}
	silent := d.now().Sub(last)
	if most == 0 || silent <= most || len(d.inbox) > 0 || !d.ended.IsZero() {
		d.quiet = 0
		return nil
	}
	if d.quiet++; d.quiet < surely {
		return nil
	}
	d.quiet = 0
	silent = silent.Round(time.Second)
	if d.part == nil {
		return fmt.Errorf("%w: nothing was heard for %v; begin device %d again once ringwave serve is there (--stay has it wait without end)", ErrSilent, silent, d.index)
	}
	d.cfg.Say(fmt.Sprintf("nothing was heard from the server for %v: device %d waits until ringwave serve is there again", silent, d.index))
	return d.leave()
}

// pulse hears that the run's server is there, and tells the user where two lead the run.
func (d *Device) pulse(m wire.Message) {
	p, err := wire.ParsePresence(m.Body)
	if err != nil {
		d.tell("ignored a pulse: " + err.Error())
		return
	}
	d.leaders.hear(p, d.tell)
	if expires := d.cfg.Identity.Expires; !d.warned && expires.Before(p.Ends) {
		d.warned = true
		d.cfg.Say(fmt.Sprintf("the identity of device %d (%s) expires at %s, and the run is likely to go on until %s: the bus does not admit it from then on",
			d.index, d.cfg.Identity.Path, expires.UTC().Format(time.RFC3339), p.Ends.UTC().Format(time.RFC3339)))
	}
}

// leaders are the processes that have led the run, of which one at a time should be there.
type leaders struct {
	last, before wire.Presence
	back         int // how often the one before was heard again
}

// hear takes in a pulse. Of a process that is gone the bus may bring some late ones.
func (l *leaders) hear(p wire.Presence, tell func(string)) {
	switch string(p.Nonce) {
	case string(l.last.Nonce):
		l.last = p
	case string(l.before.Nonce):
		if p.Count <= l.before.Count {
			return
		}
		l.before = p
		if l.back++; l.back == surely {
			tell(fmt.Sprintf("two servers lead this run at once, on %s and on %s: one of them should end; they may be copies of one bench", intake.Sentence(l.before.Host), intake.Sentence(l.last.Host)))
		}
	default:
		l.before, l.last, l.back = l.last, p, 0
	}
}
