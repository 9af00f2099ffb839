package server

import (
	"fmt"
	"strings"
	"time"
)

// pace is how fast the rounds of this sitting go, from which follows when the run is likely to
// end.
type pace struct {
	began time.Time // of the first record that was kept
	from  int       // its round
}

// paceRounds is of how many rounds the pace is known.
const paceRounds = 10

// ends returns when a run of so many rounds is likely to end, which is after one now; zero where
// that is not known.
func (p *pace) ends(now time.Time, round, rounds int) time.Time {
	if p.from == 0 {
		p.began, p.from = now, round
	}
	done := round - p.from
	if done < paceRounds || rounds <= round {
		return time.Time{}
	}
	each := now.Sub(p.began).Seconds() / float64(done)
	left := time.Duration(min(each*float64(rounds-round), longest.Seconds()) * float64(time.Second))
	return now.Add(left).UTC().Truncate(time.Second)
}

// longest bounds the time that a run is likely to take.
const longest = 20 * 365 * 24 * time.Hour

// foresee tells, once for each, whose identity expires before the run is likely to end. mu is
// held.
func (s *Server) foresee() {
	at := s.tempo.ends(s.now(), len(s.records), s.cfg.Rounds)
	if at.IsZero() {
		return
	}
	s.cfg.Herald.Ends(at)
	if own := s.cfg.Identity.Expires; own.Before(at) && !s.warned {
		s.warned = true
		s.cfg.Say(fmt.Sprintf("the server's own identity expires at %s, and the run is likely to go on until %s: it stops then, and nobody of an expired bench can go on with it", own.UTC().Format(time.RFC3339), at.Format(time.RFC3339)))
	}
	var early []string
	for _, d := range s.devices {
		if d.gone != nil && !d.warned && d.expires.Before(at) {
			d.warned = true
			early = append(early, fmt.Sprintf("of device %d at %s", d.index, d.expires.UTC().Format(time.RFC3339)))
		}
	}
	if len(early) > 0 {
		s.cfg.Say(fmt.Sprintf("identities expire before the run is likely to end at %s: that %s", at.Format(time.RFC3339), strings.Join(early, ", ")))
	}
}

// silent says why a device is lost of which nothing was heard for so long. mu is held.
func (s *Server) silent(d *remote, silent time.Duration) string {
	why := fmt.Sprintf("nothing was heard for %v", silent.Round(100*time.Millisecond))
	if now := s.now(); !now.Before(d.expires) {
		why += fmt.Sprintf(", and its identity expired at %s", d.expires.UTC().Format(time.RFC3339))
	}
	return why
}
