package experiment

import (
	"fmt"
	"math"

	"ringwave/learner/experiment/runfolder"
	"ringwave/learner/experiment/uplink"
	"ringwave/phy/gains"
)

// gains returns the watch of the link's gains; nil for a link without patterns that are
// solved, and before there is a link.
func (s *Experiment) gains() *uplink.GainWatch {
	if w := s.waveform(); w != nil {
		return w.Watch
	}
	return nil
}

// countGains adds up what rounds had of gains of 0 and of wrong signs; NaN where
// nothing tells.
func (s *Experiment) countGains(rows []runfolder.Row) (zeros, wrong float64) {
	if p := s.protocol; p != nil {
		if _, ring := p.link.(*uplink.Ring); ring {
			return p.countRingZeros(rows), math.NaN()
		}
	}
	for _, r := range rows {
		if r.Link == nil || math.IsNaN(r.Link.ZeroGains) {
			continue
		}
		zeros += r.Link.ZeroGains
		if !math.IsNaN(r.Link.WrongSigns) {
			wrong += r.Link.WrongSigns
		}
	}
	return zeros, wrong
}

// countRingZeros counts gains of 0 as the ring link met them, whose rows have none: a
// round's gains are drawn by the numbers of the round and of the attempt.
func (p *protocol) countRingZeros(rows []runfolder.Row) float64 {
	h, zeros := make([]float64, len(p.scaled)), 0.0
	for _, r := range rows {
		if r.Skipped || r.Attempts < 1 {
			continue
		}
		p.link.Truth(h, uint32(r.Round), uint32(r.Attempts-1))
		for _, x := range h {
			if x == 0 {
				zeros++
			}
		}
	}
	return zeros
}

// watchGains has the log hear of devices whose gains disagree with what is known of
// them, and goes on from a checkpoint.
func (s *Experiment) watchGains(from *runfolder.Checkpoint) error {
	w := s.gains()
	if w == nil {
		return nil
	}
	w.Disagrees = func(k, device int, what string) {
		s.log.Warn("a gain disagrees", "round", k, "device", device+1, "what", what)
	}
	if from == nil {
		return nil
	}
	return w.Resume(from.Gains)
}

// gainState returns what the patterns have shown so far; nil for links without any.
func (s *Experiment) gainState() *gains.State {
	w := s.gains()
	if w == nil {
		return nil
	}
	state := w.State()
	return &state
}

// summariseGains adds to a summary what the gains of the rounds were.
func (s *Experiment) summariseGains(out *runfolder.Summary, rows []runfolder.Row) {
	out.ZeroGains, out.WrongSigns = runfolder.Float(math.NaN()), runfolder.Float(math.NaN())
	w := s.gains()
	if s.protocol == nil && w == nil {
		return
	}
	zeros, wrong := s.countGains(rows)
	out.ZeroGains, out.WrongSigns = runfolder.Float(zeros), runfolder.Float(wrong)
	if w == nil {
		return
	}
	if zeros > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%.0f gains H_i of 0 in the rounds that were read: M of these has nothing of these devices", zeros))
	}
	devices, notes := w.Devices()
	out.DisagreeingDevices = devices
	out.Notes = append(out.Notes, notes...)
}
