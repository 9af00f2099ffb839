package experiment

import (
	"math"
	"math/cmplx"

	"ringwave/radio"
)

// DeviceState is what a run knows of one of its devices.
type DeviceState struct {
	// Radio is the device's; zero in memory, and before radios are open.
	Radio radio.Info
	// Mu and Omega are the mean and the second moment of its gain that the run goes by.
	Mu, Omega float64
	// Phase is that of its mean gain as a calibration has it, in radians; NaN without.
	Phase float64
	// OffsetHz is its carrier's offset from the receiver's as a calibration has it; NaN
	// without.
	OffsetHz float64
	// Gain is H/alpha, in units of what counts as gain 1, of the last round that was read;
	// NaN before, and where nothing tells.
	Gain float64
}

// Devices returns what the run knows of its devices, in their order. It is for the goroutine
// of an Observer's Opening, Started, Round and Row.
func (s *Experiment) Devices() []DeviceState {
	mu, omega := s.links().Moments()
	list := make([]DeviceState, len(mu))
	for i := range list {
		list[i] = DeviceState{Mu: mu[i], Omega: omega[i], Phase: math.NaN(), OffsetHz: math.NaN(), Gain: math.NaN()}
		if s.known != nil && i < len(s.known.Means) {
			list[i].Phase = cmplx.Phase(s.known.Means[i])
		}
		if s.known != nil && s.known.File != nil && i < len(s.known.File.Devices) {
			list[i].OffsetHz = s.known.File.Devices[i].OffsetHz.Value
		}
	}
	scaled, alpha := s.scaledGains()
	for i := range scaled {
		if alpha > 0 && i < len(list) {
			list[i].Gain = scaled[i] / alpha
		}
	}
	if w := s.waveform(); w != nil && w.Radios != nil {
		for i, info := range w.Radios.Infos() {
			if i < len(list) { // the receiver comes last
				list[i].Radio = info
			}
		}
	}
	return list
}

// scaledGains returns the H_i of the last round that was read, and alpha: 0 where nothing
// tells them.
func (s *Experiment) scaledGains() (scaled []float64, alpha float64) {
	switch {
	case s.protocol != nil:
		return s.protocol.scaled, s.protocol.alpha
	case s.fleet != nil && s.fleet.waveform != nil:
		return s.fleet.h, s.fleet.waveform.Link.Alpha()
	}
	return nil, 0
}

// ReceiverState is what a run knows of its receiver.
type ReceiverState struct {
	// Radio is the receiver's; zero in memory, and before radios are open.
	Radio radio.Info
	// Carrier is by how much the carrier that devices have in common was off in the last
	// frame that was found; NaN before, and for links without frames.
	Carrier radio.Hertz
	// Clipped counts the samples that it clipped in the last round.
	Clipped int64
}

// Receiver returns what the run knows of its receiver. It is for the goroutine that Devices
// is for.
func (s *Experiment) Receiver() ReceiverState {
	w := s.waveform()
	if w == nil {
		return ReceiverState{Carrier: radio.Hertz(math.NaN())}
	}
	r := ReceiverState{Carrier: w.CarrierOffset(), Clipped: w.ClippedSamples()}
	if w.Radios == nil {
		return r
	}
	if infos := w.Radios.Infos(); s.Config.Devices.Count < len(infos) {
		r.Radio = infos[s.Config.Devices.Count]
	}
	return r
}
