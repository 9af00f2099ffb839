package device

import (
	"ringwave/learner/hosts/wire"
	"ringwave/phy"
	"ringwave/phy/slot"
	"ringwave/phy/zq"
)

// Waveform makes frames of a waveform link.
type Waveform struct{ *phy.WaveformSender }

// Frame returns the device's frame of a transmission.
func (w Waveform) Frame(s slot.Slot, repeat int, x zq.Vector) ([]byte, error) {
	f, err := w.WaveformSender.Frame(s, repeat, x)
	if err != nil {
		return nil, err
	}
	return wire.AppendWaveformFrame(nil, f), nil
}
