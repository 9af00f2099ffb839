package experiment

import (
	"ringwave/learner/experiment/uplink"
	"ringwave/phy"
	"ringwave/phy/slot"
)

// OnReception has a run's waveform link tell what it receives, before anybody else looks
// at it.
func (s *Experiment) OnReception(hear func(slot slot.Slot, rx *phy.Reception)) {
	s.protocol.link.(*uplink.Waveform).OnReception = hear
}
